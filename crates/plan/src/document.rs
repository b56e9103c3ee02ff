//! A document of any format, told apart by its content.

use crate::diagnostic::Diagnostic;
use crate::evaluation::{self, Evaluation};
use crate::plan::Plan;
use crate::redact::is_xml;
use crate::yaml::Environment;
use crate::{cosbench, fiofile, yaml};
use std::path::Path;

/// Documents larger than this are refused: workloads are a few kilobytes.
const LARGEST: usize = 8 << 20;

/// A format of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// COSBench's XML, in any of its dialects.
    CosbenchXml,
    /// Tidemark's own YAML.
    TidemarkYaml,
    /// fio's job file.
    FioJob,
}

impl Format {
    /// The format of a text: XML begins with `<`, a fio job file with a `[section]`.
    pub fn of(text: &str) -> Self {
        match () {
            () if is_xml(text) => Format::CosbenchXml,
            () if fiofile::is_fio(text) => Format::FioJob,
            () => Format::TidemarkYaml,
        }
    }

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Format::CosbenchXml => "COSBench XML",
            Format::TidemarkYaml => "Tidemark YAML",
            Format::FioJob => "fio job file",
        }
    }
}

/// A document that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// What it says.
    pub plan: Plan,
    /// What may surprise its author; the document runs all the same.
    pub warnings: Vec<Diagnostic>,
    /// Its format.
    pub format: Format,
}

/// A document of any kind.
#[derive(Clone, Debug)]
pub enum Document {
    /// A workload: one run.
    Workload(Read),
    /// An evaluation: many runs; and what may surprise its author.
    Evaluation(Box<Evaluation>, Vec<Diagnostic>),
}

/// Reads a document of any kind in this process's environment; what an evaluation refers to is looked for in
/// `directory`, its own.
///
/// # Errors
/// All that is wrong with it, in the order of the text, warnings included; at least one is an error.
pub fn open(text: &str, directory: &Path) -> Result<Document, Vec<Diagnostic>> {
    if text.len() > LARGEST || !evaluation::is_evaluation(text) {
        return read(text).map(Document::Workload);
    }
    let (evaluation, warnings) = evaluation::read(text, directory, &Environment::process())?;
    Ok(Document::Evaluation(Box::new(evaluation), warnings))
}

/// Reads a workload.
///
/// # Errors
/// All that is wrong with it, in the order of the text, warnings included; at least one is an error.
pub fn read(text: &str) -> Result<Read, Vec<Diagnostic>> {
    if text.len() > LARGEST {
        let message = format!("the document is {} bytes long", text.len());
        return Err(vec![Diagnostic::error(
            0..0,
            message,
            format!(
                "{LARGEST} bytes are the most that is \
            read"
            ),
        )]);
    }
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        let help = "write a COSBench workload in XML or a Tidemark workload in YAML";
        return Err(vec![Diagnostic::error(0..0, "the document is empty", help)]);
    }
    if evaluation::is_evaluation(text) {
        let help = "run it as one, or give a document without `arms` here";
        return Err(vec![Diagnostic::error(0..0, "the document is an evaluation, not a workload", help)]);
    }
    let format = Format::of(text);
    let (plan, warnings) = match format {
        Format::CosbenchXml => cosbench::read(text)?,
        Format::TidemarkYaml => yaml::read(text)?,
        Format::FioJob => fiofile::read(text)?,
    };
    Ok(Read { plan, warnings, format })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_by_content() {
        for text in ["<workload/>", "\u{feff}<?xml version=\"1.0\"?>", " \r\n\t<!-- c --><workload/>"] {
            assert_eq!(Format::of(text), Format::CosbenchXml, "{text}");
        }
        assert_eq!(Format::of("name: a <b>"), Format::TidemarkYaml);
        assert_eq!(Format::of("# c\n\n ; d\n[job]\nrw=read"), Format::FioJob);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        assert_eq!(read(" \n").unwrap_err()[0].message, "the document is empty");
        let large = format!("<workload name=\"{}\"/>", "x".repeat(LARGEST));
        assert!(read(&large).unwrap_err()[0].message.ends_with("bytes long"));
    }
}
