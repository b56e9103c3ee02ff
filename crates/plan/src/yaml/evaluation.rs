//! Evaluation documents to an [`Evaluation`]: the outermost mapping, and its loads.

use super::arms::{ARM, arms, unique};
use super::documents::{Body, Documents, LoadSource, canonical};
use super::drivers::{DRIVERS, drivers};
use super::levels::{self, Given, LEVELS, Places, SEARCH};
use super::observe::{OBSERVE, observe};
use super::tuning::{self, TUNE};
use super::{Environment, ON_FAILURE, STAGE, environment, scope};
use crate::defaults;
use crate::evaluation::{Evaluation, Levels, Load, ORDERS, Order};
use crate::level::LevelAxis;
use crate::redact::{self, redact};
use crate::registry::Registry;
use std::ops::Range;
use std::path::Path;
use tidemark_keys::diagnostic::Diagnostic;
use tidemark_keys::kinds::{Kind as _, Parsed, Share, Text, Whole, Word};
use tidemark_keys::shapes::{Either, List, Map};
use tidemark_keys::tree::{self, Entry, Node, Value};
use tidemark_keys::{AnyKey, Document, Key, Mapping, Problem, Table};
use tidemark_measure::evaluation::{Level, REPEATS_LEAST};
use tidemark_measure::record::Note;
use tidemark_measure::service_level::ServiceLevel;
use tidemark_measure::units;

static NAME: Key<Text> =
    Key::new("name", "Name of the evaluation", Text).required("begin with `name: my-evaluation`");
static DESCRIPTION: Key<Text> = Key::new("description", "The question to answer", Text);
static SEED: Key<Whole<u64>> = Key::new(
    "seed",
    "Seed of all random choices: the same on all arms in a repeat, different between repeats",
    Whole(0, u64::MAX),
)
.otherwise("from the name");
/// The arms: what makes a document an evaluation.
pub(crate) static ARMS: Key<List<Map>> =
    Key::new("arms", "What to compare, up to 100; the first is the baseline", List(Map(&ARM)))
        .required("list what to compare, the baseline first: `- {name: disk, target: ...}`");
static LOADS: Key<List<Map>> =
    Key::new("loads", "Loads to run on each arm, up to 1000", List(Map(&EVALUATION_LOAD)))
        .required("write a list of loads: `- {name: small-objects, document: small.xml}`");
static REPEATS: Key<Either<Whole<u32>, Map>> = Key::new(
    "repeats",
    "How many times to measure each cell (an arm, a load, a level); two give an interval, three or more a useful one. Or until \
     it is known exactly enough",
    Either(Whole(1, 1000), Map(&UNTIL_NARROW)),
)
.default("1");

static UNTIL_NARROW: Mapping =
    Mapping::new("repeats", "Repeats until every cell is known exactly enough", &[&UNTIL, &MOST]);

static UNTIL: Key<Parsed<f64>> = Key::new(
    "until",
    "How far the 95 % interval of a cell's throughput (mean response time of open loops) may reach to each side: at least five \
     repeats, then one more of all arms at a level until that is so on each",
    Parsed("share, 0.1 % to 50 %", |text| match Share.read(text)? {
        share if (0.001..=0.5).contains(&share) => Ok(share),
        _ => Err(Problem::new(format!("'{text}' is out of range"), "write from 0.1% to 50%, such as 3%")),
    }),
)
.required("say how exactly: `repeats: {until: 3%, most: 20}`");
static MOST: Key<Whole<u32>> =
    Key::new("most", "The budget: no cell gets more repeats", Whole(REPEATS_LEAST, 1000)).default("20");
static ORDER: Key<Word<Order>> = Key::new("order", "Order of the runs", Word(&ORDERS)).default("interleaved");
static SERVICE_LEVEL: Key<Parsed<ServiceLevel>> = Key::new(
    "service_level",
    "Condition that a load must meet to count",
    Parsed("conditions", |text| Ok(ServiceLevel::parse(text)?)),
)
.example("p95 <= 200ms + size / 1MBps and failures <= 0.1%");

/// An evaluation document.
pub(crate) static EVALUATION: Mapping = Mapping::new(
    "evaluation",
    "An evaluation: arms x loads x levels x repeats",
    &[&NAME, &DESCRIPTION, &SEED, &ARMS, &LOADS, &REPEATS, &ORDER, &TUNE, &OBSERVE, &DRIVERS],
)
.with(&[&INTENSITIES]);

/// What the evaluation gives for all loads, and a load for itself.
static INTENSITIES: Mapping = Mapping::new(
    "intensities",
    "How hard loads are driven: for all loads, or for one",
    &[&LEVELS, &SEARCH, &SERVICE_LEVEL],
);

static LOAD_NAME: Key<Text> =
    Key::new("name", "Name of the load", Text).required("add the load's name, such as `name: small`");
static LOAD_DESCRIPTION: Key<Text> = Key::new("description", "Description", Text);
static DOCUMENT: Key<Text> = Key::new(
    "document",
    "A workload, a COSBench file or a fio job file; relative to the evaluation's directory",
    Text,
)
.otherwise("this or `stages` is required");
static LOAD_STAGES: Key<List<Map>> = Key::new("stages", "Stages, in order", List(Map(&STAGE)));

/// One load, but for what may stand at every level.
pub(crate) static EVALUATION_LOAD: Mapping = Mapping::new(
    "evaluation_load",
    "One load: the keys of a workload, or the path of a document",
    &[&LOAD_NAME, &LOAD_DESCRIPTION, &DOCUMENT, &LOAD_STAGES, &ON_FAILURE, &OBSERVE, &DRIVERS],
)
.with(&[&INTENSITIES])
.one_of(&[&DOCUMENT, &LOAD_STAGES]);

/// More loads than this are treated as a mistake.
const MOST_LOADS: usize = 1000;

/// More runs than this are treated as a mistake.
const MOST_RUNS: u64 = 100_000;

/// The keys of a load that say nothing of what it does.
const ABOUT: [&str; 5] = ["description", "levels", "search", "service_level", "observe"];

/// Whether a text is YAML with `arms` at its top. In invalid YAML, the lines decide.
pub(crate) fn is_evaluation(text: &str, registry: &Registry) -> bool {
    if registry.format_of(text).is_some() {
        return false;
    }
    match tree::parse(text) {
        Ok(root) => root.entry("arms").is_some(),
        Err(_) => text.lines().any(|line| line.trim_end().starts_with("arms:")),
    }
}

/// Where the documents of loads are looked for, and how they are read.
struct Beside<'a> {
    directory: &'a Path,
    environment: &'a Environment<'a>,
}

/// Reads an evaluation. Its cells are not looked at yet. With it come warnings.
///
/// # Errors
/// All errors and warnings, in document order.
pub(crate) fn evaluation(
    text: &str,
    directory: &Path,
    environment: &Environment<'_>,
) -> Result<(Evaluation, Vec<Diagnostic>), Vec<Diagnostic>> {
    let root = tree::parse(text).map_err(|broken| vec![broken])?;
    let document = Document::new(text, environment.outside());
    let beside = Beside { directory, environment };
    let table = Table::new("the evaluation", &root, &(0..0), &document).of(&EVALUATION);
    let mut evaluation = top(table, text, &beside);
    hide_settings(&mut evaluation, text);
    match document.log.close() {
        (warnings, false) => Ok((evaluation, warnings)),
        (remarks, true) => Err(remarks),
    }
}

/// Leaves those variables out of what reports say of arms that its documents put into secrets, whatever they are called.
fn hide_settings(evaluation: &mut Evaluation, text: &str) {
    let mut secret = redact::variables(text);
    for load in 0..evaluation.loads.len() {
        secret.extend(
            evaluation.documents.source(load).into_iter().flat_map(|(text, _)| redact::variables(text)),
        );
    }
    for arm in &mut evaluation.arms {
        arm.settings.retain(|(name, _)| !secret.contains(name));
    }
}

/// What the evaluation gives for all loads.
struct Common {
    given: Option<Given>,
    /// What levels can set.
    axes: Vec<&'static LevelAxis>,
    service_level: Option<(ServiceLevel, Range<usize>)>,
}

fn top(mut table: Table<'_>, whole: &str, beside: &Beside<'_>) -> Evaluation {
    let (name, description) = (table.value(&NAME), table.value(&DESCRIPTION));
    // Of the name alone: with another load, the random choices of the others stay what they were.
    let seed = table.get(&SEED).unwrap_or_else(|| defaults::seed_of(&name));
    let shared = observe(&mut table);
    let drivers = drivers(&mut table);
    let mut tuning = tuning::tuning(&mut table);
    let settings =
        tuning.as_ref().map(|tuning| tuning.space.pairs(&tuning.space.baseline())).unwrap_or_default();
    // What arms refer to is beside the evaluation, as the documents of loads are.
    let document = |path: &Path| (beside.environment.document)(&beside.directory.join(path));
    let environment = Environment { document: &document, ..*beside.environment };
    let (arms, arm_sources) = arms(&mut table, &shared, &settings, &environment);
    if tuning.is_some() {
        table.meaningless(&[&REPEATS, &ORDER], "a search decides what it measures, and in which order");
    }
    let (repeats, until) = repeats(&mut table);
    let order = table.value(&ORDER);
    let axes = beside.environment.registry.axes();
    let common =
        Common { given: levels::read(&mut table, &axes), axes, service_level: service_level(&mut table) };
    let (loads, load_sources) = loads(&mut table, &common, beside);
    let runs: u64 = loads.iter().map(|load: &Load| load.levels.count() as u64).sum();
    let runs = runs.saturating_mul(arms.len() as u64).saturating_mul(u64::from(repeats));
    if runs > MOST_RUNS {
        let message = format!(
            "the evaluation has {} runs; the limit is {}",
            units::count(runs),
            units::count(MOST_RUNS)
        );
        table.log().error(table.place(), message, "use fewer levels, loads, arms or repeats");
    }
    if let Some(tuning) = &mut tuning {
        tuning::settle(tuning, &mut table, &arm_sources, &load_sources, beside.environment.registry);
        tuning::check(&table, tuning, &arms, &loads);
    }
    table.finish();
    let notes = notes_on_fixed(&loads, &load_sources, arms.len());
    Evaluation {
        name,
        description,
        seed,
        arms,
        loads,
        repeats,
        until,
        order,
        tuning,
        notes,
        documents: Documents { text: whole.to_owned(), drivers, arms: arm_sources, loads: load_sources },
    }
}

/// How often cells are measured, or at most, and until when.
fn repeats(table: &mut Table<'_>) -> (u32, Option<f64>) {
    let Some(entry) = table.entry(&REPEATS) else { return (1, None) };
    if !matches!(entry.node.value, Value::Map(_)) {
        return (table.scalar(&REPEATS, &entry.node, |text| Whole(1, 1000).read(text)).unwrap_or(1), None);
    }
    let mut own = table.below(&REPEATS, entry).of(&UNTIL_NARROW);
    let (most, until) = (own.value(&MOST), own.value(&UNTIL));
    own.finish();
    (most, Some(until))
}

/// Notes the loads that the arms' targets and variables do not change.
fn notes_on_fixed(loads: &[Load], sources: &[LoadSource], arms: usize) -> Vec<Note> {
    let note = |(load, source): (&Load, &LoadSource)| {
        let fixed = source.body.fixed()?;
        let text = format!(
            "The load `{}` is a {fixed}, which runs unchanged: it is the same on every arm unless the \
             arm's set-up changes the storage below it.",
            load.name
        );
        Some(Note { topic: source.body.engine().into(), text })
    };
    loads.iter().zip(sources).filter(|_| arms > 1).filter_map(note).collect()
}

fn service_level(table: &mut Table<'_>) -> Option<(ServiceLevel, Range<usize>)> {
    let place = table.entry(&SERVICE_LEVEL)?.node.span.clone();
    Some((table.get(&SERVICE_LEVEL)?, place))
}

fn loads(document: &mut Table<'_>, common: &Common, beside: &Beside<'_>) -> (Vec<Load>, Vec<LoadSource>) {
    let nodes = document.list(&LOADS);
    if nodes.len() > MOST_LOADS {
        let message = format!("there are {} loads, more than {MOST_LOADS}", nodes.len());
        document.log().error(document.place(), message, "split them into several evaluations");
        return (Vec::new(), Vec::new());
    }
    let (mut loads, mut sources, mut levels) = (Vec::<Load>::new(), Vec::new(), 0);
    for node in nodes {
        if !(beside.environment.waited_for)() {
            document.log().push(environment::given_up());
            break;
        }
        let table = document.part("a load", node, &node.span).of(&EVALUATION_LOAD);
        let Some((load, source)) = load(table, node, common, beside) else { continue };
        // Before the others are made, each of which may have as many.
        levels += load.levels.count() as u64;
        if levels > MOST_RUNS {
            let message = format!("the loads have more than {} levels together", units::count(MOST_RUNS));
            document.log().error(document.place(), message, "use fewer levels or loads");
            break;
        }
        unique(document, node, "load", &load.name, loads.iter().map(|load| load.name.as_str()));
        loads.push(load);
        sources.push(source);
    }
    (loads, sources)
}

/// Reads one load; `None` after an error that leaves nothing to go on with.
fn load(
    mut table: Table<'_>,
    node: &Node,
    common: &Common,
    beside: &Beside<'_>,
) -> Option<(Load, LoadSource)> {
    let (name, description) = (table.value(&LOAD_NAME), table.value(&LOAD_DESCRIPTION));
    let given = levels::read(&mut table, &common.axes);
    let has_own = given.is_some();
    let service_level = service_level(&mut table).or_else(|| common.service_level.clone());
    let workload_keys = workload_keys(beside.environment.registry);
    table.declare(workload_keys.iter().copied());
    let path = table.get(&DOCUMENT);
    let place = table.entry(&DOCUMENT).map(|entry| entry.node.span.clone());
    match table.has(&DOCUMENT) {
        true => table.meaningless(&workload_keys, "the load's document sets it"),
        // They are read with the workload that they are.
        false => workload_keys.iter().for_each(|key| table.leave(key)),
    }
    if path.is_none() && !table.has(&LOAD_STAGES) && !table.has(&DOCUMENT) {
        table
            .missing(&LOAD_STAGES, "add `stages`, or `document: path` with a workload, COSBench or fio file");
    }
    let fetched = path.as_ref().map(|path| fetch(&mut table, beside, path));
    let (body, referred) = match (path.clone(), fetched) {
        (Some(path), Some(fetched)) => {
            let text = fetched?;
            let body = body(&table, &text, &path, beside.environment)?;
            (body, Some((text, path)))
        }
        _ => (Body::Tree(workload_of(node, &workload_keys)), None),
    };
    let given = given.or_else(|| common.given.clone());
    let given = given.unwrap_or_else(|| Given {
        levels: Levels::Listed(vec![Level::new()]),
        places: Places::new(),
        key: table.place().clone(),
    });
    check_levels(&table, &body, &given, has_own, service_level.is_some());
    table.finish();
    let own = canonical(node, &ABOUT);
    let definition = match (&body, &referred) {
        (Body::Tree(root), Some(_)) => own + &canonical(root, &["description", "observe"]),
        (_, Some((text, _))) => own + &redact(text),
        _ => own,
    };
    let source = LoadSource {
        body,
        referred,
        place: place.unwrap_or_else(|| node.span.clone()),
        levels: given.places,
        service_level: service_level.as_ref().map_or(0..0, |(_, place)| place.clone()),
        definition,
    };
    let load = Load {
        name,
        description,
        levels: given.levels,
        service_level: service_level.map(|(level, _)| level),
        path,
    };
    Some((load, source))
}

/// The keys of a workload that a load in the evaluation may have.
fn workload_keys(registry: &Registry) -> Vec<&'static AnyKey> {
    let own: [&AnyKey; 4] = [&ON_FAILURE, &OBSERVE, &DRIVERS, &LOAD_STAGES];
    own.into_iter().chain(scope::keys(registry)).collect()
}

/// The document that a load refers to.
fn fetch(table: &mut Table<'_>, beside: &Beside<'_>, path: &str) -> Option<String> {
    let full = beside.directory.join(path);
    let entry = table.entry(&DOCUMENT)?;
    table.scalar(&DOCUMENT, &entry.node, |_| {
        (beside.environment.document)(&full).map_err(|error| {
            let help = "paths are relative to the evaluation's directory";
            Problem::new(format!("{} cannot be read: {error}", full.display()), help)
        })
    })
}

/// What a referred document is; `None`, and an error, when it is nothing that a load can be.
fn body(table: &Table<'_>, text: &str, path: &str, environment: &Environment<'_>) -> Option<Body> {
    if let Some(format) = environment.registry.format_of(text) {
        return Some(Body::Other(format));
    }
    let refuse = |message: String, help: &str| {
        table.log().error(table.place(), message, help);
        None
    };
    match tree::parse(text) {
        Ok(root) if root.entry("arms").is_some() => {
            refuse(format!("{path} is itself an evaluation"), "refer to a workload, or copy its loads")
        }
        Ok(root) => Some(Body::Tree(root)),
        Err(broken) => {
            let line = broken.line_and_column(text).0;
            refuse(format!("{path}, line {line}: {}", broken.message), &broken.help)
        }
    }
}

/// The workload that a load in the evaluation is: its keys that a workload document has, too.
fn workload_of(node: &Node, keys: &[&AnyKey]) -> Node {
    let Value::Map(entries) = &node.value else { return node.clone() };
    let kept = |entry: &&Entry| {
        matches!(entry.key.as_str(), "name" | "description") || keys.iter().any(|key| key.name == entry.key)
    };
    Node { value: Value::Map(entries.iter().filter(kept).cloned().collect()), span: node.span.clone() }
}

/// Reports levels that a load cannot have, and a search that has nothing to go by.
fn check_levels(table: &Table<'_>, body: &Body, given: &Given, own: bool, has_service_level: bool) {
    let plain = matches!(&given.levels, Levels::Listed(levels) if levels.iter().all(Vec::is_empty));
    if let (Some(fixed), false) = (body.fixed(), plain) {
        let place = if own { &given.key } else { table.place() };
        let help = "write `levels: {}` for this load, or write it as a Tidemark document with `pattern`";
        table.log().error(place, format!("a {fixed} runs unchanged and cannot have levels"), help);
    }
    if let (Levels::Searched(_), false) = (&given.levels, has_service_level) {
        let help = "add one, such as `service_level: p95 <= 200ms`";
        table.log().error(&given.key, "a search requires a `service_level`", help);
    }
}
