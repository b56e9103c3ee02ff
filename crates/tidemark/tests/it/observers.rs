//! The built binary observes a real node of Kubernetes from a DaemonSet.

use crate::common::cluster::{Cluster, documented_rules};
use crate::common::fleet::{Process, wait};
use crate::common::{Output, Record};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::Duration;

const TOKEN: &str = "a token of a test, long enough";

const OBSERVERS: &str = "app.kubernetes.io%2Fcomponent%3Dobserver";

/// The node of the lab, as the cluster calls it.
const NODE: &str = "lab";

/// Pods that put a load on nothing, as long as is said.
fn document(seconds: u32, more: &str) -> String {
    format!(
        "name: seen\n{more}\ntarget: {{kind: mock, delay: 1ms}}\nstages:\n  - name: main\n    load: {{workers: 2, for: {seconds}s, \
         containers: 1, operations: [{{get: {{objects: 1-10}}}}]}}\n"
    )
}

/// The last value of a process in the series of a node.
fn last(node: &Value, kind: &str, subject: &str, metric: &str) -> Option<f64> {
    let mut all = node["series"].as_array().unwrap().iter();
    let own = all.find(|one| one["kind"] == kind && one["subject"] == subject && one["metric"] == metric);
    own.and_then(|own| own["values"].as_array()?.iter().rev().find_map(Value::as_f64))
}

fn node<'a>(record: &'a Record, name: &str) -> &'a Value {
    let nodes = record.value["nodes"].as_array().unwrap();
    let mut own = nodes.iter().filter(|node| node["name"] == name);
    let found = own.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(own.next().is_none(), "{name} is there once");
    found
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_nodes_are_observed_by_a_daemon_set_and_processes_have_their_pods_names() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let cluster = Cluster::node();
    let place = &cluster.place;

    // What a user pipes into kubectl.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let arguments = ["kubernetes", "observers", "--process", "tidemark", "--port", &port];
    let printed = place.command(&arguments).env("TIDEMARK_OBSERVE_TOKEN", TOKEN).output().unwrap();
    let (manifests, told) =
        (String::from_utf8(printed.stdout).unwrap(), String::from_utf8(printed.stderr).unwrap());
    assert!(!told.contains(TOKEN), "{told}");
    cluster.apply(&manifests);
    // Something that is named after its pod.
    let target = json!({
        "kind": "Pod",
        "metadata": {"name": "target-0", "labels": {"app": "target"}},
        "spec": {"containers": [{
            "name": "target",
            "image": format!("tidemark:{}", env!("CARGO_PKG_VERSION")),
            "imagePullPolicy": "IfNotPresent",
            "args": ["observe", "--listen", "127.0.0.1:9750"],
            "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "500m", "memory": "200Mi"}},
        }]},
    });
    cluster.make(&target);
    cluster.ready("app%3Dtarget");
    let observers = cluster.ready(OBSERVERS);
    assert_eq!(observers.len(), 1, "one for each node");
    let host = observers[0]["status"]["hostIP"].as_str().unwrap();

    // The sentence beside the manifests says how documents name it.
    let named = told.split('"').find(|word| word.starts_with("https://NODE")).unwrap().replace("NODE", host);
    let path = place.write("named.yaml", &document(6, &format!("observe: {{nodes: [\"{named}\"]}}")));
    let seen = |token: &str| {
        let mut command = place.command(&["run", path.to_str().unwrap(), "--json"]);
        Record::from(&Output::from(command.env("TIDEMARK_OBSERVE_TOKEN", token).output().unwrap()))
    };
    let record = seen(TOKEN);
    let other = &record.value["nodes"][1];
    let target = "tidemark.target-0";
    assert!(last(other, "process", target, "memory").is_some_and(|bytes| bytes > 1e6), "{other:#}");
    // What the pod may use is in its control group, which is not the observer's.
    assert_eq!(last(other, "cgroup", target, "cpu_limit"), Some(0.5));
    let memory = last(other, "cgroup", target, "memory_limit").unwrap();
    assert!((memory / f64::from(200 << 20) - 1.0).abs() < 0.01, "{memory}");
    assert!(other["gaps"].as_array().is_none_or(Vec::is_empty), "{:#}", other["gaps"]);
    let guessed = seen("another token, long enough too");
    assert!(guessed.value["nodes"][1].to_string().contains("the one that it got is wrong"));

    // A run on pods finds the observer, and what its drivers saw of their node is the node's. The observer is started again meanwhile.
    let drivers = "drivers: {use: 2, kubernetes: {cpu: 100m, memory: 256Mi}}";
    let path = place.write("found.yaml", &document(600, drivers));
    let words = ["run", path.to_str().unwrap(), "--on", "kubernetes", "--json"];
    let mut run = Process::start(cluster.command(None, &words));
    run.wait_for("{\"event\":\"second\"");
    sleep(Duration::from_secs(3));
    let name = observers[0]["metadata"]["name"].as_str().unwrap();
    assert!(cluster.client.delete(&cluster.client.path("api/v1", &format!("pods/{name}"))).unwrap());
    wait("another observer", || {
        let pods = cluster.ready(OBSERVERS);
        (pods.len() == 1 && pods[0]["metadata"]["name"] != name).then_some(())
    });
    sleep(Duration::from_secs(5));
    let pid = run.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    run.child.wait().unwrap();
    let said = run.said();
    assert!(!said.contains(TOKEN), "the token is told");
    let ended = said.lines().find(|line| line.starts_with("{\"event\":\"run\"")).unwrap();
    let record = Record::from(&Output { code: 0, stdout: ended.to_owned(), stderr: String::new() });
    let lab = node(&record, NODE);
    assert_eq!(record.value["nodes"].as_array().unwrap().len(), 2, "the controller's and the cluster's");
    assert_eq!((&lab["source"], &lab["generates"]), (&json!(named), &json!(true)));
    assert!(last(lab, "process", target, "memory").is_some_and(|bytes| bytes > 1e6), "{lab:#}");
    for driver in record.value["drivers"].as_array().unwrap() {
        let subject = format!("driver {}", driver["name"].as_str().unwrap());
        assert!(last(lab, "process", &subject, "memory").is_some_and(|bytes| bytes > 1e6), "{subject}");
    }
    let gaps = lab["gaps"].to_string();
    let address = named.split('#').next().unwrap();
    assert!(gaps.contains(&format!("Its observer at {address} did not reply from ")), "{gaps}");
    assert!(!gaps.contains("its end"), "it was there again: {gaps}");
    let report = place.tidemark(&["report", "last", "--format", "md"]).stdout;
    let (_, nodes) = report.split_once("## Nodes").unwrap();
    assert!(nodes.lines().any(|line| line.starts_with("Observed: ") && line.contains("lab")), "{nodes}");

    // Who may not read the Secret is told what permits it; the run goes on, and sees what its drivers see.
    cluster.allow("bench", "drivers", &documented_rules("kubernetes.md", "kind: Role\n"));
    let account = cluster.account("bench");
    let path = place.write("short.yaml", &document(6, drivers));
    let seen = || {
        let words = ["run", path.to_str().unwrap(), "--on", "kubernetes", "--json"];
        Record::from(&cluster.command(Some(&account), &words).output().unwrap().into())
    };
    let record = seen();
    let lab = node(&record, NODE);
    let gaps = lab["gaps"].to_string();
    assert!(gaps.contains("Its observer is not asked: their Secret cannot be read: "), "{gaps}");
    let rule =
        "{apiGroups: [\\\"\\\"], resources: [secrets], resourceNames: [tidemark-observe], verbs: [get]}";
    assert!(gaps.contains(&format!("what permits it: Role in default: {rule}.")), "{gaps}");
    assert!(lab["source"].as_str().unwrap().starts_with("driver "), "{}", lab["source"]);
    assert_eq!(record.state(), "completed");
    cluster.allow(
        "bench",
        "observers",
        &documented_rules("kubernetes.md", "# a Role in the observers' namespace"),
    );
    let record = seen();
    let lab = node(&record, NODE);
    assert_eq!((&lab["source"], lab["gaps"].as_array().is_none_or(Vec::is_empty)), (&json!(named), true));
}
