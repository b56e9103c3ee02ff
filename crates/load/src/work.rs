//! A work, described in the load core's own terms.

use crate::pacing::{Pacing, Rate};
use crate::source::{Source, SourcePlan};
use crate::stopping::Stop;
use serde::{Deserialize, Serialize};
use tidemark_measure::pick::Part;
use tidemark_measure::record::Planned;
use tidemark_measure::rng::{Rng, mix};

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
    /// How many times over the source and the finale are carried out, at least 1: by each driver on spaces of its own. Each copy has
    /// as many workers, which follow each other, and no process has workers of two copies. Pacing and stopping are of all copies together.
    pub copies: u32,
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

    /// The same with so many times as many workers, each of the copies on spaces of its own.
    pub fn copied(&self, copies: u32) -> Self {
        let copies = copies.max(1);
        let workers = self.workers.saturating_mul(copies);
        Self { workers, copies: self.copies.saturating_mul(copies), ..self.clone() }
    }

    /// The workers of each copy, at least 1.
    pub fn workers_of_copy(&self) -> u32 {
        (self.workers / self.copies.max(1)).max(1)
    }

    /// The copy that a share is, as a work of its own: for a program that knows nothing of the others. It has its part of the rate, and
    /// of what ends the work.
    pub fn copy(&self, share: Share) -> Self {
        if self.copies <= 1 {
            return self.clone();
        }
        let pacing = match &self.pacing {
            Pacing::Open { rate, arrivals } => {
                let own = |(at, rate): &(u64, f64)| (*at, rate / f64::from(self.copies));
                Pacing::Open {
                    rate: Rate { points: rate.points.iter().map(own).collect() },
                    arrivals: *arrivals,
                }
            }
            Pacing::Closed { .. } | Pacing::Terminals { .. } => self.pacing.clone(),
        };
        let of_share = |all: u64| share.of_volume(all, self.workers);
        let stop = Stop {
            operations: self.stop.operations.map(of_share),
            bytes: self.stop.bytes.map(of_share),
            ..self.stop
        };
        let seed = if share.first == 0 { self.seed } else { mix(self.seed, &[share.first.into()]) };
        Self { workers: share.count, copies: 1, pacing, stop, seed, ..self.clone() }
    }

    /// The operations of one of its workers: its part of the spaces and items of its copy, drawn as the worker's number within the whole
    /// work has it.
    pub(crate) fn source_of(&self, worker: u32) -> Source {
        let of = self.workers_of_copy();
        let rng = Rng::new(self.seed, &[self.stream[0], self.stream[1], worker.into()]);
        self.source.worker(rng, Part { index: worker % of, of })
    }

    /// Whether an operation that is due may have to wait for a slot, which counts in its response time.
    pub fn waits_for_slots(&self) -> bool {
        matches!(self.pacing, Pacing::Open { .. }) || self.connections.is_some()
    }

    /// How many operations its source has, of all copies; `None` for a mix, which does not end.
    pub fn operations_of_source(&self) -> Option<u64> {
        self.source.operations().map(|of_copy| of_copy.saturating_mul(self.copies.max(1).into()))
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
            operations: self.stop.operations.into_iter().chain(self.operations_of_source()).min(),
            ..Planned::default()
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

    #[test]
    fn each_copy_does_all_of_the_source_and_a_part_of_what_ends_the_load() {
        use crate::source::Size;
        use std::collections::BTreeSet;
        use tidemark_measure::pick::Pick;
        let bytes = Size { pick: Pick::Constant(1), unit: 1 };
        let source = SourcePlan::Scan { action: 0, spaces: Some((1, 3)), items: Some((0, 4)), bytes };
        let pacing =
            Pacing::Open { rate: Rate::constant(300.0), arrivals: crate::pacing::Arrivals::Constant };
        let stop = Stop { operations: Some(100), bytes: Some(1000), ..Stop::default() };
        let (seed, stream) = (9, [1, 0]);
        let one = Work {
            workers: 2,
            depth: 1,
            connections: None,
            pacing,
            stop,
            source,
            finale: None,
            copies: 1,
            actions: 1,
            seed,
            stream,
        };
        let three = one.copied(3);
        assert_eq!(
            (three.workers, three.copies, three.workers_of_copy(), three.operations_of_source()),
            (6, 3, 2, Some(45))
        );
        assert_eq!(three.planned().operations, Some(45));
        let drawn = |worker: u32| {
            let mut source = three.source_of(worker);
            std::iter::from_fn(move || source.draw())
                .map(|(one, _)| ((one.space, one.item), one.random))
                .collect::<Vec<_>>()
        };
        for copy in 0..3 {
            let all: Vec<_> = (2 * copy..2 * copy + 2).flat_map(drawn).map(|(place, _)| place).collect();
            assert_eq!(
                (all.len(), all.iter().collect::<BTreeSet<_>>().len()),
                (15, 15),
                "each copy does each once"
            );
        }
        assert_ne!(drawn(0)[0].1, drawn(2)[0].1, "copies make choices of their own");
        let copies: Vec<Work> = [0, 2, 4].map(|first| three.copy(Share { first, count: 2 })).into();
        let sum = |of: fn(&Stop) -> Option<u64>| copies.iter().filter_map(|copy| of(&copy.stop)).sum::<u64>();
        assert_eq!((sum(|stop| stop.operations), sum(|stop| stop.bytes)), (100, 1000));
        assert!(copies.iter().all(|copy| (copy.workers, copy.copies) == (2, 1)));
        let rate = |copy: &Work| copy.planned().rate.map(|rate| rate.at(0));
        assert_eq!(copies.iter().map(rate).collect::<Vec<_>>(), [Some(100.0); 3]);
        assert_ne!(copies[0].seed, copies[1].seed);
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
                workers, depth: 1, connections: Some(connections), pacing, stop: Stop::default(), source, finale: None, copies: 1, actions: 1,
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
