//! A work, described in the load core's own terms.

use crate::pacing::Pacing;
use crate::source::SourcePlan;
use crate::stopping::Stop;

/// Everything that the load core needs to know of a work. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Logical clients; at least 1. In an open loop: the most operations in flight at once.
    pub workers: u32,
    /// When operations are due.
    pub pacing: Pacing,
    /// When the work is over.
    pub stop: Stop,
    /// Which operations, on what.
    pub source: SourcePlan,
    /// Number of actions that the source's operations refer to.
    pub actions: u16,
    /// The run's seed.
    pub seed: u64,
    /// Numbers that name this work's random streams within the run: stage and work.
    pub stream: [u64; 2],
}
