//! One controller to a store: a lock on a file beside it, which goes when its process dies.
//!
//! Only controllers ask for it. `tidemark run` with the same store takes turns with them in SQLite.

use crate::error::StoreError;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The limit of another controller's description; bytes.
const LONGEST: u64 = 1_000;

/// The store at its path is this controller's, for as long as this lives.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Marks the store at `path` as a controller's. `since` is its start time, for people.
///
/// # Errors
/// Another controller has it, which is named; or the file beside it cannot be written.
pub fn controller_lock(path: &Path, since: &str) -> Result<Lock, StoreError> {
    let beside = beside(path);
    let unreachable = |error: std::io::Error| StoreError::Unreachable {
        path: beside.clone(),
        reason: format!("cannot take the controller's lock: {error}"),
    };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(unreachable)?;
    }
    // Its content is another controller's until the lock is taken.
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
    let mut file = options.open(&beside).map_err(unreachable)?;
    match file.try_lock() {
        Ok(()) => {
            let mut lock = Lock { file };
            lock.write(&format!("process {}, since {since}", std::process::id())).map_err(unreachable)?;
            Ok(lock)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Its description may be missing; it exists all the same.
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

impl Lock {
    /// Says where this controller is to be found, for those who are refused.
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
    fn the_second_is_refused_and_told_who_the_first_is() {
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
}
