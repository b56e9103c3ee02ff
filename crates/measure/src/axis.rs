//! What a sweep varies: names and values with units, as data.

use crate::units;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// One coordinate of a point of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// What is varied: `block_size`.
    pub name: String,
    /// Its value at this point.
    #[serde(flatten)]
    pub value: Value,
}

/// A value on an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

/// How an [`Axis`] stands in JSON.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AxisUnit)]
pub enum Unit {
    /// Things: clients, operations in flight.
    Count,
    /// Bytes.
    Bytes,
}

impl Axis {
    /// An axis that counts.
    pub fn count(name: impl Into<String>, number: impl Into<f64>) -> Self {
        let value = Value::Number { number: number.into(), unit: Unit::Count };
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

    /// What was recorded as two words before axes had types: `block_size` `4 KiB`.
    pub fn of_words(name: impl Into<String>, value: &str) -> Self {
        let number = value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        match (number, units::parse_bytes(value)) {
            (Some(number), _) => Self::count(name, number),
            (None, Ok(bytes)) => Self::bytes(name, bytes),
            (None, Err(_)) => Self::word(name, value),
        }
    }

    /// For people: `4 KiB`, `randread`, `clients 8`. Words and sizes speak for themselves, numbers need their axis.
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

/// Sizes are printed exactly: `4 KiB`, `1536 B`.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number { number, unit: Unit::Bytes } => {
                out.write_str(&units::exact_bytes(*number as u64, " "))
            }
            Value::Number { number, .. } => write!(out, "{number}"),
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
        let axes = [Axis::bytes("block_size", 4096), Axis::count("clients", 8), Axis::word("pattern", "rw")];
        let json = serde_json::to_string(&axes).unwrap();
        assert_eq!(
            json,
            r#"[{"name":"block_size","value":4096.0,"unit":"bytes"},{"name":"clients","value":8.0,"unit":"count"},{"name":"pattern","value":"rw"}]"#
        );
        assert_eq!(serde_json::from_str::<Vec<Axis>>(&json).unwrap(), axes);
    }

    #[test]
    fn axes_of_old_records_are_pairs_of_words() {
        let old = r#"[["block_size","4 KiB"],["clients","8"],["pattern","write 128 KiB"],["x",""]]"#;
        let axes: Vec<Axis> = serde_json::from_str(old).unwrap();
        let expected = [
            Axis::bytes("block_size", 4096),
            Axis::count("clients", 8),
            Axis::word("pattern", "write 128 KiB"),
            Axis::word("x", ""),
        ];
        assert_eq!(axes, expected);
        let labels: Vec<String> = axes.iter().map(Axis::label).collect();
        assert_eq!(labels, ["4 KiB", "clients 8", "write 128 KiB", ""]);
    }
}
