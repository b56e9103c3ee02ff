//! Where Ceph's latency goes when no resource is short.

use super::{View, list};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;
use tidemark_measure::units;

/// The part of a latency that is more than everything else together.
const HALF: f64 = 0.5;

/// The one thread that commits is the limit when it does nothing else for most of the time.
const SYNC_BUSY: f64 = 0.7;

/// Operations per second below which a daemon's means say nothing.
const OPERATIONS: f64 = 1.0;

/// Waits below this are no bottleneck: nanoseconds.
const WAIT: f64 = 1e6;

/// Requests that wait in a gateway's queue.
const QUEUED: f64 = 1.0;

/// A node with so much idle time is idle.
const IDLE_BUSY: f64 = 0.7;

/// Daemons that have enough to do for their means to say something, and two of their means.
fn daemons<'a>(view: &View<'a>, part: &str, whole: &str) -> Vec<(&'a str, f64, f64)> {
    let level = |daemon: &str, metric: &str| view.level(Kind::Ceph, daemon, metric);
    let means = view.means(Kind::Ceph, part).into_iter().filter_map(|(daemon, part)| {
        Some((daemon, part, view.mean(Kind::Ceph, daemon, whole).filter(|whole| *whole > 0.0)?))
    });
    means.filter(|(daemon, ..)| level(daemon, "op") + level(daemon, "subop") >= OPERATIONS).collect()
}

/// Whether commits of BlueStore's key-value store take most of a write, while no disk is at its limit.
pub(super) fn flush(view: &View<'_>) -> Vec<Finding> {
    let level = |daemon: &str, metric: &str| view.level(Kind::Ceph, daemon, metric);
    let committing =
        |daemon: &str| level(daemon, "state_kv_queued_ns") + level(daemon, "state_kv_committing_ns");
    let slow: Vec<_> = daemons(view, "kv_sync_ns", "commit_ns")
        .into_iter()
        .filter(|(daemon, _, commit)| {
            committing(daemon) >= HALF * commit && level(daemon, "kv_sync_busy") >= SYNC_BUSY
        })
        .collect();
    if slow.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = slow.iter().map(|(daemon, ..)| *daemon).collect();
    let title = format!("commits of metadata took most of the writes' time in {}", list(&names));
    let line = |(daemon, sync, commit): &(&str, f64, f64)| {
        let committing = committing(daemon);
        format!(
            "{daemon}: {} of {} of a transaction = {}; one sync takes {}, and its thread is {} busy",
            units::duration_ns(committing as u64),
            units::duration_ns(*commit as u64),
            units::percent((committing / commit).min(1.0)),
            units::duration_ns(*sync as u64),
            units::percent(level(daemon, "kv_sync_busy"))
        )
    };
    let finding = view.finding(Severity::Warning, "limit-flush", title).detail(
        "One thread of each OSD syncs RocksDB, and all writes wait for it. Put RocksDB and its log on \
            a device with fast flushes (power-loss protection), and run again: if this is the bottleneck, \
            write latency falls to that device's.",
    );
    vec![finding.evidences(slow.iter().map(line))]
}

/// Whether operations wait inside daemons while the machine is idle.
pub(super) fn queue(view: &View<'_>) -> Vec<Finding> {
    if view.level(Kind::Cpu, "all", "busy") >= IDLE_BUSY {
        return Vec::new();
    }
    let waits = [
        (
            daemons(view, "op_before_dequeue_ns", "op_latency_ns"),
            "operations waited in the queues of",
            "of an operation before it is taken from the queue",
            "More shards (osd_op_num_shards), more placement groups, or a load over more objects spread the \
                work; try one of them.",
        ),
        (
            daemons(view, "throttle_ns", "commit_ns"),
            "transactions waited for the throttle of",
            "of a transaction before BlueStore takes it in",
            "Raise bluestore_throttle_bytes and bluestore_throttle_deferred_bytes and run again.",
        ),
    ];
    let mut findings = Vec::new();
    for (daemons, title, what, advice) in waits {
        let long: Vec<_> =
            daemons.into_iter().filter(|(_, wait, whole)| *wait >= WAIT && *wait >= HALF * whole).collect();
        if long.is_empty() {
            continue;
        }
        let names: Vec<&str> = long.iter().map(|(daemon, ..)| *daemon).collect();
        let line = |(daemon, wait, whole): &(&str, f64, f64)| {
            let [part, all] = [*wait, *whole].map(|ns| units::duration_ns(ns as u64));
            format!("{daemon}: {part} of {all} {what} = {}", units::percent((wait / whole).min(1.0)))
        };
        let title = format!("{title} {} while processors and disks had reserve", list(&names));
        findings.push(
            view.finding(Severity::Warning, "limit-queue", title)
                .detail(advice)
                .evidences(long.iter().map(line)),
        );
    }
    let gateways = view.means(Kind::Ceph, "qlen");
    for (gateway, queued) in gateways.into_iter().filter(|(_, queued)| *queued >= QUEUED) {
        let active = view.level(Kind::Ceph, gateway, "qactive");
        let title =
            format!("requests waited in the gateway {gateway} while processors and disks had reserve");
        findings.push(
            view.finding(Severity::Warning, "limit-queue", title)
                .detail(
                    "Give the gateway more threads (rgw_thread_pool_size), or add a gateway, and run again.",
                )
                .evidence(format!("{queued:.1} requests queued and {active:.1} being worked on, on average")),
        );
    }
    findings
}
