//! Ceph, asked through Rook's toolbox: `ceph` runs in its pod.

use crate::cluster::State;
use crate::error::why;
use crate::objects::Pod;
use crate::trouble::of_pod;
use std::sync::Arc;
use std::time::Duration;
use tidemark_apiserver::Client;
use tidemark_observe::CephCluster;

/// The label of the toolbox's pod (`deploy/examples/toolbox.yaml` of Rook).
const LABEL: &str = "app%3Drook-ceph-tools";

/// How long a command may take, and how long of it `ceph` may look for a monitor.
const PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: &str = "--connect-timeout=10";

/// The cluster whose toolbox is in a namespace. Nothing is sent yet.
pub(crate) fn ceph(client: &Arc<Client>, namespace: &str) -> CephCluster {
    let (client, place) = (Arc::clone(client), namespace.to_owned());
    CephCluster {
        name: format!("Ceph in {namespace}"),
        source: format!("toolbox in {namespace}"),
        ceph: Arc::new(move |arguments| run(&client, &place, arguments)),
    }
}

fn run(client: &Client, namespace: &str, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let found = client.list::<Pod>(&pods, &format!("labelSelector={LABEL}"));
    let found = found.map_err(|failure| {
        let why = why(&failure, namespace, "resources: [pods], verbs: [list]");
        format!("the pods in the namespace {namespace} cannot be listed: {why}")
    })?;
    let pod = &chosen(&found, namespace)?.metadata.name;
    let command: Vec<&str> = ["ceph", CONNECT].iter().chain(arguments).copied().collect();
    let ran = client.exec(&format!("{pods}/{pod}"), None, &command, PATIENCE).map_err(|failure| {
        let why = why(&failure, namespace, "resources: [pods/exec], verbs: [get, create]");
        format!("no command can be run in the pod {pod}: {why}")
    })?;
    // Where one daemon does not reply, what the others told is of use.
    match ran.failed {
        Some(failed) if ran.stdout.trim_ascii().is_empty() => {
            let said = String::from_utf8_lossy(&ran.stderr);
            let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(&failed);
            Err(format!("`ceph {}` in the pod {pod} has failed: {said}", arguments.join(" ")))
        }
        _ => Ok(ran.stdout),
    }
}

/// The pod that is asked.
fn chosen<'a>(pods: &'a [Pod], namespace: &str) -> Result<&'a Pod, String> {
    let ready = pods.iter().find(|pod| pod.is_ready());
    ready.ok_or_else(|| match pods.first() {
        None => format!(
            "there is no toolbox in the namespace {namespace}, which is a pod with the label app=rook-ceph-tools: apply toolbox.yaml of Rook"
        ),
        Some(pod) => {
            let trouble = of_pod(pod, &State::default());
            let why = trouble.map_or_else(|| format!("pod {}", pod.metadata.name), |trouble| trouble.text);
            format!("the toolbox in the namespace {namespace} is not ready: {why}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_that_is_ready_is_asked() {
        let pod = |name: &str, ready: &str| -> Pod {
            let conditions = [json!({"type": "Ready", "status": ready})];
            let status = json!({"phase": "Running", "conditions": conditions});
            serde_json::from_value(json!({"metadata": {"name": name}, "status": status})).unwrap()
        };
        let pods = [pod("old", "False"), pod("new", "True")];
        assert_eq!(chosen(&pods, "rook-ceph").unwrap().metadata.name, "new");
        let why = chosen(&pods[..1], "rook-ceph").unwrap_err();
        assert_eq!(why, "the toolbox in the namespace rook-ceph is not ready: pod old");
        assert!(
            chosen(&[], "rook-ceph")
                .unwrap_err()
                .starts_with("there is no toolbox in the namespace rook-ceph")
        );
    }
}
