//! What to do next, by what the resources say: a pure function, so that an operator that has forgotten everything decides alike.

use crate::resource::{Evaluation, Phase};
use std::collections::BTreeSet;

/// An Evaluation in one of its generations: its `uid`, and the number.
pub(crate) type Version = (String, i64);

/// What to do next.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// What is carried out is not wanted any more.
    pub(crate) stop: bool,
    /// Which of the Evaluations is to be carried out now, by its place.
    pub(crate) start: Option<usize>,
    /// Which do not say yet that they wait, and what for.
    pub(crate) mark: Vec<(usize, Phase)>,
}

/// Decides. `current` is carried out now; `out` are not to be begun: they are over, whether or not their status says so yet, or held.
pub(crate) fn decide(
    evaluations: &[Evaluation],
    current: Option<&Version>,
    out: &BTreeSet<Version>,
) -> Decision {
    let is_current = |one: &Evaluation| current == Some(&version(one));
    let stop = current.is_some() && !evaluations.iter().any(|one| is_current(one) && is_wanted(one));
    let mut due: Vec<usize> = (0..evaluations.len())
        .filter(|place| is_due(&evaluations[*place], out) && !is_current(&evaluations[*place]))
        .collect();
    // First come, first served.
    due.sort_by_key(|place| {
        let metadata = &evaluations[*place].metadata;
        (metadata.creation_timestamp.clone(), metadata.name.clone())
    });
    let start = if current.is_none() && !due.is_empty() { Some(due.remove(0)) } else { None };
    let suspended = (0..evaluations.len()).filter(|place| {
        let one = &evaluations[*place];
        one.spec.suspend && one.metadata.deletion_timestamp.is_none() && !is_of(one, current)
    });
    let says = |place: &usize, phase| {
        let Evaluation { metadata, status, .. } = &evaluations[*place];
        status.phase == Some(phase) && status.observed_generation == metadata.generation
    };
    let waiting = due.into_iter().filter(|place| !is_of(&evaluations[*place], current));
    let marks =
        waiting.map(|place| (place, Phase::Queued)).chain(suspended.map(|place| (place, Phase::Suspended)));
    Decision { stop, start, mark: marks.filter(|(place, phase)| !says(place, *phase)).collect() }
}

pub(crate) fn version(one: &Evaluation) -> Version {
    (one.metadata.uid.clone(), one.metadata.generation)
}

/// Whether what is carried out is this Evaluation, in whatever generation: it says itself how it ends.
fn is_of(one: &Evaluation, current: Option<&Version>) -> bool {
    current.is_some_and(|(uid, _)| *uid == one.metadata.uid)
}

fn is_wanted(one: &Evaluation) -> bool {
    !one.spec.suspend && one.metadata.deletion_timestamp.is_none()
}

fn is_due(one: &Evaluation, out: &BTreeSet<Version>) -> bool {
    let is_over = one.status.observed_generation == one.metadata.generation
        && one.status.phase.is_some_and(Phase::is_final);
    is_wanted(one) && !is_over && !out.contains(&version(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Metadata;

    fn one(name: &str, generation: i64, phase: Option<(Phase, i64)>) -> Evaluation {
        let metadata = Metadata {
            name: name.into(),
            uid: format!("uid-{name}"),
            generation,
            creation_timestamp: "2026-01-01T00:00:00Z".into(),
            deletion_timestamp: None,
        };
        let mut evaluation = Evaluation { metadata, ..Evaluation::default() };
        if let Some((phase, of)) = phase {
            evaluation.status.phase = Some(phase);
            evaluation.status.observed_generation = of;
        }
        evaluation
    }

    fn suspended(mut evaluation: Evaluation) -> Evaluation {
        evaluation.spec.suspend = true;
        evaluation
    }

    fn seen(evaluations: &[Evaluation], current: Option<(&str, i64)>) -> Decision {
        let current = current.map(|(name, generation)| (format!("uid-{name}"), generation));
        decide(evaluations, current.as_ref(), &BTreeSet::new())
    }

    #[test]
    fn one_is_carried_out_at_a_time_and_the_oldest_first() {
        let mut all = [one("b", 1, None), one("a", 1, None), one("c", 1, None)];
        all[2].metadata.creation_timestamp = "2025-01-01T00:00:00Z".into();
        let mark = vec![(1, Phase::Queued), (0, Phase::Queued)];
        assert_eq!(seen(&all, None), Decision { start: Some(2), mark: mark.clone(), stop: false });
        assert_eq!(seen(&all, Some(("c", 1))), Decision { mark, ..Decision::default() });
        all[0] = one("b", 1, Some((Phase::Queued, 1)));
        assert_eq!(
            seen(&all, Some(("c", 1))).mark,
            [(1, Phase::Queued)],
            "what says so already is left alone"
        );
    }

    #[test]
    fn what_was_being_carried_out_when_the_operator_was_killed_goes_on() {
        let all = [one("a", 3, Some((Phase::Running, 3)))];
        assert_eq!(seen(&all, None).start, Some(0));
    }

    #[test]
    fn what_is_over_stays_over_until_its_spec_changes() {
        for phase in [Phase::Completed, Phase::Failed] {
            assert_eq!(seen(&[one("a", 2, Some((phase, 2)))], None), Decision::default());
            assert_eq!(seen(&[one("a", 3, Some((phase, 2)))], None).start, Some(0));
        }
        // A list from before the status was written does not start it again.
        let finished = BTreeSet::from([("uid-a".to_owned(), 2)]);
        let stale = [one("a", 2, Some((Phase::Running, 2)))];
        assert_eq!(decide(&stale, None, &finished), Decision::default());
    }

    #[test]
    fn what_is_not_wanted_any_more_is_stopped() {
        let stopped = Decision { stop: true, ..Decision::default() };
        assert_eq!(seen(&[], Some(("a", 1))), stopped, "it is gone");
        assert_eq!(seen(&[suspended(one("a", 2, Some((Phase::Running, 1))))], Some(("a", 1))), stopped);
        assert_eq!(
            seen(&[one("a", 2, Some((Phase::Running, 1)))], Some(("a", 1))),
            stopped,
            "it has changed"
        );
        let mut deleted = one("a", 1, Some((Phase::Running, 1)));
        deleted.metadata.deletion_timestamp = Some("now".into());
        assert_eq!(seen(&[deleted], Some(("a", 1))), stopped);
        assert_eq!(seen(&[one("a", 1, Some((Phase::Running, 1)))], Some(("a", 1))), Decision::default());
    }

    #[test]
    fn what_is_suspended_says_so_once_and_is_not_started() {
        let all = [suspended(one("a", 1, None))];
        assert_eq!(seen(&all, None), Decision { mark: vec![(0, Phase::Suspended)], ..Decision::default() });
        assert_eq!(seen(&[suspended(one("a", 1, Some((Phase::Suspended, 1))))], None), Decision::default());
        assert_eq!(seen(&[one("a", 2, Some((Phase::Suspended, 1)))], None).start, Some(0));
    }
}
