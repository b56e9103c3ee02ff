//! Searches in which some values always fail.

use super::*;

/// What a run with some settings does without noise; nothing where it fails.
type Truth = fn(&[f64]) -> Option<f64>;

fn word(name: &str, words: [&str; 2]) -> Setting {
    let words = words.map(str::to_owned).to_vec();
    Setting { domain: Domain::Choice(words), ..number(name, 0.0, 1.0, Scale::Linear, 0.0) }
}

/// Delay and workers that matter, and three whose other end fails: a word, a range, and a range between whose ends is the best.
fn service() -> Space {
    let settings = vec![
        number("delay", 10.0, 40.0, Scale::Log, 20.0),
        number("workers", 1.0, 8.0, Scale::Log, 2.0),
        number("nothing", 1.0, 4.0, Scale::Linear, 2.0),
        word("errors", ["0", "20%"]),
        number("memory", 1.0, 9.0, Scale::Linear, 3.0),
    ];
    Space { settings }
}

fn search(space: &Space, truth: Truth, runs: u32, seed: u64) -> (Conclusion, Vec<Seen>) {
    let tuning = asked(space.clone(), Objective::Throughput, runs);
    let mut rng = Rng::new(seed, &[91]);
    let mut seen = Vec::new();
    loop {
        let (conclusion, next) = look(Problem { tuning: &tuning, seed }, &seen);
        if next.is_empty() {
            assert!(seen.len() <= runs as usize, "{} of {runs} runs", seen.len());
            return (conclusion, seen);
        }
        for trial in next {
            let factor = (0.02 * normal_number(&mut rng)).exp();
            let outcome = truth(&trial.configuration.0)
                .map_or(Outcome::Outside, |value| Outcome::Value(value * factor));
            seen.push(Seen { trial, outcome });
        }
    }
}

#[test]
fn values_that_fail_do_not_hide_what_the_others_do() {
    let space = service();
    let truth: Truth = |values| {
        let fails = values[3] == 1.0 || values[4] > 8.0;
        (!fails).then(|| 1000.0 * values[1] / values[0])
    };
    let mut touched = 0;
    for seed in 0..6 {
        let (conclusion, seen) = search(&space, truth, 60, seed);
        let failing: Vec<(usize, f64)> =
            conclusion.failing.iter().map(|failing| (failing.setting, failing.value)).collect();
        assert!(
            failing.len() == 2 && failing.contains(&(3, 1.0)) && failing.contains(&(4, 9.0)),
            "{failing:?}"
        );
        for (effect, truth) in conclusion.effects.iter().zip([0.25, 8.0, 1.0]) {
            let (low, high) = effect.interval;
            assert!(low < truth && truth < high && high / low < 1.5, "seed {seed}: {effect:?} and {truth}");
        }
        assert!(conclusion.effects.iter().all(|effect| effect.setting != 3), "{:?}", conclusion.effects);
        assert_eq!(conclusion.end, Some(End::Better), "seed {seed}");
        let winner = conclusion.winner.unwrap();
        let gain = truth(&winner.0).unwrap() / truth(&space.baseline().0).unwrap();
        assert!(gain > 6.0, "seed {seed}: {winner:?} is {gain} times the baseline, and 8 can be had");
        touched += i32::from(winner.0[2] != space.baseline().0[2]);
        // What fails is not tried again once that is known.
        let screened = |seen: &&Seen| seen.trial.phase != Phase::Screening;
        let again = seen.iter().filter(screened).filter(|seen| {
            let values = &seen.trial.configuration.0;
            values[3] == 1.0 || values[4] == 9.0
        });
        assert_eq!(again.count(), 0);
    }
    assert!(touched <= 2, "what brings nothing stays as it was, in most cases: {touched} of 6");
}

#[test]
fn the_best_before_a_value_that_fails_is_found_where_the_screening_sees_nothing_else() {
    // From the lower end to the baseline there is nothing to see.
    let space =
        Space { settings: vec![number("workers", 1.0, 100.0, Scale::Linear, 1.0), word("a", ["x", "y"])] };
    let truth: Truth = |values| (values[0] <= 60.0).then(|| 100.0 + values[0]);
    for seed in 0..4 {
        let (conclusion, _) = search(&space, truth, 60, seed);
        assert_eq!(conclusion.failing.len(), 1);
        assert_eq!(conclusion.end, Some(End::Better), "seed {seed}");
        assert!(conclusion.winner.as_ref().unwrap().0[0] > 40.0, "{:?}", conclusion.winner);
    }
}

#[test]
fn where_only_failing_matters_nothing_else_is_claimed() {
    let space = Space { settings: vec![word("a", ["x", "y"]), word("b", ["x", "y"]), word("c", ["x", "y"])] };
    let truth: Truth = |values| (values[0] == 0.0).then_some(100.0);
    let mut ends = Vec::new();
    for seed in 0..20 {
        let (conclusion, _) = search(&space, truth, 60, seed);
        assert_eq!(conclusion.failing.iter().map(|one| one.setting).collect::<Vec<_>>(), [0]);
        ends.push(matters_not(&conclusion));
    }
    assert!(ends.iter().filter(|is_silent| **is_silent).count() >= 18, "{ends:?}");
}

#[test]
fn a_corner_that_is_far_better_is_proven_although_no_setting_is_by_itself() {
    // Only both together, with the third at its other end, do anything: no straight line shows it.
    let names = ["a", "b", "c"].map(|name| word(name, ["x", "y"]));
    let space = Space { settings: names.to_vec() };
    let truth: Truth = |values| Some(if values[0] * values[1] * values[2] > 0.0 { 400.0 } else { 100.0 });
    for seed in 0..4 {
        let (conclusion, _) = search(&space, truth, 60, seed);
        assert_eq!(conclusion.end, Some(End::Better), "seed {seed}");
        assert_eq!(conclusion.winner.unwrap().0, [1.0; 3]);
    }
}

#[test]
fn what_the_screening_promises_is_proven_although_no_runs_are_left_to_search() {
    let space = Space { settings: service().settings[..3].to_vec() };
    let truth: Truth = |values| Some(1000.0 * values[1] / values[0]);
    let (conclusion, _) = search(&space, truth, least_runs(3), 1);
    assert_eq!(
        conclusion.runs.iter().map(|(phase, _)| *phase).collect::<Vec<_>>(),
        [Phase::Screening, Phase::Proof]
    );
    assert_eq!(conclusion.end, Some(End::Better));
    assert_eq!(conclusion.winner.unwrap().0[..2], [10.0, 8.0]);
}

#[test]
fn time_that_ends_after_the_first_pass_leaves_what_it_has_told_to_be_proven() {
    let space = service();
    let truth: Truth = |values| (values[3] == 0.0).then(|| 1000.0 * values[1] / values[0]);
    let tuning = asked(space.clone(), Objective::Throughput, 60);
    let (mut seen, mut rounds) = (Vec::new(), 0);
    let conclusion = loop {
        // The time is over when the design is to be carried out again without what fails.
        let tuning = Tuning { is_closed: rounds > 0, ..tuning.clone() };
        let (conclusion, next) = look(Problem { tuning: &tuning, seed: 2 }, &seen);
        if next.is_empty() {
            break conclusion;
        }
        rounds += 1;
        seen.extend(next.into_iter().map(|trial| {
            let outcome = truth(&trial.configuration.0).map_or(Outcome::Outside, Outcome::Value);
            Seen { trial, outcome }
        }));
    };
    assert_eq!(conclusion.failing.iter().map(|one| one.setting).collect::<Vec<_>>(), [3]);
    assert_eq!(conclusion.end, Some(End::Better), "{:?}", conclusion.effects);
    assert!(conclusion.searched.is_empty(), "nothing was searched");
}

#[test]
fn a_baseline_that_fails_is_left_and_the_search_goes_on_from_what_works() {
    let mut space = service();
    (space.settings[3].baseline, space.settings[4].baseline) = (1.0, 1.0);
    let truth: Truth = |values| {
        (values[3] == 0.0).then(|| 1000.0 * values[1] / values[0] * (1.0 - (values[4] - 5.0).powi(2) / 20.0))
    };
    for seed in 0..4 {
        let (conclusion, seen) = search(&space, truth, 80, seed);
        assert_eq!(conclusion.end, Some(End::Better));
        assert!(conclusion.runs.iter().any(|(phase, _)| *phase == Phase::Refining), "{:?}", conclusion.runs);
        let winner = conclusion.winner.unwrap();
        assert!(winner.0[3] == 0.0 && winner.0[1] / winner.0[0] > 0.6, "{winner:?}");
        let failing = conclusion.failing[0];
        let with = seen.iter().filter(|one| one.trial.phase != Phase::Proof);
        let with = with.filter(|one| one.trial.configuration.0[3] == 1.0).count();
        assert_eq!(
            (failing.setting, failing.runs as usize),
            (3, with),
            "all runs count, those of the baseline too"
        );
    }
}

#[test]
fn between_ends_that_are_alike_is_searched_where_the_baseline_is_outside() {
    let mut space = service();
    space.settings = vec![space.settings[3].clone(), number("x", 0.0, 100.0, Scale::Linear, 10.0)];
    space.settings[0].baseline = 1.0;
    let truth: Truth = |values| {
        (values[0] == 0.0).then(|| 100.0 * (1.0 + 4.0 * (1.0 - ((values[1] - 50.0) / 50.0).powi(2))))
    };
    for seed in 0..4 {
        let (conclusion, _) = search(&space, truth, 60, seed);
        assert_eq!(conclusion.end, Some(End::Better));
        let winner = conclusion.winner.unwrap();
        assert!(truth(&winner.0).unwrap() > 400.0, "seed {seed}: {winner:?}, and 500 can be had");
    }
}

#[test]
fn what_costs_are_known_does_not_widen_intervals() {
    use tidemark_measure::tuning::Price;
    // The price of memory is not in proportion, so that no straight line would fit it; the throughput is the same whatever is set.
    let settings = vec![
        number("memory", 1.0, 16.0, Scale::Linear, 4.0),
        number("cpus", 1.0, 16.0, Scale::Linear, 4.0),
        number("a", 1.0, 9.0, Scale::Linear, 3.0),
    ];
    let space = Space { settings };
    let price = Price { hour: 0.1, each: vec![(0, 0.3), (1, 0.7)] };
    let tuning = Tuning { price: Some(price.clone()), ..asked(space.clone(), Objective::Price, 24) };
    let mut rng = Rng::new(3, &[92]);
    let mut seen = Vec::new();
    let mut effects = Vec::new();
    while effects.is_empty() {
        let (conclusion, next) = look(Problem { tuning: &tuning, seed: 3 }, &seen);
        effects = conclusion.effects;
        for trial in next {
            let throughput = 1000.0 * (0.02 * normal_number(&mut rng)).exp();
            let outcome = Outcome::Value(price.of_million(&space, &trial.configuration, throughput));
            seen.push(Seen { trial, outcome });
        }
    }
    // With the other at either end: the mean of both multiples' logarithms.
    let hour = |memory: f64, cpus: f64| price.of_hour(&space, &Configuration(vec![memory, cpus, 3.0]));
    let both = |one: f64, other: f64| (one.ln() + other.ln()).exp().sqrt();
    let truths = [
        both(hour(16.0, 1.0) / hour(1.0, 1.0), hour(16.0, 16.0) / hour(1.0, 16.0)),
        both(hour(1.0, 16.0) / hour(1.0, 1.0), hour(16.0, 16.0) / hour(16.0, 1.0)),
        1.0,
    ];
    for (effect, truth) in effects.iter().zip(truths) {
        let (low, high) = effect.interval;
        assert!(low < truth && truth < high && high / low < 1.3, "{effect:?} and {truth}");
    }
}
