//! Resources as Rook and Kubernetes write them.

use super::*;
use crate::kinds::Kind;
use serde_json::json;

fn of(kind: &str, found: &Value, osds: Option<u64>) -> (State, String) {
    let value = json!({"metadata": {"name": "x"}});
    let wanted = Object { kind: Kind::of(kind).unwrap(), value };
    let standing = standing(&wanted, Some(found), osds);
    (standing.state, standing.text)
}

fn cluster(phase: &str, health: &str, details: &Value, osds: &Value) -> (State, String) {
    let ceph = json!({"health": health, "details": details, "versions": {"osd": osds}});
    of("CephCluster", &json!({"status": {"phase": phase, "ceph": ceph}}), Some(3))
}

#[test]
fn a_cluster_is_ready_when_it_is_healthy_and_has_all_osds() {
    let three = json!({"ceph version 20.2.4": 2, "ceph version 20.2.5": 1});
    let none = json!({});
    assert_eq!(
        cluster("Ready", "HEALTH_OK", &none, &three),
        (State::Ready, "Ready, HEALTH_OK, 3 of 3 OSDs".into())
    );
    let two = json!({"ceph version 20.2.4": 2});
    assert_eq!(
        cluster("Ready", "HEALTH_OK", &none, &two),
        (State::NotReady, "Ready, HEALTH_OK, 2 of 3 OSDs".into())
    );
    assert_eq!(cluster("Progressing", "HEALTH_OK", &none, &three).0, State::NotReady);
    assert_eq!(cluster("Ready", "HEALTH_ERR", &none, &three).0, State::NotReady);
    let (state, text) = cluster("Ready", "", &none, &Value::Null);
    assert_eq!((state, text.ends_with("no OSDs of 3 yet")), (State::NotReady, true), "{text}");
}

#[test]
fn a_warning_is_waited_for_unless_it_is_harmless() {
    let three = json!({"20": 3});
    let check = |name: &str| json!({"severity": "HEALTH_WARN", "message": format!("about {name}")});
    let harmless = json!({"POOL_NO_REDUNDANCY": check("copies")});
    let (state, text) = cluster("Ready", "HEALTH_WARN", &harmless, &three);
    assert_eq!(state, State::Ready);
    assert!(text.contains("POOL_NO_REDUNDANCY: about copies"), "{text}");
    let both = json!({"POOL_NO_REDUNDANCY": check("copies"), "PG_DEGRADED": check("groups")});
    assert_eq!(cluster("Ready", "HEALTH_WARN", &both, &three).0, State::NotReady);
    assert_eq!(cluster("Ready", "HEALTH_WARN", &json!({}), &three).0, State::NotReady, "nobody knows why");
}

#[test]
fn an_imported_cluster_is_ready_when_it_is_connected() {
    let state = |phase: &str, health: &str| {
        of("CephCluster", &json!({"status": {"phase": phase, "ceph": {"health": health}}}), None).0
    };
    assert_eq!(state("Connected", "HEALTH_WARN"), State::Ready);
    assert_eq!(state("Connected", "HEALTH_ERR"), State::NotReady);
    assert_eq!(state("Connecting", "HEALTH_OK"), State::NotReady);
}

#[test]
fn what_nobody_looks_after_is_not_ready() {
    for kind in ["CephBlockPool", "CephFilesystem", "CephObjectStore", "CephCluster", "ObjectBucketClaim"] {
        let (state, text) = of(kind, &json!({}), Some(3));
        assert_eq!((state, text.contains("no operator")), (State::NotReady, true), "{kind}: {text}");
    }
    assert_eq!(of("StorageClass", &json!({}), Some(3)).0, State::Ready);
    let going = json!({"metadata": {"deletionTimestamp": "2026-11-26T00:00:00Z"}});
    assert_eq!(of("StorageClass", &going, Some(3)), (State::NotReady, "is being deleted".into()));
}

#[test]
fn a_status_of_an_earlier_generation_does_not_count() {
    let pool = |seen| json!({"metadata": {"generation": 2}, "status": {"phase": "Ready", "observedGeneration": seen}});
    assert_eq!(of("CephBlockPool", &pool(2), Some(3)), (State::Ready, "Ready".into()));
    assert_eq!(of("CephBlockPool", &pool(1), Some(3)).0, State::NotReady);
}

#[test]
fn a_volume_that_was_released_is_in_the_way() {
    let volume = |phase: &str| {
        let spec = json!({"claimRef": {"namespace": "rook-ceph", "name": "data-0"}});
        of("PersistentVolume", &json!({"spec": spec, "status": {"phase": phase}}), Some(3))
    };
    assert_eq!(volume("Bound"), (State::Ready, "Bound to rook-ceph/data-0".into()));
    assert_eq!(volume("Available").0, State::Ready);
    let (state, text) = volume("Released");
    assert_eq!((state, text.contains("clear its device")), (State::NotReady, true), "{text}");
}

#[test]
fn conditions_that_explain_are_those_that_say_something_is_wrong() {
    let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "reason": "Because", "message": message});
    let all = [
        condition("Ready", "True", "fine"),
        condition("Progressing", "True", "Configuring Ceph OSDs"),
        condition("Failure", "False", "was so"),
        condition("Ready", "False", "not yet"),
        condition("DeletionIsBlocked", "True", "has dependents"),
    ];
    let said = conditions(&json!({"status": {"conditions": all}}));
    let expected = [
        "Progressing is True: Because: Configuring Ceph OSDs",
        "Ready is False: Because: not yet",
        "DeletionIsBlocked is True: Because: has dependents",
    ];
    assert_eq!(said, expected);
}
