//! The seconds of several sources (threads, drivers), added up and given out in order.

use std::collections::BTreeMap;
use tidemark_measure::tally::{Interval, Tally};

/// Emptied intervals kept for reuse: their histograms are large.
const SPARES: usize = 4;

/// Seconds that are not complete yet.
pub(crate) struct Seconds {
    actions: usize,
    pending: BTreeMap<u32, Interval>,
    spare: Vec<Interval>,
    /// The first second that was not given out.
    next: u32,
    sources: Vec<Source>,
}

#[derive(Clone, Copy, Default)]
struct Source {
    /// The last second that it is through with.
    passed: Option<u32>,
    is_gone: bool,
}

impl Seconds {
    /// No seconds yet, for works with this many actions.
    pub(crate) fn new(actions: u16, sources: u32) -> Self {
        Self {
            actions: usize::from(actions),
            pending: BTreeMap::new(),
            spare: Vec::new(),
            next: 0,
            sources: vec![Source::default(); sources as usize],
        }
    }

    /// The first second that was not given out.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// The last second that a source is through with.
    pub(crate) fn passed(&self, source: u32) -> Option<u32> {
        self.sources[source as usize].passed
    }

    /// The sum that a source's second is to be added to; `None` when it was given out already. With it the source is
    /// through with this second and all before it.
    pub(crate) fn of(&mut self, source: u32, index: u32) -> Option<&mut Interval> {
        let source = &mut self.sources[source as usize];
        source.passed = source.passed.max(Some(index));
        if index < self.next {
            return None;
        }
        let (spare, actions) = (&mut self.spare, self.actions);
        Some(self.pending.entry(index).or_insert_with(|| empty(spare, index, actions)))
    }

    /// Nobody waits for this source any more.
    pub(crate) fn gone(&mut self, source: u32) {
        self.sources[source as usize].is_gone = true;
    }

    /// The next second, if all sources that are not gone are through with it, or with `all` if there is any. One in
    /// without any sample is included.
    pub(crate) fn pop(&mut self, all: bool) -> Option<Interval> {
        let waited_for = self.sources.iter().filter(|source| !source.is_gone).map(|source| source.passed);
        let complete = match waited_for.min() {
            Some(passed) if !all => passed,
            _ => self.pending.last_key_value().map(|(index, _)| *index),
        };
        let index = complete.filter(|complete| self.next <= *complete).map(|_| self.next)?;
        self.next += 1;
        let kept = self.pending.remove(&index);
        Some(kept.unwrap_or_else(|| empty(&mut self.spare, index, self.actions)))
    }

    /// Takes a second back when it has been looked at.
    pub(crate) fn recycle(&mut self, interval: Interval) {
        if self.spare.len() < SPARES {
            self.spare.push(interval);
        }
    }
}

/// An empty second. Unlike [`Interval::new`] it takes memory for what counts only: there may be many, and nobody is
/// measured while they are counted into.
fn empty(spare: &mut Vec<Interval>, index: u32, actions: usize) -> Interval {
    let fresh = || Interval { actions: vec![Tally::default(); actions], ..Interval::default() };
    let mut interval = spare.pop().unwrap_or_else(fresh);
    interval.reset(index);
    interval
}
