//! Protects data from being overwritten: volumes are checked before a run. The guard itself
//! writes nothing.

use crate::external::Image;
use crate::holders::{self, User};
use crate::identity::Identity;
use crate::job::{Place, Volume};
use crate::owner::{self, Owner, is_free};
use crate::signature::{self, HEAD};
use crate::stack::Stack;
use crate::{device, volume};
use rustix::fs::{Access, access, statvfs};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use tidemark_measure::line::shell_word;
use tidemark_measure::units::binary_bytes;

/// What a plan does to a volume that could lose something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// It writes to the volume, or trims it.
    pub writes: bool,
    /// It removes the volume.
    pub removes: bool,
}

impl Intent {
    /// It only reads.
    pub const READ: Self = Self { writes: false, removes: false };
    /// It writes.
    pub const WRITE: Self = Self { writes: true, removes: false };

    /// Whether anything can be lost.
    pub const fn destroys(self) -> bool {
        self.writes || self.removes
    }

    /// What becomes of the volume, and what the user must want to be done to it.
    const fn words(self) -> (&'static str, &'static str) {
        match (self.writes, self.removes) {
            (true, true) => ("overwritten and then removed", "overwrite and remove"),
            (false, true) => ("removed", "remove"),
            _ => ("overwritten", "overwrite"),
        }
    }
}

/// Why a volume must not be used as planned, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It holds or is something that the plan would destroy, and the user has not allowed that.
    #[error("{path} would be {}, but {reason}; to {} it, add `--allow-destroy {}`", intent.words().0, intent.words().1, shell_word(path))]
    Precious {
        /// As the document names it: a path, or `pool/image`.
        path: String,
        /// What it is or holds.
        reason: String,
        /// What the plan does to it.
        intent: Intent,
    },
    /// It is in use. Writing under its user corrupts what that holds in memory, too.
    #[error(
        "{path} would be {}, but {reason}; release it first, or add `--allow-destroy {}` to {} it anyway",
        intent.words().0,
        shell_word(path),
        intent.words().1
    )]
    InUse {
        /// As the document names it.
        path: String,
        /// By whom.
        reason: String,
        /// What the plan does to it.
        intent: Intent,
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
/// `allow`: what the user has given up, see [`is_allowed`]. Symbolic links are followed for the checks.
///
/// # Errors
/// When the volume is of the wrong kind, out of reach or too small, or when the plan would destroy something.
pub fn check(volume: &Volume, intent: Intent, allow: &[PathBuf]) -> Result<String, GuardError> {
    let path = volume::path(volume)
        .map_err(|error| GuardError::Unusable { path: volume.name(), reason: error.to_string() })?;
    let subject = Subject { path, size: volume.size, intent, allowed: is_allowed(volume, allow) };
    match &volume.place {
        Place::Device(_) => subject.check_device(),
        _ => subject.check_file(),
    }
}

/// The same for an image of a Ceph cluster, of which this was found.
///
/// # Errors
/// When the plan would destroy something.
pub fn check_image(
    volume: &Volume,
    found: Image,
    intent: Intent,
    allow: &[PathBuf],
) -> Result<(), GuardError> {
    let path = volume.name();
    if !intent.destroys() || is_allowed(volume, allow) {
        return Ok(());
    }
    match found {
        Image::Absent | Image::Ours => Ok(()),
        Image::Blank if !intent.removes => Ok(()),
        Image::Blank => {
            let reason = "it is an RBD image that Tidemark did not make".into();
            Err(GuardError::Precious { path, reason, intent })
        }
        Image::Foreign(reason) => Err(GuardError::Precious { path, reason, intent }),
        Image::InUse(reason) => Err(GuardError::InUse { path, reason, intent }),
    }
}

/// Refuses a file or device that is in use, for those whose content is their user's own business.
///
/// # Errors
/// When the plan would destroy something under its user.
pub fn check_users(volume: &Volume, intent: Intent, allow: &[PathBuf]) -> Result<(), GuardError> {
    let (Place::File(path) | Place::Device(path)) = &volume.place else { return Ok(()) };
    if !intent.destroys() || is_allowed(volume, allow) {
        return Ok(());
    }
    Subject { path, size: volume.size, intent, allowed: false }.check_users()
}

/// Whether the user has given up what a volume holds: its name stands in the list exactly as in the document.
pub fn is_allowed(volume: &Volume, allow: &[PathBuf]) -> bool {
    let name = volume.name();
    allow.iter().any(|one| one.as_os_str() == name.as_str())
}

/// Why nothing can be written to a file, whoever its owner.
const READ_ONLY: &str = "its file system is mounted read-only; mount it for writing, or use another place";

/// What to do where a device may not be opened.
const DEVICE_ACCESS: &str =
    "grant access, or run as root (a driver pod: `user: root` under `drivers: {kubernetes: ...}`)";

struct Subject<'a> {
    path: &'a Path,
    size: u64,
    intent: Intent,
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
        self.check_access("grant access, or run as root")?;
        if self.intent.destroys() && !self.allowed {
            self.check_users()?;
            // Whoever made the file, it now holds data.
            let head = self.read(0, found.len().min(HEAD as u64))?;
            if let (false, Some(what)) = (is_free(&head, 0), signature::at_start(&head)) {
                return Err(self.precious(format!("it holds {what}")));
            }
            let owner = owner::of_file(self.path);
            if let (Owner::Foreign(reason), false) = (owner, is_blank(self.path, found.len())) {
                return Err(self.precious(reason));
            }
        }
        if self.intent.writes {
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
        self.check_access(DEVICE_ACCESS)?;
        let size =
            device::size(self.path).map_err(|error| self.unusable(format!("cannot be opened: {error}")))?;
        if size < self.size {
            return Err(self.unusable(format!(
                "is too small: it has {size} bytes and {} are required; lower `size`",
                self.size
            )));
        }
        if self.intent.destroys() && !self.allowed {
            self.check_users()?;
            self.check_content(&found, size)?;
        }
        Ok(self.describe_device(size))
    }

    /// Refuses a file or device that is in use.
    fn check_users(&self) -> Result<(), GuardError> {
        let stack = Stack::new();
        let user = match Identity::of(self.path) {
            // The path may be the only one that this process has.
            Some(Identity::Device(number)) => {
                holders::of_device(&stack, number).or_else(|| User::of_exclusive(self.path))
            }
            _ => holders::of_file(&stack, self.path),
        };
        user.map_or(Ok(()), |user| Err(self.in_use(user.to_string())))
    }

    /// Refuses a device that holds anything but zeroes and Tidemark's content, as far as it is looked at.
    fn check_content(&self, found: &Metadata, size: u64) -> Result<(), GuardError> {
        let stack = Stack::new();
        if let Some(part) = stack.partitions(found.rdev()).first() {
            return Err(self.precious(format!("it has partitions ({} is the first)", stack.name(*part))));
        }
        let head = self.read(0, size.min(HEAD as u64))?;
        let from = size.saturating_sub(HEAD as u64);
        let tail = self.read(from, size - from)?;
        if let Some(what) = signature::at_start(&head).or_else(|| signature::at_end(&tail)) {
            return Err(self.precious(format!("it holds {what}")));
        }
        let survey = File::open(self.path).and_then(|file| owner::survey(&file, size, owner::PARTS));
        let survey = survey.map_err(|error| self.unusable(format!("cannot be read: {error}")))?;
        if let Some(reason) = survey.reason() {
            return Err(self.precious(reason));
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
        if !self.intent.writes {
            return Ok(directory);
        }
        let place = directory.display();
        match access(directory, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(directory),
            Err(Errno::ROFS) => Err(self.unusable(format!("cannot be created: {READ_ONLY}"))),
            Err(_) => Err(self.unusable(format!(
                "cannot be created: this user may not write to {place}; use another directory, or run as its owner"
            ))),
        }
    }

    fn check_access(&self, advice: &str) -> Result<(), GuardError> {
        let (wanted, word) = match self.intent.writes {
            true => (Access::READ_OK | Access::WRITE_OK, "read and written"),
            false => (Access::READ_OK, "read"),
        };
        access(self.path, wanted).map_err(|error| match error {
            Errno::ROFS => self.unusable(format!("cannot be written: {READ_ONLY}")),
            _ => self.unusable(format!("may not be {word} by this user: {advice}")),
        })
    }

    /// Refuses a file that would not fit; `held` bytes are its own already.
    fn check_space(&self, place: &Path, held: u64) -> Result<(), GuardError> {
        let Ok(space) = statvfs(place) else { return Ok(()) };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let needed = self.size.saturating_sub(held);
        if !self.intent.writes || needed <= free {
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
        GuardError::Precious { path: self.name(), reason, intent: self.intent }
    }

    fn in_use(&self, reason: String) -> GuardError {
        GuardError::InUse { path: self.name(), reason, intent: self.intent }
    }

    fn unusable(&self, reason: impl Into<String>) -> GuardError {
        GuardError::Unusable { path: self.name(), reason: reason.into() }
    }
}

/// Whether a file has never been written to: it is empty, or all of it is a hole. A prefill that was interrupted early leaves such.
fn is_blank(path: &Path, length: u64) -> bool {
    use rustix::fs::{SeekFrom, seek};
    let Ok(file) = File::open(path) else { return false };
    length == 0 || seek(&file, SeekFrom::Data(0)) == Err(rustix::io::Errno::NXIO)
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
