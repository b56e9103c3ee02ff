//! Steady state by the SNIA's rule.

/// Rounds that are looked at together (SNIA SSS PTS 2.0.2, 2.1.13: the measurement window).
pub const ROUNDS: usize = 5;

/// Highest less lowest may be this share of the average (2.1.24).
pub const RANGE_MOST: f64 = 0.2;

/// The rise of the best straight line over the rounds may be this share of the average (2.1.24).
pub const RISE_MOST: f64 = 0.1;

/// How much values vary, as shares of their average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Highest less lowest.
    pub range: f64,
    /// Rise of the best straight line from the first value to the last; negative when it falls.
    pub rise: f64,
}

impl Steadiness {
    /// That of some values; `None` with fewer than two, or an average of nothing.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n.max(1.0);
        if values.len() < 2 || mean <= 0.0 {
            return None;
        }
        let (low, high) = values
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        let middle = (n - 1.0) / 2.0;
        let (mut both, mut square) = (0.0, 0.0);
        for (index, value) in values.iter().enumerate() {
            let x = index as f64 - middle;
            both += x * (value - mean);
            square += x * x;
        }
        Some(Self { range: (high - low) / mean, rise: both / square * (n - 1.0) / mean })
    }

    /// Whether both are within the SNIA's limits.
    pub fn is_steady(&self) -> bool {
        self.range <= RANGE_MOST && self.rise.abs() <= RISE_MOST
    }
}

/// Whether the last [`ROUNDS`] of some rounds are steady.
pub fn reached(rounds: &[f64]) -> bool {
    let last = rounds.len().checked_sub(ROUNDS).map(|start| &rounds[start..]);
    last.and_then(Steadiness::of).is_some_and(|steadiness| steadiness.is_steady())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_and_rise_each_count() {
        assert!(reached(&[10.0, 200.0, 100.0, 95.0, 105.0, 100.0, 98.0]), "the first two do not count");
        assert!(!reached(&[100.0, 100.0, 100.0, 100.0]), "four rounds are not five");
        assert!(!reached(&[100.0, 100.0, 125.0, 100.0, 100.0]), "range 24 %");
        // A range of 16 % and a straight rise of as much.
        let rising = [92.0, 96.0, 100.0, 104.0, 108.0];
        let steadiness = Steadiness::of(&rising).unwrap();
        assert!((steadiness.range - 0.16).abs() < 1e-9 && (steadiness.rise - 0.16).abs() < 1e-9);
        assert!(!reached(&rising));
        assert!(!reached(&[0.0; 5]));
    }
}
