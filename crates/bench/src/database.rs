//! Transactions on PostgreSQL by our SQL engine, and by pgbench and sysbench on the same tables, one processor each.

use crate::processor::Time;
use serde::{Deserialize, Serialize};
use std::process::Command;
use tidemark_control::event::{Event, EventSink, StopRequest};
use tidemark_control::execute::{Options, execute};
use tidemark_measure::record::{Provenance, State};
use tidemark_plan::document;
use tidemark_plan::yaml::Environment;
use tidemark_testing::postgres::Postgres;

/// Connections of a client.
pub(crate) const CLIENTS: u32 = 8;

/// Rows of sysbench's one table.
const TABLE_SIZE: u32 = 100_000;

/// What a client process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    document: String,
}

/// What came of it, whoever did it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Transactions per second.
    pub(crate) rate: f64,
    /// Microseconds of the client's processor time per transaction.
    pub(crate) cpu_us: f64,
}

struct Quiet;

impl EventSink for Quiet {
    fn event(&mut self, _event: Event<'_>) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

impl Task {
    /// Loads the data set of a workload.
    pub(crate) fn fill(server: &Postgres, workload: &str) -> Self {
        Self::of(server, &format!("prepare: {{workload: {workload}}}"))
    }

    /// Puts load on for so many seconds.
    pub(crate) fn load(server: &Postgres, workload: &str, seconds: f64) -> Self {
        Self::of(server, &format!("load: {{workload: {workload}, clients: {CLIENTS}, for: {seconds}s}}"))
    }

    fn of(server: &Postgres, stage: &str) -> Self {
        let size = format!("table_size: {TABLE_SIZE}");
        let stage = if stage.contains("sysbench") {
            stage.replace('}', &format!(", {size}}}"))
        } else {
            stage.to_owned()
        };
        let (host, port) = (server.socket_directory().display(), server.port());
        let target = format!("{{kind: postgres, host: {host}, port: {port}}}");
        Self { document: format!("name: bench\nseed: 1\ntarget: {target}\nstages:\n- {stage}\n") }
    }
}

/// The client process: one thread.
pub(crate) fn run(task: &Task) -> Result<Cost, String> {
    let registry = tidemark_engines::registry();
    let read = document::read(&task.document, &Environment::process(&registry));
    let plan = read.map_err(|found| format!("{found:?}"))?.plan;
    let options = Options { threads: Some(1), ..Options::local(registry) };
    let before = Time::own();
    let done = execute(&plan, Provenance::default(), &options, None, &mut Quiet)
        .map_err(|error| error.to_string())?;
    let used = Time::own().zip(before).map(|(after, before)| after - before);
    let stage = &done.run.stages[0];
    if stage.state != State::Completed {
        return Err(stage.reason.clone());
    }
    let ok: u64 = stage.works.iter().flat_map(|work| &work.operations).map(|one| one.tally.ok).sum();
    let cpu_us = used.map_or(f64::NAN, |used| used.total_us() / ok.max(1) as f64);
    // The peers' rates are those of their time under load, too.
    let window_ns: u64 = stage.works.iter().map(|work| work.window_end_ns - work.window_start_ns).sum();
    Ok(Cost { rate: ok as f64 * 1e9 / window_ns as f64, cpu_us })
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
    Some(Cost { rate: count / seconds, cpu_us: used.total_us() / count })
}
