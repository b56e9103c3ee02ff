//! Who did what, and from where. Only the newest entries are kept.

use crate::error::StoreError;
use crate::store::{Store, signed};
use rusqlite::params;
use serde::Serialize;

/// Entries that are kept: years of a busy controller, some tens of megabytes.
const KEPT: u64 = 100_000;

/// Entries between two deletions of old ones.
const PRUNED_EVERY: u64 = 1_000;

/// A user's action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Its number, assigned by the store.
    pub id: u64,
    /// When, nanoseconds since 1970 UTC.
    pub unix_ns: u64,
    /// The name of the token, or empty.
    pub by: String,
    /// From where.
    pub address: String,
    /// What: `submit`, `cancel`, ...
    pub what: String,
    /// On what, and how: never a secret.
    pub detail: String,
}

impl Store {
    /// Records an action, and gives the entry its number.
    pub fn note(&mut self, entry: &AuditEntry) -> Result<u64, StoreError> {
        let sql = "INSERT INTO audit (unix_ns, by, address, what, detail) VALUES (?, ?, ?, ?, ?)";
        let values = params![signed(entry.unix_ns), entry.by, entry.address, entry.what, entry.detail];
        self.connection.execute(sql, values).map_err(|error| self.trouble(error))?;
        let id = self.connection.last_insert_rowid() as u64;
        if id.is_multiple_of(PRUNED_EVERY) {
            self.prune_audit()?;
        }
        Ok(id)
    }

    /// The entries, newest first: at most `limit`, optionally only those before the entry `before`.
    pub fn audit(&self, limit: usize, before: Option<u64>) -> Result<Vec<AuditEntry>, StoreError> {
        let sql =
            "SELECT id, unix_ns, by, address, what, detail FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?";
        let entry = |row: &rusqlite::Row<'_>| {
            Ok(AuditEntry {
                id: row.get::<_, i64>(0)? as u64,
                unix_ns: row.get::<_, i64>(1)? as u64,
                by: row.get(2)?,
                address: row.get(3)?,
                what: row.get(4)?,
                detail: row.get(5)?,
            })
        };
        self.rows(sql, params![signed(before.unwrap_or(u64::MAX)), signed(limit as u64)], entry)
    }

    /// Throws away all but the newest 100,000 entries.
    pub fn prune_audit(&mut self) -> Result<(), StoreError> {
        let sql = "DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?";
        let pruned = self.connection.execute(sql, [signed(KEPT)]);
        pruned.map_err(|error| self.trouble(error)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("results.db")).unwrap();
        let entry = AuditEntry {
            by: "anna".into(),
            what: "submit".into(),
            detail: "w1".into(),
            ..AuditEntry::default()
        };
        for _ in 0..3 {
            store.note(&entry).unwrap();
        }
        let ids = |entries: Vec<AuditEntry>| entries.iter().map(|entry| entry.id).collect::<Vec<_>>();
        assert_eq!(ids(store.audit(2, None).unwrap()), [3, 2]);
        assert_eq!(ids(store.audit(10, Some(3)).unwrap()), [2, 1]);
        assert_eq!(store.audit(1, None).unwrap()[0], AuditEntry { id: 3, ..entry.clone() });
        let jump = format!("UPDATE audit SET id = {} WHERE id = 3", KEPT + 1);
        store.connection().execute(&jump, []).unwrap();
        store.prune_audit().unwrap();
        assert_eq!(ids(store.audit(10, None).unwrap()), [KEPT + 1, 2]);
    }
}
