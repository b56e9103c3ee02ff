//! What happened to the pods and nodes of a run on Kubernetes while it went on.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that happened to a pod or a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Happening {
    /// When the process that leads the run was told of it. That is some milliseconds after the API server knew it.
    pub at_ns: u64,
    /// What.
    pub what: Happened,
    /// To what: `pod bench/postgres-0`, `node n1`.
    pub object: String,
    /// Whose it is: what replaces a pod has the same owner. A node, and a pod without an owner, are their own.
    pub owner: String,
    /// Whether it is part of the load, of what is under load, or a node.
    pub part: Part,
    /// What Kubernetes says of it, or empty: `OOMKilled, exit code 137`.
    pub detail: String,
}

/// Pods or nodes that could not be watched, or not all the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Unwatched {
    /// Of which nothing is known: `nodes`.
    pub what: String,
    /// Why, as the API server says it.
    pub why: String,
    /// The rule of a Role or ClusterRole that permits it, in YAML; empty where no right was missing.
    pub rule: String,
}

/// The part that something has in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A driver's pod.
    #[default]
    Driver,
    /// A pod of the target.
    Target,
    /// A node.
    Node,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// Kubernetes was asked to remove a pod: it is being ended.
    #[default]
    PodDeleted,
    /// A pod is evicted, or preempted.
    PodEvicted,
    /// A container used more memory than its limit and was killed.
    OutOfMemory,
    /// A container ended for another reason.
    ContainerEnded,
    /// The controller gave a driver up.
    DriverLost,
    /// A node's kubelet does not report any more, or says that the node is not ready.
    NodeNotReady,
    /// The kubelet says again that its node is ready.
    NodeReady,
    /// A pod is not there any more.
    PodGone,
    /// A pod was made.
    PodMade,
    /// A pod was given a node.
    PodScheduled,
    /// A pod's containers were started.
    ContainerStarted,
    /// A pod is not ready any more.
    PodNotReady,
    /// A pod is ready.
    PodReady,
    /// A volume was attached to a node.
    VolumeAttached,
    /// A volume is not attached to a node any more.
    VolumeDetached,
}

impl Happened {
    /// Whether something is lost by it.
    pub const fn is_loss(self) -> bool {
        use Happened::{
            ContainerEnded, DriverLost, NodeNotReady, OutOfMemory, PodDeleted, PodEvicted, PodGone,
        };
        matches!(
            self,
            PodDeleted | PodEvicted | OutOfMemory | ContainerEnded | DriverLost | NodeNotReady | PodGone
        )
    }

    /// Whether what was lost is there again.
    pub const fn is_return(self) -> bool {
        matches!(self, Happened::PodReady | Happened::NodeReady)
    }

    /// The words for it.
    pub const fn words(self) -> &'static str {
        match self {
            Happened::PodDeleted => "deletion asked for",
            Happened::PodEvicted => "evicted",
            Happened::OutOfMemory => "out of memory",
            Happened::ContainerEnded => "container ended",
            Happened::DriverLost => "driver lost",
            Happened::NodeNotReady => "not ready",
            Happened::NodeReady => "ready",
            Happened::PodGone => "gone",
            Happened::PodMade => "made",
            Happened::PodScheduled => "scheduled",
            Happened::ContainerStarted => "container started",
            Happened::PodNotReady => "not ready",
            Happened::PodReady => "ready",
            Happened::VolumeAttached => "volume attached",
            Happened::VolumeDetached => "volume detached",
        }
    }
}
