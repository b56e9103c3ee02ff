//! A client process: one kind of request by our engine on one processor, and what it cost.

use crate::null::{Blind, mix};
use crate::processor::Time;
use crate::processor::resident_bytes;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::source::SourcePlan;
use tidemark_load::stopping::Stop;
use tidemark_load::thread_pool;
use tidemark_measure::pick::Pick;
use tidemark_measure::tally::Tally;
use tidemark_object::content::DataSet;
use tidemark_object::job::{Action, Content, Http, Job, Naming, S3, Target, Verb};
use tidemark_plan::secret::Secret;

/// What a client process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Write rather than read.
    pub(crate) put: bool,
    /// Verify what is read.
    pub(crate) verify: bool,
    /// One object only, rather than 100 containers x 250 objects.
    pub(crate) single: bool,
    /// Where the server is.
    pub(crate) endpoint: String,
    /// Closed-loop workers, or slots of an open loop.
    pub(crate) workers: u32,
    /// Bytes of an object.
    pub(crate) bytes: u64,
    /// Length of the window.
    pub(crate) seconds: f64,
    /// Stop after so many operations instead.
    pub(crate) operations: Option<u64>,
    /// Offer this many operations a second.
    pub(crate) rate: Option<f64>,
}

/// What it cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Operations that succeeded, warm-up included in none of this.
    pub(crate) ok: u64,
    /// Operations that failed.
    pub(crate) failed: u64,
    /// Processor time of the whole process from the start of the load to its end, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// The same, by who spent it.
    pub(crate) time: Time,
    /// Bytes of the operations that succeeded.
    pub(crate) bytes: u64,
    /// Wall time of the same, nanoseconds.
    pub(crate) wall_ns: u64,
    /// Response time.
    pub response_p50_ns: u64,
    /// Response time.
    pub response_p99_ns: u64,
    /// Service time.
    pub service_p99_ns: u64,
    /// How late operations were sent.
    pub lag_p50_ns: u64,
    /// How late operations were sent.
    pub lag_p99_ns: u64,
    /// Largest resident set of the process, bytes.
    pub(crate) resident_bytes: u64,
    /// From the start of the load to the first operation's end, nanoseconds.
    pub(crate) first_done_ns: u64,
    /// Workers that got at least one operation done.
    pub(crate) workers_that_worked: u32,
}

impl Cost {
    /// Microseconds of processor time per operation.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu_ns as f64 / 1e3 / self.ok.max(1) as f64
    }

    /// Seconds of processor time per gigabyte.
    pub(crate) fn cpu_s_per_gb(&self) -> f64 {
        self.cpu_ns as f64 / self.bytes.max(1) as f64
    }
}

/// Does `task` in this process.
pub(crate) fn run(task: &Task) -> Result<Cost, String> {
    let action = |verb| Action {
        verb,
        naming: Naming::default(),
        content: Content { verify: task.verify, ..Content::default() },
    };
    let verb = if task.put { Verb::Put { chunked: false, if_absent: false } } else { Verb::Get };
    let target = Target::S3(S3 {
        http: Http { endpoints: vec![task.endpoint.clone()], insecure: true, ..Http::default() },
        access_key: "TIDEMARKBENCH0000000".into(),
        secret_key: Secret::new("0123456789abcdef0123456789abcdef01234567"),
        session_token: None,
        region: "us-east-1".into(),
        path_style: true,
        sign_payload: false,
        storage_class: None,
        encryption: None,
    });
    let job = Job { target, actions: vec![action(verb)] };
    let data = DataSet::new(1, 1, 0, Default::default());
    tidemark_load::open_files::limit();
    let engine = tidemark_object::sessions::open(&job, &data).map_err(|error| error.to_string())?;

    let mut work = mix(task.workers, 1, task.bytes);
    work.actions = 1;
    if let SourcePlan::Mix { choices, .. } = &mut work.source {
        choices.truncate(1);
        if task.single {
            (choices[0].spaces, choices[0].items) = (Pick::Constant(1), Pick::Constant(1));
        }
        if !task.put {
            choices[0].bytes.pick = Pick::Constant(0);
        }
    }
    work.stop = Stop {
        window_ns: task.operations.is_none().then_some((task.seconds * 1e9) as u64),
        operations: task.operations,
        drain_ns: 5_000_000_000,
        ..Stop::default()
    };
    if let Some(rate) = task.rate {
        work.pacing = Pacing::Open { rate: Rate::constant(rate), arrivals: Arrivals::Constant };
    }
    let (cpu, time, wall) = (process_cpu_ns(), Time::own().unwrap_or_default(), Instant::now());
    let result = thread_pool::run(&work, &*engine, 1, &mut Blind).map_err(|error| error.to_string())?;
    let (cpu_ns, wall_ns) = (process_cpu_ns() - cpu, wall.elapsed().as_nanos() as u64);
    let mut all = Tally::default();
    result.tallies.iter().for_each(|tally| all.add(tally));
    for example in &result.examples {
        eprintln!("{}: {}", example.fault.name(), example.text);
    }
    Ok(Cost {
        ok: all.ok,
        failed: all.failed(),
        cpu_ns,
        time: Time::own().unwrap_or_default() - time,
        bytes: all.bytes,
        wall_ns,
        response_p50_ns: all.response.quantile(0.5),
        response_p99_ns: all.response.quantile(0.99),
        service_p99_ns: all.service().quantile(0.99),
        lag_p50_ns: all.lag.quantile(0.5),
        lag_p99_ns: all.lag.quantile(0.99),
        resident_bytes: resident_bytes(),
        first_done_ns: result.workers.iter().filter(|w| w.ok > 0).map(|w| w.first_sent_ns).min().unwrap_or(0),
        workers_that_worked: result.workers.iter().filter(|worker| worker.ok > 0).count() as u32,
    })
}

fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
