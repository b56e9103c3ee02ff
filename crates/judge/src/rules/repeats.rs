//! Whether repeats of a point agree, and whether two engines do.

use super::{Findings, samples_needed};
use crate::context::stage_label;
use crate::statistics::{self, Difference};
use crate::sweep::{Point, Spread, Sweep, sweeps};
use crate::words::repeats::{Equivalence, Pair, Repeated, Repeats, Side};
use crate::{Finding, Severity};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::Run;

/// Repeats that vary more than this do not tell points apart that lie as close.
const VARIATION_MOST: f64 = 0.1;

/// From here on it is worth knowing.
const VARIATION_NOTED: f64 = 0.05;

/// Two engines' throughputs are the same within this share.
const RATE_MARGIN: f64 = 0.05;

/// And their percentiles within this one: Tidemark's own promise against fio.
const LATENCY_MARGIN: f64 = 0.03;

/// The percentiles that are compared where there are enough samples for them.
const COMPARED: [f64; 3] = [0.5, 0.99, 0.999];

/// Whether repeats of the same point gave the same throughput: one finding for each degree.
pub(super) fn repeats(run: &Run, out: &mut Findings) {
    let sweeps = sweeps(run);
    let repeated = sweeps.iter().flat_map(|sweep| sweep.points.iter().map(move |point| (sweep, point)));
    let repeated: Vec<_> = repeated
        .filter_map(|(sweep, point)| {
            let rates = point.rates();
            Some((sweep, point, Spread::of(&rates).filter(|spread| spread.count > 1)?))
        })
        .collect();
    let all = repeated.len();
    let of = |severity| repeated.iter().filter(move |(_, _, spread)| degree(spread) == severity);
    for severity in [Severity::Warning, Severity::Note, Severity::Good] {
        let count = of(severity).count();
        let most = of(severity).map(|(_, _, spread)| spread.variation).fold(0.0, f64::max);
        if count == 0 {
            continue;
        }
        let agree = severity == Severity::Good;
        let differing = of(severity).filter(|_| !agree).map(|(sweep, point, spread)| Repeated {
            point: name(sweep, point),
            rates: point.rates(),
            variation: spread.variation,
        });
        let what = Repeats::OfPoints {
            agree,
            points: count,
            of: all,
            variation: most,
            differing: differing.collect(),
        };
        let stages = of(severity).flat_map(|(_, point, _)| labels(point)).collect();
        out.add(Finding { stages, ..Finding::about_run(severity, what) });
    }
}

fn degree(spread: &Spread) -> Severity {
    match spread.variation {
        much if much > VARIATION_MOST => Severity::Warning,
        some if some >= VARIATION_NOTED => Severity::Note,
        _ => Severity::Good,
    }
}

/// `rand (randread, 4 KiB)`, with the engine where there are several.
fn name(sweep: &Sweep<'_>, point: &Point<'_>) -> String {
    let engine = if sweep.engines().len() > 1 { point.engine } else { "" };
    let words: Vec<_> = [point.label().as_str(), engine]
        .into_iter()
        .filter(|word| !word.is_empty())
        .map(String::from)
        .collect();
    if words.is_empty() { sweep.name.to_owned() } else { format!("{} ({})", sweep.name, words.join(", ")) }
}

fn labels(point: &Point<'_>) -> Vec<String> {
    point.stages.iter().map(|stage| stage_label(stage)).collect()
}

/// Whether two engines measured the same at the same points.
pub(super) fn cross_check(run: &Run, out: &mut Findings) {
    for sweep in sweeps(run) {
        for (place, one) in sweep.points.iter().enumerate() {
            let rest = sweep.points[place + 1..].iter();
            let others = rest.filter(|other| other.axes == one.axes && other.engine != one.engine);
            others.for_each(|other| out.add(compare(&sweep, one, other)));
        }
    }
}

/// Whether two engines' repeats of a number are the same within a margin: by the interval of their ratio, as
/// everywhere. `None` where there is no ratio.
fn pair(percentile: Option<f64>, one: &[f64], other: &[f64], margin: f64) -> Option<Pair> {
    let ratio = statistics::ratio(one, other)?;
    let found = Difference::between(one, other);
    let interval = found.and_then(|found| found.interval(statistics::SIGNIFICANT));
    let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
    let outcome = match interval {
        Some((low, high)) if least <= low && high <= most => Equivalence::Agree,
        Some((low, high)) if high < least || most < low => Equivalence::Disagree,
        _ => Equivalence::CannotTell,
    };
    let [one, other] = [Spread::of(one)?, Spread::of(other)?];
    let side = |of: Spread| Side { mean: of.mean, low: of.low, high: of.high, repeats: of.count };
    // The interval must not reach across the end of the margin that is nearer.
    let room = [least, most].map(|end| (ratio / end).ln().abs()).into_iter().fold(f64::MAX, f64::min);
    let variation = one.variation.hypot(other.variation);
    let needed = || statistics::repeats_needed(variation, room);
    let tells = outcome != Equivalence::CannotTell || interval.is_none();
    Some(Pair {
        percentile,
        one: side(one),
        other: side(other),
        ratio,
        interval,
        margin,
        outcome,
        repeats_needed: (!tells).then(needed),
    })
}

fn compare(sweep: &Sweep<'_>, one: &Point<'_>, other: &Point<'_>) -> Finding {
    let mut pairs = Vec::new();
    pairs.extend(pair(None, &one.rates(), &other.rates(), RATE_MARGIN));
    for fraction in COMPARED {
        if let [Some(one), Some(other)] = [one, other].map(|point| percentiles(point, fraction)) {
            pairs.extend(pair(Some(fraction), &one, &other, LATENCY_MARGIN));
        }
    }
    let point = match one.label() {
        label if label.is_empty() => sweep.name.to_owned(),
        label => format!("{} ({label})", sweep.name),
    };
    let engines = [one, other].map(|point| point.engine.to_owned());
    let what = Repeats::cross_check(engines, point, pairs);
    let severity = match &what {
        Repeats::CrossCheck { outcome: Equivalence::Agree, .. } => Severity::Good,
        Repeats::CrossCheck { outcome: Equivalence::Disagree, .. } => Severity::Warning,
        _ => Severity::Note,
    };
    let stages = labels(one).into_iter().chain(labels(other)).collect();
    Finding { stages, ..Finding::about_run(severity, what) }
}

/// A percentile of every repeat, if all of them have samples enough.
fn percentiles(point: &Point<'_>, fraction: f64) -> Option<Vec<f64>> {
    let each = point.responses();
    let enough = |response: &Histogram| response.count() >= samples_needed(fraction);
    let values = each.iter().map(|response| enough(response).then(|| response.quantile(fraction) as f64));
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, said, sweep_run};
    use super::*;
    use tidemark_measure::record::Reported;

    /// One repeat per rate, at one point.
    fn rates(rates: &[u64]) -> Run {
        let mut run = sweep_run(&["4 KiB"], rates.len() as u32);
        for (stage, rate) in run.stages.iter_mut().zip(rates) {
            stage.works[0].operations[0].tally.ok = rate * 20;
        }
        run
    }

    #[test]
    fn repeats_agree_or_differ() {
        let severity = |all: &[u64], rule| said(&rates(all), rule).map(|finding| finding.severity);
        assert_eq!(severity(&[400, 404, 396], "repeats-agree"), Some(Severity::Good));
        assert_eq!(severity(&[400, 424, 376], "repeats-differ"), Some(Severity::Note), "6 %");
        assert_eq!(severity(&[400, 448, 352], "repeats-differ"), Some(Severity::Warning), "12 %");
        assert_eq!(severity(&[400], "repeats-agree"), None);
        let finding = said(&rates(&[400, 448, 352]), "repeats-differ").unwrap();
        assert_eq!(finding.title(), "repeats differ at 1 of 1 points: throughput varies by up to 12.00 %");
        assert_eq!(finding.place(), "3 stages");
        assert!(
            finding.evidence()[0]
                .starts_with("rand (randread, 4 KiB, clients 1): 400 op/s, 448 op/s, 352 op/s")
        );
    }

    /// Three repeats of native, three of fio with this rate and latency.
    fn crossed(rate: u64, latency_ns: u64) -> Finding {
        let mut run = sweep_run(&["4 KiB"], 6);
        for stage in &mut run.stages[3..] {
            stage.cell.as_mut().unwrap().engine = "fio".into();
            let tally = &mut stage.works[0].operations[0].tally;
            tally.ok = rate * 20;
            tally.response.reset();
            tally.response.record_many(latency_ns, tally.ok);
        }
        said(&run, "cross-check").unwrap()
    }

    #[test]
    fn engines_agree_or_disagree() {
        let same = crossed(400, 10 * MS);
        assert_eq!(same.severity, Severity::Good);
        assert!(
            same.title()
                .contains("native and fio agree at rand (randread, 4 KiB, clients 1): throughput +0.0 % (-0.2 % to +0.2 %), p50"),
            "{}",
            same.title()
        );
        assert!(!same.title().contains("p99.9"), "8 000 samples are too few");
        assert_eq!(crossed(385, 10 * MS).severity, Severity::Good, "3.9 %");
        let slow = crossed(375, 10 * MS);
        assert_eq!(slow.severity, Severity::Warning);
        assert!(slow.title().contains("clients 1): throughput +6.7 % (+6.4 % to"), "{}", slow.title());
        assert_eq!(crossed(400, 10_250_000).severity, Severity::Good, "2.4 %");
        assert_eq!(crossed(400, 10_400_000).severity, Severity::Warning);
    }

    /// Repeats of native, then as many of fio, at these rates.
    fn spread(all: &[u64]) -> Finding {
        let mut run = sweep_run(&["4 KiB"], all.len() as u32);
        for (index, (stage, rate)) in run.stages.iter_mut().zip(all).enumerate() {
            stage.cell.as_mut().unwrap().engine = if index < all.len() / 2 { "native" } else { "fio" }.into();
            stage.works[0].operations[0].tally.ok = rate * 20;
        }
        said(&run, "cross-check").unwrap()
    }

    #[test]
    fn a_spread_that_is_as_wide_as_the_difference_is_no_agreement() {
        // 20 % less, which repeats that are 25 % apart hide.
        let hidden = spread(&[400, 460, 510, 330, 360, 410]);
        assert_eq!(hidden.severity, Severity::Note);
        let title = hidden.title();
        assert!(title.starts_with("it cannot be told whether native and fio agree"), "{title}");
        assert!(title.contains("throughput") && !title.contains("p50"), "only what is in doubt: {title}");
        assert!(hidden.detail().contains("--cross-check="), "{}", hidden.detail());
        assert_eq!(spread(&[400, 300]).severity, Severity::Note, "one repeat tells nothing");
        // With more of them it shows.
        let many: Vec<u64> = [[440, 460, 450].repeat(4), [350, 370, 360].repeat(4)].concat();
        assert_eq!(spread(&many).severity, Severity::Warning);
        let same: Vec<u64> = [[440, 460, 450].repeat(4), [441, 461, 451].repeat(4)].concat();
        assert_eq!(spread(&same).severity, Severity::Good);
    }

    /// Four repeats of native, then as many of pgbench, which says what its throughput was and keeps no samples.
    fn beside_pgbench(own: [f64; 4], other: [f64; 4]) -> Finding {
        let mut run = sweep_run(&["4 KiB"], 8);
        for (index, (stage, rate)) in run.stages.iter_mut().zip(own.into_iter().chain(other)).enumerate() {
            let operation = &mut stage.works[0].operations[0];
            operation.tally.ok = rate as u64 * 20;
            if index >= own.len() {
                stage.cell.as_mut().unwrap().engine = "pgbench".into();
                operation.tally.response.reset();
                operation.reported = Some(Reported { throughput: Some(rate), ..Reported::default() });
            }
        }
        said(&run, "cross-check").unwrap()
    }

    #[test]
    fn a_program_that_keeps_no_samples_is_compared_by_its_throughput_alone() {
        let own = [1000.0, 1004.0, 996.0, 1002.0];
        let agrees = beside_pgbench(own, own.map(|rate| rate * 0.98));
        assert_eq!(agrees.severity, Severity::Good);
        let title = agrees.title();
        assert!(
            title.starts_with("native and pgbench agree at") && title.contains("throughput +2.0 %"),
            "{title}"
        );
        assert!(!title.contains("p50"), "{title}");
        let slower = beside_pgbench(own, own.map(|rate| rate * 0.9));
        assert_eq!(slower.severity, Severity::Warning);
        assert!(slower.title().starts_with("native and pgbench disagree at"), "{}", slower.title());
        let noisy = beside_pgbench(own, [800.0, 1150.0, 930.0, 1100.0]);
        assert_eq!(noisy.severity, Severity::Note);
        assert!(
            noisy.title().starts_with("it cannot be told whether native and pgbench agree"),
            "{}",
            noisy.title()
        );
        assert!(
            noisy.detail().contains("--cross-check=") || noisy.detail().contains("not even"),
            "{}",
            noisy.detail()
        );
    }

    #[test]
    fn the_word_never_contradicts_the_interval() {
        let mut rng = tidemark_measure::rng::Rng::new(7, &[]);
        let mut seen = [0; 3];
        for _ in 0..500 {
            let truth = 350 + rng.below(100);
            let noise = 1 + rng.below(60);
            let mut draw = |mean: u64| (mean - noise / 2 + rng.below(noise)) as f64;
            let (one, other): (Vec<_>, Vec<_>) = (0..4).map(|_| (draw(400), draw(truth))).unzip();
            let pair = pair(None, &one, &other, RATE_MARGIN).unwrap();
            let (low, high) = pair.interval.unwrap();
            let within = |ratio: f64| (1.0 / 1.05..=1.05).contains(&ratio);
            let expected = match (within(low) && within(high), high < 1.0 / 1.05 || low > 1.05) {
                (true, _) => Equivalence::Agree,
                (_, true) => Equivalence::Disagree,
                _ => Equivalence::CannotTell,
            };
            assert_eq!(pair.outcome, expected);
            assert_eq!(pair.repeats_needed.is_some(), expected == Equivalence::CannotTell);
            seen[expected as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    }
}
