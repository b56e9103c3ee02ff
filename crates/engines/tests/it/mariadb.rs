//! The SQL engine against a real MariaDB, which each test starts for itself.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{databases, examples, last, options, refusal, run, try_run};
use std::sync::mpsc;
use std::time::Duration;
use tidemark_control::execute::Options;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Run, State};
use tidemark_testing::mariadb::Mariadb;

/// A document on the server's Unix socket with these stages.
fn document(server: &Mariadb, stages: &str) -> String {
    on(&format!("host: {}", server.socket().display()), stages)
}

fn on(place: &str, stages: &str) -> String {
    format!(
        "name: t\nseed: 7\ntarget: {{kind: mariadb, {place}, user: bench, password: bench, database: bench}}\nstages:\n{stages}\n"
    )
}

/// What the server has counted under these names until now.
fn counted<const N: usize>(server: &Mariadb, names: [&str; N]) -> [u64; N] {
    names.map(|name| {
        let row = server.sql(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
        row.split_once('|').unwrap().1.parse().unwrap()
    })
}

/// What was counted between two times.
fn between<const N: usize>(before: [u64; N], after: [u64; N]) -> [u64; N] {
    std::array::from_fn(|place| after[place] - before[place])
}

/// What is wanted of a server that loses what it may lose: these tests are not about that.
const FAST: &str = "innodb-flush-log-at-trx-commit=0";

const FILL: &str = "- prepare: {workload: pgbench/tpcb-like, loaders: 3}";

#[test]
fn pgbench_is_loaded_once_run_and_adds_up() {
    let Some(server) = Mariadb::start(&[FAST]) else { return };
    let first = run(&document(&server, FILL));
    assert!(last(&first).tally.ok > 1 && last(&first).tally.bytes > 100_000, "{:?}", last(&first).tally.ok);
    assert_eq!(
        server.sql("SELECT count(*), min(aid), max(aid), max(bid), sum(abalance) FROM pgbench_accounts"),
        "100000|1|100000|1|0"
    );
    assert_eq!(server.sql("SELECT count(*), max(bid) FROM pgbench_tellers"), "10|1");
    let tables =
        "SELECT DISTINCT engine, table_collation FROM information_schema.tables WHERE table_schema = 'bench'";
    assert_eq!(server.sql(tables), "InnoDB|utf8mb4_bin");

    let load = |workload: &str| {
        format!("- load: {{workload: pgbench/{workload}, clients: 4, checks: all, total_operations: 500}}")
    };
    let names = ["Com_begin", "Com_commit", "Com_rollback", "Com_insert", "Com_update"];
    let before = counted(&server, names);
    let place = format!("host: 127.0.0.1, port: {}", server.port());
    let done = run(&on(&place, &load("tpcb-like")));
    assert_eq!(
        (last(&done).label.as_str(), last(&done).tally.ok, last(&done).tally.failed()),
        ("tpcb-like", 500, 0)
    );
    let retries = last(&done).tally.retries;
    let [begun, committed, back, inserted, updated] = between(before, counted(&server, names));
    assert_eq!(committed, 500, "the server counts the transactions that the load counts");
    assert!(begun == 500 + retries && back <= retries, "{begun} begun, {back} back, {retries} retries");
    // One more update: the books take note of the load. And the server counts what it is asked to explain, before and after the load.
    let more = inserted - (500 + 2) + updated - (1501 + 2 * 3);
    assert!(more <= 4 * retries, "{inserted} and {updated}");
    let found = databases(&done.stages[0]);
    assert_eq!(found.checks.iter().map(|check| check.broken).collect::<Vec<_>>(), [Some(0); 3]);
    let [database] = found.servers.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (database.commits, database.cache_bytes, database.block_bytes, database.restarted),
        (Some(500), Some(64 << 20), Some(16 << 10), false)
    );
    assert!(database.version.contains("MariaDB") && database.data_bytes.is_some_and(|bytes| bytes > 8 << 20));
    assert!(
        database.wal_bytes.is_some_and(|bytes| bytes > 0) && database.blocks_hit.is_some(),
        "{database:?}"
    );
    let durable =
        |name: &str| database.settings.iter().find(|one| one.name == name).and_then(|one| one.durable);
    assert_eq!(durable("innodb_flush_log_at_trx_commit"), Some(false), "this server may lose commits");
    assert_eq!((durable("innodb_doublewrite"), durable("sync_binlog")), (Some(true), None));
    let sums = "SELECT (SELECT sum(delta) FROM pgbench_history) = (SELECT sum(abalance) FROM pgbench_accounts), count(*) FROM \
         pgbench_history";
    assert_eq!(server.sql(sums), "1|500");

    let before = counted(&server, names);
    let read = run(&document(&server, &load("select-only")));
    assert_eq!(databases(&read.stages[0]).servers[0].commits, None, "there was no `COMMIT` to count");
    // But for what was explained of its family's statements, twice.
    assert_eq!(between(before, counted(&server, names)), [0, 0, 0, 2, 6], "it changes nothing");
    server.sql("CREATE USER reader@localhost IDENTIFIED BY 'bench'");
    server.sql("GRANT SELECT ON bench.* TO reader@localhost");
    let reader = document(&server, &load("select-only")).replace("user: bench", "user: reader");
    assert_eq!(
        last(&run(&reader.replace("checks: all", "checks: none"))).tally.ok,
        500,
        "it may read, and does no more"
    );
    let again = run(&document(&server, &format!("{FILL}\n{}", load("simple-update"))));
    assert_eq!(server.sql("SELECT count(*) FROM pgbench_history"), "1000", "the data set is kept");
    assert!(again.stages[0].works[0].operations.iter().all(|operation| operation.tally.total() == 0));
    run(&document(&server, "- prepare: {workload: pgbench/tpcb-like, fresh: true}"));
    assert_eq!(server.sql("SELECT count(*) FROM pgbench_history"), "0");
    run(&document(&server, "- prepare: {workload: pgbench/tpcb-like, scale: 2}"));
    let accounts = server.sql("SELECT count(*) FROM pgbench_accounts");
    assert_eq!(accounts, "200000", "other options, another data set");
    server.sql("CREATE TABLE pgbench_mine (id int)");
    run(&document(&server, "- cleanup: {workload: pgbench/tpcb-like, scale: 2}"));
    assert_eq!(server.sql("SHOW TABLES LIKE 'pgbench%'"), "pgbench_mine", "what is somebody else's stays");
}

#[test]
fn an_interrupted_load_goes_on_and_foreign_tables_stay() {
    let Some(server) = Mariadb::start(&[FAST]) else { return };
    let fill = "- prepare: {workload: sysbench/oltp_read_write, table_size: 20k, loaders: 2}";
    run(&document(&server, fill));
    let index = "SELECT count(*) FROM information_schema.statistics WHERE table_name = 'sbtest1' AND index_name = 'k_1'";
    assert_eq!(
        (server.sql(index).as_str(), server.sql("SELECT count(*) FROM tidemark_chunks").as_str()),
        ("1", "4")
    );
    // As if the loader had been killed: a chunk is missing, and somebody was making the index.
    server.sql("DELETE FROM tidemark_chunks WHERE chunk = 2 OR chunk = -1");
    server.sql("INSERT INTO tidemark_chunks VALUES ('sysbench', 0, -2)");
    server.sql("UPDATE tidemark_data SET complete = 0");
    server.sql("DELETE FROM sbtest1 WHERE id > 18724");
    let load = "- load: {workload: sysbench/oltp_read_write, table_size: 20k, total_operations: 10}";
    let said = refusal(&document(&server, load), &options(1));
    assert!(said.contains("only a part of it"), "{said}");
    let resumed = run(&document(&server, fill));
    assert!(last(&resumed).tally.bytes < 1 << 20, "one chunk is loaded, and no more");
    let rows = "SELECT count(*), count(DISTINCT id), (SELECT complete FROM tidemark_data) FROM sbtest1";
    assert_eq!((server.sql(rows).as_str(), server.sql(index).as_str()), ("20000|20000|1", "1"));
    run(&document(&server, load));

    // As if somebody had been killed who dropped the tables: some are gone, and nobody takes the others for whole.
    server.sql("UPDATE tidemark_data SET fingerprint = ''");
    let said = refusal(&document(&server, load), &options(1));
    assert!(said.contains("only some of its tables"), "{said}");
    run(&document(&server, fill));
    run(&document(&server, load));
    server.sql("DROP TABLE sbtest1");
    run(&document(&server, fill));
    assert_eq!(server.sql(rows), "20000|20000|1");
    run(&document(&server, "- cleanup: {workload: sysbench/oltp_read_write, table_size: 20k}"));
    let books = "SELECT (SELECT count(*) FROM tidemark_data) + (SELECT count(*) FROM tidemark_chunks) + (SELECT count(*) FROM tidemark_tables)";
    assert_eq!((server.sql("SHOW TABLES LIKE 'sbtest%'").as_str(), server.sql(books).as_str()), ("", "0"));

    // With other options, what is in the books goes, whatever its number, and nothing else.
    let some = |tables: u32| {
        format!("- prepare: {{workload: sysbench/oltp_read_write, tables: {tables}, table_size: 100}}")
    };
    run(&document(&server, &some(2)));
    server.sql("CREATE TABLE sbtest3 (mine int)");
    let said = refusal(&document(&server, &some(3)), &options(1));
    assert!(said.contains("did not make (sbtest3)") && said.contains("--allow-destroy sql:bench"), "{said}");
    assert_eq!(
        server.sql("SELECT count(*) FROM sbtest2"),
        "100",
        "nothing was dropped before that was known"
    );
    run(&document(&server, &some(1)));
    assert_eq!(server.sql("SHOW TABLES LIKE 'sbtest%'"), "sbtest1\nsbtest3");
    run(&document(&server, "- cleanup: {workload: sysbench/oltp_read_write, tables: 3, table_size: 100}"));
    assert_eq!(server.sql("SHOW TABLES LIKE 'sbtest%'"), "sbtest3");
    server.sql("DROP TABLE sbtest3");

    server.sql("CREATE TABLE sbtest1 (mine int)");
    for stage in [fill, "- cleanup: {workload: sysbench/oltp_read_write, table_size: 20k}"] {
        let said = refusal(&document(&server, stage), &options(1));
        assert!(said.contains("did not make") && said.contains("--allow-destroy sql:bench"), "{said}");
    }
    assert_eq!(server.sql("SELECT count(*) FROM sbtest1"), "0", "it is still there");
    let allowed = Options { allow_destroy: vec!["sql:bench".into()], ..options(1) };
    try_run(&document(&server, fill), &allowed).unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM sbtest1"), "20000");
}

#[test]
fn a_load_that_its_server_did_not_survive_goes_on() {
    let Some(mut server) = Mariadb::start(&[]) else { return };
    let fill = "- prepare: {workload: sysbench/oltp_read_write, tables: 3, table_size: 100k, loaders: 2, checks: all}";
    let text = document(&server, fill);
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(try_run(&text, &options(2)).map(|run| run.state)).is_ok());
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'tidemark_chunks'";
    let chunks = "SELECT count(*) FROM tidemark_chunks WHERE chunk >= 0";
    while server.sql(tables) == "0" || server.sql(chunks).parse::<u64>().unwrap() < 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    server.kill();
    server.restart();
    let ended = result.recv_timeout(Duration::from_secs(120)).unwrap();
    let loaded: u64 = server.sql(chunks).parse().unwrap();
    assert!(loaded >= 4 && ended != Ok(State::Completed), "{loaded} chunks, and the load ended as {ended:?}");
    let resumed = run(&document(&server, fill));
    // Each table has 11 chunks, of 2 MiB at most.
    let bytes = last(&resumed).tally.bytes;
    assert!(bytes <= (33 - loaded) * (2 << 20), "{bytes}: what was loaded is not loaded again");
    for table in ["sbtest1", "sbtest2", "sbtest3"] {
        let rows = server.sql(&format!("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {table}"));
        assert_eq!(rows, "100000|100000|1|100000", "{table}");
    }
    let index =
        "SELECT count(*) FROM information_schema.statistics WHERE index_name IN ('k_1', 'k_2', 'k_3')";
    assert_eq!(server.sql(index), "3");
    assert_eq!(server.sql("SELECT complete FROM tidemark_data"), "1");
}

#[test]
fn deadlocks_are_tried_again_until_the_bank_adds_up() {
    let Some(server) = Mariadb::start(&[FAST]) else { return };
    run(&document(&server, "- prepare: {workload: bank/read-and-write, rows: 8}"));
    let load = |isolation: &str, count: u32| {
        format!(
            "- load: {{workload: bank/read-and-write, rows: 8, audits: 20%, clients: 8, total_operations: {count}, isolation: \
             {isolation}, tries: 1000, back_off_most: 5ms, allowed_failures: 100%}}"
        )
    };
    let before = counted(&server, ["Innodb_deadlocks"]);
    let serial = run(&document(&server, &load("serializable", 600)));
    assert_eq!(last(&serial).tally.failed(), 0, "{:?}", examples(&serial));
    assert_eq!(server.sql("SELECT sum(balance) FROM bank"), "0");
    let found = databases(&serial.stages[0]);
    assert_eq!(found.checks.iter().map(|check| check.broken).collect::<Vec<_>>(), [Some(0)]);
    let operations = &serial.stages[0].works[0].operations;
    let retries: u64 = operations.iter().map(|operation| operation.tally.retries).sum();
    let [deadlocks] = between(before, counted(&server, ["Innodb_deadlocks"]));
    assert!(deadlocks > 0, "eight clients on eight accounts are deadlocked");
    let aborts: Vec<_> = found.aborts.iter().map(|one| (one.fault, one.count)).collect();
    assert_eq!(aborts, [(Fault::Deadlock, deadlocks)], "each of which was tried again");
    assert_eq!(retries, deadlocks);

    // What reads and then writes without isolation loses updates: the invariant must be seen to break.
    let lost = try_run(&document(&server, &load("read-committed", 3000)), &options(2)).unwrap();
    let operations = &lost.stages[0].works[0].operations;
    let broken: u64 = operations.iter().map(|one| one.tally.faults.of(Fault::BrokenInvariant)).sum();
    assert!(broken > 0, "{:?}", examples(&lost));
    assert_eq!(lost.stages[0].state, State::Failed, "whatever failures the document allows");
}

#[test]
fn sysbench_does_what_its_definition_says() {
    let Some(server) = Mariadb::start(&[FAST]) else { return };
    let sized = "tables: 2, table_size: 5k";
    run(&document(&server, &format!("- prepare: {{workload: sysbench/oltp_read_write, {sized}}}")));
    assert_eq!(
        server.sql("SELECT count(*), min(id), max(id), min(length(c)), min(length(pad)) FROM sbtest2"),
        "5000|1|5000|119|59"
    );
    let names = ["Com_insert", "Com_update", "Com_delete", "Com_commit", "Select_range", "Sort_rows"];
    let event = |workload: &str, more: &str| {
        let before = counted(&server, names);
        let load = format!(
            "- load: {{workload: sysbench/{workload}, {sized}, clients: 1, total_operations: 60{more}}}"
        );
        let done = run(&document(&server, &load));
        assert_eq!((last(&done).tally.ok, last(&done).tally.failed()), (60, 0), "{workload}");
        let [inserts, updates, deletes, commits, ranges, _] = between(before, counted(&server, names));
        // The books take note of a load that changes something, with one update.
        [inserts / 60, updates / 60, deletes / 60, commits / 60, ranges / 60]
    };
    assert_eq!(event("oltp_read_write", ""), [1, 2, 1, 1, 4]);
    assert_eq!(event("oltp_read_only", ", distribution: special"), [0, 0, 0, 1, 4]);
    assert_eq!(event("oltp_write_only", ""), [1, 2, 1, 1, 0]);
    assert_eq!(event("oltp_75_25", ""), [1, 2, 1, 1, 4]);
    assert_eq!(event("oltp_point_select", ", distribution: zipfian"), [0; 5]);
    assert_eq!(event("oltp_update_index", ""), [0, 1, 0, 0, 0]);
    assert_eq!(event("oltp_update_non_index", ""), [0, 1, 0, 0, 0]);
    assert_eq!(event("oltp_delete", ""), [0, 0, 1, 0, 0]);
    assert_eq!(event("oltp_insert", ""), [1, 0, 0, 0, 0]);
    let new =
        "SELECT count(*) FROM (SELECT id FROM sbtest1 UNION ALL SELECT id FROM sbtest2) a WHERE id > 5000";
    assert_eq!(server.sql(new), "60", "what is inserted is numbered from the highest on");
}

#[test]
fn kv_ycsb_and_your_own_sql_run() {
    let Some(server) = Mariadb::start(&[FAST]) else { return };
    let sized = "insert_count: 2k, min_block_bytes: 10, max_block_bytes: 300";
    run(&document(&server, &format!("- prepare: {{workload: kv, {sized}}}")));
    let values = "SELECT count(*), min(length(v)) >= 10, max(length(v)) <= 300 FROM kv";
    assert_eq!(server.sql(values), "2000|1|1");
    let kv = format!(
        "- load: {{workload: kv, {sized}, read_percent: 50%, del_percent: 10%, span_percent: 10%, distribution: zipfian, clients: \
         3, total_operations: 2000}}"
    );
    let done = run(&document(&server, &kv));
    let operations = &done.stages[0].works[0].operations;
    for (label, share) in [("read", 0.5), ("write", 0.3), ("delete", 0.1), ("span", 0.1)] {
        let ok = operations.iter().find(|one| one.label == label).unwrap().tally.ok;
        assert!((ok as f64 / 2000.0 - share).abs() < 0.05, "{label}: {ok}");
    }

    run(&document(&server, "- prepare: {workload: ycsb/a, record_count: 3k}"));
    let keys = "SELECT count(*), count(DISTINCT ycsb_key), min(length(field9)) FROM usertable";
    assert_eq!(server.sql(keys), "3000|3000|100");
    for workload in ["a", "b", "d", "e", "f"] {
        let load = format!(
            "- load: {{workload: ycsb/{workload}, record_count: 3k, clients: 2, total_operations: 300}}"
        );
        let before = counted(&server, ["Com_insert", "Com_update"]);
        let done = run(&document(&server, &load));
        let tally = |label: &str| {
            let operations = done.stages[0].works[0].operations.iter();
            operations.filter(|one| one.label == label).map(|one| one.tally.ok).sum::<u64>()
        };
        let changed = [tally("insert"), 1 + tally("update") + tally("read-modify-write")];
        // It counts what it is asked to explain, too: before and after the load, an insert and an update of each of ten fields.
        let [inserted, updated] = between(before, counted(&server, ["Com_insert", "Com_update"]));
        assert_eq!([inserted - 2, updated - 20], changed, "{workload}");
        assert_eq!(tally("read") + tally("scan") + changed[0] + changed[1] - 1, 300, "{:?}", examples(&done));
    }

    let own = "- prepare: {workload: sql, setup: [\"CREATE TABLE stock (item int PRIMARY KEY, pieces int)\", \"INSERT INTO stock \
               WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT i, 0 FROM n\"]}\n\
               - load: {workload: sql, clients: 4, total_operations: 400, transactions: [{name: buy, weight: 3, set: {item: 1-50, \
               amount: 2}, text: {note: 5}, statements: [\"UPDATE stock SET pieces = pieces + :amount WHERE item = :item\", \
               \"SELECT ':item', :note\"]}, {name: look, commits: each, read_only: true, set: {item: 1-50}, statements: \"SELECT \
               pieces FROM stock WHERE item = :item\"}]}";
    let done = run(&document(&server, own));
    let bought = done.stages[1].works[0].operations[0].tally.ok;
    assert!((250..350).contains(&bought), "three in four: {bought}");
    assert_eq!(server.sql("SELECT sum(pieces) FROM stock"), (2 * bought).to_string());
    run(&document(&server, "- cleanup: {workload: sql, teardown: DROP TABLE stock}"));
    assert_eq!(server.sql("SHOW TABLES LIKE 'stock'"), "");
}

/// What became of the checks of a run's last stage.
fn broken(run: &Run) -> Vec<(String, Option<u64>)> {
    let checks = &databases(run.stages.last().unwrap()).checks;
    checks.iter().map(|check| (check.holds.clone(), check.broken)).collect()
}

#[track_caller]
fn all_hold(run: &Run) {
    let checks = broken(run);
    assert!(checks.len() >= 11 && checks.iter().all(|(_, rows)| *rows == Some(0)), "{checks:?}");
}

#[test]
fn order_entry_keeps_its_conditions_and_counts() {
    let Some(server) = Mariadb::start(&[FAST]) else { return };
    let number = |sql: &str| server.sql(sql).parse::<u64>().unwrap();
    all_hold(&run(&document(&server, "- prepare: {workload: tpcc, loaders: 2, checks: all}")));
    let rows = "SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM stock), (SELECT count(*) FROM customer), \
        (SELECT count(*) FROM history), (SELECT count(*) FROM orders), (SELECT count(*) FROM new_order), (SELECT count(*) FROM district)";
    assert_eq!(server.sql(rows), "100000|100000|30000|30000|30000|9000|10");
    // Condition 11, which holds of the initial population only.
    let open = "SELECT count(*) FROM (SELECT o_w_id, o_d_id, count(*) - count(no_o_id) AS done FROM orders LEFT JOIN new_order \
        ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id GROUP BY 1, 2) each_district WHERE done <> 2100";
    assert_eq!(number(open), 0);

    let (orders, payments) =
        (number("SELECT sum(d_next_o_id) FROM district"), number("SELECT count(*) FROM history"));
    let before = counted(&server, ["Com_commit"]);
    let load = |count: u32| {
        format!("- load: {{workload: tpcc, clients: 4, total_operations: {count}, tries: 50, checks: all}}")
    };
    let done = run(&document(&server, &load(1500)));
    let operations = &done.stages[0].works[0].operations;
    let of = |label: &str| operations.iter().find(|one| one.label == label).map_or(0, |one| one.tally.ok);
    let all = operations.iter().map(|operation| operation.tally.ok).sum::<u64>();
    assert_eq!(all, 1500, "{:?}", examples(&done));
    assert_eq!(number("SELECT count(*) FROM history") - payments, of("payment"));
    // One in a hundred is rolled back on purpose, and succeeds; the others are those that count.
    let placed = number("SELECT sum(d_next_o_id) FROM district") - orders;
    let back = of("new-order-rolled-back");
    assert_eq!(placed, of("new-order"));
    assert!(back < placed / 20, "{back} beside {placed} were rolled back");
    let [committed] = between(before, counted(&server, ["Com_commit"]));
    assert_eq!(committed, 1500 - back, "the server counts the transactions that the load counts");
    all_hold(&done);

    // A payment that nobody acknowledged, and a line that is gone: the conditions say so.
    server.sql("UPDATE warehouse SET w_ytd = w_ytd + 1");
    server.sql("DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 1");
    let said = match try_run(&document(&server, &load(20)), &options(2)) {
        Err(refusal) => refusal,
        Ok(run) => {
            let checks = broken(&run).into_iter().filter(|(_, rows)| *rows != Some(0));
            checks.map(|(holds, _)| holds).collect::<Vec<_>>().join(", ")
        }
    };
    for condition in ["1: a warehouse", "4: a district", "6: an order", "8: a warehouse"] {
        assert!(said.contains(condition), "{condition}: {said}");
    }
}

#[test]
fn order_entry_is_whole_after_a_kill() {
    let Some(mut server) = Mariadb::start(&[]) else { return };
    run(&document(&server, "- prepare: {workload: tpcc, loaders: 2}"));
    let load = |more: &str| format!("- load: {{workload: tpcc, clients: 4, tries: 50, checks: all, {more}}}");
    let text = document(&server, &load("ledger: true, for: 6s, drain: 5s, allowed_failures: 100%"));
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(Box::new(try_run(&text, &options(2)))).is_ok());
    let payments = |server: &Mariadb| server.sql("SELECT count(*) FROM history").parse::<u64>().unwrap();
    while payments(&server) < 30_050 {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    server.restart();
    let through = (*result.recv_timeout(Duration::from_secs(120)).unwrap()).unwrap();
    let found = databases(&through.stages[0]);
    let used = &found.servers[0];
    assert_eq!((used.restarted, used.commits), (true, None), "what a server counts begins anew with it");
    let ledger = &found.ledgers[0];
    assert!(ledger.acknowledged > 50, "{ledger:?}");
    assert_eq!(
        (ledger.missing, ledger.unexpected),
        (Some(0), Some(0)),
        "nothing acknowledged is lost: {ledger:?}"
    );
    let operations = &through.stages[0].works[0].operations;
    let paid: u64 = operations.iter().filter(|one| one.label == "payment").map(|one| one.tally.ok).sum();
    assert!(payments(&server) >= 30_000 + paid, "{} rows, {paid} acknowledged", payments(&server));
    assert!(operations.iter().any(|one| one.tally.failed() > 0), "clients lost their connections");
    all_hold(&run(&document(&server, &load("total_operations: 50"))));
}

#[test]
fn what_cannot_work_is_said_before_the_load() {
    let Some(mut server) = Mariadb::start(&[FAST, "max-connections=12", "max-prepared-stmt-count=20"]) else {
        return;
    };
    run(&document(&server, "- prepare: {workload: bank/transfer, rows: 10}"));
    let load = |clients: u32| {
        format!("- load: {{workload: bank/transfer, rows: 10, clients: {clients}, total_operations: 40}}")
    };
    run(&document(&server, &load(4)));
    let said = try_run(&document(&server, &load(30)), &options(1)).unwrap_err();
    assert!(
        said.contains("connections left, and the load needs 30") && said.contains("raise max_connections"),
        "{said}"
    );
    server.sql("CREATE USER poor@localhost IDENTIFIED BY 'poor'");
    server.sql("GRANT SELECT ON bench.* TO poor@localhost");
    let poor = document(&server, FILL).replace("user: bench, password: bench", "user: poor, password: poor");
    let said = refusal(&poor, &options(1));
    assert!(said.contains("command denied to user"), "{said}");
    let nowhere = document(&server, FILL).replace("database: bench", "database: nowhere");
    let said = refusal(&nowhere, &options(1));
    assert!(said.contains("nowhere") && said.contains("check `database`"), "{said}");
    let stranger = document(&server, FILL).replace("password: bench", "password: wrong");
    let said = refusal(&stranger, &options(1));
    assert!(said.contains("Access denied") && !said.contains("pg_hba") && !said.contains("wrong"), "{said}");
    // Their words, and not the load's failures: a typo, a table that is not there.
    let own = |sql: &str| {
        format!(
            "- load: {{workload: sql, clients: 2, total_operations: 20, transactions: [{{name: a, set: {{id: 1-9}}, statements: [\"{sql}\"]}}]}}"
        )
    };
    let said = refusal(&document(&server, &own("SELECT balance FORM bank WHERE id = :id")), &options(1));
    assert!(
        said.contains("refuses the statement `SELECT balance FORM bank WHERE id = $1`")
            && said.contains("1064"),
        "{said}"
    );
    let said = refusal(&document(&server, &own("SELECT 1 FROM banks WHERE id = :id")), &options(1));
    assert!(
        said.contains("bench.banks' doesn't exist") && said.contains("prepare first what it needs"),
        "{said}"
    );
    // What `EXPLAIN` does not take with the value that plans are asked for with is no fault of the statement.
    let limited = run(&document(&server, &own("SELECT id FROM bank LIMIT :id")));
    assert_eq!(last(&limited).tally.ok, 20);
    server.restart_with("read-only=ON");
    let said = refusal(&document(&server, FILL), &options(1));
    assert!(said.contains("accepts no writes (read_only is on)"), "{said}");
}

#[test]
fn several_databases_of_a_server_are_loaded_and_run_together() {
    let Some(server) = Mariadb::start(&[FAST]) else { return };
    for database in ["bench1", "bench2"] {
        server.sql(&format!("CREATE DATABASE {database}"));
    }
    let stages = "- prepare: {workload: bank/transfer, rows: 100, loaders: 2}\n\
                  - load: {workload: bank/transfer, rows: 100, audits: 0, clients: 3, total_operations: 300}";
    let place = format!("instances: \"127.0.0.1:{}/bench{{1-2}}\"", server.port());
    let done = run(&on(&place, stages));
    assert_eq!(last(&done).tally.ok, 300);
    assert!(
        broken(&done).len() == 2 && broken(&done).iter().all(|(_, rows)| *rows == Some(0)),
        "{:?}",
        broken(&done)
    );
    for database in ["bench1", "bench2"] {
        let moved = server.sql(&format!("SELECT sum(balance), sum(balance <> 0) > 10 FROM {database}.bank"));
        assert_eq!(moved, "0|1", "{database}");
    }

    let before = counted(&server, ["Connections"]);
    let connected = run(&document(&server, "- load: {workload: connect, clients: 2, total_operations: 50}"));
    assert_eq!((last(&connected).tally.ok, last(&connected).tally.failed()), (50, 0));
    let [connections] = between(before, counted(&server, ["Connections"]));
    assert!((50..70).contains(&connections), "one each, and a few around the load: {connections}");
}
