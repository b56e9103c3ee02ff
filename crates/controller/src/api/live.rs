//! Parts of what is told of a run while it goes on.

use serde::{Deserialize, Serialize};
use tidemark_measure::host::Utilization;
use utoipa::ToSchema;

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
    /// CPU utilization of the generator threads, 0 to 1.
    pub busy: f32,
}

/// A node in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveNode {
    /// Its name.
    pub name: String,
    /// Whether it generates load.
    pub generates: bool,
    /// When.
    pub unix_ms: u64,
    /// How busy it was.
    #[serde(flatten)]
    pub utilization: Utilization,
}

/// Something that happened at a moment of a live run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveMark {
    /// When.
    pub unix_ms: u64,
    /// What.
    pub kind: LiveMarkKind,
    /// Which driver, or empty.
    pub driver: String,
    /// The same in words: `driver-2 is silent`.
    pub text: String,
}

/// What a mark of a live run is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveMarkKind {
    /// A driver is silent: what it does is not in the numbers until it is back.
    #[default]
    DriverSilent,
    /// It is back, and nothing was lost.
    DriverBack,
    /// It is given up.
    DriverLost,
    /// Operations begin to fail.
    Failures,
    /// A user cancelled.
    Cancelled,
}

/// An evaluation in progress: arms x loads x levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveBoard {
    /// Its number in the store, once there is one.
    pub evaluation: Option<u64>,
    /// Runs that are done.
    pub done: u64,
    /// Runs in all; null while a search decides as it goes.
    pub of: Option<u64>,
    /// What happens between runs: `setting up disk`; or empty.
    pub phase: String,
    /// The run in progress.
    pub now: Option<LivePlace>,
    /// How often each cell is measured, at most.
    pub repeats: u32,
    /// The arms, the baseline first.
    pub arms: Vec<String>,
    /// The loads.
    pub loads: Vec<LiveLoad>,
    /// The cells that were measured so far.
    pub cells: Vec<LiveCell>,
}

/// A load of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveLoad {
    /// Its name.
    pub name: String,
    /// Its levels as the document lists them: `workers 8`; none of a search.
    pub levels: Vec<String>,
    /// Whether a search finds its levels.
    pub searched: bool,
}

/// The place of a run in an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LivePlace {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// The level: `workers 8`, or empty.
    pub level: String,
    /// Which repeat, from 1.
    pub repeat: u32,
}

/// A cell of an evaluation as far as it is measured. The numbers are those of its report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LiveCell {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// What of the load, where several things are measured; or empty.
    pub subject: String,
    /// The level: `workers 8`, or empty.
    pub level: String,
    /// Its runs, in the order of repeats.
    pub runs: Vec<u64>,
    /// Operations per second: the mean of its repeats.
    pub throughput: f64,
    /// Ends of the 95 % confidence interval of that mean; null with a single repeat.
    pub throughput_interval: Option<(f64, f64)>,
    /// 99th percentile of the response time: the mean of its repeats, microseconds; null where it is not known.
    pub p99_us: Option<f64>,
    /// Ends of its interval.
    pub p99_interval_us: Option<(f64, f64)>,
    /// Operations that failed.
    pub failed: u64,
    /// Whether it meets the service level; null without one, or where that cannot be told.
    pub meets: Option<bool>,
    /// `INVALID` or `overloaded`, or empty.
    pub objection: String,
}
