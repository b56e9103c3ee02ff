//! What a run makes: drivers, database servers, or a Trino cluster. Each has an owner, with which everything goes.

use tidemark_kubernetes::{COMPONENT, COORDINATOR, DATABASE, WORKERS};

/// What a run has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Drivers, owned by a Job.
    Drivers,
    /// Database servers, owned by a StatefulSet.
    Databases,
    /// A Trino cluster, owned by the StatefulSet of its coordinator.
    Trino,
}

/// A kind of objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Its name: `Job`.
    pub(crate) name: &'static str,
    /// Its interface and version.
    pub(crate) group: &'static str,
    /// Its name in paths.
    pub(crate) plural: &'static str,
}

const JOB: Kind = Kind { name: "Job", group: "apis/batch/v1", plural: "jobs" };
const STATEFUL_SET: Kind = Kind { name: "StatefulSet", group: "apis/apps/v1", plural: "statefulsets" };
pub(crate) const SECRET: Kind = Kind { name: "Secret", group: "api/v1", plural: "secrets" };
pub(crate) const SERVICE: Kind = Kind { name: "Service", group: "api/v1", plural: "services" };

impl Made {
    /// What they are called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drivers => "drivers",
            Self::Databases => "database servers",
            Self::Trino => "Trino clusters",
        }
    }

    /// What owns everything else.
    pub(crate) fn owner(self) -> Kind {
        match self {
            Self::Drivers => JOB,
            Self::Databases | Self::Trino => STATEFUL_SET,
        }
    }

    /// What it owns, each under the run's name and what comes after that.
    pub(crate) fn owned(self) -> &'static [(Kind, &'static str)] {
        match self {
            Self::Drivers => &[(SECRET, "")],
            Self::Databases => &[(SECRET, ""), (SERVICE, "")],
            Self::Trino => &[(SECRET, ""), (SERVICE, ""), (STATEFUL_SET, WORKERS)],
        }
    }

    /// What comes after the run's name in those of all that makes pods: the owner, and what is of its kind.
    pub(crate) fn makers(self) -> impl Iterator<Item = &'static str> {
        let (owner, owned) = (self.owner(), self.owned());
        let alike = owned.iter().filter(move |(kind, _)| kind.name == owner.name).map(|(_, suffix)| *suffix);
        std::iter::once("").chain(alike)
    }

    /// What selects all owners of this sort.
    pub(crate) fn selector(self) -> String {
        let (managed, (component, value)) = (
            tidemark_kubernetes::MANAGED_BY,
            match self {
                Self::Drivers => COMPONENT,
                Self::Databases => DATABASE,
                Self::Trino => COORDINATOR,
            },
        );
        format!("labelSelector={}%3D{},{component}%3D{value}", managed.0, managed.1)
    }

    /// What is said of those that are there.
    pub(crate) fn came(self) -> &'static str {
        match self {
            Self::Drivers => "drivers have joined",
            Self::Databases => "database servers are ready",
            Self::Trino => "nodes of Trino have work",
        }
    }

    /// What it means that pods run and have not come; `at` is the address that they look for, or the port that they listen on.
    pub(crate) fn advice(self, at: &str, namespace: &str, run: &str) -> String {
        match self {
            Self::Drivers => format!(
                ": their pods run and cannot reach this process at {at}: name an address of this machine that pods reach with \
                 --advertise; `kubectl logs --namespace {namespace} job/{run}` shows what a driver says"
            ),
            Self::Databases => format!(
                ": their pods run and do not listen on the port {at}; `kubectl logs --namespace {namespace} {run}-0` shows what the \
                 first one says"
            ),
            Self::Trino => format!(
                ": their pods run; this process must reach the coordinator's at its port {at}, and pods must reach each other; `kubectl \
                 logs --namespace {namespace} {run}-0` shows what the coordinator says"
            ),
        }
    }
}
