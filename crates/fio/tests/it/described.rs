//! What fio's example job files do, in job files of our own, each named after the example whose features it has (`tests/jobs`): what fio
//! accepts is accepted, what it refuses is refused, and what runs is counted as fio counts it.

use super::{adds_up, directory, examined, fio, run_alone};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tidemark_block::job::Action;
use tidemark_fio::{Fio, FioFile, JobFiles};
use tidemark_plan::document;
use tidemark_plan::engine::Engine as _;
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Access;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// Where their files are, in the texts.
const PLACE: &str = "/tmp/tidemark-fio";

/// Why Tidemark refuses what fio accepts.
#[derive(Clone, Copy, Debug)]
enum Difference {
    /// It would run a program of the user's.
    Program,
    /// Tidemark does not calculate, as fio has a shell do.
    Calculated,
}

impl Difference {
    /// Its message then.
    const fn words(self) -> &'static str {
        match self {
            Self::Program => "would run a program of its own",
            Self::Calculated => "`numjobs=$ncpus`: fio may read this value otherwise",
        }
    }
}

const DIFFERENCES: [(&str, Difference); 2] =
    [("exec", Difference::Program), ("page_fault", Difference::Calculated)];

/// Why two runs of a job do not count the same, or none is to be made.
#[derive(Clone, Copy, Debug)]
enum Uncounted {
    /// It ends after a time, or when a rate is steady.
    Timed,
    /// Its jobs end each other.
    EndEachOther,
    /// fio 3.33 sometimes never ends with `io_submit_mode=offload`.
    Hangs,
    /// It needs the network, or processors and no storage.
    NoStorage,
}

const UNCOUNTED: [(&str, Uncounted); 8] = [
    ("cpuio", Uncounted::NoStorage),
    ("exitwhat", Uncounted::EndEachOther),
    ("fixed-rate-submission", Uncounted::Hangs),
    ("latency-profile", Uncounted::Timed),
    ("netio", Uncounted::NoStorage),
    ("netio_multicast", Uncounted::NoStorage),
    ("poisson-rate-submission", Uncounted::Hangs),
    ("steadystate", Uncounted::Timed),
];

/// All of them: names and texts.
fn jobs() -> Vec<(String, String)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobs");
    let files = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = files
        .map(|file| {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(file).unwrap())
        })
        .collect();
    all.sort();
    assert!(all.len() > 107, "{} job files", all.len());
    all
}

/// Does something with each of the jobs, some at a time: what was wrong, job by job.
fn each(jobs: &[(String, String)], check: impl Fn(&str, &str) -> Result<(), String> + Sync) -> Vec<String> {
    let (left, wrong) = (Mutex::new(jobs.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some((name, text)) = next else { return };
                    if let Err(reason) = check(name, text) {
                        wrong.lock().unwrap().push(format!("{name}: {reason}"));
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

/// What Tidemark makes of a job file before a run.
fn read(text: &str) -> Result<Plan, String> {
    let registry = Registry::new(vec![], vec![Arc::new(JobFiles)]);
    let read = document::read(text, &Environment::process(&registry));
    let plan = read.map_err(|found| format!("{found:?}"))?.plan;
    Fio.rehearse(&plan).map(|()| plan)
}

/// Whether fio accepts it.
fn is_accepted(name: &str, text: &str, directory: &Path) -> bool {
    let file = directory.join(format!("{name}.fio"));
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(fio().path());
    command.arg("--parse-only").arg(file).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
#[ignore = "needs fio"]
fn what_fio_accepts_is_accepted_and_what_it_refuses_is_refused() {
    tidemark_testing::needs!(&["fio"]);
    let (place, accepted) = (directory(), Mutex::new(0));
    let wrong = each(&jobs(), |name, text| {
        let is_accepted = is_accepted(name, text, place.path());
        *accepted.lock().unwrap() += usize::from(is_accepted);
        let difference = DIFFERENCES.iter().find(|(differs, _)| *differs == name).map(|(_, why)| *why);
        match (is_accepted, read(text), difference) {
            (true, Ok(_), None) | (false, Err(_), None) => Ok(()),
            (true, Err(reason), Some(why)) if reason.contains(why.words()) => Ok(()),
            (true, Err(reason), _) => Err(format!("fio accepts it: {reason}")),
            (false, Ok(_), _) => Err("fio refuses it".into()),
            (_, _, Some(why)) => Err(format!("it is not refused because of {why:?}")),
        }
    });
    assert_eq!(wrong, Vec::<String>::new());
    assert!(accepted.into_inner().unwrap() > 50, "fio accepts few of them");
}

/// Reads, writes and trims with their bytes, by the names of jobs.
type Counts = BTreeMap<String, [(u64, u64); 3]>;

fn add(counts: &mut Counts, name: &str, direction: usize, (operations, bytes): (u64, u64)) {
    let sum = &mut counts.entry(name.to_owned()).or_default()[direction];
    *sum = (sum.0 + operations, sum.1 + bytes);
}

/// By Tidemark.
fn counted(plan: &Plan) -> Counts {
    let mut counts = Counts::new();
    let mut ready = examined::ready(plan, &[], Access::own()).unwrap();
    for stage in &plan.stages {
        let (outcomes, seen) = examined::play(&mut *ready, stage);
        for ((work, outcome), seen) in stage.works.iter().zip(&outcomes).zip(&seen) {
            adds_up(outcome, seen);
            let file: &FioFile = work.job.get().unwrap();
            for (action, tally) in file.actions.iter().zip(&outcome.tallies) {
                let direction = [Action::Read, Action::Write, Action::Trim];
                if let Some(direction) = direction.iter().position(|one| one == action) {
                    add(&mut counts, &work.name, direction, (tally.ok, tally.bytes));
                }
            }
        }
    }
    counts
}

/// By fio; `None`: it fails.
fn reported(text: &str, directory: &Path) -> Option<Counts> {
    let mut counts = Counts::new();
    for job in &run_alone(text, directory)?.jobs {
        for (direction, moved) in [&job.read, &job.write, &job.trim].into_iter().enumerate() {
            add(&mut counts, &job.jobname, direction, (moved.total_ios, moved.io_bytes));
        }
    }
    Some(counts)
}

/// Whether a plan does nothing outside a directory.
fn stays_within(plan: &Plan, directory: &Path) -> bool {
    let works = plan.stages.iter().flat_map(|stage| &stage.works);
    let mut files = works.map(|work: &Work| work.job.get::<FioFile>().unwrap());
    files.all(|file| {
        let is_within = |path: &PathBuf| path.starts_with(directory);
        file.paths().chain(file.logs.iter().map(|log| &log.stem)).all(is_within)
            && file.images.is_empty()
            && file.remote.is_empty()
    })
}

#[test]
#[ignore = "needs fio"]
fn what_runs_on_files_is_counted_as_fio_counts_it() {
    tidemark_testing::needs!(&["fio"]);
    let jobs: Vec<_> =
        jobs().into_iter().filter(|(name, _)| !UNCOUNTED.iter().any(|(other, _)| other == name)).collect();
    let compared = Mutex::new(0);
    let wrong = each(&jobs, |_, text| {
        // fio removes and makes files: each has a directory of its own.
        let places = [directory(), directory()];
        let [theirs, ours] =
            places.each_ref().map(|place| text.replace(PLACE, place.path().to_str().unwrap()));
        let Ok(plan) = read(&ours) else { return Ok(()) };
        if !stays_within(&plan, places[1].path()) {
            return Ok(());
        }
        // It lacks an engine, or hardware.
        let Some(reported) = reported(&theirs, places[0].path()) else { return Ok(()) };
        let counted = counted(&plan);
        *compared.lock().unwrap() += 1;
        match counted == reported {
            true => Ok(()),
            false => Err(format!("Tidemark counts {counted:?}, and fio {reported:?}")),
        }
    });
    let compared = compared.into_inner().unwrap();
    println!("{compared} jobs compared");
    assert_eq!(wrong, Vec::<String>::new());
    assert!(compared >= 30, "only {compared} of them run here");
}
