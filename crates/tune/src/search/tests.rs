//! Searches on simulated targets: what the best settings are is known beforehand.

mod failing;
mod front;

use super::screening::SURVIVORS;
use super::*;
use crate::effects::Verdict;
use tidemark_measure::tuning::{Domain, Objective, Scale, Setting, Tuning, When};

/// Normal numbers (Box and Muller, 1958).
fn normal_number(rng: &mut Rng) -> f64 {
    let (radius, angle) = ((1.0 - rng.unit()).ln() * -2.0, rng.unit() * std::f64::consts::TAU);
    radius.sqrt() * angle.cos()
}

fn number(name: &str, from: f64, to: f64, scale: Scale, baseline: f64) -> Setting {
    Setting {
        name: name.into(),
        domain: Domain::Integer(from, to, scale),
        baseline,
        unit: String::new(),
        takes_effect: TakesEffect::Run,
        when: None,
    }
}

/// A target: what it would do without noise.
struct Target {
    space: Space,
    truth: fn(&[f64]) -> f64,
    /// The best that there is.
    best: f64,
}

/// A cache that helps up to a point, workers with an optimum that depends on the cache, a codec, and four settings that do nothing.
fn storage() -> Target {
    let words = vec!["none".to_owned(), "lz4".to_owned(), "zstd".to_owned()];
    let mut settings = vec![
        number("cache", 1.0, 1024.0, Scale::Log, 4.0),
        number("workers", 1.0, 64.0, Scale::Log, 2.0),
        Setting { domain: Domain::Choice(words), ..number("codec", 0.0, 2.0, Scale::Linear, 0.0) },
    ];
    settings.extend(["a", "b", "c", "d"].map(|name| number(name, 1.0, 100.0, Scale::Linear, 50.0)));
    let truth = |values: &[f64]| {
        let cache = values[0].log2() / 10.0;
        let workers = values[1].log2() / 6.0;
        // More workers are wanted with a larger cache.
        let wanted = 0.3 + 0.4 * cache;
        let codec = [1.0, 1.15, 0.8][values[2] as usize];
        1000.0 * (1.0 + cache.min(0.8)) * (1.0 - 0.8 * (workers - wanted).powi(2)) * codec
    };
    let best = (0..=10).flat_map(|cache| (0..=60).map(move |workers| (cache, workers)));
    let best =
        best.map(|(cache, workers)| truth(&[2f64.powi(cache), 2f64.powf(f64::from(workers) / 10.0), 1.0]));
    Target { space: Space { settings }, truth, best: best.fold(0.0, f64::max) }
}

/// Ten settings of which six matter, some of them together, and one only as a word: more than chance finds in so many runs.
fn database() -> Target {
    let words = vec!["off".to_owned(), "lz4".to_owned()];
    let mut settings: Vec<Setting> = ["buffers", "wal", "workers", "batch", "cost"]
        .map(|name| number(name, 1.0, 1024.0, Scale::Log, 2.0))
        .to_vec();
    settings.push(Setting {
        domain: Domain::Choice(words),
        ..number("compression", 0.0, 1.0, Scale::Linear, 0.0)
    });
    settings.extend(["a", "b", "c", "d"].map(|name| number(name, 1.0, 100.0, Scale::Linear, 50.0)));
    let truth = |values: &[f64]| {
        let place = |index: usize| values[index].log2() / 10.0;
        let [buffers, wal, workers, batch, cost] = [0, 1, 2, 3, 4].map(place);
        let hump = |at: f64, best: f64| 1.0 - 1.2 * (at - best).powi(2);
        let together = 1.0 + 0.4 * buffers * wal;
        500.0
            * (1.0 + buffers)
            * together
            * hump(workers, 0.8)
            * hump(batch, 0.75)
            * hump(cost, 0.3)
            * if values[5] == 1.0 { 1.2 } else { 1.0 }
    };
    // Each factor has its own best, and all can be had at once.
    let best = 500.0 * 2.0 * 1.4 * 1.2;
    Target { space: Space { settings }, truth, best }
}

/// The same settings, none of which does anything.
fn nothing() -> Target {
    Target { truth: |_| 1000.0, best: 1000.0, ..storage() }
}

/// What is asked for.
fn asked(space: Space, objective: Objective, runs: u32) -> Tuning {
    Tuning { space, objective, runs, margin: 0.05, ..Tuning::default() }
}

/// Searches to the end; returns the conclusion and how many runs it took.
fn search(target: &Target, objective: Objective, runs: u32, noise: f64, seed: u64) -> (Conclusion, usize) {
    let tuning = asked(target.space.clone(), objective, runs);
    let problem = Problem { tuning: &tuning, seed };
    let mut rng = Rng::new(seed, &[77]);
    let mut seen = Vec::new();
    loop {
        let (conclusion, next) = look(problem, &seen);
        if next.is_empty() {
            return (conclusion, seen.len());
        }
        for trial in next {
            let truth = (target.truth)(&trial.configuration.0);
            let value = truth * (noise * normal_number(&mut rng)).exp();
            let value = if objective == Objective::P99 { 1e6 / value } else { value };
            seen.push(Seen { trial, outcome: Outcome::Value(value) });
        }
    }
}

/// Whether the search ended because no setting is shown to matter.
fn matters_not(conclusion: &Conclusion) -> bool {
    matches!(conclusion.end, Some(End::NothingMatters | End::NothingShown))
}

/// How far below the best the settings are that a search ends with, as a share.
fn regret(target: &Target, conclusion: &Conclusion) -> f64 {
    let own = match conclusion.end {
        Some(End::Better) => conclusion.winner.clone().unwrap(),
        _ => target.space.baseline(),
    };
    1.0 - (target.truth)(&own.0) / target.best
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The best of so many configurations, measured once each; or, with `grid`, of the corners and middles of the first settings.
fn without_method(target: &Target, runs: u32, noise: f64, seed: u64, grid: bool) -> f64 {
    let mut rng = Rng::new(seed, &[78]);
    let count = target.space.settings.len();
    let point = |run: u32, rng: &mut Rng| -> Vec<(usize, f64)> {
        let mut rest = run;
        let place = |index: usize| {
            let digit = rest % 3;
            rest /= 3;
            (index, if grid { f64::from(digit) / 2.0 } else { rng.unit() })
        };
        (0..count).map(place).collect()
    };
    let measured = (0..runs).map(|run| {
        let configuration = target.space.at(&point(run, &mut rng));
        let truth = (target.truth)(&configuration.0);
        (truth * (noise * normal_number(&mut rng)).exp(), truth)
    });
    let best = measured.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap().1;
    1.0 - best / target.best
}

#[test]
fn it_comes_closer_to_the_best_than_random_search_and_a_grid_with_as_many_runs() {
    let target = database();
    for (noise, most) in [(0.05, 0.06), (0.2, 0.25)] {
        let (mut own, mut random, mut grid, mut runs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for seed in 0..4 {
            let (conclusion, count) = search(&target, Objective::Throughput, 160, noise, seed);
            assert!(count <= 160, "{count} runs");
            own.push(regret(&target, &conclusion));
            runs.push(count as f64);
            random.push(without_method(&target, 160, noise, seed, false));
            grid.push(without_method(&target, 160, noise, seed, true));
        }
        println!(
            "noise {:.0} %: regret {:.1} % in {:.0} runs; random search {:.1} %, grid {:.1} % in 160",
            noise * 100.0,
            mean(&own) * 100.0,
            mean(&runs),
            mean(&random) * 100.0,
            mean(&grid) * 100.0
        );
        assert!(mean(&own) < most, "{own:?}");
        assert!(mean(&own) < mean(&random) && mean(&own) < mean(&grid), "{own:?} {random:?} {grid:?}");
    }
}

#[test]
fn where_nothing_matters_it_says_so() {
    let target = nothing();
    let (mut claims, mut said, mut all) = (0, 0, 0);
    let seeds = 60;
    for seed in 0..seeds {
        let (conclusion, runs) = search(&target, Objective::Throughput, 160, 0.1, seed);
        claims += i32::from(conclusion.end == Some(End::Better));
        said += i32::from(matters_not(&conclusion));
        if conclusion.end == Some(End::NothingMatters) {
            // Those of the proof are left.
            assert!(runs <= 120, "nothing is left to search: {runs} runs");
        }
        all += runs;
    }
    println!(
        "nothing planted: {said} of {seeds} say that no setting matters, {claims} claim to be better; {} runs",
        all / seeds as usize
    );
    assert!(claims <= 3, "{claims} false claims of {seeds}");
    assert!(f64::from(said) >= 0.8 * seeds as f64, "{said} of {seeds}");
}

#[test]
fn effects_too_small_to_be_told_one_by_one_are_told_together() {
    // Six settings of which each brings 3 %: 19 % in all.
    let settings = (0..6).map(|index| number(&format!("s{index}"), 1.0, 9.0, Scale::Linear, 1.0)).collect();
    let truth = |values: &[f64]| values.iter().map(|value| 1.0 + 0.03 * (value - 1.0) / 8.0).product::<f64>();
    let target = Target { space: Space { settings }, truth, best: 1.03f64.powi(6) };
    let (mut better, mut silent) = (0, 0);
    for seed in 0..20 {
        let (conclusion, runs) = search(&target, Objective::Throughput, 60, 0.08, seed);
        assert!(runs <= 60, "{runs} runs");
        let shown = conclusion.effects.iter().filter(|effect| effect.verdict == Verdict::Better).count();
        assert!(conclusion.end != Some(End::Worse), "seed {seed}");
        if conclusion.end == Some(End::Better) && shown == 0 {
            assert!((target.truth)(&conclusion.winner.unwrap().0) > 1.0);
            better += 1;
        } else if conclusion.end == Some(End::NothingShown) {
            assert!(conclusion.proof.is_some(), "seed {seed}: nothing was tried");
            silent += 1;
        }
    }
    println!("told together {better}, not told {silent} of 20");
    assert!(better > silent, "told together {better}, not told {silent} of 20");
}

#[test]
fn of_a_choice_among_several_words_the_best_is_tried() {
    let words = ["off", "lz4", "zstd"].map(str::to_owned).to_vec();
    let codec = Setting { domain: Domain::Choice(words), ..number("codec", 0.0, 2.0, Scale::Linear, 0.0) };
    let other = number("other", 1.0, 9.0, Scale::Linear, 1.0);
    let truth = |values: &[f64]| [1000.0, 1060.0, 900.0][values[0] as usize];
    let target = Target { space: Space { settings: vec![codec, other] }, truth, best: 1060.0 };
    let mut tried = [0; 3];
    for seed in 0..40 {
        let (conclusion, _) = search(&target, Objective::Throughput, 40, 0.08, seed);
        if let (Some(winner), Some(End::NothingShown | End::Better)) = (conclusion.winner, conclusion.end) {
            tried[winner.0[0] as usize] += 1;
        }
    }
    println!("tried: {tried:?} of 40");
    assert!(tried[1] >= 10 && tried[2] <= 2, "{tried:?}");
}

#[test]
fn what_does_something_is_named_with_its_effect_and_what_does_nothing_is_not_searched() {
    let target = storage();
    let mut wrong = 0;
    for seed in 0..3 {
        let (conclusion, _) = search(&target, Objective::Throughput, 200, 0.05, seed);
        let of = |name: &str| {
            let index = target.space.settings.iter().position(|setting| setting.name == name).unwrap();
            conclusion.effects.iter().filter(move |effect| effect.setting == index)
        };
        assert!(of("cache").all(|effect| effect.verdict == Verdict::Better), "{:?}", conclusion.effects);
        for name in ["a", "b", "c", "d"] {
            wrong += of(name)
                .filter(|effect| !matches!(effect.verdict, Verdict::Equal | Verdict::CannotTell))
                .count();
        }
        assert!(conclusion.searched.contains(&0) && conclusion.searched.len() <= SURVIVORS);
        assert_eq!(conclusion.end, Some(End::Better), "seed {seed}");
        let proof = conclusion.proof.unwrap();
        let truth =
            (target.truth)(&conclusion.winner.unwrap().0) / (target.truth)(&target.space.baseline().0);
        let (low, high) = proof.compared.interval.unwrap();
        assert!(low * 0.9 < truth && truth < high * 1.1, "{truth} and {low} to {high}");
    }
    assert!(wrong <= 1, "{wrong} settings that do nothing were said to do something");
}

#[test]
fn less_is_better_where_that_is_asked_for() {
    let target = storage();
    let (conclusion, _) = search(&target, Objective::P99, 160, 0.05, 1);
    assert_eq!(conclusion.end, Some(End::Better));
    let proof = conclusion.proof.unwrap();
    assert!(proof.compared.ratio.unwrap() < 0.8, "{:?}", proof.compared.ratio);
    let cache = conclusion.effects.iter().find(|effect| effect.setting == 0).unwrap();
    assert!(cache.verdict == Verdict::Better && cache.ratio < 1.0 && cache.interval.1 < 1.0, "{cache:?}");
}

#[test]
fn an_optimum_between_the_ends_is_found_although_the_ends_are_alike() {
    let target = Target {
        space: Space { settings: vec![number("depth", 0.0, 100.0, Scale::Linear, 30.0)] },
        truth: |values| 1000.0 * (1.0 - 1.6 * (values[0] / 100.0 - 0.5).powi(2)),
        best: 1000.0,
    };
    let (conclusion, _) = search(&target, Objective::Throughput, 120, 0.01, 3);
    assert!(conclusion.curved.unwrap() < 0.01, "{:?}", conclusion.curved);
    assert_eq!(conclusion.end, Some(End::Better));
    assert!(regret(&target, &conclusion) < 0.02, "{:?}", conclusion.winner);
}

#[test]
fn the_baseline_stays_where_it_is_the_best() {
    let target = Target {
        space: Space {
            settings: vec![
                number("cache", 1.0, 100.0, Scale::Linear, 100.0),
                number("noise", 1.0, 100.0, Scale::Linear, 50.0),
            ],
        },
        truth: |values| 10.0 * values[0],
        best: 1000.0,
    };
    for seed in 0..5 {
        let (conclusion, _) = search(&target, Objective::Throughput, 80, 0.05, seed);
        assert_ne!(conclusion.end, Some(End::Better), "{:?}", conclusion.winner);
        assert_eq!(conclusion.effects[0].verdict, Verdict::Better, "the lower end is worse");
    }
}

#[test]
fn what_is_outside_the_service_level_never_wins() {
    let space = Space {
        settings: vec![
            number("workers", 1.0, 100.0, Scale::Linear, 20.0),
            number("cache", 1.0, 100.0, Scale::Linear, 20.0),
        ],
    };
    let tuning = asked(space, Objective::Throughput, 100);
    let problem = Problem { tuning: &tuning, seed: 4 };
    let mut rng = Rng::new(4, &[79]);
    let mut seen = Vec::new();
    let conclusion = loop {
        let (conclusion, next) = look(problem, &seen);
        if next.is_empty() {
            break conclusion;
        }
        for trial in next {
            let (workers, cache) = (trial.configuration.0[0], trial.configuration.0[1]);
            let value = (100.0 + workers + cache / 2.0) * (0.02 * normal_number(&mut rng)).exp();
            let outcome = if workers > 60.0 { Outcome::Outside } else { Outcome::Value(value) };
            seen.push(Seen { trial, outcome });
        }
    };
    assert_eq!(conclusion.end, Some(End::Better), "{conclusion:?}");
    let winner = conclusion.winner.unwrap();
    assert!(winner.0[0] <= 60.0 && winner.0[0] > 20.0, "{winner:?}");
    let nothing = |_: &Trial| Outcome::Outside;
    let mut seen = Vec::new();
    let end = loop {
        let (conclusion, next) = look(problem, &seen);
        if next.is_empty() {
            break conclusion.end;
        }
        seen.extend(next.into_iter().map(|trial| Seen { outcome: nothing(&trial), trial }));
    };
    assert_eq!(end, Some(End::NothingWithin));
}

#[test]
fn a_search_goes_on_where_it_was_interrupted() {
    let target = storage();
    let tuning = asked(target.space, Objective::Throughput, 120);
    let problem = Problem { tuning: &tuning, seed: 5 };
    let value = |trial: &Trial| {
        let mut rng = Rng::new(
            u64::from(trial.repeat),
            &trial.configuration.0.iter().map(|one| one.to_bits()).collect::<Vec<_>>(),
        );
        Outcome::Value((target.truth)(&trial.configuration.0) * (0.05 * normal_number(&mut rng)).exp())
    };
    let to_the_end = |mut seen: Vec<Seen>, at_once: usize| {
        loop {
            let (conclusion, next) = look(problem, &seen);
            if next.is_empty() {
                return (conclusion, seen);
            }
            seen.extend(next.into_iter().take(at_once).map(|trial| Seen { outcome: value(&trial), trial }));
        }
    };
    let (whole, mut seen) = to_the_end(Vec::new(), usize::MAX);
    seen.truncate(50);
    seen.reverse();
    let (resumed, again) = to_the_end(seen, 7);
    assert_eq!(resumed, whole);
    assert_eq!(again.len(), whole.runs.iter().map(|(_, runs)| *runs as usize).sum::<usize>());
}

#[test]
fn settings_that_are_built_anew_stand_together_and_the_baseline_in_between() {
    let mut target = storage();
    target.space.settings[0].takes_effect = TakesEffect::Rebuild;
    let tuning = asked(target.space, Objective::Throughput, 80);
    let problem = Problem { tuning: &tuning, seed: 5 };
    let (_, next) = look(problem, &[]);
    let baseline = tuning.space.baseline();
    let places: Vec<usize> = (0..next.len()).filter(|index| next[*index].configuration == baseline).collect();
    assert!(places.len() >= 3 && places[0] == 0 && *places.last().unwrap() == next.len() - 1, "{places:?}");
    let others: Vec<f64> = next
        .iter()
        .filter(|trial| trial.configuration != baseline)
        .map(|trial| trial.configuration.0[0])
        .collect();
    let changes = others.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 1, "{others:?}");
}

#[test]
fn conditional_settings_are_only_tried_where_they_mean_something() {
    let codec = Setting {
        domain: Domain::Choice(vec!["none".into(), "zstd".into()]),
        ..number("codec", 0.0, 1.0, Scale::Linear, 0.0)
    };
    let level = Setting {
        when: Some(When { setting: 0, options: vec![1] }),
        ..number("level", 1.0, 9.0, Scale::Linear, 3.0)
    };
    let target = Target {
        space: Space { settings: vec![codec, level] },
        truth: |values| if values[0] == 1.0 { 1000.0 + 50.0 * values[1] } else { 1000.0 },
        best: 1450.0,
    };
    let (conclusion, _) = search(&target, Objective::Throughput, 80, 0.02, 2);
    assert_eq!(conclusion.end, Some(End::Better));
    assert!(regret(&target, &conclusion) < 0.02, "{:?}", conclusion.winner);
    let is_settled =
        |standing: &Standing| standing.configuration.0[0] == 1.0 || standing.configuration.0[1] == 3.0;
    assert!(conclusion.standings.iter().all(is_settled));
}

#[test]
fn the_least_runs_are_enough() {
    for settings in [1, 3, 7] {
        let space = Space { settings: storage().space.settings[..settings].to_vec() };
        let runs = least_runs(settings);
        let target = Target { space, truth: |values| 1000.0 * (1.0 + values[0].log2()), best: 11_000.0 };
        let (conclusion, count) = search(&target, Objective::Throughput, runs, 0.02, 1);
        assert!(count <= runs as usize, "{count} of {runs}");
        assert!(matches!(conclusion.end, Some(End::Better | End::NothingBetter)), "{:?}", conclusion.end);
    }
}

#[test]
fn what_cannot_be_told_is_looked_at_again_with_the_runs_that_are_left() {
    // One setting of three does something, as much as the runs vary.
    let mut target = storage();
    target.space.settings.truncate(1);
    target.space.settings.extend(["a", "b"].map(|name| number(name, 1.0, 100.0, Scale::Linear, 50.0)));
    target.truth = |values| 1000.0 * (1.0 + 0.035 * values[0].log2());
    let (mut shown, mut again) = (0, 0);
    for seed in 0..20 {
        let (conclusion, runs) = search(&target, Objective::Throughput, 60, 0.2, seed);
        assert!(runs <= 60);
        let screened = conclusion.runs.iter().find(|(phase, _)| *phase == Phase::Screening).unwrap().1;
        again += i32::from(screened > 22);
        shown += i32::from(!matters_not(&conclusion));
    }
    println!("an effect as large as the noise: shown in {shown} of 20, {again} of which looked again");
    assert!(again >= 5 && shown >= 10, "{shown} and {again}");
}
