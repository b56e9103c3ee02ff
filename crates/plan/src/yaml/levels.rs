//! The intensities of loads: lists of levels, or a search; and how a level gets into a document.

use super::table::{Problem, Table, whole};
use super::timing;
use super::tree::{Entry, Node, Value};
use crate::defaults;
use crate::evaluation::Levels;
use std::ops::Range;
use tidemark_measure::evaluation::{Level, Search};
use tidemark_measure::units;

/// What a level may set, as the keys of a load are called.
pub(crate) const AXES: [&str; 4] = ["workers", "rate", "depth", "clients"];

/// More levels of one load than this are treated as a mistake.
const MOST_LEVELS: usize = 10_000;

/// How exactly a search looks that does not say.
const WITHIN: f64 = 0.05;

/// Where each level of a load stands: axis, value, place.
pub(super) type Places = Vec<(String, String, Range<usize>)>;

/// The intensities that a mapping gives.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) levels: Levels,
    /// Where they stand.
    pub(super) places: Places,
    /// The place of the key that gives them.
    pub(super) key: Range<usize>,
}

/// Reads `levels` or `search`, if one of them is there. Levels without an axis are one level that changes nothing.
pub(super) fn read(table: &mut Table<'_>) -> Option<Given> {
    table.contradiction("levels", "search", "list levels, or search for them");
    if let Some(entry) = table.entry("search") {
        return search(table.below("`search`", entry), entry);
    }
    let entry = table.entry("levels")?;
    let mut own = table.below("`levels`", entry);
    let (mut levels, mut places): (Vec<Level>, Places) = (vec![Level::new()], Vec::new());
    let mut axes: Vec<(usize, &'static str)> = Vec::new();
    for axis in AXES {
        if own.has(axis) {
            axes.push((own.entry(axis).map_or(0, |entry| entry.key_span.start), axis));
        }
    }
    // In the document's order: the last axis varies fastest.
    axes.sort_unstable();
    for (_, axis) in axes {
        let values = values(&mut own, axis);
        if levels.len().saturating_mul(values.len()) > MOST_LEVELS {
            let message =
                format!("the axes multiply to more than {} levels", units::count(MOST_LEVELS as u64));
            own.log().error(&entry.key_span, message, "shorten the lists");
            break;
        }
        let with = |level: &Level, value: &String| {
            let mut level = level.clone();
            level.push((axis.to_owned(), value.clone()));
            level
        };
        levels = levels.iter().flat_map(|level| values.iter().map(|(value, _)| with(level, value))).collect();
        places.extend(values.into_iter().map(|(value, place)| (axis.to_owned(), value, place)));
    }
    own.finish();
    Some(Given { levels: Levels::Listed(levels), places, key: entry.key_span.clone() })
}

/// The values of an axis: one, or a list.
fn values(table: &mut Table<'_>, axis: &'static str) -> Vec<(String, Range<usize>)> {
    let nodes = table.list(axis).unwrap_or_default();
    if nodes.is_empty() || nodes.len() > MOST_LEVELS {
        let message = format!("the list of `{axis}` has {} values", nodes.len());
        table.log().error(table.place(), message, format!("write from 1 to {MOST_LEVELS}"));
        return Vec::new();
    }
    let mut seen: Vec<f64> = Vec::new();
    let mut values = Vec::new();
    for node in nodes {
        let read = table.scalar(node, axis, |text| Ok((text.trim().to_owned(), number(axis, text)?)));
        let Some((text, number)) = read else { continue };
        if seen.contains(&number) {
            let help = "remove one of them; to repeat a measurement, use `repeats`";
            table.log().error(&node.span, format!("`{axis}`: {text} is in the list twice"), help);
        }
        seen.push(number);
        values.push((text, node.span.clone()));
    }
    values
}

/// The value of an axis as a number.
///
/// # Errors
/// When it is none, or none that the axis can have.
pub fn number(axis: &str, text: &str) -> Result<f64, Problem> {
    let most = match axis {
        "rate" => {
            return match timing::rate(text)? {
                0.0 => Err(Problem::new("the rate is zero", "write a rate such as 500/s")),
                rate => Ok(rate),
            };
        }
        "depth" => defaults::MOST_DEPTH,
        _ => defaults::MOST_WORKERS,
    };
    Ok(whole(text.trim(), &(1..=u64::from(most)))? as f64)
}

fn search(mut table: Table<'_>, entry: &Entry) -> Option<Given> {
    let axes: Vec<&'static str> = AXES.into_iter().filter(|axis| table.has(axis)).collect();
    let help = "write the axis and its range, such as `workers: 1-2560` or `rate: 100/s-20k/s`";
    let within = table.read("within", |text| match units::parse_share(text)? {
        share if (0.001..=0.5).contains(&share) => Ok(share),
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write from 0.1% to 50%, such as 5%")),
    });
    let found = match axes[..] {
        [axis] => table.read(axis, |text| range(axis, text)).map(|range| (axis, range)),
        [] => {
            table.missing("workers", help);
            None
        }
        _ => {
            let message = format!("a search has one axis, not {}", axes.join(" and "));
            table.log().error(&entry.key_span, message, "keep one; put fixed values into the load");
            None
        }
    };
    let place = axes.first().and_then(|axis| table.entry(axis)).map(|axis| axis.node.span.clone());
    table.finish();
    let (axis, (from, to)) = found?;
    let search = Search { axis: axis.to_owned(), from, to, within: within.unwrap_or(WITHIN) };
    let levels = Levels::Searched(search);
    let places = levels.known().into_iter().flatten();
    let places = places.map(|(axis, value)| (axis, value, place.clone().unwrap_or_default())).collect();
    Some(Given { levels, places, key: entry.key_span.clone() })
}

fn range(axis: &str, text: &str) -> Result<(f64, f64), Problem> {
    let Some((from, to)) = text.split_once('-') else {
        let help = "write the lowest and the highest, such as 1-2560 or 100/s-20k/s";
        return Err(Problem::new(format!("'{text}' is not a range"), help));
    };
    let (from, to) = (number(axis, from.trim())?, number(axis, to.trim())?);
    match from < to {
        true => Ok((from, to)),
        false => Err(Problem::new(format!("'{text}' is not ascending"), "write the lowest first")),
    }
}

/// Puts a level into every load of a workload's tree. A value stands at the place that `places` has for it, else at its
/// load's key. Gives the places, and how many loads there are.
pub(super) fn apply(root: &mut Node, level: &Level, places: &Places) -> (Vec<Range<usize>>, usize) {
    let (mut put, mut count) = (Vec::new(), 0);
    let Some(stages) = root.entry_mut("stages") else { return (put, count) };
    let stages = match &mut stages.node.value {
        Value::List(stages) => stages.iter_mut().collect(),
        Value::Map(_) => vec![&mut stages.node],
        _ => Vec::new(),
    };
    for stage in stages {
        let Value::Map(entries) = &mut stage.value else { continue };
        for entry in entries {
            match (entry.key.as_str(), &mut entry.node.value) {
                ("load", _) => count += set(entry, level, places, &mut put),
                ("works", Value::List(works)) => {
                    let loads = works.iter_mut().filter_map(|work| work.entry_mut("load"));
                    count += loads.map(|load| set(load, level, places, &mut put)).sum::<usize>();
                }
                ("works", Value::Map(works)) => {
                    let loads = works.iter_mut().filter(|work| work.key == "load");
                    count += loads.map(|load| set(load, level, places, &mut put)).sum::<usize>();
                }
                _ => {}
            }
        }
    }
    (put, count)
}

/// Sets a level's keys in one load.
fn set(load: &mut Entry, level: &Level, places: &Places, put: &mut Vec<Range<usize>>) -> usize {
    let Value::Map(entries) = &mut load.node.value else { return 1 };
    for (axis, value) in level {
        let place = places.iter().find(|(known, text, _)| known == axis && text == value);
        // A value that a search came to stands where its range does.
        let place = place.or_else(|| places.iter().find(|(known, ..)| known == axis));
        let span = place.map_or(load.key_span.clone(), |(.., place)| place.clone());
        let node = Node { value: Value::Scalar(value.clone()), span: span.clone() };
        let entry = Entry { key: axis.clone(), key_span: span.clone(), node };
        match entries.iter_mut().find(|known| known.key == *axis) {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
        put.push(span);
    }
    1
}
