//! What works on tables will do and need, before anything runs.

use crate::cycles::MergeMode;
use crate::job::{Cycles, Job, Purpose};
use std::collections::BTreeSet;
use tidemark_analytics::job::Storage;
use tidemark_measure::units;
use tidemark_plan::forecast::{Action, Amount, Does, Forecaster, Holdings, Remarks, operations};
use tidemark_plan::plan::{Stage, Work};

const MAKES: Does = Does { code: "makes_table", counts: "table", moves_bytes: false };
const COMMITS: Does = Does { code: "commits_rows", counts: "", moves_bytes: true };
const CYCLES: Does = Does { code: "runs_steps", counts: "", moves_bytes: true };
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
            Purpose::Cycle(cycles) => format!("{} cycles are over", units::count(cycles.count.into())),
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
                self.look(stage, &place, &job.table, remarks);
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
            Purpose::Cycle(cycles) => {
                self.look(stage, &place, &job.table, remarks);
                let bytes = written(cycles);
                self.stored = self.stored.saturating_add(bytes);
                vec![one(CYCLES, operations(&work.load), Amount::About(bytes))]
            }
        })
    }

    /// Says so where no stage makes a table that a load needs.
    fn look(&self, stage: &Stage, place: &str, table: &str, remarks: &mut Remarks) {
        if !self.made.contains(place) {
            let text = format!(
                "stage {} needs the table {table}, which no earlier stage makes: it must already be there",
                stage.name
            );
            remarks.add("table-not-made", text);
        }
    }
}

/// Bytes that cycles write, roughly: nothing of a table is deleted before it is removed.
fn written(cycles: &Cycles) -> u64 {
    let come = u64::from(cycles.appends).saturating_mul(cycles.rows.into());
    let mut rows = cycles.initial_rows;
    let mut all = rows.saturating_mul(ROW);
    for cycle in 1..=cycles.count {
        rows = rows.saturating_add(come);
        let anew = match cycles.merge {
            // Chance spreads rows over all files.
            Some(MergeMode::CopyOnWrite) => rows,
            Some(MergeMode::MergeOnRead) => (rows as f64 * cycles.merged) as u64,
            None => 0,
        };
        let compacted = cycles.compact_every.filter(|every| cycle.is_multiple_of(*every)).map_or(0, |_| rows);
        let written = come.saturating_add(anew).saturating_add(compacted);
        all = all.saturating_add(written.saturating_mul(ROW));
    }
    let commits = u64::from(cycles.count).saturating_mul(u64::from(cycles.appends) + 2);
    all.saturating_add(commits.saturating_mul(COMMIT))
}
