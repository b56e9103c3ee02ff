//! Which version of an object a read may see at the least: stale content is known by it.
//!
//! A version is the time at which its write began. A write that was acknowledged, and that overlapped
//! with no other write of its key, makes every earlier version stale for reads sent from then on; that
//! version is the key's *floor*. Overlapping writes may take effect in either order, so they leave the
//! floor alone; and a write whose fate is unknown (a timeout, a reset) may take effect at any later time,
//! so it counts as in flight for ever. What this table calls stale therefore is.
//!
//! The table is lock-free and of fixed size. Keys get a slot when first written; when their neighbourhood
//! is full they are not followed, and never called stale.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How far a key may be from its own slot.
const PROBES: usize = 16;

/// Set in `Slot::flight` when writes overlapped, until none is in flight.
const OVERLAPPED: u32 = 1 << 31;

/// Set in `Slot::flight` when content was written, until it is deleted.
const WRITTEN: u32 = 1 << 30;

/// The writes in flight.
const COUNT: u32 = WRITTEN - 1;

/// The floors of a run's keys.
pub(crate) struct Versions {
    slots: Box<[Slot]>,
}

/// One key's state.
#[derive(Default)]
struct Slot {
    /// The key's hash; 0: free.
    key: AtomicU64,
    /// Versions below are stale.
    floor: AtomicU64,
    /// Writes in flight, [`OVERLAPPED`] and [`WRITTEN`].
    flight: AtomicU32,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The least version that a read sent from now on may see.
    pub(crate) floor: u64,
    /// Content was written, and that was acknowledged; it was not deleted since.
    pub(crate) written: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It put content there.
    Wrote,
    /// It deleted what was there.
    Deleted,
    /// It certainly had no effect.
    Nothing,
}

/// Where a key is in the table, if anywhere.
pub(crate) type Place = Option<u32>;

impl Versions {
    /// A table for about `keys` keys (24 bytes each, and room to spare); 0: follows nothing.
    pub(crate) fn new(keys: usize) -> Self {
        let count = if keys == 0 { 0 } else { (keys + keys / 4).max(PROBES).next_power_of_two() };
        Self { slots: (0..count.min(1 << 31)).map(|_| Slot::default()).collect() }
    }

    /// Notes that a write of a key begins. Its version must be taken afterwards.
    pub(crate) fn begin(&self, key: u64) -> Place {
        let key = key.max(1);
        let place = self.probe(key).find(|place| {
            let slot = &self.slots[*place as usize].key;
            match slot.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => true,
                Err(found) => found == key,
            }
        })?;
        // The closure never declines, so the update cannot fail.
        let _ =
            self.slots[place as usize].flight.fetch_update(Ordering::AcqRel, Ordering::Acquire, |flight| {
                let overlapped = if flight & COUNT == 0 { 0 } else { OVERLAPPED };
                Some(((flight & !OVERLAPPED) + 1) | overlapped)
            });
        Some(place)
    }

    /// Notes that a write ended.
    pub(crate) fn end(&self, place: Place, version: u64, end: End) {
        let Some(slot) = place.and_then(|place| self.slots.get(place as usize)) else { return };
        let before = slot.flight.fetch_update(Ordering::AcqRel, Ordering::Acquire, |flight| {
            let left = (flight & COUNT).saturating_sub(1);
            let overlapped = if left == 0 { 0 } else { flight & OVERLAPPED };
            let written = match end {
                End::Wrote => WRITTEN,
                End::Deleted => 0,
                End::Nothing => flight & WRITTEN,
            };
            Some(left | overlapped | written)
        });
        let alone = before.is_ok_and(|flight| flight & !WRITTEN == 1);
        if end != End::Nothing && alone {
            slot.floor.fetch_max(version, Ordering::AcqRel);
        }
    }

    /// What is known of a key now.
    #[inline]
    pub(crate) fn known(&self, key: u64) -> Known {
        let key = key.max(1);
        self.probe(key)
            .map(|place| &self.slots[place as usize])
            .find(|slot| slot.key.load(Ordering::Relaxed) == key)
            .map_or(Known::default(), |slot| Known {
                floor: slot.floor.load(Ordering::Acquire),
                written: slot.flight.load(Ordering::Acquire) & WRITTEN != 0,
            })
    }

    fn probe(&self, key: u64) -> impl Iterator<Item = u32> {
        let count = self.slots.len();
        let start = (key as usize) & count.wrapping_sub(1);
        (0..PROBES.min(count)).map(move |step| ((start + step) & (count - 1)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_alone_raises_the_floor() {
        let versions = Versions::new(10);
        let place = versions.begin(7);
        assert_eq!(versions.known(7).floor, 0);
        versions.end(place, 100, End::Wrote);
        assert_eq!(versions.known(7).floor, 100);
        assert_eq!(versions.known(8).floor, 0);
    }

    #[test]
    fn overlapping_writes_leave_it() {
        let versions = Versions::new(10);
        let (first, second) = (versions.begin(7), versions.begin(7));
        versions.end(second, 101, End::Wrote);
        versions.end(first, 100, End::Wrote);
        assert_eq!(versions.known(7).floor, 0);
        let alone = versions.begin(7);
        versions.end(alone, 102, End::Wrote);
        assert_eq!(versions.known(7).floor, 102);
    }

    #[test]
    fn a_write_of_unknown_fate_never_ends() {
        let versions = Versions::new(10);
        let _lost = versions.begin(7);
        let later = versions.begin(7);
        versions.end(later, 101, End::Wrote);
        assert_eq!(versions.known(7).floor, 0);
    }

    #[test]
    fn a_write_that_was_refused_changes_nothing() {
        let versions = Versions::new(10);
        let refused = versions.begin(7);
        versions.end(refused, 100, End::Nothing);
        assert_eq!(versions.known(7).floor, 0);
        let place = versions.begin(7);
        versions.end(place, 101, End::Wrote);
        assert_eq!(versions.known(7).floor, 101);
    }

    #[test]
    fn full_or_absent_tables_follow_nothing_more() {
        assert_eq!(Versions::new(0).begin(7), None);
        let versions = Versions::new(1);
        let places: Vec<_> = (1..=100).map(|key| versions.begin(key)).collect();
        assert_eq!(places.iter().flatten().count(), PROBES);
        versions.end(places[50], 5, End::Wrote);
        assert_eq!(versions.known(51).floor, 0);
    }

    #[test]
    fn what_was_written_counts_as_written_until_it_is_deleted() {
        let versions = Versions::new(10);
        let written = |key| versions.known(key).written;
        let place = versions.begin(7);
        assert!(!written(7), "not acknowledged");
        versions.end(place, 100, End::Wrote);
        versions.end(versions.begin(7), 101, End::Nothing);
        let _lost = versions.begin(7);
        assert!(written(7) && !written(8));
        versions.end(versions.begin(7), 102, End::Deleted);
        assert!(!written(7));
    }
}
