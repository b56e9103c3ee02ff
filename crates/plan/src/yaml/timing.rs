//! When the operations of a load are due, and when it ends: the same keys for all engines.

use super::values;
use crate::defaults;
use tidemark_keys::kinds::{Bytes, Duration, Parsed, PositiveDuration, Rate as PerTime, Whole, Word};
use tidemark_keys::shapes::{Either, List, Map};
use tidemark_keys::tree::{Entry, Node, Value};
use tidemark_keys::{Key, Kind as _, Mapping, Problem, Table};
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::stopping::Stop;
use tidemark_measure::steady::ROUNDS;
use tidemark_measure::think::Think;
use tidemark_measure::units;

/// Pause between operations.
pub static THINK: Key<Parsed<Think>> = Key::new(
    "think",
    "Pause of a worker between operations: `100ms`; any between two bounds, `u(50,150)ms`; exponential with a mean, `exp(100)ms`",
    Parsed("duration, `u(a,b)` or `exp(mean)` with a unit", pauses),
)
.default("0");

static FOR: Key<PositiveDuration> = Key::new("for", "Length of the measured window", PositiveDuration)
    .otherwise("one of these three is required")
    .also(&["runtime"]);
static UNTIL_STEADY: Key<Parsed<u64>> = Key::new(
    "until_steady",
    "End the window early, when its last five rounds of this length are steady (SNIA: range within 20 %, slope within 10 % of the average); `for`, or a total, is the limit",
    Parsed("whole number of seconds, such as `5s`", |text| match units::parse_duration_ns(text)? {
        ns if ns > 0 && ns.is_multiple_of(1_000_000_000) => Ok(ns),
        _ => Err(Problem::new(
            format!("'{text}' is not a whole number of seconds"),
            "write the length of a round, such as 5s",
        )),
    }),
);
static TOTAL_OPERATIONS: Key<Whole<u64>> = Key::new(
    "total_operations",
    "Measured operations of all workers, exactly; syncs of `fsync` and `fdatasync` come on top, as with fio's `number_ios`",
    Whole(1, u64::MAX),
);
static TOTAL_BYTES: Key<Bytes> =
    Key::new("total_bytes", "End with the operation that reaches this total", Bytes(1));
static WARM_UP: Key<Duration> = Key::new("warm_up", "Full load before the window, not measured", Duration)
    .default("0")
    .also(&["ramp_time"]);
static RAMP_UP: Key<Duration> =
    Key::new("ramp_up", "Time over which workers start, or the rate rises; not measured", Duration)
        .default("0");
static RAMP_DOWN: Key<Duration> =
    Key::new("ramp_down", "Full load after the window, not measured", Duration).default("0");
/// The rate of an open loop.
pub static RATE: Key<Either<PerTime, List<Map>>> = Key::new(
    "rate",
    "Open loop: operations are due at fixed times, from which latency counts",
    Either(PerTime, List(Map(&RATE_POINT))),
)
.otherwise("none: closed loop");
static ARRIVALS: Key<Word<Arrivals>> = Key::new(
    "arrivals",
    "Distribution of due times around a `rate`",
    Word(&[("constant", Arrivals::Constant), ("poisson", Arrivals::Poisson)]),
)
.otherwise("`constant`");

/// What every load has, whatever its engine.
pub static TIMING: Mapping = Mapping::new(
    "timing",
    "When the operations of a load are due, and when it ends",
    &[
        &FOR,
        &UNTIL_STEADY,
        &TOTAL_OPERATIONS,
        &TOTAL_BYTES,
        &WARM_UP,
        &RAMP_UP,
        &RAMP_DOWN,
        &RATE,
        &ARRIVALS,
        &THINK,
    ],
);

static RATE_POINT: Mapping =
    Mapping::new("rate_point", "One point of a rate that changes over time", &[&AT, &POINT_RATE]);
static AT: Key<Duration> = Key::new("at", "Time since the start of the work", Duration)
    .required("add the time since the load's start, such as 30s");
static POINT_RATE: Key<PerTime> =
    Key::new("rate", "Rate at that time", PerTime).required("add the rate, such as 500/s");

/// How long the operations in flight are waited for.
pub(super) static DRAIN: Key<Duration> =
    Key::new("drain", "Longest wait for operations in flight at the end", Duration)
        .otherwise("`30s`, or the target's `timeout` if longer");
/// When a work without any success ends.
pub(super) static GIVE_UP: Key<Parsed<Option<u64>>> = Key::new(
    "give_up",
    "Stop and fail after this long without a success",
    Parsed("duration, `never`", |text| match text {
        "never" => Ok(None),
        _ => match Duration.read(text)? {
            0 => Err(Problem::new("the duration is zero", "write a duration such as 60s, or never")),
            ns => Ok(Some(ns)),
        },
    }),
)
.otherwise("`60s`, or twice the `timeout` if longer; `never` for a load with `for`");

/// How a load ends, and what comes before and after its window. One attempt at an operation may take `attempt_ns`.
pub fn ends(table: &mut Table<'_>, attempt_ns: u64) -> Stop {
    let window_ns = table.get(&FOR);
    let operations = table.get(&TOTAL_OPERATIONS);
    let bytes = table.get(&TOTAL_BYTES);
    let until_steady_ns = table.get(&UNTIL_STEADY);
    if let (Some(window), Some(round), Some(entry)) = (window_ns, until_steady_ns, table.entry(&UNTIL_STEADY))
        && round.saturating_mul(ROUNDS as u64) >= window
    {
        let help = "write a shorter round, or a longer `for`: five rounds are looked at together";
        table.log().warning(
            &entry.key_span,
            "the window is over before five rounds of this length are",
            help,
        );
    }
    if !(table.has(&FOR) || table.has(&TOTAL_OPERATIONS) || table.has(&TOTAL_BYTES)) {
        table.missing(&FOR, "set its length, such as `for: 60s`, `total_operations` or `total_bytes`");
    }
    Stop {
        ramp_up_ns: table.value(&RAMP_UP),
        warm_up_ns: table.value(&WARM_UP),
        window_ns,
        until_steady_ns,
        ramp_down_ns: table.value(&RAMP_DOWN),
        operations,
        bytes,
        ..stop(table, attempt_ns, window_ns.is_none())
    }
}

/// When the operations of a load are due.
pub fn pacing(table: &mut Table<'_>) -> Pacing {
    table.contradiction(&THINK, &RATE, "with a rate, operations are due at fixed times");
    let think = table.value(&THINK);
    let arrivals = table.get(&ARRIVALS);
    let Some(entry) = table.entry(&RATE) else {
        table.meaningless(&[&ARRIVALS], "without `rate`, workers wait for each operation to end");
        return Pacing::Closed { think };
    };
    let points = match &entry.node.value {
        Value::List(nodes) => nodes.iter().filter_map(|node| point(table, node, entry)).collect(),
        _ => vec![(0, table.one(&RATE, &PerTime, &entry.node).unwrap_or(1.0))],
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
    let mut point = table.part("a point of `rate`", node, &rate_entry.key_span).of(&RATE_POINT);
    let (at, rate) = (point.get(&AT), point.get(&POINT_RATE));
    point.finish();
    Some((at?, rate?))
}

/// How a work ends when it does not end as planned: common to all kinds. One that ends by itself, rather than
/// by time, is given up unless the document sets it otherwise.
pub fn stop(table: &mut Table<'_>, attempt_ns: u64, ends_by_itself: bool) -> Stop {
    let give_up = table.get(&GIVE_UP);
    Stop {
        drain_ns: table.get(&DRAIN).unwrap_or_else(|| defaults::drain_ns(attempt_ns)),
        give_up_ns: give_up.unwrap_or_else(|| ends_by_itself.then(|| defaults::give_up_ns(attempt_ns))),
        ..Stop::default()
    }
}
