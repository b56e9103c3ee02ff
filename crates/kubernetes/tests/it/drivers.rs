//! The manifests of driver pods: as they are, and as a real API server takes them.

use serde_json::{Value, json};
use tidemark_keys::{Document, Outside, Table, tree};
use tidemark_kubernetes::{Drivers, LONGEST_RUN, Manifest, Pods, Reach, pods, run_name};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

/// All that a document can say.
const EVERYTHING: &str = "\
namespace: bench
image: registry.example.org/tidemark:0.1.0
cpu: 1500m
memory: 2Gi
nodes: [disk=ssd, topology.kubernetes.io/zone=a]
spread: one-per-node
seccomp: unconfined
user: root
volume: {class: fast, size: 10Gi, access: ReadWriteOncePod, mode: block, path: /dev/tidemark}
";

const FILES: &str = "spread: zones\nvolume: {class: fast, size: 10Gi}\n";

/// What a document says, or what is wrong with it.
fn read(text: &str) -> Result<Pods, String> {
    let root = tree::parse(text).unwrap();
    let outside = Outside {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::Unsupported.into()),
        bound: &|_| None,
    };
    let document = Document::new(text, outside);
    let pods = pods(Table::new("kubernetes", &root, &(0..0), &document));
    match document.log.close() {
        (_, false) => Ok(pods),
        (remarks, true) => {
            Err(remarks.into_iter().map(|remark| remark.message).collect::<Vec<_>>().join("; "))
        }
    }
}

fn manifests(pods: &Pods, count: u32) -> [Manifest; 2] {
    let drivers = Drivers { run: "tidemark-a-run-x7", namespace: Some("bench"), count, pods, owner: None };
    let reach = Reach {
        url: "https://10.0.0.5:19089".to_owned(),
        trust: "sha256:00".to_owned(),
        token: "hunter2".into(),
    };
    [drivers.job(), drivers.secret(&reach, Some("3e5c0a34"))]
}

#[test]
fn manifests_are_as_they_were() {
    for (name, text, count) in [("usual", "{}", 1), ("files", FILES, 4), ("everything", EVERYTHING, 360)] {
        let manifests = manifests(&read(text).unwrap(), count);
        assert!(!format!("{manifests:?}").contains("hunter2"));
        insta::assert_snapshot!(name, tidemark_kubernetes::yaml(&manifests).unwrap());
    }
    assert_eq!(read("{}").unwrap(), Pods::default(), "the reference says what is usual");
}

#[test]
fn a_bucket_is_claimed_for_the_job() {
    let claim = |text: &str| {
        let pods = read(text).unwrap();
        let drivers =
            Drivers { run: "tidemark-a-run-x7", namespace: None, count: 1, pods: &pods, owner: None };
        drivers.bucket(Some("3e5c0a34")).map(|claim| serde_json::to_value(&claim).unwrap())
    };
    let made = claim("bucket: {class: buckets}").unwrap();
    assert_eq!(
        (&made["kind"], &made["metadata"]["name"]),
        (&json!("ObjectBucketClaim"), &json!("tidemark-a-run-x7-bucket"))
    );
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "3e5c0a34");
    assert_eq!(
        made["spec"],
        json!({"generateBucketName": "tidemark-a-run-x7", "storageClassName": "buckets"})
    );
    assert_eq!(claim("{}"), None);
}

#[test]
fn mistakes_are_named() {
    let wrong = [
        ("bucket: {}", "class"),
        ("cpu: many", "'many' is not a quantity"),
        ("namespace: A", "'A' is not a name that Kubernetes allows here"),
        ("nodes: ssd", "'ssd' is not a label with its value"),
        ("image: a b", "'a b' is not the name of an image"),
        ("volume: {size: 1Gi}", "class"),
        ("volume: {class: a, size: 1Gi, path: data}", "'data' is no place for a volume"),
        ("volume: {class: a, size: 1Gi, path: /tidemark}", "'/tidemark' is no place"),
        ("volume: {class: a, size: 1Gi, path: /etc/tidemark/}", "'/etc/tidemark/' is no place"),
        ("volume: {class: a, size: 1Gi, path: /dev}", "'/dev' is no place"),
        ("volume: {class: a, size: 1Gi, path: '/a:b'}", "'/a:b' is no place"),
        ("volume: {class: a, size: 1Gi, path: '/$(HOME)'}", "'/$(HOME)' is no place"),
        ("volume: {class: a, size: 1Gi, path: /data/../etc}", "'/data/../etc' is no place"),
        ("volumes: {}", "volumes"),
    ];
    for (text, message) in wrong {
        let error = read(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn names_of_runs_are_labels_that_leave_room() {
    assert_eq!(run_name("4K whitepaper: S3", "x7"), "tidemark-4k-whitepaper-s3-x7");
    assert_eq!(run_name("äöü", "x7"), "tidemark-x7");
    let long = run_name(&"long name ".repeat(20), "x7k2p");
    assert!(long.len() <= LONGEST_RUN && long.ends_with("-x7k2p") && !long.contains("--"), "{long}");
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_takes_every_manifest_and_no_unknown_field() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let place = tempfile::tempdir().unwrap();
    let options = KubernetesOptions::new(place.path().join("lab"));
    let server = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: bench}\n";
        assert_eq!(server.ask("POST", "/api/v1/namespaces", Some(namespace)).unwrap().status, 201);
        let ask = |manifest: &Value| {
            let path = match manifest["kind"].as_str().unwrap() {
                "Job" => "/apis/batch/v1/namespaces/bench/jobs",
                _ => "/api/v1/namespaces/bench/secrets",
            };
            let path = format!("{path}?dryRun=All&fieldValidation=Strict&fieldManager=tidemark");
            let answer = server.ask("POST", &path, Some(&manifest.to_string())).unwrap();
            (answer.status, answer.body)
        };
        for (text, count) in [("{}", 1), (FILES, 4), (EVERYTHING, 360)] {
            for manifest in manifests(&read(text).unwrap(), count) {
                let mut value = serde_json::to_value(&manifest).unwrap();
                let (status, said) = ask(&value);
                assert_eq!(status, 201, "{text}: {said}");
                value["spec"]["unknown"] = 1.into();
                let (status, said) = ask(&value);
                assert!(status == 400 && said.contains("unknown field"), "{said}");
            }
        }
    }));
    lab::down(server.dir(), true, &mut |_| {}).unwrap();
    done.unwrap();
}
