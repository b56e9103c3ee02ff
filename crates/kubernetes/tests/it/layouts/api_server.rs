//! A real API server, with Rook's definitions, takes every manifest of every layout, and no field that it does not know.

use super::{crds, example, layout, layouts};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidemark_kubernetes::Manifest;
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

/// An API server that ends with the test.
struct Server(
    Kubernetes,
    #[expect(dead_code, reason = "it is removed when it is dropped")] tempfile::TempDir,
);

impl Server {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let options = KubernetesOptions::new(place.path().join("lab"));
        Self(Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap(), place)
    }

    /// Has it make something, which it must.
    fn make(&self, path: &str, what: &Value) {
        let answer = self.0.ask("POST", path, Some(&what.to_string())).unwrap();
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
    }

    /// What it says to a resource, whose unknown fields are errors: the HTTP status, and its words.
    fn check(&self, paths: &BTreeMap<String, String>, what: &Value) -> (u16, String) {
        let key = format!("{} {}", what["apiVersion"].as_str().unwrap(), what["kind"].as_str().unwrap());
        let namespace = what["metadata"]["namespace"].as_str().map(|name| format!("/namespaces/{name}"));
        let path = paths[&key].replace("{namespace}", &namespace.unwrap_or_default());
        let query = "?dryRun=All&fieldValidation=Strict&fieldManager=tidemark";
        let answer = self.0.ask("POST", &format!("{path}{query}"), Some(&what.to_string())).unwrap();
        (answer.status, answer.body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = lab::down(self.0.dir(), true, &mut |_| {});
    }
}

/// Where resources of each kind are made.
fn paths(definitions: &[Value]) -> BTreeMap<String, String> {
    let mut paths = BTreeMap::from([
        ("v1 PersistentVolume".to_owned(), "/api/v1/persistentvolumes".to_owned()),
        ("storage.k8s.io/v1 StorageClass".to_owned(), "/apis/storage.k8s.io/v1/storageclasses".to_owned()),
    ]);
    for definition in definitions {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (group, kind, plural) =
            (text(&spec["group"]), text(&spec["names"]["kind"]), text(&spec["names"]["plural"]));
        let versions = spec["versions"].as_array().unwrap().iter();
        for version in versions.filter(|version| version["served"] == json!(true)) {
            let version = text(&version["name"]);
            let path = format!("/apis/{group}/{version}{{namespace}}/{plural}");
            paths.insert(format!("{group}/{version} {kind}"), path);
        }
    }
    paths
}

fn document(manifest: &Manifest) -> Value {
    serde_json::to_value(manifest).unwrap()
}

#[test]
#[ignore = "needs etcd, and Go to build the API server; run by make test-kubernetes"]
fn kubernetes_takes_every_manifest_and_no_unknown_field() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::start();
    let definitions = crds();
    for definition in &definitions {
        server.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    }
    for name in ["rook-ceph", "rook-ceph-external", "storage"] {
        server.make(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
    }
    let paths = paths(&definitions);
    // A definition is served a moment after it is made.
    let first = document(&layout(&example("external")).manifests()[0]);
    let waiting = std::time::Instant::now();
    for path in paths.values() {
        let list = path.replace("{namespace}", "");
        while server.0.ask("GET", &list, None).unwrap().status != 200 {
            assert!(waiting.elapsed().as_secs() < 120, "{list} is not served");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    assert_eq!(server.check(&paths, &first).0, 201);

    let (mut taken, mut refused) = (BTreeMap::<&str, usize>::new(), 0);
    for (name, manifests) in layouts() {
        for manifest in &manifests {
            let what = document(manifest);
            let (status, said) = server.check(&paths, &what);
            assert_eq!(status, 201, "{name}: {} {}: {said}", manifest.kind, manifest.name());
            *taken.entry(manifest.kind).or_default() += 1;
            // The same with a field that nobody knows, where the resource says what it is.
            let mut unknown = what.clone();
            let place = if what["spec"].is_object() { &mut unknown["spec"] } else { &mut unknown };
            place["tideMark"] = json!("x");
            let (status, said) = server.check(&paths, &unknown);
            assert!(
                status == 400 && said.contains("unknown field") && said.contains("tideMark"),
                "{status}: {said}"
            );
            refused += 1;
        }
    }
    let total: usize = taken.values().sum();
    eprintln!("  {total} manifests taken, {refused} with an unknown field refused: {taken:?}");
    assert_eq!((taken.len(), total), (8, refused));

    // Deeper, too: in what Rook's most important resource says of OSDs.
    let mut cluster = layout(&example("reference-1")).manifests().iter().map(document).next().unwrap();
    cluster["spec"]["storage"]["storageClassDeviceSets"][0]["volumeClaimTemplates"][1]["spec"]["storageClas"] =
        json!("x");
    let (status, said) = server.check(&paths, &cluster);
    assert!(status == 400 && said.contains("storageClas"), "{status}: {said}");

    // And what is written for people is the same to it: YAML, once, for real.
    let manifests = layout(&example("reference-2")).manifests();
    for manifest in &manifests {
        let what = document(manifest);
        let key = format!("{} {}", manifest.api_version, manifest.kind);
        let namespace = manifest.namespace().map(|name| format!("/namespaces/{name}")).unwrap_or_default();
        let path = paths[&key].replace("{namespace}", &namespace);
        let text = tidemark_kubernetes::yaml(std::slice::from_ref(manifest)).unwrap();
        let made = server.0.ask("POST", &format!("{path}?fieldValidation=Strict"), Some(&text)).unwrap();
        assert_eq!(made.status, 201, "{text}\n{}", made.body);
        let stored: Value = serde_json::from_str(&made.body).unwrap();
        assert_eq!(stored["metadata"]["name"], what["metadata"]["name"]);
        if manifest.kind == "CephCluster" {
            assert_eq!(stored["spec"], what["spec"], "nothing was dropped or changed");
        }
    }
}
