//! What the load ran into: the resource that had no reserve while a stage measured, by what the nodes' observers saw.
//!
//! The method is Gregg's (Systems Performance, 2nd edition, 2.5.9): for every resource its utilisation, its saturation and its
//! errors. Rules are asked in the order of how sure they are: a hard limit that was reached (a quota, a throttle, a link),
//! then saturation, then shares of latency, which speak only where the others are silent. A bottleneck is no fault: findings
//! are warnings at most, but for a load generator that was the limit itself.
//!
//! A busy resource is the limit only if it was the load, or an observed process, that used it up ([`Standing`]): a rule that
//! finds one also says how much of its use that was. That more load brings no more can be seen only where several levels of
//! load were measured: in a sweep here, in an evaluation there.

use super::Findings;
use crate::context::{SECOND_NS, is_machine, sum};
use crate::words::limits::Limit;
use crate::words::standing::{Limited, Standing};
use crate::{Finding, Severity, What};
use tidemark_measure::kind::OperationClass;
use tidemark_measure::observation::{Kind, Node, OWN, of_driver};
use tidemark_measure::record::{Driver, Run, Share, Stage, State, Work};

mod ceph;
mod disk;
pub(super) mod generator;
mod latency;
mod levels;
mod memory;
mod network;
mod processor;

/// Fewer samples than this in a window say nothing.
pub(super) const SAMPLES_LEAST: usize = 3;

/// This share of a hard limit is the limit: what is metered comes in lumps, and never quite reaches it.
const AT_LIMIT: f64 = 0.9;

/// The load caused a use of which it had this share or more.
const MOSTLY: f64 = 0.5;

/// What a rule about limits is: what it sees on one node during one stage.
type Rule = fn(&View<'_>) -> Vec<Finding>;

/// Hard limits and saturation, the surest first.
const RULES: &[Rule] = &[
    generator::throttled,
    generator::full,
    disk::at_limit,
    processor::throttled,
    memory::group,
    network::shaper,
    network::link,
    processor::node,
    processor::one_thread,
    disk::busy,
    memory::node,
    network::losses,
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
    /// Whether other rules say that the generator had little reserve, or had to wait for processors.
    generator_pressed: bool,
    /// Whether other rules say that an open loop's rate was not reached.
    rate_missed: bool,
}

/// A process that puts load on.
struct Process {
    /// How the node's observer names it.
    subject: String,
    /// Cores that its generator threads used: no server that runs in the same process is among them.
    cores: f64,
    /// Its generator threads.
    threads: u64,
}

/// Says what limited each stage that measured.
pub(super) fn limits(run: &Run, out: &mut Findings) {
    let mut said = Vec::new();
    for stage in run.stages.iter().filter(|stage| stage.state != State::Waiting) {
        let Some((from_ns, to_ns)) = window(stage) else { continue };
        let about = |blames: fn(&What) -> bool| {
            let here = |finding: &&Finding| finding.invalidates && finding.concerns(stage);
            out.found.iter().filter(here).any(|finding| blames(&finding.what))
        };
        let (generator_blamed, rate_missed) = (about(What::is_of_generator), about(What::is_offered_rate));
        let mut here = out.found.iter().filter(|finding| finding.concerns(stage));
        let generator_pressed = here.any(|finding| finding.what.is_of_little_reserve());
        let view = |node| View {
            run,
            stage,
            node,
            from_ns,
            to_ns,
            generator_blamed,
            generator_pressed,
            rate_missed,
        };
        let views: Vec<View<'_>> = run.nodes.iter().map(view).collect();
        said.extend(of_stage(&views));
    }
    levels::settle(run, &mut said);
    said.into_iter().for_each(|finding| out.add(finding));
}

/// What the nodes show of one stage.
fn of_stage(views: &[View<'_>]) -> Vec<Finding> {
    let mut all = Vec::new();
    for view in views {
        let said: Vec<Finding> = RULES.iter().flat_map(|rule| rule(view)).collect();
        let last = if said.is_empty() { LAST_RULES } else { &[] };
        all.extend(said.into_iter().chain(last.iter().flat_map(|rule| rule(view))));
    }
    let machines: Vec<&View<'_>> = views.iter().filter(|view| is_machine(view.node)).collect();
    // A node without a sample, whose observer could not be asked, says nothing of how long there has been a look at the others.
    let (seen, unseen): (Vec<_>, Vec<_>) = machines.into_iter().partition(|view| !view.node.at_ns.is_empty());
    all.extend(latency::own(if seen.is_empty() { &unseen } else { &seen }, &all));
    all
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

    /// How busy the processors are of the node, or of the busiest where it has none.
    fn processors_busy(&self) -> f64 {
        let nodes =
            self.run.nodes.iter().filter(|node| !is_machine(self.node) || std::ptr::eq(*node, self.node));
        nodes.map(|node| View { node, ..*self }.level(Kind::Cpu, "all", "busy")).fold(0.0, f64::max)
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
        self.samples() >= SAMPLES_LEAST
    }

    /// Samples in the window.
    fn samples(&self) -> usize {
        self.node.at_ns.iter().filter(|at| (self.from_ns..=self.to_ns).contains(at)).count()
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

    /// Bytes per second that the load wrote, or read, in the window.
    fn load_bytes(&self, writes: bool) -> f64 {
        let of = |work: &Work| -> f64 {
            let is_read = |class: &OperationClass| *class == OperationClass::Read;
            let way = work.operations.iter().filter(|operation| is_read(&operation.class) != writes);
            way.map(|operation| operation.bandwidth(work.window_seconds())).sum()
        };
        self.works().map(of).sum()
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

    /// The processes that put load on from this node. Of a node that generates none there is none.
    fn generators(&self) -> Vec<Process> {
        if self.run.drivers.is_empty() {
            let busy = |work: &Work| {
                let busy = work.series.iter().map(|second| (second.index, second.busy));
                mean_in_window(work, busy) * f64::from(work.threads)
            };
            let own = Process {
                subject: OWN.into(),
                cores: self.works().map(busy).sum(),
                threads: sum(self.works().map(|work| u64::from(work.threads))),
            };
            return self.node.generates.then_some(own).into_iter().collect();
        }
        let process = |(index, driver): (usize, &Driver)| {
            let shares = || {
                let own = self.stage.shares.iter().filter(move |share| share.driver as usize == index);
                own.filter_map(|share| Some((self.stage.works.get(share.work as usize)?, share)))
                    .filter(|(work, _)| work.kind.measures())
            };
            let busy = |(work, share): (&Work, &Share)| {
                let busy = share.series.iter().map(|second| (second.index, second.busy));
                mean_in_window(work, busy) * f64::from(share.threads)
            };
            Process {
                subject: of_driver(&driver.name),
                cores: shares().map(busy).sum(),
                threads: sum(shares().map(|(_, share)| u64::from(share.threads))),
            }
        };
        self.drivers().map(process).collect()
    }

    /// Whether a process of this name puts load on: other rules speak of it.
    fn is_generator(&self, subject: &str) -> bool {
        // An observer that runs elsewhere is no part of the system under test either.
        subject == OWN || self.generators().iter().any(|generator| generator.subject == subject)
    }

    /// What is said of a resource of whose use this share was the load's and the observed processes'; `None` where that
    /// is not known.
    fn standing(&self, share: Option<f64>) -> Standing {
        match share {
            Some(own) if own < MOSTLY => Standing::Others { share: 1.0 - own.max(0.0) },
            Some(_) if self.rate_missed => Standing::RateMissed,
            Some(_) => Standing::Likely,
            None => Standing::Unknown,
        }
    }

    /// That a resource had no reserve: a note where it is not called the limit.
    fn busy(&self, severity: Severity, limit: Limit, standing: Standing) -> Finding {
        let severity = if standing.is_limit() { severity } else { Severity::Note };
        self.about(severity, limit, Some(standing))
    }

    /// That something has the load or an observed process as its cause.
    fn caused(&self, limit: Limit) -> Finding {
        self.busy(Severity::Warning, limit, self.standing(Some(1.0)))
    }

    /// A finding without a doubt.
    fn finding(&self, severity: Severity, limit: Limit) -> Finding {
        self.about(severity, limit, None)
    }

    /// A finding about the stage, with the node's name where there are several.
    fn about(&self, severity: Severity, limit: Limit, standing: Option<Standing>) -> Finding {
        let node = (self.run.nodes.len() > 1).then(|| self.node.name.clone());
        Finding::about_stage(self.stage, severity, Limited { node, standing, limit })
    }
}

/// The mean of what holds for single seconds of a work, over those that lie wholly in its window.
fn mean_in_window(work: &Work, seconds: impl Iterator<Item = (u32, f64)>) -> f64 {
    let within = seconds.filter(|(index, _)| work.measures_second(*index));
    let (total, count) = within.fold((0.0, 0u32), |(total, count), (_, value)| (total + value, count + 1));
    total / f64::from(count.max(1))
}

#[cfg(test)]
mod tests;
