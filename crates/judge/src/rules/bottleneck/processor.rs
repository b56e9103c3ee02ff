//! Processors of the system under test: a node's, a quota's, one thread's.

use super::{AT_LIMIT, View, list};
use crate::{Finding, Severity};
use tidemark_measure::observation::Kind;
use tidemark_measure::units;

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
    let stopped: Vec<_> = view.means(Kind::Cgroup, "throttled_periods");
    let stopped: Vec<_> =
        stopped.into_iter().filter(|(process, share)| *process != GENERATOR && *share >= THROTTLED).collect();
    if stopped.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = stopped.iter().map(|(process, _)| *process).collect();
    let most = stopped.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let title = format!(
        "the processor quota of {} stopped it in up to {} of its periods",
        list(&names),
        units::percent(most)
    );
    let line = |(process, share): &(&str, f64)| {
        format!(
            "{process}: stopped in {} of the periods, used {:.2} cores of {:.2} allowed, {:.2} threads \
                stopped on average",
            units::percent(*share),
            view.level(Kind::Process, process, "cpu"),
            view.level(Kind::Cgroup, process, "cpu_limit"),
            view.level(Kind::Cgroup, process, "throttled_time")
        )
    };
    let finding = view.finding(Severity::Warning, "limit-cgroup", title).detail(
        "The control group's quota, not the machine, is the limit. Raise it by half and run again: if \
            this is the bottleneck, throughput follows.",
    );
    vec![finding.evidences(stopped.iter().map(line))]
}

/// Whether the node's processors were used up, and by whom.
pub(super) fn node(view: &View<'_>) -> Vec<Finding> {
    let busy = view.level(Kind::Cpu, "all", "busy");
    if busy < BUSY {
        return Vec::new();
    }
    let level = |metric| view.level(Kind::Cpu, "all", metric);
    let title = format!("the processors were {} busy", units::percent(busy));
    let of = view.cores().map_or(String::new(), |cores| format!(" = {:.2} of {cores} cores", busy * cores));
    let mut finding = view
        .finding(Severity::Warning, "limit-processor", title)
        .detail(
            "Add processors, or move a part (the load generator first, if it is on the same node) to \
            another machine: if this is the bottleneck, throughput follows.",
        )
        .evidence(format!(
            "busy {}{of}: programs {}, kernel {}, interrupts {}; waiting for disks {}",
            units::percent(busy),
            units::percent(level("user")),
            units::percent(level("system")),
            units::percent(level("irq")),
            units::percent(level("iowait"))
        ));
    let mut users = view.means(Kind::Process, "cpu");
    users.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let known: f64 = users.iter().map(|(_, cores)| cores).sum();
    users.truncate(USERS);
    if !users.is_empty() {
        let mut users: Vec<String> =
            users.iter().map(|(process, cores)| format!("{process} {cores:.2} cores")).collect();
        let others = view.cores().map_or(0.0, |cores| busy * cores) - known;
        users.extend((others >= OTHERS).then(|| format!("what is not observed {others:.2} cores")));
        finding = finding.evidence(format!("used by: {}", users.join(", ")));
    }
    let waiting = view.level(Kind::Pressure, "cpu", "some");
    finding = finding
        .evidence(format!("some task waited for a processor for {} of the time", units::percent(waiting)));
    if level("steal") >= STEAL {
        finding =
            finding.evidence(format!("the hypervisor took {} of the time", units::percent(level("steal"))));
    }
    vec![finding]
}

/// Whether one thread of a daemon used a whole core, or a daemon all processors that it may run on.
pub(super) fn one_thread(view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let daemons = view.means(Kind::Process, "busiest_thread");
    let full: Vec<_> =
        daemons.into_iter().filter(|(process, share)| *process != GENERATOR && *share >= AT_LIMIT).collect();
    if let Some((first, share)) = full.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        let title = format!("one thread of {first} used {} of a core", units::percent(*share));
        let line = |(process, share): &(&str, f64)| {
            let cores = view.level(Kind::Process, process, "cpu");
            format!(
                "{process}: busiest thread {} of a core, all its threads {cores:.2} cores",
                units::percent(*share)
            )
        };
        findings.push(
            view.finding(Severity::Warning, "limit-process", title)
                .detail(
                    "More processors do not help one thread. Give the daemon more shards or threads for \
                    this work, or run more daemons, and run again.",
                )
                .evidences(full.iter().map(line)),
        );
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
        let title =
            format!("{process} used {} of the {limit:.2} cores that it may", units::percent(used / limit));
        findings.push(
            view.finding(Severity::Warning, "limit-process", title)
                .detail(
                    "Its quota or its processors' list is the limit, not the machine. Raise it and run \
                    again: if this is the bottleneck, throughput follows.",
                )
                .evidence(format!(
                    "{process}: mean {used:.2} cores of {limit:.2} allowed = {}",
                    units::percent(used / limit)
                )),
        );
    }
    findings
}
