//! Every arm beside the baseline, cell by cell.

use super::cells::Measured;
use super::{Comparison, Estimate, Metric, Outcome, words};
use crate::statistics::{SIGNIFICANT, holm, ratio};

/// All comparisons, in the order of the cells. Their probabilities are corrected for their number.
pub(super) fn compare(measured: &[Measured<'_>]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let mut baseline: Option<&Measured<'_>> = None;
    // Arms come last in the order of cells: the baseline's stands right before those that are compared with it.
    for one in measured {
        match baseline {
            _ if one.arm == 0 => baseline = Some(one),
            Some(baseline) if same_place(baseline, one) => {
                let metrics = metrics(baseline).into_iter();
                comparisons.extend(metrics.filter_map(|metric| comparison(one, baseline, metric)));
            }
            _ => {}
        }
    }
    correct(&mut comparisons);
    comparisons
}

fn same_place(one: &Measured<'_>, other: &Measured<'_>) -> bool {
    one.load == other.load && one.cell.subject == other.cell.subject && one.cell.level == other.cell.level
}

/// In a closed loop throughput and mean response time say the same; in an open loop throughput is what was asked for.
fn metrics(baseline: &Measured<'_>) -> [Metric; 2] {
    let first = if baseline.open { Metric::MeanLatency } else { Metric::Throughput };
    [first, Metric::TailLatency]
}

/// A cell's number of this kind, if it is known.
fn estimate<'a>(one: &'a Measured<'_>, metric: Metric) -> Option<&'a Estimate> {
    match metric {
        Metric::Throughput => Some(&one.cell.throughput),
        Metric::MeanLatency => one.cell.mean_ns.as_ref(),
        Metric::TailLatency => one.cell.p99_ns.as_ref(),
    }
}

/// Two cells by one number, not corrected yet.
fn comparison(one: &Measured<'_>, baseline: &Measured<'_>, metric: Metric) -> Option<Comparison> {
    let (own, other) = (estimate(one, metric)?, estimate(baseline, metric)?);
    let ratio = ratio(&own.values, &other.values)?;
    let cell = &one.cell;
    Some(Comparison {
        arm: cell.arm.clone(),
        baseline: baseline.cell.arm.clone(),
        load: cell.load.clone(),
        subject: cell.subject.clone(),
        level: cell.level.clone(),
        metric,
        ratio: ratio.ratio,
        interval: ratio.interval,
        effect: ratio.effect,
        p: ratio.p,
        outcome: Outcome::NotCompared,
    })
}

fn correct(comparisons: &mut [Comparison]) {
    let tested: Vec<f64> = comparisons.iter().filter_map(|one| one.p).collect();
    let mut corrected = holm(&tested).into_iter();
    for one in comparisons.iter_mut().filter(|one| one.p.is_some()) {
        one.p = corrected.next();
        one.outcome = outcome_of(one);
    }
}

/// Significant is what has a small probability after correction, and an interval without 1.
fn outcome_of(one: &Comparison) -> Outcome {
    let (Some(p), Some((low, high))) = (one.p, one.interval) else { return Outcome::NotCompared };
    let differs = p < SIGNIFICANT && !(low..=high).contains(&1.0);
    match (differs, (one.ratio > 1.0) == one.metric.more_is_better()) {
        (false, _) => Outcome::NoDifference,
        (true, true) => Outcome::Better,
        (true, false) => Outcome::Worse,
    }
}

/// What all comparisons together come to.
pub(super) fn outcome(comparisons: &[Comparison]) -> Outcome {
    let any = |outcome| comparisons.iter().any(|one| one.outcome == outcome);
    match (any(Outcome::Better), any(Outcome::Worse)) {
        (true, true) => Outcome::Mixed,
        (true, false) => Outcome::Better,
        (false, true) => Outcome::Worse,
        (false, false) if any(Outcome::NoDifference) => Outcome::NoDifference,
        (false, false) => Outcome::NotCompared,
    }
}

/// A comparison in one sentence with its full stop: `reference-2 is better than baseline in throughput for small-objects at
/// workers 320: 2.41 x (95 % interval 2.20 to 2.60, p < 0.001).`
pub fn sentence(one: &Comparison) -> String {
    let place = words::place(&one.load, &one.subject, &one.level);
    let (arm, baseline, metric) = (&one.arm, &one.baseline, one.metric.name());
    let word = match one.outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::NoDifference | Outcome::Mixed => {
            return format!(
                "{arm} and {baseline}: no significant difference in {metric} for {place}: {}.",
                figures(one)
            );
        }
        Outcome::NotCompared => {
            return format!(
                "{arm} has {} x the {metric} of {baseline} for {place}, which is not tested: that takes two repeats of each.",
                words::ratio(one.ratio)
            );
        }
    };
    format!("{arm} is {word} than {baseline} in {metric} for {place}: {}.", figures(one))
}

/// `2.41 x (95 % interval 2.20 to 2.60, p < 0.001)`.
fn figures(one: &Comparison) -> String {
    let interval = one.interval.map(|ends| words::interval(ends, words::ratio));
    let p = one.p.map(words::probability);
    let known: Vec<String> = interval.into_iter().chain(p).collect();
    format!("{} x ({})", words::ratio(one.ratio), known.join(", "))
}
