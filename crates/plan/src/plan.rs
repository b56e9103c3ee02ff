//! The validated plan: what runs, in which order, on what. Every document format ends here.

use crate::{block, object};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tidemark_load::work::Work as Load;
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
}

impl Default for Drivers {
    fn default() -> Self {
        Self { wanted: Wanted::All, on_loss: OnLoss::Stop, lost_after_ns: 10_000_000_000 }
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
    /// It continues with the remaining drivers. A work that has to do each of its operations once still fails.
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
    /// Its works; empty for a stage that only waits.
    pub works: Vec<Work>,
    /// Pause after its works, nanoseconds (COSBench `closuredelay`; the whole of a `delay` stage).
    pub pause_ns: u64,
    /// A script around the stage, as the document wrote it: `script.sh(arguments)`.
    pub trigger: Option<String>,
    /// Whether the plan continues with the following stages when this one fails.
    pub on_failure: OnFailure,
    /// Which point of a sweep it measures, if it is part of one.
    pub cell: Option<Cell>,
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

/// What a work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkKind {
    /// Makes containers.
    Init,
    /// Makes objects.
    Prepare,
    /// The load that is measured.
    Normal,
    /// Deletes objects.
    Cleanup,
    /// Deletes containers.
    Dispose,
}

impl WorkKind {
    /// The word for tables, COSBench's.
    pub const fn name(self) -> &'static str {
        match self {
            WorkKind::Init => "init",
            WorkKind::Prepare => "prepare",
            WorkKind::Normal => "normal",
            WorkKind::Cleanup => "cleanup",
            WorkKind::Dispose => "dispose",
        }
    }

    /// Whether it cleans up after others: such works still run after a failure or an interruption.
    pub const fn cleans(self) -> bool {
        matches!(self, WorkKind::Cleanup | WorkKind::Dispose)
    }
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
    /// What its operations mean, and on what.
    pub engine: Engine,
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
    pub sample: String,
    /// Share of the mix in percent.
    pub weight: f64,
    /// Its settings as the document wrote them, secrets left out.
    pub config: String,
}

/// What a work talks to, and how: one variant per engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Engine {
    /// Object storage.
    Object(object::Job),
    /// Block and file storage.
    Block(block::Job),
    /// Jobs of a fio job file, run by fio as they stand.
    Fio(block::FioFile),
}

impl Engine {
    /// The job on object storage, if it is one.
    pub fn object(&self) -> Option<&object::Job> {
        match self {
            Engine::Object(job) => Some(job),
            Engine::Block(_) | Engine::Fio(_) => None,
        }
    }

    /// The job on block storage, if it is one.
    pub fn block(&self) -> Option<&block::Job> {
        match self {
            Engine::Block(job) => Some(job),
            Engine::Object(_) | Engine::Fio(_) => None,
        }
    }
}
