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
use tidemark_measure::record::{Example, Silence, WorkerCount};
use tidemark_measure::tally::{Interval, Tally};

/// How long operations in flight may take when the work is ended early.
pub const EARLY_DRAIN_NS: u64 = 3_000_000_000;

/// How many failures of each class are kept word for word.
pub const EXAMPLES_PER_FAULT: usize = 3;

/// The crew's and the user's word to the seats: shared, read once per loop, never locked.
#[derive(Debug)]
pub struct Control {
    end: AtomicU64,
    abandon: AtomicBool,
    bytes_left: AtomicI64,
}

impl Control {
    /// Nothing said yet; `bytes` may be moved in all.
    fn new(bytes: Option<u64>) -> Self {
        Self {
            end: AtomicU64::new(u64::MAX),
            abandon: AtomicBool::new(false),
            bytes_left: AtomicI64::new(bytes.map_or(i64::MAX, |bytes| bytes.min(i64::MAX as u64) as i64)),
        }
    }

    /// When the load was ended early, if it was.
    pub fn end(&self) -> Option<Tick> {
        Some(self.end.load(Ordering::Relaxed)).filter(|end| *end != u64::MAX)
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
    /// Why the work was given up, or empty.
    pub given_up: String,
    /// Whether the user ended it early.
    pub interrupted: bool,
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

    /// Notes that something succeeded, or that the load ended, at `at`.
    fn hear(&mut self, at: u64) {
        let silence = Silence { from_ns: self.last_ok_ns, to_ns: at };
        if self.silence.is_none_or(|longest| silence.length_ns() > longest.length_ns()) {
            self.silence = Some(silence);
        }
    }

    fn result(mut self, harvests: &[Harvest]) -> Result {
        let since_start = |tick: Tick| tick.saturating_sub(self.origin);
        let phases: Phases = self.work.stop.phases();
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
            u64::MAX => last_done_ns,
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
            given_up: self.given_up,
            interrupted: self.interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Begin, Completion, Null, Operation, Outcome, Session};
    use crate::pacing::{Arrivals, Rate};
    use crate::source::{Choice, Division, Effect, Order, Size, SourcePlan};
    use crate::stopping::Stop;
    use tidemark_measure::fault::Fault;
    use tidemark_measure::pick::Pick;

    const MS: u64 = 1_000_000;

    /// Counts seconds and ends the work when told.
    #[derive(Default)]
    struct Seen {
        seconds: Vec<u32>,
        ok: u64,
        wish_after: Option<(Instant, Wish)>,
    }

    impl Watch for Seen {
        fn interval(&mut self, interval: &Interval) {
            self.seconds.push(interval.index);
            self.ok += interval.actions.iter().map(|tally| tally.ok).sum::<u64>();
        }

        fn wish(&mut self) -> Wish {
            self.wish_after.filter(|(at, _)| Instant::now() >= *at).map_or(Wish::GoOn, |(_, wish)| wish)
        }
    }

    fn mix(bytes: u64) -> SourcePlan {
        let pick = Pick::Uniform { low: 1, high: 100 };
        let choice = |action, weight| Choice {
            action,
            weight,
            spaces: pick.clone(),
            items: pick.clone(),
            bytes: Size { pick: Pick::Constant(bytes), unit: 1 },
            division: Division::None,
            effect: Effect::Free,
            order: Order::Picked,
            follow: None,
        };
        SourcePlan::Mix { choices: vec![choice(0, 70.0), choice(1, 30.0)], pool: None }
    }

    fn work(workers: u32, source: SourcePlan, stop: Stop) -> Work {
        let pacing = Pacing::Closed { think_ns: 0 };
        Work { workers, depth: 1, pacing, stop, source, finale: None, actions: 2, seed: 7, stream: [0, 0] }
    }

    /// Answers after a fixed time; optionally freezes for 200 ms every second, fails, or never answers.
    #[derive(Clone, Copy, Default)]
    struct Slow {
        service_ns: u64,
        freezes: bool,
        fails: bool,
        silent: bool,
    }

    struct SlowSession {
        plan: Slow,
        clock: Clock,
        flying: Vec<(u64, u32)>,
        abandoned: bool,
    }

    impl Engine for Slow {
        fn open(&self, seat: SeatPlan) -> std::result::Result<Box<dyn Session>, OpenError> {
            let flying = Vec::new();
            Ok(Box::new(SlowSession { plan: *self, clock: seat.clock, flying, abandoned: false }))
        }
    }

    impl Session for SlowSession {
        fn begin(&mut self, lane: u32, _operation: &Operation, sent: Tick) -> Begin {
            let mut done = sent + self.plan.service_ns;
            let phase = done % (1_000 * MS);
            if self.plan.freezes && phase < 200 * MS {
                done += 200 * MS - phase;
            }
            self.flying.push((if self.plan.silent { u64::MAX } else { done }, lane));
            Begin::Started
        }

        fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
            loop {
                let now = self.clock.now();
                let fault = match self.abandoned {
                    true => Some(Fault::Abandoned),
                    false => self.plan.fails.then_some(Fault::ServerError),
                };
                let before = ended.len();
                let abandoned = self.abandoned;
                self.flying.retain(|(done, lane)| {
                    let over = *done <= now || abandoned;
                    if over {
                        let done = (*done).min(now);
                        ended.push(Completion {
                            lane: *lane,
                            done,
                            outcome: Outcome { fault, ..Outcome::default() },
                        });
                    }
                    !over
                });
                if ended.len() > before || now >= until {
                    return;
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        }

        fn abandon(&mut self) {
            self.abandoned = true;
        }
    }

    #[test]
    fn counts_are_exact_whatever_the_division() {
        for (workers, threads) in [(1, 1), (7, 2), (64, 3)] {
            let stop = Stop { operations: Some(10_001), ..Stop::default() };
            let mut seen = Seen::default();
            let result = run(&work(workers, mix(10), stop), &Null, threads, &mut seen).unwrap();
            let (reads, writes) = (&result.tallies[0], &result.tallies[1]);
            assert_eq!(reads.ok + writes.ok, 10_001);
            assert_eq!(reads.bytes + writes.bytes, 100_010);
            assert_eq!(reads.response.count() + writes.response.count(), 10_001);
            assert_eq!(result.workers.iter().map(|worker| worker.ok).sum::<u64>(), 10_001);
            assert_eq!(seen.ok, 10_001, "the seconds add up to the total");
            assert_eq!((result.undone, result.unsent), (0, 0));
        }
    }

    #[test]
    fn the_same_seed_does_the_same_however_many_threads_share_it() {
        let stop = Stop { operations: Some(5_000), ..Stop::default() };
        let reads = |threads| {
            let result = run(&work(8, mix(1), stop), &Null, threads, &mut Seen::default()).unwrap();
            result
                .workers
                .iter()
                .map(|worker| (worker.worker, worker.operation, worker.ok))
                .collect::<Vec<_>>()
        };
        assert_eq!(reads(1), reads(2));
    }

    #[test]
    fn no_worker_starves_when_operations_end_at_once() {
        let stop = Stop { window_ns: Some(300 * MS), drain_ns: MS, ..Stop::default() };
        let result = run(&work(8, mix(1), stop), &Null, 1, &mut Seen::default()).unwrap();
        let least = (0..8)
            .map(|worker| result.workers.iter().filter(|w| w.worker == worker).map(|w| w.ok).sum::<u64>());
        let (least, most) = (least.clone().min().unwrap(), least.max().unwrap());
        assert!(least > 0 && least * 2 > most, "{least} to {most}");
    }

    #[test]
    fn a_volume_ends_with_the_operation_that_reaches_it() {
        let stop = Stop { bytes: Some(64_000_000), ..Stop::default() };
        let result = run(&work(7, mix(64_000), stop), &Null, 2, &mut Seen::default()).unwrap();
        assert_eq!(result.tallies.iter().map(|tally| tally.ok).sum::<u64>(), 1_000);
    }

    #[test]
    fn warm_up_and_ramp_down_are_not_measured() {
        let stop = Stop {
            warm_up_ns: 300 * MS,
            window_ns: Some(400 * MS),
            ramp_down_ns: 200 * MS,
            drain_ns: 1_000 * MS,
            ..Stop::default()
        };
        let slow = Slow { service_ns: 10 * MS, ..Slow::default() };
        let result = run(&work(4, mix(1), stop), &slow, 1, &mut Seen::default()).unwrap();
        let ok: u64 = result.tallies.iter().map(|tally| tally.ok).sum();
        assert!((40..=164).contains(&ok), "at most 4 workers x 40 rounds of 10 ms are in the window: {ok}");
        assert_eq!((result.window_start_ns, result.window_end_ns), (300 * MS, 700 * MS));
        assert!(result.last_done_ns >= 850 * MS, "the load went on through the ramp-down");
    }

    #[test]
    fn an_open_loop_counts_waiting_and_a_closed_loop_cannot() {
        let stop = Stop { window_ns: Some(3_000 * MS), drain_ns: 2_000 * MS, ..Stop::default() };
        let mut plan = work(4, mix(1), stop);
        plan.pacing = Pacing::Open { rate: Rate::constant(500.0), arrivals: Arrivals::Constant };
        let slow = Slow { service_ns: MS, freezes: true, ..Slow::default() };
        let result = run(&plan, &slow, 1, &mut Seen::default()).unwrap();
        let mut all = Tally::default();
        result.tallies.iter().for_each(|tally| all.add(tally));
        assert_eq!(all.ok + result.unsent, 1_500, "every due operation is accounted for");
        assert_eq!(result.offered_rate.map(f64::round), Some(500.0));
        // A fifth of the time is frozen: waiting must show at p90 although at most 4 in 100 were in service.
        assert!(all.response.quantile(0.90) > 50 * MS, "response p90 {}", all.response.quantile(0.90));
        assert!(all.service().quantile(0.90) < 50 * MS, "service p90 {}", all.service().quantile(0.90));
    }

    #[test]
    fn throughput_counts_what_ended_in_the_window_whenever_it_was_due() {
        let stop = Stop {
            warm_up_ns: 500 * MS,
            window_ns: Some(1_000 * MS),
            drain_ns: 5_000 * MS,
            ..Stop::default()
        };
        let mut plan = work(2, mix(1), stop);
        // Ten times what two workers can do at 10 ms each: the backlog of the warm-up fills the window.
        plan.pacing = Pacing::Open { rate: Rate::constant(2_000.0), arrivals: Arrivals::Constant };
        let slow = Slow { service_ns: 10 * MS, ..Slow::default() };
        let result = run(&plan, &slow, 1, &mut Seen::default()).unwrap();
        let (early, late) =
            result.tallies.iter().fold((0, 0), |sum, tally| (sum.0 + tally.early, sum.1 + tally.late));
        let ok: u64 = result.tallies.iter().map(|tally| tally.ok).sum();
        assert!(
            (100..=202).contains(&(ok - late + early)),
            "at most 2 x 100 end in a second: {ok} - {late} + {early}"
        );
    }

    #[test]
    fn a_target_that_only_fails_is_given_up() {
        let stop = Stop { operations: Some(1_000_000), give_up_ns: Some(1_000 * MS), ..Stop::default() };
        let slow = Slow { service_ns: MS, fails: true, ..Slow::default() };
        let result = run(&work(2, mix(1), stop), &slow, 1, &mut Seen::default()).unwrap();
        assert!(result.given_up.contains("no operation succeeded"), "{}", result.given_up);
        assert_eq!(result.tallies.iter().map(|tally| tally.ok).sum::<u64>(), 0);
        assert!(result.undone > 900_000);
        assert!(result.silence.unwrap().length_ns() >= 1_000 * MS);
    }

    #[test]
    fn what_never_comes_back_is_counted_as_abandoned() {
        let stop = Stop { window_ns: Some(200 * MS), drain_ns: 100 * MS, ..Stop::default() };
        let slow = Slow { silent: true, ..Slow::default() };
        let result = run(&work(3, mix(1), stop), &slow, 1, &mut Seen::default()).unwrap();
        let abandoned: u64 = result.tallies.iter().map(|tally| tally.faults.of(Fault::Abandoned)).sum();
        assert_eq!(abandoned, 3);
    }

    #[test]
    fn the_user_may_end_it_and_what_was_measured_stays() {
        let stop = Stop { window_ns: Some(600_000 * MS), drain_ns: 1_000 * MS, ..Stop::default() };
        let slow = Slow { service_ns: MS, ..Slow::default() };
        let at = Instant::now() + Duration::from_millis(300);
        let mut seen = Seen { wish_after: Some((at, Wish::Finish)), ..Seen::default() };
        let result = run(&work(2, mix(1), stop), &slow, 1, &mut seen).unwrap();
        assert!(result.interrupted);
        assert!(result.window_end_ns < 60_000 * MS);
        assert!(result.tallies.iter().map(|tally| tally.ok).sum::<u64>() > 10);
    }

    #[test]
    fn a_session_that_cannot_be_opened_ends_the_work_with_its_reason() {
        struct Closed;
        impl Engine for Closed {
            fn open(&self, seat: SeatPlan) -> std::result::Result<Box<dyn Session>, OpenError> {
                if seat.thread == 1 { Err(OpenError("no such host".into())) } else { Null.open(seat) }
            }
        }
        let stop = Stop { operations: Some(10), ..Stop::default() };
        let error = run(&work(4, mix(1), stop), &Closed, 2, &mut Seen::default()).unwrap_err();
        assert_eq!(error.to_string(), "no such host");
    }
}
