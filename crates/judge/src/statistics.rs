//! The arithmetic of few repeats: estimates with intervals, ratios with tests, and what many comparisons cost.
//!
//! Everything here is for samples of two to some dozen values that are positive and spread by a few percent. Student's
//! distribution carries the smallness of the sample; logarithms make "twice as much" and "half as much" equally far.

use crate::evaluation::Estimate;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// A probability below this, after correction, is called significant.
pub const SIGNIFICANT: f64 = 0.05;

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

/// How one sample compares with another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The first sample's geometric mean as a multiple of the second's.
    pub ratio: f64,
    /// Ends of the ratio's 95 % interval; `None` with fewer than two values on a side.
    pub interval: Option<(f64, f64)>,
    /// Hedges' g of the values as they are; see [`hedges_g`].
    pub effect: Option<f64>,
    /// Probability of a ratio as far from 1 or further if there were no difference; `None` as the interval.
    pub p: Option<f64>,
}

/// Compares two samples by Welch's test on logarithms (Welch, Biometrika 34, 1947; degrees of freedom by Satterthwaite,
/// 1946). Each side's standard deviation is taken for at least 0.1 %.
///
/// Logarithms need positive values: where one is zero or negative the ratio is that of the arithmetic means, and nothing is
/// tested. `None` where there is no ratio at all: an empty sample, or a second one whose mean is not above zero.
pub fn ratio(sample: &[f64], other: &[f64]) -> Option<Ratio> {
    let logs = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|value| (*value > 0.0 && value.is_finite()).then(|| value.ln())).collect()
    };
    if sample.is_empty() || other.is_empty() {
        return None;
    }
    let effect = hedges_g(sample, other);
    let (Some(sample_logs), Some(other_logs)) = (logs(sample), logs(other)) else {
        let (above, below) = (moments(sample).0, moments(other).0);
        let ratio = above / below;
        return (below > 0.0 && ratio.is_finite()).then_some(Ratio {
            ratio,
            interval: None,
            effect,
            p: None,
        });
    };
    let difference = moments(&sample_logs).0 - moments(&other_logs).0;
    let test = welch(&sample_logs, &other_logs);
    Some(Ratio {
        ratio: difference.exp(),
        interval: test
            .as_ref()
            .map(|test| ((difference - test.half_width).exp(), (difference + test.half_width).exp())),
        effect,
        p: test.map(|test| test.p),
    })
}

struct Welch {
    half_width: f64,
    p: f64,
}

/// Welch's test on two samples of logarithms; `None` with fewer than two values on a side.
fn welch(left: &[f64], right: &[f64]) -> Option<Welch> {
    let side = |values: &[f64]| {
        let (mean, deviation) = moments(values);
        let count = values.len() as f64;
        (mean, deviation.max(RESOLUTION).powi(2) / count, count - 1.0)
    };
    if left.len() < 2 || right.len() < 2 {
        return None;
    }
    let ((left, left_share, left_freedom), (right, right_share, right_freedom)) = (side(left), side(right));
    let squared = left_share + right_share;
    let freedom = squared.powi(2) / (left_share.powi(2) / left_freedom + right_share.powi(2) / right_freedom);
    let error = squared.sqrt();
    Some(Welch {
        half_width: t_quantile((1.0 + CONFIDENCE) / 2.0, freedom)? * error,
        p: two_sided((left - right) / error, freedom)?,
    })
}

/// The difference of two means in pooled standard deviations, corrected for small samples (Hedges, Journal of Educational
/// Statistics 6, 1981): with f = n + m - 2, g = (1 - 3 / (4 f - 1)) (mean - mean) / s. `None` with fewer than two values on a
/// side, or without spread.
pub fn hedges_g(sample: &[f64], other: &[f64]) -> Option<f64> {
    if sample.len() < 2 || other.len() < 2 {
        return None;
    }
    let ((above, above_deviation), (below, below_deviation)) = (moments(sample), moments(other));
    let (above_freedom, below_freedom) = ((sample.len() - 1) as f64, (other.len() - 1) as f64);
    let freedom = above_freedom + below_freedom;
    let squares = above_freedom * above_deviation.powi(2) + below_freedom * below_deviation.powi(2);
    let pooled = (squares / freedom).sqrt();
    let g = (1.0 - 3.0 / (4.0 * freedom - 1.0)) * (above - below) / pooled;
    (pooled > 0.0 && g.is_finite()).then_some(g)
}

/// Probabilities corrected for their number (Holm, Scandinavian Journal of Statistics 6, 1979), in the order given: that
/// any of the equal pairs is called different stays below what a single one's probability is compared with.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|left, right| probabilities[*left].total_cmp(&probabilities[*right]));
    let mut corrected = vec![1.0; probabilities.len()];
    let mut largest = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max(probabilities[index] * (probabilities.len() - rank) as f64).min(1.0);
        corrected[index] = largest;
    }
    corrected
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

/// Mean and sample standard deviation, which is 0 for a single value.
fn moments(values: &[f64]) -> (f64, f64) {
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
                ratio(&fast, &slow).unwrap().interval.is_some_and(|(low, high)| (low..=high).contains(&1.2))
            };
            let share = (0..TRIALS).filter(covers).count() as f64 / TRIALS as f64;
            println!(
                "{repeats} repeats: the interval of the ratio covers the truth in {:.2} %",
                share * 100.0
            );
            assert!((0.93..=0.97).contains(&share), "{share}");
        }
    }

    /// Share of trials in which any of `family` comparisons is significant after correction.
    fn called_different(seed: u64, repeats: usize, family: usize, truth: f64, noise: f64) -> f64 {
        let mut rng = Rng::new(seed, &[repeats as u64, family as u64]);
        let significant = |_: &u64| {
            let p: Vec<f64> = (0..family)
                .map(|_| {
                    let arm = sample(&mut rng, repeats, 1_000.0 * truth, noise);
                    ratio(&arm, &sample(&mut rng, repeats, 1_000.0, noise)).unwrap().p.unwrap()
                })
                .collect();
            holm(&p).iter().any(|p| *p < SIGNIFICANT)
        };
        (0..TRIALS).filter(significant).count() as f64 / TRIALS as f64
    }

    #[test]
    fn equal_arms_are_seldom_called_different() {
        for (repeats, family) in [(3, 1), (5, 1), (10, 1), (3, 6), (5, 6), (10, 6)] {
            let share = called_different(2, repeats, family, 1.0, 0.03);
            println!("{repeats} repeats, {family} comparisons: false significant in {:.2} %", share * 100.0);
            assert!(share <= 0.05, "{share}");
        }
    }

    #[test]
    fn a_fifth_is_found() {
        for (repeats, family, least) in [(5, 1, 0.999), (5, 6, 0.999), (3, 1, 0.95)] {
            let share = called_different(3, repeats, family, 1.2, 0.03);
            println!(
                "{repeats} repeats, {family} comparisons: a difference of 20 % found in {:.2} %",
                share * 100.0
            );
            assert!(share >= least, "{share}");
        }
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
    fn corrections_are_holms() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        let wanted = [0.03, 0.06, 0.06, 0.02];
        assert!(
            corrected.iter().zip(wanted).all(|(is, should)| (is - should).abs() < 1e-12),
            "{corrected:?}"
        );
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn effects_are_in_standard_deviations() {
        let g = hedges_g(&[12.0, 14.0, 16.0], &[8.0, 10.0, 12.0]).unwrap();
        assert!((g - 2.0 * (1.0 - 3.0 / 15.0)).abs() < 1e-12, "{g}");
        assert_eq!(hedges_g(&[1.0, 1.0], &[2.0, 2.0]), None);
        assert_eq!(hedges_g(&[1.0], &[2.0, 3.0]), None);
    }

    #[test]
    fn values_without_spread_or_without_logarithms_do_not_break_it() {
        let same = ratio(&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0]).unwrap();
        assert_eq!((same.ratio, same.p, same.effect), (1.0, Some(1.0), None));
        let close = ratio(&[5.004, 5.004, 5.004], &[5.0, 5.0, 5.0]).unwrap();
        assert!(close.p.unwrap() > SIGNIFICANT, "less than what histograms resolve: {close:?}");
        assert!(ratio(&[6.0, 6.0, 6.0], &[5.0, 5.0, 5.0]).unwrap().p.unwrap() < 1e-6);
        let zero = ratio(&[0.0, 0.0], &[5.0, 5.0]).unwrap();
        assert_eq!((zero.ratio, zero.interval, zero.p), (0.0, None, None));
        assert_eq!(ratio(&[1.0, 2.0], &[0.0, 0.0]), None);
        assert_eq!(ratio(&[], &[1.0]), None);
        let single = ratio(&[6.0], &[5.0, 5.0]).unwrap();
        assert_eq!((single.interval, single.p), (None, None));
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
            if let Some(found) = ratio(&left, &right) {
                prop_assert!(found.p.is_none_or(|p| (0.0..=1.0).contains(&p)), "{found:?}");
            }
        }
    }
}
