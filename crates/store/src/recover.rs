//! Puts a run whose process died together from its stored seconds.

use tidemark_measure::record::{Operation, Run, Second, Stage, State, Work};
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
/// What only the end of a work tells (workers, exact window, verbatim failures) stays unknown. The window is assumed
/// to reach from the first second with a measured operation to the end of the last one.
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
    let start = u64::from(interval.index) * SECOND_NS;
    if interval.actions.iter().any(|tally| tally.total() > 0) {
        if work.window_end_ns == 0 {
            work.window_start_ns = start;
        }
        work.window_end_ns = start + SECOND_NS;
    }
    work.last_done_ns = work.last_done_ns.max(interval.last_ok_ns.unwrap_or(0));
    stage.ended_ns = stage.ended_ns.max(stage.started_ns + start + SECOND_NS);
    run.elapsed_ns = run.elapsed_ns.max(stage.ended_ns);
    work.series.push(Second::from(interval));
}
