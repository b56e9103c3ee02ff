//! What a Trino cluster is made of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidemark_measure::units::{binary_bytes, count};
use tidemark_trino::CATALOG;

use super::VERSION;
use super::storage::{Bucket, Keys};
use crate::daemon::Daemon;
use crate::record::Made;
use crate::system::System;

/// What the cluster is made of. All of it may be changed while the cluster does not run: whatever is to last lies in
/// the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// The port of each process on 127.0.0.1, the coordinator's first.
    pub(super) ports: Vec<u16>,
    /// The most that the heap of each process may take, in bytes.
    pub(super) heap_bytes: u64,
    /// The directory of the Java that runs them.
    pub(super) jdk: PathBuf,
    /// Where tables and catalogue lie.
    #[serde(flatten)]
    pub(super) bucket: Bucket,
}

impl Made for Shape {
    type Credentials = Keys;

    const ASKED: &'static str = "trino";

    fn is_of(system: System) -> bool {
        system == System::Trino
    }

    fn system(&self) -> System {
        System::Trino
    }

    fn addresses(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([("endpoint", self.endpoint()), ("catalog", CATALOG.to_owned())])
    }
}

impl Shape {
    /// How many workers there are besides the coordinator.
    pub(super) fn workers(&self) -> usize {
        self.ports.len().saturating_sub(1)
    }

    /// All daemons of the cluster, in the order of their start, which is that of their ports.
    pub(super) fn daemons(&self) -> Vec<Daemon> {
        std::iter::once(Daemon::Coordinator).chain((1..=self.workers()).map(Daemon::Worker)).collect()
    }

    /// The daemons that do the work of queries.
    pub(super) fn working(&self) -> Vec<Daemon> {
        let all = self.daemons();
        if self.workers() == 0 { all } else { all[1..].to_vec() }
    }

    /// The daemons and their ports.
    pub(super) fn nodes(&self) -> Vec<(Daemon, u16)> {
        self.daemons().into_iter().zip(self.ports.iter().copied()).collect()
    }

    /// Where clients find the coordinator.
    pub(super) fn endpoint(&self) -> String {
        let port = self.ports.first().copied().unwrap_or_default();
        format!("http://127.0.0.1:{port}")
    }

    /// What it is, in words for a report.
    pub(super) fn labels(&self) -> Vec<(String, String)> {
        let nodes = match self.workers() {
            0 => "a coordinator, which also works".to_owned(),
            1 => "a coordinator and 1 worker".to_owned(),
            several => format!("a coordinator and {} workers", count(several as u64)),
        };
        let heap = format!("{} in each process", binary_bytes(self.heap_bytes));
        [("Trino", format!("{VERSION}, {nodes}")), ("heap", heap), ("tables", self.bucket.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec()
    }
}
