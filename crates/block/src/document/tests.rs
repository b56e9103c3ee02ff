//! Documents on block storage, and what is wrong with them.

mod per_driver;

use crate::job::{Action, Cache, Content, FILL_BYTES, IoEngine, Job, Place, Rbd, Volume};
use crate::{Blocks, External, Image, OsdCounters, Program};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_load::engine::{OpenError, Session, Sessions, ThreadContext};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Follow, Order, Size, SourcePlan};
use tidemark_load::stopping::Steady;
use tidemark_load::work::Finale;
use tidemark_measure::axis::Axis;
use tidemark_measure::pick::{Bucket, Pick};
use tidemark_measure::rng::Rng;
use tidemark_measure::think::Think;
use tidemark_plan::cross_check;
use tidemark_plan::diagnostic::{Diagnostic, Severity};
use tidemark_plan::forecast::forecast;
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::{self, Environment};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

/// A document that uses every key of block storage.
const FULL: &str = include_str!("block.yaml");

/// No external program: documents are read without it.
struct Nobody;

impl External for Nobody {
    fn find(&self) -> Result<Program, String> {
        Err("there is none".into())
    }

    fn ensure_image(&self, _image: &Volume) -> Result<(), String> {
        Err("there is none".into())
    }

    fn find_image(&self, _image: &Volume) -> Result<Image, String> {
        Err("nobody is here".into())
    }

    fn mark_image(&self, _image: &Volume) -> Result<(), String> {
        Err("nobody is here".into())
    }

    fn osd_counters(&self, _images: &[Volume]) -> Result<OsdCounters, String> {
        Err("nobody is here".into())
    }

    fn removal(&self, _images: &[Volume], _allow: &[PathBuf]) -> Box<dyn Sessions> {
        Box::new(Nobody)
    }
}

impl Sessions for Nobody {
    fn open(&self, _thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        Err(OpenError("there is none".into()))
    }
}

pub(crate) fn registry() -> Registry {
    Registry::new(vec![Arc::new(Blocks::new(Arc::new(Nobody)))], vec![])
}

fn outcome(text: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let variable = |name: &str| match name {
        "S3_ACCESS_KEY" => Some("AKIA".to_owned()),
        "TIDEMARK_FILE" | "TIDEMARK_LAB_CEPH_CONF" => Some("/data/example".to_owned()),
        _ => None,
    };
    let device_size = |path: &Path| match path.to_str() {
        Some("/dev/one") => Ok((1 << 30) + 512),
        Some("/dev/two") => Ok(2 << 30),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    let registry = registry();
    let environment =
        Environment { variable: &variable, device_size: &device_size, ..Environment::process(&registry) };
    yaml::read(text, &environment)
}

pub(crate) fn plan(text: &str) -> Plan {
    let (plan, warnings) = outcome(text).unwrap();
    assert_eq!(warnings, []);
    plan
}

/// All remarks as `line:column severity message | help`.
fn remarks(text: &str) -> Vec<String> {
    let remarks = match outcome(text) {
        Ok((_, warnings)) => warnings,
        Err(errors) => errors,
    };
    let print = |remark: &Diagnostic| {
        let (line, column) = remark.line_and_column(text);
        let severity = if remark.severity == Severity::Error { "error" } else { "warning" };
        format!("{line}:{column} {severity} {} | {}", remark.message, remark.help)
    };
    remarks.iter().map(print).collect()
}

/// A document with a stage on a file of 1 GiB; `volumes` are more keys of the target.
pub(crate) fn on_files(volumes: &str, stages: &str) -> String {
    format!("name: t\ntarget: {{kind: file, path: /d/f, size: 1GiB{volumes}}}\nstages:\n{stages}\n")
}

/// A document with a load.
pub(crate) fn with_load(volumes: &str, load: &str) -> String {
    on_files(volumes, &format!("- load: {{{load}}}"))
}

pub(crate) fn job(work: &Work) -> &Job {
    work.job.get().unwrap()
}

fn file(path: &str, size: u64) -> Volume {
    Volume { place: Place::File(path.into()), size }
}

fn choices(work: &Work) -> &[Choice] {
    let SourcePlan::Mix { choices, pool: None, deck: false } = &work.load.source else { panic!() };
    choices
}

fn first(text: &str) -> Work {
    plan(text).stages[0].works[0].clone()
}

pub(crate) fn names(plan: &Plan) -> Vec<&str> {
    plan.stages.iter().map(|stage| stage.name.as_str()).collect()
}

#[test]
fn the_full_document_gives_what_it_says() {
    let plan = plan(FULL);
    let kinds: Vec<_> = plan.stages.iter().map(|stage| stage.works[0].kind.name()).collect();
    assert_eq!(kinds, ["prepare", "prepare", "normal", "normal", "normal", "normal", "prepare", "cleanup"]);
    let volumes = [file("/data/t-1", GIB), file("/data/t-2", GIB)];

    let prepare = &plan.stages[0].works[0];
    let size = Size { pick: Pick::Constant(FILL_BYTES), unit: 1 };
    let scan = SourcePlan::Scan { action: 0, spaces: Some((1, 2)), items: Some((0, 1023)), bytes: size };
    assert_eq!(prepare.load.source, scan);
    assert_eq!((prepare.load.workers, prepare.load.depth), (4, 16));
    assert_eq!(prepare.load.finale, Some(Finale { action: 1, spaces: (1, 2) }));
    let content = Content { compressible: 0.3, duplicate: 0.1, verify: true };
    let expected = Job {
        volumes: volumes.to_vec(),
        per_driver: false,
        unit: FILL_BYTES,
        io_engine: IoEngine::Native,
        direct: true,
        polled: false,
        batch: None,
        cache: Cache::Cold,
        content,
        journal: None,
        reuse: false,
        actions: vec![Action::Write, Action::Fsync],
    };
    assert_eq!(*job(prepare), expected);

    let settle = &plan.stages[1].works[0];
    assert_eq!(settle.load.stop.bytes, Some(2 * 3 * GIB));
    assert_eq!((settle.load.workers, settle.load.depth, job(settle).unit), (2, 64, 8 * KIB));
    assert_eq!((settle.load.stop.give_up_ns, job(settle).reuse), (Some(60 * SECOND), false));

    let load = &plan.stages[2].works[0];
    assert_eq!(plan.stages[2].cell.as_ref().unwrap().sweep, "mixed");
    assert_eq!(job(load).actions, [Action::Read, Action::Write, Action::Fdatasync, Action::Fsync]);
    assert_eq!((job(load).batch, job(load).cache, job(load).polled), (Some(4), Cache::Warm, true));
    assert_eq!((load.load.workers, load.load.depth, load.allowed_failures_per_million), (2, 32, 10_000));
    assert_eq!(load.load.finale, Some(Finale { action: 3, spaces: (1, 2) }));
    let stop = load.load.stop;
    assert_eq!(stop.steady, Some(Steady { round_ns: 60 * SECOND, most_rounds: 30 }));
    assert_eq!((stop.window_ns, stop.warm_up_ns, stop.ramp_up_ns), (Some(60 * SECOND), 5 * SECOND, SECOND));
    assert_eq!(
        (stop.ramp_down_ns, stop.drain_ns, stop.give_up_ns),
        (2 * SECOND, 9 * SECOND, Some(7 * SECOND))
    );
    assert_eq!(load.load.pacing, Pacing::Closed { think: Think::Constant { ns: 1_000_000 } });
    let follows: Vec<_> = choices(load).iter().map(|choice| choice.follow).collect();
    assert_eq!(follows, [None, Some(Follow { action: 2, every: 32 })]);
    let zipf = Pick::Zipf { low: 0, high: GIB / (4 * KIB) - 1, exponent: 1.1 };
    assert_eq!((choices(load)[0].items.clone(), choices(load)[0].weight), (zipf, 70.0));
    let label = &load.labels[1];
    let config = "pattern=randrw;reads=70.00 %;block_size=4 KiB;distribution=zipf(1.1);depth=32;clients=2;fdatasync=32;\
                  verify=true";
    assert_eq!((label.label.as_str(), label.kind.as_str(), label.class.name()), ("write", "write", "write"));
    assert_eq!((label.weight.round(), label.config.as_str()), (30.0, config));
    assert_eq!(load.labels[3].weight, 0.0, "a sync has no share of the mix");

    let image = |number: u64| {
        let (user, pool, image) = ("bench".into(), "fast".into(), format!("vol-{number}"));
        let conf = Some("/etc/ceph/AKIA.conf".into());
        Volume { place: Place::Rbd(Rbd { conf, user, pool, image }), size: 64 * MIB }
    };
    let remote = job(&plan.stages[6].works[0]);
    assert_eq!((remote.volumes.clone(), remote.io_engine), (vec![image(1), image(2)], IoEngine::Fio));
    let cleanup = &plan.stages[7].works[0];
    let size = Size { pick: Pick::Constant(0), unit: 1 };
    let scan = SourcePlan::Scan { action: 0, spaces: Some((1, 2)), items: None, bytes: size };
    assert_eq!((cleanup.load.source.clone(), job(cleanup).actions.clone()), (scan, vec![Action::Remove]));
}

#[test]
fn what_is_not_given_has_a_default() {
    let work = first(&with_load(", count: 4", "pattern: randread, block_size: 4KiB, for: 60s"));
    assert_eq!((work.load.workers, work.load.depth, work.name.as_str()), (4, 1, "load"));
    assert_eq!((work.load.finale, work.allowed_failures_per_million), (None, 0));
    assert_eq!((work.load.stop.steady, work.load.stop.give_up_ns), (None, None));
    let paths: Vec<_> = job(&work).volumes.iter().map(Volume::name).collect();
    assert_eq!(paths, ["/d/f-1", "/d/f-2", "/d/f-3", "/d/f-4"]);
    let job = job(&work);
    assert_eq!(
        (job.io_engine, job.direct, job.batch, job.cache),
        (IoEngine::Native, true, None, Cache::Cold)
    );
    assert_eq!(job.content, Content::default());

    let write = first(&with_load("", "pattern: write, block_size: 1MiB, for: 1s"));
    assert_eq!(write.load.finale, Some(Finale { action: 1, spaces: (1, 1) }), "writes are synced at the end");
    let unsynced = first(&with_load("", "pattern: write, block_size: 1MiB, for: 1s, end_sync: false"));
    assert_eq!((unsynced.load.finale, unsynced.load.actions), (None, 1));

    let prepare = first(&on_files(", count: 20", "- prepare: {}"));
    assert_eq!((prepare.load.workers, prepare.load.depth), (8, 8));
    assert!(self::job(&prepare).reuse);
    let settle = first(&on_files("", "- precondition: {}"));
    assert_eq!((settle.load.stop.bytes, settle.load.depth), (Some(2 * GIB), 32));
    assert_eq!(choices(&settle)[0].order, Order::Picked, "at random");
}

#[test]
fn clients_have_volumes_of_their_own_or_share_the_only_one() {
    let load = |volumes: &str, pattern: &str, clients: u32| {
        first(&with_load(
            volumes,
            &format!("pattern: {pattern}, block_size: 4KiB, clients: {clients}, for: 1s"),
        ))
    };
    let division = |work: &Work| (choices(work)[0].division, choices(work)[0].spaces.clone());
    let low = |high| Pick::Sequence { low: 1, high };
    assert_eq!(division(&load(", count: 4", "read", 3)), (Division::Spaces, low(3)));
    assert_eq!(job(&load(", count: 4", "read", 3)).volumes.len(), 3, "only those that are used");
    assert_eq!(division(&load("", "read", 3)), (Division::Items, low(1)));
    assert_eq!(division(&load("", "randread", 3)), (Division::None, low(1)));
    assert_eq!(choices(&load("", "read", 3))[0].order, Order::Consecutive { unit: 4 * KIB });
}

#[test]
fn a_split_of_sizes_has_the_unit_that_divides_all() {
    let split = "block_size: {4KiB: 60%, 64KiB: 30, 1536: 10}";
    let work = first(&with_load("", &format!("pattern: write, {split}, for: 1s")));
    assert_eq!(job(&work).unit, 512);
    let bucket = |blocks, weight| Bucket { low: blocks, high: blocks, weight };
    let pick = Pick::Weighted(vec![bucket(8, 60), bucket(128, 30), bucket(3, 10)]);
    assert_eq!(choices(&work)[0].bytes, Size { pick, unit: 512 });
    assert!(work.labels[0].config.contains("block_size=4 KiB:60 64 KiB:30 1536 B:10"), "{:?}", work.labels);
    let random = first(&with_load("", &format!("pattern: randwrite, {split}, for: 1s")));
    let each: Vec<_> = choices(&random).iter().map(|choice| (choice.action, choice.weight.round())).collect();
    assert_eq!(each, [(0, 60.0), (0, 30.0), (0, 10.0)]);
}

#[test]
fn a_list_is_an_axis_and_repeats_come_last() {
    let text = with_load(
        ", count: 8",
        "pattern: [write, read], block_size: [4KiB, 1MiB], depth: [1, 32], clients: [1, 8], for: 9s, repeats: 2",
    );
    let plan = plan(&text);
    assert_eq!(plan.stages.len(), 32);
    let names = names(&plan);
    assert_eq!(
        names[..5],
        [
            "write 4KiB depth 1 1 client #1",
            "write 4KiB depth 1 8 clients #1",
            "write 4KiB depth 32 1 client #1",
            "write 4KiB depth 32 8 clients #1",
            "write 1MiB depth 1 1 client #1"
        ]
    );
    assert_eq!((names[8], names[16]), ("read 4KiB depth 1 1 client #1", "write 4KiB depth 1 1 client #2"));
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    let cell = plan.stages[27].cell.clone().unwrap();
    let axes = [
        Axis::word("pattern", "read"),
        Axis::bytes("block_size", 4096),
        Axis::count("depth", 32),
        Axis::count("clients", 8),
    ];
    assert_eq!(cell.axes, axes);
    let found = (cell.sweep.as_str(), cell.repeat, cell.repeats, cell.engine.as_str());
    assert_eq!(found, ("load", 2, 2, "native"));
    for (index, stage) in plan.stages.iter().enumerate() {
        assert_eq!(stage.works[0].load.stream, [index as u64, 0]);
    }
    let work = &plan.stages[27].works[0];
    assert_eq!((work.load.workers, work.load.depth, job(work).unit), (8, 32, 4 * KIB));
    assert_eq!(work.load.finale, None, "only points that write are synced");
}

#[test]
fn sweeps_are_told_apart_and_what_follows_keeps_its_own_random_streams() {
    let load = "load: {pattern: read, block_size: 4KiB, for: 9s, repeats: 2}";
    let text = on_files("", &format!("- {load}\n- {load}\n- {{name: third, {load}}}\n- cleanup: {{}}"));
    let plan = plan(&text);
    assert_eq!(
        names(&plan),
        [
            "read 4KiB #1",
            "read 4KiB #2",
            "load-2: read 4KiB #1",
            "load-2: read 4KiB #2",
            "third: read 4KiB #1",
            "third: read 4KiB #2",
            "cleanup"
        ]
    );
    assert_eq!(plan.stages[6].works[0].load.stream, [6, 0]);
    assert_eq!(plan.stages[0].cell.as_ref().unwrap().axes, [], "repeats alone have no axis");
    assert_eq!(plan.stages[6].cell, None);
}

#[test]
fn profiles_are_what_the_reference_says() {
    let of = |pattern: &str| plan(&with_load("", &format!("pattern: {pattern}, for: 9s")));
    let mix = |pattern: &str| {
        let plan = of(pattern);
        let work = plan.stages[0].works[0].clone();
        let each = |choice: &Choice| {
            let action = job(&work).actions[usize::from(choice.action)];
            (action.name(), choice.order == Order::Picked, choice.weight.round() as u64)
        };
        choices(&work).iter().map(each).collect::<Vec<_>>()
    };
    let (sequential, random) = (false, true);
    assert_eq!(
        mix("oltp"),
        [("read", sequential, 5), ("read", random, 20), ("write", sequential, 15), ("write", random, 60)]
    );
    assert_eq!(mix("olap"), [("read", sequential, 100)]);
    assert_eq!(mix("video"), [("write", sequential, 100)]);
    assert_eq!(mix("vdi"), [("read", random, 50), ("write", random, 50)]);
    let iot: u64 = mix("iot").iter().filter(|one| one.0 == "write" && !one.1).map(|one| one.2).sum();
    assert_eq!(iot, 81);
    assert_eq!(mix("oltp, reads: 100%, random: 0"), [("read", sequential, 100)]);
    let notes = of("oltp").notes;
    assert_eq!((notes.len(), notes[0].topic.as_str()), (1, "profile"));
    assert!(notes[0].text.ends_with("judge it by response time"), "{notes:?}");
    assert_eq!(of("rw, block_size: 4KiB").notes, []);
    assert_eq!(job(&of("oltp").stages[0].works[0]).unit, 8 * KIB);
    assert_eq!(job(&of("oltp, block_size: 16KiB").stages[0].works[0]).unit, 16 * KIB);
}

#[test]
fn qct_is_four_patterns_with_sizes_of_their_own() {
    let plan = plan(&with_load(", count: 2", "pattern: qct, clients: [1, 2], for: 9s"));
    assert_eq!(
        names(&plan),
        [
            "read 128KiB 1 client",
            "read 128KiB 2 clients",
            "write 128KiB 1 client",
            "write 128KiB 2 clients",
            "randread 4KiB 1 client",
            "randread 4KiB 2 clients",
            "randwrite 4KiB 1 client",
            "randwrite 4KiB 2 clients"
        ]
    );
    assert_eq!(plan.stages[2].cell.as_ref().unwrap().axes[0], Axis::word("pattern", "write 128 KiB"));
    assert_eq!(job(&plan.stages[7].works[0]).unit, 4 * KIB);
}

#[test]
fn devices_are_asked_for_their_size() {
    let on = |settings: &str| {
        format!("name: t\ntarget: {{kind: device, {settings}}}\nstages: [{{prepare: {{}}}}]")
    };
    let volumes = |settings: &str| job(&first(&on(settings))).volumes.clone();
    let device = |path: &str, size| Volume { place: Place::Device(path.into()), size };
    assert_eq!(volumes("path: /dev/one"), [device("/dev/one", GIB)], "whole blocks of 4 KiB");
    assert_eq!(volumes("path: /dev/gone, size: 8MiB"), [device("/dev/gone", 8 * MIB)]);
    let two = remarks(&on("paths: [/dev/one, /dev/two]")).join("\n");
    assert!(two.contains("2:1 warning the devices differ in size"), "{two}");
    let (plan, _) = outcome(&on("paths: [/dev/one, /dev/two]")).unwrap();
    let both = [device("/dev/one", GIB), device("/dev/two", GIB)];
    assert_eq!(job(&plan.stages[0].works[0]).volumes, both);
    let gone = remarks(&on("path: /dev/gone")).join("\n");
    assert!(gone.contains("2:1 error /dev/gone does not exist"), "{gone}");
    assert!(!gone.contains("`size`"), "no size makes it appear: {gone}");
}

#[test]
fn targets_are_checked() {
    let on = |target: &str| remarks(&format!("name: t\ntarget: {target}\nstages: [{{prepare: {{}}}}]"));
    for (target, expected) in [
        ("file", "2:9 error `target`: the target 'file' needs settings"),
        ("{kind: fiel}", "2:16 error `kind`: 'fiel' is unknown | did you mean file?"),
        ("{kind: file, size: 1GiB}", "2:1 error `target` has no `path`"),
        ("{kind: file, path: /d/f}", "2:1 error `target` has no `size`"),
        (
            "{kind: file, path: /d/f, size: 1GB}",
            "2:40 error `size`: '1GB' is not a multiple of 4 KiB | direct I/O",
        ),
        ("{kind: file, path: /d/f, size: 1KiB}", "2:40 error `size`: '1KiB' is less than 4 KiB"),
        (
            "{kind: file, path: /d/f, size: 9000000TiB}",
            "2:40 error `size`: '9000000TiB' is larger than any device",
        ),
        (
            "{kind: file, path: /dev/sdb, size: 1GiB}",
            "2:28 error `path`: /dev/sdb is below /dev | write `kind: device`",
        ),
        ("{kind: file, path: /d/, size: 1GiB}", "2:28 error `path`: /d/ is a directory"),
        (
            "{kind: file, path: '${NOWHERE}/f', size: 1GiB}",
            "2:28 error `path`: the environment variable NOWHERE is not set",
        ),
        (
            "{kind: file, path: /d/f, paths: [/d/g], size: 1GiB}",
            "2:34 error `path` and `paths` exclude each other",
        ),
        ("{kind: file, paths: [/d/f, /d/f], size: 1GiB}", "2:36 error /d/f is listed twice"),
        ("{kind: file, paths: [/d/f], count: 2, size: 1GiB}", "2:37 error `count` does not apply here"),
        ("{kind: file, path: /d/f, count: 1001, size: 1GiB}", "2:41 error `count`: 1001 is out of range"),
        ("{kind: file, path: /d/f, size: 1GiB, engine: fi}", "2:54 error `engine`: 'fi' is unknown"),
        (
            "{kind: file, path: /d/f, size: 1GiB, direct: false, polled: true}",
            "2:61 error `polled` requires direct I/O",
        ),
        ("{kind: device, path: sdb, size: 1GiB}", "2:30 error `path`: sdb is not a device"),
        (
            "{kind: device, path: /dev/one, count: 2}",
            "2:40 error `count` does not apply here: write each device",
        ),
        ("{kind: rbd, size: 1GiB, engine: native}", "2:41 error only fio reaches RBD images, through librbd"),
        ("{kind: rbd, size: 1GiB, direct: true}", "2:33 error `direct` does not apply here"),
        ("{kind: rbd, size: 1GiB, path: /d/f}", "2:33 error `path` does not apply here"),
        (
            "{kind: rbd, size: 1GiB, pol: x}",
            "2:33 error `pol` is not a key of `target` | did you mean `pool`?",
        ),
    ] {
        let found = on(target);
        assert!(found.iter().any(|remark| remark.contains(expected)), "{target}: {expected}\n{found:#?}");
    }
}

#[test]
fn loads_are_checked() {
    let at = "pattern: randwrite, block_size: 4KiB, for: 1s";
    for (volumes, load, expected) in [
        ("", "for: 1s", "4:3 error `load` has no `pattern`"),
        ("", "pattern: read, for: 1s", "4:3 error `load` has no `block_size`"),
        ("", "pattern: read, block_size: 4KiB", "4:3 error `load` has no `for`"),
        (
            "",
            "pattern: reed, block_size: 4KiB, for: 1s",
            "4:19 error `pattern`: 'reed' is unknown | did you mean read?",
        ),
        ("", "pattern: [read, reed], block_size: 4KiB, for: 1s", "4:26 error `pattern`: 'reed' is unknown"),
        ("", "pattern: [], block_size: 4KiB, for: 1s", "4:10 error the list of `pattern` has 0 values"),
        ("", "pattern: read, block_size: 4k, for: 1s", "4:37 error `block_size`: '4k' may mean KB (decimal)"),
        (
            "",
            "pattern: read, block_size: 1000, for: 1s",
            "4:37 error `block_size`: '1000' is not a multiple of 512 B | write 1024",
        ),
        ("", "pattern: read, block_size: 2GiB, for: 1s", "4:37 error `block_size`: '2GiB' is out of range"),
        (
            "",
            "pattern: read, block_size: {4KiB: many}, for: 1s",
            "4:44 error `block_size`: 'many' is not a whole number",
        ),
        (
            "",
            "pattern: read, block_size: {4KiB: 1, 4096: 2}, for: 1s",
            "4:47 error `block_size`: 4 KiB is listed twice",
        ),
        (
            "",
            "pattern: read, block_size: {x: 1}, for: 1s",
            "4:38 error `block_size`: 'x' is not a number of bytes",
        ),
        ("", "pattern: read, block_size: {}, for: 1s", "4:37 error the split of `block_size` has 0 sizes"),
        (
            "",
            "pattern: read, block_size: [4KiB, 4096], for: 1s",
            "4:44 error `block_size`: 4KiB is in the list twice",
        ),
        ("", "pattern: read, block_size: 4KiB, for: 1s, depth: 0", "4:59 error `depth`: 0 is out of range"),
        (
            "",
            "pattern: read, block_size: 4KiB, for: 1s, depth: [1, x]",
            "4:63 error `depth`: 'x' is not a whole number",
        ),
        (
            "",
            "pattern: read, block_size: 4KiB, for: 1s, reads: 50%",
            "4:52 error `reads` does not apply here",
        ),
        (
            "",
            "pattern: randrw, block_size: 4KiB, for: 1s, random: 50%",
            "4:54 error `random` does not apply here",
        ),
        (
            "",
            "pattern: read, block_size: 4KiB, for: 1s, distribution: zipf",
            "4:52 error `distribution` does not apply here: offsets are sequential",
        ),
        ("", &format!("{at}, distribution: zipf(0)"), "error `distribution`: 'zipf(0)' is unknown"),
        (
            "",
            "pattern: read, block_size: 4KiB, for: 1s, fsync: 1",
            "4:52 error `fsync` does not apply here: nothing is written",
        ),
        (
            "",
            "pattern: read, block_size: 4KiB, for: 1s, end_sync: true",
            "4:52 error `end_sync` does not apply here",
        ),
        ("", &format!("{at}, fsync: 1, fdatasync: 1"), "error `fsync` and `fdatasync` exclude each other"),
        (
            "",
            &format!("{at}, depth: 4, batch: 8"),
            "error a batch of 8 is more than the 4 operations in flight",
        ),
        (
            "",
            &format!("{at}, depth: 32768, clients: 32"),
            "4:57 error 32 clients with 32\u{202f}768 operations each are",
        ),
        ("", &format!("{at}, cache: hot"), "4:64 error `cache`: 'hot' is unknown"),
        (
            "",
            &format!("{at}, steady: 1500ms"),
            "4:65 error `steady`: '1500ms' is not a whole number of seconds",
        ),
        ("", &format!("{at}, steady: {{most: 25}}"), "4:57 error `steady` has no `round`"),
        ("", &format!("{at}, steady: {{round: 60s, most: 4}}"), "error `most`: 4 is out of range"),
        (
            "",
            &format!("{at}, workers: 4"),
            "4:57 error `workers` does not apply here: loads on volumes use `clients`",
        ),
        ("", &format!("{at}, objects: 1-4"), "4:57 error `objects` is not a key of `load`"),
        (
            ", count: 4",
            &format!("{at}, clients: 8"),
            "4:66 error 8 clients cannot share 4 volumes | use `count: 8` for one volume each",
        ),
        (", count: 4", &format!("{at}, clients: [4, 8]"), "4:70 error 8 clients cannot share 4 volumes"),
        (
            "",
            "pattern: write, block_size: 128MiB, for: 1s, clients: 9",
            "4:26 error a block of 128 MiB does not fit into a client's part of a volume",
        ),
        ("", &format!("{at}, content: {{fill: zero}}"), "error `fill` does not apply to block storage"),
        (
            ", engine: fio",
            &format!("{at}, content: {{verify: true}}"),
            "4:3 error `verify` requires the native engine",
        ),
        (
            "",
            &format!("{at}, repeats: 1000, depth: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]"),
            "4:3 error with the 11\u{202f}000 points of this load,",
        ),
    ] {
        let found = remarks(&with_load(volumes, load));
        assert!(found.iter().any(|remark| remark.contains(expected)), "{load}: {expected}\n{found:#?}");
    }
    assert!(outcome(&with_load("", "pattern: write, block_size: 64MiB, for: 1s, clients: 9")).is_ok());
    assert!(outcome(&with_load("", "pattern: read, block_size: 4KiB, for: 1s, end_sync: false")).is_ok());
}

#[test]
fn stages_are_checked() {
    for (stage, expected) in [
        (
            "- init: {}",
            "4:3 error `init` does not apply to block storage: there are no containers | use `prepare`",
        ),
        ("- dispose: {}", "4:3 error `dispose` does not apply to block storage"),
        ("- precondition: {pattern: randread}", "4:27 error `pattern`: 'randread' is unknown"),
        ("- precondition: {passes: 0}", "4:26 error `passes`: 0 is out of range"),
        ("- precondition: {block_size: 4GiB}", "4:30 error `block_size`: '4GiB' is out of range"),
        ("- prepare: {objects: 1-4}", "4:13 error `objects` is not a key of `prepare`"),
        (
            "- works: [{load: {pattern: [read, write], block_size: 4KiB, for: 1s}}]",
            "4:19 error `pattern` makes the load a sweep, which cannot run beside other works",
        ),
        (
            "- works: [{load: {pattern: read, block_size: 4KiB, for: 1s, repeats: 2}}]",
            "4:61 error `repeats` makes the load a sweep",
        ),
    ] {
        let found = remarks(&on_files("", stage));
        assert!(found.iter().any(|remark| remark.contains(expected)), "{stage}: {expected}\n{found:#?}");
    }
    let device = "name: t\ntarget: {kind: device, path: /dev/one}\nstages: [{cleanup: {}}]";
    assert!(remarks(device)[0].contains("3:11 error devices cannot be removed"), "{:?}", remarks(device));
}

#[test]
fn loads_run_side_by_side() {
    let load = |pattern: &str| format!("  - load: {{pattern: {pattern}, block_size: 4KiB, for: 9s}}\n");
    let plan = plan(&on_files(", count: 2", &format!("- works:\n{}{}", load("read"), load("write"))));
    let works = &plan.stages[0].works;
    assert_eq!((works.len(), plan.stages.len(), plan.stages[0].cell.clone()), (2, 1, None));
    assert_eq!((works[1].name.as_str(), works[1].load.stream), ("load-2", [0, 1]));
}

#[test]
fn a_short_text_cannot_ask_for_too_much() {
    let sweep = "- load: {pattern: read, block_size: 4KiB, for: 1s, repeats: 1000}\n";
    assert_eq!(plan(&on_files("", &sweep.repeat(10))).stages.len(), 10_000);
    let more = remarks(&on_files("", &sweep.repeat(11))).join("\n");
    assert!(more.contains("14:3 error with the 1\u{202f}000 points of this load,"), "{more}");
    let prepare = "- prepare: {}\n".repeat(1001);
    let many = remarks(&on_files(", count: 1000", &prepare)).join("\n");
    assert_eq!(many.matches("error all works of the document together take more than").count(), 1, "{many}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_documents_make_no_panic_and_point_inside(
        cut in 0usize..5000, length in 0usize..60, put in "[-:{}\\[\\]#&*!|>'\"%@`é\\n\\t a-z0-9.]{0,8}",
    ) {
        let floor = |at: usize| (0..=at.min(FULL.len())).rev().find(|at| FULL.is_char_boundary(*at)).unwrap();
        let (start, end) = (floor(cut % FULL.len()), floor(cut % FULL.len() + length));
        let text = format!("{}{put}{}", &FULL[..start], &FULL[end..]);
        let remarks = match outcome(&text) {
            Ok((plan, warnings)) => {
                forecast(&plan, &registry());
                let _ = cross_check(plan, &registry(), 2);
                warnings
            }
            Err(errors) => errors,
        };
        for remark in remarks {
            prop_assert!(text.get(remark.span.clone()).is_some(), "{:?}", remark);
        }
    }

    /// Any settings, sensible or not: they are refused, or give operations that stay within the volumes.
    #[test]
    fn operations_stay_within_volumes(
        pattern in prop::sample::select(vec![
            "read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randtrim", "oltp", "iot", "qct",
        ]),
        blocks in prop::sample::select(vec!["512", "4KiB", "12KiB", "1MiB", "{4KiB: 1, 7KiB: 9}", "[4KiB, 64KiB]"]),
        clients in 1u32..40, count in 1u32..40, size in 1u64..3000, seed in 0u64..1000,
    ) {
        let text = format!(
            "name: t\nseed: {seed}\ntarget: {{kind: file, path: /f, count: {count}, size: {}}}\nstages:\n\
             - load: {{pattern: {pattern}, block_size: {blocks}, clients: {clients}, for: 1s}}",
            size * 4096
        );
        if let Ok((plan, _)) = outcome(&text) {
            for work in plan.stages.iter().flat_map(|stage| &stage.works) {
                let job = job(work);
                let part = tidemark_measure::pick::Part { index: clients - 1, of: clients };
                let mut source = work.load.source.worker(Rng::new(seed, &[0, 0, part.index.into()]), part);
                for _ in 0..50 {
                    let (operation, _) = source.draw().unwrap();
                    let volume = &job.volumes[operation.space as usize - 1];
                    prop_assert!(operation.item * job.unit + operation.bytes <= volume.size, "{:?}", operation);
                    prop_assert!(usize::from(operation.action) < job.actions.len());
                }
            }
        }
    }
}
