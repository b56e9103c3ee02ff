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
        Mapping::new("workload", "A workload: stages that run one after the other", workload(registry))
            .requires(&["name", "stages"]),
        Mapping::new("stage", "A stage: works that run side by side, then a pause", stage(registry)),
        Mapping::new("rate_point", "One point of a rate", rate_point()).requires(&["at", "rate"]),
        Mapping::new("steady", "Rounds until the load is steady", steady()).requires(&["round"]),
        Mapping::new("drivers", "How a run is spread over the drivers of a controller", drivers()),
        Mapping::new("content", "What is written and checked", content()),
        Mapping::new(
            "target",
            "What load is put on; which keys it has depends on its kind",
            target(registry),
        )
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
        ("use", super::values::wanted("Which drivers take part; all if it is not given")),
        ("on_loss", words("When one is lost: the stage ends, or goes on without it", ["stop", "continue"])),
        ("lost_after", duration("A driver that says nothing for so long is lost")),
    ]
}

fn workload(registry: &Registry) -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Name of the workload")),
        ("description", text("What it is for")),
        ("seed", whole("Where all random choices come from; without it, from the text", 0)),
        ("on_failure", on_failure()),
        ("observe", refer("observe", "What is observed while it runs")),
        ("drivers", super::values::drivers()),
        ("stages", stages()),
    ];
    keys.extend(scope(registry));
    keys
}

pub(super) fn on_failure() -> Value {
    words("After a stage that failed: stop, but clean up, or go on with all", ["stop", "continue"])
}

pub(super) fn stages() -> Value {
    list("Stages, one after the other", &refer("stage", "Works that run side by side"))
}

/// What may stand at every level of a document.
pub(super) fn scope(registry: &Registry) -> Vec<Key> {
    let named = words("A target that needs no settings", registry.bare_targets());
    let target = json!({"description": "What load is put on", "anyOf": [named, {"$ref": "#/$defs/target"}]});
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
        "init" => "Makes containers",
        "prepare" => "Writes objects, or fills volumes",
        "precondition" => "Writes the capacity of volumes several times",
        "cleanup" => "Deletes objects, or removes files and images",
        "dispose" => "Deletes containers",
        _ => "The load that is measured",
    }
}

fn stage(registry: &Registry) -> Vec<Key> {
    let work = table("A work, under its kind", &[], works());
    let mut keys = vec![
        ("name", text("Name of the stage")),
        ("pause", duration("Pause after its works; alone, the stage only waits")),
        ("trigger", text("script.sh(arguments) around the stage")),
        ("on_failure", on_failure()),
        ("works", list_or("Works that run side by side", &work)),
    ];
    keys.extend(works());
    keys.extend(scope(registry));
    keys
}

/// Keys of every work.
fn common(registry: &Registry) -> Vec<Key> {
    let mut keys = vec![
        ("name", text("Name of the work; its kind if it is not given")),
        ("allowed_failures", share("More failures than this, and the work has failed")),
        ("drain", duration("How long operations in flight may take after the end")),
        ("give_up", duration("End, as failed, after so long without a success; or never")),
        ("driver", text("The driver that it is pinned to")),
    ];
    keys.extend(scope(registry));
    keys
}

/// When a load's operations are due, and when it ends.
fn load() -> Vec<Key> {
    let points = list("A rate that changes over time", &refer("rate_point", "One point of it"));
    vec![
        ("think", duration("Pause of a worker between operations")),
        ("for", duration("Length of the measured window")),
        ("total_operations", whole("Measured operations over all workers", 1)),
        ("total_bytes", bytes("Ends with the operation that reaches them")),
        ("warm_up", duration("Full load before the window, not measured")),
        ("ramp_up", duration("Workers start one after the other over this time, not measured")),
        ("ramp_down", duration("Full load after the window, not measured")),
        (
            "rate",
            json!({
                "description": "Operations are due at fixed times: an open loop",
                "anyOf": [rate("All the time"), points],
            }),
        ),
        ("arrivals", words("How due times spread around the rate", ["constant", "poisson"])),
    ]
}

fn target(registry: &Registry) -> Vec<Key> {
    vec![("kind", words("What it is", registry.targets()))]
}

fn content() -> Vec<Key> {
    vec![
        ("fill", words("What objects are made of", FILLS)),
        ("compressible", share("Share of every block that a compressor can remove")),
        ("duplicate", share("Share of blocks that occur elsewhere, too")),
        ("verify", super::values::flag("Check what is read")),
    ]
}

fn rate_point() -> Vec<Key> {
    vec![("at", duration("When, since the load's start")), ("rate", rate("How much"))]
}

fn steady() -> Vec<Key> {
    vec![("round", duration("Length of a round")), ("most", whole("The most rounds", 5))]
}
