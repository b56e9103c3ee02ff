//! Whether throughput was steady over the window.

use super::Findings;
use crate::Severity;
use crate::context::{WorkContext, ok_in};
use crate::words::steadiness::{Course, Steadiness as Found};
use tidemark_measure::steady::{RANGE_MOST, RISE_MOST, ROUNDS as PARTS};

/// Whole seconds without which there is no saying.
const SECONDS_LEAST: usize = 10;

/// A fifth of the window that is shorter than this is no round in the SNIA's sense (a round takes a minute there):
/// within it a shared device's noise cannot be told from a drift. Then unsteadiness is a warning, and it is for the
/// repeats to say how far the number can be trusted.
const ROUND_LEAST_S: f64 = 10.0;

/// A line that rises or falls by as much as the mean ends at a third of where it began, or at three times that: no single
/// number describes such a window, however short it is.
const TREND_MOST: f64 = 1.0;

/// Differences below this many standard deviations of counts of independent events are chance.
const DEVIATIONS: f64 = 4.0;

/// Whether throughput drifted or jumped: the fifths of the window may lie as far apart, and the line through its
/// seconds rise as much, as the SNIA's steady state allows.
///
/// On block storage it makes the numbers of rounds of a fair length invalid, those of a load that was to be steady
/// before its window, and those of a trend as large as the mean; elsewhere it is noted.
pub(super) fn steadiness(context: &WorkContext<'_>, out: &mut Findings) {
    // Operations that began in the ramp-up and ended in the window are part of the throughput's course.
    let counts: Vec<f64> = context
        .whole_seconds()
        .map(|second| (ok_in(second).saturating_add(second.unmeasured)) as f64)
        .collect();
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    let block = context.stage.proof.is_some();
    if !context.measures() || mean <= 0.0 {
        return;
    }
    if counts.len() < SECONDS_LEAST {
        if block {
            let what = Found::TooShort { seconds: counts.len(), needed: SECONDS_LEAST };
            out.add(context.finding(Severity::Note, what));
        }
        return;
    }
    let parts: Vec<f64> = (0..PARTS).map(|part| part_mean(&counts, part)).collect();
    let (low, high) =
        parts.iter().fold((f64::MAX, 0f64), |(low, high), part| (low.min(*part), high.max(*part)));
    let range = (high - low) / mean;
    let change = slope(&counts) * counts.len() as f64 / mean;
    // Relative deviations by chance: of a part's mean, and of the line's rise (sqrt 12 times that of the mean).
    let chance = (mean * counts.len() as f64 / PARTS as f64).sqrt().recip();
    let chance_of_rise = (12.0 / (mean * counts.len() as f64)).sqrt();
    let jumped = range > RANGE_MOST.max(DEVIATIONS * chance);
    let drifted = change.abs() > RISE_MOST.max(DEVIATIONS * chance_of_rise);
    let course = match (drifted, jumped) {
        (true, _) if change > 0.0 => Course::Rose,
        (true, _) => Course::Fell,
        (false, true) => Course::Uneven,
        (false, false) => Course::Steady,
    };
    let what = Found::Course { course, fifths: parts, range, change };
    if course == Course::Steady {
        return out.add(context.finding(Severity::Good, what));
    }
    let long = counts.len() as f64 / PARTS as f64 >= ROUND_LEAST_S;
    let vast = drifted && change.abs() >= TREND_MOST;
    let demanded = block && (long || vast || context.work.settling.is_some());
    let severity = match (block, demanded) {
        (_, true) => Severity::Critical,
        (true, false) => Severity::Warning,
        (false, _) => Severity::Note,
    };
    let finding = context.finding(severity, what);
    if demanded { out.invalidate(context, finding) } else { out.add(finding) }
}

/// Whether the load became steady before the window, where the document asks for it.
pub(super) fn settling(context: &WorkContext<'_>, out: &mut Findings) {
    let Some(settling) = &context.work.settling else { return };
    let count = settling.rounds.len();
    let last = &settling.rounds[count.saturating_sub(PARTS)..];
    let what = Found::Settled {
        steady: settling.steady,
        rounds: count,
        round_ns: settling.round_ns,
        last: last.to_vec(),
    };
    match settling.steady {
        true => out.add(context.finding(Severity::Good, what)),
        false => out.invalidate(context, context.finding(Severity::Critical, what)),
    }
}

fn part_mean(counts: &[f64], part: usize) -> f64 {
    let own = &counts[part * counts.len() / PARTS..(part + 1) * counts.len() / PARTS];
    own.iter().sum::<f64>() / own.len().max(1) as f64
}

/// The slope of the least-squares line, per second.
fn slope(counts: &[f64]) -> f64 {
    let n = counts.len() as f64;
    let (middle, mean) = ((n - 1.0) / 2.0, counts.iter().sum::<f64>() / n);
    let (mut both, mut square) = (0.0, 0.0);
    for (index, count) in counts.iter().enumerate() {
        let x = index as f64 - middle;
        both += x * (count - mean);
        square += x * x;
    }
    both / square
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, invalid_for, said, work};
    use super::*;
    use tidemark_measure::record::{Second, Settling};

    fn verdict(ok: impl Fn(u64) -> u64) -> (Severity, String) {
        let mut run = healthy();
        work(&mut run).series.iter_mut().for_each(|second| second.operations[0].ok = ok(second.index.into()));
        let finding = said(&run, "steadiness").unwrap();
        (finding.severity, finding.title())
    }

    #[test]
    fn steady_drifting_and_uneven() {
        let steady = (Severity::Good, "throughput was steady over the window".to_string());
        assert_eq!(verdict(|_| 4_000), steady);
        assert_eq!(verdict(|at| 4_000 + 19 * at), steady, "9 % over the window");
        assert_eq!(verdict(|at| 4_000 + 24 * at).1, "throughput rose over the window", "11 %");
        assert_eq!(verdict(|at| 4_000 - 22 * at).1, "throughput fell over the window", "11.6 %");
        // The middle fifth stands out, by 18 % and by 22 %, and no line rises.
        assert_eq!(verdict(|at| if (8..12).contains(&at) { 4_750 } else { 4_000 }), steady);
        let uneven = verdict(|at| if (8..12).contains(&at) { 4_950 } else { 4_000 });
        assert_eq!(uneven, (Severity::Note, "throughput was uneven over the window".into()));
    }

    #[test]
    fn what_may_be_chance_is_not_told() {
        // 5 operations a second: a fifth holds 20, and their deviation is 22 %.
        assert_eq!(verdict(|at| if (8..12).contains(&at) { 7 } else { 5 }).0, Severity::Good);
    }

    #[test]
    fn a_few_seconds_say_nothing() {
        let mut run = healthy();
        work(&mut run).series.truncate(SECONDS_LEAST - 1);
        assert_eq!(said(&run, "steadiness"), None);
        run.stages[0].proof = Some(Default::default());
        let finding = said(&run, "steadiness").unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(matches!(finding.what, crate::What::Steadiness(Found::TooShort { .. })));
    }

    #[test]
    fn block_storage_that_is_not_steady_is_invalid() {
        let mut run = healthy();
        run.stages[0].proof = Some(Default::default());
        assert!(!invalid_for(&run, ""));
        let rise = |second: &mut Second| second.operations[0].ok = 4_000 + 24 * u64::from(second.index);
        work(&mut run).series.iter_mut().for_each(rise);
        // The healthy run's fifths take four seconds each.
        assert_eq!(said(&run, "steadiness").unwrap().severity, Severity::Warning);
        assert!(!invalid_for(&run, ""));
        work(&mut run).settling = Some(Settling { steady: true, ..Settling::default() });
        assert!(invalid_for(&run, "steadiness"), "it was to be steady");
        let own = work(&mut run);
        own.settling = None;
        own.window_end_ns = own.window_start_ns + 60_000_000_000;
        let last = own.series.last().unwrap().clone();
        own.series.extend((last.index + 1..60).map(|index| Second { index, ..last.clone() }));
        own.series.iter_mut().for_each(rise);
        assert!(invalid_for(&run, "steadiness"), "rounds of twelve seconds");
    }

    #[test]
    fn a_trend_as_large_as_the_mean_is_invalid_however_short_the_window() {
        let falling = |last: u64| {
            let mut run = healthy();
            run.stages[0].proof = Some(Default::default());
            let own = work(&mut run);
            let seconds = own.series.len() as u64 - 1;
            let fall = |second: &mut Second| {
                second.operations[0].ok = 2_000 - (2_000 - last) * u64::from(second.index) / seconds;
            };
            own.series.iter_mut().for_each(fall);
            run
        };
        assert!(invalid_for(&falling(200), "steadiness"), "a tenth of the beginning");
        assert!(invalid_for(&falling(600), "steadiness"));
        assert!(!invalid_for(&falling(800), ""), "a warning");
        assert_eq!(said(&falling(800), "steadiness").unwrap().severity, Severity::Warning);
        let mut objects = falling(200);
        objects.stages[0].proof = None;
        assert!(!invalid_for(&objects, ""), "elsewhere a note");
    }

    #[test]
    fn settling_is_told_with_its_rounds() {
        let mut run = healthy();
        let rounds = vec![900.0, 400.0, 402.0, 398.0, 400.0, 400.0];
        let settling = Settling { rounds, round_ns: 10_000_000_000, steady: true };
        work(&mut run).settling = Some(settling.clone());
        let finding = said(&run, "steady-state").unwrap();
        assert_eq!(finding.title(), "the load reached steady state before the window, after 6 rounds");
        assert_eq!(
            finding.evidence()[0],
            "rounds of 10.0 s; the last ones: 400 op/s, 402 op/s, 398 op/s, 400 op/s, 400 op/s"
        );
        work(&mut run).settling = Some(Settling { steady: false, ..settling });
        assert!(invalid_for(&run, "not-steady"));
    }
}
