//! Slow devices: a control group whose processes may do only so much on the devices named.
//!
//! Limits are those of the kernel's own block layer (Documentation/admin-guide/cgroup-v1/blkio-controller.rst
//! and cgroup-v2.rst, section IO). They hold for the processes of the group on the devices named and for
//! nothing else on the machine.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::error::LabError;
use crate::layout::Limits;

/// Where control groups are.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
/// How long a group may take to be empty once its processes have ended.
const EMPTYING: Duration = Duration::from_secs(5);
/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The kernel's means to limit what processes do on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Controller {
    /// `blkio` of control groups, version 1, and where its groups are.
    Blkio(PathBuf),
    /// `io` of control groups, version 2, and where its groups are.
    Io(PathBuf),
}

/// A control group with limits.
#[derive(Clone, Debug)]
pub(super) struct Throttle {
    controller: Controller,
    name: String,
}

impl Controller {
    /// The controller of this machine, if it has one.
    fn find(root: &Path) -> Option<Self> {
        let blkio = root.join("blkio");
        if blkio.join("blkio.throttle.write_iops_device").exists() {
            return Some(Controller::Blkio(blkio));
        }
        let offers_io = |group: &PathBuf| {
            let controllers = fs::read_to_string(group.join("cgroup.controllers"));
            controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == "io"))
        };
        [root.to_owned(), root.join("unified")].into_iter().find(offers_io).map(Controller::Io)
    }

    fn root(&self) -> &Path {
        match self {
            Controller::Blkio(root) | Controller::Io(root) => root,
        }
    }

    /// The files to write for one device, and what.
    fn rules(&self, device: &str, limits: Limits) -> Vec<(&'static str, String)> {
        let Limits { iops, bandwidth } = limits;
        let read_iops = limits.read_iops();
        match self {
            Controller::Blkio(_) => vec![
                ("blkio.throttle.read_iops_device", format!("{device} {read_iops}")),
                ("blkio.throttle.write_iops_device", format!("{device} {iops}")),
                ("blkio.throttle.read_bps_device", format!("{device} {bandwidth}")),
                ("blkio.throttle.write_bps_device", format!("{device} {bandwidth}")),
            ],
            Controller::Io(_) => vec![(
                "io.max",
                format!("{device} rbps={bandwidth} wbps={bandwidth} riops={read_iops} wiops={iops}"),
            )],
        }
    }
}

impl Throttle {
    /// The group of a name, made or not; none if this machine cannot limit devices.
    pub(super) fn named(name: String) -> Option<Self> {
        Self::named_in(Path::new(CONTROL_GROUPS), name)
    }

    fn named_in(root: &Path, name: String) -> Option<Self> {
        Some(Self { controller: Controller::find(root)?, name })
    }

    /// The group's directory.
    pub(super) fn dir(&self) -> PathBuf {
        self.controller.root().join(&self.name)
    }

    /// The file that takes the number of a process that is to join the group.
    pub(super) fn members(&self) -> PathBuf {
        self.dir().join("cgroup.procs")
    }

    /// Makes the group unless it is there, and limits each device, given as `major:minor`. Processes in it
    /// are held to the new limits at once.
    pub(super) fn limit(&self, devices: &[String], limits: Limits) -> Result<(), LabError> {
        if let Controller::Io(root) = &self.controller {
            let path = root.join("cgroup.subtree_control");
            fs::write(&path, "+io").map_err(LabError::file("write", path))?;
        }
        let dir = self.dir();
        match fs::create_dir(&dir) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(LabError::file("create", dir)(error));
            }
            _ => {}
        }
        let rules = devices.iter().flat_map(|device| self.controller.rules(device, limits));
        for (file, rule) in rules {
            let path = dir.join(file);
            fs::write(&path, rule).map_err(LabError::file("write", path))?;
        }
        Ok(())
    }

    /// Removes the group with its limits. Its processes must have ended.
    pub(super) fn remove(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + EMPTYING;
        loop {
            match fs::remove_dir(self.dir()) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                // The kernel may still be at work on the end of the last process.
                Err(error)
                    if error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
                        && Instant::now() < deadline =>
                {
                    thread::sleep(PAUSE);
                }
                removed => return removed.map_err(LabError::file("remove", self.dir())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { iops: 150, bandwidth: 40_000_000 };

    /// A directory with files of the names and contents given, as the kernel would have them.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    #[test]
    fn the_first_version_has_a_file_for_each_limit() {
        let root = root(&[("blkio/blkio.throttle.write_iops_device", ""), ("cgroup.controllers", "io")]);
        let throttle = Throttle::named_in(root.path(), "lab".into()).unwrap();
        throttle.limit(&["7:1".into()], LIMITS).unwrap();
        let read = |name: &str| fs::read_to_string(root.path().join("blkio/lab").join(name)).unwrap();
        assert_eq!(read("blkio.throttle.read_iops_device"), "7:1 600");
        assert_eq!(read("blkio.throttle.write_iops_device"), "7:1 150");
        assert_eq!(read("blkio.throttle.read_bps_device"), "7:1 40000000");
        assert_eq!(read("blkio.throttle.write_bps_device"), "7:1 40000000");
    }

    #[test]
    fn the_second_version_has_one_line_for_each_device() {
        for place in ["", "unified/"] {
            let root = root(&[(&format!("{place}cgroup.controllers"), "cpu io memory")]);
            let throttle = Throttle::named_in(root.path(), "lab".into()).unwrap();
            throttle.limit(&["7:1".into()], LIMITS).unwrap();
            let read = |name: &str| fs::read_to_string(root.path().join(place).join(name)).unwrap();
            assert_eq!(read("cgroup.subtree_control"), "+io");
            assert_eq!(read("lab/io.max"), "7:1 rbps=40000000 wbps=40000000 riops=600 wiops=150");
        }
    }

    #[test]
    fn a_machine_without_either_cannot_limit() {
        let root = root(&[("unified/cgroup.controllers", "hugetlb"), ("cgroup.controllers", "")]);
        assert!(Throttle::named_in(root.path(), "lab".into()).is_none());
    }

    #[test]
    fn removing_what_is_not_there_is_no_error() {
        let root = root(&[("blkio/blkio.throttle.write_iops_device", "")]);
        Throttle::named_in(root.path(), "lab".into()).unwrap().remove().unwrap();
    }
}
