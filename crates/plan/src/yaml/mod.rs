//! Tidemark YAML to a plan. `docs/document.md` is the reference of its keys.
//!
//! The text becomes a tree in which everything knows its place ([`tree`]); the tree is read mapping by mapping,
//! with typed questions ([`table`]); what is given once holds for everything below ([`scope`]).

mod arms;
#[cfg(feature = "record-keys")]
pub mod asked;
pub mod context;
mod documents;
mod drivers;
pub mod environment;
mod evaluation;
pub mod levels;
mod observe;
pub mod scope;
pub mod table;
pub mod timing;
pub mod tree;
pub mod values;
pub mod works;

pub(crate) use documents::Documents;
pub use environment::Environment;
pub(crate) use evaluation::{evaluation, is_evaluation};

use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::engine::{ReadWork, WorkPlace};
use crate::plan::{OnFailure, Plan, Stage, Work, WorkKind};
use crate::redact::redact;
use context::{Budget, Context};
use scope::{Lent, Scope};
use std::cell::RefCell;
use std::collections::HashSet;
use table::{Log, Table};
use tidemark_measure::record::Cell;
use tree::Node;
use works::KINDS;

/// Reads a document; variables and secret files come from `environment`. With the plan come warnings.
///
/// # Errors
/// All errors and warnings, in document order.
pub fn read(text: &str, environment: &Environment<'_>) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let root = tree::parse(text).map_err(|broken| vec![broken])?;
    let log = Log::default();
    let table = Table::new("the document", &root, &(0..0), text, &log);
    let plan = workload(table, environment, text, Lent::default());
    match log.close() {
        (warnings, false) => Ok((plan, warnings)),
        (remarks, true) => Err(remarks),
    }
}

fn workload<'a>(mut table: Table<'a>, environment: &Environment<'_>, text: &str, lent: Lent) -> Plan {
    let name = table.required("name", "begin with `name: my-workload`", table::text).unwrap_or_default();
    let description = table.text("description").unwrap_or_default();
    // Of the document without its secrets: the seed is stored and shown.
    let own = table.whole("seed", 0..=u64::MAX);
    let seed = lent.seed.or(own).unwrap_or_else(|| defaults::seed_of(&redact(text)));
    let on_failure = on_failure(&mut table).unwrap_or_default();
    let scope = Scope::of(lent.target).within(&mut table, environment);
    let observe = observe::observe(&mut table);
    let drivers = drivers::drivers(&mut table).or(lent.drivers).unwrap_or_default();
    let missing_target = lent.missing.unwrap_or_else(|| (0..0, "the document has no `target`".to_owned()));
    let context =
        Context { environment, seed, budget: Budget::default(), missing_target, notes: RefCell::default() };
    let nodes = table.list("stages").filter(|nodes| !nodes.is_empty()).unwrap_or_else(|| {
        table.missing("stages", "write a list of stages, each with its works");
        &[]
    });
    let (mut stages, mut names) = (Vec::new(), Names::default());
    for node in nodes {
        let made = stage(&table, node, stages.len(), &mut names, &scope, on_failure, &context);
        stages.extend(made);
    }
    drivers::check_pins(&mut table, &drivers, &stages);
    table.finish();
    Plan {
        name,
        description,
        seed,
        trigger: None,
        stages,
        notes: context.notes.into_inner(),
        observe,
        drivers,
    }
}

/// Reads a stage, or those that a sweep makes of it. `index` is the first one's.
fn stage<'a>(
    document: &Table<'a>,
    node: &'a Node,
    index: usize,
    names: &mut Names,
    scope: &Scope<'a>,
    on_failure: OnFailure,
    context: &Context<'_>,
) -> Vec<Stage> {
    let mut table = document.part("a stage", node, &node.span);
    let name = table.text("name");
    let scope = scope.within(&mut table, context.environment);
    let pause_ns = table.duration("pause").unwrap_or(0);
    let trigger = table.text("trigger");
    let on_failure = self::on_failure(&mut table).unwrap_or(on_failure);
    let works = works(&mut table, index, &scope, context);
    table.finish();
    let stage = |name: String, works: Vec<Work>, cell: Option<Cell>| Stage {
        number: None,
        name,
        works,
        pause_ns,
        trigger: trigger.clone(),
        on_failure,
        cell,
    };
    if works.iter().any(|made| made.point.is_some()) {
        let named = name.or_else(|| works.first().map(|made| made.work.name.clone()));
        let sweep = names.sweep(named.unwrap_or_default());
        let made = |made: ReadWork| {
            let point = made.point?;
            let cell = Cell { sweep: sweep.clone(), ..point.cell };
            Some(stage(names.stage(&sweep, point.name), vec![made.work], Some(cell)))
        };
        return works.into_iter().filter_map(made).collect();
    }
    let works: Vec<Work> = works.into_iter().map(|made| made.work).collect();
    let usual = || works.first().map_or_else(|| format!("stage-{}", index + 1), |work| work.name.clone());
    vec![stage(name.unwrap_or_else(usual), works, None)]
}

/// Unique names of sweeps and their stages.
#[derive(Default)]
struct Names {
    sweeps: HashSet<String>,
    points: HashSet<String>,
}

impl Names {
    /// The name of a sweep: numbered where it is taken.
    fn sweep(&mut self, wanted: String) -> String {
        let mut names = (2u64..).map(|number| format!("{wanted}-{number}"));
        let free = match self.sweeps.contains(&wanted) {
            true => names.find(|name| !self.sweeps.contains(name)).unwrap_or_default(),
            false => wanted,
        };
        self.sweeps.insert(free.clone());
        free
    }

    /// The name of a sweep's stage: the point's, with the sweep's in front of it where it is taken.
    fn stage(&mut self, sweep: &str, point: String) -> String {
        let name = if self.points.contains(&point) { format!("{sweep}: {point}") } else { point };
        self.points.insert(name.clone());
        name
    }
}

/// The works of a stage: one under its kind, or a list of them under `works`. One that is a sweep gives all of its
/// points.
fn works<'a>(table: &mut Table<'a>, stage: usize, scope: &Scope<'a>, context: &Context<'_>) -> Vec<ReadWork> {
    let stream = |index: usize| [stage as u64, index as u64];
    let mut kinds: Vec<(&'static str, WorkKind)> = KINDS.to_vec();
    kinds.retain(|(name, _)| table.present(name).is_some());
    if let (Some((first, _)), Some(list)) = (kinds.first(), table.entry("works")) {
        let message = format!("the stage has `{first}` and `works`");
        table.log().error(&list.key_span, message, format!("move `{first}` into the list under `works`"));
    }
    if let [(first, _), (second, _), ..] = kinds[..] {
        let place = table.present(second).map_or(0..0, |entry| entry.key_span.clone());
        let help = "make them two stages, or write them under `works` to run side by side";
        table.log().error(&place, format!("the stage has both `{first}` and `{second}`"), help);
    }
    let Some(nodes) = table.list("works") else {
        let kind = kinds.first().copied();
        if kind.is_none() && !table.has("pause") {
            let names = KINDS.map(|(name, _)| name).join(", ");
            let help = format!("add one of {names}, a list under `works`, or a `pause`");
            table.log().error(table.place(), "the stage does nothing", help);
        }
        let Some((kind, entry)) = kind.and_then(|kind| Some((kind, table.present(kind.0)?))) else {
            return Vec::new();
        };
        let place = WorkPlace { keyword: kind.0, kind: kind.1, stream: stream(0), alone: true };
        return works::work(place, table.below(format!("`{}`", kind.0), entry), scope, context);
    };
    let (mut works, mut taken) = (Vec::new(), HashSet::new());
    for node in nodes {
        let Some(entry) = Table::single(node, "a work", table.log()) else { continue };
        let Some(kind) = KINDS.into_iter().find(|(name, _)| *name == entry.key) else {
            works::unknown(entry, "kind of work", KINDS.iter().map(|(name, _)| *name), table.log());
            continue;
        };
        let below = table.below(format!("`{}`", kind.0), entry);
        let place = WorkPlace { keyword: kind.0, kind: kind.1, stream: stream(works.len()), alone: false };
        for mut next in works::work(place, below, scope, context) {
            if !taken.insert(next.work.name.clone()) {
                next.work.name = format!("{}-{}", next.work.name, works.len() + 1);
                taken.insert(next.work.name.clone());
            }
            works.push(next);
        }
    }
    works
}

fn on_failure(table: &mut Table<'_>) -> Option<OnFailure> {
    table.word("on_failure", &[("stop", OnFailure::Stop), ("continue", OnFailure::Continue)])
}
