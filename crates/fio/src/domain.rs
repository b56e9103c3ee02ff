//! Where a fio process may write: what the guard has examined, and the directories of files that fio makes.

use crate::file::FioFile;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use tidemark_block::job::{Place, Volume};
use tidemark_sandbox::Sandbox;

/// Directories in which nobody stores files: fio makes none there.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// For the jobs of one process; `devices` are the numbers of those that the guard has examined.
pub(crate) fn of_files<'a>(files: impl IntoIterator<Item = &'a FioFile>, devices: &[u64]) -> Sandbox {
    let mut sandbox = Sandbox::default();
    for file in files {
        let writes = file.actions.iter().any(|action| action.changes());
        let named = file.paths.iter().map(|path| (path, writes));
        for (path, writes) in named.chain(file.buffers.iter().map(|path| (path, true))) {
            match device(path) {
                Some(number) if writes && devices.contains(&number) => sandbox.device(path, number),
                Some(_) => sandbox.device_to_read(path),
                None => open(&mut sandbox, path),
            }
        }
        file.logs.iter().filter_map(|log| directory(log)).for_each(|directory| sandbox.directory(directory));
    }
    sandbox
}

/// For a work on volumes; `makes` says that files are made which are not there yet, and `devices` are as above.
pub(crate) fn of_volume(volume: &Volume, writes: bool, makes: bool, devices: &[u64]) -> Sandbox {
    let mut sandbox = Sandbox::default();
    match &volume.place {
        Place::File(path) if makes => open(&mut sandbox, path),
        Place::File(path) => sandbox.file(path),
        Place::Device(path) => match device(path) {
            Some(number) if writes && devices.contains(&number) => sandbox.device(path, number),
            _ => sandbox.device_to_read(path),
        },
        Place::Rbd(_) => {}
    }
    sandbox
}

/// The number of the device at a path; `None`: there is none.
pub(crate) fn device(path: &Path) -> Option<u64> {
    let found = std::fs::metadata(path).ok()?;
    let kind = found.file_type();
    (kind.is_block_device() || kind.is_char_device()).then(|| found.rdev())
}

/// Opens a file with its directory: fio removes one that is too short and makes it anew. Like fio, it makes directories that are missing.
fn open(sandbox: &mut Sandbox, path: &Path) {
    sandbox.file(path);
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        // If it cannot be made, fio reports why.
        let _ = std::fs::create_dir_all(parent);
    }
    if let Some(directory) = directory(path) {
        sandbox.directory(directory);
    }
}

/// The directory in which fio makes a file, if files are made there at all.
fn directory(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = std::fs::canonicalize(parent).ok()?;
    // A file system of devices may be mounted elsewhere, too.
    let of = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    let is_systems = SYSTEM.iter().any(|system| {
        let shared = *system == "/dev" && whole.starts_with("/dev/shm");
        !shared && (whole.starts_with(system) || of(Path::new(system)) == of(&whole))
    });
    (whole != Path::new("/") && !is_systems).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_opens_the_root_or_the_devices() {
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
        let path = Path::new("/dev/null");
        let volume = Volume { place: Place::Device(path.into()), size: 4096 };
        let number = device(path).unwrap();
        let (mut read, mut written) = (Sandbox::default(), Sandbox::default());
        read.device_to_read(path);
        written.device(path, number);
        assert_eq!(of_volume(&volume, true, false, &[number]), written);
        assert_eq!(of_volume(&volume, true, true, &[number + 1]), read, "the path leads to another by now");
        assert_eq!(of_volume(&volume, false, false, &[number]), read);
    }
}
