//! A real API server with Rook's definitions. No operator of Rook runs: the tests write what it would write.

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tidemark_apiserver::{Client, Which};
use tidemark_kubernetes::Layout;
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};
use tidemark_rook::{Patience, Placed};

/// Ends with the test.
pub(crate) struct Server {
    pub(crate) client: Client,
    kubernetes: Kubernetes,
    pub(crate) place: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = lab::down(self.kubernetes.dir(), true, &mut |_| {});
    }
}

impl Server {
    /// An API server without anything of Rook's.
    pub(crate) fn bare() -> Self {
        let place = tempfile::tempdir().unwrap();
        let options = KubernetesOptions::new(place.path().join("lab"));
        let kubernetes = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
        let config = kubernetes.kubeconfig();
        let client = Client::connect(Which { kubeconfig: Some(&config), ..Which::default() }).unwrap();
        Self { client, kubernetes, place }
    }

    /// One that has all that the layout of the tests needs.
    pub(crate) fn ready() -> Self {
        let server = Self::bare();
        server.namespace();
        server.definitions();
        server.operator("v1.20.6");
        server.class("fast");
        ["node-1", "node-2", "node-3"].into_iter().for_each(|node| server.node(node));
        server
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.kubernetes.kubeconfig()
    }

    pub(crate) fn make(&self, path: &str, what: &Value) -> Value {
        self.client.create(path, what).unwrap_or_else(|failure| panic!("{path}: {failure}"))
    }

    pub(crate) fn namespace(&self) {
        let what = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rook-ceph"}});
        self.make("/api/v1/namespaces", &what);
    }

    /// Rook's definitions and the snapshotter's, and waits until they are served.
    pub(crate) fn definitions(&self) {
        let mut text = String::new();
        let packed = include_bytes!("../../../kubernetes/tests/rook/crds.yaml.gz");
        GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        text += "\n---\n";
        text += include_str!("../../../kubernetes/tests/rook/volumesnapshotclasses.yaml");
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_events: 5_000_000, max_nodes: 5_000_000, max_total_scalar_bytes: 64 << 20, max_documents: 100 },
        };
        let all: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options).unwrap();
        let all: Vec<_> = all.into_iter().filter(|definition| !definition.is_null()).collect();
        for definition in &all {
            // Rook's have a field that only its own tools know: they are made as `kubectl create` makes them.
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            self.client.ask("POST", path, Some(definition)).unwrap();
        }
        let since = Instant::now();
        for definition in &all {
            let spec = &definition["spec"];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
            let version = text(&spec["versions"][0]["name"]);
            let is_served = || {
                let listed = self.client.ask("GET", &format!("/apis/{group}/{version}"), None);
                let resources =
                    listed.unwrap_or_default()["resources"].as_array().cloned().unwrap_or_default();
                resources.iter().any(|resource| resource["name"] == plural.as_str())
            };
            while !is_served() {
                assert!(since.elapsed().as_secs() < 120, "{group}/{version} {plural} is not served");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// The Deployment of the operator, of which nothing runs.
    pub(crate) fn operator(&self, tag: &str) {
        let labels = json!({"app": "rook-ceph-operator"});
        let container = json!({"name": "operator", "image": format!("docker.io/rook/ceph:{tag}")});
        let what = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "rook-ceph-operator"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
        let path = "/apis/apps/v1/namespaces/rook-ceph/deployments/rook-ceph-operator";
        self.client.apply(path, &what, false).unwrap();
    }

    pub(crate) fn class(&self, name: &str) {
        let what = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "example.org/fast"});
        self.make("/apis/storage.k8s.io/v1/storageclasses", &what);
    }

    pub(crate) fn node(&self, name: &str) {
        let what = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}});
        self.make("/api/v1/nodes", &what);
        let ready =
            json!({"type": "Ready", "status": "True", "lastHeartbeatTime": null, "lastTransitionTime": null});
        self.client
            .merge(&format!("/api/v1/nodes/{name}/status"), &json!({"status": {"conditions": [ready]}}))
            .unwrap();
    }

    /// Writes the status of one of Rook's resources, as Rook would.
    pub(crate) fn status(&self, plural: &str, name: &str, status: &Value) {
        let group =
            if plural == "objectbucketclaims" { "objectbucket.io/v1alpha1" } else { "ceph.rook.io/v1" };
        let path = format!("/apis/{group}/namespaces/rook-ceph/{plural}/{name}/status");
        self.client.merge(&path, &json!({"status": status})).unwrap();
    }

    /// Says of all of the test's layout what Rook says when all is well.
    pub(crate) fn all_is_well(&self) {
        self.status("cephclusters", "trial", &cluster("Ready", "HEALTH_OK", 3));
        self.status("cephblockpools", "block", &json!({"phase": "Ready"}));
        self.status("cephobjectstores", "objects", &json!({"phase": "Ready"}));
        self.status("objectbucketclaims", "bench", &json!({"phase": "Bound"}));
    }

    /// Removes a finalizer of somebody who is not there: what is being deleted is gone then.
    pub(crate) fn let_go(&self, path: &str) {
        let _ = self.client.merge(path, &json!({"metadata": {"finalizers": null}}));
    }

    /// A kubeconfig of a user with these rights.
    pub(crate) fn user(&self, name: &str, roles: &[Value]) -> PathBuf {
        let accounts = "/api/v1/namespaces/rook-ceph/serviceaccounts";
        self.make(
            accounts,
            &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
        );
        for role in roles {
            let kind = role["kind"].as_str().unwrap();
            let (scope, plural, bindings) = match kind {
                "ClusterRole" => (String::new(), "clusterroles", "clusterrolebindings"),
                _ => ("namespaces/rook-ceph/".to_owned(), "roles", "rolebindings"),
            };
            let mut role = role.clone();
            role["metadata"] = json!({"name": name});
            let rbac = format!("/apis/rbac.authorization.k8s.io/v1/{scope}");
            self.make(&format!("{rbac}{plural}"), &role);
            let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{kind}Binding"), "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "rook-ceph"}]});
            self.make(&format!("{rbac}{bindings}"), &binding);
        }
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let token = self.client.ask("POST", &format!("{accounts}/{name}/token"), Some(&request)).unwrap();
        let config = json!({
            "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
            "clusters": [{"name": "lab", "cluster": {
                "server": self.kubernetes.endpoint(),
                "certificate-authority": self.kubernetes.dir().join("certificates/ca.crt"),
            }}],
            "users": [{"name": "lab", "user": {"token": token["status"]["token"]}}],
        });
        let path = self.place.path().join(format!("{name}.config"));
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// A layout at this server.
    pub(crate) fn placed(&self, text: &str) -> Placed {
        placed(text, &self.kubeconfig())
    }

    /// What there is with the labels of the test's layout: kind and name.
    pub(crate) fn labelled(&self) -> Vec<String> {
        let mut all = Vec::new();
        for path in [
            "apis/ceph.rook.io/v1/cephclusters",
            "apis/ceph.rook.io/v1/cephblockpools",
            "apis/ceph.rook.io/v1/cephobjectstores",
            "apis/objectbucket.io/v1alpha1/objectbucketclaims",
            "apis/storage.k8s.io/v1/storageclasses",
            "apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses",
            "api/v1/persistentvolumes",
        ] {
            let query = "labelSelector=app.kubernetes.io/instance%3Dtrial";
            let listed: Vec<Value> = self.client.list(&format!("/{path}"), query).unwrap();
            let plural = path.rsplit('/').next().unwrap();
            all.extend(
                listed.iter().map(|one| format!("{plural} {}", one["metadata"]["name"].as_str().unwrap())),
            );
        }
        all
    }
}

/// The layout of the tests: three OSDs on devices, metadata from a class, a pool, an object store and a bucket.
pub(crate) const LAYOUT: &str = "\
name: trial
layout: reference-1
image: quay.io/ceph/ceph:v20.2.4
nodes: [node-1, node-2, node-3]
osds: {per_node: 1}
data: {class: disks, size: 64Gi, devices: [/dev/sdb]}
metadata: {class: fast, size: 5Gi}
wal: {class: fast, size: 5Gi}
pools:
- {name: block, replicas: 3}
object_stores:
- {name: objects, replicas: 3, gateways: 2, buckets: [bench]}
";

pub(crate) fn layout(text: &str) -> Layout {
    tidemark_kubernetes::read(text).unwrap().0
}

pub(crate) fn placed(text: &str, kubeconfig: &Path) -> Placed {
    let which = Which { kubeconfig: Some(kubeconfig), ..Which::default() };
    Placed::connect(layout(text), which).unwrap()
}

/// What Rook says of a cluster with so many OSDs.
pub(crate) fn cluster(phase: &str, health: &str, osds: u32) -> Value {
    json!({"phase": phase, "ceph": {"health": health, "versions": {"osd": {"ceph version 20.2.4 (0)": osds}}}})
}

/// For so many seconds, whatever the user says.
pub(crate) fn patience(seconds: u64) -> Patience<'static> {
    Patience { most: Duration::from_secs(seconds), stopped: &|| false }
}
