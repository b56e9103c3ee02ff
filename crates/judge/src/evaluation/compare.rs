//! Arms beside each other: cell by cell beside the baseline, and with the mean of all cells beside every other arm.
//!
//! What is shown of a comparison, that is interval, probability and word, is one thing seen three ways: the interval of its
//! [`Difference`] that misses the truth with the comparison's share of 5 %. All shares of an evaluation are 5 % together, so that
//! all intervals hold at once (Bonferroni's inequality; Dunn, Journal of the American Statistical Association 56, 1961) and a
//! word is wrong anywhere in at most one of twenty evaluations. Half of it goes to the means, which the answer rests on, and half to
//! the single cells. Stepwise corrections (Holm's) find a little more, but the intervals that go with them end at 1 exactly where
//! something was found (Strassburger and Bretz, Statistics in Medicine 27, 2008), and say nothing of its size. What a search for better settings is
//! about does not share: see `objective`.

use super::cells::Measured;
use super::{Comparison, Estimate, Knee, Metric, Outcome};
use crate::statistics::{Difference, SIGNIFICANT, error_of, ratio};
use tidemark_measure::evaluation::{Evaluation, number_on};
use tidemark_measure::tuning::Objective;

/// Two cells by one number.
struct Pair<'m, 'a> {
    one: &'m Measured<'a>,
    baseline: &'m Measured<'a>,
    metric: Metric,
    ratio: f64,
    /// `None` with too few repeats.
    difference: Option<Difference>,
    /// Whether one of them was measured before the other: a drift would look like a difference.
    apart: bool,
}

/// A comparison that has no word yet.
struct Open {
    comparison: Comparison,
    difference: Option<Difference>,
    apart: bool,
}

/// Every cell beside the baseline's, in the order of the cells, then those of knees; and the means over cells.
pub(super) fn compare(
    evaluation: &Evaluation,
    measured: &[Measured<'_>],
    knees: &[Knee],
    margin: Option<f64>,
) -> (Vec<Comparison>, Vec<Comparison>) {
    let pairs: Vec<Pair<'_, '_>> = pairs(evaluation, measured, knees, 0);
    let mut overall = means(&pairs, evaluation);
    for arm in 1..evaluation.arms.len() {
        let others = self::pairs(evaluation, measured, knees, arm);
        overall.extend(means(&others, evaluation).into_iter().filter(Open::ranks));
    }
    let cells: Vec<Open> = pairs.iter().map(Pair::open).collect();
    let tested = |all: &[Open]| all.iter().filter(|one| one.difference.is_some()).count().max(1) as f64;
    let error = error_of(evaluation);
    let share = if overall.is_empty() { error } else { error / 2.0 };
    let misses = [share / tested(&cells), share / tested(&overall)];
    let proof = objective(evaluation, &cells);
    let closed = |all: Vec<Open>, miss, proof: Option<usize>| {
        let miss = |index| if proof == Some(index) { error } else { miss };
        all.into_iter().enumerate().map(|(index, one)| one.close(miss(index), margin)).collect()
    };
    (closed(cells, misses[0], proof), closed(overall, misses[1], None))
}

/// The comparison that a search for better settings is about, if it is a single one and has a single objective. What it tests was named before anything was measured,
/// so it does not share its error with what is compared besides (a primary endpoint: ICH E9, Statistics in Medicine 18, 1999, 2.2.2).
fn objective(evaluation: &Evaluation, cells: &[Open]) -> Option<usize> {
    let tuning = evaluation.tuning.as_ref().filter(|tuning| tuning.second.is_none())?;
    let metric = match tuning.objective {
        Objective::Throughput => Metric::Throughput,
        Objective::MeanLatency => Metric::MeanLatency,
        Objective::P99 => Metric::TailLatency,
        Objective::P95 | Objective::Price => return None,
    };
    let mut own = (0..cells.len()).filter(|index| cells[*index].comparison.metric == metric);
    let first = own.next()?;
    own.next().is_none().then_some(first)
}

/// All cells beside those of one arm: of the arms that come after it.
fn pairs<'m, 'a>(
    evaluation: &Evaluation,
    measured: &'m [Measured<'a>],
    knees: &[Knee],
    baseline: usize,
) -> Vec<Pair<'m, 'a>> {
    let mut pairs = Vec::new();
    // The levels that a search went through are stations on its way, not what is asked for.
    let listed: Vec<_> = measured.iter().filter(|one| evaluation.loads[one.load].search.is_none()).collect();
    for place in listed.chunk_by(|one, other| same_place(one, other)) {
        let Some(base) = place.iter().find(|one| one.arm == baseline) else { continue };
        for one in place.iter().filter(|one| one.arm > baseline) {
            pairs.extend(metrics(base).into_iter().filter_map(|metric| pair(evaluation, one, base, metric)));
        }
    }
    pairs.extend(of_knees(evaluation, measured, knees, baseline));
    pairs
}

/// What each arm does at its own knee beside what another does at its own, for loads with a search. A knee lies between two levels of
/// the search, and nobody knows where.
fn of_knees<'m, 'a>(
    evaluation: &Evaluation,
    measured: &'m [Measured<'a>],
    knees: &[Knee],
    baseline: usize,
) -> Vec<Pair<'m, 'a>> {
    let searched = |one: &&Measured<'_>| evaluation.loads[one.load].search.is_some();
    let at_knee = measured.iter().filter(searched);
    let at_knee = at_knee.filter_map(|one| Some((one, knees.iter().find(|knee| is_at(knee, one))?)));
    let at_knee: Vec<(&Measured<'_>, &Knee)> = at_knee.collect();
    let mut pairs = Vec::new();
    for (base, base_knee) in at_knee.iter().filter(|(one, _)| one.arm == baseline) {
        let same = |one: &Measured<'_>| one.load == base.load && one.cell.subject == base.cell.subject;
        for (one, knee) in at_knee.iter().filter(|(one, _)| one.arm > baseline && same(one)) {
            let step = |knee: &Knee| knee.next.zip(knee.level).map_or(1.0, |(next, level)| next / level);
            pairs.extend(pair(evaluation, one, base, Metric::Throughput).map(|pair| Pair {
                difference: pair.difference.map(|difference| difference.widened(step(base_knee), step(knee))),
                ..pair
            }));
        }
    }
    pairs
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

fn pair<'m, 'a>(
    evaluation: &Evaluation,
    one: &'m Measured<'a>,
    baseline: &'m Measured<'a>,
    metric: Metric,
) -> Option<Pair<'m, 'a>> {
    let (own, other) = (estimate(one, metric)?, estimate(baseline, metric)?);
    let ratio = ratio(&own.values, &other.values)?;
    let difference = match evaluation.tuning {
        // Its proof is measured in pairs.
        Some(_) => Difference::paired(&paired((one, own), (baseline, other))),
        None => Difference::between(&own.values, &other.values),
    };
    let ratio = difference.map_or(ratio, |difference| difference.ratio());
    let apart = is_in_time(evaluation) && is_apart(one, baseline);
    Some(Pair { one, baseline, metric, ratio, difference, apart })
}

/// The values of repeats of one number.
fn paired(
    (one, own): (&Measured<'_>, &Estimate),
    (baseline, other): (&Measured<'_>, &Estimate),
) -> Vec<(f64, f64)> {
    // An estimate without the value of some repeat does not say of which.
    let numbered = |measured: &Measured<'_>, estimate: &Estimate| -> Vec<(u32, f64)> {
        let numbers = measured.numbers.iter().copied().zip(estimate.values.iter().copied());
        numbers.filter(|_| measured.numbers.len() == estimate.values.len()).collect()
    };
    let others = numbered(baseline, other);
    let pair = |(number, value)| Some((value, others.iter().find(|(other, _)| *other == number)?.1));
    numbered(one, own).into_iter().filter_map(pair).collect()
}

/// Whether the order of turns was that of time, and was chosen: two stored results are apart by nature, and tables say nothing of it.
pub(super) fn is_in_time(evaluation: &Evaluation) -> bool {
    ["interleaved", "random", "blocks"].contains(&evaluation.order.as_str())
}

/// Whether all repeats of one cell were measured before those of the other.
pub(super) fn is_apart(one: &Measured<'_>, other: &Measured<'_>) -> bool {
    let ends = |of: &Measured<'_>| of.turns.iter().copied().min().zip(of.turns.iter().copied().max());
    let several = one.turns.len() > 1 && other.turns.len() > 1;
    let ends = ends(one).zip(ends(other)).filter(|_| several);
    ends.is_some_and(|((first, last), (other_first, other_last))| last < other_first || other_last < first)
}

/// The means over all cells and, with several loads, over those of each: of every arm and number. Nothing where a mean would be of
/// one cell. Cells that a rule objects to are left out.
fn means(pairs: &[Pair<'_, '_>], evaluation: &Evaluation) -> Vec<Open> {
    let mut means = Vec::new();
    let mut loads: Vec<Option<&str>> = evaluation.loads.iter().map(|load| Some(load.name.as_str())).collect();
    if loads.len() > 1 {
        loads.insert(0, None);
    }
    for arm in evaluation.arms.iter().map(|arm| &arm.name) {
        for load in &loads {
            for metric in [Metric::Throughput, Metric::MeanLatency, Metric::TailLatency] {
                let own = pairs.iter().filter(|pair| pair.one.cell.arm == *arm && pair.metric == metric);
                let own = own.filter(|pair| load.is_none_or(|load| pair.one.cell.load == load));
                means.extend(mean(&own.collect::<Vec<_>>(), load.unwrap_or_default()));
            }
        }
    }
    means
}

fn mean(pairs: &[&Pair<'_, '_>], load: &str) -> Option<Open> {
    let sound = pairs.iter().filter(|pair| !pair.one.cell.invalid && !pair.baseline.cell.invalid);
    let tested: Vec<(&Pair<'_, '_>, Difference)> =
        sound.filter_map(|pair| Some((*pair, pair.difference?))).collect();
    let (first, _) = tested.first().filter(|_| tested.len() > 1)?;
    let difference = Difference::mean(&tested.iter().map(|(_, difference)| *difference).collect::<Vec<_>>())?;
    let mut open = first.open();
    open.comparison.load = load.to_owned();
    (open.comparison.subject, open.comparison.level) = (String::new(), Vec::new());
    (open.comparison.cells, open.comparison.ratio) = (tested.len(), difference.ratio());
    let apart = tested.iter().any(|(pair, _)| pair.apart);
    Some(Open { difference: Some(difference), apart, ..open })
}

impl Pair<'_, '_> {
    fn open(&self) -> Open {
        let cell = &self.one.cell;
        let comparison = Comparison {
            arm: cell.arm.clone(),
            baseline: self.baseline.cell.arm.clone(),
            load: cell.load.clone(),
            subject: cell.subject.clone(),
            level: cell.level.clone(),
            cells: 1,
            metric: self.metric,
            ratio: self.ratio,
            interval: None,
            p: None,
            detectable: None,
            outcome: Outcome::NotCompared,
        };
        Open { comparison, difference: self.difference, apart: self.apart }
    }
}

impl Open {
    /// Whether it belongs to a ranking of all arms.
    fn ranks(&self) -> bool {
        self.comparison.metric != Metric::TailLatency
    }

    /// The comparison at its share of the error.
    fn close(self, miss: f64, margin: Option<f64>) -> Comparison {
        let Some(difference) = self.difference else { return self.comparison };
        let interval = difference.interval(miss);
        let p = difference.p().map(|p| (p * SIGNIFICANT / miss).min(1.0));
        let metric = self.comparison.metric;
        let outcome = interval.map(|ends| outcome_of(metric, ends, margin));
        let outcome = match outcome {
            Some(Outcome::Better | Outcome::Worse) if self.apart => Outcome::Confounded,
            outcome => outcome.unwrap_or(Outcome::NotCompared),
        };
        Comparison { interval, p, detectable: difference.detectable(miss), outcome, ..self.comparison }
    }
}

/// What an interval says. Within a margin of 5 % is what is at most 1.05 times as much, and at least one 1.05th.
fn outcome_of(metric: Metric, (low, high): (f64, f64), margin: Option<f64>) -> Outcome {
    let (low, high) = if metric.more_is_better() { (low, high) } else { (1.0 / high, 1.0 / low) };
    let Some(margin) = margin else {
        return match () {
            () if low > 1.0 => Outcome::Better,
            () if high < 1.0 => Outcome::Worse,
            () => Outcome::CannotTell,
        };
    };
    let (least, most) = (1.0 / (1.0 + margin), 1.0 + margin);
    match () {
        () if high < least => Outcome::Worse,
        () if least <= low && high <= most => Outcome::Equal,
        () if low > 1.0 => Outcome::Better,
        () if least <= low => Outcome::NotWorse,
        () => Outcome::Inconclusive,
    }
}

/// What all comparisons with the baseline together come to. Where no single one is better or worse, the means decide, if there are
/// any.
pub(super) fn outcome<'c>(
    baseline: &str,
    cells: impl Iterator<Item = &'c Comparison>,
    overall: impl Iterator<Item = &'c Comparison>,
) -> Outcome {
    let [cells, overall]: [Vec<Outcome>; 2] = [
        cells.map(|one| one.outcome).collect(),
        overall.filter(|one| one.baseline == baseline).map(|one| one.outcome).collect(),
    ];
    let any = |wanted: Outcome| cells.iter().chain(&overall).any(|outcome| *outcome == wanted);
    let deciding = if overall.is_empty() { &cells } else { &overall };
    let weakest =
        [Outcome::Confounded, Outcome::Inconclusive, Outcome::CannotTell, Outcome::NotWorse, Outcome::Equal];
    let among = weakest.into_iter().find(|wanted| deciding.contains(wanted));
    match (any(Outcome::Better), any(Outcome::Worse)) {
        (true, true) => Outcome::Mixed,
        (true, false) => Outcome::Better,
        (false, true) => Outcome::Worse,
        (false, false) => among.unwrap_or(Outcome::NotCompared),
    }
}
