//! How many bytes an undertaking may be sent, however many steps it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidemark_measure::units;

/// A budget that is made once for an undertaking, such as the questions before a load, and shared by its steps, as its
/// [deadline](crate::deadline::Deadline) is. So a counterpart that keeps every reply below a limit of its own cannot send for ever.
#[derive(Clone, Debug)]
pub struct Budget {
    most: u64,
    received: Arc<AtomicU64>,
}

/// More has come than an undertaking may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its replies add up to more than {}: check what listens at that address", units::exact_bytes(*most, " "))]
pub struct Exceeded {
    most: u64,
}

impl Budget {
    /// For the questions before a load. An honest server replies with kilobytes; the names of all its buckets take megabytes.
    pub fn preflight() -> Self {
        Self::of(64 << 20)
    }

    /// One of so many bytes.
    pub fn of(most: u64) -> Self {
        Self { most, received: Arc::default() }
    }

    /// Takes what has come off it.
    ///
    /// # Errors
    /// When it was more than was left, now or before.
    pub fn take(&self, bytes: u64) -> Result<(), Exceeded> {
        self.received.fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }

    /// Whether it has been enough so far.
    ///
    /// # Errors
    /// When more has come.
    pub fn check(&self) -> Result<(), Exceeded> {
        match self.received.load(Ordering::Relaxed) > self.most {
            true => Err(Exceeded { most: self.most }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_share_what_is_left() {
        let budget = Budget::of(1 << 20);
        let step = budget.clone();
        assert_eq!((budget.take(1 << 19), step.take(1 << 19), step.check()), (Ok(()), Ok(()), Ok(())));
        let exceeded = step.take(1).unwrap_err();
        assert_eq!((budget.check(), budget.take(0)), (Err(exceeded), Err(exceeded)));
        assert!(exceeded.to_string().starts_with("its replies add up to more than 1 MiB: "), "{exceeded}");
    }
}
