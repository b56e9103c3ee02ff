//! The observers of a cluster's nodes (`tidemark kubernetes observers`): found by their label, asked with what is in their Secret.

use crate::cluster::State;
use crate::error::why;
use crate::objects::Pod;
use crate::trouble::of_pod;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tidemark_apiserver::Client;
use tidemark_observe::{Access, POD_LABELS, RemoteNode, SECRET};

/// The observers of a cluster.
// Not `Debug`: it holds a token.
#[derive(Default)]
pub struct Observers {
    /// Those that are ready, each for the node that it is on.
    pub ready: Vec<RemoteNode>,
    /// Nodes that are not observed, each with why: a whole sentence.
    pub missing: Vec<(String, String)>,
}

/// Where they are looked for.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    /// Whether the document says so: then they are missed if there are none.
    pub(crate) is_named: bool,
}

impl Place {
    /// What there is now. `nodes` are those that are missed without an observer.
    pub(crate) fn look(&self, client: &Client, nodes: &BTreeSet<String>) -> Observers {
        let namespace = &self.namespace;
        let of = |kind: &str| format!("/api/v1/namespaces/{namespace}/{kind}");
        let pods = match client.list::<Pod>(&of("pods"), &format!("labelSelector={POD_LABELS}")) {
            Ok(pods) => pods,
            Err(failure) => {
                let why = why(&failure, namespace, "resources: [pods], verbs: [list]");
                return none(
                    nodes,
                    &format!("The observers in the namespace {namespace} cannot be listed: {why}."),
                );
            }
        };
        if pods.is_empty() {
            let advice =
                format!("`tidemark kubernetes observers --namespace {namespace}` prints what to apply");
            return match self.is_named {
                true => {
                    none(nodes, &format!("There are no observers in the namespace {namespace}: {advice}."))
                }
                false => Observers::default(),
            };
        }
        let secret = client.ask("GET", &of(&format!("secrets/{SECRET}")), None);
        let access = match secret {
            Ok(secret) => access(&secret).ok_or_else(|| {
                format!("the Secret {SECRET} in the namespace {namespace} is not that of `tidemark kubernetes observers`")
            }),
            Err(failure) => {
                let rule = format!("resources: [secrets], resourceNames: [{SECRET}], verbs: [get]");
                Err(format!("their Secret cannot be read: {}", why(&failure, namespace, &rule)))
            }
        };
        sorted(&pods, &access, namespace, nodes)
    }
}

/// Nobody observes these.
fn none(nodes: &BTreeSet<String>, why: &str) -> Observers {
    let named = nodes.iter().map(String::as_str);
    let named: Vec<_> = if nodes.is_empty() { vec!["Kubernetes"] } else { named.collect() };
    let missing = named.into_iter().map(|node| (node.to_owned(), why.to_owned())).collect();
    Observers { ready: Vec::new(), missing }
}

/// What the Secret says, if it is theirs.
fn access(secret: &Value) -> Option<Access> {
    let value = |key: &str| BASE64_STANDARD.decode(secret["data"][key].as_str()?).ok();
    Access::read(&value("token")?, &value("tls.crt")?)
}

fn sorted(
    pods: &[Pod],
    access: &Result<Access, String>,
    namespace: &str,
    nodes: &BTreeSet<String>,
) -> Observers {
    let lone = |node: &String| {
        (node.clone(), Err(format!("None of the observers in the namespace {namespace} is on it.")))
    };
    let mut all: BTreeMap<String, Result<RemoteNode, String>> = nodes.iter().map(lone).collect();
    // While one takes the place of another, both are there: the last word has the one that is ready.
    let (ready, others): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| pod.is_ready());
    for pod in others.into_iter().chain(ready) {
        let name = node_of(pod);
        let asked = match (access, address(pod)) {
            (Ok(access), Some((host, port))) if pod.is_ready() => Ok(access.node(&name, host, port)),
            (Err(why), _) if pod.is_ready() => Err(format!("Its observer is not asked: {why}.")),
            _ => {
                let trouble = of_pod(pod, &State::default());
                let why =
                    trouble.map_or_else(|| format!("pod {}", pod.metadata.name), |trouble| trouble.text);
                Err(format!("Its observer is not ready: {why}."))
            }
        };
        all.insert(name, asked);
    }
    let mut observers = Observers::default();
    for (name, asked) in all {
        match asked {
            Ok(node) => observers.ready.push(node),
            Err(why) => observers.missing.push((name, why)),
        }
    }
    observers
}

/// The node of a pod; of one that is not scheduled yet, the one for which its DaemonSet has made it.
fn node_of(pod: &Pod) -> String {
    // <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled>
    const MEANT: &str = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
    let meant = || pod.spec.affinity.pointer(MEANT).and_then(Value::as_str).unwrap_or(&pod.metadata.name);
    Some(pod.spec.node_name.as_str()).filter(|name| !name.is_empty()).unwrap_or_else(meant).to_owned()
}

fn address(pod: &Pod) -> Option<(IpAddr, u16)> {
    let port = pod.spec.containers.iter().find_map(|container| container.ports.first())?;
    Some((pod.status.host_ip.parse().ok()?, port.container_port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, node: &str, ready: &str) -> Pod {
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]}]}}});
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node, "affinity": affinity, "containers": [{"ports": [{"containerPort": 9751}]}]},
            "status": {"phase": "Running", "hostIP": "fd00::2", "conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    fn nodes(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_node_has_the_observer_that_is_ready_on_it_and_others_say_why_not() {
        let certified = rcgen::generate_simple_self_signed(["x".to_owned()]).unwrap();
        let encoded = |text: &str| BASE64_STANDARD.encode(text);
        let secret =
            json!({"data": {"token": encoded("a token"), "tls.crt": encoded(&certified.cert.pem())}});
        let access = Ok(access(&secret).unwrap());
        let pods = [
            pod("old", "n1", "False"),
            pod("new", "n1", "True"),
            pod("late", "n1", "False"),
            pod("waits", "", "False"),
        ];
        let Observers { ready, missing } = sorted(&pods, &access, "bench", &nodes(&["n1", "n2"]));
        let [node] = ready.as_slice() else { panic!("{}", ready.len()) };
        assert_eq!((node.name.as_deref(), node.token.as_deref()), (Some("n1"), Some("a token")));
        assert!(node.url.starts_with("https://[fd00::2]:9751#sha256:"), "{}", node.url);
        assert_eq!(
            missing,
            [
                ("n2".to_owned(), "None of the observers in the namespace bench is on it.".to_owned()),
                ("n3".to_owned(), "Its observer is not ready: pod waits.".to_owned()),
            ]
        );
        let refused = sorted(&pods, &Err("their Secret is locked".into()), "bench", &nodes(&[]));
        let said = ("n1".to_owned(), "Its observer is not asked: their Secret is locked.".to_owned());
        assert!(refused.ready.is_empty() && refused.missing.contains(&said), "{:?}", refused.missing);
        assert!(super::access(&json!({"data": {"token": encoded("a token")}})).is_none());
    }

    #[test]
    fn what_nobody_observes_is_said_of_each_node_or_once() {
        let named =
            |nodes| none(&nodes, "Why.").missing.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(named(nodes(&["n1", "n2"])), ["n1", "n2"]);
        assert_eq!(named(nodes(&[])), ["Kubernetes"]);
    }
}
