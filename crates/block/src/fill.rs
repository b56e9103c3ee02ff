//! Whether a volume already holds what a prefill would write, judged by samples of it.

use crate::content::sector::{Reading, SECTOR, read};
use crate::content::{BLOCK, Dials, volume_id};
use crate::job::{Job, Place, Volume};
use crate::owner::{self, Owner, is_whole};
use crate::{device, volume};
use rustix::fs::{SeekFrom, seek};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use tidemark_measure::rng::Rng;

/// Blocks that are looked at besides the first and the last.
const SAMPLES: u64 = 64;

/// Bytes that are looked through for a stamp.
const LOOKED_AT: u64 = 16 * BLOCK;

/// Whether a volume already holds Tidemark's content over its whole size, with the dials of this job.
///
/// Looks at the first block, the last, and 64 between them that differ from volume to volume, each byte for byte; a
/// file must also be without holes, so that a prefill that was interrupted does not pass. A volume that anything else
/// wrote a share x of passes with a probability of (1 - x)^64. False for anything odd.
pub fn filled(job: &Job, volume: &Volume) -> bool {
    looks_filled(job, volume).unwrap_or(false)
}

/// Whether a volume of `size` bytes seems to be filled with stamped content, by its beginning and its end: a prefill that
/// was interrupted has no end. What fio writes has no stamps.
pub(crate) fn is_filled(path: &Path, size: u64) -> bool {
    let last = (size / BLOCK * BLOCK).saturating_sub(LOOKED_AT);
    File::open(path).is_ok_and(|file| is_stamped(&file, 0) && is_stamped(&file, last))
}

/// Whether there is a whole stamp in the 64 KiB from `at` on.
fn is_stamped(file: &File, at: u64) -> bool {
    let mut bytes = vec![0; LOOKED_AT as usize];
    let Ok(length) = file.read_at(&mut bytes, at) else { return false };
    let sectors = bytes[..length].as_chunks::<SECTOR>().0;
    (at / SECTOR as u64..).zip(sectors).any(|(number, sector)| is_whole(sector, number))
}

fn looks_filled(job: &Job, volume: &Volume) -> Option<bool> {
    let path = volume::path(volume).ok()?;
    let (file, real) = (File::open(path).ok()?, std::fs::canonicalize(path).ok()?);
    let held = match &volume.place {
        Place::Device(_) => device::size(path).ok()?,
        _ => file.metadata().ok()?.len(),
    };
    if held < volume.size || volume.size < BLOCK {
        return Some(false);
    }
    let is_file = matches!(volume.place, Place::File(_));
    // What somebody else wrote to it need not lie where the samples are.
    if is_file && !matches!(owner::of_open(&file), Owner::Ours { .. }) {
        return Some(false);
    }
    // File systems that know no holes say that the first one is at the end.
    if is_file && seek(&file, SeekFrom::Hole(0)).is_ok_and(|hole| hole < volume.size) {
        return Some(false);
    }
    let id = volume_id(&real);
    let (last, mut rng) = (volume.size / BLOCK - 1, Rng::new(id, &[volume.size]));
    let samples = (0..SAMPLES).map(|_| rng.below(last + 1));
    let mut blocks = [0, last].into_iter().chain(samples);
    Some(blocks.all(|block| holds(&file, block, id, Dials::new(&job.content)).unwrap_or(false)))
}

/// Whether a block is whole, belongs there, and was written with these dials.
fn holds(file: &File, block: u64, id: u64, dials: Dials) -> Option<bool> {
    let mut bytes = [0; BLOCK as usize];
    file.read_exact_at(&mut bytes, block * BLOCK).ok()?;
    let first = block * (BLOCK / SECTOR as u64);
    let right = |(number, sector): (u64, &[u8; SECTOR])| match read(sector, number) {
        Reading::Stamped(stamp) => {
            stamp.label.volume == id && stamp.sector == number && stamp.label.dials == dials
        }
        Reading::Common(_, common) => common == dials,
        _ => false,
    };
    Some((first..).zip(bytes.as_chunks::<SECTOR>().0).all(right))
}
