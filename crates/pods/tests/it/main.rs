//! Driver pods at a real API server: with the rights that the manual lists, and with fewer. There is no node, so no pod comes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tidemark_apiserver::Client;
use tidemark_kubernetes::{COMPONENT, Drivers, Pods, RUN, Reach, Target};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};
use tidemark_measure::record::Happened;
use tidemark_pods::{Cluster, Made, PodsError, Waiting, Watcher, Which};

/// An API server that ends with the test.
struct Server {
    kubernetes: Kubernetes,
    place: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let options = KubernetesOptions::new(place.path().join("lab"));
        let kubernetes = Kubernetes::up(&options, &mut |text| eprintln!("  {text}")).unwrap();
        Self { kubernetes, place }
    }

    fn make(&self, path: &str, what: &Value) -> Value {
        let answer = self.kubernetes.ask("POST", path, Some(&what.to_string())).unwrap();
        assert_eq!(answer.status, 201, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Makes a namespace and a user in it who may do what `role` says, and the user's kubeconfig.
    fn user(&self, namespace: &str, role: &Value) -> PathBuf {
        self.make("/api/v1/namespaces", &json!({"kind": "Namespace", "metadata": {"name": namespace}}));
        let own = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        self.make(&own, &json!({"kind": "ServiceAccount", "metadata": {"name": "bench"}}));
        let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
        self.make(&format!("{rbac}/roles"), role);
        let binding = json!({
            "kind": "RoleBinding", "metadata": {"name": "bench"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role["metadata"]["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": "bench", "namespace": namespace}],
        });
        self.make(&format!("{rbac}/rolebindings"), &binding);
        let token = self.make(&format!("{own}/bench/token"), &json!({"kind": "TokenRequest", "spec": {}}));
        let config = json!({
            "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "lab", "user": "bench", "namespace": namespace}}],
            "clusters": [{"name": "lab", "cluster": {
                "server": self.kubernetes.endpoint(),
                "certificate-authority": self.kubernetes.dir().join("certificates/ca.crt"),
            }}],
            "users": [{"name": "bench", "user": {"token": token["status"]["token"]}}],
        });
        let path = self.place.path().join(format!("{namespace}.config"));
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// Names of all objects with a label, of every kind that a run makes.
    fn labelled(&self, namespace: &str, label: &str) -> Vec<String> {
        let mut all = Vec::new();
        for kind in ["apis/batch/v1 jobs", "api/v1 secrets", "api/v1 pods", "api/v1 persistentvolumeclaims"] {
            let (group, kind) = kind.split_once(' ').unwrap();
            let path = format!("/{group}/namespaces/{namespace}/{kind}?labelSelector={label}");
            let list: Value =
                serde_json::from_str(&self.kubernetes.ask("GET", &path, None).unwrap().body).unwrap();
            let names = list["items"].as_array().unwrap().iter();
            all.extend(names.map(|item| format!("{kind} {}", item["metadata"]["name"].as_str().unwrap())));
        }
        all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = lab::down(self.kubernetes.dir(), true, &mut |_| {});
    }
}

/// The role that the manual gives.
fn documented_role() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kubernetes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    serde_saphyr::from_str(blocks.find(|block| block.contains("kind: Role\n")).unwrap()).unwrap()
}

/// The role without the right to `verb` a `resource`.
fn without(mut role: Value, resource: &str, verb: &str) -> Value {
    let mut removed = 0;
    for rule in role["rules"].as_array_mut().unwrap() {
        if rule["resources"].as_array().unwrap().contains(&json!(resource)) {
            let verbs = rule["verbs"].as_array_mut().unwrap();
            removed += verbs.len();
            verbs.retain(|one| one != verb);
            removed -= verbs.len();
        }
    }
    assert_eq!(removed, 1, "the role has it");
    role
}

fn reach() -> Reach {
    Reach { url: "https://127.0.0.1:1".to_owned(), trust: "sha256:00".to_owned(), token: "hunter2".into() }
}

fn cluster(kubeconfig: &Path) -> Cluster {
    Cluster::connect(Which { kubeconfig: Some(kubeconfig), ..Which::default() }).unwrap()
}

/// The namespace of the tests, in which pods can be made.
fn bench(kubeconfig: &Path) -> (Which<'_>, Client) {
    let which = Which { kubeconfig: Some(kubeconfig), namespace: Some("bench"), ..Which::default() };
    let client = Client::connect(which).unwrap();
    let accounts = client.path("api/v1", "serviceaccounts");
    client.create(&accounts, &json!({"kind": "ServiceAccount", "metadata": {"name": "default"}})).unwrap();
    (which, client)
}

fn drivers<'a>(run: &'a str, pods: &'a Pods) -> Drivers<'a> {
    Drivers { run, namespace: None, count: 2, pods, owner: None }
}

fn refusal(cluster: &Cluster, drivers: &Drivers<'_>) -> String {
    cluster.start(drivers, &reach()).err().unwrap().to_string()
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_has_drivers_made_and_removed_with_the_rights_of_the_manual() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::start();
    let usual = cluster(&server.user("bench", &documented_role()));
    let pods = Pods::default();
    assert_eq!(usual.namespace(), "bench");
    assert!(usual.own_address().unwrap().is_loopback());

    let running = usual.start(&drivers("tidemark-one", &pods), &reach()).unwrap();
    let labelled = server.labelled("bench", &format!("{RUN}%3Dtidemark-one"));
    assert_eq!(labelled, ["jobs tidemark-one", "secrets tidemark-one"]);
    let found: Vec<_> = usual.runs().unwrap().into_iter().map(|found| (found.run, found.count)).collect();
    assert_eq!(found, [("tidemark-one".to_owned(), 2)]);
    let secret = server.kubernetes.ask("GET", "/api/v1/namespaces/bench/secrets/tidemark-one", None).unwrap();
    let secret: Value = serde_json::from_str(&secret.body).unwrap();
    let owner = &secret["metadata"]["ownerReferences"][0];
    assert_eq!((owner["kind"].as_str(), owner["name"].as_str()), (Some("Job"), Some("tidemark-one")));

    // Nobody makes pods here, and it says so.
    let waiting = Waiting {
        joined: &|| 0,
        stopped: &|| false,
        most: Duration::from_secs(1),
        at: "https://127.0.0.1:1",
    };
    let mut said = Vec::new();
    let error = running.wait(&waiting, &mut |news| said.push(news.to_owned())).unwrap_err();
    assert!(error.to_string().contains("Job tidemark-one has made 0 of 2 pods"), "{error}");
    assert_eq!(said, ["0 of 2 drivers have joined; Job tidemark-one has made 0 of 2 pods"]);
    running.wait(&Waiting { joined: &|| 2, ..waiting }, &mut |_| {}).unwrap();
    running.remove().unwrap();
    let all = format!("{}%3D{}", COMPONENT.0, COMPONENT.1);
    assert_eq!(server.labelled("bench", &all), [] as [&str; 0]);

    // One that was forgotten is found, and gone when it is removed; once more does no harm.
    std::mem::forget(usual.start(&drivers("tidemark-two", &pods), &reach()).unwrap());
    usual.remove(Made::Drivers, &usual.runs().unwrap()[0].run, Duration::from_secs(60)).unwrap();
    usual.remove(Made::Drivers, "tidemark-two", Duration::from_secs(60)).unwrap();
    assert_eq!(server.labelled("bench", &all), [] as [&str; 0]);

    // What is not allowed is said with its verb and its resource, and nothing stays.
    for (namespace, resource, verb) in [("no-jobs", "jobs", "create"), ("no-secrets", "secrets", "create")] {
        let fewer = cluster(&server.user(namespace, &without(documented_role(), resource, verb)));
        let error = refusal(&fewer, &drivers("tidemark-three", &pods));
        assert!(error.contains(&format!("cannot {verb} resource \"{resource}\"")), "{error}");
        assert!(error.contains("docs/kubernetes.md"), "{error}");
        assert_eq!(server.labelled(namespace, &all), [] as [&str; 0]);
    }
    // What cannot be removed is named, with the command to do so.
    let fewer = cluster(&server.user("no-delete", &without(documented_role(), "jobs", "delete")));
    let left = fewer.start(&drivers("tidemark-four", &pods), &reach()).unwrap().remove().unwrap_err();
    let left = left.to_string();
    assert!(left.contains("tidemark kubernetes clean tidemark-four --namespace no-delete"), "{left}");
    assert!(left.contains("cannot delete resource \"jobs\""), "{left}");

    // A quota, a class that is not there, a namespace that is not there, a server that does not answer.
    let full = cluster(&server.user("full", &documented_role()));
    let none = json!({"count/jobs.batch": "0"});
    let mut quota = json!({"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": none}});
    server.make("/api/v1/namespaces/full/resourcequotas", &quota);
    // Where there is a controller of quotas, it does this.
    quota["status"] = json!({"hard": none, "used": none});
    let path = "/api/v1/namespaces/full/resourcequotas/q/status";
    assert_eq!(server.kubernetes.ask("PUT", path, Some(&quota.to_string())).unwrap().status, 200);
    // The API server notices it after a moment.
    let mut tries = (0..1000).map(|_| full.start(&drivers("tidemark-five", &pods), &reach()));
    let error = tries.find_map(|tried| match tried {
        Ok(running) => running.remove().err(),
        Err(error) => Some(error),
    });
    let error = error.unwrap().to_string();
    assert!(
        error.contains("refuses to make a Job in the namespace full") && error.contains("quota"),
        "{error}"
    );
    let admin = server.kubernetes.kubeconfig();
    let which = Which { kubeconfig: Some(&admin), namespace: Some("nowhere"), context: None };
    let error = refusal(&Cluster::connect(which).unwrap(), &drivers("tidemark-six", &pods));
    assert!(error.contains("namespaces \"nowhere\" not found"), "{error}");
    let volume = tidemark_kubernetes::Volume {
        class: "nowhere".to_owned(),
        size: tidemark_kubernetes::size("1Gi").unwrap(),
        access: tidemark_kubernetes::Access::ReadWriteOnce,
        mode: tidemark_kubernetes::Mode::Filesystem,
        path: "/data".to_owned(),
    };
    let claimed = Pods { volume: Some(volume), ..Pods::default() };
    let admin = Cluster::connect(Which { namespace: Some("bench"), ..which }).unwrap();
    let error = refusal(&admin, &drivers("tidemark-seven", &claimed));
    assert!(error.contains("there is no storage class nowhere"), "{error}");
    lab::down(server.kubernetes.dir(), false, &mut |_| {}).unwrap();
    let error = admin.start(&drivers("tidemark-eight", &pods), &reach()).err().unwrap();
    assert!(matches!(&error, PodsError::Left { .. } | PodsError::Away { .. }), "{error}");
    assert!(error.to_string().contains("does not answer"), "{error}");
}

/// What a watcher has seen once that is as much as this, or a minute has passed.
fn seen(watcher: &Watcher, start: Instant, count: usize) -> Vec<(Happened, String)> {
    loop {
        let (happenings, _) = watcher.seen(start);
        if happenings.len() >= count || start.elapsed() > Duration::from_secs(60) {
            return happenings.into_iter().map(|one| (one.what, one.object)).collect();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_tells_what_happens_to_pods_and_their_nodes() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::start();
    let user = server.user("bench", &documented_role());
    let kubeconfig = server.kubernetes.kubeconfig();
    let (which, client) = bench(&kubeconfig);
    let node = |ready: &str| {
        let ready = json!({"type": "Ready", "status": ready, "message": "", "reason": "Test"});
        client.merge("/api/v1/nodes/n1/status", &json!({"status": {"conditions": [ready]}})).unwrap();
    };
    for name in ["n1", "n2"] {
        client.create("/api/v1/nodes", &json!({"kind": "Node", "metadata": {"name": name}})).unwrap();
    }
    node("True");

    let target = Target { namespace: None, labels: vec![("app".to_owned(), "db".to_owned())] };
    let cluster = Cluster::connect(which).unwrap();
    let start = Instant::now();
    let watcher = cluster.watch("run", &Pods { target: Some(target), ..Pods::default() });
    let set =
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": true});
    let pods = client.path("api/v1", "pods");
    let pod = |name: &str, app: &str| {
        json!({"kind": "Pod", "metadata": {"name": name, "labels": {"app": app}, "ownerReferences": [set]},
            "spec": {"nodeName": "n1", "containers": [{"name": "db", "image": "db:1"}]}})
    };
    client.create(&pods, &pod("other-0", "other")).unwrap();
    client.create(&pods, &pod("db-0", "db")).unwrap();
    let object = || "pod bench/db-0".to_owned();
    let mut expected = vec![(Happened::PodMade, object()), (Happened::PodScheduled, object())];
    assert_eq!(seen(&watcher, start, 2), expected);
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "db", "image": "db:1", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}});
    client.merge(&format!("{pods}/db-0/status"), &running).unwrap();
    expected.extend([(Happened::ContainerStarted, object()), (Happened::PodReady, object())]);
    assert_eq!(seen(&watcher, start, 4), expected);
    node("Unknown");
    expected.push((Happened::NodeNotReady, "node n1".to_owned()));
    assert_eq!(seen(&watcher, start, 5), expected);
    // Nobody ends it, as on a node that is lost: it stays until it is removed by force.
    client.delete(&format!("{pods}/db-0")).unwrap();
    expected.push((Happened::PodDeleted, object()));
    assert_eq!(seen(&watcher, start, 6), expected);
    client.ask("DELETE", &format!("{pods}/db-0?gracePeriodSeconds=0"), None).unwrap();
    expected.push((Happened::PodGone, object()));
    assert_eq!(seen(&watcher, start, 7), expected);
    let (happenings, gaps) = watcher.seen(start);
    assert_eq!(gaps, []);
    assert!(happenings.iter().all(|one| one.owner == "n1" || one.owner == "StatefulSet bench/db"));

    // With the rights of the drivers alone, it is said which ones are missing, but not of volumes, which are no loss of their own.
    let fewer = self::cluster(&user).watch("run", &Pods::default());
    let until = Instant::now() + Duration::from_secs(60);
    let mut gaps = Vec::new();
    while gaps.len() < 2 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        gaps = fewer.seen(start).1;
    }
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    assert!(gaps[0].what == "nodes" && gaps[0].why.contains("cannot list"), "{gaps:?}");
    assert_eq!(gaps[0].rule, "ClusterRole: {apiGroups: [\"\"], resources: [nodes], verbs: [list, watch]}");
    assert_eq!(gaps[1].rule, "Role in bench: {apiGroups: [\"\"], resources: [pods], verbs: [list, watch]}");
}

/// A watcher that has seen a pod of its target, and so the node of it.
fn knows_a_node(watcher: &Watcher, start: Instant) {
    assert!(seen(watcher, start, 2).iter().any(|(what, _)| *what == Happened::PodScheduled));
}

#[test]
#[ignore = "needs Kubernetes' API server, which is built with Go; run by make test-kubernetes"]
fn kubernetes_tells_who_observes_its_nodes_and_why_nobody_does() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES);
    let server = Server::start();
    let role = documented_role();
    let mut watching = role.clone();
    watching["rules"]
        .as_array_mut()
        .unwrap()
        .push(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}));
    let user = server.user("bench", &watching);
    let kubeconfig = server.kubernetes.kubeconfig();
    let (which, client) = bench(&kubeconfig);
    let target = Target { namespace: None, labels: vec![("app".to_owned(), "db".to_owned())] };
    let pods = Pods { target: Some(target), ..Pods::default() };
    let elsewhere = Pods { observers: Some("elsewhere".to_owned()), ..pods.clone() };
    let admin = Cluster::connect(which).unwrap();
    let start = Instant::now();
    let (own, named, refused) = (
        admin.watch("run", &pods),
        admin.watch("run", &elsewhere),
        self::cluster(&user).watch("run", &elsewhere),
    );
    let path = client.path("api/v1", "pods");
    let pod = |name: &str, labels: Value, node: &str, port: u16| {
        let container = json!({"name": "one", "image": "one:1", "ports": [{"containerPort": port}]});
        let metadata = json!({"name": name, "labels": labels});
        client.create(&path, &json!({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, "containers": [container]}})).unwrap();
    };
    pod("db-0", json!({"app": "db"}), "n1", 5432);
    [&own, &named, &refused].into_iter().for_each(|watcher| knows_a_node(watcher, start));

    // Where nobody has installed observers, nobody misses them, unless the document says where they are.
    let none = own.observers();
    assert!(none.ready.is_empty() && none.missing.is_empty(), "{:?}", none.missing);
    let said = |watcher: &Watcher| {
        let observers = watcher.observers();
        assert!(observers.ready.is_empty());
        let [(node, why)] = observers.missing.as_slice() else { panic!("{:?}", observers.missing) };
        assert_eq!(node, "n1");
        why.clone()
    };
    let why = said(&named);
    assert!(
        why.starts_with("There are no observers in the namespace elsewhere: `tidemark kubernetes observers"),
        "{why}"
    );
    let why = said(&refused);
    assert!(
        why.starts_with("The observers in the namespace elsewhere cannot be listed: pods is forbidden"),
        "{why}"
    );
    let rule = "; what permits it: Role in elsewhere: {apiGroups: [\"\"], resources: [pods], verbs: [list]}.";
    assert!(why.ends_with(rule), "{why}");

    // One that is not ready, and one that is.
    let labels = json!({"app.kubernetes.io/name": "tidemark", "app.kubernetes.io/component": "observer"});
    pod("observer-1", labels, "n1", 9751);
    assert_eq!(said(&own), "Its observer is not ready: pod observer-1 is being started.");
    let ready = json!({"status": {"phase": "Running", "hostIP": "10.0.0.2", "hostIPs": [{"ip": "10.0.0.2"}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    client.merge(&format!("{path}/observer-1/status"), &ready).unwrap();
    assert!(
        said(&own).contains("their Secret cannot be read: secrets \"tidemark-observe\" not found"),
        "{}",
        said(&own)
    );
    let certified = rcgen::generate_simple_self_signed(["observer".to_owned()]).unwrap();
    let secret = json!({"kind": "Secret", "metadata": {"name": "tidemark-observe"},
        "stringData": {"token": "hunter2", "tls.crt": certified.cert.pem(), "tls.key": ""}});
    client.create(&client.path("api/v1", "secrets"), &secret).unwrap();
    let found = own.observers();
    let [node] = found.ready.as_slice() else { panic!("{:?}", found.missing) };
    assert!(
        found.missing.is_empty() && node.url.starts_with("https://10.0.0.2:9751#sha256:"),
        "{}",
        node.url
    );
    assert_eq!((node.name.as_deref(), node.token.as_deref()), (Some("n1"), Some("hunter2")));
    let fewer = self::cluster(&user).watch("run", &Pods::default());
    let why = said(&fewer);
    let rule = "{apiGroups: [\"\"], resources: [secrets], resourceNames: [tidemark-observe], verbs: [get]}.";
    assert!(
        why.contains("their Secret cannot be read: secrets \"tidemark-observe\" is forbidden")
            && why.ends_with(rule),
        "{why}"
    );
}
