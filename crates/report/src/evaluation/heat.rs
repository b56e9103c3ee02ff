//! Latencies over time, folded into a field of bounded size while seconds come in.

use tidemark_measure::histogram::Histogram;
use tidemark_measure::tally::Interval;

/// Columns of time, at most: a column is one second wide, or two, four, eight ...
const COLUMNS: usize = 120;

/// Rows that are shown, at most.
const ROWS: usize = 48;

/// Classes of latency that are counted: sixteen to a factor of ten, from 100 ns to 1000 s.
const PER_DECADE: f64 = 16.0;
const LOWEST_DECADE: f64 = 2.0;
const CLASSES: usize = 160;

/// How response times of one work were spread in every part of its time. It takes 150 kB however long the work is.
#[derive(Clone, Debug)]
pub struct Heat {
    /// The run's number.
    pub run: u64,
    /// Which of its stages.
    pub stage: usize,
    /// Which of the stage's works.
    pub work: usize,
    /// Seconds of a column: a power of two.
    width: u32,
    /// Seconds so far.
    seconds: u32,
    columns: Vec<[u64; CLASSES]>,
}

/// What is drawn.
pub(crate) struct Grid {
    /// Seconds of a column.
    pub(crate) seconds: f64,
    /// Response times between the rows, ascending, one more than there are rows; nanoseconds.
    pub(crate) edges: Vec<f64>,
    /// Operations of every row, from the fastest, column by column.
    pub(crate) rows: Vec<Vec<u64>>,
}

impl Heat {
    /// An empty field for a work.
    pub fn new(run: u64, stage: usize, work: usize) -> Self {
        Self { run, stage, work, width: 1, seconds: 0, columns: Vec::new() }
    }

    /// Adds a second of the work; seconds may come in any order.
    pub fn add(&mut self, interval: &Interval) {
        self.seconds = self.seconds.max(interval.index.saturating_add(1));
        while (interval.index / self.width) as usize >= COLUMNS {
            self.fold();
        }
        let column = (interval.index / self.width) as usize;
        if self.columns.len() <= column {
            self.columns.resize(column + 1, [0; CLASSES]);
        }
        for tally in &interval.actions {
            count(&mut self.columns[column], &tally.response);
        }
    }

    /// Makes columns twice as wide.
    fn fold(&mut self) {
        self.width = self.width.saturating_mul(2);
        let merged = self.columns.chunks(2).map(|pair| {
            let mut sum = pair[0];
            for (own, other) in sum.iter_mut().zip(pair.get(1).into_iter().flatten()) {
                *own = own.saturating_add(*other);
            }
            sum
        });
        self.columns = merged.collect();
    }

    /// How long the work took, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        f64::from(self.seconds)
    }

    /// The part of the field that is not empty; `None` when all of it is.
    pub(crate) fn grid(&self) -> Option<Grid> {
        let used = |class: &usize| self.columns.iter().any(|column| column[*class] > 0);
        let (first, last) = ((0..CLASSES).find(used)?, (0..CLASSES).rfind(used)?);
        let each = (last - first + 1).div_ceil(ROWS);
        let starts: Vec<usize> = (first..=last).step_by(each).collect();
        let sum = |column: &[u64; CLASSES], start: usize| {
            column[start..(start + each).min(CLASSES)]
                .iter()
                .fold(0, |sum: u64, count| sum.saturating_add(*count))
        };
        let rows = starts.iter().map(|start| self.columns.iter().map(|column| sum(column, *start)).collect());
        let rows: Vec<Vec<u64>> = rows.collect();
        let edges = starts.iter().copied().chain([starts.last()? + each]).map(edge).collect();
        Some(Grid { seconds: f64::from(self.width), edges, rows })
    }

    /// The smallest response time, the median and the 99th percentile, as exactly as the classes are; nanoseconds.
    pub(crate) fn spread(&self) -> [u64; 3] {
        let counts: Vec<u64> = (0..CLASSES)
            .map(|class| self.columns.iter().fold(0u64, |sum, column| sum.saturating_add(column[class])))
            .collect();
        let total = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count)) as f64;
        [0.0, 0.5, 0.99].map(|share| {
            let mut seen = 0.0;
            let reached = counts.iter().position(|count| {
                seen += *count as f64;
                *count > 0 && seen >= total * share
            });
            reached.map_or(0, |class| edge(class + 1) as u64)
        })
    }
}

fn count(column: &mut [u64; CLASSES], histogram: &Histogram) {
    for (value, operations) in histogram.buckets() {
        let class = (((value.max(1) as f64).log10() - LOWEST_DECADE) * PER_DECADE).floor();
        let own = &mut column[class.clamp(0.0, CLASSES as f64 - 1.0) as usize];
        *own = own.saturating_add(operations);
    }
}

/// Where a class begins, nanoseconds.
fn edge(class: usize) -> f64 {
    10f64.powf(LOWEST_DECADE + class as f64 / PER_DECADE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(index: u32, values: &[u64]) -> Interval {
        let mut interval = Interval::new(index, 1);
        values.iter().for_each(|value| interval.actions[0].response.record(*value));
        interval
    }

    #[test]
    fn an_hour_fits_and_no_operation_is_lost() {
        let mut heat = Heat::new(3, 1, 0);
        for index in 0..3_600 {
            heat.add(&second(index, &[1_000_000, 90_000_000 + u64::from(index)]));
        }
        let grid = heat.grid().unwrap();
        assert!(grid.rows.len() <= ROWS && grid.rows[0].len() <= COLUMNS, "{}", grid.rows[0].len());
        assert_eq!((grid.seconds, grid.edges.len()), (32.0, grid.rows.len() + 1));
        assert_eq!(grid.rows.iter().flatten().sum::<u64>(), 7_200);
        assert!(grid.edges[0] <= 1e6 && grid.edges[grid.rows.len()] >= 90e6, "{:?}", grid.edges);
        assert_eq!(heat.seconds(), 3_600.0);
    }

    #[test]
    fn all_latencies_and_all_seconds_have_a_place() {
        let mut heat = Heat::new(0, 0, 0);
        heat.add(&second(u32::MAX, &[0, 1, u64::MAX]));
        heat.add(&second(0, &[50]));
        let grid = heat.grid().unwrap();
        assert!(grid.rows.len() <= ROWS && grid.rows[0].len() <= COLUMNS);
        assert_eq!(grid.rows.iter().flatten().sum::<u64>(), 4);
        assert!(Heat::new(0, 0, 0).grid().is_none());
    }

    #[test]
    fn medians_are_those_of_the_classes() {
        let mut heat = Heat::new(0, 0, 0);
        heat.add(&second(0, &[1_000_000; 60]));
        heat.add(&second(1, &[10_000_000; 40]));
        let [low, middle, high] = heat.spread();
        assert!(low == middle && (1_000_000..1_200_000).contains(&middle), "{middle}");
        assert!((10_000_000..12_000_000).contains(&high), "{high}");
    }
}
