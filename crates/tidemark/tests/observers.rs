//! The built binary observes a real node of Kubernetes from a DaemonSet.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod common;

use common::{Place, Record};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

const TOKEN: &str = "a token of a test, long enough";

struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = lab::down(self.0, true, &mut |_| {}) {
            eprintln!("the lab could not be taken down: {error}");
        }
    }
}

fn ask(kubernetes: &Kubernetes, method: &str, path: &str, body: Option<&Value>) -> Value {
    let answer = kubernetes.ask(method, path, body.map(Value::to_string).as_deref()).unwrap();
    assert!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// The pods with a label, once there is one and all of them are ready.
fn ready(kubernetes: &Kubernetes, label: &str) -> Vec<Value> {
    let path = format!("/api/v1/namespaces/default/pods?labelSelector={label}");
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        let pods = ask(kubernetes, "GET", &path, None)["items"].as_array().unwrap().clone();
        let is_ready = |pod: &Value| {
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
        };
        if !pods.is_empty() && pods.iter().all(is_ready) {
            return pods;
        }
        assert!(Instant::now() < deadline, "{label}: {pods:#?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_nodes_are_observed_by_a_daemon_set_and_processes_have_their_pods_names() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let place = Place::new();
    let dir = place.path("lab");
    let _down = Down(&dir);
    let options = KubernetesOptions { node: true, ..KubernetesOptions::new(&dir) };
    let kubernetes = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
    let archive = place.path("tidemark.tar").display().to_string();
    assert_eq!(place.tidemark(&["kubernetes", "image", "-o", &archive]).code, 0);
    kubernetes.import(Path::new(&archive)).unwrap();

    // What a user pipes into kubectl.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let arguments = ["kubernetes", "observers", "--process", "tidemark", "--port", &port];
    let printed = place.command(&arguments).env("TIDEMARK_OBSERVE_TOKEN", TOKEN).output().unwrap();
    let (manifests, told) =
        (String::from_utf8(printed.stdout).unwrap(), String::from_utf8(printed.stderr).unwrap());
    assert!(!told.contains(TOKEN), "{told}");
    for (manifest, path) in manifests.split("\n---\n").zip([
        "/api/v1/namespaces/default/secrets?fieldValidation=Strict",
        "/apis/apps/v1/namespaces/default/daemonsets?fieldValidation=Strict",
    ]) {
        ask(&kubernetes, "POST", path, Some(&serde_saphyr::from_str(manifest).unwrap()));
    }
    // Something that is named after its pod.
    let target = json!({
        "metadata": {"name": "target-0", "labels": {"app": "target"}},
        "spec": {"containers": [{
            "name": "target",
            "image": format!("tidemark:{}", env!("CARGO_PKG_VERSION")),
            "imagePullPolicy": "IfNotPresent",
            "args": ["observe", "--listen", "127.0.0.1:9750"],
            "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "500m", "memory": "200Mi"}},
        }]},
    });
    ask(&kubernetes, "POST", "/api/v1/namespaces/default/pods", Some(&target));
    ready(&kubernetes, "app%3Dtarget");
    let observers = ready(&kubernetes, "app.kubernetes.io%2Fcomponent%3Dobserver");
    assert_eq!(observers.len(), 1, "one for each node");
    let host = observers[0]["status"]["hostIP"].as_str().unwrap();

    // The sentence beside the manifests says how documents name it.
    let node = told.split('"').find(|word| word.starts_with("https://NODE")).unwrap().replace("NODE", host);
    let document = format!(
        "name: seen\ntarget: {{kind: mock, delay: 1ms}}\nobserve: {{nodes: [\"{node}\"]}}\nstages:\n  - name: main\n    load: {{workers: 1, \
         for: 6s, containers: 1, operations: [{{get: {{objects: 1-10}}}}]}}\n"
    );
    let document = place.write("seen.yaml", &document).display().to_string();
    let seen = |token: &str| {
        let output =
            place.command(&["run", &document, "--json"]).env("TIDEMARK_OBSERVE_TOKEN", token).output();
        let output = output.unwrap();
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        Record::from(&common::Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        })
    };
    let record = seen(TOKEN);
    let nodes = record.value["nodes"].as_array().unwrap();
    let other = &nodes[1];
    let last = |kind: &str, metric: &str| {
        let mut all = other["series"].as_array().unwrap().iter();
        let own = all.find(|one| {
            one["kind"] == kind && one["subject"] == "tidemark.target-0" && one["metric"] == metric
        });
        own.and_then(|own| own["values"].as_array()?.last()?.as_f64())
    };
    assert!(last("process", "memory").is_some_and(|bytes| bytes > 1e6), "{other:#}");
    // What the pod may use is in its control group, which is not the observer's.
    assert_eq!(last("cgroup", "cpu_limit"), Some(0.5));
    let memory = last("cgroup", "memory_limit").unwrap();
    assert!((memory / f64::from(200 << 20) - 1.0).abs() < 0.01, "{memory}");
    assert!(other["gaps"].as_array().is_none_or(Vec::is_empty), "{:#}", other["gaps"]);
    let guessed = seen("another token, long enough too");
    assert!(guessed.value["nodes"][1].to_string().contains("the one that it got is wrong"));
}
