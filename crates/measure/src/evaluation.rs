//! The record of an evaluation: arms x loads x levels x repeats. Its runs are stored separately; each finds its place by its
//! [`Member`]. Plain data, as [`crate::record`].

use crate::axis::Axis;
use crate::record::{Note, Provenance, State};
use crate::service_level::ServiceLevel;
use serde::{Deserialize, Serialize};
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
    /// How often each cell is measured.
    pub repeats: u32,
    /// The order of the runs: `interleaved`, `blocks`, `random`.
    pub order: String,
    /// Remarks on the document.
    pub notes: Vec<Note>,
    /// Cells that could not be measured, or not at all, and why: whole sentences.
    pub missing: Vec<String>,
}

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

/// One load intensity: name and value of every axis, such as `workers` `320`; empty where nothing varies.
pub type Level = Vec<(String, String)>;

/// A level for people: `workers 320, depth 4`; empty for one without axes.
pub fn level_label(level: &Level) -> String {
    let labels = level.iter().map(|(name, value)| Axis::of_words(name, value).label());
    labels.collect::<Vec<_>>().join(", ")
}

/// Where the highest load within a service level is looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Search {
    /// What is varied: `workers`, `rate`, `depth`, `clients`.
    pub axis: String,
    /// The lowest load.
    pub from: f64,
    /// The highest.
    pub to: f64,
    /// How exactly: 0.05 looks until two levels that enclose the knee are at most 5 % apart (or are neighbours).
    pub within: f64,
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
    #[schema(value_type = Vec<(String, String)>)]
    pub level: Level,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Which of all runs of the evaluation it was, in the order of time, from 1.
    pub turn: u32,
    /// Of all that makes the cell what it is: when it changes, the cell is measured again.
    pub fingerprint: String,
}
