//! Loop devices on files in memory; root is needed.

use std::process::Command;

/// A loop device on a file in memory, or on another one; detached with this value.
pub struct Loop {
    pub device: String,
    under: Option<Box<Loop>>,
    _file: Option<tempfile::NamedTempFile>,
}

impl Loop {
    pub fn new(bytes: u64) -> Option<Self> {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").ok()?;
        file.as_file().set_len(bytes).ok()?;
        let device = Self::attach(file.path())?;
        Some(Self { device, under: None, _file: Some(file) })
    }

    /// One whose requests wait while the one under it is throttled: it is busy without anybody's processor.
    pub fn over(under: Loop) -> Option<Self> {
        let device = Self::attach(under.device.as_ref())?;
        Some(Self { device, under: Some(Box::new(under)), _file: None })
    }

    fn attach(file: &std::path::Path) -> Option<String> {
        let output = Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file).output();
        let device = String::from_utf8(output.ok()?.stdout).unwrap().trim().to_owned();
        if device.is_empty() {
            return None;
        }
        // Settings of a queue outlive the files that are attached to it.
        let name = device.trim_start_matches("/dev/");
        std::fs::write(format!("/sys/block/{name}/queue/iostats"), "1").unwrap();
        Some(device)
    }

    pub fn number(&self) -> String {
        let name = self.device.trim_start_matches("/dev/");
        std::fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap().trim().to_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
        drop(self.under.take());
    }
}
