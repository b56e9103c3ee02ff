//! Block devices: loop devices on files. Needs root; without, it is skipped.

use crate::support::*;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use tidemark_block::guard::{self, Intent};
use tidemark_block::job::{Action, Job, Volume};
use tidemark_block::sessions::{Use, sessions};
use tidemark_block::{device as dev, filled, is_ours};
use tidemark_measure::fault::Fault;

const MIB: u64 = 1 << 20;

fn refusal(volume: &Volume) -> String {
    guard::check(volume, Intent::WRITE, &[]).expect_err("it was not refused").to_string()
}

fn wipe(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let zeroes = vec![0; MIB as usize];
    (0..dev::size(path).unwrap() / MIB).for_each(|at| file.write_all_at(&zeroes, at * MIB).unwrap());
    file.sync_all().unwrap();
}

#[test]
fn a_device_is_filled_verified_trimmed_and_synced() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 16 * MIB, 512) else { return };
    assert_eq!(dev::size(&disk.path).unwrap(), 16 * MIB);
    let volume = device(&disk.path, 16 * MIB);
    let data = data();
    let actions = [Action::Read, Action::Write, Action::Trim, Action::Fsync];
    let job = job(std::slice::from_ref(&volume), 4096, &actions);
    guard::check(&volume, Intent::WRITE, &[]).unwrap();
    fill(&job, &data);
    assert!(filled(&job, &volume) && is_ours(&disk.path));
    guard::check(&volume, Intent::WRITE, &[]).expect("its own content is free to be overwritten");
    let mut hand = hand(&job, &data, 1, 65_536);
    assert_eq!(hand.verify(16 * MIB, 4096), None);
    for action in [1, 2, 3] {
        assert_eq!(hand.act(action, 4, 65_536).fault, None, "{:?}", hand.session.examples());
    }
    assert_eq!(hand.verify(16 * MIB, 4096), None);
    tidemark_block::cache::drop(&volume).unwrap();
    let error = sessions(&Job { volumes: vec![device(&disk.path, 32 * MIB)], ..job }, &data, Use::Load);
    let text = error.err().unwrap().to_string();
    assert!(text.contains("too small") && text.contains("lower `size`"), "{text}");
}

#[test]
fn misaligned_direct_io_is_refused_by_name() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 16 * MIB, 4096) else { return };
    let volume = device(&disk.path, 16 * MIB);
    let job = job(&[volume], 512, &[Action::Read]);
    let text = sessions(&job, &data(), Use::Load).err().unwrap().to_string();
    for word in ["4096", "512 bytes", "direct: false", disk.name()] {
        assert!(text.contains(word), "{text}");
    }
    sessions(&Job { direct: false, ..job }, &data(), Use::Load).unwrap();
}

#[test]
fn a_write_beyond_the_device_under_a_file_is_no_space() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 24 * MIB, 512) else { return };
    let Some(mount) = Mount::ext4(&disk, directory.path().join("mount")) else { return };
    let path = mount.0.join("volume");
    let volume = file(&path, 64 * MIB);
    let guarded = refusal(&volume);
    let used = refusal(&device(&disk.path, 24 * MIB));
    let data = data();
    let job = job(&[volume], MIB, &[Action::Write]);
    let result = run(&job, &data, Use::Fill, &work(2, 4, scan(1, 64 * MIB, MIB), None), 1);
    drop(mount);
    assert!(guarded.contains("does not fit"), "{guarded}");
    assert!(used.contains("is mounted at"), "{used}");
    let faults = faults(&result);
    assert!(faults.iter().any(|(fault, count)| *fault == Fault::NoSpace && *count > 20), "{faults:?}");
    let text = &result.examples.iter().find(|example| example.fault == Fault::NoSpace).unwrap().text;
    assert!(text.contains("volume") && text.contains("No space left"), "{text}");
}

#[test]
fn devices_that_hold_something_are_refused_unless_named() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 32 * MIB, 512) else { return };
    let volume = device(&disk.path, 32 * MIB);
    let described = guard::check(&volume, Intent::WRITE, &[]).unwrap();
    assert!(described.contains("block device of 32.0 MiB") && described.contains("loop"), "{described}");
    let made: [(&str, &[&str], &str); 3] =
        [("mkfs.ext4", &["-q", "-F"], "ext4"), ("mkswap", &[], "swap"), ("parted", &["-s"], "partition")];
    for (program, arguments, word) in made {
        wipe(&disk.path);
        let mut arguments: Vec<&str> = arguments.to_vec();
        arguments.push(disk.name());
        if program == "parted" {
            arguments.extend(["mklabel", "gpt", "mkpart", "x", "1MiB", "8MiB"]);
        }
        if command(program, &arguments).is_none() {
            skip(format_args!("{program} does not work"));
            continue;
        }
        let text = refusal(&volume);
        assert!(text.contains(word) && text.contains("--allow-destroy"), "{program}: {text}");
        guard::check(&volume, Intent::WRITE, std::slice::from_ref(&disk.path)).unwrap();
        guard::check(&volume, Intent::READ, &[]).unwrap();
    }
    wipe(&disk.path);
    command("partx", &["--delete", disk.name()]);
    guard::check(&volume, Intent::WRITE, &[]).unwrap();
    let raw = std::fs::File::options().write(true).open(&disk.path).unwrap();
    raw.write_all_at(b"a database on a raw device", 32 * MIB - 700).unwrap();
    raw.sync_all().unwrap();
    drop(raw);
    assert!(refusal(&volume).contains("at byte 33553408"), "{}", refusal(&volume));
    assert!(refusal(&file(&disk.path, MIB)).contains("block device"));
    assert!(refusal(&device(&disk.path, 64 * MIB)).contains("too small"));
}

#[test]
fn a_device_that_vanishes_under_load_is_counted_as_failed() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 16 * MIB, 512) else { return };
    let volume = device(&disk.path, 16 * MIB);
    let data = data();
    let job = job(&[volume], 4096, &[Action::Read]);
    fill(&job, &data);
    let mut hand = hand(&job, &data, 1, 4096);
    assert_eq!(hand.act(0, 0, 4096).fault, None);
    // The file under the device loses its second half.
    std::fs::File::options().write(true).open(&disk.file).unwrap().set_len(8 * MIB).unwrap();
    let outcome = hand.act(0, 12 * MIB / 4096, 4096);
    assert!(outcome.fault.is_some(), "{outcome:?}");
    let text = hand.session.examples().remove(0).text;
    assert!(text.contains(disk.name()), "{text}");
}

#[test]
fn data_between_a_device_s_ends_are_found() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 48 * MIB, 512) else { return };
    let volume = device(&disk.path, 16 * MIB);
    guard::check(&volume, Intent::WRITE, &[]).unwrap();
    let raw = std::fs::File::options().write(true).open(&disk.path).unwrap();
    raw.write_all_at(b"a database on a raw device", 20 * MIB).unwrap();
    raw.sync_all().unwrap();
    drop(raw);
    let text = refusal(&volume);
    assert!(text.contains("at byte 20971520") && text.contains("--allow-destroy"), "{text}");
}

#[test]
fn a_file_system_that_is_mounted_read_only_is_called_that() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 24 * MIB, 512) else { return };
    let Some(mount) = Mount::ext4(&disk, directory.path().join("mount")) else { return };
    std::fs::write(mount.0.join("old"), vec![0; 4096]).unwrap();
    command("mount", &["-o", "remount,ro", mount.0.to_str().unwrap()]).unwrap();
    let text = ["new", "old"].map(|name| refusal(&file(&mount.0.join(name), MIB)));
    drop(mount);
    assert!(text.iter().all(|text| text.contains("mounted read-only")), "{text:?}");
}
