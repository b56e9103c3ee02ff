//! Whether the load generator did what it was asked to, or was itself the limit.
//!
//! In works that measure, what is found here makes the run invalid or is a warning; in works that prepare or
//! clean up it is left unsaid.

use super::Findings;
use super::usage::{BUSY_FULL, BUSY_HIGH, Use};
use crate::Severity;
use crate::context::WorkContext;
use crate::words::generator::{Fault, Generator as Found, Lag, Lanes, Reach, Reserve, WorkersTime};
use std::collections::BTreeMap;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::WorkerCount;
use tidemark_measure::tally::Tally;

/// Below this share of the offered operations sent by the end of the window, the run is invalid: a backlog of a
/// twentieth of the window means that latencies depend on how long the run was, not on the storage.
const OFFERED_LEAST: f64 = 0.95;

/// Below this share it is worth a warning: one operation in a hundred waited.
const OFFERED_GOOD: f64 = 0.99;

/// A send lag under this is below what an ordinary kernel's scheduler does on a shared machine.
const LAG_LEAST_NS: u64 = 1_000_000;

/// Lag worth a warning, as a share of the service time at the same percentile: a tenth of the response time is
/// then the generator's.
const LAG_SHARE: f64 = 0.1;

/// Lag that makes the run invalid: a third of the response time (half of the service time) is the generator's.
const LAG_SHARE_MOST: f64 = 0.5;

/// By how much the sum of latencies may exceed the workers' time, and how much of it may be the generator's own.
/// Histograms are exact to 0.1 %, so more than a tenth is no rounding; and a tenth less load is a different load.
const LITTLE_TOLERANCE: f64 = 0.1;

/// In less time than this nobody can tell whether the generator keeps up: a process that runs out of its quota of processor
/// time is stopped for up to 100 ms (the period of the kernel's CFS bandwidth control), and one such stop is then all
/// that the tolerance allows.
const TELLS_LEAST_NS: f64 = 1e9;

/// A fault of the generator weighs less where nothing is measured.
fn weigh(context: &WorkContext<'_>, severity: Severity) -> Severity {
    if context.measures() { severity } else { severity.min(Severity::Note) }
}

/// Says that the generator was the limit: of numbers that are meant to be the storage's that is a grave fault. Where no storage
/// is behind the load it is what was measured.
fn blame(context: &WorkContext<'_>, out: &mut Findings, what: Found) {
    let is_fault = context.measures() && !context.work.simulated;
    let severity = if is_fault { Severity::Critical } else { Severity::Note };
    out.add(context.finding(severity, what).invalidating(is_fault));
}

/// In an open loop: whether operations were sent at the rate asked for.
pub(super) fn offered_rate(context: &WorkContext<'_>, out: &mut Findings) {
    let Some(offered) = context.work.offered_rate else { return };
    let due = context.total().saturating_add(context.work.unsent);
    if due == 0 {
        return;
    }
    let last = context.seconds_touching(0, context.work.window_end_ns).last();
    let backlog = last.map_or(0, |second| second.backlog).max(context.work.unsent).min(due);
    // What a lost driver was to send is not among what was due: that it is missing is said of the driver.
    let planned = offered * context.work.window_seconds();
    if !context.is_whole() && (due as f64) < OFFERED_GOOD * planned {
        return;
    }
    let share = (due - backlog) as f64 / due as f64;
    let reach = match share {
        good if good >= OFFERED_GOOD => Reach::Reached,
        low if low < OFFERED_LEAST => Reach::Missed,
        _ => Reach::Nearly,
    };
    let most = context.whole_seconds().map(|second| second.in_flight).max().unwrap_or(0);
    let seconds = context.work.window_seconds();
    let what = Found::OfferedRate {
        reach,
        offered,
        done: context.work.operations.iter().map(|operation| operation.throughput(seconds)).sum(),
        due,
        backlog,
        unsent: context.work.unsent,
        all_workers_waited: u64::from(most) >= context.work.slots(),
    };
    match reach {
        Reach::Reached => out.add(context.finding(Severity::Good, what)),
        Reach::Nearly => out.add(context.finding(weigh(context, Severity::Warning), what)),
        Reach::Missed => {
            out.invalidate(context, context.finding(weigh(context, Severity::Critical), what));
        }
    }
}

/// In an open loop, and where workers share connections: whether operations were sent when they were due.
///
/// An operation is sent late because the generator was late, or because no worker was free. The second is the storage's
/// doing, and no fault; the load loop tells them apart for every operation. Of a record of a version that did not, it is not
/// known.
pub(super) fn send_lag(context: &WorkContext<'_>, out: &mut Findings) {
    if context.work.offered_rate.is_none() && context.work.connections.is_none() {
        return;
    }
    let tallies = || context.work.operations.iter().map(|operation| &operation.tally);
    let (mut lag, mut own, mut service) = (Histogram::new(), Histogram::new(), Histogram::new());
    for tally in tallies() {
        lag.add(&tally.lag);
        service.add(tally.service());
        own.add(tally.own_lag().unwrap_or(&Histogram::new()));
    }
    if lag.is_empty() || service.is_empty() {
        return;
    }
    let at = |histogram: &Histogram| [0.5, 0.99, 1.0].map(|fraction| histogram.quantile(fraction));
    let told_apart = tallies().all(|tally| tally.own_lag().is_some());
    let own_ns = told_apart.then(|| at(&own));
    let lag = Lag { lag_ns: at(&lag), own_ns, service_ns: at(&service), lanes: Lanes::of(context.work) };
    let share = |lag_ns: u64| match lag_ns {
        0..=LAG_LEAST_NS => 0.0,
        late => late as f64 / lag.service_ns[1].max(1) as f64,
    };
    let told = |fault| Found::SendLag {
        lag,
        fault,
        limit_ns: LAG_LEAST_NS,
        limit: LAG_SHARE,
        limit_invalid: LAG_SHARE_MOST,
    };
    let all = share(lag.lag_ns[1]);
    match lag.own_ns.map(|own_ns| share(own_ns[1])) {
        Some(own) if own >= LAG_SHARE_MOST => blame(context, out, told(Fault::Generator)),
        Some(own) if own > LAG_SHARE => {
            out.add(context.finding(weigh(context, Severity::Warning), told(Fault::Generator)));
        }
        _ if all <= LAG_SHARE => out.add(context.finding(Severity::Good, told(Fault::Nobody))),
        Some(_) => {
            out.add(context.finding(Severity::Note, Found::WorkersExhausted { lag }));
        }
        None => out.add(context.finding(weigh(context, Severity::Warning), told(Fault::Unknown))),
    }
}

/// Whether the generator's threads had reserve: of their own time, and of their machines' processors. Where workers waited for
/// the generator nobody says that it had any.
///
/// In an open loop the send lag is the direct measure of what a busy generator does to the numbers, and a pacer
/// may spin while it waits; being busy is only noted there.
pub(super) fn busy(context: &WorkContext<'_>, out: &mut Findings) {
    let all = Use::all(context);
    let Some(busiest) = all.iter().max_by(|one, other| one.mean().total_cmp(&other.mean())) else { return };
    let above = |limit| all.iter().filter(move |one| one.sustained(limit)).collect::<Vec<_>>();
    let (full, high) = (above(BUSY_FULL), above(BUSY_HIGH));
    let told = |reserve, some: &[&Use<'_>]| Found::Reserve {
        reserve,
        busy: some.iter().map(|one| one.facts()).collect(),
        of: all.len(),
    };
    let pressed: Vec<&Use<'_>> = all.iter().filter(|one| one.is_pressed()).collect();
    if high.is_empty() && !pressed.is_empty() {
        let severity = if context.work.offered_rate.is_some() { Severity::Note } else { Severity::Warning };
        out.add(context.finding(weigh(context, severity), told(Reserve::Pressed, &pressed)));
    } else if high.is_empty() {
        let waited = workers_time(context).is_some_and(|time| time.waiting() > LITTLE_TOLERANCE);
        if !waited || !context.measures() {
            out.add(context.finding(Severity::Good, told(Reserve::Enough, &[busiest])));
        }
    } else if context.work.offered_rate.is_some() {
        out.add(context.finding(Severity::Note, told(Reserve::Little, &high)));
    } else if !full.is_empty() {
        blame(context, out, told(Reserve::None, &full));
    } else {
        out.add(context.finding(weigh(context, Severity::Warning), told(Reserve::Near, &high)));
    }
}

/// Little's law (Little, 1961): the mean number of operations in flight is throughput times mean latency.
///
/// Multiplied by time, it says that the latencies of all operations add up to the time for which lanes were in
/// use: never more than the time for which workers were at it. In a closed loop a worker is in an operation,
/// pausing because the document asks for it, or waiting for the generator; the last is a load that was promised and not
/// applied.
pub(super) fn littles_law(context: &WorkContext<'_>, out: &mut Findings) {
    if context.nature.works_between {
        return;
    }
    let closed = context.work.offered_rate.is_none();
    let Some(time) = workers_time(context) else { return };
    let (in_operations, elapsed_ns) = (time.in_operations_ns / time.available_ns, time.elapsed_ns);
    let waits = time.waiting() > LITTLE_TOLERANCE && context.measures();
    if in_operations > 1.0 + LITTLE_TOLERANCE {
        let severity = weigh(context, Severity::Critical);
        out.invalidate(context, context.finding(severity, Found::Contradiction { time }));
    } else if waits && elapsed_ns < TELLS_LEAST_NS {
        let what = Found::TooShort { time, least_ns: TELLS_LEAST_NS };
        out.add(context.finding(Severity::Note, what));
    } else if waits {
        blame(context, out, Found::Slow { time });
    } else if closed && context.measures() && queue_ran_dry(context, in_operations) {
        out.add(context.finding(Severity::Warning, Found::QueueNotFull { time }));
    } else if context.measures() {
        out.add(context.finding(Severity::Good, Found::Agree { time }));
    }
}

/// Where the workers' time went; `None` where that is not known.
fn workers_time(context: &WorkContext<'_>) -> Option<WorkersTime> {
    let closed = context.work.offered_rate.is_none();
    let tallies = || context.work.operations.iter().map(|operation| &operation.tally);
    let sum_of = |part: fn(&Tally) -> &Histogram| tallies().map(|tally| sum_ns(part(tally))).sum::<f64>();
    let (services, all_lags) = (sum_of(Tally::service), sum_of(|tally| &tally.lag));
    let shared = closed && context.work.connections.is_some();
    let failed = match (closed, context.failure.is_empty()) {
        (false, _) | (_, true) => 0.0,
        // There they count from the due times: without the lags that are not in the responses, it is the time in operations.
        _ if shared => {
            let lags_of_successes = sum_of(|tally| &tally.response) - services;
            (sum_ns(&context.failure) - (all_lags - lags_of_successes)).max(0.0)
        }
        _ => sum_ns(&context.failure),
    };
    let latencies = services + failed;
    // Of workers that share connections, only a part of the lag is the generator's.
    let own = |tally: &Tally| tally.own_lag().map_or(0.0, sum_ns);
    let lags = if closed { tallies().map(own).sum::<f64>() } else { 0.0 };
    let waited = if shared { (all_lags - lags).max(0.0) } else { 0.0 };
    let Span { elapsed_ns, available_ns } = span(context);
    // A lost driver's operations are there, but not the time that its workers were at them.
    if available_ns <= 0.0 || latencies <= 0.0 || !context.is_whole() {
        return None;
    }
    Some(WorkersTime {
        in_operations_ns: latencies,
        // A worker's wait for its first operation is in the lags too, though not in the time of which this is a part.
        waiting_for_generator_ns: lags.min((available_ns - latencies).max(0.0)),
        waiting_for_connection_ns: waited,
        available_ns,
        elapsed_ns,
        think: context.work.think,
        lanes: Lanes::of(context.work),
    })
}

/// In a closed loop on block storage, which waits for nothing but its own operations: whether the queue was less
/// full than asked for. Where pauses are asked for, it never is full. A sync keeps other operations of its worker waiting; where there are syncs nothing is said.
/// At the ends of the window a queue fills and empties once: a tenth of ten times its depth.
fn queue_ran_dry(context: &WorkContext<'_>, in_operations: f64) -> bool {
    let few = context.total() < context.work.slots().saturating_mul(10);
    let pauses = !context.work.think.is_none() || context.work.connections.is_some();
    let waits = few || pauses || context.failed() > 0 || context.syncs().next().is_some();
    context.stage.proof.is_some() && !waits && in_operations < 1.0 - LITTLE_TOLERANCE
}

fn sum_ns(histogram: &Histogram) -> f64 {
    histogram.mean() * histogram.count() as f64
}

/// For how long the load was on.
struct Span {
    /// From the first operation sent to the last one ended.
    elapsed_ns: f64,
    /// The time from each worker's first operation to its last, added up over all the operations that it may have in flight.
    available_ns: f64,
}

/// The time in which the measured operations took place. Without counts per worker, or in an open loop, it is the most that it
/// can be: every worker from the window's start to the last completion.
fn span(context: &WorkContext<'_>) -> Span {
    let spans = spans(&context.work.workers_counts);
    let first = spans.values().map(|(first, _)| *first).min();
    let last = spans.values().map(|(_, last)| *last).max();
    match (first, last) {
        (Some(first), Some(last)) if context.work.offered_rate.is_none() => {
            let workers: f64 = spans.values().map(|(first, last)| last.saturating_sub(*first) as f64).sum();
            Span {
                elapsed_ns: last.saturating_sub(first) as f64,
                available_ns: workers * f64::from(context.work.depth.max(1)),
            }
        }
        _ => {
            let end = context.last_measured_ns().max(context.work.window_end_ns);
            let elapsed_ns = end.saturating_sub(context.work.window_start_ns) as f64;
            Span { elapsed_ns, available_ns: elapsed_ns * context.work.slots() as f64 }
        }
    }
}

/// When each worker that did something sent its first measured operation and ended its last, by its number.
pub(super) fn spans(counts: &[WorkerCount]) -> BTreeMap<u32, (u64, u64)> {
    let mut spans = BTreeMap::new();
    for count in counts.iter().filter(|count| count.ok > 0 || count.failed > 0) {
        let span = spans.entry(count.worker).or_insert((count.first_sent_ns, count.last_done_ns));
        *span = (span.0.min(count.first_sent_ns), span.1.max(count.last_done_ns));
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, healthy_open, invalid_for, said, work};
    use super::*;
    use crate::words::generator::Generator;
    use crate::{Finding, What};
    use tidemark_measure::kind::WorkKind;
    use tidemark_measure::record::Run;
    use tidemark_measure::think::Think;

    fn severity(run: &Run, rule: &str) -> Option<Severity> {
        said(run, rule).map(|finding| finding.severity)
    }

    #[test]
    fn a_healthy_generator_passes_every_check() {
        for rule in ["generator-busy", "littles-law"] {
            assert_eq!(severity(&healthy(), rule), Some(Severity::Good), "{rule}");
        }
        for rule in ["generator-busy", "littles-law", "offered-rate", "send-lag"] {
            assert_eq!(severity(&healthy_open(), rule), Some(Severity::Good), "{rule}");
        }
        assert_eq!(said(&healthy(), "offered-rate"), None, "a closed loop offers no rate");
    }

    #[test]
    fn an_offered_rate_is_reached_or_not() {
        let with = |backlog, unsent| {
            let mut run = healthy_open();
            work(&mut run).series[19].backlog = backlog;
            work(&mut run).unsent = unsent;
            run
        };
        assert_eq!(severity(&with(80, 0), "offered-rate"), Some(Severity::Good), "99 %");
        assert_eq!(severity(&with(81, 0), "offered-rate"), Some(Severity::Warning));
        assert_eq!(severity(&with(400, 0), "offered-rate"), Some(Severity::Warning), "95 %");
        assert!(!invalid_for(&with(400, 0), "offered-rate"));
        assert_eq!(severity(&with(401, 0), "offered-rate"), Some(Severity::Critical));
        assert!(invalid_for(&with(401, 0), "offered-rate"));
        assert!(invalid_for(&with(0, 1_000), "offered-rate"), "8000 of 9000 were sent");
        assert!(said(&with(401, 0), "offered-rate").unwrap().detail().contains("Workers were free"));
        let mut full = with(401, 0);
        work(&mut full).series[5].in_flight = 64;
        assert!(said(&full, "offered-rate").unwrap().detail().contains("All workers were waiting"));
        work(&mut full).kind = WorkKind::Prepare;
        assert_eq!(severity(&full, "offered-rate"), None);
        assert!(!invalid_for(&full, ""));
    }

    #[test]
    fn late_sends_are_the_generators_fault_unless_workers_ran_out() {
        let waited = |lag_ns, own_ns, service_ns| {
            let mut run = healthy_open();
            let tally = &mut work(&mut run).operations[0].tally;
            tally.lag.record_many(lag_ns, 200);
            tally.own_lag_open.record_many(own_ns, 200);
            tally.service_open.reset();
            tally.service_open.record_many(service_ns, 8_000);
            run
        };
        let with = |lag_ns, service_ns| waited(lag_ns, lag_ns, service_ns);
        assert_eq!(severity(&with(999_000, MS), "send-lag"), Some(Severity::Good), "under a millisecond");
        assert_eq!(severity(&with(4 * MS, 50 * MS), "send-lag"), Some(Severity::Good), "8 %");
        assert_eq!(severity(&with(6 * MS, 50 * MS), "send-lag"), Some(Severity::Warning));
        assert!(!invalid_for(&with(6 * MS, 50 * MS), "send-lag"));
        assert!(invalid_for(&with(26 * MS, 50 * MS), "send-lag"));
        let exhausted = waited(150 * MS, 90_000, 200 * MS);
        assert_eq!(said(&exhausted, "send-lag"), None);
        assert_eq!(severity(&exhausted, "workers-exhausted"), Some(Severity::Note));
        // One operation that hangs for a second, in which 400 fall due for 64 workers, is no excuse for what waited while
        // workers were free.
        let mut excused = with(8 * MS, 9 * MS);
        work(&mut excused).operations[0].tally.service_open.record(1_000 * MS);
        assert!(invalid_for(&excused, "send-lag"));
        assert_eq!(said(&excused, "workers-exhausted"), None);
        // A record of before does not tell whose fault it was, and neither does the rule.
        let mut older = with(150 * MS, 200 * MS);
        work(&mut older).operations[0].tally.own_lag_open.reset();
        assert_eq!(severity(&older, "send-lag"), Some(Severity::Warning));
        assert!(!invalid_for(&older, "send-lag"));
        let title = said(&older, "send-lag").unwrap().title();
        assert!(title.contains("operations were sent late: p99 send lag 150 ms is 75"), "{title}");
    }

    #[test]
    fn a_busy_generator_is_the_bottleneck() {
        let with = |busy: f64, seconds: usize| {
            let mut run = healthy();
            work(&mut run).series.iter_mut().take(seconds).for_each(|second| second.busy = busy);
            run
        };
        assert_eq!(severity(&with(0.89, 20), "generator-busy"), Some(Severity::Good));
        assert_eq!(
            severity(&with(0.99, 10), "generator-busy"),
            Some(Severity::Good),
            "half of the time only"
        );
        assert_eq!(severity(&with(0.91, 11), "generator-busy"), Some(Severity::Warning));
        assert!(!invalid_for(&with(0.94, 20), "generator-busy"));
        assert!(invalid_for(&with(0.95, 11), "generator-busy"));
        let mut preparing = with(1.0, 20);
        work(&mut preparing).kind = WorkKind::Prepare;
        assert_eq!(severity(&preparing, "generator-busy"), None);
        assert!(!invalid_for(&preparing, ""));
    }

    #[test]
    fn more_threads_than_processors_are_busy_sooner() {
        let mut run = healthy();
        work(&mut run).threads = 4;
        work(&mut run).series.iter_mut().for_each(|second| second.busy = 0.48);
        assert!(invalid_for(&run, "generator-busy"), "0.48 x 4 threads on 2 processors");
        run.provenance.host.cores = 4;
        assert!(!invalid_for(&run, "generator-busy"));
    }

    #[test]
    fn clients_that_share_connections_wait_for_the_database_and_not_for_the_generator() {
        let with = |own_ns| {
            let mut run = healthy();
            let load = work(&mut run);
            (load.connections, load.workers) = (Some(2), 40);
            let tally = &mut load.operations[0].tally;
            tally.lag.reset();
            tally.lag.record_many(30 * MS, tally.ok);
            tally.service_open = tally.response.clone();
            tally.own_lag_open.record_many(own_ns, tally.ok);
            run
        };
        let waited = said(&with(0), "workers-exhausted").unwrap();
        assert!(
            waited.title().starts_with("operations waited for a free connection: p99 send lag 30"),
            "{}",
            waited.title()
        );
        assert!(waited.evidence().join("\n").contains("in flight at most: 2 connections (40 workers)"));
        assert!(!invalid_for(&with(0), "generator-slow") && !invalid_for(&with(0), "send-lag"));
        assert!(invalid_for(&with(30 * MS), "send-lag"), "connections were free");
    }

    #[test]
    fn a_busy_open_loop_is_judged_by_its_lag() {
        let mut run = healthy_open();
        work(&mut run).series.iter_mut().for_each(|second| second.busy = 1.0);
        assert_eq!(severity(&run, "generator-busy"), Some(Severity::Note));
    }

    #[test]
    fn latencies_cannot_add_up_to_more_than_the_workers_time() {
        let with = |response_ns| {
            let mut run = healthy();
            let tally = &mut work(&mut run).operations[0].tally;
            tally.response.reset();
            tally.response.record_many(response_ns, 8_000);
            run
        };
        // 8000 x 10.9 ms = 87.2 s in 4 x 20 s; the lag adds 0.16 s.
        assert_eq!(severity(&with(10_900_000), "littles-law"), Some(Severity::Good));
        assert!(invalid_for(&with(11_200_000), "littles-law"));
        let mut run = healthy_open();
        work(&mut run).workers = 4;
        assert!(!invalid_for(&run, "littles-law"));
        work(&mut run).workers = 3;
        assert!(invalid_for(&run, "littles-law"), "4 in flight on average, 3 workers");
    }

    #[test]
    fn a_closed_loops_lag_is_the_generators_time() {
        let with = |lag_ns| {
            let mut run = healthy();
            let tally = &mut work(&mut run).operations[0].tally;
            tally.response.reset();
            tally.response.record_many(8 * MS, 8_000);
            tally.lag.reset();
            tally.lag.record_many(lag_ns, 8_000);
            run
        };
        assert!(!invalid_for(&with(990_000), ""));
        assert!(invalid_for(&with(1_010_000), "generator-slow"));
        assert!(!invalid_for(&with(100 * MS), "littles-law"), "a worker may wait before its first operation");
    }

    /// `workers` that did `operations` of this latency in `elapsed_ns`, with lags (nanoseconds, how often).
    fn closed(workers: u32, operations: u64, latency_ns: u64, elapsed_ns: u64, lags: &[(u64, u64)]) -> Run {
        let mut run = healthy();
        let work = work(&mut run);
        work.workers = workers;
        (work.window_end_ns, work.last_done_ns) = (elapsed_ns, elapsed_ns);
        work.series.clear();
        let tally = &mut work.operations[0].tally;
        tally.ok = operations;
        tally.response.reset();
        tally.response.record_many(latency_ns, operations);
        tally.lag.reset();
        lags.iter().for_each(|(lag_ns, count)| tally.lag.record_many(*lag_ns, *count));
        let count = |worker: u32| {
            let ok = operations / u64::from(workers)
                + u64::from(u64::from(worker) < operations % u64::from(workers));
            let busy_ns = if ok == 1 { latency_ns } else { elapsed_ns - 1 };
            WorkerCount { worker, ok, first_sent_ns: 1, last_done_ns: 1 + busy_ns, ..WorkerCount::default() }
        };
        work.workers_counts = (0..workers).map(count).collect();
        run
    }

    #[test]
    fn a_wait_for_a_connection_is_no_time_in_operations() {
        // Ten workers over one connection: each operation takes 100 ms, and all but the first wait for 900 ms before it.
        let waited = |failed: u64| {
            let mut run = closed(10, 200 - failed, 1_000 * MS, 20_000 * MS, &[(900 * MS, 200)]);
            let work = work(&mut run);
            work.connections = Some(1);
            let tally = &mut work.operations[0].tally;
            tally.own_lag_open.record_many(10_000, 200);
            tally.service_open.record_many(100 * MS, 200 - failed);
            tally.failure.record_many(1_000 * MS, failed);
            run
        };
        for failed in [0, 20, 200] {
            let run = waited(failed);
            assert!(
                !invalid_for(&run, "littles-law") && !invalid_for(&run, "generator-slow"),
                "{failed} failed"
            );
            let found = said(&run, "littles-law").unwrap().what;
            let What::Generator(Generator::Agree { time }) = found else { panic!("{found:?}") };
            assert!((time.in_operations_ns / 20e9 - 1.0).abs() < 0.01, "{failed} failed: {time:?}");
            assert!((time.waiting_for_connection_ns / 180e9 - 1.0).abs() < 0.01, "{failed} failed: {time:?}");
        }
        // A server that refuses: each worker has failed once, after 100 ms, for which the last had waited nine times as long.
        let mut run = waited(200);
        for count in &mut work(&mut run).workers_counts {
            (count.failed, count.first_sent_ns, count.last_done_ns) = (20, 1, 1 + 2_000 * MS);
        }
        assert!(!invalid_for(&run, "littles-law"), "{:?}", said(&run, "littles-law"));
    }

    #[test]
    fn think_time_is_no_wait_for_the_generator() {
        // 1 ms in the storage, 100 ms of think time and 0.2 ms late: the load is lighter by two in a thousand.
        let mut run = closed(4, 4 * 197, MS, 20_000 * MS, &[(MS / 5, 4 * 197)]);
        work(&mut run).think = Think::Constant { ns: 100 * MS };
        assert_eq!(severity(&run, "littles-law"), Some(Severity::Good));
        assert!(!invalid_for(&run, ""));
        let evidence = said(&run, "littles-law").unwrap().evidence().join("\n");
        assert!(evidence.contains("time pausing (think time 100 ms): 79.0"), "{evidence}");
        // As much waiting as thinking is another load than the one asked for.
        let mut slow = closed(4, 4 * 98, MS, 20_000 * MS, &[(100 * MS, 4 * 98)]);
        work(&mut slow).think = Think::Constant { ns: 100 * MS };
        assert!(invalid_for(&slow, "generator-slow"));
    }

    #[test]
    fn a_start_is_no_wait_and_a_moment_is_too_short_to_tell() {
        // Eight workers that began one after the other and did ten operations: all their time went into operations.
        let start = closed(8, 10, MS / 5, MS / 2, &[(MS / 10, 8), (1_000, 2)]);
        assert!(!invalid_for(&start, ""));
        assert_eq!(severity(&start, "littles-law"), Some(Severity::Good));
        // A thousand operations in 25 ms, of which the scheduler took 5 ms.
        let moment = closed(8, 1_000, MS / 7, 25 * MS, &[(5 * MS, 8), (5_000, 992)]);
        assert!(!invalid_for(&moment, ""));
        let finding = said(&moment, "too-short").unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert_eq!(finding.title(), "the work was too short to tell whether the load generator kept up");
        // The same over a second is enough to tell.
        let longer = closed(8, 80_000, MS / 7, 2_000 * MS, &[(MS / 20, 80_000)]);
        assert!(invalid_for(&longer, "generator-slow"));
    }

    #[test]
    fn what_is_in_flight_and_what_waits_add_up() {
        for (lag_ns, elapsed_ms) in [(MS, 11_000), (MS, 13_000), (100 * MS, 13_000)] {
            let run = closed(8, 80_000, MS, elapsed_ms * MS, &[(lag_ns, 80_000)]);
            let Some(Finding {
                what: What::Generator(Generator::Slow { time } | Generator::Agree { time }),
                ..
            }) = said(&run, "littles-law").or(said(&run, "generator-slow"))
            else {
                panic!("the rule is silent");
            };
            assert!(
                time.in_operations_ns + time.waiting_for_generator_ns <= time.available_ns * 1.001,
                "{time:?}"
            );
        }
    }

    #[test]
    fn workers_that_do_nothing_are_not_in_flight() {
        let mut run = healthy();
        work(&mut run).workers = 8;
        let evidence = said(&run, "littles-law").unwrap().evidence().join("\n");
        assert!(evidence.contains("= 4.00 of 8 workers"), "{evidence}");
        // Half of them are done after half of the time.
        let mut halves = closed(4, 8_000, 0, 20_000 * MS, &[]);
        let (counts, tally) = (2, 10 * MS);
        work(&mut halves).workers_counts[counts..].iter_mut().for_each(|one| one.last_done_ns = 10_000 * MS);
        let response = &mut work(&mut halves).operations[0].tally.response;
        response.reset();
        response.record_many(tally, 6_000);
        let evidence = said(&halves, "littles-law").unwrap().evidence().join("\n");
        assert!(evidence.contains("= 3.00 of 4 workers"), "{evidence}");
    }

    #[test]
    fn where_no_storage_is_the_generators_limit_is_what_is_measured() {
        let mut run = closed(4, 1_000_000, 100, 20_000 * MS, &[(60_000, 1_000_000)]);
        work(&mut run).series = healthy().stages[0].works[0].series.clone();
        work(&mut run).series.iter_mut().for_each(|second| second.busy = 1.0);
        assert!(invalid_for(&run, "generator-slow") && invalid_for(&run, "generator-busy"));
        work(&mut run).simulated = true;
        assert!(!invalid_for(&run, ""));
        for rule in ["generator-slow", "generator-busy", "simulated"] {
            assert_eq!(severity(&run, rule), Some(Severity::Note), "{rule}");
        }
    }

    #[test]
    fn operations_of_one_worker_overlap() {
        let with = |depth, response_ns| {
            let mut run = healthy();
            work(&mut run).depth = depth;
            let tally = &mut work(&mut run).operations[0].tally;
            (tally.ok, tally.lag) = (8_000 * u64::from(depth), Histogram::new());
            tally.response.reset();
            tally.response.record_many(response_ns, 8_000 * u64::from(depth));
            run
        };
        assert_eq!(severity(&with(32, 10 * MS), "littles-law"), Some(Severity::Good));
        let evidence = said(&with(32, 10 * MS), "littles-law").unwrap().evidence().join("\n");
        assert!(evidence.contains("= 127.98 of 128 (4 workers x depth 32)"), "{evidence}");
        assert!(invalid_for(&with(32, 12 * MS), "littles-law"));
        // Objects may be paced by pauses; block storage with a proof may not.
        let mut slack = with(32, 8 * MS);
        assert_eq!(severity(&slack, "queue-not-full"), None);
        slack.stages[0].proof = Some(Default::default());
        let finding = said(&slack, "queue-not-full").unwrap();
        assert_eq!(finding.title(), "only 102.4 of 128 operations were in flight on average");
        assert!(!invalid_for(&slack, ""));
        // Where the document asks for pauses, a queue that is not full is what it asks for.
        work(&mut slack).think = Think::Constant { ns: MS };
        assert_eq!(severity(&slack, "queue-not-full"), None);
    }

    #[test]
    fn failures_count_towards_the_workers_time() {
        let mut run = healthy();
        work(&mut run).operations[0].tally.failure.record_many(30 * MS, 300);
        assert!(invalid_for(&run, "littles-law"), "80 s and 9 s in 80 s");
    }

    #[test]
    fn without_counts_per_worker_the_window_bounds_their_time() {
        let mut run = healthy();
        work(&mut run).workers_counts.clear();
        assert_eq!(severity(&run, "littles-law"), Some(Severity::Good));
        work(&mut run).workers = 3;
        assert!(invalid_for(&run, "littles-law"));
    }
}
