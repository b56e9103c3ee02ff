//! A result store that an older version made: it opens, and its results are what they were.

use crate::common::Place;
use serde_json::{Value, json};
use std::path::Path;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/older-store");

/// A place whose result store is a copy of the older one.
fn place() -> Place {
    let place = Place::new();
    let packed = std::fs::File::open(Path::new(FIXTURES).join("results.db.gz")).unwrap();
    let mut store = std::fs::File::create(place.path("results.db")).unwrap();
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut store).unwrap();
    place
}

fn expected() -> Value {
    let text = std::fs::read_to_string(Path::new(FIXTURES).join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn report(place: &Place, what: &str, format: &str) -> String {
    let path = place.path("report");
    let output = place.tidemark(&["report", what, "--format", format, "-o", path.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{what} as {format}: {}", output.stderr);
    std::fs::read_to_string(path).unwrap()
}

fn parsed(place: &Place, what: &str) -> Value {
    serde_json::from_str(&report(place, what, "json")).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no {key}: {value}"))
}

/// The rows of `expected.json` that a run's report gives now.
fn rows(id: u64, run: &Value) -> Vec<Value> {
    let mut rows = Vec::new();
    for stage in list(run, "stages") {
        for work in list(stage, "works") {
            for operation in list(work, "operations") {
                let percentile = |name: &str| &operation["response"]["percentiles_ns"][name];
                let of = |key: &str| &operation[key];
                rows.push(json!([
                    id,
                    stage["id"],
                    work["name"],
                    of("label"),
                    of("sample"),
                    of("ok"),
                    of("failed"),
                    of("bytes"),
                    of("throughput_per_s"),
                    percentile("p50"),
                    percentile("p99"),
                ]));
            }
        }
    }
    rows
}

#[test]
fn the_numbers_of_its_runs_are_what_they_were() {
    let place = place();
    let found: Vec<Value> = (1..=8).flat_map(|id| rows(id, &parsed(&place, &id.to_string()))).collect();
    let expected = expected();
    let expected = list(&expected, "operations");
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
}

#[test]
fn what_else_its_records_have_is_there() {
    let place = place();
    for id in 1..=8 {
        let run = parsed(&place, &id.to_string());
        assert_eq!((&run["state"], &run["valid"]), (&json!("completed"), &json!(true)), "run {id}");
        assert_eq!(run["provenance"]["tidemark"], "0.1.0");
        assert!(run["provenance"]["document"].as_str().unwrap().contains("old-"), "run {id}");
    }
    // A sweep: where its stages belong, and what the device counted.
    let block = parsed(&place, "3");
    let cells: Vec<&Value> = list(&block, "stages").iter().filter(|stage| !stage["cell"].is_null()).collect();
    assert_eq!(cells.len(), 4);
    assert!(cells.iter().all(|stage| !list(&stage["proof"], "devices").is_empty()));
    // A run on a driver: its share is all of it.
    let driven = parsed(&place, "8");
    assert_eq!(list(&driven, "drivers").len(), 1);
    for stage in list(&driven, "stages") {
        let operations = list(&list(stage, "works")[0], "operations");
        let done: u64 = operations.iter().map(|one| one["ok"].as_u64().unwrap()).sum();
        assert_eq!((stage["shares"][0]["ok"].as_u64(), list(stage, "shares").len()), (Some(done), 1));
    }
    // Seconds, latencies in full, workers.
    for id in [1, 4, 8] {
        let run = parsed(&place, &id.to_string());
        let main = list(&run, "stages").iter().find(|stage| stage["name"] == "main").unwrap();
        let work = &list(main, "works")[0];
        let seconds: u64 = list(work, "series")
            .iter()
            .flat_map(|second| list(second, "operations"))
            .map(|one| one["ok"].as_u64().unwrap())
            .sum();
        assert!(seconds > 0 && !list(work, "workers_counts").is_empty(), "run {id}");
        assert!(
            list(work, "operations").iter().all(|one| one["response"]["v2"].as_str().unwrap().len() > 20)
        );
    }
}

#[test]
fn its_evaluation_says_the_same() {
    let place = place();
    let evaluation = parsed(&place, "e1");
    let cells = list(&evaluation["assessment"], "cells").iter();
    let found: Vec<Value> = cells
        .map(|cell| json!([cell["arm"], cell["runs"], cell["throughput"]["mean"], cell["p99_ns"]["mean"]]))
        .collect();
    assert_eq!(json!(found), expected()["cells"]);
    for arm in ["disk", "memory"] {
        assert!(report(&place, "e1", "md").contains(arm) && report(&place, "e1", "html").contains(arm));
    }
}

#[test]
fn it_is_listed_reported_compared_and_added_to() {
    let place = place();
    let listed = place.tidemark(&["runs", "--all"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    for (name, count) in [("old-cosbench", 3), ("old-block", 1), ("web", 4), ("old-demo", 1)] {
        let lines = listed
            .stdout
            .lines()
            .filter(|line| line.contains(&format!("  {name}  ")) || line.contains(&format!("  {name} (")));
        assert_eq!(lines.count(), count, "{name}: {}", listed.stdout);
    }
    for id in 1..=8 {
        assert!(report(&place, &id.to_string(), "html").contains("<svg"), "run {id}");
        assert!(report(&place, &id.to_string(), "md").contains("| "), "run {id}");
    }
    // Single runs cannot be told apart, but their numbers are shown.
    let compared = place.tidemark(&["compare", "1", "2"]);
    assert_eq!(compared.code, 7, "{} {}", compared.stdout, compared.stderr);
    assert!(compared.stdout.contains("old-cosbench"), "{}", compared.stdout);
    let document = Path::new(FIXTURES).join("mock.xml");
    assert_eq!(place.tidemark(&["run", document.to_str().unwrap(), "--quiet"]).code, 0);
    assert_eq!(parsed(&place, "9")["state"], "completed");
}
