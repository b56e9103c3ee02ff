//! What is made for a load: one object that owns all others, claims, pods that write or read, snapshots.

use crate::job::Job;
use serde_json::{Value, json};
use tidemark_kubernetes::{MANAGED_BY, RUN};

/// The label that tells objects of lives from those of drivers, and its value.
pub(crate) const COMPONENT: (&str, &str) = ("app.kubernetes.io/component", "volume-life");

/// Where a pod has its volume.
const DATA: &str = "/data";
/// The user and the group of a pod: nobody's on any node.
const USER: u32 = 65532;

/// Whose objects they are.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// The run's name.
    pub(crate) run: String,
    pub(crate) uid: String,
}

/// What a volume is made of.
pub(crate) enum Source<'a> {
    /// Nothing: it is empty.
    Empty,
    Snapshot(&'a str),
    Claim(&'a str),
}

/// What a pod does.
#[derive(Clone, Copy)]
pub(crate) enum Doing {
    Write,
    Read,
}

/// The labels of all objects of a run.
pub(crate) fn labels(run: &str) -> Value {
    json!({MANAGED_BY.0: MANAGED_BY.1, COMPONENT.0: COMPONENT.1, RUN: run, "app.kubernetes.io/name": "tidemark"})
}

/// The object that owns all others: with it they go.
pub(crate) fn owner(run: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": run, "labels": labels(run)},
    })
}

impl Owner {
    fn metadata(&self, name: &str) -> Value {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": self.run, "uid": self.uid});
        json!({"name": name, "labels": labels(&self.run), "ownerReferences": [owner]})
    }

    /// A claim.
    pub(crate) fn claim(&self, name: &str, job: &Job, size: &str, source: &Source<'_>) -> Value {
        let mut spec = json!({
            "storageClassName": job.target.class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        });
        match source {
            Source::Empty => {}
            Source::Snapshot(of) => {
                spec["dataSource"] =
                    json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": of});
            }
            Source::Claim(of) => spec["dataSource"] = json!({"kind": "PersistentVolumeClaim", "name": of}),
        }
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": self.metadata(name), "spec": spec,
        })
    }

    /// A snapshot of a claim.
    pub(crate) fn snapshot(&self, name: &str, class: &str, claim: &str) -> Value {
        json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": self.metadata(name),
            "spec": {"volumeSnapshotClassName": class, "source": {"persistentVolumeClaimName": claim}},
        })
    }

    /// A pod on a claim, whose content follows from `seed`.
    pub(crate) fn pod(&self, name: &str, job: &Job, claim: &str, doing: Doing, seed: u64) -> Value {
        let doing = match doing {
            Doing::Write => "write",
            Doing::Read => "read",
        };
        let (bytes, seed) = (job.bytes.to_string(), seed.to_string());
        let args = ["volume-probe", doing, "--directory", DATA, "--bytes", &bytes, "--seed", &seed];
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": self.metadata(name),
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "terminationGracePeriodSeconds": 0,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
                    "fsGroupChangePolicy": "OnRootMismatch", "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "probe",
                    "image": job.target.image,
                    "imagePullPolicy": "IfNotPresent",
                    "args": args,
                    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [{"name": "data", "mountPath": DATA}],
                    // The last words of one that fails are said where its pod is looked at.
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
            },
        })
    }
}
