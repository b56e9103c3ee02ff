//! The validated plan: what runs, in which order, on what. Every document format ends here.

use crate::job::Job;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tidemark_kubernetes::Pods;
use tidemark_load::work::Work as Load;
pub use tidemark_measure::kind::{OperationClass, WorkKind};
use tidemark_measure::record::{Cell, Note};

/// A validated document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The workload's name; not empty.
    pub name: String,
    /// Its description, or empty.
    pub description: String,
    /// Where its random choices come from.
    pub seed: u64,
    /// A script around the whole run, as the document wrote it: `script.sh(arguments)`.
    pub trigger: Option<String>,
    /// Stages, in the order in which they run.
    pub stages: Vec<Stage>,
    /// Notes on behaviour that the author may not expect, mostly on compatibility.
    pub notes: Vec<Note>,
    /// What is observed during the run, besides the generator itself.
    pub observe: Observe,
    /// How it is spread over the drivers of a controller.
    pub drivers: Drivers,
}

/// What is observed during the load, besides the generator itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observe {
    /// Addresses of `tidemark observe` on other nodes: `http://10.0.0.2:9750`.
    pub nodes: Vec<String>,
    /// Names of processes of the system under test on this node, `ceph-osd`, each with an argument behind it if only those
    /// that have it are meant.
    pub processes: Vec<String>,
    /// Directories on this node with admin sockets of Ceph daemons: `/var/run/ceph`.
    pub ceph_sockets: Vec<PathBuf>,
}

/// How a plan is spread over the drivers of a controller. A run in one process has no use for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drivers {
    /// Which drivers take part.
    pub wanted: Wanted,
    /// What happens to a stage that loses one.
    pub on_loss: OnLoss,
    /// A driver that is silent for this long is lost, nanoseconds.
    pub lost_after_ns: u64,
    /// What they are on Kubernetes, if the document says so. Drivers have no use for it.
    #[serde(skip)]
    pub pods: Option<Pods>,
}

impl Default for Drivers {
    fn default() -> Self {
        Self { wanted: Wanted::All, on_loss: OnLoss::Stop, lost_after_ns: 10_000_000_000, pods: None }
    }
}

/// Which drivers a plan requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// All that are connected when it begins.
    #[default]
    All,
    /// This many of them, whichever are free.
    Count(u32),
    /// These.
    Named(Vec<String>),
}

/// What happens to a stage that loses a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnLoss {
    /// It ends and has failed; only the stages that clean up still run.
    #[default]
    Stop,
    /// It goes on with the drivers that are left. A work that has to do each of its operations once fails all the same.
    Continue,
}

impl Observe {
    /// Adds what another one names and this one does not.
    pub fn join(&mut self, other: &Observe) {
        fn add<T: Clone + PartialEq>(to: &mut Vec<T>, from: &[T]) {
            for item in from {
                if !to.contains(item) {
                    to.push(item.clone());
                }
            }
        }
        add(&mut self.nodes, &other.nodes);
        add(&mut self.processes, &other.processes);
        add(&mut self.ceph_sockets, &other.ceph_sockets);
    }
}

impl Plan {
    /// The same plan with other random choices.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        for work in self.stages.iter_mut().flat_map(|stage| &mut stage.works) {
            work.load.seed = seed;
        }
        self
    }
}

/// One stage: works that run side by side, then a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name; not empty.
    pub name: String,
    /// Its number in the document, from 1, where stages that the reader has added share those of others; `None`: its place
    /// in the plan.
    pub number: Option<usize>,
    /// Its works; empty for a stage that only waits.
    pub works: Vec<Work>,
    /// Pause after its works, nanoseconds (COSBench `closuredelay`; the whole of a `delay` stage).
    pub pause_ns: u64,
    /// A script around the stage, as the document wrote it: `script.sh(arguments)`.
    pub trigger: Option<String>,
    /// Whether the plan goes on to the following stages when this one fails.
    pub on_failure: OnFailure,
    /// Which point of a sweep it measures, if it is part of one.
    pub cell: Option<Cell>,
}

impl Stage {
    /// What reports call it: `s3-main`. `index` is its place in the plan, from 0.
    pub fn id(&self, index: usize) -> String {
        format!("s{}-{}", self.number.unwrap_or(index + 1), self.name)
    }
}

/// What happens to the stages after one that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Only the stages that clean up still run.
    #[default]
    Stop,
    /// All of them run (COSBench's way).
    Continue,
}

/// One work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Its name; not empty.
    pub name: String,
    /// What it is for.
    pub kind: WorkKind,
    /// The load: workers, pacing, stopping, sources.
    pub load: Load,
    /// What its operations mean, and on what: known to its engine only.
    pub job: Job,
    /// How its actions are shown, one per action of the engine.
    pub labels: Vec<Label>,
    /// Failures allowed per million operations before the work has failed (COSBench `afr`).
    pub allowed_failures_per_million: u32,
    /// The driver it is pinned to, if any.
    pub driver: Option<String>,
}

/// How an action is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Its name in reports.
    pub label: String,
    /// Its type, as the document calls it.
    pub kind: String,
    /// What it is counted as (COSBench's sample type).
    pub class: OperationClass,
    /// Whether it compares what it reads with what was written.
    pub verifies: bool,
    /// Share of the mix in percent.
    pub weight: f64,
    /// Its settings as the document wrote them, secrets left out.
    pub config: String,
}
