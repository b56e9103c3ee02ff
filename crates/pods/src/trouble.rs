//! Why a pod does not come, from what Kubernetes says of it, of its claim and of what makes it.

use crate::cluster::State;
use crate::made::Made;
use crate::objects::{Event, Pod, Terminated};
use std::time::Duration;

/// How long an image may fail to come before nobody waits for it.
const PULL: Duration = Duration::from_secs(60);

/// Why a pod does not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The object and what is wrong with it: a sentence without its end.
    pub(crate) text: String,
    /// How long it may last; `None`: as long as pods are waited for.
    pub(crate) patience: Option<Duration>,
    /// Whether nothing is wrong yet: it takes its time.
    is_usual: bool,
}

/// What keeps the `count` pods of a run from coming, the gravest first; `owner` is the kind of what makes them. Pods that run have no
/// trouble that Kubernetes knows of.
pub(crate) fn troubles(made: Made, run: &str, count: u32, state: &State) -> Vec<Trouble> {
    let mut all: Vec<_> = state.pods.iter().filter_map(|pod| of_pod(pod, state)).collect();
    if state.pods.len() < count as usize {
        let owner = made.owner().name;
        let of_makers = made.makers().map(|suffix| latest(&state.events, owner, &format!("{run}{suffix}")));
        all.push(match of_makers.flatten().max_by_key(|event| urgency(event)) {
            Some(event) => lasting(format!("{owner} {}: {}", event.involved_object.name, said(event))),
            None => usual(format!("{owner} {run} has made {} of {count} pods", state.pods.len())),
        });
    }
    // Those that do not pass come first, and those that nobody has to do anything about last; the order of the others is that of the pods.
    all.sort_by_key(|trouble| (trouble.patience.unwrap_or(Duration::MAX), trouble.is_usual));
    all
}

fn lasting(text: String) -> Trouble {
    Trouble { text, patience: None, is_usual: false }
}

fn usual(text: String) -> Trouble {
    Trouble { text, patience: None, is_usual: true }
}

fn for_good(text: String) -> Trouble {
    Trouble { text, patience: Some(Duration::ZERO), is_usual: false }
}

/// What keeps one pod from coming.
pub(crate) fn of_pod(pod: &Pod, state: &State) -> Option<Trouble> {
    let (name, status) = (&pod.metadata.name, &pod.status);
    let container = status.container_statuses.first();
    // One that is started again has ended, too, and does no better the next time.
    if let Some(terminated) = container.and_then(|container| container.ended()) {
        return Some(for_good(format!("pod {name} has ended: {}", last_words(terminated))));
    }
    match status.phase.as_str() {
        "Running" => return None,
        "Failed" | "Succeeded" => {
            let said =
                [&status.message, &status.reason, &status.phase].into_iter().find(|text| !text.is_empty());
            return Some(for_good(format!("pod {name} has ended: {}", said.map_or("", String::as_str))));
        }
        _ => {}
    }
    let waiting = container.and_then(|container| Some((container, container.state.waiting.as_ref()?)));
    if let Some((container, waiting)) = waiting {
        let (reason, message) = (waiting.reason.as_str(), &waiting.message);
        let patience = match reason {
            "InvalidImageName" | "ErrImageNeverPull" => Some(Duration::ZERO),
            "ErrImagePull" | "ImagePullBackOff" | "RegistryUnavailable" => Some(PULL),
            _ => None,
        };
        if patience.is_some() {
            let text =
                format!("pod {name}: the image {} cannot be pulled ({reason}): {message}", container.image);
            return Some(Trouble { text, patience, is_usual: false });
        }
        if !matches!(reason, "ContainerCreating" | "PodInitializing" | "") {
            return Some(lasting(format!("pod {name}: {reason}: {message}")));
        }
    }
    // A claim is named after its pod and the volume, in an order that depends on who makes it.
    let is_of_pod = |claim: &str| {
        let rest = claim.strip_prefix(name.as_str()).map(|rest| rest.starts_with('-'));
        rest.unwrap_or(false) || claim.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('-'))
    };
    let mut claims = state.claims.iter().map(|claim| (&claim.metadata.name, &claim.status.phase));
    let unbound = claims.find(|(claim, phase)| *phase != "Bound" && is_of_pod(claim));
    let unbound = unbound.map(|(claim, _)| (claim, latest(&state.events, "PersistentVolumeClaim", claim)));
    let mut conditions = status.conditions.iter();
    let unscheduled = conditions.find(|one| one.kind == "PodScheduled" && one.status == "False");
    match (unscheduled, unbound) {
        // The scheduler waits for the claim, and what holds that up is said there.
        (Some(condition), Some((claim, Some(event))))
            if condition.message.to_ascii_lowercase().contains("persistentvolumeclaim") =>
        {
            return Some(lasting(format!("claim {claim} is not bound: {}", said(event))));
        }
        (Some(condition), _) => {
            return Some(lasting(format!("pod {name} is Pending: {}", condition.message)));
        }
        (None, Some((claim, Some(event)))) => {
            return Some(lasting(format!("claim {claim} is not bound: {}", said(event))));
        }
        _ => {}
    }
    // What kept it from getting a node does so no longer.
    let is_over = |event: &&Event| event.reason == "FailedScheduling" && !pod.spec.node_name.is_empty();
    let event = latest(&state.events, "Pod", name).filter(|event| !is_over(event));
    Some(match (event, unbound) {
        (Some(event), _) => lasting(format!("pod {name}: {}", said(event))),
        (None, Some((claim, _))) => usual(format!("claim {claim} is not bound yet")),
        (None, None) => usual(format!("pod {name} is being started")),
    })
}

/// How a container ended, and what it said last.
fn last_words(ended: &Terminated) -> String {
    let reason = if ended.reason.is_empty() { "Error" } else { &ended.reason };
    match ended.message.lines().rfind(|line| !line.trim().is_empty()) {
        Some(last) => format!("{reason}, exit code {}: {}", ended.exit_code, last.trim()),
        None => format!("{reason}, exit code {}", ended.exit_code),
    }
}

/// What is later is more urgent; a warning is most so, because whoever tries again says in between that it waits.
fn urgency(event: &Event) -> (bool, Option<String>) {
    (event.kind == "Warning", event.last_timestamp.clone().or_else(|| event.event_time.clone()))
}

/// The latest event of an object, or the latest warning.
pub(crate) fn latest<'a>(events: &'a [Event], kind: &str, name: &str) -> Option<&'a Event> {
    let about = |event: &&Event| event.involved_object.kind == kind && event.involved_object.name == name;
    events.iter().filter(about).max_by_key(|event| urgency(event))
}

pub(crate) fn said(event: &Event) -> String {
    format!("{}: {}", event.reason, event.message.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn state(pods: Value, claims: Value, events: Value) -> State {
        State {
            pods: serde_json::from_value(pods).unwrap(),
            claims: serde_json::from_value(claims).unwrap(),
            events: serde_json::from_value(events).unwrap(),
        }
    }

    fn pod(name: &str, status: &Value) -> Value {
        json!({"metadata": {"name": name}, "status": status})
    }

    fn warning(kind: &str, name: &str, reason: &str, message: &str, at: &str) -> Value {
        json!({"type": "Warning", "involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message,
            "lastTimestamp": at, "eventTime": null})
    }

    fn said(count: u32, state: &State) -> Vec<(String, Option<u64>)> {
        let troubles = troubles(Made::Drivers, "run", count, state).into_iter();
        troubles.map(|one| (one.text, one.patience.map(|patience| patience.as_secs()))).collect()
    }

    #[test]
    fn what_kubernetes_says_is_passed_on_with_the_object() {
        let waiting = |reason: &str, message: &str| {
            json!({"phase": "Pending", "containerStatuses": [
                {"image": "tidemark:1", "state": {"waiting": {"reason": reason, "message": message}}}]})
        };
        let unscheduled = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}]});
        let starting = json!({"metadata": {"name": "run-7-h"}, "spec": {"nodeName": "n"}, "status": {"phase": "Pending"}});
        let pods = json!([
            starting,
            pod("run-0-a", &json!({"phase": "Running"})),
            pod("run-1-b", &unscheduled),
            pod("run-2-c", &waiting("ImagePullBackOff", "not found")),
            pod("run-3-d", &waiting("ContainerCreating", "")),
            pod(
                "run-4-e",
                &json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                "message": "pod has unbound immediate PersistentVolumeClaims"}]})
            ),
            pod(
                "run-6-g",
                &json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                "message": "waiting for ephemeral volume controller to create the persistentvolumeclaim \"run-6-g-data\""}]})
            ),
            pod(
                "run-5-f",
                &json!({"phase": "Failed", "containerStatuses": [{"image": "tidemark:1", "state":
                {"terminated": {"exitCode": 3, "reason": "Error", "message": "first\ntidemark: it is refused\n"}}}]})
            ),
        ]);
        let claims = json!([
            {"metadata": {"name": "run-4-e-data"}, "status": {"phase": "Pending"}},
            {"metadata": {"name": "run-6-g-data"}, "status": {"phase": "Pending"}},
            {"metadata": {"name": "run-1-b-data"}, "status": {"phase": "Bound"}},
        ]);
        let warnings = json!([
            warning(
                "PersistentVolumeClaim",
                "run-4-e-data",
                "ProvisioningFailed",
                "old",
                "2026-01-01T00:00:00Z"
            ),
            warning(
                "PersistentVolumeClaim",
                "run-4-e-data",
                "ProvisioningFailed",
                "no room",
                "2026-01-01T00:00:09Z"
            ),
            warning(
                "PersistentVolumeClaim",
                "run-6-g-data",
                "ProvisioningFailed",
                "no devices",
                "2026-01-01T00:00:00Z"
            ),
            json!({"type": "Normal", "involvedObject": {"kind": "PersistentVolumeClaim", "name": "run-6-g-data"},
                "reason": "ExternalProvisioning", "message": "Waiting", "lastTimestamp": "2026-01-01T00:00:09Z"}),
            warning("Pod", "run-3-d", "FailedMount", "secret \"run\" not found", "2026-01-01T00:00:00Z"),
            warning("Pod", "run-7-h", "FailedScheduling", "it waits for its claim", "2026-01-01T00:00:00Z"),
            warning("Job", "run", "FailedCreate", "exceeded quota", "2026-01-01T00:00:00Z"),
        ]);
        let state = state(pods, claims, warnings);
        let expected = [
            ("pod run-5-f has ended: Error, exit code 3: tidemark: it is refused", Some(0)),
            ("pod run-2-c: the image tidemark:1 cannot be pulled (ImagePullBackOff): not found", Some(60)),
            ("pod run-1-b is Pending: 0/1 nodes are available: 1 Insufficient cpu.", None),
            ("pod run-3-d: FailedMount: secret \"run\" not found", None),
            ("claim run-4-e-data is not bound: ProvisioningFailed: no room", None),
            ("claim run-6-g-data is not bound: ProvisioningFailed: no devices", None),
            ("pod run-7-h is being started", None),
        ];
        let expected: Vec<_> =
            expected.into_iter().map(|(text, patience)| (text.to_owned(), patience)).collect();
        assert_eq!(said(8, &state), expected);
        let missing = ("Job run: FailedCreate: exceeded quota".to_owned(), None);
        assert!(said(9, &state).contains(&missing));
    }

    #[test]
    fn workers_that_are_not_made_are_missed() {
        let failed = |name: &str, why: &str, at: &str| warning("StatefulSet", name, "FailedCreate", why, at);
        let said_of = |warnings: Value| {
            let pods = json!([pod("run-0", &json!({"phase": "Running"}))]);
            let all = troubles(Made::Trino, "run", 3, &state(pods, json!([]), warnings));
            all.into_iter().map(|one| one.text).collect::<Vec<_>>()
        };
        let workers = failed("run-worker", "exceeded quota", "2026-01-01T00:00:09Z");
        let expected = ["StatefulSet run-worker: FailedCreate: exceeded quota"];
        assert_eq!(said_of(json!([workers])), expected);
        let before = failed("run", "it is over", "2026-01-01T00:00:00Z");
        assert_eq!(said_of(json!([before, workers])), expected, "the latest is said");
    }
}
