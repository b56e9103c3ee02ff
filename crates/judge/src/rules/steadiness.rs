//! Whether throughput was steady over the window.

use super::Findings;
use crate::Severity;
use crate::scene::{Scene, ok_in};
use tidemark_measure::units;

/// The window is cut into this many parts of equal length.
const PARTS: usize = 5;

/// Whole seconds without which there is no saying.
const SECONDS_LEAST: usize = 10;

/// The parts' throughputs may lie this far apart, as a share of their mean.
const RANGE_MOST: f64 = 0.2;

/// The straight line through the seconds may change by this much over the window, as a share of the mean. Both
/// limits are those of the steady state in the SNIA performance test specification (range 20 %, slope 10 %).
const SLOPE_MOST: f64 = 0.1;

/// Differences below this many standard deviations of counts of independent events are chance.
const DEVIATIONS: f64 = 4.0;

/// Whether throughput drifted or jumped.
pub(super) fn steadiness(scene: &Scene<'_>, out: &mut Findings) {
    // Operations that began in the ramp-up and ended in the window are part of the throughput's course.
    let counts: Vec<f64> = scene
        .whole_seconds()
        .map(|second| (ok_in(second).saturating_add(second.unmeasured)) as f64)
        .collect();
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    if !scene.measures() || counts.len() < SECONDS_LEAST || mean <= 0.0 {
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
    let drifted = change.abs() > SLOPE_MOST.max(DEVIATIONS * chance_of_rise);
    let shown: Vec<_> = parts.iter().map(|part| units::rate(*part)).collect();
    let evidence = [
        format!("the window's fifths: {}", shown.join(", ")),
        format!(
            "highest less lowest = {} of the mean (limit {})",
            units::percent(range),
            units::percent(RANGE_MOST)
        ),
        format!(
            "straight line: {}{} over the window (limit {})",
            if change < 0.0 { "-" } else { "+" },
            units::percent(change.abs()),
            units::percent(SLOPE_MOST)
        ),
    ];
    let title = match (drifted, jumped) {
        (true, _) if change > 0.0 => "throughput rose over the window",
        (true, _) => "throughput fell over the window",
        (false, true) => "throughput was uneven over the window",
        (false, false) => {
            out.say(
                scene
                    .finding(Severity::Good, "steadiness", "throughput was steady over the window")
                    .evidences(evidence),
            );
            return;
        }
    };
    let detail = "The mean is not that of a steady state: a longer warm-up or a longer run may give another.";
    out.say(scene.finding(Severity::Note, "steadiness", title).detail(detail).evidences(evidence));
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
    use super::super::testing::{healthy, said, work};
    use super::*;

    fn verdict(ok: impl Fn(u64) -> u64) -> (Severity, String) {
        let mut run = healthy();
        work(&mut run).series.iter_mut().for_each(|second| second.operations[0].ok = ok(second.index.into()));
        let finding = said(&run, "steadiness").unwrap();
        (finding.severity, finding.title)
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
    }
}
