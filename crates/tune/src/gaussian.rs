//! What is believed of configurations that were not measured: a Gaussian process over the mean scores of those that were.
//!
//! Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006: the posterior is their algorithm 2.1, the covariance Matérn's with
//! ν = 5/2 and a length for each setting (4.2), found where the marginal likelihood (5.4.1), with weak priors on its parameters, is
//! largest. The noise is not guessed: it is the variance of the repeats, divided by how many runs a mean is of.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use tidemark_measure::tuning::{Configuration, Space};

/// Lengths, as shares of a range, are believed to be about this.
const USUAL_LENGTH: f64 = 0.5;

/// Keeps matrices of equal rows from being singular; a share of the signal's variance.
const JITTER: f64 = 1e-6;

/// What was measured of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Mean {
    pub(crate) configuration: Configuration,
    /// The mean of its scores.
    pub(crate) score: f64,
    /// Of how many runs.
    pub(crate) runs: usize,
}

/// The belief.
#[derive(Clone, Debug)]
pub(crate) struct Belief<'a> {
    space: &'a Space,
    settings: &'a [usize],
    means: Vec<Mean>,
    /// The variance of single runs.
    noise: f64,
    lengths: Vec<f64>,
    signal: f64,
    average: f64,
    factor: Cholesky<f64, Dyn>,
    weights: DVector<f64>,
}

impl<'a> Belief<'a> {
    /// The belief after these means, over these settings; the others are alike in all of them. `None` with fewer than three.
    pub(crate) fn new(space: &'a Space, settings: &'a [usize], means: Vec<Mean>, noise: f64) -> Option<Self> {
        if means.len() < 3 {
            return None;
        }
        let fit = Fit::new(space, settings, &means, noise);
        let (signal, lengths) = fit.best();
        let (average, factor, weights, _) = fit.solve(signal, &lengths)?;
        Some(Self { space, settings, means, noise, lengths, signal, average, factor, weights })
    }

    /// The mean that is believed of a configuration, and how unsure it is: a standard deviation.
    pub(crate) fn at(&self, configuration: &Configuration) -> (f64, f64) {
        let covariance = self.means.iter().map(|mean| {
            let apart = self.space.apart(self.settings, configuration, &mean.configuration);
            self.signal.powi(2) * matern(&apart, &self.lengths)
        });
        let covariance = DVector::from_iterator(self.means.len(), covariance);
        let known = covariance.dot(&self.factor.solve(&covariance));
        let unsure = (self.signal.powi(2) - known).max(0.0).sqrt();
        (self.average + covariance.dot(&self.weights), unsure)
    }

    /// The configurations that it rests on.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &Configuration> {
        self.means.iter().map(|mean| &mean.configuration)
    }

    /// The same with a configuration measured that is not yet: as its mean says. The lengths stay as they are.
    pub(crate) fn supposing(&self, configuration: Configuration) -> Option<Self> {
        let score = self.at(&configuration).0;
        let mut means = self.means.clone();
        means.push(Mean { configuration, score, runs: 1 });
        let fit = Fit::new(self.space, self.settings, &means, self.noise);
        let (average, factor, weights, _) = fit.solve(self.signal, &self.lengths)?;
        Some(Self { means, average, factor, weights, lengths: self.lengths.clone(), ..*self })
    }
}

/// Matérn's covariance with ν = 5/2, of two points so far apart in each setting.
fn matern(apart: &[f64], lengths: &[f64]) -> f64 {
    let squared: f64 = apart.iter().zip(lengths).map(|(apart, length)| (apart / length).powi(2)).sum();
    let distance = (5.0 * squared).sqrt();
    (1.0 + distance + distance.powi(2) / 3.0) * (-distance).exp()
}

/// The search for the parameters.
struct Fit {
    /// How far the means are apart in each setting, row by row.
    apart: Vec<Vec<f64>>,
    scores: DVector<f64>,
    /// The variance of each mean.
    noise: Vec<f64>,
    /// How much the scores spread.
    spread: f64,
    settings: usize,
}

/// The average, the factor of the covariance, the weights of the scores, and the logarithm of the marginal likelihood.
type Solved = (f64, Cholesky<f64, Dyn>, DVector<f64>, f64);

impl Fit {
    fn new(space: &Space, settings: &[usize], means: &[Mean], noise: f64) -> Self {
        let pairs = means.iter().flat_map(|one| means.iter().map(move |other| (one, other)));
        let apart = pairs
            .map(|(one, other)| space.apart(settings, &one.configuration, &other.configuration))
            .collect();
        let scores = DVector::from_iterator(means.len(), means.iter().map(|mean| mean.score));
        let spread = scores.variance().sqrt().max(1e-3);
        let noise = means.iter().map(|mean| noise / mean.runs.max(1) as f64).collect();
        Self { apart, scores, noise, spread, settings: settings.len() }
    }

    fn solve(&self, signal: f64, lengths: &[f64]) -> Option<Solved> {
        let count = self.scores.len();
        let covariance = DMatrix::from_fn(count, count, |row, column| {
            let own = if row == column { self.noise[row] + JITTER * signal.powi(2) } else { 0.0 };
            signal.powi(2) * matern(&self.apart[row * count + column], lengths) + own
        });
        let factor = covariance.cholesky()?;
        let ones = DVector::from_element(count, 1.0);
        let weighted = factor.solve(&ones);
        let average = weighted.dot(&self.scores) / weighted.dot(&ones);
        let weights = factor.solve(&self.scores.add_scalar(-average));
        let determinant: f64 = factor.l_dirty().diagonal().iter().map(|entry| entry.ln()).sum();
        let fit = self.scores.add_scalar(-average).dot(&weights);
        Some((average, factor, weights, -0.5 * fit - determinant))
    }

    /// The likelihood with the priors: logarithms of parameters are about the usual ones, give or take one.
    fn credit(&self, parameters: &[f64]) -> f64 {
        let (signal, lengths) = self.parameters(parameters);
        let prior: f64 = parameters.iter().map(|parameter| -0.5 * parameter.powi(2)).sum();
        self.solve(signal, &lengths).map_or(f64::NEG_INFINITY, |solved| solved.3 + prior)
    }

    /// The signal and the lengths, from how far their logarithms are from the usual.
    fn parameters(&self, parameters: &[f64]) -> (f64, Vec<f64>) {
        let lengths = parameters[1..].iter().map(|parameter| USUAL_LENGTH * parameter.exp()).collect();
        (self.spread * parameters[0].exp(), lengths)
    }

    /// The best parameters, by steps along each in turn that become smaller (Hooke and Jeeves, 1961).
    fn best(&self) -> (f64, Vec<f64>) {
        let mut best = vec![0.0; self.settings + 1];
        let mut credit = self.credit(&best);
        for step in [1.0, 0.5, 0.25] {
            for index in 0..best.len() {
                for step in [step, -step] {
                    let mut tried = best.clone();
                    tried[index] += step;
                    let own = self.credit(&tried);
                    if own > credit {
                        (best, credit) = (tried, own);
                    }
                }
            }
        }
        self.parameters(&best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::tuning::{Domain, Scale, Setting, TakesEffect};

    fn space(settings: usize) -> Space {
        let setting = |index: usize| Setting {
            name: format!("s{index}"),
            domain: Domain::Real(0.0, 1.0, Scale::Linear),
            baseline: 0.5,
            unit: String::new(),
            takes_effect: TakesEffect::Run,
            when: None,
        };
        Space { settings: (0..settings).map(setting).collect() }
    }

    fn mean(values: &[f64], score: f64, runs: usize) -> Mean {
        Mean { configuration: Configuration(values.to_vec()), score, runs }
    }

    #[test]
    fn what_was_measured_exactly_is_believed_and_what_is_far_is_unsure() {
        let space = space(1);
        let wave = |x: f64| (6.0 * x).sin();
        let means = (0..8).map(|step| f64::from(step) / 7.0).map(|x| mean(&[x], wave(x), 1)).collect();
        let belief = Belief::new(&space, &[0], means, 1e-8).unwrap();
        for x in [0.0, 0.31, 0.5, 0.77, 1.0] {
            let (believed, unsure) = belief.at(&Configuration(vec![x]));
            assert!((believed - wave(x)).abs() < 0.02, "{x}: {believed} beside {}", wave(x));
            assert!(unsure < 0.05, "{x}: {unsure}");
        }
        let few = vec![mean(&[0.0], 0.0, 1), mean(&[0.05], 0.1, 1), mean(&[0.1], 0.0, 1)];
        let belief = Belief::new(&space, &[0], few, 1e-6).unwrap();
        let unsure = |x| belief.at(&Configuration(vec![x])).1;
        assert!(unsure(1.0) > 5.0 * unsure(0.05), "{} and {}", unsure(1.0), unsure(0.05));
    }

    #[test]
    fn a_mean_of_many_runs_counts_for_more() {
        let space = space(1);
        let believed = |runs| {
            let means = vec![
                mean(&[0.0], 0.0, 9),
                mean(&[0.5], 0.3, runs),
                mean(&[1.0], 0.0, 9),
                mean(&[0.25], 0.0, 9),
            ];
            Belief::new(&space, &[0], means, 0.04).unwrap().at(&Configuration(vec![0.5])).0
        };
        assert!(believed(40) > 2.0 * believed(1).max(0.01), "{} and {}", believed(40), believed(1));
    }

    #[test]
    fn the_setting_that_does_nothing_gets_the_longer_length() {
        let space = space(2);
        let mut means = Vec::new();
        for one in 0..5 {
            for other in 0..5 {
                let (one, other) = (f64::from(one) / 4.0, f64::from(other) / 4.0);
                means.push(mean(&[one, other], (4.0 * one).sin(), 1));
            }
        }
        let belief = Belief::new(&space, &[0, 1], means, 1e-4).unwrap();
        assert!(belief.lengths[1] > 2.0 * belief.lengths[0], "{:?}", belief.lengths);
    }
}
