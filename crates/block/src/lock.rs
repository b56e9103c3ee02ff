//! Files locked for as long as a driver alone uses them. File systems of several machines know each other's locks.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;
use tidemark_plan::policy::Access;

/// Why a file is not locked.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Somebody else has locked it.
    Taken,
    /// It cannot be locked, or not be told.
    Unknown(io::Error),
}

/// Locks a file until the answer is dropped: against everybody, or only against those who change it. `None`: there is no such file.
pub(crate) fn lock(path: &Path, changes: bool, access: &Access) -> Result<Option<File>, Trouble> {
    // Some network file systems lock only what is open for writing against everybody.
    let (flags, operation) = match changes {
        true => (OFlags::RDWR, FlockOperation::NonBlockingLockExclusive),
        false => (OFlags::RDONLY, FlockOperation::NonBlockingLockShared),
    };
    let file = match access.open(path, flags | OFlags::CLOEXEC, Mode::empty()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Trouble::Unknown)?,
    };
    match flock(&file, operation) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(Trouble::Taken),
        Err(error) => Err(Trouble::Unknown(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_changes_a_file_has_it_alone_and_readers_share_it() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("a"), directory.path().join("b"));
        let access = Access::own();
        assert!(lock(&path, true, &access).unwrap().is_none());
        std::fs::write(&path, "x").unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        let writer = lock(&path, true, &access).unwrap();
        assert!(matches!(lock(&other, true, &access), Err(Trouble::Taken)));
        assert!(matches!(lock(&other, false, &access), Err(Trouble::Taken)));
        drop(writer);
        let readers = [&path, &other].map(|name| lock(name, false, &access).unwrap());
        assert!(readers.iter().all(Option::is_some));
        assert!(matches!(lock(&path, true, &access), Err(Trouble::Taken)));
    }
}
