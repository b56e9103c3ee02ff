//! A work on a table, as a plan carries it.

use crate::cycles::{MergeMode, StepKind};
use serde::{Deserialize, Serialize};
use tidemark_analytics::job::Storage;
use tidemark_object::job as object;
use tidemark_plan::job::JobData;
use tidemark_plan::plan::Work;

/// The engine's name.
pub const ENGINE: &str = "iceberg";

/// The most rows of an append: their numbers are in the lower bits of `id`.
pub const ROWS_MOST: u32 = 1 << 20;

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
    /// Puts it through cycles.
    Cycle(Cycles),
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

/// How commits are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// Attempts of one commit, at most.
    pub tries: u32,
    /// Longest pause before the second attempt, doubled before each further one; nanoseconds.
    pub back_off_ns: u64,
    /// Longest pause before any attempt, nanoseconds.
    pub back_off_most_ns: u64,
    /// Snapshots, and earlier versions, that a version lists.
    pub snapshots: u32,
    /// Manifests that a snapshot may have before they are merged into one.
    pub manifests: u32,
}

/// The cycles of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cycles {
    /// How many.
    pub count: u32,
    /// Rows that the table begins with, in files of the target size.
    pub initial_rows: u64,
    /// Appends of each cycle.
    pub appends: u32,
    /// Rows of each append.
    pub rows: u32,
    /// How rows get new values; `None`: they keep those that they have.
    pub merge: Option<MergeMode>,
    /// Share of all rows that get new values in each cycle.
    pub merged: f64,
    /// A cycle of so many ends with a compaction; `None`: none does.
    pub compact_every: Option<u32>,
    /// About how large files are that a compaction writes, bytes.
    pub target_bytes: u64,
    /// How commits are made.
    pub protocol: Protocol,
    /// Whether storage that ignores the condition is refused before the load.
    pub checked: bool,
    /// What all rows follow from.
    pub seed: u64,
}

/// A step of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appends the rows that the table begins with.
    Fill,
    /// Appends a few rows.
    Ingest,
    /// Gives some rows new values.
    Merge(MergeMode),
    /// Asks for sums over each category.
    Totals,
    /// Asks for sums over a range of numbers.
    Range,
    /// Asks for all rows.
    Scan,
    /// Writes small files together.
    Compact,
}

impl Step {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Step::Fill => "fill",
            Step::Ingest => "ingest",
            Step::Merge(_) => "merge",
            Step::Totals => "totals",
            Step::Range => "range",
            Step::Scan => "scan",
            Step::Compact => "compact",
        }
    }

    /// What it does.
    pub fn kind(self) -> StepKind {
        match self {
            Step::Fill => StepKind::Fill,
            Step::Ingest => StepKind::Ingest,
            Step::Merge(_) => StepKind::Merge,
            Step::Totals | Step::Range | Step::Scan => StepKind::Query,
            Step::Compact => StepKind::Compact,
        }
    }
}

impl Cycles {
    /// All steps in order, each with its cycle; what comes before the first has 0.
    pub fn plan(&self) -> Vec<(u32, Step)> {
        let mut plan: Vec<(u32, Step)> =
            (self.initial_rows > 0).then_some((0, Step::Fill)).into_iter().collect();
        for cycle in 1..=self.count {
            plan.extend((0..self.appends).map(|_| (cycle, Step::Ingest)));
            plan.extend(self.merge.map(|mode| (cycle, Step::Merge(mode))));
            plan.extend([Step::Totals, Step::Range, Step::Scan].map(|query| (cycle, query)));
            if self.compact_every.is_some_and(|every| cycle.is_multiple_of(every)) {
                plan.push((cycle, Step::Compact));
            }
        }
        plan
    }
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
    pub fn location(&self, root: &str) -> String {
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
