//! The web console in a real browser: against its own mock, and against a real controller with a driver.

use crate::common::Place;
use crate::common::fleet::Controller;
use std::path::Path;
use std::process::Command;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::{Operation, Run, Stage, State, Work};
use tidemark_measure::tally::Tally;
use tidemark_store::{Figures, Listing, Store};

/// A short run, as far as lists show it.
fn run(number: u64) -> Run {
    let mut tally = Tally { ok: 1_000 + number, bytes: 4_096_000, ..Tally::default() };
    tally.response.record_many(1_000_000 + number, 1_000);
    let operation =
        Operation { class: OperationClass::Read, label: "read".into(), tally, ..Operation::default() };
    let work = Work {
        name: "main".into(),
        workers: 8,
        window_end_ns: 60_000_000_000,
        operations: vec![operation],
        ..Work::default()
    };
    let stage =
        Stage { id: "s1-main".into(), name: "main".into(), state: State::Completed, ..Stage::default() };
    Run {
        name: format!("nightly-{number}"),
        state: State::Completed,
        started_unix_ns: 1_700_000_000_000_000_000 + number * 60_000_000_000,
        elapsed_ns: 60_000_000_000,
        stages: vec![Stage { works: vec![work], ..stage }],
        ..Run::default()
    }
}

fn node(words: &[&str]) {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console");
    let output = Command::new("node").args(words).current_dir(console).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}");
    assert!(output.status.success(), "{said}");
}

/// An address that logs a browser in, once.
fn login(place: &Place, controller: &Controller) -> String {
    place.tidemark(&["login", "--controller", &controller.url]).stdout.trim().to_owned()
}

#[test]
#[ignore = "needs Chromium, Node.js and the built console; `make test` runs it"]
fn the_form_makes_a_run_on_a_real_s3_service() {
    tidemark_testing::needs!(&["chromium", "node"]);
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let controller = Controller::start(&place, &[]);
    controller.wait_for_drivers(1);
    let shots = std::env::var("TIDEMARK_SHOTS").unwrap_or_default();
    node(&[
        "tests/real-form.mjs",
        &login(&place, &controller),
        &server.endpoint(),
        server.access_key(),
        server.secret_key(),
        &shots,
    ]);
}

#[test]
#[ignore = "needs Chromium, Node.js and the built console; `make test` runs it"]
fn the_console_does_its_work_on_a_real_controller() {
    tidemark_testing::needs!(&["chromium", "node"]);
    let server = EmbeddedServer::start(EmbeddedOptions::default()).unwrap();
    let place = Place::new();
    let controller = Controller::start(&place, &[]);
    let driver = controller.driver("d2", &[]);
    controller.wait_for_drivers(2);
    let process = driver.child.id().to_string();
    let shots = std::env::var("TIDEMARK_SHOTS").unwrap_or_default();
    node(&[
        "tests/real.mjs",
        &login(&place, &controller),
        &server.endpoint(),
        server.access_key(),
        server.secret_key(),
        &process,
        &shots,
    ]);
}

#[test]
#[ignore = "needs Chromium, Node.js and the built console; `make test` runs it"]
fn a_page_of_another_user_of_this_host_gets_nothing_and_does_nothing() {
    tidemark_testing::needs!(&["chromium", "node"]);
    let place = Place::new();
    let controller = Controller::start(&place, &[]);
    let token = |name: &str, role: &str| {
        place.tidemark(&["token", "add", name, "--role", role]).stdout.trim().to_owned()
    };
    let shots = std::env::var("TIDEMARK_SHOTS").unwrap_or_default();
    node(&[
        "tests/neighbour.mjs",
        &login(&place, &controller),
        &token("olga", "operator"),
        &token("vera", "viewer"),
        &shots,
    ]);
}

#[test]
#[ignore = "needs Chromium, Node.js and the built console; `make test` runs it"]
fn the_console_stays_fast_and_reachable_with_a_thousand_runs() {
    tidemark_testing::needs!(&["chromium", "node"]);
    node(&["tests/all.mjs"]);
}

#[test]
#[ignore = "needs Chromium, Node.js and the built console; `make test` runs it"]
fn ten_thousand_runs_are_listed_page_by_page() {
    tidemark_testing::needs!(&["chromium", "node"]);
    let place = Place::new();
    let mut store = Store::open(&place.path("results.db")).unwrap();
    for number in 0..10_000 {
        let figures = Figures {
            load: "read, 8 workers".into(),
            throughput: 1_000.0 + number as f64,
            p50_ns: Some(1e6),
            p99_ns: Some(1e6 + number as f64),
            shape: vec![1.0; 48],
            ..Figures::default()
        };
        let listing = Listing { valid: number % 7 != 0, headline: "main: read".into(), figures };
        store.add(&run(number), &listing).unwrap();
    }
    drop(store);
    let controller = Controller::start(&place, &[]);
    node(&["tests/many.mjs", &login(&place, &controller)]);
}
