//! Think time: how long a worker of a closed loop pauses between two of its operations.

use crate::rng::Rng;
use crate::units;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A distribution of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// Always the same.
    Constant {
        /// Nanoseconds; 0: no pause.
        ns: u64,
    },
    /// All lengths between two bounds are equally likely.
    Uniform {
        /// The shortest, nanoseconds.
        low_ns: u64,
        /// The longest.
        high_ns: u64,
    },
    /// Exponential: many short pauses and a few long ones, as between the requests of independent users.
    Exponential {
        /// The mean, nanoseconds.
        mean_ns: u64,
    },
    /// As a person at a terminal: each kind of operation has a time to key it in and a time to think about what came.
    Terminal {
        /// The mean of both together over the mix, nanoseconds.
        mean_ns: u64,
    },
}

impl Default for Think {
    fn default() -> Self {
        Think::NONE
    }
}

impl Think {
    /// No pause.
    pub const NONE: Think = Think::Constant { ns: 0 };

    /// Whether there is no pause at all.
    pub fn is_none(&self) -> bool {
        *self == Think::NONE
    }

    /// The next pause, nanoseconds.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Think::Constant { ns } => ns,
            Think::Uniform { low_ns, high_ns } => {
                low_ns + rng.below(high_ns.saturating_sub(low_ns).saturating_add(1))
            }
            Think::Exponential { mean_ns } | Think::Terminal { mean_ns } => {
                (mean_ns as f64 * rng.exponential()) as u64
            }
        }
    }
}

/// For people: `100 ms`, `50.0 ms to 150 ms`, `100 ms on average, exponential`.
impl fmt::Display for Think {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let duration = units::duration_ns;
        match self {
            Think::Constant { ns } => write!(formatter, "{}", duration(*ns)),
            Think::Uniform { low_ns, high_ns } => {
                write!(formatter, "{} to {}", duration(*low_ns), duration(*high_ns))
            }
            Think::Exponential { mean_ns } => {
                write!(formatter, "{} on average, exponential", duration(*mean_ns))
            }
            Think::Terminal { mean_ns } => {
                write!(formatter, "{} on average, keying time included", duration(*mean_ns))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_the_moments_of_their_distributions() {
        let moments = |think: Think| {
            let mut rng = Rng::new(3, &[]);
            let all: Vec<f64> = (0..100_000).map(|_| think.draw(&mut rng) as f64 / 1e6).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / all.len() as f64;
            (mean, variance.sqrt())
        };
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.02;
        assert_eq!(moments(Think::Constant { ns: 7_000_000 }), (7.0, 0.0));
        let (mean, deviation) = moments(Think::Uniform { low_ns: 50_000_000, high_ns: 150_000_000 });
        assert!(near(mean, 100.0) && near(deviation, 100.0 / 12f64.sqrt()), "{mean} {deviation}");
        let (mean, deviation) = moments(Think::Exponential { mean_ns: 100_000_000 });
        assert!(near(mean, 100.0) && near(deviation, 100.0), "{mean} {deviation}");
    }

    #[test]
    fn odd_bounds_are_no_trouble() {
        let mut rng = Rng::new(3, &[]);
        Think::Uniform { low_ns: 0, high_ns: u64::MAX }.draw(&mut rng);
        assert_eq!(Think::Uniform { low_ns: 5, high_ns: 5 }.draw(&mut rng), 5);
        Think::Exponential { mean_ns: u64::MAX }.draw(&mut rng);
    }
}
