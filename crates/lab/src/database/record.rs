//! What database servers of a lab are made of, and how clients sign in to them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidemark_measure::units::count;

use super::server::Server;
use super::{HOST, mariadb, postgres};
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;
use crate::record::Made;
use crate::system::System;

/// A kind of database server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Database {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mariadb,
}

impl Database {
    /// Its name as people write it.
    pub fn name(self) -> &'static str {
        self.server().name()
    }

    /// The system that it is.
    pub fn system(self) -> System {
        match self {
            Database::Postgres => System::Postgres,
            Database::Mariadb => System::Mariadb,
        }
    }

    pub(super) fn server(self) -> &'static dyn Server {
        match self {
            Database::Postgres => &postgres::Postgres,
            Database::Mariadb => &mariadb::Mariadb,
        }
    }
}

/// How clients sign in. Debug output hides the password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Credentials {
    /// The role.
    pub(super) user: String,
    /// Its password.
    pub(super) password: String,
    /// Its database.
    pub(super) database: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Credentials with a password that nobody can guess: 128 random bits, in hexadecimal digits.
    pub(super) fn random() -> Result<Self, LabError> {
        let mut bytes = [0; 16];
        let path = "/dev/urandom";
        File::open(path)
            .and_then(|mut file| file.read_exact(&mut bytes))
            .map_err(LabError::file("read", path))?;
        let password = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { user: "tidemark".into(), password, database: "tidemark".into() })
    }
}

/// What the servers are made of. It is fixed when they are created, but for their ports and settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// What they are.
    pub(super) server: Database,
    /// The port of each server on 127.0.0.1.
    pub(super) ports: Vec<u16>,
    /// The directory in which their data lie, if not that of the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) on: Option<PathBuf>,
    /// Settings that are not the server's default, by name.
    #[serde(default)]
    pub(super) settings: BTreeMap<String, String>,
    /// Whether their data lie on a disk whose power can be cut.
    #[serde(default)]
    pub(super) power_cut: bool,
}

impl Made for Shape {
    type Credentials = Credentials;

    const ASKED: &'static str = "databases";

    fn is_of(system: System) -> bool {
        system.database().is_some()
    }

    fn system(&self) -> System {
        self.server.system()
    }

    fn addresses(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([("host", HOST.to_owned()), ("endpoints", self.endpoints().join(","))])
    }
}

impl Shape {
    /// The numbers of the servers.
    pub(super) fn instances(&self) -> Range<usize> {
        0..self.ports.len()
    }

    /// All daemons of the lab, in the order of their start.
    pub(super) fn daemons(&self) -> Vec<Daemon> {
        let disk = self.power_cut.then_some(Daemon::Disk);
        disk.into_iter()
            .chain(self.instances().map(|instance| self.server.server().daemon(instance)))
            .collect()
    }

    /// The socket of every server.
    pub(super) fn sockets(&self, home: &Home) -> Vec<PathBuf> {
        let numbered = self.ports.iter().enumerate();
        numbered.map(|(instance, port)| self.server.server().socket(home, instance, *port)).collect()
    }

    /// Host and port of every server.
    pub(super) fn endpoints(&self) -> Vec<String> {
        self.ports.iter().map(|port| format!("{HOST}:{port}")).collect()
    }

    /// What is known of them while they do not run.
    pub(super) fn labels(&self) -> Vec<(String, String)> {
        let place = self.on.as_ref().map_or("the lab's directory".into(), |on| on.display().to_string());
        let place = match self.power_cut {
            true => format!("{place}, on a disk that loses what was not synced when its power is cut"),
            false => place,
        };
        let servers = match self.ports.len() {
            1 => "1 server".to_owned(),
            several => format!("{} servers", count(several as u64)),
        };
        let mut labels = vec![("database", format!("{}, {servers}", self.server.name())), ("data", place)];
        if !self.settings.is_empty() {
            let all: Vec<_> = self.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            labels.push(("settings", all.join(", ")));
        }
        labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
