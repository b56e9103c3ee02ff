//! Whether there were enough samples, and what was verified.

use super::Facts;
use super::phrase::{Phrase, count, phrase};
use crate::rules::samples_needed;
use serde::Serialize;
use tidemark_measure::units;
use tidemark_measure::verification::Unchecked;

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
    Few {
        operations: Vec<Shaky>,
    },
    Verified {
        operation: String,
        reads: u64,
        /// Of them, those of which nobody knew which write they must be of.
        placed: u64,
    },
    NotVerified {
        operation: String,
        /// Those that succeeded.
        reads: u64,
        verified: u64,
        unchecked: Vec<(Unchecked, u64)>,
        /// Of which the record does not tell whether they were.
        untold: u64,
    },
}

impl Facts for Samples {
    fn rule(&self) -> &'static str {
        match self {
            Samples::Few { .. } => "few-samples",
            Samples::Verified { placed: 0, .. } => "verified",
            Samples::Verified { .. } => "verified-in-place",
            Samples::NotVerified { .. } => "not-verified",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Samples::Few { .. } => phrase!["too few samples for the highest percentiles"],
            Samples::Verified { operation, reads, placed } if *placed > 0 => {
                phrase![
                    "all ",
                    count(*reads),
                    " successful \"",
                    operation,
                    "\" operations returned whole blocks of Tidemark's, in their place; of which write ",
                    count(*placed),
                    " of them must be is unknown"
                ]
            }
            Samples::Verified { operation, reads, .. } => {
                phrase![
                    "all ",
                    count(*reads),
                    " successful \"",
                    operation,
                    "\" operations were verified: no wrong data"
                ]
            }
            Samples::NotVerified { operation, reads, verified, unchecked, .. } => {
                not_verified(operation, *reads, *verified, unchecked)
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Samples::Few { .. } => {
                "Those percentiles and all higher ones rest on a handful of operations: do not compare them between runs."
                    .into()
            }
            Samples::Verified { placed: 0, .. } => String::new(),
            Samples::Verified { .. } => {
                "They were written before this run: content that is stale would not have been noticed. With a `journal` on the target, runs know what earlier ones wrote."
                    .into()
            }
            Samples::NotVerified { unchecked, .. } => {
                unchecked.iter().map(|(why, _)| remedy(*why)).collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn proves(&self) -> bool {
        matches!(self, Samples::Verified { .. })
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
            Samples::NotVerified { unchecked, untold, .. } => {
                let reasons = unchecked.iter().map(|(why, number)| {
                    format!("{} x {}: {}", units::count(*number), why.name(), why.clause())
                });
                let untold = (*untold > 0).then(|| format!("{} x not recorded", units::count(*untold)));
                reasons.chain(untold).collect()
            }
        }
    }
}

/// `6 000 of 8 000 successful "read" operations were verified; 2 000 could not be, because ...`.
fn not_verified(operation: &str, reads: u64, verified: u64, unchecked: &[(Unchecked, u64)]) -> Phrase {
    let what = ["\"", operation, "\" operations"].concat();
    let Some((main, _)) = unchecked.iter().max_by_key(|(_, number)| *number) else {
        return phrase![
            "the record does not tell whether ",
            count(reads),
            " successful ",
            what,
            " were verified"
        ];
    };
    let because = if unchecked.len() > 1 { ", mostly because " } else { ", because " };
    let begins = match verified {
        0 => phrase!["none of ", count(reads), " successful ", what, " could be verified"],
        verified => phrase![
            count(verified),
            " of ",
            count(reads),
            " successful ",
            what,
            " were verified; ",
            count(reads.saturating_sub(verified)),
            " could not be"
        ],
    };
    Phrase([begins.0, phrase![because, main.clause()].0].concat())
}

/// What to do about reads that could not be verified.
fn remedy(why: Unchecked) -> &'static str {
    match why {
        Unchecked::TooShort => {
            "Larger objects can be verified: from 64 bytes on, or from 41 on with `hashCheck`."
        }
        Unchecked::Part => "Read whole objects, or use `fill: seeded`, whose parts can be verified.",
        Unchecked::UnknownOrigin => {
            "Such content is neither right nor wrong: to have it verified, write the objects with the same seed, names \
             and `content` as they are read with."
        }
        Unchecked::NoContent => "Such reads show nothing of the content.",
        Unchecked::OtherWriter => {
            "A run without the target's `journal` wrote there later: fill the volume again with it."
        }
        Unchecked::WriteInFlight => "Such reads may return bytes of either write.",
    }
}
