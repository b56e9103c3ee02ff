//! What a benchmark of databases prints, for whoever runs it: the same figures that [`import`](crate::import()) would find in its output.

use crate::database::Found;
use crate::{pgbench, sysbench};
use tidemark_measure::record::Reported;
use tidemark_measure::tally::Tally;

/// Whose output it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// PostgreSQL's pgbench.
    Pgbench,
    /// sysbench's tests of databases.
    Sysbench,
}

/// The figures of one run.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// Transactions done, and those that failed.
    pub tally: Tally,
    /// The time in which they were done, nanoseconds.
    pub elapsed_ns: u64,
    /// What the tool has computed of them.
    pub reported: Reported,
    /// What its figures mean: whole sentences.
    pub remarks: Vec<String>,
}

impl Tool {
    /// The figures in the whole output of one run.
    ///
    /// # Errors
    /// What is missing, when the output is not whole.
    pub fn read(self, text: &str) -> Result<Output, String> {
        let Found { elapsed_ns, operations, notes, .. } = match self {
            Tool::Pgbench => pgbench::run(text),
            Tool::Sysbench => sysbench::run(text),
        }?;
        let operation = operations.into_iter().next().unwrap_or_default();
        Ok(Output {
            tally: operation.tally,
            elapsed_ns,
            reported: operation.reported.unwrap_or_default(),
            remarks: notes.into_iter().map(|(_, text)| text).collect(),
        })
    }

    /// What a line says of the progress: seconds since the beginning, and transactions per second since the line before.
    pub fn progress(self, line: &str) -> Option<(f64, f64)> {
        let step = match self {
            Tool::Pgbench => pgbench::step(line),
            Tool::Sysbench => sysbench::step(line),
        };
        step.map(|step| (step.at_s, step.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_while_a_tool_runs_is_what_is_imported() {
        let texts = [
            (Tool::Pgbench, include_str!("samples/pgbench.txt"), 15_212, 3),
            (Tool::Sysbench, include_str!("samples/sysbench.txt"), 7_216, 2),
        ];
        for (tool, text, ok, lines) in texts {
            let output = tool.read(text).unwrap();
            assert_eq!((output.tally.ok, output.tally.failed()), (ok, 0));
            let rate = output.reported.throughput.unwrap();
            assert!((output.elapsed_ns as f64 * rate / 1e9 / ok as f64 - 1.0).abs() < 1e-6, "{rate}");
            assert!(!output.remarks.is_empty());
            assert_eq!(text.lines().filter_map(|line| tool.progress(line)).count(), lines);
        }
        assert!(Tool::Sysbench.read(texts[0].1).is_err());
        assert_eq!(Tool::Pgbench.progress("progress: 2.0 s, 2692.5 tps, lat 1.470 ms"), Some((2.0, 2692.5)));
    }
}
