//! The controller's HTTP side as others use it: COSBench's command sequence with curl, and a fuzz run from the OpenAPI
//! document.

use crate::common::Place;
use crate::common::fleet::{Controller, wait};
use std::path::{Path, PathBuf};
use std::process::Command;

fn workload(runtime: u32) -> String {
    format!(
        "<workload name=\"by-curl\"><storage type=\"none\"/><workflow><workstage name=\"main\">\
         <work name=\"main\" workers=\"2\" runtime=\"{runtime}\">\
         <operation type=\"read\" ratio=\"100\" config=\"containers=c(1);objects=u(1,9)\"/>\
         </work></workstage></workflow></workload>"
    )
}

fn curl(words: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "--max-time", "20"]).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What `cli.sh submit`, `info` and `cancel` send, word for word.
#[test]
fn cosbench_s_scripts_find_what_they_know() {
    tidemark_testing::needs!(&["curl"]);
    let place = Place::new();
    let controller = Controller::start(&place, &["--open"]);
    controller.wait_for_drivers(1);
    let address = |action: &str| format!("{}/controller/cli/{action}.action", controller.url);
    let submit = |runtime| {
        let file = place.write("workload.xml", &workload(runtime));
        let reply = curl(&["-F", &format!("config=@{}", file.display()), &address("submit")]);
        let id =
            reply.trim().strip_prefix("Accepted with ID: ").unwrap_or_else(|| panic!("{reply}")).to_owned();
        assert!(id.starts_with('w') && id[1..].parse::<u64>().is_ok(), "{reply}");
        id
    };
    let state = |id: &str| {
        let reply = curl(&["-d", &format!("id={id}"), &address("workload")]);
        let fields: Vec<_> = reply.trim().split('\t').map(str::to_owned).collect();
        assert_eq!((fields.len(), fields[0].as_str()), (3, id), "{reply}");
        fields[2].clone()
    };
    let (first, second, third) = (submit(30), submit(1), submit(1));
    wait("PROCESSING", || (state(&first) == "PROCESSING").then_some(()));
    assert_eq!(state(&second), "QUEUING");
    let index = curl(&[&address("index")]);
    assert!(index.contains("Drivers:") && index.contains("Total: 1 drivers"), "{index}");
    assert!(index.contains("Active Workloads:") && index.contains(&format!("{first}\t")), "{index}");
    let cancelled = curl(&["-d", &format!("id={first}"), &address("cancel")]);
    assert!(cancelled.contains(&first), "{cancelled}");
    wait("CANCELLED", || (state(&first) == "CANCELLED").then_some(()));
    for id in [second, third] {
        wait("FINISHED", || (state(&id) == "FINISHED").then_some(()));
    }
    let broken = place.write("broken.xml", "<workload name=\"x\"><workflow>");
    let reply = curl(&["-F", &format!("config=@{}", broken.display()), &address("submit")]);
    assert!(!reply.contains("Accepted"), "{reply}");
}

/// A Python program that `scripts/setup-tests.sh` installs.
fn python_program(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    target.join("e2e/python/bin").join(name)
}

/// The description is what the specification says, as a program of others understands it, and that program does find something.
#[test]
#[ignore = "needs openapi-spec-validator, which scripts/setup-tests.sh installs; `make test` runs it"]
fn the_description_passes_a_validator() {
    let validator = python_program("openapi-spec-validator");
    if !validator.is_file() {
        return tidemark_testing::skip("openapi-spec-validator cannot be found; `make setup` installs it");
    }
    let place = Place::new();
    let check = |document: &str| {
        let file = place.write("openapi.json", document);
        let output = Command::new(&validator).arg(file).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let description = include_str!("../../../serve/openapi.json");
    let (valid, said) = check(description);
    assert!(valid, "{said}");
    let twice = description.replace("\"operationId\": \"list_runs\"", "\"operationId\": \"get_run\"");
    let undescribed = description.replacen("\"description\": \"The reply\"", "\"x-description\": \"\"", 1);
    for broken in [twice, undescribed] {
        assert_ne!(broken, description);
        assert!(!check(&broken).0, "a defect has to be noticed");
    }
}

/// Requests made from the API's own description, right ones and wrong ones: none may end in a server error or in
/// something that the description does not have, and the controller must be well afterwards.
#[test]
#[ignore = "needs schemathesis, which scripts/setup-tests.sh installs; `make test` runs it"]
fn a_fuzz_run_from_the_description_finds_nothing() {
    if !python_program("schemathesis").is_file() {
        return tidemark_testing::skip("schemathesis cannot be found; `make setup` installs it");
    }
    let place = Place::new();
    let mut controller = Controller::start(&place, &["--open"]);
    controller.wait_for_drivers(1);
    let id = controller.submit(&workload(1), &[]);
    controller.wait_for_state(id, "completed");
    let output = Command::new(python_program("schemathesis"))
        .current_dir(place.directory.path())
        .args(["run", &format!("{}/api/v1/openapi.json", controller.url)])
        .args([
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        ])
        .args(["--rate-limit", "40/s", "--max-examples", "25", "--seed", "7", "--request-timeout", "20"])
        // Streams and upgrades do not end.
        .args(["--exclude-path", "/api/v1/events", "--exclude-path", "/api/v1/link"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    eprintln!("{said}");
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    assert!(controller.process.child.try_wait().unwrap().is_none(), "it must not have ended");
    let id = controller.submit(&workload(1), &["--priority", "100"]);
    controller.wait_for_state(id, "completed");
}
