//! Whether there were enough samples for what is shown, and whether reads were verified.

use super::Findings;
use crate::Severity;
use crate::context::WorkContext;
use crate::words::samples::{Samples, Shaky};
use tidemark_measure::fault::Fault;
use tidemark_measure::histogram::PERCENTILES;
use tidemark_measure::record::Operation;

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
        let fraction = lowest.filter(|_| samples > 0)?;
        Some(Shaky { operation: operation.label.clone(), samples, fraction })
    };
    // A sync at the end of a load is one operation, and no percentile of it is taken for more.
    let at_the_end = |operation: &Operation| {
        !operation.class.moves_data() && operation.tally.late == operation.tally.response.count()
    };
    let operations = context.work.operations.iter().filter(|operation| !at_the_end(operation));
    let operations: Vec<_> = operations.filter_map(shaky).collect();
    if !operations.is_empty() {
        out.say(context.finding(Severity::Note, Samples::Few { operations }));
    }
}

/// What every successful read of a verifying operation returned was compared with what had been written.
pub(super) fn verified(context: &WorkContext<'_>, out: &mut Findings) {
    let wrong = |operation: &Operation| {
        operation.tally.faults.iter().any(|(fault, _)| Fault::CONTENT.contains(&fault))
    };
    let verified = context.work.operations.iter().filter(|operation| operation.verifies && !wrong(operation));
    for operation in verified.filter(|operation| operation.tally.ok > 0) {
        let what = Samples::Verified { operation: operation.label.clone(), reads: operation.tally.ok };
        out.say(context.finding(Severity::Good, what));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, fail, healthy, said, work};
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
            said(&run, "few-samples").map(|finding| finding.evidence().join("; "))
        };
        assert_eq!(with(100_000), None);
        assert_eq!(with(99_999).unwrap(), "read: 99\u{202f}999 samples; p99.99 needs 100\u{202f}000");
        assert!(with(9_999).unwrap().contains("p99.9 needs 10\u{202f}000"));
        assert!(with(999).unwrap().contains("p99 needs 1\u{202f}000"));
    }

    #[test]
    fn what_was_verified_is_told_unless_something_was_wrong() {
        let mut run = healthy();
        assert_eq!(said(&run, "verified"), None);
        work(&mut run).operations[0].verifies = true;
        assert!(said(&run, "verified").is_some());
        fail(&mut run, Fault::Timeout, 1);
        assert!(said(&run, "verified").is_some(), "what failed otherwise returned nothing");
        fail(&mut run, Fault::WrongContent, 1);
        assert_eq!(said(&run, "verified"), None);
    }
}
