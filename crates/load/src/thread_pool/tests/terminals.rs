//! Terminals that share connections: as many as asked for, whatever the threads, and one operation of each at a time.

use super::*;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// What threads and terminals do, as the storage sees it.
#[derive(Default)]
struct Counter {
    seen: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    /// Numbers of the slots that were opened.
    slots: Vec<u32>,
    /// Terminals that have an operation in flight.
    busy: BTreeSet<u64>,
    /// The most that had one at once.
    most: usize,
    /// Operations of terminals that had one in flight.
    doubled: u64,
}

struct CounterSession<'a> {
    counter: &'a Counter,
    clock: Clock,
    flying: VecDeque<(u32, u64, Tick)>,
}

impl Sessions for &'static Counter {
    fn open(&self, thread: ThreadContext) -> std::result::Result<Box<dyn Session>, OpenError> {
        let numbers = thread.first_slot..thread.first_slot + thread.slots;
        self.seen.lock().unwrap().slots.extend(numbers);
        Ok(Box::new(CounterSession { counter: self, clock: thread.clock, flying: VecDeque::new() }))
    }
}

impl Session for CounterSession<'_> {
    fn begin(&mut self, slot: u32, operation: &Operation, sent: Tick) -> Begin {
        let mut seen = self.counter.seen.lock().unwrap();
        seen.doubled += u64::from(!seen.busy.insert(operation.space));
        seen.most = seen.most.max(seen.busy.len());
        self.flying.push_back((slot, operation.space, sent + MS / 10));
        Begin::Started
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        let now = self.clock.now();
        match self.flying.front() {
            Some((.., done)) if *done <= now => {
                let (slot, terminal, done) = self.flying.pop_front().unwrap();
                self.counter.seen.lock().unwrap().busy.remove(&terminal);
                ended.push(Completion { slot, done, outcome: Outcome::success(0) });
            }
            _ if until > now => std::thread::sleep(Duration::from_micros(20)),
            _ => {}
        }
    }

    fn abandon(&mut self) {}
}

#[test]
fn connections_are_as_many_as_asked_for_and_a_terminal_has_one_at_most() {
    let SourcePlan::Mix { mut choices, .. } = mix(1) else { unreachable!() };
    for choice in &mut choices {
        (choice.spaces, choice.division) = (Pick::Sequence { low: 1, high: 10 }, Division::Spaces);
    }
    let source = SourcePlan::Mix { choices, pool: None, deck: true };
    let pause = TerminalPause { keying_ns: 50_000, think_mean_ns: 100_000 };
    let pacing = Pacing::Terminals { mean_ns: 150_000, pauses: vec![pause; 2] };
    let stop = Stop { operations: Some(1_000), ..Stop::default() };
    for (connections, threads) in [(1, 4), (3, 1), (3, 2), (3, 3), (3, 8), (7, 4), (10, 3)] {
        let terminals =
            Work { pacing: pacing.clone(), connections: Some(connections), ..work(10, source.clone(), stop) };
        let counter: &'static Counter = Box::leak(Box::default());
        let result = run(&terminals, &counter, threads, &mut Seen::default()).unwrap();
        let mut seen = counter.seen.lock().unwrap();
        seen.slots.sort_unstable();
        assert_eq!(seen.slots, (0..connections).collect::<Vec<_>>(), "on {threads} threads");
        assert_eq!(seen.doubled, 0, "a terminal that has an operation in flight begins no other");
        assert!(seen.most <= connections as usize, "{} of {connections}", seen.most);
        let done = result.tallies.iter().map(|tally| tally.ok).collect::<Vec<_>>();
        assert_eq!(done, [700, 300], "each terminal has had its deck");
    }
}
