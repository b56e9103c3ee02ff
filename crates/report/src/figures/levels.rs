//! Loads at several levels, a line for each arm: latency against throughput, throughput by level, and percentiles.

use super::chart::{Axis, Chart, Measured, Stroke};
use super::figure::Figure;
use super::scale::Scale;
use super::series::Point;
use super::{curve, nines_axis};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::units;

/// Ticks that fit below an axis of levels.
const MOST_TICKS: usize = 9;

/// One arm at all levels.
pub(crate) struct Curve {
    /// The arm.
    pub(crate) label: String,
    /// Its colour.
    pub(crate) colour: usize,
    /// Its levels, ascending.
    pub(crate) stops: Vec<Stop>,
}

/// One arm at one level.
pub(crate) struct Stop {
    /// The level as a number, and as the document writes it.
    pub(crate) level: f64,
    pub(crate) name: String,
    /// Operations per second, and the ends of the interval.
    pub(crate) throughput: f64,
    pub(crate) interval: Option<(f64, f64)>,
    /// The statistic of the response time that counts, nanoseconds.
    pub(crate) latency_ns: Option<f64>,
    /// Whether it is the highest level within the service level.
    pub(crate) is_knee: bool,
}

/// Latency against throughput: `statistic` is what the latencies are, `limit` what they must stay within, nanoseconds
/// and in words.
pub(crate) fn latency_by_throughput(
    curves: &[Curve],
    statistic: &str,
    limit: Option<&(f64, String)>,
) -> Option<Figure> {
    let stops =
        || curves.iter().flat_map(|curve| &curve.stops).filter_map(|stop| Some((stop, stop.latency_ns?)));
    let latencies = || stops().map(|(_, latency)| latency).filter(|latency| *latency > 0.0);
    let bounds = || latencies().chain(limit.iter().map(|(limit, _)| *limit));
    let scale = Scale::latency(
        latencies().reduce(f64::min)?.min(bounds().fold(f64::MAX, f64::min)),
        bounds().fold(0.0, f64::max),
    );
    let throughput = Scale::from_zero(stops().map(|(stop, _)| stop.throughput).fold(0.0, f64::max));
    let title = format!("{statistic} of the response time, logarithmic");
    let x = Axis { scale: throughput, ticks: throughput.number_ticks(4), title: "op/s" };
    let mut chart = Chart::with_room(&x, &Axis { scale, ticks: scale.latency_ticks(7), title: &title });
    let mut words = Vec::new();
    words.extend(limit.iter().map(|(_, text)| format!("The service level is {text}.")));
    for curve in curves {
        let drawn = || curve.stops.iter().filter_map(|stop| Some((stop, stop.latency_ns?)));
        let points: Vec<Measured> =
            drawn().map(|(stop, latency)| Measured::single(stop.throughput, latency)).collect();
        chart.measured(&points, curve.colour, Stroke::Own, &curve.label);
        for (stop, latency) in drawn().filter(|(stop, _)| stop.is_knee) {
            chart.ring((stop.throughput, latency), curve.colour);
        }
        let said = drawn().map(|(stop, latency)| {
            let (rate, latency) = (units::rate(stop.throughput), units::duration_ns(latency as u64));
            let knee = if stop.is_knee { ", the knee" } else { "" };
            format!("{}: {rate} at {latency}{knee}", stop.name)
        });
        words.push(format!("{}: {}.", curve.label, said.collect::<Vec<_>>().join("; ")));
    }
    // All lines are there: now the words between them, knees first; other points take the room that is left.
    for knees in [true, false] {
        for (curve, stop) in curves.iter().flat_map(|curve| curve.stops.iter().map(move |stop| (curve, stop)))
        {
            if let Some(latency) = stop.latency_ns.filter(|_| stop.is_knee == knees) {
                let name = if knees { format!("knee: {}", stop.name) } else { stop.name.clone() };
                chart.note((stop.throughput, latency), curve.colour, &name, knees);
            }
        }
        if let Some((limit, text)) = limit.filter(|_| knees) {
            chart.limit(*limit, text);
        }
    }
    Some(chart.finish("latency-by-throughput", "Response time against throughput", &words.join(" ")))
}

/// Throughput by level with the intervals of the repeats; the knees have rings.
pub(crate) fn throughput_by_level(curves: &[Curve], axis: &str) -> Option<Figure> {
    let stops = || curves.iter().flat_map(|curve| &curve.stops);
    let highest =
        stops().map(|stop| stop.interval.map_or(stop.throughput, |(_, high)| high.max(stop.throughput)));
    let scale = Scale::from_zero(highest.fold(0.0, f64::max));
    let mut levels: Vec<(f64, &str)> = stops().map(|stop| (stop.level, stop.name.as_str())).collect();
    levels.sort_by(|left, right| left.0.total_cmp(&right.0));
    levels.dedup_by(|left, right| left.0 == right.0);
    let (low, high) = (levels.first()?.0, levels.last()?.0);
    let doubles = low > 0.0 && levels.len() > 2 && high / low >= 1.6f64.powi(levels.len() as i32 - 1);
    let below = if doubles { Scale::factors(low, high) } else { Scale::steps_between(low, high) };
    let every = levels.len().div_ceil(MOST_TICKS).max(1);
    let ticks = levels.iter().step_by(every).map(|(level, name)| (*level, (*name).to_owned())).collect();
    let x = Axis { scale: below, ticks, title: axis };
    let mut chart = Chart::with_room(&x, &Axis { scale, ticks: scale.number_ticks(4), title: "op/s" });
    let mut words = Vec::new();
    for curve in curves {
        let measured = |stop: &Stop| {
            let (low, high) = stop.interval.unwrap_or((stop.throughput, stop.throughput));
            Measured { x: stop.level, value: stop.throughput, low, high }
        };
        let points: Vec<Measured> = curve.stops.iter().map(measured).collect();
        chart.measured(&points, curve.colour, Stroke::Own, &curve.label);
        for stop in curve.stops.iter().filter(|stop| stop.is_knee) {
            chart.ring((stop.level, stop.throughput), curve.colour);
        }
        let said = curve.stops.iter().map(|stop| format!("{} {}", stop.name, units::rate(stop.throughput)));
        words.push(format!("{}: {}.", curve.label, said.collect::<Vec<_>>().join(", ")));
    }
    Some(chart.finish("throughput-by-level", &format!("Throughput by {axis}"), &words.join(" ")))
}

/// Response times by percentile: name, colour and distribution of every line.
pub(crate) fn percentile_curves(lines: &[(&str, usize, &Histogram)]) -> Option<Figure> {
    let known = || lines.iter().filter(|(_, _, histogram)| !histogram.is_empty());
    let longest = known().map(|(_, _, histogram)| histogram.max()).max()?;
    let shortest = known().map(|(_, _, histogram)| histogram.quantile(0.5)).min()?;
    let scale = Scale::latency(shortest as f64, longest as f64);
    let y = Axis { scale, ticks: scale.latency_ticks(7), title: "response time, logarithmic" };
    let mut chart = Chart::with_room(&nines_axis(), &y);
    let mut words = Vec::new();
    for (label, colour, histogram) in known() {
        let points: Vec<Point> = curve(histogram);
        chart.long_line(&points, *colour, Stroke::Own, label);
        let at = |fraction| units::duration_ns(histogram.quantile(fraction));
        words.push(format!(
            "{label}: p50 {}, p99 {}, p99.9 {}, max {}.",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        ));
    }
    Some(chart.finish("percentiles", "Response time by percentile", &words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves() -> Vec<Curve> {
        let stop = |arm: usize, level: u32| Stop {
            level: f64::from(level),
            name: level.to_string(),
            throughput: f64::from(level.min(40)) * 100.0,
            interval: Some((f64::from(level.min(40)) * 95.0, f64::from(level.min(40)) * 105.0)),
            latency_ns: Some(f64::from(level) * 1e6 * (arm + 1) as f64),
            is_knee: level == 40,
        };
        (0..2)
            .map(|arm| Curve {
                label: ["disk", "memory"][arm].into(),
                colour: arm,
                stops: [5, 10, 20, 40, 80].map(|level| stop(arm, level)).into(),
            })
            .collect()
    }

    #[test]
    fn the_knee_and_the_service_level_are_drawn_and_said() {
        let limit = (60e6, "p95 \u{2264} 60 ms".to_string());
        let figure = latency_by_throughput(&curves(), "p95", Some(&limit)).unwrap();
        let text = figure.inline("f");
        assert_eq!(text.matches("r=\"7\"").count(), 2, "a ring for each arm's knee");
        assert!(text.contains(">knee: 40</text>") && text.contains("class=\"limit\""), "{text}");
        assert!(
            figure.description.contains("40: 4\u{202f}000 op/s at 40.0 ms, the knee"),
            "{}",
            figure.description
        );
        assert!(text.contains("line p1 c1"), "the second arm's line is dashed: {text}");
    }

    #[test]
    fn levels_are_the_ticks() {
        let figure = throughput_by_level(&curves(), "workers").unwrap();
        let text = figure.inline("f");
        for level in ["5", "10", "20", "40", "80"] {
            assert!(text.contains(&format!(">{level}</text>")), "{level}");
        }
        assert!(
            throughput_by_level(&[], "workers").is_none()
                && latency_by_throughput(&[], "p95", None).is_none()
        );
        assert!(percentile_curves(&[("a", 0, &Histogram::new())]).is_none());
    }
}
