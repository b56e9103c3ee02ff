//! Finds and runs those programs of Ceph that do one thing and exit.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::error::LabError;
use crate::process::Process;

/// The command that installs every program the lab needs, on Debian and Ubuntu.
pub(super) const INSTALL: &str = "apt-get install -y ceph-mon ceph-mgr ceph-osd radosgw ceph-common";

/// Every program the lab needs.
const PROGRAMS: [&str; 8] =
    ["ceph", "ceph-authtool", "ceph-mgr", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin"];

/// Variables that would make a Ceph program work on some other cluster than the one it is pointed at.
const FOREIGN_VARIABLES: [&str; 3] = ["CEPH_ARGS", "CEPH_CONF", "CEPH_KEYRING"];

/// How many lines of an error stream or a log are quoted in an error.
const QUOTED_LINES: usize = 12;
/// How much of a file's end is read to find them, in bytes.
const QUOTED_BYTES: u64 = 16 * 1024;

/// Where the programs of Ceph are looked for.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    search: OsString,
}

impl Programs {
    /// Looks in the directories of `search`, which is written like the variable PATH.
    pub(super) fn new(search: OsString) -> Self {
        Self { search }
    }

    /// Fails unless every program is there, naming all that are missing at once.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let names: Vec<_> = PROGRAMS.into_iter().filter(|name| self.look_up(name).is_none()).collect();
        if names.is_empty() { Ok(()) } else { Err(LabError::MissingPrograms { names }) }
    }

    /// The path of one program.
    pub(super) fn path(&self, name: &'static str) -> Result<PathBuf, LabError> {
        self.look_up(name).ok_or_else(|| LabError::MissingPrograms { names: vec![name] })
    }

    fn look_up(&self, name: &str) -> Option<PathBuf> {
        let executable = |path: &PathBuf| {
            path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        };
        std::env::split_paths(&self.search).map(|directory| directory.join(name)).find(executable)
    }

    /// Starts a program that will end by itself.
    pub(super) fn start<A: AsRef<OsStr>>(
        &self,
        name: &'static str,
        arguments: &[A],
    ) -> Result<Running, LabError> {
        let path = self.path(name)?;
        Running::start(name, &path, arguments).map_err(LabError::file("run", path))
    }

    /// Runs a program to its end and returns what it wrote to its output.
    pub(super) fn run<A: AsRef<OsStr>>(
        &self,
        name: &'static str,
        arguments: &[A],
        limit: Duration,
    ) -> Result<String, LabError> {
        self.start(name, arguments)?.finish(limit)
    }
}

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Running {
    command: String,
    child: Child,
    process: Process,
    output: File,
    errors: File,
}

impl Running {
    fn start<A: AsRef<OsStr>>(name: &str, path: &Path, arguments: &[A]) -> io::Result<Self> {
        // Unnamed files rather than pipes: no thread needs to drain them.
        let (output, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut child = undisturbed(Command::new(path).args(arguments))
            .stdout(output.try_clone()?)
            .stderr(errors.try_clone()?)
            .spawn()?;
        match Process::of_child(&child) {
            Ok(process) => Ok(Self { command: words(name, arguments), child, process, output, errors }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// Waits for the end, for `limit` at most, and returns what the program wrote to its output.
    pub(super) fn finish(mut self, limit: Duration) -> Result<String, LabError> {
        let command = std::mem::take(&mut self.command);
        let failed = |source| LabError::File { action: "wait for", path: PathBuf::from(&command), source };
        if !self.process.ended_within(limit).map_err(failed)? {
            let said = last_lines(&mut self.errors);
            return Err(LabError::CommandSlow { command, seconds: limit.as_secs(), said });
        }
        let status = self.child.wait().map_err(failed)?;
        if !status.success() {
            return Err(LabError::CommandFailed {
                command,
                how: status.to_string(),
                said: last_lines(&mut self.errors),
            });
        }
        let mut bytes = Vec::new();
        self.output.rewind().and_then(|()| self.output.read_to_end(&mut bytes)).map_err(failed)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Kills and reaps a child; both do nothing to one already reaped.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Isolates a Ceph program from the terminal's input and from settings in the environment.
pub(super) fn undisturbed(command: &mut Command) -> &mut Command {
    for variable in FOREIGN_VARIABLES {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).current_dir("/")
}

/// A command as it may be shown: the program and what comes before and after `-c FILE`, up to the
/// first option, because options may carry keys.
fn words<A: AsRef<OsStr>>(name: &str, arguments: &[A]) -> String {
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect();
    let own = if arguments.first().is_some_and(|first| first == "-c") { 2 } else { 0 };
    let shown = arguments.iter().skip(own).take_while(|argument| !argument.starts_with('-'));
    shown.fold(name.to_owned(), |text, word| text + " " + word)
}

/// The last lines of a file, without colours and empty lines; nothing if it cannot be read.
pub(super) fn last_lines(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let start = file.metadata().map_or(0, |data| data.len().saturating_sub(QUOTED_BYTES));
    if file.seek(io::SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes)).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes).replace("\x1b[0;31m", "").replace("\x1b[0m", "");
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n")
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;
    use std::time::Instant;

    use super::*;

    /// Makes an executable script. Another process writes it: were it open for writing here while another
    /// test forks, the kernel would refuse to run it ("text file busy").
    pub(crate) fn script(path: &Path, text: &str) {
        let source = path.with_extension("text");
        std::fs::write(&source, text).unwrap();
        assert!(Command::new("install").arg(&source).arg(path).status().unwrap().success());
        std::fs::remove_file(source).unwrap();
    }

    /// A directory with executables made of shell text.
    fn programs(scripts: &[(&str, &str)]) -> (tempfile::TempDir, Programs) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in scripts {
            script(&directory.path().join(name), &format!("#!/bin/sh\n{text}\n"));
        }
        let search = directory.path().as_os_str().to_owned();
        (directory, Programs::new(search))
    }

    #[test]
    fn all_missing_programs_are_named_at_once() {
        let error = Programs::new(OsString::new()).check().unwrap_err().to_string();
        for name in PROGRAMS {
            assert!(error.contains(name), "{error}");
        }
        let (_directory, some) = programs(&[("ceph", ""), ("ceph-mon", ""), ("radosgw", "")]);
        let error = some.check().unwrap_err().to_string();
        assert!(
            error.contains("the lab requires ceph-authtool, ceph-mgr, ceph-osd, monmaptool, radosgw-admin,"),
            "{error}"
        );
        assert!(error.contains(INSTALL), "{error}");
    }

    #[test]
    fn a_program_that_may_not_be_executed_is_missing() {
        let (directory, some) = programs(&[("ceph", "")]);
        let path = directory.path().join("ceph");
        assert_eq!(some.path("ceph").unwrap(), path);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(some.path("ceph").is_err());
    }

    #[test]
    fn a_program_is_run_with_its_arguments_and_a_clean_environment() {
        let (_directory, some) = programs(&[("ceph", "echo \"$1|$CEPH_ARGS|$(pwd)\"; cat")]);
        assert_eq!(some.run("ceph", &["a b"], Duration::from_secs(10)).unwrap(), "a b||/\n");
    }

    #[test]
    fn a_failure_quotes_the_error_stream_and_hides_options_and_output() {
        let (_directory, some) =
            programs(&[("radosgw-admin", "echo SECRET; echo; echo '\x1b[0;31mno luck\x1b[0m' >&2; exit 3")]);
        let arguments = ["-c", "/lab/ceph.conf", "user", "create", "--secret-key=SECRET", "SECRET"];
        let error = some.run("radosgw-admin", &arguments, Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.to_string(), "`radosgw-admin user create` failed (exit status: 3):\n    no luck");
        assert!(!format!("{error:?}").contains("SECRET"));
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let (_directory, some) = programs(&[("ceph", "exec sleep 60")]);
        let begun = Instant::now();
        let error = some.run("ceph", &["status"], Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, LabError::CommandSlow { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn only_the_end_of_a_long_stream_is_quoted() {
        let mut file = tempfile::tempfile().unwrap();
        for number in 0..10_000 {
            writeln!(file, "line {number}").unwrap();
        }
        let lines = last_lines(&mut file);
        assert_eq!(lines.lines().count(), QUOTED_LINES);
        assert!(lines.ends_with("line 9999"));
    }
}
