//! A work on a table, as a plan carries it.

use serde::{Deserialize, Serialize};
use tidemark_analytics::job::Storage;
use tidemark_object::job as object;
use tidemark_plan::job::JobData;
use tidemark_plan::plan::Work;

pub use crate::commit::Protocol;

/// The engine's name.
pub const ENGINE: &str = "iceberg";

/// What a work does, and on what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Where tables are.
    pub target: Target,
    /// The table's name: the directory that it is.
    pub table: String,
    /// What the work is for.
    pub purpose: Purpose,
}

/// Where tables are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// What they are stored on.
    pub storage: Storage,
    /// Connections to the server, if they are on one.
    pub connections: u32,
    /// Threads that commits run on; `None`: as many as this machine has processors.
    pub threads: Option<u32>,
}

/// What a work is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Purpose {
    /// Makes the table, unless it is there.
    Make {
        /// Make it anew although it is there.
        fresh: bool,
    },
    /// Commits to it.
    Commit(Commits),
    /// Removes it.
    Remove,
}

/// The commits of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commits {
    /// Rows of each.
    pub rows: u32,
    /// How they are made.
    pub protocol: Protocol,
    /// Whether storage that ignores the condition is refused before the load.
    pub checked: bool,
}

impl JobData for Job {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn is_in_process(&self) -> bool {
        self.target.storage.embedded().is_some()
    }
}

impl Job {
    /// The job of a work; `None` if the work is of another engine.
    pub fn of(work: &Work) -> Option<&Self> {
        work.job.get()
    }
}

impl Target {
    /// What files of a table call its place, given where it is in the storage.
    pub(crate) fn location(&self, root: &str) -> String {
        match &self.storage {
            Storage::Files { directory } => format!("file://{}/{root}", directory.display()),
            Storage::Objects { bucket, .. } => format!("s3://{bucket}/{root}"),
        }
    }

    /// How long one request may take, nanoseconds.
    pub(crate) fn timeout_ns(&self) -> u64 {
        let http = match &self.storage {
            Storage::Objects { server, .. } => match &**server {
                object::Target::S3(s3) => Some(s3.http.timeout_ns),
                _ => None,
            },
            Storage::Files { .. } => None,
        };
        http.unwrap_or_else(|| object::Http::default().timeout_ns)
    }
}
