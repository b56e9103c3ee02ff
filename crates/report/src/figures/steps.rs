//! Lines over whole numbers, such as the cycles of a table, a line for each work.

use super::chart::{Axis, Chart, Stroke};
use super::figure::Figure;
use super::scale::Scale;
use super::series::Point;
use super::thin;
use tidemark_judge::section::{Lines, Unit};
use tidemark_measure::units;

/// Steps that are named along the axis, at most.
const MOST_TICKS: u32 = 12;

/// The figure of these lines; `None` where there are fewer than two steps.
pub(crate) fn by_step(chart: &Lines, most_points: usize) -> Option<Figure> {
    let lines: Vec<(&str, Vec<Point>)> = chart
        .lines
        .iter()
        .map(|(label, points)| {
            let points =
                points.iter().map(|(step, value)| (f64::from(*step), Some(drawn(chart.unit, *value))));
            (label.as_str(), points.collect())
        })
        .collect();
    let all = || lines.iter().flat_map(|(_, points)| points);
    let last = all().map(|(step, _)| *step).fold(0.0, f64::max);
    if last < 2.0 {
        return None;
    }
    let scale = Scale::from_zero(all().filter_map(|(_, value)| *value).fold(0.0, f64::max));
    let every = (last as u32).div_ceil(MOST_TICKS).max(1);
    let ticks = (0..)
        .map(|tick| 1 + tick * every)
        .take_while(|step| f64::from(*step) <= last)
        .map(|step| (f64::from(step), step.to_string()));
    let x = Axis { scale: Scale::linear(1.0, last), ticks: ticks.collect(), title: chart.steps };
    let title = match chart.unit {
        Unit::Time => "ms",
        Unit::Count(of) => of,
    };
    let mut drawing = Chart::with_room(&x, &Axis { scale, ticks: scale.number_ticks(4), title });
    let mut words = Vec::new();
    for (colour, (label, points)) in lines.iter().enumerate() {
        drawing.long_line(&thin(points, most_points), colour, Stroke::Own, label);
        let ends = chart.lines.get(colour).and_then(|(_, points)| Some((points.first()?, points.last()?)));
        if let Some(((first, from), (last, to))) = ends {
            let [from, to] = [from, to].map(|value| print(chart.unit, *value));
            words.push(format!(
                "{label}: {from} in {steps} {first}, {to} in {steps} {last}.",
                steps = chart.steps
            ));
        }
    }
    Some(drawing.finish(chart.name, chart.title, &words.join(" ")))
}

/// The value as the axis has it: times in milliseconds.
fn drawn(unit: Unit, value: f64) -> f64 {
    match unit {
        Unit::Time => value / 1e6,
        Unit::Count(_) => value,
    }
}

fn print(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Time => units::duration_ns(value as u64),
        Unit::Count(_) => units::count(value as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(unit: Unit, steps: u32) -> Lines {
        let points: Vec<(u32, f64)> = (1..=steps).map(|step| (step, f64::from(step) * 5e6)).collect();
        let lines = vec![("<never>".into(), points.clone()), ("every 5".into(), points)];
        Lines { name: "by-cycle", title: "By cycle", steps: "cycle", unit, lines }
    }

    #[test]
    fn each_line_has_its_label_and_its_ends_in_words() {
        let time = by_step(&chart(Unit::Time, 4), 600).unwrap();
        let words = "<never>: 5.00 ms in cycle 1, 20.0 ms in cycle 4.";
        assert!(time.description.contains(words), "{}", time.description);
        let requests = by_step(&chart(Unit::Count("requests"), 4), 600).unwrap();
        let [first, last] = [5_000_000, 20_000_000].map(units::count);
        let words = format!("every 5: {first} in cycle 1, {last} in cycle 4.");
        assert!(requests.description.contains(&words), "{}", requests.description);
        let text = time.inline("f");
        assert!(
            text.contains("&lt;never&gt;") && !text.contains("<never>") && !text.contains("NaN"),
            "{text}"
        );
        assert!(by_step(&chart(Unit::Time, 1), 600).is_none(), "one step is no line");
    }
}
