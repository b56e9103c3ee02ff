//! Processors of the system under test: a node's, a quota's, one thread's.

use super::{AT_LIMIT, View};
use crate::words::limits::{Limit, ProcessUse};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;

/// The generator's process, of which other rules speak.
pub(super) const GENERATOR: &str = "tidemark";

/// A quota that ends more than one period in twenty with a stop is felt in every higher percentile.
pub(super) const THROTTLED: f64 = 0.05;

/// With less than 15 % of a node's processors idle, tasks wait for each other.
const BUSY: f64 = 0.85;

/// Time taken by the hypervisor that is worth telling.
const STEAL: f64 = 0.02;

/// Processes that are named as users of processors.
const USERS: usize = 6;

/// Cores used by what is not observed that are worth a word.
const OTHERS: f64 = 0.1;

/// Whether daemons were stopped by their quota of processor time.
pub(super) fn throttled(view: &View<'_>) -> Vec<Finding> {
    let stopped = view.means(Kind::Cgroup, "throttled_periods").into_iter();
    let stopped = stopped.filter(|(process, share)| *process != GENERATOR && *share >= THROTTLED);
    let stopped: Vec<_> = stopped.map(|(process, share)| of_process(view, process, share)).collect();
    match stopped.is_empty() {
        true => Vec::new(),
        false => vec![view.finding(Severity::Warning, Limit::Quota { stopped })],
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

/// Whether the node's processors were used up, and by whom.
pub(super) fn node(view: &View<'_>) -> Vec<Finding> {
    let busy = view.level(Kind::Cpu, "all", "busy");
    if busy < BUSY {
        return Vec::new();
    }
    let level = |metric| view.level(Kind::Cpu, "all", metric);
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
        waiting: view.level(Kind::Pressure, "cpu", "some"),
        steal: Some(level("steal")).filter(|share| *share >= STEAL),
    };
    vec![view.finding(Severity::Warning, what)]
}

/// Whether one thread of a daemon used a whole core, or a daemon all processors that it may run on.
pub(super) fn one_thread(view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let daemons = view.means(Kind::Process, "busiest_thread");
    let full: Vec<_> =
        daemons.into_iter().filter(|(process, share)| *process != GENERATOR && *share >= AT_LIMIT).collect();
    if let Some((first, share)) = full.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        let what = Limit::OneThread {
            process: (*first).to_owned(),
            share: *share,
            daemons: full.iter().map(|(process, share)| of_process(view, process, *share)).collect(),
        };
        findings.push(view.finding(Severity::Warning, what));
    }
    let cores = view.cores().unwrap_or(f64::MAX);
    for (process, used) in view.means(Kind::Process, "cpu") {
        let quota = view.mean(Kind::Cgroup, process, "cpu_limit");
        let allowed = view.mean(Kind::Process, process, "allowed").filter(|allowed| *allowed < cores);
        let stopped = view.level(Kind::Cgroup, process, "throttled_periods") >= THROTTLED;
        let Some(limit) = quota.into_iter().chain(allowed).reduce(f64::min) else { continue };
        if process == GENERATOR || stopped || limit <= 0.0 || used < AT_LIMIT * limit {
            continue;
        }
        let what = Limit::ProcessAtLimit { process: process.to_owned(), used, limit };
        findings.push(view.finding(Severity::Warning, what));
    }
    findings
}
