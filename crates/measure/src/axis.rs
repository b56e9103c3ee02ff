//! What a sweep or an evaluation varies: names and values with units, as data.

use crate::units;
use serde::{Deserialize, Deserializer, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use utoipa::ToSchema;

/// One coordinate of a point of a sweep, or of a level of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Axis {
    /// What is varied: `block_size`.
    pub name: String,
    /// Its value at this point.
    #[serde(flatten)]
    pub value: Value,
}

/// A value on an axis. Numbers are equal and ordered as [`f64::total_cmp`] has them, after their units.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number {
        /// The number.
        #[serde(rename = "value")]
        number: f64,
        /// What it counts.
        unit: Unit,
    },
    /// A name: `randread`.
    Word {
        /// The name.
        #[serde(rename = "value")]
        word: String,
    },
}

/// What is varied, and its value at this point.
#[derive(ToSchema)]
#[schema(as = Axis)]
#[expect(dead_code, reason = "it describes what `Axis` serializes to")]
pub struct AxisRecord {
    /// What is varied: `block_size`.
    name: String,
    /// Its value at this point.
    value: AxisScalar,
    /// What a number counts; absent from words.
    unit: Option<Unit>,
}

/// A number or a word.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum AxisScalar {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

/// What the numbers on an axis count.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = AxisUnit)]
pub enum Unit {
    /// Things: clients, operations in flight.
    #[default]
    Count,
    /// Bytes.
    Bytes,
    /// Operations per second.
    OperationsPerSecond,
}

impl Axis {
    /// An axis that counts.
    pub fn count(name: impl Into<String>, number: impl Into<f64>) -> Self {
        let value = Value::Number { number: number.into(), unit: Unit::Count };
        Self { name: name.into(), value }
    }

    /// An axis of rates, operations per second.
    pub fn rate(name: impl Into<String>, rate: f64) -> Self {
        let value = Value::Number { number: rate, unit: Unit::OperationsPerSecond };
        Self { name: name.into(), value }
    }

    /// An axis of sizes.
    pub fn bytes(name: impl Into<String>, bytes: u64) -> Self {
        Self { name: name.into(), value: Value::Number { number: bytes as f64, unit: Unit::Bytes } }
    }

    /// An axis of names.
    pub fn word(name: impl Into<String>, word: impl Into<String>) -> Self {
        Self { name: name.into(), value: Value::Word { word: word.into() } }
    }

    /// What was recorded as two words before axes had types: `block_size` `4 KiB`. Imported tables had rates without a unit.
    pub fn of_words(name: impl Into<String>, value: &str) -> Self {
        let name = name.into();
        let number = value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        match (number, units::parse_rate(value), units::parse_bytes(value)) {
            (Some(rate), ..) if name == "rate" => Self::rate(name, rate),
            (Some(number), ..) => Self::count(name, number),
            (None, Ok(rate), _) => Self::rate(name, rate),
            (None, _, Ok(bytes)) => Self::bytes(name, bytes),
            (None, ..) => Self::word(name, value),
        }
    }

    /// For people: `4 KiB`, `500/s`, `randread`, `clients 8`. Words and what has a unit speak for themselves, counts need
    /// their axis.
    pub fn label(&self) -> String {
        match self.value {
            Value::Number { unit: Unit::Count, .. } => {
                format!("{} {}", self.name.replace('_', " "), self.value)
            }
            _ => self.value.to_string(),
        }
    }
}

impl Value {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number { number, .. } => Some(*number),
            Value::Word { .. } => None,
        }
    }

    /// What the number counts, if it is one.
    pub fn unit(&self) -> Option<Unit> {
        match self {
            Value::Number { unit, .. } => Some(*unit),
            Value::Word { .. } => None,
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Number { number, unit }, Value::Number { number: other, unit: other_unit }) => {
                unit.cmp(other_unit).then_with(|| number.total_cmp(other))
            }
            (Value::Word { word }, Value::Word { word: other }) => word.cmp(other),
            (Value::Number { .. }, Value::Word { .. }) => Ordering::Less,
            (Value::Word { .. }, Value::Number { .. }) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Value::Number { number, unit } => (number.to_bits(), unit).hash(state),
            Value::Word { word } => word.hash(state),
        }
    }
}

/// As documents write it. Sizes are exact: `4 KiB`, `1536 B`, `500/s`.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number { number, unit: Unit::Bytes } => {
                out.write_str(&units::exact_bytes(*number as u64, " "))
            }
            Value::Number { number, unit: Unit::OperationsPerSecond } => write!(out, "{number}/s"),
            Value::Number { number, unit: Unit::Count } => write!(out, "{number}"),
            Value::Word { word } => out.write_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for Axis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Number { name: String, value: f64, unit: Unit },
            Word { name: String, value: String },
            Words(String, String),
        }
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Number { name, value, unit } => {
                Self { name, value: Value::Number { number: value, unit } }
            }
            Stored::Word { name, value } => Self::word(name, value),
            Stored::Words(name, value) => Self::of_words(name, &value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_survive_json() {
        let axes = [
            Axis::bytes("block_size", 4096),
            Axis::count("clients", 8),
            Axis::word("pattern", "rw"),
            Axis::rate("rate", 1234.568),
        ];
        let json = serde_json::to_string(&axes).unwrap();
        assert_eq!(
            json,
            r#"[{"name":"block_size","value":4096.0,"unit":"bytes"},{"name":"clients","value":8.0,"unit":"count"},{"name":"pattern","value":"rw"},{"name":"rate","value":1234.568,"unit":"operations_per_second"}]"#
        );
        assert_eq!(serde_json::from_str::<Vec<Axis>>(&json).unwrap(), axes);
    }

    #[test]
    fn axes_of_old_records_are_pairs_of_words() {
        let old = r#"[["block_size","4 KiB"],["clients","8"],["pattern","write 128 KiB"],["x",""],["rate","30k/s"],["rate","500"]]"#;
        let axes: Vec<Axis> = serde_json::from_str(old).unwrap();
        let expected = [
            Axis::bytes("block_size", 4096),
            Axis::count("clients", 8),
            Axis::word("pattern", "write 128 KiB"),
            Axis::word("x", ""),
            Axis::rate("rate", 30_000.0),
            Axis::rate("rate", 500.0),
        ];
        assert_eq!(axes, expected);
        let labels: Vec<String> = axes.iter().map(Axis::label).collect();
        assert_eq!(labels, ["4 KiB", "clients 8", "write 128 KiB", "", "30000/s", "500/s"]);
    }

    #[test]
    fn values_are_ordered_by_unit_and_number() {
        let mut axes =
            [Axis::word("a", "b"), Axis::rate("a", 1.0), Axis::count("a", 10), Axis::count("a", 9)];
        axes.sort();
        let expected =
            [Axis::count("a", 9), Axis::count("a", 10), Axis::rate("a", 1.0), Axis::word("a", "b")];
        assert_eq!(axes, expected);
        assert_ne!(Axis::count("a", 1), Axis::rate("a", 1.0));
    }
}
