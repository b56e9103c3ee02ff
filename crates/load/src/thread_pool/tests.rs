//! Whole works on engines made for the test.

use super::*;
use crate::engine::{Begin, Completion, Null, Operation, Outcome, Session};
use crate::pacing::{Arrivals, Pacing, Rate, TerminalPause};
use crate::source::{Choice, Division, Effect, Follow, Order, Size, SourcePlan};
use crate::stopping::{Steady, Stop};
use crate::work::Finale;
use std::collections::VecDeque;
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::Pick;
use tidemark_measure::think::Think;

mod made_time;
mod shares;
mod terminals;

const MS: u64 = 1_000_000;

/// Counts seconds and ends the work when told.
#[derive(Default)]
struct Seen {
    seconds: Vec<u32>,
    ok: u64,
    /// What the user asks for as soon as an operation has succeeded.
    wish: StopRequest,
}

impl Watch for Seen {
    fn interval(&mut self, interval: &Interval) {
        self.seconds.push(interval.index);
        self.ok += interval.actions.iter().map(|tally| tally.ok).sum::<u64>();
    }

    fn stop_request(&mut self) -> StopRequest {
        if self.ok > 0 { self.wish } else { StopRequest::None }
    }
}

fn mix(bytes: u64) -> SourcePlan {
    let pick = Pick::Uniform { low: 1, high: 100 };
    let choice = |action, weight| Choice {
        action,
        weight,
        spaces: pick.clone(),
        items: pick.clone(),
        bytes: Size { pick: Pick::Constant(bytes), unit: 1 },
        division: Division::None,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    };
    SourcePlan::Mix { choices: vec![choice(0, 70.0), choice(1, 30.0)], pool: None, deck: false }
}

fn work(workers: u32, source: SourcePlan, stop: Stop) -> Work {
    let pacing = Pacing::BACK_TO_BACK;
    Work {
        workers,
        depth: 1,
        connections: None,
        pacing,
        stop,
        source,
        finale: None,
        copies: 1,
        actions: 2,
        seed: 7,
        stream: [0, 0],
    }
}

/// Answers after a fixed time; optionally freezes for 200 ms every second, fails, or never answers.
#[derive(Clone, Copy, Default)]
struct Slow {
    service_ns: u64,
    freezes: bool,
    fails: bool,
    silent: bool,
    /// What operations with action 1 take on top.
    sync_ns: u64,
    /// The thread itself does not run in the first so many nanoseconds of every 100 ms.
    stall_ns: u64,
}

struct SlowSession {
    plan: Slow,
    clock: Clock,
    flying: Vec<(u64, u32)>,
    abandoned: bool,
}

impl Sessions for Slow {
    fn open(&self, thread: ThreadContext) -> std::result::Result<Box<dyn Session>, OpenError> {
        let flying = Vec::new();
        Ok(Box::new(SlowSession { plan: *self, clock: thread.clock, flying, abandoned: false }))
    }
}

impl Session for SlowSession {
    fn begin(&mut self, slot: u32, operation: &Operation, sent: Tick) -> Begin {
        let mut done = sent + self.plan.service_ns + u64::from(operation.action) * self.plan.sync_ns;
        let phase = done % (1_000 * MS);
        if self.plan.freezes && phase < 200 * MS {
            done += 200 * MS - phase;
        }
        self.flying.push((if self.plan.silent { u64::MAX } else { done }, slot));
        Begin::Started
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        loop {
            let now = self.clock.now();
            let into = now % (100 * MS);
            if into < self.plan.stall_ns {
                self.clock.wait(now - into + self.plan.stall_ns);
                continue;
            }
            let fault = match self.abandoned {
                true => Some(Fault::Abandoned),
                false => self.plan.fails.then_some(Fault::ServerError),
            };
            let before = ended.len();
            let abandoned = self.abandoned;
            self.flying.retain(|(done, slot)| {
                let over = *done <= now || abandoned;
                if over {
                    let done = (*done).min(now);
                    ended.push(Completion {
                        slot: *slot,
                        done,
                        outcome: Outcome { fault, ..Outcome::default() },
                    });
                }
                !over
            });
            if ended.len() > before || now >= until {
                return;
            }
            let next = self.flying.iter().map(|(done, _)| *done).min();
            self.clock.wait(next.map_or(until, |next| next.min(until)));
        }
    }

    fn abandon(&mut self) {
        self.abandoned = true;
    }
}

#[test]
fn counts_are_exact_whatever_the_division() {
    for (workers, threads) in [(1, 1), (7, 2), (64, 3)] {
        let stop = Stop { operations: Some(10_001), ..Stop::default() };
        let mut seen = Seen::default();
        let result = run(&work(workers, mix(10), stop), &Null, threads, &mut seen).unwrap();
        let (reads, writes) = (&result.tallies[0], &result.tallies[1]);
        assert_eq!(reads.ok + writes.ok, 10_001);
        assert_eq!(reads.bytes + writes.bytes, 100_010);
        assert_eq!(reads.response.count() + writes.response.count(), 10_001);
        assert_eq!(result.workers.iter().map(|worker| worker.ok).sum::<u64>(), 10_001);
        assert_eq!(seen.ok, 10_001, "the seconds add up to the total");
        assert_eq!((result.undone, result.unsent), (0, 0));
    }
}

#[test]
fn the_same_seed_does_the_same_however_many_threads_share_it() {
    let stop = Stop { operations: Some(5_000), ..Stop::default() };
    let reads = |threads| {
        let result = run(&work(8, mix(1), stop), &Null, threads, &mut Seen::default()).unwrap();
        result.workers.iter().map(|worker| (worker.worker, worker.operation, worker.ok)).collect::<Vec<_>>()
    };
    assert_eq!(reads(1), reads(2));
}

#[test]
fn no_worker_starves_when_operations_end_at_once() {
    let stop = Stop { window_ns: Some(300 * MS), drain_ns: MS, ..Stop::default() };
    let result = run(&work(8, mix(1), stop), &Null, 1, &mut Seen::default()).unwrap();
    let least =
        (0..8).map(|worker| result.workers.iter().filter(|w| w.worker == worker).map(|w| w.ok).sum::<u64>());
    let (least, most) = (least.clone().min().unwrap(), least.max().unwrap());
    assert!(least > 0 && least * 2 > most, "{least} to {most}");
}

#[test]
fn a_volume_ends_with_the_operation_that_reaches_it() {
    let stop = Stop { bytes: Some(64_000_000), ..Stop::default() };
    let result = run(&work(7, mix(64_000), stop), &Null, 2, &mut Seen::default()).unwrap();
    assert_eq!(result.tallies.iter().map(|tally| tally.ok).sum::<u64>(), 1_000);
}

#[test]
fn a_target_that_only_fails_is_given_up() {
    let stop = Stop { operations: Some(1_000_000), give_up_ns: Some(1_000 * MS), ..Stop::default() };
    let slow = Slow { service_ns: MS, fails: true, ..Slow::default() };
    let result = run(&work(2, mix(1), stop), &slow, 1, &mut Seen::default()).unwrap();
    assert!(result.given_up.contains("no operation succeeded"), "{}", result.given_up);
    assert_eq!(result.tallies.iter().map(|tally| tally.ok).sum::<u64>(), 0);
    assert!(result.undone > 900_000);
    assert!(result.longest_gap.unwrap().length_ns() >= 1_000 * MS);
}

#[test]
fn the_user_may_end_it_and_what_was_measured_stays() {
    let stop = Stop { window_ns: Some(600_000 * MS), drain_ns: 1_000 * MS, ..Stop::default() };
    let slow = Slow { service_ns: MS, ..Slow::default() };
    let mut seen = Seen { wish: StopRequest::Finish, ..Seen::default() };
    let result = run(&work(2, mix(1), stop), &slow, 1, &mut seen).unwrap();
    assert!(result.interrupted);
    assert!(result.window_end_ns < 600_000 * MS);
    assert_eq!(result.tallies.iter().map(|tally| tally.ok).sum::<u64>(), seen.ok);
}

#[test]
fn a_session_that_cannot_be_opened_ends_the_work_with_its_reason() {
    struct Closed;
    impl Sessions for Closed {
        fn open(&self, thread: ThreadContext) -> std::result::Result<Box<dyn Session>, OpenError> {
            if thread.thread == 1 { Err(OpenError("no such host".into())) } else { Null.open(thread) }
        }
    }
    let stop = Stop { operations: Some(10), ..Stop::default() };
    let error = run(&work(4, mix(1), stop), &Closed, 2, &mut Seen::default()).unwrap_err();
    assert_eq!(error.to_string(), "no such host");
}

/// Keeps every operation that it is given, in order, and how many were in flight at once.
#[derive(Default)]
struct Log {
    begun: std::sync::Mutex<Vec<Operation>>,
    most: AtomicU64,
}

struct LogSession<'a> {
    log: &'a Log,
    clock: Clock,
    flying: VecDeque<u32>,
}

impl Sessions for &'static Log {
    fn open(&self, thread: ThreadContext) -> std::result::Result<Box<dyn Session>, OpenError> {
        Ok(Box::new(LogSession { log: self, clock: thread.clock, flying: VecDeque::new() }))
    }
}

impl Session for LogSession<'_> {
    fn begin(&mut self, slot: u32, operation: &Operation, _sent: Tick) -> Begin {
        self.log.begun.lock().unwrap().push(*operation);
        self.flying.push_back(slot);
        self.log.most.fetch_max(self.flying.len() as u64, Ordering::Relaxed);
        Begin::Started
    }

    fn reap(&mut self, until: Tick, ended: &mut Vec<Completion>) {
        // One at a time, so that the order of submissions is that of completions.
        if let Some(slot) = self.flying.pop_front() {
            ended.push(Completion { slot, done: self.clock.now(), outcome: Outcome::success(0) });
        } else if until > self.clock.now() {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    fn abandon(&mut self) {}
}

fn logged(work: &Work) -> (Result, Vec<Operation>, u64) {
    let log: &'static Log = Box::leak(Box::default());
    let result = run(work, &log, 1, &mut Seen::default()).unwrap();
    (result, log.begun.lock().unwrap().clone(), log.most.load(Ordering::Relaxed))
}

#[test]
fn depth_is_operations_in_flight_and_a_stream_stays_in_order() {
    let SourcePlan::Mix { mut choices, .. } = mix(4096) else { unreachable!() };
    choices.truncate(1);
    choices[0].spaces = Pick::Constant(1);
    choices[0].items = Pick::Uniform { low: 0, high: 9 };
    choices[0].order = Order::Consecutive { unit: 2048 };
    let stop = Stop { operations: Some(12), ..Stop::default() };
    let source = SourcePlan::Mix { choices, pool: None, deck: false };
    let (result, begun, most) = logged(&Work { depth: 4, ..work(1, source, stop) });
    assert_eq!(most, 4);
    assert_eq!(result.tallies[0].ok, 12);
    // Two items each, from the first to the last and again from the start.
    let items: Vec<_> = begun.iter().map(|operation| operation.item).collect();
    assert_eq!(items, [0, 2, 4, 6, 8, 0, 2, 4, 6, 8, 0, 2]);
}

#[test]
fn syncs_follow_writes_and_end_the_work() {
    let SourcePlan::Mix { mut choices, .. } = mix(1) else { unreachable!() };
    choices.truncate(1);
    choices[0].spaces = Pick::Uniform { low: 1, high: 2 };
    choices[0].division = Division::Spaces;
    choices[0].follow = Some(Follow { action: 1, every: 3 });
    let stop = Stop { operations: Some(12), ..Stop::default() };
    let source = SourcePlan::Mix { choices, pool: None, deck: false };
    let finale = Some(Finale { action: 1, spaces: (1, 2) });
    let (result, begun, _) = logged(&Work { finale, ..work(2, source, stop) });
    // 12 operations on two workers, and what follows them: 3 writes, a sync, 3 writes, a sync each; then one sync of each space.
    assert_eq!((result.tallies[0].ok, result.tallies[1].ok), (12, 6));
    let last: Vec<_> = begun[16..].iter().map(|operation| (operation.action, operation.space)).collect();
    assert_eq!(last, [(1, 1), (1, 2)]);
    for space in [1, 2] {
        let own: Vec<_> = begun[..16].iter().filter(|o| o.space == space).map(|o| o.action).collect();
        assert_eq!(own, [0, 0, 0, 1, 0, 0, 0, 1]);
    }
}

#[test]
fn the_window_opens_when_the_load_is_steady() {
    let steady = Some(Steady { round_ns: 1_000 * MS, most_rounds: 6 });
    let stop = Stop { steady, window_ns: Some(1_000 * MS), drain_ns: 1_000 * MS, ..Stop::default() };
    let slow = Slow { service_ns: 5 * MS, ..Slow::default() };
    let result = run(&work(2, mix(1), stop), &slow, 1, &mut Seen::default()).unwrap();
    let settling = result.settling.unwrap();
    assert!((5..=6).contains(&settling.rounds.len()), "{:?}", settling.rounds);
    assert!(result.window_start_ns >= 5_000 * MS);
    assert_eq!(result.window_end_ns - result.window_start_ns, 1_000 * MS);
    let measured: u64 = result.tallies.iter().map(|tally| tally.ok).sum();
    // At most 2 workers x 200 operations a second; the five seconds before are not among them.
    assert!((1..=420).contains(&measured), "{measured}");
}

/// Does everything at once, and adds up for how long it is told to wait.
#[derive(Default)]
struct AtOnce(std::sync::Arc<AtomicU64>);

impl Sessions for AtOnce {
    fn open(&self, thread: ThreadContext) -> std::result::Result<Box<dyn Session>, OpenError> {
        Ok(Box::new(AtOnceSession { clock: thread.clock, waits_ns: self.0.clone() }))
    }
}

struct AtOnceSession {
    clock: Clock,
    waits_ns: std::sync::Arc<AtomicU64>,
}

impl Session for AtOnceSession {
    fn begin(&mut self, _slot: u32, operation: &Operation, _sent: Tick) -> Begin {
        Begin::Done(self.clock.now(), Outcome::success(operation.bytes))
    }

    fn reap(&mut self, until: Tick, _ended: &mut Vec<Completion>) {
        self.waits_ns.fetch_add(until.saturating_sub(self.clock.now()), Ordering::Relaxed);
    }

    fn abandon(&mut self) {}
}

#[test]
fn a_load_that_is_over_waits_for_nothing() {
    let engine = AtOnce::default();
    let stop = Stop { operations: Some(3), drain_ns: 1_000 * MS, ..Stop::default() };
    let result = run(&work(1, mix(1), stop), &engine, 1, &mut Seen::default()).unwrap();
    assert_eq!(result.tallies.iter().map(|tally| tally.ok).sum::<u64>(), 3);
    assert_eq!(engine.0.load(Ordering::Relaxed), 0, "ns that the session was told to wait");
}
