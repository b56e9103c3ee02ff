//! The built binary against a real RADOS gateway: the whitepaper's workload over S3 and Swift with the
//! gateway's own usage log as witness, and the gateway stopped, killed and lied to.

use crate::common::existing::{Bucket, alone_and_together};
use crate::common::{Output, Place, Record, whitepaper};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command};
use std::time::{Duration, Instant};
use tidemark_lab::{self as lab, Daemon, Lab, LabOptions};

struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = lab::down(self.0, true, &mut |_| {}) {
            eprintln!("the lab could not be taken down: {error}");
        }
    }
}

#[test]
#[ignore = "needs the Ceph packages; `make test` runs it"]
fn a_real_gateway() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    let directory = place.path("lab");
    let _down = Down(&directory);
    let lab = lab::up(&LabOptions::new(&directory), &mut |text| eprintln!("{text}")).unwrap();
    counts_equal_the_gateway_s_own_over_s3(&lab);
    counts_equal_the_gateway_s_own_over_swift(&lab);
    objects_of_another_client_are_read_over_both(&lab);
    committers_on_one_table(&lab);
    cycles_of_a_table(&lab);
    a_stopped_gateway_is_an_outage(&lab);
    a_corrupted_object_is_found(&lab);
    a_wrong_key_is_refused(&lab);
    a_killed_gateway_is_a_failure(&lab);
}

fn s3(lab: &Lab) -> String {
    let (endpoint, keys) = (lab.endpoint(), lab.credentials());
    let (access, secret) = (&keys.access_key, &keys.secret_key);
    format!(
        r#"<storage type="s3" config="accesskey={access};secretkey={secret};endpoint={endpoint};path_style_access=true"/>"#
    )
}

/// Successful operations of each category in the gateway's usage log.
fn usage(lab: &Lab) -> serde_json::Value {
    let text = lab.radosgw_admin(&["usage", "show", "--show-log-entries=false"]).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn successful(usage: &serde_json::Value, category: &str) -> u64 {
    let users = usage["summary"].as_array().cloned().unwrap_or_default();
    let categories = users.iter().flat_map(|user| user["categories"].as_array().cloned().unwrap_or_default());
    categories
        .filter(|one| one["category"] == category)
        .map(|one| one["successful_ops"].as_u64().unwrap())
        .sum()
}

/// Runs the whitepaper's workload and compares its counts with the growth of the gateway's.
fn compare(lab: &Lab, document: &str, name: &str) {
    let place = Place::new();
    let before = usage(lab);
    let record = place.run(&place.write(&format!("{name}.xml"), document));
    assert_eq!(
        (record.code, record.state()),
        (0, "completed"),
        "{name}: {} {}",
        record.stderr,
        record.value["findings"]
    );
    let expected = [("get_obj", record.sum("read", "ok")), ("put_obj", record.sum("write", "ok"))];
    assert!(expected[0].1 > 100, "{name}: {expected:?}");
    assert_eq!(record.sum("delete", "ok"), 200);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let after = usage(lab);
        let grown = |category| successful(&after, category) - successful(&before, category);
        let seen: Vec<_> = expected.iter().map(|(category, _)| (*category, grown(category))).collect();
        if seen == expected {
            eprintln!("{name}: the gateway counted the same: {seen:?}");
            return;
        }
        assert!(Instant::now() < deadline, "{name}: the gateway counted {seen:?}, we {expected:?}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn counts_equal_the_gateway_s_own_over_s3(lab: &Lab) {
    compare(lab, &whitepaper("", &s3(lab), 10), "S3");
}

fn counts_equal_the_gateway_s_own_over_swift(lab: &Lab) {
    let (url, keys) = (lab.swift_auth_url(), lab.credentials());
    let (user, key) = (&keys.swift_user, &keys.swift_key);
    let auth = format!(r#"<auth type="swauth" config="username={user};password={key};auth_url={url}"/>"#);
    compare(lab, &whitepaper(&auth, r#"<storage type="swift"/>"#, 10), "Swift");
}

fn objects_of_another_client_are_read_over_both(lab: &Lab) {
    let (place, endpoint, keys) = (Place::new(), lab.endpoint(), lab.credentials());
    let bucket = Bucket { endpoint: &endpoint, access_key: &keys.access_key, secret_key: &keys.secret_key };
    bucket.fill(&place);
    let listed = bucket.listed();
    let (url, user, key) = (lab.swift_auth_url(), &keys.swift_user, &keys.swift_key);
    let swift =
        format!("{{kind: swift, auth: {{kind: tempauth, url: '{url}', user: '{user}', key: '{key}'}}}}");
    for target in [bucket.target(), swift] {
        alone_and_together(&place, &target);
        assert_eq!(bucket.listed(), listed, "they are left as they were");
        eprintln!("existing objects: listed, read by one and by three drivers, and left as they were");
    }
}

/// Two and eight committers on one Iceberg table: the gateway heeds the condition on which versions are made, so each has one maker.
fn committers_on_one_table(lab: &Lab) {
    let (place, keys) = (Place::new(), lab.credentials());
    let storage = format!(
        "{{kind: s3, endpoint: '{}', access_key: '{}', secret_key: '{}'}}",
        lab.endpoint(),
        keys.access_key,
        keys.secret_key
    );
    for committers in [2, 8] {
        let text = format!(
            "name: commits\ntarget: {{kind: iceberg, bucket: lake, storage: {storage}}}\nstages:\n  - prepare: {{table: events, fresh: true}}\n  \
             - name: commits\n    load: {{table: events, committers: {committers}, rows: 50, total_operations: 60}}\n  \
             - cleanup: {{table: events}}\n"
        );
        let record = place.run(&place.write("commits.yaml", &text));
        assert_eq!(record.code, 0, "{} {}", record.stderr, record.value["findings"]);
        let used = &record.stage("commits")["proof"]["commits"][0];
        assert_eq!(
            (used["acknowledged"].as_u64(), used["condition"].as_str()),
            (Some(60), Some("heeded")),
            "{used}"
        );
        let history = &used["history"];
        let count = |key: &str| history[key].as_i64().unwrap();
        assert_eq!(
            (count("found"), count("missing"), count("contested"), count("broken")),
            (60, 0, 0, 0),
            "{history}"
        );
        assert_eq!((count("to_version") - count("from_version"), count("rows")), (60, 3_000), "{history}");
        assert_eq!(record.findings("commits-kept").len(), 1);
        let lost = used["lost_races"].as_u64().unwrap();
        eprintln!("{committers} committers: 60 commits, each version made once; {lost} races lost");
    }
}

/// A table ages and is compacted on the gateway: every answer is right, whichever way rows change.
fn cycles_of_a_table(lab: &Lab) {
    let (place, keys) = (Place::new(), lab.credentials());
    let storage = format!(
        "{{kind: s3, endpoint: '{}', access_key: '{}', secret_key: '{}'}}",
        lab.endpoint(),
        keys.access_key,
        keys.secret_key
    );
    for merge in ["copy-on-write", "merge-on-read"] {
        let text = format!(
            "name: cycles\ntarget: {{kind: iceberg, bucket: lake, storage: {storage}}}\nstages:\n  - prepare: {{table: aged, fresh: true}}\n  \
             - name: cycles\n    load: {{table: aged, cycles: 4, initial_rows: 2000, appends: 4, rows: 50, merge: {merge}, merged: 2%, \
             compact_every: 2, target_size: 32KiB}}\n  - cleanup: {{table: aged}}\n"
        );
        let record = place.run(&place.write("cycles.yaml", &text));
        assert_eq!(record.code, 0, "{} {}", record.stderr, record.value["findings"]);
        let proof = &record.stage("cycles")["proof"];
        let cycles = proof["cycles"][0]["cycles"].as_array().unwrap();
        let rows: Vec<_> = cycles.iter().filter_map(|cycle| cycle["found"]["rows"].as_u64()).collect();
        assert_eq!(rows, [2_200, 2_400, 2_600, 2_800]);
        assert_eq!((record.findings("cycles-answers").len(), record.findings("commits-kept").len()), (1, 1));
        let files: Vec<_> = cycles.iter().filter_map(|cycle| cycle["found"]["files"].as_u64()).collect();
        assert!(files[2] < files[1], "{files:?}");
        eprintln!("{merge}: 4 cycles, every answer right; {files:?} data files");
    }
}

fn signal(lab: &Lab, gateway: usize, signal: &str) {
    let pid = lab.pid(Daemon::Gateway(gateway)).unwrap().unwrap().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// A run whose events are read while it goes on.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

impl Running {
    fn start(place: &Place, document: &Path) -> Self {
        let mut child = place.start(&["run", document.to_str().unwrap(), "--json"]);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits until a stage, counted from 0, has had a second.
    fn wait_for_second_of(&mut self, stage: u64) {
        let is_it = |line: &String| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["event"] == "second" && event["stage"] == stage
        };
        while !self.seen.last().is_some_and(is_it) {
            let line = self.lines.next().unwrap_or_else(|| panic!("no load: {:?}", self.seen));
            self.seen.push(line.unwrap());
        }
    }

    fn record(mut self) -> Record {
        self.seen.extend(self.lines.map(Result::unwrap));
        let output = self.child.wait_with_output().unwrap();
        Record::from(&Output {
            code: output.status.code().unwrap_or(-1),
            stdout: self.seen.join("\n"),
            stderr: String::from_utf8(output.stderr).unwrap(),
        })
    }
}

/// The main stage of the whitepaper's workload, after init and prepare.
const MAIN: u64 = 2;

/// SIGSTOP for 10 s inside the main stage.
fn a_stopped_gateway_is_an_outage(lab: &Lab) {
    let place = Place::new();
    let document = place.write("stop.xml", &whitepaper("", &s3(lab), 15));
    let mut running = Running::start(&place, &document);
    running.wait_for_second_of(MAIN);
    signal(lab, 0, "-STOP");
    std::thread::sleep(Duration::from_secs(10));
    signal(lab, 0, "-CONT");
    let record = running.record();
    let silence = record.stage("main")["works"][0]["silence_ns"].as_u64().unwrap();
    assert!((9_000_000_000..13_000_000_000).contains(&silence), "{silence}");
    let outages = record.findings("outage");
    assert!(outages.iter().any(|finding| finding["severity"] == "critical"), "{}", record.value["findings"]);
}

fn yaml(lab: &Lab, name: &str, stages: &str) -> String {
    let (endpoint, keys) = (lab.endpoint(), lab.credentials());
    let (access, secret) = (&keys.access_key, &keys.secret_key);
    format!(
        "name: {name}\nseed: 3\ntarget:\n  kind: s3\n  endpoints: [{endpoint}]\n  access_key: {access}\n  secret_key: {secret}\nnaming: {{container_prefix: corrupt}}\ncontent: {{verify: true}}\nstages:\n{stages}"
    )
}

/// An object is overwritten in RADOS itself, behind the gateway's back.
fn a_corrupted_object_is_found(lab: &Lab) {
    let place = Place::new();
    let fill = "  - init: {containers: 1-1}\n  - prepare: {containers: 1-1, objects: 1-20, sizes: 64KiB, workers: 2}\n";
    let filled = place.run(&place.write("fill.yaml", &yaml(lab, "fill", fill)));
    assert_eq!(filled.code, 0, "{} {}", filled.stderr, filled.value["findings"]);
    let rados = |arguments: &[&str]| {
        let output = Command::new("rados").arg("-c").arg(lab.ceph_conf()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let pool = "default.rgw.buckets.data";
    let listed = rados(&["-p", pool, "ls"]);
    let name = listed.lines().find(|name| name.ends_with("_myobjects7")).unwrap();
    let file = place.path("object");
    let file = file.to_str().unwrap();
    rados(&["-p", pool, "get", name, file]);
    let mut bytes = std::fs::read(file).unwrap();
    assert_eq!(bytes.len(), 65_536);
    bytes[40_000] ^= 1;
    std::fs::write(file, &bytes).unwrap();
    // A full write would lose the object's attributes, which the gateway keeps in it.
    let patch = place.path("patch");
    std::fs::write(&patch, &bytes[40_000..40_001]).unwrap();
    rados(&["-p", pool, "put", name, patch.to_str().unwrap(), "--offset", "40000"]);

    let read = "  - name: main\n    load:\n      workers: 4\n      total_operations: 400\n      containers: 1-1\n      operations:\n        - get: {objects: \"r(1,20)\"}\n";
    let record = place.run(&place.write("read.yaml", &yaml(lab, "read", read)));
    let operation = record.operation("main", "get");
    assert_eq!(operation["faults"]["wrong_content"], 20, "{operation}");
    assert_eq!(operation["ok"], 380);
    assert_ne!(record.code, 0);
    let clean = "  - dispose: {containers: 1-1, empty: true}\n";
    assert_eq!(place.run(&place.write("clean.yaml", &yaml(lab, "clean", clean))).code, 0);
}

fn a_wrong_key_is_refused(lab: &Lab) {
    let place = Place::new();
    let storage = s3(lab).replace(&lab.credentials().secret_key, "notTheSecretAtAll");
    let output =
        place.tidemark(&["run", place.write("key.xml", &whitepaper("", &storage, 2)).to_str().unwrap()]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("secret"), "{}", output.stderr);
    let storage = s3(lab).replace(&lab.credentials().access_key, "NOBODYKNOWSTHISKEY00");
    let output =
        place.tidemark(&["run", place.write("key.xml", &whitepaper("", &storage, 2)).to_str().unwrap()]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("access key"), "{}", output.stderr);
}

/// SIGKILL in the main stage: it ends, in time, and nothing is called a success that was none.
fn a_killed_gateway_is_a_failure(lab: &Lab) {
    let place = Place::new();
    let document = place.write("kill.xml", &whitepaper("", &s3(lab), 8));
    let mut running = Running::start(&place, &document);
    running.wait_for_second_of(MAIN);
    signal(lab, 0, "-KILL");
    let begun = Instant::now();
    let record = running.record();
    assert!(begun.elapsed() < Duration::from_secs(300), "it must not hang");
    assert_eq!((record.code, record.state()), (1, "failed"));
    let read = record.operation("main", "read");
    assert!(read["ok"].as_u64().unwrap() > 0, "what was measured before stays");
    assert!(read["faults"]["refused"].as_u64().unwrap() > 0, "{read}");
    assert_ne!(record.stage("cleanup")["state"], "completed", "nothing could be cleaned up");
    lab.restart_gateway(0, &mut |_| {}).unwrap();
}

/// The lab as the command line brings it up, with three gateways: all serve the same objects, each is observed, and one that is killed
/// in the middle of streams of queries is named by its run and by the lab's status.
#[test]
#[ignore = "needs the Ceph packages; `make test` runs it"]
fn three_gateways() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    let place = Place::new();
    let directory = place.path("lab");
    let _down = Down(&directory);
    let lab = |arguments: &[&str]| {
        let system: &[&str] = if arguments[0] == "up" { &["ceph"] } else { &[] };
        let dir = ["--dir", directory.to_str().unwrap()];
        place.tidemark(&[&["lab"], &arguments[..1], system, &arguments[1..], &dir].concat())
    };
    let up = lab(&["up", "--gateways", "3"]);
    assert_eq!(up.code, 0, "{}", up.stderr);
    let open = Lab::open(&directory).unwrap();
    let endpoints = open.endpoints();
    let environment = lab(&["env"]).stdout;
    let expected = format!("export TIDEMARK_LAB_GATEWAYS='{}'", endpoints.join(","));
    assert!(endpoints.len() == 3 && environment.contains(&expected), "{environment}");

    all_serve_the_same_objects_and_are_observed(&open, &endpoints);
    let killed = a_gateway_killed_in_the_middle_of_streams_is_named(&open, &endpoints);
    let status = lab(&["status"]);
    assert_ne!(status.code, 0);
    let line = |name: &str| status.stdout.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("client.rgw.lab-1").contains("stopped"), "{}", status.stdout);
    assert!(line("client.rgw.lab-2").contains("running"), "{}", status.stdout);
    assert!(line(&killed).ends_with("no answer") && !line(&endpoints[2]).contains("no answer"));
    assert_eq!(lab(&["up"]).code, 0);
    assert_eq!(lab(&["status"]).code, 0, "it is back");

    let pids: Vec<_> = open.daemons().iter().map(|daemon| open.pid(*daemon).unwrap().unwrap()).collect();
    assert_eq!(pids.len(), 8);
    assert_eq!(lab(&["down"]).code, 0);
    assert!(!directory.exists());
    // Whoever inherits what the command has left may be slow to reap it: a process that has ended has no command line.
    let runs = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    assert!(!pids.iter().any(runs), "no process is left");
}

/// A target in S3 on these addresses, without its braces.
fn on(lab: &Lab, endpoints: &str) -> String {
    let keys = lab.credentials();
    format!(
        "kind: s3, endpoints: '{endpoints}', access_key: {}, secret_key: {}",
        keys.access_key, keys.secret_key
    )
}

fn all_serve_the_same_objects_and_are_observed(lab: &Lab, endpoints: &[String]) {
    let place = Place::new();
    let document = |endpoints: &str, stages: &str| {
        let observe = format!(
            "observe: {{processes: ['radosgw {}'], ceph_sockets: '{}'}}",
            lab.ceph_conf().display(),
            lab.admin_sockets().display()
        );
        let target = on(lab, endpoints);
        let text = format!(
            "name: one\nseed: 5\n{observe}\ntarget: {{{target}}}\ncontent: {{verify: true}}\nstages:\n{stages}"
        );
        place.write("document.yaml", &text)
    };
    let fill =
        "  - init: {containers: 1}\n  - prepare: {containers: 1, objects: 1-20, sizes: 4KB, workers: 2}\n";
    assert_eq!(place.run(&document(&endpoints[0], fill)).code, 0);
    let read = "  - name: main\n    load: {workers: 6, total_operations: 1800, containers: 1, operations: [{get: {objects: 1-20}}]}\n";
    for endpoint in endpoints {
        let record = place.run(&document(endpoint, read));
        let get = record.operation("main", "get");
        assert_eq!((&get["ok"], &get["verified"]), (&1_800.into(), &1_800.into()), "{endpoint}: {get}");
    }
    let record = place.run(&document(&endpoints.join(","), read));
    let each = record.stage("main")["works"][0]["endpoints"].as_array().unwrap();
    let served: Vec<_> =
        each.iter().map(|one| (one["endpoint"].as_str().unwrap(), one["ok"].as_u64().unwrap())).collect();
    let expected: Vec<_> = endpoints.iter().map(|endpoint| (endpoint.as_str(), 600)).collect();
    assert_eq!(served, expected, "workers share them evenly");
    let nodes = record.value["nodes"].to_string();
    for seen in [
        "radosgw.rgw.lab",
        "radosgw.rgw.lab-1",
        "radosgw.rgw.lab-2",
        "client.rgw.lab",
        "client.rgw.lab-1",
        "client.rgw.lab-2",
    ] {
        assert!(nodes.contains(&format!("\"{seen}\"")), "{seen} is not observed: {nodes}");
    }
}

/// Gives its address.
fn a_gateway_killed_in_the_middle_of_streams_is_named(lab: &Lab, endpoints: &[String]) -> String {
    let place = Place::new();
    let text = format!(
        "name: streams\nseed: 5\ntarget: {{kind: datafusion, storage: {{{}}}, bucket: lake}}\nstages:\n  \
         - prepare: {{tables: tpch, scale: 0.01}}\n  - name: main\n    load: {{tables: tpch, scale: 0.01, streams: 2, passes: 4, \
         queries: [q1, q3, q5, q6, q10, q12, q14, q19], allowed_failures: 100%}}\n",
        on(lab, &endpoints.join(","))
    );
    let document = place.write("streams.yaml", &text);
    let mut running = Running::start(&place, &document);
    running.wait_for_second_of(1);
    signal(lab, 1, "-KILL");
    let record = running.record();
    assert_eq!(record.state(), "completed", "{}", record.value["findings"]);
    let made = record.stage("prepare")["works"][0]["endpoints"].as_array().unwrap();
    assert!(
        made.iter().all(|one| one["ok"].as_u64() > Some(0)),
        "all took part in making the tables: {made:?}"
    );
    let work = &record.stage("main")["works"][0];
    let counts = |what: &str| -> Vec<u64> {
        work["endpoints"].as_array().unwrap().iter().map(|one| one[what].as_u64().unwrap()).collect()
    };
    let (ok, failed) = (counts("ok"), counts("failed"));
    // On a busy machine the second one is killed before it has answered a whole query.
    assert!(ok[0] > 0 && ok[2] > 0, "{ok:?}");
    assert!(failed[1] > 0 && failed[0] + failed[2] == 0, "{failed:?}");
    let operations = work["operations"].as_array().unwrap();
    let sum = |what: &str| operations.iter().map(|one| one[what].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("ok") + sum("failed"), 2 * 4 * 8, "the streams went on to their ends");
    let refused: u64 = operations.iter().filter_map(|one| one["faults"]["refused"].as_u64()).sum();
    assert!(refused > 0 && sum("ok") > 0, "{operations:?}");
    let findings = record.value["findings"].as_array().unwrap();
    let named =
        findings.iter().find(|one| one["rule"].as_str().is_some_and(|rule| rule.starts_with("endpoint-")));
    let title = named.unwrap_or_else(|| panic!("{findings:?}"))["title"].as_str().unwrap();
    assert!(title.contains(&endpoints[1]), "{title}");
    endpoints[1].clone()
}
