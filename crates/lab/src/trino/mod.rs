//! A Trino cluster: a coordinator and workers, whose tables and catalogue lie in a bucket of an S3 server.
//!
//! The server comes from Maven and is kept in the user's cache ([`install`]); a Java that runs it is found or named
//! ([`jdk`]). Nothing that must last lies in the lab's directory.

mod conf;
mod image;
mod install;
mod jdk;
mod options;
mod record;
mod storage;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::command::Programs;
use crate::daemon::{Daemon, Under};
use crate::error::LabError;
use crate::home::Home;
use crate::provisioner::TRINO_VARIABLES;
use crate::watch::Watch;
use crate::{DaemonState, DaemonStatus, ports, programs, state_of};
use jdk::Jdk;
use record::Shape;
use tidemark_trino::CATALOG;

pub use image::trino_image;
pub use options::TrinoOptions;
pub(crate) use options::{LEAST_HEAP, MOST_WORKERS};
pub use storage::{Bucket, Keys, Storage};

type Record = crate::record::Record<Shape>;

/// The version.
const VERSION: &str = "476";
/// How long a process may take to become an active node, among many on few processors.
const ACTIVE: Duration = Duration::from_secs(600);
/// How long a statement may take.
const STATEMENT: Duration = Duration::from_secs(600);

/// A Trino cluster, running or not.
#[derive(Clone, Debug)]
pub struct Trino {
    home: Home,
    shape: Shape,
    keys: Keys,
}

/// The state of a Trino cluster.
#[derive(Clone, Debug, Serialize)]
pub struct TrinoStatus {
    /// The lab's directory.
    pub dir: PathBuf,
    /// What it is made of; see [`Trino::labels`].
    pub labels: Vec<(String, String)>,
    /// All daemons of the lab.
    pub daemons: Vec<DaemonStatus>,
    /// Names of the daemons that the coordinator calls active; none if it does not answer. It misses a node that has ended
    /// only after a while.
    pub active: Option<Vec<String>>,
    /// Where clients find the coordinator.
    pub endpoint: String,
    /// The catalog for tables in the bucket.
    pub catalog: &'static str,
    /// Where tables and their catalogue lie.
    pub bucket: Bucket,
    /// The file with endpoints and keys, `lab.json`, which only its owner can read.
    pub credentials_file: PathBuf,
}

impl TrinoStatus {
    /// Whether every daemon runs and is an active node.
    pub fn is_up(&self) -> bool {
        let active = self.active.as_deref().unwrap_or_default();
        self.daemons
            .iter()
            .all(|status| status.state == DaemonState::Running && active.contains(&status.daemon.to_string()))
    }
}

impl Trino {
    /// The Java that would run a cluster of these options: its directory and version.
    ///
    /// # Errors
    /// [`LabError::NoJdk`].
    pub fn java(named: Option<&Path>) -> Result<String, LabError> {
        Jdk::find(named).map(|jdk| jdk.to_string())
    }

    /// Brings a cluster up: fetches the server if this user has none yet, makes the bucket if there is none, starts the
    /// processes that do not run, and returns when all of them are active nodes. A cluster that is already up is left as it
    /// is. With the server there, on two cores that others used as well, a coordinator alone took 12 s, and one with two
    /// workers 50 s.
    ///
    /// `progress` gets a line as each step begins.
    ///
    /// # Errors
    /// No Java, no Maven or an artifact that it does not give, unsuitable options, directories and ports, an S3 server that
    /// refuses, and processes that exit or do not become active. After an error nothing that this call started is still
    /// running, and the logs are in `log` below the directory.
    pub fn up(options: &TrinoOptions, progress: &mut dyn FnMut(&str)) -> Result<Self, LabError> {
        let programs = programs(options.program_path.as_ref());
        let home = Home::prepare(&options.dir)?;
        let lock = home.lock()?;
        let up = prepare(&home, options, &programs, progress);
        if up.is_err() && !home.record().is_file() {
            // There is nothing in it yet, not even a log.
            let _ = home.purge();
        }
        let (trino, server) = up?;
        conf::write(&trino.home, &trino.shape, &trino.keys, &server)?;
        trino.start_missing(progress)?;
        drop(lock);
        Ok(trino)
    }

    /// The cluster in a directory, running or not.
    ///
    /// # Errors
    /// [`LabError::NoLab`], [`LabError::Unfinished`] and [`LabError::BadRecord`].
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let home = Home::find(dir)?;
        let record = Record::load(&home)?.ok_or_else(|| LabError::NoLab { dir: dir.to_owned() })?;
        let Some(keys) = record.credentials else {
            return Err(LabError::Unfinished { dir: home.dir().to_owned() });
        };
        Ok(Self { home, shape: record.shape, keys })
    }

    /// The state of the cluster. It changes nothing.
    ///
    /// # Errors
    /// Files that cannot be read. Stopped processes are not an error.
    pub fn status(&self) -> Result<TrinoStatus, LabError> {
        let daemons = self.daemons().into_iter().map(|daemon| state_of(&self.home, daemon));
        let daemons = daemons.collect::<Result<Vec<_>, _>>()?;
        let runs = daemons.first().is_some_and(|coordinator| coordinator.state == DaemonState::Running);
        Ok(TrinoStatus {
            dir: self.dir().to_owned(),
            labels: self.labels(),
            daemons,
            active: if runs { tidemark_trino::active(&self.endpoint()).ok() } else { None },
            endpoint: self.endpoint(),
            catalog: CATALOG,
            bucket: self.shape.bucket.clone(),
            credentials_file: self.home.record(),
        })
    }

    /// The lab's directory, absolute and without symbolic links.
    pub fn dir(&self) -> &Path {
        self.home.dir()
    }

    /// Where clients find the coordinator, such as `http://127.0.0.1:28480`.
    pub fn endpoint(&self) -> String {
        self.shape.endpoint()
    }

    /// Every daemon of the lab, in the order of their start.
    pub fn daemons(&self) -> Vec<Daemon> {
        self.shape.daemons()
    }

    /// The process of a daemon, if it runs or is paused.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn pid(&self, daemon: Daemon) -> Result<Option<u32>, LabError> {
        Ok(daemon.find(&self.home)?.map(|process| process.pid()))
    }

    /// The processes by name and by an argument that no other process has, as an observer takes them.
    pub fn processes(&self) -> Vec<String> {
        let argument = |daemon: Daemon| format!("@{}", self.home.server_conf(daemon).display());
        self.daemons()
            .into_iter()
            .map(|daemon| format!("{} {}", daemon.program(), argument(daemon)))
            .collect()
    }

    /// What it is made of, in words for a report.
    pub fn labels(&self) -> Vec<(String, String)> {
        let mut labels = self.shape.labels();
        let java = Jdk::at(&self.shape.jdk).map(|jdk| ("Java".to_owned(), jdk.to_string()));
        labels.extend(java);
        labels
    }

    /// Shell variables with the cluster's address, and with the address and the keys of the server that has its tables, as
    /// `tidemark lab env` prints them.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let values = [
            self.endpoint(),
            CATALOG.to_owned(),
            self.shape.bucket.s3.clone(),
            self.shape.bucket.bucket.clone(),
            self.keys.access_key.clone(),
            self.keys.secret_key.clone(),
        ];
        TRINO_VARIABLES.map(|(name, _)| name).into_iter().zip(values).collect()
    }

    /// Carries out a statement, for ten minutes at most, and gives its rows.
    ///
    /// # Errors
    /// [`LabError::Statement`] with what the server says.
    pub fn ask(&self, sql: &str) -> Result<Vec<Vec<Value>>, LabError> {
        let endpoint = self.endpoint();
        let given = tidemark_trino::ask(&endpoint, sql, STATEMENT);
        given.map(|given| given.rows).map_err(|why| LabError::Statement { endpoint, why })
    }

    fn runs(&self) -> Result<bool, LabError> {
        for daemon in Daemon::noted(&self.home)? {
            if daemon.find(&self.home)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Starts the processes that do not run, and waits for all. If that fails, what it started is stopped again.
    fn start_missing(&self, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let java = Programs::new(self.shape.jdk.join("bin").into_os_string());
        let mut watch = Watch::new(&self.home, &java, progress);
        let result = self.start_with(&mut watch);
        watch.conclude(result, || Ok(()))
    }

    fn start_with(&self, watch: &mut Watch<'_>) -> Result<(), LabError> {
        let mut missing = Vec::new();
        for (daemon, port) in self.shape.nodes() {
            match daemon.find(&self.home)? {
                Some(process) => watch.keep(daemon, process)?,
                None => missing.push((daemon, port)),
            }
        }
        // Before anything is started, because it would have to be stopped again.
        missing.iter().try_for_each(|(daemon, port)| ports::check(*daemon, *port))?;
        missing.iter().try_for_each(|(daemon, _)| watch.start(*daemon, Under::Us))?;
        watch.say("waiting for all nodes to be active");
        let endpoint = self.endpoint();
        for daemon in self.daemons() {
            let is_active =
                || tidemark_trino::active(&endpoint).is_ok_and(|active| active.contains(&daemon.to_string()));
            watch.await_ready(daemon, ACTIVE, "is not an active node", is_active)?;
        }
        let all_work = || {
            let working = tidemark_trino::working(&endpoint).unwrap_or_default();
            self.shape.working().iter().all(|daemon| working.contains(&daemon.to_string()))
        };
        watch.await_ready(Daemon::Coordinator, ACTIVE, "gives no work to some of its nodes", all_work)
    }
}

/// What the lab in a directory is to be from now on, noted in its record, and the server that it runs.
fn prepare(
    home: &Home,
    options: &TrinoOptions,
    programs: &Programs,
    progress: &mut dyn FnMut(&str),
) -> Result<(Trino, PathBuf), LabError> {
    let has = Record::load(home)?;
    let shape = options.shape(home, has.as_ref().map(|record| &record.shape))?;
    let trino = Trino { home: home.clone(), shape, keys: options.storage.keys.clone() };
    let is_same =
        has.is_some_and(|has| has.shape == trino.shape && has.credentials.as_ref() == Some(&trino.keys));
    if !is_same && trino.runs()? {
        return Err(LabError::Running { dir: home.dir().to_owned() });
    }
    let server = install::server(programs, progress)?;
    progress(&format!("making sure that there is a {}", trino.shape.bucket));
    options.storage.make_bucket()?;
    Record { shape: trino.shape.clone(), credentials: Some(trino.keys.clone()) }.save(home)?;
    Ok((trino, server))
}
