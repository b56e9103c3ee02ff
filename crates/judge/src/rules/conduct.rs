//! How the run went: states, work given up, workers that had nothing to do, windows that were short.

use super::Findings;
use super::generator::spans;
use crate::context::{SECOND_NS, WorkContext, stage_label};
use crate::{Finding, Severity};
use tidemark_measure::record::{Run, State};
use tidemark_measure::units;

/// A measured window under this is short: start-up effects, caches and background work of the storage then make
/// up a visible part of it. It holds ten of the one-second intervals, the fewest that show a trend.
const WINDOW_LEAST_NS: u64 = 10 * SECOND_NS;

/// From this share of the window on, the time between the first worker's end and the last one's is worth a note:
/// the throughput over the window is then lower by up to as much than that of all workers together.
const TAIL_PHASE: f64 = 0.1;

/// How the run and its stages ended.
pub(super) fn states(run: &Run, out: &mut Findings) {
    match run.state {
        State::Running => out.say(Finding::about_run(Severity::Note, "running", "the run has not ended yet")),
        State::Interrupted => {
            let finding = Finding::about_run(Severity::Warning, "interrupted", "the run was interrupted");
            out.say(
                finding.detail("What was measured until then is kept; windows are shorter than planned."),
            );
        }
        State::Waiting | State::Completed | State::Failed => {}
    }
    for stage in run.stages.iter().filter(|stage| stage.state == State::Failed) {
        let reason = if stage.reason.is_empty() { "no reason was recorded" } else { &stage.reason };
        let finding = Finding::about_stage(
            stage,
            Severity::Critical,
            "stage-failed",
            format!("the stage failed: {}", reason.trim_end_matches('.')),
        );
        out.say(finding);
    }
    let waiting: Vec<_> =
        run.stages.iter().filter(|stage| stage.state == State::Waiting).map(stage_label).collect();
    if !waiting.is_empty() && matches!(run.state, State::Failed | State::Interrupted | State::Completed) {
        let title = format!(
            "{} of {} stages were not started: {}",
            waiting.len(),
            run.stages.len(),
            waiting.join(", ")
        );
        out.say(Finding::about_run(Severity::Warning, "not-started", title));
    }
}

/// The work was ended before its time, or left something undone.
pub(super) fn given_up(context: &WorkContext<'_>, out: &mut Findings) {
    let (work, undone) =
        (context.work, format!("operations never begun: {}", units::count(context.work.undone)));
    if !work.given_up.is_empty() {
        let finding = context
            .finding(
                Severity::Critical,
                "given-up",
                format!("the work was given up: {}", work.given_up.trim_end_matches('.')),
            )
            .evidence(undone)
            .evidence(format!("it lasted {}", units::duration_ns(work.last_done_ns.max(work.window_end_ns))));
        out.invalidate(context, finding);
    } else if work.undone > 0 {
        let title = format!("{} operations of the plan were never begun", units::count(work.undone));
        out.say(context.finding(Severity::Warning, "undone", title));
    }
}

/// Some workers were done long before others.
pub(super) fn unequal_workers(context: &WorkContext<'_>, out: &mut Findings) {
    let spans = spans(&context.work.workers_counts);
    let ends = || spans.values().map(|(_, last)| *last);
    let (Some(first), Some(last)) = (ends().min(), ends().max()) else { return };
    let share = (last - first) as f64 / context.window_ns().max(1) as f64;
    // A slow operation at the end of the window is the rule `late-tail`'s, and no worker's idleness.
    let slowest = context.response.max().max(context.failure.max());
    if context.window_ns() == 0 || share <= TAIL_PHASE || last - first <= slowest || !context.is_whole() {
        return;
    }
    let title = format!("for {} of the window not all workers were at work", units::percent(share.min(1.0)));
    let finding = context
        .finding(Severity::Note, "unequal-workers", title)
        .detail("The throughput is that of the window as a whole; with all workers at work it was higher.")
        .evidence(format!(
            "first worker done after {}, last one after {}; the window: {}",
            units::duration_ns(first),
            units::duration_ns(last),
            units::duration_ns(context.window_ns())
        ));
    out.say(finding);
}

/// Some workers did nothing at all.
pub(super) fn idle_workers(context: &WorkContext<'_>, out: &mut Findings) {
    let busy = spans(&context.work.workers_counts).len() as u64;
    let workers = u64::from(context.work.workers);
    // In an open loop workers are only the most that may be in flight.
    if busy == 0 || busy >= workers || context.work.offered_rate.is_some() || !context.is_whole() {
        return;
    }
    let title = format!("{} of {} workers did nothing", units::count(workers - busy), units::count(workers));
    let detail = "There were more workers than there was work to share out, or they could not start.";
    let severity = if context.measures() { Severity::Warning } else { Severity::Note };
    out.say(context.finding(severity, "idle-workers", title).detail(detail));
}

/// The window was short.
pub(super) fn short_window(context: &WorkContext<'_>, out: &mut Findings) {
    if !context.measures() || context.total() == 0 || context.window_ns() >= WINDOW_LEAST_NS {
        return;
    }
    let title = format!("the window was short: {}", units::duration_ns(context.window_ns()));
    let detail = format!(
        "Measure for at least {}; better for as long as it takes the storage's caches and background work to settle.",
        units::duration_ns(WINDOW_LEAST_NS)
    );
    out.say(context.finding(Severity::Note, "short-window", title).detail(detail));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, invalid_for, said, work};
    use super::*;
    use tidemark_measure::record::Stage;

    #[test]
    fn states_are_told() {
        let mut run = healthy();
        for rule in ["stage-failed", "interrupted", "running", "not-started"] {
            assert_eq!(said(&run, rule), None);
        }
        run.stages.push(Stage { id: "s2-cleanup".into(), ..Stage::default() });
        run.stages[0].state = State::Failed;
        run.stages[0].reason = "wrong key".into();
        run.state = State::Failed;
        let finding = said(&run, "stage-failed").unwrap();
        assert_eq!(
            (finding.title.as_str(), finding.stage.as_deref()),
            ("the stage failed: wrong key", Some("s1-main"))
        );
        assert_eq!(said(&run, "not-started").unwrap().title, "1 of 2 stages were not started: s2-cleanup");
        run.state = State::Running;
        assert!(said(&run, "running").is_some() && said(&run, "not-started").is_none());
        run.state = State::Interrupted;
        assert_eq!(said(&run, "interrupted").unwrap().severity, Severity::Warning);
    }

    #[test]
    fn work_given_up_or_left_undone() {
        let mut run = healthy();
        assert!(said(&run, "given-up").is_none() && said(&run, "undone").is_none());
        work(&mut run).undone = 7;
        assert_eq!(said(&run, "undone").unwrap().severity, Severity::Warning);
        work(&mut run).given_up = "no operation succeeded for 30 s".into();
        assert!(said(&run, "undone").is_none());
        assert!(invalid_for(&run, "given up: no operation succeeded for 30 s"));
    }

    #[test]
    fn workers_that_were_done_early() {
        let with = |early_ns| {
            let mut run = healthy();
            work(&mut run).workers_counts[0].last_done_ns -= early_ns;
            said(&run, "unequal-workers").map(|finding| finding.title)
        };
        assert_eq!(with(2_000 * MS), None, "a tenth");
        assert_eq!(with(4_000 * MS).unwrap(), "for 20.00 % of the window not all workers were at work");
        let mut slow = healthy();
        work(&mut slow).workers_counts[0].last_done_ns -= 4_000 * MS;
        work(&mut slow).operations[0].tally.response.record(5_000 * MS);
        assert_eq!(said(&slow, "unequal-workers"), None, "one slow operation explains it");
    }

    #[test]
    fn workers_that_did_nothing() {
        let mut run = healthy();
        assert_eq!(said(&run, "idle-workers"), None);
        let idle = &mut work(&mut run).workers_counts[2];
        (idle.ok, idle.last_done_ns) = (0, 0);
        assert_eq!(said(&run, "idle-workers").unwrap().title, "1 of 4 workers did nothing");
        work(&mut run).offered_rate = Some(400.0);
        assert_eq!(said(&run, "idle-workers"), None);
    }

    #[test]
    fn short_windows() {
        let mut run = healthy();
        work(&mut run).window_end_ns = WINDOW_LEAST_NS;
        assert_eq!(said(&run, "short-window"), None);
        work(&mut run).window_end_ns = WINDOW_LEAST_NS - 1;
        assert!(said(&run, "short-window").is_some());
        work(&mut run).kind = "init".into();
        assert_eq!(said(&run, "short-window"), None);
    }
}
