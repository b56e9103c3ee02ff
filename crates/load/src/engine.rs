//! The engine contract: submission apart from completion, so that one loop serves batches of io_uring
//! requests, HTTP over many sockets, SQL, and remote tools.
//!
//! A *session* belongs to one thread and has a fixed number of *slots*; each slot carries at most one
//! operation at a time. The loop begins operations on idle slots, flushes, and reaps completions until a
//! deadline. Nothing here allocates, locks or logs per operation.

use std::time::Instant;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{EndpointKind, EndpointUse, Example};
use tidemark_measure::verification::Checked;

/// Nanoseconds since the work's start, on one monotonic clock.
pub type Tick = u64;

/// The one clock of a work: monotonic nanoseconds since its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Instant,
    /// What it reads, where a test makes the time.
    #[cfg(test)]
    made: Option<&'static std::sync::atomic::AtomicU64>,
}

impl Clock {
    /// A clock that reads 0 at `epoch`.
    pub fn starting_at(epoch: Instant) -> Self {
        Self {
            epoch,
            #[cfg(test)]
            made: None,
        }
    }

    /// Now; 0 before the epoch.
    #[inline]
    pub fn now(&self) -> Tick {
        #[cfg(test)]
        if let Some(made) = self.made {
            return made.load(std::sync::atomic::Ordering::Relaxed);
        }
        self.at(Instant::now())
    }

    /// What it reads at `instant`; 0 before the epoch.
    #[inline]
    pub fn at(&self, instant: Instant) -> Tick {
        instant.saturating_duration_since(self.epoch).as_nanos() as u64
    }
}

#[cfg(test)]
impl Clock {
    /// A clock that reads 0 until somebody waits on it.
    pub(crate) fn made() -> Self {
        Self { epoch: Instant::now(), made: Some(Box::leak(Box::default())) }
    }

    /// Waits until it reads `until`, or for a little while of real time. Made time passes at once, and only here.
    pub(crate) fn wait(&self, until: Tick) {
        match self.made {
            Some(made) => _ = made.fetch_max(until, std::sync::atomic::Ordering::Relaxed),
            None => std::thread::sleep(std::time::Duration::from_micros(50)),
        }
    }
}

/// One operation in numbers. What they mean is agreed between the plan and the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Which action of the work.
    pub action: u16,
    /// Container, file or table number.
    pub space: u64,
    /// Object, block or row number within it.
    pub item: u64,
    /// Bytes to write, or to read where the action reads a part; 0 where the action has no size.
    pub bytes: u64,
    /// Random bits from the worker's stream, for choices that are the engine's own.
    pub random: u64,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes of content moved, as the action counts them.
    pub bytes: u64,
    /// When the first byte of the reply's content came, if the protocol has such a thing.
    pub first_byte: Option<Tick>,
    /// Attempts beyond the first.
    pub retries: u32,
    /// Why it failed; `None` for success.
    pub fault: Option<Fault>,
    /// Of a success: whether its content was verified.
    pub checked: Checked,
}

impl Outcome {
    /// A success that moved `bytes` bytes.
    pub fn success(bytes: u64) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// A failure that moved nothing.
    pub fn failure(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }
}

/// What [`Session::begin`] did with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// It is in flight; a [`Completion`] will come.
    Started,
    /// It ended at once, at the tick given.
    Done(Tick, Outcome),
}

/// The end of an operation that was in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot that carried it.
    pub slot: u32,
    /// When it ended.
    pub done: Tick,
    /// How.
    pub outcome: Outcome,
}

/// What an engine needs to open a session on a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadContext {
    /// The work's clock.
    pub clock: Clock,
    /// The thread's number within the work, from 0.
    pub thread: u32,
    /// Number of the session's first slot within the work, over all threads and drivers.
    pub first_slot: u32,
    /// How many slots the session has.
    pub slots: u32,
    /// The most bytes of an operation: what a slot's buffer must hold.
    pub largest: u64,
    /// The run's seed.
    pub seed: u64,
}

/// A session could not be opened: one clear sentence with the remedy, never a secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

/// Something that a load can run against, configured for one work. Shared by the work's threads.
pub trait Sessions: Send + Sync {
    /// Opens a session on the calling thread. Connections may be made here or on first use.
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError>;

    /// The servers that the slots are spread over, as reports name them: slot `s` of the work talks to number `s` modulo
    /// their count ([`crate::endpoints::endpoint_of`]), unless they are [`Shared`](EndpointKind::Shared). None where neither is so.
    fn endpoints(&self) -> Vec<String> {
        Vec::new()
    }

    /// What those are.
    fn endpoint_kind(&self) -> EndpointKind {
        EndpointKind::Endpoint
    }
}

/// One thread's share of an engine: the hot path. Not `Send`: it stays on the thread that opened it.
pub trait Session {
    /// Begins `operation` on an idle `slot` at `sent`. May only queue it until [`Session::flush`].
    fn begin(&mut self, slot: u32, operation: &Operation, sent: Tick) -> Begin;

    /// Sends what `begin` queued: one system call for a batch, where the engine can.
    fn flush(&mut self) {}

    /// Waits until at least one operation has ended or `until` has come (precisely: never on a timer of
    /// milliseconds) and appends what ended. With nothing in flight it waits out the time; with `until`
    /// in the past it only looks.
    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>);

    /// Gives up every operation in flight, without waiting; their slots complete as
    /// [`Fault::Abandoned`] at the next `reap`.
    fn abandon(&mut self);

    /// What the requests that ended since the last call did at each of the endpoints, in their order, where all slots
    /// [share](EndpointKind::Shared) them. Called once a second.
    fn requests(&mut self) -> Vec<EndpointUse> {
        Vec::new()
    }

    /// The first few failures of each class, word for word; empties the list.
    fn examples(&mut self) -> Vec<Example> {
        Vec::new()
    }
}

/// The engine that does nothing: it measures Tidemark itself, as fio's null engine measures fio.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Sessions for Null {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        Ok(Box::new(NullSession(thread.clock)))
    }
}

struct NullSession(Clock);

impl Session for NullSession {
    fn begin(&mut self, _lane: u32, operation: &Operation, _sent: Tick) -> Begin {
        Begin::Done(self.0.now(), Outcome::success(operation.bytes))
    }

    fn reap(&mut self, until: Tick, _ended: &mut Vec<Completion>) {
        let now = self.0.now();
        if until > now {
            std::thread::sleep(std::time::Duration::from_nanos(until - now));
        }
    }

    fn abandon(&mut self) {}
}
