//! Which runs count: the latest completed one of every arm, load, level and repeat.

use super::parts::{Part, parts};
use crate::{Finding, judge};
use std::collections::BTreeMap;
use tidemark_measure::evaluation::{Evaluation, Level, Member};
use tidemark_measure::record::{Run, State};

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

/// A run that does not: it was not completed.
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

/// Chooses the runs that count, and asks every rule about them.
pub(super) fn choose<'a>(evaluation: &Evaluation, runs: &'a [Run]) -> Members<'a> {
    let mut repeats: BTreeMap<Place<'_>, Vec<(&Run, &Member)>> = BTreeMap::new();
    for run in runs {
        if let Some((arm, load, member)) = place(evaluation, run) {
            repeats.entry((arm, load, &member.level, member.repeat)).or_default().push((run, member));
        }
    }
    let mut members = Members { used: Vec::new(), unused: Vec::new() };
    for ((arm, load, ..), tries) in repeats {
        let completed = tries.iter().filter(|(run, _)| run.state == State::Completed);
        let latest = completed.max_by_key(|(_, member)| member.turn);
        if let Some((run, member)) = latest {
            let (parts, findings) = (parts(run), judge(run).findings);
            members.used.push(Entry { run, member, arm, load, parts, findings });
        }
        let replaced = latest.is_some();
        let unused = tries.iter().filter(|(run, _)| run.state != State::Completed);
        members.unused.extend(unused.map(|(run, member)| Unused { run, member, replaced }));
    }
    members.used.sort_by_key(|entry| (entry.member.repeat, entry.member.turn));
    members
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
