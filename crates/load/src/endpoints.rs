//! What operations did at each of a target's endpoints: one of many that is dead or slow shows nowhere else.

use crate::engine::Outcome;
use tidemark_measure::record::EndpointUse;

/// One thread's counts. Slot `s` of a work talks to endpoint `s` modulo their number.
pub struct Endpoints {
    uses: Vec<EndpointUse>,
    first_slot: u32,
}

impl Endpoints {
    /// Counts for these endpoints, of a session whose first slot has this number within the work. For fewer than two
    /// nothing is counted: the operations' own numbers say the same.
    pub fn new(names: Vec<String>, first_slot: u32) -> Self {
        let names = if names.len() > 1 { names } else { Vec::new() };
        let ready = |endpoint| {
            let mut own = EndpointUse { endpoint, ..EndpointUse::default() };
            // Whoever counts into it must not have to wait for memory then.
            own.response.ready();
            own
        };
        Self { uses: names.into_iter().map(ready).collect(), first_slot }
    }

    /// Counts a measured operation of a slot of the session.
    #[inline]
    pub fn record(&mut self, slot: u32, response_ns: u64, outcome: &Outcome) {
        if self.uses.is_empty() {
            return;
        }
        let index = endpoint_of(self.first_slot, slot, self.uses.len());
        let own = &mut self.uses[index];
        match outcome.fault {
            None => {
                own.ok += 1;
                own.bytes += outcome.bytes;
                own.response.record(response_ns);
            }
            Some(fault) => own.faults.count(fault),
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
        let mut threads = [Endpoints::new(names(), 0), Endpoints::new(names(), 4)];
        for slot in 0..4 {
            threads[0].record(slot, 1_000, &Outcome::success(10));
        }
        threads[1].record(1, 1_000, &Outcome::failure(Fault::Refused));
        let counted: Vec<_> = threads.into_iter().map(Endpoints::finish).collect();
        let merged = merged(counted.iter().flatten());
        let numbers: Vec<_> =
            merged.iter().map(|one| (one.endpoint.as_str(), one.ok, one.bytes, one.faults.total())).collect();
        assert_eq!(numbers, [("a", 2, 20, 0), ("b", 1, 10, 0), ("c", 1, 10, 1)]);
        assert_eq!(merged[0].response.count(), 2);
    }

    #[test]
    fn a_single_endpoint_is_not_counted_twice() {
        let mut alone = Endpoints::new(vec!["a".into()], 0);
        alone.record(0, 1, &Outcome::success(1));
        assert!(alone.finish().is_empty());
    }
}
