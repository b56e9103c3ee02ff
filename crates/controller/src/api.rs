//! What goes over HTTP, as types. The OpenAPI document is generated from these; the console's TypeScript types follow it.
//!
//! All paths are below `/api/v1`. Times are milliseconds since 1970 UTC where a name says `unix_ms`, seconds of load count
//! from the work's start. Errors are [`Trouble`] with a status of 400 (malformed), 401 (no or wrong token), 403 (role), 404,
//! 409 (conflicts with the state), 413 (too large), 415, 422 (the document is wrong: [`Trouble::problems`]), 429 (too many), 503 (full or
//! shutting down).
//!
//! | method and path | role | body -> reply |
//! |---|---|---|
//! | `GET /info` | viewer | -> [`Info`] |
//! | `POST /session`, `DELETE /session` | none | [`Login`] -> cookie of the console, [`Info`] |
//! | `GET /overview` | viewer | -> [`Overview`] |
//! | `GET /events?submission=ID` | viewer | server-sent events, see [`Live`]; without `submission` only overviews |
//! | `GET /drivers` | viewer | -> [`Driver`]s |
//! | `GET /submissions?state=S&limit=N&before=ID` | viewer | -> [`Submission`]s, the newest first |
//! | `POST /submissions` (header `Idempotency-Key`) | operator | [`Submit`] -> 201 [`Submission`] |
//! | `GET /submissions/{id}` | viewer | -> [`Submission`] |
//! | `PATCH /submissions/{id}` | operator | [`Change`] -> [`Submission`] |
//! | `POST /submissions/{id}/cancel` | operator | [`Cancel`] -> [`Submission`] |
//! | `POST /submissions/{id}/resubmit` | operator | -> 201 [`Submission`] |
//! | `GET /submissions/{id}/document` | viewer | -> the document, secrets redacted, text |
//! | `GET /submissions/{id}/live` | viewer | -> [`LiveRun`] |
//! | `POST /check` | viewer | [`CheckRequest`] -> [`Check`] |
//! | `GET /runs?limit=N&before=ID&name=TEXT` | viewer | -> [`RunRow`]s, the newest first |
//! | `GET /runs/{id}` | viewer | -> the run as `tidemark report --format json` has it |
//! | `DELETE /runs/{id}` | operator | -> 204 |
//! | `GET /runs/{id}/report?format=html,md,csv,series-csv,json` | viewer | -> the file |
//! | `GET /runs/{id}/figures` | viewer | -> [`Figure`]s |
//! | `GET /runs/{id}/figures/{name}.svg` | viewer | -> the figure as SVG |
//! | `GET /matrix?limit=N&before=ID` | viewer | -> [`MatrixRow`]s, one per run, stage, work and operation |
//! | `GET /compare?a=1,2&b=3,4` | viewer | -> [`Comparison`] |
//! | `GET /evaluations` | viewer | -> [`EvaluationRow`]s |
//! | `GET /evaluations/{id}/report?format=html,md,csv,json` | viewer | -> the file |
//! | `GET /audit?limit=N&before=ID` | operator | -> [`AuditRow`]s |
//! | `GET /openapi.json` | none | -> this, as OpenAPI 3.1 |
//! | `GET /link` | driver | WebSocket of a driver |
//!
//! Outside it: `GET /metrics` (OpenMetrics, viewer), COSBench's `cli/*.action` with and without `/controller` before it,
//! and the console at `/`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// To look at everything.
    Viewer,
    /// And to submit, cancel, re-order and delete.
    Operator,
    /// To join as a driver, nothing else.
    Driver,
}

/// Who answers, and what the caller may do.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// The controller's name.
    pub name: String,
    /// Tidemark's version.
    pub version: String,
    /// What the caller may do.
    pub role: Role,
    /// The name of the caller's token; empty where none is needed.
    pub user: String,
    /// When the controller started.
    pub started_unix_ms: u64,
    /// Largest document that is taken, bytes.
    pub largest_document: u64,
    /// Trouble that an operator should know of: `the result store cannot be written: disk full`.
    pub troubles: Vec<String>,
}

/// The console's login.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Login {
    /// A token.
    pub token: String,
}

/// Something that was asked for could not be done.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Trouble {
    /// What happened, and what to do next.
    pub message: String,
    /// What is wrong with a document, in the order of its text.
    #[serde(default)]
    pub problems: Vec<Problem>,
}

/// Something that is wrong with a document, or may surprise its author.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Whether the document runs all the same.
    pub warning: bool,
    /// From 1; 0 where the whole document is meant.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// Length of the place, characters.
    pub length: u32,
    /// What is wrong.
    pub message: String,
    /// What to do about it, or empty.
    pub help: String,
}

/// Everything that the first page shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// All drivers that are there or were lately, by name.
    pub drivers: Vec<Driver>,
    /// What goes on.
    pub active: Vec<Submission>,
    /// What waits, in the order in which it will begin.
    pub queue: Vec<Submission>,
    /// What ended last, the newest first; at most 20.
    pub recent: Vec<Submission>,
    /// Trouble that an operator should know of.
    pub troubles: Vec<String>,
}

/// A driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub state: DriverState,
    /// Its host.
    pub host: String,
    /// Where it connects from.
    pub address: String,
    /// Its version.
    pub version: String,
    /// Processor model.
    pub cpu: String,
    /// Processors.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Share of its processors that are busy, 0 to 1.
    pub cpu_busy: f32,
    /// Memory in use, bytes.
    pub memory_used_bytes: u64,
    /// Network, bytes per second.
    pub received_per_s: f64,
    /// Network, bytes per second.
    pub sent_per_s: f64,
    /// Half the round trip, microseconds: how exactly its clock is known.
    pub clock_error_us: f64,
    /// Milliseconds since it was last heard of.
    pub silent_ms: u64,
    /// Since when it is joined.
    pub joined_unix_ms: u64,
    /// The submission that it works for, if any.
    pub submission: Option<u64>,
}

/// Whether a driver is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverState {
    /// Joined, and free.
    #[default]
    Idle,
    /// Works for a submission.
    Busy,
    /// Says nothing, and may come back.
    Silent,
    /// Gone.
    Gone,
}

/// A document that was submitted, and what came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    /// Its number; COSBench's `w7` is 7.
    pub id: u64,
    /// The document's name.
    pub name: String,
    /// `COSBench XML`, `Tidemark YAML`, `fio job file`, `Tidemark evaluation`.
    pub format: String,
    /// Whose token submitted it.
    pub by: String,
    /// Higher ones begin first.
    pub priority: i32,
    /// Where it stands.
    pub state: SubmissionState,
    /// Why it waits, failed or was interrupted, or empty.
    pub reason: String,
    /// When it was submitted.
    pub submitted_unix_ms: u64,
    /// When it began.
    pub started_unix_ms: Option<u64>,
    /// When it ended.
    pub ended_unix_ms: Option<u64>,
    /// How long it will take, milliseconds, where that can be told.
    pub expected_ms: Option<u64>,
    /// How far it is, 0 to 1, where that can be told.
    pub progress: Option<f32>,
    /// The stage that goes on, or empty.
    pub stage: String,
    /// The drivers that it has, or wants by name.
    pub drivers: Vec<String>,
    /// The number of the run in the store, once there is one. Of an evaluation: the last one.
    pub run: Option<u64>,
    /// The number of the evaluation in the store, once there is one.
    pub evaluation: Option<u64>,
    /// Whether its numbers are VALID, once it was judged.
    pub valid: Option<bool>,
    /// One line of its result, or empty.
    pub headline: String,
    /// The operations of its stages, for lists: `read, write`.
    pub operations: String,
    /// While it goes on: operations that succeeded in each of the latest seconds, at most 90, the newest last.
    #[serde(default)]
    pub rates: Vec<u64>,
}

/// Where a submission stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubmissionState {
    /// Waits for its turn.
    #[default]
    Queued,
    /// Goes on.
    Running,
    /// Ended, and did what it was to do.
    Completed,
    /// Ended, and did not.
    Failed,
    /// Cancelled by somebody.
    Cancelled,
    /// The controller ended while it went on; what was measured is kept.
    Interrupted,
}

/// A document to be run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The document: COSBench XML, Tidemark YAML or a fio job file.
    pub document: String,
    /// Higher ones begin first; from -100 to 100.
    #[serde(default)]
    pub priority: i32,
    /// The drivers to run on, by name; none: as the document says.
    #[serde(default)]
    pub drivers: Vec<String>,
    /// So many drivers, whichever are free; none: as the document says.
    #[serde(default)]
    pub driver_count: Option<u32>,
    /// The seed to use instead of the document's.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether to begin without asking the targets first.
    #[serde(default)]
    pub skip_preflight: bool,
}

/// Another priority or place.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The new priority, from -100 to 100.
    #[serde(default)]
    pub priority: Option<i32>,
    /// Put it right before this one, and give it the priority of that one.
    #[serde(default)]
    pub before: Option<u64>,
}

/// How to cancel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Stop at once and clean nothing up, rather than end the load, keep what was measured and clean up.
    #[serde(default)]
    pub at_once: bool,
}

/// A document to be looked at.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// The document.
    pub document: String,
}

/// What a document would do.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Whether it can run.
    pub ok: bool,
    /// Its format.
    pub format: String,
    /// Its name.
    pub name: String,
    /// What is wrong with it, or may surprise.
    pub problems: Vec<Problem>,
    /// What it does, one sentence per line, as `tidemark check` says it.
    pub explanation: Vec<String>,
    /// Its stages.
    pub stages: Vec<CheckedStage>,
    /// How long it will take, milliseconds, where that can be told.
    pub expected_ms: Option<u64>,
    /// Bytes that it will store, where that can be told.
    pub bytes: Option<u64>,
}

/// A stage of a document.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CheckedStage {
    /// Its name.
    pub name: String,
    /// Its works, one line each: `64 workers: 70 % read, 30 % write, for 60 s`.
    pub works: Vec<String>,
    /// How long it will take, milliseconds, where that can be told.
    pub expected_ms: Option<u64>,
}

/// What goes on in a run, for a page that is opened now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LiveRun {
    /// Which submission.
    pub submission: u64,
    /// Its run.
    pub run: Option<u64>,
    /// Its stages.
    pub stages: Vec<LiveStage>,
    /// The latest seconds of the works that go on or went on last; at most 600 of each work.
    pub seconds: Vec<LiveSecond>,
    /// What nodes did lately.
    pub nodes: Vec<LiveNode>,
    /// What the user should know, the newest last.
    pub troubles: Vec<String>,
    /// The number of the last event that this contains: go on with those after it.
    pub last_event: u64,
}

/// A stage of a run that goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveStage {
    /// `s1-init`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// `waiting`, `running`, `completed`, `failed`, `interrupted`.
    pub state: String,
    /// Why it failed, or empty.
    pub reason: String,
    /// When it started.
    pub started_unix_ms: Option<u64>,
    /// When it ended.
    pub ended_unix_ms: Option<u64>,
    /// How long it will take in all, milliseconds, where that can be told.
    pub expected_ms: Option<u64>,
    /// Operations that it will do in all, where that is fixed.
    pub expected_operations: Option<u64>,
    /// Operations done so far.
    pub operations: u64,
    /// Names of its works, each with the labels of its operations.
    pub works: Vec<LiveWork>,
}

/// A work of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveWork {
    /// Its name.
    pub name: String,
    /// Its workers.
    pub workers: u32,
    /// Labels of its operations.
    pub operations: Vec<String>,
}

/// One second of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveSecond {
    /// Which stage, from 0.
    pub stage: u32,
    /// Which work of it, from 0.
    pub work: u32,
    /// Which second since the work's start.
    pub index: u32,
    /// When it was told.
    pub unix_ms: u64,
    /// One entry per operation of the work.
    pub operations: Vec<LiveOperation>,
    /// Operations that ended outside the window.
    pub unmeasured: u64,
    /// In flight at its end.
    pub in_flight: u32,
    /// Due and not sent at its end.
    pub backlog: u64,
    /// Share of the generator threads' time on a processor, 0 to 1.
    pub busy: f32,
    /// What each driver did in it.
    pub drivers: Vec<LiveShare>,
}

/// One operation in one second. Latencies are response times, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveOperation {
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Bytes of the successes.
    pub bytes: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
}

/// One driver's second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveShare {
    /// Its name.
    pub driver: String,
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Bytes of the successes.
    pub bytes: u64,
    /// Median of the response times, microseconds.
    pub p50_us: f64,
    /// 99th percentile of the response times, microseconds.
    pub p99_us: f64,
    /// Share of the generator threads' time on a processor, 0 to 1.
    pub busy: f32,
}

/// A node in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveNode {
    /// Its name.
    pub name: String,
    /// Whether it generates the load.
    pub generates: bool,
    /// When.
    pub unix_ms: u64,
    /// Share of all processors that are busy, 0 to 1.
    pub cpu_busy: f32,
    /// Memory in use, bytes.
    pub memory_used_bytes: u64,
    /// Network, bytes per second.
    pub received_per_s: f64,
    /// Network, bytes per second.
    pub sent_per_s: f64,
}

/// An event of the stream. The SSE `event` is the variant's name, `id` counts up, `data` is the JSON of the content.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Live {
    /// The overview changed; at most once a second.
    Overview(Box<Overview>),
    /// A second of a work is complete.
    Second(Box<LiveSecond>),
    /// A stage began, ended or came on: all stages.
    Stages(Vec<LiveStage>),
    /// Nodes were looked at.
    Nodes(Vec<LiveNode>),
    /// Something that the user should know.
    Trouble(String),
    /// The submission ended.
    Ended(Box<Submission>),
    /// The reader was too slow and has missed events: fetch `live` anew.
    Missed(u64),
}

/// A run in a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct RunRow {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// When it started.
    pub started_unix_ms: u64,
    /// How long it took, milliseconds.
    pub elapsed_ms: u64,
    /// `completed`, `failed`, `interrupted`, `running`.
    pub state: String,
    /// Whether its numbers are VALID; `None` until it was judged.
    pub valid: Option<bool>,
    /// Measured operations.
    pub operations: u64,
    /// Failures among them.
    pub failed: u64,
    /// One line of its result.
    pub headline: String,
    /// The evaluation that it belongs to.
    pub evaluation: Option<u64>,
    /// The submission that it came from.
    pub submission: Option<u64>,
}

/// A figure of a stored run, as the report draws it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Figure {
    /// Its name in addresses.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// A sentence for those who cannot see it.
    pub description: String,
    /// The stage, `s3-main`.
    pub stage: String,
    /// The work.
    pub work: String,
}

/// One operation of one run: a row of the performance matrix. Times are microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatrixRow {
    /// The run.
    pub run: u64,
    /// Its name.
    pub name: String,
    /// When it started.
    pub started_unix_ms: u64,
    /// The run's state.
    pub state: String,
    /// Whether the run's numbers are VALID.
    pub valid: Option<bool>,
    /// `s3-main`.
    pub stage: String,
    /// The work's name.
    pub work: String,
    /// The operation's name.
    pub operation: String,
    /// What it is counted as: `read`, `write`, `delete`, `list`, ...
    pub sample: String,
    /// Its share of the mix, percent.
    pub weight: f64,
    /// Workers of the work.
    pub workers: u32,
    /// Drivers that shared it; 1 where there were none.
    pub drivers: u32,
    /// Operations that succeeded.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations per second.
    pub throughput: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Mean response time.
    pub mean_us: f64,
    /// Percentiles of the response time, at 50, 60, 80, 90, 95, 99, 99.9, 99.99 and 100 %.
    pub percentiles_us: Vec<f64>,
    /// Share of the operations that succeeded, 0 to 1.
    pub success_ratio: f64,
    /// Its selectors and settings as the document wrote them.
    pub config: String,
}

/// Two groups of runs beside each other.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// `better`, `worse`, `no significant difference`, `not comparable`.
    pub outcome: String,
    /// What came of it, one sentence.
    pub sentence: String,
    /// Why the numbers cannot be relied upon, if so.
    pub invalid: Vec<String>,
    /// One row per load and metric.
    pub rows: Vec<ComparisonRow>,
    /// Figures: titles and SVG.
    pub figures: Vec<(String, String)>,
}

/// One metric of both.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ComparisonRow {
    /// Which load.
    pub load: String,
    /// Which metric, with its unit: `read throughput (op/s)`.
    pub metric: String,
    /// Of the first group.
    pub a: f64,
    /// Of the second.
    pub b: f64,
    /// b divided by a.
    pub ratio: f64,
    /// 95 % interval of the ratio, where there are repeats.
    pub interval: Option<(f64, f64)>,
    /// `better`, `worse`, `no significant difference`, `one run each: no statistics`.
    pub outcome: String,
}

/// An evaluation in a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct EvaluationRow {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// When it started.
    pub started_unix_ms: u64,
    /// `completed`, `failed`, `interrupted`, `running`.
    pub state: String,
    /// Whether it is VALID.
    pub valid: Option<bool>,
    /// Its verdict, one line.
    pub headline: String,
    /// How many runs it has.
    pub runs: u64,
}

/// Something that somebody did.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditRow {
    /// Its number.
    pub id: u64,
    /// When.
    pub unix_ms: u64,
    /// The name of the token, or empty.
    pub by: String,
    /// From where.
    pub address: String,
    /// What: `submit`, `cancel`, `change`, `resubmit`, `delete run`, `login`, `refused`, `driver joined`, `driver lost`, ...
    pub what: String,
    /// On what, and how: never a secret.
    pub detail: String,
}
