//! `tidemark submit | status | cancel | watch`: what is to be done on a controller, from a terminal.

use crate::cli;
use crate::exit::{Exit, Stop};
use crate::remote::Controller;
use crate::terminal::{Style, Terminal};
use serde_json::Value;
use std::io::Read as _;
use tidemark_controller::api::{
    Cancel, Driver, LiveSecond, LiveStage, Overview, Submission, SubmissionState, Submit,
};
use tidemark_measure::units;

/// Gives a document to a controller.
pub(crate) fn submit(arguments: &cli::Submit, terminal: Terminal) -> Result<Exit, Stop> {
    let controller = Controller::of(&arguments.remote)?;
    let submit = Submit {
        document: read(&arguments.file)?,
        priority: arguments.priority,
        drivers: arguments.drivers.clone(),
        driver_count: arguments.driver_count,
        seed: arguments.seed,
        skip_preflight: arguments.skip_preflight,
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

/// Shows what a controller does, or how a submission stands.
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
    Ok(exit_of(&submission))
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

/// Follows a submission to its end.
pub(crate) fn watch(arguments: &cli::Watch, terminal: Terminal) -> Result<Exit, Stop> {
    let controller = Controller::of(&arguments.remote)?;
    follow(&controller, number(&arguments.id)?, arguments.remote.json, terminal)
}

/// Ends with the submission, or when the stream breaks and cannot be taken up again.
fn follow(controller: &Controller, id: u64, json: bool, terminal: Terminal) -> Result<Exit, Stop> {
    let mut stages: Vec<LiveStage> = Vec::new();
    let mut stage_told = String::new();
    loop {
        let path = format!("/events?submission={id}");
        // It may have ended before, or while the stream was broken: only one that is asked afterwards can tell.
        let mut ended = false;
        controller.events(&path, |name, data| {
            if json && name != "overview" {
                terminal.print(&format!("{{\"event\":\"{name}\",\"data\":{data}}}"));
            }
            match name {
                "ended" => ended = true,
                "overview" => ended = is_over(data, id),
                "stages" => {
                    stages = serde_json::from_str(data).unwrap_or_default();
                    if let Some(stage) = stages.iter().find(|stage| stage.state == "running")
                        && stage.id != stage_told
                    {
                        stage_told.clone_from(&stage.id);
                        if !json {
                            terminal.remark(&format!("stage {}", stage.id));
                        }
                    }
                }
                "second" if !json => {
                    if let Ok(second) = serde_json::from_str::<LiveSecond>(data) {
                        terminal.remark(&line(&second, &stages));
                    }
                }
                "trouble" if !json => {
                    terminal.remark(&serde_json::from_str::<String>(data).unwrap_or_default());
                }
                _ => {}
            }
            !ended
        })?;
        let submission: Submission = controller.ask(&format!("/submissions/{id}"))?;
        if !matches!(submission.state, SubmissionState::Queued | SubmissionState::Running) {
            match json {
                true => print_json(&submission, terminal),
                false => terminal.print(&sentence(&submission, terminal)),
            }
            return Ok(exit_of(&submission));
        }
    }
}

/// Whether an overview shows that a submission neither waits nor goes on.
fn is_over(data: &str, id: u64) -> bool {
    let overview: Overview = serde_json::from_str(data).unwrap_or_default();
    !overview.active.iter().chain(&overview.queue).any(|submission| submission.id == id)
}

/// A second in one line: operations, their rates and latencies.
fn line(second: &LiveSecond, stages: &[LiveStage]) -> String {
    let work = stages.get(second.stage as usize).and_then(|stage| stage.works.get(second.work as usize));
    let mut line = format!("{:>5} s", second.index + 1);
    for (number, operation) in second.operations.iter().enumerate() {
        let label = work.and_then(|work| work.operations.get(number)).map_or("operation", String::as_str);
        let p99 = units::duration_ns((operation.p99_us * 1e3) as u64);
        line += &format!("   {label} {} op/s, p99 {p99}", operation.ok);
        if operation.failed > 0 {
            line += &format!(", {} failed", operation.failed);
        }
    }
    if second.unmeasured > 0 {
        line += &format!("   {} not measured", second.unmeasured);
    }
    line
}

fn print_overview(overview: &Overview, terminal: Terminal) {
    for trouble in &overview.troubles {
        terminal.remark(&format!("tidemark: {trouble}"));
    }
    let driver = |driver: &Driver| {
        let works = driver.submission.map_or(String::new(), |id| format!(" for w{id}"));
        let state = serde_json::to_value(driver.state).ok();
        let state = state.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned() + &works;
        let busy = format!("{:.0} % of {} processors", driver.cpu_busy * 100.0, driver.cores);
        format!("  {:<20} {state:<14} {busy:<24} {}", driver.name, driver.host)
    };
    let mut lines = vec![terminal.paint(Style::Strong, &format!("Drivers: {}", overview.drivers.len()))];
    lines.extend(overview.drivers.iter().map(driver));
    let groups =
        [("Active", &overview.active), ("Queue", &overview.queue), ("Ended lately", &overview.recent)];
    for (title, submissions) in groups {
        lines.push(terminal.paint(Style::Strong, &format!("{title}: {}", submissions.len())));
        lines.extend(submissions.iter().map(|submission| format!("  {}", sentence(submission, terminal))));
    }
    terminal.print(&lines.join("\n"));
}

/// How a submission stands.
fn sentence(submission: &Submission, terminal: Terminal) -> String {
    let (style, word) = match submission.state {
        SubmissionState::Queued => (Style::Faint, "queued"),
        SubmissionState::Running => (Style::Strong, "running"),
        SubmissionState::Completed if submission.valid == Some(false) => (Style::Bad, "completed, INVALID"),
        SubmissionState::Completed => (Style::Good, "completed"),
        SubmissionState::Failed => (Style::Bad, "failed"),
        SubmissionState::Cancelled => (Style::Warning, "cancelled"),
        SubmissionState::Interrupted => (Style::Warning, "interrupted"),
    };
    let mut text = format!("w{} {}: {}", submission.id, submission.name, terminal.paint(style, word));
    if submission.state == SubmissionState::Running {
        if !submission.stage.is_empty() {
            text += &format!(", {}", submission.stage);
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
        text += &format!("; {more}");
    }
    text
}

fn exit_of(submission: &Submission) -> Exit {
    match submission.state {
        SubmissionState::Completed if submission.valid == Some(false) => Exit::Invalid,
        SubmissionState::Failed => Exit::Failed,
        SubmissionState::Cancelled | SubmissionState::Interrupted => Exit::Interrupted,
        SubmissionState::Queued | SubmissionState::Running | SubmissionState::Completed => Exit::Done,
    }
}

fn print_json(value: &impl serde::Serialize, terminal: Terminal) {
    // These types have nothing that JSON does not.
    terminal.print(&serde_json::to_string(value).unwrap_or_default());
}

/// `w7`, as COSBench writes it, or `7`.
fn number(id: &str) -> Result<u64, Stop> {
    let digits = id.strip_prefix('w').unwrap_or(id);
    digits.parse().map_err(|_| Stop::usage(format!("`{id}` is no submission: write w7, or 7")))
}

fn read(path: &std::path::Path) -> Result<String, Stop> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(|_| ()),
        false => std::fs::read_to_string(path).map(|content| text = content),
    };
    read.map_err(|error| Stop::usage(format!("{} cannot be read: {error}", path.display())))?;
    Ok(text)
}
