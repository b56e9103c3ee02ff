//! One driver as its controller knows it: session, presence, clock, and the run that has claimed it. Does no input or
//! output; [`crate::link::server`] does it for one connection after the other.

use super::{ClaimError, Ending, FromDriver, Member, Options, Presence, Visitor};
use crate::link::clock::Clock;
use crate::link::frame::{Body, Packet, Resume, SessionId};
use crate::link::stream::Stream;
use crate::protocol::{Hello, Second, Up};
use crossbeam_channel::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidemark_measure::host::Utilization;
use tokio::sync::Notify;

/// Packets handed to a connection at once.
const BATCH: usize = 64;

/// A connection without a frame for so long is closed. Longer than the largest message may take.
const HALF_OPEN: Duration = Duration::from_secs(30);

/// What a driver does not report within this is no longer waited for: it replaces a run's process after
/// [`ENDING`](crate::driver::ENDING).
const ENDING_MOST: Duration = Duration::from_secs(60);

/// A connection to a driver, as those see it who want something sent or want it closed.
#[derive(Default)]
pub(crate) struct Connection {
    /// Signals that there may be something to send.
    pub(crate) wake: Notify,
    /// Signals that it is to be closed.
    pub(crate) closed: Notify,
    /// Why it is closed, if the driver is to be told.
    pub(crate) reason: OnceLock<String>,
}

impl Connection {
    fn close(&self, reason: Option<String>) {
        if let Some(reason) = reason {
            // Only the first reason counts.
            let _ = self.reason.set(reason);
        }
        self.closed.notify_one();
    }
}

/// A frame from a driver.
pub(crate) enum DriverFrame {
    /// A message: its number, the acknowledgement that came with it, and itself.
    Numbered(u64, u64, Message),
    /// An answer to a ping: the acknowledgement, and the times that [`Clock::take`] wants but the last.
    Pong(u64, [i64; 3]),
    /// How busy its host is.
    Utilization(Utilization),
}

/// A numbered message.
pub(crate) enum Message {
    /// A JSON message.
    Up(Box<Up>),
    /// A second of load.
    Second(Second),
}

/// The first frame on a connection, and where it comes from.
pub(crate) struct JoinRequest {
    pub(crate) hello: Hello,
    pub(crate) resume: Option<Resume>,
    pub(crate) visitor: Visitor,
}

/// Why a driver is not admitted.
pub(crate) struct Refusal {
    /// A sentence for the driver.
    pub(crate) reason: String,
    /// Whether it may be admitted later.
    pub(crate) later: bool,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, later: false }
    }
}

/// The answer to a driver that was admitted.
pub(crate) struct Admission {
    /// The session.
    pub(crate) session: SessionId,
    /// If it is resumed: the last message received here, and the last that the driver has received.
    pub(crate) resumed: Option<(u64, u64)>,
    /// The connection.
    pub(crate) connection: Arc<Connection>,
}

/// One driver.
pub(crate) struct DriverHandle(Mutex<State>);

struct State {
    hello: Hello,
    /// Who has the seat, or had it last.
    visitor: Visitor,
    joined_unix_ms: u64,
    session: Option<(SessionId, Stream)>,
    connection: Option<Arc<Connection>>,
    presence: Presence,
    heard_at: Instant,
    utilization: Utilization,
    clock: Clock,
    claim: Option<Claim>,
    /// A run that has not ended there, although it was released.
    ending: Option<Ending>,
}

struct Claim {
    run: u64,
    tag: u32,
    events: Sender<(u32, FromDriver)>,
    /// Whether the run knows that the driver is gone: it receives nothing more.
    over: bool,
    /// Whether the driver has begun with the run and has not ended it.
    open: bool,
}

impl DriverHandle {
    /// For a driver that has not been admitted yet.
    pub(crate) fn new(hello: Hello) -> Self {
        Self(Mutex::new(State {
            hello,
            visitor: Visitor { address: String::new(), token: String::new() },
            joined_unix_ms: 0,
            session: None,
            connection: None,
            presence: Presence::Gone,
            heard_at: Instant::now(),
            utilization: Utilization::default(),
            clock: Clock::default(),
            claim: None,
            ending: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No state is left half changed by a panic: there is none to expect.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a driver, with its earlier session or a new one. Its other connection, if there is one, is closed.
    ///
    /// # Errors
    /// When another driver has the seat: one that does not answer keeps it until the controller gives it up. A driver that was
    /// restarted, which has the same token, takes it over once the old connection has ended.
    pub(crate) fn admit(&self, request: JoinRequest) -> Result<Admission, Refusal> {
        let mut state = self.lock();
        let own_token = state.visitor.token == request.visitor.token;
        let same = own_token && state.hello.instance == request.hello.instance;
        let is_held = state.session.is_some() && state.presence != Presence::Gone;
        if is_held && !same && (state.connection.is_some() || !own_token) {
            let taken = format!(
                "a driver named {} has already joined from {}",
                state.hello.name, state.visitor.address
            );
            return Err(match state.presence {
                Presence::Present => format!("{taken}: give this one another --name").into(),
                _ => Refusal {
                    reason: format!("{taken}, and keeps its seat until the controller gives it up"),
                    later: true,
                },
            });
        }
        let connection = Arc::new(Connection::default());
        let kept = match (&mut state.session, request.resume) {
            (Some((id, stream)), Some(resume)) if same && *id == resume.session => {
                stream.resume(resume.received).then(|| (id.clone(), (stream.received(), resume.received)))
            }
            _ => None,
        };
        let (session, resumed) = match kept {
            Some((session, behind)) => (session, Some(behind)),
            None => {
                let session =
                    SessionId::random().map_err(|error| format!("cannot start a session: {error}"))?;
                let why = if same { "it lost its session" } else { "it was restarted" };
                state.notify(|| FromDriver::Gone(why.into()));
                state.session = Some((session.clone(), Stream::default()));
                state.joined_unix_ms = unix_ms();
                state.utilization = Utilization::default();
                state.clock = Clock::default();
                (session, None)
            }
        };
        if let Some(old) = state.connection.replace(Arc::clone(&connection)) {
            old.close(None);
        }
        if !same {
            // What another process was at has ended with it.
            state.ending = None;
            state.claim.iter_mut().for_each(|claim| claim.open = false);
        }
        state.hello = request.hello;
        state.visitor = request.visitor;
        if state.presence == Presence::Gone || resumed.is_none() {
            state.presence = Presence::Silent;
        }
        state.alive();
        Ok(Admission { session, resumed, connection })
    }

    /// Takes a frame from a connection. Returns whether the driver's presence changed, or what it still ends.
    ///
    /// # Errors
    /// When the frame is wrong: a clause. The session has to be made void then.
    pub(crate) fn receive(
        &self,
        connection: &Arc<Connection>,
        frame: DriverFrame,
        now_ns: i64,
    ) -> Result<bool, String> {
        let mut state = self.lock();
        if !state.has(connection) {
            return Ok(false);
        }
        let Some((_, stream)) = &mut state.session else { return Ok(false) };
        let mut message = None;
        match frame {
            DriverFrame::Numbered(number, ack, numbered) => {
                stream.acknowledge(ack)?;
                if stream.receive(number)? {
                    message = Some(numbered);
                }
            }
            DriverFrame::Pong(ack, [sent_ns, came_ns, answered_ns]) => {
                stream.acknowledge(ack)?;
                state.clock.take(sent_ns, came_ns, answered_ns, now_ns);
            }
            DriverFrame::Utilization(utilization) => state.utilization = utilization,
        }
        let mut changed = state.alive();
        if let Some(message) = message {
            if let Message::Up(up) = &message
                && let Up::Released { run, .. } | Up::Refused { run, .. } = **up
            {
                changed |= state.has_ended(run);
            }
            state.notify(|| match message {
                Message::Up(up) => FromDriver::Message(up),
                Message::Second(second) => FromDriver::Second(second),
            });
        }
        Ok(changed)
    }

    /// What to send over a connection after message `cursor`, the last message received, and whether a run has claimed the
    /// driver. `None`: the driver has another connection by now.
    pub(crate) fn outgoing(
        &self,
        connection: &Arc<Connection>,
        cursor: &mut u64,
    ) -> Option<(Vec<Packet>, u64, bool)> {
        let state = self.lock();
        let (_, stream) = state.session.as_ref().filter(|_| state.has(connection))?;
        let packets = std::iter::from_fn(|| stream.next(cursor)).take(BATCH).collect();
        Some((packets, stream.received(), state.claim.is_some()))
    }

    /// A connection has ended. Returns whether it was the driver's current one.
    pub(crate) fn cut(&self, connection: &Arc<Connection>) -> bool {
        let mut state = self.lock();
        if !state.has(connection) {
            return false;
        }
        state.connection = None;
        state.fall_silent();
        true
    }

    /// Makes the session of this connection void and tells both sides why.
    pub(crate) fn void_of(&self, connection: &Arc<Connection>, reason: &str) {
        let mut state = self.lock();
        if state.has(connection) {
            state.void(reason);
        }
    }

    /// Checks for silence. Returns whether the driver's presence changed, and whether it can be forgotten.
    pub(crate) fn tick(&self, options: &Options) -> (bool, bool) {
        let mut state = self.lock();
        let silent = state.heard_at.elapsed();
        let before = state.presence;
        if state.presence == Presence::Present && silent > options.silent_after {
            state.fall_silent();
        }
        let overdue = state.ending.take_if(|ending| ending.since.elapsed() > ENDING_MOST).is_some();
        let gone = state.claim.is_none() && silent > options.gone_after;
        if gone {
            state.presence = Presence::Gone;
        }
        if (gone || silent > HALF_OPEN)
            && let Some(connection) = state.connection.take()
        {
            connection.close(None);
        }
        (state.presence != before || overdue, gone && silent > options.gone_after * 10)
    }

    /// See [`super::Fleet::claim`].
    pub(crate) fn claim(
        &self,
        run: u64,
        tag: u32,
        events: Sender<(u32, FromDriver)>,
    ) -> Result<(), ClaimError> {
        let mut state = self.lock();
        let name = &state.hello.name;
        if let Some(claim) = &state.claim {
            return Err(ClaimError(format!("driver {name} already works for run {}", claim.run)));
        }
        if state.presence != Presence::Present {
            return Err(ClaimError(format!("driver {name} does not answer")));
        }
        state.claim = Some(Claim { run, tag, events, over: false, open: false });
        state.wake();
        Ok(())
    }

    /// See [`super::Fleet::send`].
    pub(crate) fn send(&self, body: Result<Body, String>, prepares: bool) {
        let mut state = self.lock();
        if let Some(claim) = &mut state.claim {
            if claim.over {
                return;
            }
            claim.open |= prepares;
        }
        let Some((_, stream)) = &mut state.session else { return };
        match body.and_then(|body| stream.push(body)) {
            Ok(()) => state.wake(),
            Err(reason) => state.void(&reason),
        }
    }

    /// See [`super::Fleet::release`] and [`super::Fleet::release_from`].
    pub(crate) fn release(&self, run: Option<u64>) {
        let mut state = self.lock();
        let released = state.claim.take_if(|claim| run.is_none_or(|run| run == claim.run));
        if let Some(Claim { run, .. }) = released.filter(|claim| claim.open) {
            state.ending = Some(Ending { run, since: Instant::now() });
        }
    }

    /// See [`super::Fleet::give_up`].
    pub(crate) fn give_up(&self) {
        let mut state = self.lock();
        if let Some(claim) = &mut state.claim {
            claim.over = true;
        }
        state.void("the controller gave this driver up");
    }

    /// Its current state.
    pub(crate) fn member(&self, now_ns: i64) -> Member {
        let state = self.lock();
        let (clock_offset_ns, clock_error_ns) = state.clock.offset_ns(now_ns);
        Member {
            hello: state.hello.clone(),
            address: state.visitor.address.clone(),
            presence: state.presence,
            utilization: state.utilization,
            clock_offset_ns,
            clock_error_ns,
            silent: state.heard_at.elapsed(),
            joined_unix_ms: state.joined_unix_ms,
            run: state.claim.as_ref().map(|claim| claim.run),
            ending: state.ending,
        }
    }
}

impl State {
    /// Whether this is the driver's current connection.
    fn has(&self, connection: &Arc<Connection>) -> bool {
        self.connection.as_ref().is_some_and(|own| Arc::ptr_eq(own, connection))
    }

    /// Notes that a run has ended on the driver. Returns whether it was to end.
    fn has_ended(&mut self, run: u64) -> bool {
        self.claim.iter_mut().filter(|claim| claim.run == run).for_each(|claim| claim.open = false);
        self.ending.take_if(|ending| ending.run == run).is_some()
    }

    fn wake(&self) {
        if let Some(connection) = &self.connection {
            connection.wake.notify_one();
        }
    }

    /// Notes a sign of life. A driver is present once its clock is known, because only then can it be told when to start.
    /// Returns whether it was not present before.
    fn alive(&mut self) -> bool {
        self.heard_at = Instant::now();
        if self.presence == Presence::Present || !self.clock.known() {
            return false;
        }
        self.presence = Presence::Present;
        self.notify(|| FromDriver::Reconnected);
        true
    }

    fn fall_silent(&mut self) {
        if self.presence == Presence::Present {
            self.presence = Presence::Silent;
            self.notify(|| FromDriver::Disconnected);
        }
    }

    /// Sends an event to the run that has claimed the driver.
    fn notify(&mut self, event: impl FnOnce() -> FromDriver) {
        let Some(claim) = self.claim.as_mut().filter(|claim| !claim.over) else { return };
        let event = event();
        claim.over = matches!(event, FromDriver::Gone(_));
        // A run that no longer listens will release the driver; the channel is unbounded and never full.
        let _ = claim.events.try_send((claim.tag, event));
    }

    fn void(&mut self, reason: &str) {
        self.session = None;
        self.clock = Clock::default();
        if self.presence == Presence::Present {
            self.presence = Presence::Silent;
        }
        if let Some(connection) = self.connection.take() {
            connection.close(Some(reason.into()));
        }
        self.notify(|| FromDriver::Gone(reason.into()));
    }
}

/// Now, milliseconds since 1970 UTC.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
