//! Transactions on PostgreSQL by our SQL engine, and by pgbench and sysbench on the same tables, one processor each.

use crate::documents;
use crate::processor::{Time, resident_bytes};
use serde::{Deserialize, Serialize};
use std::process::Command;
use tidemark_testing::mariadb::Mariadb;
use tidemark_testing::postgres::Postgres;

/// Connections of a client.
pub(crate) const CLIENTS: u32 = 8;

/// Rows of sysbench's one table.
const TABLE_SIZE: u32 = 100_000;

/// What a client process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    document: String,
    /// The only operation that is counted, if not all are.
    counted: Option<String>,
}

/// What came of it, whoever did it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Transactions, or those of the operation that was to be counted.
    pub(crate) count: f64,
    /// The time under load; of a preparation, its whole time.
    pub(crate) seconds: f64,
    /// The client's processor time, microseconds.
    pub(crate) total_us: f64,
    /// The largest resident set of the client, bytes; 0 of a peer.
    pub(crate) resident_bytes: u64,
}

impl Cost {
    /// Transactions per second.
    pub(crate) fn rate(&self) -> f64 {
        self.count / self.seconds
    }

    /// Microseconds of the client's processor time per transaction.
    pub(crate) fn each_us(&self) -> f64 {
        self.total_us / self.count
    }
}

/// A server as a document's target names it.
pub(crate) fn target(server: &Postgres) -> String {
    format!("{{kind: postgres, host: {}, port: {}}}", server.socket_directory().display(), server.port())
}

/// See [`target`].
pub(crate) fn target_of_mariadb(server: &Mariadb) -> String {
    let host = server.socket().display().to_string();
    format!("{{kind: mariadb, host: {host}, user: bench, password: bench, database: bench}}")
}

/// A workload as a stage names it: sysbench's have a table of their own size.
fn named(workload: &str) -> String {
    let size =
        if workload.starts_with("sysbench") { format!(", table_size: {TABLE_SIZE}") } else { String::new() };
    format!("workload: {workload}{size}")
}

impl Task {
    /// Loads the data set of a workload.
    pub(crate) fn fill(target: &str, workload: &str) -> Self {
        Self::of(target, &format!("prepare: {{{}}}", named(workload)))
    }

    /// Puts load on for so many seconds.
    pub(crate) fn load(target: &str, workload: &str, clients: u32, seconds: f64) -> Self {
        Self::of(target, &format!("load: {{{}, clients: {clients}, for: {seconds}s}}", named(workload)))
    }

    /// Counts only this operation.
    pub(crate) fn counting(self, label: &str) -> Self {
        Self { counted: Some(label.to_owned()), ..self }
    }

    fn of(target: &str, stage: &str) -> Self {
        let document = format!("name: bench\nseed: 1\ntarget: {target}\nstages:\n- {stage}\n");
        Self { document, counted: None }
    }
}

/// The client process: one thread.
pub(crate) fn run(task: &Task) -> Result<Cost, String> {
    let before = Time::own();
    let run = documents::run(tidemark_engines::registry(), &task.document, Some(1))?;
    let used = Time::own().zip(before).map(|(after, before)| after - before);
    let stage = run.stages.first().ok_or("the document has no stage")?;
    let operations = stage.works.iter().flat_map(|work| &work.operations);
    let counted = operations.filter(|one| task.counted.as_ref().is_none_or(|label| *label == one.label));
    let ok: u64 = counted.map(|one| one.tally.ok).sum();
    // The peers' rates are those of their time under load, too.
    let window_ns: u64 = stage.works.iter().map(|work| work.window_end_ns - work.window_start_ns).sum();
    let whole_ns = stage.ended_ns - stage.started_ns;
    Ok(Cost {
        count: ok as f64,
        seconds: if window_ns > 0 { window_ns } else { whole_ns } as f64 / 1e9,
        total_us: used.map_or(f64::NAN, Time::total_us),
        resident_bytes: resident_bytes(),
    })
}

/// pgbench with prepared statements; `script` is its option, such as `-S`. `None` when it is not installed.
pub(crate) fn pgbench(server: &Postgres, script: &[&str], seconds: f64) -> Option<Cost> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", "pgbench", "-n", "-M", "prepared", "-j", "1", "-U", "postgres"]).args(script);
    command.args([
        "-c",
        &CLIENTS.to_string(),
        "-T",
        &seconds.ceil().to_string(),
        "-p",
        &server.port().to_string(),
        "-h",
    ]);
    command.arg(server.socket_directory()).arg("postgres");
    peer(command, "number of transactions actually processed: ", seconds.ceil())
}

/// sysbench's workload of this name; `None` when it is not installed.
pub(crate) fn sysbench(server: &Postgres, workload: &str, seconds: f64) -> Option<Cost> {
    let mut command = Command::new("taskset");
    command.args([
        "-c",
        "1",
        "sysbench",
        workload,
        "--db-driver=pgsql",
        "--pgsql-user=postgres",
        "--pgsql-db=postgres",
    ]);
    command.args([
        format!("--pgsql-host={}", server.socket_directory().display()),
        format!("--pgsql-port={}", server.port()),
    ]);
    command.args([
        format!("--table-size={TABLE_SIZE}"),
        format!("--threads={CLIENTS}"),
        format!("--time={}", seconds.ceil()),
    ]);
    command.args(["--rand-type=uniform", "run"]);
    peer(command, "transactions: ", seconds.ceil())
}

/// Runs a peer that says its number of transactions behind these words.
fn peer(mut command: Command, words: &str, seconds: f64) -> Option<Cost> {
    let before = Time::of_children()?;
    let output = command.output().ok()?;
    let used = Time::of_children()? - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.trim().strip_prefix(words.trim()))?;
    let count: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(Cost { count, seconds, total_us: used.total_us(), resident_bytes: 0 })
}
