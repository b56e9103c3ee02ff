//! What both groups did, operation by operation: whether there is anything to compare, and what to draw.

use tidemark_controller::api::{ComparedOperation, ComparedRun, ComparedSecond, ComparedSide};
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, Run, Stage, Work};

/// Points of a run's line, at most: more cannot be seen.
const MOST_SECONDS: usize = 600;

/// Where the curve of latencies is drawn through.
const SHARES: [f64; 15] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0];

/// Operations of one group that a sentence names, at most.
const NAMED: usize = 6;

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
    let mut found: Vec<(String, String, [Option<Gathered>; 2])> = Vec::new();
    let several_loads = evaluation.loads.len() > 1;
    for run in runs {
        let Some(member) = &run.member else { continue };
        let second = evaluation.arms.first().is_some_and(|arm| arm.name != member.arm);
        let stages: Vec<(&Stage, &Work)> = measured(run).collect();
        for (stage, work) in &stages {
            let load = if several_loads { member.load.as_str() } else { "" };
            let load = place(load, stage, work, &stages);
            for (index, operation) in work.operations.iter().enumerate() {
                let known = found.iter().position(|(l, o, _)| (l, o) == (&load, &operation.label));
                let at = known.unwrap_or_else(|| {
                    found.push((load.clone(), operation.label.clone(), [None, None]));
                    found.len() - 1
                });
                let gathered = found[at].2[usize::from(second)].get_or_insert_default();
                gathered.add(run.id, work, index, operation);
            }
        }
    }
    let one = |(load, operation, [a, b]): (String, String, [Option<Gathered>; 2])| ComparedOperation {
        load,
        operation,
        a: a.map(Gathered::finish),
        b: b.map(Gathered::finish),
    };
    found.into_iter().map(one).collect()
}

fn measured(run: &Run) -> impl Iterator<Item = (&Stage, &Work)> {
    let works = run.stages.iter().flat_map(|stage| stage.works.iter().map(move |work| (stage, work)));
    works.filter(|(_, work)| work.kind.measures())
}

/// What tells a work from the others of its run: nothing where it is the only one.
fn place(load: &str, stage: &Stage, work: &Work, all: &[(&Stage, &Work)]) -> String {
    let mut parts = vec![load.to_owned()];
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

/// An operation second by second, in few enough points.
fn line(work: &Work, operation: usize) -> Vec<ComparedSecond> {
    let step = work.series.len().div_ceil(MOST_SECONDS).max(1);
    let point = |seconds: &[tidemark_measure::record::Second]| {
        let own = || seconds.iter().filter_map(|second| second.operations.get(operation));
        ComparedSecond {
            at: seconds.first().map_or(0, |second| second.index),
            throughput: own().map(|second| second.ok as f64).sum::<f64>() / seconds.len() as f64,
            p99_us: own().map(|second| second.p99_ns).max().unwrap_or(0) as f64 / 1000.0,
        }
    };
    work.series.chunks(step).map(point).collect()
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
