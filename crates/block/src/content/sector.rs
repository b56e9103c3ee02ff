//! One sector: its stamp, its bytes, and reading it back.

use super::{BLOCK, Dials, Label};
use std::sync::LazyLock;
use tidemark_measure::rng::{Rng, mix};

/// Bytes of a sector: the smallest block that devices have.
pub(crate) const SECTOR: usize = 512;

/// Bytes of a stamp: six little-endian words. Magic, check, volume, sector, generation; then from the lowest bits up
/// noise (16), duplicate (16), set (32). The check covers the others. A common sector's stamp has the number of its
/// block in place of the volume, its place in the block as sector, and no generation or set.
pub(crate) const STAMP: usize = 48;

/// `TIDEBLK1`: name and version of the format.
const MAGIC: u64 = u64::from_le_bytes(*b"TIDEBLK1");

/// The same for sectors that occur elsewhere too.
const COMMON: u64 = u64::from_le_bytes(*b"TIDEBLKC");

/// How many common blocks there are.
const COMMON_BLOCKS: u64 = 64;

/// Bytes of the pool; a power of two, larger than the window of compressors that storage uses.
const POOL: usize = 4 << 20;

/// Noise, and the first sector's worth of it again, so that a sector is one slice wherever it starts. It is the same
/// in every run, so that every run can check what another wrote.
static NOISE: LazyLock<Box<[u8]>> = LazyLock::new(|| {
    let mut rng = Rng::new(MAGIC, &[]);
    let mut bytes: Vec<u8> = (0..POOL / 8).flat_map(|_| rng.bits().to_le_bytes()).collect();
    bytes.extend_from_within(..SECTOR);
    bytes.into()
});

/// The content of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Whose it is.
    pub(crate) label: Label,
    /// When its write began, nanoseconds since 1970.
    pub(crate) generation: u64,
    /// Its place in the volume, in sectors.
    pub(crate) sector: u64,
}

/// What the sectors of one write to one volume have in common: hashes, so that they are made once.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    check: u64,
    place: u64,
    common_from: u64,
}

/// What a sector turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Whole, and this is its stamp.
    Stamped(Stamp),
    /// Whole, and common: the number of its block; its own place in the block is right.
    Common(u64, Dials),
    /// Nothing but zeroes.
    Zeroes,
    /// The stamp is whole, the rest is not.
    Damaged,
    /// No whole stamp.
    Foreign,
}

impl Stamp {
    /// The hashes for this write.
    pub(crate) fn pattern(&self) -> Pattern {
        let Label { volume, set, .. } = self.label;
        let write = mix(u64::from(set), &[volume, self.generation]);
        let check = mix(MAGIC, &[write, dials_word(self.label)]);
        Pattern { check, place: write << 6, common_from: write }
    }

    /// Makes the sector.
    #[inline]
    pub(crate) fn write(&self, pattern: &Pattern, bytes: &mut [u8; SECTOR]) {
        let Label { volume, dials, .. } = self.label;
        if dials.duplicate > 0 {
            let hash = self.block_hash(pattern);
            if hash >> 48 < u64::from(dials.duplicate) {
                return write_common(hash % COMMON_BLOCKS, self.sector, dials, bytes);
            }
        }
        let check = mix(pattern.check, &[self.sector]);
        let words = [MAGIC, check, volume, self.sector, self.generation, dials_word(self.label)];
        let place = pattern.place.wrapping_add(self.sector.wrapping_mul(SECTOR as u64));
        compose(&words, place, dials.noise, bytes);
    }

    /// The number that the block of this sector has in a write of this generation, if it is a common one.
    pub(crate) fn common_number(&self) -> u64 {
        self.block_hash(&self.pattern()) % COMMON_BLOCKS
    }

    fn block_hash(&self, pattern: &Pattern) -> u64 {
        mix(pattern.common_from, &[self.sector / (BLOCK / SECTOR as u64)])
    }
}

fn write_common(number: u64, sector: u64, dials: Dials, bytes: &mut [u8; SECTOR]) {
    let within = sector % (BLOCK / SECTOR as u64);
    let label = Label { volume: 0, dials, set: 0 };
    let check = mix(COMMON, &[number, within, dials_word(label)]);
    let words = [COMMON, check, number, within, 0, dials_word(label)];
    compose(&words, (mix(COMMON, &[number]) << 6) + within * SECTOR as u64, dials.noise, bytes);
}

/// Stamp, noise, zeroes.
#[inline]
fn compose(words: &[u64; 6], place: u64, noise: u16, bytes: &mut [u8; SECTOR]) {
    let noise = usize::from(noise).clamp(STAMP, SECTOR);
    let from = place as usize & (POOL - 1) & !7;
    for (place, word) in bytes[..STAMP].as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes[STAMP..noise].copy_from_slice(&NOISE[from + STAMP..from + noise]);
    bytes[noise..].fill(0);
}

fn dials_word(Label { dials, set, .. }: Label) -> u64 {
    u64::from(dials.noise) | u64::from(dials.duplicate) << 16 | u64::from(set) << 32
}

/// Whether a sector begins as those of Tidemark's do, whole or damaged.
pub(crate) fn bears_mark(bytes: &[u8; SECTOR]) -> bool {
    [MAGIC, COMMON].iter().any(|magic| bytes.starts_with(&magic.to_le_bytes()))
}

/// Says what a sector is, by making it anew from its stamp. `sector` is where it was found, for common ones.
pub(crate) fn read(bytes: &[u8; SECTOR], sector: u64) -> Reading {
    let words: [u64; 6] = std::array::from_fn(|index| {
        u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().expect("eight bytes"))
    });
    let [magic, check, first, second, generation, dials] = words;
    let set = (dials >> 32) as u32;
    let dials = Dials { noise: dials as u16, duplicate: (dials >> 16) as u16 };
    let mut anew = [0; SECTOR];
    let reading = match magic {
        MAGIC => {
            let label = Label { volume: first, dials, set };
            let stamp = Stamp { label, generation, sector: second };
            let pattern = stamp.pattern();
            if check != mix(pattern.check, &[second]) {
                return Reading::Foreign;
            }
            let place = pattern.place.wrapping_add(second.wrapping_mul(SECTOR as u64));
            compose(&words, place, dials.noise, &mut anew);
            Reading::Stamped(stamp)
        }
        COMMON if first < COMMON_BLOCKS => {
            write_common(first, sector, dials, &mut anew);
            if bytes[..STAMP] != anew[..STAMP] {
                return Reading::Foreign;
            }
            Reading::Common(first, dials)
        }
        0 if bytes.iter().all(|byte| *byte == 0) => return Reading::Zeroes,
        _ => return Reading::Foreign,
    };
    if *bytes == anew { reading } else { Reading::Damaged }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp(noise: u16, duplicate: u16) -> Stamp {
        let label = Label { volume: 77, dials: Dials { noise, duplicate }, set: 5 };
        Stamp { label, generation: 1_700_000_000_000_000_000, sector: 123_456 }
    }

    fn made(stamp: Stamp) -> [u8; SECTOR] {
        let mut bytes = [1; SECTOR];
        stamp.write(&stamp.pattern(), &mut bytes);
        bytes
    }

    #[test]
    fn any_flipped_bit_is_found() {
        for stamp in [stamp(512, 0), stamp(256, 0), stamp(512, u16::MAX)] {
            let whole = made(stamp);
            assert!(matches!(read(&whole, stamp.sector), Reading::Stamped(_) | Reading::Common(..)));
            for bit in 0..SECTOR * 8 {
                let mut damaged = whole;
                damaged[bit / 8] ^= 1 << (bit % 8);
                let reading = read(&damaged, stamp.sector);
                assert!(matches!(reading, Reading::Damaged | Reading::Foreign), "bit {bit}: {reading:?}");
            }
        }
    }

    #[test]
    fn the_dials_do_what_they_say() {
        let zeroes = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeroes(&made(stamp(256, 0))[256..]) == 256);
        assert!(zeroes(&made(stamp(512, 0))) < 40);
        let (share, mut common) = (u16::MAX / 4, 0);
        for block in 0..4000 {
            let one = Stamp { sector: block * 8, ..stamp(512, share) };
            common += u32::from(matches!(read(&made(one), one.sector), Reading::Common(..)));
        }
        assert!((800..1200).contains(&common), "a quarter of 4000 blocks: {common}");
    }

    #[test]
    fn a_common_block_is_the_same_wherever_it_is() {
        let all = u16::MAX;
        let blocks: std::collections::HashSet<_> = (0..1000)
            .map(|block| {
                (0..8)
                    .flat_map(|s| made(Stamp { sector: block * 8 + s, ..stamp(512, all) }))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert!(blocks.len() <= 80, "{} different blocks", blocks.len());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_and_random_bytes_are_not(
            volume: u64, generation: u64, sector: u64, set: u32, noise in 48u16..=512, random: [u8; 32],
        ) {
            let label = Label { volume, dials: Dials { noise, duplicate: 0 }, set };
            let one = Stamp { label, generation, sector };
            prop_assert_eq!(read(&made(one), sector), Reading::Stamped(one));
            let mut other = [0; SECTOR];
            other[..32].copy_from_slice(&random);
            let found = read(&other, sector);
            prop_assert!(matches!(found, Reading::Foreign | Reading::Zeroes));
        }
    }
}
