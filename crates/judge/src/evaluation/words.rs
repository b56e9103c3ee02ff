//! How places, ratios and intervals are written.

use super::{Comparison, Metric, Outcome};
use tidemark_measure::axis::{Axis, Unit, Value};
use tidemark_measure::evaluation::Level;
pub(super) use tidemark_measure::evaluation::level_label as level;
use tidemark_measure::units;

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

/// Decimals of a ratio in sentences, at least.
pub(super) const RATIO_DECIMALS: usize = 2;

/// Decimals of any ratio, at most.
const DECIMALS_MOST: usize = 9;

/// `2.41`; small ones with three significant digits.
pub(super) fn ratio(ratio: f64) -> String {
    let decimals = decimals(ratio, None, RATIO_DECIMALS);
    format!("{ratio:.decimals$}")
}

/// The decimals that a ratio and the ends of its interval are written with: at least so many, three significant digits of small
/// ones, and as many as it takes to tell the ends from the ratio. An interval without width needs no more than others.
pub fn decimals(ratio: f64, interval: Option<(f64, f64)>, least: usize) -> usize {
    let significant = match ratio {
        small if small > 0.0 && small < 0.0995 => (2 - small.log10().floor() as i32).max(0) as usize,
        _ => 0,
    };
    let least = least.max(significant).min(DECIMALS_MOST);
    let tells = |decimals: &usize| {
        let print = |value: f64| format!("{value:.decimals$}", decimals = *decimals);
        let is_other = |end: f64| print(end) != print(ratio);
        interval.is_none_or(|(low, high)| is_other(low) && is_other(high))
    };
    (least..=DECIMALS_MOST).find(tells).unwrap_or(least)
}

/// `95 % interval 2.20 to 2.60`.
pub(super) fn interval((low, high): (f64, f64), print: impl Fn(f64) -> String) -> String {
    format!("95 % interval {} to {}", print(low), print(high))
}

/// A difference as a share: `4.2 %`, or `×3.1` of what is more than twice.
pub fn difference(share: f64) -> String {
    match share {
        small if small < 0.0095 => format!("{:.2} %", small * 100.0),
        usual if usual < 1.0 => format!("{:.1} %", usual * 100.0),
        large if large < 99.0 => format!("×{:.1}", large + 1.0),
        _ => "×100".into(),
    }
}

/// The `±` of a mean: half of its interval as a share of it.
pub fn plus_minus(half_width: f64) -> String {
    let share = half_width * 100.0;
    if share >= 99.5 { format!("± {share:.0} %") } else { format!("± {share:.1} %") }
}

impl Outcome {
    /// The words for tables; beside [`Outcome::CannotTell`] belongs what would not be seen.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Better => "better",
            Outcome::Worse => "worse",
            Outcome::Mixed => "better in part, worse in part",
            Outcome::Equal => "equal within the margin",
            Outcome::NotWorse => "not worse than the margin",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Confounded => "differs, or drifted",
            Outcome::CannotTell => "cannot tell",
            Outcome::NotCompared => "not tested",
        }
    }
}

impl Comparison {
    /// What it comes to in the words for tables: `better`, `cannot tell below 4.2 %`.
    pub fn words(&self) -> String {
        match (self.outcome, self.detectable) {
            (Outcome::CannotTell, Some(share)) => format!("cannot tell below {}", difference(share)),
            (outcome, _) => outcome.name().to_owned(),
        }
    }

    /// What it is of: `small-objects at workers 320`, `6 cells`, `5 cells of small-objects`.
    pub fn place(&self) -> String {
        match (self.cells, self.load.is_empty()) {
            (0 | 1, _) => place(&self.load, &self.subject, &self.level),
            (cells, true) => format!("{cells} cells"),
            (cells, false) => format!("{cells} cells of {}", self.load),
        }
    }
}

/// `p < 0.001`, `p = 0.012`.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

/// A duration in nanoseconds that is not whole.
pub(super) fn duration(ns: f64) -> String {
    units::duration_ns(ns.max(0.0).round() as u64)
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
