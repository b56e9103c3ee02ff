//! What all runs together say of where the knee is.
//!
//! Each place in the range is as likely as the runs say that were seen if the knee were there (Bayes, with every ratio as likely
//! as any other beforehand). The chance that a run falls outside grows with the load from nothing to certainty in a logistic
//! curve around the knee; how steep it is depends on the storage and on its noise and is not known, so a few widths are taken
//! together (Kontsevich and Tyler, Vision Research 39, 1999). And one run in ten says nothing at all: it was disturbed.

use super::{Level, RAMP};

/// The share of runs that mislead wherever they are.
const DISTURBED: f64 = 0.1;

/// The widths of the curve that are taken together, as standard deviations in logarithms of the level, and their shares: none, as
/// of a queue that overflows; 3 % and 10 %, as of latencies that grow slowly and vary from run to run. The widest counts
/// twice: where it is the true one, few runs look like a narrower one by chance, and too many searches would end too early.
const WIDTHS: [(f64, f64); 3] = [(0.0, 0.25), (0.03, 0.25), (0.1, 0.5)];

/// The scale of a logistic distribution of standard deviation 1: the square root of 3, divided by pi.
const LOGISTIC: f64 = 0.551_328_895_421_792;

/// Into how many places each gap between two seen levels is divided.
const PLACES: usize = 6;

/// How likely the knee is where.
pub(super) struct Belief {
    /// Logarithms of levels, ascending, and their shares, which add up to 1.
    places: Vec<(f64, f64)>,
}

impl Belief {
    /// What levels that were seen say, in ascending order, of a knee between `from` and `to` or beyond one of them.
    pub(super) fn new(from: f64, to: f64, told: &[&Level]) -> Self {
        let mut edges = vec![from / RAMP];
        if told.first().is_none_or(|first| from < first.level) {
            edges.push(from);
        }
        edges.extend(told.iter().map(|level| level.level));
        if told.last().is_none_or(|last| last.level < to) {
            edges.push(to);
        }
        edges.push(to * RAMP);
        let gaps = edges.windows(2).flat_map(|edges| {
            let (low, width) = (edges[0].ln(), (edges[1] / edges[0]).ln() / PLACES as f64);
            (0..PLACES).map(move |place| (low + (place as f64 + 0.5) * width, width))
        });
        let gaps: Vec<(f64, f64)> = gaps.filter(|(_, width)| *width > 0.0).collect();
        let of = |(width, weight): &(f64, f64)| -> Vec<f64> {
            gaps.iter().map(|(knee, share)| (weight * share).ln() + likelihood(told, *knee, *width)).collect()
        };
        let logarithms: Vec<Vec<f64>> = WIDTHS.iter().map(of).collect();
        let most = logarithms.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let weight = |place: usize| logarithms.iter().map(|of| (of[place] - most).exp()).sum::<f64>();
        let weights: Vec<f64> = (0..gaps.len()).map(weight).collect();
        let all: f64 = weights.iter().sum();
        Self { places: gaps.iter().zip(weights).map(|((knee, _), weight)| (*knee, weight / all)).collect() }
    }

    /// The probability that the knee is at a level or above.
    pub(super) fn at_least(&self, level: f64) -> f64 {
        self.near((level, f64::INFINITY))
    }

    /// The probability that the knee is between two levels.
    pub(super) fn near(&self, (low, high): (f64, f64)) -> f64 {
        let (low, high) = (low.ln(), high.ln());
        self.places.iter().filter(|(knee, _)| (low..=high).contains(knee)).map(|(_, share)| share).sum()
    }

    /// The level that the knee does not exceed with a probability.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        let mut sum = 0.0;
        let reaches = |(_, share): &&(f64, f64)| {
            sum += share;
            sum >= probability
        };
        let place = self.places.iter().find(reaches).or(self.places.last());
        place.map_or(f64::NAN, |(knee, _)| knee.exp())
    }
}

/// The logarithm of how likely the sights are if the knee is at `knee` (a logarithm) and the curve this wide.
fn likelihood(told: &[&Level], knee: f64, width: f64) -> f64 {
    let of = |level: &&Level| {
        let above = level.level.ln() - knee;
        let outside = match width {
            0.0 if above > 0.0 => 1.0,
            0.0 => 0.0,
            width => 1.0 / (1.0 + (-above / (width * LOGISTIC)).exp()),
        };
        let outside = DISTURBED + (1.0 - 2.0 * DISTURBED) * outside;
        level.outside as f64 * outside.ln() + level.within as f64 * (1.0 - outside).ln()
    };
    told.iter().map(of).sum()
}
