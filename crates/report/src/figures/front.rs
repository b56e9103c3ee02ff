//! The front of two objectives: what is not dominated, what cannot be told from it, and what is dominated.

use super::chart::{Axis, Chart, Stroke};
use super::figure::Figure;
use super::scale::{Scale, Tick};
use tidemark_measure::tuning::Objective;
use tidemark_tune::front::{Estimated, Place, Point};

/// Points of the front by the first objective along the bottom and the second along the side, with their intervals and numbers; the others
/// with marks of their own. `None` without points.
pub(crate) fn front(points: &[Point], objectives: [Objective; 2]) -> Option<Figure> {
    let reach = |index: usize| {
        let ends = points.iter().flat_map(|point| {
            let Estimated { mean, interval } = point.values[index];
            // An interval does not dwarf the points.
            let (low, high) = interval.filter(|_| is_open(point)).unwrap_or((mean, mean));
            [low.max(mean / 2.0), high.min(mean * 2.0)]
        });
        ends.fold((f64::MAX, 0.0f64), |(low, high), end| (low.min(end), high.max(end)))
    };
    if points.is_empty() {
        return None;
    }
    let [(across, across_ticks), (up, up_ticks)] = [0, 1].map(|index| scale(objectives[index], reach(index)));
    let titles = objectives.map(title);
    let x = Axis { scale: across, ticks: across_ticks, title: &titles[0] };
    let y = Axis { scale: up, ticks: up_ticks, title: &titles[1] };
    let mut chart = Chart::with_room(&x, &y);
    let of = |place: Place| points.iter().filter(move |point| point.place == place);
    let at = |point: &Point| (point.values[0].mean, point.values[1].mean);
    let groups = [
        (Place::Dominated, 5, "dominated"),
        (Place::CannotTell, 1, "cannot tell"),
        (Place::Front, 0, "not dominated"),
    ];
    let mut words = Vec::new();
    for (place, colour, label) in groups {
        let own: Vec<(f64, f64)> = of(place).map(at).collect();
        if place == Place::Front {
            for point in of(place) {
                let ends = point.values.map(|value| value.interval.unwrap_or((value.mean, value.mean)));
                chart.cross(at(point), ends[0], ends[1], colour);
            }
            let joined: Vec<_> = own.iter().map(|(x, y)| (*x, Some(*y))).collect();
            chart.line(&joined, colour, Stroke::Dashed, "");
        }
        chart.marks(&own, colour, label);
        let value =
            |(x, y): &(f64, f64)| format!("{} at {}", objectives[0].value(*x), objectives[1].value(*y));
        if !own.is_empty() {
            words.push(format!("{label}: {}.", own.iter().map(value).collect::<Vec<_>>().join(", ")));
        }
    }
    // Numbers last, where they cover nothing: those of the front first.
    let numbered: Vec<(usize, &Point)> = points.iter().filter(|point| is_open(point)).enumerate().collect();
    for place in [Place::Front, Place::CannotTell] {
        for (number, point) in numbered.iter().filter(|(_, point)| point.place == place) {
            let colour = usize::from(place == Place::CannotTell);
            chart.note(at(point), colour, &(number + 1).to_string(), false);
        }
    }
    let title = format!("The front of {} and {}", objectives[0].words(), objectives[1].words());
    Some(chart.finish("front", &title, &words.join(" ")))
}

/// Whether a point may belong to the front.
fn is_open(point: &Point) -> bool {
    point.place != Place::Dominated
}

/// A scale and its ticks for values of an objective.
fn scale(objective: Objective, (low, high): (f64, f64)) -> (Scale, Vec<Tick>) {
    match objective {
        Objective::Throughput | Objective::Price => {
            let scale = Scale::steps_between(low, high);
            (scale, scale.number_ticks(4))
        }
        _ => {
            let scale = Scale::latency(low, high);
            (scale, scale.latency_ticks(7))
        }
    }
}

/// What stands beside an axis.
fn title(objective: Objective) -> String {
    match objective {
        Objective::Throughput => "op/s".to_owned(),
        Objective::Price => objective.words().to_owned(),
        _ => format!("{}, logarithmic", objective.words()),
    }
}
