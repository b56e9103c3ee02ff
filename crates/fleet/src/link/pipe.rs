//! A link over pipes, between a process and one that it has started: there are no cuts, and both read the same clock.
//!
//! A frame is its length (4 bytes, little endian), its kind (1 byte), and what it holds: JSON, or a second of load after its run, stage
//! and work.

use super::client::FromController;
use super::frame::read_bare_second;
use super::{MESSAGE_MOST, SECOND_MOST};
use crate::protocol::{Second, Up};
use crossbeam_channel::Sender;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const JSON: u8 = 0;
const SECOND: u8 = 1;

/// Run, stage and work before a second of load, bytes.
const SECOND_HEADER: usize = 8 + 4 + 4;

/// What one side sends through, until it closes it.
pub(crate) struct Outlet<W>(Mutex<Option<W>>);

/// What arrives.
#[derive(Debug)]
pub(crate) enum Arrived<T> {
    /// A message.
    Message(T),
    /// A second of load.
    Second(Second),
}

impl<W: Write> Outlet<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self(Mutex::new(Some(writer)))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When it is too long, or the other side is gone.
    pub(crate) fn message<T: Serialize>(&self, message: &T) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        if text.len() > MESSAGE_MOST {
            let words =
                format!("a message has {} MiB; the maximum is {} MiB", text.len() >> 20, MESSAGE_MOST >> 20);
            return Err(io::Error::other(words));
        }
        self.frame(JSON, &[&text])
    }

    /// Sends a second of load.
    ///
    /// # Errors
    /// When the other side is gone.
    pub(crate) fn second(&self, second: &Second) -> io::Result<()> {
        let (run, stage, work) =
            (second.run.to_le_bytes(), second.stage.to_le_bytes(), second.work.to_le_bytes());
        self.frame(SECOND, &[&run, &stage, &work, &second.interval])
    }

    fn frame(&self, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let length = u32::try_from(length).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(5 + length as usize);
        bytes.extend(length.to_le_bytes());
        bytes.push(kind);
        parts.iter().for_each(|part| bytes.extend(*part));
        let mut writer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writer.write_all(&bytes)?;
        writer.flush()
    }

    /// Sends nothing more, which the other side sees.
    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Reads the next frame; `None` at the end.
///
/// # Errors
/// When reading fails, or what arrives is no frame.
pub(crate) fn read<T: DeserializeOwned>(reader: &mut impl Read) -> io::Result<Option<Arrived<T>>> {
    let mut head = [0; 5];
    match reader.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let [a, b, c, d, kind] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let most = if kind == SECOND { SECOND_HEADER + SECOND_MOST } else { MESSAGE_MOST };
    if length > most {
        return Err(invalid(format!("a message of {length} bytes is too long")));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    match kind {
        JSON => Ok(Some(Arrived::Message(serde_json::from_slice(&body)?))),
        SECOND => {
            let second =
                read_bare_second(&body).ok_or_else(|| invalid("a second of load is too short".into()))?;
            Ok(Some(Arrived::Second(second)))
        }
        other => Err(invalid(format!("there are no messages of kind {other}"))),
    }
}

/// The clock that processes of one machine share: `CLOCK_MONOTONIC`, clock_gettime(2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    origin_ns: i64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let origin = Instant::now();
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self { origin, origin_ns: now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec) }
    }

    /// What it shows, or showed, at `instant`, nanoseconds.
    pub(crate) fn at(&self, instant: Instant) -> i64 {
        let ns = |distance: std::time::Duration| i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX);
        match instant.checked_duration_since(self.origin) {
            Some(since) => self.origin_ns.saturating_add(ns(since)),
            None => self.origin_ns.saturating_sub(ns(self.origin.saturating_duration_since(instant))),
        }
    }

    /// When it shows, or showed, `ns`.
    pub(crate) fn instant_of(&self, ns: i64) -> Instant {
        super::instant_of(self.origin, ns.saturating_sub(self.origin_ns))
    }
}

/// The end of a process that another one started and commands.
pub(super) struct Started {
    pub(super) clock: Clock,
    outlet: Outlet<Box<dyn Write + Send>>,
}

impl Started {
    pub(super) fn new(output: Box<dyn Write + Send>) -> Self {
        Self { clock: Clock::new(), outlet: Outlet::new(output) }
    }

    // Whoever does not read any more has ended, and reading will show it.
    pub(super) fn send(&self, up: &Up) {
        let _ = self.outlet.message(up);
    }

    pub(super) fn second(&self, second: &Second) {
        let _ = self.outlet.second(second);
    }
}

/// Passes on what arrives until it ends.
pub(super) fn listen(mut input: impl Read, incoming: &Sender<FromController>) {
    let gone = loop {
        match read(&mut input) {
            Ok(Some(Arrived::Message(down))) => {
                if incoming.send(FromController::Message(Box::new(down))).is_err() {
                    return;
                }
            }
            Ok(Some(Arrived::Second(_))) => {
                break "the process that started this one sent a second of load".to_owned();
            }
            Ok(None) => break "the process that started this one has ended".to_owned(),
            Err(error) => break format!("the process that started this one cannot be understood: {error}"),
        }
    };
    // A driver that no longer listens has ended.
    let _ = incoming.send(FromController::Refused(gone));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Down;
    use proptest::prelude::*;
    use std::time::Duration;

    fn sent(send: impl FnOnce(&Outlet<&mut Vec<u8>>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        send(&Outlet::new(&mut bytes));
        bytes
    }

    #[test]
    fn messages_and_seconds_arrive_in_order_and_then_the_end() {
        let second = Second { run: 7, stage: 1, work: 2, interval: vec![1, 2, 3] };
        let bytes = sent(|outlet| {
            outlet.message(&Down::Release { run: 7 }).unwrap();
            outlet.second(&second).unwrap();
        });
        let mut reader = &bytes[..];
        assert!(matches!(read(&mut reader).unwrap(), Some(Arrived::Message(Down::Release { run: 7 }))));
        assert!(
            matches!(read::<Down>(&mut reader).unwrap(), Some(Arrived::Second(arrived)) if arrived == second)
        );
        assert!(read::<Down>(&mut reader).unwrap().is_none());
    }

    #[test]
    fn a_clock_shows_the_same_to_both_sides() {
        let (one, other) = (Clock::new(), Clock::new());
        for ahead in [Duration::ZERO, Duration::from_secs(3)] {
            let at = Instant::now() + ahead;
            let there = other.instant_of(one.at(at));
            let apart = there.saturating_duration_since(at).max(at.saturating_duration_since(there));
            assert!(apart < Duration::from_secs(1), "{apart:?}");
        }
        let at = Instant::now();
        assert_eq!(one.instant_of(one.at(at)), at);
    }

    #[test]
    fn a_length_that_is_too_large_is_refused_before_it_is_read() {
        let bytes = [255, 255, 255, 255, JSON];
        assert!(read::<Down>(&mut &bytes[..]).unwrap_err().to_string().contains("too long"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, kind in 0..4_u8) {
            let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
            framed.push(kind);
            framed.extend(&bytes);
            let _ = read::<Down>(&mut &framed[..]);
            let _ = read::<Down>(&mut &bytes[..]);
        }
    }
}
