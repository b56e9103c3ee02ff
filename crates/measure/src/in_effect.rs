//! What a system says of its own settings, and how that differs between two times: the proof that a change is in effect, or undone.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The settings that a system says are in effect: what it says by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InEffect(pub BTreeMap<String, Said>);

/// What a system says of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// Its value, word for word.
    Value(String),
    /// A value that is a secret: it is not kept, and so cannot be compared. Not even its hash: short secrets can be guessed from it.
    Secret,
}

impl From<&str> for Said {
    fn from(value: &str) -> Self {
        Said::Value(value.to_owned())
    }
}

impl From<&String> for Said {
    fn from(value: &String) -> Self {
        Said::Value(value.clone())
    }
}

impl fmt::Display for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Said::Value(value) => value,
            Said::Secret => "(a secret)",
        })
    }
}

/// A setting that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The setting, as the system calls it.
    pub name: String,
    /// Its value before; `None`: it was not there.
    pub before: Option<String>,
    /// Its value after; `None`: it is not there any more.
    pub after: Option<String>,
}

impl InEffect {
    /// How many settings there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none: nothing says what is in effect.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The settings whose values are secrets: of these, only whether they are there can be compared.
    pub fn secrets(&self) -> Vec<&str> {
        let secret = self.0.iter().filter(|(_, said)| **said == Said::Secret);
        secret.map(|(name, _)| name.as_str()).collect()
    }

    /// Adds a setting. Further ones of the same name are numbered, so that none is lost.
    pub fn add(&mut self, name: &str, said: impl Into<Said>) {
        let mut own = name.to_owned();
        let mut number = 1;
        while self.0.contains_key(&own) {
            number += 1;
            own = format!("{name} ({number})");
        }
        self.0.insert(own, said.into());
    }

    /// What has changed since an earlier time, in the order of names.
    pub fn changes_since(&self, before: &Self) -> Vec<Change> {
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        let mut names: Vec<&String> = self.0.keys().chain(gone).collect();
        names.sort();
        let change = |name: &String| Change {
            name: name.clone(),
            before: before.0.get(name).map(Said::to_string),
            after: self.0.get(name).map(Said::to_string),
        };
        names.into_iter().map(change).filter(|change| change.before != change.after).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &[(&str, &str)]) -> InEffect {
        let mut all = InEffect::default();
        pairs.iter().for_each(|(name, value)| all.add(name, *value));
        all
    }

    #[test]
    fn only_what_differs_is_a_change() {
        let before = said(&[("cache", "1MB"), ("gone", "1"), ("same", "x")]);
        let after = said(&[("cache", "8MB"), ("new", "2"), ("same", "x")]);
        let words: Vec<String> = after
            .changes_since(&before)
            .iter()
            .map(|change| format!("{} {:?} {:?}", change.name, change.before, change.after))
            .collect();
        assert_eq!(
            words,
            ["cache Some(\"1MB\") Some(\"8MB\")", "gone Some(\"1\") None", "new None Some(\"2\")"]
        );
        assert!(before.changes_since(&before).is_empty());
    }

    #[test]
    fn two_of_one_name_are_both_kept() {
        let all = said(&[("pool", "a"), ("pool", "b")]);
        assert_eq!((all.len(), &all.0["pool (2)"]), (2, &"b".into()));
    }

    #[test]
    fn a_secret_is_not_kept_and_counts_apart() {
        let mut all = said(&[("cache", "1MB")]);
        all.add("password", Said::Secret);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(text, "{\"cache\":\"1MB\",\"password\":null}");
        assert_eq!(serde_json::from_str::<InEffect>(&text).unwrap(), all);
        assert_eq!((all.len(), all.secrets()), (2, vec!["password"]));
        let gone = said(&[("cache", "1MB")]).changes_since(&all);
        assert_eq!((gone.len(), gone[0].before.as_deref()), (1, Some("(a secret)")));
    }
}
