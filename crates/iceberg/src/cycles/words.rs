//! Cycles of tables that change.

use super::record::TableState;
use serde::Serialize;
use tidemark_judge::Facts;
use tidemark_judge::words::phrase::{Phrase, count, decimal, phrase};
use tidemark_measure::units;

/// What the queries of a cycle took, and what they found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Point {
    pub(super) cycle: u32,
    pub(super) ns: u64,
    pub(super) planning_ns: u64,
    pub(super) requests: u64,
    pub(super) read_bytes: u64,
    pub(super) found: TableState,
}

/// What each cycle adds to the time of its queries, nanoseconds, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Trend {
    pub(super) cycles: u64,
    pub(super) each: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// What queries took in the cycles before and after compactions, on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Compactions {
    pub(super) count: u64,
    pub(super) before_ns: u64,
    pub(super) after_ns: u64,
}

/// What there is to say of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Cycles {
    /// All answers were right.
    Answers { right: u64, cycles: u64, rows: u64 },
    /// What queries took in the last cycle beside the first.
    Aged {
        first: Box<Point>,
        last: Box<Point>,
        compact_every: Option<u32>,
        trend: Option<Trend>,
        compactions: Option<Compactions>,
    },
}

/// So many times as much; of nothing there is no multiple.
fn times(last: u64, first: u64) -> f64 {
    if first == 0 { 0.0 } else { last as f64 / first as f64 }
}

fn ns(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", units::duration_ns(value.abs() as u64))
}

impl Facts for Cycles {
    fn rule(&self) -> &'static str {
        match self {
            Cycles::Answers { .. } => "cycles-answers",
            Cycles::Aged { .. } => "cycles-aged",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            Cycles::Answers { right, cycles, .. } => {
                phrase!["all ", count(*right), " answers of ", count(*cycles), " cycles were right"]
            }
            Cycles::Aged { first, last, compact_every, .. } => {
                let how = match compact_every {
                    None => "without compaction".to_owned(),
                    Some(1) => "with a compaction after every cycle".to_owned(),
                    Some(every) => format!("with a compaction every {every} cycles"),
                };
                phrase![
                    how,
                    ", the queries of cycle ",
                    last.cycle.to_string(),
                    " took ",
                    decimal(times(last.ns, first.ns)),
                    " times as long as those of cycle ",
                    first.cycle.to_string(),
                    ", with ",
                    decimal(times(last.requests, first.requests)),
                    " times the requests over ",
                    decimal(times(last.found.rows, first.found.rows)),
                    " times the rows"
                ]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            Cycles::Answers { .. } => {
                "Each was compared with what the table must contain after the commits that were acknowledged: rows and sums by category and \
                 over a range, and a checksum over every value of every row."
                    .into()
            }
            Cycles::Aged { .. } => {
                "One run is one sample: repeats tell how much of the difference another run would show. What is more than the rows' share is \
                 due to the number of files, manifests and deletes."
                    .into()
            }
        }
    }

    fn proves(&self) -> bool {
        matches!(self, Cycles::Answers { .. })
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            Cycles::Answers { rows, .. } => {
                vec![format!("{} rows in the last cycle, none lost and none doubled", units::count(*rows))]
            }
            Cycles::Aged { first, last, trend, compactions, .. } => {
                let mut lines = vec![told(first), told(last)];
                if let Some(Trend { cycles, each, low, high }) = trend {
                    lines.push(format!(
                        "each cycle added {} to the queries (95 % interval {} to {}): a straight line through {} cycles of one run, as if \
                         they were independent of each other",
                        ns(*each),
                        ns(*low),
                        ns(*high),
                        units::count(*cycles)
                    ));
                }
                if let Some(Compactions { count, before_ns, after_ns }) = compactions {
                    lines.push(format!(
                        "{}: the queries took {} on average in the cycles before them, and {} in those after",
                        if *count == 1 {
                            "1 compaction".to_owned()
                        } else {
                            format!("{} compactions", units::count(*count))
                        },
                        units::duration_ns(*before_ns),
                        units::duration_ns(*after_ns)
                    ));
                }
                lines
            }
        }
    }
}

fn told(point: &Point) -> String {
    let TableState { rows, files, delete_files, manifests, bytes } = point.found;
    let deletes = match delete_files {
        0 => String::new(),
        files => format!(", {} files of deletes", units::count(files)),
    };
    format!(
        "cycle {}: {}, of which {} planning; {} requests for {}; {} rows in {} data files{deletes}, {} manifests, {}",
        point.cycle,
        units::duration_ns(point.ns),
        units::percent(times(point.planning_ns, point.ns)),
        units::count(point.requests),
        units::bytes(point.read_bytes),
        units::count(rows),
        units::count(files),
        units::count(manifests),
        units::bytes(bytes)
    )
}
