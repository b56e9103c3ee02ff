//! Commits as operations of a load.

use crate::iceberg::commit::{self, Change, Committed, Tried};
use crate::iceberg::files::{Files, Only, Version};
use crate::iceberg::history::Acknowledged;
use crate::iceberg::manifest;
use crate::iceberg::records::{DataContentType, DataFile};
use crate::iceberg::rows;
use crate::tables::failure::Failure;
use crate::tables::tasks::{Doing, Ended, Tasks};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidemark_iceberg::commits::{AttemptCount, TableFile};
use tidemark_iceberg::job::Commits;
use tidemark_load::engine::{Clock, Operation, Outcome, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::rng::Rng;

/// The committers of a load.
pub(crate) struct Committers {
    files: Arc<Files>,
    commits: Commits,
    /// The newest version that each committer knows.
    known: Vec<tokio::sync::Mutex<Option<Arc<Version>>>>,
    books: Arc<Books>,
}

/// What committers have done so far.
#[derive(Debug, Default)]
pub(crate) struct Books(Mutex<Entries>);

/// What is in the books.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub acknowledged: Vec<Acknowledged>,
    attempts: BTreeMap<u32, u64>,
    pub lost_races: u64,
    pub looked_up: u64,
}

impl Entries {
    /// How many attempts commits took.
    pub(crate) fn attempts(&self) -> Vec<AttemptCount> {
        self.attempts
            .iter()
            .map(|(attempts, commits)| AttemptCount { attempts: *attempts, commits: *commits })
            .collect()
    }
}

impl Books {
    /// What is in them.
    pub(crate) fn read(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit has ended.
    pub(crate) fn enter(&self, tried: Tried, acknowledged: Option<Acknowledged>) {
        let mut entries = self.read();
        entries.lost_races += u64::from(tried.lost);
        entries.looked_up += u64::from(tried.looked_up);
        if let Some(acknowledged) = acknowledged {
            *entries.attempts.entry(tried.attempts).or_default() += 1;
            entries.acknowledged.push(acknowledged);
        }
    }
}

impl Committers {
    /// So many of a table that all know in this version.
    pub(crate) fn new(
        files: Arc<Files>,
        commits: &Commits,
        count: u32,
        known: &Arc<Version>,
        books: Arc<Books>,
    ) -> Self {
        let known = (0..count).map(|_| tokio::sync::Mutex::new(Some(Arc::clone(known)))).collect();
        Self { files, commits: commits.clone(), known, books }
    }

    async fn append(&self, slot: u32, operation: &Operation) -> (Tried, Result<(Committed, u64), Failure>) {
        let Some(known) = self.known.get(slot as usize) else {
            let failure = Failure::new(Fault::Local, "the load has no such committer");
            return (Tried::default(), Err(failure));
        };
        let mut rng = Rng::new(operation.random, &[]);
        let file = match self.data_file(slot, &mut rng).await {
            Ok(file) => file,
            Err(failure) => return (Tried::default(), Err(failure)),
        };
        let bytes = file.file_size_in_bytes();
        // An operation that is given up drops it, and its committer looks the version up again.
        let mut known = known.lock().await;
        let change = match Change::append(vec![file]) {
            Ok(change) => change,
            Err(failure) => return (Tried::default(), Err(failure)),
        };
        let protocol = &self.commits.protocol;
        let (tried, done) = commit::commit(&self.files, protocol, &mut known, &change, &mut rng).await;
        if done.as_ref().is_err_and(commit::is_void) {
            commit::discard_added(&self.files, &change).await;
        }
        (tried, done.map(|done| (done, bytes)))
    }

    /// Writes the rows of an append.
    async fn data_file(&self, slot: u32, rng: &mut Rng) -> Result<DataFile, Failure> {
        let (unique, count) = (commit::unique()?, self.commits.rows);
        let content = rows::encode(&rows::rows(count, slot + 1, unique, rng))?;
        let path = self.files.data(&format!("{unique:016x}.parquet"));
        let file = manifest::data_file(
            DataContentType::Data,
            self.files.called(&path),
            count.into(),
            content.len() as u64,
        )?;
        self.files.write(TableFile::Data, &path, content.into(), Only::Always).await?;
        Ok(file)
    }
}

impl Tasks for Committers {
    fn begin(self: Arc<Self>, slot: u32, operation: Operation, _clock: Clock, _sent: Tick) -> Doing {
        Box::pin(async move {
            let (tried, done) = self.append(slot, &operation).await;
            let rows = self.commits.rows.into();
            let entry = done.as_ref().ok().map(|(commit, _)| Acknowledged {
                commit: *commit,
                committer: slot + 1,
                rows,
            });
            self.books.enter(tried, entry);
            match done {
                Ok((_, bytes)) => {
                    let retries = tried.attempts.saturating_sub(1);
                    Ended { outcome: Outcome { retries, ..Outcome::success(bytes) }, ..Ended::default() }
                }
                Err(failure) => failure.ended(),
            }
        })
    }
}
