//! What time does to an evaluation: drift, arms one after the other, runs of several days.

use super::*;

#[test]
fn drift_is_found_and_noise_is_none() {
    let mut rng = Rng::new(6, &[]);
    let rates = |rng: &mut Rng, step: f64| -> (Vec<f64>, Vec<f64>) {
        let rate = |turn: usize, rng: &mut Rng| {
            400.0 * (1.0 - step * turn as f64) * (1.0 + 0.002 * (rng.unit() - 0.5))
        };
        (0..6).map(|repeat| (rate(2 * repeat, rng), rate(2 * repeat + 1, rng))).unzip()
    };
    let (falling, other) = rates(&mut rng, 0.01);
    let (evaluation, runs) = two_arms(&falling, &other);
    let assessment = assess(&evaluation, &runs);
    let drift = has(&assessment, "drift").unwrap();
    assert_eq!(drift.severity, Severity::Warning);
    // (1 - 0.11) / 1: a line through logarithms says 11.0 %.
    assert!(
        drift.title().starts_with("throughput fell by 11.")
            || drift.title().starts_with("throughput fell by 10."),
        "{}",
        drift.title()
    );
    let (level, other) = rates(&mut rng, 0.0);
    let (evaluation, runs) = two_arms(&level, &other);
    assert_eq!(has(&assess(&evaluation, &runs), "drift"), None);
}

/// Two arms whose runs come in this order, each faster than the one before by this share of the first.
fn in_turn(arms: &[&str], step: f64) -> (Evaluation, Vec<Run>) {
    let mut rng = Rng::new(14, &[]);
    let mut repeats = std::collections::HashMap::new();
    let run = |(place, arm): (usize, &&str)| {
        let repeat = repeats.entry((*arm).to_owned()).and_modify(|repeat| *repeat += 1).or_insert(1);
        let rate = 400.0 * (1.0 + step * place as f64) * (1.0 + 0.01 * (rng.unit() - 0.5));
        member_run(arm, "small", &[], *repeat, place as u32 + 1, rate)
    };
    let runs: Vec<Run> = arms.iter().enumerate().map(run).collect();
    (evaluation(&["a", "b"], vec![load("small", vec![])], (arms.len() / 2) as u32), runs)
}

#[test]
fn arms_measured_one_after_the_other_are_never_called_different() {
    let (mut evaluation, runs) = in_turn(&["a", "a", "a", "b", "b", "b"], 0.1);
    evaluation.order = "blocks".into();
    let assessment = assess(&evaluation, &runs);
    assert_eq!(assessment.outcome, Outcome::Confounded, "{:?}", assessment.comparisons);
    assert!(
        assessment.verdict[0].starts_with("b was measured apart from a, and a drift would look the same:")
    );
    let said = has(&assessment, "arms-apart").unwrap();
    assert_eq!(said.severity, Severity::Warning);
    // The same numbers of two stored results: that they are apart is known to whoever compares them.
    evaluation.order = "as they were done".into();
    let assessment = assess(&evaluation, &runs);
    assert_eq!((assessment.outcome, has(&assessment, "arms-apart")), (Outcome::Better, None));
}

#[test]
fn arms_that_alternate_are_compared_whatever_the_order_is_called() {
    let (mut evaluation, runs) = in_turn(&["a", "b", "b", "a", "a", "b"], 0.0);
    evaluation.order = "interleaved".into();
    let assessment = assess(&evaluation, &runs);
    assert_eq!((assessment.outcome, has(&assessment, "arms-apart")), (Outcome::CannotTell, None));
}

#[test]
fn a_drift_of_forty_percent_is_told_of_in_every_order() {
    for (order, arms) in [
        ("interleaved", &["a", "b", "b", "a", "a", "b"][..]),
        ("interleaved", &["a", "b", "b", "a"][..]),
        ("random", &["b", "a", "a", "b", "b", "a"][..]),
    ] {
        let (mut evaluation, runs) = in_turn(arms, 0.4 / (arms.len() - 1) as f64);
        evaluation.order = order.into();
        let drift = assess(&evaluation, &runs).findings.into_iter().find(|one| one.rule() == "drift");
        let drift = drift.unwrap_or_else(|| panic!("{order} {arms:?}"));
        assert_eq!(drift.severity, Severity::Warning);
        assert!(drift.title().starts_with("throughput rose by "), "{}", drift.title());
    }
}

#[test]
fn runs_of_another_day_are_told_of_and_tested() {
    const DAY: u64 = 86_400_000_000_000;
    let on_days = |arms: &[&str], days: &[u64], step: f64| {
        let (mut evaluation, mut runs) = in_turn(arms, 0.0);
        evaluation.order = "interleaved".into();
        for (run, day) in runs.iter_mut().zip(days) {
            run.started_unix_ns = (100 + day) * DAY;
            let tally = &mut work(run).operations[0].tally;
            tally.ok = (tally.ok as f64 * (1.0 + step * *day as f64)) as u64;
        }
        assess(&evaluation, &runs)
    };
    // Two repeats of yesterday, two of today: today everything is a tenth faster.
    let arms = ["a", "b", "b", "a", "a", "b", "b", "a"];
    let faster = on_days(&arms, &[0, 0, 0, 0, 1, 1, 1, 1], 0.1);
    let said = has(&faster, "sessions").unwrap();
    assert_eq!(said.severity, Severity::Warning);
    assert!(said.title().starts_with("runs are of 2 sessions, and the same cells did "), "{}", said.title());
    let same = on_days(&arms, &[0, 0, 0, 0, 1, 1, 1, 1], 0.0);
    let said = has(&same, "sessions").unwrap();
    assert_eq!(
        (said.severity, said.title()),
        (Severity::Note, "runs are of 2 sessions; no difference between them was found".into())
    );
    // The arm that changed was measured again, the other was not: nothing can be told apart.
    let replaced = on_days(&["a", "a", "a", "b", "b", "b"], &[0, 0, 0, 1, 1, 1], 0.2);
    assert_eq!(replaced.outcome, Outcome::Confounded);
    assert_eq!(
        has(&replaced, "sessions").unwrap().title(),
        "runs are of 2 sessions, and no cell tells whether they differ"
    );
    assert!(has(&replaced, "arms-apart").is_some());
    assert_eq!(has(&on_days(&arms, &[1; 8], 0.0), "sessions"), None, "one session");
}

#[test]
fn of_two_stored_results_neither_drift_nor_missing_repeats_are_told() {
    use crate::compare::{Side, compare};
    let (evaluation, runs) = in_turn(&["a", "b", "a", "b", "a", "b", "a", "b"], -0.02);
    assert!(has(&assess(&evaluation, &runs), "drift").is_some(), "in one evaluation");
    let sides = ["a", "b"].map(|arm| {
        let mut own: Vec<Run> =
            runs.iter().filter(|run| run.member.as_ref().unwrap().arm == arm).cloned().collect();
        own.iter_mut().for_each(|run| run.started_unix_ns = run.id * 1_000_000_000);
        Side::of_evaluation(&evaluation, Some(arm), own)
    });
    let [first, mut second] = sides;
    let (compared, runs) = compare(["e1", "e2"], [first, second]);
    let assessment = assess(&compared, &runs);
    assert_eq!((has(&assessment, "drift"), has(&assessment, "repeats-missing")), (None, None));
    // A side with fewer repeats.
    second = Side::of_evaluation(&evaluation, None, vec![]);
    let first = Side::of_runs(runs.iter().take(3).cloned().collect());
    let (compared, runs) = compare(["e1", "e2"], [first, second]);
    assert_eq!(has(&assess(&compared, &runs), "repeats-missing"), None);
}
