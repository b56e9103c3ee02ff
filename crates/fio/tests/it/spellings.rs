//! Job files that write to a device in ways that the reader does not see: the kernel refuses them, whatever fio makes of them.

use super::examined::prepare;
use super::{directory, fio};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tidemark_fio::{FioFile, JobFiles, Program, Use, run};
use tidemark_load::thread_pool::Watch;
use tidemark_plan::document;
use tidemark_plan::job::Job as AnyJob;
use tidemark_plan::plan::{Stage, Work};
use tidemark_plan::policy::Access;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// All of them run with this variable set to `all`; a sample otherwise.
const VARIABLE: &str = "TIDEMARK_SPELLINGS";
const SAMPLE: usize = 41;

/// How many are tried at the same time, each on a device of its own: fio mostly waits for itself.
const WORKERS: usize = 4;

/// Bytes of a device.
const SIZE: usize = 1 << 20;

/// Where the device is named, of a job whose other options stand for `OPTIONS`: `DEVICE` is its path, `NODE` its name in `/dev`, `OWN` a
/// directory for files of the job.
const PLACES: [&str; 17] = [
    "[DEVICE]\nOPTIONS",
    "[OWN/link]\nOPTIONS",
    "[global]\nOPTIONS[DEVICE]\n",
    "[job]\ndirectory=/dev\nfilename=/NODE\nOPTIONS",
    "[global]\ndirectory=/dev\n[job]\nfilename=/NODE\nOPTIONS",
    "[job]\ndirectory=/dev/\nfilename=//NODE\nOPTIONS",
    "[globalx]\nfilename=DEVICE\n[job]\nOPTIONS",
    "[global-x]\nfilename=DEVICE\n[job]\nOPTIONS",
    "[job]\nfilename=DEVICE\nfilename=OWN/file\nOPTIONS",
    "[global]\nfilename=DEVICE\n[job]\nfilename=OWN/file\nOPTIONS",
    "[j]\ndirectory=OWN\nnr_files=2\nOPTIONS",
    "[global]\nnr_files=2\n[j]\ndirectory=OWN\nOPTIONS",
    "[n]\ndirectory=OWN\nnumjobs=2\nOPTIONS",
    "[job]\ndirectory=OWN\nname=DEVICE\nOPTIONS",
    "[global]\nname=DEVICE\n[job]\ndirectory=OWN\nOPTIONS",
    "[job]\nfilename = OWN/link\nOPTIONS",
    "[job]\nfilename=OWN/hidden\nOPTIONS",
];

const ENGINES: [&str; 14] = [
    "",
    "ioengine=psync\n",
    "ioengine=sync\n",
    "ioengine=psync:x\n",
    "ioengine=sync:\n",
    "ioengine=vsync\n",
    "ioengine=pvsync2\n",
    "ioengine=libaio\n",
    "ioengine=aio\n",
    "ioengine=linuxaio\n",
    "ioengine=aiofoo\n",
    "ioengine=io_uring\n",
    "ioengine=posixaio\n",
    "ioengine=mmap\n",
];

const DIRECTIONS: [&str; 9] = [
    "rw=write\n",
    "readwrite=randwrite\n",
    "rw=randrw\n",
    "rw=randrw\nrwmixwrite=0\nrwmixread=0\n",
    "rw=rw\nrwmixread=100\nrwmixwrite=100\n",
    "rw=readwrite:2\n",
    "rw=randtrim\n",
    "rw=trimwrite\n",
    "rw=read\nrw=write\n",
];

fn job_files(device: &Path, own: &Path) -> Vec<String> {
    let node = device.file_name().unwrap().to_str().unwrap();
    let (device, own) = (device.to_str().unwrap(), own.to_str().unwrap());
    let mut all = Vec::new();
    for place in PLACES {
        for engine in ENGINES {
            for direction in DIRECTIONS {
                let options = format!("{engine}{direction}size=64k\nbs=4k\n");
                let text = place.replace("OPTIONS", &options);
                all.push(text.replace("DEVICE", device).replace("NODE", node).replace("OWN", own));
            }
        }
    }
    all
}

/// The stages of a job file, and whether the reader sees that it works on the device. `None`: it is refused.
fn read(text: &str, device: &Path) -> Option<(Vec<Stage>, bool)> {
    let registry = Registry::new(vec![], vec![Arc::new(JobFiles)]);
    let stages = document::read(text, &Environment::process(&registry)).ok()?.plan.stages;
    let is_it = |path: &PathBuf| std::fs::canonicalize(path).is_ok_and(|path| path == device);
    let sees = |work: &Work| work.job.get::<FioFile>().unwrap().paths().any(is_it);
    let is_seen = stages.iter().flat_map(|stage| &stage.works).any(sees);
    Some((stages, is_seen))
}

/// Runs stages whose reader has seen nothing but a file in this directory.
fn run_blind(program: &Program, stages: &[Stage], own: &Path) {
    for stage in stages {
        let blind = |work: &Work| {
            let file = work.job.get::<FioFile>().unwrap();
            let only = Use { path: own.join("file"), writes: true, ..Use::default() };
            let job = FioFile { files: vec![only], ..file.clone() };
            Work { job: AnyJob::new(job), ..work.clone() }
        };
        let works: Vec<Work> = stage.works.iter().map(blind).collect();
        let works: Vec<&Work> = works.iter().collect();
        let mut watches: Vec<Idle> = works.iter().map(|_| Idle).collect();
        let mut watches: Vec<&mut dyn Watch> =
            watches.iter_mut().map(|watch| watch as &mut dyn Watch).collect();
        // What it says is another test's affair.
        let _ = run(program, &works, &mut watches);
    }
}

struct Idle;

impl Watch for Idle {
    fn interval(&mut self, _interval: &tidemark_measure::tally::Interval) {}

    fn stop_request(&mut self) -> tidemark_load::stop::StopRequest {
        tidemark_load::stop::StopRequest::None
    }
}

/// A loop device that holds a pattern.
pub(super) struct Disk(pub(super) PathBuf);

impl Disk {
    pub(super) fn new(place: &Path) -> Option<Self> {
        let file = place.join("disk");
        std::fs::write(&file, pattern()).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output().ok()?;
        let name = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| Self(name.trim().into()))
    }

    pub(super) fn is_whole(&self) -> bool {
        std::fs::read(&self.0).unwrap() == pattern()
    }

    fn write_anew(&self) {
        std::fs::write(&self.0, pattern()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.0).status();
    }
}

fn pattern() -> Vec<u8> {
    (0..SIZE).map(|at| (at % 251) as u8).collect()
}

#[test]
#[ignore = "needs fio and root"]
fn nothing_is_written_that_was_not_examined() {
    tidemark_testing::needs!(&["fio", "losetup"]);
    let places: Vec<_> = (0..WORKERS).map(|_| directory()).collect();
    let disks: Option<Vec<Disk>> = places.iter().map(|place| Disk::new(place.path())).collect();
    let Some(disks) = disks else {
        return tidemark_testing::skip("no loop device can be made (root is needed)");
    };
    let step = if std::env::var(VARIABLE).is_ok_and(|value| value == "all") { 1 } else { SAMPLE };
    let numbers = Mutex::new((0..PLACES.len() * ENGINES.len() * DIRECTIONS.len()).step_by(step));
    let whole = numbers.lock().unwrap().len();
    let found = Mutex::new(Found::default());
    std::thread::scope(|scope| {
        for (place, disk) in places.iter().zip(&disks) {
            let (numbers, found) = (&numbers, &found);
            scope.spawn(move || {
                let (program, own) = (fio(), place.path().join("own"));
                let all = job_files(&disk.0, &own);
                let next = || numbers.lock().unwrap().next();
                while let Some(number) = next() {
                    try_one(&program, &all[number], disk, &own, found);
                }
            });
        }
    });
    let Found { refused, seen, would_have, written_over, unseen } = found.into_inner().unwrap();
    println!(
        "{whole} job files: {refused} refused, the device of {seen} seen; {would_have} would have written over it"
    );
    assert!(written_over.is_empty(), "written over by {}, such as\n{}", written_over.len(), written_over[0]);
    assert!(would_have > whole / 2, "{would_have} of {whole} would have written over it without the sandbox");
    assert!(
        unseen.is_empty(),
        "the reader does not see what {} of them write to, such as\n{}",
        unseen.len(),
        unseen[0]
    );
}

/// What was found by trying job files.
#[derive(Default)]
struct Found {
    refused: usize,
    /// Those whose device the reader sees.
    seen: usize,
    /// Those that write over it without the sandbox.
    would_have: usize,
    /// Those that write over it all the same.
    written_over: Vec<String>,
    /// Those that would have, and whose device the reader does not see.
    unseen: Vec<String>,
}

/// Runs a job file in the sandbox and without.
fn try_one(program: &Program, text: &str, disk: &Disk, own: &Path, found: &Mutex<Found>) {
    // What a job before has left would change what this one does.
    let _ = std::fs::remove_dir_all(own);
    std::fs::create_dir(own).unwrap();
    for link in ["link", "j.0.1", "n.1.0"] {
        std::os::unix::fs::symlink(&disk.0, own.join(link)).unwrap();
    }
    let Some((stages, is_seen)) = read(text, &disk.0) else {
        found.lock().unwrap().refused += 1;
        return;
    };
    run_blind(program, &stages, own);
    let is_written_over = !disk.is_whole();
    // Without the sandbox the same file does it: what is tested is the sandbox.
    run_blind(&program.clone().unconfined(), &stages, own);
    let would_have = !disk.is_whole();
    if would_have {
        disk.write_anew();
    }
    let mut found = found.lock().unwrap();
    found.seen += usize::from(is_seen);
    found.would_have += usize::from(would_have);
    found.written_over.extend(is_written_over.then(|| text.to_owned()));
    found.unseen.extend((would_have && !is_seen).then(|| text.to_owned()));
}

#[test]
#[ignore = "needs fio and root"]
fn a_file_that_is_in_use_is_not_written_to_by_another_name() {
    tidemark_testing::needs!(&["fio", "losetup"]);
    let place = directory();
    let Some(disk) = Disk::new(place.path()) else {
        return tidemark_testing::skip("no loop device can be made (root is needed)");
    };
    let link = place.path().join("link");
    std::fs::hard_link(place.path().join("disk"), &link).unwrap();
    let try_it = |options: &str, allow_destroy: &[PathBuf]| {
        let text = format!("[job]\nfilename={}\nsize=64k\n{options}\n", link.display());
        prepare(&text, allow_destroy, Access::own()).map(drop)
    };
    let refused = try_it("rw=write", &[]).unwrap_err();
    assert!(refused.contains(&format!("it is behind {}", disk.0.display())), "{refused}");
    assert_eq!(try_it("rw=read", &[]), Ok(()));
    assert_eq!(try_it("rw=write", std::slice::from_ref(&link)), Ok(()));
    drop(disk);
    assert_eq!(try_it("rw=write", &[]), Ok(()), "nobody uses it any more");
}
