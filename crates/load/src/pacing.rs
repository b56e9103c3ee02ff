//! When operations are due: pure arithmetic over elapsed time and counts, no clock.
//!
//! In a closed loop the next operation is due when the last one ended (plus think time). In an open loop
//! due times are fixed in advance, whatever the target does, so that waiting counts (no coordinated
//! omission). The rate may change over time; due times are found by inverting its integral.

/// When operations are due.
#[derive(Clone, Debug, PartialEq)]
pub enum Pacing {
    /// A worker issues its next operation when the last one ended, after a pause.
    Closed {
        /// Pause between two operations of a worker, nanoseconds.
        think_ns: u64,
    },
    /// Operations are due at times fixed in advance.
    Open {
        /// The rate of the whole work over time.
        rate: Rate,
        /// How due times spread around it.
        arrivals: Arrivals,
    },
}

/// How the due times of an open loop spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As a Poisson process: independent of each other, as the requests of many users are.
    Poisson,
}

/// Operations per second over time: straight lines between points.
///
/// Two points at the same time make a step. Before the first point the rate is the first point's, after
/// the last the last's.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// (nanoseconds since the work's start, operations per second), times ascending; never empty.
    pub points: Vec<(u64, f64)>,
}
