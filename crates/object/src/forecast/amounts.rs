//! How much an action does: operations, objects, bytes.

use super::touch::Touch;
use super::world::{Stored, World};
use crate::job::Verb;
use tidemark_plan::forecast::{Action, Amount};

/// What an action does, given what is stored before its stage, and what the stage itself writes.
pub(super) fn action(touch: &Touch<'_>, objects: &World, beside: &World) -> Action {
    let operations = touch.operations();
    let count = count(touch, operations);
    let (held, bytes) = match touch.verb() {
        // Their sizes are those of files here.
        Verb::PutFile { .. } => (Amount::Open, ended_by_bytes(touch)),
        _ if touch.writes() || matches!(touch.verb(), Verb::WriteLocal { .. }) => {
            let (bounds, mean) = touch.sizes();
            (count.times(bounds, mean), moved(touch, operations, bounds, mean))
        }
        Verb::Get => {
            let found = Found::by(touch, objects, beside);
            let bytes = found.whole.then(|| moved(touch, operations, found.sizes(), found.mean()));
            (found.held(count), bytes.unwrap_or(Amount::Open))
        }
        Verb::GetRange { length, .. } => {
            let bytes = moved(touch, operations, (*length, *length), *length as f64);
            (Found::by(touch, objects, beside).held(count), bytes)
        }
        _ if touch.deletes() => {
            let held = Found::by(touch, objects, beside).held(count);
            (held, held)
        }
        _ => (Amount::Open, Amount::Exactly(0)),
    };
    let label = touch.work.labels.get(touch.index);
    Action {
        label: label.map_or_else(String::new, |label| label.label.clone()),
        ratio: label.map_or(100.0, |label| label.weight),
        does: touch.does(),
        names: touch.names(),
        operations,
        count,
        held,
        bytes,
    }
}

/// How many different things it touches.
fn count(touch: &Touch<'_>, operations: Amount) -> Amount {
    let all = touch.count();
    let each = match touch.verb() {
        Verb::DeleteMany { count } => u64::from(*count),
        _ => 1,
    };
    match operations {
        Amount::Exactly(number) if touch.is_scan() => Amount::Exactly(number),
        Amount::Exactly(_) if touch.is_certain() => Amount::Exactly(all),
        Amount::Exactly(number) | Amount::UpTo(number) => Amount::UpTo(number.saturating_mul(each).min(all)),
        // Chance may choose it more often than on average.
        Amount::About(_) => Amount::UpTo(touch.work.load.stop.operations.map_or(all, |most| most.min(all))),
        Amount::Open => Amount::UpTo(all),
    }
}

/// Bytes that operations of these sizes move.
fn moved(touch: &Touch<'_>, operations: Amount, bounds: (u64, u64), mean: f64) -> Amount {
    match operations {
        Amount::Open => ended_by_bytes(touch),
        known => known.times(bounds, mean),
    }
}

/// Bytes of operations whose number is open: those that end the work, if some do.
fn ended_by_bytes(touch: &Touch<'_>) -> Amount {
    let (stop, alone) = (&touch.work.load.stop, touch.work.load.actions == 1);
    match (stop.bytes, stop.window_ns) {
        (Some(bytes), None) if alone => Amount::About(bytes),
        (Some(bytes), _) => Amount::UpTo(bytes),
        (None, _) => Amount::Open,
    }
}

/// What is stored of all that an action may touch.
struct Found {
    /// Before its stage.
    stored: Vec<Stored>,
    /// By its stage, or in the place of what was there.
    beside: Vec<Stored>,
    /// Whether all of it is stored before.
    whole: bool,
    /// How many objects it may touch.
    all: u64,
}

impl Found {
    fn by(touch: &Touch<'_>, objects: &World, beside: &World) -> Self {
        let within = |world: &World| -> Vec<Stored> {
            let place = touch.place();
            place
                .iter()
                .flat_map(|place| touch.areas.iter().flat_map(|area| world.within(place, area)))
                .collect()
        };
        let (stored, beside, all) = (within(objects), within(beside), touch.count());
        let count = stored.iter().map(|one| one.area.count()).fold(0, u64::saturating_add);
        Self { whole: count == all && touch.place().is_some(), stored, beside, all }
    }

    fn each(&self) -> impl Iterator<Item = &Stored> {
        self.stored.iter().chain(&self.beside)
    }

    fn sizes(&self) -> (u64, u64) {
        let (least, most) = (self.each().map(|one| one.least).min(), self.each().map(|one| one.most).max());
        (least.unwrap_or(0), most.unwrap_or(0))
    }

    fn mean(&self) -> f64 {
        let count: f64 = self.each().map(|one| one.area.count() as f64).sum();
        let bytes: f64 = self.each().map(|one| one.area.count() as f64 * one.mean).sum();
        if count > 0.0 { bytes / count } else { 0.0 }
    }

    /// Bytes of the objects that are there.
    fn held(&self, count: Amount) -> Amount {
        let sizes = self.sizes();
        let each = self.each().map(|one| one.area.count().saturating_mul(one.most));
        let most = each.fold(0, u64::saturating_add).min(self.all.saturating_mul(sizes.1));
        let sure = self.whole && self.beside.is_empty() && self.stored.iter().all(|one| one.certain);
        match count {
            _ if self.each().next().is_none() => Amount::Open,
            Amount::Exactly(_) if sure && self.stored.iter().all(|one| one.least == one.most) => {
                Amount::Exactly(most)
            }
            Amount::Exactly(number) if sure => Amount::Exactly(number).times(sizes, self.mean()),
            Amount::UpTo(number) | Amount::About(number) => {
                Amount::UpTo(most.min(number.saturating_mul(sizes.1)))
            }
            Amount::Exactly(_) | Amount::Open => Amount::UpTo(most),
        }
    }
}
