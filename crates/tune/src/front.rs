//! The Pareto front of two objectives: what was measured and is not dominated, given the noise.
//!
//! One point dominates another if it is better in both objectives, and both differences are told apart from noise. Each is a test of its
//! own, and both must find something, so that together they err no more often than the better of them (intersection and union: Berger,
//! Technometrics 24, 1982). All pairs of points share 5 %: with 95 %, nothing that belongs to the front is called dominated.

use crate::goal::Scores;
use serde::Serialize;
use tidemark_judge::statistics::{SIGNIFICANT, t_quantile};
use tidemark_measure::tuning::Configuration;

/// A standard deviation is taken for at least this much: nothing is measured more exactly.
const LEAST_NOISE: f64 = 1e-3;

/// Where a point stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// No other has better means in both objectives.
    Front,
    /// Another has, but the difference may be noise: it may belong to the front.
    CannotTell,
    /// Another is better in both objectives.
    Dominated,
}

/// An objective at a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimated {
    /// The geometric mean of its runs.
    pub mean: f64,
    /// Its 95 % interval, by the noise of all points' repeats; `None` before any was repeated.
    pub interval: Option<(f64, f64)>,
}

/// Settings that were measured, with both objectives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The settings.
    pub configuration: Configuration,
    /// How many runs it is of.
    pub runs: usize,
    /// The objectives, in the order of the document.
    pub values: [Estimated; 2],
    /// Whether it belongs to the front.
    pub place: Place,
}

/// What is known of a point before it has a place.
pub(crate) struct Known {
    pub(crate) configuration: Configuration,
    pub(crate) runs: usize,
    /// The mean scores.
    pub(crate) means: Scores,
}

/// A variance of single runs with its degrees of freedom, for each objective; `None` before anything was repeated.
pub(crate) type Noise = [Option<(f64, f64)>; 2];

/// The points with their places, those with more of the first objective's score first; `less` says of which objectives less is better.
pub(crate) fn front(known: &[Known], noise: Noise, less: [bool; 2]) -> Vec<Point> {
    let pairs = (known.len() * known.len().saturating_sub(1)).max(1) as f64;
    let error = |index: usize, runs: f64| {
        let (variance, freedom) = noise[index]?;
        Some(((variance.max(LEAST_NOISE.powi(2)) / runs).sqrt(), freedom))
    };
    // Runs of two means as those of one that is as unsure as their difference.
    let together = |one: &Known, other: &Known| 1.0 / (1.0 / one.runs as f64 + 1.0 / other.runs as f64);
    let is_better = |one: &Known, other: &Known, index: usize| one.means[index] > other.means[index];
    let is_surely_better = |one: &Known, other: &Known, index: usize| {
        let Some((error, freedom)) = error(index, together(one, other)) else { return false };
        let needed = t_quantile(1.0 - SIGNIFICANT / pairs, freedom).map(|t| t * error);
        needed.is_some_and(|needed| one.means[index] - other.means[index] > needed)
    };
    let place = |own: &Known| {
        let by = |better: &dyn Fn(&Known, &Known, usize) -> bool| {
            known.iter().any(|other| better(other, own, 0) && better(other, own, 1))
        };
        match (by(&is_better), by(&is_surely_better)) {
            (false, _) => Place::Front,
            (true, false) => Place::CannotTell,
            (true, true) => Place::Dominated,
        }
    };
    let estimated = |own: &Known, index: usize| {
        let value = |score: f64| if less[index] { (-score).exp() } else { score.exp() };
        let half = error(index, own.runs as f64)
            .and_then(|(error, freedom)| Some(t_quantile(1.0 - SIGNIFICANT / 2.0, freedom)? * error));
        let ends = half.map(|half| [own.means[index] - half, own.means[index] + half].map(value));
        let interval = ends.map(|[one, other]| (one.min(other), one.max(other)));
        Estimated { mean: value(own.means[index]), interval }
    };
    let mut points: Vec<(f64, Point)> = known
        .iter()
        .map(|own| {
            let values = [estimated(own, 0), estimated(own, 1)];
            let (configuration, runs) = (own.configuration.clone(), own.runs);
            (own.means[0], Point { configuration, runs, values, place: place(own) })
        })
        .collect();
    points.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    points.into_iter().map(|(_, point)| point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::rng::Rng;

    /// The places of points with these scores and runs, in the order given.
    fn places(points: &[(f64, f64, usize)], noise: f64) -> Vec<Place> {
        let known = points.iter().enumerate().map(|(index, (one, other, runs))| Known {
            configuration: Configuration(vec![index as f64]),
            runs: *runs,
            means: [*one, *other],
        });
        let mut all = front(&known.collect::<Vec<_>>(), [Some((noise.powi(2), 30.0)); 2], [false, true]);
        all.sort_by(|one, other| one.configuration.0[0].total_cmp(&other.configuration.0[0]));
        all.into_iter().map(|point| point.place).collect()
    }

    #[test]
    fn a_point_is_dominated_only_where_both_differences_are_told_apart() {
        // The second is far behind in both, the third in the first only, the fourth a little in both.
        let points = [(1.0, 1.0, 2), (0.5, 0.5, 2), (0.5, 0.97, 2), (0.97, 0.97, 2)];
        assert_eq!(
            places(&points, 0.05),
            [Place::Front, Place::Dominated, Place::CannotTell, Place::CannotTell]
        );
        assert_eq!(
            places(&points, 0.3),
            [Place::Front, Place::CannotTell, Place::CannotTell, Place::CannotTell]
        );
        let often = points.map(|(one, other, _)| (one, other, 400));
        assert_eq!(
            places(&often, 0.05),
            [Place::Front, Place::Dominated, Place::Dominated, Place::Dominated],
            "more runs tell more"
        );
    }

    #[test]
    fn nothing_that_belongs_to_the_front_is_called_dominated_and_what_is_far_behind_is() {
        const RUNS: usize = 4;
        const SEEDS: u64 = 200;
        let (noise, mut wrong, mut missed) = (0.05, 0, 0);
        for seed in 0..SEEDS {
            let mut rng = Rng::new(seed, &[81]);
            // Twelve points of a front that are nearly alike, and twelve that are behind each by a quarter in both.
            let mut known = Vec::new();
            for index in 0..24 {
                let (along, behind) = (f64::from(index % 12) * 0.005, f64::from(index / 12) * 0.3);
                // The mean of so many runs: twelve uniform numbers are about a normal one.
                let mut error = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                let means = [along - behind, -along - behind]
                    .map(|truth| truth + noise / (RUNS as f64).sqrt() * error());
                known.push(Known { configuration: Configuration(vec![f64::from(index)]), runs: RUNS, means });
            }
            let points = front(&known, [Some((noise * noise, 72.0)); 2], [false, true]);
            let of = |from: f64, to: f64, dominated: bool| {
                let own = points.iter().filter(|point| (from..to).contains(&point.configuration.0[0]));
                own.filter(|point| (point.place == Place::Dominated) == dominated).count()
            };
            wrong += u64::from(of(0.0, 12.0, true) > 0);
            missed += of(12.0, 24.0, false);
        }
        println!(
            "{wrong} of {SEEDS} fronts lost a point; {missed} of {} dominated points were kept",
            SEEDS * 12
        );
        assert!(wrong <= SEEDS / 20, "{wrong} of {SEEDS} fronts lost a point");
        assert!(missed as u64 <= SEEDS * 12 / 20, "{missed} points that are far behind were kept");
    }

    #[test]
    fn without_repeats_nothing_is_dominated_and_values_have_no_intervals() {
        let known = |one: f64| Known { configuration: Configuration(vec![one]), runs: 1, means: [one, one] };
        let points = front(&[known(0.0), known(1.0)], [None; 2], [false, true]);
        assert_eq!(
            points.iter().map(|point| point.place).collect::<Vec<_>>(),
            [Place::Front, Place::CannotTell]
        );
        assert!(points.iter().all(|point| point.values.iter().all(|value| value.interval.is_none())));
        assert!((points[0].values[1].mean - (-1f64).exp()).abs() < 1e-12, "of the second, less is better");
    }
}
