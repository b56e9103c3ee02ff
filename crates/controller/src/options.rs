//! How a controller is set up.

use std::path::PathBuf;

/// How a controller works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name.
    pub name: String,
    /// Tidemark's version.
    pub version: String,
    /// The result store.
    pub store: PathBuf,
    /// Directory of files with secrets that documents may refer to, if any.
    pub secrets: Option<PathBuf>,
    /// Most submissions that may wait.
    pub queue_most: usize,
}

/// Why the controller does not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);
