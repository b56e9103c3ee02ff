//! The sentences at the top of reports and at the end of a run.

use crate::rules::samples_needed;
use crate::scene::{Scene, stage_label};
use crate::{Finding, Judgement, Severity, Validity};
use tidemark_measure::record::{Operation, Run, State};
use tidemark_measure::units;

/// Grave findings named in the verdict, at most; the others are counted.
const NAMED_MOST: usize = 3;

/// Sums a run up in plain words, each sentence with its full stop: what every work achieved, then whether the run
/// did its job, and whether its numbers hold.
pub fn verdict_sentences(run: &Run, judgement: &Judgement) -> Vec<String> {
    let mut sentences = achievements(run);
    sentences.extend(conduct(run, judgement));
    sentences.push(validity(judgement));
    sentences
}

/// What a run achieved: one sentence for each work that measured something (for each work, when none did).
pub fn achievements(run: &Run) -> Vec<String> {
    let measuring = Scene::all(run).any(|scene| scene.measures());
    let scenes = Scene::all(run).filter(|scene| scene.measures() || !measuring);
    scenes.map(|scene| sentence(&scene)).collect()
}

/// `main: 70 % read / 30 % write, 32 workers for 1 m 00 s: 12 345 op/s, read p99 4.20 ms; 3 of 740 000 operations
/// failed.`
fn sentence(scene: &Scene<'_>) -> String {
    let (work, stage) = (scene.work, scene.stage);
    let stage_name = if stage.name.is_empty() { stage_label(stage) } else { stage.name.clone() };
    let place = if stage.works.len() > 1 { format!("{stage_name}/{}", work.name) } else { stage_name };
    let mix: Vec<_> =
        work.operations.iter().map(|operation| share(operation, work.operations.len())).collect();
    // A run whose process died does not know its workers.
    let workers = match work.workers {
        0 => String::new(),
        1 => ", 1 worker".into(),
        workers => format!(", {} workers", units::count(workers.into())),
    };
    let offered =
        work.offered_rate.map(|rate| format!(", {} offered", units::rate(rate))).unwrap_or_default();
    let load = format!(
        "{place}: {}{workers}{offered} for {}",
        mix.join(" / "),
        units::duration_ns(scene.window_ns())
    );
    if scene.ok == 0 {
        return match scene.failed() {
            0 => format!("{load}: nothing was measured."),
            failed => format!("{load}: could not work, all {} operations failed.", units::count(failed)),
        };
    }
    let seconds = work.window_seconds();
    let rate: f64 = work.operations.iter().map(|operation| operation.throughput(seconds)).sum();
    let bandwidth: f64 = work.operations.iter().map(|operation| operation.bandwidth(seconds)).sum();
    let bandwidth =
        if bandwidth >= 1.0 { format!(" ({}/s)", units::bytes(bandwidth as u64)) } else { String::new() };
    let latencies: String =
        work.operations.iter().filter_map(latency).map(|text| format!(", {text}")).collect();
    let failed = match scene.failed() {
        0 => format!("all {} operations succeeded", units::count(scene.total())),
        failed => format!("{} of {} operations failed", units::count(failed), units::count(scene.total())),
    };
    format!("{load}: {}{bandwidth}{latencies}; {failed}.", units::rate(rate))
}

/// `70 % read`, or `read` where there is no mix or its shares are not known.
fn share(operation: &Operation, operations: usize) -> String {
    if operations == 1 || operation.weight.is_nan() || operation.weight <= 0.0 {
        return operation.label.clone();
    }
    let percent = (operation.weight * 100.0).round() / 100.0;
    format!("{percent} % {}", operation.label)
}

/// `read p99 4.20 ms`, or the median where there are too few samples for a p99.
fn latency(operation: &Operation) -> Option<String> {
    let response = &operation.tally.response;
    let (name, fraction) =
        if response.count() >= samples_needed(0.99) { ("p99", 0.99) } else { ("median", 0.5) };
    (!response.is_empty())
        .then(|| format!("{} {name} {}", operation.label, units::duration_ns(response.quantile(fraction))))
}

/// What went wrong, if anything: the state of the run and its gravest findings, without those that are among the
/// reasons for which it is invalid.
fn conduct(run: &Run, judgement: &Judgement) -> Option<String> {
    let reasons = match &judgement.validity {
        Validity::Valid => &[][..],
        Validity::Invalid(reasons) => reasons,
    };
    let grave = judgement.findings.iter().filter(|finding| finding.severity == Severity::Critical);
    let grave: Vec<_> = grave.map(Finding::sentence).filter(|sentence| !reasons.contains(sentence)).collect();
    let state = match run.state {
        State::Failed => Some("The run failed"),
        State::Interrupted => Some("The run was interrupted"),
        State::Running => Some("The run has not ended yet"),
        State::Waiting | State::Completed => None,
    };
    if grave.is_empty() {
        return state.map(|state| format!("{state}."));
    }
    let mut named: Vec<_> = grave.iter().take(NAMED_MOST).cloned().collect();
    if grave.len() > NAMED_MOST {
        named.push(format!("and {} more", grave.len() - NAMED_MOST));
    }
    Some(format!("{}: {}.", state.unwrap_or("Not as it should be"), named.join("; ")))
}

fn validity(judgement: &Judgement) -> String {
    let count = |severity| judgement.findings.iter().filter(|finding| finding.severity == severity).count();
    let warnings = count(Severity::Warning);
    match (&judgement.validity, warnings) {
        (Validity::Invalid(reasons), _) => {
            format!("INVALID, these numbers are not what was asked for: {}.", reasons.join("; "))
        }
        (Validity::Valid, _) if count(Severity::Critical) > 0 => {
            "VALID: the numbers are real, and they are not those of storage in order.".into()
        }
        (Validity::Valid, 0) => "VALID: no check objects to these numbers.".into(),
        (Validity::Valid, 1) => "VALID, with one warning.".into(),
        (Validity::Valid, warnings) => format!("VALID, with {warnings} warnings."),
    }
}
