//! Volumes that grow, have snapshots and are cloned: a driver of the Container Storage Interface, and the controllers of Kubernetes CSI.
//!
//! The driver is ours (`../csi/driver`): a volume is a file system in a file of the lab's, mounted through a loop device. All else is what clusters run, which
//! usually is in the pods of a driver. Here they are processes of the node, as there is no image of them.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Kubernetes, name};
use crate::daemon::Csi;
use crate::error::LabError;
use crate::home::Home;
use crate::kubernetes::conf::lines;
use crate::kubernetes::program;

/// The driver's name, and that of the class of its volumes and of the class of its snapshots.
const DRIVER: &str = "loop.lab.tidemark.dev";
const CLASS: &str = "loop";
/// Where the driver listens, and where kubelet looks for drivers. Both are in the node's view of the file system.
const SOCKET: &str = "/var/lib/kubelet/plugins/loop.lab.tidemark.dev/csi.sock";
const REGISTRAR: &str = "/var/lib/kubelet/plugins_registry/loop.lab.tidemark.dev-reg.sock";
/// How many requests per second each controller may send, and how many more at once: with the usual 5 and 10, volumes wait for them.
const RATE: (&str, &str) = ("100", "200");
/// How long the driver may take for what it is asked to do. Snapshots and clones are copies, and one that is broken off begins anew: with
/// the usual 10 seconds or a minute, larger ones never end.
const COPY: &str = "10m";

const SNAPSHOT_CLASSES: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses";

/// Where the driver has its volumes and snapshots.
pub(super) fn files(home: &Home) -> PathBuf {
    home.node().join("csi")
}

/// The arguments of one of the programs.
pub(super) fn settings(home: &Home, csi: Csi) -> String {
    if csi == Csi::Driver {
        return lines(&[
            ("name", DRIVER.into()),
            ("node", name(0)),
            ("directory", files(home).display().to_string()),
            ("endpoint", SOCKET.into()),
            ("registrar", REGISTRAR.into()),
        ]);
    }
    let mut arguments = vec![
        ("kubeconfig", home.kubeconfig().display().to_string()),
        ("kube-api-qps", RATE.0.into()),
        ("kube-api-burst", RATE.1.into()),
    ];
    if csi != Csi::SnapshotController {
        arguments.push(("csi-address", SOCKET.into()));
    }
    match csi {
        Csi::Provisioner | Csi::Snapshotter => arguments.push(("timeout", COPY.into())),
        // Its `timeout` is also how long it waits for the driver.
        Csi::Resizer => arguments.push(("resize-timeout", COPY.into())),
        // These ask for nothing that takes long, or do not ask the driver.
        Csi::Driver | Csi::Attacher | Csi::SnapshotController => {}
    }
    if matches!(csi, Csi::Snapshotter | Csi::SnapshotController) {
        arguments.push(("feature-gates", "CSIVolumeGroupSnapshot=false".into()));
    }
    lines(&arguments)
}

/// Tells the API server of the driver, of its classes, and of what snapshots are.
pub(super) fn define(kubernetes: &Kubernetes) -> Result<(), LabError> {
    for definition in program::snapshot_definitions()? {
        kubernetes.put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition)?;
    }
    let driver = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"attachRequired": true, "podInfoOnMount": false, "fsGroupPolicy": "File"},
    });
    kubernetes.put("/apis/storage.k8s.io/v1/csidrivers", &driver.to_string())?;
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": DRIVER,
        "parameters": {"csi.storage.k8s.io/fstype": "ext4"},
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": true,
    });
    kubernetes.put("/apis/storage.k8s.io/v1/storageclasses", &class.to_string())
}

/// Whether kubelet knows the driver, and snapshots have their class.
pub(super) fn is_registered(kubernetes: &Kubernetes) -> bool {
    let class = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotClass",
        "metadata": {"name": CLASS},
        "driver": DRIVER,
        "deletionPolicy": "Delete",
    });
    // What was defined is served a moment later.
    if kubernetes.put(SNAPSHOT_CLASSES, &class.to_string()).is_err() {
        return false;
    }
    let Ok(answer) = kubernetes.ask("GET", &format!("/apis/storage.k8s.io/v1/csinodes/{}", name(0)), None)
    else {
        return false;
    };
    let node: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let drivers = node["spec"]["drivers"].as_array();
    drivers.is_some_and(|drivers| drivers.iter().any(|driver| driver["name"] == DRIVER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_time_to_end() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::prepare(&place.path().join("lab")).unwrap();
        let limits = Csi::ALL.map(|csi| {
            let settings = settings(&home, csi);
            settings.lines().find(|line| line.contains("timeout")).map(str::to_owned)
        });
        let limits = limits.each_ref().map(Option::as_deref);
        let (copy, resize) = (Some("--timeout=10m"), Some("--resize-timeout=10m"));
        assert_eq!(limits, [None, copy, None, resize, copy, None]);
    }
}
