//! What the works of a run share: the seed, the clock of generations, and what was written where.

use crate::content::journal::{self, End};
use crate::content::table::{Table, UNIT};
use crate::identity::Identity;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tidemark_measure::rng::mix;
use tidemark_measure::units;
use tidemark_plan::policy::Access;

/// Bytes of a table's cell, unless a work's unit is smaller.
const CELL: u64 = 4096;

/// What the works of a run share. Content that one of them writes, another can verify.
pub struct DataSet {
    set: u32,
    origin: Instant,
    origin_ns: u64,
    tables: Option<Mutex<BTreeMap<u64, Arc<Table>>>>,
    notes: Mutex<Vec<String>>,
    /// The files of this machine that may be opened.
    access: Access,
    /// What was examined at the paths of volumes that are changed or removed.
    examined: Mutex<BTreeMap<PathBuf, Identity>>,
}

impl DataSet {
    /// A data set whose content comes from `seed`. With `verify_tables`, it follows which write each block must hold
    /// (8 bytes for 4 KiB of every volume, or for the unit of a work if that is smaller): needed when some work of
    /// the run verifies what it reads, to find lost, stale and torn writes.
    pub fn new(seed: u64, verify_tables: bool) -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            set: mix(seed, &[]) as u32,
            origin: Instant::now(),
            origin_ns: whole_units(since_1970.as_nanos() as u64),
            tables: verify_tables.then(Mutex::default),
            notes: Mutex::default(),
            access: Access::own(),
            examined: Mutex::default(),
        }
    }

    /// The same, which opens what `access` allows.
    pub(crate) fn within(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// The files of this machine that may be opened.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Keeps in mind what was examined at a path: nothing else is changed or removed there.
    pub(crate) fn expect(&self, path: &Path, examined: Identity) {
        locked(&self.examined).insert(path.to_owned(), examined);
    }

    /// What was examined at a path; `None`: nobody has examined anything.
    pub(crate) fn examined(&self, path: &Path) -> Option<Identity> {
        locked(&self.examined).get(path).cloned()
    }

    /// Deviations from the request that are not errors, in whole sentences: buffers that could not be
    /// registered, for instance.
    pub fn notes(&self) -> Vec<String> {
        locked(&self.notes).clone()
    }

    /// Adds a note, once.
    pub(crate) fn note(&self, note: String) {
        let mut notes = locked(&self.notes);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// The seed's hash.
    pub(crate) fn set(&self) -> u32 {
        self.set
    }

    /// The generation of a write that begins now: nanoseconds since 1970 by a clock that is never set back.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.origin_ns.saturating_add(whole_units(self.origin.elapsed().as_nanos() as u64))
    }

    /// A generation in words.
    pub(crate) fn when(&self, generation: u64) -> String {
        match generation.checked_sub(self.origin_ns) {
            Some(since) => format!("the write begun {:.9} s into the run", since as f64 / 1e9),
            None => format!(
                "a write begun {} before this run",
                units::duration_ns(self.origin_ns.saturating_sub(generation))
            ),
        }
    }

    /// The table of a volume, if tables are kept; made, or made finer, at the first call. With a `journal`, a directory, it
    /// begins with what earlier runs noted there.
    ///
    /// # Errors
    /// When the journal cannot be made or used.
    pub(crate) fn table(
        &self,
        volume: u64,
        size: u64,
        unit: u64,
        journal: Option<&Path>,
    ) -> io::Result<Option<Arc<Table>>> {
        let Some(tables) = &self.tables else { return Ok(None) };
        let mut tables = locked(tables);
        // A unit that does not divide a cell is one that some operation begins in the middle of a cell with.
        let cell = if CELL.is_multiple_of(unit) { unit } else { CELL };
        let table = match tables.entry(volume) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                // A write that began just now must be later than the origin.
                let origin = self.origin_ns.saturating_sub(UNIT);
                let table = match journal {
                    None => Table::new(size, cell, origin),
                    Some(directory) => {
                        let path = journal::path(directory, volume);
                        let (table, end) = Table::kept(&path, volume, size, cell, origin)?;
                        if end == Some(End::Restarted) {
                            self.note(format!(
                                "The machine was restarted while a run wrote to the volume of {}: what was acknowledged in its \
                                 last seconds may be unknown, and what no sync had followed may be lost by right.",
                                path.display()
                            ));
                        }
                        table
                    }
                };
                new.insert(Arc::new(table))
            }
        };
        let cell = cell.min(table.cell());
        // A table in use is kept: what it cannot follow counts as unknown.
        if (cell < table.cell() || size > table.size()) && Arc::strong_count(table) == 1 {
            *table = Arc::new(table.refined(size, cell)?);
        }
        Ok(Some(Arc::clone(table)))
    }
}

/// A time in whole units of generations.
const fn whole_units(ns: u64) -> u64 {
    ns / UNIT * UNIT
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_shared_and_refined_when_nobody_uses_them() {
        let data = DataSet::new(1, true);
        let table = |volume, size, unit| data.table(volume, size, unit, None).unwrap().unwrap();
        let own = table(7, 1 << 20, 4096);
        assert!(Arc::ptr_eq(&own, &table(7, 1 << 20, 1 << 20)));
        assert_eq!(table(7, 1 << 20, 512).cell(), 4096, "in use");
        drop(own);
        assert_eq!(table(7, 1 << 20, 512).cell(), 512);
        assert!(DataSet::new(1, false).table(7, 1 << 20, 4096, None).unwrap().is_none());
    }

    #[test]
    fn generations_rise_and_are_told_in_words() {
        let data = DataSet::new(1, false);
        let (first, second) = (data.now(), data.now());
        assert!(first <= second);
        assert!(data.when(second).contains("into the run"));
        assert!(data.when(data.origin_ns - 5_000).contains("begun 5.00 µs before this run"));
        data.note("x".into());
        data.note("x".into());
        assert_eq!(data.notes(), ["x"]);
    }
}
