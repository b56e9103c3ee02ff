//! The check of content as it arrives, in pieces of any length.

use super::pool::Block;
use super::stamp::{self, Label, STAMP};
use super::{BLOCK, ContentPlan, GUARD, Key, Shape, guard, short};
use md5::{Digest as _, Md5};
use std::ops::Range;
use tidemark_measure::fault::Fault;

/// By how much the clocks of two machines, and the duration of a write that the other one made, may shift
/// a version: content of another writer is stale only if it is older by more, five minutes.
const DOUBT_NS: u64 = 300_000_000_000;

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
    /// The content was not written by Tidemark, or not in this form.
    #[error("the content was not written by Tidemark in this form")]
    Foreign,
}

impl Mismatch {
    /// The class of failure.
    pub fn fault(self) -> Fault {
        match self {
            Self::Wrong { .. } => Fault::WrongContent,
            Self::Stale { .. } => Fault::StaleContent,
            Self::Truncated { .. } => Fault::TruncatedContent,
            Self::Misplaced { .. } | Self::Foreign => Fault::ForeignContent,
        }
    }
}

/// The check of one read.
pub struct Check<'a> {
    plan: &'a ContentPlan,
    key: Key,
    object: u64,
    /// Versions below are stale.
    floor: u64,
    /// Position in the object of the next byte.
    at: u64,
    /// The requested range; `None`: the whole object.
    range: Option<Range<u64>>,
    /// The content of the first stamp, and its base.
    label: Option<(Label, u64)>,
    /// The beginning of the present block, as long as its stamp is not whole.
    held: [u8; STAMP],
    digest: Option<Tail>,
    mismatch: Option<Mismatch>,
}

impl<'a> Check<'a> {
    pub(super) fn new(plan: &'a ContentPlan, key: Key, range: Option<Range<u64>>) -> Self {
        let object = plan.hash(key);
        let hashed = plan.verify && matches!(plan.shape, Shape::Hashed(_)) && range.is_none();
        Self {
            plan,
            key,
            object,
            floor: if plan.verify { plan.data.versions.floor(object) } else { 0 },
            at: range.as_ref().map_or(0, |range| range.start),
            range,
            label: None,
            held: [0; STAMP],
            digest: hashed.then(Tail::new),
            mismatch: None,
        }
    }

    /// Takes the next bytes of the content.
    #[inline]
    pub fn update(&mut self, piece: &[u8]) {
        if !self.plan.verify || self.mismatch.is_some() {
            self.at += piece.len() as u64;
            return;
        }
        match &self.plan.shape {
            Shape::Seeded(_) => self.update_seeded(piece),
            Shape::Hashed(_) => self.update_hashed(piece),
            Shape::Zero => {
                let wrong = piece.iter().position(|byte| *byte != 0);
                self.mismatch = wrong.map(|index| Mismatch::Wrong { at: self.at + index as u64 });
                self.at += piece.len() as u64;
            }
        }
    }

    /// The verdict, after the last byte of a reply that was whole.
    ///
    /// # Errors
    /// How the content differs from what was written.
    pub fn finish(mut self) -> Result<(), Mismatch> {
        if self.plan.verify && self.mismatch.is_none() {
            self.mismatch = match &self.plan.shape {
                Shape::Zero => None,
                Shape::Hashed(_) => self.end_hashed(),
                Shape::Seeded(_) => self.end_seeded(),
            };
        }
        self.mismatch.map_or(Ok(()), Err)
    }

    fn update_seeded(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() && self.mismatch.is_none() {
            let within = (self.at % BLOCK as u64) as usize;
            let length = if within < STAMP {
                let length = piece.len().min(STAMP - within);
                self.held[within..within + length].copy_from_slice(&piece[..length]);
                if within + length == STAMP {
                    self.mismatch = self.judge_opening(STAMP);
                }
                length
            } else {
                let length = piece.len().min(BLOCK - within);
                self.judge_body(within, &piece[..length]);
                length
            };
            self.at += length as u64;
            piece = &piece[length..];
        }
        self.at += piece.len() as u64;
    }

    /// Judges bytes of a block that come after its stamp.
    #[inline]
    fn judge_body(&mut self, within: usize, piece: &[u8]) {
        let Shape::Seeded(pool) = &self.plan.shape else { return };
        let (Block::Common(bytes) | Block::Stamped(bytes)) = pool.block(self.object, self.at / BLOCK as u64);
        let expected = &bytes[within..within + piece.len()];
        if piece != expected {
            self.mismatch = Some(Mismatch::Wrong { at: self.at + first_difference(piece, expected) });
        }
    }

    /// Judges the first `length` bytes of a block, which are in hand; fewer than a stamp at the end.
    fn judge_opening(&mut self, length: usize) -> Option<Mismatch> {
        let block = self.at / BLOCK as u64;
        let start = block * BLOCK as u64;
        // A range that begins within a stamp has only the rest of it.
        let from = self.range.as_ref().map_or(0, |range| range.start.saturating_sub(start)) as usize;
        let differs = |found: &[u8], expected: &[u8]| {
            let (found, expected) = (&found[from..length], &expected[from..length]);
            let wrong = || Mismatch::Wrong { at: start + from as u64 + first_difference(found, expected) };
            (found != expected).then(wrong)
        };
        let Shape::Seeded(pool) = &self.plan.shape else { return None };
        if let Block::Common(bytes) = pool.block(self.object, block) {
            return differs(&self.held, bytes);
        }
        if let Some((label, base)) = &self.label {
            let wrong = differs(&self.held, &label.stamp(*base, block))?;
            let told = if length == STAMP { self.explain(block) } else { None };
            return Some(told.unwrap_or(wrong));
        }
        if from > 0 || length < STAMP {
            return None;
        }
        let Some((label, _)) = Label::read(&self.held) else {
            let damaged = stamp::resembles(&self.held, self.plan.set);
            return Some(if damaged { Mismatch::Wrong { at: start } } else { Mismatch::Foreign });
        };
        self.label = Some((label, label.base()));
        self.explain(block)
    }

    /// The fault of the stamp in hand, if it is one.
    fn explain(&self, block: u64) -> Option<Mismatch> {
        let at = block * BLOCK as u64;
        let (found, number) = Label::read(&self.held)?;
        let Key { space, item } = self.key;
        if (found.set, found.space, found.item) != (self.plan.set, space, item) {
            return Some(Mismatch::Misplaced { at, space: found.space, item: found.item });
        }
        let doubt = if found.writer == self.plan.data.writer { 0 } else { DOUBT_NS };
        if found.version < self.floor.saturating_sub(doubt) {
            return Some(Mismatch::Stale { at, age_ns: self.floor - found.version });
        }
        (number != block).then_some(Mismatch::Wrong { at })
    }

    fn end_seeded(&mut self) -> Option<Mismatch> {
        let received = self.at;
        if self.range.is_none() && received < STAMP as u64 {
            return self.judge_short(received as usize);
        }
        let within = (received % BLOCK as u64) as usize;
        if (1..STAMP).contains(&within) && self.range.as_ref().is_none_or(|range| received > range.start) {
            self.at -= within as u64;
            if let Some(mismatch) = self.judge_opening(within) {
                return Some(mismatch);
            }
        }
        let size = self.label.map(|(label, _)| label.size);
        let due = match (&self.range, size) {
            (None, size) => size?,
            (Some(range), size) => size.map_or(range.end, |size| size.min(range.end)),
        };
        self.judge_length(received, due)
    }

    fn judge_length(&self, received: u64, due: u64) -> Option<Mismatch> {
        match received.cmp(&due) {
            std::cmp::Ordering::Less => Some(Mismatch::Truncated { received, size: due }),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(Mismatch::Wrong { at: due }),
        }
    }

    /// Judges a whole object without room for a stamp.
    fn judge_short(&self, size: usize) -> Option<Mismatch> {
        let expected = &short(self.object, size as u64)[..size];
        let found = &self.held[..size];
        if found == expected {
            return None;
        }
        if stamp::begins_with_magic(found) {
            // The beginning of something that had room; how much it was is not known.
            return Some(Mismatch::Truncated { received: size as u64, size: STAMP as u64 });
        }
        let alike = found.iter().zip(expected).filter(|(found, expected)| found == expected).count();
        let foreign = size >= 8 && alike * 4 < size;
        Some(if foreign {
            Mismatch::Foreign
        } else {
            Mismatch::Wrong { at: first_difference(found, expected) }
        })
    }

    /// Takes bytes of a hashed object: all go to the digest, the first block's stamp identifies them.
    /// Ranges of hashed objects are not verified: the digest is of the whole.
    fn update_hashed(&mut self, piece: &[u8]) {
        if let Some(tail) = &mut self.digest {
            tail.update(piece);
            if let Ok(at) = usize::try_from(self.at)
                && at < STAMP
            {
                let length = piece.len().min(STAMP - at);
                self.held[at..at + length].copy_from_slice(&piece[..length]);
            }
        }
        self.at += piece.len() as u64;
    }

    fn end_hashed(&mut self) -> Option<Mismatch> {
        let tail = self.digest.take()?;
        let received = self.at;
        if received <= GUARD as u64 {
            return None;
        }
        // COSBench's own objects have no stamp; ours say whose they are, and how long.
        let ours = (received >= (STAMP + GUARD) as u64).then(|| Label::read(&self.held)).flatten();
        if let Some((label, _)) = ours {
            let told = self.explain(0).or_else(|| self.judge_length(received, label.size));
            if told.is_some() {
                return told;
            }
        }
        if tail.guard() == tail.bytes {
            return None;
        }
        let guarded = tail.bytes.starts_with(b"!!!!") && tail.bytes.ends_with(b"!!!!");
        let wrong = Mismatch::Wrong { at: 0 };
        Some(if guarded || ours.is_some() { wrong } else { Mismatch::Foreign })
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
}

/// Index of the first byte that differs; the length of the shorter, if none does.
fn first_difference(found: &[u8], expected: &[u8]) -> u64 {
    found.iter().zip(expected).take_while(|(found, expected)| found == expected).count() as u64
}
