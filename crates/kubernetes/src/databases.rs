//! The manifests of database servers: a StatefulSet with a pod and a claim for each, a Service that names them, and a Secret with
//! the account that the image makes.

use crate::manifest::Manifest;
use crate::place;
use crate::pods::Access;
use crate::rook::{ClaimResources, ClaimSpec, StorageAmount};
use crate::servers::{Server, Servers};
use crate::stateful::{Alike, Stateful};
use crate::workload::{
    Mount, NamedClaim, NamedLabelled, PodVolume, SecretKey, ValueFrom, Variable, VariableValue, VolumeSource,
};
use std::collections::BTreeMap;
use tidemark_keys::secret::Secret;

/// The label that all objects of database servers have, and its value.
pub const DATABASE: (&str, &str) = ("app.kubernetes.io/component", "database");

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
        let claim = ClaimSpec {
            resources: ClaimResources { requests: StorageAmount { storage: self.servers.size.clone() } },
            storage_class_name: self.servers.class.clone(),
            volume_mode: "Filesystem",
            access_modes: [Access::ReadWriteOnce.name()],
        };
        let metadata = NamedLabelled { name: CLAIM, labels: place::labels(DATABASE, self.run) };
        let mount = |name, path| Mount::whole(name, path, false);
        let sockets = match self.servers.server {
            Server::Postgres => "/var/run/postgresql",
            Server::Mysql | Server::Mariadb => "/var/run/mysqld",
        };
        let empty = |name, medium| PodVolume { name, source: VolumeSource::EmptyDir { medium } };
        let servers = Alike {
            suffix: "",
            component: DATABASE,
            count: self.servers.instances,
            container: "database",
            args: self.arguments(),
            env: self.variables(),
            mounts: vec![
                mount(CLAIM, VOLUME),
                mount("scratch", "/tmp"),
                mount("sockets", sockets),
                // Where servers have the memory that their processes share: the usual 64 MB are too few.
                mount("shared", "/dev/shm"),
            ],
            volumes: vec![empty("scratch", None), empty("sockets", None), empty("shared", Some("Memory"))],
            claims: vec![NamedClaim { metadata, spec: claim }],
        };
        self.stateful().set(servers, None)
    }

    /// The headless Service, owned by the StatefulSet of this `uid`; `None` while there is none.
    pub fn service(&self, uid: Option<&str>) -> Manifest {
        self.stateful().service(uid)
    }

    /// The Secret, owned by the StatefulSet of this `uid`; `None` while there is none.
    pub fn secret(&self, account: &Account, uid: Option<&str>) -> Manifest {
        let string_data = BTreeMap::from([
            ("database", Secret::new(account.database)),
            ("password", account.password.clone()),
            ("user", Secret::new(account.user)),
        ]);
        self.stateful().secret(string_data, uid)
    }

    fn stateful(&self) -> Stateful<'_> {
        let Self { run, namespace, servers } = *self;
        let Servers { hosting, server, .. } = servers;
        // The servers that official images start to make the data listen on sockets alone: who listens at the port is ready.
        Stateful { run, namespace, component: DATABASE, hosting, port: ("sql", server.port()) }
    }

    /// Settings as the server takes them. Official images run what begins with a dash with their server.
    fn arguments(&self) -> Vec<String> {
        // Kubernetes fills in `$(NAME)`, unless the dollar stands twice.
        let settings =
            self.servers.hosting.settings.iter().map(|(name, value)| (name, value.replace('$', "$$")));
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
