//! How evenly the throughput of a load is shared by the endpoints or the instances that it runs on.

use tidemark_measure::record::Work;

/// The share that each of several had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fairness {
    /// Among how many.
    pub count: usize,
    /// Jain's index, (sum x)^2 / (n sum x^2): 1 where all had the same, 1/n where one had everything (R. Jain, D. Chiu, W. Hawe:
    /// A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared Computer Systems, DEC-TR-301, 1984).
    pub jain: f64,
    /// The smallest share of the sum, 0 to 1.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

/// The fairness of a work's throughput; `None` where there is nothing to share, or nobody to share it.
pub fn fairness(work: &Work) -> Option<Fairness> {
    let window = work.window_seconds();
    of(&work.endpoints.iter().map(|one| one.throughput(window)).collect::<Vec<_>>())
}

fn of(shares: &[f64]) -> Option<Fairness> {
    let (count, sum) = (shares.len(), shares.iter().sum::<f64>());
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if count < 2 || !(sum > 0.0 && sum.is_finite()) {
        return None;
    }
    let share = |pick: fn(f64, f64) -> f64| shares.iter().copied().reduce(pick).unwrap_or(0.0) / sum;
    let jain = sum * sum / (count as f64 * squares);
    Some(Fairness { count, jain, least: share(f64::min), most: share(f64::max) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jain(shares: &[f64]) -> Option<f64> {
        of(shares).map(|fairness| (fairness.jain * 1e6).round() / 1e6)
    }

    #[test]
    fn jains_index_is_one_among_equals_and_one_nth_for_a_monopoly() {
        assert_eq!(jain(&[7.0; 4]), Some(1.0));
        assert_eq!(jain(&[9.0, 0.0, 0.0, 0.0]), Some(0.25));
        // 100 / (4 * 30)
        assert_eq!(jain(&[1.0, 2.0, 3.0, 4.0]), Some(0.833333));
        let unequal = of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((unequal.count, unequal.least, unequal.most), (4, 0.1, 0.4));
        assert_eq!((jain(&[0.0, 0.0]), jain(&[1.0]), jain(&[])), (None, None, None));
        assert_eq!(jain(&[f64::INFINITY, 1.0]), None, "of a window without length");
    }
}
