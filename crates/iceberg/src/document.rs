//! The keys of documents: the target, and the works on a table.

use crate::cycles::{MergeMode, StepKind};
use crate::job::{Commits, Cycles, Job, Protocol, Purpose, ROWS_MOST, Step, Target};
use tidemark_analytics::place::{self, Place};
use tidemark_keys::kinds::{Bytes, Duration, Flag, Parsed, Share, Whole, Word};
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, SourcePlan};
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_measure::think::Think;
use tidemark_measure::units;
use tidemark_plan::defaults;
use tidemark_plan::engine::WorkPlace;
use tidemark_plan::plan::{Label, OperationClass, Work, WorkKind};
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::timing::{self, TIMING};
use tidemark_plan::yaml::{values, works};

/// The kind of targets.
pub(crate) static ICEBERG: Mapping = Mapping::kind(
    "iceberg",
    "Tables that change, in Apache Iceberg's format: a version is a file that is written on the condition that there is none",
    &[&place::STORAGE, &place::BUCKET, &place::PREFIX, &place::CONNECTIONS, &THREADS],
);

static THREADS: Key<Whole<u32>> = Key::new("threads", "Threads that commits run on", Whole(1, 1024))
    .otherwise("as many as the machine has processors");

/// The works on tables.
pub(crate) static KEYS: [&Mapping; 3] = [&PREPARE, &LOAD, &CLEANUP];

static PREPARE: Mapping = Mapping::new("prepare", "Makes a table, unless it is there", &[&TABLE, &FRESH]);
static LOAD: Mapping = Mapping::new(
    "load",
    "The measured load: commits, each of which appends a file of rows; with `cycles`, what a table goes through in its life",
    &[
        &TABLE,
        &COMMITTERS,
        &ROWS,
        &TRIES,
        &BACK_OFF,
        &BACK_OFF_MOST,
        &SNAPSHOTS,
        &MANIFESTS,
        &CONDITIONS,
        &CYCLES,
        &INITIAL_ROWS,
        &APPENDS,
        &MERGE,
        &MERGED,
        &COMPACT_EVERY,
        &TARGET_SIZE,
    ],
)
.with(&[&TIMING]);
static CLEANUP: Mapping = Mapping::new("cleanup", "Removes a table that Tidemark made", &[&TABLE]);

/// The most rows that cycles bring to a table: each takes 4 bytes of memory, for the cycle that gave it its values.
const MOST_ROWS: u64 = 500_000_000;

/// How long a step of cycles may take: a compaction moves the whole table.
const STEP_NS: u64 = 600_000_000_000;

/// The most steps of a load.
const MOST_STEPS: u64 = 1_000_000;

/// The key that shows whose work it is.
pub(crate) static TABLE: Key<Parsed<String>> = Key::new(
    "table",
    "Name of the table: the directory that it is",
    Parsed("name of letters, digits, dashes and underscores", name),
)
.required("give it a name, such as `table: events`")
.example("events");
static FRESH: Key<Flag> =
    Key::new("fresh", "Remove the table with all its rows if it is there, and make it anew", Flag)
        .default("false");
static COMMITTERS: Key<Whole<u32>> = Key::new(
    "committers",
    "Workers that commit to the table side by side; with a `rate`, the limit of commits in flight",
    Whole(1, defaults::MOST_WORKERS),
)
.default("1")
.also(&["workers", "clients"]);
static ROWS: Key<Whole<u32>> =
    Key::new("rows", "Rows of a commit, of about 50 bytes each", Whole(1, ROWS_MOST)).default("100");
static TRIES: Key<Whole<u32>> = Key::new(
    "tries",
    "How often a commit is tried at most, each time on what is the newest version by then; its latency covers all of it",
    Whole(1, 100_000),
)
.default("100")
.also(&["max_tries"]);
static BACK_OFF: Key<Duration> = Key::new(
    "back_off",
    "Longest pause before the second attempt, doubled before each further one; at least half of it is waited",
    Duration,
)
.default("10ms");
static BACK_OFF_MOST: Key<Duration> =
    Key::new("back_off_most", "Longest pause before an attempt", Duration).default("1s");
static SNAPSHOTS: Key<Whole<u32>> = Key::new(
    "snapshots",
    "Snapshots, and earlier versions, that each version lists: the others expire",
    Whole(2, 1_000_000),
)
.default("100");
static MANIFESTS: Key<Whole<u32>> = Key::new(
    "manifests",
    "Manifests of a snapshot from which on a commit merges them into one",
    Whole(1, 1_000_000),
)
.default("100");
static CYCLES: Key<Whole<u32>> = Key::new(
    "cycles",
    "Put a table without rows through so many cycles, one step after the other: appends, a merge, the queries `totals`, `range` and \
     `scan`, and at times a compaction. Such a load ends by itself",
    Whole(1, 100_000),
)
.example("20");
static INITIAL_ROWS: Key<Whole<u64>> = Key::new(
    "initial_rows",
    "With `cycles`: rows that the table begins with, in files of `target_size`",
    Whole(0, MOST_ROWS),
)
.default("0");
static APPENDS: Key<Whole<u32>> = Key::new(
    "appends",
    "With `cycles`: appends of each cycle, each of them a commit of `rows`",
    Whole(1, 10_000),
)
.default("10");
static MERGE: Key<Word<Option<MergeMode>>> = Key::new(
    "merge",
    "With `cycles`: how rows get new values. `copy-on-write` writes the files that they are in anew; `merge-on-read` appends the new \
     rows and a file of position deletes, which queries apply; `none`: they keep their values",
    Word(&[
        ("copy-on-write", Some(MergeMode::CopyOnWrite)),
        ("merge-on-read", Some(MergeMode::MergeOnRead)),
        ("none", None),
    ]),
)
.default("copy-on-write");
static MERGED: Key<Share> = Key::new(
    "merged",
    "With `cycles`: share of all rows that get new values in each cycle, drawn anew each time",
    Share,
)
.default("1%");
static COMPACT_EVERY: Key<Whole<u32>> = Key::new(
    "compact_every",
    "With `cycles`: each so many of them end with a compaction, which writes files below three quarters of `target_size`, and those \
     with deleted rows, together",
    Whole(1, 100_000),
)
.otherwise("none does");
static TARGET_SIZE: Key<Bytes> = Key::new(
    "target_size",
    "With `cycles`: about how large files are that a compaction writes; rows of one file are in memory at once",
    Bytes(1 << 10),
)
.default("16MiB");
static CONDITIONS: Key<Word<bool>> = Key::new(
    "conditions",
    "Storage that ignores `If-None-Match: *` loses commits: with `checked` it is refused before the load, by means of a small file \
     that is written and deleted; with `unchecked` the load runs, and what is lost is counted",
    Word(&[("checked", true), ("unchecked", false)]),
)
.default("checked");

fn name(text: &str) -> Result<String, Problem> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match (1..=200).contains(&text.len()) && text.bytes().all(plain) {
        true => Ok(text.to_owned()),
        false => {
            let help = "write letters, digits, dashes and underscores, such as events";
            Err(Problem::new(format!("'{text}' is no name of a table"), help))
        }
    }
}

/// Reads the mapping under `target`; `None` after an error that leaves nothing to go on with.
pub(crate) fn target(table: &mut Table<'_>) -> Option<Target> {
    let threads = table.get(&THREADS);
    let Place { storage, connections } = place::read(table, &place::STORAGE)?;
    Some(Target { storage, connections, threads })
}

/// What a work does.
struct Doing {
    workers: u32,
    purpose: Purpose,
    pacing: Pacing,
    stop: tidemark_load::stopping::Stop,
    source: SourcePlan,
    labels: Vec<Label>,
}

/// Reads a work; all random choices come from `seed`.
pub(crate) fn work(
    place: WorkPlace,
    mut table: Table<'_>,
    target: &Target,
    context: &Context<'_>,
) -> Option<Work> {
    if !KEYS.iter().any(|known| known.name == place.keyword) {
        let message = format!("`{}` does not apply to Iceberg tables", place.keyword);
        table.log().error(table.place(), message, "remove it, or use `prepare`, `load` or `cleanup`");
        return None;
    }
    let allowed = if place.kind == WorkKind::Normal { defaults::ALLOWED_FAILURES } else { 0 };
    let common = works::Common::read(&mut table, place.keyword, allowed);
    let name = table.get(&TABLE)?;
    let doing = match place.kind {
        WorkKind::Normal if table.has(&CYCLES) => cycles(&mut table, target, context)?,
        WorkKind::Normal => load(&mut table, target),
        WorkKind::Prepare => {
            let purpose = Purpose::Make { fresh: table.value(&FRESH) };
            once(&mut table, target, purpose, "make", OperationClass::Write)
        }
        _ => once(&mut table, target, Purpose::Remove, "remove", OperationClass::Delete),
    };
    table.finish();
    let Doing { workers, purpose, pacing, stop, source, labels } = doing;
    Some(Work {
        name: common.name,
        kind: place.kind,
        load: Load {
            workers,
            depth: 1,
            connections: None,
            pacing,
            stop,
            source,
            finale: None,
            copies: 1,
            actions: labels.len() as u16,
            seed: context.seed,
            stream: place.stream,
        },
        job: tidemark_plan::job::Job::new(Job { target: target.clone(), table: name, purpose }),
        labels,
        allowed_failures_per_million: common.allowed_failures,
        driver: common.driver,
    })
}

fn label(name: &str, class: OperationClass, weight: f64, config: String) -> Label {
    Label { label: name.to_owned(), kind: name.to_owned(), class, verifies: false, weight, config }
}

/// What is done once, before or after a load.
fn once(
    table: &mut Table<'_>,
    target: &Target,
    purpose: Purpose,
    name: &str,
    class: OperationClass,
) -> Doing {
    Doing {
        workers: 1,
        purpose,
        pacing: Pacing::Closed { think: Think::Constant { ns: 0 } },
        stop: timing::stop(table, target.timeout_ns(), true),
        source: SourcePlan::Scan {
            action: 0,
            spaces: Some((1, 1)),
            items: Some((0, 0)),
            bytes: values::constant(0),
        },
        labels: vec![label(name, class, 100.0, String::new())],
    }
}

fn protocol(table: &mut Table<'_>) -> Protocol {
    Protocol {
        tries: table.value(&TRIES),
        back_off_ns: table.value(&BACK_OFF),
        back_off_most_ns: table.value(&BACK_OFF_MOST),
        snapshots: table.value(&SNAPSHOTS),
        manifests: table.value(&MANIFESTS),
    }
}

/// Cycles; `None` after an error.
fn cycles(table: &mut Table<'_>, target: &Target, context: &Context<'_>) -> Option<Doing> {
    table.meaningless(&[&COMMITTERS], "the steps of cycles follow each other");
    let cycles = Cycles {
        count: table.get(&CYCLES)?,
        initial_rows: table.value(&INITIAL_ROWS),
        appends: table.value(&APPENDS),
        rows: table.value(&ROWS),
        merge: table.value(&MERGE),
        merged: table.value(&MERGED),
        compact_every: table.get(&COMPACT_EVERY),
        target_bytes: table.value(&TARGET_SIZE),
        protocol: protocol(table),
        checked: table.value(&CONDITIONS),
        seed: context.seed,
    };
    let come = u64::from(cycles.count) * u64::from(cycles.appends);
    let help = "write fewer `cycles`, `appends` or `rows`";
    if come > MOST_STEPS {
        let message = format!("{} appends are more than {MOST_STEPS}", units::count(come));
        table.log().error(table.place(), message, help);
        return None;
    }
    let rows = come.saturating_mul(cycles.rows.into()).saturating_add(cycles.initial_rows);
    if rows > MOST_ROWS {
        let message = format!("a table of {} rows is larger than {MOST_ROWS}", units::count(rows));
        table.log().error(table.place(), message, help);
        return None;
    }
    let steps: Vec<Step> = cycles.plan().into_iter().map(|(_, step)| step).collect();
    let mut kinds: Vec<Step> = Vec::new();
    for step in &steps {
        if !kinds.contains(step) {
            kinds.push(*step);
        }
    }
    let action = |step: &Step| kinds.iter().position(|kind| kind == step).unwrap_or(0) as u16;
    let order: Vec<u16> = steps.iter().map(action).collect();
    let config = |step: Step| match step {
        Step::Ingest => format!("rows={}", cycles.rows),
        Step::Merge(_) => format!("share={}", cycles.merged),
        Step::Compact => format!("target={}", cycles.target_bytes),
        _ => String::new(),
    };
    let labels = kinds.iter().map(|step| {
        let count = steps.iter().filter(|other| *other == step).count();
        let class = match step.kind() {
            StepKind::Query => OperationClass::Read,
            _ => OperationClass::Write,
        };
        label(step.name(), class, 100.0 * count as f64 / steps.len() as f64, config(*step))
    });
    let labels = labels.collect();
    Some(Doing {
        workers: 1,
        purpose: Purpose::Cycle(cycles),
        pacing: Pacing::Closed { think: Think::Constant { ns: 0 } },
        stop: timing::stop(table, STEP_NS.max(target.timeout_ns()), true),
        source: SourcePlan::Rounds { orders: vec![order], rounds: 1 },
        labels,
    })
}

fn load(table: &mut Table<'_>, target: &Target) -> Doing {
    let without = "only a load with `cycles` has them";
    table.meaningless(&[&INITIAL_ROWS, &APPENDS, &MERGE, &MERGED, &COMPACT_EVERY, &TARGET_SIZE], without);
    let protocol = protocol(table);
    let commits = Commits { rows: table.value(&ROWS), protocol, checked: table.value(&CONDITIONS) };
    let config = format!("rows={}", commits.rows);
    let only = Choice {
        action: 0,
        weight: 1.0,
        spaces: Pick::Constant(1),
        items: Pick::Constant(1),
        bytes: values::constant(0),
        division: Division::None,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    };
    Doing {
        workers: table.value(&COMMITTERS),
        purpose: Purpose::Commit(commits),
        pacing: timing::pacing(table),
        stop: timing::ends(table, target.timeout_ns()),
        source: SourcePlan::Mix { choices: vec![only], pool: None, deck: false },
        labels: vec![label("append", OperationClass::Write, 100.0, config)],
    }
}
