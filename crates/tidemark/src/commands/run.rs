//! `tidemark run FILE`.

use super::document::{Opened, Source};
use super::{document, outcome};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::PathBuf;
use tidemark_plan::cross_check;
use tidemark_plan::forecast::forecast;
use tidemark_plan::redact;

/// Runs a document from beginning to end.
pub(crate) fn run(arguments: &cli::Run, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    match document::read(&arguments.file, terminal)? {
        Opened::Workload(source) => execute(source, arguments, store, terminal),
        Opened::Evaluation(source) => super::evaluate::execute(source, arguments, store, terminal),
    }
}

/// Runs a document that was read already.
pub(crate) fn execute(
    source: Source,
    arguments: &cli::Run,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let mut plan = source.document.plan;
    if let Some(seed) = arguments.seed {
        plan = plan.with_seed(seed);
    }
    if let Some(pairs) = arguments.cross_check {
        plan = cross_check(plan, &tidemark_engines::registry(), pairs).map_err(Stop::usage)?;
    }
    plan.notes.extend(forecast(&plan, &tidemark_engines::registry()).notes);
    plan.notes.extend(source.document.warnings.iter().map(|warning| warning.note(&source.text)));
    let origin = outcome::Origin {
        path: source.path,
        format: source.document.format.into(),
        document: redact::redact(&source.text),
        trigger_directory: arguments.trigger_dir.clone(),
    };
    outcome::execute(&plan, origin, &arguments.running, store, terminal)
}
