//! Reads a document of any format; its content decides the format.

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
    /// Its plan.
    pub plan: Plan,
    /// What may surprise its author; the document runs all the same.
    pub warnings: Vec<Diagnostic>,
    /// Its format.
    pub format: Format,
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

/// Reads a document of any kind in this process's environment; what an evaluation refers to is looked for in
/// `directory`, its own.
///
/// # Errors
/// All errors and warnings, in document order; at least one is an error.
pub fn open(text: &str, directory: &Path) -> Result<Document, Vec<Diagnostic>> {
    open_in(text, directory, &Environment::process())
}

/// Reads a document of any kind; `environment` resolves all that it refers to outside itself.
///
/// # Errors
/// As [`open`].
pub fn open_in(
    text: &str,
    directory: &Path,
    environment: &Environment<'_>,
) -> Result<Document, Vec<Diagnostic>> {
    if text.len() > LARGEST || !evaluation::is_evaluation(text) {
        return read_in(text, environment).map(Document::Workload);
    }
    let (evaluation, warnings) = evaluation::read(text, directory, environment)?;
    Ok(Document::Evaluation(Box::new(evaluation), warnings))
}

/// Reads a workload in this process's environment.
///
/// # Errors
/// All errors and warnings, in document order; at least one is an error.
pub fn read(text: &str) -> Result<Read, Vec<Diagnostic>> {
    read_in(text, &Environment::process())
}

/// Reads a workload; `environment` resolves all that it refers to outside itself.
///
/// # Errors
/// As [`read`].
pub fn read_in(text: &str, environment: &Environment<'_>) -> Result<Read, Vec<Diagnostic>> {
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
    if evaluation::is_evaluation(text) {
        let help = "use `tidemark evaluate`, or give a document without `arms`";
        return Err(vec![Diagnostic::error(0..0, "the document is an evaluation, not a workload", help)]);
    }
    let format = Format::of(text);
    let (plan, warnings) = match format {
        Format::CosbenchXml => cosbench::read_in(text, environment)?,
        Format::TidemarkYaml => yaml::read_in(text, environment)?,
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

    /// Reads a document in an environment that refuses and records every request.
    fn refused(text: &str, directory: &Path) -> (Result<Document, Vec<Diagnostic>>, Vec<String>) {
        let asked = std::cell::RefCell::new(Vec::new());
        let refuse = |what: &str, path: &Path| {
            asked.borrow_mut().push(format!("{what} {}", path.display()));
            std::io::Error::other("nothing is read here")
        };
        let environment = Environment {
            variable: &|name| {
                asked.borrow_mut().push(format!("variable {name}"));
                None
            },
            file: &|path| Err(refuse("file", path)),
            document: &|path| Err(refuse("document", path)),
            device_size: &|path| Err(refuse("device", path)),
        };
        let read = open_in(text, directory, &environment);
        (read, asked.into_inner())
    }

    #[test]
    fn nothing_is_touched_but_what_the_environment_gives() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).display().to_string();
        let hidden = "name: hidden-content\nstages: [{pause: 1s}]\n";
        for name in ["key", "load.yaml", "load.xml"] {
            std::fs::write(place.path().join(name), hidden).unwrap();
        }
        let load = "\nstages:\n- load: {pattern: randread, block_size: 4KiB, for: 60s}\n";
        let objects = "\nstages:\n- init: {containers: 1}\n";
        let s3 = format!(
            "target: {{kind: s3, endpoint: 'http://h', access_key: a, secret_key_file: {}}}",
            path("key")
        );
        let cases = [
            (format!("name: t\n{s3}{objects}"), vec![format!("file {}", path("key"))]),
            (
                format!("name: t\ntarget: {{kind: device, path: {}}}{load}", path("key")),
                vec![format!("device {}", path("key"))],
            ),
            (
                "name: t\narms: [{name: a}]\nloads: [{name: l, document: load.yaml}, {name: m, document: ./load.xml}]\n".into(),
                vec![format!("document {}", path("load.yaml")), format!("document {}", path("./load.xml"))],
            ),
            (
                format!("name: t\narms: [{{name: a, {s3}}}]\nloads: [{{name: l, document: {}}}]\n", path("key")),
                vec![format!("document {}", path("key"))],
            ),
        ];
        for (text, wanted) in cases {
            let (read, asked) = refused(&text, place.path());
            assert_eq!(asked, wanted, "{text}");
            let told = format!("{:?}", read.expect_err(&text));
            assert!(told.contains("nothing is read here") && !told.contains("hidden-content"), "{told}");
        }
        let variable = "target: {kind: s3, endpoint: '${PATH}', access_key: a, secret_key: b}";
        let (read, asked) = refused(&format!("name: t\n{variable}{objects}"), place.path());
        assert!(format!("{:?}", read.unwrap_err()).contains("the environment variable PATH is not set"));
        assert_eq!(asked, ["variable PATH"]);
        let xml = "<workload name=\"t\"><storage type=\"s3\" config=\"accesskey=${PATH};secretkey=b;endpoint=http://h\"/>\
                   <workflow><workstage name=\"a\"><work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>\
                   </workstage></workflow></workload>";
        let (read, asked) = refused(xml, place.path());
        assert!(
            read.is_err() && asked.iter().all(|asked| asked == "variable PATH") && !asked.is_empty(),
            "{asked:?}"
        );
    }

    #[test]
    fn examples_ask_for_nothing_that_they_do_not_name() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for directory in
            [root.join("../../examples"), root.join("src/evaluation/fixtures"), root.join("tests/fixtures")]
        {
            for entry in std::fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                for asked in refused(&text, &directory).1 {
                    let (_, name) = asked.split_once(' ').unwrap();
                    let name = name.strip_prefix(&format!("{}/", directory.display())).unwrap_or(name);
                    let told = format!("{} asks for {name}", path.display());
                    let lent = crate::evaluation::LAB_VARIABLES.iter().any(|(known, _)| *known == name);
                    assert!(text.contains(name) || (lent && text.contains("document:")), "{told}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        assert_eq!(read(" \n").unwrap_err()[0].message, "the document is empty");
        let large = format!("<workload name=\"{}\"/>", "x".repeat(LARGEST));
        assert!(read(&large).unwrap_err()[0].message.ends_with("bytes long"));
    }
}
