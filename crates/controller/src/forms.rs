//! What forms need to know of targets, from the keys that engines declare.

use crate::api::{Form, FormKey, TargetForm};
use serde_json::Value;
use tidemark_keys::{Absent, AnyKey, KIND, Mapping};
use tidemark_plan::registry::Registry;

/// All kinds of targets.
pub(crate) fn targets(registry: &Registry) -> Vec<TargetForm> {
    let targets = registry.targets().into_iter();
    let target = targets.map(|(kind, engine)| TargetForm {
        subject: engine.subject().to_owned(),
        bare: engine.bare_target(kind.name).is_ok(),
        form: form(kind),
    });
    target.collect()
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
    let list = |shape: &Value| shape["type"] == "array";
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

/// The words that a value may be, if it is one of some.
fn choices(schema: &Value) -> Vec<String> {
    let words = schema["enum"].as_array().into_iter().flatten();
    let flags = [Value::Bool(true), Value::Bool(false)];
    match schema["enum"].as_array().is_some_and(|words| words.contains(&flags[0])) {
        true => flags.iter().map(Value::to_string).collect(),
        false => words.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}
