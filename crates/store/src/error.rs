//! What can go wrong with the store: what happened, where, and what to do.

use rusqlite::ErrorCode;
use std::path::{Path, PathBuf};

/// SQLite does not tell which of these it was.
const CANNOT_OPEN: &str =
    "it is a directory, or this user may not write to it or to the directory that it lies in";

/// An operation on the store failed. None of these loses what a run has in memory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file was written by a newer Tidemark.
    #[error(
        "{} was written by a newer Tidemark (schema {found}; this version supports up to {known}); \
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
    /// The file is not a result store.
    #[error(
        "{} is not a Tidemark result store; set another file with --store or TIDEMARK_STORE",
        path.display()
    )]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error(
        "no space left for {}; free some, or set another file with --store or TIDEMARK_STORE",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file is read-only.
    #[error(
        "cannot write {}: the file, its directory or its file system is read-only for this user; \
         make it writable, or name a file elsewhere with --store or TIDEMARK_STORE",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened.
    #[error(
        "cannot open {}: {reason}; check the path, or set another file with --store or TIDEMARK_STORE",
        path.display()
    )]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        reason: String,
    },
    /// The disk is full in an unusual place, or failing.
    #[error(
        "cannot read or write {}: {source}; the disk is full or failing: check it, or set another file with \
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
        "{} has been locked by another process for {} s; wait for it, or set another file with \
         --store or TIDEMARK_STORE",
        path.display(),
        crate::store::BUSY_TIMEOUT.as_secs()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// There is no such run.
    #[error("there is no run {id} in {}; list stored results with `tidemark runs`", path.display())]
    NoSuchRun {
        /// The file.
        path: PathBuf,
        /// The requested number.
        id: u64,
    },
    /// There is no such evaluation.
    #[error("there is no evaluation {id} in {}; list stored results with `tidemark runs`", path.display())]
    NoSuchEvaluation {
        /// The file.
        path: PathBuf,
        /// The requested number.
        id: u64,
    },
    /// A run that is in progress cannot be deleted.
    #[error("run {id} is still running; stop it first")]
    StillRunning {
        /// Its number.
        id: u64,
    },
    /// There is no such submission.
    #[error("there is no submission {id} in {}", path.display())]
    NoSuchSubmission {
        /// The file.
        path: PathBuf,
        /// The requested number.
        id: u64,
    },
    /// A token cannot be created or revoked; the text says why.
    #[error("{0}")]
    Token(String),
    /// What a user wrote beside a run cannot be kept.
    #[error("{0}")]
    Remark(String),
    /// Another controller has the store.
    #[error(
        "another controller uses {}: {holder}; stop it first, or set another file with --store or TIDEMARK_STORE",
        path.display()
    )]
    Controlled {
        /// The file.
        path: PathBuf,
        /// The other one's description: `process 4711 at https://10.0.0.1:19088, since ...`.
        holder: String,
    },
    /// A stored record is damaged.
    #[error(
        "{}: {what}; restore the file from a backup, or create a new one with --store or TIDEMARK_STORE",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What.
        what: String,
    },
    /// Any other error of SQLite.
    #[error("{}: {source}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Translates SQLite's error about the file at `path`.
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
