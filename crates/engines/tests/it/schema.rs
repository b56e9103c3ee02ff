//! The schema and the reference are made of what the readers declare, and agree with examples.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::REGISTRY;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tidemark_keys::Absent;
use tidemark_keys::tree::{self, Node};
use tidemark_plan::evaluation::{self, is_evaluation};
use tidemark_plan::schema::reference;
use tidemark_plan::yaml::{self, Environment};

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
const REST: [&str; 5] = [
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
    "name: t\narms:\n- {name: a, target: embedded, recover: sleep 1}\nloads:\n- name: l\n  stages:\n  - load: {workers: '${workers}', for: 1s, containers: 1, \
     operations: [{get: {objects: 1, weight: '${weight}'}}]}\ntune:\n  objective: [price, p99]\n  price: {hour: 1, each: {workers: 0.5}}\n  budget: 30m\n  memory: 2GiB\n  recovery: 1m\n  settings:\n  \
     - {name: workers, integer: 1-8, baseline: 1}\n  - {name: weight, integer: 1-9, baseline: 1}\n",
];

/// Reads a document, which must be right.
fn read(text: &str) {
    let environment = Environment {
        registry: &REGISTRY,
        variable: &|name| {
            let value = match name {
                name if name.ends_with("HOST") => "10.0.0.1",
                name if name.ends_with("CATALOG") || name.ends_with("BUCKET") => "lake",
                _ => "http://10.0.0.1",
            };
            Some(value.to_owned())
        },
        file: &|_: &Path| Ok("from a file".to_owned()),
        bound: &|_| None,
        document: &|path: &Path| match path.extension().is_some_and(|extension| extension == "sql") {
            true => Ok("SELECT 1".to_owned()),
            false => std::fs::read_to_string(path),
        },
        device_size: &|_: &Path| Ok(1 << 40),
        waited_for: &|| true,
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

/// A document as JSON, as editors see it: numbers and flags where YAML 1.2 has them.
fn json(text: &str) -> Value {
    tree::parse(text).map_or(Value::Null, |root| value(&root))
}

fn value(node: &Node) -> Value {
    match &node.value {
        tree::Value::Nothing => Value::Null,
        tree::Value::Scalar(text) if matches!(text.as_str(), "true" | "false") => (text == "true").into(),
        tree::Value::Scalar(text) => match (text.parse::<u64>(), text.parse::<f64>()) {
            (Ok(whole), _) => whole.into(),
            (_, Ok(number)) => number.into(),
            _ => text.as_str().into(),
        },
        tree::Value::List(nodes) => nodes.iter().map(value).collect(),
        tree::Value::Map(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), value(&entry.node))).collect()
        }
    }
}

#[test]
fn every_document_is_read() {
    documents().iter().for_each(|(_, text)| read(text));
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
        "name: t\nstages: [{load: {for: 1s, workers: many}}]\n",
        "name: t\nstages: [{load: {for: 1s, workers: 'x${workers}'}}]\n",
    ] {
        assert!(!validator.is_valid(&json(text)), "{text}");
    }
}

#[test]
fn every_key_is_described() {
    let schema = schema();
    for (name, table) in schema["$defs"].as_object().unwrap() {
        for (key, value) in table["properties"].as_object().into_iter().flatten() {
            assert!(value["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}.{key}");
        }
    }
}

#[test]
fn defaults_are_values_that_their_keys_take() {
    for key in reference(&REGISTRY).declared() {
        if let Absent::Default(text) = key.absent {
            assert!(key.shape.check(text).is_ok(), "`{}`: {text}", key.name);
        }
    }
}

/// After a change of declarations: `TIDEMARK_UPDATE=1 cargo test -p tidemark-engines the_reference`.
#[test]
fn the_reference_has_the_keys_that_are_declared() {
    let path = root().join("docs/document.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let renewed = reference(&REGISTRY).renew(&text).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        return std::fs::write(&path, &renewed).unwrap();
    }
    assert!(text == renewed, "docs/document.md is stale; renew it with TIDEMARK_UPDATE=1");
}
