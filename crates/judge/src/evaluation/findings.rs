//! What else there is to know: what is missing, what lies apart, what varies, what single runs suffered.

use super::Knee;
use super::cells::Measured;
use super::drift::drift;
use super::members::{Entry, Members, Unused};
use super::service::is_overload;
use super::settings;
use super::validity::{looks_for_limit, matters};
use super::words;
use crate::compare::is_of_stored;
use crate::statistics::{REPEATS_MOST, repeats_needed};
use crate::words::conduct::Conduct;
use crate::words::evaluation::{Apart, OfEvaluation, Short, Varying};
use crate::words::phrase::Alike;
use crate::{Finding, InRuns, Severity, What};
use std::cmp::Reverse;
use tidemark_measure::evaluation::{Evaluation, Level, REPEATS_LEAST};
use tidemark_measure::record::Stage;

/// A coefficient of variation above this is worth knowing.
const VARIATION_NOTED: f64 = 0.05;

/// Above this, differences as large as people look for cannot be told from noise.
const VARIATION_MOST: f64 = 0.10;

/// How far the interval of a mean may reach to each side, when repeats are recommended.
const HALF_WIDTH: f64 = 0.05;

/// All findings, the gravest first.
pub(super) fn findings(
    evaluation: &Evaluation,
    members: &Members<'_>,
    measured: &[Measured<'_>],
    knees: &[Knee],
) -> Vec<Finding> {
    let mut findings = grave(evaluation, &members.used, measured, knees);
    findings.extend(not_measured(evaluation));
    findings.extend(not_completed(members));
    findings.extend(too_few(evaluation, &members.used));
    findings.extend(not_narrow(evaluation, measured));
    findings.extend(drift(evaluation, measured));
    findings.extend(
        [Severity::Warning, Severity::Note].into_iter().filter_map(|degree| varying(measured, degree)),
    );
    findings.extend(outliers(measured));
    findings.extend(settings::differ(evaluation, &members.used));
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings
}

/// A critical finding, and the place of its run.
type Grave<'r> = (usize, &'r Finding);

/// Arm, load and what makes findings the same.
type Key = (usize, usize, Alike);

/// Critical findings of a run. That a load is more than the storage sustains is not one where just that is looked for, nor
/// that the generator could not keep up at a level on which no answer rests.
fn critical<'r>(
    evaluation: &Evaluation,
    entry: &'r Entry<'_>,
    measured: &[Measured<'_>],
    knees: &[Knee],
) -> impl Iterator<Item = &'r Finding> {
    let outside = |one: &Measured<'_>| {
        let here = (one.arm, one.load) == (entry.arm, entry.load) && one.cell.level == entry.member.level;
        here && one.cell.meets == Some(false)
    };
    let beyond = looks_for_limit(evaluation, entry.load) && measured.iter().any(outside);
    let matters = matters(evaluation, knees, (entry.arm, entry.load), &entry.member.level);
    let critical = entry.findings.iter().filter(|finding| finding.severity == Severity::Critical);
    critical.filter(move |finding| {
        let sought = beyond && (is_overload(finding) || is_failed_load(entry, finding));
        !sought && (matters || !finding.invalidates)
    })
}

/// Whether a finding says that a stage failed that measures.
fn is_failed_load(entry: &Entry<'_>, finding: &Finding) -> bool {
    let measures = |stage: &Stage| stage.works.iter().any(|work| work.kind.measures());
    let failed = matches!(finding.what, What::Conduct(Conduct::StageFailed { .. }));
    failed && entry.run.stages.iter().any(|stage| measures(stage) && finding.concerns(stage))
}

/// Critical findings of single runs, the same ones of an arm under a load in one.
fn grave(
    evaluation: &Evaluation,
    entries: &[Entry<'_>],
    measured: &[Measured<'_>],
    knees: &[Knee],
) -> Vec<Finding> {
    let mut families: Vec<(Key, Vec<Grave<'_>>)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        for finding in critical(evaluation, entry, measured, knees) {
            let key = (entry.arm, entry.load, finding.alike());
            match families.iter_mut().find(|(other, _)| *other == key) {
                Some((_, family)) => family.push((index, finding)),
                None => families.push((key, vec![(index, finding)])),
            }
        }
    }
    let fold = |((arm, load, _), mut family): (Key, Vec<Grave<'_>>)| {
        let all = entries.iter().filter(|entry| (entry.arm, entry.load) == (arm, load)).count();
        let findings: Vec<_> = family.iter().map(|(_, finding)| *finding).collect();
        family.dedup_by_key(|(index, _)| *index);
        let mut in_runs = InRuns::new(&findings, family.len(), all);
        in_runs.of = Some((evaluation.arms[arm].name.clone(), evaluation.loads[load].name.clone()));
        Finding { in_runs: Some(in_runs), ..findings[0].clone() }
    };
    families.into_iter().map(fold).collect()
}

/// Cells that the evaluation itself says are missing.
fn not_measured(evaluation: &Evaluation) -> Option<Finding> {
    let cells = evaluation.missing.clone();
    (!cells.is_empty()).then(|| Finding::about_run(Severity::Warning, OfEvaluation::CellsMissing { cells }))
}

/// Runs that were not completed: their numbers are not used.
fn not_completed(members: &Members<'_>) -> Option<Finding> {
    let unused = &members.unused;
    let lost = unused.iter().filter(|one| !one.replaced).count();
    let severity = if lost > 0 { Severity::Warning } else { Severity::Note };
    let line = |one: &Unused<'_>| {
        let place = words::place(&one.member.load, "", &one.member.level);
        let why = one.run.stages.iter().map(|stage| stage.reason.as_str()).find(|reason| !reason.is_empty());
        let why = why.map(|reason| format!(": {reason}")).unwrap_or_default();
        let (arm, repeat, state) = (&one.member.arm, one.member.repeat, one.run.state.name());
        format!("{arm}, {place}, repeat {repeat}: {state}{why}")
    };
    let runs: Vec<String> = unused.iter().map(line).collect();
    let found = !runs.is_empty();
    found.then(|| Finding::about_run(severity, OfEvaluation::RunsNotCompleted { runs, lost }))
}

/// Cells with fewer repeats than were asked for. A search decides for itself how often it looks, and nobody asked for those of
/// stored results.
fn too_few(evaluation: &Evaluation, entries: &[Entry<'_>]) -> Option<Finding> {
    if is_of_stored(evaluation) {
        return None;
    }
    let least = if evaluation.until.is_some() { REPEATS_LEAST } else { u32::MAX };
    let asked = evaluation.repeats.min(least).max(1) as usize;
    let mut cells = Vec::new();
    for (index, load) in evaluation.loads.iter().enumerate().filter(|(_, load)| load.search.is_none()) {
        let levels = if load.levels.is_empty() { seen_levels(entries, index) } else { load.levels.clone() };
        for level in &levels {
            for (arm, name) in evaluation.arms.iter().map(|arm| &arm.name).enumerate() {
                let here = |entry: &&Entry<'_>| {
                    (entry.arm, entry.load) == (arm, index) && entry.member.level == *level
                };
                let count = entries.iter().filter(here).filter(|entry| !entry.parts.is_empty()).count();
                if count < asked {
                    let place = words::place(&load.name, "", level);
                    cells.push(Short { cell: format!("{name}, {place}"), repeats: count, of: asked });
                }
            }
        }
    }
    (!cells.is_empty()).then(|| Finding::about_run(Severity::Warning, OfEvaluation::RepeatsMissing { cells }))
}

/// Cells that are not known as exactly as was asked for.
fn not_narrow(evaluation: &Evaluation, measured: &[Measured<'_>]) -> Option<Finding> {
    let until = evaluation.until?;
    let wide = measured.iter().filter(|one| evaluation.loads[one.load].search.is_none());
    let wide = wide.filter_map(|one| Some((one, one.main().half_width()?)));
    let wide = wide.filter(|(_, half_width)| *half_width > until);
    let cells: Vec<_> = wide.map(|(one, half_width)| varying_cell(one, half_width)).collect();
    let what = OfEvaluation::NotNarrow { cells, until, most: evaluation.repeats };
    let found = matches!(&what, OfEvaluation::NotNarrow { cells, .. } if !cells.is_empty());
    found.then(|| Finding::about_run(Severity::Note, what))
}

fn seen_levels(entries: &[Entry<'_>], load: usize) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.load == load) {
        if !levels.contains(&entry.member.level) {
            levels.push(entry.member.level.clone());
        }
    }
    levels
}

/// Cells whose repeats vary: a warning above a tenth, a note above a twentieth.
fn varying(measured: &[Measured<'_>], degree: Severity) -> Option<Finding> {
    let variation = |one: &Measured<'_>| one.main().variation;
    let half_width = |one: &Measured<'_>| one.main().half_width().unwrap_or_default();
    let is_of = |one: &&Measured<'_>| match variation(one) {
        much if much > VARIATION_MOST => degree == Severity::Warning,
        some => some > VARIATION_NOTED && degree == Severity::Note,
    };
    let cells: Vec<_> = measured.iter().filter(is_of).collect();
    let most = cells.iter().map(|one| variation(one)).max_by(f64::total_cmp)?;
    let varying = |one: &&Measured<'_>| varying_cell(one, half_width(one));
    let what = OfEvaluation::RepeatsDiffer {
        cells: cells.iter().map(varying).collect(),
        of: measured.len(),
        half_width: cells.iter().map(|one| half_width(one)).fold(0.0, f64::max),
        grave: degree == Severity::Warning,
        repeats_needed: repeats_needed(most, HALF_WIDTH) as u64,
        repeats_unbounded: repeats_needed(most, HALF_WIDTH) >= REPEATS_MOST,
        wanted: HALF_WIDTH,
    };
    Some(Finding::about_run(degree, what))
}

/// Repeats that lie apart from the others: told of, and used like the others.
fn outliers(measured: &[Measured<'_>]) -> Option<Finding> {
    let apart = |one: &Measured<'_>| {
        let own = one.main();
        let value = |index: &usize| {
            let known = own.values.len() == one.cell.runs.len();
            let run = one.cell.runs.get(*index).copied().filter(|run| *run > 0 && known);
            (own.values[*index], run)
        };
        let values: Vec<_> = own.outliers.iter().map(value).collect();
        let (cell, is_duration, median) = (place(one), one.open && one.cell.mean_ns.is_some(), own.median);
        (!values.is_empty()).then_some(Apart { cell, is_duration, values, median })
    };
    let cells: Vec<_> = measured.iter().filter_map(apart).collect();
    (!cells.is_empty()).then(|| Finding::about_run(Severity::Note, OfEvaluation::Outliers { cells }))
}

fn varying_cell(one: &Measured<'_>, half_width: f64) -> Varying {
    Varying { cell: place(one), is_duration: one.has_time_as_main(), half_width }
}

fn place(one: &Measured<'_>) -> String {
    format!("{}, {}", one.cell.arm, words::place(&one.cell.load, &one.cell.subject, &one.cell.level))
}
