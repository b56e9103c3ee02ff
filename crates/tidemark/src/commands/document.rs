//! Reads a document from a file or standard input, and shows its errors.

use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use std::io::Read;
use std::path::Path;
use tidemark_kubernetes::BUCKET_VARIABLES;
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::document::{self, Document, Read as Workload};
use tidemark_plan::evaluation;
use tidemark_plan::yaml::{Environment, claims_bucket};
use tidemark_pods::Bucket;

/// The largest document that is read, bytes: what has more was not written as one.
const MOST_BYTES: u64 = 64 << 20;

/// What stands for what a claim of a bucket will say, which is asked for when the drivers are.
fn stand_in(name: &str) -> Option<String> {
    BUCKET_VARIABLES.contains(&name).then(|| match name {
        "BUCKET_HOST" => "127.0.0.1".to_owned(),
        "BUCKET_PORT" => "1".to_owned(),
        _ => "claimed-bucket".to_owned(),
    })
}

/// A workload and its text.
#[derive(Clone)]
pub(crate) struct Source {
    /// Its path, or `standard input`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// Its content.
    pub(crate) document: Workload,
}

impl Source {
    /// The same, on the bucket that was claimed for it.
    pub(crate) fn in_bucket(self, bucket: &Bucket, terminal: Terminal) -> Result<Self, Stop> {
        let claimed = |name: &str| {
            let found = bucket.variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| value.reveal().to_owned())
        };
        let registry = tidemark_engines::registry();
        let process = Environment::process(&registry);
        let variable = |name: &str| claimed(name).or_else(|| (process.variable)(name));
        match document::read(&self.text, &Environment { variable: &variable, ..process }) {
            Ok(document) => Ok(Self { document, ..self }),
            Err(diagnostics) => Err(refused(&self.path, &self.text, &diagnostics, NOT_RUN, terminal)),
        }
    }
}

/// An evaluation and its text.
pub(crate) struct Evaluation {
    /// Its path, or `standard input`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// Its content.
    pub(crate) evaluation: evaluation::Evaluation,
}

/// The kind of a document.
pub(crate) enum Opened {
    /// One load.
    Workload(Source),
    /// Several arms under several loads.
    Evaluation(Evaluation),
}

/// The text of `file` (`-`: standard input), and its path for messages.
pub(crate) fn text_of(file: &Path) -> Result<(String, String), Stop> {
    let (path, bytes) = match file.to_str() {
        Some("-") => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes);
            ("standard input".to_owned(), read.map(|_| bytes))
        }
        _ => (file.display().to_string(), beginning(file)),
    };
    let bytes = bytes.map_err(|error| Stop::usage(format!("cannot read {path}: {error}")))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Stop::usage(format!("{path} is no document: it has more than {} MiB", MOST_BYTES >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Stop::usage(format!("{path} is not UTF-8 text: byte {at} is invalid"))
    })?;
    Ok((path, text))
}

/// As much of a file as shows whether it is too large.
fn beginning(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads and validates `file` (`-`: standard input). Warnings are shown, errors end the command.
pub(crate) fn read(file: &Path, terminal: Terminal) -> Result<Opened, Stop> {
    let (path, text) = text_of(file)?;
    let directory = file.parent().unwrap_or(Path::new(""));
    let registry = tidemark_engines::registry();
    let process = Environment::process(&registry);
    let claims = claims_bucket(&text);
    let variable = |name: &str| (process.variable)(name).or_else(|| stand_in(name).filter(|_| claims));
    match document::open(&text, directory, &Environment { variable: &variable, ..process }) {
        Ok(Document::Workload(document)) => {
            terminal.diagnose(&path, &text, &document.warnings);
            Ok(Opened::Workload(Source { path, text, document }))
        }
        Ok(Document::Evaluation(..)) if claims => Err(Stop::usage(NO_BUCKET)),
        Ok(Document::Evaluation(evaluation, warnings)) => {
            terminal.diagnose(&path, &text, &warnings);
            Ok(Opened::Evaluation(Evaluation { path, text, evaluation: *evaluation }))
        }
        Err(diagnostics) => Err(refused(&path, &text, &diagnostics, NOT_RUN, terminal)),
    }
}

/// Evaluations claim no bucket: their loads are read anew for each run, with the variables of the arm.
pub(super) const NO_BUCKET: &str =
    "an evaluation claims no bucket: remove `bucket` of `drivers`, or run the load by itself";

/// Validates the text of a workload. Warnings are shown, errors end the command.
pub(crate) fn parse(path: String, text: String, terminal: Terminal) -> Result<Source, Stop> {
    let registry = tidemark_engines::registry();
    match document::read(&text, &Environment::process(&registry)) {
        Ok(document) => {
            terminal.diagnose(&path, &text, &document.warnings);
            Ok(Source { path, text, document })
        }
        Err(diagnostics) => Err(refused(&path, &text, &diagnostics, NOT_RUN, terminal)),
    }
}

/// What has become of a workload or an evaluation with errors.
const NOT_RUN: &str = "nothing has run";

/// Shows a document's errors and warnings, and says what has become of it.
pub(crate) fn refused(
    path: &str,
    text: &str,
    diagnostics: &[Diagnostic],
    outcome: &str,
    terminal: Terminal,
) -> Stop {
    terminal.diagnose(path, text, diagnostics);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
    let message = match errors {
        1 => format!("{path}: 1 error; {outcome}"),
        errors => format!("{path}: {errors} errors; {outcome}"),
    };
    Stop { exit: Exit::Usage, message }
}
