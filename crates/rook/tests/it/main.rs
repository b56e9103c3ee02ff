//! Layouts at a real API server with Rook's definitions. No operator of Rook runs here: the tests write what it would write, so no
//! cluster of Ceph ever comes up.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod arm;
mod destroyed;
mod server;

use serde_json::{Value, json};
use server::{LAYOUT, Server, cluster, patience, placed};
use std::collections::BTreeMap;
use std::path::Path;
use tidemark_rook::{Applied, Change, Destroy, RookError, State};

fn counted(applied: &[Applied]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for one in applied {
        let name = match one.change {
            Change::Created => "created",
            Change::Changed => "changed",
            Change::Unchanged => "unchanged",
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn missing(placed: &tidemark_rook::Placed) -> Vec<String> {
    match placed.apply() {
        Err(RookError::Missing(all)) => all,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_lacks_are_each_said_in_a_sentence_before_anything_is_applied() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::bare();
    let placed = server.placed(LAYOUT);
    let all = missing(&placed);
    let expected = [
        "the namespace rook-ceph:",
        "the definition of CephBlockPool, CephCluster, CephObjectStore (ceph.rook.io/v1): apply Rook's crds.yaml",
        "the definition of ObjectBucketClaim (objectbucket.io/v1alpha1)",
        "the definition of VolumeSnapshotClass (snapshot.storage.k8s.io/v1): apply the definitions of the external-snapshotter",
        "Rook's operator, the Deployment rook-ceph-operator in the namespace rook-ceph",
        "the storage class fast",
        "the node node-1: no node has the label",
        "the node node-2",
        "the node node-3",
    ];
    assert_eq!(all.len(), expected.len(), "{all:#?}");
    for (said, expected) in all.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }

    // All but little: an operator that is too old, a node that is not Ready, another cluster, and another's class.
    server.namespace();
    server.definitions();
    server.operator("v1.19.7");
    ["fast", "block"].into_iter().for_each(|class| server.class(class));
    ["node-1", "node-2", "node-3"].into_iter().for_each(|node| server.node(node));
    let gone = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    server.client.merge("/api/v1/nodes/node-2/status", &gone).unwrap();
    let other = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster", "metadata": {"name": "other"}, "spec": {}});
    server.make("/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters", &other);
    let all = missing(&placed);
    let expected = [
        "Rook 1.20 or later: the operator is 1.19",
        "a node node-2 that is Ready",
        "the name of the StorageClass block: one is there that is not of the layout trial",
        "a namespace without another cluster: the CephCluster rook-ceph/other",
    ];
    assert_eq!(all.len(), expected.len(), "{all:#?}");
    for (said, expected) in all.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
    assert_eq!(server.labelled(), Vec::<String>::new(), "nothing was applied");
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_has_what_was_applied_and_says_what_has_drifted_and_what_rook_would_write_is_waited_for() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::ready();
    let placed = server.placed(LAYOUT);
    let resources = placed.layout().manifests().len();
    assert_eq!(counted(&placed.apply().unwrap()), BTreeMap::from([("created", resources)]));
    assert_eq!(counted(&placed.apply().unwrap()), BTreeMap::from([("unchanged", resources)]));
    let changed = server.placed(&LAYOUT.replace("gateways: 2", "gateways: 3"));
    assert_eq!(
        counted(&changed.apply().unwrap()),
        BTreeMap::from([("changed", 1), ("unchanged", resources - 1)])
    );

    // Somebody changes what is there, and the document says otherwise.
    let drifted = |placed: &tidemark_rook::Placed| -> Vec<String> {
        let status = placed.status().unwrap();
        let parts = status.resources.iter();
        parts
            .flat_map(|part| part.drift.iter().map(|one| format!("{}: {one}", part.standing.resource)))
            .collect()
    };
    assert_eq!(drifted(&changed), Vec::<String>::new());
    assert_eq!(drifted(&placed), ["CephObjectStore objects: spec.gateway.instances is 3, and should be 2"]);
    let path = "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/trial";
    server.client.ask("PATCH", path, None).unwrap_err();
    server.client.merge(path, &json!({"spec": {"mon": {"count": 5}}})).unwrap();
    assert_eq!(drifted(&changed), ["CephCluster trial: spec.mon.count is 5, and should be 3"]);
    assert!(!changed.status().unwrap().is_as_wanted());
    assert_eq!(
        counted(&changed.apply().unwrap()),
        BTreeMap::from([("changed", 1), ("unchanged", resources - 1)])
    );
    // What the document does not name any more is told apart, and so is what cannot be changed.
    let other = server.placed(&LAYOUT.replace("name: block,", "name: block, class: other,"));
    let status = other.status().unwrap();
    assert_eq!(status.others, ["StorageClass block", "VolumeSnapshotClass block"]);
    let absent: Vec<_> = status
        .resources
        .iter()
        .filter(|part| part.standing.state == State::Missing)
        .map(|part| &part.standing.resource)
        .collect();
    assert_eq!(absent, ["StorageClass other", "VolumeSnapshotClass other"]);
    let fixed = server.placed(&LAYOUT.replace("{name: block,", "{name: blocks, class: block,"));
    let refused = fixed.apply().unwrap_err().to_string();
    assert!(
        refused.contains("refuses to apply the StorageClass block") && refused.contains("parameters"),
        "{refused}"
    );
    assert!(!server.labelled().contains(&"cephblockpools blocks".to_owned()), "nothing was applied");
    let status = fixed.status().unwrap();
    assert!(
        status
            .resources
            .iter()
            .any(|part| part.refused.as_ref().is_some_and(|said| said.contains("parameters")))
    );

    // Nobody looks after the resources: the wait ends, and says why.
    let mut news = Vec::new();
    let late = changed.wait(patience(1), &mut |text| news.push(text.to_owned())).unwrap_err().to_string();
    assert!(late.contains("CephCluster trial: no operator has said anything of it"), "{late}");
    assert!(news.iter().any(|line| line.starts_with("CephBlockPool block: no operator")), "{news:#?}");

    // A status as Rook writes it, with a condition, and an event.
    let condition = json!({"type": "Progressing", "status": "True", "reason": "ClusterProgressing", "message": "Configuring Ceph OSDs"});
    let mut status = cluster("Progressing", "HEALTH_WARN", 2);
    status["conditions"] = json!([condition]);
    server.status("cephclusters", "trial", &status);
    let found = server.client.ask("GET", path, None).unwrap();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "one"}, "type": "Warning",
        "reason": "ReconcileFailed", "message": "no OSD on node-3", "lastTimestamp": "2026-11-26T00:00:00Z",
        "involvedObject": {"kind": "CephCluster", "name": "trial", "namespace": "rook-ceph", "uid": found["metadata"]["uid"]}});
    server.make("/api/v1/namespaces/rook-ceph/events", &event);
    let late = changed.wait(patience(1), &mut |_| {}).unwrap_err().to_string();
    for part in [
        "Progressing, HEALTH_WARN, 2 of 3 OSDs",
        "Configuring Ceph OSDs",
        "ReconcileFailed: no OSD on node-3",
    ] {
        assert!(late.contains(part), "{part}: {late}");
    }

    // The rest comes step by step while it is waited for: each step is written once the one before was seen.
    let steps: [&dyn Fn(); 3] = [
        &|| server.status("cephclusters", "trial", &cluster("Progressing", "HEALTH_OK", 3)),
        &|| server.status("cephclusters", "trial", &cluster("Ready", "HEALTH_OK", 3)),
        &|| server.all_is_well(),
    ];
    let (mut next, mut news) = (steps.iter(), Vec::new());
    let mut say = |text: &str| {
        news.push(text.to_owned());
        // A line about the cluster is the sign that what was written before is known.
        if text.starts_with("CephCluster")
            && let Some(step) = next.next()
        {
            step();
        }
    };
    changed.wait(patience(120), &mut say).unwrap();
    let of_cluster: Vec<_> = news.iter().filter(|line| line.starts_with("CephCluster")).collect();
    assert_eq!(of_cluster.len(), 3, "{news:#?}");
    assert_eq!(of_cluster[2], "CephCluster trial: Ready, HEALTH_OK, 3 of 3 OSDs");
    let status = changed.status().unwrap();
    assert!(status.is_as_wanted(), "{status:#?}");
    assert_eq!(
        (status.osds, status.osds_wanted, status.health.as_deref()),
        (Some(3), Some(3), Some("HEALTH_OK"))
    );
    // A user who does not wait any longer.
    server.status("cephclusters", "trial", &cluster("Ready", "HEALTH_ERR", 3));
    let stopped = tidemark_rook::Patience { stopped: &|| true, ..patience(60) };
    assert!(matches!(changed.wait(stopped, &mut |_| {}), Err(RookError::Stopped)));
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_keys_of_an_imported_cluster_are_looked_for() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::ready();
    let placed = server.placed("name: trial\nlayout: external\npools:\n- name: rbd\n");
    let all = missing(&placed);
    let expected = [
        "the Secret rook-ceph-mon ",
        "the ConfigMap rook-ceph-mon-endpoints ",
        "the Secret rook-csi-rbd-node ",
        "the Secret rook-csi-rbd-provisioner ",
    ];
    assert_eq!(all.len(), expected.len(), "{all:#?}");
    assert!(all.iter().zip(expected).all(|(said, expected)| said.starts_with(expected)), "{all:#?}");
    for name in ["rook-ceph-mon", "rook-csi-rbd-node", "rook-csi-rbd-provisioner"] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        server.make("/api/v1/namespaces/rook-ceph/secrets", &secret);
    }
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rook-ceph-mon-endpoints"}});
    server.make("/api/v1/namespaces/rook-ceph/configmaps", &map);
    assert_eq!(counted(&placed.apply().unwrap()), BTreeMap::from([("created", 3)]));
    server.status("cephclusters", "trial", &json!({"phase": "Connected", "ceph": {"health": "HEALTH_WARN"}}));
    placed.wait(patience(60), &mut |_| {}).unwrap();
    let device = ["node-1:/dev/sdb".parse().unwrap()];
    let wiped = placed.destroy(&Destroy { wipe: &device, patience: patience(60) }, &mut |_| {});
    assert!(matches!(wiped, Err(RookError::Devices(_))), "{wiped:?}");
    placed.destroy(&Destroy { wipe: &[], patience: patience(60) }, &mut |_| {}).unwrap();
    assert_eq!(server.labelled(), Vec::<String>::new());
}

/// The roles that the manual gives.
fn documented_roles() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rook.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains("kind: ClusterRole\n")).unwrap();
    block.split("---\n").map(|one| serde_saphyr::from_str(one).unwrap()).collect()
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_rights_of_the_manual_are_enough_and_one_that_is_missing_is_named() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::ready();
    let roles = documented_roles();
    assert_eq!(roles.len(), 2);
    let mut fewer = roles.clone();
    let rules = fewer[0]["rules"].as_array_mut().unwrap();
    let before = rules.len();
    rules.retain(|rule| !rule["resources"].as_array().unwrap().contains(&json!("nodes")));
    assert_eq!(rules.len() + 1, before, "the role has it");
    let said = placed(LAYOUT, &server.user("fewer", &fewer)).apply().unwrap_err();
    assert!(matches!(&said, RookError::Forbidden(why) if why.contains("nodes")), "{said}");
    assert_eq!(server.labelled(), Vec::<String>::new());

    let placed = placed(LAYOUT, &server.user("enough", &roles));
    placed.apply().unwrap();
    server.all_is_well();
    placed.wait(patience(60), &mut |_| {}).unwrap();
    assert!(placed.status().unwrap().is_as_wanted());
    let done = std::sync::atomic::AtomicBool::new(false);
    let destroyed = std::thread::scope(|scope| {
        scope.spawn(|| destroyed::controllers(&server, &done));
        let destroyed = placed.destroy(&Destroy { wipe: &[], patience: patience(120) }, &mut |_| {});
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        destroyed
    });
    destroyed.unwrap();
    assert_eq!(server.labelled(), Vec::<String>::new());
}
