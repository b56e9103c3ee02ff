//! Whether there were enough samples, and what was verified.

use super::Tell;
use super::phrase::{Phrase, count, phrase};
use crate::rules::samples_needed;
use serde::Serialize;
use tidemark_measure::units;

/// An operation with too few samples for a percentile.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Shaky {
    pub operation: String,
    pub samples: u64,
    /// The lowest percentile with too few, as a fraction.
    pub fraction: f64,
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Samples {
    Few { operations: Vec<Shaky> },
    Verified { operation: String, reads: u64 },
}

impl Tell for Samples {
    fn rule(&self) -> &'static str {
        match self {
            Samples::Few { .. } => "few-samples",
            Samples::Verified { .. } => "verified",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Samples::Few { .. } => phrase!["too few samples for the highest percentiles"],
            Samples::Verified { operation, reads } => {
                phrase![
                    "all ",
                    count(*reads),
                    " successful \"",
                    operation,
                    "\" operations were verified: no wrong data"
                ]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Samples::Few { .. } => {
                "Those percentiles and all higher ones rest on a handful of operations: do not compare them between runs."
                    .into()
            }
            Samples::Verified { .. } => String::new(),
        }
    }

    fn evidence(&self) -> Vec<String> {
        let line = |one: &Shaky| {
            format!(
                "{}: {} samples; p{} needs {}",
                one.operation,
                units::count(one.samples),
                // Rounded: 0.999 x 100 is 99.900000000000006.
                (one.fraction * 1e6).round() / 1e4,
                units::count(samples_needed(one.fraction))
            )
        };
        match self {
            Samples::Few { operations } => operations.iter().map(line).collect(),
            Samples::Verified { .. } => Vec::new(),
        }
    }
}
