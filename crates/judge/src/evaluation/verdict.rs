//! The verdict: which arm is better, what limits it, and how sure all that is.

use super::cells::Measured;
use super::{Assessment, Cell, Comparison, Knee, Metric, Outcome, shown, words};
use crate::Severity;
use crate::verdict::{invalid, valid};
use tidemark_measure::units;

/// Parts of one sentence, at most.
const PARTS_MOST: usize = 4;

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
    let (mut sentences, details) = compared(assessment, measured);
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
    sentences.extend(overview(assessment));
    sentences.extend(assessment.knees.iter().take(KNEES_MOST).flat_map(|knee| match told.contains(&knee) {
        true => after(knee, told.len()),
        false => compared_knee(knee, &assessment.knees),
    }));
    (sentences, headline)
}

/// A line for each arm compared with the baseline: the mean of all cells, where there is one, and what differs from it. Then, where
/// there is a mean, a line for each arm with its loads, and the ranking.
fn compared(assessment: &Assessment, measured: &[Measured<'_>]) -> (Vec<String>, Vec<String>) {
    let (mut lines, mut details) = (Vec::new(), Vec::new());
    for arm in assessment.compared() {
        let own = assessment.comparisons.iter().filter(|one| one.arm == arm);
        let loads = headlines(&own.collect::<Vec<_>>(), assessment, measured);
        let means = means(arm, assessment);
        let sentence = |told: &[&Comparison]| format!("{}.", arm_line(arm, told, assessment));
        let headline = |told| sentence(&with_deciding(told, arm, assessment));
        if means.is_empty() {
            lines.push(headline(loads));
            continue;
        }
        // Loads that go another way than the mean are told of with all that differ.
        let differs = |one: &&&Comparison| matches!(one.outcome, Outcome::Better | Outcome::Worse);
        let differing = || loads.iter().filter(differs).copied();
        let is_new = |one: &Comparison| means.iter().all(|mean| mean.outcome != one.outcome);
        let told: Vec<&Comparison> = if differing().any(is_new) { differing().collect() } else { Vec::new() };
        lines.push(headline(means.iter().copied().chain(told).collect()));
        details.push(sentence(&loads));
    }
    details.extend(ranking(assessment));
    (lines, details)
}

/// What is told of an arm, and with it what its outcome rests on: the first mean, or else cell, that came out so, where none
/// that is told of did.
fn with_deciding<'c>(
    mut told: Vec<&'c Comparison>,
    arm: &str,
    assessment: &'c Assessment,
) -> Vec<&'c Comparison> {
    let wanted = match assessment.outcome_of(Some(arm)) {
        Outcome::Mixed => vec![Outcome::Better, Outcome::Worse],
        outcome => vec![outcome],
    };
    let Some(baseline) = assessment.comparisons.first().map(|one| &one.baseline) else { return told };
    for outcome in wanted {
        let decides =
            |one: &&Comparison| one.arm == arm && one.baseline == *baseline && one.outcome == outcome;
        if !told.iter().any(decides) {
            told.extend(assessment.overall.iter().chain(&assessment.comparisons).find(decides));
        }
    }
    told
}

/// What is told of an arm over all cells: the main numbers, and the tail if it alone differs.
fn means<'c>(arm: &str, assessment: &'c Assessment) -> Vec<&'c Comparison> {
    let Some(baseline) = assessment.comparisons.first().map(|one| &one.baseline) else { return Vec::new() };
    let own = || assessment.overall.iter().filter(|one| one.arm == arm && one.baseline == *baseline);
    let Some(widest) = own().next().map(|one| &one.load) else { return Vec::new() };
    let own = || own().filter(|one| one.load == *widest);
    let mut told: Vec<&Comparison> = own().filter(|one| one.metric != Metric::TailLatency).collect();
    let new = |tail: &&Comparison| told.iter().all(|main| main.outcome != tail.outcome);
    let differs = |one: &&Comparison| matches!(one.outcome, Outcome::Better | Outcome::Worse);
    let tail = own().find(|one| one.metric == Metric::TailLatency);
    let tail = tail.filter(|tail| told.is_empty() || (differs(tail) && new(tail)));
    told.extend(tail);
    told
}

/// The arms from the best to the worst by their means over all cells, and which neighbours cannot be told apart.
fn ranking(assessment: &Assessment) -> Vec<String> {
    let arms = assessment.compared();
    let Some(baseline) = assessment.comparisons.first().map(|one| one.baseline.as_str()) else {
        return Vec::new();
    };
    let widest = assessment.overall.first().map_or("", |one| one.load.as_str());
    let of = |metric| {
        let find = |arm: &str, other: &str| {
            let is = |one: &&Comparison| one.arm == arm && one.baseline == other && one.load == widest;
            assessment.overall.iter().filter(|one| one.metric == metric).find(is)
        };
        let mut ranked: Vec<(&str, f64)> = vec![(baseline, 1.0)];
        for arm in &arms {
            ranked.push((*arm, find(arm, baseline)?.ratio));
        }
        ranked.sort_by(|left, right| right.1.total_cmp(&left.1));
        if !metric.more_is_better() {
            ranked.reverse();
        }
        let untold = ranked.windows(2).filter(|pair| {
            let found = find(pair[0].0, pair[1].0).or_else(|| find(pair[1].0, pair[0].0));
            !found.is_some_and(|one| matches!(one.outcome, Outcome::Better | Outcome::Worse))
        });
        let untold: Vec<String> = untold.map(|pair| format!("{} and {}", pair[0].0, pair[1].0)).collect();
        let names: Vec<String> =
            ranked.iter().map(|(arm, ratio)| format!("{arm} ({}x)", words::ratio(*ratio))).collect();
        let untold = match untold.is_empty() {
            true => String::new(),
            false => format!("; not told apart: {}", some(&untold, ", ")),
        };
        let cells = find(arms.first()?, baseline)?.place();
        Some(format!(
            "Ranked by {} over {cells}, the best first: {}{untold}.",
            metric.name(),
            names.join(", ")
        ))
    };
    let several = arms.len() > 1;
    [Metric::Throughput, Metric::MeanLatency].into_iter().filter(|_| several).filter_map(of).collect()
}

/// `reference-2 is better than baseline: 2.41x throughput for small-objects at workers 320 (95 % interval 2.20 to 2.60)`.
fn arm_line(arm: &str, told: &[&Comparison], assessment: &Assessment) -> String {
    let baseline = told.first().map_or("", |one| one.baseline.as_str());
    let margin = assessment.margin.map(words::difference).unwrap_or_default();
    let part = |outcome: Outcome, lead: String, print: fn(&Comparison) -> String| {
        let own = told.iter().filter(|one| one.outcome == outcome);
        let places: Vec<_> = own.map(|one| print(one)).collect();
        (!places.is_empty()).then(|| (outcome, format!("{lead} {}", some(&places, ", "))))
    };
    let parts = [
        part(Outcome::Better, format!("{arm} is better than {baseline}:"), figures),
        part(Outcome::Worse, format!("{arm} is worse than {baseline}:"), figures),
        part(Outcome::Equal, format!("{arm} equals {baseline} within {margin}:"), figures),
        part(
            Outcome::NotWorse,
            format!("{arm} is not worse than {baseline} by more than {margin}:"),
            figures,
        ),
        part(
            Outcome::Inconclusive,
            format!("inconclusive whether {arm} is within {margin} of {baseline}:"),
            figures,
        ),
        part(
            Outcome::Confounded,
            format!("{arm} was measured apart from {baseline}, and a drift would look the same:"),
            figures,
        ),
        part(Outcome::CannotTell, format!("cannot tell whether {arm} differs from {baseline}:"), undecided),
        part(
            Outcome::NotCompared,
            format!("{arm} compared with {baseline}, not tested (too few repeats):"),
            figures,
        ),
    ];
    let mut parts: Vec<(Outcome, String)> = parts.into_iter().flatten().collect();
    let outcome = assessment.outcome_of(Some(arm));
    parts.sort_by_key(|(own, _)| *own != outcome);
    capitalised(parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; "), arm)
}

/// A sentence begins with a capital letter, unless it begins with a name.
fn capitalised(text: String, name: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if !text.starts_with(name) => first.to_uppercase().chain(letters).collect(),
        _ => text,
    }
}

/// What is told of each load and subject: the main number at the level that stands for it, and the tail there if it alone
/// differs.
fn headlines<'c>(
    own: &[&'c Comparison],
    assessment: &Assessment,
    measured: &[Measured<'_>],
) -> Vec<&'c Comparison> {
    let same =
        |one: &&Comparison, other: &&Comparison| one.load == other.load && one.subject == other.subject;
    let mut told = Vec::new();
    for group in own.chunk_by(same) {
        let cells = measured.iter().map(|measured| &measured.cell);
        let cells: Vec<&Cell> =
            cells.filter(|cell| (&cell.load, &cell.subject) == (&group[0].load, &group[0].subject)).collect();
        let level = shown(&cells, &assessment.knees);
        let there = |one: &&&Comparison| Some(&one.level) == level;
        let is_main = |one: &&&Comparison| one.metric != Metric::TailLatency;
        // A search compares knees, which are not at one level.
        let main = group.iter().filter(is_main).find(there).or_else(|| group.iter().find(is_main));
        let Some(main) = main.or(group.last()) else { continue };
        told.push(*main);
        let tail = group.iter().find(|one| one.metric == Metric::TailLatency && one.level == main.level);
        let differs = |one: &&&Comparison| matches!(one.outcome, Outcome::Better | Outcome::Worse);
        told.extend(tail.filter(differs).filter(|tail| tail.outcome != main.outcome));
    }
    told
}

/// How all comparisons of cells of an arm came out, where there are more than the two of a single level.
fn overview(assessment: &Assessment) -> Vec<String> {
    let sentence = |arm: &str| {
        let own = assessment.comparisons.iter().filter(|one| one.arm == arm);
        let outcomes: Vec<Outcome> = own.map(|one| one.outcome).collect();
        let count = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        let all = [
            Outcome::Better,
            Outcome::Worse,
            Outcome::Equal,
            Outcome::NotWorse,
            Outcome::Inconclusive,
            Outcome::Confounded,
            Outcome::CannotTell,
            Outcome::NotCompared,
        ];
        let counts = all.into_iter().map(|outcome| (count(outcome), outcome.name()));
        let counts: Vec<_> =
            counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        let all = outcomes.len();
        (all > 2).then(|| format!("{arm}, all {all} comparisons of single cells: {}.", counts.join(", ")))
    };
    assessment.compared().into_iter().filter_map(sentence).collect()
}

/// `2.41x throughput for small-objects at workers 320 (95 % interval 2.20 to 2.60)`.
fn figures(one: &Comparison) -> String {
    let over = if one.cells > 1 { "over" } else { "for" };
    let decimals = words::decimals(one.ratio, one.interval, words::RATIO_DECIMALS);
    let print = |ratio: f64| format!("{ratio:.decimals$}");
    let interval = one.interval.map(|ends| format!(" ({})", words::interval(ends, print)));
    let (ratio, metric) = (print(one.ratio), one.metric.name());
    format!("{ratio}x {metric} {over} {}{}", one.place(), interval.unwrap_or_default())
}

/// The same, and what would not be seen.
fn undecided(one: &Comparison) -> String {
    let unseen = one
        .detectable
        .map(|share| format!("; a difference below {} would not be seen", words::difference(share)));
    format!("{}{}", figures(one), unseen.unwrap_or_default())
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

/// A knee, and how its throughput compares with that of the baseline at its own.
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
            lines.push(format!("What limited arm {} under {}: {}", one.arm, one.load, one.finding.title()));
        }
    }
    // Each line is of another arm or load.
    let more = if lines.len() > 1 { "; what limited other arms and loads is below" } else { "" };
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
