//! Loop devices on files of ours: attaching them, finding them again, detaching them.
//!
//! The kernel knows which file each loop device lies on; nothing else is relied upon, so that devices are
//! found again after a crash, and none of somebody else's is touched.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::command::Programs;
use crate::error::LabError;

/// Where the kernel lists block devices.
const BLOCK_DEVICES: &str = "/sys/block";
/// What the kernel adds to the path of a file that has been deleted.
const DELETED: &str = " (deleted)";
/// How long attaching or detaching may take.
const LIMIT: Duration = Duration::from_secs(15);
/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// A loop device that lies on a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopDevice {
    /// The kernel's name for it, such as `loop3`.
    name: String,
    /// The file that it lies on.
    pub(super) file: PathBuf,
}

impl LoopDevice {
    /// Its path, such as `/dev/loop3`.
    pub(super) fn path(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }

    /// Its major and minor number, such as `7:3`.
    pub(super) fn number(&self) -> Result<String, LabError> {
        let path = self.attribute("dev");
        fs::read_to_string(&path).map(|text| text.trim().to_owned()).map_err(LabError::file("read", path))
    }

    /// Whether it bypasses the page cache of the file below it.
    pub(super) fn is_direct(&self) -> bool {
        fs::read_to_string(self.attribute("loop/dio")).is_ok_and(|text| text.trim() == "1")
    }

    /// Makes it known as a device without moving parts, whatever its file lies on: Ceph has other settings
    /// for disks that rotate.
    pub(super) fn set_solid(&self) -> Result<(), LabError> {
        let path = self.attribute("queue/rotational");
        fs::write(&path, "0").map_err(LabError::file("write", path))
    }

    fn attribute(&self, name: &str) -> PathBuf {
        Path::new(BLOCK_DEVICES).join(&self.name).join(name)
    }

    /// Detaches it from its file. No program may be using it.
    pub(super) fn detach(&self, programs: &Programs) -> Result<(), LabError> {
        programs.run("losetup", &["--detach".as_ref(), self.path().as_os_str()], LIMIT)?;
        // A device that something has open is detached by the kernel when that is closed.
        await_detached(|device| device == self)
    }
}

/// Waits until no device fits any more, and names one that is still there after a while.
pub(super) fn await_detached(fits: impl Fn(&LoopDevice) -> bool) -> Result<(), LabError> {
    let deadline = Instant::now() + LIMIT;
    while let Some(device) = attached(|_| true)?.into_iter().find(&fits) {
        if Instant::now() > deadline {
            return Err(LabError::file("detach", device.path())(io::Error::new(
                ErrorKind::ResourceBusy,
                "something still uses it",
            )));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// The loop device on a file: the one that is there, or else a new one, with direct I/O.
pub(super) fn attach(file: &Path, programs: &Programs) -> Result<LoopDevice, LabError> {
    if let Some(device) = attached(|other| other == file)?.pop() {
        return Ok(device);
    }
    let arguments = ["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), file.as_os_str()];
    programs.run("losetup", &arguments, LIMIT)?;
    let missing = || io::Error::new(ErrorKind::NotFound, "losetup made no loop device on it");
    let device =
        attached(|other| other == file)?.pop().ok_or_else(|| LabError::file("attach", file)(missing()))?;
    // Settings of a queue outlive the files that are attached to it, and whoever judges the lab needs its counts.
    let switch = device.attribute("queue/iostats");
    fs::write(&switch, "1").map_err(LabError::file("write", &switch))?;
    Ok(device)
}

/// All loop devices on files that fit.
pub(super) fn attached(fits: impl Fn(&Path) -> bool) -> Result<Vec<LoopDevice>, LabError> {
    attached_in(Path::new(BLOCK_DEVICES), fits)
}

fn attached_in(directory: &Path, fits: impl Fn(&Path) -> bool) -> Result<Vec<LoopDevice>, LabError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(LabError::file("read", directory)(error)),
    };
    let mut devices = Vec::new();
    for entry in entries {
        let entry = entry.map_err(LabError::file("read", directory))?;
        // A device without this attribute is not a loop device, or lies on nothing.
        let Ok(text) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        let text = text.trim_end_matches('\n');
        let file = PathBuf::from(text.strip_suffix(DELETED).unwrap_or(text));
        if fits(&file) {
            devices.push(LoopDevice { name: entry.file_name().to_string_lossy().into_owned(), file });
        }
    }
    Ok(devices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_known_by_their_files_even_deleted_ones() {
        let directory = tempfile::tempdir().unwrap();
        for (name, file) in
            [("loop0", Some("/lab/a\n")), ("loop1", None), ("loop2", Some("/lab/b (deleted)\n"))]
        {
            let attributes = directory.path().join(name).join("loop");
            fs::create_dir_all(&attributes).unwrap();
            if let Some(file) = file {
                fs::write(attributes.join("backing_file"), file).unwrap();
            }
        }
        fs::create_dir(directory.path().join("vda")).unwrap();
        let find = |wanted: &str| attached_in(directory.path(), |file| file == Path::new(wanted)).unwrap();
        assert_eq!(find("/lab/a")[0].path(), Path::new("/dev/loop0"));
        assert_eq!(find("/lab/b")[0].path(), Path::new("/dev/loop2"));
        assert_eq!(find("/lab"), []);
        assert_eq!(attached_in(directory.path(), |_| true).unwrap().len(), 2);
        assert_eq!(attached_in(&directory.path().join("nowhere"), |_| true).unwrap(), []);
    }
}
