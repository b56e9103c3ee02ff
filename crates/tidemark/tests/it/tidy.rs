//! What a tool can check, a tool checks: module docs, lengths, leftovers, programs of tests.

use std::path::{Path, PathBuf};

/// Longest source file that is still one idea, in lines.
const LONGEST_FILE: usize = 700;

/// Programs of tests beside `tests/it`. Their allocator counts for the whole process: other tests would be counted, too.
const ALONE: [&str; 5] = [
    "block/tests/allocations.rs",
    "cosbench/tests/long_documents.rs",
    "object/tests/allocations.rs",
    "sql/tests/allocations.rs",
    "store/tests/kept_stages.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("fuzz/fuzz_targets")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 50, "the sources were not found");
    found
}

#[test]
fn every_module_says_what_it_is() {
    for (path, text) in sources() {
        assert!(text.starts_with("//!"), "{} has no module documentation", path.display());
    }
}

#[test]
fn no_file_is_too_long() {
    // Tests are lists of cases; they may be as long as there are cases.
    let is_code = |path: &Path| !path.components().any(|part| part.as_os_str() == "tests");
    for (path, text) in sources().into_iter().filter(|(path, _)| is_code(path)) {
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{} has {lines} lines: is it still one idea?", path.display());
    }
}

#[test]
fn a_crate_has_one_program_of_integration_tests() {
    let crates = root().join("crates");
    let mut others = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let Ok(tests) = std::fs::read_dir(entry.unwrap().path().join("tests")) else { continue };
        // Cargo takes every file for a program, and every folder with a `main.rs`.
        let programs = tests
            .map(|entry| entry.unwrap().path())
            .map(|path| if path.is_dir() { path.join("main.rs") } else { path });
        others.extend(
            programs
                .filter(|path| path.extension().is_some_and(|extension| extension == "rs") && path.exists())
                .map(|path| path.strip_prefix(&crates).unwrap().to_str().unwrap().to_owned())
                .filter(|path| !path.ends_with("/tests/it/main.rs")),
        );
    }
    others.sort();
    assert_eq!(others, ALONE, "tests are modules of `tests/it/main.rs`; `ALONE` names the exceptions");
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = ["to".to_owned() + "do!(", "unimple".to_owned() + "mented!(", "FIX".to_owned() + "ME"];
    for (path, text) in sources() {
        for mark in &marks {
            assert!(!text.contains(mark.as_str()), "{} has {mark}", path.display());
        }
    }
}

/// Tests run without those of documentation, which would have to be linked one by one: code in it would grow old unseen.
#[test]
fn documentation_has_no_code_that_nothing_runs() {
    for (path, text) in sources() {
        let lines = text.lines().filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
        });
        let fences = lines.filter(|line| line.starts_with("```")).step_by(2);
        for fence in fences {
            assert_eq!(fence, "```text", "{} has code in its documentation: make it a test", path.display());
        }
    }
}
