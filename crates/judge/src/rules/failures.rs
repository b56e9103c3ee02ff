//! What failed, how often and why.

use super::Findings;
use crate::context::{WorkContext, sum};
use crate::{Finding, Severity};
use tidemark_measure::fault::Fault;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, State};
use tidemark_measure::tally::FaultCounts;
use tidemark_measure::units;

/// From this share of repeated attempts on, retries change what the latencies mean: a p99 then consists of
/// operations that were tried more than once.
const RETRIES_MANY: f64 = 0.01;

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
    // Another tool may say how fast it was, and not how many operations that were.
    let mut said =
        context.work.operations.iter().filter_map(|operation| operation.reported.as_ref()?.throughput);
    let said = said.any(|throughput| throughput > 0.0);
    if context.total() > 0 || said || context.work.operations.is_empty() || needless {
        return;
    }
    let outside = sum(context.work.series.iter().map(|second| second.unmeasured));
    let finding = |title| {
        let severity = if context.measures() { Severity::Critical } else { Severity::Warning };
        context
            .finding(severity, "nothing-measured", title)
            .evidence(format!("operations that ended outside of the window: {}", units::count(outside)))
            .evidence(format!("length of the window: {}", units::duration_ns(context.window_ns())))
    };
    let title = if outside > 0 {
        "no operation fell into the measured window"
    } else {
        "no operation was carried out"
    };
    // What the user ended in its warm-up is no invalid measurement: it is none.
    if context.interrupted() {
        return out.say(context.finding(Severity::Note, "nothing-measured", title));
    }
    out.invalidate(context, finding(title));
}

/// Nothing succeeded, in the whole work or in one of its operations.
pub(super) fn could_not_work(context: &WorkContext<'_>, out: &mut Findings) {
    if context.ok == 0 && context.total() > 0 {
        let title =
            format!("could not work: none of its {} operations succeeded", units::count(context.total()));
        let finding = context
            .finding(Severity::Critical, "could-not-work", title)
            .detail("There are no latencies and no throughput to report. Whatever ran after it may have lacked what it should have made.");
        out.invalidate(context, with_failures(finding, context, &context.faults, &context.failure));
        return;
    }
    for operation in &context.work.operations {
        let tally = &operation.tally;
        if tally.ok == 0 && tally.failed() > 0 {
            let (label, failed) = (&operation.label, units::count(tally.failed()));
            let title =
                format!("operation \"{label}\" could not work: none of its {failed} attempts succeeded");
            let finding = context.finding(Severity::Critical, "could-not-work", title);
            out.invalidate(context, with_failures(finding, context, &tally.faults, &tally.failure));
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
            let title = format!("all {} operations succeeded", units::count(total));
            out.say(context.finding(Severity::Good, "no-failures", title));
        }
        return;
    }
    let allowed = context.work.allowed_failures_per_million;
    let over = u128::from(failed) * 1_000_000 > u128::from(allowed) * u128::from(total);
    let per_million = failed as f64 * 1e6 / total as f64;
    let title = format!("{} of {} operations failed", units::count(failed), units::count(total));
    let (severity, title) = match over {
        true => (Severity::Critical, format!("{title}, more than allowed")),
        false => (Severity::Warning, title),
    };
    let finding = context
        .finding(severity, "failures", title)
        .evidence(format!(
            "{} / {} x 1 000 000 = {per_million:.1} per million; allowed: {allowed}",
            units::count(failed),
            units::count(total)
        ))
        .evidences(context.work.operations.iter().filter(|operation| operation.tally.failed() > 0).map(line));
    out.say(with_failures(finding, context, &context.faults, &context.failure));
}

/// Failures without those operations that only failed because the user stopped the run.
fn failures_to_answer_for(context: &WorkContext<'_>) -> u64 {
    let stopped = if context.interrupted() { context.faults.of(Fault::Abandoned) } else { 0 };
    context.failed().saturating_sub(stopped)
}

fn line(operation: &Operation) -> String {
    let tally = &operation.tally;
    format!(
        "{}: {} of {} failed, {} succeeded",
        operation.label,
        units::count(tally.failed()),
        units::count(tally.total()),
        success_percent(tally.ok, tally.total())
    )
}

/// Adds the classes, the latencies and the first few examples of failures.
fn with_failures(
    finding: Finding,
    context: &WorkContext<'_>,
    faults: &FaultCounts,
    latency: &Histogram,
) -> Finding {
    let classes = faults
        .iter()
        .map(|(fault, count)| format!("{} x {}: {}", units::count(count), fault.name(), fault.sentence()));
    let examples = context.work.examples.iter().filter(|example| faults.of(example.fault) > 0);
    finding
        .evidences(classes)
        .evidences(latencies(latency))
        .evidences(examples.take(EXAMPLES_MOST).map(|example| format!("for example: {}", example.text)))
}

/// How long failures took, as a line of evidence; nothing when none was timed.
pub(super) fn latencies(failure: &Histogram) -> Option<String> {
    let [median, p99, most] =
        [failure.quantile(0.5), failure.quantile(0.99), failure.max()].map(units::duration_ns);
    (!failure.is_empty())
        .then(|| format!("failures took {median} in the median, {p99} at p99, {most} at most"))
}

/// The storage returned data that are not those written.
pub(super) fn wrong_data(context: &WorkContext<'_>, out: &mut Findings) {
    let wrong: Vec<_> = context.faults.iter().filter(|(fault, _)| Fault::CONTENT.contains(fault)).collect();
    let faults = FaultCounts::from(wrong);
    let wrong = faults.total();
    if wrong == 0 {
        return;
    }
    let title = format!("the storage returned wrong data {}", times(wrong));
    let finding = context.finding(Severity::Critical, "wrong-data", title).detail(
        "Data were lost, mixed up or altered, or something else wrote to the same objects or volumes during the run.",
    );
    out.say(with_failures(finding, context, &faults, &Histogram::new()));
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{} times", units::count(count)) }
}

/// The storage asked for fewer requests.
pub(super) fn throttled(context: &WorkContext<'_>, out: &mut Findings) {
    let throttled = context.faults.of(Fault::Throttled);
    if throttled == 0 {
        return;
    }
    let share = units::percent(throttled as f64 / context.total() as f64);
    let title = format!("the storage throttled the load: it turned down {share} of the operations");
    let detail = "What was measured is the limit that the service sets, not what the storage can do.";
    let evidence = format!(
        "{} of {} operations ended with 503 SlowDown, 429 or the like",
        units::count(throttled),
        units::count(context.total())
    );
    out.say(context.finding(Severity::Warning, "throttled", title).detail(detail).evidence(evidence));
}

/// Operations were tried more than once.
pub(super) fn retries(context: &WorkContext<'_>, out: &mut Findings) {
    let retries = sum(context.work.operations.iter().map(|operation| operation.tally.retries));
    if retries == 0 {
        return;
    }
    let share = retries as f64 / context.total().max(1) as f64;
    let severity = if share >= RETRIES_MANY { Severity::Warning } else { Severity::Note };
    let title = format!("{} attempts were repeated", units::count(retries));
    let detail = "The time of every attempt and every pause between them is inside the operation's latency.";
    let evidence = format!(
        "{} repeated attempts / {} operations = {}",
        units::count(retries),
        units::count(context.total()),
        units::percent(share)
    );
    out.say(context.finding(severity, "retries", title).detail(detail).evidence(evidence));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fail, healthy, invalid_for, said, work};
    use super::*;
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
        assert!(finding.title.contains("3 of 8\u{202f}000 operations failed"), "{}", finding.title);
        let evidence = finding.evidence.join("\n");
        for text in ["3 x timeout", "10.0 ms in the median", "GET b/o: no reply", "99.96 %"] {
            assert!(evidence.contains(text), "{text} in {evidence}");
        }
        assert!(said(&run, "no-failures").is_none());
        work(&mut run).allowed_failures_per_million = 374;
        assert_eq!(said(&run, "failures").unwrap().severity, Severity::Critical);
    }

    #[test]
    fn nothing_succeeded_is_never_a_result() {
        let mut run = healthy();
        fail(&mut run, Fault::NotFound, 8_000);
        assert_eq!(said(&run, "could-not-work").unwrap().severity, Severity::Critical);
        assert!(invalid_for(&run, "could not work: none of its 8\u{202f}000 operations succeeded"));
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
        assert!(said(&run, "could-not-work").unwrap().title.contains("\"write\""));
    }

    #[test]
    fn an_empty_window_is_said() {
        let mut run = healthy();
        work(&mut run).operations[0].tally = Default::default();
        assert!(invalid_for(&run, "no operation was carried out"));
        work(&mut run).series[0].unmeasured = 5;
        assert!(invalid_for(&run, "fell into the measured window"));
        work(&mut run).kind = "prepare".into();
        assert_eq!(said(&run, "nothing-measured").unwrap().severity, Severity::Warning);
        assert!(!invalid_for(&run, "window"));
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
            assert!(finding.evidence.join("\n").contains(fault.name()));
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
        assert!(said(&run, "throttled").unwrap().title.contains("1.00 %"));
        work(&mut run).operations[0].tally.retries = 79;
        assert_eq!(said(&run, "retries").unwrap().severity, Severity::Note);
        work(&mut run).operations[0].tally.retries = 80;
        assert_eq!(said(&run, "retries").unwrap().severity, Severity::Warning);
    }
}
