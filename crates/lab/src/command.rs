//! Finds and runs those programs of a lab that do one thing and exit.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::error::LabError;
use crate::process::Process;

/// Programs that come together, and the packages that have them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Package {
    /// The programs.
    pub(super) programs: &'static [&'static str],
    /// The command that installs them on Debian and Ubuntu.
    pub(super) install: &'static str,
}

/// Every program that a cluster needs.
pub(super) const CEPH: Package = Package {
    programs: &[
        "ceph",
        "ceph-authtool",
        "ceph-mgr",
        "ceph-mon",
        "ceph-osd",
        "monmaptool",
        "radosgw",
        "radosgw-admin",
    ],
    install: "apt-get install -y ceph-mon ceph-mgr ceph-osd radosgw ceph-common",
};
/// What it needs for a file system on top.
pub(super) const CEPH_FILESYSTEM: Package =
    Package { programs: &["ceph-mds", "ceph-fuse"], install: "apt-get install -y ceph-mds ceph-fuse" };

/// Every package, to name the one that a missing program comes from.
const PACKAGES: [Package; 9] = [CEPH, CEPH_FILESYSTEM, POSTGRES, MARIADB, FUSE, MAVEN, ETCD, NODE, CSI];

/// What fetches servers that no distribution has.
const MAVEN: Package = Package { programs: &["mvn"], install: "apt-get install -y maven" };

/// Every program that PostgreSQL servers need.
pub(super) const POSTGRES: Package =
    Package { programs: &["postgres", "initdb", "psql"], install: "apt-get install -y postgresql" };
/// Every program that MariaDB servers need.
pub(super) const MARIADB: Package = Package {
    programs: &["mariadbd", "mariadb-install-db", "mariadb"],
    install: "apt-get install -y mariadb-server",
};
/// What keeps what an API server of Kubernetes is told.
pub(super) const ETCD: Package = Package { programs: &["etcd"], install: "apt-get install -y etcd-server" };
/// What runs pods on a node of Kubernetes. The network plugins come without a program in the path.
pub(super) const NODE: Package = Package {
    programs: &["containerd", "ctr", "runc", "ip", "nsenter", "unshare"],
    install: "apt-get install -y containerd runc containernetworking-plugins iproute2 util-linux",
};
/// What makes volumes of files.
pub(super) const CSI: Package = Package {
    programs: &["losetup", "mkfs.ext4", "e2fsck", "resize2fs", "blockdev", "findmnt"],
    install: "apt-get install -y e2fsprogs mount util-linux",
};
/// What mounts a file system of ours for a user other than root.
pub(super) const FUSE: Package = Package { programs: &["fusermount3"], install: "apt-get install -y fuse3" };

/// Variables that would make a program work on some other cluster or server than the one it is pointed at.
const FOREIGN_VARIABLES: [&str; 16] = [
    "CEPH_ARGS",
    "CEPH_CONF",
    "CEPH_KEYRING",
    "PGDATA",
    "PGDATABASE",
    "PGHOST",
    "PGHOSTADDR",
    "PGOPTIONS",
    "PGPASSFILE",
    "PGPORT",
    "PGSERVICE",
    "PGUSER",
    "MYSQL_GROUP_SUFFIX",
    "MYSQL_HOME",
    "MYSQL_TCP_PORT",
    "MYSQL_UNIX_PORT",
];

/// Where servers and tools of an administrator lie that not every user's PATH has, and Go as its makers say, which that of `sudo` lacks.
const MORE_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/go/bin"];
/// Where Debian has PostgreSQL's programs, in a directory for each version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// How many lines of an error stream or a log are quoted in an error.
const QUOTED_LINES: usize = 12;
/// How much of a file's end is read to find them, in bytes.
const QUOTED_BYTES: u64 = 16 * 1024;

/// Where the programs of a lab are looked for.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    search: OsString,
}

impl Programs {
    /// Looks in the directories of `search`, which is written like the variable PATH.
    pub(super) fn new(search: OsString) -> Self {
        Self { search }
    }

    /// Looks in those of the variable PATH, and where packages have their servers.
    pub(super) fn installed() -> Self {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let mut directories: Vec<PathBuf> = std::env::split_paths(&search).collect();
        directories.extend(MORE_DIRECTORIES.map(PathBuf::from));
        directories.extend(newest_first(Path::new(POSTGRES_VERSIONS)));
        Self { search: std::env::join_paths(directories).unwrap_or(search) }
    }

    /// Looks also in a directory, before all others.
    pub(super) fn and_in(&self, directory: &Path) -> Self {
        let mut search = directory.as_os_str().to_owned();
        search.push(":");
        search.push(&self.search);
        Self { search }
    }

    /// The path of Go, which builds what no distribution has.
    pub(super) fn go(&self) -> Result<PathBuf, LabError> {
        self.look_up("go").ok_or(LabError::NoGo)
    }

    /// Fails unless every program of a package is there, naming all that are missing at once.
    pub(super) fn check(&self, package: &Package) -> Result<(), LabError> {
        let missing = |name: &&&'static str| self.look_up(name).is_none();
        let names: Vec<_> = package.programs.iter().filter(missing).copied().collect();
        match names.is_empty() {
            true => Ok(()),
            false => Err(LabError::MissingPrograms { names, install: package.install }),
        }
    }

    /// The path of one program.
    pub(super) fn path(&self, name: &'static str) -> Result<PathBuf, LabError> {
        self.look_up(name).ok_or_else(|| {
            let from = PACKAGES.into_iter().find(|package| package.programs.contains(&name));
            let install = from.map_or("apt-get install -y mount", |package| package.install);
            LabError::MissingPrograms { names: vec![name], install }
        })
    }

    fn look_up(&self, name: &str) -> Option<PathBuf> {
        // A lab's own file systems are served by this very program.
        if name == "tidemark"
            && let Ok(own) = std::env::current_exe()
            && own.file_name().is_some_and(|file| file == name)
        {
            return Some(own);
        }
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
        self.start_with(name, arguments, |_| {})
    }

    /// The same, with something changed about the command: its user, its input, its environment.
    pub(super) fn start_with<A: AsRef<OsStr>>(
        &self,
        name: &'static str,
        arguments: &[A],
        change: impl FnOnce(&mut Command),
    ) -> Result<Running, LabError> {
        let path = self.path(name)?;
        let mut command = Command::new(&path);
        change(undisturbed(command.args(arguments)));
        Running::start(words(name, arguments), &mut command).map_err(LabError::file("run", path))
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
    fn start(words: String, command: &mut Command) -> io::Result<Self> {
        // Unnamed files rather than pipes: no thread needs to drain them.
        let (output, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut child = command.stdout(output.try_clone()?).stderr(errors.try_clone()?).spawn()?;
        match Process::of_child(&child) {
            Ok(process) => Ok(Self { command: words, child, process, output, errors }),
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

/// The directories of a server's versions, the newest first: `15/bin` below the one given.
fn newest_first(versions: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers.into_iter().rev().map(|number| versions.join(number.to_string()).join("bin")).collect()
}

/// Isolates a program from the terminal's input and from settings in the environment.
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
        let error = Programs::new(OsString::new()).check(&CEPH).unwrap_err().to_string();
        for name in CEPH.programs {
            assert!(error.contains(name), "{error}");
        }
        let (_directory, some) = programs(&[("ceph", ""), ("ceph-mon", ""), ("radosgw", "")]);
        let error = some.check(&CEPH).unwrap_err().to_string();
        assert!(
            error.contains("the lab requires ceph-authtool, ceph-mgr, ceph-osd, monmaptool, radosgw-admin,"),
            "{error}"
        );
        assert!(error.contains(CEPH.install), "{error}");
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
