//! HdrHistograms of nanoseconds: recorded on the hot path, merged by addition, stored in the V2 encoding.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

/// The largest latency that is distinguished, in nanoseconds: one hour. Longer ones count as this.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits: every recorded value is exact to 0.1 %.
pub const DIGITS: u8 = 3;

/// The percentiles that reports show, lowest first, as fractions.
pub const PERCENTILES: [f64; 9] = [0.50, 0.60, 0.80, 0.90, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// A histogram of nanoseconds with three significant digits, from 1 ns to one hour.
///
/// Its memory (about 270 kB) is taken when it counts for the first time, or is made [`ready`](Self::ready) to: records of
/// runs are full of histograms that never counted anything. After that recording never allocates.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Option<hdrhistogram::Histogram<u64>>);

/// A stored histogram could not be read back.
#[derive(Debug, thiserror::Error)]
#[error("a stored histogram is damaged: {0}")]
pub struct Damaged(String);

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the memory now, so that no later count has to.
    pub fn ready(&mut self) {
        self.inner();
    }

    fn inner(&mut self) -> &mut hdrhistogram::Histogram<u64> {
        self.0.get_or_insert_with(|| {
            let inner = hdrhistogram::Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
            inner.expect("the bounds are constants that HdrHistogram accepts")
        })
    }

    /// Counts one value, in nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.inner().saturating_record(value_ns);
    }

    /// Counts `count` values of `value_ns` nanoseconds.
    pub fn record_many(&mut self, value_ns: u64, count: u64) {
        self.inner().saturating_record_n(value_ns, count);
    }

    /// Counts values (nanoseconds, how many), one after the other.
    pub(crate) fn record_all(&mut self, counted: impl Iterator<Item = (u64, u64)>) {
        let mut counted = counted.peekable();
        if counted.peek().is_some() {
            let inner = self.inner();
            counted.for_each(|(value, count)| inner.saturating_record_n(value, count));
        }
    }

    /// Adds every count of `other` to this histogram.
    pub fn add(&mut self, other: &Histogram) {
        if let Some(other) = other.recorded() {
            self.inner().add(other).expect("all histograms have the same bounds");
        }
    }

    /// Forgets every count and keeps the memory.
    pub fn reset(&mut self) {
        if let Some(inner) = self.0.as_mut().filter(|inner| !inner.is_empty()) {
            inner.reset();
        }
    }

    /// What was recorded, if anything was.
    fn recorded(&self) -> Option<&hdrhistogram::Histogram<u64>> {
        self.0.as_ref().filter(|inner| !inner.is_empty())
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, hdrhistogram::Histogram::len)
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.recorded().is_none()
    }

    /// The value, in nanoseconds, that a `fraction` (0 to 1) of the values do not exceed; 0 when empty.
    pub fn quantile(&self, fraction: f64) -> u64 {
        self.recorded().map_or(0, |inner| inner.value_at_quantile(fraction).min(inner.max()))
    }

    /// The arithmetic mean in nanoseconds; 0 when empty.
    pub fn mean(&self) -> f64 {
        self.recorded().map_or(0.0, hdrhistogram::Histogram::mean)
    }

    /// The largest value in nanoseconds, to three digits; 0 when empty.
    pub fn max(&self) -> u64 {
        self.recorded().map_or(0, hdrhistogram::Histogram::max)
    }

    /// The smallest value in nanoseconds, to three digits; 0 when empty.
    pub fn min(&self) -> u64 {
        self.recorded().map_or(0, hdrhistogram::Histogram::min)
    }

    /// How many values were at most `value_ns`.
    pub fn count_up_to(&self, value_ns: u64) -> u64 {
        self.recorded().map_or(0, |inner| inner.count_between(0, value_ns))
    }

    /// The recorded buckets as (highest value in nanoseconds, count), ascending, empty ones left out.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let steps = self.recorded().into_iter().flat_map(hdrhistogram::Histogram::iter_recorded);
        steps.map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The standard HdrHistogram V2 encoding; of an empty one, nothing.
    pub fn to_v2(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(inner) = self.recorded() {
            V2Serializer::new().serialize(inner, &mut bytes).expect("writing to memory does not fail");
        }
        bytes
    }

    /// Reads the V2 encoding back.
    pub fn from_v2(mut bytes: &[u8]) -> Result<Self, Damaged> {
        let mut own = Self::new();
        if bytes.is_empty() {
            return Ok(own);
        }
        let read: hdrhistogram::Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes).map_err(|error| Damaged(error.to_string()))?;
        own.inner().add(&read).map_err(|error| Damaged(error.to_string()))?;
        Ok(own)
    }
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
    fn v2_and_json_round_trip() {
        let mut histogram = Histogram::new();
        for value in [1, 1_000, 123_456_789, LONGEST_NS * 2] {
            histogram.record(value);
        }
        let json = serde_json::to_string(&histogram).unwrap();
        let back: Histogram = serde_json::from_str(&json).unwrap();
        assert!(back.buckets().eq(histogram.buckets()));
        assert_eq!(back.count(), 4);
        let empty: Histogram = serde_json::from_str("\"\"").unwrap();
        assert!(empty.is_empty());
        assert!(Histogram::from_v2(b"not a histogram").is_err());
    }

    #[test]
    fn values_are_exact_to_three_digits() {
        let mut histogram = Histogram::new();
        histogram.record(123_456_789);
        let read = histogram.quantile(0.5) as f64;
        assert!((read / 123_456_789.0 - 1.0).abs() < 0.001, "{read}");
    }
}
