//! What failed, how often and why.

use super::Facts;
use super::phrase::{Phrase, count, percent, phrase};
use crate::rules::success_percent;
use serde::Serialize;
use tidemark_measure::fault::Fault;
use tidemark_measure::units;

/// How long failures took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Latencies {
    pub median_ns: u64,
    pub p99_ns: u64,
    pub longest_ns: u64,
}

impl Latencies {
    pub(super) fn text(&self) -> String {
        let [median, p99, most] = [self.median_ns, self.p99_ns, self.longest_ns].map(units::duration_ns);
        format!("failures took {median} (median), {p99} (p99), {most} (longest)")
    }
}

/// Some failures: by class, how long they took, and a few of them word for word.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Causes {
    pub classes: Vec<(Fault, u64)>,
    pub latencies: Option<Latencies>,
    pub examples: Vec<String>,
}

impl Causes {
    fn lines(&self) -> Vec<String> {
        let classes = self.classes.iter().map(|(fault, number)| {
            format!("{} x {}: {}", units::count(*number), fault.name(), fault.sentence())
        });
        let latencies = self.latencies.as_ref().map(Latencies::text);
        let examples = self.examples.iter().map(|text| format!("example: {text}"));
        classes.chain(latencies).chain(examples).collect()
    }
}

/// One operation's failures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct OperationFailures {
    pub operation: String,
    pub ok: u64,
    pub failed: u64,
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Failures {
    NothingMeasured {
        outside: u64,
        window_ns: u64,
        interrupted: bool,
    },
    NothingSucceeded {
        operation: Option<String>,
        attempts: u64,
        causes: Causes,
    },
    NoFailures {
        operations: u64,
    },
    Failed {
        failed: u64,
        total: u64,
        allowed_per_million: u32,
        more_than_allowed: bool,
        operations: Vec<OperationFailures>,
        causes: Causes,
    },
    WrongData {
        operations: u64,
        /// Those that are answers of queries, for which the engine that answers can be at fault as well.
        answers: u64,
        causes: Causes,
    },
    /// On the generator's own machine.
    Own {
        failed: u64,
        total: u64,
        examples: Vec<String>,
    },
    Throttled {
        throttled: u64,
        total: u64,
    },
    Retries {
        retries: u64,
        total: u64,
    },
}

impl Facts for Failures {
    fn rule(&self) -> &'static str {
        match self {
            Failures::NothingMeasured { .. } => "nothing-measured",
            Failures::NothingSucceeded { .. } => "could-not-work",
            Failures::NoFailures { .. } => "no-failures",
            Failures::Failed { .. } => "failures",
            Failures::WrongData { .. } => "wrong-data",
            Failures::Own { .. } => "own-failures",
            Failures::Throttled { .. } => "throttled",
            Failures::Retries { .. } => "retries",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Failures::NothingMeasured { outside: 0, .. } => phrase!["no operation was carried out"],
            Failures::NothingMeasured { .. } => phrase!["no operation fell into the measurement window"],
            Failures::NothingSucceeded { operation: None, attempts, .. } => {
                phrase!["none of its ", count(*attempts), " operations succeeded"]
            }
            Failures::NothingSucceeded { operation: Some(label), attempts, .. } => {
                phrase!["none of the ", count(*attempts), " \"", label, "\" operations succeeded"]
            }
            Failures::NoFailures { operations } => {
                phrase!["all ", count(*operations), " operations succeeded"]
            }
            Failures::Failed { failed, total, more_than_allowed, .. } => {
                let more = if *more_than_allowed { ", more than allowed" } else { "" };
                phrase![count(*failed), " of ", count(*total), " operations failed", more]
            }
            Failures::WrongData { operations: 1, answers: 1, .. } => {
                phrase!["the answer of a query was wrong once"]
            }
            Failures::WrongData { operations, answers, .. } if answers == operations => {
                phrase!["answers of queries were wrong ", count(*operations), " times"]
            }
            Failures::WrongData { operations: 1, .. } => phrase!["the storage returned wrong data once"],
            Failures::WrongData { operations, .. } => {
                phrase!["the storage returned wrong data ", count(*operations), " times"]
            }
            Failures::Own { failed, total, .. } => {
                let (failed, total) = (count(*failed), count(*total));
                phrase![failed, " of ", total, " operations failed on the load generator's own machine"]
            }
            Failures::Throttled { throttled, total } => {
                let share = *throttled as f64 / *total as f64;
                phrase!["the storage throttled the load: it rejected ", percent(share), " of the operations"]
            }
            Failures::Retries { retries, .. } => phrase![count(*retries), " retries"],
        }
    }

    fn detail(&self) -> String {
        match self {
            Failures::NothingSucceeded { operation: None, .. } => {
                "There is no throughput or latency to report. Later stages may lack what this one should have created."
            }
            Failures::WrongData { operations, answers, .. } if answers == operations => {
                "Either the data are not what they were when the known answer was given, or the engine that answered is at fault."
            }
            Failures::WrongData { .. } => {
                "Data was lost, mixed up or altered, or something else wrote to the same objects or volumes during the run."
            }
            Failures::Own { .. } => {
                "The storage never saw them, so the load was lighter than requested. Check the limit of open files (`ulimit -n`), local ports, and files to upload."
            }
            Failures::Throttled { .. } => {
                "This measures the limit that the service enforces, not what the storage can do."
            }
            Failures::Retries { .. } => "An operation's latency includes every attempt and every pause between attempts.",
            _ => "",
        }
        .into()
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Failures::NothingMeasured { interrupted: true, .. } | Failures::NoFailures { .. } => Vec::new(),
            Failures::NothingMeasured { outside, window_ns, .. } => vec![
                format!("operations that ended outside the window: {}", units::count(*outside)),
                format!("length of the window: {}", units::duration_ns(*window_ns)),
            ],
            Failures::NothingSucceeded { causes, .. } | Failures::WrongData { causes, .. } => causes.lines(),
            Failures::Failed { failed, total, allowed_per_million, operations, causes, .. } => {
                let per_million = *failed as f64 * 1e6 / *total as f64;
                let mut lines = vec![format!(
                    "{} / {} x 1 000 000 = {per_million:.1} per million; allowed: {allowed_per_million}",
                    units::count(*failed),
                    units::count(*total)
                )];
                lines.extend(operations.iter().map(|one| {
                    let total = one.ok.saturating_add(one.failed);
                    format!(
                        "{}: {} of {} failed, {} succeeded",
                        one.operation,
                        units::count(one.failed),
                        units::count(total),
                        success_percent(one.ok, total)
                    )
                }));
                lines.extend(causes.lines());
                lines
            }
            Failures::Own { failed, total, examples } => {
                let share = units::percent(*failed as f64 / (*total).max(1) as f64);
                let examples = examples.iter().map(|text| format!("example: {text}"));
                std::iter::once(format!("{share} of the operations")).chain(examples).collect()
            }
            Failures::Throttled { throttled, total } => vec![format!(
                "{} of {} operations ended with 503 SlowDown, 429 or similar",
                units::count(*throttled),
                units::count(*total)
            )],
            Failures::Retries { retries, total } => vec![format!(
                "{} retries / {} operations = {}",
                units::count(*retries),
                units::count(*total),
                units::percent(*retries as f64 / (*total).max(1) as f64)
            )],
        }
    }
}
