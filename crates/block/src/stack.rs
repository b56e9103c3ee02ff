//! How the block devices of a machine lie on each other: partitions, device-mapper and md, loop devices.

use crate::identity::Identity;
use rustix::fs::{major, makedev, minor};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// The block devices as the kernel describes them in `/sys`, `/proc` and `/dev` below a directory: `/`, or that of a test.
pub(crate) struct Stack {
    root: PathBuf,
}

impl Stack {
    /// Those of this machine.
    pub(crate) fn new() -> Self {
        Self { root: "/".into() }
    }

    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The partitions of a disk.
    pub(crate) fn partitions(&self, number: u64) -> Vec<u64> {
        listed(&self.entry(number), |entry| entry.join("partition").exists())
    }

    /// The disk that a partition is a part of.
    pub(crate) fn disk(&self, number: u64) -> Option<u64> {
        let entry = fs::canonicalize(self.entry(number)).ok()?;
        entry.join("partition").exists().then(|| number_of(entry.parent()?))?
    }

    /// The devices that have a device as a part of theirs.
    pub(crate) fn holders(&self, number: u64) -> Vec<u64> {
        listed(&self.entry(number).join("holders"), |_| true)
    }

    /// The devices that a device is made of.
    pub(crate) fn slaves(&self, number: u64) -> Vec<u64> {
        listed(&self.entry(number).join("slaves"), |_| true)
    }

    /// All loop devices, each with the file or device behind it. One whose file cannot be reached is not among them.
    pub(crate) fn loops(&self) -> Vec<(u64, Identity)> {
        let all = listed(&self.root.join("sys/block"), |entry| entry.join("loop").exists());
        all.into_iter().filter_map(|number| Some((number, self.behind(number)?))).collect()
    }

    /// The file or device behind a loop device.
    pub(crate) fn behind(&self, number: u64) -> Option<Identity> {
        let named = fs::read_to_string(self.entry(number).join("loop/backing_file")).ok()?;
        // The name is not that of a file that was moved or removed since, or attached in another namespace.
        self.open(number)
            .and_then(|device| status::backing(&device))
            .or_else(|| Identity::of(Path::new(named.trim_end_matches('\n'))))
    }

    /// What the kernel calls a device: `sda1`, `dm-0`.
    pub(crate) fn name(&self, number: u64) -> String {
        let entry = fs::canonicalize(self.entry(number)).ok();
        let name = entry.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| format!("{}:{}", major(number), minor(number)))
    }

    /// The device's node in `/dev`, if it has one.
    pub(crate) fn node(&self, number: u64) -> Option<PathBuf> {
        // `/sys` has `!` where a name has a slash.
        let node = self.root.join("dev").join(self.name(number).replace('!', "/"));
        (Identity::of(&node)? == Identity::Device(number)).then_some(node)
    }

    /// Where a device is mounted.
    pub(crate) fn mount(&self, number: u64) -> Option<String> {
        mounted_at(&self.proc("self/mountinfo"), number, source_number)
    }

    /// The files and devices that are used as swap space.
    pub(crate) fn swaps(&self) -> Vec<Identity> {
        let text = self.proc("swaps");
        let places = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        places.filter_map(|place| Identity::of(Path::new(place))).collect()
    }

    fn proc(&self, name: &str) -> String {
        fs::read_to_string(self.root.join("proc").join(name)).unwrap_or_default()
    }

    fn entry(&self, number: u64) -> PathBuf {
        self.root.join(format!("sys/dev/block/{}:{}", major(number), minor(number)))
    }

    fn open(&self, number: u64) -> Option<File> {
        let file = File::open(self.node(number)?).ok()?;
        file.metadata().is_ok_and(|found| found.rdev() == number).then_some(file)
    }
}

/// The devices that are listed in a directory of `/sys`, in the order of their numbers.
fn listed(directory: &Path, is_one: impl Fn(&Path) -> bool) -> Vec<u64> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<u64> =
        entries.filter(|entry| is_one(entry)).filter_map(|entry| number_of(&entry)).collect();
    all.sort_unstable();
    all
}

/// The number of the device that a directory of `/sys` is about.
fn number_of(entry: &Path) -> Option<u64> {
    device_number(fs::read_to_string(entry.join("dev")).ok()?.trim())
}

/// `8:1` as a device number.
fn device_number(text: &str) -> Option<u64> {
    let (high, low) = text.split_once(':')?;
    Some(makedev(high.parse().ok()?, low.parse().ok()?))
}

/// The number of the block device at a path.
fn source_number(path: &str) -> Option<u64> {
    let found = fs::metadata(path).ok()?;
    found.file_type().is_block_device().then(|| found.rdev())
}

/// Where a device is mounted, by the text of `/proc/self/mountinfo`: the third field is the number of the file
/// system's device, and the source after ` - ` names it where that number is one of the file system's own (Btrfs).
fn mounted_at(text: &str, number: u64, source: impl Fn(&str) -> Option<u64>) -> Option<String> {
    text.lines().find_map(|line| {
        let (fields, rest) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(2);
        let (device, place) = (fields.next()?, fields.nth(1)?);
        let named = rest.split(' ').nth(1).filter(|named| named.starts_with('/'));
        let is_it = device_number(device) == Some(number) || named.and_then(&source) == Some(number);
        is_it.then(|| place.to_owned())
    })
}

/// What the kernel reports of loop devices.
mod status {
    #![allow(unsafe_code, reason = "the kernel writes the answer to an ioctl")]

    use crate::identity::Identity;
    use rustix::ioctl::{Getter, ioctl};
    use std::fs::File;

    /// `LOOP_GET_STATUS64` of `linux/loop.h`.
    const GET: u32 = 0x4c05;

    /// `struct loop_info64` of `linux/loop.h`.
    #[repr(C)]
    struct Info {
        device: u64,
        inode: u64,
        rdevice: u64,
        /// Offset, limit, number, flags, names and keys.
        _rest: [u64; 26],
    }

    /// The file or device behind an open loop device.
    pub(super) fn backing(device: &File) -> Option<Identity> {
        // SAFETY: for this number the kernel's loop driver writes a `struct loop_info64`, of which `Info` has the layout; any bytes
        // are valid for its fields. Other drivers do not know the number and write nothing.
        let info = unsafe { ioctl(device, Getter::<GET, Info>::new()) }.ok()?;
        Some(match info.rdevice {
            0 => Identity::File { device: info.device, inode: info.inode },
            number => Identity::Device(number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_number_and_by_name() {
        let text = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                    30 22 0:44 /sub /data rw - btrfs /dev/sdb rw\n\
                    31 22 0:5 / /proc rw - proc proc rw\n";
        let named = |name: &str| (name == "/dev/sdb").then(|| makedev(8, 16));
        let at = |high, low| mounted_at(text, makedev(high, low), named);
        assert_eq!(at(8, 1).as_deref(), Some("/"));
        assert_eq!(at(8, 16).as_deref(), Some("/data"));
        assert_eq!(at(8, 17), None);
        assert_eq!(device_number("x"), None);
    }
}
