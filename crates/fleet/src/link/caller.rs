//! The driver's connections to its controller, one after another.

use super::client::{FromController, Shared, State};
use super::dial::{Activity, Dial, Wire};
use super::frame::{Frame, Packet, Resume, SessionId, excerpt};
use crate::protocol::{Down, Hello};
use futures_util::{SinkExt, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

/// How long a connection may take until the controller has let the driver in.
const CONNECT: Duration = Duration::from_secs(10);

/// A controller that sends nothing for so long is unreachable: it pings every second.
const SILENT: Duration = Duration::from_secs(3);

/// Pause between attempts: the first and the longest. It doubles each time, give or take half.
const BACKOFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// The same trouble is reported again after so long.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// Most packets that are sent at once.
const BATCH: usize = 64;

/// How a connection ended.
pub(super) enum End {
    /// Try again: a sentence.
    Cut(String),
    /// The session is void.
    Void,
    /// The controller has ended, as far as is known: a sentence.
    Gone(String),
    /// Trying again is of no use: a sentence.
    Refused(String),
}

/// Keeps the driver joined for as long as the controller accepts it.
pub(super) async fn keep(shared: &Shared, dial: &mut Dial, hello: &Hello) {
    let mut attempts = 0;
    let mut reported: Option<(String, Instant)> = None;
    let mut connector = Connector { shared, hello, joined: false, disconnected: false, established: false };
    loop {
        connector.established = false;
        let end = connector.run_connection(dial).await;
        // The driver is told of the cut before it is told the reason.
        if connector.joined && !connector.disconnected && !matches!(end, End::Void) {
            connector.disconnected = true;
            shared.notify(FromController::Disconnected);
        }
        match end {
            End::Refused(reason) => return shared.notify(FromController::Refused(reason)),
            End::Void => {}
            End::Gone(reason) => shared.notify(FromController::Gone(reason)),
            End::Cut(reason) => {
                let old = |(before, at): &(String, Instant)| *before == reason && at.elapsed() < REPEAT_AFTER;
                if !reported.as_ref().is_some_and(old) {
                    reported = Some((reason.clone(), Instant::now()));
                    shared.notify(FromController::Unreachable(reason));
                }
            }
        }
        attempts = if connector.established { 0 } else { attempts + 1 };
        tokio::time::sleep(backoff(attempts)).await;
    }
}

/// How long to wait after so many failed attempts.
fn backoff(attempts: u32) -> Duration {
    let doubled = BACKOFF[0].saturating_mul(1 << attempts.min(16)).min(BACKOFF[1]);
    // Without randomness, no jitter.
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    doubled.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX))
}

/// What outlasts a single connection.
struct Connector<'a> {
    shared: &'a Shared,
    hello: &'a Hello,
    /// Whether there has been a session.
    joined: bool,
    /// Whether the driver has been told of a cut.
    disconnected: bool,
    /// Whether the connection got as far as a ping.
    established: bool,
}

impl Connector<'_> {
    /// Connects, resumes the session or begins one, and exchanges messages until the connection ends.
    async fn run_connection(&mut self, dial: &mut Dial) -> End {
        let activity = Arc::new(Activity::new());
        match timeout(CONNECT, self.connect(dial, &activity)).await {
            Err(_) => End::Cut(format!(
                "the controller at {} does not answer within {} s",
                dial.there(),
                CONNECT.as_secs()
            )),
            Ok(Err(end)) => end,
            Ok(Ok((socket, generation, cursor))) => {
                let (mut sink, mut stream) = socket.split();
                let shared = self.shared;
                // At the same time, so that neither side stops reading while it waits to be read.
                tokio::select! {
                    end = self.read(&mut stream, &activity, generation) => end,
                    end = write(shared, &mut sink, generation, cursor) => end,
                }
            }
        }
    }

    async fn connect(
        &mut self,
        dial: &mut Dial,
        activity: &Arc<Activity>,
    ) -> Result<(WebSocketStream<Box<dyn Wire>>, u64, u64), End> {
        let mut socket = dial.connect(activity).await?;
        let (resume, generation) = {
            let mut state = self.shared.lock();
            // The new session tells the controller that the old one is void.
            state.void_reason = None;
            let received = state.stream.received();
            let resume = state.session.clone().map(|session| Resume { session, received });
            (resume, state.generation)
        };
        let hello = Frame::Hello { hello: Box::new(self.hello.clone()), resume };
        socket.send(wrap(hello.packet())).await.map_err(|error| lost(&error))?;
        loop {
            let message = match socket.next().await {
                Some(message) => message.map_err(|error| lost(&error))?,
                None => return Err(lost(&"the controller closed it")),
            };
            let Message::Text(text) = message else { continue };
            match serde_json::from_str(&text) {
                Ok(Frame::Welcome { controller, session, resumed }) => {
                    let (generation, cursor) = self.welcome(controller, session, resumed, generation)?;
                    return Ok((socket, generation, cursor));
                }
                Ok(Frame::Refused { reason, later: true }) => return Err(End::Cut(reason)),
                Ok(Frame::Refused { reason, later: false }) => return Err(End::Refused(reason)),
                _ => return Err(lost(&"the controller's first message cannot be read")),
            }
        }
    }

    /// The controller has admitted the driver. Returns the stream's generation and the last message that the controller has.
    fn welcome(
        &mut self,
        name: String,
        session: SessionId,
        resumed: Option<u64>,
        generation: u64,
    ) -> Result<(u64, u64), End> {
        let mut state = self.shared.lock();
        if state.generation != generation {
            return Err(End::Void);
        }
        if let Some(received) = resumed {
            if state.session.is_some() && state.stream.resume(received) {
                self.shared.acknowledge(&mut state, received).map_err(|error| lost(&error))?;
                if std::mem::take(&mut self.disconnected) {
                    self.shared.notify(FromController::Reconnected);
                }
                return Ok((generation, received));
            }
            self.shared.void(&mut state, "the controller has lost messages of this driver".into());
            return Err(End::Void);
        }
        if state.session.is_some() {
            self.shared.void(&mut state, "the controller was restarted or has dropped this driver".into());
        }
        state.session = Some(session);
        self.disconnected = false;
        let anew = std::mem::replace(&mut self.joined, true);
        self.shared.notify(FromController::Joined { name, anew });
        Ok((state.generation, 0))
    }

    async fn read(
        &mut self,
        stream: &mut (impl StreamExt<Item = Result<Message, tungstenite::Error>> + Unpin),
        activity: &Activity,
        generation: u64,
    ) -> End {
        loop {
            let message = match timeout_at(activity.last() + SILENT, stream.next()).await {
                // A large message may take its time, as long as it comes.
                Err(_) if activity.last().elapsed() < SILENT => continue,
                Err(_) => return lost(&format!("the controller sent nothing for {} s", SILENT.as_secs())),
                Ok(None) => return lost(&"the controller closed it"),
                Ok(Some(Err(error))) => return lost(&error),
                Ok(Some(Ok(message))) => message,
            };
            let Message::Text(text) = message else { continue };
            match self.receive(&text, generation) {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(reason) => {
                    let mut state = self.shared.lock();
                    if state.generation == generation {
                        state.void_reason = Some(reason.clone());
                        self.shared
                            .void(&mut state, format!("the controller sent a malformed message: {reason}"));
                    }
                    // The writing half tells the controller.
                    drop(state);
                    self.shared.wake.notify_one();
                }
            }
        }
    }

    /// Takes a frame from the controller.
    ///
    /// # Errors
    /// When it is malformed: a clause.
    fn receive(&mut self, text: &str, generation: u64) -> Result<Option<End>, String> {
        let now_ns = self.shared.now_ns();
        let unreadable = |error: serde_json::Error| excerpt(&error.to_string());
        let frame: Frame = serde_json::from_str(text).map_err(unreadable)?;
        let current = |state: &State| state.generation == generation;
        match frame {
            Frame::Message { number, ack, body } => {
                let down: Box<Down> = serde_json::from_str(body.get()).map_err(unreadable)?;
                let mut state = self.shared.lock();
                if current(&state) {
                    self.shared.acknowledge(&mut state, ack)?;
                    if state.stream.receive(number)? {
                        self.shared.notify(FromController::Message(down));
                    }
                }
            }
            Frame::Ping { at_ns, ack } => {
                self.established = true;
                let mut state = self.shared.lock();
                if current(&state) {
                    self.shared.acknowledge(&mut state, ack)?;
                    state.pinged = Some((at_ns, now_ns));
                    self.shared.wake.notify_one();
                }
            }
            Frame::Void { reason } => {
                let mut state = self.shared.lock();
                if current(&state) {
                    self.shared.void(&mut state, reason);
                }
                return Ok(Some(End::Void));
            }
            _ => return Err("a frame that only drivers send".into()),
        }
        Ok(None)
    }
}

/// Sends whatever is due until the connection ends.
async fn write(
    shared: &Shared,
    sink: &mut (impl SinkExt<Message, Error = tungstenite::Error> + Unpin),
    generation: u64,
    mut cursor: u64,
) -> End {
    loop {
        let packets = outgoing(shared, generation, &mut cursor);
        let Some(packets) = packets else {
            let words = shared.lock().void_reason.take();
            if let Some(reason) = words {
                // If this does not arrive, the next session says it.
                let _ = timeout(SILENT, sink.send(wrap(Frame::Void { reason }.packet()))).await;
            }
            return End::Void;
        };
        if packets.is_empty() {
            shared.wake.notified().await;
            continue;
        }
        for packet in packets {
            if let Err(error) = sink.feed(wrap(packet)).await {
                return lost(&error);
            }
        }
        if let Err(error) = sink.flush().await {
            return lost(&error);
        }
    }
}

/// What to send after message `cursor`. `None`: the session is void.
fn outgoing(shared: &Shared, generation: u64, cursor: &mut u64) -> Option<Vec<Packet>> {
    let mut state = shared.lock();
    if state.generation != generation {
        return None;
    }
    let mut packets = Vec::new();
    if let Some((at_ns, received_ns)) = state.pinged.take() {
        let ack = state.stream.received();
        packets.push(Frame::Pong { at_ns, received_ns, sent_ns: shared.now_ns(), ack }.packet());
    }
    if let Some(utilization) = state.utilization.take() {
        packets.push(Frame::Utilization { utilization }.packet());
    }
    packets.extend(std::iter::from_fn(|| state.stream.next(cursor)).take(BATCH));
    Some(packets)
}

fn lost(error: &dyn std::fmt::Display) -> End {
    End::Cut(format!("the connection to the controller was lost: {}", tidemark_tls::words(error)))
}

fn wrap(packet: Packet) -> Message {
    match packet {
        // It was written as JSON, which is UTF-8.
        Packet::Text(bytes) => Message::Text(bytes.try_into().unwrap_or_default()),
        Packet::Binary(bytes) => Message::Binary(bytes),
    }
}
