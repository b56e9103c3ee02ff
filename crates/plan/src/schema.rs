//! A JSON Schema of workload and evaluation documents, for editors: completion with descriptions, and the plainest
//! mistakes as they are typed. The reader is stricter, and has the last word.
//!
//! Words are those that the reader knows; tests hold the keys of the two together.

mod evaluation;
pub mod values;
mod workload;

use crate::registry::Registry;
use serde_json::{Map, Value, json};
use values::Key;

/// A mapping of documents, or what an engine adds to one.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Its name in the schema: `load`, `target`, `naming`.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// The keys that it must have.
    pub required: Vec<&'static str>,
    /// Its keys and their values.
    pub keys: Vec<Key>,
}

impl Mapping {
    /// A mapping none of whose keys must be there.
    pub fn new(name: &'static str, description: &'static str, keys: Vec<Key>) -> Self {
        Self { name, description, required: Vec::new(), keys }
    }

    /// The same with keys that must be there.
    pub fn requires(mut self, keys: &[&'static str]) -> Self {
        self.required.extend(keys);
        self
    }

    /// Adds the keys of another mapping that this one lacks, and those that it must have.
    fn join(&mut self, other: Mapping) {
        self.required.extend(other.required);
        for (key, value) in other.keys {
            if !self.keys.iter().any(|(known, _)| *known == key) {
                self.keys.push((key, value));
            }
        }
    }
}

/// The schema of all documents in YAML: an evaluation if there are `arms`, else a workload. JSON Schema, draft 2020-12.
pub fn schema(registry: &Registry) -> Value {
    let defs: Map<String, Value> = workload::tables(registry)
        .into_iter()
        .chain(evaluation::tables(registry))
        .map(|(name, table)| (name.to_owned(), table))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidemark document",
        "type": "object",
        "if": {"required": ["arms"]},
        "then": {"$ref": "#/$defs/evaluation"},
        "else": {"$ref": "#/$defs/workload"},
        "$defs": defs,
    })
}
