//! The mappings of workload documents, as far as they are the same for all engines.

use super::Mapping;
use super::values::{Key, bytes, duration, list, list_or, rate, refer, share, table, text, whole, words};
use crate::content::FILLS;
use crate::engine::Engine;
use crate::registry::Registry;
use crate::yaml::works::KINDS;
use serde_json::{Value, json};

/// All mappings, by name: what engines add to a mapping of the same name comes after its own keys.
pub(super) fn tables(registry: &Registry) -> Vec<Key> {
    let mut mappings = vec![
        Mapping::new("workload", "A workload: stages that run in order", workload(registry))
            .requires(&["name", "stages"]),
        Mapping::new("stage", "A stage: works that run concurrently, then a pause", stage(registry)),
        Mapping::new("rate_point", "One point of a rate", rate_point()).requires(&["at", "rate"]),
        Mapping::new("steady", "Rounds until the load is steady", steady()).requires(&["round"]),
        Mapping::new("drivers", "How a run is spread over the drivers of a controller", drivers()),
        Mapping::new("content", "What to write and verify", content()),
        Mapping::new("target", "What the load runs against; its keys depend on its kind", target(registry))
            .requires(&["kind"]),
    ];
    for (keyword, _) in KINDS {
        let keys = if keyword == "load" { load() } else { Vec::new() };
        mappings.push(Mapping::new(
            keyword,
            does(keyword),
            common(registry).into_iter().chain(keys).collect(),
        ));
    }
    for mapping in registry.engines().flat_map(Engine::schema) {
        match mappings.iter_mut().find(|known| known.name == mapping.name) {
            Some(known) => known.join(mapping),
            None => mappings.push(mapping),
        }
    }
    let named = words("A target that needs no settings", registry.bare_targets());
    let table = |mapping: Mapping| {
        let own = table(mapping.description, &mapping.required, mapping.keys);
        match mapping.name {
            "target" => ("target", json!({"description": mapping.description, "anyOf": [named, own]})),
            name => (name, own),
        }
    };
    mappings.into_iter().map(table).collect()
}

fn drivers() -> Vec<Key> {
    vec![
        ("use", super::values::wanted("Drivers that take part; default: all")),
        (
            "on_loss",
            words("What to do when a driver is lost: stop or continue the stage", ["stop", "continue"]),
        ),
        ("lost_after", duration("A driver that is silent for this long is lost")),
    ]
}

fn workload(registry: &Registry) -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Name of the workload")),
        ("description", text("Purpose")),
        ("seed", whole("Seed of all random choices; default: derived from the text", 0)),
        ("on_failure", on_failure()),
        ("observe", refer("observe", "What to observe while it runs")),
        ("drivers", super::values::drivers()),
        ("stages", stages()),
    ];
    keys.extend(scope(registry));
    keys
}

pub(super) fn on_failure() -> Value {
    words("After a failed stage: stop (and clean up), or continue with all stages", ["stop", "continue"])
}

pub(super) fn stages() -> Value {
    list("Stages, in order", &refer("stage", "Works that run concurrently"))
}

/// What may stand at every level of a document.
pub(super) fn scope(registry: &Registry) -> Vec<Key> {
    let named = words("A target that needs no settings", registry.bare_targets());
    let target =
        json!({"description": "What the load runs against", "anyOf": [named, {"$ref": "#/$defs/target"}]});
    let mut scope: Vec<Key> =
        registry.sections().map(|key| (key, refer(key, "Holds for all below"))).collect();
    scope.push(("target", target));
    scope
}

/// The kinds of works, each under its key.
fn works() -> Vec<Key> {
    KINDS.into_iter().map(|(kind, _)| (kind, refer(kind, does(kind)))).collect()
}

fn does(kind: &str) -> &'static str {
    match kind {
        "init" => "Creates containers",
        "prepare" => "Writes objects, or fills volumes",
        "precondition" => "Writes the volumes' capacity several times",
        "cleanup" => "Deletes objects, or removes files and images",
        "dispose" => "Deletes containers",
        _ => "The measured load",
    }
}

fn stage(registry: &Registry) -> Vec<Key> {
    let work = table("A work, under its kind", &[], works());
    let mut keys = vec![
        ("name", text("Name of the stage")),
        ("pause", duration("Pause after its works; a stage with only a pause waits")),
        ("trigger", text("script.sh(arguments) around the stage")),
        ("on_failure", on_failure()),
        ("works", list_or("Works that run concurrently", &work)),
    ];
    keys.extend(works());
    keys.extend(scope(registry));
    keys
}

/// Keys of every work.
fn common(registry: &Registry) -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Name of the work; default: its kind")),
        ("allowed_failures", share("The work fails with more failures than this")),
        ("drain", duration("Longest wait for operations in flight at the end")),
        ("give_up", duration("Stop and fail after this long without a success; or never")),
        ("driver", text("Driver that must run it")),
    ];
    keys.extend(scope(registry));
    keys
}

/// When a load's operations are due, and when it ends.
fn load() -> Vec<Key> {
    let points = list("A rate that changes over time", &refer("rate_point", "One point of it"));
    vec![
        ("think", super::values::think()),
        ("for", duration("Length of the measured window")),
        ("total_operations", whole("Measured operations of all workers", 1)),
        ("total_bytes", bytes("End with the operation that reaches this total")),
        ("warm_up", duration("Full load before the window, not measured")),
        ("ramp_up", duration("Time over which workers start, not measured")),
        ("ramp_down", duration("Full load after the window, not measured")),
        (
            "rate",
            json!({
                "description": "Open loop: operations are due at fixed times",
                "anyOf": [rate("A constant rate"), points],
            }),
        ),
        ("arrivals", words("Distribution of due times", ["constant", "poisson"])),
    ]
}

fn target(registry: &Registry) -> Vec<Key> {
    vec![("kind", words("Kind of target", registry.targets()))]
}

fn content() -> Vec<Key> {
    vec![
        ("fill", words("Content of objects", FILLS)),
        ("compressible", share("Share of every block that a compressor can remove")),
        ("duplicate", share("Share of blocks that are duplicates")),
        ("verify", super::values::flag("Verify what reads return")),
    ]
}

fn rate_point() -> Vec<Key> {
    vec![("at", duration("Time since the load's start")), ("rate", rate("Rate at that time"))]
}

fn steady() -> Vec<Key> {
    vec![("round", duration("Length of a round")), ("most", whole("Maximum number of rounds", 5))]
}
