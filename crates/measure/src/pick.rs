//! Distributions and selectors over whole numbers, and how workers share them.
//!
//! A [`Pick`] defines how numbers are chosen; a [`Cursor`] is one worker's way through it. All bounds are
//! inclusive. A worker's choices depend on the pick, its [`Part`] and its random stream alone, so a work
//! makes the same choices however its workers are spread over threads and drivers.

use crate::rng::Rng;
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};

/// How a number is chosen: containers, objects, sizes, offsets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Pick {
    /// Always the same.
    Constant(u64),
    /// All equally likely.
    Uniform {
        /// Lowest.
        low: u64,
        /// Highest.
        high: u64,
    },
    /// One after the other, from the lowest, and again from the start. Workers that share it take turns;
    /// divided, each has its own slice (COSBench `r(a,b)`).
    Sequence {
        /// First.
        low: u64,
        /// Last.
        high: u64,
    },
    /// As a sequence, but never divided: workers always take turns (COSBench `s(a,b)`).
    Shared {
        /// First.
        low: u64,
        /// Last.
        high: u64,
    },
    /// Weighted ranges, uniform inside each (COSBench `h(...)`).
    Weighted(Vec<Bucket>),
    /// Popularity by rank: the k-th of them with a probability proportional to 1 / k^exponent. Ranks are
    /// scattered over the range, so that popular keys are not neighbours.
    Zipf {
        /// Lowest.
        low: u64,
        /// Highest.
        high: u64,
        /// Above 0; 0.99 is YCSB's.
        exponent: f64,
    },
    /// A share of the range, its lowest part, gets a share of the picks; both uniform inside.
    Hotspot {
        /// Lowest.
        low: u64,
        /// Highest.
        high: u64,
        /// Share of the range that is hot, 0 to 1.
        hot_share: f64,
        /// Share of the picks that go there, 0 to 1.
        hot_weight: f64,
    },
    /// Popularity by age: the highest number is the newest and the most popular, Zipf-like.
    Latest {
        /// Lowest.
        low: u64,
        /// Highest.
        high: u64,
        /// As for `Zipf`.
        exponent: f64,
    },
    /// Log-normal, cut to the bounds: what file sizes look like.
    LogNormal {
        /// The median.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Lowest.
        low: u64,
        /// Highest.
        high: u64,
    },
}

/// One weighted range of [`Pick::Weighted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Lowest.
    pub low: u64,
    /// Highest.
    pub high: u64,
    /// Relative weight.
    pub weight: u64,
}

/// Which of how many equal workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub index: u32,
    /// At least 1.
    pub of: u32,
}

impl Part {
    /// The only worker.
    pub const WHOLE: Part = Part { index: 0, of: 1 };

    /// This part of a count: the shares add up to it exactly, the first ones take the remainder.
    pub fn share(self, total: u64) -> u64 {
        let (of, index) = (u64::from(self.of), u64::from(self.index));
        total / of + u64::from(index < total % of)
    }

    /// This part of a range, as COSBench cuts it: contiguous, the first ones one longer. `None` when there
    /// are more parts than numbers and nothing is left for this one.
    pub fn slice(self, low: u64, high: u64) -> Option<(u64, u64)> {
        let total = (high + 1).saturating_sub(low);
        let (of, index) = (u64::from(self.of), u64::from(self.index));
        let length = self.share(total);
        let start = low + index * (total / of) + index.min(total % of);
        (length > 0).then(|| (start, start + length - 1))
    }
}

impl Pick {
    /// Lowest and highest number it can give.
    pub fn bounds(&self) -> (u64, u64) {
        match self {
            Pick::Constant(value) => (*value, *value),
            Pick::Uniform { low, high }
            | Pick::Sequence { low, high }
            | Pick::Shared { low, high }
            | Pick::Zipf { low, high, .. }
            | Pick::Hotspot { low, high, .. }
            | Pick::Latest { low, high, .. }
            | Pick::LogNormal { low, high, .. } => (*low, *high),
            Pick::Weighted(buckets) => (
                buckets.iter().map(|bucket| bucket.low).min().unwrap_or(0),
                buckets.iter().map(|bucket| bucket.high).max().unwrap_or(0),
            ),
        }
    }

    /// How many different numbers it can give, at most.
    pub fn count(&self) -> u64 {
        let (low, high) = self.bounds();
        (high + 1).saturating_sub(low)
    }

    /// The mean of what it gives; exact but for `Zipf`, `Latest` and `LogNormal`, where the bounds are ignored.
    pub fn mean(&self) -> f64 {
        let middle = |low: u64, high: u64| (low as f64 + high as f64) / 2.0;
        match self {
            Pick::Weighted(buckets) => {
                let weights: u64 = buckets.iter().map(|bucket| bucket.weight).sum();
                let sum: f64 = buckets.iter().map(|b| b.weight as f64 * middle(b.low, b.high)).sum();
                sum / weights.max(1) as f64
            }
            Pick::LogNormal { median, sigma, .. } => median * (sigma * sigma / 2.0).exp(),
            _ => {
                let (low, high) = self.bounds();
                middle(low, high)
            }
        }
    }

    /// The pick narrowed to one worker's part of its range (COSBench's *division*). `Constant` and `Shared`
    /// stay whole; `None` when nothing is left for this worker.
    pub fn divided(&self, part: Part) -> Option<Pick> {
        let mut own = self.clone();
        match &mut own {
            Pick::Constant(_) | Pick::Shared { .. } | Pick::Weighted(_) | Pick::LogNormal { .. } => {}
            Pick::Uniform { low, high }
            | Pick::Sequence { low, high }
            | Pick::Zipf { low, high, .. }
            | Pick::Hotspot { low, high, .. }
            | Pick::Latest { low, high, .. } => (*low, *high) = part.slice(*low, *high)?,
        }
        Some(own)
    }

    /// One worker's way through it. `turn` is the worker's place among those that share a sequence.
    pub fn cursor(&self, turn: Part) -> Cursor {
        let (low, high) = self.bounds();
        let way = match self {
            Pick::Constant(_) => Way::Constant,
            Pick::Uniform { .. } => Way::Uniform,
            Pick::Sequence { .. } | Pick::Shared { .. } => {
                Way::Turns { next: u64::from(turn.index), step: u64::from(turn.of) }
            }
            Pick::Weighted(buckets) => Way::Weighted {
                buckets: buckets.clone(),
                total: buckets.iter().map(|bucket| bucket.weight).sum(),
            },
            Pick::Zipf { exponent, .. } => {
                Way::Zipf { ranks: ranks(self.count(), *exponent), scatter: Some(factor(self.count())) }
            }
            Pick::Latest { exponent, .. } => {
                Way::Zipf { ranks: ranks(self.count(), *exponent), scatter: None }
            }
            Pick::Hotspot { hot_share, hot_weight, .. } => Way::Hotspot {
                hot: ((self.count() as f64 * hot_share).round() as u64).clamp(1, self.count().max(1)),
                weight: *hot_weight,
            },
            Pick::LogNormal { median, sigma, .. } => Way::LogNormal(
                rand_distr::LogNormal::new(median.max(f64::MIN_POSITIVE).ln(), sigma.max(0.0))
                    .unwrap_or_else(|_| {
                        rand_distr::LogNormal::new(0.0, 1.0).expect("one is a valid deviation")
                    }),
            ),
        };
        Cursor { low, count: (high + 1).saturating_sub(low), way }
    }
}

fn ranks(count: u64, exponent: f64) -> rand_distr::Zipf<f64> {
    let exponent = if exponent.is_finite() && exponent >= 0.0 { exponent } else { 1.0 };
    rand_distr::Zipf::new(count.max(1) as f64, exponent).expect("at least one rank and a finite exponent")
}

/// One worker's way through a [`Pick`].
#[derive(Clone, Debug)]
pub struct Cursor {
    low: u64,
    count: u64,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Constant,
    Uniform,
    Turns { next: u64, step: u64 },
    Weighted { buckets: Vec<Bucket>, total: u64 },
    Zipf { ranks: rand_distr::Zipf<f64>, scatter: Option<u64> },
    Hotspot { hot: u64, weight: f64 },
    LogNormal(rand_distr::LogNormal<f64>),
}

impl Cursor {
    /// The next number.
    #[inline]
    pub fn next(&mut self, rng: &mut Rng) -> u64 {
        let (low, count) = (self.low, self.count);
        match &mut self.way {
            Way::Constant => low,
            Way::Uniform => low + rng.below(count),
            Way::Turns { next, step } => {
                let value = low + *next % count.max(1);
                *next = (*next + *step) % count.max(1).saturating_mul(*step);
                value
            }
            Way::Weighted { buckets, total } => {
                let mut left = rng.below(*total);
                for bucket in buckets.iter() {
                    if left < bucket.weight {
                        return bucket.low + rng.below(bucket.high + 1 - bucket.low);
                    }
                    left -= bucket.weight;
                }
                low
            }
            Way::Zipf { ranks, scatter } => {
                let rank = ((ranks.sample(&mut Source(rng)) as u64).max(1) - 1).min(count.saturating_sub(1));
                match scatter {
                    Some(factor) => low + scattered(rank, *factor, count),
                    None => low + (count - 1 - rank),
                }
            }
            Way::Hotspot { hot, weight } => {
                let cold = count - *hot;
                if cold == 0 || rng.unit() < *weight {
                    low + rng.below(*hot)
                } else {
                    low + *hot + rng.below(cold)
                }
            }
            Way::LogNormal(distribution) => {
                let value = distribution.sample(&mut Source(rng));
                (value.round().max(0.0) as u64).clamp(low, low + count.saturating_sub(1))
            }
        }
    }
}

/// The rank's place: a bijection of 0..count that sends neighbours far apart (Fibonacci hashing).
fn scattered(rank: u64, factor: u64, count: u64) -> u64 {
    ((u128::from(rank) * u128::from(factor)) % u128::from(count.max(1))) as u64
}

/// A number near `count` times the golden ratio that has no common divisor with `count`.
fn factor(count: u64) -> u64 {
    let mut factor = (count as f64 * 0.618_033_988_749_895) as u64 | 1;
    while gcd(factor, count) != 1 {
        factor += 1;
    }
    factor
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Our stream as a source for `rand_distr`.
struct Source<'a>(&'a mut Rng);

impl rand_core::TryRng for Source<'_> {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok((self.0.bits() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0.bits())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.bits().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn draw(pick: &Pick, count: usize) -> Vec<u64> {
        let (mut cursor, mut rng) = (pick.cursor(Part::WHOLE), Rng::new(42, &[]));
        (0..count).map(|_| cursor.next(&mut rng)).collect()
    }

    #[test]
    fn slices_are_cosbench_s() {
        let slice = |index| Part { index, of: 4 }.slice(1, 10).unwrap();
        assert_eq!([slice(0), slice(1), slice(2), slice(3)], [(1, 3), (4, 6), (7, 8), (9, 10)]);
        assert_eq!(Part { index: 5, of: 8 }.slice(1, 3), None);
    }

    #[test]
    fn workers_that_take_turns_cover_a_sequence() {
        let pick = Pick::Sequence { low: 1, high: 10 };
        let mut rng = Rng::new(0, &[]);
        let mut seen: Vec<u64> = (0..3)
            .flat_map(|index| {
                let mut cursor = pick.cursor(Part { index, of: 3 });
                (0..4).map(|_| cursor.next(&mut rng)).collect::<Vec<_>>()
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn weights_have_no_bias() {
        let bucket = |low, weight| Bucket { low, high: low, weight };
        let drawn = draw(&Pick::Weighted(vec![bucket(1, 10), bucket(2, 20), bucket(3, 30)]), 600_000);
        for (value, expected) in [(1, 100_000f64), (2, 200_000.0), (3, 300_000.0)] {
            let count = drawn.iter().filter(|drawn| **drawn == value).count() as f64;
            assert!((count / expected - 1.0).abs() < 0.02, "{value}: {count}");
        }
    }

    #[test]
    fn popularity_is_skewed_as_named() {
        let zipf = draw(&Pick::Zipf { low: 1, high: 1000, exponent: 1.0 }, 100_000);
        let mut counts = std::collections::HashMap::new();
        zipf.iter().for_each(|value| *counts.entry(*value).or_insert(0u32) += 1);
        // The most popular of 1,000 keys at exponent 1 gets 1 / H(1000) = 13.4 % of the picks.
        let top = *counts.values().max().unwrap();
        assert!((12_500..14_300).contains(&top), "{top}");
        let hot = draw(&Pick::Hotspot { low: 1, high: 100, hot_share: 0.1, hot_weight: 0.9 }, 100_000);
        let hits = hot.iter().filter(|value| **value <= 10).count();
        assert!((89_000..91_000).contains(&hits), "{hits}");
        let latest = draw(&Pick::Latest { low: 1, high: 100, exponent: 1.0 }, 10_000);
        let newest = latest.iter().filter(|value| **value == 100).count();
        assert!((1_700..2_200).contains(&newest), "1 / H(100) = 19.3 %: {newest}");
    }

    proptest! {
        #[test]
        fn parts_cover_a_range_once(low in 0u64..1000, count in 1u64..500, of in 1u32..64) {
            let mut covered = Vec::new();
            for index in 0..of {
                if let Some((a, b)) = (Part { index, of }).slice(low, low + count - 1) {
                    covered.extend(a..=b);
                }
            }
            prop_assert!(covered.into_iter().eq(low..low + count));
            prop_assert_eq!((0..of).map(|index| (Part { index, of }).share(count)).sum::<u64>(), count);
        }

        #[test]
        fn every_pick_stays_within_its_bounds(low in 0u64..1000, count in 1u64..500, kind in 0usize..7) {
            let high = low + count - 1;
            let pick = match kind {
                0 => Pick::Uniform { low, high },
                1 => Pick::Sequence { low, high },
                2 => Pick::Weighted(vec![Bucket { low, high, weight: 3 }]),
                3 => Pick::Zipf { low, high, exponent: 0.99 },
                4 => Pick::Latest { low, high, exponent: 1.2 },
                5 => Pick::Hotspot { low, high, hot_share: 0.2, hot_weight: 0.8 },
                _ => Pick::LogNormal { median: 50.0, sigma: 2.0, low, high },
            };
            for value in draw(&pick, 200) {
                prop_assert!((low..=high).contains(&value));
            }
        }

        #[test]
        fn scattering_is_a_bijection(count in 1u64..2000) {
            let mut seen: Vec<u64> = (0..count).map(|rank| scattered(rank, factor(count), count)).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..count));
        }
    }
}
