//! A run by several drivers, one of which was lost.

use super::{SECOND, healthy};
use tidemark_measure::host::Host;
use tidemark_measure::record::{Driver, Lost, Run, Share, ShareSecond};

/// The healthy run by so many drivers. The third is lost after 20 s; the second is a little slower than the others.
pub(crate) fn by_drivers(count: u32, seconds: u64) -> Run {
    let mut run = healthy(seconds);
    run.name = format!("4 KB mix from {count} drivers");
    run.provenance.host.name = "controller-1".into();
    for index in 0..count {
        let lost = Lost { at_ns: 40 * SECOND, reason: "it said nothing for 10 s".into() };
        run.drivers.push(Driver {
            name: format!("d-{}", index + 1),
            host: Host { name: format!("loadgen-{}", index + 1), cores: 8, ..Host::default() },
            clock_error_ns: 25_000 + u64::from(index % 7) * 4_000,
            lost: (index == 2 && seconds > 20).then_some(lost),
            ..Driver::default()
        });
    }
    for stage in &mut run.stages {
        for (number, work) in stage.works.iter().enumerate() {
            for index in 0..count {
                stage.shares.push(share(
                    index,
                    count,
                    number as u32,
                    work,
                    work.kind.measures() && seconds > 20,
                ));
            }
        }
    }
    run
}

fn share(
    index: u32,
    count: u32,
    work_number: u32,
    work: &tidemark_measure::record::Work,
    loses: bool,
) -> Share {
    let lost = loses && index == 2;
    let second = |second: &tidemark_measure::record::Second| {
        let ok: u64 = second.operations.iter().map(|operation| operation.ok).sum();
        let pace = [1.0, 0.93, 1.02, 0.99][index as usize % 4];
        let wobble = 1.0 + 0.03 * (f64::from(second.index) * 0.7 + f64::from(index)).sin();
        let own = (ok as f64 / f64::from(count) * pace * wobble) as u64;
        let p99_ns = second.operations.iter().map(|operation| operation.p99_ns).max().unwrap_or(0);
        let p50_ns = p99_ns / 4;
        let busy = 0.31 * pace * wobble;
        ShareSecond {
            index: second.index,
            ok: own,
            bytes: own * 4096,
            p50_ns,
            p99_ns,
            busy,
            ..ShareSecond::default()
        }
    };
    let series: Vec<ShareSecond> =
        work.series.iter().take(if lost { 20 } else { usize::MAX }).map(second).collect();
    let ok = series.iter().map(|second| second.ok).sum();
    let (each, more) = (work.workers / count, work.workers % count);
    Share {
        driver: index,
        work: work_number,
        first_worker: index * each + index.min(more),
        workers: each + u32::from(index < more),
        threads: if lost { 0 } else { 2 },
        ok,
        bytes: ok * 4096,
        first_sent_ns: Some(work.started_ns + 200_000 * u64::from(index % 5)),
        complete: !lost,
        series,
        ..Share::default()
    }
}
