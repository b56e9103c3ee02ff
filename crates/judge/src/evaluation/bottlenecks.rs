//! What limited each arm: what the rules say of its single runs, put together. What was busy is called the limit only where
//! more load brought no more, and a late generator only where no level tells what the storage does.

use super::cells::{Measured, is_unreached, overloaded};
use super::members::Entry;
use super::{Bottleneck, words};
use crate::growth::{Growth, Level, is_intensity, settled};
use crate::words::phrase::Alike;
use crate::{Finding, InRuns, What};
use std::cmp::Reverse;
use tidemark_measure::axis::Axis;
use tidemark_measure::evaluation::Evaluation;

/// What limited the arms, and what else was seen.
#[derive(Default)]
pub(super) struct Bottlenecks {
    /// The surest first, and of those the one that most runs agree on.
    pub(super) limits: Vec<Bottleneck>,
    /// What was busy and is not shown to be the limit, and what could not be told.
    pub(super) others: Vec<Bottleneck>,
}

/// The same said of several runs.
struct Family {
    findings: Vec<Finding>,
    levels: Vec<String>,
    /// Where it stood in the first run that says it.
    order: usize,
}

/// The limits of every arm under every load.
pub(super) fn name(evaluation: &Evaluation, entries: &[Entry<'_>], measured: &[Measured<'_>]) -> Bottlenecks {
    let mut all = Bottlenecks::default();
    for load in 0..evaluation.loads.len() {
        for arm in 0..evaluation.arms.len() {
            let own: Vec<_> = entries.iter().filter(|entry| (entry.arm, entry.load) == (arm, load)).collect();
            let cells: Vec<_> = measured.iter().filter(|one| (one.arm, one.load) == (arm, load)).collect();
            let served = evaluation.loads[load].search.is_some() && all_served(&cells);
            let found = limits(&own, &cells).into_iter();
            for finding in found.filter(|finding| !(served && is_limit(&finding.what))) {
                let (arm, load) = (evaluation.arms[arm].name.clone(), evaluation.loads[load].name.clone());
                let is_limit = is_limit(&finding.what);
                let one = Bottleneck { arm, load, finding };
                if is_limit { all.limits.push(one) } else { all.others.push(one) }
            }
        }
    }
    all
}

/// Whether open loops did all that was asked of them at every level: nothing limited them there.
fn all_served(cells: &[&Measured<'_>]) -> bool {
    !cells.is_empty() && cells.iter().all(|one| one.open && one.cell.meets == Some(true))
}

/// Whether the open loop of a run could not be limited by its generator: its level was served within the service level, or a
/// level no higher was outside, which is the storage's doing.
fn is_storage_told(entry: &Entry<'_>, cells: &[&Measured<'_>]) -> bool {
    let level = &entry.member.level;
    let is_at_most = |one: &Measured<'_>| {
        let axes = || one.cell.level.iter().zip(level);
        let number = |axis: &Axis| axis.value.number();
        one.cell.level.len() == level.len()
            && axes().all(|(one, own)| {
                one == own || (one.name == own.name && is_intensity(own) && number(one) <= number(own))
            })
    };
    cells.iter().filter(|one| one.open).any(|one| match one.cell.meets {
        Some(true) => one.cell.level == *level,
        Some(false) => is_at_most(one),
        None => false,
    })
}

fn limits(entries: &[&Entry<'_>], cells: &[&Measured<'_>]) -> Vec<Finding> {
    let mut families: Vec<(Alike, Family)> = Vec::new();
    for entry in entries {
        let overloaded = entry.run.stages.iter().flat_map(|stage| &stage.works).any(overloaded);
        let mut said: Vec<Alike> = Vec::new();
        let told = is_storage_told(entry, cells);
        let found = entry.findings.iter().enumerate();
        let found = found.filter(|(_, finding)| {
            let is_limit_of_storage = matches!(finding.what, What::Limit(_));
            tells(finding, overloaded) && (is_limit_of_storage || !told)
        });
        for (order, finding) in found {
            let mut finding = finding.clone();
            if !settled(&mut finding, &grown(entry, cells)) {
                continue;
            }
            let key = finding.alike();
            let levels = levels(entry, &finding);
            let place = families.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                families.push((key.clone(), Family { findings: Vec::new(), levels: Vec::new(), order }));
                families.len() - 1
            });
            let family = &mut families[place].1;
            family.levels.extend(levels);
            if !said.contains(&key) {
                family.findings.push(finding);
                said.push(key);
            }
        }
    }
    families.sort_by_key(|(_, family)| {
        (rank(&family.findings[0].what), Reverse(family.findings.len()), family.order)
    });
    families.into_iter().map(|(_, family)| together(family, entries.len())).collect()
}

/// The levels at which a run found something: its own, and of a run that measured several things the points of its sweep, or the
/// names of what it measured.
fn levels(entry: &Entry<'_>, finding: &Finding) -> Vec<String> {
    let (own, all) = (&entry.member.level, &entry.parts);
    let varies = |axis: &&Axis| all.iter().any(|other| !other.axes.contains(axis));
    let about = all.iter().filter(|part| part.stages.iter().any(|stage| finding.concerns(stage)));
    let found = about.map(|part| {
        let is_sole = all.iter().filter(|other| other.subject == part.subject).count() == all.len();
        let subject = (!is_sole).then(|| part.subject.clone());
        let level: Vec<Axis> = own.iter().chain(part.axes.iter().filter(varies)).cloned().collect();
        let level = Some(words::level(&level)).filter(|level| !level.is_empty());
        subject.into_iter().chain(level).collect::<Vec<_>>().join(", ")
    });
    let mut found: Vec<String> = found.collect();
    if found.is_empty() {
        found.push(words::level(own));
    }
    found
}

/// How throughput grows along each intensity of a run's level, everything else being the same.
fn grown(entry: &Entry<'_>, cells: &[&Measured<'_>]) -> Vec<(f64, Growth)> {
    let level = &entry.member.level;
    let along = |axis: &Axis| {
        let same = |one: &&&Measured<'_>| {
            let mut axes = one.cell.level.iter().zip(level);
            one.cell.level.len() == level.len()
                && axes.all(|(one, own)| one.name == own.name && (one == own || one.name == axis.name))
        };
        let of = |one: &&Measured<'_>| {
            let axis = one.cell.level.iter().find(|other| other.name == axis.name)?;
            let rates = &one.cell.throughput;
            Some(Level { load: axis.value.number()?, throughput: rates.mean, variation: rates.variation })
        };
        // A run may measure several things: more load has to bring more of each.
        let mut subjects: Vec<&str> = cells.iter().map(|one| one.cell.subject.as_str()).collect();
        subjects.dedup();
        let growths = subjects.into_iter().map(|subject| {
            let own = cells.iter().filter(|one| one.cell.subject == subject).filter(same);
            Growth::of(own.filter_map(&of).collect())
        });
        growths.max_by(|one, other| one.end().total_cmp(&other.end())).unwrap_or(Growth::Untried)
    };
    let axes = level.iter().filter(|axis| is_intensity(axis));
    axes.filter_map(|axis| Some((axis.value.number()?, along(axis)))).collect()
}

/// Whether a finding tells of limits. An open loop whose workers all wait is limited by the storage, not by the generator.
fn tells(finding: &Finding, overloaded: bool) -> bool {
    let generator = finding.invalidates && finding.what.is_of_generator();
    matches!(finding.what, What::Limit(_)) || generator || (is_unreached(finding) && !overloaded)
}

/// Whether it names one.
fn is_limit(what: &What) -> bool {
    !matches!(what, What::Limit(limited) if !limited.is_limit())
}

/// The surest first.
fn rank(what: &What) -> u8 {
    if let What::Limit(limited) = what { limited.rank() } else { 0 }
}

fn together(family: Family, runs: usize) -> Finding {
    let mut levels: Vec<String> = Vec::new();
    for level in family.levels.into_iter().filter(|level| !level.is_empty()) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let findings: Vec<&Finding> = family.findings.iter().collect();
    let in_runs = InRuns { levels, ..InRuns::new(&findings, findings.len(), runs) };
    Finding { in_runs: Some(in_runs), ..findings[0].clone() }
}
