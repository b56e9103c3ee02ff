//! The kinds of single values: how each is read from its text, and described.

use crate::diagnostic::Code;
use crate::nearest::nearest;
use serde_json::{Value, json};
use std::ops::Range;
use tidemark_measure::units::{self, UnitError};

/// A kind of single values.
pub trait Kind: Sync {
    /// What it is read as.
    type Value;

    /// Reads a text.
    ///
    /// # Errors
    /// When it is not of this kind.
    fn read(&self, text: &str) -> Result<Self::Value, Problem>;

    /// It as a JSON Schema. Its description, if any, says how a value is written.
    fn schema(&self) -> Value;

    /// It in the words of the reference: `duration`.
    fn words(&self) -> String;
}

/// Why a value is not what it should be.
#[derive(Debug)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Where in the value's text.
    pub span: Option<Range<usize>>,
    /// What it is about; [`Code::Other`]: the value of its key.
    pub code: Code,
}

impl Problem {
    /// A problem with the whole value.
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

/// A text; not empty.
pub struct Text;

impl Kind for Text {
    type Value = String;

    fn read(&self, text: &str) -> Result<String, Problem> {
        match text.trim() {
            "" => Err(Problem::new("the text is empty", "write something, or leave the key out")),
            _ => Ok(text.to_owned()),
        }
    }

    fn schema(&self) -> Value {
        // Also what YAML takes for a number.
        json!({"type": ["string", "number", "boolean"]})
    }

    fn words(&self) -> String {
        "text".to_owned()
    }
}

/// A value that a function reads, and what the reference calls it.
pub struct Parsed<T>(pub &'static str, pub fn(&str) -> Result<T, Problem>);

impl<T> Kind for Parsed<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, Problem> {
        (self.1)(text)
    }

    fn schema(&self) -> Value {
        Text.schema()
    }

    fn words(&self) -> String {
        self.0.to_owned()
    }
}

/// The name of a bucket, by the rules that every S3 server has (Amazon S3 User Guide, *Bucket naming rules*).
pub const BUCKET_NAME: Parsed<String> = Parsed("name of a bucket", |text| {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let is_bucket = (3..=63).contains(&text.len())
        && text.bytes().all(|byte| plain(byte) || matches!(byte, b'.' | b'-'))
        && ends.into_iter().flatten().all(plain);
    match is_bucket {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is no name of a bucket"),
            "write 3 to 63 lower-case letters, digits, dots and dashes",
        )),
    }
});

/// A whole number from the first to the second.
pub struct Whole<T>(pub T, pub T);

impl<T: Copy + Into<u64> + TryFrom<u64> + Sync> Kind for Whole<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, Problem> {
        let (least, most) = (self.0.into(), self.1.into());
        let help = match most {
            u64::MAX => format!("write a whole number of at least {least}"),
            _ => format!("write a whole number from {least} to {most}"),
        };
        match text.parse::<u64>() {
            Ok(number) => match T::try_from(number).ok().filter(|_| (least..=most).contains(&number)) {
                Some(number) => Ok(number),
                None => Err(Problem::new(format!("{text} is out of range"), help)),
            },
            Err(_) => Err(Problem::new(format!("'{text}' is not a whole number"), help)),
        }
    }

    fn schema(&self) -> Value {
        let mut schema = json!({"type": "integer", "minimum": self.0.into()});
        if self.1.into() < u64::MAX {
            schema["maximum"] = self.1.into().into();
        }
        schema
    }

    fn words(&self) -> String {
        match (self.0.into(), self.1.into()) {
            (_, u64::MAX) => "whole number".to_owned(),
            (least, most) => format!("{least} to {}", units::count(most)),
        }
    }
}

/// A number of bytes, at least this many.
pub struct Bytes(pub u64);

impl Kind for Bytes {
    type Value = u64;

    fn read(&self, text: &str) -> Result<u64, Problem> {
        match units::parse_bytes(text)? {
            bytes if bytes < self.0 => {
                Err(Problem::new(format!("'{text}' is less than {} B", self.0), "write a larger size"))
            }
            bytes => Ok(bytes),
        }
    }

    fn schema(&self) -> Value {
        json!({"description": "bytes such as 64KiB or 64KB", "type": ["string", "integer"]})
    }

    fn words(&self) -> String {
        "bytes".to_owned()
    }
}

/// A duration in nanoseconds.
pub struct Duration;

impl Kind for Duration {
    type Value = u64;

    fn read(&self, text: &str) -> Result<u64, Problem> {
        Ok(units::parse_duration_ns(text)?)
    }

    fn schema(&self) -> Value {
        json!({"description": "a duration such as 60s or 200ms", "type": ["string", "integer"]})
    }

    fn words(&self) -> String {
        "duration".to_owned()
    }
}

/// A duration that is longer than nothing, nanoseconds.
pub struct PositiveDuration;

impl Kind for PositiveDuration {
    type Value = u64;

    fn read(&self, text: &str) -> Result<u64, Problem> {
        match Duration.read(text)? {
            0 => Err(Problem::new(
                "the duration is zero",
                "write a duration such as 60s, or leave the key out",
            )),
            ns => Ok(ns),
        }
    }

    fn schema(&self) -> Value {
        Kind::schema(&Duration)
    }

    fn words(&self) -> String {
        Kind::words(&Duration)
    }
}

/// Operations per second.
pub struct Rate;

impl Kind for Rate {
    type Value = f64;

    fn read(&self, text: &str) -> Result<f64, Problem> {
        match units::parse_rate(text)? {
            rate if rate <= 1e9 => Ok(rate),
            _ => Err(Problem::new(format!("'{text}' is too high"), "write at most 1000M/s")),
        }
    }

    fn schema(&self) -> Value {
        json!({"description": "operations per time such as 500/s or 30k/s", "type": "string"})
    }

    fn words(&self) -> String {
        "rate".to_owned()
    }
}

/// A share, 0 to 1.
pub struct Share;

impl Kind for Share {
    type Value = f64;

    fn read(&self, text: &str) -> Result<f64, Problem> {
        Ok(units::parse_share(text)?)
    }

    fn schema(&self) -> Value {
        json!({"description": "a share such as 30% or 0.3", "type": ["string", "number"]})
    }

    fn words(&self) -> String {
        "share".to_owned()
    }
}

/// Yes or no.
pub struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, text: &str) -> Result<bool, Problem> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(Problem::new(format!("'{text}' is neither true nor false"), "write true or false")),
        }
    }

    fn schema(&self) -> Value {
        json!({"enum": [true, false, "yes", "no", "on", "off"]})
    }

    fn words(&self) -> String {
        "flag".to_owned()
    }
}

/// One of several words.
pub struct Word<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy + Sync> Kind for Word<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, Problem> {
        choose(text, self.0.iter().copied())
    }

    fn schema(&self) -> Value {
        json!({"enum": self.0.iter().map(|(word, _)| *word).collect::<Vec<_>>()})
    }

    fn words(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|(word, _)| format!("`{word}`")).collect();
        words.join(", ")
    }
}

/// The choice that a text names.
///
/// # Errors
/// When it names none; with the nearest one, or all of them.
pub fn choose<'w, T>(text: &str, words: impl Iterator<Item = (&'w str, T)> + Clone) -> Result<T, Problem> {
    if let Some((_, value)) = words.clone().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
        return Ok(value);
    }
    let names: Vec<_> = words.map(|(word, _)| word).collect();
    let help = match nearest(text, names.iter().copied()) {
        Some(near) => format!("did you mean {near}? Valid values: {}", names.join(", ")),
        None => format!("valid values: {}", names.join(", ")),
    };
    Err(Problem::new(format!("'{text}' is unknown"), help))
}
