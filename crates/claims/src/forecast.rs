//! What works on volumes will do, before anything runs.

use crate::job::{Job, Phase};
use tidemark_measure::units;
use tidemark_plan::forecast::{Action, Amount, Does, Forecaster, Remarks};
use tidemark_plan::plan::{Stage, Work};

const LIVES: Does = Does { code: "passes_phases", counts: "volume", moves_bytes: false };
const MOVES: Does = Does { code: "moves_content", counts: "volume", moves_bytes: true };

/// The way through a plan: every life ends with its stage, so nothing is kept.
pub(crate) struct Preview;

impl Forecaster for Preview {
    fn stage(&mut self, stage: &Stage, works: &[&Work], remarks: &mut Remarks) -> Vec<Vec<Action>> {
        works.iter().map(|work| actions(stage, work, remarks)).collect()
    }

    fn until(&self, work: &Work) -> Option<String> {
        Some(format!("{} volumes have lived", units::count(Job::of(work)?.lives.into())))
    }

    fn target(&self, work: &Work) -> String {
        Job::of(work).map_or_else(String::new, |job| format!("volumes of the class {}", job.target.class))
    }
}

fn actions(stage: &Stage, work: &Work, remarks: &mut Remarks) -> Vec<Action> {
    let Some(job) = Job::of(work) else { return Vec::new() };
    let phases = job.phases();
    let text = format!(
        "stage {} makes {} volumes, each with a pod, in a cluster; what the class or the cluster lacks is left out",
        stage.name,
        units::count(job.lives.into())
    );
    remarks.add("volumes-made", text);
    let lives = u64::from(job.lives);
    let one = |phase: &Phase| {
        let bytes = if phase.verifies() { lives.saturating_mul(job.bytes) } else { 0 };
        Action {
            label: phase.name().to_owned(),
            ratio: 100.0 / phases.len() as f64,
            does: if phase.verifies() { MOVES } else { LIVES },
            names: String::new(),
            operations: Amount::Exactly(lives),
            count: Amount::Exactly(lives),
            held: Amount::Exactly(0),
            bytes: Amount::Exactly(bytes),
        }
    };
    phases.iter().map(one).collect()
}
