//! What travels: JSON for messages, a fixed header for seconds.

use super::{MESSAGE_MOST, SECOND_MOST};
use crate::protocol::{Hello, Second};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidemark_measure::host::Utilization;

/// A frame between controller and driver. `ack` is always the number of the last message that the sender received.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Frame {
    /// The driver's first frame on every connection.
    Hello { hello: Box<Hello>, resume: Option<Resume> },
    /// The controller's answer: the session resumes after the last message that the controller received, or a new one
    /// begins.
    Welcome { controller: String, session: SessionId, resumed: Option<u64> },
    /// The controller's answer to a driver that it refuses; `later`: until a seat is given up.
    Refused {
        reason: String,
        #[serde(default)]
        later: bool,
    },
    /// The session is void: the last frame on a connection.
    Void { reason: String },
    /// A numbered message, in JSON.
    Message { number: u64, ack: u64, body: Box<RawValue> },
    /// From the controller: its clock.
    Ping { at_ns: i64, ack: u64 },
    /// The driver's answer at once: the controller's clock as it was told, the driver's when the ping came and when this left.
    Pong { at_ns: i64, received_ns: i64, sent_ns: i64, ack: u64 },
    /// How busy a driver's host is.
    Utilization { utilization: Utilization },
}

/// The session that a driver wants to resume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Resume {
    /// Its secret.
    pub(crate) session: SessionId,
    /// The last message that the driver received.
    pub(crate) received: u64,
}

/// A session's secret: it identifies the driver that was given it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SessionId(String);

impl SessionId {
    /// 128 random bits.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let high = getrandom::u64()?;
        Ok(Self(format!("{high:016x}{:016x}", getrandom::u64()?)))
    }
}

impl PartialEq for SessionId {
    fn eq(&self, other: &Self) -> bool {
        subtle::ConstantTimeEq::ct_eq(self.0.as_bytes(), other.0.as_bytes()).into()
    }
}

impl std::fmt::Debug for SessionId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SessionId(hidden)")
    }
}

impl Frame {
    /// The frame as it travels.
    pub(crate) fn packet(&self) -> Packet {
        // A frame is made of numbers, strings and text that is JSON already: none of it can fail to be written.
        Packet::Text(serde_json::to_vec(self).unwrap_or_default().into())
    }
}

/// A WebSocket message, whichever library sends it. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Packet {
    /// A [`Frame`].
    Text(Bytes),
    /// A second of load.
    Binary(Bytes),
}

impl Packet {
    /// How long it is.
    pub(crate) fn len(&self) -> usize {
        match self {
            Packet::Text(bytes) | Packet::Binary(bytes) => bytes.len(),
        }
    }
}

/// A message that has no number yet.
pub(crate) enum Body {
    /// JSON.
    Text(Box<RawValue>),
    /// A second of load.
    Second(Second),
}

impl Body {
    /// Serializes a message.
    ///
    /// # Errors
    /// When it cannot be serialized or is too long: a clause.
    pub(crate) fn json<T: Serialize>(word: &T) -> Result<Self, String> {
        let text = serde_json::value::to_raw_value(word)
            .map_err(|error| format!("a message could not be serialized: {error}"))?;
        // What the frame adds to the body is short.
        if text.get().len() > MESSAGE_MOST - 1024 {
            return Err(format!(
                "a message has {} MiB; the maximum is {} MiB",
                text.get().len() >> 20,
                MESSAGE_MOST >> 20
            ));
        }
        Ok(Body::Text(text))
    }

    /// Takes a second.
    ///
    /// # Errors
    /// When it is too long: a clause.
    pub(crate) fn second(second: Second) -> Result<Self, String> {
        if second.interval.len() > SECOND_MOST - HEADER {
            return Err(format!(
                "a second of load has {} MiB; the maximum is {} MiB",
                second.interval.len() >> 20,
                SECOND_MOST >> 20
            ));
        }
        Ok(Body::Second(second))
    }

    /// The message as it travels.
    pub(crate) fn numbered(self, number: u64, ack: u64) -> Packet {
        match self {
            Body::Text(body) => Frame::Message { number, ack, body }.packet(),
            Body::Second(second) => {
                let mut bytes = Vec::with_capacity(HEADER + second.interval.len());
                bytes.extend(number.to_le_bytes());
                bytes.extend(ack.to_le_bytes());
                bytes.extend(second.run.to_le_bytes());
                bytes.extend(second.stage.to_le_bytes());
                bytes.extend(second.work.to_le_bytes());
                bytes.extend(second.interval);
                Packet::Binary(bytes.into())
            }
        }
    }
}

/// Length of a second's header: number, acknowledgement and run of 8 bytes, stage and work of 4, little endian.
const HEADER: usize = 8 + 8 + 8 + 4 + 4;

/// Parses a second of load: its number, the acknowledgement that came with it, and itself.
pub(crate) fn read_second(bytes: &[u8]) -> Option<(u64, u64, Second)> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (ack, rest) = rest.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), u64::from_le_bytes(*ack), read_bare_second(rest)?))
}

/// Parses a second of load that has no number: its run, stage and work, and its interval.
pub(crate) fn read_bare_second(bytes: &[u8]) -> Option<Second> {
    let (run, rest) = bytes.split_first_chunk::<8>()?;
    let (stage, rest) = rest.split_first_chunk::<4>()?;
    let (work, interval) = rest.split_first_chunk::<4>()?;
    Some(Second {
        run: u64::from_le_bytes(*run),
        stage: u32::from_le_bytes(*stage),
        work: u32::from_le_bytes(*work),
        interval: interval.to_vec(),
    })
}

/// The start of a text from the other side, made fit for a message.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(200).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
