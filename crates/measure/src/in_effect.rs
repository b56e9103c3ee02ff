//! What a system says of its own settings, and how that differs between two times: the proof that a change is in effect, or undone.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The settings that a system says are in effect: value by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InEffect(pub BTreeMap<String, String>);

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

    /// Adds a setting. Further ones of the same name are numbered, so that none is lost.
    pub fn add(&mut self, name: &str, value: &str) {
        let mut own = name.to_owned();
        let mut number = 1;
        while self.0.contains_key(&own) {
            number += 1;
            own = format!("{name} ({number})");
        }
        self.0.insert(own, value.to_owned());
    }

    /// What has changed since an earlier time, in the order of names.
    pub fn changes_since(&self, before: &Self) -> Vec<Change> {
        let gone = before.0.keys().filter(|name| !self.0.contains_key(*name));
        let mut names: Vec<&String> = self.0.keys().chain(gone).collect();
        names.sort();
        let change = |name: &String| Change {
            name: name.clone(),
            before: before.0.get(name).cloned(),
            after: self.0.get(name).cloned(),
        };
        names.into_iter().map(change).filter(|change| change.before != change.after).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pairs: &[(&str, &str)]) -> InEffect {
        let mut all = InEffect::default();
        pairs.iter().for_each(|(name, value)| all.add(name, value));
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
        assert_eq!((all.len(), all.0["pool (2)"].as_str()), (2, "b"));
    }
}
