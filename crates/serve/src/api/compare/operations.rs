//! What both groups did, operation by operation: whether there is anything to compare, and what to draw.

use std::collections::BTreeSet;
use tidemark_controller::api::{ComparedOperation, ComparedRun, ComparedSecond, ComparedSide};
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::kind::OperationClass;
use tidemark_measure::record::{Operation, Run, Second, Stage, Work};

/// Points of a run's line, at most: more cannot be seen.
const MOST_SECONDS: usize = 600;

/// Where the curve of latencies is drawn through.
const SHARES: [f64; 15] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// Operations of one group that a sentence names, at most.
const NAMED: usize = 6;

/// An operation of a load, and what both groups did of it.
struct Found {
    load: String,
    label: String,
    class: OperationClass,
    /// Whether it was done to volumes: what is done to objects is something else, whatever it is called.
    on_volumes: bool,
    groups: [Option<Gathered>; 2],
}

/// What one group did of an operation so far.
#[derive(Default)]
struct Gathered {
    side: ComparedSide,
    response: Histogram,
    /// Means over all operations, and percentiles, as another tool has worked them out; of a single run.
    reported: (Option<f64>, Vec<(f64, f64)>),
}

/// The measured operations of all runs, in their order; the first arm of the evaluation is the first group.
pub(super) fn compared(evaluation: &Evaluation, runs: &[Run]) -> Vec<ComparedOperation> {
    let mut found: Vec<Found> = Vec::new();
    let several_loads = evaluation.loads.len() > 1;
    let on_volumes = |stage: &Stage| stage.proof.is_some();
    let kinds: BTreeSet<bool> = runs.iter().flat_map(measured).map(|(stage, _)| on_volumes(stage)).collect();
    for run in runs {
        let Some(member) = &run.member else { continue };
        let second = evaluation.arms.first().is_some_and(|arm| arm.name != member.arm);
        let stages: Vec<(&Stage, &Work)> = measured(run).collect();
        for (stage, work) in &stages {
            let load = if several_loads { member.load.as_str() } else { "" };
            let kind = if kinds.len() > 1 && on_volumes(stage) { "on volumes" } else { "" };
            let load = place([load, kind], stage, work, &stages);
            for (index, operation) in work.operations.iter().enumerate() {
                let is = |one: &Found| {
                    (&one.load, &one.label, one.on_volumes) == (&load, &operation.label, on_volumes(stage))
                };
                let at = found.iter().position(is).unwrap_or_else(|| {
                    found.push(Found {
                        load: load.clone(),
                        label: operation.label.clone(),
                        class: operation.class.clone(),
                        on_volumes: on_volumes(stage),
                        groups: [None, None],
                    });
                    found.len() - 1
                });
                let gathered = found[at].groups[usize::from(second)].get_or_insert_default();
                gathered.add(run.id, work, index, operation);
            }
        }
    }
    let one = |Found { load, label, groups: [a, b], .. }: Found| ComparedOperation {
        load,
        operation: label,
        a: a.map(Gathered::finish),
        b: b.map(Gathered::finish),
    };
    paired(found).into_iter().map(one).collect()
}

/// The same with what differs in its name alone put together: COSBench's `read` and our `get`. Only where nothing else of its
/// class was done on one side alone.
fn paired(mut found: Vec<Found>) -> Vec<Found> {
    let only = |one: &Found, group: usize| one.groups[group].is_some() && one.groups[1 - group].is_none();
    let alike = |one: &Found, other: &Found| {
        (&one.load, &one.class, one.on_volumes) == (&other.load, &other.class, other.on_volumes)
    };
    let mut at = 0;
    while at < found.len() {
        let others = |group| {
            let like = |index: &usize| only(&found[*index], group) && alike(&found[at], &found[*index]);
            (0..found.len()).filter(like).collect::<Vec<_>>()
        };
        if let ([first], [second]) = (&others(0)[..], &others(1)[..]) {
            let (first, second) = (*first, *second);
            let name = format!("{} / {}", found[first].label, found[second].label);
            let group = found[second].groups[1].take();
            found[first].groups[1] = group;
            found[first].label = name;
            found.remove(second);
        }
        at += 1;
    }
    found
}

fn measured(run: &Run) -> impl Iterator<Item = (&Stage, &Work)> {
    let works = run.stages.iter().flat_map(|stage| stage.works.iter().map(move |work| (stage, work)));
    works.filter(|(_, work)| work.kind.measures())
}

/// What tells a work from the others of its run: nothing where it is the only one.
fn place(head: [&str; 2], stage: &Stage, work: &Work, all: &[(&Stage, &Work)]) -> String {
    let mut parts = head.map(str::to_owned).to_vec();
    if let Some(cell) = &stage.cell {
        parts.extend(cell.axes.iter().map(|axis| format!("{} {}", axis.name, axis.value)));
    } else if all.len() > 1 {
        parts.push(stage.name.clone());
    }
    if stage.works.len() > 1 {
        parts.push(work.name.clone());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

impl Gathered {
    fn add(&mut self, run: u64, work: &Work, index: usize, operation: &Operation) {
        let (side, seconds) = (&mut self.side, work.window_seconds());
        if side.runs.is_empty() {
            side.config.clone_from(&operation.config);
            side.workers = work.workers;
            self.reported.0 = operation.mean_ns();
            let known = SHARES.iter().filter_map(|share| Some((*share, operation.quantile_ns(*share)?)));
            self.reported.1 = known.collect();
        } else {
            // Of two such runs nobody can tell what both together would have.
            self.reported = (None, Vec::new());
        }
        side.ok = side.ok.saturating_add(operation.tally.ok);
        side.failed = side.failed.saturating_add(operation.tally.failed());
        side.throughput += operation.throughput(seconds);
        side.bandwidth += operation.bandwidth(seconds);
        self.response.add(&operation.tally.response);
        side.runs.push(ComparedRun { run, seconds: line(work, index) });
    }

    fn finish(self) -> ComparedSide {
        let Self { mut side, response, reported } = self;
        let runs = {
            let mut runs: Vec<u64> = side.runs.iter().map(|run| run.run).collect();
            runs.dedup();
            runs.len().max(1) as f64
        };
        side.throughput /= runs;
        side.bandwidth /= runs;
        let us = |ns: f64| ns / 1000.0;
        if response.is_empty() {
            side.mean_us = reported.0.map(us);
            side.percentiles_us = reported.1.into_iter().map(|(share, ns)| (share, us(ns))).collect();
        } else {
            side.mean_us = Some(us(response.mean()));
            let at = |share: f64| (share, us(response.quantile(share) as f64));
            side.percentiles_us = SHARES.into_iter().map(at).collect();
        }
        side
    }
}

/// An operation in the whole seconds of the window, in few enough points. What is done outside is not counted.
fn line(work: &Work, operation: usize) -> Vec<ComparedSecond> {
    let measured = work.series.iter().filter(|second| work.measures_second(second.index));
    let measured: Vec<&Second> = measured.collect();
    let step = measured.len().div_ceil(MOST_SECONDS).max(1);
    let point = |seconds: &[&Second]| {
        let own = || seconds.iter().filter_map(|second| second.operations.get(operation));
        ComparedSecond {
            at: seconds.first().map_or(0, |second| second.index),
            throughput: own().map(|second| second.ok as f64).sum::<f64>() / seconds.len() as f64,
            p99_us: own().map(|second| second.p99_ns).max().unwrap_or(0) as f64 / 1000.0,
        }
    };
    measured.chunks(step).map(point).collect()
}

/// Why nothing can be compared, if that is so: no operation was done on both sides.
pub(super) fn nothing_comparable(operations: &[ComparedOperation]) -> Option<String> {
    if operations.iter().any(|one| one.a.is_some() && one.b.is_some()) {
        return None;
    }
    let named = |side: fn(&ComparedOperation) -> bool| {
        let name = |one: &ComparedOperation| match one.load.is_empty() {
            true => one.operation.clone(),
            false => format!("{} ({})", one.operation, one.load),
        };
        let mut names: Vec<String> = operations.iter().filter(|one| side(one)).map(name).collect();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        match (names.is_empty(), more) {
            (true, _) => "nothing".to_owned(),
            (_, 0) => names.join(", "),
            _ => format!("{} and {more} more", names.join(", ")),
        }
    };
    Some(format!(
        "Nothing comparable: A measured {}; B measured {}. Choose runs that measured the same operations.",
        named(|one| one.a.is_some()),
        named(|one| one.b.is_some())
    ))
}
