//! `tidemark runs`.

use super::outcome::open_store;
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::PathBuf;
use tidemark_measure::units;

/// Lists stored runs, newest first.
pub(crate) fn runs(arguments: &cli::Runs, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    let runs = open_store(store)?.list().map_err(Stop::not_ready)?;
    if arguments.json {
        terminal.print(&serde_json::to_string_pretty(&runs).unwrap_or_default());
        return Ok(Exit::Done);
    }
    if runs.is_empty() {
        terminal.remark("no runs yet; `tidemark run FILE` makes one");
        return Ok(Exit::Done);
    }
    terminal.print(&format!(
        "{:>5}  {:16}  {:>9}  {:11}  {:28}  headline",
        "run", "started", "took", "state", "name"
    ));
    for run in runs {
        let started = Timestamp::from_nanosecond(i128::from(run.started_unix_ns)).unwrap_or_default();
        let started = started.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
        let took = units::duration_ns(run.elapsed_ns);
        let state = if run.valid == Some(false) { "INVALID" } else { run.state.name() };
        let name = &run.name;
        terminal.print(&format!(
            "{:>5}  {started:16}  {took:>9}  {state:11}  {name:28}  {}",
            run.id, run.headline
        ));
    }
    Ok(Exit::Done)
}
