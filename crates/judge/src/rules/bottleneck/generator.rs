//! The load generator's share of its node. `rules/generator.rs` judges it by its own clocks; this by what the kernel counts.

use super::View;
use super::processor::{GENERATOR, THROTTLED};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;
use tidemark_measure::units;

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

const ADVICE: &str = "These numbers show the load generator's limit, not the storage's. Give it more \
    processors, or a machine of its own.";

/// Processors that the generator may use, and how full they are.
struct Room {
    cores: f64,
    used: f64,
    why: &'static str,
}

fn room(view: &View<'_>) -> Option<Room> {
    let node = view.cores()?;
    let process = view.level(Kind::Process, GENERATOR, "cpu");
    let quota = view.mean(Kind::Cgroup, GENERATOR, "cpu_limit").filter(|quota| *quota < node);
    let allowed = view.mean(Kind::Process, GENERATOR, "allowed").filter(|allowed| *allowed < node);
    let own = [
        quota.map(|cores| (cores, "its quota")),
        allowed.map(|cores| (cores, "the processors that it may run on")),
    ];
    let own =
        own.into_iter().flatten().filter(|(cores, _)| *cores > 0.0).min_by(|(a, _), (b, _)| a.total_cmp(b));
    Some(match own {
        Some((cores, why)) => Room { cores, used: process, why },
        None => Room {
            cores: node,
            used: view.level(Kind::Cpu, "all", "busy") * node,
            why: "the node's processors",
        },
    })
}

/// Whether the generator was stopped by a quota of processor time: operations wait meanwhile, and the storage is blamed.
pub(super) fn throttled(view: &View<'_>) -> Vec<Finding> {
    let share = view.level(Kind::Cgroup, GENERATOR, "throttled_periods");
    if !view.node.generates || share < THROTTLED {
        return Vec::new();
    }
    let title = format!(
        "the load generator was stopped by its processor quota in {} of its periods",
        units::percent(share)
    );
    let finding =
        view.finding(Severity::Critical, "limit-generator", title).detail(ADVICE).evidence(format!(
            "used {:.2} cores of {:.2} allowed, {:.2} threads stopped on average; limit: {} of the periods",
            view.level(Kind::Process, GENERATOR, "cpu"),
            view.level(Kind::Cgroup, GENERATOR, "cpu_limit"),
            view.level(Kind::Cgroup, GENERATOR, "throttled_time"),
            units::percent(THROTTLED)
        ));
    vec![finding.invalidating(true)]
}

/// Whether the generator used up the processors that it may use, or its threads never rested.
///
/// In an open loop the send lag is the direct measure of what that does to the numbers, and a pacer may spin while it waits.
pub(super) fn full(view: &View<'_>) -> Vec<Finding> {
    let open = view.works().all(|work| work.offered_rate.is_some());
    // A quota is the same trouble, said already.
    let said = view.generator_blamed || !throttled(view).is_empty();
    let Some(room) = room(view).filter(|_| view.node.generates && !said && !open) else {
        return Vec::new();
    };
    let own = view.generator_cores();
    if room.used >= FULL * room.cores && own >= MOSTLY * room.used {
        let title =
            format!("the load generator was the bottleneck: it used {own:.2} of {:.2} cores", room.cores);
        let finding =
            view.finding(Severity::Critical, "limit-generator", title).detail(ADVICE).evidence(format!(
                "{}: {:.2} of {:.2} cores used = {}, of which by the generator's threads {own:.2} = {}",
                room.why,
                room.used,
                room.cores,
                units::percent(room.used / room.cores),
                units::percent(own / room.used)
            ));
        return vec![finding.invalidating(true)];
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
    let title = format!(
        "the load generator was starved of processors: its threads waited for one for {} of the time",
        units::percent(waiting / threads as f64)
    );
    let finding = view.finding(Severity::Critical, "limit-generator", title).detail(ADVICE).evidence(format!(
        "({own:.2} threads on a processor + {waiting:.2} ready without one) / {threads} threads = {}; limit: \
            {}",
        units::percent(restless),
        units::percent(NO_REST)
    ));
    Some(finding.invalidating(true))
}

/// Whether the generator is what uses most of its processors, without having used them up.
pub(super) fn near(view: &View<'_>) -> Vec<Finding> {
    let Some(room) = room(view).filter(|_| view.node.generates && !view.generator_blamed) else {
        return Vec::new();
    };
    let own = view.generator_cores();
    let invalid = !throttled(view).is_empty() || !full(view).is_empty();
    if invalid || own < MOSTLY * room.cores {
        return Vec::new();
    }
    let title = format!("the load generator used {own:.2} of {:.2} cores", room.cores);
    let finding = view
        .finding(Severity::Note, "limit-generator", title)
        .detail("A heavier load may find the generator at its limit before the storage.")
        .evidence(format!(
            "{}: {own:.2} / {:.2} cores = {}",
            room.why,
            room.cores,
            units::percent(own / room.cores)
        ));
    vec![finding]
}
