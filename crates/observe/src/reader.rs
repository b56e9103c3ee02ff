//! Files of `/proc` and `/sys`, kept open and read every second.

use crate::sample::Gaps;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Buffer size of the first read; most files need no more.
const ROOM: usize = 4096;

/// No file of `/proc` that is read here is larger, even with thousands of processors.
const MOST: usize = 16 << 20;

/// One open file.
pub(crate) struct Reader {
    file: File,
    buffer: Vec<u8>,
}

impl Reader {
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, buffer: Vec::new() })
    }

    /// Reads the whole file.
    pub(crate) fn read(&mut self) -> io::Result<Cow<'_, str>> {
        let mut filled = 0;
        while filled < MOST {
            if filled == self.buffer.len() {
                self.buffer.resize((filled * 2).max(ROOM), 0);
            }
            match self.file.read_at(&mut self.buffer[filled..], filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(String::from_utf8_lossy(&self.buffer[..filled]))
    }

    /// Reads the first line in one system call.
    pub(crate) fn read_line(&mut self) -> io::Result<Cow<'_, str>> {
        self.buffer.resize(self.buffer.len().max(512), 0);
        let filled = self.file.read_at(&mut self.buffer, 0)?;
        Ok(String::from_utf8_lossy(&self.buffer[..filled]))
    }
}

/// A file that may be missing, which the gaps then report.
pub(crate) struct Source {
    path: PathBuf,
    reader: Option<Reader>,
}

impl Source {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), reader: None }
    }

    /// Reads the whole file.
    pub(crate) fn read(&mut self, gaps: &mut Gaps) -> Option<Cow<'_, str>> {
        if self.reader.is_none() {
            match Reader::open(&self.path) {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => {
                    gaps.say(format!("{} cannot be read on this node: {error}.", self.path.display()));
                    return None;
                }
            }
        }
        match self.reader.as_mut()?.read() {
            Ok(text) => Some(text),
            Err(error) => {
                gaps.say(format!("{} cannot be read on this node: {error}.", self.path.display()));
                None
            }
        }
    }
}

/// The number in a file of one line; `None` without the file or a number in it.
pub(crate) fn number_in(path: impl AsRef<Path>) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The words of a line as numbers; 0 for a word that is not a number.
pub(crate) fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u64> {
    words.map(|word| word.parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_with_its_new_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counter");
        std::fs::write(&path, "a".repeat(10_000)).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.read().unwrap().len(), 10_000);
        std::fs::write(&path, b"1 2\xff").unwrap();
        assert_eq!(reader.read().unwrap(), "1 2\u{fffd}");
        assert_eq!(reader.read_line().unwrap(), "1 2\u{fffd}");
    }

    #[test]
    fn a_missing_file_is_a_gap() {
        let (mut gaps, mut source) = (Gaps::default(), Source::new("/proc/no-such-file"));
        assert!(source.read(&mut gaps).is_none() && source.read(&mut gaps).is_none());
        assert_eq!(gaps.sentences().len(), 1);
        assert!(gaps.sentences()[0].starts_with("/proc/no-such-file cannot be read on this node"));
    }
}
