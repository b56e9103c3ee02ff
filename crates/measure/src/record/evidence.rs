//! What engines found out about a stage beside rates and times: data of their own, each under a key of its own.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Data of engines by key, such as `commits`. Only the kind of evidence with that key knows what they mean (`tidemark_judge::evidence`):
/// everybody else keeps them as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Evidence(BTreeMap<String, Value>);

impl Evidence {
    /// The data under a key; `None` where there are none, an error where they are of another form.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<Result<T, serde_json::Error>> {
        self.0.get(key).map(T::deserialize)
    }

    /// All keys and their data.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, data)| (key.as_str(), data)).filter(|(_, data)| !is_nothing(data))
    }

    /// The data under a key, whatever they are.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Puts data under a key, in place of those that were there.
    pub fn insert(&mut self, key: impl Into<String>, data: Value) {
        self.0.insert(key.into(), data);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl IntoIterator for Evidence {
    type Item = (String, Value);
    type IntoIter = std::collections::btree_map::IntoIter<String, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Records of earlier versions have empty lists where an engine found out nothing.
fn is_nothing(data: &Value) -> bool {
    match data {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_come_back_as_they_went_in_and_other_forms_are_errors() {
        let mut evidence = Evidence::default();
        evidence.insert("naps", serde_json::json!([3, u64::MAX]));
        assert_eq!(evidence.get::<Vec<u64>>("naps").unwrap().unwrap(), [3, u64::MAX]);
        assert!(evidence.get::<Vec<String>>("naps").unwrap().is_err());
        assert!(evidence.get::<Vec<u64>>("others").is_none());
    }

    #[test]
    fn empty_lists_of_earlier_versions_are_no_evidence() {
        let evidence: Evidence = serde_json::from_str(r#"{"commits":[],"cycles":null}"#).unwrap();
        assert!(evidence.is_empty());
    }
}
