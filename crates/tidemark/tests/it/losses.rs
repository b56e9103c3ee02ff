//! The built binary, driver pods, and a target's pod that is deleted under their load, on the lab's node.

use crate::common::cluster::{Cluster, EVALUATIONS, evaluation};
use crate::common::fleet::wait;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tidemark_lab::Kubernetes;
use tidemark_lab::image::Image;

const PORT: u16 = 18_099;

/// A server that takes three seconds to begin, has every object of every bucket and lists none, and says when it is first asked for one.
const SERVER: &str = r#"
import http.server, sys, time
time.sleep(3)
asked = False
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        global asked
        is_object = "/" in self.path.split("?")[0].strip("/")
        if is_object and not asked:
            asked = True
            print("asked", flush=True)
        body = b"x" * 4096 if is_object else b"<ListBucketResult/>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer((sys.argv[1], 18099), Handler).serve_forever()
"#;

/// The server as an image: Python as it is on this machine, with no more of its library than the server loads.
fn server(archive: &Path) {
    let program = "import encodings.ascii, encodings.idna, encodings.latin_1, http.server, os, sys, time\n\
                   print(os.path.realpath(sys.executable))\n\
                   for one in list(sys.modules.values()):\n    if getattr(one, '__file__', None): print(one.__file__)";
    let output = Command::new("python3").args(["-I", "-c", program]).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let (python, modules) = output.split_once('\n').unwrap();
    let mut image = Image::new("example.org/server:1").entrypoint(&[python, "-I", "/server.py"]);
    image.program(Path::new(python), python).unwrap();
    for module in modules.lines() {
        let path = Path::new(module);
        let is_program = path.extension().is_some_and(|extension| extension == "so");
        if is_program { image.program(path, path) } else { image.tree(path, path) }.unwrap();
    }
    image.text("/server.py", 0o644, SERVER);
    image.write(archive).unwrap();
}

/// One pod of it, at an address that outlives the pod and that no other lab has: the node's.
fn set(host: &str) -> Value {
    let container = json!({"name": "server", "image": "example.org/server:1", "args": [host],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1}});
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "server"},
        "spec": {
            "serviceName": "server", "replicas": 1, "selector": {"matchLabels": {"app": "server"}},
            "template": {
                "metadata": {"labels": {"app": "server"}},
                "spec": {"hostNetwork": true, "terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    })
}

const DRIVERS: &str =
    "drivers: {use: 1, kubernetes: {cpu: 100m, memory: 256Mi, target_pods: {labels: app=server}}}";

fn target(host: &str) -> String {
    format!("{{kind: s3, endpoints: ['http://{host}:{PORT}'], access_key: a, secret_key: b}}")
}

fn stages(seconds: u32) -> String {
    format!(
        "[{{name: main, load: {{workers: 2, rate: 20/s, for: {seconds}s, containers: 1-1, operations: [get: {{weight: 100, objects: 1-9}}]}}}}]"
    )
}

/// What the server's pod has said.
fn log(kubernetes: &Kubernetes) -> Option<String> {
    let path = "/api/v1/namespaces/default/pods/server-0/log";
    Some(kubernetes.ask("GET", path, None).ok()?)
        .filter(|answer| answer.status == 200)
        .map(|answer| answer.body)
}

#[test]
#[ignore = "needs a node of Kubernetes, Python and root; run by make test-kubernetes"]
fn kubernetes_pods_that_are_lost_under_load_have_their_phases_and_the_time_without_service() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    tidemark_testing::needs!(&["python3"]);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let cluster = Cluster::node();
    let (place, kubernetes, client) = (&cluster.place, &cluster.kubernetes, &cluster.client);
    let servers = place.path("servers.tar");
    server(&servers);
    cluster.import(&servers);
    let host = kubernetes.host().unwrap().to_string();
    cluster.make(&set(&host));
    let pod = client.path("api/v1", "pods/server-0");
    cluster.ready("app%3Dserver");
    // The server's own log says that the load has begun. What is after it is no matter of the speed of this machine.
    let lose = || {
        wait("load", || log(kubernetes)?.contains("asked").then_some(()));
        sleep(Duration::from_secs(5));
        client.ask("DELETE", &pod, None).unwrap();
    };
    let start = |seconds| {
        let (target, stages) = (target(&host), stages(seconds));
        let document = format!("name: lost\n{DRIVERS}\ntarget: {target}\nstages: {stages}\n");
        let path = place.write("lost.yaml", &document);
        cluster.command(None, &["run", path.to_str().unwrap(), "--on", "kubernetes"]).spawn().unwrap()
    };
    let report = |run: &str, form: &str| {
        let report = place.tidemark(&["report", run, "--format", form]);
        assert_eq!(report.code, 0, "{}", report.stderr);
        report.stdout
    };

    let mut run = start(45);
    lose();
    run.wait().unwrap();
    let record: Value = serde_json::from_str(&report("1", "json")).unwrap();
    let mut losses = record["losses"].as_array().unwrap().iter();
    let loss = losses.find(|loss| loss["phases"][0]["part"] == "target").expect("a loss of the target");
    let happenings = loss["phases"].as_array().unwrap();
    let phases: Vec<_> = happenings
        .iter()
        .map(|one| {
            assert!(one["object"] == "pod default/server-0" && one["part"] == "target", "{one}");
            one["what"].as_str().unwrap()
        })
        .collect();
    let mut rest = phases.iter();
    for phase in ["pod_deleted", "pod_gone", "pod_made", "pod_scheduled", "container_started", "pod_ready"] {
        assert!(rest.any(|one| *one == phase), "{phase} in its place: {phases:?}");
    }
    let times: Vec<_> = happenings.iter().map(|one| one["at_ns"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(loss["service"]["kind"], "gone", "{loss}");
    assert!(loss["returned_ns"].as_u64() >= times.last().copied(), "{loss}");
    let text = report("1", "md");
    let (_, losses) = text.split_once("## Losses").expect("a section of losses");
    assert!(losses.contains("Pod default/server-0 was deleted"), "{losses}");
    assert!(losses.contains("first one again") && losses.contains("without service"), "{losses}");

    // Nothing is lost, and nothing is said.
    start(3).wait().unwrap();
    assert!(!report("2", "md").contains("Losses"));

    // The operator has the rights for it. The server is another one, which nobody has asked for anything yet.
    client.ask("DELETE", &pod, None).unwrap();
    cluster.ready("app%3Dserver");
    cluster.install_operator();
    let document = format!(
        "name: lost\nseed: 3\n{DRIVERS}\narms: [{{name: one, target: {}}}]\nloads: [{{name: reads, stages: {}}}]\nrepeats: 1\n",
        target(&host),
        stages(45)
    );
    client.create(EVALUATIONS, &evaluation("lost", &json!({"document": document, "drivers": {}}))).unwrap();
    lose();
    let told = wait("report", || {
        let status = client.ask("GET", &format!("{EVALUATIONS}/lost"), None).unwrap()["status"].clone();
        assert!(status["phase"] != "Failed", "{status}");
        status["report"]["configMap"].as_str().map(str::to_owned)
    });
    let map = client.ask("GET", &client.path("api/v1", &format!("configmaps/{told}")), None).unwrap();
    let text = map["data"]["report.md"].as_str().unwrap();
    let (_, losses) = text.split_once("## Losses").expect("a section of losses");
    assert!(losses.contains("Pod default/server-0 was deleted"), "{losses}");
    assert!(losses.contains("pod default/server-0 | gone"), "{losses}");
}
