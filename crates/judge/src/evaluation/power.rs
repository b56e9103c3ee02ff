//! Which differences an evaluation would find, before it is carried out; and whether it has repeats enough.

use super::{cells, members};
use crate::statistics::{detectable, error_of, repeats_needed};
use serde::Serialize;
use tidemark_measure::evaluation::{Evaluation, Load, Member, REPEATS_LEAST};
use tidemark_measure::record::Run;

/// How far the interval of the main number of any of some cells reaches to each side, at most, as a share of its mean: throughput, or
/// the mean response time of an open loop. `None` where one has no interval yet, or there is none.
pub fn half_width(evaluation: &Evaluation, runs: &[Run], wanted: impl Fn(&Member) -> bool) -> Option<f64> {
    let members = members::choose(evaluation, runs, wanted);
    let measured = cells::measure(evaluation, &members.used);
    let each: Option<Vec<f64>> = measured.iter().map(|one| one.main().half_width()).collect();
    each?.into_iter().reduce(f64::max)
}

/// Which differences of a load's arms would be found in four of five cases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Power {
    /// The load.
    pub load: String,
    /// The repeats of a cell that are reckoned with.
    pub repeats: u32,
    /// How much repeats vary: the standard deviation as a share of the mean.
    pub variation: f64,
    /// How many runs that is known from; 0 where it is only assumed.
    pub runs: usize,
    /// The smallest difference at one level, as a share; `None` without repeats.
    pub cell: Option<f64>,
    /// The cells that the mean is over, and its smallest difference.
    pub cells: usize,
    /// `None` with one cell.
    pub mean: Option<f64>,
}

/// Whether the order alone makes that no difference will be found, however large: in blocks all runs of an arm come before those of
/// the next, and a drift would look the same.
pub fn finds_nothing(evaluation: &Evaluation) -> bool {
    evaluation.order == "blocks"
}

/// What would be found of each load, with the noise that earlier runs of the same cells had, or with this one. Loads of which nothing
/// is known are left out, and all of them where there is a single arm or where [`finds_nothing`].
pub fn power(evaluation: &Evaluation, runs: &[Run], noise: Option<f64>) -> Vec<Power> {
    if finds_nothing(evaluation) {
        return Vec::new();
    }
    let members = members::choose(evaluation, runs, |_| true);
    let measured = cells::measure(evaluation, &members.used);
    let others = evaluation.arms.len().saturating_sub(1);
    let (cells, means) = family(evaluation);
    let error = error_of(evaluation);
    let share = if means > 0 { error / 2.0 } else { error };
    let of = |(index, load): (usize, &Load)| {
        let own = measured.iter().filter(|one| one.load == index && one.main().values.len() > 1);
        let known: Vec<(f64, usize)> =
            own.map(|one| (one.main().variation.powi(2), one.main().values.len() - 1)).collect();
        let freedom: usize = known.iter().map(|(_, freedom)| freedom).sum();
        let squares: f64 = known.iter().map(|(squared, freedom)| squared * *freedom as f64).sum();
        let seen = (freedom > 0).then(|| (squares / freedom as f64).sqrt());
        let (variation, runs) = match noise {
            Some(noise) => (noise, 0),
            None => (seen?, freedom + known.len()),
        };
        let repeats = repeats(evaluation, variation);
        let levels = levels(load);
        let mean = (levels > 1).then(|| detectable(repeats, levels, variation, share / means.max(1) as f64));
        Some(Power {
            load: load.name.clone(),
            repeats,
            variation,
            runs,
            cell: detectable(repeats, 1, variation, share / cells.max(1) as f64),
            cells: levels,
            mean: mean.flatten(),
        })
    };
    evaluation.loads.iter().enumerate().filter(|_| others > 0).filter_map(of).collect()
}

fn levels(load: &Load) -> usize {
    if load.search.is_some() { 1 } else { load.levels.len().max(1) }
}

/// How many comparisons there will be: of cells, two numbers each; and of means, over all loads and over each with several levels, of
/// every arm with the baseline by two numbers and of the others with each other by one.
fn family(evaluation: &Evaluation) -> (usize, usize) {
    let others = evaluation.arms.len().saturating_sub(1);
    let cells: usize = evaluation.loads.iter().map(levels).sum();
    let scopes = evaluation.loads.iter().filter(|load| levels(load) > 1).count();
    let scopes = scopes + usize::from(evaluation.loads.len() > 1);
    (2 * others * cells, scopes * (2 * others + others * others.saturating_sub(1) / 2))
}

/// How often each cell will be measured if repeats vary so much.
fn repeats(evaluation: &Evaluation, variation: f64) -> u32 {
    let all = evaluation.repeats;
    let needed = |until| repeats_needed(variation, until).clamp(REPEATS_LEAST.min(all), all);
    evaluation.until.map_or(all, needed)
}
