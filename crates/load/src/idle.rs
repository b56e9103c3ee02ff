//! The slots of a thread that carry no operation.

use std::collections::VecDeque;

/// Idle slots, and which of them a stream takes.
pub(crate) enum Idle {
    /// Any: first in, first out, so that all slots, and so all endpoints, get their turn.
    Any(VecDeque<u32>),
    /// Its own, which has its number: so a client of a closed loop stays with its connection and its endpoint, however long it
    /// thinks and whoever else is done.
    Own {
        /// Whether each slot is idle.
        idle: Vec<bool>,
        /// How many are.
        count: u32,
    },
}

impl Idle {
    /// So many slots, all of them idle; with `own` each of them belongs to the stream of its number.
    pub(crate) fn new(slots: u32, own: bool) -> Self {
        match own {
            true => Self::Own { idle: vec![true; slots as usize], count: slots },
            false => Self::Any((0..slots).collect()),
        }
    }

    /// Whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Any(queue) => queue.is_empty(),
            Self::Own { count, .. } => *count == 0,
        }
    }

    /// Takes one for a stream, if there is one for it.
    #[inline]
    pub(crate) fn take(&mut self, stream: u32) -> Option<u32> {
        match self {
            Self::Any(queue) => queue.pop_front(),
            Self::Own { idle, count } => {
                let own = idle.get_mut(stream as usize).filter(|own| **own)?;
                (*own, *count) = (false, *count - 1);
                Some(stream)
            }
        }
    }

    /// A slot is idle again.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u32) {
        match self {
            Self::Any(queue) => queue.push_back(slot),
            Self::Own { idle, count } => (idle[slot as usize], *count) = (true, *count + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_its_own_slot_or_the_one_that_is_idle_for_longest() {
        let mut any = Idle::new(2, false);
        assert_eq!((any.take(1), any.take(1), any.take(1)), (Some(0), Some(1), None));
        any.give_back(1);
        any.give_back(0);
        assert_eq!(any.take(0), Some(1));
        let mut own = Idle::new(2, true);
        assert_eq!((own.take(1), own.take(1), own.take(0)), (Some(1), None, Some(0)));
        assert!(own.is_empty());
        own.give_back(1);
        assert_eq!((own.take(0), own.is_empty(), own.take(1)), (None, false, Some(1)));
    }
}
