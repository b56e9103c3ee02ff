//! Numbers, acknowledgements, what is to be sent again: one side of a session. Knows no network.
//!
//! Messages are numbered from 1 in each direction. What was sent is kept until the other side acknowledges it; after
//! a cut, both sides send what they have received and continue after it. Duplicates are dropped by their number.

use super::KEPT_MOST;
use super::frame::{Body, Packet};
use std::collections::VecDeque;

/// One side of a session. Faults are clauses: `it sent message 7 after message 3`.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// What was sent and is not acknowledged, in order.
    kept: VecDeque<Packet>,
    /// Length of all that.
    kept_bytes: usize,
    /// The last message that the other side has.
    acknowledged: u64,
    /// The last message that came.
    received: u64,
}

impl Stream {
    /// The number of the last message that came.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Whether the other side has all messages.
    pub(crate) fn settled(&self) -> bool {
        self.kept.is_empty()
    }

    /// Keeps a message to be sent.
    ///
    /// # Errors
    /// When too much is kept already.
    pub(crate) fn say(&mut self, body: Body) -> Result<(), String> {
        let packet = body.numbered(self.last_said() + 1, self.received);
        if self.kept_bytes + packet.len() > KEPT_MOST {
            return Err(format!("more than {} MiB of messages are not acknowledged", KEPT_MOST >> 20));
        }
        self.kept_bytes += packet.len();
        self.kept.push_back(packet);
        Ok(())
    }

    /// The next message after that of number `cursor`, which is moved to it.
    pub(crate) fn next(&self, cursor: &mut u64) -> Option<Packet> {
        *cursor = (*cursor).max(self.acknowledged);
        let packet = self.kept.get(usize::try_from(*cursor - self.acknowledged).ok()?)?;
        *cursor += 1;
        Some(packet.clone())
    }

    /// The other side has all messages up to this one.
    ///
    /// # Errors
    /// When it cannot: they were not sent.
    pub(crate) fn acknowledge(&mut self, number: u64) -> Result<(), String> {
        if number > self.last_said() {
            return Err(format!("it acknowledged message {number}, and {} is the last", self.last_said()));
        }
        while self.acknowledged < number {
            self.acknowledged += 1;
            self.kept_bytes -= self.kept.pop_front().map_or(0, |packet| packet.len());
        }
        Ok(())
    }

    /// The other side continues after a cut, and has all messages up to this one. Returns whether it can: what follows must
    /// still be here.
    pub(crate) fn resume(&mut self, number: u64) -> bool {
        number >= self.acknowledged && self.acknowledge(number).is_ok()
    }

    /// A message came: whether it is a new one.
    ///
    /// # Errors
    /// When one before it is missing.
    pub(crate) fn receive(&mut self, number: u64) -> Result<bool, String> {
        if number <= self.received {
            return Ok(false);
        }
        if number > self.received + 1 {
            return Err(format!("it sent message {number} after message {}", self.received));
        }
        self.received = number;
        Ok(true)
    }

    fn last_said(&self) -> u64 {
        self.acknowledged + self.kept.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::frame::read_second;
    use crate::protocol::Second;

    fn second(work: u32, length: usize) -> Body {
        Body::second(Second { run: 1, stage: 2, work, interval: vec![7; length] }).unwrap()
    }

    fn number(packet: &Packet) -> u64 {
        match packet {
            Packet::Binary(bytes) => read_second(bytes).unwrap().0,
            Packet::Text(_) => panic!("not a second"),
        }
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_in_order() {
        let mut stream = Stream::default();
        for work in 0..5 {
            stream.say(second(work, 3)).unwrap();
        }
        let mut cursor = 0;
        while stream.next(&mut cursor).is_some() {}
        assert_eq!(cursor, 5);
        stream.acknowledge(2).unwrap();
        let mut cursor = 2;
        let again: Vec<u64> =
            std::iter::from_fn(|| stream.next(&mut cursor)).map(|packet| number(&packet)).collect();
        assert_eq!(again, [3, 4, 5]);
        stream.acknowledge(1).unwrap();
        stream.acknowledge(5).unwrap();
        assert!(stream.settled());
        assert_eq!(stream.kept_bytes, 0);
        assert!(stream.acknowledge(6).is_err());
        assert!(stream.resume(5));
        assert!(!stream.resume(4), "messages that are not kept any more cannot be sent again");
        assert!(!stream.resume(6));
    }

    #[test]
    fn what_comes_twice_is_dropped_and_a_gap_is_a_fault() {
        let mut stream = Stream::default();
        assert_eq!(stream.receive(1), Ok(true));
        assert_eq!(stream.receive(2), Ok(true));
        assert_eq!(stream.receive(1), Ok(false));
        assert_eq!(stream.receive(2), Ok(false));
        assert_eq!(stream.receive(0), Ok(false));
        assert!(stream.receive(4).is_err());
        assert_eq!(
            stream.receive(u64::MAX).unwrap_err(),
            format!("it sent message {} after message 2", u64::MAX)
        );
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut stream = Stream::default();
        let fits = (0..1000).take_while(|work| stream.say(second(*work, 3 << 20)).is_ok()).count();
        assert_eq!(fits, KEPT_MOST / ((3 << 20) + 32));
        stream.acknowledge(1).unwrap();
        assert!(stream.say(second(0, 3 << 20)).is_ok());
    }
}
