//! Times without success, operations that hung, and operations that ended late.

use super::Findings;
use super::failures::latencies;
use crate::Severity;
use crate::context::{SECOND_NS, WorkContext, failed_in, ok_in, sum};
use crate::words::outage::{InFlight, Outage as Found};
use tidemark_measure::fault::Fault;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{LongestGap, Second};

/// A time without success is never called an outage below this length: scheduling, garbage collection and a
/// failed-over connection stay under it.
const OUTAGE_LEAST_NS: u64 = SECOND_NS;

/// Nor below this many times the median response, or the mean gap between two successes. Gaps between independent
/// events are exponential: one of 20 times the mean has a probability of e^-20, two in a thousand million.
const OUTAGE_TIMES_TYPICAL: u64 = 20;

/// An outage is grave from this share of the window on: it then changes every mean by as much.
const OUTAGE_GRAVE_SHARE: f64 = 0.1;

/// An outage is grave from this length on, however long the run: users and clients give up.
const OUTAGE_GRAVE_NS: u64 = 10 * SECOND_NS;

/// Seconds in a row without success that make one operation's outage, when others of the mix go on.
const OPERATION_SECONDS: usize = 2;

/// Longest time without a success. The typical gap is taken over the rest of the work, or an outage would hide
/// itself.
pub(super) fn outage(context: &WorkContext<'_>, out: &mut Findings) {
    // The few parts of a preparation may differ as a table does from its index: nobody knows what is usual.
    let least_ok = if context.measures() { 1 } else { OUTAGE_TIMES_TYPICAL };
    let Some(longest_gap) = context.work.longest_gap.filter(|_| context.ok >= least_ok) else { return };
    let (length, limit) = (longest_gap.length_ns(), longest_usual_ns(context, longest_gap));
    if length.saturating_sub(own_standstill_ns(context, longest_gap)) < limit {
        return;
    }
    let start = longest_gap.from_ns.max(context.work.window_start_ns);
    let inside = longest_gap.to_ns.min(context.work.window_end_ns).saturating_sub(start);
    let grave = is_grave(context, inside) || length >= OUTAGE_GRAVE_NS;
    let severity = if grave { Severity::Critical } else { Severity::Warning };
    let seconds: Vec<_> = context.seconds_touching(longest_gap.from_ns, longest_gap.to_ns).collect();
    let what = Found::Outage {
        from_ns: longest_gap.from_ns,
        to_ns: longest_gap.to_ns,
        inside_ns: inside,
        window_start_ns: context.work.window_start_ns,
        window_end_ns: context.work.window_end_ns,
        limit_ns: limit,
        times_typical: OUTAGE_TIMES_TYPICAL,
        least_ns: OUTAGE_LEAST_NS,
        median_ns: usual_ns(context),
        ok: context.ok,
        failed_meanwhile: sum(seconds.iter().map(|second| failed_in(second))),
        failures: latencies(&context.failure),
        stuck: seconds
            .iter()
            .max_by_key(|second| second.oldest_in_flight_ns)
            .and_then(|second| in_flight(second)),
        silent_seconds: context.whole_seconds().filter(|second| ok_in(second) == 0).count() as u64,
        whole_seconds: context.whole_seconds().count() as u64,
    };
    out.add(context.finding(severity, what));
}

/// Whether an outage of so much of the window is grave.
pub(super) fn is_grave(context: &WorkContext<'_>, inside_ns: u64) -> bool {
    let share = inside_ns as f64 / context.window_ns().max(1) as f64;
    // What is not measured has no mean to change.
    (share >= OUTAGE_GRAVE_SHARE && context.measures()) || inside_ns >= OUTAGE_GRAVE_NS
}

/// For how long the generator itself stood still in a gap: nobody knows what the storage did meanwhile. A thread that block
/// storage holds in a system call is no generator that stands still.
fn own_standstill_ns(context: &WorkContext<'_>, gap: LongestGap) -> u64 {
    if context.stage.proof.is_some() {
        return 0;
    }
    let stalls = context.seconds_touching(gap.from_ns, gap.to_ns).map(|second| second.stalled_ns);
    stalls.max().unwrap_or(0)
}

/// What hung at the end of a second, if anything did.
fn in_flight(second: &Second) -> Option<InFlight> {
    let (operations, oldest_ns) = (second.in_flight, second.oldest_in_flight_ns);
    (operations > 0).then_some(InFlight { operations, second: second.index, oldest_ns })
}

/// The longest time without a success that is nothing unusual, given that this one occurred. Where an operation waited for the storage
/// all the while, the load had not paused: gaps between its arrivals say nothing then.
pub(crate) fn longest_usual_ns(context: &WorkContext<'_>, longest: LongestGap) -> u64 {
    let least = OUTAGE_LEAST_NS.max(usual_ns(context).saturating_mul(OUTAGE_TIMES_TYPICAL));
    let mut meanwhile = context.seconds_touching(longest.from_ns, longest.to_ns);
    if meanwhile.any(|second| second.oldest_in_flight_ns >= least) {
        return least;
    }
    let gap = context.window_ns().saturating_sub(longest.length_ns()) / context.ok.max(1);
    least.max(gap.saturating_mul(OUTAGE_TIMES_TYPICAL))
}

/// The median time that an operation takes. In an open loop the wait for a free worker is left out: an outage's backlog raises the
/// response times of all that come after it, and would hide it.
fn usual_ns(context: &WorkContext<'_>) -> u64 {
    let mut service = Histogram::new();
    for operation in &context.work.operations {
        service.add(operation.tally.service());
    }
    if service.is_empty() { context.median_ns() } else { service.quantile(0.5).min(context.median_ns()) }
}

/// One operation of a mix succeeded no more while others did. Seen second by second.
pub(super) fn operation_outage(context: &WorkContext<'_>, out: &mut Findings) {
    let seconds: Vec<_> = context.whole_seconds().collect();
    for (index, operation) in context.work.operations.iter().enumerate() {
        let own = |second: &Second| second.operations.get(index).copied().unwrap_or_default();
        let gone: Vec<_> = seconds.iter().map(|second| own(second).ok == 0 && ok_in(second) > 0).collect();
        let (from, length) = longest_row(&gone);
        let total = sum(seconds.iter().map(|second| own(second).ok));
        let Some(missing) = missing_in(total, seconds.len(), length) else { continue };
        let row = &seconds[from..from + length];
        let failed = sum(row.iter().map(|second| own(second).failed));
        let what = Found::OfOperation {
            operation: operation.label.clone(),
            seconds: length as u64,
            from_second: row.first().map(|first| first.index),
            missing,
            failed,
        };
        out.add(context.finding(Severity::Warning, what));
    }
}

/// What would have succeeded at the usual rate in a row of seconds without success, given the successes in all seconds; `None` where
/// the row is no outage.
pub(super) fn missing_in(ok: u64, seconds: usize, row: usize) -> Option<f64> {
    let missing = ok as f64 / (seconds - row).max(1) as f64 * row as f64;
    (row >= OPERATION_SECONDS && missing >= OUTAGE_TIMES_TYPICAL as f64).then_some(missing)
}

/// Where the longest row of `true` begins, and its length.
pub(super) fn longest_row(marks: &[bool]) -> (usize, usize) {
    let (mut best, mut from) = ((0, 0), 0);
    for (index, mark) in marks.iter().enumerate() {
        if !mark {
            from = index + 1;
        } else if index + 1 - from > best.1 {
            best = (from, index + 1 - from);
        }
    }
    best
}

/// Operations in flight that never ended.
pub(super) fn stuck(context: &WorkContext<'_>, out: &mut Findings) {
    let abandoned = context.faults.of(Fault::Abandoned);
    if abandoned == 0 {
        return;
    }
    let many = abandoned.saturating_mul(2) >= context.work.slots();
    let interrupted = context.interrupted();
    let severity = match (interrupted, many) {
        (true, _) => Severity::Note,
        (false, true) => Severity::Critical,
        (false, false) => Severity::Warning,
    };
    let last = context.work.series.last().and_then(in_flight);
    let what =
        Found::Abandoned { operations: abandoned, slots: context.work.slots(), interrupted, many, last };
    out.add(context.finding(severity, what));
}

/// Operations that were due in the window and ended long after it.
pub(super) fn late_tail(context: &WorkContext<'_>, out: &mut Findings) {
    let data = context.work.operations.iter().filter(|operation| operation.class.moves_data());
    let late = sum(data.map(|operation| operation.tally.late));
    let tail = context.last_measured_ns().saturating_sub(context.work.window_end_ns);
    let limit = OUTAGE_LEAST_NS.max(context.median_ns().saturating_mul(OUTAGE_TIMES_TYPICAL));
    if late == 0 || tail < limit {
        return;
    }
    let what = Found::LateTail {
        operations: late,
        tail_ns: tail,
        limit_ns: limit,
        times_typical: OUTAGE_TIMES_TYPICAL,
        least_ns: OUTAGE_LEAST_NS,
        median_ns: context.median_ns(),
    };
    out.add(context.finding(Severity::Warning, what));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, fail, healthy, healthy_open, said, work};
    use super::*;
    use tidemark_measure::kind::WorkKind;
    use tidemark_measure::record::{Run, SecondOfOperation, State};

    /// The healthy run with nothing from `from` to `to` seconds.
    fn silent(from: u64, to: u64) -> Run {
        let mut run = healthy();
        let own = work(&mut run);
        own.longest_gap = Some(LongestGap { from_ns: from * SECOND_NS, to_ns: to * SECOND_NS });
        for second in &mut own.series[from as usize..to as usize] {
            second.operations[0] = SecondOfOperation::default();
            second.oldest_in_flight_ns = (u64::from(second.index) + 1 - from) * SECOND_NS;
        }
        let tally = &mut own.operations[0].tally;
        tally.ok = 400 * (20 - (to - from));
        run
    }

    #[test]
    fn ten_seconds_of_twenty_are_unmistakable() {
        let finding = said(&silent(5, 15), "outage").unwrap();
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.title(), "no operation succeeded for 10.0 s, 50.00 % of the window");
        let evidence = finding.evidence().join("\n");
        let texts = ["from 5.00 s to 15.0 s", "200 op/s over the window", "without the outage = 400 op/s"];
        let more = [
            "they hung",
            "4 in flight at the end of second 14, the oldest for 10.0 s",
            "10 of the window's 20",
        ];
        for text in texts.iter().chain(&more) {
            assert!(evidence.contains(text), "{text} in {evidence}");
        }
    }

    #[test]
    fn the_few_parts_of_a_preparation_have_no_usual_length() {
        let filling = |ok| {
            let mut run = silent(5, 15);
            work(&mut run).kind = tidemark_measure::kind::WorkKind::Prepare;
            work(&mut run).operations[0].tally.ok = ok;
            run
        };
        assert!(said(&filling(3), "outage").is_none());
        assert!(said(&filling(4000), "outage").is_some());
    }

    #[test]
    fn failures_meanwhile_are_counted_with_their_own_latencies() {
        let mut run = silent(5, 15);
        fail(&mut run, Fault::Timeout, 12);
        work(&mut run).series[7].operations[0].failed = 12;
        let evidence = said(&run, "outage").unwrap().evidence().join("\n");
        assert!(
            evidence.contains(
                "12 operations failed during the outage; over the whole work, failures took 10.0 ms"
            )
        );
    }

    #[test]
    fn shorter_ones_weigh_less_and_usual_gaps_are_none() {
        let waited = |length_ns, median_ns: u64, service_ns: u64| {
            let mut run = healthy();
            work(&mut run).longest_gap =
                Some(LongestGap { from_ns: 5 * SECOND_NS, to_ns: 5 * SECOND_NS + length_ns });
            let tally = &mut work(&mut run).operations[0].tally;
            tally.response.reset();
            tally.response.record_many(median_ns, tally.ok);
            tally.service_open.reset();
            tally.service_open.record_many(service_ns, tally.ok);
            said(&run, "outage").map(|finding| finding.severity)
        };
        let with = |length_ns, median_ns| waited(length_ns, median_ns, median_ns);
        assert_eq!(with(SECOND_NS - 1, 10 * MS), None);
        assert_eq!(with(SECOND_NS, 10 * MS), Some(Severity::Warning));
        assert_eq!(with(2 * SECOND_NS - 1, 10 * MS), Some(Severity::Warning));
        assert_eq!(with(2 * SECOND_NS, 10 * MS), Some(Severity::Critical), "a tenth of the window");
        assert_eq!(with(2 * SECOND_NS, 110 * MS), None, "20 x 110 ms = 2.2 s");
        let backlog = waited(3 * SECOND_NS, 200 * MS, 5 * MS);
        assert_eq!(backlog, Some(Severity::Critical), "what waited behind it is no usual response");
    }

    #[test]
    fn a_pause_of_preparation_is_worth_a_warning() {
        let preparing = |from, to| {
            let mut run = silent(from, to);
            work(&mut run).kind = WorkKind::Prepare;
            said(&run, "outage").unwrap().severity
        };
        assert_eq!(preparing(5, 8), Severity::Warning);
        assert_eq!(preparing(5, 15), Severity::Critical, "ten seconds");
    }

    #[test]
    fn a_gap_in_which_the_generator_stood_still_is_not_the_storage_s() {
        let with = |length_ms, stalled_ms| {
            let mut run = healthy();
            let from_ns = 5 * SECOND_NS + 400 * MS;
            work(&mut run).longest_gap = Some(LongestGap { from_ns, to_ns: from_ns + length_ms * MS });
            work(&mut run).series[5].stalled_ns = stalled_ms * MS;
            said(&run, "outage").is_some()
        };
        assert!(!with(1_210, 1_150));
        assert!(with(1_210, 100), "it looked up nearly all the time");
        assert!(with(4_000, 1_150), "the rest is long enough");
    }

    #[test]
    fn a_rare_operation_is_no_outage() {
        let mut run = healthy();
        let own = work(&mut run);
        own.operations[0].tally.ok = 20;
        own.longest_gap = Some(LongestGap { from_ns: 0, to_ns: 3 * SECOND_NS });
        assert_eq!(said(&run, "outage"), None, "one success a second");
    }

    #[test]
    fn an_open_loop_that_hung_had_an_outage_however_rare_its_operations_and_long_its_queue() {
        let with = |hung_ns| {
            let mut run = healthy_open();
            let own = work(&mut run);
            own.offered_rate = Some(5.0);
            own.operations[0].tally.ok = 85;
            own.operations[0].tally.response.reset();
            own.operations[0].tally.response.record_many(SECOND_NS, 85);
            own.longest_gap = Some(LongestGap { from_ns: 5 * SECOND_NS, to_ns: 8 * SECOND_NS });
            own.series[7].oldest_in_flight_ns = hung_ns;
            said(&run, "outage").map(|finding| finding.title())
        };
        let told = with(2_900 * MS).expect("operations hung for all of it");
        assert_eq!(told, "no operation succeeded for 3.00 s, 15.00 % of the window");
        assert_eq!(with(5 * MS), None, "nothing waited");
    }

    #[test]
    fn one_operation_may_be_gone_while_others_go_on() {
        let mix = |gone: usize| {
            let mut run = healthy();
            let own = work(&mut run);
            let mut write = own.operations[0].clone();
            write.label = "write".into();
            own.operations.push(write);
            for second in &mut own.series {
                let hit = (5..5 + gone).contains(&(second.index as usize));
                let ok = if hit { 0 } else { 100 };
                second.operations.push(SecondOfOperation { ok, ..SecondOfOperation::default() });
            }
            said(&run, "operation-outage").map(|finding| finding.title())
        };
        assert_eq!(mix(1), None);
        assert_eq!(mix(3).unwrap(), "no \"write\" operation succeeded for 3 s while others did");
    }

    #[test]
    fn longest_rows() {
        assert_eq!(longest_row(&[]), (0, 0));
        assert_eq!(longest_row(&[true, false, true, true, false, true]), (2, 2));
        assert_eq!(longest_row(&[false, true, true]), (1, 2));
    }

    #[test]
    fn abandoned_operations_weigh_by_their_number() {
        let with = |count, state| {
            let mut run = healthy();
            fail(&mut run, Fault::Abandoned, count);
            run.stages[0].state = state;
            said(&run, "abandoned").map(|finding| finding.severity)
        };
        assert_eq!(with(0, State::Failed), None);
        assert_eq!(with(1, State::Failed), Some(Severity::Warning));
        assert_eq!(with(2, State::Failed), Some(Severity::Critical), "two of four workers");
        assert_eq!(with(4, State::Interrupted), Some(Severity::Note));
    }

    #[test]
    fn a_long_tail_is_told() {
        let with = |tail_ns| {
            let mut run = healthy();
            let own = work(&mut run);
            own.operations[0].tally.late = 2;
            own.workers_counts[3].last_done_ns += tail_ns;
            said(&run, "late-tail").map(|finding| finding.title())
        };
        assert_eq!(with(999 * MS), None);
        assert_eq!(
            with(3 * SECOND_NS).unwrap(),
            "2 operations finished after the window, the last one 3.00 s after it"
        );
    }
}
