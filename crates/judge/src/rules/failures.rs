//! What failed, how often and why.

use super::Findings;
use crate::Severity;
use crate::context::{WorkContext, sum};
use crate::words::failures::{Causes, Failures as Found, Latencies, OperationFailures};
use tidemark_measure::counts::FaultCounts;
use tidemark_measure::fault::Fault;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, State};
use tidemark_measure::units;

/// From this share of repeated attempts on, retries change what the latencies mean: a p99 then consists of
/// operations that were tried more than once.
const RETRIES_MANY: f64 = 0.01;

/// Above this share of operations that failed on the generator's own machine the load was not the one asked for: percentiles
/// up to p99.9 are then no longer those of the whole load.
const OWN_MOST: f64 = 0.001;

/// Failed operations quoted word for word in one finding, at most.
const EXAMPLES_MOST: usize = 5;

/// The successful share of `total` operations in percent, never rounded up: `99.99 %` as long as one failed.
pub fn success_percent(ok: u64, total: u64) -> String {
    if total == 0 || ok >= total {
        return units::percent(if total == 0 { 0.0 } else { 1.0 });
    }
    let hundredths = u128::from(ok) * 10_000 / u128::from(total);
    if hundredths == 0 {
        units::percent(ok as f64 / total as f64)
    } else {
        units::percent(hundredths as f64 / 1e4)
    }
}

/// No operation fell into the window: there is nothing to report on.
pub(super) fn nothing_measured(context: &WorkContext<'_>, out: &mut Findings) {
    // A prefill that found its volumes filled has its reason, and has done what it was to do.
    let needless =
        !context.measures() && context.stage.state == State::Completed && !context.stage.reason.is_empty();
    // What goes on has not failed yet.
    if context.stage.state == State::Running {
        return;
    }
    // Another tool may say how fast it was, and not how many operations that were.
    let mut said =
        context.work.operations.iter().filter_map(|operation| operation.reported.as_ref()?.throughput);
    let said = said.any(|throughput| throughput > 0.0);
    if context.total() > 0 || said || context.work.operations.is_empty() || needless {
        return;
    }
    let outside = sum(context.work.series.iter().map(|second| second.unmeasured));
    let interrupted = context.interrupted();
    let what = Found::NothingMeasured { outside, window_ns: context.window_ns(), interrupted };
    // What the user ended in its warm-up is no invalid measurement: it is none.
    if interrupted {
        return out.add(context.finding(Severity::Note, what));
    }
    let severity = if context.measures() { Severity::Critical } else { Severity::Warning };
    out.invalidate(context, context.finding(severity, what));
}

/// Nothing succeeded, in the whole work or in one of its operations.
pub(super) fn could_not_work(context: &WorkContext<'_>, out: &mut Findings) {
    if context.ok == 0 && context.total() > 0 {
        let causes = causes(context, &context.faults, &context.failure);
        let what = Found::NothingSucceeded { operation: None, attempts: context.total(), causes };
        out.invalidate(context, context.finding(Severity::Critical, what));
        return;
    }
    for operation in &context.work.operations {
        let tally = &operation.tally;
        if tally.ok == 0 && tally.failed() > 0 {
            let causes = causes(context, &tally.faults, &tally.failure);
            let operation = Some(operation.label.clone());
            let what = Found::NothingSucceeded { operation, attempts: tally.failed(), causes };
            out.invalidate(context, context.finding(Severity::Critical, what));
        }
    }
}

/// Some operations failed; or none did. More than the document allows is grave.
pub(super) fn failures(context: &WorkContext<'_>, out: &mut Findings) {
    if context.ok == 0 {
        return;
    }
    let (failed, total) = (failures_to_answer_for(context), context.total());
    if failed == 0 {
        if context.failed() == 0 {
            out.add(context.finding(Severity::Good, Found::NoFailures { operations: total }));
        }
        return;
    }
    let allowed = context.work.allowed_failures_per_million;
    let over = u128::from(failed) * 1_000_000 > u128::from(allowed) * u128::from(total);
    let severity = if over { Severity::Critical } else { Severity::Warning };
    let failing = context.work.operations.iter().filter(|operation| operation.tally.failed() > 0);
    let what = Found::Failed {
        failed,
        total,
        allowed_per_million: allowed,
        more_than_allowed: over,
        operations: failing.map(of_operation).collect(),
        causes: causes(context, &context.faults, &context.failure),
    };
    out.add(context.finding(severity, what));
}

/// Failures without those operations that only failed because the user stopped the run.
fn failures_to_answer_for(context: &WorkContext<'_>) -> u64 {
    let stopped = if context.interrupted() { context.faults.of(Fault::Abandoned) } else { 0 };
    context.failed().saturating_sub(stopped)
}

fn of_operation(operation: &Operation) -> OperationFailures {
    let (ok, failed) = (operation.tally.ok, operation.tally.failed());
    OperationFailures { operation: operation.label.clone(), ok, failed }
}

/// The classes, the latencies and the first few examples of failures.
fn causes(context: &WorkContext<'_>, faults: &FaultCounts, failure: &Histogram) -> Causes {
    let examples = context.work.examples.iter().filter(|example| faults.of(example.fault) > 0);
    Causes {
        classes: faults.iter().collect(),
        latencies: latencies(failure),
        examples: examples.take(EXAMPLES_MOST).map(|example| example.text.clone()).collect(),
    }
}

/// How long failures took; nothing when none was timed.
pub(super) fn latencies(failure: &Histogram) -> Option<Latencies> {
    (!failure.is_empty()).then(|| Latencies {
        median_ns: failure.quantile(0.5),
        p99_ns: failure.quantile(0.99),
        longest_ns: failure.max(),
    })
}

/// Operations failed on the generator's own machine: the storage never saw them.
pub(super) fn own(context: &WorkContext<'_>, out: &mut Findings) {
    let failed = context.faults.of(Fault::Local);
    if failed == 0 {
        return;
    }
    let total = context.total();
    let examples = context.work.examples.iter().filter(|example| example.fault == Fault::Local);
    let examples = examples.take(EXAMPLES_MOST).map(|example| example.text.clone()).collect();
    let what = Found::Own { failed, total, examples };
    match failed as f64 > OWN_MOST * total as f64 {
        true => out.invalidate(context, context.finding(Severity::Critical, what)),
        false => out.add(context.finding(Severity::Warning, what)),
    }
}

/// The storage returned data that are not those written.
pub(super) fn wrong_data(context: &WorkContext<'_>, out: &mut Findings) {
    let wrong: Vec<_> = context.faults.iter().filter(|(fault, _)| Fault::CONTENT.contains(fault)).collect();
    let faults = FaultCounts::from(wrong);
    let wrong = faults.total();
    if wrong == 0 {
        return;
    }
    let causes = causes(context, &faults, &Histogram::new());
    let answers = faults.of(Fault::WrongAnswer);
    out.add(context.finding(Severity::Critical, Found::WrongData { operations: wrong, answers, causes }));
}

/// The storage asked for fewer requests.
pub(super) fn throttled(context: &WorkContext<'_>, out: &mut Findings) {
    let throttled = context.faults.of(Fault::Throttled);
    if throttled == 0 {
        return;
    }
    out.add(context.finding(Severity::Warning, Found::Throttled { throttled, total: context.total() }));
}

/// Operations were tried more than once.
pub(super) fn retries(context: &WorkContext<'_>, out: &mut Findings) {
    let retries = sum(context.work.operations.iter().map(|operation| operation.tally.retries));
    if retries == 0 || context.nature.counts_attempts {
        return;
    }
    let share = retries as f64 / context.total().max(1) as f64;
    let severity = if share >= RETRIES_MANY { Severity::Warning } else { Severity::Note };
    out.add(context.finding(severity, Found::Retries { retries, total: context.total() }));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fail, healthy, invalid_for, invalid_with, said, work};
    use super::*;
    use tidemark_measure::kind::WorkKind;
    use tidemark_measure::record::{Example, State};

    #[test]
    fn success_is_never_rounded_up() {
        assert_eq!(success_percent(739_997, 740_000), "99.99 %");
        assert_eq!(success_percent(u64::MAX - 1, u64::MAX), "99.99 %");
        assert_eq!(
            [success_percent(7, 7), success_percent(0, 7), success_percent(0, 0)],
            ["100 %", "0 %", "0 %"]
        );
        assert_eq!(success_percent(1, 1_000_000), "0.0001 %");
    }

    #[test]
    fn no_failure_is_good() {
        let finding = said(&healthy(), "no-failures").unwrap();
        assert_eq!((finding.severity, finding.place()), (Severity::Good, "s1-main, work \"w1\"".into()));
        assert!(said(&healthy(), "failures").is_none());
    }

    #[test]
    fn failures_are_told_with_counts_classes_latencies_and_examples() {
        let mut run = healthy();
        fail(&mut run, Fault::Timeout, 3);
        work(&mut run).allowed_failures_per_million = 375;
        work(&mut run).examples = vec![Example { fault: Fault::Timeout, text: "GET b/o: no reply".into() }];
        let finding = said(&run, "failures").unwrap();
        assert_eq!(finding.severity, Severity::Warning, "3 of 8000 are 375 per million");
        assert!(finding.title().contains("3 of 8\u{202f}000 operations failed"), "{}", finding.title());
        let evidence = finding.evidence().join("\n");
        for text in ["3 x timeout", "10.0 ms (median)", "GET b/o: no reply", "99.96 %"] {
            assert!(evidence.contains(text), "{text} in {evidence}");
        }
        assert!(said(&run, "no-failures").is_none());
        work(&mut run).allowed_failures_per_million = 374;
        assert_eq!(said(&run, "failures").unwrap().severity, Severity::Critical);
    }

    #[test]
    fn failures_of_the_generators_own_are_no_result_of_the_storage() {
        let with = |failures| {
            let mut run = healthy();
            fail(&mut run, Fault::Local, failures);
            run
        };
        assert_eq!(said(&healthy(), "own-failures"), None);
        assert_eq!(said(&with(8), "own-failures").unwrap().severity, Severity::Warning, "one in a thousand");
        assert!(!invalid_for(&with(8), ""));
        assert!(invalid_for(&with(9), "own-failures"));
        assert!(invalid_with(
            &with(3_360),
            "3\u{202f}360 of 8\u{202f}000 operations failed on the load generator's own machine"
        ));
    }

    #[test]
    fn nothing_succeeded_is_never_a_result() {
        let mut run = healthy();
        fail(&mut run, Fault::NotFound, 8_000);
        assert_eq!(said(&run, "could-not-work").unwrap().severity, Severity::Critical);
        assert!(invalid_with(&run, "none of its 8\u{202f}000 operations succeeded"));
        let mut run = healthy();
        fail(&mut run, Fault::NotFound, 7_999);
        assert!(said(&run, "could-not-work").is_none());
    }

    #[test]
    fn one_operation_of_a_mix_that_could_not_work_is_named() {
        let mut run = healthy();
        let mut write = work(&mut run).operations[0].clone();
        write.label = "write".into();
        write.tally.ok = 0;
        write.tally.faults.count(Fault::Denied);
        work(&mut run).operations.push(write);
        assert!(said(&run, "could-not-work").unwrap().title().contains("\"write\""));
    }

    #[test]
    fn an_empty_window_is_said() {
        let mut run = healthy();
        work(&mut run).operations[0].tally = Default::default();
        assert!(invalid_for(&run, "nothing-measured"));
        work(&mut run).series[0].unmeasured = 5;
        assert!(invalid_for(&run, "nothing-measured"));
        work(&mut run).kind = WorkKind::Prepare;
        assert_eq!(said(&run, "nothing-measured").unwrap().severity, Severity::Warning);
        assert!(!invalid_for(&run, "nothing-measured"));
    }

    #[test]
    fn operations_that_the_user_stopped_did_not_fail() {
        let mut run = healthy();
        fail(&mut run, Fault::Abandoned, 4);
        assert_eq!(said(&run, "failures").unwrap().severity, Severity::Critical);
        run.stages[0].state = State::Interrupted;
        assert!(said(&run, "failures").is_none());
    }

    #[test]
    fn wrong_data_are_critical_whatever_is_allowed() {
        for fault in Fault::CONTENT {
            let mut run = healthy();
            fail(&mut run, fault, 1);
            work(&mut run).allowed_failures_per_million = 1_000_000;
            let finding = said(&run, "wrong-data").unwrap();
            assert_eq!(finding.severity, Severity::Critical);
            assert!(finding.evidence().join("\n").contains(fault.name()));
        }
        let mut run = healthy();
        fail(&mut run, Fault::ServerError, 1);
        assert!(said(&run, "wrong-data").is_none());
    }

    #[test]
    fn throttling_and_retries_are_told() {
        let mut run = healthy();
        assert!(said(&run, "throttled").is_none() && said(&run, "retries").is_none());
        fail(&mut run, Fault::Throttled, 80);
        assert!(said(&run, "throttled").unwrap().title().contains("1.00 %"));
        work(&mut run).operations[0].tally.retries = 79;
        assert_eq!(said(&run, "retries").unwrap().severity, Severity::Note);
        work(&mut run).operations[0].tally.retries = 80;
        assert_eq!(said(&run, "retries").unwrap().severity, Severity::Warning);
    }
}
