//! The secrets of a YAML text, as a parser sees them: whatever its keys and values are spelled like.
//!
//! The parser is the one that documents are read with, one level below: its events have places, and a text that is wrong in
//! other ways, with a key twice for instance, has them too.

use super::{HIDDEN, HIDDEN_QUOTED, Hidden, has_secrets, is_secret};
use granit_parser::{Event, Parser, ScalarStyle};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The secrets, as far as the text can be parsed, and where the keys stand whose values were.
pub(super) fn secrets(text: &str) -> (Vec<Hidden>, Vec<Range<usize>>) {
    let mut walk = Walk { text, ..Walk::default() };
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        let Some(place) = span.byte_range().filter(|place| text.get(place.clone()).is_some()) else { break };
        walk.take(event, place);
    }
    walk.finish()
}

/// A value that is not a mapping or a list.
struct Scalar {
    place: Range<usize>,
    text: String,
    style: ScalarStyle,
    /// The key that it stands under, by its number among all keys.
    key: Option<usize>,
    secret: bool,
}

/// A mapping or list that is not at its end.
struct Open {
    kind: Kind,
    /// Whether all that it holds is secret.
    secret: bool,
    anchor: usize,
    /// How many scalars and aliases come before it.
    before: (usize, usize),
    /// The key that it stands under.
    under: Option<usize>,
    /// In a mapping: the key whose value comes next.
    key: Option<usize>,
}

#[derive(PartialEq)]
enum Kind {
    Mapping,
    List,
    /// A mapping or list that is itself a key.
    Key,
}

#[derive(Default)]
struct Walk<'t> {
    text: &'t str,
    scalars: Vec<Scalar>,
    /// All keys of mappings and where they stand; those that are no text are empty.
    keys: Vec<(String, Range<usize>)>,
    /// Where the keys stand whose values were parsed.
    parsed: Vec<Range<usize>>,
    open: Vec<Open>,
    /// The scalars and aliases of anchored nodes.
    anchored: HashMap<usize, (Range<usize>, Range<usize>)>,
    /// The anchors of aliases, and whether they stand for secrets.
    aliases: Vec<(usize, bool)>,
}

impl Walk<'_> {
    fn take(&mut self, event: Event<'_>, place: Range<usize>) {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let number = self.scalars.len();
                if anchor > 0 {
                    self.anchored.insert(anchor, (number..number + 1, 0..0));
                }
                // A password that begins with `!` is a tag to the parser.
                let is_value = !text.is_empty() && tag.as_ref().is_none_or(|tag| !tag.is_custom());
                let (key, secret) = match self.begins_key() {
                    true => {
                        // What such a key is called is known to its reader only.
                        let encoded = tag.is_some_and(|tag| tag.suffix() == "binary");
                        let name = if encoded { "secret".to_owned() } else { text.clone().into_owned() };
                        self.set_key(name, place.clone());
                        (None, false)
                    }
                    false if is_value => self.parsed_value(),
                    false => self.value(),
                };
                self.scalars.push(Scalar { place, text: text.into_owned(), style, key, secret });
            }
            Event::Alias(anchor) => {
                let named =
                    self.anchored.get(&anchor).and_then(|(scalars, _)| self.scalars.get(scalars.start));
                let named = named.map(|scalar| scalar.text.clone());
                match self.begins_key() {
                    true => self.set_key(named.unwrap_or_default(), place),
                    false => {
                        let (_, secret) = self.parsed_value();
                        self.aliases.push((anchor, secret));
                    }
                }
            }
            Event::MappingStart(_, anchor, _) => self.begin(Kind::Mapping, anchor),
            Event::SequenceStart(_, anchor, _) => self.begin(Kind::List, anchor),
            Event::MappingEnd | Event::SequenceEnd => self.end(),
            _ => {}
        }
    }

    /// Whether the next node is a key.
    fn begins_key(&self) -> bool {
        self.open.last().is_some_and(|open| open.kind == Kind::Mapping && open.key.is_none())
    }

    fn set_key(&mut self, key: String, place: Range<usize>) {
        self.keys.push((key, place));
        if let Some(open) = self.open.last_mut() {
            open.key = Some(self.keys.len() - 1);
        }
    }

    /// The key of a value, and whether it is a secret; the next node of a mapping is a key again.
    fn value(&mut self) -> (Option<usize>, bool) {
        let Some(open) = self.open.last_mut() else { return (None, false) };
        let key = if open.kind == Kind::Mapping { open.key.take() } else { open.key };
        (key, open.secret || key.is_some_and(|key| is_secret(self.keys[key].0.trim())))
    }

    /// The same of a value that is no mapping or list.
    fn parsed_value(&mut self) -> (Option<usize>, bool) {
        let (key, secret) = self.value();
        self.parsed.extend(key.map(|key| self.keys[key].1.clone()));
        (key, secret)
    }

    fn begin(&mut self, kind: Kind, anchor: usize) {
        let is_key = self.begins_key();
        let (key, secret) = if is_key { (None, false) } else { self.value() };
        let before = (self.scalars.len(), self.aliases.len());
        let kind = if is_key { Kind::Key } else { kind };
        // What stands in a list stands under the list's key.
        let own = if kind == Kind::List { key } else { None };
        self.open.push(Open { kind, secret, anchor, before, under: key, key: own });
    }

    fn end(&mut self) {
        let Some(Open { kind, anchor, before: (scalar, alias), under, .. }) = self.open.pop() else { return };
        if anchor > 0 {
            self.anchored.insert(anchor, (scalar..self.scalars.len(), alias..self.aliases.len()));
        }
        self.parsed.extend(under.map(|key| self.keys[key].1.clone()));
        if kind == Kind::Key {
            self.set_key(String::new(), 0..0);
        }
    }

    fn finish(mut self) -> (Vec<Hidden>, Vec<Range<usize>>) {
        self.follow_aliases();
        self.follow_variables();
        let scalars = self.scalars.iter().filter(|scalar| !scalar.text.is_empty());
        let hidden = scalars.filter_map(|scalar| self.hide(scalar)).collect();
        self.parsed.sort_unstable_by_key(|place| place.start);
        (hidden, self.parsed)
    }

    /// What aliases in the place of secrets stand for is secret.
    fn follow_aliases(&mut self) {
        let mut seen = HashSet::new();
        let mut due: Vec<usize> =
            self.aliases.iter().filter(|(_, secret)| *secret).map(|(anchor, _)| *anchor).collect();
        while let Some(anchor) = due.pop() {
            let found = self.anchored.get(&anchor).filter(|_| seen.insert(anchor)).cloned();
            let Some((scalars, aliases)) = found else { continue };
            self.scalars[scalars].iter_mut().for_each(|scalar| scalar.secret = true);
            due.extend(self.aliases[aliases].iter().map(|(anchor, _)| *anchor));
        }
    }

    /// A variable that a document sets, for one of its secrets, is one.
    fn follow_variables(&mut self) {
        let secrets = self.scalars.iter().filter(|scalar| scalar.secret);
        let names: HashSet<String> = secrets
            .flat_map(|scalar| scalar.text.split("${").skip(1))
            .filter_map(|after| Some(after.split_once('}')?.0.to_owned()))
            .collect();
        let keys = &self.keys;
        let is_named = |key: usize| names.contains(keys[key].0.trim());
        let named = self.scalars.iter_mut().filter(|scalar| scalar.key.is_some_and(is_named));
        named.for_each(|scalar| scalar.secret = true);
    }

    /// What of a scalar is hidden.
    fn hide(&self, scalar: &Scalar) -> Option<Hidden> {
        let source = &self.text[scalar.place.clone()];
        // Escapes and line breaks may hide from whoever looks at the text that it holds a secret.
        if !scalar.secret && (source.contains(scalar.text.as_str()) || !has_secrets(&scalar.text)) {
            return None;
        }
        let start = scalar.place.start;
        let within = |part: Range<usize>| start + part.start..start + part.end;
        Some(match scalar.style {
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if is_quoted(source) => {
                (within(1..source.len() - 1), HIDDEN)
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let header = if source.starts_with(['|', '>']) { source.find('\n')? + 1 } else { 0 };
                let content = &source[header..];
                let first = header + content.len() - content.trim_start().len();
                (within(first..source.trim_end().len().max(first)), HIDDEN)
            }
            _ => (within(0..source.trim_end().len()), HIDDEN_QUOTED),
        })
    }
}

fn is_quoted(source: &str) -> bool {
    source.len() > 1 && ["\"", "'"].iter().any(|quote| source.starts_with(quote) && source.ends_with(quote))
}
