//! How the run went: states, work given up, workers that had nothing to do, windows that were short.

use super::Findings;
use super::generator::spans;
use crate::context::{SECOND_NS, WorkContext, stage_label};
use crate::words::conduct::Conduct;
use crate::{Finding, Severity};
use tidemark_measure::record::{Run, State};

/// A measured window under this is short: start-up effects, caches and background work of the storage then make
/// up a visible part of it. It holds ten of the one-second intervals, the fewest that show a trend.
const WINDOW_LEAST_NS: u64 = 10 * SECOND_NS;

/// From this share of the window on, the time between the first worker's end and the last one's is worth a note:
/// the throughput over the window is then lower by up to as much than that of all workers together.
const TAIL_PHASE: f64 = 0.1;

/// How the run and its stages ended.
pub(super) fn states(run: &Run, out: &mut Findings) {
    match run.state {
        State::Running => out.add(Finding::about_run(Severity::Note, Conduct::Running {})),
        State::Interrupted => out.add(Finding::about_run(Severity::Warning, Conduct::Interrupted {})),
        State::Waiting | State::Completed | State::Failed => {}
    }
    for stage in run.stages.iter().filter(|stage| stage.state == State::Failed) {
        let what = Conduct::StageFailed { reason: stage.reason.clone() };
        out.add(Finding::about_stage(stage, Severity::Critical, what));
    }
    let waiting: Vec<_> =
        run.stages.iter().filter(|stage| stage.state == State::Waiting).map(stage_label).collect();
    if !waiting.is_empty() && matches!(run.state, State::Failed | State::Interrupted | State::Completed) {
        let what = Conduct::NotStarted { stages: waiting, of: run.stages.len() };
        out.add(Finding::about_run(Severity::Warning, what));
    }
}

/// The work was ended before its time, or left something undone.
pub(super) fn given_up(context: &WorkContext<'_>, out: &mut Findings) {
    let work = context.work;
    if !work.given_up.is_empty() {
        let what = Conduct::GivenUp {
            reason: work.given_up.clone(),
            undone: work.undone,
            unknown: work.unknown,
            lasted_ns: work.last_done_ns.max(work.window_end_ns),
        };
        out.invalidate(context, context.finding(Severity::Critical, what));
    } else if work.undone > 0 {
        out.add(context.finding(Severity::Warning, Conduct::Undone { operations: work.undone }));
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
    let what =
        Conduct::UnequalWorkers { share, first_ns: first, last_ns: last, window_ns: context.window_ns() };
    out.add(context.finding(Severity::Note, what));
}

/// Some workers did nothing at all.
pub(super) fn idle_workers(context: &WorkContext<'_>, out: &mut Findings) {
    let busy = spans(&context.work.workers_counts).len() as u64;
    let workers = u64::from(context.work.workers);
    // In an open loop workers are only the most that may be in flight.
    if busy == 0 || busy >= workers || context.work.offered_rate.is_some() || !context.is_whole() {
        return;
    }
    let severity = if context.measures() { Severity::Warning } else { Severity::Note };
    out.add(context.finding(severity, Conduct::IdleWorkers { idle: workers - busy, workers }));
}

/// The window was short.
pub(super) fn short_window(context: &WorkContext<'_>, out: &mut Findings) {
    if !context.measures() || context.total() == 0 || context.window_ns() >= WINDOW_LEAST_NS {
        return;
    }
    let what = Conduct::ShortWindow { window_ns: context.window_ns(), least_ns: WINDOW_LEAST_NS };
    out.add(context.finding(Severity::Note, what));
}

/// Nothing was measured but the generator itself.
pub(super) fn simulated(context: &WorkContext<'_>, out: &mut Findings) {
    if context.measures() && context.work.simulated {
        out.add(context.finding(Severity::Note, Conduct::Simulated {}));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, healthy, invalid_with, said, work};
    use super::*;
    use tidemark_measure::kind::WorkKind;
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
            (finding.title(), finding.stage.as_deref()),
            ("the stage failed: wrong key".to_owned(), Some("s1-main"))
        );
        assert_eq!(said(&run, "not-started").unwrap().title(), "1 of 2 stages did not start: s2-cleanup");
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
        work(&mut run).unknown = 5_752;
        work(&mut run).undone = 0;
        work(&mut run).given_up = "driver a was lost".into();
        let evidence = said(&run, "given-up").unwrap().evidence();
        assert!(
            evidence[0].starts_with("operations whose outcome is unknown")
                && evidence[0].ends_with("5\u{202f}752"),
            "{evidence:?}"
        );
        assert!(!evidence.iter().any(|line| line.starts_with("operations never started")), "{evidence:?}");
        work(&mut run).undone = 7;
        work(&mut run).given_up = "no operation succeeded for 30 s".into();
        assert!(said(&run, "undone").is_none());
        assert!(invalid_with(&run, "abandoned: no operation succeeded for 30 s"));
    }

    #[test]
    fn workers_that_were_done_early() {
        let with = |early_ns| {
            let mut run = healthy();
            work(&mut run).workers_counts[0].last_done_ns -= early_ns;
            said(&run, "unequal-workers").map(|finding| finding.title())
        };
        assert_eq!(with(2_000 * MS), None, "a tenth");
        assert_eq!(with(4_000 * MS).unwrap(), "some workers were idle for 20.00 % of the window");
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
        assert_eq!(said(&run, "idle-workers").unwrap().title(), "1 of 4 workers did nothing");
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
        work(&mut run).kind = WorkKind::Init;
        assert_eq!(said(&run, "short-window"), None);
    }
}
