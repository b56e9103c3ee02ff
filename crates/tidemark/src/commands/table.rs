//! The numbers of a run as tables for the terminal.

use crate::terminal::one_line;
use tidemark_judge::sweep::{Dimension, Row, Spread, Sweep, sweeps};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, Run, Stage, State, Work};
use tidemark_measure::units;
use tidemark_report::{percentile_of, shown_percentile};

/// The last three are left out where no row has them: the mean time to the first byte, and when the first and the last
/// worker were done, since the start of the work.
const HEADINGS: [&str; 15] = [
    "stage",
    "operation",
    "ok",
    "failed",
    "rate",
    "bandwidth",
    "mean",
    "p50",
    "p95",
    "p99",
    "p99.9",
    "max",
    "first byte",
    "first done",
    "last done",
];

/// Its column, which is left out as well where nothing moves bytes.
const BANDWIDTH: usize = 5;

/// What stands where something is not known.
const NONE: &str = "-";

/// What stands behind the axes of a sweep.
const MEASURED: [&str; 9] =
    ["operation", "repeats", "rate", "+-", "bandwidth", "mean", "p50", "p99", "p99.9"];

/// One row per operation of every stage that did something; of a sweep, one per operation of every point. Queries on tables have a
/// table of their own.
pub(crate) fn table(run: &Run) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    // A completed stage with a reason had nothing to do.
    let needless = |stage: &Stage| stage.state == State::Completed && !stage.reason.is_empty();
    for stage in run.stages.iter().filter(|stage| stage.cell.is_none() && !needless(stage)) {
        for work in &stage.works {
            let others = work.operations.iter().filter(|one| !tidemark_report::is_query(stage, work, one));
            rows.extend(others.map(|one| row(stage, work, one)));
        }
    }
    let mut tables: Vec<String> = Vec::new();
    if rows.len() > 1 {
        for column in [BANDWIDTH].into_iter().chain(HEADINGS.len() - 3..HEADINGS.len()).rev() {
            if rows[1..].iter().all(|row| row[column] == NONE) {
                rows.iter_mut().for_each(|row| drop(row.remove(column)));
            }
        }
        tables.push(aligned(&rows, 2));
    }
    tables.extend(sweeps(run).iter().map(points));
    let queries = (tidemark_report::query_rows(run), 1);
    let more: Vec<_> = std::iter::once(queries).chain(tidemark_report::in_short(run)).collect();
    tables
        .extend(more.iter().filter(|(rows, _)| !rows.is_empty()).map(|(rows, words)| aligned(rows, *words)));
    tables.join("\n\n")
}

fn row(stage: &Stage, work: &Work, operation: &Operation) -> Vec<String> {
    let (tally, seconds) = (&operation.tally, work.window_seconds());
    let place = match stage.works.len() {
        0 | 1 => stage.id.clone(),
        _ => format!("{}/{}", stage.id, work.name),
    };
    let mut cells = vec![
        place,
        operation.label.clone(),
        units::count(tally.ok),
        units::count(tally.failed()),
        units::rate(operation.throughput(seconds)),
        bandwidth(operation.bandwidth(seconds)),
    ];
    let time = |ns: Option<f64>| ns.map_or(NONE.to_owned(), |ns| units::duration_ns(ns as u64));
    cells.push(time(operation.mean_ns()));
    cells.extend([0.5, 0.95, 0.99, 0.999, 1.0].map(|fraction| percentile_of(operation, fraction)));
    let first_byte = &tally.first_byte;
    cells.push(time((!first_byte.is_empty()).then(|| first_byte.mean())));
    let done = work.workers_done_ns().map(|(first, last)| [first, last].map(units::moment_ns));
    cells.extend(done.unwrap_or_else(|| [NONE, NONE].map(str::to_owned)));
    cells
}

/// Bytes per second; nothing where none are moved, as on databases.
fn bandwidth(bytes: f64) -> String {
    if bytes > 0.0 { format!("{}/s", units::bytes(bytes as u64)) } else { NONE.to_owned() }
}

/// Mean and percentiles, or dashes where there are none.
fn latencies<const N: usize>(response: &Histogram, fractions: [f64; N]) -> Vec<String> {
    if response.is_empty() {
        return vec!["-".to_owned(); N + 1];
    }
    let percentiles = fractions.iter().map(|fraction| shown_percentile(response, *fraction));
    let all = std::iter::once(Some(response.mean() as u64)).chain(percentiles);
    all.map(|ns| ns.map_or(NONE.to_owned(), units::duration_ns)).collect()
}

/// A sweep: means over the repeats, and percentiles of all of them together.
fn points(sweep: &Sweep<'_>) -> String {
    let axes = sweep.dimensions();
    let axes: Vec<&Dimension<'_>> = axes.iter().filter(|axis| axis.values.len() > 1).collect();
    let several_engines = sweep.engines().len() > 1;
    let mut head = vec![sweep.name.to_owned()];
    head.extend(axes.iter().map(|axis| axis.name.replace('_', " ")));
    head.extend(several_engines.then(|| "engine".to_owned()));
    let words = head.len() + 1;
    head.extend(MEASURED.map(str::to_owned));
    let mut rows = vec![head];
    for point in &sweep.points {
        for one in point.rows() {
            let mut cells = vec![String::new()];
            cells.extend(
                axes.iter().map(|axis| point.at(axis.name).map_or("-".into(), |at| at.value.to_string())),
            );
            cells.extend(several_engines.then(|| point.engine.to_owned()));
            cells.extend(measured(&one));
            rows.push(cells);
        }
    }
    aligned(&rows, words)
}

fn measured(row: &Row<'_>) -> Vec<String> {
    let rate = Spread::of(&row.rates);
    let bytes = Spread::of(&row.bandwidths).map_or(0.0, |spread| spread.mean);
    let apart = rate.filter(|spread| spread.count > 1 && spread.mean > 0.0);
    let mut cells = vec![
        row.label.to_owned(),
        row.rates.len().to_string(),
        rate.map_or("-".into(), |spread| units::rate(spread.mean)),
        apart.map_or("-".into(), |spread| format!("{:.1} %", 100.0 * spread.half_range() / spread.mean)),
        bandwidth(bytes),
    ];
    cells.extend(latencies(&row.response, [0.5, 0.99, 0.999]));
    cells
}

/// Most characters of a cell: names come from files of other tools, which may be of any length.
const LONGEST_CELL: usize = 200;

fn shortened(cell: &str) -> String {
    match cell.char_indices().nth(LONGEST_CELL) {
        None => cell.to_owned(),
        Some(_) => cell.chars().take(LONGEST_CELL - 1).chain(['…']).collect(),
    }
}

/// Rows in columns; the first `words` columns are flush left, the others right.
pub(super) fn aligned(rows: &[Vec<String>], words: usize) -> String {
    let shown = |row: &Vec<String>| row.iter().map(|cell| shortened(&one_line(cell))).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(shown).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column < words {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::record::{Cell, WorkerCount};

    fn stage(size: &str, repeat: u32, ok: u64) -> Stage {
        let mut read = Operation {
            label: "read".into(),
            class: tidemark_measure::kind::OperationClass::Read,
            ..Operation::default()
        };
        (read.tally.ok, read.tally.bytes) = (ok, ok * 4096);
        read.tally.response.record_many(1_000_000, ok);
        let work = Work { window_end_ns: 10_000_000_000, operations: vec![read], ..Work::default() };
        let cell = Cell {
            sweep: "rand".into(),
            axes: vec![tidemark_measure::axis::Axis::of_words("block_size", size)],
            repeat,
            ..Cell::default()
        };
        Stage { id: format!("s{repeat}"), works: vec![work], cell: Some(cell), ..Stage::default() }
    }

    #[test]
    fn the_first_byte_and_the_ends_of_workers_are_told_where_they_are_known() {
        let mut run = Run { stages: vec![Stage { cell: None, ..stage("4 KiB", 1, 900) }], ..Run::default() };
        assert!(table(&run).lines().next().unwrap().ends_with("max"), "{}", table(&run));
        let work = &mut run.stages[0].works[0];
        work.operations[0].tally.first_byte.record_many(500_000, 900);
        let done =
            |worker, last_done_ns| WorkerCount { worker, last_done_ns, ok: 450, ..WorkerCount::default() };
        work.workers_counts = vec![done(0, 9_871_000_000), done(1, 10_002_000_000)];
        let text = table(&run);
        let [head, row] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(head.ends_with("first byte  first done  last done"), "{text}");
        let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells[cells.len() - 3..], ["500 µs", "9.871 s", "10.002 s"], "{text}");
    }

    #[test]
    fn a_sweep_has_a_row_for_each_point() {
        let mut run = Run { stages: vec![stage("4 KiB", 1, 900), stage("64 KiB", 1, 500)], ..Run::default() };
        run.stages.extend([stage("4 KiB", 2, 1_100), stage("64 KiB", 2, 500)]);
        let text = table(&run);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert_eq!(rows[0][..3], ["rand", "block size", "operation"]);
        assert_eq!(rows[1][..6], ["4 KiB", "read", "2", "100 op/s", "10.0 %", "410 kB/s"]);
        run.stages[0].cell = None;
        assert!(table(&run).contains("\n\nrand"), "other stages keep their own table");
        assert_eq!(table(&Run::default()), "");
    }
}
