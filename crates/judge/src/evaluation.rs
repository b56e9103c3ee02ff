//! Judgement of an evaluation: repeats into estimates, arms compared, knees found, bottlenecks named, one verdict.
//!
//! [`assess`] takes the record and all of its runs and gives an [`Assessment`]: all that the terminal, the report and
//! the console show. Two runs or two evaluations that somebody wants compared come here too, as arms.
//!
//! | module | what it holds |
//! |---|---|
//! | `members` | which runs count |
//! | `parts`, `together`, `cells` | runs into cells |
//! | `service`, `knees` | service levels, and the best load within; [`side`] of a single run |
//! | `compare` | arms beside the baseline, and beside each other |
//! | `power` | which differences would be seen, and when repeats are enough |
//! | `shown` | which level stands for a load |
//! | `bottlenecks`, `findings`, `drift` | what single runs say, together; what else there is to know |
//! | `validity`, `verdict`, `words` | what it comes to |

mod bottlenecks;
mod cells;
mod compare;
mod drift;
mod findings;
mod knees;
mod members;
mod parts;
mod pooled;
mod power;
mod service;
mod settings;
mod shown;
mod validity;
mod verdict;
mod words;

pub(crate) use words::probability;
pub use words::{decimals, difference, plus_minus};

use crate::knee::End;
use crate::{Finding, Validity};
use serde::Serialize;
use std::borrow::Cow;
use tidemark_measure::axis::Unit;
use tidemark_measure::evaluation::{Arm, Evaluation, Level};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::Run;

pub use members::counts;
pub use pooled::{BestCell, Totals, totals};
pub use power::{Power, finds_nothing, half_width, power};
pub use service::side;
pub use shown::shown;

/// All that there is to say about an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct Assessment {
    /// Whether the numbers that are compared can be taken for what they seem to be.
    pub validity: Validity,
    /// Every cell that was measured: in the order of loads, subjects, levels and arms.
    pub cells: Vec<Cell>,
    /// Every arm beside the baseline, cell by cell.
    pub comparisons: Vec<Comparison>,
    /// The means over several cells: every arm beside the baseline, over all loads and over each; then the arms beside each
    /// other. Empty where there is one cell only.
    pub overall: Vec<Comparison>,
    /// The share within which arms count as equal, if one was asked for.
    pub margin: Option<f64>,
    /// The highest load within the service level, arm by arm.
    pub knees: Vec<Knee>,
    /// What limited each arm under each load, the likeliest first.
    pub bottlenecks: Vec<Bottleneck>,
    /// What was busy there without being shown to be the limit, and why nothing can be told.
    pub not_limits: Vec<Bottleneck>,
    /// Everything else: drift, outliers, cells that lack repeats, what single runs' rules found. The gravest first.
    pub findings: Vec<Finding>,
    /// What it comes to for the arm after the baseline, or for all of them together.
    pub outcome: Outcome,
    /// The verdict in sentences, each with its full stop: the headline, then the details.
    pub verdict: Vec<String>,
    /// How many of them are the headline: a line for each arm (or what was measured, where nothing is compared), the limit,
    /// and whether the numbers hold.
    pub headline: usize,
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Better than the baseline somewhere, worse nowhere.
    Better,
    /// Worse than the baseline somewhere, better nowhere.
    Worse,
    /// Better here and worse there.
    Mixed,
    /// Within the margin that was asked for.
    Equal,
    /// Not worse by more than the margin that was asked for.
    NotWorse,
    /// Neither within the margin nor outside: more repeats would tell.
    Inconclusive,
    /// Different, but one arm was measured after the other: a drift would look the same.
    Confounded,
    /// No difference was found, and no margin was asked for: what is smaller than [`Comparison::detectable`] would not be
    /// seen.
    CannotTell,
    /// Nothing was compared: one arm, or too few repeats for any test.
    NotCompared,
}

/// One arm under one load at one level, over all repeats.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The arm's name.
    pub arm: String,
    /// The load's name.
    pub load: String,
    /// What of the load was measured, when there are several things: a stage's name; or empty.
    pub subject: String,
    /// The level, and the axes of a sweep within the run, if any.
    pub level: Level,
    /// The runs that it was measured by, by their numbers, in the order of repeats; only those that measured something.
    pub runs: Vec<u64>,
    /// Operations per second, all data operations together.
    pub throughput: Estimate,
    /// Bytes per second.
    pub bandwidth: Estimate,
    /// Response times of all data operations together; `None` where no run knows it. Nanoseconds.
    pub mean_ns: Option<Estimate>,
    /// The median.
    pub p50_ns: Option<Estimate>,
    /// The 95th percentile.
    pub p95_ns: Option<Estimate>,
    /// The 99th percentile.
    pub p99_ns: Option<Estimate>,
    /// Jain's index of fairness over the instances or endpoints of its loads; `None` where there is only one.
    pub fairness: Option<Estimate>,
    /// The same numbers for each operation, when there are several.
    pub operations: Vec<OperationEstimates>,
    /// Measured operations over all repeats.
    pub total: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Whether it meets the service level; `None` without one, or where its repeats cannot tell: they contradict each other, or
    /// the 95 % interval of their mean is on both sides. In a search all runs decide together: what is below the knee meets it.
    pub meets: Option<bool>,
    /// Whether a rule says that its numbers are not what they seem.
    pub invalid: bool,
    /// Response times of all repeats together, all data operations; empty where they are not known.
    #[serde(skip)]
    pub response: Histogram,
}

impl Cell {
    /// What stands beside its numbers where a rule objects to them: that an open loop asked for more than the storage could
    /// do and is outside the service level for it is what a search looks for, and no fault of the numbers.
    pub fn objection(&self) -> Option<&'static str> {
        let is_open = self.level.iter().any(|axis| axis.value.unit() == Some(Unit::OperationsPerSecond));
        match (self.invalid, self.meets) {
            (false, _) => None,
            (true, Some(false)) if is_open => Some("overloaded"),
            (true, _) => Some("INVALID"),
        }
    }
}

/// One operation of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct OperationEstimates {
    /// Its label.
    pub label: String,
    /// Operations per second.
    pub throughput: Estimate,
    /// Bytes per second.
    pub bandwidth: Estimate,
    /// Mean response time, nanoseconds.
    pub mean_ns: Option<Estimate>,
    /// The 95th percentile.
    pub p95_ns: Option<Estimate>,
    /// The 99th percentile.
    pub p99_ns: Option<Estimate>,
}

/// A mean over repeats, and how sure it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// One value per repeat, in their order.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub median: f64,
    /// Ends of the 95 % confidence interval of the mean (Student's t); `None` with fewer than two values.
    pub interval: Option<(f64, f64)>,
    /// Coefficient of variation: the sample's standard deviation as a share of the mean. What is told of spread is
    /// [`Estimate::half_width`].
    pub variation: f64,
    /// Which repeats lie apart from the others, as places in `values`: reported, never dropped.
    pub outliers: Vec<usize>,
}

impl Estimate {
    /// How far the interval reaches to each side, as a share of the mean: the `±` of all tables and sentences.
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        (self.mean.abs() > 0.0).then(|| (high - low).abs() / 2.0 / self.mean.abs())
    }
}

/// One number of one arm beside that of another, of one cell or in the mean of several. Interval, probability and outcome are
/// one: see `compare`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The arm.
    pub arm: String,
    /// What it is compared with: the baseline, or in the means also another arm.
    pub baseline: String,
    /// The load; empty for the mean over several.
    pub load: String,
    /// What of the load, or empty.
    pub subject: String,
    /// The level; empty in the means.
    pub level: Level,
    /// How many cells it is the mean of.
    pub cells: usize,
    /// Which number.
    pub metric: Metric,
    /// The arm's as a multiple of the other's: 1.20 is 20 % more. A geometric mean.
    pub ratio: f64,
    /// Ends of its interval; all intervals of an assessment hold at once with 95 %. `None` with too few repeats.
    pub interval: Option<(f64, f64)>,
    /// Probability of a difference this large or larger if there were none, corrected for the number of comparisons;
    /// `None` with too few repeats.
    pub p: Option<f64>,
    /// The smallest difference that would be found in four of five evaluations like this one, as a share.
    pub detectable: Option<f64>,
    /// What it comes to.
    pub outcome: Outcome,
}

/// A number that arms are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Operations per second: more is better. Of closed loops.
    Throughput,
    /// Mean response time: less is better. Of all loads.
    MeanLatency,
    /// 99th percentile of the response time: less is better.
    TailLatency,
}

/// The best load within the service level: the one with the highest throughput among the levels within it. What lies less
/// than the noise below the highest counts as equal, and of equals the lowest load is taken; in an open loop, whose
/// throughput is given, it is the highest level within.
///
/// Without a service level it is the level after which throughput no longer grows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Knee {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// What of the load, or empty.
    pub subject: String,
    /// The axis that was varied: `workers`.
    pub axis: String,
    /// The service level as it was written; empty without one.
    pub service_level: String,
    /// The best level within it; `None` when even the lowest is outside.
    pub level: Option<f64>,
    /// What was achieved there, operations per second; 0 without a level.
    pub throughput: f64,
    /// The highest level within, where the fewest levels contradict it; `None` without a service level, or when none is.
    pub highest_within: Option<f64>,
    /// The lowest level above it that was measured to be outside; `None` without a service level, or when there is none.
    pub next: Option<f64>,
    /// What a search came to; `None` where the levels are listed.
    pub search: Option<Searched>,
    /// The level with the highest throughput of all, within or without, and that throughput.
    pub peak: (f64, f64),
    /// How many levels were measured.
    pub levels: usize,
    /// What happens at the knee, between it and the peak, and beyond, in whole sentences.
    pub story: Vec<String>,
}

/// What a search for a knee came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Searched {
    /// How many runs it took.
    pub runs: u64,
    /// How many it may take; `None` where nobody limited them.
    pub most_runs: Option<u32>,
    /// Between which levels the knee is, with 95 %.
    pub between: (f64, f64),
    /// Why it is over.
    pub end: End,
}

/// What limited an arm under a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// The arm.
    pub arm: String,
    /// The load.
    pub load: String,
    /// What is said about it, with evidence and the next experiment: the finding of one of its runs, with the number of
    /// runs that agree.
    pub finding: Finding,
}

/// Judges an evaluation. Runs that are no member of it are ignored; of several that are of the same arm, load, level and
/// repeat the latest completed one counts.
pub fn assess(evaluation: &Evaluation, runs: &[Run]) -> Assessment {
    assess_within(evaluation, runs, None)
}

/// The cells that were measured so far, for those who watch an evaluation: the same numbers as in its assessment, without
/// comparisons.
pub fn estimates(evaluation: &Evaluation, runs: &[Run]) -> Vec<Cell> {
    let members = members::choose(evaluation, runs, |_| true);
    let mut measured = cells::measure(evaluation, &members.used);
    knees::settle(evaluation, &mut measured);
    measured.into_iter().map(|measured| measured.cell).collect()
}

/// The same, with a margin: a share within which arms count as equal.
pub fn assess_within(evaluation: &Evaluation, runs: &[Run], margin: Option<f64>) -> Assessment {
    let evaluation = &*compared(evaluation);
    let members = members::choose(evaluation, runs, |_| true);
    let mut measured = cells::measure(evaluation, &members.used);
    knees::settle(evaluation, &mut measured);
    let knees = knees::find(evaluation, &measured);
    let (comparisons, overall) = compare::compare(evaluation, &measured, &knees, margin);
    let found = bottlenecks::name(evaluation, &members.used, &measured);
    let mut assessment = Assessment {
        validity: validity::validity(evaluation, &members.used, &measured, &knees),
        bottlenecks: found.limits,
        not_limits: found.others,
        findings: findings::findings(evaluation, &members, &measured, &knees),
        knees,
        outcome: Outcome::NotCompared,
        comparisons,
        overall,
        margin,
        verdict: Vec::new(),
        headline: 0,
        cells: Vec::new(),
    };
    assessment.outcome = assessment.outcome_of(None);
    (assessment.verdict, assessment.headline) = verdict::sentences(&assessment, &measured);
    assessment.cells = measured.into_iter().map(|one| one.cell).collect();
    assessment
}

/// The evaluation without arms that are not to be compared: those that a search for better settings went through. Its winner was chosen
/// because it looked good among them; only what was measured afterwards says whether it is.
fn compared(evaluation: &Evaluation) -> Cow<'_, Evaluation> {
    if evaluation.tuning.is_none() {
        return Cow::Borrowed(evaluation);
    }
    let arms = compared_arms(evaluation).into_iter().cloned().collect();
    Cow::Owned(Evaluation { arms, ..evaluation.clone() })
}

/// The arms that are compared, the baseline first: all, but of a search only those of its proof, or its baseline before that.
pub fn compared_arms(evaluation: &Evaluation) -> Vec<&Arm> {
    let Some(tuning) = &evaluation.tuning else { return evaluation.arms.iter().collect() };
    let proves = |arm: &&Arm| tuning.tried.iter().any(|tried| tried.proves && tried.arm == arm.name);
    let mut arms: Vec<&Arm> = evaluation.arms.iter().filter(proves).collect();
    if arms.is_empty() {
        arms.extend(evaluation.arms.first());
    }
    arms
}

impl Assessment {
    /// What the comparisons of an arm with the baseline come to; of all arms without one.
    pub fn outcome_of(&self, arm: Option<&str>) -> Outcome {
        let baseline = self.comparisons.first().map_or("", |one| one.baseline.as_str());
        let own = |one: &&Comparison| arm.is_none_or(|arm| one.arm == arm);
        compare::outcome(baseline, self.comparisons.iter().filter(own), self.overall.iter().filter(own))
    }

    /// The arms that are compared with the baseline, in their order.
    pub fn compared(&self) -> Vec<&str> {
        let mut arms: Vec<&str> = Vec::new();
        for one in &self.comparisons {
            if !arms.contains(&one.arm.as_str()) {
                arms.push(&one.arm);
            }
        }
        arms
    }
}

#[cfg(test)]
mod tests;
