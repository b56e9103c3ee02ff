//! A flag that wakes who sleeps.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Shared by those who sleep and the one who wakes them.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Wakes all sleepers, for good.
    pub(crate) fn set(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    /// Sleeps until a moment of the monotonic clock, or until it is set; whether it is set.
    pub(crate) fn sleep_until(&self, moment: Instant) -> bool {
        let mut stopped = lock(&self.0.0);
        while !*stopped {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            stopped = self.0.1.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// A lock that outlives the panic of a thread: what is behind it is valid at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_sleeper_is_woken() {
        let stop = Stop::default();
        assert!(!stop.sleep_until(Instant::now() + Duration::from_millis(1)));
        let sleeper = std::thread::spawn({
            let stop = stop.clone();
            move || stop.sleep_until(Instant::now() + Duration::from_secs(600))
        });
        stop.set();
        assert!(sleeper.join().unwrap());
    }
}
