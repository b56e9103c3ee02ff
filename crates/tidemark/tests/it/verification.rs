//! What the built binary says of the content that it read: what was compared counts, and nobody is accused of what
//! nobody knows.

use crate::common::{Place, Record};
use serde_json::{Value, json};
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};

fn server() -> EmbeddedServer {
    EmbeddedServer::start(EmbeddedOptions::default()).unwrap()
}

/// A COSBench document: containers and 20 objects made with the settings `prepare`, or objects read 400 times with `read`.
fn cosbench(server: &EmbeddedServer, prepare: Option<&str>, read: Option<&str>) -> String {
    let (endpoint, key, secret) = (server.endpoint(), server.access_key(), server.secret_key());
    let prepare = prepare.map(|settings| {
        format!(
            r#"<workstage name="init"><work type="init" workers="1" config="containers=r(1,1)"/></workstage>
            <workstage name="prepare"><work type="prepare" workers="2" config="containers=r(1,1);objects=r(1,20);{settings}"/></workstage>"#
        )
    });
    let read = read.map(|settings| {
        format!(
            r#"<workstage name="main"><work name="main" workers="4" totalOps="400">
            <operation type="read" ratio="100" config="containers=c(1);objects=s(1,20);{settings}"/></work></workstage>"#
        )
    });
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
        <workload name="hashes" config="seed=5">
        <storage type="s3" config="accesskey={key};secretkey={secret};endpoint={endpoint};path_style_access=true"/>
        <workflow>{}{}</workflow></workload>"#,
        prepare.unwrap_or_default(),
        read.unwrap_or_default()
    )
}

/// A YAML document of these stages.
fn yaml(server: &EmbeddedServer, seed: u64, stages: &str) -> String {
    let (endpoint, key, secret) = (server.endpoint(), server.access_key(), server.secret_key());
    format!(
        "name: contents\nseed: {seed}\ntarget:\n  kind: s3\n  endpoints: [{endpoint}]\n  access_key: {key}\n  secret_key: \
         {secret}\ncontent: {{verify: true}}\nstages:\n{stages}"
    )
}

const FILL: &str =
    "  - init: {containers: 1-1}\n  - prepare: {containers: 1-1, objects: 1-20, sizes: 64KiB}\n";

fn reading(operation: &str) -> String {
    format!(
        "  - name: main\n    load:\n      workers: 4\n      total_operations: 400\n      containers: 1-1\n      operations:\n        \
         - {operation}\n"
    )
}

/// What became of the reads of the main stage: ok, verified, not checkable, faults.
fn reads(record: &Record) -> (u64, u64, Value, Value) {
    let operation = &record.stage("main")["works"][0]["operations"][0];
    let count = |field: &str| operation[field].as_u64().unwrap();
    (count("ok"), count("verified"), operation["unchecked"].clone(), operation["faults"].clone())
}

#[test]
fn hash_check_of_objects_too_small_for_a_hash_is_no_proof() {
    let (place, server) = (Place::new(), server());
    let fill = place.write("fill.xml", &cosbench(&server, Some("sizes=c(30)B;hashCheck=true"), None));
    assert_eq!(place.run(&fill).state(), "completed");
    let read = place.write("read.xml", &cosbench(&server, None, Some("hashCheck=true")));
    let whole = place.run(&read);
    assert_eq!(reads(&whole), (400, 400, json!({}), json!({})), "they are those that Tidemark writes");
    for object in 1..=10 {
        server.faults().corrupt("mycontainers1", &format!("myobjects{object}"), 10).unwrap();
    }
    let half = place.run(&read);
    assert_eq!(reads(&half), (200, 200, json!({}), json!({"wrong_content": 200})));
    assert_eq!((half.findings("verified").len(), half.findings("wrong-data").len()), (0, 1));
    assert_eq!(half.code, 1);

    // Objects of another writer: 30 bytes carry nothing that could be checked.
    let others = yaml(
        &server,
        77,
        "  - init: {containers: 1-1}\n  - prepare: {containers: 1-1, objects: 1-20, sizes: 30B}\n",
    );
    assert_eq!(place.run(&place.write("others.yaml", &others)).state(), "completed");
    let foreign = place.run(&read);
    assert_eq!(reads(&foreign), (400, 0, json!({"too_short": 400}), json!({})));
    let told = foreign.findings("not-verified");
    assert_eq!(
        (told.len(), told[0]["severity"].as_str(), foreign.findings("verified").len()),
        (1, Some("warning"), 0)
    );
}

#[test]
fn native_verification_of_everything_is_proven_and_said() {
    let (place, server) = (Place::new(), server());
    let document =
        place.write("all.yaml", &yaml(&server, 5, &[FILL, &reading("get: {objects: \"r(1,20)\"}")].concat()));
    let record = place.run(&document);
    assert_eq!(reads(&record), (400, 400, json!({}), json!({})));
    let output = place.tidemark(&["run", document.to_str().unwrap()]);
    let proven = output.stdout.lines().find(|line| line.contains("proven"));
    let proven = proven.unwrap_or_else(|| panic!("nothing is proven: {}", output.stdout));
    assert!(proven.contains("all 400 successful \"get\" operations were verified"), "{proven}");
    let report = place.tidemark(&["report", "last", "--format", "md"]).stdout;
    assert!(report.contains("400 of 400 verified"), "{report}");
    let table = place.tidemark(&["report", "last", "--format", "csv"]).stdout;
    assert!(table.lines().next().unwrap().contains(",verified,unchecked"), "{table}");

    let parts = reading("get: {objects: \"r(1,20)\", range: {length: 8KiB, object_size: 64KiB}}");
    let ranged = place.run(&place.write("parts.yaml", &yaml(&server, 5, &parts)));
    assert_eq!(reads(&ranged), (400, 400, json!({}), json!({})));
}

#[test]
fn a_storage_that_keeps_nothing_proves_nothing() {
    let place = Place::new();
    let stages = reading("get: {objects: \"r(1,20)\"}");
    let document =
        format!("name: contents\ntarget: {{kind: mock}}\ncontent: {{verify: true}}\nstages:\n{stages}");
    let record = place.run(&place.write("mock.yaml", &document));
    assert_eq!(reads(&record), (400, 0, json!({"no_content": 400}), json!({})));
    assert_eq!((record.findings("verified").len(), record.findings("not-verified").len()), (0, 1));
}

#[test]
fn hash_check_of_objects_that_were_written_without_it_accuses_nobody() {
    let (place, server) = (Place::new(), server());
    let document = cosbench(&server, Some("sizes=c(64)KB"), Some("hashCheck=true"));
    let record = place.run(&place.write("mixed.xml", &document));
    assert_eq!(
        reads(&record),
        (400, 400, json!({}), json!({})),
        "it is known what Tidemark writes without a hash"
    );
    assert_eq!((record.state(), record.findings("wrong-data").len()), ("completed", 0));

    let fill = yaml(&server, 77, FILL);
    assert_eq!(place.run(&place.write("others.yaml", &fill)).state(), "completed");
    let read = place.write("read.xml", &cosbench(&server, None, Some("hashCheck=true")));
    let foreign = place.run(&read);
    assert_eq!(reads(&foreign), (400, 0, json!({"unknown_origin": 400}), json!({})));
    assert_eq!((foreign.state(), foreign.findings("wrong-data").len()), ("completed", 0));
    let told = foreign.findings("not-verified");
    assert_eq!((told.len(), told[0]["severity"].as_str()), (1, Some("warning")));
    // Natively, with another seed than they were written with: the same.
    let native =
        place.run(&place.write("read.yaml", &yaml(&server, 5, &reading("get: {objects: \"r(1,20)\"}"))));
    assert_eq!(reads(&native), (400, 0, json!({"unknown_origin": 400}), json!({})));
}

#[test]
fn copies_are_verified_as_what_they_were_copied_from() {
    let (place, server) = (Place::new(), server());
    let copy =
        reading("copy: {objects: \"s(1,20)\"}").replace("name: main", "name: copy").replace("400", "20");
    let read = reading("get: {objects: \"r(1,20)\", naming: {object_suffix: \"-copy\"}}");
    let filled = place.run(&place.write("copy.yaml", &yaml(&server, 5, &[FILL, &copy, &read].concat())));
    assert_eq!(reads(&filled), (400, 400, json!({}), json!({})), "{}", filled.stderr);
    server.faults().corrupt("mycontainers1", "myobjects7-copy", 40_000).unwrap();
    let damaged = place.run(&place.write("read.yaml", &yaml(&server, 5, &read)));
    assert_eq!(reads(&damaged), (380, 380, json!({}), json!({"wrong_content": 20})));
}
