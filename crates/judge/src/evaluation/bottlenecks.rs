//! What limited each arm: what the rules say of its single runs, put together.

use super::cells::{is_unreached, overloaded};
use super::members::Entry;
use super::{Bottleneck, words};
use crate::words::phrase::Alike;
use crate::{Finding, InRuns, What};
use std::cmp::Reverse;
use tidemark_measure::evaluation::Evaluation;

/// The same said of several runs.
struct Family<'r> {
    findings: Vec<&'r Finding>,
    levels: Vec<String>,
    /// Where it stood in the first run that says it.
    order: usize,
}

/// The limits of every arm under every load; the one that most runs agree on first.
pub(super) fn name(evaluation: &Evaluation, entries: &[Entry<'_>]) -> Vec<Bottleneck> {
    let mut bottlenecks = Vec::new();
    for load in 0..evaluation.loads.len() {
        for arm in 0..evaluation.arms.len() {
            let own: Vec<_> = entries.iter().filter(|entry| (entry.arm, entry.load) == (arm, load)).collect();
            bottlenecks.extend(limits(&own).into_iter().map(|finding| Bottleneck {
                arm: evaluation.arms[arm].name.clone(),
                load: evaluation.loads[load].name.clone(),
                finding,
            }));
        }
    }
    bottlenecks
}

fn limits(entries: &[&Entry<'_>]) -> Vec<Finding> {
    let mut families: Vec<(Alike, Family<'_>)> = Vec::new();
    for entry in entries {
        let overloaded = entry.run.stages.iter().flat_map(|stage| &stage.works).any(overloaded);
        let mut said: Vec<Alike> = Vec::new();
        let limits = entry.findings.iter().enumerate().filter(|(_, finding)| is_limit(finding, overloaded));
        for (order, finding) in limits {
            let key = finding.alike();
            if said.contains(&key) {
                continue;
            }
            let place = families.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
                families.push((key.clone(), Family { findings: Vec::new(), levels: Vec::new(), order }));
                families.len() - 1
            });
            let family = &mut families[place].1;
            family.findings.push(finding);
            family.levels.push(words::level(&entry.member.level));
            said.push(key);
        }
    }
    families.sort_by_key(|(_, family)| (Reverse(family.findings.len()), family.order));
    families.into_iter().map(|(_, family)| together(family, entries.len())).collect()
}

/// Whether a finding names a limit. An open loop whose workers all wait is limited by the storage, not by the generator.
fn is_limit(finding: &Finding, overloaded: bool) -> bool {
    let generator = finding.invalidates && finding.what.is_of_generator();
    matches!(finding.what, What::Limit { .. }) || generator || (is_unreached(finding) && !overloaded)
}

fn together(family: Family<'_>, runs: usize) -> Finding {
    let mut levels: Vec<String> = Vec::new();
    for level in family.levels.into_iter().filter(|level| !level.is_empty()) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let in_runs = InRuns { levels, ..InRuns::new(&family.findings, family.findings.len(), runs) };
    Finding { in_runs: Some(in_runs), ..family.findings[0].clone() }
}
