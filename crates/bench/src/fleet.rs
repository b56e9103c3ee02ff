//! What a controller costs: 1,000 drivers that send a second of four operations every second.
//!
//! The controller is the real one, a process of its own, with a run from its queue. The drivers are real connections of
//! which each says what a driver says; only their load is made up: encoded seconds with some hundred distinct latencies
//! of each operation.

use crate::processor::peak_memory;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tidemark_fleet::link::{FromController, Join, Link, Trust, client};
use tidemark_fleet::protocol::{Down, Hello, Opened, Part, Second, Up, VERSION};
use tidemark_load::thread_pool::Ending;
use tidemark_measure::host::Host;
use tidemark_measure::rng::Rng;
use tidemark_measure::tally::Interval;
use tidemark_measure::wire;

/// Seconds that differ from each other: a driver sends them in turn.
const VARIANTS: u64 = 16;

/// Distinct latencies of an operation in a second, about.
const SAMPLES: u64 = 300;

/// What it cost.
pub(crate) struct Cost {
    /// Processors that the controller used, on average over the load.
    pub(crate) cores: f64,
    /// The most memory that it had, bytes.
    pub(crate) memory: u64,
    /// From the end of a second to its arrival at a reader of the live view: median and worst, milliseconds.
    pub(crate) lag_ms: (f64, f64),
    /// Seconds that the reader has seen.
    pub(crate) seen: usize,
    /// Operations that the run's record has, and that were sent.
    pub(crate) counted: (u64, u64),
}

/// Puts `drivers` on a controller for `seconds`.
pub(crate) fn run(tidemark: &Path, drivers: u32, seconds: u32) -> Result<Cost, String> {
    tidemark_load::open_files::limit();
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let store = directory.path().join("results.db");
    let tidemark = |words: &[&str]| {
        let mut command = Command::new(tidemark);
        command.args(words).env("TIDEMARK_STORE", &store).stdin(Stdio::null());
        command
    };
    let mut serve = tidemark(&["serve", "--listen", "127.0.0.1:0", "--no-driver"]);
    let mut serve = Ended(serve.stderr(Stdio::piped()).spawn().map_err(|error| error.to_string())?);
    let said = serve.0.stderr.take().ok_or("the controller says nothing")?;
    let mut lines = std::io::BufReader::new(said).lines().map_while(Result::ok);
    let url = lines.find_map(|line| Some(line.strip_prefix("serving ")?.split("/;").next()?.to_owned()));
    let url = url.ok_or("the controller did not start")?;
    std::thread::spawn(move || lines.for_each(drop));
    let fakes: Result<Vec<_>, _> = (0..drivers).map(|number| Fake::join(&url, number)).collect();
    let mut fakes = fakes?;
    wait_until_joined(&fakes)?;

    let document = directory.path().join("load.xml");
    std::fs::write(&document, document_of(drivers, seconds)).map_err(|error| error.to_string())?;
    let document = document.to_str().ok_or("the temporary directory has an odd name")?;
    let submitted = tidemark(&["submit", document, "--controller", &url]).output();
    let submitted = submitted.map_err(|error| error.to_string())?;
    if !submitted.status.success() {
        return Err(String::from_utf8_lossy(&submitted.stderr).into_owned());
    }
    let mut watch = tidemark(&["watch", "1", "--json", "--controller", &url]);
    let mut watch = Ended(watch.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?);
    let events = watch.0.stdout.take().ok_or("the reader says nothing")?;
    let reader = std::thread::spawn(move || {
        let lines = std::io::BufReader::new(events).lines().map_while(Result::ok);
        lines.map(|line| (Instant::now(), line)).collect::<Vec<_>>()
    });

    let encoded = variants(seconds);
    let pid = serve.0.id();
    let (mut cpu, mut start, mut loaded) = (None, None, None);
    while fakes.iter().any(|fake| !fake.is_done) {
        for fake in &mut fakes {
            fake.step(&encoded, seconds);
        }
        if start.is_none() {
            start = fakes.iter().find_map(|fake| fake.start);
        }
        if let Some(start) = start
            && cpu.is_none()
            && Instant::now() > start
        {
            cpu = Some((Instant::now(), cpu_seconds(pid)));
        }
        if let (Some((at, before)), None) = (cpu, loaded)
            && at.elapsed() > Duration::from_secs(u64::from(seconds) - 1)
        {
            loaded = Some((cpu_seconds(pid) - before) / at.elapsed().as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let lines = reader.join().map_err(|_| "the reader crashed")?;
    let memory = peak_memory(&pid.to_string());
    let start = start.ok_or("the load never began")?;
    let mut lags: Vec<f64> = lines
        .iter()
        .filter_map(|(at, line)| {
            let event: serde_json::Value = serde_json::from_str(line).ok()?;
            let index = event["data"]["index"].as_u64().filter(|_| event["event"] == "second")?;
            let end = start + Duration::from_secs(index + 1);
            Some(at.saturating_duration_since(end).as_secs_f64() * 1e3)
        })
        .collect();
    if std::env::var_os("TIDEMARK_BENCH_VERBOSE").is_some() {
        println!("lags, ms: {:?}", lags.iter().map(|lag| lag.round()).collect::<Vec<_>>());
    }
    lags.sort_by(f64::total_cmp);
    let report =
        tidemark(&["report", "1", "--format", "json"]).output().map_err(|error| error.to_string())?;
    let record: serde_json::Value = serde_json::from_slice(&report.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&report.stderr)))?;
    let operations = record["stages"][0]["works"][0]["operations"].as_array().cloned().unwrap_or_default();
    let counted = operations.iter().filter_map(|one| one["ok"].as_u64()).sum();
    let sent = u64::from(drivers) * u64::from(seconds) * 4 * SAMPLES;
    let middle = lags.get(lags.len() / 2).copied().unwrap_or(f64::NAN);
    let worst = lags.last().copied().unwrap_or(f64::NAN);
    Ok(Cost {
        cores: loaded.unwrap_or(f64::NAN),
        memory,
        lag_ms: (middle, worst),
        seen: lags.len(),
        counted: (counted, sent),
    })
}

/// A child that is ended with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn document_of(workers: u32, seconds: u32) -> String {
    let operations = ["read", "write", "delete", "list"].map(|kind| {
        format!(
            "<operation type=\"{kind}\" ratio=\"25\" config=\"containers=c(1);objects=u(1,9);sizes=c(4)KB\"/>"
        )
    });
    format!(
        "<workload name=\"many-drivers\"><storage type=\"none\"/><workflow><workstage name=\"main\">\
         <work name=\"main\" workers=\"{workers}\" runtime=\"{seconds}\">{}</work></workstage></workflow></workload>",
        operations.concat()
    )
}

/// Encoded seconds: of every variant, one for each second of the load.
fn variants(seconds: u32) -> Vec<Vec<Vec<u8>>> {
    let of = |variant: u64| {
        let mut interval = Interval::new(0, 4);
        let mut rng = Rng::new(variant, &[]);
        (0..seconds)
            .map(|index| {
                interval.reset(index);
                for tally in &mut interval.actions {
                    for _ in 0..SAMPLES {
                        let response = 200_000 + rng.below(4_000_000);
                        tally.response.record(response);
                        tally.first_byte.record(response / 2);
                        tally.lag.record(500 + rng.below(20_000));
                    }
                    (tally.ok, tally.bytes) = (SAMPLES, SAMPLES * 4096);
                }
                let end = u64::from(index + 1) * 1_000_000_000;
                (interval.first_ok_ns, interval.last_ok_ns) =
                    (Some(end - 900_000_000), Some(end - 1_000_000));
                (interval.cpu_ns, interval.wall_ns) = (200_000_000, 1_000_000_000);
                wire::encode(&interval)
            })
            .collect()
    };
    (0..VARIANTS).map(of).collect()
}

/// A driver whose load is made up.
struct Fake {
    link: Link,
    number: u32,
    joined: bool,
    run: u64,
    parts: Vec<Part>,
    start: Option<Instant>,
    sent: u32,
    is_done: bool,
}

impl Fake {
    fn join(url: &str, number: u32) -> Result<Self, String> {
        let hello = Hello {
            protocol: VERSION,
            tidemark: env!("CARGO_PKG_VERSION").into(),
            name: format!("d{number}"),
            host: Host { name: format!("host{number}"), cores: 4, ..Host::default() },
            ..Hello::default()
        };
        let options = Join { url: url.to_owned(), token: None, trust: Trust::Any };
        let link = client::join(options, hello).map_err(|error| error.to_string())?;
        Ok(Self {
            link,
            number,
            joined: false,
            run: 0,
            parts: Vec::new(),
            start: None,
            sent: 0,
            is_done: false,
        })
    }

    fn step(&mut self, encoded: &[Vec<Vec<u8>>], seconds: u32) {
        while let Ok(heard) = self.link.incoming.try_recv() {
            match heard {
                FromController::Joined { .. } => self.joined = true,
                FromController::Message(down) => self.receive(*down),
                _ => {}
            }
        }
        let Some(start) = self.start else { return };
        while self.sent < seconds && Instant::now() >= start + Duration::from_secs(u64::from(self.sent) + 1) {
            let interval = encoded[self.number as usize % encoded.len()][self.sent as usize].clone();
            self.link.second(Second { run: self.run, stage: 0, work: 0, interval });
            self.sent += 1;
            if self.sent == seconds {
                self.end(seconds);
            }
        }
    }

    fn receive(&mut self, down: Down) {
        match down {
            Down::Prepare { run, .. } => {
                self.run = run;
                self.link.send(Up::Prepared { run, targets: Vec::new(), holdings: Vec::new() });
            }
            Down::Open { run, stage, parts } => {
                self.parts = parts;
                self.link.send(Up::Ready {
                    run,
                    stage,
                    opened: Opened::Ready,
                    notes: Vec::new(),
                    done: Vec::new(),
                });
            }
            Down::Start { at_ns, .. } => self.start = Some(self.link.instant_of(at_ns as i64)),
            Down::Order { .. } | Down::Watched { .. } => {}
            Down::Release { run } => {
                self.link.send(Up::Released { run, nodes: Vec::new(), origin_ns: 0 });
                self.is_done = true;
            }
        }
    }

    fn end(&mut self, seconds: u32) {
        let last = u64::from(seconds) * 1_000_000_000 - 1_000_000;
        let ending = Ending {
            last_done_ns: last,
            load_done_ns: last,
            last_measured_ns: last,
            first_sent_ns: Some(1_000),
            threads: 4,
            ..Ending::default()
        };
        for part in &self.parts {
            let ending = Ok(Box::new(ending.clone()));
            self.link.send(Up::Ended { run: self.run, stage: 0, work: part.work, ending });
        }
        self.link.send(Up::StageEnded { run: self.run, stage: 0, proof: None });
    }
}

fn wait_until_joined(fakes: &[Fake]) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(60);
    for fake in fakes {
        loop {
            match fake.link.incoming.recv_deadline(until) {
                Ok(FromController::Joined { .. }) => break,
                Ok(FromController::Refused(reason)) => return Err(reason),
                Ok(_) => {}
                Err(_) => return Err(format!("driver {} could not join within a minute", fake.number)),
            }
        }
    }
    Ok(())
}

/// Processor time of a process so far, seconds: fields 14 and 15 of proc(5) `stat`, in ticks of 10 ms.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
