//! What a provisioner has made in a place that outlives this process, noted in the directory of its arm: a later start finds it by that, and
//! nobody else takes it for theirs meanwhile.

use super::ProvisionError;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A note of what was made. While it is open, no other process opens it.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    lock: PathBuf,
    _locked: File,
}

impl Trace {
    /// Opens the note of this name in the directory of an arm, which is made. There need not be one yet.
    ///
    /// # Errors
    /// Another process has opened it, or the directory cannot be written to.
    pub fn open(directory: &Path, name: &str) -> Result<Self, ProvisionError> {
        let (path, lock) = (directory.join(name), directory.join(format!("{name}.lock")));
        let opened = fs::create_dir_all(directory).and_then(|()| File::create(&lock));
        let locked = opened.map_err(|error| failed(&lock, "written", &error))?;
        match locked.try_lock() {
            Ok(()) => Ok(Self { path, lock, _locked: locked }),
            Err(TryLockError::Error(error)) => Err(failed(&lock, "locked", &error)),
            Err(TryLockError::WouldBlock) => Err(ProvisionError::Failed(format!(
                "another process carries this arm out ({} is locked): wait for its end, or give the evaluation another name",
                lock.display()
            ))),
        }
    }

    /// What is noted; `None`: nothing was made.
    ///
    /// # Errors
    /// It cannot be read, or says nothing.
    pub fn read(&self) -> Result<Option<String>, ProvisionError> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&self.path, "read", &error)),
            Ok(text) if text.trim().is_empty() => Err(ProvisionError::Failed(format!(
                "{} is damaged, so nobody knows what an earlier start has made: look for it yourself, then remove the file",
                self.path.display()
            ))),
            Ok(text) => Ok(Some(text)),
        }
    }

    /// Notes it, wholly or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, text: &str) -> Result<(), ProvisionError> {
        let new = self.path.with_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.path)
        };
        write().map_err(|error| failed(&self.path, "written", &error))
    }

    /// Removes the note, and the directory if nothing else is in it.
    pub fn forget(self) {
        // What stays is an empty directory at most, or the name of something that is gone.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.lock);
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> ProvisionError {
    ProvisionError::Failed(format!("{} cannot be {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_found_by_one_process_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let arm = directory.path().join("arm");
        let trace = Trace::open(&arm, "made").unwrap();
        assert_eq!(trace.read().unwrap(), None);
        trace.write("tidemark-a-1").unwrap();
        let busy = Trace::open(&arm, "made").unwrap_err().to_string();
        assert!(busy.contains("another process carries this arm out"), "{busy}");
        drop(trace);
        let trace = Trace::open(&arm, "made").unwrap();
        assert_eq!(trace.read().unwrap().as_deref(), Some("tidemark-a-1"));
        fs::write(arm.join("made"), "").unwrap();
        let damaged = trace.read().unwrap_err().to_string();
        assert!(damaged.contains("is damaged"), "{damaged}");
        trace.forget();
        assert!(!arm.exists());
    }
}
