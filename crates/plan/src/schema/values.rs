//! The kinds of values and mappings in documents, as schemas.

use serde_json::{Map, Value, json};

/// A key and the schema of its value.
pub type Key = (&'static str, Value);

/// A mapping. Keys that begin with `x-` are the author's own.
pub fn table(description: &str, required: &[&str], keys: Vec<Key>) -> Value {
    let properties: Map<String, Value> =
        keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut table = json!({
        // A mapping without any key may be left out: `prepare:`.
        "type": if required.is_empty() { json!(["object", "null"]) } else { json!("object") },
        "description": description,
        "properties": properties,
        "patternProperties": {"^x-": {}},
        "additionalProperties": false,
    });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    table
}

/// A mapping that is described elsewhere.
pub fn refer(name: &str, description: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}"), "description": description})
}

/// One value, or a list of them.
pub fn list_or(description: &str, one: &Value) -> Value {
    json!({"description": description, "anyOf": [one, {"type": "array", "minItems": 1, "items": one}]})
}

/// A list.
pub fn list(description: &str, one: &Value) -> Value {
    json!({"description": description, "type": "array", "minItems": 1, "items": one})
}

/// A text; also what YAML takes for a number.
pub fn text(description: &str) -> Value {
    json!({"description": description, "type": ["string", "number", "boolean"]})
}

/// A whole number from `least` on.
pub fn whole(description: &str, least: u64) -> Value {
    json!({"description": description, "type": "integer", "minimum": least})
}

/// A number of bytes.
pub fn bytes(description: &str) -> Value {
    json!({"description": format!("{description}; bytes such as 64KiB or 64KB"), "type": ["string", "integer"]})
}

/// A duration.
pub fn duration(description: &str) -> Value {
    json!({"description": format!("{description}; a duration such as 60s or 200ms"), "type": ["string", "integer"]})
}

/// A pause, or a distribution of pauses.
pub fn think() -> Value {
    let description = "Pause of a worker between operations; such as 100ms, u(50,150)ms or exp(100)ms";
    json!({"description": description, "type": ["string", "integer"]})
}

/// A rate.
pub fn rate(description: &str) -> Value {
    json!({"description": format!("{description}; operations per time such as 500/s or 30k/s"), "type": "string"})
}

/// A share of 1.
pub fn share(description: &str) -> Value {
    json!({"description": format!("{description}; a share such as 30% or 0.3"), "type": ["string", "number"]})
}

/// Yes or no.
pub fn flag(description: &str) -> Value {
    json!({"description": description, "enum": [true, false, "yes", "no", "on", "off"]})
}

/// A range or a selector.
pub fn selector(description: &str) -> Value {
    json!({"description": format!("{description}; such as 1-100 or zipf(1,100)"), "type": ["string", "integer"]})
}

/// One of several words.
pub fn words<'a>(description: &str, words: impl IntoIterator<Item = &'a str>) -> Value {
    json!({"description": description, "enum": words.into_iter().collect::<Vec<_>>()})
}

/// Which drivers: all, a number of them, or their names.
pub fn wanted(description: &str) -> Value {
    let all = words("All connected drivers", ["all"]);
    let names = list("Their names", &text("Name of a driver"));
    json!({"description": description, "anyOf": [all, whole("This many, whichever are free", 1), names]})
}

/// The drivers of a run: which, or all about them.
pub fn drivers() -> Value {
    let about = "How a run is spread over the drivers of a controller";
    json!({"description": about, "anyOf": [wanted("Drivers that take part"), {"$ref": "#/$defs/drivers"}]})
}
