//! The driver's side of the link: joins, stays joined, joins again.

use super::caller;
use super::dial::Dial;
use super::frame::{Body, SessionId};
use super::pipe;
use super::stream::Stream;
use crate::protocol::{Down, Hello, Second, Up};
use crossbeam_channel::{Receiver, Sender};
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_measure::host::Utilization;
use tidemark_plan::secret::Secret;
use tidemark_tls::Trust;
use tokio::sync::Notify;

/// Which controller to join, and how.
#[derive(Clone, Debug)]
pub struct Join {
    /// Its address: `http(s)://host:port`.
    pub url: String,
    /// The token. `None`: the one that a controller of the same user has left on this machine, see [`super::access`].
    pub token: Option<Secret>,
    /// How to verify its certificate, with `https`. With `http` it has to prove that it knows the token instead, see [`super::proof`];
    /// [`Trust::Any`] does without.
    pub trust: Trust,
}

/// Why a controller cannot be joined: a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JoinError(pub String);

/// What a driver receives over its link.
#[derive(Clone, Debug)]
pub enum FromController {
    /// The controller cannot be reached, and why, as a sentence. The link keeps trying, and repeats this now and then.
    Unreachable(String),
    /// A session has begun.
    Joined {
        /// The controller's name.
        name: String,
        /// Whether it replaces an earlier session, which is void.
        anew: bool,
    },
    /// A message.
    Message(Box<Down>),
    /// The connection is cut. Messages are kept and follow when it is back.
    Disconnected,
    /// The connection is back, and nothing was lost.
    Reconnected,
    /// The session is void, and why: whatever runs for this controller has to stop. A new session follows.
    SessionLost(String),
    /// The controller has ended, or another program answers in its place: a sentence with what to do. The link keeps trying, for
    /// the sake of a run; a driver without one may end.
    Gone(String),
    /// The controller refuses this driver, and why: a sentence that says what to do. Nothing follows.
    Refused(String),
}

/// A driver's connection to its controller. Ends when it is dropped.
pub struct Link {
    /// What arrives from the controller.
    pub incoming: Receiver<FromController>,
    way: Way,
}

/// How a driver reaches its controller.
enum Way {
    /// Over a network.
    Network { shared: Arc<Shared>, caller: Option<JoinHandle<()>> },
    /// Over the pipes of the process that started it.
    Pipes(pipe::Started),
}

impl Link {
    /// Sends a message. It arrives exactly once and in order, also across cuts, unless the session becomes void. Messages
    /// sent between two sessions belong to the next.
    #[expect(clippy::needless_pass_by_value, reason = "the message is handed over")]
    pub fn send(&self, up: Up) {
        match &self.way {
            Way::Network { shared, .. } => shared.send(Body::json(&up)),
            Way::Pipes(started) => started.send(&up),
        }
    }

    /// Sends a second of load, in order with the messages.
    pub fn second(&self, second: Second) {
        match &self.way {
            Way::Network { shared, .. } => shared.send(Body::second(second)),
            Way::Pipes(started) => started.second(&second),
        }
    }

    /// Sends how busy the host is. Only the latest counts; lost ones are not sent again.
    pub fn utilization(&self, mut utilization: Utilization) {
        // Whoever started this process is on the same host.
        let Way::Network { shared, .. } = &self.way else { return };
        // JSON has no other numbers, and a division by zero should not end a session.
        let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
        utilization.cpu_busy = finite(utilization.cpu_busy.into()) as f32;
        utilization.received_per_s = finite(utilization.received_per_s);
        utilization.sent_per_s = finite(utilization.sent_per_s);
        shared.lock().utilization = Some(utilization);
        shared.wake.notify_one();
    }

    /// The driver's clock that the controller compares with its own: nanoseconds since the link was made, or the machine's
    /// monotonic clock if both are on one machine.
    pub fn now_ns(&self) -> i64 {
        match &self.way {
            Way::Network { shared, .. } => shared.now_ns(),
            Way::Pipes(started) => started.clock.at(Instant::now()),
        }
    }

    /// When that clock shows, or showed, `ns`.
    pub fn instant_of(&self, ns: i64) -> Instant {
        match &self.way {
            Way::Network { shared, .. } => super::instant_of(shared.origin, ns),
            Way::Pipes(started) => started.clock.instant_of(ns),
        }
    }

    /// Waits until the controller has received everything, until the session is void, or for `most`. Returns whether the
    /// controller has everything.
    pub fn settle(&self, most: Duration) -> bool {
        let Way::Network { shared, .. } = &self.way else { return true };
        let state = shared.lock();
        let generation = state.generation;
        let waits = |state: &mut State| state.generation == generation && !state.stream.settled();
        let waited = shared.settled.wait_timeout_while(state, most, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.generation == generation && state.stream.settled()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Way::Network { shared, caller } = &mut self.way else { return };
        shared.stop.notify_one();
        if let Some(caller) = caller.take() {
            // It ends at once or has already ended.
            let _ = caller.join();
        }
    }
}

/// Joins a controller. Returns at once and keeps trying in the background.
///
/// # Errors
/// When the address, the certificates or the token cannot be used.
#[expect(clippy::needless_pass_by_value, reason = "nobody needs them afterwards")]
pub fn join(options: Join, hello: Hello) -> Result<Link, JoinError> {
    let mut dial = Dial::new(&options)?;
    let (sender, incoming) = crossbeam_channel::unbounded();
    let shared = Arc::new(Shared {
        origin: Instant::now(),
        state: Mutex::default(),
        wake: Notify::new(),
        stop: Notify::new(),
        settled: Condvar::new(),
        incoming: sender,
    });
    let failed = |error: std::io::Error| JoinError(format!("cannot start the connection's thread: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let for_caller = Arc::clone(&shared);
    let caller = std::thread::Builder::new()
        .name("link".into())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = caller::keep(&for_caller, &mut dial, &hello) => {}
                    () = for_caller.stop.notified() => {}
                }
            });
            // A name lookup that is still in progress is not waited for.
            runtime.shutdown_background();
        })
        .map_err(failed)?;
    Ok(Link { incoming, way: Way::Network { shared, caller: Some(caller) } })
}

/// A link to the process that has started this one, which writes to `input` and reads `output`.
pub(crate) fn piped(input: impl Read + Send + 'static, output: Box<dyn Write + Send>) -> io::Result<Link> {
    let (sender, incoming) = crossbeam_channel::unbounded();
    std::thread::Builder::new().name("link".into()).spawn(move || pipe::listen(input, &sender))?;
    Ok(Link { incoming, way: Way::Pipes(pipe::Started::new(output)) })
}

/// State that the driver and its connections share.
pub(super) struct Shared {
    origin: Instant,
    state: Mutex<State>,
    /// Signals that there may be something to send.
    pub(super) wake: Notify,
    stop: Notify,
    settled: Condvar,
    incoming: Sender<FromController>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) stream: Stream,
    /// Which stream it is: counts the void ones.
    pub(super) generation: u64,
    /// Why the last one is void, until the controller has been told.
    pub(super) void_reason: Option<String>,
    pub(super) session: Option<SessionId>,
    pub(super) utilization: Option<Utilization>,
    /// A ping to be answered: the time in it, and when it came.
    pub(super) pinged: Option<(i64, i64)>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No state is left half changed by a panic: there is none to expect.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now_ns(&self) -> i64 {
        i64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    pub(super) fn notify(&self, event: FromController) {
        // A driver that no longer listens is about to end the link.
        let _ = self.incoming.send(event);
    }

    /// Ends the session. Unacknowledged messages are lost; those sent from now on belong to the next session.
    pub(super) fn void(&self, state: &mut State, reason: String) {
        state.stream = Stream::default();
        state.generation += 1;
        state.session = None;
        state.pinged = None;
        self.settled.notify_all();
        self.notify(FromController::SessionLost(reason));
    }

    /// The controller has received all messages up to this one.
    pub(super) fn acknowledge(&self, state: &mut State, number: u64) -> Result<(), String> {
        state.stream.acknowledge(number)?;
        if state.stream.settled() {
            self.settled.notify_all();
        }
        Ok(())
    }

    fn send(&self, body: Result<Body, String>) {
        let mut state = self.lock();
        if let Err(reason) = body.and_then(|body| state.stream.push(body)) {
            state.void_reason = Some(reason.clone());
            self.void(&mut state, reason);
        }
        self.wake.notify_one();
    }
}
