//! Whether runs, and cells of them, are within a service level.

use super::members::counts;
use super::parts::attempted;
use super::pooled::{Pooled, labels};
use crate::knee::Side;
use crate::statistics::{CONFIDENCE, estimate, moments, t_quantile};
use crate::words::conduct::Conduct;
use crate::words::failures::Failures;
use crate::words::generator::{Generator, Reach};
use crate::{Finding, What, judge};
use tidemark_measure::record::{Operation, Run, Stage, Work};
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
    /// What it was in each repeat that knows it, nanoseconds.
    values: Vec<f64>,
}

impl Check {
    /// How much of the limit is used.
    pub(super) fn use_of_limit(&self) -> f64 {
        self.value / self.limit.max(1.0)
    }

    /// The smallest and the largest of the repeats, nanoseconds.
    pub(super) fn range(&self) -> (f64, f64) {
        let ends = |(low, high): (f64, f64), value: &f64| (low.min(*value), high.max(*value));
        self.values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends)
    }

    /// On which side of its limit it is: with several repeats their mean with 95 % (Student's t on logarithms, one-sided), or
    /// nobody can tell.
    fn side(&self) -> Side {
        let logarithms: Vec<f64> =
            self.values.iter().map(|value| (value.max(1.0) / self.limit.max(1.0)).ln()).collect();
        let (mean, deviation) = moments(&logarithms);
        let count = logarithms.len() as f64;
        let half_width = t_quantile(CONFIDENCE, count - 1.0).map_or(0.0, |t| t * deviation / count.sqrt());
        match mean {
            mean if mean + half_width <= 0.0 => Side::Within,
            mean if mean - half_width > 0.0 => Side::Outside,
            _ => Side::Unclear,
        }
    }
}

/// On which side of a service level a run is: all that it measured. What it comes to is the storage's doing, or unclear.
pub fn side(run: &Run, level: &ServiceLevel) -> Side {
    if !counts(run, true) {
        return Side::Unclear;
    }
    let findings = judge(run).findings;
    let stages = attempted(run).into_iter().flat_map(|part| part.stages);
    let sides: Vec<Side> =
        stages.map(|stage| side_of(level, &[stage], &concerning(&findings, stage))).collect();
    if sides.is_empty() {
        return side_by_findings(&findings.iter().collect::<Vec<_>>()).unwrap_or(Side::Unclear);
    }
    let any = |wanted| sides.contains(&wanted).then_some(wanted);
    any(Side::Unclear).or(any(Side::Outside)).unwrap_or(Side::Within)
}

/// The findings that are about a stage, or about its whole run.
pub(super) fn concerning<'f>(findings: &'f [Finding], stage: &Stage) -> Vec<&'f Finding> {
    let of_run = |finding: &Finding| finding.stage.is_none() && finding.stages.is_empty();
    findings.iter().filter(|finding| of_run(finding) || finding.concerns(stage)).collect()
}

/// On which side of a service level one repeat is, of which these findings are.
pub(super) fn side_of(level: &ServiceLevel, stages: &[&Stage], findings: &[&Finding]) -> Side {
    if let Some(side) = side_by_findings(findings) {
        return side;
    }
    match (side_by_numbers(level, stages, findings), findings.iter().any(|finding| is_late(finding))) {
        // Response times begin when an operation is due: what is within although the generator was late is within.
        (Side::Outside, true) => Side::Unclear,
        (side, _) => side,
    }
}

/// The side of what is not what it seems: outside if the storage is to blame, unclear if anything else is.
fn side_by_findings(findings: &[&Finding]) -> Option<Side> {
    let mut faults = findings.iter().filter(|finding| finding.invalidates && !is_late(finding)).peekable();
    faults.peek()?;
    Some(if faults.all(|fault| is_overload(fault)) { Side::Outside } else { Side::Unclear })
}

fn side_by_numbers(level: &ServiceLevel, stages: &[&Stage], findings: &[&Finding]) -> Side {
    let (total, failed) = Pooled::new(stages, |_| true).counts();
    let Some(checks) = checks(level, &[stages.to_vec()]) else { return Side::Unclear };
    if !meets(level, &checks, total, failed) {
        return Side::Outside;
    }
    match stages.iter().flat_map(|stage| &stage.works).any(falls_behind) {
        // Workers were free: operations were sent late, and so they ended late.
        true if findings.iter().any(|finding| sends_late(finding)) => Side::Unclear,
        true => Side::Outside,
        false => Side::Within,
    }
}

/// Whether a finding says that the generator was so late in an open loop that response times are largely its own.
fn is_late(finding: &Finding) -> bool {
    finding.invalidates && matches!(&finding.what, What::Generator(Generator::SendLag { .. }))
}

/// Whether a finding says that the storage could not do what was asked of it: beyond the knee that is what is looked for.
pub(super) fn is_overload(finding: &Finding) -> bool {
    match &finding.what {
        What::Generator(Generator::OfferedRate { all_workers_waited, .. }) => *all_workers_waited,
        What::Failures(
            Failures::NothingSucceeded { .. } | Failures::NothingMeasured { .. } | Failures::Failed { .. },
        )
        | What::Conduct(Conduct::GivenUp { .. }) => true,
        _ => false,
    }
}

/// Whether the generator did not send all that was due although workers were free.
fn sends_late(finding: &Finding) -> bool {
    matches!(
        &finding.what,
        What::Generator(Generator::OfferedRate {
            reach: Reach::Nearly | Reach::Missed,
            all_workers_waited: false,
            ..
        })
    )
}

/// On which side a cell is that has these repeats: they have to agree, and their mean has to be as clear.
pub(super) fn side_of_cell(sides: &[Side], checks: &[Check]) -> Side {
    let known: Vec<Side> = sides.iter().copied().filter(|side| *side != Side::Unclear).collect();
    let Some(first) = known.first().filter(|first| known.iter().all(|side| side == *first)) else {
        return Side::Unclear;
    };
    let of: Vec<Side> = checks.iter().map(Check::side).collect();
    match first {
        Side::Within if of.contains(&Side::Unclear) => Side::Unclear,
        // Not by failures or by a queue that grew: by response times, of which none is clearly beyond its limit.
        Side::Outside if of.contains(&Side::Unclear) && !of.contains(&Side::Outside) => Side::Unclear,
        side => *side,
    }
}

/// Share of an open loop's rate that has to be done within the window: below it a queue grows, and response times are those
/// of a window that ended before it was long.
const DONE_LEAST: f64 = 0.98;

/// Whether an open loop did so much less than was asked of it that its queue grew.
fn falls_behind(work: &Work) -> bool {
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
    let values: Vec<f64> = repeats.iter().filter_map(|one| one.statistic_ns(limit.statistic)).collect();
    let value = mean(values.clone())?;
    let bytes = match limit.ns_per_byte {
        0.0 => 0.0,
        _ => mean(repeats.iter().filter_map(Pooled::bytes_each).collect())?,
    };
    Some(Check { name, value, limit: limit.at(bytes), values })
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
fn meets(level: &ServiceLevel, checks: &[Check], total: u64, failed: u64) -> bool {
    let share = if total > 0 { failed as f64 / total as f64 } else { 0.0 };
    share <= level.failures && checks.iter().all(|check| check.value <= check.limit)
}
