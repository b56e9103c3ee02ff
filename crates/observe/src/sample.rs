//! One sample of a node: values with their names, and what could not be observed.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tidemark_measure::observation::Kind;

/// One value of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Value {
    pub(crate) kind: Kind,
    pub(crate) subject: String,
    pub(crate) metric: Cow<'static, str>,
    pub(crate) value: f64,
}

/// The values of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Seconds since the previous sample; `None` for the first, which has no rates.
    pub(crate) seconds: Option<f64>,
    pub(crate) values: Vec<Value>,
}

impl Sample {
    /// Adds a value, unless it is not finite.
    pub(crate) fn put(&mut self, kind: Kind, subject: &str, metric: &'static str, value: f64) {
        if value.is_finite() {
            let metric = Cow::Borrowed(metric);
            self.values.push(Value { kind, subject: subject.to_owned(), metric, value });
        }
    }

    /// Adds the rate of a counter, per second.
    pub(crate) fn put_rate(&mut self, kind: Kind, subject: &str, metric: &'static str, span: (u64, u64)) {
        if let Some(seconds) = self.seconds {
            self.put(kind, subject, metric, rise(span) / seconds);
        }
    }

    /// Adds the mean time of the counted events, in the unit of the times; nothing without events.
    pub(crate) fn put_mean(
        &mut self,
        kind: Kind,
        subject: &str,
        metric: &'static str,
        (times, counts): ((u64, u64), (u64, u64)),
    ) {
        self.put(kind, subject, metric, rise(times) / rise(counts));
    }
}

/// The increase of a counter between two readings; 0 for a counter that was reset.
pub(crate) fn rise((before, after): (u64, u64)) -> f64 {
    after.saturating_sub(before) as f64
}

/// What could not be observed: sentences without duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps(Vec<String>);

impl Gaps {
    /// Sentences that are kept, at most.
    const MOST: usize = 50;

    pub(crate) fn say(&mut self, sentence: String) {
        if self.0.len() < Self::MOST && !self.0.contains(&sentence) {
            self.0.push(sentence);
        }
    }

    pub(crate) fn sentences(&self) -> &[String] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_a_previous_sample_and_means_need_a_count() {
        let mut first = Sample::default();
        first.put_rate(Kind::Disk, "vda", "read_ops", (0, 5));
        assert!(first.values.is_empty());
        let mut second = Sample { seconds: Some(2.0), values: Vec::new() };
        second.put_rate(Kind::Disk, "vda", "read_ops", (3, 13));
        second.put_rate(Kind::Disk, "vda", "write_ops", (3, 1));
        second.put_mean(Kind::Disk, "vda", "read_await_ns", ((10, 40), (1, 4)));
        second.put_mean(Kind::Disk, "vda", "write_await_ns", ((10, 40), (4, 4)));
        let values: Vec<f64> = second.values.iter().map(|value| value.value).collect();
        assert_eq!(values, [5.0, 0.0, 10.0], "a counter that fell has no rate, and no count has no mean");
    }

    #[test]
    fn gaps_are_unique_and_limited() {
        let mut gaps = Gaps::default();
        (0..1000).for_each(|number| gaps.say(format!("{}", number % 2)));
        assert_eq!(gaps.sentences(), ["0", "1"]);
        (0..1000).for_each(|number| gaps.say(format!("{number}")));
        assert_eq!(gaps.sentences().len(), Gaps::MOST);
    }
}
