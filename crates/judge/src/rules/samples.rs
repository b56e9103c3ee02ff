//! Whether there were enough samples for what is shown, and whether reads were verified.

use super::Findings;
use crate::Severity;
use crate::context::{WorkContext, moves_data};
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
pub(super) fn percentiles(context: &WorkContext<'_>, out: &mut Findings) {
    if !context.measures() {
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
    // A sync at the end of a load is one operation, and no percentile of it is taken for more.
    let at_the_end = |operation: &Operation| {
        !moves_data(operation) && operation.tally.late == operation.tally.response.count()
    };
    let operations = context.work.operations.iter().filter(|operation| !at_the_end(operation));
    let lines: Vec<_> = operations.filter_map(shaky).collect();
    if !lines.is_empty() {
        let title = "there are too few samples for the highest percentiles";
        let detail =
            "Those percentiles, and all above, are a few operations' luck: do not compare them between runs.";
        out.say(context.finding(Severity::Note, "few-samples", title).detail(detail).evidences(lines));
    }
}

/// Every read was verified, where the operation's settings say so.
pub(super) fn verified(context: &WorkContext<'_>, out: &mut Findings) {
    for operation in
        context.work.operations.iter().filter(|operation| verifies(operation) && operation.tally.ok > 0)
    {
        let title = format!(
            "every one of {} successful operations \"{}\" returned the data that were written",
            units::count(operation.tally.ok),
            operation.label
        );
        let evidence = format!("settings: {}", operation.config);
        out.say(context.finding(Severity::Good, "verified", title).evidence(evidence));
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

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, said, work};
    use super::*;

    #[test]
    fn ten_samples_above_a_percentile() {
        let needed = [0.5, 0.99, 0.999, 0.9999, 1.0].map(samples_needed);
        assert_eq!(needed, [20, 1_000, 10_000, 100_000, 1]);
    }

    #[test]
    fn percentiles_with_too_few_samples_are_named() {
        let with = |count| {
            let mut run = healthy();
            let response = &mut work(&mut run).operations[0].tally.response;
            response.reset();
            response.record_many(10 * MS, count);
            said(&run, "few-samples").map(|finding| finding.evidence.join("; "))
        };
        assert_eq!(with(100_000), None);
        assert_eq!(with(99_999).unwrap(), "read: 99\u{202f}999 samples; p99.99 needs 100\u{202f}000");
        assert!(with(9_999).unwrap().contains("p99.9 needs 10\u{202f}000"));
        assert!(with(999).unwrap().contains("p99 needs 1\u{202f}000"));
    }

    #[test]
    fn verification_is_read_from_the_settings() {
        let with = |config: &str| {
            let mut run = healthy();
            work(&mut run).operations[0].config = config.into();
            said(&run, "verified").is_some()
        };
        assert!(with("containers=u(1,32);objects=u(1,50);hashCheck=true"));
        assert!(with("verify: true"));
        assert!(!with("hashCheck=false") && !with("") && !with("objects=u(1,50);"));
        let mut write = healthy();
        let operation = &mut work(&mut write).operations[0];
        (operation.sample, operation.config) = ("write".into(), "hashCheck=true".into());
        assert_eq!(said(&write, "verified"), None);
    }
}
