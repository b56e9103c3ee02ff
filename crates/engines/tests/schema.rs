//! The schema and the reader know the same keys, and agree on examples.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

mod common;

use common::REGISTRY;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tidemark_plan::evaluation::{self, is_evaluation};
use tidemark_plan::yaml::{self, Environment, asked};

/// The schema of all documents.
fn schema() -> Value {
    tidemark_plan::schema::schema(&REGISTRY)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every document that there is: examples, those of the reference, and those of other tests.
fn documents() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "yaml"))
        .collect();
    files.extend(
        [
            "object/src/document/full.yaml",
            "block/src/document/block.yaml",
            "engines/tests/fixtures/full-evaluation.yaml",
            "engines/tests/fixtures/plain.yaml",
        ]
        .map(|path| root().join("crates").join(path)),
    );
    for path in files {
        all.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
    }
    let reference = std::fs::read_to_string(root().join("docs/document.md")).unwrap();
    let blocks = reference.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    all.extend(blocks.map(|block| ("docs/document.md".to_owned(), block.to_owned())));
    all.extend(REST.iter().map(|text| ("a test".to_owned(), (*text).to_owned())));
    all
}

/// Documents with what no other one has.
const REST: [&str; 4] = [
    "name: t\ntarget: {kind: mock, size: 1KB, delay: 1ms, errors: 1%}\nstages:\n- init: {containers: 1}\n",
    "name: t\ntarget: {kind: swift, endpoint: 'http://h', auth: {kind: keystone-v3, url: 'http://h/v3', user: u, \
     password: p, project: p, user_domain: d, project_domain: d, service: swift, region: r}}\nstages:\n\
     - init: {containers: 1}\n",
    "name: t\ntarget: {kind: swift, auth: {kind: keystone-v2, url: 'http://h/v2.0', user: u, password: p, tenant: \
     t}}\nstages:\n- init: {containers: 1}\n",
    "name: t\ntarget: {kind: swift, auth: {kind: token, token: t, storage_url: 'http://h/v1/a'}}\nstages:\n\
     - works:\n  - prepare: {containers: 1, objects: 1-4, directory: /data, part: 5MiB}\n  \
     - load: {total_bytes: 1GB, operations: [{delete_container: {containers: 1, empty: true}}, {write_local: \
     {containers: 1, objects: 1, sizes: 1KB, directory: /x}}]}\n",
];

/// Reads a document, whatever comes of it.
fn read(text: &str) {
    let environment = Environment {
        registry: &REGISTRY,
        variable: &|name| {
            let value = if name.ends_with("HOST") { "10.0.0.1" } else { "http://10.0.0.1" };
            Some(value.to_owned())
        },
        file: &|_: &Path| Ok("from a file".to_owned()),
        document: &|path: &Path| std::fs::read_to_string(path),
        device_size: &|_: &Path| Ok(1 << 40),
    };
    let directory = match text.contains("small.xml") {
        true => root().join("crates/engines/tests/fixtures"),
        false => root().join("examples"),
    };
    let outcome = match is_evaluation(text, &REGISTRY) {
        true => evaluation::read(text, &directory, &environment).map(drop),
        false => yaml::read(text, &environment).map(drop),
    };
    outcome.unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"));
}

/// A document as JSON, as editors see it.
fn json(text: &str) -> Value {
    asked::json(text)
}

/// The schema's name of a mapping that messages call so.
fn name(what: &str) -> String {
    match what {
        "the document" | "the load" => "workload".to_owned(),
        "the evaluation" => "evaluation".to_owned(),
        "a stage" => "stage".to_owned(),
        "an arm" | "the arm" => "arm".to_owned(),
        "a load" => "evaluation_load".to_owned(),
        "a point of `rate`" => "rate_point".to_owned(),
        _ if what.starts_with("the operation ") => "operation".to_owned(),
        _ => what.trim_matches('`').to_owned(),
    }
}

#[test]
fn every_document_is_as_the_schema_says() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    for (name, text) in documents() {
        let errors: Vec<String> = validator
            .iter_errors(&json(&text))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}\n{text}");
    }
}

#[test]
fn mistakes_are_not_as_the_schema_says() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema()));
    for text in [
        "name: t\n",
        "name: t\nstages: [{lod: {}}]\n",
        "name: t\nstages: [{load: {for: 1s, wokers: 3}}]\n",
        "name: t\ntarget: {kind: s4}\nstages: [{pause: 1s}]\n",
        "name: t\narms: []\nloads: []\n",
        "name: t\narms: [{name: a}]\nloads: [{name: l}]\n",
        "name: t\narms: [{name: a}]\nloads: [{name: l, document: x}]\norder: sorted\n",
        "name: t\narms: [{name: a}]\nloads: [{name: l, document: x}]\nlevels: {workers: 0}\n",
    ] {
        assert!(!validator.is_valid(&json(text)), "{text}");
    }
}

#[test]
fn the_schema_has_the_keys_that_the_reader_asks_for_and_no_others() {
    documents().iter().for_each(|(_, text)| read(text));
    let asked: BTreeSet<(String, String)> =
        asked::all().into_iter().map(|(what, key)| (name(&what), key.to_owned())).collect();
    let schema = schema();
    let mut known = BTreeSet::new();
    for (name, table) in schema["$defs"].as_object().unwrap() {
        let table = table["anyOf"].as_array().map_or(table, |forms| &forms[1]);
        known.extend(table["properties"].as_object().unwrap().keys().map(|key| (name.clone(), key.clone())));
    }
    let missing: Vec<_> = asked.difference(&known).collect();
    let strange: Vec<_> = known.difference(&asked).collect();
    assert!(
        missing.is_empty() && strange.is_empty(),
        "not in the schema: {missing:?}\nnot read: {strange:?}"
    );
}

#[test]
fn every_key_is_described() {
    let schema = schema();
    for (name, table) in schema["$defs"].as_object().unwrap() {
        let table = table["anyOf"].as_array().map_or(table, |forms| &forms[1]);
        for (key, value) in table["properties"].as_object().unwrap() {
            assert!(value["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}.{key}");
        }
    }
}
