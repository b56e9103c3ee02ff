//! Networks and memory.

use super::{AT_LIMIT, View};
use crate::words::limits::{GroupMemory, Limit};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

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
        for (metric, sends) in [("rx_bytes", false), ("tx_bytes", true)] {
            let used = view.level(Kind::Network, link, metric);
            if speed > 0.0 && used >= AT_LIMIT * speed {
                let what = Limit::Link { link: link.to_owned(), sends, used, speed };
                findings.push(view.finding(Severity::Warning, what));
            }
        }
    }
    findings
}

/// Whether packets or connections were lost.
pub(super) fn losses(view: &View<'_>) -> Vec<Finding> {
    let level = |subject, metric| view.level(Kind::Network, subject, metric);
    let (sent, again) = (level("tcp", "sent_segments"), level("tcp", "retransmitted_segments"));
    let many = |number: f64| Some(number).filter(|number| *number >= DROPS);
    let sent_again = many(again).filter(|again| *again > RETRANSMITTED * (sent + again));
    let (dropped, not_accepted) = (many(level("softnet", "dropped")), many(level("tcp", "listen_drops")));
    if [sent_again, dropped, not_accepted].iter().all(Option::is_none) {
        return Vec::new();
    }
    vec![view.finding(Severity::Warning, Limit::Losses { sent, sent_again, dropped, not_accepted })]
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
    let group = group.map(|(process, share)| GroupMemory {
        process: process.to_owned(),
        pressure: share,
        used: view.level(Kind::Cgroup, process, "memory_used"),
        limit: view.level(Kind::Cgroup, process, "memory_limit"),
    });
    let available = view.level(Kind::Memory, "node", "available");
    let what = Limit::Memory { faults, swapped, pressure, available, group };
    vec![view.finding(Severity::Warning, what)]
}
