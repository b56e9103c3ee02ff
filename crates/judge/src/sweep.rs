//! Sweeps: the stages of a run put together by the points that they measured.

use tidemark_measure::axis::{Axis, Unit};
use tidemark_measure::histogram::Histogram;
use tidemark_measure::record::{Operation, Run, Stage, Work};

/// One load measured at many points.
pub struct Sweep<'a> {
    /// The load's name.
    pub name: &'a str,
    /// Its points, in the order in which they were first measured.
    pub points: Vec<Point<'a>>,
}

/// One point of a sweep, with all its repeats.
pub struct Point<'a> {
    /// Its place on every axis.
    pub axes: &'a [Axis],
    /// What drove it: `native`, `fio`, or nothing where the record does not say.
    pub engine: &'a str,
    /// The stages that measured it, or were to.
    pub stages: Vec<&'a Stage>,
}

/// One thing that a sweep varies, or keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension<'a> {
    /// Its name: `block_size`.
    pub name: &'a str,
    /// Its values, in the order in which they were first measured.
    pub values: Vec<&'a Axis>,
    /// The values as numbers, if all of them are: bytes, or counts.
    pub numbers: Option<Vec<f64>>,
    /// Whether the numbers are bytes.
    pub is_bytes: bool,
}

/// All sweeps of a run, in order. Stages that are not part of one are in none of them.
pub fn sweeps(run: &Run) -> Vec<Sweep<'_>> {
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    for (stage, cell) in run.stages.iter().filter_map(|stage| Some((stage, stage.cell.as_ref()?))) {
        let index = sweeps.iter().position(|sweep| sweep.name == cell.sweep).unwrap_or_else(|| {
            sweeps.push(Sweep { name: &cell.sweep, points: Vec::new() });
            sweeps.len() - 1
        });
        let points = &mut sweeps[index].points;
        match points.iter_mut().find(|point| point.axes == cell.axes && point.engine == cell.engine) {
            Some(point) => point.stages.push(stage),
            None => points.push(Point { axes: &cell.axes, engine: &cell.engine, stages: vec![stage] }),
        }
    }
    sweeps
}

impl<'a> Sweep<'a> {
    /// What it varies and what it keeps, in the document's order.
    pub fn dimensions(&self) -> Vec<Dimension<'a>> {
        let mut all: Vec<Dimension<'a>> = Vec::new();
        for axis in self.points.iter().flat_map(|point| point.axes) {
            let index = all.iter().position(|one| one.name == axis.name).unwrap_or_else(|| {
                all.push(Dimension { name: &axis.name, values: Vec::new(), numbers: None, is_bytes: false });
                all.len() - 1
            });
            if !all[index].values.contains(&axis) {
                all[index].values.push(axis);
            }
        }
        for one in &mut all {
            one.numbers = one.values.iter().map(|axis| axis.value.number()).collect();
            one.is_bytes = one.values.iter().any(|axis| axis.value.unit() == Some(Unit::Bytes));
        }
        all
    }

    /// What drove it, in the order of the points: more than one when engines are compared.
    pub fn engines(&self) -> Vec<&'a str> {
        let mut engines = Vec::new();
        for point in &self.points {
            if !engines.contains(&point.engine) {
                engines.push(point.engine);
            }
        }
        engines
    }
}

impl<'a> Point<'a> {
    /// Its place on the axis of this name.
    pub fn at(&self, axis: &str) -> Option<&'a Axis> {
        self.axes.iter().find(|one| one.name == axis)
    }

    /// `randread, 4 KiB, clients 8`: words and sizes speak for themselves, numbers need their axis.
    pub fn label(&self) -> String {
        self.axes.iter().map(Axis::label).collect::<Vec<_>>().join(", ")
    }

    /// The repeats that measured something.
    pub fn measured(&self) -> impl Iterator<Item = &'a Stage> + '_ {
        self.stages
            .iter()
            .copied()
            .filter(|stage| data_operations(stage).any(|(_, operation)| operation.tally.ok > 0))
    }

    /// Operations per second of every repeat that measured something; syncs do not count.
    pub fn rates(&self) -> Vec<f64> {
        self.each(|work, operation| operation.throughput(work.window_seconds()))
    }

    /// Bytes per second of every repeat that measured something.
    pub fn bandwidths(&self) -> Vec<f64> {
        self.each(|work, operation| operation.bandwidth(work.window_seconds()))
    }

    fn each(&self, value: impl Fn(&Work, &Operation) -> f64) -> Vec<f64> {
        let sum = |stage| data_operations(stage).map(|(work, operation)| value(work, operation)).sum();
        self.measured().map(sum).collect()
    }

    /// Response times of every repeat that measured something.
    pub fn responses(&self) -> Vec<Histogram> {
        self.measured().map(|stage| merged(data_operations(stage).map(|(_, operation)| operation))).collect()
    }

    /// Response times of all its repeats together.
    pub fn response(&self) -> Histogram {
        merged(self.measured().flat_map(data_operations).map(|(_, operation)| operation))
    }

    /// Its numbers operation by operation, and of all of them together when there are several.
    pub fn rows(&self) -> Vec<Row<'a>> {
        let mut labels: Vec<&'a str> = Vec::new();
        for (_, operation) in self.measured().flat_map(data_operations) {
            if !labels.contains(&operation.label.as_str()) {
                labels.push(&operation.label);
            }
        }
        let own = labels.iter().map(|label| self.row(label));
        let all = (labels.len() > 1).then(|| Row {
            label: "all",
            rates: self.rates(),
            bandwidths: self.bandwidths(),
            response: self.response(),
        });
        own.chain(all).collect()
    }

    fn row(&self, label: &'a str) -> Row<'a> {
        let is_own = |operation: &Operation| operation.label == label;
        let value = |operation: &Operation, value: f64| if is_own(operation) { value } else { 0.0 };
        let all = self.measured().flat_map(data_operations).map(|(_, operation)| operation);
        Row {
            label,
            rates: self.each(|work, one| value(one, one.throughput(work.window_seconds()))),
            bandwidths: self.each(|work, one| value(one, one.bandwidth(work.window_seconds()))),
            response: merged(all.filter(|operation| is_own(operation))),
        }
    }
}

/// One operation of a point over its repeats.
pub struct Row<'a> {
    /// Its name, or `all`.
    pub label: &'a str,
    /// Operations per second of every repeat.
    pub rates: Vec<f64>,
    /// Bytes per second of every repeat.
    pub bandwidths: Vec<f64>,
    /// Response times of all repeats together.
    pub response: Histogram,
}

fn merged<'a>(operations: impl Iterator<Item = &'a Operation>) -> Histogram {
    let mut all = Histogram::new();
    operations.for_each(|operation| all.add(&operation.tally.response));
    all
}

/// The operations of a stage that move data, with their works: no syncs, nothing that only prepares.
pub fn data_operations(stage: &Stage) -> impl Iterator<Item = (&Work, &Operation)> {
    let works = stage.works.iter().filter(|work| work.kind.measures());
    works.flat_map(|work| {
        work.operations.iter().filter(|one| one.class.moves_data()).map(move |one| (work, one))
    })
}

/// How far some numbers lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Coefficient of variation: the sample's standard deviation as a share of the mean; 0 for a single number.
    pub variation: f64,
}

impl Spread {
    /// That of some numbers; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (count, low, high) = (sorted.len(), *sorted.first()?, *sorted.last()?);
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let variation = if mean > 0.0 { deviation / mean } else { 0.0 };
        let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
        Some(Self { count, mean, median, low, high, variation })
    }

    /// Half of the distance between the lowest and the highest.
    pub fn half_range(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::sweep_run;
    use tidemark_measure::kind::OperationClass;

    #[test]
    fn repeats_meet_at_their_point() {
        let run = sweep_run(&["4 KiB", "64 KiB"], 3);
        let sweeps = sweeps(&run);
        assert_eq!((sweeps.len(), sweeps[0].name, sweeps[0].points.len()), (1, "rand", 2));
        let point = &sweeps[0].points[1];
        assert_eq!((point.label().as_str(), point.stages.len()), ("randread, 64 KiB, clients 1", 3));
        assert_eq!(point.rates(), [400.0; 3]);
        assert_eq!(point.response().count(), 24_000, "histograms are merged");
        assert_eq!(sweeps[0].engines(), ["native"]);
    }

    #[test]
    fn axes_know_numbers_from_words() {
        let run = sweep_run(&["4 KiB", "1 MiB"], 1);
        let axes = sweeps(&run)[0].dimensions();
        assert_eq!(
            axes.iter().map(|axis| axis.name).collect::<Vec<_>>(),
            ["pattern", "block_size", "clients"]
        );
        assert_eq!(axes[0].numbers, None);
        assert_eq!((axes[1].numbers.as_deref(), axes[1].is_bytes), (Some(&[4096.0, 1_048_576.0][..]), true));
        assert_eq!((axes[2].numbers.as_deref(), axes[2].is_bytes), (Some(&[1.0][..]), false));
    }

    #[test]
    fn syncs_are_not_throughput() {
        let mut run = sweep_run(&["4 KiB"], 1);
        let work = &mut run.stages[0].works[0];
        work.operations.push(Operation { class: OperationClass::Sync, ..work.operations[0].clone() });
        assert_eq!(sweeps(&run)[0].points[0].rates(), [400.0]);
        assert_eq!(sweeps(&run)[0].points[0].rows().len(), 1);
    }

    #[test]
    fn a_mix_has_a_row_for_each_operation_and_one_for_all() {
        let mut run = sweep_run(&["4 KiB"], 2);
        for stage in &mut run.stages {
            let mut write = stage.works[0].operations[0].clone();
            (write.label, write.tally.ok) = ("write".into(), 4_000);
            stage.works[0].operations.push(write);
        }
        let sweeps = sweeps(&run);
        let rows = sweeps[0].points[0].rows();
        let shown: Vec<_> = rows.iter().map(|row| (row.label, row.rates[1], row.response.count())).collect();
        assert_eq!(shown, [("read", 400.0, 16_000), ("write", 200.0, 16_000), ("all", 600.0, 32_000)]);
    }

    #[test]
    fn spreads() {
        let spread = Spread::of(&[90.0, 110.0, 100.0]).unwrap();
        assert_eq!((spread.mean, spread.median, spread.low, spread.high), (100.0, 100.0, 90.0, 110.0));
        assert!((spread.variation - 0.1).abs() < 1e-12 && spread.half_range() == 10.0);
        assert_eq!(Spread::of(&[5.0]).unwrap().variation, 0.0);
        assert_eq!(Spread::of(&[]), None);
    }
}
