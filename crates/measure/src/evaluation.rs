//! The record of an evaluation: arms x loads x levels x repeats. Its runs are stored separately; each finds its place by its
//! [`Member`]. Plain data, as [`crate::record`].

use crate::axis::{Axis, Unit, Value};
use crate::record::{Note, Provenance, State};
use crate::service_level::ServiceLevel;
use crate::tuning::Tuning;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// One evaluation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Evaluation {
    /// The number under which the store keeps it; 0 before it is stored.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its description: the question, or empty.
    pub description: String,
    /// When it was first started, nanoseconds since 1970 UTC.
    pub started_unix_ns: u64,
    /// How it ended, or that it has not.
    pub state: State,
    /// What made it; the targets are in the arms.
    pub provenance: Provenance,
    /// What is compared; the first is the baseline.
    pub arms: Vec<Arm>,
    /// The loads that run on each of them.
    pub loads: Vec<Load>,
    /// How often each cell is measured, or at most with `until`.
    pub repeats: u32,
    /// How far the interval of a cell's mean may reach to each side, as a share of it, until its repeats end.
    pub until: Option<f64>,
    /// The order of the runs: `interleaved`, `blocks`, `random`.
    pub order: String,
    /// Remarks on the document.
    pub notes: Vec<Note>,
    /// The search for better settings whose trials the arms are; `None` where arms are compared as they are listed.
    pub tuning: Option<Tuning>,
    /// Cells that could not be measured, or not at all, and why: whole sentences.
    pub missing: Vec<String>,
}

/// Repeats of a cell before its spread may end them: from fewer nobody can tell.
pub const REPEATS_LEAST: u32 = 5;

/// One thing compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// Its description, or empty.
    pub description: String,
    /// What it is: target, layout, what is emulated; name and value, secrets left out.
    pub settings: Vec<(String, String)>,
}

/// One load, at all its levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Its name.
    pub name: String,
    /// Its description, or empty.
    pub description: String,
    /// The levels that the document lists, in its order; those of a knee search are found on the way.
    pub levels: Vec<Level>,
    /// The knee search, if there is one.
    pub search: Option<Search>,
    /// What its latencies must stay within to count.
    pub service_level: Option<ServiceLevel>,
}

/// One load intensity: its value on every axis, such as 320 `workers`; empty where nothing varies.
pub type Level = Vec<Axis>;

/// A level for people: `workers 320, depth 4`; empty for one without axes.
pub fn level_label(level: &Level) -> String {
    level.iter().map(Axis::label).collect::<Vec<_>>().join(", ")
}

/// The number of a level on an axis, if it has one.
pub fn number_on(level: &Level, axis: &str) -> Option<f64> {
    level.iter().find(|own| own.name == axis)?.value.number()
}

/// Where the highest load within a service level is looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Search {
    /// What is varied: `workers`, `rate`.
    pub axis: String,
    /// What its numbers count.
    pub unit: Unit,
    /// The lowest load.
    pub from: f64,
    /// The highest.
    pub to: f64,
    /// How exactly: 0.05 looks until the knee is, with 95 %, at most 5 % away (or between neighbours).
    pub within: f64,
    /// How many runs it may take on each arm; 0 in records of old, which means that nobody limited them.
    pub runs: u32,
}

impl Search {
    /// The level at a value, as documents write it: a whole number, or a rate with at most three decimals; never nothing.
    pub fn level(&self, value: f64) -> Level {
        let number = match self.unit {
            Unit::OperationsPerSecond => (value * 1e3).round().max(1.0) / 1e3,
            Unit::Count | Unit::Bytes => value.round().max(1.0),
        };
        vec![Axis { name: self.axis.clone(), value: Value::Number { number, unit: self.unit } }]
    }
}

/// Searches of older records have no unit: theirs follows from the axis.
impl<'de> Deserialize<'de> for Search {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Stored {
            axis: String,
            unit: Option<Unit>,
            from: f64,
            to: f64,
            within: f64,
            runs: u32,
        }
        let Stored { axis, unit, from, to, within, runs } = Stored::deserialize(deserializer)?;
        let before = if axis == "rate" { Unit::OperationsPerSecond } else { Unit::Count };
        Ok(Self { axis, unit: unit.unwrap_or(before), from, to, within, runs })
    }
}

/// A run's place in an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Member {
    /// The evaluation's number.
    pub evaluation: u64,
    /// The arm's name.
    pub arm: String,
    /// The load's name.
    pub load: String,
    /// The level.
    #[schema(value_type = Vec<crate::axis::AxisRecord>)]
    pub level: Level,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Which of all runs of the evaluation it was, in the order of time, from 1.
    pub turn: u32,
    /// Of all that makes the cell what it is: when it changes, the cell is measured again.
    pub fingerprint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_give_levels_that_documents_can_write() {
        let rate = Search { axis: "rate".into(), unit: Unit::OperationsPerSecond, ..Search::default() };
        assert_eq!(rate.level(1234.56789), [Axis::rate("rate", 1234.568)]);
        assert_eq!(rate.level(1e-6), [Axis::rate("rate", 0.001)], "never nothing");
        let workers = Search { axis: "workers".into(), ..Search::default() };
        assert_eq!(workers.level(7.6), [Axis::count("workers", 8)]);
        assert_eq!(workers.level(0.0), [Axis::count("workers", 1)]);
    }

    #[test]
    fn members_and_searches_of_older_records_are_read() {
        let member: Member =
            serde_json::from_str(r#"{"level":[["rate","1k/s"],["workers","320"]]}"#).unwrap();
        assert_eq!(member.level, [Axis::rate("rate", 1000.0), Axis::count("workers", 320)]);
        let unit = |text: &str| serde_json::from_str::<Search>(text).unwrap().unit;
        assert_eq!(unit(r#"{"axis":"rate","from":1.0,"to":9.0,"within":0.05}"#), Unit::OperationsPerSecond);
        assert_eq!(unit(r#"{"axis":"workers","from":1.0,"to":9.0,"within":0.05}"#), Unit::Count);
        let old: Search =
            serde_json::from_str(r#"{"axis":"rate","from":1.0,"to":9.0,"within":0.05}"#).unwrap();
        assert_eq!(old.runs, 0, "nobody limited them");
        let again = serde_json::to_string(&Search {
            axis: "ops".into(),
            unit: Unit::OperationsPerSecond,
            ..Search::default()
        });
        assert_eq!(unit(&again.unwrap()), Unit::OperationsPerSecond);
    }
}
