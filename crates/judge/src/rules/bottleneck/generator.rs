//! The load generator's share of its node. `rules/generator.rs` judges it by its own clocks; this by what the kernel counts.

use super::processor::{THROTTLED, Use};
use super::{Process, View};
use crate::words::limits::{Limit, Room};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

/// Processors with less than a tenth of their time left are used up.
const FULL: f64 = 0.9;

/// The generator is the limit when it uses three quarters of what is used: what is left is too little to have been it.
const MOSTLY: f64 = 0.75;

/// A thread that is on a processor, or waiting for one, for this share of the time never rests: operations wait for it.
const NO_REST: f64 = 0.95;

/// Threads of a process whose waiting is observed.
pub(in crate::rules) const WATCHED: u64 = 16;

/// Processors that a generator's process may use, and how full they are.
struct Space {
    cores: f64,
    used: f64,
    room: Room,
}

/// What a process may use of its own, if that is less than its node has.
fn own_space(view: &View<'_>, process: &Process) -> Option<Space> {
    let (node, subject) = (view.cores()?, process.subject.as_str());
    let quota = view.mean(Kind::Cgroup, subject, "cpu_limit").map(|cores| (cores, Room::Quota));
    let allowed = view.mean(Kind::Process, subject, "allowed").map(|cores| (cores, Room::Allowed));
    let own = quota.into_iter().chain(allowed).filter(|(cores, _)| *cores > 0.0 && *cores < node);
    let (cores, room) = own.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some(Space { cores, used: view.level(Kind::Process, subject, "cpu"), room })
}

/// Every space in which load is put on from this node, with the cores that generator threads used there: that of each process
/// that has one of its own, and the node, which the others share.
fn spaces(view: &View<'_>) -> Vec<(Space, f64)> {
    let (mut spaces, mut sharing) = (Vec::new(), 0.0);
    for process in view.generators() {
        match own_space(view, &process) {
            Some(space) => spaces.push((space, process.cores)),
            None => sharing += process.cores,
        }
    }
    if let Some(cores) = view.cores().filter(|_| sharing > 0.0) {
        // What gives way to the generator takes nothing from it.
        let used = Use::of(view).map_or(0.0, |processors| processors.firm());
        spaces.push((Space { cores, used, room: Room::Node }, sharing));
    }
    spaces
}

/// Whether a generator was stopped by a quota of processor time: operations wait meanwhile, and the storage is blamed.
pub(super) fn throttled(view: &View<'_>) -> Vec<Finding> {
    let stopped = |process: Process| {
        let subject = process.subject.as_str();
        let share = view.level(Kind::Cgroup, subject, "throttled_periods");
        (share >= THROTTLED).then(|| Limit::GeneratorQuota {
            share,
            cores: view.level(Kind::Process, subject, "cpu"),
            allowed: view.level(Kind::Cgroup, subject, "cpu_limit"),
            stopped_threads: view.level(Kind::Cgroup, subject, "throttled_time"),
            limit: THROTTLED,
        })
    };
    let found = view.generators().into_iter().filter_map(stopped);
    found.map(|what| view.finding(Severity::Critical, what).invalidating(true)).collect()
}

/// Whether generators used up the processors that they may use, or their threads never rested.
///
/// In an open loop the send lag is the direct measure of what that does to the numbers, and a pacer may spin while it waits.
pub(super) fn full(view: &View<'_>) -> Vec<Finding> {
    let open = view.works().all(|work| work.offered_rate.is_some());
    // A quota is the same trouble, said already.
    if view.generator_blamed || open || !throttled(view).is_empty() {
        return Vec::new();
    }
    let full = |(space, own): (Space, f64)| {
        let Space { cores, used, room } = space;
        (used >= FULL * cores && own >= MOSTLY * used).then_some(Limit::GeneratorFull {
            own,
            used,
            cores,
            room,
        })
    };
    let mut found: Vec<Limit> = spaces(view).into_iter().filter_map(full).collect();
    if found.is_empty() {
        found.extend(view.generators().iter().filter_map(|process| starved(view, process)));
    }
    found.into_iter().map(|what| view.finding(Severity::Critical, what).invalidating(true)).collect()
}

/// Whether a generator's threads were always on a processor or waiting for one. What other threads of the process waited (its
/// main thread, the kernel's workers for its I/O, a server in it) is not theirs; where theirs is not known nothing is said.
fn starved(view: &View<'_>, process: &Process) -> Option<Limit> {
    let Process { subject, cores: own, threads } = process;
    // The kernel's samples and the generator's seconds do not begin at the same time.
    let rest = (*threads as f64 - own).max(0.0);
    let waiting = view.mean(Kind::Process, subject, "load_waiting")?.min(rest);
    let restless = (own + waiting) / *threads as f64;
    let told = *threads > 0 && *threads <= WATCHED && restless >= NO_REST;
    told.then_some(Limit::GeneratorStarved { own: *own, waiting, threads: *threads, limit: NO_REST })
}

/// Whether generators are what uses most of their processors, without having used them up.
pub(super) fn near(view: &View<'_>) -> Vec<Finding> {
    let invalid = || !throttled(view).is_empty() || !full(view).is_empty();
    if view.generator_blamed || invalid() {
        return Vec::new();
    }
    let near = spaces(view).into_iter().filter(|(space, own)| *own >= MOSTLY * space.cores);
    let told = near.map(|(Space { cores, room, .. }, own)| Limit::GeneratorNear { own, cores, room });
    told.map(|what| view.finding(Severity::Note, what)).collect()
}
