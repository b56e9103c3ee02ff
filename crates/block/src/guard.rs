//! Protects data from being overwritten: volumes are checked before a run. The guard itself
//! writes nothing.

use crate::external::Image;
use crate::holders::{self, User};
use crate::identity::Identity;
use crate::job::{Place, Volume};
use crate::mark::Mark;
use crate::owner::{self, Owner, is_free};
use crate::signature::{self, HEAD};
use crate::stack::Stack;
use crate::{device, volume};
use rustix::fs::{Access, Mode, OFlags, access, fstat, fstatfs, open, statvfs};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use tidemark_measure::line::shell_word;
use tidemark_measure::units::binary_bytes;
use tidemark_plan::policy;

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
    /// It is not what was examined before the run, and not free either.
    #[error(
        "{path} is not what was examined before the run ({was}), but {is}: {reason}; it was left as it is. Find out who changed it, and \
         start the run again"
    )]
    Changed {
        /// As the document names it.
        path: String,
        /// What was examined.
        was: String,
        /// What is there now.
        is: String,
        /// Why that is not used in its place.
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
/// `allow`: what the user has given up, see [`is_allowed`]. Symbolic links are followed for the checks.
///
/// # Errors
/// When the volume is of the wrong kind, out of reach or too small, or when the plan would destroy something.
pub fn check(volume: &Volume, intent: Intent, allow: &[PathBuf]) -> Result<String, GuardError> {
    Ok(Subject::open(volume, intent, &policy::Access::own())?.examine(is_allowed(volume, allow))?.description)
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
    find_user(path, false).map_or(Ok(()), |user| {
        Err(GuardError::InUse { path: volume.name(), reason: user.to_string(), intent })
    })
}

/// File systems of the kernel's own files, in which a write changes a setting, by `linux/magic.h`: proc, sysfs, both cgroups, debugfs,
/// tracefs, securityfs, BPF, pstore, SELinux, Smack, binfmt_misc; and configfs, efivarfs and fusectl, by their sources.
#[rustfmt::skip]
const OF_KERNEL: [i64; 15] = [
    0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163, 0x7363_6673, 0xcafe_4a11, 0x6165_676c, 0xf97c_ff8c,
    0x4341_5d53, 0x4249_4e4d, 0x6265_6570, 0xde5e_81e4, 0x6573_5543,
];

/// Whether an open file is one of the kernel's own, in which a write changes a setting.
pub fn is_of_kernel(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|found| OF_KERNEL.contains(&found.f_type))
}

/// Who uses files of this machine, looked up once for many files.
pub struct FileUsers {
    stack: Stack,
    is_any: bool,
}

impl FileUsers {
    /// Looks at loop devices, swap and mounts.
    pub fn look() -> Self {
        let stack = Stack::new();
        let is_any = holders::are_files_in_use(&stack);
        Self { stack, is_any }
    }

    /// Who uses a file, as a clause: `it is behind /dev/loop3`.
    pub fn of(&self, path: &Path) -> Option<String> {
        let user = if self.is_any { holders::of_file(&self.stack, path) } else { None };
        user.map(|user| user.to_string())
    }
}

/// Who uses the file or device at a path. With `is_held`, this process has the device open exclusively.
fn find_user(path: &Path, is_held: bool) -> Option<User> {
    let stack = Stack::new();
    let Some(Identity::Device(number)) = Identity::of(path) else {
        return holders::of_file(&stack, path);
    };
    // The path may be the only one that this process has.
    let is_busy = || matches!(open(path, EXCLUSIVE, Mode::empty()), Err(Errno::BUSY));
    holders::of_device(&stack, number, is_held).or_else(|| (!is_held && is_busy()).then_some(User::EXCLUSIVE))
}

/// How a device is opened by somebody who wants to be the only one: nobody can mount it or make a file system on it then.
const EXCLUSIVE: OFlags = OFlags::RDONLY.union(OFlags::EXCL).union(OFlags::CLOEXEC);

/// Whether the user has given up what a volume holds: its name stands in the list exactly as in the document.
pub fn is_allowed(volume: &Volume, allow: &[PathBuf]) -> bool {
    let name = volume.name();
    allow.iter().any(|one| one.as_os_str() == name.as_str())
}

/// Why nothing can be written to a file, whoever its owner.
const READ_ONLY: &str = "its file system is mounted read-only; mount it for writing, or use another place";

/// What to do where a file may not be opened.
const FILE_ACCESS: &str = "grant access, or run as root";

/// What to do where a device may not be opened.
const DEVICE_ACCESS: &str =
    "grant access, or run as root (a driver pod: `user: root` under `drivers: {kubernetes: ...}`)";

/// A volume that is examined. It is opened once, and all that is found out is found out of what is open: a path may lead elsewhere later.
pub(crate) struct Subject<'a> {
    path: &'a Path,
    size: u64,
    intent: Intent,
    /// `None`: there is no such file.
    file: Option<File>,
    /// Whether it is a device, which this process has open exclusively.
    is_held: bool,
}

/// What an examination found that nothing speaks against.
pub(crate) struct Passed {
    /// For the report: path, kind, size, device.
    pub(crate) description: String,
    /// Whether a file holds nothing but zeroes and Tidemark's own content, as far as is known.
    pub(crate) is_stamped: bool,
}

impl<'a> Subject<'a> {
    /// Opens a file or device. A device that something would be done to is opened exclusively if nobody uses it.
    pub(crate) fn open(
        volume: &'a Volume,
        intent: Intent,
        access: &policy::Access,
    ) -> Result<Self, GuardError> {
        let path = path_of(volume)?;
        let subject = Self { path, size: volume.size, intent, file: None, is_held: false };
        let is_file = matches!(volume.place, Place::File(_));
        let found = match fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_file => return Ok(subject),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(subject.unusable("does not exist: no such device"));
            }
            Err(error) => return Err(subject.unusable(format!("cannot be read: {error}"))),
        };
        subject.check_kind(&found, is_file)?;
        subject.check_access(if is_file { FILE_ACCESS } else { DEVICE_ACCESS })?;
        let unusable = |error: io::Error| subject.unusable(format!("cannot be opened: {error}"));
        let open = |flags: OFlags| access.open(path, flags, Mode::empty());
        let held = match intent.destroys() && !is_file {
            true => open(EXCLUSIVE).ok(),
            false => None,
        };
        let is_held = held.is_some();
        let file = match held {
            Some(file) => file,
            // What became a pipe meanwhile does not make this wait.
            None => open(OFlags::RDONLY | OFlags::NONBLOCK).map_err(unusable)?,
        };
        let found = file.metadata().map_err(unusable)?;
        subject.check_kind(&found, is_file)?;
        Ok(Self { file: Some(file), is_held, ..subject })
    }

    /// A device that is open already.
    pub(crate) fn held(
        volume: &'a Volume,
        intent: Intent,
        file: File,
        is_held: bool,
    ) -> Result<Self, GuardError> {
        Ok(Self { path: path_of(volume)?, size: volume.size, intent, file: Some(file), is_held })
    }

    /// What it is; of a file that does not exist, what it will be.
    pub(crate) fn identity(&self) -> Result<Identity, GuardError> {
        let found = match &self.file {
            Some(file) => Identity::of_open(file).ok(),
            None => Identity::of(self.path).filter(|found| !found.exists()),
        };
        found.ok_or_else(|| self.unusable("changed while it was examined: start the run again"))
    }

    /// What is open, and whether exclusively.
    pub(crate) fn into_file(self) -> (Option<File>, bool) {
        (self.file, self.is_held)
    }

    /// Looks at it as if for the first time. `allowed`: the user has given up what it holds.
    pub(crate) fn examine(&self, allowed: bool) -> Result<Passed, GuardError> {
        let Some(file) = &self.file else {
            let directory = self.check_directory()?;
            self.check_space(directory, 0)?;
            return Ok(Passed { description: self.describe_file(directory, "new file"), is_stamped: true });
        };
        let found = file.metadata().map_err(|error| self.unreadable(&error))?;
        if found.file_type().is_block_device() {
            return self.examine_device(file, &found, allowed);
        }
        if self.intent.destroys() && is_of_kernel(file) {
            return Err(self.unusable(
                "is one of the kernel's own files: a write would change a setting; use a file on a disk",
            ));
        }
        let mut is_stamped = false;
        if self.intent.destroys() && !allowed {
            self.check_users(file)?;
            // Whoever made the file, it now holds data.
            if let Some(what) = signature_of(file).map_err(|error| self.unreadable(&error))? {
                return Err(self.precious(format!("it holds {what}")));
            }
            is_stamped = match owner::of_open(file) {
                Owner::Ours { is_stamped } => is_stamped,
                Owner::Foreign(_) if is_blank(file, found.len()) => true,
                Owner::Foreign(reason) => return Err(self.precious(reason)),
            };
        }
        if self.intent.writes {
            self.check_space(self.path, found.blocks().saturating_mul(512))?;
        }
        Ok(Passed { description: self.describe_file(self.path, "file"), is_stamped })
    }

    fn examine_device(&self, file: &File, found: &Metadata, allowed: bool) -> Result<Passed, GuardError> {
        let size =
            device::size_of(file).map_err(|error| self.unusable(format!("cannot be opened: {error}")))?;
        if size < self.size {
            return Err(self.unusable(format!(
                "is too small: it has {size} bytes and {} are required; lower `size`",
                self.size
            )));
        }
        if self.intent.destroys() && !allowed {
            self.check_users(file)?;
            self.check_content(file, found.rdev(), size)?;
        }
        Ok(Passed { description: self.describe_device(size), is_stamped: false })
    }

    /// Looks at what this run has changed before, for what others did to it since. `known`: the signature that it had then.
    pub(crate) fn examine_changed(&self, known: Option<&'static str>) -> Result<(), GuardError> {
        let Some(file) = &self.file else { return Ok(()) };
        self.check_users(file)?;
        match Mark::of(file) {
            Some(Mark::Void) => {
                let reason = "another program wrote to it after this run's last stage on it";
                return Err(self.precious(reason.into()));
            }
            // What was done may have been a write whose time was put back: its content decides.
            Some(Mark::Doubtful) => {
                if let Owner::Foreign(reason) = owner::of_open(file) {
                    return Err(self.precious(reason));
                }
            }
            _ => {}
        }
        match signature_of(file).map_err(|error| self.unreadable(&error))? {
            Some(what) if known != Some(what) => Err(self.precious(format!("it now holds {what}"))),
            _ => Ok(()),
        }
    }

    fn check_kind(&self, found: &Metadata, is_file: bool) -> Result<(), GuardError> {
        let kind = found.file_type();
        let reason = match is_file {
            false if kind.is_block_device() => return Ok(()),
            false => "is not a block device: use `kind: file`",
            true if kind.is_dir() => "is a directory: use a file in it",
            true if kind.is_block_device() => "is a block device: use `kind: device`, not `kind: file`",
            true if kind.is_file() => return Ok(()),
            true => "is neither a file nor a block device",
        };
        Err(self.unusable(reason))
    }

    /// Refuses a file or device that is in use.
    fn check_users(&self, file: &File) -> Result<(), GuardError> {
        let this = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        find_user(&this, self.is_held).map_or(Ok(()), |user| Err(self.in_use(user.to_string())))
    }

    /// Refuses a device that holds anything but zeroes and Tidemark's content, as far as it is looked at.
    fn check_content(&self, file: &File, number: u64, size: u64) -> Result<(), GuardError> {
        let stack = Stack::new();
        if let Some(part) = stack.partitions(number).first() {
            return Err(self.precious(format!("it has partitions ({} is the first)", stack.name(*part))));
        }
        if let Some(what) = signature_of(file).map_err(|error| self.unreadable(&error))? {
            return Err(self.precious(format!("it holds {what}")));
        }
        let survey = owner::survey(file, size, owner::PARTS).map_err(|error| self.unreadable(&error))?;
        survey.reason().map_or(Ok(()), |reason| Err(self.precious(reason)))
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

    fn unreadable(&self, error: &io::Error) -> GuardError {
        self.unusable(format!("cannot be read: {error}"))
    }
}

fn path_of(volume: &Volume) -> Result<&Path, GuardError> {
    volume::path(volume)
        .map_err(|error| GuardError::Unusable { path: volume.name(), reason: error.to_string() })
}

fn read(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// What the first and the last bytes of a device, or the first of a file, are known to be part of. Tidemark's own content is nothing.
pub(crate) fn signature_of(file: &File) -> io::Result<Option<&'static str>> {
    let found = fstat(file)?;
    let is_device = device::is_device(&found);
    let size = if is_device { device::size_of(file)? } else { found.st_size.unsigned_abs() };
    let head = read(file, 0, size.min(HEAD as u64))?;
    let at_start = signature::at_start(&head).filter(|_| !is_free(&head, 0));
    if at_start.is_some() || !is_device {
        return Ok(at_start);
    }
    let from = size.saturating_sub(HEAD as u64);
    let tail = read(file, from, size - from)?;
    Ok(signature::at_end(&tail).filter(|_| !is_free(&tail, from)))
}

/// Whether a file has never been written to: it is empty, or all of it is a hole. A prefill that was interrupted early leaves such.
fn is_blank(file: &File, length: u64) -> bool {
    use rustix::fs::{SeekFrom, seek};
    length == 0 || seek(file, SeekFrom::Data(0)) == Err(Errno::NXIO)
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
