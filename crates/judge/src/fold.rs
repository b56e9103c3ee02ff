//! Many stages of a sweep show the same, or many instances in a stage: one finding covers them all.

use crate::words::phrase::Alike;
use crate::words::proof::Proof;
use crate::{Finding, Occurrence, What};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Stages that may say the same one by one.
const APART_MOST: usize = 3;

/// Folds what is found in more than three of these stages and differs in its quantities only; and why something was not
/// checked, which is the same for every stage on the same volumes, from the second stage on, whatever the stages are. The
/// folded finding stands where the first of them stood.
pub(crate) fn fold(found: Vec<Finding>, stages: &BTreeSet<String>) -> Vec<Finding> {
    let found = fold_instances(found);
    let mut families: HashMap<(Alike, _, bool), Vec<usize>> = HashMap::new();
    for (index, finding) in found.iter().enumerate() {
        if finding.stage.as_ref().is_some_and(|stage| is_unchecked(finding) || stages.contains(stage)) {
            let key = (finding.alike(), finding.severity, finding.invalidates);
            families.entry(key).or_default().push(index);
        }
    }
    let folded = families.into_values().filter_map(|members| {
        let family: Vec<&Finding> = members.iter().map(|index| &found[*index]).collect();
        let own: BTreeSet<_> = family.iter().filter_map(|finding| finding.stage.as_ref()).collect();
        let apart_most = if is_unchecked(family[0]) { 1 } else { APART_MOST };
        (own.len() > apart_most).then(|| (together(&family), members))
    });
    let folded = folded.collect();
    put(found, folded)
}

/// Folds what is found of several instances in the same stage, such as databases, and differs in its quantities only.
fn fold_instances(found: Vec<Finding>) -> Vec<Finding> {
    let mut families: HashMap<(Alike, _, bool, Option<&String>), Vec<usize>> = HashMap::new();
    for (index, finding) in found.iter().enumerate().filter(|(_, finding)| finding.what.instance().is_some())
    {
        let key = (finding.alike(), finding.severity, finding.invalidates, finding.stage.as_ref());
        families.entry(key).or_default().push(index);
    }
    let several = families.into_values().filter(|members| members.len() > 1);
    let folded = several.map(|members| {
        let of = |index: &usize| {
            let finding = &found[*index];
            let place = finding.what.instance().unwrap_or_default().to_owned();
            Occurrence { place, what: finding.what.clone() }
        };
        (Finding { each: members.iter().map(of).collect(), ..found[members[0]].clone() }, members)
    });
    let folded = folded.collect();
    put(found, folded)
}

/// Puts each folded finding where the first of its members stood; the others are gone.
fn put(found: Vec<Finding>, folded: Vec<(Finding, Vec<usize>)>) -> Vec<Finding> {
    let gone: BTreeSet<usize> = folded.iter().flat_map(|(_, members)| members.iter().copied()).collect();
    let mut folded: BTreeMap<usize, Finding> =
        folded.into_iter().map(|(finding, members)| (members[0], finding)).collect();
    let each = found.into_iter().enumerate();
    each.filter_map(|(index, finding)| {
        folded.remove(&index).or_else(|| (!gone.contains(&index)).then_some(finding))
    })
    .collect()
}

/// Whether it says why there is no proof.
fn is_unchecked(finding: &Finding) -> bool {
    matches!(finding.what, What::Proof(Proof::Unchecked { .. }))
}

fn together(family: &[&Finding]) -> Finding {
    let mut stages: Vec<String> = Vec::new();
    for stage in family.iter().filter_map(|finding| finding.stage.clone()) {
        if !stages.contains(&stage) {
            stages.push(stage);
        }
    }
    let occurrence = |finding: &&Finding| Occurrence { place: finding.place(), what: finding.what.clone() };
    let each = family.iter().map(occurrence).collect();
    Finding { each, stages, stage: None, work: None, ..family[0].clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;
    use crate::What;
    use crate::rules::testing::OfInstance;
    use crate::words::conduct::Conduct;

    fn finding(stage: &str, idle: u64, workers: u64) -> Finding {
        let finding = Finding::about_run(Severity::Warning, Conduct::IdleWorkers { idle, workers });
        Finding { stage: Some(stage.into()), ..finding }
    }

    fn folded(all: Vec<Finding>) -> Vec<Finding> {
        let stages = all.iter().filter_map(|finding| finding.stage.clone()).collect();
        fold(all, &stages)
    }

    #[test]
    fn alike_findings_are_one_with_the_range_of_their_quantities() {
        let mut all: Vec<_> = [1, 3, 2, 1]
            .iter()
            .enumerate()
            .map(|(index, idle)| finding(&format!("s{index}"), *idle, 4))
            .collect();
        let other = Finding::about_run(Severity::Warning, Conduct::Undone { operations: 1 });
        all.push(Finding { stage: Some("s4".into()), ..other });
        let all = folded(all);
        let rules: Vec<_> = all.iter().map(Finding::rule).collect();
        assert_eq!(rules, ["idle-workers", "undone"]);
        assert_eq!((all[0].place().as_str(), all[0].each.len()), ("4 stages", 4));
        assert_eq!(all[0].title(), "1 to 3 of 4 workers did nothing");
        assert_eq!(
            all[0].evidence()[..3],
            ["stages: s0, s1, s2, s3", "s0: 1 of 4 workers did nothing", "s1: 3 of 4 workers did nothing"]
        );
        assert_eq!(all[1].stage.as_deref(), Some("s4"));
    }

    #[test]
    fn three_stages_other_severities_and_other_words_stay_apart() {
        let some =
            |count: usize| (0..count).map(|index| finding(&format!("s{index}"), 1, 4)).collect::<Vec<_>>();
        assert_eq!(folded(some(3)).len(), 3);
        assert_eq!(folded(some(4)).len(), 1);
        let mut graver = some(4);
        graver[0].severity = Severity::Critical;
        assert_eq!(folded(graver).len(), 4);
        let named = |index: usize| {
            let reason = ["no space", "no route"][index % 2].to_owned();
            let what = Conduct::StageFailed { reason };
            Finding { stage: Some(format!("s{index}")), ..Finding::about_run(Severity::Warning, what) }
        };
        assert_eq!(folded((0..5).map(named).collect()).len(), 5);
        assert_eq!(fold(some(5), &BTreeSet::new()).len(), 5, "stages of no sweep");
    }

    #[test]
    fn what_many_databases_show_is_said_once() {
        let of = |stage: &str, server: &str, commits: u64| {
            let what = What::of_engine(OfInstance { name: server.into(), commits });
            Finding { stage: Some(stage.into()), ..Finding::about_run(Severity::Good, what) }
        };
        let all = vec![of("s1", "a", 10), of("s1", "b", 30), of("s2", "a", 20), of("s1", "c", 20)];
        let all = fold(all, &BTreeSet::new());
        assert_eq!(all.len(), 2, "each stage for itself");
        assert_eq!((all[0].place().as_str(), all[0].each.len()), ("s1", 3));
        assert!(all[0].title().contains("10 to 30"), "{}", all[0].title());
        assert_eq!(all[0].evidence()[0], "instances: a; b; c");
        assert!(all[1].each.is_empty());
    }

    #[test]
    fn why_there_is_no_proof_is_said_once() {
        let remark = |stage: &str, reason: &str| {
            let what = Proof::Unchecked { reasons: vec![reason.to_owned()] };
            Finding { stage: Some(stage.into()), ..Finding::about_run(Severity::Note, what) }
        };
        let all = vec![remark("s1", "no device"), remark("s2", "no device"), remark("s2", "it disappeared")];
        let all = fold(all, &BTreeSet::new());
        assert_eq!(all.iter().map(Finding::title).collect::<Vec<_>>(), ["no device", "it disappeared"]);
        assert_eq!((all[0].place().as_str(), all[1].place().as_str()), ("2 stages", "s2"));
    }
}
