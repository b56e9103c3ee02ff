//! Databases under a load: what they are, what they counted, and what had to hold in them.

use crate::fault::Fault;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that had to hold in the data of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Aborts {
    /// Why.
    pub fault: Fault,
    /// How many.
    pub count: u64,
}

/// A database from a stage's start to its end, by its own counters, whoever caused what they count. What the server does not
/// count, or does not show to the load's user, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// Transactions committed.
    pub commits: Option<u64>,
    /// Transactions rolled back.
    pub rollbacks: Option<u64>,
    /// Deadlocks.
    pub deadlocks: Option<u64>,
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
}

/// A setting of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DatabaseSetting {
    /// Its name.
    pub name: String,
    /// Its value, as the server shows it.
    pub value: String,
    /// Whether commits survive a crash with it; `None`: it decides something else.
    pub durable: Option<bool>,
}
