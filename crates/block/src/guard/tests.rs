//! The guard on files; devices are in `tests/it/devices.rs`, which needs root.

use super::*;
use crate::content::{Dials, Label};
use crate::job::Content;

fn file(path: &Path, size: u64) -> Volume {
    Volume { place: Place::File(path.to_owned()), size }
}

fn refusal(volume: &Volume, allow: &[PathBuf]) -> String {
    check(volume, Intent::WRITE, allow).unwrap_err().to_string()
}

#[test]
fn a_file_that_is_not_ours_is_not_overwritten_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("thesis.txt");
    fs::write(&path, "years of work").unwrap();
    let volume = file(&path, 4096);
    let text = refusal(&volume, &[]);
    assert!(text.contains("13 bytes") && text.contains("--allow-destroy"), "{text}");
    // Only the very path that was written counts.
    let other = directory.path().join(".").join("../x/../thesis.txt");
    assert!(check(&volume, Intent::WRITE, &[other, directory.path().into()]).is_err());
    assert!(check(&volume, Intent::WRITE, std::slice::from_ref(&path)).is_ok());
    assert!(check(&volume, Intent::READ, &[]).is_ok(), "reading harms nothing");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(
        refusal(&file(&link, 4096), std::slice::from_ref(&path)).contains("link"),
        "a link is another path"
    );
    assert_eq!(fs::read(&path).unwrap(), b"years of work");
}

#[test]
fn new_empty_blank_and_own_files_are_free() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let volume = file(&path, 8192);
    let described = check(&volume, Intent::WRITE, &[]).unwrap();
    assert!(described.contains("new file") && described.contains("8.00 KiB used"), "{described}");
    assert!(!path.exists(), "the guard writes nothing");
    fs::write(&path, []).unwrap();
    check(&volume, Intent::WRITE, &[]).unwrap();
    File::create(&path).unwrap().set_len(8192).unwrap();
    check(&volume, Intent::WRITE, &[]).unwrap();
    let label = Label { volume: 1, dials: Dials::new(&Content::default()), set: 1 };
    let mut bytes = vec![0; 8192];
    label.fill(&mut bytes, 0, 5);
    fs::write(&path, &bytes).unwrap();
    check(&volume, Intent::WRITE, &[]).unwrap();
}

#[test]
fn settings_of_the_kernel_are_not_written_to_whoever_allows_it() {
    let path = Path::new("/proc/self/comm");
    let text = refusal(&file(path, 4096), &[path.to_owned()]);
    assert!(text.contains("one of the kernel's own files"), "{text}");
    assert!(check(&file(path, 4096), Intent::READ, &[]).is_ok());
}

#[test]
fn what_cannot_be_used_is_refused_with_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let says = |volume: &Volume, words: &str| {
        let text = refusal(volume, &[]);
        assert!(text.contains(words), "{text}");
    };
    says(&file(directory.path(), 4096), "is a directory");
    says(&file(&directory.path().join("no/x"), 4096), "does not exist");
    says(&file(&path, u64::MAX / 2), "does not fit");
    fs::write(&path, "x").unwrap();
    let device = Volume { place: Place::Device(path), size: 4096 };
    says(&device, "is not a block device");
    says(&Volume { place: Place::Device("/dev/nowhere".into()), size: 4096 }, "does not exist");
    says(&file(Path::new("/dev/null"), 4096), "neither a file nor a block device");
    let rbd = crate::job::Rbd { conf: None, user: "a".into(), pool: "p".into(), image: "i".into() };
    says(&Volume { place: Place::Rbd(rbd), size: 4096 }, "engine: fio");
}
