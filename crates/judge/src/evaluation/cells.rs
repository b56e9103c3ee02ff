//! Runs into cells: what every arm did under every load at every level, over all repeats.

use super::members::Entry;
use super::pooled::{Pooled, labels};
use super::service::{Check, checks, concerning, side_of, side_of_cell};
use super::{Cell, Estimate, OperationEstimates};
use crate::Finding;
use crate::knee::Side;
use crate::statistics::estimate;
use std::cmp::Ordering;
use std::collections::HashMap;
use tidemark_measure::evaluation::{Evaluation, Level};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, Stage, Work};

/// A cell, and what else the judgement of the evaluation needs of it.
pub(super) struct Measured<'a> {
    pub(super) cell: Cell,
    /// The arm's place in the evaluation.
    pub(super) arm: usize,
    /// The load's.
    pub(super) load: usize,
    /// Whether it is an open loop.
    pub(super) open: bool,
    /// The turn of every repeat, and when its run was begun: nanoseconds since 1970 UTC, or 0.
    pub(super) turns: Vec<u32>,
    pub(super) begun: Vec<u64>,
    /// Its number: those of one number have the same seed.
    pub(super) numbers: Vec<u32>,
    /// The conditions of the service level.
    pub(super) checks: Vec<Check>,
    /// On which side of it every repeat was; none without one.
    pub(super) sides: Vec<Side>,
    /// What makes it invalid, once for each run.
    pub(super) faults: Vec<&'a Finding>,
}

impl Measured<'_> {
    /// The number that tells how well it did: throughput, or the mean response time of an open loop, whose throughput is
    /// given.
    pub(super) fn main(&self) -> &Estimate {
        match &self.cell.mean_ns {
            Some(mean_ns) if self.open => mean_ns,
            _ => &self.cell.throughput,
        }
    }

    /// Whether that number is a response time.
    pub(super) fn has_time_as_main(&self) -> bool {
        self.open && self.cell.mean_ns.is_some()
    }
}

/// The runs of one cell, and the stages in them.
struct Gathered<'r, 'a> {
    arm: usize,
    load: usize,
    subject: String,
    level: Level,
    /// When its level was first seen among those of its load and subject.
    first: usize,
    runs: Vec<(&'r Entry<'a>, Vec<&'a Stage>)>,
}

impl Gathered<'_, '_> {
    /// The level of its runs, without the axes of a sweep within them.
    fn own_level(&self) -> Option<&Level> {
        self.runs.first().map(|(entry, _)| &entry.member.level)
    }
}

/// All cells, in the order of loads, subjects, levels and arms.
pub(super) fn measure<'r>(evaluation: &Evaluation, entries: &'r [Entry<'_>]) -> Vec<Measured<'r>> {
    let mut cells = gather(entries);
    let rank = subject_ranks(&cells);
    cells.sort_by(|left, right| {
        let subject = |cell: &Gathered<'_, '_>| rank[&(cell.load, cell.subject.clone())];
        let load = left.load.cmp(&right.load).then_with(|| subject(left).cmp(&subject(right)));
        load.then_with(|| by_level(evaluation, left, right)).then_with(|| left.arm.cmp(&right.arm))
    });
    // A load with a single subject needs no name for it.
    let named = |load: usize| rank.keys().filter(|(other, _)| *other == load).count() > 1;
    cells
        .into_iter()
        .map(|mut cell| {
            if !named(cell.load) {
                cell.subject.clear();
            }
            weigh(evaluation, cell)
        })
        .collect()
}

fn gather<'r, 'a>(entries: &'r [Entry<'a>]) -> Vec<Gathered<'r, 'a>> {
    let mut cells: Vec<Gathered<'r, 'a>> = Vec::new();
    let mut places: HashMap<(usize, usize, String, Level), usize> = HashMap::new();
    let mut firsts: HashMap<(usize, String, Level), usize> = HashMap::new();
    for entry in entries {
        for part in &entry.parts {
            let level: Level = entry.member.level.iter().chain(&part.axes).cloned().collect();
            let seen = firsts.len();
            let first = *firsts.entry((entry.load, part.subject.clone(), level.clone())).or_insert(seen);
            let key = (entry.arm, entry.load, part.subject.clone(), level.clone());
            let place = *places.entry(key).or_insert_with(|| {
                let (arm, load, subject) = (entry.arm, entry.load, part.subject.clone());
                cells.push(Gathered { arm, load, subject, level, first, runs: Vec::new() });
                cells.len() - 1
            });
            cells[place].runs.push((entry, part.stages.clone()));
        }
    }
    cells
}

/// The order of the subjects of each load: that in which they were first seen.
fn subject_ranks(cells: &[Gathered<'_, '_>]) -> HashMap<(usize, String), usize> {
    let mut ranks = HashMap::new();
    for cell in cells {
        let next = ranks.len();
        ranks.entry((cell.load, cell.subject.clone())).or_insert(next);
    }
    ranks
}

/// The document's order; that of numbers for what a search has found; that of time for the points of a sweep.
fn by_level(evaluation: &Evaluation, left: &Gathered<'_, '_>, right: &Gathered<'_, '_>) -> Ordering {
    let (Some(left_level), Some(right_level)) = (left.own_level(), right.own_level()) else {
        return Ordering::Equal;
    };
    let listed = &evaluation.loads[left.load].levels;
    let place = |level: &Level| listed.iter().position(|other| other == level).unwrap_or(usize::MAX);
    let numbers = |level: &Level| -> Vec<f64> {
        level.iter().map(|axis| axis.value.number().unwrap_or(f64::INFINITY)).collect()
    };
    let by_number = || {
        let (left, right) = (numbers(left_level), numbers(right_level));
        let differs =
            left.iter().zip(&right).map(|(one, other)| one.total_cmp(other)).find(|order| order.is_ne());
        differs.unwrap_or_else(|| left.len().cmp(&right.len()))
    };
    let order = place(left_level).cmp(&place(right_level));
    order.then_with(by_number).then_with(|| left.first.cmp(&right.first))
}

fn weigh<'r>(evaluation: &Evaluation, mut gathered: Gathered<'r, '_>) -> Measured<'r> {
    let load = &evaluation.loads[gathered.load];
    let level = load.service_level.as_ref();
    let mut repeats = repeats(evaluation, &gathered);
    let side = |level| repeats.iter().map(move |one| side_of(level, &one.stages, &one.findings));
    let sides: Vec<Side> = level.into_iter().flat_map(side).collect();
    // A search does again what cannot tell: its numbers are those of the generator.
    if load.search.is_some() && sides.iter().any(|side| *side != Side::Unclear) {
        let unclear =
            |run: u64| repeats.iter().zip(&sides).any(|(one, side)| one.run == run && *side == Side::Unclear);
        gathered.runs.retain(|(entry, _)| !unclear(entry.run.id));
        let mut side = sides.iter();
        repeats.retain(|_| side.next() != Some(&Side::Unclear));
    }
    let all: Vec<Pooled<'_>> = repeats.iter().map(|one| Pooled::new(&one.stages, |_| true)).collect();
    let (total, failed) = all
        .iter()
        .map(Pooled::counts)
        .fold((0u64, 0u64), |sum, count| (sum.0.saturating_add(count.0), sum.1.saturating_add(count.1)));
    let mut response = Histogram::new();
    all.iter().for_each(|one| one.add_to(&mut response));
    let stages: Vec<Vec<&Stage>> = repeats.iter().map(|one| one.stages.clone()).collect();
    let faults = faults(&gathered);
    let checks = level.and_then(|level| checks(level, &stages)).unwrap_or_default();
    let meets = match side_of_cell(&sides, &checks) {
        Side::Within => Some(true),
        Side::Outside => Some(false),
        Side::Unclear => None,
    };
    let cell = Cell {
        arm: evaluation.arms[gathered.arm].name.clone(),
        load: load.name.clone(),
        subject: gathered.subject,
        level: gathered.level,
        runs: gathered.runs.iter().map(|(entry, _)| entry.run.id).collect(),
        throughput: each(&all, Pooled::throughput),
        bandwidth: each(&all, Pooled::bandwidth),
        mean_ns: known(&all, Pooled::mean_ns),
        p50_ns: known(&all, |one| one.quantile_ns(0.5)),
        p95_ns: known(&all, |one| one.quantile_ns(0.95)),
        p99_ns: known(&all, |one| one.quantile_ns(0.99)),
        fairness: known(&all, Pooled::fairness),
        operations: operations(&stages),
        total,
        failed,
        meets,
        invalid: !faults.is_empty(),
        response,
    };
    Measured {
        cell,
        arm: gathered.arm,
        load: gathered.load,
        open: all.iter().any(Pooled::is_open),
        turns: repeats.iter().map(|one| one.turn).collect(),
        begun: repeats.iter().map(|one| one.begun).collect(),
        numbers: repeats.iter().map(|one| one.number).collect(),
        checks,
        sides,
        faults,
    }
}

/// One measurement of a cell.
struct Repeat<'r, 'a> {
    /// The run's number.
    run: u64,
    turn: u32,
    /// When the run was begun: nanoseconds since 1970 UTC, or 0.
    begun: u64,
    number: u32,
    stages: Vec<&'a Stage>,
    /// What the rules say of it.
    findings: Vec<&'r Finding>,
}

/// Every repeat. Repeats within a run count as such only when the evaluation has none of its own: they share whatever was
/// particular to their run.
fn repeats<'r, 'a>(evaluation: &Evaluation, gathered: &Gathered<'r, 'a>) -> Vec<Repeat<'r, 'a>> {
    let repeat = |entry: &'r Entry<'a>, stages: Vec<&'a Stage>| {
        let findings = stages.iter().flat_map(|stage| concerning(&entry.findings, stage)).collect();
        let (run, begun) = (entry.run.id, entry.run.started_unix_ns);
        let (turn, number) = (entry.member.turn, entry.member.repeat);
        Repeat { run, turn, begun, number, stages, findings }
    };
    let runs = gathered.runs.iter();
    match evaluation.repeats {
        0 | 1 => {
            runs.flat_map(|(entry, stages)| stages.iter().map(|stage| repeat(entry, vec![*stage]))).collect()
        }
        _ => runs.map(|(entry, stages)| repeat(entry, stages.clone())).collect(),
    }
}

/// What the rules say against a cell's numbers: each rule once for each run.
fn faults<'r>(gathered: &Gathered<'r, '_>) -> Vec<&'r Finding> {
    let mut faults = Vec::new();
    for (entry, stages) in &gathered.runs {
        let of_run = |finding: &Finding| finding.stage.is_none() && finding.stages.is_empty();
        let concerns = |finding: &&Finding| {
            finding.invalidates && (of_run(finding) || stages.iter().any(|stage| finding.concerns(stage)))
        };
        let mut rules: Vec<&str> = Vec::new();
        for finding in entry.findings.iter().filter(concerns) {
            if !rules.contains(&finding.rule()) {
                rules.push(finding.rule());
                faults.push(finding);
            }
        }
    }
    faults
}

/// Whether a finding says that an open loop's rate was not reached.
pub(super) fn is_unreached(finding: &Finding) -> bool {
    finding.what.is_offered_rate() && finding.invalidates
}

/// Whether an open loop had no worker free in some second of its window.
pub(super) fn overloaded(work: &Work) -> bool {
    let most = work.series.iter().map(|second| second.in_flight).max().unwrap_or(0);
    work.offered_rate.is_some() && u64::from(most) >= work.slots()
}

fn each<'a>(all: &[Pooled<'a>], value: impl Fn(&Pooled<'a>) -> f64) -> Estimate {
    estimate(all.iter().map(value).collect())
}

fn known<'a>(all: &[Pooled<'a>], value: impl Fn(&Pooled<'a>) -> Option<f64>) -> Option<Estimate> {
    let values: Vec<f64> = all.iter().filter_map(value).collect();
    (!values.is_empty()).then(|| estimate(values))
}

/// The numbers of each operation, when there are several.
fn operations(repeats: &[Vec<&Stage>]) -> Vec<OperationEstimates> {
    let labels = labels(repeats.iter().flatten().copied());
    let several = labels.len() > 1;
    let of = |label: &str| {
        let wanted = |operation: &Operation| operation.label == label;
        let all: Vec<_> = repeats.iter().map(|stages| Pooled::new(stages, wanted)).collect();
        OperationEstimates {
            label: label.to_owned(),
            throughput: each(&all, Pooled::throughput),
            bandwidth: each(&all, Pooled::bandwidth),
            mean_ns: known(&all, Pooled::mean_ns),
            p95_ns: known(&all, |one| one.quantile_ns(0.95)),
            p99_ns: known(&all, |one| one.quantile_ns(0.99)),
        }
    };
    labels.into_iter().filter(|_| several).map(of).collect()
}
