//! A YAML text as a tree in which every key and value knows its place.
//!
//! Values keep the spelling of the source, so that `007` stays a name and `64KB` stays exact; what a text means
//! is decided by its reader.

use crate::diagnostic::Diagnostic;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};
use std::cell::Cell;
use std::ops::Range;

/// The largest document that is read: bytes.
const LARGEST_DOCUMENT: usize = 8 << 20;

/// What aliases may let the texts of a document grow to, bytes: twice the largest document.
const LARGEST_TREE: usize = 2 * LARGEST_DOCUMENT;

thread_local! {
    /// Bytes of the texts of the document that this thread parses.
    static GROWN: Cell<usize> = const { Cell::new(0) };
}

/// What to do about a selector that YAML has cut in two.
pub const COMMA: &str = "inside {} and [] a comma ends a value: quote the selector, as in \"zipf(1,100)\"";

/// One value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where, as a range of bytes of the text. A value that is repeated by an alias stands where it is defined.
    pub span: Range<usize>,
}

impl Node {
    /// The entry of a key, if this is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The same, to change it.
    pub fn entry_mut(&mut self, key: &str) -> Option<&mut Entry> {
        match &mut self.value {
            Value::Map(entries) => entries.iter_mut().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The items of a list; a value alone is its own only item.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing was given: `key:` or `key: ~`.
    Nothing,
    /// A text, a number, a yes or no: as it is spelled.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the text; no key occurs twice.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Range<usize>,
    /// The value.
    pub node: Node,
}

/// Parses a text; what is wrong with it as YAML comes back as a diagnostic.
pub fn parse(text: &str) -> Result<Node, Diagnostic> {
    if text.len() > LARGEST_DOCUMENT {
        let help = "the limit is 8 MiB; is this the right file?";
        return Err(Diagnostic::error(0..0, format!("the document has {} bytes", text.len()), help));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        budget: serde_saphyr::budget! { max_depth: 32, max_events: 500_000, max_aliases: 1_000 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 20_000 },
    };
    GROWN.set(0);
    serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options)
        .map(|root| place(root, text))
        .map_err(|error| syntax(&error, text))
}

/// The parser's message as a diagnostic at its place.
fn syntax(error: &serde_saphyr::Error, text: &str) -> Diagnostic {
    let at = error.location().map_or(0..0, |location| range(&location, text));
    let rendered = error.to_string();
    // The parser appends the place, which the diagnostic has itself, and advice for programmers.
    let end = [" at line ", ", set ", "; use "].iter().filter_map(|mark| rendered.find(mark)).min();
    let message = &rendered[..end.unwrap_or(rendered.len())];
    let help = if text[at.start..].starts_with('\t') || text[..at.start].ends_with('\t') {
        "indent with spaces: YAML does not allow tabs"
    } else if message.contains("duplicate") && message.ends_with(')') {
        COMMA
    } else {
        "check indentation, colons and quotes here and on the line before"
    };
    Diagnostic::error(at, format!("this is not well-formed YAML: {message}"), help)
}

fn range(location: &Location, text: &str) -> Range<usize> {
    let span = location.span();
    match (span.byte_offset(), span.byte_len()) {
        (Some(offset), Some(length)) => {
            let start = floor(text, usize::try_from(offset).unwrap_or(0));
            let end = floor(text, start.saturating_add(usize::try_from(length).unwrap_or(0)));
            start..end
        }
        // Errors of the scanner know only how many characters come before them.
        _ => {
            let before = usize::try_from(span.offset()).unwrap_or(0);
            let start = text.char_indices().nth(before).map_or(text.len(), |(at, _)| at);
            start..start
        }
    }
}

/// The nearest boundary of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// What serde gives, before texts and places are taken from the source.
enum Raw {
    Nothing,
    /// A number or a yes or no: spelled as in the source.
    Plain,
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

fn place(raw: Spanned<Raw>, text: &str) -> Node {
    let span = range(&raw.defined, text);
    let value = match raw.value {
        Raw::Nothing => Value::Nothing,
        Raw::Plain => Value::Scalar(text[span.clone()].trim().to_owned()),
        Raw::Text(text) => Value::Scalar(text),
        Raw::List(items) => Value::List(items.into_iter().map(|item| place(item, text)).collect()),
        Raw::Map(pairs) => {
            Value::Map(pairs.into_iter().map(|(key, value)| entry(key, value, text)).collect())
        }
    };
    Node { value, span }
}

fn entry(key: Spanned<String>, value: Spanned<Raw>, text: &str) -> Entry {
    Entry { key_span: range(&key.defined, text), key: key.value, node: place(value, text) }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_bool<E>(self, _value: bool) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_u64<E>(self, _value: u64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_i128<E>(self, _value: i128) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_u128<E>(self, _value: u128) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Raw, E> {
        GROWN.set(GROWN.get().saturating_add(value.len()));
        match GROWN.get() <= LARGEST_TREE {
            true => Ok(Raw::Text(value.to_owned())),
            false => {
                Err(E::custom(format!("its aliases repeat more than {} MiB of text", LARGEST_TREE >> 20)))
            }
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            map.push(pair);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(node: &Node) -> &[Entry] {
        match &node.value {
            Value::Map(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn spelling_and_places_are_kept() {
        let text = "# é\nname: 007\nlist: [1.10, 'x', yes, ~]\nnested:\n  - key: 64KiB\n    big: 1e400\n";
        let root = parse(text).unwrap();
        let entries = map(&root);
        assert_eq!(entries[0].node.value, Value::Scalar("007".into()));
        assert_eq!(&text[entries[0].key_span.clone()], "name");
        assert_eq!(&text[entries[0].node.span.clone()], "007");
        let Value::List(items) = &entries[1].node.value else { panic!() };
        let spelled: Vec<_> = items.iter().map(|item| item.value.clone()).collect();
        let scalar = |text: &str| Value::Scalar(text.into());
        assert_eq!(spelled, [scalar("1.10"), scalar("x"), scalar("yes"), Value::Nothing]);
        let Value::List(items) = &entries[2].node.value else { panic!() };
        let inner = map(&items[0]);
        assert_eq!(&text[inner[0].node.span.clone()], "64KiB");
        assert_eq!(inner[1].node.value, scalar("1e400"));
    }

    #[test]
    fn aliases_and_merges_repeat_a_value() {
        let text = "a: &one {x: 1, y: 2}\nb: *one\nc: {<<: *one, y: 3}\n";
        let root = parse(text).unwrap();
        let entries = map(&root);
        assert_eq!(map(&entries[0].node), map(&entries[1].node));
        let merged: Vec<_> = map(&entries[2].node).iter().map(|entry| entry.key.as_str()).collect();
        assert!(merged.contains(&"x") && merged.contains(&"y"), "{merged:?}");
    }

    #[test]
    fn broken_yaml_points_at_its_place() {
        let place = |text: &str| parse(text).unwrap_err().line_and_column(text).0;
        assert_eq!(place("name: a\nstages: [1, 2\n  x: 3\n"), 3);
        assert_eq!(place("a: 1\na: 2\n"), 2);
        assert!(parse("a: 1\na: 2\n").unwrap_err().message.ends_with("duplicate mapping key: a"));
        assert_eq!(parse("a: {b: u(1,9), c: u(1,9)}").unwrap_err().help, COMMA);
        assert!(parse("a:\n\t- b\n").unwrap_err().help.contains("tabs"));
        assert!(parse("--- \na: 1\n---\nb: 2\n").is_err());
    }

    #[test]
    fn bombs_are_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..9 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{items}]\n");
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&format!("a: {}{}", "[".repeat(1000), "]".repeat(1000))).is_err());
        assert!(parse(&" ".repeat(LARGEST_DOCUMENT + 1)).unwrap_err().message.contains("bytes"));
    }
}
