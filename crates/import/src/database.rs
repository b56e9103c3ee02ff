//! What the benchmarks of databases have in common: text with one or several runs, each a number of transactions in a time.

use crate::Options;
use crate::draft::{self, Column, spread};
use crate::source::Source;
use tidemark_measure::record::{Operation, Run, SecondOfOperation};

/// More runs than this are in no file.
pub(crate) const RUNS_MOST: usize = 10_000;

/// One run of a text.
pub(crate) struct Found {
    pub(crate) format: &'static str,
    pub(crate) clients: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) operations: Vec<Operation>,
    /// Of the first operation.
    pub(crate) seconds: Column,
    pub(crate) notes: Vec<(&'static str, String)>,
}

/// The records of what was found.
pub(crate) fn runs(source: &Source, options: &Options, found: Vec<Found>) -> Vec<Run> {
    let several = found.len() > 1;
    let runs = found.into_iter().enumerate();
    runs.map(|(index, mut found)| {
        let name = match several {
            true => format!("{} {}", draft::name(source, options), index + 1),
            false => draft::name(source, options),
        };
        let mut run = draft::run(&source.path, name, found.format);
        run.started_unix_ns = source.modified_unix_ns.saturating_sub(found.elapsed_ns);
        let all: u64 = found.operations.iter().map(|one| one.tally.total()).fold(0, u64::saturating_add);
        for operation in &mut found.operations {
            operation.weight = 100.0 * operation.tally.total() as f64 / all.max(1) as f64;
        }
        let mut columns = vec![Column::new(); found.operations.len()];
        if let Some(first) = columns.first_mut() {
            *first = found.seconds;
        }
        let mut work = draft::work("main", found.clients, found.elapsed_ns, found.operations);
        work.series = draft::series(&columns);
        run.stages.push(draft::stage(1, "main", 0, found.elapsed_ns, vec![work]));
        draft::close(&mut run);
        run.notes = found.notes.into_iter().map(|(topic, text)| draft::note(topic, text)).collect();
        run
    })
    .collect()
}

/// A progress line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// When it came, seconds since the beginning.
    pub(crate) at_s: f64,
    /// Transactions per second since the line before.
    pub(crate) rate: f64,
    /// Their mean response time, nanoseconds, or 0.
    pub(crate) mean_ns: f64,
}

/// Progress lines as seconds.
pub(crate) fn column(steps: impl Iterator<Item = Step>) -> Column {
    let (mut column, mut before) = (Column::new(), 0.0f64);
    for Step { at_s, rate, mean_ns } in steps {
        let ok = (rate * (at_s - before).max(0.0)).round() as u64;
        let numbers = SecondOfOperation { ok, mean_ns: mean_ns as u64, ..SecondOfOperation::default() };
        spread(&mut column, before.round() as u32, at_s.round() as u32, numbers);
        before = at_s.max(before);
    }
    column
}

/// The text behind these words in a line that begins with them.
pub(crate) fn behind<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(words)).map(str::trim)
}

/// The first word.
pub(crate) fn word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}
