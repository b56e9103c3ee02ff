//! A model of a disk on which writes land sector by sector in any order, and from which reads come in smaller pieces
//! in any order: what it may show is never called wrong, and each kind of damage is found and named.

use super::super::table::{Change, UNIT};
use super::*;
use proptest::prelude::*;

const SIZE: u64 = 32_768;
const ORIGIN: u64 = 1_000_000;

/// Bytes that a read takes at once; smaller than a stamp.
const PIECE: usize = 32;

/// How many pieces one step of a read takes.
const PIECES: usize = 5;

fn label(duplicate: u16) -> Label {
    Label { volume: 9, dials: Dials { noise: 512, duplicate }, set: 3 }
}

struct Disk {
    label: Label,
    bytes: Vec<u8>,
    table: Table,
    clock: u64,
}

struct Write {
    range: Range<u64>,
    change: Change,
    generation: u64,
    content: Vec<u8>,
    landed: Vec<bool>,
}

struct Read {
    range: Range<u64>,
    moment: Moment,
    before: Vec<Cell>,
    bytes: Vec<u8>,
    seen: Vec<bool>,
}

impl Disk {
    /// A disk that an earlier run has filled.
    fn new(cell: u64, duplicate: u16) -> Self {
        let label = label(duplicate);
        let mut bytes = vec![0; SIZE as usize];
        label.fill(&mut bytes, 0, ORIGIN - 500);
        Self { label, bytes, table: Table::new(SIZE, cell, ORIGIN), clock: ORIGIN }
    }

    /// One whose table knows the beginning alone.
    fn known_in_part(self, size: u64) -> Self {
        Self { table: Table::new(size, self.table.cell(), ORIGIN), ..self }
    }

    fn begin(&mut self, range: Range<u64>, change: Change) -> Write {
        self.table.begin(&range, change);
        self.clock += UNIT;
        let mut content = vec![0; (range.end - range.start) as usize];
        if change == Change::Write {
            self.label.fill(&mut content, range.start, self.clock);
        }
        let landed = vec![false; content.len() / SECTOR];
        Write { range, change, generation: self.clock, content, landed }
    }

    fn land(&mut self, write: &mut Write, sector: usize) {
        let sector = sector % write.landed.len();
        if !write.landed[sector] {
            write.landed[sector] = true;
            let at = write.range.start as usize + sector * SECTOR;
            let from = sector * SECTOR..(sector + 1) * SECTOR;
            self.bytes[at..at + SECTOR].copy_from_slice(&write.content[from]);
        }
    }

    fn end(&mut self, mut write: Write) {
        (0..write.landed.len()).for_each(|sector| self.land(&mut write, sector));
        self.table.end(&write.range, write.change, write.generation);
    }

    fn write(&mut self, range: Range<u64>) {
        let write = self.begin(range, Change::Write);
        self.end(write);
    }

    fn send(&self, range: Range<u64>) -> Read {
        let moment = self.table.moment();
        let before = self.table.cells(&range).map(|cell| self.table.state(cell)).collect();
        let length = (range.end - range.start) as usize;
        Read { range, moment, before, bytes: vec![0; length], seen: vec![false; length / PIECE] }
    }

    fn see(&self, read: &mut Read, piece: usize) {
        let piece = piece % read.seen.len();
        if !read.seen[piece] {
            read.seen[piece] = true;
            let at = read.range.start as usize + piece * PIECE;
            read.bytes[piece * PIECE..(piece + 1) * PIECE].copy_from_slice(&self.bytes[at..at + PIECE]);
        }
    }

    fn judge(&self, mut read: Read) -> Option<Wrong> {
        (0..read.seen.len()).for_each(|piece| self.see(&mut read, piece));
        let Read { range, moment, before, bytes, .. } = &read;
        let (label, table) = (self.label, Some(&self.table));
        Check { label, bytes, offset: range.start, is_filled: true, table, moment: *moment, before }
            .run()
            .err()
    }

    fn read(&self, range: Range<u64>) -> Option<Wrong> {
        self.judge(self.send(range))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Begin(Range<u64>, bool),
    Land(usize, usize),
    End(usize),
    Fail(usize),
    Send(Range<u64>),
    See(usize, usize),
    Judge(usize),
}

fn range() -> impl Strategy<Value = Range<u64>> {
    let sectors = SIZE / SECTOR as u64;
    (0..sectors, prop_oneof![Just(1u64), Just(8), 1..24u64], any::<bool>()).prop_map(
        move |(start, length, whole)| {
            let start = if whole { start / 8 * 8 } else { start };
            let end = (start + length).min(sectors);
            start * SECTOR as u64..end * SECTOR as u64
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let which = any::<usize>();
    prop_oneof![
        4 => (range(), prop::bool::weighted(0.1)).prop_map(|(range, trim)| Step::Begin(range, trim)),
        4 => (which, which).prop_map(|(write, sector)| Step::Land(write, sector)),
        4 => which.prop_map(Step::End),
        1 => which.prop_map(Step::Fail),
        4 => range().prop_map(Step::Send),
        4 => (which, which).prop_map(|(read, sector)| Step::See(read, sector)),
        4 => which.prop_map(Step::Judge),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_legitimate_interleaving_is_called_wrong(
        steps in prop::collection::vec(step(), 1..120),
        cell in prop_oneof![Just(512u64), Just(4096)],
        duplicate in prop_oneof![Just(0u16), Just(20_000)],
        known in prop_oneof![3 => Just(SIZE), 1 => Just(SIZE / 2)],
    ) {
        let mut disk = Disk::new(cell, duplicate).known_in_part(known);
        let (mut writes, mut reads, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Begin(range, trim) => {
                    writes.push(disk.begin(range, if trim { Change::Trim } else { Change::Write }));
                }
                Step::Land(write, sector) if !writes.is_empty() => {
                    let index = write % writes.len();
                    disk.land(&mut writes[index], sector);
                }
                Step::End(write) if !writes.is_empty() => {
                    let write = writes.swap_remove(write % writes.len());
                    disk.end(write);
                }
                // Its sectors may land at any time after.
                Step::Fail(write) if !writes.is_empty() => {
                    failed.push(writes.swap_remove(write % writes.len()));
                }
                Step::Send(range) => reads.push(disk.send(range)),
                Step::See(read, sector) if !reads.is_empty() => {
                    let index = read % reads.len();
                    let first = sector % reads[index].seen.len();
                    (first..first + PIECES).for_each(|piece| disk.see(&mut reads[index], piece));
                    if let Some(write) = failed.last_mut() {
                        disk.land(write, sector / 7);
                    }
                }
                Step::Judge(read) if !reads.is_empty() => {
                    let read = reads.swap_remove(read % reads.len());
                    let range = read.range.clone();
                    prop_assert_eq!(disk.judge(read), None, "{:?}", range);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_write_that_never_landed_is_found_by_any_read_of_it(
        write in range(), earlier in prop::collection::vec(range(), 0..6), cell in prop_oneof![Just(512u64), Just(4096)],
    ) {
        let mut disk = Disk::new(cell, 0);
        for range in earlier {
            disk.write(range);
        }
        let whole = write.start / 4096 * 4096..write.end.div_ceil(4096) * 4096;
        let range = if cell == 512 { write } else { whole };
        let old = disk.bytes.clone();
        disk.write(range.clone());
        disk.bytes = old;
        let found = disk.read(range.clone()).expect("a lost write");
        prop_assert_eq!(found.at, range.start);
        prop_assert!(matches!(found.kind, Kind::Older { .. }), "{:?}", found.kind);
    }
}

#[test]
fn each_kind_of_damage_is_named_with_its_place() {
    let whole = 0..SIZE;
    let found = |disk: &Disk| disk.read(whole.clone()).expect("damage");
    let filled = || {
        let mut disk = Disk::new(4096, 0);
        disk.write(whole.clone());
        disk
    };

    let mut disk = filled();
    assert_eq!(disk.read(whole.clone()), None);
    disk.bytes[5000] ^= 1;
    assert_eq!(found(&disk), Wrong { at: 4608, kind: Kind::Damaged });

    let mut disk = filled();
    disk.bytes[4608 + 17] ^= 1;
    assert_eq!(found(&disk), Wrong { at: 4608, kind: Kind::Foreign });

    let mut disk = filled();
    disk.bytes[8192..12_288].fill(0);
    assert_eq!(found(&disk), Wrong { at: 8192, kind: Kind::Zeroes });

    let mut disk = filled();
    disk.bytes.copy_within(4096..8192, 16_384);
    assert_eq!(found(&disk), Wrong { at: 16_384, kind: Kind::Misplaced { volume: 9, at: 4096 } });

    let mut disk = filled();
    let other = Label { volume: 10, ..disk.label };
    other.fill(&mut disk.bytes[4096..8192], 4096, ORIGIN + UNIT);
    assert_eq!(found(&disk), Wrong { at: 4096, kind: Kind::Misplaced { volume: 10, at: 4096 } });

    let mut disk = filled();
    let old = disk.bytes[4096..8192].to_vec();
    disk.write(4096..8192);
    disk.bytes[4096..8192].copy_from_slice(&old);
    let kind = Kind::Older { found: Some(ORIGIN + UNIT), expected: ORIGIN + 2 * UNIT };
    assert_eq!(found(&disk), Wrong { at: 4096, kind });
}

#[test]
fn a_read_that_meets_a_write_is_not_judged_by_bytes_of_both_and_one_that_does_not_is() {
    let half = SECTOR / 2 / PIECE;
    for range in [0..4096, 0..512] {
        let mut disk = Disk::new(4096, 0);
        // In flight all the while; begun and ended meanwhile, twice, with and without a trace in the table.
        let mut write = disk.begin(range.clone(), Change::Write);
        let mut read = disk.send(0..4096);
        (0..half).for_each(|piece| disk.see(&mut read, piece));
        (0..write.landed.len()).for_each(|sector| disk.land(&mut write, sector));
        assert_eq!(disk.judge(read), None);
        disk.end(write);
        for _ in 0..2 {
            let mut read = disk.send(0..4096);
            (0..half).for_each(|piece| disk.see(&mut read, piece));
            disk.write(range.clone());
            assert_eq!(disk.judge(read), None);
        }
        // Damage is seen by the next read that nothing meets, and beside a write elsewhere.
        disk.bytes[600] ^= 1;
        let write = disk.begin(4096..8192, Change::Write);
        assert_eq!(disk.read(0..8192).unwrap().at, 512);
        disk.end(write);
    }
}

#[test]
fn a_torn_write_is_told_from_a_lost_one() {
    let mut disk = Disk::new(4096, 0);
    disk.write(0..SIZE);
    let old = disk.bytes.clone();
    disk.write(0..8192);
    let torn = Kind::Torn { found: Some(ORIGIN + UNIT), expected: ORIGIN + 2 * UNIT };
    // Within a cell.
    disk.bytes[1024..4096].copy_from_slice(&old[1024..4096]);
    assert_eq!(disk.read(0..8192), Some(Wrong { at: 1024, kind: torn }));
    // Between the cells of one write.
    disk.write(0..8192);
    disk.bytes[4096..8192].copy_from_slice(&old[4096..8192]);
    let kind = Kind::Torn { found: Some(ORIGIN + UNIT), expected: ORIGIN + 3 * UNIT };
    assert_eq!(disk.read(0..8192), Some(Wrong { at: 4096, kind }));
    // Whoever sees only the old part cannot know.
    assert!(matches!(disk.read(4096..8192).unwrap().kind, Kind::Older { .. }));
}

#[test]
fn old_common_blocks_are_found_where_this_run_wrote() {
    let mut disk = Disk::new(4096, u16::MAX);
    disk.write(0..SIZE);
    let old = disk.bytes.clone();
    disk.write(0..SIZE);
    assert_eq!(disk.read(0..SIZE), None);
    disk.bytes = old;
    // One of 64 times the old number is the new one.
    let stale = (0..8).filter(|cell| disk.read(cell * 4096..(cell + 1) * 4096).is_some()).count();
    assert!(stale >= 6, "{stale} of 8");
}

#[test]
fn without_a_table_only_what_the_stamps_say_is_judged() {
    let mut bytes = vec![0; 8192];
    label(0).fill(&mut bytes, 4096, 5);
    let check = |bytes: &[u8]| Check::without_table(label(0), bytes, 4096).run().err();
    assert_eq!(check(&bytes), None);
    bytes[600] ^= 4;
    assert_eq!(check(&bytes), Some(Wrong { at: 4608, kind: Kind::Damaged }));
}

#[test]
fn read_again_what_came_late_is_told_from_what_never_came() {
    for duplicate in [0, u16::MAX] {
        let mut disk = Disk::new(4096, duplicate);
        disk.write(0..SIZE);
        let old = disk.bytes.clone();
        disk.write(0..SIZE);
        let expected = disk.clock;
        let check = Check::without_table(disk.label, &[], 0);
        let come = |bytes: &[u8], sector: usize| {
            check.has_come(&bytes.as_chunks().0[sector], (sector * SECTOR) as u64, expected)
        };
        assert!((0..64).all(|sector| come(&disk.bytes, sector)));
        // One common block of 64 is the same again.
        assert!((0..64).filter(|sector| come(&old, *sector)).count() <= 16);
        assert!(!come(&[0; SIZE as usize], 3));
    }
}
