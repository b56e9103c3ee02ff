//! The load on block storage that is measured: one, or a sweep.

use super::axes::{self, AXES, axes};
use super::work::{Doing, Ground};
use crate::job::pattern::{Pattern, Shape, Spread, exact};
use crate::job::sweep::{Axes, Point as Combination};
use crate::job::{Action, Cache, Content, Job};
use tidemark_keys::kinds::{Flag, Parsed, Text, Whole, Word};
use tidemark_keys::shapes::{Either, Map};
use tidemark_keys::tree::Value;
use tidemark_keys::{AnyKey, Key, Mapping, Problem, Table};
use tidemark_load::pacing::Pacing;
use tidemark_load::stopping::{Steady, Stop};
use tidemark_measure::record::Cell;
use tidemark_measure::units;
use tidemark_plan::defaults::{self, MOST_DEPTH};
use tidemark_plan::engine::{Point, ReadWork};
use tidemark_plan::plan::{Work, WorkKind};
use tidemark_plan::yaml::timing::{self, TIMING};
use tidemark_plan::yaml::works::Common;

/// The measured load.
pub(super) static LOAD: Mapping = Mapping::new(
    "load",
    "The measured load",
    &[&DISTRIBUTION, &BATCH, &FSYNC, &FDATASYNC, &END_SYNC, &CACHE, &STEADY],
)
.with(&[&AXES, &TIMING]);

static DISTRIBUTION: Key<Parsed<Spread>> = Key::new(
    "distribution",
    "Distribution of random offsets: equally likely, or few of them very often",
    Parsed("`uniform`, `zipf(0.99)`", spread),
)
.default("uniform");
static BATCH: Key<Whole<u32>> = Key::new(
    "batch",
    "Operations to submit and complete together, up to `depth`; without it, all that are ready go in one system call, \
     also with fio (its own default is 1)",
    Whole(1, MOST_DEPTH),
)
.otherwise("what is ready");
static FSYNC: Key<Whole<u32>> =
    Key::new("fsync", "Sync after this many writes of a client; recorded", Whole(1, 1_000_000));
static FDATASYNC: Key<Whole<u32>> =
    Key::new("fdatasync", "Sync data after this many writes of a client; recorded", Whole(1, 1_000_000));
static END_SYNC: Key<Flag> =
    Key::new("end_sync", "Sync every volume after the load; recorded, not part of throughput", Flag)
        .otherwise("`true` where it writes");
static CACHE: Key<Word<Cache>> = Key::new(
    "cache",
    "Drop (cold) or keep (warm) the volumes' page cache before the load",
    Word(&[("cold", Cache::Cold), ("warm", Cache::Warm)]),
)
.default("cold");
static STEADY: Key<Either<Parsed<u64>, Map>> = Key::new(
    "steady",
    "Start the window once rounds of this length are steady",
    Either(ROUND_LENGTH, Map(&ROUNDS)),
);
static ROUNDS: Mapping = Mapping::new(
    "steady",
    "Start the window when five rounds are steady (SNIA: range within 20 %, slope within 10 % of the average)",
    &[&ROUND, &MOST],
);
static ROUND: Key<Parsed<u64>> =
    Key::new("round", "Length of a round", ROUND_LENGTH).required("add its length, such as 60s");
/// As TKperf has it.
static MOST: Key<Whole<u32>> =
    Key::new("most", "Rounds after which it starts in any case", Whole(5, 10_000)).default("25");

const ROUND_LENGTH: Parsed<u64> = Parsed("duration in whole seconds", round);

/// What loads on objects have instead of `clients`.
static WORKERS: Key<Text> = Key::new("workers", "Number of logical clients", Text);

/// What holds for all points of a load.
struct Settings {
    common: Common,
    spread: Spread,
    sync: Option<(Action, u32)>,
    end_sync: bool,
    batch: Option<u32>,
    cache: Cache,
    pacing: Pacing,
    stop: Stop,
}

/// Reads a load: its work, or the works of all its points.
pub(super) fn load(table: &mut Table<'_>, ground: &Ground<'_>, alone: bool) -> Vec<ReadWork> {
    let axes = axes(table, ground);
    let settings = settings(table, &axes);
    table.meaningless(&[&WORKERS], "loads on volumes use `clients`");
    if !alone {
        let lists: [(&AnyKey, bool); 5] = [
            (&axes::PATTERN, axes.patterns.listed),
            (&axes::BLOCK_SIZE, axes.blocks.listed),
            (&axes::DEPTH, axes.depths.listed),
            (&axes::CLIENTS, axes.clients.listed),
            (&axes::REPEATS, axes.repeats > 1),
        ];
        for (key, _) in lists.iter().filter(|(_, sweeps)| *sweeps) {
            let place = table.entry(*key).map_or(table.place().clone(), |entry| entry.key_span.clone());
            let message =
                format!("`{}` makes the load a sweep, which cannot run beside other works", key.name);
            table.log().error(&place, message, "give it one value, or make the load a stage of its own");
        }
    }
    let sweeps = alone && axes.is_sweep();
    let budget = &ground.context.budget;
    if axes.is_sweep() && !budget.points(axes.count()) {
        let message = format!(
            "with the {} points of this load, the document's sweeps exceed {} points",
            units::count(axes.count()),
            units::count(defaults::MOST_POINTS)
        );
        table.log().error(table.place(), message, "shorten its lists, or lower `repeats`");
        return Vec::new();
    }
    if !budget.volumes(axes.count().saturating_mul(ground.count()), table) {
        return Vec::new();
    }
    let points = axes.points();
    check_points(table, ground, &points, settings.batch);
    let kept = if sweeps { points.len() } else { 1 };
    let made = |(index, point): (usize, Combination)| {
        let ground = Ground { stream: [ground.stream[0] + index as u64, ground.stream[1]], ..*ground };
        let work = one(&ground, &settings, &point);
        let Combination { name, axes: values, repeat, .. } = point;
        let engine = ground.target.io_engine.name().to_owned();
        let cell = Cell { sweep: String::new(), axes: values, repeat, repeats: axes.repeats, engine };
        ReadWork { work, point: sweeps.then_some(Point { name, cell }) }
    };
    let mut points = points.into_iter().take(kept).enumerate().map(made);
    let Some(first) = points.next() else { return Vec::new() };
    // The works of a sweep are alike.
    match budget.sweep(&first.work, kept, table) {
        true => std::iter::once(first).chain(points).collect(),
        false => Vec::new(),
    }
}

/// The work of one point.
fn one(ground: &Ground<'_>, settings: &Settings, point: &Combination) -> Work {
    let own = (point.clients as usize).min(ground.target.volumes.len());
    let writes = point.pattern.writes();
    let shape = Shape {
        pattern: point.pattern,
        blocks: &point.blocks,
        spread: settings.spread,
        clients: point.clients,
        volumes: &ground.target.volumes[..own],
        sync: settings.sync.filter(|_| writes),
        end_sync: settings.end_sync && writes,
    };
    let doing = Doing {
        workers: point.clients,
        depth: point.depth,
        pacing: settings.pacing.clone(),
        stop: settings.stop,
        drawn: shape.draw(),
        config: config(&shape, point.depth, &ground.content),
    };
    let job = Job {
        polled: ground.target.polled,
        batch: settings.batch,
        cache: settings.cache,
        ..ground.job(shape.volumes, point.blocks.unit())
    };
    ground.work(WorkKind::Normal, settings.common.clone(), doing, job)
}

fn settings(table: &mut Table<'_>, axes: &Axes) -> Settings {
    let common = Common::read(table, "load", 0);
    let patterns = &axes.patterns.values;
    let writes = patterns.iter().any(Pattern::writes);
    let spread = table.value(&DISTRIBUTION);
    if patterns.iter().all(|pattern| pattern.random == 0.0) {
        table.meaningless(&[&DISTRIBUTION], "offsets are sequential");
    }
    table.contradiction(&FSYNC, &FDATASYNC, "use one kind of sync");
    let (fsync, fdatasync) = (table.get(&FSYNC), table.get(&FDATASYNC));
    let sync = fsync.map(|every| (Action::Fsync, every));
    let sync = sync.or(fdatasync.map(|every| (Action::Fdatasync, every)));
    let end_sync = table.get(&END_SYNC);
    if !writes {
        table.meaningless(&[&FSYNC, &FDATASYNC], "nothing is written");
        if end_sync == Some(true) {
            table.meaningless(&[&END_SYNC], "nothing is written");
        }
    }
    Settings {
        common,
        spread,
        sync,
        end_sync: end_sync.unwrap_or(true),
        batch: table.get(&BATCH),
        cache: table.value(&CACHE),
        pacing: timing::pacing(table),
        stop: Stop { steady: steady(table), ..timing::ends(table, 0) },
    }
}

fn spread(text: &str) -> Result<Spread, Problem> {
    let exponent = match text.trim() {
        "uniform" => return Ok(Spread::Uniform),
        "zipf" => Some(defaults::ZIPF_EXPONENT),
        other => {
            let inside = other.strip_prefix("zipf(").and_then(|rest| rest.strip_suffix(')'));
            inside.and_then(|number| number.trim().parse::<f64>().ok())
        }
    };
    match exponent.filter(|exponent| *exponent > 0.0 && *exponent <= 10.0) {
        Some(exponent) => Ok(Spread::Zipf(exponent)),
        None => {
            let help = "write uniform, or zipf(0.99) with an exponent above 0 and up to 10";
            Err(Problem::new(format!("'{text}' is unknown"), help))
        }
    }
}

/// How long the load runs before it is measured: a round's length, or that and the maximum of rounds.
fn steady(table: &mut Table<'_>) -> Option<Steady> {
    let entry = table.entry(&STEADY)?;
    let (round_ns, most_rounds) = match &entry.node.value {
        Value::Map(_) => {
            let mut own = table.below(&STEADY, entry).of(&ROUNDS);
            let found = (own.get(&ROUND), own.value(&MOST));
            own.finish();
            found
        }
        _ => (table.one(&STEADY, &ROUND_LENGTH, &entry.node), MOST.usual().unwrap_or_default()),
    };
    Some(Steady { round_ns: round_ns?, most_rounds })
}

fn round(text: &str) -> Result<u64, Problem> {
    match units::parse_duration_ns(text)? {
        ns if ns > 0 && ns.is_multiple_of(1_000_000_000) => Ok(ns),
        _ => {
            Err(Problem::new(format!("'{text}' is not a whole number of seconds"), "write 60s, for example"))
        }
    }
}

/// Reports what does not fit: too large a block, too many operations at once.
fn check_points(table: &mut Table<'_>, ground: &Ground<'_>, points: &[Combination], batch: Option<u32>) {
    let log = table.log();
    let place = |table: &mut Table<'_>, key: &AnyKey| {
        table.entry(key).map_or(table.place().clone(), |entry| entry.key_span.clone())
    };
    let size = ground.target.size();
    let room = |point: &Combination| {
        let parted = point.pattern.is_sequential() && ground.count() == 1;
        let unit = point.blocks.unit();
        if parted { size / unit / u64::from(point.clients) * unit } else { size }
    };
    if let Some(point) = points.iter().find(|point| point.blocks.largest() > room(point)) {
        let message = format!(
            "a block of {} does not fit into a client's part of a volume, {}",
            exact(point.blocks.largest(), " "),
            exact(room(point), " ")
        );
        let at = place(table, &axes::BLOCK_SIZE);
        log.error(&at, message, "lower `block_size`, raise the target's `size`, or use fewer clients");
    }
    let batch = batch.unwrap_or(1);
    if let Some(point) = points.iter().find(|point| batch > point.depth) {
        let message = format!("a batch of {batch} is more than the {} operations in flight", point.depth);
        let at = place(table, &BATCH);
        log.error(&at, message, "lower `batch`, or raise `depth`");
    }
    let lanes = |point: &Combination| u64::from(point.clients) * u64::from(point.depth);
    if let Some(point) = points.iter().find(|point| lanes(point) > u64::from(defaults::MOST_WORKERS)) {
        let message = format!(
            "{} clients with {} operations each are {} in flight at once",
            units::count(point.clients.into()),
            units::count(point.depth.into()),
            units::count(lanes(point))
        );
        let at = place(table, &axes::DEPTH);
        let help = format!("keep clients x depth within {}", units::count(defaults::MOST_WORKERS.into()));
        log.error(&at, message, help);
    }
}

/// The settings as reports show them.
pub(super) fn config(shape: &Shape<'_>, depth: u32, content: &Content) -> String {
    let pattern = shape.pattern;
    let mut parts = vec![format!("pattern={}", pattern.name)];
    if let (true, Some(reads)) = (pattern.is_mixed(), pattern.reads()) {
        parts.push(format!("reads={}", units::percent(reads)));
    }
    if pattern.random > 0.0 && pattern.random < 1.0 {
        parts.push(format!("random={}", units::percent(pattern.random)));
    }
    parts.push(format!("block_size={}", shape.blocks.text(" ")));
    if let (true, Spread::Zipf(exponent)) = (pattern.random > 0.0, shape.spread) {
        parts.push(format!("distribution=zipf({exponent})"));
    }
    parts.push(format!("depth={depth};clients={}", shape.clients));
    if let Some((action, every)) = shape.sync {
        parts.push(format!("{}={every}", action.name()));
    }
    if content.verify {
        parts.push("verify=true".into());
    }
    parts.join(";")
}
