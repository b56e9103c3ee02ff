//! When the operations of a load are due, and when it ends: the same keys for all engines.

use super::table::{Problem, Table};
use super::tree::{Entry, Node, Value};
use super::values;
use crate::defaults;
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::stopping::Stop;
use tidemark_measure::think::Think;
use tidemark_measure::units;

/// How a load ends, and what comes before and after its window. One attempt at an operation may take `attempt_ns`.
pub fn ends(table: &mut Table<'_>, attempt_ns: u64) -> Stop {
    let window_ns = table.positive_duration("for");
    let operations = table.whole("total_operations", 1..=u64::MAX);
    let bytes = table.bytes("total_bytes", 1);
    if !(table.has("for") || table.has("total_operations") || table.has("total_bytes")) {
        table.missing("for", "set its length, such as `for: 60s`, `total_operations` or `total_bytes`");
    }
    Stop {
        ramp_up_ns: table.duration("ramp_up").unwrap_or(0),
        warm_up_ns: table.duration("warm_up").unwrap_or(0),
        window_ns,
        ramp_down_ns: table.duration("ramp_down").unwrap_or(0),
        operations,
        bytes,
        ..stop(table, attempt_ns, window_ns.is_none())
    }
}

/// When the operations of a load are due.
pub fn pacing(table: &mut Table<'_>) -> Pacing {
    table.contradiction("think", "rate", "with a rate, operations are due at fixed times");
    let think = think(table);
    let arrivals = [("constant", Arrivals::Constant), ("poisson", Arrivals::Poisson)];
    let arrivals = table.word("arrivals", &arrivals);
    let Some(entry) = table.entry("rate") else {
        table.meaningless(&["arrivals"], "without `rate`, workers wait for each operation to end");
        return Pacing::Closed { think };
    };
    let points = match &entry.node.value {
        Value::List(nodes) => nodes.iter().filter_map(|node| point(table, node, entry)).collect(),
        _ => vec![(0, table.scalar(&entry.node, "rate", rate).unwrap_or(1.0))],
    };
    let log = table.log();
    if points.windows(2).any(|pair| pair[0].0 > pair[1].0) {
        log.error(&entry.key_span, "the points of `rate` are not in order of time", "order them by `at`");
    }
    if points.iter().all(|(_, rate)| *rate == 0.0) {
        log.error(&entry.key_span, "`rate` is never above zero", "write a rate such as 500/s");
    }
    Pacing::Open { rate: Rate { points }, arrivals: arrivals.unwrap_or(Arrivals::Constant) }
}

/// The pauses of a worker between its operations.
pub fn think(table: &mut Table<'_>) -> Think {
    table.read("think", pauses).unwrap_or_default()
}

/// `100ms`, or a distribution with a unit behind it: `u(50,150)ms`, `exp(100)ms`.
fn pauses(text: &str) -> Result<Think, Problem> {
    values::closed(text)?;
    let Some((name, rest)) = text.split_once('(') else {
        return Ok(Think::Constant { ns: units::parse_duration_ns(text)? });
    };
    let (inside, unit) = rest.split_once(')').unwrap_or((rest, ""));
    let arguments: Vec<&str> = inside.split(',').map(str::trim).collect();
    let duration = |number: &str| units::parse_duration_ns(&format!("{number}{}", unit.trim()));
    let wrong = |message: &str| {
        Problem::new(
            format!("'{text}' {message}"),
            "write a duration such as 100ms, u(50,150)ms for any between two bounds, or exp(100)ms for an exponential distribution with this mean",
        )
    };
    match (name.trim().to_ascii_lowercase().as_str(), arguments.as_slice()) {
        _ if unit.trim().is_empty() => Err(wrong("has no unit of time")),
        ("c", [only]) => Ok(Think::Constant { ns: duration(only)? }),
        ("u", [low, high]) => match (duration(low)?, duration(high)?) {
            (low_ns, high_ns) if low_ns <= high_ns => Ok(Think::Uniform { low_ns, high_ns }),
            _ => Err(wrong("ends before it begins")),
        },
        ("exp", [mean]) => match duration(mean)? {
            0 => Err(wrong("has a mean of zero")),
            mean_ns => Ok(Think::Exponential { mean_ns }),
        },
        _ => Err(wrong("is not a think time")),
    }
}

/// One point of a rate that changes over time.
fn point(table: &Table<'_>, node: &Node, rate_entry: &Entry) -> Option<(u64, f64)> {
    let Value::Map(_) = &node.value else {
        let help = "write points such as {at: 30s, rate: 500/s}";
        table.log().error(&rate_entry.key_span, "a list of rates needs times", help);
        return None;
    };
    let mut point = table.part("a point of `rate`", node, &rate_entry.key_span);
    let at = point.required("at", "add the time since the load's start, such as 30s", |text| {
        Ok(units::parse_duration_ns(text)?)
    });
    let rate = point.required("rate", "add the rate, such as 500/s", rate);
    point.finish();
    Some((at?, rate?))
}

/// Operations per second.
pub fn rate(text: &str) -> Result<f64, Problem> {
    match units::parse_rate(text)? {
        rate if rate <= 1e9 => Ok(rate),
        _ => Err(Problem::new(format!("'{text}' is too high"), "write at most 1000M/s")),
    }
}

/// How a work ends when it does not end as planned: common to all kinds. One that ends by itself, rather than
/// by time, is given up unless the document sets it otherwise.
pub fn stop(table: &mut Table<'_>, attempt_ns: u64, ends_by_itself: bool) -> Stop {
    let give_up = table.read("give_up", |text| match text {
        "never" => Ok(None),
        _ => match units::parse_duration_ns(text)? {
            0 => Err(Problem::new("the duration is zero", "write a duration such as 60s, or never")),
            ns => Ok(Some(ns)),
        },
    });
    Stop {
        drain_ns: table.duration("drain").unwrap_or_else(|| defaults::drain_ns(attempt_ns)),
        give_up_ns: give_up.unwrap_or_else(|| ends_by_itself.then(|| defaults::give_up_ns(attempt_ns))),
        ..Stop::default()
    }
}
