//! A sample as OpenMetrics 1.0 text (github.com/prometheus/OpenMetrics). All metrics are gauges: a sample has rates and
//! states, no counters.

use crate::catalog::{METRICS, Unit, words};
use crate::sample::Value;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{self, Registry};
use std::fmt;

/// The media type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All values of a sample, grouped by metric, each metric with type, unit and help. Values of unknown metrics are left out.
pub(crate) fn text(values: Vec<Value>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Values(values)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Values(Vec<Value>);

impl Collector for Values {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for (kind, metric, unit, help) in METRICS {
            let mut own =
                self.0.iter().filter(|value| value.kind == *kind && value.metric == *metric).peekable();
            if own.peek().is_none() {
                continue;
            }
            let (kind, label) = words(*kind);
            let (suffix, scale) = suffix(*unit);
            let (name, help) = (stem(kind, metric, suffix), format!("{help}."));
            let unit = (!suffix.is_empty()).then(|| registry::Unit::Other(suffix.to_owned()));
            let mut family = encoder.encode_descriptor(&name, &help, unit.as_ref(), MetricType::Gauge)?;
            for Value { subject, value, .. } in own {
                family.encode_family(&[(label, subject.as_str())])?.encode_gauge(&(value * scale))?;
            }
        }
        Ok(())
    }
}

/// The unit as the end of a name, and the factor to it: OpenMetrics wants base units.
const fn suffix(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Share => ("ratio", 1.0),
        Unit::Count => ("", 1.0),
        Unit::Bytes => ("bytes", 1.0),
        Unit::BytesPerSecond => ("bytes_per_second", 1.0),
        Unit::PerSecond => ("per_second", 1.0),
        Unit::Nanoseconds => ("seconds", 1e-9),
        Unit::Cores => ("cores", 1.0),
    }
}

/// The name of a metric without its suffix, which the encoder adds: `tidemark_disk_write` of `write_bytes`.
fn stem(kind: &str, metric: &str, suffix: &str) -> String {
    let stem = match suffix {
        "seconds" => metric.strip_suffix("_ns").unwrap_or(metric),
        "bytes" | "bytes_per_second" => metric.strip_suffix("_bytes").unwrap_or(metric),
        _ => metric,
    };
    format!("tidemark_{kind}_{stem}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tidemark_measure::observation::Kind;

    fn value(kind: Kind, subject: &str, metric: &'static str, value: f64) -> Value {
        Value { kind, subject: subject.into(), metric: metric.into(), value }
    }

    #[test]
    fn families_are_complete_and_have_type_unit_and_help() {
        let values = vec![
            value(Kind::Disk, "vda", "write_ops", 20.5),
            value(Kind::Cpu, "all", "running", 3.0),
            value(Kind::Disk, "vda", "read_await_ns", 2_500_000.0),
            value(Kind::Disk, "a\"b\\c", "write_ops", 1.0),
        ];
        let expected = "# HELP tidemark_cpu_running Tasks ready or on a processor.\n# TYPE tidemark_cpu_running gauge\n\
            tidemark_cpu_running{cpu=\"all\"} 3.0\n\
            # HELP tidemark_disk_write_ops_per_second Writes completed.\n\
            # TYPE tidemark_disk_write_ops_per_second gauge\n# UNIT tidemark_disk_write_ops_per_second per_second\n\
            tidemark_disk_write_ops_per_second{device=\"vda\"} 20.5\n\
            tidemark_disk_write_ops_per_second{device=\"a\\\"b\\\\c\"} 1.0\n\
            # HELP tidemark_disk_read_await_seconds Mean time of a read.\n\
            # TYPE tidemark_disk_read_await_seconds gauge\n# UNIT tidemark_disk_read_await_seconds seconds\n\
            tidemark_disk_read_await_seconds{device=\"vda\"} 0.0025\n# EOF\n";
        assert_eq!(text(values).unwrap(), expected);
    }

    #[test]
    fn all_metrics_have_a_name_of_their_own() {
        let mut names = BTreeSet::new();
        for (kind, metric, unit, _) in METRICS {
            let suffix = suffix(*unit).0;
            let name = format!("{}_{suffix}", stem(words(*kind).0, metric, suffix));
            assert!(!name.contains("__"), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(names.insert(name.clone()), "{name} is there twice");
        }
    }
}
