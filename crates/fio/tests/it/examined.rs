//! What is at the paths of a job file stays what it was when the guard looked: fio gets that, or nothing.

use super::spellings::Disk;
use super::{Seen, directory, fio, refused, stages};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tidemark_fio::{Fio, JobFiles, run};
use tidemark_load::engine::OpenError;
use tidemark_load::thread_pool::{Result as Outcome, Watch};
use tidemark_plan::document;
use tidemark_plan::engine::{Carrier, Engine as _, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Stage, Work};
use tidemark_plan::policy::{Access, Policy};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// A plan made ready.
pub(super) fn ready(
    plan: &Plan,
    allow_destroy: &[PathBuf],
    access: Access,
) -> Result<Box<dyn Prepared>, String> {
    let mut setup = Setup {
        skip_preflight: false,
        allow_destroy,
        scratch: None,
        writer: 1,
        access,
        threads: None,
        ready: &mut |_| {},
    };
    Fio.prepare(plan, &mut setup)
}

/// A job file made ready, with its stages.
pub(super) fn prepare(
    text: &str,
    allow_destroy: &[PathBuf],
    access: Access,
) -> Result<(Box<dyn Prepared>, Vec<Stage>), String> {
    let registry = Registry::new(vec![], vec![Arc::new(JobFiles)]);
    let plan = document::read(text, &Environment::process(&registry)).unwrap().plan;
    ready(&plan, allow_destroy, access).map(|ready| (ready, plan.stages))
}

/// The same with nothing given up.
fn prepare_own(text: &str) -> Result<(Box<dyn Prepared>, Vec<Stage>), String> {
    prepare(text, &[], Access::own())
}

fn refusal(text: &str) -> String {
    prepare_own(text).map(drop).unwrap_err()
}

/// Opens a stage: what carries it out, or why it is not opened.
fn open(ready: &mut dyn Prepared, stage: &Stage) -> Result<Vec<Carrier>, String> {
    let works: Vec<&Work> = stage.works.iter().collect();
    ready.open(StageWorks { index: 0, works: &works, shares: &[] }, &mut Vec::new())
}

/// Runs an open stage.
fn carry_out(carriers: &[Carrier], stage: &Stage) -> (Vec<Result<Outcome, OpenError>>, Vec<Seen>) {
    let works: Vec<&Work> = stage.works.iter().collect();
    let [Carrier::Process(_, process)] = carriers else { panic!("it is one fio") };
    let mut seen: Vec<Seen> = works.iter().map(|_| Seen::default()).collect();
    let mut watches: Vec<&mut dyn Watch> = seen.iter_mut().map(|seen| seen as &mut dyn Watch).collect();
    (process.run(&works, &mut watches), seen)
}

/// Runs a stage of what was made ready.
pub(super) fn play(ready: &mut dyn Prepared, stage: &Stage) -> (Vec<Outcome>, Vec<Seen>) {
    let carriers = open(ready, stage).unwrap();
    let (results, seen) = carry_out(&carriers, stage);
    ready.close(&[]);
    (results.into_iter().map(Result::unwrap).collect(), seen)
}

/// The only outcome of a stage.
fn outcome(ready: &mut dyn Prepared, stage: &Stage) -> Outcome {
    play(ready, stage).0.remove(0)
}

/// Runs a job file's first stage without its guard: what then keeps it from anything is the kernel.
fn run_unguarded(text: &str) {
    let stages = stages(text);
    let works: Vec<&Work> = stages[0].works.iter().collect();
    let mut watches: Vec<Seen> = works.iter().map(|_| Seen::default()).collect();
    let mut watches: Vec<&mut dyn Watch> = watches.iter_mut().map(|watch| watch as &mut dyn Watch).collect();
    // Its result is another test's affair.
    let _ = run(&fio(), &works, &mut watches);
}

const RECORDS: &[u8] = b"a,b,c\n1,2,3\n";

#[test]
#[ignore = "needs fio"]
fn a_job_that_only_reads_leaves_a_file_as_it_is() {
    tidemark_testing::needs!(&["fio"]);
    let place = directory();
    let records = place.path().join("records.csv");
    fs::write(&records, RECORDS).unwrap();
    let text = |options: &str| format!("[j]\nfilename={}\nrw=read\nbs=1\n{options}\n", records.display());
    for options in [
        "size=1m",
        "filesize=1m",
        "size=8\noffset=1m",
        "size=4\noffset_increment=1m\nnumjobs=2",
        "unlink=1",
        "unlink_each_loop=1\nloops=2",
        "ioengine=filedelete",
        "ioengine=falloc\nsize=1m",
        "create_only=1\nsize=1m",
    ] {
        let refused = refusal(&text(options));
        assert!(
            refused.contains("fio would remove") && refused.contains("records.csv"),
            "{options}: {refused}"
        );
        run_unguarded(&text(options));
        assert_eq!(fs::read(&records).unwrap(), RECORDS, "{options}");
    }
    let (mut prepared, stages) = prepare_own(&text("")).unwrap();
    let outcome = outcome(&mut *prepared, &stages[0]);
    assert_eq!(
        (outcome.tallies[0].bytes, fs::read(&records).unwrap()),
        (RECORDS.len() as u64, RECORDS.to_vec())
    );
}

#[test]
#[ignore = "needs fio"]
fn a_file_that_was_given_up_or_is_empty_is_made_anew() {
    tidemark_testing::needs!(&["fio"]);
    let place = directory();
    let (records, empty) = (place.path().join("records.csv"), place.path().join("empty"));
    fs::write(&records, RECORDS).unwrap();
    fs::write(&empty, "").unwrap();
    let text = |path: &Path| format!("[j]\nfilename={}\nrw=write\nsize=64k\n", path.display());
    let refused = refusal(&text(&records));
    assert!(refused.contains("fewer than the 65") && refused.contains("--allow-destroy"), "{refused}");
    let given_up = prepare(&text(&records), std::slice::from_ref(&records), Access::own()).unwrap();
    for (path, (mut ready, stages)) in [(&records, given_up), (&empty, prepare_own(&text(&empty)).unwrap())] {
        assert!(outcome(&mut *ready, &stages[0]).tallies[0].ok > 0, "{}", path.display());
        assert_eq!(fs::metadata(path).unwrap().len(), 64 << 10);
    }
}

#[test]
#[ignore = "needs fio"]
fn settings_of_the_kernel_are_not_written_to() {
    tidemark_testing::needs!(&["fio"]);
    let text = |path: &str| format!("[j]\nfilename={path}\nrw=write\nbs=16\nsize=16\n");
    for path in [
        "/proc/sys/kernel/domainname",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/profiling",
    ] {
        if !Path::new(path).exists() {
            continue;
        }
        for allowed in [vec![], vec![PathBuf::from(path)]] {
            let refused = prepare(&text(path), &allowed, Access::own()).map(drop).unwrap_err();
            assert!(refused.contains("one of the kernel's own files"), "{refused}");
        }
    }
}

#[test]
#[ignore = "needs fio"]
fn more_files_than_are_looked_at_are_refused() {
    let registry = Registry::new(vec![], vec![Arc::new(JobFiles)]);
    let place = directory();
    let text = format!("[j]\ndirectory={}\nnrfiles=1500\nrw=write\nsize=6m\n", place.path().display());
    let found = document::read(&text, &Environment::process(&registry)).unwrap_err();
    assert!(found.iter().any(|one| one.message.contains("makes more than 1\u{202f}024 files")), "{found:?}");
}

#[test]
#[ignore = "needs fio"]
fn fio_makes_and_removes_its_own_files_as_it_likes() {
    tidemark_testing::needs!(&["fio"]);
    let place = directory();
    let text = format!(
        "[global]\ndirectory={}/new\nioengine=psync\n[short]\nfilename=f\nrw=write\nsize=64k\n[long]\nstonewall\nfilename=f\n\
         rw=write\nsize=128k\n[read]\nstonewall\nfilename=f\nrw=read\nsize=256k\nunlink=1\n",
        place.path().display()
    );
    let (mut prepared, stages) = prepare_own(&text).unwrap();
    for (stage, bytes) in stages.iter().zip([64 << 10, 128 << 10, 256 << 10]) {
        let outcome = outcome(&mut *prepared, stage);
        assert_eq!((outcome.given_up.as_str(), outcome.tallies[0].bytes), ("", bytes), "{}", stage.name);
    }
    assert_eq!(fs::read_dir(place.path().join("new")).unwrap().count(), 0, "the last job has removed it");
}

#[test]
#[ignore = "needs fio"]
fn what_others_made_or_moved_since_the_guard_looked_is_not_touched() {
    tidemark_testing::needs!(&["fio"]);
    let place = directory();
    let path = |name: &str| place.path().join(name);
    for name in ["plain", "foreign"] {
        fs::write(path(name), vec![b'x'; 64 << 10]).unwrap();
    }
    symlink(path("plain"), path("link")).unwrap();
    let text = format!(
        "[global]\nioengine=psync\nrw=write\nsize=64k\ndirectory={}\n[a]\nfilename=first\n[b]\nstonewall\nfilename=link\n\
         [c]\nstonewall\nfilename=late\n",
        place.path().display()
    );
    let (mut prepared, stages) = prepare_own(&text).unwrap();
    assert_eq!(outcome(&mut *prepared, &stages[0]).tallies[0].bytes, 64 << 10);
    fs::remove_file(path("link")).unwrap();
    symlink(path("foreign"), path("link")).unwrap();
    let moved = open(&mut *prepared, &stages[1]).map(drop).unwrap_err();
    assert!(moved.contains("link is no longer what Tidemark examined"), "{moved}");
    fs::write(path("late"), "a note").unwrap();
    let made = open(&mut *prepared, &stages[2]).map(drop).unwrap_err();
    assert!(made.contains("somebody has made it since"), "{made}");
    assert_eq!(fs::read(path("foreign")).unwrap(), vec![b'x'; 64 << 10]);
    assert_eq!(fs::read(path("late")).unwrap(), b"a note");
}

#[test]
#[ignore = "needs fio"]
fn a_link_that_is_moved_while_fio_waits_leads_nowhere() {
    tidemark_testing::needs!(&["fio"]);
    let top = directory();
    let path = |name: &str| top.path().join(name);
    for name in ["in", "out"] {
        fs::create_dir(path(name)).unwrap();
    }
    for name in ["in/own", "out/secret"] {
        fs::write(path(name), vec![b'x'; 64 << 10]).unwrap();
    }
    let text = format!("[b]\nioengine=psync\nrw=write\nsize=64k\nfilename={}\n", path("in/own").display());
    let policy = Policy { directories: vec![path("in")], ..Policy::default() };
    let (mut prepared, stages) = prepare(&text, &[], Access::within(policy)).unwrap();
    let carriers = open(&mut *prepared, &stages[0]).unwrap();
    fs::remove_file(path("in/own")).unwrap();
    symlink(path("out/secret"), path("in/own")).unwrap();
    let error = carry_out(&carriers, &stages[0]).0.remove(0).map(drop).unwrap_err().to_string();
    assert!(error.contains("in/own"), "{error}");
    assert_eq!(fs::read(path("out/secret")).unwrap(), vec![b'x'; 64 << 10]);
}

#[test]
#[ignore = "needs fio"]
fn logs_are_new_files() {
    tidemark_testing::needs!(&["fio"]);
    let place = directory();
    let at = place.path().display();
    let path = |name: &str| place.path().join(name);
    let text = format!(
        "[j]\nioengine=null\nsize=1m\nrw=read\nnumjobs=2\nwrite_bw_log={at}/x\nwrite_lat_log={at}/x\ndisable_slat=1\n"
    );
    let log = path("x_bw.2.log");
    fs::write(&log, "a thesis").unwrap();
    let refused_by_guard = refusal(&text);
    assert!(
        refused_by_guard.contains("overwrite") && refused_by_guard.contains("x_bw.2.log"),
        "{refused_by_guard}"
    );
    let works = stages(&text);
    let refused_at_start = refused(run(&fio(), &[&works[0].works[0]], &mut [&mut Seen::default()]));
    assert!(refused_at_start.contains("x_bw.2.log"), "{refused_at_start}");
    assert_eq!(fs::read(&log).unwrap(), b"a thesis");
    fs::remove_file(&log).unwrap();
    let (mut prepared, stages) = prepare_own(&text).unwrap();
    let outcome = outcome(&mut *prepared, &stages[0]);
    assert_eq!(outcome.given_up, "");
    let mut names: Vec<String> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["x_bw.1.log", "x_bw.2.log", "x_clat.1.log", "x_clat.2.log", "x_lat.1.log", "x_lat.2.log"]
    );
    // A log is no reason to write to anything else beside it.
    let shared =
        format!("[global]\nioengine=null\nsize=1m\nrw=read\nwrite_bw_log={at}/y\n[a]\n[b]\nstonewall\n");
    let twice = refusal(&shared);
    assert!(twice.contains("would both write the log") && twice.contains("y_bw.1.log"), "{twice}");
}

#[test]
#[ignore = "needs fio"]
fn a_log_that_cannot_be_written_is_missed() {
    tidemark_testing::needs!(&["fio"]);
    let place = directory();
    let text =
        format!("[j]\nioengine=null\nsize=1m\nrw=read\nwrite_bw_log={}/nowhere/x\n", place.path().display());
    let (mut prepared, stages) = prepare_own(&text).unwrap();
    let outcome = outcome(&mut *prepared, &stages[0]);
    assert!(
        outcome.remarks.iter().any(|remark| remark.contains("nowhere/x_bw.1.log")),
        "{:?}",
        outcome.remarks
    );
}

/// Makes a node of a device in a directory.
fn node(path: &Path, major: u32, minor: u32) -> bool {
    let status = Command::new("mknod").arg(path).args(["b", &major.to_string(), &minor.to_string()]).status();
    status.is_ok_and(|status| status.success())
}

#[test]
#[ignore = "needs fio and root"]
fn files_are_made_only_where_nothing_else_is_in_danger() {
    tidemark_testing::needs!(&["fio", "losetup"]);
    let place = directory();
    let Some(disk) = Disk::new(place.path()) else {
        return tidemark_testing::skip("no loop device can be made (root is needed)");
    };
    let text =
        |at: &Path| format!("[j]\nioengine=psync\nrw=write\nsize=64k\nfilename={}/new\n", at.display());
    let beside = refusal(&text(place.path()));
    assert!(beside.contains("behind") && beside.contains("a directory of their own"), "{beside}");
    assert!(disk.is_whole());
    let (own, below) = (place.path().join("own"), place.path().join("own/below"));
    fs::create_dir_all(&below).unwrap();
    assert!(prepare_own(&text(&own)).is_ok());
    let number: u32 = disk.0.display().to_string().trim_start_matches("/dev/loop").parse().unwrap();
    if !node(&below.join("x"), 7, number) {
        return tidemark_testing::skip("no node of a device can be made");
    }
    let refused = refusal(&text(&own));
    assert!(refused.contains("below/x is a device"), "{refused}");
}

#[test]
#[ignore = "needs fio and root"]
fn a_device_stays_what_was_examined_for_the_whole_run() {
    tidemark_testing::needs!(&["fio", "losetup"]);
    let place = directory();
    let Some(disk) = Disk::new(place.path()) else {
        return tidemark_testing::skip("no loop device can be made (root is needed)");
    };
    let text = format!(
        "[global]\nioengine=psync\nrw=write\nsize=64k\nfilename={0}\n[a]\n[b]\nstonewall\n",
        disk.0.display()
    );
    let (mut prepared, stages) = prepare(&text, std::slice::from_ref(&disk.0), Access::own()).unwrap();
    outcome(&mut *prepared, &stages[0]);
    let losetup =
        |arguments: &[&Path]| Command::new("losetup").args(arguments).output().unwrap().status.success();
    losetup(&[Path::new("--detach"), &disk.0]);
    let other = place.path().join("other");
    fs::write(&other, vec![7; 1 << 20]).unwrap();
    assert!(!losetup(&[&disk.0, &other]), "another file is attached to the same device");
    let outcome = outcome(&mut *prepared, &stages[1]);
    assert_eq!(outcome.tallies[0].bytes, 64 << 10, "the run goes on with what was examined");
    assert_eq!(fs::read(&other).unwrap(), vec![7; 1 << 20]);
}
