//! The memory that a thread's operations read into and write from: one mapping, a slot for every slot and a spare.
//!
//! One mapping because it is registered with the ring once; page-aligned because direct I/O demands alignment; in
//! huge pages where the kernel has them, so that the processor and the kernel walk fewer page tables.
#![allow(unsafe_code, reason = "a mapping is made, cut into slots and given back")]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::io::{self, IoSliceMut};
use std::ptr::{NonNull, null_mut};

/// Slots begin at multiples of this: at least what any file system or device requires for direct I/O.
pub(crate) const SLOT_ALIGN: usize = 4096;

/// Bytes of a huge page; a mapping smaller than this does not ask for them.
const HUGE: usize = 2 << 20;

/// Most bytes of one registered buffer (io_uring refuses more than 1 GiB).
const REGISTERED: usize = 1 << 30;

/// Zeroed, page-aligned memory in slots of one size.
pub(crate) struct Arena {
    start: NonNull<u8>,
    mapped: usize,
    slot: usize,
    slots: usize,
}

impl Arena {
    /// Memory for `slots` slots that hold `bytes` bytes each.
    pub(crate) fn new(slots: usize, bytes: usize) -> io::Result<Self> {
        let slot = bytes.max(1).checked_next_multiple_of(SLOT_ALIGN);
        let mapped = slot.and_then(|slot| slot.checked_mul(slots.max(1)));
        let (Some(slot), Some(mapped)) = (slot, mapped) else {
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory that exists.
        let start = unsafe { mmap_anonymous(null_mut(), mapped, access, flags) }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        if mapped >= HUGE {
            // A kernel without huge pages refuses, and then small ones do.
            // SAFETY: the range is the mapping just made; the advice does not change what it holds.
            let _ = unsafe { madvise(start.as_ptr().cast(), mapped, Advice::LinuxHugepage) };
        }
        Ok(Self { start, mapped, slot, slots: slots.max(1) })
    }

    /// Bytes of a slot: the requested size, rounded up.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.slot
    }

    /// A slot's memory. The kernel must not be writing to it: [`crate::ring::Ring`] sees to that.
    pub(crate) fn slot(&mut self, slot: usize) -> &mut [u8] {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: the slot lies within the mapping, which is initialised (zeroed) and lives as long as `self`; the
        // exclusive borrow of `self` excludes any other reference into it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(slot * self.slot), self.slot) }
    }

    /// Where a slot begins, for the kernel.
    pub(crate) fn address(&self, slot: usize) -> *mut u8 {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: the slot lies within the mapping.
        unsafe { self.start.as_ptr().add(slot * self.slot) }
    }

    /// How many slots one registered buffer covers.
    pub(crate) fn slots_per_buffer(&self) -> usize {
        (REGISTERED / self.slot).max(1)
    }

    /// The memory in as few pieces as can be registered, each of whole slots.
    pub(crate) fn buffers(&mut self) -> Vec<IoSliceMut<'_>> {
        let piece = self.slots_per_buffer() * self.slot;
        // SAFETY: as in `slot`, for the whole mapping.
        let all = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.mapped) };
        all.chunks_mut(piece).map(IoSliceMut::new).collect()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and nothing borrows it any more. Whoever lets the kernel write to it
        // keeps the arena until the kernel is done, or forgets it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_aligned_apart_and_hold_what_is_put_there() {
        let mut arena = Arena::new(3, 4097).unwrap();
        assert_eq!((arena.slot_bytes(), arena.mapped), (8192, 3 * 8192));
        for slot in 0..3 {
            assert_eq!(arena.address(slot) as usize % SLOT_ALIGN, 0);
            arena.slot(slot).fill(slot as u8 + 1);
        }
        for slot in 0..3 {
            assert!(arena.slot(slot).iter().all(|byte| *byte == slot as u8 + 1));
        }
        assert_eq!(arena.buffers().len(), 1);
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        assert!(Arena::new(usize::MAX, 1 << 20).is_err());
        assert!(Arena::new(1 << 20, 1 << 40).is_err());
    }
}
