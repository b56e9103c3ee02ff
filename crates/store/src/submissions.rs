//! Documents submitted to a controller, and their results.
//!
//! The store does not look into what it keeps here: states are names, a request is text, a document is sealed bytes.

use crate::error::StoreError;
use crate::store::{Store, signed};
use rusqlite::{OptionalExtension as _, Transaction, TransactionBehavior, params};
use std::collections::BTreeMap;

/// A submission without its document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// Its number, assigned by the store.
    pub id: u64,
    /// The document's name.
    pub name: String,
    /// The document's format.
    pub format: String,
    /// The name of the token that submitted it.
    pub by: String,
    /// Submissions with a higher priority start first.
    pub priority: i32,
    /// Among equal priorities, lower positions start first.
    pub position: i64,
    /// Its state: `queued`, `running`, ...
    pub state: String,
    /// Why it waits, failed or was interrupted; otherwise empty.
    pub reason: String,
    /// When it was submitted, nanoseconds since 1970 UTC.
    pub submitted_unix_ns: u64,
    /// When it started, if it did.
    pub started_unix_ns: Option<u64>,
    /// When it ended, if it did.
    pub ended_unix_ns: Option<u64>,
    /// What was requested besides the document: JSON.
    pub request: String,
    /// Its run (the last one of an evaluation), as long as the store has it.
    pub run: Option<u64>,
    /// Its evaluation, as long as the store has it.
    pub evaluation: Option<u64>,
    /// Whether its numbers are VALID, once it was judged.
    pub valid: Option<bool>,
    /// One line of its result, or empty.
    pub headline: String,
    /// Its operations, for lists.
    pub operations: String,
}

/// Columns of a [`Submission`], in the order in which [`read`] takes them.
const COLUMNS: &str =
    "id, name, format, by, priority, position, state, reason, submitted_unix_ns, started_unix_ns,
    ended_unix_ns, request, (SELECT id FROM runs WHERE id = submissions.run),
    (SELECT id FROM evaluations WHERE id = submissions.evaluation), valid, headline, operations";

impl Store {
    /// Stores a new submission with its document, both sealed and without secrets, and assigns its number. `key` is the
    /// submitter's name for the request, which prevents duplicates: see [`Store::submission_by_key`].
    pub fn add_submission(
        &mut self,
        submission: &Submission,
        document: &[u8],
        redacted: &str,
        key: Option<&str>,
    ) -> Result<u64, StoreError> {
        let sql = "INSERT INTO submissions (name, format, by, priority, position, state, reason, submitted_unix_ns,
                   started_unix_ns, ended_unix_ns, request, document, document_redacted, idempotency_key, run, evaluation,
                   valid, headline, operations) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let values = params![
            submission.name,
            submission.format,
            submission.by,
            submission.priority,
            submission.position,
            submission.state,
            submission.reason,
            signed(submission.submitted_unix_ns),
            submission.started_unix_ns.map(signed),
            submission.ended_unix_ns.map(signed),
            submission.request,
            document,
            redacted,
            key,
            submission.run.map(signed),
            submission.evaluation.map(signed),
            submission.valid,
            submission.headline,
            submission.operations,
        ];
        self.connection.execute(sql, values).map_err(|error| self.trouble(error))?;
        Ok(self.connection.last_insert_rowid() as u64)
    }

    /// Stores the present state of a submission: everything but what is fixed when it is submitted (name, format, token,
    /// request, time of submission).
    pub fn keep_submission(&mut self, submission: &Submission) -> Result<(), StoreError> {
        let sql =
            "UPDATE submissions SET priority = ?, position = ?, state = ?, reason = ?, started_unix_ns = ?,
                   ended_unix_ns = ?, run = ?, evaluation = ?, valid = ?, headline = ? WHERE id = ?";
        let values = params![
            submission.priority,
            submission.position,
            submission.state,
            submission.reason,
            submission.started_unix_ns.map(signed),
            submission.ended_unix_ns.map(signed),
            submission.run.map(signed),
            submission.evaluation.map(signed),
            submission.valid,
            submission.headline,
            signed(submission.id),
        ];
        match self.connection.execute(sql, values).map_err(|error| self.trouble(error))? {
            0 => Err(self.no_such_submission(submission.id)),
            _ => Ok(()),
        }
    }

    /// Sets the priorities and positions of submissions: all of them or none.
    pub fn reorder_submissions(&mut self, order: &[(u64, i32, i64)]) -> Result<(), StoreError> {
        let write = || -> rusqlite::Result<()> {
            let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let sql = "UPDATE submissions SET priority = ?, position = ? WHERE id = ?";
            for (id, priority, position) in order {
                transaction.prepare_cached(sql)?.execute(params![priority, position, signed(*id)])?;
            }
            transaction.commit()
        };
        write().map_err(|error| self.trouble(error))
    }

    /// Reads a submission.
    pub fn submission(&self, id: u64) -> Result<Submission, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM submissions WHERE id = ?");
        self.rows(&sql, [signed(id)], read)?.pop().ok_or_else(|| self.no_such_submission(id))
    }

    /// The submission with a key that its submitter chose.
    pub fn submission_by_key(&self, by: &str, key: &str) -> Result<Option<Submission>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM submissions WHERE by = ? AND idempotency_key = ?");
        Ok(self.rows(&sql, [by, key], read)?.pop())
    }

    /// Submissions, newest first: at most `limit`, optionally only those in one state and only those before the submission
    /// `before`.
    pub fn submissions(
        &self,
        state: Option<&str>,
        limit: usize,
        before: Option<u64>,
    ) -> Result<Vec<Submission>, StoreError> {
        let (before, limit) = (signed(before.unwrap_or(u64::MAX)), signed(limit as u64));
        let with = |filter: &str| {
            format!("SELECT {COLUMNS} FROM submissions WHERE {filter} id < ? ORDER BY id DESC LIMIT ?")
        };
        match state {
            Some(state) => self.rows(&with("state = ? AND"), params![state, before, limit], read),
            None => self.rows(&with(""), params![before, limit], read),
        }
    }

    /// A submission's document: sealed, and without its secrets.
    pub fn submitted_document(&self, id: u64) -> Result<(Vec<u8>, String), StoreError> {
        let sql = "SELECT document, document_redacted FROM submissions WHERE id = ?";
        let found =
            self.connection.query_row(sql, [signed(id)], |row| Ok((row.get(0)?, row.get(1)?))).optional();
        found.map_err(|error| self.trouble(error))?.ok_or_else(|| self.no_such_submission(id))
    }

    /// The submission of every run of these numbers that came from one.
    pub fn submissions_of_runs(
        &self,
        runs: std::ops::RangeInclusive<u64>,
    ) -> Result<BTreeMap<u64, u64>, StoreError> {
        let sql = "SELECT run, id FROM submissions WHERE run BETWEEN ? AND ?";
        let pair = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64));
        let ends = [runs.start(), runs.end()].map(|run| signed(*run));
        Ok(self.rows(sql, ends, pair)?.into_iter().collect())
    }

    fn no_such_submission(&self, id: u64) -> StoreError {
        StoreError::NoSuchSubmission { path: self.path.clone(), id }
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Submission> {
    let maybe = |column| row.get::<_, Option<i64>>(column).map(|number| number.map(|number| number as u64));
    Ok(Submission {
        id: row.get::<_, i64>(0)? as u64,
        name: row.get(1)?,
        format: row.get(2)?,
        by: row.get(3)?,
        priority: row.get(4)?,
        position: row.get(5)?,
        state: row.get(6)?,
        reason: row.get(7)?,
        submitted_unix_ns: row.get::<_, i64>(8)? as u64,
        started_unix_ns: maybe(9)?,
        ended_unix_ns: maybe(10)?,
        request: row.get(11)?,
        run: maybe(12)?,
        evaluation: maybe(13)?,
        valid: row.get(14)?,
        headline: row.get(15)?,
        operations: row.get(16)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Listing;
    use crate::testing::{begun, ended};

    fn new() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("results.db")).unwrap();
        (directory, store)
    }

    fn submission(name: &str) -> Submission {
        Submission {
            name: name.into(),
            format: "COSBench XML".into(),
            by: "anna".into(),
            state: "queued".into(),
            submitted_unix_ns: 1_700_000_000_000_000_001,
            request: "{}".into(),
            operations: "read, write".into(),
            ..Submission::default()
        }
    }

    #[test]
    fn a_submission_is_stored_from_start_to_end() {
        let (_directory, mut store) = new();
        let mut own = submission("a");
        own.id = store.add_submission(&own, b"sealed", "redacted", Some("key")).unwrap();
        assert_eq!(store.submission(own.id).unwrap(), own);
        assert_eq!(store.submitted_document(own.id).unwrap(), (b"sealed".to_vec(), "redacted".into()));
        let run = store.add(&ended("a", &[]), &Listing::default()).unwrap();
        own = Submission {
            state: "completed".into(),
            reason: "because".into(),
            started_unix_ns: Some(3),
            ended_unix_ns: Some(4),
            run: Some(run),
            valid: Some(true),
            headline: "fast".into(),
            priority: -3,
            position: 9,
            ..own
        };
        store.keep_submission(&own).unwrap();
        assert_eq!(store.submission(own.id).unwrap(), own);
        assert_eq!(store.submissions_of_runs(0..=u64::MAX).unwrap(), BTreeMap::from([(run, own.id)]));
        store.delete(run).unwrap();
        assert_eq!(store.submission(own.id).unwrap().run, None, "the run was deleted");
    }

    #[test]
    fn a_started_run_is_known() {
        let (_directory, mut store) = new();
        let begun_now = store.begun();
        assert_eq!(begun_now.load(std::sync::atomic::Ordering::Relaxed), 0);
        let id = store.begin(&begun("x")).unwrap();
        assert_eq!(begun_now.load(std::sync::atomic::Ordering::Relaxed), id);
    }

    #[test]
    fn a_key_is_taken_once_by_each_submitter() {
        let (_directory, mut store) = new();
        let first = store.add_submission(&submission("a"), b"", "", Some("key")).unwrap();
        assert!(store.add_submission(&submission("b"), b"", "", Some("key")).is_err());
        let other = Submission { by: "ben".into(), ..submission("c") };
        store.add_submission(&other, b"", "", Some("key")).unwrap();
        store.add_submission(&submission("d"), b"", "", None).unwrap();
        store.add_submission(&submission("e"), b"", "", None).unwrap();
        assert_eq!(store.submission_by_key("anna", "key").unwrap().map(|found| found.id), Some(first));
        assert_eq!(store.submission_by_key("anna", "other").unwrap(), None);
    }

    #[test]
    fn lists_are_filtered_and_paged() {
        let (_directory, mut store) = new();
        for (index, state) in ["queued", "completed", "queued", "queued"].iter().enumerate() {
            let own = Submission { state: (*state).into(), ..submission(&index.to_string()) };
            store.add_submission(&own, b"", "", None).unwrap();
        }
        let ids = |found: Vec<Submission>| found.iter().map(|own| own.id).collect::<Vec<_>>();
        assert_eq!(ids(store.submissions(None, 10, None).unwrap()), [4, 3, 2, 1]);
        assert_eq!(ids(store.submissions(Some("queued"), 2, None).unwrap()), [4, 3]);
        assert_eq!(ids(store.submissions(Some("queued"), 2, Some(3)).unwrap()), [1]);
        store.reorder_submissions(&[(4, 7, 1), (1, 7, 2)]).unwrap();
        let moved = store.submission(1).unwrap();
        assert_eq!((moved.priority, moved.position), (7, 2));
    }

    #[test]
    fn missing_submissions_are_named() {
        let (_directory, mut store) = new();
        let gone = Submission { id: 7, ..submission("x") };
        for error in [
            store.submission(7).unwrap_err(),
            store.keep_submission(&gone).unwrap_err(),
            store.submitted_document(7).unwrap_err(),
        ] {
            assert!(error.to_string().contains("there is no submission 7"), "{error}");
        }
    }
}
