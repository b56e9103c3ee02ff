//! MovR on real servers, which each test starts for itself: a PostgreSQL and a MariaDB.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{databases, examples, run};
use tidemark_measure::record::Run;
use tidemark_testing::mariadb::Mariadb;
use tidemark_testing::postgres::Postgres;

const SIZED: &str =
    "num_users: 90, num_vehicles: 20, num_rides: 500, num_histories: 1k, num_promo_codes: 100";

/// How often an operation of a load succeeded.
fn ok(run: &Run, label: &str) -> u64 {
    let operations = &run.stages[0].works[0].operations;
    operations.iter().filter(|one| one.label == label).map(|one| one.tally.ok).sum()
}

/// Loads the data, runs loads with 6 clients, and compares what they did with what the tables hold.
fn rides(document: &dyn Fn(&str) -> String, sql: &dyn Fn(&str) -> String) {
    let number = |text: &str| sql(text).parse::<u64>().unwrap();
    let tables =
        ["users", "vehicles", "rides", "vehicle_location_histories", "promo_codes", "user_promo_codes"];
    let rows = || tables.map(|table| number(&format!("SELECT count(*) FROM {table}")));
    let filled = run(&document(&format!("- prepare: {{workload: movr, {SIZED}, loaders: 2, checks: all}}")));
    assert_eq!(rows(), [90, 20, 500, 1000, 100, 0]);
    assert_eq!(number("SELECT count(DISTINCT city) FROM vehicles"), 9);
    let hold = |run: &Run| {
        let checks = &databases(run.stages.last().unwrap()).checks;
        checks.iter().map(|check| check.broken).collect::<Vec<_>>()
    };
    assert_eq!(hold(&filled), [Some(0); 8]);

    let load = |more: &str| {
        format!(
            "- load: {{workload: movr, {SIZED}, clients: 6, checks: all, total_operations: 4000, {more}}}"
        )
    };
    let before = rows();
    let done = run(&document(&load("read_percent: 50%")));
    let all = &done.stages[0].works[0].operations;
    assert_eq!(all.iter().map(|one| one.tally.ok).sum::<u64>(), 4000, "{:?}", examples(&done));
    let share = |label: &str| ok(&done, label) as f64 / 4000.0;
    assert!((share("read-vehicles") - 0.5).abs() < 0.03, "{}", share("read-vehicles"));
    assert!((share("update-active-rides") - 0.25).abs() < 0.03, "{}", share("update-active-rides"));
    let after = rows();
    let added = |table: usize| after[table] - before[table];
    assert_eq!(
        [added(0), added(1), added(4)],
        ["add-user", "add-vehicle", "create-promo-code"].map(|one| ok(&done, one))
    );
    // A client that has no ride starts one for what it is to do.
    let started = ok(&done, "start-ride");
    assert!((started..=started + 40).contains(&added(2)), "{} rides for {started}", added(2));
    assert_eq!(number("SELECT count(*) FROM rides WHERE end_time IS NULL"), added(2) - ok(&done, "end-ride"));
    let updates = ok(&done, "update-active-rides");
    assert!((updates..=10 * updates).contains(&added(3)), "{} locations in {updates}", added(3));
    assert!((1..=ok(&done, "apply-promo-code")).contains(&added(5)), "{} codes used", added(5));
    assert_eq!(hold(&done), [Some(0); 8]);

    let reads = run(&document(&load("read_percent: 100%")));
    assert_eq!((ok(&reads, "read-vehicles"), rows()), (4000, after));
    sql("DELETE FROM users");
    let broken = hold(&run(&document(&load("read_percent: 100%"))));
    assert_eq!(broken.iter().filter(|rows| rows.is_some_and(|rows| rows > 0)).count(), 4, "{broken:?}");
    run(&document(&format!("- cleanup: {{workload: movr, {SIZED}}}")));
}

#[test]
fn rides_on_postgresql_add_up() {
    let Some(server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    let (host, port) = (server.socket_directory().display().to_string(), server.port());
    let target = format!("{{kind: postgres, host: {host}, port: {port}}}");
    rides(&|stages| format!("name: t\nseed: 7\ntarget: {target}\nstages:\n{stages}\n"), &|text| {
        server.sql(text)
    });
    assert_eq!(server.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'rides'"), "0");
}

#[test]
fn rides_on_mariadb_add_up() {
    let Some(server) = Mariadb::start(&["innodb-flush-log-at-trx-commit=0"]) else { return };
    let socket = server.socket().display().to_string();
    let target = format!("{{kind: mariadb, host: {socket}, user: bench, password: bench, database: bench}}");
    rides(&|stages| format!("name: t\nseed: 7\ntarget: {target}\nstages:\n{stages}\n"), &|text| {
        server.sql(text)
    });
}
