//! Fault injection: a handle that makes a healthy server misbehave while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::error::EmbeddedError;
use crate::fault::{Fault, Seen};
use crate::plan::{Plan, Verdict};
use crate::store::Store;

/// Identifies an active fault, to count or remove it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(pub(super) u64);

/// The control handle of one server's faults; clones control the same server. Changes count from the next request on.
///
/// A handle keeps the store of a stopped server alive, and with it the lock on its directory.
#[derive(Clone)]
pub struct Faults {
    shared: Arc<Shared>,
}

struct Shared {
    /// Whether any fault is active: all that a healthy request checks.
    armed: AtomicBool,
    plan: Mutex<Plan>,
    /// Wakes requests that wait for a freeze to end, when it ends early.
    changed: Notify,
    store: Arc<Store>,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").field("plan", &*self.plan()).finish_non_exhaustive()
    }
}

impl Faults {
    pub(super) fn new(store: Arc<Store>, seed: u64) -> Self {
        let plan = Mutex::new(Plan::new(seed));
        Self {
            shared: Arc::new(Shared { armed: AtomicBool::new(false), plan, changed: Notify::new(), store }),
        }
    }

    /// Activates a fault. When several strike one request, delays add up and the first that replaces or
    /// breaks the answer wins, in the order in which they were added.
    pub fn add(&self, fault: Fault) -> FaultId {
        self.change(|plan| plan.add(fault))
    }

    /// Removes a fault; nothing happens if it is not active.
    pub fn remove(&self, id: FaultId) {
        self.change(|plan| plan.remove(id));
    }

    /// Removes faults, freezes, the rate cap and the limit of slots. Frozen requests continue immediately.
    pub fn clear(&self) {
        self.change(Plan::clear);
    }

    /// How many requests a fault has struck so far; 0 when it was removed.
    #[must_use]
    pub fn struck(&self, id: FaultId) -> u64 {
        self.plan().struck(id)
    }

    /// Answers nothing for this long, beginning now. Requests are accepted and wait; bodies already being sent
    /// continue. A later freeze replaces an earlier one.
    pub fn freeze(&self, length: Duration) {
        self.change(|plan| plan.freeze(Instant::now().checked_add(length)));
    }

    /// Freezes for `length` at the end of each `period`, beginning now: `freeze_every(2 s, 200 ms)` answers for 1.8 s,
    /// then nothing for 0.2 s, and so on. A length of the whole period or more never answers.
    pub fn freeze_every(&self, period: Duration, length: Duration) {
        self.change(|plan| plan.stutter(Instant::now(), period, length));
    }

    /// Serves at most this many requests per second, by delaying those that come too early; `None` lifts the cap.
    /// A rate that is not a positive number lifts it as well.
    pub fn limit_rate(&self, requests_per_second: Option<f64>) {
        let interval = requests_per_second.filter(|rate| *rate > 0.0).map(|rate| 1.0 / rate);
        let interval = interval.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        self.change(|plan| plan.cap(interval, Instant::now()));
    }

    /// Serves at most this many requests at once, each for `service`; the others wait for their turn. The capacity is
    /// `slots` divided by `service`, whatever else the machine does, as long as requests are waiting. 0 slots lift the limit.
    pub fn limit_slots(&self, slots: usize, service: Duration) {
        self.change(|plan| plan.serve(slots, service, Instant::now()));
    }

    /// Inverts the byte at `offset` of a stored object. Its ETag, size and date stay as they are.
    ///
    /// # Errors
    /// [`EmbeddedError::NoSuchObject`] and [`EmbeddedError::PastEnd`] when there is no such byte,
    /// [`EmbeddedError::Directory`] when the object's file cannot be changed.
    pub fn corrupt(&self, bucket: &str, key: &str, offset: u64) -> Result<(), EmbeddedError> {
        self.shared.store.corrupt(bucket, key, offset)
    }

    /// Whether requests have to be judged at all.
    pub(super) fn armed(&self) -> bool {
        self.shared.armed.load(Ordering::Acquire)
    }

    /// Decides about a request that arrives now.
    pub(super) fn judge(&self, request: &Seen<'_>) -> Verdict {
        self.plan().judge(request, Instant::now())
    }

    /// Waits until the server is not frozen.
    pub(super) async fn thaw(&self) {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Listening begins before the plan is read, so that a change in between is not missed.
            changed.as_mut().enable();
            let now = Instant::now();
            let Some(until) = self.plan().frozen_until(now) else { return };
            // After the timeout or a wake-up, the plan is read again.
            let _ = tokio::time::timeout_at(until.into(), changed).await;
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> T {
        let mut plan = self.plan();
        let result = change(&mut plan);
        self.shared.armed.store(!plan.is_empty(), Ordering::Release);
        drop(plan);
        self.shared.changed.notify_waiters();
        result
    }
}
