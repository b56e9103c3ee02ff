//! Whether there were enough samples for what is shown, and whether reads were verified.

use super::Findings;
use crate::Severity;
use crate::scene::Scene;
use tidemark_measure::histogram::PERCENTILES;
use tidemark_measure::record::Operation;
use tidemark_measure::units;

/// Samples that must lie above a percentile for it to mean something. Their number is binomial: from ten expected
/// ones its standard deviation is below a third, so that the percentile is not one or two operations' luck.
const SAMPLES_ABOVE: f64 = 10.0;

/// How many samples a percentile, as a fraction below 1, needs to be meaningful: 1 000 for p99, 10 000 for p99.9,
/// 100 000 for p99.99. The maximum (1) is an observation, whatever the number: 1.
pub fn samples_needed(fraction: f64) -> u64 {
    if fraction >= 1.0 { 1 } else { (SAMPLES_ABOVE / (1.0 - fraction)).round() as u64 }
}

/// Percentiles that are shown but rest on too few samples.
pub(super) fn percentiles(scene: &Scene<'_>, out: &mut Findings) {
    if !scene.measures() {
        return;
    }
    let shaky = |operation: &Operation| {
        let samples = operation.tally.response.count();
        let lowest = PERCENTILES.into_iter().find(|fraction| samples < samples_needed(*fraction));
        lowest.filter(|_| samples > 0).map(|fraction| {
            format!(
                "{}: {} samples; p{} needs {}",
                operation.label,
                units::count(samples),
                // Rounded: 0.999 x 100 is 99.900000000000006.
                (fraction * 1e6).round() / 1e4,
                units::count(samples_needed(fraction))
            )
        })
    };
    let lines: Vec<_> = scene.work.operations.iter().filter_map(shaky).collect();
    if !lines.is_empty() {
        let title = "there are too few samples for the highest percentiles";
        let detail =
            "Those percentiles, and all above, are a few operations' luck: do not compare them between runs.";
        out.say(scene.finding(Severity::Note, "few-samples", title).detail(detail).evidences(lines));
    }
}

/// Every read was verified, where the operation's settings say so.
pub(super) fn verified(scene: &Scene<'_>, out: &mut Findings) {
    for operation in
        scene.work.operations.iter().filter(|operation| verifies(operation) && operation.tally.ok > 0)
    {
        let title = format!(
            "every one of {} successful operations \"{}\" returned the data that were written",
            units::count(operation.tally.ok),
            operation.label
        );
        let evidence = format!("settings: {}", operation.config);
        out.say(scene.finding(Severity::Good, "verified", title).evidence(evidence));
    }
}

/// Whether a reading operation's settings turn verification on: COSBench's `hashCheck=true`, or `verify: true`.
fn verifies(operation: &Operation) -> bool {
    let config = operation.config.to_ascii_lowercase();
    let mut words =
        config.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let on = words.by_ref().any(|word| matches!(word, "hashcheck" | "verify"));
    on && matches!(words.next(), Some("true" | "yes" | "on" | "1")) && operation.sample.contains("read")
}
