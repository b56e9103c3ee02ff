//! Measures Tidemark itself beside its peers, in one run, so that ratios mean something on a noisy machine.
//!
//! `make bench` runs it. The server is a child process pinned to the first processor, the client another one
//! pinned to the second; clients alternate, and medians of the rounds are compared.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod analytics;
mod bare;
mod block;
mod client;
mod database;
mod documents;
mod fleet;
mod null;
mod processor;
mod sink;
mod stages;
mod wrk;

use client::{Cost, Task};
use sink::Sink;
use std::net::TcpListener;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;
use tidemark_testing::mariadb::Mariadb;
use tidemark_testing::postgres::Postgres;

const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["sink", port, body, manner] => serve(port, body, manner),
        ["client", task] => work(task, client::run),
        ["bare-client", task] => work(task, bare::run),
        ["block-client", task] => work(task, block::run),
        ["database-client", task] => work(task, database::run),
        ["s3-server"] => analytics::serve(),
        ["make-tables", task] => answer(task, analytics::make),
        ["power-run", task] => answer(task, analytics::run),
        ["power-run-on-one", task] => work(task, analytics::run),
        ["generate", task] => work(task, analytics::generate),
        ["block"] => blocks(10.0),
        ["database"] => databases(10.0),
        ["analytics"] => analytics::compare(1.0),
        ["analytics", scale] => match scale.parse() {
            Ok(scale) => analytics::compare(scale),
            Err(_) => Err("a scale is a number, such as 0.1".into()),
        },
        ["requests"] => requests(5.0).and_then(|()| encrypted(5.0)).and_then(|()| large(5.0)).and_then(|()| verification(5.0)),
        ["stages"] => many_stages(10),
        ["stages", runs] => many_stages(runs.parse().map_err(|_| "runs are a number").unwrap_or(10)),
        ["fleet"] => drivers(20),
        ["fleet", seconds] => drivers(seconds.parse().map_err(|_| "seconds are a number").unwrap_or(20)),
        [] => everything(5.0, false),
        ["quick"] => everything(1.0, false),
        ["long"] => everything(5.0, true),
        ["memory"] => memory_over_time(60.0, 600.0),
        _ => Err("usage: tidemark-bench [quick | long | requests | memory | block | database | analytics [SCALE] | fleet [SECONDS] | stages [RUNS]]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidemark-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), String>;

/// The server process.
fn serve(port: &str, body: &str, manner: &str) -> Done {
    pin(0);
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).map_err(|error| error.to_string())?;
    let body = vec![b'x'; body.parse().map_err(|_| "body is a number of bytes")?];
    let freeze = (manner == "freezes").then_some((Duration::from_secs(2), Duration::from_millis(200)));
    Sink { body, freeze, tls: manner == "tls" }.serve(&listener).map_err(|error| error.to_string())
}

/// A client process on the second processor.
fn work<T: serde::de::DeserializeOwned, C: serde::Serialize>(
    task: &str,
    run: impl Fn(&T) -> Result<C, String>,
) -> Done {
    pin(1);
    answer(task, run)
}

/// A client process on all processors.
fn answer<T: serde::de::DeserializeOwned, C: serde::Serialize>(
    task: &str,
    run: impl Fn(&T) -> Result<C, String>,
) -> Done {
    let task: T = serde_json::from_str(task).map_err(|error| error.to_string())?;
    println!("{}", serde_json::to_string(&run(&task)?).map_err(|error| error.to_string())?);
    Ok(())
}

/// Keeps this process on one processor, where there are two.
fn pin(processor: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    // With one processor, or where it is not allowed, everything shares what there is.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// A server process that ends with this value.
struct Server {
    child: Child,
    endpoint: String,
    address: String,
}

impl Server {
    /// `manner`: `steady`, `freezes` for a while now and then, or `tls`.
    fn start(body: u64, manner: &str) -> Result<Self, String> {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let port = port.map_err(|error| error.to_string())?.port().to_string();
        let child = Command::new(own_path()?).args(["sink", &port, &body.to_string(), manner]).spawn();
        let child = child.map_err(|error| error.to_string())?;
        let address = format!("127.0.0.1:{port}");
        for _ in 0..200 {
            if std::net::TcpStream::connect(&address).is_ok() {
                let scheme = if manner == "tls" { "https" } else { "http" };
                return Ok(Self { child, endpoint: format!("{scheme}://{address}"), address });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("the server did not come up within 2 s".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn own_path() -> Result<std::path::PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

fn run_client(task: &Task) -> Result<Cost, String> {
    let cost: Cost = child("client", task)?;
    if cost.failed > 0 {
        return Err(format!("{} operations failed", cost.failed));
    }
    Ok(cost)
}

/// Does a task in a process of its own.
fn child<T: serde::Serialize, C: serde::de::DeserializeOwned>(role: &str, task: &T) -> Result<C, String> {
    let text = serde_json::to_string(task).map_err(|error| error.to_string())?;
    let output = Command::new(own_path()?).args([role, &text]).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{role}: {error}"))
}

/// A controller with 1,000 drivers.
fn drivers(seconds: u32) -> Done {
    let tidemark = own_path()?.with_file_name("tidemark");
    if !tidemark.exists() {
        return Err(format!("{} does not exist: run `make build` first", tidemark.display()));
    }
    let cost = fleet::run(&tidemark, 1000, seconds.max(3))?;
    let (counted, sent) = cost.counted;
    println!(
        "a controller with 1,000 drivers, each with a second of 4 operations a second, for {seconds} s\n"
    );
    row("CPUs of the controller", &format!("{:.2}", cost.cores), "< 1", cost.cores < 1.0);
    let megabytes = cost.memory as f64 / 1e6;
    row("its peak memory", &format!("{megabytes:.0} MB"), "< 1000 MB", megabytes < 1000.0);
    let (middle, worst) = cost.lag_ms;
    row("delay of the live view, median", &format!("{middle:.0} ms"), "< 2000 ms", middle < 2000.0);
    row("delay of the live view, worst", &format!("{worst:.0} ms"), "< 2000 ms", worst < 2000.0);
    row("seconds seen live", &cost.seen.to_string(), &seconds.to_string(), cost.seen as u32 >= seconds);
    row("operations counted", &counted.to_string(), &sent.to_string(), counted == sent);
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn row(what: &str, value: &str, limit: &str, met: bool) {
    println!("{what:54} {value:>26}   {limit:24} {}", if met { "met" } else { "NOT MET" });
}

fn everything(seconds: f64, long: bool) -> Done {
    println!(
        "medians of {ROUNDS} alternating rounds; ratios count, absolute figures depend on the machine\n"
    );
    null_engine();
    blocks(seconds * 2.0)?;
    requests(seconds)?;
    encrypted(seconds)?;
    large(seconds)?;
    verification(seconds)?;
    // What a start costs is not the cost of a transaction.
    databases(seconds * 2.0)?;
    analytics::compare(if seconds < 5.0 { 0.1 } else { 1.0 })?;
    many_stages(if long { 100 } else { 3 })?;
    many_workers()?;
    open_loop(seconds)?;
    if long { memory_over_time(60.0, 600.0) } else { memory_over_time(seconds * 4.0, seconds * 12.0) }
}

fn null_engine() {
    let rounds: Vec<_> = (0..ROUNDS).map(|_| (null::ours(), null::fio())).collect();
    let ours = median(rounds.iter().filter_map(|(ours, _)| ours.clone().ok()).collect());
    let fio = median(rounds.iter().filter_map(|(_, fio)| *fio).collect());
    let beside = if fio.is_nan() { "fio not installed".into() } else { format!("fio {fio:.0} ns") };
    row(
        "null engine, everything recorded, per operation",
        &format!("{ours:.0} ns ({beside})"),
        "at most 120 ns",
        ours <= 120.0,
    );
}

fn task(endpoint: &str, seconds: f64) -> Task {
    Task {
        put: false,
        verify: false,
        single: false,
        endpoint: endpoint.into(),
        workers: 64,
        bytes: 4096,
        seconds,
        operations: None,
        rate: None,
    }
}

fn requests(seconds: f64) -> Done {
    let server = Server::start(4096, "steady")?;
    let get = task(&server.endpoint, seconds);
    let put = Task { put: true, ..get.clone() };
    let bare_get = bare::Task { address: server.address.clone(), put: None, connections: 64, seconds };
    let bare_put = bare::Task { put: Some(4096), ..bare_get.clone() };
    let (mut gets, mut puts, mut wrks, mut bare_gets, mut bare_puts) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        gets.push(run_client(&get)?.cpu_us());
        wrks.extend(wrk::cpu_us(&server.endpoint, 64, seconds));
        puts.push(run_client(&put)?.cpu_us());
        bare_gets.push(child::<_, bare::Cost>("bare-client", &bare_get)?.cpu_us());
        bare_puts.push(child::<_, bare::Cost>("bare-client", &bare_put)?.cpu_us());
    }
    let (get, put, wrk) = (median(gets), median(puts), median(wrks));
    let (bare_get, bare_put) = (median(bare_gets), median(bare_puts));
    let ratio = get / wrk;
    row(
        "client CPU per 4 KiB GET, signed, 64 connections",
        &format!("{get:.2} us (wrk {wrk:.2} us)"),
        "-",
        true,
    );
    row("  ratio to wrk's unsigned GET", &format!("{ratio:.2}"), "at most 0.85", ratio <= 0.85);
    row("  a bare sender's", &format!("{bare_get:.2} us"), "-", true);
    let (ratio, bare) = (put / get, bare_put / bare_get);
    row("client CPU per 4 KiB PUT", &format!("{put:.2} us"), "-", true);
    row("  a bare sender's", &format!("{bare_put:.2} us"), "-", true);
    row(
        "  ratio to the GET",
        &format!("{ratio:.2} (bare sender {bare:.2})"),
        "1.20, or the bare one's",
        ratio <= bare.max(1.2),
    );
    Ok(())
}

/// GETs over TLS, beside wrk, on connections that are kept.
fn encrypted(seconds: f64) -> Done {
    for (name, bytes, connections) in [("4 KiB", 4096, 64), ("1 MiB", 1 << 20, 8)] {
        let server = Server::start(bytes, "tls")?;
        let get = Task { workers: connections, bytes, ..task(&server.endpoint, seconds) };
        let (mut ours, mut wrks) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            ours.push(run_client(&get)?.cpu_us());
            wrks.extend(wrk::cpu_us(&server.endpoint, connections, seconds));
        }
        let (ours, wrk) = (median(ours), median(wrks));
        let value = format!("{ours:.1} / {wrk:.1} us = {:.2}", ours / wrk);
        row(&format!("client CPU per {name} GET over TLS, ours / wrk"), &value, "at most 1.00", ours <= wrk);
    }
    Ok(())
}

/// What a gigabyte in objects of 10 MiB costs, and who spends it.
fn large(seconds: f64) -> Done {
    const BYTES: u64 = 10 << 20;
    let server = Server::start(BYTES, "steady")?;
    for (name, put) in [("GET", false), ("PUT", true)] {
        let one = Task { put, single: true, workers: 4, bytes: BYTES, ..task(&server.endpoint, seconds) };
        let rounds: Result<Vec<Cost>, String> = (0..ROUNDS).map(|_| run_client(&one)).collect();
        let rounds = rounds?;
        let per_gb = median(rounds.iter().map(Cost::cpu_s_per_gb).collect());
        let own = median(rounds.iter().map(|cost| cost.time.user_share()).collect());
        let value = format!("{per_gb:.3} s, {:.1} % of it user", own * 100.0);
        row(&format!("client CPU per GB of 10 MiB {name}"), &value, "under 5 % user", own < 0.05);
    }
    Ok(())
}

/// Runs of thousands of stages.
fn many_stages(runs: usize) -> Done {
    let tidemark = own_path()?.with_file_name("tidemark");
    let course = stages::run(&tidemark, runs)?;
    let per_stage = |seconds: f64, stages: usize| seconds * 1e3 / stages as f64;
    let (few, many) =
        (per_stage(course.few, stages::FEW), per_stage(median(course.many.clone()), stages::MANY));
    let value = format!("{few:.2} / {many:.2} ms");
    let name = format!("a stage of one operation, of {} / {} stages", stages::FEW, stages::MANY);
    row(&name, &value, "the same (1.2)", many <= few * 1.2);
    let tenth = (runs / 10).max(1);
    let first = median(course.many.iter().copied().take(tenth).collect());
    let last = median(course.many.iter().rev().copied().take(tenth).collect());
    let name = format!("first / last of {runs} runs of {} stages in one store", stages::MANY);
    row(&name, &format!("{first:.2} / {last:.2} s"), "the same (1.2)", last <= first * 1.2);
    row(
        "  listing them, reporting the last",
        &format!("{:.2} s, {:.2} s", course.list, course.report),
        "-",
        true,
    );
    Ok(())
}

fn verification(seconds: f64) -> Done {
    // The server keeps what is written to it and gives it back.
    let server = Server::start(0, "steady")?;
    let base = Task { single: true, workers: 4, bytes: 1 << 20, ..task(&server.endpoint, seconds) };
    run_client(&Task { put: true, operations: Some(1), workers: 1, ..base.clone() })?;
    let (mut plain, mut verified) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        plain.push(run_client(&base)?.cpu_us());
        verified.push(run_client(&Task { verify: true, ..base.clone() })?.cpu_us());
    }
    let (plain, verified) = (median(plain), median(verified));
    let ratio = verified / plain;
    let value = format!("{verified:.0} / {plain:.0} us = {ratio:.2}");
    row("client CPU per verified / unverified 1 MiB GET", &value, "at most 1.25", ratio <= 1.25);
    Ok(())
}

fn many_workers() -> Done {
    let server = Server::start(4096, "steady")?;
    let cost = run_client(&Task { workers: 10_000, ..task(&server.endpoint, 10.0) })?;
    let (resident, started) = (cost.resident_bytes as f64 / 1e6, cost.first_done_ns as f64 / 1e9);
    let all = cost.workers_that_worked == 10_000;
    row("10,000 workers: resident memory", &format!("{resident:.0} MB"), "under 400 MB", resident < 400.0);
    row(
        "10,000 workers: all at work, first request after",
        &format!("{started:.2} s ({})", cost.workers_that_worked),
        "within 5 s",
        all && started < 5.0,
    );
    Ok(())
}

fn open_loop(seconds: f64) -> Done {
    let server = Server::start(4096, "steady")?;
    let open = Task { rate: Some(20_000.0), ..task(&server.endpoint, seconds) };
    let lag = |cost: Cost| cost.lag_p50_ns as f64 / 1e3;
    let rounds: Result<Vec<f64>, String> = (0..ROUNDS).map(|_| run_client(&open).map(lag)).collect();
    let lag = median(rounds?);
    row("open loop at 20,000/s: median send lag", &format!("{lag:.1} us"), "under 50 us", lag < 50.0);
    drop(server);
    let server = Server::start(4096, "freezes")?;
    let frozen = Task { rate: Some(5_000.0), ..task(&server.endpoint, 10.0) };
    let cost = run_client(&frozen)?;
    let (response, service) = (cost.response_p99_ns as f64 / 1e6, cost.service_p99_ns as f64 / 1e6);
    let value = format!("{response:.0} ms / {service:.1} ms");
    let shown = response > 100.0 && service < response / 3.0;
    row("200 ms freeze every 2 s: response / service p99", &value, "shows in response only", shown);
    Ok(())
}

fn memory_over_time(short: f64, long: f64) -> Done {
    let server = Server::start(4096, "steady")?;
    // At a rate that leaves the machine to others: what counts is the time, not the number of operations.
    let steady = |seconds| Task { rate: Some(2_000.0), ..task(&server.endpoint, seconds) };
    let resident = |seconds| run_client(&steady(seconds)).map(|cost| cost.resident_bytes as f64 / 1e6);
    let (first, second) = (resident(short)?, resident(long)?);
    let value = format!("{first:.1} / {second:.1} MB");
    row(
        &format!("resident memory after {short:.0} s / {long:.0} s"),
        &value,
        "the same",
        second < first * 1.1 + 1.0,
    );
    Ok(())
}

/// Random reads of 4 KiB, direct, beside fio on the same files.
fn blocks(seconds: f64) -> Done {
    let files = block::Files::new(&own_path()?)?;
    let one = files.task(1, 4 << 30, 32, seconds)?;
    let (ours, fio) = alternately(&one)?;
    let of = |costs: &[block::Cost], what: fn(&block::Cost) -> f64| median(costs.iter().map(what).collect());
    let ratio = |what: fn(&block::Cost) -> f64| of(&ours, what) / of(&fio, what);
    let cpu = ratio(|cost| cost.cpu_us);
    let value = format!("{:.2} / {:.2} us = {cpu:.2}", of(&ours, |c| c.cpu_us), of(&fio, |c| c.cpu_us));
    let floor: Vec<_> = (0..ROUNDS).filter_map(|_| block::fio(&one, false)).collect();
    let floor = of(&floor, |cost| cost.cpu_us);
    let met = cpu <= 0.9 || of(&ours, |cost| cost.cpu_us) <= floor;
    row("4 KiB random read, depth 32: CPU, ours / fio", &value, "0.90, or the next line", met);
    row("  fio without clocks and latencies", &format!("{floor:.2} us"), "-", true);
    let iops = ratio(|cost| cost.iops);
    let value = format!("{:.0} / {:.0} = {iops:.3}", of(&ours, |c| c.iops), of(&fio, |c| c.iops));
    row("  op/s", &value, "within noise (5 %)", (iops - 1.0).abs() <= 0.05);
    type Read = fn(&block::Cost) -> f64;
    let latencies: [(&str, Read); 3] = [("  p50", |c| c.p50), ("  p99", |c| c.p99), ("  p99.9", |c| c.p999)];
    for (name, what) in latencies {
        let share = ratio(what);
        let value = format!("{:.1} / {:.1} us = {share:.3}", of(&ours, what) / 1e3, of(&fio, what) / 1e3);
        row(name, &value, "within 3 %", (share - 1.0).abs() <= 0.03);
    }
    drop(one);
    let many = files.task(32, 128 << 20, 4, seconds)?;
    let (ours, fio) = alternately(&many)?;
    let (cpu, iops) =
        (of(&ours, |c| c.cpu_us) / of(&fio, |c| c.cpu_us), of(&ours, |c| c.iops) / of(&fio, |c| c.iops));
    let value = format!("CPU {cpu:.2}, op/s {iops:.3}");
    row("32 files at once, depth 4 each: ours / fio", &value, "1.00, within 5 %", cpu <= 1.0 && iops >= 0.95);
    Ok(())
}

/// Client processor time per transaction beside pgbench and sysbench, on a server of our own on the first processor.
fn databases(seconds: f64) -> Done {
    // What they write is not what is measured.
    let server = on_first_processor(|| {
        Postgres::start(&["fsync=off", "synchronous_commit=off", "max_connections=300"])
    })?;
    let Some(server) = server else { return Ok(()) };
    let target = database::target(&server);
    for workload in ["pgbench/tpcb-like", "sysbench/oltp_read_write"] {
        child::<_, database::Cost>("database-client", &database::Task::fill(&target, workload))?;
    }
    server.sql("CHECKPOINT");
    type Peer<'p> = Box<dyn Fn() -> Option<database::Cost> + 'p>;
    let pgbench = |script: &'static [&'static str]| -> Peer<'_> {
        Box::new(|| database::pgbench(&server, script, seconds))
    };
    let sysbench =
        |workload: &'static str| -> Peer<'_> { Box::new(|| database::sysbench(&server, workload, seconds)) };
    let rows: [(&str, &str, Peer<'_>, f64); 4] = [
        ("select-only: CPU, ours / pgbench -M prepared", "pgbench/select-only", pgbench(&["-S"]), 0.9),
        ("TPC-B-like: the same", "pgbench/tpcb-like", pgbench(&[]), 0.9),
        (
            "oltp_point_select: CPU, ours / sysbench",
            "sysbench/oltp_point_select",
            sysbench("oltp_point_select"),
            0.8,
        ),
        ("oltp_read_write: the same", "sysbench/oltp_read_write", sysbench("oltp_read_write"), 0.8),
    ];
    for (name, workload, peer, limit) in rows {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // Who goes first changes: what one leaves behind hits both alike.
            if round % 2 == 1 {
                theirs.extend(peer());
            }
            let task = database::Task::load(&target, workload, database::CLIENTS, seconds);
            ours.push(child::<_, database::Cost>("database-client", &task)?);
            if round % 2 == 0 {
                theirs.extend(peer());
            }
        }
        let of = |costs: &[database::Cost], what: fn(&database::Cost) -> f64| {
            median(costs.iter().map(what).collect())
        };
        let (own_us, own_rate) = (of(&ours, database::Cost::each_us), of(&ours, database::Cost::rate));
        if theirs.is_empty() {
            row(name, &format!("{own_us:.1} us, and the peer is not installed"), "-", true);
            continue;
        }
        let (their_us, their_rate) =
            (of(&theirs, database::Cost::each_us), of(&theirs, database::Cost::rate));
        let cpu = own_us / their_us;
        row(
            name,
            &format!("{own_us:.1} / {their_us:.1} us = {cpu:.2}"),
            &format!("{limit:.2}"),
            cpu <= limit,
        );
        let rate = own_rate / their_rate;
        let value = format!("{own_rate:.0} / {their_rate:.0} = {rate:.2}");
        row("  transactions/s", &value, "1.00, within noise (5 %)", rate >= 0.95);
    }
    let many = database::Task::load(&target, "pgbench/select-only", 256, seconds);
    let many: database::Cost = child("database-client", &many)?;
    let megabytes = many.resident_bytes as f64 / 1e6;
    row("256 connections: resident memory", &format!("{megabytes:.0} MB"), "under 300 MB", megabytes < 300.0);
    order_entry("PostgreSQL", &target, seconds, &|table| {
        server.sql(&format!("SELECT count(*) FROM {table}"))
    })?;
    drop(server);
    let server = on_first_processor(|| Mariadb::start(&["innodb-flush-log-at-trx-commit=0"]))?;
    let Some(server) = server else { return Ok(()) };
    order_entry("MariaDB", &database::target_of_mariadb(&server), seconds, &|table| {
        server.sql(&format!("SELECT count(*) FROM bench.{table}"))
    })
}

/// Client processor time per row loaded and per New-Order, whatever the other transactions of the mix cost: as HammerDB's and
/// go-tpc's were measured (HammerDB 4.12 on PostgreSQL: 18.9 us a row, 36,000 rows/s, 190 us a New-Order with routines; go-tpc:
/// 956 us with statements).
fn order_entry(name: &str, target: &str, seconds: f64, count: &dyn Fn(&str) -> String) -> Done {
    const TABLES: [&str; 9] = [
        "warehouse",
        "district",
        "customer",
        "history",
        "orders",
        "new_order",
        "order_line",
        "stock",
        "item",
    ];
    let filled: database::Cost =
        child("database-client", &database::Task::fill(target, "tpcc, warehouses: 5"))?;
    let rows: f64 = TABLES.iter().filter_map(|table| count(table).trim().parse::<f64>().ok()).sum();
    let filled = database::Cost { count: rows, ..filled };
    let each = filled.each_us();
    row(&format!("tpcc on {name}, load: CPU per row"), &format!("{each:.2} us"), "3.78 us", each <= 3.78);
    row("  rows/s", &format!("{:.0}", filled.rate()), "108,000", filled.rate() >= 108_000.0);
    // MySQL's protocol has no pipeline.
    let modes = [("routines", 60.0), ("statements, pipeline: true", 400.0), ("statements", 400.0)];
    for (mode, limit) in
        modes.into_iter().filter(|(mode, _)| target.contains("postgres") || !mode.contains("pipeline"))
    {
        let workload = format!("tpcc, warehouses: 5, mode: {mode}");
        let task = database::Task::load(target, &workload, database::CLIENTS, seconds).counting("new-order");
        let costs = (0..ROUNDS).map(|_| child::<_, database::Cost>("database-client", &task));
        let costs = costs.collect::<Result<Vec<_>, _>>()?;
        let each = median(costs.iter().map(database::Cost::each_us).collect());
        let rate = median(costs.iter().map(database::Cost::rate).collect());
        let value = format!("{each:.1} us ({rate:.0}/s)");
        row(
            &format!("tpcc on {name}, {mode}: CPU per New-Order"),
            &value,
            &format!("{limit:.0} us"),
            each <= limit,
        );
    }
    Ok(())
}

/// Starts a server whose processes stay on the first processor.
fn on_first_processor<T>(start: impl FnOnce() -> T) -> Result<T, String> {
    let everywhere = rustix::thread::sched_getaffinity(None).map_err(|error| error.to_string())?;
    pin(0);
    let started = start();
    rustix::thread::sched_setaffinity(None, &everywhere).map_err(|error| error.to_string())?;
    Ok(started)
}

fn alternately(task: &block::Task) -> Result<(Vec<block::Cost>, Vec<block::Cost>), String> {
    let (mut ours, mut fio) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Who goes first changes: what one leaves behind hits both alike.
        if round % 2 == 1 {
            fio.extend(block::fio(task, true));
        }
        ours.push(child("block-client", task)?);
        if round % 2 == 0 {
            fio.extend(block::fio(task, true));
        }
    }
    Ok((ours, fio))
}
