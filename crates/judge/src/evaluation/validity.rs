//! Whether the numbers of an evaluation are what they seem to be.

use super::Knee;
use super::cells::{Measured, is_unreached};
use super::members::Entry;
use super::words;
use crate::words::phrase::Alike;
use crate::{Finding, InRuns, Validity};
use tidemark_measure::evaluation::{Evaluation, Level, number_on};

/// Something said against the numbers of a cell, or against a run that measured nothing.
struct Objection<'r> {
    /// Arm and load.
    place: (usize, usize),
    subject: &'r str,
    level: &'r Level,
    findings: Vec<&'r Finding>,
    runs: usize,
}

/// The same said of several levels of one arm under one load.
struct Reason<'r> {
    key: (usize, usize, Alike),
    place: String,
    levels: Vec<String>,
    findings: Vec<&'r Finding>,
    runs: usize,
}

/// Invalid when any cell is, or when a run measured nothing where others may have. A load level above what the storage
/// sustains is no fault where the limit is looked for: there it is what was to be found.
pub(super) fn validity(
    evaluation: &Evaluation,
    entries: &[Entry<'_>],
    measured: &[Measured<'_>],
    knees: &[Knee],
) -> Validity {
    let counts = |one: &&Measured<'_>| {
        !excused(evaluation, one) && matters(evaluation, knees, (one.arm, one.load), &one.cell.level)
    };
    let cells = measured.iter().filter(counts).map(|one| Objection {
        place: (one.arm, one.load),
        subject: &one.cell.subject,
        level: &one.cell.level,
        findings: one.faults.clone(),
        runs: one.cell.runs.len(),
    });
    let silent = entries.iter().filter(|entry| entry.parts.is_empty()).map(|entry| Objection {
        place: (entry.arm, entry.load),
        subject: "",
        level: &entry.member.level,
        findings: entry.findings.iter().filter(|finding| finding.invalidates).collect(),
        runs: 1,
    });
    let mut reasons = Vec::new();
    cells.chain(silent).for_each(|objection| add(&mut reasons, evaluation, &objection));
    if reasons.is_empty() {
        Validity::Valid
    } else {
        Validity::Invalid(reasons.iter().map(sentence).collect())
    }
}

/// Whether a load looks for what the storage sustains.
pub(super) fn looks_for_limit(evaluation: &Evaluation, load: usize) -> bool {
    let load = &evaluation.loads[load];
    load.search.is_some() || (load.service_level.is_some() && load.levels.len() > 1)
}

/// Whether the answer rests on a level: of those that a search went through only the knee and the first one outside.
pub(super) fn matters(
    evaluation: &Evaluation,
    knees: &[Knee],
    (arm, load): (usize, usize),
    level: &Level,
) -> bool {
    let (arm, load) = (&evaluation.arms[arm].name, &evaluation.loads[load]);
    let Some(knee) = knees.iter().find(|knee| (&knee.arm, &knee.load) == (arm, &load.name)) else {
        return true;
    };
    let value = number_on(level, &knee.axis);
    load.search.is_none() || value == knee.level || value == knee.next
}

/// Whether a cell's only fault is that an open loop's rate was more than the storage sustains, in a load that looks for
/// just that.
fn excused(evaluation: &Evaluation, one: &Measured<'_>) -> bool {
    one.faults.iter().all(|finding| is_unreached(finding)) && looks_for_limit(evaluation, one.load)
}

fn add<'r>(reasons: &mut Vec<Reason<'r>>, evaluation: &Evaluation, objection: &Objection<'r>) {
    let (arm, load) = objection.place;
    let mut counted: Vec<usize> = Vec::new();
    for finding in &objection.findings {
        let key = (arm, load, finding.alike());
        let place = reasons.iter().position(|reason| reason.key == key).unwrap_or_else(|| {
            let name = words::load(&evaluation.loads[load].name, objection.subject);
            let place = format!("{}, {name}", evaluation.arms[arm].name);
            reasons.push(Reason { key, place, levels: Vec::new(), findings: Vec::new(), runs: 0 });
            reasons.len() - 1
        });
        let reason = &mut reasons[place];
        reason.findings.push(finding);
        if !counted.contains(&place) {
            counted.push(place);
            reason.runs += objection.runs;
            let level = words::level(objection.level);
            if !level.is_empty() && !reason.levels.contains(&level) {
                reason.levels.push(level);
            }
        }
    }
}

/// `baseline, small at workers 320: the load generator was the bottleneck (in 3 of 3 runs)`.
fn sentence(reason: &Reason<'_>) -> String {
    let levels = &reason.levels;
    let at = if levels.is_empty() { String::new() } else { format!(" at {}", words::some_of(levels)) };
    let found = InRuns::new(&reason.findings, reason.findings.len(), reason.runs);
    format!("{}{at}: {}", reason.place, found.title())
}
