//! The controller's side of one connection: reads frames and hands them over, sends what is due, and sends the time at
//! regular intervals.

use super::SECOND_MOST;
use super::frame::{Frame, Packet, excerpt, read_second};
use super::intake::{HELLO_MOST, Intake};
use crate::Fleet;
use crate::fleet::{Connection, DriverFrame, DriverHandle, JoinRequest, Message, Refusal, Visitor};
use crate::protocol::Up;
use axum::extract::ws;
use futures_util::{SinkExt, Stream, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite;

/// How long a driver may take for its first frame.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a driver may take to receive the last frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How often to ping a driver that works for a run, and one that is idle.
const PING: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// Serves a driver until its connection ends; `admitted` is called when it was let in.
pub(crate) async fn serve(
    fleet: &Arc<Fleet>,
    socket: ws::WebSocket,
    visitor: Visitor,
    intake: &Intake,
    admitted: impl FnOnce(),
) {
    let (mut sink, mut stream) = socket.split();
    let request = match timeout(HELLO_TIMEOUT, stream.next()).await {
        Ok(Some(Ok(message))) => read_hello(&message, visitor),
        Ok(None | Some(Err(_))) => return,
        Err(_) => Err(format!("the driver did not introduce itself within {} s", HELLO_TIMEOUT.as_secs())),
    };
    let last = match request.map_err(Refusal::from).and_then(|request| fleet.admit(request)) {
        Err(Refusal { reason, later }) => Some(Frame::Refused { reason, later }),
        Ok((handle, entry)) => {
            intake.admit();
            admitted();
            let connection = Arc::clone(&entry.connection);
            let welcome = Frame::Welcome {
                controller: fleet.name().to_owned(),
                session: entry.session,
                resumed: entry.resumed.map(|(received, _)| received),
            };
            let cursor = entry.resumed.map_or(0, |(_, cursor)| cursor);
            // At the same time, so that neither side stops reading while it waits to be read.
            tokio::select! {
                () = read(fleet, &handle, &connection, &mut stream, intake) => {}
                _ = write(fleet, &handle, &connection, &mut sink, welcome, cursor) => {}
                () = connection.closed.notified() => {}
            }
            if handle.cut(&connection) {
                fleet.changed();
            }
            connection.reason.get().map(|reason| Frame::Void { reason: reason.clone() })
        }
    };
    // What the driver has sent meanwhile is read and dropped, or the last frame would be lost with it.
    let _ = timeout(CLOSE_TIMEOUT, async {
        if let Some(last) = last {
            sink.send(wrap(last.packet())).await?;
        }
        sink.close().await?;
        while stream.next().await.is_some_and(|message| message.is_ok()) {}
        Ok::<_, axum::Error>(())
    })
    .await;
}

/// Takes frames of a driver that joins a fleet and works for a run, without a connection: what may come is checked with any
/// frames (`fuzz/`). Each is text or not, and its bytes. Returns how many were taken before one made the session void.
///
/// # Panics
/// When the driver has taken anybody else's seat or run.
pub fn rehearse<'a>(frames: impl IntoIterator<Item = (bool, &'a [u8])>) -> usize {
    let options = crate::fleet::Options {
        version: "1".into(),
        silent_after: Duration::from_secs(2),
        gone_after: Duration::from_secs(30),
        name: "rehearsal".into(),
    };
    let fleet = Fleet::new(options);
    let visitor = |token: &str| Visitor { address: "here".into(), token: token.into() };
    let named = |name: &str| JoinRequest {
        hello: crate::protocol::Hello {
            protocol: crate::protocol::VERSION,
            tidemark: "1".into(),
            name: name.into(),
            ..Default::default()
        },
        resume: None,
        visitor: visitor("*"),
    };
    let Ok((handle, entry)) = fleet.admit(named("d1")) else { return 0 };
    let other = fleet.admit(named("d2"));
    let (events, heard) = crossbeam_channel::unbounded();
    let first = DriverFrame::Pong(0, [0, 0, 0]);
    let _ = handle.receive(&entry.connection, first, 1);
    let _ = fleet.claim("d1", 1, 7, events);
    let mut taken = 0;
    for (is_text, bytes) in frames {
        let message = match str::from_utf8(bytes) {
            Ok(text) if is_text => ws::Message::Text(text.into()),
            _ => ws::Message::Binary(bytes.to_vec().into()),
        };
        if let Ok(request) = read_hello(&message, visitor("d3")) {
            let name = request.hello.name.clone();
            assert!(fleet.admit(request).is_err() || name == "d3", "{name} is another driver's seat");
        }
        let frame = match parse(message) {
            Ok(Some(frame)) => handle.receive(&entry.connection, frame, fleet.clock_ns()),
            Ok(None) => Ok(false),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = frame {
            handle.void_of(&entry.connection, &reason);
            break;
        }
        taken += 1;
    }
    assert!(heard.try_iter().all(|(tag, _)| tag == 7) && other.is_ok());
    let runs: Vec<_> = fleet.members().into_iter().map(|member| (member.hello.name, member.run)).collect();
    assert!(runs.iter().all(|(name, run)| run.is_none() || name == "d1"), "{runs:?}");
    taken
}

fn read_hello(message: &ws::Message, visitor: Visitor) -> Result<JoinRequest, String> {
    let text = message.to_text().unwrap_or_default();
    if text.len() <= HELLO_MOST
        && let Ok(Frame::Hello { hello, resume }) = serde_json::from_str(text)
    {
        return Ok(JoinRequest { hello: *hello, resume, visitor });
    }
    Err("the driver's first message cannot be read: install the same version of Tidemark on both".into())
}

/// Reads until the connection ends.
async fn read(
    fleet: &Fleet,
    handle: &DriverHandle,
    connection: &Arc<Connection>,
    stream: &mut (impl Stream<Item = Result<ws::Message, axum::Error>> + Unpin),
    intake: &Intake,
) {
    while let Some(message) = stream.next().await {
        intake.message();
        let heard = match message {
            Ok(message) => parse(message),
            Err(error) => match malformed(error) {
                Some(reason) => Err(reason),
                None => return,
            },
        };
        let heard = heard.and_then(|word| match word {
            Some(word) => handle.receive(connection, word, fleet.clock_ns()),
            None => Ok(false),
        });
        match heard {
            Ok(false) => {}
            Ok(true) => fleet.changed(),
            Err(reason) => {
                handle.void_of(connection, &reason);
                fleet.changed();
                return;
            }
        }
    }
}

/// Parses a WebSocket message; `None` if it is not for us.
fn parse(message: ws::Message) -> Result<Option<DriverFrame>, String> {
    match message {
        ws::Message::Binary(bytes) => {
            if bytes.len() > SECOND_MOST {
                return Err(format!(
                    "it sent a second of load of {} MiB; the maximum is {} MiB",
                    bytes.len() >> 20,
                    SECOND_MOST >> 20
                ));
            }
            let (number, ack, second) =
                read_second(&bytes).ok_or("it sent a second of load without its header")?;
            Ok(Some(DriverFrame::Numbered(number, ack, Message::Second(second))))
        }
        ws::Message::Text(text) => match serde_json::from_str(&text).map_err(unreadable)? {
            Frame::Message { number, ack, body } => {
                let up: Up = serde_json::from_str(body.get()).map_err(unreadable)?;
                Ok(Some(DriverFrame::Numbered(number, ack, Message::Up(Box::new(up.cut())))))
            }
            Frame::Pong { at_ns, received_ns, sent_ns, ack } => {
                Ok(Some(DriverFrame::Pong(ack, [at_ns, received_ns, sent_ns])))
            }
            Frame::Utilization { utilization } => Ok(Some(DriverFrame::Utilization(utilization))),
            Frame::Void { reason } => Err(format!("it made its session void: {}", excerpt(&reason))),
            _ => Err("it sent a frame that only controllers send".into()),
        },
        ws::Message::Ping(_) | ws::Message::Pong(_) | ws::Message::Close(_) => Ok(None),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err wants it")]
fn unreadable(error: serde_json::Error) -> String {
    format!("it sent a message that cannot be read: {}", excerpt(&error.to_string()))
}

/// Why a connection failed, if what the driver sent is the reason.
fn malformed(error: axum::Error) -> Option<String> {
    match *error.into_inner().downcast::<tungstenite::Error>().ok()? {
        error @ (tungstenite::Error::Capacity(_) | tungstenite::Error::Utf8(_)) => {
            Some(format!("it sent a message that cannot be read: {}", excerpt(&error.to_string())))
        }
        _ => None,
    }
}

/// Sends what there is to send until the connection is over. Ends with an error, or when the connection is not the
/// driver's any more.
async fn write(
    fleet: &Fleet,
    handle: &DriverHandle,
    connection: &Arc<Connection>,
    sink: &mut (impl SinkExt<ws::Message, Error = axum::Error> + Unpin),
    welcome: Frame,
    mut cursor: u64,
) -> Result<(), axum::Error> {
    sink.send(wrap(welcome.packet())).await?;
    let mut pinged: Option<Instant> = None;
    while let Some((packets, ack, claimed)) = handle.outgoing(connection, &mut cursor) {
        let every = if claimed { PING[0] } else { PING[1] };
        let due = pinged.map_or_else(Instant::now, |pinged| pinged + every);
        if due <= Instant::now() {
            pinged = Some(Instant::now());
            let ping = Frame::Ping { at_ns: fleet.clock_ns(), ack };
            sink.send(wrap(ping.packet())).await?;
        } else if packets.is_empty() {
            // Woken up or not, there is a ping to send then.
            let _ = timeout_at(due, connection.wake.notified()).await;
        }
        for packet in packets {
            sink.feed(wrap(packet)).await?;
        }
        sink.flush().await?;
    }
    Ok(())
}

fn wrap(packet: Packet) -> ws::Message {
    match packet {
        // It was written as JSON, which is UTF-8.
        Packet::Text(bytes) => ws::Message::Text(bytes.try_into().unwrap_or_default()),
        Packet::Binary(bytes) => ws::Message::Binary(bytes),
    }
}
