//! What nodes did while a load was on: series of counters on the run's clock. Plain data.
//!
//! A [`Node`] has one row of times and many [`Series`] with a value for each of them. Values are rates and states that
//! are ready to be read (`0.93` of a processor, `203` op/s), not raw counters: whoever collects them has taken the
//! differences.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The subject of the process that observes its own node.
pub const OWN: &str = "tidemark";

/// The subject of a driver's process, in the record of a run on drivers.
pub fn of_driver(name: &str) -> String {
    format!("driver {name}")
}

/// The subject of the controller's process in such a record: it puts no load on.
pub const CONTROLLER: &str = "controller";

/// The most that a sample may be away from the time for which it stands, nanoseconds: samples are taken once a second.
const NEAR_NS: u64 = 1_000_000_000;

/// One node, from the run's start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = RunNode)]
pub struct Node {
    /// Its host name, or the name that the document gives it.
    pub name: String,
    /// Whether it generated the load.
    pub generates: bool,
    /// Where its numbers came from: `local`, the address of a `tidemark observe`, or what Ceph was asked through.
    pub source: String,
    /// What it is: kernel, processors, memory, speeds of links, names of devices; name and value.
    pub facts: Vec<(String, String)>,
    /// When each sample was taken, nanoseconds since the run's start. A rate is over the time since the sample before.
    pub at_ns: Vec<u64>,
    /// What was sampled.
    pub series: Vec<Series>,
    /// What could not be observed, and why: whole sentences.
    pub gaps: Vec<String>,
}

/// One thing that was sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Series {
    /// What kind of thing it is about.
    pub kind: Kind,
    /// Which one: `all`, `cpu0`, `vda`, `lo`, `ceph-osd.1`, a cgroup's path.
    pub subject: String,
    /// What is measured, one of the names in the table of `tidemark-observe`: `busy`, `write_ops`.
    pub metric: String,
    /// A value for every sample of the node; NaN where there is none.
    #[serde(with = "values")]
    #[schema(value_type = Vec<Option<f32>>)]
    pub values: Vec<f32>,
}

/// What a series is about.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = SeriesKind)]
pub enum Kind {
    /// A processor, or all of them.
    #[default]
    Cpu,
    /// Pressure stall information (PSI).
    Pressure,
    /// Memory.
    Memory,
    /// A block device.
    Disk,
    /// A network interface, or the TCP stack.
    Network,
    /// A process, or all processes of one name.
    Process,
    /// A control group.
    Cgroup,
    /// A daemon of a Ceph cluster, or the cluster.
    Ceph,
}

impl Node {
    /// The series of one thing.
    pub fn find(&self, kind: Kind, subject: &str, metric: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.is(kind, metric) && series.subject == subject)
    }

    /// The series of all things of a kind.
    pub fn all<'a>(&'a self, kind: Kind, metric: &'a str) -> impl Iterator<Item = &'a Series> {
        self.series.iter().filter(move |series| series.is(kind, metric))
    }

    /// Adds a series that was sampled at times of its own: each of this node's times has the sample that is nearest to it.
    pub fn add_series(&mut self, at_ns: &[u64], series: Series) {
        let nearest = |own: &u64| {
            let all = at_ns.iter().zip(&series.values);
            let (at, value) = all.min_by_key(|(at, _)| at.abs_diff(*own))?;
            (at.abs_diff(*own) <= NEAR_NS).then_some(*value)
        };
        let values = self.at_ns.iter().map(|own| nearest(own).unwrap_or(f32::NAN)).collect();
        self.series.push(Series { values, ..series });
    }

    /// The mean of a series over the samples that end within a span of the run's clock; `None` without any.
    pub fn mean(&self, series: &Series, from_ns: u64, to_ns: u64) -> Option<f64> {
        let within = self.at_ns.iter().zip(&series.values);
        let within = within.filter(|(at, value)| (from_ns..=to_ns).contains(at) && value.is_finite());
        let (sum, count) =
            within.fold((0.0, 0u32), |(sum, count), (_, value)| (sum + f64::from(*value), count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }
}

impl Series {
    /// Whether it is about the process that observed its own node.
    pub fn is_own(&self) -> bool {
        matches!(self.kind, Kind::Process | Kind::Cgroup) && self.subject == OWN
    }

    fn is(&self, kind: Kind, metric: &str) -> bool {
        self.kind == kind && self.metric == metric
    }
}

/// Values in JSON: four significant digits, and `null` where there is none.
mod values {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(super) fn serialize<S: Serializer>(values: &[f32], serializer: S) -> Result<S::Ok, S::Error> {
        let short = |value: &f32| value.is_finite().then(|| format!("{value:.3e}").parse().unwrap_or(*value));
        values.iter().map(short).collect::<Vec<Option<f32>>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
        let values = Vec::<Option<f32>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|value| value.unwrap_or(f32::NAN)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_four_digits_and_their_gaps() {
        let values = vec![0.0, 1.23456, 98_765.4, f32::NAN];
        let series = Series { subject: "vda".into(), metric: "busy".into(), values, ..Series::default() };
        let text = serde_json::to_string(&series).unwrap();
        assert!(text.contains("[0.0,1.235,98770.0,null]"), "{text}");
        let read: Series = serde_json::from_str(&text).unwrap();
        assert!(read.values[3].is_nan() && read.values[1] == 1.235);
    }

    #[test]
    fn a_series_with_times_of_its_own_takes_its_place_among_the_others() {
        let mut node = Node {
            at_ns: vec![1_000_000_000, 2_000_000_000, 3_000_000_000, 9_000_000_000],
            ..Node::default()
        };
        let series = Series { subject: "driver a".into(), values: vec![0.1, 0.2, 0.3], ..Series::default() };
        node.add_series(&[1_400_000_000, 2_400_000_000, 3_400_000_000], series);
        let added = &node.series[0];
        assert_eq!((added.subject.as_str(), &added.values[..3]), ("driver a", &[0.1, 0.2, 0.3][..]));
        assert!(added.values[3].is_nan(), "it was not sampled then");
    }

    #[test]
    fn means_are_over_what_ends_in_the_span() {
        let values = vec![1.0, 2.0, f32::NAN, 4.0];
        let series = Series { kind: Kind::Disk, metric: "busy".into(), values, ..Series::default() };
        let node = Node { at_ns: vec![1, 2, 3, 4], series: vec![series], ..Node::default() };
        let series = node.find(Kind::Disk, "", "busy").unwrap();
        assert_eq!(node.mean(series, 2, 4), Some(3.0));
        assert_eq!(node.mean(series, 5, 9), None);
    }
}
