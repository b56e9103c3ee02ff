//! Against the fio of this machine: `cargo test -p tidemark-fio -- --ignored`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod agreement;
mod described;
mod examined;
mod spellings;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_block::job::{Action, Cache, Content, FILL_BYTES, IoEngine, Job, Place, Volume};
use tidemark_fio::json::{Document, Piece, Stream};
use tidemark_fio::{JobFiles, Program, run};
use tidemark_load::engine::OpenError;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, Size, SourcePlan};
use tidemark_load::stop::StopRequest;
use tidemark_load::stopping::Stop;
use tidemark_load::thread_pool::{Result as Outcome, Watch};
use tidemark_load::work::{Finale, Work as Load};
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::Pick;
use tidemark_measure::record::Second;
use tidemark_measure::tally::{Interval, Tally};
use tidemark_plan::document;
use tidemark_plan::plan::{Stage, Work, WorkKind};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// After this many seconds of measurement a test interferes: by then fio runs, however busy the machine is.
const ENOUGH: usize = 2;

#[derive(Default)]
struct Seen {
    intervals: Vec<Interval>,
    /// The user's request, once there are enough seconds.
    stop_request: Option<StopRequest>,
    /// Is carried out once, as soon as there are enough seconds.
    disturb: Option<Box<dyn FnOnce()>>,
}

impl Watch for Seen {
    fn interval(&mut self, interval: &Interval) {
        self.intervals.push(interval.clone());
        if self.intervals.len() >= ENOUGH
            && let Some(disturb) = self.disturb.take()
        {
            disturb();
        }
    }

    fn stop_request(&mut self) -> StopRequest {
        self.stop_request.filter(|_| self.intervals.len() >= ENOUGH).unwrap_or_default()
    }
}

impl Seen {
    fn sum(&self, actions: usize) -> Vec<Tally> {
        let mut sum = vec![Tally::default(); actions];
        for interval in &self.intervals {
            sum.iter_mut().zip(&interval.actions).for_each(|(sum, second)| sum.add(second));
        }
        sum
    }
}

fn fio() -> Program {
    Program::find().unwrap()
}

fn stages(text: &str) -> Vec<Stage> {
    let registry = Registry::new(vec![], vec![Arc::new(JobFiles)]);
    let read = document::read(text, &Environment::process(&registry));
    read.unwrap_or_else(|found| panic!("{found:?}")).plan.stages
}

fn play(stage: &Stage) -> (Vec<Outcome>, Vec<Seen>) {
    let works: Vec<&Work> = stage.works.iter().collect();
    let mut seen: Vec<Seen> = works.iter().map(|_| Seen::default()).collect();
    let mut watches: Vec<&mut dyn Watch> = seen.iter_mut().map(|seen| seen as &mut dyn Watch).collect();
    let outcomes = run(&fio(), &works, &mut watches).unwrap();
    (outcomes, seen)
}

/// A result would print all its histograms.
fn refused(answer: Result<Vec<Outcome>, OpenError>) -> String {
    match answer {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    }
}

fn refusal(text: &str) -> String {
    let stages = stages(text);
    let works: Vec<&Work> = stages[0].works.iter().collect();
    let mut seen: Vec<Seen> = works.iter().map(|_| Seen::default()).collect();
    let mut watches: Vec<&mut dyn Watch> = seen.iter_mut().map(|seen| seen as &mut dyn Watch).collect();
    refused(run(&fio(), &works, &mut watches))
}

/// A directory on a disk's file system: tmpfs has no direct I/O.
fn directory() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("tidemark-fio-").tempdir_in("/tmp").unwrap()
}

/// The seconds that a watch saw add up to the totals.
fn adds_up(outcome: &Outcome, seen: &Seen) {
    for (sum, total) in seen.sum(outcome.tallies.len()).iter().zip(&outcome.tallies) {
        assert_eq!((sum.ok, sum.bytes, sum.failed()), (total.ok, total.bytes, total.failed()));
        assert!(sum.response.buckets().eq(total.response.buckets()));
    }
    let indices: Vec<u32> = seen.intervals.iter().map(|interval| interval.index).collect();
    assert!(indices.iter().copied().eq(0..indices.len() as u32), "{indices:?}");
}

/// Runs fio by itself in a directory, and gives its last report; `None`: it fails.
fn run_alone(text: &str, directory: &Path) -> Option<Document> {
    let file = directory.join("job.fio");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(fio().path());
    command.args(["--output-format=json+", "--eta=never"]).arg(&file).current_dir(directory);
    let output = command.output().unwrap();
    let mut stream = Stream::default();
    let text = String::from_utf8(output.stdout).unwrap();
    let pieces = text.lines().filter_map(|line| stream.line(line));
    let documents = pieces.filter_map(|piece| match piece {
        Piece::Document(document) => Some(*document),
        Piece::Chatter(_) | Piece::Garbage(_) => None,
    });
    documents.last().filter(|_| output.status.success())
}

#[test]
#[ignore = "needs fio"]
fn it_is_found_with_its_engines() {
    tidemark_testing::needs!(&["fio"]);
    let fio = fio();
    assert!(fio.version().major >= 3);
    let engines = fio.engines().unwrap();
    assert!(engines.contains("null") && engines.contains("io_uring"), "{engines:?}");
}

#[test]
#[ignore = "needs fio"]
fn our_percentiles_are_fios() {
    tidemark_testing::needs!(&["fio"]);
    let directory = directory();
    let text = format!(
        "[global]\ndirectory={}\nioengine=psync\ndirect=1\nsize=16m\nrandrepeat=0\nlat_percentiles=1\n\
         group_reporting\n[a]\nrw=randrw\nrwmixread=70\nnumjobs=2\nnumber_ios=3000\nfdatasync=10\n",
        directory.path().display()
    );
    let report = run_alone(&text, directory.path()).expect("fio reports");
    let job = &report.jobs[0];
    for direction in [&job.read, &job.write, &job.sync] {
        let mut tally = Tally::default();
        direction.lat_ns.bins.iter().for_each(|(value, count)| tally.response.record_many(*value, *count));
        assert_eq!(tally.response.count(), direction.lat_ns.count);
        for (name, fraction) in [("50.000000", 0.5), ("99.000000", 0.99), ("99.900000", 0.999)] {
            let own = tally.response.quantile(fraction) as f64;
            let printed = direction.lat_ns.percentile[name] as f64;
            let off = (own / printed - 1.0).abs();
            assert!(off <= 1.0 / 128.0 + 0.001, "{name}: fio {printed}, ours {own}");
        }
    }
}

#[test]
#[ignore = "needs fio"]
fn a_mix_of_two_jobs_is_counted_as_fio_counts_it() {
    tidemark_testing::needs!(&["fio"]);
    let directory = directory();
    let text = format!(
        "[global]\ndirectory={}\nioengine=io_uring\ndirect=1\nsize=8m\nrandrepeat=0\nruntime=3\ntime_based\n\
         [mix]\nrw=randrw\nrwmixread=70\nnumjobs=2\niodepth=4\nlat_percentiles=1\nfdatasync=16\n",
        directory.path().display()
    );
    let (outcomes, seen) = play(&stages(&text)[0]);
    let outcome = &outcomes[0];
    adds_up(outcome, &seen[0]);
    let [read, write, sync] = &outcome.tallies[..] else { panic!("{}", outcome.tallies.len()) };
    let share = read.ok as f64 / (read.ok + write.ok) as f64;
    assert!((share - 0.7).abs() < 0.03, "{share}");
    assert!(sync.ok > 0 && sync.response.count() == sync.ok && sync.bytes == 0);
    assert_eq!((read.bytes, read.response.count()), (read.ok * 4096, read.ok));
    assert_eq!(read.failed() + write.failed(), 0);
    assert!((2_900_000_000..3_500_000_000).contains(&outcome.window_end_ns), "{}", outcome.window_end_ns);
    let workers: u64 =
        outcome.workers.iter().filter(|count| count.operation == 0).map(|count| count.ok).sum();
    assert_eq!((workers, outcome.threads), (read.ok, 2));
    assert_eq!(outcome.workers.iter().map(|count| count.worker).max(), Some(1));
    assert!((2..=4).contains(&seen[0].intervals.len()), "{}", seen[0].intervals.len());
    let busy: Vec<f64> = seen[0].intervals.iter().map(|interval| Second::from(interval).busy).collect();
    assert!(busy.iter().all(|busy| (0.0..=1.05).contains(busy)) && busy[1] > 0.0, "{busy:?}");
    assert!(outcome.remarks.iter().any(|remark| remark.contains("fio's lat:")), "{:?}", outcome.remarks);
}

#[test]
#[ignore = "needs fio"]
fn what_was_done_in_the_ramp_is_not_measured() {
    tidemark_testing::needs!(&["fio"]);
    let text =
        "[a]\nioengine=null\nsize=1g\nrw=randread\nrate_iops=2000\nramp_time=2\nruntime=3\ntime_based\n";
    let (outcomes, seen) = play(&stages(text)[0]);
    let outcome = &outcomes[0];
    adds_up(outcome, &seen[0]);
    assert_eq!(outcome.window_start_ns, 2_000_000_000);
    let window = outcome.window_end_ns - outcome.window_start_ns;
    assert!((2_900_000_000..3_300_000_000).contains(&window), "{window}");
    let rate = outcome.tallies[0].ok as f64 / (window as f64 / 1e9);
    assert!((rate / 2_000.0 - 1.0).abs() < 0.1, "{rate}");
    let unmeasured: u64 = seen[0].intervals.iter().map(|interval| interval.unmeasured).sum();
    assert!(unmeasured > 2_000, "{unmeasured}");
}

#[test]
#[ignore = "needs fio"]
fn a_ramp_that_fio_never_left_is_no_measurement() {
    tidemark_testing::needs!(&["fio"]);
    // fio 3.33 with a rate ends after `runtime` even if that is within the ramp, and reports it as if measured.
    let text =
        "[a]\nioengine=null\nsize=1g\nrw=randread\nrate_iops=2000\nramp_time=4\nruntime=2\ntime_based\n";
    let (outcomes, seen) = play(&stages(text)[0]);
    if outcomes[0].given_up.is_empty() {
        return adds_up(&outcomes[0], &seen[0]);
    }
    assert!(outcomes[0].given_up.contains("ramp"), "{}", outcomes[0].given_up);
    assert_eq!(outcomes[0].tallies[0].ok, 0);
}

#[test]
#[ignore = "needs fio"]
fn stonewalled_sections_run_one_after_the_other() {
    tidemark_testing::needs!(&["fio"]);
    let directory = directory();
    let text = format!(
        "[global]\nfilename={}\nioengine=psync\nsize=4m\n[fill]\nrw=write\nbs=1m\nend_fsync=1\n\
         [read]\nstonewall\nrw=read\nbs=64k\n[beside]\nrw=randread\nbs=4k\nnumber_ios=100\n",
        directory.path().join("f").display()
    );
    let stages = stages(&text);
    let (fill, _) = play(&stages[0]);
    assert_eq!((fill.len(), fill[0].tallies[0].ok, fill[0].tallies[0].bytes), (1, 4, 4 << 20));
    let (reads, seen) = play(&stages[1]);
    assert_eq!((reads[0].tallies[0].ok, reads[1].tallies[0].ok), (64, 100));
    reads.iter().zip(&seen).for_each(|(outcome, seen)| adds_up(outcome, seen));
    assert!(reads[0].remarks.iter().any(|remark| remark.contains("fio's clat")), "{:?}", reads[0].remarks);
}

#[test]
#[ignore = "needs fio"]
fn a_full_file_system_is_counted_and_quoted() {
    tidemark_testing::needs!(&["fio"]);
    // `/dev/full` says that there is no space left, whatever is written.
    let text = "[a]\nfilename=/dev/full\nioengine=psync\nrw=write\nsize=1m\nbs=64k\n";
    let (outcomes, seen) = play(&stages(text)[0]);
    let tally = &outcomes[0].tallies[0];
    assert_eq!((tally.faults.of(Fault::NoSpace), tally.ok), (1, 0));
    assert_eq!(seen[0].sum(1)[0].failed(), 1);
    let example = &outcomes[0].examples[0];
    assert!(
        example.fault == Fault::NoSpace && example.text.contains("No space left on device: write"),
        "{example:?}"
    );
}

#[test]
#[ignore = "needs fio"]
fn what_cannot_start_says_why() {
    tidemark_testing::needs!(&["fio"]);
    let option = refusal("[a]\nrw=read\nsize=1m\nbogus_option=1\nioengine=null\n");
    assert!(option.contains("Bad option <bogus_option=1>") && option.contains("correct it"), "{option}");
    let engine = refusal("[a]\nrw=read\nsize=1m\nioengine=nosuch\n");
    assert!(engine.contains("nosuch") && engine.contains("--enghelp"), "{engine}");
    let file = refusal("[a]\nrw=read\nsize=1m\nfilename=/proc/nosuch/file\nallow_file_create=0\n");
    assert!(file.contains("fio"), "{file}");
}

fn children_of(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// fio processes whose standard output is this test's: found by the marker in their environment.
fn marked(marker: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(marker)
    };
    pids.filter(holds).collect()
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

/// Plays a job on the null engine for long and does something to its process after a while.
fn disturbed(section: &'static str, disturb: impl FnOnce(u32) + 'static) -> (Outcome, Seen) {
    let text = format!(
        "[{section}]\nioengine=null\nsize=1g\nrw=randread\nrate_iops=1000\nruntime=3600\ntime_based\n"
    );
    let find = move || {
        let pids = marked(&format!("--section={section}"));
        let parent = pids.iter().find(|pid| children_of(**pid).iter().any(|child| pids.contains(child)));
        disturb(*parent.expect("fio runs"));
    };
    let mut seen = Seen { disturb: Some(Box::new(find)), ..Seen::default() };
    let outcome = run(&fio(), &[&stages(&text)[0].works[0]], &mut [&mut seen]).unwrap().remove(0);
    (outcome, seen)
}

#[test]
#[ignore = "needs fio"]
fn a_killed_fio_is_a_failure_and_leaves_nothing_behind() {
    tidemark_testing::needs!(&["fio"]);
    let begun = Instant::now();
    let (outcome, seen) = disturbed("killed-whole", kill);
    assert!(begun.elapsed() < Duration::from_secs(1800), "its jobs went on");
    assert_eq!(outcome.given_up, "fio was killed by signal 9");
    assert_eq!(outcome.tallies[0].faults.of(Fault::Local), 1);
    assert!(outcome.tallies[0].ok > 500, "what it told before stays: {}", outcome.tallies[0].ok);
    adds_up(&outcome, &seen);
    assert_eq!(marked("--section=killed-whole"), Vec::<u32>::new(), "its jobs were ended too");
}

#[test]
#[ignore = "needs fio"]
fn a_killed_job_is_a_failure() {
    tidemark_testing::needs!(&["fio"]);
    let (outcome, _) = disturbed("killed-job", |parent| children_of(parent).into_iter().for_each(kill));
    assert_eq!(outcome.given_up, "a job of fio was killed by signal 9");
    assert!(outcome.window_end_ns > 500_000_000, "{}", outcome.window_end_ns);
}

#[test]
#[ignore = "needs fio"]
fn the_user_may_end_it_and_what_was_measured_stays() {
    tidemark_testing::needs!(&["fio"]);
    for (stop_request, section) in [(StopRequest::Finish, "user-finishes"), (StopRequest::Stop, "user-stops")]
    {
        let text = format!(
            "[{section}]\nioengine=null\nsize=1g\nrw=read\nrate_iops=1000\nruntime=3600\ntime_based\n"
        );
        let stages = stages(&text);
        let mut seen = Seen { stop_request: Some(stop_request), ..Seen::default() };
        let outcome = run(&fio(), &[&stages[0].works[0]], &mut [&mut seen]).unwrap().remove(0);
        assert!(outcome.interrupted && outcome.given_up.is_empty(), "{}", outcome.given_up);
        assert!((500..1_000_000).contains(&outcome.tallies[0].ok), "{}", outcome.tallies[0].ok);
        adds_up(&outcome, &seen);
        assert_eq!(marked(&format!("--section={section}")), Vec::<u32>::new());
    }
}

fn volumes(directory: &Path, count: u32, size: u64) -> Vec<Volume> {
    let path = |number| -> PathBuf { directory.join(format!("volume:{number}")) };
    (1..=count).map(|number| Volume { place: Place::File(path(number)), size }).collect()
}

fn cell(volumes: Vec<Volume>, actions: &[Action], source: SourcePlan, kind: WorkKind) -> Work {
    let clients = volumes.len() as u32;
    let job = Job {
        volumes,
        unit: 4096,
        io_engine: IoEngine::Fio,
        direct: true,
        polled: false,
        batch: None,
        cache: Cache::Cold,
        content: Content::default(),
        journal: None,
        reuse: false,
        per_driver: false,
        actions: actions.to_vec(),
    };
    let stop = match kind {
        WorkKind::Prepare => Stop { drain_ns: 10_000_000_000, ..Stop::default() },
        _ => Stop {
            warm_up_ns: 1_000_000_000,
            window_ns: Some(2_000_000_000),
            drain_ns: 10_000_000_000,
            ..Stop::default()
        },
    };
    let load = Load {
        workers: clients,
        depth: 4,
        connections: None,
        pacing: Pacing::BACK_TO_BACK,
        stop,
        source,
        finale: None,
        copies: 1,
        actions: actions.len() as u16,
        seed: 7,
        stream: [0, 0],
    };
    Work {
        name: "cell".into(),
        kind,
        load,
        job: tidemark_plan::job::Job::new(job),
        labels: Vec::new(),
        allowed_failures_per_million: 0,
        driver: None,
    }
}

fn choice(action: u16, weight: f64, clients: u64, size: u64) -> Choice {
    Choice {
        action,
        weight,
        spaces: Pick::Uniform { low: 1, high: clients },
        items: Pick::Uniform { low: 0, high: size / 4096 - 1 },
        bytes: Size { pick: Pick::Constant(4096), unit: 1 },
        division: Division::Spaces,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    }
}

#[test]
#[ignore = "needs fio"]
fn a_native_cell_is_filled_and_measured_by_one_process_per_client() {
    tidemark_testing::needs!(&["fio"]);
    let directory = directory();
    let size = 8 * FILL_BYTES + 8192;
    let volumes = volumes(directory.path(), 2, size);
    let scan = SourcePlan::Scan {
        action: 0,
        spaces: Some((1, 2)),
        items: Some((0, 8)),
        bytes: Size { pick: Pick::Constant(FILL_BYTES), unit: 1 },
    };
    let fill = cell(volumes.clone(), &[Action::Write], scan, WorkKind::Prepare);
    let mut seen = Seen::default();
    let filled = run(&fio(), &[&fill], &mut [&mut seen]).unwrap().remove(0);
    assert_eq!((filled.tallies[0].ok, filled.tallies[0].bytes), (18, 2 * size));
    adds_up(&filled, &seen);
    for volume in &volumes {
        let Place::File(path) = &volume.place else { panic!() };
        assert_eq!(std::fs::metadata(path).unwrap().len(), size);
    }

    let choices = vec![choice(0, 50.0, 2, size), choice(1, 50.0, 2, size)];
    let mix = SourcePlan::Mix { choices, pool: None, deck: false };
    let mut load = cell(volumes, &[Action::Read, Action::Write, Action::Fsync], mix, WorkKind::Normal);
    load.load.finale = Some(Finale { action: 2, spaces: (1, 2) });
    let mut seen = Seen::default();
    let outcome = run(&fio(), &[&load], &mut [&mut seen]).unwrap().remove(0);
    adds_up(&outcome, &seen);
    assert_eq!((outcome.threads, outcome.window_start_ns), (2, 1_000_000_000));
    let (read, write) = (&outcome.tallies[0], &outcome.tallies[1]);
    assert!(read.ok > 100 && write.ok > 100, "{} {}", read.ok, write.ok);
    let share = read.ok as f64 / (read.ok + write.ok) as f64;
    assert!((share - 0.5).abs() < 0.05, "{share}");
    for worker in [0, 1] {
        let own = outcome.workers.iter().filter(|count| count.worker == worker && count.operation < 2);
        assert!(own.map(|count| count.ok).sum::<u64>() > 50, "{:?}", outcome.workers);
    }
    let unmeasured: u64 = seen.intervals.iter().map(|interval| interval.unmeasured).sum();
    assert!(unmeasured > 50, "{unmeasured}");
}

#[test]
#[ignore = "needs fio"]
fn a_volume_that_is_too_short_is_never_laid_out_anew() {
    tidemark_testing::needs!(&["fio"]);
    let directory = directory();
    let volumes = volumes(directory.path(), 1, 1 << 20);
    let Place::File(path) = volumes[0].place.clone() else { panic!() };
    std::fs::write(&path, b"precious").unwrap();
    let mix = SourcePlan::Mix { choices: vec![choice(0, 1.0, 1, 1 << 20)], pool: None, deck: false };
    let load = cell(volumes, &[Action::Read], mix, WorkKind::Normal);
    let error = refused(run(&fio(), &[&load], &mut [&mut Seen::default()]));
    assert!(error.contains("prefill"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}
