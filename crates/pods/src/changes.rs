//! What happened to a pod, a node or a volume, from two looks at it: pure.

use crate::objects::{Attachment, Container, Node, Pod, Terminated};
use tidemark_measure::record::Happened;

/// What happened, and what Kubernetes says of it.
pub(crate) type Change = (Happened, String);

/// What happened to a pod between two looks at it.
pub(crate) fn of_pod(before: &Pod, after: &Pod) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut add = |what, detail: String| changes.push((what, detail));
    if before.spec.node_name.is_empty() && !after.spec.node_name.is_empty() {
        add(Happened::PodScheduled, format!("on {}", after.spec.node_name));
    }
    if let (None, Some(why)) = (evicted(before), evicted(after)) {
        add(Happened::PodEvicted, why);
    }
    if before.metadata.deletion_timestamp.is_none() && after.metadata.deletion_timestamp.is_some() {
        add(Happened::PodDeleted, String::new());
    }
    for container in &after.status.container_statuses {
        let earlier = before.status.container_statuses.iter().find(|one| one.name == container.name);
        if let Some(ended) = newly_ended(earlier, container) {
            let reason = if ended.reason.is_empty() { "ended" } else { &ended.reason };
            let what = match reason {
                "OOMKilled" => Happened::OutOfMemory,
                _ => Happened::ContainerEnded,
            };
            add(what, format!("{}: {reason}, exit code {}", container.name, ended.exit_code));
        }
        let started = |one: &Container| one.state.running.as_ref().map(|running| running.started_at.clone());
        if started(container).is_some() && earlier.and_then(started) != started(container) {
            add(Happened::ContainerStarted, container.name.clone());
        }
    }
    match (before.is_ready(), after.is_ready()) {
        (false, true) => add(Happened::PodReady, String::new()),
        (true, false) => add(Happened::PodNotReady, String::new()),
        _ => {}
    }
    changes
}

/// What happened to a node.
pub(crate) fn of_node(before: &Node, after: &Node) -> Option<Change> {
    let ready = |node: &Node| node.status.conditions.iter().find(|one| one.kind == "Ready").cloned();
    let (before, after) = (ready(before), ready(after)?);
    let was_ready = before.is_none_or(|one| one.status == "True");
    match (was_ready, after.status == "True") {
        (true, false) => Some((Happened::NodeNotReady, after.message)),
        (false, true) => Some((Happened::NodeReady, String::new())),
        _ => None,
    }
}

/// What happened to the attachment of a volume to a node.
pub(crate) fn of_attachment(before: Option<&Attachment>, after: Option<&Attachment>) -> Option<Change> {
    let attached = |one: Option<&Attachment>| one.is_some_and(|one| one.status.attached);
    let at = before.or(after).map_or(String::new(), |one| format!("on {}", one.spec.node_name));
    match (attached(before), attached(after)) {
        (false, true) => Some((Happened::VolumeAttached, at)),
        (true, false) => Some((Happened::VolumeDetached, at)),
        _ => None,
    }
}

/// Why a pod is evicted or preempted, if it is.
fn evicted(pod: &Pod) -> Option<String> {
    // <https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions>
    let disrupted =
        pod.status.conditions.iter().find(|one| one.kind == "DisruptionTarget" && one.status == "True");
    let of_status = || (pod.status.reason == "Evicted").then(|| pod.status.message.clone());
    disrupted.map(|one| one.message.clone()).or_else(of_status)
}

/// How a container ended that had not, or that was started again since.
fn newly_ended<'a>(before: Option<&Container>, after: &'a Container) -> Option<&'a Terminated> {
    let had_ended = before.is_some_and(|one| one.state.terminated.is_some());
    let restarts = before.map_or(0, |one| one.restart_count);
    match &after.state.terminated {
        Some(ended) => (!had_ended).then_some(ended),
        None if after.restart_count > restarts && !had_ended => after.last_state.terminated.as_ref(),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn running(restarts: u32, since: &str, last: &Value, ready: &str) -> Pod {
        read(json!({"metadata": {"name": "db-0"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "db", "restartCount": restarts, "state": {"running": {"startedAt": since}}, "lastState": last}]}}))
    }

    fn names(changes: &[Change]) -> Vec<Happened> {
        changes.iter().map(|(what, _)| *what).collect()
    }

    #[test]
    fn a_pod_that_comes_is_scheduled_started_and_ready() {
        let made = read(json!({"metadata": {"name": "db-0"}, "spec": {}, "status": {"phase": "Pending"}}));
        let there = running(0, "t1", &json!({}), "True");
        let expected = [Happened::PodScheduled, Happened::ContainerStarted, Happened::PodReady];
        assert_eq!(names(&of_pod(&made, &there)), expected);
        assert!(of_pod(&there, &there).is_empty(), "a change of something else is none");
    }

    #[test]
    fn a_container_that_was_started_again_between_two_looks_has_ended() {
        let before = running(0, "t1", &json!({}), "True");
        let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        let after = running(1, "t2", &killed, "False");
        let expected = [Happened::OutOfMemory, Happened::ContainerStarted, Happened::PodNotReady];
        let changes = of_pod(&before, &after);
        assert_eq!(names(&changes), expected);
        assert_eq!(changes[0].1, "db: OOMKilled, exit code 137");
        let ready = running(1, "t2", &killed, "True");
        assert_eq!(names(&of_pod(&after, &ready)), [Happened::PodReady], "it is told once");
    }

    #[test]
    fn an_eviction_is_told_from_a_deletion() {
        let before = running(0, "t1", &json!({}), "True");
        let mut after = running(0, "t1", &json!({}), "True");
        after.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".into());
        assert_eq!(names(&of_pod(&before, &after)), [Happened::PodDeleted]);
        after.status.conditions.push(read(
            json!({"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}),
        ));
        assert_eq!(names(&of_pod(&before, &after)), [Happened::PodEvicted, Happened::PodDeleted]);
    }

    #[test]
    fn a_node_is_not_ready_when_nobody_knows() {
        let node = |status: &str| -> Node {
            read(json!({"metadata": {"name": "n1"}, "status": {"conditions": [
                {"type": "Ready", "status": status, "message": "Kubelet stopped posting node status."}]}}))
        };
        let (ready, unknown) = (node("True"), node("Unknown"));
        let lost = of_node(&ready, &unknown).unwrap();
        assert_eq!(lost, (Happened::NodeNotReady, "Kubelet stopped posting node status.".into()));
        assert_eq!(of_node(&unknown, &ready).map(|one| one.0), Some(Happened::NodeReady));
        assert_eq!(of_node(&ready, &ready), None);
    }

    #[test]
    fn a_volume_is_attached_and_detached() {
        let attachment = |attached: bool| -> Attachment {
            read(json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n1",
                "source": {"persistentVolumeName": "pv"}}, "status": {"attached": attached}}))
        };
        let (not_yet, attached) = (attachment(false), attachment(true));
        let change = of_attachment(Some(&not_yet), Some(&attached));
        assert_eq!(change, Some((Happened::VolumeAttached, "on n1".into())));
        let change = of_attachment(Some(&attached), None);
        assert_eq!(change, Some((Happened::VolumeDetached, "on n1".into())));
        assert_eq!(of_attachment(None, Some(&not_yet)), None);
    }
}
