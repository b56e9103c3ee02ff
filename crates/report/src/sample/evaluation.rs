//! Evaluations with plausible numbers: layouts of a cluster under two loads, observed.

use super::{Heat, SECOND, provenance};
use tidemark_measure::axis::Axis;
use tidemark_measure::evaluation::{Arm, Evaluation, Level, Load, Member};
use tidemark_measure::fault::Fault;
use tidemark_measure::kind::{Cache, OperationClass, WorkKind};
use tidemark_measure::observation::{Kind, Node, Series};
use tidemark_measure::record::{
    DeviceUse, LongestGap, Note, Operation, Proof, Run, Second, SecondOfOperation, Stage, State, Work,
};
use tidemark_measure::rng::Rng;
use tidemark_measure::service_level::{Limit, ServiceLevel, Statistic};
use tidemark_measure::tally::{Interval, Tally};

/// How large an evaluation is.
pub(crate) struct Shape {
    pub(crate) arms: usize,
    /// Levels of workers of each load: the first so many of 5, 10, 20 ...
    pub(crate) levels: usize,
    pub(crate) repeats: u32,
    pub(crate) seconds: u64,
    /// Times that each operation counts: for billions of them.
    pub(crate) times: u64,
}

/// Three arms, two loads, nine levels, three repeats.
pub(crate) fn usual() -> Shape {
    Shape { arms: 3, levels: 9, repeats: 3, seconds: 20, times: 1 }
}

const ARMS: [(&str, &str, f64); 3] = [
    ("baseline", "everything on the slow device", 1.0),
    ("reference-1", "metadata and WAL on the fast device", 1.38),
    ("reference-2", "a cache in front of the slow device", 2.9),
];

/// The record and its runs.
pub(crate) fn evaluation(shape: &Shape) -> (Evaluation, Vec<Run>) {
    let levels = |load: usize| -> Vec<Level> {
        let count = if load == 0 && shape.levels < 10 { 1 } else { shape.levels };
        let level = |step: usize| vec![Axis::count("workers", 5u32 << step)];
        if count == 1 { vec![Vec::new()] } else { (0..count).map(level).collect() }
    };
    let load = |(index, (name, description)): (usize, (&str, &str))| Load {
        name: name.into(),
        description: description.into(),
        levels: levels(index),
        service_level: (levels(index).len() > 1).then(service_level),
        search: None,
    };
    let loads = [
        ("small-objects", "4 KB objects, 70 % reads, 30 % writes"),
        ("random-write", "4 kB random writes to volumes"),
    ];
    let evaluation = Evaluation {
        id: 7,
        name: "Does a fast device pay?".into(),
        description: "Three layouts of one cluster under small objects and random writes.".into(),
        started_unix_ns: 1_795_197_600 * SECOND,
        state: State::Completed,
        provenance: provenance(),
        arms: ARMS[..shape.arms].iter().map(arm).collect(),
        loads: loads.into_iter().enumerate().map(load).collect(),
        repeats: shape.repeats,
        order: "interleaved".into(),
        notes: vec![Note {
            topic: "lab".into(),
            text: "The slow devices are throttled loop devices.".into(),
        }],
        tuning: None,
        missing: Vec::new(),
        until: None,
    };
    let mut runs = Vec::new();
    for repeat in 1..=shape.repeats {
        for (index, load) in evaluation.loads.iter().enumerate() {
            for level in &load.levels {
                for (arm, (name, ..)) in ARMS[..shape.arms].iter().enumerate() {
                    let turn = runs.len() as u32 + 1;
                    let member = Member {
                        evaluation: 7,
                        arm: (*name).into(),
                        load: load.name.clone(),
                        level: level.clone(),
                        repeat,
                        turn,
                        fingerprint: format!("{turn:032x}"),
                    };
                    runs.push(run(shape, arm, index, member));
                }
            }
        }
    }
    (evaluation, runs)
}

/// Heat maps of works: run, stage and work.
pub(crate) fn heat(wanted: &[(u64, usize, usize)], runs: &[Run]) -> Vec<Heat> {
    let one = |(run, stage, work): &(u64, usize, usize)| {
        let found = runs.iter().find(|one| one.id == *run)?;
        let mut heat = Heat::new(*run, *stage, *work);
        seconds(&found.stages[*stage].works[*work], |second| heat.add(second));
        Some(heat)
    };
    wanted.iter().filter_map(one).collect()
}

/// The seconds of a work again, one after the other.
fn seconds(work: &Work, mut each: impl FnMut(&Interval)) {
    let mut interval = Interval::new(0, work.operations.len());
    for second in &work.series {
        interval.reset(second.index);
        for (tally, numbers) in interval.actions.iter_mut().zip(&second.operations) {
            for step in 0..60u64 {
                let share = (step as f64 + 0.5) / 60.0;
                let value = numbers.p50_ns as f64 * (0.7 + 0.45 * -(1.0 - share).ln());
                tally.response.record_many(value as u64, numbers.ok / 60 + 1);
            }
        }
        each(&interval);
    }
}

fn service_level() -> ServiceLevel {
    let limit = Limit {
        operation: String::new(),
        statistic: Statistic::Quantile(0.95),
        base_ns: 200_000_000,
        ns_per_byte: 1000.0,
    };
    ServiceLevel { text: "p95 <= 200ms + size / 1MBps".into(), limits: vec![limit], failures: 0.0 }
}

fn arm((name, description, factor): &(&str, &str, f64)) -> Arm {
    let fast = if *factor > 1.0 { "16 GiB of memory" } else { "none" };
    let settings =
        [("layout", *name), ("osds", "3"), ("data", "loop device, 500 IOPS"), ("fast device", fast)];
    Arm {
        name: (*name).into(),
        description: (*description).into(),
        settings: settings.map(|(name, value)| (name.into(), value.into())).to_vec(),
    }
}

fn run(shape: &Shape, arm: usize, load: usize, member: Member) -> Run {
    let mut random = Rng::new(5, &[u64::from(member.turn)]);
    let workers =
        member.level.first().and_then(|axis| axis.value.number()).map_or(32, |number| number as u32);
    let luck = 1.0 + 0.03 * (random.unit() - 0.5);
    // Few workers wait for the storage, many for each other: throughput ends at the arm's most, and sinks a little.
    let most = [2_600.0, 700.0][load] * ARMS[arm].2 * luck;
    let alone = [0.006, 0.012][load] / ARMS[arm].2.sqrt();
    let crowd = f64::from(workers) / (most * alone);
    let response = alone * (1.0 + crowd.powi(4)).powf(0.25) * (1.0 + 0.004 * crowd);
    let rate = f64::from(workers) / response;
    let main = work(shape, load, workers, rate, response * 1e9);
    let prepare = 4 * SECOND;
    let length = shape.seconds * SECOND;
    let written = main.operations.iter().map(|operation| operation.tally.bytes).sum::<u64>();
    let device = DeviceUse {
        device: format!("loop{}", arm + 3),
        writes: written / 4096,
        written_bytes: written * (300 + u64::from(member.repeat)) / 100,
        busy_ns: length * 9 / 10,
        ..DeviceUse::default()
    };
    let proof = Proof {
        setup: vec!["page cache of 4 volumes dropped".into()],
        cache: Some(Cache::Cold),
        direct: true,
        devices: vec![device],
        ..Proof::default()
    };
    let stage = |id: &str, kind: &str, started_ns, ended_ns, work: Work, proof| Stage {
        id: id.into(),
        name: kind.into(),
        state: State::Completed,
        started_ns,
        ended_ns,
        works: vec![Work { started_ns, kind: WorkKind::named(kind), ..work }],
        proof,
        ..Stage::default()
    };
    let filled = Work { name: "prepare".into(), workers: 8, window_end_ns: prepare, ..Work::default() };
    let main = stage("s2-main", "normal", prepare, prepare + length, main, (load == 1).then_some(proof));
    Run {
        id: 100 + u64::from(member.turn),
        name: member.load.clone(),
        started_unix_ns: (1_795_197_600 + u64::from(member.turn) * (shape.seconds + 6)) * SECOND,
        elapsed_ns: prepare + length,
        state: State::Completed,
        provenance: provenance(),
        nodes: nodes(&mut random, shape, arm, rate, response),
        stages: vec![stage("s1-prepare", "prepare", 0, prepare, filled, None), main],
        member: Some(member),
        ..Run::default()
    }
}

fn work(shape: &Shape, load: usize, workers: u32, rate: f64, response_ns: f64) -> Work {
    let mix: &[(&str, f64, f64)] =
        if load == 0 { &[("read", 0.7, 0.8), ("write", 0.3, 1.47)] } else { &[("write", 1.0, 1.0)] };
    let operation = |(label, share, slow): &(&str, f64, f64)| {
        let count = (rate * share * (shape.seconds - 2) as f64) as u64 * shape.times;
        let mut tally = Tally { ok: count, bytes: count * 4096, ..Tally::default() };
        for step in 0..400 {
            let share = (f64::from(step) + 0.5) / 400.0;
            let value = response_ns * slow * (0.6 + 0.4 * -(1.0f64 - share).ln());
            tally.response.record_many(value as u64, count / 400);
        }
        tally.response.record_many((response_ns * slow * 6.0) as u64, count / 900 + 1);
        if load == 0 && workers > 1_000 {
            (0..7).for_each(|_| tally.faults.count(Fault::Timeout));
        }
        Operation {
            label: (*label).into(),
            kind: (*label).into(),
            class: OperationClass::named(label),
            weight: share * 100.0,
            tally,
            ..Operation::default()
        }
    };
    let second = |index: u64| {
        let numbers = |(_, share, slow): &(&str, f64, f64)| {
            let wave = 1.0 + 0.04 * ((index as f64) * 0.7).sin();
            let at = |factor: f64| (response_ns * slow * factor * wave) as u64;
            SecondOfOperation {
                ok: (rate * share / wave) as u64 * shape.times,
                bytes: (rate * share / wave) as u64 * 4096 * shape.times,
                mean_ns: at(1.0),
                p50_ns: at(0.88),
                p95_ns: at(1.8),
                p99_ns: at(2.44),
                max_ns: at(6.0),
                service_p99_ns: at(2.44),
                ..SecondOfOperation::default()
            }
        };
        Second {
            index: index as u32,
            operations: mix.iter().map(numbers).collect(),
            in_flight: workers,
            oldest_in_flight_ns: (response_ns * 5.0) as u64,
            busy: 0.3,
            ..Second::default()
        }
    };
    Work {
        name: "main".into(),
        workers,
        depth: 1,
        threads: 2,
        window_start_ns: 2 * SECOND,
        window_end_ns: shape.seconds * SECOND,
        last_done_ns: shape.seconds * SECOND,
        operations: mix.iter().map(operation).collect(),
        series: (0..shape.seconds).map(second).collect(),
        longest_gap: Some(LongestGap { from_ns: 0, to_ns: 5_000_000 }),
        ..Work::default()
    }
}

/// The generator, and a storage node with a hundred series.
fn nodes(random: &mut Rng, shape: &Shape, arm: usize, rate: f64, response: f64) -> Vec<Node> {
    let at_ns: Vec<u64> = (1..=shape.seconds + 4).map(|second| second * SECOND).collect();
    let mut noisy = |kind, subject: &str, metric: &str, mean: f64| {
        let value = |at: &u64| {
            let on = if *at > 4 * SECOND { 1.0 } else { 0.15 };
            (mean * on * (0.95 + 0.1 * random.unit())) as f32
        };
        let values = at_ns.iter().map(value).collect();
        Series { kind, subject: subject.into(), metric: metric.into(), values }
    };
    let busy = (0.2 + rate / 20_000.0).min(0.95);
    let mut series = vec![
        noisy(Kind::Cpu, "all", "busy", busy),
        noisy(Kind::Cpu, "all", "iowait", 0.2),
        noisy(Kind::Pressure, "io", "some", 0.6),
        noisy(Kind::Pressure, "cpu", "some", 0.12),
        noisy(Kind::Memory, "node", "used", 9e9),
        noisy(Kind::Memory, "node", "cached", 4e9),
        noisy(Kind::Process, "radosgw", "cpu", 0.6),
        noisy(Kind::Network, "eth0", "rx_bytes", rate * 5_000.0),
        noisy(Kind::Network, "eth0", "tx_bytes", rate * 4_500.0),
    ];
    for core in 0..8 {
        for metric in ["busy", "user", "system", "iowait"] {
            series.push(noisy(Kind::Cpu, &format!("cpu{core}"), metric, busy / 2.0));
        }
    }
    for number in 0..3 {
        let disk = format!("loop{}", number + 3);
        let writes = (rate * 0.4).min(500.0);
        for (metric, mean) in [
            ("write_ops", writes),
            ("write_bytes", writes * 9_000.0),
            ("read_ops", 12.0),
            ("write_await_ns", response * 4e8),
            ("queue", rate * response * 0.2),
            ("busy", 0.94),
        ] {
            series.push(noisy(Kind::Disk, &disk, metric, mean));
        }
        for (metric, value) in [("write_ops_limit", 500.0), ("observed_bytes", writes * 9_000.0)] {
            let (subject, metric, values) = (disk.clone(), metric.into(), vec![value as f32; at_ns.len()]);
            series.push(Series { kind: Kind::Disk, subject, metric, values });
        }
        let osd = format!("osd.{number}");
        for (metric, mean) in [
            ("op_w_latency_ns", response * 7e8),
            ("op_r_latency_ns", response * 1e8),
            ("commit_ns", response * 5e8),
            ("kv_sync_busy", 0.7),
            ("op_wip", 12.0),
        ] {
            series.push(noisy(Kind::Ceph, &osd, metric, mean));
        }
        let process = format!("ceph-osd.{number}");
        for (metric, mean) in [
            ("cpu", 0.4 + 0.1 * f64::from(number)),
            ("busiest_thread", 0.3),
            ("memory", 1e9),
            ("threads", 70.0),
        ] {
            series.push(noisy(Kind::Process, &process, metric, mean));
        }
    }
    let own = vec![
        noisy(Kind::Cpu, "all", "busy", 0.3),
        noisy(Kind::Process, "tidemark", "cpu", 0.55),
        noisy(Kind::Network, "eth0", "tx_bytes", rate * 5_000.0),
    ];
    let node = |name: &str, generates, series| Node {
        name: name.into(),
        generates,
        source: "local".into(),
        at_ns: at_ns.clone(),
        series,
        ..Node::default()
    };
    let mut storage = node(&format!("storage-{}", arm + 1), false, series);
    storage.gaps.push("The kernel has no pressure of interrupts.".into());
    vec![node("loadgen-1", true, own), storage]
}
