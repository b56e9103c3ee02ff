//! How the block devices of a machine lie on each other: partitions, device-mapper and md, loop devices.

use crate::identity::Identity;
use crate::mounts::{self, Mount};
use rustix::fs::{major, minor};
use std::fs::{self, File};
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
        let named = self.backing_path(number)?;
        // The name is not that of a file that was moved or removed since, or attached in another namespace.
        self.open(number).and_then(|device| status::backing(&device)).or_else(|| Identity::of(&named))
    }

    /// The name by which a file or device was put behind a loop device.
    pub(crate) fn backing_path(&self, number: u64) -> Option<PathBuf> {
        let named = fs::read_to_string(self.entry(number).join("loop/backing_file")).ok()?;
        Some(named.trim_end_matches('\n').into())
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

    /// What is mounted in the namespace of this process.
    pub(crate) fn mounts(&self) -> Vec<Mount> {
        mounts::read(&self.proc("self/mountinfo"))
    }

    /// Where a device is mounted.
    pub(crate) fn mount(&self, number: u64) -> Option<String> {
        // The source names the device where the file system has a number of its own (Btrfs).
        let is_it =
            |mount: &Mount| mount.device == number || mount.source() == Some(Identity::Device(number));
        Some(self.mounts().into_iter().find(is_it)?.place.display().to_string())
    }

    /// The files and devices that are used as swap space.
    pub(crate) fn swaps(&self) -> Vec<Identity> {
        let text = self.proc("swaps");
        let places = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        places.filter_map(|place| Identity::of(&mounts::unescaped(place))).collect()
    }

    fn proc(&self, name: &str) -> String {
        fs::read_to_string(self.root.join("proc").join(name)).unwrap_or_default()
    }

    fn entry(&self, number: u64) -> PathBuf {
        self.root.join(format!("sys/dev/block/{}:{}", major(number), minor(number)))
    }

    fn open(&self, number: u64) -> Option<File> {
        let file = File::open(self.node(number)?).ok()?;
        (Identity::of_open(&file) == Ok(Identity::Device(number))).then_some(file)
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
    mounts::device_number(fs::read_to_string(entry.join("dev")).ok()?.trim())
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
