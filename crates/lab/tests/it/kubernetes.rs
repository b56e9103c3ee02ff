//! The life of a real API server of Kubernetes and its etcd, from their creation to their end.

use crate::common::{Down, say};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidemark_lab::{self as lab, DaemonState, Kubernetes, KubernetesOptions, LabError};

/// The files below a directory that others than their owner may read.
fn readable_by_others(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.metadata().unwrap().permissions().mode() & 0o077 != 0).collect()
}

#[test]
#[ignore = "needs etcd, and Go to build the API server; run by make test-kubernetes"]
fn kubernetes_lives_and_leaves_nothing() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("lab");
    let down = Down(dir.clone());
    let options = KubernetesOptions::new(&dir);
    let kubernetes = Kubernetes::up(&options, &mut say).unwrap();
    let status = kubernetes.status().unwrap();
    assert!(status.is_up(), "{status:?}");
    let pids: Vec<_> = status.daemons.iter().map(|daemon| daemon.pid.unwrap()).collect();
    assert_eq!(pids.len(), 2);

    // It is what it says, and knows its administrator and nobody else.
    let version = kubernetes.ask("GET", "/version", None).unwrap();
    assert!(version.status == 200 && version.body.contains("\"gitVersion\": \"v1.36.3\""), "{version:?}");
    let anonymous = Command::new("curl")
        .args(["--silent", "--insecure", "--write-out", "%{http_code}"])
        .arg(format!("{}/version", kubernetes.endpoint()))
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&anonymous.stdout).ends_with("401"), "{anonymous:?}");
    assert_eq!(readable_by_others(&dir), [dir.join("lock")], "nothing is in that file");
    assert_eq!(readable_by_others(&dir.join("certificates")), [] as [PathBuf; 0]);
    assert_eq!(fs::metadata(kubernetes.kubeconfig()).unwrap().permissions().mode() & 0o077, 0);

    // What is up is left as it is, and what it is told is kept.
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kept}\n";
    let made = kubernetes.ask("POST", "/api/v1/namespaces", Some(namespace)).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    let again = Kubernetes::up(&options, &mut |text| panic!("{text}")).unwrap();
    assert_eq!(again.status().unwrap().daemons, status.daemons);

    // A daemon that was killed is missed, and started again.
    let server = pids[1].to_string();
    assert!(Command::new("kill").args(["-KILL", &server]).status().unwrap().success());
    while kubernetes.status().unwrap().daemons[1].state != DaemonState::Stopped {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let missed = kubernetes.status().unwrap();
    assert!(!missed.is_up() && !missed.is_ready, "{missed:?}");
    assert!(matches!(kubernetes.ask("GET", "/version", None), Err(LabError::Kubernetes { .. })));
    Kubernetes::up(&options, &mut say).unwrap();
    assert_eq!(kubernetes.status().unwrap().daemons[0], status.daemons[0], "etcd went on");

    lab::down(&dir, false, &mut say).unwrap();
    assert!(!kubernetes.status().unwrap().is_up());
    let kept = Kubernetes::up(&options, &mut say).unwrap();
    assert_eq!(kept.endpoint(), kubernetes.endpoint());
    assert_eq!(kept.ask("GET", "/api/v1/namespaces/kept", None).unwrap().status, 200);

    let last: Vec<_> = kept.status().unwrap().daemons.iter().map(|daemon| daemon.pid.unwrap()).collect();
    drop(down);
    assert!(!dir.exists(), "nothing is left");
    assert!(last.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
}

#[test]
fn what_is_missing_is_named() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("lab");
    let options =
        KubernetesOptions { program_path: Some("/nonexistent".into()), ..KubernetesOptions::new(&dir) };
    let error = Kubernetes::up(&options, &mut say).unwrap_err();
    assert!(error.to_string().contains("apt-get install -y etcd-server"), "{error}");
    assert!(!dir.exists());
}
