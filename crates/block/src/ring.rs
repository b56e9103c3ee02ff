//! One thread's io_uring: operations are queued, submitted in batches, and waited for together with what is left of
//! the last one.
//!
//! The ring owns the buffers, so it can promise what the kernel's side needs: a slot's memory is never touched while
//! an operation of that slot is in flight, and is not given back before the kernel is done with it.
#![allow(unsafe_code, reason = "the kernel is given pointers to buffers")]

use crate::arena::Arena;
use io_uring::types::{CancelBuilder, Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most entries of a ring's submission queue (`IORING_MAX_ENTRIES`), and so most operations in flight on a thread.
pub(crate) const MOST_SLOTS: u32 = 32_768;

/// How long a ring that is dropped waits for what is in flight; then its buffers are left to the kernel for good.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the kernel would not give; the ring works without it.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    /// Why buffers are not registered.
    pub(crate) buffers: Option<io::Error>,
    /// Why files are not registered.
    pub(crate) files: Option<io::Error>,
}

/// An operation of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Fills the slot's buffer from the file.
    Read { offset: u64, length: u32 },
    /// Writes the slot's buffer to the file.
    Write { offset: u64, length: u32 },
    /// Gives a range of the file back; it reads as zeroes then.
    Punch { offset: u64, length: u64 },
    /// Makes durable what was written; without the file's times if `data` only.
    Sync { data: bool },
}

/// A ring, its files and its buffers.
pub(crate) struct Ring {
    ring: IoUring,
    /// `None` once the buffers are left to the kernel.
    arena: Option<Arena>,
    files: Arc<[File]>,
    raw: Vec<RawFd>,
    fixed_files: bool,
    /// Slots of one registered buffer; 0: none is registered.
    lanes_per_buffer: usize,
    busy: Vec<bool>,
    in_flight: u32,
    polled: bool,
}

impl Ring {
    /// A ring for `slots` operations of up to `largest` bytes on these files. With `polled`, completions are polled
    /// for. It must be used by the calling thread only.
    pub(crate) fn new(
        files: Arc<[File]>,
        slots: u32,
        largest: usize,
        polled: bool,
    ) -> io::Result<(Self, Missing)> {
        let entries = slots.clamp(1, MOST_SLOTS).next_power_of_two();
        let ring = set_up(entries, polled)?;
        // The spare slot is for reading again what looked wrong.
        let mut arena = Arena::new(slots as usize + 1, largest)?;
        let raw: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
        let mut missing = Missing::default();
        let fixed_files = match ring.submitter().register_files(&raw) {
            Ok(()) => true,
            Err(error) => {
                missing.files = Some(error);
                false
            }
        };
        let buffers = arena.buffers();
        // SAFETY: `IoSliceMut` is ABI compatible with `iovec` (its documentation guarantees it), which is the type
        // that is inferred here. The memory stays mapped until the ring is dropped or is left to the kernel.
        let registered = unsafe {
            let vectors = std::slice::from_raw_parts(buffers.as_ptr().cast(), buffers.len());
            ring.submitter().register_buffers(vectors)
        };
        let lanes_per_buffer = match registered {
            Ok(()) => arena.slots_per_buffer(),
            Err(error) => {
                missing.buffers = Some(error);
                0
            }
        };
        let busy = vec![false; slots as usize];
        let arena = Some(arena);
        let ring =
            Self { ring, arena, files, raw, fixed_files, lanes_per_buffer, busy, in_flight: 0, polled };
        Ok((ring, missing))
    }

    /// Bytes that a slot's buffer holds.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.arena.as_ref().map_or(0, Arena::slot_bytes)
    }

    /// Operations in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether a slot has an operation in flight.
    pub(crate) fn is_busy(&self, slot: u32) -> bool {
        self.busy.get(slot as usize).copied().unwrap_or(false)
    }

    /// An idle slot's buffer.
    pub(crate) fn buffer(&mut self, slot: u32) -> Option<&mut [u8]> {
        let idle = !*self.busy.get(slot as usize)?;
        self.arena.as_mut().filter(|_| idle).map(|arena| arena.slot(slot as usize))
    }

    /// What a file holds at `offset` now, read plainly into the spare buffer.
    pub(crate) fn read_again(&mut self, file: usize, offset: u64, length: usize) -> io::Result<&[u8]> {
        let (Some(arena), Some(file)) = (self.arena.as_mut(), self.files.get(file)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let spare = arena.slot(self.busy.len());
        let length = length.min(spare.len());
        let mut read = 0;
        while read < length {
            match rustix::io::pread(file, &mut spare[read..length], offset + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(&spare[..read])
    }

    /// Queues a request on an idle slot; false when there is no room or the slot is not idle.
    #[inline]
    pub(crate) fn queue(&mut self, slot: u32, file: usize, request: Request) -> bool {
        let index = slot as usize;
        let (Some(false), Some(arena), Some(raw)) = (self.busy.get(index), &self.arena, self.raw.get(file))
        else {
            return false;
        };
        let entry = match self.fixed_files {
            true => self.entry(Fixed(file as u32), arena.address(index), index, request),
            false => self.entry(Fd(*raw), arena.address(index), index, request),
        };
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: the buffer is the slot's own, at least `length` bytes long (`entry` cuts it), and `busy` keeps
        // everybody off it until the completion has been seen; `drop` keeps it mapped for as long. The file is kept
        // open by `files`.
        let pushed = unsafe { self.ring.submission().push(&entry) }.is_ok();
        if pushed {
            self.busy[index] = true;
            self.in_flight += 1;
        }
        pushed
    }

    #[inline]
    fn entry<F: Target>(&self, file: F, buffer: *mut u8, slot: usize, request: Request) -> squeue::Entry {
        let cut = |length: u32| length.min(self.buffer_bytes() as u32);
        let piece = slot.checked_div(self.lanes_per_buffer).map(|piece| piece as u16);
        match request {
            Request::Read { offset, length } => file.read(buffer, cut(length), piece, offset),
            Request::Write { offset, length } => file.write(buffer, cut(length), piece, offset),
            Request::Punch { offset, length } => {
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                file.punch(offset, length, mode.bits() as i32)
            }
            Request::Sync { data: true } => file.sync(FsyncFlags::DATASYNC),
            Request::Sync { data: false } => file.sync(FsyncFlags::empty()),
        }
    }

    /// Submits what is queued and waits until `want` operations have ended or `timeout` is over; with no timeout it
    /// only looks. One system call, or none if there is nothing to tell or ask the kernel. Polled rings never sleep:
    /// they look once.
    #[inline]
    pub(crate) fn submit(&mut self, want: u32, timeout: Option<Duration>) -> io::Result<()> {
        let result = match timeout.filter(|_| !self.polled) {
            Some(timeout) => {
                let time = Timespec::from(timeout);
                let args = SubmitArgs::new().timespec(&time);
                self.ring.submitter().submit_with_args(want as usize, &args)
            }
            None => {
                let queue = self.ring.submission();
                if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() && !self.polled {
                    return Ok(());
                }
                drop(queue);
                self.ring.submit()
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                // The time is over, a signal came, or completions must be taken first.
                Some(
                    rustix::io::Errno::TIME
                    | rustix::io::Errno::INTR
                    | rustix::io::Errno::BUSY
                    | rustix::io::Errno::AGAIN,
                ) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// The next operation that has ended: its slot, and what the kernel returned (bytes, or a negative error).
    #[inline]
    pub(crate) fn next_ended(&mut self) -> Option<(u32, i32)> {
        loop {
            let entry = self.ring.completion().next()?;
            let slot = entry.user_data() as u32;
            // Everything queued has its slot as user data, so a slot that is not busy cannot occur.
            if let Some(busy) = self.busy.get_mut(slot as usize).filter(|busy| **busy) {
                *busy = false;
                self.in_flight -= 1;
                return Some((slot, entry.result()));
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            let _ = self.submit(0, None);
            let now = Timespec::new();
            let _ = self.ring.submitter().register_sync_cancel(Some(now), CancelBuilder::any());
            let until = Instant::now() + PATIENCE;
            while self.in_flight > 0 && Instant::now() < until {
                if self.submit(1, Some(Duration::from_millis(10))).is_err() {
                    break;
                }
                while self.next_ended().is_some() {}
            }
        }
        if self.in_flight > 0 {
            // The kernel may yet write there. Memory that is never freed cannot be reused.
            std::mem::forget(self.arena.take());
            return;
        }
        // The kernel takes a ring apart some time later. Files are released now, so that their file system can be
        // unmounted and their device detached as soon as the work is over.
        let submitter = self.ring.submitter();
        if self.fixed_files {
            let _ = submitter.unregister_files();
        }
        if self.lanes_per_buffer > 0 {
            let _ = submitter.unregister_buffers();
        }
    }
}

/// A ring of `entries` entries, set up for one thread that submits and waits; plainly, where the kernel is older.
fn set_up(entries: u32, polled: bool) -> io::Result<IoUring> {
    let builder = || {
        let mut builder = IoUring::builder();
        builder.dontfork();
        if polled {
            builder.setup_iopoll();
        }
        builder
    };
    let mut best = builder();
    best.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_taskrun_flag();
    match best.build(entries) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => builder().build(entries),
        result => result,
    }
}

/// A file of the ring, registered or not.
trait Target {
    fn read(self, buffer: *mut u8, length: u32, piece: Option<u16>, offset: u64) -> squeue::Entry;
    fn write(self, buffer: *mut u8, length: u32, piece: Option<u16>, offset: u64) -> squeue::Entry;
    fn punch(self, offset: u64, length: u64, mode: i32) -> squeue::Entry;
    fn sync(self, flags: FsyncFlags) -> squeue::Entry;
}

macro_rules! target {
    ($kind:ident) => {
        impl Target for $kind {
            #[inline]
            fn read(self, buffer: *mut u8, length: u32, piece: Option<u16>, offset: u64) -> squeue::Entry {
                match piece {
                    Some(piece) => opcode::ReadFixed::new(self, buffer, length, piece).offset(offset).build(),
                    None => opcode::Read::new(self, buffer, length).offset(offset).build(),
                }
            }

            #[inline]
            fn write(self, buffer: *mut u8, length: u32, piece: Option<u16>, offset: u64) -> squeue::Entry {
                match piece {
                    Some(piece) => {
                        opcode::WriteFixed::new(self, buffer, length, piece).offset(offset).build()
                    }
                    None => opcode::Write::new(self, buffer, length).offset(offset).build(),
                }
            }

            fn punch(self, offset: u64, length: u64, mode: i32) -> squeue::Entry {
                opcode::Fallocate::new(self, length).offset(offset).mode(mode).build()
            }

            fn sync(self, flags: FsyncFlags) -> squeue::Entry {
                opcode::Fsync::new(self).flags(flags).build()
            }
        }
    };
}

target!(Fd);
target!(Fixed);
