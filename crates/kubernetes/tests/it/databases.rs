//! The manifests of servers for an arm: as they are, and as a real API server takes them.

use tidemark_keys::{Document, Outside, Table, tree};
use tidemark_kubernetes::{Account, Databases, Manifest, OfArm, TrinoPods, What, of_arm};
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

const TRINO: &str = "\
namespace: bench
trino:
  workers: 5
  image: registry.example.org/trino:477
  uid: 2000
  cpu: 6
  memory: 24Gi
  nodes: disk=ssd
  spread: one-per-node
  settings: {query.max-memory-per-node: 8GB}
  bucket: {endpoint: 'https://s3.example.org', name: lake, access_key: AK, secret_key: hunter2, region: eu-1}
";
const ALONE: &str =
    "trino: {bucket: {endpoint: 'http://10.0.0.1:8000/', access_key: AK, secret_key: hunter2}}";

/// What an arm says, or what is wrong with it.
fn read(text: &str) -> Result<OfArm, String> {
    let root = tree::parse(text).unwrap();
    let outside = Outside {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::Unsupported.into()),
        bound: &|_| None,
    };
    let document = Document::new(text, outside);
    let read = of_arm(Table::new("kubernetes", &root, &(0..0), &document));
    let (remarks, _) = document.log.close();
    let said = || remarks.iter().map(|remark| remark.message.as_str()).collect::<Vec<_>>().join("; ");
    match remarks.is_empty() {
        true => read.ok_or_else(said),
        false => Err(said()),
    }
}

fn manifests(asked: &OfArm) -> Vec<Manifest> {
    let (run, namespace, uid) = ("tidemark-a-run-x7", Some("bench"), Some("3e5c0a34"));
    match &asked.what {
        What::Databases(servers) => {
            let databases = Databases { run, namespace, servers };
            let account = Account { user: "tidemark", password: "hunter2".into(), database: "tidemark" };
            vec![databases.stateful_set(), databases.secret(&account, uid), databases.service(uid)]
        }
        What::Trino(trino) => {
            let pods = TrinoPods { run, namespace, trino };
            let mut all = vec![pods.coordinator(), pods.secret(uid), pods.service(uid)];
            all.extend((trino.workers > 0).then(|| pods.workers("http://10.0.0.7:8080", uid)));
            all
        }
    }
}

#[test]
fn manifests_are_as_they_were() {
    let all = [
        ("everything", EVERYTHING),
        ("mysql", MYSQL),
        ("mariadb", MARIADB),
        ("trino", TRINO),
        ("trino_alone", ALONE),
    ];
    for (name, text) in all {
        let manifests = manifests(&read(text).unwrap());
        assert!(!format!("{manifests:?}").contains("hunter2"));
        insta::assert_snapshot!(name, tidemark_kubernetes::yaml(&manifests).unwrap());
    }
}

#[test]
fn the_keys_of_a_bucket_are_in_the_secret_alone() {
    let yaml = |manifest: &Manifest| serde_json::to_string(manifest).unwrap();
    let manifests = manifests(&read(TRINO).unwrap());
    let with_keys = manifests.iter().filter(|manifest| yaml(manifest).contains("hunter2"));
    assert_eq!(with_keys.map(|manifest| manifest.kind).collect::<Vec<_>>(), ["Secret"]);
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
        ("trino: {workers: 2}", "bucket"),
        ("trino: {bucket: {endpoint: 'http://a:1', access_key: a}}", "secret_key"),
        (
            "trino: {bucket: {endpoint: 's3://a', access_key: a, secret_key: b}}",
            "'s3://a' is not the address of a server",
        ),
        (
            "trino: {bucket: {endpoint: 'http://a:1', name: a_b, access_key: a, secret_key: b}}",
            "'a_b' is no name of a bucket",
        ),
        (
            "trino: {settings: {discovery.uri: x}, bucket: {endpoint: 'http://a:1', access_key: a, secret_key: b}}",
            "`discovery.uri` is set by Tidemark",
        ),
        ("postgres: {class: a, size: 1Gi}\ntrino: {workers: 1}", "an arm has servers of one kind"),
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
        for text in [EVERYTHING, MYSQL, MARIADB, TRINO, ALONE] {
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
