//! One driver from the controller's side: session, presence, clock, and the run that has claimed it. Does no input or
//! output; [`crate::link::server`] does it for one connection after the other.

use super::{ClaimError, Heard, Member, Options, Presence};
use crate::link::clock::Clock;
use crate::link::frame::{Body, Packet, Resume, SessionId};
use crate::link::stream::Stream;
use crate::protocol::{Health, Hello, Second, Up};
use crossbeam_channel::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

/// Most packets that are handed to a connection at once.
const BATCH: usize = 64;

/// A connection that is silent for this long is closed. Longer than the largest message may take.
const HALF_OPEN: Duration = Duration::from_secs(30);

/// One connection of a driver, from the side of those who want something sent, or want it ended.
#[derive(Default)]
pub(crate) struct Line {
    /// There may be something to send.
    pub(crate) wake: Notify,
    /// It is to end.
    pub(crate) over: Notify,
    /// Why, if the driver is to know.
    pub(crate) farewell: OnceLock<String>,
}

impl Line {
    fn hang_up(&self, farewell: Option<String>) {
        if let Some(farewell) = farewell {
            // Only the first reason counts.
            let _ = self.farewell.set(farewell);
        }
        self.over.notify_one();
    }
}

/// A frame from a driver.
pub(crate) enum FromDriver {
    /// A message: its number, the acknowledgement that came with it, and itself.
    Numbered(u64, u64, Message),
    /// An answer to a ping: the acknowledgement, and the times that [`Clock::take`] wants but the last.
    Pong(u64, [i64; 3]),
    /// How its host fares.
    Health(Health),
}

/// A numbered message.
pub(crate) enum Message {
    /// A word.
    Up(Box<Up>),
    /// A second of load.
    Second(Second),
}

/// The request of a driver that has just connected, and its address.
pub(crate) struct Arrival {
    pub(crate) hello: Hello,
    pub(crate) resume: Option<Resume>,
    pub(crate) address: String,
}

/// What a driver that was let in is answered.
pub(crate) struct Entry {
    /// The session.
    pub(crate) session: SessionId,
    /// If it continues: the last message that was received, and the last that the driver has.
    pub(crate) resumed: Option<(u64, u64)>,
    /// The connection.
    pub(crate) line: Arc<Line>,
}

/// One driver.
pub(crate) struct DriverHandle(Mutex<State>);

struct State {
    hello: Hello,
    address: String,
    joined_unix_ms: u64,
    session: Option<(SessionId, Stream)>,
    line: Option<Arc<Line>>,
    presence: Presence,
    heard_at: Instant,
    health: Health,
    clock: Clock,
    claim: Option<Claim>,
}

struct Claim {
    run: u64,
    tag: u32,
    heard: Sender<(u32, Heard)>,
    /// Whether it has learnt that the driver is gone: it receives nothing more.
    over: bool,
}

impl DriverHandle {
    /// Of a driver that has not been let in yet.
    pub(crate) fn new(hello: Hello) -> Self {
        Self(Mutex::new(State {
            hello,
            address: String::new(),
            joined_unix_ms: 0,
            session: None,
            line: None,
            presence: Presence::Gone,
            heard_at: Instant::now(),
            health: Health::default(),
            clock: Clock::default(),
            claim: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No state is left half changed by a panic: there is none to expect.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a driver in: with the session that it had, or with a new one. Its other connection, if there is one, ends.
    ///
    /// # Errors
    /// When another driver has this name and answers: a sentence for the driver.
    pub(crate) fn enter(&self, arrival: Arrival) -> Result<Entry, String> {
        let mut state = self.lock();
        let same = state.hello.instance == arrival.hello.instance;
        if !same && state.line.is_some() && state.presence == Presence::Present {
            return Err(format!(
                "a driver named {} already joined from {}: use another --name",
                state.hello.name, state.address
            ));
        }
        let line = Arc::new(Line::default());
        let kept = match (&mut state.session, arrival.resume) {
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
                state.tell(|| Heard::Gone(why.into()));
                state.session = Some((session.clone(), Stream::default()));
                state.joined_unix_ms = unix_ms();
                state.health = Health::default();
                state.clock = Clock::default();
                (session, None)
            }
        };
        if let Some(old) = state.line.replace(Arc::clone(&line)) {
            old.hang_up(None);
        }
        state.hello = arrival.hello;
        state.address = arrival.address;
        if state.presence == Presence::Gone || resumed.is_none() {
            state.presence = Presence::Silent;
        }
        state.alive();
        Ok(Entry { session, resumed, line })
    }

    /// Something came over a connection. Returns whether the driver's presence changed.
    ///
    /// # Errors
    /// When it makes no sense: a clause. Then the session has to be void.
    pub(crate) fn hear(&self, line: &Arc<Line>, word: FromDriver, now_ns: i64) -> Result<bool, String> {
        let mut state = self.lock();
        if !state.has(line) {
            return Ok(false);
        }
        let Some((_, stream)) = &mut state.session else { return Ok(false) };
        let mut message = None;
        match word {
            FromDriver::Numbered(number, ack, numbered) => {
                stream.acknowledge(ack)?;
                if stream.receive(number)? {
                    message = Some(numbered);
                }
            }
            FromDriver::Pong(ack, [sent_ns, came_ns, answered_ns]) => {
                stream.acknowledge(ack)?;
                state.clock.take(sent_ns, came_ns, answered_ns, now_ns);
            }
            FromDriver::Health(health) => state.health = health,
        }
        let back = state.alive();
        if let Some(message) = message {
            state.tell(|| match message {
                Message::Up(up) => Heard::Message(up),
                Message::Second(second) => Heard::Second(second),
            });
        }
        Ok(back)
    }

    /// What is to be sent over a connection behind message `cursor`, the last message that came, and whether a run has claimed
    /// the driver. `None`: the connection is not this driver's any more.
    pub(crate) fn outgoing(&self, line: &Arc<Line>, cursor: &mut u64) -> Option<(Vec<Packet>, u64, bool)> {
        let state = self.lock();
        let (_, stream) = state.session.as_ref().filter(|_| state.has(line))?;
        let packets = std::iter::from_fn(|| stream.next(cursor)).take(BATCH).collect();
        Some((packets, stream.received(), state.claim.is_some()))
    }

    /// A connection is over. Returns whether it was the driver's: it is away.
    pub(crate) fn cut(&self, line: &Arc<Line>) -> bool {
        let mut state = self.lock();
        if !state.has(line) {
            return false;
        }
        state.line = None;
        state.fall_silent();
        true
    }

    /// Makes the session void if it is that of this connection, and sends both sides the reason.
    pub(crate) fn void_of(&self, line: &Arc<Line>, reason: &str) {
        let mut state = self.lock();
        if state.has(line) {
            state.void(reason);
        }
    }

    /// Time has passed. Returns whether the driver's presence changed, and whether it can be forgotten.
    pub(crate) fn tick(&self, options: &Options) -> (bool, bool) {
        let mut state = self.lock();
        let silent = state.heard_at.elapsed();
        let before = state.presence;
        if state.presence == Presence::Present && silent > options.silent_after {
            state.fall_silent();
        }
        let gone = state.claim.is_none() && silent > options.gone_after;
        if gone {
            state.presence = Presence::Gone;
        }
        if (gone || silent > HALF_OPEN)
            && let Some(line) = state.line.take()
        {
            line.hang_up(None);
        }
        (state.presence != before, gone && silent > options.gone_after * 10)
    }

    /// See [`super::Fleet::claim`].
    pub(crate) fn claim(&self, run: u64, tag: u32, heard: Sender<(u32, Heard)>) -> Result<(), ClaimError> {
        let mut state = self.lock();
        let name = &state.hello.name;
        if let Some(claim) = &state.claim {
            return Err(ClaimError(format!("driver {name} is in use by run {}", claim.run)));
        }
        if state.presence != Presence::Present {
            return Err(ClaimError(format!("driver {name} does not respond")));
        }
        state.claim = Some(Claim { run, tag, heard, over: false });
        state.wake();
        Ok(())
    }

    /// See [`super::Fleet::send`].
    pub(crate) fn send(&self, body: Result<Body, String>) {
        let mut state = self.lock();
        if state.claim.as_ref().is_some_and(|claim| claim.over) {
            return;
        }
        let Some((_, stream)) = &mut state.session else { return };
        match body.and_then(|body| stream.say(body)) {
            Ok(()) => state.wake(),
            Err(reason) => state.void(&reason),
        }
    }

    /// See [`super::Fleet::release`] and [`super::Fleet::release_from`].
    pub(crate) fn release(&self, run: Option<u64>) {
        let mut state = self.lock();
        state.claim.take_if(|claim| run.is_none_or(|run| run == claim.run));
    }

    /// See [`super::Fleet::give_up`].
    pub(crate) fn give_up(&self) {
        let mut state = self.lock();
        if let Some(claim) = &mut state.claim {
            claim.over = true;
        }
        state.void("the controller dropped this driver");
    }

    /// How it is now.
    pub(crate) fn member(&self, now_ns: i64) -> Member {
        let state = self.lock();
        let (clock_offset_ns, clock_error_ns) = state.clock.offset_ns(now_ns);
        Member {
            hello: state.hello.clone(),
            address: state.address.clone(),
            presence: state.presence,
            health: state.health,
            clock_offset_ns,
            clock_error_ns,
            silent: state.heard_at.elapsed(),
            joined_unix_ms: state.joined_unix_ms,
            run: state.claim.as_ref().map(|claim| claim.run),
        }
    }
}

impl State {
    /// Whether this is the connection by which the driver is connected now.
    fn has(&self, line: &Arc<Line>) -> bool {
        self.line.as_ref().is_some_and(|own| Arc::ptr_eq(own, line))
    }

    fn wake(&self) {
        if let Some(line) = &self.line {
            line.wake.notify_one();
        }
    }

    /// A message arrived. The driver is present once its clock is known, too: then it can receive a start time. Returns whether
    /// it was not before.
    fn alive(&mut self) -> bool {
        self.heard_at = Instant::now();
        if self.presence == Presence::Present || !self.clock.known() {
            return false;
        }
        self.presence = Presence::Present;
        self.tell(|| Heard::Back);
        true
    }

    fn fall_silent(&mut self) {
        if self.presence == Presence::Present {
            self.presence = Presence::Silent;
            self.tell(|| Heard::Away);
        }
    }

    /// Tells the run that has claimed the driver.
    fn tell(&mut self, heard: impl FnOnce() -> Heard) {
        let Some(claim) = self.claim.as_mut().filter(|claim| !claim.over) else { return };
        let heard = heard();
        claim.over = matches!(heard, Heard::Gone(_));
        // A run that does not listen any more will release the driver. That the channel is full cannot be: it is unbounded.
        let _ = claim.heard.try_send((claim.tag, heard));
    }

    fn void(&mut self, reason: &str) {
        self.session = None;
        self.clock = Clock::default();
        if self.presence == Presence::Present {
            self.presence = Presence::Silent;
        }
        if let Some(line) = self.line.take() {
            line.hang_up(Some(reason.into()));
        }
        self.tell(|| Heard::Gone(reason.into()));
    }
}

/// Now, milliseconds since 1970 UTC.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
