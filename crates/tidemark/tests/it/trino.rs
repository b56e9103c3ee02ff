//! The built binary and a real Trino cluster of the lab, whose tables lie in the lab's RADOS gateway.

use crate::common::{Output, Place};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidemark_lab::{self as lab, Daemon, Lab, LabOptions, Trino};

struct Down<'a>(&'a Path);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        if let Err(error) = lab::down(self.0, true, &mut |_| {}) {
            eprintln!("the lab could not be taken down: {error}");
        }
    }
}

/// A place with labs of its own, and the command line on it.
struct Labs(Place);

impl Labs {
    fn ceph(&self) -> PathBuf {
        self.0.path("lab")
    }

    fn trino(&self) -> PathBuf {
        self.0.path("lab-trino")
    }

    fn tidemark(&self, arguments: &[&str]) -> Output {
        let mut command = self.0.command(arguments);
        let output = command.env("TIDEMARK_LAB_DIR", self.ceph()).output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The same, which must succeed.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.tidemark(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {}{}", output.stdout, output.stderr);
        output.stdout
    }
}

#[test]
#[ignore = "needs the Ceph packages and Trino; `make test-trino` runs it"]
fn trino_works_on_the_gateway_of_the_lab() {
    tidemark_testing::needs!(tidemark_testing::CEPH);
    tidemark_testing::needs!(tidemark_testing::TRINO);
    if let Err(error) = Trino::java(None) {
        return tidemark_testing::skip(error);
    }
    let labs = Labs(Place::new());
    let (ceph, directory) = (labs.ceph(), labs.trino());

    let alone = labs.tidemark(&["lab", "up", "trino"]);
    assert_eq!(alone.code, 3, "{}", alone.stderr);
    assert!(alone.stderr.contains("start one with `tidemark lab up ceph`"), "{}", alone.stderr);

    let _ceph_down = Down(&ceph);
    let cluster = lab::up(&LabOptions::new(&ceph), &mut |text| eprintln!("{text}")).unwrap();
    let _down = Down(&directory);
    let shown = labs.done(&["lab", "up", "trino", "--workers", "1", "--heap", "1GiB"]);
    assert!(active(&shown) == Some("coordinator, worker-1"), "{shown}");
    let trino = Trino::open(&directory).unwrap();

    its_variables_lead_to_it_and_to_its_bucket(&labs, &trino, &cluster);
    it_generates_and_keeps_tables(&trino, &cluster);
    a_killed_worker_is_seen_and_started_again(&labs, &trino);
    what_runs_is_not_changed(&labs);
    no_log_has_the_secret_key(&trino, &cluster);
    taken_down_it_leaves_its_tables_and_nothing_else(&labs, &trino, &cluster);
    a_coordinator_alone_works_at_once_and_finds_the_tables(&labs);
}

/// How many rows something has.
fn count(trino: &Trino, what: &str) -> u64 {
    trino.ask(&format!("SELECT count(*) FROM {what}")).unwrap()[0][0].as_u64().unwrap()
}

/// How many objects the bucket has.
fn objects(cluster: &Lab) -> u64 {
    let text = cluster.radosgw_admin(&["bucket", "stats", "--bucket", "trino"]).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&text).unwrap();
    stats["usage"]["rgw.main"]["num_objects"].as_u64().unwrap_or(0)
}

fn its_variables_lead_to_it_and_to_its_bucket(labs: &Labs, trino: &Trino, cluster: &Lab) {
    let text = labs.done(&["lab", "env", "trino"]);
    let exported = |line: &str| {
        let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
        Some((name.to_owned(), value.trim_matches('\'').to_owned()))
    };
    let variables: BTreeMap<String, String> = text.lines().map(|line| exported(line).unwrap()).collect();
    assert_eq!(variables["TIDEMARK_LAB_TRINO"], trino.endpoint());
    assert_eq!(variables["TIDEMARK_LAB_CATALOG"], "hive");
    assert_eq!(variables["TIDEMARK_LAB_S3"], cluster.endpoint());
    assert_eq!(variables["TIDEMARK_LAB_BUCKET"], "trino");
    assert_eq!(variables["AWS_SECRET_ACCESS_KEY"], cluster.credentials().secret_key);
}

fn it_generates_and_keeps_tables(trino: &Trino, cluster: &Lab) {
    assert_eq!(count(trino, "system.runtime.nodes WHERE state = 'active'"), 2);
    assert_eq!(count(trino, "tpch.tiny.lineitem"), 60_175);
    let before = objects(cluster);
    trino.ask("CREATE SCHEMA hive.made").unwrap();
    trino.ask("CREATE TABLE hive.made.nation AS SELECT * FROM tpch.tiny.nation").unwrap();
    trino.ask("CREATE TABLE hive.made.reason AS SELECT * FROM tpcds.tiny.reason").unwrap();
    assert_eq!(count(trino, "hive.made.nation"), count(trino, "tpch.tiny.nation"));
    assert_eq!(count(trino, "hive.made.reason"), count(trino, "tpcds.tiny.reason"));
    let made = objects(cluster);
    assert!(made >= before + 2, "{before} to {made}");
    // The same files under another name, as of a table that somebody else wrote.
    let path = trino.ask("SELECT \"$path\" FROM hive.made.nation LIMIT 1").unwrap()[0][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(path.starts_with("s3://trino/"), "{path}");
    let location = path.rsplit_once('/').unwrap().0;
    trino
        .ask(&format!(
            "CREATE TABLE hive.made.theirs (nationkey bigint, name varchar(25), regionkey bigint, comment varchar(152)) \
             WITH (external_location = '{location}', format = 'PARQUET')"
        ))
        .unwrap();
    assert_eq!(count(trino, "hive.made.theirs"), 25);
    trino.ask("INSERT INTO hive.made.theirs SELECT * FROM tpch.tiny.nation").unwrap();
    assert_eq!(count(trino, "hive.made.theirs"), 50);
    let error = trino.ask("SELECT * FROM hive.made.nothing").unwrap_err().to_string();
    assert!(error.contains("hive.made.nothing") && error.contains(&trino.endpoint()), "{error}");
}

fn pid(trino: &Trino, daemon: Daemon) -> u32 {
    trino.pid(daemon).unwrap().unwrap()
}

fn a_killed_worker_is_seen_and_started_again(labs: &Labs, trino: &Trino) {
    let (coordinator, worker) = (pid(trino, Daemon::Coordinator), pid(trino, Daemon::Worker(1)));
    assert!(Command::new("kill").args(["-9", &worker.to_string()]).status().unwrap().success());
    while trino.pid(Daemon::Worker(1)).unwrap().is_some() {
        std::thread::yield_now();
    }
    let status = labs.tidemark(&["lab", "status", "trino"]);
    assert_eq!(status.code, 3, "{}", status.stdout);
    assert!(status.stdout.contains("worker-1     stopped"), "{}", status.stdout);
    assert!(status.stdout.contains("coordinator  running"), "{}", status.stdout);
    labs.done(&["lab", "up", "trino"]);
    labs.done(&["lab", "status", "trino"]);
    assert_eq!(pid(trino, Daemon::Coordinator), coordinator, "only what was missing was started");
    assert_ne!(pid(trino, Daemon::Worker(1)), worker);
    assert_eq!(count(trino, "hive.made.theirs"), 50);
}

fn what_runs_is_not_changed(labs: &Labs) {
    let other = labs.tidemark(&["lab", "up", "trino", "--workers", "2"]);
    assert_eq!(other.code, 3, "{}", other.stderr);
    assert!(other.stderr.contains("run with other settings"), "{}", other.stderr);
    let wrong = labs.tidemark(&["lab", "up", "trino", "--layout", "baseline"]);
    assert!(wrong.stderr.contains("--layout has no meaning for trino"), "{}", wrong.stderr);
}

fn no_log_has_the_secret_key(trino: &Trino, cluster: &Lab) {
    let secret = &cluster.credentials().secret_key;
    let logs = trino.dir().join("log");
    let mut seen = 0;
    for entry in std::fs::read_dir(logs).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains(secret.as_str()));
        seen += usize::from(text.contains("s3.aws-secret-key"));
    }
    assert!(seen >= 2, "the settings are in the log of both");
}

fn taken_down_it_leaves_its_tables_and_nothing_else(labs: &Labs, trino: &Trino, cluster: &Lab) {
    let pids = [Daemon::Coordinator, Daemon::Worker(1)].map(|daemon| pid(trino, daemon));
    let kept = objects(cluster);
    labs.done(&["lab", "down", "trino"]);
    assert!(!labs.trino().exists());
    for pid in pids {
        // One that nobody has asked how it ended has no command line any more.
        assert_eq!(std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default(), b"", "{pid}");
        for entry in std::fs::read_dir(std::env::temp_dir()).unwrap() {
            let path = entry.unwrap().path();
            // Where Java keeps counters of its processes, and sockets to attach to them.
            let traces = [path.join(pid.to_string()), path.with_file_name(format!(".java_pid{pid}"))];
            assert!(traces.iter().all(|trace| !trace.exists()), "{traces:?}");
        }
    }
    assert_eq!(objects(cluster), kept, "tables outlive the cluster");
    let again = labs.tidemark(&["lab", "status", "trino"]);
    assert!(again.stderr.contains("there is no lab in"), "{}", again.stderr);
}

fn a_coordinator_alone_works_at_once_and_finds_the_tables(labs: &Labs) {
    let shown = labs.done(&["lab", "up", "trino", "--heap", "1GiB"]);
    let trino = Trino::open(&labs.trino()).unwrap();
    assert_eq!(count(&trino, "hive.made.theirs"), 50);
    assert!(active(&shown) == Some("coordinator"), "{shown}");
}

/// Who is active, as the state of a lab shows it, however wide its first column is.
fn active(shown: &str) -> Option<&str> {
    shown.lines().find_map(|line| line.strip_prefix("active ")).map(str::trim)
}
