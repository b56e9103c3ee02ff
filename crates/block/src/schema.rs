//! The keys of documents on block storage.

use crate::job::pattern::PATTERNS;
use crate::job::profile::PROFILES;
use serde_json::{Value, json};
use tidemark_plan::schema::Mapping;
use tidemark_plan::schema::values::{Key, bytes, duration, flag, list_or, share, text, whole, words};

/// What works and targets have beside the keys of all engines.
pub(crate) fn mappings() -> Vec<Mapping> {
    vec![
        Mapping::new("target", "What the load runs against", target()),
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
        ("engine", words("Engine that issues the operations", ["native", "fio"])),
        ("direct", flag("Bypass the page cache")),
        ("polled", flag("Poll for completions")),
        ("pool", text("Pool of the images")),
        ("image", text("Name of the images, before their numbers")),
        ("user", text("Name of the Ceph client")),
        ("conf", text("Configuration file of the Ceph cluster")),
    ]
}

fn workers() -> Key {
    ("workers", whole("Number of logical clients", 1))
}

fn depth() -> Value {
    whole("Operations in flight per client", 1)
}

fn prepare() -> Vec<Key> {
    vec![workers(), ("depth", depth()), ("reuse", flag("Keep a volume that already holds the content"))]
}

fn precondition() -> Vec<Key> {
    vec![
        ("pattern", words("Write pattern", ["write", "randwrite"])),
        ("block_size", block_size()),
        ("passes", whole("How many times to write the capacity", 1)),
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
        "description": "Start the window once rounds of this length are steady",
        "anyOf": [{"$ref": "#/$defs/steady"}, duration("Length of a round")],
    });
    vec![
        ("pattern", list_or("Access pattern of a load on volumes", &patterns)),
        ("block_size", list_or("Block sizes", &block_size())),
        ("depth", list_or("Operations in flight per client", &depth())),
        ("clients", list_or("Clients of a load on volumes", &whole("A number of clients", 1))),
        ("repeats", whole("How many times to measure everything, within one run", 1)),
        ("reads", share("Share of reads")),
        ("random", share("Share of operations at random offsets")),
        ("distribution", text("Distribution of random offsets: uniform, or zipf(0.99)")),
        ("batch", whole("Operations submitted and completed together", 1)),
        ("fsync", whole("Sync after this many writes of a client", 1)),
        ("fdatasync", whole("Sync data after this many writes of a client", 1)),
        ("end_sync", flag("Sync every volume after the load")),
        ("cache", words("Drop (cold) or keep (warm) the page cache before the load", ["cold", "warm"])),
        ("steady", steady),
    ]
}
