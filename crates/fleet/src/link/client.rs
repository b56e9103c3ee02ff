//! The driver's side: joins, stays joined, joins anew.

use super::caller;
use super::dial::Dial;
use super::frame::{Body, SessionId};
use super::stream::Stream;
use crate::protocol::{Down, Health, Hello, Second, Up};
use crossbeam_channel::{Receiver, Sender};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_plan::secret::Secret;
use tokio::sync::Notify;

/// Which controller to join, and how.
#[derive(Clone, Debug)]
pub struct Join {
    /// Its address: `http(s)://host:port`.
    pub url: String,
    /// What proves that this driver may join.
    pub token: Option<Secret>,
    /// How to verify the controller's certificate; `https` only.
    pub trust: Trust,
}

/// How to verify the controller's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The system's certificate authorities.
    System,
    /// The certificates in a PEM file.
    File(PathBuf),
    /// Whoever has the certificate with this SHA-256 (of its DER form), whatever names and dates are in it.
    Fingerprint([u8; 32]),
}

/// Why the driver cannot join: a sentence with what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JoinError(pub String);

/// Events for a driver.
#[derive(Clone, Debug)]
pub enum FromController {
    /// There is no connection, and why: a sentence. Retried until there is; reported now and then.
    Trying(String),
    /// A session has begun.
    Joined {
        /// The controller's name.
        name: String,
        /// Whether there was one before, which is void.
        anew: bool,
    },
    /// A message from the controller.
    Message(Box<Down>),
    /// The connection is cut. Messages follow later.
    Away,
    /// The connection is there again, and nothing was lost.
    Back,
    /// The session is void, and why: everything that runs for this controller must stop. A new session follows.
    Void(String),
    /// The controller does not accept this driver, and why: a sentence with what to do. Nothing follows.
    Refused(String),
}

/// A driver's connection to its controller. Ends when it is dropped.
pub struct Link {
    /// The controller's messages.
    pub heard: Receiver<FromController>,
    shared: Arc<Shared>,
    caller: Option<JoinHandle<()>>,
}

impl Link {
    /// Sends a message: it arrives once and in order, cuts or not, unless the session is void. What is sent between
    /// two sessions belongs to the next.
    #[expect(clippy::needless_pass_by_value, reason = "the message is handed over")]
    pub fn say(&self, up: Up) {
        self.shared.say(Body::word(&up));
    }

    /// Hands over a second of load, in the same order as all messages.
    pub fn second(&self, second: Second) {
        self.shared.say(Body::second(second));
    }

    /// Sends the host's health. The latest counts; lost ones are not sent again.
    pub fn health(&self, mut health: Health) {
        // JSON has only finite numbers, and a session must not end over a division by zero.
        let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
        health.cpu_busy = finite(health.cpu_busy.into()) as f32;
        health.received_per_s = finite(health.received_per_s);
        health.sent_per_s = finite(health.sent_per_s);
        self.shared.lock().health = Some(health);
        self.shared.wake.notify_one();
    }

    /// The driver's clock that the controller compares with its own: nanoseconds since the link was made.
    pub fn now_ns(&self) -> i64 {
        self.shared.now_ns()
    }

    /// When that clock shows, or showed, `ns`.
    pub fn instant_of(&self, ns: i64) -> Instant {
        super::instant_of(self.shared.origin, ns)
    }

    /// Waits until the controller has all messages, the session is void, or for `most`. Returns whether the controller has it.
    pub fn settle(&self, most: Duration) -> bool {
        let state = self.shared.lock();
        let generation = state.generation;
        let waits = |state: &mut State| state.generation == generation && !state.stream.settled();
        let waited = self.shared.settled.wait_timeout_while(state, most, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.generation == generation && state.stream.settled()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(caller) = self.caller.take() {
            // It ends at once, or it has ended already.
            let _ = caller.join();
        }
    }
}

/// Joins a controller: returns at once, tries in the background for as long as it takes.
///
/// # Errors
/// When the address, the certificates or the token cannot be used.
#[expect(clippy::needless_pass_by_value, reason = "nobody needs them afterwards")]
pub fn join(options: Join, hello: Hello) -> Result<Link, JoinError> {
    let dial = Dial::new(&options)?;
    let (sender, heard) = crossbeam_channel::unbounded();
    let shared = Arc::new(Shared {
        origin: Instant::now(),
        state: Mutex::default(),
        wake: Notify::new(),
        stop: Notify::new(),
        settled: Condvar::new(),
        heard: sender,
    });
    let failed = |error: std::io::Error| JoinError(format!("cannot start the connection's thread: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let for_caller = Arc::clone(&shared);
    let caller = std::thread::Builder::new()
        .name("link".into())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = caller::keep(&for_caller, &dial, &hello) => {}
                    () = for_caller.stop.notified() => {}
                }
            });
            // A name that is being looked up is not waited for.
            runtime.shutdown_background();
        })
        .map_err(failed)?;
    Ok(Link { heard, shared, caller: Some(caller) })
}

/// What the driver and its connections share.
pub(super) struct Shared {
    origin: Instant,
    state: Mutex<State>,
    /// There may be something to send.
    pub(super) wake: Notify,
    stop: Notify,
    settled: Condvar,
    heard: Sender<FromController>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) stream: Stream,
    /// Which stream it is: counts the void ones.
    pub(super) generation: u64,
    /// Why the last one is void, if the controller must still receive it.
    pub(super) last_words: Option<String>,
    pub(super) session: Option<SessionId>,
    pub(super) health: Option<Health>,
    /// A ping to be answered: its content, and when it arrived.
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

    pub(super) fn tell(&self, heard: FromController) {
        // A driver that does not listen any more is about to end the link.
        let _ = self.heard.send(heard);
    }

    /// Later messages belong to the next session; earlier ones that are not acknowledged are lost.
    pub(super) fn void(&self, state: &mut State, reason: String) {
        state.stream = Stream::default();
        state.generation += 1;
        state.session = None;
        state.pinged = None;
        self.settled.notify_all();
        self.tell(FromController::Void(reason));
    }

    /// The controller has all messages up to this one.
    pub(super) fn acknowledge(&self, state: &mut State, number: u64) -> Result<(), String> {
        state.stream.acknowledge(number)?;
        if state.stream.settled() {
            self.settled.notify_all();
        }
        Ok(())
    }

    fn say(&self, body: Result<Body, String>) {
        let mut state = self.lock();
        if let Err(reason) = body.and_then(|body| state.stream.say(body)) {
            state.last_words = Some(reason.clone());
            self.void(&mut state, reason);
        }
        self.wake.notify_one();
    }
}
