//! The daemons of labs: their names and command lines, starting them, finding them again, stopping them.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::mem::discriminant;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Serialize, Serializer};

use crate::account::Account;
use crate::command::{Programs, last_lines, undisturbed};
use crate::error::LabError;
use crate::home::Home;
use crate::kubernetes::Place;
use crate::process::Process;
use crate::throttle::Throttle;

/// How long a daemon may take to end after SIGTERM. An OSD whose monitor is gone takes 5 s by itself.
const TERMINATION: Duration = Duration::from_secs(15);
/// How long a database, or the disk below it, may take: it writes all that it has in memory to its disk first, which may be a slow one.
const SHUTDOWN: Duration = Duration::from_secs(180);
/// How long the kernel may take to end a daemon after SIGKILL.
const KILLING: Duration = Duration::from_secs(10);

/// The first gateway's name.
const GATEWAY: &str = "client.rgw.lab";

/// One daemon of a lab. It displays as Ceph's own name for it, such as `osd.0`, or by program and number, such as
/// `postgres-0`; those of Trino by their roles, and those of Kubernetes by program.
///
/// The order is the order in which daemons are started; they are stopped in the reverse order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Daemon {
    /// The monitor, `mon.lab`: keeps the maps of the cluster.
    Monitor,
    /// The manager, `mgr.lab`: gathers statistics.
    Manager,
    /// An object storage daemon, `osd.N`: keeps data.
    Osd(usize),
    /// The metadata server, `mds.lab`: keeps the names of a file system.
    Metadata,
    /// A RADOS gateway: speaks S3 and Swift. The first is `client.rgw.lab`, those after it are `client.rgw.lab-N`.
    Gateway(usize),
    /// The client that mounts the file system, `ceph-fuse`.
    Mount,
    /// The file system that forgets what was not synced when the power is cut, `disk`.
    Disk,
    /// A PostgreSQL server, `postgres-N`.
    Postgres(usize),
    /// A MariaDB server, `mariadb-N`.
    Mariadb(usize),
    /// The process of Trino that clients speak with, `coordinator`.
    Coordinator,
    /// A process of Trino that works for it, `worker-N`, from 1.
    Worker(usize),
    /// The store of Kubernetes' API server, `etcd`.
    Etcd,
    /// Kubernetes' API server, `kube-apiserver`.
    ApiServer,
    /// What makes pods of jobs and binds claims, `kube-controller-manager`.
    ControllerManager,
    /// What gives pods to nodes, `kube-scheduler`.
    Scheduler,
    /// What runs the containers of a node: `containerd` of the first one, `containerd-N` of those after it.
    Containerd(usize),
    /// What runs the pods of a node: `kubelet` of the first one, `kubelet-N` of those after it.
    Kubelet(usize),
    /// What makes volumes for claims, `local-path-provisioner`.
    Volumes,
    /// A program of volumes that have snapshots and grow.
    Csi(Csi),
}

/// A program of the Container Storage Interface. It displays by its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Csi {
    /// What makes volumes of files, `lab-csi-driver`.
    Driver,
    /// What has volumes made for claims, `csi-provisioner`.
    Provisioner,
    /// What says that volumes are attached, `csi-attacher`.
    Attacher,
    /// What has volumes grow, `csi-resizer`.
    Resizer,
    /// What has snapshots made, `csi-snapshotter`.
    Snapshotter,
    /// What binds snapshots as claims are bound to volumes, `snapshot-controller`.
    SnapshotController,
}

impl Csi {
    /// All of them.
    pub(super) const ALL: [Csi; 6] = [
        Csi::Driver,
        Csi::Provisioner,
        Csi::Attacher,
        Csi::Resizer,
        Csi::Snapshotter,
        Csi::SnapshotController,
    ];

    fn program(self) -> &'static str {
        match self {
            Csi::Driver => "lab-csi-driver",
            Csi::Provisioner => "csi-provisioner",
            Csi::Attacher => "csi-attacher",
            Csi::Resizer => "csi-resizer",
            Csi::Snapshotter => "csi-snapshotter",
            Csi::SnapshotController => "snapshot-controller",
        }
    }
}

/// What a daemon runs in or as.
#[derive(Clone, Copy, Debug)]
pub(super) enum Under<'a> {
    /// As we do.
    Us,
    /// In a control group.
    Group(&'a Throttle),
    /// As another user.
    Account(&'a Account),
    /// As part of a node of Kubernetes.
    Node(&'a Place),
}

impl fmt::Display for Daemon {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Daemon::Monitor => formatter.write_str("mon.lab"),
            Daemon::Manager => formatter.write_str("mgr.lab"),
            Daemon::Osd(id) => write!(formatter, "osd.{id}"),
            Daemon::Metadata => formatter.write_str("mds.lab"),
            Daemon::Gateway(0) => formatter.write_str(GATEWAY),
            Daemon::Gateway(number) => write!(formatter, "{GATEWAY}-{number}"),
            Daemon::Mount => formatter.write_str("ceph-fuse"),
            Daemon::Disk => formatter.write_str("disk"),
            Daemon::Postgres(number) => write!(formatter, "postgres-{number}"),
            Daemon::Mariadb(number) => write!(formatter, "mariadb-{number}"),
            Daemon::Coordinator => formatter.write_str("coordinator"),
            Daemon::Worker(number) => write!(formatter, "worker-{number}"),
            Daemon::Etcd
            | Daemon::ApiServer
            | Daemon::ControllerManager
            | Daemon::Scheduler
            | Daemon::Containerd(0)
            | Daemon::Kubelet(0)
            | Daemon::Volumes
            | Daemon::Csi(_) => formatter.write_str(self.program()),
            Daemon::Containerd(number) | Daemon::Kubelet(number) => {
                write!(formatter, "{}-{number}", self.program())
            }
        }
    }
}

impl Serialize for Daemon {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Daemon {
    /// All daemons of a cluster with so many OSDs and gateways, and with a file system or not, in the order of their start.
    pub(super) fn all(osds: usize, gateways: usize, filesystem: bool) -> Vec<Daemon> {
        let mut daemons = vec![Daemon::Monitor, Daemon::Manager];
        daemons.extend((0..osds).map(Daemon::Osd));
        daemons.extend(filesystem.then_some(Daemon::Metadata));
        daemons.extend((0..gateways).map(Daemon::Gateway));
        daemons.extend(filesystem.then_some(Daemon::Mount));
        daemons
    }

    /// The daemons that have a pid file, running or not. It needs no record, so that even a lab whose record
    /// is damaged can be stopped.
    pub(super) fn noted(home: &Home) -> Result<Vec<Daemon>, LabError> {
        let run = home.run();
        let entries = match fs::read_dir(&run) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(LabError::file("read", run)(error)),
        };
        let mut daemons = Vec::new();
        for entry in entries {
            let name = entry.map_err(LabError::file("read", &run))?.file_name();
            daemons.extend(name.to_str().and_then(|name| Daemon::named(name.strip_suffix(".pid")?)));
        }
        Ok(daemons)
    }

    /// The daemon that displays as `name`.
    fn named(name: &str) -> Option<Daemon> {
        match name {
            "mon.lab" => Some(Daemon::Monitor),
            "mgr.lab" => Some(Daemon::Manager),
            "mds.lab" => Some(Daemon::Metadata),
            GATEWAY => Some(Daemon::Gateway(0)),
            "ceph-fuse" => Some(Daemon::Mount),
            "disk" => Some(Daemon::Disk),
            "coordinator" => Some(Daemon::Coordinator),
            "etcd" => Some(Daemon::Etcd),
            "kube-apiserver" => Some(Daemon::ApiServer),
            "kube-controller-manager" => Some(Daemon::ControllerManager),
            "kube-scheduler" => Some(Daemon::Scheduler),
            "containerd" => Some(Daemon::Containerd(0)),
            "kubelet" => Some(Daemon::Kubelet(0)),
            "local-path-provisioner" => Some(Daemon::Volumes),
            _ => {
                let number = |kind: &str| name.strip_prefix(kind)?.parse().ok();
                let osd = number("osd.").map(Daemon::Osd);
                let after = |kind: &str| number(kind).filter(|number| *number > 0);
                let gateway = || after("client.rgw.lab-").map(Daemon::Gateway);
                let containerd = || after("containerd-").map(Daemon::Containerd);
                let kubelet = || after("kubelet-").map(Daemon::Kubelet);
                let postgres = || number("postgres-").map(Daemon::Postgres);
                let mariadb = || number("mariadb-").map(Daemon::Mariadb);
                let worker = || number("worker-").map(Daemon::Worker);
                let csi = || Csi::ALL.into_iter().find(|csi| csi.program() == name).map(Daemon::Csi);
                let others = osd.or_else(gateway).or_else(postgres).or_else(mariadb).or_else(worker);
                others.or_else(containerd).or_else(kubelet).or_else(csi)
            }
        }
    }

    /// The name of the daemon's program, which is also that of its process.
    pub(super) fn program(self) -> &'static str {
        match self {
            Daemon::Monitor => "ceph-mon",
            Daemon::Manager => "ceph-mgr",
            Daemon::Osd(_) => "ceph-osd",
            Daemon::Metadata => "ceph-mds",
            Daemon::Gateway(_) => "radosgw",
            Daemon::Mount => "ceph-fuse",
            Daemon::Disk => "tidemark",
            Daemon::Postgres(_) => "postgres",
            Daemon::Mariadb(_) => "mariadbd",
            Daemon::Coordinator | Daemon::Worker(_) => "java",
            Daemon::Etcd => "etcd",
            Daemon::ApiServer => "kube-apiserver",
            Daemon::ControllerManager => "kube-controller-manager",
            Daemon::Scheduler => "kube-scheduler",
            Daemon::Containerd(_) => "containerd",
            Daemon::Kubelet(_) => "kubelet",
            Daemon::Volumes => "local-path-provisioner",
            Daemon::Csi(csi) => csi.program(),
        }
    }

    /// The signal that asks it to end. To PostgreSQL, SIGTERM would mean to wait for its clients to leave.
    fn ending(self) -> Signal {
        if matches!(self, Daemon::Postgres(_)) { Signal::INT } else { Signal::TERM }
    }

    /// How long it may take to end when it is asked to.
    fn patience(self) -> Duration {
        if matches!(self, Daemon::Disk | Daemon::Postgres(_) | Daemon::Mariadb(_)) {
            SHUTDOWN
        } else {
            TERMINATION
        }
    }

    /// The daemon's whole command line after the program. It names the lab's directory, so no two labs share
    /// one.
    fn arguments(self, home: &Home) -> Vec<OsString> {
        let joined = |option: &str, path: PathBuf| {
            let mut word = OsString::from(option);
            word.push(path);
            word
        };
        let (option, name) = match self {
            Daemon::Monitor | Daemon::Manager | Daemon::Metadata => ("-i", "lab".to_owned()),
            Daemon::Osd(id) => ("-i", id.to_string()),
            Daemon::Gateway(_) => ("-n", self.to_string()),
            Daemon::Mount => ("-n", "client.admin".to_owned()),
            Daemon::Disk => return vec!["lab".into(), "disk".into(), home.dir().into()],
            Daemon::Postgres(number) => {
                let conf = joined("config_file=", home.server_conf(self));
                return vec!["-D".into(), home.data(number).into(), "-c".into(), conf];
            }
            Daemon::Mariadb(_) => return vec![joined("--defaults-file=", home.server_conf(self))],
            // All arguments are in the file.
            Daemon::Coordinator | Daemon::Worker(_) => return vec![joined("@", home.server_conf(self))],
            Daemon::Etcd => return vec!["--config-file".into(), home.server_conf(self).into()],
            Daemon::Containerd(_) => return vec!["--config".into(), home.server_conf(self).into()],
            // They read none from a file, so we do. Without the file, none of their processes is known as ours.
            Daemon::ApiServer
            | Daemon::ControllerManager
            | Daemon::Scheduler
            | Daemon::Kubelet(_)
            | Daemon::Volumes
            | Daemon::Csi(_) => {
                let arguments = fs::read_to_string(home.server_conf(self)).unwrap_or_default();
                return arguments.lines().map(Into::into).collect();
            }
        };
        // -f: in the foreground, so that the process spawned is the daemon itself and its number is known.
        let mut words = vec!["-c".into(), home.ceph_conf().into(), option.into(), name.into(), "-f".into()];
        words.extend((self == Daemon::Mount).then(|| home.mount().into()));
        words
    }

    /// The daemon's process, if it runs: the one in the pid file, if that is still ours.
    pub(super) fn find(self, home: &Home) -> Result<Option<Process>, LabError> {
        let path = home.pid_file(self);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LabError::file("read", path)(error)),
        };
        // A damaged pid file counts as missing.
        let Ok(pid) = text.trim().parse() else { return Ok(None) };
        Process::find(pid, self.program(), &self.arguments(home))
            .map_err(LabError::file("look up the process of", path))
    }

    /// Starts the daemon, which must not be running, and notes its process in the pid file. It is in its group, if
    /// any, before it opens its devices.
    pub(super) fn spawn(
        self,
        home: &Home,
        programs: &Programs,
        under: Under<'_>,
    ) -> Result<Process, LabError> {
        let program = programs.path(self.program())?;
        self.set_log_aside(home)?;
        let path = home.errors(self);
        let errors = File::create(&path).map_err(LabError::file("create", &path))?;
        let output = errors.try_clone().map_err(LabError::file("open", &path))?;
        // A process group of its own: Ctrl-C in our terminal is not meant for the daemons.
        let mut command = match under {
            Under::Group(group) => joining(group, &program),
            Under::Node(place) => place.entering(programs, &program)?,
            Under::Us | Under::Account(_) => Command::new(&program),
        };
        if let Under::Account(account) = under {
            account.become_in(&mut command);
        }
        let child = undisturbed(command.args(self.arguments(home)))
            .process_group(0)
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(LabError::file("run", &program))?;
        let process = Process::of_child(&child).map_err(LabError::file("watch", &program))?;
        let path = home.pid_file(self);
        if let Err(error) = fs::write(&path, format!("{}\n", process.pid())) {
            // Without the number on disk, no later command could stop it.
            let _ = process.signal(Signal::KILL).and_then(|()| process.ended_within(KILLING));
            process.reap();
            return Err(LabError::file("write", path)(error));
        }
        Ok(process)
    }

    /// Keeps one earlier log, so that logs do not grow without limit and the current one covers only the current
    /// start.
    fn set_log_aside(self, home: &Home) -> Result<(), LabError> {
        let log = home.log(self);
        match fs::rename(&log, log.with_extension("log.1")) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(LabError::file("rename", log)(error)),
            _ => Ok(()),
        }
    }

    /// The last lines of the daemon's error stream, or else of its log.
    pub(super) fn last_words(self, home: &Home) -> String {
        let end = |path| File::open(path).map_or_else(|_| String::new(), |mut file| last_lines(&mut file));
        let errors = end(home.errors(self));
        if errors.is_empty() { end(home.log(self)) } else { errors }
    }
}

/// A command that first joins a group, then becomes the program: what it opens, it opens as a member.
fn joining(group: &Throttle, program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", r#"echo $$ >"$0" && exec "$@""#]).arg(group.members()).arg(program);
    command
}

/// Stops those of the daemons that run, clients before servers: databases before the file systems below them, the
/// gateways together, the OSDs together, the manager, the monitor. A daemon that is asked to end and does not is killed.
pub(super) fn stop(home: &Home, daemons: &[Daemon], progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let mut daemons = daemons.to_vec();
    daemons.sort_unstable();
    let mut kinds = daemons.chunk_by(|one, next| discriminant(one) == discriminant(next)).rev();
    kinds.try_for_each(|group| stop_together(home, group, progress))
}

fn stop_together(home: &Home, daemons: &[Daemon], progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let mut running = Vec::new();
    for daemon in daemons {
        match daemon.find(home)? {
            Some(process) => running.push((*daemon, process)),
            None => forget(home, *daemon)?,
        }
    }
    let failed = |daemon: Daemon| LabError::file("signal the process of", home.pid_file(daemon));
    for (daemon, process) in &running {
        progress(&format!("stopping {daemon}"));
        process.signal(daemon.ending()).map_err(failed(*daemon))?;
        // A paused process does not see the signal until it is continued.
        process.signal(Signal::CONT).map_err(failed(*daemon))?;
    }
    let begun = Instant::now();
    for (daemon, process) in running {
        let left = daemon.patience().saturating_sub(begun.elapsed());
        if !process.ended_within(left).map_err(failed(daemon))? {
            progress(&format!("{daemon} did not end within {} s: killing it", daemon.patience().as_secs()));
            process.signal(Signal::KILL).map_err(failed(daemon))?;
            if !process.ended_within(KILLING).map_err(failed(daemon))? {
                return Err(LabError::WouldNotEnd { daemon, pid: process.pid() });
            }
        }
        process.reap();
        forget(home, daemon)?;
    }
    Ok(())
}

/// Removes the pid file of a daemon that does not run.
fn forget(home: &Home, daemon: Daemon) -> Result<(), LabError> {
    let path = home.pid_file(daemon);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(LabError::file("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::script;

    /// A home whose daemons are scripts of the text given.
    fn lab(text: &str) -> (tempfile::TempDir, Home, Programs) {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::prepare(&directory.path().join("lab")).unwrap();
        home.lay_out().unwrap();
        for name in ["ceph-mon", "ceph-mgr", "ceph-osd", "radosgw"] {
            script(&directory.path().join(name), text);
        }
        let programs = Programs::new(directory.path().as_os_str().to_owned());
        (directory, home, programs)
    }

    #[test]
    fn daemons_have_the_names_that_ceph_gives_them() {
        let mut all = Daemon::all(2, 2, true);
        let names: Vec<_> = all.iter().map(ToString::to_string).collect();
        let gateways = ["client.rgw.lab", "client.rgw.lab-1"];
        let others = ["mon.lab", "mgr.lab", "osd.0", "osd.1", "mds.lab"];
        let expected: Vec<_> = others.into_iter().chain(gateways).chain(["ceph-fuse"]).collect();
        assert_eq!(names, expected);
        all.extend([Daemon::Disk, Daemon::Postgres(10), Daemon::Mariadb(0)]);
        all.extend([Daemon::Coordinator, Daemon::Worker(1), Daemon::Etcd, Daemon::ApiServer]);
        all.extend([
            Daemon::ControllerManager,
            Daemon::Scheduler,
            Daemon::Containerd(0),
            Daemon::Containerd(2),
        ]);
        all.extend([Daemon::Kubelet(0), Daemon::Kubelet(2)]);
        all.push(Daemon::Volumes);
        all.extend(Csi::ALL.map(Daemon::Csi));
        assert!(all.iter().all(|daemon| Daemon::named(&daemon.to_string()) == Some(*daemon)));
        assert!(all.is_sorted(), "what needs another comes after it");
    }

    #[test]
    fn a_foreign_process_in_the_pid_file_is_never_signalled() {
        let (_directory, home, _) = lab("");
        let mut foreign = Command::new("sleep").arg("60").spawn().unwrap();
        fs::write(home.pid_file(Daemon::Gateway(0)), foreign.id().to_string()).unwrap();
        assert!(Daemon::Gateway(0).find(&home).unwrap().is_none());
        stop(&home, &Daemon::all(1, 1, false), &mut |text| panic!("{text}")).unwrap();
        assert!(foreign.try_wait().unwrap().is_none(), "it still runs");
        assert!(!home.pid_file(Daemon::Gateway(0)).exists(), "the stale pid file is gone");
        foreign.kill().unwrap();
        foreign.wait().unwrap();
    }

    #[test]
    fn daemons_are_known_by_their_pid_files() {
        let (_directory, home, _) = lab("");
        for name in [
            "osd.11.pid",
            "mon.lab.pid",
            "client.rgw.lab-12.pid",
            "client.rgw.lab-0.pid",
            "mon.lab.asok",
            "osd.x.pid",
            "pid",
        ] {
            fs::write(home.run().join(name), "1").unwrap();
        }
        let mut noted = Daemon::noted(&home).unwrap();
        noted.sort();
        assert_eq!(noted, [Daemon::Monitor, Daemon::Osd(11), Daemon::Gateway(12)]);
        home.clear_system().unwrap();
        assert_eq!(Daemon::noted(&home).unwrap(), []);
    }

    #[test]
    fn a_damaged_pid_file_counts_as_missing() {
        let (_directory, home, _) = lab("");
        for text in ["", "x", "-1", "0", "99999999999999"] {
            fs::write(home.pid_file(Daemon::Monitor), text).unwrap();
            assert!(Daemon::Monitor.find(&home).unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn a_daemon_that_dies_leaves_its_last_lines_and_no_zombie() {
        let (_directory, home, programs) = lab("#!/no/such/interpreter\n");
        assert!(matches!(Daemon::Monitor.spawn(&home, &programs, Under::Us), Err(LabError::File { .. })));
        let (_directory, home, programs) = lab("#!/bin/sh\necho 'no room' >&2\nexit 7\n");
        let process = Daemon::Osd(0).spawn(&home, &programs, Under::Us).unwrap();
        assert!(process.ended_within(Duration::from_secs(10)).unwrap());
        assert_eq!(process.reap(), "exit status 7");
        assert_eq!(Daemon::Osd(0).last_words(&home), "no room");
        assert!(Daemon::Osd(0).find(&home).unwrap().is_none());
    }

    #[test]
    fn each_start_begins_a_new_log_and_keeps_one_old() {
        let (_directory, home, programs) = lab("#!/bin/sh\n");
        fs::write(home.log(Daemon::Manager), "of old").unwrap();
        let process = Daemon::Manager.spawn(&home, &programs, Under::Us).unwrap();
        assert!(process.ended_within(Duration::from_secs(10)).unwrap());
        process.reap();
        assert!(!home.log(Daemon::Manager).exists());
        assert_eq!(fs::read_to_string(home.dir().join("log/mgr.lab.log.1")).unwrap(), "of old");
    }
}
