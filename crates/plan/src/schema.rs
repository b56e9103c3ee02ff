//! All that documents may say, put together from what readers and engines declare: a JSON Schema for editors, and the tables of
//! the reference, `docs/document.md`.

use crate::engine::Engine;
use crate::provisioner::ProvisionerKind;
use crate::registry::Registry;
use crate::yaml::scope::{self, TARGET};
use crate::yaml::timing::TIMING;
use crate::yaml::works::{self, KINDS, WORK};
use crate::yaml::{
    ARM, ARMS, EVALUATION, EVALUATION_LOAD, LEVELS, PRICES, RUNS, SEARCH, SETTING, STAGE, TUNING, WITHIN,
    WORKLOAD,
};
use serde_json::{Value, json};
use tidemark_keys::reference::Reference;
use tidemark_keys::schema::{Definitions, allow_settings, definition, exactly_one, of_kinds, required};
use tidemark_keys::{AnyKey, Mapping};

/// The schema of all documents in YAML: an evaluation if there are `arms`, else a workload. JSON Schema, draft 2020-12.
pub fn schema(registry: &Registry) -> Value {
    let (mut definitions, scope) = (Definitions::default(), scope::keys(registry));
    definitions.add_below(&scope);
    let stage: Vec<&AnyKey> = works::kinds().into_iter().chain(scope.iter().copied()).collect();
    definitions.add_with(&STAGE, &stage);
    definitions.add_with(&WORKLOAD, &scope);
    definitions.add_with(&EVALUATION_LOAD, &scope);
    definitions.add_with(&ARM, &provisioners(registry));
    definitions.add(&EVALUATION);
    let (values, ranges) = levels(registry);
    definitions.put(LEVELS.name, definition(LEVELS.about, &values, &[]));
    let mut search = definition(SEARCH.about, &[&ranges[..], &[&WITHIN, &RUNS]].concat(), &[]);
    search["oneOf"] = exactly_one(&ranges);
    definitions.put(SEARCH.name, search);
    for (key, _) in &KINDS {
        let engines = of_engines(registry, key.name);
        let own: Vec<_> = engines.iter().map(|mapping| mapping.all()).collect();
        own.iter().for_each(|keys| definitions.add_below(keys));
        // What every engine requires is required before the engine is known.
        let mut required: Vec<Vec<&str>> = own.iter().map(|keys| required(keys)).collect();
        let first = required.pop().unwrap_or_default();
        let by_all: Vec<&str> =
            first.into_iter().filter(|name| required.iter().all(|other| other.contains(name))).collect();
        let keys: Vec<_> = WORK.all().into_iter().chain(scope.iter().copied()).chain(own.concat()).collect();
        definitions.put(key.name, definition(key.about, &keys, &by_all));
    }
    let targets = registry.targets();
    let kinds: Vec<_> = targets.iter().map(|(kind, _)| *kind).collect();
    kinds.iter().for_each(|kind| definitions.add(kind));
    let bare = targets.iter().filter(|(kind, engine)| engine.bare_target(kind.name).is_ok());
    let bare: Vec<_> = bare.map(|(kind, _)| kind.name).collect();
    definitions.put(TARGET.name, json!({"anyOf": [{"enum": bare}, of_kinds(&kinds)]}));
    let mut schema = definitions.document("Tidemark document", &ARMS, &EVALUATION, &WORKLOAD);
    if let Some(all) = schema["$defs"].as_object_mut() {
        // Settings stand in arms and in loads, not in what says what they are.
        let own = [EVALUATION.name, TUNING.name, PRICES.name, SETTING.name];
        let others = all.iter_mut().filter(|(name, _)| !own.contains(&name.as_str()));
        others.for_each(|(_, own)| allow_settings(own));
    }
    schema
}

/// The keys under which arms ask for provisioners.
fn provisioners(registry: &Registry) -> Vec<&'static AnyKey> {
    registry.provisioners().map(ProvisionerKind::key).collect()
}

/// The keys of `levels`, and those of `search`.
fn levels(registry: &Registry) -> (Vec<&'static AnyKey>, Vec<&'static AnyKey>) {
    let axes = registry.axes();
    (
        axes.iter().map(|axis| &axis.values as &AnyKey).collect(),
        axes.iter().map(|axis| &axis.range as &AnyKey).collect(),
    )
}

/// What engines declare for works of a kind.
fn of_engines(registry: &Registry, kind: &str) -> Vec<&'static Mapping> {
    let all = registry.engines().flat_map(Engine::work_keys);
    all.filter(|mapping| mapping.name == kind).collect()
}

/// The tables of all keys.
pub fn reference(registry: &Registry) -> Reference {
    let mut reference = Reference::default();
    let (values, mut ranges) = levels(registry);
    ranges.extend([&WITHIN as &AnyKey, &RUNS]);
    reference.keys("scope", &scope::keys(registry));
    reference.keys("provisioners", &provisioners(registry));
    reference.keys(LEVELS.name, &values);
    reference.keys(SEARCH.name, &ranges);
    [&WORKLOAD, &STAGE, &WORK, &TIMING, &EVALUATION].into_iter().for_each(|known| reference.mapping(known));
    for engine in registry.engines().filter(|engine| !engine.targets().is_empty()) {
        reference.kinds(&format!("targets for {}", engine.subject()), &engine.targets());
        reference.kinds(&format!("works on {}", engine.subject()), &engine.work_keys());
    }
    reference
}
