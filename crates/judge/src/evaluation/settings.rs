//! Settings of the systems under load that are not the same in all arms.

use super::members::Entry;
use crate::evidence::{self, Setting};
use crate::words::evaluation::{Differing, OfEvaluation};
use crate::{Finding, Severity};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_measure::evaluation::Evaluation;

/// What is known of one setting: its values in each arm, and whether commits survive a crash with them.
#[derive(Default)]
struct Seen {
    values: BTreeMap<usize, BTreeSet<String>>,
    durable: BTreeSet<bool>,
}

/// The settings that arms differ in, of those whose systems show theirs.
pub(super) fn differ(evaluation: &Evaluation, entries: &[Entry<'_>]) -> Option<Finding> {
    let mut settings: BTreeMap<String, Seen> = BTreeMap::new();
    let mut arms = BTreeSet::new();
    for entry in entries {
        let proofs = entry.run.stages.iter().filter_map(|stage| stage.proof.as_ref());
        for Setting { name, value, durable } in proofs.flat_map(evidence::settings) {
            arms.insert(entry.arm);
            let seen = settings.entry(name).or_default();
            seen.values.entry(entry.arm).or_default().insert(value);
            seen.durable.extend(durable);
        }
    }
    let differing = settings.into_iter().filter_map(|(name, seen)| {
        let values = |arm: &usize| seen.values.get(arm).cloned().unwrap_or_default();
        let first = values(arms.first()?);
        if arms.iter().all(|arm| values(arm) == first) {
            return None;
        }
        let of = |arm: &usize| {
            let values = values(arm).into_iter().collect();
            (evaluation.arms[*arm].name.clone(), values)
        };
        let arms = arms.iter().map(of).collect();
        Some(Differing { setting: name, arms, durability: seen.durable.len() > 1 })
    });
    let settings: Vec<Differing> = differing.collect();
    let worst = if settings.iter().any(|one| one.durability) { Severity::Warning } else { Severity::Note };
    (!settings.is_empty()).then(|| Finding::about_run(worst, OfEvaluation::SettingsDiffer { settings }))
}

#[cfg(test)]
mod tests {
    use crate::evaluation::assess;
    use crate::rules::testing::{System, member_run, proof_of};
    use crate::{Finding, Severity};
    use tidemark_measure::axis::Axis;
    use tidemark_measure::evaluation::{Arm, Evaluation, Load};

    /// What is found where the databases of two arms have these settings.
    fn differing(settings: [&[(&str, &str, Option<bool>)]; 2]) -> Option<Finding> {
        let arm = |name: &str| Arm { name: name.into(), ..Arm::default() };
        let levels = vec![vec![Axis::of_words("workers", "4")]];
        let evaluation = Evaluation {
            arms: vec![arm("default"), arm("tuned")],
            loads: vec![Load { name: "l".into(), levels, ..Load::default() }],
            repeats: 1,
            ..Evaluation::default()
        };
        let run = |(turn, arm): (u32, &str)| {
            let mut run = member_run(arm, "l", &[("workers", "4")], 1, turn, 100.0);
            let of = |(name, value, durable): &(&str, &str, Option<bool>)| {
                ((*name).to_owned(), (*value).to_owned(), *durable)
            };
            let settings = settings[turn as usize - 1].iter().map(of).collect();
            run.stages[0].proof = Some(proof_of(&System { settings, counted: None }));
            run
        };
        let found = assess(&evaluation, &[(1, "default"), (2, "tuned")].map(run)).findings;
        found.into_iter().find(|finding| finding.rule() == "settings-differ")
    }

    #[test]
    fn settings_that_arms_differ_in_are_named() {
        let commit = |value, durable| ("synchronous_commit", value, Some(durable));
        let same = [commit("on", true), ("shared_buffers", "1GB", None)];
        assert!(differing([&same, &same]).is_none());
        let found = differing([&same, &[commit("off", false), same[1]]]).unwrap();
        assert_eq!(
            (found.severity, found.title().as_str()),
            (Severity::Warning, "arms differ in synchronous_commit")
        );
        assert_eq!(found.evidence(), ["synchronous_commit: default on, tuned off"]);
        let found = differing([&same, &[same[0]]]).unwrap();
        assert_eq!(found.severity, Severity::Note, "not about durability");
        assert_eq!(found.evidence(), ["shared_buffers: default 1GB, tuned has none"]);
    }
}
