//! Documents on databases, and what is wrong with them.

use crate::Databases;
use crate::dialect::Dialect;
use crate::job::{Endpoint, Isolation, Job, Purpose, Role, Tls};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, SourcePlan};
use tidemark_measure::pick::Pick;
use tidemark_plan::document;
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

pub(crate) fn read(text: &str) -> Result<Plan, Vec<String>> {
    let registry = Registry::new(vec![Arc::new(Databases)], Vec::new());
    let environment = Environment {
        registry: &registry,
        variable: &|name| (name == "TIDEMARK_SECRET_PASSWORD").then(|| "s3cret".to_owned()),
        file: &|_: &Path| Ok("from a file\n".to_owned()),
        document: &|_: &Path| Err(std::io::ErrorKind::NotFound.into()),
        device_size: &|_: &Path| Err(std::io::ErrorKind::NotFound.into()),
        bound: &|_| None,
        waited_for: &|| true,
    };
    let remarks = |found: Vec<tidemark_plan::diagnostic::Diagnostic>| {
        found.into_iter().map(|one| format!("{} | {}", one.message, one.help)).collect()
    };
    document::read(text, &environment).map(|read| read.plan).map_err(remarks)
}

fn first(target: &str, stage: &str) -> Work {
    let plan = read(&format!("name: t\ntarget: {target}\nstages:\n- {stage}\n"))
        .unwrap_or_else(|found| panic!("{found:?}"));
    plan.stages[0].works[0].clone()
}

#[track_caller]
fn refused(target: &str, stage: &str, expected: &str) {
    let found = read(&format!("name: t\ntarget: {target}\nstages:\n- {stage}\n")).unwrap_err().join("\n");
    assert!(found.contains(expected), "{found}");
}

fn job(work: &Work) -> &Job {
    Job::of(work).unwrap()
}

fn choices(work: &Work) -> &[Choice] {
    let SourcePlan::Mix { choices, pool: None, deck: false } = &work.load.source else { panic!() };
    choices
}

const PLAIN: &str = "{kind: postgres}";
const LOAD: &str = "load: {workload: pgbench/tpcb-like, for: 1s}";

#[test]
fn targets_are_read_from_keys_and_urls() {
    let target = |text: &str| job(&first(text, LOAD)).instances.first().clone();
    let plain = target(PLAIN);
    assert_eq!(
        (plain.dialect, plain.endpoints),
        (Dialect::Postgres, vec![Endpoint::Tcp("127.0.0.1".into(), 5432)])
    );
    assert_eq!(
        (plain.user.as_str(), plain.database.as_str(), plain.tls),
        ("postgres", "postgres", Tls::Prefer)
    );
    let full = target(
        "{kind: cockroach, url: \"postgres://anna@h:1/bench?sslmode=require\", password: \"${TIDEMARK_SECRET_PASSWORD}\", \
         database: other, timeout: 5s, prepared: false}",
    );
    assert_eq!((full.dialect, full.endpoints), (Dialect::Cockroach, vec![Endpoint::Tcp("h".into(), 1)]));
    assert_eq!((full.user.as_str(), full.database.as_str(), full.tls), ("anna", "other", Tls::Require));
    assert_eq!(full.password.unwrap().reveal(), "s3cret");
    assert!(!full.prepared && full.timeout_ns == 5_000_000_000);
    let socket = target("{kind: postgres, host: /run/pg, port: 5433}").endpoints;
    assert_eq!(socket, [Endpoint::Unix(PathBuf::from("/run/pg/.s.PGSQL.5433"))]);
    let several = target("{kind: postgres, endpoints: [a, \"b:1\", \"[::1]:2\"]}").endpoints;
    let tcp = |host: &str, port| Endpoint::Tcp(host.into(), port);
    assert_eq!(several, [tcp("a", 5432), tcp("b", 1), tcp("::1", 2)]);
    refused(
        "{kind: postgres, url: \"postgres://u:pw@h/d\"}",
        LOAD,
        "the URL contains a password | write it under `password`",
    );
    refused("{kind: postgres, url: \"mysql://h\"}", LOAD, "the scheme is 'mysql'");
    refused("{kind: mysql, url: \"postgres://h\"}", LOAD, "the scheme is 'postgres'");
    refused("{kind: mysql, url: \"http://h\"}", LOAD, "the scheme is 'http'");
    for kind in ["mysql", "mariadb"] {
        let mysql = target(&format!("{{kind: {kind}, url: \"mysql://anna@h/bench?sslmode=require\"}}"));
        assert_eq!((mysql.dialect, mysql.endpoints), (Dialect::Mysql, vec![Endpoint::Tcp("h".into(), 3306)]));
        assert_eq!(
            (mysql.user.as_str(), mysql.database.as_str(), mysql.tls),
            ("anna", "bench", Tls::Require)
        );
        let socket = target(&format!("{{kind: {kind}, host: /run/mysqld/mysqld.sock}}"));
        assert_eq!(socket.endpoints, [Endpoint::Unix(PathBuf::from("/run/mysqld/mysqld.sock"))]);
        assert_eq!((socket.user.as_str(), socket.database.as_str()), ("root", "root"));
    }
    refused("{kind: postgres, host: a, endpoints: [b]}", LOAD, "exclude each other");
    refused("postgres", LOAD, "needs settings");
}

#[test]
fn replicas_serve_loads_that_only_read() {
    let target = "{kind: postgres, host: a, replicas: [b, \"c:7\"], user: u}";
    let load = |more: &str| format!("load: {{workload: sysbench/oltp_read_only, clients: 3, for: 1s{more}}}");
    let work = first(target, &load(""));
    assert_eq!(job(&work).serving().names(), ["a:5432"], "the primary, unless the document says otherwise");
    let work = first(target, &load(", reads_from: replicas"));
    let serving = job(&work).serving();
    assert_eq!((serving.names(), work.load.workers), (vec!["b:5432".into(), "c:7".into()], 3));
    assert!(serving.iter().all(|one| one.user == "u" && one.replicas.is_empty()));
    let roles: Vec<_> = job(&work).servers().map(|(target, role)| (target.places(), role)).collect();
    let role = |place: &str, role| (place.to_owned(), role);
    assert_eq!(
        roles,
        [role("a:5432", Role::Primary), role("b:5432", Role::Replica), role("c:7", Role::Replica)]
    );
    for reads in [
        "pgbench/select-only",
        "sysbench/oltp_point_select",
        "ycsb/c",
        "kv, read_percent: 100%",
        "sql, transactions: [{name: x, read_only: true, statements: SELECT 1}]",
    ] {
        first(target, &format!("load: {{workload: {reads}, reads_from: replicas, for: 1s}}"));
    }
    for writes in [
        "pgbench/tpcb-like",
        "ycsb/b",
        "kv, read_percent: 99%",
        "sql, transactions: [{name: x, statements: SELECT 1}]",
    ] {
        let load = format!("load: {{workload: {writes}, reads_from: replicas, for: 1s}}");
        refused(target, &load, "is not declared to be read-only | choose a workload that only reads");
    }
    let reads = load(", reads_from: replicas");
    refused(PLAIN, &reads, "the target names none | name them in the target: `replicas:");
    refused(target, &load(", reads_from: replicas, isolation: serializable"), "no serializable transactions");
    refused("{kind: postgres, host: a, replicas: [b, b]}", &reads, "b:5432 is named twice");
    refused("{kind: postgres, host: a, replicas: a}", &reads, "a:5432 is named twice");
    refused("{kind: postgres, instances: [a, b], replicas: c}", LOAD, "exclude each other");
    refused("{kind: cockroach, host: a, replicas: b}", LOAD, "replicas");
}

#[test]
fn instances_share_everything_but_their_places() {
    let target = |text: &str| job(&first(text, LOAD)).instances.clone();
    let all = target("{kind: postgres, instances: \"10.0.0.1:{5432-5434}\", user: u, timeout: 5s}");
    assert_eq!(all.names(), ["10.0.0.1:5432", "10.0.0.1:5433", "10.0.0.1:5434"]);
    assert!(all.iter().all(|one| one.user == "u" && one.database == "u" && one.timeout_ns == 5_000_000_000));
    let listed = target("{kind: postgres, port: 7, instances: [\"a,b:1\", \"c/x\"]}");
    assert_eq!(listed.names(), ["a:7/postgres", "b:1/postgres", "c:7/x"]);
    for (text, expected) in [
        ("{kind: postgres, instances: [a, \"a:5432\"]}", "is an instance twice"),
        ("{kind: postgres, instances: a, host: b}", "exclude each other"),
        ("{kind: postgres, instances: a, endpoints: b}", "exclude each other"),
        ("{kind: postgres, instances: \"a{1}\"}", "has no range in its braces"),
    ] {
        refused(text, LOAD, expected);
    }
}

#[test]
fn each_instance_has_the_clients_and_the_loaders() {
    const THREE: &str = "{kind: postgres, instances: \"h:{1-3}\"}";
    let load = first(THREE, "load: {workload: pgbench/tpcb-like, clients: 5, for: 1s}");
    assert_eq!((load.load.workers, job(&load).instances.count()), (15, 3));
    let two = first(THREE, "load: {workload: pgbench/tpcb-like, clients: 5, instances: 2, for: 1s}");
    assert_eq!((two.load.workers, job(&two).instances.names()), (10, vec!["h:1".into(), "h:2".into()]));
    let fill = first(THREE, "prepare: {workload: pgbench/tpcb-like, scale: 10, loaders: 2}");
    let SourcePlan::Scan { spaces, .. } = fill.load.source else { panic!() };
    assert_eq!((fill.load.workers, spaces), (6, Some((1, 3))));
    let four = "load: {workload: kv, instances: 4, for: 1s}";
    refused(THREE, four, "is to run on 4 instances, and the target has 3");
    let many = "load: {workload: kv, clients: 400000, for: 1s}";
    refused(THREE, many, "`clients` come to 1200000 on 3 instances");
}

#[test]
fn a_load_has_clients_with_numbers_of_their_own() {
    let work = first(
        PLAIN,
        "load: {workload: pgbench/simple-update, scale: 3, clients: 5, isolation: serializable, tries: 2, for: 1s}",
    );
    assert_eq!((work.load.workers, work.load.depth, work.labels[0].label.as_str()), (5, 1, "simple-update"));
    let [choice] = choices(&work) else { panic!() };
    assert_eq!(
        (choice.division, choice.spaces.clone()),
        (Division::Spaces, Pick::Sequence { low: 1, high: 5 })
    );
    let settings = &job(&work).settings;
    assert_eq!(
        (settings.isolation, settings.tries, settings.savepoint),
        (Some(Isolation::Serializable), 2, false)
    );
    assert_eq!(job(&work).workload.options, serde_json::json!({"scale": 3}));
    assert!(job(&first("{kind: cockroach}", LOAD)).settings.savepoint);
    let weights: Vec<f64> = choices(&first(PLAIN, "load: {workload: kv, read_percent: 75%, for: 1s}"))
        .iter()
        .map(|choice| choice.weight)
        .collect();
    assert_eq!(weights, [0.75, 0.25], "what has no share is no action");
}

#[test]
fn terminals_have_the_pauses_of_the_specification() {
    let work = first(PLAIN, "load: {workload: tpcc, warehouses: 3, wait: 0.5, connections: 4, for: 1s}");
    assert_eq!((work.load.workers, work.load.connections), (30, Some(4)));
    let Pacing::Terminals { mean_ns, pauses } = &work.load.pacing else { panic!("{:?}", work.load.pacing) };
    let seconds = pauses.iter().map(|one| (one.keying_ns / 500_000_000, one.think_mean_ns / 500_000_000));
    assert_eq!(seconds.collect::<Vec<_>>(), [(18, 12), (3, 12), (2, 10), (2, 5), (2, 5), (18, 12)]);
    // 23 cards take 10 x 30 + 10 x 15 + 12 + 7 + 7 = 476 s.
    assert_eq!(*mean_ns, 476_000_000_000 / 2 / 23);
    let without = first(PLAIN, "load: {workload: tpcc, warehouses: 3, for: 1s}");
    assert_eq!((without.load.workers, without.load.connections), (1, None));
    assert_eq!(without.load.pacing, Pacing::BACK_TO_BACK);
    let options = |work: &Work| job(work).workload.options["home"].clone();
    assert_eq!((options(&work), options(&without)), ("fixed".into(), "all".into()));
}

#[test]
fn data_sets_are_loaded_in_chunks_and_dropped() {
    let fill = first(PLAIN, "prepare: {workload: pgbench/tpcb-like, scale: 10, loaders: 2}");
    assert_eq!((fill.load.workers, job(&fill).purpose), (2, Purpose::Fill { fresh: false }));
    let SourcePlan::Scan { items: Some((0, last)), .. } = fill.load.source else { panic!() };
    assert!(last > 10, "{last}");
    let drop = first(PLAIN, "cleanup: {workload: pgbench/tpcb-like}");
    assert_eq!((drop.load.workers, job(&drop).purpose), (1, Purpose::Drop));
}

#[test]
fn options_belong_to_their_workload() {
    for (stage, expected) in [
        ("load: {workload: pgbench/tpcb-like, tables: 3, for: 1s}", "`tables` does not apply here"),
        ("load: {workload: pgbench/tpc, for: 1s}", "'pgbench/tpc' is unknown"),
        ("load: {clients: 2, for: 1s}", "no `workload`"),
        ("load: {workload: kv, threads: 3, for: 1s}", "did you mean `clients`?"),
        ("load: {workload: kv, read_percent: 80%, del_percent: 30%, for: 1s}", "more than 100 % together"),
        ("load: {workload: sysbench/oltp_read_write, table_size: 0, for: 1s}", "out of range"),
        ("init: {}", "does not apply to databases"),
        (
            "load: {workload: kv, clients: 4, connections: 5, for: 1s}",
            "5 connections are more than the 4 clients",
        ),
        ("load: {workload: kv, clients: 4, connections: 2, rate: 9/s, for: 1s}", "with a `rate`"),
        ("load: {workload: connect, clients: 4, connections: 2, for: 1s}", "keep no connections"),
        (
            "load: {workload: tpcc, wait: 1, think: 1s, for: 1s}",
            "the terminals of tpcc have pauses of their own",
        ),
        (
            "load: {workload: tpcc, wait: 1, rate: 5/s, for: 1s}",
            "the terminals of tpcc have pauses of their own",
        ),
        ("load: {workload: tpcc, wait: 0.0001, for: 1s}", "more than three decimals"),
        ("load: {workload: tpcc, wait: nan, for: 1s}", "no number from 0 to 10"),
    ] {
        refused(PLAIN, stage, expected);
    }
    for key in ["pipeline", "savepoint"] {
        let stage = format!("load: {{workload: kv, {key}: true, for: 1s}}");
        refused("{kind: mysql}", &stage, &format!("`{key}` does not apply to MySQL"));
    }
    let routines = "load: {workload: tpcc, mode: routines, ledger: true, for: 1s}";
    refused("{kind: mysql}", routines, "`ledger` does not go with routines");
    assert!(read(&format!("name: t\ntarget: {PLAIN}\nstages:\n- {routines}\n")).is_ok());
}

#[test]
fn your_own_sql_has_variables() {
    let text = "load: {workload: sql, for: 1s, transactions: [{name: sell, weight: 3, set: {item: 1-9}, text: {note: 12}, statements: \
                [\"UPDATE s SET n = :note WHERE i = :item\", \"SELECT :item::int\"]}, {name: look, commits: each, read_only: true, \
                statements: SELECT 1}]}";
    let work = first(PLAIN, text);
    let labels: Vec<_> =
        work.labels.iter().map(|label| (label.label.as_str(), label.weight.round())).collect();
    assert_eq!(labels, [("sell", 75.0), ("look", 25.0)]);
    let options = job(&work).workload.options.to_string();
    assert!(
        options.contains("UPDATE s SET n = $1 WHERE i = $2") && options.contains("SELECT $1::int"),
        "{options}"
    );
    refused(
        PLAIN,
        "load: {workload: sql, for: 1s, transactions: [{name: a, statements: [\"SELECT :x\"]}]}",
        "uses `:x`, which is not set",
    );
    refused(PLAIN, "load: {workload: sql, for: 1s}", "`transactions`");
}

#[test]
fn a_plan_is_forecast_in_rows_bytes_and_statements() {
    let stages = "- prepare: {workload: pgbench/tpcb-like, scale: 2}\n- load: {workload: pgbench/tpcb-like, scale: 2, clients: 3, \
                  total_operations: 100}\n- cleanup: {workload: pgbench/tpcb-like, scale: 2}";
    let plan = read(&format!("name: t\ntarget: {PLAIN}\nstages:\n{stages}\n")).unwrap();
    let registry = Registry::new(vec![Arc::new(Databases)], Vec::new());
    let forecast = tidemark_plan::forecast::forecast(&plan, &registry);
    let told: Vec<String> =
        forecast.stages.iter().map(|stage| stage.works[0].actions[0].describe()).collect();
    assert_eq!(
        told,
        [
            "loads about 200\u{202f}022 rows, about 25.6 MB, in 15 operations",
            "sends about 700 statements (about 25.6 MB), in 100 operations",
            "drops 4 tables, in 1 operation",
        ]
    );
    assert_eq!((forecast.connections, forecast.notes.len()), (4, 0), "{:?}", forecast.notes);
    let alone = read(&format!("name: t\ntarget: {PLAIN}\nstages:\n- {LOAD}\n")).unwrap();
    let notes = tidemark_plan::forecast::forecast(&alone, &registry).notes;
    assert!(notes.iter().any(|note| note.topic == "data-not-loaded"), "{notes:?}");
}

#[test]
fn a_password_that_others_may_read_is_remarked_on() {
    let registry = Registry::new(vec![Arc::new(Databases)], Vec::new());
    let remarks = |more: &str| {
        let target = format!("{{kind: postgres, user: u, database: d{more}}}");
        let plan = read(&format!("name: t\ntarget: {target}\nstages:\n- {LOAD}\n")).unwrap();
        let notes = tidemark_plan::forecast::forecast(&plan, &registry).notes;
        notes.into_iter().find(|note| note.topic == "password-unprotected").map(|note| note.text)
    };
    for (more, how) in [
        (", tls: disable", "the connection is not encrypted"),
        ("", "may be unencrypted, and no certificate is checked"),
        (", tls: require", "no certificate is checked"),
    ] {
        let said = remarks(&format!(", host: db.example, password: hunter2{more}")).unwrap();
        assert!(said.contains(how) && said.contains("verify-full") && !said.contains("hunter2"), "{said}");
    }
    for safe in [
        ", host: db.example, password: hunter2, tls: verify-full",
        ", host: db.example",
        ", host: 127.0.0.1, password: hunter2",
        ", host: /run/postgresql, password: hunter2",
    ] {
        assert_eq!(remarks(safe), None, "{safe}");
    }
}
