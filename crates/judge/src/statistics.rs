//! The arithmetic of few repeats: estimates with intervals, ratios with tests, and what many comparisons cost.
//!
//! Everything here is for samples of two to some dozen values that are positive and spread by a few percent. Student's
//! distribution carries the smallness of the sample; logarithms make "twice as much" and "half as much" equally far.

use crate::evaluation::Estimate;
use statrs::distribution::{ContinuousCDF, StudentsT};
use tidemark_measure::evaluation::Evaluation;

/// Confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// A probability below this, after correction, is called significant: what intervals miss.
pub const SIGNIFICANT: f64 = 0.05;

/// The same where repeats went on until their interval was narrow: that prefers samples that happen to vary little, and makes the
/// error larger than it seems, 7 % instead of 5 % at worst in the simulations of `evaluation::tests::differences`.
pub const SIGNIFICANT_UNTIL: f64 = 0.025;

/// What all intervals of an evaluation's comparisons may miss together.
pub fn error_of(evaluation: &Evaluation) -> f64 {
    if evaluation.until.is_some() { SIGNIFICANT_UNTIL } else { SIGNIFICANT }
}

/// Share of cases in which a difference has to be found to be called detectable.
const POWER: f64 = 0.8;

/// A sample's standard deviation is taken for no less than this share: histograms are exact to 0.1 %, and numbers of other
/// tools are rounded to about as much. Values that happen to be alike would otherwise prove any difference.
const RESOLUTION: f64 = 0.001;

/// Modified z-scores above this are outliers (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993).
const OUTLIER_SCORE: f64 = 3.5;

/// With fewer values nobody can say which one is the odd one out.
const OUTLIER_VALUES: usize = 4;

/// What is no further from the median than this share of it is no outlier, however close the others are.
const OUTLIER_LEAST: f64 = 0.02;

/// More repeats than this are never recommended.
pub(crate) const REPEATS_MOST: u32 = 1_000;

/// Mean, median, interval, variation and outliers of one value per repeat. Values that are no finite numbers are left
/// out; zeros and negative ones are not, and a mean that is not above zero has variation 0.
pub fn estimate(mut values: Vec<f64>) -> Estimate {
    values.retain(|value| value.is_finite());
    let count = values.len();
    if count == 0 {
        return Estimate::default();
    }
    let (mean, deviation) = moments(&values);
    let interval = t_quantile((1.0 + CONFIDENCE) / 2.0, (count - 1) as f64).map(|t| {
        let half = t * deviation / (count as f64).sqrt();
        (mean - half, mean + half)
    });
    let variation = if mean > 0.0 { deviation / mean } else { 0.0 };
    Estimate { mean, median: median(&values), interval, variation, outliers: outliers(&values), values }
}

/// How one sample compares with another, as the difference of their means of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    log: f64,
    /// Its standard error, and the degrees of freedom of that.
    error: f64,
    freedom: f64,
    /// How much lower and how much higher it may be for reasons that repeats do not show.
    slack: (f64, f64),
}

impl Difference {
    /// The difference of two samples, tested as Welch does (Biometrika 34, 1947; degrees of freedom by Satterthwaite,
    /// Biometrics Bulletin 2, 1946). Each side's standard deviation is taken for at least 0.1 %. `None` with fewer than two
    /// values on a side, or where one has no logarithm.
    pub fn between(sample: &[f64], other: &[f64]) -> Option<Self> {
        let side = |values: &[f64]| {
            let positive = values.iter().all(|value| *value > 0.0 && value.is_finite());
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            let (mean, deviation) = moments(&logs);
            let count = values.len() as f64;
            let squared = deviation.max(RESOLUTION).powi(2) / count;
            (positive && values.len() > 1).then_some((mean, squared, count - 1.0))
        };
        let ((left, left_squared, left_freedom), (right, right_squared, right_freedom)) =
            (side(sample)?, side(other)?);
        let (error, freedom) = together(&[(left_squared, left_freedom), (right_squared, right_freedom)]);
        Some(Self { log: left - right, error, freedom, slack: (0.0, 0.0) })
    }

    /// The difference of pairs that were measured one beside the other: what drifts from pair to pair is in both of a pair, and so not in
    /// their difference (Student's test of paired values, Biometrika 6, 1908, of logarithms). Whether to pair is decided before anything is measured. Each
    /// value's standard deviation is taken for at least 0.1 %. `None` of fewer than two pairs, or where a value has no logarithm.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Self> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let all = pairs.len() > 1 && pairs.iter().all(|(one, other)| positive(*one) && positive(*other));
        let logs: Vec<f64> = pairs.iter().map(|(one, other)| one.ln() - other.ln()).collect();
        let (log, deviation) = moments(&logs);
        let error = (deviation.powi(2).max(2.0 * RESOLUTION.powi(2)) / pairs.len() as f64).sqrt();
        all.then_some(Self { log, error, freedom: pairs.len() as f64 - 1.0, slack: (0.0, 0.0) })
    }

    /// The mean of several that are independent: the geometric mean of the ratios, with the error that follows from theirs
    /// (degrees of freedom by Satterthwaite). It is about just these, not about others that might have been measured.
    /// `None` without any.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let count = all.len() as f64;
        let mean = |value: fn(&Self) -> f64| all.iter().map(value).sum::<f64>() / count;
        let (error, freedom) =
            together(&all.iter().map(|one| (one.error.powi(2), one.freedom)).collect::<Vec<_>>());
        let slack = (mean(|one| one.slack.0), mean(|one| one.slack.1));
        (!all.is_empty()).then(|| Self { log: mean(|one| one.log), error: error / count, freedom, slack })
    }

    /// The same, of which it is only known that the ratio is between `1 / lower` and `higher` times what was measured.
    pub fn widened(self, lower: f64, higher: f64) -> Self {
        Self { slack: (self.slack.0 + lower.max(1.0).ln(), self.slack.1 + higher.max(1.0).ln()), ..self }
    }

    /// The first sample's geometric mean as a multiple of the second's.
    pub fn ratio(&self) -> f64 {
        self.log.exp()
    }

    /// Ends of the ratio's interval, which misses the truth with this probability.
    pub fn interval(&self, miss: f64) -> Option<(f64, f64)> {
        let half = t_quantile(1.0 - miss / 2.0, self.freedom)? * self.error;
        Some(((self.log - self.slack.0 - half).exp(), (self.log + self.slack.1 + half).exp()))
    }

    /// Probability of a ratio as far from 1 or further if there were no difference: it is below `miss` exactly where
    /// [`Difference::interval`] does not contain 1.
    pub fn p(&self) -> Option<f64> {
        let (lower, higher) = self.slack;
        let apart = (self.log - lower).max(0.0) + (self.log + higher).min(0.0);
        two_sided(apart / self.error, self.freedom)
    }

    /// The smallest difference that four of five such comparisons find, as a share: the interval then has to be left by
    /// what 80 % of samples exceed (the usual sum of two quantiles; Cohen, Statistical Power Analysis, 1988, 2.1).
    pub fn detectable(&self, miss: f64) -> Option<f64> {
        let quantiles = t_quantile(1.0 - miss / 2.0, self.freedom)? + t_quantile(POWER, self.freedom)?;
        Some((quantiles * self.error + self.slack.0.max(self.slack.1)).exp_m1())
    }
}

/// The first sample's geometric mean as a multiple of the second's; of arithmetic means where a value has no logarithm.
/// `None` where there is no ratio: an empty sample, or a second one whose mean is not above zero.
pub fn ratio(sample: &[f64], other: &[f64]) -> Option<f64> {
    let positive = sample.iter().chain(other).all(|value| *value > 0.0);
    let middle = |values: &[f64]| match positive {
        true => moments(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).0.exp(),
        false => moments(values).0,
    };
    let below = middle(other);
    let ratio = middle(sample) / below;
    (below > 0.0 && ratio.is_finite()).then_some(ratio)
}

/// The error of a sum of independent parts, each with its squared error and degrees of freedom (Satterthwaite).
fn together(parts: &[(f64, f64)]) -> (f64, f64) {
    let squared: f64 = parts.iter().map(|(squared, _)| squared).sum();
    let apart: f64 = parts.iter().map(|(squared, freedom)| squared.powi(2) / freedom).sum();
    (squared.sqrt(), squared.powi(2) / apart)
}

/// The smallest difference of two arms, in the mean of so many cells, that is found in four of five cases, as a share: cells of so many
/// repeats, whose coefficient of variation is this, and intervals that miss with this probability. Welch's degrees of freedom lie
/// between those of one arm and those of both: one less than those of both is about what they are. `None` with fewer than two
/// repeats.
pub fn detectable(repeats: u32, cells: usize, variation: f64, miss: f64) -> Option<f64> {
    let (count, cells, spread) = (f64::from(repeats), cells as f64, variation.max(RESOLUTION));
    let error = (2.0 / count / cells).sqrt() * spread;
    let freedom = (2.0 * count - 3.0) * cells;
    let difference = Difference { log: 0.0, error, freedom, slack: (0.0, 0.0) };
    (repeats > 1).then(|| difference.detectable(miss)).flatten()
}

/// The same of one cell, of values that are compared in pairs ([`Difference::paired`]).
pub fn detectable_in_pairs(pairs: u32, variation: f64, miss: f64) -> Option<f64> {
    let count = f64::from(pairs);
    let error = (2.0 / count).sqrt() * variation.max(RESOLUTION);
    let difference = Difference { log: 0.0, error, freedom: count - 1.0, slack: (0.0, 0.0) };
    (pairs > 1).then(|| difference.detectable(miss)).flatten()
}

/// The places of values that lie apart from the others: those whose modified z-score, 0.6745 (value - median) / MAD, is above
/// 3.5 (Iglewicz and Hoaglin, 1993), with the MAD widened for small samples (Croux and Rousseeuw, Computational Statistics
/// 1, 1992). Needs at least four values; within 2 % of the median nothing is an outlier.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    if values.len() < OUTLIER_VALUES {
        return Vec::new();
    }
    let middle = median(values);
    let apart: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let spread = median(&apart) * small_sample_factor(values.len());
    let limit = (OUTLIER_SCORE * spread / 0.6745).max(OUTLIER_LEAST * middle.abs());
    (0..values.len()).filter(|index| apart[*index] > limit).collect()
}

fn small_sample_factor(count: usize) -> f64 {
    const FACTORS: [f64; 6] = [1.363, 1.206, 1.200, 1.140, 1.129, 1.107];
    let large = count as f64 / (count as f64 - 0.8);
    count.checked_sub(OUTLIER_VALUES).and_then(|index| FACTORS.get(index)).copied().unwrap_or(large)
}

/// How many repeats it takes until the interval of a mean reaches no further than `half_width` to each side (a share of the
/// mean), if the coefficient of variation stays as it is. At most 1,000.
pub fn repeats_needed(variation: f64, half_width: f64) -> u32 {
    let wide = |count: &u32| {
        let t = t_quantile((1.0 + CONFIDENCE) / 2.0, f64::from(count - 1)).unwrap_or(f64::INFINITY);
        t * variation / f64::from(*count).sqrt() > half_width
    };
    (2..REPEATS_MOST).find(|count| !wide(count)).unwrap_or(REPEATS_MOST)
}

/// The value that Student's t does not exceed with this probability; `None` without degrees of freedom.
pub fn t_quantile(probability: f64, freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(probability))
}

/// The probability that Student's t is as far from zero as this, or further; `None` without degrees of freedom.
pub fn two_sided(t: f64, freedom: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    (!t.is_nan()).then(|| (2.0 * distribution.cdf(-t.abs())).min(1.0))
}

/// How steep the straight line through points (x, y) is, and the bounds of its 95 % interval: least squares, with independent residuals of
/// one variance. `None` of fewer than 3 points, or of points of one x.
pub fn slope(points: &[(f64, f64)]) -> Option<(f64, f64, f64)> {
    let freedom = points.len().checked_sub(2).filter(|freedom| *freedom > 0)? as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let squares: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / squares;
    let left: f64 = points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum();
    let half = t_quantile((1.0 + CONFIDENCE) / 2.0, freedom)? * (left / freedom / squares).sqrt();
    (slope.is_finite() && half.is_finite()).then_some((slope, slope - half, slope + half))
}

/// Mean and sample standard deviation, which is 0 for a single value.
pub(crate) fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 })
}

/// The median of at least one value.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidemark_measure::rng::Rng;

    const TRIALS: u64 = 2_000;

    #[test]
    fn a_line_has_the_slope_and_the_interval_of_the_textbook() {
        // Residuals 1, -2, 1: their sum of squares is 6, with one degree of freedom; that of x is 2; t is 12.706.
        let (slope, low, high) = slope(&[(1.0, 11.0), (2.0, 18.0), (3.0, 31.0)]).unwrap();
        assert!((slope - 10.0).abs() < 1e-9 && (high - low - 2.0 * 12.706 * 3f64.sqrt()).abs() < 0.01);
        assert_eq!(super::slope(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(super::slope(&[(1.0, 1.0); 5]), None);
    }

    /// Normal numbers (Box and Muller, 1958) around 1 000, spread by a share of it.
    fn sample(rng: &mut Rng, count: usize, mean: f64, share: f64) -> Vec<f64> {
        let normal = |rng: &mut Rng| {
            let (radius, angle) = ((1.0 - rng.unit()).ln() * -2.0, rng.unit() * std::f64::consts::TAU);
            radius.sqrt() * angle.cos()
        };
        (0..count).map(|_| mean * (1.0 + share * normal(rng))).collect()
    }

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (freedom, value) in
            [(1.0, 12.7062), (2.0, 4.30265), (4.0, 2.77645), (9.0, 2.26216), (30.0, 2.04227)]
        {
            let quantile = t_quantile(0.975, freedom).unwrap();
            assert!((quantile - value).abs() < 1e-4, "{freedom}: {quantile}");
            assert!((two_sided(value, freedom).unwrap() - 0.05).abs() < 1e-5);
        }
        assert_eq!(t_quantile(0.975, 0.0), None);
        assert!(two_sided(40.0, 30.0).unwrap() > 0.0, "the far tail is not rounded to nothing");
    }

    #[test]
    fn intervals_cover_the_truth() {
        for repeats in [3, 5, 10] {
            let mut rng = Rng::new(4, &[repeats as u64]);
            let covers = |_: &u64| {
                let values = sample(&mut rng, repeats, 1_000.0, 0.03);
                estimate(values).interval.is_some_and(|(low, high)| (low..=high).contains(&1_000.0))
            };
            let share = (0..TRIALS).filter(covers).count() as f64 / TRIALS as f64;
            println!(
                "{repeats} repeats: the interval of the mean covers the truth in {:.2} %",
                share * 100.0
            );
            assert!((0.93..=0.97).contains(&share), "{share}");
        }
    }

    #[test]
    fn intervals_of_ratios_cover_the_truth() {
        for repeats in [3, 5, 10] {
            let mut rng = Rng::new(5, &[repeats as u64]);
            let covers = |_: &u64| {
                let (fast, slow) =
                    (sample(&mut rng, repeats, 1_200.0, 0.03), sample(&mut rng, repeats, 1_000.0, 0.03));
                let found = Difference::between(&fast, &slow).unwrap().interval(SIGNIFICANT);
                found.is_some_and(|(low, high)| (low..=high).contains(&1.2))
            };
            let share = (0..TRIALS).filter(covers).count() as f64 / TRIALS as f64;
            println!(
                "{repeats} repeats: the interval of the ratio covers the truth in {:.2} %",
                share * 100.0
            );
            assert!((0.93..=0.97).contains(&share), "{share}");
        }
    }

    /// The family's difference of two arms, cell by cell.
    fn family(rng: &mut Rng, repeats: usize, cells: usize, truth: f64, noise: f64) -> Vec<Difference> {
        let difference = |_| {
            let arm = sample(rng, repeats, 1_000.0 * truth, noise);
            Difference::between(&arm, &sample(rng, repeats, 1_000.0, noise)).unwrap()
        };
        (0..cells).map(difference).collect()
    }

    #[test]
    fn a_difference_called_detectable_is_found_in_four_of_five_cases() {
        for (repeats, noise) in [(3, 0.02), (5, 0.05), (10, 0.05)] {
            let truth = 1.0 + detectable(repeats as u32, 1, noise, SIGNIFICANT).unwrap();
            let mut rng = Rng::new(3, &[repeats as u64]);
            let found = |_: &u64| family(&mut rng, repeats, 1, truth, noise)[0].p().unwrap() < SIGNIFICANT;
            let share = (0..TRIALS).filter(found).count() as f64 / TRIALS as f64;
            println!("{repeats} repeats, noise {noise}: x{truth:.3} found in {:.1} %", share * 100.0);
            assert!((0.72..=0.88).contains(&share), "{share}");
        }
    }

    #[test]
    fn pairs_stand_a_drift_that_hides_the_difference_from_samples() {
        let mut rng = Rng::new(11, &[]);
        let (mut paired, mut apart, mut wrong) = (0, 0, 0);
        for _ in 0..TRIALS {
            // The machine becomes three times as slow, while one side is 20 % faster.
            let drift = |index: usize| 3f64.powf(-(index as f64) / 7.0);
            let pairs = |rng: &mut Rng, truth: f64| -> Vec<(f64, f64)> {
                let (own, other) = (sample(rng, 8, truth, 0.05), sample(rng, 8, 1.0, 0.05));
                let pairs = own.into_iter().zip(other).enumerate();
                pairs.map(|(index, (own, other))| (own * drift(index), other * drift(index))).collect()
            };
            let better = pairs(&mut rng, 1.2);
            let found = Difference::paired(&better).unwrap();
            let (own, other): (Vec<f64>, Vec<f64>) = better.into_iter().unzip();
            let is_found = |difference: Difference| u64::from(difference.p().unwrap() < SIGNIFICANT);
            paired += is_found(found);
            apart += is_found(Difference::between(&own, &other).unwrap());
            wrong += is_found(Difference::paired(&pairs(&mut rng, 1.0)).unwrap());
        }
        println!(
            "20 % more under a drift to a third: found in pairs {paired}, apart {apart}, of {TRIALS}; wrong {wrong}"
        );
        assert!(paired > TRIALS * 95 / 100 && apart < TRIALS / 10, "{paired} {apart}");
        assert!(wrong <= TRIALS * 65 / 1000, "{wrong}: three standard errors above 5 %");
        assert_eq!(Difference::paired(&[(1.0, 2.0)]), None);
        assert_eq!(Difference::paired(&[(1.0, 2.0), (0.0, 2.0)]), None);
        assert!(Difference::paired(&[(5.003, 5.0); 5]).unwrap().p().unwrap() > SIGNIFICANT / 2.0);
    }

    #[test]
    fn what_pairs_are_said_to_detect_is_found_in_four_of_five_cases() {
        for (pairs, noise) in [(5, 0.02), (10, 0.1)] {
            let truth = 1.0 + detectable_in_pairs(pairs, noise, SIGNIFICANT).unwrap();
            let mut rng = Rng::new(12, &[u64::from(pairs)]);
            let found = |_: &u64| {
                let own = sample(&mut rng, pairs as usize, truth, noise);
                let other = sample(&mut rng, pairs as usize, 1.0, noise);
                let pairs: Vec<(f64, f64)> = own.into_iter().zip(other).collect();
                Difference::paired(&pairs).unwrap().p().unwrap() < SIGNIFICANT
            };
            let share = (0..TRIALS).filter(found).count() as f64 / TRIALS as f64;
            assert!((0.72..=0.88).contains(&share), "{share}");
        }
    }

    #[test]
    fn the_mean_of_cells_finds_what_no_cell_does() {
        let mut rng = Rng::new(8, &[]);
        let (mut single, mut all, mut wrong) = (0, 0, 0);
        for _ in 0..TRIALS {
            let cells = family(&mut rng, 5, 6, 0.95, 0.05);
            let mean = Difference::mean(&cells).unwrap();
            single += u64::from(cells[0].p().unwrap() < SIGNIFICANT);
            all += u64::from(mean.p().unwrap() < SIGNIFICANT);
            let equal = Difference::mean(&family(&mut rng, 3, 6, 1.0, 0.05)).unwrap();
            wrong += u64::from(equal.p().unwrap() < SIGNIFICANT);
        }
        println!(
            "5 % less, noise 5 %, 5 repeats: found in one cell {single}, in the mean of six {all}, of {TRIALS}"
        );
        assert!(all > 2 * single && all > TRIALS * 8 / 10, "{single} {all}");
        assert!(wrong <= TRIALS * 6 / 100, "{wrong}: six standard errors above 5 % would be 7.9 %");
        assert_eq!(Difference::mean(&[]), None);
    }

    #[test]
    fn estimates() {
        let estimate_of_three = estimate(vec![90.0, 110.0, 100.0]);
        assert_eq!((estimate_of_three.mean, estimate_of_three.median), (100.0, 100.0));
        let (low, high) = estimate_of_three.interval.unwrap();
        assert!(
            (high - 100.0 - 4.302_65 * 10.0 / 3f64.sqrt()).abs() < 1e-3
                && (100.0 - low - (high - 100.0)).abs() < 1e-9
        );
        assert!((estimate_of_three.variation - 0.1).abs() < 1e-12);
        assert_eq!(estimate(vec![5.0]).interval, None);
        assert_eq!(estimate(vec![f64::NAN, 7.0]).values, [7.0]);
        assert_eq!(estimate(vec![]), Estimate::default());
        assert_eq!(estimate(vec![-1.0, 1.0]).variation, 0.0);
    }

    #[test]
    fn outliers_lie_apart_from_the_others() {
        assert_eq!(outliers(&[100.0, 101.0, 99.0, 150.0]), [3]);
        assert_eq!(outliers(&[100.0, 100.0, 60.0]), [0usize; 0], "three values have no majority");
        assert_eq!(outliers(&[100.0, 100.0, 100.0, 101.5, 100.0]), [0usize; 0], "1.5 % is nothing");
        assert_eq!(outliers(&[100.0, 100.0, 100.0, 103.0, 100.0]), [3]);
        assert_eq!(outliers(&[90.0, 95.0, 100.0, 105.0, 110.0]), [0usize; 0]);
    }

    #[test]
    fn values_without_spread_or_without_logarithms_do_not_break_it() {
        let p = |sample: &[f64], other: &[f64]| Difference::between(sample, other)?.p();
        assert_eq!(p(&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0]), Some(1.0));
        let close = p(&[5.004, 5.004, 5.004], &[5.0, 5.0, 5.0]).unwrap();
        assert!(close > SIGNIFICANT, "less than what histograms resolve: {close}");
        assert!(p(&[6.0, 6.0, 6.0], &[5.0, 5.0, 5.0]).unwrap() < 1e-6);
        assert_eq!(p(&[0.0, 0.0], &[5.0, 5.0]), None);
        assert_eq!(p(&[], &[1.0]), None);
        assert_eq!(p(&[6.0], &[5.0, 5.0]), None);
        assert_eq!(ratio(&[0.0, 0.0], &[5.0, 5.0]), Some(0.0));
        assert!((ratio(&[8.0], &[2.0, 8.0]).unwrap() - 2.0).abs() < 1e-9, "geometric");
        assert_eq!((ratio(&[1.0, 2.0], &[0.0, 0.0]), ratio(&[], &[1.0])), (None, None));
    }

    #[test]
    fn what_repeats_do_not_show_widens_interval_and_probability_alike() {
        let found = Difference::between(&[105.0, 106.0, 104.0], &[100.0, 101.0, 99.0]).unwrap();
        assert!(found.p().unwrap() < SIGNIFICANT);
        let known = found.widened(1.05, 1.0);
        let (low, _) = known.interval(SIGNIFICANT).unwrap();
        assert!(known.p().unwrap() > SIGNIFICANT && low < 1.0, "{low}");
        assert_eq!(found.widened(1.0, 1.05).p(), found.p(), "higher, not lower");
    }

    #[test]
    fn wider_spread_needs_more_repeats() {
        // t(0.975, 17) x 10 % / sqrt(18) = 4.97 %; with 17 it is 5.14 %.
        assert_eq!(repeats_needed(0.10, 0.05), 18);
        assert_eq!(repeats_needed(0.0, 0.05), 2);
        assert_eq!(repeats_needed(100.0, 0.05), REPEATS_MOST);
    }

    proptest! {
        #[test]
        fn no_numbers_break_it(left in prop::collection::vec(any::<f64>(), 0..8), right in prop::collection::vec(any::<f64>(), 0..8)) {
            let own = estimate(left.clone());
            prop_assert!(own.outliers.iter().all(|index| *index < own.values.len()));
            if let Some(found) = Difference::between(&left, &right) {
                prop_assert!(found.p().is_none_or(|p| (0.0..=1.0).contains(&p)), "{found:?}");
                let excludes = found.interval(SIGNIFICANT).map(|(low, high)| low > 1.0 || high < 1.0);
                prop_assert_eq!(found.p().map(|p| p < SIGNIFICANT), excludes, "{:?}", found);
            }
        }
    }
}
