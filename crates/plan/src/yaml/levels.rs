//! The intensities of loads: lists of levels, or a search; and how a level gets into a document.

use crate::defaults;
use crate::evaluation::Levels;
use std::ops::Range;
use tidemark_keys::kinds::{Kind as _, Parsed, Rate, Share, Whole};
use tidemark_keys::shapes::{Map, OneOrList};
use tidemark_keys::tree::{Entry, Node, Value};
use tidemark_keys::{AnyKey, Key, Mapping, Problem, Table};
use tidemark_measure::evaluation::{Level, Search};
use tidemark_measure::units;

pub(super) static LEVELS: Key<Map> = Key::of(&EACH);
pub(super) static SEARCH: Key<Map> = Key::of(&OVER);

static EACH: Mapping = Mapping::new(
    "levels",
    "Load intensities; several axes multiply; without an axis there is one level",
    &[&WORKERS, &RATE, &DEPTH, &CLIENTS],
);
static WORKERS: Key<OneOrList<Whole<u32>>> =
    Key::new("workers", "Workers of loads on objects", OneOrList(Whole(1, defaults::MOST_WORKERS)));
static RATE: Key<OneOrList<Rate>> = Key::new("rate", "Operations per time of each load", OneOrList(Rate));
static DEPTH: Key<OneOrList<Whole<u32>>> =
    Key::new("depth", "Operations in flight per client", OneOrList(Whole(1, defaults::MOST_DEPTH)));
static CLIENTS: Key<OneOrList<Whole<u32>>> =
    Key::new("clients", "Clients of loads on volumes", OneOrList(Whole(1, defaults::MOST_WORKERS)));

static OVER: Mapping = Mapping::new(
    "search",
    "A search for the highest load within the service level, over one axis, instead of levels",
    &[&WORKERS_RANGE, &RATE_RANGE, &DEPTH_RANGE, &CLIENTS_RANGE, &WITHIN_KEY],
)
.one_of(&[&WORKERS_RANGE, &RATE_RANGE, &DEPTH_RANGE, &CLIENTS_RANGE]);
static WORKERS_RANGE: Key<Parsed<String>> =
    Key::new("workers", "The lowest and the highest, such as 1-2560", RANGE);
static RATE_RANGE: Key<Parsed<String>> =
    Key::new("rate", "The lowest and the highest, such as 100/s-20k/s", RANGE);
static DEPTH_RANGE: Key<Parsed<String>> =
    Key::new("depth", "The lowest and the highest, such as 1-64", RANGE);
static CLIENTS_RANGE: Key<Parsed<String>> =
    Key::new("clients", "The lowest and the highest, such as 1-64", RANGE);
const RANGE: Parsed<String> = Parsed("range", |text| Ok(text.to_owned()));
static WITHIN_KEY: Key<Parsed<f64>> = Key::new(
    "within",
    "Precision",
    Parsed("share, 0.1 % to 50 %", |text| match Share.read(text)? {
        share if (0.001..=0.5).contains(&share) => Ok(share),
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write from 0.1% to 50%, such as 5%")),
    }),
)
.default("5%");

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
    table.contradiction(&LEVELS, &SEARCH, "list levels, or search for them");
    if let Some(entry) = table.entry(&SEARCH) {
        return search(table.below(&SEARCH, entry).of(&OVER), entry);
    }
    let entry = table.entry(&LEVELS)?;
    let mut own = table.below(&LEVELS, entry).of(&EACH);
    let (mut levels, mut places): (Vec<Level>, Places) = (vec![Level::new()], Vec::new());
    let mut axes: Vec<(usize, &'static AnyKey)> = Vec::new();
    for axis in EACH.keys {
        if let Some(entry) = own.entry(*axis) {
            axes.push((entry.key_span.start, *axis));
        }
    }
    // In the document's order: the last axis varies fastest.
    axes.sort_unstable_by_key(|(at, _)| *at);
    for (_, axis) in axes {
        let values = values(&mut own, axis);
        let axis = axis.name;
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
fn values(table: &mut Table<'_>, key: &'static AnyKey) -> Vec<(String, Range<usize>)> {
    let (nodes, axis) = (table.list(key), key.name);
    if nodes.is_empty() || nodes.len() > MOST_LEVELS {
        let message = format!("the list of `{axis}` has {} values", nodes.len());
        table.log().error(table.place(), message, format!("write from 1 to {MOST_LEVELS}"));
        return Vec::new();
    }
    let mut seen: Vec<f64> = Vec::new();
    let mut values = Vec::new();
    for node in nodes {
        let read = table.scalar(key, node, |text| Ok((text.trim().to_owned(), number(axis, text)?)));
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
            return match Rate.read(text)? {
                0.0 => Err(Problem::new("the rate is zero", "write a rate such as 500/s")),
                rate => Ok(rate),
            };
        }
        "depth" => defaults::MOST_DEPTH,
        _ => defaults::MOST_WORKERS,
    };
    Ok(f64::from(Whole(1, most).read(text.trim())?))
}

fn search(mut table: Table<'_>, entry: &Entry) -> Option<Given> {
    let axes: Vec<&'static AnyKey> = OVER.one_of.iter().copied().filter(|axis| table.has(*axis)).collect();
    let help = "write the axis and its range, such as `workers: 1-2560` or `rate: 100/s-20k/s`";
    let within = table.get(&WITHIN_KEY);
    let found = match axes[..] {
        [axis] => table
            .entry(axis)
            .and_then(|entry| table.scalar(axis, &entry.node, |text| range(axis.name, text)))
            .map(|range| (axis.name, range)),
        [] => {
            table.missing(&WORKERS_RANGE, help);
            None
        }
        _ => {
            let names: Vec<_> = axes.iter().map(|axis| axis.name).collect();
            let message = format!("a search has one axis, not {}", names.join(" and "));
            table.log().error(&entry.key_span, message, "keep one; put fixed values into the load");
            None
        }
    };
    let place = axes.first().and_then(|axis| table.entry(*axis)).map(|axis| axis.node.span.clone());
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
