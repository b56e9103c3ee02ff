//! Connections themselves, on a real PostgreSQL and through a real PgBouncer, which each test starts for itself.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap too")]

use crate::common::runs::{databases, examples, last, options, run, try_run};
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tidemark_measure::fault::Fault;
use tidemark_testing::postgres::Postgres;

fn document(port: u16, more: &str, stages: &str) -> String {
    format!(
        "name: db\ntarget: {{kind: postgres, host: 127.0.0.1, port: {port}, user: postgres, database: postgres{more}}}\n\
         stages:\n{stages}\n"
    )
}

#[test]
fn connections_are_opened_counted_and_closed() {
    let Some(server) = Postgres::start(&[]) else { return };
    let sessions = || {
        server.sql("SELECT sessions FROM pg_stat_database WHERE datname = 'postgres'").parse::<u64>().unwrap()
    };
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tidemark'";
    let counted = |count: u32| {
        let before = sessions();
        let done = run(&document(
            server.port(),
            "",
            &format!("- load: {{workload: connect, clients: 4, total_operations: {count}}}"),
        ));
        assert_eq!((last(&done).tally.ok, last(&done).tally.failed()), (u64::from(count), 0));
        let begun = Instant::now();
        while server.sql(open) != "0" {
            assert!(begun.elapsed() < Duration::from_secs(60), "sessions end on the server, too");
        }
        sessions() - before
    };
    // What the engine and this test ask beside the load takes connections, too: the same number each time, but for this test's
    // own while it waits.
    let (few, many) = (counted(10), counted(210));
    assert!((200..240).contains(&(many - few)), "{few} and {many} sessions");
}

#[test]
fn a_server_that_has_no_room_is_overloaded_and_nothing_else() {
    let Some(server) = Postgres::start(&["max_connections=8", "superuser_reserved_connections=3"]) else {
        return;
    };
    server.sql("CREATE ROLE guest LOGIN; CREATE TABLE ended (at int)");
    // Sessions of others leave room for two guests: sixteen clients meet there, however slowly a busy machine lets them come.
    let stay =
        "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM ended) LOOP PERFORM pg_sleep(0.05); END LOOP; END $$";
    let done = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| server.sql(stay));
        }
        while server.sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO %'") != "3" {
            std::thread::sleep(Duration::from_millis(50));
        }
        let load = "- load: {workload: connect, clients: 16, total_operations: 400, allowed_failures: 100%}";
        let document = document(server.port(), "", load).replace("user: postgres", "user: guest");
        let done = try_run(&document, &options(2));
        server.sql("INSERT INTO ended VALUES (1)");
        done.unwrap()
    });
    let tally = &last(&done).tally;
    assert_eq!(tally.ok + tally.failed(), 400);
    assert!(tally.ok > 0 && tally.failed() > 0, "{} {}", tally.ok, tally.failed());
    assert_eq!(tally.faults.of(Fault::Overloaded), tally.failed(), "{:?}", examples(&done));
    assert!(examples(&done)[0].contains("connection slots are reserved"), "{:?}", examples(&done));
}

/// PgBouncer in transaction mode, with two connections to the server; it ends with this.
struct Pool {
    process: Child,
    directory: PathBuf,
    port: u16,
}

impl Pool {
    fn start(server: &Postgres) -> Option<Self> {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"]
            .into_iter()
            .find(|path| PathBuf::from(path).is_file());
        let Some(program) = program else {
            tidemark_testing::skip("PgBouncer cannot be found; `make setup` installs it");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let directory = std::env::temp_dir().join(format!("tidemark-pool-{port}"));
        std::fs::create_dir_all(&directory).unwrap();
        let mut settings = format!("[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\n", server.port());
        for (name, value) in [
            ("listen_addr", "127.0.0.1"),
            ("listen_port", &port.to_string()),
            ("unix_socket_dir", ""),
            ("auth_type", "any"),
            ("pool_mode", "transaction"),
            ("default_pool_size", "2"),
            ("max_client_conn", "100"),
        ] {
            writeln!(settings, "{name} = {value}").unwrap();
        }
        // As `auth_type = any` demands.
        let settings = settings.replace("port=", "user=postgres port=");
        let file = directory.join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new(program);
        if tidemark_testing::is_root() {
            command.args(["-u", "postgres"]);
        }
        command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let pool = Self { process: command.spawn().unwrap(), directory, port };
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "PgBouncer does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn workloads_run_through_a_pool_in_transaction_mode() {
    let Some(server) = Postgres::start(&[]) else { return };
    let Some(pool) = Pool::start(&server) else { return };
    for (workload, size) in [
        ("pgbench/tpcb-like", "scale: 1"),
        ("sysbench/oltp_read_write", "tables: 2, table_size: 1000"),
        ("bank/transfer", "rows: 100"),
        ("tpcc", "warehouses: 1"),
    ] {
        let stages = format!(
            "- prepare: {{workload: {workload}, {size}, loaders: 3}}\n\
             - load: {{workload: {workload}, {size}, clients: 8, total_operations: 200, tries: 100, checks: all}}\n\
             - cleanup: {{workload: {workload}, {size}}}"
        );
        let done = run(&document(pool.port, ", prepared: false", &stages));
        let load = &done.stages[1];
        let ok: u64 = load.works[0].operations.iter().map(|operation| operation.tally.ok).sum();
        assert_eq!(ok, 200, "{workload}: {:?}", examples(&done));
        let checks = &databases(load).checks;
        assert!(checks.iter().all(|check| check.broken == Some(0)), "{workload}: {checks:?}");
    }
    // Its own connections to the server are two, whatever the number of clients.
    let backends = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    assert!(server.sql(backends).parse::<u32>().unwrap() <= 2);
    assert_eq!(server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
}

#[test]
fn a_pool_that_forgets_prepared_statements_is_named_before_the_load() {
    let Some(server) = Postgres::start(&[]) else { return };
    let Some(pool) = Pool::start(&server) else { return };
    let stages = "- prepare: {workload: bank/transfer}\n- load: {workload: bank/transfer, clients: 4, total_operations: 20}";
    let refused = try_run(&document(pool.port, "", stages), &options(2)).unwrap_err();
    assert!(refused.contains("`prepared: false`"), "{refused}");
    assert_eq!(server.sql("SELECT to_regclass('bank') IS NULL"), "t", "nothing was loaded");
}
