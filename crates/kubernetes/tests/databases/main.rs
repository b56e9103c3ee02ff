//! The manifests of database servers: as they are, and as a real API server takes them.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

use tidemark_keys::{Document, Outside, Table, tree};
use tidemark_kubernetes::{Account, Databases, Manifest, Servers, servers};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

/// All that a document can say.
const EVERYTHING: &str = "\
context: big
namespace: bench
postgres:
  instances: 12
  image: registry.example.org/postgres:17
  uid: 70
  class: fast
  size: 100Gi
  cpu: 1500m
  memory: 6Gi
  nodes: [disk=ssd, topology.kubernetes.io/zone=a]
  spread: one-per-node
  settings: {shared_buffers: 1GB, log_line_prefix: '$(HOME) '}
";

const MYSQL: &str =
    "mysql: {instances: 4, class: fast, size: 10Gi, settings: {innodb_flush_log_at_trx_commit: 2}}";
const MARIADB: &str = "mariadb: {class: fast, size: 10Gi, spread: zones}";

/// What an arm says, or what is wrong with it.
fn read(text: &str) -> Result<Servers, String> {
    let root = tree::parse(text).unwrap();
    let outside = Outside {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::Unsupported.into()),
        bound: &|_| None,
    };
    let document = Document::new(text, outside);
    let read = servers(Table::new("kubernetes", &root, &(0..0), &document));
    let (remarks, _) = document.log.close();
    let said = || remarks.iter().map(|remark| remark.message.as_str()).collect::<Vec<_>>().join("; ");
    match remarks.is_empty() {
        true => read.ok_or_else(said),
        false => Err(said()),
    }
}

fn manifests(servers: &Servers) -> [Manifest; 3] {
    let databases = Databases { run: "tidemark-a-run-x7", namespace: Some("bench"), servers };
    let account = Account { user: "tidemark", password: "hunter2".into(), database: "tidemark" };
    let uid = Some("3e5c0a34");
    [databases.stateful_set(), databases.secret(&account, uid), databases.service(uid)]
}

#[test]
fn manifests_are_as_they_were() {
    for (name, text) in [("everything", EVERYTHING), ("mysql", MYSQL), ("mariadb", MARIADB)] {
        let manifests = manifests(&read(text).unwrap());
        assert!(!format!("{manifests:?}").contains("hunter2"));
        insta::assert_snapshot!(name, tidemark_kubernetes::yaml(&manifests).unwrap());
    }
}

#[test]
fn mistakes_are_named() {
    let wrong = [
        ("namespace: bench", "`postgres`"),
        ("postgres: {size: 1Gi}", "class"),
        ("postgres: {class: a}", "size"),
        ("postgres: {class: a, size: 1Gi, instances: 0}", "`instances`: 0 is out of range"),
        ("postgres: {class: a, size: 1Gi, uid: 0}", "`uid`: 0 is out of range"),
        ("postgres: {class: a, size: 1Gi, settings: {a b: 1}}", "'a b' is not the name of a setting"),
        ("postgres: {class: a, size: 1Gi, settings: 7}", "`settings` is not a mapping"),
        ("postgres: {class: a, size: 1Gi}\nmysql: {class: a, size: 1Gi}", "an arm has servers of one kind"),
        ("mysql: {class: a, size: 1Gi}\nmariadb: {class: a, size: 1Gi}", "an arm has servers of one kind"),
        ("oracle: {}", "oracle"),
    ];
    for (text, message) in wrong {
        let error = read(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_takes_every_manifest_of_servers_and_no_unknown_field() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let place = tempfile::tempdir().unwrap();
    let options = KubernetesOptions::new(place.path().join("lab"));
    let server = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: bench}\n";
        assert_eq!(server.ask("POST", "/api/v1/namespaces", Some(namespace)).unwrap().status, 201);
        for text in [EVERYTHING, MYSQL, MARIADB] {
            for manifest in manifests(&read(text).unwrap()) {
                let path = match manifest.kind {
                    "StatefulSet" => "/apis/apps/v1/namespaces/bench/statefulsets",
                    "Service" => "/api/v1/namespaces/bench/services",
                    _ => "/api/v1/namespaces/bench/secrets",
                };
                let path = format!("{path}?dryRun=All&fieldValidation=Strict&fieldManager=tidemark");
                let mut value = serde_json::to_value(&manifest).unwrap();
                let answer = server.ask("POST", &path, Some(&value.to_string())).unwrap();
                assert_eq!(answer.status, 201, "{text}: {}", answer.body);
                value["unknown"] = 1.into();
                let answer = server.ask("POST", &path, Some(&value.to_string())).unwrap();
                assert!(answer.status == 400 && answer.body.contains("unknown field"), "{}", answer.body);
            }
        }
    }));
    lab::down(server.dir(), true, &mut |_| {}).unwrap();
    done.unwrap();
}
