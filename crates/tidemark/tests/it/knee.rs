//! The built binary searches for the knee of a server whose capacity is known: eight requests at once, each for 10 ms, the
//! others wait: 800 a second, if the machine has the time to ask for that many.

use crate::common::Place;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};

const CAPACITY: f64 = 800.0;

/// What a search came to.
#[derive(Debug)]
struct Found {
    level: Option<f64>,
    end: Value,
    between: [f64; 2],
    /// The highest throughput of any run's level, a second.
    peak: f64,
    runs: u64,
    validity: Value,
    verdict: String,
}

/// Searches within 5 %, each run with a window of so many seconds.
fn search(seconds: u32) -> Found {
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    server.faults().limit_slots(8, Duration::from_millis(10));
    let place = Place::new();
    let text = format!(
        "name: slots\nseed: 3\narms:\n  - name: server\n    target: {{kind: s3, endpoints: [\"{}\"], access_key: {}, secret_key: {}}}\n\
         loads:\n  - name: reads\n    stages:\n      - init: {{containers: 1}}\n      \
         - prepare: {{workers: 8, containers: 1, objects: 1-20, sizes: 1KiB}}\n      \
         - load: {{workers: 256, rate: 100/s, warm_up: 500ms, for: {seconds}s, containers: 1, operations: [{{get: {{objects: 1-20}}}}]}}\n\
         search: {{rate: 170/s-2000/s, within: 5%}}\nservice_level: p95 <= 100ms\n",
        server.endpoint(),
        server.access_key(),
        server.secret_key()
    );
    let file = place.write("slots.yaml", &text);
    let output = place.tidemark(&["run", file.to_str().unwrap(), "--json"]);
    let last = output.stdout.lines().last().unwrap_or_else(|| panic!("no output: {}", output.stderr));
    let event: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}"));
    let assessment = &event["evaluation"]["assessment"];
    let knee = &assessment["knees"][0];
    let texts = assessment["verdict"].as_array().unwrap_or_else(|| panic!("{last}\n{}", output.stderr));
    let search = &knee["search"];
    Found {
        level: knee["level"].as_f64(),
        end: search["end"].clone(),
        between: [0, 1].map(|end| search["between"][end].as_f64().unwrap()),
        peak: knee["peak"][1].as_f64().unwrap(),
        runs: search["runs"].as_u64().unwrap(),
        validity: assessment["validity"].clone(),
        verdict: texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
    }
}

#[test]
fn the_knee_of_eight_slots_is_found_or_nobody_can_tell() {
    let found = search(2);
    // The load has its processors from the machine that serves it: one that is too busy to ask for 800 a second has a knee of
    // its own, below, and the peak shows it.
    let busy = found.peak < CAPACITY * 0.95;
    let highest = found.peak.min(CAPACITY) * 1.05;
    assert!(found.level.is_none_or(|level| level <= highest), "{found:?}");
    match (found.end.as_str(), found.level) {
        (Some("found"), Some(level)) => assert!(busy || level >= CAPACITY * 0.95, "{found:?}"),
        // A search that cannot know says so, and the truth is not outside of what it says.
        (Some("budget"), _) => {
            let [low, high] = found.between;
            assert!(low <= highest && (busy || high >= CAPACITY * 0.95), "{found:?}");
            assert!(found.verdict.contains("before it could tell more exactly"), "{found:?}");
        }
        // The machine is too busy for the lowest load.
        (Some("bottom"), None) => {
            assert!(busy && found.verdict.contains("even the lowest load"), "{found:?}");
        }
        _ => assert!(found.verdict.contains("nobody can tell"), "{found:?}"),
    }
}

#[test]
#[ignore = "measures"]
fn measures_ten_knees_beside_a_busy_loop() {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let busy = std::thread::spawn(move || {
        let mut number = 1u64;
        while !stopped.load(Ordering::Relaxed) {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
    });
    let mut near = 0;
    for _ in 0..10 {
        let found = search(2);
        println!(
            "{:?} {} after {} runs, {:?}, {}",
            found.level, found.end, found.runs, found.between, found.validity
        );
        near += usize::from(found.level.is_some_and(|level| (level / CAPACITY - 1.0).abs() <= 0.05));
    }
    stop.store(true, Ordering::Relaxed);
    busy.join().unwrap();
    assert_eq!(near, 10);
}
