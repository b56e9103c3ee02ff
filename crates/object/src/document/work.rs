//! The works of a stage: those that go once through a range, and the load that is measured.

use super::existing;
use super::naming;
use super::operation::{self, Around, Common, DIVISIONS, EMPTY, PART, VERBS, verbs};
use crate::job::{Action, Job, Keeps, Target, Verb};
use tidemark_keys::kinds::{Flag, Text, Whole, Word};
use tidemark_keys::shapes::{Map, OneOrList, Under};
use tidemark_keys::tree::{Node, Value};
use tidemark_keys::{Key, Mapping, Table};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, PoolPlan, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_plan::content;
use tidemark_plan::defaults;
use tidemark_plan::engine::WorkPlace;
use tidemark_plan::plan::{Label, OperationClass, Work, WorkKind};
use tidemark_plan::yaml::Environment;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::scope::Scope;
use tidemark_plan::yaml::timing::{self, THINK, TIMING, ends, pacing};
use tidemark_plan::yaml::values::{self, Range, Selector, Sizes};
use tidemark_plan::yaml::works;

/// Operations of one load beyond this are treated as a mistake: each has histograms of its own on every thread.
const MOST_OPERATIONS: usize = 100;

/// The works on objects.
pub(crate) static KEYS: [&Mapping; 5] = [&INIT, &PREPARE, &LOAD, &CLEANUP, &DISPOSE];

static INIT: Mapping = Mapping::new("init", "Creates containers", &[&CONTAINERS, &VERSIONING, &OBJECT_LOCK])
    .with(&[&WORKERS, &PACE]);
static PREPARE: Mapping =
    Mapping::new("prepare", "Writes objects, each once", &[&CONTAINERS, &OBJECTS, &SIZES, &FILES, &PART])
        .with(&[&operation::WRITTEN, &WORKERS, &PACE]);
static LOAD: Mapping = Mapping::new(
    "load",
    "The measured load",
    &[&LOAD_CONTAINERS, &LOAD_OBJECTS, &LOAD_SIZES, &existing::EXISTING, &DIVISION, &POOL, &OPERATIONS],
)
.with(&[&WORKERS, &TIMING]);
static CLEANUP: Mapping = Mapping::new(
    "cleanup",
    "Deletes objects; a missing one counts as done",
    &[&CONTAINERS, &OBJECTS, &VERSIONS],
)
.with(&[&WORKERS, &PACE]);
static DISPOSE: Mapping = Mapping::new(
    "dispose",
    "Deletes containers; a missing one counts as done, one that is not empty stays and is a failure",
    &[&CONTAINERS, &EMPTY],
)
.with(&[&WORKERS, &PACE]);

static WORKERS: Mapping = Mapping::new("clients", "Who does it", &[&NUMBER]);
static NUMBER: Key<Whole<u32>> = Key::new(
    "workers",
    "Number of logical clients; with a `rate`, the limit of operations in flight",
    Whole(1, defaults::MOST_WORKERS),
)
.default("1");
static PACE: Mapping = Mapping::new("pace", "How fast", &[&THINK]);

static CONTAINERS: Key<Range> =
    Key::new("containers", "Numbers of containers, all of which it goes through", Range)
        .required("write the range to go through, such as 1-100");
static OBJECTS: Key<Range> =
    Key::new("objects", "Numbers of objects in each container, all of which it goes through", Range)
        .required("write the range to go through, such as 1-100");
static SIZES: Key<Sizes> =
    Key::new("sizes", "Sizes of objects", Sizes).otherwise("required, unless there is a `directory`");
static FILES: Key<Text> =
    Key::new("directory", "Upload the files of this directory instead of generated content", Text);

static VERSIONING: Key<Flag> =
    Key::new("versioning", "Have them keep the versions of their objects (S3)", Flag).default("false");
static OBJECT_LOCK: Key<Flag> = Key::new(
    "object_lock",
    "Have them keep versions that can be locked, which a container can only learn when it is made (S3)",
    Flag,
)
.default("false");
static VERSIONS: Key<Flag> =
    Key::new("versions", "Delete all versions and delete markers of each object (S3)", Flag).default("false");

static LOAD_CONTAINERS: Key<Selector> =
    Key::new("containers", "Numbers of containers, for operations that have none", Selector);
static LOAD_OBJECTS: Key<Selector> =
    Key::new("objects", "Numbers of objects, for operations that have none", Selector);
static LOAD_SIZES: Key<Sizes> = Key::new("sizes", "Sizes of objects, for operations that have none", Sizes);
static DIVISION: Key<Word<Division>> =
    Key::new("division", "What to divide among the workers", DIVISIONS).default("none");
static POOL: Key<Map> = Key::of(&IN_POOL);
static OPERATIONS: Key<OneOrList<Under>> =
    Key::new("operations", "The mix of operations, each under its name", OneOrList(Under(verbs)))
        .required("write a list such as `- get: {objects: 1-100}`");

static IN_POOL: Mapping = Mapping::new(
    "pool",
    "Tracks which objects exist: reads and deletes use those that do, writes create others",
    &[&POOL_CONTAINERS, &POOL_OBJECTS, &EXISTING],
);
static POOL_CONTAINERS: Key<Range> =
    Key::new("containers", "Containers of objects that may exist", Range).otherwise("the load's");
static POOL_OBJECTS: Key<Range> =
    Key::new("objects", "Objects that may exist", Range).otherwise("the load's");
static EXISTING: Key<Range> = Key::new("existing", "Objects that exist at the start", Range);

/// What a work does: its operations in the load core's terms, in the engine's, and in reports.
struct Doing {
    pacing: Pacing,
    stop: Stop,
    source: SourcePlan,
    actions: Vec<Action>,
    labels: Vec<Label>,
}

/// Reads a work; all random choices come from the context's seed.
pub(crate) fn work(
    place: WorkPlace,
    mut table: Table<'_>,
    target: Target,
    scope: &Scope<'_>,
    context: &Context<'_>,
) -> Option<Work> {
    if place.keyword == "precondition" {
        let help = "remove it, or use `target: {kind: file, ...}`, `device` or `rbd`";
        table.log().error(
            table.place(),
            "`precondition` does not apply to objects: it is for block storage",
            help,
        );
        return None;
    }
    let around = Around { naming: naming::naming(scope, &table), content: content::content(scope, &table) };
    let allowed = if place.kind == WorkKind::Normal { defaults::ALLOWED_FAILURES } else { 0 };
    let common = works::Common::read(&mut table, place.keyword, allowed);
    let workers = table.get(&NUMBER).unwrap_or(1);
    let doing = match place.kind {
        WorkKind::Normal => load(&mut table, around, &target, context.environment),
        _ => scan(&mut table, (place.keyword, place.kind), around, &target),
    };
    table.finish();
    let Doing { pacing, stop, source, actions, labels } = doing;
    let count = actions.len() as u16;
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
            actions: count,
            seed: context.seed,
            stream: place.stream,
        },
        job: tidemark_plan::job::Job::new(Job { target, actions }),
        labels,
        allowed_failures_per_million: common.allowed_failures,
        driver: common.driver,
    })
}

/// A work that does one thing once to every container or object of a range.
fn scan(table: &mut Table<'_>, (name, kind): (&str, WorkKind), around: Around, target: &Target) -> Doing {
    let whole = (1, 1);
    let spaces = table.get(&CONTAINERS).unwrap_or(whole);
    naming::check(table, &around.naming, spaces);
    let on_objects = matches!(kind, WorkKind::Prepare | WorkKind::Cleanup);
    let items = on_objects.then(|| table.get(&OBJECTS).unwrap_or(whole));
    let mut bytes = values::constant(0);
    let mut sized = false;
    let verb = match kind {
        WorkKind::Init => {
            let versions = of_versions(table, &VERSIONING, target);
            let keeps = match of_versions(table, &OBJECT_LOCK, target) {
                true => Keeps::Locked,
                false if versions => Keeps::Versions,
                false => Keeps::Latest,
            };
            Verb::CreateContainer { keeps }
        }
        WorkKind::Prepare if table.has(&FILES) => {
            Verb::PutFile { directory: table.value(&FILES).into(), part_bytes: table.get(&PART) }
        }
        WorkKind::Prepare => {
            bytes = operation::sizes(table, &SIZES, &None);
            sized = true;
            operation::put(table)
        }
        WorkKind::Cleanup => Verb::Clear { versions: of_versions(table, &VERSIONS, target) },
        _ => Verb::DeleteContainer { empty: operation::emptied(table) },
    };
    let about_versions = match verb {
        Verb::CreateContainer { keeps: Keeps::Versions } => ";versioning=true",
        Verb::CreateContainer { keeps: Keeps::Locked } => ";object_lock=true",
        Verb::Clear { versions: true } => ";versions=true",
        _ => "",
    };
    let class = match kind {
        WorkKind::Prepare => OperationClass::Write,
        WorkKind::Cleanup => OperationClass::Delete,
        _ => OperationClass::named(name),
    };
    let sequence = |(low, high)| Pick::Sequence { low, high };
    let shown = items.map(sequence);
    let label = Label {
        label: name.to_owned(),
        kind: name.to_owned(),
        class,
        verifies: false,
        weight: 100.0,
        config: operation::config(&sequence(spaces), shown.as_ref(), sized.then_some(&bytes))
            + about_versions,
    };
    let action = Action { verb, naming: around.naming, content: around.content };
    Doing {
        pacing: Pacing::Closed { think: table.value(&THINK) },
        stop: timing::stop(table, target.attempt_ns(), true),
        source: SourcePlan::Scan { action: 0, spaces: Some(spaces), items, bytes },
        actions: vec![action],
        labels: vec![label],
    }
}

/// A flag about versions, which not all targets have.
fn of_versions(table: &mut Table<'_>, key: &'static Key<Flag>, target: &Target) -> bool {
    let wanted = table.value(key);
    let without = match target {
        Target::Swift(_) => "Swift's versions are not supported",
        Target::Embedded(_) => "the S3 server inside Tidemark keeps no versions",
        Target::S3(_) | Target::Mock(_) | Target::Nothing => return wanted,
    };
    if wanted {
        table.meaningless(&[key], without);
    }
    false
}

/// The load that is measured: a mix of operations.
fn load(table: &mut Table<'_>, mut around: Around, target: &Target, environment: &Environment<'_>) -> Doing {
    around.naming.existing = existing::read(table, target, environment);
    let (mut containers, mut objects) = (None, None);
    if let Some(existing) = &around.naming.existing {
        let meaning = "`existing` names the container and its objects";
        table.meaningless(&[&LOAD_CONTAINERS, &LOAD_SIZES, &POOL], meaning);
        containers = Some(Pick::Constant(1));
        objects = Some(existing::all(existing));
    }
    let mut common = Common {
        containers: table.get(&LOAD_CONTAINERS).or(containers),
        objects: table.get(&LOAD_OBJECTS).or(objects),
        sizes: table.get(&LOAD_SIZES),
        division: table.value(&DIVISION),
        pool: None,
    };
    common.pool = table.table(&POOL).map(|pool| read_pool(pool, &common));
    let pacing = pacing(table);
    let stop = ends(table, target.attempt_ns());
    let (mut choices, mut actions, mut labels) = (vec![], vec![], vec![]);
    for (name, kind, settings) in operations_of(table) {
        let index = actions.len() as u16;
        let (choice, action, label) = operation::operation(name, kind, settings, &common, &around, index);
        choices.push(choice);
        actions.push(action);
        labels.push(label);
    }
    check_pool(table, &common, &choices);
    finish_labels(&mut labels);
    Doing {
        pacing,
        stop,
        source: SourcePlan::Mix { choices, pool: common.pool, deck: false },
        actions,
        labels,
    }
}

/// The list of operations: each names its kind and has its settings below.
fn operations_of<'a>(table: &mut Table<'a>) -> Vec<(&'static str, &'static operation::Kind, Table<'a>)> {
    let nodes = table.list(&OPERATIONS);
    if nodes.len() > MOST_OPERATIONS {
        let message = format!("a load has {} operations, more than {MOST_OPERATIONS}", nodes.len());
        table.log().error(table.place(), message, "use selectors rather than many operations");
        return Vec::new();
    }
    let log = table.log();
    let read = |node: &'a Node| {
        if let Value::Scalar(text) = &node.value {
            let help = "write a list such as `- get: {objects: 1-100}`; a number of operations to do is \
                        `total_operations`";
            log.error(&node.span, format!("'{text}' is not an operation with settings"), help);
            return None;
        }
        let (name, entry) = table.single("an operation", "operation", node, &verbs())?;
        let (key, kind) = VERBS.iter().find(|(key, _)| key.name == name.name)?;
        let what = format!("the operation `{}`", key.name);
        Some((key.name, kind, table.part(what, &entry.node, &entry.key_span).of(key.shape.0)))
    };
    nodes.iter().filter_map(read).collect()
}

fn read_pool(mut table: Table<'_>, common: &Common) -> PoolPlan {
    let mut part = |key, common: &Option<Pick>| {
        let own = table.get(key);
        if own.is_none() && common.is_none() && !table.has(key) {
            table.missing(key, "write a range such as 1-100, here or for the whole load");
        }
        own.or_else(|| common.as_ref().map(Pick::bounds)).unwrap_or((1, 1))
    };
    let (spaces, items) = (part(&POOL_CONTAINERS, &common.containers), part(&POOL_OBJECTS, &common.objects));
    let existing = table.get(&EXISTING);
    if let Some((low, high)) = existing
        && (low < items.0 || high > items.1)
    {
        let message = format!("`existing` goes beyond the pool's objects, {}-{}", items.0, items.1);
        table.log().error(table.place(), message, "widen `objects`, or narrow `existing`");
    }
    table.finish();
    PoolPlan { spaces, items, existing }
}

/// Reports a pool that can run dry.
fn check_pool(table: &mut Table<'_>, common: &Common, choices: &[Choice]) {
    let (Some(pool), Some(entry)) = (&common.pool, table.entry(&POOL)) else { return };
    let has = |effect| choices.iter().any(|choice| choice.effect == effect);
    if has(Effect::Makes) {
        return;
    }
    if pool.existing.is_none() {
        let help = "set the objects that exist at the start, such as `existing: 1-100`, or add a `put`";
        table.log().error(&entry.key_span, "the pool is empty and no operation fills it", help);
    } else if has(Effect::Removes) {
        let help = "add a `put`, or expect the load to end when all objects are deleted";
        table.log().warning(
            &entry.key_span,
            "the pool will run empty: the load deletes objects and writes none",
            help,
        );
    }
}

/// Names operations after their kind, numbered where a kind occurs more than once, and turns weights into percent.
fn finish_labels(labels: &mut [Label]) {
    let total: f64 = labels.iter().map(|label| label.weight).sum();
    let kinds: Vec<_> = labels.iter().map(|label| label.kind.clone()).collect();
    for (index, label) in labels.iter_mut().enumerate() {
        label.weight = label.weight / total * 100.0;
        if label.label.is_empty() {
            let before = kinds[..index].iter().filter(|kind| **kind == label.kind).count();
            let several = kinds.iter().filter(|kind| **kind == label.kind).count() > 1;
            label.label = if several { format!("{}-{}", before + 1, label.kind) } else { label.kind.clone() };
        }
    }
}
