//! Disks: at a limit that was set, or busy all the time.

use super::{AT_LIMIT, View};
use crate::words::limits::{DiskUse, Limit, Metered};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

/// A disk that has a request in flight for this share of the time is busy.
const BUSY: f64 = 0.9;

/// Requests in flight with which a busy disk has work waiting.
const QUEUE: f64 = 2.0;

/// Tasks that all wait for disks for this share of the time: then the disk is in the way.
const PRESSURE: f64 = 0.1;

/// A disk that does more than this share of a limit is used by others, whom the limit does not bind: it says nothing then.
const BEYOND: f64 = 1.2;

/// What is limited: metric, limit, what it counts.
const LIMITS: [(&str, &str, Metered); 4] = [
    ("write_ops", "write_ops_limit", Metered::Writes),
    ("read_ops", "read_ops_limit", Metered::Reads),
    ("write_bytes", "write_bytes_limit", Metered::BytesWritten),
    ("read_bytes", "read_bytes_limit", Metered::BytesRead),
];

/// Whether disks are at the limit that control groups set. Their own counters do not show it: the wait is before the device.
pub(super) fn at_limit(view: &View<'_>) -> Vec<Finding> {
    LIMITS.iter().filter_map(|(metric, limit, metered)| one_limit(view, metric, limit, *metered)).collect()
}

fn one_limit(view: &View<'_>, metric: &str, limit: &str, metered: Metered) -> Option<Finding> {
    let limits = view.means(Kind::Disk, limit);
    // What the limit meters is what was let through to the disk, which may merge requests before it counts them.
    let passed = format!("{metric}_metered");
    let used = |disk: &str| {
        let passed = view.mean(Kind::Disk, disk, &passed);
        passed.unwrap_or_else(|| view.level(Kind::Disk, disk, metric))
    };
    let limits = limits.into_iter().filter(|(_, limit)| *limit > 0.0);
    let of_disk = |(disk, limit): (&str, f64)| DiskUse {
        disk: disk.to_owned(),
        used: used(disk),
        limit,
        busy: view.level(Kind::Disk, disk, "busy"),
    };
    let is_at = |one: &DiskUse| (AT_LIMIT..=BEYOND).contains(&(one.used / one.limit));
    let (disks, below): (Vec<_>, Vec<_>) = limits.map(of_disk).partition(is_at);
    let found = !disks.is_empty();
    found.then(|| view.finding(Severity::Warning, Limit::DiskAtLimit { metered, disks, below }))
}

/// Whether disks without such a limit were busy all the time with requests waiting.
pub(super) fn busy(view: &View<'_>) -> Vec<Finding> {
    let pressure = view.level(Kind::Pressure, "io", "full");
    let mut findings = Vec::new();
    for (disk, busy) in view.means(Kind::Disk, "busy") {
        let queue = view.level(Kind::Disk, disk, "queue");
        if busy < BUSY || queue < QUEUE {
            continue;
        }
        let level = |metric| view.level(Kind::Disk, disk, metric);
        let severity = if pressure >= PRESSURE { Severity::Warning } else { Severity::Note };
        let what = Limit::DiskBusy {
            disk: disk.to_owned(),
            busy,
            queue,
            reads: level("read_ops"),
            read_ns: level("read_await_ns"),
            writes: level("write_ops"),
            write_ns: level("write_await_ns"),
            pressure,
        };
        findings.push(view.finding(severity, what));
    }
    findings
}
