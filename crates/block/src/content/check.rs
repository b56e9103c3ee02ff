//! Judges what a read returned by its stamps and by the table.

use super::sector::{Reading, SECTOR, Stamp, bears_mark, read};
use super::table::{Cell, Moment, Table};
use super::{Dials, Label};
use std::ops::Range;
use tidemark_measure::verification::{Checked, Unchecked};

/// Something wrong in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Where the first bad sector is, bytes from the volume's start.
    pub(crate) at: u64,
    /// What is wrong with it.
    pub(crate) kind: Kind,
}

/// What is wrong with a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is of an older write than one that was acknowledged before the read began. To tell lost from stale, read
    /// it again.
    Older {
        /// The generation found; `None`: the block is a common one, which does not say.
        found: Option<u64>,
        /// The generation acknowledged.
        expected: u64,
    },
    /// It is of another write than its neighbours, though one write covered them all and none came in between.
    Torn {
        /// The generation found; `None`: the block is a common one, which does not say.
        found: Option<u64>,
        /// The generation acknowledged.
        expected: u64,
    },
    /// It belongs elsewhere.
    Misplaced {
        /// The volume it belongs to.
        volume: u64,
        /// The byte at which it belongs there.
        at: u64,
    },
    /// Nothing but zeroes, where nothing was trimmed.
    Zeroes,
    /// The stamp is right, the bytes after it are not.
    Damaged,
    /// There is no stamp, or it is damaged.
    Foreign,
}

/// How a sector stands to its cell's floor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    /// As it may be.
    Right,
    /// From before the floor.
    Old(Option<u64>),
    /// From after it, though this run has not written since: from another writer.
    New(u64),
    /// As another writer may have left it, of whom the table need not know.
    Unknown,
}

/// A read, and what there is to judge it by.
pub(crate) struct Check<'a> {
    /// The volume and the run; the dials do not matter.
    pub(crate) label: Label,
    /// What was read.
    pub(crate) bytes: &'a [u8],
    /// Where, in whole sectors.
    pub(crate) offset: u64,
    /// Whether the volume is known to be filled with Tidemark's content: whatever is found there should be that.
    pub(crate) is_filled: bool,
    /// What this run wrote, if that is followed.
    pub(crate) table: Option<&'a Table>,
    /// When the read was about to be sent.
    pub(crate) moment: Moment,
    /// The states of the cells that the range touches, from then.
    pub(crate) before: &'a [Cell],
}

impl<'a> Check<'a> {
    /// What can be judged by the stamps alone.
    pub(crate) fn without_table(label: Label, bytes: &'a [u8], offset: u64) -> Self {
        Self { label, bytes, offset, is_filled: true, table: None, moment: Moment::UNKNOWN, before: &[] }
    }

    /// The verdict; must be called as soon as the read has ended.
    ///
    /// # Errors
    /// The first fault.
    pub(crate) fn run(&self) -> Result<Checked, Wrong> {
        let range = self.offset..self.offset + self.bytes.len() as u64;
        let mut checked = Checked::Verified;
        let mut judge = |part, before: Cell, after| match self.cell(part, before, after) {
            Ok(Checked::Verified) => Ok(()),
            // What says less stands for the whole read.
            Ok(less) => {
                if !matches!(checked, Checked::Not(_)) {
                    checked = less;
                }
                Ok(())
            }
            Err(wrong) => Err((wrong, before)),
        };
        let judged = match self.table {
            None => judge(range, Cell::default(), Cell::default()),
            Some(table) => table
                .cells(&range)
                .zip(self.before)
                .try_for_each(|(cell, before)| judge(table.part(cell, &range), *before, table.state(cell))),
        };
        match judged {
            Ok(()) => Ok(checked),
            Err((wrong, before)) if self.is_of_unknown_origin(wrong, before) => {
                Ok(Checked::Not(Unchecked::UnknownOrigin))
            }
            Err((wrong, _)) if self.table.is_some() => Err(self.beyond_one_cell(wrong)),
            Err((wrong, _)) => Err(wrong),
        }
    }

    /// Whether nothing shows that what was found there should have been Tidemark's: the volume is not known to be filled
    /// with its content, this run has not written the cell, and no sector of the read carries a mark.
    fn is_of_unknown_origin(&self, wrong: Wrong, before: Cell) -> bool {
        let bears_no_mark = matches!(wrong.kind, Kind::Foreign | Kind::Zeroes);
        !self.is_filled
            && bears_no_mark
            && before.floor() == 0
            && !self.bytes.as_chunks::<SECTOR>().0.iter().any(bears_mark)
    }

    /// Whether a later read of the sector at `at` shows the write of generation `expected`, or a later one.
    pub(crate) fn has_come(&self, bytes: &[u8; SECTOR], at: u64, expected: u64) -> bool {
        let sector = at / SECTOR as u64;
        match read(bytes, sector) {
            Reading::Stamped(stamp) => {
                stamp.label.volume == self.label.volume
                    && stamp.sector == sector
                    && stamp.generation >= expected
            }
            Reading::Common(number, dials) => number == self.common(dials, sector, expected),
            _ => false,
        }
    }

    /// Judges the sectors of one cell. Gives how much of them could be judged.
    fn cell(&self, part: Range<u64>, before: Cell, after: Cell) -> Result<Checked, Wrong> {
        let settled = before.is_settled(after);
        let trims = self.table.is_some_and(Table::trims);
        let met = self.table.is_some_and(|table| table.may_have_met(self.moment, before, after));
        let floor = before.floor();
        // The first sector, and the first that stands otherwise.
        let (mut first, mut odd): (Option<Age>, Option<(u64, Age)>) = (None, None);
        // Without a floor the stamps say where a sector belongs, and nothing says which write it must be of.
        let mut judged = if floor == 0 { Checked::Placed } else { Checked::Verified };
        let (mut outdated, is_own) = (None, self.table.is_none_or(|table| table.is_own(floor)));
        for at in part.step_by(SECTOR) {
            let sector = at / SECTOR as u64;
            let wrong = |kind| Err(Wrong { at, kind });
            let Some(bytes) = self.sector(at) else { break };
            let age = match read(bytes, sector) {
                Reading::Stamped(stamp)
                    if stamp.label.volume != self.label.volume || stamp.sector != sector =>
                {
                    let belongs = stamp.sector.saturating_mul(SECTOR as u64);
                    return wrong(Kind::Misplaced { volume: stamp.label.volume, at: belongs });
                }
                Reading::Stamped(stamp) => self.age(stamp.generation, floor, settled, is_own),
                Reading::Common(number, dials) => {
                    let due = self.table.map_or(0, |table| table.generation(floor));
                    let right = !settled || number == self.common(dials, sector, due);
                    match (right, is_own) {
                        (true, _) => Age::Right,
                        (false, true) => Age::Old(None),
                        (false, false) => Age::Unknown,
                    }
                }
                Reading::Zeroes if before.allows_zeroes(after, trims) => Age::Right,
                Reading::Zeroes => return wrong(Kind::Zeroes),
                // Bytes of a write that came meanwhile beside bytes of what was there before: nobody can judge them.
                Reading::Damaged | Reading::Foreign if met => {
                    judged = Checked::Not(Unchecked::WriteInFlight);
                    continue;
                }
                Reading::Damaged => return wrong(Kind::Damaged),
                Reading::Foreign => return wrong(Kind::Foreign),
            };
            if age == Age::Unknown {
                judged = Checked::Not(Unchecked::OtherWriter);
                continue;
            }
            if outdated.is_none() && matches!(age, Age::Old(_)) {
                outdated = Some((at, age));
            }
            match first {
                None => first = Some(age),
                // Old sectors of several old writes are old, not torn.
                Some(Age::Old(_)) if matches!(age, Age::Old(_)) => {}
                Some(first) if odd.is_none() && first != age => odd = Some((at, age)),
                Some(_) => {}
            }
        }
        self.conclude(floor, outdated, odd).map_or(Ok(judged), Err)
    }

    fn conclude(&self, floor: u64, outdated: Option<(u64, Age)>, odd: Option<(u64, Age)>) -> Option<Wrong> {
        let expected = self.table.map_or(0, |table| table.generation(floor));
        let found = |age| match age {
            Age::Old(found) => found,
            Age::New(found) => Some(found),
            Age::Right | Age::Unknown => Some(expected),
        };
        let (at, kind) = match (outdated, odd) {
            (Some((at, age)), Some(_)) => (at, Kind::Torn { found: found(age), expected }),
            (Some((at, age)), None) => (at, Kind::Older { found: found(age), expected }),
            (None, Some((at, age))) => (at, Kind::Torn { found: found(age), expected }),
            (None, None) => return None,
        };
        Some(Wrong { at, kind })
    }

    fn age(&self, generation: u64, floor: u64, settled: bool, is_own: bool) -> Age {
        let count = self.table.map_or(0, |table| table.count(generation));
        match count.cmp(&floor) {
            std::cmp::Ordering::Less => Age::Old(Some(generation)),
            std::cmp::Ordering::Greater if settled && !is_own => Age::Unknown,
            std::cmp::Ordering::Greater if settled => Age::New(generation),
            _ => Age::Right,
        }
    }

    /// A write larger than a cell is torn when a part of it has come and another has not.
    fn beyond_one_cell(&self, wrong: Wrong) -> Wrong {
        let Kind::Older { found, expected } = wrong.kind else { return wrong };
        let has_part = |(index, bytes): (usize, &[u8; SECTOR])| {
            let sector = self.offset / SECTOR as u64 + index as u64;
            matches!(read(bytes, sector), Reading::Stamped(Stamp { generation, sector: own, .. })
                if generation == expected && own == sector)
        };
        match self.bytes.as_chunks::<SECTOR>().0.iter().enumerate().any(has_part) {
            true => Wrong { kind: Kind::Torn { found, expected }, ..wrong },
            false => wrong,
        }
    }

    fn sector(&self, at: u64) -> Option<&[u8; SECTOR]> {
        self.bytes.as_chunks::<SECTOR>().0.get(((at - self.offset) / SECTOR as u64) as usize)
    }

    fn common(&self, dials: Dials, sector: u64, generation: u64) -> u64 {
        Stamp { label: Label { dials, ..self.label }, generation, sector }.common_number()
    }
}

#[cfg(test)]
mod tests;
