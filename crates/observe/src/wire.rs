//! The JSON of `GET /samples`: the newest samples of a node.

use crate::sample::Value;
use serde::{Deserialize, Serialize};

/// A reply.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Page {
    /// The node's host name.
    pub(crate) name: String,
    /// When its observer was started, nanoseconds since 1970: numbers of samples start again with it.
    pub(crate) started_unix_ns: u64,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) gaps: Vec<String>,
    /// The newest sample, or all available ones after the requested number, oldest first.
    pub(crate) samples: Vec<Numbered>,
}

/// A sample with its place in time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Numbered {
    /// From 1.
    pub(crate) number: u64,
    /// Its age when the reply was made, nanoseconds: the clocks of two nodes need not agree.
    pub(crate) age_ns: u64,
    /// Seconds since the previous sample.
    pub(crate) seconds: f64,
    pub(crate) values: Vec<Value>,
}
