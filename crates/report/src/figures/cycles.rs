//! How a table ages: what its queries take in each cycle, a line for each work.

use super::chart::{Axis, Chart, Stroke};
use super::figure::Figure;
use super::scale::Scale;
use super::series::Point;
use super::thin;
use tidemark_measure::record::{CyclesUse, QueriesTook};
use tidemark_measure::units;

/// Cycles that are named along the axis, at most.
const MOST_TICKS: u32 = 12;

/// Every figure of the cycles of these works, each with its name.
pub(crate) fn of_cycles(works: &[(String, &CyclesUse)], most_points: usize) -> Vec<Figure> {
    let millis = |took: QueriesTook| took.ns as f64 / 1e6;
    let requests = |took: QueriesTook| took.requests as f64;
    let time = by_cycle(
        works,
        most_points,
        ("query-time-by-cycle", "Time of the queries by cycle", "ms"),
        millis,
        |value| units::duration_ns((value * 1e6) as u64),
    );
    let asked = by_cycle(
        works,
        most_points,
        ("requests-by-cycle", "Requests of the queries by cycle", "requests"),
        requests,
        |value| units::count(value as u64),
    );
    time.into_iter().chain(asked).collect()
}

fn by_cycle(
    works: &[(String, &CyclesUse)],
    most_points: usize,
    (name, title, unit): (&str, &str, &str),
    of: fn(QueriesTook) -> f64,
    told: fn(f64) -> String,
) -> Option<Figure> {
    let lines: Vec<(&str, Vec<Point>)> = works
        .iter()
        .map(|(label, used)| {
            let points = used.measured().map(|(cycle, took, _)| (f64::from(cycle.cycle), Some(of(took))));
            (label.as_str(), points.collect())
        })
        .collect();
    let all = || lines.iter().flat_map(|(_, points)| points);
    let last = all().map(|(cycle, _)| *cycle).fold(0.0, f64::max);
    if last < 2.0 {
        return None;
    }
    let scale = Scale::from_zero(all().filter_map(|(_, value)| *value).fold(0.0, f64::max));
    let every = (last as u32).div_ceil(MOST_TICKS).max(1);
    let ticks = (0..)
        .map(|step| 1 + step * every)
        .take_while(|cycle| f64::from(*cycle) <= last)
        .map(|cycle| (f64::from(cycle), cycle.to_string()));
    let x = Axis { scale: Scale::linear(1.0, last), ticks: ticks.collect(), title: "cycle" };
    let mut chart = Chart::with_room(&x, &Axis { scale, ticks: scale.number_ticks(4), title: unit });
    let mut words = Vec::new();
    for (colour, (label, points)) in lines.iter().enumerate() {
        chart.long_line(&thin(points, most_points), colour, Stroke::Own, label);
        if let (Some((first, Some(from))), Some((last, Some(to)))) = (points.first(), points.last()) {
            words.push(format!("{label}: {} in cycle {first}, {} in cycle {last}.", told(*from), told(*to)));
        }
    }
    Some(chart.finish(name, title, &words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::record::{CycleUse, StepKind, StepUse, TableState};

    #[test]
    fn each_work_has_a_line_and_failed_cycles_have_no_point() {
        let cycle = |cycle: u32| {
            let failed = u64::from(cycle == 2);
            let query = StepUse {
                kind: StepKind::Query,
                ok: 1,
                failed,
                took_ns: u64::from(cycle) * 5_000_000,
                requests: 7,
                ..StepUse::default()
            };
            CycleUse { cycle, found: Some(TableState::default()), steps: vec![query] }
        };
        let used = CyclesUse { cycles: (1..=4).map(cycle).collect(), ..CyclesUse::default() };
        let works = [("<never>".to_owned(), &used), ("every 5".to_owned(), &used)];
        let figures = of_cycles(&works, 600);
        let [time, requests] = &figures[..] else { panic!("{} figures", figures.len()) };
        assert!(
            time.description.contains("<never>: 5.00 ms in cycle 1, 20.0 ms in cycle 4."),
            "{}",
            time.description
        );
        assert!(requests.description.contains("every 5: 7 in cycle 1, 7 in cycle 4."));
        let text = time.inline("f");
        assert!(
            text.contains("&lt;never&gt;") && !text.contains("<never>") && !text.contains("NaN"),
            "{text}"
        );
        let one = CyclesUse { cycles: vec![cycle(1)], ..CyclesUse::default() };
        assert!(of_cycles(&[("one".into(), &one)], 600).is_empty());
    }
}
