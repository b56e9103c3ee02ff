//! All drivers of a controller, and the run that each of them works for.

mod driver_handle;

use crate::link::frame::{Body, excerpt};
use crate::link::{Intake, server};
use crate::protocol::{Down, Hello, Second, Up, VERSION};
use crate::words;
use crossbeam_channel::Sender;
pub(crate) use driver_handle::{
    Admission, Connection, DriverFrame, DriverHandle, JoinRequest, Message, Refusal,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};
use tidemark_measure::host::Utilization;
use tokio::sync::watch;

/// Most drivers that a controller has.
const DRIVERS_MOST: usize = 10_000;

/// Most characters that a driver's name has.
const NAME_MOST: usize = 128;

/// What a driver's name has besides letters and digits: what names of hosts and of objects of Kubernetes have, and a little more.
const NAME_SIGNS: &str = "-_.:@+";

/// How a controller treats its drivers.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tidemark's version: drivers of another one are refused.
    pub version: String,
    /// After so long without a sign of life a driver is [`Presence::Silent`]. Usually 2 s.
    pub silent_after: Duration,
    /// After so long without a sign of life an idle driver is gone; after ten times as long it is forgotten.
    pub gone_after: Duration,
    /// The controller's name, as drivers show it.
    pub name: String,
}

/// Who connects as a driver, before it has introduced itself.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Where it connects from.
    pub address: String,
    /// The name of its token: the only name under which the driver may join, or the beginning of such names followed by `*`.
    pub token: String,
}

impl Visitor {
    /// Refuses names that the token is not for.
    fn check(&self, name: &str) -> Result<(), String> {
        let (is_good, names) = match self.token.strip_suffix('*') {
            Some(start) => (name.starts_with(start), format!("names that begin with `{}`", excerpt(start))),
            None => (name == self.token, format!("the name `{}`", excerpt(&self.token))),
        };
        match is_good {
            true => Ok(()),
            false => Err(format!(
                "this driver's token is for {names}, and it wants to be `{}`: join under such a --name, or with a token of its \
                 own (`tidemark token add NAME --role driver`)",
                excerpt(name)
            )),
        }
    }
}

/// Whether a driver may have this name, so that no two look alike and none passes for something else.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.len() <= NAME_MOST
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || NAME_SIGNS.contains(sign))
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
    /// How busy its host is, from its last report.
    pub utilization: Utilization,
    /// How far its clock is ahead of the controller's, nanoseconds.
    pub clock_offset_ns: i64,
    /// The most that this can be wrong, nanoseconds: half of the shortest round trip lately, and what the clocks may have drifted
    /// since. `u64::MAX` while nothing is known.
    pub clock_error_ns: u64,
    /// Time since its last sign of life.
    pub silent: Duration,
    /// When it joined, milliseconds since 1970 UTC.
    pub joined_unix_ms: u64,
    /// The run that has claimed it, if any.
    pub run: Option<u64>,
    /// An earlier run that has not ended there yet, if any.
    pub ending: Option<Ending>,
}

/// A run that was released and still ends on a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The number of the run.
    pub run: u64,
    /// Since when it is to end.
    pub since: Instant,
}

/// Whether a driver is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It answers.
    Present,
    /// It is connected, or was a moment ago, and gives no sign of life.
    Silent,
    /// It is gone.
    Gone,
}

/// What a run receives from a driver that it has claimed.
#[derive(Clone, Debug)]
pub enum FromDriver {
    /// A message.
    Message(Box<Up>),
    /// A second of load.
    Second(Second),
    /// The connection is cut, or the driver is silent. Its messages follow if it comes back.
    Disconnected,
    /// The driver is back, and nothing was lost.
    Reconnected,
    /// The driver will not come back to this run, and why, as a clause: `it was restarted`.
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

    /// Claims a driver for a run: until it is released, what it sends goes to `events`, which is unbounded, marked with `tag`.
    /// After [`FromDriver::Gone`] nothing follows, and the driver still has to be released.
    ///
    /// # Errors
    /// When there is no such driver, it does not answer, or it works for another run.
    pub fn claim(
        &self,
        name: &str,
        run: u64,
        tag: u32,
        events: Sender<(u32, FromDriver)>,
    ) -> Result<(), ClaimError> {
        let handle = self.handle(name).ok_or_else(|| ClaimError(format!("no driver is named {name}")))?;
        handle.claim(run, tag, events)?;
        self.changed();
        Ok(())
    }

    /// Sends a driver a message. It arrives exactly once and in order, also across cuts, unless the driver is gone.
    #[expect(clippy::needless_pass_by_value, reason = "the message is handed over")]
    pub fn send(&self, name: &str, down: Down) {
        if let Some(handle) = self.handle(name) {
            // Large plans are serialized before the handle is locked.
            let prepares = matches!(down, Down::Prepare { .. });
            handle.send(Body::json(&down), prepares);
        }
    }

    /// Releases a driver: another run can claim it. Messages on their way to it still arrive.
    pub fn release(&self, name: &str) {
        self.let_go(name, None);
    }

    /// Releases a driver if this run has claimed it.
    pub fn release_from(&self, name: &str, run: u64) {
        self.let_go(name, Some(run));
    }

    /// Gives a driver up for this run: its session is void, it has to join again, and messages that have not arrived are lost. It
    /// is told as soon as it can be reached, the run receives nothing more from it, and it still has to be released.
    pub fn give_up(&self, name: &str) {
        if let Some(handle) = self.handle(name) {
            handle.give_up();
            self.changed();
        }
    }

    /// Serves a driver until its connection ends. The caller has checked its token, has taken the connection with
    /// [`crate::link::limits`], and tells `intake` what comes over it; `admitted` is called when the driver was let in.
    pub async fn serve(
        self: &Arc<Self>,
        socket: axum::extract::ws::WebSocket,
        visitor: Visitor,
        intake: &Intake,
        admitted: impl FnOnce(),
    ) {
        self.watch();
        server::serve(self, socket, visitor, intake, admitted).await;
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
    pub(crate) fn admit(&self, mut request: JoinRequest) -> Result<(Arc<DriverHandle>, Admission), Refusal> {
        self.check(&request.hello)?;
        words::cut_host(&mut request.hello.host);
        request.visitor.check(&request.hello.name)?;
        // The list stays locked until the driver has its handle, or the handle could be forgotten in between.
        let mut handles = self.handles();
        let name = &request.hello.name;
        if !handles.contains_key(name) && handles.len() >= DRIVERS_MOST {
            return Err(format!("this controller already has {DRIVERS_MOST} drivers, the maximum").into());
        }
        let handle =
            handles.entry(name.clone()).or_insert_with(|| Arc::new(DriverHandle::new(request.hello.clone())));
        let entry = handle.admit(request)?;
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
        if !is_name(&hello.name) {
            return Err(format!(
                "a driver needs a name of 1 to {NAME_MOST} letters from A to Z, digits and the signs {NAME_SIGNS}, with a letter or digit \
                 at its beginning: give it one with --name"
            ));
        }
        let is_printable =
            |text: &str| text.chars().count() <= NAME_MOST && !text.chars().any(char::is_control);
        if !is_printable(&hello.machine) || !is_printable(&hello.host.name) {
            return Err(format!("a driver's host needs a name of at most {NAME_MOST} printable characters"));
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

    /// Checks for silent drivers for as long as the fleet exists: one task for all.
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
