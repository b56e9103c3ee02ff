//! The command line itself: documents checked, refused, explained; pages and completions generated.

use crate::common::{Output, Place, whitepaper};
use tidemark_fleet::protocol::VERSION;

#[test]
fn check_says_what_will_happen_and_does_nothing() {
    let place = Place::new();
    let storage = r#"<storage type="s3" config="accesskey=a;secretkey=b;endpoint=http://127.0.0.1:9"/>"#;
    let document = place.write("wp.xml", &whitepaper("", storage, 20));
    let output = place.tidemark(&["check", document.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for sign in ["prepare", "main", "200", "32"] {
        assert!(output.stdout.contains(sign), "{sign} is missing: {}", output.stdout);
    }
    let output = place.tidemark(&["check", document.to_str().unwrap(), "--json"]);
    let forecast: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(forecast["stages"].as_array().unwrap().len(), 5);
}

#[test]
fn a_bad_document_is_explained_at_its_line() {
    let place = Place::new();
    let document = place.write("bad.xml", &whitepaper("", "<storage type=\"mock\"/>", 5).replace("70", "71"));
    let output = place.tidemark(&["run", document.to_str().unwrap()]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("101") && output.stderr.contains("bad.xml:"), "{}", output.stderr);

    let placeholders = whitepaper(
        "",
        "<storage type=\"s3\" config=\"accesskey=<accesskey>;secretkey=<scretkey>;endpoint=<endpoint>\"/>",
        5,
    );
    let document = place.write("placeholder.xml", &placeholders);
    let output = place.tidemark(&["check", document.to_str().unwrap()]);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("<accesskey>") && output.stderr.contains("placeholder.xml:4"),
        "{}",
        output.stderr
    );

    let document =
        place.write("bad.yaml", "name: x\ntarget:\n  kind: s3\n  endpoint: http://127.0.0.1:1\nstagez: []\n");
    let output = place.tidemark(&["check", document.to_str().unwrap()]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("`stages`"), "the nearest known key is named: {}", output.stderr);

    let typo = whitepaper(
        "",
        "<storage type=\"s3\" config=\"accesskey=a;secretkey=hidethis;endpint=http://h\"/>",
        5,
    );
    let output = place.tidemark(&["check", place.write("typo.xml", &typo).to_str().unwrap()]);
    assert!(output.stderr.contains("endpint") && !output.stderr.contains("hidethis"), "{}", output.stderr);

    let output = place.tidemark(&["run", "no-such-file.xml"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("no-such-file.xml"), "{}", output.stderr);
}

#[test]
fn the_mock_workload_runs_to_its_end() {
    let place = Place::new();
    let storage = r#"<storage type="mock" config="delay=5"/>"#;
    let document = place.write("mock.xml", &whitepaper(r#"<auth type="mock"/>"#, storage, 2));
    let record = place.run(&document);
    assert_eq!((record.code, record.state()), (0, "completed"));
    let reads = record.operation("main", "read");
    let (ok, p50) =
        (reads["ok"].as_u64().unwrap(), reads["response"]["percentiles_ns"]["p50"].as_u64().unwrap());
    assert!(ok > 1_000, "{ok}");
    assert!((5_000_000..15_000_000).contains(&p50), "the mock waits 5 ms: {p50}");
}

#[test]
fn a_load_that_is_steady_ends_its_window() {
    let place = Place::new();
    // Nothing is steadier than a storage that waits: its rate depends on the workers alone.
    let text = "name: w\nseed: 1\ntarget: {kind: mock, delay: 20ms}\nstages:\n- name: main\n  load: {workers: 8, for: 300s, \
        until_steady: 1s, containers: 1-2, operations: [get: {objects: 1-9}]}\n";
    let record = place.run(&place.write("steady.yaml", text));
    assert_eq!((record.code, record.state()), (0, "completed"), "{}", record.stderr);
    let work = &record.stage("main")["works"][0];
    assert_eq!(work["window_rounds"]["steady"], true, "{work}");
    let rounds = work["window_rounds"]["rounds"].as_array().unwrap().len() as u64;
    let window = work["window_end_ns"].as_u64().unwrap() - work["window_start_ns"].as_u64().unwrap();
    assert!((5..200).contains(&rounds) && window / 1_000_000_000 < 200, "{rounds} rounds, {window} ns");
}

#[test]
fn every_event_of_a_run_is_documented() {
    let place = Place::new();
    let documented = include_str!("../../../../docs/json.md");
    let load = "- name: main\n  load: {workers: 2, total_operations: 50, containers: 1-2, operations: [get: {objects: 1-9}]}\n";
    let run = format!("name: w\nseed: 1\ntarget: {{kind: mock, delay: 1ms}}\nstages:\n{load}");
    let arms = "arms:\n- {name: a, target: {kind: mock, delay: 1ms}}\n- {name: b, target: {kind: mock, delay: 2ms}}\n";
    let stages = load.replace('\n', "\n    ");
    let evaluation = format!("name: e\nseed: 1\n{arms}loads:\n- name: l\n  stages:\n    {stages}\n");
    let mut seen = std::collections::BTreeSet::new();
    for (name, text) in [("run.yaml", run), ("evaluation.yaml", evaluation)] {
        place.write(name, &text);
        let output = place.tidemark(&["run", name, "--json", "--no-report"]);
        for line in output.stdout.lines() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            seen.insert(event["event"].as_str().unwrap().to_owned());
        }
        assert!(!seen.is_empty(), "{}", output.stderr);
    }
    assert!(seen.contains("stage_ended") && seen.contains("evaluation") && seen.contains("run"), "{seen:?}");
    for event in seen {
        assert!(documented.contains(&format!("`{event}`")), "{event} is not in docs/json.md");
    }
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    let place = Place::new();
    let document = r#"<workload name="w"><storage type="none"/><workflow><workstage name="main">
        <work name="main" workers="7" totalOps="1000">
        <operation type="read" ratio="60" config="containers=u(1,9);objects=u(1,99)"/>
        <operation type="write" ratio="40" config="containers=u(1,9);objects=u(1,99);sizes=u(1,9)KB"/>
        </work></workstage></workflow></workload>"#;
    let document = place.write("seed.xml", document);
    let counts = |seed: &str, threads: &str| {
        let path = document.to_str().unwrap();
        let output = place.tidemark(&["run", path, "--json", "--seed", seed, "--threads", threads]);
        let record = crate::common::Record::from(&output);
        let (read, write) = (record.operation("main", "read"), record.operation("main", "write"));
        assert_eq!(read["ok"].as_u64().unwrap() + write["ok"].as_u64().unwrap(), 1000);
        (read["ok"].clone(), write["bytes"].clone())
    };
    assert_eq!(counts("1", "1"), counts("1", "2"));
    assert_ne!(counts("1", "1"), counts("2", "1"));
}

#[test]
fn pages_and_completions_are_generated() {
    let place = Place::new();
    assert_eq!(place.tidemark(&["man", "pages"]).code, 0);
    let page = std::fs::read_to_string(place.path("pages/tidemark-run.1")).unwrap();
    assert!(page.contains("cosbench\\-archive"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.tidemark(&["completions", shell]).stdout.contains("tidemark"));
    }
}

#[test]
fn a_store_that_cannot_be_written_is_explained() {
    let place = Place::new();
    let output = place.tidemark(&["--store", "/proc/nowhere/results.db", "runs"]);
    assert_eq!(output.code, 3);
    assert!(output.stderr.contains("/proc/nowhere"), "{}", output.stderr);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(&["schema"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot write to the standard output"), "{said}");
    assert_eq!(place.tidemark(&["schema"]).code, 0);
    for words in [&["--help"][..], &["--version"], &["run", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(9), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
        assert_eq!(place.tidemark(words).code, 0, "{words:?}");
    }
    let pages = place.tidemark(&["man", "/dev/full"]);
    assert!(pages.code == 9 && pages.stderr.contains("/dev/full"), "{}", pages.stderr);
}

#[test]
fn a_share_below_nothing_is_explained_as_a_share() {
    let place = Place::new();
    let told = place.tidemark(&["check", "some.yaml", "--noise", "-1%"]);
    assert!(told.code == 2 && told.stderr.contains("-1%"), "{}", told.stderr);
    assert!(!told.stderr.contains("-- -1%"), "{}", told.stderr);
}

#[test]
fn an_imported_failure_ends_as_a_failure() {
    let place = Place::new();
    // A job that failed: fio reports its error, and no operation.
    let job = r#"{"fio version": "fio-3.33", "timestamp": 1700000000, "jobs": [{"jobname": "j", "error": 5, "elapsed": 1,
        "job options": {"rw": "read", "bs": "4k"}, "read": {"io_bytes": 4096, "total_ios": 1, "runtime": 1000, "iops": 1.0,
        "clat_ns": {"min": 1000, "max": 1000, "mean": 1000.0, "stddev": 0.0}}, "write": {"total_ios": 0}}]}"#;
    place.write("failed.json", job);
    let imported = place.tidemark(&["import", "failed.json", "--format", "fio"]);
    assert!([1, 4].contains(&imported.code), "{}: {}{}", imported.code, imported.stdout, imported.stderr);
}

#[test]
fn tokens_are_made_only_where_somebody_can_use_them() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = place.tidemark(&["serve", "--secure", "--no-driver", "--listen", &address]);
    assert_eq!((refused.code, refused.stdout.as_str()), (3, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("another program listens there"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("token"), "{}", refused.stderr);
    // An address of another machine (RFC 5737).
    let foreign = place.tidemark(&["serve", "--no-driver", "--listen", "203.0.113.9:19088"]);
    assert_eq!((foreign.code, foreign.stdout.as_str()), (3, ""), "{}", foreign.stderr);
    assert!(foreign.stderr.contains("does not have that address"), "{}", foreign.stderr);
    assert!(!foreign.stderr.contains("token") && !place.path("state").exists(), "{}", foreign.stderr);
    for (wrong, right) in [("0.0.0.0", "0.0.0.0:19088"), ("::1", "[::1]:19088"), ("8080", "127.0.0.1:8080")] {
        let told = place.tidemark(&["serve", "--listen", wrong]);
        assert!(told.code == 2 && told.stderr.contains(&format!("write {right}")), "{}", told.stderr);
    }
}

#[test]
fn names_make_no_lines_that_look_like_ours() {
    let place = Place::new();
    let document =
        "name: \"a\\nFORGED\"\ntarget: embedded\nstages: [{name: \"b\\nFORGED\", init: {containers: 1}}]\n";
    let path = place.write("forged.yaml", document);
    let path = path.to_str().unwrap();
    for arguments in [&["check", path][..], &["run", path], &["runs"], &["report", "1", "--format", "md"]] {
        let output = place.tidemark(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
        let said = output.stdout + &output.stderr;
        assert!(said.contains("FORGED"), "{arguments:?}: {said}");
        let forged = said.lines().find(|line| line.starts_with("FORGED"));
        assert_eq!(forged, None, "{arguments:?}: {said}");
    }
}

/// The same program in a directory of its own, with what is beside it there, and a document on tables.
struct Alone {
    place: Place,
}

impl Alone {
    fn new() -> Self {
        let place = Place::new();
        place.write(
            "tables.yaml",
            "name: t\ntarget: {kind: datafusion, storage: {kind: files, directory: lake}}\nstages:\n\
             - prepare: {tables: tpch, scale: 0.01}\n",
        );
        std::fs::hard_link(env!("CARGO_BIN_EXE_tidemark"), place.path("tidemark"))
            .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_tidemark"), place.path("tidemark")).map(drop))
            .unwrap();
        Self { place }
    }

    /// Puts a program with the name of the query engine's beside it.
    fn with(self, script: &str) -> Self {
        let path = self.place.write("tidemark-lake", &format!("#!/bin/sh\n{script}\n"));
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&path, permissions).unwrap();
        self
    }

    /// What a command says of the document.
    fn tidemark(&self, command: &str) -> Output {
        self.says(&[command, "tables.yaml"])
    }

    fn says(&self, arguments: &[&str]) -> Output {
        let mut program = std::process::Command::new(self.place.path("tidemark"));
        program.args(arguments).current_dir(self.place.directory.path());
        program.env("PATH", "").env("NO_COLOR", "1").env("TIDEMARK_STORE", self.place.path("results.db"));
        Output::from(program.output().unwrap())
    }
}

#[test]
fn a_document_that_needs_the_query_engine_is_refused_where_it_is_missing() {
    let alone = Alone::new();
    for (command, code) in [("check", 2), ("run", 3)] {
        let output = alone.tidemark(command);
        assert_eq!(output.code, code, "{}", output.stderr);
        assert!(
            output.stderr.contains("Loads on tables need the program `tidemark-lake`")
                && output.stderr.contains("`make build`"),
            "{}",
            output.stderr
        );
    }
    assert!(!alone.place.path("lake").exists(), "nothing was begun");
    // Of an evaluation nothing is set up, although its first load could be measured.
    let begun = alone.place.path("begun");
    alone.place.write(
        "arms.yaml",
        &format!(
            "name: e\narms:\n  - {{name: a, set_up: ': > {}'}}\nloads:\n  - name: first\n    target: mock\n    stages:\n      \
             - load: {{workers: 1, for: 1s, containers: 1, operations: [{{get: {{objects: 1-9}}}}]}}\n  - name: second\n    \
             target: {{kind: datafusion, storage: {{kind: files, directory: lake}}}}\n    stages:\n      \
             - prepare: {{tables: tpch, scale: 0.01}}\n      - load: {{tables: tpch, scale: 0.01, queries: [q1]}}\n",
            begun.display()
        ),
    );
    let output = alone.says(&["run", "--run-commands", "arms.yaml"]);
    assert_ne!(output.code, 0);
    assert!(output.stderr.contains("need the program `tidemark-lake`"), "{}", output.stderr);
    assert!(!begun.exists(), "an arm was set up");
}

#[test]
fn a_query_engine_that_does_not_fit_or_does_not_start_says_why() {
    // A frame: 4 bytes of its length, 1 of its kind, and what it holds.
    let other = r#"printf '\045\000\000\000\000{"protocol":1,"tidemark":"0.0.7-old"}'; read _"#;
    let refusal = r#"{"refused":{"run":1,"reason":"the disk of tidemark-lake is gone"}}"#;
    let hello = format!(r#"{{"protocol":{VERSION},"tidemark":"{}"}}"#, env!("CARGO_PKG_VERSION"));
    let frame = |text: &str| format!("printf '\\{:03o}\\000\\000\\000\\000%s' '{text}'", text.len());
    // It stays until its input ends, as the real one does.
    let refuses = format!("{}\n{}\nwhile read -r _; do :; done", frame(&hello), frame(refusal));
    let older = format!(r#"{{"protocol":1,"tidemark":"{}"}}"#, env!("CARGO_PKG_VERSION"));
    let another = format!("{}\nread _", frame(&older));
    let cases = [
        (refuses.as_str(), "the disk of tidemark-lake is gone"),
        (other, "is of Tidemark 0.0.7-old"),
        ("echo 'no such library' >&2; exit 127", "ended with exit code 127: no such library"),
        ("printf 'hello, world'; read _", "is not `tidemark-lake` of this release"),
        (another.as_str(), "is of another build of Tidemark"),
    ];
    for (script, sign) in cases {
        let output = Alone::new().with(script).tidemark("run");
        assert!(output.code != 0 && output.stderr.contains(sign), "{}: {}", output.code, output.stderr);
        assert!(output.stderr.contains("tidemark-lake"), "{}", output.stderr);
    }
}
