//! What a database says of itself and counts, before a stage and after it: the evidence for the stage's numbers.

mod mysql;

use crate::admin::Admin;
use crate::databases::{DatabaseSetting, DatabaseUse};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::job::Target;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The settings that decide whether a commit survives a crash, each with the values that let it.
const DURABILITY: [(&str, &[&str]); 6] = [
    ("fsync", &["on"]),
    ("synchronous_commit", &["on", "remote_apply", "remote_write", "local"]),
    ("full_page_writes", &["on"]),
    ("wal_sync_method", &[]),
    ("commit_delay", &[]),
    ("data_checksums", &[]),
];

/// Settings that decide what storage sees.
const SHOWN: [&str; 7] = [
    "shared_buffers",
    "effective_cache_size",
    "max_wal_size",
    "checkpoint_timeout",
    "wal_compression",
    "autovacuum",
    "default_transaction_isolation",
];

/// A database's counters at one time.
pub(crate) struct Snapshot {
    counters: BTreeMap<String, u64>,
    /// When the server was started, when its checkpointer was, which a crash starts again, and when somebody set its counters
    /// back.
    epoch: Vec<Option<String>>,
    at: Instant,
}

const EPOCH: &str = "SELECT pg_postmaster_start_time()::text, (SELECT min(backend_start)::text FROM pg_stat_activity \
                     WHERE backend_type = 'checkpointer'), (SELECT stats_reset::text FROM pg_stat_database \
                     WHERE datname = current_database())";

/// So many of its columns are about the server's start.
const STARTS: usize = 2;

/// Queries of one row each, whose columns are counters under their names. What a version lacks, it does not answer.
const COUNTERS: [&str; 4] = [
    "SELECT xact_commit, xact_rollback, blks_read, blks_hit, deadlocks, temp_bytes FROM pg_stat_database WHERE datname = \
     current_database()",
    "SELECT wal_bytes::bigint, wal_records, wal_fpi FROM pg_stat_wal",
    "SELECT checkpoints_timed + checkpoints_req, buffers_checkpoint, buffers_clean, buffers_backend FROM pg_stat_bgwriter",
    "SELECT num_timed + num_requested, buffers_written FROM pg_stat_checkpointer",
];

/// The names of those counters.
const NAMES: [&[&str]; 4] = [
    &["commits", "rollbacks", "blocks_read", "blocks_hit", "deadlocks", "temporary_bytes"],
    &["wal_bytes", "wal_records", "wal_full_pages"],
    &["checkpoints", "buffers_checkpoint", "buffers_clean", "buffers_backend"],
    &["checkpoints", "buffers_checkpoint"],
];

impl Snapshot {
    /// Reads the counters; those that the server lacks, or does not show to this user, are left out.
    pub(crate) fn read(admin: &mut Admin, dialect: Dialect) -> Self {
        let mut counters = BTreeMap::new();
        if dialect == Dialect::Mysql {
            return Self { counters: mysql::counters(admin), epoch: Vec::new(), at: Instant::now() };
        }
        for (sql, names) in COUNTERS.iter().zip(NAMES) {
            // Asking for what this version lacks would be a rollback more.
            if names.iter().any(|name| counters.contains_key(*name)) {
                continue;
            }
            let Ok(rows) = admin.query(sql) else { continue };
            let values = rows.into_iter().flatten();
            for (name, value) in names.iter().zip(values) {
                if let Some(number) = value.and_then(|text| text.parse().ok()) {
                    counters.insert((*name).to_owned(), number);
                }
            }
        }
        let epoch = admin.query(EPOCH).ok().and_then(|rows| rows.into_iter().next()).unwrap_or_default();
        Self { counters, epoch, at: Instant::now() }
    }

    /// Whether the server was started anew, or recovered from a crash, before another time.
    fn is_restarted(&self, later: &Snapshot) -> bool {
        // Whole seconds, of two clocks.
        let up = |one: &Snapshot| one.counters.get(mysql::UPTIME).copied();
        let elapsed = later.at.saturating_duration_since(self.at).as_secs();
        let shorter = up(self).zip(up(later)).is_some_and(|(before, after)| after + 2 < before + elapsed);
        let started = |one: &Snapshot| one.epoch.get(..STARTS).map(<[_]>::to_vec);
        started(self).zip(started(later)).is_some_and(|(before, after)| before != after) || shorter
    }

    /// Whether somebody set its counters back before another time, while it went on.
    fn is_reset(&self, later: &Snapshot) -> bool {
        let known = !self.epoch.is_empty() && !later.epoch.is_empty();
        known && self.epoch != later.epoch && !self.is_restarted(later)
    }

    /// Whether counting began anew before another time, or may have.
    fn is_anew(&self, later: &Snapshot) -> bool {
        self.epoch != later.epoch || self.is_restarted(later)
    }

    /// What was counted from this time to another one; `None` where it was not, or counting began anew.
    fn since(&self, later: &Snapshot, name: &str) -> Option<u64> {
        if self.is_anew(later) {
            return None;
        }
        later.counters.get(name)?.checked_sub(*self.counters.get(name)?)
    }
}

/// How often, and how long apart, it is asked whether the load's sessions have ended.
const ASKED_MOST: u32 = 40;
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// Waits until the load's own sessions are gone, for a while: what a session has counted is only known when it ends.
pub(crate) fn wait_for_the_last(admin: &mut Admin, dialect: Dialect) {
    let others = match dialect {
        Dialect::Postgres | Dialect::Cockroach => {
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tidemark' AND pid <> pg_backend_pid() \
             AND datname = current_database()"
        }
        // Whose sessions they are is not told: all that still do something.
        Dialect::Mysql => {
            "SELECT count(*) FROM information_schema.processlist WHERE command <> 'Sleep' AND id <> connection_id() \
             AND db = database()"
        }
    };
    for _ in 0..ASKED_MOST {
        if !admin.value(others).is_ok_and(|count| count.is_some_and(|count| count != "0")) {
            return;
        }
        std::thread::sleep(ASKED_EVERY);
    }
}

/// For how long, beyond that, it is waited for the commits that clients know of: a session behind a pool of connections stays,
/// and tells after ten seconds what it has counted.
const TOLD_AFTER: Duration = Duration::from_secs(12);

/// The first version of PostgreSQL whose counters lose nothing; before it, they went through datagrams.
const EXACT_FROM: u32 = 15;

/// What clients and the document say of a load on a database.
pub(crate) struct Claim {
    /// Transactions whose commit was acknowledged.
    pub(crate) acknowledged: u64,
    /// Whether its reads are to come from storage.
    pub(crate) reads_storage: bool,
    /// Whether other databases of the load are on the same server.
    pub(crate) shares_server: bool,
}

/// When a checkpoint begins by itself: after a time, or earlier when so much has been written to the log that the one that then
/// begins is done before `max_wal_size` is reached (PostgreSQL documentation, *WAL Configuration*).
const CHECKPOINT_TIMEOUT: &str =
    "SELECT setting::bigint * 1000000000 FROM pg_settings WHERE name = 'checkpoint_timeout'";
const CHECKPOINT_LOG: &str = "SELECT (pg_size_bytes(current_setting('max_wal_size')) / \
    (1 + current_setting('checkpoint_completion_target')::float8))::bigint";

/// What a database is, and what it counted from `before` until now.
///
/// # Errors
/// The server's refusal.
pub(crate) fn used(
    admin: &mut Admin,
    target: &Target,
    before: &Snapshot,
    claim: &Claim,
) -> Result<DatabaseUse, Failure> {
    wait_for_the_last(admin, target.dialect);
    // MySQL counts what running sessions do at once, and only what is committed by a `COMMIT`.
    let tells_late = target.dialect != Dialect::Mysql;
    let asked = Instant::now();
    let mut after = Snapshot::read(admin, target.dialect);
    let lacks =
        |after: &Snapshot| before.since(after, "commits").is_some_and(|commits| commits < claim.acknowledged);
    while tells_late && lacks(&after) && asked.elapsed() < TOLD_AFTER {
        std::thread::sleep(ASKED_EVERY);
        after = Snapshot::read(admin, target.dialect);
    }
    let counted = |name: &str| before.since(&after, name);
    let version = admin.connection().version().to_owned();
    let major = version.split(['.', ' ']).next().and_then(|number| number.parse::<u32>().ok());
    let mut used = DatabaseUse {
        server: target.describe(),
        version,
        reads_storage: claim.reads_storage,
        shares_server: claim.shares_server,
        restarted: before.is_restarted(&after),
        counters_reset: before.is_reset(&after),
        acknowledged: claim.acknowledged,
        // Behind a pool, and on one of several servers, not all of the load's sessions are seen.
        commits_exact: target.dialect == Dialect::Postgres
            && major.is_some_and(|major| major >= EXACT_FROM)
            && target.prepared
            && target.endpoints.len() == 1,
        commits: counted("commits"),
        rollbacks: counted("rollbacks"),
        deadlocks: counted("deadlocks"),
        lock_waits: counted("lock_waits"),
        blocks_read: counted("blocks_read"),
        blocks_hit: counted("blocks_hit"),
        temporary_bytes: counted("temporary_bytes"),
        wal_bytes: counted("wal_bytes"),
        wal_full_pages: counted("wal_full_pages"),
        checkpoints: counted("checkpoints"),
        buffers_checkpoint: counted("buffers_checkpoint"),
        buffers_backend: counted("buffers_backend"),
        ..DatabaseUse::default()
    };
    match target.dialect {
        Dialect::Postgres => {}
        Dialect::Cockroach => return Ok(used),
        Dialect::Mysql => return mysql::describe(admin, &mut used).map(|()| used),
    }
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    used.block_bytes = number(admin.value("SELECT current_setting('block_size')")?);
    used.data_bytes = number(admin.value("SELECT pg_database_size(current_database())")?);
    let buffers = "SELECT setting::bigint * current_setting('block_size')::bigint FROM pg_settings WHERE name = 'shared_buffers'";
    used.cache_bytes = number(admin.value(buffers)?);
    used.checkpoint_timeout_ns = number(admin.value(CHECKPOINT_TIMEOUT)?);
    used.checkpoint_log_bytes = number(admin.value(CHECKPOINT_LOG)?);
    let names: Vec<String> =
        DURABILITY.iter().map(|(name, _)| *name).chain(SHOWN).map(|name| format!("'{name}'")).collect();
    let shown = admin.query(&format!(
        "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({}) ORDER BY name",
        names.join(", ")
    ))?;
    for row in shown {
        let [Some(name), Some(value)] = row.as_slice() else { continue };
        let known = DURABILITY.iter().find(|(known, values)| known == name && !values.is_empty());
        let durable = known.map(|(_, values)| values.contains(&value.as_str()));
        used.settings.push(DatabaseSetting { name: name.clone(), value: value.clone(), durable });
    }
    Ok(used)
}
