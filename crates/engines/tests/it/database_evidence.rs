//! What databases count and how they are set, and what is there of what they acknowledged, on a real PostgreSQL and a real
//! MariaDB: recorded, judged, reported.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::databases;
use std::sync::mpsc;
use std::time::Duration;
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, execute};
use tidemark_engines::registry;
use tidemark_judge::{Finding, Severity, judge};
use tidemark_measure::record::{Provenance, Run};
use tidemark_plan::document;
use tidemark_plan::yaml::Environment;
use tidemark_sql::databases::{DatabaseUse, LedgerUse};
use tidemark_testing::mariadb::Mariadb;
use tidemark_testing::postgres::Postgres;

struct Quiet;

impl EventSink for Quiet {
    fn event(&mut self, _event: Event<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

/// A server of either kind.
trait Server {
    /// What a document says of it.
    fn target(&self) -> String;
    fn ask(&self, sql: &str) -> String;
    /// Kills it and starts it again.
    fn crash(&mut self);
}

impl Server for Postgres {
    fn target(&self) -> String {
        format!("kind: postgres, host: {}, port: {}", self.socket_directory().display(), self.port())
    }

    fn ask(&self, sql: &str) -> String {
        self.sql(sql)
    }

    fn crash(&mut self) {
        self.kill();
        self.restart();
    }
}

impl Server for Mariadb {
    fn target(&self) -> String {
        let socket = self.socket();
        format!("kind: mariadb, host: {}, user: bench, password: bench, database: bench", socket.display())
    }

    fn ask(&self, sql: &str) -> String {
        self.sql(sql)
    }

    fn crash(&mut self) {
        self.kill();
        self.restart();
    }
}

/// A document on the server's Unix socket with these stages.
fn document(server: &impl Server, stages: &str) -> String {
    format!("name: t\nseed: 7\ntarget: {{{}}}\nstages:\n{stages}\n", server.target())
}

fn run(text: &str) -> Run {
    let registry = registry();
    let read = document::read(text, &Environment::process(&registry));
    let plan = read.unwrap_or_else(|found| panic!("{found:?}")).plan;
    let options = Options { threads: Some(2), ..Options::local(tidemark_engines::registry()) };
    execute(&plan, Provenance::default(), &options, None, &mut Quiet).unwrap().run
}

/// The database of the last stage.
fn database(run: &Run) -> DatabaseUse {
    databases(run.stages.last().unwrap()).servers.swap_remove(0)
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
    let counted = database(&anew);
    assert!(counted.counters_reset && !counted.restarted && counted.commits.is_none(), "{counted:?}");
    assert!(rules(&anew).contains(&"counters-reset"));
}

/// Puts a load on, and does something as soon as it has made some rows of history.
fn meanwhile<S: Server>(server: &mut S, load: &str, what: impl FnOnce(&mut S)) -> Run {
    let (text, before) = (document(server, load), history(server));
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(run(&text)).is_ok());
    grown(server, before + 50);
    what(server);
    result.recv_timeout(Duration::from_secs(180)).unwrap()
}

/// Waits until there are so many rows of history, but not for ever: the load may be over.
fn grown(server: &impl Server, rows: u64) {
    for _ in 0..500 {
        if history(server) >= rows {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn history(server: &impl Server) -> u64 {
    server.ask("SELECT count(*) FROM pgbench_history").parse().unwrap()
}

#[test]
fn a_server_that_was_killed_has_counters_that_prove_nothing() {
    let Some(mut server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    run(&document(&server, FILL));
    let load =
        "- load: {workload: pgbench/simple-update, clients: 4, for: 4s, drain: 5s, allowed_failures: 100%}";
    let killed = meanwhile(&mut server, load, Server::crash);
    assert!(rules(&killed).contains(&"database-restarted"));
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

#[test]
fn a_plan_that_changes_under_the_load_is_named() {
    let Some(mut server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    let load = "- load: {workload: pgbench/simple-update, clients: 2, total_operations: 200}";
    let kept = run(&document(&server, &format!("{FILL}\n{load}")));
    let plans = &database(&kept).plans;
    assert!(plans.len() >= 3 && plans.iter().all(|plan| plan.changed_to.is_none()), "{plans:?}");
    assert!(rules(&kept).contains(&"plans-kept"));

    let load = "- load: {workload: pgbench/simple-update, clients: 2, for: 3s, drain: 10s}";
    let changed = meanwhile(&mut server, load, |server| {
        server.sql("ALTER TABLE pgbench_accounts DROP CONSTRAINT pgbench_accounts_pkey");
    });
    let judgement = judge(&changed);
    let finding = judgement.findings.iter().find(|finding| finding.rule() == "plan-changed").unwrap();
    let evidence = finding.evidence().join("\n");
    for part in [
        "UPDATE pgbench_accounts",
        "SELECT abalance",
        "Index Scan on pgbench_accounts by pgbench_accounts_pkey",
        "Seq Scan on pgbench_accounts",
    ] {
        assert!(evidence.contains(part), "{part}: {evidence}");
    }
    assert!(!evidence.contains("INSERT INTO pgbench_history"), "its plan is the same: {evidence}");
    let report = tidemark_report::markdown(&changed, &judgement);
    assert!(report.contains("Seq Scan on pgbench"), "{report}");
}

#[test]
fn a_key_that_goes_under_the_load_is_named_on_mariadb() {
    let Some(mut server) = Mariadb::start(&["innodb-flush-log-at-trx-commit=0"]) else { return };
    let load = "- load: {workload: pgbench/simple-update, clients: 2, total_operations: 200}";
    let kept = run(&document(&server, &format!("{FILL}\n{load}")));
    let plans = &database(&kept).plans;
    assert!(plans.len() >= 2 && plans.iter().all(|plan| plan.changed_to.is_none()), "{plans:?}");
    assert!(rules(&kept).contains(&"plans-kept"));

    let load = "- load: {workload: pgbench/simple-update, clients: 2, for: 3s, drain: 10s}";
    let changed = meanwhile(&mut server, load, |server| {
        server.sql("ALTER TABLE bench.pgbench_accounts DROP PRIMARY KEY");
    });
    let judgement = judge(&changed);
    let finding = judgement.findings.iter().find(|finding| finding.rule() == "plan-changed").unwrap();
    let evidence = finding.evidence().join("\n");
    for part in [
        "UPDATE pgbench_accounts",
        "SELECT abalance",
        "on pgbench_accounts by PRIMARY",
        "ALL on pgbench_accounts",
    ] {
        assert!(evidence.contains(part), "{part}: {evidence}");
    }
}

const LEDGER: &str = "- load: {workload: pgbench/simple-update, clients: 6, for: 6s, drain: 5s, allowed_failures: 100%, \
                      ledger: true}";

/// The ledger of the last stage.
fn ledger(run: &Run) -> LedgerUse {
    databases(run.stages.last().unwrap()).ledgers.swap_remove(0)
}

/// Crashes a server twice under a load that keeps a ledger; all that it has acknowledged is there.
fn loses_nothing<S: Server>(mut server: S) {
    run(&document(&server, FILL));
    let killed = meanwhile(&mut server, LEDGER, |server| {
        for _ in 0..2 {
            server.crash();
            grown(server, history(server) + 20);
        }
    });
    let found = ledger(&killed);
    assert_eq!((found.clients, found.missing, found.unexpected), (6, Some(0), Some(0)), "{found:?}");
    assert!(found.acknowledged >= 44, "{found:?}");
    assert_eq!(history(&server), found.acknowledged + found.ambiguous_committed, "{found:?}");
    assert!(rules(&killed).contains(&"ledger-kept"), "{:?}", rules(&killed));
    assert_eq!(server.ask("SELECT count(*) FROM tidemark_ledger"), "0", "what agrees is forgotten");
}

/// Crashes a server under such a load; what it has lost is counted, and the setting with which it may is named.
fn loss_is_counted<S: Server>(mut server: S, setting: &str) {
    run(&document(&server, FILL));
    // A crash just after the log was flushed loses nothing: not every one of three comes then.
    let killed = meanwhile(&mut server, LEDGER, |server| {
        for _ in 0..3 {
            server.crash();
            grown(server, history(server) + 20);
        }
    });
    let found = ledger(&killed);
    let missing = found.missing.unwrap();
    assert!(missing > 0 && found.clients_missing > 0, "{found:?}");
    let held = found.acknowledged + found.ambiguous_committed - missing;
    assert_eq!((history(&server), found.unexpected), (held, Some(0)), "each has a row of history: {found:?}");
    let judgement = judge(&killed);
    assert!(!judgement.is_valid());
    let lost = judgement.findings.iter().find(|finding| finding.rule() == "ledger-missing").unwrap();
    assert!(lost.title().ends_with(" missing") && lost.severity == Severity::Critical, "{}", lost.title());
    assert!(lost.evidence().iter().any(|line| line.starts_with(setting)), "{:?}", lost.evidence());
}

#[test]
fn a_ledger_finds_all_that_a_killed_postgresql_has_acknowledged() {
    Postgres::start(&[]).into_iter().for_each(loses_nothing);
}

#[test]
fn a_ledger_finds_all_that_a_killed_mariadb_has_acknowledged() {
    Mariadb::start(&[]).into_iter().for_each(loses_nothing);
}

#[test]
fn a_ledger_counts_what_a_killed_postgresql_has_lost() {
    // The log is written late, so that there is something to lose.
    let relaxed =
        ["synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB", "wal_buffers=16MB"];
    let server = Postgres::start(&relaxed).into_iter();
    server.for_each(|server| loss_is_counted(server, "synchronous_commit = off: "));
}

#[test]
fn a_ledger_counts_what_a_killed_mariadb_has_lost() {
    let relaxed = ["innodb-flush-log-at-trx-commit=0", "innodb-flush-log-at-timeout=60"];
    let server = Mariadb::start(&relaxed).into_iter();
    server.for_each(|server| loss_is_counted(server, "innodb_flush_log_at_trx_commit = 0: "));
}
