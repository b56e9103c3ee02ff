//! A Kubernetes of the lab that ends with its test, and the built binary beside it.

use super::Place;
use super::fleet::wait;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tidemark_apiserver::{Client, Which};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

/// Where Evaluations are.
pub const EVALUATIONS: &str = "/apis/tidemark.dev/v1alpha1/namespaces/default/evaluations";

pub fn evaluation(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "tidemark.dev/v1alpha1", "kind": "Evaluation", "metadata": {"name": name}, "spec": spec})
}

/// An API server, perhaps with a node.
pub struct Cluster {
    pub place: Place,
    pub kubernetes: Kubernetes,
    /// The administrator's.
    pub client: Client,
}

impl Cluster {
    /// An API server without a node.
    pub fn server() -> Self {
        let place = Place::new();
        let options = KubernetesOptions::new(place.path("lab"));
        Self::up(place, &options)
    }

    /// A node without the image of the built binary.
    pub fn bare_node() -> Self {
        Self::bare(1)
    }

    /// A node, with the image of the built binary.
    pub fn node() -> Self {
        Self::nodes(1)
    }

    /// So many nodes, all with the image of the built binary.
    pub fn nodes(count: usize) -> Self {
        let cluster = Self::bare(count);
        let archive = cluster.place.path("tidemark.tar");
        let packed = cluster.place.tidemark(&["kubernetes", "image", "-o", archive.to_str().unwrap()]);
        assert_eq!(packed.code, 0, "{}", packed.stderr);
        cluster.import(&archive);
        cluster
    }

    fn bare(nodes: usize) -> Self {
        let place = Place::new();
        let options = KubernetesOptions { nodes, ..KubernetesOptions::new(place.path("lab")) };
        Self::up(place, &options)
    }

    fn up(place: Place, options: &KubernetesOptions) -> Self {
        let kubernetes = Kubernetes::up(options, &mut |_| {}).unwrap();
        let config = kubernetes.kubeconfig();
        let client = Client::connect(Which { kubeconfig: Some(&config), ..Which::default() }).unwrap();
        Self { place, kubernetes, client }
    }

    /// Brings an image to the node.
    pub fn import(&self, archive: &Path) {
        self.kubernetes.import(archive).unwrap();
        std::fs::remove_file(archive).unwrap();
    }

    /// The built binary, for the user of a kubeconfig; `None`: the administrator.
    pub fn command(&self, account: Option<&Path>, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.env("KUBECONFIG", account.map_or_else(|| self.kubernetes.kubeconfig(), Path::to_owned));
        command
    }

    /// Makes what manifests say. A field that the API server does not know is an error.
    pub fn apply(&self, manifests: &str) {
        for text in manifests.split("\n---\n") {
            self.make(&serde_saphyr::from_str(text).unwrap());
        }
    }

    pub fn make(&self, manifest: &Value) -> Value {
        let of = |group, plural| self.client.path(group, plural);
        let path = match manifest["kind"].as_str().unwrap() {
            "CustomResourceDefinition" => {
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()
            }
            "Role" => of("apis/rbac.authorization.k8s.io/v1", "roles"),
            "RoleBinding" => of("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
            "Job" => of("apis/batch/v1", "jobs"),
            "Deployment" => of("apis/apps/v1", "deployments"),
            "DaemonSet" => of("apis/apps/v1", "daemonsets"),
            "StatefulSet" => of("apis/apps/v1", "statefulsets"),
            "ServiceAccount" => of("api/v1", "serviceaccounts"),
            "PersistentVolumeClaim" => of("api/v1", "persistentvolumeclaims"),
            "Secret" => of("api/v1", "secrets"),
            "Service" => of("api/v1", "services"),
            "Pod" => of("api/v1", "pods"),
            "Node" => "/api/v1/nodes".to_owned(),
            "Lease" => "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases".to_owned(),
            "PersistentVolume" => "/api/v1/persistentvolumes".to_owned(),
            "StorageClass" => "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
            other => panic!("{other}"),
        };
        self.client.create(&path, manifest).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The kubeconfig of a service account.
    pub fn account(&self, name: &str) -> PathBuf {
        let path = self.client.path("api/v1", &format!("serviceaccounts/{name}/token"));
        let token =
            self.client.ask("POST", &path, Some(&json!({"kind": "TokenRequest", "spec": {}}))).unwrap();
        let config = json!({
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": "lab", "user": name, "namespace": "default"}}],
            "clusters": [{"name": "lab", "cluster": {
                "server": self.kubernetes.endpoint(),
                "certificate-authority": self.kubernetes.dir().join("certificates/ca.crt"),
            }}],
            "users": [{"name": name, "user": {"token": token["status"]["token"]}}],
        });
        self.place.write(&format!("{name}.config"), &config.to_string())
    }

    /// Gives a service account, which is made if there is none, the rights of a role.
    pub fn allow(&self, account: &str, role: &str, rules: &Value) {
        let accounts = self.client.path("api/v1", "serviceaccounts");
        let _there_already =
            self.client.create(&accounts, &json!({"kind": "ServiceAccount", "metadata": {"name": account}}));
        self.make(&json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": role}, "rules": rules}));
        self.make(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        }));
    }

    /// Makes what `tidemark kubernetes manifests` prints: where there is a node, the operator runs on it.
    pub fn install_operator(&self) {
        let printed = self.place.tidemark(&["kubernetes", "manifests"]);
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        self.apply(&printed.stdout);
        wait("Evaluations", || self.client.list::<Value>(EVALUATIONS, "").ok());
    }

    /// The pods with a label, once there is one and all of them are ready.
    pub fn ready(&self, label: &str) -> Vec<Value> {
        let path = self.client.path("api/v1", "pods");
        wait(&format!("{label} ready"), || {
            let pods: Vec<Value> = self.client.list(&path, &format!("labelSelector={label}")).ok()?;
            let is_ready = |pod: &Value| {
                let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
                let is_going = !pod["metadata"]["deletionTimestamp"].is_null();
                !is_going && conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            };
            (!pods.is_empty() && pods.iter().all(is_ready)).then_some(pods)
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = lab::down(self.kubernetes.dir(), true, &mut |_| {});
    }
}

/// The rules of a block of YAML in the manual that begins with this line.
pub fn documented_rules(file: &str, begins: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains(begins)).unwrap();
    serde_saphyr::from_str::<Value>(block).unwrap()["rules"].clone()
}
