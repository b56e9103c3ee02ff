//! The load of a stage over time, with marks where something was lost and came back.

use super::chart::Stroke;
use super::figure::Figure;
use super::scale::Scale;
use super::series::{Point, seconds, span_seconds, thin, value_points};
use super::{highest, over_time};
use tidemark_judge::Loss;
use tidemark_measure::record::{Stage, Work};
use tidemark_measure::units;

/// Marks that are nearer to each other than this part of the chart share a label.
const TOGETHER: f64 = 0.06;

/// Successes per second of a stage's load, with a numbered mark for each phase of the losses that fell into it; `None` if none did.
pub fn throughput_with_losses(stage: &Stage, losses: &[Loss], most_points: usize) -> Option<Figure> {
    let work =
        stage.works.iter().filter(|work| work.kind.measures()).max_by_key(|work| work.window_end_ns)?;
    let within = |at_ns: u64| {
        Some(seconds(at_ns.checked_sub(work.started_ns)?)).filter(|at| *at <= span_seconds(work))
    };
    let phases = losses.iter().flat_map(|loss| &loss.phases).enumerate();
    let marks: Vec<_> =
        phases.filter_map(|(index, phase)| Some((index + 1, within(phase.at_ns)?, phase))).collect();
    if marks.is_empty() {
        return None;
    }
    let lines = [("successes".to_owned(), successes(work))];
    let most = highest(&lines)?;
    let scale = Scale::from_zero(most);
    let ticks = scale.number_ticks(4);
    let top = ticks.last().map_or(most, |(value, _)| *value);
    let mut chart = over_time(work, scale, ticks, "op/s");
    for (_, at, _) in &marks {
        chart.shade(*at, *at, "happening", "happening");
    }
    chart.line(&thin(&lines[0].1, most_points), 0, Stroke::Solid, "");
    for group in marks.chunk_by(|(_, at, _), (_, next, _)| next - at < span_seconds(work) * TOGETHER) {
        let (first, at, _) = &group[0];
        let numbers = match group {
            [_] => first.to_string(),
            _ => format!("{first}-{}", first + group.len() - 1),
        };
        chart.note((*at, top * 0.96), 0, &numbers, false);
    }
    let told = marks.iter().map(|(number, at, phase)| {
        format!(
            "{number}: {}: {} at {}",
            phase.object,
            phase.what.words(),
            units::duration_ns((at * 1e9) as u64)
        )
    });
    let words = format!("Marks: {}.", told.collect::<Vec<_>>().join("; "));
    Some(chart.finish("losses", "Throughput over time, and what was lost", &words))
}

/// The successes of all operations of a work in every second.
fn successes(work: &Work) -> Vec<Point> {
    value_points(work, |second| {
        Some(second.operations.iter().map(|operation| operation.ok).fold(0, u64::saturating_add) as f64)
    })
}
