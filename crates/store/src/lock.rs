//! One controller per store: a lock on a file beside the store, which the kernel releases when the process dies.
//!
//! Only controllers take the lock. `tidemark run` with the same store takes turns with them in SQLite.

use crate::error::StoreError;
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The longest description of another controller that is read, bytes.
const LONGEST: u64 = 1_000;

/// The lock of a controller on its store, released when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Marks the store at `path` as a controller's. `since` is its start time as text.
///
/// # Errors
/// Another controller has the lock (the error names it), or the file beside the store cannot be written.
pub fn controller_lock(path: &Path, since: &str) -> Result<Lock, StoreError> {
    let beside = beside(path);
    let unreachable = |error: std::io::Error| StoreError::Unreachable {
        path: beside.clone(),
        reason: format!("cannot take the controller's lock: {error}"),
    };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(unreachable)?;
    }
    is_ours(path)?;
    // Its content is another controller's until the lock is taken. In a directory that others may write to, it may be a link of theirs.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(&beside).map_err(unreachable)?;
    match file.try_lock() {
        Ok(()) => {
            let mut lock = Lock { file };
            lock.write(&format!("process {}, since {since}", std::process::id())).map_err(unreachable)?;
            Ok(lock)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The other controller may not have written its description yet.
            let _ = (&mut file).take(LONGEST).read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => "its process is unknown".to_owned(),
                said => said.to_owned(),
            };
            Err(StoreError::Controlled { path: path.to_path_buf(), holder })
        }
        Err(TryLockError::Error(error)) => Err(unreachable(error)),
    }
}

/// A controller's store holds its tokens: whoever else could write to it could make some.
///
/// # Errors
/// The store is another user's, or others may write to it.
fn is_ours(path: &Path) -> Result<(), StoreError> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
    let (owner, us) = (found.uid(), rustix::process::geteuid().as_raw());
    let reason = match () {
        () if owner != us && owner != 0 => format!("it belongs to user {owner}, and a controller's store holds its tokens"),
        () if found.mode() & 0o002 != 0 => {
            "other users may write to it, and a controller's store holds its tokens; `chmod o-w` it if nobody has".to_owned()
        }
        () => return Ok(()),
    };
    Err(StoreError::Unreachable { path: path.to_path_buf(), reason })
}

impl Lock {
    /// Records the address of this controller, for the error message of the next one that tries.
    pub fn found_at(&mut self, address: &str) -> std::io::Result<()> {
        self.write(&format!("process {} at {address}", std::process::id()))
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())
    }
}

/// `results.db.controller`.
fn beside(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".controller");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_controller_is_refused_and_the_first_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/results.db");
        let mut first = controller_lock(&path, "noon").unwrap();
        let refused = |path: &Path| controller_lock(path, "later").unwrap_err().to_string();
        let own = format!("process {}", std::process::id());
        assert!(refused(&path).contains(&format!("{own}, since noon")), "{}", refused(&path));
        first.found_at("https://10.0.0.1:19088").unwrap();
        assert!(refused(&path).contains(&format!("{own} at https://10.0.0.1:19088;")), "{}", refused(&path));
        assert!(controller_lock(&directory.path().join("other.db"), "noon").is_ok());
        drop(first);
        controller_lock(&path, "later").unwrap();
    }
    #[test]
    fn a_store_that_others_may_write_to_and_a_link_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.db");
        std::fs::write(&path, "").unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o666);
        let refused = controller_lock(&path, "noon").unwrap_err().to_string();
        assert!(refused.contains("other users may write to it"), "{refused}");
        mode(0o600);
        let target = directory.path().join("precious");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, beside(&path)).unwrap();
        assert!(controller_lock(&path, "noon").is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
