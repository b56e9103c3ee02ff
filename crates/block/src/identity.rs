//! What tells a file, a device or an image from all others, by whatever name it is reached.

use crate::device;
use crate::job::{Place, Volume};
use crate::stack::Stack;
use rustix::fs::{Stat, fstat, major, minor, stat};
use std::ffi::OsString;
use std::fmt;
use std::os::fd::AsFd;
use std::path::Path;

/// What tells a file or a device from all others of this kernel, containers included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identity {
    /// A file, by its file system and its number there.
    File {
        device: u64,
        inode: u64,
    },
    Device(u64),
    /// A file that does not exist yet, by its directory and its name.
    New {
        device: u64,
        inode: u64,
        name: OsString,
    },
}

impl Identity {
    /// Of what is at a path, or will be; `None` where nothing can be.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        stat(path).map_or_else(|_| Self::to_be(path), |found| Some(Self::found(&found)))
    }

    /// Of a file that is to be made at a path.
    fn to_be(path: &Path) -> Option<Self> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let found = stat(directory.unwrap_or(Path::new("."))).ok()?;
        Some(Self::New { device: found.st_dev, inode: found.st_ino, name: path.file_name()?.to_owned() })
    }

    /// Of what is open, wherever its path leads by now.
    pub(crate) fn of_open(file: impl AsFd) -> rustix::io::Result<Self> {
        fstat(file).map(|found| Self::found(&found))
    }

    /// Of what was found.
    pub(crate) fn found(found: &Stat) -> Self {
        match device::is_device(found) {
            true => Self::Device(found.st_rdev),
            false => Self::File { device: found.st_dev, inode: found.st_ino },
        }
    }

    /// Whether there is such a file or device by now.
    pub(crate) fn exists(&self) -> bool {
        !matches!(self, Identity::New { .. })
    }

    /// Of a loop device: the file or device behind it.
    fn behind(&self, stack: &Stack) -> Option<Self> {
        match self {
            Identity::Device(device) => stack.behind(*device),
            Identity::File { .. } | Identity::New { .. } => None,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |device: &u64| format!("{}:{}", major(*device), minor(*device));
        match self {
            Identity::File { device, inode } => write!(formatter, "file {inode} on {}", number(device)),
            Identity::Device(device) => write!(formatter, "device {}", number(device)),
            Identity::New { device, inode, name } => {
                write!(formatter, "{} in {inode} on {}", name.display(), number(device))
            }
        }
    }
}

/// What a volume is, in words that are the same only for one and the same; of files and devices, on one machine. A loop device is its file
/// as well, or its device.
pub(crate) fn all(volume: &Volume) -> Vec<String> {
    let path = match &volume.place {
        Place::Rbd(rbd) => return vec![format!("image {}/{}", rbd.pool, rbd.image)],
        Place::File(path) | Place::Device(path) => path,
    };
    let stack = Stack::new();
    let all = std::iter::successors(Identity::of(path), |identity| identity.behind(&stack));
    all.map(|identity| identity.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_itself_by_every_name_before_and_after_it_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::os::unix::fs::symlink(at("d"), at("ds")).unwrap();
        let of = |name: &str| all(&Volume { place: Place::File(at(name)), size: 4096 });
        assert_eq!(of("d/new"), of("ds/new"));
        assert_ne!(of("d/new"), of("d/newer"));
        assert_ne!(of("d/new"), of("new"), "another directory");
        std::fs::write(at("d/new"), "x").unwrap();
        std::fs::hard_link(at("d/new"), at("hard")).unwrap();
        assert_eq!((of("d/new"), of("d/new").len()), (of("hard"), 1));
        assert_eq!(Identity::of(&at("nowhere/x")), None);
    }
}
