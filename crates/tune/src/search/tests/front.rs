//! Searches with two objectives, whose front is known beforehand.

use super::*;
use crate::front::Place;
use tidemark_measure::tuning::Price;

/// What a configuration does without noise: throughput, and something of which less is better.
type Truth = fn(&[f64]) -> [f64; 2];

/// A machine that does more with more processors, but not in proportion; a cache with an optimum, and a setting that does nothing. An
/// hour costs something whatever is set, so that few processors are as dear as many: the front begins at about 4.7 of them.
fn machine() -> (Space, Truth) {
    let settings = vec![
        number("cpus", 1.0, 16.0, Scale::Log, 2.0),
        number("cache", 1.0, 1024.0, Scale::Log, 1.0),
        number("a", 1.0, 100.0, Scale::Linear, 50.0),
    ];
    (Space { settings }, |values| {
        let cache = 1.0 - 0.8 * (values[1].log2() / 10.0 - 0.6).powi(2);
        let throughput = 1000.0 * values[0].powf(0.7) * cache;
        let price = Price { hour: 0.1, each: vec![(0, 0.05)] };
        let space = Space { settings: vec![number("cpus", 1.0, 16.0, Scale::Log, 2.0)] };
        [throughput, price.of_million(&space, &Configuration(values[..1].to_vec()), throughput)]
    })
}

/// Searches to the end, with the same noise in both objectives, of runs that differ in their throughput alone.
fn search(space: &Space, truth: Truth, second: Objective, runs: u32, noise: f64, seed: u64) -> Conclusion {
    let tuning = Tuning { second: Some(second), ..asked(space.clone(), Objective::Throughput, runs) };
    let problem = Problem { tuning: &tuning, seed };
    let mut rng = Rng::new(seed, &[80]);
    let mut seen = Vec::new();
    loop {
        let (conclusion, next) = look(problem, &seen);
        if next.is_empty() {
            assert!(seen.len() <= runs as usize, "{} of {runs} runs", seen.len());
            return conclusion;
        }
        for trial in next {
            let [throughput, other] = truth(&trial.configuration.0);
            let factor = (noise * normal_number(&mut rng)).exp();
            // A price follows from the throughput; a response time varies by itself.
            let own = match second {
                Objective::Price => factor,
                _ => (noise * normal_number(&mut rng)).exp(),
            };
            let outcome = Outcome::Values(throughput * factor, other / own);
            seen.push(Seen { trial, outcome });
        }
    }
}

#[test]
fn a_known_front_is_found_with_its_ends_proven() {
    let (space, truth) = machine();
    let baseline = truth(&space.baseline().0);
    for seed in 0..4 {
        let conclusion = search(&space, truth, Objective::Price, 160, 0.03, seed);
        let front = conclusion.front.unwrap();
        assert!(conclusion.searched.contains(&0), "processors matter to both: {:?}", conclusion.searched);
        let best = |cpus: f64| truth(&[cpus, 64.0, 50.0]);
        let of_front = || front.points.iter().filter(|point| point.place == Place::Front);
        let measured: Vec<[f64; 2]> = of_front().map(|point| truth(&point.configuration.0)).collect();
        let mut farthest = 0.0f64;
        for own in &measured {
            // By how much something is better in both.
            let behind = (1..=160).map(|step| best(f64::from(step) / 10.0));
            let behind = behind.map(|other| (other[0] / own[0]).min(own[1] / other[1])).fold(0.0, f64::max);
            farthest = farthest.max(behind);
            assert!(behind < 1.15, "seed {seed}: {own:?} is behind the front by × {behind:.2}");
        }
        let count = |place: Place| front.points.iter().filter(|point| point.place == place).count();
        println!(
            "a front: {} points are not dominated, at most {:.1} % behind the true front; {} cannot be told, {} are dominated; {} runs",
            measured.len(),
            (farthest - 1.0) * 100.0,
            count(Place::CannotTell),
            count(Place::Dominated),
            conclusion.runs.iter().map(|(_, runs)| runs).sum::<u32>()
        );
        for cpus in [5.0, 8.0, 12.0, 16.0] {
            let [throughput, price] = best(cpus);
            let is_near = |own: &[f64; 2]| own[0] > throughput * 0.85 && own[1] < price * 1.15;
            assert!(
                measured.iter().any(is_near),
                "seed {seed}: nothing near {cpus} processors: {measured:?}"
            );
        }
        // Far behind in both.
        let bad = front.points.iter().filter(|point| {
            let own = truth(&point.configuration.0);
            let is_better = |other: [f64; 2]| other[0] > 2.0 * own[0] && own[1] > 2.0 * other[1];
            (5..=16).any(|cpus| is_better(best(f64::from(cpus))))
        });
        assert!(bad.clone().all(|point| point.place == Place::Dominated), "{:?}", bad.collect::<Vec<_>>());
        assert_eq!(conclusion.end, Some(End::Better), "seed {seed}");
        assert_eq!(front.ends.len(), 2);
        for end in &front.ends {
            assert_eq!(end.end, Some(End::Better), "seed {seed}: {end:?}");
            let own = truth(&end.winner.as_ref().unwrap().0);
            let proof = end.proof.as_ref().unwrap();
            let compared =
                [Some(&proof.compared), proof.other.as_ref()].map(|one| one.unwrap().interval.unwrap());
            for (index, (low, high)) in [end.objective, 1 - end.objective].into_iter().zip(compared) {
                let ratio = own[index] / baseline[index];
                assert!(low * 0.95 < ratio && ratio < high * 1.05, "{index}: {ratio} and {low} to {high}");
            }
        }
    }
}

#[test]
fn where_nothing_matters_to_either_objective_nothing_is_claimed() {
    let (space, _) = machine();
    let (mut claims, mut said) = (0, 0);
    for seed in 0..20 {
        let conclusion = search(&space, |_| [1000.0, 1e6], Objective::P99, 120, 0.1, seed);
        claims += i32::from(conclusion.end == Some(End::Better));
        said += i32::from(matters_not(&conclusion));
        let front = conclusion.front.unwrap();
        let dropped = front.points.iter().filter(|point| point.place == Place::Dominated).count();
        assert!(dropped <= 1, "seed {seed}: {dropped} points are called dominated, and all are alike");
    }
    println!("two objectives, nothing planted: {said} of 20 say so, {claims} claim to be better");
    assert!(claims <= 2 && said >= 15, "{claims} claims, {said} of 20 say that nothing matters");
}

#[test]
fn a_setting_that_matters_only_to_the_second_objective_is_searched() {
    let (space, _) = machine();
    let truth: Truth = |values| [1000.0, 1e6 * (1.0 + 0.2 * values[1].log2())];
    let conclusion = search(&space, truth, Objective::P99, 120, 0.03, 1);
    assert!(conclusion.searched.contains(&1), "{:?}", conclusion.searched);
    let front = conclusion.front.unwrap();
    let cache = front.effects.iter().find(|effect| effect.setting == 1).unwrap();
    assert!(cache.verdict == Verdict::Worse && cache.ratio > 1.5, "{cache:?}");
}

#[test]
fn few_runs_prove_one_end_and_say_that_the_other_is_not_proven() {
    let (space, truth) = machine();
    let conclusion = search(&space, truth, Objective::Price, 50, 0.03, 2);
    let front = conclusion.front.unwrap();
    let ends: Vec<_> = front.ends.iter().map(|end| (end.end.is_some(), end.proof.is_some())).collect();
    assert!(ends[0].0, "{ends:?}");
    let named: Vec<_> = front.ends.iter().map(|end| &end.winner).collect();
    assert!(named[0] == named[1] || ends[1] == (false, false), "{:?}", front.ends);
}
