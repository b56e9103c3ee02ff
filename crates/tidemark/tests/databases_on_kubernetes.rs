//! The built binary and database servers as pods on the lab's node.

#![allow(clippy::unwrap_used, reason = "a failed test may panic, and says what it does")]

mod common;

use common::Place;
use serde_json::Value;
use std::fs;
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

/// Transactions on all servers together.
const COUNT: u64 = 400;

fn document(image: &str) -> String {
    let target = "{kind: postgres, instances: '${TIDEMARK_KUBERNETES_ENDPOINTS}', user: '${TIDEMARK_KUBERNETES_USER}', \
                  password: '${TIDEMARK_KUBERNETES_PASSWORD}', database: '${TIDEMARK_KUBERNETES_DATABASE}'}";
    let workload = "workload: sysbench/oltp_read_write, tables: 1, table_size: 1k";
    format!(
        "name: pods\nseed: 7\narms:\n- name: two\n  kubernetes: {{postgres: {{instances: 2, image: '{image}', class: local-path, \
         size: 256Mi, cpu: 100m, memory: 256Mi, settings: {{max_connections: 37}}}}}}\n\
         loads:\n- name: writes\n  target: {target}\n  stages:\n  - prepare: {{{workload}, loaders: 1}}\n  \
         - {{name: main, load: {{{workload}, clients: 1, total_operations: {COUNT}}}}}\nrepeats: 1\n"
    )
}

/// Names of all objects that Tidemark has made, of every kind of a run.
fn made(kubernetes: &Kubernetes) -> Vec<String> {
    let kinds = [
        "apis/apps/v1 statefulsets",
        "api/v1 services",
        "api/v1 secrets",
        "api/v1 pods",
        "api/v1 persistentvolumeclaims",
    ];
    let of_kind = |kind: &'static str| {
        let (group, kind) = kind.split_once(' ').unwrap();
        let path = format!("/{group}/{kind}?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dtidemark");
        let list: Value = serde_json::from_str(&kubernetes.ask("GET", &path, None).unwrap().body).unwrap();
        let items = list["items"].as_array().unwrap().clone();
        items.into_iter().map(move |item| format!("{kind} {}", item["metadata"]["name"]))
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

struct Down(Kubernetes);

impl Drop for Down {
    fn drop(&mut self) {
        let _ = lab::down(self.0.dir(), true, &mut |_| {});
    }
}

#[test]
#[ignore = "needs a node of Kubernetes, PostgreSQL and root; run by make test-kubernetes"]
fn kubernetes_runs_database_servers_for_an_arm() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    let place = Place::new();
    let options = KubernetesOptions { nodes: 1, ..KubernetesOptions::new(place.path("lab")) };
    let node = Down(Kubernetes::up(&options, &mut |_| {}).unwrap());
    let kubernetes = &node.0;
    let (archive, name) = (place.path("postgres.tar"), "tidemark-postgres:test");
    let packed =
        place.tidemark(&["kubernetes", "image", "postgres", "-o", archive.to_str().unwrap(), "--name", name]);
    assert_eq!(packed.code, 0, "{}", packed.stderr);
    kubernetes.import(&archive).unwrap();
    let run = |document: &str| {
        let path = place.write("pods.yaml", document);
        let mut command = place.command(&["run", path.to_str().unwrap()]);
        let output = command.env("KUBECONFIG", kubernetes.dir().join("kubeconfig")).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };

    // A busy machine may leave a second without a transaction, which is critical.
    let (_, stdout, stderr) = run(&document(name));
    let report = place.tidemark(&["report", "1", "--format", "json"]);
    assert_eq!(report.code, 0, "{stdout}{stderr}");
    let record: Value = serde_json::from_str(&report.stdout).unwrap();
    let stages = record["stages"].as_array().unwrap();
    let work = &stages.iter().find(|stage| stage["name"] == "main").unwrap()["works"][0];
    let each: Vec<_> = work["endpoints"].as_array().unwrap().iter().collect();
    assert_eq!(each.len(), 2, "{work}");
    let counts: Vec<_> = each.iter().map(|one| one["ok"].as_u64().unwrap()).collect();
    let operations = work["operations"].as_array().unwrap();
    let all: u64 = operations.iter().map(|one| one["ok"].as_u64().unwrap()).sum();
    assert_eq!((counts.iter().sum::<u64>(), all), (COUNT, COUNT), "{work}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(made(kubernetes), [""; 0], "nothing is left");

    // One that cannot start says why, and leaves nothing either.
    let wrong = document(name).replace("max_connections: 37", "max_connections: many");
    let (code, stdout, stderr) = run(&wrong);
    assert_ne!(code, Some(0));
    assert!(format!("{stdout}{stderr}").contains("invalid value for parameter"), "{stdout}{stderr}");
    assert_eq!(made(kubernetes), [""; 0], "nothing is left");
    drop(fs::remove_file(archive));
}
