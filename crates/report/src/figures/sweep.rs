//! A sweep over its longest axis: throughput, and the 99th percentile of the response times.

use super::bandwidth_unit;
use super::chart::{Axis as Drawn, Chart, Measured, Stroke};
use super::figure::Figure;
use super::scale::{Scale, Tick};
use tidemark_judge::sweep::{Dimension, Point, Spread, Sweep};
use tidemark_measure::axis::Axis;
use tidemark_measure::units;

/// Ticks that fit below an axis.
const MOST_TICKS: usize = 9;

/// Pairs of figures of one sweep, at most; the table has all points.
const MOST_PANELS: usize = 16;

/// How a sweep is laid out.
struct Layout<'s, 'a> {
    sweep: &'s Sweep<'a>,
    /// The axis that runs along the bottom, and its numbers from low to high, with their names.
    along: &'s Dimension<'a>,
    stops: Vec<(f64, &'a Axis)>,
    /// The axis that has a line for each of its values.
    lines: Option<&'s Dimension<'a>>,
    /// Values of all other axes that vary: a pair of figures for each combination.
    panels: Vec<Vec<&'a Axis>>,
}

/// What is drawn: its value at a point, and how it is shown.
#[derive(Clone, Copy)]
enum Quantity {
    Rate,
    Bandwidth,
    P99,
}

/// The figures of a sweep, in pairs; none when it has no axis of several numbers.
pub fn of_sweep(sweep: &Sweep<'_>) -> Vec<Figure> {
    let axes = sweep.dimensions();
    let Some(layout) = Layout::new(sweep, &axes) else { return Vec::new() };
    let throughput = if layout.along.is_bytes { Quantity::Bandwidth } else { Quantity::Rate };
    let quantities = [throughput, Quantity::P99].map(|quantity| {
        let values: Vec<_> = sweep.points.iter().map(|point| quantity.of(point)).collect();
        (quantity, values)
    });
    let mut figures = Vec::new();
    for (number, panel) in layout.panels.iter().take(MOST_PANELS).enumerate() {
        let pair =
            quantities.iter().map(|(quantity, values)| layout.figure(number, panel, *quantity, values));
        figures.extend(pair.flatten());
    }
    figures
}

/// A line of a panel: its points from low to high, by their place on the bottom and their number in the sweep.
struct Line {
    colour: usize,
    stroke: Stroke,
    label: String,
    points: Vec<(f64, usize)>,
}

impl<'s, 'a> Layout<'s, 'a> {
    fn new(sweep: &'s Sweep<'a>, axes: &'s [Dimension<'a>]) -> Option<Self> {
        let varied: Vec<&Dimension<'a>> = axes.iter().filter(|axis| axis.values.len() > 1).collect();
        let numeric = varied.iter().rev().filter(|axis| axis.numbers.is_some());
        let along = *numeric.max_by_key(|axis| axis.values.len())?;
        let mut stops: Vec<_> =
            along.numbers.iter().flatten().copied().zip(along.values.iter().copied()).collect();
        stops.sort_by(|left, right| left.0.total_cmp(&right.0));
        let others: Vec<_> = varied.into_iter().filter(|axis| axis.name != along.name).collect();
        // Words make better lines than numbers.
        let lines =
            others.iter().rev().max_by_key(|axis| (axis.numbers.is_none(), axis.values.len())).copied();
        let rest: Vec<_> =
            others.iter().filter(|axis| lines.is_none_or(|lines| lines.name != axis.name)).collect();
        let mut panels = Vec::new();
        for point in &sweep.points {
            let panel: Vec<_> = rest.iter().filter_map(|axis| point.at(axis.name)).collect();
            if !panels.contains(&panel) {
                panels.push(panel);
            }
        }
        Some(Self { sweep, along, stops, lines, panels })
    }

    fn figure(
        &self,
        number: usize,
        panel: &[&Axis],
        quantity: Quantity,
        values: &[Option<Spread>],
    ) -> Option<Figure> {
        // One scale for all panels: they are there to be compared.
        let all = values.iter().flatten();
        let (low, high) = all.fold((f64::MAX, 0.0f64), |(low, high), spread| {
            (low.min(spread.low.min(spread.mean)), high.max(spread.high.max(spread.mean)))
        });
        if high <= 0.0 {
            return None;
        }
        let (unit, title) = quantity.unit(high);
        let scale = match quantity {
            Quantity::P99 => Scale::latency(low, high),
            _ => Scale::from_zero(high / unit),
        };
        let ticks = match quantity {
            Quantity::P99 => scale.latency_ticks(7),
            _ => scale.number_ticks(4),
        };
        let (along, ticks_below) = self.bottom();
        let below = self.along.name.replace('_', " ");
        let x = Drawn { scale: along, ticks: ticks_below, title: &below };
        let mut chart = Chart::with_room(&x, &Drawn { scale, ticks, title });
        let mut words = Vec::new();
        for line in self.drawn(panel) {
            let own = line.points.iter().filter_map(|(x, point)| Some((*x, values[*point]?)));
            let own: Vec<(f64, Spread)> = own.collect();
            let scaled = |(x, one): &(f64, Spread)| {
                let [value, low, high] = [one.mean, one.low, one.high].map(|value| value / unit);
                Measured { x: *x, value, low, high }
            };
            let measured: Vec<Measured> = own.iter().map(scaled).collect();
            chart.measured(&measured, line.colour, line.stroke, &line.label);
            let said =
                own.iter().map(|(x, one)| format!("{} {}", self.name_of(*x), quantity.print(one.mean)));
            words.push(format!("{}: {}.", line.label, said.collect::<Vec<_>>().join(", ")));
        }
        let place: Vec<_> = panel.iter().map(|axis| axis.label()).collect();
        let place = if place.is_empty() { String::new() } else { format!(": {}", place.join(", ")) };
        let title = format!("{} by {below}{place}", quantity.title());
        Some(chart.finish(&format!("{}-{number}", quantity.name()), &title, &words.join(" ")))
    }

    /// The lines of a panel; fio's are dashed where it is compared with another engine.
    fn drawn(&self, panel: &[&Axis]) -> Vec<Line> {
        let engines = self.sweep.engines();
        let values: Vec<Option<&Axis>> = match self.lines {
            Some(axis) => axis.values.iter().map(|value| Some(*value)).collect(),
            None => vec![None],
        };
        let mut drawn = Vec::new();
        for (colour, value) in values.into_iter().enumerate() {
            for (number, engine) in engines.iter().enumerate() {
                let own = |point: &Point<'a>| {
                    point.engine == *engine
                        && panel.iter().all(|axis| point.at(&axis.name) == Some(*axis))
                        && self.lines.is_none_or(|axis| point.at(axis.name) == value)
                };
                let at = |(x, stop): &(f64, &Axis)| {
                    let here = |point: &Point<'a>| point.at(self.along.name) == Some(*stop) && own(point);
                    Some((*x, self.sweep.points.iter().position(here)?))
                };
                let points: Vec<_> = self.stops.iter().filter_map(at).collect();
                let name = self.lines.and(value).map(Axis::label);
                let label = match (name, engines.len()) {
                    // Beside the first engine, the others say which they are.
                    (Some(name), 2..) if number > 0 => format!("{name} {engine}"),
                    (Some(name), _) => name,
                    (None, 2..) => (*engine).to_owned(),
                    (None, _) => self.sweep.name.to_owned(),
                };
                let stroke = if number > 0 { Stroke::Dashed } else { Stroke::Solid };
                if !points.is_empty() {
                    drawn.push(Line { colour, stroke, label, points });
                }
            }
        }
        drawn
    }

    /// The bottom's scale, by factors where each number is about twice the one before or more, and its ticks.
    fn bottom(&self) -> (Scale, Vec<Tick>) {
        let numbers = || self.stops.iter().map(|(number, _)| *number);
        let (low, high) = (numbers().fold(f64::MAX, f64::min), numbers().fold(0.0, f64::max));
        let doubles = low > 0.0 && self.stops.windows(2).all(|pair| pair[1].0 >= pair[0].0 * 1.9);
        let scale = if doubles { Scale::factors(low, high) } else { Scale::steps_between(low, high) };
        let every = self.stops.len().div_ceil(MOST_TICKS).max(1);
        (
            scale,
            self.stops
                .iter()
                .step_by(every)
                .map(|(number, stop)| (*number, stop.value.to_string()))
                .collect(),
        )
    }

    fn name_of(&self, number: f64) -> String {
        let stop = self.stops.iter().find(|(stop, _)| *stop == number);
        stop.map(|(_, axis)| axis.value.to_string()).unwrap_or_default()
    }
}

impl Quantity {
    /// The value at a point with the range of its repeats; the 99th percentile is that of all repeats together.
    fn of(self, point: &Point<'_>) -> Option<Spread> {
        match self {
            Quantity::Rate => Spread::of(&point.rates()),
            Quantity::Bandwidth => Spread::of(&point.bandwidths()),
            Quantity::P99 => {
                let all = point.response();
                let each: Vec<f64> =
                    point.responses().iter().map(|response| response.quantile(0.99) as f64).collect();
                let enough = all.count() >= 100;
                Spread::of(&each)
                    .filter(|_| enough)
                    .map(|spread| Spread { mean: all.quantile(0.99) as f64, ..spread })
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Quantity::Rate => "sweep-throughput",
            Quantity::Bandwidth => "sweep-bandwidth",
            Quantity::P99 => "sweep-p99",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Quantity::Rate => "Throughput",
            Quantity::Bandwidth => "Bandwidth",
            Quantity::P99 => "p99 of the response time",
        }
    }

    /// What values are divided by, and what the axis is called then.
    fn unit(self, highest: f64) -> (f64, &'static str) {
        match self {
            Quantity::Rate => (1.0, "op/s"),
            Quantity::Bandwidth => bandwidth_unit(highest),
            Quantity::P99 => (1.0, "p99, logarithmic"),
        }
    }

    fn print(self, value: f64) -> String {
        match self {
            Quantity::Rate => units::rate(value),
            Quantity::Bandwidth => format!("{}/s", units::bytes(value as u64)),
            Quantity::P99 => units::duration_ns(value as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use tidemark_judge::sweep::sweeps;
    use tidemark_measure::record::Run;

    fn titles(run: &Run) -> Vec<Vec<String>> {
        let of = |sweep: &Sweep<'_>| of_sweep(sweep).into_iter().map(|figure| figure.title).collect();
        sweeps(run).iter().map(of).collect()
    }

    #[test]
    fn the_longest_axis_of_numbers_runs_along_the_bottom() {
        let run = sample::sweeps(2);
        assert_eq!(
            titles(&run),
            [
                ["Bandwidth by block size", "p99 of the response time by block size"],
                ["Throughput by clients", "p99 of the response time by clients"]
            ]
        );
        let sweeps = sweeps(&run);
        let figures = of_sweep(&sweeps[1]);
        let words = &figures[0].description;
        assert!(words.contains("randread: 1 ") && words.contains("randwrite fio: 1 "), "{words}");
        assert!(figures[0].standalone().contains("dashed"), "fio's lines are dashed");
    }

    #[test]
    fn further_axes_have_a_pair_of_figures_for_each_combination() {
        let mut run = sample::sweeps(2);
        run.stages.truncate(30);
        for (index, stage) in run.stages.iter_mut().enumerate() {
            // Repeats become depths.
            let cell = stage.cell.as_mut().unwrap();
            cell.axes.push(Axis::count("depth", [1, 8, 64][index / 10]));
        }
        let titles = titles(&run).remove(0);
        assert_eq!(titles.len(), 6);
        assert_eq!(titles[4], "Bandwidth by block size: depth 64");
    }

    #[test]
    fn a_sweep_without_an_axis_of_numbers_has_no_figures() {
        let mut run = sample::sweeps(2);
        run.stages.truncate(30);
        run.stages.iter_mut().for_each(|stage| stage.cell.as_mut().unwrap().axes.truncate(1));
        assert_eq!(titles(&run), [Vec::<String>::new()]);
    }
}
