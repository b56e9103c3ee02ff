//! Kubernetes' API server and its etcd: what manifests are checked against. There is no node yet, so nothing runs.
//!
//! etcd comes from the distribution. The API server is built with the user's Go from the module proxy, once, and is kept in
//! the user's cache ([`program`]). Both speak TLS with certificates of this lab alone ([`certificates`]), and know nobody who has none.

mod certificates;
mod conf;
mod program;
mod record;

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::command::{ETCD, Programs};
use crate::daemon::{Daemon, Under};
use crate::error::LabError;
use crate::home::{self, Home};
use crate::watch::Watch;
use crate::{DaemonState, DaemonStatus, ports, programs, state_of};
use certificates::Identity;
use record::{Access, Shape};

type Record = crate::record::Record<Shape>;

/// Free space needed to create a lab, in bytes: etcd alone takes 128 MB from the start.
const FREE_BYTES: u64 = 512 << 20;
/// How long a daemon may take to become ready, among many on few processors.
const READY: Duration = Duration::from_secs(300);
/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(60);

/// What is wanted. What is `None` is as the lab in the directory has it, or as usual in a new one.
#[derive(Clone, Debug)]
pub struct KubernetesOptions {
    /// The lab's directory, made if it is missing.
    pub dir: PathBuf,
    /// The API server's port on 127.0.0.1; usually a free one is chosen, and kept.
    pub port: Option<u16>,
    /// Where programs are looked for, in the form of the variable PATH, which it replaces.
    pub program_path: Option<OsString>,
}

impl KubernetesOptions {
    /// An API server in the directory given.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), port: None, program_path: None }
    }
}

/// An API server with its etcd, running or not.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    home: Home,
    shape: Shape,
}

/// The state of an API server and its etcd.
#[derive(Clone, Debug, Serialize)]
pub struct KubernetesStatus {
    /// The lab's directory.
    pub dir: PathBuf,
    /// What it is made of.
    pub labels: Vec<(String, String)>,
    /// All daemons of the lab.
    pub daemons: Vec<DaemonStatus>,
    /// Whether the API server says that it is ready.
    pub is_ready: bool,
    /// Where the API server listens.
    pub endpoint: String,
    /// The file that `kubectl` takes, which only its owner can read.
    pub kubeconfig: PathBuf,
}

impl KubernetesStatus {
    /// Whether every daemon runs and the API server is ready.
    pub fn is_up(&self) -> bool {
        self.is_ready && self.daemons.iter().all(|status| status.state == DaemonState::Running)
    }
}

/// What the API server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

impl Kubernetes {
    /// Brings etcd and the API server up: builds the API server if this user has none yet, makes certificates, starts what
    /// does not run, and returns when the API server is ready. What is up already is left as it is. With the program built, it takes
    /// some seconds; building it took 6 minutes of two processors.
    ///
    /// `progress` gets a line as each step begins.
    ///
    /// # Errors
    /// A missing etcd or Go, a build that fails, unsuitable directories and ports, and daemons that exit or do not become
    /// ready. After an error nothing that this call started is still running, and the logs are in `log` below the directory.
    pub fn up(options: &KubernetesOptions, progress: &mut dyn FnMut(&str)) -> Result<Self, LabError> {
        let programs = programs(options.program_path.as_ref());
        programs.check(&ETCD)?;
        let home = Home::prepare(&options.dir)?;
        let _lock = home.lock()?;
        let up = prepare(&home, options, &programs, progress);
        if up.is_err() && !home.record().is_file() {
            // There is nothing in it yet, not even a log.
            let _ = home.purge();
        }
        let (kubernetes, server) = up?;
        kubernetes.start_missing(&programs.and_in(&server), progress)?;
        Ok(kubernetes)
    }

    /// The API server in a directory, running or not.
    ///
    /// # Errors
    /// [`LabError::NoLab`], [`LabError::Unfinished`] and [`LabError::BadRecord`].
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let home = Home::find(dir)?;
        let record = Record::load(&home)?.ok_or_else(|| LabError::NoLab { dir: dir.to_owned() })?;
        match record.credentials {
            Some(_) => Ok(Self { home, shape: record.shape }),
            None => Err(LabError::Unfinished { dir: home.dir().to_owned() }),
        }
    }

    /// The state of both. It changes nothing.
    ///
    /// # Errors
    /// Files that cannot be read. Stopped processes are not an error.
    pub fn status(&self) -> Result<KubernetesStatus, LabError> {
        let daemons = Self::daemons().map(|daemon| state_of(&self.home, daemon));
        let daemons = daemons.into_iter().collect::<Result<Vec<_>, _>>()?;
        let runs = daemons.iter().all(|status| status.state == DaemonState::Running);
        Ok(KubernetesStatus {
            dir: self.dir().to_owned(),
            labels: self.labels(),
            daemons,
            is_ready: runs && self.is_ready(),
            endpoint: self.endpoint(),
            kubeconfig: self.kubeconfig(),
        })
    }

    /// The lab's directory, absolute and without symbolic links.
    pub fn dir(&self) -> &Path {
        self.home.dir()
    }

    /// Where the API server listens, such as `https://127.0.0.1:29480`.
    pub fn endpoint(&self) -> String {
        self.shape.endpoint()
    }

    /// The file that `kubectl` takes: the address, the lab's authority, and an administrator's key. Only its owner can read it.
    pub fn kubeconfig(&self) -> PathBuf {
        self.home.kubeconfig()
    }

    /// What it is made of, in words for a report.
    pub fn labels(&self) -> Vec<(String, String)> {
        vec![("Kubernetes".to_owned(), format!("{}, API server and etcd, no node", program::VERSION))]
    }

    /// Shell variables, as `tidemark lab env` prints them: `KUBECONFIG` for `kubectl`, and the address.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("KUBECONFIG", self.kubeconfig().display().to_string()),
            ("TIDEMARK_LAB_KUBERNETES", self.endpoint()),
        ]
    }

    /// Asks the API server as its administrator: a method, a path with its query, and a body in JSON or YAML, if there is one.
    /// The answer may be a refusal.
    ///
    /// # Errors
    /// [`LabError::Kubernetes`], when there is no answer.
    pub fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Result<Answer, LabError> {
        let (endpoint, identity) = (self.endpoint(), Identity::load(&self.home)?);
        let failed =
            |error: ureq::Error| LabError::Kubernetes { endpoint: self.endpoint(), why: error.to_string() };
        // No proxy of the environment stands before a server of this machine.
        let settings = ureq::Agent::config_builder().proxy(None).http_status_as_error(false);
        let tls = identity.tls().map_err(failed)?;
        let agent: ureq::Agent = settings.timeout_global(Some(REQUEST)).tls_config(tls).build().into();
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{endpoint}{path}"));
        request = request.header("Accept", "application/json");
        if body.is_some() {
            // JSON is YAML.
            request = request.header("Content-Type", "application/yaml");
        }
        let request =
            request.body(body.unwrap_or_default().to_owned()).map_err(|error| failed(error.into()))?;
        let mut response = agent.run(request).map_err(failed)?;
        let status = response.status().as_u16();
        Ok(Answer { status, body: response.body_mut().read_to_string().map_err(failed)? })
    }

    fn daemons() -> [Daemon; 2] {
        [Daemon::Etcd, Daemon::ApiServer]
    }

    fn is_ready(&self) -> bool {
        self.ask("GET", "/readyz", None).is_ok_and(|answer| answer.status == 200)
    }

    /// Starts what does not run, and waits for all. If that fails, what it started is stopped again.
    fn start_missing(&self, programs: &Programs, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let mut watch = Watch::new(&self.home, programs, progress);
        let result = self.start_with(&mut watch);
        watch.conclude(result, || Ok(()))
    }

    fn start_with(&self, watch: &mut Watch<'_>) -> Result<(), LabError> {
        let ports = self.shape.ports();
        for daemon in Self::daemons() {
            match daemon.find(&self.home)? {
                Some(process) => watch.keep(daemon, process)?,
                None => {
                    let mut own = ports.iter().filter(|(owner, _)| *owner == daemon);
                    own.try_for_each(|(_, port)| ports::check(daemon, *port))?;
                    conf::write(&self.home, &self.shape, daemon)?;
                    watch.start(daemon, Under::Us)?;
                }
            }
            match daemon {
                Daemon::ApiServer => {
                    watch.await_ready(daemon, READY, "is not ready", || self.is_ready())?;
                }
                _ => {
                    let port = self.shape.etcd_port;
                    let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
                    watch.await_ready(daemon, READY, "does not listen", listens)?;
                }
            }
        }
        Ok(())
    }
}

/// What the lab in a directory is to be from now on, noted in its record, and the directory of the API server's program.
fn prepare(
    home: &Home,
    options: &KubernetesOptions,
    programs: &Programs,
    progress: &mut dyn FnMut(&str),
) -> Result<(Kubernetes, PathBuf), LabError> {
    let has = Record::load(home)?.map(|record| record.shape);
    if has.is_none() {
        home::check_space(home.dir(), FREE_BYTES)?;
    }
    let shape = Shape::new(home, options.port, has.as_ref())?;
    if has.is_some_and(|has| has != shape) {
        for daemon in Kubernetes::daemons() {
            if daemon.find(home)?.is_some() {
                return Err(LabError::Running { dir: home.dir().to_owned() });
            }
        }
    }
    let server = program::api_server(programs, progress)?;
    // What has no record is taken for somebody else's.
    let access = Access { kubeconfig: home.kubeconfig() };
    Record { shape: shape.clone(), credentials: Some(access) }.save(home)?;
    certificates::make(home)?;
    conf::lay_out(home, &shape)?;
    Ok((Kubernetes { home: home.clone(), shape }, server))
}
