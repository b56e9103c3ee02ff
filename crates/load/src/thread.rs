//! The worker loop: one thread's share of a work, from the first operation due to the last one ended.
//!
//! The loop is the same for closed and open loops. A *stream* is a worker's sequence of operations; a *slot*
//! is what carries one operation at a time. In a closed loop a stream is due again when its operation has
//! ended, so there is always a slot for it. In an open loop a stream is due at times fixed in advance, and
//! takes any slot of its thread; when none is idle it waits, and the wait is part of its response time.
//!
//! What is sent late was kept waiting by the storage, if no slot was idle, or by the thread, which came late to an idle one.
//! Only the thread can tell them apart, so it does, for every operation. A completion that a late thread finds is noted when it
//! is found: that part of its lateness is in service times, and nobody can tell.

use crate::engine::{Begin, Clock, Completion, Operation, Outcome, Session, Tick};
use crate::idle::Idle;
use crate::pacing::{Pacing, Schedule};
use crate::recorder::{Recorder, Standing, Timing, Who};
use crate::source::{Receipt, Source};
use crate::stopping::Phases;
use crate::thread_pool::Control;
use crate::work::{Finale, Share, Work};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::Part;
use tidemark_measure::record::{EndpointUse, Example, WorkerCount};
use tidemark_measure::rng::Rng;

/// How long the loop sleeps at most, so that it notices when the user ends the run.
const LOOK_UP_NS: u64 = 50_000_000;

/// After the last resort, how long to wait for abandoned operations to come back.
const ABANDON_NS: u64 = 2_000_000_000;

/// How long what is done at the end may take: a sync writes back all that the page cache holds.
const FINALE_NS: u64 = 900_000_000_000;

/// What follows stage, work and worker in the name of a worker's stream of pauses: pauses are drawn when operations end,
/// and must not change which operations are drawn.
const PAUSES: u64 = 1;

/// What sums of rates may be off by, in operations.
const ROUNDING: f64 = 1e-6;

/// What a thread brings home.
pub struct ThreadResult {
    /// Counts of its workers.
    pub workers: Vec<WorkerCount>,
    /// Counts of the target's endpoints, where there are several.
    pub endpoints: Vec<EndpointUse>,
    /// Its first failures of each class.
    pub examples: Vec<Example>,
    /// Open loop: operations due in the window and never sent.
    pub unsent: u64,
    /// Planned operations that were never begun.
    pub undone: u64,
    /// When the first operation was sent, or `Tick::MAX`.
    pub first_sent: Tick,
    /// When the last operation ended.
    pub last_done: Tick,
    /// The same of the load, without what is done once when it is over.
    pub load_done: Tick,
    /// When the last measured operation ended, or 0.
    pub last_measured: Tick,
}

struct Stream {
    source: Source,
    schedule: Option<Schedule>,
    pauses: Rng,
    /// Measured operations that this worker may still begin.
    left: Option<u64>,
    /// Its next operation, where the pause before it depends on which it is.
    ahead: Option<(Operation, Receipt)>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    busy: bool,
    measured: bool,
    stream: u32,
    operation: Operation,
    receipt: Receipt,
    due: Tick,
    sent: Tick,
    /// The generator's part of the time between the two.
    own_lag: u64,
    /// When its operation before this one ended: since then it is idle, if it is.
    freed: Tick,
}

/// One thread of a work.
pub struct LoadThread<'a> {
    work: &'a Work,
    control: &'a Control,
    clock: Clock,
    origin: Tick,
    phases: Phases,
    /// Number of its first worker within the work.
    first: u32,
    session: Box<dyn Session>,
    recorder: Recorder,
    streams: Vec<Stream>,
    slots: Vec<Slot>,
    idle: Idle,
    /// Streams that are due already, in the order in which they became so.
    ready: VecDeque<(Tick, u32)>,
    /// Streams that will be due.
    later: BinaryHeap<Reverse<(Tick, u32)>>,
    /// Since when due operations outnumber the slots, or `Tick::MAX` while they do not: what becomes due in such a time finds no
    /// slot because of the storage.
    exhausted: Tick,
    in_flight: u32,
    first_sent: Tick,
    last_done: Tick,
    load_done: Tick,
    last_measured: Tick,
    unsent: u64,
}

impl<'a> LoadThread<'a> {
    /// A thread for these workers of the work, with so many slots, whose load starts at `origin`.
    pub fn new(
        work: &'a Work,
        control: &'a Control,
        clock: Clock,
        origin: Tick,
        (Share { first, count }, slots): (Share, u32),
        session: Box<dyn Session>,
        mut recorder: Recorder,
    ) -> Self {
        let phases = work.stop.phases();
        let at = |since_start: u64| origin.saturating_add(since_start);
        recorder.set_window(at(phases.window_start), at(phases.window_end));
        let schedule = match &work.pacing {
            Pacing::Closed { .. } | Pacing::Terminals { .. } => None,
            Pacing::Open { rate, arrivals } => {
                Some(Schedule::new(&rate.with_ramp(work.stop.ramp_up_ns), *arrivals))
            }
        };
        let depth = work.depth.max(1);
        let own_slots = schedule.is_none() && depth == 1 && work.connections.is_none();
        let waiting = slots.max(count) as usize;
        let mut thread = Self {
            work,
            control,
            clock,
            origin,
            phases,
            first,
            session,
            recorder,
            streams: Vec::with_capacity(count as usize),
            slots: vec![Slot::default(); slots as usize],
            idle: Idle::new(slots, own_slots),
            ready: VecDeque::with_capacity(waiting),
            later: BinaryHeap::with_capacity(waiting),
            exhausted: Tick::MAX,
            in_flight: 0,
            first_sent: Tick::MAX,
            last_done: origin,
            load_done: origin,
            last_measured: 0,
            unsent: 0,
        };
        for index in first..first + count {
            let part = Part { index, of: work.workers };
            let mut source = work.source_of(index);
            let mut own = schedule.as_ref().map(|shared| shared.of_worker(part, source.rng()));
            let mut pauses = Rng::new(work.seed, &[work.stream[0], work.stream[1], u64::from(index), PAUSES]);
            let mut ahead = None;
            let start = match &mut own {
                Some(schedule) => schedule.next(source.rng()),
                None => {
                    // Closed loop: workers start one after the other over the ramp.
                    let step =
                        u128::from(work.stop.ramp_up_ns) * u128::from(index) / u128::from(work.workers);
                    // A terminal begins as if it had just ended an operation of the kind of its first.
                    let first = match &work.pacing {
                        Pacing::Terminals { pauses: each, .. } => {
                            ahead = source.draw();
                            let pause =
                                ahead.as_ref().and_then(|(first, _)| each.get(usize::from(first.action)));
                            pause.map_or(0, |pause| pause.think(&mut pauses).saturating_add(pause.keying_ns))
                        }
                        Pacing::Closed { .. } | Pacing::Open { .. } => 0,
                    };
                    Some((step as u64).saturating_add(first))
                }
            };
            let left = work.stop.operations.map(|total| part.share(total));
            let stream = thread.streams.len() as u32;
            thread.streams.push(Stream { source, schedule: own, pauses, left, ahead });
            // In a closed loop a stream goes round once for each of its operations in flight.
            let rounds = if schedule.is_some() { 1 } else { depth };
            if let Some(start) = start.filter(|start| *start < phases.load_end) {
                let due = Reverse((origin.saturating_add(start), stream));
                thread.later.extend(std::iter::repeat_n(due, rounds as usize));
            }
        }
        thread
    }

    /// Runs until the work is over for this thread.
    pub fn run(mut self) -> ThreadResult {
        let mut ended = Vec::with_capacity(self.slots.len());
        let (mut abandoned_at, mut backlog_dropped_at) = (None, None);
        loop {
            let now = self.clock.now();
            self.recorder.look_up(now, LOOK_UP_NS);
            self.heed(now);
            if self.in_flight == 0 && self.nothing_due() {
                break;
            }
            match abandoned_at {
                None if self.is_out_of_time(now) => {
                    // What was sent last from a backlog has had no time at all: it is the load that was too much, and
                    // no operation that hangs.
                    if !self.nothing_due() {
                        self.unsent += self.due_unsent(now);
                        self.ready.clear();
                        self.later.clear();
                        backlog_dropped_at = Some(now);
                    }
                    let grace =
                        backlog_dropped_at.map_or(0, |at: Tick| at + crate::thread_pool::EARLY_DRAIN_NS);
                    if now >= grace || self.control.abandons() {
                        self.session.abandon();
                        abandoned_at = Some(now);
                    }
                }
                Some(at) if now >= at + ABANDON_NS => {
                    self.write_off(now);
                    break;
                }
                _ => {}
            }
            let now = self.begin_what_is_due(now);
            self.session.flush();
            if now >= self.recorder.cut_at() {
                self.cut(now);
            }
            ended.clear();
            self.session.reap(self.wait_until(now), &mut ended);
            for completion in &ended {
                self.complete(completion);
            }
        }
        self.load_done = self.last_done;
        if abandoned_at.is_none() {
            self.recorder.end_load();
            self.finish_up();
        }
        self.result()
    }

    /// What is done once on every space when the load is over: this thread's share of it, all at once.
    fn finish_up(&mut self) {
        let Some(Finale { action, spaces: (low, high) }) = self.work.finale else { return };
        let until = self.clock.now().saturating_add(FINALE_NS);
        let workers = u64::from(self.work.workers_of_copy());
        let (first, own) = (u64::from(self.first) % workers, self.streams.len() as u64);
        let mut left = (low..=high).filter(|space| (first..first + own).contains(&((space - low) % workers)));
        let mut next = left.next();
        let mut ended = Vec::with_capacity(self.slots.len());
        while next.is_some() || self.in_flight > 0 {
            while let Some(space) = next {
                let stream = ((space - low) % workers - first) as u32;
                let Some(slot) = self.idle.take(stream) else { break };
                let operation = Operation { action, space, ..Operation::default() };
                let (receipt, sent) = (Receipt::default(), self.clock.now());
                let (due, measured) = (sent, true);
                let (own_lag, freed) = (0, sent);
                self.slots[slot as usize] =
                    Slot { busy: true, measured, stream, operation, receipt, due, sent, own_lag, freed };
                match self.session.begin(slot, &operation, sent) {
                    Begin::Started => self.in_flight += 1,
                    Begin::Done(done, outcome) => self.end(slot, done, &outcome),
                }
                next = left.next();
            }
            self.session.flush();
            let now = self.clock.now();
            if self.control.abandons() || now >= until {
                self.session.abandon();
                return self.write_off(now);
            }
            if now >= self.recorder.cut_at() {
                self.cut(now);
            }
            ended.clear();
            self.session.reap(self.recorder.cut_at().min(now + LOOK_UP_NS), &mut ended);
            for completion in &ended {
                self.complete(completion);
            }
        }
    }

    /// Follows the user's or the thread pool's stop request to end early.
    fn heed(&mut self, now: Tick) {
        if self.phases.window_start == u64::MAX
            && let Some(start) = self.control.window()
        {
            self.phases = self.work.stop.phases_from(start.saturating_sub(self.origin));
            let at = |since_start: u64| self.origin.saturating_add(since_start);
            self.recorder.set_window(at(self.phases.window_start), at(self.phases.window_end));
        }
        let Some(end) = self.control.end() else { return };
        if self.origin + self.phases.load_end.min(u64::MAX - self.origin) > end {
            let end = end.max(self.origin);
            self.phases.window_end = self.phases.window_end.min(end - self.origin);
            self.phases.load_end = end - self.origin;
            let start = self.origin.saturating_add(self.phases.window_start);
            self.recorder.set_window(start, self.origin.saturating_add(self.phases.window_end));
            self.unsent += self.due_unsent(now);
            self.ready.clear();
            self.later.clear();
        }
    }

    fn nothing_due(&self) -> bool {
        self.ready.is_empty() && self.later.is_empty()
    }

    /// Whether operations in flight have had all the time they get after the end of the load.
    fn is_out_of_time(&self, now: Tick) -> bool {
        if self.control.abandons() {
            return true;
        }
        let load_end = self.phases.load_end.saturating_add(self.origin);
        let drain = match self.control.end() {
            Some(_) => self.work.stop.drain_ns.min(crate::thread_pool::EARLY_DRAIN_NS),
            None => self.work.stop.drain_ns,
        };
        now >= load_end.saturating_add(drain)
    }

    /// Begins operations until none is due or no slot is idle, and returns the time.
    fn begin_what_is_due(&mut self, now: Tick) -> Tick {
        let mut sent = now;
        while let Some((due, stream)) = self.take_due(sent) {
            let slot = self.idle.take(stream).expect("take_due gives nothing without an idle slot");
            match self.begin(slot, stream, due) {
                Some(at) => sent = at,
                None => self.idle.give_back(slot),
            }
            // Where operations end as they begin, a thread is here for whole seconds, and does not stand still.
            self.recorder.look_up(sent, LOOK_UP_NS);
            // The second's cut and the end of the load are the outer loop's business.
            if sent >= self.recorder.cut_at() {
                return sent;
            }
        }
        if !self.idle.is_empty() {
            self.exhausted = Tick::MAX;
        }
        sent
    }

    /// The stream that has been due longest, if a slot is idle. An open loop's next operation of the stream
    /// is scheduled at once: due times do not depend on how operations fare.
    #[inline]
    fn take_due(&mut self, now: Tick) -> Option<(Tick, u32)> {
        if self.idle.is_empty() {
            return None;
        }
        let scheduled = self.later.peek().map(|Reverse(next)| *next).filter(|(due, _)| *due <= now);
        let (due, stream) = match (self.ready.front(), scheduled) {
            (Some(ready), scheduled) if scheduled.is_none_or(|scheduled| ready.0 <= scheduled.0) => {
                return self.ready.pop_front();
            }
            (_, scheduled) => scheduled?,
        };
        self.later.pop();
        let own = &mut self.streams[stream as usize];
        if let Some(schedule) = &mut own.schedule
            && let Some(next) = schedule.next(own.source.rng()).filter(|next| *next < self.phases.load_end)
        {
            self.later.push(Reverse((self.origin + next, stream)));
        }
        Some((due, stream))
    }

    /// Begins a stream's next operation and returns the time; `None` at the stream's end.
    #[inline]
    fn begin(&mut self, slot: u32, stream: u32, due: Tick) -> Option<Tick> {
        let own = &mut self.streams[stream as usize];
        let since_start = due - self.origin;
        let measured = since_start >= self.phases.window_start && since_start < self.phases.window_end;
        // What follows another operation (a sync) is done for it, and no operation of its own that was asked for.
        if measured && !own.source.owes() {
            match &mut own.left {
                Some(0) => return self.retire(stream),
                Some(left) => *left -= 1,
                None => {}
            }
        }
        let Some((operation, receipt)) = own.ahead.take().or_else(|| own.source.draw()) else {
            return self.retire(stream);
        };
        if measured && self.work.stop.bytes.is_some() && !self.control.take_bytes(operation.bytes) {
            return self.retire(stream);
        }
        let sent = self.clock.now();
        self.first_sent = self.first_sent.min(sent);
        let own_lag = self.own_lag(slot, due, sent);
        let freed = self.slots[slot as usize].freed;
        self.slots[slot as usize] =
            Slot { busy: true, measured, stream, operation, receipt, due, sent, own_lag, freed };
        match self.session.begin(slot, &operation, sent) {
            Begin::Started => self.in_flight += 1,
            Begin::Done(done, outcome) => self.end(slot, done, &outcome),
        }
        Some(sent)
    }

    /// For how long of the time between `due` and `sent` a slot was idle: until all were taken, if they were, and since this one
    /// is free. An open loop takes slots in the order in which they became idle, so no other has been idle for longer.
    #[inline]
    fn own_lag(&mut self, slot: u32, due: Tick, sent: Tick) -> u64 {
        let freed = self.slots[slot as usize].freed;
        let before = self.exhausted.min(freed).saturating_sub(due);
        if self.idle.is_empty() {
            self.exhausted = self.exhausted.min(sent);
        }
        before + sent.saturating_sub(due.max(freed))
    }

    /// Takes a stream out of an open loop's schedule for good.
    #[cold]
    fn retire(&mut self, stream: u32) -> Option<Tick> {
        self.streams[stream as usize].schedule = None;
        self.later.retain(|Reverse((_, other))| *other != stream);
        None
    }

    #[inline]
    fn complete(&mut self, completion: &Completion) {
        self.in_flight -= 1;
        self.end(completion.slot, completion.done, &completion.outcome);
    }

    #[inline]
    fn end(&mut self, slot: u32, done: Tick, outcome: &Outcome) {
        let Slot { measured, stream, operation, receipt, due, sent, own_lag, .. } = self.slots[slot as usize];
        (self.slots[slot as usize].busy, self.slots[slot as usize].freed) = (false, done);
        let who = Who { worker: stream, action: operation.action, slot };
        self.recorder.record(who, Timing { due, sent, own_lag, done }, outcome, measured);
        self.streams[stream as usize].source.ended(receipt, outcome);
        self.idle.give_back(slot);
        self.last_done = self.last_done.max(done);
        if measured {
            self.last_measured = self.last_measured.max(done);
            if self.work.stop.bytes.is_some() && operation.bytes == 0 {
                self.control.take_bytes(outcome.bytes);
            }
        }
        if let Some(pause) = self.pause_after(stream, operation.action) {
            let due = done.saturating_add(pause);
            if due.saturating_sub(self.origin) < self.phases.load_end {
                match pause {
                    0 => self.ready.push_back((due, stream)),
                    _ => self.later.push(Reverse((due, stream))),
                }
            }
        }
    }

    /// How long a worker of a closed loop pauses after this action and before its next operation, which a terminal chooses now.
    #[inline]
    fn pause_after(&mut self, stream: u32, action: u16) -> Option<u64> {
        let own = &mut self.streams[stream as usize];
        match &self.work.pacing {
            Pacing::Closed { think } => Some(think.draw(&mut own.pauses)),
            Pacing::Terminals { pauses, .. } => {
                own.ahead = own.source.draw();
                let next = own.ahead.as_ref().and_then(|(next, _)| pauses.get(usize::from(next.action)))?;
                let think = pauses.get(usize::from(action)).map_or(0, |pause| pause.think(&mut own.pauses));
                Some(think.saturating_add(next.keying_ns))
            }
            Pacing::Open { .. } => None,
        }
    }

    /// Until when there is nothing to do but to wait for completions.
    fn wait_until(&self, now: Tick) -> Tick {
        let is_over = self.in_flight == 0 && self.nothing_due();
        if is_over || (!self.idle.is_empty() && !self.ready.is_empty()) {
            return now;
        }
        let soon = self.recorder.cut_at().min(now + LOOK_UP_NS);
        match self.later.peek() {
            Some(Reverse((due, _))) if !self.idle.is_empty() => soon.min(*due),
            _ => soon,
        }
    }

    /// Ends the current interval.
    fn cut(&mut self, now: Tick) {
        self.recorder.requests(&self.session.requests());
        self.recorder.cut(now, self.standing(now));
    }

    fn standing(&self, now: Tick) -> Standing {
        let oldest = self.slots.iter().filter(|slot| slot.busy).map(|slot| slot.sent).min();
        Standing {
            in_flight: self.in_flight,
            oldest_ns: oldest.map_or(0, |sent| now.saturating_sub(sent)),
            backlog: self.due_unsent(now),
        }
    }

    /// Operations of an open loop, or of workers that share connections, that are due in the window, were due before `now`, and have not been sent.
    fn due_unsent(&self, now: Tick) -> u64 {
        let until = now.saturating_sub(self.origin).min(self.phases.window_end);
        let later = self.later.iter().map(|Reverse((due, _))| due - self.origin);
        let waiting = later.filter(|due| *due < until);
        let Pacing::Open { rate, .. } = &self.work.pacing else {
            // What waits for a connection that others have; a worker waits for one operation at a time.
            let ready = self.ready.iter().map(|(due, _)| due - self.origin).filter(|due| *due < until);
            return if self.work.connections.is_some() {
                (waiting.count() + ready.count()) as u64
            } else {
                0
            };
        };
        let per_stream = f64::from(self.work.workers).recip();
        // The first is due at `due` and the others a period apart each; what would be due at `until` is not among them.
        let of_stream = |due| (rate.due_between(due, until) * per_stream - ROUNDING).ceil() as u64;
        waiting.map(|due| of_stream(due).max(1)).sum()
    }

    /// Counts operations that did not even come back after being abandoned.
    fn write_off(&mut self, now: Tick) {
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].busy {
                self.end(slot, now, &Outcome::failure(Fault::Abandoned));
            }
        }
    }

    fn result(mut self) -> ThreadResult {
        let undone = self.streams.iter().map(|stream| stream.source.left() + stream.left.unwrap_or(0)).sum();
        self.recorder.requests(&self.session.requests());
        let (workers, endpoints) = self.recorder.finish(self.clock.now());
        ThreadResult {
            examples: self.session.examples(),
            workers,
            endpoints,
            unsent: self.unsent,
            undone,
            first_sent: self.first_sent,
            last_done: self.last_done,
            load_done: self.load_done,
            last_measured: self.last_measured,
        }
    }
}
