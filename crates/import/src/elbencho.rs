//! elbencho's results: the CSV of `--csvfile`, a row for each phase, and the JSON of `--jsonfile`, a line for each.
//!
//! Phases of one command are one run, a stage each. What elbencho calls "last done" is read: all that was done until the
//! slowest thread ended, divided by that time. "First done" ends with the fastest one.

mod phase;
#[cfg(test)]
mod tests;

use crate::Options;
use crate::draft::{self, note};
use crate::source::Source;
use phase::{Latency, Numbers, Phase};
use tidemark_measure::kind::WorkKind;
use tidemark_measure::record::{Note, Operation, Reported, Run, Work};
use tidemark_measure::tally::Tally;

/// Shares whose percentiles are read from a histogram.
const SHARES: [f64; 8] = [0.50, 0.60, 0.80, 0.90, 0.95, 0.99, 0.999, 0.9999];

/// Reads all runs of a file.
pub(crate) fn read(source: &Source, options: &Options) -> Result<Vec<Run>, String> {
    let (phases, format) = match source.text.trim_start().starts_with('{') {
        true => (phase::of_json(&source.text)?, "elbencho JSON"),
        false => (phase::of_csv(&source.text)?, "elbencho CSV"),
    };
    let mut commands: Vec<Vec<Phase>> = Vec::new();
    for phase in phases {
        match commands.last_mut().filter(|command| goes_on(command, &phase)) {
            Some(command) => command.push(phase),
            None => commands.push(vec![phase]),
        }
    }
    if commands.is_empty() {
        return Err("contains no phase".into());
    }
    let several = commands.len() > 1;
    let runs = commands.iter().enumerate();
    Ok(runs
        .map(|(index, phases)| run(source, options, phases, format, several.then_some(index + 1)))
        .collect())
}

/// Whether a phase is the next one of a command: set up alike, and none of its kind was there before.
fn goes_on(command: &[Phase], next: &Phase) -> bool {
    command
        .iter()
        .all(|phase| phase.setup == next.setup && phase.label == next.label && phase.name != next.name)
}

fn run(source: &Source, options: &Options, phases: &[Phase], format: &str, number: Option<usize>) -> Run {
    let first = phases.first();
    let text = |part: fn(&Phase) -> &String| first.map(part).map(String::as_str).unwrap_or_default();
    let file = || match number {
        Some(number) => format!("{} {number}", draft::name(source, options)),
        None => draft::name(source, options),
    };
    let name = match text(|phase| &phase.label) {
        label if !label.is_empty() && options.name.is_none() => label.to_owned(),
        _ => file(),
    };
    let format = match text(|phase| &phase.version) {
        "" => format.to_owned(),
        version => format!("{format} ({version})"),
    };
    let mut run = draft::run(&source.path, name, &format);
    run.provenance.command = draft::command(text(|phase| &phase.command));
    // What it was set up with may have parts of a command line.
    let setup: String = text(|phase| &phase.setup).lines().map(|line| draft::command(line) + "\n").collect();
    run.provenance.document = tidemark_plan::redact::redact(&setup);
    let began = phases.iter().filter_map(|phase| phase.started_unix_ns).min();
    run.started_unix_ns = began.unwrap_or(source.modified_unix_ns);
    let mut next = 0u64;
    for (index, phase) in phases.iter().enumerate() {
        // Of an older version all phases of a command have its date.
        let start = phase.started_unix_ns.map_or(0, |at| at.saturating_sub(run.started_unix_ns)).max(next);
        next = start.saturating_add(phase.elapsed_ns);
        run.stages.push(draft::stage(index + 1, &phase.name.to_lowercase(), start, next, vec![work(phase)]));
    }
    draft::close(&mut run);
    run.notes = remarks(phases);
    run
}

fn work(phase: &Phase) -> Work {
    let (kind, purpose) = meaning(&phase.name);
    let mut operations = Vec::new();
    operations.extend(operation(&kind, &phase.all, phase));
    if let Some(reads) = &phase.reads {
        operations.extend(operation("read", reads, phase));
    }
    let all: u64 = operations.iter().map(|operation| operation.tally.ok).fold(0, u64::saturating_add);
    for operation in &mut operations {
        operation.weight = 100.0 * operation.tally.ok as f64 / all.max(1) as f64;
    }
    let workers = phase.hosts.saturating_mul(phase.threads);
    let mut work = draft::work(&phase.name.to_lowercase(), workers, phase.elapsed_ns, operations);
    work.kind = purpose;
    work.depth = phase.depth.max(1);
    work
}

/// Tidemark's words for a phase: the type of its operations, and what it is there for.
fn meaning(phase: &str) -> (String, WorkKind) {
    match phase.to_ascii_uppercase().as_str() {
        "RWMIX" | "WRITE" => ("write".into(), WorkKind::Normal),
        "RMFILES" | "RMOBJECTS" => ("delete".into(), WorkKind::Normal),
        "STAT" | "HEADOBJ" => ("head".into(), WorkKind::Normal),
        "MKDIRS" | "MKBUCKETS" => ("init".into(), WorkKind::Init),
        "RMDIRS" | "RMBUCKETS" => ("dispose".into(), WorkKind::Dispose),
        "SYNC" | "DROPCACHE" | "DROPCACHES" => ("sync".into(), WorkKind::Delay),
        other => (other.to_lowercase(), WorkKind::Normal),
    }
}

/// The operations of a phase: blocks where it moved any, else whole files, objects or directories.
fn operation(kind: &str, numbers: &Numbers, phase: &Phase) -> Option<Operation> {
    let in_time = |rate: f64| (rate * phase.elapsed_ns as f64 / 1e9).round() as u64;
    let (rate, ok, latency) = match (numbers.iops, numbers.entries_per_s) {
        (Some(iops), _) => (iops, blocks(numbers, phase).unwrap_or_else(|| in_time(iops)), &numbers.io),
        (None, Some(entries)) => {
            (entries, numbers.entries.unwrap_or_else(|| in_time(entries)), &numbers.entry)
        }
        (None, None) => return None,
    };
    let said = Reported {
        throughput: Some(rate),
        bandwidth: numbers.bytes_per_s,
        mean_ns: latency.mean_us.map(|us| us * 1e3),
        percentiles: percentiles(latency),
    };
    let tally = Tally { ok, bytes: numbers.bytes.unwrap_or(0), ..Tally::default() };
    Some(draft::operation(kind, tally, Some(said)))
}

/// How many blocks the bytes of a phase come to, if that agrees with its operations per second and its time, which are
/// rounded.
fn blocks(numbers: &Numbers, phase: &Phase) -> Option<u64> {
    let (iops, block) = (numbers.iops?, phase.block_bytes.filter(|bytes| *bytes > 0)?);
    let blocks = numbers.bytes? / block;
    let (seconds, millisecond) = (phase.elapsed_ns as f64 / 1e9, 1e-3);
    (blocks.abs_diff((iops * seconds).round() as u64) as f64 <= seconds + iops * millisecond + 1.0)
        .then_some(blocks)
}

/// Upper edges of the classes that the shares lie in, and the largest.
fn percentiles(latency: &Latency) -> Vec<(f64, f64)> {
    let all: u64 = latency.classes.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    let at = |share: f64| {
        let (needed, mut sum) = (((all as f64 * share).ceil() as u64).max(1), 0u64);
        let class = latency.classes.iter().find(|(_, count)| {
            sum = sum.saturating_add(*count);
            sum >= needed
        });
        class.map(|(edge_us, _)| (share, edge_us.min(latency.max_us.unwrap_or(f64::MAX)) * 1e3))
    };
    let mut points: Vec<(f64, f64)> = SHARES.into_iter().filter_map(at).collect();
    points.extend(latency.max_us.map(|us| (1.0, us * 1e3)));
    points
}

fn remarks(phases: &[Phase]) -> Vec<Note> {
    let mut notes = vec![note(
        "elbencho-last-done",
        "Numbers are elbencho's `last done`: until the slowest thread ended. Counts of blocks are its bytes divided by the block size, or its operations per second times its time; an error ends elbencho, so there are no failures.",
    )];
    let numbers = || phases.iter().flat_map(|phase| [Some(&phase.all), phase.reads.as_ref()]).flatten();
    let has_classes = |numbers: &Numbers| !numbers.io.classes.is_empty() || !numbers.entry.classes.is_empty();
    notes.push(match numbers().any(has_classes) {
        true => note("elbencho-percentiles", "Percentiles are upper edges of elbencho's classes, which are up to 19 % wide."),
        false => note(
            "elbencho-percentiles",
            "There are no percentiles in this file, only means and largest values: use `--lathisto` with `--jsonfile` to keep them.",
        ),
    });
    let threads: Vec<String> = phases
        .iter()
        .filter_map(|phase| Some(format!("{} {:.0} %", phase.name, phase.cpu_percent?)))
        .collect();
    if !threads.is_empty() {
        let text = format!("CPU use of the generators, as elbencho reports it: {}.", threads.join(", "));
        notes.push(note("elbencho-cpu", text));
    }
    notes
}
