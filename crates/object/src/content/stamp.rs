//! The stamp at the start of every block: what the bytes are, whose, and where they belong.

use tidemark_measure::rng::mix;

/// Bytes of a stamp.
pub(crate) const STAMP: usize = 64;

/// `TIDEMRK1`: the name and the version of the format.
const MAGIC: u64 = u64::from_le_bytes(*b"TIDEMRK1");

/// Bits of a stamp's last word that hold the writer; the block's number is above them.
const WRITER_BITS: u32 = 24;

/// What all stamps of one object have in common.
///
/// A stamp is eight little-endian words: magic, check, set, space, item, version, size, and the block's
/// number above 24 bits of writer. The check covers all the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The data set: seed, dials and names.
    pub(crate) set: u64,
    /// Container number.
    pub(crate) space: u64,
    /// Object number.
    pub(crate) item: u64,
    /// When the write began, nanoseconds since 1970.
    pub(crate) version: u64,
    /// Bytes of the object.
    pub(crate) size: u64,
    /// The process that wrote it, 24 bits.
    pub(crate) writer: u32,
}

impl Label {
    /// The seed of the check words, the same for all blocks of the object.
    pub(crate) fn base(&self) -> u64 {
        mix(MAGIC, &[self.set, self.space, self.item, self.version, self.size, u64::from(self.writer)])
    }

    /// The stamp of one block; `base` is [`Label::base`], kept by callers that make many stamps.
    #[inline]
    pub(crate) fn stamp(&self, base: u64, block: u64) -> [u8; STAMP] {
        let last = block << WRITER_BITS | u64::from(self.writer);
        let check = mix(base, &[block]);
        let words = [MAGIC, check, self.set, self.space, self.item, self.version, self.size, last];
        let mut bytes = [0; STAMP];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads a stamp: the label and the block's number; `None` when it is none, or damaged.
    pub(crate) fn read(bytes: &[u8; STAMP]) -> Option<(Self, u64)> {
        let word = |index: usize| word(bytes, index);
        let last = word(7);
        let label = Self {
            set: word(2),
            space: word(3),
            item: word(4),
            version: word(5),
            size: word(6),
            writer: (last & ((1 << WRITER_BITS) - 1)) as u32,
        };
        let block = last >> WRITER_BITS;
        let whole = word(0) == MAGIC && word(1) == mix(label.base(), &[block]);
        whole.then_some((label, block))
    }
}

/// Whether bytes that are not a whole stamp of `set` look as if they had been one: one damaged byte
/// leaves either the magic or the set as it was.
pub(crate) fn resembles(bytes: &[u8; STAMP], set: u64) -> bool {
    word(bytes, 0) == MAGIC || word(bytes, 2) == set
}

/// Whether content begins with the magic, or with as much of it as there is: it is cut from something with stamps.
pub(crate) fn begins_as_stamp(bytes: &[u8]) -> bool {
    let magic = MAGIC.to_le_bytes();
    bytes.starts_with(&magic) || magic.starts_with(bytes)
}

/// Keeps what of a writer's number fits into a stamp.
pub(crate) fn writer_number(number: u32) -> u32 {
    number & ((1 << WRITER_BITS) - 1)
}

fn word(bytes: &[u8; STAMP], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label { set: 5, space: 1, item: 9, version: 77, size: 1 << 40, writer: 0xabcdef };

    #[test]
    fn reads_what_it_wrote_and_nothing_damaged() {
        let stamp = LABEL.stamp(LABEL.base(), 3);
        assert_eq!(Label::read(&stamp), Some((LABEL, 3)));
        for index in 0..STAMP {
            let mut damaged = stamp;
            damaged[index] ^= 1;
            assert_eq!(Label::read(&damaged), None, "byte {index}");
            assert!(resembles(&damaged, LABEL.set), "byte {index}");
        }
        assert!(!resembles(&[0; STAMP], LABEL.set));
    }
}
