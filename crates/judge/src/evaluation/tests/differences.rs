//! Arms compared: what is said agrees with what is shown, and is seldom wrong.

use super::*;
use crate::statistics::{Difference, SIGNIFICANT, SIGNIFICANT_UNTIL, estimate};
use tidemark_measure::evaluation::REPEATS_LEAST;

/// Normal noise of a share (Box and Muller, 1958).
pub(super) fn noisy(rng: &mut Rng, rate: f64, noise: f64) -> f64 {
    let (radius, angle) = ((1.0 - rng.unit()).ln() * -2.0, rng.unit() * std::f64::consts::TAU);
    rate * (1.0 + noise * radius.sqrt() * angle.cos())
}

/// So many arms, loads and repeats, interleaved; each arm does a multiple of what the first one does.
fn simulated(rng: &mut Rng, arms: &[f64], loads: usize, repeats: u32, noise: f64) -> (Evaluation, Vec<Run>) {
    let names: Vec<String> = (0..arms.len()).map(|arm| format!("arm {arm}")).collect();
    let loads: Vec<Load> = (0..loads).map(|number| load(&format!("load {number}"), vec![])).collect();
    let mut runs = Vec::new();
    for repeat in 1..=repeats {
        for load in &loads {
            for (name, times) in names.iter().zip(arms) {
                let turn = runs.len() as u32 + 1;
                runs.push(member_run(name, &load.name, &[], repeat, turn, noisy(rng, 400.0 * times, noise)));
            }
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let order = "interleaved".into();
    (Evaluation { order, ..evaluation(&names, loads, repeats) }, runs)
}

/// The most of so many trials that a share of 5 % gives, but for one case in a thousand.
fn most_of(trials: usize) -> usize {
    let (mut most, mut left, mut chance) = (0, 1.0, 0.95f64.powi(trials as i32));
    while left > 0.001 {
        left -= chance;
        chance *= (trials - most) as f64 / (most + 1) as f64 * (0.05 / 0.95);
        most += 1;
    }
    most - 1
}

#[test]
fn the_bound_of_wrong_words_is_that_of_the_binomial_distribution() {
    // Of 200 at 5 %, more than 20 are seen in 0.13 % of cases, more than 21 in 0.06 %.
    assert_eq!((most_of(200), most_of(1)), (21, 1));
}

#[test]
fn interval_probability_and_word_are_one() {
    let mut rng = Rng::new(21, &[]);
    let (mut told, mut untold) = (0, 0);
    for trial in 0..60u64 {
        let arms: Vec<f64> = (0..2 + trial % 3).map(|_| 0.9 + 0.2 * rng.unit()).collect();
        let repeats = 2 + rng.below(4) as u32;
        let noise = 0.002 + 0.06 * rng.unit();
        let (evaluation, runs) = simulated(&mut rng, &arms, 1 + trial as usize % 4, repeats, noise);
        let assessment = assess(&evaluation, &runs);
        for one in assessment.comparisons.iter().chain(&assessment.overall) {
            let (low, high) = one.interval.unwrap();
            let excludes = low > 1.0 || high < 1.0;
            let differs = matches!(one.outcome, Outcome::Better | Outcome::Worse);
            assert_eq!((one.p.unwrap() < 0.05, differs), (excludes, excludes), "{one:?}");
            assert!(low <= one.ratio && one.ratio <= high && one.detectable.unwrap() > 0.0, "{one:?}");
            *(if differs { &mut told } else { &mut untold }) += 1;
        }
    }
    assert!(told > 50 && untold > 50, "both cases: {told} {untold}");
}

/// How many of so many evaluations of equal arms say something of any of them.
fn wrong_words(seed: u64, trials: usize, arms: usize, loads: usize, repeats: u32) -> usize {
    let mut rng = Rng::new(seed, &[]);
    let is_wrong = |_: &usize| {
        let (evaluation, runs) = simulated(&mut rng, &vec![1.0; arms], loads, repeats, 0.05);
        let assessment = assess(&evaluation, &runs);
        let all = || assessment.comparisons.iter().chain(&assessment.overall);
        all().any(|one| one.outcome != Outcome::CannotTell)
            || !assessment.validity.is_valid()
            || !assessment.bottlenecks.is_empty()
    };
    (0..trials).filter(is_wrong).count()
}

#[test]
fn two_hundred_evaluations_of_equal_arms_say_nothing_wrong_more_often_than_one_in_twenty() {
    for (arms, loads, repeats) in [(2, 1, 5), (3, 2, 3)] {
        let wrong = wrong_words(12, 200, arms, loads, repeats);
        println!(
            "A/A, {arms} arms, {loads} loads, {repeats} repeats: {wrong} of 200 evaluations say something wrong"
        );
        assert!(wrong <= most_of(200), "{wrong}");
    }
}

/// Repeats of two equal cells until both are known to 3 %, as evaluations do it.
fn until_narrow(rng: &mut Rng, noise: f64) -> [Vec<f64>; 2] {
    let mut cells = [Vec::new(), Vec::new()];
    for repeat in 1..=20 {
        let narrow =
            |values: &Vec<f64>| estimate(values.clone()).half_width().is_some_and(|half| half <= 0.03);
        if repeat > REPEATS_LEAST && cells.iter().all(narrow) {
            break;
        }
        cells.iter_mut().for_each(|values| values.push(noisy(rng, 400.0, noise)));
    }
    cells
}

#[test]
fn stopping_when_it_is_narrow_widens_the_error_by_what_is_allowed_for() {
    const TRIALS: usize = 2_000;
    for noise in [0.02, 0.03, 0.04, 0.05, 0.08] {
        let mut rng = Rng::new(31, &[(noise * 1e3) as u64]);
        let (mut covered, mut usual, mut wrong, mut repeats) = (0, 0, 0, 0);
        for _ in 0..TRIALS {
            let [one, other] = until_narrow(&mut rng, noise);
            let difference = Difference::between(&one, &other).unwrap();
            repeats += one.len();
            let (low, high) = estimate(one).interval.unwrap();
            covered += usize::from((low..=high).contains(&400.0));
            usual += usize::from(difference.p().unwrap() < SIGNIFICANT);
            wrong += usize::from(difference.p().unwrap() < SIGNIFICANT_UNTIL);
        }
        let share = |count: usize| count as f64 / TRIALS as f64;
        println!(
            "noise {noise}: {:.1} repeats, intervals of means cover {:.3}, equal arms called different {:.3}, allowed for {:.3}",
            share(repeats),
            share(covered),
            share(usual),
            share(wrong)
        );
        assert!(share(covered) > 0.9, "{}", share(covered));
        assert!(share(wrong) <= 0.05, "{}", share(wrong));
    }
}

#[test]
fn equal_arms_are_told_what_would_not_be_seen() {
    let (evaluation, runs) = two_arms(&[400.0, 408.0, 392.0], &[402.0, 394.0, 406.0]);
    let assessment = assess(&evaluation, &runs);
    assert_eq!((assessment.outcome, assessment.overall.len()), (Outcome::CannotTell, 0));
    let one = &assessment.comparisons[0];
    let share = one.detectable.unwrap();
    assert!((0.05..0.12).contains(&share), "{share}");
    assert_eq!(one.words(), format!("cannot tell below {}", difference(share)));
    let headline = format!(
        "Cannot tell whether other differs from baseline: 1.00x throughput for small at workers 4 (95 % interval 0.95 to 1.06); a difference below {} would not be seen.",
        difference(share)
    );
    assert_eq!(assessment.verdict[0], headline);
}

#[test]
fn a_loss_that_no_cell_shows_is_found_in_the_mean_of_all() {
    let mut rng = Rng::new(5, &[]);
    let (mut cells, mut means) = (0, 0);
    for _ in 0..20 {
        let (evaluation, runs) = simulated(&mut rng, &[1.0, 0.95], 6, 5, 0.03);
        let assessment = assess(&evaluation, &runs);
        let is_worse = |one: &&Comparison| one.outcome == Outcome::Worse;
        cells += assessment.comparisons.iter().filter(is_worse).count();
        let mean = &assessment.overall[0];
        assert_eq!((mean.load.as_str(), mean.cells, mean.metric), ("", 6, Metric::Throughput));
        means += usize::from(is_worse(&mean));
    }
    println!("5 % less, noise 3 %, 5 repeats: {means} of 20 means, {cells} of 240 cells");
    assert!(means >= 18 && cells < 120, "{means} {cells}");
}

#[test]
fn arms_are_ranked_and_compared_with_each_other() {
    let mut rng = Rng::new(7, &[]);
    let (evaluation, runs) = simulated(&mut rng, &[1.0, 1.5, 1.5, 0.5], 3, 4, 0.01);
    let assessment = assess(&evaluation, &runs);
    let find = |arm: &str, other: &str| {
        let own = |one: &&Comparison| one.arm == arm && one.baseline == other && one.load.is_empty();
        assessment.overall.iter().find(own).unwrap().outcome
    };
    assert_eq!(find("arm 2", "arm 1"), Outcome::CannotTell);
    assert_eq!((find("arm 3", "arm 1"), find("arm 1", "arm 0")), (Outcome::Worse, Outcome::Better));
    let ranked = assessment.verdict.iter().find(|line| line.starts_with("Ranked")).unwrap();
    assert!(ranked.starts_with("Ranked by throughput over 3 cells, the best first: arm "), "{ranked}");
    assert!(ranked.contains("arm 0 (1.00x), arm 3 (0.50x); not told apart: arm "), "{ranked}");
}

#[test]
fn a_margin_makes_equal_worse_or_inconclusive_of_it() {
    let outcome = |other: &[f64]| {
        let (evaluation, runs) = two_arms(&[400.0, 402.0, 398.0, 401.0], other);
        let assessment = assess_within(&evaluation, &runs, Some(0.05));
        println!("{}", assessment.verdict[0]);
        assessment.outcome
    };
    assert_eq!(outcome(&[401.0, 399.0, 403.0, 397.0]), Outcome::Equal);
    assert_eq!(outcome(&[396.0, 394.0, 393.0, 395.0]), Outcome::Equal, "less, by less than the margin");
    assert_eq!(outcome(&[441.0, 439.0, 443.0, 437.0]), Outcome::Better);
    assert_eq!(outcome(&[361.0, 359.0, 363.0, 357.0]), Outcome::Worse);
    assert_eq!(outcome(&[381.0, 379.0, 383.0, 377.0]), Outcome::Inconclusive);
    assert_eq!(outcome(&[480.0, 340.0, 400.0, 420.0]), Outcome::Inconclusive);
    assert_eq!(outcome(&[408.0, 430.0, 400.0, 420.0]), Outcome::NotWorse);
}

#[test]
fn knees_one_step_of_the_search_apart_are_not_different() {
    let search = Search { axis: "workers".into(), from: 1.0, to: 64.0, within: 0.05, ..Search::default() };
    let load = Load { service_level: p95_limit(50, 0.0), search: Some(search), ..load("small", vec![]) };
    let evaluation = Evaluation { order: "interleaved".into(), ..evaluation(&["a", "b"], vec![load], 3) };
    let mut runs = Vec::new();
    for repeat in 1..=3 {
        for (arm, workers, rate) in
            [("a", "20", 400.0), ("a", "21", 60.0), ("b", "21", 420.0), ("b", "22", 60.0)]
        {
            let turn = runs.len() as u32 + 1;
            runs.push(member_run(arm, "small", &[("workers", workers)], repeat, turn, rate));
        }
    }
    let assessment = assess(&evaluation, &runs);
    let knees: Vec<_> = assessment.knees.iter().map(|knee| (knee.level, knee.next)).collect();
    assert_eq!(knees, [(Some(20.0), Some(21.0)), (Some(21.0), Some(22.0))]);
    let [one] = assessment.comparisons.as_slice() else { panic!("{:?}", assessment.comparisons) };
    let (low, high) = one.interval.unwrap();
    assert!(low < 1.0 && high > 1.09 && one.outcome == Outcome::CannotTell, "{one:?}");
}

#[test]
fn a_verdict_reads_well() {
    let mut runs = Vec::new();
    let loads = [("4 KB objects", [1.0, 1.0, 2.41]), ("1 MB objects", [1.0, 0.7, 1.5])];
    let mut rng = Rng::new(11, &[]);
    for repeat in 1..=3 {
        for (load, times) in loads {
            for (arm, times) in ["baseline", "reference-1", "reference-2"].into_iter().zip(times) {
                let turn = runs.len() as u32 + 1;
                runs.push(member_run(
                    arm,
                    load,
                    &[],
                    repeat,
                    turn,
                    400.0 * times * (1.0 + 0.01 * rng.unit()),
                ));
            }
        }
    }
    let loads = loads.map(|(name, _)| load(name, vec![Level::new()])).to_vec();
    let assessment = assess(&evaluation(&["baseline", "reference-1", "reference-2"], loads, 3), &runs);
    let verdict = &assessment.verdict;
    println!("{verdict:#?}");
    for part in [
        "reference-1 is worse than baseline: 0.70x throughput for 1 MB objects (95 % interval 0.69 to 0.71); cannot tell whether reference-1 differs from baseline: 1.00x throughput for 4 KB objects (95 % interval 0.98 to 1.02); a difference below 2.4 % would not be seen.",
        "reference-2 is better than baseline: 2.41x throughput for 4 KB objects (95 % interval 2.38 to 2.44), 1.50x throughput for 1 MB objects",
        "Ranked by throughput over 2 cells, the best first: reference-2 (1.90x), baseline (1.00x), reference-1 (0.84x).",
        "reference-1, all 4 comparisons of single cells: 2 worse, 2 cannot tell.",
    ] {
        assert!(verdict[3..].iter().any(|sentence| sentence.contains(part)), "{part}\n{verdict:?}");
    }
    let headline = [
        "reference-1 is worse than baseline: 0.836x throughput over 2 cells (95 % interval 0.829 to 0.842).",
        "reference-2 is better than baseline: 1.90x throughput over 2 cells (95 % interval 1.89 to 1.91).",
    ];
    assert_eq!(verdict[..2], headline);
    assert!(verdict[2].starts_with("VALID"), "{verdict:?}");
}

#[test]
fn what_would_be_found_is_told_before_anything_runs() {
    let loads = vec![load("small", levels("workers", &["1", "2", "4"])), load("large", vec![])];
    let mut evaluation = evaluation(&["a", "b"], loads, 5);
    let known = power(&evaluation, &[], Some(0.05));
    let names: Vec<_> =
        known.iter().map(|one| (one.load.as_str(), one.cells, one.repeats, one.runs)).collect();
    assert_eq!(names, [("small", 3, 5, 0), ("large", 1, 5, 0)]);
    let (cell, mean) = (known[0].cell.unwrap(), known[0].mean.unwrap());
    assert!((0.12..0.2).contains(&cell) && mean < cell / 1.7, "{cell} {mean}");
    assert_eq!(known[1].mean, None);
    assert_eq!(power(&evaluation, &[], None), [], "nothing is known");
    // It is what the report then says of such repeats.
    let mut rng = Rng::new(17, &[]);
    let mut runs = Vec::new();
    for repeat in 1..=5 {
        for workers in ["1", "2", "4"] {
            for arm in ["a", "b"] {
                let turn = runs.len() as u32 + 1;
                let rate = noisy(&mut rng, 400.0, 0.05);
                runs.push(member_run(arm, "small", &[("workers", workers)], repeat, turn, rate));
            }
        }
    }
    let seen = power(&evaluation, &runs, None);
    assert_eq!((seen.len(), seen[0].runs), (1, 30));
    assert!((0.03..0.07).contains(&seen[0].variation), "{seen:?}");
    let said = assess(&evaluation, &runs).comparisons[0].detectable.unwrap();
    assert!((seen[0].cell.unwrap() / said).ln().abs() < 0.8, "{seen:?} {said}");
    evaluation.until = Some(0.03);
    assert_eq!(power(&evaluation, &[], Some(0.001))[0].repeats, 5, "never fewer");
    assert_eq!(power(&evaluation, &[], Some(0.5))[0].repeats, 5, "the budget");
}

#[test]
fn the_widest_interval_decides_whether_repeats_are_enough() {
    let (mut evaluation, runs) =
        two_arms(&[400.0, 402.0, 398.0, 401.0, 399.0], &[400.0, 440.0, 360.0, 420.0, 380.0]);
    let of = |arm: &'static str| half_width(&evaluation, &runs, move |member| member.arm == arm).unwrap();
    assert!(of("baseline") < 0.01 && of("other") > 0.05);
    assert_eq!(half_width(&evaluation, &runs, |_| true), Some(of("other")));
    assert_eq!(half_width(&evaluation, &runs, |member| member.repeat == 1), None);
    evaluation.until = Some(0.03);
    let said = assess(&evaluation, &runs);
    let said = has(&said, "repeats-not-enough").unwrap();
    assert_eq!(said.title(), "cells that are not known to ± 3.0 % after up to 5 repeats: 1");
}

#[test]
fn headline_and_outcome_are_one_with_a_margin() {
    // Equal in the mean, while the tail varies too much to tell.
    let mut runs = Vec::new();
    let mut rng = Rng::new(41, &[]);
    for repeat in 1..=4u32 {
        for arm in ["a", "b"] {
            let mut run = open_run(400.0, runs.len() as u32 + 1, 20, 0);
            let member = member(&mut run);
            (member.arm, member.repeat) = (arm.into(), repeat);
            let tally = &mut work(&mut run).operations[0].tally;
            let slow = (60.0 + 60.0 * rng.unit()) as u64;
            for histogram in [&mut tally.response, &mut tally.service_open] {
                histogram.reset();
                histogram.record_many(20 * MS, tally.ok - tally.ok / 64);
                histogram.record_many(slow * MS, tally.ok / 64);
            }
            runs.push(run);
        }
    }
    let evaluation = evaluation(&["a", "b"], vec![load("open", levels("rate", &["400"]))], 4);
    let assessment = assess_within(&evaluation, &runs, Some(0.1));
    let outcomes: Vec<_> = assessment.comparisons.iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, [Outcome::Equal, Outcome::Inconclusive], "{:#?}", assessment.comparisons);
    assert_eq!(assessment.outcome, Outcome::Inconclusive);
    let headline = &assessment.verdict[0];
    println!("{headline}");
    assert!(headline.starts_with("Inconclusive whether b is within 10.0 % of a:"), "{headline}");
    assert!(headline.contains("x p99 response time for open at 400/s"), "what decided: {headline}");
    assert!(headline.contains("b equals a within 10.0 %:"), "{headline}");
}

#[test]
fn the_ends_of_an_interval_differ_from_its_ratio() {
    let told = |ratio, interval, least| (decimals(ratio, interval, least), words::ratio(ratio));
    assert_eq!(told(0.98, Some((0.97, 0.99)), 2), (2, "0.98".into()));
    assert_eq!(decimals(0.981, Some((0.9802, 0.9818)), 2), 3);
    assert_eq!(decimals(0.981, Some((0.9802, 0.9818)), 3), 3);
    assert_eq!(decimals(0.98, Some((0.98, 0.98)), 2), 2, "nothing varied");
    assert_eq!(told(0.0123, None, 2), (4, "0.0123".into()));
    let (evaluation, runs) = two_arms(&[400.0, 400.02, 399.98, 400.01], &[392.0, 392.02, 391.98, 392.01]);
    let headline = &assess(&evaluation, &runs).verdict[0];
    assert!(
        headline.contains("0.980x throughput for small at workers 4 (95 % interval 0.978 to 0.982)"),
        "{headline}"
    );
}

#[test]
fn in_blocks_no_difference_is_promised() {
    let mut evaluation = evaluation(&["a", "b"], vec![load("small", vec![])], 5);
    assert_eq!(power(&evaluation, &[], Some(0.01)).len(), 1);
    evaluation.order = "blocks".into();
    assert!(finds_nothing(&evaluation));
    assert_eq!(power(&evaluation, &[], Some(0.01)), []);
}
