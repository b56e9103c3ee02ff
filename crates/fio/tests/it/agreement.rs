//! Job files of a grammar: what fio would open, its reader has seen, or refuses.

use super::{directory, fio};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_fio::{FioFile, JobFiles};
use tidemark_measure::rng::Rng;
use tidemark_plan::document;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::Environment;

/// How many job files are tried, if this variable is set; otherwise few, as each start of fio calibrates a clock for 60 ms.
const VARIABLE: &str = "TIDEMARK_JOB_FILES";
const FEW: u64 = 200;

const SECTIONS: &[&str] = &[
    "jobN",
    "jobN",
    "jobN",
    "jobN",
    "job N",
    "jobN.x",
    "PLACE/nameN",
    "/dev/null",
    "jobN:x",
    "$jobname",
    "j\u{e9}N",
    " jobN",
    "jobN ",
    "glob",
    "globalN",
    "GLOBAL",
    "same",
    "-N",
    "jobN]",
    "[jobN",
    "jobN=x",
    "jobN\\",
];

const FILES: &[&str] = &[
    "PLACE/fN",
    "PLACE/fN",
    "PLACE/fN",
    "fN",
    "fN",
    "PLACE/fN:PLACE/gN",
    "fN:gN",
    "fN\\:x",
    "fN\\\\:x",
    "fN\\",
    "",
    ":",
    ":fN",
    "fN:",
    "fN::gN",
    "fN gN",
    "\"fN\"",
    "'fN'",
    "PLACE//fN",
    "PLACE/./fN",
    "./fN",
    "../fN",
    "fN/",
    "/dev/null",
    "/dev/zero:fN",
    "-",
    "=fN",
    "fN=x",
    "f\u{e9}N",
    "$jobname",
    "PLACE/$jobnum",
    "f$fileN",
    "f\tN",
    "${HOME}/fN",
];

const DIRECTORIES: &[&str] = &[
    "PLACE/a",
    "PLACE/a",
    "PLACE/a/",
    "PLACE/a:PLACE/b",
    "PLACE//b",
    "PLACE/c d",
    "PLACE/e\\:f",
    "",
    "PLACE/none",
    "/",
    "a:b",
    ":PLACE/a",
];

const ENGINES: &[&str] = &[
    "psync",
    "sync",
    "libaio",
    "io_uring",
    "mmap",
    "null",
    "psync:x",
    "aio",
    "posixaio",
    "filecreate",
    "cpuio",
    "net",
    "falloc",
    "ftruncate",
    "splice",
];

/// Options without an effect on names.
const OTHERS: &[&str] = &[
    "rw=read",
    "rw=write",
    "rw=randrw:4",
    "readwrite=randread",
    "rw=trim",
    "size=64k",
    "size=1m",
    "bs=4k",
    "bs=4k,8k",
    "filesize=4k",
    "nrfiles=2",
    "nr_files=3",
    "nrfiles=1",
    "openfiles=1",
    "numjobs=2",
    "numjobs=3",
    "unique_filename=0",
    "stonewall",
    "new_group",
    "group_reporting",
    "thread",
    "direct=1",
    "name=nameN",
    "name=PLACE/nameN",
    "filename_format=$jobname.$filenum",
    "filename_format=PLACE/x$jobnum",
    "file_service_type=sequential",
    "create_on_open=1",
    "loops=2",
    "offset=4k",
    "description=fN",
    "unlink=1",
    "opendir=PLACE/a",
];

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.below(from.len() as u64) as usize]
}

/// A line that sets an option, in one of the ways in which that can be written.
fn setting(rng: &mut Rng, name: &str, value: &str) -> String {
    match rng.below(16) {
        0 => format!("{name} = {value}"),
        1 => format!("  {name}={value}\t"),
        2 => format!("{name}={value} ; note"),
        3 => format!("{name}={value}# note"),
        4 => format!("{name}\t=\t{value}"),
        5 => format!("{name}={value}\r"),
        6 => format!("{name}={value}:"),
        _ => format!("{name}={value}"),
    }
}

fn options(rng: &mut Rng, text: &mut String) {
    for _ in 0..rng.below(6) {
        let line = match rng.below(12) {
            0..=3 => {
                let value = pick(rng, FILES);
                setting(rng, "filename", value)
            }
            4 | 5 => {
                let value = pick(rng, DIRECTORIES);
                setting(rng, "directory", value)
            }
            6 => {
                let value = pick(rng, ENGINES);
                setting(rng, "ioengine", value)
            }
            7 if rng.below(8) == 0 => [
                "filename",
                "; filename=PLACE/hN",
                "#filename=PLACE/hN",
                "FILENAME=PLACE/hN",
                "filename:PLACE/hN",
            ][rng.below(5) as usize]
                .to_owned(),
            _ => pick(rng, OTHERS).to_owned(),
        };
        text.push_str(&line);
        text.push('\n');
    }
}

/// A job file, always the same for its number. `place` is a directory with some in it.
fn job_file(number: u64, place: &Path) -> String {
    let mut rng = Rng::new(number, &[]);
    let mut text = String::new();
    for _ in 0..=rng.below(4) {
        let name = if rng.below(4) == 0 { "global" } else { pick(&mut rng, SECTIONS) };
        let _ = writeln!(text, "[{name}]");
        options(&mut rng, &mut text);
    }
    // Each name is another one, or one job's would stand for the other's.
    let mut count = 0;
    let mut whole = String::new();
    for part in text.split_inclusive('N') {
        match part.strip_suffix('N') {
            Some(part) => {
                count += 1;
                let _ = write!(whole, "{part}{count}");
            }
            None => whole.push_str(part),
        }
    }
    whole.replace("PLACE", place.to_str().unwrap())
}

/// What a reader has seen of a job file; `None`: it is refused.
fn seen(text: &str) -> Option<Vec<PathBuf>> {
    let registry = Registry::new(vec![], vec![Arc::new(JobFiles)]);
    let stages = document::read(text, &Environment::process(&registry)).ok()?.plan.stages;
    let works = stages.iter().flat_map(|stage| &stage.works);
    let files = works.map(|work| work.job.get::<FioFile>().unwrap());
    Some(files.flat_map(|file| file.paths().chain(&file.elsewhere).cloned()).collect())
}

#[test]
#[ignore = "needs fio"]
fn fio_opens_nothing_that_the_reader_has_not_seen() {
    tidemark_testing::needs!(&["fio"]);
    let place = directory();
    for name in ["a", "b", "c d", "e:f"] {
        std::fs::create_dir(place.path().join(name)).unwrap();
    }
    let count = std::env::var(VARIABLE).map_or(FEW, |count| count.parse().unwrap());
    let program = fio();
    let (mut refused, mut refused_by_fio, mut names, mut unseen) = (0, 0, 0, Vec::new());
    for number in 0..count {
        let text = job_file(number, place.path());
        let Some(known) = seen(&text) else {
            refused += 1;
            continue;
        };
        let Ok(named) = program.parse(&text) else {
            refused_by_fio += 1;
            continue;
        };
        names += named.len();
        if let Some(path) = named.iter().find(|path| !known.contains(path)) {
            println!("{number}: fio opens {path:?}, the reader has seen {known:?}, in\n{text}");
            unseen.push(number);
        }
    }
    println!(
        "{count} job files: {refused} refused, {refused_by_fio} refused by fio, {names} names in the others"
    );
    assert!(
        unseen.is_empty(),
        "the reader has not seen what fio opens of {} job files: {unseen:?}",
        unseen.len()
    );
    assert!(refused + refused_by_fio < count * 4 / 5 && names as u64 > count / 4, "too few of them are read");
}
