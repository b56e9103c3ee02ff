//! What goes over HTTP, as types. The OpenAPI document is generated from these, and the console's TypeScript types from it.
//!
//! All paths are below `/api/v1`. Times are milliseconds since 1970 UTC where a name says `unix_ms`, seconds of load count
//! from the work's start. Errors are [`Trouble`] with a status of 400 (malformed), 401 (no or wrong token), 403 (role), 404,
//! 409 (conflicts with the state), 413 (too large), 415, 422 (the document is wrong: [`Trouble::problems`]), 429 (too many), 503 (full or
//! shutting down).
//!
//! | method and path | role | body -> reply |
//! |---|---|---|
//! | `GET /info` | viewer | -> [`Info`] |
//! | `POST /session`, `DELETE /session` | none | [`Login`] -> [`Session`]; ends the session that the header shows |
//! | `POST /session/owner` | none | [`Login`] -> [`Owner`] |
//! | `POST /tickets` | viewer | [`TicketFor`] -> [`Ticket`] |
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
//! | `GET /targets` | viewer | -> [`TargetForm`]s |
//! | `POST /check` | viewer | [`CheckRequest`] -> [`Check`] |
//! | `GET /runs?limit=N&before=ID&name=TEXT` | viewer | -> [`RunRow`]s, the newest first |
//! | `GET /history?limit=N&offset=N&text=T&...` | viewer | -> [`History`]: runs, and submissions that ended without one |
//! | `GET /runs/{id}/remark` | viewer | -> [`Remark`] |
//! | `PUT /runs/{id}/remark` | operator | [`Remark`] -> [`Remark`] |
//! | `GET /runs/{id}/archive`, `GET /runs/{id}/document`, `GET /runs/{id}/log` | viewer | -> COSBench's archive, the document, the log: files |
//! | `GET /runs/{id}` | viewer | -> the run as `tidemark report --format json` has it |
//! | `DELETE /runs/{id}` | operator | -> 204 |
//! | `GET /runs/{id}/report?format=html,md,csv,series-csv,json` | viewer | -> the file |
//! | `GET /runs/{id}/figures` | viewer | -> [`Figure`]s |
//! | `GET /runs/{id}/figures/{name}.svg` | viewer | -> the figure as SVG |
//! | `GET /matrix?limit=N&before=ID` | viewer | -> [`MatrixRow`]s, one per run, stage, work and operation |
//! | `GET /compare?a=1,2&b=3,4&margin=5%` | viewer | -> [`Comparison`] |
//! | `GET /evaluations` | viewer | -> [`EvaluationRow`]s |
//! | `GET /evaluations/{id}/report?format=html,md,csv,json` | viewer | -> the file |
//! | `GET /audit?limit=N&before=ID` | operator | -> [`AuditRow`]s |
//! | `GET /openapi.json` | none | -> this, as OpenAPI 3.1 |
//! | `GET /link` | driver | WebSocket of a driver |
//!
//! Outside it: `GET /metrics` (OpenMetrics, viewer), `POST /login` (viewer) -> the code of an address that logs a browser in once,
//! `GET /login?code=CODE` (none) -> the page that does so, COSBench's `cli/*.action` with and without `/controller` before it,
//! and the console at `/`.

mod comparison;
mod forms;
mod history;
mod live;

pub use comparison::{
    ComparedOperation, ComparedRun, ComparedSecond, ComparedSide, Comparison, ComparisonRow, MetricUnit,
};
pub use forms::{Form, FormKey, TargetForm};
pub use history::{History, HistoryOrder, HistoryRow, Remark, RunFigures};
pub use live::{
    LiveBoard, LiveCell, LiveLoad, LiveMark, LiveMarkKind, LiveNode, LiveOperation, LivePlace, LiveShare,
};
use serde::{Deserialize, Serialize};
use tidemark_measure::host::{Host, Utilization};
pub use tidemark_measure::record::State as RunState;
use utoipa::ToSchema;

/// The role of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read everything.
    Viewer,
    /// Also submit, cancel, reorder and delete.
    Operator,
    /// Join as a driver, nothing else.
    Driver,
}

/// The controller, and the caller's role.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Info {
    /// The controller's name.
    pub name: String,
    /// Tidemark's version.
    pub version: String,
    /// The caller's role.
    pub role: Role,
    /// Name of the caller's token; empty if the controller needs none.
    pub user: String,
    /// When the controller started.
    pub started_unix_ms: u64,
    /// Largest document accepted, bytes.
    pub largest_document: u64,
    /// SHA-256 of its certificate, hexadecimal, by which drivers know it; null without TLS.
    pub fingerprint: Option<String>,
    /// Problems that an operator should know of: `cannot write to the result store: disk full`.
    pub troubles: Vec<String>,
}

/// What somebody logs in with.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// A token.
    Token(String),
    /// The code of a login address, which is good once.
    Code(String),
}

/// A session, which stands for the token of whoever logged in.
#[derive(Clone, Serialize, ToSchema)]
pub struct Session {
    /// The session's key: it is sent as a token is, `Authorization: Bearer KEY`.
    pub key: String,
    /// Who logged in.
    pub owner: Owner,
}

/// Whose token it is.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Owner {
    /// Name of the token.
    pub user: String,
    /// Its role.
    pub role: Role,
}

/// What a ticket is to be good for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TicketFor {
    /// The address without scheme, host and ticket: `/api/v1/runs/12/report?format=csv`.
    pub address: String,
}

/// Lets a browser fetch one address, once and soon, without a header.
#[derive(Clone, Serialize, ToSchema)]
pub struct Ticket {
    /// The address with its ticket.
    pub address: String,
}

/// An error reply.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Trouble {
    /// What happened, and what to do next.
    pub message: String,
    /// Errors and warnings in a submitted document, in text order.
    #[serde(default)]
    pub problems: Vec<Problem>,
}

/// An error or warning in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// True for a warning: the document still runs.
    pub warning: bool,
    /// True for a warning that holds for every document of its format, whatever this one says.
    pub general: bool,
    /// Line, from 1; 0 if it concerns the whole document.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Length of the marked text, characters.
    pub length: u32,
    /// What is wrong.
    pub message: String,
    /// How to fix it, or empty.
    pub help: String,
}

/// The overview page.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// Drivers that are connected or were recently, by name.
    pub drivers: Vec<Driver>,
    /// Running submissions.
    pub active: Vec<Submission>,
    /// Queued submissions, in starting order.
    pub queue: Vec<Submission>,
    /// Submissions that ended recently, newest first; at most 20.
    pub recent: Vec<Submission>,
    /// Problems that an operator should know of.
    pub troubles: Vec<String>,
}

/// A driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: DriverState,
    /// Its machine.
    #[serde(flatten)]
    pub host: Host,
    /// Address it connects from.
    pub address: String,
    /// Tidemark's version there.
    pub version: String,
    /// How busy that is.
    #[serde(flatten)]
    pub utilization: Utilization,
    /// Uncertainty of its clock offset (half the round-trip time), microseconds; `null` while it has answered no ping.
    pub clock_error_us: Option<f64>,
    /// Milliseconds since its last message.
    pub silent_ms: u64,
    /// When it joined.
    pub joined_unix_ms: u64,
    /// The submission it runs, if any.
    pub submission: Option<u64>,
    /// What it still ends, if its state is `ending`.
    pub ending: Option<StillEnding>,
}

/// A run that nobody waits for any more, and that has not ended on a driver yet: it is given a few seconds, and its process is killed
/// then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StillEnding {
    /// The submission whose run that is, where it is known.
    pub submission: Option<u64>,
    /// For how long, milliseconds.
    pub ms: u64,
}

/// The state of a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverState {
    /// Connected and free.
    #[default]
    Idle,
    /// Runs a submission.
    Busy,
    /// Has no submission, but has not ended the run before: it takes no other one until then.
    Ending,
    /// Not responding; it may come back.
    Silent,
    /// Disconnected.
    Gone,
}

/// A submitted document and its outcome.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    /// Its number: submission w7 is 7.
    pub id: u64,
    /// Name of the document.
    pub name: String,
    /// `COSBench XML`, `Tidemark YAML`, `fio job file`, `Tidemark evaluation`.
    pub format: String,
    /// Name of the submitter's token.
    pub by: String,
    /// Higher priorities start first.
    pub priority: i32,
    /// Its state.
    pub state: SubmissionState,
    /// Why it is waiting, failed or was interrupted, or empty.
    pub reason: String,
    /// When it was submitted.
    pub submitted_unix_ms: u64,
    /// When it started.
    pub started_unix_ms: Option<u64>,
    /// When it ended.
    pub ended_unix_ms: Option<u64>,
    /// Expected duration, milliseconds, if known.
    pub expected_ms: Option<u64>,
    /// Progress, 0 to 1, if known.
    pub progress: Option<f32>,
    /// The running stage, or empty.
    pub stage: String,
    /// The drivers it runs on, or those it asks for by name.
    pub drivers: Vec<String>,
    /// Number of its stored run, once there is one; of an evaluation, the latest.
    pub run: Option<u64>,
    /// Number of its stored evaluation, once there is one.
    pub evaluation: Option<u64>,
    /// Whether its result is VALID, once judged.
    pub valid: Option<bool>,
    /// The result in one line, or empty.
    pub headline: String,
    /// Its operations, for lists: `read, write`.
    pub operations: String,
    /// While it runs: successful operations in each of the latest seconds, at most 90, newest last.
    #[serde(default)]
    pub rates: Vec<u64>,
}

/// The state of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubmissionState {
    /// Waiting in the queue.
    #[default]
    Queued,
    /// Running.
    Running,
    /// Ended successfully.
    Completed,
    /// Failed.
    Failed,
    /// Cancelled by a user.
    Cancelled,
    /// The controller stopped during the run; partial results are kept.
    Interrupted,
}

/// A document to run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// The document: COSBench XML, Tidemark YAML or a fio job file.
    pub document: String,
    /// Higher priorities start first; -100 to 100.
    #[serde(default)]
    pub priority: i32,
    /// Drivers to run on, by name; none: the document decides.
    #[serde(default)]
    pub drivers: Vec<String>,
    /// Number of drivers to run on, any that are free; none: the document decides.
    #[serde(default)]
    pub driver_count: Option<u32>,
    /// A seed that replaces the document's.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Skip the check that the targets respond.
    #[serde(default)]
    pub skip_preflight: bool,
    /// The submission that the document was made from: in lines that are unchanged, values hidden there (`***`) are put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

/// A new priority or position in the queue.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The new priority, -100 to 100.
    #[serde(default)]
    pub priority: Option<i32>,
    /// Move it directly before this submission and give it the same priority.
    #[serde(default)]
    pub before: Option<u64>,
}

/// How to cancel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Stop at once without cleanup, instead of ending the load, keeping the results and cleaning up.
    #[serde(default)]
    pub at_once: bool,
}

/// A document to check.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// The document.
    pub document: String,
    /// The submission that it was made from, as in [`Submit::from`].
    #[serde(default)]
    pub from: Option<u64>,
}

/// The result of checking a document.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// Whether the document can run.
    pub ok: bool,
    /// Its format.
    pub format: String,
    /// Its name.
    pub name: String,
    /// Errors and warnings.
    pub problems: Vec<Problem>,
    /// What it does, one sentence per line.
    pub explanation: Vec<String>,
    /// Its stages.
    pub stages: Vec<CheckedStage>,
    /// Expected duration, milliseconds, if known.
    pub expected_ms: Option<u64>,
    /// Bytes it will store, if known.
    pub bytes: Option<u64>,
}

/// A stage of a document.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CheckedStage {
    /// Its name.
    pub name: String,
    /// Its works, one line each: `64 workers: 70 % read, 30 % write, for 60 s`.
    pub works: Vec<String>,
    /// Expected duration, milliseconds, if known.
    pub expected_ms: Option<u64>,
}

/// Live data of a run, for a page that opens now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct LiveRun {
    /// The submission.
    pub submission: u64,
    /// Its run, once there is one.
    pub run: Option<u64>,
    /// Its stages.
    pub stages: Vec<LiveStage>,
    /// Latest seconds of all works; at most 600 per work and 3,600 in all.
    pub seconds: Vec<LiveSecond>,
    /// Recent samples of the nodes.
    pub nodes: Vec<LiveNode>,
    /// Warnings for the user, newest last.
    pub troubles: Vec<String>,
    /// What happened when: drivers that fell silent, failures, a cancellation; in order.
    #[serde(default)]
    pub marks: Vec<LiveMark>,
    /// Of an evaluation: where it stands. Everything else is about the run that is in progress.
    #[serde(default)]
    pub board: Option<LiveBoard>,
    /// Number of the last event included: continue with later ones.
    pub last_event: u64,
}

/// A stage of a live run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveStage {
    /// `s1-init`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: RunState,
    /// Why it failed, or empty.
    pub reason: String,
    /// When it started.
    pub started_unix_ms: Option<u64>,
    /// When it ended.
    pub ended_unix_ms: Option<u64>,
    /// Expected duration, milliseconds, if known.
    pub expected_ms: Option<u64>,
    /// Total number of operations, if fixed.
    pub expected_operations: Option<u64>,
    /// Operations done so far.
    pub operations: u64,
    /// Its works.
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
    /// When what is measured begins, milliseconds since its start; null where that depends on the load.
    #[serde(default)]
    pub window_start_ms: Option<u64>,
    /// When it ends; null where that depends on the load.
    #[serde(default)]
    pub window_end_ms: Option<u64>,
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
    /// When it was reported.
    pub unix_ms: u64,
    /// One entry per operation of the work.
    pub operations: Vec<LiveOperation>,
    /// Operations that ended outside the window.
    pub unmeasured: u64,
    /// Operations in flight at its end.
    pub in_flight: u32,
    /// Operations due but not sent at its end.
    pub backlog: u64,
    /// CPU utilization of the generator threads, 0 to 1.
    pub busy: f32,
    /// Each driver's share.
    pub drivers: Vec<LiveShare>,
    /// Drivers that are silent: what they did in this second is not in it. The same second comes again when it is complete.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// An event of the stream: the SSE field `event` is the variant's name, `id` counts up, `data` is the content as JSON.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Live {
    /// The overview changed; at most once a second.
    Overview(Box<Overview>),
    /// A second of a work is complete.
    Second(Box<LiveSecond>),
    /// A stage started, progressed or ended: all stages.
    Stages(Vec<LiveStage>),
    /// Nodes were sampled.
    Nodes(Vec<LiveNode>),
    /// A warning for the user.
    Trouble(String),
    /// Something happened that charts mark.
    Mark(LiveMark),
    /// An evaluation came further.
    Board(Box<LiveBoard>),
    /// The submission ended.
    Ended(Box<Submission>),
    /// The reader was too slow and missed events: fetch `live` again.
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
    /// Its state.
    pub state: RunState,
    /// Whether its result is VALID; null until judged.
    pub valid: Option<bool>,
    /// Measured operations.
    pub operations: u64,
    /// Failures among them.
    pub failed: u64,
    /// The result in one line.
    pub headline: String,
    /// The evaluation it belongs to.
    pub evaluation: Option<u64>,
    /// The submission it came from.
    pub submission: Option<u64>,
}

/// A figure of a stored run, as in its report.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Figure {
    /// Its name in URLs.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Text alternative.
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
    pub state: RunState,
    /// Whether the run's result is VALID.
    pub valid: Option<bool>,
    /// `s3-main`.
    pub stage: String,
    /// The work's name.
    pub work: String,
    /// What the work is for: `normal`, `prepare`, ...
    pub kind: String,
    /// Whether the work measures, rather than to make ready or to clean up.
    pub measures: bool,
    /// Operations of each worker in flight at once.
    pub depth: u32,
    /// The operation's name.
    pub operation: String,
    /// What it is counted as: `read`, `write`, `delete`, `list`, ...
    pub sample: String,
    /// Its share of the mix, percent.
    pub weight: f64,
    /// Workers of the work.
    pub workers: u32,
    /// Drivers that shared it; 1 without drivers.
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
    /// The newest evaluation that the run belongs to.
    pub evaluation: Option<u64>,
    /// Its arm there; empty outside evaluations, as is its level.
    pub arm: String,
    /// Its level there: `workers 64`.
    pub level: String,
    /// Which repeat; 0 outside evaluations.
    pub repeat: u32,
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
    /// Its state.
    pub state: RunState,
    /// Whether it is VALID.
    pub valid: Option<bool>,
    /// Its verdict, one line.
    pub headline: String,
    /// How many runs it has.
    pub runs: u64,
}

/// An entry of the audit log.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct AuditRow {
    /// Its number.
    pub id: u64,
    /// When.
    pub unix_ms: u64,
    /// Name of the user's token, or empty.
    pub by: String,
    /// Address it came from.
    pub address: String,
    /// What: `submit`, `cancel`, `change`, `resubmit`, `delete run`, `login`, `refused`, `driver joined`, `driver lost`, ...
    pub what: String,
    /// Details; never a secret.
    pub detail: String,
}
