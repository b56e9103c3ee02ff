//! Objects that an independent client puts into a bucket, read by `existing`.

use super::fleet::Controller;
use super::{Place, Record};
use std::process::Command;

/// Objects under the prefix `in/`: as many as there are powers of two to 2^15, which are their sizes. A sum of 16 of these sizes is
/// 65 535 only if each occurs once.
pub const OBJECTS: u64 = 16;

/// A bucket of an S3 server.
pub struct Bucket<'a> {
    pub endpoint: &'a str,
    pub access_key: &'a str,
    pub secret_key: &'a str,
}

impl Bucket<'_> {
    /// Makes the bucket and puts the objects there, and one beside them, with curl.
    pub fn fill(&self, place: &Place) {
        self.curl(&["-X", "PUT"], "");
        let beside = place.write("beside", "xyz");
        self.curl(&["-T", beside.to_str().unwrap()], "/out/beside");
        for power in 0..OBJECTS {
            let file = place.write("content", &"x".repeat(1 << power));
            self.curl(&["-T", file.to_str().unwrap()], &format!("/in/a%20key%20{power}"));
        }
    }

    /// The names and contents that the bucket has, as curl sees them.
    pub fn listed(&self) -> String {
        self.curl(&[], "")
    }

    fn curl(&self, words: &[&str], path: &str) -> String {
        let user = format!("{}:{}", self.access_key, self.secret_key);
        let output = Command::new("curl")
            .args(["-sS", "--fail-with-body", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &user])
            .args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"])
            .args(words)
            .arg(format!("{}/photos{path}", self.endpoint))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?} {path}: {said} {:?}", output.stderr);
        said
    }

    /// The target of documents.
    pub fn target(&self) -> String {
        let Self { endpoint, access_key, secret_key } = self;
        format!("{{kind: s3, endpoints: ['{endpoint}'], access_key: {access_key}, secret_key: {secret_key}}}")
    }
}

/// A load over what `existing` names; `rest` are further keys of the load.
pub fn document(target: &str, existing: &str, rest: &str) -> String {
    format!(
        "name: existing\nseed: 7\ntarget: {target}\nstages:\n- name: main\n  load:\n    workers: 6\n    existing: {{{existing}}}\n{rest}"
    )
}

/// Reads each object once, and then all at random, alone and on three drivers.
pub fn alone_and_together(place: &Place, target: &str) {
    let once = "    total_operations: 16\n    operations: [get: {objects: 'r(1,16)'}]\n";
    let random = "    total_operations: 600\n    operations: [get: {}, head: {}]\n";
    let existing = "container: photos, prefix: in/";
    let [once, random] = [once, random].map(|rest| document(target, existing, rest));
    let controller = Controller::start(place, &["--no-driver"]);
    let _drivers: Vec<_> = ["a", "b", "c"].map(|name| controller.driver(name, &[])).into();
    controller.wait_for_drivers(3);
    let together = |text: &str| {
        let id = controller.submit(text, &[]);
        controller.run_of(&controller.wait_for_state(id, "completed"))
    };
    for (how, record) in
        [("alone", place.run(&place.write("once.yaml", &once))), ("together", together(&once))]
    {
        let get = record.operation("main", "get");
        assert_eq!((&get["ok"], &get["failed"]), (&16.into(), &0.into()), "{how}: {get} {}", record.stderr);
        assert_eq!(get["bytes"], 65_535, "{how}: every object once, and none beside them");
        assert_eq!(get["unverified"].as_u64().unwrap_or(0), 0, "{how}: {get}");
        says(&record, "16 existing objects that begin with 'in/', 65.5 kB");
    }
    for (how, record) in
        [("alone", place.run(&place.write("random.yaml", &random))), ("together", together(&random))]
    {
        let [get, head] = ["get", "head"].map(|label| record.operation("main", label));
        let sum = |key: &str| get[key].as_u64().unwrap() + head[key].as_u64().unwrap();
        assert_eq!((sum("ok"), sum("failed")), (600, 0), "{how}: {get} {head}");
        assert!(record.value.to_string().contains("objects=u(1,16)"), "{how}: {}", record.value);
    }
}

/// Checks that the record says it, among the targets.
pub fn says(record: &Record, text: &str) {
    let targets = record.value["provenance"]["targets"].to_string();
    assert!(targets.contains(text), "{targets}");
}
