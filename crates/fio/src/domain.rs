//! Where a fio process may write: what the guard has examined, and the directories of files that fio makes.

use crate::file::FioFile;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use tidemark_block::job::{Place, Volume};
use tidemark_sandbox::Sandbox;

/// Directories in which nobody stores files: fio makes none there.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// For the jobs of one process.
pub(crate) fn of_files<'a>(files: impl IntoIterator<Item = &'a FioFile>) -> Sandbox {
    let mut sandbox = Sandbox::default();
    for file in files {
        let writes = file.actions.iter().any(|action| action.changes());
        file.paths.iter().for_each(|path| open(&mut sandbox, path, writes));
        file.buffers.iter().for_each(|path| open(&mut sandbox, path, true));
    }
    sandbox
}

/// For a work on volumes; `makes` says that files are made which are not there yet.
pub(crate) fn of_volume(volume: &Volume, writes: bool, makes: bool) -> Sandbox {
    let mut sandbox = Sandbox::default();
    match &volume.place {
        Place::File(path) if makes => open(&mut sandbox, path, true),
        Place::File(path) => sandbox.file(path),
        Place::Device(path) if writes => sandbox.file(path),
        Place::Device(path) => sandbox.device_to_read(path),
        Place::Rbd(_) => {}
    }
    sandbox
}

/// Opens a path: a device for what is done to it, a file with its directory, for fio removes a file that is too short and makes it anew.
fn open(sandbox: &mut Sandbox, path: &Path, writes: bool) {
    let is_device = std::fs::metadata(path)
        .is_ok_and(|found| found.file_type().is_block_device() || found.file_type().is_char_device());
    if is_device && !writes {
        return sandbox.device_to_read(path);
    }
    sandbox.file(path);
    if !is_device && let Some(directory) = directory(path) {
        sandbox.directory(directory);
    }
}

/// The directory in which fio makes a file, if files are made there at all.
fn directory(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = std::fs::canonicalize(parent).ok()?;
    let is_systems = SYSTEM.iter().any(|system| whole.starts_with(system)) && !whole.starts_with("/dev/shm");
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
}
