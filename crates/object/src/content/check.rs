//! The check of content as it arrives, in pieces of any length.

use super::pool::{Block, Pool};
use super::stamp::{self, Label, STAMP};
use super::versions::Known;
use super::{BLOCK, ContentPlan, GUARD, Key, Kin, Shape, Twin, guard, short};
use md5::{Digest as _, Md5};
use std::ops::Range;
use tidemark_measure::fault::Fault;
use tidemark_measure::verification::{Checked, Unchecked};

/// By how much the clocks of two machines, and the duration of a write that the other one made, may shift
/// a version: content of another writer is stale only if it is older by more, five minutes.
const DOUBT_NS: u64 = 300_000_000_000;

/// So many bytes in a row that are as they must be are no chance.
const RECOGNISED: usize = 16;

/// The fewest bytes of an object without a stamp that say anything: fewer are right by chance too often.
const TELLING: usize = 4;

/// How content differs from what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Some bytes differ.
    #[error("the content differs from what was written at byte {at}")]
    Wrong {
        /// Position of the first that does.
        at: u64,
    },
    /// The content, or a block of it, is older than one acknowledged before the read was sent.
    #[error("the content at byte {at} is {age_ns} ns older than a write acknowledged before the read")]
    Stale {
        /// Position of the block.
        at: u64,
        /// Nanoseconds between the beginnings of the two writes.
        age_ns: u64,
    },
    /// The content ends too early.
    #[error("the content ends after {received} bytes of {size}")]
    Truncated {
        /// Position of the end.
        received: u64,
        /// Where it should have been.
        size: u64,
    },
    /// The content is another object's.
    #[error("the content at byte {at} is that of object {item} of container {space}, or of another data set")]
    Misplaced {
        /// Position of the block.
        at: u64,
        /// The container's number in the block.
        space: u64,
        /// The object's number in the block.
        item: u64,
    },
}

impl Mismatch {
    /// The class of failure.
    pub fn fault(self) -> Fault {
        match self {
            Self::Wrong { .. } => Fault::WrongContent,
            Self::Stale { .. } => Fault::StaleContent,
            Self::Truncated { .. } => Fault::TruncatedContent,
            Self::Misplaced { .. } => Fault::ForeignContent,
        }
    }
}

/// The check of one read.
///
/// A difference is the storage's fault only if the content is known to have been Tidemark's: this run wrote the object,
/// or some of what was read is recognisably what Tidemark writes there. Otherwise nobody can say what it should be.
pub struct Check<'a> {
    plan: &'a ContentPlan,
    key: Key,
    /// The object's content without a hash.
    plain: Expected,
    /// That with a hash, where that is wanted.
    hashed: Option<Expected>,
    /// The one of them that it is, by its first stamp; without a hash, as long as that is not known.
    object: u64,
    /// Position in the object of the next byte.
    at: u64,
    /// The requested range; `None`: the whole object.
    range: Option<Range<u64>>,
    /// The content of the first stamp that is this data set's, and its base.
    label: Option<(Label, u64)>,
    /// The beginning of the present block, as long as its stamp is not whole.
    held: [u8; STAMP],
    digest: Option<Tail>,
    /// The first difference from what is written with form `Seeded`.
    mismatch: Option<Mismatch>,
    /// Something in it is recognisably what Tidemark writes there.
    recognised: bool,
    /// It is the object in another form: what this plan knows says nothing of it.
    in_other_form: bool,
    /// Bytes were compared, and were right.
    compared: bool,
}

/// An object of one data set, and what this run knows of it.
#[derive(Clone, Copy)]
struct Expected {
    set: u64,
    object: u64,
    known: Known,
}

impl<'a> Check<'a> {
    pub(super) fn new(plan: &'a ContentPlan, key: Key, range: Option<Range<u64>>) -> Self {
        let expected = |twin: Twin| Expected {
            set: twin.set,
            object: twin.hash(key),
            known: if plan.verify { plan.data.versions.known(twin.tracked(key)) } else { Known::default() },
        };
        let hashed = plan.verify && matches!(plan.shape, Shape::Hashed(_)) && range.is_none();
        Self {
            plan,
            key,
            object: plan.plain.hash(key),
            plain: expected(plan.plain),
            hashed: hashed.then(|| expected(plan.own)),
            at: range.as_ref().map_or(0, |range| range.start),
            range,
            label: None,
            held: [0; STAMP],
            digest: hashed.then(Tail::new),
            mismatch: None,
            recognised: false,
            in_other_form: false,
            compared: false,
        }
    }

    /// Takes the next bytes of the content.
    #[inline]
    pub fn update(&mut self, piece: &[u8]) {
        match &self.plan.shape {
            _ if !self.plan.verify => self.at += piece.len() as u64,
            Shape::Seeded(pool) => self.compare(pool, piece),
            Shape::Hashed(pool) => match &mut self.digest {
                Some(tail) => {
                    tail.update(piece);
                    self.compare(pool, piece);
                }
                // The digest is of the whole.
                None => self.at += piece.len() as u64,
            },
            Shape::Zero => {
                if let Some(index) = piece.iter().position(|byte| *byte != 0) {
                    self.differs(Mismatch::Wrong { at: self.at + index as u64 });
                }
                self.at += piece.len() as u64;
            }
        }
    }

    /// The verdict, after the last byte of a reply that was whole.
    ///
    /// # Errors
    /// How the content differs from what was written.
    pub fn finish(mut self) -> Result<Checked, Mismatch> {
        if !self.plan.verify {
            return Ok(Checked::NotAsked);
        }
        match &self.plan.shape {
            // They are the same in every object: that they are zeroes shows little.
            Shape::Zero => match self.mismatch {
                None => Ok(Checked::Not(Unchecked::NoContent)),
                Some(_) => self.conclude(Unchecked::UnknownOrigin),
            },
            Shape::Seeded(_) => {
                self.end();
                let least = if self.range.is_none() { TELLING as u64 } else { 1 };
                let short = self.received() < least || (self.mismatch.is_none() && !self.compared);
                self.conclude(if short { Unchecked::TooShort } else { Unchecked::UnknownOrigin })
            }
            Shape::Hashed(_) => match self.digest.take() {
                None => Ok(Checked::Not(Unchecked::Part)),
                Some(tail) => self.end_hashed(&tail),
            },
        }
    }

    /// What is to be said of the comparison; `otherwise` is why content that may be anybody's was not verified.
    fn conclude(&self, otherwise: Unchecked) -> Result<Checked, Mismatch> {
        match self.mismatch {
            None if self.compared => Ok(Checked::Verified),
            Some(mismatch) if self.is_ours() => Err(mismatch),
            _ => Ok(Checked::Not(otherwise)),
        }
    }

    /// Whether it is known that the content should be Tidemark's, in this form.
    fn is_ours(&self) -> bool {
        let wrote = |expected: &Expected| expected.known.written;
        !self.in_other_form
            && (self.recognised || wrote(&self.plain) || self.hashed.as_ref().is_some_and(wrote))
    }

    fn received(&self) -> u64 {
        self.at - self.range.as_ref().map_or(0, |range| range.start)
    }

    /// Notes a difference, if it is the first.
    fn differs(&mut self, mismatch: Mismatch) {
        self.mismatch.get_or_insert(mismatch);
    }

    /// Compares the next bytes with those of the form `Seeded`. After a difference it only looks for something to
    /// recognise the content by.
    #[inline]
    fn compare(&mut self, pool: &Pool, mut piece: &[u8]) {
        while !piece.is_empty() && (self.mismatch.is_none() || !self.is_ours()) {
            let within = (self.at % BLOCK as u64) as usize;
            let length = if within < STAMP {
                let length = piece.len().min(STAMP - within);
                self.held[within..within + length].copy_from_slice(&piece[..length]);
                if within + length == STAMP {
                    self.judge_opening(pool, STAMP);
                }
                length
            } else {
                let length = piece.len().min(BLOCK - within);
                self.judge_body(pool, within, &piece[..length]);
                length
            };
            self.at += length as u64;
            piece = &piece[length..];
        }
        self.at += piece.len() as u64;
    }

    /// Judges bytes of a block that come after its stamp.
    #[inline]
    fn judge_body(&mut self, pool: &Pool, within: usize, piece: &[u8]) {
        let (Block::Common(bytes) | Block::Stamped(bytes)) = pool.block(self.object, self.at / BLOCK as u64);
        self.judge_bytes(self.at, piece, &bytes[within..within + piece.len()]);
    }

    /// Judges bytes that begin at `at` of the object.
    #[inline]
    fn judge_bytes(&mut self, at: u64, found: &[u8], expected: &[u8]) {
        if found == expected {
            self.compared |= !found.is_empty();
        } else {
            self.differs(Mismatch::Wrong { at: at + first_difference(found, expected) });
        }
        if !self.recognised {
            self.recognised = shares_a_run(found, expected);
        }
    }

    /// Judges the first `length` bytes of a block, which are in hand; fewer than a stamp at the end.
    fn judge_opening(&mut self, pool: &Pool, length: usize) {
        let block = self.at / BLOCK as u64;
        let start = block * BLOCK as u64;
        // A range that begins within a stamp has only the rest of it.
        let from = self.range.as_ref().map_or(0, |range| range.start.saturating_sub(start)) as usize;
        let held = self.held;
        let found = &held[from..length];
        if let Block::Common(bytes) = pool.block(self.object, block) {
            return self.judge_bytes(start + from as u64, found, &bytes[from..length]);
        }
        if let Some((label, base)) = self.label {
            let expected = &label.stamp(base, block)[from..length];
            if found != expected {
                let told = if length == STAMP { self.explain(block) } else { None };
                let at = start + from as u64 + first_difference(found, expected);
                self.differs(told.unwrap_or(Mismatch::Wrong { at }));
            }
            return;
        }
        if from > 0 || length < STAMP {
            return;
        }
        let Some((label, _)) = Label::read(&held) else {
            self.recognised |= stamp::resembles(&held, self.plan.own.set);
            return self.differs(Mismatch::Wrong { at: start });
        };
        match self.plan.kin(label.set) {
            Kin::Own => {
                (self.recognised, self.label) = (true, Some((label, label.base())));
                match self.hashed.filter(|hashed| hashed.set == label.set) {
                    Some(hashed) => self.object = hashed.object,
                    None => self.compared = true,
                }
            }
            Kin::OtherName => self.recognised = true,
            Kin::OtherForm => self.in_other_form = true,
            Kin::Unknown => {}
        }
        if let Some(told) = self.explain(block) {
            self.differs(told);
        }
    }

    /// The fault of the stamp in hand, if it is one.
    fn explain(&self, block: u64) -> Option<Mismatch> {
        let at = block * BLOCK as u64;
        let (found, number) = Label::read(&self.held)?;
        let Key { space, item } = self.key;
        let mut expected = [Some(self.plain), self.hashed].into_iter().flatten();
        let expected = expected.find(|expected| expected.set == found.set);
        let Some(expected) = expected.filter(|_| (found.space, found.item) == (space, item)) else {
            return Some(Mismatch::Misplaced { at, space: found.space, item: found.item });
        };
        let floor = expected.known.floor;
        let doubt = if found.writer == self.plan.data.writer { 0 } else { DOUBT_NS };
        if found.version < floor.saturating_sub(doubt) {
            return Some(Mismatch::Stale { at, age_ns: floor - found.version });
        }
        (number != block).then_some(Mismatch::Wrong { at })
    }

    /// Compares what is left in hand, and the length.
    fn end(&mut self) {
        let received = self.at;
        let (Shape::Seeded(pool) | Shape::Hashed(pool)) = &self.plan.shape else { return };
        if self.range.is_none() && received < STAMP as u64 {
            return self.judge_short(received as usize);
        }
        let within = (received % BLOCK as u64) as usize;
        let looks = self.mismatch.is_none() || !self.recognised;
        if looks && (1..STAMP).contains(&within) && self.received() > 0 {
            self.at -= within as u64;
            self.judge_opening(pool, within);
            self.at = received;
        }
        let size = self.label.map(|(label, _)| label.size);
        // How long an object without stamps is, nobody knows.
        let Some(size) = size else { return };
        let due = self.range.as_ref().map_or(size, |range| size.min(range.end));
        match received.cmp(&due) {
            std::cmp::Ordering::Less => self.differs(Mismatch::Truncated { received, size: due }),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => self.differs(Mismatch::Wrong { at: due }),
        }
    }

    /// Judges a whole object without room for a stamp.
    fn judge_short(&mut self, size: usize) {
        let held = self.held;
        let found = &held[..size];
        if self.hashed.is_none() && size >= TELLING && stamp::begins_as_stamp(found) {
            // The beginning of something that had room; how much it was is not known.
            self.recognised = true;
            return self.differs(Mismatch::Truncated { received: size as u64, size: STAMP as u64 });
        }
        for expected in [Some(self.plain), self.hashed].into_iter().flatten() {
            let expected = &short(expected.object, size as u64)[..size];
            if found == expected {
                (self.compared, self.mismatch) = (size >= TELLING, None);
                return;
            }
            let alike = found.iter().zip(expected).filter(|(found, expected)| found == expected).count();
            self.recognised |= size >= 8 && alike * 4 >= size;
            self.differs(Mismatch::Wrong { at: first_difference(found, expected) });
        }
    }

    /// The verdict on a whole object that carries its hash, or should.
    fn end_hashed(&mut self, tail: &Tail) -> Result<Checked, Mismatch> {
        self.end();
        let received = self.received();
        if received <= GUARD as u64 {
            return self.conclude(Unchecked::TooShort);
        }
        if tail.guard() == tail.bytes {
            // Whole. The stamps tell whose it is and how old; without any, it is what COSBench writes.
            return match self.mismatch {
                Some(told) if !matches!(told, Mismatch::Wrong { .. }) && self.is_ours() => Err(told),
                _ => Ok(Checked::Verified),
            };
        }
        // Without a hash that is right it may be content of ours that was written without one: the comparison shows.
        self.recognised |= tail.resembles_guard();
        self.conclude(Unchecked::UnknownOrigin)
    }
}

/// The MD5 of everything but the last bytes, and these.
struct Tail {
    digest: Md5,
    bytes: [u8; GUARD],
    count: usize,
}

impl Tail {
    fn new() -> Self {
        Self { digest: Md5::new(), bytes: [0; GUARD], count: 0 }
    }

    fn update(&mut self, piece: &[u8]) {
        let beyond = (self.count + piece.len()).saturating_sub(GUARD);
        let old = beyond.min(self.count);
        let new = beyond - old;
        self.digest.update(&self.bytes[..old]);
        self.digest.update(&piece[..new]);
        self.bytes.copy_within(old..self.count, 0);
        self.count -= old;
        let kept = &piece[new..];
        self.bytes[self.count..self.count + kept.len()].copy_from_slice(kept);
        self.count += kept.len();
    }

    /// The guard that should be in the last bytes.
    fn guard(&self) -> [u8; GUARD] {
        guard(self.digest.clone().finalize().into())
    }

    /// Whether the last bytes are, or were before some damage, a guard.
    fn resembles_guard(&self) -> bool {
        let (opens, closes) = (self.bytes.starts_with(b"!!!!"), self.bytes.ends_with(b"!!!!"));
        let digits = self.bytes[4..36].iter().all(u8::is_ascii_hexdigit);
        opens && closes || digits && (opens || closes)
    }
}

/// Whether some bytes in a row are as they must be, and not all the same: then it is no chance.
fn shares_a_run(found: &[u8], expected: &[u8]) -> bool {
    let runs = found.chunks_exact(RECOGNISED).zip(expected.chunks_exact(RECOGNISED));
    runs.into_iter().any(|(found, expected)| found == expected && found[1..] != found[..RECOGNISED - 1])
}

/// Index of the first byte that differs; the length of the shorter, if none does.
fn first_difference(found: &[u8], expected: &[u8]) -> u64 {
    found.iter().zip(expected).take_while(|(found, expected)| found == expected).count() as u64
}
