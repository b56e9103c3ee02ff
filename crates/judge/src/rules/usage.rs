//! How busy the generator's threads were in the window: those of the process that kept the record, or of each driver.

use crate::context::WorkContext;
use crate::words::generator::Busy;
use tidemark_measure::record::Share;

/// A generator thread that is on a processor for this share of a second has no reserve: operations wait for it.
pub(super) const BUSY_FULL: f64 = 0.95;

/// A thread this busy is close to it.
pub(super) const BUSY_HIGH: f64 = 0.90;

/// What holds for more than this share of the window's seconds is called sustained.
const SUSTAINED: f64 = 0.5;

/// The threads of one process.
pub(super) struct Use<'a> {
    /// The driver; `None`: the process that kept the record.
    driver: Option<&'a str>,
    /// Of each second of the window, the share of what the threads could be on a processor.
    seconds: Vec<f64>,
    /// Threads of all works of the stage.
    threads: u32,
    cores: u32,
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
        let own = (threads > 0).then(|| Self::new(None, seconds, threads, context.run.provenance.host.cores));
        own.into_iter().filter(|own| !own.seconds.is_empty()).collect()
    }

    fn of_share(context: &WorkContext<'a>, share: &'a Share) -> Option<Self> {
        let driver = context.run.drivers.get(share.driver as usize)?;
        let own = context.stage.shares.iter().filter(|other| other.driver == share.driver);
        let threads = own.fold(0, |sum: u32, share| sum.saturating_add(share.threads));
        let busy = context.seconds_of(share).map(|second| second.busy);
        let found = Self::new(Some(&driver.name), busy, threads, driver.host.cores);
        (!found.seconds.is_empty()).then_some(found)
    }

    fn new(driver: Option<&'a str>, busy: impl Iterator<Item = f64>, threads: u32, cores: u32) -> Self {
        // More threads than processors cannot all be on one.
        let most = if cores == 0 || threads <= cores { 1.0 } else { f64::from(cores) / f64::from(threads) };
        Self { driver, seconds: busy.map(|busy| busy / most).collect(), threads, cores }
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
        }
    }
}
