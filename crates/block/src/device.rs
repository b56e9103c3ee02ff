//! The kernel's facts about block devices: sizes, sectors, queues.

use rustix::fs::{FileType, Stat, major, minor};
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a block device.
///
/// # Errors
/// When it cannot be opened, or is no block device.
pub fn size(path: &Path) -> io::Result<u64> {
    size_of(&File::open(path)?)
}

/// Bytes of an open block device.
pub(crate) fn size_of(mut file: &File) -> io::Result<u64> {
    if !file.metadata()?.file_type().is_block_device() {
        return Err(io::Error::other("not a block device"));
    }
    file.seek(SeekFrom::End(0))
}

/// Whether the device under a path (the device itself, or the one that a file lies on) offers queues that
/// completions can be polled from (`queue/io_poll`).
pub fn polls(path: &Path) -> bool {
    queue_of(path).is_some_and(|queue| word(&queue.join("io_poll")).as_deref() == Some("1"))
}

/// Bytes of a logical block of the device under a path, if the kernel reports it.
pub(crate) fn logical_block(path: &Path) -> Option<u64> {
    word(&queue_of(path)?.join("logical_block_size"))?.parse().ok()
}

/// The directory of the device under a path in `/sys/block`: of the whole disk, where it is a partition.
pub(crate) fn disk_of(path: &Path) -> Option<PathBuf> {
    let found = fs::metadata(path).ok()?;
    let number = if found.file_type().is_block_device() { found.rdev() } else { found.dev() };
    let entry = fs::canonicalize(entry_of(number)).ok()?;
    let is_partition = entry.join("partition").exists();
    if is_partition { entry.parent().map(Path::to_path_buf) } else { Some(entry) }
}

/// What `/sys` knows a device number by.
fn entry_of(number: u64) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{}:{}", major(number), minor(number)))
}

/// The first word of a file of `/sys`, or of the choices in it the one that is in brackets.
pub(crate) fn word(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some(chosen.unwrap_or(text.trim()).to_owned()).filter(|word| !word.is_empty())
}

/// Whether an open file is a block device.
pub(crate) fn is_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
}

fn queue_of(path: &Path) -> Option<PathBuf> {
    Some(disk_of(path)?.join("queue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_device_is_an_error() {
        assert!(size(Path::new("/")).is_err());
        assert!(size(Path::new("/nowhere")).is_err());
        assert!(!polls(Path::new("/proc")));
    }
}
