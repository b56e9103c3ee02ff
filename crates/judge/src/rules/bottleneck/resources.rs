//! Networks and memory.

use super::{AT_LIMIT, View};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;
use tidemark_measure::units;

/// Segments sent again out of a hundred that show a network with losses; a healthy one in a data centre has none.
const RETRANSMITTED: f64 = 0.01;

/// Connections refused and packets dropped per second that are worth telling.
const DROPS: f64 = 1.0;

/// Pages per second read back from disks, above which memory is short: a disk that rotates does little more.
const MAJOR_FAULTS: f64 = 100.0;

/// Time in which some task waited for memory.
const PRESSURE: f64 = 0.1;

/// Bytes per second read from swap.
const SWAP: f64 = 1e6;

/// Whether a link was full.
pub(super) fn link(view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (link, speed) in view.means(Kind::Network, "speed") {
        for (metric, way) in [("rx_bytes", "received"), ("tx_bytes", "sent")] {
            let used = view.level(Kind::Network, link, metric);
            if speed <= 0.0 || used < AT_LIMIT * speed {
                continue;
            }
            let title = format!(
                "the network link {link} was full: {} of its speed {way}",
                units::percent(used / speed)
            );
            let finding = view.finding(Severity::Warning, "limit-network", title).evidence(format!(
                "{way} {} of {} a second = {}, without the heads of frames",
                units::bytes(used as u64),
                units::bytes(speed as u64),
                units::percent(used / speed)
            ));
            findings.push(finding.detail(
                "Use a faster link, or spread the load over more nodes or links: if \
                this is the bottleneck, throughput follows. Copies between storage nodes on the same link \
                count too.",
            ));
        }
    }
    findings
}

/// Whether packets or connections were lost.
pub(super) fn losses(view: &View<'_>) -> Vec<Finding> {
    let level = |subject, metric| view.level(Kind::Network, subject, metric);
    let (sent, again) = (level("tcp", "sent_segments"), level("tcp", "retransmitted_segments"));
    let mut evidence = Vec::new();
    if again >= DROPS && again > RETRANSMITTED * (sent + again) {
        evidence.push(format!(
            "{again:.1} of {:.1} TCP segments a second were sent again = {}",
            sent + again,
            units::percent(again / (sent + again))
        ));
    }
    if level("softnet", "dropped") >= DROPS {
        evidence.push(format!(
            "the kernel's receive queues dropped {:.1} packets a second",
            level("softnet", "dropped")
        ));
    }
    if level("tcp", "listen_drops") >= DROPS {
        evidence.push(format!(
            "{:.1} connections a second were dropped because nobody accepted them",
            level("tcp", "listen_drops")
        ));
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    let finding = view
        .finding(Severity::Warning, "limit-network", "the network lost packets or connections".into())
        .detail(
            "Losses cost waits of 200 ms and more, which show in the high percentiles. Look at the errors \
            and drops of links and switches, and at the listen queues of servers.",
        );
    vec![finding.evidences(evidence)]
}

/// Whether memory was short.
pub(super) fn memory(view: &View<'_>) -> Vec<Finding> {
    let faults = view.level(Kind::Memory, "node", "major_faults");
    let swapped = view.level(Kind::Memory, "node", "swap_in");
    let pressure = view.level(Kind::Pressure, "memory", "some");
    let groups = view.means(Kind::Cgroup, "memory_pressure");
    let group =
        groups.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|(_, share)| *share >= PRESSURE);
    if faults < MAJOR_FAULTS && swapped < SWAP && pressure < PRESSURE && group.is_none() {
        return Vec::new();
    }
    let mut finding = view
        .finding(Severity::Warning, "limit-memory", "memory was short".into())
        .detail(
            "Programs wait for their own pages to be read back. Give them more memory, or make caches \
            smaller, and run again.",
        )
        .evidence(format!(
            "{faults:.1} pages a second had to be read from disks, {} a second from swap",
            units::bytes(swapped as u64)
        ))
        .evidence(format!("some task waited for memory for {} of the time", units::percent(pressure)))
        .evidence(format!(
            "available: {}",
            units::binary_bytes(view.level(Kind::Memory, "node", "available") as u64)
        ));
    if let Some((process, share)) = group {
        let level = |metric| units::binary_bytes(view.level(Kind::Cgroup, process, metric) as u64);
        finding = finding.evidence(format!(
            "in the control group of {process}: {} of the time; {} used of {}",
            units::percent(share),
            level("memory_used"),
            level("memory_limit")
        ));
    }
    vec![finding]
}
