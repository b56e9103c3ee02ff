//! Puts a run whose process died together from what was known of it at the start and from its stored seconds.

use tidemark_measure::record::{LongestGap, Operation, Run, Second, Share, ShareSecond, Stage, State, Work};
use tidemark_measure::tally::Interval;

const SECOND_NS: u64 = 1_000_000_000;

const DIED: &str = "its process died; the result comes from the seconds that it had stored";

/// Marks a run as ended with its process, before its seconds are added.
pub(crate) fn interrupt(run: &mut Run) {
    run.state = State::Interrupted;
    for stage in run.stages.iter_mut().filter(|stage| stage.state == State::Running) {
        stage.state = State::Interrupted;
        stage.reason = DIED.into();
    }
}

/// Adds a stored second to a run that was not finished. Seconds of a work come in order.
///
/// What only the end of a work tells (counts of each worker, verbatim failures, what the nodes did) stays unknown. So does
/// what came after the last stored second: the window ends there, if it was to end later.
pub(crate) fn add(run: &mut Run, stage: usize, work: usize, interval: &Interval) {
    while run.stages.len() <= stage {
        let name = format!("stage {}", run.stages.len() + 1);
        run.stages.push(Stage { id: name.clone(), name, ..Stage::default() });
    }
    let stage = &mut run.stages[stage];
    if stage.state != State::Interrupted {
        stage.state = State::Interrupted;
        stage.reason = DIED.into();
    }
    while stage.works.len() <= work {
        let name = format!("work {}", stage.works.len() + 1);
        stage.works.push(Work { name, ..Work::default() });
    }
    let work = &mut stage.works[work];
    while work.operations.len() < interval.actions.len() {
        let label = format!("operation {}", work.operations.len() + 1);
        work.operations.push(Operation { label, ..Operation::default() });
    }
    for (operation, tally) in work.operations.iter_mut().zip(&interval.actions) {
        operation.tally.add(tally);
    }
    let (start, end) = second(interval.index);
    widen(work, interval, start, end);
    hear(work, interval, end);
    work.last_done_ns = work.last_done_ns.max(interval.last_ok_ns.unwrap_or(0));
    stage.ended_ns = stage.ended_ns.max(stage.started_ns + end);
    run.elapsed_ns = run.elapsed_ns.max(stage.ended_ns);
    work.series.push(Second::from(interval));
}

/// When a second of a work begins and ends.
fn second(index: u32) -> (u64, u64) {
    let start = u64::from(index) * SECOND_NS;
    (start, start + SECOND_NS)
}

/// The window so far: it begins where it was planned to. Where that depended on the load becoming steady, it is assumed to
/// reach from the first second with a measured operation to the end of the last one.
fn widen(work: &mut Work, interval: &Interval, start: u64, end: u64) {
    let is_measured = interval.actions.iter().any(|tally| tally.total() > 0);
    match work.planned.window_start_ns {
        Some(planned) => {
            work.window_start_ns = planned;
            work.window_end_ns = end.min(work.planned.window_end_ns.unwrap_or(u64::MAX)).max(planned);
        }
        None if is_measured => {
            if work.window_end_ns == 0 {
                work.window_start_ns = start;
            }
            work.window_end_ns = end;
        }
        None => {}
    }
    if let Some(rate) = &work.planned.rate
        && work.window_end_ns > work.window_start_ns
    {
        work.offered_rate = Some(rate.mean_between(work.window_start_ns, work.window_end_ns));
    }
}

/// The longest time without a success so far.
fn hear(work: &mut Work, interval: &Interval, end: u64) {
    let gap = LongestGap { from_ns: work.last_done_ns, to_ns: interval.first_ok_ns.unwrap_or(end) };
    if work.longest_gap.is_none_or(|longest| gap.length_ns() > longest.length_ns()) {
        work.longest_gap = Some(gap);
    }
}

/// Adds what one driver did in a stored second. The shares of a stage are known since it was opened; of a driver that is not
/// among them nothing is.
pub(crate) fn add_share(run: &mut Run, stage: usize, work: u32, driver: u32, second: ShareSecond) {
    let shares = run.stages.get_mut(stage).map(|stage| &mut stage.shares);
    let own = |share: &&mut Share| share.work == work && share.driver == driver;
    let Some(share) = shares.and_then(|shares| shares.iter_mut().find(own)) else { return };
    share.add(second);
}
