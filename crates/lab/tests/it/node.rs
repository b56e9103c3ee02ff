//! The life of a real node of Kubernetes: pods with networks and volumes, what is killed, and what is left.

use crate::common::{Down, say};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidemark_lab::image::Image;
use tidemark_lab::{self as lab, Answer, DaemonState, Kubernetes, KubernetesOptions};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "still no {what}");
        sleep(Duration::from_millis(200));
    }
}

fn get(kubernetes: &Kubernetes, path: &str) -> Value {
    let answer = kubernetes.ask("GET", path, None).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

fn post(kubernetes: &Kubernetes, path: &str, object: &Value) {
    let answer = kubernetes.ask("POST", path, Some(&object.to_string())).unwrap();
    assert_eq!(answer.status, 201, "{path}: {}", answer.body);
}

/// An image whose pods say who they are and what they see, and write to their volume.
fn bring_image(kubernetes: &Kubernetes, place: &Path) {
    let mut image = Image::new("example.org/reporter:1").entrypoint(&["/bin/report"]).user("1000:1000");
    image = image.variable("PATH", "/bin");
    for program in ["sh", "bash", "cat", "id", "sync"] {
        image.program(&Path::new("/bin").join(program), Path::new("/bin").join(program)).unwrap();
    }
    let report = "#!/bin/bash\nset -eu\necho \"pod $JOB_COMPLETION_INDEX as $(id -u)\"\n\
                  echo \"row $JOB_COMPLETION_INDEX\" >/data/rows\nsync /data/rows\ncat /data/rows\n\
                  exec 3<>\"/dev/tcp/$KUBERNETES_SERVICE_HOST/$KUBERNETES_SERVICE_PORT\"\necho reached\n";
    image.text("/bin/report", 0o755, report);
    let archive = place.join("reporter.tar");
    image.write(&archive).unwrap();
    let said = kubernetes.import(&archive).unwrap();
    assert!(said.contains("example.org/reporter:1"), "{said}");
    assert_eq!(
        kubernetes.import(&archive).unwrap().lines().count(),
        said.lines().count(),
        "once more is no error"
    );
}

/// Two pods, each with a volume of its own that is claimed for it.
fn job(name: &str) -> Value {
    let claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "16Mi"}},
    });
    let container = json!({
        "name": "report",
        "image": "example.org/reporter:1",
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 0,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [container],
                "volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}],
            }},
        },
    })
}

/// Runs it, and returns what its pods have written and their addresses, by their numbers.
fn run(kubernetes: &Kubernetes, name: &str) -> Vec<(String, String)> {
    post(kubernetes, "/apis/batch/v1/namespaces/default/jobs", &job(name));
    wait_for("completed job", || {
        let status =
            get(kubernetes, &format!("/apis/batch/v1/namespaces/default/jobs/{name}"))["status"].clone();
        assert!(status["failed"].as_u64().unwrap_or(0) == 0, "{status}");
        (status["succeeded"] == 2).then_some(())
    });
    let pods = get(kubernetes, &format!("/api/v1/namespaces/default/pods?labelSelector=job-name%3D{name}"));
    let mut pods = pods["items"].as_array().unwrap().clone();
    pods.sort_by_key(|pod| {
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].to_string()
    });
    let log = |pod: &Value| {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let Answer { status, body } =
            kubernetes.ask("GET", &format!("/api/v1/namespaces/default/pods/{name}/log"), None).unwrap();
        assert_eq!(status, 200, "{body}");
        (body, pod["status"]["podIP"].as_str().unwrap().to_owned())
    };
    pods.iter().map(log).collect()
}

/// What of a lab is on the machine: mounts and control groups that name its directory, and its network interface.
fn traces(dir: &Path, host: &str) -> Vec<String> {
    let dir = dir.display().to_string();
    let mark = dir.replace('/', "%2F");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut found: Vec<_> = mounts.lines().filter(|line| line.contains(&dir)).map(str::to_owned).collect();
    for tree in fs::read_dir("/sys/fs/cgroup").unwrap().map(|entry| entry.unwrap().path()) {
        let groups = fs::read_dir(&tree).into_iter().flatten().map(|entry| entry.unwrap().path());
        found.extend(groups.map(|group| group.display().to_string()).filter(|group| group.contains(&mark)));
    }
    let addresses = Command::new("ip").args(["-o", "address"]).output().unwrap();
    let addresses = String::from_utf8_lossy(&addresses.stdout).into_owned();
    found.extend(addresses.lines().filter(|line| line.contains(&format!(" {host}/"))).map(str::to_owned));
    for process in fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()) {
        let line = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        let groups = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
        // What has ended and is not reaped yet has no command line any more.
        if !line.is_empty() && (line.contains(&dir) || groups.contains(&mark)) {
            found.push(line.replace('\0', " "));
        }
    }
    found
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_has_a_node_that_runs_pods_and_leaves_nothing() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().canonicalize().unwrap().join("lab");
    let disk = Disk::new(&place.path().join("disk"));
    let _down = Down(dir.clone());
    let options = KubernetesOptions { nodes: 2, ..KubernetesOptions::new(&dir) };
    let kubernetes = Kubernetes::up(&options, &mut say).unwrap();
    let status = kubernetes.status().unwrap();
    assert!(status.is_up() && status.node_is_ready == Some(true), "{status:?}");
    assert_eq!(status.daemons.len(), 9);
    let host = kubernetes.host().unwrap().to_string();
    assert!(!traces(&dir, &host).is_empty(), "the test finds what is there");

    // Pods with an image of ours, addresses and volumes of their own.
    bring_image(&kubernetes, place.path());
    let pods = run(&kubernetes, "first");
    for (number, (log, _)) in pods.iter().enumerate() {
        assert_eq!(*log, format!("pod {number} as 1000\nrow {number}\nreached\n"));
    }
    assert!(pods[0].1 != pods[1].1 && pods.iter().all(|(_, address)| *address != host), "{pods:?}");
    let claims = get(&kubernetes, "/api/v1/namespaces/default/persistentvolumeclaims");
    let phases: Vec<_> =
        claims["items"].as_array().unwrap().iter().map(|claim| &claim["status"]["phase"]).collect();
    assert_eq!(phases, ["Bound", "Bound"]);

    // What is up is left as it is; what was killed is missed, and started again, and works with what went on.
    let again = Kubernetes::up(&options, &mut |text| panic!("{text}")).unwrap();
    assert_eq!(again.status().unwrap().daemons, status.daemons);
    for daemon in status
        .daemons
        .iter()
        .filter(|status| ["containerd", "kubelet"].contains(&status.daemon.to_string().as_str()))
    {
        let pid = daemon.pid.unwrap().to_string();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    }
    wait_for("missed daemons", || {
        let status = kubernetes.status().unwrap();
        let stopped = status.daemons.iter().filter(|status| status.state == DaemonState::Stopped).count();
        (stopped == 2 && !status.is_up()).then_some(())
    });
    Kubernetes::up(&options, &mut say).unwrap();
    assert!(kubernetes.status().unwrap().is_up());
    assert_eq!(run(&kubernetes, "second").len(), 2);

    // What it was told outlives a stop, and nothing else does.
    lab::down(&dir, false, &mut say).unwrap();
    assert_eq!(traces(&dir, &host), [] as [String; 0]);
    let kept = Kubernetes::up(&KubernetesOptions::new(&dir), &mut say).unwrap();
    assert_eq!(kept.host().unwrap().to_string(), host);
    assert_eq!(get(&kept, "/apis/batch/v1/namespaces/default/jobs/first")["status"]["succeeded"], 2);
    assert_eq!(run(&kept, "third").len(), 2);

    // The second node's kubelet keeps a device of its own on the disk that a pod there has: nobody has it open when the lab is gone.
    use_disk(&kept, &disk, "lab-1");
    lab::down(&dir, true, &mut say).unwrap();
    disk.detach();
    let left = Command::new("find").arg(&dir).output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&left), "", "nothing is left");
    assert_eq!(traces(&dir, &host), [] as [String; 0]);
}

/// A loop device that is not the lab's, on a file of the test; detached with this value.
struct Disk(String);

impl Disk {
    fn new(file: &Path) -> Self {
        fs::File::create(file).unwrap().set_len(32 << 20).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output().unwrap();
        Self(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// Detaches it now, and returns when it is: the kernel waits for whoever has it open.
    fn detach(self) {
        let file = Path::new("/sys/block").join(self.0.trim_start_matches("/dev/")).join("loop/backing_file");
        drop(self);
        wait_for("detached disk", || (!file.exists()).then_some(()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// A claim for 24 MiB of a class, and a pod that says what its volume has and stays.
fn claim_with_pod(kubernetes: &Kubernetes, class: &str, mode: &str, script: &str) {
    let claim = json!({
        "metadata": {"name": class},
        "spec": {
            "storageClassName": class, "volumeMode": mode, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "24Mi"}},
        },
    });
    post(kubernetes, "/api/v1/namespaces/default/persistentvolumeclaims", &claim);
    let mut container = json!({
        "name": "user", "image": "tidemark.invalid/lab/base:1", "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", format!("{script}; sleep infinity")],
    });
    match mode {
        "Block" => container["volumeDevices"] = json!([{"name": "data", "devicePath": "/dev/data"}]),
        _ => container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]),
    }
    let pod = json!({
        "metadata": {"name": class},
        "spec": {
            "containers": [container], "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": class}}],
        },
    });
    post(kubernetes, "/api/v1/namespaces/default/pods", &pod);
}

fn wait_for_log(kubernetes: &Kubernetes, pod: &str, text: &str) {
    let log = format!("/api/v1/namespaces/default/pods/{pod}/log");
    wait_for(text, || kubernetes.ask("GET", &log, None).unwrap().body.contains(text).then_some(()));
}

/// Has a pod on a node use a disk of this machine as a device.
fn use_disk(kubernetes: &Kubernetes, disk: &Disk, node: &str) {
    let class = json!({"metadata": {"name": "disks"}, "provisioner": "kubernetes.io/no-provisioner"});
    post(kubernetes, "/apis/storage.k8s.io/v1/storageclasses", &class);
    let node = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    let volume = json!({
        "metadata": {"name": "disk"},
        "spec": {
            "storageClassName": "disks", "volumeMode": "Block", "capacity": {"storage": "32Mi"},
            "accessModes": ["ReadWriteOnce"], "local": {"path": disk.0},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
        },
    });
    post(kubernetes, "/api/v1/persistentvolumes", &volume);
    claim_with_pod(kubernetes, "disks", "Block", "dd if=/dev/data of=/dev/null bs=1048576 2>&1");
    wait_for_log(kubernetes, "disks", "32+0 records in");
}

#[test]
#[ignore = "needs root, etcd, containerd, and Go to build Kubernetes; run by make test-kubernetes"]
fn kubernetes_has_a_csi_driver_that_survives_being_killed_and_no_device_outlives_the_node() {
    tidemark_testing::needs!(tidemark_testing::KUBERNETES_NODE);
    if !tidemark_testing::is_root() {
        return tidemark_testing::skip("a node needs root");
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().canonicalize().unwrap().join("lab");
    let disk = Disk::new(&place.path().join("disk"));
    let _down = Down(dir.clone());
    let options = KubernetesOptions { csi: true, ..KubernetesOptions::new(&dir) };
    let kubernetes = Kubernetes::up(&options, &mut say).unwrap();
    let status = kubernetes.status().unwrap();
    assert!(status.is_up() && status.daemons.len() == 13, "{status:?}");
    let host = kubernetes.host().unwrap().to_string();

    // Its controllers end when it is killed, each in its own time: all are started again.
    let driver = status.daemons.iter().find(|status| status.daemon.to_string() == "lab-csi-driver").unwrap();
    let pid = driver.pid.unwrap().to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    wait_for("missed driver", || (!kubernetes.status().unwrap().is_up()).then_some(()));
    Kubernetes::up(&options, &mut say).unwrap();

    // A volume goes with a lab that is stopped while it is mounted, and has what was written when the lab comes up again.
    let script = "cat /data/rows; echo row >>/data/rows; sync /data/rows; echo written";
    claim_with_pod(&kubernetes, "loop", "Filesystem", script);
    wait_for_log(&kubernetes, "loop", "written");
    assert_eq!(devices(&dir), 1, "the volume is mounted");
    lab::down(&dir, false, &mut say).unwrap();
    assert_eq!((devices(&dir), traces(&dir, &host)), (0, Vec::new()));
    let kept = Kubernetes::up(&KubernetesOptions::new(&dir), &mut say).unwrap();
    assert_eq!(kept.status().unwrap().daemons.len(), 13);
    wait_for_log(&kept, "loop", "row\n");

    // Another pod has a disk of this machine as a device, on which kubelet keeps a device of its own.
    use_disk(&kept, &disk, "lab");

    // Both still run when the lab goes: nothing stays, and nobody has the disk open.
    lab::down(&dir, true, &mut say).unwrap();
    assert_eq!((devices(&dir), traces(&dir, &host)), (0, Vec::new()));
    assert!(!dir.exists());
    disk.detach();
}

/// How many loop devices lie on files of a lab.
fn devices(dir: &Path) -> usize {
    let files =
        fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().path().join("loop/backing_file"));
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    texts.filter(|text| Path::new(text.trim_end()).starts_with(dir)).count()
}
