//! `tidemark submit | status | cancel`: submissions to a controller.

use super::watch::follow;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::remote::Controller;
use crate::terminal::{Style, Terminal, one_line};
use serde_json::Value;
use std::io::Read as _;
use tidemark_controller::api::{Cancel, Driver, DriverState, Overview, Submission, SubmissionState, Submit};
use tidemark_measure::record::State;
use tidemark_measure::units;

/// The limit of listed drivers.
const MOST_DRIVERS: usize = 20;

/// States of drivers and their names, most urgent first.
const DRIVER_STATES: [(DriverState, &str); 5] = [
    (DriverState::Gone, "gone"),
    (DriverState::Silent, "silent"),
    (DriverState::Ending, "still ending"),
    (DriverState::Busy, "busy"),
    (DriverState::Idle, "idle"),
];

/// Submits a document to a controller.
pub(crate) fn submit(arguments: &cli::Submit, terminal: Terminal) -> Result<Exit, Stop> {
    let controller = Controller::of(&arguments.remote)?;
    let submit = Submit {
        document: read(&arguments.file)?,
        priority: arguments.priority,
        drivers: arguments.drivers.clone(),
        driver_count: arguments.driver_count,
        seed: arguments.seed,
        skip_preflight: arguments.skip_preflight,
        from: None,
    };
    let submission: Submission = controller.tell("/submissions", &submit)?;
    if arguments.watch {
        terminal.remark(&format!("accepted as w{}", submission.id));
        return follow(&controller, submission.id, arguments.remote.json, terminal);
    }
    match arguments.remote.json {
        true => print_json(&submission, terminal),
        false => terminal.print(&format!("accepted as w{}", submission.id)),
    }
    Ok(Exit::Done)
}

/// Shows the state of a controller or of a submission.
pub(crate) fn status(arguments: &cli::Status, terminal: Terminal) -> Result<Exit, Stop> {
    let controller = Controller::of(&arguments.remote)?;
    let Some(id) = &arguments.id else {
        let overview: Overview = controller.ask("/overview")?;
        match arguments.remote.json {
            true => print_json(&overview, terminal),
            false => print_overview(&overview, terminal),
        }
        return Ok(Exit::Done);
    };
    let submission: Submission = controller.ask(&format!("/submissions/{}", number(id)?))?;
    match arguments.remote.json {
        true => print_json(&submission, terminal),
        false => terminal.print(&sentence(&submission, terminal)),
    }
    exit_of(&submission, &controller)
}

/// Cancels a submission.
pub(crate) fn cancel(arguments: &cli::Cancel, terminal: Terminal) -> Result<Exit, Stop> {
    let controller = Controller::of(&arguments.remote)?;
    let cancel = Cancel { at_once: arguments.at_once };
    let path = format!("/submissions/{}/cancel", number(&arguments.id)?);
    let submission: Submission = controller.tell(&path, &cancel)?;
    match arguments.remote.json {
        true => print_json(&submission, terminal),
        false => terminal.print(&sentence(&submission, terminal)),
    }
    Ok(Exit::Done)
}

fn print_overview(overview: &Overview, terminal: Terminal) {
    for trouble in &overview.troubles {
        terminal.remark(&format!("tidemark: {trouble}"));
    }
    let mut lines = vec![terminal.paint(Style::Strong, &format!("Drivers: {}", counted(&overview.drivers)))];
    lines.extend(drivers(&overview.drivers));
    let groups = [("Active", &overview.active), ("Queue", &overview.queue), ("Recent", &overview.recent)];
    for (title, submissions) in groups {
        lines.push(terminal.paint(Style::Strong, &format!("{title}: {}", submissions.len())));
        lines.extend(submissions.iter().map(|submission| format!("  {}", sentence(submission, terminal))));
    }
    terminal.print(&lines.join("\n"));
}

/// `4 (1 busy, 3 idle)`
fn counted(drivers: &[Driver]) -> String {
    let of = |(state, word): (DriverState, &str)| {
        let count = drivers.iter().filter(|driver| driver.state == state).count();
        (count > 0).then(|| format!("{count} {word}"))
    };
    let parts: Vec<String> = DRIVER_STATES.into_iter().filter_map(of).collect();
    match parts.is_empty() {
        true => "0".into(),
        false => format!("{} ({})", drivers.len(), parts.join(", ")),
    }
}

/// A line for each driver, most urgent first; of many, idle ones are omitted.
fn drivers(drivers: &[Driver]) -> Vec<String> {
    let order = |driver: &Driver| DRIVER_STATES.iter().position(|(state, _)| *state == driver.state);
    let mut sorted: Vec<&Driver> = drivers.iter().collect();
    sorted.sort_by_key(|driver| order(driver));
    let name_width = sorted.iter().map(|driver| driver.name.chars().count()).max().unwrap_or(0).clamp(8, 32);
    let line = |driver: &&Driver| {
        let word = order(driver).map_or("", |place| DRIVER_STATES[place].1);
        let state = match (driver.state, driver.submission.or(driver.ending.and_then(|left| left.submission)))
        {
            (DriverState::Ending, of) => {
                let of = of.map_or("an earlier run".into(), |id| format!("w{id}"));
                let ms = driver.ending.map_or(0, |left| left.ms);
                format!("{word} {of}, for {} s", ms / 1_000)
            }
            (DriverState::Silent | DriverState::Gone, _) => {
                format!("{word} for {}", units::duration_ns(driver.silent_ms.saturating_mul(1_000_000)))
            }
            (_, Some(id)) => format!("{word} for w{id}"),
            (_, None) => word.to_owned(),
        };
        let busy = match driver.state {
            DriverState::Silent | DriverState::Gone => String::new(),
            _ => format!("{:.0} % of {} CPUs", driver.utilization.cpu_busy * 100.0, driver.host.cores),
        };
        format!("  {:<name_width$} {state:<18} {busy:<22} {}", driver.name, one_line(&driver.host.name))
    };
    let mut lines: Vec<String> = sorted.iter().take(MOST_DRIVERS).map(line).collect();
    if let Some(more) = sorted.len().checked_sub(MOST_DRIVERS).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more; use --json for all"));
    }
    lines
}

/// The state of a submission.
pub(super) fn sentence(submission: &Submission, terminal: Terminal) -> String {
    let (style, word) = match submission.state {
        SubmissionState::Queued => (Style::Faint, "queued"),
        SubmissionState::Running => (Style::Strong, "running"),
        SubmissionState::Completed if submission.valid == Some(false) => (Style::Bad, "completed, INVALID"),
        SubmissionState::Completed => (Style::Good, "completed"),
        SubmissionState::Failed => (Style::Bad, "failed"),
        SubmissionState::Cancelled => (Style::Warning, "cancelled"),
        SubmissionState::Interrupted => (Style::Warning, "interrupted"),
    };
    let mut text =
        format!("w{} {}: {}", submission.id, one_line(&submission.name), terminal.paint(style, word));
    if submission.state == SubmissionState::Running {
        if !submission.stage.is_empty() {
            text += &format!(", {}", one_line(&submission.stage));
        }
        if let Some(progress) = submission.progress {
            text += &format!(", {:.0} %", progress * 100.0);
        }
    }
    match (submission.evaluation, submission.run) {
        (Some(id), _) => text += &format!(", evaluation e{id}"),
        (None, Some(id)) => text += &format!(", run {id}"),
        (None, None) => {}
    }
    for more in [&submission.reason, &submission.headline].into_iter().filter(|more| !more.is_empty()) {
        text += &format!("; {}", one_line(more));
    }
    text
}

/// How a command ends that shows this submission: as `tidemark run` would have ended that carried it out here.
pub(super) fn exit_of(submission: &Submission, controller: &Controller) -> Result<Exit, Stop> {
    let over = |is_critical| ended(submission, is_critical);
    let path = match (submission.state, submission.evaluation, submission.run) {
        (SubmissionState::Completed, Some(id), _) => format!("/evaluations/{id}/report?format=json"),
        (SubmissionState::Completed, None, Some(id)) => format!("/runs/{id}"),
        _ => return Ok(over(false)),
    };
    // A good end without its findings would say that there is nothing critical among them.
    let record: Value = controller.ask(&path)?;
    Ok(over(is_critical(&record)))
}

/// Whether the record of a run, or of an evaluation, has a run that failed or a critical finding.
fn is_critical(record: &Value) -> bool {
    let findings = [&record["findings"], &record["assessment"]["findings"]];
    let mut findings = findings.into_iter().filter_map(Value::as_array).flatten();
    let mut runs = record["runs"].as_array().into_iter().flatten();
    findings.any(|finding| finding["severity"] == "critical") || runs.any(|run| run["state"] == "failed")
}

fn ended(submission: &Submission, is_critical: bool) -> Exit {
    let is_valid = submission.valid != Some(false);
    match submission.state {
        SubmissionState::Queued | SubmissionState::Running => Exit::Done,
        SubmissionState::Completed => Exit::of(State::Completed, is_valid, is_critical),
        // Nothing was judged: it did not start.
        SubmissionState::Failed if submission.valid.is_none() => Exit::NotReady,
        SubmissionState::Failed if submission.evaluation.is_some() => {
            Exit::of(State::Completed, is_valid, true)
        }
        SubmissionState::Failed => Exit::Failed,
        SubmissionState::Cancelled | SubmissionState::Interrupted => Exit::Interrupted,
    }
}

pub(super) fn print_json(value: &impl serde::Serialize, terminal: Terminal) {
    // These types have nothing that JSON does not.
    terminal.print(&serde_json::to_string(value).unwrap_or_default());
}

/// `w7`, as COSBench writes it, or `7`.
pub(super) fn number(id: &str) -> Result<u64, Stop> {
    let digits = id.strip_prefix('w').unwrap_or(id);
    digits.parse().map_err(|_| Stop::usage(format!("`{id}` is not a submission: write w7 or 7")))
}

fn read(path: &std::path::Path) -> Result<String, Stop> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(|_| ()),
        false => std::fs::read_to_string(path).map(|content| text = content),
    };
    read.map_err(|error| Stop::usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_controller::api::StillEnding;

    #[test]
    fn a_submission_ends_as_the_same_run_would_here() {
        let exit = |state, valid, evaluation, is_critical| {
            ended(&Submission { state, valid, evaluation, ..Submission::default() }, is_critical)
        };
        use SubmissionState::{Cancelled, Completed, Failed, Interrupted};
        assert_eq!(exit(Completed, Some(true), None, false), Exit::Done);
        assert_eq!(exit(Completed, Some(true), None, true), Exit::Failed, "a critical finding");
        assert_eq!(exit(Completed, Some(false), None, true), Exit::Invalid);
        assert_eq!(exit(Failed, Some(false), None, false), Exit::Failed);
        assert_eq!(exit(Failed, None, None, false), Exit::NotReady, "it was never started");
        assert_eq!(exit(Failed, Some(false), Some(3), false), Exit::Invalid);
        assert_eq!(
            [Cancelled, Interrupted].map(|state| exit(state, Some(true), None, false)),
            [Exit::Interrupted; 2]
        );
        let record = |text: &str| is_critical(&serde_json::from_str(text).unwrap());
        assert!(record(r#"{"findings":[{"severity":"good"},{"severity":"critical"}]}"#));
        assert!(!record(r#"{"findings":[{"severity":"warning"}],"stages":[]}"#));
        assert!(record(
            r#"{"assessment":{"findings":[]},"runs":[{"state":"completed"},{"state":"failed"}]}"#
        ));
        assert!(record(r#"{"assessment":{"findings":[{"severity":"critical"}]},"runs":[]}"#));
    }

    #[test]
    fn many_drivers_are_counted_and_those_in_trouble_come_first() {
        let driver = |number: usize, state| Driver {
            name: format!("d{number:02}"),
            state,
            silent_ms: 12_000,
            ..Driver::default()
        };
        let mut all: Vec<Driver> = (0..30).map(|number| driver(number, DriverState::Idle)).collect();
        all[17].state = DriverState::Silent;
        all[25] = Driver { submission: Some(7), ..driver(25, DriverState::Busy) };
        assert_eq!(counted(&all), "30 (1 silent, 1 busy, 28 idle)");
        assert_eq!(counted(&[]), "0");
        let lines = drivers(&all);
        assert!(lines[0].contains("d17") && lines[0].contains("silent for 12.0 s"), "{lines:?}");
        assert!(lines[1].contains("d25") && lines[1].contains("busy for w7"), "{lines:?}");
        assert_eq!((lines.len(), lines[20].as_str()), (21, "  and 10 more; use --json for all"));
        let left = Some(StillEnding { submission: Some(68), ms: 12_400 });
        let ending = Driver { ending: left, ..driver(1, DriverState::Ending) };
        assert!(drivers(&[ending])[0].contains("still ending w68, for 12 s"));
    }
}
