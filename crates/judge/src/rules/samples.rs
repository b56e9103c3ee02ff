//! Whether there were enough samples for what is shown, and how many reads were verified.

use super::Findings;
use crate::Severity;
use crate::context::WorkContext;
use crate::words::samples::{Samples, Shaky};
use tidemark_measure::fault::Fault;
use tidemark_measure::histogram::PERCENTILES;
use tidemark_measure::record::Operation;
use tidemark_measure::verification::Unchecked;

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
        out.add(context.finding(Severity::Note, Samples::Few { operations }));
    }
}

/// What became of the reads whose content was to be verified: what was compared counts, not what the document asks for.
pub(super) fn verified(context: &WorkContext<'_>, out: &mut Findings) {
    for operation in &context.work.operations {
        let tally = &operation.tally;
        let (reads, verified) = (tally.ok, tally.verified);
        let unchecked: Vec<(Unchecked, u64)> = tally.unchecked.iter().collect();
        let asked = operation.verifies || verified > 0 || !unchecked.is_empty();
        if !asked || reads == 0 {
            continue;
        }
        let operation = operation.label.clone();
        // Records of before do not count what was compared.
        let untold = reads.saturating_sub(verified).saturating_sub(tally.unchecked.total());
        if unchecked.is_empty() && untold == 0 {
            let wrong = tally.faults.iter().any(|(fault, _)| Fault::CONTENT.contains(&fault));
            if !wrong {
                let placed = tally.placed;
                let severity = if placed > 0 { Severity::Note } else { Severity::Good };
                out.add(context.finding(severity, Samples::Verified { operation, reads, placed }));
            }
            continue;
        }
        let expected = unchecked.iter().all(|(why, _)| why.is_expected());
        let severity = if expected { Severity::Note } else { Severity::Warning };
        let what = Samples::NotVerified { operation, reads, verified, unchecked, untold };
        out.add(context.finding(severity, what));
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
        work(&mut run).operations[0].tally.verified = 8_000;
        assert!(said(&run, "verified").is_some());
        fail(&mut run, Fault::Timeout, 1);
        work(&mut run).operations[0].tally.verified = 7_999;
        assert!(said(&run, "verified").is_some(), "what failed otherwise returned nothing");
        fail(&mut run, Fault::WrongContent, 1);
        work(&mut run).operations[0].tally.verified = 7_998;
        assert_eq!(said(&run, "verified"), None);
    }

    #[test]
    fn what_was_only_to_be_verified_is_never_proven() {
        let mut run = healthy();
        work(&mut run).operations[0].verifies = true;
        let untold = said(&run, "not-verified").unwrap();
        assert_eq!((said(&run, "verified"), untold.severity), (None, Severity::Note));
        assert!(untold.title().contains("does not tell whether"), "{}", untold.title());

        let tally = &mut work(&mut run).operations[0].tally;
        tally.verified = 6_000;
        tally.unchecked = vec![(Unchecked::WriteInFlight, 2_000)].into();
        assert_eq!(said(&run, "not-verified").unwrap().severity, Severity::Note);
        let tally = &mut work(&mut run).operations[0].tally;
        tally.unchecked = vec![(Unchecked::TooShort, 1_500), (Unchecked::UnknownOrigin, 500)].into();
        let some = said(&run, "not-verified").unwrap();
        assert_eq!((said(&run, "verified"), some.severity), (None, Severity::Warning));
        let expected = "6\u{202f}000 of 8\u{202f}000 successful \"read\" operations were verified; 2\u{202f}000 could \
                        not be, mostly because their content is too short to carry a mark or a hash";
        assert_eq!(some.title(), expected);
        assert!(some.evidence()[1].starts_with("500 x unknown_origin: "), "{:?}", some.evidence());

        let tally = &mut work(&mut run).operations[0].tally;
        (tally.verified, tally.unchecked) = (0, vec![(Unchecked::NoContent, 8_000)].into());
        let none = said(&run, "not-verified").unwrap();
        let expected = "none of 8\u{202f}000 successful \"read\" operations could be verified, because there is no \
                        content to compare";
        assert_eq!(none.title(), expected);
    }
}
