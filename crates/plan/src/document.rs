//! Reads a document of any format; its content decides the format.

use crate::diagnostic::Diagnostic;
use crate::evaluation::{self, Evaluation};
use crate::plan::Plan;
use crate::registry::Changes;
use crate::yaml::{self, Environment};
use std::path::Path;

/// Documents larger than this are refused: workloads are a few kilobytes.
const LARGEST: usize = 8 << 20;

/// What Tidemark's own format is called.
pub const YAML: &str = "Tidemark YAML";

/// A document that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Its plan.
    pub plan: Plan,
    /// What may surprise its author; the document runs all the same.
    pub warnings: Vec<Diagnostic>,
    /// The name of its format, for people.
    pub format: &'static str,
}

/// A document of any kind.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one document at a time, and it is not moved about")]
pub enum Document {
    /// A workload: one run.
    Workload(Read),
    /// An evaluation: many runs; and what may surprise its author.
    Evaluation(Box<Evaluation>, Vec<Diagnostic>),
}

/// Reads a document of any kind; `environment` resolves all that it refers to outside itself, and
/// an evaluation's references are relative to `directory`, its own.
///
/// # Errors
/// All errors and warnings, in document order; at least one is an error.
pub fn open(
    text: &str,
    directory: &Path,
    environment: &Environment<'_>,
) -> Result<Document, Vec<Diagnostic>> {
    if text.len() > LARGEST || !evaluation::is_evaluation(text, environment.registry) {
        return read(text, environment).map(Document::Workload);
    }
    let (evaluation, warnings) = evaluation::read(text, directory, environment)?;
    Ok(Document::Evaluation(Box::new(evaluation), warnings))
}

/// Reads a workload; `environment` resolves all that it refers to outside itself.
///
/// # Errors
/// All errors and warnings, in document order; at least one is an error.
pub fn read(text: &str, environment: &Environment<'_>) -> Result<Read, Vec<Diagnostic>> {
    if text.len() > LARGEST {
        let message = format!("the document is {} bytes long", text.len());
        return Err(vec![Diagnostic::error(
            0..0,
            message,
            format!(
                "the limit is {LARGEST} bytes \
            read"
            ),
        )]);
    }
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        let help = "write a COSBench workload in XML or a Tidemark workload in YAML";
        return Err(vec![Diagnostic::error(0..0, "the document is empty", help)]);
    }
    if evaluation::is_evaluation(text, environment.registry) {
        let help =
            "`tidemark run` and `tidemark submit` carry out evaluations; give a document without `arms` here";
        return Err(vec![Diagnostic::error(0..0, "the document is an evaluation, not a workload", help)]);
    }
    let format = environment.registry.format_of(text);
    let (plan, warnings) = match &format {
        Some(format) => format.read(text, environment, Changes::default())?,
        None => yaml::read(text, environment)?,
    };
    Ok(Read { plan, warnings, format: format.map_or(YAML, |format| format.name()) })
}
