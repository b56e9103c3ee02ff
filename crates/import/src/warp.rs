//! warp's results: its aggregated JSON (`warp analyze --json`, `*.json.zst`), its log of requests (`--full`,
//! `*.csv.zst`) and its table of segments (`--analyze.out`).
//!
//! Each gives phases, one for each type of operation; those that went on at the same time are one work.

mod aggregate;
mod requests;
mod segments;

use crate::Options;
use crate::draft::{self, Column, note};
use crate::sheet::{Rows, find};
use crate::source::{Source, begin_of_json};
use tidemark_measure::fault::Fault;
use tidemark_measure::json::weigh;
use tidemark_measure::kind::WorkKind;
use tidemark_measure::record::{Example, Note, Operation, Run, Work};

/// Failures quoted word for word in one phase, at most.
const EXAMPLES_MOST: usize = 10;

/// What warp did with one type of operation.
#[derive(Debug)]
struct Phase {
    operation: Operation,
    workers: u64,
    /// Nanoseconds since 1970 UTC.
    started_ns: u64,
    ended_ns: u64,
    seconds: Column,
    examples: Vec<Example>,
}

/// What a file holds.
#[derive(Debug, Default)]
struct Found {
    phases: Vec<Phase>,
    /// warp's command line, or empty.
    command: String,
    version: String,
    notes: Vec<Note>,
}

/// Reads any of warp's results.
pub(crate) fn read(source: &Source, options: &Options) -> Result<Run, String> {
    let text = source.text.as_str();
    // A script that keeps what warp prints keeps its messages, too.
    let (found, format) = if let Some(begin) = begin_of_json(text) {
        weigh(&text[begin..])?;
        (aggregate::read(&text[begin..])?, "warp JSON")
    } else {
        let header = Rows::new(text, '\t').next().ok_or("is empty")??;
        match find(&header, "duration_ns") {
            Some(_) => (requests::read(text)?, "warp request log"),
            None => (segments::read(text)?, "warp analysis"),
        }
    };
    if found.phases.is_empty() {
        return Err("contains no operation".into());
    }
    let format =
        if found.version.is_empty() { format.into() } else { format!("{format} ({})", found.version) };
    let mut run = draft::run(&source.path, draft::name(source, options), &format);
    run.provenance.command = draft::command(&found.command);
    run.notes = found.notes;
    let verb = verb(&found.command).or_else(|| verb(&source.stem().replace('-', " "))).unwrap_or_default();
    let began = found.phases.iter().map(|phase| phase.started_ns).min().unwrap_or(0);
    run.started_unix_ns = if began == 0 { source.modified_unix_ns } else { began };
    for group in together(found.phases) {
        let number = run.stages.len() + 1;
        let names: Vec<&str> = group.iter().map(|phase| phase.operation.kind.as_str()).collect();
        let name = names.join("-");
        let start = group.iter().map(|phase| phase.started_ns).min().unwrap_or(0);
        let end = group.iter().map(|phase| phase.ended_ns).max().unwrap_or(start);
        let mut work = work(group, &name, start, end);
        if work.operations.len() == 1 && name == "write" && prepares(&verb) {
            work.kind = WorkKind::Prepare;
        }
        run.stages.push(draft::stage(number, &name, start - began, end - began, vec![work]));
    }
    // A load that only wrote measured that.
    if let [only] = run.stages.as_mut_slice() {
        only.works.iter_mut().for_each(|work| work.kind = WorkKind::Normal);
    }
    draft::close(&mut run);
    if run.stages.iter().flat_map(|stage| &stage.works).any(|work| !work.examples.is_empty()) {
        run.notes.push(note(
            "warp-failures",
            "warp keeps failures as text: Tidemark derives their classes from the words and shows unclear ones as failures of the server.",
        ));
    }
    Ok(run)
}

/// The benchmark in a command line: `get` of `warp get --host=...`.
fn verb(command: &str) -> Option<String> {
    let mut words = command.split_whitespace().skip_while(|word| !word.ends_with("warp"));
    words.nth(1).map(str::to_ascii_lowercase)
}

/// Whether a benchmark writes objects before it measures something else.
fn prepares(verb: &str) -> bool {
    matches!(
        verb,
        "get" | "stat" | "delete" | "list" | "mixed" | "versioned" | "retention" | "multipart" | "zip"
    )
}

/// Phases that went on at the same time for more than half of the shorter one, in the order of their starts.
fn together(mut phases: Vec<Phase>) -> Vec<Vec<Phase>> {
    phases.sort_by_key(|phase| phase.started_ns);
    let mut groups: Vec<Vec<Phase>> = Vec::new();
    for phase in phases {
        let overlaps = |other: &Phase| {
            let both =
                phase.ended_ns.min(other.ended_ns).saturating_sub(phase.started_ns.max(other.started_ns));
            let length = |phase: &Phase| phase.ended_ns.saturating_sub(phase.started_ns);
            both > length(&phase).min(length(other)) / 2
        };
        match groups.last_mut().filter(|group| group.iter().any(overlaps)) {
            Some(group) => group.push(phase),
            None => groups.push(vec![phase]),
        }
    }
    groups
}

fn work(phases: Vec<Phase>, name: &str, start_ns: u64, end_ns: u64) -> Work {
    let workers = phases.iter().map(|phase| phase.workers).max().unwrap_or(0);
    let all: u64 = phases.iter().map(|phase| phase.operation.tally.total()).fold(0, u64::saturating_add);
    let (mut operations, mut columns, mut examples) = (Vec::new(), Vec::new(), Vec::new());
    for phase in phases {
        let later = u32::try_from((phase.started_ns - start_ns) / 1_000_000_000).unwrap_or(u32::MAX);
        let shift = |(index, numbers): (u32, _)| (index.saturating_add(later), numbers);
        columns.push(phase.seconds.into_iter().map(shift).collect());
        examples.extend(phase.examples);
        let mut operation = phase.operation;
        operation.weight = 100.0 * operation.tally.total() as f64 / all.max(1) as f64;
        operations.push(operation);
    }
    let mut work = draft::work(name, workers, end_ns.saturating_sub(start_ns), operations);
    work.series = draft::series(&columns);
    work.examples = examples;
    work
}

/// Tidemark's word for warp's type of operation.
fn kind(warp: &str) -> String {
    match warp {
        "GET" => "read".into(),
        "PUT" => "write".into(),
        "STAT" => "head".into(),
        other => other.to_lowercase(),
    }
}

/// The class of a failure by its text.
fn class(text: &str) -> Fault {
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match () {
        () if says(&["slowdown", "slow down", "429", "reduce your request rate"]) => Fault::Throttled,
        () if says(&["refused"]) => Fault::Refused,
        () if says(&["timeout", "timed out", "deadline exceeded"]) => Fault::Timeout,
        () if says(&["reset by peer", "broken pipe", "eof"]) => Fault::Reset,
        () if says(&["no such host", "unreachable", "no route"]) => Fault::Unreachable,
        () if says(&["tls", "x509", "certificate"]) => Fault::Tls,
        () if says(&["access denied", "accessdenied", "signature", "forbidden"]) => Fault::Denied,
        () if says(&["not found", "nosuchkey", "does not exist", "nosuchbucket"]) => Fault::NotFound,
        () => draft::UNCLASSIFIED,
    }
}

#[cfg(test)]
mod tests;
