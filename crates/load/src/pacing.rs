//! When operations are due: pure arithmetic over elapsed time and counts, no clock.
//!
//! In a closed loop the next operation is due when the last one ended (plus think time). In an open loop
//! due times are fixed in advance, whatever the target does, so that waiting counts (no coordinated
//! omission). The rate may change over time; due times are found by inverting its integral.

use serde::{Deserialize, Serialize};
use tidemark_measure::pick::Part;
use tidemark_measure::rate::Pieces;
pub use tidemark_measure::rate::Rate;
use tidemark_measure::rng::Rng;
use tidemark_measure::think::Think;

/// When operations are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pacing {
    /// A worker issues its next operation when the last one ended, after a pause.
    Closed {
        /// The pauses between two operations of a worker.
        think: Think,
    },
    /// A closed loop whose pauses depend on the operations around them.
    Terminals {
        /// Their mean over the mix.
        mean_ns: u64,
        /// The pauses of each action.
        pauses: Vec<TerminalPause>,
    },
    /// Operations are due at times fixed in advance.
    Open {
        /// The rate of the whole work over time.
        rate: Rate,
        /// How due times spread around it.
        arrivals: Arrivals,
    },
}

impl Pacing {
    /// A closed loop without pauses.
    pub const BACK_TO_BACK: Pacing = Pacing::Closed { think: Think::NONE };

    /// The pauses of a worker between its operations: of a closed loop only.
    pub fn think(&self) -> Think {
        match self {
            Pacing::Closed { think } => *think,
            Pacing::Terminals { mean_ns, .. } => Think::Terminal { mean_ns: *mean_ns },
            Pacing::Open { .. } => Think::NONE,
        }
    }
}

/// What a person at a terminal spends around one kind of operation (TPC-C specification 5.11, clause 5.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalPause {
    /// On keying it in, nanoseconds: always the same.
    pub keying_ns: u64,
    /// On thinking about its result, nanoseconds: the mean of an exponential distribution.
    pub think_mean_ns: u64,
}

impl TerminalPause {
    /// A think time: exponential, cut at ten times its mean (clause 5.2.5.4).
    #[inline]
    pub fn think(&self, rng: &mut Rng) -> u64 {
        (self.think_mean_ns as f64 * rng.exponential().min(10.0)) as u64
    }
}

/// How the due times of an open loop spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As a Poisson process: independent of each other, as the requests of many users are.
    Poisson,
}

/// One worker's due times in an open loop, ascending.
///
/// Constant arrivals: worker k of n takes arrivals k, k + n, k + 2n ... of the whole work's. Poisson: the
/// superposition of n independent processes of rate 1/n is the process of the whole.
#[derive(Clone, Debug)]
pub struct Schedule {
    pieces: std::sync::Arc<Pieces>,
    piece: usize,
    count: f64,
    step: f64,
    arrivals: Arrivals,
}

impl Schedule {
    /// The schedules of all workers share one integral; this makes the first, [`Schedule::of_worker`] the others.
    pub fn new(rate: &Rate, arrivals: Arrivals) -> Self {
        Self { pieces: std::sync::Arc::new(Pieces::new(rate)), piece: 0, count: 0.0, step: 1.0, arrivals }
    }

    /// The schedule of one of the work's workers.
    pub fn of_worker(&self, part: Part, rng: &mut Rng) -> Self {
        let mut own = Self { step: f64::from(part.of), ..self.clone() };
        own.count = match self.arrivals {
            Arrivals::Constant => f64::from(part.index),
            Arrivals::Poisson => own.step * rng.exponential(),
        };
        own
    }

    /// The next due time, in nanoseconds since the work's start; `None` when the rate stays at zero.
    #[inline]
    pub fn next(&mut self, rng: &mut Rng) -> Option<u64> {
        let due = self.pieces.time_of(self.count, &mut self.piece);
        self.count += match self.arrivals {
            Arrivals::Constant => self.step,
            Arrivals::Poisson => self.step * rng.exponential(),
        };
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn all(rate: &Rate, arrivals: Arrivals, workers: u32, until: u64) -> Vec<u64> {
        let shared = Schedule::new(rate, arrivals);
        let mut due: Vec<u64> = (0..workers)
            .flat_map(|index| {
                let mut rng = Rng::new(9, &[u64::from(index)]);
                let mut own = shared.of_worker(Part { index, of: workers }, &mut rng);
                std::iter::from_fn(move || own.next(&mut rng).filter(|due| *due < until)).collect::<Vec<_>>()
            })
            .collect();
        due.sort_unstable();
        due
    }

    #[test]
    fn constant_arrivals_are_the_same_for_any_number_of_workers() {
        let rate = Rate::constant(1000.0);
        let one = all(&rate, Arrivals::Constant, 1, SECOND);
        assert_eq!(one.len(), 1000);
        assert_eq!(one[10], 10_000_000);
        assert_eq!(all(&rate, Arrivals::Constant, 7, SECOND), one);
    }

    #[test]
    fn a_ramp_is_the_integral_of_its_rate() {
        let rate = Rate { points: vec![(0, 0.0), (10 * SECOND, 1000.0)] };
        let due = all(&rate, Arrivals::Constant, 3, 10 * SECOND);
        assert_eq!(due.len(), 5000, "half of 1000/s for 10 s");
        let first_half = due.iter().filter(|due| **due < 5 * SECOND).count();
        assert_eq!(first_half, 1250, "a quarter of a triangle");
        let ramped = Rate::constant(1000.0).with_ramp(10 * SECOND);
        assert_eq!(all(&ramped, Arrivals::Constant, 3, 10 * SECOND), due);
        assert!((rate.due_between(5 * SECOND, 20 * SECOND) - 13_750.0).abs() < 1e-6);
    }

    #[test]
    fn steps_and_pauses() {
        let rate = Rate {
            points: vec![(0, 100.0), (SECOND, 100.0), (SECOND, 0.0), (3 * SECOND, 0.0), (3 * SECOND, 50.0)],
        };
        let due = all(&rate, Arrivals::Constant, 2, 5 * SECOND);
        assert_eq!(due.iter().filter(|due| **due < SECOND).count(), 100);
        assert_eq!(due.iter().filter(|due| (SECOND..3 * SECOND).contains(*due)).count(), 0);
        assert_eq!(due.iter().filter(|due| **due >= 3 * SECOND).count(), 100);
        assert!(all(&Rate::constant(0.0), Arrivals::Poisson, 2, SECOND).is_empty());
    }

    #[test]
    fn poisson_arrivals_are_as_dispersed_as_poisson() {
        let due = all(&Rate::constant(1000.0), Arrivals::Poisson, 10, 100 * SECOND);
        let mut counts = vec![0f64; 1000];
        due.iter().for_each(|due| counts[(due / (SECOND / 10)) as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / 1000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 999.0;
        assert!((99.0..101.0).contains(&mean), "{mean}");
        assert!((0.85..1.15).contains(&(variance / mean)), "index of dispersion {}", variance / mean);
    }
}
