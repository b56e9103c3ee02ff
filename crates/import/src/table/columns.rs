//! What the columns of a table hold, by their names.

use crate::sheet::Row;
use tidemark_measure::axis::Unit;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Column {
    /// A level's value on this axis, in this unit.
    Axis(&'static str, Unit),
    /// An arm's name.
    Arm,
    /// A load's name.
    Load,
    /// A repeat's number.
    Repeat,
    /// Operations per second.
    Throughput,
    /// So many bytes per second each.
    Bandwidth {
        /// Bytes in the unit.
        bytes: f64,
    },
    /// Mean response time.
    Mean {
        /// Nanoseconds in the unit.
        ns: f64,
    },
    /// The response time that a share does not exceed.
    Quantile {
        /// The share, 0 to 1.
        share: f64,
        /// Nanoseconds in the unit.
        ns: f64,
    },
    /// Operations that succeeded.
    Count,
    /// Bytes that they moved.
    Bytes,
    /// Operations that failed.
    Failed,
    /// Share of the operations that succeeded.
    Succeeded,
    /// How long was measured.
    Seconds,
    /// Something else.
    Unknown,
}

/// Names of columns that hold one thing in one unit, as [`plain`] makes them.
const NAMES: [(&[&str], Column); 13] = [
    (
        &[
            "workers",
            "worker",
            "of workers",
            "number of workers",
            "worker count",
            "threads",
            "number of threads",
            "concurrency",
            "virtual users",
        ],
        Column::Axis("workers", Unit::Count),
    ),
    (&["clients", "client", "number of clients", "vms", "connections"], Column::Axis("clients", Unit::Count)),
    (&["depth", "iodepth", "io depth", "queue depth", "qd"], Column::Axis("depth", Unit::Count)),
    (
        &["rate", "offered", "offered rate", "target rate", "offered op/s"],
        Column::Axis("rate", Unit::OperationsPerSecond),
    ),
    (&["arm", "layout", "system", "target"], Column::Arm),
    (&["load", "workload"], Column::Load),
    (&["repeat", "run", "iteration", "trial"], Column::Repeat),
    (
        &[
            "op/s",
            "ops/s",
            "op s",
            "ops s",
            "throughput",
            "throughput op/s",
            "iops",
            "req/s",
            "requests/s",
            "obj/s",
            "tps",
            "ops per second",
        ],
        Column::Throughput,
    ),
    (&["count", "op count", "operations", "requests", "ok", "succeeded"], Column::Count),
    (&["bytes", "byte count"], Column::Bytes),
    (&["failed", "failures", "errors"], Column::Failed),
    (&["success ratio", "succ ratio", "success", "success %", "success rate"], Column::Succeeded),
    (&["duration s", "runtime s", "seconds", "time s", "window s"], Column::Seconds),
];

/// Units of time, nanoseconds in each.
const TIMES: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Units of bandwidth, bytes in each.
const BANDWIDTHS: [(&str, f64); 14] = [
    ("b/s", 1.0),
    ("bytes/s", 1.0),
    ("kb/s", 1e3),
    ("mb/s", 1e6),
    ("gb/s", 1e9),
    ("kib/s", 1024.0),
    ("mib/s", 1_048_576.0),
    ("gib/s", 1_073_741_824.0),
    ("kb s", 1e3),
    ("mb s", 1e6),
    ("gb s", 1e9),
    ("mib s", 1_048_576.0),
    ("gib s", 1_073_741_824.0),
    ("mbytes/s", 1e6),
];

/// Words for response times that say nothing more.
const TIMED: [&str; 6] = ["restime", "latency", "lat", "response time", "resp time", "rt"];

/// The columns of a table.
pub(super) struct Columns {
    titles: Vec<String>,
    columns: Vec<Column>,
}

impl Columns {
    /// Whether any column is like this.
    pub(super) fn any(&self, is: impl Fn(Column) -> bool) -> bool {
        self.columns.iter().any(|column| is(*column))
    }

    /// The names of all columns.
    pub(super) fn titles(&self) -> &[String] {
        &self.titles
    }

    /// The columns with these names.
    pub(super) fn of(header: &Row<'_>) -> Result<Self, String> {
        let titles: Vec<String> = header.cells.iter().map(|cell| cell.trim().to_owned()).collect();
        let columns: Vec<Column> = titles
            .iter()
            .map(|title| column(title))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("line {}: {error}", header.line))?;
        for (place, column) in columns.iter().enumerate().filter(|(_, column)| **column != Column::Unknown) {
            if let Some(other) = columns[..place].iter().position(|other| is_same(other, column)) {
                return Err(format!(
                    "line {}: columns `{}` and `{}` have the same content; remove one",
                    header.line, titles[other], titles[place]
                ));
            }
        }
        let known = Self { titles, columns };
        let is_result = |column: &Column| {
            matches!(
                column,
                Column::Throughput | Column::Bandwidth { .. } | Column::Mean { .. } | Column::Quantile { .. }
            )
        };
        if known.axes().next().is_none() && known.find(&Column::Arm).is_none() {
            return Err(format!(
                "line {}: no column has what was varied; name it `workers`, `clients`, `depth` or `rate` (or `threads`, `concurrency`, `iodepth`), or `arm`. {KNOWN}",
                header.line
            ));
        }
        if !known.columns.iter().any(is_result) {
            return Err(format!("line {}: no column has a result. {KNOWN}", header.line));
        }
        Ok(known)
    }

    /// All of them, with their places.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate()
    }

    /// The place of a column.
    pub(super) fn find(&self, column: &Column) -> Option<usize> {
        self.columns.iter().position(|known| known == column)
    }

    /// The axes: places, names and units.
    pub(super) fn axes(&self) -> impl Iterator<Item = (usize, &'static str, Unit)> {
        self.all().filter_map(|(place, column)| match column {
            Column::Axis(name, unit) => Some((place, *name, *unit)),
            _ => None,
        })
    }

    /// A column's name in the table.
    pub(super) fn title(&self, place: usize) -> &str {
        self.titles.get(place).map_or("", String::as_str)
    }

    /// Names of the columns that hold something else.
    pub(super) fn unknown(&self) -> Vec<&str> {
        let unknown = self.all().filter(|(_, column)| **column == Column::Unknown);
        unknown.map(|(place, _)| self.title(place)).filter(|title| !title.is_empty()).collect()
    }
}

/// The names that are known.
const KNOWN: &str = "Results are `op/s` (`iops`, `throughput`), `MB/s` (and other units), `mean_ms`, `p95_ms`, `max_ms` (or us, s), `failed`, `success ratio`, `count`, `bytes`, `duration_s`; a row may name its `arm`, `load` and `repeat`";

/// Whether two columns hold the same, be it in other units.
fn is_same(one: &Column, other: &Column) -> bool {
    match (one, other) {
        (Column::Bandwidth { .. }, Column::Bandwidth { .. }) | (Column::Mean { .. }, Column::Mean { .. }) => {
            true
        }
        (Column::Quantile { share: one, .. }, Column::Quantile { share: other, .. }) => {
            (one - other).abs() < 1e-9
        }
        _ => one == other,
    }
}

fn column(title: &str) -> Result<Column, String> {
    let plain = plain(title);
    if let Some((_, column)) = NAMES.iter().find(|(names, _)| names.contains(&plain.as_str())) {
        return Ok(*column);
    }
    let ending = |unit: &str| plain.strip_suffix(unit).map(str::trim_end);
    let bandwidth = |(unit, bytes): &(&str, f64)| {
        let rest = ending(unit)?;
        matches!(rest, "" | "bandwidth" | "bw" | "throughput").then_some(Column::Bandwidth { bytes: *bytes })
    };
    if let Some(column) = BANDWIDTHS.iter().find_map(bandwidth) {
        return Ok(column);
    }
    for (unit, ns) in TIMES {
        let rest = plain.strip_suffix(unit).and_then(|rest| rest.strip_suffix(' '));
        if let Some(column) = rest.and_then(|rest| latency(rest, ns)) {
            return Ok(column);
        }
    }
    match latency(&plain, 1e6) {
        // COSBench's columns are milliseconds, and say so nowhere.
        Some(column) if plain.ends_with("restime") => Ok(column),
        Some(_) => {
            Err(format!("column `{title}` has no unit; write `{title}_ms`, `{title}_us` or `{title}_s`"))
        }
        None if matches!(plain.as_str(), "bandwidth" | "bw") => {
            Err(format!("column `{title}` has no unit; write `MB/s` or `MiB/s`"))
        }
        None => Ok(Column::Unknown),
    }
}

/// What a name without its unit means for response times.
fn latency(name: &str, ns: f64) -> Option<Column> {
    let mut words: Vec<&str> = name.split(' ').collect();
    let timed = TIMED.iter().find_map(|timed| name.strip_suffix(timed)).map(str::trim);
    if let Some(rest) = timed {
        words = rest.split(' ').filter(|word| !word.is_empty()).collect();
    }
    let [word] = words[..] else {
        return (words.is_empty() && timed.is_some()).then_some(Column::Mean { ns });
    };
    match word {
        "mean" | "avg" | "average" => Some(Column::Mean { ns }),
        "median" => Some(Column::Quantile { share: 0.5, ns }),
        "max" | "maximum" | "largest" => Some(Column::Quantile { share: 1.0, ns }),
        _ => {
            let digits = word.strip_prefix('p').or_else(|| word.strip_suffix('%'));
            let digits = digits.or_else(|| word.strip_suffix("th"))?;
            let percent: f64 = digits.parse().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0)?;
            Some(Column::Quantile { share: percent / 100.0, ns })
        }
    }
}

/// A name in lower case, with single blanks for all that separates words.
fn plain(title: &str) -> String {
    let lower = title.to_lowercase();
    let blank = |c: char| c.is_whitespace() || matches!(c, '_' | '-' | '(' | ')' | '[' | ']' | '#' | ':');
    lower.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_columns_hold() {
        let (ms, us) = (1e6, 1e3);
        let quantile = |share, ns| Column::Quantile { share, ns };
        let named = [
            ("workers", Column::Axis("workers", Unit::Count)),
            ("# of workers", Column::Axis("workers", Unit::Count)),
            ("Worker-Count", Column::Axis("workers", Unit::Count)),
            ("threads", Column::Axis("workers", Unit::Count)),
            ("IOdepth", Column::Axis("depth", Unit::Count)),
            ("op/s", Column::Throughput),
            ("Throughput (op/s)", Column::Throughput),
            ("IOPS", Column::Throughput),
            ("MB/s", Column::Bandwidth { bytes: 1e6 }),
            ("bandwidth (MiB/s)", Column::Bandwidth { bytes: 1_048_576.0 }),
            ("bw_mb_s", Column::Bandwidth { bytes: 1e6 }),
            ("p95_ms", quantile(0.95, ms)),
            ("95%-ResTime (ms)", quantile(0.95, ms)),
            ("95%-ResTime", quantile(0.95, ms)),
            ("p99.9 latency [us]", quantile(0.999, us)),
            ("95th_ms", quantile(0.95, ms)),
            ("max_s", quantile(1.0, 1e9)),
            ("mean_ms", Column::Mean { ns: ms }),
            ("avg latency (µs)", Column::Mean { ns: us }),
            ("Avg-ResTime", Column::Mean { ns: ms }),
            ("latency_ms", Column::Mean { ns: ms }),
            ("Succ-Ratio", Column::Succeeded),
            ("duration_s", Column::Seconds),
            ("colour", Column::Unknown),
            ("p0_ms", Column::Unknown),
            ("px_ms", Column::Unknown),
            ("rooms", Column::Unknown),
        ];
        for (title, expected) in named {
            let found = column(title).unwrap();
            assert!(is_same(&found, &expected), "{title}: {found:?}");
            if let (
                Column::Quantile { ns: found, .. } | Column::Mean { ns: found },
                Column::Quantile { ns, .. } | Column::Mean { ns },
            ) = (&found, &expected)
            {
                assert_eq!(found, ns, "{title}");
            }
        }
        for title in ["p95", "avg", "latency", "bandwidth", "max"] {
            assert!(column(title).unwrap_err().contains("no unit"), "{title}");
        }
    }
}
