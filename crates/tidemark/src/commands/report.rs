//! `tidemark report`: a stored run or evaluation again.

use super::assessment::Judged;
use super::outcome::{open_store, write};
use super::reference::{Reference, member_runs};
use super::runs::moment;
use crate::cli::{self, Format};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::PathBuf;
use tidemark_judge::evaluation::assess;
use tidemark_measure::record::State;
use tidemark_report::figures::{self, Figure};
use tidemark_store::Store;

/// Width of PNG figures, pixels: sharp on a slide.
const PNG_WIDTH: u32 = 1600;

/// What a report is, before it is written.
enum Written {
    Text(String),
    Figures(Vec<Figure>),
}

/// Writes the report of a stored run or evaluation.
pub(crate) fn report(
    arguments: &cli::Report,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let store = open_store(store)?;
    let (name, written) = match Reference::read(&arguments.run, &store)? {
        Reference::Runs(ids) => match ids[..] {
            [id] => (format!("run-{id}"), of_run(id, arguments.format, &store)?),
            _ => return Err(Stop::usage("a report covers one run; use `tidemark compare` for several")),
        },
        Reference::Evaluation { id, arm: None } => {
            (format!("evaluation-{id}"), of_evaluation(id, arguments.format, &store)?)
        }
        Reference::Evaluation { id, .. } => {
            return Err(Stop::usage(format!("a report covers all arms: use `tidemark report e{id}`")));
        }
    };
    match written {
        Written::Figures(figures) => {
            let directory =
                arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("tidemark-{name}-figures")));
            save(&figures, arguments.format, &directory)?;
            terminal.remark(&format!("{} figures: {}", figures.len(), directory.display()));
        }
        Written::Text(text) => {
            let path = match (&arguments.output, arguments.format) {
                (Some(path), _) => path.clone(),
                (None, Format::Html) => PathBuf::from(format!("tidemark-{name}.html")),
                (None, _) => {
                    terminal.print(&text);
                    return Ok(Exit::Done);
                }
            };
            if !write(&path, text.as_bytes(), terminal) {
                return Ok(Exit::NotWritten);
            }
            terminal.remark(&format!("report: {}", path.display()));
        }
    }
    Ok(Exit::Done)
}

fn of_run(id: u64, format: Format, store: &Store) -> Result<Written, Stop> {
    let run = store.load(id).map_err(Stop::usage)?;
    if run.state == State::Running {
        return Err(Stop::not_ready(still_running(id, run.started_unix_ns)));
    }
    let judgement = tidemark_judge::judge(&run);
    Ok(Written::Text(match format {
        Format::Html => tidemark_report::html(&run, &judgement),
        Format::Md => tidemark_report::markdown(&run, &judgement),
        Format::Csv => tidemark_report::csv(&run),
        Format::SeriesCsv => tidemark_report::csv_series(&run),
        Format::Json => tidemark_report::json(&run, &judgement),
        Format::Svg | Format::Png => return Ok(Written::Figures(figures::of_run(&run))),
    }))
}

/// Nothing is judged before a run has ended.
fn still_running(id: u64, started_unix_ns: u64) -> String {
    let since = moment(started_unix_ns);
    format!(
        "run {id} is still running (since {since}), and nothing of it is judged yet: wait until it has ended"
    )
}

fn of_evaluation(id: u64, format: Format, store: &Store) -> Result<Written, Stop> {
    let evaluation = store.evaluation(id).map_err(Stop::usage)?;
    let runs = member_runs(store, id).map_err(Stop::not_ready)?;
    let assessment = assess(&evaluation, &runs);
    let judged = Judged { evaluation: &evaluation, assessment: &assessment, runs: &runs };
    Ok(Written::Text(match format {
        Format::Html => judged.html(Some(store)),
        Format::Md => judged.markdown(),
        Format::Csv => judged.csv(),
        Format::SeriesCsv => {
            return Err(Stop::usage(
                "an evaluation has no series: use `--format series-csv` with one of its runs, which `--format csv` lists",
            ));
        }
        Format::Json => judged.json(),
        Format::Svg | Format::Png => return Ok(Written::Figures(judged.figures(Some(store)))),
    }))
}

/// Writes figures into a directory, a file each.
fn save(figures: &[Figure], format: Format, directory: &std::path::Path) -> Result<(), Stop> {
    let failed = |path: &std::path::Path, error: std::io::Error| {
        Stop::not_ready(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for figure in figures {
        let (ending, content) = match format {
            Format::Png => ("png", figures::png(figure, PNG_WIDTH).map_err(Stop::not_ready)?),
            _ => ("svg", figure.standalone().into_bytes()),
        };
        let path = directory.join(format!("{}.{ending}", figure.name));
        std::fs::write(&path, content).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::record::Run;

    #[test]
    fn a_run_that_is_still_running_has_no_report() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("store.db")).unwrap();
        let begun = Run { name: "r".into(), state: State::Running, ..Run::default() };
        let id = store.begin(&begun).unwrap();
        let why = of_run(id, Format::Md, &store).err().unwrap().message;
        assert!(why.starts_with(&format!("run {id} is still running (since ")), "{why}");
    }
}
