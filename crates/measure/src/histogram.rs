//! HdrHistograms of nanoseconds: recorded on the hot path, merged by addition, stored in the V2 encoding.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Up to here a histogram has its memory from the start, nanoseconds: one hour. It grows by 8 KiB for every doubling when
/// something took longer.
const ROOM_NS: u64 = 3_600_000_000_000;

/// The largest latency that is distinguished, nanoseconds: 146 years. What claims to be longer counts as this.
pub const LONGEST_NS: u64 = (1 << 62) - 1;

/// Significant decimal digits: every recorded value is exact to 0.1 %.
pub const DIGITS: u8 = 3;

/// So few counts are added as they are kept, without an array of all buckets: most of what is added counted a handful.
const FEW: u64 = 64;

/// The percentiles that reports show, lowest first, as fractions.
pub const PERCENTILES: [f64; 9] = [0.50, 0.60, 0.80, 0.90, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// A histogram of nanoseconds with three significant digits, from 1 ns to [`LONGEST_NS`].
///
/// Its memory (about 270 kB) is taken when it counts for the first time, or is made [`ready`](Self::ready) to: records of
/// runs are full of histograms that never counted anything. After that recording does not allocate, but for an operation
/// of more than an hour that is the longest so far. Where counting is over, [`pack`](Self::pack) gives most of it back.
#[derive(Debug, Default)]
pub struct Histogram(Counts);

#[derive(Debug, Default)]
enum Counts {
    #[default]
    None,
    /// To count: an array of all buckets.
    Dense(hdrhistogram::Histogram<u64>),
    /// To keep: the buckets that counted something, as (lowest value, count), ascending.
    Packed(Box<[(u64, u64)]>),
}

/// Knows the bounds of every bucket, and counts nothing.
static BUCKETS: LazyLock<hdrhistogram::Histogram<u64>> = LazyLock::new(dense);

fn dense() -> hdrhistogram::Histogram<u64> {
    let inner = hdrhistogram::Histogram::new_with_bounds(1, ROOM_NS, DIGITS);
    let mut inner = inner.expect("the bounds are constants that HdrHistogram accepts");
    inner.auto(true);
    inner
}

/// A stored histogram could not be read back.
#[derive(Debug, thiserror::Error)]
#[error("a stored histogram is damaged: {0}")]
pub struct Damaged(String);

/// A copy has what was counted, without the memory that only counting needs: copies are made to be kept or sent.
impl Clone for Histogram {
    fn clone(&self) -> Self {
        match &self.0 {
            Counts::None => Self::default(),
            Counts::Dense(inner) => Self::packed(inner),
            Counts::Packed(buckets) => Self(Counts::Packed(buckets.clone())),
        }
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the memory now, so that no later count has to.
    pub fn ready(&mut self) {
        self.inner();
    }

    /// Gives back the memory that only counting needs. It can count again: then it takes it once more.
    pub fn pack(&mut self) {
        if let Counts::Dense(inner) = &self.0 {
            *self = Self::packed(inner);
        }
    }

    /// The memory of its counts, bytes.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Counts::None => 0,
            Counts::Dense(inner) => inner.distinct_values() * size_of::<u64>(),
            Counts::Packed(buckets) => size_of_val(&**buckets),
        }
    }

    fn packed(inner: &hdrhistogram::Histogram<u64>) -> Self {
        let mut buckets: Vec<(u64, u64)> = Vec::new();
        for step in inner.iter_recorded() {
            // Other programs may have had other buckets.
            let value_ns = lowest(inner.lowest_equivalent(step.value_iterated_to()));
            match buckets.last_mut() {
                Some((last, times)) if *last == value_ns => {
                    *times = times.saturating_add(step.count_at_value());
                }
                _ => buckets.push((value_ns, step.count_at_value())),
            }
        }
        Self(if buckets.is_empty() { Counts::None } else { Counts::Packed(buckets.into()) })
    }

    #[inline]
    fn inner(&mut self) -> &mut hdrhistogram::Histogram<u64> {
        if !matches!(self.0, Counts::Dense(_)) {
            self.0 = Counts::Dense(self.unpacked());
        }
        let Counts::Dense(inner) = &mut self.0 else { unreachable!("it has just been made dense") };
        inner
    }

    #[cold]
    fn unpacked(&self) -> hdrhistogram::Histogram<u64> {
        let mut inner = dense();
        if let Counts::Packed(buckets) = &self.0 {
            buckets.iter().for_each(|(value_ns, times)| count(&mut inner, *value_ns, *times));
        }
        inner
    }

    /// Counts one value, in nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        count(self.inner(), value_ns, 1);
    }

    /// Counts `times` values of `value_ns` nanoseconds.
    pub fn record_many(&mut self, value_ns: u64, times: u64) {
        count(self.inner(), value_ns, times);
    }

    /// Counts values (nanoseconds, how many), one after the other.
    pub(crate) fn record_all(&mut self, counted: impl Iterator<Item = (u64, u64)>) {
        let mut counted = counted.peekable();
        if counted.peek().is_some() {
            let inner = self.inner();
            counted.for_each(|(value_ns, times)| count(inner, value_ns, times));
        }
    }

    /// Adds every count of `other` to this histogram.
    pub fn add(&mut self, other: &Histogram) {
        match (&self.0, &other.0) {
            (_, Counts::None) => {}
            (_, Counts::Dense(other)) if other.is_empty() => {}
            (Counts::None, Counts::Dense(other)) if other.len() <= FEW => *self = Self::packed(other),
            (Counts::None, Counts::Packed(_)) => *self = other.clone(),
            (Counts::Packed(own), Counts::Packed(more)) if (own.len() + more.len()) as u64 <= FEW => {
                self.0 = Counts::Packed(joined(own, more));
            }
            (_, Counts::Dense(other)) => add(self.inner(), other),
            (_, Counts::Packed(buckets)) => self.record_all(buckets.iter().copied()),
        }
    }

    /// Forgets every count and keeps the memory.
    pub fn reset(&mut self) {
        match &mut self.0 {
            Counts::Dense(inner) if !inner.is_empty() => inner.reset(),
            Counts::Dense(_) | Counts::None => {}
            Counts::Packed(_) => self.0 = Counts::None,
        }
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Counts::None => 0,
            Counts::Dense(inner) => inner.len(),
            Counts::Packed(buckets) => buckets.iter().fold(0, |sum, (_, times)| sum.saturating_add(*times)),
        }
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The value, in nanoseconds, that a `fraction` (0 to 1) of the values do not exceed; 0 when empty.
    pub fn quantile(&self, fraction: f64) -> u64 {
        match &self.0 {
            Counts::None => 0,
            Counts::Dense(inner) if inner.is_empty() => 0,
            Counts::Dense(inner) => inner.value_at_quantile(fraction).min(inner.max()),
            Counts::Packed(buckets) => {
                // As HdrHistogram does it, of which the same answers are expected.
                let wanted = ((fraction.min(1.0) * self.count() as f64).ceil() as u64).max(1);
                let mut sum = 0u64;
                let found = buckets.iter().find(|(_, times)| {
                    sum = sum.saturating_add(*times);
                    sum >= wanted
                });
                let ends = if fraction == 0.0 { lowest } else { highest };
                found.or(buckets.last()).map_or(0, |(value_ns, _)| ends(*value_ns))
            }
        }
    }

    /// The arithmetic mean in nanoseconds; 0 when empty.
    pub fn mean(&self) -> f64 {
        match &self.0 {
            Counts::None => 0.0,
            Counts::Dense(inner) => inner.mean(),
            Counts::Packed(buckets) => {
                let count = self.count() as f64;
                let share = |(value_ns, times): &(u64, u64)| {
                    BUCKETS.median_equivalent(*value_ns) as f64 * *times as f64 / count
                };
                buckets.iter().map(share).sum()
            }
        }
    }

    /// The largest value in nanoseconds, to three digits; 0 when empty.
    pub fn max(&self) -> u64 {
        match &self.0 {
            Counts::None => 0,
            Counts::Dense(inner) => inner.max(),
            Counts::Packed(buckets) => buckets.last().map_or(0, |(value_ns, _)| highest(*value_ns)),
        }
    }

    /// The smallest value in nanoseconds, to three digits; 0 when empty.
    pub fn min(&self) -> u64 {
        match &self.0 {
            Counts::None => 0,
            Counts::Dense(inner) if inner.is_empty() => 0,
            Counts::Dense(inner) => inner.min(),
            Counts::Packed(buckets) => buckets.first().map_or(0, |(value_ns, _)| lowest(*value_ns)),
        }
    }

    /// How many values were at most `value_ns`.
    pub fn count_up_to(&self, value_ns: u64) -> u64 {
        match &self.0 {
            Counts::None => 0,
            Counts::Dense(inner) => inner.count_between(0, value_ns),
            Counts::Packed(buckets) => {
                let up_to = buckets.iter().take_while(|(lowest_ns, _)| *lowest_ns <= value_ns);
                up_to.fold(0, |sum, (_, times)| sum.saturating_add(*times))
            }
        }
    }

    /// The recorded buckets as (highest value in nanoseconds, count), ascending, empty ones left out.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (dense, packed) = match &self.0 {
            Counts::None => (None, None),
            Counts::Dense(inner) => (Some(inner), None),
            Counts::Packed(buckets) => (None, Some(buckets)),
        };
        let steps = dense.into_iter().flat_map(hdrhistogram::Histogram::iter_recorded);
        let dense = steps.map(|step| (step.value_iterated_to(), step.count_at_value()));
        let packed = packed.into_iter().flatten().map(|(value_ns, times)| (highest(*value_ns), *times));
        dense.chain(packed)
    }

    /// The standard HdrHistogram V2 encoding; of an empty one, nothing.
    pub fn to_v2(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut write = |inner: &hdrhistogram::Histogram<u64>| {
            V2Serializer::new().serialize(inner, &mut bytes).expect("writing to memory does not fail");
        };
        match &self.0 {
            Counts::None => {}
            Counts::Dense(inner) if inner.is_empty() => {}
            Counts::Dense(inner) => write(inner),
            Counts::Packed(_) => write(&self.unpacked()),
        }
        bytes
    }

    /// Reads the V2 encoding back.
    pub fn from_v2(mut bytes: &[u8]) -> Result<Self, Damaged> {
        if bytes.is_empty() {
            return Ok(Self::new());
        }
        let read: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes).map_err(|error| Damaged(error.to_string()))?;
        if read.max() > LONGEST_NS {
            return Err(Damaged("it counts latencies of centuries".into()));
        }
        Ok(Self::packed(&read))
    }
}

/// The buckets of two packed histograms as one's.
fn joined(own: &[(u64, u64)], more: &[(u64, u64)]) -> Box<[(u64, u64)]> {
    let mut all: Vec<(u64, u64)> = [own, more].concat();
    all.sort_unstable_by_key(|(value_ns, _)| *value_ns);
    all.dedup_by(|(value_ns, times), (kept_ns, sum)| {
        let same = value_ns == kept_ns;
        *sum = if same { sum.saturating_add(*times) } else { *sum };
        same
    });
    all.into()
}

/// The lowest value of a value's bucket.
fn lowest(value_ns: u64) -> u64 {
    BUCKETS.lowest_equivalent(value_ns)
}

/// The highest value of a value's bucket.
fn highest(value_ns: u64) -> u64 {
    BUCKETS.highest_equivalent(value_ns)
}

#[inline]
fn count(inner: &mut hdrhistogram::Histogram<u64>, value_ns: u64, times: u64) {
    inner.record_n(value_ns.min(LONGEST_NS), times).expect("a histogram grows with what it counts");
}

fn add(inner: &mut hdrhistogram::Histogram<u64>, other: &hdrhistogram::Histogram<u64>) {
    if other.max() > ROOM_NS {
        // Grown as if by recording: the same counts have the same encoding, whichever way they came.
        count(inner, other.max(), 0);
    }
    inner.add(other).expect("a histogram grows with what it counts");
}

/// In JSON a histogram is its V2 encoding in base 64; an empty one is the empty string.
impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(self.to_v2()))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
        Self::from_v2(&bytes).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_equals_recording_everything_in_one() {
        let (mut left, mut right, mut whole) = (Histogram::new(), Histogram::new(), Histogram::new());
        for value in 1..10_000u64 {
            let half = if value % 3 == 0 { &mut left } else { &mut right };
            half.record(value * value);
            whole.record(value * value);
        }
        left.add(&right);
        assert!(left.buckets().eq(whole.buckets()));
        assert_eq!(left.quantile(0.999), whole.quantile(0.999));
    }

    #[test]
    fn a_few_counts_are_added_without_all_buckets_to_the_same_sum() {
        let of = |values: &[u64]| {
            let mut one = Histogram::new();
            values.iter().for_each(|value| one.record(*value));
            one
        };
        let many: Vec<u64> = (1..200).map(|value| value * value).collect();
        let parts: [&[u64]; 5] = [&[5_000_000, 7], &[7, 30 * ROOM_NS], &[], &[5_000_001], &many];
        for packs in [false, true] {
            let mut sum = Histogram::new();
            for (index, part) in parts.iter().enumerate() {
                let mut part = of(part);
                if packs || index == 1 {
                    part.pack();
                }
                sum.add(&part);
                let is_packed = matches!(sum.0, Counts::Packed(_));
                assert_eq!(is_packed, index == 0 || packs && index < 4 || index < 3, "{packs} {index}");
            }
            assert!(sum.buckets().eq(of(&parts.concat()).buckets()));
            assert_eq!((sum.count(), sum.to_v2()), (204, of(&parts.concat()).to_v2()));
        }
    }

    #[test]
    fn v2_and_json_round_trip() {
        let mut histogram = Histogram::new();
        for value in [1, 1_000, 123_456_789, 20 * ROOM_NS] {
            histogram.record(value);
        }
        let json = serde_json::to_string(&histogram).unwrap();
        let back: Histogram = serde_json::from_str(&json).unwrap();
        assert!(back.buckets().eq(histogram.buckets()));
        assert_eq!(back.count(), 4);
        let empty: Histogram = serde_json::from_str("\"\"").unwrap();
        assert!(empty.is_empty());
        assert!(Histogram::from_v2(b"not a histogram").is_err());
        let mut beyond = hdrhistogram::Histogram::<u64>::new_with_bounds(1, u64::MAX, DIGITS).unwrap();
        beyond.record(u64::MAX).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&beyond, &mut bytes).unwrap();
        assert!(Histogram::from_v2(&bytes).is_err());
    }

    #[test]
    fn a_packed_histogram_answers_as_it_did() {
        let mut dense = Histogram::new();
        for value in 1..3_000u64 {
            dense.record_many(value.pow(3), value % 7);
        }
        dense.record(30 * ROOM_NS);
        dense.record(0);
        let mut packed = Histogram::new();
        packed.add(&dense);
        packed.pack();
        assert!(matches!(packed.0, Counts::Packed(_)));
        let fractions = [0.0, 1e-9, 0.1, 0.5, 0.75, 0.99, 0.999, 1.0];
        let answers = |one: &Histogram| {
            let up_to = [0, 1, 2_047, 5_000_000, ROOM_NS, u64::MAX].map(|value| one.count_up_to(value));
            (one.count(), one.min(), one.max(), fractions.map(|at| one.quantile(at)), up_to, one.to_v2())
        };
        assert_eq!(answers(&packed), answers(&dense));
        assert!((packed.mean() / dense.mean() - 1.0).abs() < 1e-9, "{} {}", packed.mean(), dense.mean());
        assert!(packed.buckets().eq(dense.buckets()));
        let copy = dense.clone();
        assert!(matches!((&copy.0, &dense.0), (Counts::Packed(_), Counts::Dense(_))), "a copy is to be kept");
        assert_eq!(answers(&copy), answers(&dense));
        let (mut once_more, mut twice) = (packed.clone(), Histogram::new());
        once_more.add(&packed);
        (0..2).for_each(|_| twice.add(&dense));
        assert_eq!(answers(&once_more), answers(&twice));
        let again = Histogram::from_v2(&dense.to_v2()).unwrap();
        assert_eq!(answers(&again), answers(&dense));
        let mut empty = Histogram::new();
        empty.ready();
        empty.pack();
        assert!(matches!(empty.0, Counts::None), "nothing was counted: nothing is kept");
    }

    #[test]
    fn operations_of_hours_are_as_exact_as_others_and_merge_with_them() {
        let hours = |count: u64| count * ROOM_NS;
        let (mut short, mut long) = (Histogram::new(), Histogram::new());
        (1..=100).for_each(|ms| short.record(ms * 1_000_000));
        [3, 30, 300].into_iter().for_each(|count| long.record(hours(count)));
        for (first, second) in [(&short, &long), (&long, &short)] {
            let mut both = first.clone();
            both.add(second);
            assert_eq!(both.count(), 103);
            assert_eq!(both.count_up_to(hours(1)), 100);
            let near = |fraction: f64, expected: u64| {
                let read = both.quantile(fraction) as f64;
                assert!((read / expected as f64 - 1.0).abs() < 0.001, "{fraction}: {read}");
            };
            near(0.5, 52_000_000);
            near(0.98, hours(3));
            near(1.0, hours(300));
            let mean = both.mean() / (333.0 * ROOM_NS as f64 / 103.0);
            assert!((mean - 1.0).abs() < 0.001, "{mean}");
            let again = Histogram::from_v2(&both.to_v2()).unwrap();
            assert_eq!((again.to_v2(), again.max()), (both.to_v2(), both.max()));
        }
        let mut nonsense = Histogram::new();
        nonsense.record(u64::MAX);
        assert_eq!((nonsense.count(), nonsense.max()), (1, LONGEST_NS));
    }

    #[test]
    fn within_an_hour_the_encoding_is_that_of_a_fixed_range() {
        let mut fixed = hdrhistogram::Histogram::<u64>::new_with_bounds(1, ROOM_NS, DIGITS).unwrap();
        let mut own = Histogram::new();
        for value in [1, 77_000, 5_000_000_000, ROOM_NS] {
            fixed.record(value).unwrap();
            own.record(value);
        }
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&fixed, &mut bytes).unwrap();
        assert_eq!(own.to_v2(), bytes);
    }

    #[test]
    fn values_are_exact_to_three_digits() {
        let mut histogram = Histogram::new();
        histogram.record(123_456_789);
        let read = histogram.quantile(0.5) as f64;
        assert!((read / 123_456_789.0 - 1.0).abs() < 0.001, "{read}");
    }
}
