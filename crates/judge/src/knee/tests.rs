//! The search against systems whose knee is known.

use super::*;
use proptest::prelude::*;
use tidemark_measure::rng::Rng;

const SEEDS: u64 = 200;

const RUNS: u32 = 40;

fn range(axis: &str, from: f64, to: f64) -> Range {
    let unit = if axis == "rate" { Unit::OperationsPerSecond } else { Unit::Count };
    Range { axis: axis.into(), unit, from, to, within: 0.05, runs: RUNS }
}

fn side(within: bool) -> Side {
    if within { Side::Within } else { Side::Outside }
}

/// Asks until it is done; the answer, and the number of runs.
fn search(range: &Range, mut sight: impl FnMut(f64) -> Side) -> (Answer, usize) {
    let mut seen = Vec::new();
    loop {
        match next(range, &seen) {
            Step::Measure(level) => seen.push(Seen { level, side: sight(level) }),
            Step::Done(answer) => return (answer, seen.len()),
        }
        assert!(seen.len() <= RUNS as usize, "more runs than it may have: {seen:?}");
    }
}

fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = ((1.0 - rng.unit()).ln() * -2.0, rng.unit() * std::f64::consts::TAU);
    radius.sqrt() * angle.cos()
}

/// The probability that an arrival waits at `servers` with this use of each (Erlang, 1917).
fn waits(servers: u32, used: f64) -> f64 {
    let offered = used * f64::from(servers);
    let blocked = (1..=servers)
        .fold(1.0, |blocked, server| offered * blocked / (f64::from(server) + offered * blocked));
    blocked / (1.0 - used + used * blocked)
}

/// Mean response time of M/M/c, in service times.
fn exponential(servers: u32, used: f64) -> f64 {
    1.0 + waits(servers, used) / (f64::from(servers) * (1.0 - used))
}

/// That of M/D/c, approximately (Cosmetatos, Operational Research Quarterly 26, 1975).
fn constant(servers: u32, used: f64) -> f64 {
    let count = f64::from(servers);
    let shape = (1.0 - used) * (count - 1.0) * ((4.0 + 5.0 * count).sqrt() - 2.0) / (16.0 * used * count);
    1.0 + waits(servers, used) / (count * (1.0 - used)) / 2.0 * (1.0 + shape)
}

/// Noise of the judged statistic, as a share, and the share of runs that a neighbour spoils: three to ten times as slow.
type Noise = (f64, f64);

/// What a series of searches came to.
#[derive(Default)]
struct Trials {
    /// Of all searches: the answer is within 5 % of the true knee.
    right: f64,
    /// The search says that it is.
    told: f64,
    /// Of those that say so.
    right_of_told: f64,
    mean_runs: f64,
    most_of_95: usize,
}

/// Searches for the knee of a queue whose response time is `latency` of its use, where it reaches `limit` at a load that
/// is different for each seed.
fn trials(latency: &dyn Fn(f64) -> f64, limit: f64, (noise, spoilt): Noise) -> Trials {
    let range = range("rate", 100.0, 20_000.0);
    let halve = |(low, high): (f64, f64), _| {
        let middle = (low + high) / 2.0;
        if latency(middle) <= limit { (middle, high) } else { (low, middle) }
    };
    let used = (0..60).fold((1e-6, 1.0 - 1e-12), halve).0;
    let mut found = Vec::new();
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed, &[7]);
        // The true knee, anywhere in the middle nine tenths of the range's logarithm.
        let knee = range.from * ((range.to / range.from).ln() * (0.05 + 0.9 * rng.unit())).exp();
        let (answer, runs) = search(&range, |level| {
            let load = used * level / knee;
            let own =
                if load < 1.0 { latency(load) * (1.0 + noise * normal(&mut rng)) } else { f64::INFINITY };
            let neighbour = if rng.unit() < spoilt { 3.0 + 7.0 * rng.unit() } else { 1.0 };
            side(own * neighbour <= limit)
        });
        let right = answer.knee.is_some_and(|at| (at / knee - 1.0).abs() <= 0.05 + 1e-9);
        found.push((right, answer.end == End::Found, runs));
    }
    found.sort_by_key(|(.., runs)| *runs);
    let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
    let told = found.iter().filter(|(_, told, _)| *told).count();
    Trials {
        right: share(found.iter().filter(|(right, ..)| *right).count(), found.len()),
        told: share(told, found.len()),
        right_of_told: share(found.iter().filter(|(right, told, _)| *right && *told).count(), told),
        mean_runs: share(found.iter().map(|(.., runs)| runs).sum(), found.len()),
        most_of_95: found[found.len() * 95 / 100].2,
    }
}

const NOISES: [Noise; 4] = [(0.03, 0.0), (0.1, 0.0), (0.03, 0.1), (0.1, 0.1)];

fn told(name: &str, latency: &dyn Fn(f64) -> f64, limit: f64) -> Vec<Trials> {
    let all = NOISES.map(|noise| trials(latency, limit, noise));
    for (trials, (noise, spoilt)) in all.iter().zip(NOISES) {
        println!(
            "{name}, noise {:.0} %, spoilt runs {:.0} %: within 5 % {:.1} % of {SEEDS}; told in {:.1} %, of these {:.1} %; \
             {:.1} runs, 95 % of the searches at most {}",
            noise * 100.0,
            spoilt * 100.0,
            trials.right * 100.0,
            trials.told * 100.0,
            trials.right_of_told * 100.0,
            trials.mean_runs,
            trials.most_of_95
        );
    }
    all.into()
}

#[test]
fn the_knee_of_a_queue_is_found_although_runs_vary_and_some_are_spoilt() {
    for (name, latency) in [("M/M/8", exponential as fn(u32, f64) -> f64), ("M/D/8", constant)] {
        for trials in told(&format!("{name}, twice the service time"), &|used| latency(8, used), 2.0) {
            assert!(trials.right >= 0.95, "{}", trials.right);
            assert!(trials.mean_runs <= 31.0, "{}", trials.mean_runs);
        }
    }
    for trials in told("M/M/1, ten times the service time", &|used| exponential(1, used), 10.0) {
        assert!(trials.right >= 0.95, "{}", trials.right);
    }
}

#[test]
fn where_latency_grows_slowly_noise_is_told_of_instead_of_a_wrong_knee() {
    // At half of the capacity 10 % of latency are 10 % of load: more than the precision asked for.
    let all = told("M/M/1, twice the service time", &|used| exponential(1, used), 2.0);
    for trials in [&all[0], &all[2]] {
        assert!(trials.right >= 0.95, "{}", trials.right);
    }
    for trials in [&all[1], &all[3]] {
        assert!(trials.told < 0.75, "{}", trials.told);
        assert!(trials.right_of_told >= 0.85, "{}", trials.right_of_told);
    }
}

#[test]
fn a_closed_loop_is_found() {
    let range = range("workers", 1.0, 1_000.0);
    let found = (0..SEEDS).filter(|seed| {
        let mut rng = Rng::new(*seed, &[8]);
        let knee = (1_000f64.ln() * (0.05 + 0.9 * rng.unit())).exp().floor();
        // Flat until half of the knee, then in proportion to the workers.
        let (answer, _) = search(&range, |level| {
            side((2.0 * level / (knee + 0.5)).max(1.0) * (1.0 + 0.03 * normal(&mut rng)) <= 2.0)
        });
        answer.knee.is_some_and(|at| (at - knee).abs() <= (0.05 * knee).max(1.0))
    });
    assert!(found.count() as f64 >= 0.95 * SEEDS as f64);
}

/// The knee is at 780; what is within up to there, but for the runs that are listed by their places.
fn spoilt(runs: &[usize]) -> (Answer, Vec<Seen>) {
    let (range, mut seen) = (range("rate", 100.0, 3_000.0), Vec::new());
    loop {
        match next(&range, &seen) {
            Step::Measure(level) => {
                let within = level <= 780.0 && !runs.contains(&seen.len());
                seen.push(Seen { level, side: side(within) });
            }
            Step::Done(answer) => return (answer, seen),
        }
    }
}

#[test]
fn a_run_that_misleads_costs_runs_and_not_the_answer() {
    let (_, undisturbed) = spoilt(&[]);
    for place in 0..undisturbed.len() {
        let (answer, seen) = spoilt(&[place]);
        assert_eq!(answer.end, End::Found, "{seen:?}");
        let knee = answer.knee.unwrap();
        assert!((741.0..=780.0).contains(&knee), "run {place} spoilt: {knee}\n{seen:?}");
        assert!(answer.beyond.unwrap() <= knee * 1.05, "{answer:?}");
    }
    // Two of them in a row, at the level that the first one spoilt.
    let (answer, seen) = spoilt(&[2, 3]);
    assert!((741.0..=780.0).contains(&answer.knee.unwrap()), "{answer:?}\n{seen:?}");
}

#[test]
fn without_noise_the_knee_is_enclosed_by_runs_on_both_sides() {
    let (answer, seen) = spoilt(&[]);
    let runs = |level: Option<f64>| seen.iter().filter(|one| Some(one.level) == level).count();
    assert!(runs(answer.knee) >= 2 && runs(answer.beyond) >= 2, "{answer:?}\n{seen:?}");
    assert!(seen.len() <= 16, "{}", seen.len());
    let (low, high) = answer.between;
    assert!(low <= 780.0 && 780.0 <= high && high / low < 1.1, "{answer:?}");
    let whole = |knee: f64, to: f64| search(&range("workers", 1.0, to), |level| side(level <= knee)).0;
    let few = whole(7.0, 1_000.0);
    assert_eq!((few.knee, few.beyond, few.end), (Some(7.0), Some(8.0), End::Found), "neighbours");
    let many = whole(100.0, 1_000.0);
    assert!((96.0..=100.0).contains(&many.knee.unwrap()), "{many:?}");
}

#[test]
fn the_ends_of_the_range_are_ends() {
    let of = |range: &Range, all| {
        let (answer, runs) = search(range, |_| all);
        (answer.knee, answer.beyond, answer.end, runs)
    };
    assert_eq!(of(&range("depth", 1.0, 64.0), Side::Within), (Some(64.0), None, End::Top, 8));
    assert_eq!(of(&range("depth", 4.0, 64.0), Side::Outside), (None, Some(4.0), End::Bottom, 3));
    assert_eq!(of(&range("depth", 8.0, 8.0), Side::Within), (Some(8.0), None, End::Top, 2));
    for (from, to) in
        [(9.0, 8.0), (f64::NAN, 8.0), (1.0, f64::INFINITY), (-5.0, 0.0), (1e-320, 8.0), (1.0, 1e300)]
    {
        let Step::Done(answer) = next(&range("rate", from, to), &[]) else { panic!("{from} to {to}") };
        assert_eq!((answer.knee, answer.beyond), (None, None), "{from} to {to}");
    }
}

#[test]
fn the_generators_limit_ends_the_search_upwards() {
    let (answer, runs) = search(&range("rate", 100.0, 10_000.0), |level| match level {
        level if level > 1_000.0 => Side::Unclear,
        _ => Side::Within,
    });
    assert_eq!((answer.knee, answer.beyond, answer.end), (Some(800.0), None, End::Unclear(1_600.0)));
    assert!(runs <= 8, "{runs}");
    let (answer, runs) = search(&range("rate", 100.0, 10_000.0), |_| Side::Unclear);
    assert_eq!((answer.knee, answer.beyond, answer.end, runs), (None, None, End::Unclear(100.0), 2));
    // One run that cannot tell is done again.
    let mut times = 0;
    let (answer, _) = search(&range("rate", 100.0, 3_000.0), |level| {
        times += usize::from(level == 400.0);
        if level == 400.0 && times == 1 { Side::Unclear } else { side(level <= 780.0) }
    });
    assert_eq!(answer.end, End::Found);
    // What was outside above it still is.
    let seen = |level, side| Seen { level, side };
    let mut all = vec![seen(100.0, Side::Within); 3];
    all.extend([seen(800.0, Side::Outside), seen(200.0, Side::Unclear), seen(200.0, Side::Unclear)]);
    let answer = answer_of(&all);
    assert_eq!((answer.knee, answer.beyond, answer.end), (Some(100.0), Some(800.0), End::Unclear(200.0)));
}

fn answer_of(seen: &[Seen]) -> Answer {
    answer(&range("rate", 100.0, 3_000.0), seen)
}

#[test]
fn a_search_without_runs_left_says_how_far_it_came() {
    let short = Range { runs: 6, ..range("rate", 100.0, 3_000.0) };
    let (answer, runs) = search(&short, |level| side(level <= 780.0));
    assert_eq!((answer.end, runs), (End::Budget, 6));
    let (low, high) = answer.between;
    assert!(low <= 780.0 && 780.0 <= high && high / low > 1.1, "{answer:?}");
    let (answer, _) = spoilt(&[]);
    assert_eq!(answer_of(&[]).end, End::Open);
    assert_eq!(answer.end, End::Found);
}

#[test]
fn how_many_runs_it_takes_is_known_beforehand() {
    let expected = expected(&range("rate", 100.0, 3_000.0));
    assert_eq!((expected.least, expected.most), (2, RUNS));
    assert!((10..=18).contains(&expected.undisturbed), "{expected:?}");
}

#[test]
fn levels_are_divided_where_the_fewest_contradict() {
    use Side::{Outside as O, Unclear as U, Within as W};
    for (sides, within) in [
        (&[W, W, O, O][..], 2),
        (&[W, O, W, W, O], 4),
        (&[W, O, W], 1),
        (&[O, W, W], 3),
        (&[O, O], 0),
        (&[W, U, U], 1),
        (&[U, W], 2),
        (&[W, U, O], 1),
        (&[], 0),
    ] {
        assert_eq!(divide(sides), within, "{sides:?}");
    }
}

proptest! {
    #[test]
    fn it_ends_whatever_is_seen(
        axis in prop::sample::select(vec!["workers", "rate"]),
        from in 0.001f64..1_000.0,
        times in 1.0f64..10_000.0,
        within in -1.0f64..0.5,
        answers in prop::collection::vec(0..3usize, 1..64),
    ) {
        let range = Range { within, ..range(axis, from, from * times) };
        let mut answer = answers.iter().cycle();
        let mut seen = Vec::new();
        while let Step::Measure(level) = next(&range, &seen) {
            prop_assert!(level >= range.from && level <= range.to);
            prop_assert!(axis == "rate" || level.fract() == 0.0);
            let side = [Side::Within, Side::Outside, Side::Unclear][*answer.next().unwrap()];
            seen.push(Seen { level, side });
            prop_assert!(seen.len() <= RUNS as usize);
        }
    }

    #[test]
    fn no_range_and_no_sights_break_it(
        numbers in prop::array::uniform3(any::<f64>()),
        seen in prop::collection::vec((any::<f64>(), any::<bool>()), 0..16),
    ) {
        let range = Range { within: numbers[2], ..range("rate", numbers[0], numbers[1]) };
        let seen: Vec<_> = seen.into_iter().map(|(level, within)| Seen { level, side: side(within) }).collect();
        next(&range, &seen);
    }
}
