//! The manifests of a Trino cluster: a StatefulSet with the coordinator, one with the workers, a Service that names their pods, and a Secret
//! with their settings and the keys of their bucket.
//!
//! The image is one like the official `trinodb/trino`: it reads its settings in `/etc/trino`, and what it writes lies in `/data/trino` and
//! in `/tmp`. How it runs Java (`jvm.config`, `node.properties`) is its own matter.

use crate::manifest::Manifest;
use crate::stateful::{Alike, Component, Stateful};
use crate::trino::Trino;
use crate::workload::{Mount, PodVolume, SecretItem, Variable, VariableValue, VolumeSource};
use std::collections::BTreeMap;
use tidemark_keys::secret::Secret;
use tidemark_trino::{Bucket, properties};

/// The label that a coordinator and all that it owns but workers have, and its value.
pub const COORDINATOR: (&str, &str) = ("app.kubernetes.io/component", "trino");
/// The same of workers.
const WORKER: Component = ("app.kubernetes.io/component", "trino-worker");
/// What comes after the run's name in that of the workers' StatefulSet.
pub const WORKERS: &str = "-worker";

/// The port at which each node listens.
pub const TRINO_PORT: u16 = 8080;
/// Where a worker finds the coordinator's address.
const ADDRESS: &str = "TIDEMARK_COORDINATOR";
/// The catalogs and their files.
const CATALOGS: [(&str, &str); 3] = [
    ("hive.properties", "catalog/hive.properties"),
    ("tpcds.properties", "catalog/tpcds.properties"),
    ("tpch.properties", "catalog/tpch.properties"),
];

/// The Trino cluster of a run.
#[derive(Clone, Copy, Debug)]
pub struct TrinoPods<'a> {
    /// The run's name: a label of at most [`LONGEST_RUN`](crate::LONGEST_RUN) characters, different for each run.
    pub run: &'a str,
    /// The namespace; `None`: left to whoever applies the manifests.
    pub namespace: Option<&'a str>,
    /// What it is.
    pub trino: &'a Trino,
}

impl TrinoPods<'_> {
    /// The StatefulSet of the coordinator, which owns everything else.
    pub fn coordinator(&self) -> Manifest {
        self.stateful().set(nodes("", COORDINATOR, 1, "coordinator.properties", self.run, Vec::new()), None)
    }

    /// The StatefulSet of the workers, for a coordinator at this address, owned by the StatefulSet of this `uid`; `None` while there is
    /// none.
    pub fn workers(&self, coordinator: &str, uid: Option<&str>) -> Manifest {
        let address = Variable { name: ADDRESS, value: VariableValue::Value(coordinator.to_owned()) };
        let count = self.trino.workers;
        let workers = nodes(WORKERS, WORKER, count, "worker.properties", self.run, vec![address]);
        self.stateful().set(workers, uid)
    }

    /// The headless Service, owned by the StatefulSet of this `uid`; `None` while there is none.
    pub fn service(&self, uid: Option<&str>) -> Manifest {
        self.stateful().service(uid)
    }

    /// The Secret, owned by the StatefulSet of this `uid`; `None` while there is none.
    pub fn secret(&self, uid: Option<&str>) -> Manifest {
        let own = &self.trino.bucket;
        let bucket = Bucket {
            endpoint: &own.endpoint,
            region: &own.region,
            name: &own.name,
            access_key: own.access_key.reveal(),
            secret_key: own.secret_key.reveal(),
        };
        let works = (self.trino.workers == 0).to_string();
        let local = format!("http://localhost:{TRINO_PORT}");
        let [tpch, tpcds] = tidemark_trino::GENERATORS.map(tidemark_trino::generator);
        let string_data = BTreeMap::from([
            (
                "coordinator.properties",
                self.settings(&[
                    ("coordinator", "true"),
                    ("node-scheduler.include-coordinator", &works),
                    ("discovery.uri", &local),
                ]),
            ),
            (
                "worker.properties",
                self.settings(&[("coordinator", "false"), ("discovery.uri", &format!("${{ENV:{ADDRESS}}}"))]),
            ),
            ("hive.properties", tidemark_trino::hive(bucket)),
            ("tpch.properties", tpch),
            ("tpcds.properties", tpcds),
        ]);
        let string_data = string_data.into_iter().map(|(name, text)| (name, Secret::new(text))).collect();
        self.stateful().secret(string_data, uid)
    }

    /// The settings of a node: its own, and those of the document.
    fn settings(&self, own: &[(&str, &str)]) -> String {
        let port = TRINO_PORT.to_string();
        let mut all = own.to_vec();
        all.push(("http-server.http.port", &port));
        let others = self.trino.hosting.settings.iter();
        all.extend(others.map(|(name, value)| (name.as_str(), value.as_str())));
        properties(&all)
    }

    fn stateful(&self) -> Stateful<'_> {
        let Self { run, namespace, trino } = *self;
        let hosting = &trino.hosting;
        Stateful { run, namespace, component: COORDINATOR, hosting, port: ("http", TRINO_PORT) }
    }
}

/// Nodes whose settings are under this key of the Secret.
fn nodes(
    suffix: &'static str,
    component: Component,
    count: u32,
    settings: &'static str,
    run: &str,
    env: Vec<Variable>,
) -> Alike {
    let files = [(settings, "config.properties")].into_iter().chain(CATALOGS);
    let secret = VolumeSource::Secret {
        secret_name: run.to_owned(),
        default_mode: 0o440,
        items: files.map(|(key, path)| SecretItem { key, path }).collect(),
    };
    let settings = |path| Mount {
        name: "settings",
        mount_path: format!("/etc/trino/{path}"),
        sub_path: Some(path),
        read_only: true,
    };
    let empty = |name| PodVolume { name, source: VolumeSource::EmptyDir { medium: None } };
    Alike {
        suffix,
        component,
        count,
        container: "trino",
        args: Vec::new(),
        env,
        mounts: vec![
            settings("config.properties"),
            settings("catalog"),
            Mount::whole("data", "/data/trino", false),
            Mount::whole("scratch", "/tmp", false),
        ],
        volumes: vec![PodVolume { name: "settings", source: secret }, empty("data"), empty("scratch")],
        claims: Vec::new(),
    }
}
