//! What databases count and how they are set, on a real PostgreSQL: recorded, judged, reported.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use std::sync::mpsc;
use std::time::Duration;
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, execute};
use tidemark_engines::registry;
use tidemark_judge::{Finding, judge};
use tidemark_measure::record::{DatabaseUse, Provenance, Run};
use tidemark_plan::document;
use tidemark_plan::yaml::Environment;
use tidemark_testing::postgres::Postgres;

struct Quiet;

impl EventSink for Quiet {
    fn event(&mut self, _event: Event<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

/// A document on the server's Unix socket with these stages.
fn document(server: &Postgres, stages: &str) -> String {
    let (socket, port) = (server.socket_directory().display(), server.port());
    format!("name: t\nseed: 7\ntarget: {{kind: postgres, host: {socket}, port: {port}}}\nstages:\n{stages}\n")
}

fn run(text: &str) -> Run {
    let registry = registry();
    let read = document::read(text, &Environment::process(&registry));
    let plan = read.unwrap_or_else(|found| panic!("{found:?}")).plan;
    let options = Options { threads: Some(2), ..Options::local(tidemark_engines::registry()) };
    execute(&plan, Provenance::default(), &options, None, &mut Quiet).unwrap().run
}

/// The database of the last stage.
fn database(run: &Run) -> &DatabaseUse {
    &run.stages.last().unwrap().proof.as_ref().unwrap().databases[0]
}

fn rules(run: &Run) -> Vec<&'static str> {
    judge(run).findings.iter().map(Finding::rule).collect()
}

const FILL: &str = "- prepare: {workload: pgbench/tpcb-like}";

#[test]
fn what_a_database_counted_is_compared_with_what_its_clients_know() {
    let Some(server) = Postgres::start(&[]) else { return };
    let load = "- load: {workload: pgbench/tpcb-like, clients: 4, total_operations: 500}";
    let done = run(&document(&server, &format!("{FILL}\n{load}")));
    let counted = database(&done);
    assert_eq!(counted.acknowledged, 500);
    assert!(counted.commits_exact && counted.commits >= Some(500), "{counted:?}");
    assert_eq!(counted.checkpoint_timeout_ns, Some(300_000_000_000));
    assert_eq!(counted.checkpoint_log_bytes.map(|bytes| bytes >> 20), Some(538), "1 GiB / 1.9");
    let found = rules(&done);
    for rule in ["commits-counted", "durable-commits", "no-checkpoint"] {
        assert!(found.contains(&rule), "{rule}: {found:?}");
    }
    let report = tidemark_report::markdown(&done, &judge(&done));
    assert!(report.contains("## Databases") && report.contains("| synchronous\\_commit | on | "), "{report}");

    // Counts that begin anew say nothing, and are not taken for few.
    let reset = "- load: {workload: sql, total_operations: 5, transactions: [{name: reset, statements: [SELECT pg_stat_reset()]}]}";
    let anew = run(&document(&server, reset));
    assert!(database(&anew).restarted && database(&anew).commits.is_none(), "{:?}", database(&anew));
    assert!(rules(&anew).contains(&"database-restarted"));
}

#[test]
fn a_server_that_was_killed_has_counters_that_prove_nothing() {
    let Some(mut server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    run(&document(&server, FILL));
    let load =
        "- load: {workload: pgbench/simple-update, clients: 4, for: 4s, drain: 5s, allowed_failures: 100%}";
    let text = document(&server, load);
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(run(&text)).is_ok());
    while server.sql("SELECT count(*) FROM pgbench_history").parse::<u64>().unwrap() < 50 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    server.restart();
    let killed = result.recv_timeout(Duration::from_secs(120)).unwrap();
    assert!(database(&killed).restarted && database(&killed).commits.is_none(), "{:?}", database(&killed));
    let found = rules(&killed);
    assert!(found.contains(&"relaxed-durability") && !found.contains(&"commits-missing"), "{found:?}");
}

#[test]
fn reads_that_are_to_come_from_storage_make_the_run_invalid_where_they_came_from_memory() {
    let Some(server) = Postgres::start(&["shared_buffers=64MB"]) else { return };
    let load = |more: &str| {
        format!("- load: {{workload: pgbench/select-only, clients: 4, total_operations: 3000, {more}}}")
    };
    let judged = |run: &Run| {
        let judgement = judge(run);
        let reasons = judgement.findings.iter().filter(|finding| finding.invalidates);
        (judgement.is_valid(), reasons.map(Finding::rule).collect::<Vec<_>>())
    };
    let kept = run(&document(&server, &format!("{FILL}\n{}", load("reads: anywhere"))));
    assert!(rules(&kept).contains(&"reads-from-database-cache") && judged(&kept).0, "{:?}", judged(&kept));
    let asked = run(&document(&server, &load("reads: storage")));
    assert!(judged(&asked).1.contains(&"reads-from-database-cache"), "{:?}", judged(&asked));

    let Some(small) = Postgres::start(&["shared_buffers=1MB"]) else { return };
    let missed = run(&document(&small, &format!("{FILL}\n{}", load("reads: storage"))));
    let found = rules(&missed);
    assert!(!found.contains(&"reads-from-database-cache"), "{found:?}");
    // Whether devices or the page cache served it, is told where the devices are counted.
    assert!(found.contains(&"database-cache") || found.contains(&"reads-from-page-cache"), "{found:?}");
}
