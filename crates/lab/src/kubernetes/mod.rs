//! Kubernetes: an API server and its etcd, which are what manifests are checked against, and on request nodes, on which pods run.
//!
//! etcd comes from the distribution. The API server is built with the user's Go from the module proxy, once, and is kept in
//! the user's cache ([`program`]). Both speak TLS with certificates of this lab alone ([`certificates`]), and know nobody who has none.
//! What the [`node`] adds is there only if it is asked for: it needs root, and takes longer to build and to start.

mod certificates;
mod conf;
mod node;
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
use node::Node;
use record::{Access, Shape};

pub(crate) use node::Place;

type Record = crate::record::Record<Shape>;

/// Free space needed to create a lab, in bytes: etcd alone takes 128 MB from the start.
const FREE_BYTES: u64 = 512 << 20;
/// What every lab has.
const SERVERS: [Daemon; 2] = [Daemon::Etcd, Daemon::ApiServer];
/// How long a daemon may take to become ready, among many on few processors.
const READY: Duration = Duration::from_secs(300);
/// How long a request may take.
const REQUEST: Duration = Duration::from_secs(60);

/// What is wanted. What is `None` is as the lab in the directory has it, or as usual in a new one.
#[derive(Clone, Debug)]
pub struct KubernetesOptions {
    /// The lab's directory, made if it is missing.
    pub dir: PathBuf,
    /// The API server's port on 127.0.0.1; usually a free one is chosen, and kept. With a node it is 443 of the node's address.
    pub port: Option<u16>,
    /// Whether it is to have a node, however many: a new lab has one then.
    pub node: bool,
    /// How many nodes it is to have, at most 8; 0 is as the lab has them. One that is made keeps its number.
    pub nodes: usize,
    /// Whether the node is to have a CSI driver, whose volumes grow, have snapshots and are cloned. A lab that has it keeps it; a new
    /// one has a node for it, and one of several nodes cannot have it.
    pub csi: bool,
    /// Where programs are looked for, in the form of the variable PATH, which it replaces.
    pub program_path: Option<OsString>,
}

impl KubernetesOptions {
    /// An API server without a node in the directory given.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), port: None, node: false, nodes: 0, csi: false, program_path: None }
    }
}

/// An API server with its etcd, and its node if it has one, running or not.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    home: Home,
    shape: Shape,
}

/// The state of an API server, its etcd and its node.
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
    /// Whether all nodes are ready for pods, if there are any.
    pub node_is_ready: Option<bool>,
    /// Where the API server listens.
    pub endpoint: String,
    /// The file that `kubectl` takes, which only its owner can read.
    pub kubeconfig: PathBuf,
}

impl KubernetesStatus {
    /// Whether every daemon runs, and API server and node are ready.
    pub fn is_up(&self) -> bool {
        self.is_ready
            && self.node_is_ready != Some(false)
            && self.daemons.iter().all(|status| status.state == DaemonState::Running)
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
    /// Brings etcd and the API server up, and the node if the lab has one: builds what this user has not built yet, makes certificates,
    /// starts what does not run, and returns when the API server and the node are ready. What is up already is left as it is. With the
    /// programs built, it takes some seconds, or half a minute with a node; building the API server took 6 minutes of two processors.
    ///
    /// `progress` gets a line as each step begins.
    ///
    /// # Errors
    /// Missing programs, root's rights if a node needs them, a build that fails, unsuitable directories and ports, and daemons that exit or do not become
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
        let (kubernetes, programs) = up?;
        kubernetes.start_missing(&programs, progress)?;
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
        let daemons = self.daemons().into_iter().map(|daemon| state_of(&self.home, daemon));
        let daemons = daemons.collect::<Result<Vec<_>, _>>()?;
        let runs = |count| {
            let mut some = daemons.iter().take(count);
            some.all(|status: &DaemonStatus| status.state == DaemonState::Running)
        };
        let is_ready = runs(SERVERS.len()) && self.is_ready();
        let node_is_ready = self.node().map(|node| is_ready && runs(daemons.len()) && node.is_ready());
        Ok(KubernetesStatus {
            dir: self.dir().to_owned(),
            labels: self.labels(),
            daemons,
            is_ready,
            node_is_ready,
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
        let driver = if self.shape.csi { " with a CSI driver" } else { "" };
        let node = match self.shape.nodes() {
            0 => "and no node".to_owned(),
            1 => format!("and one node{driver}"),
            several => format!("and {several} nodes{driver}"),
        };
        vec![("Kubernetes".to_owned(), format!("{}, API server, etcd {node}", program::VERSION))]
    }

    /// The address at which pods reach this machine, if there is a node: servers that are to be reached listen on it, or on all addresses.
    pub fn host(&self) -> Option<Ipv4Addr> {
        self.shape.node.map(node::Network::host)
    }

    /// Shell variables, as `tidemark lab env` prints them: `KUBECONFIG` for `kubectl`, the API server's address, and with a node the
    /// address at which pods reach this machine.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("KUBECONFIG", self.kubeconfig().display().to_string()),
            ("TIDEMARK_LAB_KUBERNETES", self.endpoint()),
        ];
        variables.extend(self.host().map(|host| ("TIDEMARK_LAB_KUBERNETES_HOST", host.to_string())));
        variables
    }

    /// Brings the images of an archive, of Docker's or OCI's form, to all nodes, and returns what was said of each at the last one. What is there
    /// already stays as it is.
    ///
    /// # Errors
    /// [`LabError::NoNode`], [`LabError::NodeStopped`], and archives that cannot be read.
    pub fn import(&self, archive: &Path) -> Result<String, LabError> {
        let Some(network) = self.shape.node else {
            return Err(LabError::NoNode { dir: self.dir().to_owned() });
        };
        let archive = archive.canonicalize().map_err(LabError::file("find", archive))?;
        let mut said = String::new();
        for number in 0..network.nodes() {
            if Daemon::Containerd(number).find(&self.home)?.is_none() {
                return Err(LabError::NodeStopped { dir: self.dir().to_owned() });
            }
            said = node::import(&self.home, number, &Programs::installed(), &archive)?;
        }
        Ok(said)
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

    /// Has the API server keep an object, in JSON or YAML, in a collection, unless it has one of the name.
    fn put(&self, collection: &str, object: &str) -> Result<(), LabError> {
        let answer = self.ask("POST", collection, Some(object))?;
        match answer.status {
            201 | 409 => Ok(()),
            status => Err(LabError::Kubernetes {
                endpoint: self.endpoint(),
                why: format!("{collection}: status {status}: {}", answer.body),
            }),
        }
    }

    fn daemons(&self) -> Vec<Daemon> {
        let node = self.node().map(|node| node.daemons()).unwrap_or_default();
        SERVERS.into_iter().chain(node).collect()
    }

    fn node(&self) -> Option<Node<'_>> {
        self.shape.node.map(|network| Node { kubernetes: self, network, has_csi: self.shape.csi })
    }

    fn is_ready(&self) -> bool {
        self.ask("GET", "/readyz", None).is_ok_and(|answer| answer.status == 200)
    }

    /// Starts what does not run, and waits for all. If that fails, what it started is stopped again.
    fn start_missing(&self, programs: &Programs, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let mut watch = Watch::new(&self.home, programs, progress);
        let result = self.start_with(programs, &mut watch);
        watch.conclude(result, || match Daemon::noted(&self.home)?.is_empty() {
            true => release(&self.home, programs),
            false => Ok(()),
        })
    }

    fn start_with(&self, programs: &Programs, watch: &mut Watch<'_>) -> Result<(), LabError> {
        if let Some(network) = self.shape.node {
            network.make(&self.home, programs)?;
        }
        let ports = self.shape.ports();
        for daemon in SERVERS {
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
        self.node().map_or(Ok(()), |node| node.start(programs, watch))
    }
}

/// Ends what a node of the lab in a directory has left on the machine, if anything. Its daemons must have ended; it needs no record.
pub(crate) fn release(home: &Home, programs: &Programs) -> Result<(), LabError> {
    node::release(home, programs)
}

/// What the lab in a directory is to be from now on, noted in its record, and what finds its programs.
fn prepare(
    home: &Home,
    options: &KubernetesOptions,
    programs: &Programs,
    progress: &mut dyn FnMut(&str),
) -> Result<(Kubernetes, Programs), LabError> {
    let has = Record::load(home)?.map(|record| record.shape);
    if has.is_none() {
        home::check_space(home.dir(), FREE_BYTES)?;
    }
    let shape = Shape::new(home, options, has.as_ref())?;
    if shape.node.is_some() {
        node::check(programs, shape.csi)?;
    }
    if has.is_some_and(|has| has != shape) {
        for daemon in SERVERS {
            if daemon.find(home)?.is_some() {
                return Err(LabError::Running { dir: home.dir().to_owned() });
            }
        }
    }
    let programs = program::built(shape.node.is_some(), shape.csi, programs, progress)?;
    // What has no record is taken for somebody else's.
    let access = Access { kubeconfig: home.kubeconfig() };
    Record { shape: shape.clone(), credentials: Some(access) }.save(home)?;
    certificates::make(home, &shape)?;
    conf::lay_out(home, &shape)?;
    Ok((Kubernetes { home: home.clone(), shape }, programs))
}
