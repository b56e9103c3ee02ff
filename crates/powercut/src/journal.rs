//! The journal of names: every change of a name, a mode or an owner, in order, as a file that grows.
//!
//! A record is its length (u32), its checksum (CRC-32, u32) and its bytes. The first record that is not whole ends the
//! journal: a process that was killed has written the beginning of one.

use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A name in a directory, as bytes.
pub(crate) type Name = Vec<u8>;

/// What a node is when it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Made {
    File,
    Directory,
    /// To this.
    Link(Name),
}

/// Who may do what with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// A new node under a name.
    Make { node: u64, parent: u64, name: Name, made: Made, access: Access },
    /// Another name for a file.
    Link { node: u64, parent: u64, name: Name },
    /// A name less; of a directory, only if that is empty.
    Remove { parent: u64, name: Name },
    /// A name moves, and replaces what has the new one.
    Rename { from: (u64, Name), to: (u64, Name) },
    /// Mode and owner of a node.
    Access { node: u64, access: Access },
}

/// The journal as a file, to add to it.
#[derive(Debug)]
pub(crate) struct Journal(File);

impl Journal {
    /// All changes of a journal, as far as it is whole; none where there is no file.
    pub(crate) fn read(path: &Path) -> io::Result<Vec<Change>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let (mut changes, mut rest) = (Vec::new(), bytes.as_slice());
        while let Some((record, after)) = record(rest) {
            let Ok(change) = postcard::from_bytes(record) else { break };
            changes.push(change);
            rest = after;
        }
        Ok(changes)
    }

    /// A journal of these changes, in place of the one that is there.
    pub(crate) fn renew(path: &Path, changes: &[Change]) -> io::Result<Self> {
        let new = path.with_extension("new");
        let mut journal = Self(File::create(&new)?);
        journal.add(changes)?;
        fs::rename(&new, path)?;
        Ok(Self(OpenOptions::new().append(true).open(path)?))
    }

    /// Adds changes.
    pub(crate) fn add(&mut self, changes: &[Change]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for change in changes {
            let record = postcard::to_stdvec(change).map_err(io::Error::other)?;
            bytes.extend((record.len() as u32).to_le_bytes());
            bytes.extend(crc32fast::hash(&record).to_le_bytes());
            bytes.extend(record);
        }
        let whole = self.0.metadata()?.len();
        self.0.write_all(&bytes).inspect_err(|_| {
            // A part of a record would hide all that comes after it.
            let _ = self.0.set_len(whole);
        })
    }
}

/// The first record and what follows, if it is whole.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (crc32fast::hash(record) == u32::from_le_bytes(*sum)).then_some((record, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_ends_where_it_is_not_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        assert!(Journal::read(&path).unwrap().is_empty());
        let change = |node| Change::Link { node, parent: 1, name: b"a".to_vec() };
        let mut journal = Journal::renew(&path, &[change(2)]).unwrap();
        let first = fs::metadata(&path).unwrap().len() as usize;
        journal.add(&[change(3)]).unwrap();
        assert_eq!(Journal::read(&path).unwrap(), [change(2), change(3)]);
        let whole = fs::read(&path).unwrap();
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let expected: &[Change] = if end < first { &[] } else { &[change(2)] };
            assert_eq!(Journal::read(&path).unwrap(), expected, "{end}");
        }
        let mut wrong = whole.clone();
        wrong[first + 9] ^= 1;
        fs::write(&path, wrong).unwrap();
        assert_eq!(Journal::read(&path).unwrap(), [change(2)]);
    }
}
