//! Databases on a disk whose power is cut: what they acknowledged is there afterwards if they were set to be durable, and
//! its loss is found if they were not.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidemark_lab::{Database, Databases};

/// Clients that commit at the same time.
const CLIENTS: u64 = 4;
/// Commits that are acknowledged before the power is cut.
const COMMITS: usize = 400;

/// Servers of the lab, taken down when the test ends.
struct Lab {
    directory: tempfile::TempDir,
    database: Database,
}

impl Lab {
    fn new(database: Database) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The servers are another user.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o711)).unwrap();
        Self { directory, database }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("lab")
    }

    fn run(&self, command: &str, options: &[&str]) -> Output {
        let mut tidemark = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        tidemark
            .args(["lab", command, self.database.system().name()])
            .args(options)
            .arg("--dir")
            .arg(self.path());
        let output = tidemark.output().unwrap();
        eprintln!(
            "lab {command}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    fn done(&self, command: &str, options: &[&str]) {
        let output = self.run(command, options);
        assert!(output.status.success(), "lab {command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn open(&self) -> Databases {
        Databases::open(&self.path()).unwrap()
    }

    fn ask(&self, sql: &str) -> String {
        self.open().ask(0, sql).unwrap()
    }

    /// The database's own client, which reads statements and writes one line for each that has rows.
    fn client(&self) -> Child {
        let variables: std::collections::BTreeMap<_, _> = self.open().variables().into_iter().collect();
        let (port, user) = (&variables["TIDEMARK_LAB_PORT"], &variables["TIDEMARK_LAB_USER"]);
        let mut client = match self.database {
            Database::Postgres => {
                let mut psql = Command::new("psql");
                // A statement that fails prints no line: psql must end instead of waiting for the next one.
                psql.args([
                    "-XAqt",
                    "-v",
                    "ON_ERROR_STOP=1",
                    "-h",
                    "127.0.0.1",
                    "-p",
                    port,
                    "-U",
                    user,
                    "-d",
                    "tidemark",
                ]);
                psql.env("PGPASSWORD", &variables["TIDEMARK_LAB_PASSWORD"]);
                psql
            }
            Database::Mariadb => {
                let mut mariadb = Command::new("mariadb");
                mariadb.args([
                    "--no-defaults",
                    "-NBn",
                    "-h",
                    "127.0.0.1",
                    "-P",
                    port,
                    "-u",
                    user,
                    "tidemark",
                ]);
                mariadb.env("MYSQL_PWD", &variables["TIDEMARK_LAB_PASSWORD"]);
                mariadb
            }
        };
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Commits from several clients until the power has been cut; returns what was acknowledged.
    fn commit_until_cut(&self, round: u64) -> BTreeSet<u64> {
        let (ledger, is_cut) = (Mutex::new(BTreeSet::new()), AtomicBool::new(false));
        thread::scope(|scope| {
            let mut clients = Vec::new();
            for number in 0..CLIENTS {
                let (ledger, is_cut) = (&ledger, &is_cut);
                clients.push(scope.spawn(move || {
                    let mut client = self.client();
                    let mut answers = BufReader::new(client.stdout.take().unwrap()).lines();
                    let mut statements = client.stdin.take().unwrap();
                    for id in (0..).map(|count| round * 1_000_000 + count * CLIENTS + number) {
                        // One transaction each: the answer to RETURNING comes once it is committed.
                        let sent = writeln!(statements, "INSERT INTO ledger VALUES ({id}) RETURNING id;");
                        let answer = sent.ok().and_then(|()| answers.next()?.ok());
                        if answer.is_none_or(|answer| answer.trim() != id.to_string()) {
                            break;
                        }
                        ledger.lock().unwrap().insert(id);
                    }
                    assert!(is_cut.load(Ordering::SeqCst), "a client ended before the power was cut");
                    drop(statements);
                    client.wait().unwrap();
                }));
            }
            while ledger.lock().unwrap().len() < COMMITS {
                assert!(clients.iter().any(|client| !client.is_finished()), "all clients have ended");
                thread::sleep(std::time::Duration::from_millis(2));
            }
            is_cut.store(true, Ordering::SeqCst);
            self.done("cut", &[]);
        });
        ledger.into_inner().unwrap()
    }

    /// What the ledger's table holds; `None` if the database cannot even be started.
    fn held(&self) -> Option<BTreeSet<u64>> {
        self.run("up", &[]).status.success().then_some(())?;
        let answer = self.open().ask(0, "SELECT id FROM ledger").ok()?;
        Some(answer.lines().map(|line| line.trim().parse().unwrap()).collect())
    }

    fn nothing_is_lost(&self, cuts: u64) {
        let mut acknowledged = BTreeSet::new();
        for round in 1..=cuts {
            acknowledged.extend(self.commit_until_cut(round));
            let held = self.held().expect("the database starts again");
            let lost: Vec<_> = acknowledged.difference(&held).collect();
            assert_eq!(lost, Vec::<&u64>::new(), "of {} acknowledged commits", acknowledged.len());
            eprintln!("cut {round}: {} acknowledged, {} held", acknowledged.len(), held.len());
        }
    }
}

/// A load on the lab's PostgreSQL that keeps a ledger.
const LOAD: &str = r#"
name: ledger
seed: 7
target: {kind: postgres, endpoints: "${TIDEMARK_LAB_ENDPOINTS}", user: "${TIDEMARK_LAB_USER}",
  password: "${TIDEMARK_LAB_PASSWORD}", database: "${TIDEMARK_LAB_DATABASE}"}
stages:
  - prepare: {workload: pgbench/simple-update}
  - load: {workload: pgbench/simple-update, clients: 4, for: 6s, drain: 5s, allowed_failures: 100%, ledger: true}
"#;

impl Lab {
    /// Transactions of the load that are there: each has a row.
    fn rows(&self) -> Option<u64> {
        self.open().ask(0, "SELECT count(*) FROM pgbench_history").ok()?.trim().parse().ok()
    }

    /// Puts the load on, cuts the power under it and starts the server again; gives what the ledger says, or nothing if the
    /// server does not start.
    fn ledger_over_a_cut(&self) -> Option<serde_json::Value> {
        let document = self.directory.path().join("load.yaml");
        fs::write(&document, LOAD).unwrap();
        let before = self.rows().unwrap_or(0);
        let mut load = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        load.arg("run").arg(&document).args(["--json", "--no-store", "--no-report"]);
        let load = load.envs(self.open().variables()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut load = load.spawn().unwrap();
        while self.rows().unwrap_or(0) < before + 100 {
            assert!(load.try_wait().unwrap().is_none(), "the load has ended");
            thread::sleep(std::time::Duration::from_millis(20));
        }
        self.done("cut", &[]);
        if !self.run("up", &[]).status.success() {
            load.kill().unwrap();
            load.wait().unwrap();
            return None;
        }
        let output = load.wait_with_output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let events = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let run = events.into_iter().find(|event| event["event"] == "run").expect("the run is told");
        let stages = run["run"]["stages"].as_array().unwrap().iter();
        Some(stages.last().unwrap()["proof"]["databases"]["ledgers"][0].clone())
    }
}

#[test]
#[ignore = "needs PostgreSQL and FUSE; run by make test"]
fn a_ledger_finds_what_a_power_cut_has_lost() {
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    if !can_mount() {
        return;
    }
    let lab = Lab::new(Database::Postgres);
    lab.done("up", &["--power-cut"]);
    let number = |ledger: &serde_json::Value, name: &str| ledger[name].as_u64().unwrap();
    // Every transaction that the ledger knows of has a row of history, unless it is missing.
    let held = |ledger: &serde_json::Value| {
        number(ledger, "acknowledged") + number(ledger, "ambiguous_committed") - number(ledger, "missing")
    };
    let kept = lab.ledger_over_a_cut().expect("the database starts again");
    eprintln!("synced: {kept}");
    assert_eq!((number(&kept, "missing"), number(&kept, "unexpected")), (0, 0));
    assert!(number(&kept, "acknowledged") >= 90);
    assert_eq!(lab.rows(), Some(held(&kept)));

    lab.done("down", &["--keep"]);
    lab.done("up", &["--set", "fsync=off"]);
    let before = lab.rows().unwrap();
    // A server that does not start any more has lost everything.
    let Some(lost) = lab.ledger_over_a_cut() else { return };
    eprintln!("not synced: {lost}");
    assert!(number(&lost, "missing") > 0, "without fsync the loss is found");
    assert_eq!(lab.rows(), Some(before + held(&lost)));
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.run("down", &[]);
    }
}

/// Whether the disk can be mounted here.
fn can_mount() -> bool {
    let there = Path::new("/dev/fuse").exists();
    if !there {
        tidemark_testing::skip("there is no /dev/fuse");
    }
    there
}

#[test]
#[ignore = "needs PostgreSQL and FUSE; run by make test"]
fn postgresql_loses_nothing_it_acknowledged_unless_it_does_not_sync() {
    tidemark_testing::needs!(tidemark_testing::POSTGRES);
    if !can_mount() {
        return;
    }
    let lab = Lab::new(Database::Postgres);
    lab.done("up", &["--power-cut"]);
    lab.ask("CREATE TABLE ledger (id BIGINT PRIMARY KEY)");
    lab.nothing_is_lost(3);

    lab.done("down", &["--keep"]);
    lab.done("up", &["--set", "fsync=off"]);
    let acknowledged = lab.commit_until_cut(9);
    let held = lab.held().unwrap_or_default();
    let lost = acknowledged.difference(&held).count();
    eprintln!("without fsync: {lost} of {} acknowledged commits lost", acknowledged.len());
    assert!(lost > 0, "without fsync the loss is found");
}

#[test]
#[ignore = "needs MariaDB and FUSE; run by make test"]
fn mariadb_loses_nothing_it_acknowledged() {
    tidemark_testing::needs!(tidemark_testing::MARIADB);
    if !can_mount() {
        return;
    }
    let lab = Lab::new(Database::Mariadb);
    lab.done("up", &["--power-cut"]);
    lab.ask("CREATE TABLE ledger (id BIGINT PRIMARY KEY) ENGINE=InnoDB");
    lab.nothing_is_lost(3);
}
