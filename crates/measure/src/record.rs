//! What a run leaves behind: plain data that the controller fills, the store keeps, the judge reads and
//! the report shows. Secrets never get here: documents are redacted before they are recorded.
//!
//! Times are nanoseconds since the run's start unless the name contains `unix` (since 1970 UTC).
//!
//! Fields that a stored record lacks take their default values: runs of older versions stay readable.

use crate::axis::Axis;
use crate::evaluation::Member;
use crate::fault::Fault;
use crate::host::Host;
use crate::kind::{OperationClass, WorkKind};
use crate::observation::Node;
use crate::rate::Rate;
use crate::tally::{Interval, Tally};
use crate::think::Think;
use crate::units;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const SECOND_NS: u64 = 1_000_000_000;

mod analytics;
mod drivers;
mod endpoint;
mod evidence;
mod figure;
mod happening;
mod proof;

pub use analytics::{Answer, CacheLayer, QueryUse, SizeCount, StorageUse, TableMade, TablesMade, TablesUse};
pub use drivers::{Driver, Lost, Share, ShareSecond};
pub use endpoint::{EndpointKind, EndpointUse};
pub use evidence::Evidence;
pub use figure::{DeclaredFigure, FigureOf};
pub use happening::{Happened, Happening, Part, Unwatched};
pub use proof::{Behind, DeviceUse, DriverIo, OsdUse, OwnIo, Proof};

/// One execution of one document.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The number under which the store keeps it; 0 before it is stored.
    pub id: u64,
    /// The workload's name.
    pub name: String,
    /// The workload's description, or empty.
    pub description: String,
    /// When it started, nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How long it took, nanoseconds.
    pub elapsed_ns: u64,
    /// How it ended.
    pub state: State,
    /// What made it.
    pub provenance: Provenance,
    /// Where Tidemark does something other than the tool whose file this was, and why.
    pub notes: Vec<Note>,
    /// Its stages in order, including those that did not start.
    pub stages: Vec<Stage>,
    /// Its place in an evaluation, if it is part of one.
    pub member: Option<Member>,
    /// What the nodes did meanwhile.
    pub nodes: Vec<Node>,
    /// The drivers that put the load on; none where the process that keeps the record did it itself.
    pub drivers: Vec<Driver>,
    /// What happened to its pods and their nodes, in order; none where it did not run on Kubernetes.
    pub happenings: Vec<Happening>,
    /// What of them could not be watched.
    pub unwatched: Vec<Unwatched>,
}

/// How a run or a stage ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RunState)]
pub enum State {
    /// Not started.
    #[default]
    Waiting,
    /// Going on.
    Running,
    /// Ended, and did what it was to do.
    Completed,
    /// Ended, and did not: see the reason.
    Failed,
    /// Ended early by the user or by a signal; what was measured is kept.
    Interrupted,
}

impl State {
    /// The word for tables.
    pub const fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Interrupted => "interrupted",
        }
    }
}

/// Everything needed to say what was run, and to run it again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Provenance {
    /// Tidemark's version.
    pub tidemark: String,
    /// The command line, secrets redacted.
    pub command: String,
    /// The document's path as given, or empty for a one-liner.
    pub path: String,
    /// `COSBench XML` or `Tidemark YAML`.
    pub format: String,
    /// The document, secrets redacted.
    pub document: String,
    /// The seed that all random choices came from.
    pub seed: u64,
    /// What the load ran against, one line per distinct target: kind, endpoints, server software if known.
    pub targets: Vec<String>,
    /// The generator's machine.
    #[serde(flatten)]
    pub host: Host,
}

/// The topic of a note that holds for every document of its format, whatever this one says.
pub const GENERAL: &str = "general";

/// A remark on the document: behaviour that its author may not expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    /// A short stable name, e.g. `kib-units`.
    pub topic: String,
    /// What happens and why, in one or two sentences.
    pub text: String,
}

/// One stage of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stage {
    /// `s1-init`, as COSBench numbers them.
    pub id: String,
    /// Its name in the document.
    pub name: String,
    /// How it ended.
    pub state: State,
    /// Why it failed or was interrupted, or empty.
    pub reason: String,
    /// When it started.
    pub started_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// Its works.
    pub works: Vec<Work>,
    /// Which point of a sweep it measured, if it is part of one.
    pub cell: Option<Cell>,
    /// What makes its numbers evidence; block and file storage only.
    pub proof: Option<Proof>,
    /// What each driver did of it; none where there were no drivers.
    pub shares: Vec<Share>,
}

impl Stage {
    /// Whether any of its works measures something.
    pub fn measures(&self) -> bool {
        self.works.iter().any(|work| work.kind.measures())
    }
}

/// One point of a sweep, and which of its repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Cell {
    /// The sweep it is a point of: the load's name in the document.
    pub sweep: String,
    /// Its place on every axis, in the document's order: `block_size` `4 KiB`, `clients` `8`.
    #[schema(value_type = Vec<crate::axis::AxisRecord>)]
    pub axes: Vec<Axis>,
    /// From 1.
    pub repeat: u32,
    /// Of how many.
    pub repeats: u32,
    /// What drove it: `native` or `fio`.
    pub engine: String,
}

/// One work of a stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Its name in the document.
    pub name: String,
    /// What it is for.
    pub kind: WorkKind,
    /// Logical clients.
    pub workers: u32,
    /// Operations of each of them in flight at once (queue depth); 0 in records of old, which means 1.
    pub depth: u32,
    /// Connections that they shared, each for one operation at a time; `None` where each had its own.
    pub connections: Option<u32>,
    /// Generator threads that they shared.
    pub threads: u32,
    /// Operations per second that an open loop offered on average over the window; `None` in a closed loop.
    pub offered_rate: Option<f64>,
    /// What was fixed of it before it began.
    pub planned: Planned,
    /// Pauses of a worker between its operations.
    pub think: Think,
    /// Whether no storage is behind it: its operations only pretend, and its numbers are the generator's own.
    pub simulated: bool,
    /// Whether what serves it runs in the load generator's own process, and is observed with it.
    pub in_process: bool,
    /// Where the window began, since the work's start; operations due before it are not measured.
    pub window_start_ns: u64,
    /// Where it ended: the planned end, or the last completion when a count or a volume ended the work.
    pub window_end_ns: u64,
    /// When the last operation ended, since the work's start.
    pub last_done_ns: u64,
    /// When the work started, since the run's start.
    pub started_ns: u64,
    /// Its operations.
    pub operations: Vec<Operation>,
    /// Second by second.
    pub series: Vec<Second>,
    /// The longest time without a success while the load was on.
    pub longest_gap: Option<LongestGap>,
    /// Operations of an open loop that were due in the window and never sent.
    pub unsent: u64,
    /// Planned operations that were never begun, because the work was given up.
    pub undone: u64,
    /// Planned operations of which nothing is known: they were a lost driver's, who may have done some of them after its last
    /// report.
    pub unknown: u64,
    /// The first few failures of each class, word for word.
    pub examples: Vec<Example>,
    /// Counts of each worker and operation.
    pub workers_counts: Vec<WorkerCount>,
    /// What it did at each of its target's endpoints or instances; none where there is only one.
    pub endpoints: Vec<EndpointUse>,
    /// How the load became steady before the window began, where the document requires it.
    pub settling: Option<Settling>,
    /// The rounds of the window, where the document lets it end when they are steady.
    pub window_rounds: Option<Settling>,
    /// Why the work was given up before its end, or empty.
    pub given_up: String,
    /// Failures that the document allows, per million operations.
    pub allowed_failures_per_million: u32,
}

/// What is fixed of a work before it begins. Its result is rebuilt from it if the process that keeps the record dies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Planned {
    /// Operations per second that an open loop is to offer, its ramp-up included; `None` in a closed loop.
    pub rate: Option<Rate>,
    /// Where the window begins, since the work's start; `None` where that depends on when the load becomes steady.
    pub window_start_ns: Option<u64>,
    /// Where it ends; `None` where that depends on the load.
    pub window_end_ns: Option<u64>,
    /// How many operations there are, where they are counted.
    pub operations: Option<u64>,
    /// How many sequences of its operations, such as lives of volumes, begin in a second at times fixed in advance.
    pub begun_per_s: Option<f64>,
}

/// Rounds of a load, before its window or in it, until throughput was steady by the SNIA's rule (SSS PTS 2.0.2, 2.1.24): over five
/// rounds the range is at most 20 % of the average and the best line's rise at most 10 %.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Settling {
    /// Successful operations per second of every round.
    pub rounds: Vec<f64>,
    /// Length of a round, nanoseconds.
    pub round_ns: u64,
    /// Whether the last five are steady; if not, the rounds or the time that the document allows were used up.
    pub steady: bool,
}

/// One operation (action) of a work.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Operation {
    /// Its name in reports: `read`, `1-read`, or what the document calls it.
    pub label: String,
    /// Its type: `read`, `write`, `delete`, ...
    pub kind: String,
    /// What it is counted as: COSBench's sample type.
    #[serde(rename = "sample")]
    pub class: OperationClass,
    /// Whether what it read was compared with what had been written: a difference is a failure then.
    pub verifies: bool,
    /// Share of the mix in percent; 100 where there is no mix.
    pub weight: f64,
    /// Its selectors and settings as the document wrote them.
    pub config: String,
    /// Its numbers.
    pub tally: Tally,
    /// The values of the tool that measured it, if another one than Tidemark and without histograms.
    #[serde(alias = "said")]
    pub reported: Option<Reported>,
}

/// Numbers that another tool has worked out of samples that it did not keep whole: they count. Every field may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Reported {
    /// Operations per second.
    pub throughput: Option<f64>,
    /// Bytes per second.
    pub bandwidth: Option<f64>,
    /// Mean response time, nanoseconds.
    pub mean_ns: Option<f64>,
    /// Share of the operations, 0 to 1, and the response time that they do not exceed, nanoseconds; ascending.
    pub percentiles: Vec<(f64, f64)>,
}

/// One second of a work, small enough to keep for every second of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = RunSecond)]
pub struct Second {
    /// Which second since the work's start.
    pub index: u32,
    /// One entry per operation of the work.
    pub operations: Vec<SecondOfOperation>,
    /// Operations that ended and were not measured (ramp-up, ramp-down).
    pub unmeasured: u64,
    /// Operations in flight at its end.
    pub in_flight: u32,
    /// Age of the oldest of them, nanoseconds.
    pub oldest_in_flight_ns: u64,
    /// Due and not yet sent at its end.
    pub backlog: u64,
    /// Share of the generator threads' time that they spent on a processor, 0 to 1.
    pub busy: f64,
    /// For how long a generator thread stood still that was due to run, at most, nanoseconds.
    pub stalled_ns: u64,
}

/// One operation in one second. Latencies are response times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SecondOfOperation {
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Bytes moved by the successes.
    pub bytes: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
    /// 99th percentile of the service time.
    pub service_p99_ns: u64,
}

impl From<&Interval> for Second {
    fn from(interval: &Interval) -> Self {
        let operation = |tally: &Tally| SecondOfOperation {
            ok: tally.ok,
            failed: tally.failed(),
            bytes: tally.bytes,
            mean_ns: tally.response.mean() as u64,
            p50_ns: tally.response.quantile(0.5),
            p95_ns: tally.response.quantile(0.95),
            p99_ns: tally.response.quantile(0.99),
            max_ns: tally.response.max(),
            service_p99_ns: tally.service().quantile(0.99),
        };
        Self {
            index: interval.index,
            operations: interval.actions.iter().map(operation).collect(),
            unmeasured: interval.unmeasured,
            in_flight: interval.in_flight,
            oldest_in_flight_ns: interval.oldest_in_flight_ns,
            backlog: interval.backlog,
            // A part of a second without times does not show how busy it was.
            busy: if interval.wall_ns == 0 { 0.0 } else { interval.cpu_ns as f64 / interval.wall_ns as f64 },
            stalled_ns: interval.stalled_ns,
        }
    }
}

/// A time without a single success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LongestGap {
    /// When it began: the last success before it, or the work's start, since the work's start.
    pub from_ns: u64,
    /// When it ended: the first success after it, or the end of the load.
    pub to_ns: u64,
}

impl LongestGap {
    /// How long it lasted, nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// One failure, word for word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Example {
    /// Its class.
    pub fault: Fault,
    /// What happened, e.g. `GET b1/o7: 404 NoSuchKey`; never a secret.
    pub text: String,
}

/// What one worker did with one operation, over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WorkerCount {
    /// The worker's number within the work, from 0.
    pub worker: u32,
    /// Which operation of the work.
    pub operation: u16,
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Bytes of the successes.
    pub bytes: u64,
    /// Sum of the successes' response times, nanoseconds.
    pub response_ns: u64,
    /// When its first measured operation was sent, since the work's start.
    pub first_sent_ns: u64,
    /// When its last measured operation ended, since the work's start.
    pub last_done_ns: u64,
}

impl Work {
    /// Operations that its workers may have in flight at once.
    pub fn slots(&self) -> u64 {
        let own = u64::from(self.workers) * u64::from(self.depth.max(1));
        self.connections.map_or(own, u64::from)
    }

    /// What stands behind the number of its workers: how many operations they have in flight, if not one each.
    pub fn sharing(&self) -> String {
        match (self.connections, self.depth) {
            (Some(1), _) => " over 1 connection".to_owned(),
            (Some(connections), _) => format!(" over {} connections", units::count(connections.into())),
            (None, 0 | 1) => String::new(),
            (None, depth) => format!(" at depth {depth}"),
        }
    }

    /// When the first and the last worker were done, nanoseconds since the work's start; `None` where it is not known.
    pub fn workers_done_ns(&self) -> Option<(u64, u64)> {
        let mut done = std::collections::BTreeMap::<u32, u64>::new();
        for count in &self.workers_counts {
            let last = done.entry(count.worker).or_default();
            *last = count.last_done_ns.max(*last);
        }
        Some((*done.values().min()?, *done.values().max()?))
    }

    /// Length of the window in seconds; never zero.
    pub fn window_seconds(&self) -> f64 {
        (self.window_end_ns.saturating_sub(self.window_start_ns)).max(1) as f64 / 1e9
    }

    /// Whether the second with this index lies wholly in the window. What is left of a second at an end of the load is too
    /// short to say how busy anything was.
    pub fn measures_second(&self, index: u32) -> bool {
        let from = u64::from(index).saturating_mul(SECOND_NS);
        from >= self.window_start_ns && from.saturating_add(SECOND_NS) <= self.window_end_ns
    }
}

impl Operation {
    /// Successes that ended in the window, whenever they were due, per second of it.
    pub fn throughput(&self, window_seconds: f64) -> f64 {
        let counted = || self.tally.ok.saturating_sub(self.tally.late).saturating_add(self.tally.early);
        self.reported
            .as_ref()
            .and_then(|said| said.throughput)
            .unwrap_or_else(|| counted() as f64 / window_seconds)
    }

    /// Bytes of those successes, per second of the window.
    pub fn bandwidth(&self, window_seconds: f64) -> f64 {
        let counted = || {
            let early = self.tally.early_bytes;
            self.tally.bytes.saturating_sub(self.tally.late_bytes).saturating_add(early) as f64
        };
        self.reported.as_ref().and_then(|said| said.bandwidth).unwrap_or_else(|| counted() / window_seconds)
    }

    /// The response time that a share of the operations (0 to 1) does not exceed, nanoseconds; `None` where that is not known.
    pub fn quantile_ns(&self, fraction: f64) -> Option<f64> {
        let counted = || {
            let response = &self.tally.response;
            (!response.is_empty()).then(|| response.quantile(fraction) as f64)
        };
        let mut known = self.reported.iter().flat_map(|said| &said.percentiles);
        known.find(|(share, _)| (share - fraction).abs() < 1e-9).map(|(_, ns)| *ns).or_else(counted)
    }

    /// The mean response time, nanoseconds; `None` where it is not known.
    pub fn mean_ns(&self) -> Option<f64> {
        let counted = || (!self.tally.response.is_empty()).then(|| self.tally.response.mean());
        self.reported.as_ref().and_then(|said| said.mean_ns).or_else(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Cache;

    #[test]
    fn a_part_of_a_second_without_time_was_not_busy() {
        let mut interval = Interval { cpu_ns: 5_000_000, ..Interval::default() };
        assert_eq!(Second::from(&interval).busy, 0.0);
        interval.wall_ns = 10_000_000;
        assert_eq!(Second::from(&interval).busy, 0.5);
    }

    #[test]
    fn records_of_before_read() {
        let old = r#"{"stages": [{"cell": {"sweep": "rand", "axes": [["block_size", "4 KiB"], ["clients", "8"]],
            "repeat": 1, "repeats": 1, "engine": "native"}, "proof": {"cache": "warm", "direct": true},
            "works": [{"name": "w", "kind": "prepare", "operations": [{"label": "w", "kind": "write", "sample": "write"}]},
                {"operations": [{"kind": "scrub", "sample": "scrub"}]}]}, {"proof": {"cache": ""}}]}"#;
        let run: Run = serde_json::from_str(old).unwrap();
        let stage = &run.stages[0];
        let axes = [Axis::bytes("block_size", 4096), Axis::count("clients", 8)];
        assert_eq!(stage.cell.as_ref().unwrap().axes, axes);
        let caches = run.stages.iter().map(|stage| stage.proof.as_ref().unwrap().cache);
        assert_eq!(caches.collect::<Vec<_>>(), [Some(Cache::Warm), None]);
        let kinds: Vec<_> = stage.works.iter().map(|work| work.kind).collect();
        assert_eq!(kinds, [WorkKind::Prepare, WorkKind::Normal]);
        let classes: Vec<_> = stage.works.iter().map(|work| work.operations[0].class.clone()).collect();
        assert_eq!(classes, [OperationClass::Write, OperationClass::named("scrub")]);
        assert!(!stage.works[0].operations[0].verifies);
        let again: Run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
        assert_eq!((&again.stages[0].cell, &again.stages[0].proof), (&stage.cell, &stage.proof));
    }

    #[test]
    fn what_another_tool_says_counts_and_the_rest_is_read_from_the_histogram() {
        let said = Reported { throughput: Some(9.0), percentiles: vec![(0.95, 7e6)], ..Reported::default() };
        let mut operation = Operation { reported: Some(said), ..Operation::default() };
        assert_eq!((operation.throughput(2.0), operation.bandwidth(2.0)), (9.0, 0.0));
        assert_eq!((operation.quantile_ns(0.95), operation.quantile_ns(0.5)), (Some(7e6), None));
        operation.tally.response.record(1_000);
        assert_eq!((operation.quantile_ns(0.95), operation.quantile_ns(0.5)), (Some(7e6), Some(1_000.0)));
        assert_eq!(operation.mean_ns(), Some(1_000.0));
    }
}
