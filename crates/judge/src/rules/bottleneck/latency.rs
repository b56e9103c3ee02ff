//! What is left when nothing was busy: the target's own latency. It can be said only of what was observed.

use super::{AT_LIMIT, SAMPLES_LEAST, View, disk};
use crate::words::limits::{Idle, Limit};
use crate::words::standing::{Limited, Standing};
use crate::{Finding, Severity, What};
use tidemark_measure::observation::{CONTROLLER, Kind};
use tidemark_measure::record::Work;

/// A resource of which the load had less than this share was not in its way, however busy others kept it.
const UNTOUCHED: f64 = 0.05;

/// Processors that others keep busy are in the load's way when this share of its operations waits for one.
const WAITING: f64 = 0.1;

/// From this share of its time on nobody calls a resource idle that the load uses: an operation finds it in use every other time.
const IN_USE: f64 = 0.5;

/// Says that the target's own latency was the limit, or why that cannot be told; nothing where something else is the limit,
/// may be, or where a rate was given and kept.
pub(super) fn own(views: &[&View<'_>], said: &[Finding]) -> Option<Finding> {
    let first = views.first()?;
    let open = first.works().any(|work| work.offered_rate.is_some());
    let named = |finding: &Finding| matches!(&finding.what, What::Limit(limited) if limited.is_limit());
    if first.generator_blamed || (open && !first.rate_missed) || said.iter().any(named) {
        return None;
    }
    let note = |limit| Finding::about_stage(first.stage, Severity::Note, plain(limit));
    let samples = views.iter().map(|view| view.samples()).min().unwrap_or(0);
    if samples < SAMPLES_LEAST {
        let (samples, needed) = (samples as u64, SAMPLES_LEAST as u64);
        return Some(note(Limit::TooFewSamples { samples, needed }));
    }
    let felt: f64 = views.iter().map(|view| waiting(view)).sum();
    let in_flight = first.works().map(Work::slots).fold(0, u64::saturating_add) as f64;
    let concerns = |finding: &Finding| match &finding.what {
        What::Limit(limited) => in_the_way(limited, felt / in_flight.max(1.0)),
        _ => false,
    };
    if said.iter().any(concerns) || views.iter().any(|view| restless(view)) {
        return None;
    }
    if !views.iter().any(|view| sees_target(view)) {
        return Some(note(Limit::Unobserved {}));
    }
    let nodes: Vec<Idle> = views.iter().map(|view| idle(view)).collect();
    // Others' use of the processors counts as well: a server that has to wait for one is slower by that.
    let is_idle = |node: &Idle| {
        [node.processors, share(&node.disk), share(&node.thread)].iter().all(|used| *used < IN_USE)
    };
    let all_idle = !first.generator_pressed && nodes.iter().all(is_idle);
    all_idle.then(|| note(Limit::OwnLatency { nodes, waiting: felt, in_flight, limit: IN_USE }))
}

fn share(most: &Option<(String, f64)>) -> f64 {
    most.as_ref().map_or(0.0, |(_, share)| *share)
}

const fn plain(limit: Limit) -> Limited {
    Limited { node: None, standing: None, limit }
}

/// Whether a resource that is busy, and not the limit as far as is known, may have been in the load's way.
fn in_the_way(limited: &Limited, waiting: f64) -> bool {
    match (&limited.limit, limited.standing) {
        (Limit::Processors { .. }, _) => waiting >= WAITING,
        (_, Some(Standing::Others { share })) => 1.0 - share >= UNTOUCHED,
        (_, standing) => standing.is_some(),
    }
}

/// Threads of observed processes that were ready and had no processor, on average.
fn waiting(view: &View<'_>) -> f64 {
    view.means(Kind::Process, "waiting").iter().map(|(_, threads)| threads).sum()
}

/// Whether a thread of an observed process may never have rested: it was on a processor, or ready without one, all the time.
fn restless(view: &View<'_>) -> bool {
    let threads = view.means(Kind::Process, "busiest_thread").into_iter();
    let mut ready = threads.map(|(process, on)| on + view.level(Kind::Process, process, "waiting"));
    ready.any(|share| share >= AT_LIMIT)
}

/// Whether what serves the load is observed: its processes (the generator's own may be it), its node,
/// or the disks under its volumes.
fn sees_target(view: &View<'_>) -> bool {
    let volumes = view.stage.proof.as_ref().is_some_and(|proof| !proof.devices.is_empty());
    let mut processes = view.node.series.iter().filter(|series| series.kind == Kind::Process);
    let own = view.works().any(|work| work.in_process);
    let is_served_by = |subject: &str| subject != CONTROLLER && !view.is_generator(subject);
    !view.node.generates || own || volumes || processes.any(|series| is_served_by(&series.subject))
}

fn idle(view: &View<'_>) -> Idle {
    let most = |all: Vec<(&str, f64)>| {
        let most = all.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
        most.map(|(name, share)| (name.to_owned(), share))
    };
    let mut disks = view.means(Kind::Disk, "busy");
    disks.retain(|(name, _)| disk::own_share(view, name).is_none_or(|share| share >= UNTOUCHED));
    Idle {
        node: view.node.name.clone(),
        processors: view.level(Kind::Cpu, "all", "busy"),
        disk: most(disks),
        thread: most(view.means(Kind::Process, "busiest_thread")),
    }
}
