//! The built binary and servers as pods on the lab's node: databases, Trino.

use crate::common::{Output, Place};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};
use tidemark_lab::{self as lab, Bucket, Keys, Kubernetes, KubernetesOptions, Storage, Trino, TrinoOptions};

/// Transactions on all servers together.
const COUNT: u64 = 400;

fn databases(image: &str) -> String {
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

/// A node that ends with its test, and the built binary beside it.
struct Node {
    kubernetes: Kubernetes,
    place: Place,
}

impl Node {
    fn up() -> Self {
        let place = Place::new();
        let options = KubernetesOptions { nodes: 1, ..KubernetesOptions::new(place.path("lab")) };
        Self { kubernetes: Kubernetes::up(&options, &mut |_| {}).unwrap(), place }
    }

    /// Packs an image of this machine's programs and brings it to the node.
    fn import(&self, of: &str, name: &str) {
        let archive = self.place.path("image.tar");
        let arguments = ["kubernetes", "image", of, "-o", archive.to_str().unwrap(), "--name", name];
        let packed = self.place.tidemark(&arguments);
        assert_eq!(packed.code, 0, "{}", packed.stderr);
        self.kubernetes.import(&archive).unwrap();
        fs::remove_file(archive).unwrap();
    }

    fn run(&self, document: &str) -> Output {
        let path = self.place.write("pods.yaml", document);
        let mut command = self.place.command(&["run", path.to_str().unwrap()]);
        command.env("KUBECONFIG", self.kubernetes.kubeconfig()).output().unwrap().into()
    }

    /// A stored run.
    fn record(&self, number: &str) -> Value {
        let report = self.place.tidemark(&["report", number, "--format", "json"]);
        assert_eq!(report.code, 0, "{}{}", report.stdout, report.stderr);
        serde_json::from_str(&report.stdout).unwrap()
    }

    /// Names of all objects that Tidemark has made, of every kind of a run.
    fn made(&self) -> Vec<String> {
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
            let answer = self.kubernetes.ask("GET", &path, None).unwrap();
            let list: Value = serde_json::from_str(&answer.body).unwrap();
            let items = list["items"].as_array().unwrap().clone();
            items.into_iter().map(move |item| format!("{kind} {}", item["metadata"]["name"]))
        };
        kinds.into_iter().flat_map(of_kind).collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = lab::down(self.kubernetes.dir(), true, &mut |_| {});
    }
}

/// The stage of this name.
fn stage<'a>(record: &'a Value, name: &str) -> &'a Value {
    let stages = record["stages"].as_array().unwrap();
    stages.iter().find(|stage| stage["name"] == name).unwrap_or_else(|| panic!("no {name}: {record}"))
}

#[test]
#[ignore = "needs a node of Kubernetes, PostgreSQL and root; run by make test-kubernetes"]
fn kubernetes_runs_database_servers_for_an_arm() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    let node = Node::up();
    let image = "tidemark-postgres:test";
    node.import("postgres", image);

    // A busy machine may leave a second without a transaction, which is critical.
    let _verdict = node.run(&databases(image));
    let record = node.record("1");
    let work = &stage(&record, "main")["works"][0];
    let each: Vec<_> = work["endpoints"].as_array().unwrap().iter().collect();
    assert_eq!(each.len(), 2, "{work}");
    let counts: Vec<_> = each.iter().map(|one| one["ok"].as_u64().unwrap()).collect();
    let operations = work["operations"].as_array().unwrap();
    let all: u64 = operations.iter().map(|one| one["ok"].as_u64().unwrap()).sum();
    assert_eq!((counts.iter().sum::<u64>(), all), (COUNT, COUNT), "{work}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(node.made(), [""; 0], "nothing is left");

    // One that cannot start says why, and leaves nothing either.
    let wrong = node.run(&databases(image).replace("max_connections: 37", "max_connections: many"));
    assert_ne!(wrong.code, 0);
    let said = format!("{}{}", wrong.stdout, wrong.stderr);
    assert!(said.contains("invalid value for parameter"), "{said}");
    assert_eq!(node.made(), [""; 0], "nothing is left");
}

/// An S3 server with tables, as pods and this process reach it.
struct Tables(EmbeddedServer);

impl Tables {
    const BUCKET: &str = "tables";

    fn start(node: &Node) -> Self {
        let address = SocketAddr::from((node.kubernetes.host().unwrap(), 0));
        let buckets = vec![Self::BUCKET.to_owned()];
        Self(
            EmbeddedServer::start(EmbeddedOptions { address, buckets, ..EmbeddedOptions::default() })
                .unwrap(),
        )
    }

    /// The server's address and keys, as documents have them.
    fn keys(&self) -> String {
        let (endpoint, access, secret) = (self.0.endpoint(), self.0.access_key(), self.0.secret_key());
        format!("endpoint: '{endpoint}', access_key: '{access}', secret_key: '{secret}'")
    }

    /// A load on a coordinator: all queries after TPC-H, whose answers are known at this scale.
    fn load(&self, coordinator: &str) -> String {
        let data = "tables: tpch, scale: 0.01";
        let storage = format!("{{kind: s3, {}}}", self.keys());
        format!(
            "target: {{kind: trino, endpoint: '{coordinator}', bucket: {}, storage: {storage}}}\n  stages:\n  \
             - prepare: {{{data}}}\n  - {{name: main, load: {{{data}}}}}",
            Self::BUCKET
        )
    }
}

/// Every query of a run with the rows of its answer, how it failed, and what the answer was compared with.
fn answers(record: &Value) -> Vec<(String, Value, Value, Value)> {
    let queries = stage(record, "main")["proof"]["tables"][0]["queries"].as_array().unwrap();
    let answer = |one: &Value| {
        let name = one["query"].as_str().unwrap().to_owned();
        (name, one["rows"].clone(), one["fault"].clone(), one["answer"].clone())
    };
    queries.iter().map(answer).collect()
}

#[test]
#[ignore = "needs a node of Kubernetes, Trino and root; run by make test-kubernetes"]
fn kubernetes_runs_a_cluster_of_trino() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    tidemark_testing::needs!(tidemark_testing::TRINO);
    if let Err(error) = Trino::java(None) {
        return tidemark_testing::skip(error);
    }
    let node = Node::up();
    let image = "tidemark-trino:test";
    node.import("trino", image);
    let tables = Tables::start(&node);
    let trino = format!(
        "{{workers: 1, image: '{image}', cpu: 900m, memory: 2Gi, settings: {{query.max-memory-per-node: 512MB}}, \
         bucket: {{name: {}, {}}}}}",
        Tables::BUCKET,
        tables.keys()
    );
    let evaluation = format!(
        "name: pods\nseed: 7\narms:\n- name: two\n  kubernetes: {{trino: {trino}}}\nloads:\n- name: queries\n  {}\nrepeats: 1\n",
        tables.load("${TIDEMARK_KUBERNETES_TRINO}")
    );
    let ran = node.run(&evaluation);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains(tables.0.secret_key()), "no key is printed");
    assert_eq!(node.made(), [""; 0], "nothing is left: {said}");
    let by_pods = node.record("1");
    let report = node.place.tidemark(&["report", "e1", "--format", "json"]).stdout;
    assert!(report.contains("476, a coordinator and 1 worker"), "{report}");
    assert!(report.contains(image) && !report.contains(tables.0.secret_key()), "{report}");

    // The lab's Trino on the same tables.
    let storage = Storage {
        bucket: Bucket { s3: tables.0.endpoint(), region: "us-east-1".into(), bucket: Tables::BUCKET.into() },
        keys: Keys {
            access_key: tables.0.access_key().to_owned(),
            secret_key: tables.0.secret_key().to_owned(),
        },
    };
    let options = TrinoOptions {
        workers: Some(1),
        heap_bytes: Some(1 << 30),
        ..TrinoOptions::new(node.place.path("lab-trino"), storage)
    };
    let beside = Trino::up(&options, &mut |_| {}).unwrap();
    let document =
        format!("name: beside\nseed: 7\n{}\n", tables.load(&beside.endpoint()).replace("\n  ", "\n"));
    node.run(&document);
    lab::down(beside.dir(), true, &mut |_| {}).unwrap();
    let by_processes = node.record("2");
    assert_eq!(answers(&by_pods).len(), 22, "{by_pods}");
    for (query, _, fault, answer) in answers(&by_pods) {
        assert_eq!((fault, answer), (Value::Null, "known".into()), "{query}");
    }
    assert_eq!(answers(&by_pods), answers(&by_processes));
}
