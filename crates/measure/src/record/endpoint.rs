//! What a work did at each of the servers, or of the databases, that its operations or their requests are spread over.

use crate::counts::FaultCounts;
use crate::histogram::Histogram;
use crate::tally::Tally;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a work is spread over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndpointKind {
    /// Servers of one and the same storage, each of which gets operations of its own.
    #[default]
    Endpoint,
    /// Servers of one and the same storage that share the requests of every operation. What is counted of them are requests.
    Shared,
    /// Instances: each a storage of its own, which only the load has in common with the others.
    Instance,
    /// Drivers, each on volumes of its own.
    Driver,
}

/// What a work did at one of its target's endpoints, over all its operations: those due within the window. Where endpoints are
/// [`Shared`](EndpointKind::Shared), it is of requests instead, from sent to done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointUse {
    /// Scheme, host and port; of an instance also what tells it from the others; of a driver its name.
    pub endpoint: String,
    /// What it is.
    pub kind: EndpointKind,
    /// Successes.
    pub ok: u64,
    /// Of these, those that ended after the window: in the latencies, not in the throughput.
    pub late: u64,
    /// Successes due before the window that ended in it: in the throughput, not in the latencies.
    pub early: u64,
    /// Bytes of the successes.
    pub bytes: u64,
    /// Failures by class.
    pub faults: FaultCounts,
    /// From due to done, of the successes.
    pub response: Histogram,
    /// Successes that ended in each second since the work's start, as far as there were any.
    pub ok_by_second: Vec<u64>,
    /// Failures likewise.
    pub failed_by_second: Vec<u64>,
}

impl EndpointUse {
    /// Adds what was done at the same endpoint elsewhere.
    pub fn add(&mut self, other: &EndpointUse) {
        self.ok = self.ok.saturating_add(other.ok);
        self.late = self.late.saturating_add(other.late);
        self.early = self.early.saturating_add(other.early);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.faults.add(&other.faults);
        self.response.add(&other.response);
        add_seconds(&mut self.ok_by_second, &other.ok_by_second);
        add_seconds(&mut self.failed_by_second, &other.failed_by_second);
    }

    /// Adds the numbers of an action: all but their times.
    pub fn add_tally(&mut self, tally: &Tally) {
        self.ok = self.ok.saturating_add(tally.ok);
        self.late = self.late.saturating_add(tally.late);
        self.early = self.early.saturating_add(tally.early);
        self.bytes = self.bytes.saturating_add(tally.bytes);
        self.faults.add(&tally.faults);
    }

    /// Keeps a second: its successes and its failures.
    pub fn end_second(&mut self, index: u32, ok: u64, failed: u64) {
        for (seconds, count) in [(&mut self.ok_by_second, ok), (&mut self.failed_by_second, failed)] {
            if count > 0 {
                seconds.resize(seconds.len().max(index as usize + 1), 0);
                seconds[index as usize] += count;
            }
        }
    }

    /// Operations that ended, well or not.
    pub fn total(&self) -> u64 {
        self.ok.saturating_add(self.faults.total())
    }

    /// Successes that ended in the window, whenever they were due, per second of it: as an operation's throughput.
    pub fn throughput(&self, window_seconds: f64) -> f64 {
        self.ok.saturating_sub(self.late).saturating_add(self.early) as f64 / window_seconds
    }
}

fn add_seconds(own: &mut Vec<u64>, other: &[u64]) {
    own.resize(own.len().max(other.len()), 0);
    own.iter_mut().zip(other).for_each(|(own, other)| *own = own.saturating_add(*other));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_add_up_however_long_they_are() {
        let mut one = EndpointUse { ok: 5, late: 2, early: 1, ..EndpointUse::default() };
        one.end_second(0, 3, 0);
        one.end_second(2, 2, 0);
        let mut other = EndpointUse { ok: 1, ..EndpointUse::default() };
        other.end_second(4, 1, 7);
        one.add(&other);
        assert_eq!(one.ok_by_second, [3, 0, 2, 0, 1]);
        assert_eq!(one.failed_by_second, [0, 0, 0, 0, 7]);
        assert_eq!((one.ok, one.throughput(5.0)), (6, 1.0));
    }
}
