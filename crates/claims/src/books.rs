//! The seconds of a load: each phase that has ended is entered in the second in which it ended.

use crate::failure::Failure;
use crate::job::Phase;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidemark_load::recorder::INTERVAL_NS;
use tidemark_load::thread_pool::EXAMPLES_PER_FAULT;
use tidemark_measure::record::{Example, WorkerCount};
use tidemark_measure::tally::{Interval, Tally};

/// A phase that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) phase: Phase,
    pub(crate) worker: u32,
    /// When it should have begun.
    pub(crate) due: Instant,
    /// Since when its worker was free for it.
    pub(crate) free: Instant,
    /// When it did.
    pub(crate) sent: Instant,
    pub(crate) done: Instant,
    /// Bytes that were compared.
    pub(crate) bytes: u64,
}

/// What has been entered.
pub(crate) struct Books {
    /// When the load began.
    began: Instant,
    /// All phases that a work may have, by the number of their action.
    phases: Vec<Phase>,
    /// Whether lives are begun at times fixed in advance.
    is_open: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The seconds that have not been given out.
    seconds: BTreeMap<u32, Interval>,
    /// The first of them.
    next: u32,
    total: Vec<Tally>,
    workers: BTreeMap<(u32, u16), WorkerCount>,
    examples: Vec<Example>,
    /// Lives that are in progress, and since when.
    living: BTreeMap<u32, Instant>,
    last_done_ns: u64,
}

impl Books {
    pub(crate) fn new(began: Instant, phases: Vec<Phase>, is_open: bool) -> Self {
        let total = vec![Tally::default(); phases.len()];
        Self { began, phases, is_open, state: Mutex::new(State { total, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since_start(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.began).as_nanos() as u64
    }

    /// A life has begun.
    pub(crate) fn begins(&self, life: u32) {
        self.state().living.insert(life, Instant::now());
    }

    /// It is over.
    pub(crate) fn ends(&self, life: u32) {
        self.state().living.remove(&life);
    }

    /// A phase has ended, well or not.
    pub(crate) fn enter(&self, entry: &Entry, failure: Option<&Failure>) {
        let Some(action) = self.phases.iter().position(|phase| *phase == entry.phase) else { return };
        let took = |from: Instant| entry.done.saturating_duration_since(from).as_nanos() as u64;
        let done_ns = self.since_start(entry.done);
        let mut state = self.state();
        let index = ((done_ns / INTERVAL_NS) as u32).max(state.next);
        let count = self.phases.len();
        let second = state.seconds.entry(index).or_insert_with(|| Interval::new(index, count));
        let tally = &mut second.actions[action];
        let lag = entry.sent.saturating_duration_since(entry.due).as_nanos() as u64;
        tally.lag.record(lag);
        if self.is_open {
            // What all workers were in other lives for is the storage's doing.
            let could = entry.due.max(entry.free);
            tally.own_lag_open.record(entry.sent.saturating_duration_since(could).as_nanos() as u64);
        }
        let response = took(if self.is_open { entry.due } else { entry.sent });
        match failure {
            None => {
                tally.ok += 1;
                tally.bytes += entry.bytes;
                tally.verified += u64::from(entry.phase.verifies());
                tally.response.record(response);
                if self.is_open {
                    tally.service_open.record(took(entry.sent));
                }
                second.first_ok_ns = Some(second.first_ok_ns.map_or(done_ns, |first| first.min(done_ns)));
                second.last_ok_ns = second.last_ok_ns.max(Some(done_ns));
            }
            Some(failure) => {
                tally.faults.count(failure.fault);
                tally.failure.record(response);
                let known = state.examples.iter().filter(|one| one.fault == failure.fault).count();
                if known < EXAMPLES_PER_FAULT {
                    state.examples.push(failure.example());
                }
            }
        }
        let first_sent_ns = self.since_start(entry.sent).max(1);
        let (worker, operation) = (entry.worker, action as u16);
        let own = state.workers.entry((worker, operation)).or_insert_with(|| WorkerCount {
            worker,
            operation,
            first_sent_ns,
            ..WorkerCount::default()
        });
        own.ok += u64::from(failure.is_none());
        own.failed += u64::from(failure.is_some());
        own.bytes += if failure.is_none() { entry.bytes } else { 0 };
        own.response_ns += if failure.is_none() { response } else { 0 };
        own.last_done_ns = own.last_done_ns.max(done_ns);
        state.last_done_ns = state.last_done_ns.max(done_ns);
    }

    /// The next second, if it was over for a while: events arrive a little after what they tell of. With `all`, whatever there is.
    pub(crate) fn next(&self, all: bool) -> Option<Interval> {
        let mut state = self.state();
        let index = state.next;
        let over = Duration::from_nanos((u64::from(index) + 2) * INTERVAL_NS);
        let is_due = self.began.elapsed() >= over;
        if !(is_due || all && state.seconds.keys().next_back().is_some_and(|last| *last >= index)) {
            return None;
        }
        state.next += 1;
        let mut second =
            state.seconds.remove(&index).unwrap_or_else(|| Interval::new(index, self.phases.len()));
        second.in_flight = state.living.len() as u32;
        let oldest = state.living.values().min().map_or(0, |since| since.elapsed().as_nanos() as u64);
        second.oldest_in_flight_ns = oldest;
        for (total, own) in state.total.iter_mut().zip(&second.actions) {
            total.add(own);
        }
        Some(second)
    }

    /// The sums of all seconds that were given out.
    pub(crate) fn close(self) -> Closed {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Closed {
            tallies: state.total,
            workers: state.workers.into_values().collect(),
            examples: state.examples,
            last_done_ns: state.last_done_ns,
        }
    }
}

/// What a load came to.
pub(crate) struct Closed {
    pub(crate) tallies: Vec<Tally>,
    pub(crate) workers: Vec<WorkerCount>,
    pub(crate) examples: Vec<Example>,
    pub(crate) last_done_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::fault::Fault;

    #[test]
    fn a_phase_counts_from_when_it_was_due_and_failures_apart() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let entry = |phase, due, sent, done| Entry {
            phase,
            worker: 0,
            due: at(due),
            free: at(due + 15),
            sent: at(sent),
            done: at(done),
            bytes: 5,
        };
        for (is_open, expected) in [(true, 50), (false, 30)] {
            let books = Books::new(began, vec![Phase::Claim, Phase::Write], is_open);
            books.enter(&entry(Phase::Claim, 100, 120, 150), None);
            books.enter(&entry(Phase::Write, 150, 150, 3_200), None);
            let lost = Failure::new(Fault::Unbound, "r-2");
            books.enter(&entry(Phase::Claim, 100, 100, 3_300), Some(&lost));
            let seconds: Vec<_> = std::iter::from_fn(|| books.next(true)).collect();
            assert_eq!(seconds.iter().map(|one| one.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
            assert_eq!(seconds[3].actions[1].verified, 1);
            let closed = books.close();
            let [claim, write] = &closed.tallies[..] else { panic!("two") };
            assert_eq!((claim.ok, claim.faults.of(Fault::Unbound), write.ok, write.bytes), (1, 1, 1, 5));
            // Three significant digits.
            let is = |ns: u64, ms: u32| (ns as f64 / 1e6 - f64::from(ms)).abs() < 0.1;
            assert!(is(claim.response.max(), expected), "{}", claim.response.max());
            let own = claim.own_lag_open.max();
            assert!(is(own, if is_open { 5 } else { 0 }), "the worker was free 15 ms late: {own}");
            assert_eq!((closed.examples.len(), closed.last_done_ns), (1, 3_300_000_000));
        }
    }
}
