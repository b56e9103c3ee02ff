//! Layouts that are destroyed, or are not.

use super::server::{LAYOUT, Server, patience};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidemark_rook::{Destroy, Device, RookError};

/// Does what Kubernetes' controllers do, of which none runs: what is being deleted and not used is let go.
pub(crate) fn controllers(server: &Server, done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        for path in ["/api/v1/persistentvolumes", "/api/v1/namespaces/rook-ceph/persistentvolumeclaims"] {
            let all: Vec<Value> = server.client.list(path, "").unwrap_or_default();
            for one in all.iter().filter(|one| one["metadata"]["deletionTimestamp"].is_string()) {
                server.let_go(&format!("{path}/{}", one["metadata"]["name"].as_str().unwrap()));
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Destroys while the controllers' part is played.
fn destroy(server: &Server, text: &str, wipe: &[Device], news: &mut Vec<String>) -> Result<(), RookError> {
    let placed = server.placed(text);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| controllers(server, &done));
        let how = Destroy { wipe, patience: patience(60) };
        let destroyed = placed.destroy(&how, &mut |text| {
            news.push(text.to_owned());
            // Rook's Jobs begin once the cluster is gone.
            if text == "devices are wiped on 0 of 3 nodes" {
                ["node-1", "node-2", "node-3"].into_iter().for_each(|node| wiped(server, node));
            }
        });
        done.store(true, Ordering::Relaxed);
        destroyed
    })
}

/// A Job by which Rook wipes the devices of a node, that is done.
fn wiped(server: &Server, node: &str) {
    let jobs = "/apis/batch/v1/namespaces/rook-ceph/jobs";
    let name = format!("cluster-cleanup-job-{node}");
    let container = json!({"name": "cleanup", "image": "rook/ceph:v1.20.6"});
    let what = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": {"rook-ceph-cleanup": "true"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}});
    server.make(jobs, &what);
    let at = "2026-11-26T00:00:00Z";
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": at, "lastTransitionTime": at});
    let status = json!({"succeeded": 1, "startTime": at, "completionTime": at,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
    server.client.merge(&format!("{jobs}/{name}/status"), &json!({"status": status})).unwrap();
}

fn claim(server: &Server, name: &str, class: &str, labels: &Value) {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeMode": "Block",
        "resources": {"requests": {"storage": "64Gi"}}});
    let what = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "labels": labels}, "spec": spec});
    server.make("/api/v1/namespaces/rook-ceph/persistentvolumeclaims", &what);
}

/// Binds a claim of an OSD to the volume of a node's device, as Kubernetes would.
fn bind(server: &Server, node: &str) {
    let (claims, volumes) =
        ("/api/v1/namespaces/rook-ceph/persistentvolumeclaims", "/api/v1/persistentvolumes");
    let (name, volume) = (format!("{node}-data-0"), format!("trial-{node}-data-0"));
    claim(server, &name, "disks", &json!({"ceph.rook.io/DeviceSet": node}));
    let made = server.client.ask("GET", &format!("{claims}/{name}"), None).unwrap();
    let claim_ref = json!({"kind": "PersistentVolumeClaim", "namespace": "rook-ceph", "name": name, "uid": made["metadata"]["uid"]});
    server.client.merge(&format!("{volumes}/{volume}"), &json!({"spec": {"claimRef": claim_ref}})).unwrap();
    server
        .client
        .merge(&format!("{volumes}/{volume}/status"), &json!({"status": {"phase": "Bound"}}))
        .unwrap();
    server.client.merge(&format!("{claims}/{name}"), &json!({"spec": {"volumeName": volume}})).unwrap();
}

const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_layouts_in_use_are_not_destroyed_and_what_stays_is_named() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::ready();
    server.placed(LAYOUT).apply().unwrap();
    server.all_is_well();
    let before = server.labelled();

    // A claim, a bucket and a pool of others.
    claim(&server, "database", "block", &json!({}));
    let bucket = json!({"apiVersion": "objectbucket.io/v1alpha1", "kind": "ObjectBucketClaim", "metadata": {"name": "theirs"},
        "spec": {"bucketName": "theirs", "storageClassName": "objects"}});
    let buckets = "/apis/objectbucket.io/v1alpha1/namespaces/rook-ceph/objectbucketclaims";
    server.make(buckets, &bucket);
    let pools = "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephblockpools";
    let pool = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephBlockPool", "metadata": {"name": "theirs"},
        "spec": {"replicated": {"size": 3}}});
    server.make(pools, &pool);
    let mut news = Vec::new();
    let Err(RookError::InUse(users)) = destroy(&server, LAYOUT, &[], &mut news) else { panic!("{news:#?}") };
    let expected = [
        "PersistentVolumeClaim rook-ceph/database of the class block",
        "ObjectBucketClaim rook-ceph/theirs of the class objects",
        "CephBlockPool rook-ceph/theirs, which is not of the layout",
    ];
    assert_eq!(users, expected);
    assert_eq!((news, server.labelled()), (Vec::new(), before), "nothing was removed");
    let claims = "/api/v1/namespaces/rook-ceph/persistentvolumeclaims";
    server.client.delete(&format!("{claims}/database")).unwrap();
    server.let_go(&format!("{claims}/database"));
    server.client.delete(&format!("{buckets}/theirs")).unwrap();
    server.client.delete(&format!("{pools}/theirs")).unwrap();

    // Rook holds the pool, and says why: the wait is bounded, and the cluster is not touched before.
    let held = json!({"metadata": {"finalizers": ["cephblockpool.ceph.rook.io"]}});
    server.client.merge(&format!("{pools}/block"), &held).unwrap();
    let blocked = json!({"type": "DeletionIsBlocked", "status": "True", "reason": "PoolNotEmpty", "message": "2 images are in it"});
    server.status("cephblockpools", "block", &json!({"phase": "Ready", "conditions": [blocked]}));
    let how = Destroy { wipe: &[], patience: patience(3) };
    let left = server.placed(LAYOUT).destroy(&how, &mut |_| {}).unwrap_err();
    let RookError::Left { what, .. } = &left else { panic!("{left}") };
    assert_eq!(what[0], "CephBlockPool block, held by cephblockpool.ceph.rook.io");
    assert!(what[1].contains("DeletionIsBlocked is True: PoolNotEmpty: 2 images are in it"), "{left}");
    let there = server.labelled();
    assert!(there.contains(&"cephclusters trial".to_owned()) && there.len() == 6, "{there:#?}");
    server.let_go(&format!("{pools}/block"));

    // OSDs have claims of the devices: without a list of devices, their data stay.
    bind(&server, "node-1");
    let mut news = Vec::new();
    destroy(&server, LAYOUT, &[], &mut news).unwrap();
    assert!(
        news.iter().any(
            |line| line.contains("trial-node-1-data-0 stays") && line.contains("rook-ceph/node-1-data-0")
        ),
        "{news:#?}"
    );
    let volumes = NODES.map(|node| format!("persistentvolumes trial-{node}-data-0"));
    let expected: Vec<_> = std::iter::once("storageclasses disks".to_owned()).chain(volumes).collect();
    assert_eq!(server.labelled(), expected);
    assert!(server.client.ask("GET", &format!("{claims}/node-1-data-0"), None).is_ok(), "the claim stays");
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_devices_are_wiped_only_if_exactly_they_are_named() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::ready();
    // Metadata on devices, too: so all that would be wiped can be named.
    let text = LAYOUT
        .replace(
            "metadata: {class: fast, size: 5Gi}",
            "metadata: {class: meta, size: 5Gi, devices: [/dev/nvme0n1p1]}",
        )
        .replace("wal: {class: fast, size: 5Gi}", "wal: {class: log, size: 5Gi, devices: [/dev/nvme0n1p2]}");
    server.placed(&text).apply().unwrap();
    server.all_is_well();
    NODES.into_iter().for_each(|node| bind(&server, node));
    let before = server.labelled();
    let all: Vec<Device> = NODES
        .into_iter()
        .flat_map(|node| {
            ["/dev/sdb", "/dev/nvme0n1p1", "/dev/nvme0n1p2"]
                .map(|path| format!("{node}:{path}").parse().unwrap())
        })
        .collect();

    let refused = |wipe: &[Device]| {
        let mut news = Vec::new();
        let said = destroy(&server, &text, wipe, &mut news).unwrap_err();
        assert!(matches!(said, RookError::Devices(_)), "{said}");
        assert_eq!((news, server.labelled()), (Vec::new(), before.clone()), "nothing was removed");
        said.to_string()
    };
    assert!(refused(&all[1..]).contains("does not name them: node-1:/dev/sdb;"));
    let other: Vec<Device> = all.iter().cloned().chain(["node-1:/dev/sda".parse().unwrap()]).collect();
    assert!(refused(&other).contains("not of the layout: node-1:/dev/sda;"));

    // A cluster that uses more than its document says, and one that somebody else has marked.
    let path = "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/trial";
    server.client.merge(path, &json!({"spec": {"storage": {"useAllDevices": true}}})).unwrap();
    assert!(refused(&all).contains("uses other storage than the document says"));
    server.client.merge(path, &json!({"spec": {"storage": {"useAllDevices": false}}})).unwrap();
    let policy = |confirmation: Value| json!({"spec": {"cleanupPolicy": {"confirmation": confirmation}}});
    server.client.merge(path, &policy(json!("yes-really-destroy-data"))).unwrap();
    assert!(refused(&[]).contains("has a cleanup policy that wipes its devices"));
    server.client.merge(path, &policy(Value::Null)).unwrap();

    // Rook would hold the cluster, so what it is told before it goes can be seen.
    server.client.merge(path, &json!({"metadata": {"finalizers": ["cephcluster.ceph.rook.io"]}})).unwrap();
    let mut news = Vec::new();
    let placed = server.placed(&text);
    let how = Destroy { wipe: &all, patience: patience(3) };
    let left = placed.destroy(&how, &mut |text| news.push(text.to_owned())).unwrap_err();
    assert!(left.to_string().contains("CephCluster trial, held by cephcluster.ceph.rook.io"), "{left}");
    let told = server.client.ask("GET", path, None).unwrap();
    assert_eq!(told["spec"]["cleanupPolicy"]["confirmation"], "yes-really-destroy-data");
    assert_eq!(told["spec"]["cleanupPolicy"]["sanitizeDisks"]["method"], "quick");
    assert!(told["metadata"]["deletionTimestamp"].is_string());
    let at = |part: &str| {
        news.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {news:#?}"))
    };
    let order = [
        "ObjectBucketClaim bench",
        "StorageClass block",
        "CephBlockPool block",
        "to be wiped",
        "CephCluster trial is being deleted",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{news:#?}");
    assert!(server.labelled().iter().any(|one| one.starts_with("persistentvolumes")), "devices go last");

    // The same again once Rook lets go: its Jobs are waited for, then the claims of OSDs and the volumes go.
    std::thread::scope(|scope| {
        let let_go = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            server.let_go(path);
        });
        let mut news = Vec::new();
        destroy(&server, &text, &all, &mut news).unwrap();
        let_go.join().unwrap();
        let at = |part: &str| {
            news.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {news:#?}"))
        };
        let order = [
            "wiped on 0 of 3",
            "wiped on 3 of 3",
            "PersistentVolumeClaim node-1-data-0",
            "PersistentVolume trial-node-1-data-0",
        ];
        assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{news:#?}");
    });
    assert_eq!(server.labelled(), Vec::<String>::new());
    let claims: Vec<Value> =
        server.client.list("/api/v1/namespaces/rook-ceph/persistentvolumeclaims", "").unwrap();
    assert!(claims.is_empty(), "{claims:#?}");
}
