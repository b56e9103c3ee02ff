//! Tidemark YAML to a plan. `docs/document.md` is the reference of its keys.
//!
//! Each reader declares the keys that it reads, above it; `tidemark_keys` does the rest. What is given once holds for everything
//! below ([`scope`]).

mod arms;
pub mod context;
mod documents;
mod drivers;
pub mod environment;
mod evaluation;
mod levels;
mod observe;
pub mod scope;
pub mod timing;
mod tuning;
pub mod values;
pub mod works;

pub(crate) use arms::ARM;
pub(crate) use documents::Documents;
pub use drivers::claims_bucket;
pub use environment::Environment;
pub(crate) use evaluation::{ARMS, EVALUATION, EVALUATION_LOAD, evaluation, is_evaluation};
pub(crate) use levels::{LEVELS, RUNS, SEARCH, WITHIN};
pub(crate) use tuning::{PRICES, SETTING, TUNING};

use crate::defaults;
use crate::engine::{ReadWork, WorkPlace};
use crate::plan::{OnFailure, Plan, Stage, Work};
use crate::redact::redact;
use context::{Budget, Context};
use scope::{Lent, Scope};
use std::cell::RefCell;
use std::collections::HashSet;
use tidemark_keys::diagnostic::Diagnostic;
use tidemark_keys::kinds::{Duration, Text, Whole, Word};
use tidemark_keys::shapes::{List, Map, OneOrList, Under};
use tidemark_keys::tree::{self, Node};
use tidemark_keys::{AnyKey, Document, Key, Mapping, Table};
use tidemark_measure::record::Cell;
use tidemark_measure::units;
use works::KINDS;

static NAME: Key<Text> =
    Key::new("name", "Name of the workload", Text).required("begin with `name: my-workload`");
static DESCRIPTION: Key<Text> = Key::new("description", "Purpose", Text);
static SEED: Key<Whole<u64>> =
    Key::new("seed", "Seed of all random choices", Whole(0, u64::MAX)).otherwise("from the text");
static ON_FAILURE: Key<Word<OnFailure>> = Key::new(
    "on_failure",
    "After a failed stage: run only the stages that clean up (stop), or all (continue)",
    Word(&[("stop", OnFailure::Stop), ("continue", OnFailure::Continue)]),
)
.default("stop");
static STAGES: Key<List<Map>> = Key::new("stages", "Stages, in order", List(Map(&STAGE)))
    .required("write a list of stages, each with its works");

/// A workload document, but for what may stand at every level.
pub(crate) static WORKLOAD: Mapping = Mapping::new(
    "workload",
    "A workload: stages that run in order",
    &[&NAME, &DESCRIPTION, &SEED, &ON_FAILURE, &observe::OBSERVE, &drivers::DRIVERS, &STAGES],
);

static STAGE_NAME: Key<Text> = Key::new("name", "Name of the stage", Text).otherwise("its first work's name");
static WORKS: Key<OneOrList<Under>> = Key::new(
    "works",
    "Works that run concurrently, each under its kind: `- load: {...}`",
    OneOrList(Under(works::kinds)),
);
static PAUSE: Key<Duration> =
    Key::new("pause", "Pause after its works; a stage with only a pause waits", Duration).default("0");
static TRIGGER: Key<Text> =
    Key::new("trigger", "`script.sh(arguments)` around the stage; runs only if the operator allows it", Text);
static STAGE_ON_FAILURE: Key<Word<OnFailure>> =
    Key::new("on_failure", ON_FAILURE.about, Word(ON_FAILURE.shape.0)).otherwise("the document's");

/// A stage, but for its work and what may stand at every level.
pub(crate) static STAGE: Mapping = Mapping::new(
    "stage",
    "A stage: a work, or works that run concurrently, and then a pause",
    &[&STAGE_NAME, &WORKS, &PAUSE, &TRIGGER, &STAGE_ON_FAILURE],
);

/// Reads a document; variables and secret files come from `environment`. With the plan come warnings.
///
/// # Errors
/// All errors and warnings, in document order.
pub fn read(text: &str, environment: &Environment<'_>) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let root = tree::parse(text).map_err(|broken| vec![broken])?;
    let document = Document::new(text, environment.outside());
    let table = Table::new("the document", &root, &(0..0), &document);
    let plan = workload(table, environment, text, Lent::default());
    match document.log.close() {
        (warnings, false) => Ok((plan, warnings)),
        (remarks, true) => Err(remarks),
    }
}

fn workload<'a>(table: Table<'a>, environment: &Environment<'_>, text: &str, lent: Lent) -> Plan {
    let mut table = table.of(&WORKLOAD);
    let (name, description) = (table.value(&NAME), table.value(&DESCRIPTION));
    // Of the document without its secrets: the seed is stored and shown.
    let own = table.get(&SEED);
    let seed = lent.seed.or(own).unwrap_or_else(|| defaults::seed_of(&redact(text)));
    let on_failure = table.value(&ON_FAILURE);
    let scope = Scope::of(lent.target, lent.broken).within(&mut table, environment);
    let observe = observe::observe(&mut table);
    let drivers = drivers::drivers(&mut table).or(lent.drivers).unwrap_or_default();
    let missing_target = lent.missing.unwrap_or_else(|| (0..0, "the document has no `target`".to_owned()));
    let context =
        Context { environment, seed, budget: Budget::default(), missing_target, notes: RefCell::default() };
    let nodes = at_most(defaults::MOST_STAGES, "stages", table.list(&STAGES), &table);
    let (mut stages, mut names) = (Vec::new(), Names::default());
    for node in nodes {
        if !(environment.waited_for)() {
            table.log().push(environment::given_up());
            break;
        }
        let made = stage(&table, node, stages.len(), &mut names, &scope, on_failure, &context);
        stages.extend(made);
        if context.budget.is_spent() {
            break;
        }
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

/// The items of a list, unless there are so many that it is taken for a mistake.
fn at_most<'a>(most: usize, what: &str, nodes: &'a [Node], table: &Table<'a>) -> &'a [Node] {
    if nodes.len() <= most {
        return nodes;
    }
    let (count, most) = (units::count(nodes.len() as u64), units::count(most as u64));
    table.log().error(table.place(), format!("there are {count} {what}; the limit is {most}"), "use fewer");
    &[]
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
    let mut table = document.part("a stage", node, &node.span).of(&STAGE);
    table.declare(works::kinds());
    let name = table.get(&STAGE_NAME);
    let scope = scope.within(&mut table, context.environment);
    let pause_ns = table.value(&PAUSE);
    let trigger = table.get(&TRIGGER);
    let on_failure = table.get(&STAGE_ON_FAILURE).unwrap_or(on_failure);
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
    let place = |keyword: &'static str, index: usize, alone: bool| {
        let kind = KINDS.iter().find(|(key, _)| key.name == keyword).map(|(_, kind)| *kind);
        WorkPlace { keyword, kind: kind.unwrap_or_default(), stream: [stage as u64, index as u64], alone }
    };
    let found = works::kinds().into_iter().filter_map(|key| Some((key, table.present(key)?)));
    let found: Vec<(&AnyKey, _)> = found.collect();
    if let (Some((first, _)), Some(list)) = (found.first(), table.entry(&WORKS)) {
        let (first, help) = (first.name, format!("move `{}` into the list under `works`", first.name));
        table.log().error(&list.key_span, format!("the stage has `{first}` and `works`"), help);
    }
    if let [(first, _), (second, entry), ..] = found[..] {
        let message = format!("the stage has both `{}` and `{}`", first.name, second.name);
        let help = "make them two stages, or write them under `works` to run side by side";
        table.log().error(&entry.key_span, message, help);
    }
    if !table.has(&WORKS) {
        let Some((key, entry)) = found.first() else {
            if !table.has(&PAUSE) {
                let names = KINDS.each_ref().map(|(key, _)| key.name).join(", ");
                let help = format!("add one of {names}, a list under `works`, or a `pause`");
                table.log().error(table.place(), "the stage does nothing", help);
            }
            return Vec::new();
        };
        let mut made =
            works::work(place(key.name, 0, true), &entry.node, table.below(*key, entry), scope, context);
        let fit = made.iter().take_while(|made| context.budget.work(&made.work, table)).count();
        made.truncate(fit);
        return made;
    }
    let (mut works, mut taken) = (Vec::new(), HashSet::new());
    for node in at_most(defaults::MOST_WORKS, "works", table.list(&WORKS), table) {
        if !(context.environment.waited_for)() {
            table.log().push(environment::given_up());
            break;
        }
        let Some((key, entry)) = table.single("a work", "kind of work", node, &works::kinds()) else {
            continue;
        };
        let place = place(key.name, works.len(), false);
        for mut next in works::work(place, &entry.node, table.below(key, entry), scope, context) {
            if !taken.insert(next.work.name.clone()) {
                next.work.name = format!("{}-{}", next.work.name, works.len() + 1);
                taken.insert(next.work.name.clone());
            }
            if !context.budget.work(&next.work, table) {
                return works;
            }
            works.push(next);
        }
    }
    works
}
