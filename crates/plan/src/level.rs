//! What the levels of an evaluation can set: the axes that engines and formats declare for their loads.

use std::ops::Range;
use tidemark_keys::diagnostic::{Code, Diagnostic};
use tidemark_keys::kinds::{Kind, Parsed, Rate, Whole};
use tidemark_keys::shapes::OneOrList;
use tidemark_keys::{Key, Problem};
use tidemark_measure::axis::{Axis, Unit, Value};

/// A key of a load that the levels of an evaluation can set.
pub struct LevelAxis {
    /// The key in `levels`: the values to measure.
    pub values: Key<OneOrList<Values>>,
    /// The same in `search`: the lowest and the highest of them.
    pub range: Key<Parsed<String>>,
}

/// The values that an axis can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers from 1 to this one.
    UpTo(u32),
    /// Rates above zero, operations per second.
    Rates,
}

/// The rate of a load: an axis of every engine whose loads are paced by [`pacing`](crate::yaml::timing::pacing).
pub static RATE: LevelAxis =
    LevelAxis::new("rate", "Operations per time of each load", Values::Rates, "100/s-20k/s");

impl LevelAxis {
    /// An axis of whole numbers from 1 to `most`.
    pub const fn count(name: &'static str, most: u32, about: &'static str) -> Self {
        Self::new(name, about, Values::UpTo(most), "1-2560")
    }

    const fn new(name: &'static str, about: &'static str, values: Values, range: &'static str) -> Self {
        // What it says is read by `search`, which knows the axis.
        let shape = Parsed("range", |text| Ok(text.to_owned()));
        Self {
            values: Key::new(name, about, OneOrList(values)),
            range: Key::new(name, about, shape).example(range),
        }
    }

    /// The key: `workers`.
    pub const fn name(&self) -> &'static str {
        self.values.name
    }

    /// What its numbers count.
    pub const fn unit(&self) -> Unit {
        match self.values.shape.0 {
            Values::UpTo(_) => Unit::Count,
            Values::Rates => Unit::OperationsPerSecond,
        }
    }

    /// A value as documents write it.
    ///
    /// # Errors
    /// When it is no value of this axis.
    pub fn read(&self, text: &str) -> Result<Axis, Problem> {
        let number = self.values.shape.0.read(text)?;
        Ok(Axis { name: self.name().to_owned(), value: Value::Number { number, unit: self.unit() } })
    }
}

impl Kind for Values {
    type Value = f64;

    fn read(&self, text: &str) -> Result<f64, Problem> {
        match self {
            Values::UpTo(most) => Ok(Whole(1, *most).read(text.trim())?.into()),
            Values::Rates => match Rate.read(text)? {
                0.0 => Err(Problem::new("the rate is zero", "write a rate such as 500/s")),
                rate => Ok(rate),
            },
        }
    }

    fn schema(&self) -> serde_json::Value {
        match self {
            Values::UpTo(most) => Kind::schema(&Whole(1, *most)),
            Values::Rates => Kind::schema(&Rate),
        }
    }

    fn words(&self) -> String {
        match self {
            Values::UpTo(most) => Kind::words(&Whole(1, *most)),
            Values::Rates => Kind::words(&Rate),
        }
    }
}

/// Says that a level sets what a load does not take. `subject` is what takes `axes`: `loads on objects`.
pub(crate) fn not_taken(
    axis: &Axis,
    text: &str,
    span: Range<usize>,
    subject: &str,
    axes: &[&LevelAxis],
) -> Diagnostic {
    let message = format!("the level's `{}` ({text}) does not apply to {subject}", axis.name);
    let names: Vec<String> = axes.iter().map(|axis| format!("`{}`", axis.name())).collect();
    let help = match names.split_last() {
        None => "write `levels: {}` for this load".to_owned(),
        Some((only, [])) => format!("{subject} take {only}"),
        Some((last, rest)) => format!("{subject} take {} or {last}", rest.join(", ")),
    };
    Diagnostic::error(span, message, help).about(Code::Level(axis.clone()))
}
