//! How far the time of a search goes.

use crate::conclusion::Phase;
use crate::search::kept;
use tidemark_measure::tuning::Tuning;

/// Notes what a trial took, with what brought its settings into effect; `done` is how many were measured by now. The first one builds what
/// the others only change: the second that is measured tells how many runs the time is enough for, which one whose settings do not work
/// cannot. When no more is left than the proof needs, at what trials take, the search is closed; once the proof has begun, it is not.
pub fn note(tuning: &mut Tuning, phase: Phase, took_ns: u64, done: u32, is_measured: bool) {
    tuning.spent_ns += took_ns;
    if tuning.first_ns == 0 {
        tuning.first_ns = took_ns;
    }
    let Some(time_ns) = tuning.time_ns else { return };
    let (later_ns, later) = (tuning.spent_ns - tuning.first_ns, u64::from(done.max(2) - 1));
    if tuning.affords.is_none() && later_ns > 0 && is_measured {
        let runs = 1 + time_ns.saturating_sub(tuning.first_ns) / took_ns.max(1);
        tuning.affords = Some(u32::try_from(runs).unwrap_or(u32::MAX));
    }
    let for_proof = (later_ns / later).saturating_mul(kept(tuning.budget()).into());
    tuning.is_closed |= phase != Phase::Proof && tuning.spent_ns.saturating_add(for_proof) >= time_ns;
    if tuning.is_closed {
        // The first trial alone may take all of it.
        tuning.affords.get_or_insert(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(tuning: &mut Tuning, took_ns: u64, done: u32, is_measured: bool) {
        super::note(tuning, Phase::Screening, took_ns, done, is_measured);
    }

    fn tuning() -> Tuning {
        Tuning { runs: 100, time_ns: Some(1030), ..Tuning::default() }
    }

    #[test]
    fn the_second_trial_tells_how_many_runs_the_time_is_enough_for() {
        let mut tuning = tuning();
        note(&mut tuning, 30, 1, true);
        assert_eq!((tuning.affords, tuning.is_closed), (None, false));
        note(&mut tuning, 20, 2, true);
        assert_eq!((tuning.affords, tuning.spent_ns, tuning.is_closed), (Some(51), 50, false));
        note(&mut tuning, 40, 3, true);
        assert_eq!(tuning.affords, Some(51), "it stays what it was");
    }

    #[test]
    fn what_the_proof_needs_is_kept_for_it() {
        let mut tuning = tuning();
        note(&mut tuning, 30, 1, true);
        let mut done = 1;
        while !tuning.is_closed {
            done += 1;
            note(&mut tuning, 20, done, true);
        }
        // Of 51 runs, six pairs are the proof.
        assert_eq!((tuning.affords, done), (Some(51), 39));
    }

    #[test]
    fn the_first_trial_may_take_all_of_it() {
        let mut tuning = tuning();
        note(&mut tuning, 2000, 1, true);
        assert_eq!((tuning.affords, tuning.is_closed), (Some(1), true));
    }

    #[test]
    fn a_proof_that_has_begun_is_not_cut_short() {
        let mut tuning = tuning();
        super::note(&mut tuning, Phase::Screening, 30, 1, true);
        super::note(&mut tuning, Phase::Screening, 20, 2, true);
        (3..=51).for_each(|done| super::note(&mut tuning, Phase::Proof, 20, done, true));
        assert_eq!((tuning.spent_ns, tuning.is_closed), (1030, false));
    }

    #[test]
    fn without_a_budget_in_time_nothing_is_closed() {
        let mut tuning = Tuning { time_ns: None, ..tuning() };
        note(&mut tuning, u64::MAX / 2, 1, true);
        note(&mut tuning, u64::MAX / 4, 2, true);
        assert_eq!((tuning.affords, tuning.is_closed), (None, false));
    }

    #[test]
    fn settings_that_do_not_work_do_not_tell_what_a_run_takes() {
        let mut tuning = tuning();
        note(&mut tuning, 30, 1, true);
        note(&mut tuning, 1, 1, false);
        assert_eq!((tuning.affords, tuning.is_closed), (None, false));
        note(&mut tuning, 20, 2, true);
        assert_eq!(tuning.affords, Some(51));
    }
}
