//! What forms need to know of targets, from the keys that engines declare.

use crate::api::{Form, FormKey, TargetForm};
use serde_json::Value;
use std::collections::HashSet;
use tidemark_keys::{Absent, AnyKey, KIND, Mapping};
use tidemark_plan::engine::Engine;
use tidemark_plan::registry::Registry;
use tidemark_plan::yaml::works::WORK;

/// All kinds of targets.
pub(crate) fn targets(registry: &Registry) -> Vec<TargetForm> {
    let targets = registry.targets().into_iter();
    let target = targets.map(|(kind, engine)| TargetForm {
        subject: engine.subject().to_owned(),
        bare: engine.bare_target(kind.name).is_ok(),
        form: form(kind),
        works: works(engine, kind.name),
    });
    target.collect()
}

/// The works that an engine has on a kind of target, with those of their keys that take single values: forms write these.
fn works(engine: &dyn Engine, target: &str) -> Vec<Form> {
    let works = engine.works_on(target).into_iter().map(|mapping| {
        // Several workloads of one engine may have a key of the same name, which a document writes once.
        let mut names = HashSet::new();
        let keys = mapping.all().into_iter().chain(WORK.all());
        let single = keys.filter(|key| is_single(&key.shape.schema()) && names.insert(key.name));
        Form {
            name: mapping.name.to_owned(),
            about: mapping.about.to_owned(),
            keys: single.map(|key| FormKey { kinds: Vec::new(), ..field(key) }).collect(),
            one_of: Vec::new(),
        }
    });
    works.collect()
}

/// Whether a value can be written in one line without braces, whatever else it may be.
fn is_single(schema: &Value) -> bool {
    let schema = first(schema);
    let of_kind = |kind: &Value| !matches!(kind.as_str(), None | Some("object" | "array"));
    let kinds = schema["type"].as_array();
    schema["enum"].is_array()
        || kinds.map_or_else(|| of_kind(&schema["type"]), |kinds| kinds.iter().all(of_kind))
}

/// The first of several shapes that a value may be of, through all alternatives.
fn first(schema: &Value) -> &Value {
    schema["anyOf"].get(0).map_or(schema, first)
}

fn form(mapping: &Mapping) -> Form {
    let keys = mapping.all();
    Form {
        name: mapping.name.to_owned(),
        about: mapping.about.to_owned(),
        keys: keys.into_iter().filter(|key| key.name != KIND.name).map(field).collect(),
        one_of: mapping.one_of.iter().map(|key| key.name.to_owned()).collect(),
    }
}

fn field(key: &AnyKey) -> FormKey {
    let schema = key.shape.schema();
    let default = if let Absent::Default(text) = key.absent { text } else { "" };
    let list = |shape: &Value| shape["type"] == "array" && is_single(&shape["items"]);
    FormKey {
        name: key.name.to_owned(),
        about: key.about.to_owned(),
        value: key.shape.words(),
        required: matches!(key.absent, Absent::Required(_)),
        default: default.to_owned(),
        example: key.example.to_owned(),
        choices: choices(&schema),
        list: schema["anyOf"].as_array().is_some_and(|shapes| shapes.iter().any(list)),
        secret: key.secret,
        kinds: key.shape.mappings().into_iter().map(form).collect(),
    }
}

/// The words that a value may be, if it is one of some; or each of a list.
fn choices(schema: &Value) -> Vec<String> {
    let schema = first(schema);
    let words = schema["enum"].as_array().into_iter().flatten();
    let flags = [Value::Bool(true), Value::Bool(false)];
    match schema["enum"].as_array().is_some_and(|words| words.contains(&flags[0])) {
        true => flags.iter().map(Value::to_string).collect(),
        false => words.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}
