//! The intensities of loads: lists of levels, or a search; and how a level gets into a document.

use super::scope::{self, TARGET};
use crate::engine::Engine;
use crate::evaluation::Levels;
use crate::level::{LevelAxis, not_taken};
use crate::registry::Registry;
use std::ops::Range;
use tidemark_keys::kinds::{Kind as _, Parsed, Share, Whole};
use tidemark_keys::shapes::Refer;
use tidemark_keys::tree::{Entry, Node, Value};
use tidemark_keys::{AnyKey, Key, Log, Problem, Table};
use tidemark_measure::axis::Axis;
use tidemark_measure::evaluation::{Level, Search};
use tidemark_measure::units;

/// More levels of one load than this are treated as a mistake.
const MOST_LEVELS: usize = 10_000;

/// The levels to measure.
pub(crate) static LEVELS: Key<Refer> = Key::new(
    "levels",
    "Load intensities; several axes multiply; without an axis there is one level",
    Refer("levels"),
);

/// The search for a level, in place of levels.
pub(crate) static SEARCH: Key<Refer> = Key::new(
    "search",
    "Search for the highest load within the service level, over one axis, instead of levels",
    Refer("search"),
);

/// How exactly a search looks.
pub(crate) static WITHIN: Key<Parsed<f64>> = Key::new(
    "within",
    "Precision",
    Parsed("share, 0.1 % to 50 %", |text| match Share.read(text)? {
        share if (0.001..=0.5).contains(&share) => Ok(share),
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write from 0.1% to 50%, such as 5%")),
    }),
)
.default("5%");

/// How many runs a search may take.
pub(crate) static RUNS: Key<Whole<u32>> = Key::new(
    "runs",
    "Most runs on each arm; with fewer than it needs, the search says how far it came",
    Whole(4, 1000),
)
.default("40");

/// A value that the document gives for an axis.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    axis: Axis,
    /// As the document writes it.
    text: String,
    place: Range<usize>,
}

/// All values that the document gives for the axes of a load.
pub(super) type Places = Vec<Placed>;

/// The intensities that a mapping gives.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) levels: Levels,
    /// Where they stand.
    pub(super) places: Places,
    /// The place of the key that gives them.
    pub(super) key: Range<usize>,
}

/// The value of an axis as the document writes it, or would.
pub(super) fn text(places: &Places, axis: &Axis) -> String {
    let known = places.iter().find(|known| known.axis == *axis);
    known.map_or_else(|| axis.value.to_string(), |known| known.text.clone())
}

/// Where a value of an axis stands. One that a search came to stands where its range does.
pub(super) fn place(places: &Places, axis: &Axis) -> Option<Range<usize>> {
    let same_axis = || places.iter().find(|known| known.axis.name == axis.name);
    let known = places.iter().find(|known| known.axis == *axis).or_else(same_axis)?;
    Some(known.place.clone())
}

/// Reads `levels` or `search`, if one of them is there; `axes` are those that loads may have. Levels without an axis are one
/// level that changes nothing.
pub(super) fn read(table: &mut Table<'_>, axes: &[&'static LevelAxis]) -> Option<Given> {
    table.contradiction(&LEVELS, &SEARCH, "list levels, or search for them");
    if let Some(entry) = table.entry(&SEARCH) {
        return search(table.below(&SEARCH, entry), entry, axes);
    }
    let entry = table.entry(&LEVELS)?;
    let mut own = table.below(&LEVELS, entry);
    own.declare(axes.iter().map(|axis| &axis.values as &AnyKey));
    let (mut levels, mut places): (Vec<Level>, Places) = (vec![Level::new()], Vec::new());
    let mut given: Vec<(usize, &LevelAxis)> = Vec::new();
    for axis in axes {
        given.extend(own.entry(&axis.values).map(|entry| (entry.key_span.start, *axis)));
    }
    // In the document's order: the last axis varies fastest.
    given.sort_unstable_by_key(|(start, _)| *start);
    for (_, axis) in given {
        let values = values(&mut own, axis);
        if levels.len().saturating_mul(values.len()) > MOST_LEVELS {
            let message =
                format!("the axes multiply to more than {} levels", units::count(MOST_LEVELS as u64));
            own.log().error(&entry.key_span, message, "shorten the lists");
            break;
        }
        let with = |level: &Level, value: &Placed| {
            let mut level = level.clone();
            level.push(value.axis.clone());
            level
        };
        levels = levels.iter().flat_map(|level| values.iter().map(|value| with(level, value))).collect();
        places.extend(values);
    }
    own.finish();
    Some(Given { levels: Levels::Listed(levels), places, key: entry.key_span.clone() })
}

/// The values of an axis: one, or a list.
fn values(table: &mut Table<'_>, axis: &LevelAxis) -> Places {
    let (nodes, name) = (table.list(&axis.values), axis.name());
    if nodes.is_empty() || nodes.len() > MOST_LEVELS {
        let message = format!("the list of `{name}` has {} values", nodes.len());
        table.log().error(table.place(), message, format!("write from 1 to {MOST_LEVELS}"));
        return Vec::new();
    }
    let mut values = Places::new();
    for node in nodes {
        let read = table.scalar(&axis.values, node, |text| Ok((text.trim().to_owned(), axis.read(text)?)));
        let Some((text, value)) = read else { continue };
        if values.iter().any(|known| known.axis == value) {
            let help = "remove one of them; to repeat a measurement, use `repeats`";
            table.log().error(&node.span, format!("`{name}`: {text} is in the list twice"), help);
        }
        values.push(Placed { axis: value, text, place: node.span.clone() });
    }
    values
}

fn search(mut table: Table<'_>, entry: &Entry, axes: &[&'static LevelAxis]) -> Option<Given> {
    table.declare(axes.iter().map(|axis| &axis.range as &AnyKey));
    table.declare([&WITHIN as &AnyKey, &RUNS]);
    let given: Vec<&LevelAxis> = axes.iter().copied().filter(|axis| table.has(&axis.range)).collect();
    let (within, runs) = (table.value(&WITHIN), table.value(&RUNS));
    let found = match given[..] {
        [axis] => {
            let entry = table.entry(&axis.range);
            let read = |entry: &Entry| table.scalar(&axis.range, &entry.node, |text| range(axis, text));
            entry.and_then(read).map(|range| (axis, range))
        }
        [] => {
            let help = "write the axis and its range, such as `workers: 1-2560` or `rate: 100/s-20k/s`";
            table.log().error(&entry.key_span, "`search` has no axis", help);
            None
        }
        _ => {
            let names: Vec<&str> = given.iter().map(|axis| axis.name()).collect();
            let message = format!("a search has one axis, not {}", names.join(" and "));
            table.log().error(&entry.key_span, message, "keep one; put fixed values into the load");
            None
        }
    };
    let place = given.first().and_then(|axis| table.entry(&axis.range)).map(|axis| axis.node.span.clone());
    table.finish();
    let (axis, (from, to)) = found?;
    let search = Search { axis: axis.name().to_owned(), unit: axis.unit(), from, to, within, runs };
    let levels = Levels::Searched(search);
    let ends = levels.known().into_iter().flatten();
    let placed =
        |axis: Axis| Placed { text: axis.value.to_string(), axis, place: place.clone().unwrap_or_default() };
    let places = ends.map(placed).collect();
    Some(Given { levels, places, key: entry.key_span.clone() })
}

fn range(axis: &LevelAxis, text: &str) -> Result<(f64, f64), Problem> {
    let Some((from, to)) = text.split_once('-') else {
        let help = "write the lowest and the highest, such as 1-2560 or 100/s-20k/s";
        return Err(Problem::new(format!("'{text}' is not a range"), help));
    };
    let number = |text: &str| Ok::<_, Problem>(axis.read(text.trim())?.value.number().unwrap_or(0.0));
    let (from, to) = (number(from)?, number(to)?);
    match from < to {
        true => Ok((from, to)),
        false => Err(Problem::new(format!("'{text}' is not ascending"), "write the lowest first")),
    }
}

/// A level that is to be set in every load of a workload's tree.
pub(super) struct Setting<'a> {
    pub(super) level: &'a Level,
    /// Where its values stand in the evaluation.
    pub(super) places: &'a Places,
    /// Whether the workload is in the evaluation's text, too.
    pub(super) in_place: bool,
    pub(super) registry: &'a Registry,
    pub(super) log: &'a Log,
}

/// A value that a level has put into a load.
pub(super) struct Put {
    pub(super) axis: Axis,
    /// As the document writes it.
    pub(super) text: String,
    /// Where it stands: in the evaluation, or at the key of the load.
    pub(super) span: Range<usize>,
}

impl Setting<'_> {
    /// Sets the level; `lent` is the engine of the target that loads without one get. Gives what was put, and how many loads
    /// there are. A value that the engine of a load does not take is an error.
    pub(super) fn apply(&self, root: &mut Node, lent: Option<&'static str>) -> (Vec<Put>, usize) {
        let (mut put, mut count) = (Vec::new(), 0);
        let of_document = self.engine(root, lent);
        let Some(stages) = root.entry_mut("stages") else { return (put, count) };
        let stages = match &mut stages.node.value {
            Value::List(stages) => stages.iter_mut().collect(),
            Value::Map(_) => vec![&mut stages.node],
            _ => Vec::new(),
        };
        for stage in stages {
            let of_stage = self.engine(stage, of_document);
            let Value::Map(entries) = &mut stage.value else { continue };
            let mut loads: Vec<&mut Entry> = Vec::new();
            for entry in entries {
                if entry.key == "load" {
                    loads.push(entry);
                    continue;
                }
                match &mut entry.node.value {
                    Value::List(works) if entry.key == "works" => {
                        loads.extend(works.iter_mut().filter_map(|work| work.entry_mut("load")));
                    }
                    Value::Map(works) if entry.key == "works" => {
                        loads.extend(works.iter_mut().filter(|work| work.key == "load"));
                    }
                    _ => {}
                }
            }
            count += loads.len();
            for load in loads {
                let engine = self.engine(&load.node, of_stage).and_then(|name| self.registry.engine(name));
                // Without an engine there is an error in the target, and nobody reads the load.
                if let Some(engine) = engine.or_else(|| self.registry.claimant("load", &load.node)) {
                    self.set(load, engine, &mut put);
                }
            }
        }
        (put, count)
    }

    /// The engine of the target in a mapping, or of that above it.
    fn engine(&self, node: &Node, above: Option<&'static str>) -> Option<&'static str> {
        match node.entry(TARGET.name).filter(|entry| entry.node.value != Value::Nothing) {
            Some(entry) => scope::engine_of(&entry.node, self.registry),
            None => above,
        }
    }

    /// Sets the level's keys in one load.
    fn set(&self, load: &mut Entry, engine: &dyn Engine, put: &mut Vec<Put>) {
        let Value::Map(entries) = &mut load.node.value else { return };
        let axes = engine.axes();
        for axis in self.level {
            let place = place(self.places, axis).filter(|_| self.in_place);
            let (text, span) = (text(self.places, axis), place.unwrap_or_else(|| load.key_span.clone()));
            if !axes.iter().any(|known| known.name() == axis.name) {
                let subject = format!("loads on {}", engine.subject());
                self.log.push(not_taken(axis, &text, span, &subject, &axes));
                continue;
            }
            let node = Node { value: Value::Scalar(text.clone()), span: span.clone() };
            let entry = Entry { key: axis.name.clone(), key_span: span.clone(), node };
            match entries.iter_mut().find(|known| known.key == axis.name) {
                Some(known) => *known = entry,
                None => entries.push(entry),
            }
            put.push(Put { axis: axis.clone(), text, span });
        }
    }
}
