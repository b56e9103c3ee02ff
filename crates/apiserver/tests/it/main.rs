//! The client at a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

use serde_json::{Value, json};
use std::path::PathBuf;
use tidemark_apiserver::{Change, Client, Failure, Which};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

/// Takes the lab down with the test, however that ends.
struct Down(PathBuf);

impl Drop for Down {
    fn drop(&mut self) {
        let _ = lab::down(&self.0, true, &mut |_| {});
    }
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_objects_are_made_applied_merged_watched_and_deleted() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let place = tempfile::tempdir().unwrap();
    let options = KubernetesOptions::new(place.path().join("lab"));
    let kubernetes = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
    let _down = Down(kubernetes.dir().to_owned());
    let config = kubernetes.kubeconfig();
    let client = Client::connect(Which { kubeconfig: Some(&config), ..Which::default() }).unwrap();
    let maps = client.path("api/v1", "configmaps");
    let one = format!("{maps}/one");
    let (_, version) = client.list_at::<Value>(&maps, "").unwrap();
    let map = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": value}});

    client.create(&maps, &map("1")).unwrap();
    assert!(matches!(client.create(&maps, &map("1")), Err(Failure::Status(409, _))));
    let mut wrong = map("1");
    wrong["dato"] = json!({});
    let refused = client.apply(&one, &wrong, false).unwrap_err();
    assert!(refused.to_string().contains("dato"), "{refused}");
    assert_eq!(client.apply(&one, &map("2"), true).unwrap()["data"]["a"], "2");
    assert_eq!(client.ask("GET", &one, None).unwrap()["data"]["a"], "1", "it was dry");
    client.apply(&one, &map("2"), false).unwrap();
    client.merge(&one, &json!({"data": {"b": "3"}})).unwrap();
    assert!(client.delete(&one).unwrap());
    assert!(!client.delete(&one).unwrap());
    let of_name = "fieldSelector=metadata.name%3Done";
    let mut watch = client.watch::<Value>(&maps, of_name, &version, 2).unwrap();
    let seen: Vec<_> = watch.by_ref().map(Result::unwrap).collect();
    let told: Vec<_> = seen
        .iter()
        .map(|change| {
            let kind = match change {
                Change::Added(_) => "added",
                Change::Modified(_) => "modified",
                Change::Deleted(_) => "deleted",
            };
            (kind, change.object()["data"].to_string())
        })
        .collect();
    let data = |kind, data: Value| (kind, data.to_string());
    assert_eq!(
        told,
        [
            data("added", json!({"a": "1"})),
            data("modified", json!({"a": "2"})),
            data("modified", json!({"a": "2", "b": "3"})),
            data("deleted", json!({"a": "2", "b": "3"})),
        ]
    );
    // Begun again where it ended, a watch tells nothing twice.
    let again = client.watch::<Value>(&maps, of_name, watch.version(), 1).unwrap();
    assert_eq!(again.count(), 0);
}
