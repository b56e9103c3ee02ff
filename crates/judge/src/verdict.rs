//! The sentences at the top of reports and at the end of a run.

use crate::context::{WorkContext, stage_label};
use crate::rules::samples_needed;
use crate::sweep::{Dimension, Point, Spread, Sweep, data_operations, sweeps};
use crate::{Amount, Finding, Judgement, Severity, figures};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, Run, State};
use tidemark_measure::units;

/// Grave findings named in the verdict, at most; the others are counted.
const NAMED_MOST: usize = 3;

/// Patterns of a sweep that have a sentence of their own, at most.
const PATTERNS_MOST: usize = 12;

/// Sums a run up in plain words, each sentence with its full stop: what every work achieved, then whether the run
/// did its job, and whether its numbers hold.
pub fn verdict_sentences(run: &Run, judgement: &Judgement) -> Vec<String> {
    let mut sentences = achievements(run);
    sentences.extend(conduct(run, judgement));
    sentences.push(validity(run, judgement));
    sentences
}

/// What a run achieved: one sentence for each pattern of a sweep, and for each other work that measured something
/// (for each work, when none did).
pub fn achievements(run: &Run) -> Vec<String> {
    let measuring = WorkContext::all(run).any(|context| context.measures());
    let contexts = WorkContext::all(run)
        .filter(|context| context.stage.cell.is_none() && (context.measures() || !measuring));
    let mut sentences: Vec<String> = contexts.map(|context| sentence(&context)).collect();
    sentences.extend(sweeps(run).iter().flat_map(patterns));
    sentences
}

/// What a sweep achieved: its best point for each combination of the axes that are no numbers.
fn patterns(sweep: &Sweep<'_>) -> Vec<String> {
    let axes = sweep.dimensions();
    let several_engines = sweep.engines().len() > 1;
    let words = |point: &Point<'_>| {
        let named = axes.iter().filter(|axis| axis.numbers.is_none()).filter_map(|axis| point.at(axis.name));
        let named = named.map(|axis| axis.value.to_string());
        let engine = (several_engines && !point.engine.is_empty()).then(|| point.engine.to_owned());
        named.chain(engine).collect::<Vec<_>>().join(", ")
    };
    let mut patterns: Vec<(String, Vec<&Point<'_>>)> = Vec::new();
    for point in &sweep.points {
        let name = words(point);
        match patterns.iter_mut().find(|(other, _)| *other == name) {
            Some((_, points)) => points.push(point),
            None => patterns.push((name, vec![point])),
        }
    }
    let mut sentences: Vec<_> = patterns
        .iter()
        .take(PATTERNS_MOST)
        .map(|(name, points)| {
            let name = match (name.as_str(), sweep.name) {
                ("", sweep) => sweep.to_owned(),
                (name, sweep) if name == sweep => name.to_owned(),
                (name, sweep) => format!("{sweep}, {name}"),
            };
            format!("{name}: {}.", peak(points, &axes))
        })
        .collect();
    if patterns.len() > PATTERNS_MOST {
        sentences.push(format!("{}: {} more patterns.", sweep.name, patterns.len() - PATTERNS_MOST));
    }
    sentences
}

/// `peak 95 600 op/s at 4 KiB, clients 8, p99 1.20 ms; peak 2.10 GB/s at 1 MiB, clients 4; all 1 234 operations of 20
/// points succeeded`.
fn peak(points: &[&Point<'_>], axes: &[Dimension<'_>]) -> String {
    let (Some((fastest, rate)), widest) = (best(points, Point::rates), best(points, Point::bandwidths))
    else {
        return format!("nothing was measured at {} points", points.len());
    };
    let at = |point: &Point<'_>| {
        let varied = axes.iter().filter(|axis| axis.numbers.is_some() && axis.values.len() > 1);
        let values = varied.filter_map(|axis| Some(point.at(axis.name)?.label()));
        let values = values.collect::<Vec<_>>().join(", ");
        if values.is_empty() { String::new() } else { format!(" at {values}") }
    };
    let peak = if points.len() > 1 { "peak " } else { "" };
    let mut text = format!("{peak}{}{}", units::rate(rate), at(fastest));
    if let Some(percentile) = percentile(&fastest.response()) {
        text += &format!(", {percentile}");
    }
    if let Some((widest, bytes)) = widest {
        let place = if std::ptr::eq(widest, fastest) { String::new() } else { at(widest) };
        text += &format!("; {peak}{}/s{place}", units::bytes(bytes as u64));
    }
    let stages = points.iter().flat_map(|point| &point.stages);
    let (ok, failed) =
        stages.flat_map(|stage| data_operations(stage)).fold((0u64, 0u64), |(ok, failed), (_, one)| {
            (ok.saturating_add(one.tally.ok), failed.saturating_add(one.tally.failed()))
        });
    let of = if points.len() > 1 { format!(" of {} points", points.len()) } else { String::new() };
    match failed {
        0 => format!("{text}; all {} operations{of} succeeded", units::count(ok)),
        failed => format!(
            "{text}; {} of {} operations{of} failed",
            units::count(failed),
            units::count(ok.saturating_add(failed))
        ),
    }
}

/// With so many kinds of operations or more, a sentence does not name each of them.
const SHARES_MOST: usize = 9;

/// `main: 70 % read / 30 % write, 32 workers for 1 m 00 s: 12 345 op/s, read p99 4.20 ms; 3 of 740 000 operations
/// failed.`
fn sentence(context: &WorkContext<'_>) -> String {
    let (work, stage) = (context.work, context.stage);
    let stage_name = if stage.name.is_empty() { stage_label(stage) } else { stage.name.clone() };
    let place = if stage.works.len() > 1 { format!("{stage_name}/{}", work.name) } else { stage_name };
    let mix = match work.operations.len() {
        many @ SHARES_MOST.. => format!("{many} kinds of operations"),
        few => work.operations.iter().map(|operation| share(operation, few)).collect::<Vec<_>>().join(" / "),
    };
    // A run whose process died does not know its workers.
    let workers = match work.workers {
        0 => String::new(),
        1 => ", 1 worker".into(),
        workers => format!(", {} workers", units::count(workers.into())),
    };
    let depth = work.sharing();
    let offered =
        work.offered_rate.map(|rate| format!(", {} offered", units::rate(rate))).unwrap_or_default();
    let load =
        format!("{place}: {mix}{workers}{depth}{offered} for {}", units::duration_ns(context.window_ns()));
    if context.ok == 0 {
        return match context.failed() {
            0 => format!("{load}: nothing was measured."),
            failed => format!("{load}: all {} operations failed.", units::count(failed)),
        };
    }
    let seconds = work.window_seconds();
    let rate: f64 = work.operations.iter().map(|operation| operation.throughput(seconds)).sum();
    let bandwidth: f64 = work.operations.iter().map(|operation| operation.bandwidth(seconds)).sum();
    let bandwidth =
        if bandwidth >= 1.0 { format!(" ({}/s)", units::bytes(bandwidth as u64)) } else { String::new() };
    let told = work.operations.iter().filter(|_| work.operations.len() < SHARES_MOST);
    let latencies: String = told.filter_map(latency).map(|text| format!(", {text}")).collect();
    let failed = match context.failed() {
        0 => format!("all {} operations succeeded", units::count(context.total())),
        failed => format!("{} of {} operations failed", units::count(failed), units::count(context.total())),
    };
    format!("{load}: {}{bandwidth}{latencies}; {failed}.{}", units::rate(rate), known_by(context))
}

/// ` NOPM 12 345, Database TPM 28 400.`: the figures of the work as a whole that its users know it by.
fn known_by(context: &WorkContext<'_>) -> String {
    let own =
        figures(context.run, context.stage).into_iter().filter(|figure| figure.work == context.work.name);
    let whole = own
        .filter(|figure| matches!(figure.amount, Amount::PerMinute(_) | Amount::Span(_) | Amount::Score(_)));
    let told = whole.map(|figure| format!("{} {}", figure.name, figure.amount)).collect::<Vec<_>>();
    if told.is_empty() { String::new() } else { format!(" {}.", told.join(", ")) }
}

/// The point with the highest mean of something over its repeats, if any has more than nothing.
fn best<'p, 'a>(
    points: &[&'p Point<'a>],
    value: impl Fn(&Point<'a>) -> Vec<f64>,
) -> Option<(&'p Point<'a>, f64)> {
    let means = points.iter().filter_map(|point| Some((*point, Spread::of(&value(point))?.mean)));
    means.max_by(|left, right| left.1.total_cmp(&right.1)).filter(|(_, mean)| *mean > 0.0)
}

/// `70 % read`, or `read` where there is no mix or its shares are not known.
pub(crate) fn share(operation: &Operation, operations: usize) -> String {
    if operations == 1 || operation.weight.is_nan() || operation.weight <= 0.0 {
        return operation.label.clone();
    }
    let percent = (operation.weight * 100.0).round() / 100.0;
    format!("{percent} % {}", operation.label)
}

/// `read p99 4.20 ms`.
fn latency(operation: &Operation) -> Option<String> {
    percentile(&operation.tally.response).map(|percentile| format!("{} {percentile}", operation.label))
}

/// `p99 4.20 ms`, or the median where there are too few samples for a p99; nothing where there are none.
fn percentile(response: &Histogram) -> Option<String> {
    let (name, fraction) =
        if response.count() >= samples_needed(0.99) { ("p99", 0.99) } else { ("median", 0.5) };
    (!response.is_empty()).then(|| format!("{name} {}", units::duration_ns(response.quantile(fraction))))
}

/// What went wrong, if anything: the state of the run and its gravest findings, without those that are among the
/// reasons for which it is invalid.
fn conduct(run: &Run, judgement: &Judgement) -> Option<String> {
    let grave =
        judgement.findings.iter().filter(|one| one.severity == Severity::Critical && !one.invalidates);
    let grave: Vec<_> = grave.map(Finding::sentence).collect();
    let state = match run.state {
        State::Failed => Some("The run failed"),
        State::Interrupted => Some("The run was interrupted"),
        State::Running => Some("The run is still going on"),
        State::Waiting | State::Completed => None,
    };
    if grave.is_empty() {
        return state.map(|state| format!("{state}."));
    }
    let mut named: Vec<_> = grave.iter().take(NAMED_MOST).cloned().collect();
    if grave.len() > NAMED_MOST {
        named.push(format!("and {} more", grave.len() - NAMED_MOST));
    }
    Some(format!("{}: {}.", state.unwrap_or("Critical problems"), named.join("; ")))
}

fn validity(run: &Run, judgement: &Judgement) -> String {
    let measured = WorkContext::all(run).any(|context| context.total() > 0);
    let count = |severity| judgement.findings.iter().filter(|finding| finding.severity == severity).count();
    match judgement.is_valid() {
        true if !measured => "Nothing was measured, so there are no numbers to check.".into(),
        true => valid(count(Severity::Critical), count(Severity::Warning)),
        false => invalid(&judgement.validity.sentences()),
    }
}

/// That the numbers do not hold, and why.
pub(crate) fn invalid(reasons: &[String]) -> String {
    format!("INVALID: these numbers do not show what was requested: {}.", reasons.join("; "))
}

/// That the numbers hold, and how many findings there are.
pub(crate) fn valid(critical: usize, warnings: usize) -> String {
    match (critical, warnings) {
        (0, 0) => "VALID: the checks found no problem with these numbers.".into(),
        (0, 1) => "VALID, with 1 warning.".into(),
        (0, warnings) => format!("VALID, with {warnings} warnings."),
        _ => "VALID: the numbers are real, but the storage did not work as it should.".into(),
    }
}
