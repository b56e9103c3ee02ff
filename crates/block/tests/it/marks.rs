//! Files that Tidemark wrote to, and somebody else afterwards, with the time of the write put back or never noted.
#![allow(unsafe_code, reason = "files are written to through a mapping")]

use crate::prepare::{Other, on_file, run};
use crate::support::*;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidemark_block::guard::{self, Intent};
use tidemark_block::job::Volume;
use tidemark_block::{is_ours, mark};

/// Longer than a mark may take.
const PAUSE: i64 = 200_000_000;

fn refusal(volume: &Volume) -> String {
    guard::check(volume, Intent::WRITE, &[]).expect_err("it was not refused").to_string()
}

/// Changes a byte of a file and puts its modification time back.
fn tamper(path: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    file.set_modified(modified).unwrap();
}

/// Waits until the file system's clock has moved on.
fn let_time_pass(directory: &Path) {
    let now = || {
        let path = directory.join("clock");
        std::fs::write(&path, "x").unwrap();
        let found = std::fs::metadata(&path).unwrap();
        found.ctime() * 1_000_000_000 + found.ctime_nsec()
    };
    let begun = now();
    while now() <= begun + PAUSE {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_write_is_found_although_its_time_was_put_back() {
    let directory = directory();
    let (ours, fios) = (directory.path().join("ours"), directory.path().join("fio's"));
    fill(&job(&[file(&ours, SIZE)], 4096, &[]), &data());
    std::fs::write(&fios, vec![7; SIZE as usize]).unwrap();
    for (path, words) in [(&ours, "at byte 5000192"), (&fios, "its modification time is the old one")] {
        mark(&file(path, SIZE));
        assert!(is_ours(path));
        let_time_pass(directory.path());
        assert!(is_ours(path), "time alone changes nothing");
        tamper(path, 5_000_300);
        let text = refusal(&file(path, 4096));
        assert!(text.contains(words) && text.contains("--allow-destroy"), "{text}");
        // It was given up, and written to in Tidemark's name.
        mark(&file(path, SIZE));
        assert!(is_ours(path));
    }
}

#[test]
fn a_file_whose_mode_has_changed_is_looked_at_as_a_whole() {
    let directory = directory();
    // More than is looked at of a file without a mark.
    let size: u64 = 160 << 20;
    let (path, unmarked) = (directory.path().join("marked"), directory.path().join("unmarked"));
    for path in [&path, &unmarked] {
        fill(&job(&[file(path, 1 << 20)], 4096, &[]), &data());
        File::options().write(true).open(path).unwrap().set_len(size).unwrap();
    }
    // A place that samples miss.
    let at = (0..size / 65_536)
        .map(|stretch| stretch * 65_536)
        .find(|at| {
            tamper(&unmarked, *at);
            let is_missed = is_ours(&unmarked);
            tamper(&unmarked, *at);
            is_missed
        })
        .expect("samples are not all");
    mark(&file(&path, size));
    let_time_pass(directory.path());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(is_ours(&path), "nothing in it has changed");
    tamper(&path, at);
    let text = refusal(&file(&path, 4096));
    assert!(text.contains(&format!("at byte {at}")), "{text}");
}

#[test]
fn a_write_to_a_device_of_ours_is_found_in_its_content() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), SIZE, 512) else { return };
    let volume = device(&disk.path, SIZE);
    fill(&job(std::slice::from_ref(&volume), 4096, &[]), &data());
    guard::check(&volume, Intent::WRITE, &[]).unwrap();
    tamper(&disk.path, 9_000_000);
    assert!(refusal(&volume).contains("at byte 8999936"), "{}", refusal(&volume));
    tamper(&disk.path, 9_000_000);
    guard::check(&volume, Intent::WRITE, &[]).unwrap();
}

#[test]
fn a_write_just_after_the_mark_is_found_although_its_time_was_put_back() {
    let directory = directory();
    let (ours, fios) = (directory.path().join("ours"), directory.path().join("fio's"));
    fill(&job(&[file(&ours, SIZE)], 4096, &[]), &data());
    std::fs::write(&fios, vec![7; SIZE as usize]).unwrap();
    for path in [&ours, &fios] {
        mark(&file(path, SIZE));
        tamper(path, 5_000_300);
        let text = refusal(&file(path, 4096));
        assert!(text.contains("--allow-destroy"), "{text}");
    }
}

/// A file that another program has mapped.
struct Mapping(*mut std::ffi::c_void);

impl Mapping {
    fn new(path: &Path) -> Self {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let file = File::options().read(true).write(true).open(path).unwrap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        Self(unsafe { mmap(std::ptr::null_mut(), MAPPED, access, MapFlags::SHARED, &file, 0) }.unwrap())
    }

    fn byte(&self, at: usize) -> *mut u8 {
        assert!(at < MAPPED);
        // SAFETY: it lies within the mapping.
        unsafe { self.0.cast::<u8>().add(at) }
    }

    /// Writes what is there already.
    fn touch(&self, at: usize) {
        let byte = self.byte(at);
        // SAFETY: it lies within the mapping, whose file is as long as that.
        unsafe { byte.write_volatile(byte.read_volatile()) };
    }

    fn change(&self, at: usize) {
        let byte = self.byte(at);
        // SAFETY: as above.
        unsafe { byte.write_volatile(byte.read_volatile() ^ 1) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped by `new`, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.0, MAPPED) };
    }
}

/// Bytes of a volume that is mapped.
const MAPPED: usize = 4 << 20;

fn times(path: &Path) -> [i64; 4] {
    let found = std::fs::metadata(path).unwrap();
    [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()]
}

#[test]
fn a_write_through_a_mapping_is_found_although_it_left_no_time() {
    let (on_disk, in_memory) = (directory(), tempfile::tempdir_in("/dev/shm").unwrap());
    for directory in [&on_disk, &in_memory] {
        let path = directory.path().join("volume");
        let write = "- load: {pattern: write, block_size: 4KiB, total_operations: 8, end_sync: false}";
        let text = on_file(&path, &format!("- prepare: {{}}\n{write}"));
        let mut first = run(&text, &Arc::new(Other::default())).unwrap();
        first.stage(0);
        let mapping = Mapping::new(&path);
        // The kernel notes the time of the first write to a page, until that is written back.
        first.stage_with(1, || mapping.touch(3_000_000));
        drop(first);
        assert!(is_ours(&path));
        let before = times(&path);
        mapping.change(3_000_000);
        if times(&path) != before {
            skip("the page was written back meanwhile");
        }
        let text = refusal(&file(&path, MAPPED as u64));
        assert!(text.contains("--allow-destroy"), "{text}");
    }
}

#[test]
fn what_fio_wrote_in_memory_is_known_by_no_mark() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("fio's");
    std::fs::write(&path, vec![7; 8192]).unwrap();
    mark(&file(&path, 8192));
    assert!(refusal(&file(&path, 8192)).contains("8192 bytes that Tidemark did not write"));
}
