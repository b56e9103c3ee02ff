//! Where Ceph's latency goes when no resource is short.

use super::View;
use crate::Finding;
use crate::context::is_machine;
use crate::words::limits::{Commits, Limit, Wait};
use tidemark_measure::observation::{Kind, Node};

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

/// Whether a daemon that was asked through its cluster is on a node that is observed, too: the rules speak of it there.
fn is_elsewhere(view: &View<'_>, daemon: &str) -> bool {
    let machines = || view.run.nodes.iter().filter(|node| is_machine(node));
    let has =
        |node: &Node| node.series.iter().any(|series| series.kind == Kind::Ceph && series.subject == daemon);
    !is_machine(view.node) && machines().any(has)
}

/// Daemons that have enough to do for their means to say something, and two of their means.
fn daemons<'a>(view: &View<'a>, part: &str, whole: &str) -> Vec<(&'a str, f64, f64)> {
    let level = |daemon: &str, metric: &str| view.level(Kind::Ceph, daemon, metric);
    let means = view.means(Kind::Ceph, part).into_iter().filter_map(|(daemon, part)| {
        Some((daemon, part, view.mean(Kind::Ceph, daemon, whole).filter(|whole| *whole > 0.0)?))
    });
    let works = |daemon: &str| level(daemon, "op") + level(daemon, "subop") >= OPERATIONS;
    means.filter(|(daemon, ..)| works(daemon) && !is_elsewhere(view, daemon)).collect()
}

/// Whether commits of BlueStore's key-value store take most of a write, while no disk is at its limit.
pub(super) fn flush(view: &View<'_>) -> Vec<Finding> {
    let level = |daemon: &str, metric: &str| view.level(Kind::Ceph, daemon, metric);
    let committing =
        |daemon: &str| level(daemon, "state_kv_queued_ns") + level(daemon, "state_kv_committing_ns");
    let slow: Vec<_> = daemons(view, "kv_sync_ns", "commit_ns")
        .into_iter()
        .map(|(daemon, sync_ns, whole_ns)| Commits {
            daemon: daemon.to_owned(),
            committing_ns: committing(daemon),
            whole_ns,
            sync_ns,
            sync_busy: level(daemon, "kv_sync_busy"),
        })
        .filter(|one| one.committing_ns >= HALF * one.whole_ns && one.sync_busy >= SYNC_BUSY)
        .collect();
    match slow.is_empty() {
        true => Vec::new(),
        false => vec![view.caused(Limit::Flush { slow })],
    }
}

/// Whether operations wait inside daemons while the machine is idle.
pub(super) fn queue(view: &View<'_>) -> Vec<Finding> {
    if view.processors_busy() >= IDLE_BUSY {
        return Vec::new();
    }
    let waits = [
        (daemons(view, "op_before_dequeue_ns", "op_latency_ns"), false),
        (daemons(view, "throttle_ns", "commit_ns"), true),
    ];
    let mut findings = Vec::new();
    for (daemons, throttle) in waits {
        let long = daemons.into_iter().filter(|(_, wait, whole)| *wait >= WAIT && *wait >= HALF * whole);
        let waits: Vec<_> = long
            .map(|(daemon, part_ns, whole_ns)| Wait { daemon: daemon.to_owned(), part_ns, whole_ns })
            .collect();
        if !waits.is_empty() {
            findings.push(view.caused(Limit::Queue { waits, throttle }));
        }
    }
    let gateways = view.means(Kind::Ceph, "qlen");
    for (gateway, queued) in gateways.into_iter().filter(|(_, queued)| *queued >= QUEUED) {
        let active = view.level(Kind::Ceph, gateway, "qactive");
        let what = Limit::GatewayQueue { gateway: gateway.to_owned(), queued, active };
        findings.push(view.caused(what));
    }
    findings
}
