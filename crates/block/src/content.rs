//! What is written, and whether what is read is that.
//!
//! Content is made of sectors of 512 bytes, so that operations of any size can check what operations of any other
//! size wrote. A sector opens with a stamp of 48 bytes: which volume and sector it belongs to and which
//! write it is from (its *generation*, the time at which the write began); the rest is noise from a pool, from a
//! place that depends on all of that, then as many zeroes as `compressible` requires. A reader makes the
//! sector anew from its stamp and compares: one flipped bit is found (`sector`).
//!
//! - Every write is of another generation, so no two blocks are alike and what deduplicates finds nothing, unless
//!   requested by `duplicate`: that share of the 4 KiB blocks is taken from a set of 64 and holds neither
//!   where it belongs nor when it was written. In these, misplaced and old content shows only in blocks that this
//!   run wrote.
//! - Volumes are known by a hash of their real path: after a file has been renamed, its content is misplaced.
//! - Which generation a reader must find is kept in a table (`table`). What was not written in this run may be of any
//!   generation (`check`), unless the target has a `journal`: then the table outlives the run (`journal`).

pub(crate) mod check;
pub(crate) mod journal;
pub(crate) mod sector;
pub(crate) mod table;

use crate::job::Content;
use sector::{SECTOR, Stamp};

/// Bytes of a block as the `duplicate` dial counts them.
pub(crate) const BLOCK: u64 = 4096;

/// What all that one work writes to one volume has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The volume: [`volume_id`].
    pub(crate) volume: u64,
    /// The dials.
    pub(crate) dials: Dials,
    /// The run's seed, hashed.
    pub(crate) set: u32,
}

/// The dials, in the whole numbers that a stamp holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dials {
    /// Bytes of a sector that are not zeroes for the compressor, stamp included.
    pub(crate) noise: u16,
    /// Share of blocks that are common, in parts of 65535.
    pub(crate) duplicate: u16,
}

impl Dials {
    /// The nearest to what the plan requires.
    pub(crate) fn new(content: &Content) -> Self {
        let noise = SECTOR as f64 * (1.0 - content.compressible.clamp(0.0, 1.0));
        Self {
            noise: (noise.round() as u16).max(sector::STAMP as u16),
            duplicate: (content.duplicate.clamp(0.0, 1.0) * f64::from(u16::MAX)).round() as u16,
        }
    }
}

impl Label {
    /// Fills a buffer with what a write of `generation` puts at `offset`; both in whole sectors.
    pub(crate) fn fill(&self, buffer: &mut [u8], offset: u64, generation: u64) {
        let mut stamp = Stamp { label: *self, generation, sector: offset / SECTOR as u64 };
        let pattern = stamp.pattern();
        for bytes in buffer.as_chunks_mut::<SECTOR>().0 {
            stamp.write(&pattern, bytes);
            stamp.sector += 1;
        }
    }
}

/// The number by which stamps know a volume: a hash of its real path (FNV-1a, Fowler, Noll and Vo).
pub(crate) fn volume_id(path: &std::path::Path) -> u64 {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
