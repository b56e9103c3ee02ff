//! Which disks the observed processes use: a disk's own counters count everybody's requests.
//!
//! The kernel counts what a process makes disks move (`/proc/PID/io`), but not on which of them. It can have been those on
//! which the process has files open: on one of them at least as much as the others did not move, and at most all of it. What
//! is more than all of them moved was on disks on which it had files open in between.

use crate::disk::{Disks, Number};
use crate::process::Process;
use crate::sample::{Gaps, Sample};
use rustix::fs::{FileType, major, minor, stat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tidemark_measure::observation::Kind;

/// Open files of a process that are looked at.
const MOST: usize = 1024;

/// What is sampled of open files.
#[derive(Default)]
pub(crate) struct Files {
    /// What each process has open, by its number.
    open: BTreeMap<u32, Open>,
    /// The disk under the file of a loop device.
    under: BTreeMap<Number, Number>,
}

/// The open files of a process.
struct Open {
    count: usize,
    /// The disks on which they lie.
    disks: BTreeSet<Number>,
}

impl Files {
    /// Looks again which files are open.
    pub(crate) fn find(&mut self, processes: &[Process], gaps: &mut Gaps) {
        self.open.clear();
        self.under.clear();
        for process in processes {
            let Some(open) = open_by(process.pid) else {
                gaps.say(format!(
                    "This user may not see which files {} has open, and so which disks it uses.",
                    process.subject
                ));
                continue;
            };
            for disk in &open.disks {
                self.under.extend(under(*disk).map(|below| (*disk, below)));
            }
            self.open.insert(process.pid, open);
        }
    }

    /// Bytes per second that the observed processes moved on each disk, at least and at most.
    pub(crate) fn sample(&self, processes: &[Process], disks: &Disks, out: &mut Sample) {
        let own = || processes.iter().filter_map(|process| Some((process, self.open.get(&process.pid)?)));
        for (process, open) in own() {
            out.put(Kind::Process, &process.subject, "open_files", open.count as f64);
        }
        for (disk, name, moved) in disks.busy() {
            let of = |disk| disks.moved(disk);
            let (mut least, mut most) = (0.0, 0.0);
            for (process, open) in own() {
                let bounds = bounds(disk, process.moved(), &open.disks, &self.under, of);
                (least, most) = (least + bounds.0, most + bounds.1);
            }
            out.put(Kind::Disk, name, "observed_bytes", f64::min(least, moved));
            out.put(Kind::Disk, name, "observed_bytes_most", f64::min(most, moved));
        }
    }
}

/// What of `moved` bytes must, and what can have been on a disk, for a process that has files on its `own` disks.
fn bounds(
    disk: Number,
    moved: f64,
    own: &BTreeSet<Number>,
    under: &BTreeMap<Number, Number>,
    of: impl Fn(Number) -> f64,
) -> (f64, f64) {
    let over = |disk: Number| own.iter().copied().filter(move |upper| under.get(upper) == Some(&disk));
    // What a loop device moved, the disk under its file moved as well.
    let apart = |disk: Number| (of(disk) - over(disk).map(&of).sum::<f64>()).max(0.0);
    let without = |disk: Number| -> f64 {
        let others = own.iter().filter(|other| **other != disk);
        moved - others.map(|other| apart(*other)).sum::<f64>()
    };
    let least_here = |disk: Number| match own.contains(&disk) {
        true => without(disk).clamp(0.0, of(disk)),
        false => 0.0,
    };
    let least = least_here(disk) + over(disk).map(least_here).sum::<f64>();
    let reaches = own.contains(&disk) || over(disk).next().is_some();
    let most = if reaches { moved } else { without(disk).max(0.0) };
    (least, most.min(of(disk)))
}

/// What a process has open; `None` where this user may not see that.
fn open_by(pid: u32) -> Option<Open> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let paths: Vec<_> = entries.take(MOST).filter_map(|entry| Some(entry.ok()?.path())).collect();
    Some(Open { count: paths.len(), disks: paths.iter().filter_map(|path| disk_of(path)).collect() })
}

/// The disk on which a file lies, or the one that it is.
fn disk_of(path: &std::path::Path) -> Option<Number> {
    let found = stat(path).ok()?;
    let device = match FileType::from_raw_mode(found.st_mode) {
        FileType::BlockDevice => found.st_rdev,
        _ => found.st_dev,
    };
    // Numbers that begin with 0 are file systems without a device of their own.
    let number = (major(device), minor(device));
    (number.0 != 0).then(|| whole(number))
}

/// The disk of which a device is a part.
fn whole((major, minor): Number) -> Number {
    let path = format!("/sys/dev/block/{major}:{minor}");
    let parent = || {
        let text = fs::read_to_string(format!("{path}/../dev")).ok()?;
        crate::cgroup::number(text.trim())
    };
    let is_part = fs::exists(format!("{path}/partition")).unwrap_or(false);
    is_part.then(parent).flatten().unwrap_or((major, minor))
}

/// The disk on which the file of a loop device lies.
fn under((major, minor): Number) -> Option<Number> {
    let file = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/loop/backing_file")).ok()?;
    disk_of(file.trim_end_matches('\n').as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VDA: Number = (254, 0);
    const LOOP: Number = (7, 3);

    /// The bounds on vda and on the loop device, which moved so much.
    fn told(moved: f64, own: &[Number], stacked: bool, vda: f64, on_loop: f64) -> [(f64, f64); 2] {
        let under = BTreeMap::from_iter(stacked.then_some((LOOP, VDA)));
        let own = own.iter().copied().collect();
        let of = |disk| if disk == VDA { vda } else { on_loop };
        [VDA, LOOP].map(|disk| bounds(disk, moved, &own, &under, of))
    }

    #[test]
    fn what_a_process_moved_is_on_its_only_disk() {
        assert_eq!(told(90.0, &[VDA], false, 100.0, 50.0), [(90.0, 90.0), (0.0, 0.0)]);
        assert_eq!(told(0.0, &[VDA], false, 100.0, 0.0)[0], (0.0, 0.0), "the rest is somebody else's");
        assert_eq!(told(300.0, &[VDA], false, 100.0, 0.0)[0], (100.0, 100.0), "no more than the disk moved");
    }

    #[test]
    fn what_another_disk_may_have_moved_is_uncertain() {
        assert_eq!(told(200.0, &[VDA, LOOP], false, 100.0, 200.0), [(0.0, 100.0), (100.0, 200.0)]);
        assert_eq!(told(200.0, &[VDA, LOOP], false, 1.0, 200.0), [(0.0, 1.0), (199.0, 200.0)]);
    }

    #[test]
    fn what_a_loop_device_moved_is_on_the_disk_under_its_file() {
        assert_eq!(told(200.0, &[LOOP], true, 210.0, 200.0), [(200.0, 200.0), (200.0, 200.0)]);
        assert_eq!(told(200.0, &[VDA, LOOP], true, 205.0, 200.0), [(195.0, 200.0), (195.0, 200.0)]);
    }

    #[test]
    fn files_that_were_open_in_between_may_lie_anywhere() {
        assert_eq!(told(90.0, &[], false, 100.0, 0.0)[0], (0.0, 90.0));
        assert_eq!(told(90.0, &[LOOP], false, 100.0, 60.0), [(0.0, 30.0), (60.0, 60.0)]);
    }

    #[test]
    fn open_files_are_found_by_their_disks() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let number = {
            let device = rustix::fs::fstat(&file).unwrap().st_dev;
            (major(device), minor(device))
        };
        let found = open_by(std::process::id()).unwrap();
        assert!(number.0 == 0 || found.disks.contains(&whole(number)), "{:?}", found.disks);
        assert!(found.count > 0 && open_by(u32::MAX).is_none());
    }
}
