//! What a document gives once for everything below: the target, and the sections that engines declare.

use super::environment::Environment;
use crate::engine::{Engine, Target};
use crate::plan::Drivers;
use crate::registry::Registry;
use std::ops::Range;
use tidemark_keys::kinds::choose;
use tidemark_keys::shapes::{Map, Refer};
use tidemark_keys::tree::{Entry, Node, Value};
use tidemark_keys::{AnyKey, KIND, Key, Table};

/// The key of the target.
pub(crate) static TARGET: Key<Refer> = Key::new(
    "target",
    "What the load runs against: a mapping, or a kind that needs no settings; replaced as a whole",
    Refer("target"),
)
.otherwise("required here, in the stage or in the work");

/// What may stand at every level of a document.
pub(crate) fn keys(registry: &Registry) -> Vec<&'static AnyKey> {
    let sections = registry.sections().map(|section| section as &AnyKey);
    std::iter::once(&TARGET as &AnyKey).chain(sections).collect()
}

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
        table.declare(keys(environment.registry));
        let (target, broken) = match read_target(table, environment) {
            None if !table.has(&TARGET) => (self.target.clone(), self.broken),
            own => (own.clone(), own.is_none()),
        };
        let sections = environment.registry.sections().filter_map(|key| table.entry(key));
        Scope { target, broken, sections: self.sections.iter().copied().chain(sections).collect() }
    }

    /// Whether there is a section of this name.
    pub fn has(&self, section: &str) -> bool {
        self.sections.iter().any(|entry| entry.key == section)
    }

    /// The sections that an engine does not know.
    pub(super) fn sections_without_effect<'s>(
        &'s self,
        engine: &dyn Engine,
    ) -> impl Iterator<Item = &'a Entry> + use<'s, 'a> {
        let known = engine.sections();
        self.sections.iter().copied().filter(move |entry| known.iter().all(|key| key.name != entry.key))
    }

    /// The sections under a key, from the outermost to the innermost: what stands further in replaces what stands further
    /// out, key by key. `table` is one of the document's.
    pub fn sections<'t>(
        &self,
        key: &'static Key<Map>,
        table: &'t Table<'a>,
    ) -> impl Iterator<Item = Table<'a>> + use<'_, 't, 'a> {
        let found = self.sections.iter().copied().filter(|entry| entry.key == key.name);
        found.map(|entry| table.below(key, entry).of(key.shape.0))
    }
}

/// The target under `target`, if present and valid.
pub(super) fn read_target(table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Target> {
    let entry = table.entry(&TARGET)?;
    let kinds = environment.registry.targets();
    if let Value::Scalar(_) = entry.node.value {
        return table.scalar(&TARGET, &entry.node, |text| {
            choose(text, kinds.iter().map(|(kind, engine)| (kind.name, (kind, engine))))
                .and_then(|(kind, engine)| engine.bare_target(kind.name))
        });
    }
    let mut own = table.below(&TARGET, entry);
    let kind = own.kind(kinds.iter().map(|(kind, _)| *kind))?;
    let (_, engine) = kinds.iter().find(|(known, _)| known.name == kind.name)?;
    let target = engine.target(kind.name, &mut own, environment);
    if target.is_some() {
        own.finish();
    }
    target
}

/// The engine of a target's kind.
pub(super) fn engine_of(node: &Node, registry: &Registry) -> Option<&'static str> {
    let kind = node.entry(KIND.name).map_or(node, |entry| &entry.node);
    let Value::Scalar(text) = &kind.value else { return None };
    let mut targets = registry.targets().into_iter();
    targets.find(|(kind, _)| kind.name.eq_ignore_ascii_case(text)).map(|(_, engine)| engine.name())
}
