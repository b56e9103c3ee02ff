//! How busy the generator's threads were in the window: those of the process that kept the record, or of each driver.

use super::bottleneck::SAMPLES_LEAST;
use super::bottleneck::generator::WATCHED;
use crate::context::{SECOND_NS, WorkContext};
use crate::words::generator::{Busy, Processors};
use tidemark_measure::observation::{Kind, Node, OWN, of_driver};
use tidemark_measure::record::{Driver, Share};

/// A generator thread that is on a processor for this share of a second has no reserve: operations wait for it.
pub(super) const BUSY_FULL: f64 = 0.95;

/// A thread this busy is close to it.
pub(super) const BUSY_HIGH: f64 = 0.90;

/// What holds for more than this share of the window's seconds is called sustained.
const SUSTAINED: f64 = 0.5;

/// A generator whose threads are ready and without a processor for this share of the time measures that wait, too: a tenth more
/// or less is a different result.
const PRESSED: f64 = 0.1;

/// With less of its processors left than this a machine has none to spare; it counts where the threads' own wait is not known.
const NONE_LEFT: f64 = 0.95;

/// The threads of one process.
pub(super) struct Use<'a> {
    /// The driver; `None`: the process that kept the record.
    driver: Option<&'a str>,
    /// Of each second of the window, the share of what the threads could be on a processor.
    seconds: Vec<f64>,
    /// Threads of all works of the stage.
    threads: u32,
    cores: u32,
    processors: Option<Processors>,
}

impl<'a> Use<'a> {
    /// The threads of every process that put the work's load on; none where that is not known. A driver is looked at by
    /// itself: among several, one without reserve would be hidden by the mean.
    pub(super) fn all(context: &WorkContext<'a>) -> Vec<Self> {
        let shares = || context.shares().filter(|share| share.workers > 0);
        if shares().next().is_some() {
            return shares().filter_map(|share| Self::of_share(context, share)).collect();
        }
        let threads = context.stage.works.iter().fold(0, |sum: u32, work| sum.saturating_add(work.threads));
        // What another tool has measured does not say.
        let seconds = context.whole_seconds().map(|second| second.busy);
        let node = context.run.nodes.iter().find(|node| node.generates);
        let own = (threads > 0).then(|| {
            Self::new(None, seconds, threads, context.run.provenance.host.cores).seen(context, node, OWN)
        });
        own.into_iter().filter(|own| !own.seconds.is_empty()).collect()
    }

    fn of_share(context: &WorkContext<'a>, share: &'a Share) -> Option<Self> {
        let driver = context.run.drivers.get(share.driver as usize)?;
        let own = context.stage.shares.iter().filter(|other| other.driver == share.driver);
        let threads = own.fold(0, |sum: u32, share| sum.saturating_add(share.threads));
        let busy = context.seconds_of(share).map(|second| second.busy);
        let node = context.run.nodes.iter().find(|node| is_of(node, driver));
        let found = Self::new(Some(&driver.name), busy, threads, driver.host.cores);
        let found = found.seen(context, node, &of_driver(&driver.name));
        (!found.seconds.is_empty()).then_some(found)
    }

    fn new(driver: Option<&'a str>, busy: impl Iterator<Item = f64>, threads: u32, cores: u32) -> Self {
        // More threads than processors cannot all be on one.
        let most = if cores == 0 || threads <= cores { 1.0 } else { f64::from(cores) / f64::from(threads) };
        let seconds = busy.map(|busy| busy / most).collect();
        Self { driver, seconds, threads, cores, processors: None }
    }

    /// With what the observer of its node saw of the process under this name.
    fn seen(self, context: &WorkContext<'_>, node: Option<&Node>, subject: &str) -> Self {
        Self { processors: processors(context, node, subject, self.threads), ..self }
    }

    /// Whether it had to wait for processors that others used, so that its numbers are partly its own waiting. Not being on a
    /// processor is no reserve then.
    pub(super) fn is_pressed(&self) -> bool {
        self.processors.as_ref().is_some_and(|seen| match seen.waiting {
            Some(waiting) => waiting >= PRESSED,
            None => seen.busy >= NONE_LEFT,
        })
    }

    /// The mean over the seconds, 0 to 1.
    pub(super) fn mean(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.seconds.len().max(1) as f64
    }

    /// Whether more than half of the seconds were at a limit or above.
    pub(super) fn sustained(&self, limit: f64) -> bool {
        self.above(limit) as f64 > self.seconds.len() as f64 * SUSTAINED
    }

    fn above(&self, limit: f64) -> usize {
        self.seconds.iter().filter(|share| **share >= limit).count()
    }

    /// The facts.
    pub(super) fn facts(&self) -> Busy {
        Busy {
            driver: self.driver.map(str::to_owned),
            mean: self.mean(),
            most: self.seconds.iter().copied().fold(0.0, f64::max),
            seconds: self.seconds.len(),
            seconds_full: self.above(BUSY_FULL),
            seconds_high: self.above(BUSY_HIGH),
            full: BUSY_FULL,
            high: BUSY_HIGH,
            threads: self.threads,
            cores: self.cores,
            processors: self.processors,
        }
    }
}

/// Whether a driver puts its load on from this node.
fn is_of(node: &Node, driver: &Driver) -> bool {
    node.generates
        && (node.name == driver.host.name || node.source.strip_prefix("driver ") == Some(&driver.name))
}

/// What the observer of a generator's node saw of its processors in the window, and of its process; `None` where it saw too little.
fn processors(
    context: &WorkContext<'_>,
    node: Option<&Node>,
    subject: &str,
    threads: u32,
) -> Option<Processors> {
    let (node, work) = (node?, context.work);
    // A sample is about the second before it: the first one in the window is half of it at least.
    let from_ns = work.started_ns.saturating_add(work.window_start_ns).saturating_add(SECOND_NS / 2);
    let to_ns = work.started_ns.saturating_add(work.window_end_ns);
    if node.at_ns.iter().filter(|at| (from_ns..=to_ns).contains(at)).count() < SAMPLES_LEAST {
        return None;
    }
    let mean = |kind, subject: &str, metric| {
        node.find(kind, subject, metric).and_then(|series| node.mean(series, from_ns, to_ns))
    };
    let is_watched = threads > 0 && u64::from(threads) <= WATCHED;
    Some(Processors {
        busy: mean(Kind::Cpu, "all", "busy")?,
        process: mean(Kind::Process, subject, "cpu")?,
        // What other threads of the process waited is not theirs.
        waiting: mean(Kind::Process, subject, "load_waiting")
            .filter(|_| is_watched)
            .map(|waiting| (waiting / f64::from(threads)).min(1.0)),
        limit: PRESSED,
        limit_busy: NONE_LEFT,
    })
}
