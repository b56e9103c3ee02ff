//! The keys of documents on block storage.

use crate::job::pattern::PATTERNS;
use crate::job::profile::PROFILES;
use serde_json::{Value, json};
use tidemark_plan::schema::Mapping;
use tidemark_plan::schema::values::{Key, bytes, duration, flag, list_or, share, text, whole, words};

/// What works and targets have beside the keys of all engines.
pub(crate) fn mappings() -> Vec<Mapping> {
    vec![
        Mapping::new("target", "What load is put on", target()),
        Mapping::new("prepare", "Fills volumes", prepare()),
        Mapping::new("precondition", "Writes the capacity of volumes several times", precondition()),
        Mapping::new("load", "The load that is measured", load()),
        Mapping::new("cleanup", "Removes files and images", vec![workers()]),
    ]
}

fn target() -> Vec<Key> {
    vec![
        ("size", bytes("Size of each volume")),
        ("path", list_or("Path of the file or device", &text("A path"))),
        ("paths", list_or("Paths of the files or devices", &text("A path"))),
        ("count", whole("How many files or images", 1)),
        ("engine", words("What issues the operations", ["native", "fio"])),
        ("direct", flag("Bypass the page cache")),
        ("polled", flag("Poll for completions")),
        ("pool", text("Pool of the images")),
        ("image", text("Name of the images, numbered")),
        ("user", text("Name of the Ceph client")),
        ("conf", text("Configuration of the Ceph cluster")),
    ]
}

fn workers() -> Key {
    ("workers", whole("Logical clients", 1))
}

fn depth() -> Value {
    whole("Operations of a client in flight at once", 1)
}

fn prepare() -> Vec<Key> {
    vec![
        workers(),
        ("depth", depth()),
        ("reuse", flag("A volume that holds the content already is left as it is")),
    ]
}

fn precondition() -> Vec<Key> {
    vec![
        ("pattern", words("How it is written", ["write", "randwrite"])),
        ("block_size", block_size()),
        ("passes", whole("How often the capacity is written", 1)),
        ("depth", depth()),
    ]
}

fn block_size() -> Value {
    let split = json!({
        "description": "Sizes with weights, such as {4KiB: 60, 64KiB: 40}",
        "type": "object",
        "additionalProperties": {"type": ["integer", "string"]},
    });
    json!({"description": "Block size", "anyOf": [bytes("Block size"), split]})
}

fn load() -> Vec<Key> {
    let patterns = PATTERNS.iter().map(|pattern| pattern.name);
    let patterns = words("Pattern or profile", patterns.chain(PROFILES.iter().map(|profile| profile.name)));
    let steady = json!({
        "description": "The window begins when rounds of this length are steady",
        "anyOf": [{"$ref": "#/$defs/steady"}, duration("Length of a round")],
    });
    vec![
        ("pattern", list_or("What a load on volumes does", &patterns)),
        ("block_size", list_or("Block sizes", &block_size())),
        ("depth", list_or("Operations of a client in flight at once", &depth())),
        ("clients", list_or("Clients of a load on volumes", &whole("A number of clients", 1))),
        ("repeats", whole("How often all of it is measured, one run for all", 1)),
        ("reads", share("Operations that read")),
        ("random", share("Operations at random offsets")),
        ("distribution", text("Of random offsets: uniform, or zipf(0.99)")),
        ("batch", whole("Operations submitted and completed together", 1)),
        ("fsync", whole("A sync after every so many writes of a client", 1)),
        ("fdatasync", whole("A sync of data after every so many writes of a client", 1)),
        ("end_sync", flag("Every volume is synced after the load")),
        ("cache", words("What the page cache holds before the load is dropped or kept", ["cold", "warm"])),
        ("steady", steady),
    ]
}
