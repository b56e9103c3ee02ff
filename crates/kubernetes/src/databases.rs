//! The manifests of database servers: a StatefulSet with a pod and a claim for each, a Service that names them, and a Secret with
//! the account that the image makes.
//!
//! The StatefulSet owns the Service, the Secret, its pods and their claims: whoever deletes it deletes all.

use crate::drivers::RUN;
use crate::manifest::{Body, Manifest, Metadata, Owner, Spec};
use crate::place;
use crate::pods::{Access, Seccomp};
use crate::rook::{ClaimResources, ClaimSpec, StorageAmount};
use crate::servers::{Server, Servers};
use crate::workload::{
    Container, Labelled, Mount, NamedClaim, NamedLabelled, PodAmounts, PodResources, PodSpec, PodTemplate,
    PodVolume, Port, Probe, Retention, SecretBody, SecretKey, ServiceSpec, StatefulSetSpec, TcpSocket,
    ValueFrom, Variable, VariableValue, VolumeSource,
};
use std::collections::BTreeMap;
use tidemark_keys::secret::Secret;

/// The label that all objects of database servers have, and its value.
pub const DATABASE: (&str, &str) = ("app.kubernetes.io/component", "database");

/// The interface that a StatefulSet belongs to.
const APPS: &str = "apps/v1";
/// How long a server may take to end, seconds: its data go with it.
const GRACE: u32 = 10;
/// How long a server may take until it listens, in looks of a second each, before Kubernetes starts it again. Whoever waits for it gives
/// up earlier.
const LOOKS: u32 = 3600;
/// Where the volume is. The data lie below it: file systems have a `lost+found`.
const VOLUME: &str = "/data";
/// The name of the claim's template: the claim of pod `p` is `data-p`.
const CLAIM: &str = "data";

/// The account that is made in each server.
#[derive(Clone, Debug)]
pub struct Account {
    /// Its name.
    pub user: &'static str,
    /// Its password.
    pub password: Secret,
    /// Its database.
    pub database: &'static str,
}

/// The database servers of a run.
#[derive(Clone, Copy, Debug)]
pub struct Databases<'a> {
    /// The run's name: a label of at most [`LONGEST_RUN`](crate::LONGEST_RUN) characters, different for each run.
    pub run: &'a str,
    /// Their namespace; `None`: left to whoever applies the manifests.
    pub namespace: Option<&'a str>,
    /// What they are.
    pub servers: &'a Servers,
}

impl Databases<'_> {
    /// The StatefulSet, which owns everything else.
    pub fn stateful_set(&self) -> Manifest {
        let labels = || place::labels(DATABASE, self.run);
        let claim = ClaimSpec {
            resources: ClaimResources { requests: StorageAmount { storage: self.servers.size.clone() } },
            storage_class_name: self.servers.class.clone(),
            volume_mode: "Filesystem",
            access_modes: [Access::ReadWriteOnce.name()],
        };
        let spec = StatefulSetSpec {
            service_name: self.run.to_owned(),
            replicas: self.servers.instances,
            pod_management_policy: "Parallel",
            selector: place::selector(self.run),
            template: PodTemplate { metadata: Labelled { labels: labels() }, spec: self.pod() },
            volume_claim_templates: [NamedClaim {
                metadata: NamedLabelled { name: CLAIM, labels: labels() },
                spec: claim,
            }],
            persistent_volume_claim_retention_policy: Retention {
                when_deleted: "Delete",
                when_scaled: "Retain",
            },
        };
        let body = Body::Spec { spec: Spec::StatefulSet(Box::new(spec)) };
        self.manifest(APPS, "StatefulSet", body, None)
    }

    /// The headless Service, owned by the StatefulSet of this `uid`; `None` while there is none.
    pub fn service(&self, uid: Option<&str>) -> Manifest {
        let spec = ServiceSpec {
            cluster_ip: "None",
            selector: BTreeMap::from([(RUN, self.run.to_owned())]),
            ports: [Port { name: "sql", port: self.servers.server.port() }],
        };
        self.manifest("v1", "Service", Body::Spec { spec: Spec::Service(spec) }, uid)
    }

    /// The Secret, owned by the StatefulSet of this `uid`; `None` while there is none.
    pub fn secret(&self, account: &Account, uid: Option<&str>) -> Manifest {
        let string_data = BTreeMap::from([
            ("database", Secret::new(account.database)),
            ("password", account.password.clone()),
            ("user", Secret::new(account.user)),
        ]);
        self.manifest("v1", "Secret", Body::Secret(SecretBody { immutable: true, string_data }), uid)
    }

    fn manifest(
        &self,
        api_version: &'static str,
        kind: &'static str,
        body: Body,
        uid: Option<&str>,
    ) -> Manifest {
        let owner = uid.map(|uid| Owner {
            api_version: APPS,
            kind: "StatefulSet",
            name: self.run.to_owned(),
            uid: uid.to_owned(),
        });
        let metadata = Metadata {
            name: self.run.to_owned(),
            namespace: self.namespace.map(str::to_owned),
            labels: place::labels(DATABASE, self.run),
            owner_references: owner.into_iter().collect(),
        };
        Manifest { api_version, kind, metadata, body }
    }

    fn pod(&self) -> PodSpec {
        let Servers { nodes, spread, user, .. } = self.servers;
        let (affinity, topology_spread_constraints) = place::placed(nodes, *spread, self.run);
        let empty = |name, medium| PodVolume { name, source: VolumeSource::EmptyDir { medium } };
        PodSpec {
            restart_policy: "Always",
            automount_service_account_token: false,
            enable_service_links: false,
            termination_grace_period_seconds: GRACE,
            affinity,
            topology_spread_constraints,
            security_context: place::user(*user, Seccomp::RuntimeDefault),
            containers: [self.container()],
            volumes: vec![empty("scratch", None), empty("sockets", None), empty("shared", Some("Memory"))],
        }
    }

    fn container(&self) -> Container {
        let Servers { server, image, cpu, memory, .. } = self.servers;
        let amounts = || PodAmounts { cpu: Some(cpu.clone()), memory: memory.clone() };
        let mount = |name, path: &str| Mount { name, mount_path: path.to_owned(), read_only: false };
        let sockets = match server {
            Server::Postgres => "/var/run/postgresql",
            Server::Mysql | Server::Mariadb => "/var/run/mysqld",
        };
        Container {
            name: "database",
            image: image.clone(),
            image_pull_policy: "IfNotPresent",
            args: self.arguments(),
            env: self.variables(),
            // It is looked at until it has started and never again: a connection that is opened and closed would be part of the load.
            // The servers that official images start to make the data listen on sockets alone.
            startup_probe: Some(Probe {
                tcp_socket: TcpSocket { port: server.port() },
                period_seconds: 1,
                failure_threshold: LOOKS,
            }),
            resources: PodResources { requests: amounts(), limits: amounts() },
            security_context: place::confined(),
            volume_mounts: vec![
                mount(CLAIM, VOLUME),
                mount("scratch", "/tmp"),
                mount("sockets", sockets),
                // Where servers have the memory that their processes share: the usual 64 MB are too few.
                mount("shared", "/dev/shm"),
            ],
            volume_devices: Vec::new(),
            // The last words of a server that fails are said where its pod is looked at.
            termination_message_policy: "FallbackToLogsOnError",
        }
    }

    /// Settings as the server takes them. Official images run what begins with a dash with their server.
    fn arguments(&self) -> Vec<String> {
        // Kubernetes fills in `$(NAME)`, unless the dollar stands twice.
        let settings = self.servers.settings.iter().map(|(name, value)| (name, value.replace('$', "$$")));
        match self.servers.server {
            Server::Postgres => {
                settings.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]).collect()
            }
            Server::Mysql | Server::Mariadb => {
                let place = format!("--datadir={VOLUME}/mysql");
                let settings = settings.map(|(name, value)| format!("--{name}={value}"));
                std::iter::once(place).chain(settings).collect()
            }
        }
    }

    /// What the image is told, by its own conventions.
    fn variables(&self) -> Vec<Variable> {
        let told = |name, key| Variable {
            name,
            value: VariableValue::ValueFrom(ValueFrom::SecretKeyRef(SecretKey {
                name: self.run.to_owned(),
                key,
            })),
        };
        match self.servers.server {
            Server::Postgres => vec![
                told("POSTGRES_USER", "user"),
                told("POSTGRES_PASSWORD", "password"),
                told("POSTGRES_DB", "database"),
                Variable { name: "PGDATA", value: VariableValue::Value(format!("{VOLUME}/postgres")) },
            ],
            Server::Mysql => vec![
                told("MYSQL_USER", "user"),
                told("MYSQL_PASSWORD", "password"),
                told("MYSQL_DATABASE", "database"),
                told("MYSQL_ROOT_PASSWORD", "password"),
            ],
            Server::Mariadb => vec![
                told("MARIADB_USER", "user"),
                told("MARIADB_PASSWORD", "password"),
                told("MARIADB_DATABASE", "database"),
                told("MARIADB_ROOT_PASSWORD", "password"),
            ],
        }
    }
}
