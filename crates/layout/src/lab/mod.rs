//! A lab: a real Ceph cluster on this machine, for measuring and for tests.
//!
//! [`up`] makes one monitor, one manager, three OSDs (BlueStore on sparse files) and one RADOS gateway that
//! speaks S3 and Swift, from the distribution's packages (Ceph 16.2), in one private directory. Every object
//! is kept twice, on different OSDs, so a write takes the replicated path of a large cluster. All daemons
//! listen on 127.0.0.1 only. [`status`] tells how they are and [`down`] stops them. No root is needed, no
//! systemd, no LVM.
//!
//! What is refused: to touch a directory that has files but no lab, and to signal a process that is not a
//! daemon of this very lab (its pid file is checked against the process's command line).
//!
//! ```no_run
//! use tidemark_layout::lab;
//!
//! let mut say = |text: &str| eprintln!("{text}");
//! let lab = lab::up(&lab::LabOptions::new(lab::default_dir()?), &mut say)?;
//! println!("S3 at {} for {}", lab.endpoint(), lab.credentials().access_key);
//! println!("{}", lab.radosgw_admin(&["usage", "show", "--uid", &lab.credentials().user])?);
//! lab::down(lab.dir(), false, &mut say)?;
//! # Ok::<(), lab::LabError>(())
//! ```

mod cluster;
mod command;
mod config;
mod daemon;
mod error;
mod gateway;
mod home;
mod ports;
mod process;
mod record;
mod start;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use cluster::Cluster;
use command::Programs;
use home::Home;
use record::{Record, Shape};

pub use cluster::Health;
pub use daemon::Daemon;
pub use error::LabError;
pub use record::Credentials;

/// How many OSDs a lab has unless asked otherwise.
const USUAL_OSDS: usize = 3;
/// The size of each OSD's store unless asked otherwise, in bytes. Its file is sparse: it takes what is
/// written.
const USUAL_OSD_BYTES: u64 = 10 << 30;
/// The smallest store of an OSD, in bytes: BlueStore takes some 300 MB for itself.
const LEAST_OSD_BYTES: u64 = 1 << 30;
/// The most OSDs that the keys, ports and memory of one machine are meant for.
const MOST_OSDS: usize = 16;
/// What must be free to create a lab, in bytes: a new one takes a tenth of it.
const FREE_BYTES: u64 = 1 << 30;

/// What lab is wanted. What is `None` is as the existing lab has it, or as usual in a new one.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The lab's directory, made if it is missing; [`default_dir`] tells the usual one.
    pub dir: PathBuf,
    /// How many OSDs: 1 to 16, usually 3. With one, objects are kept once instead of twice.
    pub osds: Option<usize>,
    /// The size of each OSD's store in bytes: at least 1 GiB, usually 10 GiB. Disk is taken as data is
    /// written.
    pub osd_bytes: Option<u64>,
    /// The gateway's port on 127.0.0.1; usually a free one is chosen, and kept.
    pub gateway_port: Option<u16>,
    /// Where programs are looked for, in the form of the variable PATH, which it replaces.
    pub program_path: Option<OsString>,
}

impl LabOptions {
    /// The usual lab, in the directory given.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), osds: None, osd_bytes: None, gateway_port: None, program_path: None }
    }

    fn check(&self) -> Result<(), LabError> {
        let bad = |option, value, allowed| Err(LabError::BadOption { option, value, allowed });
        match *self {
            Self { osds: Some(osds), .. } if !(1..=MOST_OSDS).contains(&osds) => {
                bad("the number of OSDs", osds as u64, "from 1 to 16")
            }
            Self { osd_bytes: Some(bytes), .. } if bytes < LEAST_OSD_BYTES => {
                bad("the size of an OSD in bytes", bytes, "at least 1 GiB (1073741824)")
            }
            Self { gateway_port: Some(0), .. } => bad("the gateway's port", 0, "from 1 to 65535"),
            _ => Ok(()),
        }
    }
}

/// A lab that was created to its end. It may be running or not.
#[derive(Clone, Debug)]
pub struct Lab {
    cluster: Cluster,
    credentials: Credentials,
}

/// How a lab is at this moment.
#[derive(Clone, Debug, Serialize)]
pub struct LabStatus {
    /// The lab's directory.
    pub dir: PathBuf,
    /// Whether the lab was created to its end. If not, [`up`] starts it anew.
    pub complete: bool,
    /// Every daemon that the lab has.
    pub daemons: Vec<DaemonStatus>,
    /// What Ceph says of its health; none if the monitor does not run or does not answer within 10 s.
    pub health: Option<Health>,
    /// The gateway's S3 endpoint.
    pub endpoint: String,
    /// Where Swift clients (TempAuth, v1) sign in.
    pub swift_auth_url: String,
    /// Whether the gateway answers.
    pub gateway_answers: bool,
    /// The file with the endpoint and all keys, `lab.json`, which only its owner can read.
    pub credentials_file: PathBuf,
}

impl LabStatus {
    /// Whether every daemon runs and the gateway answers.
    pub fn is_up(&self) -> bool {
        let runs = |daemon: &DaemonStatus| daemon.state == DaemonState::Running;
        self.complete && self.gateway_answers && self.daemons.iter().all(runs)
    }

    /// Whether no daemon runs.
    pub fn is_down(&self) -> bool {
        self.daemons.iter().all(|daemon| daemon.state == DaemonState::Stopped)
    }
}

/// How one daemon is at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DaemonStatus {
    /// The daemon.
    pub daemon: Daemon,
    /// Its process, if it runs or is paused.
    pub pid: Option<u32>,
    /// What it does.
    pub state: DaemonState,
}

/// What a daemon does.
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

/// Where a lab lives unless told otherwise: `TIDEMARK_LAB_DIR`, or else `tidemark/lab` in `XDG_STATE_HOME`,
/// which is `~/.local/state` if unset.
///
/// # Errors
/// [`LabError::NoDirectory`] if the environment names none of these.
pub fn default_dir() -> Result<PathBuf, LabError> {
    home::usual_directory(|name| std::env::var_os(name))
}

/// Brings a lab up: creates it if there is none, starts what does not run of it otherwise, and continues what
/// is paused. It returns when every placement group takes reads and writes and the gateway answers; a lab
/// that is up already is returned as it is. A cluster that serves but is not in full health 20 s later is
/// reported through `progress` and is no error. Creating takes about 10 s on two idle cores and starting
/// again about 6 s; after the crash of an OSD, up to 20 s.
///
/// `progress` is told each step as it begins.
///
/// # Errors
/// Missing programs, unsuitable options, directories and ports, and daemons that end or do not get ready.
/// After an error nothing that this call started runs any more, and the logs are in `log` below the
/// directory. A lab whose creation failed is created anew by the next call.
pub fn up(options: &LabOptions, progress: &mut dyn FnMut(&str)) -> Result<Lab, LabError> {
    options.check()?;
    let programs = Programs::new(options.program_path.clone().unwrap_or_else(environment_path));
    programs.check()?;
    let home = Home::prepare(&options.dir)?;
    let _lock = home.lock()?;
    match Record::load(&home)? {
        Some(Record { shape, credentials: Some(credentials) }) => {
            let shape = adapt(&home, shape, options)?;
            Record { shape: shape.clone(), credentials: Some(credentials.clone()) }.save(&home)?;
            let cluster = Cluster { home, shape, programs };
            start::resume(&cluster, progress)?;
            Ok(Lab { cluster, credentials })
        }
        unfinished_or_none => {
            if unfinished_or_none.is_some() {
                progress("clearing a lab that was not finished");
                daemon::stop(&home, &Daemon::noted(&home)?, progress)?;
                home.clear_cluster()?;
            }
            home.check_space(FREE_BYTES)?;
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

/// How the lab in a directory is. It changes nothing, and asks Ceph only if the monitor runs.
///
/// # Errors
/// [`LabError::NoLab`], and files that cannot be read. Daemons that do not run are a status and not an error.
pub fn status(dir: &Path) -> Result<LabStatus, LabError> {
    let (home, record) = find(dir)?;
    let shape = record.shape;
    let mut daemons = Vec::new();
    for daemon in Daemon::all(shape.osds) {
        let process = daemon.find(&home)?;
        let state = match &process {
            None => DaemonState::Stopped,
            Some(process) if process.is_paused() => DaemonState::Paused,
            Some(_) => DaemonState::Running,
        };
        daemons.push(DaemonStatus { daemon, pid: process.map(|process| process.pid()), state });
    }
    let runs =
        |wanted| daemons.iter().any(|found| found.daemon == wanted && found.state == DaemonState::Running);
    let gateway_answers = runs(Daemon::Gateway) && gateway::answers(shape.gateway_port);
    let has_monitor = runs(Daemon::Monitor);
    let cluster = Cluster { home, shape, programs: Programs::new(environment_path()) };
    let health = has_monitor.then(|| cluster.health().ok()).flatten();
    Ok(LabStatus {
        complete: record.credentials.is_some(),
        daemons,
        health,
        endpoint: cluster.shape.endpoint(),
        swift_auth_url: cluster.shape.swift_auth_url(),
        gateway_answers,
        credentials_file: cluster.home.record(),
        dir: cluster.home.dir().to_owned(),
    })
}

/// Stops the lab in a directory, and with `purge` removes all that it wrote, data and keys included. Where
/// there is no lab, or none that runs, there is nothing to stop, and that is no error.
///
/// `progress` is told each step as it begins.
///
/// # Errors
/// [`LabError::Busy`], a daemon that outlives SIGKILL, and files that cannot be removed.
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
    if purge {
        progress(&format!("removing {}", home.dir().display()));
        home.purge()?;
    }
    Ok(())
}

impl Lab {
    /// The lab in a directory, whether it runs or not.
    ///
    /// # Errors
    /// [`LabError::NoLab`], [`LabError::Unfinished`] and [`LabError::BadRecord`].
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let (home, Record { shape, credentials }) = find(dir)?;
        let credentials = credentials.ok_or_else(|| LabError::Unfinished { dir: home.dir().to_owned() })?;
        let cluster = Cluster { home, shape, programs: Programs::new(environment_path()) };
        Ok(Self { cluster, credentials })
    }

    /// The lab's directory, absolute and without symbolic links.
    pub fn dir(&self) -> &Path {
        self.cluster.home.dir()
    }

    /// The gateway's S3 endpoint, such as `http://127.0.0.1:27480`.
    pub fn endpoint(&self) -> String {
        self.cluster.shape.endpoint()
    }

    /// Where Swift clients (TempAuth, v1) sign in, such as `http://127.0.0.1:27480/auth/v1.0`.
    pub fn swift_auth_url(&self) -> String {
        self.cluster.shape.swift_auth_url()
    }

    /// How clients sign in.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The lab's ceph.conf, which names the keyring: what a client of RADOS or RBD needs, as `client.admin`.
    pub fn ceph_conf(&self) -> PathBuf {
        self.cluster.home.ceph_conf()
    }

    /// The log of a daemon. The log of its previous start has the same name and `.1`.
    pub fn log(&self, daemon: Daemon) -> PathBuf {
        self.cluster.home.log(daemon)
    }

    /// Every daemon that the lab has, in the order of their start.
    pub fn daemons(&self) -> Vec<Daemon> {
        Daemon::all(self.cluster.shape.osds)
    }

    /// The process of a daemon, if it runs or is paused.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn pid(&self, daemon: Daemon) -> Result<Option<u32>, LabError> {
        Ok(daemon.find(&self.cluster.home)?.map(|process| process.pid()))
    }

    /// How the lab is; see [`status`].
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

    /// Runs `radosgw-admin` on the lab, as its administrator, for 60 s at most, and returns what it wrote to
    /// its output. The usage log (`usage show`) lags the gateway's operations by up to 2 s.
    ///
    /// # Errors
    /// A missing program, and a command that fails or does not end.
    pub fn radosgw_admin(&self, arguments: &[&str]) -> Result<String, LabError> {
        self.cluster.radosgw_admin(arguments)
    }

    /// Stops the gateway, whatever it does, starts it again and waits until it answers.
    ///
    /// # Errors
    /// [`LabError::Busy`], and a gateway that does not start; it is then left stopped.
    pub fn restart_gateway(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let _lock = self.cluster.home.lock()?;
        daemon::stop(&self.cluster.home, &[Daemon::Gateway], progress)?;
        start::start_gateway(&self.cluster, progress)
    }
}

fn environment_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

fn find(dir: &Path) -> Result<(Home, Record), LabError> {
    let home = Home::find(dir)?;
    let record = Record::load(&home)?.ok_or_else(|| LabError::NoLab { dir: dir.to_owned() })?;
    Ok((home, record))
}

/// The shape of a lab about to be created.
fn new_shape(home: &Home, options: &LabOptions) -> Result<Shape, LabError> {
    let gateway_port = match options.gateway_port {
        Some(port) => ports::check(Daemon::Gateway, port).map(|()| port)?,
        None => ports::choose(Daemon::Gateway, home.dir())?,
    };
    Ok(Shape {
        fsid: start::uuid()?,
        osds: options.osds.unwrap_or(USUAL_OSDS),
        osd_bytes: options.osd_bytes.unwrap_or(USUAL_OSD_BYTES),
        monitor_port: ports::choose(Daemon::Monitor, home.dir())?,
        gateway_port,
    })
}

/// The shape of an existing lab, with the gateway on another port if that is asked for and it does not run.
fn adapt(home: &Home, shape: Shape, options: &LabOptions) -> Result<Shape, LabError> {
    let differs = |option, has, asked, advice| {
        Err(LabError::Differs { dir: home.dir().to_owned(), option, has, asked, advice })
    };
    let anew =
        "`tidemark lab down --purge` removes it with its data, and then `tidemark lab up ceph` makes another";
    let (osds, bytes) = (options.osds.unwrap_or(shape.osds), options.osd_bytes.unwrap_or(shape.osd_bytes));
    let port = options.gateway_port.unwrap_or(shape.gateway_port);
    if osds != shape.osds {
        return differs("the number of OSDs", shape.osds as u64, osds as u64, anew);
    }
    if bytes != shape.osd_bytes {
        return differs("the size of an OSD in bytes", shape.osd_bytes, bytes, anew);
    }
    if port != shape.gateway_port && Daemon::Gateway.find(home)?.is_some() {
        let advice = "`tidemark lab down` stops it, and then `tidemark lab up ceph` can use the other port";
        return differs("its gateway running on port", shape.gateway_port.into(), port.into(), advice);
    }
    Ok(Shape { gateway_port: port, ..shape })
}

#[cfg(test)]
mod tests;
