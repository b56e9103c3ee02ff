//! The mark of files that Tidemark, or fio in its name, wrote to: an extended attribute with the time at which the file was
//! last written to, and the time at which it was last changed in any way.
//!
//! Whoever writes to the file afterwards makes the mark void, however little is written and wherever. Who sets the time of the write back
//! (`touch -r`) leaves a doubt: nobody but the kernel sets the time of the change. A mark changes that time, too, so it allows for a
//! change just after the one that it notes; it counts only if nothing has changed by the time that this is over.
//!
//! Writes through a mapping that was made before leave no time in some file systems (tmpfs): there a mark cannot hold.

use crate::job::{Place, Volume};
use rustix::fs::{XattrFlags, fgetxattr, fsetxattr, fstatfs};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::str::FromStr;
use std::time::Duration;

/// The extended attribute.
const NAME: &str = "user.tidemark";

/// How long after the times were read their mark may be made: to make it changes the file, too.
const MARKING: Duration = Duration::from_millis(10);

/// By when every change gets a time that no mark allows for: kernels note times by ticks of up to 10 ms.
const SETTLED: Duration = Duration::from_millis(30);

/// A machine may be too busy to mark a file that quickly, but not every time.
const ATTEMPTS: usize = 20;

/// The mark's value while a run writes: found after it, the run did not end by itself.
const WRITING: &str = "writing";

/// What follows the times where all content is Tidemark's own.
const STAMPED: &str = " stamped";

/// File systems in memory, which note no time of writes through a mapping: tmpfs, ramfs and hugetlbfs, by `linux/magic.h`.
const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// What a file's mark shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nobody has written to the file since, as far as times show.
    Holds {
        /// Whether all of its content was Tidemark's own, so that samples of it must be.
        is_stamped: bool,
    },
    /// Somebody has written to the file since.
    Void,
    /// Something was done to the file since: that may have been a write.
    Doubtful,
    /// Nothing: the run that wrote to the file did not end by itself, or its file system does not note all writes.
    Silent,
}

impl Mark {
    /// Of an open file; `None`: it has none.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let mut value = [0u8; 96];
        let length = fgetxattr(file, NAME, &mut value[..]).ok()?;
        Some(Self::read(value.get(..length)?, file))
    }

    fn read(value: &[u8], file: &File) -> Self {
        if value == WRITING.as_bytes() {
            return Self::Silent;
        }
        let text = str::from_utf8(value).unwrap_or_default();
        let (times, is_stamped) = match text.strip_suffix(STAMPED) {
            Some(times) => (times, true),
            None => (text, false),
        };
        match (times.parse::<Times>(), Times::of(file)) {
            (Ok(marked), Ok(now)) if marked.modified != now.modified => Self::Void,
            (Ok(_), Ok(now)) if now.is_rough() || is_in_memory(file) => Self::Silent,
            (Ok(marked), Ok(now)) if marked.is_just_before(&now) => Self::Holds { is_stamped },
            (Ok(_), Ok(_)) => Self::Doubtful,
            (Err(()), _) | (_, Err(_)) => Self::Void,
        }
    }
}

/// Whether a file lies in memory alone.
fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| IN_MEMORY.contains(&found.f_type))
}

/// When a file was last written to, and when anything of it was last changed: by its file system's clock, since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Whether the file system seems to note whole seconds only: a later change in the same second does not show.
    fn is_rough(&self) -> bool {
        self.changed.is_some_and(|time| time.subsec_nanos() == 0)
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

/// Marks a file as being written to by this run. Files whose file system keeps no extended attributes are known by their content alone.
pub(crate) fn begin_writing(file: &File) {
    let _ = fsetxattr(file, NAME, WRITING.as_bytes(), XattrFlags::empty());
}

/// Marks a volume's file as written by Tidemark, or by fio in its name, up to now and by nobody else.
pub fn mark(volume: &Volume) {
    let Place::File(path) = &volume.place else { return };
    if let Ok(file) = File::open(path) {
        mark_all(&[(&file, false)]);
    }
}

/// The same for open files, each with whether all of its content is Tidemark's own.
pub(crate) fn mark_all(files: &[(&File, bool)]) {
    let marked: Vec<(&File, Times)> =
        files.iter().filter_map(|(file, is_stamped)| Some((*file, mark_once(file, *is_stamped)?))).collect();
    if marked.is_empty() {
        return;
    }
    std::thread::sleep(SETTLED);
    for (file, times) in marked {
        if Times::of(file).ok() != Some(times) {
            // Somebody was as quick as that: without a time of change it is in doubt.
            let doubtful = Times { changed: None, ..times };
            let _ = fsetxattr(file, NAME, doubtful.to_string().as_bytes(), XattrFlags::empty());
        }
    }
}

/// Marks a file, and gives its times after that; `None` where there are no marks.
fn mark_once(file: &File, is_stamped: bool) -> Option<Times> {
    let attempt = || {
        let before = Times::of(file).ok()?;
        let value = format!("{before}{}", if is_stamped { STAMPED } else { "" });
        fsetxattr(file, NAME, value.as_bytes(), XattrFlags::empty()).ok()?;
        let after = Times::of(file).ok()?;
        Some((before.is_just_before(&after), after))
    };
    // The first one changes the time that it has noted. After the last one, whatever it noted, the mark is in doubt.
    let mut last = None;
    for (is_done, times) in (0..ATTEMPTS).map_while(|_| attempt()) {
        last = Some(times);
        if is_done {
            break;
        }
    }
    last
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
        assert!(times.is_just_before(&at(millis(0))) && times.is_just_before(&at(millis(10))));
        assert!(!times.is_just_before(&at(millis(11))) && !at(None).is_just_before(&times));
        assert!(!at(millis(1)).is_just_before(&times), "the clock was put back");
        for odd in ["", "x", "1", "1.2 3", "1.1000000000", "1.5 2.5 3.5", "-1.5"] {
            assert!(odd.parse::<Times>().is_err(), "{odd}");
        }
    }
}
