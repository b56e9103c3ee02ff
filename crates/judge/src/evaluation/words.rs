//! How places, ratios and intervals are written.

use super::Metric;
use tidemark_measure::axis::{Axis, Unit, Value};
use tidemark_measure::evaluation::Level;
pub(super) use tidemark_measure::evaluation::level_label as level;
use tidemark_measure::units;

/// What a list names one by one, at most.
const LISTED_MOST: usize = 3;

/// `small-objects`, or `small-objects, main` where a load measures several things.
pub(super) fn load(load: &str, subject: &str) -> String {
    if subject.is_empty() || subject == load { load.to_owned() } else { format!("{load}, {subject}") }
}

/// `small-objects at workers 320`.
pub(super) fn place(name: &str, subject: &str, at: &Level) -> String {
    let load = load(name, subject);
    if at.is_empty() { load } else { format!("{load} at {}", level(at)) }
}

/// `320 workers`, `5 000 op/s offered`, `depth 32`.
pub(super) fn load_level(axis: &Axis) -> String {
    match axis.value {
        Value::Number { number, unit: Unit::OperationsPerSecond } => {
            format!("{} offered", units::rate(number))
        }
        Value::Number { number, unit: Unit::Count } => {
            let count = units::count(number as u64);
            // An axis with a plural counts things.
            match axis.name.strip_suffix('s') {
                Some(one) if number == 1.0 => format!("{count} {one}"),
                Some(_) => format!("{count} {}", axis.name),
                None => format!("{} {count}", axis.name),
            }
        }
        _ => axis.label(),
    }
}

/// `2.41`; small ones with three significant digits.
pub(super) fn ratio(ratio: f64) -> String {
    match ratio {
        small if small > 0.0 && small < 0.0995 => {
            let decimals = (2 - small.log10().floor() as i32).clamp(2, 9) as usize;
            format!("{small:.decimals$}")
        }
        _ => format!("{ratio:.2}"),
    }
}

/// `95 % interval 2.20 to 2.60`.
pub(super) fn interval((low, high): (f64, f64), print: impl Fn(f64) -> String) -> String {
    format!("95 % interval {} to {}", print(low), print(high))
}

/// `p < 0.001`, `p = 0.012`.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

/// A duration in nanoseconds that is not whole.
pub(super) fn duration(ns: f64) -> String {
    units::duration_ns(ns.max(0.0).round() as u64)
}

/// `a, b, c and 2 more`.
pub(super) fn some_of(all: &[String]) -> String {
    let shown = all.iter().take(LISTED_MOST).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(LISTED_MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Metric {
    /// The word for tables and sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput",
            Metric::MeanLatency => "mean response time",
            Metric::TailLatency => "p99 response time",
        }
    }

    /// Whether more of it is better.
    pub const fn more_is_better(self) -> bool {
        matches!(self, Metric::Throughput)
    }
}
