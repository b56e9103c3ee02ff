//! A controller and its drivers as processes: works divided exactly, drivers and controllers killed, documents and
//! tokens that are not to be trusted.

use crate::common::fleet::{Controller, Process, wait};
use crate::common::{Place, Record};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer, Operation};

fn target(server: &EmbeddedServer) -> String {
    format!(
        "target: {{kind: s3, endpoints: ['{}'], access_key: {}, secret_key: {}}}\n",
        server.endpoint(),
        server.access_key(),
        server.secret_key()
    )
}

/// Reads and writes, so many in all, between filling and cleaning up.
fn counted(server: &EmbeddedServer, operations: u32) -> String {
    format!(
        "name: counted\nseed: 7\n{}stages:\n\
         - init: {{containers: 1-3}}\n\
         - prepare: {{containers: 1-3, objects: 1-40, sizes: 4KiB, workers: 5}}\n\
         - name: main\n  load:\n    workers: 7\n    total_operations: {operations}\n    containers: 1-3\n    operations:\n\
         \x20   - get: {{objects: 1-40, weight: 70}}\n\
         \x20   - put: {{objects: 41-80, sizes: 4KiB, weight: 30}}\n\
         - cleanup: {{containers: 1-3, objects: 1-80, workers: 5}}\n\
         - dispose: {{containers: 1-3}}\n",
        target(server)
    )
}

/// A load of some seconds; `more` goes to the top of the document.
fn timed(server: &EmbeddedServer, seconds: u32, more: &str) -> String {
    format!(
        "name: timed\nseed: 7\n{more}{}stages:\n\
         - init: {{containers: 1-1}}\n\
         - name: main\n  load:\n    workers: 8\n    rate: 400/s\n    for: {seconds}s\n    containers: 1-1\n    operations:\n\
         \x20   - put: {{objects: 1-40, sizes: 4KiB}}\n",
        target(server)
    )
}

/// Objects that the server has stored so far.
fn stored(server: &EmbeddedServer) -> u64 {
    server.statistics().of(Operation::PutObject).succeeded
}

fn counts(record: &Record) -> Vec<(String, u64, u64)> {
    let stages = record.value["stages"].as_array().unwrap().iter();
    let works = stages.flat_map(|stage| stage["works"].as_array().unwrap());
    let operations = works.flat_map(|work| work["operations"].as_array().unwrap());
    operations
        .map(|one| {
            let number = |key: &str| one[key].as_u64().unwrap();
            (one["label"].as_str().unwrap().to_owned(), number("ok"), number("bytes"))
        })
        .collect()
}

#[test]
fn three_drivers_do_what_one_does() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let alone = place.run(&place.write("alone.yaml", &counted(&server, 3000)));
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    let requests = server.statistics().total();

    let controller = Controller::start(&place, &["--no-driver"]);
    let _drivers: Vec<_> = ["a", "b", "c"].map(|name| controller.driver(name, &[])).into();
    controller.wait_for_drivers(3);
    let id = controller.submit(&counted(&server, 3000), &[]);
    let together = controller.run_of(&controller.wait_for_state(id, "completed"));
    assert_eq!(counts(&together), counts(&alone));
    assert_eq!(
        together.operation("main", "get")["ok"].as_u64().unwrap()
            + together.operation("main", "put")["ok"].as_u64().unwrap(),
        3000
    );
    // The server, which does not know of drivers, has seen the same again: questions before the run aside.
    let all = server.statistics().total();
    let again = all.requests - requests.requests;
    assert!(again.abs_diff(requests.requests) <= 20, "{again} requests, {} alone", requests.requests);

    let drivers = together.value["drivers"].as_array().unwrap();
    assert_eq!(drivers.len(), 3);
    let shares = together.stage("main")["shares"].as_array().unwrap();
    let workers: u64 = shares.iter().map(|share| share["workers"].as_u64().unwrap()).sum();
    let done: u64 = shares.iter().map(|share| share["ok"].as_u64().unwrap()).sum();
    assert_eq!((shares.len(), workers, done), (3, 7, 3000), "{shares:?}");
    assert!(shares.iter().all(|share| share["complete"] == true));
    // Each driver's process is observed as its own; the controller's is not taken for one of them.
    let nodes = together.value["nodes"].as_array().unwrap();
    let of_processes = nodes.iter().flat_map(|node| node["series"].as_array().unwrap());
    let subjects: std::collections::BTreeSet<&str> = of_processes
        .filter(|series| series["kind"] == "process")
        .map(|series| series["subject"].as_str().unwrap())
        .collect();
    assert_eq!(Vec::from_iter(subjects), ["controller", "driver a", "driver b", "driver c"]);
}

#[test]
fn operations_that_a_lost_driver_may_have_done_are_said_to_be_unknown() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    let total = 60_000;
    for on_loss in ["stop", "continue"] {
        let mut lost = controller.driver("lost", &[]);
        let _kept = controller.driver("kept", &[]);
        controller.wait_for_drivers(2);
        let drivers = format!("drivers: {{on_loss: {on_loss}, lost_after: 2s}}\n");
        let id = controller.submit(&(drivers + &counted(&server, total)), &[]);
        wait("load", || (controller.submission(id)["stage"].as_str()?.ends_with("main")).then_some(()));
        std::thread::sleep(Duration::from_secs(2));
        lost.kill();
        let record = controller.run_of(&controller.wait_for_end(id));
        let work = &record.stage("main")["works"][0];
        let sum = |key: &str| {
            work["operations"].as_array().unwrap().iter().map(|one| one[key].as_u64().unwrap()).sum::<u64>()
        };
        let (unknown, undone) = (work["unknown"].as_u64().unwrap(), work["undone"].as_u64().unwrap());
        assert!(unknown > 0, "{on_loss}: {work}");
        assert_eq!(sum("ok") + sum("failed") + unknown + undone, u64::from(total), "{on_loss}");
        let findings = record.value["findings"].to_string();
        assert!(findings.contains("whose outcome is unknown"), "{findings}");
    }
}

#[test]
fn a_driver_that_is_killed_stops_the_stage_or_not_as_the_document_says() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    for on_loss in ["stop", "continue"] {
        let mut lost = controller.driver("lost", &[]);
        let _kept = controller.driver("kept", &[]);
        controller.wait_for_drivers(2);
        let drivers = format!("drivers: {{on_loss: {on_loss}, lost_after: 2s}}\n");
        let before = stored(&server);
        let id = controller.submit(&timed(&server, 8, &drivers), &[]);
        wait("load", || (controller.submission(id)["stage"].as_str()?.ends_with("main")).then_some(()));
        std::thread::sleep(Duration::from_secs(3));
        lost.kill();
        let submission =
            controller.wait_for_state(id, if on_loss == "stop" { "failed" } else { "completed" });
        let record = controller.run_of(&submission);
        let main = record.stage("main");
        let (ok, done) = (record.operation("main", "put")["ok"].as_u64().unwrap(), stored(&server) - before);
        assert!(ok > done / 2, "what was measured is kept, {ok} of {done}: {main}");
        let lost: Vec<_> =
            record.value["drivers"].as_array().unwrap().iter().filter(|one| !one["lost"].is_null()).collect();
        assert_eq!((lost.len(), lost[0]["name"].as_str()), (1, Some("lost")), "{on_loss}");
        if on_loss == "stop" {
            assert!(main["reason"].as_str().unwrap().contains("driver lost was lost"), "{main}");
        } else {
            assert_eq!(main["state"], "completed", "{main}");
            assert!(!record.findings("driver-lost").is_empty(), "{}", record.value["findings"]);
            assert_eq!(record.value["valid"], false, "the load was not the one that was asked for");
        }
    }
}

#[test]
fn a_killed_controller_keeps_its_queue_and_what_was_measured() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let mut controller = Controller::start(&place, &["--no-driver"]);
    let driver = controller.driver("d1", &[]);
    controller.wait_for_drivers(1);
    let first = controller.submit(&timed(&server, 60, ""), &[]);
    let second = controller.submit(&counted(&server, 200), &["--priority", "5"]);
    let third = controller.submit(&counted(&server, 300), &[]);
    wait("load", || (controller.submission(first)["stage"].as_str()?.ends_with("main")).then_some(()));
    std::thread::sleep(Duration::from_secs(4));
    let address = controller.url.trim_start_matches("http://").to_owned();
    let done = stored(&server);
    controller.process.kill();

    // The driver finds the new one at the old address, by itself.
    let controller = Controller::at(&place, &address, &["--no-driver"]);
    let interrupted = controller.submission(first);
    assert_eq!(interrupted["state"], "interrupted", "{interrupted}");
    let record = controller.run_of(&interrupted);
    let ok = record.operation("main", "put")["ok"].as_u64().unwrap();
    assert!(ok > done / 4, "{ok} of {done}: {}", record.value);
    // Rebuilt from the seconds, it is still the open loop that was asked for, on the driver that did it.
    let work = &record.stage("main")["works"][0];
    assert_eq!(work["offered_per_s"], 400.0, "{work}");
    let reasons = &record.value["invalid_reasons"];
    assert!(!reasons.to_string().contains("waited"), "judged as a closed loop: {reasons}");
    assert_eq!(record.value["drivers"][0]["name"], "d1");
    let shares = record.stage("main")["shares"].as_array().unwrap();
    assert_eq!((shares.len(), shares[0]["ok"].as_u64()), (1, Some(ok)), "{shares:?}");
    // Lists and the report say the same of it.
    let listed: serde_json::Value =
        serde_json::from_str(&place.tidemark(&["runs", "--json"]).stdout).unwrap();
    let listed =
        listed["runs"].as_array().unwrap().iter().find(|run| run["id"] == interrupted["run"]).unwrap();
    assert_eq!(
        (&listed["elapsed_ns"], &listed["state"]),
        (&record.value["elapsed_ns"], &"interrupted".into())
    );
    assert!(listed["headline"].as_str().unwrap().contains("offered"), "{listed}");
    for id in [second, third] {
        controller.wait_for_state(id, "completed");
    }
    drop(driver);
}

#[test]
fn a_second_controller_on_the_same_store_is_refused() {
    let place = Place::new();
    let _controller = Controller::start(&place, &["--no-driver"]);
    let second = place.tidemark(&["serve", "--listen", "127.0.0.1:0", "--no-driver"]);
    assert_eq!(second.code, 3, "{}", second.stderr);
    assert!(second.stderr.contains("controller"), "{}", second.stderr);
}

/// Another user of the machine is one who does not find the tokens that the controller leaves for its own.
#[test]
fn other_users_of_the_machine_neither_join_nor_look_nor_submit() {
    let place = Place::new();
    let controller = Controller::start(&place, &["--driver-name", "own"]);
    controller.wait_for_drivers(1);
    let document = place.write("none.xml", "<workload name=\"n\"/>");
    let as_other = |words: &[&str]| {
        let output = place.command(words).env("XDG_STATE_HOME", place.path("other")).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let to = ["--controller", &controller.url];
    for words in [&["status"][..], &["login"], &["submit", document.to_str().unwrap()], &["cancel", "1"]] {
        let (code, said) = as_other(&[words, &to].concat());
        assert!(code == 3 && said.contains("nothing was sent"), "{words:?}: {code} {said}");
    }
    let (code, said) = as_other(&["driver", "--join", &controller.url, "--name", "spy"]);
    assert!(code == 3 && said.contains("tidemark token add"), "{code} {said}");

    // With a driver's token they are that driver, and no other.
    let token = place.tidemark(&["token", "add", "d1", "--role", "driver"]).stdout.trim().to_owned();
    let (code, said) = as_other(&["driver", "--join", &controller.url, "--name", "own", "--token", &token]);
    assert!(code == 3 && said.contains("`d1`"), "{code} {said}");
    let words = ["driver", "--join", &controller.url, "--name", "d1", "--token", &token];
    let mut other = place.command(&words);
    other.env("XDG_STATE_HOME", place.path("other"));
    let _d1 = Process::start(other);
    controller.wait_for_drivers(2);
    // The user's own drivers need nothing.
    let _d2 = controller.driver("d2", &[]);
    controller.wait_for_drivers(3);

    // Open to people, who have to know that nobody proves who that is; closed to drivers all the same.
    let elsewhere = Place::new();
    let open = Controller::start(&elsewhere, &["--open", "--no-driver"]);
    assert_eq!(as_other(&["status", "--controller", &open.url]).0, 3);
    assert_eq!(as_other(&["status", "--insecure", "--controller", &open.url]).0, 0);
    assert_eq!(as_other(&["driver", "--join", &open.url, "--name", "spy"]).0, 3);
    let _own = open.driver("own", &[]);
    open.wait_for_drivers(1);
}

#[test]
fn with_tls_and_tokens_nobody_comes_in_without() {
    let place = Place::new();
    let controller = Controller::start(&place, &["--secure", "--driver-name", "own"]);
    let said = controller.process.said();
    let fingerprint = said.split("sha256:").nth(1).unwrap().split(' ').next().unwrap();
    let trust = format!("sha256:{fingerprint}");
    let token = |role: &str| {
        let output = place.tidemark(&["token", "add", &format!("test-{role}"), "--role", role]);
        output.stdout.trim().to_owned()
    };
    let ask = |words: &[&str], token: &str, trust: &str| {
        let mut command =
            place.command(&[words, &["--controller", &controller.url, "--trust", trust]].concat());
        let output = command.env("TIDEMARK_TOKEN", token).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout),
        )
    };
    let (viewer, operator, driver) = (token("viewer"), token("operator"), token("driver"));
    // The driver that came with the controller has joined with a token of its own.
    wait("own driver", || ask(&["status"], &viewer, &trust).1.contains("own").then_some(()));

    assert_eq!(ask(&["status"], &viewer, "system").0, 3, "the certificate is not one of the system's");
    assert_eq!(ask(&["status"], &viewer, &format!("sha256:{}", "0".repeat(64))).0, 3);
    assert_eq!(ask(&["status"], "tm_o_wrong", &trust).0, 3);
    assert_eq!(ask(&["status"], "", &trust).0, 3);
    assert_eq!(ask(&["status"], &driver, &trust).0, 3, "a driver's token is for drivers");
    let document = place.write("none.xml", "<workload name=\"n\"><storage type=\"none\"/><workflow><workstage name=\"m\"><work name=\"w\" workers=\"1\" totalOps=\"10\"><operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=c(1)\"/></work></workstage></workflow></workload>");
    let submit = ["submit", document.to_str().unwrap()];
    assert_ne!(ask(&submit, &viewer, &trust).0, 0, "a viewer only looks");
    assert_eq!(ask(&submit, &operator, &trust).0, 0);
    let refused = place.tidemark(&[
        "driver",
        "--join",
        &controller.url,
        "--name",
        "x",
        "--trust",
        &trust,
        "--token",
        &viewer,
    ]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert_eq!(place.tidemark(&["token", "revoke", "test-operator"]).code, 0);
    wait("revocation", || (ask(&submit, &operator, &trust).0 == 3).then_some(()));
}

#[test]
fn a_controller_on_a_network_has_tls_and_leaves_no_tokens() {
    let place = Place::new();
    let refused = place.tidemark(&["serve", "--listen", "0.0.0.0:0", "--open", "--no-driver"]);
    assert!(
        refused.code == 3 && refused.stderr.contains("is reachable from other machines"),
        "{}",
        refused.stderr
    );
    let controller = Controller::at(&place, "0.0.0.0:0", &["--no-driver"]);
    let port: u16 = controller.url.strip_prefix("https://0.0.0.0:").unwrap().parse().unwrap();
    let operator = wait("the first token", || {
        controller.process.said().split_whitespace().find(|word| word.starts_with("tm_o_")).map(str::to_owned)
    });
    assert!(!place.path("state/tidemark/controllers").exists(), "tokens were left");
    let said = controller.process.said();
    let fingerprint = said.split("sha256:").nth(1).unwrap().split(' ').next().unwrap();
    let url = format!("https://127.0.0.1:{port}");
    let status = |token: &str, trust: &str| {
        let words = ["status", "--controller", &url, "--trust", trust];
        place.command(&words).env("TIDEMARK_TOKEN", token).output().unwrap().status.code()
    };
    let trust = format!("sha256:{fingerprint}");
    assert_eq!(status(&operator, &trust), Some(0));
    assert_eq!(status("", &trust), Some(3), "nobody is let in without a token");
    assert_eq!(status(&operator, &format!("sha256:{}", "0".repeat(64))), Some(3), "another certificate");
    // Without TLS there is no answer.
    let mut plain = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request =
        format!("GET /api/v1/openapi.json HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    plain.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
}

#[test]
fn documents_from_the_network_run_no_commands_and_read_no_files() {
    let place = Place::new();
    let secret = place.write("secret", "hunter2hunter2");
    let controller = Controller::start(&place, &[]);
    controller.wait_for_drivers(1);
    let refused = |name: &str, text: &str| {
        let path = place.write(name, text);
        let output =
            place.tidemark(&["submit", path.to_str().unwrap(), "--controller", &controller.url, "--watch"]);
        assert_ne!(output.code, 0, "{name}: {} {}", output.stdout, output.stderr);
        let said = output.stdout + &output.stderr;
        assert!(!said.contains("hunter2"), "{name}: {said}");
        said
    };
    let file = format!(
        "name: f\ntarget: {{kind: s3, endpoints: ['http://127.0.0.1:1'], access_key: k, secret_key_file: {}}}\nstages:\n- init: {{containers: 1-1}}\n",
        secret.display()
    );
    assert!(refused("file.yaml", &file).contains("secrets"));
    let variable = "name: f\ntarget: {kind: s3, endpoints: ['http://127.0.0.1:1'], access_key: k, secret_key: '${HOME}'}\nstages:\n- init: {containers: 1-1}\n";
    assert!(refused("variable.yaml", variable).contains("TIDEMARK_SECRET_"));
    let fio = "[a]\nrw=read\nsize=1m\nioengine=null\nexec_prerun=touch exploited\n";
    refused("job.fio", fio);
    let volume = format!(
        "name: b\ntarget: {{kind: file, path: {}, size: 1MiB}}\nstages:\n- prepare: {{}}\n",
        place.path("volume").display()
    );
    refused("block.yaml", &volume);
    assert!(!place.path("exploited").exists() && !place.path("volume").exists());
}

/// Sends a signal to a driver and to the process that carries its run out.
fn signal(process: &crate::common::fleet::Process, signal: &str) {
    let pid = process.child.id().to_string();
    let children = std::process::Command::new("pgrep").args(["-P", &pid]).output().unwrap();
    let children = String::from_utf8(children.stdout).unwrap();
    let all: Vec<&str> = [pid.as_str()].into_iter().chain(children.split_whitespace()).collect();
    assert_eq!(all.len(), 2, "a driver and its run: {all:?}");
    assert!(std::process::Command::new("kill").arg(signal).args(&all).status().unwrap().success());
}

#[test]
fn a_driver_that_stands_still_is_no_slow_storage() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    let frozen = controller.driver("frozen", &[]);
    let _other = controller.driver("other", &[]);
    controller.wait_for_drivers(2);
    let id = controller.submit(&timed(&server, 15, "drivers: {lost_after: 60s}\n"), &[]);
    wait("load", || (controller.submission(id)["stage"].as_str()?.ends_with("main")).then_some(()));
    std::thread::sleep(Duration::from_secs(2));
    let watch =
        Process::start(place.command(&["watch", &id.to_string(), "--json", "--controller", &controller.url]));
    signal(&frozen, "-STOP");
    // Those who look on see what the other does, and who is missing.
    wait("seconds without it", || watch.said().contains("\"missing\":[\"frozen\"]").then_some(()));
    signal(&frozen, "-CONT");
    let record = controller.run_of(&controller.wait_for_state(id, "completed"));
    assert!(!record.findings("generator-standstill").is_empty(), "{}", record.value["findings"]);
    assert_eq!(record.value["valid"], false);
}

#[test]
fn a_name_is_one_driver_s_only_and_one_that_is_ended_says_so() {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let controller = Controller::start(&place, &["--no-driver"]);
    let first = controller.driver("d", &[]);
    controller.wait_for_drivers(1);
    let id = controller.submit(&timed(&server, 60, "drivers: {lost_after: 60s}\n"), &[]);
    wait("load", || (controller.submission(id)["stage"].as_str()?.ends_with("main")).then_some(()));
    let second = place.tidemark(&["driver", "--join", &controller.url, "--name", "d"]);
    assert_eq!(second.code, 3, "{}", second.stderr);
    assert!(second.stderr.contains("already joined"), "{}", second.stderr);
    assert_eq!(controller.submission(id)["state"], "running", "the first one is left alone");
    signal(&first, "-TERM");
    let record = controller.run_of(&controller.wait_for_state(id, "failed"));
    let reason = record.stage("main")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("driver d was lost: its user stopped it"), "{reason}");
}
