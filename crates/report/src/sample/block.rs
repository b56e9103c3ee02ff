//! Two sweeps on block storage: block sizes, and clients by two engines.

use super::{SECOND, provenance};
use tidemark_measure::axis::Axis;
use tidemark_measure::kind::{Cache, OperationClass};
use tidemark_measure::record::{
    Cell, DeviceUse, LongestGap, Operation, Proof, Run, Second, SecondOfOperation, Settling, Stage, State,
    Work, WorkerCount,
};
use tidemark_measure::rng::Rng;
use tidemark_measure::tally::Tally;

/// A device of 96 000 op/s and 2.1 GB/s, and what is asked of it.
struct Load {
    pattern: &'static str,
    block: u64,
    clients: u32,
    depth: u32,
    seconds: u64,
    /// Share of the device's speed that this repeat got.
    luck: f64,
}

/// `points`: 2 patterns x 5 block sizes x 3 repeats; `scaling`: 2 patterns x 1 to 8 clients, by both engines twice.
/// The page cache answered one stage; one point's repeats differ.
pub(crate) fn sweeps(seconds: u64) -> Run {
    let mut random = Rng::new(11, &[4]);
    let mut run = Run {
        id: 31,
        name: "Random I/O on vda".into(),
        description: "Block sizes and clients, three repeats each".into(),
        started_unix_ns: 1_795_197_600 * SECOND,
        state: State::Completed,
        provenance: provenance(),
        ..Run::default()
    };
    run.provenance.targets = vec!["8 volumes of 8 GiB in /data on vda (ext4)".into()];
    let patterns = ["randread", "randwrite"];
    for repeat in 1..=3 {
        for pattern in patterns {
            for (name, block) in
                [("4 KiB", 4), ("16 KiB", 16), ("64 KiB", 64), ("256 KiB", 256), ("1 MiB", 1024)]
            {
                let noise = if pattern == "randwrite" && block == 64 { 0.3 } else { 0.03 };
                let luck = 1.0 - noise * random.unit();
                let load = Load { pattern, block: block << 10, clients: 4, depth: 16, seconds, luck };
                let axes = [("pattern", pattern), ("block_size", name), ("clients", "4")];
                push(&mut run, &load, "points", &axes, (repeat, 3, "native"));
            }
        }
    }
    for repeat in 1..=2 {
        for (engine, cost) in [("native", 1.0), ("fio", 0.985)] {
            for pattern in patterns {
                for clients in [1u32, 2, 4, 8] {
                    let luck = cost - 0.02 * random.unit();
                    let load = Load { pattern, block: 4096, clients, depth: 2, seconds, luck };
                    let clients = clients.to_string();
                    push(
                        &mut run,
                        &load,
                        "scaling",
                        &[("pattern", pattern), ("clients", &clients)],
                        (repeat, 2, engine),
                    );
                }
            }
        }
    }
    let cached = run.stages[10].proof.as_mut().expect("every stage of it has a proof");
    (cached.direct, cached.devices[0].read_bytes) = (false, 90 << 20);
    run.elapsed_ns = run.stages.last().map_or(0, |stage| stage.ended_ns);
    run
}

fn push(
    run: &mut Run,
    load: &Load,
    sweep: &str,
    axes: &[(&str, &str)],
    (repeat, repeats, engine): (u32, u32, &str),
) {
    let work = work(load);
    let moved = work.operations[0].tally.moved();
    let reads = if load.pattern == "randread" { moved + moved / 500 } else { 1 << 20 };
    let writes = if load.pattern == "randwrite" { moved + moved / 60 } else { 3 << 20 };
    let device = DeviceUse {
        device: "vda".into(),
        volumes: (1..=load.clients).map(|volume| format!("/data/volume-{volume}")).collect(),
        reads: reads / load.block,
        read_bytes: reads,
        writes: writes / load.block,
        written_bytes: writes,
        busy_ns: load.seconds * SECOND * 97 / 100,
        ..DeviceUse::default()
    };
    let setup = vec!["page cache of 4 volumes dropped".into(), "TRIM of nothing".into()];
    let proof =
        Proof { setup, cache: Some(Cache::Cold), direct: true, devices: vec![device], ..Proof::default() };
    let axes = axes.iter().map(|(name, value)| Axis::of_words(*name, value)).collect();
    let cell = Cell { sweep: sweep.into(), axes, repeat, repeats, engine: engine.into() };
    let started_ns = run.stages.last().map_or(0, |stage| stage.ended_ns);
    run.stages.push(Stage {
        id: format!("s{}-{sweep} {} {repeat}", run.stages.len() + 1, load.pattern),
        name: sweep.into(),
        state: State::Completed,
        started_ns,
        ended_ns: started_ns + load.seconds * SECOND,
        works: vec![work],
        cell: Some(cell),
        proof: Some(proof),
        ..Stage::default()
    });
}

fn work(load: &Load) -> Work {
    let slots = f64::from(load.clients * load.depth);
    let alone = if load.pattern == "randread" { 85e-6 } else { 30e-6 } + load.block as f64 / 2.4e9;
    let most = (96e3f64).min(2.1e9 / load.block as f64) * load.luck;
    let rate = (slots / alone).min(most);
    let (latency, count) = (slots / rate * 1e9, (rate * load.seconds as f64) as u64);
    let mut tally = Tally { ok: count, bytes: count * load.block, ..Tally::default() };
    // Latencies around their mean; their sum is what Little's law asks for.
    for step in 0..200 {
        let share = (f64::from(step) + 0.5) / 200.0;
        let value = latency * (0.75 + 0.25 * -(1.0f64 - share).ln());
        tally.response.record_many(value as u64, count / 200);
    }
    let per_second = (rate as u64).max(1);
    let second = |index: u64| {
        let ok = per_second + index * 7_919 % (per_second / 40 + 1);
        let at = |factor: f64| (latency * factor) as u64 + index * 611_953 % (latency as u64 / 9 + 1);
        let numbers = SecondOfOperation {
            ok,
            bytes: ok * load.block,
            mean_ns: at(1.0),
            p50_ns: at(0.92),
            p95_ns: at(1.5),
            p99_ns: at(1.9),
            max_ns: at(2.4),
            service_p99_ns: at(1.9),
            ..SecondOfOperation::default()
        };
        Second {
            index: index as u32,
            operations: vec![numbers],
            in_flight: slots as u32,
            oldest_in_flight_ns: at(2.0),
            busy: 0.2 + 0.5 * rate / 96e3,
            ..Second::default()
        }
    };
    let end = load.seconds * SECOND;
    let worker = |worker| WorkerCount { worker, ok: count / 4, last_done_ns: end, ..WorkerCount::default() };
    let kind = if load.pattern == "randread" { "read" } else { "write" };
    Work {
        name: load.pattern.into(),
        workers: load.clients,
        depth: load.depth,
        threads: 2,
        window_end_ns: end,
        last_done_ns: end,
        operations: vec![Operation {
            label: kind.into(),
            kind: kind.into(),
            class: OperationClass::named(kind),
            verifies: false,
            weight: 100.0,
            config: format!("{} {}", load.pattern, load.block),
            tally,
            reported: None,
        }],
        series: (0..load.seconds).map(second).collect(),
        longest_gap: Some(LongestGap { from_ns: 0, to_ns: 2_000_000 }),
        workers_counts: (0..load.clients).map(worker).collect(),
        settling: Some(Settling {
            rounds: vec![rate * 0.9, rate, rate, rate, rate, rate],
            round_ns: SECOND,
            steady: true,
        }),
        ..Work::default()
    }
}
