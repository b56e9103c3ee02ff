//! A flag that wakes sleeping threads.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Shared by the sleeping threads and the one that wakes them.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Wakes all sleeping threads, now and later.
    pub(crate) fn set(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    pub(crate) fn is_set(&self) -> bool {
        *lock(&self.0.0)
    }

    /// Sleeps until `moment` or until the flag is set; returns whether it is set.
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

/// Locks even after another thread panicked: the data is valid at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_sleeping_thread_is_woken() {
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
