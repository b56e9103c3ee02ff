//! The page cache of one volume, dropped on purpose; nothing else on the machine is touched.

use crate::job::Volume;
use crate::volume;
use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync, open};
use std::io;

/// Writes back what the page cache holds of a volume and forgets it: `fsync`, then `posix_fadvise` with `DONTNEED`.
///
/// Pages that another process has mapped or locked stay.
///
/// # Errors
/// When the volume cannot be opened or written back, or is an RBD image.
pub fn drop(volume: &Volume) -> io::Result<()> {
    let path = volume::path(volume).map_err(io::Error::other)?;
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    fsync(&file)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Place;

    #[test]
    fn what_is_not_there_is_an_error_and_what_is_there_stays_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("volume");
        let volume = Volume { place: Place::File(path.clone()), size: 4096 };
        assert_eq!(drop(&volume).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, vec![7; 4096]).unwrap();
        drop(&volume).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; 4096]);
    }
}
