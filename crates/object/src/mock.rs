//! COSBench's storage kinds that store nothing: `mock` waits and succeeds, or fails by a probability;
//! `none` succeeds at once.

use crate::job::{Action, Mock, Verb};
use std::collections::VecDeque;
use std::time::Duration;
use tidemark_load::engine::{
    Begin, Clock, Completion, OpenError, Operation, Outcome, Session, Sessions, ThreadContext, Tick,
};
use tidemark_measure::fault::Fault;
use tidemark_measure::record::Example;
use tidemark_measure::verification::{Checked, Unchecked};

/// How much later than requested a sleeping thread may wake (the kernel's default slack is 50 us): the rest
/// of a wait is spent looking at the clock.
const OVERSLEEP_NS: u64 = 80_000;

/// The engine of both kinds: every operation takes the same time.
pub(crate) struct MockEngine {
    mock: Mock,
    /// What the operations of each action come to.
    results: Vec<Success>,
}

/// A success of an action.
#[derive(Clone, Copy)]
struct Success {
    bytes: Moves,
    checked: Checked,
}

/// How many bytes an operation moves.
#[derive(Clone, Copy)]
enum Moves {
    /// As many as the operation has.
    Asked,
    /// Always as many.
    Fixed(u64),
}

impl MockEngine {
    /// The kind `mock`.
    pub(crate) fn new(mock: Mock, actions: &[Action]) -> Self {
        let moves = |action: &Action| match action.verb {
            Verb::Put { .. } | Verb::PutMultipart { .. } | Verb::PutFile { .. } | Verb::WriteLocal { .. } => {
                Moves::Asked
            }
            Verb::Get => Moves::Fixed(mock.size),
            Verb::GetRange { length, .. } => Moves::Fixed(length.min(mock.size)),
            _ => Moves::Fixed(0),
        };
        let success = |action: &Action| {
            let reads = matches!(action.verb, Verb::Get | Verb::GetRange { .. });
            let checked = match reads && action.content.verify {
                true => Checked::Not(Unchecked::NoContent),
                false => Checked::NotAsked,
            };
            Success { bytes: moves(action), checked }
        };
        Self { mock, results: actions.iter().map(success).collect() }
    }

    /// The kind `none`: no delay, no failures, and reads bring nothing.
    pub(crate) fn nothing(actions: &[Action]) -> Self {
        Self::new(Mock { size: 0, delay_ns: 0, errors: 0.0 }, actions)
    }
}

impl Sessions for MockEngine {
    fn open(&self, thread: ThreadContext) -> Result<Box<dyn Session>, OpenError> {
        Ok(Box::new(MockSession {
            clock: thread.clock,
            mock: self.mock,
            results: self.results.clone(),
            in_flight: VecDeque::with_capacity(thread.slots as usize),
            failed: false,
            told: false,
        }))
    }
}

struct MockSession {
    clock: Clock,
    mock: Mock,
    results: Vec<Success>,
    /// Slots, when they are due, and how they will end. All take the same time, so they end in the order
    /// in which they began.
    in_flight: VecDeque<(Tick, u32, Outcome)>,
    /// An operation has failed.
    failed: bool,
    /// The example of it has been given.
    told: bool,
}

impl MockSession {
    fn outcome(&mut self, operation: &Operation) -> Outcome {
        // 53 random bits as a number from 0 to 1.
        let chance = (operation.random >> 11) as f64 / (1u64 << 53) as f64;
        if chance < self.mock.errors {
            self.failed = true;
            return Outcome::failure(Fault::ServerError);
        }
        let Some(Success { bytes, checked }) = self.results.get(usize::from(operation.action)).copied()
        else {
            return Outcome::success(0);
        };
        let bytes = match bytes {
            Moves::Fixed(bytes) => bytes,
            Moves::Asked => operation.bytes,
        };
        Outcome { checked, ..Outcome::success(bytes) }
    }
}

impl Session for MockSession {
    fn begin(&mut self, slot: u32, operation: &Operation, sent: Tick) -> Begin {
        let outcome = self.outcome(operation);
        if self.mock.delay_ns == 0 {
            return Begin::Done(self.clock.now(), outcome);
        }
        self.in_flight.push_back((sent.saturating_add(self.mock.delay_ns), slot, outcome));
        Begin::Started
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        let next = self.in_flight.front().map_or(until, |(due, ..)| until.min(*due));
        let done = wait_until(self.clock, next);
        while let Some((_, slot, outcome)) = self.in_flight.pop_front_if(|(due, ..)| *due <= done) {
            ended.push(Completion { slot, done, outcome });
        }
    }

    fn abandon(&mut self) {
        for (due, _, outcome) in &mut self.in_flight {
            (*due, *outcome) = (0, Outcome::failure(Fault::Abandoned));
        }
    }

    fn examples(&mut self) -> Vec<Example> {
        let fresh = self.failed && !std::mem::replace(&mut self.told, self.failed);
        let text = format!("mock: failed by chance, with probability {}", self.mock.errors);
        fresh.then_some(Example { fault: Fault::ServerError, text }).into_iter().collect()
    }
}

/// Waits until a tick has come, and returns the present one.
fn wait_until(clock: Clock, until: Tick) -> Tick {
    loop {
        let now = clock.now();
        match until.saturating_sub(now) {
            0 => return now,
            left if left > OVERSLEEP_NS => std::thread::sleep(Duration::from_nanos(left - OVERSLEEP_NS)),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Content, Naming};
    use std::time::Instant;

    fn session(mock: Mock) -> (Box<dyn Session>, Clock) {
        let clock = Clock::starting_at(Instant::now());
        let verbs = [Verb::Get, Verb::Put { chunked: false, if_absent: false }, Verb::Delete];
        let action = |verb| Action { verb, naming: Naming::default(), content: Content::default() };
        let engine = MockEngine::new(mock, &verbs.map(action));
        let thread = ThreadContext { clock, thread: 0, first_slot: 0, slots: 4, largest: 4096, seed: 1 };
        (engine.open(thread).unwrap(), clock)
    }

    fn operation(action: u16, random: u64) -> Operation {
        Operation { action, bytes: 77, random, ..Operation::default() }
    }

    #[test]
    fn operations_take_the_delay_and_move_their_bytes() {
        let (mut session, clock) = session(Mock { size: 1000, delay_ns: 2_000_000, errors: 0.0 });
        let sent = clock.now();
        for action in 0..3 {
            assert_eq!(session.begin(u32::from(action), &operation(action, 0), sent), Begin::Started);
        }
        let mut ended = Vec::new();
        session.reap(sent + 1_000_000, &mut ended);
        assert!(ended.is_empty() || clock.now() >= sent + 2_000_000);
        while ended.len() < 3 {
            session.reap(Tick::MAX, &mut ended);
        }
        assert!(ended.iter().all(|completion| completion.done >= sent + 2_000_000));
        assert_eq!(
            ended.iter().map(|completion| completion.outcome.bytes).collect::<Vec<_>>(),
            [1000, 77, 0]
        );
    }

    #[test]
    fn failures_follow_the_random_bits() {
        let (mut session, _) = session(Mock { size: 0, delay_ns: 0, errors: 0.5 });
        let Begin::Done(_, low) = session.begin(0, &operation(0, 0), 0) else { panic!("no delay") };
        let Begin::Done(_, high) = session.begin(0, &operation(0, u64::MAX), 0) else { panic!("no delay") };
        assert_eq!((low.fault, high.fault), (Some(Fault::ServerError), None));
        assert_eq!(session.examples().len(), 1);
        assert_eq!(session.examples().len(), 0);
    }

    #[test]
    fn abandoned_operations_end_at_the_next_reap() {
        let (mut session, clock) = session(Mock { size: 0, delay_ns: 3_600_000_000_000, errors: 0.0 });
        session.begin(2, &operation(0, 0), clock.now());
        session.abandon();
        let mut ended = Vec::new();
        session.reap(0, &mut ended);
        assert_eq!((ended[0].slot, ended[0].outcome.fault), (2, Some(Fault::Abandoned)));
    }
}
