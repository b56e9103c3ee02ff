//! Operations taken together: all of a repeat, or those of one label.

use crate::fairness::fairness;
use crate::sweep::{Point, Sweep, data_operations, sweeps};
use tidemark_measure::axis::Axis;
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, Run, Stage, Work};
use tidemark_measure::service_level::Statistic;

/// Some operations of the stages that make one repeat.
pub(super) struct Pooled<'a> {
    operations: Vec<(&'a Work, &'a Operation)>,
    /// The window of the stage of each, seconds: that of its work that took longest. Rates of works that did not end
    /// together do not add up.
    windows: Vec<f64>,
    /// How many stages they are of: each is a measurement of its own, and rates are their mean.
    stages: usize,
    /// Their response times in one, where there are several and all of them are known.
    merged: Option<Histogram>,
}

impl<'a> Pooled<'a> {
    /// The data operations of some stages that are asked for.
    pub(super) fn new(stages: &[&'a Stage], wanted: impl Fn(&Operation) -> bool) -> Self {
        let (mut operations, mut windows) = (Vec::new(), Vec::new());
        for stage in stages {
            let all: Vec<_> = data_operations(stage).collect();
            let longest = all.iter().map(|(work, _)| work.window_seconds()).fold(0.0, f64::max);
            operations.extend(all.into_iter().filter(|(_, operation)| wanted(operation)));
            windows.resize(operations.len(), longest);
        }
        let nothing = |operation: &Operation| operation.tally.ok == 0 && operation.reported.is_none();
        let known = |operation: &Operation| !operation.tally.response.is_empty() || nothing(operation);
        let all_known = operations.iter().all(|(_, operation)| known(operation));
        let merged = (operations.len() > 1 && all_known).then(|| {
            let mut merged = Histogram::new();
            operations.iter().for_each(|(_, operation)| merged.add(&operation.tally.response));
            merged
        });
        Self {
            operations,
            windows,
            stages: stages.len().max(1),
            merged: merged.filter(|merged| !merged.is_empty()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Operations per second.
    pub(super) fn throughput(&self) -> f64 {
        self.rate(Operation::throughput)
    }

    /// Bytes per second.
    pub(super) fn bandwidth(&self) -> f64 {
        self.rate(Operation::bandwidth)
    }

    fn rate(&self, value: impl Fn(&Operation, f64) -> f64) -> f64 {
        let all = self.operations.iter().zip(&self.windows);
        all.map(|((_, operation), seconds)| value(operation, *seconds)).sum::<f64>() / self.stages as f64
    }

    /// The mean response time, nanoseconds. Without histograms it is the mean of the operations' means, each of which
    /// counts as much as its throughput.
    pub(super) fn mean_ns(&self) -> Option<f64> {
        if let Some(merged) = &self.merged {
            return Some(merged.mean());
        }
        if let [(_, operation)] = self.operations.as_slice() {
            return operation.mean_ns();
        }
        let mut weighed = self.operations.iter().map(|(work, operation)| {
            let weight = operation.throughput(work.window_seconds());
            if weight > 0.0 { Some((weight, weight * operation.mean_ns()?)) } else { Some((0.0, 0.0)) }
        });
        let (weight, sum) =
            weighed.try_fold((0.0, 0.0), |sum, pair| pair.map(|pair| (sum.0 + pair.0, sum.1 + pair.1)))?;
        (weight > 0.0).then_some(sum / weight)
    }

    /// The response time that a share of the operations does not exceed, nanoseconds. Without histograms it is that of the
    /// worst operation: percentiles of several cannot be put together.
    pub(super) fn quantile_ns(&self, fraction: f64) -> Option<f64> {
        match &self.merged {
            Some(merged) => Some(merged.quantile(fraction) as f64),
            None => {
                let known =
                    self.operations.iter().filter_map(|(_, operation)| operation.quantile_ns(fraction));
                known.max_by(f64::total_cmp)
            }
        }
    }

    /// A statistic of the response times, nanoseconds.
    pub(super) fn statistic_ns(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::Mean => self.mean_ns(),
            Statistic::Quantile(fraction) => self.quantile_ns(fraction),
        }
    }

    /// Jain's index of fairness over the instances or endpoints of each work, in the mean; `None` where no work has several.
    pub(super) fn fairness(&self) -> Option<f64> {
        let mut works: Vec<&Work> = self.operations.iter().map(|(work, _)| *work).collect();
        works.dedup_by(|one, other| std::ptr::eq(*one, *other));
        let indexes: Vec<f64> = works.into_iter().filter_map(fairness).map(|own| own.jain).collect();
        (!indexes.is_empty()).then(|| indexes.iter().sum::<f64>() / indexes.len() as f64)
    }

    /// Operations that ended, and those of them that failed.
    pub(super) fn counts(&self) -> (u64, u64) {
        let counts =
            self.operations.iter().map(|(_, operation)| (operation.tally.total(), operation.tally.failed()));
        counts.fold((0, 0), |sum, count| (sum.0.saturating_add(count.0), sum.1.saturating_add(count.1)))
    }

    /// Mean bytes of a successful operation; `None` where that is not known.
    pub(super) fn bytes_each(&self) -> Option<f64> {
        let sums = self.operations.iter().map(|(_, operation)| (operation.tally.ok, operation.tally.bytes));
        let (ok, bytes) = sums.fold((0.0, 0.0), |sum, one| (sum.0 + one.0 as f64, sum.1 + one.1 as f64));
        if ok > 0.0 && bytes > 0.0 {
            return Some(bytes / ok);
        }
        let (throughput, bandwidth) = (self.throughput(), self.bandwidth());
        (throughput > 0.0 && bandwidth > 0.0).then(|| bandwidth / throughput)
    }

    /// Adds the response times to those of other repeats.
    pub(super) fn add_to(&self, response: &mut Histogram) {
        self.operations.iter().for_each(|(_, operation)| response.add(&operation.tally.response));
    }

    /// Whether any of the operations is of an open loop.
    pub(super) fn is_open(&self) -> bool {
        self.operations.iter().any(|(work, _)| work.offered_rate.is_some())
    }
}

/// What a run did in all, of everything that it measured. Where it measured several cells of a sweep, rates and response times
/// are those of one of them: a mean of reads of 4 KiB and writes of 1 MiB is the speed of nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// The cell that rates and response times are of; `None` where they are of all operations.
    pub cell: Option<BestCell>,
    /// Operations per second, in the mean of the stages that measure.
    pub throughput: f64,
    /// Bytes per second, likewise.
    pub bandwidth: f64,
    /// The median of all operations together; that of the worst one where they cannot be put together.
    pub p50_ns: Option<f64>,
    /// The 99th percentile of all operations together; that of the worst one where they cannot be put together.
    pub p99_ns: Option<f64>,
    /// Operations that ended.
    pub operations: u64,
    /// Those that failed.
    pub failed: u64,
}

/// The cell of a run's sweeps with the most operations per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BestCell {
    /// What the sweep varies, as it is in this cell: `randread, 4 KiB, clients 4`.
    pub name: String,
    /// Of how many cells that measured something.
    pub of: usize,
}

/// A run in a few numbers, as those of cells are made.
pub fn totals(run: &Run) -> Totals {
    let measuring = run.stages.iter().filter(|stage| data_operations(stage).next().is_some());
    let all = Pooled::new(&measuring.collect::<Vec<_>>(), |_| true);
    let (operations, failed) = all.counts();
    let (cell, shown) = match best_cell(run) {
        Some((cell, own)) => (Some(cell), own),
        None => (None, all),
    };
    Totals {
        cell,
        throughput: shown.throughput(),
        bandwidth: shown.bandwidth(),
        p50_ns: shown.quantile_ns(0.5),
        p99_ns: shown.quantile_ns(0.99),
        operations,
        failed,
    }
}

/// The best cell of a run and its operations; `None` where the run measured fewer than two.
fn best_cell(run: &Run) -> Option<(BestCell, Pooled<'_>)> {
    let sweeps = sweeps(run);
    let points = sweeps.iter().flat_map(|sweep| sweep.points.iter().map(move |point| (sweep, point)));
    let measured = |stages: &[&Stage]| stages.iter().any(|stage| data_operations(stage).next().is_some());
    let points: Vec<_> = points.filter(|(_, point)| measured(&point.stages)).collect();
    if points.len() < 2 {
        return None;
    }
    let pooled = points.iter().map(|(sweep, point)| (*sweep, *point, Pooled::new(&point.stages, |_| true)));
    let (sweep, point, own) =
        pooled.max_by(|(.., one), (.., other)| one.throughput().total_cmp(&other.throughput()))?;
    let name = cell_name(sweep, point, sweeps.len() > 1);
    Some((BestCell { name, of: points.len() }, own))
}

/// What tells a cell from the others of its run: the axes that vary, and the sweep and the engine where there are several.
fn cell_name(sweep: &Sweep<'_>, point: &Point<'_>, several: bool) -> String {
    let dimensions = sweep.dimensions();
    let varies = |name: &str| dimensions.iter().any(|own| own.name == name && own.values.len() > 1);
    let engines = sweep.points.iter().any(|other| other.engine != point.engine);
    let sweep = several.then(|| sweep.name.to_owned());
    let axes = point.axes.iter().filter(|axis| varies(&axis.name)).map(Axis::label);
    let engine = engines.then(|| point.engine.to_owned());
    sweep.into_iter().chain(axes).chain(engine).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The labels of the operations that move data, in order.
pub(super) fn labels<'a>(stages: impl Iterator<Item = &'a Stage>) -> Vec<&'a str> {
    let mut labels: Vec<&str> = Vec::new();
    for (_, operation) in stages.flat_map(data_operations) {
        if !labels.contains(&operation.label.as_str()) {
            labels.push(&operation.label);
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::record::Cell;
    use tidemark_measure::tally::Tally;

    #[test]
    fn the_percentile_of_a_run_is_that_of_all_its_operations() {
        let operation = |ms: u64, count: u64| {
            let mut tally = Tally { ok: count, ..Tally::default() };
            tally.response.record_many(ms * 1_000_000, count);
            let class = tidemark_measure::kind::OperationClass::Read;
            Operation { class, label: format!("{ms} ms"), tally, ..Operation::default() }
        };
        let operations = vec![operation(1, 9_990), operation(500, 10)];
        let works = vec![Work { window_end_ns: 1_000_000_000, operations, ..Work::default() }];
        let run = Run { stages: vec![Stage { works, ..Stage::default() }], ..Run::default() };
        let all = totals(&run);
        assert!((all.p99_ns.unwrap() / 1e6 - 1.0).abs() < 0.01, "not that of the rare one: {all:?}");
        assert_eq!((all.throughput, all.failed, all.cell), (10_000.0, 0, None));
    }

    #[test]
    fn a_sweep_is_its_best_cell_and_never_a_mean_of_unlike_ones() {
        let stage = |size: &str, repeat: u32, ms: u64, count: u64| {
            let mut tally = Tally { ok: count, ..Tally::default() };
            tally.response.record_many(ms * 1_000_000, count);
            let class = tidemark_measure::kind::OperationClass::Read;
            let operations = vec![Operation { class, tally, ..Operation::default() }];
            let works = vec![Work { window_end_ns: 1_000_000_000, operations, ..Work::default() }];
            let axes = vec![Axis::word("pattern", "randread"), Axis::word("block_size", size)];
            let cell = Some(Cell { sweep: "points".into(), axes, repeat, ..Cell::default() });
            Stage { works, cell, ..Stage::default() }
        };
        let stages =
            vec![stage("4 KiB", 1, 1, 9_000), stage("1 MiB", 1, 500, 100), stage("4 KiB", 2, 1, 11_000)];
        let all = totals(&Run { stages, ..Run::default() });
        let best = all.cell.as_ref().unwrap();
        assert_eq!((best.name.as_str(), best.of), ("4 KiB", 2));
        assert_eq!(
            (all.throughput, all.operations),
            (10_000.0, 20_100),
            "repeats in the mean; counts of all"
        );
        assert!((all.p99_ns.unwrap() / 1e6 - 1.0).abs() < 0.01, "not that of 1 MiB: {all:?}");
        // One cell alone is all there is.
        assert_eq!(totals(&Run { stages: vec![stage("4 KiB", 1, 1, 10)], ..Run::default() }).cell, None);
    }

    #[test]
    fn rates_of_works_that_did_not_end_together_are_over_the_longer_window() {
        let work = |ok, seconds: u64| Work {
            window_end_ns: seconds * 1_000_000_000,
            operations: vec![Operation {
                class: tidemark_measure::kind::OperationClass::Read,
                tally: Tally { ok, ..Tally::default() },
                ..Operation::default()
            }],
            ..Work::default()
        };
        let stage = Stage { works: vec![work(25_000, 25), work(500, 2)], ..Stage::default() };
        let together = Pooled::new(&[&stage], |_| true);
        assert!((together.throughput() - 25_500.0 / 25.0).abs() < 1e-6, "{}", together.throughput());
    }
}
