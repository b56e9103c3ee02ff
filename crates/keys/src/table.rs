//! One mapping of a document, read key by key.
//!
//! A [`Table`] knows the keys that are [declared](Table::of) for its mapping, and which of them were read. At the end, keys that
//! are not declared are reported with the nearest one that is, and so are declared keys that mean nothing where they stand.
//! Reading goes on after an error, so that one pass shows all errors; a document with any error is refused as a whole.

use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Document, Log};
use crate::key::{Absent, AnyKey, KIND, Key, Mapping, OrFile, Shape};
use crate::kinds::{Kind, Problem, choose};
use crate::nearest::nearest;
use crate::secret::Secret;
use crate::shapes::{Kinds, Map, OneOrList, Settings};
use crate::tree::{Entry, Node, Value};
use std::ops::Range;

/// More values in one list than this are treated as a mistake.
const MOST_VALUES: usize = 1000;

/// A mapping being read.
pub struct Table<'a> {
    /// What it describes, for messages: `a get operation`.
    what: String,
    /// Who uses its keys, where that is not all of it: `the workload kv`.
    user: Option<String>,
    entries: &'a [Entry],
    /// Where to point when a key is missing.
    place: Range<usize>,
    /// The keys that it may have.
    keys: Vec<&'static AnyKey>,
    /// Those that were read or reported.
    read: Vec<&'static str>,
    document: &'a Document<'a>,
}

impl<'a> Table<'a> {
    /// The mapping in `node`, with no keys yet; an empty one, and an error, when it is something else. `place` is its key's
    /// place.
    pub fn new(
        what: impl Into<String>,
        node: &'a Node,
        place: &Range<usize>,
        document: &'a Document<'a>,
    ) -> Self {
        let what = what.into();
        let entries: &[Entry] = match &node.value {
            Value::Map(entries) => entries,
            Value::Nothing => &[],
            Value::Scalar(_) | Value::List(_) => {
                let message = format!("{what} is not a mapping");
                document.log.error(&node.span, message, "write its keys as `key: value`");
                &[]
            }
        };
        Self { what, user: None, entries, place: place.clone(), keys: Vec::new(), read: Vec::new(), document }
    }

    /// The same, which may have the keys of a mapping.
    pub fn of(mut self, mapping: &Mapping) -> Self {
        self.declare(mapping.all());
        self
    }

    /// Adds keys that it may have.
    pub fn declare(&mut self, keys: impl IntoIterator<Item = &'static AnyKey>) {
        for key in keys {
            if !self.keys.iter().any(|known| known.name == key.name) {
                self.keys.push(key);
            }
        }
    }

    /// Says who uses its keys, for messages on those without effect.
    pub fn used_by(&mut self, user: impl Into<String>) {
        self.user = Some(user.into());
    }

    /// Reads which of several kinds it is, and adds the keys of that kind.
    pub fn kind(
        &mut self,
        kinds: impl Iterator<Item = &'static Mapping> + Clone,
    ) -> Option<&'static Mapping> {
        self.declare([&KIND as &AnyKey]);
        let names = kinds.map(|kind| (kind.name, kind));
        let Some(entry) = self.entry(&KIND) else {
            let names: Vec<_> = names.map(|(name, _)| name).collect();
            self.missing(&KIND, &format!("write one of {}", names.join(", ")));
            return None;
        };
        let kind = self.scalar(&KIND, &entry.node, |text| choose(text, names))?;
        self.declare(kind.all());
        Some(kind)
    }

    /// Where the mapping stands, for remarks on it as a whole.
    pub fn place(&self) -> &Range<usize> {
        &self.place
    }

    /// The document's remarks.
    pub fn log(&self) -> &'a Log {
        &self.document.log
    }

    /// The entry of a key, if present with a value. The key counts as read.
    pub fn entry<S: Shape + ?Sized>(&mut self, key: &Key<S>) -> Option<&'a Entry> {
        self.present(key).filter(|entry| entry.node.value != Value::Nothing)
    }

    /// The same of a key that may stand without a value.
    pub fn present<S: Shape + ?Sized>(&mut self, key: &Key<S>) -> Option<&'a Entry> {
        let declared = self.keys.iter().any(|known| known.name == key.name);
        debug_assert!(declared, "`{}` is read from {}, for which it is not declared", key.name, self.what);
        self.note(key.name)
    }

    fn note(&mut self, name: &'static str) -> Option<&'a Entry> {
        if !self.read.contains(&name) {
            self.read.push(name);
        }
        self.entries.iter().find(|entry| entry.key == name)
    }

    /// Leaves a key to another reader. It counts as read.
    pub fn leave(&mut self, key: &AnyKey) {
        self.note(key.name);
    }

    /// Whether a key has a value. The key counts as read.
    pub fn has<S: Shape + ?Sized>(&mut self, key: &Key<S>) -> bool {
        self.entry(key).is_some()
    }

    /// The value of a key; `None`, and an error where the document is wrong, if it has none.
    pub fn get<K: Kind>(&mut self, key: &Key<K>) -> Option<K::Value> {
        let entry = self.entry_or_missing(key)?;
        self.one(key, &key.shape, &entry.node)
    }

    /// The value of a key, or what holds where it is absent.
    pub fn value<K: Kind>(&mut self, key: &Key<K>) -> K::Value
    where
        K::Value: Default,
    {
        self.get(key).or_else(|| key.usual()).unwrap_or_default()
    }

    /// The values of a key: one, or those of a list.
    pub fn all<K: Kind>(&mut self, key: &Key<OneOrList<K>>) -> Vec<K::Value> {
        let nodes = self.list(key);
        self.items(key, &key.shape.0, nodes)
    }

    /// The single values of a list that belongs to a key.
    pub fn items<S: Shape + ?Sized, K: Kind>(&self, key: &Key<S>, kind: &K, nodes: &[Node]) -> Vec<K::Value> {
        if nodes.len() > MOST_VALUES {
            let message = format!("the list of `{}` has {} values", key.name, nodes.len());
            self.log().error(&self.place, message, format!("write at most {MOST_VALUES}"));
            return Vec::new();
        }
        nodes.iter().filter_map(|node| self.one(key, kind, node)).collect()
    }

    /// The items of a list under a key, which an empty list is as good as without; one item alone may stand without a list.
    pub fn list<S: Shape + ?Sized>(&mut self, key: &Key<S>) -> &'a [Node] {
        let items = self.entry(key).map_or(&[][..], |entry| entry.node.items());
        if items.is_empty() {
            self.miss(key);
        }
        items
    }

    /// The settings under a key, in their order; none without it.
    pub fn settings(&mut self, key: &Key<Settings>) -> Vec<(String, String)> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let Value::Map(entries) = &entry.node.value else {
            let (message, help) = (format!("`{}` is not a mapping", key.name), "write it as `name: value`");
            self.log().error(&entry.node.span, message, help);
            return Vec::new();
        };
        let one = |setting: &Entry| {
            let value = self.scalar(key, &setting.node, |text| Ok(text.to_owned()))?;
            Some((setting.key.clone(), value))
        };
        entries.iter().filter_map(one).collect()
    }

    /// The mapping under a key.
    pub fn table(&mut self, key: &Key<Map>) -> Option<Table<'a>> {
        let entry = self.entry_or_missing(key)?;
        Some(self.below(key, entry).of(key.shape.0))
    }

    /// The mapping under a key that is one of several kinds, and which.
    pub fn table_of_kind(&mut self, key: &Key<Kinds>) -> Option<(&'static Mapping, Table<'a>)> {
        let entry = self.entry_or_missing(key)?;
        let mut table = self.below(key, entry);
        Some((table.kind(key.shape.0.iter().copied())?, table))
    }

    /// The mapping that the entry of a key holds, with no keys yet.
    pub fn below<S: Shape + ?Sized>(&self, key: &Key<S>, entry: &'a Entry) -> Table<'a> {
        self.part(format!("`{}`", key.name), &entry.node, &entry.key_span)
    }

    /// A mapping anywhere below, with no keys yet.
    pub fn part<'b>(&self, what: impl Into<String>, node: &'b Node, place: &Range<usize>) -> Table<'b>
    where
        'a: 'b,
    {
        Table::new(what, node, place, self.document)
    }

    /// The secret of a key, or of the file that its twin names.
    pub fn secret(&mut self, keys: &OrFile) -> Option<Secret> {
        self.contradiction(&keys.text, &keys.file, "both set the same value");
        let outside = self.document.outside;
        if let Some(entry) = self.entry(&keys.file) {
            return self.scalar(&keys.file, &entry.node, |path| outside.content(path));
        }
        if keys.required && !self.has(&keys.text) {
            let help = format!("write it, or a reference such as ${{NAME}}, or `{}: path`", keys.file.name);
            self.missing(&keys.text, &help);
        }
        let entry = self.entry(&keys.text)?;
        self.as_written(&keys.text, &entry.node, |text| outside.secret(text))
    }

    /// A single value that belongs to a key.
    pub fn one<S: Shape + ?Sized, K: Kind>(&self, key: &Key<S>, kind: &K, node: &Node) -> Option<K::Value> {
        self.scalar(key, node, |text| kind.read(text))
    }

    /// The same, as `read` understands its text, with the values of variables in it.
    pub fn scalar<S: Shape + ?Sized, T>(
        &self,
        key: &Key<S>,
        node: &Node,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        debug_assert!(!key.secret, "`{}` is a secret", key.name);
        let outside = self.document.outside;
        self.as_written(key, node, |text| match key.expands {
            true => outside
                .expand(text)
                .and_then(|expanded| read(&expanded.text).map_err(|problem| expanded.as_written(problem))),
            false => read(text),
        })
    }

    /// The same, as the document has it.
    fn as_written<S: Shape + ?Sized, T>(
        &self,
        key: &Key<S>,
        node: &Node,
        read: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let name = key.name;
        let Value::Scalar(scalar) = &node.value else {
            let kind =
                if matches!(node.value, Value::Nothing) { "has no value" } else { "is not a single value" };
            self.error(name, &node.span, format!("`{name}` {kind}"), "write one value");
            return None;
        };
        read(scalar).map_err(|problem| self.report(name, scalar, node, problem)).ok()
    }

    fn report(&self, name: &str, scalar: &str, node: &Node, problem: Problem) {
        let within = problem.span.filter(|_| self.document.text.get(node.span.clone()) == Some(scalar));
        let span =
            within.map_or(node.span.clone(), |part| node.span.start + part.start..node.span.start + part.end);
        let code = match problem.code {
            Code::Other => Code::Key(name.to_owned()),
            code => code,
        };
        let message = format!("`{name}`: {}", problem.message);
        self.log().push(Diagnostic::error(span, message, problem.help).about(code));
    }

    /// An error about a key.
    fn error(&self, key: &str, span: &Range<usize>, message: String, help: impl Into<String>) {
        self.log().push(Diagnostic::error(span.clone(), message, help).about(Code::Key(key.to_owned())));
    }

    fn entry_or_missing<S: Shape + ?Sized>(&mut self, key: &Key<S>) -> Option<&'a Entry> {
        let entry = self.entry(key);
        if entry.is_none() {
            self.miss(key);
        }
        entry
    }

    /// Reports a key that has no value, if it must.
    fn miss<S: Shape + ?Sized>(&self, key: &Key<S>) {
        if let Absent::Required(help) = key.absent {
            self.missing(key, help);
        }
    }

    /// Reports a key that is missing.
    pub fn missing<S: Shape + ?Sized>(&self, key: &Key<S>, help: &str) {
        self.log().error(&self.place, format!("{} has no `{}`", self.what, key.name), help);
    }

    /// The entry of a mapping with exactly one of these keys, which tells what it is. Messages call it `what`, and its key a
    /// `kind`.
    pub fn single(
        &self,
        what: &str,
        kind: &str,
        node: &'a Node,
        keys: &[&'static AnyKey],
    ) -> Option<(&'static AnyKey, &'a Entry)> {
        let entries: &[Entry] = match &node.value {
            Value::Map(entries) => entries,
            _ => &[],
        };
        match entries {
            [entry] => {
                let key = keys.iter().find(|key| key.name == entry.key).copied();
                if key.is_none() {
                    let all = names(keys);
                    let help = match self.meant(&entry.key, keys) {
                        Some(near) => format!("did you mean `{near}`? Choose from {all}"),
                        None => format!("choose from {all}"),
                    };
                    let message = format!("`{}` is not a known {kind}", entry.key);
                    self.log().error(&entry.key_span, message, help);
                }
                key.map(|key| (key, entry))
            }
            [] => {
                self.log().error(&node.span, format!("{what} has no kind"), "write it as `kind: {settings}`");
                None
            }
            [_, second, ..] => {
                let keys: Vec<_> = entries.iter().map(|entry| format!("`{}`", entry.key)).collect();
                self.log().error(
                    &second.key_span,
                    format!("{what} has {} keys instead of one: {}", entries.len(), keys.join(", ")),
                    "begin each with a dash of its own, and indent its settings below it",
                );
                None
            }
        }
    }

    /// Reports two keys that exclude each other; true if both are there.
    pub fn contradiction<A: Shape, B: Shape>(&mut self, one: &Key<A>, other: &Key<B>, why: &str) -> bool {
        let (one_is_there, entry) = (self.has(one), self.entry(other));
        let both = entry.filter(|_| one_is_there);
        if let Some(entry) = both {
            self.error(
                other.name,
                &entry.key_span,
                format!("`{}` and `{}` exclude each other: {why}", one.name, other.name),
                format!("remove `{}` or `{}`", one.name, other.name),
            );
        }
        both.is_some()
    }

    /// Reports keys that have no meaning here because of `why`, whether they are declared or not.
    pub fn meaningless(&mut self, keys: &[&'static AnyKey], why: &str) {
        for key in keys {
            let entry = self.note(key.name).filter(|entry| entry.node.value != Value::Nothing);
            if let Some(entry) = entry {
                let message = format!("`{}` does not apply here: {why}", key.name);
                self.error(key.name, &entry.key_span, message, format!("remove `{}`", key.name));
            }
        }
    }

    /// Ends the reading: keys that are not declared or were not read are errors, because a key without effect would change
    /// the load unseen. Those that begin with `x-` are the author's own, for anchors.
    pub fn finish(self) {
        let unread =
            |entry: &&Entry| !self.read.contains(&entry.key.as_str()) && !entry.key.starts_with("x-");
        for entry in self.entries.iter().filter(unread) {
            let name = &entry.key;
            if self.keys.iter().any(|key| key.name == name) {
                let message = format!(
                    "`{name}` does not apply here: {} does not use it",
                    self.user.as_ref().unwrap_or(&self.what)
                );
                self.error(name, &entry.key_span, message, format!("remove `{name}`"));
                continue;
            }
            let help = match self.meant(name, &self.keys) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("valid keys: {}", names(&self.keys)),
            };
            self.error(name, &entry.key_span, format!("`{name}` is not a key of {}", self.what), help);
        }
    }

    /// The key that was probably meant by a name.
    fn meant(&self, name: &str, keys: &[&'static AnyKey]) -> Option<&'static str> {
        if let Some(key) = keys.iter().find(|key| key.also.contains(&name)) {
            return Some(key.name);
        }
        // With this many remarks the help is not shown.
        if self.log().is_long() { None } else { nearest(name, keys.iter().map(|key| key.name)) }
    }
}

/// The names of keys, with commas.
fn names(keys: &[&'static AnyKey]) -> String {
    keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")
}
