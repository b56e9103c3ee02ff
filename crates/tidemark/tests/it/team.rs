//! A team's controller and drivers in a cluster: the base that the built binary writes, what `serve` makes of tokens that others made, and
//! all of it on the lab's node.

use crate::common::Place;
use crate::common::fleet::{Controller, wait};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tidemark_apiserver::{Client, Failure, Which};
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Operation};
use tidemark_lab::{self as lab, Kubernetes, KubernetesOptions};

struct Down(Kubernetes);

impl Drop for Down {
    fn drop(&mut self) {
        let _ = lab::down(self.0.dir(), true, &mut |_| {});
    }
}

/// Kinds of which something is installed or follows from that, and where the API server has those of the namespace.
const KINDS: [(&str, &str); 11] = [
    ("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("PersistentVolumeClaim", "/api/v1/namespaces/default/persistentvolumeclaims"),
    ("Service", "/api/v1/namespaces/default/services"),
    ("ServiceAccount", "/api/v1/namespaces/default/serviceaccounts"),
    ("Secret", "/api/v1/namespaces/default/secrets"),
    ("Role", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"),
    ("RoleBinding", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"),
    ("Deployment", "/apis/apps/v1/namespaces/default/deployments"),
    ("StatefulSet", "/apis/apps/v1/namespaces/default/statefulsets"),
    ("DaemonSet", "/apis/apps/v1/namespaces/default/daemonsets"),
    ("Pod", "/api/v1/namespaces/default/pods"),
];

/// Where the API server has an object.
fn path(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap();
    let (_, path) = KINDS.iter().find(|(known, _)| *known == kind).unwrap_or_else(|| panic!("{kind}"));
    format!("{path}/{}", object["metadata"]["name"].as_str().unwrap())
}

/// What there is of these kinds, and is of Tidemark by its name.
fn left(client: &Client) -> Vec<String> {
    let mut left = Vec::new();
    for (kind, path) in KINDS {
        let objects: Vec<Value> = client.list(path, "").unwrap();
        left.extend(objects.iter().map(|one| format!("{kind} {}", one["metadata"]["name"])));
    }
    left.retain(|one| one.contains("tidemark"));
    left
}

/// What `kubectl apply -f access.yaml` and `kubectl apply -k` make of the base.
fn objects(base: &Path) -> Vec<Value> {
    let read = |name: &str| fs::read_to_string(base.join(name)).unwrap();
    let listed: Value = serde_saphyr::from_str(&read("kustomization.yaml")).unwrap();
    let files = listed["resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let texts: Vec<String> = ["access.yaml"].into_iter().chain(files).map(read).collect();
    let manifests = texts.iter().flat_map(|text| text.split("\n---\n"));
    manifests.map(|text| serde_saphyr::from_str(text).unwrap()).collect()
}

/// Passes on what is sent both ways, until one side ends it.
fn connect(client: TcpStream, pod: &str) -> std::io::Result<()> {
    let server = TcpStream::connect(pod)?;
    let back = (server.try_clone()?, client.try_clone()?);
    let pass = |(mut from, mut to): (TcpStream, TcpStream)| {
        let _ = std::io::copy(&mut from, &mut to);
        to.shutdown(Shutdown::Both)
    };
    std::thread::spawn(move || pass(back));
    pass((client, server))
}

/// Does for the only Service what a cluster's proxy does: passes connections on to the pod that is ready.
struct Proxy {
    url: String,
    pod: Arc<Mutex<Option<String>>>,
}

impl Proxy {
    fn start(host: Ipv4Addr) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let pod = Arc::new(Mutex::new(None::<String>));
        let to = Arc::clone(&pod);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let pod = to.lock().unwrap().clone();
                // Nobody waits for one whose pod is gone.
                std::thread::spawn(move || pod.and_then(|pod| connect(client, &pod).ok()));
            }
        });
        Self { url, pod }
    }

    /// Waits for a pod behind the Service that is none of `before`, and passes connections on to it.
    fn aim(&self, client: &Client, before: &[String]) -> String {
        let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        let query = "labelSelector=kubernetes.io%2Fservice-name%3Dtidemark-controller";
        let (name, address) = wait("a controller behind the Service", || {
            let slices: Vec<Value> = client.list(slices, query).ok()?;
            let slice = slices.into_iter().next()?;
            let port = slice["ports"][0]["port"].as_u64()?;
            let ready = |one: &&Value| one["conditions"]["ready"] == true;
            let endpoint = slice["endpoints"].as_array()?.iter().find(ready)?;
            let name = endpoint["targetRef"]["name"].as_str()?.to_owned();
            let address = format!("{}:{port}", endpoint["addresses"][0].as_str()?);
            (!before.contains(&name)).then_some((name, address))
        });
        *self.pod.lock().unwrap() = Some(address);
        name
    }
}

fn document(server: &EmbeddedServer) -> String {
    format!(
        "name: team\nseed: 7\ndrivers: 2\ntarget: {{kind: s3, endpoints: ['{}'], access_key: {}, secret_key: {}}}\nstages:\n\
         - init: {{containers: 1}}\n- prepare: {{containers: 1, objects: 1-20, sizes: 4KiB, workers: 4}}\n\
         - name: main\n  load: {{workers: 4, total_operations: 400, containers: 1, operations: [{{get: {{objects: 1-20}}}}]}}\n\
         - cleanup: {{containers: 1, objects: 1-20, workers: 4}}\n- dispose: {{containers: 1}}\n",
        server.endpoint(),
        server.access_key(),
        server.secret_key()
    )
}

#[test]
fn a_base_has_its_secrets_apart_and_keeps_them() {
    let place = Place::new();
    let base = place.path("base");
    let write =
        |more: &[&str]| place.tidemark(&[&["kubernetes", "base", base.to_str().unwrap()], more].concat());
    let read = |name: &str| fs::read_to_string(base.join(name)).unwrap();
    let written = write(&["--namespace", "bench", "--storage-class", "fast"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let (access, all) = (read("access.yaml"), objects(&base));
    let mode = fs::metadata(base.join("access.yaml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(read(".gitignore"), "access.yaml\n");
    let (secrets, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| one["kind"] == "Secret");
    assert_eq!(secrets.len(), 2);
    let own =
        |one: &&Value| one["kind"] == "CustomResourceDefinition" || one["metadata"]["namespace"] == "bench";
    assert!(all.iter().all(|one| own(&one)));
    let public: Vec<_> = others.iter().map(ToString::to_string).chain([written.stderr]).collect();
    let values = secrets.iter().flat_map(|one| one["stringData"].as_object().unwrap().values());
    let lines = values.flat_map(|value| value.as_str().unwrap().lines());
    let hidden: Vec<_> = lines.filter(|line| !line.starts_with("-----")).collect();
    assert!(hidden.len() > 7, "{}", hidden.len());
    assert!(!hidden.iter().any(|one| public.iter().any(|text| text.contains(one))), "others see it");

    let written = write(&["--parts", "controller,drivers", "--drivers", "4", "--image", "other:2"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let kinds: Vec<_> = objects(&base).iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect();
    let wanted = ["Secret", "Secret", "PersistentVolumeClaim", "Service", "Deployment", "StatefulSet"];
    assert_eq!(kinds, wanted);
    let elsewhere = access.replace("\"bench\"", "\"default\"");
    assert_eq!(read("access.yaml"), elsewhere, "what clients know is kept");

    fs::write(base.join("access.yaml"), access.replace("operator:", "operators:")).unwrap();
    let refused = write(&[]);
    assert_eq!(refused.code, 3);
    assert!(
        refused.stderr.contains("access.yaml: the Secret tidemark-controller has no `operator`; correct it"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_controller_takes_tokens_that_others_made_and_prints_none() {
    let place = Place::new();
    let tokens = place.path("tokens");
    let words = ["--secure", "--no-driver", "--tokens", tokens.to_str().unwrap()];
    let refused = |why: &str| {
        let output = place.tidemark(&[&["serve", "--listen", "127.0.0.1:0"], &words[..]].concat());
        assert!(output.code == 2 && output.stderr.contains(why), "{}", output.stderr);
    };
    fs::create_dir(&tokens).unwrap();
    refused("has none of the files");
    fs::write(tokens.join("operator"), "short\n").unwrap();
    refused("can be guessed");
    fs::write(tokens.join("operator"), "a token for the people of a team\n").unwrap();
    fs::write(tokens.join("driver"), "a token for all drivers\n").unwrap();

    let mut controller = Controller::start(&place, &words);
    let said = controller.process.wait_for("drivers join with: ");
    let trust = said.split("--trust ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let tokens = tokens.to_str().unwrap();
    let join = |name: &str, role: &str| {
        let file = format!("{tokens}/{role}");
        controller.driver(name, &["--trust", &trust, "--token-file", &file])
    };
    let _driver = join("any-name", "driver");
    let mut refused = join("other", "operator");
    assert_eq!(refused.child.wait().unwrap().code(), Some(3), "{}", refused.said());
    controller.access = vec![
        ("TIDEMARK_TRUST", trust.clone()),
        ("TIDEMARK_TOKEN", "a token for the people of a team".into()),
    ];
    controller.wait_for_drivers(1);
    assert_eq!(controller.status()["drivers"][0]["name"], "any-name");
    let said = controller.process.said();
    for open in ["shown only once", "code=", "a token for"] {
        assert!(!said.contains(open), "{said}");
    }
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_has_a_controller_for_a_team_whose_reports_outlive_its_pod() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    tidemark_testing::needs!(&["curl"]);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let place = Place::new();
    let options = KubernetesOptions { nodes: 1, ..KubernetesOptions::new(place.path("lab")) };
    let node = Down(Kubernetes::up(&options, &mut |_| {}).unwrap());
    let kubernetes = &node.0;
    let archive = place.path("tidemark.tar");
    assert_eq!(place.tidemark(&["kubernetes", "image", "-o", archive.to_str().unwrap()]).code, 0);
    kubernetes.import(&archive).unwrap();
    fs::remove_file(archive).unwrap();
    let config = kubernetes.kubeconfig();
    let client = Client::connect(Which { kubeconfig: Some(&config), ..Which::default() }).unwrap();

    let base = place.path("base");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut words = vec!["kubernetes", "base", base.to_str().unwrap(), "--drivers", "2", "--cpu", "100m"];
    words.extend(["--memory", "256Mi", "--driver-volume", "16Mi", "--port", &port]);
    let written = place.tidemark(&words);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let mut objects = objects(&base);
    let kinds: Vec<_> = objects.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    for (kind, _) in KINDS.iter().filter(|(kind, _)| *kind != "Pod") {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }

    // All of it is what this API server knows, and what it does not know is an error.
    for object in &objects {
        client.apply(&path(object), object, true).unwrap_or_else(|error| panic!("{object}: {error}"));
    }
    let mut unknown = objects.iter().find(|one| one["kind"] == "StatefulSet").unwrap().clone();
    unknown["spec"]["template"]["spec"]["containers"][0]["imagePolicy"] = "Never".into();
    let refused = client.apply(&path(&unknown), &unknown, true).unwrap_err();
    assert!(refused.to_string().contains("imagePolicy"), "{refused}");

    // The node has neither a proxy for Services nor names for them, so drivers have the address of this test's.
    let host = kubernetes.host().unwrap();
    let proxy = Proxy::start(host);
    let drivers = objects.iter_mut().find(|one| one["kind"] == "StatefulSet").unwrap();
    let address = &mut drivers["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert_eq!(address["value"], "https://tidemark-controller.default.svc:19088");
    address["value"] = proxy.url.as_str().into();
    for object in &objects {
        client.apply(&path(object), object, false).unwrap();
    }
    let first = proxy.aim(&client, &[]);

    // As somebody of the team.
    let secret = client.ask("GET", "/api/v1/namespaces/default/secrets/tidemark-controller", None).unwrap();
    let access = fs::read_to_string(base.join("access.yaml")).unwrap();
    let own: Value = serde_saphyr::from_str(access.split("\n---\n").next().unwrap()).unwrap();
    let token = |key: &str| own["stringData"][key].as_str().unwrap().to_owned();
    assert_eq!(secret["data"].as_object().unwrap().len(), own["stringData"].as_object().unwrap().len());
    let trust = written.stderr.split("TIDEMARK_TRUST=").nth(1).unwrap().lines().next().unwrap().to_owned();
    let ask = |words: &[&str], token: &str| {
        let mut command = place.command(&[words, &["--json", "--controller", &proxy.url]].concat());
        let output = command.env("TIDEMARK_TRUST", &trust).env("TIDEMARK_TOKEN", token).output().unwrap();
        let value: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        value.ok_or_else(|| String::from_utf8(output.stderr).unwrap())
    };
    let joined = || {
        wait("both drivers", || {
            let status = ask(&["status"], &token("operator")).ok()?;
            let mut idle = status["drivers"].as_array()?.iter().filter(|one| one["state"] == "idle");
            let mut names =
                [idle.next()?["name"].as_str()?.to_owned(), idle.next()?["name"].as_str()?.to_owned()];
            names.sort();
            Some(names)
        })
    };
    assert_eq!(joined(), ["tidemark-driver-0", "tidemark-driver-1"]);
    let refused = ask(&["status"], "a token that nobody made").unwrap_err();
    assert!(refused.contains("the token is invalid or revoked"), "{refused}");
    let refused = ask(&["status"], &token("driver")).unwrap_err();
    assert!(refused.contains("this requires a viewer's or an operator's token"), "{refused}");

    let server =
        EmbeddedServer::start(EmbeddedOptions { address: (host, 0).into(), ..EmbeddedOptions::default() });
    let server = server.unwrap();
    let submitted = place.write("team.yaml", &document(&server));
    let id = ask(&["submit", submitted.to_str().unwrap()], &token("operator")).unwrap()["id"].to_string();
    let state = |id: &str| ask(&["status", id], &token("operator")).ok();
    let ended = wait("the end of the run", || {
        state(&id).filter(|one| !["queued", "running"].contains(&one["state"].as_str().unwrap()))
    });
    assert_eq!(ended["state"], "completed", "{ended}");
    assert_eq!(server.statistics().of(Operation::GetObject).succeeded, 400);
    let report = || {
        let url = format!("{}/api/v1/runs/{}/report?format=json", proxy.url, ended["run"]);
        let header = place.write("header", &format!("Authorization: Bearer {}", token("operator")));
        // Who answers was checked by its fingerprint above.
        let words = ["-sSkf", "--max-time", "60", "-H", &format!("@{}", header.display()), &url];
        let output = Command::new("curl").args(words).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    let was = report();
    let mut shares: BTreeMap<String, u64> = BTreeMap::new();
    for driver in was["drivers"].as_array().into_iter().flatten() {
        *shares.entry(driver["name"].to_string()).or_default() += 1;
    }
    assert_eq!(shares.len(), 2, "both put load on: {:#}", was["drivers"]);

    // Nothing that the pod says helps anybody in.
    let log = kubernetes.ask("GET", &format!("/api/v1/namespaces/default/pods/{first}/log"), None).unwrap();
    assert!(log.body.contains("serving https://"), "{}", log.body);
    for secret in [token("operator"), token("driver"), "code=".to_owned()] {
        assert!(!log.body.contains(&secret), "{}", log.body);
    }

    // Another pod has the same store, and the drivers come to it.
    assert!(client.delete(&format!("/api/v1/namespaces/default/pods/{first}")).unwrap());
    let second = proxy.aim(&client, std::slice::from_ref(&first));
    assert_ne!(first, second);
    assert_eq!(state(&id).unwrap()["run"], ended["run"]);
    assert_eq!(report(), was);
    assert_eq!(joined(), ["tidemark-driver-0", "tidemark-driver-1"]);

    // Written again, for more drivers, it has the same tokens.
    words[4] = "3";
    assert_eq!(place.tidemark(&words).code, 0);
    assert_eq!(fs::read_to_string(base.join("access.yaml")).unwrap(), access);

    assert!(left(&client).len() > objects.len(), "pods and claims as well");
    for object in objects.iter().rev() {
        assert!(client.delete(&path(object)).unwrap(), "{}", path(object));
    }
    wait("nothing left", || left(&client).is_empty().then_some(()));
    wait("no volume left", || {
        let volumes: Result<Vec<Value>, Failure> = client.list("/api/v1/persistentvolumes", "");
        volumes.ok().filter(Vec::is_empty).map(drop)
    });
}
