//! Which runs count: the latest one of every arm, load, level and repeat that measured what it was to measure.

use super::parts::{Part, attempted, parts};
use crate::{Finding, judge};
use std::collections::BTreeMap;
use tidemark_measure::evaluation::{Evaluation, Level, Member};
use tidemark_measure::record::{Run, Stage, State, Work};

/// A run that counts.
pub(super) struct Entry<'a> {
    pub(super) run: &'a Run,
    pub(super) member: &'a Member,
    /// The arm's place in the evaluation.
    pub(super) arm: usize,
    /// The load's.
    pub(super) load: usize,
    /// What it measured; nothing, when nothing succeeded.
    pub(super) parts: Vec<Part<'a>>,
    /// What the rules say of it.
    pub(super) findings: Vec<Finding>,
}

/// A run that does not.
pub(super) struct Unused<'a> {
    pub(super) run: &'a Run,
    pub(super) member: &'a Member,
    /// Whether another run did what it was to do.
    pub(super) replaced: bool,
}

/// All runs of an evaluation.
pub(super) struct Members<'a> {
    /// In the order of repeats, and of time.
    pub(super) used: Vec<Entry<'a>>,
    pub(super) unused: Vec<Unused<'a>>,
}

/// What makes runs the same: the places of arm and load, the level, the repeat.
type Place<'a> = (usize, usize, &'a Level, u32);

/// Chooses the runs that count, of those that are wanted, and asks every rule about them.
pub(super) fn choose<'a>(
    evaluation: &Evaluation,
    runs: &'a [Run],
    wanted: impl Fn(&Member) -> bool,
) -> Members<'a> {
    let mut repeats: BTreeMap<Place<'_>, Vec<(&Run, &Member)>> = BTreeMap::new();
    for run in runs {
        if let Some((arm, load, member)) = place(evaluation, run).filter(|(.., member)| wanted(member)) {
            repeats.entry((arm, load, &member.level, member.repeat)).or_default().push((run, member));
        }
    }
    let mut members = Members { used: Vec::new(), unused: Vec::new() };
    for ((arm, load, ..), tries) in repeats {
        let judged = evaluation.loads[load].service_level.is_some();
        let latest =
            tries.iter().filter(|(run, _)| counts(run, judged)).max_by_key(|(_, member)| member.turn);
        if let Some((run, member)) = latest {
            let searched = evaluation.loads[load].search.is_some();
            let parts = if searched { attempted(run) } else { parts(run) };
            let findings = judge(run).findings;
            members.used.push(Entry { run, member, arm, load, parts, findings });
        }
        let replaced = latest.is_some();
        let unused = tries.iter().filter(|(run, _)| !counts(run, judged));
        members.unused.extend(unused.map(|(run, member)| Unused { run, member, replaced }));
    }
    members.used.sort_by_key(|entry| (entry.member.repeat, entry.member.turn));
    members
}

/// Whether a run measured what it was to measure: it was completed, or failed only in cleaning up. Where it is `judged` by a
/// service level, so does one whose load failed: that too many operations failed is what was measured.
pub fn counts(run: &Run, judged: bool) -> bool {
    let cleans = |stage: &Stage| stage.works.iter().all(|work| work.kind.cleans());
    let measures = |stage: &Stage| stage.works.iter().any(|work| work.kind.measures());
    let tallies = |work: &Work| work.operations.iter().any(|operation| operation.tally.total() > 0);
    let excused = |stage: &&Stage| judged && measures(stage) && stage.works.iter().any(tallies);
    let in_state = |state| run.stages.iter().filter(move |stage| stage.state == state);
    match run.state {
        State::Completed => true,
        State::Failed => {
            let failed_load = in_state(State::Failed).any(|stage| excused(&stage));
            in_state(State::Failed).next().is_some()
                && in_state(State::Failed).all(|stage| cleans(stage) || excused(&stage))
                && in_state(State::Waiting).all(|stage| cleans(stage) || failed_load)
                && run.stages.iter().any(measures)
        }
        _ => false,
    }
}

/// The places of a run's arm and load; `None` when it is no member of the evaluation. Records that nobody has stored
/// yet have no numbers to tell them by.
fn place<'a>(evaluation: &Evaluation, run: &'a Run) -> Option<(usize, usize, &'a Member)> {
    let member = run.member.as_ref()?;
    let numbered = evaluation.id != 0 && member.evaluation != 0;
    let arm = evaluation.arms.iter().position(|arm| arm.name == member.arm)?;
    let load = evaluation.loads.iter().position(|load| load.name == member.load)?;
    (!numbered || evaluation.id == member.evaluation).then_some((arm, load, member))
}
