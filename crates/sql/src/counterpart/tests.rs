//! Which loads another program does as well, and how it is told to.

use super::command::Invocation;
use super::program::Found;
use super::*;
use crate::document::tests::read;
use std::sync::Arc;
use tidemark_plan::plan::Plan;
use tidemark_plan::registry::Registry;

const POSTGRES: &str =
    "{kind: postgres, host: 127.0.0.1, port: 5433, user: u, password: s3cret, database: d}";
const MARIADB: &str =
    "{kind: mariadb, host: 127.0.0.1, user: u, password: s3cret, database: d, tls: disable}";

fn plan(target: &str, load: &str) -> Plan {
    let text = format!("name: t\ntarget: {target}\nstages:\n- load: {{{load}, clients: 4, warm_up: 2s}}\n");
    read(&text).unwrap_or_else(|found| panic!("{found:?}"))
}

fn checked(target: &str, load: &str) -> Result<Plan, String> {
    let registry = Registry::new(vec![Arc::new(crate::Databases)], Vec::new());
    tidemark_plan::cross_check(plan(target, load), &registry, 2)
}

/// The command line for 5 seconds, by a program of this version.
fn told(target: &str, load: &str, version: &str) -> (Program, String) {
    let plan = plan(target, load);
    let work = &plan.stages[0].works[0];
    let job = Job::of(work).unwrap();
    let equal = equal(work, job).unwrap();
    let found = Found { program: equal.program, path: "/bin/true".into(), version: version.into() };
    let invocation = Invocation::new(found, &equal, job, work.load.workers);
    let command = format!("{:?}", invocation.command(5).get_args().collect::<Vec<_>>());
    assert!(!command.contains("s3cret"), "{command}");
    let secret = |(name, value): (&std::ffi::OsStr, Option<&std::ffi::OsStr>)| {
        value.is_some_and(|value| value == "s3cret").then(|| name.to_owned())
    };
    let secrets: Vec<_> = invocation.command(5).get_envs().filter_map(secret).collect();
    let variable = if target.contains("postgres") { "PGPASSWORD" } else { "MYSQL_PWD" };
    assert_eq!(secrets, [variable]);
    (equal.program, invocation.arguments(5).join(" "))
}

#[test]
fn a_load_alternates_with_the_program_whose_transactions_it_does() {
    let plan = checked(POSTGRES, "workload: pgbench/tpcb-like, for: 5s").unwrap();
    let names: Vec<&str> = plan.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["load native #1", "load pgbench #1", "load pgbench #2", "load native #2"]);
    let by: Vec<Program> =
        plan.stages.iter().map(|stage| Job::of(&stage.works[0]).unwrap().program).collect();
    assert_eq!(by, [Program::Tidemark, Program::Pgbench, Program::Pgbench, Program::Tidemark]);
    let cell = plan.stages[2].cell.clone().unwrap();
    assert_eq!(
        (cell.engine.as_str(), cell.repeat, cell.repeats, cell.sweep.as_str()),
        ("pgbench", 2, 2, "load")
    );
    let plan = checked(MARIADB, "workload: sysbench/oltp_read_write, for: 5s").unwrap();
    assert_eq!(plan.stages[1].cell.clone().unwrap().engine, "sysbench");
    for (index, stage) in plan.stages.iter().enumerate() {
        assert_eq!(stage.works[0].load.stream, [index as u64, 0]);
    }
}

#[test]
fn the_programs_are_told_the_same_load() {
    let (program, line) =
        told(POSTGRES, "workload: pgbench/simple-update, for: 5s, tries: 7", "pgbench (PostgreSQL) 15.1");
    assert_eq!(program, Program::Pgbench);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
    assert_eq!(
        line,
        format!(
            "-n -M prepared -P 1 --builtin=simple-update -c4 -j{threads} --max-tries=7 -h 127.0.0.1 -p 5433 -U u -T5"
        )
    );
    let (_, line) = told(POSTGRES, "workload: pgbench/select-only, for: 5s", "pgbench (PostgreSQL) 14.9");
    assert!(line.contains("--builtin=select-only") && !line.contains("tries"), "{line}");
    let sysbench = |target, load: &str| told(target, &format!("{load}, for: 5s"), "sysbench 1.0.20").1;
    assert_eq!(
        sysbench(
            POSTGRES,
            "workload: sysbench/oltp_75_25, tables: 3, table_size: 500, distribution: special"
        ),
        "oltp_read_write --tables=3 --table-size=500 --rand-type=special --point-selects=8 --simple-ranges=1 --sum-ranges=1 \
         --order-ranges=1 --distinct-ranges=1 --index-updates=1 --non-index-updates=1 --delete-inserts=1 --range-size=100 \
         --skip-trx=off --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port=5433 --pgsql-user=u --pgsql-db=d --threads=4 \
         --events=0 --report-interval=1 --db-ps-mode=auto --time=5 run"
    );
    let socket = "{kind: mariadb, host: /run/db.sock, user: u, password: s3cret, database: d}";
    assert_eq!(
        sysbench(socket, "workload: sysbench/oltp_point_select"),
        "oltp_point_select --tables=1 --table-size=10000 --rand-type=uniform --db-driver=mysql --mysql-socket=/run/db.sock \
         --mysql-user=u --mysql-db=d --threads=4 --events=0 --report-interval=1 --db-ps-mode=auto --time=5 run"
    );
    let scripts = [
        ("read_only", "oltp_read_only"),
        ("write_only", "oltp_write_only"),
        ("update_index", "oltp_update_index"),
        ("update_non_index", "oltp_update_non_index"),
        ("insert", "oltp_insert"),
        ("delete", "oltp_delete"),
        ("read_write, index_updates: 0, non_index_updates: 0, delete_inserts: 0", "oltp_read_only"),
    ];
    for (name, script) in scripts {
        let line = sysbench(MARIADB, &format!("workload: sysbench/oltp_{name}"));
        assert!(line.starts_with(&format!("{script} ")), "{name}: {line}");
    }
}

#[test]
fn what_no_program_does_is_refused_with_the_reason() {
    let refused = |target: &str, load: &str, expected: &str| {
        let why = checked(target, load).unwrap_err();
        assert!(why.starts_with("The stage load ") && why.contains(expected) && why.ends_with('.'), "{why}");
    };
    let plain = "workload: pgbench/tpcb-like, for: 5s";
    for (load, expected) in [
        ("workload: tpcc, for: 5s", "does tpcc, which neither pgbench nor sysbench does"),
        ("workload: bank/transfer, for: 5s", "does bank/transfer, which neither"),
        ("workload: sysbench/oltp_read_write, distribution: zipfian, for: 5s", "another `distribution`"),
        ("workload: sysbench/oltp_read_write, tries: 1, for: 5s", "remove `tries: 1`"),
        ("workload: pgbench/tpcb-like, for: 5s, rate: 100/s", "remove `rate`"),
        ("workload: pgbench/tpcb-like, for: 5s, think: 1ms", "remove `think`"),
        ("workload: pgbench/tpcb-like, for: 5s, ramp_up: 1s", "remove `ramp_up`"),
        ("workload: pgbench/tpcb-like, for: 5s, ramp_down: 1s", "remove `ramp_down`"),
        ("workload: pgbench/tpcb-like, for: 50s, until_steady: 5s", "remove `until_steady`"),
        ("workload: pgbench/tpcb-like, total_operations: 100", "does not end by time alone"),
        ("workload: pgbench/tpcb-like, for: 1500ms", "in whole seconds"),
        ("workload: pgbench/tpcb-like, for: 5s, isolation: serializable", "remove `isolation`"),
        ("workload: pgbench/tpcb-like, for: 5s, savepoint: true", "remove `savepoint`"),
        ("workload: pgbench/tpcb-like, for: 5s, pipeline: true", "remove `pipeline`"),
        ("workload: pgbench/tpcb-like, for: 5s, ledger: true", "remove `ledger`"),
    ] {
        refused(POSTGRES, load, expected);
    }
    refused(MARIADB, plain, "pgbench cannot reach");
    refused("{kind: cockroach}", plain, "is on CockroachDB");
    refused("{kind: postgres, prepared: false}", plain, "remove `prepared: false`");
    let on_replicas = "workload: pgbench/select-only, for: 5s, reads_from: replicas";
    refused("{kind: postgres, replicas: b}", on_replicas, "remove `reads_from`");
    refused("{kind: postgres, instances: \"a,b\"}", plain, "`instances: 1`");
    let on_mysql = "workload: sysbench/oltp_read_write, for: 5s";
    refused("{kind: mysql, user: u, database: d}", on_mysql, "set `tls: disable`");
    assert!(checked(MARIADB, on_mysql).is_ok());
}
