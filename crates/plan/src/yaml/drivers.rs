//! The `drivers` of a document: how a run is spread over the drivers of a controller.

use crate::plan::{Drivers, OnLoss, Stage, Wanted};
use tidemark_keys::kinds::{Duration, Kind as _, Parsed, Text, Whole, Word};
use tidemark_keys::shapes::{Either, List, Map};
use tidemark_keys::tree::{self, Entry, Value};
use tidemark_keys::{AnyKey, Key, Mapping, Problem, Table};
use tidemark_kubernetes::{PODS, pods};

/// More drivers than this are treated as a mistake.
const MOST: u32 = 10_000;

/// A driver speaks every second: less than this would take a busy moment for a loss. Nanoseconds.
const LEAST_SILENCE_NS: u64 = 2_000_000_000;

/// Longer than this is as good as never, nanoseconds.
const LONGEST_SILENCE_NS: u64 = 3_600_000_000_000;

/// Which drivers: all, a number of them, or their names.
type Which = Either<Word<()>, Either<Whole<u32>, List<Text>>>;

const WHICH: Which = Either(Word(&[("all", ())]), Either(Whole(1, MOST), List(Text)));

/// The key.
pub(super) static DRIVERS: Key<Either<Which, Map>> = Key::new(
    "drivers",
    "Drivers of a controller that take part, or all about how a run is spread over them",
    Either(WHICH, Map(&MAPPING)),
)
.default("all");

static MAPPING: Mapping = Mapping::new(
    "drivers",
    "How a run is spread over the drivers of a controller",
    &[&USE, &ON_LOSS, &LOST_AFTER, &KUBERNETES],
);

static USE: Key<Which> = Key::new(
    "use",
    "Drivers that take part: all that are connected when the run begins; this many, whichever are free; or these",
    WHICH,
)
.default("all");
static ON_LOSS: Key<Word<OnLoss>> = Key::new(
    "on_loss",
    "When a driver is lost: stop the stage, after which only stages that clean up still run, or continue with the others. \
     A work that does each of its operations once fails in either case",
    Word(&[("stop", OnLoss::Stop), ("continue", OnLoss::Continue)]),
)
.default("stop");
static LOST_AFTER: Key<Parsed<u64>> = Key::new(
    "lost_after",
    "A driver that is silent for this long is lost",
    Parsed("duration, 2s to 1h", |text| match Duration.read(text)? {
        ns if (LEAST_SILENCE_NS..=LONGEST_SILENCE_NS).contains(&ns) => Ok(ns),
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write a duration from 2s to 1h")),
    }),
)
.default("10s");

static KUBERNETES: Key<Map> = Key::of(&PODS).otherwise("as is usual for each key");

/// Reads what is under `drivers`, if present: a mapping, or only which drivers.
pub(super) fn drivers(table: &mut Table<'_>) -> Option<Drivers> {
    let entry = table.entry(&DRIVERS)?;
    if !matches!(entry.node.value, Value::Map(_)) {
        let wanted = wanted(table, &DRIVERS, entry).unwrap_or_default();
        return Some(Drivers { wanted, ..Drivers::default() });
    }
    let mut own = table.below(&DRIVERS, entry).of(&MAPPING);
    let wanted = own.entry(&USE).and_then(|entry| wanted(&own, &USE, entry)).unwrap_or_default();
    let (on_loss, lost_after_ns) = (own.value(&ON_LOSS), own.value(&LOST_AFTER));
    let drivers = Drivers { wanted, on_loss, lost_after_ns, pods: own.table(&KUBERNETES).map(pods) };
    own.finish();
    Some(drivers)
}

/// Whether a document claims a bucket for its drivers. What the claim says stands in variables, which have no values before.
pub fn claims_bucket(text: &str) -> bool {
    let Ok(root) = tree::parse(text) else { return false };
    let mut keys = ["drivers", "kubernetes", "bucket"].into_iter();
    keys.try_fold(&root, |node, key| Some(&node.entry(key)?.node)).is_some()
}

/// `all`, or a number of drivers.
fn count(text: &str) -> Result<Wanted, Problem> {
    match text {
        "all" => Ok(Wanted::All),
        _ => Whole(1, MOST).read(text).map(Wanted::Count).map_err(|problem| {
            let help = format!("write all, a number of drivers up to {MOST}, or a list of names: [d1, d2]");
            Problem::new(problem.message, help)
        }),
    }
}

/// `all`, a number of drivers, or the names of some.
fn wanted(table: &Table<'_>, key: &'static AnyKey, entry: &Entry) -> Option<Wanted> {
    let Value::List(nodes) = &entry.node.value else {
        return table.scalar(key, &entry.node, count);
    };
    let names = table.items(key, &Text, nodes);
    if names.is_empty() {
        let message = format!("`{}` lists no drivers", key.name);
        table.log().error(&entry.key_span, message, "write names, or all");
    }
    if let Some((_, twice)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        let message = format!("`{}` lists {twice} twice", key.name);
        table.log().error(&entry.key_span, message, "list each driver once");
    }
    Some(Wanted::Named(names))
}

/// Reports works that are pinned to drivers that do not take part.
pub(super) fn check_pins(table: &mut Table<'_>, drivers: &Drivers, stages: &[Stage]) {
    let (Wanted::Named(names), Some(entry)) = (&drivers.wanted, table.entry(&DRIVERS)) else { return };
    let works = stages.iter().flat_map(|stage| &stage.works);
    let mut left_out: Vec<&String> = Vec::new();
    for pin in works.filter_map(|work| work.driver.as_ref()) {
        if !names.contains(pin) && !left_out.contains(&pin) {
            left_out.push(pin);
            let message = format!("a work is pinned to the driver {pin}, which is not in `drivers`");
            table.log().error(
                &entry.key_span,
                message,
                format!("add {pin} to the list, or change the work's `driver`"),
            );
        }
    }
}
