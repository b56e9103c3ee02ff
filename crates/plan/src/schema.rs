//! A JSON Schema of workload and evaluation documents, for editors: completion with descriptions, and the plainest
//! mistakes as they are typed. The reader is stricter, and has the last word.
//!
//! Words are those that the reader knows; tests hold the keys of the two together.

mod evaluation;
#[cfg(test)]
mod tests;
mod values;
mod workload;

use serde_json::{Map, Value, json};

/// The schema of all documents in YAML: an evaluation if there are `arms`, else a workload. JSON Schema, draft 2020-12.
pub fn schema() -> Value {
    let defs: Map<String, Value> = workload::tables()
        .into_iter()
        .chain(evaluation::tables())
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
