//! The verdict: which arm is better, what limits it, and how sure all that is.

use super::cells::Measured;
use super::{Assessment, Comparison, Knee, Metric, Outcome, words};
use crate::{Severity, Validity};
use tidemark_measure::units;

/// Parts of one sentence, at most.
const PARTS_MOST: usize = 4;

/// Comparisons that the first sentence tells of with their intervals, at most.
const WHOLE_MOST: usize = 2;

/// Knees that are told of, at most.
const KNEES_MOST: usize = 8;

/// Reasons of invalidity that are told of, at most.
const REASONS_MOST: usize = 3;

/// The sentences of the verdict: what it comes to and what the limit is in the first two; before them, that none of it
/// counts, when that is so; after them the knees, and whether the numbers hold.
pub(super) fn sentences(assessment: &Assessment, measured: &[Measured<'_>]) -> Vec<String> {
    if measured.is_empty() {
        return vec!["Nothing was measured.".into()];
    }
    let mut told = Vec::new();
    let (first, details) = match compared(&assessment.comparisons, measured) {
        Some(compared) => compared,
        None => (results(assessment, measured, &mut told), Vec::new()),
    };
    let mut sentences = vec![first];
    sentences.extend(limit(assessment));
    sentences.extend(details);
    sentences.extend(overview(&assessment.comparisons));
    sentences.extend(assessment.knees.iter().take(KNEES_MOST).flat_map(|knee| match told.contains(&knee) {
        true => after(knee, told.len()),
        false => beside(knee, &assessment.knees),
    }));
    match validity(assessment) {
        (true, sentence) => sentences.insert(0, sentence),
        (false, sentence) => sentences.push(sentence),
    }
    sentences
}

/// Every arm beside the baseline, in one sentence, and what had to be left out of it to keep it short; `None` without
/// comparisons.
fn compared(comparisons: &[Comparison], measured: &[Measured<'_>]) -> Option<(String, Vec<String>)> {
    let arms = by_arm(comparisons);
    let told: Vec<_> = arms.iter().map(|(arm, own)| (*arm, headlines(own, measured))).collect();
    let whole = || arms.iter().map(|(arm, own)| arm_beside(arm, own, measured));
    match told.iter().map(|(_, told)| told.len()).sum::<usize>() {
        0 => None,
        1..=WHOLE_MOST => Some((format!("{}.", whole().collect::<Vec<_>>().join("; ")), Vec::new())),
        _ => Some((brief(&told), whole().map(|sentence| format!("{sentence}.")).collect())),
    }
}

/// `In throughput, beside baseline, reference-1 has 2.03 x for small, no significant difference for large; reference-2 has 4.74 x
/// for small, 3.10 x for large.`
fn brief(told: &[(&str, Vec<&Comparison>)]) -> String {
    let all = || told.iter().flat_map(|(_, told)| told);
    let first = all().next().map(|one| one.metric);
    let same = all().all(|one| Some(one.metric) == first);
    let part = |one: &&Comparison| {
        let place = words::place(&one.load, &one.subject, &one.level);
        let of = if same { String::new() } else { format!(" the {}", one.metric.name()) };
        match one.outcome {
            Outcome::NoDifference => {
                format!("no significant difference{} for {place}", of.replace(" the", " in"))
            }
            Outcome::NotCompared => {
                format!("{} x{of} for {place}, not tested for want of repeats", words::ratio(one.ratio))
            }
            Outcome::Better | Outcome::Worse | Outcome::Mixed => {
                format!("{} x{of} for {place}", words::ratio(one.ratio))
            }
        }
    };
    let arm = |(arm, told): &(&str, Vec<&Comparison>)| {
        format!("{arm} has {}", some(told.iter().map(part).collect(), ", "))
    };
    let arms: Vec<String> = told.iter().map(arm).collect();
    let baseline = all().next().map_or("", |one| one.baseline.as_str());
    match first.filter(|_| same) {
        Some(metric) => format!("In {}, beside {baseline}, {}.", metric.name(), some(arms, "; ")),
        None => format!("Beside {baseline}, {}.", some(arms, "; ")),
    }
}

/// The comparisons of each arm, in order.
fn by_arm(comparisons: &[Comparison]) -> Vec<(&str, Vec<&Comparison>)> {
    let mut arms: Vec<(&str, Vec<&Comparison>)> = Vec::new();
    for one in comparisons {
        match arms.iter_mut().find(|(arm, _)| *arm == one.arm) {
            Some((_, own)) => own.push(one),
            None => arms.push((&one.arm, vec![one])),
        }
    }
    arms
}

/// `reference-2 is better than baseline: 2.41 x the throughput for small-objects at workers 320 (95 % interval 2.20 to 2.60)`.
fn arm_beside(arm: &str, own: &[&Comparison], measured: &[Measured<'_>]) -> String {
    let told = headlines(own, measured);
    let baseline = own.first().map_or("", |one| one.baseline.as_str());
    let of = |outcome| told.iter().filter(move |one| one.outcome == outcome).copied();
    let list = |outcome, print: fn(&Comparison) -> String| some(of(outcome).map(print).collect(), ", ");
    let mut parts = Vec::new();
    for (outcome, word) in [(Outcome::Better, "better"), (Outcome::Worse, "worse")] {
        if of(outcome).next().is_some() {
            parts.push(format!("{arm} is {word} than {baseline}: {}", list(outcome, figures)));
        }
    }
    if of(Outcome::NoDifference).next().is_some() {
        let places = list(Outcome::NoDifference, undecided);
        parts.push(match parts.is_empty() {
            true => format!("{arm} and {baseline}: no significant difference {places}"),
            false => format!("no significant difference {places}"),
        });
    }
    if of(Outcome::NotCompared).next().is_some() {
        let places = list(Outcome::NotCompared, figures);
        parts.push(format!("{arm} beside {baseline}, not tested for want of repeats: {places}"));
    }
    parts.join("; ")
}

/// What is told of each load and subject: the main number at the level that matters, and the tail there if it alone
/// differs.
fn headlines<'c>(own: &[&'c Comparison], measured: &[Measured<'_>]) -> Vec<&'c Comparison> {
    let same =
        |one: &&Comparison, other: &&Comparison| one.load == other.load && one.subject == other.subject;
    let mut told = Vec::new();
    for group in own.chunk_by(same) {
        let mains = group.iter().filter(|one| one.metric != Metric::TailLatency).copied();
        let main = mains.max_by(|left, right| {
            let (left, right) = (weight(left, measured), weight(right, measured));
            left.0.cmp(&right.0).then_with(|| left.1.total_cmp(&right.1))
        });
        let Some(main) = main.or(group.last().copied()) else { continue };
        told.push(main);
        let tail = group.iter().find(|one| one.metric == Metric::TailLatency && one.level == main.level);
        let differs = |one: &&&Comparison| matches!(one.outcome, Outcome::Better | Outcome::Worse);
        told.extend(tail.filter(differs).filter(|tail| tail.outcome != main.outcome));
    }
    told
}

/// Which level matters: the one at which the baseline does most, within the service level if it can be. It does not depend
/// on how the other arm does there.
fn weight(one: &Comparison, measured: &[Measured<'_>]) -> (bool, f64) {
    let cells = measured.iter().map(|measured| &measured.cell).filter(|cell| cell.arm == one.baseline);
    let mut here = cells.filter(|cell| cell.load == one.load && cell.subject == one.subject);
    let cell = here.find(|cell| cell.level == one.level);
    cell.map_or((false, 0.0), |cell| (cell.meets != Some(false), cell.throughput.mean))
}

/// How all comparisons of an arm came out, where there are more than the two of a single level.
fn overview(comparisons: &[Comparison]) -> Vec<String> {
    let sentence = |(arm, own): (&str, Vec<&Comparison>)| {
        let count = |outcome| own.iter().filter(|one| one.outcome == outcome).count();
        let counts = [
            (count(Outcome::Better), "better"),
            (count(Outcome::Worse), "worse"),
            (count(Outcome::NoDifference), "without significant difference"),
            (count(Outcome::NotCompared), "not tested"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts.map(|(count, word)| format!("{count} {word}")).collect();
        let all = own.len();
        (all > 2).then(|| format!("{arm}, all {all} comparisons: {}.", counts.join(", ")))
    };
    by_arm(comparisons).into_iter().filter_map(sentence).collect()
}

fn figures(one: &Comparison) -> String {
    let place = words::place(&one.load, &one.subject, &one.level);
    let interval = one.interval.map(|ends| format!(" ({})", words::interval(ends, words::ratio)));
    let interval = interval.unwrap_or_default();
    format!("{} x the {} for {place}{interval}", words::ratio(one.ratio), one.metric.name())
}

fn undecided(one: &Comparison) -> String {
    let place = words::place(&one.load, &one.subject, &one.level);
    let interval = one.interval.map(|ends| format!(" ({})", words::interval(ends, words::ratio)));
    format!("in {} for {place}{}", one.metric.name(), interval.unwrap_or_default())
}

/// What was measured, where nothing is compared: the knees, and the plain numbers of loads without. Says which knees were
/// told of.
fn results<'s>(assessment: &'s Assessment, measured: &[Measured<'_>], told: &mut Vec<&'s Knee>) -> String {
    let mut parts = Vec::new();
    let same = |one: &Measured<'_>, other: &Measured<'_>| {
        one.load == other.load && one.cell.subject == other.cell.subject
    };
    for group in measured.chunk_by(same) {
        let by_throughput = |left: &&Measured<'_>, right: &&Measured<'_>| {
            left.cell.throughput.mean.total_cmp(&right.cell.throughput.mean)
        };
        let Some(best) = group.iter().max_by(by_throughput) else { continue };
        let own = |knee: &&Knee| knee.load == best.cell.load && knee.subject == best.cell.subject;
        match assessment.knees.iter().find(own).and_then(|knee| Some((knee, knee.story.first()?))) {
            Some((knee, first)) => {
                told.push(knee);
                parts.push(told_of(knee, first).trim_end_matches('.').to_owned());
            }
            None => parts.push(plain(best)),
        }
    }
    format!("{}.", some(parts, "; "))
}

/// `baseline, small-objects at workers 320: 5 020 op/s (95 % interval 4 990 op/s to 5 050 op/s), p99 12.0 ms`.
fn plain(one: &Measured<'_>) -> String {
    let cell = &one.cell;
    let place = words::place(&cell.load, &cell.subject, &cell.level);
    let interval = cell.throughput.interval.map(|ends| format!(" ({})", words::interval(ends, units::rate)));
    let latency = cell.p99_ns.as_ref().map(|p99| format!(", p99 {}", words::duration(p99.mean)));
    format!(
        "{}, {place}: {}{}{}",
        cell.arm,
        units::rate(cell.throughput.mean),
        interval.unwrap_or_default(),
        latency.unwrap_or_default()
    )
}

/// A sentence about a knee, with the arm and the load.
fn told_of(knee: &Knee, sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_lowercase().collect::<String>()).unwrap_or_default();
    format!("{}, {}: {first}{}", knee.arm, words::load(&knee.load, &knee.subject), letters.as_str())
}

/// What happens after a knee that was told of already, of so many.
fn after(knee: &Knee, told: usize) -> Vec<String> {
    let rest = knee.story.iter().skip(1);
    rest.map(|sentence| if told == 1 { sentence.clone() } else { told_of(knee, sentence) }).collect()
}

/// A knee, and how its throughput compares with that of the first arm at its own.
fn beside(knee: &Knee, all: &[Knee]) -> Vec<String> {
    let first = all.iter().find(|other| other.load == knee.load && other.subject == knee.subject);
    let other = first.filter(|other| other.arm != knee.arm && other.throughput > 0.0 && knee.level.is_some());
    let times = other.map(|other| {
        let times = words::ratio(knee.throughput / other.throughput);
        format!("That is {times} x the throughput of {} at its own.", other.arm)
    });
    knee.story.first().map(|sentence| told_of(knee, sentence)).into_iter().chain(times).collect()
}

/// The likeliest limit of each arm under each load, in one sentence; of each arm under one of its loads, where there would
/// be too many.
fn limit(assessment: &Assessment) -> Option<String> {
    let mut named: Vec<(&str, &str)> = Vec::new();
    let mut first = Vec::new();
    for one in &assessment.bottlenecks {
        if !named.contains(&(&one.arm, &one.load)) {
            named.push((&one.arm, &one.load));
            first.push(one);
        }
    }
    if first.len() > PARTS_MOST {
        let mut arms: Vec<&str> = Vec::new();
        first.retain(|one| {
            !arms.contains(&one.arm.as_str()) && {
                arms.push(&one.arm);
                true
            }
        });
    }
    let left = named.len() - first.len();
    let mut parts: Vec<String> =
        first.iter().map(|one| format!("{} ({}, {})", one.finding.title(), one.arm, one.load)).collect();
    parts = vec![some(parts, "; ")];
    parts.extend((left > 0).then(|| format!("and so on for {left} more")));
    (!named.is_empty()).then(|| format!("What limited it: {}.", parts.join("; ")))
}

/// Whether the numbers hold: whether they do not, and the sentence.
fn validity(assessment: &Assessment) -> (bool, String) {
    let count = |severity| assessment.findings.iter().filter(|finding| finding.severity == severity).count();
    let sentence = match (&assessment.validity, count(Severity::Critical), count(Severity::Warning)) {
        (Validity::Invalid(reasons), ..) => {
            let more = reasons.len().saturating_sub(REASONS_MOST);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let reasons = reasons.iter().take(REASONS_MOST).cloned().collect::<Vec<_>>().join("; ");
            return (true, format!("INVALID, these numbers are not what was asked for: {reasons}{more}."));
        }
        (_, 0, 0) => "VALID: no check objects to these numbers.".into(),
        (_, 0, 1) => "VALID, with one warning.".into(),
        (_, 0, warnings) => format!("VALID, with {warnings} warnings."),
        _ => "VALID: the numbers are real, and they are not those of storage in order.".into(),
    };
    (false, sentence)
}

/// Some parts of a sentence; the others are counted.
fn some(mut parts: Vec<String>, between: &str) -> String {
    let more = parts.len().saturating_sub(PARTS_MOST);
    parts.truncate(PARTS_MOST);
    parts.extend((more > 0).then(|| format!("and {more} more")));
    parts.join(between)
}
