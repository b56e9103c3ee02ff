//! Works cut into shares: what several processes do together is what one does alone.

use super::*;
use crate::source::PoolPlan;
use crate::work::divide;
use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex, OnceLock};
use tidemark_measure::wire;

/// How long before its opening a window is announced: long enough for every thread to hear of it.
const AHEAD: Duration = Duration::from_secs(1);

/// What a controller is to its drivers: all sessions open, one start, one merge, one instruction for all.
struct Commander {
    all_open: Barrier,
    start: OnceLock<Instant>,
    desk: Mutex<Desk>,
}

struct Desk {
    merge: Merge,
    seen: Seen,
    instruction: Instruction,
    /// What came in, driver by driver.
    came: BTreeMap<u32, Vec<u32>>,
}

struct Member<'a> {
    number: u32,
    commander: &'a Commander,
}

impl Coordinator for Member<'_> {
    fn start(&mut self) -> Option<Instant> {
        self.commander.all_open.wait();
        Some(*self.commander.start.get_or_init(|| Instant::now() + Duration::from_millis(30)))
    }

    fn interval(&mut self, interval: &Interval) {
        let mut desk = self.commander.desk.lock().unwrap();
        desk.came.entry(self.number).or_default().push(interval.index);
        desk.merge.take_encoded(self.number, &wire::encode(interval)).unwrap();
    }

    fn instruction(&mut self) -> Instruction {
        let start = *self.commander.start.get().unwrap();
        let mut desk = self.commander.desk.lock().unwrap();
        let Desk { merge, seen, instruction, .. } = &mut *desk;
        merge.emit(seen);
        while let Some(decision) = merge.decision() {
            let at = Instant::now() + AHEAD;
            match decision {
                Decision::OpenWindow => {
                    instruction.window = Some(at);
                    merge.window_opened((at - start).as_nanos() as u64);
                }
                Decision::EndWindow | Decision::GiveUp => {
                    instruction.stop_request = StopRequest::Finish;
                    merge.ended_early(start.elapsed().as_nanos() as u64);
                }
            }
        }
        *instruction
    }
}

/// Runs a work as so many shares, each with threads of its own.
fn run_shared(work: &Work, drivers: u32, engine: &dyn Sessions) -> (Result, Vec<Ending>, Seen) {
    let shares = divide(work.workers, drivers, 1);
    let commander = Commander {
        all_open: Barrier::new(drivers as usize),
        start: OnceLock::new(),
        desk: Mutex::new(Desk {
            merge: Merge::new(work, drivers),
            seen: Seen::default(),
            instruction: Instruction::default(),
            came: BTreeMap::new(),
        }),
    };
    let endings: Vec<Ending> = std::thread::scope(|scope| {
        let drive = |(number, share): (u32, Share)| {
            let mut member = Member { number, commander: &commander };
            scope.spawn(move || {
                let ending = run_share(work, share, engine, 2, &mut member).unwrap();
                member.commander.desk.lock().unwrap().merge.gone(number);
                ending
            })
        };
        let drivers: Vec<_> = (0..).zip(shares).map(drive).collect();
        drivers.into_iter().map(|driver| driver.join().unwrap()).collect()
    });
    let mut desk = commander.desk.into_inner().unwrap();
    for indices in desk.came.values() {
        let next_to_each_other = indices.windows(2).all(|pair| pair[1] == pair[0] + 1);
        assert!(next_to_each_other, "a driver's seconds are in order, and none is missing: {indices:?}");
    }
    desk.merge.flush(&mut desk.seen);
    (desk.merge.result(endings.clone()), endings, desk.seen)
}

/// Every operation that was begun, in an order of its own.
fn sorted(operations: &[Operation]) -> Vec<(u16, u64, u64, u64, u64)> {
    let key = |o: &Operation| (o.action, o.space, o.item, o.bytes, o.random);
    let mut all: Vec<_> = operations.iter().map(key).collect();
    all.sort_unstable();
    all
}

fn sums(result: &Result) -> Vec<(u64, u64, u64)> {
    result.tallies.iter().map(|tally| (tally.ok, tally.bytes, tally.response.count())).collect()
}

fn counts(result: &Result) -> Vec<(u32, u16, u64, u64)> {
    result.workers.iter().map(|count| (count.worker, count.operation, count.ok, count.bytes)).collect()
}

fn shares_do_what_one_does(work: &Work) {
    let (whole, begun, _) = logged(work);
    let expected = sorted(&begun);
    assert!(expected.len() > 50, "{}", expected.len());
    for drivers in [1, 2, 3, 7] {
        let log: &'static Log = Box::leak(Box::default());
        let (result, endings, seen) = run_shared(work, drivers, &log);
        assert_eq!(sorted(&log.begun.lock().unwrap()), expected, "{drivers} drivers");
        assert_eq!(sums(&result), sums(&whole), "{drivers} drivers");
        assert_eq!(counts(&result), counts(&whole), "{drivers} drivers");
        assert_eq!(seen.ok, whole.tallies.iter().map(|tally| tally.ok).sum::<u64>());
        assert_eq!((result.unsent, result.undone, result.interrupted), (0, 0, false));
        assert_eq!(result.threads, endings.iter().map(|ending| ending.threads).sum::<u32>());
        assert!(endings.iter().all(|ending| ending.first_sent_ns.is_some() == (ending.threads > 0)));
    }
}

fn of_operations(count: u64) -> Stop {
    Stop { operations: Some(count), ..Stop::default() }
}

#[test]
fn pauses_change_no_operation() {
    let without = work(12, mix(10), of_operations(1_003));
    let think = Think::Exponential { mean_ns: 20_000 };
    let with = Work { pacing: Pacing::Closed { think }, ..without.clone() };
    shares_do_what_one_does(&with);
    assert_eq!(sorted(&logged(&with).1), sorted(&logged(&without).1));
}

#[test]
fn shares_of_terminals_do_what_one_does() {
    let SourcePlan::Mix { choices, .. } = mix(10) else { unreachable!() };
    let pause = TerminalPause { keying_ns: 10_000, think_mean_ns: 20_000 };
    let pacing = Pacing::Terminals { mean_ns: 30_000, pauses: vec![pause; 2] };
    let source = SourcePlan::Mix { choices, pool: None, deck: true };
    let terminals = Work { pacing, connections: Some(5), ..work(12, source, of_operations(1_200)) };
    shares_do_what_one_does(&terminals);
    // Each terminal has drawn a whole deck of a hundred cards.
    let (result, ..) = logged(&terminals);
    assert_eq!(result.tallies.iter().map(|tally| tally.ok).collect::<Vec<_>>(), [12 * 70, 12 * 30]);
}

#[test]
fn shares_of_a_closed_loop_do_what_one_does() {
    shares_do_what_one_does(&work(12, mix(10), of_operations(1_003)));
    // Fewer workers than drivers: some have nothing to do.
    shares_do_what_one_does(&Work { depth: 3, ..work(2, mix(10), of_operations(77)) });
}

#[test]
fn shares_of_a_scan_do_what_one_does() {
    let bytes = Size { pick: Pick::Uniform { low: 1, high: 9 }, unit: 1000 };
    let source = SourcePlan::Scan { action: 1, spaces: Some((1, 5)), items: Some((3, 101)), bytes };
    shares_do_what_one_does(&work(11, source, Stop::default()));
}

#[test]
fn shares_of_a_pool_and_of_sequences_do_what_one_does() {
    let SourcePlan::Mix { mut choices, .. } = mix(1) else { unreachable!() };
    (choices[0].effect, choices[1].effect) = (Effect::Makes, Effect::Removes);
    let pool = Some(PoolPlan { spaces: (1, 3), items: (1, 200), existing: Some((1, 50)) });
    shares_do_what_one_does(&work(9, SourcePlan::Mix { choices, pool, deck: false }, of_operations(900)));

    let SourcePlan::Mix { mut choices, .. } = mix(1) else { unreachable!() };
    choices[0].items = Pick::Sequence { low: 1, high: 1000 };
    choices[1].division = Division::Items;
    choices[1].follow = Some(Follow { action: 0, every: 3 });
    let finale = Some(Finale { action: 1, spaces: (1, 40) });
    let source = SourcePlan::Mix { choices, pool: None, deck: false };
    shares_do_what_one_does(&Work { finale, ..work(8, source, of_operations(500)) });
}

#[test]
fn shares_of_an_open_loop_do_what_one_does() {
    let window = Stop { window_ns: Some(300 * MS), drain_ns: 20_000 * MS, ..Stop::default() };
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let pacing = Pacing::Open { rate: Rate::constant(1_000.0), arrivals };
        for stop in [of_operations(200), window] {
            shares_do_what_one_does(&Work { pacing: pacing.clone(), ..work(10, mix(5), stop) });
        }
    }
}

#[test]
fn a_volume_is_divided_and_reached() {
    let stop = Stop { bytes: Some(64_000_000), ..Stop::default() };
    for drivers in [1, 3, 7] {
        let (result, ..) = run_shared(&work(7, mix(64_000), stop), drivers, &Null);
        let moved: u64 = result.tallies.iter().map(|tally| tally.bytes).sum();
        // Each share ends with the operation that reaches its part.
        let most = 64_000_000 + 64_000 * u64::from(drivers - 1);
        assert!((64_000_000..=most).contains(&moved), "{drivers} drivers: {moved}");
    }
}

#[test]
fn all_shares_open_the_window_when_they_are_told() {
    let steady = Some(Steady { round_ns: 1_000 * MS, most_rounds: 2 });
    let stop = Stop { steady, window_ns: Some(700 * MS), drain_ns: 5_000 * MS, ..Stop::default() };
    let slow = Slow { service_ns: 5 * MS, ..Slow::default() };
    let (result, endings, _) = run_shared(&work(5, mix(1), stop), 3, &slow);
    assert_eq!(result.settling.as_ref().unwrap().rounds.len(), 2);
    assert!(
        result.window_start_ns >= 3_000 * MS,
        "two rounds, and a second between announcement and opening"
    );
    assert_eq!(result.window_end_ns - result.window_start_ns, 700 * MS);
    for ending in &endings {
        let measured: Vec<_> = ending.workers.iter().filter(|count| count.ok > 0).collect();
        assert!(!measured.is_empty());
        for count in measured {
            assert!(count.first_sent_ns >= result.window_start_ns, "{count:?}");
        }
        assert!(ending.last_done_ns >= result.window_end_ns);
        assert!(ending.first_sent_ns.is_some_and(|first| first < result.window_start_ns));
    }
}

#[test]
fn giving_up_reaches_all_shares() {
    let stop = Stop { operations: Some(1_000_000), give_up_ns: Some(1_000 * MS), ..Stop::default() };
    let slow = Slow { service_ns: MS, fails: true, ..Slow::default() };
    let (result, endings, _) = run_shared(&work(4, mix(1), stop), 3, &slow);
    assert!(result.given_up.contains("no operation succeeded"), "{}", result.given_up);
    assert!(!result.interrupted, "it was not the user");
    assert!(result.undone > 900_000);
    assert!(endings.iter().all(|ending| ending.undone > 0));
}

/// A coordinator that gives its instruction once.
struct Fixed {
    start: Option<Instant>,
    instruction: Instruction,
}

impl Coordinator for Fixed {
    fn start(&mut self) -> Option<Instant> {
        self.start
    }

    fn interval(&mut self, _interval: &Interval) {}

    fn instruction(&mut self) -> Instruction {
        self.instruction
    }
}

#[test]
fn a_load_starts_when_its_lead_says_or_not_at_all() {
    let plan = work(4, mix(1), of_operations(100));
    let log: &'static Log = Box::leak(Box::default());
    let mut never = Fixed { start: None, instruction: Instruction::default() };
    let ending = run_share(&plan, Share { first: 1, count: 2 }, &log, 2, &mut never).unwrap();
    assert!(ending.interrupted && log.begun.lock().unwrap().is_empty());

    let start = Instant::now() + Duration::from_millis(400);
    let mut later = Fixed { start: Some(start), instruction: Instruction::default() };
    let ending = run_share(&plan, Share { first: 1, count: 2 }, &Null, 2, &mut later).unwrap();
    assert!(Instant::now() >= start);
    assert_eq!(ending.workers.iter().map(|count| count.ok).sum::<u64>(), 50);
    assert_eq!(ending.workers.iter().map(|count| count.worker).collect::<Vec<_>>(), [1, 1, 2, 2]);
    assert!(ending.first_sent_ns.is_some_and(|sent| sent <= ending.last_done_ns));
    // Stopped before it starts: nothing is done, and nobody waits.
    let far = Some(Instant::now() + Duration::from_secs(3_600));
    let mut stopped = Fixed {
        start: far,
        instruction: Instruction { stop_request: StopRequest::Stop, ..Instruction::default() },
    };
    let open =
        Work { pacing: Pacing::Open { rate: Rate::constant(9.0), arrivals: Arrivals::Constant }, ..plan };
    let ending = run_share(&open, Share::whole(&open), &log, 2, &mut stopped).unwrap();
    assert!(ending.interrupted && log.begun.lock().unwrap().is_empty());
    assert_eq!((ending.first_sent_ns, ending.unsent, ending.undone), (None, 0, 100));
}

#[test]
fn nobody_waits_for_the_seconds_of_a_thread_that_has_ended() {
    #[derive(Default)]
    struct Second(Option<Instant>);
    impl Watch for Second {
        fn interval(&mut self, interval: &Interval) {
            self.0 = self.0.or_else(|| (interval.index == 1).then(Instant::now));
        }
        fn stop_request(&mut self) -> StopRequest {
            StopRequest::None
        }
    }
    // One long operation: the other thread has nothing to do, and ends at once.
    let slow = Slow { service_ns: 6_000 * MS, ..Slow::default() };
    let mut second = Second::default();
    run(&work(2, mix(1), of_operations(1)), &slow, 2, &mut second).unwrap();
    let ahead = second.0.unwrap().elapsed();
    assert!(ahead >= Duration::from_millis(500), "the next second was told {ahead:?} before the end");
}
