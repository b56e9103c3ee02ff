//! Which objects exist: the live pool, so that a mix with deletes reads only what is there.
//!
//! Every worker has a slice of the items of every space to itself, so nothing is shared between threads. An
//! item in use is checked out until its operation has ended: in an open loop a worker may have several
//! operations in flight, and a read must not race the delete of the same object.

use crate::source::{Effect, PoolPlan};
use tidemark_measure::pick::Part;
use tidemark_measure::rng::Rng;

/// One worker's pool.
pub struct Pool {
    first_space: u64,
    first_item: u64,
    /// Items of one space in this worker's slice.
    items: u64,
    /// Places (space and item in one number) that exist and are idle.
    idle: Vec<u64>,
    /// Places that existed once and were removed.
    removed: Vec<u64>,
    /// Places that never existed: (next item, spaces already given of it); taken item by item over all spaces.
    fresh: std::ops::Range<u64>,
    spaces: u64,
}

/// An item checked out of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its space.
    pub space: u64,
    /// Its number.
    pub item: u64,
    place: u64,
    effect: Effect,
}

impl Pool {
    /// The pool of one of a work's workers.
    pub fn new(plan: &PoolPlan, part: Part) -> Self {
        let (first_space, last_space) = plan.spaces;
        let spaces = (last_space + 1).saturating_sub(first_space);
        let slice = part.slice(plan.items.0, plan.items.1);
        let (low, high) = slice.unwrap_or((1, 0));
        let items = (high + 1).saturating_sub(low);
        // Places are numbered item by item over all spaces; those below `known` existed or are skipped.
        let mut idle = Vec::new();
        let mut known = 0;
        if let Some((from, to)) = plan.existing {
            let (from, to) = (from.max(low), to.min(high));
            if from <= to && items > 0 {
                idle.extend((from - low) * spaces..(to - low + 1) * spaces);
                known = (to - low + 1) * spaces;
            }
        }
        let before = idle.first().copied().unwrap_or(0);
        Self {
            first_space,
            first_item: low,
            items,
            idle,
            removed: (0..before).collect(),
            fresh: known..items * spaces,
            spaces: spaces.max(1),
        }
    }

    /// Checks an item out for an action of this effect; `None` when no item qualifies.
    pub fn take(&mut self, effect: Effect, rng: &mut Rng) -> Option<Ticket> {
        let place = match effect {
            Effect::Makes => match self.fresh.next() {
                Some(place) => place,
                None => take_any(&mut self.removed, rng).or_else(|| take_any(&mut self.idle, rng))?,
            },
            Effect::Free | Effect::Uses | Effect::Removes => take_any(&mut self.idle, rng)?,
        };
        debug_assert!(place < self.items * self.spaces);
        let (space, item) = (self.first_space + place % self.spaces, self.first_item + place / self.spaces);
        Some(Ticket { space, item, place, effect })
    }

    /// Puts an item back where it belongs now. After a failure it is uncertain whether a new item was made or an
    /// old one removed: it counts as not there, which is always safe to read past.
    pub fn ended(&mut self, ticket: Ticket, succeeded: bool) {
        let exists = match ticket.effect {
            Effect::Free | Effect::Uses => true,
            Effect::Makes => succeeded,
            Effect::Removes => false,
        };
        if exists { self.idle.push(ticket.place) } else { self.removed.push(ticket.place) }
    }
}

fn take_any(places: &mut Vec<u64>, rng: &mut Rng) -> Option<u64> {
    if places.is_empty() {
        return None;
    }
    let index = rng.below(places.len() as u64) as usize;
    Some(places.swap_remove(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_given_once_while_checked_out() {
        let plan = PoolPlan { spaces: (1, 2), items: (1, 9), existing: Some((3, 4)) };
        let mut rng = Rng::new(3, &[]);
        let mut all = Vec::new();
        for index in 0..2 {
            let mut pool = Pool::new(&plan, Part { index, of: 2 });
            while let Some(ticket) = pool.take(Effect::Makes, &mut rng) {
                all.push((ticket.space, ticket.item));
            }
        }
        all.sort_unstable();
        let expected: Vec<_> = (1..=2).flat_map(|space| (1..=9).map(move |item| (space, item))).collect();
        assert_eq!(all, expected);
    }
}
