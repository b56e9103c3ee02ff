//! Tidemark YAML to a plan. `docs/document.md` is the reference of its keys.
//!
//! The text becomes a tree in which everything knows its place ([`tree`]); the tree is read mapping by mapping,
//! with typed questions ([`table`]); what is given once holds for everything below ([`scope`]).

mod environment;
mod operation;
mod scope;
mod table;
mod target;
mod tree;
mod work;

pub use environment::Environment;

use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::plan::{OnFailure, Plan, Stage, Work, WorkKind};
use crate::redact::redact;
use scope::Scope;
use table::{Log, Table};
use tree::Node;
use work::{Context, KINDS};

/// Reads a document in this process's environment.
///
/// # Errors
/// All that is wrong with it, in the order of the text, warnings included.
pub fn read(text: &str) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    read_in(text, &Environment::process())
}

/// Reads a document; variables and secret files come from `environment`. With the plan come warnings.
///
/// # Errors
/// As [`read`].
pub fn read_in(
    text: &str,
    environment: &Environment<'_>,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let root = tree::parse(text).map_err(|broken| vec![broken])?;
    let log = Log::default();
    let plan = workload(Table::new("the document", &root, &(0..0), text, &log), environment, text);
    match log.close() {
        (warnings, false) => Ok((plan, warnings)),
        (remarks, true) => Err(remarks),
    }
}

fn workload(mut table: Table<'_>, environment: &Environment<'_>, text: &str) -> Plan {
    let name = table.required("name", "begin with `name: my-workload`", table::text).unwrap_or_default();
    let description = table.text("description").unwrap_or_default();
    // Of the document without its secrets: the seed is stored and shown.
    let seed = table.whole("seed", 0..=u64::MAX).unwrap_or_else(|| defaults::seed_of(&redact(text)));
    let on_failure = on_failure(&mut table).unwrap_or_default();
    let scope = Scope::default().within(&mut table, environment);
    let context = Context { environment, seed };
    let nodes = table.list("stages").filter(|nodes| !nodes.is_empty()).unwrap_or_else(|| {
        table.missing("stages", "write a list of stages, each with its works");
        &[]
    });
    let stages = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| stage(&table, node, index, &scope, on_failure, &context))
        .collect();
    table.finish();
    Plan { name, description, seed, trigger: None, stages, notes: Vec::new() }
}

fn stage(
    document: &Table<'_>,
    node: &Node,
    index: usize,
    scope: &Scope,
    on_failure: OnFailure,
    context: &Context<'_>,
) -> Stage {
    let mut table = document.part("a stage", node, &node.span);
    let name = table.text("name");
    let scope = scope.within(&mut table, context.environment);
    let pause_ns = table.duration("pause").unwrap_or(0);
    let trigger = table.text("trigger");
    let on_failure = self::on_failure(&mut table).unwrap_or(on_failure);
    let works = works(&mut table, index, &scope, context);
    if works.is_empty() && !table.has("works") && !table.has("pause") {
        let help =
            "give it one of init, prepare, load, cleanup, dispose, or several under `works`, or a `pause`";
        table.log().error(table.place(), "the stage does nothing", help);
    }
    table.finish();
    let usual = || works.first().map_or_else(|| format!("stage-{}", index + 1), |work| work.name.clone());
    Stage { name: name.unwrap_or_else(usual), works, pause_ns, trigger, on_failure, cell: None }
}

/// The works of a stage: one under its kind, or a list of them under `works`.
fn works(table: &mut Table<'_>, stage: usize, scope: &Scope, context: &Context<'_>) -> Vec<Work> {
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
        let entry = kind.and_then(|kind| Some((kind, table.present(kind.0)?)));
        return entry
            .map(|(kind, entry)| {
                work::work(kind, table.below(format!("`{}`", kind.0), entry), scope, context, stream(0))
            })
            .into_iter()
            .collect();
    };
    let mut works: Vec<Work> = Vec::new();
    for node in nodes {
        let Some(entry) = Table::single(node, "a work", table.log()) else { continue };
        let Some(kind) = KINDS.into_iter().find(|(name, _)| *name == entry.key) else {
            work::unknown(entry, "kind of work", KINDS.iter().map(|(name, _)| *name), table.log());
            continue;
        };
        let below = table.below(format!("`{}`", kind.0), entry);
        let mut next = work::work(kind, below, scope, context, stream(works.len()));
        if works.iter().any(|work| work.name == next.name) {
            next.name = format!("{}-{}", next.name, works.len() + 1);
        }
        works.push(next);
    }
    works
}

fn on_failure(table: &mut Table<'_>) -> Option<OnFailure> {
    table.word("on_failure", &[("stop", OnFailure::Stop), ("continue", OnFailure::Continue)])
}

#[cfg(test)]
mod tests;
