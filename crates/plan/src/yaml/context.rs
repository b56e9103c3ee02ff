//! What all works of a document share while they are read.

use super::environment::Environment;
use crate::defaults;
use crate::plan::Work;
use crate::room::{self, Room};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use tidemark_keys::Table;
use tidemark_measure::record::Note;
use tidemark_measure::units;

/// What all works of a document share.
pub struct Context<'a> {
    /// What the document refers to outside itself.
    pub environment: &'a Environment<'a>,
    /// Where random choices come from.
    pub seed: u64,
    /// What its sweeps may still grow to.
    pub budget: Budget,
    /// Where and how to report that a work has no target.
    pub missing_target: (Range<usize>, String),
    /// Notes on it.
    pub notes: RefCell<Vec<Note>>,
}

impl Context<'_> {
    /// Adds a note, once.
    pub fn note(&self, note: Note) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// What the works of a document may still grow to: a short text can ask for very many of them.
pub struct Budget {
    room: Room,
    /// Whether there was not enough of it.
    spent: Cell<bool>,
    points: Cell<u64>,
    named: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            room: Room::default(),
            spent: Cell::new(false),
            points: Cell::new(defaults::MOST_POINTS),
            named: Cell::new(defaults::MOST_NAMED),
        }
    }
}

impl Budget {
    /// Whether the document has grown to more than it may: reading ends then.
    pub(super) fn is_spent(&self) -> bool {
        self.spent.get()
    }

    /// Reserves the room of a work; false, and an error, if there is not enough.
    pub(super) fn work(&self, work: &Work, table: &Table<'_>) -> bool {
        self.fits(self.room.take(work), table)
    }

    /// Whether there is room for the works of a sweep, of which this is one; false, and an error, if there is not.
    pub fn sweep(&self, work: &Work, points: usize, table: &Table<'_>) -> bool {
        self.fits(self.room.has(work, points), table)
    }

    fn fits(&self, fits: bool, table: &Table<'_>) -> bool {
        // Once is enough: nothing else fits then.
        if !fits && !self.spent.replace(true) {
            let most = units::bytes(room::MOST as u64);
            let message = format!("all works of the document together take more than {most}");
            table.log().error(table.place(), message, "use fewer works, or shorter lists and names");
        }
        fits
    }

    /// Reserves this many points of a sweep; false if that is too many.
    pub fn points(&self, count: u64) -> bool {
        take(&self.points, count)
    }

    /// Reserves volumes, counted once for each work that names them; false, and an error, if that is too many.
    pub fn volumes(&self, count: u64, table: &Table<'_>) -> bool {
        let fits = take(&self.named, count);
        if !fits {
            let most = units::count(defaults::MOST_NAMED);
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
