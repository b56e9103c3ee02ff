//! What can go wrong with the store: what happened, where, and what to do.

use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// SQLite does not tell which of these it was.
const CANNOT_OPEN: &str =
    "it is a directory, or this user may not write to it or to the directory that it lies in";

/// The store could not do what it was asked to. None of these loses what a run has in memory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file was written by a newer Tidemark.
    #[error(
        "{} was written by a newer Tidemark (schema {found}, this one knows up to {known}); \
         use that version, or another file with --store or TIDEMARK_STORE",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema known here.
        known: i64,
    },
    /// The file is something else.
    #[error(
        "{} is not a Tidemark result store; name another file with --store or TIDEMARK_STORE",
        path.display()
    )]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// No room left.
    #[error(
        "no space left for {}; free some, or name a file elsewhere with --store or TIDEMARK_STORE",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It may not be written.
    #[error(
        "{} cannot be written: the file, its directory or its file system is read-only for this user; \
         make it writable, or name a file elsewhere with --store or TIDEMARK_STORE",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be opened at all.
    #[error(
        "cannot open {}: {reason}; check the path, or name a file elsewhere with --store or TIDEMARK_STORE",
        path.display()
    )]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
    },
    /// The disk is full in an unusual place, or failing.
    #[error(
        "cannot read or write {}: {source}; the disk is full or failing: check it, or name a file elsewhere with \
         --store or TIDEMARK_STORE",
        path.display()
    )]
    Disk {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// Another process held the write lock for too long.
    #[error(
        "{} has been locked by another process for {} s; wait until that is done, or name another file with \
         --store or TIDEMARK_STORE",
        path.display(),
        crate::store::PATIENCE.as_secs()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// There is no such run.
    #[error("there is no run {id} in {}; `tidemark runs` lists them", path.display())]
    NoSuchRun {
        /// The file.
        path: PathBuf,
        /// The number asked for.
        id: u64,
    },
    /// There is no such evaluation.
    #[error("there is no evaluation {id} in {}; `tidemark runs` lists them", path.display())]
    NoSuchEvaluation {
        /// The file.
        path: PathBuf,
        /// The number asked for.
        id: u64,
    },
    /// A run that goes on cannot be deleted.
    #[error("run {id} is still going on; end it first")]
    StillRunning {
        /// Its number.
        id: u64,
    },
    /// There is no such submission.
    #[error("there is no submission {id} in {}", path.display())]
    NoSuchSubmission {
        /// The file.
        path: PathBuf,
        /// The number asked for.
        id: u64,
    },
    /// A token cannot be made or revoked, and why.
    #[error("{0}")]
    Token(String),
    /// Another controller has the store.
    #[error(
        "another controller has {}: {holder}; end it first, or name another file with --store or TIDEMARK_STORE",
        path.display()
    )]
    Controlled {
        /// The file.
        path: PathBuf,
        /// What the other one says of itself: `process 4711 at https://10.0.0.1:19088, since ...`.
        holder: String,
    },
    /// What was read makes no sense.
    #[error(
        "{}: {what}; restore the file from a backup, or start a new one with --store or TIDEMARK_STORE",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What.
        what: String,
    },
    /// Anything else that SQLite says.
    #[error("{}: {source}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Translates what SQLite says about the file at `path`.
    pub(crate) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::NotADatabase) => Self::NotAStore { path },
            Some(ErrorCode::CannotOpen) => Self::Unreachable { path, reason: CANNOT_OPEN.into() },
            Some(ErrorCode::SystemIoFailure) => Self::Disk { path, source },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, what: source.to_string() },
            _ => Self::Other { path, source },
        }
    }
}
