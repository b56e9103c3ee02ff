//! What can go wrong with a lab, in words that say what to do next.

use std::path::PathBuf;

use crate::daemon::Daemon;
use crate::layout::Layout;
use crate::system::System;

/// Why a lab could not be started, inspected or stopped.
///
/// Every text says what happened, where, and what to do next. None of them holds a key: programs are named
/// without their options, and only their error streams are quoted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Programs are not installed.
    #[error("the lab requires {}, which this machine does not have; install with `{install}`", names.join(", "))]
    MissingPrograms {
        /// The programs that were looked for and not found.
        names: Vec<&'static str>,
        /// The command that installs them.
        install: &'static str,
    },
    /// Maven did not give an artifact.
    #[error(
        "Maven could not fetch {artifact}: {said}; check the network, and the repositories and proxies in Maven's settings"
    )]
    NotFetched {
        /// The artifact's coordinates.
        artifact: String,
        /// What Maven said.
        said: String,
    },
    /// An artifact is not the one that it should be.
    #[error(
        "{artifact} from Maven is not the file that Tidemark knows, and is not used: its SHA-256 is {found}, not {expected}; remove \
         it from Maven's local repository (usually ~/.m2/repository) and try again"
    )]
    WrongHash {
        /// The artifact's coordinates.
        artifact: String,
        /// The hash that it should have.
        expected: &'static str,
        /// The hash that it has.
        found: String,
    },
    /// There is no Go to build a program with.
    #[error(
        "building Kubernetes requires Go 1.26 or later, which this machine does not have; install it as go.dev/doc/install says"
    )]
    NoGo,
    /// A program could not be built.
    #[error(
        "Go could not build {program} {version}; check its version (1.26 or later), the network and GOPROXY{}",
        quoted(said)
    )]
    NotBuilt {
        /// The program.
        program: &'static str,
        /// Its version.
        version: &'static str,
        /// What Go said last.
        said: String,
    },
    /// Certificates could not be made.
    #[error("the lab's certificates cannot be made: {why}")]
    Certificates {
        /// What the library says.
        why: String,
    },
    /// The API server of Kubernetes did not answer, or not as it should have.
    #[error(
        "a request to Kubernetes' API server at {endpoint} failed: {why}; see `tidemark lab status kubernetes`"
    )]
    Kubernetes {
        /// Where it listens.
        endpoint: String,
        /// What went wrong.
        why: String,
    },
    /// A node of Kubernetes cannot be made by this user.
    #[error(
        "a node of Kubernetes needs root, for its containers: use sudo; `tidemark lab up kubernetes` without nodes does not"
    )]
    NodeNeedsRoot,
    /// A node of Kubernetes was needed, and the lab has none.
    #[error(
        "the lab in {} has no node; `tidemark lab down kubernetes`, and then `tidemark lab up kubernetes --node` makes one that has",
        dir.display()
    )]
    NoNode {
        /// The directory of the lab.
        dir: PathBuf,
    },
    /// The node of Kubernetes does not run.
    #[error("the node of the lab in {} does not run; `tidemark lab up kubernetes` starts it", dir.display())]
    NodeStopped {
        /// The directory of the lab.
        dir: PathBuf,
    },
    /// The addresses of a lab's node are in use by somebody else.
    #[error(
        "the addresses {range} of the lab's node are in use; `ip route` shows by what: remove that, or make another lab with \
         `tidemark lab down kubernetes` and `tidemark lab up kubernetes --node`"
    )]
    NetworkTaken {
        /// The addresses.
        range: String,
    },
    /// No addresses are free for a lab's node.
    #[error(
        "no network of 1024 addresses is free in 10.240.0.0/12 for the lab's node; `ip route` shows what uses them"
    )]
    NoFreeNetwork,
    /// There is no Java that runs Trino.
    #[error(
        "Trino needs Java {least} or later, and {places} {}; install one, or name its directory with --jdk",
        has_only(found)
    )]
    NoJdk {
        /// The oldest version that runs it.
        least: u32,
        /// Where it was looked for, in words.
        places: String,
        /// What was found there instead: directories and versions.
        found: Vec<String>,
    },
    /// The bucket for tables cannot be used.
    #[error(
        "cannot make the bucket {bucket} at {endpoint}: {why}; check that the server is up, its address and the keys"
    )]
    NoBucket {
        /// The bucket.
        bucket: String,
        /// The S3 server.
        endpoint: String,
        /// What went wrong.
        why: String,
    },
    /// A statement failed.
    #[error("Trino at {endpoint} did not carry out a statement: {why}")]
    Statement {
        /// The coordinator.
        endpoint: String,
        /// What it said.
        why: String,
    },
    /// No directory for files that can be fetched again can be derived from the environment.
    #[error("no directory for a cache: set XDG_CACHE_HOME, or HOME")]
    NoCache,
    /// The user that servers run as is missing.
    #[error("this machine has no user {name}, whom the servers' package makes; install the package again")]
    NoUser {
        /// The user's name.
        name: &'static str,
    },
    /// A setting that the servers cannot have.
    #[error("the setting `{name}`: {why}")]
    BadSetting {
        /// The setting.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no server of a number.
    #[error("there is no server {instance}: the lab has {instances}, from 0")]
    NoInstance {
        /// The number.
        instance: usize,
        /// How many there are.
        instances: usize,
    },
    /// Servers run with other settings or ports than those asked for.
    #[error("the servers in {} run with other settings or ports; `tidemark lab down --keep` stops them, and then \
             `tidemark lab up` starts them with these", dir.display())]
    Running {
        /// The directory of the lab.
        dir: PathBuf,
    },
    /// The data lie on a disk that cannot be cut.
    #[error("the power of the lab in {} cannot be cut: `tidemark lab up` with --power-cut makes one whose can", dir.display())]
    NoPowerCut {
        /// The directory of the lab.
        dir: PathBuf,
    },
    /// The directory has a lab of another system.
    #[error("the lab in {} runs {has}, not {asked}; choose another directory", dir.display())]
    OtherSystem {
        /// The directory of the lab.
        dir: PathBuf,
        /// The system that it runs.
        has: System,
        /// What was asked for.
        asked: &'static str,
    },
    /// No directory was given and none can be derived from the environment.
    #[error("no directory for the lab: set TIDEMARK_LAB_DIR, or HOME")]
    NoDirectory,
    /// The directory cannot hold a lab.
    #[error("{} cannot hold a lab: {why}; choose another directory", dir.display())]
    UnsuitableDirectory {
        /// The directory asked for.
        dir: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is no lab in the directory.
    #[error("there is no lab in {}; `tidemark lab up` creates one", dir.display())]
    NoLab {
        /// Where a lab was expected.
        dir: PathBuf,
    },
    /// A lab is there, but its creation did not finish.
    #[error("the lab in {} is incomplete; `tidemark lab up` creates it again", dir.display())]
    Unfinished {
        /// The directory of the lab.
        dir: PathBuf,
    },
    /// Another command is changing the lab.
    #[error("another `tidemark lab` command is running in {}; wait for it to end", dir.display())]
    Busy {
        /// The directory of the lab.
        dir: PathBuf,
    },
    /// An option has a value that no lab can have.
    #[error("{option} is {value}, but must be {allowed}")]
    BadOption {
        /// The option, in words.
        option: &'static str,
        /// The value given.
        value: u64,
        /// The values that can be given.
        allowed: &'static str,
    },
    /// An option asks for something that the existing lab is not.
    #[error("the lab in {} has {option} {has}, not {asked}; {advice}", dir.display())]
    Differs {
        /// The directory of the lab.
        dir: PathBuf,
        /// The option, in words.
        option: &'static str,
        /// What the lab has.
        has: String,
        /// What was asked for.
        asked: String,
        /// How to get what was asked for.
        advice: &'static str,
    },
    /// This machine, or this user, cannot have the layout.
    #[error("cannot create the layout {layout}: {why}")]
    LayoutImpossible {
        /// The layout asked for.
        layout: Layout,
        /// What is missing, and how to get it.
        why: String,
    },
    /// The file of a device is gone.
    #[error(
        "{} is gone, and with it the data of the lab; files in memory do not outlive a restart of the machine: \
         `tidemark lab down` removes the rest, and then `tidemark lab up ceph` makes another lab",
        file.display()
    )]
    DeviceLost {
        /// The file.
        file: PathBuf,
    },
    /// The file system has too little space for a lab to start.
    #[error("{} has {free_bytes} bytes free and a lab needs {needed_bytes} to start; free some space, \
             or choose another directory with TIDEMARK_LAB_DIR", dir.display())]
    NoSpace {
        /// The directory of the lab.
        dir: PathBuf,
        /// What is free, in bytes.
        free_bytes: u64,
        /// What is needed, in bytes.
        needed_bytes: u64,
    },
    /// A port that the lab must have is in use by somebody else.
    #[error("port {port} of 127.0.0.1, which {daemon} needs, is in use; `ss -ltnp 'sport = {port}'` shows by \
             what: stop that{}", or_another(*daemon))]
    PortTaken {
        /// The daemon that needs it.
        daemon: Daemon,
        /// The port.
        port: u16,
    },
    /// No port is free in the range where the lab looks for one.
    #[error(
        "no port of 127.0.0.1 from {first} to {last} is free for {daemon}; stop some of what listens there"
    )]
    NoFreePort {
        /// The daemon that needs one.
        daemon: Daemon,
        /// The first port tried.
        first: u16,
        /// The last port tried.
        last: u16,
    },
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A query's file is there, and its text is not what it would be.
    #[error(
        "{} has another text: it was changed, or is of another version of Tidemark; remove it, or choose another directory",
        file.display()
    )]
    OtherText {
        /// The file.
        file: PathBuf,
    },
    /// The lab's own record is damaged.
    #[error("{} is damaged: {why}; restore it, or remove the lab with `tidemark lab down`",
            path.display())]
    BadRecord {
        /// The record, `lab.json`.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A command failed.
    #[error("`{command}` failed ({how}){}{}", quoted(said), remedy(said))]
    CommandFailed {
        /// The program and its leading words, without options.
        command: String,
        /// How it ended.
        how: String,
        /// The end of what it wrote to its error stream.
        said: String,
    },
    /// A command took too long and was stopped.
    #[error(
        "`{command}` did not end within {seconds} s and was stopped; \
             `tidemark lab status` shows which daemons run{}",
        quoted(said)
    )]
    CommandSlow {
        /// The program and its leading words, without options.
        command: String,
        /// The time it was given, in seconds.
        seconds: u64,
        /// The end of what it wrote to its error stream.
        said: String,
    },
    /// A command of Ceph answered something unexpected.
    #[error(
        "`{command}` answered something that this version of Tidemark does not understand ({why}); \
             the lab is made for Ceph 16.2"
    )]
    CommandOutput {
        /// The program and its leading words, without options.
        command: String,
        /// What could not be understood; never the answer itself, which may hold keys.
        why: String,
    },
    /// A daemon ended when it should have kept running.
    #[error("{daemon} ended while the lab was starting ({how}); its log is {}{}{}",
            log.display(), quoted(tail), remedy(tail))]
    DaemonEnded {
        /// The daemon.
        daemon: Daemon,
        /// How it ended.
        how: String,
        /// Its log.
        log: PathBuf,
        /// The end of what it said.
        tail: String,
    },
    /// A daemon runs but did not become ready in time.
    #[error("{daemon} still {lack} after {seconds} s; its log is {}{}",
            log.display(), quoted(tail))]
    NotReady {
        /// The daemon.
        daemon: Daemon,
        /// The time it was given, in seconds.
        seconds: u64,
        /// What it failed to do, as in "does not answer".
        lack: String,
        /// Its log.
        log: PathBuf,
        /// The end of what it said.
        tail: String,
    },
    /// Every daemon runs, but the cluster does not serve all of its data in time.
    #[error("after {seconds} s the cluster does not serve all of its data ({state}); \
             the daemons' logs are in {}", logs.display())]
    NotServing {
        /// The time it was given, in seconds.
        seconds: u64,
        /// What Ceph says of itself.
        state: String,
        /// The directory of the logs.
        logs: PathBuf,
    },
    /// A daemon outlived even SIGKILL, which a process waiting for a dead disk does.
    #[error(
        "{daemon} (process {pid}) did not end after SIGKILL: it is waiting in the kernel; check its disk"
    )]
    WouldNotEnd {
        /// The daemon.
        daemon: Daemon,
        /// Its process.
        pid: u32,
    },
}

impl LabError {
    /// An error about a file, for `map_err`.
    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::File { action, path, source }
    }
}

/// Most can move to another port; the monitor cannot, because the cluster knows it by its port.
fn or_another(daemon: Daemon) -> &'static str {
    match daemon {
        Daemon::Gateway(_)
        | Daemon::Postgres(_)
        | Daemon::Mariadb(_)
        | Daemon::Coordinator
        | Daemon::Worker(_)
        | Daemon::ApiServer => ", or ask for another port",
        _ => "",
    }
}

/// What places have instead of what they should have.
fn has_only(found: &[String]) -> String {
    if found.is_empty() { "has none".to_owned() } else { format!("has only {}", found.join(", ")) }
}

/// What servers say when they cannot start, and what to do about it.
const REMEDIES: [(&str, &str); 8] = [
    ("Could not reserve enough space for", "make the heap smaller with --heap, or free some memory"),
    ("No space left on device", "free some space where the data lie, or choose another place with --on"),
    ("could not map anonymous shared memory", "make shared_buffers smaller, or free some memory"),
    ("could not resize shared memory", "make shared_buffers smaller, or free some space in /dev/shm"),
    ("Cannot allocate memory", "make the servers' buffers smaller, or free some memory"),
    ("ddress already in use", "stop what listens there, or choose another port with --port"),
    ("invalid locale", "generate the locale with `dpkg-reconfigure locales`, or set LANG=C.UTF-8"),
    ("Permission denied", "choose a place that the servers' user may enter and write to"),
];

/// What to do next, where the words tell.
fn remedy(words: &str) -> String {
    let known = REMEDIES.iter().find(|(part, _)| words.contains(part));
    known.map_or_else(String::new, |(_, what)| format!("\n{what}"))
}

/// A daemon's or command's own words, set off from ours; nothing if it said nothing.
fn quoted(words: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
    words.lines().fold(":".to_owned(), |text, line| text + "\n    " + line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CEPH;

    #[test]
    fn missing_programs_come_with_the_command_that_installs_them() {
        let error = LabError::MissingPrograms { names: vec!["ceph-mon", "radosgw"], install: CEPH.install };
        assert_eq!(
            error.to_string(),
            "the lab requires ceph-mon, radosgw, which this machine does not have; install with \
             `apt-get install -y ceph-mon ceph-mgr ceph-osd radosgw ceph-common`"
        );
    }

    #[test]
    fn a_dead_daemon_is_named_with_the_end_of_what_it_said() {
        let error = LabError::DaemonEnded {
            daemon: Daemon::Osd(1),
            how: "exit status 1".into(),
            log: "/lab/log/osd.1.log".into(),
            tail: "first\nlast".into(),
        };
        assert_eq!(
            error.to_string(),
            "osd.1 ended while the lab was starting (exit status 1); its log is /lab/log/osd.1.log:\n\
             \x20   first\n    last"
        );
    }

    #[test]
    fn a_server_that_cannot_start_comes_with_a_remedy() {
        let error = LabError::DaemonEnded {
            daemon: Daemon::Postgres(0),
            how: "exit status 1".into(),
            log: "/lab/log/postgres-0.log".into(),
            tail: "FATAL:  could not map anonymous shared memory: Cannot allocate memory".into(),
        };
        assert!(error.to_string().ends_with("\nmake shared_buffers smaller, or free some memory"), "{error}");
    }

    #[test]
    fn a_taken_port_can_be_changed_only_for_the_gateway() {
        let text = |daemon| LabError::PortTaken { daemon, port: 7480 }.to_string();
        assert!(text(Daemon::Gateway(0)).ends_with("stop that, or ask for another port"));
        assert!(text(Daemon::Monitor).ends_with("stop that"));
    }
}
