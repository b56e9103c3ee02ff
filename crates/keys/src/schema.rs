//! Declarations as a JSON Schema, draft 2020-12: for editors, which complete and explain keys and show the plainest mistakes as
//! they are typed. Readers are stricter, and have the last word.

use crate::key::{Absent, AnyKey, KIND, Mapping};
use serde_json::{Map, Value, json};

/// The mappings of a schema, by name.
#[derive(Default)]
pub struct Definitions {
    schemas: Map<String, Value>,
    added: Vec<&'static Mapping>,
}

impl Definitions {
    /// Adds a mapping, and those that its keys hold.
    pub fn add(&mut self, mapping: &'static Mapping) {
        self.add_with(mapping, &[]);
    }

    /// The same with more keys.
    pub fn add_with(&mut self, mapping: &'static Mapping, more: &[&'static AnyKey]) {
        if let Some(known) = self.added.iter().find(|known| known.name == mapping.name) {
            debug_assert!(std::ptr::eq(*known, mapping), "two mappings are named `{}`", mapping.name);
            return;
        }
        self.added.push(mapping);
        let keys: Vec<_> = mapping.all().into_iter().chain(more.iter().copied()).collect();
        let mut required = required(&keys);
        if mapping.is_kind {
            required.push(KIND.name);
        }
        let mut schema = definition(mapping.about, &keys, &required);
        if mapping.is_kind {
            schema["properties"][KIND.name] = json!({"const": mapping.name, "description": mapping.about});
        }
        if !mapping.one_of.is_empty() {
            schema["oneOf"] = exactly_one(mapping.one_of);
        }
        self.put(mapping.name, schema);
        self.add_below(&keys);
    }

    /// Adds the mappings that keys hold.
    pub fn add_below(&mut self, keys: &[&'static AnyKey]) {
        keys.iter().flat_map(|key| key.shape.mappings()).for_each(|mapping| self.add(mapping));
    }

    /// Adds what is put together elsewhere.
    pub fn put(&mut self, name: &str, schema: Value) {
        self.schemas.insert(name.to_owned(), schema);
    }

    /// The schema of documents: of the mapping `then` if it has the key `has`, else of `otherwise`.
    pub fn document(self, title: &str, has: &AnyKey, then: &Mapping, otherwise: &Mapping) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": title,
            "type": "object",
            "if": {"required": [has.name]},
            "then": refer(then.name),
            "else": refer(otherwise.name),
            "$defs": self.schemas,
        })
    }
}

/// How a setting stands in the place of a value.
const SETTING: &str = r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$";

/// Lets `${NAME}` stand where a schema asks for a number, a flag or a word: a search for better settings puts their values there before
/// the value is read.
pub fn allow_settings(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(allow_settings),
        Value::Object(own) => {
            for (key, below) in own.iter_mut() {
                // Which keys a mapping has does not depend on a setting.
                if key != KIND.name {
                    allow_settings(below);
                }
            }
            let types = own.get("type").map(|types| match types {
                Value::Array(types) => types.clone(),
                one => vec![one.clone()],
            });
            let is_one = |of: &[&str]| types.iter().flatten().any(|one| of.iter().any(|name| one == name));
            if is_one(&["integer", "number", "boolean"]) && !is_one(&["string"]) {
                let types = types.unwrap_or_default();
                own.insert("type".into(), types.into_iter().chain([json!("string")]).collect());
                own.insert("pattern".into(), SETTING.into());
            }
            if own.get("enum").is_some_and(Value::is_array)
                && let Some(words) = own.remove("enum")
            {
                own.insert("anyOf".into(), json!([{"enum": words}, {"type": "string", "pattern": SETTING}]));
            }
        }
        _ => {}
    }
}

/// A mapping that is defined under its name.
pub fn refer(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A mapping with these keys, some of which it must have. Those that begin with `x-` are the author's own.
pub fn definition(about: &str, keys: &[&'static AnyKey], required: &[&str]) -> Value {
    let mut schema = json!({
        // A mapping that needs no key may be left out: `prepare:`.
        "type": if required.is_empty() { json!(["object", "null"]) } else { json!("object") },
        "description": about,
        "properties": properties(keys),
        "patternProperties": {"^x-": {}},
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// A mapping whose `kind` says which of these it is.
pub fn of_kinds(kinds: &[&'static Mapping]) -> Value {
    let is = |name: &str| json!({"properties": {KIND.name: {"const": name}}});
    let each = |kind: &&'static Mapping| json!({"if": is(kind.name), "then": refer(kind.name)});
    json!({
        "type": "object",
        "properties": {KIND.name: {"enum": kinds.iter().map(|kind| kind.name).collect::<Vec<_>>()}},
        "required": [KIND.name],
        "allOf": kinds.iter().map(each).collect::<Vec<_>>(),
    })
}

/// A mapping with exactly one of these keys.
pub fn one_key(keys: &[&'static AnyKey]) -> Value {
    json!({
        "type": "object",
        "properties": properties(keys),
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
    })
}

/// That exactly one of some keys is there.
pub fn exactly_one(keys: &[&'static AnyKey]) -> Value {
    keys.iter().map(|key| json!({"required": [key.name]})).collect()
}

/// Those of some keys that must be there.
pub fn required(keys: &[&'static AnyKey]) -> Vec<&'static str> {
    let required = keys.iter().filter(|key| matches!(key.absent, Absent::Required(_)));
    required.map(|key| key.name).collect()
}

fn properties(keys: &[&'static AnyKey]) -> Map<String, Value> {
    let mut all = Map::new();
    for key in keys {
        let own = property(key);
        match all.get_mut(key.name) {
            None => _ = all.insert(key.name.to_owned(), own),
            Some(known) if *known == own => {}
            // Several engines have a key of this name, each in its own way.
            Some(known) => {
                let words =
                    [&*known, &own].map(|one| one["description"].as_str().unwrap_or_default().to_owned());
                *known = json!({"description": words.join("; or: "), "anyOf": [known.take(), own]});
            }
        }
    }
    all
}

/// A key's value.
pub fn property(key: &AnyKey) -> Value {
    let mut schema = key.shape.schema();
    let about = match schema["description"].as_str() {
        Some(written) => format!("{}; {written}", key.about),
        None => key.about.to_owned(),
    };
    schema["description"] = about.into();
    if let Absent::Default(text) = key.absent {
        schema["default"] = text.into();
    }
    if !key.example.is_empty() {
        schema["examples"] = json!([key.example]);
    }
    schema
}
