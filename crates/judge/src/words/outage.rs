//! Times without success, operations that hung, and operations that ended late.

use super::Facts;
use super::failures::Latencies;
use super::phrase::{Phrase, count, duration, percent, phrase};
use serde::Serialize;
use tidemark_measure::units;

/// Operations in flight at the end of a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct InFlight {
    pub operations: u32,
    pub second: u32,
    pub oldest_ns: u64,
}

impl InFlight {
    fn text(&self) -> String {
        format!(
            "{} in flight at the end of second {}, the oldest for {}",
            units::count(u64::from(self.operations)),
            self.second,
            units::duration_ns(self.oldest_ns)
        )
    }
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum Outage {
    Outage {
        from_ns: u64,
        to_ns: u64,
        /// How much of it was in the window.
        inside_ns: u64,
        window_start_ns: u64,
        window_end_ns: u64,
        limit_ns: u64,
        times_typical: u64,
        least_ns: u64,
        median_ns: u64,
        ok: u64,
        failed_meanwhile: u64,
        failures: Option<Latencies>,
        stuck: Option<InFlight>,
        silent_seconds: u64,
        whole_seconds: u64,
    },
    OfOperation {
        operation: String,
        seconds: u64,
        from_second: Option<u32>,
        missing: f64,
        failed: u64,
    },
    Abandoned {
        operations: u64,
        slots: u64,
        interrupted: bool,
        many: bool,
        last: Option<InFlight>,
    },
    LateTail {
        operations: u64,
        tail_ns: u64,
        limit_ns: u64,
        times_typical: u64,
        least_ns: u64,
        median_ns: u64,
    },
}

impl Facts for Outage {
    fn rule(&self) -> &'static str {
        match self {
            Outage::Outage { .. } => "outage",
            Outage::OfOperation { .. } => "operation-outage",
            Outage::Abandoned { .. } => "abandoned",
            Outage::LateTail { .. } => "late-tail",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Outage::Outage { from_ns, to_ns, inside_ns: 0, .. } => {
                let length = duration(to_ns.saturating_sub(*from_ns));
                phrase!["no operation succeeded for ", length, ", outside the window"]
            }
            Outage::Outage { from_ns, to_ns, inside_ns, window_start_ns, window_end_ns, .. } => {
                let window = window_end_ns.saturating_sub(*window_start_ns).max(1) as f64;
                let length = duration(to_ns.saturating_sub(*from_ns));
                let part = percent(*inside_ns as f64 / window);
                phrase!["no operation succeeded for ", length, ", ", part, " of the window"]
            }
            Outage::OfOperation { operation, seconds, .. } => {
                let length = count(*seconds);
                phrase!["no \"", operation, "\" operation succeeded for ", length, " s while others did"]
            }
            Outage::Abandoned { operations, .. } => {
                phrase![count(*operations), " operations never finished and were abandoned"]
            }
            Outage::LateTail { operations, tail_ns, .. } => {
                let (operations, tail) = (count(*operations), duration(*tail_ns));
                phrase![operations, " operations finished after the window, the last one ", tail, " after it"]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Outage::Outage { .. } => {
                "Averages and percentiles over the window mix two states: storage working and storage gone. Look at the time series."
            }
            Outage::OfOperation { .. } => "",
            Outage::Abandoned { interrupted: true, .. } => {
                "The run was stopped by hand, so this says nothing about the storage."
            }
            Outage::Abandoned { many: true, .. } => {
                "At least half of all possible operations were waiting for a reply that never came: the storage hung when the work ended."
            }
            Outage::Abandoned { .. } => "They had all the time that the document allows after the end of the load.",
            Outage::LateTail { .. } => "The percentiles include them; throughput does not.",
        }
        .into()
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Outage::Outage {
                from_ns,
                to_ns,
                inside_ns,
                window_start_ns,
                window_end_ns,
                limit_ns,
                times_typical,
                least_ns,
                median_ns,
                ok,
                failed_meanwhile,
                failures,
                stuck,
                silent_seconds,
                whole_seconds,
            } => {
                let mut lines = vec![
                    format!(
                        "from {} to {} after the start of the work; the window was from {} to {}",
                        units::duration_ns(*from_ns),
                        units::duration_ns(*to_ns),
                        units::duration_ns(*window_start_ns),
                        units::duration_ns(*window_end_ns)
                    ),
                    format!(
                        "limit {}: {times_typical} x the larger of median response time ({}) and mean gap between successes, at least {}",
                        units::duration_ns(*limit_ns),
                        units::duration_ns(*median_ns),
                        units::duration_ns(*least_ns)
                    ),
                ];
                let window = window_end_ns.saturating_sub(*window_start_ns);
                let rate = |ns: u64| units::rate(*ok as f64 * 1e9 / ns as f64);
                let rest = window.checked_sub(*inside_ns).filter(|rest| *rest > 0 && *inside_ns > 0);
                lines.extend(rest.map(|rest| {
                    format!(
                        "{} successes / {} = {} over the window; / {} without the outage = {}",
                        units::count(*ok),
                        units::duration_ns(window),
                        rate(window),
                        units::duration_ns(rest),
                        rate(rest)
                    )
                }));
                lines.push(match failed_meanwhile {
                    0 => "no operation failed during the outage: they hung".into(),
                    failed => {
                        let timed = failures.map(|all| format!("; over the whole work, {}", all.text()));
                        let timed = timed.unwrap_or_default();
                        format!("{} operations failed during the outage{timed}", units::count(*failed))
                    }
                });
                lines.extend(stuck.map(|stuck| format!("operations that got no reply: {}", stuck.text())));
                if *whole_seconds > 0 {
                    lines.push(format!(
                        "{silent_seconds} of the window's {whole_seconds} whole seconds had no success"
                    ));
                }
                lines
            }
            Outage::OfOperation { from_second, missing, failed, .. } => {
                let from = from_second.map(|second| format!("from second {second} of the work"));
                from.into_iter()
                    .chain([
                        format!("at its usual rate, {missing:.0} would have succeeded in that time"),
                        format!("{} of them failed in that time", units::count(*failed)),
                    ])
                    .collect()
            }
            Outage::Abandoned { slots, last, .. } => {
                let last = last.map(|last| last.text());
                std::iter::once(format!("operations that may be in flight: {}", units::count(*slots)))
                    .chain(last)
                    .collect()
            }
            Outage::LateTail { limit_ns, times_typical, least_ns, median_ns, .. } => vec![format!(
                "limit: {} ({times_typical} x the median response time of {}, at least {})",
                units::duration_ns(*limit_ns),
                units::duration_ns(*median_ns),
                units::duration_ns(*least_ns)
            )],
        }
    }
}
