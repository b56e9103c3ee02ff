//! Figures that users know a workload by, as the workload declares them: how each follows from what was counted.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A figure of a work, by the name that its users know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DeclaredFigure {
    /// The work's name.
    pub work: String,
    /// Its name: `NOPM`.
    pub name: String,
    /// What it is, in a few words without a full stop.
    pub about: String,
    /// How it follows from what was counted.
    pub of: FigureOf,
}

/// What a figure is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureOf {
    /// Transactions that the stage's databases say they committed, per minute from the load's start to its last operation.
    #[default]
    CommitsPerMinute,
    /// Operations that succeeded within the window, per minute of it.
    PerMinute {
        /// Their label.
        operation: String,
    },
    /// Operations that succeeded within the window, per minute of it, as a share of the most that can be.
    ShareOfMost {
        /// Their label.
        operation: String,
        /// The most per minute, in thousandths.
        most_milli_per_minute: u64,
    },
    /// The geometric mean of the mean response times of all operations that succeeded at least once, if none of the others failed.
    GeometricMean,
    /// From the load's start to the end of its last operation.
    Elapsed,
    /// The power of a run that is like TPC-H's power test (clause 5.4.1).
    TpchPower {
        /// The scale factor, in thousandths.
        scale_milli: u64,
    },
    /// The throughput of one that is like its throughput test (clause 5.4.2).
    TpchThroughput {
        /// The scale factor, in thousandths.
        scale_milli: u64,
        /// Streams of queries.
        streams: u32,
    },
    /// Both in one number: of this work's throughput, and of the last power before it at the same scale (clause 5.4.3).
    TpchComposite {
        /// The scale factor, in thousandths.
        scale_milli: u64,
        /// Streams of queries.
        streams: u32,
    },
    /// A percentile of the response times within the window.
    Percentile {
        /// The operations' label.
        operation: String,
        /// Which: 90 is the 90th.
        percent: u8,
        /// What it may be at most, as far as there is a limit, nanoseconds.
        limit_ns: Option<u64>,
    },
}
