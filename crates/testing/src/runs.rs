//! Hand-made runs for the tests of rules: a healthy one, to be spoilt.

use tidemark_measure::axis::Axis;
use tidemark_measure::evaluation::Member;
use tidemark_measure::fault::Fault;
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::{
    Cell, LongestGap, Operation, Reported, Run, Second, SecondOfOperation, Stage, State, Work, WorkerCount,
};
use tidemark_measure::tally::Tally;

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Twenty seconds of 4 workers in a closed loop with 10 ms per operation: 400 op/s, 8000 reads, nothing wrong.
pub fn healthy() -> Run {
    let mut read = Operation {
        label: "read".into(),
        kind: "read".into(),
        class: OperationClass::Read,
        weight: 100.0,
        ..Operation::default()
    };
    read.tally.ok = 8_000;
    read.tally.bytes = 8_000 * 4096;
    read.tally.response.record_many(10 * MS, 8_000);
    read.tally.lag.record_many(20_000, 8_000);
    let second = |index| Second {
        index,
        operations: vec![SecondOfOperation {
            ok: 400,
            bytes: 400 * 4096,
            p50_ns: 10 * MS,
            ..SecondOfOperation::default()
        }],
        in_flight: 4,
        oldest_in_flight_ns: 5 * MS,
        busy: 0.3,
        ..Second::default()
    };
    let worker = |worker| WorkerCount {
        worker,
        ok: 2_000,
        response_ns: 20 * SECOND_NS,
        first_sent_ns: 1,
        last_done_ns: 20 * SECOND_NS,
        ..WorkerCount::default()
    };
    let work = Work {
        name: "w1".into(),
        workers: 4,
        threads: 1,
        window_end_ns: 20 * SECOND_NS,
        last_done_ns: 20 * SECOND_NS,
        operations: vec![read],
        series: (0..20).map(second).collect(),
        longest_gap: Some(LongestGap { from_ns: 0, to_ns: 12 * MS }),
        workers_counts: (0..4).map(worker).collect(),
        ..Work::default()
    };
    let stage = Stage {
        id: "s1-main".into(),
        name: "main".into(),
        state: State::Completed,
        works: vec![work],
        ..Stage::default()
    };
    let mut run = Run { name: "test".into(), state: State::Completed, stages: vec![stage], ..Run::default() };
    run.provenance.host.cores = 2;
    run
}

/// The healthy run in an open loop of 400 op/s.
pub fn healthy_open() -> Run {
    let mut run = healthy();
    let work = work(&mut run);
    work.offered_rate = Some(400.0);
    work.workers = 64;
    work.operations[0].tally.service_open.record_many(10 * MS, 8_000);
    work.operations[0].tally.own_lag_open.record_many(20_000, 8_000);
    run
}

/// A sweep `rand` of random reads over block sizes by one client, every repeat a healthy stage.
pub fn sweep_run(sizes: &[&str], repeats: u32) -> Run {
    let mut run = healthy();
    let stage = run.stages.remove(0);
    for (point, size) in sizes.iter().enumerate() {
        for repeat in 1..=repeats {
            let size = Axis::of_words("block_size", size);
            let axes = vec![Axis::word("pattern", "randread"), size, Axis::count("clients", 1)];
            let engine = "native".to_owned();
            let cell = Some(Cell { sweep: "rand".into(), axes, repeat, repeats, engine });
            let id = format!("s{}-rand", point as u32 * repeats + repeat);
            run.stages.push(Stage { id, cell, ..stage.clone() });
        }
    }
    run
}

/// A healthy run at this rate, as a member of an evaluation: 4 workers in a closed loop, each operation 4 / rate.
pub fn member_run(arm: &str, load: &str, level: &[(&str, &str)], repeat: u32, turn: u32, rate: f64) -> Run {
    let mut run = healthy();
    let level = level.iter().map(|(name, value)| Axis::of_words(*name, value)).collect();
    let (arm, load) = (arm.to_owned(), load.to_owned());
    run.id = turn.into();
    run.member = Some(Member { evaluation: 1, arm, load, level, repeat, turn, ..Member::default() });
    let tally = &mut work(&mut run).operations[0].tally;
    tally.ok = (rate * 20.0) as u64;
    tally.bytes = tally.ok * 4096;
    tally.response.reset();
    tally.response.record_many((4e9 / rate) as u64, tally.ok);
    run
}

/// Such a run as another tool's table has it: no more than a throughput and a 95th percentile.
pub fn said_run(level: &[(&str, &str)], turn: u32, throughput: f64, p95_ms: f64, bytes: f64) -> Run {
    let mut run = member_run("table", "read", level, 1, turn, 400.0);
    let work = work(&mut run);
    (work.series, work.workers_counts, work.longest_gap) = (Vec::new(), Vec::new(), None);
    work.operations[0].tally = Tally::default();
    work.operations[0].reported = Some(Reported {
        throughput: Some(throughput),
        bandwidth: Some(throughput * bytes),
        percentiles: vec![(0.95, p95_ms * 1e6)],
        ..Reported::default()
    });
    run
}

/// The run's only work.
///
/// # Panics
/// When the run has no stage with a work.
pub fn work(run: &mut Run) -> &mut Work {
    &mut run.stages[0].works[0]
}

/// Turns `count` of the work's successes into failures that take as long.
pub fn fail(run: &mut Run, fault: Fault, count: u64) {
    let tally = &mut work(run).operations[0].tally;
    tally.ok -= count;
    (0..count).for_each(|_| tally.faults.count(fault));
    tally.response.reset();
    tally.response.record_many(10 * MS, tally.ok);
    tally.failure.record_many(10 * MS, count);
}
