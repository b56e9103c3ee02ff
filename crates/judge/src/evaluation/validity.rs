//! Whether the numbers of an evaluation are what they seem to be.

use super::Knee;
use super::cells::Measured;
use super::members::Entry;
use super::service::is_overload;
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
    load: String,
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
    Validity::of(reasons.into_iter().map(|reason| together(evaluation, reason)).collect())
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

/// Whether a cell's only fault is that it was more than the storage sustains, in a load that looks for just that.
fn excused(evaluation: &Evaluation, one: &Measured<'_>) -> bool {
    one.faults.iter().all(|finding| is_overload(finding)) && looks_for_limit(evaluation, one.load)
}

fn add<'r>(reasons: &mut Vec<Reason<'r>>, evaluation: &Evaluation, objection: &Objection<'r>) {
    let (arm, load) = objection.place;
    let mut counted: Vec<usize> = Vec::new();
    for finding in &objection.findings {
        let key = (arm, load, finding.alike());
        let place = reasons.iter().position(|reason| reason.key == key).unwrap_or_else(|| {
            let load = words::load(&evaluation.loads[load].name, objection.subject);
            reasons.push(Reason { key, load, levels: Vec::new(), findings: Vec::new(), runs: 0 });
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

fn together(evaluation: &Evaluation, reason: Reason<'_>) -> Finding {
    let Reason { key: (arm, ..), load, levels, findings, runs } = reason;
    let of = Some((evaluation.arms[arm].name.clone(), load));
    let in_runs = InRuns { of, levels, ..InRuns::new(&findings, findings.len(), runs) };
    Finding { in_runs: Some(in_runs), ..findings[0].clone() }
}
