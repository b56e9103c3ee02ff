//! Where a fio process may write: to what the guard has examined, and in the directories of files that fio makes.

use crate::examined::{Examined, Found};
use crate::file::{FioFile, Use, together};
use rustix::fs::fstat;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_block::job::{Place, Volume};
use tidemark_sandbox::Sandbox;

/// Directories in which nobody stores files: fio makes none there.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// What the jobs of one process need.
#[derive(Default)]
pub(crate) struct Domain {
    /// What they use, with what was found there.
    pub(crate) uses: Vec<(Use, Found)>,
    /// The directories in which fio makes files, or makes them anew.
    pub(crate) directories: BTreeMap<PathBuf, Arc<OwnedFd>>,
}

impl Domain {
    /// For the jobs of one process.
    ///
    /// # Errors
    /// Something is not what the guard has examined.
    pub(crate) fn of_files<'a>(
        files: impl IntoIterator<Item = &'a FioFile>,
        examined: &Examined,
    ) -> Result<Self, String> {
        let buffer = |path: &PathBuf| Use { path: path.clone(), writes: true, ..Use::default() };
        let used = |file: &'a FioFile| file.files.iter().cloned().chain(file.buffers.iter().map(buffer));
        let mut domain = Self::default();
        for one in together(files.into_iter().flat_map(used)) {
            let found = examined.still(&one.path)?;
            let is_made = match &found {
                Found::Absent => true,
                // What was there before the run stays the file that it is.
                Found::File { found, is_ours } => *is_ours && (one.removes || is_short(found, &one)),
                Found::Device { .. } | Found::Other => false,
            };
            if is_made && let Some((directory, found)) = directory(&one.path, examined) {
                domain.directories.insert(directory, found);
            }
            domain.uses.push((one, found));
        }
        Ok(domain)
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        let mut sandbox = Sandbox::default();
        for (Use { path, writes, .. }, found) in &self.uses {
            match found {
                Found::File { found, .. } if *writes => sandbox.file(path, Arc::clone(found)),
                Found::Device { found, is_released: true } if *writes => {
                    sandbox.device(path, Arc::clone(found));
                }
                Found::File { found, .. } | Found::Device { found, .. } => {
                    sandbox.read(path, Arc::clone(found));
                }
                Found::Absent | Found::Other => {}
            }
        }
        for (path, found) in &self.directories {
            sandbox.directory(path, Arc::clone(found));
        }
        sandbox
    }
}

/// Whether a file has less than a job wants it to have: fio removes it and makes it anew.
pub(crate) fn is_short(found: &OwnedFd, one: &Use) -> bool {
    fstat(found).is_ok_and(|found| (found.st_size as u64) < one.length)
}

/// For a work on volumes; `makes` says that files are made which are not there yet, or made anew, and `devices` are the numbers of those that
/// the guard has examined.
pub(crate) fn of_volume(volume: &Volume, writes: bool, makes: bool, devices: &[u64]) -> Sandbox {
    let mut sandbox = Sandbox::default();
    let (Place::File(path) | Place::Device(path)) = &volume.place else { return sandbox };
    let (examined, is_device) = (Examined::default(), matches!(volume.place, Place::Device(_)));
    // What cannot be opened, fio cannot open either, and reports why.
    match examined.still(path) {
        Ok(Found::File { found, .. }) => sandbox.file(path, found),
        Ok(Found::Device { found, .. }) if writes && is_device && is_one_of(&found, devices) => {
            sandbox.device(path, found);
        }
        Ok(Found::Device { found, .. }) => sandbox.read(path, found),
        Ok(Found::Absent | Found::Other) | Err(_) => {}
    }
    if makes
        && !is_device
        && let Some((directory, found)) = directory(path, &examined)
    {
        sandbox.directory(directory, found);
    }
    sandbox
}

fn is_one_of(device: &OwnedFd, devices: &[u64]) -> bool {
    fstat(device).is_ok_and(|found| devices.contains(&found.st_rdev))
}

/// The directory in which fio makes a file, if files are made there at all. Like fio, it makes directories that are missing.
fn directory(path: &Path, examined: &Examined) -> Option<(PathBuf, Arc<OwnedFd>)> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // If it cannot be made, fio reports why.
    let found = examined.directory(parent).ok()?;
    let whole = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()?;
    // A file system of devices may be mounted elsewhere, too.
    let of = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    let own = fstat(&found).ok().map(|found| found.st_dev);
    let is_systems = SYSTEM.iter().any(|system| {
        let shared = *system == "/dev" && whole.starts_with("/dev/shm");
        !shared && (whole.starts_with(system) || of(Path::new(system)) == own)
    });
    (whole != Path::new("/") && !is_systems).then_some((whole, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_opens_the_root_or_the_devices() {
        let directory = |path: &Path| directory(path, &Examined::default()).map(|(path, _)| path);
        for path in ["/file", "/dev/file", "/dev/../dev/file", "/proc/self/file", "/sys/file"] {
            assert_eq!(directory(Path::new(path)), None, "{path}");
        }
        let place = tempfile::tempdir().unwrap();
        let whole = std::fs::canonicalize(place.path()).unwrap();
        assert_eq!(directory(&place.path().join("file")), Some(whole));
        assert_eq!(directory(Path::new("file")), std::env::current_dir().ok());
    }

    #[test]
    fn a_work_on_a_volume_writes_to_devices_that_were_examined() {
        let devices = ["/dev/kmsg", "/dev/fuse", "/dev/loop-control"].map(Path::new);
        let path = devices.into_iter().find(|path| path.exists()).expect("a device of the kernel");
        let volume = Volume { place: Place::Device(path.into()), size: 4096 };
        let number = std::fs::metadata(path).unwrap().rdev();
        let may_write = |writes, makes, devices: &[u64]| {
            format!("{:?}", of_volume(&volume, writes, makes, devices)).contains("WriteDevice")
        };
        assert!(may_write(true, false, &[number]));
        assert!(!may_write(true, true, &[number + 1]), "the path leads to another by now");
        assert!(!may_write(false, false, &[number]));
    }
}
