//! Databases under a load: what they are, what they counted, and what had to hold in them.

use serde::{Deserialize, Serialize};
use tidemark_measure::fault::Fault;

/// What was found out of the databases under a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The databases: what they are, and what they counted meanwhile.
    pub servers: Vec<DatabaseUse>,
    /// Attempts at transactions that were rolled back and made again.
    pub aborts: Vec<Aborts>,
    /// What had to hold in the data when the load was over.
    pub checks: Vec<DataCheck>,
    /// Acknowledged commits that were looked for, database by database.
    pub ledgers: Vec<LedgerUse>,
}

impl Record {
    /// Adds what another driver found out of the same databases or of others. What servers counted is there once; what clients counted
    /// adds up.
    pub(super) fn join(&mut self, other: Record) {
        for server in other.servers {
            match self.servers.iter_mut().find(|known| known.server == server.server) {
                Some(known) => known.acknowledged = known.acknowledged.saturating_add(server.acknowledged),
                None => self.servers.push(server),
            }
        }
        for abort in other.aborts {
            match self.aborts.iter_mut().find(|known| known.fault == abort.fault) {
                Some(known) => known.count = known.count.saturating_add(abort.count),
                None => self.aborts.push(abort),
            }
        }
        for check in other.checks {
            if !self.checks.contains(&check) {
                self.checks.push(check);
            }
        }
        // Each has clients of its own.
        for ledger in other.ledgers {
            match self.ledgers.iter_mut().find(|known| known.server == ledger.server) {
                Some(known) => known.add(&ledger),
                None => self.ledgers.push(ledger),
            }
        }
    }
}

/// Something that had to hold in the data of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataCheck {
    /// Which database.
    pub server: String,
    /// What had to hold, without a full stop.
    pub holds: String,
    /// How many rows broke it; `None`: that could not be found out.
    pub broken: Option<u64>,
}

/// How many attempts at transactions were rolled back for one reason, and made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aborts {
    /// Why.
    pub fault: Fault,
    /// How many.
    pub count: u64,
}

/// A database from a stage's start to its end, by its own counters, whoever caused what they count. What the server does not
/// count, or does not show to the load's user, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseUse {
    /// What and where it is: `PostgreSQL at 10.0.0.1:5432, database bench`.
    pub server: String,
    /// Its version, as it says it.
    pub version: String,
    /// Bytes of the database at the stage's end.
    pub data_bytes: Option<u64>,
    /// Bytes of its own cache.
    pub cache_bytes: Option<u64>,
    /// Bytes of a block.
    pub block_bytes: Option<u64>,
    /// Settings that decide what survives a crash, and what storage sees.
    pub settings: Vec<DatabaseSetting>,
    /// Time after which a checkpoint begins, nanoseconds.
    pub checkpoint_timeout_ns: Option<u64>,
    /// Bytes of the log after which one begins earlier.
    pub checkpoint_log_bytes: Option<u64>,
    /// Whether the document asks that what the load reads comes from storage.
    pub reads_storage: bool,
    /// Whether the server was started anew meanwhile, or recovered from a crash: nothing that it counted is then known.
    pub restarted: bool,
    /// Whether its counters were set back meanwhile although it went on: nothing that it counted is then known.
    pub counters_reset: bool,
    /// Whether other databases of the stage are on the same server: what counts for the server as a whole, such as its log, is
    /// then of all of them.
    pub shares_server: bool,
    /// Transactions of the load whose commit the clients saw acknowledged, at least: an operation of several statements that
    /// is no transaction counts as one.
    pub acknowledged: u64,
    /// Whether `commits` covers all that was acknowledged: the server loses no counts, and they are all its own.
    pub commits_exact: bool,
    /// Transactions committed.
    pub commits: Option<u64>,
    /// Transactions rolled back.
    pub rollbacks: Option<u64>,
    /// Deadlocks.
    pub deadlocks: Option<u64>,
    /// Times that a transaction waited for the lock of a row.
    pub lock_waits: Option<u64>,
    /// Blocks that were not in the database's own cache.
    pub blocks_read: Option<u64>,
    /// Blocks that were.
    pub blocks_hit: Option<u64>,
    /// Bytes of temporary files.
    pub temporary_bytes: Option<u64>,
    /// Bytes of the log that makes commits durable.
    pub wal_bytes: Option<u64>,
    /// Whole pages in it.
    pub wal_full_pages: Option<u64>,
    /// Checkpoints.
    pub checkpoints: Option<u64>,
    /// Blocks that checkpoints wrote.
    pub buffers_checkpoint: Option<u64>,
    /// Blocks that sessions had to write themselves.
    pub buffers_backend: Option<u64>,
    /// Plans of the load's statements, of those that have one: before the load, and where it is another one after it.
    pub plans: Vec<StatementPlan>,
    /// Its replicas, if the document names any and the stage has a load: how far they were behind.
    pub replicas: Vec<ReplicaLag>,
}

/// How far a replica was behind its primary, measured by a marker row: from the acknowledgement of a marker's commit to the first
/// read on the replica that showed it, on the one clock of the process that did both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaLag {
    /// What and where it is, as `server` of a database.
    pub server: String,
    /// Markers whose commit the primary acknowledged.
    pub markers: u64,
    /// Of these, those that the replica did not show until the load was over, and for a while after it.
    pub unseen: u64,
    /// How long the oldest of those was waited for, nanoseconds: the replica was behind by as much at least.
    pub waited_ns: u64,
    /// Mean lag of markers that were seen, nanoseconds.
    pub mean_ns: u64,
    /// Their median.
    pub p50_ns: u64,
    /// Their 99th percentile.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How often the replica was asked: by as much a lag may be too long.
    pub poll_ns: u64,
}

/// What a database's planner makes of a statement, whatever its parameters: nodes, tables and indexes, without costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatementPlan {
    /// The statement.
    pub statement: String,
    /// The shape of its plan before the load: `Update on bank (Index Scan on bank by bank_pkey)`.
    pub plan: String,
    /// The shape after the load if it is another one; empty if the statement has no plan any more.
    pub changed_to: Option<String>,
}

/// A ledger of acknowledged commits, compared with what a database holds when the load is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerUse {
    /// Which database.
    pub server: String,
    /// Clients that kept it.
    pub clients: u64,
    /// Transactions whose commit was acknowledged.
    pub acknowledged: u64,
    /// Transactions of which nobody was told whether they were committed.
    pub ambiguous: u64,
    /// Of these, those that were found committed.
    pub ambiguous_committed: u64,
    /// Transactions that were acknowledged, or were found committed, and are not there; `None`: the database could not be asked.
    pub missing: Option<u64>,
    /// Clients that miss any.
    pub clients_missing: u64,
    /// Transactions that are there although they failed; `None`: the database could not be asked.
    pub unexpected: Option<u64>,
}

/// A setting of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DatabaseSetting {
    /// Its name.
    pub name: String,
    /// Its value, as the server shows it.
    pub value: String,
    /// Whether commits survive a crash with it; `None`: it decides something else.
    pub durable: Option<bool>,
}

impl LedgerUse {
    /// Adds what other clients of the same database have found.
    pub fn add(&mut self, other: &LedgerUse) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        let known = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        add(&mut self.clients, other.clients);
        add(&mut self.acknowledged, other.acknowledged);
        add(&mut self.ambiguous, other.ambiguous);
        add(&mut self.ambiguous_committed, other.ambiguous_committed);
        add(&mut self.clients_missing, other.clients_missing);
        self.missing = known(self.missing, other.missing);
        self.unexpected = known(self.unexpected, other.unexpected);
    }
}
