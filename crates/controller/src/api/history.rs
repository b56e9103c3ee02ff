//! The history: runs with their figures and what users wrote beside them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What users wrote beside a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// Free text, at most 4,000 characters.
    #[serde(default)]
    pub note: String,
    /// Words to find it by: at most 20 of 40 characters, without commas.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A run in a few numbers, all data operations together: the judge's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunFigures {
    /// What was asked for: `70 % read / 30 % write, 32 workers`.
    pub load: String,
    /// Operations per second.
    pub throughput: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Median response time, microseconds; null where it is not known.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// Operations per second over the time of the run, in at most 48 steps.
    pub shape: Vec<f32>,
}

/// A line of the history: a run, or a submission that ended without one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryRow {
    /// The run; null where the submission ended before it had one.
    pub run: Option<u64>,
    /// The submission that it came from.
    pub submission: Option<u64>,
    /// The document's name.
    pub name: String,
    /// When it started.
    pub started_unix_ms: u64,
    /// How long it took, milliseconds.
    pub elapsed_ms: u64,
    /// A run's state, or a submission's: `completed`, `failed`, `interrupted`, `cancelled`, `running`.
    pub state: String,
    /// Why it failed, where there is no run that says so.
    pub reason: String,
    /// Whether its result is VALID; null until judged.
    pub valid: Option<bool>,
    /// The result in one line.
    pub headline: String,
    /// Measured operations.
    pub operations: u64,
    /// Failures among them.
    pub failed: u64,
    /// Its numbers; null while it goes on, and where there are none.
    pub figures: Option<RunFigures>,
    /// The evaluation it belongs to.
    pub evaluation: Option<u64>,
    /// The name of that evaluation, or empty.
    pub evaluation_name: String,
    /// Its arm there, or empty.
    pub arm: String,
    /// Its load there, or empty.
    pub load: String,
    /// Its level there: `workers 8`, or empty.
    pub level: String,
    /// Which repeat, from 1; 0 outside evaluations.
    pub repeat: u32,
    /// What users wrote beside it.
    pub remark: Remark,
}

/// A page of the history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// How many lines match in all.
    pub total: u64,
    /// Those of this page.
    pub rows: Vec<HistoryRow>,
    /// All tags in use, at most 200.
    pub tags: Vec<String>,
}

/// What the history is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryOrder {
    /// When it started.
    #[default]
    Started,
    /// Its name.
    Name,
    /// How long it took.
    Elapsed,
    /// Operations per second.
    Throughput,
    /// The 99th percentile.
    P99,
    /// Failures.
    Failed,
}
