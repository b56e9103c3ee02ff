//! A table's cells in a file, so that they outlive the process: which write each block of a volume must hold.
//!
//! The file is mapped, so an acknowledged write is in it by the store to memory that notes it in the table anyway. What a process
//! wrote to a mapping stays when it is killed. When the machine stops, what the kernel had not written back is
//! lost: the file is synced whenever it is opened and closed, and what is on it is a lower bound of what was acknowledged.
//!
//! Layout: a page of little-endian words (magic, volume, bytes of a cell, cells, origin, boot, state, trims), then the cells.
#![allow(unsafe_code, reason = "a file is mapped, and seen as atomic numbers")]

use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes before the cells: a page, so that they are aligned however large pages are for them.
const HEAD: usize = 4096;

/// `TIDEJRN1`: name and version of the format.
const MAGIC: u64 = u64::from_le_bytes(*b"TIDEJRN1");

/// Where the words of the head are.
const BOOT: usize = 5;
const STATE: usize = 6;
const TRIMS: usize = 7;

/// The state of a journal that a run has open.
const OPEN: u64 = 1;

/// The state of one that was closed.
const CLOSED: u64 = 2;

/// What a journal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The volume.
    pub(crate) volume: u64,
    /// Bytes of a cell.
    pub(crate) cell: u64,
    /// When generations begin to count, nanoseconds since 1970.
    pub(crate) origin: u64,
}

/// How the run that had it open before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It closed it.
    Closed,
    /// It was killed: all that it noted is there.
    Killed,
    /// The machine was started anew since then: what it noted last may be missing.
    Restarted,
}

/// A journal, mapped.
#[derive(Debug)]
pub(crate) struct Journal {
    start: NonNull<AtomicU64>,
    mapped: usize,
    cells: usize,
    path: PathBuf,
    /// Holds the lock.
    _file: Locked,
}

// SAFETY: the mapping belongs to the value, lives as long, and is only seen as atomic numbers.
unsafe impl Send for Journal {}
// SAFETY: as above.
unsafe impl Sync for Journal {}

/// How a journal is opened: a link in its place is somebody else's.
fn options() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// The file of a volume's journal.
pub(crate) fn path(directory: &Path, volume: u64) -> PathBuf {
    directory.join(format!("{volume:016x}.tidemark-journal"))
}

impl Journal {
    /// A new one of so many cells, in place of any that was there.
    pub(crate) fn create(path: &Path, head: Head, cells: usize) -> io::Result<Self> {
        let new = path.with_extension("new");
        let file = options().create(true).truncate(true).open(&new)?;
        let bytes = cells.checked_mul(8).and_then(|bytes| bytes.checked_add(HEAD));
        let bytes = bytes.ok_or(ErrorKind::OutOfMemory)?;
        let file = Locked::new(file)?;
        // A mapping beyond a full file system would end the process.
        fallocate(&file.0, FallocateFlags::empty(), 0, bytes as u64)?;
        let journal = Self::map(file, bytes, path)?;
        for (word, value) in
            [MAGIC, head.volume, head.cell, cells as u64, head.origin].into_iter().enumerate()
        {
            journal.word(word).store(value.to_le(), Ordering::Relaxed);
        }
        journal.begin()?;
        std::fs::rename(&new, path)?;
        Ok(journal)
    }

    /// The one that is there, if there is one, and how its last run ended.
    ///
    /// # Errors
    /// When it cannot be read, is in use, is damaged, or is not a journal of this volume.
    pub(crate) fn open(path: &Path, volume: u64) -> io::Result<Option<(Self, Head, End)>> {
        let file = match options().open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let file = Locked::new(file)?;
        // Before anything is mapped: a mapping is read whole.
        let length = file.0.metadata()?.len();
        let mut words = [0; HEAD];
        let is_right = length >= HEAD as u64 && {
            file.0.read_exact_at(&mut words, 0)?;
            word_of(&words, 0) == MAGIC && word_of(&words, 1) == volume
        };
        if !is_right {
            return Err(damaged(
                "it is not a journal of this volume: remove the file, or use another directory",
            ));
        }
        let head = Head { volume, cell: word_of(&words, 2), origin: word_of(&words, 4) };
        let cells = word_of(&words, 3);
        let told = cells.checked_mul(8).and_then(|bytes| bytes.checked_add(HEAD as u64));
        let is_possible = (512..=4096).contains(&head.cell)
            && head.cell.is_power_of_two()
            && cells > 0
            && cells.checked_mul(head.cell).is_some();
        if !is_possible {
            return Err(damaged(&format!(
                "it is damaged: its head tells of {cells} cells of {} bytes; remove the file",
                head.cell
            )));
        }
        if told != Some(length) {
            return Err(damaged(&format!(
                "it is damaged: it has {length} bytes, and its head tells of {}; remove the file",
                told.unwrap_or(u64::MAX)
            )));
        }
        let journal = Self::map(file, length as usize, path)?;
        let word = |index| u64::from_le(journal.word(index).load(Ordering::Relaxed));
        let end = match (word(STATE), word(BOOT) == boot()) {
            (CLOSED, _) => End::Closed,
            (_, true) => End::Killed,
            (_, false) => End::Restarted,
        };
        journal.begin()?;
        Ok(Some((journal, head, end)))
    }

    fn map(file: Locked, bytes: usize, path: &Path) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let start = unsafe { mmap(null_mut(), bytes, access, flags, &file.0, 0) }?;
        let start = NonNull::new(start.cast::<AtomicU64>()).ok_or(ErrorKind::OutOfMemory)?;
        Ok(Self { start, mapped: bytes, cells: (bytes - HEAD) / 8, path: path.to_owned(), _file: file })
    }

    /// Says in the file that it is in use, and since which start of the machine.
    fn begin(&self) -> io::Result<()> {
        self.word(BOOT).store(boot().to_le(), Ordering::Relaxed);
        self.word(STATE).store(OPEN.to_le(), Ordering::Relaxed);
        self.sync()
    }

    /// Notes that something is going to be trimmed, before it is: zeroes found after the machine stopped may be a trim's.
    pub(crate) fn note_trims(&self) {
        self.word(TRIMS).store(1_u64.to_le(), Ordering::Relaxed);
        // Where it fails, so does the sync at the end, and the journal counts as not closed.
        let _ = self.sync();
    }

    /// Whether anything ever was.
    pub(crate) fn has_trims(&self) -> bool {
        self.word(TRIMS).load(Ordering::Relaxed) != 0
    }

    /// The volume that it is about.
    pub(crate) fn volume(&self) -> u64 {
        u64::from_le(self.word(1).load(Ordering::Relaxed))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn sync(&self) -> io::Result<()> {
        // SAFETY: the range is the mapping.
        Ok(unsafe { msync(self.start.as_ptr().cast(), self.mapped, MsyncFlags::SYNC) }?)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < HEAD / 8, "word {index} of a head");
        // SAFETY: the word lies within the mapping, which is aligned to pages and as long as it was when it was mapped.
        unsafe { self.start.add(index).as_ref() }
    }
}

/// The cells.
impl Deref for Journal {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the cells lie within the mapping, which lives as long as `self`; they are only seen as atomic numbers.
        unsafe { std::slice::from_raw_parts(self.start.add(HEAD / 8).as_ptr(), self.cells) }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // First what it holds, then the word that says that it is all.
        if self.sync().is_ok() {
            self.word(STATE).store(CLOSED.to_le(), Ordering::Relaxed);
            let _ = self.sync();
        }
        // SAFETY: the mapping was made by `map`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

/// A file that is this run's alone.
#[derive(Debug)]
struct Locked(File);

impl Locked {
    fn new(file: File) -> io::Result<Self> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(file)),
            Err(_) => Err(io::Error::new(ErrorKind::ResourceBusy, "another run uses it")),
        }
    }
}

impl Drop for Locked {
    /// Closing alone would not do: a process that is being started holds a copy of the descriptor until it runs its program.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A word of a head that was read.
fn word_of(head: &[u8; HEAD], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&head[index * 8..index * 8 + 8]);
    u64::from_le_bytes(word)
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// A number for the time since the machine was started; 0 if the kernel does not tell.
fn boot() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Head = Head { volume: 7, cell: 4096, origin: 5_000 };

    #[test]
    fn what_was_noted_is_there_and_how_the_last_run_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), 7);
        assert!(Journal::open(&path, 7).unwrap().is_none());
        let journal = Journal::create(&path, HEADER, 3).unwrap();
        journal[2].store(77, Ordering::Relaxed);
        assert_eq!(Journal::open(&path, 7).unwrap_err().kind(), ErrorKind::ResourceBusy);
        let copy = directory.path().join("as a kill leaves it");
        std::fs::copy(&path, &copy).unwrap();
        drop(journal);
        for (path, expected) in [(&path, End::Closed), (&copy, End::Killed)] {
            let (journal, head, end) = Journal::open(path, 7).unwrap().unwrap();
            assert_eq!(
                (head, end, journal.len(), journal[2].load(Ordering::Relaxed)),
                (HEADER, expected, 3, 77)
            );
            drop(journal);
        }
        let (journal, ..) = Journal::open(&copy, 7).unwrap().unwrap();
        journal.word(BOOT).store(boot() ^ 1, Ordering::Relaxed);
        std::fs::copy(&copy, directory.path().join("other")).unwrap();
        let (_, _, end) = Journal::open(&directory.path().join("other"), 7).unwrap().unwrap();
        assert_eq!(end, End::Restarted);
    }

    #[test]
    fn a_closed_journal_is_free_though_a_child_still_holds_its_descriptor() {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), 7);
        let journal = Journal::create(&path, HEADER, 3).unwrap();
        let inherited = journal._file.0.try_clone().unwrap();
        drop(journal);
        assert!(Journal::open(&path, 7).unwrap().is_some());
        drop(inherited);
    }

    #[test]
    fn what_is_not_the_volume_s_journal_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), 7);
        drop(Journal::create(&path, HEADER, 3).unwrap());
        assert_eq!(Journal::open(&path, 8).unwrap_err().kind(), ErrorKind::InvalidData);
        for bytes in [vec![], vec![1; HEAD + 8], std::fs::read(&path).unwrap()[..HEAD + 16].to_vec()] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(Journal::open(&path, 7).unwrap_err().kind(), ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_journal_of_another_length_than_its_head_tells_is_refused_before_it_is_mapped() {
        let directory = tempfile::tempdir().unwrap();
        let path = path(directory.path(), 7);
        drop(Journal::create(&path, HEADER, 3).unwrap());
        let sound = std::fs::read(&path).unwrap();
        let refused = || Journal::open(&path, 7).unwrap_err().to_string();
        // More than can be mapped: sparse, so that it takes no room.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(8 << 40).unwrap();
        assert!(
            refused().contains("it has 8796093022208 bytes, and its head tells of 4120"),
            "{}",
            refused()
        );
        // A head of a volume that is larger than any.
        file.write_all_at(&(1_u64 << 60).to_le_bytes(), 3 * 8).unwrap();
        assert!(refused().contains("1152921504606846976 cells of 4096 bytes"), "{}", refused());
        std::fs::write(&path, sound).unwrap();
        assert!(Journal::open(&path, 7).unwrap().is_some());
    }
}
