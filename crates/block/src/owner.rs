//! Whose the content of a file or device is, as far as that can be told without reading all of it.
//!
//! A file that Tidemark writes to has a [`Mark`]. Without one (devices, file systems without extended attributes, a run that was
//! killed) samples of the content are looked at; all of it, where the mark leaves a doubt.

use crate::content::sector::{Reading, SECTOR, read};
use crate::device;
use crate::mark::Mark;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use tidemark_measure::rng::Rng;

/// Bytes that are read at once.
const STRETCH: u64 = 64 << 10;

/// Bytes at each end that are read whole.
const END: u64 = 1 << 20;

/// Parts between the ends in each of which one stretch is read.
pub(crate) const PARTS: u64 = 1024;

/// The same of a file whose mark holds: who has mapped it can have written to it without leaving a time.
const PARTS_OF_MARKED: u64 = 128;

/// Bytes that are read of a file that may or may not have been written to; of a larger one that is not found out.
const MOST_READ: u64 = 16 << 30;

/// Why a file with a doubtful mark must not be overwritten, unless its content shows whose it is.
const CHANGED: &str = "it was changed after Tidemark's last run on it, and perhaps its data, although its modification time is the old one";

/// Whose a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Tidemark's.
    Ours {
        /// Whether all of its content is, as far as is known, and not a program's in Tidemark's name.
        is_stamped: bool,
    },
    /// Not Tidemark's, or not any more, and why.
    Foreign(String),
}

/// Whether a file or device is Tidemark's.
pub fn is_ours(path: &Path) -> bool {
    matches!(of_file(path), Owner::Ours { .. })
}

/// Whose a file or device is: by its mark, or else by its content.
pub(crate) fn of_file(path: &Path) -> Owner {
    File::open(path).map_or_else(|error| unreadable(&error), |file| of_open(&file))
}

/// The same of an open one.
pub(crate) fn of_open(file: &File) -> Owner {
    let parts = match Mark::of(file) {
        Some(Mark::Holds { is_stamped: false }) => return Owner::Ours { is_stamped: false },
        Some(Mark::Void) => {
            return Owner::Foreign("it was written to after Tidemark's last run on it".into());
        }
        Some(Mark::Holds { is_stamped: true }) => Some(PARTS_OF_MARKED),
        Some(Mark::Doubtful) => None,
        Some(Mark::Silent) | None => Some(PARTS),
    };
    let length = match file.metadata() {
        Ok(found) if found.is_file() => found.len(),
        _ => device::size_of(file).unwrap_or(0),
    };
    if parts.is_none() && length > MOST_READ {
        return Owner::Foreign(CHANGED.into());
    }
    match survey(file, length, parts.unwrap_or(length)) {
        Ok(survey) => match (survey.has_stamps, survey.reason(), parts) {
            (true, None, _) | (false, None, Some(PARTS_OF_MARKED)) => Owner::Ours { is_stamped: true },
            (true, Some(reason), _) | (false, Some(reason), Some(PARTS_OF_MARKED)) => Owner::Foreign(reason),
            (false, _, None) => Owner::Foreign(CHANGED.into()),
            (false, _, Some(_)) => {
                Owner::Foreign(format!("it is a file of {length} bytes that Tidemark did not write"))
            }
        },
        Err(error) => unreadable(&error),
    }
}

fn unreadable(error: &io::Error) -> Owner {
    Owner::Foreign(format!("it cannot be read: {error}"))
}

/// What a look at a file's or device's content found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Whether some of it is Tidemark's.
    has_stamps: bool,
    /// Where something begins that is neither Tidemark's nor zeroes, bytes.
    foreign_at: Option<u64>,
}

impl Survey {
    /// Why it must not be overwritten.
    pub(crate) fn reason(&self) -> Option<String> {
        let at = self.foreign_at?;
        Some(format!("it holds data that Tidemark did not write (at byte {at})"))
    }
}

/// Looks at the first and the last MiB, and at a stretch of 64 KiB in each of so many equal parts between them: of [`PARTS`], at all
/// of what is not larger than 64 MiB. Data of one piece are found for certain if they fill two such parts; data that fill
/// a share x of the whole, in small pieces everywhere, are missed with a probability of about (1 - x)^1024.
pub(crate) fn survey(file: &File, length: u64, parts: u64) -> io::Result<Survey> {
    let part = length.div_ceil(parts.max(1)).next_multiple_of(STRETCH).max(STRETCH);
    let mut rng = Rng::new(length, &[]);
    let ends = (0..END.min(length)).step_by(STRETCH as usize);
    let last = (length.saturating_sub(END) / STRETCH * STRETCH..length).step_by(STRETCH as usize);
    let between = (0..length).step_by(part as usize).map(|start| start + rng.below(part / STRETCH) * STRETCH);
    let mut found = Survey { has_stamps: false, foreign_at: None };
    let mut bytes = vec![0; STRETCH as usize];
    for offset in ends.chain(last).chain(between).filter(|offset| *offset < length) {
        let bytes = &mut bytes[..STRETCH.min(length - offset) as usize];
        file.read_exact_at(bytes, offset)?;
        let sectors = bytes.as_chunks::<SECTOR>().0;
        found.has_stamps = found.has_stamps
            || (offset / SECTOR as u64..).zip(sectors).any(|(number, sector)| is_whole(sector, number));
        if let Some(within) = first_foreign(bytes, offset) {
            found.foreign_at = Some(offset + within);
            return Ok(found);
        }
    }
    Ok(found)
}

/// Whether bytes from `offset` on hold nothing but zeroes and Tidemark's content.
pub(crate) fn is_free(bytes: &[u8], offset: u64) -> bool {
    first_foreign(bytes, offset).is_none()
}

/// Where the first sector begins that holds anything else.
fn first_foreign(bytes: &[u8], offset: u64) -> Option<u64> {
    let first = offset / SECTOR as u64;
    let (sectors, rest) = bytes.as_chunks::<SECTOR>();
    let is_free = |(number, sector): (u64, &[u8; SECTOR])| {
        sector.iter().all(|byte| *byte == 0) || is_whole(sector, number)
    };
    let found = (first..).zip(sectors).position(|one| !is_free(one));
    let found = found.or_else(|| rest.iter().any(|byte| *byte != 0).then_some(sectors.len()));
    found.map(|index| (index * SECTOR) as u64)
}

/// Whether a sector holds content of Tidemark's.
pub(crate) fn is_whole(sector: &[u8; SECTOR], number: u64) -> bool {
    matches!(read(sector, number), Reading::Stamped(_) | Reading::Common(..))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Dials, Label};
    use crate::job::Content;

    fn ours(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Label { volume: 1, dials: Dials::new(&Content::default()), set: 1 }.fill(&mut bytes, 0, 5);
        bytes
    }

    fn surveyed(bytes: &[u8]) -> Survey {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        survey(&file, bytes.len() as u64, PARTS).unwrap()
    }

    #[test]
    fn what_is_foreign_is_found_wherever_it_is() {
        let length = 5 << 20;
        assert_eq!(surveyed(&vec![0; length]), Survey { has_stamps: false, foreign_at: None });
        assert_eq!(surveyed(&ours(length)), Survey { has_stamps: true, foreign_at: None });
        for at in [0, 4096, length / 2, length - 1] {
            let mut bytes = ours(length);
            bytes[at] ^= 1;
            let begin = (at / SECTOR * SECTOR) as u64;
            assert_eq!(surveyed(&bytes), Survey { has_stamps: true, foreign_at: Some(begin) });
        }
        let mut bytes = ours(4096);
        bytes.extend_from_slice(b"a line behind it");
        assert_eq!(surveyed(&bytes).foreign_at, Some(4096), "behind the last whole sector");
        assert_eq!(surveyed(&[]), Survey { has_stamps: false, foreign_at: None });
    }

    #[test]
    fn large_pieces_are_found_in_what_is_too_large_to_read() {
        let large = tempfile::tempfile().unwrap();
        let length = 256 << 20;
        large.set_len(length).unwrap();
        large.write_all_at(&vec![0xab; 512 << 10], length / 2).unwrap();
        assert!(survey(&large, length, PARTS).unwrap().foreign_at.is_some(), "two parts of 256 KiB");
    }
}
