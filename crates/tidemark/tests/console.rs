//! The web console in a real browser: against its own mock, and against a real controller with a driver.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed test may panic, and says what it does"
)]

mod common;

use common::Place;
use common::fleet::Controller;
use std::path::Path;
use std::process::Command;
use tidemark_embedded::{EmbeddedOptions, EmbeddedServer};

fn node(words: &[&str]) {
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console");
    let output = Command::new("node").args(words).current_dir(console).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}");
    assert!(output.status.success(), "{said}");
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
        &controller.url,
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
    controller.wait_for_drivers(1);
    let shots = std::env::var("TIDEMARK_SHOTS").unwrap_or_default();
    let login = place.tidemark(&["login", "--controller", &controller.url]).stdout;
    node(&[
        "tests/real.mjs",
        login.trim(),
        &server.endpoint(),
        server.access_key(),
        server.secret_key(),
        &shots,
    ]);
}

#[test]
#[ignore = "needs Chromium, Node.js and the built console; `make test` runs it"]
fn the_console_stays_fast_and_reachable_with_a_thousand_runs() {
    tidemark_testing::needs!(&["chromium", "node"]);
    node(&["tests/all.mjs"]);
}
