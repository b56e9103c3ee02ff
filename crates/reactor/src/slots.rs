//! A session whose slots are futures: each slot runs one `async` loop, made once, that takes an operation,
//! performs it and returns how it ended. So an operation of many requests reads as straight code, and one of a
//! single request costs no allocation, no queue and no wake-up machinery.

use crate::failure::Examples;
use crate::reactor::Reactor;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use tidemark_load::engine::{Begin, Completion, Operation, Outcome, Session, Tick};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;

/// A slot's loop.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Makes a slot's loop, given its number within the session and where its operations come from.
pub type Spawn = Box<dyn Fn(u32, Mailbox) -> Task>;

/// Where a slot's loop gets its operations, and leaves what became of them.
#[derive(Clone)]
pub struct Mailbox(Rc<Letter>);

#[derive(Default)]
struct Letter {
    operation: Cell<Option<(Operation, Tick)>>,
    ended: Cell<Option<(Tick, Outcome)>>,
}

impl Mailbox {
    /// The next operation, and when it was sent; waits for it.
    #[inline]
    pub async fn next(&self) -> (Operation, Tick) {
        poll_fn(|_| self.0.operation.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Says how the operation ended, and when.
    #[inline]
    pub fn complete(&self, done: Tick, outcome: Outcome) {
        self.0.ended.set(Some((done, outcome)));
    }
}

/// A session of slots.
pub struct Slots {
    reactor: Rc<Reactor>,
    examples: Rc<Examples>,
    spawn: Spawn,
    slots: Vec<Slot>,
    /// Slots that have something to do: kept for its memory.
    woken: Vec<u32>,
    /// Given up by `abandon`, and not yet reported.
    abandoned: Vec<u32>,
}

struct Slot {
    /// Made with the slot's first operation, and again after one was abandoned.
    task: Option<Task>,
    letter: Rc<Letter>,
    busy: bool,
}

impl Slots {
    /// A session of `count` slots.
    pub fn new(reactor: &Rc<Reactor>, examples: &Rc<Examples>, count: u32, spawn: Spawn) -> Self {
        let slot = || Slot { task: None, letter: Rc::default(), busy: false };
        Self {
            reactor: Rc::clone(reactor),
            examples: Rc::clone(examples),
            spawn,
            slots: (0..count).map(|_| slot()).collect(),
            woken: Vec::with_capacity(count as usize),
            abandoned: Vec::new(),
        }
    }

    /// Continues a slot; returns what it has ended.
    #[inline]
    fn poll(&mut self, number: u32) -> Option<(Tick, Outcome)> {
        let slot = &mut self.slots[number as usize];
        let task = slot.task.as_mut()?;
        if self.reactor.poll(number, task.as_mut()).is_ready() {
            // A loop that ended is made anew with the next operation.
            slot.task = None;
        }
        let ended = slot.letter.ended.take()?;
        slot.busy = false;
        Some(ended)
    }
}

impl Session for Slots {
    #[inline]
    fn begin(&mut self, number: u32, operation: &Operation, sent: Tick) -> Begin {
        let slot = &mut self.slots[number as usize];
        if slot.task.is_none() {
            slot.task = Some((self.spawn)(number, Mailbox(Rc::clone(&slot.letter))));
        }
        slot.letter.operation.set(Some((*operation, sent)));
        slot.busy = true;
        match self.poll(number) {
            Some((done, outcome)) => Begin::Done(done, outcome),
            None => Begin::Started,
        }
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        let before = ended.len();
        if !self.abandoned.is_empty() {
            let done = self.reactor.now();
            let outcome = Outcome::failure(Fault::Abandoned);
            ended.extend(self.abandoned.drain(..).map(|slot| Completion { slot, done, outcome }));
        }
        loop {
            // With something to tell already, only look.
            let until = if ended.len() > before { 0 } else { until };
            let mut woken = std::mem::take(&mut self.woken);
            self.reactor.wait(until, &mut woken);
            for slot in woken.drain(..) {
                if let Some((done, outcome)) = self.poll(slot) {
                    ended.push(Completion { slot, done, outcome });
                }
            }
            self.woken = woken;
            if ended.len() > before || self.reactor.now() >= until {
                return;
            }
        }
    }

    fn abandon(&mut self) {
        for (number, slot) in self.slots.iter_mut().enumerate().filter(|(_, slot)| slot.busy) {
            // With the loop its connections go.
            slot.task = None;
            slot.busy = false;
            slot.letter.operation.set(None);
            slot.letter.ended.set(None);
            self.abandoned.push(number as u32);
        }
    }

    fn examples(&mut self) -> Vec<Example> {
        self.examples.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tidemark_load::engine::Clock;

    const MS: u64 = 1_000_000;

    /// Slots that sleep for as many milliseconds as an operation has bytes; none: they end at once.
    fn sleepers(count: u32) -> Slots {
        let reactor = Reactor::new(Clock::starting_at(Instant::now()), 1000 * MS).unwrap();
        let own = Rc::clone(&reactor);
        let spawn: Spawn = Box::new(move |_, mailbox| {
            let reactor = Rc::clone(&own);
            Box::pin(async move {
                loop {
                    let (operation, sent) = mailbox.next().await;
                    if operation.bytes > 0 {
                        reactor.sleep_until(sent + operation.bytes * MS).await;
                    }
                    mailbox.complete(reactor.now(), Outcome::success(operation.bytes));
                }
            })
        });
        Slots::new(&reactor, &Rc::default(), count, spawn)
    }

    fn sleep(bytes: u64) -> Operation {
        Operation { bytes, ..Operation::default() }
    }

    #[test]
    fn operations_end_in_their_own_time() {
        let mut slots = sleepers(3);
        assert!(matches!(slots.begin(0, &sleep(0), 0), Begin::Done(_, outcome) if outcome.fault.is_none()));
        let now = slots.reactor.now();
        for (slot, pause) in [(0, 12), (1, 4), (2, 8)] {
            assert_eq!(slots.begin(slot, &sleep(pause), now), Begin::Started);
        }
        let mut ended = Vec::new();
        while ended.len() < 3 {
            slots.reap(now + 1000 * MS, &mut ended);
        }
        assert_eq!(
            ended.iter().map(|end| (end.slot, end.outcome.bytes)).collect::<Vec<_>>(),
            [(1, 4), (2, 8), (0, 12)]
        );
        assert!(ended.iter().all(|end| end.done >= now + end.outcome.bytes * MS));
    }

    #[test]
    fn a_wait_with_nothing_to_come_lasts_until_its_end() {
        let mut slots = sleepers(1);
        let until = slots.reactor.now() + 5 * MS;
        let mut ended = Vec::new();
        slots.reap(until, &mut ended);
        assert!(slots.reactor.now() >= until && ended.is_empty());
    }

    #[test]
    fn what_is_abandoned_ends_at_the_next_reap_and_the_lane_lives_on() {
        let mut slots = sleepers(2);
        let now = slots.reactor.now();
        slots.begin(1, &sleep(3_600_000), now);
        slots.abandon();
        let mut ended = Vec::new();
        slots.reap(now + 1000 * MS, &mut ended);
        assert_eq!(ended.len(), 1);
        assert_eq!((ended[0].slot, ended[0].outcome.fault), (1, Some(Fault::Abandoned)));
        assert!(matches!(slots.begin(1, &sleep(0), now), Begin::Done(..)));
    }
}
