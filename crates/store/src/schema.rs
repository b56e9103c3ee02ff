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
];

/// The newest schema known here.
pub(crate) const KNOWN: i64 = STEPS.len() as i64;

/// Brings the file to the newest schema. Refuses files of newer versions and of other programs.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let sqlite = |error| StoreError::from_sqlite(path, error);
    // In one transaction: what another process makes of the file meanwhile must not be seen by halves.
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
