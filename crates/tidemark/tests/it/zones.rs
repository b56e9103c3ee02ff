//! Where Kubernetes' own scheduler puts what the built binary asks for, on nodes in several zones that exist in the API server alone; and runs
//! on several real nodes, of which one is lost.
//!
//! To the scheduler and the node lifecycle controller, the nodes that are not real are ready. Their pods stay as the scheduler leaves them.

use crate::common::cluster::Cluster;
use crate::common::fleet::{Process, wait};
use crate::common::{Output, Record};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use tidemark_apiserver::{Client, Which};
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};
use tidemark_lab::{Kubernetes, KubernetesOptions};

/// The nodes and their zones.
const NODES: [(&str, &str); 6] =
    [("n0", "a"), ("n1", "a"), ("n2", "b"), ("n3", "b"), ("n4", "c"), ("n5", "c")];

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// How often a node says that it is there. It counts as lost after about 50 s without that.
const RENEWAL: Duration = Duration::from_secs(5);

/// What the kubelets of these nodes would do, as far as the cluster sees it: they say that they are there, and let pods go.
struct Kubelets {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kubelets {
    fn start(cluster: &Cluster) -> Self {
        for (name, zone) in NODES {
            let labels = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone});
            cluster.make(&json!({"kind": "Node", "metadata": {"name": name, "labels": labels}}));
            cluster.make(&json!({
                "kind": "Lease", "metadata": {"name": name, "namespace": "kube-node-lease"},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()},
            }));
            let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
            let ready = json!({"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": now()});
            let status = json!({"capacity": amounts, "allocatable": amounts, "conditions": [ready]});
            cluster
                .client
                .merge(&format!("/api/v1/nodes/{name}/status"), &json!({"status": status}))
                .unwrap();
        }
        let config = cluster.kubernetes.kubeconfig();
        let client = Client::connect(Which { kubeconfig: Some(&config), ..Which::default() }).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let thread = spawn(move || {
            let mut renewed = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                if renewed.elapsed() >= RENEWAL {
                    renewed = Instant::now();
                    for (name, _) in NODES {
                        let renewal = json!({"spec": {"renewTime": now()}});
                        let _again_soon = client.merge(&format!("{LEASES}/{name}"), &renewal);
                    }
                }
                let pods: Vec<Value> = client.list(&client.path("api/v1", "pods"), "").unwrap_or_default();
                for pod in pods.iter().filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null()) {
                    let path = client.path("api/v1", &format!("pods/{}", text(&pod["metadata"]["name"])));
                    let _may_be_gone = client.ask("DELETE", &format!("{path}?gracePeriodSeconds=0"), None);
                }
                sleep(Duration::from_millis(200));
            }
        });
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A document of drivers that are told this, too.
fn drivers(name: &str, more: &str) -> String {
    format!(
        "name: {name}\ndrivers: {{kubernetes: {{cpu: 50m, memory: 16Mi, {more}}}}}\ntarget: mock\n\
         stages: [{{load: {{for: 1s, containers: 1, operations: [{{get: {{objects: 1}}}}]}}}}]\n"
    )
}

/// How many pods are on each node.
type Counts = BTreeMap<String, usize>;

struct Scene {
    _kubelets: Kubelets,
    cluster: Cluster,
}

impl Scene {
    /// Has `count` pods made as a dry run of the document prints them, and returns where the scheduler has put them.
    fn placed(&self, document: &str, count: usize, more: &[&str]) -> Counts {
        let path = self.cluster.place.write("placed.yaml", document);
        let words = [&["run", path.to_str().unwrap(), "--on", "kubernetes", "--dry-run"], more].concat();
        let printed: Output = self.cluster.command(None, &words).output().unwrap().into();
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        self.cluster.apply(&printed.stdout);
        let pods = wait(&format!("nodes for {count} pods of {document}"), || {
            let pods = self.pods();
            let are_placed = pods.iter().all(|pod| !pod["spec"]["nodeName"].is_null());
            (pods.len() == count && are_placed).then_some(pods)
        });
        let mut counts = Counts::new();
        for pod in pods {
            *counts.entry(text(&pod["spec"]["nodeName"])).or_default() += 1;
        }
        counts
    }

    fn drivers(&self, document: &str, count: usize) -> Counts {
        let counts = self.placed(document, count, &["--drivers", &count.to_string()]);
        self.clear();
        counts
    }

    fn pods(&self) -> Vec<Value> {
        self.of_runs("api/v1", "pods")
    }

    /// What is there of runs.
    fn of_runs(&self, group: &str, kind: &str) -> Vec<Value> {
        self.cluster
            .client
            .list(&self.cluster.client.path(group, kind), "labelSelector=tidemark.dev%2Frun")
            .unwrap()
    }

    fn all_of_runs(&self) -> Vec<String> {
        let kinds = [
            ("apis/batch/v1", "jobs"),
            ("apis/apps/v1", "statefulsets"),
            ("api/v1", "services"),
            ("api/v1", "secrets"),
            ("api/v1", "pods"),
            ("api/v1", "persistentvolumeclaims"),
        ];
        let named = |(group, kind)| {
            let all = self.of_runs(group, kind);
            all.into_iter().map(move |one| {
                self.cluster.client.path(group, &format!("{kind}/{}", text(&one["metadata"]["name"])))
            })
        };
        kinds.into_iter().flat_map(named).collect()
    }

    /// Deletes what is there of runs.
    fn clear(&self) {
        wait("removal", || {
            let all = self.all_of_runs();
            for path in &all {
                self.cluster.client.delete(path).unwrap();
            }
            all.is_empty().then_some(())
        });
    }

    /// Takes a part of a node that is no run's.
    fn occupy(&self, node: &str, cpu: &str, memory: &str) {
        let requests = json!({"cpu": cpu, "memory": memory});
        let container =
            json!({"name": "other", "image": "example.org/other:1", "resources": {"requests": requests}});
        self.cluster.make(&json!({
            "kind": "Pod", "metadata": {"name": format!("on-{node}")}, "spec": {"nodeName": node, "containers": [container]},
        }));
    }

    /// A volume of the class `local` on each of these nodes.
    fn offer(&self, nodes: &[(&str, &str)], name: &str) {
        for (node, _) in nodes {
            let expression = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
            self.cluster.make(&json!({
                "kind": "PersistentVolume", "metadata": {"name": format!("{name}-{node}")},
                "spec": {
                    "storageClassName": "local", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/mnt"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
                },
            }));
        }
    }

    /// What somebody is told whose drivers cannot all run.
    fn refused(&self, document: &str, count: &str) -> String {
        let path = self.cluster.place.write("refused.yaml", document);
        let words =
            ["run", path.to_str().unwrap(), "--on", "kubernetes", "--drivers", count, "--wait", "30s"];
        let output: Output = self.cluster.command(None, &words).output().unwrap().into();
        assert_eq!(output.code, 3, "{}", output.stderr);
        assert_eq!(self.all_of_runs(), [] as [String; 0], "nothing is left");
        let last = output.stderr.lines().last().unwrap_or_default();
        assert!(
            last.starts_with(&format!("tidemark: after 30 s 0 of {count} drivers have joined; pod ")),
            "{last}"
        );
        last.to_owned()
    }
}

/// How many are in each zone, the zones without any included.
fn by_zone(counts: &Counts) -> BTreeMap<&'static str, usize> {
    let mut zones = BTreeMap::new();
    for (node, zone) in NODES {
        *zones.entry(zone).or_default() += counts.get(node).copied().unwrap_or_default();
    }
    zones
}

/// The least and the most on a node, or in a zone.
fn bounds(counts: impl Iterator<Item = usize> + Clone) -> (usize, usize) {
    (counts.clone().min().unwrap(), counts.max().unwrap())
}

fn on_nodes(counts: &Counts) -> (usize, usize) {
    bounds(NODES.iter().map(|(node, _)| counts.get(*node).copied().unwrap_or_default()))
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_puts_pods_on_nodes_and_in_zones_as_the_manual_says() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let cluster = Cluster::bare_node();
    // The lab's own node takes no part.
    cluster.client.merge("/api/v1/nodes/lab", &json!({"spec": {"unschedulable": true}})).unwrap();
    let scene = Scene { _kubelets: Kubelets::start(&cluster), cluster };

    // Evenly: never two on a node while another is free, and no zone has two more than another.
    for count in 1..=8 {
        for spread in ["nodes", "zones"] {
            let counts = scene.drivers(&drivers(spread, &format!("spread: {spread}")), count);
            let (least, most) = on_nodes(&counts);
            assert!(most - least <= 1, "{spread}, {count}: {counts:?}");
            let zones = by_zone(&counts);
            let (least, most) = bounds(zones.values().copied());
            assert!(spread == "nodes" || most - least <= 1, "{spread}, {count}: {zones:?}");
        }
    }

    // Where the documents say: a node, a zone, two zones, what is in a zone and has a name.
    let of_zone = |zone| format!("topology.kubernetes.io/zone={zone}");
    let of_node = |node| format!("kubernetes.io/hostname={node}");
    let pinned = [
        (of_node("n3"), vec!["n3"], vec![3]),
        (of_zone("b"), vec!["n2", "n3"], vec![1, 2]),
        (format!("[{}, {}]", of_node("n0"), of_node("n5")), vec!["n0", "n5"], vec![1, 2]),
        (format!("[{}, {}]", of_zone("a"), of_zone("c")), vec!["n0", "n1", "n4", "n5"], vec![1, 1, 1]),
        (format!("[{}, {}, {}]", of_zone("a"), of_node("n1"), of_node("n4")), vec!["n1"], vec![3]),
    ];
    for (nodes, allowed, expected) in pinned {
        let counts = scene.drivers(&drivers("pinned", &format!("nodes: {nodes}")), 3);
        assert!(counts.keys().all(|node| allowed.contains(&node.as_str())), "{nodes}: {counts:?}");
        let mut sizes: Vec<_> = counts.values().copied().collect();
        sizes.sort_unstable();
        assert_eq!(sizes, expected, "{nodes}: {counts:?}");
    }

    // Database servers, and volumes that wait for their first consumer: each server is where its volume is.
    scene.cluster.make(&json!({
        "kind": "StorageClass", "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }));
    scene.offer(&NODES, "server");
    let servers = "name: servers\narms:\n- name: one\n  kubernetes: {postgres: {instances: 6, class: local, size: 1Gi, cpu: 50m, \
                   memory: 16Mi, spread: one-per-node}}\nloads:\n- name: writes\n  target: {kind: postgres, \
                   instances: '${TIDEMARK_KUBERNETES_ENDPOINTS}', user: a, password: b, database: c}\n  stages:\n  \
                   - {name: main, load: {workload: sysbench/oltp_read_write, clients: 1, for: 1s}}\nrepeats: 1\n";
    let path = scene.cluster.place.write("servers.yaml", servers);
    let words = ["run", path.to_str().unwrap(), "--on", "kubernetes", "--dry-run"];
    let printed: Output = scene.cluster.command(None, &words).output().unwrap().into();
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    let servers = printed.stdout.split("---\n").filter(|manifest| !manifest.contains("kind: Job"));
    let servers: Vec<_> = servers.filter(|manifest| manifest.contains("kind: StatefulSet")).collect();
    scene.cluster.apply(&servers.join("\n---\n"));
    let placed = wait("servers with nodes", || {
        let pods = scene.pods();
        let placed: Vec<_> =
            pods.iter().map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]))).collect();
        (placed.len() == 6 && placed.iter().all(|(_, node)| !node.is_empty())).then_some(placed)
    });
    let claims = scene.of_runs("api/v1", "persistentvolumeclaims");
    for (pod, node) in &placed {
        let claim = claims.iter().find(|claim| text(&claim["metadata"]["name"]).ends_with(pod)).unwrap();
        assert_eq!(text(&claim["spec"]["volumeName"]), format!("server-{node}"), "{pod}");
    }
    let nodes: BTreeSet<_> = placed.iter().map(|(_, node)| node).collect();
    assert_eq!(nodes.len(), 6, "{placed:?}");
    scene.clear();

    // Drivers go where there are volumes.
    let volume = "volume: {class: local, size: 1Gi}";
    scene.offer(&NODES[2..], "driver");
    let counts = scene.drivers(&drivers("volumes", volume), 4);
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        NODES[2..].iter().map(|(node, _)| ((*node).to_owned(), 1)).collect::<Vec<_>>()
    );

    // What there is too little of is said with the pod, and everything is removed.
    let said = scene.refused(&drivers("apart", "spread: one-per-node"), "8");
    assert!(said.contains("is Pending: 0/7 nodes are available: 1 node(s) were unschedulable, 6 node(s) didn't match pod anti-affinity rules"), "{said}");
    let said = scene.refused(&drivers("nowhere", &format!("nodes: {}", of_zone("d"))), "2");
    assert!(said.contains("6 node(s) didn't match Pod's node affinity/selector"), "{said}");
    let said = scene
        .refused(&drivers("large", "nodes: kubernetes.io/hostname=n2").replace("cpu: 50m", "cpu: 3"), "2");
    assert!(said.contains("1 Insufficient cpu"), "{said}");
    scene.offer(&NODES[..2], "another");
    let said = scene.refused(&drivers("volumes", volume), "3");
    assert!(said.contains("didn't find available persistent volumes to bind"), "{said}");

    // Nodes that are busy with other things get pods before any other gets a second one, and zones stay even with more of them.
    scene.occupy("n0", "3", "6Gi");
    scene.occupy("n3", "3", "1Mi");
    for spread in ["nodes", "zones"] {
        let counts = scene.drivers(&drivers("busy", &format!("spread: {spread}")), 6);
        assert_eq!(on_nodes(&counts), (1, 1), "{spread}: {counts:?}");
    }
    let counts = scene.drivers(&drivers("busy", "spread: zones"), 18);
    assert_eq!(by_zone(&counts).into_values().collect::<Vec<_>>(), [6, 6, 6], "{counts:?}");
}

/// Gets and puts of objects that four pods share.
fn objects(server: &EmbeddedServer, drivers: &str, load: &str) -> String {
    format!(
        "name: objects\nseed: 5\ndrivers: {{use: 4, {drivers}kubernetes: {{cpu: 100m, memory: 128Mi}}}}\n\
         target: {{kind: s3, endpoints: ['{}'], access_key: {}, secret_key: {}}}\nstages:\n\
         - init: {{containers: 1}}\n- prepare: {{containers: 1, objects: 1-50, sizes: 4KB, workers: 4}}\n\
         - name: main\n  load:\n    workers: 8\n    {load}\n    containers: 1\n    operations:\n\
         \x20   - get: {{objects: 1-25, weight: 70}}\n    - put: {{objects: 26-50, sizes: 4KB, weight: 30}}\n",
        server.endpoint(),
        server.access_key(),
        server.secret_key()
    )
}

fn pods_of_runs(client: &Client) -> Vec<Value> {
    client.list(&client.path("api/v1", "pods"), "labelSelector=tidemark.dev%2Frun").unwrap()
}

/// The drivers whose processes were seen on each node.
fn seen_on(record: &Record) -> BTreeMap<String, Vec<String>> {
    let mut seen = BTreeMap::new();
    for node in record.value["nodes"].as_array().unwrap() {
        let series = node["series"].as_array().unwrap().iter();
        let subjects: BTreeSet<_> = series.map(|one| text(&one["subject"])).collect();
        let drivers: Vec<_> = subjects.into_iter().filter(|subject| subject.starts_with("driver ")).collect();
        if !drivers.is_empty() {
            seen.insert(text(&node["name"]), drivers);
        }
    }
    seen
}

/// Kills all processes of a node: of its pods, and its own.
fn kill(cluster: &Cluster, node: &str) {
    let mark = cluster.kubernetes.dir().display().to_string().replace('/', "%2F");
    let group = format!("{mark}/{node}/");
    let read = |process: &Path, name: &str| std::fs::read_to_string(process.join(name)).unwrap_or_default();
    // Those that have ended, and of which nobody has been told, have no command line.
    let runs_there =
        |process: &PathBuf| read(process, "cgroup").contains(&group) && !read(process, "cmdline").is_empty();
    wait("end of the node", || {
        let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let running: Vec<_> = processes.filter(runs_there).collect();
        for process in &running {
            let pid = process.file_name().unwrap();
            let _may_have_ended = Command::new("kill").arg("-KILL").arg(pid).output();
        }
        running.is_empty().then_some(())
    });
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_drivers_are_on_several_nodes_of_which_one_is_lost() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let cluster = Cluster::nodes(3);
    let host = cluster.kubernetes.host().unwrap();
    let server = EmbeddedOptions { address: (host, 0).into(), ..EmbeddedOptions::default() };
    let server = EmbeddedServer::start(server).unwrap();
    let command = |document: &str| {
        let path = cluster.place.write("objects.yaml", document);
        cluster.command(None, &["run", path.to_str().unwrap(), "--on", "kubernetes", "--json"])
    };
    let run = |document: &str| Record::from(&command(document).output().unwrap().into());

    // All nodes have drivers, and together they do what is asked for.
    let record = run(&objects(&server, "", "total_operations: 4000"));
    assert_eq!(record.state(), "completed", "{}", record.value);
    let done: u64 =
        ["get", "put"].map(|label| record.operation("main", label)["ok"].as_u64().unwrap()).iter().sum();
    assert_eq!(done, 4000);
    let seen = seen_on(&record);
    let mut counts: Vec<_> = seen.values().map(Vec::len).collect();
    counts.sort_unstable();
    assert_eq!(
        (seen.keys().map(String::as_str).collect::<Vec<_>>(), counts),
        (vec!["lab", "lab-1", "lab-2"], vec![1, 1, 2])
    );

    // Volumes are on the node of their pod.
    let record = run(
        "name: files\nseed: 5\ndrivers: {use: 3, kubernetes: {cpu: 100m, memory: 128Mi, spread: one-per-node, \
         seccomp: unconfined, volume: {class: local-path, size: 16Mi}}}\n\
         target: {kind: file, path: /data/volume, size: 8MiB, per_driver: true}\nstages:\n- prepare: {}\n\
         - name: main\n  load: {pattern: randread, block_size: 4KiB, total_operations: 3000}\n- cleanup: {}\n",
    );
    assert_eq!(record.state(), "completed", "{}", record.value);
    assert_eq!(record.operation("main", "read")["ok"], 3000);
    assert_eq!(seen_on(&record).values().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);

    // A node is lost with its pods: its drivers are lost, the others go on, and the report has both.
    let drivers = "on_loss: continue, lost_after: 5s, ";
    let mut running = Process::start(command(&objects(&server, drivers, "rate: 100/s\n    for: 120s")));
    running.wait_for("{\"event\":\"second\"");
    sleep(Duration::from_secs(5));
    let pods = pods_of_runs(&cluster.client).into_iter().filter(|pod| pod["spec"]["nodeName"] == "lab-2");
    let lost: Vec<_> = pods.map(|pod| text(&pod["metadata"]["name"])).collect();
    assert!(!lost.is_empty());
    kill(&cluster, "lab-2");
    wait("a node that is not ready", || {
        let node = cluster.client.ask("GET", "/api/v1/nodes/lab-2", None).ok()?;
        let conditions = node["status"]["conditions"].as_array()?;
        conditions.iter().any(|one| one["type"] == "Ready" && one["status"] != "True").then_some(())
    });
    wait("the end of the load", || {
        running.said().lines().any(|line| line.starts_with("{\"event\":\"run\"")).then_some(())
    });
    let said = running.said();
    let ended = said.lines().find(|line| line.starts_with("{\"event\":\"run\"")).unwrap();
    let record = Record::from(&Output { code: 0, stdout: ended.to_owned(), stderr: String::new() });
    let gone = record.value["drivers"].as_array().unwrap().iter().filter(|driver| !driver["lost"].is_null());
    assert_eq!(gone.count(), lost.len(), "{}", record.value["drivers"]);
    assert_eq!(
        (record.stage("main")["state"].as_str(), &record.value["valid"]),
        (Some("completed"), &json!(false))
    );
    assert!(!record.findings("driver-lost").is_empty(), "{}", record.value["findings"]);
    let losses = record.value["losses"].to_string();
    for phase in ["\"driver_lost\"", "\"node_not_ready\""] {
        assert!(losses.contains(phase), "{phase}: {losses}");
    }
    assert!(losses.contains("node lab-2"), "{losses}");

    // Nobody can say that the pods of a lost node have ended until it is back, and that is what the user is told. Then nothing is left.
    running.child.wait().unwrap();
    let said = running.said();
    for pod in &lost {
        assert!(said.contains(&format!("pod {pod} on lab-2")), "{said}");
    }
    assert!(said.contains("no node has said that they ended"), "{said}");
    Kubernetes::up(&KubernetesOptions::new(cluster.kubernetes.dir()), &mut |_| {}).unwrap();
    wait("removal", || pods_of_runs(&cluster.client).is_empty().then_some(()));
}
