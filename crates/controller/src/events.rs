//! All that happens, numbered, to whoever listens. A listener that is too slow misses the oldest and is told so.

use crate::api::Live;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// Events that a listener may be behind: a minute of a run on ten drivers with several works.
const BACKLOG: usize = 1024;

/// A numbered event, and the submission that it is about, if any.
#[derive(Clone, Debug)]
pub struct Event {
    /// Counts up.
    pub id: u64,
    /// Which submission.
    pub submission: Option<u64>,
    /// What.
    pub live: Live,
}

/// Where events go through.
pub(crate) struct Events {
    /// The number of the last one. Assignment while it is sent, so that numbers come in their order.
    last: Mutex<u64>,
    sender: broadcast::Sender<Arc<Event>>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { last: Mutex::new(0), sender: broadcast::channel(BACKLOG).0 }
    }

    /// Tells everybody.
    pub(crate) fn publish(&self, submission: Option<u64>, live: Live) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        // That nobody listens is no trouble.
        let _ = self.sender.send(Arc::new(Event { id: *last, submission, live }));
    }

    /// The number of the last one.
    pub(crate) fn last(&self) -> u64 {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody listens.
    pub(crate) fn has_listeners(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// All from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Event>> {
        self.sender.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::broadcast::error::TryRecvError;

    #[test]
    fn numbers_count_up_and_a_slow_listener_is_told_what_it_missed() {
        let events = Events::new();
        events.publish(None, Live::Trouble("before anybody listened".into()));
        let mut listener = events.listen();
        for _ in 0..BACKLOG + 10 {
            events.publish(Some(7), Live::Trouble("x".into()));
        }
        assert!(matches!(listener.try_recv(), Err(TryRecvError::Lagged(10))));
        let next = listener.try_recv().unwrap();
        assert_eq!((next.id, next.submission), (12, Some(7)));
        assert_eq!(events.last(), BACKLOG as u64 + 11);
    }
}
