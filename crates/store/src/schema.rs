//! The file's tables, and how older files are brought up to date.

use crate::error::StoreError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// Marks the file as Tidemark's (SQLite's `application_id`): "Tidm".
const APPLICATION: i64 = 0x5469_646d;

/// Each step brings the schema from its index to the next number. Steps are never changed once released.
const STEPS: &[&str] = &[
    "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        started_unix_ns INTEGER NOT NULL,
        elapsed_ns INTEGER NOT NULL,
        state TEXT NOT NULL,
        -- The process that carries it out, while it goes on.
        owner TEXT NOT NULL,
        operations INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        -- NULL until it has ended.
        valid INTEGER,
        headline TEXT NOT NULL,
        -- The whole record: JSON, deflated.
        record BLOB NOT NULL
    );
    CREATE TABLE seconds (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        stage INTEGER NOT NULL,
        work INTEGER NOT NULL,
        second INTEGER NOT NULL,
        -- Counts and histograms of every operation, see codec.rs. Several rows of one second add up.
        interval BLOB NOT NULL
    );
    CREATE INDEX seconds_in_order ON seconds (run, stage, work, second);
",
    "
    CREATE TABLE evaluations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        started_unix_ns INTEGER NOT NULL,
        state TEXT NOT NULL,
        -- The process that carries it out, while it goes on.
        owner TEXT NOT NULL,
        -- NULL until it was judged.
        valid INTEGER,
        headline TEXT NOT NULL,
        -- The whole record: JSON, deflated.
        record BLOB NOT NULL
    );
    -- A run may belong to several: a new one takes over what an earlier one has measured.
    CREATE TABLE members (
        evaluation INTEGER NOT NULL REFERENCES evaluations (id) ON DELETE CASCADE,
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        PRIMARY KEY (evaluation, run)
    ) WITHOUT ROWID;
    CREATE INDEX members_by_run ON members (run);
",
    "
    -- Documents that a controller was asked to run, and what came of them.
    CREATE TABLE submissions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        format TEXT NOT NULL,
        by TEXT NOT NULL,
        priority INTEGER NOT NULL,
        -- Among those of its priority.
        position INTEGER NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        submitted_unix_ns INTEGER NOT NULL,
        started_unix_ns INTEGER,
        ended_unix_ns INTEGER,
        -- What was asked for beside the document: JSON.
        request TEXT NOT NULL,
        -- Sealed by the controller.
        document BLOB NOT NULL,
        document_redacted TEXT NOT NULL,
        idempotency_key TEXT,
        -- No references: what came of a submission may be deleted, and its number comes before it is stored.
        run INTEGER,
        evaluation INTEGER,
        valid INTEGER,
        headline TEXT NOT NULL,
        operations TEXT NOT NULL
    );
    CREATE UNIQUE INDEX submissions_by_key ON submissions (by, idempotency_key) WHERE idempotency_key IS NOT NULL;
    CREATE INDEX submissions_by_state ON submissions (state, id);
    CREATE INDEX submissions_by_run ON submissions (run) WHERE run IS NOT NULL;

    CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        -- SHA-256 of the token, which itself is nowhere.
        hash BLOB NOT NULL UNIQUE,
        created_unix_ns INTEGER NOT NULL,
        used_unix_ns INTEGER,
        revoked_unix_ns INTEGER
    );

    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        unix_ns INTEGER NOT NULL,
        by TEXT NOT NULL,
        address TEXT NOT NULL,
        what TEXT NOT NULL,
        detail TEXT NOT NULL
    );

    -- The numbers of every operation of every run that has ended, for lists over all runs.
    CREATE TABLE operations (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        stage TEXT NOT NULL,
        work TEXT NOT NULL,
        operation TEXT NOT NULL,
        sample TEXT NOT NULL,
        weight REAL,
        workers INTEGER NOT NULL,
        drivers INTEGER NOT NULL,
        ok INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        throughput REAL,
        bandwidth REAL,
        mean_ns REAL,
        -- Little-endian doubles, see operations.rs.
        percentiles BLOB NOT NULL,
        config TEXT NOT NULL,
        PRIMARY KEY (run, place)
    ) WITHOUT ROWID;
    -- Whether the operations of a run are in the table above.
    ALTER TABLE runs ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX runs_not_indexed ON runs (id) WHERE indexed = 0;
",
    "
    -- Of runs in progress: what is known of their stages. The record has all of it when the run has ended.
    CREATE TABLE stages (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        stage INTEGER NOT NULL,
        -- The stage and the run's notes so far: JSON, deflated.
        record BLOB NOT NULL,
        PRIMARY KEY (run, stage)
    ) WITHOUT ROWID;
",
    "
    -- Of runs in progress on drivers: what each driver did in the seconds above. The record has it when the run has ended.
    CREATE TABLE shares (
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        stage INTEGER NOT NULL,
        work INTEGER NOT NULL,
        second INTEGER NOT NULL,
        driver INTEGER NOT NULL,
        -- JSON, deflated.
        record BLOB NOT NULL,
        PRIMARY KEY (run, stage, work, driver, second)
    ) WITHOUT ROWID;
",
    "
    -- What the work is for, and its queue depth: the operations of all runs are gathered anew.
    ALTER TABLE operations ADD COLUMN kind TEXT NOT NULL DEFAULT '';
    ALTER TABLE operations ADD COLUMN depth INTEGER NOT NULL DEFAULT 1;
    UPDATE runs SET indexed = 0;
",
    "
    -- What lists show of a run beside its name, and its place in an evaluation. Runs that have none are listed anew.
    CREATE TABLE figures (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        load TEXT NOT NULL,
        throughput REAL NOT NULL,
        bandwidth REAL NOT NULL,
        p50_ns REAL,
        p99_ns REAL,
        -- Little-endian floats, see listed.rs.
        shape BLOB NOT NULL,
        arm TEXT NOT NULL,
        load_name TEXT NOT NULL,
        level TEXT NOT NULL,
        repeat INTEGER NOT NULL
    );
    -- What users wrote beside a run.
    CREATE TABLE remarks (
        run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        note TEXT NOT NULL,
        -- Each between commas: `,nightly,after-upgrade,`.
        tags TEXT NOT NULL
    );
    CREATE INDEX runs_by_name ON runs (name);
",
];

/// The newest schema known here.
pub(crate) const KNOWN: i64 = STEPS.len() as i64;

/// Brings the file to the newest schema. Refuses files of newer versions and of other programs.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sqlite = |error| StoreError::from_sqlite(path, error);
    // In one transaction, so that no process sees a half-migrated file.
    let look = connection.transaction().map_err(sqlite)?;
    if version(&look, path)? == KNOWN {
        return Ok(());
    }
    drop(look);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
    // Another process may have been faster.
    let version = version(&transaction, path)?;
    for step in STEPS.iter().skip(version as usize) {
        transaction.execute_batch(step).map_err(sqlite)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(sqlite)?;
    transaction.pragma_update(None, "user_version", KNOWN).map_err(sqlite)?;
    transaction.commit().map_err(sqlite)
}

/// The file's schema: 0 for a new file.
fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let number = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(|error| StoreError::from_sqlite(path, error))
    };
    let (version, application) = (number("PRAGMA user_version")?, number("PRAGMA application_id")?);
    let new = (version, application) == (0, 0) && number("SELECT count(*) FROM sqlite_schema")? == 0;
    if !new && (application != APPLICATION || version < 1) {
        return Err(StoreError::NotAStore { path: path.to_path_buf() });
    }
    if version > KNOWN {
        return Err(StoreError::NewerSchema { path: path.to_path_buf(), found: version, known: KNOWN });
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use crate::testing::{ended, interval};

    /// A file with the schema before the newest.
    fn older(path: &Path) {
        let connection = Connection::open(path).unwrap();
        STEPS[..2].iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "application_id", APPLICATION).unwrap();
        connection.pragma_update(None, "user_version", 2).unwrap();
        let record = crate::codec::encode(&ended("old", &[interval(0)])).unwrap();
        let sql = "INSERT INTO runs (name, started_unix_ns, elapsed_ns, state, owner, operations, failed, valid, headline, record)
                   VALUES ('old', 5, 6, 'completed', '', 7, 8, 1, 'fine', ?)";
        connection.execute(sql, [record]).unwrap();
        connection.execute("INSERT INTO seconds VALUES (1, 1, 0, 0, x'00')", []).unwrap();
    }

    #[test]
    fn an_older_file_is_migrated_and_keeps_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        older(&path);
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.list().unwrap()[0].headline, "fine");
        assert_eq!(store.load(1).unwrap().stages[1].works[0].operations.len(), 2);
        assert!(store.matrix(10, None).unwrap().is_empty(), "not indexed yet");
        assert_eq!(store.index_operations().unwrap(), 1);
        assert_eq!(store.matrix(10, None).unwrap().len(), 2);
        assert_eq!(version(store.connection(), &path).unwrap(), KNOWN);
    }

    #[test]
    fn several_processes_may_migrate_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        older(&path);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 1));
            }
        });
    }
}
