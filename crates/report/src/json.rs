//! A run as JSON for machines: schema 2.
//!
//! Every number has its unit in its name: `_ns` nanoseconds, `_bytes` bytes, `_per_s` per second, `_ratio` a
//! share of 1. Times are since the run's start, those inside a work since the work's start, those named `unix`
//! since 1970 UTC. Counts may exceed 2^53: read them as integers. A distribution without values is `null`;
//! `v2` is its whole histogram in the standard HdrHistogram V2 encoding, base 64. Fields may be added within a
//! schema; a change of meaning or a removal raises the number.

use crate::known::RunFigure;
use serde::Serialize;
use std::collections::BTreeMap;
use tidemark_judge::causes::{Group, groups};
use tidemark_judge::evaluation::totals;
use tidemark_judge::{Finding, Judgement, UnderQuery, beneath, verdict_sentences};
use tidemark_measure::counts::FaultCounts;
use tidemark_measure::histogram::{Histogram, PERCENTILES};
use tidemark_measure::record::{self, Run};
use utoipa::ToSchema;

/// The version of the form.
const SCHEMA: u32 = 2;

/// A run and what was found about it.
#[derive(Serialize, ToSchema)]
pub struct RunRecord<'a> {
    schema: u32,
    id: u64,
    name: &'a str,
    description: &'a str,
    started_unix_ns: u64,
    /// The same in RFC 3339, UTC.
    started: String,
    elapsed_ns: u64,
    state: record::State,
    valid: bool,
    /// Why it is not valid.
    invalid_reasons: Vec<String>,
    /// The short stable names of those reasons, in the same order.
    invalid_rules: Vec<&'static str>,
    #[schema(value_type = Vec<tidemark_judge::FindingRecord>)]
    findings: &'a [Finding],
    /// The findings that are not checks passed, by their causes, the gravest first.
    causes: Vec<Group>,
    /// The run in a few sentences: what it achieved, what went wrong, whether its numbers hold.
    verdict: Vec<String>,
    /// Everything that it measured in a few numbers.
    totals: RunTotals,
    notes: &'a [record::Note],
    provenance: &'a record::Provenance,
    stages: Vec<RunStage<'a>>,
    /// Its place in an evaluation; null if it is not part of one.
    member: Option<&'a tidemark_measure::evaluation::Member>,
    /// What the nodes did meanwhile.
    nodes: &'a [tidemark_measure::observation::Node],
    /// The drivers that put the load on; none where the process that keeps the record did it itself.
    drivers: &'a [record::Driver],
    /// The pods and nodes that were lost while it went on, with what happened to them and what the load saw of it.
    losses: Vec<tidemark_judge::Loss>,
}

/// What a run measured: all data operations together, or the best cell of a sweep.
#[derive(Serialize, ToSchema)]
struct RunTotals {
    /// What was asked for: `70 % read / 30 % write, 32 workers`.
    load: String,
    /// The cell of a sweep that rates and response times are of; null where they are of all operations.
    cell: Option<String>,
    throughput_per_s: f64,
    bandwidth_bytes_per_s: f64,
    /// Null where response times are not known.
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    operations: u64,
    failed: u64,
}

fn run_totals(run: &Run) -> RunTotals {
    let totals = totals(run);
    RunTotals {
        load: tidemark_judge::listed::load(run),
        cell: totals.cell.map(|cell| cell.name),
        throughput_per_s: totals.throughput,
        bandwidth_bytes_per_s: totals.bandwidth,
        p50_ns: totals.p50_ns,
        p99_ns: totals.p99_ns,
        operations: totals.operations,
        failed: totals.failed,
    }
}

#[derive(Serialize, ToSchema)]
struct RunStage<'a> {
    id: &'a str,
    name: &'a str,
    state: record::State,
    reason: &'a str,
    started_ns: u64,
    ended_ns: u64,
    works: Vec<RunWork<'a>>,
    /// Which point of a sweep it measured; null if it is not part of one.
    cell: Option<&'a record::Cell>,
    /// What was done around the load and what the devices counted; null where there are none.
    proof: Option<&'a record::Proof>,
    /// Figures that users know its workloads by.
    figures: Vec<RunFigure<'a>>,
    /// What nodes did under its queries: of those that ran alone for the time of a few samples.
    under_queries: Vec<UnderQuery<'a>>,
    /// What each driver did, by its place in `drivers` and the work's in `works`; none where there were no drivers.
    shares: &'a [record::Share],
}

#[derive(Serialize, ToSchema)]
struct RunWork<'a> {
    name: &'a str,
    kind: &'a str,
    workers: u32,
    /// Operations of each worker in flight at once.
    depth: u32,
    /// Connections that the workers share; null where each has its own.
    connections: Option<u32>,
    threads: u32,
    /// Null in a closed loop.
    offered_per_s: Option<f64>,
    /// Pauses of a worker between its operations; null where there are none.
    think: Option<tidemark_measure::think::Think>,
    /// Whether no storage is behind it: its numbers are the load generator's own.
    simulated: bool,
    started_ns: u64,
    window_start_ns: u64,
    window_end_ns: u64,
    last_done_ns: u64,
    /// The longest time without a success.
    #[serde(rename = "silence")]
    longest_gap: Option<record::LongestGap>,
    silence_ns: u64,
    unsent: u64,
    undone: u64,
    /// Planned operations of which nothing is known: a lost driver's.
    unknown: u64,
    given_up: &'a str,
    allowed_failures_per_million: u32,
    /// The rounds before the window, where the document asks for a steady state.
    settling: Option<&'a record::Settling>,
    /// The rounds of the window, where the document lets it end when they are steady.
    window_rounds: Option<&'a record::Settling>,
    operations: Vec<RunOperation<'a>>,
    examples: &'a [record::Example],
    workers_counts: &'a [record::WorkerCount],
    /// What was done at each of the target's endpoints or instances; none where there is only one.
    endpoints: Vec<RunEndpoint<'a>>,
    /// Jain's index over their throughput: 1 where all had the same; null where there is only one.
    fairness: Option<f64>,
    series: &'a [record::Second],
}

#[derive(Serialize, ToSchema)]
struct RunEndpoint<'a> {
    endpoint: &'a str,
    kind: record::EndpointKind,
    throughput_per_s: f64,
    ok: u64,
    failed: u64,
    /// Successes after the end of the window: in the latencies, not in the throughput.
    late: u64,
    /// Successes due before the window that ended in it: in the throughput, not in the latencies.
    early: u64,
    bytes: u64,
    /// Failures by class.
    faults: BTreeMap<&'static str, u64>,
    response: Option<WholeDistribution<'a>>,
    /// Successes in each second since the work's start, as far as there were any.
    ok_by_second: &'a [u64],
    failed_by_second: &'a [u64],
}

#[derive(Serialize, ToSchema)]
struct RunOperation<'a> {
    label: &'a str,
    kind: &'a str,
    sample: &'a str,
    weight_percent: f64,
    config: &'a str,
    ok: u64,
    failed: u64,
    /// Null when there were no operations.
    success_ratio: Option<f64>,
    bytes: u64,
    /// Successes after the end of the window: in the latencies, not in the throughput.
    late: u64,
    late_bytes: u64,
    /// Successes due before the window that ended in it: in the throughput, not in the latencies.
    early: u64,
    early_bytes: u64,
    /// Bytes of successes that count in neither; all that was moved is `bytes`, `early_bytes` and these.
    outside_bytes: u64,
    retries: u64,
    /// Whether the document asks for the content of its reads to be verified.
    verifies: bool,
    /// Successes whose content was compared with what had been written, and was right.
    verified: u64,
    /// Of these, successes whose content is in its place and Tidemark's, though nobody knew which write it must be of.
    placed: u64,
    /// Successes whose content was to be verified and could not be, by reason.
    unchecked: BTreeMap<&'static str, u64>,
    throughput_per_s: f64,
    bandwidth_bytes_per_s: f64,
    /// Failures by class.
    faults: BTreeMap<&'static str, u64>,
    response: Option<WholeDistribution<'a>>,
    service: Option<WholeDistribution<'a>>,
    first_byte: Option<WholeDistribution<'a>>,
    lag: Option<WholeDistribution<'a>>,
    /// The part of the lag in which a worker was free: the load generator's own.
    own_lag: Option<WholeDistribution<'a>>,
    failure: Option<WholeDistribution<'a>>,
    /// What another tool says that measured it and kept no distribution; null otherwise.
    #[serde(rename = "said")]
    reported: Option<&'a record::Reported>,
}

/// A distribution in a few numbers.
#[derive(Serialize, ToSchema)]
pub(crate) struct Distribution {
    count: u64,
    mean_ns: f64,
    min_ns: u64,
    max_ns: u64,
    /// By name: `p50` to `p99.99`.
    percentiles_ns: BTreeMap<String, u64>,
}

/// The same with all that was counted.
#[derive(Serialize, ToSchema)]
struct WholeDistribution<'a> {
    #[serde(flatten)]
    numbers: Distribution,
    /// HdrHistogram V2, base 64.
    #[schema(value_type = String)]
    v2: &'a Histogram,
}

/// A run and what was found about it, in one line-broken JSON document.
pub fn json(run: &Run, judgement: &Judgement) -> String {
    let document = RunRecord {
        schema: SCHEMA,
        id: run.id,
        name: &run.name,
        description: &run.description,
        started_unix_ns: run.started_unix_ns,
        started: crate::text::moment(run.started_unix_ns, &jiff::tz::TimeZone::UTC, "%Y-%m-%dT%H:%M:%SZ"),
        elapsed_ns: run.elapsed_ns,
        state: run.state,
        valid: judgement.is_valid(),
        invalid_reasons: judgement.validity.sentences(),
        invalid_rules: judgement.validity.reasons().iter().map(Finding::rule).collect(),
        findings: &judgement.findings,
        causes: groups(&judgement.findings),
        verdict: verdict_sentences(run, judgement),
        totals: run_totals(run),
        notes: &run.notes,
        provenance: &run.provenance,
        stages: run.stages.iter().map(|one| stage(run, one)).collect(),
        member: run.member.as_ref(),
        nodes: &run.nodes,
        drivers: &run.drivers,
        losses: tidemark_judge::losses(run),
    };
    // Only maps with keys that are not strings fail, and numbers never do: there are none of the former.
    serde_json::to_string_pretty(&document).expect("plain data with string keys is always JSON")
}

fn stage<'a>(run: &'a Run, stage: &'a record::Stage) -> RunStage<'a> {
    RunStage {
        id: &stage.id,
        name: &stage.name,
        state: stage.state,
        reason: &stage.reason,
        started_ns: stage.started_ns,
        ended_ns: stage.ended_ns,
        works: stage.works.iter().map(work).collect(),
        cell: stage.cell.as_ref(),
        proof: stage.proof.as_ref(),
        figures: tidemark_judge::figures(run, stage).into_iter().map(RunFigure::from).collect(),
        under_queries: beneath(run, stage).queries,
        shares: &stage.shares,
    }
}

fn work(work: &record::Work) -> RunWork<'_> {
    RunWork {
        name: &work.name,
        kind: work.kind.name(),
        workers: work.workers,
        depth: work.depth.max(1),
        connections: work.connections,
        threads: work.threads,
        offered_per_s: work.offered_rate,
        think: Some(work.think).filter(|think| !think.is_none()),
        simulated: work.simulated,
        started_ns: work.started_ns,
        window_start_ns: work.window_start_ns,
        window_end_ns: work.window_end_ns,
        last_done_ns: work.last_done_ns,
        longest_gap: work.longest_gap,
        silence_ns: work.longest_gap.map_or(0, |longest_gap| longest_gap.length_ns()),
        unsent: work.unsent,
        undone: work.undone,
        unknown: work.unknown,
        given_up: &work.given_up,
        allowed_failures_per_million: work.allowed_failures_per_million,
        settling: work.settling.as_ref(),
        window_rounds: work.window_rounds.as_ref(),
        operations: work.operations.iter().map(|one| operation(one, work.window_seconds())).collect(),
        examples: &work.examples,
        workers_counts: &work.workers_counts,
        endpoints: work.endpoints.iter().map(|one| endpoint(one, work.window_seconds())).collect(),
        fairness: tidemark_judge::fairness(work).map(|own| own.jain),
        series: &work.series,
    }
}

fn endpoint(one: &record::EndpointUse, window_seconds: f64) -> RunEndpoint<'_> {
    RunEndpoint {
        endpoint: &one.endpoint,
        kind: one.kind,
        throughput_per_s: one.throughput(window_seconds),
        ok: one.ok,
        failed: one.faults.total(),
        late: one.late,
        early: one.early,
        bytes: one.bytes,
        faults: faults(&one.faults),
        response: distribution(&one.response),
        ok_by_second: &one.ok_by_second,
        failed_by_second: &one.failed_by_second,
    }
}

fn faults(counts: &FaultCounts) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|(fault, count)| (fault.name(), count)).collect()
}

fn operation(operation: &record::Operation, window_seconds: f64) -> RunOperation<'_> {
    let tally = &operation.tally;
    RunOperation {
        label: &operation.label,
        kind: &operation.kind,
        sample: operation.class.name(),
        weight_percent: operation.weight,
        config: &operation.config,
        ok: tally.ok,
        failed: tally.failed(),
        success_ratio: tally.success_ratio(),
        bytes: tally.bytes,
        late: tally.late,
        late_bytes: tally.late_bytes,
        early: tally.early,
        early_bytes: tally.early_bytes,
        outside_bytes: tally.outside_bytes,
        retries: tally.retries,
        verifies: operation.verifies,
        verified: tally.verified,
        placed: tally.placed,
        unchecked: tally.unchecked.iter().map(|(why, count)| (why.name(), count)).collect(),
        throughput_per_s: operation.throughput(window_seconds),
        bandwidth_bytes_per_s: operation.bandwidth(window_seconds),
        faults: faults(&tally.faults),
        response: distribution(&tally.response),
        service: distribution(tally.service()),
        first_byte: distribution(&tally.first_byte),
        lag: distribution(&tally.lag),
        own_lag: tally.own_lag().and_then(distribution),
        failure: distribution(&tally.failure),
        reported: operation.reported.as_ref(),
    }
}

fn distribution(histogram: &Histogram) -> Option<WholeDistribution<'_>> {
    Distribution::of(histogram).map(|numbers| WholeDistribution { numbers, v2: histogram })
}

impl Distribution {
    /// Of what was recorded; `None` if nothing was.
    pub(crate) fn of(histogram: &Histogram) -> Option<Self> {
        let percentiles = || PERCENTILES.into_iter().filter(|fraction| *fraction < 1.0);
        (!histogram.is_empty()).then(|| Self {
            count: histogram.count(),
            mean_ns: histogram.mean(),
            min_ns: histogram.min(),
            max_ns: histogram.max(),
            percentiles_ns: percentiles()
                .map(|fraction| (crate::text::percentile_name(fraction), histogram.quantile(fraction)))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn cells_and_proofs_are_there() {
        let run = sample::sweeps(3);
        let text = json(&run, &tidemark_judge::judge(&run));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let stage = &value["stages"][0];
        let block_size = serde_json::json!({"name": "block_size", "value": 4096.0, "unit": "bytes"});
        assert_eq!(stage["cell"]["axes"][1], block_size);
        let device = &run.stages[0].proof.as_ref().unwrap().devices[0];
        assert_eq!(stage["proof"]["devices"][0]["read_bytes"].as_u64(), Some(device.read_bytes));
        assert_eq!(
            (&stage["works"][0]["depth"], &stage["works"][0]["settling"]["steady"]),
            (&16.into(), &true.into())
        );
    }

    #[test]
    fn numbers_and_histograms_are_those_of_the_record() {
        let run = sample::outage();
        let judgement = tidemark_judge::judge(&run);
        let value: serde_json::Value = serde_json::from_str(&json(&run, &judgement)).unwrap();
        assert_eq!(value["schema"], 2);
        assert_eq!(value["started"], "2026-11-20T18:00:00Z");
        let work = &value["stages"][2]["works"][0];
        let tally = &run.stages[2].works[0].operations[0].tally;
        let read = &work["operations"][0];
        assert_eq!(read["ok"].as_u64(), Some(tally.ok));
        assert_eq!(
            read["response"]["percentiles_ns"]["p99.9"].as_u64(),
            Some(tally.response.quantile(0.999))
        );
        assert_eq!(work["silence_ns"].as_u64(), Some(10_020_000_000));
        let back: Histogram = serde_json::from_value(read["response"]["v2"].clone()).unwrap();
        assert!(back.buckets().eq(tally.response.buckets()));
        assert!(
            read["service"]["count"] == read["response"]["count"],
            "a closed loop's service is its response"
        );
    }
}
