//! Times without success, operations that hung, and operations that ended late.

use super::Findings;
use super::failures::latencies;
use crate::Severity;
use crate::scene::{SECOND_NS, Scene, failed_in, ok_in, sum};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Second;
use tidemark_measure::units;

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
pub(super) fn outage(scene: &Scene<'_>, out: &mut Findings) {
    let Some(silence) = scene.work.silence.filter(|_| scene.ok > 0) else { return };
    let (length, limit) = (silence.length_ns(), longest_usual_ns(scene, silence.length_ns()));
    if length < limit {
        return;
    }
    let window = scene.window_ns().max(1);
    let start = silence.from_ns.max(scene.work.window_start_ns);
    let inside = silence.to_ns.min(scene.work.window_end_ns).saturating_sub(start);
    let share = inside as f64 / window as f64;
    let grave = share >= OUTAGE_GRAVE_SHARE || length >= OUTAGE_GRAVE_NS;
    let severity = if grave { Severity::Critical } else { Severity::Warning };
    let part = if inside == 0 {
        "outside of the window".into()
    } else {
        format!("{} of the window", units::percent(share))
    };
    let title = format!("no operation succeeded for {}: {part}", units::duration_ns(length));
    let seconds: Vec<_> = scene.seconds_touching(silence.from_ns, silence.to_ns).collect();
    let finding = scene
        .finding(severity, "outage", title)
        .detail("Means and percentiles over the whole window blend two states: the storage at work and the storage gone. Look at the series.")
        .evidence(format!(
            "from {} to {} after the work's start; the window lasted from {} to {}",
            units::duration_ns(silence.from_ns),
            units::duration_ns(silence.to_ns),
            units::duration_ns(scene.work.window_start_ns),
            units::duration_ns(scene.work.window_end_ns)
        ))
        .evidence(format!(
            "called an outage from {} on: {OUTAGE_TIMES_TYPICAL} times the median response ({}) and the usual gap between two successes, at least {}",
            units::duration_ns(limit),
            units::duration_ns(scene.median_ns()),
            units::duration_ns(OUTAGE_LEAST_NS)
        ))
        .evidences(throughput_without(scene, inside))
        .evidence(failed_meanwhile(&seconds, scene))
        .evidences(stuck_meanwhile(&seconds))
        .evidences(silent_seconds(scene));
    out.say(finding);
}

/// The longest time without a success that is nothing unusual, given that one of `length_ns` occurred.
fn longest_usual_ns(scene: &Scene<'_>, length_ns: u64) -> u64 {
    let gap = scene.window_ns().saturating_sub(length_ns) / scene.ok.max(1);
    OUTAGE_LEAST_NS.max(scene.median_ns().max(gap).saturating_mul(OUTAGE_TIMES_TYPICAL))
}

fn throughput_without(scene: &Scene<'_>, silent_ns: u64) -> Option<String> {
    let window = scene.window_ns();
    let rate = |ns: u64| units::rate(scene.ok as f64 * 1e9 / ns as f64);
    let rest = window.checked_sub(silent_ns).filter(|rest| *rest > 0 && silent_ns > 0)?;
    Some(format!(
        "{} successes / {} = {} over the window; / {} without the outage = {}",
        units::count(scene.ok),
        units::duration_ns(window),
        rate(window),
        units::duration_ns(rest),
        rate(rest)
    ))
}

fn failed_meanwhile(seconds: &[&Second], scene: &Scene<'_>) -> String {
    let failed = sum(seconds.iter().map(|second| failed_in(second)));
    if failed == 0 {
        return "no operation failed meanwhile: they hung".into();
    }
    let timed =
        latencies(&scene.failure).map(|text| format!("; over the whole work {text}")).unwrap_or_default();
    format!("{} operations failed in those seconds{timed}", units::count(failed))
}

fn stuck_meanwhile(seconds: &[&Second]) -> Option<String> {
    let worst = seconds.iter().max_by_key(|second| second.oldest_in_flight_ns)?;
    (worst.in_flight > 0).then(|| {
        format!(
            "operations stuck: {} in flight at the end of second {}, the oldest for {}",
            units::count(u64::from(worst.in_flight)),
            worst.index,
            units::duration_ns(worst.oldest_in_flight_ns)
        )
    })
}

fn silent_seconds(scene: &Scene<'_>) -> Option<String> {
    let whole = scene.whole_seconds().count();
    let silent = scene.whole_seconds().filter(|second| ok_in(second) == 0).count();
    (whole > 0).then(|| format!("{silent} of the window's {whole} whole seconds had no success"))
}

/// One operation of a mix succeeded no more while others did. Seen second by second.
pub(super) fn operation_outage(scene: &Scene<'_>, out: &mut Findings) {
    let seconds: Vec<_> = scene.whole_seconds().collect();
    for (index, operation) in scene.work.operations.iter().enumerate() {
        let ok = |second: &Second| second.operations.get(index).map_or(0, |operation| operation.ok);
        let gone = |second: &&&Second| ok(second) == 0 && ok_in(second) > 0;
        let Some((from, length)) = longest_row(&seconds, |second| gone(&second)) else { continue };
        let total = sum(seconds.iter().map(|second| ok(second)));
        // What would have succeeded meanwhile at the operation's usual rate.
        let missing = total as f64 / (seconds.len() - length).max(1) as f64 * length as f64;
        if length < OPERATION_SECONDS || missing < OUTAGE_TIMES_TYPICAL as f64 {
            continue;
        }
        let title =
            format!("operation \"{}\" did not succeed for {length} s while others did", operation.label);
        let failed: u64 = seconds[from..from + length]
            .iter()
            .filter_map(|second| second.operations.get(index))
            .map(|operation| operation.failed)
            .sum();
        let finding = scene
            .finding(Severity::Warning, "operation-outage", title)
            .evidence(format!(
                "seconds {} to {} of the work",
                seconds[from].index,
                seconds[from + length - 1].index
            ))
            .evidence(format!("at its usual rate {missing:.0} would have succeeded meanwhile"))
            .evidence(format!("{} of them failed in those seconds", units::count(failed)));
        out.say(finding);
    }
}

/// Where the longest row of seconds begins that all fulfil `condition`, and its length.
fn longest_row<'a>(
    seconds: &'a [&'a Second],
    condition: impl Fn(&&'a Second) -> bool,
) -> Option<(usize, usize)> {
    let (mut best, mut from) = (None::<(usize, usize)>, 0);
    for (index, second) in seconds.iter().enumerate() {
        if !condition(second) {
            from = index + 1;
        } else if best.is_none_or(|(_, length)| index + 1 - from > length) {
            best = Some((from, index + 1 - from));
        }
    }
    best
}

/// Operations in flight that never ended.
pub(super) fn stuck(scene: &Scene<'_>, out: &mut Findings) {
    let abandoned = scene.faults.of(Fault::Abandoned);
    if abandoned == 0 {
        return;
    }
    let many = abandoned.saturating_mul(2) >= u64::from(scene.work.workers);
    let (severity, detail) = match (scene.interrupted(), many) {
        (true, _) => (Severity::Note, "The run was stopped by hand: this says nothing against the storage."),
        (false, true) => (
            Severity::Critical,
            "Half of the workers or more were waiting for a reply that did not come: the storage hung when the work ended.",
        ),
        (false, false) => {
            (Severity::Warning, "They had been given the whole time that the document allows after the end.")
        }
    };
    let title = format!("{} operations never ended and were abandoned", units::count(abandoned));
    let last = scene.work.series.last().filter(|second| second.in_flight > 0).map(|second| {
        format!(
            "at the end of second {}: {} in flight, the oldest for {}",
            second.index,
            units::count(u64::from(second.in_flight)),
            units::duration_ns(second.oldest_in_flight_ns)
        )
    });
    let workers = format!("workers: {}", units::count(u64::from(scene.work.workers)));
    out.say(scene.finding(severity, "abandoned", title).detail(detail).evidence(workers).evidences(last));
}

/// Operations that were due in the window and ended long after it.
pub(super) fn late_tail(scene: &Scene<'_>, out: &mut Findings) {
    let late =
        scene.work.operations.iter().fold(0u64, |sum, operation| sum.saturating_add(operation.tally.late));
    let tail = scene.last_measured_ns().saturating_sub(scene.work.window_end_ns);
    let limit = OUTAGE_LEAST_NS.max(scene.median_ns().saturating_mul(OUTAGE_TIMES_TYPICAL));
    if late == 0 || tail < limit {
        return;
    }
    let title = format!(
        "{} operations ended after the window, the last one {} later",
        units::count(late),
        units::duration_ns(tail)
    );
    let finding = scene
        .finding(Severity::Warning, "late-tail", title)
        .detail("Their latencies are in the percentiles; they do not count towards the throughput.")
        .evidence(format!(
            "limit: {} (20 times the median response of {}, at least {})",
            units::duration_ns(limit),
            units::duration_ns(scene.median_ns()),
            units::duration_ns(OUTAGE_LEAST_NS)
        ));
    out.say(finding);
}
