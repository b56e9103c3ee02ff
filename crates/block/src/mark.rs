//! The mark of files that Tidemark, or fio in its name, wrote to: an extended attribute with the time at which the file was
//! last written to, and the time at which it was last changed in any way.
//!
//! Whoever writes to the file afterwards makes the mark void, however little is written and wherever. Who sets the time of the write back
//! (`touch -r`) leaves a doubt: nobody but the kernel sets the time of the change.

use crate::job::{Place, Volume};
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::str::FromStr;
use std::time::Duration;

/// The extended attribute.
const NAME: &str = "user.tidemark";

/// How long after the times were read their mark may be made: to make it changes the file, too.
const MARKING: Duration = Duration::from_millis(100);

/// A machine may be too busy to mark a file that quickly, but not every time.
const ATTEMPTS: usize = 20;

/// The mark's value while a run writes: found after it, the run did not end by itself.
const WRITING: &str = "writing";

/// What a file's mark shows.
pub(crate) enum Mark {
    /// Nobody has written to the file since.
    Holds,
    /// Somebody has written to the file since.
    Void,
    /// Something was done to the file since: that may have been a write.
    Doubtful,
    /// The run that wrote to the file did not end by itself.
    Unfinished,
}

impl Mark {
    /// Of an open file; `None`: it has none.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let mut value = [0u8; 64];
        let length = fgetxattr(file, NAME, &mut value[..]).ok()?;
        Some(Self::read(value.get(..length)?, file))
    }

    fn read(value: &[u8], file: &File) -> Self {
        if value == WRITING.as_bytes() {
            return Self::Unfinished;
        }
        let marked = str::from_utf8(value).ok().and_then(|text| text.parse::<Times>().ok());
        match (marked, Times::of(file)) {
            (Some(marked), Ok(now)) if marked.modified != now.modified => Self::Void,
            (Some(marked), Ok(now)) if marked.is_just_before(&now) => Self::Holds,
            (Some(_), Ok(_)) => Self::Doubtful,
            (None, _) | (_, Err(_)) => Self::Void,
        }
    }
}

/// When a file was last written to, and when anything of it was last changed: by its file system's clock, since 1970.
struct Times {
    modified: Duration,
    /// Marks of older versions have none.
    changed: Option<Duration>,
}

impl Times {
    fn of(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let time = |seconds: i64, nanoseconds: i64| {
            Duration::new(seconds.max(0).unsigned_abs(), nanoseconds.clamp(0, 999_999_999) as u32)
        };
        Ok(Self {
            modified: time(found.mtime(), found.mtime_nsec()),
            changed: Some(time(found.ctime(), found.ctime_nsec())),
        })
    }

    /// Whether nothing but the mark has changed since the file had these times.
    fn is_just_before(&self, now: &Self) -> bool {
        let since = self.changed.zip(now.changed).and_then(|(then, now)| now.checked_sub(then));
        since.is_some_and(|since| since <= MARKING)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = [Some(self.modified), self.changed];
        for (space, time) in ["", " "].into_iter().zip(times.into_iter().flatten()) {
            write!(f, "{space}{}.{:09}", time.as_secs(), time.subsec_nanos())?;
        }
        Ok(())
    }
}

impl FromStr for Times {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let time = |text: &str| {
            let (seconds, nanoseconds) = text.split_once('.')?;
            let nanoseconds = nanoseconds.parse().ok().filter(|number| *number < 1_000_000_000)?;
            Some(Duration::new(seconds.parse().ok()?, nanoseconds))
        };
        let (modified, changed) = match text.split_once(' ') {
            Some((modified, changed)) => (modified, Some(time(changed).ok_or(())?)),
            None => (text, None),
        };
        Ok(Self { modified: time(modified).ok_or(())?, changed })
    }
}

/// Marks a volume's file as being written to by this run. Volumes that are no files are left alone, and so are files
/// whose file system keeps no extended attributes: they are known by their content alone.
pub(crate) fn begin_writing(volume: &Volume) {
    if let Some(file) = file_of(volume) {
        let _ = fsetxattr(&file, NAME, WRITING.as_bytes(), XattrFlags::empty());
    }
}

/// Marks a volume's file as written by Tidemark, or by fio in its name, up to now and by nobody else.
pub fn mark(volume: &Volume) {
    let Some(file) = file_of(volume) else { return };
    let attempt = || {
        let before = Times::of(&file).ok()?;
        fsetxattr(&file, NAME, before.to_string().as_bytes(), XattrFlags::empty()).ok()?;
        Some(before.is_just_before(&Times::of(&file).ok()?))
    };
    // The first one changes the time that it has noted.
    let _ = (0..ATTEMPTS).map_while(|_| attempt()).any(|is_done| is_done);
}

/// A volume's file, opened to be marked.
fn file_of(volume: &Volume) -> Option<File> {
    let Place::File(path) = &volume.place else { return None };
    File::options().write(true).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_older_versions_have_no_time_of_change() {
        let times: Times = "17.000000005".parse().unwrap();
        assert_eq!((times.to_string().as_str(), times.changed), ("17.000000005", None));
        let times: Times = "17.000000005 18.900000000".parse().unwrap();
        assert_eq!(times.to_string(), "17.000000005 18.900000000");
        let at = |changed| Times { modified: times.modified, changed };
        let millis = |more| times.changed.map(|time| time + Duration::from_millis(more));
        assert!(times.is_just_before(&at(millis(0))) && times.is_just_before(&at(millis(100))));
        assert!(!times.is_just_before(&at(millis(101))) && !at(None).is_just_before(&times));
        assert!(!at(millis(1)).is_just_before(&times), "the clock was put back");
        for odd in ["", "x", "1", "1.2 3", "1.1000000000", "1.5 2.5 3.5", "-1.5"] {
            assert!(odd.parse::<Times>().is_err(), "{odd}");
        }
    }
}
