//! Whether throughput was steady.

use super::Facts;
use super::phrase::{Phrase, count, phrase};
use serde::Serialize;
use tidemark_measure::steady::{RANGE_MOST, RISE_MOST, Steadiness as Varied};
use tidemark_measure::units;

/// How throughput went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Course {
    Steady,
    Rose,
    Fell,
    Uneven,
}

/// What there is to say of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Steadiness {
    TooShort {
        seconds: usize,
        needed: usize,
    },
    /// Range and change as shares of the mean.
    Course {
        course: Course,
        fifths: Vec<f64>,
        range: f64,
        change: f64,
    },
    Settled {
        steady: bool,
        rounds: usize,
        round_ns: u64,
        last: Vec<f64>,
    },
}

impl Facts for Steadiness {
    fn rule(&self) -> &'static str {
        match self {
            Steadiness::TooShort { .. } | Steadiness::Course { .. } => "steadiness",
            Steadiness::Settled { steady: true, .. } => "steady-state",
            Steadiness::Settled { steady: false, .. } => "not-steady",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Steadiness::TooShort { .. } => {
                phrase!["the window is too short to tell whether throughput was steady"]
            }
            Steadiness::Course { course, .. } => match course {
                Course::Steady => phrase!["throughput was steady over the window"],
                Course::Rose => phrase!["throughput rose over the window"],
                Course::Fell => phrase!["throughput fell over the window"],
                Course::Uneven => phrase!["throughput was uneven over the window"],
            },
            Steadiness::Settled { steady: true, rounds, .. } => {
                phrase![
                    "the load reached steady state before the window, after ",
                    count(*rounds as u64),
                    " rounds"
                ]
            }
            Steadiness::Settled { steady: false, rounds, .. } => {
                phrase!["no steady state before the window, after ", count(*rounds as u64), " rounds"]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Steadiness::Course { course: Course::Steady, .. }
            | Steadiness::TooShort { .. }
            | Steadiness::Settled { steady: true, .. } => "",
            Steadiness::Course { .. } => {
                "The average is not that of a steady state: a longer warm-up or a longer run may give a different result."
            }
            Steadiness::Settled { steady: false, .. } => {
                "The storage was still changing, so this is a snapshot of a transition. Allow more rounds, or precondition for longer."
            }
        }
        .into()
    }

    fn proves(&self) -> bool {
        matches!(self, Steadiness::Settled { steady: true, .. })
    }

    fn evidence(&self) -> Vec<String> {
        let rates = |all: &[f64]| all.iter().map(|rate| units::rate(*rate)).collect::<Vec<_>>().join(", ");
        let limits = |range: f64, change: f64| {
            format!(
                "highest - lowest = {} of the mean (limit {}); slope: {:+.1} % (limit {})",
                units::percent(range),
                units::percent(RANGE_MOST),
                change * 100.0,
                units::percent(RISE_MOST)
            )
        };
        match self {
            Steadiness::TooShort { seconds, needed } => {
                vec![format!("whole seconds in it: {seconds}; needed: {needed}")]
            }
            Steadiness::Course { fifths, range, change, .. } => {
                vec![format!("fifths of the window: {}", rates(fifths)), limits(*range, *change)]
            }
            Steadiness::Settled { round_ns, last, .. } => {
                let length = units::duration_ns(*round_ns);
                let varied = Varied::of(last).map(|varied| limits(varied.range, varied.rise));
                std::iter::once(format!("rounds of {length}; the last ones: {}", rates(last)))
                    .chain(varied)
                    .collect()
            }
        }
    }
}
