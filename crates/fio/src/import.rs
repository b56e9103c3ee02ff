//! fio's cumulative reports turned into seconds and totals.
//!
//! fio counts from a job's start, and anew from the end of its `ramp_time`. A [`Track`] follows one work in one process
//! and takes the differences of consecutive reports; [`Seconds`] puts the tracks of a work together, second by second.

use crate::json::{Direction, Job};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidemark_block::job::Action;
use tidemark_measure::record::LongestGap;
use tidemark_measure::tally::{Interval, Tally};

const SECOND_NS: u64 = 1_000_000_000;

/// A run time that exceeds a ramp by this much is not the ramp's, milliseconds.
const SLACK_MS: u64 = 500;

/// The part of a job that an action is.
pub(crate) fn part(job: &Job, action: Action) -> Option<&Direction> {
    match action {
        Action::Read => Some(&job.read),
        Action::Write => Some(&job.write),
        Action::Trim => Some(&job.trim),
        Action::Fsync | Action::Fdatasync => Some(&job.sync),
        Action::Remove => None,
    }
}

/// How many operations of an action a job has done; of syncs, those with a latency.
pub(crate) fn done(job: &Job, action: Action) -> u64 {
    match (part(job, action), action) {
        (Some(sync), Action::Fsync | Action::Fdatasync) => sync.lat_ns.count,
        (direction, _) => direction.map_or(0, |direction| direction.total_ios),
    }
}

/// A work's part of a report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    actions: Vec<Counter>,
    /// The longest run time of a job, milliseconds.
    pub(crate) runtime_ms: u64,
    /// Summed over its jobs, milliseconds.
    wall_ms: u64,
    cpu_ms: f64,
    /// Operations with a latency; fio takes none in a ramp.
    timed: u64,
}

#[derive(Clone, Debug, Default)]
struct Counter {
    done: u64,
    bytes: u64,
    bins: BTreeMap<u64, u64>,
}

impl Snapshot {
    /// The sum of a work's jobs. `in_turn`: they do one direction after the other.
    pub(crate) fn of<'a>(jobs: impl Iterator<Item = &'a Job>, actions: &[Action], in_turn: bool) -> Self {
        let mut sum = Self { actions: vec![Counter::default(); actions.len()], ..Self::default() };
        for job in jobs {
            for (counter, action) in sum.actions.iter_mut().zip(actions) {
                let Some(direction) = part(job, *action) else { continue };
                counter.done += done(job, *action);
                counter.bytes += direction.io_bytes;
                for (value, count) in &direction.latency().bins {
                    *counter.bins.entry(*value).or_default() += count;
                }
            }
            let runtimes = [&job.read, &job.write, &job.trim].map(|direction| direction.runtime);
            let longest = runtimes.into_iter().max().unwrap_or(0);
            let runtime = if in_turn { runtimes.iter().sum() } else { longest };
            sum.runtime_ms = sum.runtime_ms.max(runtime);
            sum.timed +=
                [&job.read, &job.write, &job.trim].map(|part| part.latency().count).iter().sum::<u64>();
            sum.wall_ms += job.job_runtime;
            sum.cpu_ms += (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime as f64;
        }
        sum
    }

    /// Operations done, over all actions.
    pub(crate) fn done(&self) -> u64 {
        self.actions.iter().map(|counter| counter.done).sum()
    }

    fn is_idle(&self) -> bool {
        self.runtime_ms == 0 && self.done() == 0
    }

    /// Whether a counter is lower than it was: fio began to count anew.
    fn is_set_back(&self, before: &Snapshot) -> bool {
        self.actions.iter().zip(&before.actions).any(|(now, then)| now.done < then.done)
    }

    /// Adds what was done since `before` to a tally for each action.
    fn add_since(&self, before: &Snapshot, tallies: &mut [Tally]) {
        let none = Counter::default();
        for (index, (counter, tally)) in self.actions.iter().zip(tallies).enumerate() {
            let then = before.actions.get(index).unwrap_or(&none);
            tally.ok += counter.done.saturating_sub(then.done);
            tally.bytes += counter.bytes.saturating_sub(then.bytes);
            for (value, count) in &counter.bins {
                let new = count.saturating_sub(then.bins.get(value).copied().unwrap_or(0));
                tally.response.record_many(*value, new);
            }
        }
    }

    /// The whole of it as a tally for each action.
    pub(crate) fn add_to(&self, tallies: &mut [Tally]) {
        self.add_since(&Snapshot::default(), tallies);
    }
}

/// One work in one process, report by report.
#[derive(Debug)]
pub(crate) struct Track {
    ramp_ms: u64,
    /// Whether fio still counts what it will forget at the end of the ramp.
    pub(crate) is_ramping: bool,
    last: Option<(Snapshot, Duration)>,
    index: Option<u32>,
    /// The longest run time since fio began to count: it is lost when a job is killed, milliseconds.
    pub(crate) runtime_ms: u64,
    /// Bytes of each action that fio has forgotten at the end of the ramp, as of its last report before.
    pub(crate) forgotten: Vec<u64>,
}

impl Track {
    pub(crate) fn new(ramp_ns: u64) -> Self {
        let ramp_ms = ramp_ns / 1_000_000;
        Self {
            ramp_ms,
            is_ramping: ramp_ns > 0,
            last: None,
            index: None,
            runtime_ms: 0,
            forgotten: Vec::new(),
        }
    }

    /// What is new in a report that came at `at`, in the second to which it belongs; `None` when the work has not
    /// begun, or is over.
    pub(crate) fn take(&mut self, now: Snapshot, at: Duration) -> Option<Interval> {
        let index = match (&self.last, self.index) {
            (Some((before, then)), Some(index)) => {
                if now.runtime_ms == before.runtime_ms && now.done() == before.done() {
                    return None;
                }
                let passed = at.saturating_sub(*then).as_millis() as u64;
                if now.is_set_back(before) {
                    self.begin_anew();
                }
                index + ((passed + 500) / 1_000) as u32
            }
            _ if now.is_idle() => return None,
            _ => ((now.runtime_ms + 500) / 1_000).saturating_sub(1) as u32,
        };
        // The second of these is for jobs that take no latencies (`gtod_reduce`).
        if self.is_ramping && (now.timed > 0 || now.runtime_ms > self.ramp_ms + SLACK_MS) {
            self.begin_anew();
        }
        self.runtime_ms = self.runtime_ms.max(now.runtime_ms);
        let nothing = Snapshot { actions: Vec::new(), ..Snapshot::default() };
        let before = self.last.as_ref().map_or(&nothing, |(before, _)| before);
        let mut interval = Interval::new(index, now.actions.len());
        let new = now.done().saturating_sub(before.done());
        match self.is_ramping {
            true => interval.unmeasured = new,
            false => now.add_since(before, &mut interval.actions),
        }
        if new > 0 {
            interval.first_ok_ns = Some(u64::from(index) * SECOND_NS);
            interval.last_ok_ns = Some(u64::from(index + 1) * SECOND_NS - 1);
        }
        interval.wall_ns = now.wall_ms.saturating_sub(before.wall_ms).saturating_mul(1_000_000);
        interval.cpu_ns = ((now.cpu_ms - before.cpu_ms).max(0.0) * 1e6) as u64;
        self.index = Some(index);
        self.last = Some((now, at));
        Some(interval)
    }

    fn begin_anew(&mut self) {
        if let Some((last, _)) = &self.last {
            self.forgotten = last.actions.iter().map(|counter| counter.bytes).collect();
        }
        (self.is_ramping, self.last, self.runtime_ms) = (false, None, 0);
    }
}

/// The seconds of one work, merged over its processes.
pub(crate) struct Seconds {
    /// Not yet reported; the first is number `next`.
    pending: VecDeque<Interval>,
    next: u32,
    actions: usize,
    /// The last second of each process; `None` in an `Ok`: it has not begun. `Err`: it has ended.
    reached: Vec<Result<Option<u32>, ()>>,
    pub(crate) last_ok_ns: u64,
    pub(crate) longest_gap: Option<LongestGap>,
}

/// Seconds further ahead than this are not waited for: a clock or a report is wrong.
const FURTHEST: u32 = 3_600;

impl Seconds {
    pub(crate) fn new(actions: usize, processes: usize) -> Self {
        let reached = vec![Ok(None); processes];
        Self { pending: VecDeque::new(), next: 0, actions, reached, last_ok_ns: 0, longest_gap: None }
    }

    /// The end of the last second that anything is known of, nanoseconds.
    pub(crate) fn end_ns(&self) -> u64 {
        (u64::from(self.next) + self.pending.len() as u64) * SECOND_NS
    }

    /// Adds what a process did in a second; what is new in a second that was already reported counts to the next one.
    pub(crate) fn add(&mut self, process: usize, mut interval: Interval) {
        interval.index = interval.index.clamp(self.next, self.next.saturating_add(FURTHEST));
        let ahead = (interval.index - self.next) as usize;
        while self.pending.len() <= ahead {
            self.pending.push_back(Interval::new(self.next + self.pending.len() as u32, self.actions));
        }
        self.reached[process] = Ok(Some(interval.index));
        self.pending[ahead].add(&interval);
    }

    pub(crate) fn end(&mut self, process: usize) {
        self.reached[process] = Err(());
    }

    /// The next second that no process adds to any more; with `all` any that is left.
    pub(crate) fn next(&mut self, all: bool) -> Option<Interval> {
        let first = self.pending.front()?.index;
        let open = |reached: &Result<Option<u32>, ()>| {
            reached.is_ok_and(|last| last.is_none_or(|last| last <= first))
        };
        if !all && self.reached.iter().any(open) {
            return None;
        }
        let interval = self.pending.pop_front()?;
        self.next += 1;
        if let (Some(from), Some(to)) = (interval.first_ok_ns, interval.last_ok_ns) {
            self.hear(from);
            self.last_ok_ns = to;
        }
        Some(interval)
    }

    /// The second that what is learnt at the end belongs to: the last one.
    pub(crate) fn last(&mut self) -> &mut Interval {
        if self.pending.is_empty() {
            self.pending.push_back(Interval::new(self.next, self.actions));
        }
        self.pending.back_mut().expect("one was put there if there was none")
    }

    /// Notes that something succeeded, or that the load ended, at `at`.
    pub(crate) fn hear(&mut self, at: u64) {
        let longest_gap = LongestGap { from_ns: self.last_ok_ns.min(at), to_ns: at };
        if self.longest_gap.is_none_or(|longest| longest_gap.length_ns() > longest.length_ns()) {
            self.longest_gap = Some(longest_gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Latency;

    const READ: [Action; 1] = [Action::Read];

    fn report(ios: u64, runtime: u64) -> Snapshot {
        timed(ios, runtime, ios)
    }

    /// A report with latencies of only this many.
    fn timed(ios: u64, runtime: u64, count: u64) -> Snapshot {
        let clat_ns = Latency { count, bins: BTreeMap::from([(1_000, count)]), ..Latency::default() };
        let read =
            Direction { total_ios: ios, io_bytes: ios * 4096, runtime, clat_ns, ..Direction::default() };
        let job = Job { read, job_runtime: runtime, usr_cpu: 50.0, ..Job::default() };
        Snapshot::of([job].iter(), &READ, false)
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn told(track: &mut Track, reports: &[(u64, u64, u64)]) -> Vec<(u32, u64, u64)> {
        let take = |(ios, runtime, came): &(u64, u64, u64)| track.take(report(*ios, *runtime), at(*came));
        reports.iter().filter_map(take).map(|interval| tell(&interval)).collect()
    }

    fn tell(interval: &Interval) -> (u32, u64, u64) {
        (interval.index, interval.actions[0].ok, interval.unmeasured)
    }

    #[test]
    fn cumulative_reports_become_seconds() {
        let reports =
            [(0, 0, 300), (90, 870, 1_000), (190, 1_871, 2_001), (290, 2_872, 3_002), (300, 3_000, 3_130)];
        let seconds = told(&mut Track::new(0), &reports);
        assert_eq!(seconds, [(0, 90, 0), (1, 100, 0), (2, 100, 0), (2, 10, 0)]);
        let again = [(90, 900, 1_000), (90, 900, 2_000), (90, 900, 3_000)];
        assert_eq!(told(&mut Track::new(0), &again), [(0, 90, 0)], "a job that is over has no more seconds");
    }

    #[test]
    fn what_a_ramp_forgets_is_not_measured() {
        // The counters go down; they need not, when little was done in the ramp.
        for after in [60, 300] {
            let mut track = Track::new(2_000_000_000);
            let reports =
                [(100, 900, 0), (200, 1_900, 0), (after, 950, after), (after + 100, 1_950, after + 100)];
            let come = |(second, (ios, runtime, count)): (u64, (u64, u64, u64))| {
                track.take(timed(ios, runtime, count), at(1_000 + second * 1_000))
            };
            let seconds: Vec<_> =
                (0..).zip(reports).filter_map(come).map(|interval| tell(&interval)).collect();
            assert_eq!(seconds, [(0, 0, 100), (1, 0, 100), (2, after, 0), (3, 100, 0)]);
        }
        let mut track = Track::new(500_000_000);
        let seconds = [track.take(timed(50, 400, 0), at(1_000)), track.take(timed(150, 1_400, 0), at(2_000))];
        let seconds: Vec<_> = seconds.into_iter().flatten().map(|interval| tell(&interval)).collect();
        assert_eq!(
            seconds,
            [(0, 0, 50), (1, 150, 0)],
            "without latencies the run time tells that the ramp is over"
        );
    }

    #[test]
    fn a_stall_shows_as_seconds_without_success() {
        let seconds = told(&mut Track::new(0), &[(100, 1_000, 1_000), (200, 5_000, 5_000)]);
        assert_eq!(seconds, [(0, 100, 0), (4, 100, 0)]);
        let mut merged = Seconds::new(1, 1);
        let mut track = Track::new(0);
        for (ios, runtime) in [(100, 1_000), (200, 5_000)] {
            merged.add(0, track.take(report(ios, runtime), at(runtime)).unwrap());
        }
        let ok: Vec<u64> = std::iter::from_fn(|| merged.next(true)).map(|i| i.actions[0].ok).collect();
        assert_eq!(ok, [100, 0, 0, 0, 100]);
        assert_eq!(merged.longest_gap.unwrap().length_ns(), 3 * SECOND_NS + 1);
    }

    #[test]
    fn seconds_wait_for_every_process_that_runs() {
        let mut seconds = Seconds::new(1, 2);
        let second = |index, process, seconds: &mut Seconds| {
            let mut interval = Interval::new(index, 1);
            interval.actions[0].ok = 10;
            seconds.add(process, interval);
        };
        second(0, 0, &mut seconds);
        second(1, 0, &mut seconds);
        assert!(seconds.next(false).is_none(), "the other process has not begun");
        second(0, 1, &mut seconds);
        assert!(seconds.next(false).is_none(), "its last report may come yet");
        second(1, 1, &mut seconds);
        assert_eq!(seconds.next(false).unwrap().actions[0].ok, 20);
        seconds.end(1);
        assert!(seconds.next(false).is_none());
        seconds.end(0);
        assert_eq!(seconds.next(false).unwrap().actions[0].ok, 20);
    }

    #[test]
    fn processor_time_is_a_share_of_run_time() {
        let interval = Track::new(0).take(report(10, 1_000), at(1_000)).unwrap();
        assert_eq!((interval.cpu_ns, interval.wall_ns), (500_000_000, 1_000_000_000));
    }
}
