//! The systems that a lab can run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::database::Database;

/// A system that a lab runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// A Ceph cluster.
    Ceph,
    /// PostgreSQL servers.
    Postgres,
    /// MariaDB servers.
    Mariadb,
    /// A Trino cluster.
    Trino,
    /// Kubernetes: its API server and etcd, and a node on request.
    Kubernetes,
}

impl System {
    /// Every system.
    pub const ALL: [System; 5] =
        [System::Ceph, System::Postgres, System::Mariadb, System::Trino, System::Kubernetes];

    /// Its name: `ceph`, `postgres`, `mariadb`, `trino` or `kubernetes`.
    pub fn name(self) -> &'static str {
        match self {
            System::Ceph => "ceph",
            System::Postgres => "postgres",
            System::Mariadb => "mariadb",
            System::Trino => "trino",
            System::Kubernetes => "kubernetes",
        }
    }

    /// The database that it is, if it is one.
    pub fn database(self) -> Option<Database> {
        match self {
            System::Ceph | System::Trino | System::Kubernetes => None,
            System::Postgres => Some(Database::Postgres),
            System::Mariadb => Some(Database::Mariadb),
        }
    }

    /// What a record that does not say is of.
    pub(super) fn ceph() -> Self {
        System::Ceph
    }
}

impl fmt::Display for System {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A name that no system has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a system of the lab; choose ceph, postgres, mariadb, trino or kubernetes")]
pub struct UnknownSystem {
    name: String,
}

impl FromStr for System {
    type Err = UnknownSystem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = System::ALL.into_iter().find(|system| system.name() == text);
        known.ok_or_else(|| UnknownSystem { name: text.to_owned() })
    }
}
