//! Whether throughput drifted with time, over all cells.

use super::cells::Measured;
use crate::statistics::{SIGNIFICANT, two_sided};
use crate::words::evaluation::OfEvaluation;
use crate::{Finding, Severity};
use tidemark_measure::evaluation::Evaluation;

/// Less than this over the whole evaluation is not worth a word, however certain it is.
const DRIFT_LEAST: f64 = 0.01;

/// A line through logarithms of throughput against turns, after each cell's mean is taken away from both: that leaves
/// what time did (the regression with one constant for each cell; Frisch and Waugh, Econometrica 1, 1933).
struct Line {
    /// Change of the logarithm for each turn.
    slope: f64,
    /// Of Student's t, for a line without slope.
    p: f64,
    /// Turns from the first to the last.
    turns: f64,
    points: usize,
    cells: usize,
}

/// Says whether throughput of closed loops rose or fell from the first run to the last.
pub(super) fn drift(evaluation: &Evaluation, measured: &[Measured<'_>]) -> Option<Finding> {
    let line = fit(measured)?;
    let change = (line.slope * line.turns).exp() - 1.0;
    if line.p >= SIGNIFICANT || change.abs() < DRIFT_LEAST {
        return None;
    }
    let what = OfEvaluation::Drift {
        change,
        one_after_the_other: evaluation.order == "blocks",
        slope: line.slope,
        turns: line.turns,
        repeats: line.points,
        cells: line.cells,
        p: line.p,
    };
    Some(Finding::about_run(Severity::Warning, what))
}

fn fit(measured: &[Measured<'_>]) -> Option<Line> {
    let (mut turns_squared, mut products, mut logs_squared) = (0.0, 0.0, 0.0);
    let (mut points, mut cells, mut first, mut last) = (0, 0, f64::INFINITY, f64::NEG_INFINITY);
    for one in measured.iter().filter(|one| !one.open) {
        let values = &one.cell.throughput.values;
        let usable =
            values.len() > 1 && values.len() == one.turns.len() && values.iter().all(|value| *value > 0.0);
        if !usable {
            continue;
        }
        let turns: Vec<f64> = one.turns.iter().map(|turn| f64::from(*turn)).collect();
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (turn_mean, log_mean) = (mean(&turns), mean(&logs));
        for (turn, log) in turns.iter().zip(&logs) {
            let (turn_apart, log_apart) = (turn - turn_mean, log - log_mean);
            turns_squared += turn_apart * turn_apart;
            products += turn_apart * log_apart;
            logs_squared += log_apart * log_apart;
            (first, last) = (turn.min(first), turn.max(last));
        }
        points += values.len();
        cells += 1;
    }
    let freedom = points.checked_sub(cells + 1).filter(|freedom| *freedom >= 2)? as f64;
    let slope = products / turns_squared;
    let left = (logs_squared - slope * products).max(f64::EPSILON * logs_squared);
    let error = (left / freedom / turns_squared).sqrt();
    let p = two_sided(slope / error, freedom)?;
    Some(Line { slope, p, turns: last - first, points, cells })
}
