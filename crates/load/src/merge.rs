//! A work's seconds from all its sources become one result: the same code for threads and for drivers.
//!
//! It uses neither threads nor connections nor a clock: its owner passes in the input, reads its
//! [`Decision`]s, carries them out, and reports when. All times are nanoseconds since the work's start.

use crate::endpoints::merged;
use crate::pacing::Pacing;
use crate::recorder::INTERVAL_NS;
use crate::seconds::Seconds;
use crate::stopping::{Phases, Stop};
use crate::thread_pool::{EXAMPLES_PER_FAULT, Ending, Result, Watch};
use crate::work::Work;
use std::collections::VecDeque;
use tidemark_measure::record::{Example, LongestGap, Settling};
use tidemark_measure::steady;
use tidemark_measure::tally::{Interval, Tally};
use tidemark_measure::wire::{self, Damaged, Sparse};

/// How many seconds a driver may be ahead of those that are complete: it is given up long before the others are so far.
pub const MOST_AHEAD: u32 = 4_096;

/// A driver's second is complete when it is over. Clocks are compared to milliseconds; this is for what they may be wrong by.
const CLOCKS_DIFFER_NS: u64 = 5_000_000_000;

/// What the load of a work has shown, for all its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is steady, or has had the time that it may take: open the window, and say so by [`Merge::window_opened`].
    OpenWindow,
    /// The window has been steady for as long as was asked for: end the load, and say so by [`Merge::ended_early`].
    EndWindow,
    /// Nothing has succeeded for too long: end the load, and say so by [`Merge::ended_early`].
    GiveUp,
}

/// Adds up the seconds of a work's sources, in order, and watches over the work as a whole.
pub struct Merge {
    stop: Stop,
    pacing: Pacing,
    seconds: Seconds,
    tallies: Vec<Tally>,
    last_ok_ns: u64,
    longest_gap: Option<LongestGap>,
    failed_since_ok: u64,
    /// The rounds so far, and the operations and nanoseconds of the current one.
    settling: Option<Settling>,
    round: (u64, u64),
    is_settled: bool,
    /// The same of the window's rounds, where they can end it.
    window_rounds: Option<Settling>,
    window_round: (u64, u64),
    given_up: String,
    decisions: VecDeque<Decision>,
    /// When the window opened, where that was not fixed in advance.
    window: Option<u64>,
    /// When the load was ended early.
    ended: Option<u64>,
    /// The last second that drivers can know of.
    latest: u32,
}

impl Merge {
    /// Of a work whose seconds come from this many sources, numbered from 0.
    pub fn new(work: &Work, sources: u32) -> Self {
        Self {
            stop: work.stop,
            pacing: work.pacing.clone(),
            seconds: Seconds::new(work.actions, sources),
            tallies: vec![Tally::default(); usize::from(work.actions)],
            last_ok_ns: 0,
            longest_gap: None,
            failed_since_ok: 0,
            settling: work.stop.steady.map(|s| Settling { round_ns: s.round_ns, ..Settling::default() }),
            round: (0, 0),
            is_settled: false,
            window_rounds: work
                .stop
                .until_steady_ns
                .map(|round_ns| Settling { round_ns, ..Settling::default() }),
            window_round: (0, 0),
            given_up: String::new(),
            decisions: VecDeque::new(),
            window: None,
            ended: None,
            latest: u32::MAX - 1,
        }
    }

    /// Adds a source's second. Sources send theirs in order; one that was given out already, because the source was
    /// gone, is dropped.
    pub fn take(&mut self, source: u32, interval: &Interval) {
        if let Some(sum) = self.seconds.of(source, interval.index) {
            sum.add(interval);
        }
    }

    /// It is `now_ns`: what drivers say of seconds that have not been yet is refused from now on.
    pub fn clock(&mut self, now_ns: u64) {
        let latest = now_ns.saturating_add(CLOCKS_DIFFER_NS) / INTERVAL_NS;
        self.latest = u32::try_from(latest).unwrap_or(u32::MAX).min(u32::MAX - 1);
    }

    /// The sources that are furthest behind, if more waits for them than can be kept in memory: they have to be given up.
    pub fn held_up_by(&self) -> Vec<u32> {
        self.seconds.held_up_by()
    }

    /// Adds a second as received from a driver, and returns it.
    ///
    /// # Errors
    /// When it cannot be read, or cannot be a second of this work. Nothing of it counts then.
    pub fn take_encoded<'a>(
        &mut self,
        source: u32,
        bytes: &'a [u8],
    ) -> std::result::Result<Sparse<'a>, Damaged> {
        let second = wire::read(bytes)?;
        second.must_have(self.tallies.len())?;
        let (index, next) = (second.index(), self.seconds.next());
        if index > self.latest {
            return Err(Damaged(format!("it is second {index}, which has not been yet")));
        }
        if index > next.saturating_add(MOST_AHEAD) {
            return Err(Damaged(format!("it is second {index} while the others are at {next}")));
        }
        if let Some(passed) = self.seconds.passed(source).filter(|passed| index <= *passed) {
            return Err(Damaged(format!("it is second {index} after second {passed}")));
        }
        if let Some(sum) = self.seconds.of(source, index) {
            second.add_to(sum);
        }
        Ok(second)
    }

    /// A source has ended or is lost: the merge no longer waits for its seconds.
    pub fn gone(&mut self, source: u32) {
        self.seconds.gone(source);
    }

    /// Passes every second that all remaining sources have completed to the watch.
    pub fn emit(&mut self, watch: &mut dyn Watch) {
        self.give(watch, false);
    }

    /// Gives all seconds to the watch.
    pub fn flush(&mut self, watch: &mut dyn Watch) {
        self.give(watch, true);
    }

    fn give(&mut self, watch: &mut dyn Watch, all: bool) {
        while let Some(interval) = self.seconds.pop(all) {
            for (total, second) in self.tallies.iter_mut().zip(&interval.actions) {
                total.add(second);
            }
            self.listen(&interval);
            self.settle(&interval);
            self.follow_window(&interval);
            watch.interval(&interval);
            self.seconds.recycle(interval);
        }
    }

    /// The next second that waits only for sources which are far behind the others, as far as it is known, and those sources.
    /// It is returned once, and given to the watch when it is complete.
    pub fn overdue(&mut self) -> Option<(&Interval, Vec<u32>)> {
        self.seconds.overdue()
    }

    /// What to do now: each decision is returned once.
    pub fn decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// The window of a load that had to become steady opens, or opened, at `at_ns`: the same for all sources.
    pub fn window_opened(&mut self, at_ns: u64) {
        self.window.get_or_insert(at_ns);
    }

    /// The load was ended at `at_ns`, before its time.
    pub fn ended_early(&mut self, at_ns: u64) {
        self.ended = Some(self.ended.map_or(at_ns, |ended| ended.min(at_ns)));
    }

    /// Follows the times without a success, and gives the work up when one is too long.
    fn listen(&mut self, interval: &Interval) {
        if let (Some(first), Some(last)) = (interval.first_ok_ns, interval.last_ok_ns) {
            self.hear(first);
            self.last_ok_ns = last;
            self.failed_since_ok = 0;
        }
        let failed = interval.actions.iter().map(Tally::failed).fold(0, u64::saturating_add);
        self.failed_since_ok = self.failed_since_ok.saturating_add(failed);
        let Some(patience) = self.stop.give_up_ns else { return };
        let now = (u64::from(interval.index) + 1) * INTERVAL_NS;
        let silent = now.saturating_sub(self.last_ok_ns);
        let troubled = self.failed_since_ok > 0 || interval.oldest_in_flight_ns >= patience;
        if troubled && silent >= patience && self.given_up.is_empty() {
            self.given_up = format!("no operation succeeded for {:.0} s", silent as f64 / 1e9);
            self.decisions.push_back(Decision::GiveUp);
        }
    }

    /// Counts rounds until they are steady, then has the window opened.
    fn settle(&mut self, interval: &Interval) {
        let (Some(rule), Some(settling)) = (self.stop.steady, &mut self.settling) else { return };
        let begins = u64::from(interval.index) * INTERVAL_NS;
        if begins < self.stop.warm_ns() || self.is_settled {
            return;
        }
        self.round = (self.round.0.saturating_add(interval.unmeasured), self.round.1 + INTERVAL_NS);
        if self.round.1 < rule.round_ns {
            return;
        }
        settling.rounds.push(self.round.0 as f64 * 1e9 / self.round.1 as f64);
        self.round = (0, 0);
        settling.steady = steady::reached(&settling.rounds);
        if settling.steady || settling.rounds.len() >= rule.most_rounds as usize {
            self.is_settled = true;
            self.decisions.push_back(Decision::OpenWindow);
        }
    }

    /// Counts the rounds of the window until they are steady, then has the load ended. Seconds that lie only partly in the
    /// window are in no round.
    fn follow_window(&mut self, interval: &Interval) {
        let opened = match self.stop.steady {
            None => Some(self.stop.warm_ns()),
            Some(_) => self.window,
        };
        let (Some(opened), Some(rounds)) = (opened, &mut self.window_rounds) else { return };
        if u64::from(interval.index) * INTERVAL_NS < opened || rounds.steady || self.ended.is_some() {
            return;
        }
        let ok = interval.actions.iter().map(|tally| tally.ok).fold(0, u64::saturating_add);
        self.window_round = (self.window_round.0.saturating_add(ok), self.window_round.1 + INTERVAL_NS);
        if self.window_round.1 < rounds.round_ns {
            return;
        }
        rounds.rounds.push(self.window_round.0 as f64 * 1e9 / self.window_round.1 as f64);
        self.window_round = (0, 0);
        rounds.steady = steady::reached(&rounds.rounds);
        if rounds.steady {
            self.decisions.push_back(Decision::EndWindow);
        }
    }

    /// Notes that something succeeded, or that the load ended, at `at`.
    fn hear(&mut self, at: u64) {
        let longest_gap = LongestGap { from_ns: self.last_ok_ns, to_ns: at };
        if self.longest_gap.is_none_or(|longest| longest_gap.length_ns() > longest.length_ns()) {
            self.longest_gap = Some(longest_gap);
        }
    }

    /// The phases as they came to be. A load that was ended before its window opened has an empty one at its end.
    fn phases(&self) -> Phases {
        match (self.stop.steady, self.window, self.ended) {
            (None, ..) => self.stop.phases(),
            (Some(_), Some(start), _) => self.stop.phases_from(start),
            (Some(_), None, ended) => {
                let at = ended.unwrap_or(0);
                Phases { window_start: at, window_end: at, load_end: at }
            }
        }
    }

    /// The whole work's result, of the seconds that were given to the watch and of what each source left behind. Where the sources kept their
    /// results together, they are added up.
    pub fn result(mut self, mut endings: Vec<Ending>) -> Result {
        let wholes = endings.iter_mut().filter_map(|ending| ending.whole.take());
        if let Some(whole) = wholes.map(|whole| *whole).reduce(together) {
            return whole;
        }
        let latest = |time: fn(&Ending) -> u64| endings.iter().map(time).max().unwrap_or(0);
        let sum = |count: fn(&Ending) -> u64| endings.iter().map(count).fold(0, u64::saturating_add);
        let phases = self.phases();
        let ended = self.ended.unwrap_or(u64::MAX);
        // A count or a volume ends the window with the last operation; a time ends it on time.
        let planned = match phases.window_end {
            u64::MAX => latest(|ending| ending.last_measured_ns),
            window_end => window_end,
        };
        let window_end_ns = planned.min(ended).max(phases.window_start);
        let load_end = match phases.load_end {
            u64::MAX => latest(|ending| ending.load_done_ns),
            load_end => load_end,
        };
        self.hear(load_end.min(ended).max(self.last_ok_ns));
        let offered_rate = match &self.pacing {
            Pacing::Closed { .. } | Pacing::Terminals { .. } => None,
            Pacing::Open { rate, .. } => {
                let ramped = rate.with_ramp(self.stop.ramp_up_ns);
                Some(ramped.mean_between(phases.window_start, window_end_ns))
            }
        };
        // Sources take the end of a window that is steady for the user's stop request.
        let is_steady = self.window_rounds.as_ref().is_some_and(|rounds| rounds.steady);
        let is_interrupted = endings.iter().any(|ending| ending.interrupted) && !is_steady;
        let mut workers: Vec<_> = endings.iter().flat_map(|ending| ending.workers.iter().copied()).collect();
        workers.sort_by_key(|count| (count.worker, count.operation));
        Result {
            window_start_ns: phases.window_start,
            window_end_ns,
            last_done_ns: latest(|ending| ending.last_done_ns),
            offered_rate,
            workers,
            endpoints: merged(endings.iter().flat_map(|ending| &ending.endpoints)),
            examples: first_examples(endings.iter().flat_map(|ending| &ending.examples)),
            unsent: sum(|ending| ending.unsent),
            undone: match is_interrupted || !self.given_up.is_empty() {
                true => sum(|ending| ending.undone),
                false => 0,
            },
            unknown: 0,
            threads: endings.iter().map(|ending| ending.threads).fold(0, u32::saturating_add),
            // To the sources giving up looks like the user's stop request.
            interrupted: is_interrupted && self.given_up.is_empty(),
            tallies: self.tallies,
            longest_gap: self.longest_gap,
            settling: self.settling,
            window_rounds: self.window_rounds,
            given_up: self.given_up,
            reported: Vec::new(),
            remarks: Vec::new(),
        }
    }
}

/// The results of two parts of a work that ran side by side, as one.
fn together(mut one: Result, other: Result) -> Result {
    one.tallies.resize(one.tallies.len().max(other.tallies.len()), Tally::default());
    one.tallies.iter_mut().zip(&other.tallies).for_each(|(own, other)| own.add(other));
    // Figures without counts cannot be added up.
    one.reported.clear();
    one.window_start_ns = one.window_start_ns.min(other.window_start_ns);
    one.window_end_ns = one.window_end_ns.max(other.window_end_ns);
    one.last_done_ns = one.last_done_ns.max(other.last_done_ns);
    one.offered_rate = one.offered_rate.zip(other.offered_rate).map(|(own, other)| own + other);
    one.workers.extend(other.workers);
    one.workers.sort_by_key(|count| (count.worker, count.operation));
    one.endpoints = merged(one.endpoints.iter().chain(&other.endpoints));
    one.examples = first_examples(one.examples.iter().chain(&other.examples));
    one.longest_gap = None;
    one.unsent = one.unsent.saturating_add(other.unsent);
    one.undone = one.undone.saturating_add(other.undone);
    one.threads = one.threads.saturating_add(other.threads);
    if one.given_up.is_empty() {
        one.given_up = other.given_up;
    }
    one.interrupted |= other.interrupted;
    for remark in other.remarks {
        if !one.remarks.contains(&remark) {
            one.remarks.push(remark);
        }
    }
    one
}

/// The first few examples of each class.
pub(crate) fn first_examples<'a>(all: impl Iterator<Item = &'a Example>) -> Vec<Example> {
    let mut first: Vec<Example> = Vec::new();
    for example in all {
        if first.iter().filter(|kept| kept.fault == example.fault).count() < EXAMPLES_PER_FAULT {
            first.push(example.clone());
        }
    }
    first
}

#[cfg(test)]
mod tests;
