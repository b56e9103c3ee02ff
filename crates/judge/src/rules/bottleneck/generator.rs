//! The load generator's share of its node. `rules/generator.rs` judges it by its own clocks; this by what the kernel counts.

use super::View;
use super::processor::{GENERATOR, THROTTLED};
use crate::words::limits::{Limit, Room};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

/// Processors with less than a tenth of their time left are used up.
const FULL: f64 = 0.9;

/// The generator is the limit when it uses three quarters of what is used: what is left is too little to have been it.
const MOSTLY: f64 = 0.75;

/// A thread that is on a processor, or waiting for one, for this share of the time never rests: operations wait for it.
const NO_REST: f64 = 0.95;

/// Cores that something else in the generator's process (a server in it) may use without being mistaken for the generator.
const OTHERS: f64 = 0.2;

/// Threads of a process whose waiting is observed.
const WATCHED: u64 = 16;

/// Processors that the generator may use, and how full they are.
struct Space {
    cores: f64,
    used: f64,
    room: Room,
}

fn space(view: &View<'_>) -> Option<Space> {
    let node = view.cores()?;
    let process = view.level(Kind::Process, GENERATOR, "cpu");
    let quota = view.mean(Kind::Cgroup, GENERATOR, "cpu_limit").filter(|quota| *quota < node);
    let allowed = view.mean(Kind::Process, GENERATOR, "allowed").filter(|allowed| *allowed < node);
    let own = [quota.map(|cores| (cores, Room::Quota)), allowed.map(|cores| (cores, Room::Allowed))];
    let own =
        own.into_iter().flatten().filter(|(cores, _)| *cores > 0.0).min_by(|(a, _), (b, _)| a.total_cmp(b));
    Some(match own {
        Some((cores, room)) => Space { cores, used: process, room },
        None => Space { cores: node, used: view.level(Kind::Cpu, "all", "busy") * node, room: Room::Node },
    })
}

/// Whether the generator was stopped by a quota of processor time: operations wait meanwhile, and the storage is blamed.
pub(super) fn throttled(view: &View<'_>) -> Vec<Finding> {
    let share = view.level(Kind::Cgroup, GENERATOR, "throttled_periods");
    if !view.node.generates || share < THROTTLED {
        return Vec::new();
    }
    let what = Limit::GeneratorQuota {
        share,
        cores: view.level(Kind::Process, GENERATOR, "cpu"),
        allowed: view.level(Kind::Cgroup, GENERATOR, "cpu_limit"),
        stopped_threads: view.level(Kind::Cgroup, GENERATOR, "throttled_time"),
        limit: THROTTLED,
    };
    vec![view.finding(Severity::Critical, what).invalidating(true)]
}

/// Whether the generator used up the processors that it may use, or its threads never rested.
///
/// In an open loop the send lag is the direct measure of what that does to the numbers, and a pacer may spin while it waits.
pub(super) fn full(view: &View<'_>) -> Vec<Finding> {
    let open = view.works().all(|work| work.offered_rate.is_some());
    // A quota is the same trouble, said already.
    let said = view.generator_blamed || !throttled(view).is_empty();
    let Some(Space { cores, used, room }) = space(view).filter(|_| view.node.generates && !said && !open)
    else {
        return Vec::new();
    };
    let own = view.generator_cores();
    if used >= FULL * cores && own >= MOSTLY * used {
        let what = Limit::GeneratorFull { own, used, cores, room };
        return vec![view.finding(Severity::Critical, what).invalidating(true)];
    }
    starved(view, own).into_iter().collect()
}

/// Whether the generator's threads were always on a processor or waiting for one.
fn starved(view: &View<'_>, own: f64) -> Option<Finding> {
    let threads = view.generator_threads();
    let others = view.level(Kind::Process, GENERATOR, "cpu") - own;
    let waiting = view.level(Kind::Process, GENERATOR, "waiting");
    let restless = (own + waiting) / threads as f64;
    if threads == 0 || threads > WATCHED || others > OTHERS || restless < NO_REST {
        return None;
    }
    let what = Limit::GeneratorStarved { own, waiting, threads, limit: NO_REST };
    Some(view.finding(Severity::Critical, what).invalidating(true))
}

/// Whether the generator is what uses most of its processors, without having used them up.
pub(super) fn near(view: &View<'_>) -> Vec<Finding> {
    let Some(Space { cores, room, .. }) =
        space(view).filter(|_| view.node.generates && !view.generator_blamed)
    else {
        return Vec::new();
    };
    let own = view.generator_cores();
    let invalid = !throttled(view).is_empty() || !full(view).is_empty();
    if invalid || own < MOSTLY * cores {
        return Vec::new();
    }
    vec![view.finding(Severity::Note, Limit::GeneratorNear { own, cores, room })]
}
