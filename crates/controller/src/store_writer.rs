//! The controller's pen: everything that it writes into the store goes through here. What cannot be written is kept in memory
//! and tried again; trouble with the store stops no run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_control::listing;
use tidemark_measure::record::Run;
use tidemark_measure::units;
use tidemark_store::{AuditEntry, REFUSED, Store, StoreError, Submission};

/// Entries of the audit log that are kept in memory while they cannot be written; then refusals go, and the oldest.
const MOST_ENTRIES: usize = 10_000;

/// Less free space than this is a trouble, bytes: a long run of many operations takes some megabytes.
const LEAST_FREE: u64 = 8 << 20;

/// Writes into the store.
pub(crate) struct StoreWriter {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    store: Store,
    /// Where submissions stand, of which the store does not know yet.
    submissions: BTreeMap<u64, Submission>,
    /// Runs of submissions that are not in the store, or not whole.
    runs: Vec<(u64, Run)>,
    /// Submissions whose runs were stored after all, and the runs' numbers.
    stored: Vec<(u64, u64)>,
    entries: Vec<AuditEntry>,
    /// What went wrong last.
    trouble: Option<String>,
}

impl StoreWriter {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let inner = Inner {
            store: Store::open(path)?,
            submissions: BTreeMap::new(),
            runs: Vec::new(),
            stored: Vec::new(),
            entries: Vec::new(),
            trouble: None,
        };
        Ok(Self { path: path.to_path_buf(), inner: Mutex::new(inner) })
    }

    /// Where the store lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from the store.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        read(&self.inner().store)
    }

    /// Writes what must be written now or not at all.
    pub(crate) fn write<T>(
        &self,
        write: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut inner = self.inner();
        let written = write(&mut inner.store);
        inner.trouble = written.as_ref().err().map(ToString::to_string).or(inner.trouble.take());
        written
    }

    /// Keeps a new submission, or gives the one that its submitter's key made before.
    pub(crate) fn add(
        &self,
        submission: Submission,
        sealed: &[u8],
        redacted: &str,
        key: Option<&str>,
    ) -> Result<Added, StoreError> {
        self.write(|store| {
            if let Some(key) = key
                && let Some(before) = store.submission_by_key(&submission.by, key)?
            {
                return Ok(Added::Existing(before.id));
            }
            let id = store.add_submission(&submission, sealed, redacted, key)?;
            Ok(Added::New(Box::new(Submission { id, ..submission })))
        })
    }

    /// Keeps where a submission stands.
    pub(crate) fn keep(&self, submission: &Submission) {
        let mut inner = self.inner();
        inner.submissions.insert(submission.id, submission.clone());
        inner.flush();
    }

    /// Keeps a run that could not be stored while it went on.
    pub(crate) fn keep_run(&self, submission: u64, run: Run) {
        let mut inner = self.inner();
        inner.runs.push((submission, run));
        inner.flush();
    }

    /// Notes something in the audit log.
    pub(crate) fn audit(&self, entry: AuditEntry) {
        let mut inner = self.inner();
        if inner.entries.len() >= MOST_ENTRIES {
            // What was refused pushes nothing out that was done.
            let refused = inner.entries.iter().position(|entry| entry.what == REFUSED);
            inner.entries.remove(refused.unwrap_or(0));
        }
        inner.entries.push(entry);
        inner.flush();
    }

    /// Tries again to write what could not be written.
    pub(crate) fn retry(&self) {
        let mut inner = self.inner();
        if inner.trouble.is_some() {
            inner.flush();
        }
    }

    /// Submissions whose runs were stored since this was asked last, and the runs' numbers.
    pub(crate) fn take_stored(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.inner().stored)
    }

    /// Submissions as they stand, of which the store does not know yet.
    pub(crate) fn unsaved(&self) -> Vec<Submission> {
        self.inner().submissions.values().cloned().collect()
    }

    /// Whether a submission's run is not in the store yet.
    pub(crate) fn unsaved_run(&self, id: u64) -> bool {
        self.inner().runs.iter().any(|(own, _)| *own == id)
    }

    /// What an operator should know.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let inner = self.inner();
        let Some(trouble) = &inner.trouble else { return self.low_disk_space().into_iter().collect() };
        let mut troubles = vec![format!("cannot write to the result store: {trouble}")];
        if !inner.runs.is_empty() {
            let runs: Vec<String> = inner.runs.iter().map(|(id, _)| format!("w{id}")).collect();
            troubles.push(format!("results held in memory until they can be stored: {}", runs.join(", ")));
        }
        troubles
    }
}

impl StoreWriter {
    /// Runs write by themselves: that their disk is full shows here before anything else is to be written.
    fn low_disk_space(&self) -> Option<String> {
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // Where the system does not tell, a write will.
        let disk = rustix::fs::statvfs(directory.unwrap_or(Path::new("."))).ok()?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        (free < LEAST_FREE).then(|| {
            let (free, path) = (units::bytes(free), self.path.display());
            format!("only {free} free for the result store {path}: once the disk is full, results are held in memory")
        })
    }
}

/// What came of adding a submission.
pub(crate) enum Added {
    /// It is new.
    New(Box<Submission>),
    /// Its key made this one before.
    Existing(u64),
}

impl Inner {
    /// Writes as much as can be written.
    fn flush(&mut self) {
        self.trouble = self.try_flush().err().map(|error| error.to_string());
    }

    fn try_flush(&mut self) -> Result<(), StoreError> {
        while let Some((submission, run)) = self.runs.first() {
            let (submission, id) = (*submission, store_run(&mut self.store, run)?);
            self.runs.remove(0);
            self.stored.push((submission, id));
            let own = match self.submissions.get(&submission) {
                Some(unsaved) => Ok(unsaved.clone()),
                None => self.store.submission(submission),
            };
            match own {
                Ok(own) => drop(self.submissions.insert(submission, Submission { run: Some(id), ..own })),
                // Somebody has removed it from the store.
                Err(StoreError::NoSuchSubmission { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        while let Some((id, submission)) = self.submissions.first_key_value() {
            let id = *id;
            match self.store.keep_submission(submission) {
                // Somebody has removed it from the store: there is nothing to keep.
                Ok(()) | Err(StoreError::NoSuchSubmission { .. }) => {}
                Err(error) => return Err(error),
            }
            self.submissions.remove(&id);
        }
        while let Some(entry) = self.entries.first() {
            self.store.note(entry)?;
            self.entries.remove(0);
        }
        Ok(())
    }
}

/// Stores a run under the number that it has, if it has one.
fn store_run(store: &mut Store, run: &Run) -> Result<u64, StoreError> {
    let listing = listing::of_run(run);
    if run.id != 0 {
        match store.finish(run.id, run, &listing) {
            Err(StoreError::NoSuchRun { .. }) => {}
            finished => return finished.map(|()| run.id),
        }
    }
    store.add(run, &listing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::record::State;

    /// SQL behind the writer's back: `query_only` is what a disk does that cannot be written any more.
    fn read_only(path: &Path, on: bool) {
        let trigger = match on {
            true => ["submissions", "runs", "audit"].map(|table| ["INSERT", "UPDATE"].map(|what| {
                format!("CREATE TRIGGER no_{what}_{table} BEFORE {what} ON {table} BEGIN SELECT RAISE(ABORT, 'no'); END;")
            }).concat()).concat(),
            false => ["submissions", "runs", "audit"].map(|table| ["INSERT", "UPDATE"].map(|what| {
                format!("DROP TRIGGER no_{what}_{table};")
            }).concat()).concat(),
        };
        rusqlite::Connection::open(path).unwrap().execute_batch(&trigger).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_written_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        let writer = StoreWriter::open(&path).unwrap();
        let new = Submission { by: "anna".into(), state: "queued".into(), ..Submission::default() };
        let Ok(Added::New(mut own)) = writer.add(new.clone(), b"", "", Some("k")) else {
            panic!("it is new")
        };
        assert!(
            matches!(writer.add(new.clone(), b"", "", Some("k")), Ok(Added::Existing(id)) if id == own.id)
        );
        read_only(&path, true);
        assert!(writer.add(new, b"", "", None).is_err());
        own.state = "completed".into();
        writer.keep(&own);
        let run = Run { name: "kept".into(), state: State::Completed, ..Run::default() };
        writer.keep_run(own.id, run);
        writer.audit(AuditEntry { what: "submit".into(), ..AuditEntry::default() });
        let troubles = writer.troubles();
        assert!(troubles.len() == 2 && troubles[1].ends_with(&format!(": w{}", own.id)), "{troubles:?}");
        assert_eq!(writer.unsaved()[0].state, "completed");
        assert_eq!(writer.read(|store| store.submission(own.id)).unwrap().state, "queued");
        writer.retry();
        assert_eq!(writer.unsaved().len(), 1, "still in trouble");
        read_only(&path, false);
        writer.retry();
        assert_eq!((writer.troubles(), writer.unsaved()), (vec![], vec![]));
        let stored = writer.read(|store| store.submission(own.id)).unwrap();
        assert_eq!(stored.state, "completed");
        let run = writer.read(|store| store.load(stored.run.unwrap())).unwrap();
        assert_eq!((run.name.as_str(), run.state), ("kept", State::Completed));
        assert_eq!(writer.read(|store| store.audit(10, None)).unwrap().len(), 1);
    }

    #[test]
    fn a_run_that_has_a_number_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let writer = StoreWriter::open(&directory.path().join("results.db")).unwrap();
        let Ok(Added::New(own)) = writer.add(Submission::default(), b"", "", None) else {
            panic!("it is new")
        };
        let begun = Run { state: State::Running, ..Run::default() };
        let id = writer.write(|store| store.begin(&begun)).unwrap();
        writer.keep_run(own.id, Run { id, state: State::Completed, ..begun });
        assert_eq!(writer.read(Store::list).unwrap().len(), 1);
        assert_eq!(writer.read(|store| store.load(id)).unwrap().state, State::Completed);
        assert_eq!(writer.read(|store| store.submission(own.id)).unwrap().run, Some(id));
    }
}
