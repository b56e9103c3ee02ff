//! How a controller is set up.

use crate::environment::Secrets;
use std::path::PathBuf;
use tidemark_plan::registry::Registry;

/// How a controller works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name.
    pub name: String,
    /// Tidemark's version.
    pub version: String,
    /// The engines and formats that documents may use.
    pub registry: Registry,
    /// The result store.
    pub store: PathBuf,
    /// The secrets that documents may refer to.
    pub secrets: Secrets,
    /// Most submissions that may wait.
    pub queue_most: usize,
}

/// Why the controller does not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);
