//! What of a resource differs from what the document says.

use serde::Serialize;
use serde_json::Value;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where it is: `spec.mon.count`.
    pub field: String,
    /// What is there; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<Value>,
    /// What it would become; absent if nothing would be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should: Option<Value>,
}

/// Fields in which a resource differs from what it would be after an apply, but for those that the API server keeps for itself.
pub(crate) fn differences(is: &Value, should: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    compare("", Some(is), Some(should), &mut all);
    all
}

fn compare(field: &str, is: Option<&Value>, should: Option<&Value>, all: &mut Vec<Difference>) {
    if is == should || is_kept(field) {
        return;
    }
    match (is, should) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let added = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(added) {
                let below = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
                compare(&below, one.get(key), other.get(key), all);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for place in 0..one.len().max(other.len()) {
                compare(&format!("{field}[{place}]"), one.get(place), other.get(place), all);
            }
        }
        _ => all.push(Difference { field: field.to_owned(), is: is.cloned(), should: should.cloned() }),
    }
}

/// Whether a field is the API server's, or an operator's.
fn is_kept(field: &str) -> bool {
    matches!(field.strip_prefix("metadata.").and_then(|rest| rest.split('.').next()),
        Some(name) if name != "labels" && name != "annotations")
        || field == "status"
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "absent".to_owned(), Value::to_string);
        write!(formatter, "{} is {}, and should be {}", self.field, text(&self.is), text(&self.should))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_named_and_what_the_server_keeps_is_not() {
        let is = json!({"metadata": {"name": "a", "resourceVersion": "1", "generation": 1, "labels": {"x": "1"}},
            "spec": {"mon": {"count": 5}, "sets": [{"count": 1}], "more": true}, "status": {"phase": "Ready"}});
        let should = json!({"metadata": {"name": "a", "resourceVersion": "2", "generation": 2, "labels": {"x": "2"}},
            "spec": {"mon": {"count": 3}, "sets": [{"count": 1}, {"count": 2}]}});
        let said: Vec<_> = differences(&is, &should).iter().map(ToString::to_string).collect();
        let expected = [
            "metadata.labels.x is \"1\", and should be \"2\"",
            "spec.mon.count is 5, and should be 3",
            "spec.more is true, and should be absent",
            "spec.sets[1] is absent, and should be {\"count\":2}",
        ];
        assert_eq!(said, expected);
        assert_eq!(differences(&is, &is), []);
    }
}
