//! Disks: at a limit that was set, or busy all the time.

use super::{AT_LIMIT, MOSTLY, View};
use crate::words::limits::{DiskUse, Limit, Metered};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;
use tidemark_measure::record::Proof;

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
    // A limit is that of an observed process's group, and what it lets through is that group's.
    found.then(|| view.caused(Limit::DiskAtLimit { metered, disks, below }))
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
        findings.push(view.busy(severity, what, view.standing(own_share(view, disk))));
    }
    findings
}

/// The share of the bytes that a disk moved that the load or an observed process had it move; `None` where that is not
/// known well enough to tell whether it was most of them.
pub(super) fn own_share(view: &View<'_>, disk: &str) -> Option<f64> {
    let of_volumes = view.stage.proof.as_ref().filter(|_| view.node.generates);
    of_volumes.and_then(|proof| of_volume(proof, disk)).or_else(|| {
        let level = |metric| view.level(Kind::Disk, disk, metric);
        let moved = level("read_bytes") + level("write_bytes");
        let [least, most] = ["observed_bytes", "observed_bytes_most"].map(|metric| level(metric) / moved);
        match moved > 0.0 {
            true if least >= MOSTLY => Some(least.min(1.0)),
            true if most < MOSTLY && sees_files(view) => Some(most),
            _ => None,
        }
    })
}

/// Whether it is known on which disks all observed processes have files.
fn sees_files(view: &View<'_>) -> bool {
    let seen = view.means(Kind::Process, "open_files");
    let all = view.means(Kind::Process, "threads");
    !all.is_empty() && all.iter().all(|(process, _)| seen.iter().any(|(other, _)| other == process))
}

/// The same for a disk on which the load's volumes are, by what the kernel counted for this process.
fn of_volume(proof: &Proof, disk: &str) -> Option<f64> {
    let own = proof.own?;
    let moved = proof.devices.iter().find_map(|device| {
        let under = device.behind.as_ref().filter(|behind| behind.device == disk);
        let bytes = under.map(|behind| behind.read_bytes.saturating_add(behind.written_bytes));
        let whole = device.read_bytes.saturating_add(device.written_bytes);
        bytes.or_else(|| (device.device == disk).then_some(whole))
    });
    let own = own.read_bytes.saturating_add(own.written_bytes);
    moved.filter(|moved| *moved > 0).map(|moved| (own as f64 / moved as f64).min(1.0))
}
