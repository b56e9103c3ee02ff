//! All drivers of a controller, and which run each of them works for.

mod driver_handle;

use crate::link::frame::{Body, excerpt};
use crate::link::server;
use crate::protocol::{Down, Health, Hello, Second, Up, VERSION};
use crossbeam_channel::Sender;
pub(crate) use driver_handle::{Arrival, DriverHandle, Entry, FromDriver, Line, Message};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Most drivers that a controller has.
const DRIVERS_MOST: usize = 10_000;

/// Most bytes that a driver's name has.
const NAME_MOST: usize = 128;

/// How drivers are assigned with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tidemark's version: drivers of another one are refused.
    pub version: String,
    /// A driver that is silent for this long is [`Presence::Silent`]. Usually 2 s.
    pub silent_after: Duration,
    /// An idle driver that is silent for this long is gone, and forgotten after ten times as long.
    pub gone_after: Duration,
    /// The controller's name, as sent to drivers.
    pub name: String,
}

/// A driver as its controller sees it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Who it is.
    pub hello: Hello,
    /// Where it connects from.
    pub address: String,
    /// Whether it is there.
    pub presence: Presence,
    /// Its host's health, as last reported.
    pub health: Health,
    /// How far its clock is ahead of the controller's, nanoseconds.
    pub clock_offset_ns: i64,
    /// The most that this can be wrong, nanoseconds: half of the shortest round trip lately, and what the clocks may have drifted
    /// since. `u64::MAX` while nothing is known.
    pub clock_error_ns: u64,
    /// Time since its last message.
    pub silent: Duration,
    /// When it joined, milliseconds since 1970 UTC.
    pub joined_unix_ms: u64,
    /// The run that has claimed it, if any.
    pub run: Option<u64>,
}

/// Whether a driver is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It responds.
    Present,
    /// It is connected or was a moment ago, and silent.
    Silent,
    /// It is gone.
    Gone,
}

/// Events of a driver for the run that has claimed it.
#[derive(Clone, Debug)]
pub enum Heard {
    /// A message.
    Message(Box<Up>),
    /// A second of load.
    Second(Second),
    /// Its connection is cut, or it is silent. Its messages follow later, if it returns.
    Away,
    /// It is connected again: none of its messages is missing.
    Back,
    /// It will not come back to this run, and why, as a clause: `it was restarted`.
    Gone(String),
}

/// Why a driver cannot be claimed: a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ClaimError(pub String);

/// All drivers of a controller.
pub struct Fleet {
    options: Options,
    /// When the controller's clock began.
    origin: Instant,
    handles: Mutex<BTreeMap<String, Arc<DriverHandle>>>,
    changes: watch::Sender<u64>,
    /// Whether the task that checks for silent drivers runs.
    watched: Once,
}

impl Fleet {
    /// No drivers yet.
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            options,
            origin: Instant::now(),
            handles: Mutex::default(),
            changes: watch::Sender::default(),
            watched: Once::new(),
        })
    }

    /// The controller's monotonic clock, nanoseconds since the fleet was made.
    pub fn clock_ns(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    /// When that clock shows, or showed, `ns`.
    pub fn instant_of(&self, ns: i64) -> Instant {
        crate::link::instant_of(self.origin, ns)
    }

    /// All drivers by name.
    pub fn members(&self) -> Vec<Member> {
        let handles: Vec<_> = self.handles().values().cloned().collect();
        handles.iter().map(|handle| handle.member(self.clock_ns())).collect()
    }

    /// Claims a driver for a run: its messages go to `heard`, which is unbounded, marked with `tag`, until it is released.
    /// After [`Heard::Gone`] nothing follows, and the driver still has to be released.
    ///
    /// # Errors
    /// When there is no such driver, it does not respond, or it is in use by another run.
    pub fn claim(
        &self,
        name: &str,
        run: u64,
        tag: u32,
        heard: Sender<(u32, Heard)>,
    ) -> Result<(), ClaimError> {
        let handle = self.handle(name).ok_or_else(|| ClaimError(format!("there is no driver {name}")))?;
        handle.claim(run, tag, heard)?;
        self.changed();
        Ok(())
    }

    /// Sends a message to a driver. It arrives once and in order, cuts or not, unless the driver is gone.
    #[expect(clippy::needless_pass_by_value, reason = "the message is handed over")]
    pub fn send(&self, name: &str, down: Down) {
        if let Some(handle) = self.handle(name) {
            // Large plans are written before the handle is locked.
            handle.send(Body::word(&down));
        }
    }

    /// Releases a driver: it is free for another run. What was sent to it still arrives.
    pub fn release(&self, name: &str) {
        self.let_go(name, None);
    }

    /// Releases a driver if this run has claimed it.
    pub fn release_from(&self, name: &str, run: u64) {
        self.let_go(name, Some(run));
    }

    /// Drops a driver for this run: its session is void, it must join again, and what it has not sent is lost. It learns that
    /// it was given up as soon as it can, the run hears nothing more of it, and it still has to be released.
    pub fn give_up(&self, name: &str) {
        if let Some(handle) = self.handle(name) {
            handle.give_up();
            self.changed();
        }
    }

    /// Talks with a driver until the connection is over. The caller has checked its token, and has taken the
    /// connection with [`crate::link::limits`].
    pub async fn serve(self: &Arc<Self>, socket: axum::extract::ws::WebSocket, address: String) {
        self.watch();
        server::serve(self, socket, address).await;
    }

    /// Wakes up whenever a driver came, went, fell silent, was claimed or released.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Something changed.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The controller's name.
    pub(crate) fn name(&self) -> &str {
        &self.options.name
    }

    /// Lets a driver in.
    ///
    /// # Errors
    /// When it cannot be: a sentence for the driver.
    pub(crate) fn enter(&self, arrival: Arrival) -> Result<(Arc<DriverHandle>, Entry), String> {
        self.check(&arrival.hello)?;
        // The list stays locked until the driver has its handle, or the handle could be forgotten in between.
        let mut handles = self.handles();
        let name = &arrival.hello.name;
        if !handles.contains_key(name) && handles.len() >= DRIVERS_MOST {
            return Err(format!("this controller has {DRIVERS_MOST} drivers, which is the limit"));
        }
        let handle =
            handles.entry(name.clone()).or_insert_with(|| Arc::new(DriverHandle::new(arrival.hello.clone())));
        let entry = handle.enter(arrival)?;
        let handle = Arc::clone(handle);
        drop(handles);
        self.changed();
        Ok((handle, entry))
    }

    fn check(&self, hello: &Hello) -> Result<(), String> {
        let ours = &self.options.version;
        if hello.protocol != VERSION || hello.tidemark != *ours {
            return Err(format!(
                "this controller is Tidemark {ours} (protocol {VERSION}) and the driver Tidemark {} (protocol {}): install the \
                 same version on both",
                excerpt(&hello.tidemark),
                hello.protocol
            ));
        }
        if hello.name.is_empty() || hello.name.len() > NAME_MOST || hello.name.chars().any(char::is_control) {
            return Err(format!(
                "a driver's name must have 1 to {NAME_MOST} printable characters: set it with --name"
            ));
        }
        Ok(())
    }

    fn let_go(&self, name: &str, run: Option<u64>) {
        if let Some(handle) = self.handle(name) {
            handle.release(run);
            self.changed();
        }
    }

    fn handles(&self) -> MutexGuard<'_, BTreeMap<String, Arc<DriverHandle>>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, name: &str) -> Option<Arc<DriverHandle>> {
        self.handles().get(name).cloned()
    }

    /// Checks for silent drivers for as long as there is a fleet: one task for all.
    fn watch(self: &Arc<Self>) {
        self.watched.call_once(|| {
            let every =
                (self.options.silent_after / 8).clamp(Duration::from_millis(10), Duration::from_millis(250));
            let fleet = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(every).await;
                    let Some(fleet) = fleet.upgrade() else { return };
                    fleet.tick();
                }
            });
        });
    }

    fn tick(&self) {
        let mut changed = false;
        self.handles().retain(|_, handle| {
            let (differs, forgotten) = handle.tick(&self.options);
            changed |= differs || forgotten;
            !forgotten
        });
        if changed {
            self.changed();
        }
    }
}
