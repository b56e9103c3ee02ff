//! The seeded random stream that every choice comes from.
//!
//! A stream is named by the run's seed and a path of numbers (stage, work, worker): the same document
//! with the same seed makes the same choices, however the workers are spread over threads and drivers.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers: xoshiro256++ (Blackman and Vigna, 2019).
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream named by `seed` and `path`.
    pub fn new(seed: u64, path: &[u64]) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(mix(seed, path)))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number from 0 to `bound - 1`, all equally likely; 0 when `bound` is 0.
    ///
    /// Lemire's multiplication without the rejection step: the bias is below 2^-32 for every bound under
    /// 2^32, far beneath what a benchmark can show.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 (included) to 1 (excluded), with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An exponential variate of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

/// One number out of a seed and a path of numbers; each step is the finaliser of SplitMix64 (Steele, Lea
/// and Flood, 2014), so that neighbouring paths give unrelated numbers.
pub fn mix(seed: u64, path: &[u64]) -> u64 {
    path.iter().fold(finalise(seed), |state, step| finalise(state ^ finalise(*step)))
}

#[inline]
fn finalise(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let take = |seed, path: &[u64]| {
            let mut rng = Rng::new(seed, path);
            [rng.bits(), rng.bits(), rng.bits()]
        };
        assert_eq!(take(7, &[1, 2]), take(7, &[1, 2]));
        assert_ne!(take(7, &[1, 2]), take(7, &[2, 1]));
        assert_ne!(take(7, &[1, 2]), take(8, &[1, 2]));
    }

    #[test]
    fn below_is_even() {
        let mut rng = Rng::new(1, &[]);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|_| counts[rng.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!(rng.below(0), 0);
    }
}
