//! The mappings of evaluation documents.

use super::values::{Key, list, list_or, refer, share, table, text, whole, words};
use crate::evaluation::ORDERS;
use crate::level::LevelAxis;
use crate::registry::Registry;
use serde_json::{Value, json};

/// All mappings, by name.
pub(super) fn tables(registry: &Registry) -> Vec<Key> {
    let mut tables = vec![
        ("evaluation", evaluation()),
        ("arm", arm(registry)),
        ("evaluation_load", load(registry)),
        ("levels", levels(&registry.axes())),
        ("search", search(&registry.axes())),
        ("observe", observe()),
    ];
    let mappings = registry.provisioners().flat_map(|kind| kind.schema().1);
    tables.extend(mappings.map(|one| (one.name, table(one.description, &one.required, one.keys))));
    tables
}

fn evaluation() -> Value {
    let mut keys = vec![
        ("name", text("Name of the evaluation")),
        ("description", text("The question to answer")),
        ("seed", whole("Seed of all random choices; default: derived from the name", 0)),
        ("arms", list("What to compare; the first is the baseline", &refer("arm", "One thing compared"))),
        ("loads", list("Loads to run on each arm", &refer("evaluation_load", "One load"))),
        ("repeats", whole("How many times to measure each cell; default: 1", 1)),
        ("order", words("Order of the runs", ORDERS.map(|(name, _)| name))),
        ("observe", refer("observe", "What to observe on all arms")),
        ("drivers", super::values::drivers()),
    ];
    keys.extend(intensities());
    table("An evaluation: arms x loads x levels x repeats", &["name", "arms", "loads"], keys)
}

/// Keys of the evaluation that a load may have of its own.
fn intensities() -> Vec<Key> {
    vec![
        ("levels", refer("levels", "Load intensities; several axes multiply")),
        (
            "search",
            refer("search", "Search for the highest load within the service level, instead of levels"),
        ),
        ("service_level", service_level()),
    ]
}

fn service_level() -> Value {
    let mut level = text("Condition that a load must meet to count");
    level["examples"] = json!(["p95 <= 200ms + size / 1MBps and failures <= 0.1%"]);
    level
}

fn arm(registry: &Registry) -> Value {
    let command = text("A shell command");
    let target = refer("target", "What the load runs against");
    let target =
        list_or("Target of loads that have none: one, or one for objects and one for volumes", &target);
    let mut keys = vec![
        ("name", text("Name of the arm")),
        ("description", text("Description")),
        ("target", target),
        (
            "environment",
            json!({
                "description": "Variables for ${NAME} in its loads; they override the process's",
                "type": "object",
                "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            }),
        ),
        (
            "set_up",
            list_or("Set-up commands; lines that they print as NAME=value become variables", &command),
        ),
        ("reset", list_or("Commands to run before each of its runs", &command)),
        ("tear_down", list_or("Commands to run at its end", &command)),
        ("observe", refer("observe", "What to observe on it")),
    ];
    keys.extend(registry.provisioners().map(|kind| (kind.key(), kind.schema().0)));
    table("One thing compared", &["name"], keys)
}

fn load(registry: &Registry) -> Value {
    let mut keys = vec![
        ("name", text("Name of the load")),
        ("description", text("Description")),
        ("document", text("A workload, a COSBench file or a fio job file, relative to the evaluation")),
        ("on_failure", super::workload::on_failure()),
        ("target", refer("target", "What the load runs against, on every arm")),
        ("observe", refer("observe", "What to observe while it runs")),
        ("drivers", super::values::drivers()),
        ("stages", super::workload::stages()),
    ];
    keys.extend(registry.sections().map(|key| (key, refer(key, "Holds for all below"))));
    keys.extend(intensities());
    let mut load = table("One load: the keys of a workload, or the path of a document", &["name"], keys);
    load["oneOf"] = json!([{"required": ["document"]}, {"required": ["stages"]}]);
    load
}

fn levels(axes: &[LevelAxis]) -> Value {
    let axis = |axis: &LevelAxis| (axis.name, list_or("One value, or several", &axis.schema()));
    table(
        "Load intensities; several axes multiply; without an axis there is one level",
        &[],
        axes.iter().map(axis).collect(),
    )
}

fn search(axes: &[LevelAxis]) -> Value {
    let range =
        |axis: &LevelAxis| (axis.name, text("The lowest and the highest, such as 1-2560 or 100/s-20k/s"));
    let mut keys: Vec<Key> = axes.iter().map(range).collect();
    keys.push(("within", share("Precision; default: 5%")));
    let mut search =
        table("A search for the highest load within the service level, over one axis", &[], keys);
    search["oneOf"] = axes.iter().map(|axis| json!({"required": [axis.name]})).collect();
    search
}

fn observe() -> Value {
    let keys = vec![
        ("nodes", list_or("Addresses of `tidemark observe`", &text("Such as http://10.0.0.2:9750"))),
        ("processes", list_or("Processes of the system under test on this node", &text("Name of a process"))),
        ("ceph_sockets", list_or("Directories with admin sockets of Ceph", &text("Such as /var/run/ceph"))),
    ];
    table("What to observe besides the load generator", &[], keys)
}
