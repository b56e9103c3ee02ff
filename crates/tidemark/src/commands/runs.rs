//! `tidemark runs`.

use super::outcome::open_store;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::{Terminal, one_line};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::PathBuf;
use std::time::SystemTime;
use tidemark_measure::record::State;
use tidemark_measure::units;
use tidemark_store::RunSummary;

/// Lists stored evaluations and runs, newest first.
pub(crate) fn runs(arguments: &cli::Runs, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    let store = open_store(store)?;
    let evaluations = store.evaluations().map_err(Stop::not_ready)?;
    let runs = store.list().map_err(Stop::not_ready)?;
    if arguments.json {
        let all = serde_json::json!({"evaluations": evaluations, "runs": runs});
        terminal.print(&serde_json::to_string_pretty(&all).unwrap_or_default());
        return Ok(Exit::Done);
    }
    if runs.is_empty() && evaluations.is_empty() {
        terminal.remark("no runs yet; use `tidemark run FILE`");
        return Ok(Exit::Done);
    }
    let state = |valid: Option<bool>, state: State| match (valid, state) {
        (Some(false), State::Completed) => "INVALID".to_owned(),
        (Some(false), state) => format!("{}, INVALID", state.name()),
        (_, state) => state.name().to_owned(),
    };
    if !evaluations.is_empty() {
        terminal.print(&format!(
            "{:>5}  {:16}  {:>9}  {:20}  {:28}  headline",
            "eval", "started", "runs", "state", "name"
        ));
    }
    for one in &evaluations {
        let (id, started) = (format!("e{}", one.id), moment(one.started_unix_ns));
        let (state, name) = (state(one.valid, one.state), one_line(&one.name));
        terminal.print(&format!(
            "{id:>5}  {started:16}  {:>9}  {state:20}  {name:28}  {}",
            one.runs,
            one_line(&one.headline)
        ));
    }
    if !evaluations.is_empty() {
        terminal.print("");
    }
    terminal.print(&format!(
        "{:>5}  {:16}  {:>9}  {:20}  {:28}  headline",
        "run", "started", "took", "state", "name"
    ));
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now_ns = since_1970.as_nanos() as u64;
    let shown = runs.iter().filter(|run| arguments.all || run.evaluation.is_none());
    for run in shown {
        let (started, took) = (moment(run.started_unix_ns), units::duration_ns(took_ns(run, now_ns)));
        let state = state(run.valid, run.state);
        let of = run.evaluation.map(|id| format!(" (e{id})")).unwrap_or_default();
        let name = format!("{}{of}", one_line(&run.name));
        terminal.print(&format!(
            "{:>5}  {started:16}  {took:>9}  {state:20}  {name:28}  {}",
            run.id,
            one_line(&run.headline)
        ));
    }
    let hidden = runs.iter().filter(|run| !arguments.all && run.evaluation.is_some()).count();
    if hidden > 0 {
        terminal.print(&format!("and {hidden} runs of evaluations; use --all to list them"));
    }
    Ok(Exit::Done)
}

/// How long a run took; of one that is still running, the time since its start.
fn took_ns(run: &RunSummary, now_ns: u64) -> u64 {
    match run.state {
        State::Running => now_ns.saturating_sub(run.started_unix_ns),
        _ => run.elapsed_ns,
    }
}

/// A time of day in words, by this machine's time zone.
pub(crate) fn moment(unix_ns: u64) -> String {
    let moment = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    moment.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_still_running_took_as_long_as_it_runs() {
        let run = |state, elapsed_ns| RunSummary {
            id: 1,
            name: "r".into(),
            started_unix_ns: 5_000,
            elapsed_ns,
            state,
            operations: 0,
            failed: 0,
            valid: None,
            headline: String::new(),
            evaluation: None,
        };
        assert_eq!(took_ns(&run(State::Running, 0), 12_000), 7_000);
        assert_eq!(took_ns(&run(State::Completed, 3_000), 12_000), 3_000);
    }
}
