//! The built binary and volumes of a real node of Kubernetes: they live, fail, are stopped and left behind; drivers have them as devices.

use crate::common::loops::Loop;
use crate::common::{Output, Place, Record};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

struct Down(PathBuf);

impl Drop for Down {
    fn drop(&mut self) {
        if let Err(error) = lab::down(&self.0, true, &mut |_| {}) {
            eprintln!("the lab could not be taken down: {error}");
        }
    }
}

/// A node with Tidemark's image, and the command line beside it. The node ends with this value.
struct Cluster {
    kubernetes: Kubernetes,
    _down: Down,
    place: Place,
}

impl Cluster {
    /// `None`: there can be no node here, which is said.
    fn up(csi: bool) -> Option<Self> {
        if !tidemark_testing::has(tidemark_testing::KUBERNETES_NODE) {
            return None;
        }
        if !tidemark_testing::is_root() {
            tidemark_testing::skip("a node needs root");
            return None;
        }
        let place = Place::new();
        let dir = place.path("lab");
        let down = Down(dir.clone());
        let options = KubernetesOptions { nodes: 1, csi, ..KubernetesOptions::new(dir) };
        let kubernetes = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
        let cluster = Self { kubernetes, _down: down, place };
        let archive = cluster.place.path("tidemark.tar");
        assert_eq!(cluster.tidemark(&["kubernetes", "image", "-o", archive.to_str().unwrap()]).code, 0);
        cluster.kubernetes.import(&archive).unwrap();
        std::fs::remove_file(archive).unwrap();
        Some(cluster)
    }

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

    /// Makes an object, of the kind that is listed at a path.
    fn make(&self, path: &str, object: &Value) {
        let answer = self.kubernetes.ask("POST", path, Some(&object.to_string())).unwrap();
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
    }

    /// Everything in the namespace that has the label of a run.
    fn labelled(&self) -> Vec<String> {
        let kinds = [
            ("api/v1", "configmaps"),
            ("api/v1", "secrets"),
            ("api/v1", "pods"),
            ("api/v1", "persistentvolumeclaims"),
            ("apis/batch/v1", "jobs"),
        ];
        let mut found = Vec::new();
        for (group, kind) in kinds {
            let label = "labelSelector=tidemark.dev%2Frun";
            let items = self.items(&format!("/{group}/namespaces/default/{kind}?{label}"));
            found.extend(items.iter().map(|item| format!("{kind} {}", item["metadata"]["name"])));
        }
        found
    }

    /// The same, and all volumes.
    fn left(&self) -> Vec<String> {
        let mut left = self.labelled();
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
    let Some(cluster) = Cluster::up(false) else { return };

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
    cluster.make(quotas, &quota);
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
    cluster.make(CLASSES, &never);
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

/// Fills a device of each driver, and writes and reads so many blocks in all.
fn on_devices(drivers: usize, class: &str, user: &str) -> String {
    format!(
        "name: devices\nseed: 7\ncontent: {{verify: true}}\ndrivers:\n  use: {drivers}\n  kubernetes:\n    cpu: 100m\n    memory: 256Mi\n    \
         seccomp: unconfined\n    user: {user}\n    volume: {{class: {class}, size: 32Mi, mode: block}}\n\
         target: {{kind: device, path: /dev/data, size: 32MiB, per_driver: true}}\nstages:\n\
         - prepare: {{reuse: false}}\n\
         - name: write\n  load: {{pattern: randwrite, block_size: 4KiB, depth: 4, total_operations: 4000}}\n\
         - name: read\n  load: {{pattern: randread, block_size: 4KiB, clients: 2, total_operations: 20001}}\n"
    )
}

/// A device of the node, to be claimed from the class `devices`.
fn volume(name: &str, device: &str) -> Value {
    let node = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["lab"]});
    json!({
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "devices",
            "volumeMode": "Block",
            "capacity": {"storage": "32Mi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": device},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
        },
    })
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_drivers_have_claimed_devices_and_do_in_all_what_one_does() {
    let disks: Vec<Loop> = (0..4).map_while(|_| Loop::new(32 << 20)).collect();
    if disks.len() < 4 {
        return tidemark_testing::skip("no loop devices can be made (root is needed)");
    }
    let Some(cluster) = Cluster::up(false) else { return };
    let class = json!({
        "metadata": {"name": "devices"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    cluster.make(CLASSES, &class);
    let run = |drivers, class, user, more: &[&str]| {
        let document = cluster.place.write("devices.yaml", &on_devices(drivers, class, user));
        let arguments = [&["run", document.to_str().unwrap(), "--on", "kubernetes"], more].concat();
        let output = cluster.tidemark(&arguments);
        eprintln!("{}", output.stderr);
        output
    };
    // What is bound once is never bound again, so each run has volumes of its own, on devices that have been used before.
    let offer = |count: usize, name: &str| {
        for (number, disk) in disks[..count].iter().enumerate() {
            cluster.make("/api/v1/persistentvolumes", &volume(&format!("{name}-{number}"), &disk.device));
        }
    };

    for count in [1, 2, 4] {
        offer(count, &format!("of-{count}"));
        let record = Record::from(&run(count, "devices", "root", &["--json"]));
        assert_eq!(record.state(), "completed", "{}", record.value);
        let done = |stage: &str, label: &str| {
            let operation = record.operation(stage, label);
            assert_eq!(operation["failed"], 0, "{operation}");
            operation["ok"].as_u64().unwrap()
        };
        assert_eq!((done("write", "write"), done("read", "read")), (4000, 20001), "{count}");
        assert_eq!(done("prepare", "write"), 32 * count as u64, "every device is filled");
        assert_eq!(record.operation("read", "read")["verified"], 20001);
        let (proof, shares) = (&record.stage("prepare")["proof"], &record.stage("read")["shares"]);
        assert_eq!(
            (proof["devices"].as_array().unwrap().len(), shares.as_array().unwrap().len()),
            (count, count)
        );
        for device in proof["devices"].as_array().unwrap() {
            assert!(device["written_bytes"].as_u64().unwrap() >= 32 << 20, "{device}");
        }
        let proven = record.findings("reads-proven");
        assert_eq!((proven.len(), &proven[0]["severity"]), (1, &json!("good")), "{proven:?}");
        let said = record.value.to_string();
        assert!(said.contains("a block device of 32Mi of the storage class devices at /dev/data"), "{said}");
        assert_eq!(cluster.labelled(), [] as [String; 0]);
    }

    // The node's containerd leaves devices to root, and somebody else is told what to do.
    offer(1, "of-another");
    let denied = run(1, "devices", "nonroot", &[]);
    assert_ne!(denied.code, 0);
    assert!(
        denied.stderr.contains("/dev/data may not be read and written by this user"),
        "{}",
        denied.stderr
    );
    assert!(denied.stderr.contains("`user: root`"), "{}", denied.stderr);
    // A class that has no devices says so.
    let none = run(1, "local-path", "root", &["--wait", "60s"]);
    assert_ne!(none.code, 0);
    let said =
        "is not bound: ProvisioningFailed: rancher.io/local-path does not support block volume provisioning";
    assert!(none.stderr.contains(said), "{}", none.stderr);
    assert_eq!(cluster.labelled(), [] as [String; 0]);
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_volumes_of_a_csi_driver_grow_and_are_copied() {
    let Some(cluster) = Cluster::up(true) else { return };
    let dir = cluster.kubernetes.dir().to_owned();
    // The files of the lab's that have loop devices.
    let devices = || {
        let list = ["--list", "--noheadings", "--output", "BACK-FILE"];
        let listed = std::process::Command::new("losetup").args(list).output().unwrap().stdout;
        let files = String::from_utf8(listed).unwrap();
        files
            .lines()
            .filter(|file| file.starts_with(dir.to_str().unwrap()))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let left = || {
        let snapshots = "/apis/snapshot.storage.k8s.io/v1";
        let mut left = cluster.left();
        for path in ["namespaces/default/volumesnapshots", "volumesnapshotcontents"] {
            let items = cluster.items(&format!("{snapshots}/{path}"));
            left.extend(items.iter().map(|item| format!("{path} {}", item["metadata"]["name"])));
        }
        // The driver's own files are its volumes and snapshots.
        let files = std::fs::read_dir(dir.join("node/csi")).unwrap();
        left.extend(files.map(|file| format!("file {}", file.unwrap().file_name().display())));
        left.extend(devices().into_iter().map(|file| format!("device on {file}")));
        left
    };

    // Every phase is there for every life, and every copy has what was written.
    let steps = "grown: 32Mi, steps: [resize, snapshot, restore, clone]";
    let lived = cluster.run("loop", &format!("lives: 4, at_once: 2, {steps}"));
    assert_eq!(lived.state(), "completed");
    let phases = [
        "claim",
        "bind",
        "schedule",
        "attach",
        "mount",
        "start",
        "write",
        "resize",
        "snapshot",
        "restore",
        "restore-read",
        "clone",
        "clone-read",
        "delete",
    ];
    for phase in phases {
        assert_eq!((count(&lived, phase, "ok"), faults(&lived, phase)), (4, json!({})), "{phase}");
    }
    for phase in ["write", "restore-read", "clone-read"] {
        assert_eq!(
            (count(&lived, phase, "verified"), count(&lived, phase, "bytes")),
            (4, 4 << 20),
            "{phase}"
        );
    }
    let found = lived.value["notes"].to_string();
    assert!(found.contains("binds claims at once") && !found.contains("` is left out: "), "{found}");
    assert_eq!(left(), [] as [String; 0]);

    // Ctrl-C while there are snapshots and copies.
    let document = cluster.document("loop", &format!("lives: 100, at_once: 3, {steps}"));
    let mut stopped = cluster.command(&["run", &document, "--quiet"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(300);
    while !left().iter().any(|one| one.contains("-restored")) {
        assert!(Instant::now() < deadline, "no snapshot is restored: {:?}", left());
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = stopped.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    stopped.wait().unwrap();
    assert_eq!(left(), [] as [String; 0]);

    // The lab goes while volumes live: nothing of them stays on the machine.
    let mut abandoned = cluster.command(&["run", &document, "--quiet"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(300);
    while !left().iter().any(|one| one.contains("-restored")) {
        assert!(Instant::now() < deadline, "no snapshot is restored: {:?}", left());
        std::thread::sleep(Duration::from_millis(50));
    }
    lab::down(&dir, true, &mut |text| eprintln!("  {text}")).unwrap();
    abandoned.kill().unwrap();
    abandoned.wait().unwrap();
    assert_eq!(devices(), [] as [String; 0]);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(dir.to_str().unwrap()), "{mounts}");
    assert!(!dir.exists());
}
