//! Many stages of a sweep say the same: one finding says it for all of them.

use crate::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// Stages that may say the same one by one.
const APART_MOST: usize = 3;

/// Stages of a folded finding that are quoted.
const QUOTED_MOST: usize = 5;

/// Units that follow numbers in titles.
const UNITS: [&str; 21] = [
    "%", "ns", "µs", "ms", "s", "m", "h", "d", "op/s", "B", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB",
    "GiB", "TiB", "PiB", "times",
];

/// Folds what is said of more than three of these stages in the same words, numbers aside. The folded finding
/// stands where the first of them stood.
pub(crate) fn fold(said: Vec<Finding>, stages: &BTreeSet<String>) -> Vec<Finding> {
    let mut families: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, finding) in said.iter().enumerate() {
        if finding.stage.as_ref().is_some_and(|stage| stages.contains(stage)) {
            let key = (finding.rule, finding.severity, finding.invalidates, skeleton(&finding.title));
            families.entry(key).or_default().push(index);
        }
    }
    let mut folded: BTreeMap<usize, Finding> = BTreeMap::new();
    let mut gone = BTreeSet::new();
    for members in families.into_values() {
        let family: Vec<&Finding> = members.iter().map(|index| &said[*index]).collect();
        let own: BTreeSet<_> = family.iter().filter_map(|finding| finding.stage.as_ref()).collect();
        if own.len() > APART_MOST {
            folded.insert(members[0], together(&family));
            gone.extend(members);
        }
    }
    let each = said.into_iter().enumerate();
    each.filter_map(|(index, finding)| {
        folded.remove(&index).or_else(|| (!gone.contains(&index)).then_some(finding))
    })
    .collect()
}

fn together(family: &[&Finding]) -> Finding {
    let first = family[0];
    let mut stages: Vec<String> = Vec::new();
    for stage in family.iter().filter_map(|finding| finding.stage.clone()) {
        if !stages.contains(&stage) {
            stages.push(stage);
        }
    }
    let titles: Vec<_> = family.iter().map(|finding| finding.title.as_str()).collect();
    let title = merged(&titles);
    let quoted = |(index, finding): (usize, &&Finding)| match index {
        0..QUOTED_MOST => Some(finding.sentence()),
        QUOTED_MOST => Some(format!("and {} more", family.len() - QUOTED_MOST)),
        _ => None,
    };
    let mut evidence = vec![format!("stages: {}", stages.join(", "))];
    if titles.iter().any(|other| *other != title) {
        evidence.extend(family.iter().enumerate().filter_map(quoted));
    }
    if !first.evidence.is_empty() {
        evidence.push(format!("{} for example:", first.place()));
        evidence.extend(first.evidence.iter().cloned());
    }
    Finding { title, evidence, stages, stage: None, work: None, ..first.clone() }
}

/// A word without the punctuation behind it, and that.
fn split(word: &str) -> (&str, &str) {
    word.split_at(word.trim_end_matches([',', ';', ':', ')']).len())
}

/// A word's number, if it is one: `12 345` with a narrow space, `4.20`.
fn number(word: &str) -> Option<f64> {
    let plain = split(word).0.replace('\u{202f}', "");
    plain.starts_with(|first: char| first.is_ascii_digit()).then(|| plain.parse().ok()).flatten()
}

/// A title without its numbers and their units.
pub(crate) fn skeleton(title: &str) -> String {
    let mut after_number = false;
    let words = title.split(' ').map(|word| {
        let (core, tail) = split(word);
        let is_unit = after_number && UNITS.contains(&core);
        after_number = number(word).is_some();
        match (after_number, is_unit) {
            (true, _) => format!("#{tail}"),
            (_, true) => format!("u{tail}"),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Titles of the same skeleton in one: numbers that differ become their range, or `…` where their units differ too.
pub(crate) fn merged(titles: &[&str]) -> String {
    let rows: Vec<Vec<&str>> = titles.iter().map(|title| title.split(' ').collect()).collect();
    let same = |column: usize| rows.iter().all(|row| row.get(column) == rows[0].get(column));
    let mut words: Vec<String> = Vec::new();
    for (column, word) in rows[0].iter().enumerate() {
        let next_is_unit = rows[0].get(column + 1).is_some_and(|next| UNITS.contains(&split(next).0));
        match number(word) {
            Some(_) if next_is_unit && !same(column + 1) => words.push("…".to_owned()),
            Some(_) if !same(column) => words.push(range(rows.iter().map(|row| row[column]))),
            _ if same(column) => words.push((*word).to_owned()),
            // A unit that differs: its number has been left out already.
            _ => words.last_mut().into_iter().for_each(|last| last.push_str(split(word).1)),
        }
    }
    words.join(" ")
}

/// `99 to 101`, with what stands behind the number.
fn range<'a>(words: impl Iterator<Item = &'a str> + Clone) -> String {
    let value = |word: &&str| number(word).unwrap_or_default();
    let by_value = |left: &&str, right: &&str| value(left).total_cmp(&value(right));
    match (words.clone().min_by(by_value), words.max_by(by_value)) {
        (Some(low), Some(high)) => format!("{} to {high}", split(low).0),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Severity;

    fn finding(stage: &str, title: &str) -> Finding {
        let finding = Finding::about_run(Severity::Warning, "r", title).evidence("1 + 1 = 2");
        Finding { stage: Some(stage.into()), ..finding }
    }

    fn folded(titles: &[&str]) -> Vec<Finding> {
        let names: Vec<String> = (0..titles.len()).map(|index| format!("s{index}")).collect();
        let said = names.iter().zip(titles).map(|(name, title)| finding(name, title)).collect();
        fold(said, &names.into_iter().collect())
    }

    #[test]
    fn the_same_words_are_said_once_with_the_range_of_their_numbers() {
        let all = folded(&[
            "busy 9 %: 1 of 4",
            "busy 11 %: 2 of 4",
            "busy 10 %: 1 of 4",
            "busy 30 %: 1 of 4",
            "idle",
        ]);
        assert_eq!(
            all.iter().map(|finding| finding.title.as_str()).collect::<Vec<_>>(),
            ["busy 9 to 30 %: 1 to 2 of 4", "idle"]
        );
        assert_eq!((all[0].place().as_str(), all[0].stages.len()), ("4 stages", 4));
        assert_eq!(all[0].evidence[0], "stages: s0, s1, s2, s3");
        assert!(all[0].evidence.contains(&"s1: busy 11 %: 2 of 4".to_owned()), "{:?}", all[0].evidence);
        assert_eq!(all[0].evidence.last().unwrap(), "1 + 1 = 2");
        assert_eq!(all[1].stage.as_deref(), Some("s4"));
    }

    #[test]
    fn numbers_of_other_units_are_left_out() {
        let all = folded(&[
            "took 9.00 ms, then 3",
            "took 1.00 s, then 3",
            "took 2.00 s, then 3",
            "took 2.00 s, then 3",
        ]);
        assert_eq!(all[0].title, "took …, then 3");
    }

    #[test]
    fn three_stages_and_other_words_stay_apart() {
        assert_eq!(folded(&["busy 1 %", "busy 2 %", "busy 3 %"]).len(), 3);
        assert_eq!(folded(&["rose", "fell", "rose", "fell", "rose"]).len(), 5);
        let said = (0..5).map(|_| finding("elsewhere", "busy")).collect();
        assert_eq!(fold(said, &BTreeSet::new()).len(), 5, "stages of no sweep");
    }
}
