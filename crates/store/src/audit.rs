//! Who did what, and from where. Only the newest entries of each kind are kept: what anybody can cause, or does all day, pushes
//! nothing else out.

use crate::error::StoreError;
use crate::store::{Store, signed};
use rusqlite::params;
use serde::Serialize;

/// What a refused request is noted as.
pub const REFUSED: &str = "refused";

/// Kinds of entries, as conditions on what was done, and how many of each are kept: of deeds, years of a busy controller. Some
/// tens of megabytes in all.
const KEPT: [(&str, u64); 4] = [
    ("what = 'refused'", 10_000),
    ("what = 'login'", 10_000),
    ("what LIKE 'driver %'", 20_000),
    ("what NOT IN ('refused', 'login') AND what NOT LIKE 'driver %'", 100_000),
];

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

    /// Throws away old entries: of each kind apart.
    pub fn prune_audit(&mut self) -> Result<(), StoreError> {
        KEPT.iter().try_for_each(|(kind, kept)| self.prune(kind, *kept))
    }

    /// Throws away all but the newest entries of a kind.
    fn prune(&mut self, kind: &str, kept: u64) -> Result<(), StoreError> {
        let sql = format!(
            "DELETE FROM audit WHERE {kind} AND id <= (SELECT id FROM audit WHERE {kind} ORDER BY id DESC LIMIT 1 OFFSET ?)"
        );
        let pruned = self.connection.execute(&sql, [signed(kept)]);
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
    }

    #[test]
    fn no_kind_of_entry_pushes_another_out() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("results.db")).unwrap();
        let note = |store: &mut Store, what: &str, times: usize| {
            let entry = AuditEntry { what: what.into(), ..AuditEntry::default() };
            (0..times).for_each(|_| drop(store.note(&entry).unwrap()));
        };
        note(&mut store, "submit", 2);
        for what in [REFUSED, "login", "driver joined", "driver gone"] {
            note(&mut store, what, 4);
        }
        note(&mut store, "delete run", 2);
        KEPT.iter().for_each(|(kind, _)| store.prune(kind, 3).unwrap());
        let count =
            |what: &str| store.audit(100, None).unwrap().iter().filter(|entry| entry.what == what).count();
        let left = ["submit", REFUSED, "login", "driver joined", "driver gone", "delete run"].map(count);
        assert_eq!(left, [1, 3, 3, 0, 3, 2], "three of each kind, and the newest");
        // Everything is of one kind.
        let kinds: Vec<String> = KEPT.iter().map(|(kind, _)| format!("({kind})")).collect();
        let sql = format!("SELECT count(*) FROM audit WHERE {} != 1", kinds.join(" + "));
        assert_eq!(store.connection().query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    }
}
