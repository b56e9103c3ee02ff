//! Evaluation documents to an [`Evaluation`]: the outermost mapping, and its loads.

use super::Environment;
use super::arms::{arms, unique};
use super::documents::{Body, Documents, LoadSource, canonical};
use super::drivers::drivers;
use super::levels::{self, Given, Places};
use super::observe::observe;
use super::table::{Log, Problem, Table, text};
use super::tree::{self, Entry, Node, Value};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::evaluation::{Evaluation, Levels, Load, ORDERS};
use crate::level::LevelAxis;
use crate::redact::redact;
use crate::registry::Registry;
use std::ops::Range;
use std::path::Path;
use tidemark_measure::evaluation::Level;
use tidemark_measure::record::Note;
use tidemark_measure::service_level::ServiceLevel;
use tidemark_measure::units;

/// More loads than this are treated as a mistake.
const MOST_LOADS: usize = 1000;

/// More runs than this are treated as a mistake.
const MOST_RUNS: u64 = 100_000;

/// The keys of a workload document that a load in an evaluation may have.
const WORKLOAD_KEYS: [&str; 5] = ["on_failure", "target", "observe", "drivers", "stages"];

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
    let log = Log::default();
    let beside = Beside { directory, environment };
    let evaluation = top(Table::new("the evaluation", &root, &(0..0), text, &log), text, &beside);
    match log.close() {
        (warnings, false) => Ok((evaluation, warnings)),
        (remarks, true) => Err(remarks),
    }
}

/// What the evaluation gives for all loads.
struct Common {
    given: Option<Given>,
    /// What levels can set.
    axes: Vec<LevelAxis>,
    service_level: Option<(ServiceLevel, Range<usize>)>,
}

fn top(mut table: Table<'_>, whole: &str, beside: &Beside<'_>) -> Evaluation {
    let name = table.required("name", "begin with `name: my-evaluation`", text).unwrap_or_default();
    let description = table.text("description").unwrap_or_default();
    // Of the name alone: with another load, the random choices of the others stay what they were.
    let seed = table.whole("seed", 0..=u64::MAX).unwrap_or_else(|| defaults::seed_of(&name));
    let shared = observe(&mut table);
    let drivers = drivers(&mut table);
    let (arms, arm_sources) = arms(&mut table, &shared, beside.environment);
    let repeats = table.small("repeats", 1..=1000).unwrap_or(1);
    let order = table.word("order", &ORDERS).unwrap_or_default();
    let axes = beside.environment.registry.axes();
    let common =
        Common { given: levels::read(&mut table, &axes), axes, service_level: service_level(&mut table) };
    let (loads, load_sources) = loads(&mut table, &common, beside);
    let runs: u64 = loads.iter().map(|load: &Load| load.levels.known().len() as u64).sum();
    let runs = runs.saturating_mul(arms.len() as u64).saturating_mul(u64::from(repeats));
    if runs > MOST_RUNS {
        let message = format!(
            "the evaluation has {} runs; the limit is {}",
            units::count(runs),
            units::count(MOST_RUNS)
        );
        table.log().error(table.place(), message, "use fewer levels, loads, arms or repeats");
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
        order,
        notes,
        documents: Documents { text: whole.to_owned(), drivers, arms: arm_sources, loads: load_sources },
    }
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
    let place = table.entry("service_level")?.node.span.clone();
    Some((table.read("service_level", |text| Ok(ServiceLevel::parse(text)?))?, place))
}

fn loads(document: &mut Table<'_>, common: &Common, beside: &Beside<'_>) -> (Vec<Load>, Vec<LoadSource>) {
    let nodes = document.list("loads").unwrap_or_default();
    if nodes.is_empty() {
        document.missing("loads", "write a list of loads: `- {name: small-objects, document: small.xml}`");
    }
    if nodes.len() > MOST_LOADS {
        let message = format!("there are {} loads, more than {MOST_LOADS}", nodes.len());
        document.log().error(document.place(), message, "split them into several evaluations");
        return (Vec::new(), Vec::new());
    }
    let (mut loads, mut sources) = (Vec::<Load>::new(), Vec::new());
    for node in nodes {
        let table = document.part("a load", node, &node.span);
        let Some((load, source)) = load(table, node, common, beside) else { continue };
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
    let name = table.required("name", "add the load's name, such as `name: small`", text);
    let description = table.text("description").unwrap_or_default();
    let given = levels::read(&mut table, &common.axes);
    let has_own = given.is_some();
    let service_level = service_level(&mut table).or_else(|| common.service_level.clone());
    let path = table.text("document");
    let place = table.entry("document").map(|entry| entry.node.span.clone());
    let workload_keys = workload_keys(beside.environment.registry);
    match table.has("document") {
        true => table.meaningless(&workload_keys, "the load's document sets it"),
        false => workload_keys.iter().for_each(|key| table.expect(key)),
    }
    if path.is_none() && !table.has("stages") && !table.has("document") {
        table.missing("stages", "add `stages`, or `document: path` with a workload, COSBench or fio file");
    }
    let fetched = path.as_ref().map(|path| table.read("document", |_| fetch(beside, path)));
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
        name: name.unwrap_or_default(),
        description,
        levels: given.levels,
        service_level: service_level.map(|(level, _)| level),
        path,
    };
    Some((load, source))
}

/// The keys of a workload that a load in the evaluation may have.
fn workload_keys(registry: &Registry) -> Vec<&'static str> {
    WORKLOAD_KEYS.into_iter().chain(registry.sections()).collect()
}

/// The document that a load refers to.
fn fetch(beside: &Beside<'_>, path: &str) -> Result<String, Problem> {
    let full = beside.directory.join(path);
    (beside.environment.document)(&full).map_err(|error| {
        let help = "paths are relative to the evaluation's directory";
        Problem::new(format!("{} cannot be read: {error}", full.display()), help)
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
fn workload_of(node: &Node, keys: &[&str]) -> Node {
    let Value::Map(entries) = &node.value else { return node.clone() };
    let kept = |entry: &&Entry| {
        matches!(entry.key.as_str(), "name" | "description") || keys.contains(&entry.key.as_str())
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
