//! The fio program on this machine.

use crate::examined::Examined;
use crate::stderr::Stderr;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tidemark_sandbox::Sandbox;

/// Names another fio than the one in `PATH`.
pub const VARIABLE: &str = "TIDEMARK_FIO";

/// The first version with json+ output (latency bins in JSON).
const OLDEST: Version = Version { major: 3, minor: 0 };

/// A fio program that can be used.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    version: Version,
    /// Whether the kernel keeps it from writing to what was not examined.
    confined: bool,
    /// What a guard has examined for its job files.
    examined: Arc<Examined>,
    /// The numbers of the devices under volumes that a guard has examined.
    devices: Arc<[u64]>,
}

/// A version of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The 3 of 3.33.
    pub major: u32,
    /// The 33 of 3.33.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// fio cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// There is none.
    #[error(
        "fio is not in PATH: install the package `fio` (apt install fio), or set {VARIABLE} to the program's path"
    )]
    Absent,
    /// It exists and does not run.
    #[error("{} cannot be run: {reason}; install the package `fio`, or set {VARIABLE} to another program", path.display())]
    Broken {
        /// Which program.
        path: PathBuf,
        /// What it, or the system, said.
        reason: String,
    },
    /// It cannot give its latency bins.
    #[error("{} is fio {version}: {OLDEST} or later is required; earlier versions do not report latency bins (json+)", path.display())]
    TooOld {
        /// Which program.
        path: PathBuf,
        /// Its version.
        version: Version,
    },
}

impl Program {
    /// The fio that `TIDEMARK_FIO` names, or the first one in `PATH`.
    ///
    /// # Errors
    /// When there is none, when it does not run, or when it is older than 3.0.
    pub fn find() -> Result<Self, FioError> {
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
        let in_path = || {
            let directories = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&directories)
                .map(|directory| directory.join("fio"))
                .find(|path| path.is_file())
        };
        Self::at(named.or_else(in_path).ok_or(FioError::Absent)?)
    }

    /// The fio at a path.
    ///
    /// # Errors
    /// When it does not run, or when it is older than 3.0.
    pub fn at(path: PathBuf) -> Result<Self, FioError> {
        let stderr = say(&path, "--version")?;
        match version(&stderr) {
            None => Err(FioError::Broken { path, reason: format!("`--version` prints `{}`", stderr.trim()) }),
            Some(version) if version < OLDEST => Err(FioError::TooOld { path, version }),
            Some(version) => {
                Ok(Self { path, version, confined: true, examined: Arc::default(), devices: Arc::default() })
            }
        }
    }

    /// One for tests that run nothing.
    #[cfg(test)]
    pub(crate) fn stand_in() -> Self {
        let path = "/nonexistent/fio".into();
        Self { path, version: OLDEST, confined: true, examined: Arc::default(), devices: Arc::default() }
    }

    /// The same program without its sandbox: whatever it opens, it may write to.
    pub fn unconfined(self) -> Self {
        Self { confined: false, ..self }
    }

    /// The same program for job files of which this was examined.
    pub(crate) fn with(&self, examined: Arc<Examined>) -> Self {
        Self { examined, ..self.clone() }
    }

    /// The same program for volumes on devices with these numbers, which a guard has examined.
    pub(crate) fn on(&self, devices: &[u64]) -> Self {
        Self { devices: devices.into(), ..self.clone() }
    }

    /// The numbers of the devices under volumes that it may write to.
    pub(crate) fn devices(&self) -> &[u64] {
        &self.devices
    }

    pub(crate) fn examined(&self) -> &Examined {
        &self.examined
    }

    /// Whether the kernel keeps it in a sandbox.
    pub(crate) fn is_confined(&self) -> bool {
        self.confined
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which version it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What it is and where, for people.
    pub fn description(&self) -> String {
        format!("fio {} at {}", self.version, self.path.display())
    }

    /// Has it read a job file without running it: the files and devices that its options name, as it joins them. Files that have no name
    /// in the options are not among them: it names those when it runs.
    ///
    /// # Errors
    /// What it objects to, in its own words.
    pub fn parse(&self, text: &str) -> Result<Vec<PathBuf>, String> {
        let failed = |error: std::io::Error| format!("{} cannot be run: {error}", self.path.display());
        let mut file = tempfile::tempfile().map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.rewind()).map_err(failed)?;
        let mut command = Command::new(&self.path);
        command.args(["--parse-only", "--debug=file", "-"]).stdin(file);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // Options may have it load code, even so.
        let started = Sandbox::default().spawn_where_supported(&mut command);
        let started = started.map_err(|error| format!("{} cannot be run: {error}", self.path.display()))?;
        let output = started.wait_with_output().map_err(failed)?;
        if output.status.success() {
            return Ok(added(&String::from_utf8_lossy(&output.stdout)));
        }
        let mut heard = Stderr::default();
        for pipe in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(pipe);
            text.lines().filter(|line| !is_debugging(line)).for_each(|line| heard.hear(line));
        }
        Err(format!("fio {} does not accept the job file: {}", self.version, heard.words()))
    }

    /// The names of its I/O engines.
    ///
    /// # Errors
    /// When it does not run.
    pub fn engines(&self) -> Result<BTreeSet<String>, FioError> {
        let stderr = say(&self.path, "--enghelp")?;
        let names = stderr.lines().filter(|line| line.starts_with(char::is_whitespace));
        Ok(names.map(|line| line.trim().to_owned()).filter(|name| !name.is_empty()).collect())
    }
}

/// Whether a line is one of `--debug=file`.
fn is_debugging(line: &str) -> bool {
    line.starts_with("file ") || line.starts_with("fio: set debug option")
}

/// The names in `file     4711  file 0x7faec7567110 "/tmp/name" added at 0` (fio's `__add_file`).
fn added(text: &str) -> Vec<PathBuf> {
    let name = |line: &str| {
        let (begin, _) = line.rsplit_once("\" added at ")?;
        let (head, name) = begin.split_once(" \"")?;
        (is_debugging(line) && head.contains(" file 0x")).then(|| PathBuf::from(name))
    };
    text.lines().filter_map(name).collect()
}

fn say(path: &Path, argument: &str) -> Result<String, FioError> {
    let broken = |reason: String| FioError::Broken { path: path.to_owned(), reason };
    let output = Command::new(path).arg(argument).output().map_err(|error| broken(error.to_string()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(broken(format!("`{argument}` ended with {}: {}", output.status, stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `fio-3.33`, `fio-3.33-42-gabcdef` and the like.
fn version(stderr: &str) -> Option<Version> {
    let numbers = stderr.trim().strip_prefix("fio-")?;
    let mut numbers = numbers.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let major = numbers.next()?.ok()?;
    Some(Version { major, minor: numbers.next().and_then(Result::ok).unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let read = |stderr| version(stderr).map(|version| version.to_string());
        assert_eq!(read("fio-3.33\n").as_deref(), Some("3.33"));
        assert_eq!(read("fio-3.42-8-gdeadbee-dirty").as_deref(), Some("3.42"));
        assert_eq!(read("fio 3.33"), None);
        assert!(version("fio-2.21").unwrap() < OLDEST && version("fio-3.0").unwrap() >= OLDEST);
    }

    #[test]
    fn names_are_those_that_it_has_joined() {
        let text = "fio: set debug option file\nfile     2669  dup files: 0\nfile     2669  add file /loopX\n\
                    file     2669  file 0x7faec7567110 \"/dev//loopX\" added at 0\n\
                    file     2669  file 0x7faec7567110 \"a \"b\" added at 1\" added at 1\nother \"x\" added at 2\n";
        assert_eq!(added(text), [Path::new("/dev/loopX"), Path::new("a \"b\" added at 1")]);
    }

    #[test]
    fn what_is_not_there_or_no_fio_is_said_with_the_remedy() {
        let absent = Program::at("/nonexistent/fio".into()).unwrap_err().to_string();
        assert!(absent.contains("/nonexistent/fio") && absent.contains("package `fio`"), "{absent}");
        let other = Program::at("/bin/echo".into()).unwrap_err().to_string();
        assert!(other.contains("`--version` prints"), "{other}");
    }

    #[test]
    fn an_old_one_is_refused_with_its_version() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fio");
        std::fs::write(&path, "#!/bin/sh\necho fio-2.21\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        let error = Program::at(path).unwrap_err();
        assert!(matches!(error, FioError::TooOld { .. }) && error.to_string().contains("2.21"), "{error}");
    }
}
