//! One thread's session: the hot path. It allocates nothing, locks nothing, and reads one clock per reap.

use crate::content::check::{Check, Kind};
use crate::content::journal;
use crate::content::sector::SECTOR;
use crate::content::table::{Cell, Change, Moment};
use crate::examined::{self, NotRemoved};
use crate::examples::Examples;
use crate::failure;
use crate::job::Action;
use crate::ring::{Request, Ring};
use crate::sessions::Shared;
use crate::volume::Opened;
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;
use tidemark_load::engine::{Begin, Clock, Completion, Operation, Outcome, Session, ThreadContext, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;
use tidemark_measure::verification::{Checked, Unchecked};

/// How long to wait when the kernel will not take submissions for a reason that does not pass by itself.
const STUCK: Duration = Duration::from_millis(1);

pub(crate) struct BlockSession {
    shared: Arc<Shared>,
    ring: Ring,
    clock: Clock,
    slots: Vec<Slot>,
    /// For each slot, the states of the cells that its read touches; none when nothing is verified.
    before: Vec<Cell>,
    /// How many of them a slot has.
    cells: usize,
    examples: Examples,
    /// The last tick seen: what is late by microseconds is good enough for timeouts.
    now: Tick,
    /// Operations begun since the last batch was submitted. A batch is submitted as soon as it is full, as fio does.
    /// Without a batch size all that is ready goes together with waiting, in one system call: the kernel merges
    /// neighbours and rings the device's bell once (measured with sequential 4 KiB at depth 128: 1.6 to 2 times the
    /// operations of one by one; with random ones no difference).
    queued: u32,
    /// Operations in flight have been given up: their buffers are the kernel's.
    abandoned: bool,
    /// Those of them that have not been submitted yet.
    given_up: Vec<u32>,
}

/// What a slot does.
#[derive(Clone, Copy)]
struct Slot {
    action: Action,
    volume: u32,
    offset: u64,
    length: u64,
    /// Of a write.
    generation: u64,
    /// Of a read that is verified: when it began.
    moment: Moment,
}

const IDLE: Slot =
    Slot { action: Action::Read, volume: 0, offset: 0, length: 0, generation: 0, moment: Moment::UNKNOWN };

impl Slot {
    fn range(&self) -> std::ops::Range<u64> {
        self.offset..self.offset + self.length
    }
}

impl BlockSession {
    pub(crate) fn new(shared: Arc<Shared>, ring: Ring, thread: ThreadContext) -> Self {
        let smallest = shared.volumes.iter().filter_map(|volume| volume.table.as_ref()?.cell().into()).min();
        // One more where an operation may begin in the middle of a cell.
        let cells = match smallest.filter(|_| shared.job.content.verify) {
            Some(cell) => ring.buffer_bytes() / cell as usize + 1,
            None => 0,
        };
        let slots = thread.slots as usize;
        Self {
            shared,
            ring,
            clock: thread.clock,
            slots: vec![IDLE; slots],
            before: vec![Cell::default(); slots * cells],
            cells,
            examples: Examples::default(),
            now: 0,
            queued: 0,
            abandoned: false,
            given_up: Vec::with_capacity(slots),
        }
    }

    /// Queues an operation, or returns how it ended at once.
    #[inline]
    fn start(&mut self, slot: u32, operation: &Operation) -> Result<(), Outcome> {
        let shared = &*self.shared;
        let action = shared.job.actions.get(usize::from(operation.action)).copied();
        let index = operation.space.wrapping_sub(1) as usize;
        let (Some(action), Some(volume)) = (action, shared.volumes.get(index)) else {
            self.examples.keep(Fault::Local, || {
                format!("there is no action {} or no volume {}", operation.action, operation.space)
            });
            return Err(Outcome::failure(Fault::Local));
        };
        if self.abandoned {
            return Err(Outcome::failure(Fault::Abandoned));
        }
        let offset = operation.item.saturating_mul(shared.job.unit);
        let length = operation.bytes.min(volume.size.saturating_sub(offset));
        let mut plan = Slot { action, volume: index as u32, offset, length, ..IDLE };
        let request = match action {
            Action::Remove => return Err(remove(volume, shared, &mut self.examples)),
            Action::Fsync => Request::Sync { data: false },
            Action::Fdatasync => Request::Sync { data: true },
            _ if length == 0 || length as usize > self.ring.buffer_bytes() && action != Action::Trim => {
                self.examples.keep(Fault::ShortTransfer, || {
                    failure::short(action, volume, offset, operation.bytes, 0)
                });
                return Err(Outcome::failure(Fault::ShortTransfer));
            }
            Action::Trim => {
                if let Some(table) = &volume.table {
                    table.begin(&plan.range(), Change::Trim);
                }
                Request::Punch { offset, length }
            }
            Action::Read => {
                if let (Some(table), true) = (&volume.table, self.cells > 0) {
                    plan.moment = table.moment();
                    let own = &mut self.before[slot as usize * self.cells..][..self.cells];
                    for (place, cell) in own.iter_mut().zip(table.cells(&plan.range())) {
                        *place = table.state(cell);
                    }
                }
                Request::Read { offset, length: length as u32 }
            }
            Action::Write => {
                // In this order: a write that begins after another was acknowledged must be of a later generation.
                if let Some(table) = &volume.table {
                    table.begin(&plan.range(), Change::Write);
                }
                plan.generation = shared.data.now();
                if let Some(buffer) = self.ring.buffer(slot) {
                    volume.label.fill(&mut buffer[..length as usize], offset, plan.generation);
                }
                Request::Write { offset, length: length as u32 }
            }
        };
        self.slots[slot as usize] = plan;
        self.send(slot, index, request)
    }

    /// Queues a request, and submits the batch that it completes.
    #[inline]
    fn send(&mut self, slot: u32, file: usize, request: Request) -> Result<(), Outcome> {
        if !self.ring.queue(slot, file, request) {
            let text = || format!("slot {slot} of the ring cannot take an operation");
            self.examples.keep(Fault::Local, text);
            return Err(Outcome::failure(Fault::Local));
        }
        self.queued += 1;
        if self.shared.job.batch.is_some_and(|batch| self.queued >= batch) {
            self.queued = 0;
            // What the kernel does not take now, it is offered again by the next reap.
            let _ = self.ring.submit(0, None);
        }
        Ok(())
    }

    /// The result of a slot's operation.
    #[inline]
    fn finish(&mut self, slot: u32, result: i32) -> Outcome {
        let Self { shared, ring, examples, before, cells, .. } = self;
        let plan = self.slots[slot as usize];
        let Slot { action, offset, length, generation, .. } = plan;
        let volume = &shared.volumes[plan.volume as usize];
        if result < 0 {
            let error = Errno::from_raw_os_error(-result);
            let fault = failure::class(error);
            examples.keep(fault, || failure::refused(action, volume, offset, length, error));
            return Outcome::failure(fault);
        }
        let moved = result as u64;
        match action {
            Action::Fsync | Action::Fdatasync | Action::Remove => return Outcome::success(0),
            Action::Read | Action::Write if moved != length => {
                let fault = Fault::ShortTransfer;
                examples.keep(fault, || failure::short(action, volume, offset, length, moved));
                return Outcome::failure(fault);
            }
            Action::Read if shared.job.content.verify => {
                let before = &before[slot as usize * *cells..][..*cells];
                return match verify(ring, slot, &plan, before, shared) {
                    Ok(checked) => Outcome { checked, ..Outcome::success(length) },
                    Err((fault, text)) => {
                        examples.keep(fault, || text);
                        Outcome::failure(fault)
                    }
                };
            }
            Action::Read => {}
            Action::Write | Action::Trim => {
                if let Some(table) = &volume.table {
                    let change = if action == Action::Write { Change::Write } else { Change::Trim };
                    table.end(&plan.range(), change, generation);
                }
            }
        }
        Outcome::success(length)
    }

    /// Tells the slots that were given up, or waits.
    #[cold]
    fn reap_abandoned(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        let done = self.clock.now();
        if self.given_up.is_empty() {
            sleep(until.saturating_sub(done));
        }
        let outcome = Outcome::failure(Fault::Abandoned);
        ended.extend(self.given_up.drain(..).map(|slot| Completion { slot, done, outcome }));
    }

    #[cold]
    fn stuck(&mut self, error: &std::io::Error) {
        self.examples.keep(Fault::Local, || format!("io_uring rejects operations: {error}"));
        std::thread::sleep(STUCK);
    }
}

impl Session for BlockSession {
    #[inline]
    fn begin(&mut self, slot: u32, operation: &Operation, sent: Tick) -> Begin {
        self.now = sent;
        match self.start(slot, operation) {
            Ok(()) => Begin::Started,
            Err(outcome) => Begin::Done(self.clock.now(), outcome),
        }
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        if self.abandoned {
            return self.reap_abandoned(until, ended);
        }
        let in_flight = self.ring.in_flight();
        if in_flight == 0 {
            sleep(until.saturating_sub(self.clock.now()));
            self.now = self.clock.now();
            return;
        }
        let want = self.shared.job.batch.unwrap_or(1).clamp(1, in_flight);
        self.queued = 0;
        let mut taken = 0;
        loop {
            let timeout = until.checked_sub(self.now).filter(|time| *time > 0).map(Duration::from_nanos);
            if let Err(error) = self.ring.submit(want, timeout) {
                self.stuck(&error);
            }
            let done = self.clock.now();
            self.now = done;
            while let Some((slot, result)) = self.ring.next_ended() {
                let outcome = self.finish(slot, result);
                ended.push(Completion { slot, done, outcome });
                taken += 1;
            }
            // A ring that is polled does not wait by itself.
            if !self.shared.job.polled || taken >= want || done >= until {
                return;
            }
        }
    }

    fn abandon(&mut self) {
        if !self.abandoned {
            self.abandoned = true;
            let slots = 0..self.slots.len() as u32;
            self.given_up.extend(slots.filter(|slot| self.ring.is_busy(*slot)));
        }
    }

    fn examples(&mut self) -> Vec<Example> {
        self.examples.take()
    }
}

/// Checks what a slot has read; what is older than it should be is read again, plainly, to see whether it has come.
///
/// # Errors
/// What is wrong, in words.
fn verify(
    ring: &mut Ring,
    slot: u32,
    plan: &Slot,
    before: &[Cell],
    shared: &Shared,
) -> Result<Checked, (Fault, String)> {
    let volume = &shared.volumes[plan.volume as usize];
    let Some(bytes) = ring.buffer(slot).and_then(|buffer| buffer.get(..plan.length as usize)) else {
        return Ok(Checked::Not(Unchecked::NoContent));
    };
    let table = volume.table.as_deref().filter(|_| !before.is_empty());
    let touched = table.map_or(0, |table| table.cells(&plan.range()).len()).min(before.len());
    let before = &before[..touched];
    let Slot { offset, moment, .. } = *plan;
    let Opened { label, is_filled, .. } = *volume;
    let wrong = match (Check { label, bytes, offset, is_filled, table, moment, before }).run() {
        Ok(checked) => return Ok(checked),
        Err(wrong) => wrong,
    };
    let come = match wrong.kind {
        Kind::Older { expected, .. } => look_again(ring, plan, volume, wrong.at, expected),
        _ => None,
    };
    Err(failure::content(wrong, volume, &shared.volumes, come, &shared.data))
}

/// Whether the write of generation `expected`, or a later one, is there when the sector at `at` is read again.
#[cold]
fn look_again(ring: &mut Ring, plan: &Slot, volume: &Opened, at: u64, expected: u64) -> Option<bool> {
    let bytes = ring.read_again(plan.volume as usize, plan.offset, plan.length as usize).ok()?;
    let sector = bytes.as_chunks::<SECTOR>().0.get(((at - plan.offset) / SECTOR as u64) as usize)?;
    let check = Check::without_table(volume.label, bytes, plan.offset);
    Some(check.has_come(sector, at, expected))
}

/// Waits a number of nanoseconds. The load core has set the thread's timer slack to 1 ns.
fn sleep(nanoseconds: u64) {
    if nanoseconds > 0 {
        std::thread::sleep(Duration::from_nanos(nanoseconds));
    }
}

/// Removes a file, and its journal. One that does not exist is a success.
fn remove(volume: &Opened, shared: &Shared, examples: &mut Examples) -> Outcome {
    let examined = shared.data.examined(&volume.path);
    let removed = examined::remove(&volume.path, examined.as_ref(), shared.data.access());
    let (fault, text) = match removed {
        Ok(()) => {
            if let Some(directory) = &shared.job.journal {
                // Left behind, it would speak of a file that is no more: what is written to a new one is later than all of it.
                let _ = std::fs::remove_file(journal::path(directory, volume.label.volume));
            }
            return Outcome::success(0);
        }
        Err(NotRemoved::Refused(errno)) => {
            (failure::class(errno), failure::refused(Action::Remove, volume, 0, 0, errno))
        }
        Err(NotRemoved::Replaced) => (
            Fault::Local,
            format!(
                "{} was exchanged just now, so it was not removed: it is not the file that was examined",
                volume.path.display()
            ),
        ),
    };
    examples.keep(fault, || text);
    Outcome::failure(fault)
}
