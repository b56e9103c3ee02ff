//! A sample as OpenMetrics 1.0 text (github.com/prometheus/OpenMetrics, specification): all of it gauges, for rates and states are.

use crate::catalog::{METRICS, Unit, words};
use crate::sample::Value;
use std::borrow::Cow;
use std::fmt::Write;

/// What such text is called in HTTP.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All values of a sample, by metric, each with its type, unit and help; values of unknown metrics are left out.
pub(crate) fn text(values: &[Value]) -> String {
    let mut out = String::with_capacity(values.len() * 80);
    for (kind, metric, unit, help) in METRICS {
        let mut own = values.iter().filter(|value| value.kind == *kind && value.metric == *metric).peekable();
        if own.peek().is_none() {
            continue;
        }
        let (kind, label) = words(*kind);
        let (suffix, scale) = suffix(*unit);
        let name = name(kind, metric, suffix);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# TYPE {name} gauge");
        if !suffix.is_empty() {
            let _ = writeln!(out, "# UNIT {name} {suffix}");
        }
        let _ = writeln!(out, "# HELP {name} {help}.");
        for Value { subject, value, .. } in own {
            let _ = writeln!(out, "{name}{{{label}=\"{}\"}} {}", escaped(subject), value * scale);
        }
    }
    out.push_str("# EOF\n");
    out
}

/// The unit as the end of a name, and what to multiply by: OpenMetrics wants base units.
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

/// `tidemark_disk_write_bytes_per_second`: what the suffix says is not said twice.
fn name(kind: &str, metric: &str, suffix: &str) -> String {
    let stem = match suffix {
        "seconds" => metric.strip_suffix("_ns").unwrap_or(metric),
        "bytes" | "bytes_per_second" => metric.strip_suffix("_bytes").unwrap_or(metric),
        _ => metric,
    };
    let link = if suffix.is_empty() { "" } else { "_" };
    format!("tidemark_{kind}_{stem}{link}{suffix}")
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
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
    fn families_are_whole_and_have_type_unit_and_help() {
        let values = [
            value(Kind::Disk, "vda", "write_ops", 20.5),
            value(Kind::Cpu, "all", "running", 3.0),
            value(Kind::Disk, "vda", "read_await_ns", 2_500_000.0),
            value(Kind::Disk, "a\"b\\c", "write_ops", 1.0),
        ];
        let expected = "# TYPE tidemark_cpu_running gauge\n# HELP tidemark_cpu_running Tasks ready or on a processor.\n\
            tidemark_cpu_running{cpu=\"all\"} 3\n\
            # TYPE tidemark_disk_write_ops_per_second gauge\n# UNIT tidemark_disk_write_ops_per_second per_second\n\
            # HELP tidemark_disk_write_ops_per_second Writes completed.\n\
            tidemark_disk_write_ops_per_second{device=\"vda\"} 20.5\n\
            tidemark_disk_write_ops_per_second{device=\"a\\\"b\\\\c\"} 1\n\
            # TYPE tidemark_disk_read_await_seconds gauge\n# UNIT tidemark_disk_read_await_seconds seconds\n\
            # HELP tidemark_disk_read_await_seconds Mean time of a read.\n\
            tidemark_disk_read_await_seconds{device=\"vda\"} 0.0025\n# EOF\n";
        assert_eq!(text(&values), expected);
    }

    #[test]
    fn no_two_metrics_have_one_name_and_every_name_ends_in_its_unit() {
        let mut names = BTreeSet::new();
        for (kind, metric, unit, _) in METRICS {
            let suffix = suffix(*unit).0;
            let name = name(words(*kind).0, metric, suffix);
            assert!(name.ends_with(suffix) && !name.contains("__"), "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(names.insert(name.clone()), "{name} is there twice");
        }
    }
}
