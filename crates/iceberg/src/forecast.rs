//! What works on tables will do and need, before anything runs.

use crate::job::{Job, Purpose};
use std::collections::BTreeSet;
use tidemark_analytics::job::Storage;
use tidemark_plan::forecast::{Action, Amount, Does, Forecaster, Holdings, Remarks, operations};
use tidemark_plan::plan::{Stage, Work};

const MAKES: Does = Does { code: "makes_table", counts: "table", moves_bytes: false };
const COMMITS: Does = Does { code: "commits_rows", counts: "", moves_bytes: true };
const REMOVES: Does = Does { code: "removes_table", counts: "table", moves_bytes: false };

/// Bytes of a row in a file, roughly; the random letters of its note are most of it.
const ROW: u64 = 40;

/// Bytes that a commit writes beside rows, roughly: a file's footer, a manifest, a list, and a version with its default number of
/// snapshots.
const COMMIT: u64 = 80_000;

/// The way through a plan: the tables that are there by now.
#[derive(Default)]
pub(crate) struct Preview {
    made: BTreeSet<String>,
    stored: u64,
}

impl Forecaster for Preview {
    fn stage(&mut self, stage: &Stage, works: &[&Work], remarks: &mut Remarks) -> Vec<Vec<Action>> {
        works.iter().map(|work| self.work(stage, work, remarks).unwrap_or_default()).collect()
    }

    fn until(&self, work: &Work) -> Option<String> {
        let job = Job::of(work)?;
        Some(match &job.purpose {
            Purpose::Make { .. } => format!("the table {} is there", job.table),
            Purpose::Remove => format!("the table {} is removed", job.table),
            Purpose::Commit(_) => "all commits are made".to_owned(),
        })
    }

    fn target(&self, work: &Work) -> String {
        Job::of(work).map_or_else(String::new, |job| format!("Iceberg, {}", job.target.storage.describe()))
    }

    fn connections(&self, work: &Work) -> u64 {
        match Job::of(work).map(|job| (&job.target.storage, job.target.connections)) {
            Some((Storage::Objects { .. }, connections)) => connections.into(),
            _ => 0,
        }
    }

    fn holdings(&self) -> Holdings {
        Holdings { stored: self.stored, in_memory: 0, volumes: 0 }
    }
}

impl Preview {
    fn work(&mut self, stage: &Stage, work: &Work, remarks: &mut Remarks) -> Option<Vec<Action>> {
        let job = Job::of(work)?;
        let place = format!("{} {}", job.target.storage.describe(), job.table);
        let one = |does, count, bytes| Action {
            label: work.labels.first().map(|label| label.label.clone()).unwrap_or_default(),
            ratio: 100.0,
            does,
            names: job.table.clone(),
            operations: operations(&work.load),
            count,
            held: bytes,
            bytes,
        };
        let nothing = Amount::Exactly(0);
        Some(match &job.purpose {
            Purpose::Make { .. } => {
                self.made.insert(place);
                vec![one(MAKES, Amount::Exactly(1), nothing)]
            }
            Purpose::Remove => {
                self.made.remove(&place);
                vec![one(REMOVES, Amount::Exactly(1), nothing)]
            }
            Purpose::Commit(commits) => {
                if !self.made.contains(&place) {
                    let text = format!(
                        "stage {} needs the table {}, which no earlier stage makes: it must already be there",
                        stage.name, job.table
                    );
                    remarks.add("table-not-made", text);
                }
                let done = operations(&work.load);
                let each = COMMIT.saturating_add(ROW.saturating_mul(commits.rows.into()));
                let bytes = match done {
                    Amount::Exactly(commits) | Amount::About(commits) => {
                        Amount::About(commits.saturating_mul(each))
                    }
                    Amount::UpTo(commits) => Amount::UpTo(commits.saturating_mul(each)),
                    Amount::Open => Amount::Open,
                };
                if let Amount::About(bytes) | Amount::UpTo(bytes) = bytes {
                    self.stored = self.stored.saturating_add(bytes);
                }
                vec![one(COMMITS, done, bytes)]
            }
        })
    }
}
