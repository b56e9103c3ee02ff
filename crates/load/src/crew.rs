//! All seats of a work on this machine: opened, started together, merged second by second.

use crate::engine::{Clock, Engine, OpenError, Seat as SeatPlan, Tick};
use crate::pacing::Pacing;
use crate::recorder::{INTERVAL_NS, Outlet, Recorder};
use crate::seat::{Harvest, Seat};
use crate::stopping::Phases;
use crate::work::Work;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidemark_measure::record::{Example, Settling, Silence, WorkerCount};
use tidemark_measure::steady;
use tidemark_measure::tally::{Interval, Tally};

/// How long operations in flight may take when the work is ended early.
pub const EARLY_DRAIN_NS: u64 = 3_000_000_000;

/// How many failures of each class are kept word for word.
pub const EXAMPLES_PER_FAULT: usize = 3;

/// The crew's and the user's word to the seats: shared, read once per loop, never locked.
#[derive(Debug)]
pub struct Control {
    end: AtomicU64,
    window: AtomicU64,
    abandon: AtomicBool,
    bytes_left: AtomicI64,
}

impl Control {
    /// Nothing said yet; `bytes` may be moved in all.
    fn new(bytes: Option<u64>) -> Self {
        Self {
            end: AtomicU64::new(u64::MAX),
            window: AtomicU64::new(u64::MAX),
            abandon: AtomicBool::new(false),
            bytes_left: AtomicI64::new(bytes.map_or(i64::MAX, |bytes| bytes.min(i64::MAX as u64) as i64)),
        }
    }

    /// When the load was ended early, if it was.
    pub fn end(&self) -> Option<Tick> {
        Some(self.end.load(Ordering::Relaxed)).filter(|end| *end != u64::MAX)
    }

    /// When the window was opened, where that was not fixed in advance.
    pub fn window(&self) -> Option<Tick> {
        Some(self.window.load(Ordering::Relaxed)).filter(|start| *start != u64::MAX)
    }

    /// Ends the load at `at`: what is in flight may finish.
    fn end_at(&self, at: Tick) {
        self.end.fetch_min(at, Ordering::Relaxed);
    }

    /// Whether operations in flight are to be given up as well.
    pub fn abandons(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// Takes bytes off the work's volume; false when nothing was left.
    pub fn take_bytes(&self, bytes: u64) -> bool {
        self.bytes_left.fetch_sub(bytes.min(i64::MAX as u64) as i64, Ordering::Relaxed) > 0
    }
}

/// What the user wants of a work that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Go on.
    GoOn,
    /// End the load, let what is in flight finish.
    Finish,
    /// Stop at once.
    Stop,
}

/// What a work's crew reports while it runs, and asks.
pub trait Watch {
    /// A second is complete: merged over all threads, in order.
    fn interval(&mut self, interval: &Interval);
    /// What the user wants; asked several times a second.
    fn wish(&mut self) -> Wish;
}

/// What a work left behind. Times are nanoseconds since the work's start.
#[derive(Clone, Debug, Default)]
pub struct Result {
    /// One tally per action, over the window.
    pub tallies: Vec<Tally>,
    /// When the window began.
    pub window_start_ns: u64,
    /// When it ended.
    pub window_end_ns: u64,
    /// When the last operation ended.
    pub last_done_ns: u64,
    /// Operations per second that an open loop offered on average over the window.
    pub offered_rate: Option<f64>,
    /// Counts of each worker.
    pub workers: Vec<WorkerCount>,
    /// The first failures of each class.
    pub examples: Vec<Example>,
    /// The longest time without a success.
    pub silence: Option<Silence>,
    /// Open loop: due in the window, never sent.
    pub unsent: u64,
    /// Asked for by the plan, never begun.
    pub undone: u64,
    /// Generator threads.
    pub threads: u32,
    /// How the load became steady, where the stop rule waits for that.
    pub settling: Option<Settling>,
    /// Why the work was given up, or empty.
    pub given_up: String,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// How the numbers came about, where that is not the load core's own way: whole sentences.
    pub remarks: Vec<String>,
}

/// Runs a whole work on `threads` threads of this machine (never more than it has workers).
pub fn run(
    work: &Work,
    engine: &dyn Engine,
    threads: u32,
    watch: &mut dyn Watch,
) -> std::result::Result<Result, OpenError> {
    let threads = threads.clamp(1, work.workers.max(1));
    let clock = Clock::starting_at(Instant::now());
    let control = Control::new(work.stop.bytes);
    let (full_in, full_out) = unbounded();
    std::thread::scope(|scope| {
        let (ready_in, ready_out) = bounded(threads as usize);
        let (mut starts, mut returns, mut handles) = (Vec::new(), Vec::new(), Vec::new());
        for thread in 0..threads {
            let (empty_in, empty_out) = bounded(8);
            let (start_in, start_out) = bounded(1);
            let outlet = Outlet { full: full_in.clone(), empty: empty_out, thread };
            let gate = Gate { ready: ready_in.clone(), start: start_out };
            let control = &control;
            let body = move || sit(work, engine, control, &gate, clock, (thread, threads), outlet);
            let name = format!("load-{thread}");
            // Returning early drops `starts`, which sends the threads already waiting home.
            let handle = std::thread::Builder::new().name(name).spawn_scoped(scope, body);
            handles.push(handle.map_err(|error| OpenError(format!("cannot start a thread: {error}")))?);
            returns.push(empty_in);
            starts.push(start_in);
        }
        drop((full_in, ready_in));
        let all_opened =
            ready_out.iter().take(threads as usize).filter(|opened| *opened).count() == threads as usize;
        let origin = clock.now();
        if all_opened {
            // A thread that is gone has already said why.
            for start in &starts {
                let _ = start.send(origin);
            }
        }
        drop(starts);
        let mut merge = Merge::new(work, &control, clock, origin, threads, returns);
        merge.follow(&full_out, watch);
        let mut harvests = Vec::new();
        for handle in handles {
            match handle.join() {
                Ok(harvest) => harvests.extend(harvest?),
                Err(_) => return Err(OpenError("a load thread crashed; please report this as a bug".into())),
            }
        }
        Ok(merge.result(&harvests))
    })
}

/// Where a thread waits between opening its session and starting the load.
struct Gate {
    /// Takes whether the session could be opened; closed when every thread has said so.
    ready: Sender<bool>,
    /// Gives the start, or closes when there will be none.
    start: Receiver<Tick>,
}

fn sit(
    work: &Work,
    engine: &dyn Engine,
    control: &Control,
    gate: &Gate,
    clock: Clock,
    (thread, threads): (u32, u32),
    outlet: Outlet,
) -> std::result::Result<Option<Harvest>, OpenError> {
    // The kernel rounds sleeps up by 50 us unless told otherwise; due times are kept to the microsecond.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let first = (u64::from(work.workers) * u64::from(thread) / u64::from(threads)) as u32;
    let next = (u64::from(work.workers) * u64::from(thread + 1) / u64::from(threads)) as u32;
    let count = next - first;
    let opened = engine.open(SeatPlan {
        clock,
        thread,
        first_lane: first.saturating_mul(work.depth.max(1)),
        lanes: count.saturating_mul(work.depth.max(1)),
        largest: work.source.largest(),
        seed: work.seed,
    });
    let _ = gate.ready.send(opened.is_ok());
    let session = opened?;
    let Ok(origin) = gate.start.recv() else { return Ok(None) };
    let open_loop = matches!(work.pacing, Pacing::Open { .. });
    let recorder = Recorder::new(origin, work.actions, first, count, open_loop, outlet);
    Ok(Some(Seat::new(work, control, clock, origin, (first, count), session, recorder).run()))
}

/// Merges the threads' seconds in order and watches over the work as a whole.
struct Merge<'a> {
    work: &'a Work,
    control: &'a Control,
    clock: Clock,
    origin: Tick,
    returns: Vec<Sender<Box<Interval>>>,
    /// Seconds not yet complete; the first is number `next`.
    pending: VecDeque<Interval>,
    spare: Vec<Interval>,
    next: u32,
    /// The last second each thread has sent.
    sent: Vec<Option<u32>>,
    tallies: Vec<Tally>,
    last_ok_ns: u64,
    silence: Option<Silence>,
    failed_since_ok: u64,
    /// The rounds so far, and the operations and seconds of the one that goes on.
    settling: Option<Settling>,
    round: (u64, u64),
    given_up: String,
    interrupted: bool,
}

impl<'a> Merge<'a> {
    fn new(
        work: &'a Work,
        control: &'a Control,
        clock: Clock,
        origin: Tick,
        threads: u32,
        returns: Vec<Sender<Box<Interval>>>,
    ) -> Self {
        Self {
            work,
            control,
            clock,
            origin,
            returns,
            pending: VecDeque::new(),
            spare: Vec::new(),
            next: 0,
            sent: vec![None; threads as usize],
            tallies: vec![Tally::default(); usize::from(work.actions)],
            last_ok_ns: 0,
            silence: None,
            failed_since_ok: 0,
            settling: work.stop.steady.map(|s| Settling { round_ns: s.round_ns, ..Settling::default() }),
            round: (0, 0),
            given_up: String::new(),
            interrupted: false,
        }
    }

    /// Takes intervals until every thread is done.
    fn follow(&mut self, full: &Receiver<(u32, Box<Interval>)>, watch: &mut dyn Watch) {
        loop {
            match full.recv_timeout(Duration::from_millis(50)) {
                Ok((thread, interval)) => {
                    self.take(thread, interval);
                    self.emit(watch, false);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            match watch.wish() {
                Wish::GoOn => {}
                wish => {
                    self.interrupted = true;
                    self.control.end_at(self.clock.now());
                    self.control.abandon.store(wish == Wish::Stop, Ordering::Relaxed);
                }
            }
        }
        self.emit(watch, true);
    }

    fn take(&mut self, thread: u32, interval: Box<Interval>) {
        let ahead = (interval.index.saturating_sub(self.next)) as usize;
        while self.pending.len() <= ahead {
            let index = self.next + self.pending.len() as u32;
            let mut empty =
                self.spare.pop().unwrap_or_else(|| Interval::new(0, usize::from(self.work.actions)));
            empty.reset(index);
            self.pending.push_back(empty);
        }
        if interval.index >= self.next {
            self.pending[ahead].add(&interval);
        }
        self.sent[thread as usize] = Some(interval.index);
        // A thread that is gone needs nothing back.
        let _ = self.returns[thread as usize].try_send(interval);
    }

    /// Gives every second that all threads have passed, or with `all` everything, to the watch.
    fn emit(&mut self, watch: &mut dyn Watch, all: bool) {
        let complete = self.sent.iter().copied().min().flatten();
        while let Some(interval) = self.pending.front() {
            if !all && complete.is_none_or(|complete| interval.index > complete) {
                return;
            }
            let interval = self.pending.pop_front().expect("there is a front");
            self.next += 1;
            for (total, second) in self.tallies.iter_mut().zip(&interval.actions) {
                total.add(second);
            }
            self.listen(&interval);
            self.settle(&interval);
            watch.interval(&interval);
            self.spare.push(interval);
        }
    }

    /// Follows the times without a success, and gives the work up when one is too long.
    fn listen(&mut self, interval: &Interval) {
        if let (Some(first), Some(last)) = (interval.first_ok_ns, interval.last_ok_ns) {
            self.hear(first);
            self.last_ok_ns = last;
            self.failed_since_ok = 0;
        }
        self.failed_since_ok += interval.actions.iter().map(Tally::failed).sum::<u64>();
        let Some(patience) = self.work.stop.give_up_ns else { return };
        let now = u64::from(interval.index + 1) * INTERVAL_NS;
        let troubled = self.failed_since_ok > 0 || interval.oldest_in_flight_ns >= patience;
        if troubled && now.saturating_sub(self.last_ok_ns) >= patience && self.given_up.is_empty() {
            let seconds = (now - self.last_ok_ns) as f64 / 1e9;
            self.given_up = format!("no operation succeeded for {seconds:.0} s");
            self.control.end_at(self.clock.now());
        }
    }

    /// Counts rounds until they are steady, then opens the window.
    fn settle(&mut self, interval: &Interval) {
        let (Some(rule), Some(settling)) = (self.work.stop.steady, &mut self.settling) else { return };
        let begins = u64::from(interval.index) * INTERVAL_NS;
        if begins < self.work.stop.warm_ns() || self.control.window().is_some() {
            return;
        }
        self.round = (self.round.0 + interval.unmeasured, self.round.1 + INTERVAL_NS);
        if self.round.1 < rule.round_ns {
            return;
        }
        settling.rounds.push(self.round.0 as f64 * 1e9 / self.round.1 as f64);
        self.round = (0, 0);
        settling.steady = steady::reached(&settling.rounds);
        if settling.steady || settling.rounds.len() >= rule.most_rounds as usize {
            self.control.window.store(self.clock.now(), Ordering::Relaxed);
        }
    }

    /// Notes that something succeeded, or that the load ended, at `at`.
    fn hear(&mut self, at: u64) {
        let silence = Silence { from_ns: self.last_ok_ns, to_ns: at };
        if self.silence.is_none_or(|longest| silence.length_ns() > longest.length_ns()) {
            self.silence = Some(silence);
        }
    }

    /// The phases as they came to be. A load that was ended before its window opened has an empty one at its end.
    fn phases(&self) -> Phases {
        let stop = &self.work.stop;
        match (stop.steady, self.control.window(), self.control.end()) {
            (None, ..) => stop.phases(),
            (Some(_), Some(start), _) => stop.phases_from(start.saturating_sub(self.origin)),
            (Some(_), None, end) => {
                let at = end.map_or(0, |end| end.saturating_sub(self.origin));
                Phases { window_start: at, window_end: at, load_end: at }
            }
        }
    }

    fn result(mut self, harvests: &[Harvest]) -> Result {
        let since_start = |tick: Tick| tick.saturating_sub(self.origin);
        let phases = self.phases();
        let last_done_ns = harvests.iter().map(|harvest| since_start(harvest.last_done)).max().unwrap_or(0);
        let last_measured =
            harvests.iter().map(|harvest| since_start(harvest.last_measured)).max().unwrap_or(0);
        let ended = self.control.end().map_or(u64::MAX, since_start);
        // A count or a volume ends the window with the last operation; a time ends it on time.
        let planned = match phases.window_end {
            u64::MAX => last_measured,
            window_end => window_end,
        };
        let window_end_ns = planned.min(ended).max(phases.window_start);
        let load_end = match phases.load_end {
            u64::MAX => harvests.iter().map(|harvest| since_start(harvest.load_done)).max().unwrap_or(0),
            load_end => load_end,
        };
        self.hear(load_end.min(ended).max(self.last_ok_ns));
        let offered_rate = match &self.work.pacing {
            Pacing::Closed { .. } => None,
            Pacing::Open { rate, .. } => {
                let seconds = (window_end_ns - phases.window_start).max(1) as f64 / 1e9;
                let ramped = rate.with_ramp(self.work.stop.ramp_up_ns);
                Some(ramped.due_between(phases.window_start, window_end_ns) / seconds)
            }
        };
        let mut examples: Vec<Example> = Vec::new();
        for example in harvests.iter().flat_map(|harvest| &harvest.examples) {
            if examples.iter().filter(|kept| kept.fault == example.fault).count() < EXAMPLES_PER_FAULT {
                examples.push(example.clone());
            }
        }
        Result {
            tallies: self.tallies,
            window_start_ns: phases.window_start,
            window_end_ns,
            last_done_ns,
            offered_rate,
            workers: harvests.iter().flat_map(|harvest| harvest.workers.iter().copied()).collect(),
            examples,
            silence: self.silence,
            unsent: harvests.iter().map(|harvest| harvest.unsent).sum(),
            undone: match self.interrupted || !self.given_up.is_empty() {
                true => harvests.iter().map(|harvest| harvest.undone).sum(),
                false => 0,
            },
            threads: self.sent.len() as u32,
            settling: self.settling,
            given_up: self.given_up,
            interrupted: self.interrupted,
            remarks: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
