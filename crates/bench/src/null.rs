//! The null engine: what Tidemark's own loop costs per operation, beside fio's.

use std::process::Command;
use tidemark_load::engine::Null;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Effect, Order, Size, SourcePlan};
use tidemark_load::stop::StopRequest;
use tidemark_load::stopping::Stop;
use tidemark_load::thread_pool::{self, Watch};
use tidemark_load::work::Work;
use tidemark_measure::pick::Pick;
use tidemark_measure::tally::{Interval, Tally};

/// Follows nothing.
pub(crate) struct Blind;

impl Watch for Blind {
    fn interval(&mut self, _interval: &Interval) {}

    fn stop_request(&mut self) -> StopRequest {
        StopRequest::None
    }
}

/// A 70/30 mix over 100 containers x 500 objects, as the whitepaper's.
pub(crate) fn mix(workers: u32, seconds: u64, bytes: u64) -> Work {
    let choice = |action, weight, low, high| Choice {
        action,
        weight,
        spaces: Pick::Uniform { low: 1, high: 100 },
        items: Pick::Uniform { low, high },
        bytes: Size { pick: Pick::Constant(bytes), unit: 1 },
        division: Division::None,
        effect: Effect::Free,
        order: Order::Picked,
        follow: None,
    };
    Work {
        workers,
        depth: 1,
        connections: None,
        finale: None,
        copies: 1,
        pacing: Pacing::BACK_TO_BACK,
        stop: Stop { window_ns: Some(seconds * 1_000_000_000), drain_ns: 5_000_000_000, ..Stop::default() },
        source: SourcePlan::Mix {
            choices: vec![choice(0, 70.0, 1, 250), choice(1, 30.0, 251, 500)],
            pool: None,
            deck: false,
        },
        actions: 2,
        seed: 1,
        stream: [0, 0],
    }
}

/// Nanoseconds of one core per operation of our null engine, everything recorded.
pub(crate) fn ours() -> Result<f64, String> {
    let result =
        thread_pool::run(&mix(1, 2, 4096), &Null, 1, &mut Blind).map_err(|error| error.to_string())?;
    let operations: u64 = result.tallies.iter().map(Tally::total).sum();
    Ok(2e9 / operations as f64)
}

/// The same for fio's null engine with its latencies on; `None` when fio is not installed.
pub(crate) fn fio() -> Option<f64> {
    let output = Command::new("fio")
        .args(["--name=null", "--ioengine=null", "--rw=randrw", "--rwmixread=70", "--bs=4k", "--size=1t"])
        .args(["--runtime=2", "--time_based", "--norandommap", "--randrepeat=0", "--thread"])
        .args(["--output-format=terse", "--terse-version=3"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Terse version 3: field 8 (from 1) is read IOPS, field 49 write IOPS.
    let fields: Vec<&str> = text.trim().split(';').collect();
    let iops = fields.get(7)?.parse::<f64>().ok()? + fields.get(48)?.parse::<f64>().ok()?;
    Some(1e9 / iops)
}
