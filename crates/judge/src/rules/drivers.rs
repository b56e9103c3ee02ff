//! Whether the drivers of a run put the load on together: all of them, at the same time, each its part.

use super::Findings;
use crate::context::{SECOND_NS, WorkContext, stage_label};
use crate::words::drivers::{Drivers as Found, Missing, Slow, Start};
use crate::{Finding, Severity};
use tidemark_measure::record::{Driver, EndpointKind, Run, Share, Stage, State};

#[cfg(test)]
mod tests;

/// First operations that lie this far apart, beyond what the clocks may be wrong by, are no longer at the same time: on one
/// host the drivers of a stage begin within it.
const SKEW_LEAST_NS: u64 = 5_000_000;

/// From this share of the window on, the load was a lighter one for long enough to show in the throughput.
const SKEW_SHARE: f64 = 0.01;

/// However long the window, this is no simultaneous start.
const SKEW_MOST_NS: u64 = SECOND_NS;

/// Fewer drivers than this have no median to be measured by.
const PEERS_LEAST: usize = 3;

/// A driver below this share of its peers' median does another load than they do.
const SLOW_SHARE: f64 = 0.5;

/// Operations of the median driver: with fewer, chance alone makes such differences.
const SLOW_SAMPLES: u64 = 100;

fn name(run: &Run, driver: u32) -> String {
    run.drivers
        .get(driver as usize)
        .map_or_else(|| format!("number {}", driver + 1), |driver| driver.name.clone())
}

/// What was missing of a work because a driver was lost with its share; nothing if it was not.
fn missing(stage: &Stage, share: &Share, driver: &Driver) -> Option<Missing> {
    // Where the run's own process died no driver is to blame.
    if stage.state == State::Interrupted && driver.lost.is_none() {
        return None;
    }
    let work = stage.works.get(share.work as usize).filter(|_| !share.complete && share.workers > 0)?;
    let last = share.series.iter().map(|second| u64::from(second.index) + 1).max();
    let from_ns = last.unwrap_or(0).saturating_mul(SECOND_NS);
    let window = work.window_end_ns.saturating_sub(work.window_start_ns);
    let length = work.window_end_ns.saturating_sub(from_ns.max(work.window_start_ns));
    Some(Missing {
        stage: stage_label(stage),
        work: work.name.clone(),
        first_worker: u64::from(share.first_worker) + 1,
        last_worker: share.first_worker.saturating_add(share.workers).into(),
        of_workers: work.workers,
        from_ns,
        of_window_ns: (work.kind.measures() && window > 0).then_some((length, window)),
    })
}

/// Drivers that were lost, and what was missing without them.
///
/// A lost driver's part of a measured work is missing from its last second on: the load was not the one asked for.
pub(super) fn lost(run: &Run, out: &mut Findings) {
    for (index, driver) in run.drivers.iter().enumerate() {
        let own = |stage: &'_ Stage| -> Vec<Missing> {
            let shares = stage.shares.iter().filter(|share| share.driver as usize == index);
            shares.filter_map(|share| missing(stage, share, driver)).collect()
        };
        let missing: Vec<Missing> = run.stages.iter().flat_map(own).collect();
        if driver.lost.is_some() || !missing.is_empty() {
            out.add(loss(driver, missing));
        }
    }
}

fn loss(driver: &Driver, missing: Vec<Missing>) -> Finding {
    let measured = Found::measured_missing(&missing);
    let severity = if measured { Severity::Critical } else { Severity::Warning };
    // Of several stages it is the run's.
    let mut stages: Vec<String> = missing.iter().map(|one| one.stage.clone()).collect();
    stages.dedup();
    let what = Found::Lost {
        driver: driver.name.clone(),
        lost_ns: driver.lost.as_ref().map(|lost| lost.at_ns),
        reason: driver.lost.as_ref().map(|lost| lost.reason.clone()).unwrap_or_default(),
        missing,
    };
    let stage = if stages.len() == 1 { stages.pop() } else { None };
    Finding { stage, ..Finding::about_run(severity, what) }.invalidating(measured)
}

/// How far apart the drivers' first operations were, on the controller's clock.
///
/// Only drivers whose first worker is due at once can be compared: in a ramp-up and in an open loop workers begin one after
/// the other. The record does not tell a ramp-up from a warm-up; where there is time before the window, or a rate, a large
/// spread is told and not judged.
pub(super) fn skew(context: &WorkContext<'_>, out: &mut Findings) {
    let mut first: Vec<(u64, &Share)> =
        context.shares().filter_map(|share| Some((share.first_sent_ns?, share))).collect();
    first.sort_by_key(|(at, _)| *at);
    let (Some((earliest, one)), Some((latest, other))) = (first.first(), first.last()) else { return };
    if first.len() < 2 || !context.measures() {
        return;
    }
    let error = |share: &Share| {
        context.run.drivers.get(share.driver as usize).map_or(0, |driver| driver.clock_error_ns)
    };
    let (spread, doubt) = (latest - earliest, error(one).saturating_add(error(other)));
    let certain = spread.saturating_sub(doubt);
    let most = ((context.window_ns() as f64 * SKEW_SHARE) as u64).clamp(SKEW_LEAST_NS, SKEW_MOST_NS);
    let together = context.work.window_start_ns == 0 && context.work.offered_rate.is_none();
    let (start, severity) = match () {
        () if certain <= SKEW_LEAST_NS => (Start::Together, Severity::Good),
        () if !together => (Start::Staggered, Severity::Note),
        () if certain > most => (Start::Apart, Severity::Critical),
        () => (Start::Slightly, Severity::Warning),
    };
    let what = Found::Start {
        start,
        drivers: first.len(),
        spread_ns: spread,
        doubt_ns: doubt,
        first: (name(context.run, one.driver), *earliest),
        last: (name(context.run, other.driver), *latest),
        limit_ns: SKEW_LEAST_NS,
        limit_invalid_ns: most,
    };
    let finding = context.finding(severity, what);
    if start == Start::Apart { out.invalidate(context, finding) } else { out.add(finding) }
}

/// Drivers that did much less than their peers with each of their workers.
pub(super) fn slow(context: &WorkContext<'_>, out: &mut Findings) {
    if !context.measures() {
        return;
    }
    // Those with volumes of their own are a storage each: of two that differ so much, the slow one is worth a look.
    let apart = context.work.endpoints.iter().any(|one| one.kind == EndpointKind::Driver);
    let least = if apart { 2 } else { PEERS_LEAST };
    // Of those that were lost something is missing, which is another matter.
    let mut all: Vec<(f64, u64, &Share)> = context
        .shares()
        .filter(|share| share.complete && share.workers > 0)
        .map(|share| {
            let done = context.seconds_of(share).map(|second| second.ok).fold(0, u64::saturating_add);
            (done as f64 / f64::from(share.workers), done, share)
        })
        .collect();
    if all.len() < least {
        return;
    }
    all.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let (low, high) = (&all[(all.len() - 1) / 2], &all[all.len() / 2]);
    let (median, samples) = (f64::midpoint(low.0, high.0), high.1);
    let found: Vec<_> = all.iter().filter(|(rate, ..)| *rate < SLOW_SHARE * median).collect();
    if found.is_empty() || samples < SLOW_SAMPLES {
        return;
    }
    let slow = found.iter().map(|(rate, _, share)| Slow {
        driver: name(context.run, share.driver),
        operations_per_worker: *rate,
        failed: share.failed,
    });
    let what = Found::Slow { slow: slow.collect(), peers: all.len(), median };
    out.add(context.finding(Severity::Warning, what));
}
