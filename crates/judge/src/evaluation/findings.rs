//! What else there is to know: what is missing, what lies apart, what varies, what single runs suffered.

use super::Knee;
use super::cells::{Measured, is_unreached};
use super::drift::drift;
use super::members::{Entry, Members, Unused};
use super::validity::{looks_for_limit, matters};
use super::words;
use crate::fold::skeleton;
use crate::statistics::{REPEATS_MOST, repeats_needed};
use crate::{Finding, Severity};
use std::cmp::Reverse;
use tidemark_measure::evaluation::{Evaluation, Level};
use tidemark_measure::units;

/// A coefficient of variation above this is worth knowing.
const VARIATION_NOTED: f64 = 0.05;

/// Above this, differences as large as people look for cannot be told from noise.
const VARIATION_MOST: f64 = 0.10;

/// How far the interval of a mean may reach to each side, when repeats are recommended.
const HALF_WIDTH: f64 = 0.05;

/// Lines of evidence of one finding, at most.
const LINES_MOST: usize = 12;

/// All findings, the gravest first.
pub(super) fn findings(
    evaluation: &Evaluation,
    members: &Members<'_>,
    measured: &[Measured<'_>],
    knees: &[Knee],
) -> Vec<Finding> {
    let mut findings = grave(evaluation, &members.used, knees);
    findings.extend(not_measured(evaluation));
    findings.extend(not_completed(members));
    findings.extend(too_few(evaluation, &members.used));
    findings.extend(drift(evaluation, measured));
    findings.extend(
        [Severity::Warning, Severity::Note].into_iter().filter_map(|degree| varying(measured, degree)),
    );
    findings.extend(outliers(measured));
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings
}

/// A critical finding, and the place of its run.
type Grave<'r> = (usize, &'r Finding);

/// Arm, load, rule and words that make findings the same.
type Alike<'r> = (usize, usize, &'r str, String);

/// Critical findings of a run. That a rate is more than the storage sustains is not one where just that is looked for, nor
/// that the generator could not keep up at a level on which no answer rests.
fn critical<'r>(
    evaluation: &Evaluation,
    entry: &'r Entry<'_>,
    knees: &[Knee],
) -> impl Iterator<Item = &'r Finding> {
    let excused = looks_for_limit(evaluation, entry.load);
    let matters = matters(evaluation, knees, (entry.arm, entry.load), &entry.member.level);
    let critical = entry.findings.iter().filter(|finding| finding.severity == Severity::Critical);
    critical.filter(move |finding| !(excused && is_unreached(finding)) && (matters || !finding.invalidates))
}

/// Critical findings of single runs, the same ones of an arm under a load in one.
fn grave(evaluation: &Evaluation, entries: &[Entry<'_>], knees: &[Knee]) -> Vec<Finding> {
    let mut families: Vec<(Alike<'_>, Vec<Grave<'_>>)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        for finding in critical(evaluation, entry, knees) {
            let key = (entry.arm, entry.load, finding.rule, skeleton(&finding.title));
            match families.iter_mut().find(|(other, _)| *other == key) {
                Some((_, family)) => family.push((index, finding)),
                None => families.push((key, vec![(index, finding)])),
            }
        }
    }
    let fold = |((arm, load, ..), mut family): (Alike<'_>, Vec<Grave<'_>>)| {
        let all = entries.iter().filter(|entry| (entry.arm, entry.load) == (arm, load)).count();
        let titles: Vec<_> = family.iter().map(|(_, finding)| finding.title.as_str()).collect();
        let first = family[0].1.clone();
        family.dedup_by_key(|(index, _)| *index);
        let what = words::agreed(&titles, family.len(), all);
        let title = format!("{}, {}: {what}", evaluation.arms[arm].name, evaluation.loads[load].name);
        Finding { title, ..first }
    };
    families.into_iter().map(fold).collect()
}

/// Cells that the evaluation itself says are missing.
fn not_measured(evaluation: &Evaluation) -> Option<Finding> {
    let count = evaluation.missing.len();
    let title = match count {
        0 => return None,
        1 => "one cell could not be measured".into(),
        _ => format!("{count} cells could not be measured"),
    };
    Some(about(Severity::Warning, "cells-missing", title, evaluation.missing.clone()))
}

/// Runs that were not completed: their numbers are not used.
fn not_completed(members: &Members<'_>) -> Option<Finding> {
    let unused = &members.unused;
    let lost = unused.iter().filter(|one| !one.replaced).count();
    let severity = if lost > 0 { Severity::Warning } else { Severity::Note };
    let title = match (unused.len(), lost) {
        (0, _) => return None,
        (1, 0) => "one run was not completed, and was measured again".into(),
        (1, _) => "one run was not completed, and is not used".into(),
        (all, 0) => format!("{all} runs were not completed, and were measured again"),
        (all, _) => {
            format!("{all} runs were not completed, and are not used: {lost} were not measured again")
        }
    };
    let line = |one: &Unused<'_>| {
        let place = words::place(&one.member.load, "", &one.member.level);
        let why = one.run.stages.iter().map(|stage| stage.reason.as_str()).find(|reason| !reason.is_empty());
        let why = why.map(|reason| format!(": {reason}")).unwrap_or_default();
        let (arm, repeat, state) = (&one.member.arm, one.member.repeat, one.run.state.name());
        format!("{arm}, {place}, repeat {repeat}: {state}{why}")
    };
    Some(about(severity, "runs-not-completed", title, unused.iter().map(line).collect()))
}

/// Cells with fewer repeats than were asked for. A search decides for itself how often it looks.
fn too_few(evaluation: &Evaluation, entries: &[Entry<'_>]) -> Option<Finding> {
    let asked = evaluation.repeats.max(1) as usize;
    let mut lines = Vec::new();
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
                    lines.push(format!("{name}, {place}: {count} of {asked}"));
                }
            }
        }
    }
    let title = match lines.len() {
        0 => return None,
        1 => "one cell has fewer repeats than were asked for".into(),
        count => format!("{count} cells have fewer repeats than were asked for"),
    };
    Some(about(Severity::Warning, "repeats-missing", title, lines))
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
    let is_of = |one: &&Measured<'_>| match variation(one) {
        much if much > VARIATION_MOST => degree == Severity::Warning,
        some => some > VARIATION_NOTED && degree == Severity::Note,
    };
    let cells: Vec<_> = measured.iter().filter(is_of).collect();
    let most = cells.iter().map(|one| variation(one)).max_by(f64::total_cmp)?;
    let what = match cells.iter().any(|one| one.open) {
        true => "throughput, or the mean response time of an open loop,",
        false => "throughput",
    };
    let title = format!(
        "repeats differ in {} of {} cells: {what} varies by {} at most",
        cells.len(),
        measured.len(),
        units::percent(most)
    );
    let detail = match degree {
        Severity::Warning => format!(
            "Differences of that size cannot be seen. At this spread it takes {}{} repeats until the interval of a mean reaches {} to each side; measuring for longer, on machines that do nothing else, takes fewer.",
            if repeats_needed(most, HALF_WIDTH) >= REPEATS_MOST { "more than " } else { "" },
            repeats_needed(most, HALF_WIDTH),
            units::percent(HALF_WIDTH)
        ),
        _ => "Small differences cannot be seen: more repeats, or longer ones, make the intervals narrower."
            .into(),
    };
    let lines = cells.iter().map(|one| format!("{}: {}", place(one), units::percent(variation(one))));
    Some(about(degree, "repeats-differ", title, lines.collect()).detail(detail))
}

/// Repeats that lie apart from the others: told of, and used like the others.
fn outliers(measured: &[Measured<'_>]) -> Option<Finding> {
    let line = |one: &Measured<'_>| {
        let (own, print): (_, fn(f64) -> String) = match one.open {
            true => (one.main(), words::duration),
            false => (one.main(), units::rate),
        };
        let apart = own.outliers.iter().map(|index| {
            let run =
                one.cell.runs.get(*index).filter(|run| **run > 0 && own.values.len() == one.cell.runs.len());
            let run = run.map(|run| format!(" (run {run})")).unwrap_or_default();
            format!("{}{run}", print(own.values[*index]))
        });
        let apart: Vec<_> = apart.collect();
        let line = format!("{}: {} beside a median of {}", place(one), apart.join(", "), print(own.median));
        (!apart.is_empty()).then_some(line)
    };
    let lines: Vec<String> = measured.iter().filter_map(line).collect();
    let title = match lines.len() {
        0 => return None,
        1 => "repeats of one cell lie apart from its others".into(),
        count => format!("repeats of {count} cells lie apart from the others"),
    };
    let detail = "Nothing was left out: the means and intervals include them. Look at what those runs' findings say, and at the nodes meanwhile.";
    let rule = "modified z-score above 3.5 (Iglewicz and Hoaglin), and more than 2 % from the median";
    let finding = about(Severity::Note, "outliers", title, lines);
    Some(finding.detail(detail).evidence(rule))
}

fn place(one: &Measured<'_>) -> String {
    format!("{}, {}", one.cell.arm, words::place(&one.cell.load, &one.cell.subject, &one.cell.level))
}

fn about(severity: Severity, rule: &'static str, title: String, mut lines: Vec<String>) -> Finding {
    let more = lines.len().saturating_sub(LINES_MOST);
    lines.truncate(LINES_MOST);
    let more = (more > 0).then(|| format!("and {more} more"));
    Finding::about_run(severity, rule, title).evidences(lines.into_iter().chain(more))
}
