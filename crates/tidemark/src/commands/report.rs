//! `tidemark report RUN`.

use super::outcome::open_store;
use crate::cli::{self, Format};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::PathBuf;

/// Writes the report of a stored run.
pub(crate) fn report(
    arguments: &cli::Report,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let store = open_store(store)?;
    let id = match arguments.run.as_str() {
        "last" => store
            .latest()
            .map_err(Stop::not_ready)?
            .ok_or_else(|| Stop::usage("there is no stored run yet; `tidemark run FILE` makes one"))?,
        number => number.parse().map_err(|_| {
            Stop::usage(format!(
                "`{number}` is not a run's number; `tidemark runs` lists them, `last` is the last"
            ))
        })?,
    };
    let run = store.load(id).map_err(Stop::usage)?;
    let judgement = tidemark_judge::judge(&run);
    let text = match arguments.format {
        Format::Html => tidemark_report::html(&run, &judgement),
        Format::Md => tidemark_report::markdown(&run, &judgement),
        Format::Csv => tidemark_report::csv(&run),
        Format::SeriesCsv => tidemark_report::csv_series(&run),
        Format::Json => tidemark_report::json(&run, &judgement),
    };
    let path = match (&arguments.output, arguments.format) {
        (Some(path), _) => path.clone(),
        (None, Format::Html) => PathBuf::from(format!("tidemark-run-{id}.html")),
        (None, _) => {
            terminal.print(&text);
            return Ok(Exit::Done);
        }
    };
    std::fs::write(&path, text)
        .map_err(|error| Stop::not_ready(format!("cannot write {}: {error}", path.display())))?;
    terminal.remark(&format!("report: {}", path.display()));
    Ok(Exit::Done)
}
