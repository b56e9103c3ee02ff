//! Many databases at once, against real PostgreSQL servers, which each test starts for itself.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::databases;
use std::sync::mpsc;
use std::time::Duration;
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, execute};
use tidemark_engines::registry;
use tidemark_judge::words::endpoints::Endpoints;
use tidemark_judge::{What, fairness, judge};
use tidemark_measure::record::{EndpointKind, EndpointUse, Provenance, Run, State, Work};
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

/// So many servers, or none where there is no PostgreSQL.
fn servers(count: usize) -> Vec<Postgres> {
    (0..count).map_while(|_| Postgres::start(&["synchronous_commit=off"])).collect()
}

/// A document on all of them with these stages.
fn document(servers: &[Postgres], stages: &str) -> String {
    let ports: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    format!(
        "name: t\nseed: 7\ntarget: {{kind: postgres, instances: \"{}\"}}\nstages:\n{stages}\n",
        ports.join(",")
    )
}

fn try_run(text: &str) -> Result<Run, String> {
    let registry = registry();
    let plan = document::read(text, &Environment::process(&registry))
        .unwrap_or_else(|found| panic!("{found:?}"))
        .plan;
    let options = Options { threads: Some(2), ..Options::local(registry) };
    execute(&plan, Provenance::default(), &options, None, &mut Quiet)
        .map(|done| done.run)
        .map_err(|error| error.to_string())
}

#[track_caller]
fn run(text: &str) -> Run {
    let run = try_run(text).unwrap();
    let reasons: Vec<_> = run.stages.iter().map(|stage| &stage.reason).collect();
    assert_eq!(run.state, State::Completed, "{reasons:?}");
    run
}

fn last(run: &Run) -> &Work {
    &run.stages.last().unwrap().works[0]
}

fn number(server: &Postgres, sql: &str) -> u64 {
    server.sql(sql).parse().unwrap()
}

/// Transactions that the server has committed in the database of the load, as it counts them once its sessions have ended.
fn commits(server: &Postgres) -> u64 {
    server.sql("SELECT pg_stat_force_next_flush()");
    number(server, "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")
}

const FILL: &str = "- prepare: {workload: pgbench/tpcb-like, loaders: 2}";

#[test]
fn each_instance_is_loaded_and_counted_and_the_sum_is_the_load() {
    let servers = servers(3);
    if servers.len() < 3 {
        return;
    }
    let filled = run(&document(&servers, FILL));
    let tally = &last(&filled).operations[0].tally;
    assert_eq!((last(&filled).workers, tally.failed()), (6, 0));
    for server in &servers {
        assert_eq!(number(server, "SELECT count(*) FROM pgbench_accounts"), 100_000);
        assert_eq!(
            number(server, "SELECT count(*) FROM pg_constraint WHERE conname = 'pgbench_accounts_pkey'"),
            1
        );
        assert_eq!(number(server, "SELECT complete FROM tidemark_data"), 1);
    }

    // What a client does between its transactions changes neither its instance nor its share.
    let load = "- load: {workload: pgbench/simple-update, clients: 3, total_operations: 903, checks: none}";
    let before: Vec<u64> = servers.iter().map(commits).collect();
    let done = run(&document(&servers, load));
    let work = last(&done);
    assert_eq!((work.workers, work.operations[0].tally.ok, work.operations[0].tally.failed()), (9, 903, 0));
    let databases = databases(&done.stages[0]).servers;
    assert_eq!((work.endpoints.len(), databases.len()), (3, 3));
    for (place, ((server, own), database)) in servers.iter().zip(&work.endpoints).zip(databases).enumerate() {
        let at = format!("127.0.0.1:{}", server.port());
        assert_eq!((own.endpoint.as_str(), own.kind), (at.as_str(), EndpointKind::Instance));
        // 903 of nine clients: the first three do one more, which are one on each instance.
        assert_eq!((own.ok, own.faults.total(), own.response.count()), (301, 0, 301));
        assert_eq!(own.ok_by_second.iter().sum::<u64>(), 301);
        assert_eq!(number(server, "SELECT count(*) FROM pgbench_history"), 301, "{place}");
        assert!(database.server.contains(&at), "{}", database.server);
        assert_eq!(database.acknowledged, 301);
        // What is not the load's are the few transactions around it, as many on each server.
        let counted = commits(server) - before[place];
        assert!((301..401).contains(&counted), "{counted}");
        assert!(database.commits.is_some_and(|commits| (301..=counted).contains(&commits)), "{database:?}");
    }
    let (window, operation) = (work.window_seconds(), &work.operations[0]);
    let sum: f64 = work.endpoints.iter().map(|one| one.throughput(window)).sum();
    assert!((sum / operation.throughput(window) - 1.0).abs() < 1e-9, "{sum}");
    let mut merged = EndpointUse::default();
    work.endpoints.iter().for_each(|one| merged.add(one));
    assert_eq!(merged.response.quantile(0.99), operation.tally.response.quantile(0.99));
    let shared = fairness(work).unwrap();
    assert_eq!((shared.count, (shared.jain * 1e9).round()), (3, 1e9), "{shared:?}");

    // A load may use the first ones only, and clients have numbers of their own on each: the same warehouse everywhere.
    let two = run(&document(&servers, &load.replace("clients", "instances: 2, clients")));
    assert_eq!(last(&two).endpoints.len(), 2);
    assert_eq!(number(&servers[2], "SELECT count(*) FROM pgbench_history"), 301);

    let kept = run(&document(&servers, FILL));
    assert_eq!(last(&kept).operations[0].tally.total(), 0);
    servers[1].sql("DROP TABLE pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history, tidemark_data, tidemark_chunks");
    let refused = try_run(&document(&servers, load)).unwrap();
    let reason = &refused.stages[0].reason;
    let port = servers[1].port().to_string();
    assert!(reason.contains(&port) && reason.contains("has no such tables"), "{reason}");
    assert!(!reason.contains(&servers[0].port().to_string()), "{reason}");
    run(&document(&servers, FILL));
    assert_eq!(
        number(&servers[1], "SELECT count(*) FROM pgbench_accounts"),
        100_000,
        "the missing one is loaded"
    );
    assert!(number(&servers[0], "SELECT count(*) FROM pgbench_history") > 301, "the others are kept");
    run(&document(&servers, "- cleanup: {workload: pgbench/tpcb-like}"));
    for server in &servers {
        assert_eq!(number(server, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'pgbench%'"), 0);
    }
}

#[test]
fn an_instance_that_dies_is_named_and_the_others_are_not() {
    let mut servers = servers(3);
    if servers.len() < 3 {
        return;
    }
    run(&document(&servers, FILL));
    let load = "- load: {workload: pgbench/simple-update, clients: 2, for: 9s, drain: 5s, allowed_failures: 100%, checks: none}";
    let text = document(&servers, load);
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(try_run(&text).map(Box::new)).is_ok());
    while number(&servers[1], "SELECT count(*) FROM pgbench_history") < 20 {
        std::thread::sleep(Duration::from_millis(20));
    }
    servers[1].kill();
    // Two whole seconds at least are within the load's seconds.
    std::thread::sleep(Duration::from_millis(3500));
    servers[1].restart();
    let run = result.recv_timeout(Duration::from_secs(120)).unwrap().unwrap();
    let work = last(&run);
    let failed: Vec<u64> = work.endpoints.iter().map(|one| one.faults.total()).collect();
    assert!(failed[0] == 0 && failed[1] > 0 && failed[2] == 0, "{failed:?}");
    let tally = &work.operations[0].tally;
    assert_eq!((tally.failed(), tally.ok), (failed[1], work.endpoints.iter().map(|one| one.ok).sum()));
    let dead = format!("127.0.0.1:{}", servers[1].port());
    assert!(work.examples.iter().all(|example| example.text.contains(&dead)), "{:?}", work.examples);
    let judgement = judge(&run);
    let away: Vec<(&str, u64)> = judgement
        .findings
        .iter()
        .filter_map(|finding| match &finding.what {
            What::Endpoints(Endpoints::Outage { endpoint, seconds, .. }) => {
                Some((endpoint.as_str(), *seconds))
            }
            _ => None,
        })
        .collect();
    assert!(matches!(away.as_slice(), [(endpoint, 2..)] if *endpoint == dead), "{away:?}");
    assert!(number(&servers[1], "SELECT count(*) FROM pgbench_history") > 20, "it went on when it was back");
    assert!(fairness(work).unwrap().jain < 1.0);

    servers[2].kill();
    let port = servers[2].port().to_string();
    let refused = try_run(&document(&servers, load)).unwrap_err();
    assert!(refused.contains(&port) && !refused.contains(&servers[0].port().to_string()), "{refused}");
}
