//! Two groups of runs beside each other.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A comparison of two groups of runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Comparison {
    /// `better`, `worse`, `better in part, worse in part`, `cannot tell`, `not tested`; with a margin also `equal within the
    /// margin`, `not worse than the margin`, `inconclusive`.
    pub outcome: String,
    /// The outcome in one sentence.
    pub sentence: String,
    /// Whether anything was done on both sides that can be compared.
    pub comparable: bool,
    /// The share within which the groups count as equal, if one was asked for.
    pub margin: Option<f64>,
    /// Why the numbers are unreliable, if they are.
    pub invalid: Vec<String>,
    /// One row per load and metric.
    pub rows: Vec<ComparisonRow>,
    /// One entry per load and operation of either group.
    pub operations: Vec<ComparedOperation>,
    /// Figures: titles and SVG.
    pub figures: Vec<(String, String)>,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MetricUnit {
    /// Operations per second.
    #[default]
    OperationsPerSecond,
    /// Microseconds.
    Microseconds,
}

/// One metric of both groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ComparisonRow {
    /// Which load.
    pub load: String,
    /// Which metric: `throughput`, `mean response time`.
    pub metric: String,
    /// Its unit.
    pub unit: MetricUnit,
    /// Of the first group.
    pub a: f64,
    /// Of the second.
    pub b: f64,
    /// b divided by a.
    pub ratio: f64,
    /// Confidence interval of the ratio, all rows together 95 %; null without repeats.
    pub interval: Option<(f64, f64)>,
    /// The smallest difference that would be found in four of five cases, as a share; null without repeats.
    pub detectable: Option<f64>,
    /// `better`, `worse`, `cannot tell below 4.2 %`, `too few repeats`.
    pub outcome: String,
}

/// One operation of one load, in both groups.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ComparedOperation {
    /// Which load.
    pub load: String,
    /// The operation's name.
    pub operation: String,
    /// In the first group; null where it was not done.
    pub a: Option<ComparedSide>,
    /// In the second group; null where it was not done.
    pub b: Option<ComparedSide>,
}

/// What a group of runs did of an operation. Latencies are response times, microseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ComparedSide {
    /// Its selectors and settings as the document wrote them.
    pub config: String,
    /// Workers of the work.
    pub workers: u32,
    /// Successes of all runs.
    pub ok: u64,
    /// Failures of all runs.
    pub failed: u64,
    /// Operations per second: mean of the runs.
    pub throughput: f64,
    /// Bytes per second: mean of the runs.
    pub bandwidth: f64,
    /// Mean latency over the operations of all runs; null where it is not known.
    pub mean_us: Option<f64>,
    /// Shares of the operations of all runs, 0 to 1, and the latency that they do not exceed; ascending.
    pub percentiles_us: Vec<(f64, f64)>,
    /// Each run, second by second.
    pub runs: Vec<ComparedRun>,
}

/// One run of a group, second by second.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ComparedRun {
    /// The run.
    pub run: u64,
    /// The whole seconds of its window; at most 600, each of them the mean of as many as it takes.
    pub seconds: Vec<ComparedSecond>,
}

/// A second of an operation, or several.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ComparedSecond {
    /// When it began, seconds since the work's start.
    pub at: u32,
    /// Successes per second.
    pub throughput: f64,
    /// 99th percentile of the latency, microseconds; of several seconds, the largest.
    pub p99_us: f64,
}
