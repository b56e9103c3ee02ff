//! A work on volumes, as a plan carries it.

use serde::{Deserialize, Serialize};
use tidemark_measure::kind::OperationClass;
use tidemark_plan::job::JobData;
use tidemark_plan::plan::Work;

/// The engine's name.
pub const ENGINE: &str = "claims";

/// Where volumes are claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The context of the kubeconfig; `None`: the current one.
    pub context: Option<String>,
    /// The namespace; `None`: the context's.
    pub namespace: Option<String>,
    /// The storage class.
    pub class: String,
    /// The image of the pods that write.
    pub image: String,
}

/// What a load does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Where.
    pub target: Target,
    /// How many volumes live.
    pub lives: u32,
    /// Lives that are begun per second at times fixed in advance; `None`: each worker begins one when its last one has ended.
    pub rate: Option<f64>,
    /// What is claimed, as Kubernetes writes it: `1Gi`.
    pub size: String,
    /// The size after `resize`.
    pub grown: String,
    /// Bytes that the pod writes and reads back.
    pub bytes: u64,
    /// What is done between the first write and the deletion, in this order.
    pub steps: Vec<Step>,
    /// How long each phase may take, nanoseconds.
    pub timeout_ns: u64,
    /// What the contents follow from.
    pub seed: u64,
}

/// What may be done with a volume between its first write and its deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is made larger.
    Resize,
    /// A snapshot is taken.
    Snapshot,
    /// A volume is made of the snapshot, and read.
    Restore,
    /// A volume is made of the volume itself, and read.
    Clone,
}

impl Step {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Resize => "resize",
            Step::Snapshot => "snapshot",
            Step::Restore => "restore",
            Step::Clone => "clone",
        }
    }

    /// The phases that it is.
    const fn phases(self) -> &'static [Phase] {
        match self {
            Step::Resize => &[Phase::Resize],
            Step::Snapshot => &[Phase::Snapshot],
            Step::Restore => &[Phase::Restore, Phase::RestoreRead],
            Step::Clone => &[Phase::Clone, Phase::CloneRead],
        }
    }
}

/// A phase of a life: a kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The API server takes the claim.
    Claim,
    /// A pod is made and given a node. Of a class that waits for its first consumer: until the node is chosen.
    Schedule,
    /// The claim is bound to a volume.
    Bind,
    /// The volume is attached to the node.
    Attach,
    /// The volume is mounted and the pod has its network, as far as Kubernetes says so.
    Mount,
    /// The pod's program runs, as far as Kubernetes says so.
    Start,
    /// The program writes and syncs, by its own clock.
    Write,
    /// The volume has its new size.
    Resize,
    /// The snapshot can be used.
    Snapshot,
    /// A claim from the snapshot, and a pod, until the claim is bound.
    Restore,
    /// The first read of the restored volume, by the program's own clock.
    RestoreRead,
    /// A claim from the claim, and a pod, until the claim is bound.
    Clone,
    /// The first read of the clone, by the program's own clock.
    CloneRead,
    /// Everything of the life is deleted, until all of it is gone.
    Delete,
}

impl Phase {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Claim => "claim",
            Phase::Schedule => "schedule",
            Phase::Bind => "bind",
            Phase::Attach => "attach",
            Phase::Mount => "mount",
            Phase::Start => "start",
            Phase::Write => "write",
            Phase::Resize => "resize",
            Phase::Snapshot => "snapshot",
            Phase::Restore => "restore",
            Phase::RestoreRead => "restore-read",
            Phase::Clone => "clone",
            Phase::CloneRead => "clone-read",
            Phase::Delete => "delete",
        }
    }

    /// What it counts as.
    pub fn class(self) -> OperationClass {
        match self {
            Phase::Write => OperationClass::Write,
            Phase::RestoreRead | Phase::CloneRead => OperationClass::Read,
            Phase::Delete => OperationClass::Delete,
            other => OperationClass::Other(other.name().into()),
        }
    }

    /// Whether content is compared in it.
    pub const fn verifies(self) -> bool {
        matches!(self, Phase::Write | Phase::RestoreRead | Phase::CloneRead)
    }
}

impl Job {
    /// The job of a work; `None` if the work is of another engine.
    pub fn of(work: &Work) -> Option<&Self> {
        work.job.get()
    }

    /// All phases that a life may have, before a cluster is asked. The order of `schedule` and `bind`, and whether there is anything to
    /// attach, are the class's.
    pub fn phases(&self) -> Vec<Phase> {
        let first = [
            Phase::Claim,
            Phase::Schedule,
            Phase::Bind,
            Phase::Attach,
            Phase::Mount,
            Phase::Start,
            Phase::Write,
        ];
        let steps = self.steps.iter().flat_map(|step| step.phases().iter().copied());
        first.into_iter().chain(steps).chain([Phase::Delete]).collect()
    }
}

impl JobData for Job {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn begun_per_s(&self) -> Option<f64> {
        self.rate
    }
}
