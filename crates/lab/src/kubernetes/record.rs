//! What an API server and its etcd are made of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::Home;
use crate::ports;
use crate::record::Made;
use crate::system::System;

/// What they are made of: ports of 127.0.0.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// The API server's.
    pub(super) port: u16,
    /// That on which etcd listens for the API server.
    pub(super) etcd_port: u16,
    /// That on which etcd would listen for others of its kind.
    pub(super) peer_port: u16,
}

/// How clients sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    /// The file that `kubectl` takes.
    pub(super) kubeconfig: PathBuf,
}

impl Shape {
    /// What a lab is to be made of, given the port that is asked for and what it has so far.
    pub(super) fn new(home: &Home, port: Option<u16>, has: Option<&Shape>) -> Result<Self, LabError> {
        let mut others: Vec<u16> = port.into_iter().collect();
        let mut choose = |daemon, kept: Option<u16>| {
            let chosen = kept.map_or_else(|| ports::choose(daemon, home.dir(), &others), Ok)?;
            others.push(chosen);
            Ok(chosen)
        };
        let etcd_port = choose(Daemon::Etcd, has.map(|has| has.etcd_port))?;
        let peer_port = choose(Daemon::Etcd, has.map(|has| has.peer_port))?;
        let port = match port {
            Some(port) => ports::after("the API server's port", port, 0)?,
            None => choose(Daemon::ApiServer, has.map(|has| has.port))?,
        };
        Ok(Self { port, etcd_port, peer_port })
    }

    /// Every port, and the daemon that listens on it.
    pub(super) fn ports(&self) -> [(Daemon, u16); 3] {
        [(Daemon::Etcd, self.etcd_port), (Daemon::Etcd, self.peer_port), (Daemon::ApiServer, self.port)]
    }

    /// Where the API server listens.
    pub(super) fn endpoint(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

impl Made for Shape {
    type Credentials = Access;

    const ASKED: &'static str = "kubernetes";

    fn is_of(system: System) -> bool {
        system == System::Kubernetes
    }

    fn system(&self) -> System {
        System::Kubernetes
    }

    fn addresses(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([("endpoint", self.endpoint())])
    }
}
