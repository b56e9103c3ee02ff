//! An evaluation for machines: CSV with a row for every cell, and JSON with everything but the seconds of its runs.

use super::{Subject, tuning};
use crate::csv::text;
use crate::json::Distribution;
use csv::Terminator;
use serde::Serialize;
use tidemark_judge::evaluation::{Assessment, Cell, Comparison, Estimate, Metric, Totals, totals};
use tidemark_judge::judge;
use tidemark_measure::evaluation::{Evaluation, Member};
use tidemark_measure::record::{Run, State};
use tidemark_tune::Conclusion;

/// The version of the JSON form. Fields may be added within a schema; a change of meaning or a removal raises it.
const SCHEMA: u32 = 2;

/// Cells that say which cell it is.
const PLACE: [&str; 8] =
    ["evaluation_id", "evaluation_name", "load", "subject", "level", "arm", "repeats", "runs"];

/// Numbers with estimates, and the ends of their names.
const ESTIMATES: [&str; 6] =
    ["throughput_op_per_s", "bandwidth_bytes_per_s", "mean_ns", "p50_ns", "p95_ns", "p99_ns"];
const PARTS: [&str; 5] = ["", "_low", "_high", "_variation_ratio", "_values"];

/// Numbers that are compared, and the ends of their names.
const METRICS: [(Metric, &str); 3] =
    [(Metric::Throughput, "throughput"), (Metric::MeanLatency, "mean"), (Metric::TailLatency, "p99")];
const TESTS: [&str; 6] = ["_ratio", "_ratio_low", "_ratio_high", "_p", "_detectable", "_outcome"];

/// A row for every cell with its estimates and comparisons. Numbers are in base units, named in the headers; `_low` and
/// `_high` are the ends of 95 % confidence intervals; `level` and `_values` are lists with `;` between.
pub fn csv(subject: &Subject<'_>) -> String {
    let mut header: Vec<String> = PLACE.map(String::from).to_vec();
    header.extend(ESTIMATES.iter().flat_map(|name| PARTS.map(|part| format!("{name}{part}"))));
    header.extend(["operations", "failed", "within_service_level", "invalid"].map(String::from));
    header.extend(METRICS.iter().flat_map(|(_, name)| TESTS.map(|part| format!("{name}{part}"))));
    let rows = subject.assessment.cells.iter().map(|cell| cells(subject, cell));
    text([header].into_iter().chain(rows), Terminator::CRLF)
}

fn cells(subject: &Subject<'_>, cell: &Cell) -> Vec<String> {
    let evaluation = subject.evaluation;
    let level: Vec<String> = cell.level.iter().map(|axis| format!("{}={}", axis.name, axis.value)).collect();
    let runs: Vec<String> = cell.runs.iter().map(ToString::to_string).collect();
    let mut cells =
        vec![evaluation.id.to_string(), evaluation.name.clone(), cell.load.clone(), cell.subject.clone()];
    cells.extend([level.join(";"), cell.arm.clone(), cell.runs.len().to_string(), runs.join(";")]);
    let latencies = [&cell.mean_ns, &cell.p50_ns, &cell.p95_ns, &cell.p99_ns];
    let all =
        [Some(&cell.throughput), Some(&cell.bandwidth)].into_iter().chain(latencies.map(Option::as_ref));
    cells.extend(all.flat_map(estimate));
    cells.extend([cell.total.to_string(), cell.failed.to_string()]);
    cells.push(cell.meets.map(|meets| meets.to_string()).unwrap_or_default());
    cells.push(cell.invalid.to_string());
    for (metric, _) in METRICS {
        let own = |one: &&Comparison| {
            one.metric == metric
                && (&one.arm, &one.load, &one.subject, &one.level)
                    == (&cell.arm, &cell.load, &cell.subject, &cell.level)
        };
        cells.extend(tested(subject.assessment.comparisons.iter().find(own)));
    }
    cells
}

fn estimate(estimate: Option<&Estimate>) -> Vec<String> {
    let Some(estimate) = estimate else { return vec![String::new(); PARTS.len()] };
    let ends = estimate
        .interval
        .map_or([String::new(), String::new()], |(low, high)| [low, high].map(|n| n.to_string()));
    let [low, high] = ends;
    let values: Vec<String> = estimate.values.iter().map(ToString::to_string).collect();
    vec![estimate.mean.to_string(), low, high, estimate.variation.to_string(), values.join(";")]
}

fn tested(comparison: Option<&Comparison>) -> Vec<String> {
    let Some(one) = comparison else { return vec![String::new(); TESTS.len()] };
    let optional = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let (low, high) = one.interval.unzip();
    let outcome = serde_json::to_value(one.outcome).ok().and_then(|value| value.as_str().map(String::from));
    vec![
        one.ratio.to_string(),
        optional(low),
        optional(high),
        optional(one.p),
        optional(one.detectable),
        outcome.unwrap_or_default(),
    ]
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    /// The same as in the record, in RFC 3339.
    started: String,
    evaluation: &'a Evaluation,
    assessment: &'a Assessment,
    /// What a search for better settings has come to; only of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<Conclusion>,
    /// Response times of every cell, in the order of the assessment's cells; null where they are not known.
    distributions: Vec<Option<Distribution>>,
    runs: Vec<RunSummary<'a>>,
}

/// A run in a few numbers; the report of the run has all of them.
#[derive(Serialize)]
struct RunSummary<'a> {
    id: u64,
    member: Option<&'a Member>,
    started_unix_ns: u64,
    elapsed_ns: u64,
    state: State,
    valid: bool,
    throughput_per_s: f64,
    /// Of all its operations together; null where it is not known.
    p99_ns: Option<f64>,
    failed: u64,
}

/// The record and the assessment with all their numbers. Units are in the names: `_ns` nanoseconds, `_per_s` per second.
pub fn json(subject: &Subject<'_>) -> String {
    let started = subject.evaluation.started_unix_ns;
    let document = Document {
        schema: SCHEMA,
        started: crate::text::moment(started, &jiff::tz::TimeZone::UTC, "%Y-%m-%dT%H:%M:%SZ"),
        evaluation: subject.evaluation,
        assessment: subject.assessment,
        search: tuning::searched(subject).map(|(_, conclusion)| conclusion),
        distributions: subject.assessment.cells.iter().map(|cell| Distribution::of(&cell.response)).collect(),
        runs: subject.runs.iter().map(summary).collect(),
    };
    // Only maps with keys that are not strings fail, and numbers never do: there are none of the former.
    serde_json::to_string_pretty(&document).expect("plain data with string keys is always JSON")
}

fn summary(run: &Run) -> RunSummary<'_> {
    let Totals { throughput, p99_ns, failed, .. } = totals(run);
    RunSummary {
        id: run.id,
        member: run.member.as_ref(),
        started_unix_ns: run.started_unix_ns,
        elapsed_ns: run.elapsed_ns,
        state: run.state,
        valid: judge(run).is_valid(),
        throughput_per_s: throughput,
        p99_ns,
        failed,
    }
}
