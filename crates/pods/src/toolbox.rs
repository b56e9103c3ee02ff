//! Ceph, asked through Rook's toolbox: `ceph` runs in its pod.

use crate::cluster::State;
use crate::error::why;
use crate::objects::Pod;
use crate::trouble::of_pod;
use std::sync::Arc;
use std::time::Duration;
use tidemark_apiserver::{Client, Failed, Ran};
use tidemark_observe::{CephCluster, Printed};

/// The label of the toolbox's pod (`deploy/examples/toolbox.yaml` of Rook).
const LABEL: &str = "app%3Drook-ceph-tools";

/// How `ceph` is run: it asks one daemon after the other and waits for each, so it is ended after 14 s, of which it may look for a monitor
/// for 10. What it has printed by then is kept, and no process stays in the toolbox.
const CEPH: [&str; 6] = ["timeout", "-k", "1", "14", "ceph", "--connect-timeout=10"];

/// What `timeout` exits with when it had to end a command, and when that had to be killed.
const ENDED: [i32; 2] = [124, 137];

/// How long a command may take: longer than the toolbox lets it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The cluster whose toolbox is in a namespace. Nothing is sent yet.
pub(crate) fn ceph(client: &Arc<Client>, namespace: &str) -> CephCluster {
    let (client, place) = (Arc::clone(client), namespace.to_owned());
    CephCluster {
        name: format!("Ceph in {namespace}"),
        source: format!("toolbox in {namespace}"),
        ceph: Arc::new(move |arguments| run(&client, &place, arguments)),
    }
}

fn run(client: &Client, namespace: &str, arguments: &[&str]) -> Result<Printed, String> {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let found = client.list::<Pod>(&pods, &format!("labelSelector={LABEL}"));
    let found = found.map_err(|failure| {
        let why = why(&failure, namespace, "resources: [pods], verbs: [list]");
        format!("the pods in the namespace {namespace} cannot be listed: {why}")
    })?;
    let pod = &chosen(&found, namespace)?.metadata.name;
    let command: Vec<&str> = CEPH.iter().chain(arguments).copied().collect();
    let ran = client.exec(&format!("{pods}/{pod}"), None, &command, PATIENCE).map_err(|failure| {
        let why = why(&failure, namespace, "resources: [pods/exec], verbs: [get, create]");
        format!("no command can be run in the pod {pod}: {why}")
    })?;
    printed(ran, &format!("`ceph {}` in the pod {pod}", arguments.join(" ")))
}

/// What a command has printed. Where one daemon does not reply, what those before it told is of use.
fn printed(ran: Ran, command: &str) -> Result<Printed, String> {
    let why = ran.failed.map(|Failed { code, why }| {
        let said = String::from_utf8_lossy(&ran.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let said: Vec<_> = said.lines().filter(|line| line.starts_with("Error")).collect();
        match (said.as_slice(), last) {
            _ if code.is_some_and(|code| ENDED.contains(&code)) => {
                format!("{command} was ended after 14 s, before all daemons had replied")
            }
            ([], last) => format!("{command} has failed: {}", last.unwrap_or(&why)),
            (said, _) => format!("{command} has failed: {}", said.join("; ")),
        }
    });
    match why {
        Some(why) if ran.stdout.trim_ascii().is_empty() => Err(why),
        why => Ok(Printed { text: ran.stdout, why }),
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
    fn what_others_told_is_kept_where_one_does_not_reply() {
        let ran = |stdout: &str, stderr: &str, code: Option<i32>| {
            let (stdout, stderr) = (stdout.as_bytes().to_vec(), stderr.as_bytes().to_vec());
            let failed = code.map(|code| Failed { code: Some(code), why: format!("it ended with {code}") });
            printed(Ran { stdout, stderr, failed }, "`ceph`")
        };
        let of = |text: &str, why: Option<&str>| {
            Ok(Printed { text: text.as_bytes().to_vec(), why: why.map(str::to_owned) })
        };
        assert_eq!(ran("osd.0: {}", "it is old", None), of("osd.0: {}", None));
        let (enxio, code) = ("Error ENXIO: osd.3 is down", Some(6));
        let why = "`ceph` has failed: Error ENXIO: osd.3 is down";
        assert_eq!(ran("osd.0: {}", &format!("{enxio}\nother\n"), code), of("osd.0: {}", Some(why)));
        assert_eq!(ran("\n", &format!("{enxio}\n"), code), Err(why.to_owned()));
        assert_eq!(ran("", "", code), Err("`ceph` has failed: it ended with 6".to_owned()));
        let late = "`ceph` was ended after 14 s, before all daemons had replied";
        assert_eq!(ran("osd.0: {}", "", Some(124)), of("osd.0: {}", Some(late)));
        assert_eq!(ran("", "Error EINTR: x", Some(137)), Err(late.to_owned()));
        assert!(CEPH.contains(&"14") && PATIENCE > Duration::from_secs(14 + 1));
    }

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
