//! Random reads of 4 KiB by our block engine and by fio's io_uring engine, on the same files and one processor each,
//! with registered buffers and files.

use crate::null::Blind;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tidemark_block::job::{Action, Cache, Content, FILL_BYTES, IoEngine, Job, Place, Volume};
use tidemark_block::sessions::{DataSet, Use, sessions};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, Size, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_load::thread_pool;
use tidemark_load::work::{Finale, Work};
use tidemark_measure::pick::Pick;

const BLOCK: u64 = 4096;

/// Load before the window, seconds: on both sides.
const WARM_S: f64 = 1.0;

/// What a client process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The files, all of the same size; each has a client of its own.
    pub(crate) files: Vec<PathBuf>,
    /// Bytes of each.
    pub(crate) bytes: u64,
    /// Operations in flight on each.
    pub(crate) depth: u32,
    /// Length of the window.
    pub(crate) seconds: f64,
}

/// What came of it, ours or fio's.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// Operations per second of the window.
    pub(crate) iops: f64,
    /// Microseconds of processor time per operation.
    pub(crate) cpu_us: f64,
    /// Latency, nanoseconds.
    pub(crate) p50: f64,
    /// Latency, nanoseconds.
    pub(crate) p99: f64,
    /// Latency, nanoseconds.
    pub(crate) p999: f64,
}

impl Task {
    fn job(&self, action: Action, unit: u64) -> Job {
        let volume = |path: &PathBuf| Volume { place: Place::File(path.clone()), size: self.bytes };
        Job {
            volumes: self.files.iter().map(volume).collect(),
            unit,
            io_engine: IoEngine::Native,
            direct: true,
            polled: false,
            batch: Some(1),
            cache: Cache::Cold,
            content: Content::default(),
            journal: None,
            reuse: false,
            per_driver: false,
            actions: vec![action, Action::Fsync],
        }
    }

    fn work(&self, source: SourcePlan, stop: Stop, finale: Option<Finale>) -> Work {
        Work {
            workers: self.files.len() as u32,
            depth: self.depth,
            connections: None,
            pacing: Pacing::BACK_TO_BACK,
            stop,
            source,
            finale,
            copies: 1,
            actions: 2,
            seed: 1,
            stream: [0, 0],
        }
    }

    /// Writes all files, once.
    pub(crate) fn fill(&self) -> Result<(), String> {
        let data = Arc::new(DataSet::new(1, false));
        let fill = sessions(&self.job(Action::Write, FILL_BYTES), &data, Use::Fill);
        let spaces = (1, self.files.len() as u64);
        let source = SourcePlan::Scan {
            action: 0,
            spaces: Some(spaces),
            items: Some((0, self.bytes / FILL_BYTES - 1)),
            bytes: Size { pick: Pick::Constant(FILL_BYTES), unit: 1 },
        };
        let stop = Stop { drain_ns: 60_000_000_000, ..Stop::default() };
        let work = self.work(source, stop, Some(Finale { action: 1, spaces }));
        let result = fill.and_then(|sessions| thread_pool::run(&work, &*sessions, 1, &mut Blind));
        result.map(drop).map_err(|error| error.to_string())
    }
}

/// Does `task` in this process, on one thread.
pub(crate) fn run(task: &Task) -> Result<Cost, String> {
    let data = Arc::new(DataSet::new(1, false));
    let sessions =
        sessions(&task.job(Action::Read, BLOCK), &data, Use::Load).map_err(|error| error.to_string())?;
    let choice = Choice {
        action: 0,
        weight: 1.0,
        spaces: Pick::Uniform { low: 1, high: task.files.len() as u64 },
        items: Pick::Uniform { low: 0, high: task.bytes / BLOCK - 1 },
        bytes: Size { pick: Pick::Constant(BLOCK), unit: 1 },
        division: Division::Spaces,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    };
    let stop = Stop {
        warm_up_ns: (WARM_S * 1e9) as u64,
        window_ns: Some((task.seconds * 1e9) as u64),
        drain_ns: 5_000_000_000,
        ..Stop::default()
    };
    let work = task.work(SourcePlan::Mix { choices: vec![choice], pool: None, deck: false }, stop, None);
    let mut seconds = Cpu::default();
    let result = thread_pool::run(&work, &*sessions, 1, &mut seconds).map_err(|error| error.to_string())?;
    if let Some(example) = result.examples.first() {
        return Err(format!("{}: {}", example.fault.name(), example.text));
    }
    let response = &result.tallies[0].response;
    let at = |fraction| response.quantile(fraction) as f64;
    Ok(Cost {
        iops: (result.tallies[0].ok + result.tallies[0].early - result.tallies[0].late) as f64 / task.seconds,
        cpu_us: seconds.cpu_ns as f64 / 1e3 / seconds.operations.max(1) as f64,
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
    })
}

/// Processor time and operations of the load threads, warm-up included in both.
#[derive(Default)]
struct Cpu {
    cpu_ns: u64,
    operations: u64,
}

impl thread_pool::Watch for Cpu {
    fn interval(&mut self, interval: &tidemark_measure::tally::Interval) {
        self.cpu_ns += interval.cpu_ns;
        self.operations += interval.unmeasured + interval.actions.iter().map(|tally| tally.ok).sum::<u64>();
    }

    fn stop_request(&mut self) -> tidemark_load::stop::StopRequest {
        tidemark_load::stop::StopRequest::None
    }
}

/// The same by fio in one job on the second processor; `None` when it is not installed. Without `measures` it reads no
/// clock and keeps no latency: what it costs is the floor for anybody who measures.
pub(crate) fn fio(task: &Task, measures: bool) -> Option<Cost> {
    let files: Vec<_> = task.files.iter().map(|path| path.display().to_string()).collect();
    let depth = task.depth as usize * task.files.len();
    let output = Command::new("fio")
        .args(["--name=read", "--ioengine=io_uring", "--rw=randread", "--bs=4k", "--direct=1", "--thread"])
        .args(["--fixedbufs", "--registerfiles", "--norandommap", "--randrepeat=0", "--time_based"])
        .args(["--cpus_allowed=1", "--output-format=json"])
        .arg(if measures { "--lat_percentiles=1" } else { "--gtod_reduce=1" })
        .arg(format!("--filename={}", files.join(":")))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--ramp_time={WARM_S}"))
        .arg(format!("--runtime={}", task.seconds))
        .arg("--percentile_list=50:99:99.9")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let report: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let job = &report["jobs"][0];
    let iops = job["read"]["iops"].as_f64()?;
    let busy = (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0;
    let at = |name: &str| match measures {
        true => job["read"]["lat_ns"]["percentile"][name].as_f64(),
        false => Some(0.0),
    };
    Some(Cost {
        iops,
        cpu_us: busy * 1e6 / iops,
        p50: at("50.000000")?,
        p99: at("99.000000")?,
        p999: at("99.900000")?,
    })
}

/// Files to read, in a directory of their own that goes away with this value.
pub(crate) struct Files(PathBuf);

impl Files {
    /// A directory beside the program: on the file system that it was built on.
    pub(crate) fn new(own: &Path) -> Result<Self, String> {
        let directory = own.with_file_name(format!("bench-files-{}", std::process::id()));
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        Ok(Self(directory))
    }

    /// A task on `count` files of `bytes` bytes, which are written first.
    pub(crate) fn task(&self, count: usize, bytes: u64, depth: u32, seconds: f64) -> Result<Task, String> {
        let files = (0..count).map(|index| self.0.join(format!("{count}-{index}"))).collect();
        let task = Task { files, bytes, depth, seconds };
        task.fill()?;
        Ok(task)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
