//! Who uses a block device: mounts, swap, other devices; by `/sys` and `/proc`.

use crate::device::entry_of;
use rustix::fs::{major, minor};
use std::fs;
use std::path::{Path, PathBuf};

/// Who uses the device with this number, or a partition of it, in words; the first that is found.
pub(crate) fn user_of(number: u64) -> Option<String> {
    let mut devices = vec![(number, String::new())];
    devices.extend(
        partitions_of(number).into_iter().map(|(part, name)| (part, format!("its partition {name} "))),
    );
    devices.iter().find_map(|(number, which)| {
        let used = mount_of(*number).or_else(|| swap_of(*number)).or_else(|| holder_of(*number))?;
        Some(if which.is_empty() { format!("it {used}") } else { format!("{which}{used}") })
    })
}

/// The partitions of a disk, by number and name, as the kernel lists them.
pub(crate) fn partitions_of(number: u64) -> Vec<(u64, String)> {
    let Ok(entries) = fs::read_dir(entry_of(number)) else { return Vec::new() };
    let found = entries.flatten().filter(|entry| entry.path().join("partition").exists());
    found
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("dev")).ok()?;
            Some((device_number(text.trim())?, entry.file_name().to_string_lossy().into_owned()))
        })
        .collect()
}

fn mount_of(number: u64) -> Option<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounted_at(&text, number, source_number).map(|place| format!("is mounted at {place}"))
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

fn swap_of(number: u64) -> Option<String> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut places = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    places.any(|place| source_number(place) == Some(number)).then(|| "is used as swap space".to_owned())
}

fn holder_of(number: u64) -> Option<String> {
    let holders: PathBuf = entry_of(number).join("holders");
    let holder = fs::read_dir(holders).ok()?.flatten().next()?;
    Some(format!("is part of {}", holder.file_name().to_string_lossy()))
}

/// The number of the block device at a path.
fn source_number(path: &str) -> Option<u64> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let found = fs::metadata(Path::new(path)).ok()?;
    found.file_type().is_block_device().then(|| found.rdev())
}

/// `8:1` as a device number.
fn device_number(text: &str) -> Option<u64> {
    let (high, low) = text.split_once(':')?;
    let number = rustix::fs::makedev(high.parse().ok()?, low.parse().ok()?);
    debug_assert_eq!((major(number).to_string(), minor(number).to_string()), (high.into(), low.into()));
    Some(number)
}

/// The loop device that a file is behind, if there is one.
pub(crate) fn loop_of(path: &Path) -> Option<String> {
    let real = std::fs::canonicalize(path).ok()?;
    let devices = std::fs::read_dir("/sys/block").ok()?.flatten();
    devices.into_iter().find_map(|device| {
        let backing = std::fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        let same = Path::new(backing.trim_end_matches('\n')) == real;
        same.then(|| format!("/dev/{}", device.file_name().to_string_lossy()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_number_and_by_name() {
        let text = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                    30 22 0:44 /sub /data rw - btrfs /dev/sdb rw\n\
                    31 22 0:5 / /proc rw - proc proc rw\n";
        let named = |name: &str| (name == "/dev/sdb").then(|| rustix::fs::makedev(8, 16));
        let at = |high, low| mounted_at(text, rustix::fs::makedev(high, low), named);
        assert_eq!(at(8, 1).as_deref(), Some("/"));
        assert_eq!(at(8, 16).as_deref(), Some("/data"));
        assert_eq!(at(8, 17), None);
        assert_eq!(device_number("x"), None);
    }
}
