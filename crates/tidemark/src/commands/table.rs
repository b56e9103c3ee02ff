//! The numbers of a run as a table for the terminal.

use tidemark_measure::record::{Operation, Run, Stage, Work};
use tidemark_measure::units;

const HEADINGS: [&str; 11] =
    ["stage", "operation", "ok", "failed", "rate", "bandwidth", "mean", "p50", "p95", "p99", "max"];

/// One row per operation of every stage that did something.
pub(crate) fn table(run: &Run) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for stage in &run.stages {
        let works = stage.works.iter();
        rows.extend(works.flat_map(|work| work.operations.iter().map(|one| row(stage, work, one))));
    }
    if rows.len() == 1 {
        return String::new();
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let line = |row: &[String; 11]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(stage: &Stage, work: &Work, operation: &Operation) -> [String; 11] {
    let (tally, seconds) = (&operation.tally, work.window_seconds());
    let latency = |fraction| match tally.response.is_empty() {
        true => "-".into(),
        false => units::duration_ns(tally.response.quantile(fraction)),
    };
    let mean = match tally.response.is_empty() {
        true => "-".into(),
        false => units::duration_ns(tally.response.mean() as u64),
    };
    [
        stage.id.clone(),
        operation.label.clone(),
        units::count(tally.ok),
        units::count(tally.failed()),
        units::rate(operation.throughput(seconds)),
        format!("{}/s", units::bytes(operation.bandwidth(seconds) as u64)),
        mean,
        latency(0.5),
        latency(0.95),
        latency(0.99),
        latency(1.0),
    ]
}
