//! One mapping of the document, read key by key.
//!
//! A [`Table`] records which keys are read. At the end, keys that were not read are
//! reported with the nearest one that was. Reading goes on after an error, so that one pass shows all
//! errors; a document with any error is refused as a whole.

use super::tree::{Entry, Node, Value};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::nearest::nearest;
use crate::selector::SelectorError;
use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use tidemark_measure::units::{self, UnitError};

/// The limit of remarks: nobody reads more.
const MOST_REMARKS: usize = 100;

/// What fio calls things that have another name here.
const FIO_WORDS: [(&str, &str); 9] = [
    ("bs", "block_size"),
    ("bssplit", "block_size"),
    ("iodepth", "depth"),
    ("numjobs", "clients"),
    ("runtime", "for"),
    ("ramp_time", "warm_up"),
    ("rw", "pattern"),
    ("rwmixread", "reads"),
    ("filename", "path"),
];

/// The remarks on one document, shared by everything that reads it.
#[derive(Default)]
pub struct Log(RefCell<Vec<Diagnostic>>);

impl Log {
    /// Adds a remark.
    pub fn push(&self, remark: Diagnostic) {
        self.0.borrow_mut().push(remark);
    }

    /// Adds an error.
    pub fn error(&self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::error(span.clone(), message, help));
    }

    /// Adds a warning.
    pub fn warning(&self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::warning(span.clone(), message, help));
    }

    /// Whether there are more remarks than are shown.
    fn is_long(&self) -> bool {
        self.0.borrow().len() > MOST_REMARKS
    }

    /// All remarks in the order of the text, and whether one of them is an error.
    pub fn close(self) -> (Vec<Diagnostic>, bool) {
        let mut all = self.0.into_inner();
        all.sort_by_key(|remark| remark.span.start);
        // What is given once and inherited is read several times.
        all.dedup();
        let refused = all.iter().any(|remark| remark.severity == Severity::Error);
        if all.len() > MOST_REMARKS {
            // Errors first: they are what keeps the document from running.
            all.sort_by_key(|remark| std::cmp::Reverse(remark.severity));
            let more = all.len() - MOST_REMARKS;
            all.truncate(MOST_REMARKS);
            all.push(Diagnostic::warning(
                0..0,
                format!("{more} more remarks are not shown"),
                "fix these first",
            ));
        }
        (all, refused)
    }
}

/// Why a scalar is not what it should be; `span` is within the scalar's text.
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Where in the scalar.
    pub span: Option<Range<usize>>,
    /// What it is about; [`Code::Other`]: the value of its key.
    pub code: Code,
}

impl Problem {
    /// A problem with the whole scalar.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), span: None, code: Code::Other }
    }

    /// The same, about something that code asks for.
    pub fn about(self, code: Code) -> Self {
        Self { code, ..self }
    }
}

impl From<UnitError> for Problem {
    fn from(error: UnitError) -> Self {
        Self::new(error.message, error.advice)
    }
}

impl From<SelectorError> for Problem {
    fn from(error: SelectorError) -> Self {
        Self { span: Some(error.span), ..Self::new(error.message, error.help) }
    }
}

/// A mapping being read.
pub struct Table<'a> {
    /// What it describes, for messages: `a get operation`.
    what: String,
    entries: &'a [Entry],
    /// Where to point when a key is missing.
    place: Range<usize>,
    asked: Vec<&'static str>,
    /// The document's text.
    text: &'a str,
    log: &'a Log,
}

impl<'a> Table<'a> {
    /// The mapping in `node`; an empty one, and an error, when it is something else. `place` is its key's place.
    pub fn new(
        what: impl Into<String>,
        node: &'a Node,
        place: &Range<usize>,
        text: &'a str,
        log: &'a Log,
    ) -> Self {
        let what = what.into();
        let entries: &[Entry] = match &node.value {
            Value::Map(entries) => entries,
            Value::Nothing => &[],
            Value::Scalar(_) | Value::List(_) => {
                log.error(&node.span, format!("{what} is not a mapping"), "write its keys as `key: value`");
                &[]
            }
        };
        Self { what, entries, place: place.clone(), asked: Vec::new(), text, log }
    }

    /// Where the mapping stands, for remarks on it as a whole.
    pub fn place(&self) -> &Range<usize> {
        &self.place
    }

    /// The document's remarks.
    pub fn log(&self) -> &'a Log {
        self.log
    }

    /// The entry of a key, if present with a value.
    pub fn entry(&mut self, key: &'static str) -> Option<&'a Entry> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
            #[cfg(feature = "record-keys")]
            super::asked::note(&self.what, key);
        }
        let found = self.entries.iter().find(|entry| entry.key == key)?;
        (found.node.value != Value::Nothing).then_some(found)
    }

    /// Marks a key as known.
    pub fn expect(&mut self, key: &'static str) {
        self.entry(key);
    }

    /// Whether a key has a value.
    pub fn has(&mut self, key: &'static str) -> bool {
        self.entry(key).is_some()
    }

    /// The mapping under a key.
    pub fn table(&mut self, key: &'static str) -> Option<Table<'a>> {
        let entry = self.entry(key)?;
        Some(self.below(format!("`{key}`"), entry))
    }

    /// The mapping that an entry holds.
    pub fn below(&self, what: impl Into<String>, entry: &'a Entry) -> Table<'a> {
        Table::new(what, &entry.node, &entry.key_span, self.text, self.log)
    }

    /// A mapping anywhere below.
    pub fn part<'b>(&self, what: &str, node: &'b Node, place: &Range<usize>) -> Table<'b>
    where
        'a: 'b,
    {
        Table::new(what, node, place, self.text, self.log)
    }

    /// The entry of a key that may stand without a value.
    pub fn present(&mut self, key: &'static str) -> Option<&'a Entry> {
        self.entry(key);
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The mapping under a required key.
    pub fn required_table(&mut self, key: &'static str, help: &str) -> Option<Table<'a>> {
        let found = self.table(key);
        if found.is_none() {
            self.missing(key, help);
        }
        found
    }

    /// The entry of a mapping with one key, its kind. Also a key alone, without a mapping.
    pub fn single(node: &'a Node, what: &str, log: &Log) -> Option<&'a Entry> {
        match &node.value {
            Value::Map(entries) if entries.len() == 1 => entries.first(),
            Value::Map(entries) if entries.len() > 1 => {
                let keys: Vec<_> = entries.iter().map(|entry| format!("`{}`", entry.key)).collect();
                log.error(
                    &entries[1].key_span,
                    format!("{what} has {} keys instead of one: {}", entries.len(), keys.join(", ")),
                    "begin each with a dash of its own, and indent its settings below it",
                );
                None
            }
            _ => {
                log.error(&node.span, format!("{what} has no kind"), "write it as `kind: {settings}`");
                None
            }
        }
    }

    /// The items of a list under a key; one item alone may stand without a list.
    pub fn list(&mut self, key: &'static str) -> Option<&'a [Node]> {
        let entry = self.entry(key)?;
        Some(match &entry.node.value {
            Value::List(items) => items,
            _ => std::slice::from_ref(&entry.node),
        })
    }

    /// A scalar, as `parse` understands its text.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let entry = self.entry(key)?;
        self.scalar(&entry.node, key, parse)
    }

    /// The same for a value anywhere below the key.
    pub fn scalar<T>(
        &self,
        node: &Node,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let Value::Scalar(scalar) = &node.value else {
            let kind =
                if matches!(node.value, Value::Nothing) { "has no value" } else { "is not a single value" };
            self.error(key, &node.span, format!("`{key}` {kind}"), "write one value");
            return None;
        };
        match parse(scalar) {
            Ok(value) => Some(value),
            Err(problem) => {
                let within =
                    problem.span.filter(|_| self.text.get(node.span.clone()) == Some(scalar.as_str()));
                let span = within.map_or(node.span.clone(), |part| {
                    node.span.start + part.start..node.span.start + part.end
                });
                let message = format!("`{key}`: {}", problem.message);
                let code = match problem.code {
                    Code::Other => Code::Key(key.to_owned()),
                    code => code,
                };
                self.log.push(Diagnostic::error(span, message, problem.help).about(code));
                None
            }
        }
    }

    /// A required scalar.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        help: &str,
        parse: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        if !self.has(key) {
            self.missing(key, help);
        }
        self.read(key, parse)
    }

    /// An error about a key.
    fn error(&self, key: &str, span: &Range<usize>, message: String, help: impl Into<String>) {
        let error = Diagnostic::error(span.clone(), message, help);
        self.log.push(error.about(Code::Key(key.to_owned())));
    }

    /// Reports a required key that is missing.
    pub fn missing(&self, key: &str, help: &str) {
        self.log.error(&self.place, format!("{} has no `{key}`", self.what), help);
    }

    /// A text; not empty.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, text)
    }

    /// A whole number within bounds.
    pub fn whole(&mut self, key: &'static str, bounds: RangeInclusive<u64>) -> Option<u64> {
        self.read(key, |text| whole(text, &bounds))
    }

    /// A whole number within bounds that fits 32 bits.
    pub fn small(&mut self, key: &'static str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let bounds = u64::from(*bounds.start())..=u64::from(*bounds.end());
        self.whole(key, bounds).and_then(|number| u32::try_from(number).ok())
    }

    /// Bytes, at least `least`.
    pub fn bytes(&mut self, key: &'static str, least: u64) -> Option<u64> {
        self.read(key, |text| match units::parse_bytes(text)? {
            bytes if bytes < least => {
                Err(Problem::new(format!("'{text}' is less than {least} B"), "write a larger size"))
            }
            bytes => Ok(bytes),
        })
    }

    /// A duration in nanoseconds.
    pub fn duration(&mut self, key: &'static str) -> Option<u64> {
        self.read(key, |text| Ok(units::parse_duration_ns(text)?))
    }

    /// A duration that is longer than nothing.
    pub fn positive_duration(&mut self, key: &'static str) -> Option<u64> {
        self.read(key, |text| match units::parse_duration_ns(text)? {
            0 => Err(Problem::new(
                "the duration is zero",
                "write a duration such as 60s, or leave the key out",
            )),
            ns => Ok(ns),
        })
    }

    /// A share, 0 to 1.
    pub fn share(&mut self, key: &'static str) -> Option<f64> {
        self.read(key, |text| Ok(units::parse_share(text)?))
    }

    /// Yes or no.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, |text| match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(Problem::new(format!("'{text}' is neither true nor false"), "write true or false")),
        })
    }

    /// One of several words.
    pub fn word<T: Copy>(&mut self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.read(key, |text| choose(text, words))
    }

    /// Reports two keys that exclude each other; true if both are there.
    pub fn contradiction(&mut self, one: &'static str, other: &'static str, why: &str) -> bool {
        let both = self.entry(one).is_some().then(|| self.entry(other)).flatten();
        if let Some(entry) = both {
            self.error(
                other,
                &entry.key_span,
                format!("`{one}` and `{other}` exclude each other: {why}"),
                format!("remove `{one}` or `{other}`"),
            );
        }
        both.is_some()
    }

    /// Reports keys that have no meaning here because of `why`.
    pub fn meaningless(&mut self, keys: &[&'static str], why: &str) {
        for key in keys {
            if let Some(entry) = self.entry(key) {
                let message = format!("`{key}` does not apply here: {why}");
                self.error(key, &entry.key_span, message, format!("remove `{key}`"));
            }
        }
    }

    /// Ends the reading: keys that were not read are errors, because a misspelled key would change the load unseen. Those
    /// that begin with `x-` are the author's own, for anchors.
    pub fn finish(self) {
        let known = |entry: &&Entry| self.asked.contains(&entry.key.as_str()) || entry.key.starts_with("x-");
        for entry in self.entries.iter().filter(|entry| !known(entry)) {
            let known = |name: &&str| self.asked.contains(name);
            let synonym = FIO_WORDS.iter().find(|(word, _)| *word == entry.key).map(|(_, name)| *name);
            // With this many remarks the help is not shown.
            let near = || match self.log.is_long() {
                true => None,
                false => nearest(&entry.key, self.asked.iter().copied()),
            };
            let help = match synonym.filter(known).or_else(near) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("valid keys: {}", self.asked.join(", ")),
            };
            let message = format!("`{}` is not a key of {}", entry.key, self.what);
            self.error(&entry.key, &entry.key_span, message, help);
        }
    }
}

/// One of several words.
pub fn choose<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, Problem> {
    if let Some((_, value)) = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        return Ok(*value);
    }
    let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    // COSBench's words for the two that everybody begins with.
    let synonym = [("read", "get"), ("write", "put")].into_iter().find(|(word, _)| *word == text);
    let synonym = synonym.map(|(_, name)| name).filter(|name| names.contains(name));
    let help = match synonym.or_else(|| nearest(text, names.iter().copied())) {
        Some(near) => format!("did you mean {near}? Valid values: {}", names.join(", ")),
        None => format!("valid values: {}", names.join(", ")),
    };
    Err(Problem::new(format!("'{text}' is unknown"), help))
}

/// A text; not empty.
pub fn text(text: &str) -> Result<String, Problem> {
    match text.trim() {
        "" => Err(Problem::new("the text is empty", "write something, or leave the key out")),
        _ => Ok(text.to_owned()),
    }
}

/// A whole number within bounds.
pub fn whole(text: &str, bounds: &RangeInclusive<u64>) -> Result<u64, Problem> {
    let help = match *bounds.end() {
        u64::MAX => format!("write a whole number of at least {}", bounds.start()),
        end => format!("write a whole number from {} to {end}", bounds.start()),
    };
    match text.parse::<u64>() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        Ok(_) => Err(Problem::new(format!("{text} is out of range"), help)),
        Err(_) => Err(Problem::new(format!("'{text}' is not a whole number"), help)),
    }
}
