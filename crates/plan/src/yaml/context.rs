//! What all works of a document share while they are read.

use super::environment::Environment;
use super::table::Table;
use crate::defaults;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use tidemark_measure::record::Note;
use tidemark_measure::units;

/// What all works of a document share.
pub(super) struct Context<'a> {
    pub(super) environment: &'a Environment<'a>,
    pub(super) seed: u64,
    /// What its sweeps may still grow to.
    pub(super) budget: Budget,
    /// Where and how to report that a work has no target.
    pub(super) missing_target: (Range<usize>, String),
    /// Notes on it.
    pub(super) notes: RefCell<Vec<Note>>,
}

impl Context<'_> {
    /// Adds a note, once.
    pub(super) fn note(&self, note: Note) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// What the works of a document may still grow to: a short text can ask for very many of them.
pub(super) struct Budget {
    points: Cell<u64>,
    volumes: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { points: Cell::new(defaults::MOST_POINTS), volumes: Cell::new(defaults::MOST_VOLUMES_NAMED) }
    }
}

impl Budget {
    /// Reserves this many points of a sweep; false if that is too many.
    pub(super) fn points(&self, count: u64) -> bool {
        take(&self.points, count)
    }

    /// Reserves volumes, counted once for each work that names them; false, and an error, if that is too many.
    pub(super) fn volumes(&self, count: u64, table: &Table<'_>) -> bool {
        let fits = take(&self.volumes, count);
        if !fits {
            let most = units::count(defaults::MOST_VOLUMES_NAMED);
            let message = format!("all works of the document together name more than {most} volumes");
            table.log().error(table.place(), message, "use fewer volumes or fewer works");
        }
        fits
    }
}

fn take(left: &Cell<u64>, count: u64) -> bool {
    let rest = left.get().checked_sub(count);
    left.set(rest.unwrap_or(left.get()));
    rest.is_some()
}
