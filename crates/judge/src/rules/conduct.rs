//! How the run went: states, work given up, workers that had nothing to do, windows that were short.

use super::Findings;
use super::generator::spans;
use crate::scene::{SECOND_NS, Scene, stage_label};
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
        let finding =
            Finding::about_run(Severity::Critical, "stage-failed", format!("the stage failed: {reason}"));
        out.say(Finding { stage: Some(stage_label(stage)), ..finding });
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
pub(super) fn given_up(scene: &Scene<'_>, out: &mut Findings) {
    let (work, undone) = (scene.work, format!("operations never begun: {}", units::count(scene.work.undone)));
    if !work.given_up.is_empty() {
        let finding = scene
            .finding(Severity::Critical, "given-up", format!("the work was given up: {}", work.given_up))
            .evidence(undone)
            .evidence(format!("it lasted {}", units::duration_ns(work.last_done_ns.max(work.window_end_ns))));
        out.invalidate(scene, finding);
    } else if work.undone > 0 {
        let title = format!("{} operations of the plan were never begun", units::count(work.undone));
        out.say(scene.finding(Severity::Warning, "undone", title));
    }
}

/// Some workers were done long before others.
pub(super) fn unequal_workers(scene: &Scene<'_>, out: &mut Findings) {
    let spans = spans(&scene.work.workers_counts);
    let ends = || spans.values().map(|(_, last)| *last);
    let (Some(first), Some(last)) = (ends().min(), ends().max()) else { return };
    let share = (last - first) as f64 / scene.window_ns().max(1) as f64;
    // A slow operation at the end of the window is the rule `late-tail`'s, and no worker's idleness.
    let slowest = scene.response.max().max(scene.failure.max());
    if scene.window_ns() == 0 || share <= TAIL_PHASE || last - first <= slowest {
        return;
    }
    let title = format!("for {} of the window not all workers were at work", units::percent(share.min(1.0)));
    let finding = scene
        .finding(Severity::Note, "unequal-workers", title)
        .detail("The throughput is that of the window as a whole; with all workers at work it was higher.")
        .evidence(format!(
            "first worker done after {}, last one after {}; the window: {}",
            units::duration_ns(first),
            units::duration_ns(last),
            units::duration_ns(scene.window_ns())
        ));
    out.say(finding);
}

/// Some workers did nothing at all.
pub(super) fn idle_workers(scene: &Scene<'_>, out: &mut Findings) {
    let busy = spans(&scene.work.workers_counts).len() as u64;
    let workers = u64::from(scene.work.workers);
    // In an open loop workers are only the most that may be in flight.
    if busy == 0 || busy >= workers || scene.work.offered_rate.is_some() {
        return;
    }
    let title = format!("{} of {} workers did nothing", units::count(workers - busy), units::count(workers));
    let detail = "There were more workers than there was work to share out, or they could not start.";
    let severity = if scene.measures() { Severity::Warning } else { Severity::Note };
    out.say(scene.finding(severity, "idle-workers", title).detail(detail));
}

/// The window was short.
pub(super) fn short_window(scene: &Scene<'_>, out: &mut Findings) {
    if !scene.measures() || scene.total() == 0 || scene.window_ns() >= WINDOW_LEAST_NS {
        return;
    }
    let title = format!("the window was short: {}", units::duration_ns(scene.window_ns()));
    let detail = format!(
        "Measure for at least {}; better for as long as it takes the storage's caches and background work to settle.",
        units::duration_ns(WINDOW_LEAST_NS)
    );
    out.say(scene.finding(Severity::Note, "short-window", title).detail(detail));
}
