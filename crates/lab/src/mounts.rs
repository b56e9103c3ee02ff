//! File systems that are mounted in a lab's directory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::Programs;
use crate::error::LabError;
use crate::home::Home;

/// How long unmounting may take.
const UNMOUNT: Duration = Duration::from_secs(30);
/// What the kernel mounts (proc_pid_mountinfo(5)).
const MOUNTS: &str = "/proc/self/mountinfo";

/// Whether something is mounted on a directory.
pub(super) fn is_mounted(directory: &Path) -> bool {
    all().iter().any(|mounted| mounted == directory)
}

/// Unmounts what is mounted in the lab's directory, whatever serves it, and also if nothing serves it any more.
pub(super) fn release(home: &Home, programs: &Programs) -> Result<(), LabError> {
    for directory in all().into_iter().rev().filter(|mounted| [home.mount(), home.disk()].contains(mounted)) {
        unmount(&directory, programs)?;
    }
    Ok(())
}

/// Unmounts what is mounted on a directory and below it.
pub(super) fn release_below(directory: &Path, programs: &Programs) -> Result<(), LabError> {
    let mounted = all();
    let mut below = mounted.iter().rev().filter(|mounted| mounted.starts_with(directory));
    below.try_for_each(|mounted| unmount(mounted, programs))
}

/// Whether something is mounted on a directory in the view of the file system that any process has.
pub(super) fn is_mounted_for_anybody(directory: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut mounts = processes.flat_map(|entry| read(&entry.path().join("mountinfo")));
    mounts.any(|mounted| mounted == directory)
}

fn unmount(directory: &Path, programs: &Programs) -> Result<(), LabError> {
    // Lazily: what still has files open there keeps them until it closes them.
    let directory = directory.as_os_str();
    match rustix::process::geteuid().is_root() {
        true => programs.run("umount", &["-l".as_ref(), directory], UNMOUNT),
        false => programs.run("fusermount3", &["-u".as_ref(), "-z".as_ref(), directory], UNMOUNT),
    }
    .map(drop)
}

/// All directories on which something is mounted, in the order of mounting.
fn all() -> Vec<PathBuf> {
    read(Path::new(MOUNTS))
}

/// The same in the view of a process, from its `mountinfo`; none if it is gone.
fn read(mounts: &Path) -> Vec<PathBuf> {
    let text = fs::read(mounts).unwrap_or_default();
    let fields = text.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    fields.map(|field| PathBuf::from(OsString::from_vec(plain(field)))).collect()
}

/// A path without the kernel's octal escapes: `\040` is a space.
fn plain(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..3).filter(|_| *first == b'\\');
        let value = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_and_their_escapes_undone() {
        assert!(is_mounted(Path::new("/")) && is_mounted(Path::new("/proc")));
        assert!(!is_mounted(Path::new("/proc/self")));
        assert!(
            is_mounted_for_anybody(Path::new("/proc")) && !is_mounted_for_anybody(Path::new("/proc/self"))
        );
        assert_eq!(plain(br"/a\040b\134c\0x"), br"/a b\c\0x");
    }
}
