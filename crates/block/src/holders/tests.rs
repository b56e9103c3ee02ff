//! Made-up machines: what a kernel with device-mapper, md and partitions would list in `/sys`. Real loop devices are in
//! `tests/it/in_use.rs`.

use super::*;
use rustix::fs::makedev;
use std::fs;
use std::path::PathBuf;

/// A machine in a directory. Names of devices are those that end in its number: `sda1` is 8:1.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for directory in ["sys/dev/block", "sys/block", "sys/devices", "proc/self"] {
            fs::create_dir_all(machine.at(directory)).unwrap();
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn directory(&self, name: &str) -> PathBuf {
        let disk = DISKS.iter().find(|(disk, parts)| *disk == name || parts.contains(&name)).unwrap().0;
        let whole = self.at("sys/devices").join(disk);
        if disk == name { whole } else { whole.join(name) }
    }

    fn device(&self, name: &str) {
        let directory = self.directory(name);
        fs::create_dir_all(directory.join("holders")).unwrap();
        let number = number(name);
        let (high, low) = (rustix::fs::major(number), rustix::fs::minor(number));
        fs::write(directory.join("dev"), format!("{high}:{low}\n")).unwrap();
        link(&directory, &self.at("sys/dev/block").join(format!("{high}:{low}")));
        match DISKS.iter().any(|(disk, _)| *disk == name) {
            true => link(&directory, &self.at("sys/block").join(name)),
            false => fs::write(directory.join("partition"), "1\n").unwrap(),
        }
    }

    /// A device that is made of others.
    fn stacked(&self, name: &str, parts: &[&str]) {
        self.device(name);
        let slaves = self.directory(name).join("slaves");
        fs::create_dir_all(&slaves).unwrap();
        for part in parts {
            link(&self.directory(part), &slaves.join(part));
            link(&self.directory(name), &self.directory(part).join("holders").join(name));
        }
    }

    fn looped(&self, name: &str, file: &Path) {
        self.device(name);
        fs::create_dir(self.directory(name).join("loop")).unwrap();
        let text = format!("{}\n", file.display());
        fs::write(self.directory(name).join("loop/backing_file"), text).unwrap();
    }

    fn mount(&self, name: &str, place: &str) {
        let number = number(name);
        let (high, low) = (rustix::fs::major(number), rustix::fs::minor(number));
        let line = format!("22 1 {high}:{low} / {place} rw - ext4 {name} rw\n");
        fs::write(self.at("proc/self/mountinfo"), line).unwrap();
    }

    fn user(&self, name: &str) -> Option<String> {
        of_device(&Stack::at(self.0.path()), number(name), false).map(|user| user.to_string())
    }
}

fn link(to: &Path, at: &Path) {
    std::os::unix::fs::symlink(to, at).unwrap();
}

/// The disks, and their partitions.
const DISKS: [(&str, &[&str]); 8] = [
    ("sda", &["sda1", "sda2"]),
    ("sdb", &["sdb1"]),
    ("md0", &["md0p1"]),
    ("dm-0", &[]),
    ("dm-1", &[]),
    ("dm-2", &[]),
    ("loop6", &[]),
    ("loop7", &[]),
];

fn number(name: &str) -> u64 {
    let all = DISKS.iter().flat_map(|(disk, parts)| [*disk].into_iter().chain(parts.iter().copied()));
    makedev(400, 1 + all.into_iter().position(|one| one == name).unwrap() as u32)
}

#[test]
fn a_device_that_another_is_made_of_is_in_use_at_any_height() {
    let machine = Machine::new();
    ["sda", "sda1", "sda2", "sdb", "sdb1"].into_iter().for_each(|name| machine.device(name));
    assert_eq!(machine.user("sda"), None);
    machine.stacked("md0", &["sda1", "sdb1"]);
    machine.device("md0p1");
    assert_eq!(machine.user("sda1").as_deref(), Some("it is part of md0"));
    assert_eq!(machine.user("sdb").as_deref(), Some("its partition sdb1 is part of md0"));
    assert_eq!(machine.user("sda2"), None, "its neighbour's use is none of its own");
    assert_eq!((machine.user("md0"), machine.user("md0p1")), (None, None), "nobody uses the array");
    machine.stacked("dm-0", &["md0p1"]);
    assert_eq!(machine.user("md0").as_deref(), Some("its partition md0p1 is part of dm-0"));
    machine.stacked("dm-1", &["dm-0"]);
    machine.mount("dm-1", "/data");
    assert_eq!(machine.user("dm-0").as_deref(), Some("it is part of dm-1"));
    assert_eq!(machine.user("dm-1").as_deref(), Some("it is mounted at /data"));
}

#[test]
fn a_device_on_one_that_is_in_use_itself_is_in_use() {
    let machine = Machine::new();
    ["sda", "sda1", "sda2"].into_iter().for_each(|name| machine.device(name));
    machine.stacked("dm-0", &["sda1"]);
    machine.stacked("dm-1", &["sda1"]);
    machine.stacked("dm-2", &["dm-1"]);
    machine.mount("dm-0", "/home");
    assert_eq!(machine.user("dm-2"), None, "another volume of the same group");
    machine.mount("sda1", "/mnt");
    assert_eq!(machine.user("dm-2").as_deref(), Some("sda1, on which it lies, is mounted at /mnt"));
    assert_eq!(machine.user("sda").as_deref(), Some("its partition sda1 is mounted at /mnt"));
    assert_eq!(machine.user("sda2"), None);
    machine.mount("sda", "/whole");
    assert_eq!(machine.user("sda2").as_deref(), Some("sda, on which it lies, is mounted at /whole"));
    assert_eq!(machine.user("dm-2").as_deref(), Some("sda, on which it lies, is mounted at /whole"));
}

#[test]
fn a_disk_that_is_a_part_as_a_whole_is_not_free_in_parts() {
    let machine = Machine::new();
    ["sda", "sda1"].into_iter().for_each(|name| machine.device(name));
    machine.stacked("dm-0", &["sda"]);
    assert_eq!(machine.user("sda1").as_deref(), Some("sda, on which it lies, is part of dm-0"));
    assert_eq!(machine.user("dm-0"), None);
}

#[test]
fn loop_devices_on_one_file_share_it_by_whatever_name() {
    let machine = Machine::new();
    let (file, hard, other) = (machine.at("file"), machine.at("hard"), machine.at("other"));
    fs::write(&file, "x").unwrap();
    fs::write(&other, "x").unwrap();
    fs::hard_link(&file, &hard).unwrap();
    machine.looped("loop6", &file);
    machine.looped("loop7", &hard);
    let of = |path| of_file(&Stack::at(machine.0.path()), path).map(|user| user.to_string());
    assert_eq!(of(&hard).as_deref(), Some("it is behind /dev/loop6"));
    assert_eq!((of(&other), of(&machine.at("none"))), (None, None));
    assert_eq!(machine.user("loop7"), None, "nobody uses either");
    machine.mount("loop6", "/mnt");
    let text = machine.user("loop7");
    assert_eq!(text.as_deref(), Some("/dev/loop6, which shows the same data, is mounted at /mnt"));
    machine.stacked("dm-0", &["loop7"]);
    let text = machine.user("dm-0");
    assert_eq!(text.as_deref(), Some("/dev/loop6, which shows the same data, is mounted at /mnt"));
}

#[test]
fn a_file_is_in_use_where_lists_name_it_with_its_blanks_in_octal() {
    let machine = Machine::new();
    let (swap, image, other) = (machine.at("my swap"), machine.at("an image"), machine.at("other"));
    [&swap, &image, &other].into_iter().for_each(|path| fs::write(path, "x").unwrap());
    let octal = |path: &PathBuf| path.to_str().unwrap().replace(' ', "\\040");
    let text = format!("Filename Type Size Used Priority\n{} file 1020 0 -2\n", octal(&swap));
    fs::write(machine.at("proc/swaps"), text).unwrap();
    // EROFS is mounted from the file itself.
    let text = format!("43 27 0:39 / /an\\040image ro - erofs {} ro\n", octal(&image));
    fs::write(machine.at("proc/self/mountinfo"), text).unwrap();
    let of = |path| of_file(&Stack::at(machine.0.path()), path).map(|user| user.to_string());
    assert_eq!(of(&swap).as_deref(), Some("it is used as swap space"));
    assert_eq!(of(&image).as_deref(), Some("it is mounted at /an image"));
    assert_eq!(of(&other), None);
}
