//! How a user ends a load before its time.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU8, Ordering};

/// The user's stop request to a running load. A greater one includes the lesser ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum StopRequest {
    /// Go on.
    #[default]
    None,
    /// End the load and let operations in flight finish; what was measured is kept, and cleanup stages still run.
    Finish,
    /// Stop at once, without cleanup.
    Stop,
}

/// A stop request that threads share. It only ever grows: a stop is not taken back.
#[derive(Debug, Default)]
pub struct SharedStopRequest(AtomicU8);

impl SharedStopRequest {
    /// Raises the request to this one, unless it is greater already.
    pub fn raise(&self, request: StopRequest) {
        self.0.fetch_max(request as u8, Ordering::Relaxed);
    }

    /// The greatest request so far.
    pub fn get(&self) -> StopRequest {
        [StopRequest::Stop, StopRequest::Finish]
            .into_iter()
            .find(|request| self.0.load(Ordering::Relaxed) >= *request as u8)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_not_taken_back() {
        let shared = SharedStopRequest::default();
        assert_eq!(shared.get(), StopRequest::None);
        for (asked, by_now) in [
            (StopRequest::Finish, StopRequest::Finish),
            (StopRequest::None, StopRequest::Finish),
            (StopRequest::Stop, StopRequest::Stop),
            (StopRequest::Finish, StopRequest::Stop),
        ] {
            shared.raise(asked);
            assert_eq!(shared.get(), by_now);
        }
    }
}
