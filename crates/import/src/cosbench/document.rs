//! Reads stages and works from `workload-config.xml`: names, workers and times. Everything else is left alone, so that
//! documents with any storage are read.

use crate::source::Source;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::path::Path;

/// Names of the files in which an archive keeps its document.
const FILES: [&str; 2] = ["workload-config.xml", "workload-config.yaml"];

/// A longer document is nobody's, bytes.
const LONGEST: usize = 8 << 20;

/// Default of the failures per million that a work allows (`afr`).
const ALLOWED: u32 = 200_000;

/// A workload.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) description: String,
    stages: Vec<Stage>,
}

/// A workstage.
#[derive(Debug, Default)]
pub(super) struct Stage {
    name: String,
    pub(super) works: Vec<Work>,
}

/// A work.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) name: String,
    pub(super) workers: u64,
    pub(super) ramp_up_s: u64,
    pub(super) run_s: u64,
    /// Failures that it allows, per million.
    pub(super) allowed: u32,
    pub(super) operations: Vec<Operation>,
}

/// An operation.
#[derive(Debug, Default)]
pub(super) struct Operation {
    pub(super) kind: String,
    pub(super) weight: f64,
    pub(super) config: String,
}

impl Document {
    /// Reads the document in a workload's directory, and its text. `None`: there is none.
    ///
    /// # Errors
    /// One that is there and is not read: a clause that begins with its name.
    pub(super) fn beside(directory: &Path) -> Result<Option<(Self, String)>, String> {
        let is_there = |file: &&&str| directory.join(file).symlink_metadata().is_ok();
        let Some(file) = FILES.iter().find(is_there) else { return Ok(None) };
        let source = Source::found(&directory.join(file)).map_err(|why| format!("`{file}` {why}"))?;
        if source.text.len() > LONGEST {
            return Err(format!("`{file}` is larger than {} MiB", LONGEST >> 20));
        }
        Ok(Some((Self::read(&source.text), source.text)))
    }

    /// Reads as much of a document as is well-formed.
    fn read(text: &str) -> Self {
        let (mut document, mut reader) = (Self::default(), Reader::from_str(text));
        loop {
            match reader.read_event() {
                Ok(Event::Start(tag) | Event::Empty(tag)) => document.take(&tag),
                Ok(Event::Eof) | Err(_) => break,
                Ok(_) => {}
            }
        }
        document.stages.iter_mut().flat_map(|stage| &mut stage.works).for_each(Work::settle);
        document
    }

    fn take(&mut self, tag: &BytesStart<'_>) {
        let number = |name: &str| attribute(tag, name).and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let text = |name: &str| attribute(tag, name).unwrap_or_default();
        let stage = self.stages.last_mut();
        match tag.name().as_ref() {
            name if is(name, "workload") => self.description = text("description"),
            name if is(name, "workstage") => {
                self.stages.push(Stage { name: text("name"), works: Vec::new() });
            }
            name if is(name, "work") => {
                let Some(stage) = stage else { return };
                let kind = attribute(tag, "type").unwrap_or_else(|| "normal".into());
                let (weight, config) = (100.0, text("config"));
                let special = Operation { kind: kind.clone(), weight, config };
                stage.works.push(Work {
                    name: attribute(tag, "name").unwrap_or_else(|| kind.clone()),
                    workers: number("workers"),
                    ramp_up_s: number("rampup"),
                    run_s: number("runtime"),
                    allowed: attribute(tag, "afr")
                        .and_then(|text| text.trim().parse().ok())
                        .unwrap_or(if kind == "normal" { ALLOWED } else { 0 }),
                    operations: if kind == "normal" { Vec::new() } else { vec![special] },
                });
            }
            name if is(name, "operation") => {
                let Some(work) = stage.and_then(|stage| stage.works.last_mut()) else { return };
                let weight =
                    attribute(tag, "ratio").and_then(|ratio| ratio.trim().parse().ok()).unwrap_or(100.0);
                work.operations.push(Operation { kind: text("type"), weight, config: text("config") });
            }
            _ => {}
        }
    }

    /// The stage with an id of the archive: `s3-main` is the third one, called `main`.
    pub(super) fn stage(&self, id: &str) -> Option<&Stage> {
        let (number, name) = id.strip_prefix('s')?.split_once('-')?;
        let stage = self.stages.get(number.parse::<usize>().ok()?.checked_sub(1)?)?;
        (stage.name == name).then_some(stage)
    }
}

impl Stage {
    /// All works as one.
    pub(super) fn together(&self) -> Work {
        let names: Vec<&str> = self.works.iter().map(|work| work.name.as_str()).collect();
        let longest = |part: fn(&Work) -> u64| self.works.iter().map(part).max().unwrap_or(0);
        Work {
            name: names.join(" + "),
            workers: self.works.iter().fold(0, |sum, work| sum.saturating_add(work.workers)),
            ramp_up_s: longest(|work| work.ramp_up_s),
            run_s: longest(|work| work.run_s),
            allowed: self.works.iter().map(|work| work.allowed).max().unwrap_or(0),
            operations: Vec::new(),
        }
    }
}

impl Work {
    /// Of a work with a type of its own COSBench uses neither the operations nor the run time, and what has no share of
    /// a mix is left out.
    fn settle(&mut self) {
        match self.operations.first().map(|operation| operation.kind.as_str()) {
            Some("init" | "prepare" | "mprepare" | "cleanup" | "dispose" | "delay") => {
                self.operations.truncate(1);
                (self.run_s, self.ramp_up_s) = (0, 0);
            }
            _ => self.operations.retain(|operation| operation.weight > 0.0),
        }
    }
}

fn is(name: impl AsRef<str>, expected: &str) -> bool {
    name.as_ref() == expected
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let found = attributes.with_checks(false).flatten().find(|attribute| is(attribute.key, name))?;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_works_and_operations_are_found() {
        let document = Document::read(
            r#"<?xml version="1.0"?><workload name="w" description="a &amp; b"><storage type="new" config="x"/>
            <workflow><workstage name="init"><work type="init" workers="2" runtime="9" config="containers=r(1,2)"/></workstage>
            <workstage name="main"><work name="a" workers="8" rampup="10" runtime="30"><operation type="read" ratio="80"/>
            <operation type="write" ratio="20" config="c"/><operation type="delete" ratio="0"/></work>
            <work name="b" workers="4" runtime="60"><operation type="list"/></work></workstage></workflow>"#,
        );
        assert_eq!(document.description, "a & b");
        let init = document.stage("s1-init").unwrap();
        assert_eq!((init.works[0].name.as_str(), init.works[0].workers, init.works[0].run_s), ("init", 2, 0));
        let main = document.stage("s2-main").unwrap();
        let kinds: Vec<_> = main
            .works
            .iter()
            .map(|work| work.operations.iter().map(|o| o.kind.as_str()).collect::<Vec<_>>())
            .collect();
        assert_eq!(kinds, [vec!["read", "write"], vec!["list"]]);
        assert_eq!((main.works[0].ramp_up_s, main.works[0].run_s, main.together().workers), (10, 30, 12));
        assert!(
            document.stage("s2-init").is_none()
                && document.stage("s9-x").is_none()
                && document.stage("main").is_none()
        );
    }

    #[test]
    fn what_is_broken_is_read_as_far_as_it_goes() {
        assert_eq!(Document::read("<workload><workstage name='a'><work workers='1'><opera").stages.len(), 1);
        assert!(Document::read("name: yaml").stages.is_empty());
    }
}
