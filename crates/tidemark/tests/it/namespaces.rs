//! A controller and four drivers, each in a network namespace of its own, against a real RADOS gateway: the
//! whitepaper's 70/30 mix divided exactly, and the network between them cut in every phase.

use crate::common::fleet::{Controller, Process, wait};
use crate::common::{Place, Record};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tidemark_lab::{self as lab, Lab, LabOptions};

const DRIVERS: usize = 4;

fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A bridge with a namespace for each driver on it. Taken away with this value.
struct Net {
    tag: String,
    subnet: String,
}

impl Net {
    fn new() -> Self {
        let number = std::process::id() % 200;
        let net = Self { tag: format!("tm{number}"), subnet: format!("10.98.{number}") };
        let (tag, subnet) = (&net.tag, &net.subnet);
        ip(&format!("link add {tag}b type bridge"));
        ip(&format!("addr add {subnet}.1/24 dev {tag}b"));
        ip(&format!("link set {tag}b up"));
        for driver in 1..=DRIVERS {
            ip(&format!("netns add {tag}n{driver}"));
            ip(&format!("link add {tag}v{driver} type veth peer name eth0 netns {tag}n{driver}"));
            ip(&format!("link set {tag}v{driver} master {tag}b up"));
            ip(&format!("-n {tag}n{driver} addr add {subnet}.{}/24 dev eth0", 10 + driver));
            ip(&format!("-n {tag}n{driver} link set eth0 up"));
            ip(&format!("-n {tag}n{driver} link set lo up"));
        }
        net
    }

    fn cut(&self, driver: usize) {
        ip(&format!("link set {}v{driver} down", self.tag));
    }

    fn mend(&self, driver: usize) {
        ip(&format!("link set {}v{driver} up", self.tag));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let remove = |words: String| {
            let _ = Command::new("ip").args(words.split_whitespace()).output();
        };
        (1..=DRIVERS).for_each(|driver| remove(format!("netns del {}n{driver}", self.tag)));
        remove(format!("link del {}b", self.tag));
    }
}

/// Carries connections to the bridge's address on to the gateway, which listens on loopback only.
fn forward(listen: &str, to: String) -> String {
    let listener = TcpListener::bind(listen).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(&to) else { continue };
            let ends = [near, far];
            for end in &ends {
                let _ = end.set_nodelay(true);
            }
            let pairs = [(0, 1), (1, 0)].map(|(from, to)| (ends[from].try_clone(), ends[to].try_clone()));
            for (from, to) in pairs {
                let (Ok(mut from), Ok(mut to)) = (from, to) else { continue };
                std::thread::spawn(move || {
                    let _ = copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = lab::down(self.0, true, &mut |_| {}) {
            eprintln!("the lab could not be taken down: {error}");
        }
    }
}

/// Everything that the parts of the test share.
struct Scene<'a> {
    net: Net,
    lab: &'a Lab,
    gateway: String,
}

impl Scene<'_> {
    fn join(&self, controller: &Controller<'_>, driver: usize, access: &[(&str, String)]) -> Process {
        let namespace = format!("{}n{driver}", self.net.tag);
        let own =
            controller.place.command(&["driver", "--join", &controller.url, "--name", &format!("d{driver}")]);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace]).arg(own.get_program()).args(own.get_args());
        command.current_dir(controller.place.directory.path()).envs(access.iter().cloned());
        Process::start(command)
    }

    /// The whitepaper's mix: init, prepare, main, cleanup, dispose. No operation may fail.
    fn mix(&self, limit: &str) -> String {
        self.mix_of(limit, "", "0")
    }

    /// The mix for drivers that will be cut off, from the gateway as well: any share of the operations may fail.
    fn mix_under_cuts(&self, limit: &str, drivers: &str) -> String {
        self.mix_of(limit, &format!("drivers: {{{drivers}}}\n"), "100%")
    }

    fn mix_of(&self, limit: &str, drivers: &str, allowed: &str) -> String {
        let keys = self.lab.credentials();
        let allowed = format!("allowed_failures: {allowed}");
        format!(
            "name: whitepaper-4k\nseed: 70\n{drivers}\
             target: {{kind: s3, endpoints: ['http://{}'], access_key: {}, secret_key: {}}}\n\
             stages:\n\
             - init: {{containers: 1-4, {allowed}}}\n\
             - prepare: {{containers: 1-4, objects: 1-50, sizes: 4KB, workers: 10, {allowed}}}\n\
             - name: main\n  load:\n    workers: 32\n    {limit}\n    {allowed}\n    containers: 1-4\n\
             \x20   operations:\n\
             \x20   - get: {{objects: 1-25, weight: 70}}\n\
             \x20   - put: {{objects: 26-50, sizes: 4KB, weight: 30}}\n\
             - cleanup: {{containers: 1-4, objects: 1-50, workers: 18, {allowed}}}\n\
             - dispose: {{containers: 1-4, {allowed}}}\n",
            self.gateway, keys.access_key, keys.secret_key
        )
    }

    /// What the gateway's usage log counts so far: objects read, objects written.
    fn usage(&self) -> [u64; 2] {
        let text = self.lab.radosgw_admin(&["usage", "show", "--show-log-entries=false"]).unwrap();
        let usage: Value = serde_json::from_str(&text).unwrap();
        let sum = |category: &str| {
            let users = usage["summary"].as_array().cloned().unwrap_or_default();
            let all =
                users.iter().flat_map(|user| user["categories"].as_array().cloned().unwrap_or_default());
            all.filter(|one| one["category"] == category)
                .map(|one| one["successful_ops"].as_u64().unwrap())
                .sum()
        };
        [sum("get_obj"), sum("put_obj")]
    }

    /// Waits until the gateway's usage log has grown by at least what the record says succeeded, and sees that it has
    /// not grown by more than was tried: of what failed, the gateway may have done some without the driver hearing.
    fn agrees(&self, before: [u64; 2], record: &Record) {
        let sums = |field| ["read", "write"].map(|sample| record.sum(sample, field));
        let [ok, failed, retries] = ["ok", "failed", "retries"].map(sums);
        let grown = wait("the gateway's own counts", || {
            let after = self.usage();
            let grown = [0, 1].map(|kind| after[kind] - before[kind]);
            (0..2).all(|kind| grown[kind] >= ok[kind]).then_some(grown)
        });
        eprintln!(
            "the gateway counted {grown:?}; the record has {ok:?}, {failed:?} failed, {retries:?} retries"
        );
        for kind in 0..2 {
            assert!(
                grown[kind] <= ok[kind] + failed[kind] + retries[kind],
                "nothing that was tried is missing"
            );
        }
    }
}

/// Failures of each class in a stage.
fn faults(record: &Record, stage: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for operation in record.stage(stage)["works"][0]["operations"].as_array().unwrap() {
        for (class, count) in operation["faults"].as_object().unwrap() {
            *sums.entry(class.clone()).or_default() += count.as_u64().unwrap();
        }
    }
    sums
}

/// Sees that every planned operation ended as done or as failed, and that what failed did so because `cut` was cut
/// off: its own requests, what others found missing because it had not been written, and buckets that were not empty
/// because it had not been deleted.
fn is_accounted_for(record: &Record, cut: &str) {
    let drivers = record.value["drivers"].as_array().unwrap();
    let cut = drivers.iter().position(|driver| driver["name"] == cut).unwrap();
    for (stage, planned) in [("init", 4), ("prepare", 200), ("cleanup", 200), ("dispose", 4)] {
        let operations = record.stage(stage)["works"][0]["operations"].as_array().unwrap();
        let sum = |field: &str| operations.iter().map(|one| one[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("ok") + sum("failed"), planned, "{stage}: {operations:?}");
    }
    let failed = |stage: &str| faults(record, stage).values().sum::<u64>();
    for (stage, before, consequence) in [
        ("init", None, ""),
        ("prepare", None, ""),
        ("main", Some("prepare"), "not_found"),
        ("cleanup", None, ""),
        ("dispose", Some("cleanup"), "conflict"),
    ] {
        let faults = faults(record, stage);
        eprintln!("{stage}: failed {faults:?}");
        let mut consequences = 0;
        for (class, count) in &faults {
            if before.is_some_and(|before| failed(before) > 0) && class == consequence {
                consequences += count;
            } else {
                assert!(["timeout", "unreachable", "reset"].contains(&class.as_str()), "{stage}: {faults:?}");
            }
        }
        let shares = record.stage(stage)["shares"].as_array().unwrap();
        assert!(shares.iter().all(|share| share["complete"] == true), "{stage}: {shares:?}");
        let others = shares.iter().filter(|share| share["driver"] != cut);
        let others: u64 = others.map(|share| share["failed"].as_u64().unwrap()).sum();
        assert!(
            others <= consequences,
            "{stage}: drivers that were not cut off: {others} failed, {faults:?}"
        );
    }
}

fn stage_begins(controller: &Controller<'_>, id: u64, name: &str) {
    wait(&format!("stage {name}"), || {
        controller.submission(id)["stage"].as_str()?.ends_with(name).then_some(())
    });
}

#[test]
#[ignore = "needs root, network namespaces and the Ceph packages; `make test` runs it"]
fn four_drivers_in_namespaces() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    if !Command::new("ip").args(["netns", "list"]).output().is_ok_and(|output| output.status.success()) {
        return tidemark_testing::skip("no network namespaces can be made");
    }
    let directory = place.path("lab");
    let _down = Down(&directory);
    let lab = lab::up(&LabOptions::new(&directory), &mut |text| eprintln!("{text}")).unwrap();
    let net = Net::new();
    let gateway = forward(
        &format!("{}.1:0", net.subnet),
        lab.endpoint().trim_start_matches("http://").trim_end_matches('/').to_owned(),
    );
    let scene = Scene { net, lab: &lab, gateway };

    // Off loopback the controller wants TLS and tokens by itself.
    let listen = format!("{}.1:0", scene.net.subnet);
    let mut controller = Controller::at(&place, &listen, &["--no-driver"]);
    let said = controller.process.said();
    assert!(controller.url.starts_with("https://"), "{said}");
    let fingerprint = said.split("sha256:").nth(1).unwrap().split(' ').next().unwrap();
    let trust = ("TIDEMARK_TRUST", format!("sha256:{fingerprint}"));
    let token = |role: &str| {
        // A driver's is for all names that begin with d.
        let name = format!("{}*", &role[..1]);
        place.tidemark(&["token", "add", &name, "--role", role]).stdout.trim().to_owned()
    };
    let driver_access = [trust.clone(), ("TIDEMARK_TOKEN", token("driver"))];
    controller.access = vec![trust, ("TIDEMARK_TOKEN", token("operator"))];

    // One driver alone, then all four: the same operations, and the gateway agrees.
    let first = scene.join(&controller, 1, &driver_access);
    controller.wait_for_drivers(1);
    let limited = scene.mix("total_operations: 6000");
    let before = scene.usage();
    let id = controller.submit(&limited, &[]);
    let alone = controller.run_of(&controller.wait_for_state(id, "completed"));
    scene.agrees(before, &alone);
    let mut drivers = vec![first];
    drivers.extend((2..=DRIVERS).map(|driver| scene.join(&controller, driver, &driver_access)));
    controller.wait_for_drivers(DRIVERS);
    let before = scene.usage();
    let id = controller.submit(&limited, &[]);
    let together = controller.run_of(&controller.wait_for_state(id, "completed"));
    scene.agrees(before, &together);
    for label in ["get", "put"] {
        let count = |record: &Record| record.operation("main", label)["ok"].as_u64().unwrap();
        eprintln!("{label}: alone {}, together {}", count(&alone), count(&together));
        assert_eq!(count(&together), count(&alone), "{label}");
    }
    let shares = together.stage("main")["shares"].as_array().unwrap().clone();
    assert_eq!(shares.len(), DRIVERS);
    let firsts: Vec<u64> = shares.iter().map(|share| share["first_sent_ns"].as_u64().unwrap()).collect();
    let skew = firsts.iter().max().unwrap() - firsts.iter().min().unwrap();
    let main = together.stage("main");
    let length = main["ended_ns"].as_u64().unwrap() - main["started_ns"].as_u64().unwrap();
    eprintln!("the drivers' first operations were {} us apart", skew / 1000);
    assert!(skew < length / 20, "the drivers started together: {firsts:?} of {length}");

    // A cut shorter than `lost_after`, in every phase: nothing is lost.
    for phase in ["prepare", "main", "cleanup"] {
        let before = scene.usage();
        let id = controller.submit(&scene.mix_under_cuts("for: 8s", "lost_after: 20s"), &[]);
        stage_begins(&controller, id, phase);
        if phase == "main" {
            std::thread::sleep(Duration::from_secs(3));
        }
        scene.net.cut(2);
        std::thread::sleep(Duration::from_secs(4));
        scene.net.mend(2);
        let record = controller.run_of(&controller.wait_for_state(id, "completed"));
        eprintln!("cut in {phase}:");
        let drivers = record.value["drivers"].as_array().unwrap();
        assert!(drivers.iter().all(|driver| driver["lost"].is_null()), "{drivers:?}");
        is_accounted_for(&record, "d2");
        scene.agrees(before, &record);
    }

    // Cut off for good: as the document says.
    for on_loss in ["stop", "continue"] {
        let drivers = format!("on_loss: {on_loss}, lost_after: 3s");
        let id = controller.submit(&scene.mix_under_cuts("for: 12s", &drivers), &[]);
        stage_begins(&controller, id, "main");
        std::thread::sleep(Duration::from_secs(3));
        scene.net.cut(3);
        let submission = controller.wait_for_end(id);
        scene.net.mend(3);
        eprintln!("cut off, {on_loss}: {} {}", submission["state"], submission["reason"]);
        let record = controller.run_of(&submission);
        let lost = record.value["drivers"].as_array().unwrap().iter().filter(|one| !one["lost"].is_null());
        assert_eq!(lost.map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(), ["d3"]);
        assert!(record.operation("main", "get")["ok"].as_u64().unwrap() > 0, "what was measured is kept");
        let state = if on_loss == "stop" { "failed" } else { "completed" };
        assert_eq!(record.stage("main")["state"], state, "{}", record.stage("main")["reason"]);
        assert!(!record.findings("driver-lost").is_empty(), "{}", record.value["findings"]);
        // It comes back as a new one.
        controller.wait_for_drivers(DRIVERS);
    }

    // The controller dies in a run: queue and history are there again, and what was measured.
    let running = controller.submit(&scene.mix("for: 60s"), &[]);
    let queued = controller.submit(&limited, &[]);
    stage_begins(&controller, running, "main");
    std::thread::sleep(Duration::from_secs(4));
    controller.process.kill();
    let address = controller.url.trim_start_matches("https://").to_owned();
    let access = controller.access.clone();
    let mut controller = Controller::at(&place, &address, &["--no-driver"]);
    controller.access = access;
    assert_eq!(controller.submission(id)["state"], "completed", "history");
    let interrupted = controller.submission(running);
    assert_eq!(interrupted["state"], "interrupted", "{interrupted}");
    assert!(controller.run_of(&interrupted).operation("main", "get")["ok"].as_u64().unwrap() > 0);
    let after = controller.run_of(&controller.wait_for_state(queued, "completed"));
    assert_eq!(after.operation("main", "get")["ok"], alone.operation("main", "get")["ok"]);
}
