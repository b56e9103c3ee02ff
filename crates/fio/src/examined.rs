//! What is at the paths that job files name: looked at once by the guard, and held, so that fio gets that and nothing else.
//!
//! fio opens its files long after the guard has looked, by paths that may lead elsewhere by then.

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_plan::policy::Access;

/// What is at a path.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// A file; its length may change.
    File {
        found: Arc<OwnedFd>,
        /// Whether fio has made it in this run, or nothing is lost with it.
        is_ours: bool,
    },
    /// A device in which something may be stored. A block device is open for reading: that keeps a loop device attached to its file.
    Device {
        found: Arc<OwnedFd>,
        /// Whether a guard has found that it may be written to.
        is_released: bool,
    },
    /// Nothing: fio makes a file there.
    Absent,
    /// What takes no load, such as `/dev/null` or a directory.
    Other,
}

/// All that was looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examined {
    access: Access,
    all: BTreeMap<PathBuf, Found>,
}

impl Examined {
    /// Nothing yet; what is looked at is opened through `access`.
    pub(crate) fn new(access: Access) -> Self {
        Self { access, all: BTreeMap::new() }
    }

    /// Looks at a path, unless that was done before.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn look(&mut self, path: &Path) -> Result<&Found, String> {
        if !self.all.contains_key(path) {
            let found = self.open(path)?;
            self.all.insert(path.to_owned(), found);
        }
        Ok(&self.all[path])
    }

    /// What was at a path, if it still is. A path that nobody has looked at is looked at now.
    ///
    /// # Errors
    /// It is something else by now, or cannot be opened.
    pub(crate) fn still(&self, path: &Path) -> Result<Found, String> {
        let now = self.open(path)?;
        let Some(found) = self.all.get(path) else { return Ok(now) };
        let is_same = match (found, &now) {
            (Found::File { found, .. }, Found::File { found: now, .. })
            | (Found::Device { found, .. }, Found::Device { found: now, .. }) => is_same(found, now),
            (Found::Absent, Found::Absent) | (Found::Other, Found::Other) => true,
            _ => false,
        };
        match (is_same, found) {
            (true, found) => Ok(found.clone()),
            (false, Found::Absent) => Err(format!(
                "{} was not there when Tidemark looked before the run, and somebody has made it since: remove it, or use another name",
                path.display()
            )),
            (false, _) => Err(format!(
                "{} is no longer what Tidemark examined before the run: somebody has replaced it; run the document again once nobody does",
                path.display()
            )),
        }
    }

    /// A guard has found that the device at a path may be written to.
    pub(crate) fn release(&mut self, path: &Path) {
        if let Some(Found::Device { is_released, .. }) = self.all.get_mut(path) {
            *is_released = true;
        }
    }

    /// The user has given up the file at a path: fio may remove it and make it anew, as one of its own.
    pub(crate) fn give_up(&mut self, path: &Path) {
        if let Some(Found::File { is_ours, .. }) = self.all.get_mut(path) {
            *is_ours = true;
        }
    }

    /// fio has run with these paths: what was not there, and now is, it has made; what it had made, it may have made anew or removed.
    pub(crate) fn settle<'p>(&mut self, paths: impl Iterator<Item = &'p PathBuf>) {
        let open = |path: &Path| match self.open(path) {
            Ok(Found::File { found, .. }) => Some(found),
            _ => None,
        };
        let is_new = |found: &Found| matches!(found, Found::Absent | Found::File { is_ours: true, .. });
        let run = paths.filter(|path| self.all.get(*path).is_some_and(is_new));
        let made: Vec<Arc<OwnedFd>> = run.filter_map(|path| open(path)).collect();
        // The same file may have several names.
        let new = self.all.iter().filter(|(_, found)| is_new(found));
        let settled = new.filter_map(|(path, _)| match open(path) {
            Some(now) if made.iter().any(|made| is_same(made, &now)) => {
                Some((path.clone(), Found::File { found: now, is_ours: true }))
            }
            Some(_) => None,
            None => Some((path.clone(), Found::Absent)),
        });
        let settled: Vec<(PathBuf, Found)> = settled.collect();
        self.all.extend(settled);
    }

    /// The directory of a file, which is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub(crate) fn directory(&self, path: &Path) -> io::Result<Arc<OwnedFd>> {
        self.access.directory(path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        Ok(Arc::new(self.access.open(path, flags, Mode::empty())?.into()))
    }

    fn open(&self, path: &Path) -> Result<Found, String> {
        let failed = |error: io::Error| format!("{} cannot be opened: {error}", path.display());
        let open = |flags| self.access.open(path, flags, Mode::empty());
        let found = match open(OFlags::PATH) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
            Err(error) => return Err(failed(error)),
        };
        let stat = fstat(&found).map_err(|error| failed(error.into()))?;
        let hold = |found: File| Found::Device { found: Arc::new(found.into()), is_released: false };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                Found::File { found: Arc::new(found.into()), is_ours: stat.st_size == 0 }
            }
            // To open a character device may do something already, such as rewind a tape.
            FileType::CharacterDevice if !tidemark_sandbox::is_harmless(path) => hold(found),
            FileType::BlockDevice => {
                let held = open(OFlags::RDONLY | OFlags::NONBLOCK).ok();
                hold(
                    held.filter(|held| fstat(held).is_ok_and(|held| number(&held) == number(&stat)))
                        .unwrap_or(found),
                )
            }
            _ => Found::Other,
        })
    }
}

/// What tells a file, or a device, from all others.
fn number(stat: &Stat) -> (bool, u64, u64) {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice | FileType::CharacterDevice => (true, stat.st_rdev, 0),
        _ => (false, stat.st_dev, stat.st_ino),
    }
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    matches!((fstat(one), fstat(other)), (Ok(one), Ok(other)) if number(&one) == number(&other))
}
