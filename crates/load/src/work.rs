//! A work, described in the load core's own terms.

use crate::pacing::Pacing;
use crate::source::SourcePlan;
use crate::stopping::Stop;

/// Everything that the load core needs to know of a work. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Logical clients; at least 1. In an open loop: the most operations in flight at once.
    pub workers: u32,
    /// Operations of one worker in flight at once, at least 1: the queue depth of block storage. Only of a closed
    /// loop: an open loop has as many in flight as are due, up to `workers` times `depth`.
    pub depth: u32,
    /// When operations are due.
    pub pacing: Pacing,
    /// When the work is over.
    pub stop: Stop,
    /// Which operations, on what.
    pub source: SourcePlan,
    /// What is done once on every space when the load is over.
    pub finale: Option<Finale>,
    /// Number of actions that the source's operations refer to.
    pub actions: u16,
    /// The run's seed.
    pub seed: u64,
    /// Numbers that name this work's random streams within the run: stage and work.
    pub stream: [u64; 2],
}

/// An operation done once on every space of a range after the end of the load, divided among the workers: an
/// end-of-run sync. It is recorded like any other; it ends after the window, so it counts in no throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finale {
    /// Which action.
    pub action: u16,
    /// Lowest and highest space.
    pub spaces: (u64, u64),
}
