//! Every arm beside the baseline, cell by cell.

use super::cells::Measured;
use super::{Comparison, Estimate, Knee, Metric, Outcome, words};
use crate::statistics::{SIGNIFICANT, holm, ratio};
use tidemark_measure::evaluation::{Evaluation, number_on};

/// All comparisons, in the order of the cells; then those of knees. Their probabilities are corrected for their number.
pub(super) fn compare(evaluation: &Evaluation, measured: &[Measured<'_>], knees: &[Knee]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let mut baseline: Option<&Measured<'_>> = None;
    // Arms come last in the order of cells: the baseline's stands right before those that are compared with it. The levels
    // that a search went through are stations on its way, not what is asked for.
    for one in measured.iter().filter(|one| evaluation.loads[one.load].search.is_none()) {
        match baseline {
            _ if one.arm == 0 => baseline = Some(one),
            Some(baseline) if same_place(baseline, one) => {
                let metrics = metrics(baseline).into_iter();
                comparisons.extend(metrics.filter_map(|metric| comparison(one, baseline, metric)));
            }
            _ => {}
        }
    }
    comparisons.extend(of_knees(evaluation, measured, knees));
    correct(&mut comparisons);
    comparisons
}

/// What each arm does at its own knee beside what the baseline does at its own, for loads with a search.
fn of_knees(evaluation: &Evaluation, measured: &[Measured<'_>], knees: &[Knee]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (load, _) in evaluation.loads.iter().enumerate().filter(|(_, load)| load.search.is_some()) {
        let mut baseline: Option<&Measured<'_>> = None;
        let at_knee =
            measured.iter().filter(|one| one.load == load && knees.iter().any(|knee| is_at(knee, one)));
        let mut at_knee: Vec<_> = at_knee.collect();
        at_knee.sort_by(|left, right| (&left.cell.subject, left.arm).cmp(&(&right.cell.subject, right.arm)));
        for one in at_knee {
            match baseline {
                _ if one.arm == 0 => baseline = Some(one),
                Some(baseline) if baseline.cell.subject == one.cell.subject => {
                    comparisons.extend(comparison(one, baseline, Metric::Throughput));
                }
                _ => {}
            }
        }
    }
    comparisons
}

/// Whether a cell is where an arm's knee is.
fn is_at(knee: &Knee, one: &Measured<'_>) -> bool {
    let cell = &one.cell;
    let value = number_on(&cell.level, &knee.axis);
    (&knee.arm, &knee.load, &knee.subject) == (&cell.arm, &cell.load, &cell.subject)
        && value.is_some()
        && value == knee.level
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
                "{arm} has {}x the {metric} of {baseline} for {place}; not tested, which takes at least two repeats of each.",
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
    format!("{}x ({})", words::ratio(one.ratio), known.join(", "))
}
