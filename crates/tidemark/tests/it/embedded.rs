//! The built binary against an S3 server with faults: what goes wrong must show as what it is.

use crate::common::fleet::wait;
use crate::common::{Output, Place, Record, whitepaper};
use std::time::Duration;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Fault, Operation};

fn server() -> EmbeddedServer {
    EmbeddedServer::start(EmbeddedOptions::default()).unwrap()
}

fn storage(server: &EmbeddedServer) -> String {
    storage_with(server, server.secret_key())
}

fn storage_with(server: &EmbeddedServer, secret: &str) -> String {
    let (endpoint, key) = (server.endpoint(), server.access_key());
    format!(
        r#"<storage type="s3" config="accesskey={key};secretkey={secret};endpoint={endpoint};path_style_access=true"/>"#
    )
}

/// A YAML document with one main work after a prepared data set.
fn yaml(server: &EmbeddedServer, main: &str) -> String {
    let (endpoint, key, secret) = (server.endpoint(), server.access_key(), server.secret_key());
    format!(
        "name: yaml-{seed}\nseed: {seed}\ntarget:\n  kind: s3\n  endpoints: [{endpoint}]\n  access_key: {key}\n  secret_key: {secret}\ncontent: {{verify: true}}\n{main}",
        seed = 5
    )
}

#[test]
fn the_whitepaper_s_workload_counts_what_the_server_counts() {
    let (place, server) = (Place::new(), server());
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 3));
    let record = place.run(&document);
    assert_eq!((record.code, record.state()), (0, "completed"), "{}", record.value);
    let counted = server.statistics();
    assert_eq!(record.sum("read", "ok"), counted.of(Operation::GetObject).succeeded);
    assert_eq!(record.sum("write", "ok"), counted.of(Operation::PutObject).succeeded);
    assert_eq!(record.sum("delete", "ok"), 200, "cleanup deletes 4 x 50 objects");
    assert_eq!(record.operation("prepare", "prepare")["ok"], 200);
    assert_eq!((counted.buckets, counted.objects), (0, 0), "dispose leaves nothing");
    let (read, write) =
        (record.sum("read", "ok") as f64, record.operation("main", "write")["ok"].as_f64().unwrap());
    assert!((0.62..0.78).contains(&(read / (read + write))), "{read} reads, {write} writes");
    let notes = record.value["notes"].as_array().unwrap();
    assert!(!notes.is_empty(), "a COSBench file has compatibility notes");
}

#[test]
fn short_runs_pauses_and_no_storage_are_not_blamed_on_the_generator() {
    let place = Place::new();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = load.split(' ').next().unwrap().parse().unwrap();
    let starved = load > 2.0 * std::thread::available_parallelism().unwrap().get() as f64;
    let run = |name: &str, target: &str, load: &str| {
        let text = format!(
            "name: {name}\ntarget: {target}\nstages:\n  - init: {{containers: 1-1}}\n  - prepare: {{containers: 1-1, objects: 1-20, sizes: 4KB}}\n  - name: main\n    load:\n      {load}\n      containers: 1-1\n      objects: 1-20\n      operations: [get: {{}}]\n"
        );
        let record = place.run(&place.write(&format!("{name}.yaml"), &text));
        assert_eq!(record.state(), "completed", "{}", record.stderr);
        // On a machine that has no processor to spare the generator does wait, and it is right to say so.
        let reasons = record.value["invalid_reasons"].to_string();
        let waited = starved && reasons.contains("for the load generator");
        assert!(record.value["valid"] == true || waited, "{name}: {reasons}");
        record
    };
    run("ten", "embedded", "workers: 8\n      total_operations: 10");
    run("pausing", "embedded", "workers: 4\n      for: 2s\n      think: u(10,30)ms");
    let none = run("none", "none", "workers: 4\n      for: 2s");
    assert_eq!(none.findings("simulated").len(), 1);
    let work = &none.stage("main")["works"][0];
    assert_eq!((&work["simulated"], &work["think"]), (&true.into(), &serde_json::Value::Null));
}

#[test]
fn what_others_keep_in_a_bucket_outlives_a_cosbench_file_s_dispose() {
    let (place, server) = (Place::new(), server());
    let theirs = "naming: {container_prefix: wp, object_prefix: theirs}\nstages:\n  - init: {containers: 2-3}\n  - prepare: \
                  {containers: 2-3, objects: 1-3, sizes: 1KB}\n";
    let filled = place.run(&place.write("theirs.yaml", &yaml(&server, theirs)));
    assert_eq!(filled.code, 0, "{}", filled.stderr);
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 1));
    let run = |allow: &[&str]| {
        let all = [&["run", document.to_str().unwrap(), "--json"], allow].concat();
        Record::from(&place.tidemark(&all))
    };

    let kept = run(&[]);
    assert_eq!((kept.code, kept.stage("dispose")["state"].as_str()), (1, Some("failed")));
    let disposed = kept.operation("dispose", "dispose");
    assert_eq!((disposed["ok"].as_u64(), disposed["failed"].as_u64()), (Some(2), Some(2)));
    let counted = server.statistics();
    assert_eq!((counted.buckets, counted.objects), (2, 6), "wp2 and wp3 stay, with what others wrote");
    let findings = kept.findings("failures");
    assert!(findings.iter().any(|one| one.to_string().contains("--allow-destroy s3://wp")), "{findings:?}");
    let notes = kept.value["notes"].as_array().unwrap();
    assert_eq!(notes[0]["topic"], "dispose", "what changes data comes first");

    let some = run(&["--allow-destroy", "s3://wp3"]);
    assert_eq!((some.code, server.statistics().objects), (1, 3), "only wp3 was given up");
    let all = run(&["--allow-destroy", "s3://wp*"]);
    assert_eq!((all.code, all.state()), (0, "completed"), "{}", all.stderr);
    assert_eq!(server.statistics().buckets, 0);
    let wrong = place.tidemark(&["run", document.to_str().unwrap(), "--allow-destroy", "s3://wp1/a"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("goes beyond the container's name"), "{}", wrong.stderr);
}

#[test]
fn a_server_that_says_404_to_every_put_is_a_failure() {
    let (place, server) = (Place::new(), server());
    server.faults().add(Fault::answer(404, "NoSuchBucket").on(Operation::PutObject));
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 1));
    let record = place.run(&document);
    assert_eq!((record.code, record.state()), (1, "failed"));
    assert_eq!(record.stage("prepare")["state"], "failed");
    assert_eq!(record.sum("write", "ok"), 0);
    assert!(record.operation("prepare", "prepare")["faults"]["not_found"].as_u64().unwrap() > 0);
}

#[test]
fn one_corrupted_object_is_found() {
    let (place, server) = (Place::new(), server());
    let fill = "stages:\n  - init: {containers: 1-1}\n  - prepare: {containers: 1-1, objects: 1-20, sizes: 64KiB, workers: 2}\n";
    let filled = place.run(&place.write("fill.yaml", &yaml(&server, fill)));
    assert_eq!(filled.code, 0, "{}", filled.stderr);
    let read = "stages:\n  - name: main\n    load:\n      workers: 4\n      total_operations: 400\n      containers: 1-1\n      operations:\n        - get: {objects: \"r(1,20)\"}\n";
    let document = place.write("read.yaml", &yaml(&server, read));
    let good = place.run(&document);
    assert_ne!(good.code, 1);
    assert_eq!((0, good.operation("main", "get")["ok"].as_u64()), (0, Some(400)), "{}", good.stderr);
    server.faults().corrupt("mycontainers1", "myobjects7", 40_000).unwrap();
    let bad = place.run(&document);
    let operation = bad.operation("main", "get");
    assert_eq!(operation["faults"]["wrong_content"], 20, "one of 20 objects, read 20 times: {operation}");
    assert_eq!(operation["ok"], 380);
    assert_ne!(bad.code, 0);
}

#[test]
fn an_outage_is_unmistakable() {
    let (place, server) = (Place::new(), server());
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 9));
    let record = std::thread::scope(|scope| {
        let running = scope.spawn(|| place.run(&document));
        std::thread::sleep(Duration::from_secs(4));
        server.faults().freeze(Duration::from_secs(4));
        running.join().unwrap()
    });
    let work = &record.stage("main")["works"][0];
    assert!(work["silence_ns"].as_u64().unwrap() >= 3_000_000_000, "{}", work["silence_ns"]);
    let outages = record.findings("outage");
    assert!(!outages.is_empty(), "{}", record.value["findings"]);
    assert!(outages.iter().any(|finding| finding["severity"] == "critical"), "{outages:?}");
}

#[test]
fn a_wrong_key_is_one_clear_sentence_before_any_load() {
    let (place, server) = (Place::new(), server());
    let document = place.write("wp.xml", &whitepaper("", &storage_with(&server, "wrongwrongwrongwrong"), 1));
    let output = place.tidemark(&["run", document.to_str().unwrap()]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stderr.contains("secret"), "{}", output.stderr);
    assert!(!output.stderr.contains("wrongwrong"), "the key must not be shown: {}", output.stderr);
    assert_eq!(server.statistics().of(Operation::PutObject).requests, 0);
}

#[test]
fn nobody_at_the_address_is_one_clear_sentence() {
    let place = Place::new();
    let storage = r#"<storage type="s3" config="accesskey=a;secretkey=b;endpoint=http://127.0.0.1:9"/>"#;
    let document = place.write("wp.xml", &whitepaper("", storage, 1));
    let output = place.tidemark(&["run", document.to_str().unwrap()]);
    assert_eq!(output.code, 3);
    assert!(output.stderr.contains("127.0.0.1:9") && output.stderr.contains("refused"), "{}", output.stderr);
}

#[test]
fn the_user_s_ctrl_c_keeps_what_was_measured_and_cleans_up() {
    let (place, server) = (Place::new(), server());
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 600));
    let child = place.start(&["run", document.to_str().unwrap(), "--json"]);
    wait("load", || (server.statistics().of(Operation::GetObject).succeeded > 100).then_some(()));
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let output = child.wait_with_output().unwrap();
    let output = Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    let record = Record::from(&output);
    assert_eq!((record.code, record.state()), (130, "interrupted"));
    assert!(record.sum("read", "ok") > 0);
    assert_eq!(record.stage("dispose")["state"], "completed");
    assert_eq!(server.statistics().buckets, 0, "cleanup ran");
    // What is kept says the same, whether or not the run is INVALID, too, because this machine was too busy.
    let kept = place.tidemark(&["report", "1", "--format", "json"]);
    let kept: serde_json::Value = serde_json::from_str(&kept.stdout).unwrap();
    assert_eq!(kept["state"], "interrupted");
    let shown = place.tidemark(&["runs"]);
    assert!(shown.stdout.contains("interrupted"), "{}", shown.stdout);
}

#[test]
fn secrets_stay_inside() {
    let (place, server) = (Place::new(), server());
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 1));
    let archive = place.path("archive");
    let path = document.to_str().unwrap();
    let output = place.tidemark(&["run", path, "--json", "--cosbench-archive", archive.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!output.stdout.contains(server.secret_key()) && !output.stderr.contains(server.secret_key()));
    let (mut folders, mut files) = (vec![place.directory.path().to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path != document {
                files += 1;
                let bytes = std::fs::read(&path).unwrap();
                let secret = server.secret_key().as_bytes();
                assert!(
                    !bytes.windows(secret.len()).any(|window| window == secret),
                    "{} has it",
                    path.display()
                );
            }
        }
    }
    assert!(files > 8, "the store, the report and the archive were looked at: {files}");
    let report = place.tidemark(&["report", "last", "--format", "md"]);
    assert!(report.stdout.contains("***"), "the document is shown redacted");
}

#[test]
fn every_format_of_a_stored_run_can_be_had() {
    let (place, server) = (Place::new(), server());
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 1));
    assert_eq!(place.tidemark(&["run", document.to_str().unwrap(), "--quiet"]).code, 0);
    for (format, sign) in [("md", "| "), ("csv", "stage"), ("series-csv", "second"), ("json", "\"schema\"")] {
        let output = place.tidemark(&["report", "1", "--format", format]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        assert!(output.stdout.contains(sign), "{format}: {}", output.stdout);
    }
    let html = place.path("r.html");
    assert_eq!(place.tidemark(&["report", "last", "-o", html.to_str().unwrap()]).code, 0);
    let html = std::fs::read_to_string(html).unwrap();
    assert!(html.starts_with("<!doctype html>") || html.starts_with("<!DOCTYPE html>"));
    assert!(html.contains("<svg") && !html.contains("http://cdn") && !html.contains("<script src"));
    assert_eq!(place.tidemark(&["report", "99"]).code, 2);
}

#[test]
fn an_open_loop_offers_its_rate() {
    let (place, server) = (Place::new(), server());
    let endpoint = server.endpoint();
    let output = place
        .command(&[
            "object",
            "get",
            "--endpoint",
            &endpoint,
            "--rate",
            "500/s",
            "--for",
            "4s",
            "--objects",
            "50",
            "--json",
        ])
        .env("AWS_ACCESS_KEY_ID", server.access_key())
        .env("AWS_SECRET_ACCESS_KEY", server.secret_key())
        .output()
        .unwrap();
    let output = Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    let record = Record::from(&output);
    let work = &record.stage("main")["works"][0];
    assert_eq!(work["offered_per_s"].as_f64().unwrap().round(), 500.0);
    let ok = work["operations"][0]["ok"].as_u64().unwrap();
    assert_eq!(ok + work["unsent"].as_u64().unwrap(), 2000, "every due operation is accounted for");
}

#[test]
#[ignore = "mounts a small file system; `make test` runs it"]
fn a_full_disk_under_the_store_costs_nothing_that_was_measured() {
    tidemark_testing::needs!(&["unshare"]);
    let (place, server) = (Place::new(), server());
    let document = place.write("wp.xml", &whitepaper("", &storage(&server), 6));
    let (small, report) = (place.path("small"), place.path("report.html"));
    std::fs::create_dir(&small).unwrap();
    // A name space of its own: the mount is gone with the process, and root is not needed.
    let script = r#"mount -t tmpfs -o size=112k tmpfs "$1" && shift && exec "$@""#;
    let store = small.join("results.db");
    let output = std::process::Command::new("unshare")
        .args(["-rm", "sh", "-c", script, "sh"])
        .arg(&small)
        .arg(env!("CARGO_BIN_EXE_tidemark"))
        .arg("--store")
        .arg(&store)
        .args(["run", document.to_str().unwrap(), "--report"])
        .arg(&report)
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // 4: the numbers do not stand, because this machine was too busy to measure. They are there all the same.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{:?} {stderr}", output.status);
    let says_why = stderr.contains("no space") || stderr.contains("disk is full");
    assert!(stderr.contains("without the result store") && says_why, "{stderr}");
    assert!(stdout.contains("s3-main") && stdout.contains("op/s"), "the result is still printed: {stdout}");
    assert!(std::fs::read_to_string(&report).unwrap().contains("s3-main"), "and reported");
}

#[test]
fn a_dead_endpoint_among_three_is_named_and_every_one_has_its_figures() {
    let place = Place::new();
    let open = || EmbeddedOptions {
        anonymous: true,
        buckets: vec!["mycontainers1".into()],
        ..EmbeddedOptions::default()
    };
    let servers = [open(), open(), open()].map(|options| EmbeddedServer::start(options).unwrap());
    let endpoints: Vec<String> = servers.iter().map(EmbeddedServer::endpoint).collect();
    // It answers the preflight, and nothing else.
    servers[1].faults().add(Fault::disconnect().on(Operation::PutObject));
    let document = format!(
        "name: three\ntarget: {{kind: s3, endpoints: [{}]}}\nstages:\n  - name: main\n    load: {{workers: 6, total_operations: 600, \
         containers: 1-1, allowed_failures: 50%, operations: [{{put: {{objects: \"r(1,600)\", sizes: 1KiB}}}}]}}\n",
        endpoints.join(", ")
    );
    let record = place.run(&place.write("three.yaml", &document));
    let told = record.findings("endpoint-dead");
    assert_eq!(told.len(), 1, "{} {}", record.stderr, record.value["findings"]);
    assert!(told[0]["title"].as_str().unwrap().contains(&endpoints[1]), "{}", told[0]);
    let figures = record.stage("main")["works"][0]["endpoints"].as_array().unwrap();
    let mut counted = 0;
    for ((server, endpoint), figures) in servers.iter().zip(&endpoints).zip(figures) {
        assert_eq!(figures["endpoint"].as_str(), Some(endpoint.as_str()));
        let ok = figures["ok"].as_u64().unwrap();
        assert_eq!(ok, server.statistics().of(Operation::PutObject).succeeded, "{figures}");
        assert_eq!(figures["response"]["count"].as_u64().unwrap_or(0), ok, "{figures}");
        counted += ok + figures["failed"].as_u64().unwrap();
    }
    assert_eq!((counted, figures[1]["ok"].as_u64()), (600, Some(0)));
    let report = place.tidemark(&["report", "last", "--format", "md"]).stdout;
    assert!(report.contains(&format!("| **{}** | **0 op/s** | **0 %** | **0** |", endpoints[1])), "{report}");
}

#[test]
fn objects_that_somebody_else_wrote_are_read_by_their_names() {
    let (place, server) = (Place::new(), server());
    let prepared = "naming: {container_prefix: photo, object_prefix: 'of summer/'}\nstages:\n- init: {containers: 1}\n\
        - prepare: {containers: 1, objects: 1-3, sizes: 4KiB}\n";
    let first = place.run(&place.write("first.yaml", &yaml(&server, prepared)));
    assert_eq!(first.code, 0, "{}", first.stderr);
    place.write("keys.txt", "of summer/1\nof summer/2\nof summer/3\nof summer/nobody\n");
    let load = |objects: &str| {
        format!(
            "stages:\n- name: main\n  load: {{total_operations: 40, existing: {{container: photo1, keys: keys.txt}}, \
             objects: {objects}, operations: [get: {{}}]}}\n"
        )
    };
    let there = place.run(&place.write("there.yaml", &yaml(&server, &load("1-3"))));
    assert_eq!(there.operation("main", "get")["ok"], 40, "{}", there.value);
    let nobody = place.run(&place.write("nobody.yaml", &yaml(&server, &load("4"))));
    assert_eq!(nobody.operation("main", "get")["ok"], 0, "{}", nobody.value);
    assert_eq!(server.statistics().objects, 3, "nothing was written or deleted");
}
