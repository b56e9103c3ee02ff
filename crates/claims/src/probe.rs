//! The program in the pods: writes to a volume, syncs, and reads back what it wrote; or reads what another pod wrote there.
//!
//! All of it is timed by its own monotonic clock, which no delay of Kubernetes is in. What it found it leaves as JSON where Kubernetes
//! puts the last words of a container.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;
use tidemark_measure::rng::Rng;

/// The file on the volume.
const FILE: &str = "tidemark-content";

/// Where Kubernetes looks for a container's last words (`terminationMessagePath`).
const LAST_WORDS: &str = "/dev/termination-log";

/// Bytes that are written and read at once.
const BLOCK: usize = 64 << 10;

/// What the program did, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Bytes written, or read.
    pub bytes: u64,
    /// From the opening of the file to the end of the sync; 0 where nothing was written.
    pub written_ns: u64,
    /// From the opening of the file to its first block.
    pub first_read_ns: u64,
    /// From the opening of the file to its end, each byte compared.
    pub read_ns: u64,
}

/// Why the program failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The volume failed.
    #[error("cannot {doing} {file} on the volume: {source}")]
    Volume {
        /// What was tried.
        doing: &'static str,
        /// The file.
        file: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The content is not what was written.
    #[error("wrong content: block {0} is not what was written")]
    Wrong(u64),
    /// The report could not be left.
    #[error("cannot write the last words of the container, /dev/termination-log: {0}")]
    Unsaid(io::Error),
}

/// How the words of a failure begin if the content was wrong.
pub(crate) const WRONG: &str = "wrong content";

/// Writes `bytes` that follow from `seed` to the volume at `directory`, syncs, and reads them back from the volume.
///
/// # Errors
/// [`ProbeError`].
pub fn write(directory: &Path, bytes: u64, seed: u64) -> Result<Report, ProbeError> {
    let failed = |doing| move |source| ProbeError::Volume { doing, file: FILE, source };
    let began = Instant::now();
    let mut file = File::create(directory.join(FILE)).map_err(failed("create"))?;
    let mut content = Content::new(seed, bytes);
    let mut block = vec![0; BLOCK];
    while let Some(part) = content.next(&mut block) {
        file.write_all(part).map_err(failed("write"))?;
    }
    file.sync_all().map_err(failed("sync"))?;
    let written_ns = began.elapsed().as_nanos() as u64;
    Ok(Report { written_ns, ..read(directory, bytes, seed)? })
}

/// Reads what [`write`] has written, and compares it.
///
/// # Errors
/// [`ProbeError`].
pub fn read(directory: &Path, bytes: u64, seed: u64) -> Result<Report, ProbeError> {
    let failed = |doing| move |source| ProbeError::Volume { doing, file: FILE, source };
    let began = Instant::now();
    let mut file = File::open(directory.join(FILE)).map_err(failed("open"))?;
    // From the volume, and not from memory, as far as the file system heeds it.
    let _ = rustix::fs::fadvise(file.as_fd(), 0, None, rustix::fs::Advice::DontNeed);
    let mut content = Content::new(seed, bytes);
    let (mut expected, mut found) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut report = Report { bytes, ..Report::default() };
    let mut number = 0;
    while let Some(part) = content.next(&mut expected) {
        let found = &mut found[..part.len()];
        file.read_exact(found).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ProbeError::Wrong(number),
            _ => failed("read")(error),
        })?;
        if number == 0 {
            report.first_read_ns = began.elapsed().as_nanos() as u64;
        }
        if found != part {
            return Err(ProbeError::Wrong(number));
        }
        number += 1;
    }
    report.read_ns = began.elapsed().as_nanos() as u64;
    Ok(report)
}

/// Leaves a report where Kubernetes shows it.
///
/// # Errors
/// [`ProbeError::Unsaid`].
pub fn say(report: &Report) -> Result<(), ProbeError> {
    let text = serde_json::to_string(report).map_err(|error| ProbeError::Unsaid(error.into()))?;
    std::fs::write(LAST_WORDS, text).map_err(ProbeError::Unsaid)
}

/// Bytes that follow from a seed.
struct Content {
    rng: Rng,
    left: u64,
}

impl Content {
    fn new(seed: u64, bytes: u64) -> Self {
        Self { rng: Rng::new(seed, &[]), left: bytes }
    }

    /// The next block, made in `block`.
    fn next<'a>(&mut self, block: &'a mut [u8]) -> Option<&'a [u8]> {
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(block.len());
        if length == 0 {
            return None;
        }
        self.left -= length as u64;
        let block = &mut block[..length];
        for word in block.chunks_mut(8) {
            word.copy_from_slice(&self.rng.bits().to_le_bytes()[..word.len()]);
        }
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_and_anything_else_is_wrong() {
        let place = tempfile::tempdir().unwrap();
        let bytes = 3 * BLOCK as u64 + 5;
        let report = write(place.path(), bytes, 7).unwrap();
        assert!(report.bytes == bytes && report.written_ns > 0);
        assert!(report.first_read_ns <= report.read_ns);
        assert_eq!(read(place.path(), bytes, 7).unwrap().written_ns, 0);
        let wrong = |seed, bytes| match read(place.path(), bytes, seed) {
            Err(ProbeError::Wrong(block)) => block,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (wrong(8, bytes), wrong(7, bytes + BLOCK as u64)),
            (0, 3),
            "of another seed, and too short"
        );
        let path = place.path().join(FILE);
        let mut content = std::fs::read(&path).unwrap();
        content[2 * BLOCK] ^= 1;
        std::fs::write(&path, content).unwrap();
        assert_eq!(wrong(7, bytes), 2);
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(read(place.path(), 1, 7), Err(ProbeError::Volume { doing: "open", .. })));
    }
}
