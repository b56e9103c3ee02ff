//! The SQL engine against a real PostgreSQL, which each test starts for itself.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{databases, examples, last, options, refusal, run, try_run};
use std::sync::mpsc;
use std::time::Duration;
use tidemark_control::execute::Options;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Run, State};
use tidemark_testing::postgres::Postgres;

/// A document on the server's Unix socket with these stages.
fn document(server: &Postgres, stages: &str) -> String {
    format!(
        "name: t\nseed: 7\ntarget: {{kind: postgres, host: {}, port: {}}}\nstages:\n{stages}\n",
        server.socket_directory().display(),
        server.port()
    )
}

/// How often statements that begin so were called, by pg_stat_statements.
fn calls(server: &Postgres, beginning: &str) -> u64 {
    let sql =
        format!("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE '{beginning}%'");
    server.sql(&sql).parse().unwrap()
}

fn forget_statements(server: &Postgres) {
    server.sql("SELECT pg_stat_statements_reset()");
}

const FILL: &str = "- prepare: {workload: pgbench/tpcb-like, loaders: 3}";

#[test]
fn pgbench_is_loaded_once_run_and_adds_up() {
    let Some(server) = Postgres::start(&[]) else { return };
    server.sql("CREATE EXTENSION pg_stat_statements");
    let load = |workload: &str| {
        format!("- load: {{workload: pgbench/{workload}, clients: 4, total_operations: 500}}")
    };
    let first = run(&document(&server, FILL));
    assert!(last(&first).tally.ok > 1 && last(&first).tally.bytes > 100_000, "{:?}", last(&first).tally.ok);
    assert_eq!(
        server.sql("SELECT count(*), min(aid), max(aid), max(bid), sum(abalance) FROM pgbench_accounts"),
        "100000|1|100000|1|0"
    );
    assert_eq!(server.sql("SELECT count(*), max(bid) FROM pgbench_tellers"), "10|1");
    let keys =
        "SELECT count(*) FROM pg_constraint WHERE contype = 'p' AND conrelid::regclass::text LIKE 'pgbench%'";
    assert_eq!(server.sql(keys), "3", "keys are made");

    forget_statements(&server);
    let done = run(&document(&server, &load("tpcb-like")));
    assert_eq!(
        (last(&done).label.as_str(), last(&done).tally.ok, last(&done).tally.failed()),
        ("tpcb-like", 500, 0)
    );
    for statement in [
        "UPDATE pgbench_accounts",
        "SELECT abalance",
        "UPDATE pgbench_tellers",
        "UPDATE pgbench_branches",
        "INSERT INTO pgbench_history",
    ] {
        assert_eq!(calls(&server, statement), 500, "{statement}");
    }
    let found = databases(&done.stages[0]);
    let [database] = found.servers.as_slice() else { panic!("{found:?}") };
    // PostgreSQL does not count BEGIN and COMMIT of prepared statements one by one, but it counts transactions: these, and
    // the few of the checks around the load.
    assert!(database.commits.is_some_and(|commits| (500..600).contains(&commits)), "{database:?}");
    assert!(
        database.wal_bytes.is_some_and(|bytes| bytes > 0) && database.blocks_hit.is_some(),
        "{database:?}"
    );
    assert_eq!(database.cache_bytes, Some(32 << 20));
    let durable: Vec<_> = database.settings.iter().filter(|setting| setting.durable == Some(true)).collect();
    assert_eq!(durable.len(), 3, "fsync, full_page_writes, synchronous_commit: {durable:?}");
    let proof = done.stages[0].proof.as_ref().unwrap();
    assert!(
        !proof.devices.is_empty() || !proof.unchecked.is_empty(),
        "the server's device is counted, or why not is said"
    );

    run(&document(&server, &load("simple-update")));
    assert_eq!(calls(&server, "UPDATE pgbench_tellers"), 500);
    assert_eq!(calls(&server, "INSERT INTO pgbench_history"), 1000);
    run(&document(&server, &load("select-only")));
    assert_eq!(calls(&server, "SELECT abalance"), 1500);
    let checked = run(&document(&server, &load("tpcb-like").replace("clients", "checks: all, clients")));
    let checks = &databases(&checked.stages[0]).checks;
    // The updates of the small tables were left out once, so only the accounts agree with the history.
    assert_eq!(checks.iter().map(|check| check.broken).collect::<Vec<_>>(), [Some(0), Some(1), Some(1)]);
    let sums =
        "SELECT (SELECT sum(delta) FROM pgbench_history) = (SELECT sum(abalance) FROM pgbench_accounts)";
    assert_eq!(server.sql(sums), "t");

    let again = run(&document(&server, &format!("{FILL}\n{}", load("select-only"))));
    assert_eq!(server.sql("SELECT count(*) FROM pgbench_history"), "1500", "the data set is kept");
    assert!(again.stages[0].works[0].operations.iter().all(|operation| operation.tally.total() == 0));
    let fresh = "- prepare: {workload: pgbench/tpcb-like, fresh: true}";
    run(&document(&server, fresh));
    assert_eq!(server.sql("SELECT count(*) FROM pgbench_history"), "0");
    run(&document(&server, "- prepare: {workload: pgbench/tpcb-like, scale: 2}"));
    assert_eq!(
        server.sql("SELECT count(*) FROM pgbench_accounts"),
        "200000",
        "other options, another data set"
    );
    run(&document(&server, "- cleanup: {workload: pgbench/tpcb-like, scale: 2}"));
    assert_eq!(server.sql("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'pgbench%'"), "0");
}

#[test]
fn the_same_seed_gives_the_same_transactions_on_any_number_of_threads() {
    let Some(server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    let load = "- load: {workload: pgbench/simple-update, clients: 6, total_operations: 600}";
    let history = |threads: u32| {
        server
            .sql("DROP TABLE IF EXISTS pgbench_history, pgbench_accounts, pgbench_tellers, pgbench_branches");
        server.sql("DROP TABLE IF EXISTS tidemark_data, tidemark_chunks");
        let text = document(&server, &format!("{FILL}\n{load}"));
        let run = try_run(&text, &options(threads)).unwrap();
        assert_eq!(last(&run).tally.ok, 600);
        server.sql("SELECT md5(string_agg(aid || '/' || tid || '/' || bid || '/' || delta, ',' ORDER BY aid, tid, delta)) FROM pgbench_history")
    };
    let (one, three) = (history(1), history(3));
    assert_eq!(one, three);
    assert_eq!(one.len(), 32);
}

#[test]
fn an_interrupted_load_goes_on_and_foreign_tables_stay() {
    let Some(server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    run(&document(&server, FILL));
    // As if the loader had been killed: a chunk is missing, and what comes behind the last one was not done.
    server.sql("DELETE FROM tidemark_chunks WHERE part = 2 AND chunk = (SELECT max(chunk) FROM tidemark_chunks WHERE part = 2)");
    server.sql("DELETE FROM tidemark_chunks WHERE part = 2 AND chunk < 0");
    server.sql("ALTER TABLE pgbench_accounts DROP CONSTRAINT pgbench_accounts_pkey");
    server.sql("UPDATE tidemark_data SET complete = 0");
    // Somebody was making the keys.
    server.sql("INSERT INTO tidemark_chunks VALUES ('pgbench', 2, -2)");
    let chunks: u64 =
        server.sql("SELECT count(*) FROM tidemark_chunks WHERE part = 2 AND chunk >= 0").parse().unwrap();
    let gone =
        "WITH gone AS (DELETE FROM pgbench_accounts WHERE aid > 98304 RETURNING 1) SELECT count(*) FROM gone";
    assert_eq!((chunks, server.sql(gone).as_str()), (6, "1696"), "chunks have 16384 accounts");
    let load = "- load: {workload: pgbench/select-only, total_operations: 10}";
    let refused = try_run(&document(&server, load), &options(1));
    let said = format!("{:?}", refused.map(|run| run.stages[0].reason.clone()));
    assert!(said.contains("only a part of it"), "{said}");
    let resumed = run(&document(&server, FILL));
    assert!(last(&resumed).tally.bytes < 1 << 20, "one chunk is loaded, and no more");
    let rows =
        "SELECT count(*), count(DISTINCT aid), (SELECT complete FROM tidemark_data) FROM pgbench_accounts";
    assert_eq!(server.sql(rows), "100000|100000|1");
    let keys = "SELECT count(*) FROM pg_constraint WHERE conname = 'pgbench_accounts_pkey'";
    assert_eq!(server.sql(keys), "1");
    run(&document(&server, load));
    // With other options, what is in the books goes, whatever its number, and nothing else.
    let some = |tables: u32| {
        format!("- prepare: {{workload: sysbench/oltp_read_write, tables: {tables}, table_size: 100}}")
    };
    let there =
        "SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE tablename LIKE 'sbtest%'";
    run(&document(&server, &some(2)));
    server.sql("CREATE TABLE sbtest3 (mine int)");
    let said = refusal(&document(&server, &some(3)), &options(1));
    assert!(said.contains("did not make (sbtest3)"), "{said}");
    run(&document(&server, &some(1)));
    assert_eq!(server.sql(there), "sbtest1 sbtest3");
    run(&document(&server, "- cleanup: {workload: sysbench/oltp_read_write, tables: 3, table_size: 100}"));
    assert_eq!(server.sql(there), "sbtest3");

    let Some(other) = Postgres::start(&[]) else { return };
    other.sql("CREATE TABLE pgbench_accounts (mine int)");
    let refused = try_run(&document(&other, FILL), &options(1));
    let said = format!("{:?}", refused.map(|run| run.stages[0].reason.clone()));
    assert!(said.contains("did not make") && said.contains("--allow-destroy sql:postgres"), "{said}");
    assert_eq!(other.sql("SELECT count(*) FROM pgbench_accounts"), "0", "it is still there");
    let allowed = Options { allow_destroy: vec!["sql:postgres".into()], ..options(1) };
    try_run(&document(&other, FILL), &allowed).unwrap();
    assert_eq!(other.sql("SELECT count(*) FROM pgbench_accounts"), "100000");
}

#[test]
fn conflicts_are_tried_again_until_the_bank_adds_up() {
    // Transfers lock two accounts in any order: many deadlocks, each of which waits for as long as `deadlock_timeout`.
    let Some(server) = Postgres::start(&["synchronous_commit=off", "deadlock_timeout=20ms"]) else { return };
    run(&document(&server, "- prepare: {workload: bank/read-and-write, rows: 8}"));
    let load = |isolation: &str, count: u32| {
        format!(
            "- load: {{workload: bank/read-and-write, rows: 8, audits: 20%, clients: 8, total_operations: {count}, isolation: \
             {isolation}, tries: 1000, back_off_most: 5ms, allowed_failures: 100%}}"
        )
    };
    let serial = run(&document(&server, &load("serializable", 600)));
    let tally = &last(&serial).tally;
    assert_eq!(tally.failed(), 0, "{:?}", examples(&serial));
    assert!(tally.retries > 0, "eight clients on eight accounts conflict");
    assert_eq!(server.sql("SELECT sum(balance) FROM bank"), "0");
    let checks = &databases(&serial.stages[0]).checks;
    assert_eq!(checks.iter().map(|check| check.broken).collect::<Vec<_>>(), [Some(0)]);
    let aborts = &databases(&serial.stages[0]).aborts;
    let retries: u64 =
        serial.stages[0].works[0].operations.iter().map(|operation| operation.tally.retries).sum();
    assert_eq!(
        aborts.iter().map(|one| one.count).sum::<u64>(),
        retries,
        "every retry was an abort of a known class"
    );

    // What reads and then writes without isolation loses updates: the invariant must be seen to break.
    let lost = try_run(&document(&server, &load("read-committed", 3000)), &options(2)).unwrap();
    let broken: u64 = lost.stages[0].works[0]
        .operations
        .iter()
        .map(|operation| operation.tally.faults.of(Fault::BrokenInvariant))
        .sum();
    assert!(broken > 0, "{:?}", examples(&lost));
    assert_eq!(lost.stages[0].state, State::Failed, "whatever failures the document allows");
}

#[test]
fn events_of_sysbench_that_insert_the_same_row_are_begun_anew() {
    let Some(server) = Postgres::start(&["synchronous_commit=off", "deadlock_timeout=20ms"]) else { return };
    let table = "workload: sysbench/oltp_write_only, tables: 1, table_size: 20, delete_inserts: 3, index_updates: 0, \
                 non_index_updates: 0";
    run(&document(&server, &format!("- prepare: {{{table}}}")));
    let load =
        format!("- load: {{{table}, clients: 8, total_operations: 600, tries: 1000, back_off_most: 5ms}}");
    let done = run(&document(&server, &load));
    assert_eq!((last(&done).tally.ok, last(&done).tally.failed()), (600, 0), "{:?}", examples(&done));
    let aborts = &databases(&done.stages[0]).aborts;
    let raced = aborts.iter().find(|one| one.fault == Fault::Serialization).map_or(0, |one| one.count);
    assert!(raced > 0, "{aborts:?}");
    assert_eq!(server.sql("SELECT count(*) FROM sbtest1"), "20");
}

#[test]
fn a_server_that_is_killed_is_an_outage_and_nothing_acknowledged_is_lost() {
    let Some(mut server) = Postgres::start(&[]) else { return };
    run(&document(&server, FILL));
    let load =
        "- load: {workload: pgbench/simple-update, clients: 6, for: 6s, drain: 5s, allowed_failures: 100%}";
    let text = document(&server, load);
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(Box::new(try_run(&text, &options(2)))).is_ok());
    let rows = |server: &Postgres| server.sql("SELECT count(*) FROM pgbench_history").parse::<u64>().unwrap();
    while rows(&server) < 50 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    std::thread::sleep(Duration::from_millis(700));
    server.restart();
    let before = rows(&server);
    let run = (*result.recv_timeout(Duration::from_secs(120)).unwrap()).unwrap();
    let tally = &last(&run).tally;
    assert!(rows(&server) > before, "the load went on when the server was back");
    assert!(tally.failed() > 0);
    // What the window does not count has been done all the same, so what it counts is a lower bound.
    assert!(rows(&server) >= tally.ok, "{} rows, {} acknowledged", rows(&server), tally.ok);
    let attempts_a_second = tally.failed() / 6;
    assert!(attempts_a_second < 6 * 20, "{} failures: a dead server is not hammered", tally.failed());
}

#[test]
fn every_way_to_prove_who_one_is() {
    let Some(mut server) = Postgres::start(&[]) else { return };
    server.sql("SET password_encryption = 'scram-sha-256'; CREATE ROLE anna LOGIN PASSWORD 'pässword'");
    server.sql("SET password_encryption = 'md5'; CREATE ROLE bert LOGIN PASSWORD 'b'");
    server.sql("SET password_encryption = 'md5'; CREATE ROLE carl LOGIN PASSWORD 'c'");
    server.sql("CREATE ROLE dora LOGIN");
    let rules = "local all postgres trust\nhost all anna 127.0.0.1/32 scram-sha-256\nhost all bert 127.0.0.1/32 md5\n\
                 host all carl 127.0.0.1/32 password\nhost all dora 127.0.0.1/32 trust\n";
    std::fs::write(server.data_directory().join("pg_hba.conf"), rules).unwrap();
    let certificate = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let data = server.data_directory();
    std::fs::write(data.join("server.crt"), certificate.cert.pem()).unwrap();
    std::fs::write(data.join("server.key"), certificate.signing_key.serialize_pem()).unwrap();
    for name in ["server.crt", "server.key"] {
        let path = data.join(name);
        let mode = std::process::Command::new("chmod").arg("600").arg(&path).status();
        let owner = std::process::Command::new("chown").arg("--reference").arg(&data).arg(&path).status();
        assert!(mode.unwrap().success() && owner.unwrap().success());
    }
    server.sql("ALTER SYSTEM SET ssl = on");
    server.kill();
    server.restart();
    let connect = |user: &str, more: &str| {
        let text = format!(
            "name: t\ntarget: {{kind: postgres, port: {}, user: {user}, database: postgres{more}}}\nstages:\n- cleanup: \
             {{workload: pgbench/tpcb-like}}\n",
            server.port()
        );
        try_run(&text, &options(1)).map(|_| ())
    };
    for (user, more) in [
        ("anna", ", password: pässword"),
        ("bert", ", password: b, tls: require"),
        ("carl", ", password: c, tls: disable"),
        ("dora", ""),
    ] {
        assert_eq!(connect(user, more), Ok(()), "{user}");
    }
    let trusted = format!(", tls: verify-full, ca_file: {}", data.join("server.crt").display());
    assert_eq!(connect("dora", &trusted), Ok(()));
    for (user, more, expected) in [
        ("anna", ", password: wrong", "password authentication failed"),
        ("anna", "", "asks for a password"),
        ("bert", ", password: B", "pg_hba.conf"),
        ("nobody", ", tls: disable", "no pg_hba.conf entry"),
        ("dora", ", tls: verify-full", "TLS failed"),
    ] {
        let said = connect(user, more).unwrap_err();
        assert!(said.contains(expected) && !said.contains("wrong;"), "{user}: {said}");
    }
    let gone = server.port();
    server.kill();
    let text = format!("name: t\ntarget: {{kind: postgres, port: {gone}}}\nstages:\n- {}\n", &FILL[2..]);
    let said = try_run(&text, &options(1)).unwrap_err();
    assert!(said.contains("connection refused") && said.contains("check that the server runs"), "{said}");
}

#[test]
fn sysbench_does_what_its_definition_says() {
    let Some(server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    server.sql("CREATE EXTENSION pg_stat_statements");
    let sized = "tables: 2, table_size: 5k";
    run(&document(&server, &format!("- prepare: {{workload: sysbench/oltp_read_write, {sized}}}")));
    assert_eq!(
        server.sql("SELECT count(*), min(id), max(id), min(length(c)), min(length(pad)) FROM sbtest2"),
        "5000|1|5000|119|59"
    );
    let event = |workload: &str, more: &str| {
        forget_statements(&server);
        let load = format!(
            "- load: {{workload: sysbench/{workload}, {sized}, clients: 3, total_operations: 60{more}}}"
        );
        let done = run(&document(&server, &load));
        assert_eq!((last(&done).tally.ok, last(&done).tally.failed()), (60, 0), "{workload}");
        let count = |beginning: &str| calls(&server, beginning) / 60;
        let reads = [
            count("SELECT c FROM % WHERE id = "),
            count("SELECT c FROM % BETWEEN $1 AND $2"),
            count("SELECT SUM"),
            count("SELECT DISTINCT"),
        ];
        let writes = [count("UPDATE % SET k"), count("UPDATE % SET c"), count("DELETE"), count("INSERT")];
        let commits = databases(&done.stages[0]).servers[0].commits.unwrap();
        assert!((60..160).contains(&commits), "one transaction each: {commits}");
        (reads, writes)
    };
    // Ranges with and without ORDER BY count together here.
    assert_eq!(event("oltp_read_write", ""), ([10, 2, 1, 1], [1, 1, 1, 1]));
    assert_eq!(event("oltp_read_only", ", distribution: special"), ([10, 2, 1, 1], [0; 4]));
    assert_eq!(event("oltp_write_only", ", pipeline: true"), ([0; 4], [1, 1, 1, 1]));
    assert_eq!(event("oltp_75_25", ""), ([8, 2, 1, 1], [1, 1, 1, 1]));
    assert_eq!(event("oltp_point_select", ", distribution: zipfian"), ([1, 0, 0, 0], [0; 4]));
    assert_eq!(event("oltp_update_index", ""), ([0; 4], [1, 0, 0, 0]));
    assert_eq!(event("oltp_update_non_index", ""), ([0; 4], [0, 1, 0, 0]));
    assert_eq!(event("oltp_delete", ""), ([0; 4], [0, 0, 1, 0]));
    assert_eq!(event("oltp_insert", ""), ([0; 4], [0, 0, 0, 1]));
    assert_eq!(server.sql("SELECT min(id) > 5000 AND count(*) > 0 FROM (SELECT id FROM sbtest1 UNION ALL SELECT id FROM sbtest2) a WHERE id > 5000"), "t");
}

#[test]
fn kv_ycsb_and_your_own_sql_run() {
    let Some(server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    server.sql("CREATE EXTENSION pg_stat_statements");
    run(&document(
        &server,
        "- prepare: {workload: kv, insert_count: 2k, min_block_bytes: 10, max_block_bytes: 300}",
    ));
    assert_eq!(
        server.sql("SELECT count(*), min(length(v)) >= 10, max(length(v)) <= 300 FROM kv"),
        "2000|t|t"
    );
    let kv = "- load: {workload: kv, insert_count: 2k, min_block_bytes: 10, max_block_bytes: 300, read_percent: 50%, del_percent: \
              10%, span_percent: 10%, distribution: zipfian, clients: 3, total_operations: 2000}";
    let done = run(&document(&server, kv));
    let counts: Vec<(String, u64)> =
        done.stages[0].works[0].operations.iter().map(|one| (one.label.clone(), one.tally.ok)).collect();
    for (label, share) in [("read", 0.5), ("write", 0.3), ("delete", 0.1), ("span", 0.1)] {
        let (_, count) = counts.iter().find(|(known, _)| known == label).unwrap();
        assert!((*count as f64 / 2000.0 - share).abs() < 0.05, "{label}: {counts:?}");
    }

    run(&document(&server, "- prepare: {workload: ycsb/a, record_count: 3k}"));
    assert_eq!(
        server.sql("SELECT count(*), count(DISTINCT ycsb_key), min(length(field9)) FROM usertable"),
        "3000|3000|100"
    );
    for (workload, statement) in [
        ("a", "UPDATE usertable"),
        ("b", "SELECT * FROM usertable"),
        ("d", "INSERT INTO usertable"),
        ("e", "SELECT * FROM usertable"),
        ("f", "UPDATE usertable"),
    ] {
        forget_statements(&server);
        let load = format!(
            "- load: {{workload: ycsb/{workload}, record_count: 3k, clients: 2, total_operations: 300}}"
        );
        let done = run(&document(&server, &load));
        let ok: u64 = done.stages[0].works[0].operations.iter().map(|one| one.tally.ok).sum();
        assert_eq!(ok, 300, "{workload}: {:?}", examples(&done));
        assert!(calls(&server, statement) > 0, "{workload}");
    }

    let own = "- prepare: {workload: sql, setup: [\"CREATE TABLE stock (item int PRIMARY KEY, pieces int)\", \"INSERT INTO stock \
               SELECT i, 0 FROM generate_series(1, 50) i\"]}\n\
               - load: {workload: sql, clients: 4, total_operations: 400, transactions: [{name: buy, weight: 3, set: {item: 1-50, \
               amount: 2}, statements: [\"UPDATE stock SET pieces = pieces + :amount WHERE item = :item\"]}, {name: look, commits: \
               each, read_only: true, set: {item: 1-50}, statements: \"SELECT pieces FROM stock WHERE item = :item\"}]}";
    let done = run(&document(&server, own));
    let bought = done.stages[1].works[0].operations[0].tally.ok;
    assert!((250..350).contains(&bought), "three in four: {bought}");
    assert_eq!(server.sql("SELECT sum(pieces) FROM stock"), (2 * bought).to_string());
    run(&document(&server, "- cleanup: {workload: sql, teardown: DROP TABLE stock}"));
    assert_eq!(server.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'stock'"), "0");
}

#[test]
fn order_entry_keeps_its_conditions_and_counts() {
    let Some(server) = Postgres::start(&["synchronous_commit=off", "max_wal_size=1GB"]) else { return };
    let number = |sql: &str| server.sql(sql).parse::<u64>().unwrap();
    let filled = run(&document(&server, "- prepare: {workload: tpcc, loaders: 2, checks: all}"));
    let held = |run: &Run| {
        let checks = &databases(run.stages.last().unwrap()).checks;
        checks.iter().map(|check| (check.holds.clone(), check.broken)).collect::<Vec<_>>()
    };
    assert!(last(&filled).tally.ok > 1);
    assert!(held(&filled).len() == 11 && held(&filled).iter().all(|(_, broken)| *broken == Some(0)));
    let rows = "SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM stock), (SELECT count(*) FROM customer), \
        (SELECT count(*) FROM history), (SELECT count(*) FROM orders), (SELECT count(*) FROM new_order), (SELECT count(*) FROM district)";
    assert_eq!(server.sql(rows), "100000|100000|30000|30000|30000|9000|10");
    // Condition 11, which holds of the initial population only.
    let open = "SELECT count(*) FROM (SELECT o_w_id, o_d_id, count(*) - count(no_o_id) AS done FROM orders LEFT JOIN new_order \
        ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id GROUP BY 1, 2) each WHERE done <> 2100";
    assert_eq!(number(open), 0);

    let (orders, payments) =
        (number("SELECT sum(d_next_o_id) FROM district"), number("SELECT count(*) FROM history"));
    let done = run(&document(
        &server,
        "- load: {workload: tpcc, clients: 4, total_operations: 1500, tries: 50, checks: all}",
    ));
    let operations = &done.stages[0].works[0].operations;
    let of = |label: &str| {
        let found = operations.iter().find(|operation| operation.label == label);
        found.map_or_else(|| panic!("no {label}"), |operation| &operation.tally)
    };
    assert_eq!(
        operations.iter().map(|operation| operation.tally.ok).sum::<u64>(),
        1500,
        "{:?}",
        examples(&done)
    );
    assert_eq!(number("SELECT count(*) FROM history") - payments, of("payment").ok);
    // One in a hundred is rolled back on purpose, and succeeds; the others are those that count.
    let placed = number("SELECT sum(d_next_o_id) FROM district") - orders;
    assert_eq!(placed, of("new-order").ok);
    let back = of("new-order-rolled-back").ok;
    assert!(back < placed / 20, "{back} beside {placed} were rolled back");
    let stage = &done.stages[0];
    let figures = tidemark_judge::figures(&done, stage);
    let minutes = stage.works[0].window_seconds() / 60.0;
    let per_minute = |name: &str| match figures.iter().find(|figure| figure.name == name).unwrap().amount {
        tidemark_judge::Amount::PerMinute(number) => number,
        amount => panic!("{name}: {amount}"),
    };
    assert!((per_minute("NOPM") * minutes / placed as f64 - 1.0).abs() < 1e-6, "{figures:?}");
    assert!(per_minute("Database TPM") > per_minute("NOPM") * 1.5, "{figures:?}");
    assert_eq!(figures.iter().filter(|figure| figure.name.ends_with(" p90")).count(), 5, "{figures:?}");
    let mixed = (placed + back) as f64 / 1500.0;
    assert!((0.38..0.49).contains(&mixed), "{mixed}: ten of 23 are new orders");
    let held = held(&done);
    assert_eq!(held.len(), 11);
    assert!(held.iter().all(|(_, broken)| *broken == Some(0)), "{held:?}");

    // A payment that nobody acknowledged, and a line that is gone: the conditions say so.
    server.sql("UPDATE warehouse SET w_ytd = w_ytd + 1");
    server.sql("DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 1");
    let text = document(
        &server,
        "- load: {workload: tpcc, clients: 2, total_operations: 20, tries: 50, checks: all}",
    );
    let broken = try_run(&text, &options(2));
    let said = match &broken {
        Err(refusal) => refusal.clone(),
        Ok(run) => format!("{:?}", databases(&run.stages[0]).checks),
    };
    for condition in ["1: a warehouse", "4: a district", "6: an order", "8: a warehouse"] {
        assert!(said.contains(condition), "{condition}: {said}");
    }
}

#[test]
fn order_entry_is_whole_after_a_kill() {
    let Some(mut server) = Postgres::start(&["max_wal_size=1GB"]) else { return };
    run(&document(&server, "- prepare: {workload: tpcc, loaders: 2}"));
    let load = |more: &str| {
        format!("- load: {{workload: tpcc, clients: 4, tries: 50, pipeline: true, checks: all, {more}}}")
    };
    let text = document(&server, &load("for: 6s, drain: 5s, allowed_failures: 100%"));
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(Box::new(try_run(&text, &options(2)))).is_ok());
    let payments = |server: &Postgres| server.sql("SELECT count(*) FROM history").parse::<u64>().unwrap();
    while payments(&server) < 30_050 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    server.restart();
    let run_through = (*result.recv_timeout(Duration::from_secs(120)).unwrap()).unwrap();
    let operations = &run_through.stages[0].works[0].operations;
    let paid: u64 = operations.iter().filter(|one| one.label == "payment").map(|one| one.tally.ok).sum();
    assert!(payments(&server) >= 30_000 + paid, "{} rows, {paid} acknowledged", payments(&server));
    assert!(operations.iter().any(|one| one.tally.failed() > 0), "clients lost their connections");
    let after = run(&document(&server, &load("total_operations: 50")));
    let checks = &databases(&after.stages[0]).checks;
    assert!(checks.len() == 11 && checks.iter().all(|check| check.broken == Some(0)), "{checks:?}");
}

#[test]
fn statements_that_are_wrong_are_refused_before_the_load() {
    let Some(server) = Postgres::start(&["synchronous_commit=off"]) else { return };
    server.sql("CREATE TABLE stock (item int PRIMARY KEY, pieces int)");
    let load = |statements: &str| {
        format!(
            "- load: {{workload: sql, clients: 2, total_operations: 20, transactions: [{{name: buy, set: {{item: 1-9}}, statements: \
             [{statements}]}}]}}"
        )
    };
    let refused = |statements: &str| refusal(&document(&server, &load(statements)), &options(1));
    let good = "\"UPDATE stock SET pieces = 1 WHERE item = :item\"";
    let said = refused(&format!("{good}, \"SELECT pieces FORM stock\""));
    assert!(
        said.contains("refuses the statement `SELECT pieces FORM stock`") && said.contains("42601"),
        "{said}"
    );
    let said = refused("\"SELECT pieces FROM stocks WHERE item = :item\"");
    assert!(
        said.contains("\\\"stocks\\\" does not exist") && said.contains("prepare first what it needs"),
        "{said}"
    );
    run(&document(&server, &load(good)));
    // A family's other statements need not be this user's to run.
    run(&document(&server, "- prepare: {workload: pgbench/tpcb-like}"));
    server.sql("CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader");
    let reads =
        document(&server, "- load: {workload: pgbench/select-only, total_operations: 20, checks: none}");
    assert_eq!(
        last(&run(&reads.replace("kind: postgres,", "kind: postgres, user: reader, database: postgres,")))
            .tally
            .ok,
        20
    );
    // What a transaction makes for itself is not there before it.
    let own = "\"CREATE TEMP TABLE IF NOT EXISTS own (i int)\", \"INSERT INTO own VALUES (1)\"";
    assert_eq!(last(&run(&document(&server, &load(own)))).tally.ok, 20);
}
