//! How many and how long, as far as a plan decides it.

use serde::Serialize;
use tidemark_measure::units;

/// Of more conditions than this, only the first are shown to people.
const MOST_SHOWN: usize = 6;

/// A number that a plan fixes, bounds, or leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Exactly this many.
    Exactly(u64),
    /// This many on average: chance decides.
    About(u64),
    /// At most this many.
    UpTo(u64),
    /// It depends on how fast the target is.
    Open,
}

impl Amount {
    /// For people, printed by `print`: `500`, `about 500`, `up to 500`, `as many as possible`.
    pub fn describe(self, print: impl Fn(u64) -> String) -> String {
        match self {
            Amount::Exactly(number) => print(number),
            Amount::About(number) => format!("about {}", print(number)),
            Amount::UpTo(number) => format!("up to {}", print(number)),
            Amount::Open => "as many as possible".to_owned(),
        }
    }

    /// So many times something of these bytes: from the smallest to the largest, and the mean.
    pub fn times(self, (least, most): (u64, u64), mean: f64) -> Self {
        let on_average = |number: u64| Amount::About((number as f64 * mean) as u64);
        match self {
            Amount::Exactly(number) if least == most => Amount::Exactly(number.saturating_mul(most)),
            Amount::About(number) if least == most => Amount::About(number.saturating_mul(most)),
            Amount::Exactly(number) | Amount::About(number) => on_average(number),
            Amount::UpTo(number) => Amount::UpTo(number.saturating_mul(most)),
            Amount::Open => Amount::Open,
        }
    }
}

/// How long something takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Time {
    /// Nanoseconds that are planned; where something ends by a count, they are what comes on top of that.
    pub planned_ns: u64,
    /// What else must be done until it ends, e.g. `all 50 000 objects are written`; empty when time alone decides.
    pub until: Vec<String>,
    /// Whether it may end earlier: a count or a volume may be reached before the time is over.
    pub at_most: bool,
}

impl Time {
    /// For people: `20 m 00 s`, `at most 60.0 s`, `until 10 000 operations are done`.
    pub fn describe(&self) -> String {
        let planned = units::duration_ns(self.planned_ns);
        let planned = if self.at_most { format!("at most {planned}") } else { planned };
        let until = match self.until.len() {
            0..=MOST_SHOWN => self.until.join(" and "),
            more => {
                format!(
                    "{} and {} more conditions",
                    self.until[..2].join(", "),
                    units::count(more as u64 - 2)
                )
            }
        };
        match (self.until.is_empty(), self.planned_ns) {
            (true, _) => planned,
            (false, 0) => format!("until {until}"),
            (false, _) => format!("{planned}, and until {until}"),
        }
    }

    /// The time of two things side by side.
    pub(super) fn beside(&mut self, other: &Time) {
        self.planned_ns = self.planned_ns.max(other.planned_ns);
        self.until.extend(other.until.iter().cloned());
        self.at_most |= other.at_most;
    }

    /// The time of one thing after the other.
    pub(super) fn then(&mut self, other: &Time) {
        self.planned_ns = self.planned_ns.saturating_add(other.planned_ns);
        self.until.extend(other.until.iter().cloned());
        self.at_most |= other.at_most;
    }
}
