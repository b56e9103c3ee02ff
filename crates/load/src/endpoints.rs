//! What operations, or their requests, did at each of a target's endpoints: one of many that is dead or slow shows nowhere else.

use crate::engine::Outcome;
use tidemark_measure::record::{EndpointKind, EndpointUse};

/// One thread's counts. Slot `s` of a work talks to endpoint `s` modulo their number, unless all slots share them.
pub struct Endpoints {
    uses: Vec<EndpointUse>,
    /// Successes and failures of each in the second that is being counted.
    second: Vec<(u64, u64)>,
    first_slot: u32,
    /// Among how many endpoints the slots are divided; 0 where operations are not what is counted.
    divided: usize,
}

impl Endpoints {
    /// Counts for these endpoints, of a session whose first slot has this number within the work. For fewer than two
    /// nothing is counted: the operations' own numbers say the same.
    pub fn new(kind: EndpointKind, names: Vec<String>, first_slot: u32) -> Self {
        let names = if names.len() > 1 { names } else { Vec::new() };
        let ready = |endpoint| {
            let mut own = EndpointUse { endpoint, kind, ..EndpointUse::default() };
            // Whoever counts into it must not have to wait for memory then.
            own.response.ready();
            own
        };
        let uses: Vec<_> = names.into_iter().map(ready).collect();
        let divided = if kind == EndpointKind::Shared { 0 } else { uses.len() };
        Self { second: vec![(0, 0); uses.len()], uses, first_slot, divided }
    }

    /// Counts a measured operation of a slot of the session; `late`: it ended after the window.
    #[inline]
    pub fn record(&mut self, slot: u32, response_ns: u64, late: bool, outcome: &Outcome) {
        if self.divided == 0 {
            return;
        }
        let index = endpoint_of(self.first_slot, slot, self.divided);
        let (own, second) = (&mut self.uses[index], &mut self.second[index]);
        match outcome.fault {
            None => {
                own.ok += 1;
                own.late += u64::from(late);
                own.bytes += outcome.bytes;
                own.response.record(response_ns);
                second.0 += 1;
            }
            Some(fault) => {
                own.faults.count(fault);
                second.1 += 1;
            }
        }
    }

    /// Counts a success that was due before the window and ended in it.
    #[inline]
    pub fn early(&mut self, slot: u32) {
        if self.divided > 0 {
            let index = endpoint_of(self.first_slot, slot, self.divided);
            self.uses[index].early += 1;
        }
    }

    /// Counts requests that ended in this second, as a session tells them of its endpoints
    /// ([`Session::requests`](crate::engine::Session::requests)).
    pub fn requests(&mut self, told: &[EndpointUse]) {
        for ((own, second), told) in self.uses.iter_mut().zip(&mut self.second).zip(told) {
            own.add(told);
            *second = (second.0 + told.ok, second.1 + told.faults.total());
        }
    }

    /// A second since the work's start is over.
    pub fn end_second(&mut self, index: u32) {
        for (own, second) in self.uses.iter_mut().zip(&mut self.second) {
            let (ok, failed) = std::mem::take(second);
            own.end_second(index, ok, failed);
        }
    }

    /// What was counted.
    pub fn finish(self) -> Vec<EndpointUse> {
        self.uses
    }
}

/// Which of `count` endpoints a slot talks to; the session's first slot has the number `first_slot` within the work.
#[inline]
pub fn endpoint_of(first_slot: u32, slot: u32, count: usize) -> usize {
    (first_slot as usize + slot as usize) % count
}

/// The counts of several threads or processes, put together by the endpoints' names.
pub(crate) fn merged<'a>(all: impl Iterator<Item = &'a EndpointUse>) -> Vec<EndpointUse> {
    let mut merged: Vec<EndpointUse> = Vec::new();
    for one in all {
        match merged.iter_mut().find(|own| own.endpoint == one.endpoint) {
            Some(own) => own.add(one),
            None => merged.push(one.clone()),
        }
    }
    merged.iter_mut().for_each(|own| own.response.pack());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::fault::Fault;

    #[test]
    fn slots_are_counted_at_their_endpoints_whatever_their_thread() {
        let names = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let of = |first_slot| Endpoints::new(EndpointKind::Instance, names(), first_slot);
        let mut threads = [of(0), of(4)];
        for slot in 0..4 {
            threads[0].record(slot, 1_000, slot == 3, &Outcome::success(10));
        }
        threads[0].end_second(0);
        threads[0].early(2);
        threads[1].record(1, 1_000, false, &Outcome::failure(Fault::Refused));
        threads[1].end_second(1);
        let counted: Vec<_> = threads.into_iter().map(Endpoints::finish).collect();
        let merged = merged(counted.iter().flatten());
        let numbers: Vec<_> =
            merged.iter().map(|one| (one.endpoint.as_str(), one.ok, one.bytes, one.faults.total())).collect();
        assert_eq!(numbers, [("a", 2, 20, 0), ("b", 1, 10, 0), ("c", 1, 10, 1)]);
        assert_eq!((merged[0].response.count(), merged[0].kind), (2, EndpointKind::Instance));
        assert_eq!(
            merged.iter().map(|one| (one.late, one.early)).collect::<Vec<_>>(),
            [(1, 0), (0, 0), (0, 1)]
        );
        assert_eq!(
            (merged[0].ok_by_second.as_slice(), merged[2].failed_by_second.as_slice()),
            (&[2][..], &[0, 1][..])
        );
    }

    #[test]
    fn endpoints_that_all_slots_share_have_requests_and_no_operations() {
        let mut shared = Endpoints::new(EndpointKind::Shared, vec!["a".into(), "b".into()], 0);
        shared.record(0, 1_000, false, &Outcome::success(10));
        shared.early(0);
        let mut told = [EndpointUse { ok: 3, bytes: 30, ..EndpointUse::default() }, EndpointUse::default()];
        told[1].faults.count(Fault::Refused);
        shared.requests(&told);
        shared.end_second(0);
        shared.requests(&told);
        shared.end_second(2);
        let uses = shared.finish();
        let numbers: Vec<_> = uses.iter().map(|one| (one.ok, one.early, one.faults.total())).collect();
        assert_eq!(numbers, [(6, 0, 0), (0, 0, 2)]);
        assert_eq!((uses[0].endpoint.as_str(), uses[0].bytes, uses[0].kind), ("a", 60, EndpointKind::Shared));
        assert_eq!(
            (&uses[0].ok_by_second[..], &uses[1].failed_by_second[..]),
            (&[3, 0, 3][..], &[1, 0, 1][..])
        );
    }

    #[test]
    fn a_single_endpoint_is_not_counted_twice() {
        let mut alone = Endpoints::new(EndpointKind::Endpoint, vec!["a".into()], 0);
        alone.record(0, 1, false, &Outcome::success(1));
        alone.early(0);
        assert!(alone.finish().is_empty());
    }
}
