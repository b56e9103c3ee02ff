//! The built binary and volumes of a real node of Kubernetes: they live, fail, are stopped and left behind.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod common;

use common::{Output, Place, Record};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = lab::down(self.0, true, &mut |_| {}) {
            eprintln!("the lab could not be taken down: {error}");
        }
    }
}

/// A node with Tidemark's image, and the command line beside it.
struct Cluster {
    place: Place,
    kubernetes: Kubernetes,
}

impl Cluster {
    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.place.command(arguments);
        command.env("KUBECONFIG", self.kubernetes.kubeconfig());
        command
    }

    fn tidemark(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn document(&self, target: &str, load: &str) -> String {
        let text = format!(
            "name: lives\ntarget: {{kind: claims, class: {target}}}\nstages:\n  - name: main\n    load: {{size: 16Mi, write: 1MiB, \
             allowed_failures: 100%, {load}}}\n"
        );
        self.place.write("lives.yaml", &text).display().to_string()
    }

    fn run(&self, target: &str, load: &str) -> Record {
        let document = self.document(target, load);
        let output = self.tidemark(&["run", &document, "--json"]);
        eprintln!("{}", output.stderr);
        Record::from(&output)
    }

    fn items(&self, path: &str) -> Vec<Value> {
        let answer = self.kubernetes.ask("GET", path, None).unwrap();
        let list: Value = serde_json::from_str(&answer.body).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Everything in the namespace that has the label of a run, and all volumes.
    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for kind in ["configmaps", "pods", "persistentvolumeclaims"] {
            let label = "labelSelector=tidemark.dev%2Frun";
            let items = self.items(&format!("/api/v1/namespaces/default/{kind}?{label}"));
            left.extend(items.iter().map(|item| format!("{kind} {}", item["metadata"]["name"])));
        }
        let volumes = self.items("/api/v1/persistentvolumes");
        left.extend(volumes.iter().map(|item| format!("volume {}", item["metadata"]["name"])));
        left
    }
}

fn count(record: &Record, label: &str, field: &str) -> u64 {
    record.operation("main", label)[field].as_u64().unwrap()
}

fn faults(record: &Record, label: &str) -> Value {
    record.operation("main", label)["faults"].clone()
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_volumes_live_and_nothing_of_them_is_left() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let place = Place::new();
    let dir = place.path("lab");
    let _down = Down(&dir);
    let options = KubernetesOptions { node: true, ..KubernetesOptions::new(&dir) };
    let kubernetes = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
    let cluster = Cluster { place, kubernetes };
    let archive = cluster.place.path("tidemark.tar").display().to_string();
    assert_eq!(cluster.tidemark(&["kubernetes", "image", "-o", &archive]).code, 0);
    cluster.kubernetes.import(Path::new(&archive)).unwrap();

    // They live: every content is compared, every volume is gone, and what the class lacks is said.
    let lived = cluster.run("local-path", "lives: 3, at_once: 2, steps: [resize, snapshot, restore, clone]");
    assert_eq!(lived.state(), "completed");
    for phase in ["claim", "schedule", "bind", "mount", "start", "write", "delete"] {
        assert_eq!((count(&lived, phase, "ok"), faults(&lived, phase)), (3, json!({})), "{phase}");
    }
    assert_eq!((count(&lived, "write", "verified"), count(&lived, "write", "bytes")), (3, 3 << 20));
    for phase in ["attach", "resize", "snapshot", "restore", "restore-read", "clone", "clone-read"] {
        assert_eq!((count(&lived, phase, "ok"), faults(&lived, phase)), (0, json!({})), "{phase}");
    }
    let found = lived.value["notes"].to_string();
    assert!(found.contains("waits for the first consumer"), "{found}");
    for step in ["resize", "snapshot", "restore", "clone"] {
        assert!(found.contains(&format!("`{step}` is left out: ")), "{found}");
    }
    assert_eq!(cluster.left(), [] as [String; 0]);

    // A pod whose image is nowhere: its volume is there, and goes with it.
    let stuck = cluster.run("local-path, image: 'localhost/none:1'", "lives: 1, timeout: 15s");
    assert_eq!(count(&stuck, "claim", "ok"), 1);
    assert_eq!(faults(&stuck, "start"), json!({"unstarted": 1}));
    assert_eq!(count(&stuck, "write", "ok") + count(&stuck, "delete", "ok"), 0, "nothing comes after it");
    assert!(stuck.stage("main")["works"][0]["examples"].to_string().contains("localhost/none:1"));
    assert_eq!(cluster.left(), [] as [String; 0]);

    // A quota has a class of its own.
    let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"persistentvolumeclaims": "0"}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    assert_eq!(cluster.kubernetes.ask("POST", quotas, Some(&quota.to_string())).unwrap().status, 201);
    let deadline = Instant::now() + Duration::from_secs(60);
    while cluster.items(quotas)[0]["status"]["hard"].is_null() {
        assert!(Instant::now() < deadline, "the quota is not in force");
        std::thread::sleep(Duration::from_millis(100));
    }
    let full = cluster.run("local-path", "lives: 2");
    assert_eq!(faults(&full, "claim"), json!({"quota": 2}));
    cluster.kubernetes.ask("DELETE", &format!("{quotas}/few"), None).unwrap();

    // A class that is nowhere is known before anything is made.
    let document = cluster.document("nowhere", "lives: 2");
    let nowhere = cluster.tidemark(&["run", &document]);
    assert_ne!(nowhere.code, 0);
    assert!(nowhere.stderr.contains("there is no storage class nowhere"), "{}", nowhere.stderr);

    // One that nobody serves: three lives are enough to know it.
    let never = json!({
        "metadata": {"name": "never"},
        "provisioner": "example.org/nobody",
        "volumeBindingMode": "Immediate",
    });
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    assert_eq!(cluster.kubernetes.ask("POST", classes, Some(&never.to_string())).unwrap().status, 201);
    let waited = cluster.run("never", "lives: 9, timeout: 3s");
    assert_eq!((count(&waited, "claim", "ok"), faults(&waited, "bind")), (3, json!({"unbound": 3})));
    assert_eq!(waited.findings("given-up").len(), 1, "{}", waited.value["findings"]);
    assert_eq!(cluster.left(), [] as [String; 0]);

    // Ctrl-C ends lives where they are; of a class that binds nothing, too.
    let document = cluster.document("never", "lives: 9, at_once: 3");
    let mut stopped = cluster.command(&["run", &document, "--quiet"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while cluster.left().len() < 4 {
        assert!(Instant::now() < deadline, "no claims come");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = stopped.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    stopped.wait().unwrap();
    assert_eq!(cluster.left(), [] as [String; 0]);

    // One whose process is killed leaves things behind, which are found and removed by name, and never without.
    let document = cluster.document("local-path", "lives: 500, at_once: 3");
    let mut killed = cluster.command(&["run", &document, "--quiet"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !cluster.left().iter().any(|one| one.starts_with("volume")) {
        assert!(Instant::now() < deadline, "no volume comes");
        std::thread::sleep(Duration::from_millis(50));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let run = cluster.left()[0].trim_start_matches("configmaps ").trim_matches('"').to_owned();
    let told = cluster.tidemark(&["kubernetes", "clean"]);
    assert!(told.code == 0 && told.stdout.contains(&format!("{run} may go on")), "{}", told.stdout);
    assert!(!cluster.left().is_empty());
    let removed = cluster.tidemark(&["kubernetes", "clean", &run]);
    assert_eq!(
        (removed.code, removed.stdout.trim()),
        (0, &*format!("{run} is removed")),
        "{}",
        removed.stderr
    );
    let deadline = Instant::now() + Duration::from_secs(120);
    while !cluster.left().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", cluster.left());
        std::thread::sleep(Duration::from_millis(200));
    }
}
