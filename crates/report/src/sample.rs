//! Runs with plausible numbers, for tests and for looking at reports.

use tidemark_measure::fault::Fault;
use tidemark_measure::kind::{OperationClass, WorkKind};
use tidemark_measure::record::{
    Example, LongestGap, Note, Operation, Provenance, Run, Second, SecondOfOperation, Stage, State, Work,
    WorkerCount,
};
use tidemark_measure::rng::Rng;
use tidemark_measure::tally::Tally;

// The example includes this file by its path, so the module needs one too.
#[path = "sample/block.rs"]
mod block;
#[path = "sample/drivers.rs"]
mod drivers;
#[path = "sample/evaluation.rs"]
mod layouts;
#[path = "sample/queries.rs"]
mod tables;

pub(crate) use block::sweeps;
pub(crate) use drivers::by_drivers;
#[cfg(test)]
pub(crate) use layouts::Shape;
pub(crate) use layouts::{evaluation, heat, usual};
pub(crate) use tables::queries;

// The example has this file outside of the crate.
#[cfg(test)]
use crate::evaluation::Heat;
use tidemark_measure::host::Host;
#[cfg(not(test))]
use tidemark_report::evaluation::Heat;

const SECOND: u64 = 1_000_000_000;

/// What a simulated work does.
struct Load {
    workers: u32,
    seconds: u64,
    /// Operations per second that are due in an open loop.
    rate: Option<u64>,
    /// Median latency of reads and writes, nanoseconds.
    medians: [f64; 2],
    /// When the storage did not answer, nanoseconds since the work's start.
    outage: Option<(u64, u64)>,
    /// Failures per million.
    failing: u64,
    /// How busy the generator's threads were.
    busy: f64,
}

/// Five stages, 70 % reads and 30 % writes by 64 workers for `seconds`; nothing goes wrong.
pub(crate) fn healthy(seconds: u64) -> Run {
    let medians = [3.4e6, 8.2e6];
    let load = Load { workers: 64, seconds, rate: None, medians, outage: None, failing: 0, busy: 0.31 };
    run("4 KB, 70 % reads, 30 % writes", &load, State::Completed)
}

/// The same for 20 s, in which the storage did not answer for 10 s.
pub(crate) fn outage() -> Run {
    let outage = Some((5 * SECOND, 15 * SECOND));
    let medians = [6.0e6, 14.0e6];
    let load = Load { workers: 32, seconds: 20, rate: None, medians, outage, failing: 40, busy: 0.22 };
    run("4 KB mix during a gateway restart", &load, State::Completed)
}

/// An open loop that the load generator could not keep up with, and a stage that failed.
pub(crate) fn invalid() -> Run {
    let medians = [11.0e6, 19.0e6];
    let load = Load {
        workers: 48,
        seconds: 30,
        rate: Some(4_200),
        medians,
        outage: None,
        failing: 1800,
        busy: 0.985,
    };
    let mut run = run("Open loop beyond the generator", &load, State::Failed);
    run.state = State::Failed;
    let stage = &mut run.stages[2];
    stage.reason = "5 400 of 126 000 operations failed; the document allows none".into();
    stage.works[0].unsent = 310;
    run.stages[3].state = State::Waiting;
    run.stages[3].works.clear();
    run
}

/// Six main stages, one of them with two works side by side and one that was interrupted.
pub(crate) fn matrix() -> Run {
    let mut run = healthy(12);
    let main = run.stages.remove(2);
    for number in 0..6 {
        let mut stage = main.clone();
        stage.id = format!("s{}-w(4)KB_c{}_r70w30", number + 3, 8 << number);
        if number == 2 {
            stage.works.push(stage.works[0].clone());
            stage.works[1].name = "second".into();
        }
        if number == 5 {
            (stage.state, stage.reason) = (State::Interrupted, "interrupted by the user (Ctrl-C)".into());
            run.state = State::Interrupted;
        }
        run.stages.insert(2 + number, stage);
    }
    run
}

/// A run whose main stage had no success at all.
pub(crate) fn all_failed() -> Run {
    let mut run = healthy(3);
    let stage = &mut run.stages[2];
    stage.state = State::Failed;
    stage.reason = "no operation succeeded".into();
    let work = &mut stage.works[0];
    work.longest_gap = Some(LongestGap { from_ns: 0, to_ns: 3 * SECOND });
    for operation in &mut work.operations {
        let mut tally = Tally::default();
        (0..1_000).for_each(|_| tally.faults.count(Fault::Refused));
        tally.failure.record_many(120_000, 1_000);
        operation.tally = tally;
    }
    for numbers in work.series.iter_mut().flat_map(|second| &mut second.operations) {
        *numbers = SecondOfOperation { failed: 333, ..Default::default() };
    }
    work.examples =
        vec![Example { fault: Fault::Refused, text: "GET http://127.0.0.1:7480/b1/o7: refused".into() }];
    run
}

fn run(name: &str, load: &Load, state: State) -> Run {
    let mut main = simulate(load);
    main.name = "main".into();
    let main_ns = load.seconds * SECOND;
    let mut clock = 0;
    let mut stage = |number: usize, name: &str, state: State, length: u64, work: Work| {
        let started_ns = clock;
        clock += length;
        let id = format!("s{number}-{name}");
        Stage {
            id,
            name: name.into(),
            state,
            started_ns,
            ended_ns: clock,
            works: vec![work],
            ..Stage::default()
        }
    };
    let done = State::Completed;
    let stages = vec![
        stage(1, "init", done, 400_000_000, special("init", "init", 8, 32, 0)),
        stage(2, "prepare", done, 9 * SECOND, special("prepare", "write", 32, 20_000, 4096)),
        stage(3, "main", state, main_ns + 12_000_000, main),
        stage(4, "cleanup", done, 6 * SECOND, special("cleanup", "delete", 32, 20_000, 0)),
        stage(5, "dispose", done, 300_000_000, special("dispose", "dispose", 8, 32, 0)),
    ];
    let notes = [
        (
            "kib-units",
            "Sizes such as KB are decimal here, as the file says; COSBench multiplied by 1000 too.",
        ),
        (
            "sum-of-rates",
            "Throughput is work in the window divided by the window; COSBench adds up the workers' own rates, which overstates it when workers end at different times.",
        ),
    ];
    Run {
        id: 12,
        name: name.into(),
        description: "whitepaper workload B, scaled down".into(),
        started_unix_ns: 1_795_197_600 * SECOND,
        elapsed_ns: clock,
        state: done,
        provenance: provenance(),
        notes: notes.map(|(topic, text)| Note { topic: topic.into(), text: text.into() }).to_vec(),
        stages,
        ..Run::default()
    }
}

fn provenance() -> Provenance {
    Provenance {
        tidemark: "0.1.0".into(),
        command: "tidemark run mix.xml --seed 42".into(),
        path: "mix.xml".into(),
        format: "COSBench XML".into(),
        document: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<workload name=\"mix\" description=\"4 KB mix\">\n  <storage type=\"s3\" config=\"accesskey=(redacted);secretkey=(redacted);endpoint=http://127.0.0.1:7480;path_style_access=true\"/>\n  <workflow>\n    <workstage name=\"main\">\n      <work name=\"main\" workers=\"64\" runtime=\"60\">\n        <operation type=\"read\" ratio=\"70\" config=\"containers=u(1,32);objects=u(1,625)\"/>\n        <operation type=\"write\" ratio=\"30\" config=\"containers=u(1,32);objects=u(1,625);sizes=c(4)KB\"/>\n      </work>\n    </workstage>\n  </workflow>\n</workload>\n".into(),
        seed: 42,
        targets: vec!["s3 at http://127.0.0.1:7480 (Ceph RGW 16.2.15)".into()],
        host: Host {
            name: "loadgen-1".into(),
            kernel: "Linux 6.1.0-28-amd64".into(),
            cpu: "AMD EPYC 9354 32-Core Processor".into(),
            cores: 8,
            memory_bytes: 33_554_432_000,
        },
    }
}

fn special(kind: &str, sample: &str, workers: u32, count: u64, bytes: u64) -> Work {
    let mut tally = Tally { ok: count, bytes: count * bytes, ..Tally::default() };
    let mut random = Rng::new(3, &[count]);
    for _ in 0..count {
        tally.response.record(lognormal(&mut random, 9e6, 0.3));
    }
    let end = count * 9_000_000 / u64::from(workers);
    Work {
        name: kind.into(),
        kind: WorkKind::named(kind),
        workers,
        threads: 2,
        window_end_ns: end,
        last_done_ns: end,
        operations: vec![Operation {
            label: kind.into(),
            kind: kind.into(),
            class: OperationClass::named(sample),
            verifies: false,
            weight: 100.0,
            config: "containers=r(1,32);objects=r(1,625);sizes=c(4)KB".into(),
            tally,
            reported: None,
        }],
        ..Work::default()
    }
}

/// What the seconds of a simulated work collect.
#[derive(Default)]
struct Collected {
    latencies: [Vec<u64>; 2],
    failed: [u64; 2],
    in_flight: u32,
    oldest: u64,
    backlog: u64,
}

fn simulate(load: &Load) -> Work {
    let mut random = Rng::new(42, &[7]);
    let end = load.seconds * SECOND;
    let mut free: std::collections::BinaryHeap<_> =
        (0..load.workers).map(|worker| std::cmp::Reverse((u64::from(worker) * 40_000, worker))).collect();
    let mut tallies = [Tally::default(), Tally::default()];
    let mut seconds: Vec<Collected> = (0..=load.seconds + 40).map(|_| Collected::default()).collect();
    let mut counts = vec![WorkerCount::default(); load.workers as usize * 2];
    let (mut last_ok, mut longest_gap, mut last_done) = (Vec::new(), None, 0);
    for number in 0.. {
        let std::cmp::Reverse((idle, worker)) = free.pop().expect("every worker is put back");
        let due = load.rate.map_or(idle, |rate| number * SECOND / rate);
        if due >= end {
            break;
        }
        let sent = idle.max(due);
        let kind = usize::from(random.unit() >= 0.7);
        let (done, fault) = outcome(&mut random, load, kind, sent);
        free.push(std::cmp::Reverse((done, worker)));
        last_done = last_done.max(done);
        collect(&mut seconds, due, sent, done);
        let (tally, second) = (&mut tallies[kind], &mut seconds[(done / SECOND) as usize]);
        let count = &mut counts[worker as usize * 2 + kind];
        (count.worker, count.operation) = (worker, kind as u16);
        count.last_done_ns = count.last_done_ns.max(done);
        tally.lag.record(sent - due);
        if let Some(fault) = fault {
            tally.faults.count(fault);
            tally.failure.record(done - due);
            (second.failed[kind], count.failed) = (second.failed[kind] + 1, count.failed + 1);
            continue;
        }
        tally.ok += 1;
        tally.bytes += 4096;
        if done > end {
            (tally.late, tally.late_bytes) = (tally.late + 1, tally.late_bytes + 4096);
        }
        tally.response.record(done - due);
        if load.rate.is_some() {
            tally.service_open.record(done - sent);
            tally.own_lag_open.record(0);
        }
        tally.first_byte.record((done - sent) * 9 / 10);
        second.latencies[kind].push(done - due);
        (count.ok, count.bytes, count.response_ns) =
            (count.ok + 1, count.bytes + 4096, count.response_ns + done - due);
        last_ok.push(done);
    }
    last_ok.sort_unstable();
    let mut before = 0;
    for at in last_ok {
        let longest = longest_gap.map_or(0, |longest_gap: LongestGap| longest_gap.length_ns());
        if at - before > longest {
            longest_gap = Some(LongestGap { from_ns: before, to_ns: at });
        }
        before = at;
    }
    if let (Some((from_ns, to_ns)), Some(longest_gap)) = (load.outage, &mut longest_gap) {
        *longest_gap = LongestGap { from_ns: from_ns - 1_000_000, to_ns: to_ns + 19_000_000 };
    }
    seconds.truncate((last_done / SECOND + 1) as usize);
    let series =
        seconds.iter_mut().enumerate().map(|(index, second)| summed(index as u32, second, load)).collect();
    let [read, write] = tallies;
    Work {
        name: String::new(),
        workers: load.workers,
        threads: 2,
        offered_rate: load.rate.map(|rate| rate as f64),
        window_end_ns: end,
        last_done_ns: last_done,
        operations: vec![named("read", 70.0, read), named("write", 30.0, write)],
        series,
        longest_gap,
        examples: examples(load),
        workers_counts: counts,
        ..Work::default()
    }
}

fn outcome(random: &mut Rng, load: &Load, kind: usize, sent: u64) -> (u64, Option<Fault>) {
    // A slow wave over the run, and a pause of the storage now and then.
    let wave = 1.0 + 0.12 * ((sent as f64 / 1e9) * 0.4).sin();
    let mut latency = lognormal(random, load.medians[kind] * wave, 0.35);
    if random.unit() < 0.002 {
        latency += lognormal(random, 35e6, 0.6);
    }
    let failed = random.below(1_000_000) < load.failing;
    match load.outage {
        Some((from, to)) if sent < to && sent + latency > from => {
            (to + latency + SECOND / 100, (random.unit() < 0.4).then_some(Fault::Reset))
        }
        _ => (
            sent + latency,
            failed.then(|| if random.unit() < 0.7 { Fault::Throttled } else { Fault::Timeout }),
        ),
    }
}

fn collect(seconds: &mut [Collected], due: u64, sent: u64, done: u64) {
    for boundary in due / SECOND + 1..=done / SECOND {
        let second = &mut seconds[boundary as usize - 1];
        if sent <= boundary * SECOND {
            second.in_flight += 1;
            second.oldest = second.oldest.max(boundary * SECOND - sent);
        } else {
            second.backlog += 1;
        }
    }
}

fn summed(index: u32, second: &mut Collected, load: &Load) -> Second {
    let operations = std::array::from_fn::<_, 2, _>(|kind| {
        let latencies = &mut second.latencies[kind];
        latencies.sort_unstable();
        let at = |share: f64| {
            latencies
                .get((latencies.len() as f64 * share) as usize)
                .or(latencies.last())
                .copied()
                .unwrap_or(0)
        };
        SecondOfOperation {
            ok: latencies.len() as u64,
            failed: second.failed[kind],
            bytes: latencies.len() as u64 * 4096,
            mean_ns: latencies.iter().sum::<u64>() / (latencies.len() as u64).max(1),
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            max_ns: at(1.0),
            service_p99_ns: at(0.99),
        }
    });
    Second {
        index,
        operations: operations.to_vec(),
        unmeasured: 0,
        in_flight: second.in_flight,
        oldest_in_flight_ns: second.oldest,
        backlog: second.backlog,
        busy: load.busy,
        stalled_ns: 0,
    }
}

fn named(kind: &str, weight: f64, tally: Tally) -> Operation {
    let config = "containers=u(1,32);objects=u(1,625);sizes=c(4)KB".into();
    Operation {
        label: kind.into(),
        kind: kind.into(),
        class: OperationClass::named(kind),
        verifies: false,
        weight,
        config,
        tally,
        reported: None,
    }
}

fn examples(load: &Load) -> Vec<Example> {
    let mut examples = Vec::new();
    if load.outage.is_some() {
        let text = "GET mycontainers7/myobjects311: the connection was closed after 0 of 4096 bytes".into();
        examples.push(Example { fault: Fault::Reset, text });
    }
    if load.failing > 0 {
        let text = "PUT mycontainers2/myobjects80: 503 SlowDown (request id tx000004)".into();
        examples.push(Example { fault: Fault::Throttled, text });
    }
    examples
}

fn lognormal(random: &mut Rng, median: f64, sigma: f64) -> u64 {
    // Box and Muller, 1958.
    let (u, v) = (random.unit().max(1e-12), random.unit());
    (median * (sigma * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()).exp()) as u64
}
