//! The file system mounted for real: what programs do to it through the kernel, and what a cut leaves of that.

#![allow(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock};
use tidemark_powercut::Mounted;

/// A store and a place to mount it.
struct Disk {
    directory: tempfile::TempDir,
    mounted: Option<Mounted>,
}

impl Disk {
    /// `None` where this machine cannot mount, which is said.
    fn new() -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            tidemark_testing::skip("there is no /dev/fuse");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("disk")).unwrap();
        let mut disk = Self { directory, mounted: None };
        match Mounted::new(&disk.store(), &disk.path("")) {
            Ok(mounted) => disk.mounted = Some(mounted),
            Err(error) => {
                tidemark_testing::skip(format_args!("FUSE cannot mount here: {error}"));
                return None;
            }
        }
        Some(disk)
    }

    fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("disk").join(name)
    }

    fn cut(&mut self) {
        self.mounted = None;
        self.mounted = Some(Mounted::new(&self.store(), &self.path("")).unwrap());
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn sync_directory(&self, name: &str) {
        File::open(self.path(name)).unwrap().sync_all().unwrap();
    }
}

#[test]
fn what_was_synced_is_there_after_a_cut_and_the_rest_is_not() {
    let Some(mut disk) = Disk::new() else { return };
    let mut synced = File::create(disk.path("synced")).unwrap();
    synced.write_all(b"first").unwrap();
    synced.sync_all().unwrap();
    synced.write_all(b" and second").unwrap();
    fs::write(disk.path("lost"), "never synced").unwrap();
    assert_eq!(disk.read("synced"), "first and second");
    drop(synced);
    disk.cut();
    assert_eq!(disk.read("synced"), "first");
    assert!(!disk.path("lost").exists());

    fs::write(disk.path("named"), "its content was never synced").unwrap();
    disk.sync_directory("");
    disk.cut();
    assert_eq!(disk.read("named"), "", "the name is durable, the content is not");
}

#[test]
fn synchronous_writes_are_durable_when_they_return() {
    let Some(mut disk) = Disk::new() else { return };
    for (name, flags) in [("dsync", OFlags::DSYNC), ("sync", OFlags::SYNC), ("neither", OFlags::empty())] {
        let mut options = OpenOptions::new();
        options.write(true).create(true).custom_flags(flags.bits() as i32);
        let mut file = options.open(disk.path(name)).unwrap();
        if name == "neither" {
            file.sync_all().unwrap();
        }
        file.write_all(b"acknowledged").unwrap();
    }
    disk.cut();
    assert_eq!([disk.read("dsync"), disk.read("sync")], ["acknowledged"; 2]);
    assert_eq!(disk.read("neither"), "");
}

#[test]
fn renames_and_removals_are_durable_with_their_directory() {
    let Some(mut disk) = Disk::new() else { return };
    fs::create_dir(disk.path("d")).unwrap();
    for name in ["d/old", "d/gone", "d/kept"] {
        let mut file = File::create(disk.path(name)).unwrap();
        file.write_all(name.as_bytes()).unwrap();
        file.sync_all().unwrap();
    }
    fs::rename(disk.path("d/old"), disk.path("d/new")).unwrap();
    fs::remove_file(disk.path("d/gone")).unwrap();
    disk.cut();
    assert_eq!([disk.read("d/old"), disk.read("d/gone")], ["d/old", "d/gone"], "both are undone");
    fs::rename(disk.path("d/old"), disk.path("d/kept")).unwrap();
    fs::remove_file(disk.path("d/gone")).unwrap();
    disk.sync_directory("d");
    fs::rename(disk.path("d"), disk.path("e")).unwrap();
    disk.cut();
    assert_eq!(disk.read("d/kept"), "d/old", "it was replaced");
    let names: Vec<_> =
        fs::read_dir(disk.path("d")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["kept"]);
}

#[test]
fn it_is_a_file_system_as_databases_need_it() {
    let Some(disk) = Disk::new() else { return };
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(disk.path("f")).unwrap();
    file.write_all(&[7; 20_000]).unwrap();
    fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 4096, 8192).unwrap();
    fallocate(&file, FallocateFlags::empty(), 0, 50_000).unwrap();
    file.set_len(60_000).unwrap();
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut content).unwrap();
    let mut expected = vec![7; 20_000];
    expected[4096..12_288].fill(0);
    expected.resize(60_000, 0);
    assert!(content == expected);
    assert!(fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 4096).is_err());

    flock(&file, FlockOperation::LockExclusive).unwrap();
    let other = File::open(disk.path("f")).unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err(), "locks exclude each other");

    fs::remove_file(disk.path("f")).unwrap();
    file.write_at(b"still open", 0).unwrap();
    let mut bytes = [0; 10];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"still open");

    fs::write(disk.path("a"), "a").unwrap();
    fs::hard_link(disk.path("a"), disk.path("b")).unwrap();
    assert_eq!(fs::metadata(disk.path("b")).unwrap().nlink(), 2);
    symlink("a", disk.path("c")).unwrap();
    assert_eq!(disk.read("c"), "a");
    fs::set_permissions(disk.path("a"), fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(fs::metadata(disk.path("b")).unwrap().permissions().mode() & 0o777, 0o640);
    fs::create_dir(disk.path("many")).unwrap();
    for number in 0..1000 {
        File::create(disk.path(&format!("many/a-file-with-a-long-name-{number}"))).unwrap();
    }
    assert_eq!(fs::read_dir(disk.path("many")).unwrap().count(), 1000);
    assert!(fs::remove_dir(disk.path("many")).is_err());
}

/// What Python does with the file `m` beside it: a shared mapping, synced half-way, and direct I/O.
const MAPPING: &str = "
import mmap, os, sys
path = sys.argv[1]
file = os.open(path, os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 16384)
map = mmap.mmap(file, 16384)
map[0:6] = b'synced'
map.flush()
map[8192:8196] = b'lost'
assert os.pread(file, 6, 0) == b'synced' and os.pread(file, 4, 8192) == b'lost'
direct = os.open(path + '.direct', os.O_RDWR | os.O_CREAT | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
page[:] = b'd' * 4096
assert os.writev(direct, [page]) == 4096
os.fsync(direct)
page[:] = b'e' * 4096
assert os.pwritev(direct, [page], 4096) == 4096
os._exit(0)
";

#[test]
fn shared_mappings_and_direct_writes_are_durable_once_they_are_synced() {
    tidemark_testing::needs!(&["python3"]);
    let Some(mut disk) = Disk::new() else { return };
    let path = disk.path("m");
    assert!(Command::new("python3").args(["-c", MAPPING]).arg(&path).status().unwrap().success());
    disk.cut();
    let content = fs::read(&path).unwrap();
    assert_eq!((content.len(), &content[..6], &content[8192..8196]), (16_384, &b"synced"[..], &[0; 4][..]));
    assert_eq!(fs::read(disk.path("m.direct")).unwrap(), [b'd'; 4096], "only what was synced");
}

#[test]
fn an_orderly_end_loses_nothing() {
    let Some(mut disk) = Disk::new() else { return };
    fs::write(disk.path("f"), "not synced").unwrap();
    disk.mounted.take().unwrap().unmount().unwrap();
    assert!(!disk.path("f").exists());
    disk.cut();
    assert_eq!(disk.read("f"), "not synced");
}
