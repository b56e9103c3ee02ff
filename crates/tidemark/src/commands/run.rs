//! `tidemark run FILE`.

use super::document::{Opened, Source};
use super::{document, outcome};
use crate::cli;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::path::PathBuf;
use tidemark_plan::cross_check;
use tidemark_plan::forecast::forecast;
use tidemark_plan::plan::Plan;
use tidemark_plan::redact;
use tidemark_plan::yaml::claims_bucket;

/// Runs a document from beginning to end.
pub(crate) fn run(arguments: &cli::RunOn, store: Option<PathBuf>, terminal: Terminal) -> Result<Exit, Stop> {
    let cli::RunOn { run, on } = arguments;
    match (document::read(&run.file, terminal)?, &on.on) {
        (Opened::Workload(source), None) if claims_bucket(&source.text) => {
            Err(Stop::usage("the document claims a bucket of Kubernetes: run it with --on kubernetes"))
        }
        (Opened::Workload(source), None) => execute(source, run, store, terminal),
        (Opened::Workload(source), Some(place)) => {
            super::driver_pods::run(source, arguments, place, store, terminal)
        }
        (Opened::Evaluation(source), None) => {
            super::check::rehearse_all(&source.evaluation).map_err(Stop::not_ready)?;
            super::evaluate::execute(source, run, outcome::Means::local(), store, terminal)
        }
        (Opened::Evaluation(source), Some(place)) => {
            super::driver_pods::evaluate(source, arguments, place, store, terminal)
        }
    }
}

/// Runs a document that was read already.
pub(crate) fn execute(
    source: Source,
    arguments: &cli::Run,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    let (plan, origin) = prepare(source, arguments)?;
    let means = outcome::Means::here(&plan)?;
    outcome::execute(&plan, origin, &arguments.running, means, store, terminal)
}

/// The plan that a document becomes with the command line's wishes, and where it came from.
pub(super) fn prepare(source: Source, arguments: &cli::Run) -> Result<(Plan, outcome::Origin), Stop> {
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
    Ok((plan, origin))
}
