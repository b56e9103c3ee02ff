//! Response times that are not the storage's.

use super::Facts;
use super::phrase::{Phrase, duration, phrase};
use serde::Serialize;
use tidemark_measure::units;

/// Seconds that are listed, at most.
const LISTED_MOST: usize = 10;

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Stalls {
    DelayedAcknowledgement {
        operation: String,
        within: u64,
        replies: u64,
        low_ns: u64,
        high_ns: u64,
    },
    /// Seconds of the work and for how long a thread stood still in them.
    Standstill {
        longest_ns: u64,
        seconds: Vec<(u32, u64)>,
    },
}

impl Facts for Stalls {
    fn rule(&self) -> &'static str {
        match self {
            Stalls::DelayedAcknowledgement { .. } => "delayed-acknowledgement",
            Stalls::Standstill { .. } => "generator-standstill",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Stalls::DelayedAcknowledgement { operation, .. } => {
                phrase![
                    "most \"",
                    operation,
                    "\" replies took 40 to 50 ms, typical of a delayed TCP acknowledgement"
                ]
            }
            Stalls::Standstill { longest_ns, .. } => {
                phrase!["the load generator stood still for ", duration(*longest_ns)]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Stalls::DelayedAcknowledgement { .. } => {
                "A server that sends a reply in two pieces without TCP_NODELAY waits 40 ms for the client to acknowledge \
                 the first piece. The storage may be much faster than this: for Ceph's RADOS gateway, add tcp_nodelay=1 \
                 to rgw_frontends and compare. Applications on Linux see the same delay."
            }
            Stalls::Standstill { .. } => {
                "Its threads were due to run and did not: it was stopped, swapped out, or its machine was paused. \
                 Latencies from that time are its own, not the storage's."
            }
        }
        .into()
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Stalls::DelayedAcknowledgement { operation, within, replies, low_ns, high_ns } => vec![format!(
                "{operation}: {} of {} replies took {} to {}: {}",
                units::count(*within),
                units::count(*replies),
                units::duration_ns(*low_ns),
                units::duration_ns(*high_ns),
                units::percent(*within as f64 / (*replies).max(1) as f64)
            )],
            Stalls::Standstill { seconds, .. } => seconds
                .iter()
                .take(LISTED_MOST)
                .map(|(index, late)| {
                    format!("second {}: {}", u64::from(*index) + 1, units::duration_ns(*late))
                })
                .collect(),
        }
    }
}
