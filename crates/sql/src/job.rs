//! A work on databases, as a plan carries it.

use crate::dialect::Dialect;
use crate::instances::Instances;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tidemark_plan::job::JobData;
use tidemark_plan::plan::Work;
use tidemark_plan::secret::Secret;

/// The engine's name.
pub const ENGINE: &str = "sql";

/// What a work does, and on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The database, or several that are loaded and run together.
    pub instances: Instances,
    /// The workload and its options.
    pub workload: Spec,
    /// What the work is for.
    pub purpose: Purpose,
    /// How transactions are done.
    pub settings: Settings,
    /// What does them.
    #[serde(default)]
    pub program: Program,
}

/// What does the transactions of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// This program.
    #[default]
    Tidemark,
    /// The user's pgbench.
    Pgbench,
    /// The user's sysbench.
    Sysbench,
}

impl Program {
    /// The word for tables, and the name of the program's file.
    pub const fn name(self) -> &'static str {
        match self {
            Program::Tidemark => "native",
            Program::Pgbench => "pgbench",
            Program::Sysbench => "sysbench",
        }
    }
}

/// Which workload, with which options: known to the workload's own file only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name as documents write it: `pgbench/tpcb-like`.
    pub name: String,
    /// Its options.
    pub options: serde_json::Value,
}

/// Which checks are made when a work is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Checks {
    /// None.
    None,
    /// Those that read little.
    #[default]
    Quick,
    /// All.
    All,
}

/// Where what a load reads is to come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reads {
    /// From wherever the database has it.
    #[default]
    Anywhere,
    /// From storage: the run is invalid if it came from memory.
    Storage,
}

/// What a server of a database is to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It takes writes.
    #[default]
    Primary,
    /// It follows the primary, and serves reads.
    Replica,
}

/// What a work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// Fills the data set, unless it is there.
    Fill {
        /// Fill it anew although it is there.
        fresh: bool,
    },
    /// Puts the load on.
    Load,
    /// Drops the data set.
    Drop,
}

/// A database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Whose language and protocol it speaks.
    pub dialect: Dialect,
    /// Where it is reached; connections take them in turn.
    pub endpoints: Vec<Endpoint>,
    /// Servers that follow it and serve reads, with the same user, database and TLS.
    pub replicas: Vec<Endpoint>,
    /// Who connects.
    pub user: String,
    /// The password, if one is needed.
    pub password: Option<Secret>,
    /// The database.
    pub database: String,
    /// Whether connections are encrypted, and which certificates are accepted.
    pub tls: Tls,
    /// A file with certificates that are accepted besides the system's, or instead of them.
    pub ca_file: Option<PathBuf>,
    /// How long one statement may take, nanoseconds.
    pub timeout_ns: u64,
    /// Whether statements are prepared under names; otherwise they are prepared anew each time, as a pool of connections in
    /// transaction mode requires.
    pub prepared: bool,
}

/// Where a database is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Endpoint {
    /// A host and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(host, port) if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            Endpoint::Tcp(host, port) => write!(formatter, "{host}:{port}"),
            Endpoint::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

/// Whether connections are encrypted: PostgreSQL's `sslmode`. There is no `allow`, which nobody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tls {
    /// Never.
    Disable,
    /// If the server can; its certificate is not looked at.
    Prefer,
    /// Always; its certificate is not looked at.
    Require,
    /// Always, with a certificate that an authority vouches for, for this host.
    Verify,
}

/// The isolation of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the SQL standard's own names")]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// As SQL writes it.
    pub fn sql(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

/// How transactions are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Their isolation; `None`: the server's default.
    pub isolation: Option<Isolation>,
    /// How often one that conflicts is tried at most, at least 1.
    pub tries: u32,
    /// Pause before the second attempt, doubled before each further one, with jitter; nanoseconds.
    pub back_off_ns: u64,
    /// The longest such pause, nanoseconds.
    pub back_off_most_ns: u64,
    /// Whether a conflict is rolled back to a savepoint at the transaction's beginning, which keeps its place in line
    /// (CockroachDB), rather than begun anew.
    pub savepoint: bool,
    /// Whether statements that do not need each other's results go in one round trip.
    pub pipeline: bool,
    /// What is checked in the data when the load is over.
    pub checks: Checks,
    /// Where what it reads is to come from.
    pub reads: Reads,
    /// Which of the database's servers it runs on: on replicas only transactions that change nothing.
    pub reads_from: Role,
    /// Whether clients keep a ledger of their commits, which is compared with what the database holds when the load is over.
    pub ledger: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            isolation: None,
            tries: 10,
            back_off_ns: 1_000_000,
            back_off_most_ns: 100_000_000,
            savepoint: false,
            pipeline: false,
            checks: Checks::Quick,
            reads: Reads::Anywhere,
            reads_from: Role::Primary,
            ledger: false,
        }
    }
}

impl JobData for Job {
    fn engine(&self) -> &'static str {
        ENGINE
    }
}

impl Job {
    /// The job of a work, if it is on databases.
    pub fn of(work: &Work) -> Option<&Self> {
        work.job.get()
    }

    /// All databases that it needs, each in its role: what a load measures of replicas, it asks them for itself.
    pub fn servers(&self) -> impl Iterator<Item = (Target, Role)> {
        let primaries = self.instances.iter().map(|target| (target.clone(), Role::Primary));
        let replicas = self.instances.iter().flat_map(Target::replicas);
        let replicas = replicas.filter(|_| self.purpose == Purpose::Load);
        primaries.chain(replicas.map(|target| (target, Role::Replica)))
    }

    /// Where its transactions go: its databases, or their replicas, each of which its clients take in turn.
    pub fn serving(&self) -> Instances {
        let mut replicas = self.instances.iter().flat_map(Target::replicas);
        match (self.settings.reads_from, replicas.next()) {
            (Role::Replica, Some(first)) => Instances::new(first, replicas.collect()),
            _ => self.instances.clone(),
        }
    }
}

impl Target {
    /// The database in a few words: `PostgreSQL at 10.0.0.1:5432, database bench`.
    pub fn describe(&self) -> String {
        format!("{} at {}, database {}", self.dialect.name(), self.places(), self.database)
    }

    /// All servers, in either role.
    pub fn servers(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().chain(&self.replicas)
    }

    /// Its replicas, each as a database of its own.
    pub fn replicas(&self) -> impl Iterator<Item = Target> {
        let replica = |endpoint: &Endpoint| Target {
            endpoints: vec![endpoint.clone()],
            replicas: Vec::new(),
            ..self.clone()
        };
        self.replicas.iter().map(replica)
    }

    /// Where it is reached, in words.
    pub fn places(&self) -> String {
        self.endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}
