//! How much of a message that is not complete yet a driver's connection may hold: WebSocket collects the parts of a message
//! until it is whole, before anybody sees it.

use super::MESSAGE_MOST;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest first frame, and what else comes with it, bytes.
pub(super) const HELLO_MOST: usize = 64 << 10;

/// What all connections together may hold of messages that are not complete, bytes.
const ALL_MOST: usize = 256 << 20;

/// Bytes in which all connections of this process have a part.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// What has come over one connection since its last complete message. Whoever reads from the connection below the WebSocket tells
/// it, and closes the connection when it says so.
#[derive(Debug)]
pub struct Intake {
    since: AtomicUsize,
    most: AtomicUsize,
}

impl Default for Intake {
    /// Of a connection that has said nothing yet.
    fn default() -> Self {
        Self { since: AtomicUsize::new(0), most: AtomicUsize::new(HELLO_MOST) }
    }
}

impl Intake {
    /// So many bytes have come. False: they are more than this connection, or all of them, may hold.
    pub fn take(&self, bytes: usize) -> bool {
        let own = self.since.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let all = ALL.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        own <= self.most.load(Ordering::Relaxed) && (all <= ALL_MOST || own <= HELLO_MOST)
    }

    /// A message is complete. What came behind it with the same read counts no more: a buffer's worth.
    pub(super) fn message(&self) {
        ALL.fetch_sub(self.since.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The driver was let in: its messages may be long.
    pub(super) fn admit(&self) {
        self.message();
        // With frames' headers, and what TLS adds.
        self.most.store(MESSAGE_MOST + MESSAGE_MOST / 16, Ordering::Relaxed);
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.message();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_complete_is_bounded_before_the_hello_and_in_all() {
        let stranger = Intake::default();
        assert!(stranger.take(HELLO_MOST) && !stranger.take(1));
        let drivers: Vec<Intake> = (0..100).map(|_| Intake::default()).collect();
        drivers.iter().for_each(Intake::admit);
        let long = drivers.iter().filter(|driver| driver.take(MESSAGE_MOST)).count();
        assert!((1..=ALL_MOST / MESSAGE_MOST).contains(&long), "{long}");
        drivers.iter().for_each(Intake::message);
        assert!(drivers[0].take(MESSAGE_MOST), "complete messages take nothing");
        assert!(!drivers[0].take(MESSAGE_MOST), "none is longer than the longest");
        drop((stranger, drivers));
        assert_eq!(ALL.load(Ordering::Relaxed), 0);
    }
}
