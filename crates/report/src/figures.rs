//! Figures: pure functions from a work's record, a sweep's or an evaluation's, to SVG, and from there to PNG.
//!
//! Each gives a [`Figure`], or `None` when there is nothing to draw. Lines are thinned to the number of points
//! asked for and keep their smallest and largest values. A time without success is shaded, and said in words.

mod bars;
mod chart;
mod drivers;
mod endpoints;
mod figure;
mod front;
mod heat;
mod levels;
mod losses;
mod nodes;
mod path;
mod png;
mod queries;
mod run;
mod scale;
mod series;
mod steps;
mod sweep;

pub(crate) use bars::{Bar, Group, bars};
pub use drivers::throughput_of_drivers;
pub use figure::Figure;
pub(crate) use figure::STYLE;
pub(crate) use front::front;
pub(crate) use heat::heat_map;
pub(crate) use levels::{Curve, Stop, latency_by_throughput, percentile_curves, throughput_by_level};
pub use losses::throughput_with_losses;
pub use nodes::timelines;
pub use png::{PngError, png};
pub(crate) use queries::of_stage as of_queries;
pub use queries::queries_over_time;
pub use run::of_run;
pub(crate) use series::{interruption, whole_seconds};
pub(crate) use steps::by_step;
pub use sweep::of_sweep;

use chart::{Axis, Chart, Stroke};
use endpoints::throughput_of_endpoints;
use scale::Scale;
use series::{Point, end_points, latency_points, rate_points, seconds, span_seconds, thin, value_points};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::Work;
use tidemark_measure::units;

/// Points of a line that no report needs more of: more than one per pixel.
pub const MOST_POINTS: usize = 600;

/// With more kinds of operations, a line for each of them is no chart that anybody can read.
const MOST_OPERATIONS: usize = 12;

/// Every figure that a work has something to show in, in the order in which reports show them.
pub fn all(work: &Work, most_points: usize) -> Vec<Figure> {
    let mut figures = Vec::new();
    let has_few = work.operations.len() <= MOST_OPERATIONS;
    if has_few {
        figures.push(throughput_over_time(work, most_points));
    }
    figures.push(throughput_of_endpoints(work, most_points));
    if has_few {
        figures.push(bandwidth_over_time(work, most_points));
        figures.extend((0..work.operations.len()).map(|index| latency_over_time(work, index, most_points)));
        figures.extend([percentile_curve(work), latency_distribution(work)]);
    }
    figures.extend([
        errors_over_time(work, most_points),
        in_flight(work, most_points),
        overdue(work, most_points),
        oldest_in_flight(work, most_points),
    ]);
    figures.into_iter().flatten().collect()
}

/// Successes per second, one line per operation.
pub fn throughput_over_time(work: &Work, most_points: usize) -> Option<Figure> {
    let lines = lines(work, |index| rate_points(work, index, |second| second.ok));
    let highest = highest(&lines)?;
    let scale = Scale::from_zero(highest);
    let mut chart = over_time(work, scale, scale.number_ticks(4), "op/s");
    for (index, (label, points)) in lines.iter().enumerate() {
        chart.line(&thin(points, most_points), index, Stroke::Solid, label);
    }
    let words = describe(&lines, units::rate);
    Some(chart.finish("throughput", "Throughput over time", &with_interruption(work, words)))
}

/// Bytes of the successes per second, one line per operation that moves any.
pub fn bandwidth_over_time(work: &Work, most_points: usize) -> Option<Figure> {
    let mut lines = lines(work, |index| rate_points(work, index, |second| second.bytes));
    let highest = highest(&lines)?;
    let (unit, name) = bandwidth_unit(highest);
    let words = describe(&lines, |value| format!("{}/s", units::bytes(value as u64)));
    for (_, value) in lines.iter_mut().flat_map(|(_, points)| points) {
        *value = value.map(|value| value / unit);
    }
    let scale = Scale::from_zero(highest / unit);
    let mut chart = over_time(work, scale, scale.number_ticks(4), name);
    for (index, (label, points)) in lines.iter().enumerate() {
        if points.iter().any(|(_, value)| value.is_some_and(|value| value > 0.0)) {
            chart.line(&thin(points, most_points), index, Stroke::Solid, label);
        }
    }
    Some(chart.finish("bandwidth", "Bandwidth over time", &with_interruption(work, words)))
}

/// The largest unit that a bandwidth is at least one of, and its name.
fn bandwidth_unit(highest: f64) -> (f64, &'static str) {
    let units = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    units.into_iter().find(|(unit, _)| highest >= *unit).unwrap_or((1.0, "B/s"))
}

/// Response times of one operation: median, 95th and 99th percentile and maximum of every second.
pub fn latency_over_time(work: &Work, operation: usize, most_points: usize) -> Option<Figure> {
    let label = &work.operations.get(operation)?.label;
    let thinned = |points: Vec<Point>| thin(&points, most_points);
    let p50 = thinned(latency_points(work, operation, |second| second.p50_ns));
    let p95 = thinned(latency_points(work, operation, |second| second.p95_ns));
    let p99 = thinned(latency_points(work, operation, |second| second.p99_ns));
    let max = thinned(latency_points(work, operation, |second| second.max_ns));
    let lowest = values(&p50).reduce(f64::min)?;
    let scale = Scale::latency(lowest, values(&max).reduce(f64::max)?);
    let mut chart = over_time(work, scale, scale.latency_ticks(7), "response time, logarithmic");
    for (depth, (upper, lower)) in [(&p95, &p50), (&p99, &p95), (&max, &p99)].into_iter().enumerate() {
        chart.band(upper, lower, operation, depth as u8);
    }
    chart.line(&max, operation, Stroke::Dotted, "max");
    chart.line(&p99, operation, Stroke::Dashed, "p99");
    chart.line(&p95, operation, Stroke::Fine, "p95");
    chart.line(&p50, operation, Stroke::Solid, "p50");
    let words = [("p50", &p50), ("p95", &p95), ("p99", &p99), ("max", &max)]
        .map(|(name, points)| (name.to_string(), points.clone()));
    let words = describe(&words, |value| units::duration_ns(value as u64));
    Some(chart.finish(
        &format!("latency-{label}"),
        &format!("Response time over time: {label}"),
        &with_interruption(work, words),
    ))
}

/// The response time that a share of the operations does not exceed, HdrHistogram's way: the axis stretches
/// towards 100 %. In an open loop the service time is shown beside it, dashed.
pub fn percentile_curve(work: &Work) -> Option<Figure> {
    let tallies = || work.operations.iter().map(|operation| &operation.tally);
    let longest = tallies().map(|tally| tally.response.max()).max().filter(|longest| *longest > 0)?;
    let shortest = tallies()
        .flat_map(|tally| [&tally.response, tally.service()])
        .filter(|histogram| !histogram.is_empty())
        .map(|histogram| histogram.quantile(0.5))
        .min()?;
    let scale = Scale::latency(shortest as f64, longest as f64);
    let mut chart =
        Chart::new(&nines_axis(), &Axis { scale, ticks: scale.latency_ticks(7), title: "time, logarithmic" });
    for (index, operation) in work.operations.iter().enumerate() {
        if work.offered_rate.is_some() && !operation.tally.service_open.is_empty() {
            chart.line(&curve(&operation.tally.service_open), index, Stroke::Dashed, "service");
        }
        chart.line(&curve(&operation.tally.response), index, Stroke::Solid, &operation.label);
    }
    let words =
        work.operations.iter().filter(|operation| !operation.tally.response.is_empty()).map(|operation| {
            let at = |fraction| units::duration_ns(operation.tally.response.quantile(fraction));
            format!(
                "{}: p50 {}, p99 {}, p99.9 {}, max {}.",
                operation.label,
                at(0.5),
                at(0.99),
                at(0.999),
                at(1.0)
            )
        });
    let words: Vec<String> = words.collect();
    let title = if work.offered_rate.is_some() {
        "Response (solid) and service time by percentile"
    } else {
        "Response time by percentile"
    };
    Some(chart.finish("percentiles", title, &words.join(" ")))
}

/// How the response times are spread: the share of each operation's successes in classes of equal ratio.
pub fn latency_distribution(work: &Work) -> Option<Figure> {
    let histograms = || work.operations.iter().map(|operation| &operation.tally.response);
    let recorded = || histograms().filter(|histogram| !histogram.is_empty());
    let (lowest, highest) =
        (recorded().map(Histogram::min).min()? as f64, recorded().map(Histogram::max).max()? as f64);
    // Classes must be wider than the histogram's own (0.1 %), or they fill unevenly.
    let width = [100.0, 50.0, 25.0, 12.5].map(|per_decade| 1.0 / per_decade);
    let decades = (highest.max(1.0) / lowest.max(1.0)).log10();
    let width = width.into_iter().find(|width| decades / width <= 100.0).unwrap_or(0.08);
    let lines: Vec<(String, Vec<Point>)> = work
        .operations
        .iter()
        .map(|operation| (operation.label.clone(), shares(&operation.tally.response, width)))
        .collect();
    let scale = Scale::latency(lowest, highest);
    let x = Axis { scale, ticks: scale.latency_ticks(5), title: "response time, logarithmic" };
    let share = Scale::from_zero(self::highest(&lines)?);
    let mut chart =
        Chart::new(&x, &Axis { scale: share, ticks: share.number_ticks(4), title: "% of the operations" });
    for (index, (label, points)) in lines.iter().enumerate() {
        chart.area(points, index);
        chart.line(points, index, Stroke::Solid, "");
        chart.name_peak(points, index, label);
    }
    let words =
        work.operations.iter().filter(|operation| !operation.tally.response.is_empty()).map(|operation| {
            let tally = &operation.tally.response;
            let [low, middle, high] = [tally.min(), tally.quantile(0.5), tally.max()].map(units::duration_ns);
            format!("{}: from {low} to {high}, half of them up to {middle}.", operation.label)
        });
    let words: Vec<String> = words.collect();
    Some(chart.finish("distribution", "Distribution of response times", &words.join(" ")))
}

/// Failures per second, one line per operation that had any.
pub fn errors_over_time(work: &Work, most_points: usize) -> Option<Figure> {
    let failed = |index: usize| {
        value_points(work, |second| second.operations.get(index).map(|numbers| numbers.failed as f64))
            .into_iter()
            .map(|(x, value)| (x, value.or(Some(0.0))))
            .collect()
    };
    let lines = lines(work, failed);
    let scale = Scale::from_zero(highest(&lines)?);
    let mut chart = over_time(work, scale, scale.number_ticks(4), "failures per second");
    for (index, (label, points)) in lines.iter().enumerate() {
        if points.iter().any(|(_, value)| *value != Some(0.0)) {
            let points = thin(points, most_points);
            chart.area(&points, index);
            chart.line(&points, index, Stroke::Solid, label);
        }
    }
    let words = work.operations.iter().map(|operation| {
        format!("{}: {} failed in all.", operation.label, units::count(operation.tally.failed()))
    });
    let words: Vec<String> = words.collect();
    Some(chart.finish("failures", "Failures over time", &with_interruption(work, words.join(" "))))
}

/// Operations that were under way at the end of every second.
pub fn in_flight(work: &Work, most_points: usize) -> Option<Figure> {
    let points = end_points(work, |second| f64::from(second.in_flight));
    counted(work, most_points, points, ["in-flight", "Operations in flight", "in flight"])
}

/// Operations of an open loop that were due and not yet sent at the end of every second.
pub fn overdue(work: &Work, most_points: usize) -> Option<Figure> {
    let points = end_points(work, |second| second.backlog as f64);
    counted(work, most_points, points, ["overdue", "Operations due and not yet sent", "overdue"])
}

fn counted(work: &Work, most_points: usize, points: Vec<Point>, names: [&str; 3]) -> Option<Figure> {
    let [name, title, label] = names;
    let lines = [(label.to_string(), points)];
    let scale = Scale::from_zero(highest(&lines)?);
    let mut chart = over_time(work, scale, scale.number_ticks(4), "operations");
    chart.line(&thin(&lines[0].1, most_points), 0, Stroke::Solid, label);
    let words = describe(&lines, |value| units::count(value as u64));
    Some(chart.finish(name, title, &with_interruption(work, words)))
}

/// How long the oldest operation had been under way at the end of every second: a line that climbs is a stall.
pub fn oldest_in_flight(work: &Work, most_points: usize) -> Option<Figure> {
    let ages = end_points(work, |second| seconds(second.oldest_in_flight_ns));
    let longest = values(&ages).reduce(f64::max).filter(|longest| *longest > 0.0)?;
    let (unit, name) = if longest < 1.0 { (1e3, "milliseconds") } else { (1.0, "seconds") };
    let ages: Vec<Point> = ages.into_iter().map(|(x, age)| (x, age.map(|age| age * unit))).collect();
    let scale = Scale::from_zero(longest * unit);
    let mut chart = over_time(work, scale, scale.number_ticks(4), name);
    let points = thin(&ages, most_points);
    chart.area(&points, 5);
    chart.line(&points, 5, Stroke::Solid, "oldest");
    let words = format!("At most {}.", units::duration_ns((longest * 1e9) as u64));
    Some(chart.finish("oldest", "Age of the oldest operation in flight", &with_interruption(work, words)))
}

/// A chart over the time of a work, with what was not measured and the longest interruption shaded.
fn over_time(work: &Work, scale: Scale, ticks: Vec<scale::Tick>, title: &str) -> Chart {
    let span = span_seconds(work);
    let time = Scale::linear(0.0, span);
    let name = if span <= 120.0 { "seconds since the work's start" } else { "time since the work's start" };
    let mut chart = Chart::new(
        &Axis { scale: time, ticks: time.time_ticks(6), title: name },
        &Axis { scale, ticks, title },
    );
    let (start, end) = (seconds(work.window_start_ns), seconds(work.window_end_ns));
    if start > 0.0 {
        chart.shade(0.0, start, "unmeasured", "before the window");
    }
    if end > start && end < span - 0.05 {
        chart.shade(end, span, "unmeasured", "after the window");
    }
    if let Some(longest_gap) = interruption(work) {
        let words = format!("no success for {}", units::duration_ns(longest_gap.length_ns()));
        chart.shade(seconds(longest_gap.from_ns), seconds(longest_gap.to_ns), "outage", &words);
    }
    chart
}

/// One named line per operation.
fn lines(work: &Work, points: impl Fn(usize) -> Vec<Point>) -> Vec<(String, Vec<Point>)> {
    work.operations
        .iter()
        .enumerate()
        .map(|(index, operation)| (operation.label.clone(), points(index)))
        .collect()
}

fn values(points: &[Point]) -> impl Iterator<Item = f64> {
    points.iter().filter_map(|(_, value)| *value)
}

/// The largest value of all lines, if it is above nothing.
fn highest(lines: &[(String, Vec<Point>)]) -> Option<f64> {
    lines.iter().flat_map(|(_, points)| values(points)).reduce(f64::max).filter(|highest| *highest > 0.0)
}

/// Lines in words: between which values each one moves.
fn describe(lines: &[(String, Vec<Point>)], print: impl Fn(f64) -> String) -> String {
    let words = lines.iter().filter_map(|(label, points)| {
        let (low, high) = (values(points).reduce(f64::min)?, values(points).reduce(f64::max)?);
        Some(format!("{label}: between {} and {}.", print(low), print(high)))
    });
    words.collect::<Vec<_>>().join(" ")
}

fn with_interruption(work: &Work, words: String) -> String {
    match interruption(work) {
        Some(longest_gap) => format!(
            "{words} From {} to {} no operation succeeded.",
            units::duration_ns(longest_gap.from_ns),
            units::duration_ns(longest_gap.to_ns)
        ),
        None => words,
    }
}

/// The axis of percentiles.
fn nines_axis() -> Axis<'static> {
    let ticks =
        [(0.5, "50 %"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99"), (0.99999, "99.999")];
    Axis {
        scale: Scale::linear(nines(0.5), nines(0.99999)),
        ticks: ticks.map(|(fraction, label)| (nines(fraction), label.into())).to_vec(),
        title: "share of the operations that took at most this long",
    }
}

/// A percentile's place on an axis on which every further nine takes the same room.
fn nines(fraction: f64) -> f64 {
    -(1.0 - fraction).log10()
}

/// The percentile curve of a histogram, as far as its number of values carries: to the largest one.
fn curve(histogram: &Histogram) -> Vec<Point> {
    if histogram.is_empty() {
        return Vec::new();
    }
    let (first, last) = (nines(0.5), nines(0.99999).min((histogram.count() as f64).log10()));
    let steps = 160;
    let place = |step: u32| first + (last - first).max(0.0) * f64::from(step) / f64::from(steps);
    (0..=steps)
        .map(|step| (place(step), Some(histogram.quantile(1.0 - 10f64.powf(-place(step))) as f64)))
        .collect()
}

/// Shares of a histogram's values in percent, in classes `width` decades wide, as steps.
fn shares(histogram: &Histogram, width: f64) -> Vec<Point> {
    let class = |value: u64| ((value.max(1) as f64).log10() / width).floor() as i64;
    let mut counts = std::collections::BTreeMap::<i64, u64>::new();
    for (value, count) in histogram.buckets() {
        *counts.entry(class(value)).or_default() += count;
    }
    let (Some((first, _)), Some((last, _))) = (counts.first_key_value(), counts.last_key_value()) else {
        return Vec::new();
    };
    let edge = |class: i64| 10f64.powf(class as f64 * width);
    let share = |class: i64| {
        let count = counts.get(&class).copied().unwrap_or(0);
        Some(100.0 * count as f64 / histogram.count() as f64)
    };
    let steps =
        (*first..=*last).flat_map(|class| [(edge(class), share(class)), (edge(class + 1), share(class))]);
    [(edge(*first), Some(0.0))].into_iter().chain(steps).chain([(edge(*last + 1), Some(0.0))]).collect()
}
