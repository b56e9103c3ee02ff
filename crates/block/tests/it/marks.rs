//! Files that Tidemark wrote to, and somebody else afterwards, with the time of the write put back.

use crate::support::*;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
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
