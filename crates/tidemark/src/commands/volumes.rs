//! `tidemark volume-probe`: what the pods of a load on volumes run.

use crate::cli::{ProbeDoing, VolumeProbe};
use crate::exit::{Exit, Stop};
use tidemark_claims::probe;

/// Writes or reads, and leaves a report where Kubernetes shows it.
pub(crate) fn probe(arguments: &VolumeProbe) -> Result<Exit, Stop> {
    let VolumeProbe { doing, directory, bytes, seed } = arguments;
    let done = match doing {
        ProbeDoing::Write => probe::write(directory, *bytes, *seed),
        ProbeDoing::Read => probe::read(directory, *bytes, *seed),
    };
    let report = done.map_err(|error| Stop { exit: Exit::Failed, message: error.to_string() })?;
    probe::say(&report).map_err(Stop::not_written)?;
    Ok(Exit::Done)
}
