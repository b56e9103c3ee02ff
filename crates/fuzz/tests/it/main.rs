//! All seeds, and mutations of them, against every target. The mutations are the same every time: what fails can be repeated, and what
//! was found by `make fuzz` becomes a seed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod mutation;

use mutation::Mutations;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::path::{Path, PathBuf};
use tidemark_fuzz::TARGETS;
use tidemark_measure::tally::Interval;
use tidemark_measure::wire;

/// Counts for the whole process, and each test is one.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Most bytes that an input may have allocated, those that were given back included: several times what the largest take.
const MOST_ALLOCATED: usize = 256 << 20;

/// How many times as many inputs each target gets, for whoever has the time.
const VARIABLE: &str = "TIDEMARK_FUZZ";

/// How many inputs a target gets. Reading a document takes milliseconds where nothing is optimised.
const SHORT: u64 = 20_000;
const DOCUMENTS: u64 = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(directory: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    let is_one =
        |path: &PathBuf| path.extension().is_some_and(|found| extensions.iter().any(|one| found == *one));
    paths.retain(|path| extensions.is_empty() || is_one(path));
    paths.sort();
    assert!(!paths.is_empty(), "{directory} has no seeds");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Documents that are in the repository anyway.
fn documents() -> Vec<Vec<u8>> {
    let directories = ["examples", "crates/engines/tests/fixtures", "crates/cosbench/tests/fixtures"];
    directories.iter().flat_map(|directory| files(directory, &["yaml", "xml"])).collect()
}

/// Prints the input that a target panics at.
struct Tried<'a>(&'a [u8]);

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input is b\"{}\"", self.0.escape_ascii());
        }
    }
}

fn try_with(name: &str, seeds: &[Vec<u8>], inputs: u64) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let run = |input: &[u8]| {
        let tried = Tried(input);
        let region = Region::new(ALLOCATOR);
        let taken = (target.run)(input);
        let allocated = region.change().bytes_allocated;
        assert!(allocated <= MOST_ALLOCATED, "{allocated} bytes were allocated");
        drop(tried);
        taken
    };
    let times = std::env::var(VARIABLE).ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let inputs = inputs * times;
    let (taken, others): (Vec<_>, Vec<_>) = seeds.iter().map(Vec::as_slice).partition(|seed| run(seed));
    assert!(!taken.is_empty(), "no seed of {name} is taken for what it should be");
    let mutations = Mutations::of(&taken);
    let reached = (0..inputs).filter(|number| run(&mutations.number(*number))).count();
    let seeds = (taken.len(), others.len());
    eprintln!("{name}: seeds taken and not {seeds:?}, {reached} of {inputs} mutations taken");
    assert!(reached > 0, "no mutation reaches beyond the first check");
}

#[test]
fn any_bytes_are_a_result_or_an_error() {
    let seeds = [
        files("fuzz/seeds/import", &[]),
        files("crates/import/src/samples", &[]),
        files("examples", &["csv"]),
    ];
    try_with("import", &seeds.concat(), SHORT / 10);
}

#[test]
fn any_files_are_an_archive_or_an_error() {
    try_with("archive", &files("fuzz/seeds/archive", &[]), SHORT / 10);
}

#[test]
fn any_output_of_fio_is_reports_or_words() {
    let seeds = [files("crates/fio/tests/fixtures", &["json"]), files("fuzz/seeds/fio_report", &[])];
    try_with("fio_report", &seeds.concat(), SHORT / 20);
}

#[test]
fn no_server_of_mysql_s_protocol_breaks_its_client() {
    try_with("mysql", &files("fuzz/seeds/mysql", &[]), SHORT / 4);
}

#[test]
fn no_server_of_postgresql_s_protocol_breaks_its_client() {
    try_with("postgres", &files("fuzz/seeds/postgres", &[]), SHORT / 4);
}

#[test]
fn any_bytes_are_a_reply_of_trino_or_an_error() {
    try_with("trino", &files("fuzz/seeds/trino", &[]), SHORT);
}

#[test]
fn any_text_is_a_document_or_an_error() {
    try_with("document", &documents(), DOCUMENTS);
}

#[test]
fn any_text_is_an_evaluation_or_an_error() {
    try_with("evaluation", &documents(), DOCUMENTS);
}

#[test]
fn no_document_leaves_what_a_policy_allows() {
    let paths = files("fuzz/seeds/policy", &[]);
    let documents = documents();
    let seeds: Vec<_> = documents
        .iter()
        .enumerate()
        .map(|(at, document)| [paths[at % paths.len()].trim_ascii_end(), b"\n", document].concat())
        .collect();
    try_with("policy", &seeds, DOCUMENTS);
}

#[test]
fn no_secret_of_a_document_is_shown() {
    try_with("redact", &files("fuzz/seeds/redact", &[]), DOCUMENTS);
}

#[test]
fn any_bytes_are_a_response_or_none_however_they_are_cut() {
    try_with("http_response", &files("fuzz/seeds/http_response", &[]), SHORT);
}

#[test]
fn any_bytes_are_the_proof_of_a_controller_or_none_however_they_are_cut() {
    try_with("proof", &files("fuzz/seeds/proof", &[]), SHORT);
}

#[test]
fn any_text_is_a_selector_or_an_error() {
    // One a line.
    let lists = files("fuzz/seeds/selector", &[]).concat();
    let seeds: Vec<_> = lists.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    try_with("selector", &seeds, SHORT);
}

#[test]
fn any_bytes_are_a_second_or_damaged() {
    try_with("second", &files("fuzz/seeds/second", &[]), SHORT / 10);
}

#[test]
fn no_frame_of_a_driver_changes_another_one_s_state() {
    try_with("driver", &files("fuzz/seeds/driver", &[]), SHORT / 4);
}

/// The fuzzer takes its seeds from files, and nobody writes these by hand.
#[test]
fn the_seeds_of_seconds_are_as_seconds_travel() {
    let mut busy = Interval { in_flight: 3, ..Interval::new(7, 2) };
    (busy.cpu_ns, busy.wall_ns, busy.first_ok_ns, busy.last_ok_ns) =
        (1 << 29, 1 << 30, Some(5), Some(1 << 29));
    for (at, tally) in busy.actions.iter_mut().enumerate() {
        (tally.ok, tally.bytes) = (100, 4096 * 100);
        for histogram in [&mut tally.response, &mut tally.lag, &mut tally.first_byte] {
            (0..100).for_each(|number| histogram.record_many(1_000 * (number + 1) * (at as u64 + 1), 1));
        }
    }
    for (name, second) in [("busy", busy), ("idle", Interval::new(3, 2))] {
        let file = root().join("fuzz/seeds/second").join(name);
        let bytes = wire::encode(&second);
        if std::env::var_os("TIDEMARK_UPDATE").is_some() {
            std::fs::write(&file, &bytes).unwrap();
        }
        let kept = std::fs::read(&file).unwrap_or_default();
        assert!(
            kept == bytes,
            "{name} is out of date: TIDEMARK_UPDATE=1 cargo test -p tidemark-fuzz seconds"
        );
    }
}

#[test]
fn every_target_of_the_fuzzer_is_one_of_these() {
    let mut names: Vec<_> = std::fs::read_dir(root().join("fuzz/fuzz_targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, TARGETS.iter().map(|target| target.name).collect::<Vec<_>>());
}
