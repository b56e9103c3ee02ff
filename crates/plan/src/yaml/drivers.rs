//! The `drivers` of a document: how a run is spread over the drivers of a controller.

use super::observe::texts;
use super::table::{Problem, Table, text, whole};
use super::tree::{Entry, Value};
use crate::plan::{Drivers, OnLoss, Stage, Wanted};
use tidemark_measure::units;

/// More drivers than this are treated as a mistake.
const MOST: u64 = 10_000;

/// A driver speaks every second: less than this would take a busy moment for a loss. Nanoseconds.
const LEAST_SILENCE_NS: u64 = 2_000_000_000;

/// Longer than this is as good as never, nanoseconds.
const LONGEST_SILENCE_NS: u64 = 3_600_000_000_000;

/// Reads what is under `drivers`, if present: a mapping, or only which drivers.
pub(super) fn drivers(table: &mut Table<'_>) -> Option<Drivers> {
    let entry = table.entry("drivers")?;
    let mut drivers = Drivers::default();
    if !matches!(entry.node.value, Value::Map(_)) {
        drivers.wanted = wanted(table, "drivers", entry).unwrap_or_default();
        return Some(drivers);
    }
    let mut own = table.below("`drivers`", entry);
    if let Some(entry) = own.entry("use") {
        drivers.wanted = wanted(&mut own, "use", entry).unwrap_or_default();
    }
    let losses = [("stop", OnLoss::Stop), ("continue", OnLoss::Continue)];
    drivers.on_loss = own.word("on_loss", &losses).unwrap_or_default();
    let silence = own.read("lost_after", |text| match units::parse_duration_ns(text)? {
        ns if (LEAST_SILENCE_NS..=LONGEST_SILENCE_NS).contains(&ns) => Ok(ns),
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write a duration from 2s to 1h")),
    });
    drivers.lost_after_ns = silence.unwrap_or(drivers.lost_after_ns);
    own.finish();
    Some(drivers)
}

/// `all`, a number of drivers, or the names of some.
fn wanted(table: &mut Table<'_>, key: &'static str, entry: &Entry) -> Option<Wanted> {
    if !matches!(entry.node.value, Value::List(_)) {
        return table.scalar(&entry.node, key, |text| match text {
            "all" => Ok(Wanted::All),
            _ => whole(text, &(1..=MOST)).map(|count| Wanted::Count(count as u32)).map_err(|problem| {
                let help =
                    format!("write all, a number of drivers up to {MOST}, or a list of names: [d1, d2]");
                Problem::new(problem.message, help)
            }),
        });
    }
    let names = texts(table, key, text);
    if names.is_empty() {
        table.log().error(&entry.key_span, format!("`{key}` lists no drivers"), "write names, or all");
    }
    if let Some((_, twice)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        let message = format!("`{key}` lists {twice} twice");
        table.log().error(&entry.key_span, message, "list each driver once");
    }
    Some(Wanted::Named(names))
}

/// Reports works that are pinned to drivers that do not take part.
pub(super) fn check_pins(table: &mut Table<'_>, drivers: &Drivers, stages: &[Stage]) {
    let (Wanted::Named(names), Some(entry)) = (&drivers.wanted, table.entry("drivers")) else { return };
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
