//! Works on block storage: the prefill, preconditioning, the load that is measured, the cleanup.

use super::volumes::{self, Volumes};
use super::{axes, load};
use crate::job::pattern::{BlockSizes, Drawn, Moves, Pattern, Shape, Spread};
use crate::job::{Action, Cache, Content, FILL_BYTES, IoEngine, Job, Volume};
use tidemark_keys::kinds::{Flag, Whole, Word};
use tidemark_keys::{Key, Mapping, Table};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::SourcePlan;
use tidemark_load::stopping::Stop;
use tidemark_load::work::{Finale, Work as Load};
use tidemark_plan::content::{self, Form};
use tidemark_plan::defaults::{self, MOST_DEPTH};
use tidemark_plan::engine::{ReadWork, WorkPlace};
use tidemark_plan::job::Job as AnyJob;
use tidemark_plan::plan::{Label, OperationClass, Work, WorkKind};
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::scope::Scope;
use tidemark_plan::yaml::works::Common;
use tidemark_plan::yaml::{timing, values};

/// The most clients that a prefill has of its own accord: one for each volume, up to this many.
const FILL_CLIENTS: u32 = 8;

/// What preconditioning does: the workload-independent part of the SNIA's method.
const PRECONDITIONING: Pattern =
    Pattern { name: "randwrite", moves: Moves::Data { reads: 0.0 }, random: 1.0, blocks: &[] };

/// Block size of preconditioning, bytes.
const PRECONDITION_BLOCK: u64 = 4 << 10;

/// The works on volumes.
pub(crate) static KEYS: [&Mapping; 4] = [&PREPARE, &PRECONDITION, &load::LOAD, &CLEANUP];

static PREPARE: Mapping = Mapping::new(
    "prepare",
    "Writes every volume once with real content, creates it if missing, and syncs it",
    &[&FILL_WORKERS, &FILL_IN_FLIGHT, &REUSE],
);
static FILL_WORKERS: Key<Whole<u32>> =
    Key::new("workers", "Number of logical clients", Whole(1, defaults::MOST_WORKERS))
        .otherwise("one per volume, up to 8");
static FILL_IN_FLIGHT: Key<Whole<u32>> =
    Key::new("depth", "Operations in flight per client", Whole(1, MOST_DEPTH))
        .default("8")
        .also(&["iodepth"]);
static REUSE: Key<Flag> =
    Key::new("reuse", "Keep a volume that already holds the content", Flag).default("true");

static PRECONDITION: Mapping = Mapping::new(
    "precondition",
    "Writes the capacity of all volumes several times, to bring a device into the state of long use",
    &[&PATTERN, &BLOCK_SIZE, &PASSES, &DEPTH],
);
static PATTERN: Key<Word<Pattern>> = Key::new("pattern", "Write pattern", Word(&WRITES)).default("randwrite");
static WRITES: [(&str, Pattern); 2] =
    [("write", Pattern { random: 0.0, name: "write", ..PRECONDITIONING }), ("randwrite", PRECONDITIONING)];
static BLOCK_SIZE: Key<axes::BlockSize> =
    Key::new("block_size", "Block size", axes::BLOCK_SIZE_SHAPE).default("4KiB").also(&["bs", "bssplit"]);
// SNIA SSS PTS 2.0.2, 7.1.
static PASSES: Key<Whole<u64>> =
    Key::new("passes", "How many times to write the capacity", Whole(1, 1000)).default("2");
static DEPTH: Key<Whole<u32>> = Key::new("depth", "Operations in flight per client", Whole(1, MOST_DEPTH))
    .default("32")
    .also(&["iodepth"]);

static CLEANUP: Mapping =
    Mapping::new("cleanup", "Removes files and images; invalid for devices", &[&CLEANERS]);
static CLEANERS: Key<Whole<u32>> =
    Key::new("workers", "Number of logical clients", Whole(1, defaults::MOST_WORKERS)).default("1");

/// The works that make sense on a kind of target.
pub(crate) fn works_on(target: &str) -> Vec<&'static Mapping> {
    let removable = target != volumes::DEVICE.name;
    KEYS.into_iter().filter(|work| removable || work.name != CLEANUP.name).collect()
}

/// What the works of a stage on block storage have in common.
pub(super) struct Ground<'a> {
    /// What the load runs against.
    pub(super) target: &'a Volumes,
    /// What is written and checked.
    pub(super) content: Content,
    /// What all works of the document share.
    pub(super) context: &'a Context<'a>,
    /// The stage, and the work's place in it.
    pub(super) stream: [u64; 2],
}

/// Reads a work. A load that is a sweep gives several, one for each stage that it becomes.
pub(crate) fn works(
    place: WorkPlace,
    mut table: Table<'_>,
    target: &Volumes,
    scope: &Scope<'_>,
    context: &Context<'_>,
) -> Vec<ReadWork> {
    let content = content(&table, scope, target);
    let ground = Ground { target, content, context, stream: place.stream };
    if place.keyword != "load" && !context.budget.volumes(ground.count(), &table) {
        return Vec::new();
    }
    let alone = |work| vec![ReadWork { work, point: None }];
    let works = match place.keyword {
        "prepare" => alone(prepare(&mut table, &ground)),
        "precondition" => alone(precondition(&mut table, &ground)),
        "cleanup" => alone(cleanup(&mut table, &ground)),
        "load" => load::load(&mut table, &ground, place.alone),
        name => {
            let help = "use `prepare` to create files and images and `cleanup` to remove them";
            let message = format!("`{name}` does not apply to block storage: there are no containers");
            table.log().error(table.place(), message, help);
            return Vec::new();
        }
    };
    debug_assert!(works.iter().all(|read| read.work.kind == place.kind));
    table.finish();
    works
}

/// What is written and checked, as far as block storage can.
fn content<'a>(table: &Table<'a>, scope: &Scope<'a>, target: &Volumes) -> Content {
    let log = table.log();
    if scope.has("naming") {
        let help = "remove it, or move it to the works on objects";
        log.error(table.place(), "`naming` does not apply to block storage", help);
    }
    let content::Content { form, verify } = content::content(scope, table);
    if verify && target.io_engine == IoEngine::Fio {
        let why = if target.are_images() { "RBD images are" } else { "with `engine: fio` the load is" };
        let message = format!("`verify` requires the native engine, but {why} run by fio");
        log.error(table.place(), message, "remove `verify`, or use `engine: native` on files or devices");
    }
    match form {
        Form::Seeded { compressible, duplicate } => Content { compressible, duplicate, verify },
        Form::Zero | Form::Hashed => {
            let message = "`fill` does not apply to block storage: its content is always seeded";
            log.error(table.place(), message, "remove `fill`, or move it to the works on objects");
            Content { verify, ..Content::default() }
        }
    }
}

/// How much of what a work does, in the load core's terms.
pub(super) struct Doing {
    pub(super) workers: u32,
    pub(super) depth: u32,
    pub(super) pacing: Pacing,
    pub(super) stop: Stop,
    pub(super) drawn: Drawn,
    /// The settings as reports show them.
    pub(super) config: String,
}

impl Ground<'_> {
    /// A job that does nothing yet, with what works that are not measured have.
    pub(super) fn job(&self, volumes: &[Volume], unit: u64) -> Job {
        Job {
            volumes: volumes.to_vec(),
            per_driver: self.target.per_driver,
            unit,
            io_engine: self.target.io_engine,
            direct: self.target.direct,
            polled: false,
            batch: None,
            cache: Cache::default(),
            content: self.content,
            journal: self.target.journal.clone(),
            reuse: false,
            actions: Vec::new(),
        }
    }

    /// A work, put together.
    pub(super) fn work(&self, kind: WorkKind, common: Common, doing: Doing, job: Job) -> Work {
        let Drawn { source, actions, finale } = doing.drawn;
        let label = |(action, weight): &(Action, f64)| Label {
            label: action.name().to_owned(),
            kind: action.name().to_owned(),
            class: OperationClass::named(action.name()),
            verifies: job.content.verify && *action == Action::Read,
            weight: *weight,
            config: doing.config.clone(),
        };
        let labels = actions.iter().map(label).collect();
        let actions: Vec<Action> = actions.into_iter().map(|(action, _)| action).collect();
        Work {
            name: common.name,
            kind,
            load: Load {
                workers: doing.workers,
                depth: doing.depth,
                connections: None,
                pacing: doing.pacing,
                stop: doing.stop,
                source,
                finale,
                copies: 1,
                actions: actions.len() as u16,
                seed: self.context.seed,
                stream: self.stream,
            },
            job: AnyJob::new(Job { actions, ..job }),
            labels,
            allowed_failures_per_million: common.allowed_failures,
            driver: common.driver,
        }
    }

    /// The volumes' numbers.
    fn spaces(&self) -> (u64, u64) {
        (1, self.count())
    }

    /// How many volumes there are.
    pub(super) fn count(&self) -> u64 {
        self.target.volumes.len().max(1) as u64
    }
}

/// Writes every volume once, from end to end.
fn prepare(table: &mut Table<'_>, ground: &Ground<'_>) -> Work {
    let common = Common::read(table, "prepare", 0);
    let usual = ground.count().min(u64::from(FILL_CLIENTS)) as u32;
    let workers = table.get(&FILL_WORKERS).unwrap_or(usual);
    let (depth, reuse) = (table.value(&FILL_IN_FLIGHT), table.value(&REUSE));
    let spaces = ground.spaces();
    let last = ground.target.size().div_ceil(FILL_BYTES).saturating_sub(1);
    let bytes = values::constant(FILL_BYTES);
    let drawn = Drawn {
        source: SourcePlan::Scan { action: 0, spaces: Some(spaces), items: Some((0, last)), bytes },
        actions: vec![(Action::Write, 100.0), (Action::Fsync, 0.0)],
        finale: Some(Finale { action: 1, spaces }),
    };
    let config = format!("block_size=1 MiB;depth={depth};clients={workers}");
    let (pacing, stop) = (Pacing::BACK_TO_BACK, timing::stop(table, 0, true));
    let doing = Doing { workers, depth, pacing, stop, drawn, config };
    let job = Job { reuse, ..ground.job(&ground.target.volumes, FILL_BYTES) };
    ground.work(WorkKind::Prepare, common, doing, job)
}

/// Writes as many bytes as all volumes hold, several times over, so that a device is in the state of long use.
fn precondition(table: &mut Table<'_>, ground: &Ground<'_>) -> Work {
    let common = Common::read(table, "precondition", 0);
    let pattern = table.get(&PATTERN).unwrap_or(PRECONDITIONING);
    let entry = table.entry(&BLOCK_SIZE);
    let blocks = entry.and_then(|entry| axes::blocks(table, &BLOCK_SIZE, &entry.node));
    let blocks = blocks.unwrap_or_else(|| BlockSizes::new(&[(PRECONDITION_BLOCK, 1)]));
    if blocks.largest() > ground.target.size() {
        let place = entry.map_or(table.place(), |entry| &entry.node.span);
        table.log().error(place, "a block is larger than a volume", "lower `block_size`, or raise `size`");
    }
    let (passes, depth) = (table.value(&PASSES), table.value(&DEPTH));
    let (clients, volumes) = (ground.count() as u32, &ground.target.volumes);
    let shape = Shape {
        pattern,
        blocks: &blocks,
        spread: Spread::Uniform,
        clients,
        volumes,
        sync: None,
        end_sync: true,
    };
    let bytes = ground.target.size().saturating_mul(ground.count()).saturating_mul(passes);
    let stop = Stop { bytes: Some(bytes), ..timing::stop(table, 0, true) };
    let config = load::config(&shape, depth, &ground.content);
    let pacing = Pacing::BACK_TO_BACK;
    let doing = Doing { workers: clients, depth, pacing, stop, drawn: shape.draw(), config };
    ground.work(WorkKind::Prepare, common, doing, ground.job(volumes, blocks.unit()))
}

/// Removes the volumes.
fn cleanup(table: &mut Table<'_>, ground: &Ground<'_>) -> Work {
    if ground.target.are_devices() {
        let help = "remove this work; devices keep what was written to them";
        table.log().error(table.place(), "devices cannot be removed", help);
    }
    let common = Common::read(table, "cleanup", 0);
    let workers = table.value(&CLEANERS);
    let bytes = values::constant(0);
    let drawn = Drawn {
        source: SourcePlan::Scan { action: 0, spaces: Some(ground.spaces()), items: None, bytes },
        actions: vec![(Action::Remove, 100.0)],
        finale: None,
    };
    let config = format!("volumes={}", ground.count());
    let (pacing, stop) = (Pacing::BACK_TO_BACK, timing::stop(table, 0, true));
    let doing = Doing { workers, depth: 1, pacing, stop, drawn, config };
    ground.work(WorkKind::Cleanup, common, doing, ground.job(&ground.target.volumes, 1))
}
