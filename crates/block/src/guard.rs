//! Protects data from being overwritten: volumes are checked before a run. The guard itself
//! writes nothing.

use crate::content::BLOCK;
use crate::content::sector::SECTOR;
use crate::fill::{is_ours, is_whole};
use crate::job::{Place, Volume};
use crate::signature::{self, HEAD};
use crate::{device, holders, volume};
use rustix::fs::{Access, access, statvfs};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use tidemark_measure::units::binary_bytes;

/// Why a volume must not be used as planned, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It holds or is something that writing would destroy, and the user has not allowed that.
    #[error("{path} would be overwritten, but {reason}; to overwrite it, add `--allow-destroy {path}`")]
    Precious {
        /// As the document names it.
        path: String,
        /// What it is or holds.
        reason: String,
    },
    /// It is in use. Writing under its user corrupts what that holds in memory, too.
    #[error(
        "{path} would be overwritten, but {reason}; release it first, or add `--allow-destroy {path}` to overwrite it anyway"
    )]
    InUse {
        /// As the document names it.
        path: String,
        /// By whom.
        reason: String,
    },
    /// It cannot be used at all.
    #[error("{path} {reason}")]
    Unusable {
        /// As the document names it.
        path: String,
        /// Why, and what to do.
        reason: String,
    },
}

/// Looks at a volume before a run and describes it for the report: path, kind, size, device.
///
/// `writes`: whether the plan writes to it, trims it or removes it. `allow`: the paths whose content the user has
/// given up; a volume is allowed if its path stands there exactly as in the document. Symbolic links are followed
/// for the checks.
///
/// # Errors
/// When the volume is of the wrong kind, out of reach or too small, or when writing would destroy something.
pub fn check(volume: &Volume, writes: bool, allow: &[PathBuf]) -> Result<String, GuardError> {
    let path = volume::path(volume)
        .map_err(|error| GuardError::Unusable { path: volume.name(), reason: error.to_string() })?;
    let subject = Subject { path, size: volume.size, writes, allowed: allow.iter().any(|one| one == path) };
    match &volume.place {
        Place::Device(_) => subject.check_device(),
        _ => subject.check_file(),
    }
}

struct Subject<'a> {
    path: &'a Path,
    size: u64,
    writes: bool,
    allowed: bool,
}

impl Subject<'_> {
    fn check_file(&self) -> Result<String, GuardError> {
        let found = match fs::metadata(self.path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.unusable(format!("cannot be read: {error}"))),
        };
        let Some(found) = found else {
            let directory = self.check_directory()?;
            self.check_space(directory, 0)?;
            return Ok(self.describe_file(directory, "new file"));
        };
        let kind = found.file_type();
        if kind.is_dir() {
            return Err(self.unusable("is a directory: use a file in it"));
        }
        if kind.is_block_device() {
            return Err(self.unusable("is a block device: use `kind: device`, not `kind: file`"));
        }
        if !kind.is_file() {
            return Err(self.unusable("is neither a file nor a block device"));
        }
        self.check_access()?;
        if self.writes && !self.allowed {
            if let Some(device) = holders::loop_of(self.path) {
                return Err(GuardError::InUse {
                    path: self.name(),
                    reason: format!("it is behind {device}"),
                });
            }
            // Whoever made the file, it now holds data.
            let head = self.read(0, found.len().min(HEAD as u64))?;
            if let (false, Some(what)) = (is_free(&head, 0), signature::at_start(&head)) {
                return Err(self.precious(format!("it holds {what}")));
            }
        }
        if self.writes {
            let precious = found.len() > 0 && !self.allowed && !is_ours(self.path);
            if precious && !is_blank(self.path, found.len()) {
                let reason = format!("it is a file of {} bytes that Tidemark did not write", found.len());
                return Err(self.precious(reason));
            }
            self.check_space(self.path, found.blocks().saturating_mul(512))?;
        }
        Ok(self.describe_file(self.path, "file"))
    }

    fn check_device(&self) -> Result<String, GuardError> {
        let found = fs::metadata(self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.unusable("does not exist: no such device"),
            _ => self.unusable(format!("cannot be read: {error}")),
        })?;
        if !found.file_type().is_block_device() {
            return Err(self.unusable("is not a block device: use `kind: file`"));
        }
        self.check_access()?;
        let size =
            device::size(self.path).map_err(|error| self.unusable(format!("cannot be opened: {error}")))?;
        if size < self.size {
            return Err(self.unusable(format!(
                "is too small: it has {size} bytes and {} are required; lower `size`",
                self.size
            )));
        }
        if self.writes && !self.allowed {
            self.check_users(&found)?;
            self.check_content(&found, size)?;
        }
        Ok(self.describe_device(size))
    }

    /// Refuses a device that is in use.
    fn check_users(&self, found: &Metadata) -> Result<(), GuardError> {
        let in_use = |reason| GuardError::InUse { path: self.name(), reason };
        if let Some(user) = holders::user_of(found.rdev()) {
            return Err(in_use(user));
        }
        // The kernel denies exclusive access to a device that a mount, swap or another device uses.
        use rustix::fs::{Mode, OFlags, open};
        match open(self.path, OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC, Mode::empty()) {
            Err(rustix::io::Errno::BUSY) => {
                Err(in_use("another program on this machine uses it exclusively".into()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a device that holds anything but zeroes and Tidemark's content.
    fn check_content(&self, found: &Metadata, size: u64) -> Result<(), GuardError> {
        let partitions = holders::partitions_of(found.rdev());
        if let Some((_, name)) = partitions.first() {
            return Err(self.precious(format!("it has partitions ({name} is the first)")));
        }
        let head = self.read(0, size.min(HEAD as u64))?;
        let from = size.saturating_sub(HEAD as u64) / BLOCK * BLOCK;
        let tail = self.read(from, size - from)?;
        if let Some(what) = signature::at_start(&head).or_else(|| signature::at_end(&tail)) {
            return Err(self.precious(format!("it holds {what}")));
        }
        for (bytes, offset, which) in [(&head, 0, "first"), (&tail, from, "last")] {
            if !is_free(bytes, offset) {
                return Err(self.precious(format!("its {which} MiB holds data that Tidemark did not write")));
            }
        }
        Ok(())
    }

    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>, GuardError> {
        let mut bytes = vec![0; length as usize];
        let read = File::open(self.path).and_then(|file| file.read_exact_at(&mut bytes, offset));
        read.map(|()| bytes).map_err(|error| self.unusable(format!("cannot be read: {error}")))
    }

    /// The directory that a new file would be made in, which must exist and be writable.
    fn check_directory(&self) -> Result<&Path, GuardError> {
        let directory = match self.path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Err(self.unusable("is a directory: use a file in it")),
        };
        if !directory.is_dir() {
            return Err(self.unusable(format!(
                "cannot be created: the directory {} does not exist; create it first",
                directory.display()
            )));
        }
        if self.writes && access(directory, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            return Err(self.unusable(format!(
                "cannot be created: this user may not write to {}; use another directory, or run as its owner",
                directory.display()
            )));
        }
        Ok(directory)
    }

    fn check_access(&self) -> Result<(), GuardError> {
        let (wanted, word) = match self.writes {
            true => (Access::READ_OK | Access::WRITE_OK, "read and written"),
            false => (Access::READ_OK, "read"),
        };
        access(self.path, wanted).map_err(|_| {
            self.unusable(format!("may not be {word} by this user: grant access, or run as root"))
        })
    }

    /// Refuses a file that would not fit; `held` bytes are its own already.
    fn check_space(&self, place: &Path, held: u64) -> Result<(), GuardError> {
        let Ok(space) = statvfs(place) else { return Ok(()) };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let needed = self.size.saturating_sub(held);
        if !self.writes || needed <= free {
            return Ok(());
        }
        Err(self.unusable(format!(
            "does not fit: it needs {needed} bytes and its file system has {free} free; lower `size`, or free \
             room"
        )))
    }

    fn describe_file(&self, place: &Path, kind: &str) -> String {
        let on = device_words(place).map_or(String::new(), |device| format!(" on {device}"));
        format!("{}: {kind}, {} used{on}", self.path.display(), binary_bytes(self.size))
    }

    fn describe_device(&self, size: u64) -> String {
        let words = device_words(self.path).map_or(String::new(), |device| format!(": {device}"));
        let (size, used) = (binary_bytes(size), binary_bytes(self.size));
        format!("{}: block device of {size}, {used} used{words}", self.path.display())
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn precious(&self, reason: String) -> GuardError {
        GuardError::Precious { path: self.name(), reason }
    }

    fn unusable(&self, reason: impl Into<String>) -> GuardError {
        GuardError::Unusable { path: self.name(), reason: reason.into() }
    }
}

/// Whether bytes hold nothing but zeroes and Tidemark's content.
fn is_free(bytes: &[u8], offset: u64) -> bool {
    let first = offset / SECTOR as u64;
    let is_nothing = |sector: &[u8; SECTOR]| sector.iter().all(|byte| *byte == 0);
    let (sectors, rest) = bytes.as_chunks::<SECTOR>();
    rest.iter().all(|byte| *byte == 0)
        && (first..).zip(sectors).all(|(number, sector)| is_nothing(sector) || is_whole(sector, number))
}

/// Whether a file has never been written to: all of it is a hole. A prefill that was interrupted early leaves such.
fn is_blank(path: &Path, length: u64) -> bool {
    use rustix::fs::{SeekFrom, seek};
    let Ok(file) = File::open(path) else { return false };
    length > 0 && seek(&file, SeekFrom::Data(0)) == Err(rustix::io::Errno::NXIO)
}

/// The disk under a path in words: `vda (virtio, mq-deadline, not rotational)`.
fn device_words(path: &Path) -> Option<String> {
    let disk = device::disk_of(path)?;
    let name = disk.file_name()?.to_string_lossy().into_owned();
    let rotational = match device::word(&disk.join("queue/rotational")).as_deref() {
        Some("0") => Some("not rotational".to_owned()),
        Some(_) => Some("rotational".to_owned()),
        None => None,
    };
    let scheduler = device::word(&disk.join("queue/scheduler")).map(|word| format!("scheduler {word}"));
    let model = device::word(&disk.join("device/model"));
    let facts: Vec<String> = [model, scheduler, rotational].into_iter().flatten().collect();
    Some(if facts.is_empty() { name } else { format!("{name} ({})", facts.join(", ")) })
}

#[cfg(test)]
mod tests;
