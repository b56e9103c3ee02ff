//! What is in use, at any height: files behind loop devices, loop devices on loop devices, mounts and partitions. Needs root; without, it
//! is skipped. Device-mapper and md are in the unit tests of `holders`, on made-up machines.

use crate::support::*;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tidemark_block::guard::{self, Intent};
use tidemark_block::job::Volume;

const MIB: u64 = 1 << 20;

fn refusal(volume: &Volume) -> String {
    let text = guard::check(volume, Intent::WRITE, &[]).expect_err("it was not refused").to_string();
    assert!(text.contains("release it first"), "{text}");
    text
}

fn is_free(volume: &Volume) {
    guard::check(volume, Intent::WRITE, &[]).unwrap();
}

/// A loop device is on the file by this name, and on no other.
fn is_behind(path: &Path, disk: &Loop) {
    let text = refusal(&file(path, MIB));
    assert!(text.contains(&format!("it is behind {}", disk.name())), "{text}");
}

#[test]
fn a_file_behind_a_loop_device_is_in_use_by_all_its_names() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 16 * MIB, 512) else { return };
    let at = |name: &str| directory.path().join(name);
    std::fs::hard_link(&disk.file, at("hard")).unwrap();
    std::os::unix::fs::symlink(at("hard"), at("soft")).unwrap();
    [&disk.file, &at("hard"), &at("soft")].into_iter().for_each(|path| is_behind(path, &disk));
    // The kernel goes on calling it by the name by which it was attached.
    std::fs::rename(&disk.file, at("moved")).unwrap();
    is_behind(&at("moved"), &disk);
    std::fs::remove_file(at("moved")).unwrap();
    is_behind(&at("hard"), &disk);
    std::fs::write(&disk.file, []).unwrap();
    is_free(&file(&disk.file, MIB));
    is_free(&device(&disk.path, MIB));
    drop(disk);
    is_free(&file(&at("hard"), MIB));
}

#[test]
fn a_device_that_a_loop_device_lies_on_is_in_use() {
    let directory = directory();
    let Some(below) = Loop::new(directory.path(), 24 * MIB, 512) else { return };
    let Some(above) = Loop::on(&below.path, 512) else { return };
    let text = refusal(&device(&below.path, MIB));
    assert!(text.contains(&format!("it is behind {}", above.name())), "{text}");
    is_behind(&below.file, &below);
    is_free(&device(&above.path, MIB));
    // An alias of the device is the device.
    let alias = directory.path().join("alias");
    let number = std::fs::metadata(&below.path).unwrap().rdev();
    let numbers = [rustix::fs::major(number), rustix::fs::minor(number)].map(|number| number.to_string());
    command("mknod", &[alias.to_str().unwrap(), "b", &numbers[0], &numbers[1]]).unwrap();
    assert!(refusal(&device(&alias, MIB)).contains("it is behind"));
    // Mounted below, it is in use above.
    let Some(mount) = Mount::ext4(&below, directory.path().join("mount")) else { return };
    let text = refusal(&device(&above.path, MIB));
    assert!(text.contains("on which it lies, is mounted at"), "{text}");
    drop(mount);
    assert!(
        guard::check(&device(&above.path, MIB), Intent::WRITE, &[]).unwrap_err().to_string().contains("ext4")
    );
}

#[test]
fn loop_devices_on_one_file_are_in_use_together() {
    let directory = directory();
    let Some(one) = Loop::new(directory.path(), 24 * MIB, 512) else { return };
    let hard = directory.path().join("hard");
    std::fs::hard_link(&one.file, &hard).unwrap();
    let Some(other) = Loop::on(&hard, 512) else { return };
    is_free(&device(&other.path, MIB));
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let held = std::fs::File::options().read(true).custom_flags(exclusive).open(&one.path).unwrap();
    let text = refusal(&device(&other.path, MIB));
    assert!(text.contains(one.name()) && text.contains("is used exclusively"), "{text}");
    drop(held);
    is_free(&device(&other.path, MIB));
    let Some(_mount) = Mount::ext4(&one, directory.path().join("mount")) else { return };
    let text = refusal(&device(&other.path, MIB));
    assert!(text.contains(&format!("{}, which shows the same data, is mounted at", one.name())), "{text}");
}

#[test]
fn a_partition_and_its_disk_are_in_use_together() {
    let directory = directory();
    let Some(disk) = Loop::new(directory.path(), 64 * MIB, 512) else { return };
    let made = ["mklabel", "gpt", "mkpart", "x", "1MiB", "24MiB", "mkpart", "y", "24MiB", "48MiB"];
    let made = command("parted", &[&["-s", disk.name()], &made[..]].concat());
    let partition = |number| PathBuf::from(format!("{}p{number}", disk.name()));
    if made.is_none() || command("partx", &["--update", disk.name()]).is_none() || !partition(2).exists() {
        return skip("partitions of a loop device cannot be made");
    }
    let refused = {
        let Some(above) = Loop::on(&partition(1), 512) else { return };
        let texts = [partition(1), disk.path.clone()].map(|path| refusal(&device(&path, MIB)));
        (texts, above.name().to_owned())
    };
    let ([part, whole], above) = refused;
    assert!(part.contains(&format!("it is behind {above}")), "{part}");
    assert!(whole.contains("its partition") && whole.contains(&above), "{whole}");
    is_free(&device(&partition(2), MIB));
    command("mkswap", &[partition(1).to_str().unwrap()]).unwrap();
    if command("swapon", &[partition(1).to_str().unwrap()]).is_none() {
        return skip("this user may not use swap space");
    }
    let whole = guard::check(&device(&disk.path, MIB), Intent::WRITE, &[]);
    is_free(&device(&partition(2), MIB));
    command("swapoff", &[partition(1).to_str().unwrap()]).unwrap();
    assert!(whole.unwrap_err().to_string().contains("is used as swap space"));
    command("partx", &["--delete", disk.name()]);
}

#[test]
fn a_file_below_an_overlay_is_in_use_under_both_names() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    ["lower", "upper", "work", "merged"].into_iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
    let made = |name: &str| std::fs::File::create(at(name)).unwrap().set_len(4 * MIB).unwrap();
    made("lower/copied");
    let layers =
        format!("lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work", directory.path().display());
    let merged = at("merged");
    if command("mount", &["-t", "overlay", "overlay", "-o", &layers, merged.to_str().unwrap()]).is_none() {
        return skip("an overlay cannot be mounted");
    }
    let _mount = Mount(merged);
    made("merged/new");
    // The second one is copied to the upper layer as it is attached, and keeps its number on the overlay alone.
    for name in ["new", "copied"] {
        let Some(disk) = Loop::on(&at("merged").join(name), 512) else { return };
        is_behind(&at("merged").join(name), &disk);
        is_behind(&at("upper").join(name), &disk);
        drop(disk);
        is_free(&file(&at("upper").join(name), MIB));
        let Some(disk) = Loop::on(&at("upper").join(name), 512) else { return };
        is_behind(&at("merged").join(name), &disk);
    }
}
