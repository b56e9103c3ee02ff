//! Jobs, works and volumes for the tests, on real files of the checkout's file system.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tidemark_block::job::{Action, Cache, Content, FILL_BYTES, IoEngine, Job, Place, Volume};
use tidemark_block::sessions::{DataSet, Use, sessions};
use tidemark_load::engine::{Begin, Clock, Completion, Operation, Outcome, Session, ThreadContext};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, Size, SourcePlan};
use tidemark_load::stop::StopRequest;
use tidemark_load::stopping::Stop;
use tidemark_load::thread_pool::{self, Watch};
use tidemark_load::work::{Finale, Work};
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::Pick;
use tidemark_measure::tally::Interval;
pub(crate) use tidemark_testing::skip;

pub(crate) const SIZE: u64 = 16 << 20;

/// A directory on the checkout's file system: `/tmp` may be in memory elsewhere.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub(crate) fn file(path: &Path, size: u64) -> Volume {
    Volume { place: Place::File(path.to_owned()), size }
}

pub(crate) fn device(path: &Path, size: u64) -> Volume {
    Volume { place: Place::Device(path.to_owned()), size }
}

/// A job with direct I/O that verifies what it reads.
pub(crate) fn job(volumes: &[Volume], unit: u64, actions: &[Action]) -> Job {
    Job {
        volumes: volumes.to_vec(),
        unit,
        io_engine: IoEngine::Native,
        direct: true,
        polled: false,
        batch: None,
        cache: Cache::Cold,
        content: Content { verify: true, ..Content::default() },
        journal: None,
        reuse: false,
        per_driver: false,
        actions: actions.to_vec(),
    }
}

pub(crate) fn data() -> Arc<DataSet> {
    Arc::new(DataSet::new(1, true))
}

pub(crate) struct Quiet;

impl Watch for Quiet {
    fn interval(&mut self, _: &Interval) {}
    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

pub(crate) fn work(workers: u32, depth: u32, source: SourcePlan, operations: Option<u64>) -> Work {
    Work {
        workers,
        depth,
        connections: None,
        pacing: Pacing::BACK_TO_BACK,
        stop: Stop { operations, drain_ns: 30_000_000_000, ..Stop::default() },
        source,
        finale: None,
        copies: 1,
        actions: 4,
        seed: 3,
        stream: [0, 0],
    }
}

/// One action on every block of every volume.
pub(crate) fn scan(volumes: u64, size: u64, block: u64) -> SourcePlan {
    SourcePlan::Scan {
        action: 0,
        spaces: Some((1, volumes)),
        items: Some((0, size.div_ceil(block) - 1)),
        bytes: Size { pick: Pick::Constant(block), unit: 1 },
    }
}

/// Random operations of an action on blocks of all volumes.
pub(crate) fn choice(
    action: u16,
    weight: f64,
    volumes: u64,
    size: u64,
    (unit, bytes): (u64, Pick),
) -> Choice {
    Choice {
        action,
        weight,
        spaces: Pick::Uniform { low: 1, high: volumes },
        items: Pick::Uniform { low: 0, high: size / unit - 1 },
        bytes: Size { pick: bytes, unit: 1 },
        division: Division::None,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    }
}

pub(crate) fn run(
    job: &Job,
    data: &Arc<DataSet>,
    purpose: Use,
    work: &Work,
    threads: u32,
) -> thread_pool::Result {
    let engine = sessions(job, data, purpose).unwrap();
    let result = thread_pool::run(work, &*engine, threads, &mut Quiet).unwrap();
    drop(engine);
    // Little memory may be locked here: everything works all the same.
    data.notes().iter().for_each(|note| eprintln!("{note}"));
    result
}

/// Prefills volumes, with a sync at the end.
pub(crate) fn fill(job: &Job, data: &Arc<DataSet>) {
    let volumes = job.volumes.len() as u64;
    let size = job.volumes[0].size;
    let job = Job { unit: FILL_BYTES, actions: vec![Action::Write, Action::Fsync], ..job.clone() };
    let mut work = work(2, 4, scan(volumes, size, FILL_BYTES), None);
    work.finale = Some(Finale { action: 1, spaces: (1, volumes) });
    let result = run(&job, data, Use::Fill, &work, 2);
    assert_eq!(ok(&result, 0), volumes * size.div_ceil(FILL_BYTES), "{:?}", result.examples);
    assert_eq!(ok(&result, 1), volumes);
    assert_eq!(result.tallies[0].bytes, volumes * size);
}

pub(crate) fn ok(result: &thread_pool::Result, action: usize) -> u64 {
    result.tallies[action].ok
}

pub(crate) fn faults(result: &thread_pool::Result) -> Vec<(Fault, u64)> {
    result.tallies.iter().flat_map(|tally| tally.faults.iter().collect::<Vec<_>>()).collect()
}

/// A session of its own, for single operations.
pub(crate) struct Hand {
    pub(crate) session: Box<dyn Session>,
    pub(crate) clock: Clock,
}

pub(crate) fn hand(job: &Job, data: &Arc<DataSet>, slots: u32, largest: u64) -> Hand {
    let clock = Clock::starting_at(Instant::now());
    let engine = sessions(job, data, Use::Load).unwrap();
    let session =
        engine.open(ThreadContext { clock, thread: 0, first_slot: 0, slots, largest, seed: 1 }).unwrap();
    Hand { session, clock }
}

impl Hand {
    pub(crate) fn begin(&mut self, slot: u32, action: u16, space: u64, item: u64, bytes: u64) -> Begin {
        let operation = Operation { action, space, item, bytes, random: 0 };
        self.session.begin(slot, &operation, self.clock.now())
    }

    /// Does one operation on volume 1.
    pub(crate) fn act(&mut self, action: u16, item: u64, bytes: u64) -> Outcome {
        if let Begin::Done(_, outcome) = self.begin(0, action, 1, item, bytes) {
            return outcome;
        }
        let mut ended: Vec<Completion> = Vec::new();
        while ended.is_empty() {
            self.session.reap(self.clock.now() + 1_000_000_000, &mut ended);
        }
        ended[0].outcome
    }

    /// Reads the whole volume in blocks of `bytes`: the first fault, and its example.
    pub(crate) fn verify(&mut self, size: u64, bytes: u64) -> Option<(Fault, String)> {
        let fault = (0..size / bytes).find_map(|item| self.act(0, item, bytes).fault)?;
        Some((fault, self.session.examples().remove(0).text))
    }
}

/// Changes a file behind the engine's back.
pub(crate) fn meddle(path: &Path, at: u64, change: impl FnOnce(&mut [u8; 4096])) {
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut bytes = [0; 4096];
    file.read_exact_at(&mut bytes, at).unwrap();
    change(&mut bytes);
    file.write_all_at(&bytes, at).unwrap();
    file.sync_all().unwrap();
}

pub(crate) fn block(path: &Path, at: u64) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    std::fs::File::open(path).unwrap().read_exact_at(&mut bytes, at).unwrap();
    bytes
}

/// Runs a program; `None` when it fails or is not there, which is said.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).trim().into()),
        Ok(output) => {
            eprintln!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            eprintln!("{program}: {error}");
            None
        }
    }
}

/// A loop device on a file of its own; detached when dropped.
pub(crate) struct Loop {
    pub(crate) path: PathBuf,
    pub(crate) file: PathBuf,
}

impl Loop {
    /// `None` where this user may not make one; the test says that it was skipped.
    pub(crate) fn new(directory: &Path, size: u64, sector: u32) -> Option<Self> {
        let file = directory.join(format!("disk-{sector}"));
        std::fs::File::create(&file).unwrap().set_len(size).unwrap();
        Self::on(&file, sector)
    }

    /// On a file or a device that is there.
    pub(crate) fn on(file: &Path, sector: u32) -> Option<Self> {
        let sector = format!("--sector-size={sector}");
        let path = command("losetup", &["--find", "--show", &sector, file.to_str().unwrap()]);
        if path.is_none() {
            skip("no loop device can be made (root is needed)");
        }
        let own = Self { path: path?.into(), file: file.to_owned() };
        // Settings of a queue outlive the files that are attached to it: another program may have left the device uncounted.
        own.count("1");
        Some(own)
    }

    /// Has the kernel count its requests, or not.
    pub(crate) fn count(&self, is_on: &str) {
        let device = self.path.file_name().unwrap().to_str().unwrap();
        std::fs::write(format!("/sys/block/{device}/queue/iostats"), is_on).unwrap();
    }

    pub(crate) fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.count("1");
        command("losetup", &["--detach", self.path.to_str().unwrap_or("")]);
    }
}

/// A mounted file system; unmounted when dropped.
pub(crate) struct Mount(pub(crate) PathBuf);

impl Mount {
    /// An ext4 file system on the device; `None` where this user may not mount, which is said.
    pub(crate) fn ext4(disk: &Loop, place: PathBuf) -> Option<Self> {
        std::fs::create_dir(&place).unwrap();
        let made = command("mkfs.ext4", &["-q", "-F", disk.name()])
            .and_then(|_| command("mount", &[disk.name(), place.to_str().unwrap()]));
        if made.is_none() {
            skip("an ext4 file system cannot be made and mounted");
        }
        made.map(|_| Self(place))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The kernel lets go of a ring's files some time after the ring was closed, and a program that another test starts has all of
        // this process's files until it runs.
        let until = Instant::now() + Duration::from_secs(60);
        let mut done = None;
        while done.is_none() && Instant::now() < until {
            done = command("umount", &[self.0.to_str().unwrap_or("")]);
            if done.is_none() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        assert!(done.is_some() || std::thread::panicking(), "the engine still holds a file of this mount");
    }
}
