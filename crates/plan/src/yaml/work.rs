//! The works of a stage. On objects: those that go once through a range, and the load that is measured.

use super::block;
use super::context::Context;
use super::load::Point;
use super::operation::{self, Common, DIVISIONS, VERBS};
use super::scope::Scope;
use super::table::{Problem, Table};
use super::target::Target;
use super::tree::{Entry, Node, Value};
use crate::defaults;
use crate::nearest::nearest;
use crate::object::{self, Action, Job, Verb};
use crate::plan::{Engine, Label, Work, WorkKind};
use crate::selector;
use tidemark_load::pacing::{Arrivals, Pacing, Rate};
use tidemark_load::source::{PoolPlan, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_measure::units;

/// The kinds of works, as documents call them.
pub(super) const KINDS: [(&str, WorkKind); 6] = [
    ("init", WorkKind::Init),
    ("prepare", WorkKind::Prepare),
    ("precondition", WorkKind::Prepare),
    ("load", WorkKind::Normal),
    ("cleanup", WorkKind::Cleanup),
    ("dispose", WorkKind::Dispose),
];

/// Operations of one load beyond this are treated as a mistake.
const MOST_OPERATIONS: usize = 1000;

/// A work that was read, and the point of a sweep that it is.
pub(super) struct Made {
    pub(super) work: Work,
    pub(super) point: Option<Point>,
}

/// What a work does: its operations in the load core's terms, in the engine's, and in reports.
struct Doing {
    pacing: Pacing,
    stop: Stop,
    source: SourcePlan,
    actions: Vec<Action>,
    labels: Vec<Label>,
}

/// Reads the work under the key of its kind: one, or those that a sweep makes of it. `stream` is its stage and
/// its place in the stage; `alone` means that the stage has no other.
pub(super) fn work(
    kind: (&'static str, WorkKind),
    mut table: Table<'_>,
    scope: &Scope,
    context: &Context<'_>,
    (stream, alone): ([u64; 2], bool),
) -> Vec<Made> {
    let scope = scope.within(&mut table, context.environment);
    let target = match &scope.target {
        Some(Target::Block(volumes)) => {
            return block::work(kind, table, volumes, &scope, context, (stream, alone));
        }
        Some(Target::Object(target)) => object::Target::clone(target),
        None => {
            let help = "write `target: {kind: s3, endpoint: ..., ...}`, or `target: embedded` to try it out";
            let (place, message) = &context.missing_target;
            table.log().error(place, message, help);
            object::Target::Nothing
        }
    };
    vec![Made::alone(on_objects(kind, table, target, &scope, context, stream))]
}

/// Reads a work on objects.
fn on_objects(
    kind: (&str, WorkKind),
    mut table: Table<'_>,
    target: object::Target,
    scope: &Scope,
    context: &Context<'_>,
    stream: [u64; 2],
) -> Work {
    if kind.0 == "precondition" {
        let help = "remove it, or use `target: {kind: file, ...}`, `device` or `rbd`";
        table.log().error(
            table.place(),
            "`precondition` does not apply to objects: it is for block storage",
            help,
        );
    }
    let name = table.text("name").unwrap_or_else(|| kind.0.to_owned());
    let workers = table.small("workers", 1..=defaults::MOST_WORKERS).unwrap_or(1);
    let usual = if kind.1 == WorkKind::Normal { defaults::ALLOWED_FAILURES } else { 0 };
    let allowed = table.share("allowed_failures").map_or(usual, |share| (share * 1e6).round() as u32);
    let driver = table.text("driver");
    let doing = match kind.1 {
        WorkKind::Normal => load(&mut table, scope, &target),
        _ => scan(&mut table, kind, scope, &target),
    };
    table.finish();
    let Doing { pacing, stop, source, actions, labels } = doing;
    let count = actions.len() as u16;
    Work {
        name,
        kind: kind.1,
        load: Load {
            workers,
            depth: 1,
            pacing,
            stop,
            source,
            finale: None,
            actions: count,
            seed: context.seed,
            stream,
        },
        engine: Engine::Object(Job { target, actions }),
        labels,
        allowed_failures_per_million: allowed,
        driver,
    }
}

/// A work that does one thing once to every container or object of a range.
fn scan(
    table: &mut Table<'_>,
    (name, kind): (&str, WorkKind),
    scope: &Scope,
    target: &object::Target,
) -> Doing {
    let spaces = range(table, "containers");
    let on_objects = matches!(kind, WorkKind::Prepare | WorkKind::Cleanup);
    let items = on_objects.then(|| range(table, "objects"));
    let mut bytes = operation::constant(0);
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
        _ => Verb::DeleteContainer { empty: table.flag("empty").unwrap_or(false) },
    };
    let sample = match kind {
        WorkKind::Prepare => "write",
        WorkKind::Cleanup => "delete",
        _ => name,
    };
    let sequence = |(low, high)| Pick::Sequence { low, high };
    let shown = items.map(sequence);
    let label = Label {
        label: name.to_owned(),
        kind: name.to_owned(),
        sample: sample.to_owned(),
        weight: 100.0,
        config: operation::config(&sequence(spaces), shown.as_ref(), sized.then_some(&bytes)),
    };
    let action = Action { verb, naming: scope.naming.clone(), content: scope.content };
    Doing {
        pacing: Pacing::Closed { think_ns: table.duration("think").unwrap_or(0) },
        stop: stop(table, Some(target), true),
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

/// A range with an end: `1-100`, `r(1,100)`, or a number alone.
fn bounds(text: &str) -> Result<(u64, u64), Problem> {
    match operation::pick(text)? {
        Pick::Constant(number) => Ok((number, number)),
        _ => selector::range(text)?
            .ok_or_else(|| Problem::new("the range is empty", "write a range such as 1-100")),
    }
}

/// The load that is measured: a mix of operations.
fn load(table: &mut Table<'_>, scope: &Scope, target: &object::Target) -> Doing {
    let mut common = Common {
        containers: table.read("containers", operation::pick),
        objects: table.read("objects", operation::pick),
        sizes: table.read("sizes", operation::size),
        division: table.word("division", &DIVISIONS).unwrap_or_default(),
        pool: None,
    };
    common.pool = table.table("pool").map(|pool| read_pool(pool, &common));
    let pacing = pacing(table);
    let stop = ends(table, Some(target));
    let (mut choices, mut actions, mut labels) = (vec![], vec![], vec![]);
    for (name, kind, settings) in operations_of(table) {
        let index = actions.len() as u16;
        let (choice, action, label) = operation::operation(name, kind, settings, &common, scope, index);
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
        Some((*name, *kind, table.below(format!("the operation `{name}`"), entry)))
    };
    nodes.iter().filter_map(read).collect()
}

/// Reports a key that should name one of several kinds.
pub(super) fn unknown<'k>(
    entry: &Entry,
    what: &str,
    known: impl Iterator<Item = &'k str> + Clone,
    log: &super::table::Log,
) {
    let all = known.clone().collect::<Vec<_>>().join(", ");
    let help = match nearest(&entry.key, known) {
        Some(near) => format!("did you mean `{near}`? Choose from {all}"),
        None => format!("choose from {all}"),
    };
    log.error(&entry.key_span, format!("`{}` is not a known {what}", entry.key), help);
}

/// How a load ends, and what comes before and after its window.
pub(super) fn ends(table: &mut Table<'_>, target: Option<&object::Target>) -> Stop {
    let window_ns = table.positive_duration("for");
    let operations = table.whole("total_operations", 1..=u64::MAX);
    let bytes = table.bytes("total_bytes", 1);
    if !(table.has("for") || table.has("total_operations") || table.has("total_bytes")) {
        table.missing("for", "set its length, such as `for: 60s`, `total_operations` or `total_bytes`");
    }
    Stop {
        ramp_up_ns: table.duration("ramp_up").unwrap_or(0),
        warm_up_ns: table.duration("warm_up").unwrap_or(0),
        window_ns,
        ramp_down_ns: table.duration("ramp_down").unwrap_or(0),
        operations,
        bytes,
        ..stop(table, target, window_ns.is_none())
    }
}

/// When the operations of a load are due.
pub(super) fn pacing(table: &mut Table<'_>) -> Pacing {
    table.contradiction("think", "rate", "with a rate, operations are due at fixed times");
    let think_ns = table.duration("think").unwrap_or(0);
    let arrivals = [("constant", Arrivals::Constant), ("poisson", Arrivals::Poisson)];
    let arrivals = table.word("arrivals", &arrivals);
    let Some(entry) = table.entry("rate") else {
        table.meaningless(&["arrivals"], "without `rate`, workers wait for each operation to end");
        return Pacing::Closed { think_ns };
    };
    let points = match &entry.node.value {
        Value::List(nodes) => nodes.iter().filter_map(|node| point(table, node, entry)).collect(),
        _ => vec![(0, table.scalar(&entry.node, "rate", rate).unwrap_or(1.0))],
    };
    let log = table.log();
    if points.windows(2).any(|pair| pair[0].0 > pair[1].0) {
        log.error(&entry.key_span, "the points of `rate` are not in order of time", "order them by `at`");
    }
    if points.iter().all(|(_, rate)| *rate == 0.0) {
        log.error(&entry.key_span, "`rate` is never above zero", "write a rate such as 500/s");
    }
    Pacing::Open { rate: Rate { points }, arrivals: arrivals.unwrap_or(Arrivals::Constant) }
}

/// One point of a rate that changes over time.
fn point(table: &Table<'_>, node: &Node, rate_entry: &Entry) -> Option<(u64, f64)> {
    let Value::Map(_) = &node.value else {
        let help = "write points such as {at: 30s, rate: 500/s}";
        table.log().error(&rate_entry.key_span, "a list of rates needs times", help);
        return None;
    };
    let mut point = table.part("a point of `rate`", node, &rate_entry.key_span);
    let at = point.required("at", "add the time since the load's start, such as 30s", |text| {
        Ok(units::parse_duration_ns(text)?)
    });
    let rate = point.required("rate", "add the rate, such as 500/s", rate);
    point.finish();
    Some((at?, rate?))
}

/// Operations per second.
pub(super) fn rate(text: &str) -> Result<f64, Problem> {
    match units::parse_rate(text)? {
        rate if rate <= 1e9 => Ok(rate),
        _ => Err(Problem::new(format!("'{text}' is too high"), "write at most 1000M/s")),
    }
}

/// How a work ends when it does not end as planned: common to all kinds. One that ends by itself, rather than
/// by time, is given up unless the document sets it otherwise.
pub(super) fn stop(table: &mut Table<'_>, target: Option<&object::Target>, ends_by_itself: bool) -> Stop {
    let give_up = table.read("give_up", |text| match text {
        "never" => Ok(None),
        _ => match units::parse_duration_ns(text)? {
            0 => Err(Problem::new("the duration is zero", "write a duration such as 60s, or never")),
            ns => Ok(Some(ns)),
        },
    });
    Stop {
        drain_ns: table.duration("drain").unwrap_or_else(|| defaults::drain_ns(target)),
        give_up_ns: give_up.unwrap_or_else(|| ends_by_itself.then(|| defaults::give_up_ns(target))),
        ..Stop::default()
    }
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
fn check_pool(table: &mut Table<'_>, common: &Common, choices: &[tidemark_load::source::Choice]) {
    use tidemark_load::source::Effect;
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
