//! The search against systems whose knee is known.

use super::*;
use proptest::prelude::*;
use tidemark_measure::rng::Rng;

const SEEDS: u64 = 400;

fn range(axis: &str, from: f64, to: f64) -> Range {
    let unit = if axis == "rate" { Unit::OperationsPerSecond } else { Unit::Count };
    Range { axis: axis.into(), unit, from, to, within: 0.05 }
}

/// Asks until it is done; the knee, what is beyond, and the number of runs.
fn search(range: &Range, mut within: impl FnMut(f64) -> bool) -> (Option<f64>, Option<f64>, usize) {
    let mut seen = Vec::new();
    loop {
        match next(range, &seen) {
            Step::Measure(level) => seen.push(Seen { level, within: within(level) }),
            Step::Done { knee, beyond } => return (knee, beyond, seen.len()),
        }
        assert!(seen.len() < 10_000, "it does not end: {seen:?}");
    }
}

/// Runs of a full sweep at 5 % steps.
fn full_sweep(range: &Range) -> usize {
    let mut level = range.from;
    let mut runs = 1;
    while level < range.to {
        let step = level * 1.05;
        level = if range.unit == Unit::OperationsPerSecond { step } else { step.floor().max(level + 1.0) };
        runs += 1;
    }
    runs
}

fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = ((1.0 - rng.unit()).ln() * -2.0, rng.unit() * std::f64::consts::TAU);
    radius.sqrt() * angle.cos()
}

/// Share of systems whose knee is found within 5 % (or, for whole numbers, within one), and the mean share of a full
/// sweep's runs, and the largest. Latency has 3 % noise.
fn trials(name: &str, range: &Range, latency: impl Fn(f64, f64) -> f64, limit: f64) {
    let (mut found, mut runs, mut most) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed, &[7]);
        // The true knee, anywhere in the middle nine tenths of the range's logarithm.
        let span = (range.to / range.from).ln();
        let knee = range.from * (span * (0.05 + 0.9 * rng.unit())).exp();
        let knee = if range.unit == Unit::OperationsPerSecond { knee } else { knee.floor() + 0.5 };
        let (at, _, count) =
            search(range, |level| latency(level, knee) * (1.0 + 0.03 * normal(&mut rng)) <= limit);
        let truth = if range.unit == Unit::OperationsPerSecond { knee } else { knee.floor() };
        let near = at.is_some_and(|at| (at / truth - 1.0).abs() <= 0.05 + 1e-9);
        found += usize::from(near);
        (runs, most) = (runs + count, most.max(count));
    }
    let full = full_sweep(range) as f64;
    let (share, mean, most) =
        (found as f64 / SEEDS as f64, runs as f64 / SEEDS as f64, most as f64 / full * 100.0);
    println!(
        "{name}: within 5 % in {:.1} % of {SEEDS}; {mean:.1} runs = {:.1} % of the {full} of a full sweep, {most:.1} % at most",
        share * 100.0,
        mean / full * 100.0
    );
    assert!(share >= 0.95, "{share}");
    assert!(most <= 40.0, "{most} %");
}

#[test]
fn an_open_queue_is_found() {
    // M/M/1: base / (1 - rho), within while rho is at most 0.9 of the capacity, or 0.5.
    let queue = |sharp: f64| {
        move |level: f64, knee: f64| {
            let load = sharp * level / knee;
            if load < 1.0 { 1.0 / (1.0 - load) } else { f64::INFINITY }
        }
    };
    trials("open queue at 90 %", &range("rate", 100.0, 100_000.0), queue(0.9), 10.0);
    trials("open queue at 50 %", &range("rate", 100.0, 100_000.0), queue(0.5), 2.0);
}

#[test]
fn a_closed_loop_is_found() {
    // Flat until the knee's half, then in proportion to the workers: latency doubles to the knee.
    let closed = |level: f64, knee: f64| (2.0 * level / knee).max(1.0);
    trials("closed loop", &range("workers", 1.0, 1_000.0), closed, 2.0);
}

#[test]
fn without_noise_the_knee_is_enclosed_and_confirmed() {
    let (knee, beyond, runs) = search(&range("workers", 1.0, 1_000.0), |level| level <= 100.0);
    assert_eq!((knee, beyond), (Some(99.0), Some(101.0)), "half of 5 % apart");
    assert!(runs <= 16, "{runs}");
    let few = search(&range("workers", 1.0, 1_000.0), |level| level <= 7.0);
    assert_eq!((few.0, few.1), (Some(7.0), Some(8.0)), "neighbours");
}

#[test]
fn the_ends_of_the_range_are_ends() {
    assert_eq!(search(&range("depth", 1.0, 64.0), |_| true), (Some(64.0), None, 8));
    assert_eq!(search(&range("depth", 4.0, 64.0), |_| false), (None, Some(4.0), 2));
    assert_eq!(search(&range("depth", 8.0, 8.0), |_| true), (Some(8.0), None, 2));
    let nothing = Step::Done { knee: None, beyond: None };
    for (from, to) in [(9.0, 8.0), (f64::NAN, 8.0), (1.0, f64::INFINITY), (-5.0, 0.0)] {
        assert_eq!(next(&range("rate", from, to), &[]), nothing, "{from} to {to}");
    }
}

#[test]
fn a_contradiction_is_settled_by_the_majority() {
    let sight = |level, within| Seen { level, within };
    let range = range("workers", 10.0, 40.0);
    let mut seen = vec![sight(10.0, true), sight(20.0, false), sight(14.0, true), sight(17.0, true)];
    seen.extend([sight(18.0, true), sight(19.0, true)]);
    assert_eq!(next(&range, &seen), Step::Measure(20.0), "neighbours: confirmed first");
    seen.push(sight(20.0, true));
    assert_eq!(next(&range, &seen), Step::Measure(20.0), "one against one");
    seen.push(sight(20.0, true));
    assert_eq!(next(&range, &seen), Step::Measure(40.0), "20 is within: the search moves up");
    seen.extend([sight(40.0, false), sight(28.0, false), sight(24.0, false), sight(22.0, false)]);
    seen.extend([sight(21.0, false), sight(21.0, false)]);
    assert_eq!(next(&range, &seen), Step::Measure(20.0), "two against one are not enough");
    seen.push(sight(20.0, true));
    assert_eq!(next(&range, &seen), Step::Done { knee: Some(20.0), beyond: Some(21.0) });
}

proptest! {
    #[test]
    fn it_ends_whatever_is_seen(
        axis in prop::sample::select(vec!["workers", "rate"]),
        from in 0.001f64..1_000.0,
        times in 1.0f64..10_000.0,
        within in -1.0f64..0.5,
        answers in prop::collection::vec(any::<bool>(), 1..64),
    ) {
        let range = Range { within, ..range(axis, from, from * times) };
        let mut answer = answers.iter().cycle();
        let mut seen = Vec::new();
        while let Step::Measure(level) = next(&range, &seen) {
            prop_assert!(level >= range.from && level <= range.to);
            prop_assert!(axis == "rate" || level.fract() == 0.0);
            seen.push(Seen { level, within: *answer.next().unwrap() });
            // Levels at least half of the distance apart, five sights each.
            let distance = (1.0 + within.max(WITHIN_LEAST) * OWN_SHARE).ln() / 2.0;
            let most = 5 * (4 + (times.ln() / distance) as usize);
            prop_assert!(seen.len() <= most, "{} of {most}", seen.len());
        }
    }

    #[test]
    fn no_range_and_no_sights_break_it(
        numbers in prop::array::uniform3(any::<f64>()),
        seen in prop::collection::vec((any::<f64>(), any::<bool>()), 0..16),
    ) {
        let range = Range { within: numbers[2], ..range("rate", numbers[0], numbers[1]) };
        let seen: Vec<_> = seen.into_iter().map(|(level, within)| Seen { level, within }).collect();
        next(&range, &seen);
    }
}
