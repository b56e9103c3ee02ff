//! What the levels of an evaluation can set: the axes that engines and formats declare for their loads.

use crate::diagnostic::{Code, Diagnostic};
use crate::schema::values::{rate, whole};
use crate::yaml::table::{self, Problem};
use crate::yaml::timing;
use serde_json::Value as Schema;
use std::ops::Range;
use tidemark_measure::axis::{Axis, Unit, Value};

/// A key of a load that the levels of an evaluation can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelAxis {
    /// The key: `workers`.
    pub name: &'static str,
    /// What it is, for editors.
    pub description: &'static str,
    /// The values that it can have.
    pub values: Values,
}

/// The values that an axis can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers from 1 to this one.
    UpTo(u32),
    /// Rates above zero, operations per second.
    Rates,
}

/// The rate of a load: an axis of every engine whose loads are paced by [`timing::pacing`].
pub const RATE: LevelAxis =
    LevelAxis { name: "rate", description: "Operations per time of each load", values: Values::Rates };

impl LevelAxis {
    /// An axis of whole numbers from 1 to `most`.
    pub const fn count(name: &'static str, most: u32, description: &'static str) -> Self {
        Self { name, description, values: Values::UpTo(most) }
    }

    /// What its numbers count.
    pub const fn unit(&self) -> Unit {
        match self.values {
            Values::UpTo(_) => Unit::Count,
            Values::Rates => Unit::OperationsPerSecond,
        }
    }

    /// A value as documents write it.
    ///
    /// # Errors
    /// When it is no value of this axis.
    pub fn read(&self, text: &str) -> Result<Axis, Problem> {
        let number = match self.values {
            Values::UpTo(most) => table::whole(text.trim(), &(1..=u64::from(most)))? as f64,
            Values::Rates => match timing::rate(text)? {
                0.0 => return Err(Problem::new("the rate is zero", "write a rate such as 500/s")),
                rate => rate,
            },
        };
        Ok(Axis { name: self.name.to_owned(), value: Value::Number { number, unit: self.unit() } })
    }

    /// The schema of a value.
    pub(crate) fn schema(&self) -> Schema {
        match self.values {
            Values::UpTo(_) => whole(self.description, 1),
            Values::Rates => rate(self.description),
        }
    }
}

/// Says that a level sets what a load does not take. `subject` is what takes `axes`: `loads on objects`.
pub(crate) fn not_taken(
    axis: &Axis,
    text: &str,
    span: Range<usize>,
    subject: &str,
    axes: &[LevelAxis],
) -> Diagnostic {
    let message = format!("the level's `{}` ({text}) does not apply to {subject}", axis.name);
    let names: Vec<String> = axes.iter().map(|axis| format!("`{}`", axis.name)).collect();
    let help = match names.split_last() {
        None => "write `levels: {}` for this load".to_owned(),
        Some((only, [])) => format!("{subject} take {only}"),
        Some((last, rest)) => format!("{subject} take {} or {last}", rest.join(", ")),
    };
    Diagnostic::error(span, message, help).about(Code::Level(axis.clone()))
}
