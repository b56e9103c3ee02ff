//! Config strings: `key=value;key=value`, each entry with its place.

use super::remarks::{Remarks, shown};
use super::template;
use super::tree::{Element, Value};
use std::collections::HashSet;
use std::ops::Range;
use tidemark_keys::nearest::nearest;
use tidemark_plan::secret::Secret;

/// One `key=value`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    source: &'a Value,
    key_at: usize,
    value_at: usize,
}

impl Entry<'_> {
    /// Where the key stands in the document.
    pub(super) fn key_span(&self) -> Range<usize> {
        self.source.place(self.key_at..self.key_at + self.key.len())
    }

    /// Where the value stands in the document.
    pub(super) fn span(&self) -> Range<usize> {
        self.place(0..self.value.len())
    }

    /// The value as the document has it, short enough for a message.
    pub(super) fn shown(&self) -> String {
        shown(&self.source.written(self.value_at..self.value_at + self.value.len()))
    }

    /// The value as a secret.
    pub(super) fn secret(&self) -> Secret {
        self.source.secret(self.value_at..self.value_at + self.value.len())
    }

    /// The key as the document has it, short enough for a message.
    fn shown_key(&self) -> String {
        shown(&self.source.written(self.key_at..self.key_at + self.key.len()))
    }

    /// Whether a variable or a placeholder has yet to be given a value: an error that is reported elsewhere.
    fn is_unfilled(&self) -> bool {
        let own = self.value_at..=self.value_at + self.value.len();
        self.source.unfilled.iter().any(|at| own.contains(at)) || template::first(self.value, true).is_some()
    }

    /// Where a part of the value stands in the document.
    pub(super) fn place(&self, part: Range<usize>) -> Range<usize> {
        self.source.place(self.value_at + part.start..self.value_at + part.end)
    }
}

/// The keys of targets whose values are read as secrets.
const SECRETS: [&str; 9] = [
    "accesskey",
    "accessKey",
    "secretkey",
    "secretKey",
    "session_token",
    "sessionToken",
    "token",
    "password",
    "key",
];

/// Whether what stands at `at` of a target's config is part of the value of a key that is read as a secret.
pub(super) fn holds_secret(config: &str, at: usize) -> bool {
    let entry = config[..at].rsplit(';').next().unwrap_or_default();
    entry.split_once('=').is_some_and(|(key, _)| SECRETS.contains(&key.trim()))
}

/// More entries than this in one config are a mistake or an attack.
const MOST_ENTRIES: usize = 64;

/// The keys that a config may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vocabulary {
    pub(super) keys: &'static [&'static str],
    /// The owner of the keys, for messages: `storage s3`.
    pub(super) owner: &'static str,
}

/// The entries that hold at one place of the document, outer ones first; later ones win.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings<'a> {
    entries: Vec<Entry<'a>>,
}

impl<'a> Settings<'a> {
    /// These settings with those of an element added, as COSBench inherits them. The element's own are
    /// checked against the vocabulary.
    pub(super) fn within(&self, element: &'a Element, words: Vocabulary, remarks: &mut Remarks) -> Self {
        let mut settings = self.clone();
        if let Some(value) = element.value("config") {
            let outer = settings.entries.len();
            settings.read(value, remarks);
            settings.entries[outer..].iter().for_each(|entry| check(entry, words, remarks));
        }
        settings
    }

    fn read(&mut self, source: &'a Value, remarks: &mut Remarks) {
        let (mut at, outer) = (0, self.entries.len());
        for part in source.text.split(';') {
            let start = at;
            at += part.len() + 1;
            if part.trim().is_empty() {
                continue;
            }
            if self.entries.len() - outer == MOST_ENTRIES {
                let message = format!("a config has more than {MOST_ENTRIES} entries");
                return remarks.error(source.place(start..source.text.len()), message, "remove some");
            }
            let Some((key, value)) = part.split_once('=') else {
                // Not quoted: it may be the rest of a secret that contains a semicolon.
                let span = source.place(start..start + part.len());
                remarks.warning(
                    span,
                    "an entry without `=` is ignored",
                    "write key=value, entries separated by `;`",
                );
                continue;
            };
            let blank = |text: &str| text.len() - text.trim_start().len();
            self.entries.push(Entry {
                key: key.trim(),
                value: value.trim(),
                source,
                key_at: start + blank(key),
                value_at: start + key.len() + 1 + blank(value),
            });
        }
    }

    /// The entries that hold, each key once, in the order of the document.
    pub(super) fn effective(&self) -> Vec<&Entry<'a>> {
        let mut seen = HashSet::new();
        let mut entries: Vec<_> = self.entries.iter().rev().filter(|entry| seen.insert(entry.key)).collect();
        entries.reverse();
        entries
    }

    /// The entry under any of the keys, if it has a value; one that has yet to be filled in has none.
    pub(super) fn find(&self, keys: &[&str]) -> Option<&Entry<'a>> {
        let entry = self.entries.iter().rfind(|entry| keys.contains(&entry.key))?;
        (!entry.value.is_empty() && !entry.is_unfilled()).then_some(entry)
    }

    /// Whether any of the keys is present, even without a value or with a placeholder.
    pub(super) fn mentions(&self, keys: &[&str]) -> bool {
        self.entries.iter().any(|entry| keys.contains(&entry.key))
    }

    /// Whether a key is present without a value.
    pub(super) fn is_blank(&self, keys: &[&str]) -> bool {
        self.entries
            .iter()
            .rfind(|entry| keys.contains(&entry.key))
            .is_some_and(|entry| entry.value.is_empty() && !entry.is_unfilled())
    }

    /// The text under any of the keys, or `default`.
    pub(super) fn text(&self, keys: &[&str], default: &str) -> String {
        self.find(keys).map_or(default, |entry| entry.value).to_owned()
    }

    /// The secret under any of the keys, which are among [`SECRETS`].
    pub(super) fn secret(&self, keys: &[&str]) -> Option<Secret> {
        debug_assert!(keys.iter().all(|key| SECRETS.contains(key)), "{keys:?}");
        self.find(keys).map(Entry::secret)
    }

    /// The switch under any of the keys; off by default.
    pub(super) fn flag(&self, keys: &[&str], remarks: &mut Remarks) -> bool {
        let Some(entry) = self.find(keys) else { return false };
        match entry.value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => true,
            "false" | "no" | "off" | "0" => false,
            _ => {
                let message = format!("`{}` is neither true nor false: {}", entry.key, entry.shown());
                remarks.error(
                    entry.span(),
                    message,
                    format!("write {}=true or {}=false", entry.key, entry.key),
                );
                false
            }
        }
    }

    /// The whole number under any of the keys, if there is one.
    pub(super) fn number(&self, keys: &[&str], remarks: &mut Remarks) -> Option<u64> {
        let entry = self.find(keys)?;
        let number = entry.value.parse::<u64>().ok().filter(|number| *number <= i64::MAX as u64);
        if number.is_none() {
            let message = format!("`{}` is not a whole number: {}", entry.key, entry.shown());
            remarks.error(entry.span(), message, "write digits only");
        }
        number
    }
}

/// Warns about a key that is not known.
fn check(entry: &Entry<'_>, words: Vocabulary, remarks: &mut Remarks) {
    if words.keys.contains(&entry.key) || remarks.full() {
        return;
    }
    let help = match nearest(entry.key, words.keys.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? Keys are case-sensitive"),
        None if words.keys.is_empty() => format!("{} has no settings", words.owner),
        None => format!("valid keys: {}", words.keys.join(", ")),
    };
    let message = format!("{} is not a key of {} and is ignored", entry.shown_key(), words.owner);
    remarks.warning(entry.key_span(), message, help);
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    #[test]
    fn entries_know_their_place_and_later_ones_win() {
        let text = "<a config=\" x = 1&amp;2 ;y=é;lonely;x=3;Zeal=\"/>";
        let mut remarks = Remarks::default();
        let root = tree::read(text, &mut remarks).unwrap();
        let words = Vocabulary { keys: &["x", "zeal"], owner: "the test" };
        let settings = Settings::default().within(&root, words, &mut remarks);
        let found: Vec<(&str, &str, &str, &str)> = settings
            .entries
            .iter()
            .map(|entry| (entry.key, entry.value, &text[entry.key_span()], &text[entry.span()]))
            .collect();
        assert_eq!(
            found,
            [
                ("x", "1&2", "x", "1&amp;2"),
                ("y", "é", "y", "é"),
                ("x", "3", "x", "3"),
                ("Zeal", "", "Zeal", "")
            ]
        );
        assert_eq!(settings.find(&["x"]).unwrap().value, "3");
        assert_eq!(
            settings.effective().iter().map(|entry| entry.key).collect::<Vec<_>>(),
            ["y", "x", "Zeal"]
        );
        assert!(settings.find(&["Zeal"]).is_none() && settings.mentions(&["Zeal"]));
        let remarks = remarks.sorted();
        assert_eq!(
            remarks.iter().map(|remark| &text[remark.span.clone()]).collect::<Vec<_>>(),
            ["y", "lonely", "Zeal"]
        );
        assert_eq!(remarks[2].help, "did you mean `zeal`? Keys are case-sensitive");
    }
}
