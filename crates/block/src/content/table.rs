//! Which generation of each part of a volume a reader must find at the least.
//!
//! A part (a *cell*) is 4 KiB, or the unit of the work if that is smaller. A write that was acknowledged, that
//! covered the cell, and that overlapped no other write of it, makes every earlier generation stale for reads that
//! begin from then on: its own generation is the cell's *floor*. Writes that overlap may land in either order, sector
//! by sector, and a write of a part of a cell changes a part of it: they leave the floor alone, and the cell is
//! *mixed* until a write of the first kind. A write that failed or was abandoned may land at any later time, so it
//! counts as in flight for ever. What is called lost, stale or torn by this table therefore is.
//!
//! A read that a change of the same cell meets may return any bytes of either, within a sector too: neither a page
//! cache nor a disk promises more. The table tells whether that may have been ([`Table::may_have_met`]), by the state
//! of the cell before and after the read, and by a count of the changes that leave no trace in it.
//!
//! What lies beyond the table's size is one more cell, of which nothing but its changes is known. Memory: 8 bytes per cell, 2 GiB for a volume of 1 TiB in cells of 4 KiB. Nothing locks.

use super::journal::{End, Head, Journal};
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bits of a cell: from the lowest, writes in flight; three flags; the floor.
const FLIGHT: u64 = (1 << 11) - 1;
/// The writes in flight overlap each other, or cover the cell in part.
const OVERLAP: u64 = 1 << 11;
/// Sectors may be of different writes, none older than the floor.
const MIXED: u64 = 1 << 12;
/// Zeroes are right, too: the cell was trimmed.
const TRIMMED: u64 = 1 << 13;
const FLOOR_SHIFT: u32 = 14;
/// Nanoseconds that a floor counts by. Generations are multiples of it.
pub(crate) const UNIT: u64 = 1_000;
/// The largest floor: 35 years. Later ones count as this one: less is found, nothing is invented.
const MOST: u64 = u64::MAX >> FLOOR_SHIFT;

/// A year, as floors count.
const YEAR: u64 = 365 * 86_400 * 1_000_000_000 / UNIT;

/// What changes a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A write.
    Write,
    /// A trim.
    Trim,
}

/// The cells of one volume.
pub(crate) struct Table {
    cell: u64,
    /// Generations count from then; before it is 0.
    origin: u64,
    /// Floors below this one are an earlier run's: others may have written since who did not note it here.
    own_from: u64,
    /// Whether anything was trimmed.
    trims: AtomicBool,
    /// Changes that have ended and left their cell mixed: its state may be the same as before them.
    mixes: AtomicU64,
    /// The last one stands for all that lies beyond the others.
    cells: Cells,
}

/// Where the cells are.
enum Cells {
    Memory(Box<[AtomicU64]>),
    File(Journal),
}

impl Deref for Cells {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        match self {
            Cells::Memory(cells) => cells,
            Cells::File(journal) => journal,
        }
    }
}

fn count_cells(size: u64, cell: u64) -> usize {
    size.div_ceil(cell) as usize + 1
}

/// What a read notes before it is sent, apart from the states of its cells; taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Moment {
    /// Of what is not judged by a table.
    pub(crate) const UNKNOWN: Self = Self(0);
}

/// A cell's state at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell(u64);

impl Cell {
    /// The least generation that may be found, counted as the table counts; 0: any.
    pub(crate) fn floor(self) -> u64 {
        self.0 >> FLOOR_SHIFT
    }

    /// Whether all its sectors must be of the floor's write, given its state at the end of a read that began with
    /// this one. A floor that has reached its limit no longer tells one write from the next.
    pub(crate) fn is_settled(self, after: Cell) -> bool {
        self == after && self.0 & (FLIGHT | MIXED | TRIMMED) == 0 && (1..MOST).contains(&self.floor())
    }

    /// Whether zeroes may be found by a read that ended with `after`; `trims`: something was trimmed in this run.
    /// Where a cell changed meanwhile, that may have been a trim and then a write, which leaves no trace of it.
    pub(crate) fn allows_zeroes(self, after: Cell, trims: bool) -> bool {
        let changed = self != after || self.floor() == MOST;
        (self.0 | after.0) & TRIMMED != 0 || (trims && changed)
    }
}

impl Table {
    /// A table for a volume of `size` bytes in which nothing has been written since `origin` (nanoseconds since 1970).
    pub(crate) fn new(size: u64, cell: u64, origin: u64) -> Self {
        let cells = (0..count_cells(size, cell)).map(|_| AtomicU64::new(0)).collect();
        Self::of(Cells::Memory(cells), cell, origin, 0)
    }

    fn of(cells: Cells, cell: u64, origin: u64, own_from: u64) -> Self {
        Self { cell, origin, own_from, trims: AtomicBool::new(false), mixes: AtomicU64::new(0), cells }
    }

    /// A table that is kept in a file: with what earlier runs noted there, and how the last of them ended, if there was one.
    ///
    /// # Errors
    /// When the file cannot be made or used.
    pub(crate) fn kept(
        path: &Path,
        volume: u64,
        size: u64,
        cell: u64,
        now: u64,
    ) -> io::Result<(Self, Option<End>)> {
        let Some((journal, head, end)) = Journal::open(path, volume)? else {
            let head = Head { volume, cell, origin: now };
            let journal = Journal::create(path, head, count_cells(size, cell))?;
            return Ok((Self::of(Cells::File(journal), cell, now, 0), None));
        };
        let restarted = end == End::Restarted;
        let (mut newest, mut noted, mut absurd) = (0, 0_u64, 0_u64);
        let latest = now.saturating_sub(head.origin) / UNIT;
        let trimmed = if restarted && journal.has_trims() { TRIMMED } else { 0 };
        for own in journal.iter() {
            let state = own.load(Ordering::Relaxed);
            // What was in flight has landed by now, or never will: nobody knows. The same holds for all that came after what is
            // noted, if the machine stopped.
            let mixed = if state & FLIGHT != 0 || restarted { MIXED | trimmed } else { 0 };
            own.store(state & !(FLIGHT | OVERLAP) | mixed, Ordering::Relaxed);
            let floor = state >> FLOOR_SHIFT;
            newest = newest.max(floor);
            noted += u64::from(state != 0);
            absurd += u64::from(floor > latest.saturating_add(YEAR));
        }
        // Writes of now would count as older than those of then, and what they replaced as lost.
        if head.origin.saturating_add(newest.saturating_mul(UNIT)) > now {
            let text = match head.origin <= now && absurd > noted / 2 {
                true => {
                    "it is damaged: most of its entries are of writes a year and more from now; remove the file (if it is \
                     sound, this machine's clock is wrong: set it)"
                }
                false => {
                    "it notes writes that lie in the future of this machine's clock: set the clock; if the clock is right, the \
                     file is damaged: remove it"
                }
            };
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let own_from = now.saturating_sub(head.origin) / UNIT;
        let table = Self::of(Cells::File(journal), head.cell, head.origin, own_from);
        match size > table.size() || cell < head.cell {
            true => Ok((table.refined(size, cell)?, Some(end))),
            false => Ok((table, Some(end))),
        }
    }

    /// Whether a floor was set by this run.
    pub(crate) fn is_own(&self, floor: u64) -> bool {
        floor >= self.own_from
    }

    /// Notes, where the table is kept, that something is going to be trimmed.
    pub(crate) fn note_trims(&self) {
        if let Cells::File(journal) = &self.cells {
            journal.note_trims();
        }
    }

    /// Bytes of a cell.
    pub(crate) fn cell(&self) -> u64 {
        self.cell
    }

    /// Whether anything was trimmed.
    pub(crate) fn trims(&self) -> bool {
        self.trims.load(Ordering::Acquire)
    }

    /// Bytes that it covers.
    pub(crate) fn size(&self) -> u64 {
        self.cell * self.beyond() as u64
    }

    /// The cell for all that lies beyond the others.
    fn beyond(&self) -> usize {
        self.cells.len() - 1
    }

    /// The same knowledge in cells that divide these, or over a larger volume.
    ///
    /// # Errors
    /// When the file in which the table is kept cannot be made anew.
    pub(crate) fn refined(&self, size: u64, cell: u64) -> io::Result<Self> {
        let (size, cell) = (size.max(self.size()), cell.min(self.cell));
        let cells = match &self.cells {
            Cells::Memory(_) => Self::new(size, cell, self.origin).cells,
            Cells::File(journal) => {
                let head = Head { volume: journal.volume(), cell, origin: self.origin };
                let new = Journal::create(journal.path(), head, count_cells(size, cell))?;
                if journal.has_trims() {
                    new.note_trims();
                }
                Cells::File(new)
            }
        };
        let table = Self::of(cells, cell, self.origin, self.own_from);
        table.trims.store(self.trims(), Ordering::Release);
        for (index, new) in table.cells.iter().enumerate() {
            new.store(self.state((index as u64 * cell / self.cell) as usize).0, Ordering::Release);
        }
        Ok(table)
    }

    /// A generation as the table counts.
    pub(crate) fn count(&self, generation: u64) -> u64 {
        generation.saturating_sub(self.origin) / UNIT
    }

    /// A floor as a generation.
    pub(crate) fn generation(&self, floor: u64) -> u64 {
        floor.saturating_mul(UNIT).saturating_add(self.origin)
    }

    /// The cells that a range of bytes touches.
    pub(crate) fn cells(&self, bytes: &Range<u64>) -> Range<usize> {
        let cell = |index: u64, most: usize| index.min(most as u64) as usize;
        let start = cell(bytes.start / self.cell, self.beyond());
        start..cell(bytes.end.div_ceil(self.cell), self.cells.len()).max(start)
    }

    /// The bytes of a range that lie in a cell.
    pub(crate) fn part(&self, cell: usize, bytes: &Range<u64>) -> Range<u64> {
        let start = cell as u64 * self.cell;
        let end = if cell < self.beyond() { start + self.cell } else { u64::MAX };
        start.max(bytes.start)..end.min(bytes.end)
    }

    /// A cell's state now.
    #[inline]
    pub(crate) fn state(&self, cell: usize) -> Cell {
        Cell(self.cells[cell.min(self.beyond())].load(Ordering::Acquire))
    }

    /// The moment at which a read begins, for [`Table::may_have_met`]. To be taken before the states of its cells.
    #[inline]
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.mixes.load(Ordering::Acquire))
    }

    /// Whether a change may have been in flight in a cell at some time during a read that began at `moment` with the
    /// cell's state `before`, and ended with `after`.
    pub(crate) fn may_have_met(&self, moment: Moment, before: Cell, after: Cell) -> bool {
        let trace = before != after || (before.0 | after.0) & FLIGHT != 0 || before.floor() == MOST;
        trace || (before.0 & MIXED != 0 && moment != self.moment())
    }

    /// Notes that a change of a range is about to be sent.
    pub(crate) fn begin(&self, bytes: &Range<u64>, change: Change) {
        if change == Change::Trim {
            self.trims.store(true, Ordering::Release);
        }
        for index in self.cells(bytes) {
            let start = index as u64 * self.cell;
            let whole = bytes.start <= start && start + self.cell <= bytes.end && index < self.beyond();
            self.update(index, |state| {
                let flight = state & FLIGHT;
                let overlap = if flight > 0 || !whole { OVERLAP } else { 0 };
                let trimmed = if change == Change::Trim { TRIMMED } else { 0 };
                // A full count never goes down again: it counts as in flight for ever.
                state & !FLIGHT | (flight + 1).min(FLIGHT) | overlap | trimmed
            });
        }
    }

    /// Notes that the change was acknowledged. One that failed is never ended.
    pub(crate) fn end(&self, bytes: &Range<u64>, change: Change, generation: u64) {
        let generation = self.count(generation).min(MOST);
        for index in self.cells(bytes) {
            self.update(index, |state| {
                let flight = state & FLIGHT;
                if flight == FLIGHT || flight == 0 {
                    return state;
                }
                let alone = flight == 1 && state & OVERLAP == 0;
                match change {
                    Change::Write if alone => generation.max(state >> FLOOR_SHIFT) << FLOOR_SHIFT,
                    _ if flight == 1 => {
                        // Before the state changes, so that whoever sees it changed sees the count changed.
                        self.mixes.fetch_add(1, Ordering::AcqRel);
                        (state & !(FLIGHT | OVERLAP)) | MIXED
                    }
                    _ => state - 1,
                }
            });
        }
    }

    #[inline]
    fn update(&self, cell: usize, change: impl Fn(u64) -> u64) {
        // The closure never declines, so the update cannot fail.
        let _ =
            self.cells[cell].fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| Some(change(state)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Range<u64> = 0..4096;

    fn table() -> Table {
        Table::new(16_384, 4096, 1000 * UNIT)
    }

    #[test]
    fn a_write_alone_raises_the_floor_of_what_it_covers() {
        let table = table();
        table.begin(&(0..8192), Change::Write);
        assert_eq!(table.state(0).floor(), 0, "not before it is acknowledged");
        table.end(&(0..8192), Change::Write, 1007 * UNIT);
        assert_eq!([0, 1, 2].map(|cell| table.state(cell).floor()), [7, 7, 0]);
        assert!(table.state(0).is_settled(table.state(0)) && !table.state(2).is_settled(table.state(2)));
        assert_eq!(table.generation(7), 1007 * UNIT);
    }

    #[test]
    fn what_overlaps_or_covers_a_part_leaves_it_mixed() {
        let table = table();
        table.begin(&ONE, Change::Write);
        table.begin(&ONE, Change::Write);
        table.end(&ONE, Change::Write, 1009 * UNIT);
        table.end(&ONE, Change::Write, 1008 * UNIT);
        table.begin(&(4096..4608), Change::Write);
        table.end(&(4096..4608), Change::Write, 1010 * UNIT);
        for cell in [0, 1] {
            assert_eq!(table.state(cell).floor(), 0);
            assert!(!table.state(cell).is_settled(table.state(cell)));
        }
        table.begin(&ONE, Change::Write);
        table.end(&ONE, Change::Write, 1011 * UNIT);
        assert_eq!(table.state(0).floor(), 11);
        assert!(table.state(0).is_settled(table.state(0)));
    }

    #[test]
    fn a_write_of_unknown_fate_never_ends() {
        let table = table();
        table.begin(&ONE, Change::Write);
        table.begin(&ONE, Change::Write);
        table.end(&ONE, Change::Write, 1005 * UNIT);
        assert_eq!(table.state(0).floor(), 0);
        assert!(!table.state(0).is_settled(table.state(0)));
    }

    #[test]
    fn a_trim_allows_zeroes_until_the_next_write() {
        let table = table();
        let allows = || table.state(0).allows_zeroes(table.state(0), false);
        table.begin(&ONE, Change::Trim);
        assert!(allows());
        table.end(&ONE, Change::Trim, 1005 * UNIT);
        assert!(allows());
        table.begin(&ONE, Change::Write);
        table.end(&ONE, Change::Write, 1006 * UNIT);
        assert!(!allows());
    }

    #[test]
    fn a_full_count_stays_full_and_old_generations_count_as_none() {
        let table = table();
        for _ in 0..FLIGHT + 5 {
            table.begin(&ONE, Change::Write);
        }
        for _ in 0..FLIGHT + 5 {
            table.end(&ONE, Change::Write, 1005 * UNIT);
        }
        assert_eq!(table.state(0).floor(), 0);
        assert_eq!((table.count(5), table.cells(&(0..u64::MAX))), (0, 0..5));
    }

    #[test]
    fn refining_keeps_what_is_known() {
        let table = table();
        table.begin(&ONE, Change::Write);
        table.end(&ONE, Change::Write, 1005 * UNIT);
        let finer = table.refined(32_768, 512).unwrap();
        assert_eq!((finer.state(7).floor(), finer.state(8).floor(), finer.size()), (5, 0, 32_768));
    }

    #[test]
    fn a_change_that_came_and_went_during_a_read_is_known_even_if_the_state_is_the_same() {
        let table = table();
        let (part, all) = (0..512, 0..4096);
        let change = |bytes: &Range<u64>, generation| {
            table.begin(bytes, Change::Write);
            table.end(bytes, Change::Write, generation * UNIT);
        };
        change(&part, 1001);
        let look = || (table.moment(), table.state(0));
        let met = |(moment, before)| table.may_have_met(moment, before, table.state(0));
        let begun = look();
        assert!(!met(begun), "nothing came");
        change(&(4096..8192), 1002);
        change(&(4096..4608), 1003);
        assert!(
            table.state(0) == begun.1 && met(begun),
            "a change elsewhere that cannot be told from one here"
        );
        let begun = look();
        change(&part, 1004);
        assert!(table.state(0) == begun.1 && met(begun));
        let begun = look();
        change(&all, 1005);
        assert!(met(begun));
        let begun = look();
        change(&(4096..4608), 1006);
        assert!(!met(begun), "a cell that is whole has a trace of each change");
        table.begin(&all, Change::Write);
        assert!(met(look()) && met(begun), "in flight");
    }

    #[test]
    fn what_lies_beyond_the_table_is_one_cell_that_is_never_settled() {
        let table = table();
        let beyond = 20_480..24_576;
        assert_eq!((table.cells(&beyond), table.cells(&(12_288..20_480))), (4..5, 3..5));
        assert_eq!(
            (table.part(3, &(12_800..20_480)), table.part(4, &beyond)),
            (12_800..16_384, beyond.clone())
        );
        table.begin(&beyond, Change::Write);
        assert!(table.may_have_met(table.moment(), table.state(4), table.state(4)));
        table.end(&beyond, Change::Write, 1009 * UNIT);
        assert_eq!((table.state(4).floor(), table.state(4).is_settled(table.state(4))), (0, false));
    }
    #[test]
    fn what_an_earlier_run_noted_is_known_and_what_was_in_flight_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let kept = |now: u64| Table::kept(&path, 7, 16_384, 4096, now * UNIT).unwrap();
        let (table, end) = kept(1000);
        assert_eq!(end, None);
        table.begin(&(0..8192), Change::Write);
        table.end(&(0..8192), Change::Write, 1007 * UNIT);
        table.begin(&ONE, Change::Write);
        drop(table);
        let (table, end) = kept(2000);
        assert_eq!((end, table.state(0).floor(), table.state(1).floor()), (Some(End::Closed), 7, 7));
        assert!(!table.state(0).is_settled(table.state(0)) && table.state(1).is_settled(table.state(1)));
        assert!(!table.is_own(7) && table.is_own(table.count(2001 * UNIT)));
        table.begin(&ONE, Change::Write);
        table.end(&ONE, Change::Write, 2009 * UNIT);
        assert!(table.state(0).is_settled(table.state(0)), "a write of unknown fate is over with its run");
        drop(table);
        // A clock that was set back: its writes would seem older than those that they replace.
        let earlier = Table::kept(&path, 7, 16_384, 4096, 2005 * UNIT).err().unwrap().to_string();
        assert!(earlier.contains("in the future of this machine's clock"), "{earlier}");
        // In smaller cells, over a larger volume, and again.
        for now in [3000, 4000] {
            let (table, _) = Table::kept(&path, 7, 32_768, 512, now * UNIT).unwrap();
            assert_eq!((table.cell(), table.size()), (512, 32_768));
            assert_eq!([0, 8, 16].map(|cell| table.state(cell).floor()), [1009, 7, 0]);
        }
    }

    #[test]
    fn a_journal_of_nonsense_is_called_damaged() {
        use std::os::unix::fs::FileExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let kept = || Table::kept(&path, 7, 1 << 20, 4096, 1000 * UNIT);
        drop(kept().unwrap());
        let mut random = tidemark_measure::rng::Rng::new(5, &[]);
        let nonsense: Vec<u8> = (0..257).flat_map(|_| random.bits().to_le_bytes()).collect();
        std::fs::File::options().write(true).open(&path).unwrap().write_all_at(&nonsense, 4096).unwrap();
        let refused = kept().err().unwrap().to_string();
        assert!(refused.starts_with("it is damaged") && refused.contains("clock"), "{refused}");
    }
}
