//! Turns samples into series.

use crate::observer::Glimpse;
use crate::sample::Value;
use tidemark_measure::host::Utilization;
use tidemark_measure::observation::{Kind, Node, Series};

/// Series of one node, at most; more are left out, which is reported.
const MOST: usize = 20_000;

/// The longest name that is kept: another node may send anything.
const NAME_MOST: usize = 200;

/// Properties rather than activity: they alone do not make a disk or a link worth keeping.
const GIVEN: [&str; 6] =
    ["speed", "shaper_rate", "read_ops_limit", "write_ops_limit", "read_bytes_limit", "write_bytes_limit"];

/// The series of one node.
#[derive(Default)]
pub(crate) struct Recorder {
    at_ns: Vec<u64>,
    series: Vec<Series>,
    /// Where the series of the next value probably is: all samples have the same order.
    next: usize,
    /// Whether values were left out.
    pub(crate) full: bool,
}

impl Recorder {
    /// When the last sample was taken.
    pub(crate) fn last_ns(&self) -> Option<u64> {
        self.at_ns.last().copied()
    }

    /// The last row in a few numbers.
    pub(crate) fn glimpse(&self, name: &str) -> Option<Glimpse> {
        let last = self.at_ns.len().checked_sub(1)?;
        let of = |kind: Kind, metric: &'static str| {
            let found =
                self.series.iter().filter(move |series| series.kind == kind && series.metric == metric);
            found.filter_map(move |series| Some((series.subject.as_str(), *series.values.get(last)?)))
        };
        let finite = |value: f32| if value.is_finite() { value } else { 0.0 };
        let network = |metric: &'static str| {
            of(Kind::Network, metric)
                .filter(|(link, _)| *link != "lo")
                .map(|(_, value)| f64::from(finite(value)))
                .sum()
        };
        Some(Glimpse {
            name: name.to_owned(),
            generates: false,
            at_ns: self.at_ns[last],
            utilization: Utilization {
                cpu_busy: of(Kind::Cpu, "busy")
                    .find(|(cpu, _)| *cpu == "all")
                    .map_or(0.0, |(_, value)| finite(value)),
                memory_used_bytes: of(Kind::Memory, "used")
                    .map(|(_, value)| f64::from(finite(value)))
                    .sum::<f64>() as u64,
                received_per_s: network("rx_bytes"),
                sent_per_s: network("tx_bytes"),
            },
        })
    }

    /// Adds a row.
    pub(crate) fn record(&mut self, at_ns: u64, values: Vec<Value>) {
        self.at_ns.push(at_ns);
        let row = self.at_ns.len();
        for value in values {
            if let Some(series) = self.series_of(&value) {
                series.values.resize(row, f32::NAN);
                series.values[row - 1] = value.value as f32;
            }
        }
    }

    fn series_of(&mut self, value: &Value) -> Option<&mut Series> {
        let is = |series: &Series| {
            series.kind == value.kind && series.metric == value.metric && series.subject == value.subject
        };
        let (before, from) = self.series.split_at(self.next.min(self.series.len()));
        let behind = from.iter().position(is).map(|index| index + before.len());
        let index = match behind.or_else(|| before.iter().position(is)) {
            Some(index) => index,
            None => {
                if self.series.len() >= MOST
                    || value.subject.len() > NAME_MOST
                    || value.metric.len() > NAME_MOST
                {
                    self.full = true;
                    return None;
                }
                let (subject, metric) = (value.subject.clone(), value.metric.to_string());
                self.series.push(Series { kind: value.kind, subject, metric, values: Vec::new() });
                self.series.len() - 1
            }
        };
        self.next = index + 1;
        self.series.get_mut(index)
    }

    /// All rows, without series of zeros only and without idle disks and links.
    pub(crate) fn node(self) -> Node {
        let rows = self.at_ns.len();
        let mut series = self.series;
        series.retain(|series| series.values.iter().any(|value| value.is_finite() && *value != 0.0));
        let given = |series: &Series| {
            matches!(series.kind, Kind::Disk | Kind::Network) && GIVEN.contains(&series.metric.as_str())
        };
        let busy: Vec<(Kind, String)> = series
            .iter()
            .filter(|series| !given(series))
            .map(|series| (series.kind, series.subject.clone()))
            .collect();
        series.retain(|series| {
            !given(series)
                || busy.iter().any(|(kind, subject)| (kind, subject) == (&series.kind, &series.subject))
        });
        series.iter_mut().for_each(|series| series.values.resize(rows, f32::NAN));
        series.sort_by(|a, b| (a.kind, natural(&a.subject)).cmp(&(b.kind, natural(&b.subject))));
        Node { at_ns: self.at_ns, series, ..Node::default() }
    }
}

/// A key that sorts `cpu10` after `cpu9`.
fn natural(name: &str) -> (&str, u64, &str) {
    let digits = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (digits, name[digits.len()..].parse().unwrap_or(0), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: Kind, subject: &str, metric: &'static str, value: f64) -> Value {
        Value { kind, subject: subject.into(), metric: metric.into(), value }
    }

    #[test]
    fn series_start_and_end_with_their_subjects() {
        let mut recorder = Recorder::default();
        let osd = |cpu| value(Kind::Process, "ceph-osd.0", "cpu", cpu);
        let busy = |busy| value(Kind::Cpu, "all", "busy", busy);
        recorder.record(1, vec![busy(0.5)]);
        recorder.record(2, vec![busy(0.25), osd(1.5)]);
        recorder.record(3, vec![osd(0.5)]);
        recorder.record(4, vec![busy(1.0)]);
        let node = recorder.node();
        assert_eq!(node.at_ns, [1, 2, 3, 4]);
        let text = |kind, subject, metric| format!("{:?}", node.find(kind, subject, metric).unwrap().values);
        assert_eq!(text(Kind::Cpu, "all", "busy"), "[0.5, 0.25, NaN, 1.0]");
        assert_eq!(text(Kind::Process, "ceph-osd.0", "cpu"), "[NaN, 1.5, 0.5, NaN]");
    }

    #[test]
    fn idle_series_are_left_out() {
        let mut recorder = Recorder::default();
        for at_ns in 0..3 {
            recorder.record(
                at_ns,
                vec![
                    value(Kind::Disk, "idle", "busy", 0.0),
                    value(Kind::Disk, "idle", "write_ops_limit", 500.0),
                    value(Kind::Disk, "used", "write_ops", 3.0),
                    value(Kind::Disk, "used", "read_ops", 0.0),
                    value(Kind::Disk, "used", "write_ops_limit", 500.0),
                    value(Kind::Cgroup, "tidemark", "cpu_limit", 1.0),
                ],
            );
        }
        let node = recorder.node();
        let names: Vec<&str> = node.series.iter().map(|series| series.metric.as_str()).collect();
        assert_eq!(names, ["write_ops", "write_ops_limit", "cpu_limit"]);
    }

    #[test]
    fn subjects_are_in_the_order_of_their_numbers() {
        let mut recorder = Recorder::default();
        recorder.record(0, ["cpu10", "cpu9", "all"].map(|name| value(Kind::Cpu, name, "busy", 1.0)).into());
        let node = recorder.node();
        let names: Vec<&str> = node.series.iter().map(|series| series.subject.as_str()).collect();
        assert_eq!(names, ["all", "cpu9", "cpu10"]);
    }

    #[test]
    fn a_node_that_sends_too_much_is_limited() {
        let mut recorder = Recorder::default();
        let long = Value { subject: "x".repeat(1000), ..value(Kind::Cpu, "", "busy", 1.0) };
        let many = (0..MOST + 10).map(|number| value(Kind::Cpu, &format!("x{number}"), "busy", 1.0));
        recorder.record(0, vec![long]);
        assert!(recorder.full && recorder.series.is_empty());
        recorder.record(1, many.collect());
        assert_eq!(recorder.series.len(), MOST);
    }
}
