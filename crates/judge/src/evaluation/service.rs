//! Whether a cell is within its service level.

use super::cells::is_unreached;
use super::parts::parts;
use super::pooled::{Pooled, labels};
use crate::judge;
use crate::statistics::estimate;
use tidemark_measure::record::{Operation, Run, Stage, State, Work};
use tidemark_measure::service_level::{Limit, ServiceLevel, Statistic};

/// One condition of a service level at one cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Check {
    /// The number: `p95`, or `read p95` where there are several operations.
    pub(super) name: String,
    /// What it was in the mean of the repeats, nanoseconds.
    pub(super) value: f64,
    /// What it may be, nanoseconds.
    pub(super) limit: f64,
}

impl Check {
    /// How much of the limit is used.
    pub(super) fn use_of_limit(&self) -> f64 {
        self.value / self.limit.max(1.0)
    }
}

/// Whether a single run is within a service level: all that it measured, and an open loop's rate reached. A run in which
/// nothing succeeded is outside. `None` when it cannot be told: the run was not completed, or its record lacks a statistic
/// or the size of an operation.
pub fn is_within(run: &Run, level: &ServiceLevel) -> Option<bool> {
    if run.state != State::Completed {
        return None;
    }
    let parts = parts(run);
    let mut works = run.stages.iter().flat_map(|stage| &stage.works);
    if parts.is_empty() || judge(run).findings.iter().any(is_unreached) || works.any(falls_behind) {
        return Some(false);
    }
    parts.into_iter().try_fold(true, |within, part| {
        let (total, failed) = Pooled::new(&part.stages, |_| true).counts();
        let checks = checks(level, &[part.stages])?;
        Some(within && meets(level, &checks, total, failed))
    })
}

/// Share of an open loop's rate that has to be done within the window: below it a queue grows, and response times are those
/// of a window that ended before it was long.
const DONE_LEAST: f64 = 0.98;

/// Whether an open loop did so much less than was asked of it that its queue grew.
pub(super) fn falls_behind(work: &Work) -> bool {
    let done: f64 = work.operations.iter().map(|operation| operation.throughput(work.window_seconds())).sum();
    let failed: u64 = work.operations.iter().map(|operation| operation.tally.failed()).sum();
    let done = done + failed as f64 / work.window_seconds();
    work.offered_rate.is_some_and(|offered| done < DONE_LEAST * offered)
}

/// Every condition on response times at a cell, whose repeats are some stages each; `None` when one of them cannot be
/// told, because the record lacks the statistic or the size of an operation.
pub(super) fn checks(level: &ServiceLevel, repeats: &[Vec<&Stage>]) -> Option<Vec<Check>> {
    let labels = labels(repeats.iter().flatten().copied());
    let mut checks = Vec::new();
    for limit in &level.limits {
        for label in &labels {
            let wanted = |operation: &Operation| operation.label == **label && concerns(limit, operation);
            let all: Vec<_> = repeats.iter().map(|stages| Pooled::new(stages, wanted)).collect();
            let all: Vec<_> = all.into_iter().filter(|together| !together.is_empty()).collect();
            if !all.is_empty() {
                let name = match labels.len() {
                    1 => statistic_name(limit.statistic),
                    _ => format!("{label} {}", statistic_name(limit.statistic)),
                };
                checks.push(check(limit, name, &all)?);
            }
        }
    }
    (!checks.is_empty() || level.limits.is_empty()).then_some(checks)
}

fn concerns(limit: &Limit, operation: &Operation) -> bool {
    let names = [operation.label.as_str(), &operation.kind, operation.class.name()];
    limit.operation.is_empty() || names.contains(&limit.operation.as_str())
}

fn check(limit: &Limit, name: String, repeats: &[Pooled<'_>]) -> Option<Check> {
    let mean = |values: Vec<f64>| (!values.is_empty()).then(|| estimate(values).mean);
    let value = mean(repeats.iter().filter_map(|one| one.statistic_ns(limit.statistic)).collect())?;
    let bytes = match limit.ns_per_byte {
        0.0 => 0.0,
        _ => mean(repeats.iter().filter_map(Pooled::bytes_each).collect())?,
    };
    Some(Check { name, value, limit: limit.at(bytes) })
}

/// `p95`, `mean`, `largest`.
fn statistic_name(statistic: Statistic) -> String {
    match statistic {
        Statistic::Mean => "mean".into(),
        Statistic::Quantile(fraction) if fraction >= 1.0 => "largest".into(),
        // Rounded: 0.999 x 100 is 99.900000000000006.
        Statistic::Quantile(fraction) => format!("p{}", (fraction * 1e6).round() / 1e4),
    }
}

/// Whether all conditions hold, the share of failures among them.
pub(super) fn meets(level: &ServiceLevel, checks: &[Check], total: u64, failed: u64) -> bool {
    let share = if total > 0 { failed as f64 / total as f64 } else { 0.0 };
    share <= level.failures && checks.iter().all(|check| check.value <= check.limit)
}
