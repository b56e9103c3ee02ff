//! The lab's nodes: what makes an API server into a Kubernetes on which pods run, with volumes for claims.
//!
//! kubelet, the controller manager, the scheduler and the provisioner of volumes are built like the API server; containerd, runc and the
//! plugins for networks come from the distribution. Where they live is in [`place`], the addresses are in [`network`].

mod conf;
mod csi;
mod groups;
mod network;
mod place;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Kubernetes, READY};
use crate::command::Programs;
use crate::daemon::{Csi, Daemon, Under};
use crate::error::LabError;
use crate::home::{self, Home};
use crate::image::Image;
use crate::loops;
use crate::watch::Watch;

use groups::Groups;
pub(crate) use network::Network;
pub(crate) use place::Place;

/// The image that every pod's sandbox and the provisioner's helpers run, made of this machine's own files.
const BASE_IMAGE: &str = "tidemark.invalid/lab/base:1";
/// What it has, from this machine: what a shell script needs to look around.
const BASE_PROGRAMS: [&str; 11] =
    ["sh", "cat", "dd", "df", "env", "id", "ls", "mkdir", "rm", "sleep", "sync"];
/// How long it may take to bring an image in.
const IMPORT: Duration = Duration::from_secs(600);
/// The namespace in which containerd keeps what is Kubernetes'.
const NAMESPACE: &str = "k8s.io";

/// The nodes of a lab's API server: the first is this machine, the others are as machines beside it.
pub(super) struct Node<'a> {
    pub(super) kubernetes: &'a Kubernetes,
    pub(super) network: Network,
    /// Whether it has a CSI driver.
    pub(super) has_csi: bool,
}

impl Node<'_> {
    /// Its daemons, in the order of their start.
    pub(super) fn daemons(&self) -> Vec<Daemon> {
        let of_each = |daemon: fn(usize) -> Daemon| (0..self.network.nodes()).map(daemon);
        let first = [Daemon::ControllerManager, Daemon::Scheduler].into_iter();
        let first = first.chain(of_each(Daemon::Containerd)).chain(of_each(Daemon::Kubelet));
        let csi = Csi::ALL.into_iter().filter(|_| self.has_csi).map(Daemon::Csi);
        first.chain([Daemon::Volumes]).chain(csi).collect()
    }

    /// Starts what does not run, and waits until the node is ready for pods. The API server must be up.
    pub(super) fn start(&self, programs: &Programs, watch: &mut Watch<'_>) -> Result<(), LabError> {
        let home = &self.kubernetes.home;
        let numbers = 0..self.network.nodes();
        let place = |number| Place::make(home, self.network, number, programs);
        let places = numbers.clone().map(place).collect::<Result<Vec<_>, _>>()?;
        // What a kubelet that has ended has said stands for a while.
        let said = |number| {
            let has_ended = Daemon::Kubelet(number).find(home)?.is_none();
            Ok(has_ended.then(|| self.heartbeat(number)).flatten())
        };
        let gone = numbers.clone().map(said).collect::<Result<Vec<_>, LabError>>()?;
        for daemon in self.daemons() {
            if let Some(process) = daemon.find(home)? {
                watch.keep(daemon, process)?;
                continue;
            }
            if daemon == Daemon::Csi(Csi::Driver) {
                csi::define(self.kubernetes)?;
                // Those that spoke with one that was killed end by themselves, but some seconds later.
                Csi::ALL.into_iter().try_for_each(|csi| watch.stop(Daemon::Csi(csi)))?;
            }
            conf::write(home, self.network, programs, daemon)?;
            let under = match daemon {
                Daemon::Containerd(number) | Daemon::Kubelet(number) => Under::Node(&places[number]),
                Daemon::Csi(_) => Under::Node(&places[0]),
                _ => Under::Us,
            };
            watch.start(daemon, under)?;
            if let Daemon::Containerd(number) = daemon {
                let listens = || UnixStream::connect(socket(home, number)).is_ok();
                watch.await_ready(daemon, READY, "does not listen", listens)?;
                bring_base(home, number, programs)?;
            }
        }
        for (number, gone) in numbers.zip(gone) {
            watch.await_ready(Daemon::Kubelet(number), READY, "does not make the node ready", || {
                self.heartbeat(number).is_some_and(|heartbeat| Some(heartbeat) != gone)
            })?;
        }
        self.kubernetes.put("/apis/storage.k8s.io/v1/storageclasses", &storage_class().to_string())?;
        if self.has_csi {
            watch.await_ready(Daemon::Csi(Csi::Driver), READY, "is not known to kubelet", || {
                csi::is_registered(self.kubernetes)
            })?;
        }
        // Without these no pod can be made.
        let ready = ["serviceaccounts/default", "configmaps/kube-root-ca.crt"];
        let there = |name| self.kubernetes.ask("GET", &format!("/api/v1/namespaces/default/{name}"), None);
        let has_all = || ready.iter().all(|name| there(name).is_ok_and(|answer| answer.status == 200));
        watch.await_ready(Daemon::ControllerManager, READY, "does not make service accounts", has_all)
    }

    /// Whether all say that they are ready for pods.
    pub(super) fn is_ready(&self) -> bool {
        (0..self.network.nodes()).all(|number| self.heartbeat(number).is_some())
    }

    /// When a node last said that it is ready for pods, if that is what it said.
    fn heartbeat(&self, number: usize) -> Option<String> {
        let answer = self.kubernetes.ask("GET", &format!("/api/v1/nodes/{}", name(number)), None).ok()?;
        let node: Value = serde_json::from_str(&answer.body).ok()?;
        let conditions = node["status"]["conditions"].as_array()?;
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
        (ready["status"] == "True").then(|| ready["lastHeartbeatTime"].to_string())
    }
}

/// Fails if this user or this machine cannot have a node.
pub(super) fn check(programs: &Programs, has_csi: bool) -> Result<(), LabError> {
    programs.check(&crate::command::NODE)?;
    if has_csi {
        programs.check(&crate::command::CSI)?;
    }
    conf::plugins()?;
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LabError::NodeNeedsRoot) }
}

/// Ends everything that a node of this lab has left on the machine: processes, loop devices, mounts, control groups and its network.
pub(super) fn release(home: &Home, programs: &Programs) -> Result<(), LabError> {
    if !home.node().is_dir() {
        return Ok(());
    }
    // Pods first: what nobody has open any more can be detached and unmounted without waiting.
    Groups::of(home).remove()?;
    // kubelet keeps a loop device of its own on each device of a pod. The kernel knows it by a path in the place, while there is one,
    // and no two pods have the same.
    loops::attached(|path| place::is_of_kubelets(home, path))?
        .iter()
        .try_for_each(|device| device.detach(programs))?;
    place::remove(home, programs)?;
    // Those of mounted volumes go with their mounts.
    loops::await_detached(|device| device.file.starts_with(csi::files(home)))?;
    network::remove(home, programs)
}

/// The name of a node.
fn name(number: usize) -> String {
    match number {
        0 => "lab".to_owned(),
        _ => format!("lab-{number}"),
    }
}

/// As whom a node signs in at the API server.
pub(super) fn user(number: usize) -> String {
    format!("system:node:{}", name(number))
}

/// The name of the files with a node's certificate and key.
pub(super) fn client(number: usize) -> String {
    match number {
        0 => "node".to_owned(),
        _ => format!("node-{number}"),
    }
}

/// What a node keeps.
fn directory(home: &Home, number: usize) -> PathBuf {
    match number {
        0 => home.node(),
        _ => home.node().join(name(number)),
    }
}

/// Brings the images of an archive to a node, and returns what containerd says of them. Those that are there already stay as they are.
pub(super) fn import(
    home: &Home,
    number: usize,
    programs: &Programs,
    archive: &Path,
) -> Result<String, LabError> {
    let address = socket(home, number);
    let words = ["--address".as_ref(), address.as_os_str()].into_iter();
    let words = words.chain(["--namespace", NAMESPACE, "images", "import"].map(AsRef::as_ref));
    let words: Vec<&std::ffi::OsStr> = words.chain([archive.as_os_str()]).collect();
    programs.run("ctr", &words, IMPORT)
}

/// Where the containerd of a node listens.
fn socket(home: &Home, number: usize) -> PathBuf {
    home.run().join(format!("{}.sock", Daemon::Containerd(number)))
}

/// Makes the base image and brings it to a node.
fn bring_base(home: &Home, number: usize, programs: &Programs) -> Result<(), LabError> {
    let mut image = Image::new(BASE_IMAGE).entrypoint(&["/bin/sleep", "infinity"]).variable("PATH", "/bin");
    for name in BASE_PROGRAMS {
        image.program(&programs.path(name)?, Path::new("/bin").join(name))?;
    }
    image.text("/bin/make-volume", 0o755, "#!/bin/sh\nset -eu\nmkdir -m 0777 -p \"$VOL_DIR\"\n");
    image.text("/bin/remove-volume", 0o755, "#!/bin/sh\nset -eu\nrm -rf \"$VOL_DIR\"\n");
    image.directory("/tmp", 0o1777);
    let archive = home.node().join("base.tar");
    image.write(&archive)?;
    import(home, number, programs, &archive)?;
    home::remove(&archive)
}

/// The class that claims get which name none.
fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": "local-path",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "rancher.io/local-path",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    })
}
