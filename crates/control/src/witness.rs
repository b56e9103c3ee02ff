//! Who watches what happens around a run, such as to its pods.

use std::time::Instant;
use tidemark_measure::record::Run;

/// Watches what happens around runs. It is asked when a run has ended.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// Enters into the record of a run that began at `run_start` what has happened since, in order, and what could not be seen.
    fn tell(&self, run_start: Instant, run: &mut Run);
}
