//! A layout as the storage of an arm.

use super::destroyed::controllers;
use super::server::{LAYOUT, Server, patience};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidemark_load::stop::StopRequest;
use tidemark_plan::evaluation;
use tidemark_plan::provisioner::{Progress, Provisioner, ProvisionerKind as _, Variables};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::environment::Environment;
use tidemark_rook::{Destroy, Rook};

/// Keeps what is said, and plays Rook's part once the cluster is waited for.
struct Watching<'a> {
    server: &'a Server,
    news: Vec<String>,
}

impl Progress for Watching<'_> {
    fn line(&mut self, text: &str) {
        self.news.push(text.to_owned());
        if text.starts_with("CephCluster trial: no operator") {
            self.server.all_is_well();
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

/// The provisioner of an arm, as an evaluation asks for it that lies beside the layout.
fn provisioner(server: &Server) -> Box<dyn Provisioner> {
    let directory = server.place.path();
    std::fs::write(directory.join("trial.yaml"), LAYOUT).unwrap();
    let objects = Arc::new(tidemark_object::Objects);
    let registry = Registry::new(vec![objects], Vec::new()).with_provisioners(vec![Arc::new(Rook)]);
    let environment = Environment::process(&registry);
    let rook = json!({"layout": "trial.yaml", "kubeconfig": server.kubeconfig(), "wait": "120s"});
    let target = json!({"kind": "s3", "endpoint": "${TIDEMARK_ROOK_S3}", "access_key": "${AWS_ACCESS_KEY_ID}",
        "secret_key": "${AWS_SECRET_ACCESS_KEY}"});
    let stages = json!([{"init": {"containers": 1}}]);
    let load = json!({"name": "puts", "target": target, "stages": stages});
    let document = json!({"name": "layouts", "arms": [{"name": "a", "rook": rook}], "loads": [load]});
    let (read, _) = evaluation::read(&document.to_string(), directory, &environment).unwrap();
    let level = read.loads[0].levels.known().remove(0);
    assert!(read.sketch(0, 0, &level, 1, &environment).is_ok(), "variables have stand-ins");
    let request = &read.arms[0].requests[0];
    assert_eq!((request.key(), request.label()), ("rook", "trial"));
    Rook.provisioner(request, &directory.join("arm")).unwrap()
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_layouts_are_brought_up_for_an_arm_and_destroyed_after_it() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::ready();
    let mut watching = Watching { server: &server, news: Vec::new() };
    let mut arm = provisioner(&server);

    // One that a user has applied is not the evaluation's to destroy.
    server.placed(LAYOUT).apply().unwrap();
    let refused = arm.up(&Variables::new(), &mut watching).unwrap_err().to_string();
    assert!(refused.contains("the layout trial is there already"), "{refused}");
    assert!(!server.labelled().is_empty(), "it stays");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| controllers(&server, &done));
        let how = Destroy { wipe: &[], patience: patience(60) };
        let destroyed = server.placed(LAYOUT).destroy(&how, &mut |_| {});

        // Now it is applied, and waited for; the keys are those of the bucket's claim.
        let brought = destroyed.map(|()| {
            arm.up(&Variables::new(), &mut watching).unwrap();
            let keyless = arm.wait(&mut watching).unwrap_err().to_string();
            assert!(keyless.contains("TIDEMARK_ROOK_S3"), "{keyless}");
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bench"},
                "stringData": {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "hunter2"}});
            server.make("/api/v1/namespaces/rook-ceph/secrets", &secret);
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bench"},
                "data": {"BUCKET_HOST": "rook-ceph-rgw-objects.rook-ceph.svc", "BUCKET_PORT": "80", "BUCKET_NAME": "bench"}});
            server.make("/api/v1/namespaces/rook-ceph/configmaps", &map);
            arm.wait(&mut watching).unwrap();
            let variables = arm.variables();
            let labels = arm.labels();
            arm.down(&Variables::new(), &mut watching).unwrap();
            (variables, labels)
        });
        done.store(true, Ordering::Relaxed);
        let (variables, labels) = brought.unwrap();
        let expected = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("TIDEMARK_ROOK_BLOCK_CLASS", "block"),
            ("TIDEMARK_ROOK_BUCKET", "bench"),
            ("TIDEMARK_ROOK_BUCKET_CLASS", "objects"),
            ("TIDEMARK_ROOK_NAMESPACE", "rook-ceph"),
            ("TIDEMARK_ROOK_S3", "http://rook-ceph-rgw-objects.rook-ceph.svc:80"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables, Variables::from(expected));
        assert!(!format!("{labels:?}").contains("hunter2"), "{labels:?}");
    });
    assert!(!watching.news.iter().any(|line| line.contains("hunter2")));
    assert_eq!(server.labelled(), Vec::<String>::new());
}
