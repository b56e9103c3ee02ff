//! What the load ran into: the resource that had no reserve while a stage measured, by what the nodes' observers saw.
//!
//! The method is Gregg's (Systems Performance, 2nd edition, 2.5.9): for every resource its utilisation, its saturation and its
//! errors. Rules are asked in the order of how sure they are: a hard limit that was reached (a quota, a throttle, a link),
//! then saturation, then shares of latency, which speak only where the others are silent. A bottleneck is no fault: findings
//! are warnings at most, but for a load generator that was the limit itself.

use super::Findings;
use crate::context::{SECOND_NS, sum};
use crate::words::limits::Limit;
use crate::{Finding, Severity, What};
use tidemark_measure::observation::{Kind, Node};
use tidemark_measure::record::{Driver, Run, Share, Stage, State, Work};

mod ceph;
mod disk;
mod generator;
mod processor;
mod resources;

/// Fewer samples than this in a window say nothing.
const SAMPLES_LEAST: usize = 3;

/// This share of a hard limit is the limit: what is metered comes in lumps, and never quite reaches it.
const AT_LIMIT: f64 = 0.9;

/// What a rule about limits is: what it sees on one node during one stage.
type Rule = fn(&View<'_>) -> Vec<Finding>;

/// Hard limits and saturation, the surest first.
const RULES: &[Rule] = &[
    generator::throttled,
    generator::full,
    disk::at_limit,
    processor::throttled,
    resources::link,
    processor::node,
    processor::one_thread,
    disk::busy,
    resources::memory,
    resources::losses,
    generator::near,
];

/// Shares of latency, where no resource is short.
const LAST_RULES: &[Rule] = &[ceph::flush, ceph::queue];

/// One node during the measured window of one stage.
struct View<'a> {
    run: &'a Run,
    stage: &'a Stage,
    node: &'a Node,
    from_ns: u64,
    to_ns: u64,
    /// Whether other rules say that the generator was the limit.
    generator_blamed: bool,
}

/// Says what limited each stage that measured.
pub(super) fn limits(run: &Run, out: &mut Findings) {
    for stage in run.stages.iter().filter(|stage| stage.state != State::Waiting) {
        let Some((from_ns, to_ns)) = window(stage) else { continue };
        let blames = |finding: &Finding| finding.invalidates && finding.what.is_of_generator();
        let generator_blamed = out.found.iter().any(|finding| finding.concerns(stage) && blames(finding));
        for node in &run.nodes {
            let view = View { run, stage, node, from_ns, to_ns, generator_blamed };
            let mut said: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&view)).collect();
            if said.is_empty() {
                said.extend(LAST_RULES.iter().flat_map(|rule| rule(&view)));
            }
            said.into_iter().for_each(|finding| out.say(finding));
        }
    }
}

/// The measured windows of a stage's works on the run's clock, from the first's beginning to the last's end.
fn window(stage: &Stage) -> Option<(u64, u64)> {
    // Where no storage is, the generator is the limit by design.
    let works = || stage.works.iter().filter(|work| work.kind.measures() && !work.simulated);
    let from = works().map(|work| work.started_ns.saturating_add(work.window_start_ns)).min()?;
    let to = works().map(|work| work.started_ns.saturating_add(work.window_end_ns)).max()?;
    // A sample is about the second before it: the first one in the window is half of it at least.
    Some((from.saturating_add(SECOND_NS / 2), to))
}

impl<'a> View<'a> {
    /// The mean of one thing's values in the window; `None` where it is not known or was zero throughout.
    fn mean(&self, kind: Kind, subject: &str, metric: &str) -> Option<f64> {
        let series = self.node.find(kind, subject, metric)?;
        self.enough().then(|| self.node.mean(series, self.from_ns, self.to_ns)).flatten()
    }

    /// The mean, or zero.
    fn level(&self, kind: Kind, subject: &str, metric: &str) -> f64 {
        self.mean(kind, subject, metric).unwrap_or(0.0)
    }

    /// The means of all things of a kind, in the order of the node's.
    fn means(&self, kind: Kind, metric: &str) -> Vec<(&'a str, f64)> {
        let subjects =
            self.node.series.iter().filter(|series| series.kind == kind && series.metric == metric);
        subjects
            .filter_map(|series| Some((series.subject.as_str(), self.mean(kind, &series.subject, metric)?)))
            .collect()
    }

    fn enough(&self) -> bool {
        let within = self.node.at_ns.iter().filter(|at| (self.from_ns..=self.to_ns).contains(at));
        within.count() >= SAMPLES_LEAST
    }

    /// Processors of the node.
    fn cores(&self) -> Option<f64> {
        let fact = self.node.facts.iter().find(|(name, _)| name == "processors");
        let told = fact.and_then(|(_, value)| value.parse::<f64>().ok());
        let own = || match self.run.drivers.is_empty() {
            true => self.node.generates.then(|| f64::from(self.run.provenance.host.cores)),
            false => self.drivers().map(|(_, driver)| f64::from(driver.host.cores)).reduce(f64::max),
        };
        told.or_else(own).filter(|cores| *cores >= 1.0 && cores.is_finite())
    }

    fn works(&self) -> impl Iterator<Item = &'a Work> {
        self.stage.works.iter().filter(|work| work.kind.measures())
    }

    /// The drivers on this node, with their numbers within the run: a node has the name of its host, and says which driver
    /// observed it.
    fn drivers(&self) -> impl Iterator<Item = (usize, &'a Driver)> {
        let node = self.node;
        let here = move |driver: &Driver| {
            driver.host.name == node.name || node.source.strip_prefix("driver ") == Some(&driver.name)
        };
        self.run.drivers.iter().enumerate().filter(move |(_, driver)| node.generates && here(driver))
    }

    /// The shares of the drivers on this node in works that measure something.
    fn shares(&self) -> impl Iterator<Item = (&'a Work, &'a Share)> {
        let (stage, here) = (self.stage, self.drivers().map(|(index, _)| index).collect::<Vec<_>>());
        let own = stage.shares.iter().filter(move |share| here.contains(&(share.driver as usize)));
        own.filter_map(|share| Some((stage.works.get(share.work as usize)?, share)))
            .filter(|(work, _)| work.kind.measures())
    }

    /// Cores that the generator's own threads on this node used: no server that runs in the same process is among them.
    fn generator_cores(&self) -> f64 {
        if !self.run.drivers.is_empty() {
            let of = |(work, share): (&Work, &Share)| {
                let busy = share.series.iter().map(|second| (second.index, second.busy));
                mean_in_window(work, busy) * f64::from(share.threads)
            };
            return self.shares().map(of).sum();
        }
        let of = |work: &Work| {
            let busy = work.series.iter().map(|second| (second.index, second.busy));
            mean_in_window(work, busy) * f64::from(work.threads)
        };
        self.works().map(of).sum()
    }

    fn generator_threads(&self) -> u64 {
        match self.run.drivers.is_empty() {
            true => sum(self.works().map(|work| u64::from(work.threads))),
            false => sum(self.shares().map(|(_, share)| u64::from(share.threads))),
        }
    }

    /// A finding about the stage, with the node's name where there are several.
    fn finding(&self, severity: Severity, limit: Limit) -> Finding {
        let node = (self.run.nodes.len() > 1).then(|| self.node.name.clone());
        Finding::about_stage(self.stage, severity, What::Limit { node, limit })
    }
}

/// The mean of what holds for single seconds of a work, over those that lie wholly in its window.
fn mean_in_window(work: &Work, seconds: impl Iterator<Item = (u32, f64)>) -> f64 {
    let within = seconds.filter(|(index, _)| {
        let from = u64::from(*index).saturating_mul(SECOND_NS);
        from >= work.window_start_ns && from.saturating_add(SECOND_NS) <= work.window_end_ns
    });
    let (total, count) = within.fold((0.0, 0u32), |(total, count), (_, value)| (total + value, count + 1));
    total / f64::from(count.max(1))
}

#[cfg(test)]
mod tests;
