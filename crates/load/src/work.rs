//! A work, described in the load core's own terms.

use crate::pacing::Pacing;
use crate::source::SourcePlan;
use crate::stopping::Stop;
use serde::{Deserialize, Serialize};
use tidemark_measure::record::Planned;

/// Everything that the load core needs to know of a work. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Logical clients; at least 1. In an open loop: the most operations in flight at once.
    pub workers: u32,
    /// Operations of one worker in flight at once, at least 1: the queue depth of block storage. Only of a closed
    /// loop: an open loop has as many in flight as are due, up to `workers` times `depth`.
    pub depth: u32,
    /// How many operations of all workers may be in flight at once, if fewer than `workers` times `depth`: connections that the
    /// workers of a closed loop share. A worker that pauses has none, and one that finds none waits, as its users would. Every
    /// process that has workers has one at least.
    pub connections: Option<u32>,
    /// When operations are due.
    pub pacing: Pacing,
    /// When the work is over.
    pub stop: Stop,
    /// Which operations, on what.
    pub source: SourcePlan,
    /// What is done once on every space when the load is over.
    pub finale: Option<Finale>,
    /// Number of actions that the source's operations refer to.
    pub actions: u16,
    /// The run's seed.
    pub seed: u64,
    /// Numbers that name this work's random streams within the run: stage and work.
    pub stream: [u64; 2],
}

impl Work {
    /// The slots of a share of it: the number of the first within the work, and how many.
    pub fn slots(&self, share: Share) -> (u32, u32) {
        let Some(all) = self.connections else {
            let depth = self.depth.max(1);
            return (share.first.saturating_mul(depth), share.count.saturating_mul(depth));
        };
        // Rounded to the nearest, so that shares that are nearly even have as many as there are, together.
        let before = |worker: u32| {
            let halves = Share { first: 0, count: worker }.of_volume(2 * u64::from(all), self.workers);
            halves.div_ceil(2) as u32
        };
        let first = before(share.first);
        let count = before(share.first.saturating_add(share.count)) - first;
        (first, count.max(share.count.min(1)))
    }

    /// The same for one of the threads of a process, of which there are no more than slots of its share.
    pub(crate) fn slots_of_thread(&self, share: Share, thread: u32, threads: u32) -> (u32, u32) {
        if self.connections.is_none() {
            return self.slots(share.of_thread(thread, threads));
        }
        // A cut by workers would round up for every thread, and have more connections than asked for.
        let (first, count) = self.slots(share);
        let own = Share { first, count }.of_thread(thread, threads);
        (own.first, own.count)
    }

    /// Whether an operation that is due may have to wait for a slot, which counts in its response time.
    pub fn waits_for_slots(&self) -> bool {
        matches!(self.pacing, Pacing::Open { .. }) || self.connections.is_some()
    }

    /// What is fixed of it before it begins.
    pub fn planned(&self) -> Planned {
        let phases = self.stop.phases();
        let fixed = |at: u64| (at != u64::MAX).then_some(at);
        Planned {
            rate: match &self.pacing {
                Pacing::Closed { .. } | Pacing::Terminals { .. } => None,
                Pacing::Open { rate, .. } => Some(rate.with_ramp(self.stop.ramp_up_ns)),
            },
            window_start_ns: fixed(phases.window_start),
            window_end_ns: fixed(phases.window_end),
            operations: self.stop.operations.into_iter().chain(self.source.operations()).min(),
        }
    }
}

/// An operation done once on every space of a range after the end of the load, divided among the workers: an
/// end-of-run sync. It is recorded like any other; it ends after the window, so it counts in no throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finale {
    /// Which action.
    pub action: u16,
    /// Lowest and highest space.
    pub spaces: (u64, u64),
}

/// Which workers of a work a process has. They keep their numbers within the whole work, so that they do the same
/// however a work is cut into shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Share {
    /// All of them.
    pub fn whole(work: &Work) -> Self {
        Self { first: 0, count: work.workers }
    }

    /// The part of one of the process's threads.
    pub(crate) fn of_thread(self, thread: u32, threads: u32) -> Self {
        let before = |thread: u32| (u64::from(self.count) * u64::from(thread) / u64::from(threads)) as u32;
        Self { first: self.first + before(thread), count: before(thread + 1) - before(thread) }
    }

    /// What these workers have of a volume that is divided evenly among all `workers`: shares that add up to the work
    /// add up to the volume.
    pub fn of_volume(self, volume: u64, workers: u32) -> u64 {
        let before = |worker: u32| {
            let product = u128::from(volume) * u128::from(worker.min(workers));
            (product / u128::from(workers.max(1))) as u64
        };
        before(self.first.saturating_add(self.count)) - before(self.first)
    }
}

/// Deals a work's workers out to drivers: in order, as evenly as can be. `offset` is the driver that gets the first of
/// the workers that do not divide evenly; who turns it from work to work spreads them over all drivers. A driver's share
/// may be empty.
pub fn divide(workers: u32, drivers: u32, offset: u32) -> Vec<Share> {
    let remainder = workers.checked_rem(drivers).unwrap_or(0);
    let mut first = 0;
    let share = |driver: u32| {
        let turn =
            (u64::from(driver) + u64::from(drivers) - u64::from(offset % drivers)) % u64::from(drivers);
        let share = Share { first, count: workers / drivers + u32::from(turn < u64::from(remainder)) };
        first += share.count;
        share
    };
    (0..drivers).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_does_not_divide_goes_round() {
        let counts = |offset| divide(10, 4, offset).iter().map(|share| share.count).collect::<Vec<_>>();
        assert_eq!(counts(0), [3, 3, 2, 2]);
        assert_eq!(counts(3), [3, 2, 2, 3]);
        assert_eq!(counts(5), [2, 3, 3, 2]);
        assert_eq!(divide(1, 3, 1).iter().map(|share| share.count).collect::<Vec<_>>(), [0, 1, 0]);
        assert!(divide(5, 0, 1).is_empty());
    }

    proptest! {
        #[test]
        fn shares_lose_and_double_nothing(
            workers in 0u32..5000, drivers in 1u32..300, offset: u32, volume: u64,
        ) {
            let shares = divide(workers, drivers, offset);
            prop_assert_eq!(shares.len(), drivers as usize);
            let all: Vec<u32> = shares.iter().flat_map(|share| share.first..share.first + share.count).collect();
            prop_assert!(all.into_iter().eq(0..workers));
            let sizes = || shares.iter().map(|share| share.count);
            prop_assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
            let moved: u64 = shares.iter().map(|share| share.of_volume(volume, workers)).sum();
            prop_assert_eq!(moved, if workers == 0 { 0 } else { volume });
        }

        #[test]
        fn threads_share_exactly_the_connections_that_there_are(
            workers in 1u32..500, connections in 1u32..500, drivers in 1u32..9, threads in 1u32..9, offset: u32,
        ) {
            let (connections, pacing) = (connections.min(workers), Pacing::BACK_TO_BACK);
            let source = SourcePlan::Mix { choices: Vec::new(), pool: None, deck: false };
            let work = Work {
                workers, depth: 1, connections: Some(connections), pacing, stop: Stop::default(), source, finale: None, actions: 1,
                seed: 1, stream: [0, 0],
            };
            prop_assert_eq!(work.slots(Share::whole(&work)), (0, connections));
            for share in divide(workers, drivers, offset).into_iter().filter(|share| share.count > 0) {
                let (first, count) = work.slots(share);
                prop_assert!((1..=share.count).contains(&count));
                let threads = threads.min(count);
                let mut numbers = Vec::new();
                for thread in 0..threads {
                    let (first, count) = work.slots_of_thread(share, thread, threads);
                    prop_assert!(count > 0 && share.of_thread(thread, threads).count > 0);
                    numbers.extend(first..first + count);
                }
                prop_assert!(numbers.into_iter().eq(first..first + count), "no number twice, and none left out");
            }
        }
    }
}
