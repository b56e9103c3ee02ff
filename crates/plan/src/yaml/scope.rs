//! What a document gives once for everything below: the target, and the sections that engines declare.

use super::environment::Environment;
use super::table::{Problem, Table};
use super::tree::{Entry, Node, Value};
use crate::engine::Target;
use crate::plan::Drivers;
use crate::registry::Registry;
use std::ops::Range;

/// What an evaluation lends to a workload document.
#[derive(Default)]
pub(crate) struct Lent {
    /// The seed, in place of the document's own.
    pub(crate) seed: Option<u64>,
    /// The target of works that have none.
    pub(crate) target: Option<Target>,
    /// Whether the target that it would have lent could not be read, which has been reported.
    pub(crate) broken: bool,
    /// Where and how to report that there is no target.
    pub(crate) missing: Option<(Range<usize>, String)>,
    /// Its drivers, where the document does not say.
    pub(crate) drivers: Option<Drivers>,
}

/// What holds at one level of the document: the levels above, overridden by this one.
#[derive(Clone, Default)]
pub struct Scope<'a> {
    /// The target; replaced as a whole.
    pub target: Option<Target>,
    /// Whether there is a target that could not be read, which has been reported.
    pub(super) broken: bool,
    /// The sections from the outermost to the innermost.
    sections: Vec<&'a Entry>,
}

impl<'a> Scope<'a> {
    /// With this target and nothing else.
    pub(super) fn of(target: Option<Target>, broken: bool) -> Self {
        Self { target, broken, sections: Vec::new() }
    }

    /// The scope of a stage or a work within this one.
    pub fn within(&self, table: &mut Table<'a>, environment: &Environment<'_>) -> Scope<'a> {
        let (target, broken) = match read_target(table, environment) {
            None if !table.has("target") => (self.target.clone(), self.broken),
            own => (own.clone(), own.is_none()),
        };
        let sections = environment.registry.sections().filter_map(|key| table.entry(key));
        Scope { target, broken, sections: self.sections.iter().copied().chain(sections).collect() }
    }

    /// The sections under a key, from the outermost to the innermost: what stands further in replaces what stands further
    /// out, key by key.
    pub fn sections(&self, key: &'static str) -> impl Iterator<Item = &'a Entry> {
        self.sections.iter().copied().filter(move |entry| entry.key == key)
    }
}

/// The target under `target`, if present and valid.
pub(super) fn read_target(table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Target> {
    let entry = table.entry("target")?;
    let registry = environment.registry;
    if let Value::Scalar(_) = entry.node.value {
        return table.scalar(&entry.node, "target", |text| {
            let (engine, kind) = registry.engine_for(text).ok_or_else(|| unknown(text, environment))?;
            engine.bare_target(kind)
        });
    }
    let mut own = table.below("`target`", entry);
    let help = format!("write one of {}", registry.targets().join(", "));
    let found = own
        .required("kind", &help, |text| registry.engine_for(text).ok_or_else(|| unknown(text, environment)));
    let (engine, kind) = found?;
    let target = engine.target(kind, &mut own, environment);
    if target.is_some() {
        own.finish();
    }
    target
}

/// The engine of a target's kind.
pub(super) fn engine_of(node: &Node, registry: &Registry) -> Option<&'static str> {
    let kind = node.entry("kind").map_or(node, |entry| &entry.node);
    let Value::Scalar(text) = &kind.value else { return None };
    registry.engine_for(text).map(|(engine, _)| engine.name())
}

/// Says that there is no such kind of target.
fn unknown(text: &str, environment: &Environment<'_>) -> Problem {
    let kinds = environment.registry.targets();
    let words: Vec<(&str, ())> = kinds.iter().map(|kind| (*kind, ())).collect();
    match super::table::choose(text, &words) {
        Err(problem) => problem,
        Ok(()) => {
            Problem::new(format!("'{text}' is not known"), format!("the choices are {}", kinds.join(", ")))
        }
    }
}
