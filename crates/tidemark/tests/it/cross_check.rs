//! `--cross-check` on databases: the user's pgbench and sysbench beside the SQL engine, against real servers. What they print is
//! kept by a script in between, and compared with the record.

use crate::common::{Output, Place, Record};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use tidemark_testing::mariadb::Mariadb;
use tidemark_testing::postgres::Postgres;

/// A script that does what the program does, and passes on what it was told and printed: it may write no file.
struct Keeper {
    script: String,
    kept: Arc<Mutex<Vec<String>>>,
}

impl Keeper {
    fn new(place: &Place, program: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let text = format!(
            "#!/bin/bash\n[ \"$1\" = --version ] && exec {program} --version\nprinted=$({program} \"$@\" 2>&1)\ncode=$?\n\
             exec 3<>/dev/tcp/127.0.0.1/{port}\nprintf 'told: %s\\n%s\\n{END}\\n' \"$*\" \"$printed\" >&3\nread -r _ <&3\n\
             printf '%s\\n' \"$printed\"\nexit $code\n"
        );
        let path = place.write(program, &text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let kept = Arc::<Mutex<Vec<String>>>::default();
        let taken = Arc::clone(&kept);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map(Result::unwrap) {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
                let text: String = lines.take_while(|line| line != END).map(|line| line + "\n").collect();
                taken.lock().unwrap().push(text);
                stream.write_all(b"taken\n").unwrap();
            }
        });
        Self { script: path.display().to_string(), kept }
    }

    /// What each run of the program was told and printed, in their order.
    fn kept(&self) -> Vec<String> {
        self.kept.lock().unwrap().clone()
    }
}

/// The last line of what a script passes on.
const END: &str = "that was all";

fn run(place: &Place, text: &str, environment: &[(&str, &str)]) -> Output {
    let file = place.write("document.yaml", text);
    let mut command = place.command(&["run", file.to_str().unwrap(), "--json", "--cross-check=2"]);
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The number behind these words in a line.
fn number(text: &str, words: &str) -> f64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(words));
    let word =
        line.and_then(|rest| rest.split_whitespace().next()).unwrap_or_else(|| panic!("{words}: {text}"));
    word.trim_end_matches('s').parse().unwrap()
}

fn operation(stage: &Value) -> &Value {
    &stage["works"][0]["operations"][0]
}

/// The stages behind the first one, which loads the data set.
fn loads(record: &Record) -> &[Value] {
    assert_eq!(record.state(), "completed", "{}", record.stderr);
    &record.value["stages"].as_array().unwrap()[1..]
}

/// Those stages by another program; its runs are kept in pairs of a warm-up and a load.
fn check_against(record: &Record, keeper: &Keeper, program: &str, figures: [&str; 2], threads: &str) {
    let engines: Vec<_> =
        loads(record).iter().map(|stage| stage["cell"]["engine"].as_str().unwrap().to_owned()).collect();
    assert_eq!(engines, ["native", program, program, "native"]);
    let kept = keeper.kept();
    assert_eq!(kept.len(), 4, "two warm-ups, two loads");
    let [done, rate] = figures;
    for (pair, stage) in kept.chunks(2).zip(&loads(record)[1..3]) {
        let printed = &pair[1];
        assert!(printed.contains(threads), "{printed}");
        assert_eq!(operation(stage)["ok"].as_f64().unwrap(), number(printed, done), "{printed}");
        let throughput = operation(stage)["throughput_per_s"].as_f64().unwrap();
        let expected = match rate {
            "total time:" => number(printed, done) / number(printed, rate),
            rate => number(printed, rate),
        };
        assert!((throughput / expected - 1.0).abs() < 1e-6, "{throughput} {expected}");
        let setup = stage["proof"]["setup"].to_string();
        assert!(setup.contains(&format!("The load was done by {program}")), "{setup}");
        let acknowledged = stage["proof"]["databases"]["servers"][0]["acknowledged"].as_f64().unwrap();
        assert_eq!(acknowledged, number(&pair[0], done) + number(printed, done), "the warm-up counts there");
    }
    // Whether they agree within 5 % is for a quiet machine to say; here it must be said at all.
    let said = record.findings("cross-check");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0]["title"].as_str().unwrap().contains(&format!("native and {program}")), "{said:?}");
    assert!(
        !said[0]["title"].as_str().unwrap().contains("p50"),
        "they print no percentile of ours: {said:?}"
    );
}

const LOAD: &str = "clients: 4, warm_up: 1s, for: 2s";

#[test]
#[ignore = "needs PostgreSQL and pgbench; `make test` runs it"]
fn pgbench_does_the_same_load_and_its_figures_are_the_record_s() {
    tidemark_testing::needs!(&["pgbench"]);
    let Some(server) = Postgres::start(&["fsync=off"]) else { return };
    server.sql("ALTER USER postgres PASSWORD 'open-sesame'");
    let place = Place::new();
    let text = format!(
        "name: t\ntarget: {{kind: postgres, host: {}, port: {}, user: postgres, password: open-sesame}}\nstages:\n\
         - prepare: {{workload: pgbench/tpcb-like}}\n- load: {{workload: pgbench/tpcb-like, {LOAD}, checks: all}}\n",
        server.socket_directory().display(),
        server.port()
    );
    let keeper = Keeper::new(&place, "pgbench");
    let output = run(&place, &text, &[("TIDEMARK_PGBENCH", &keeper.script), ("PGHOST", "nowhere.invalid")]);
    assert!(!output.stdout.contains("open-sesame") && !output.stderr.contains("open-sesame"));
    assert!(keeper.kept().iter().all(|text| !text.contains("open-sesame")), "nor is it on the command line");
    let record = Record::from(&output);
    let figures = ["number of transactions actually processed:", "tps = "];
    check_against(&record, &keeper, "pgbench", figures, "number of clients: 4");
    let acknowledged =
        |stage: &Value| stage["proof"]["databases"]["servers"][0]["acknowledged"].as_u64().unwrap();
    let all: u64 = loads(&record).iter().map(acknowledged).sum();
    let history: u64 = server.sql("SELECT count(*) FROM pgbench_history").parse().unwrap();
    assert_eq!(history, all, "every transaction of both left a row");
    for stage in loads(&record) {
        let checks = stage["proof"]["databases"]["checks"].as_array().unwrap();
        assert!(checks.len() == 3 && checks.iter().all(|check| check["broken"] == 0), "{checks:?}");
    }
}

#[test]
#[ignore = "needs PostgreSQL and sysbench; `make test` runs it"]
fn sysbench_does_the_same_load_on_postgresql() {
    tidemark_testing::needs!(&["sysbench"]);
    let Some(server) = Postgres::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let data = "workload: sysbench/oltp_read_write, tables: 2, table_size: 1k";
    let text = format!(
        "name: t\ntarget: {{kind: postgres, host: 127.0.0.1, port: {}, user: postgres}}\nstages:\n\
         - prepare: {{{data}}}\n- load: {{{data}, {LOAD}}}\n",
        server.port()
    );
    let keeper = Keeper::new(&place, "sysbench");
    let record = Record::from(&run(&place, &text, &[("TIDEMARK_SYSBENCH", &keeper.script)]));
    check_against(&record, &keeper, "sysbench", ["transactions:", "total time:"], "Number of threads: 4");
}

#[test]
#[ignore = "needs MariaDB and sysbench; `make test` runs it"]
fn sysbench_does_the_same_load_on_mariadb() {
    tidemark_testing::needs!(&["sysbench"]);
    let Some(server) = Mariadb::start(&["innodb-flush-log-at-trx-commit=0"]) else { return };
    let place = Place::new();
    let data = "workload: sysbench/oltp_insert, tables: 2, table_size: 1k";
    let text = format!(
        "name: t\ntarget: {{kind: mariadb, host: 127.0.0.1, port: {}, user: bench, password: bench, database: bench, \
         tls: disable}}\nstages:\n- prepare: {{{data}}}\n- load: {{{data}, {LOAD}}}\n",
        server.port()
    );
    let keeper = Keeper::new(&place, "sysbench");
    let record = Record::from(&run(&place, &text, &[("TIDEMARK_SYSBENCH", &keeper.script)]));
    check_against(&record, &keeper, "sysbench", ["transactions:", "total time:"], "Number of threads: 4");
    let acknowledged =
        |stage: &Value| stage["proof"]["databases"]["servers"][0]["acknowledged"].as_u64().unwrap();
    let all: u64 = loads(&record).iter().map(acknowledged).sum();
    let rows = server.sql("SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2) - 2000");
    assert_eq!(rows.parse::<u64>().unwrap(), all, "every insert of both left a row");
}

#[test]
#[ignore = "needs PostgreSQL and pgbench; `make test` runs it"]
fn what_cannot_be_compared_is_refused_before_any_load() {
    tidemark_testing::needs!(&["pgbench"]);
    let Some(server) = Postgres::start(&["fsync=off"]) else { return };
    let place = Place::new();
    let on = |load: &str| {
        format!(
            "name: t\ntarget: {{kind: postgres, host: 127.0.0.1, port: {}, user: postgres}}\nstages:\n\
             - prepare: {{workload: pgbench/tpcb-like}}\n- load: {{{load}, {LOAD}}}\n",
            server.port()
        )
    };
    let absent = run(&place, &on("workload: pgbench/tpcb-like"), &[("PATH", "/nonexistent")]);
    assert_ne!(absent.code, 0);
    assert!(
        absent.stderr.contains("pgbench is not in PATH: install the package `postgresql`"),
        "{}",
        absent.stderr
    );
    let paced = run(&place, &on("workload: pgbench/tpcb-like, rate: 50/s"), &[]);
    assert_ne!(paced.code, 0);
    assert!(paced.stderr.contains("remove `rate` for the cross-check"), "{}", paced.stderr);
    let other = run(&place, &on("workload: kv"), &[]);
    assert!(other.stderr.contains("neither pgbench nor sysbench does"), "{}", other.stderr);
    assert_eq!(
        server.sql("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'pgbench%'"),
        "0",
        "nothing was loaded"
    );
    // A program that gives up says why.
    let gone = place.write("pgbench", "#!/bin/sh\n[ \"$1\" = --version ] && exec pgbench --version\necho 'pgbench: error: it rains' >&2\nexit 1\n");
    std::fs::set_permissions(&gone, std::fs::Permissions::from_mode(0o755)).unwrap();
    let failed =
        run(&place, &on("workload: pgbench/tpcb-like"), &[("TIDEMARK_PGBENCH", gone.to_str().unwrap())]);
    let record = Record::from(&failed);
    assert_eq!(record.state(), "failed");
    let reason = record.stage("load pgbench #1")["reason"].as_str().unwrap();
    assert!(reason.contains("pgbench failed with the exit code 1: pgbench: error: it rains"), "{reason}");
}
