//! The built binary claims a bucket for its driver pods. Who makes it does what Rook's operator does, on the lab's object store.

use crate::common::cluster::{Cluster, documented_rules};
use crate::common::gateway::{Ceph, forward};
use crate::common::{Output, Place, Record};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidemark_apiserver::{Client, Which};
use tidemark_lab::Lab;

const CLAIMS: &str = "/apis/objectbucket.io/v1alpha1/namespaces/default/objectbucketclaims";
const FINALIZER: &str = "objectbucket.io/finalizer";

/// Rook's definition of claims of buckets, and two classes: nobody makes buckets of the second.
fn definitions(cluster: &Cluster) {
    let mut text = String::new();
    let packed = include_bytes!("../../../kubernetes/tests/rook/crds.yaml.gz");
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    let is_meant = |text: &&str| text.contains("\n  name: objectbucketclaims.objectbucket.io\n");
    cluster.apply(text.split("\n---\n").find(is_meant).unwrap());
    for (name, provisioner) in
        [("rook-ceph-bucket", "rook-ceph.ceph.rook.io/bucket"), ("nobodys", "example.org/bucket")]
    {
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner});
        cluster.client.create("/apis/storage.k8s.io/v1/storageclasses", &class).unwrap();
    }
    crate::common::fleet::wait("claims", || cluster.client.list::<Value>(CLAIMS, "").ok());
}

/// Makes buckets and removes them, until it is dropped.
struct Provisioner<'a> {
    client: Client,
    ceph: &'a Lab,
    place: Place,
    /// Where pods reach the gateway.
    host: &'a str,
    port: &'a str,
    is_over: &'a AtomicBool,
}

impl Provisioner<'_> {
    /// What it made: the secret keys; and how many objects each bucket had when it was removed.
    fn work(&self) -> (Vec<String>, Vec<u64>) {
        let (mut keys, mut objects) = (Vec::new(), Vec::new());
        while !self.is_over.load(Ordering::Relaxed) {
            for claim in self.client.list::<Value>(CLAIMS, "").unwrap_or_default() {
                let is_going = !claim["metadata"]["deletionTimestamp"].is_null();
                let is_mine = claim["spec"]["storageClassName"] == "rook-ceph-bucket";
                match (is_mine, is_going, claim["status"]["phase"] == "Bound") {
                    (true, true, _) => objects.push(self.remove(&claim)),
                    (true, false, false) => keys.push(self.make(&claim)),
                    (false, false, _) => self.refuse(&claim),
                    _ => {}
                }
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        (keys, objects)
    }

    fn make(&self, claim: &Value) -> String {
        let name = claim["metadata"]["name"].as_str().unwrap();
        let path = format!("{CLAIMS}/{name}");
        self.client.merge(&path, &json!({"metadata": {"finalizers": [FINALIZER]}})).unwrap();
        let bucket = format!("{}-f00d", claim["spec"]["generateBucketName"].as_str().unwrap());
        let user: Value = serde_json::from_str(
            &self.ceph.radosgw_admin(&["user", "create", "--uid", name, "--display-name", name]).unwrap(),
        )
        .unwrap();
        let key = &user["keys"][0];
        let (access, secret) = (key["access_key"].as_str().unwrap(), key["secret_key"].as_str().unwrap());
        let text = format!(
            "name: bucket\ntarget: {{kind: s3, endpoint: '{}', access_key: {access}, secret_key: {secret}}}\nnaming: {{container: {bucket}}}\n\
             stages: [init: {{containers: 1}}]\n",
            self.ceph.endpoint()
        );
        assert_eq!(self.place.run(&self.place.write("bucket.yaml", &text)).code, 0);
        // As for Rook's users: no other buckets.
        self.ceph.radosgw_admin(&["user", "modify", "--uid", name, "--max-buckets=-1"]).unwrap();
        let metadata = json!({"name": name, "ownerReferences": [{
            "apiVersion": "objectbucket.io/v1alpha1", "kind": "ObjectBucketClaim", "name": name, "uid": claim["metadata"]["uid"],
        }]});
        let settings = json!({"BUCKET_HOST": self.host, "BUCKET_PORT": self.port, "BUCKET_NAME": bucket, "BUCKET_REGION": ""});
        let keys = json!({"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret});
        let of = |plural| self.client.path("api/v1", plural);
        self.client
            .create(&of("configmaps"), &json!({"kind": "ConfigMap", "metadata": metadata, "data": settings}))
            .unwrap();
        self.client
            .create(&of("secrets"), &json!({"kind": "Secret", "metadata": metadata, "stringData": keys}))
            .unwrap();
        self.client.merge(&format!("{path}/status"), &json!({"status": {"phase": "Bound"}})).unwrap();
        secret.to_owned()
    }

    fn remove(&self, claim: &Value) -> u64 {
        let name = claim["metadata"]["name"].as_str().unwrap();
        let bucket = format!("{}-f00d", claim["spec"]["generateBucketName"].as_str().unwrap());
        let stats: Value = serde_json::from_str(
            &self.ceph.radosgw_admin(&["bucket", "stats", "--bucket", &bucket]).unwrap(),
        )
        .unwrap();
        self.ceph.radosgw_admin(&["bucket", "rm", "--bucket", &bucket, "--purge-objects"]).unwrap();
        self.ceph.radosgw_admin(&["user", "rm", "--uid", name]).unwrap();
        self.client.merge(&format!("{CLAIMS}/{name}"), &json!({"metadata": {"finalizers": null}})).unwrap();
        stats["usage"]["rgw.main"]["num_objects"].as_u64().unwrap_or(0)
    }

    /// Says why there will be none.
    fn refuse(&self, claim: &Value) {
        let name = claim["metadata"]["name"].as_str().unwrap();
        let event = json!({
            "kind": "Event", "metadata": {"name": format!("{name}.1")}, "type": "Warning", "reason": "ProvisioningFailed",
            "message": "the object store has no quota left", "lastTimestamp": "2026-11-26T12:00:00Z",
            "involvedObject": {"kind": "ObjectBucketClaim", "name": name, "namespace": "default"},
        });
        let _there_already = self.client.create(&self.client.path("api/v1", "events"), &event);
    }
}

fn document(class: &str) -> String {
    format!(
        "name: claimed\nseed: 5\ndrivers: {{use: 2, kubernetes: {{cpu: 100m, memory: 256Mi, bucket: {{class: {class}}}}}}}\n\
         target: {{kind: s3, endpoint: 'http://${{BUCKET_HOST}}:${{BUCKET_PORT}}', access_key: '${{AWS_ACCESS_KEY_ID}}', \
         secret_key: '${{AWS_SECRET_ACCESS_KEY}}'}}\nnaming: {{container: '${{BUCKET_NAME}}'}}\ncontent: {{verify: true}}\nstages:\n  \
         - prepare: {{workers: 4, containers: 1, objects: 1-40, sizes: 16KiB}}\n  \
         - name: main\n    load: {{workers: 4, total_operations: 400, containers: 1, operations: [get: {{objects: 1-40}}]}}\n"
    )
}

#[test]
#[ignore = "needs a node of Kubernetes, the Ceph packages and root; run by make test-kubernetes"]
fn kubernetes_driver_pods_load_the_bucket_that_their_run_has_claimed_and_it_goes_with_them() {
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
    let (host, port) = endpoint.strip_prefix("http://").unwrap().split_once(':').unwrap();
    definitions(&cluster);
    cluster.allow("bench", "drivers", &documented_rules("kubernetes.md", "kind: Role\n"));
    cluster.allow("bench", "buckets", &documented_rules("kubernetes.md", "resources: [objectbucketclaims]"));
    let account = cluster.account("bench");
    let run = |account: Option<&Path>, class: &str, more: &[&str]| -> Output {
        let path = place.write("claimed.yaml", &document(class));
        let words = [&["run", path.to_str().unwrap(), "--on", "kubernetes", "--json"], more].concat();
        cluster.command(account, &words).output().unwrap().into()
    };

    let is_over = AtomicBool::new(false);
    let config = cluster.kubernetes.kubeconfig();
    let provisioner = Provisioner {
        client: Client::connect(Which { kubeconfig: Some(&config), ..Which::default() }).unwrap(),
        ceph,
        place: Place::new(),
        host,
        port,
        is_over: &is_over,
    };
    let (secrets, objects) = std::thread::scope(|scope| {
        let working = scope.spawn(|| provisioner.work());
        let output = run(Some(&account), "rook-ceph-bucket", &[]);
        let refused = run(Some(&account), "nobodys", &["--wait", "60s"]);
        // Who may look at classes need not wait.
        let absent = run(None, "absent", &[]);
        is_over.store(true, Ordering::Relaxed);
        let made = working.join().unwrap();
        for secret in &made.0 {
            let stored = std::fs::read(place.path("results.db")).unwrap();
            let is_there = stored.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(
                !is_there && !output.stdout.contains(secret) && !output.stderr.contains(secret),
                "a key is told"
            );
        }
        let record = Record::from(&output);
        assert_eq!(record.operation("prepare", "prepare")["ok"], 40, "{}", record.stderr);
        let get = record.operation("main", "get");
        assert_eq!((&get["ok"], &get["verified"]), (&json!(400), &json!(400)));
        let why = "has no bucket: ProvisioningFailed: the object store has no quota left";
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert!(
            absent.stderr.contains("refuses to claim a bucket: there is no storage class absent"),
            "{}",
            absent.stderr
        );
        made
    });
    // It was that bucket and no other, and nothing is left.
    assert_eq!((secrets.len(), objects), (1, vec![40]));
    let left = |path: &str| cluster.client.list::<Value>(path, "").unwrap();
    assert_eq!(left(CLAIMS), [] as [Value; 0]);
    for plural in ["configmaps", "secrets", "pods"] {
        crate::common::fleet::wait(&format!("no {plural}"), || {
            let left = left(&cluster.client.path("api/v1", plural));
            left.iter()
                .all(|one| !one["metadata"]["name"].as_str().unwrap().starts_with("tidemark"))
                .then_some(())
        });
    }

    // Without Kubernetes there is nobody to claim it from.
    let path = place.write("claimed.yaml", &document("rook-ceph-bucket"));
    assert_eq!(place.tidemark(&["check", path.to_str().unwrap()]).code, 0);
    let here = place.tidemark(&["run", path.to_str().unwrap()]);
    assert!(here.stderr.contains("run it with --on kubernetes"), "{}", here.stderr);
    let manifests = cluster
        .command(None, &["run", path.to_str().unwrap(), "--on", "kubernetes", "--dry-run"])
        .output()
        .unwrap();
    let manifests = String::from_utf8(manifests.stdout).unwrap();
    assert!(
        manifests.contains("kind: ObjectBucketClaim")
            && manifests.contains("storageClassName: rook-ceph-bucket"),
        "{manifests}"
    );
}
