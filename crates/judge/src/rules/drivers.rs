//! Whether the drivers of a run put the load on together: all of them, at the same time, each its part.

use super::Findings;
use crate::context::{SECOND_NS, WorkContext, measures, stage_label};
use crate::{Finding, Severity};
use tidemark_measure::record::{Driver, Run, Share, Stage, Work};
use tidemark_measure::units;

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
const SLOW: f64 = 0.5;

/// Operations of the median driver: with fewer, chance alone makes such differences.
const SLOW_SAMPLES: u64 = 100;

/// Names that are listed, at most.
const NAMED_MOST: usize = 5;

/// `driver d1`, `drivers d1 and d2`, `drivers d1, d2, d3, d4, d5 and 3 more`.
pub(super) fn named<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let shown = all.iter().take(NAMED_MOST).copied().collect::<Vec<_>>();
    match (shown.as_slice(), all.len().saturating_sub(NAMED_MOST)) {
        ([one], _) => format!("driver {one}"),
        ([first @ .., last], 0) => format!("drivers {} and {last}", first.join(", ")),
        (some, more) => format!("drivers {} and {more} more", some.join(", ")),
    }
}

fn name(run: &Run, driver: u32) -> String {
    run.drivers
        .get(driver as usize)
        .map_or_else(|| format!("number {}", driver + 1), |driver| driver.name.clone())
}

/// What was missing of a work because a driver was lost.
struct Missing<'a> {
    stage: &'a Stage,
    work: &'a Work,
    share: &'a Share,
    /// From when on nothing of it is known, since the work's start.
    from_ns: u64,
}

impl<'a> Missing<'a> {
    fn of(stage: &'a Stage, share: &'a Share) -> Option<Self> {
        let work = stage.works.get(share.work as usize).filter(|_| !share.complete && share.workers > 0)?;
        let last = share.series.iter().map(|second| u64::from(second.index) + 1).max();
        Some(Self { stage, work, share, from_ns: last.unwrap_or(0).saturating_mul(SECOND_NS) })
    }

    /// How much of the window, nanoseconds.
    fn length_ns(&self) -> u64 {
        self.work.window_end_ns.saturating_sub(self.from_ns.max(self.work.window_start_ns))
    }

    /// Whether measured load was missing.
    fn measured(&self) -> bool {
        measures(self.work) && self.length_ns() > 0
    }

    fn line(&self) -> String {
        let (first, last) = (
            u64::from(self.share.first_worker) + 1,
            self.share.first_worker.saturating_add(self.share.workers),
        );
        let workers = match self.share.workers {
            1 => format!("worker {first}"),
            _ => format!("workers {first} to {last}"),
        };
        let window = self.work.window_end_ns.saturating_sub(self.work.window_start_ns);
        let told = format!(
            "{}, work \"{}\": {workers} of {} were missing from {} on",
            stage_label(self.stage),
            self.work.name,
            self.work.workers,
            units::duration_ns(self.from_ns)
        );
        match (measures(self.work), window) {
            (false, _) | (_, 0) => told,
            (true, window) => format!(
                "{told}, for {} of the window's {} = {}",
                units::duration_ns(self.length_ns()),
                units::duration_ns(window),
                units::percent(self.length_ns() as f64 / window as f64)
            ),
        }
    }
}

/// Drivers that were lost, and what was missing without them.
///
/// A lost driver's part of a measured work is missing from its last second on: the load was not the one asked for.
pub(super) fn lost(run: &Run, out: &mut Findings) {
    for (index, driver) in run.drivers.iter().enumerate() {
        let parts = |stage: &'_ Stage| -> Vec<usize> {
            let own = |(_, share): &(usize, &Share)| share.driver as usize == index;
            stage.shares.iter().enumerate().filter(own).map(|(at, _)| at).collect()
        };
        let missing: Vec<Missing<'_>> = run
            .stages
            .iter()
            .flat_map(|stage| parts(stage).into_iter().filter_map(|at| Missing::of(stage, &stage.shares[at])))
            .collect();
        if driver.lost.is_some() || !missing.is_empty() {
            out.say(loss(driver, &missing));
        }
    }
}

fn loss(driver: &Driver, missing: &[Missing<'_>]) -> Finding {
    let title = match &driver.lost {
        Some(lost) => {
            let at = units::duration_ns(lost.at_ns);
            format!(
                "driver {} was lost {at} into the run: {}",
                driver.name,
                lost.reason.trim_end_matches('.')
            )
        }
        None => format!("not all that driver {} did arrived", driver.name),
    };
    let measured = missing.iter().any(Missing::measured);
    let (severity, detail) = match (measured, missing.is_empty()) {
        (true, _) => (
            Severity::Critical,
            "The load was not the one asked for: its workers did nothing that is known from then on. Start the driver \
             anew, see why it was lost, and run again.",
        ),
        (false, false) => (
            Severity::Warning,
            "Nothing of what was measured is missing; what prepares or cleans up may not be complete.",
        ),
        (false, true) => (Severity::Warning, "It had no part in any load at that time: nothing is missing."),
    };
    let mut finding = Finding::about_run(severity, "driver-lost", title).detail(detail);
    // Of several stages it is the run's.
    let mut stages: Vec<String> = missing.iter().map(|one| stage_label(one.stage)).collect();
    stages.dedup();
    if let [stage] = stages.as_slice() {
        finding.stage = Some(stage.clone());
    }
    finding.evidences(missing.iter().map(Missing::line)).invalidating(measured)
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
    let (count, apart) = (first.len(), units::duration_ns(spread));
    let line = |name: &str, at: u64, share: &Share| {
        format!(
            "{name}: driver {}, {} after the run's start",
            self::name(context.run, share.driver),
            units::duration_ns(at)
        )
    };
    let evidence = [
        line("first", *earliest, one),
        line("last", *latest, other),
        format!(
            "{apart} apart; the clocks of these two are known to {} together; limits: {} and {} (INVALID)",
            units::duration_ns(doubt),
            units::duration_ns(SKEW_LEAST_NS),
            units::duration_ns(most)
        ),
    ];
    let told =
        |severity, title: String| context.finding(severity, "driver-skew", title).evidences(evidence.clone());
    let known = format!(
        "{count} drivers began within {apart} of each other (clocks known to {})",
        units::duration_ns(doubt)
    );
    let together = context.work.window_start_ns == 0 && context.work.offered_rate.is_none();
    let detail = "Until the last one began the load was lighter than the one asked for.";
    match () {
        () if certain <= SKEW_LEAST_NS => out.say(told(Severity::Good, known)),
        () if !together => {
            let why =
                "A ramp-up and an open loop let workers begin one after the other: the spread says nothing.";
            out.say(told(Severity::Note, known).detail(why));
        }
        () if certain > most => {
            let title = format!(
                "the {count} drivers did not begin together: {apart} lie between the first and the last"
            );
            out.invalidate(context, told(Severity::Critical, title).detail(detail));
        }
        () => {
            let title = format!("the {count} drivers did not quite begin together: {apart} apart");
            out.say(told(Severity::Warning, title).detail(detail));
        }
    }
}

/// Drivers that did much less than their peers with each of their workers.
pub(super) fn slow(context: &WorkContext<'_>, out: &mut Findings) {
    if !context.measures() {
        return;
    }
    // Of those that were lost something is missing, which is another matter.
    let mut all: Vec<(f64, u64, &Share)> = context
        .shares()
        .filter(|share| share.complete && share.workers > 0)
        .map(|share| {
            let done = context.seconds_of(share).map(|second| second.ok).fold(0, u64::saturating_add);
            (done as f64 / f64::from(share.workers), done, share)
        })
        .collect();
    if all.len() < PEERS_LEAST {
        return;
    }
    all.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let (low, high) = (&all[(all.len() - 1) / 2], &all[all.len() / 2]);
    let (median, samples) = (f64::midpoint(low.0, high.0), low.1);
    let found: Vec<_> = all.iter().filter(|(rate, ..)| *rate < SLOW * median).collect();
    if found.is_empty() || samples < SLOW_SAMPLES {
        return;
    }
    let names: Vec<String> = found.iter().map(|(.., share)| name(context.run, share.driver)).collect();
    let title =
        format!("{} did less than half of what the others did", named(names.iter().map(String::as_str)));
    let line = |(rate, _, share): &&(f64, u64, &Share)| {
        format!(
            "{}: {rate:.1} operations per worker in the window, the median of {} drivers {median:.1} = {}; failed: {}",
            name(context.run, share.driver),
            all.len(),
            units::percent(rate / median),
            units::count(share.failed)
        )
    };
    let evidence: Vec<String> = found.iter().take(NAMED_MOST).map(line).collect();
    let finding = context
        .finding(Severity::Warning, "driver-slow", title)
        .detail("The total is real, but it is not that of equal drivers: look at its network, its processors, and its way to the storage.");
    out.say(finding.evidences(evidence));
}
