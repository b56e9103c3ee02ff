//! How the run went.

use super::phrase::{Phrase, count, duration, percent, phrase};
use super::{Facts, list};
use serde::Serialize;
use tidemark_measure::units;

/// What there is to say of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Conduct {
    Running {},
    Interrupted {},
    StageFailed {
        reason: String,
    },
    NotStarted {
        stages: Vec<String>,
        of: usize,
    },
    GivenUp {
        reason: String,
        undone: u64,
        unknown: u64,
        lasted_ns: u64,
    },
    Undone {
        operations: u64,
    },
    UnequalWorkers {
        share: f64,
        first_ns: u64,
        last_ns: u64,
        window_ns: u64,
    },
    IdleWorkers {
        idle: u64,
        workers: u64,
    },
    ShortWindow {
        window_ns: u64,
        least_ns: u64,
    },
    /// No storage is behind the work.
    Simulated {},
}

impl Facts for Conduct {
    fn rule(&self) -> &'static str {
        match self {
            Conduct::Running {} => "running",
            Conduct::Interrupted {} => "interrupted",
            Conduct::StageFailed { .. } => "stage-failed",
            Conduct::NotStarted { .. } => "not-started",
            Conduct::GivenUp { .. } => "given-up",
            Conduct::Undone { .. } => "undone",
            Conduct::UnequalWorkers { .. } => "unequal-workers",
            Conduct::IdleWorkers { .. } => "idle-workers",
            Conduct::ShortWindow { .. } => "short-window",
            Conduct::Simulated {} => "simulated",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Conduct::Running {} => phrase!["the run is still going on"],
            Conduct::Interrupted {} => phrase!["the run was interrupted"],
            Conduct::StageFailed { reason } if reason.is_empty() => {
                phrase!["the stage failed: no reason was recorded"]
            }
            Conduct::StageFailed { reason } => {
                phrase!["the stage failed: ", reason.trim_end_matches('.')]
            }
            Conduct::NotStarted { stages, of } => {
                let names: Vec<&str> = stages.iter().map(String::as_str).collect();
                phrase![
                    count(stages.len() as u64),
                    " of ",
                    count(*of as u64),
                    " stages did not start: ",
                    list(&names)
                ]
            }
            Conduct::GivenUp { reason, .. } => {
                phrase!["the work was abandoned: ", reason.trim_end_matches('.')]
            }
            Conduct::Undone { operations } => {
                phrase![count(*operations), " planned operations were never started"]
            }
            Conduct::UnequalWorkers { share, .. } => {
                phrase!["some workers were idle for ", percent(share.min(1.0)), " of the window"]
            }
            Conduct::IdleWorkers { idle, workers } => {
                phrase![count(*idle), " of ", count(*workers), " workers did nothing"]
            }
            Conduct::ShortWindow { window_ns, .. } => {
                phrase!["the measurement window was short: ", duration(*window_ns)]
            }
            Conduct::Simulated {} => {
                phrase!["no storage was measured: the target only pretends to carry out operations"]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Conduct::Interrupted {} => {
                "Everything measured up to that point is kept; windows are shorter than planned.".into()
            }
            Conduct::UnequalWorkers { .. } => {
                "Throughput is averaged over the whole window. It was higher while all workers were busy."
                    .into()
            }
            Conduct::IdleWorkers { .. } => {
                "There was less work than workers, or they could not start.".into()
            }
            Conduct::ShortWindow { least_ns, .. } => format!(
                "Measure for at least {}, better until the storage's caches and background work have settled.",
                units::duration_ns(*least_ns)
            ),
            Conduct::Simulated {} => "These numbers are the load generator's own.".into(),
            _ => String::new(),
        }
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Conduct::GivenUp { undone, unknown, lasted_ns, .. } => {
                let mut lines = Vec::new();
                if *undone > 0 || *unknown == 0 {
                    lines.push(format!("operations never started: {}", units::count(*undone)));
                }
                if *unknown > 0 {
                    let unknown = units::count(*unknown);
                    lines.push(format!(
                        "operations whose outcome is unknown, because the process that ran them was lost: {unknown}"
                    ));
                }
                lines.push(format!("the work lasted {}", units::duration_ns(*lasted_ns)));
                lines
            }
            Conduct::UnequalWorkers { first_ns, last_ns, window_ns, .. } => vec![format!(
                "first worker done after {}, last one after {}; window: {}",
                units::duration_ns(*first_ns),
                units::duration_ns(*last_ns),
                units::duration_ns(*window_ns)
            )],
            _ => Vec::new(),
        }
    }
}
