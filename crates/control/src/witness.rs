//! Who watches what happens around a run, such as to its pods.

use std::time::Instant;
use tidemark_measure::observation::Node;
use tidemark_measure::record::Run;
use tidemark_observe::{CephCluster, RemoteNode};

/// Watches what happens around runs.
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// The nodes to observe in a run that is about to begin, besides those of its document.
    fn nodes(&self) -> Nodes;

    /// Enters into the record of a run that began at `run_start` what has happened since, in order, and what could not be seen. It is asked
    /// when the run has ended.
    fn tell(&self, run_start: Instant, run: &mut Run);
}

/// Nodes around a run.
// Not `Debug`: it holds tokens.
#[derive(Default)]
pub struct Nodes {
    /// Where they are observed.
    pub observed: Vec<RemoteNode>,
    /// Those of which nothing will be known, with why in their gaps.
    pub missing: Vec<Node>,
    /// A Ceph cluster to ask.
    pub ceph: Option<CephCluster>,
}
