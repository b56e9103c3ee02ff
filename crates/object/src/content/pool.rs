//! The bytes that contents are cut from: made once, shared by every object.

use super::BLOCK;
use tidemark_measure::rng::{Rng, mix};

/// Bytes of the pool; a power of two. Larger than the window of the compressors that storage uses on one
/// object (64 KiB to 4 MiB), so that they find no repetition; small enough to stay in a processor's cache.
pub(crate) const POOL: usize = 4 << 20;

/// How many blocks there are in common, for the `duplicate` dial.
const COMMON: u64 = 64;

/// Bytes in which the `compressible` dial is held exactly: a run of noise, then a run of zeroes.
const PERIOD: usize = 512;

/// What a block of an object is made of.
pub(crate) enum Block<'a> {
    /// A stamp in the first bytes; the rest of these.
    Stamped(&'a [u8]),
    /// These, and no stamp: the block occurs in other objects too.
    Common(&'a [u8]),
}

/// Pseudo-random bytes with the dials applied.
pub(crate) struct Pool {
    /// [`POOL`] bytes, and the first block again, so that every block is one slice.
    bytes: Vec<u8>,
    /// [`COMMON`] blocks.
    common: Vec<u8>,
    /// Blocks whose hash has its upper half below this are common ones.
    common_below: u64,
}

impl Pool {
    /// A pool for a data seed; shares outside 0 to 1 are taken as the nearer bound.
    pub(crate) fn new(seed: u64, compressible: f64, duplicate: f64) -> Self {
        let noise = (PERIOD as f64 * (1.0 - compressible.clamp(0.0, 1.0))).round() as usize;
        let mut bytes = vec![0; POOL + BLOCK];
        fill(&mut bytes[..POOL], noise, &mut Rng::new(seed, &[1]));
        bytes.copy_within(..BLOCK, POOL);
        let mut common = Vec::new();
        if duplicate > 0.0 {
            common.resize(COMMON as usize * BLOCK, 0);
            fill(&mut common, noise, &mut Rng::new(seed, &[2]));
        }
        let common_below = (duplicate.clamp(0.0, 1.0) * (1u64 << 32) as f64) as u64;
        Self { bytes, common, common_below }
    }

    /// Block number `block` of the object whose hash is `object`.
    #[inline]
    pub(crate) fn block(&self, object: u64, block: u64) -> Block<'_> {
        if self.common_below > 0 {
            let hash = mix(object, &[block]);
            if hash >> 32 < self.common_below {
                let start = (hash % COMMON) as usize * BLOCK;
                return Block::Common(&self.common[start..start + BLOCK]);
            }
        }
        // Objects start at any cache line of the pool and run through it, again and again.
        let start = (object << 6).wrapping_add(block.wrapping_mul(BLOCK as u64)) as usize & (POOL - 1);
        Block::Stamped(&self.bytes[start..start + BLOCK])
    }
}

/// Fills the first `noise` bytes of every period with random ones.
fn fill(bytes: &mut [u8], noise: usize, rng: &mut Rng) {
    for period in bytes.chunks_mut(PERIOD) {
        let noisy = noise.min(period.len());
        for word in period[..noisy].chunks_mut(8) {
            let random = rng.bits().to_le_bytes();
            word.copy_from_slice(&random[..word.len()]);
        }
    }
}
