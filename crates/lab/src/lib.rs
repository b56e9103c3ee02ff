//! A lab: real systems on this machine, for measuring and for tests: a Ceph cluster, database servers
//! ([`Databases`]), a Trino cluster ([`Trino`]), or Kubernetes ([`Kubernetes`]), with [`image`]s made of this machine's files.
//!
//! [`up`] starts one monitor, one manager, three OSDs (BlueStore on sparse files) and one RADOS gateway or several for S3
//! and Swift, from the distribution's packages (Ceph 16.2), in one private directory. Every object has two
//! copies on different OSDs, so a write takes the replicated path of a large cluster. All daemons listen on
//! 127.0.0.1 only. [`status`] reports their state and [`down`] stops them. The lab needs no root, no systemd
//! and no LVM.
//!
//! In every [`Layout`] but the plain one, the OSDs have slow and fast devices instead of files, so that
//! layouts with known differences can be compared:
//!
//! - *baseline*: everything of BlueStore on slow devices. A slow device is a loop device on a sparse file,
//!   with direct I/O, and a control group limits the OSDs' operations and bytes per second on it.
//! - *reference-1*: data on slow devices; `block.db` and `block.wal` on fast ones, loop devices in memory.
//! - *reference-2*: as reference-1, and a cache tier of Ceph on two more OSDs in memory in front of RBD's
//!   pool and of the gateway's data: it stands for a block cache such as Open-CAS.
//!
//! These need root. [`Lab::labels`] says what is emulated. [`down`] leaves no loop device, no control group and
//! no file in memory behind, unless data are to be kept: then the files in memory stay until the machine
//! restarts.
//!
//! A cluster can have a file system ([`LabOptions::filesystem`]), on which databases can lie. Databases can also lie on a
//! disk that loses what was not synced when its power is cut ([`Databases::cut_power`], [`tidemark_powercut`]).
//!
//! [`queries`] fetches the texts of TPC-DS for decision support.
//!
//! The lab refuses to touch a directory that has files but no lab, and to signal a process that is not one of
//! its own daemons (it checks pid files against command lines).

mod account;
mod cluster;
mod command;
mod config;
mod daemon;
mod database;
mod error;
mod filesystem;
mod gateway;
mod home;
pub mod image;
mod kubernetes;
mod labels;
mod layout;
mod loops;
pub mod maven;
mod media;
mod mounts;
mod options;
mod ports;
mod process;
mod provisioner;
pub mod queries;
mod record;
mod start;
mod system;
mod throttle;
mod tier;
mod trino;
mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tidemark_measure::in_effect::InEffect;

use cluster::Cluster;
use command::Programs;
use home::Home;
use media::Contents;
use options::{adapt, new_shape};
use provisioner::VARIABLES;
use record::Record;
use throttle::Throttle;

pub use cluster::Health;
pub use daemon::{Csi, Daemon};
pub use database::{Database, DatabaseOptions, Databases, DatabasesStatus, postgres_image};
pub use error::LabError;
pub use kubernetes::{Answer, Kubernetes, KubernetesOptions, KubernetesStatus};
pub use layout::{Layout, UnknownLayout};
pub use media::LabDevice;
pub use options::LabOptions;
pub use provisioner::Labs;
pub use record::Credentials;
pub use system::{System, UnknownSystem};
pub use trino::{Bucket, Keys, Storage, Trino, TrinoOptions, TrinoStatus, trino_image};

/// Free space needed to create a lab, in bytes; a new lab takes a tenth of it.
const FREE_BYTES: u64 = 1 << 30;

/// A completely created lab, running or not.
#[derive(Clone, Debug)]
pub struct Lab {
    cluster: Cluster,
    credentials: Credentials,
}

/// The state of a lab.
#[derive(Clone, Debug, Serialize)]
pub struct LabStatus {
    /// The lab's directory.
    pub dir: PathBuf,
    /// Whether the lab was created completely. If not, [`up`] creates it again.
    pub complete: bool,
    /// The layout of the storage.
    pub layout: Layout,
    /// The parts of the lab; see [`Lab::labels`].
    pub labels: Vec<(String, String)>,
    /// All daemons of the lab.
    pub daemons: Vec<DaemonStatus>,
    /// Ceph's own report of its health; `None` if the monitor is down or does not answer within 10 s.
    pub health: Option<Health>,
    /// The gateways, which serve the same buckets.
    pub gateways: Vec<GatewayStatus>,
    /// The first gateway's S3 endpoint.
    pub endpoint: String,
    /// Where Swift clients (TempAuth, v1) sign in at the first gateway.
    pub swift_auth_url: String,
    /// The file with the endpoint and all keys, `lab.json`, which only its owner can read.
    pub credentials_file: PathBuf,
}

impl LabStatus {
    /// Whether every daemon runs and all gateways answer.
    pub fn is_up(&self) -> bool {
        let runs = |daemon: &DaemonStatus| daemon.state == DaemonState::Running;
        let answers = |gateway: &GatewayStatus| gateway.answers;
        self.complete && self.gateways.iter().all(answers) && self.daemons.iter().all(runs)
    }

    /// Whether no daemon runs.
    pub fn is_down(&self) -> bool {
        self.daemons.iter().all(|daemon| daemon.state == DaemonState::Stopped)
    }
}

/// The state of one daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DaemonStatus {
    /// The daemon.
    pub daemon: Daemon,
    /// Its process, if it is running or paused.
    pub pid: Option<u32>,
    /// Its state.
    pub state: DaemonState,
}

/// The state of one gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayStatus {
    /// The gateway.
    pub daemon: Daemon,
    /// Its S3 endpoint.
    pub endpoint: String,
    /// Whether it answers.
    pub answers: bool,
}

/// Whether a daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonState {
    /// It runs.
    Running,
    /// Its process is there but paused, as by SIGSTOP.
    Paused,
    /// It has no process.
    Stopped,
}

/// The default directory of a lab: `TIDEMARK_LAB_DIR`, or else `tidemark/lab` in `XDG_STATE_HOME`,
/// which is `~/.local/state` if unset.
///
/// # Errors
/// [`LabError::NoDirectory`] if the environment names none of these.
pub fn default_dir() -> Result<PathBuf, LabError> {
    home::usual_directory(rustix::process::geteuid().is_root(), |name| std::env::var_os(name))
}

/// The usual directory of the lab of a system: that of a cluster is [`default_dir`], the others are beside it.
///
/// # Errors
/// As [`default_dir`].
pub fn usual_dir(system: System) -> Result<PathBuf, LabError> {
    match system {
        System::Ceph => default_dir(),
        other => beside(other.name()),
    }
}

/// The directory beside the usual one that has this in its name.
///
/// # Errors
/// As [`default_dir`].
pub fn beside(what: &str) -> Result<PathBuf, LabError> {
    let usual = default_dir()?;
    let mut name = usual.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{what}"));
    Ok(usual.with_file_name(name))
}

/// Brings a lab up: creates it if there is none, otherwise starts the daemons that are stopped and resumes those
/// that are paused. It returns when every placement group takes reads and writes and all gateways answer. A lab
/// that is already up is returned as it is. A cluster that serves but is not fully healthy 20 s later is reported
/// through `progress` and is not an error. On two idle cores, creating takes about 10 s, or 15 to 25 s with slow
/// devices; starting again takes about 6 s, and up to 20 s after the crash of an OSD.
///
/// `progress` gets a line as each step begins.
///
/// # Errors
/// Missing programs, unsuitable options, directories and ports, and daemons that exit or do not become ready.
/// After an error nothing that this call started is still running, and the logs are in `log` below the
/// directory. The next call creates a lab again whose creation failed.
pub fn up(options: &LabOptions, progress: &mut dyn FnMut(&str)) -> Result<Lab, LabError> {
    options.check()?;
    let programs = programs(options.program_path.as_ref());
    programs.check(&command::CEPH)?;
    if options.filesystem {
        programs.check(&command::CEPH_FILESYSTEM)?;
    }
    media::check(options.layout.unwrap_or_default(), &programs)?;
    let home = Home::prepare(&options.dir)?;
    let _lock = home.lock()?;
    match Record::load(&home)? {
        Some(Record { shape, credentials: Some(credentials) }) => {
            let shape = adapt(&home, shape, options)?;
            media::check(shape.layout(), &programs)?;
            Record { shape: shape.clone(), credentials: Some(credentials.clone()) }.save(&home)?;
            let cluster = Cluster { home, shape, programs };
            start::resume(&cluster, progress)?;
            Ok(Lab { cluster, credentials })
        }
        unfinished_or_none => {
            if unfinished_or_none.is_some() {
                progress("removing an unfinished lab");
                daemon::stop(&home, &Daemon::noted(&home)?, progress)?;
                mounts::release(&home, &programs)?;
                media::release(&home, &programs, Contents::Discard)?;
                home.clear_system()?;
            }
            home::check_space(home.dir(), FREE_BYTES)?;
            let shape = new_shape(&home, options)?;
            let mut record = Record { shape: shape.clone(), credentials: None };
            record.save(&home)?;
            let cluster = Cluster { home, shape, programs };
            let credentials = start::create(&cluster, progress)?;
            record.credentials = Some(credentials.clone());
            record.save(&cluster.home)?;
            Ok(Lab { cluster, credentials })
        }
    }
}

/// The state of the lab in a directory. It changes nothing, and asks Ceph only if the monitor is running.
///
/// # Errors
/// [`LabError::NoLab`], and files that cannot be read. Stopped daemons are not an error.
pub fn status(dir: &Path) -> Result<LabStatus, LabError> {
    let (home, record) = find(dir)?;
    let shape = record.shape;
    let mut daemons = Vec::new();
    for daemon in shape.daemons() {
        daemons.push(state_of(&home, daemon)?);
    }
    let runs =
        |wanted| daemons.iter().any(|found| found.daemon == wanted && found.state == DaemonState::Running);
    let gateways = shape.gateways().map(|(daemon, port)| GatewayStatus {
        daemon,
        endpoint: record::endpoint(port),
        answers: runs(daemon) && gateway::answers(port),
    });
    let gateways = gateways.collect();
    let has_monitor = runs(Daemon::Monitor);
    let cluster = Cluster { home, shape, programs: Programs::installed() };
    let health = has_monitor.then(|| cluster.health().ok()).flatten();
    Ok(LabStatus {
        complete: record.credentials.is_some(),
        layout: cluster.shape.layout(),
        labels: labels::labels(&cluster.shape),
        daemons,
        health,
        gateways,
        endpoint: cluster.shape.endpoint(),
        swift_auth_url: cluster.shape.swift_auth_url(),
        credentials_file: cluster.home.record(),
        dir: cluster.home.dir().to_owned(),
    })
}

/// Stops the lab in a directory; with `purge` it also removes everything that the lab wrote, data and keys
/// included. A directory without a running lab is not an error.
///
/// `progress` gets a line as each step begins.
///
/// # Errors
/// [`LabError::Busy`], a daemon that survives SIGKILL, and files that cannot be removed.
pub fn down(dir: &Path, purge: bool, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let home = match Home::find(dir) {
        Err(LabError::NoLab { dir }) => {
            progress(&format!("there is no lab in {}", dir.display()));
            return Ok(());
        }
        found => found?,
    };
    let _lock = home.lock()?;
    daemon::stop(&home, &Daemon::noted(&home)?, progress)?;
    let contents = if purge { Contents::Discard } else { Contents::Keep };
    kubernetes::release(&home, &Programs::installed())?;
    mounts::release(&home, &Programs::installed())?;
    media::release(&home, &Programs::installed(), contents)?;
    if purge {
        progress(&format!("removing {}", home.dir().display()));
        home.purge()?;
    }
    Ok(())
}

impl Lab {
    /// The lab in a directory, running or not.
    ///
    /// # Errors
    /// [`LabError::NoLab`], [`LabError::Unfinished`] and [`LabError::BadRecord`].
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let (home, Record { shape, credentials }) = find(dir)?;
        let credentials = credentials.ok_or_else(|| LabError::Unfinished { dir: home.dir().to_owned() })?;
        let cluster = Cluster { home, shape, programs: Programs::installed() };
        Ok(Self { cluster, credentials })
    }

    /// The lab's directory, absolute and without symbolic links.
    pub fn dir(&self) -> &Path {
        self.cluster.home.dir()
    }

    /// The first gateway's S3 endpoint, such as `http://127.0.0.1:27480`.
    pub fn endpoint(&self) -> String {
        self.cluster.shape.endpoint()
    }

    /// The S3 endpoints of all gateways, that of the first one first. They serve the same buckets.
    pub fn endpoints(&self) -> Vec<String> {
        self.cluster.shape.endpoints()
    }

    /// Where Swift clients (TempAuth, v1) sign in, such as `http://127.0.0.1:27480/auth/v1.0`.
    pub fn swift_auth_url(&self) -> String {
        self.cluster.shape.swift_auth_url()
    }

    /// The credentials of its clients.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// A bucket of the gateway, there or not, for what keeps its data in one.
    pub fn storage(&self, bucket: impl Into<String>) -> Storage {
        Storage {
            bucket: Bucket { s3: self.endpoint(), region: "us-east-1".into(), bucket: bucket.into() },
            keys: Keys {
                access_key: self.credentials.access_key.clone(),
                secret_key: self.credentials.secret_key.clone(),
            },
        }
    }

    /// The lab's ceph.conf, which names the keyring: what a client of RADOS or RBD needs, as `client.admin`.
    pub fn ceph_conf(&self) -> PathBuf {
        self.cluster.home.ceph_conf()
    }

    /// Where the cluster's file system is mounted, if it has one.
    pub fn filesystem(&self) -> Option<PathBuf> {
        self.cluster.shape.filesystem.then(|| self.cluster.home.mount())
    }

    /// Whether the cluster is what such options would create.
    pub(crate) fn is_as(&self, options: &LabOptions) -> bool {
        let shape = &self.cluster.shape;
        shape.layout() == options.layout.unwrap_or_default()
            && shape.filesystem == options.filesystem
            && shape.copies() == options.copies.unwrap_or(2).min(shape.osds)
            && shape.gateway_ports.len() == options.gateways.unwrap_or(1)
    }

    /// The layout of the storage.
    pub fn layout(&self) -> Layout {
        self.cluster.shape.layout()
    }

    /// The parts of the lab, in words for a report: layout, data, metadata and WAL, cache, copies. They say what
    /// is limited and what is emulated.
    pub fn labels(&self) -> Vec<(String, String)> {
        labels::labels(&self.cluster.shape)
    }

    /// Shell variables with the lab's addresses and keys, as `tidemark lab env` prints them. No value contains
    /// quotes or spaces.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let keys = &self.credentials;
        let values = [
            keys.access_key.clone(),
            keys.secret_key.clone(),
            self.endpoint(),
            self.swift_auth_url(),
            keys.swift_user.clone(),
            keys.swift_key.clone(),
            self.ceph_conf().display().to_string(),
            self.endpoints().join(","),
        ];
        VARIABLES.map(|(name, _)| name).into_iter().zip(values).collect()
    }

    /// The directory of the daemons' administration sockets, one each: `ceph-osd.0.asok`,
    /// `ceph-mon.lab.asok`, `ceph-mgr.lab.asok`, `ceph-client.rgw.lab.asok`, `ceph-client.rgw.lab-1.asok`. Sockets of
    /// stopped daemons may remain there.
    pub fn admin_sockets(&self) -> PathBuf {
        self.cluster.home.run()
    }

    /// The names of the lab's processes. Other labs on the machine have processes of the same names: those of
    /// this lab have [`Lab::ceph_conf`] as the word after `-c` on their command lines, and [`Lab::pid`] tells
    /// their numbers.
    pub fn process_names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.daemons().into_iter().map(Daemon::program).collect();
        names.dedup();
        names
    }

    /// The control group that limits the slow devices of the lab, which its OSDs run in; none in a plain
    /// layout.
    pub fn control_group(&self) -> Option<PathBuf> {
        let throttle = Throttle::named(self.cluster.home.mark())?;
        self.cluster.shape.media.as_ref().map(|_| throttle.dir())
    }

    /// The devices that the OSDs have at this moment: the OSD, the part (`block`, `block.db` or `block.wal`),
    /// the device, such as `/dev/loop3`, and whether it is a slow one. None in a plain layout.
    pub fn devices(&self) -> Vec<LabDevice> {
        media::present(&self.cluster)
    }

    /// The log of a daemon. The log of its previous start has the same name and `.1`.
    pub fn log(&self, daemon: Daemon) -> PathBuf {
        self.cluster.home.log(daemon)
    }

    /// Every daemon that the lab has, in the order of their start.
    pub fn daemons(&self) -> Vec<Daemon> {
        self.cluster.shape.daemons()
    }

    /// The process of a daemon, if it runs or is paused.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn pid(&self, daemon: Daemon) -> Result<Option<u32>, LabError> {
        Ok(daemon.find(&self.cluster.home)?.map(|process| process.pid()))
    }

    /// The state of the lab; see [`status`].
    ///
    /// # Errors
    /// As [`status`].
    pub fn status(&self) -> Result<LabStatus, LabError> {
        status(self.dir())
    }

    /// Runs `ceph` on the lab, as its administrator, for 60 s at most, and returns what it wrote to its
    /// output.
    ///
    /// # Errors
    /// A missing program, and a command that fails or does not end.
    pub fn ceph(&self, arguments: &[&str]) -> Result<String, LabError> {
        self.cluster.ceph(arguments)
    }

    /// The configuration that the cluster's monitor has, and the parameters of its pools.
    ///
    /// # Errors
    /// A cluster that does not answer.
    pub fn in_effect(&self) -> Result<InEffect, LabError> {
        self.cluster.in_effect()
    }

    /// Why the cluster is not well, if it is not, and whether data are at risk.
    pub(crate) fn ill(&self) -> Option<(String, bool)> {
        self.cluster.ill()
    }

    /// Runs `radosgw-admin` on the lab, as its administrator, for 60 s at most, and returns what it wrote to
    /// its output. The usage log (`usage show`) lags the gateway's operations by up to 2 s.
    ///
    /// # Errors
    /// A missing program, and a command that fails or does not end.
    pub fn radosgw_admin(&self, arguments: &[&str]) -> Result<String, LabError> {
        self.cluster.radosgw_admin(arguments)
    }

    /// Restarts the gateway of this number, whatever it is doing, and waits until it answers.
    ///
    /// # Errors
    /// [`LabError::Busy`], and a gateway that does not start; it is then left stopped.
    pub fn restart_gateway(&self, number: usize, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let _lock = self.cluster.home.lock()?;
        let gateway = Daemon::Gateway(number);
        daemon::stop(&self.cluster.home, &[gateway], progress)?;
        start::start_gateway(&self.cluster, gateway, progress)
    }
}

/// The programs in the directories given, in the form of the variable PATH, or else those that are installed.
fn programs(search: Option<&OsString>) -> Programs {
    search.map_or_else(Programs::installed, |search| Programs::new(search.clone()))
}

/// The state of a daemon of a lab.
fn state_of(home: &Home, daemon: Daemon) -> Result<DaemonStatus, LabError> {
    let process = daemon.find(home)?;
    let state = match &process {
        None => DaemonState::Stopped,
        Some(process) if process.is_paused() => DaemonState::Paused,
        Some(_) => DaemonState::Running,
    };
    Ok(DaemonStatus { daemon, pid: process.map(|process| process.pid()), state })
}

/// Serves the disk of a lab whose power can be cut, until it is over or the kernel has unmounted it; then nothing is
/// lost. To kill the process that does this is to cut the power.
///
/// # Errors
/// [`LabError::NoLab`], a disk that cannot be mounted, and one that cannot be written to.
pub fn serve_disk(dir: &Path, is_over: &dyn Fn() -> bool) -> Result<(), LabError> {
    let home = Home::find(dir)?;
    let disk = tidemark_powercut::Mounted::new(&home.store(), &home.disk())
        .map_err(LabError::file("mount", home.disk()))?;
    while !is_over() && !disk.has_ended() {
        std::thread::sleep(watch::PAUSE);
    }
    disk.unmount().map_err(LabError::file("unmount", home.disk()))
}

/// The system that the lab in a directory runs.
///
/// # Errors
/// [`LabError::NoLab`] and [`LabError::BadRecord`].
pub fn system(dir: &Path) -> Result<System, LabError> {
    let home = Home::find(dir)?;
    record::system(&home)?.ok_or_else(|| LabError::NoLab { dir: dir.to_owned() })
}

fn find(dir: &Path) -> Result<(Home, Record), LabError> {
    let home = Home::find(dir)?;
    let record = Record::load(&home)?.ok_or_else(|| LabError::NoLab { dir: dir.to_owned() })?;
    Ok((home, record))
}

#[cfg(test)]
mod tests;
