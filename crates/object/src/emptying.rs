//! How far the emptying of a container may go: a server that always lists more would keep us for ever.

use crate::failure::Failure;
use tidemark_load::engine::Tick;
use tidemark_measure::fault::Fault;
use tidemark_measure::units;

/// The most that may be listed of one container, and the longest that it may take to empty it. What is deleted by then stays deleted, so
/// that another run can go on with a container that is larger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Objects, or versions of objects.
    pub(crate) objects: u64,
    pub(crate) time_ns: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { objects: 1_000_000_000, time_ns: 24 * 3_600 * 1_000_000_000 }
    }
}

/// One container that is being emptied.
pub(crate) struct Emptying {
    limits: Limits,
    began: Tick,
    listed: u64,
}

impl Emptying {
    pub(crate) fn begin(limits: Limits, now: Tick) -> Self {
        Self { limits, began: now, listed: 0 }
    }

    /// Another page with so many objects was listed.
    ///
    /// # Errors
    /// When that goes beyond a limit: nothing more is deleted.
    pub(crate) fn page(&mut self, objects: usize, now: Tick) -> Result<(), Failure> {
        let deleted = units::count(self.listed);
        self.listed = self.listed.saturating_add(objects as u64);
        let why = if self.listed > self.limits.objects {
            format!(
                "after {deleted} deletions the server lists still more: does something write to the container?"
            )
        } else if now.saturating_sub(self.began) > self.limits.time_ns {
            let time = units::duration_ns(self.limits.time_ns);
            format!(
                "the container was not empty after {time} and {deleted} deletions: does something write to it?"
            )
        } else {
            return Ok(());
        };
        let text = format!("{why} Run the clean-up again, or delete the rest with the storage's own tools");
        Err(Failure::without_effect(Fault::Conflict, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_at_its_limits_and_not_before() {
        let limits = Limits { objects: 2_000, time_ns: 60_000_000_000 };
        let mut many = Emptying::begin(limits, 5);
        assert_eq!((many.page(1_000, 6), many.page(1_000, 7)), (Ok(()), Ok(())));
        let refusal = many.page(1, 8).unwrap_err();
        assert_eq!(refusal.fault, Fault::Conflict);
        assert!(
            refusal.text.starts_with("after 2\u{202f}000 deletions the server lists still more"),
            "{refusal:?}"
        );
        let mut slow = Emptying::begin(limits, 5);
        assert_eq!(slow.page(1, 60_000_000_005), Ok(()));
        let refusal = slow.page(1, 60_000_000_006).unwrap_err();
        assert!(
            refusal.text.starts_with("the container was not empty after 1 m 00 s and 1 deletions"),
            "{refusal:?}"
        );
    }
}
