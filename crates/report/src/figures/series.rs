//! From a work's seconds to points worth drawing.

use tidemark_measure::record::{LongestGap, Second, SecondOfOperation, Work};

/// Seconds that are drawn and written out, at most: 23 days. A damaged record may claim 136 years.
const MOST_SECONDS: u32 = 2_000_000;

/// One point of a line: seconds since the work's start and a value; `None` is a gap.
pub(crate) type Point = (f64, Option<f64>);

/// A moment of a work on the axis of time.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Where the axis of time ends: when everything that was recorded had ended.
pub(crate) fn span_seconds(work: &Work) -> f64 {
    let last_second = f64::from(whole_seconds(work));
    // The last second is rarely whole: it counts as far as the work went on in it.
    let ended = seconds(work.window_end_ns.max(work.last_done_ns));
    if ended > last_second - 1.0 && ended < last_second { ended } else { ended.max(last_second) }
}

/// Seconds that a work has a record of, gaps included.
pub(crate) fn whole_seconds(work: &Work) -> u32 {
    work.series.last().map_or(0, |second| second.index.saturating_add(1).min(MOST_SECONDS))
}

/// A rate per second in the window, from what each second counted.
///
/// The first and the last second of a window may be partly outside: their counts are divided by the part that is
/// inside, and left out when that is less than a fifth of a second, which would be noise. A second without a
/// record had nothing to count.
pub(crate) fn rate_points(work: &Work, operation: usize, value: fn(&SecondOfOperation) -> u64) -> Vec<Point> {
    let (start, end) = (seconds(work.window_start_ns), seconds(work.window_end_ns));
    each_second(work)
        .filter_map(|(index, second)| {
            let (from, to) = (start.max(index as f64), end.min(index as f64 + 1.0));
            let counted = second.and_then(|second| second.operations.get(operation)).map_or(0, value);
            (to - from >= 0.2).then(|| ((from + to) / 2.0, Some(counted as f64 / (to - from))))
        })
        .collect()
}

/// What happened in every second, drawn in its middle; `None` where there was nothing to take it from.
pub(crate) fn value_points(work: &Work, value: impl Fn(&Second) -> Option<f64>) -> Vec<Point> {
    let span = span_seconds(work);
    each_second(work)
        .map(|(index, second)| ((index as f64 + 0.5).min(span), second.and_then(&value)))
        .collect()
}

/// What held at the end of every second, drawn there. The last second is left out unless it is whole: at the end of
/// the work nothing is in flight.
pub(crate) fn end_points(work: &Work, value: impl Fn(&Second) -> f64) -> Vec<Point> {
    let span = span_seconds(work);
    let ends = each_second(work).map(|(index, second)| (f64::from(index) + 1.0, second.map(&value)));
    ends.filter(|(end, _)| *end <= span).collect()
}

/// A latency of one operation in every second, nanoseconds; a gap where it had no success.
pub(crate) fn latency_points(
    work: &Work,
    operation: usize,
    value: fn(&SecondOfOperation) -> u64,
) -> Vec<Point> {
    value_points(work, |second| {
        let numbers = second.operations.get(operation).filter(|numbers| numbers.ok > 0)?;
        Some(value(numbers) as f64)
    })
}

/// Every second from 0 to the last one recorded, with its record if there is one.
fn each_second(work: &Work) -> impl Iterator<Item = (u32, Option<&Second>)> {
    let last = whole_seconds(work);
    let mut rest = work.series.iter().peekable();
    (0..last).map(move |index| {
        while rest.next_if(|second| second.index < index).is_some() {}
        (index, rest.next_if(|second| second.index == index))
    })
}

/// At most `most` points (at least 2) that keep the smallest and the largest value of every part of the line.
///
/// Gaps that are shorter than one part disappear; longer ones stay.
pub(crate) fn thin(points: &[Point], most: usize) -> Vec<Point> {
    let most = most.max(2);
    if points.len() <= most {
        return points.to_vec();
    }
    let length = points.len().div_ceil(most / 2);
    let mut kept = Vec::with_capacity(most);
    for part in points.chunks(length) {
        let values = || part.iter().filter(|(_, value)| value.is_some());
        let order =
            |left: &&Point, right: &&Point| left.1.partial_cmp(&right.1).unwrap_or(std::cmp::Ordering::Equal);
        match (values().min_by(order), values().max_by(order)) {
            (Some(low), Some(high)) if low.0 == high.0 => kept.push(*low),
            (Some(low), Some(high)) if low.0 < high.0 => kept.extend([*low, *high]),
            (Some(low), Some(high)) => kept.extend([*high, *low]),
            _ => kept.push((part[0].0, None)),
        }
    }
    kept
}

/// The work's longest time without a success, if it was an interruption rather than the pace of the operations:
/// at least one second and four times the median response.
pub(crate) fn interruption(work: &Work) -> Option<LongestGap> {
    let median = work.operations.iter().map(|operation| operation.tally.response.quantile(0.5)).max();
    let least = median.unwrap_or(0).saturating_mul(4).max(1_000_000_000);
    work.longest_gap.filter(|longest_gap| longest_gap.length_ns() >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_extremes_order_and_long_gaps() {
        let mut points: Vec<Point> = (0..12_000).map(|i| (f64::from(i), Some(100.0))).collect();
        points[4_321].1 = Some(0.0);
        points[7_777].1 = Some(9_999.0);
        points[9_000..9_500].iter_mut().for_each(|point| point.1 = None);
        let thinned = thin(&points, 600);
        assert!(thinned.len() <= 600, "{}", thinned.len());
        assert!(thinned.contains(&(4_321.0, Some(0.0))) && thinned.contains(&(7_777.0, Some(9_999.0))));
        assert!(thinned.iter().any(|point| point.1.is_none()));
        assert!(thinned.is_sorted_by(|left, right| left.0 < right.0));
        assert_eq!(thin(&points[..5], 600), points[..5]);
    }

    #[test]
    fn partial_seconds_are_divided_by_the_part_that_is_in_the_window() {
        let second = |index, ok| Second {
            index,
            operations: vec![SecondOfOperation { ok, ..Default::default() }],
            ..Default::default()
        };
        let work = Work {
            window_start_ns: 500_000_000,
            window_end_ns: 4_100_000_000,
            series: vec![second(0, 50), second(1, 100), second(3, 80), second(4, 10)],
            ..Default::default()
        };
        let points = rate_points(&work, 0, |second| second.ok);
        assert_eq!(points, [(0.75, Some(100.0)), (1.5, Some(100.0)), (2.5, Some(0.0)), (3.5, Some(80.0))]);
    }

    #[test]
    fn slow_operations_are_not_an_interruption() {
        let longest_gap = Some(LongestGap { from_ns: 0, to_ns: 3_000_000_000 });
        let mut work = Work { longest_gap, operations: vec![Default::default()], ..Default::default() };
        assert_eq!(interruption(&work), longest_gap);
        work.operations[0].tally.response.record(2_000_000_000);
        assert_eq!(interruption(&work), None);
    }
}
