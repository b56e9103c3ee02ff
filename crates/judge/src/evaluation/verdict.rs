//! The verdict: which arm is better, what limits it, and how sure all that is.

use super::cells::Measured;
use super::{Assessment, Comparison, Knee, Metric, Outcome, words};
use crate::Severity;
use crate::verdict::{invalid, valid};
use tidemark_measure::units;

/// Parts of one sentence, at most.
const PARTS_MOST: usize = 4;

/// Comparisons that the first sentence tells of with their intervals, at most.
const WHOLE_MOST: usize = 2;

/// Knees that are told of, at most.
const KNEES_MOST: usize = 8;

/// Limits that are told of, at most.
const LIMITS_MOST: usize = 8;

/// Reasons of invalidity that are told of, at most.
const REASONS_MOST: usize = 3;

/// The sentences of the verdict: first the headline, that is a line for each arm (better or worse, by how much, for which
/// load), the limit, and whether the numbers hold (before all else if they do not); then the details. And how many of them
/// are the headline.
pub(super) fn sentences(assessment: &Assessment, measured: &[Measured<'_>]) -> (Vec<String>, usize) {
    if measured.is_empty() {
        return (vec!["Nothing was measured.".into()], 1);
    }
    let mut told = Vec::new();
    let (mut sentences, details) = compared(&assessment.comparisons, measured);
    if sentences.is_empty() {
        sentences.push(results(assessment, measured, &mut told));
    }
    let (limit, limits) = limits(assessment);
    sentences.extend(limit);
    match validity(assessment) {
        (true, sentence) => sentences.insert(0, sentence),
        (false, sentence) => sentences.push(sentence),
    }
    let headline = sentences.len();
    sentences.extend(details);
    sentences.extend(limits);
    sentences.extend(overview(&assessment.comparisons));
    sentences.extend(assessment.knees.iter().take(KNEES_MOST).flat_map(|knee| match told.contains(&knee) {
        true => after(knee, told.len()),
        false => compared_knee(knee, &assessment.knees),
    }));
    (sentences, headline)
}

/// A line for each arm compared with the baseline; and the same with intervals, where there is too much of it for a headline.
fn compared(comparisons: &[Comparison], measured: &[Measured<'_>]) -> (Vec<String>, Vec<String>) {
    let arms = by_arm(comparisons);
    let lines = |intervals: bool| -> Vec<String> {
        arms.iter().map(|(arm, own)| format!("{}.", arm_line(arm, own, measured, intervals))).collect()
    };
    match arms.iter().map(|(_, own)| headlines(own, measured).len()).sum::<usize>() {
        0..=WHOLE_MOST => (lines(true), Vec::new()),
        _ => (lines(false), lines(true)),
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

/// `reference-2 is better than baseline: 2.41x throughput for small-objects at workers 320 (95 % interval 2.20 to 2.60)`.
fn arm_line(arm: &str, own: &[&Comparison], measured: &[Measured<'_>], intervals: bool) -> String {
    let told = headlines(own, measured);
    let baseline = own.first().map_or("", |one| one.baseline.as_str());
    let list = |outcome, print: fn(&Comparison, bool) -> String| {
        let of = told.iter().filter(|one| one.outcome == outcome);
        let parts: Vec<_> = of.map(|one| print(one, intervals)).collect();
        (!parts.is_empty()).then(|| some(&parts, ", "))
    };
    let mut parts = Vec::new();
    for (outcome, word) in [(Outcome::Better, "better"), (Outcome::Worse, "worse")] {
        parts.extend(
            list(outcome, figures).map(|places| format!("{arm} is {word} than {baseline}: {places}")),
        );
    }
    if let Some(places) = list(Outcome::NoDifference, undecided) {
        parts.push(match parts.is_empty() {
            true => format!("{arm} and {baseline}: no significant difference {places}"),
            false => format!("no significant difference {places}"),
        });
    }
    let untested = list(Outcome::NotCompared, figures);
    parts.extend(
        untested
            .map(|places| format!("{arm} compared with {baseline}: {places} (not tested: too few repeats)")),
    );
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

fn figures(one: &Comparison, intervals: bool) -> String {
    let place = words::place(&one.load, &one.subject, &one.level);
    format!("{}x {} for {place}{}", words::ratio(one.ratio), one.metric.name(), interval(one, intervals))
}

fn undecided(one: &Comparison, intervals: bool) -> String {
    let place = words::place(&one.load, &one.subject, &one.level);
    format!("in {} for {place}{}", one.metric.name(), interval(one, intervals))
}

fn interval(one: &Comparison, wanted: bool) -> String {
    let ends = one.interval.filter(|_| wanted);
    ends.map(|ends| format!(" ({})", words::interval(ends, words::ratio))).unwrap_or_default()
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
    format!("{}.", some(&parts, "; "))
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
fn compared_knee(knee: &Knee, all: &[Knee]) -> Vec<String> {
    let first = all.iter().find(|other| other.load == knee.load && other.subject == knee.subject);
    let other = first.filter(|other| other.arm != knee.arm && other.throughput > 0.0 && knee.level.is_some());
    let times = other.map(|other| {
        let times = words::ratio(knee.throughput / other.throughput);
        format!("That is {times}x the throughput of {} at its own knee.", other.arm)
    });
    knee.story.first().map(|sentence| told_of(knee, sentence)).into_iter().chain(times).collect()
}

/// The gravest limit, for the headline; then the first limit of each other arm and load, a line each.
fn limits(assessment: &Assessment) -> (Option<String>, Vec<String>) {
    let mut named: Vec<(&str, &str)> = Vec::new();
    let mut lines = Vec::new();
    for one in &assessment.bottlenecks {
        if !named.contains(&(&one.arm, &one.load)) {
            named.push((&one.arm, &one.load));
            lines.push(format!("Limit of {} under {}: {}", one.arm, one.load, one.finding.title()));
        }
    }
    let more = match lines.len() {
        0 | 1 => String::new(),
        several => format!("; {} more below", several - 1),
    };
    let mut lines = lines.into_iter();
    let headline = lines.next().map(|line| format!("{line}{more}."));
    let others: Vec<String> = lines.map(|line| format!("{line}.")).collect();
    let rest = others.len().saturating_sub(LIMITS_MOST);
    let rest = (rest > 0).then(|| format!("{rest} more limits are among the bottlenecks."));
    (headline, others.into_iter().take(LIMITS_MOST).chain(rest).collect())
}

/// Whether the numbers hold: whether they do not, and the sentence.
fn validity(assessment: &Assessment) -> (bool, String) {
    let count = |severity| assessment.findings.iter().filter(|finding| finding.severity == severity).count();
    if !assessment.validity.is_valid() {
        return (true, invalid(&some_of(&assessment.validity.sentences(), REASONS_MOST)));
    }
    let sentence = valid(count(Severity::Critical), count(Severity::Warning));
    (false, sentence)
}

/// The first of some parts; the others are counted.
fn some_of(parts: &[String], most: usize) -> Vec<String> {
    let more = parts.len().saturating_sub(most);
    parts.iter().take(most).cloned().chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// Some parts of a sentence.
fn some(parts: &[String], between: &str) -> String {
    some_of(parts, PARTS_MOST).join(between)
}
