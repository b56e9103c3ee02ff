//! What a key and a mapping are: all that readers, editors, the reference and forms know of them.

use crate::kinds::{Kind, Problem, Text};
use crate::shapes::Map;
use serde_json::Value;

/// A key of a mapping.
pub struct Key<S: ?Sized> {
    /// Its name.
    pub name: &'static str,
    /// What it is for, without a full stop.
    pub about: &'static str,
    /// What holds where it is absent.
    pub absent: Absent,
    /// A value as a document would have it; or empty. Forms begin with it.
    pub example: &'static str,
    /// What other tools call it; for help with misspelled keys.
    pub also: &'static [&'static str],
    /// Whether `${NAME}` in its value stands for a variable.
    pub expands: bool,
    /// Whether its value must be kept from being shown.
    pub secret: bool,
    /// What its value looks like.
    pub shape: S,
}

/// A key whose value may look like anything.
pub type AnyKey = Key<dyn Shape>;

/// What holds where a key is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// That is an error, with this help.
    Required(&'static str),
    /// The same as if this had been written.
    Default(&'static str),
    /// This, in words; empty: nothing.
    Otherwise(&'static str),
}

/// What a value looks like.
pub trait Shape: Sync {
    /// It as a JSON Schema. Its description, if any, says how a value is written.
    fn schema(&self) -> Value;

    /// It in the words of the reference: `duration`.
    fn words(&self) -> String;

    /// The mappings that it may be or hold.
    fn mappings(&self) -> Vec<&'static Mapping> {
        Vec::new()
    }

    /// Whether a single value is of this shape.
    ///
    /// # Errors
    /// Why it is not.
    fn check(&self, text: &str) -> Result<(), Problem> {
        Err(Problem::new(format!("'{text}' is a single value"), "write a mapping or a list"))
    }
}

impl<K: Kind> Shape for K {
    fn schema(&self) -> Value {
        Kind::schema(self)
    }

    fn words(&self) -> String {
        Kind::words(self)
    }

    fn check(&self, text: &str) -> Result<(), Problem> {
        self.read(text).map(drop)
    }
}

impl<S> Key<S> {
    /// A key that may be absent.
    pub const fn new(name: &'static str, about: &'static str, shape: S) -> Self {
        let absent = Absent::Otherwise("");
        Self { name, about, absent, example: "", also: &[], expands: false, secret: false, shape }
    }

    /// The same, which must be there.
    pub const fn required(mut self, help: &'static str) -> Self {
        self.absent = Absent::Required(help);
        self
    }

    /// The same; where it is absent, this holds, as a document would say it.
    pub const fn default(mut self, text: &'static str) -> Self {
        self.absent = Absent::Default(text);
        self
    }

    /// The same; what holds where it is absent, in words.
    pub const fn otherwise(mut self, words: &'static str) -> Self {
        self.absent = Absent::Otherwise(words);
        self
    }

    /// The same, with a value as a document would have it.
    pub const fn example(mut self, value: &'static str) -> Self {
        self.example = value;
        self
    }

    /// The same, with what other tools call it.
    pub const fn also(mut self, names: &'static [&'static str]) -> Self {
        self.also = names;
        self
    }

    /// The same, with `${NAME}` for variables.
    pub const fn expanded(mut self) -> Self {
        self.expands = true;
        self
    }
}

impl<K: Kind> Key<K> {
    /// The value that holds where it is absent, if it is one that a document could say.
    pub fn usual(&self) -> Option<K::Value> {
        match self.absent {
            Absent::Default(text) => self.shape.read(text).ok(),
            Absent::Required(_) | Absent::Otherwise(_) => None,
        }
    }
}

impl Key<Map> {
    /// The key under which a mapping stands by its own name.
    pub const fn of(mapping: &'static Mapping) -> Self {
        Self::new(mapping.name, mapping.about, Map(mapping))
    }
}

/// A text, and its twin that takes the path of a file with it: secrets and what goes with them.
pub struct OrFile {
    /// The key of the text.
    pub text: Key<Text>,
    /// The key of the path.
    pub file: Key<Text>,
    /// Whether one of them must be there.
    pub required: bool,
}

impl OrFile {
    /// Two keys that may be absent.
    pub const fn new(text: &'static str, file: &'static str, about: &'static str) -> Self {
        let mut text = Key::new(text, about, Text).expanded();
        text.secret = true;
        let file = Key::new(file, "Path of a file with it", Text).otherwise("instead").expanded();
        Self { text, file, required: false }
    }

    /// The same, with a text as a document would have it.
    pub const fn example(mut self, text: &'static str) -> Self {
        self.text = self.text.example(text);
        self
    }

    /// The same; what holds where both are absent, in words.
    pub const fn otherwise(mut self, words: &'static str) -> Self {
        self.text = self.text.otherwise(words);
        self
    }

    /// The same, one of which must be there.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self.otherwise("required")
    }
}

/// A mapping of documents.
pub struct Mapping {
    /// Its name in the schema and the reference: `load`.
    pub name: &'static str,
    /// What it is for, without a full stop.
    pub about: &'static str,
    /// Its own keys.
    pub keys: &'static [&'static AnyKey],
    /// Mappings whose keys it has, too.
    pub with: &'static [&'static Mapping],
    /// Keys exactly one of which must be there; or empty.
    pub one_of: &'static [&'static AnyKey],
    /// Whether it is one of several kinds, which its key `kind` tells by its name.
    pub is_kind: bool,
}

/// The key that tells which of several kinds a mapping is.
pub static KIND: Key<Text> = Key::new("kind", "Which kind it is", Text);

impl Mapping {
    /// A mapping with these keys.
    pub const fn new(name: &'static str, about: &'static str, keys: &'static [&'static AnyKey]) -> Self {
        Self { name, about, keys, with: &[], one_of: &[], is_kind: false }
    }

    /// One of several kinds of mappings: `kind: name`.
    pub const fn kind(name: &'static str, about: &'static str, keys: &'static [&'static AnyKey]) -> Self {
        Self { name, about, keys, with: &[], one_of: &[], is_kind: true }
    }

    /// The same with the keys of others.
    pub const fn with(mut self, others: &'static [&'static Mapping]) -> Self {
        self.with = others;
        self
    }

    /// The same; exactly one of these keys must be there.
    pub const fn one_of(mut self, keys: &'static [&'static AnyKey]) -> Self {
        self.one_of = keys;
        self
    }

    /// All keys that it may have.
    pub fn all(&self) -> Vec<&'static AnyKey> {
        let kind = self.is_kind.then_some(&KIND as &AnyKey);
        let shared = self.with.iter().flat_map(|other| other.all());
        kind.into_iter().chain(self.keys.iter().copied()).chain(shared).collect()
    }
}
