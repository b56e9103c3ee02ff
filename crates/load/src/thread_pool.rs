//! All threads that a process has of a work: opened, started together, their seconds put together.

use crate::endpoints::{Endpoints, merged};
use crate::engine::{Clock, OpenError, Sessions, ThreadContext, Tick};
use crate::merge::{Decision, Merge, first_examples};
use crate::recorder::{INTERVAL_NS, Outlet, Recorder};
use crate::seconds::Seconds;
use crate::stop::StopRequest;
use crate::thread::{LoadThread, ThreadResult};
use crate::work::{Share, Work};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidemark_measure::record::{EndpointUse, Example, LongestGap, Reported, Settling, WorkerCount};
use tidemark_measure::tally::{Interval, Tally};

/// How long operations in flight may take when the work is ended early.
pub const EARLY_DRAIN_NS: u64 = 3_000_000_000;

/// The longest interval between two polls of a commander.
const LISTEN: Duration = Duration::from_millis(50);

/// How long before a window opens the threads learn of it: they check every 50 ms at least.
const WINDOW_NOTICE: Duration = Duration::from_millis(100);

/// How many failures of each class are kept word for word.
pub const EXAMPLES_PER_FAULT: usize = 3;

/// Signals of the thread pool and the user to the threads: shared, read once per loop, never locked.
#[derive(Debug)]
pub struct Control {
    end: AtomicU64,
    window: AtomicU64,
    abandon: AtomicBool,
    bytes_left: AtomicI64,
}

impl Control {
    /// No instruction yet; at most `bytes` may be moved in total.
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

    /// Passes the commander's word on: when the window opens, if that is known, and what is wished for `now`.
    fn heed(&self, window: Option<Tick>, stop_request: StopRequest, now: Tick) {
        if let (None, Some(start)) = (self.window(), window) {
            self.window.store(start, Ordering::Relaxed);
        }
        if stop_request != StopRequest::None {
            // The first time counts: what is in flight then may finish.
            self.end.fetch_min(now, Ordering::Relaxed);
            self.abandon.store(stop_request == StopRequest::Stop, Ordering::Relaxed);
        }
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

/// What a work's thread pool reports and polls while it runs.
pub trait Watch {
    /// All sessions are open: when to start, which may be in the future. `None`: not at all.
    fn start(&mut self) -> Option<Instant> {
        Some(Instant::now())
    }
    /// A second is complete: merged over all threads, in order.
    fn interval(&mut self, interval: &Interval);
    /// The user's stop request; polled several times a second.
    fn stop_request(&mut self) -> StopRequest;
}

/// What a work left behind. Times are nanoseconds since the work's start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Result {
    /// One tally per action, over the window.
    pub tallies: Vec<Tally>,
    /// What another program that ran the work says of each action and kept no samples of; empty: the tallies say all.
    pub reported: Vec<Reported>,
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
    /// Counts of each of the target's endpoints; none where there is only one.
    pub endpoints: Vec<EndpointUse>,
    /// The first failures of each class.
    pub examples: Vec<Example>,
    /// The longest time without a success.
    pub longest_gap: Option<LongestGap>,
    /// Open loop: due in the window, never sent.
    pub unsent: u64,
    /// Asked for by the plan, never begun.
    pub undone: u64,
    /// Asked for by the plan; nobody knows whether they were done.
    pub unknown: u64,
    /// Generator threads.
    pub threads: u32,
    /// How the load became steady, where the stop rule waits for that.
    pub settling: Option<Settling>,
    /// The rounds of the window, where the stop rule lets it end when they are steady.
    pub window_rounds: Option<Settling>,
    /// Why the work was given up, or empty.
    pub given_up: String,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// How the numbers came about, where that is not the load core's own way: whole sentences.
    pub remarks: Vec<String>,
}

/// What the share of a work that one process had left behind. Times are nanoseconds since the work's start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    /// Counts of its workers.
    pub workers: Vec<WorkerCount>,
    /// Its counts of the target's endpoints; none where there is only one.
    pub endpoints: Vec<EndpointUse>,
    /// Its first failures of each class.
    pub examples: Vec<Example>,
    /// Open loop: due in the window, never sent.
    pub unsent: u64,
    /// Asked for by the plan, never begun.
    pub undone: u64,
    /// When its last operation ended.
    pub last_done_ns: u64,
    /// The same of the load, without what is done once when it is over.
    pub load_done_ns: u64,
    /// When its last measured operation ended, or 0.
    pub last_measured_ns: u64,
    /// When its first operation was sent, measured or not.
    pub first_sent_ns: Option<u64>,
    /// Generator threads.
    pub threads: u32,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The whole result, where another program ran the work and kept it together: fio.
    pub whole: Option<Box<Result>>,
}

/// Whoever commands a process's share of a work: its controller, or this process itself.
pub trait Coordinator {
    /// All sessions are open: when to start, which may be in the future. `None`: not at all.
    fn start(&mut self) -> Option<Instant>;
    /// A second is complete: merged over the threads of this process, in order.
    fn interval(&mut self, interval: &Interval);
    /// What to do; polled some 20 times a second from the start on.
    fn instruction(&mut self) -> Instruction;
}

/// A commander's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// When the window of a load that has to become steady opens, as soon as that is known. It had better be in the
    /// future by then: what was done before the word came is not measured.
    pub window: Option<Instant>,
    /// Whether the load continues.
    pub stop_request: StopRequest,
}

/// Runs a whole work on `threads` threads of this machine (never more than it has workers).
pub fn run(
    work: &Work,
    engine: &dyn Sessions,
    threads: u32,
    watch: &mut dyn Watch,
) -> std::result::Result<Result, OpenError> {
    lead(work, watch, |coordinator| run_share(work, Share::whole(work), engine, threads, coordinator))
}

/// Leads a whole work that `run` carries out, here or in another process: decides when its window opens and when it ends.
///
/// # Errors
/// Why it was not begun. Of a load that broke down later, what is known of it is kept, with the reason.
pub fn lead(
    work: &Work,
    watch: &mut dyn Watch,
    run: impl FnOnce(&mut dyn Coordinator) -> std::result::Result<Ending, OpenError>,
) -> std::result::Result<Result, OpenError> {
    let mut own = Own {
        merge: Merge::new(work, 1),
        watch,
        started: None,
        window: None,
        known_ns: 0,
        is_over: false,
        is_interrupted: false,
    };
    let ended = run(&mut own);
    let Some(started) = own.started else {
        return ended.map(|ending| Result { interrupted: true, ..own.merge.result(vec![ending]) });
    };
    let ending = match ended {
        Ok(ending) => ending,
        Err(OpenError(reason)) => {
            // What happened after the last second that arrived is unknown: the result ends there.
            let known_ns =
                own.known_ns.min(Instant::now().saturating_duration_since(started).as_nanos() as u64);
            own.merge.gone(0);
            own.merge.ended_early(known_ns);
            own.merge.flush(own.watch);
            let last = Ending {
                last_done_ns: known_ns,
                load_done_ns: known_ns,
                last_measured_ns: known_ns,
                ..Ending::default()
            };
            let result = own.merge.result(vec![last]);
            let done = result.tallies.iter().map(Tally::total).fold(0, u64::saturating_add);
            let unknown = work.planned().operations.map_or(0, |planned| planned.saturating_sub(done));
            return Ok(Result { given_up: reason, unknown, interrupted: own.is_interrupted, ..result });
        }
    };
    own.merge.flush(own.watch);
    Ok(Result { interrupted: own.is_interrupted, ..own.merge.result(vec![ending]) })
}

/// The coordinator of a work that this process has to itself: its own merge decides, the user may end it.
struct Own<'a> {
    merge: Merge,
    watch: &'a mut dyn Watch,
    started: Option<Instant>,
    window: Option<Instant>,
    /// The end of the last second that has come, since the start.
    known_ns: u64,
    /// Whether the load has ended before its time, by itself.
    is_over: bool,
    is_interrupted: bool,
}

impl Coordinator for Own<'_> {
    fn start(&mut self) -> Option<Instant> {
        self.started = self.watch.start();
        if self.started.is_none() {
            self.merge.ended_early(0);
        }
        self.started
    }

    fn interval(&mut self, interval: &Interval) {
        self.known_ns = (u64::from(interval.index) + 1) * INTERVAL_NS;
        self.merge.take(0, interval);
        self.merge.emit(self.watch);
    }

    fn instruction(&mut self) -> Instruction {
        let now = Instant::now();
        let since_start = |at: Instant| {
            self.started.map_or(0, |started| at.saturating_duration_since(started).as_nanos() as u64)
        };
        while let Some(decision) = self.merge.decision() {
            match decision {
                Decision::OpenWindow => {
                    let opens = now + WINDOW_NOTICE;
                    self.merge.window_opened(since_start(opens));
                    self.window = Some(opens);
                }
                Decision::EndWindow | Decision::GiveUp => self.is_over = true,
            }
        }
        let mut stop_request = self.watch.stop_request();
        self.is_interrupted |= stop_request != StopRequest::None;
        if self.is_over {
            stop_request = stop_request.max(StopRequest::Finish);
        }
        if stop_request != StopRequest::None {
            self.merge.ended_early(since_start(now));
        }
        Instruction { window: self.window, stop_request }
    }
}

/// Runs a share of a work on `threads` threads of this machine (never more than the share has workers and slots), under the control of `coordinator`.
///
/// Whether the load is steady, or hopeless, is for the coordinator to decide: this process sees its own share only.
pub fn run_share(
    work: &Work,
    share: Share,
    engine: &dyn Sessions,
    threads: u32,
    coordinator: &mut dyn Coordinator,
) -> std::result::Result<Ending, OpenError> {
    let threads = threads.max(1).min(share.count).min(work.slots(share).1);
    let clock = Clock::starting_at(Instant::now());
    let control = Control::new(work.stop.bytes.map(|bytes| share.of_volume(bytes, work.workers)));
    let (full_in, full_out) = unbounded();
    std::thread::scope(|scope| {
        let (ready_in, ready_out) = bounded(threads as usize);
        let (mut starts, mut returns, mut handles) = (Vec::new(), Vec::new(), Vec::new());
        for thread in 0..threads {
            let (empty_in, empty_out) = bounded(8);
            let (start_in, start_out) = bounded(1);
            let outlet = Outlet { full: full_in.clone(), empty: empty_out, thread };
            let gate = Gate { ready: ready_in.clone(), start: start_out };
            let (control, own) = (&control, share.of_thread(thread, threads));
            let slots = work.slots_of_thread(share, thread, threads);
            let body = move || run_thread(work, engine, control, &gate, clock, (own, slots), outlet);
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
        let origin = if all_opened { coordinator.start().map(|start| clock.at(start)) } else { None };
        for start in &starts {
            // A thread that has ended has already reported why.
            let _ = origin.map(|origin| start.send(origin));
        }
        drop(starts);
        let mut interrupted = origin.is_none();
        let mut seconds = Seconds::new(work.actions, threads);
        loop {
            match full_out.recv_timeout(LISTEN) {
                Ok((thread, Some(interval))) => {
                    if let Some(sum) = seconds.of(thread, interval.index) {
                        sum.add(&interval);
                    }
                    // A thread that has ended needs nothing back.
                    let _ = returns[thread as usize].try_send(interval);
                }
                Ok((thread, None)) => seconds.gone(thread),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while let Some(interval) = seconds.pop(false) {
                coordinator.interval(&interval);
                seconds.recycle(interval);
            }
            if origin.is_some() {
                let Instruction { window, stop_request } = coordinator.instruction();
                interrupted |= stop_request != StopRequest::None;
                control.heed(window.map(|at| clock.at(at)), stop_request, clock.now());
            }
        }
        while let Some(interval) = seconds.pop(true) {
            coordinator.interval(&interval);
            seconds.recycle(interval);
        }
        let mut results = Vec::new();
        for handle in handles {
            match handle.join() {
                Ok(result) => results.extend(result?),
                Err(_) => return Err(OpenError("a load thread crashed; please report this as a bug".into())),
            }
        }
        Ok(Ending { interrupted, ..ending(&results, origin.unwrap_or(0)) })
    })
}

/// What the threads of a process brought home, together.
fn ending(results: &[ThreadResult], origin: Tick) -> Ending {
    let latest = |time: fn(&ThreadResult) -> Tick| {
        results.iter().map(|result| time(result).saturating_sub(origin)).max().unwrap_or(0)
    };
    let first_sent = results.iter().map(|result| result.first_sent).min();
    Ending {
        workers: results.iter().flat_map(|result| result.workers.iter().copied()).collect(),
        endpoints: merged(results.iter().flat_map(|result| &result.endpoints)),
        examples: first_examples(results.iter().flat_map(|result| &result.examples)),
        unsent: results.iter().map(|result| result.unsent).sum(),
        undone: results.iter().map(|result| result.undone).sum(),
        last_done_ns: latest(|result| result.last_done),
        load_done_ns: latest(|result| result.load_done),
        last_measured_ns: latest(|result| result.last_measured),
        first_sent_ns: first_sent.filter(|sent| *sent != Tick::MAX).map(|sent| sent.saturating_sub(origin)),
        threads: results.len() as u32,
        ..Ending::default()
    }
}

/// Where a thread waits between opening its session and starting the load.
struct Gate {
    /// Receives whether the session could be opened; closed when every thread has reported.
    ready: Sender<bool>,
    /// Gives the start, or closes when there will be none.
    start: Receiver<Tick>,
}

fn run_thread(
    work: &Work,
    engine: &dyn Sessions,
    control: &Control,
    gate: &Gate,
    clock: Clock,
    (share, (first_slot, slots)): (Share, (u32, u32)),
    outlet: Outlet,
) -> std::result::Result<Option<ThreadResult>, OpenError> {
    // By default the kernel rounds sleeps up by 50 us; due times are kept to the microsecond.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let opened = engine.open(ThreadContext {
        clock,
        thread: outlet.thread,
        first_slot,
        slots,
        largest: work.source.largest(),
        seed: work.seed,
    });
    let _ = gate.ready.send(opened.is_ok());
    let session = opened?;
    let Ok(origin) = gate.start.recv() else { return Ok(None) };
    let endpoints = Endpoints::new(engine.endpoint_kind(), engine.endpoints(), first_slot);
    let Share { first, count } = share;
    let recorder =
        Recorder::new(origin, work.actions, first, count, work.waits_for_slots(), endpoints, outlet);
    Ok(Some(LoadThread::new(work, control, clock, origin, (share, slots), session, recorder).run()))
}

#[cfg(test)]
mod tests;
