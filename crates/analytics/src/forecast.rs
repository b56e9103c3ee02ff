//! What works on tables will do and need, before anything runs.

use crate::job::{Engine, Job, Purpose, Storage};
use std::collections::BTreeSet;
use tidemark_measure::units;
use tidemark_plan::forecast::{Action, Amount, Does, Forecaster, Holdings, Remarks, operations_of};
use tidemark_plan::plan::{Stage, Work};

const MAKES: Does = Does { code: "makes_files", counts: "", moves_bytes: true };
const GENERATES: Does = Does { code: "makes_tables", counts: "", moves_bytes: true };
const REMOVES: Does = Does { code: "removes_tables", counts: "", moves_bytes: false };
const QUERIES: Does = Does { code: "runs_queries", counts: "", moves_bytes: false };

/// Memory that the encoder of a file needs for its row group, beside pieces on their way; bytes.
const ENCODER: u64 = 192 << 20;

/// Memory of a stream of queries, where nothing limits it: what it takes to join the tables of scale 1, roughly; bytes.
const STREAM: u64 = 1 << 30;

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
            Purpose::Make { .. } | Purpose::Generate { .. } => {
                format!("the {} tables are there", job.data.set.tables().len())
            }
            Purpose::Remove => "the tables are removed".to_owned(),
            Purpose::Query(_) => match work.load.workers {
                1 => "the stream is through".to_owned(),
                streams => format!("all {streams} streams are through"),
            },
        })
    }

    fn target(&self, work: &Work) -> String {
        Job::of(work).map_or_else(String::new, |job| job.target.describe())
    }

    fn connections(&self, work: &Work) -> u64 {
        let Some(job) = Job::of(work) else { return 0 };
        match (&job.target.engine, &job.target.storage, &job.purpose) {
            (Engine::Trino(_), _, Purpose::Query(_) | Purpose::Generate { .. }) => work.load.workers.into(),
            (_, Storage::Objects { .. }, _) => job.target.connections.into(),
            (_, Storage::Files { .. }, _) => 0,
        }
    }

    fn memory(&self, work: &Work) -> u64 {
        let workers = u64::from(work.load.workers);
        match Job::of(work).map(|job| (&job.purpose, &job.target.engine)) {
            Some((Purpose::Make { .. }, _)) => workers.saturating_mul(ENCODER),
            Some((Purpose::Query(_), Engine::DataFusion(engine))) => {
                engine.memory.unwrap_or_else(|| workers.saturating_mul(STREAM))
            }
            // Trino computes elsewhere, and replies in pieces.
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
        let place = format!("{} {}", job.target.storage.describe(), job.data.name());
        let bytes = job.data.set.bytes(job.data.scale());
        let one = |number: u16, does, names: String, held, bytes| Action {
            label: work.labels.get(usize::from(number)).map(|label| label.label.clone()).unwrap_or_default(),
            ratio: 100.0 / work.labels.len().max(1) as f64,
            does,
            names,
            operations: operations_of(&work.load, number),
            count: operations_of(&work.load, number),
            held,
            bytes,
        };
        Some(match &job.purpose {
            Purpose::Make { layout, .. } => {
                self.room(job, bytes, remarks);
                if self.made.insert(place) {
                    self.stored = self.stored.saturating_add(bytes);
                }
                vec![one(0, MAKES, layout.describe(), Amount::About(bytes), Amount::About(bytes))]
            }
            Purpose::Generate { compression, .. } => {
                if self.made.insert(place) {
                    self.stored = self.stored.saturating_add(bytes);
                }
                let (about, layout) = (Amount::About(bytes), compression.describe_by_trino());
                vec![one(0, GENERATES, layout, about, about)]
            }
            Purpose::Remove => {
                if self.made.remove(&place) {
                    self.stored = self.stored.saturating_sub(bytes);
                }
                let tables = Amount::Exactly(job.data.set.tables().len() as u64);
                let action = one(0, REMOVES, String::new(), Amount::Exactly(0), Amount::Exactly(0));
                vec![Action { count: tables, ..action }]
            }
            Purpose::Query(queries) => {
                if !self.made.contains(&place) {
                    let text = format!(
                        "stage {} needs the tables {}, which no earlier stage makes: they must already be there",
                        stage.name,
                        job.data.name()
                    );
                    remarks.add("tables-not-made", text);
                }
                let held = Amount::About(bytes);
                let action = |number| one(number, QUERIES, String::new(), held, Amount::Exactly(0));
                (0..queries.list.len() as u16).map(action).collect()
            }
        })
    }

    /// Whether the files fit where they are to be.
    fn room(&self, job: &Job, bytes: u64, remarks: &mut Remarks) {
        let Storage::Files { directory } = &job.target.storage else { return };
        let there = directory.ancestors().find(|path| path.exists());
        let Some(found) = there.and_then(|path| rustix::fs::statvfs(path).ok()) else { return };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if bytes > free {
            let text = format!(
                "the tables {} need about {}, and {} has {} free: choose a smaller `scale`, or another `directory`",
                job.data.name(),
                units::bytes(bytes),
                directory.display(),
                units::bytes(free)
            );
            remarks.add("no-room", text);
        }
    }
}
