//! What watches have said so far: when each thing was first seen of each object. Pure: events and their arrival in, times out.

use crate::objects::{Attachment, Claim, Pod, Snapshot, Volume};
use std::collections::HashMap;
use std::time::Instant;
use tidemark_apiserver::Change;

/// Where the scheduler writes the node that it has chosen for a class that waits for its first consumer.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// What is known of all objects of a load, by their names.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) claims: HashMap<String, ClaimSeen>,
    pub(crate) pods: HashMap<String, PodSeen>,
    /// When a volume that was there was gone.
    pub(crate) volumes: HashMap<String, Option<Instant>>,
    /// When a volume was first attached.
    pub(crate) attached: HashMap<String, Instant>,
    pub(crate) snapshots: HashMap<String, SnapshotSeen>,
}

/// A claim.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimSeen {
    /// When a node was chosen for it.
    pub(crate) selected: Option<Instant>,
    pub(crate) bound: Option<Instant>,
    /// The volume that it is bound to.
    pub(crate) volume: String,
    /// When it had the size that it asks for, after it asked for another one.
    pub(crate) grown: Option<Instant>,
    pub(crate) gone: Option<Instant>,
    asked: String,
}

/// A pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSeen {
    pub(crate) scheduled: Option<Instant>,
    /// When its volume was mounted and its network made.
    pub(crate) mounted: Option<Instant>,
    /// When its program was first seen to run, or to have run.
    pub(crate) started: Option<Instant>,
    pub(crate) ended: Option<Ended>,
    pub(crate) gone: Option<Instant>,
}

/// How a pod has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) at: Instant,
    pub(crate) is_good: bool,
    /// What its program left behind, or why Kubernetes ended it.
    pub(crate) message: String,
}

/// A snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SnapshotSeen {
    pub(crate) ready: Option<Instant>,
    pub(crate) gone: Option<Instant>,
}

impl Seen {
    /// Something happened to a claim, which arrived at `at`.
    pub(crate) fn claim(&mut self, change: &Change<Claim>, at: Instant) {
        let claim = change.object();
        let seen = self.claims.entry(claim.metadata.name.clone()).or_default();
        if let Change::Deleted(_) = change {
            seen.gone.get_or_insert(at);
            return;
        }
        if claim.metadata.annotations.contains_key(SELECTED_NODE) {
            seen.selected.get_or_insert(at);
        }
        if claim.status.phase == "Bound" {
            seen.bound.get_or_insert(at);
            seen.volume.clone_from(&claim.spec.volume_name);
        }
        let of = |sizes: &std::collections::BTreeMap<String, String>| {
            sizes.get("storage").cloned().unwrap_or_default()
        };
        let asked = of(&claim.spec.resources.requests);
        let asks_anew = !seen.asked.is_empty() && seen.asked != asked;
        if seen.asked.is_empty() {
            seen.asked.clone_from(&asked);
        }
        // What is left is done when a pod mounts it the next time.
        let is_pending =
            |name: &str| claim.status.conditions.iter().any(|one| one.kind == name && one.status == "True");
        if asks_anew && (of(&claim.status.capacity) == asked || is_pending("FileSystemResizePending")) {
            seen.grown.get_or_insert(at);
        }
    }

    /// Something happened to a pod.
    pub(crate) fn pod(&mut self, change: &Change<Pod>, at: Instant) {
        let pod = change.object();
        let seen = self.pods.entry(pod.metadata.name.clone()).or_default();
        let is_true =
            |kind: &str| pod.status.conditions.iter().any(|one| one.kind == kind && one.status == "True");
        if is_true("PodScheduled") {
            seen.scheduled.get_or_insert(at);
        }
        // kubelet makes a pod's network when all its volumes are mounted, and takes both down when it has ended.
        if is_true("PodReadyToStartContainers") {
            seen.mounted.get_or_insert(at);
        }
        let state = pod.status.container_statuses.first().map(|container| &container.state);
        let terminated = state.and_then(|state| state.terminated.as_ref());
        if terminated.is_some() || state.is_some_and(|state| state.running.is_some()) {
            seen.mounted.get_or_insert(at);
            seen.started.get_or_insert(at);
        }
        if seen.ended.is_none() {
            let status = &pod.status;
            seen.ended = match terminated {
                Some(end) => Some(Ended {
                    at,
                    is_good: end.exit_code == 0,
                    message: match end.message.is_empty() {
                        true => format!("{}, exit code {}", end.reason, end.exit_code),
                        false => end.message.clone(),
                    },
                }),
                // Evicted, or its node refused it: no program has run.
                None if status.phase == "Failed" => Some(Ended {
                    at,
                    is_good: false,
                    message: format!("{}: {}", status.reason, status.message),
                }),
                None => None,
            };
        }
        if let Change::Deleted(_) = change {
            seen.gone.get_or_insert(at);
        }
    }

    /// Something happened to a volume, of this load or of others.
    pub(crate) fn volume(&mut self, change: &Change<Volume>, at: Instant) {
        let name = change.object().metadata.name.clone();
        match change {
            Change::Deleted(_) => _ = self.volumes.entry(name).or_default().get_or_insert(at),
            _ => _ = self.volumes.entry(name).or_default(),
        }
    }

    /// Something happened to an attachment, of this load or of others.
    pub(crate) fn attachment(&mut self, change: &Change<Attachment>, at: Instant) {
        let Attachment { spec, status } = change.object();
        let volume = spec.source.persistent_volume_name.as_ref();
        if let Some(volume) = volume.filter(|_| status.attached) {
            self.attached.entry(volume.clone()).or_insert(at);
        }
    }

    /// Something happened to a snapshot.
    pub(crate) fn snapshot(&mut self, change: &Change<Snapshot>, at: Instant) {
        let snapshot = change.object();
        let seen = self.snapshots.entry(snapshot.metadata.name.clone()).or_default();
        if let Change::Deleted(_) = change {
            seen.gone.get_or_insert(at);
        } else if snapshot.status.as_ref().is_some_and(|status| status.ready_to_use == Some(true)) {
            seen.ready.get_or_insert(at);
        }
    }

    /// A list of all claims is in `names`: others that were known are gone, and the watch has missed it.
    pub(crate) fn claims_are(&mut self, names: &[String], at: Instant) {
        let gone = |(name, seen): (&String, &mut ClaimSeen)| {
            if !names.contains(name) {
                seen.gone.get_or_insert(at);
            }
        };
        self.claims.iter_mut().for_each(gone);
    }

    /// The same of pods.
    pub(crate) fn pods_are(&mut self, names: &[String], at: Instant) {
        for (_, seen) in self.pods.iter_mut().filter(|(name, _)| !names.contains(name)) {
            seen.gone.get_or_insert(at);
        }
    }

    /// The same of volumes.
    pub(crate) fn volumes_are(&mut self, names: &[String], at: Instant) {
        for (_, gone) in self.volumes.iter_mut().filter(|(name, _)| !names.contains(name)) {
            gone.get_or_insert(at);
        }
    }

    /// The same of snapshots.
    pub(crate) fn snapshots_are(&mut self, names: &[String], at: Instant) {
        for (_, seen) in self.snapshots.iter_mut().filter(|(name, _)| !names.contains(name)) {
            seen.gone.get_or_insert(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }

    /// Events as a watch on a class that waits for its first consumer has given them, a millisecond apart.
    #[test]
    fn a_class_that_waits_is_bound_after_its_node_is_chosen() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let claim = |phase: &str, annotations: Value, volume: &str| -> Claim {
            read(json!({
                "metadata": {"name": "r-1", "annotations": annotations},
                "spec": {"volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
                "status": {"phase": phase},
            }))
        };
        let mut seen = Seen::default();
        seen.claim(&Change::Added(claim("Pending", json!({}), "")), at(1));
        seen.claim(&Change::Modified(claim("Pending", json!({SELECTED_NODE: "node"}), "")), at(2));
        seen.claim(&Change::Modified(claim("Bound", json!({SELECTED_NODE: "node"}), "pv-1")), at(3));
        seen.claim(&Change::Modified(claim("Bound", json!({SELECTED_NODE: "node"}), "pv-1")), at(4));
        let known = seen.claims["r-1"].clone();
        assert_eq!((known.selected, known.bound, known.gone), (Some(at(2)), Some(at(3)), None));
        assert_eq!((known.volume.as_str(), known.grown), ("pv-1", None));
        seen.claim(&Change::Deleted(claim("Bound", json!({}), "pv-1")), at(5));
        assert_eq!(seen.claims["r-1"].gone, Some(at(5)));
    }

    #[test]
    fn a_pod_that_ended_between_two_events_has_started_too() {
        let at = Instant::now();
        let pod = |state: Value| -> Pod {
            read(json!({
                "metadata": {"name": "r-1"},
                "status": {
                    "phase": "Running",
                    "conditions": [{"type": "PodScheduled", "status": "True"}],
                    "containerStatuses": [{"state": state}],
                },
            }))
        };
        let mut seen = Seen::default();
        seen.pod(&Change::Added(pod(json!({"waiting": {"reason": "ContainerCreating"}}))), at);
        assert!(seen.pods["r-1"].scheduled.is_some() && seen.pods["r-1"].mounted.is_none());
        let ended = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "no space"}});
        seen.pod(&Change::Modified(pod(ended)), at);
        let known = &seen.pods["r-1"];
        assert!((known.mounted, known.started, known.gone) == (Some(at), Some(at), None));
        let ended = known.ended.as_ref().unwrap();
        assert_eq!((ended.is_good, ended.message.as_str()), (false, "no space"));
    }

    #[test]
    fn a_volume_has_grown_when_it_has_what_was_asked_for_last() {
        let at = Instant::now();
        let claim = |asked: &str, has: &str, conditions: Value| -> Claim {
            read(json!({
                "metadata": {"name": "r-1"},
                "spec": {"resources": {"requests": {"storage": asked}}},
                "status": {"phase": "Bound", "capacity": {"storage": has}, "conditions": conditions},
            }))
        };
        let pending = json!([{"type": "FileSystemResizePending", "status": "True"}]);
        for (has, conditions, expected) in
            [("1Gi", json!([]), None), ("2Gi", json!([]), Some(at)), ("1Gi", pending, Some(at))]
        {
            let mut seen = Seen::default();
            seen.claim(&Change::Added(claim("1Gi", "1Gi", json!([]))), at);
            assert_eq!(seen.claims["r-1"].grown, None, "nobody asked for more");
            seen.claim(&Change::Modified(claim("2Gi", has, conditions)), at);
            assert_eq!(seen.claims["r-1"].grown, expected);
        }
    }

    #[test]
    fn what_a_list_does_not_have_is_gone() {
        let at = Instant::now();
        let volume = |name: &str| -> Volume { read(json!({"metadata": {"name": name}})) };
        let mut seen = Seen::default();
        seen.volume(&Change::Added(volume("a")), at);
        seen.volume(&Change::Added(volume("b")), at);
        seen.volumes_are(&["b".to_owned()], at);
        assert_eq!((seen.volumes["a"], seen.volumes["b"]), (Some(at), None));
    }
}
