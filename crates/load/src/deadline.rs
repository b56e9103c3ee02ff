//! When an undertaking has to be over, however many steps it takes.

use std::time::{Duration, Instant};

/// A deadline that is made once for an undertaking, such as the questions before a load, and passed down to its steps: each may take what
/// is left. So a counterpart that keeps every step within a limit of its own cannot make the whole go on for ever.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    began: Instant,
    most: Duration,
}

impl Deadline {
    /// One that begins now.
    pub fn after(most: Duration) -> Self {
        Self { began: Instant::now(), most }
    }

    /// How long the whole may take.
    pub fn most(self) -> Duration {
        self.most
    }

    /// What is left of it; nothing once it has passed.
    pub fn left(self) -> Duration {
        self.most.saturating_sub(self.began.elapsed())
    }

    /// What is left of it, nanoseconds.
    pub fn left_ns(self) -> u64 {
        u64::try_from(self.left().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether it has passed.
    pub fn has_passed(self) -> bool {
        self.left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_share_what_is_left() {
        let deadline = Deadline::after(Duration::from_secs(3_600));
        let first = deadline.left();
        assert!(first <= deadline.most() && deadline.left() <= first && !deadline.has_passed());
        let over = Deadline::after(Duration::ZERO);
        assert_eq!((over.left_ns(), over.has_passed()), (0, true));
    }
}
