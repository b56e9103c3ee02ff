//! The built binary reads Ceph's counters through Rook's toolbox: a pod in which `ceph` runs, against the lab's cluster.

use crate::common::Record;
use crate::common::cluster::{Cluster, documented_rules};
use crate::common::gateway::{Ceph, forward};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tidemark_lab::{Daemon, Lab};

/// What Rook's toolbox is to others: a pod with its label in which `ceph` knows its cluster. The programs are this machine's.
fn toolbox(lab: &Lab) -> Value {
    let places = [
        ("/usr", "/usr"),
        ("/usr/bin", "/bin"),
        ("/usr/lib", "/lib"),
        ("/usr/lib64", "/lib64"),
        ("/etc", "/etc"),
    ];
    let own = lab.dir().to_str().unwrap();
    let places: Vec<_> = places.into_iter().chain([(own, own)]).collect();
    let name = |at: usize| format!("place-{at}");
    let volumes: Vec<_> = places
        .iter()
        .enumerate()
        .map(|(at, (host, _))| json!({"name": name(at), "hostPath": {"path": host}}))
        .collect();
    let mounts: Vec<_> = places
        .iter()
        .enumerate()
        .map(|(at, (_, pod))| json!({"name": name(at), "mountPath": pod, "readOnly": true}))
        .collect();
    json!({
        "kind": "Pod",
        "metadata": {"name": "tools", "labels": {"app": "rook-ceph-tools"}},
        "spec": {
            "hostNetwork": true,
            "terminationGracePeriodSeconds": 0,
            "volumes": volumes,
            "containers": [{
                "name": "rook-ceph-tools",
                "image": format!("tidemark:{}", env!("CARGO_PKG_VERSION")),
                "imagePullPolicy": "IfNotPresent",
                "command": ["/bin/sleep", "infinity"],
                "env": [{"name": "CEPH_CONF", "value": lab.ceph_conf()}, {"name": "PATH", "value": "/usr/bin"}],
                "securityContext": {"runAsUser": 0, "runAsNonRoot": false},
                "volumeMounts": mounts,
            }],
        },
    })
}

/// A process that is stopped until this is dropped.
struct Stopped(u32);

impl Stopped {
    fn new(pid: u32) -> Self {
        signal("STOP", pid);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("CONT", self.0);
    }
}

fn signal(name: &str, pid: u32) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

fn node<'a>(record: &'a Record, name: &str) -> &'a Value {
    record.value["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|node| node["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

/// What was counted from the end of the first sample to the last.
fn sum(node: &Value, subject: &str, metric: &str) -> f64 {
    let mut all = node["series"].as_array().unwrap().iter();
    let own = all.find(|one| one["kind"] == "ceph" && one["subject"] == subject && one["metric"] == metric);
    let own = own.unwrap_or_else(|| panic!("{subject} {metric}"));
    let rates = own["values"].as_array().unwrap()[1..].iter().map(|rate| rate.as_f64().unwrap_or(0.0));
    let spans = node["at_ns"].as_array().unwrap().windows(2);
    let spans = spans.map(|span| (span[1].as_f64().unwrap() - span[0].as_f64().unwrap()) / 1e9);
    spans.zip(rates).map(|(seconds, rate)| seconds * rate).sum()
}

/// What an OSD has counted by now.
fn counted(ceph: &Lab, osd: &str, metric: &str) -> f64 {
    let text = ceph.ceph(&["tell", osd, "perf", "dump", "-f", "json"]).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["osd"][metric].as_f64().unwrap()
}

#[test]
#[ignore = "needs a node of Kubernetes, the Ceph packages and root; run by make test-kubernetes"]
fn kubernetes_counters_through_rooks_toolbox_are_those_of_the_admin_sockets() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    tidemark_testing::needs!(tidemark_testing::CEPH);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let cluster = Cluster::node();
    let place = &cluster.place;
    let ends = Ceph::up(&place.path("ceph"));
    let ceph = &ends.0;
    let endpoint = forward(cluster.kubernetes.host().unwrap(), &ceph.endpoint());
    let keys = ceph.credentials();
    let run = |account: Option<&Path>, rest: &str| {
        let text = format!(
            "name: counted\nseed: 5\n\
             drivers: {{use: 2, kubernetes: {{cpu: 100m, memory: 256Mi, ceph_toolbox: default}}}}\n\
             target: {{kind: s3, endpoints: '{endpoint}', access_key: {}, secret_key: {}}}\nstages:\n  \
             - init: {{containers: 1}}\n  - {{name: before, pause: {rest}}}\n  \
             - name: main\n    load: {{workers: 4, total_operations: 600, containers: 1, operations: [put: {{objects: 1-600, sizes: 64KiB}}]}}\n  \
             - {{name: after, pause: {rest}}}\n",
            keys.access_key, keys.secret_key,
        );
        let path = place.write("counted.yaml", &text);
        let words = ["run", path.to_str().unwrap(), "--on", "kubernetes", "--json"];
        let record = Record::from(&cluster.command(account, &words).output().unwrap().into());
        assert_eq!(record.operation("main", "put")["ok"], 600, "the run goes on: {}", record.stderr);
        record
    };

    // Nobody is there to be asked.
    let record = run(None, "1s");
    let gaps = node(&record, "Ceph in default")["gaps"].to_string();
    assert!(gaps.contains("could not be read: there is no toolbox in the namespace default"), "{gaps}");

    cluster.make(&toolbox(ceph));
    cluster.ready("app%3Drook-ceph-tools");
    // The counters are at rest when they are read for the first time, and for the last.
    let each: Vec<_> = ["osd.0", "osd.1", "osd.2"]
        .into_iter()
        .flat_map(|osd| ["op", "op_in_bytes", "subop"].map(|metric| (osd, metric)))
        .collect();
    let all = || -> Vec<f64> { each.iter().map(|(osd, metric)| counted(ceph, osd, metric)).collect() };
    let before = all();
    let record = run(None, "30s");
    let after = all();
    let through = node(&record, "Ceph in default");
    assert!(through["gaps"].as_array().is_none_or(Vec::is_empty), "{:#}", through["gaps"]);
    assert_eq!((&through["source"], &through["generates"]), (&json!("toolbox in default"), &json!(false)));
    for ((osd, metric), (before, after)) in each.iter().zip(before.iter().zip(after)) {
        let (through, direct) = (sum(through, osd, metric), after - before);
        eprintln!("{osd} {metric}: {through:.0} through the toolbox, {direct:.0} in all");
        // The gateway has a few operations of its own at any time.
        assert!((through - direct).abs() <= 0.05 * direct + 50.0, "{osd} {metric}: {through}, {direct}");
    }
    let written: f64 = ["osd.0", "osd.1", "osd.2"].iter().map(|osd| sum(through, osd, "op_in_bytes")).sum();
    assert!(written >= 0.95 * f64::from(600 * (64 << 10)), "{written} bytes written");
    let report = place.tidemark(&["report", "last", "--format", "md"]).stdout;
    let (_, nodes) = report.split_once("## Nodes").unwrap();
    assert!(
        nodes.lines().any(|line| line.starts_with("Observed: ") && line.contains("Ceph in default")),
        "{nodes}"
    );

    // Where one does not reply, those before it are recorded.
    let stopped = Stopped::new(ceph.pid(Daemon::Osd(1)).unwrap().unwrap());
    let path = place.write(
        "silent.yaml",
        "name: silent\ndrivers: {use: 1, kubernetes: {cpu: 100m, memory: 256Mi, ceph_toolbox: default}}\n\
         target: {kind: mock}\nstages:\n  - {name: main, pause: 45s}\n",
    );
    let words = ["run", path.to_str().unwrap(), "--on", "kubernetes", "--json"];
    let record = Record::from(&cluster.command(None, &words).output().unwrap().into());
    let gaps = node(&record, "Ceph in default")["gaps"].to_string();
    eprintln!("{gaps}");
    assert!(gaps.contains("in the pod tools was ended after 14 s, before all daemons had replied"), "{gaps}");
    let series = node(&record, "Ceph in default")["series"].as_array().unwrap();
    assert!(series.iter().any(|one| one["subject"] == "osd.0"), "{gaps}");
    drop(stopped);

    // Who may run nothing in it is told what permits it; who may, needs no more than the manual says.
    cluster.allow("bench", "drivers", &documented_rules("kubernetes.md", "kind: Role\n"));
    let account = cluster.account("bench");
    let record = run(Some(&account), "1s");
    let gaps = node(&record, "Ceph in default")["gaps"].to_string();
    let rule = "Role in default: {apiGroups: [\\\"\\\"], resources: [pods/exec], verbs: [get, create]}";
    assert!(gaps.contains("no command can be run in the pod tools: ") && gaps.contains(rule), "{gaps}");
    cluster.allow("bench", "toolbox", &documented_rules("kubernetes.md", "resources: [pods/exec]"));
    let record = run(Some(&account), "1s");
    let through = node(&record, "Ceph in default");
    assert!(through["gaps"].as_array().is_none_or(Vec::is_empty), "{:#}", through["gaps"]);
    assert!(through["series"].as_array().unwrap().iter().any(|one| one["subject"] == "osd.0"), "{through:#}");
}
