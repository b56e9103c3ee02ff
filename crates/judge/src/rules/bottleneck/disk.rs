//! Disks: at a limit that was set, or busy all the time.

use super::{AT_LIMIT, View, list};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;
use tidemark_measure::units;

/// A disk that has a request in flight for this share of the time is busy.
const BUSY: f64 = 0.9;

/// Requests in flight with which a busy disk has work waiting.
const QUEUE: f64 = 2.0;

/// Tasks that all wait for disks for this share of the time: then the disk is in the way.
const PRESSURE: f64 = 0.1;

/// A disk that does more than this share of a limit is used by others, whom the limit does not bind: it says nothing then.
const BEYOND: f64 = 1.2;

/// What is limited: metric, limit, what it is called.
const LIMITS: [(&str, &str, &str); 4] = [
    ("write_ops", "write_ops_limit", "writes"),
    ("read_ops", "read_ops_limit", "reads"),
    ("write_bytes", "write_bytes_limit", "written"),
    ("read_bytes", "read_bytes_limit", "read"),
];

/// Whether disks are at the limit that control groups set. Their own counters do not show it: the wait is before the device.
pub(super) fn at_limit(view: &View<'_>) -> Vec<Finding> {
    LIMITS.iter().filter_map(|(metric, limit, what)| one_limit(view, metric, limit, what)).collect()
}

fn one_limit(view: &View<'_>, metric: &str, limit: &str, what: &str) -> Option<Finding> {
    let limits = view.means(Kind::Disk, limit);
    // What the limit meters is what was let through to the disk, which may merge requests before it counts them.
    let metered = format!("{metric}_metered");
    let used = |disk: &str| {
        let metered = view.mean(Kind::Disk, disk, &metered);
        metered.unwrap_or_else(|| view.level(Kind::Disk, disk, metric))
    };
    let (at, below): (Vec<(&str, f64)>, Vec<_>) = limits
        .into_iter()
        .filter(|(_, limit)| *limit > 0.0)
        .partition(|(disk, limit)| (AT_LIMIT..=BEYOND).contains(&(used(disk) / limit)));
    let (first, _) = at.first()?;
    let lowest = at.iter().map(|(_, limit)| *limit).fold(f64::MAX, f64::min);
    let highest = at.iter().map(|(_, limit)| *limit).fold(0.0, f64::max);
    let bound = match (lowest < highest, metric.ends_with("ops")) {
        (true, _) => "of what is allowed".to_owned(),
        (false, true) => format!("of {lowest:.0} {what} a second"),
        (false, false) => format!("of {} {what} a second", amount(metric, lowest)),
    };
    let names: Vec<&str> = at.iter().map(|(disk, _)| *disk).collect();
    let title = match names.len() {
        1 => format!("the disk {first} was at its limit {bound}"),
        _ => format!("the disks {} were at their limits {bound}", list(&names)),
    };
    let line = |(disk, limit): &(&str, f64)| {
        let used = used(disk);
        format!(
            "{disk}: mean {} {what} a second of {} allowed = {}; the disk itself was busy {} of the time",
            amount(metric, used),
            amount(metric, *limit),
            units::percent(used / limit),
            units::percent(view.level(Kind::Disk, disk, "busy"))
        )
    };
    let detail = "Requests wait in the control group before they reach the disk, which therefore looks idle. Raise the limit, or \
        move part of the data (a write-ahead log, metadata, a cache) to another device, and run again: if this is the bottleneck, \
        throughput follows the limit.";
    let finding = view.finding(Severity::Warning, "limit-disk", title).detail(detail);
    Some(finding.evidences(at.iter().map(line)).evidences(below.iter().map(line)))
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
        let duration = |metric| units::duration_ns(level(metric) as u64);
        let severity = if pressure >= PRESSURE { Severity::Warning } else { Severity::Note };
        let title = format!("the disk {disk} was busy {} of the time", units::percent(busy));
        findings.push(
            view.finding(severity, "limit-disk", title)
                .detail(
                    "A disk that works on many requests at once may be always busy and have reserve. Run \
                    with twice the load: if throughput stays and latency doubles, this disk is the \
                    bottleneck.",
                )
                .evidence(format!(
                    "a request in flight for {} of the time, {queue:.1} on average",
                    units::percent(busy)
                ))
                .evidence(format!(
                    "reads: {} at {} each",
                    units::rate(level("read_ops")),
                    duration("read_await_ns")
                ))
                .evidence(format!(
                    "writes: {} at {} each",
                    units::rate(level("write_ops")),
                    duration("write_await_ns")
                ))
                .evidence(format!("all tasks waited for disks for {} of the time", units::percent(pressure))),
        );
    }
    findings
}

fn amount(metric: &str, value: f64) -> String {
    if metric.ends_with("ops") { format!("{value:.1}") } else { units::bytes(value as u64) }
}
