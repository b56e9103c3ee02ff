//! Processors of the system under test: a node's, a quota's, one thread's.

use super::{AT_LIMIT, Process, View};
use crate::words::limits::{Limit, ProcessUse};
use crate::words::standing::Standing;
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

/// A quota that ends more than one period in twenty with a stop is felt in every higher percentile.
pub(super) const THROTTLED: f64 = 0.05;

/// With less than 15 % of a node's processors idle, tasks wait for each other.
const BUSY: f64 = 0.85;

/// Time taken by the hypervisor that is worth telling.
const STEAL: f64 = 0.02;

/// Processes that are named as users of processors.
const USERS: usize = 6;

/// The load used a node's processors up if it used this share of what is used: with less, others were in its way.
const OWN_LEAST: f64 = 0.75;

/// Cores used by what is not observed that are worth a word.
const OTHERS: f64 = 0.1;

/// Whether daemons were stopped by their quota of processor time.
pub(super) fn throttled(view: &View<'_>) -> Vec<Finding> {
    let stopped = view.means(Kind::Cgroup, "throttled_periods").into_iter();
    let stopped = stopped.filter(|(process, share)| !view.is_generator(process) && *share >= THROTTLED);
    let stopped: Vec<_> = stopped.map(|(process, share)| of_process(view, process, share)).collect();
    match stopped.is_empty() {
        true => Vec::new(),
        false => vec![view.caused(Limit::Quota { stopped })],
    }
}

fn of_process(view: &View<'_>, process: &str, share: f64) -> ProcessUse {
    ProcessUse {
        process: process.to_owned(),
        share,
        cores: view.level(Kind::Process, process, "cpu"),
        allowed: view.level(Kind::Cgroup, process, "cpu_limit"),
        stopped_threads: view.level(Kind::Cgroup, process, "throttled_time"),
    }
}

/// Cores that a node used, and what of it.
pub(super) struct Use {
    pub(super) busy: f64,
    pub(super) cores: f64,
    /// By the generator and the observed processes.
    own: f64,
    /// By others with low priority: it gives way to everybody else.
    gives_way: f64,
    irq: f64,
}

impl Use {
    pub(super) fn of(view: &View<'_>) -> Option<Self> {
        let cores = view.cores()?;
        let level = |metric| view.level(Kind::Cpu, "all", metric) * cores;
        let (busy, irq) = (level("busy"), level("irq"));
        let own: f64 = view.means(Kind::Process, "cpu").iter().map(|(_, cores)| cores).sum();
        let gives_way = level("nice").min(busy - own - irq).max(0.0);
        Some(Self { busy, cores, own, gives_way, irq })
    }

    /// Cores that nobody gives way on.
    pub(super) fn firm(&self) -> f64 {
        self.busy - self.gives_way
    }

    /// The share of the generator and of the observed processes. Nobody knows for whom interrupts were.
    fn own_share(&self) -> f64 {
        let used = if self.firm() >= BUSY * self.cores { self.firm() } else { self.busy };
        (self.own / (used - self.irq).max(f64::MIN_POSITIVE)).min(1.0)
    }

    /// Whether the load used the processors up, as far as anybody did.
    fn is_own(&self) -> bool {
        self.firm() >= BUSY * self.cores && self.own_share() >= OWN_LEAST
    }
}

/// Whether the node's processors were used up, and by whom.
pub(super) fn node(view: &View<'_>) -> Vec<Finding> {
    let busy = view.level(Kind::Cpu, "all", "busy");
    if busy < BUSY {
        return Vec::new();
    }
    let level = |metric| view.level(Kind::Cpu, "all", metric);
    let used = Use::of(view);
    let mut users = view.means(Kind::Process, "cpu");
    users.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let known: f64 = users.iter().map(|(_, cores)| cores).sum();
    users.truncate(USERS);
    let others = view.cores().map(|cores| busy * cores - known);
    let what = Limit::Processors {
        busy,
        cores: view.cores(),
        user: level("user"),
        system: level("system"),
        irq: level("irq"),
        iowait: level("iowait"),
        users: users.into_iter().map(|(process, cores)| (process.to_owned(), cores)).collect(),
        not_observed: others.filter(|cores| *cores >= OTHERS),
        gives_way: used.as_ref().map(|used| used.gives_way).filter(|cores| *cores >= OTHERS),
        waiting: view.level(Kind::Pressure, "cpu", "some"),
        steal: Some(level("steal")).filter(|share| *share >= STEAL),
    };
    let standing = match used {
        Some(used) if used.is_own() => view.standing(Some(1.0)),
        Some(used) => Standing::Others { share: 1.0 - used.own_share() },
        None => Standing::Unknown,
    };
    vec![view.busy(Severity::Warning, what, standing)]
}

/// Whether one thread of a daemon used a whole core, or a daemon all processors that it may run on.
pub(super) fn one_thread(view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let daemons = view.means(Kind::Process, "busiest_thread");
    // A server in the generator's process is what is busy there, where the generator's own threads are not.
    let serves = view.works().any(|work| work.in_process);
    let rests = |process: &Process| (process.cores / process.threads.max(1) as f64) < AT_LIMIT;
    let generators = view.generators();
    let is_server = |process: &str| match generators.iter().find(|generator| generator.subject == process) {
        Some(generator) => serves && rests(generator),
        None => !view.is_generator(process),
    };
    let full: Vec<_> =
        daemons.into_iter().filter(|(process, share)| is_server(process) && *share >= AT_LIMIT).collect();
    if let Some((first, share)) = full.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        let what = Limit::OneThread {
            process: (*first).to_owned(),
            share: *share,
            daemons: full.iter().map(|(process, share)| of_process(view, process, *share)).collect(),
        };
        findings.push(view.caused(what));
    }
    let cores = view.cores().unwrap_or(f64::MAX);
    for (process, used) in view.means(Kind::Process, "cpu") {
        let quota = view.mean(Kind::Cgroup, process, "cpu_limit");
        let allowed = view.mean(Kind::Process, process, "allowed").filter(|allowed| *allowed < cores);
        let stopped = view.level(Kind::Cgroup, process, "throttled_periods") >= THROTTLED;
        let Some(limit) = quota.into_iter().chain(allowed).reduce(f64::min) else { continue };
        if view.is_generator(process) || stopped || limit <= 0.0 || used < AT_LIMIT * limit {
            continue;
        }
        let what = Limit::ProcessAtLimit { process: process.to_owned(), used, limit };
        findings.push(view.caused(what));
    }
    findings
}
