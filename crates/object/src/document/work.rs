//! The works of a stage: those that go once through a range, and the load that is measured.

use super::naming;
use super::operation::{self, Around, Common, DIVISIONS, VERBS};
use crate::job::{Action, Job, Target, Verb};
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Effect, PoolPlan, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_plan::content;
use tidemark_plan::defaults;
use tidemark_plan::engine::WorkPlace;
use tidemark_plan::plan::{Label, OperationClass, Work, WorkKind};
use tidemark_plan::yaml::scope::Scope;
use tidemark_plan::yaml::table::Table;
use tidemark_plan::yaml::timing::{self, ends, pacing};
use tidemark_plan::yaml::tree::{Node, Value};
use tidemark_plan::yaml::values::{self, bounds};
use tidemark_plan::yaml::works::unknown;

/// Operations of one load beyond this are treated as a mistake.
const MOST_OPERATIONS: usize = 1000;

/// What a work does: its operations in the load core's terms, in the engine's, and in reports.
struct Doing {
    pacing: Pacing,
    stop: Stop,
    source: SourcePlan,
    actions: Vec<Action>,
    labels: Vec<Label>,
}

/// Reads a work; all random choices come from `seed`.
pub(crate) fn work(
    place: WorkPlace,
    mut table: Table<'_>,
    target: Target,
    scope: &Scope<'_>,
    seed: u64,
) -> Work {
    if place.keyword == "precondition" {
        let help = "remove it, or use `target: {kind: file, ...}`, `device` or `rbd`";
        table.log().error(
            table.place(),
            "`precondition` does not apply to objects: it is for block storage",
            help,
        );
    }
    let around = Around { naming: naming::naming(scope, &table), content: content::content(scope, &table) };
    let name = table.text("name").unwrap_or_else(|| place.keyword.to_owned());
    let workers = table.small("workers", 1..=defaults::MOST_WORKERS).unwrap_or(1);
    let usual = if place.kind == WorkKind::Normal { defaults::ALLOWED_FAILURES } else { 0 };
    let allowed = table.share("allowed_failures").map_or(usual, |share| (share * 1e6).round() as u32);
    let driver = table.text("driver");
    let doing = match place.kind {
        WorkKind::Normal => load(&mut table, &around, &target),
        _ => scan(&mut table, (place.keyword, place.kind), around, &target),
    };
    table.finish();
    let Doing { pacing, stop, source, actions, labels } = doing;
    let count = actions.len() as u16;
    Work {
        name,
        kind: place.kind,
        load: Load {
            workers,
            depth: 1,
            pacing,
            stop,
            source,
            finale: None,
            actions: count,
            seed,
            stream: place.stream,
        },
        job: tidemark_plan::job::Job::new(Job { target, actions }),
        labels,
        allowed_failures_per_million: allowed,
        driver,
    }
}

/// A work that does one thing once to every container or object of a range.
fn scan(table: &mut Table<'_>, (name, kind): (&str, WorkKind), around: Around, target: &Target) -> Doing {
    let spaces = range(table, "containers");
    let on_objects = matches!(kind, WorkKind::Prepare | WorkKind::Cleanup);
    let items = on_objects.then(|| range(table, "objects"));
    let mut bytes = values::constant(0);
    let mut sized = false;
    let verb = match kind {
        WorkKind::Init => Verb::CreateContainer,
        WorkKind::Prepare if table.has("directory") => {
            let directory = operation::directory(table).unwrap_or_default();
            Verb::PutFile { directory, part_bytes: table.bytes("part", 1) }
        }
        WorkKind::Prepare => {
            bytes = operation::sizes(table, &None);
            sized = true;
            operation::put(table)
        }
        WorkKind::Cleanup => Verb::Clear,
        _ => Verb::DeleteContainer { empty: operation::emptied(table) },
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
        config: operation::config(&sequence(spaces), shown.as_ref(), sized.then_some(&bytes)),
    };
    let action = Action { verb, naming: around.naming, content: around.content };
    Doing {
        pacing: Pacing::Closed { think_ns: table.duration("think").unwrap_or(0) },
        stop: timing::stop(table, target.attempt_ns(), true),
        source: SourcePlan::Scan { action: 0, spaces: Some(spaces), items, bytes },
        actions: vec![action],
        labels: vec![label],
    }
}

/// The range that a scan goes through; an error when there is none.
fn range(table: &mut Table<'_>, key: &'static str) -> (u64, u64) {
    let read = table.required(key, "write the range to go through, such as 1-100", bounds);
    read.unwrap_or((1, 1))
}

/// The load that is measured: a mix of operations.
fn load(table: &mut Table<'_>, around: &Around, target: &Target) -> Doing {
    let mut common = Common {
        containers: table.read("containers", values::pick),
        objects: table.read("objects", values::pick),
        sizes: table.read("sizes", values::size),
        division: table.word("division", &DIVISIONS).unwrap_or_default(),
        pool: None,
    };
    common.pool = table.table("pool").map(|pool| read_pool(pool, &common));
    let pacing = pacing(table);
    let stop = ends(table, target.attempt_ns());
    let (mut choices, mut actions, mut labels) = (vec![], vec![], vec![]);
    for (name, kind, settings) in operations_of(table) {
        let index = actions.len() as u16;
        let (choice, action, label) = operation::operation(name, &kind, settings, &common, around, index);
        choices.push(choice);
        actions.push(action);
        labels.push(label);
    }
    check_pool(table, &common, &choices);
    finish_labels(&mut labels);
    Doing { pacing, stop, source: SourcePlan::Mix { choices, pool: common.pool }, actions, labels }
}

/// The list of operations: each names its kind and has its settings below.
fn operations_of<'a>(table: &mut Table<'a>) -> Vec<(&'static str, operation::Kind, Table<'a>)> {
    let Some(nodes) = table.list("operations") else {
        table.missing("operations", "write a list such as `- get: {objects: 1-100}`");
        return Vec::new();
    };
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
        let entry = Table::single(node, "an operation", log)?;
        let Some((name, kind)) = VERBS.iter().find(|(name, _)| *name == entry.key) else {
            unknown(entry, "operation", VERBS.iter().map(|(name, _)| *name), log);
            return None;
        };
        Some((*name, kind.clone(), table.below(format!("the operation `{name}`"), entry)))
    };
    nodes.iter().filter_map(read).collect()
}

fn read_pool(mut table: Table<'_>, common: &Common) -> PoolPlan {
    let mut part = |key: &'static str, common: &Option<Pick>| {
        let own = table.read(key, bounds);
        if own.is_none() && common.is_none() && !table.has(key) {
            table.missing(key, "write a range such as 1-100, here or for the whole load");
        }
        own.or_else(|| common.as_ref().map(Pick::bounds)).unwrap_or((1, 1))
    };
    let (spaces, items) = (part("containers", &common.containers), part("objects", &common.objects));
    let existing = table.read("existing", bounds);
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
    let (Some(pool), Some(entry)) = (&common.pool, table.entry("pool")) else { return };
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
