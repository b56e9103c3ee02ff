//! What is kept of every operation. One recorder per thread; nothing is shared, locked or allocated while it
//! records. Once a second the finished [`Interval`] goes to the thread pool, which merges and returns it for reuse.

use crate::endpoints::Endpoints;
use crate::engine::{Outcome, Tick};
use crossbeam_channel::{Receiver, Sender};
use tidemark_measure::record::{EndpointUse, WorkerCount};
use tidemark_measure::tally::Interval;
use tidemark_measure::verification::Checked;

/// Length of an interval, nanoseconds.
pub const INTERVAL_NS: u64 = 1_000_000_000;

/// When an operation was due, sent and done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When it should have been sent. In a closed loop: when its worker was free for it.
    pub due: Tick,
    /// When it was sent.
    pub sent: Tick,
    /// For how long of the time between the two it waited for the generator, because a slot was free, nanoseconds.
    pub own_lag: u64,
    /// When it ended.
    pub done: Tick,
}

/// Whose operation it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The worker's number on this thread.
    pub worker: u32,
    /// Which action.
    pub action: u16,
    /// The slot that carried it.
    pub slot: u32,
}

/// What a thread reports at the end of a second besides the operations that ended in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Operations in flight.
    pub in_flight: u32,
    /// Age of the oldest of them, nanoseconds.
    pub oldest_ns: u64,
    /// Operations due and not sent.
    pub backlog: u64,
}

/// How the recorder reaches the thread pool.
pub struct Outlet {
    /// Finished intervals go here, with the thread's number; `None` when there will be no more.
    pub full: Sender<(u32, Option<Box<Interval>>)>,
    /// Empty ones come back here.
    pub empty: Receiver<Box<Interval>>,
    /// The thread's number.
    pub thread: u32,
}

/// One thread's recorder.
pub struct Recorder {
    current: Box<Interval>,
    origin: Tick,
    window: (Tick, Tick),
    waits_for_slots: bool,
    workers: Vec<WorkerCount>,
    actions: usize,
    endpoints: Endpoints,
    outlet: Outlet,
    cut_at: Tick,
    cpu_at_cut: u64,
    last_cut: Tick,
    looked_up: Tick,
    load_is_over: bool,
}

impl Recorder {
    /// A recorder of a thread that has `workers` workers, the first of them numbered `first_worker` within the
    /// work, for a load that starts at `origin`; `waits_for_slots` as [`Work::waits_for_slots`](crate::work::Work::waits_for_slots).
    pub fn new(
        origin: Tick,
        actions: u16,
        first_worker: u32,
        workers: u32,
        waits_for_slots: bool,
        endpoints: Endpoints,
        outlet: Outlet,
    ) -> Self {
        let count = |worker| {
            (0..actions).map(move |operation| WorkerCount { worker, operation, ..WorkerCount::default() })
        };
        Self {
            current: Box::new(Interval::new(0, usize::from(actions))),
            origin,
            window: (Tick::MAX, Tick::MAX),
            waits_for_slots,
            workers: (first_worker..first_worker + workers).flat_map(count).collect(),
            actions: usize::from(actions),
            endpoints,
            outlet,
            cut_at: origin + INTERVAL_NS,
            cpu_at_cut: thread_cpu_ns(),
            last_cut: origin,
            looked_up: origin,
            load_is_over: false,
        }
    }

    /// Sets the window. Its end is known from the start, or when the user ends the work.
    pub fn set_window(&mut self, start: Tick, end: Tick) {
        self.window = (start, end);
    }

    /// From here on successes come from work after the load: no sign that the load continues.
    pub fn end_load(&mut self) {
        self.load_is_over = true;
    }

    /// When the current interval is to be cut.
    pub fn cut_at(&self) -> Tick {
        self.cut_at
    }

    /// Keeps one operation. With `measured` false only the fact that it ended.
    #[inline]
    pub fn record(&mut self, who: Who, timing: Timing, outcome: &Outcome, measured: bool) {
        if outcome.fault.is_none() && !self.load_is_over {
            let done = timing.done.saturating_sub(self.origin);
            let first = self.current.first_ok_ns.get_or_insert(done);
            *first = (*first).min(done);
            self.current.last_ok_ns = self.current.last_ok_ns.max(Some(done));
        }
        let tally = &mut self.current.actions[usize::from(who.action)];
        let (window_start, window_end) = self.window;
        if !measured {
            self.current.unmeasured += 1;
            match outcome.fault {
                // Open at its start as it is closed at its end, so that windows in a row count everything once.
                None if window_start < timing.done && timing.done <= window_end => {
                    tally.early += 1;
                    tally.early_bytes += outcome.bytes;
                    self.endpoints.early(who.slot);
                }
                None => tally.outside_bytes += outcome.bytes,
                Some(_) => {}
            }
            return;
        }
        let worker = &mut self.workers[who.worker as usize * self.actions + usize::from(who.action)];
        let response =
            timing.done.saturating_sub(if self.waits_for_slots { timing.due } else { timing.sent });
        tally.retries += u64::from(outcome.retries);
        tally.lag.record(timing.sent.saturating_sub(timing.due));
        if self.waits_for_slots {
            tally.own_lag_open.record(timing.own_lag);
        }
        self.endpoints.record(who.slot, response, timing.done > window_end, outcome);
        match outcome.fault {
            None => {
                tally.ok += 1;
                tally.bytes += outcome.bytes;
                if timing.done > window_end {
                    tally.late += 1;
                    tally.late_bytes += outcome.bytes;
                }
                match outcome.checked {
                    Checked::NotAsked => {}
                    Checked::Verified => tally.verified += 1,
                    Checked::Placed => {
                        tally.verified += 1;
                        tally.placed += 1;
                    }
                    Checked::Not(why) => tally.unchecked.count(why),
                }
                tally.response.record(response);
                if self.waits_for_slots {
                    tally.service_open.record(timing.done.saturating_sub(timing.sent));
                }
                if let Some(first_byte) = outcome.first_byte {
                    tally.first_byte.record(first_byte.saturating_sub(timing.sent));
                }
                worker.ok += 1;
                worker.bytes += outcome.bytes;
                worker.response_ns += response;
            }
            Some(fault) => {
                tally.faults.count(fault);
                tally.failure.record(response);
                worker.failed += 1;
            }
        }
        if worker.first_sent_ns == 0 {
            worker.first_sent_ns = timing.sent.saturating_sub(self.origin).max(1);
        }
        worker.last_done_ns = worker.last_done_ns.max(timing.done.saturating_sub(self.origin));
    }

    /// Keeps requests that ended since the last cut, as the session tells them. With a warm-up, those of a second that is not whole
    /// within the window do not count.
    pub fn requests(&mut self, told: &[EndpointUse]) {
        if self.window.0 <= self.last_cut {
            self.endpoints.requests(told);
        }
    }

    /// The thread looks up at `now`, which it does within `within` of the last time unless it stands still.
    pub fn look_up(&mut self, now: Tick, within: Tick) {
        let before = std::mem::replace(&mut self.looked_up, now);
        let late = now.saturating_sub(before).saturating_sub(within);
        self.current.stalled_ns = self.current.stalled_ns.max(late);
    }

    /// Ends the current interval and sends it off.
    pub fn cut(&mut self, now: Tick, standing: Standing) {
        let cpu = thread_cpu_ns();
        self.current.in_flight = standing.in_flight;
        self.current.oldest_in_flight_ns = standing.oldest_ns;
        self.current.backlog = standing.backlog;
        self.current.cpu_ns = cpu.saturating_sub(self.cpu_at_cut);
        self.current.wall_ns = now.saturating_sub(self.last_cut);
        self.current.stalled_ns = self.current.stalled_ns.max(now.saturating_sub(self.cut_at));
        (self.cpu_at_cut, self.last_cut) = (cpu, now);

        self.endpoints.end_second(self.current.index);
        let next_index = now.saturating_sub(self.origin) / INTERVAL_NS;
        let next_index = (next_index as u32).max(self.current.index + 1);
        self.cut_at = self.origin + (u64::from(next_index) + 1) * INTERVAL_NS;
        let mut next =
            self.outlet.empty.try_recv().unwrap_or_else(|_| Box::new(Interval::new(0, self.actions)));
        next.reset(next_index);
        let full = std::mem::replace(&mut self.current, next);
        // A thread pool that has ended does not need it.
        let _ = self.outlet.full.send((self.outlet.thread, Some(full)));
    }

    /// Ends the last interval and gives the counts of the workers and of the endpoints.
    pub fn finish(mut self, now: Tick) -> (Vec<WorkerCount>, Vec<EndpointUse>) {
        self.cut(now, Standing::default());
        let _ = self.outlet.full.send((self.outlet.thread, None));
        (self.workers, self.endpoints.finish())
    }
}

/// Processor time of the calling thread, nanoseconds.
fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
