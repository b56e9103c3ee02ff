//! The content of a file: what its stored file has, and over it the pages that are not synced.

use rustix::fs::{FallocateFlags, fallocate};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The unit in which what is not synced is kept, bytes.
pub(crate) const PAGE: u64 = 4096;

/// A page that is not synced; `None`: all zeros.
type Page = Option<Box<[u8]>>;

/// The content of a file.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The size of the file, bytes.
    size: u64,
    /// How much of the stored file still counts, from its beginning; bytes. Behind it are zeros.
    base: u64,
    /// By number; they hide the stored file.
    pages: BTreeMap<u64, Page>,
    /// Whether the stored file has the same content.
    is_synced: bool,
}

impl Content {
    /// That of a stored file of so many bytes.
    pub(crate) fn stored(size: u64) -> Self {
        Self { size, base: size, pages: BTreeMap::new(), is_synced: true }
    }

    /// Its size, bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// How much memory it takes, bytes.
    pub(crate) fn dirty(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Whether the stored file has the same content.
    pub(crate) fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// Reads at most `length` bytes; fewer at the end.
    pub(crate) fn read(&self, stored: Option<&File>, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let end = offset.saturating_add(length).min(self.size);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let below = self.base.min(end).saturating_sub(offset) as usize;
        if let Some(file) = stored.filter(|_| below > 0) {
            read_some(file, &mut bytes[..below], offset)?;
        }
        for (number, page) in self.pages.range(offset / PAGE..=(end - 1) / PAGE) {
            let start = number * PAGE;
            let (from, to) = (start.max(offset), (start + PAGE).min(end));
            let target = &mut bytes[(from - offset) as usize..(to - offset) as usize];
            match page {
                Some(page) => target.copy_from_slice(&page[(from - start) as usize..(to - start) as usize]),
                None => target.fill(0),
            }
        }
        Ok(bytes)
    }

    /// Writes, and makes the file larger where it must.
    pub(crate) fn write(&mut self, stored: Option<&File>, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(end) = offset.checked_add(bytes.len() as u64).filter(|end| *end <= i64::MAX as u64) else {
            return Err(rustix::io::Errno::FBIG.into());
        };
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let (number, within) = (at / PAGE, (at % PAGE) as usize);
            let (now, later) = rest.split_at(rest.len().min(PAGE as usize - within));
            self.page(stored, number)?[within..within + now.len()].copy_from_slice(now);
            at += now.len() as u64;
            rest = later;
        }
        self.size = self.size.max(end);
        self.is_synced &= bytes.is_empty();
        Ok(())
    }

    /// Makes the file as large as this; what is new is zeros.
    pub(crate) fn resize(&mut self, stored: Option<&File>, size: u64) -> io::Result<()> {
        if size < self.size {
            if !size.is_multiple_of(PAGE) {
                // What is behind the end must not come back when the file grows again.
                self.page(stored, size / PAGE)?[(size % PAGE) as usize..].fill(0);
            }
            self.pages.split_off(&size.div_ceil(PAGE));
            self.base = self.base.min(size);
        }
        self.is_synced &= size == self.size;
        self.size = size;
        Ok(())
    }

    /// Makes a part of the file zeros, as far as it has that part.
    pub(crate) fn zero(&mut self, stored: Option<&File>, offset: u64, length: u64) -> io::Result<()> {
        let end = offset.saturating_add(length).min(self.size);
        let mut at = offset;
        while at < end {
            let (number, within) = (at / PAGE, at % PAGE);
            let to = end.min((number + 1) * PAGE);
            if to - at == PAGE || (within == 0 && to == self.size) {
                self.pages.insert(number, None);
            } else {
                self.page(stored, number)?[within as usize..(within + to - at) as usize].fill(0);
            }
            at = to;
        }
        self.is_synced &= offset >= end;
        Ok(())
    }

    /// Makes the stored file the same.
    pub(crate) fn sync(&mut self, stored: &File) -> io::Result<()> {
        if self.is_synced {
            return Ok(());
        }
        if stored.metadata()?.len() > self.base {
            stored.set_len(self.base)?;
        }
        for (number, page) in &self.pages {
            let start = number * PAGE;
            let length = PAGE.min(self.size.saturating_sub(start));
            match page {
                Some(page) => stored.write_all_at(&page[..length as usize], start)?,
                None => hole(stored, start, length)?,
            }
        }
        stored.set_len(self.size)?;
        self.base = self.size;
        self.pages.clear();
        self.is_synced = true;
        Ok(())
    }

    /// A page, to change it.
    fn page(&mut self, stored: Option<&File>, number: u64) -> io::Result<&mut [u8]> {
        if !matches!(self.pages.get(&number), Some(Some(_))) {
            let mut bytes = vec![0; PAGE as usize];
            let is_hidden = self.pages.contains_key(&number);
            let start = number * PAGE;
            let below = if is_hidden { 0 } else { self.base.saturating_sub(start).min(PAGE) as usize };
            if let Some(file) = stored.filter(|_| below > 0) {
                read_some(file, &mut bytes[..below], start)?;
            }
            self.pages.insert(number, Some(bytes.into()));
        }
        match self.pages.get_mut(&number) {
            Some(Some(page)) => Ok(page),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Reads as much as there is; the rest stays zeros.
fn read_some(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read_at(bytes, offset) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a part of a file zeros without taking space, where the file system can.
fn hole(file: &File, offset: u64, length: u64) -> io::Result<()> {
    if length == 0 || offset >= file.metadata()?.len() {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length) {
        Ok(()) => Ok(()),
        Err(_) => file.write_all_at(&vec![0; length as usize], offset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Resize(u64),
        Zero(u64, u64),
        Sync,
    }

    fn step() -> impl Strategy<Value = Step> {
        let far = 0..5 * PAGE;
        prop_oneof![
            4 => (far.clone(), 1_u8.., 1..9000_usize).prop_map(|(at, byte, length)| Step::Write(at, vec![byte; length])),
            2 => far.clone().prop_map(Step::Resize),
            2 => (far.clone(), far).prop_map(|(at, length)| Step::Zero(at, length)),
            1 => Just(Step::Sync),
        ]
    }

    proptest! {
        #[test]
        fn content_is_that_of_an_ordinary_file(steps in prop::collection::vec(step(), 1..30), at in 0..6 * PAGE) {
            let stored = tempfile::tempfile().unwrap();
            let (mut content, mut model) = (Content::default(), Vec::new());
            for step in steps {
                match step {
                    Step::Write(at, bytes) => {
                        let end = at as usize + bytes.len();
                        model.resize(model.len().max(end), 0);
                        model[at as usize..end].copy_from_slice(&bytes);
                        content.write(Some(&stored), at, &bytes).unwrap();
                    }
                    Step::Resize(size) => {
                        model.resize(size as usize, 0);
                        content.resize(Some(&stored), size).unwrap();
                    }
                    Step::Zero(at, length) => {
                        let end = model.len().min((at + length) as usize);
                        if let Some(part) = model.get_mut(at as usize..end) { part.fill(0); }
                        content.zero(Some(&stored), at, length).unwrap();
                    }
                    Step::Sync => {
                        content.sync(&stored).unwrap();
                        prop_assert_eq!(stored.metadata().unwrap().len(), model.len() as u64);
                        prop_assert_eq!(Content::stored(content.size()).read(Some(&stored), 0, u64::MAX).unwrap(), model.clone());
                    }
                }
                prop_assert_eq!(content.size(), model.len() as u64);
                prop_assert!(content.read(Some(&stored), 0, u64::MAX).unwrap() == model);
                let part = content.read(Some(&stored), at, 5000).unwrap();
                let end = model.len().min(at as usize + 5000);
                prop_assert_eq!(part, model.get(at as usize..end).unwrap_or_default());
            }
        }
    }

    #[test]
    fn what_cannot_be_as_large_is_refused() {
        let mut content = Content::default();
        let error = content.write(None, u64::MAX - 1, &[1, 2, 3]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::FBIG.raw_os_error()));
    }
}
