//! The seconds of several sources (threads, drivers), added up and given out in order.

use std::collections::{BTreeMap, VecDeque};
use tidemark_measure::tally::{Interval, Tally};

/// A source that is so many seconds behind the foremost one is silent: those who look on do not wait for it.
const BEHIND: u32 = 3;

/// Emptied intervals kept for reuse, and seconds that can be counted into at once: their histograms are large. Sources add to the
/// foremost second and the one before it; one that catches up adds to another.
const READY: usize = 4;

/// What the other seconds may take while they wait, bytes.
const MOST_WAITING: usize = 256 << 20;

/// Seconds that are not complete yet.
pub(crate) struct Seconds {
    actions: usize,
    pending: BTreeMap<u32, Interval>,
    /// Those of them that were added to last, the last one at the end. All others are packed.
    ready: VecDeque<u32>,
    /// The memory of those that are packed, bytes.
    packed: usize,
    spare: Vec<Interval>,
    /// The first second that was not given out.
    next: u32,
    /// The first second that was not shown although it was not complete.
    shown: u32,
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
            ready: VecDeque::new(),
            packed: 0,
            spare: Vec::new(),
            next: 0,
            shown: 0,
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
        self.touch(index);
        let (spare, actions) = (&mut self.spare, self.actions);
        Some(self.pending.entry(index).or_insert_with(|| empty(spare, index, actions)))
    }

    /// Notes that a second is added to, and packs the one that was not for longest.
    fn touch(&mut self, index: u32) {
        if self.ready.back() == Some(&index) {
            return;
        }
        self.forget(index);
        self.ready.push_back(index);
        if self.ready.len() > READY
            && let Some(oldest) = self.ready.pop_front()
            && let Some(interval) = self.pending.get_mut(&oldest)
        {
            interval.pack();
            self.packed += interval.memory();
        }
    }

    /// Neither packed nor ready any more.
    fn forget(&mut self, index: u32) {
        match self.ready.iter().position(|ready| *ready == index) {
            Some(at) => drop(self.ready.remove(at)),
            None => self.packed -= self.pending.get(&index).map_or(0, Interval::memory),
        }
    }

    /// The sources that are furthest behind, if more waits for them than can be kept.
    pub(crate) fn held_up_by(&self) -> Vec<u32> {
        let waited_for = || (0..).zip(&self.sources).filter(|(_, source)| !source.is_gone);
        let last = waited_for().map(|(_, source)| source.passed).min().filter(|_| self.packed > MOST_WAITING);
        let is_last = |source: &Source| last.is_some_and(|last| source.passed == last);
        waited_for().filter(|(_, source)| is_last(source)).map(|(number, _)| number).collect()
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
        self.forget(index);
        let kept = self.pending.remove(&index);
        Some(kept.unwrap_or_else(|| empty(&mut self.spare, index, self.actions)))
    }

    /// The next second that is not complete only because some sources are far behind the foremost one, and those sources.
    /// Each is returned once.
    pub(crate) fn overdue(&mut self) -> Option<(&Interval, Vec<u32>)> {
        self.shown = self.shown.max(self.next);
        let foremost = self.sources.iter().filter_map(|source| source.passed).max()?;
        let index = Some(self.shown).filter(|shown| shown.saturating_add(BEHIND) <= foremost)?;
        let is_silent =
            |source: &Source| !source.is_gone && source.passed.is_none_or(|passed| passed < index);
        let silent = (0..).zip(&self.sources).filter(|(_, source)| is_silent(source));
        let silent: Vec<u32> = silent.map(|(number, _)| number).collect();
        self.shown += 1;
        let actions = self.actions;
        // One that nobody has added to takes no memory, and counts as packed.
        let interval = self.pending.entry(index).or_insert_with(|| empty(&mut Vec::new(), index, actions));
        Some((interval, silent))
    }

    /// Takes a second back when it has been looked at.
    pub(crate) fn recycle(&mut self, interval: Interval) {
        if self.spare.len() < READY {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn add(seconds: &mut Seconds, source: u32, indices: std::ops::Range<u32>) {
        for index in indices {
            seconds.of(source, index).unwrap().actions[0].ok += 1;
        }
    }

    #[test]
    fn a_source_far_ahead_takes_little_memory_and_loses_nothing() {
        let mut seconds = Seconds::new(2, 2);
        for index in 1..=2_000 {
            let second = seconds.of(0, index).unwrap();
            for tally in &mut second.actions {
                tally.ok += 1;
                [&mut tally.response, &mut tally.lag].map(|one| one.record(u64::from(index) * 1_000));
            }
        }
        let memory = |seconds: &Seconds| seconds.pending.values().map(Interval::memory).sum::<usize>();
        let one = seconds.pending.last_key_value().unwrap().1.memory();
        assert!(memory(&seconds) < (READY + 1) * one, "{} x {one}", memory(&seconds) / one);
        let packed = |seconds: &Seconds| {
            let others = seconds.pending.iter().filter(|(index, _)| !seconds.ready.contains(index));
            others.map(|(_, second)| second.memory()).sum::<usize>()
        };
        assert_eq!(seconds.packed, packed(&seconds));
        assert!(seconds.held_up_by().is_empty());
        // The other one catches up.
        for index in 0..=2_000 {
            seconds.of(1, index).unwrap().actions[0].response.record(5);
        }
        assert!(memory(&seconds) < (READY + 1) * one);
        let whole: Vec<_> = std::iter::from_fn(|| seconds.pop(false)).collect();
        assert_eq!(whole.len(), 2_001);
        assert!(
            whole[1..]
                .iter()
                .all(|one| (one.actions[0].response.count(), one.actions[1].lag.count()) == (2, 1))
        );
        assert_eq!((seconds.packed, seconds.ready.len()), (0, 0));
    }

    #[test]
    fn those_who_hold_up_more_than_can_be_kept_are_named() {
        let mut seconds = Seconds::new(1, 3);
        let mut wide = Tally::default();
        (0..60_000u64).for_each(|step| wide.response.record(step * step * 100));
        seconds.of(1, 0);
        for index in 0.. {
            seconds.of(0, index).unwrap().actions[0].add(&wide);
            if !seconds.held_up_by().is_empty() {
                break;
            }
            assert!(index < 10_000);
        }
        assert_eq!(seconds.held_up_by(), [2]);
        seconds.gone(2);
        assert_eq!(seconds.held_up_by(), [1]);
    }

    #[test]
    fn seconds_that_wait_for_a_silent_source_are_shown_once_and_given_out_when_they_are_whole() {
        let mut seconds = Seconds::new(1, 3);
        add(&mut seconds, 0, 0..6);
        add(&mut seconds, 1, 0..6);
        add(&mut seconds, 2, 0..2);
        assert_eq!([seconds.pop(false), seconds.pop(false)].map(|one| one.unwrap().actions[0].ok), [3, 3]);
        assert!(seconds.pop(false).is_none(), "it waits for the third");
        let (second, silent) = seconds.overdue().unwrap();
        assert_eq!((second.index, second.actions[0].ok, silent), (2, 2, vec![2]));
        assert!(seconds.overdue().is_none(), "one that is a little behind is waited for");
        add(&mut seconds, 0, 6..8);
        let shown =
            std::iter::from_fn(|| seconds.overdue().map(|(second, _)| second.index)).collect::<Vec<_>>();
        assert_eq!(shown, [3, 4]);
        add(&mut seconds, 2, 2..6);
        let whole = std::iter::from_fn(|| seconds.pop(false)).map(|one| (one.index, one.actions[0].ok));
        assert_eq!(whole.collect::<Vec<_>>(), [(2, 3), (3, 3), (4, 3), (5, 3)], "nothing of it is lost");
        add(&mut seconds, 1, 6..10);
        seconds.gone(2);
        assert_eq!(seconds.pop(false).map(|one| one.index), Some(6));
    }
}
