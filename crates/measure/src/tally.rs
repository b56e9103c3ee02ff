//! One operation's numbers over any span of time: a second, a worker thread, a whole window.
//!
//! A tally is the sum of its parts: tallies of threads, seconds and drivers merge by addition and
//! nothing else, so a percentile is always read from merged counts.

use crate::counts::{FaultCounts, UncheckedCounts};
use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};

/// What one operation of a work did over some span: counts, bytes and latency distributions.
///
/// Only *measured* operations are tallied: those that were due within the window. All latencies are in
/// nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Operations that succeeded.
    pub ok: u64,
    /// Bytes that the successful ones moved.
    pub bytes: u64,
    /// Successful operations that ended after the window: in the latencies, not in the throughput.
    pub late: u64,
    /// Bytes of the late ones.
    pub late_bytes: u64,
    /// Successful operations that were due before the window and ended in it: in the throughput, not in the
    /// latencies. In an overloaded open loop these may be most of them.
    pub early: u64,
    /// Bytes of the early ones.
    pub early_bytes: u64,
    /// Bytes of successful operations that count in neither: due and ended outside the window. With them,
    /// [`Tally::moved`] is all that a device must have seen.
    pub outside_bytes: u64,
    /// Attempts beyond the first, over all operations; their time is inside the operation's latency.
    pub retries: u64,
    /// Failed operations by [`Fault`](crate::fault::Fault).
    pub faults: FaultCounts,
    /// Successful operations whose content was compared with what had been written, and was right.
    pub verified: u64,
    /// Of the verified ones, those of which nobody knew which write they must be of: in their place and Tidemark's, perhaps stale.
    pub placed: u64,
    /// Successful operations whose content was to be verified and could not be, by [`Unchecked`](crate::verification::Unchecked).
    pub unchecked: UncheckedCounts,
    /// From due to done, of the successful ones. In a closed loop an operation is due when it is sent.
    pub response: Histogram,
    /// From sent to done, of the successful ones. Kept in an open loop only; see [`Tally::service`].
    pub service_open: Histogram,
    /// From due to sent, of all of them: how late they were, whoever's doing it was.
    pub lag: Histogram,
    /// The part of the lag in which a slot was free, so that the generator could have sent. Kept in an open loop only; see
    /// [`Tally::own_lag`].
    pub own_lag_open: Histogram,
    /// From sent to the first byte of the reply's body, where the engine knows it.
    pub first_byte: Histogram,
    /// From due to done, of the failed ones.
    pub failure: Histogram,
}

impl Tally {
    /// Adds the numbers of `other`; sums saturate, whatever a driver sends.
    pub fn add(&mut self, other: &Tally) {
        self.ok = self.ok.saturating_add(other.ok);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.late = self.late.saturating_add(other.late);
        self.late_bytes = self.late_bytes.saturating_add(other.late_bytes);
        self.early = self.early.saturating_add(other.early);
        self.early_bytes = self.early_bytes.saturating_add(other.early_bytes);
        self.outside_bytes = self.outside_bytes.saturating_add(other.outside_bytes);
        self.retries = self.retries.saturating_add(other.retries);
        self.faults.add(&other.faults);
        self.verified = self.verified.saturating_add(other.verified);
        self.placed = self.placed.saturating_add(other.placed);
        self.unchecked.add(&other.unchecked);
        for (own, other) in self.histograms_mut().into_iter().zip(other.histograms()) {
            own.add(other);
        }
    }

    /// Forgets all numbers and keeps the memory.
    pub fn reset(&mut self) {
        (self.ok, self.bytes, self.retries) = (0, 0, 0);
        (self.late, self.late_bytes, self.early, self.early_bytes) = (0, 0, 0, 0);
        (self.outside_bytes, self.verified, self.placed) = (0, 0, 0);
        (self.faults, self.unchecked) = (FaultCounts::default(), UncheckedCounts::default());
        for histogram in self.histograms_mut() {
            histogram.reset();
        }
    }

    /// Operations that failed.
    pub fn failed(&self) -> u64 {
        self.faults.total()
    }

    /// Operations that ended, well or not.
    pub fn total(&self) -> u64 {
        self.ok.saturating_add(self.failed())
    }

    /// Bytes that all its successful operations moved, in the window and outside.
    pub fn moved(&self) -> u64 {
        self.bytes.saturating_add(self.early_bytes).saturating_add(self.outside_bytes)
    }

    /// Successful share of all operations, 0 to 1; `None` when there were none.
    pub fn success_ratio(&self) -> Option<f64> {
        (self.total() > 0).then(|| self.ok as f64 / self.total() as f64)
    }

    /// From sent to done: the open loop's own histogram, or the response, which is the same in a closed loop.
    pub fn service(&self) -> &Histogram {
        if self.service_open.is_empty() { &self.response } else { &self.service_open }
    }

    /// Gives back the memory that only counting needs: see [`Histogram::pack`].
    pub fn pack(&mut self) {
        self.histograms_mut().into_iter().for_each(Histogram::pack);
    }

    /// How late the generator was by its own doing; in a closed loop, where a free slot is what makes an operation due, that is
    /// all of the lag. `None` for an open loop of a record that does not tell it from waiting for a slot.
    pub fn own_lag(&self) -> Option<&Histogram> {
        match (self.own_lag_open.is_empty(), self.service_open.is_empty()) {
            (false, _) => Some(&self.own_lag_open),
            (true, true) => Some(&self.lag),
            (true, false) => None,
        }
    }

    /// In the order in which they travel; see [`wire`](crate::wire).
    pub(crate) fn histograms(&self) -> [&Histogram; 6] {
        [&self.response, &self.service_open, &self.lag, &self.first_byte, &self.failure, &self.own_lag_open]
    }

    pub(crate) fn histograms_mut(&mut self) -> [&mut Histogram; 6] {
        [
            &mut self.response,
            &mut self.service_open,
            &mut self.lag,
            &mut self.first_byte,
            &mut self.failure,
            &mut self.own_lag_open,
        ]
    }
}

/// One second of a work, merged over all its threads.
///
/// Times are nanoseconds since the work's start. Operations are placed in the second in which they ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interval {
    /// Which second, counted from the work's start.
    pub index: u32,
    /// Measured operations, one tally per action of the work.
    pub actions: Vec<Tally>,
    /// Operations that ended but were due outside the window (ramp-up, ramp-down), over all actions.
    pub unmeasured: u64,
    /// Operations in flight at the end of the second.
    pub in_flight: u32,
    /// Age of the oldest of them, nanoseconds.
    pub oldest_in_flight_ns: u64,
    /// Operations that were due but not yet sent at the end of the second (open loop only).
    pub backlog: u64,
    /// When the first success of the second came, if any: measured or not.
    pub first_ok_ns: Option<u64>,
    /// When the last success of the second came, if any: measured or not.
    pub last_ok_ns: Option<u64>,
    /// Processor time of the generator's threads in this second, nanoseconds.
    pub cpu_ns: u64,
    /// Wall time of the generator's threads in this second, summed over the threads, nanoseconds.
    pub wall_ns: u64,
    /// For how long a thread stood still that was due to run, at most, nanoseconds. What it notes of operations in that time is its own lateness, not the storage's.
    pub stalled_ns: u64,
}

/// Works of more actions than this have their histograms take memory as they come to count: of so many kinds none is done often, and most
/// histograms of a second stay empty.
const READY_MOST: usize = 8;

impl Interval {
    /// An empty second with room for `actions` actions.
    pub fn new(index: u32, actions: usize) -> Self {
        let mut actions = vec![Tally::default(); actions];
        if actions.len() <= READY_MOST {
            // Whoever counts into it must not have to wait for memory then.
            actions.iter_mut().flat_map(Tally::histograms_mut).for_each(Histogram::ready);
        }
        Self { index, actions, ..Self::default() }
    }

    /// Adds another thread's or driver's view of the same second.
    pub fn add(&mut self, other: &Interval) {
        debug_assert_eq!(self.index, other.index);
        for (own, other) in self.actions.iter_mut().zip(&other.actions) {
            own.add(other);
        }
        self.unmeasured = self.unmeasured.saturating_add(other.unmeasured);
        self.in_flight = self.in_flight.saturating_add(other.in_flight);
        self.oldest_in_flight_ns = self.oldest_in_flight_ns.max(other.oldest_in_flight_ns);
        self.backlog = self.backlog.saturating_add(other.backlog);
        self.first_ok_ns = [self.first_ok_ns, other.first_ok_ns].into_iter().flatten().min();
        self.last_ok_ns = [self.last_ok_ns, other.last_ok_ns].into_iter().flatten().max();
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.stalled_ns = self.stalled_ns.max(other.stalled_ns);
    }

    /// Gives back the memory that only counting needs: see [`Histogram::pack`].
    pub fn pack(&mut self) {
        self.actions.iter_mut().for_each(Tally::pack);
    }

    /// The memory of its histograms, bytes.
    pub fn memory(&self) -> usize {
        self.actions.iter().flat_map(Tally::histograms).map(Histogram::memory).sum()
    }

    /// Empties it for reuse as second `index`; keeps the memory.
    pub fn reset(&mut self, index: u32) {
        let mut actions = std::mem::take(&mut self.actions);
        actions.iter_mut().for_each(Tally::reset);
        *self = Self { index, actions, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;
    use crate::verification::Unchecked;

    fn tally(ok: u64, fault: Fault) -> Tally {
        let mut tally = Tally { ok, bytes: ok * 10, verified: ok - 1, ..Tally::default() };
        tally.unchecked.count(Unchecked::TooShort);
        (0..ok).for_each(|i| tally.response.record(1_000 + i));
        tally.faults.count(fault);
        tally.failure.record(5);
        tally
    }

    #[test]
    fn sums_are_sums() {
        let mut sum = tally(3, Fault::Reset);
        sum.add(&tally(4, Fault::Timeout));
        assert_eq!((sum.ok, sum.bytes, sum.failed(), sum.total()), (7, 70, 2, 9));
        assert_eq!(sum.response.count(), 7);
        assert_eq!(sum.service().count(), 7, "a closed loop's service time is its response time");
        assert_eq!(sum.faults.iter().collect::<Vec<_>>(), [(Fault::Reset, 1), (Fault::Timeout, 1)]);
        assert_eq!(
            (sum.verified, sum.unchecked.iter().collect::<Vec<_>>()),
            (5, vec![(Unchecked::TooShort, 2)])
        );
        sum.reset();
        assert_eq!((sum.verified, sum.unchecked.total()), (0, 0));
        assert_eq!((sum.total(), sum.success_ratio(), sum.response.count()), (0, None, 0));
    }

    #[test]
    fn tallies_survive_json() {
        let before = tally(5, Fault::ServerError);
        let after: Tally = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
        assert_eq!((after.ok, after.faults), (before.ok, before.faults));
        assert_eq!((after.verified, after.unchecked), (4, before.unchecked));
        assert!(after.response.buckets().eq(before.response.buckets()));
    }
}
