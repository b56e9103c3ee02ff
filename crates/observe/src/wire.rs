//! What `GET /samples` answers, in JSON: the newest samples of a node.

use crate::sample::Value;
use serde::{Deserialize, Serialize};

/// An answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Page {
    /// The node's host name.
    pub(crate) name: String,
    /// When its observer was started, nanoseconds since 1970: numbers of samples begin anew with it.
    pub(crate) started_unix_ns: u64,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) gaps: Vec<String>,
    /// The newest, or all that are still there behind the number that was asked for; the oldest first.
    pub(crate) samples: Vec<Numbered>,
}

/// A sample with its place in time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Numbered {
    /// From 1.
    pub(crate) number: u64,
    /// How long ago it was taken when the answer was made, nanoseconds. Clocks of two nodes need not agree.
    pub(crate) age_ns: u64,
    /// Seconds since the sample before it.
    pub(crate) seconds: f64,
    pub(crate) values: Vec<Value>,
}
