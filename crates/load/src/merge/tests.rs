//! Seconds of sources that lag, end, are lost and come back.

use super::*;
use crate::source::{Size, SourcePlan};
use crate::stop::StopRequest;
use crate::stopping::Steady;
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::Pick;
use tidemark_measure::record::WorkerCount;

#[derive(Default)]
struct Seen(Vec<(u32, u64)>);

impl Watch for Seen {
    fn interval(&mut self, interval: &Interval) {
        self.0.push((interval.index, interval.actions[0].ok));
    }

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

fn work(stop: Stop) -> Work {
    let bytes = Size { pick: Pick::Constant(1), unit: 1 };
    Work {
        workers: 4,
        depth: 1,
        connections: None,
        pacing: Pacing::BACK_TO_BACK,
        stop,
        source: SourcePlan::Scan { action: 0, spaces: None, items: None, bytes },
        finale: None,
        copies: 1,
        actions: 1,
        seed: 1,
        stream: [0, 0],
    }
}

fn second(index: u32, ok: u64) -> Interval {
    let mut interval = Interval::new(index, 1);
    interval.actions[0].ok = ok;
    interval.actions[0].response.record_many(1_000, ok);
    interval.unmeasured = ok;
    interval.first_ok_ns = (ok > 0).then_some(u64::from(index) * INTERVAL_NS);
    interval.last_ok_ns = interval.first_ok_ns;
    interval
}

fn failed(index: u32) -> Interval {
    let mut interval = Interval::new(index, 1);
    interval.actions[0].faults.count(Fault::Refused);
    interval
}

#[test]
fn a_second_is_told_when_all_have_passed_it_and_nobody_waits_for_those_who_are_gone() {
    let (mut merge, mut seen) = (Merge::new(&work(Stop::default()), 3), Seen::default());
    let mut take = |merge: &mut Merge, source: u32, index: u32, ok: u64| {
        let encoded = wire::encode(&second(index, ok));
        let summary = merge.take_encoded(source, &encoded).unwrap().summary();
        assert_eq!((summary.index, summary.ok), (index, ok));
        merge.emit(&mut seen);
        std::mem::take(&mut seen.0)
    };
    assert_eq!(take(&mut merge, 0, 0, 1), []);
    assert_eq!(take(&mut merge, 1, 0, 10), []);
    assert_eq!(take(&mut merge, 2, 0, 100), [(0, 111)]);
    // The third is cut off; the others go on, and what it says when it is back still counts.
    assert_eq!(take(&mut merge, 0, 1, 1), []);
    assert_eq!(take(&mut merge, 1, 1, 10), []);
    assert_eq!(take(&mut merge, 0, 2, 1), []);
    assert_eq!(take(&mut merge, 2, 1, 100), [(1, 111)]);
    // Now it is given up: the others are not held up, and what was told already is not told again.
    merge.gone(2);
    assert_eq!(take(&mut merge, 1, 2, 10), [(2, 11)]);
    assert_eq!(take(&mut merge, 2, 2, 100), []);
    assert_eq!(take(&mut merge, 2, 3, 100), [], "nobody has passed this one");
    assert_eq!(take(&mut merge, 1, 3, 10), []);
    assert_eq!(take(&mut merge, 0, 3, 1), [(3, 111)]);
    // One that skips seconds had nothing to say in them.
    assert_eq!(take(&mut merge, 0, 6, 1), []);
    merge.gone(1);
    merge.emit(&mut seen);
    assert_eq!(std::mem::take(&mut seen.0), [(4, 0), (5, 0), (6, 1)]);
    merge.take(0, &second(8, 5));
    merge.gone(0);
    merge.flush(&mut seen);
    assert_eq!(seen.0, [(7, 0), (8, 5)]);
    assert_eq!(merge.result(Vec::new()).tallies[0].ok, 3 * 111 + 11 + 1 + 5);
}

#[test]
fn what_cannot_be_a_second_of_the_work_is_refused_and_holds_nothing_up() {
    let (mut merge, mut seen) = (Merge::new(&work(Stop::default()), 2), Seen::default());
    merge.take(0, &second(0, 1));
    for bytes in [
        wire::encode(&Interval::new(0, 2)),
        wire::encode(&second(MOST_AHEAD + 1, 1)),
        wire::encode(&second(u32::MAX, 1)),
        vec![1, 2, 3],
    ] {
        assert!(merge.take_encoded(1, &bytes).is_err());
        merge.emit(&mut seen);
        assert!(seen.0.is_empty());
    }
    merge.take_encoded(1, &wire::encode(&second(MOST_AHEAD, 1))).unwrap();
    merge.emit(&mut seen);
    assert_eq!(seen.0, [(0, 1)]);
}

#[test]
fn seconds_that_have_not_been_yet_are_refused() {
    let mut merge = Merge::new(&work(Stop::default()), 2);
    let slack = (CLOCKS_DIFFER_NS / INTERVAL_NS) as u32;
    for now in [0, 60] {
        merge.clock(u64::from(now) * INTERVAL_NS);
        let mut take = |index| merge.take_encoded(0, &wire::encode(&second(index, 1))).is_ok();
        assert_eq!([now + slack, now + slack + 1].map(&mut take), [true, false]);
    }
}

#[test]
fn numbers_of_hostile_drivers_overflow_nothing() {
    let stop = Stop { give_up_ns: Some(0), ..Stop::default() };
    let (mut merge, mut seen) = (Merge::new(&work(stop), 2), Seen::default());
    let mut most = second(0, wire::MOST_COUNT);
    (most.cpu_ns, most.wall_ns, most.in_flight) = (u64::MAX, u64::MAX, u32::MAX);
    (most.first_ok_ns, most.last_ok_ns, most.oldest_in_flight_ns) = (Some(0), Some(u64::MAX), u64::MAX);
    for source in [0, 1] {
        merge.take_encoded(source, &wire::encode(&most)).unwrap();
    }
    merge.emit(&mut seen);
    assert_eq!(seen.0, [(0, 2 * wire::MOST_COUNT)]);
    let ending = Ending { unsent: u64::MAX, undone: u64::MAX, threads: u32::MAX, ..Ending::default() };
    assert_eq!(merge.result(vec![ending.clone(), ending]).unsent, u64::MAX);
}

#[test]
fn each_decision_is_told_once() {
    let steady = Some(Steady { round_ns: INTERVAL_NS, most_rounds: 9 });
    let stop = Stop { steady, window_ns: Some(5), give_up_ns: Some(2 * INTERVAL_NS), ..Stop::default() };
    let (mut merge, mut seen) = (Merge::new(&work(stop), 2), Seen::default());
    for index in 0..6 {
        merge.take(0, &second(index, 50));
        assert_eq!(merge.decision(), None, "half of the load says nothing");
        merge.take(1, &second(index, 50));
        merge.emit(&mut seen);
        assert_eq!(merge.decision(), (index == 4).then_some(Decision::OpenWindow));
    }
    merge.window_opened(5_300_000_000);
    for index in 6..12 {
        (0..2).for_each(|source| merge.take(source, &failed(index)));
        merge.emit(&mut seen);
        assert_eq!(merge.decision(), (index == 6).then_some(Decision::GiveUp), "{index}");
    }
    merge.ended_early(7_000_000_000);
    let interrupted = Ending { interrupted: true, undone: 3, ..Ending::default() };
    let result = merge.result(vec![interrupted; 2]);
    assert_eq!(result.settling.unwrap().rounds, [100.0; 5]);
    assert_eq!((result.window_start_ns, result.window_end_ns), (5_300_000_000, 5_300_000_005));
    assert_eq!((result.given_up.as_str(), result.interrupted), ("no operation succeeded for 2 s", false));
    assert_eq!(result.undone, 6);
}

#[test]
fn a_window_ends_when_its_rounds_are_steady_and_that_is_no_interruption() {
    let stop = Stop {
        warm_up_ns: 2 * INTERVAL_NS,
        window_ns: Some(60 * INTERVAL_NS),
        until_steady_ns: Some(2 * INTERVAL_NS),
        ..Stop::default()
    };
    let (mut merge, mut seen) = (Merge::new(&work(stop), 1), Seen::default());
    // Before the window, and in its first rounds, it is not steady; from the fourth second of the window on it is.
    let rate = |index: u32| if index < 6 { 100 * u64::from(index) } else { 1_000 };
    let mut ended = None;
    for index in 0..30 {
        merge.take(0, &second(index, rate(index)));
        merge.emit(&mut seen);
        if let Some(decision) = merge.decision() {
            assert_eq!((decision, ended), (Decision::EndWindow, None), "told once");
            merge.ended_early(u64::from(index + 1) * INTERVAL_NS);
            ended = Some(index);
        }
    }
    // Five rounds of two seconds after the sixth second.
    assert_eq!(ended, Some(15));
    let result = merge.result(vec![Ending { interrupted: true, undone: 4, ..Ending::default() }]);
    let rounds = result.window_rounds.unwrap();
    assert_eq!((rounds.steady, rounds.rounds.len(), rounds.rounds[6]), (true, 7, 1_000.0));
    assert_eq!((result.window_start_ns, result.window_end_ns), (2 * INTERVAL_NS, 16 * INTERVAL_NS));
    assert_eq!((result.interrupted, result.undone, result.given_up.as_str()), (false, 0, ""));
}

#[test]
fn endings_are_added_up() {
    let (mut merge, mut seen) = (Merge::new(&work(Stop::default()), 2), Seen::default());
    (0..2).for_each(|source| merge.take(source, &second(0, 7)));
    merge.flush(&mut seen);
    let ending = |worker, last: u64| Ending {
        workers: vec![WorkerCount { worker, ok: 7, ..WorkerCount::default() }],
        examples: (0..2).map(|n| Example { fault: Fault::Reset, text: format!("{worker}.{n}") }).collect(),
        last_done_ns: last + 2,
        load_done_ns: last + 1,
        last_measured_ns: last,
        threads: 2,
        ..Ending::default()
    };
    let result = merge.result(vec![ending(1, 900), ending(0, 500)]);
    assert_eq!((result.tallies[0].ok, result.threads), (14, 4));
    assert_eq!((result.window_end_ns, result.last_done_ns), (900, 902));
    assert_eq!(result.workers.iter().map(|count| count.worker).collect::<Vec<_>>(), [0, 1]);
    let texts: Vec<_> = result.examples.iter().map(|example| example.text.as_str()).collect();
    assert_eq!(texts, ["1.0", "1.1", "0.0"]);
    assert_eq!(result.longest_gap.unwrap().to_ns, 901);
}

#[test]
fn what_another_program_kept_together_is_the_result() {
    let whole = Some(Box::new(Result { remarks: vec!["of fio".into()], ..Result::default() }));
    let merge = Merge::new(&work(Stop::default()), 1);
    assert_eq!(merge.result(vec![Ending { whole, ..Ending::default() }]).remarks, ["of fio"]);
}
