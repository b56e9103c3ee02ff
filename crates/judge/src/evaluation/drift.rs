//! What time did: whether the same cells measured more or less from run to run, or from one day to another.

use super::cells::Measured;
use super::compare::{is_apart, is_in_time};
use crate::compare::is_of_stored;
use crate::statistics::{SIGNIFICANT, two_sided};
use crate::words::evaluation::{Drifting, OfEvaluation};
use crate::{Finding, Severity};
use std::collections::BTreeSet;
use tidemark_measure::evaluation::Evaluation;

/// Less than this over the whole evaluation is not worth a word, however certain it is.
const DRIFT_LEAST: f64 = 0.01;

/// Runs that were begun further apart than this are of different sessions: in between anything may have happened.
const SESSION_GAP_NS: u64 = 6 * 3600 * 1_000_000_000;

/// A line through logarithms of what cells did against time, after each cell's mean is taken away from both: that leaves
/// what time did (the regression with one constant for each cell; Frisch and Waugh, Econometrica 1, 1933).
struct Line {
    /// Change of the logarithm for each unit of time.
    slope: f64,
    /// Of Student's t, for a line without slope.
    p: f64,
    /// Units of time from the first to the last.
    span: f64,
    points: usize,
    cells: usize,
    of: Drifting,
}

impl Line {
    /// How much more was done in the end than at first, as a share.
    fn change(&self) -> f64 {
        (self.slope * self.span).exp_m1()
    }

    fn is_significant(&self) -> bool {
        self.p < SIGNIFICANT && self.change().abs() >= DRIFT_LEAST
    }
}

/// Says whether cells did more or less from the first run to the last, whether the runs are of several sessions and what that
/// did, and whether arms were measured one after the other.
pub(super) fn drift(evaluation: &Evaluation, measured: &[Measured<'_>]) -> Vec<Finding> {
    let apart = is_in_time(evaluation) && arms_are_apart(measured);
    let mut findings = Vec::new();
    // Turns of two stored results are not those of one evaluation.
    let turns = fit(measured, |one| one.turns.iter().map(|turn| f64::from(*turn)).collect());
    findings.extend(turns.filter(|_| !is_of_stored(evaluation)).filter(Line::is_significant).map(|line| {
        // Of response times alone, the change is theirs.
        let sign = if line.of == Drifting::ResponseTime { -1.0 } else { 1.0 };
        let what = OfEvaluation::Drift {
            of: line.of,
            change: (sign * line.slope * line.span).exp_m1(),
            one_after_the_other: apart,
            slope: sign * line.slope,
            turns: line.span,
            repeats: line.points,
            cells: line.cells,
            p: line.p,
        };
        Finding::about_run(Severity::Warning, what)
    }));
    findings.extend(apart.then(|| Finding::about_run(Severity::Warning, OfEvaluation::ArmsApart)));
    findings.extend(sessions(measured));
    findings
}

/// Whether any arm was measured before another in some cell.
fn arms_are_apart(measured: &[Measured<'_>]) -> bool {
    let places = measured.chunk_by(|one, other| {
        one.load == other.load && one.cell.subject == other.cell.subject && one.cell.level == other.cell.level
    });
    places.into_iter().any(|place| {
        let baseline = place.first();
        baseline.is_some_and(|baseline| place[1..].iter().any(|one| is_apart(baseline, one)))
    })
}

/// What is to be said of runs of several sessions: whether the same cells did the same in the last as before.
fn sessions(measured: &[Measured<'_>]) -> Option<Finding> {
    let known = measured.iter().all(|one| one.begun.iter().all(|begun| *begun > 0));
    let begun: BTreeSet<u64> = measured.iter().flat_map(|one| one.begun.iter().copied()).collect();
    let begun: Vec<u64> = begun.into_iter().collect();
    let sessions = begun.chunk_by(|one, next| next - one < SESSION_GAP_NS).count();
    let last = begun.windows(2).rev().find(|pair| pair[1] - pair[0] >= SESSION_GAP_NS).filter(|_| known)?[1];
    let is_new = |begun: &u64| f64::from(u8::from(*begun >= last));
    let line = fit(measured, |one| one.begun.iter().map(is_new).collect());
    let mixed = |one: &&Measured<'_>| {
        one.begun.iter().any(|begun| *begun < last) && one.begun.iter().any(|begun| *begun >= last)
    };
    let differs = line.as_ref().is_some_and(Line::is_significant);
    let what = OfEvaluation::Sessions {
        sessions,
        hours: (last - begun[0]) as f64 / 3.6e12,
        cells: measured.iter().filter(mixed).count(),
        of: measured.len(),
        change: line.as_ref().map(Line::change),
        p: line.as_ref().map(|line| line.p),
        differs,
    };
    let severity = if differs || line.is_none() { Severity::Warning } else { Severity::Note };
    Some(Finding::about_run(severity, what))
}

/// The line against some time of every repeat. Response times of open loops count inversely: more time is less done.
fn fit(measured: &[Measured<'_>], time: impl Fn(&Measured<'_>) -> Vec<f64>) -> Option<Line> {
    let (mut times_squared, mut products, mut logs_squared) = (0.0, 0.0, 0.0);
    let (mut points, mut cells, mut first, mut last) = (0, 0, f64::INFINITY, f64::NEG_INFINITY);
    let mut seen: BTreeSet<(u64, &str, String)> = BTreeSet::new();
    let of = match measured.iter().filter(|one| one.has_time_as_main()).count() {
        0 => Drifting::Throughput,
        all if all == measured.len() => Drifting::ResponseTime,
        _ => Drifting::Both,
    };
    for one in measured {
        let values = &one.main().values;
        let (times, sign) = (time(one), if one.has_time_as_main() { -1.0 } else { 1.0 });
        let usable =
            values.len() > 1 && values.len() == times.len() && values.iter().all(|value| *value > 0.0);
        // A run that is on both sides of a comparison says nothing twice.
        let key = |run: &u64| (*run, one.cell.subject.as_str(), super::words::level(&one.cell.level));
        let again = one.cell.runs.iter().any(|run| *run > 0 && seen.contains(&key(run)));
        if !usable || again {
            continue;
        }
        seen.extend(one.cell.runs.iter().map(key));
        let logs: Vec<f64> = values.iter().map(|value| sign * value.ln()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (time_mean, log_mean) = (mean(&times), mean(&logs));
        for (time, log) in times.iter().zip(&logs) {
            let (time_apart, log_apart) = (time - time_mean, log - log_mean);
            times_squared += time_apart * time_apart;
            products += time_apart * log_apart;
            logs_squared += log_apart * log_apart;
            (first, last) = (time.min(first), time.max(last));
        }
        points += values.len();
        cells += 1;
    }
    let freedom = points.checked_sub(cells + 1).filter(|freedom| *freedom >= 1)? as f64;
    let slope = products / times_squared;
    let left = (logs_squared - slope * products).max(f64::EPSILON * logs_squared);
    let error = (left / freedom / times_squared).sqrt();
    let p = two_sided(slope / error, freedom)?;
    Some(Line { slope, p, span: last - first, points, cells, of })
}
