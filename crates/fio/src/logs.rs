//! fio's logs: made before it starts, so that it may write to them and to no other file beside them.

use crate::file::{FioFile, Log};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_sandbox::Sandbox;

/// Each is open while fio runs.
const MOST_LOGS: usize = 1_000;

/// The logs of one process. Those to which fio has written nothing are removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    made: Vec<(PathBuf, Arc<OwnedFd>)>,
    /// Why some could not be made.
    pub(crate) remarks: Vec<String>,
}

/// The names of the logs of one process with so many jobs.
fn paths(files: &[&FioFile], jobs: u32) -> Result<Vec<PathBuf>, String> {
    let mut stems: Vec<&Log> = files.iter().flat_map(|file| &file.logs).collect();
    stems.sort_by_key(|log| &log.stem);
    stems.dedup();
    let paths: Vec<PathBuf> = stems.iter().flat_map(|log| log.paths(jobs)).take(MOST_LOGS + 1).collect();
    match paths.len() <= MOST_LOGS {
        true => Ok(paths),
        false => {
            Err(format!("the jobs would write more than {} logs: use fewer, or `per_job_logs=0`", MOST_LOGS))
        }
    }
}

/// Whether the logs of a process with so many jobs overwrite nothing.
///
/// # Errors
/// One is there already.
pub(crate) fn check(files: &[&FioFile], jobs: u32) -> Result<Vec<PathBuf>, String> {
    let paths = paths(files, jobs)?;
    match paths
        .iter()
        .find(|path| fs::symlink_metadata(path).is_ok_and(|found| !found.is_file() || found.len() > 0))
    {
        Some(path) => Err(is_there(path)),
        None => Ok(paths),
    }
}

fn is_there(path: &Path) -> String {
    format!("fio would overwrite {} with a log: move it away, or give the logs another name", path.display())
}

impl Logs {
    /// Makes the logs of a process with so many jobs.
    ///
    /// # Errors
    /// One is there already.
    pub(crate) fn make(files: &[&FioFile], jobs: u32) -> Result<Self, String> {
        let mut logs = Self::default();
        for path in check(files, jobs)? {
            match open(&path) {
                Ok(Some(found)) => logs.made.push((path, Arc::new(found))),
                Ok(None) => return Err(is_there(&path)),
                Err(error) => {
                    logs.remarks.push(format!("fio could not write the log {}: {error}.", path.display()));
                }
            }
        }
        Ok(logs)
    }

    pub(crate) fn allow(&self, sandbox: &mut Sandbox) {
        self.made.iter().for_each(|(path, found)| sandbox.file(path, Arc::clone(found)));
    }
}

/// A new file, or an empty one that a run has left; `None`: something is there.
fn open(path: &Path) -> io::Result<Option<OwnedFd>> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    match options.clone().create_new(true).open(path) {
        Ok(file) => Ok(Some(file.into())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = options.open(path)?;
            let is_empty = found.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
            Ok(is_empty.then(|| found.into()))
        }
        Err(error) => Err(error),
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        for (path, found) in &self.made {
            let Ok(found) = rustix::fs::fstat(found) else { continue };
            let is_it = |there: &fs::Metadata| (there.dev(), there.ino()) == (found.st_dev, found.st_ino);
            if found.st_size == 0 && fs::symlink_metadata(path).is_ok_and(|there| is_it(&there)) {
                // Whoever looks for it finds nothing in it either.
                let _ = fs::remove_file(path);
            }
        }
    }
}
