//! Scripts around a stage, as in COSBench's `trigger` attribute: `script.sh(arguments)`.
//!
//! A workload file must not be able to run commands, so scripts run only from a directory that the operator
//! has allowed on the command line, by a plain file name, and without a shell in between.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A script that runs beside a stage.
pub(crate) struct Trigger {
    path: PathBuf,
    arguments: Vec<String>,
    child: Child,
}

impl Trigger {
    /// Starts `text`, e.g. `watch.sh(10.0.0.1,5)`, from `directory`.
    pub(crate) fn start(text: &str, directory: &Path) -> Result<Self, String> {
        let (name, arguments) = match text.trim().split_once('(') {
            Some((name, rest)) => (name.trim(), rest.trim_end_matches(')')),
            None => (text.trim(), ""),
        };
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(format!("trigger `{text}` does not name a plain file in {}", directory.display()));
        }
        let path = directory.join(name);
        let arguments: Vec<String> =
            arguments.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let child = command(&path, &arguments).spawn().map_err(|error| {
            format!(
                "cannot start trigger {}: {error}; check that it exists and is executable",
                path.display()
            )
        })?;
        Ok(Self { path, arguments, child })
    }

    /// Ends the script, and runs it once more with `-k` so that it can tidy up.
    pub(crate) fn end(mut self) -> Result<(), String> {
        // A script that has ended by itself cannot be killed, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.arguments.push("-k".into());
        let ended = command(&self.path, &self.arguments).status();
        ended.map(drop).map_err(|error| format!("cannot run trigger {} -k: {error}", self.path.display()))
    }
}

fn command(path: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(path);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_plain_names_of_the_allowed_directory_run() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["../evil.sh", "/bin/sh", "a/b.sh(1)", "", ".hidden"] {
            assert!(Trigger::start(name, directory.path()).is_err(), "{name}");
        }
        let script = directory.path().join("note.sh");
        std::fs::write(&script, "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/log\"\nexec sleep 60\n")
            .unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let wait = "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/log\"\n";
        let trigger = Trigger::start("note.sh(a, b)", directory.path()).unwrap();
        let log = directory.path().join("log");
        while std::fs::read_to_string(&log).unwrap_or_default().is_empty() {
            std::thread::yield_now();
        }
        std::fs::write(&script, wait).unwrap();
        trigger.end().unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "a b\na b -k\n");
    }
}
