//! The worker loop in time that passes only while it waits: what it counts is exact, on any machine.

use super::*;
use crate::endpoints::Endpoints;
use tidemark_measure::record::EndpointKind;

/// Runs a work on one thread, in made time.
fn run(work: &Work, engine: &dyn Sessions) -> Result {
    let clock = Clock::made();
    let control = Control::new(work.stop.bytes);
    let (full, intervals) = crossbeam_channel::bounded(4);
    let (emptied, empty) = unbounded();
    let slots = work.slots(Share::whole(work)).1;
    let thread = ThreadContext {
        clock,
        thread: 0,
        first_slot: 0,
        slots,
        largest: work.source.largest(),
        seed: work.seed,
    };
    let session = engine.open(thread).unwrap();
    let outlet = Outlet { full, empty, thread: 0 };
    let recorder = Recorder::new(
        0,
        work.actions,
        0,
        work.workers,
        work.waits_for_slots(),
        Endpoints::new(EndpointKind::Endpoint, Vec::new(), 0),
        outlet,
    );
    let mut merge = Merge::new(work, 1);
    let result = std::thread::scope(|scope| {
        // While the load goes on: hours of seconds would not fit into memory.
        scope.spawn(|| {
            for interval in intervals.iter().filter_map(|(_, interval)| interval) {
                merge.take(0, &interval);
                merge.emit(&mut Seen::default());
                let _ = emptied.send(interval);
            }
        });
        LoadThread::new(work, &control, clock, 0, (Share::whole(work), slots), session, recorder).run()
    });
    merge.flush(&mut Seen::default());
    merge.result(vec![ending(&[result], 0)])
}

#[test]
fn warm_up_and_ramp_down_are_not_measured() {
    let stop = Stop {
        warm_up_ns: 300 * MS,
        window_ns: Some(400 * MS),
        ramp_down_ns: 200 * MS,
        drain_ns: 1_000 * MS,
        ..Stop::default()
    };
    let slow = Slow { service_ns: 10 * MS, ..Slow::default() };
    let result = run(&work(4, mix(1), stop), &slow);
    let ok: u64 = result.tallies.iter().map(|tally| tally.ok).sum();
    assert_eq!(ok, 4 * 40, "4 workers x 40 rounds of 10 ms are in the window");
    assert_eq!((result.window_start_ns, result.window_end_ns), (300 * MS, 700 * MS));
    assert_eq!(result.last_done_ns, 900 * MS, "the load went on through the ramp-down");
}

#[test]
fn an_open_loop_counts_waiting_and_a_closed_loop_cannot() {
    let stop = Stop { window_ns: Some(3_000 * MS), drain_ns: 2_000 * MS, ..Stop::default() };
    let mut plan = work(4, mix(1), stop);
    plan.pacing = Pacing::Open { rate: Rate::constant(500.0), arrivals: Arrivals::Constant };
    let slow = Slow { service_ns: MS, freezes: true, ..Slow::default() };
    let result = run(&plan, &slow);
    let mut all = Tally::default();
    result.tallies.iter().for_each(|tally| all.add(tally));
    assert_eq!((all.ok, result.unsent), (1_500, 0), "every due operation is done");
    assert_eq!(result.offered_rate.map(f64::round), Some(500.0));
    // A fifth of the time is frozen: waiting must show at p90 although at most 4 in 100 were in service.
    assert!(all.response.quantile(0.90) > 50 * MS, "response p90 {}", all.response.quantile(0.90));
    assert!(all.service().quantile(0.90) < 50 * MS, "service p90 {}", all.service().quantile(0.90));
    let own = all.own_lag().unwrap().max();
    assert!(all.lag.max() > 100 * MS && own < MS, "no slot was free: lag {}, of it {own}", all.lag.max());
}

#[test]
fn a_thread_that_comes_late_is_told_from_slots_that_are_all_taken() {
    let stop = Stop { window_ns: Some(3_000 * MS), drain_ns: 2_000 * MS, ..Stop::default() };
    // 20 operations fall due in each stall of 20 ms, which 32 slots could carry and 8 could not; without it 2 are in flight.
    for workers in [32, 8] {
        let mut plan = work(workers, mix(1), stop);
        plan.pacing = Pacing::Open { rate: Rate::constant(1_000.0), arrivals: Arrivals::Constant };
        let slow = Slow { service_ns: 2 * MS, stall_ns: 20 * MS, ..Slow::default() };
        let result = run(&plan, &slow);
        let mut all = Tally::default();
        result.tallies.iter().for_each(|tally| all.add(tally));
        let [lag, own] = [&all.lag, all.own_lag().unwrap()].map(|lag| lag.mean() * lag.count() as f64);
        let share = own / lag;
        match workers {
            // All of the lag is in the 20 operations of each of 30 stalls, 10 ms on average.
            32 => assert!((lag / (600 * 10 * MS) as f64 - 1.0).abs() < 0.1 && share > 0.999, "{lag} {share}"),
            // Those that found no slot after it had waited for the thread first; the rest is the storage's.
            _ => assert!((0.7..0.95).contains(&share), "{share}"),
        }
        assert_eq!(all.own_lag().unwrap().count(), all.total());
    }
}

#[test]
fn throughput_counts_what_ended_in_the_window_whenever_it_was_due() {
    let stop =
        Stop { warm_up_ns: 500 * MS, window_ns: Some(1_000 * MS), drain_ns: 5_000 * MS, ..Stop::default() };
    let mut plan = work(2, mix(1), stop);
    // Ten times what two workers can do at 10 ms each: the backlog of the warm-up fills the window.
    plan.pacing = Pacing::Open { rate: Rate::constant(2_000.0), arrivals: Arrivals::Constant };
    let slow = Slow { service_ns: 10 * MS, ..Slow::default() };
    let result = run(&plan, &slow);
    let (early, late) =
        result.tallies.iter().fold((0, 0), |sum, tally| (sum.0 + tally.early, sum.1 + tally.late));
    let ok: u64 = result.tallies.iter().map(|tally| tally.ok).sum();
    assert_eq!(ok - late + early, 2 * 100, "{ok} - {late} + {early}");
}

#[test]
fn an_operation_of_three_hours_is_measured_like_any_other() {
    const HOURS: u64 = 3 * 3_600_000 * MS;
    let stop = Stop { operations: Some(2), ..Stop::default() };
    let result = run(&work(1, mix(1), stop), &Slow { service_ns: HOURS, ..Slow::default() });
    let mut all = Tally::default();
    result.tallies.iter().for_each(|tally| all.add(tally));
    assert_eq!((all.ok, all.failed(), result.window_end_ns), (2, 0, 2 * HOURS));
    for fraction in [0.5, 0.99, 1.0] {
        let read = all.response.quantile(fraction) as f64 / HOURS as f64;
        assert!((read - 1.0).abs() < 0.001, "p{fraction}: {read}");
    }
    assert!((all.response.mean() / HOURS as f64 - 1.0).abs() < 0.001);
}

#[test]
fn pauses_are_drawn_per_worker_and_change_no_operation() {
    let stop = Stop { window_ns: Some(60_000 * MS), drain_ns: 1_000 * MS, ..Stop::default() };
    let slow = Slow { service_ns: 5 * MS, ..Slow::default() };
    let with = |think: Think| {
        let plan = Work { pacing: Pacing::Closed { think }, ..work(8, mix(1), stop) };
        let result = run(&plan, &slow);
        result.workers.iter().map(|count| count.ok).sum::<u64>()
    };
    // A cycle is 5 ms and a pause of 95 ms on average: 600 in a minute for each of 8 workers.
    let exactly = with(Think::Constant { ns: 95 * MS });
    assert_eq!(exactly, 8 * 600);
    for think in
        [Think::Uniform { low_ns: 45 * MS, high_ns: 145 * MS }, Think::Exponential { mean_ns: 95 * MS }]
    {
        let drawn = with(think);
        assert!((drawn as f64 / exactly as f64 - 1.0).abs() < 0.05, "{think}: {drawn}");
        assert_eq!(with(think), drawn, "the same seed pauses the same");
    }
}

/// Terminals that key for 300 ms, and think for 200 ms on average, on an engine that takes 10 ms.
fn at_terminals(terminals: u32, connections: u32) -> Result {
    let stop = Stop {
        warm_up_ns: 5_000 * MS,
        window_ns: Some(60_000 * MS),
        drain_ns: 5_000 * MS,
        ..Stop::default()
    };
    let pause = TerminalPause { keying_ns: 300 * MS, think_mean_ns: 200 * MS };
    let pacing = Pacing::Terminals { mean_ns: 500 * MS, pauses: vec![pause; 2] };
    let plan = Work { pacing, connections: Some(connections), ..work(terminals, mix(1), stop) };
    run(&plan, &Slow { service_ns: 10 * MS, ..Slow::default() })
}

#[test]
fn terminals_that_share_connections_wait_and_the_wait_counts() {
    let seconds = 60.0;
    let law = |terminals: u32, connections: u32| {
        let result = at_terminals(terminals, connections);
        let mut all = Tally::default();
        result.tallies.iter().for_each(|tally| all.add(tally));
        let per_s = (all.ok - all.late + all.early) as f64 / seconds;
        assert!(all.own_lag().unwrap().max() < MS, "the generator is never late");
        assert!((all.service().mean() / (10 * MS) as f64 - 1.0).abs() < 0.01, "{}", all.service().mean());
        (per_s, all.response.mean() / 1e9)
    };
    // Two connections carry 200/s, of which 40 terminals ask for 40 / 0.51 s.
    let (per_s, response) = law(40, 2);
    assert!((per_s / (40.0 / 0.51) - 1.0).abs() < 0.03, "{per_s}");
    assert!(response < 0.013, "{response}");
    // 400 ask for more than there is. The interactive response time law: what they wait is N / X - Z.
    let (per_s, response) = law(400, 2);
    assert!((per_s / 200.0 - 1.0).abs() < 0.001, "{per_s}");
    assert!((response / (400.0 / 200.0 - 0.5) - 1.0).abs() < 0.02, "{response}");
}

#[test]
fn what_never_comes_back_is_counted_as_abandoned() {
    let stop = Stop { window_ns: Some(200 * MS), drain_ns: 100 * MS, ..Stop::default() };
    let slow = Slow { silent: true, ..Slow::default() };
    let result = run(&work(3, mix(1), stop), &slow);
    let abandoned: u64 = result.tallies.iter().map(|tally| tally.faults.of(Fault::Abandoned)).sum();
    assert_eq!(abandoned, 3);
}

#[test]
fn a_backlog_that_is_too_much_fails_no_operation() {
    // 500 are due in half a second, and one at a time of 20 ms is done: what is sent last is not to blame.
    let slow = Slow { service_ns: 20 * MS, ..Slow::default() };
    let stop = Stop { window_ns: Some(500 * MS), drain_ns: 200 * MS, ..Stop::default() };
    let pacing = Pacing::Open { rate: Rate::constant(1000.0), arrivals: Arrivals::Constant };
    let result = run(&Work { pacing, ..work(1, mix(1), stop) }, &slow);
    assert_eq!(result.tallies.iter().map(Tally::failed).sum::<u64>(), 0);
    let ok: u64 = result.tallies.iter().map(|tally| tally.ok).sum();
    assert_eq!(ok + result.unsent, 500, "{ok} done");
    assert!((25..=35).contains(&ok), "a window of 25 rounds, and a drain of 10: {ok}");
}

#[test]
fn syncs_come_on_top_of_the_operations_asked_for() {
    let SourcePlan::Mix { mut choices, .. } = mix(1) else { unreachable!() };
    choices.truncate(1);
    choices[0].follow = Some(Follow { every: 10, action: 1 });
    for depth in [1, 8] {
        let source = SourcePlan::Mix { choices: choices.clone(), pool: None, deck: false };
        let stop = Stop { operations: Some(400), ..Stop::default() };
        let slow = Slow { service_ns: MS, ..Slow::default() };
        let result = run(&Work { depth, ..work(4, source, stop) }, &slow);
        assert_eq!([0, 1].map(|action: usize| result.tallies[action].ok), [400, 40], "depth {depth}");
        assert_eq!(result.undone, 0);
    }
}

#[test]
fn a_long_sync_at_the_end_is_no_silence_of_the_load() {
    let SourcePlan::Mix { mut choices, .. } = mix(1) else { unreachable!() };
    choices.truncate(1);
    let slow = Slow { service_ns: MS, sync_ns: 1_500 * MS, ..Slow::default() };
    for stop in [
        Stop { window_ns: Some(500 * MS), drain_ns: 1_000 * MS, ..Stop::default() },
        Stop { operations: Some(300), ..Stop::default() },
    ] {
        let source = SourcePlan::Mix { choices: choices.clone(), pool: None, deck: false };
        let finale = Some(Finale { action: 1, spaces: (1, 1) });
        let result = run(&Work { finale, ..work(1, source, stop) }, &slow);
        assert_eq!(result.tallies[1].ok, 1);
        assert!(result.tallies[1].response.max() >= 1_500 * MS);
        let longest_gap = result.longest_gap.unwrap().length_ns();
        assert!(longest_gap <= 2 * MS, "{longest_gap}");
    }
}
