//! Documents of all formats: told apart by their content, read in an environment that gives nothing else.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::{REGISTRY, read};
use std::path::Path;
use tidemark_plan::diagnostic::Diagnostic;
use tidemark_plan::document::{self, Document};
use tidemark_plan::yaml::Environment;

#[test]
fn formats_are_told_apart_by_content() {
    let name = |text: &str| REGISTRY.format_of(text).map(|format| format.name());
    for text in ["<workload/>", "\u{feff}<?xml version=\"1.0\"?>", " \r\n\t<!-- c --><workload/>"] {
        assert_eq!(name(text), Some("COSBench XML"), "{text}");
    }
    assert_eq!(name("name: a <b>"), None);
    assert_eq!(name("# c\n\n ; d\n[job]\nrw=read"), Some("fio job file"));
}

/// Reads a document in an environment that refuses and records every request.
fn refused(text: &str, directory: &Path) -> (Result<Document, Vec<Diagnostic>>, Vec<String>) {
    let asked = std::cell::RefCell::new(Vec::new());
    let refuse = |what: &str, path: &Path| {
        asked.borrow_mut().push(format!("{what} {}", path.display()));
        std::io::Error::other("nothing is read here")
    };
    let environment = Environment {
        registry: &REGISTRY,
        variable: &|name| {
            asked.borrow_mut().push(format!("variable {name}"));
            None
        },
        file: &|path| Err(refuse("file", path)),
        bound: &|_| None,
        document: &|path| Err(refuse("document", path)),
        device_size: &|path| Err(refuse("device", path)),
        waited_for: &|| true,
    };
    let read = document::open(text, directory, &environment);
    (read, asked.into_inner())
}

#[test]
fn nothing_is_touched_but_what_the_environment_gives() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let hidden = "name: hidden-content\nstages: [{pause: 1s}]\n";
    for name in ["key", "load.yaml", "load.xml"] {
        std::fs::write(place.path().join(name), hidden).unwrap();
    }
    let load = "\nstages:\n- load: {pattern: randread, block_size: 4KiB, for: 60s}\n";
    let objects = "\nstages:\n- init: {containers: 1}\n";
    let s3 = format!(
        "target: {{kind: s3, endpoint: 'http://h', access_key: a, secret_key_file: {}}}",
        path("key")
    );
    let cases = [
        (format!("name: t\n{s3}{objects}"), vec![format!("file {}", path("key"))]),
        (
            format!("name: t\ntarget: {{kind: device, path: {}}}{load}", path("key")),
            vec![format!("device {}", path("key"))],
        ),
        (
            "name: t\narms: [{name: a}]\nloads: [{name: l, document: load.yaml}, {name: m, document: ./load.xml}]\n".into(),
            vec![format!("document {}", path("load.yaml")), format!("document {}", path("./load.xml"))],
        ),
        (
            format!("name: t\narms: [{{name: a, {s3}}}]\nloads: [{{name: l, document: {}}}]\n", path("key")),
            vec![format!("document {}", path("key"))],
        ),
    ];
    for (text, wanted) in cases {
        let (read, asked) = refused(&text, place.path());
        assert_eq!(asked, wanted, "{text}");
        let told = format!("{:?}", read.expect_err(&text));
        assert!(told.contains("nothing is read here") && !told.contains("hidden-content"), "{told}");
    }
    let variable = "target: {kind: s3, endpoint: '${PATH}', access_key: a, secret_key: b}";
    let (read, asked) = refused(&format!("name: t\n{variable}{objects}"), place.path());
    assert!(format!("{:?}", read.unwrap_err()).contains("the environment variable PATH is not set"));
    assert_eq!(asked, ["variable PATH"]);
    let xml = "<workload name=\"t\"><storage type=\"s3\" config=\"accesskey=${PATH};secretkey=b;endpoint=http://h\"/>\
               <workflow><workstage name=\"a\"><work type=\"init\" workers=\"1\" config=\"containers=r(1,2)\"/>\
               </workstage></workflow></workload>";
    let (read, asked) = refused(xml, place.path());
    assert!(
        read.is_err() && asked.iter().all(|asked| asked == "variable PATH") && !asked.is_empty(),
        "{asked:?}"
    );
}

#[test]
fn examples_ask_for_nothing_that_they_do_not_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for directory in
        [root.join("../../examples"), root.join("tests/fixtures"), root.join("../cosbench/tests/fixtures")]
    {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for asked in refused(&text, &directory).1 {
                let (_, name) = asked.split_once(' ').unwrap();
                let name = name.strip_prefix(&format!("{}/", directory.display())).unwrap_or(name);
                let told = format!("{} asks for {name}", path.display());
                let lent = REGISTRY
                    .provisioners()
                    .any(|kind| kind.variables().iter().any(|(known, _)| *known == name));
                assert!(text.contains(name) || (lent && text.contains("document:")), "{told}");
            }
        }
    }
}

#[test]
fn what_is_no_document_is_refused() {
    assert_eq!(read(" \n").unwrap_err()[0].message, "the document is empty");
    let large = format!("<workload name=\"{}\"/>", "x".repeat(8 << 20));
    assert!(read(&large).unwrap_err()[0].message.ends_with("bytes long"));
}

#[test]
fn after_an_error_in_a_target_nothing_else_puzzles() {
    let block = |target: &str| {
        let text = format!(
            "name: t\n{target}stages:\n- prepare: {{}}\n- load: {{for: 1s, pattern: randread, block_size: 4KiB, depth: 8, clients: 2}}\n"
        );
        let errors = read(&text).unwrap_err();
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
    };
    assert_eq!(block("target: {kind: fiel, path: /mnt/v, size: 1GiB}\n"), ["`kind`: 'fiel' is unknown"]);
    assert_eq!(block(""), ["the document has no `target`"]);
    // Keys that show their engine are read on, so that one pass shows all errors.
    let object = "name: t\ntarget: {kind: s4}\nstages:\n- load: {for: 1s, wrokers: 2, operations: [{get: {containers: 1, objects: 1}}]}\n";
    let errors: Vec<_> = read(object).unwrap_err().into_iter().map(|error| error.message).collect();
    assert_eq!(errors, ["`kind`: 's4' is unknown", "`wrokers` is not a key of `load`"]);
    // A stage's wrong target does not fall back on the document's.
    let inner = "name: t\ntarget: mock\nstages:\n- target: {kind: fiel, path: /mnt/v}\n  load: {for: 1s, pattern: randread, block_size: 4KiB}\n";
    let errors: Vec<_> = read(inner).unwrap_err().into_iter().map(|error| error.message).collect();
    assert_eq!(errors, ["`kind`: 'fiel' is unknown"]);
}

#[test]
fn sections_that_an_engine_does_not_know_are_said_to_have_no_effect() {
    let target = "target: {kind: postgres, host: 127.0.0.1, user: u, database: d}";
    let load = "workload: pgbench/tpcb-like, for: 1s";
    let own = format!("name: t\n{target}\nstages:\n- load: {{{load}, content: {{verify: true}}}}\n");
    let errors: Vec<_> = read(&own).unwrap_err().into_iter().map(|error| error.message).collect();
    assert_eq!(errors, ["`content` has no effect on databases"]);
    let above = format!(
        "name: t\n{target}\ncontent: {{verify: true}}\nstages:\n- load: {{{load}}}\n- load: {{{load}}}\n"
    );
    let warnings: Vec<_> = read(&above).unwrap().warnings.into_iter().map(|remark| remark.message).collect();
    assert_eq!(warnings, ["`content` has no effect on databases"]);
}
