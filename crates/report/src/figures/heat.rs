//! How response times moved: time to the right, response time upwards, the darker the more operations.

use super::chart::{Axis, Chart};
use super::figure::Figure;
use super::path::put;
use super::scale::Scale;
use crate::evaluation::Heat;
use tidemark_measure::units;

/// Steps of darkness.
const STEPS: usize = 7;

/// The heat map of a work; `None` when nothing succeeded.
pub(crate) fn heat_map(heat: &Heat, name: &str, title: &str) -> Option<Figure> {
    let grid = heat.grid()?;
    let time = Scale::linear(0.0, heat.seconds());
    let rows = Scale::between(grid.edges[0], grid.edges[grid.rows.len()]);
    let x = Axis { scale: time, ticks: time.time_ticks(6), title: "time since the work's start" };
    let y = Axis { scale: rows, ticks: rows.latency_ticks(7), title: "response time, logarithmic" };
    let mut chart = Chart::with_room(&x, &y);
    let most = grid.rows.iter().flatten().copied().max().unwrap_or(0);
    let mut paths = vec![String::new(); STEPS];
    for (row, counts) in grid.rows.iter().enumerate() {
        let mut column = 0;
        while column < counts.len() {
            let step = step_of(counts[column], most);
            let same = counts[column..].iter().take_while(|count| step_of(**count, most) == step).count();
            if let Some(step) = step {
                let (from, to) = (column as f64 * grid.seconds, (column + same) as f64 * grid.seconds);
                let corner = chart.place(from, grid.edges[row + 1]);
                let other = chart.place(to.min(heat.seconds()), grid.edges[row]);
                let (width, height) = (other.0 - corner.0, other.1 - corner.1);
                put(
                    &mut paths[step],
                    format_args!("M{:.1} {:.1}h{width:.1}v{height:.1}h-{width:.1}z", corner.0, corner.1),
                );
            }
            column += same;
        }
    }
    chart.heat(&paths, &format!("{} op", units::count(most)));
    let [low, middle, high] = heat.spread().map(units::duration_ns);
    let words = format!(
        "Half of the operations took up to {middle}, 99 % up to {high}, the fastest {low}. The darkest field holds {} operations within {} s.",
        units::count(most),
        grid.seconds
    );
    Some(chart.finish(name, title, &words))
}

/// The darkness of a field: by factors, so that a few slow operations are seen beside many fast ones.
fn step_of(count: u64, most: u64) -> Option<usize> {
    if count == 0 || most == 0 {
        return None;
    }
    let share = (count as f64).ln_1p() / (most as f64).ln_1p();
    Some(((share * STEPS as f64).ceil() as usize).clamp(1, STEPS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::tally::Interval;

    #[test]
    fn few_slow_operations_are_visible_beside_many_fast_ones() {
        assert_eq!(step_of(0, 1_000_000), None);
        assert_eq!(step_of(1, 1_000_000), Some(0));
        assert_eq!(step_of(1_000_000, 1_000_000), Some(STEPS - 1));
        let mut heat = Heat::new(1, 0, 0);
        for index in 0..10 {
            let mut interval = Interval::new(index, 1);
            interval.actions[0].response.record_many(1_000_000, 10_000);
            interval.actions[0].response.record_many(50_000_000, u64::from(index == 7));
            heat.add(&interval);
        }
        let text = heat_map(&heat, "heat", "t").unwrap().inline("f");
        assert!(text.contains("class=\"h0\"") && text.contains("class=\"h6\""), "{text}");
        assert!(heat_map(&Heat::new(1, 0, 0), "heat", "t").is_none());
    }
}
