//! Whether the drivers of a run put the load on together.

use super::Facts;
use super::phrase::{Phrase, count, duration, phrase};
use serde::Serialize;
use tidemark_measure::units;

/// Names that are listed, at most.
const NAMED_MOST: usize = 5;

/// `driver d1`, `drivers d1 and d2`, `drivers d1, d2, d3, d4, d5 and 3 more`.
pub(super) fn named(all: &[&str]) -> String {
    let shown = &all[..all.len().min(NAMED_MOST)];
    match (shown, all.len() - shown.len()) {
        ([one], _) => format!("driver {one}"),
        ([first @ .., last], 0) => format!("drivers {} and {last}", first.join(", ")),
        (some, more) => format!("drivers {} and {more} more", some.join(", ")),
    }
}

/// What was missing of a work because a driver was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Missing {
    pub stage: String,
    pub work: String,
    pub first_worker: u64,
    pub last_worker: u64,
    pub of_workers: u32,
    /// Since the start of the work.
    pub from_ns: u64,
    /// How much of the measured window, and its length; `None` where nothing is measured.
    pub of_window_ns: Option<(u64, u64)>,
}

impl Missing {
    fn line(&self) -> String {
        let (workers, were) = match self.last_worker == self.first_worker {
            true => (format!("worker {}", self.first_worker), "was"),
            false => (format!("workers {} to {}", self.first_worker, self.last_worker), "were"),
        };
        let told = format!(
            "{}, work \"{}\": {workers} of {} {were} missing from {}",
            self.stage,
            self.work,
            self.of_workers,
            units::duration_ns(self.from_ns)
        );
        match self.of_window_ns {
            None => told,
            Some((missing, window)) => format!(
                "{told}: {} of the {} window = {}",
                units::duration_ns(missing),
                units::duration_ns(window),
                units::percent(missing as f64 / window as f64)
            ),
        }
    }
}

/// How simultaneously drivers started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Start {
    Together,
    /// A ramp-up or an open loop may be why they did not.
    Staggered,
    Slightly,
    Apart,
}

/// A driver that did less than the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Slow {
    pub driver: String,
    pub operations_per_worker: f64,
    pub failed: u64,
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Drivers {
    Lost {
        driver: String,
        lost_ns: Option<u64>,
        reason: String,
        missing: Vec<Missing>,
    },
    Start {
        start: Start,
        drivers: usize,
        spread_ns: u64,
        doubt_ns: u64,
        first: (String, u64),
        last: (String, u64),
        limit_ns: u64,
        limit_invalid_ns: u64,
    },
    Slow {
        slow: Vec<Slow>,
        peers: usize,
        median: f64,
    },
}

impl Drivers {
    /// Whether measured load is missing.
    pub(crate) fn measured_missing(missing: &[Missing]) -> bool {
        missing.iter().any(|one| one.of_window_ns.is_some_and(|(length, _)| length > 0))
    }
}

impl Facts for Drivers {
    fn rule(&self) -> &'static str {
        match self {
            Drivers::Lost { .. } => "driver-lost",
            Drivers::Start { .. } => "driver-skew",
            Drivers::Slow { .. } => "driver-slow",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Drivers::Lost { driver, lost_ns: Some(at), reason, .. } => {
                phrase![
                    "driver ",
                    driver,
                    " was lost ",
                    duration(*at),
                    " into the run: ",
                    reason.trim_end_matches('.')
                ]
            }
            Drivers::Lost { driver, lost_ns: None, .. } => {
                phrase!["results of driver ", driver, " are incomplete"]
            }
            Drivers::Start { start, drivers, spread_ns, doubt_ns, .. } => {
                let (drivers, spread, doubt) =
                    (count(*drivers as u64), duration(*spread_ns), duration(*doubt_ns));
                match start {
                    Start::Together | Start::Staggered => {
                        phrase![
                            drivers,
                            " drivers started within ",
                            spread,
                            " of each other (clocks known to ",
                            doubt,
                            ")"
                        ]
                    }
                    Start::Slightly => phrase!["the ", drivers, " drivers started slightly apart: ", spread],
                    Start::Apart => {
                        phrase!["the ", drivers, " drivers did not start together: ", spread, " apart"]
                    }
                }
            }
            Drivers::Slow { slow, .. } => {
                let names: Vec<&str> = slow.iter().map(|one| one.driver.as_str()).collect();
                phrase![named(&names), " did less than half of what the others did"]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Drivers::Lost { missing, .. } if Self::measured_missing(missing) => {
                "The load was lighter than requested: nothing is known of its workers after that. What the driver may still have done is in no number of this report, though the storage saw it. Restart the driver, find out why it was lost, and run again."
            }
            Drivers::Lost { missing, .. } if missing.is_empty() => {
                "It had no part in any load at the time: nothing is missing."
            }
            Drivers::Lost { .. } => "No measurement is missing, but what prepares or cleans up may be incomplete. What the driver may still have done after its last report is in no number of this report.",
            Drivers::Start { start: Start::Together, .. } => "",
            Drivers::Start { start: Start::Staggered, .. } => {
                "In a ramp-up or an open loop workers start one after the other, so the spread says nothing."
            }
            Drivers::Start { .. } => "Until the last one started, the load was lighter than requested.",
            Drivers::Slow { .. } => {
                "The total is real, but drivers did not contribute equally: check its network, its processors and its path to the storage."
            }
        }
        .into()
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Drivers::Lost { missing, .. } => missing.iter().map(Missing::line).collect(),
            Drivers::Start { spread_ns, doubt_ns, first, last, limit_ns, limit_invalid_ns, .. } => {
                let line = |name: &str, (driver, at): &(String, u64)| {
                    format!("{name}: driver {driver}, {} after the start of the run", units::duration_ns(*at))
                };
                vec![
                    line("first", first),
                    line("last", last),
                    format!(
                        "{} apart; the clocks of these two are known to {} together; limits: {} and {} (INVALID)",
                        units::duration_ns(*spread_ns),
                        units::duration_ns(*doubt_ns),
                        units::duration_ns(*limit_ns),
                        units::duration_ns(*limit_invalid_ns)
                    ),
                ]
            }
            Drivers::Slow { slow, peers, median } => {
                let line = |one: &Slow| {
                    format!(
                        "{}: {:.1} operations per worker in the window; median of {peers} drivers {median:.1}: {}; failed: {}",
                        one.driver,
                        one.operations_per_worker,
                        units::percent(one.operations_per_worker / median),
                        units::count(one.failed)
                    )
                };
                slow.iter().take(NAMED_MOST).map(line).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn names_are_listed_shortly() {
        let list = |count: usize| named(&vec!["x"; count]);
        assert_eq!(list(1), "driver x");
        assert_eq!(list(2), "drivers x and x");
        assert_eq!(list(5), "drivers x, x, x, x and x");
        assert_eq!(list(9), "drivers x, x, x, x, x and 4 more");
    }
}
