//! `tidemark run FILE`.

use super::{document, outcome};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::PathBuf;
use tidemark_plan::redact;

/// Runs a document from beginning to end.
pub(crate) fn run(arguments: &cli::Run, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    let source = document::read(&arguments.file, terminal)?;
    let mut plan = source.document.plan;
    if let Some(seed) = arguments.seed {
        plan = plan.with_seed(seed);
    }
    let origin = outcome::Origin {
        path: source.path,
        format: source.document.format.name().into(),
        document: redact::redact(&source.text),
        trigger_directory: arguments.trigger_dir.clone(),
    };
    outcome::execute(&plan, origin, &arguments.running, store, terminal)
}
