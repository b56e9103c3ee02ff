//! Results of other tools as Tidemark's records, so that old results stand beside new ones.
//!
//! [`import`] looks at what a file is, not at what it is called, and hands it to the module that can read it. What a tool
//! has computed from samples that it did not keep is kept as reported ([`tidemark_measure::record::Reported`]); what it does
//! not know stays unknown, and a [`Note`](tidemark_measure::record::Note) of the run explains what its numbers mean.
//!
//! | module | what it reads |
//! |---|---|
//! | `cosbench` | archive directories and workload CSVs of COSBench |
//! | `fio` | fio's JSON, with or without bins |
//! | `warp` | warp's JSON, its request log and its table of segments |
//! | `elbencho` | elbencho's CSV and JSON |
//! | `sysbench`, `pgbench`, `hammerdb` | outputs of these benchmarks of databases |
//! | `table` | any table with a row for each level: an evaluation |
//!
//! [`output`] reads what a benchmark of databases prints, for whoever runs it. `source` reads files, `kind` detects formats, `sheet` and `number` read cells, and `draft` makes records.

mod cosbench;
mod database;
mod draft;
mod elbencho;
mod fio;
mod hammerdb;
mod kind;
mod number;
pub mod output;
mod pgbench;
mod sheet;
mod source;
mod sysbench;
mod table;
mod warp;

#[cfg(test)]
mod tests;

use source::Source;
use std::path::{Path, PathBuf};
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::line::one_line;
use tidemark_measure::record::Run;
use tidemark_measure::service_level::ServiceLevel;

/// What a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An archive directory of a COSBench controller, or a workload's CSV of it.
    Cosbench,
    /// fio's JSON, with or without latency bins.
    Fio,
    /// warp's JSON or CSV analysis, or its log of requests.
    Warp,
    /// elbencho's CSV or JSON.
    Elbencho,
    /// sysbench's output of a test of databases, with interval lines and histogram where it has them.
    Sysbench,
    /// pgbench's output, or its log of transactions.
    Pgbench,
    /// HammerDB's test results, or the times of its procedures, as text or JSON.
    Hammerdb,
    /// A table with a row per level: an axis' column and columns of results.
    Table,
}

impl Format {
    /// More than this is not read: logs and reports of every second are longer than results.
    fn most_bytes(self) -> usize {
        match self {
            Format::Fio | Format::Warp | Format::Pgbench => usize::MAX,
            _ => 16 << 20,
        }
    }
}

/// How it is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What it is; `None`: found out by looking.
    pub format: Option<Format>,
    /// Its name; `None`: that of the file.
    pub name: Option<String>,
    /// What a table's latencies must stay within to count.
    pub service_level: Option<ServiceLevel>,
    /// Bytes of an operation, where a service level depends on it and the file does not say.
    pub object_bytes: Option<u64>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The evaluation that the runs are cells of, if the file is one: a table of levels.
    pub evaluation: Option<Evaluation>,
    /// The runs, without numbers yet.
    pub runs: Vec<Run>,
}

/// A result could not be read: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}")]
pub struct ImportError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, with the line where there is one, and what to do.
    pub what: String,
}

/// Reads a result of another tool.
///
/// # Errors
/// Files that cannot be read, that are not what they should be, or hold nothing.
pub fn import(path: &Path, options: &Options) -> Result<Imported, ImportError> {
    checked(path, read(path, options))
}

/// Reads a result of another tool whose bytes are here already, as a file of this name would hold them.
///
/// # Errors
/// As [`import`].
pub fn import_bytes(path: &Path, bytes: &[u8], options: &Options) -> Result<Imported, ImportError> {
    checked(path, Source::of_bytes(path, bytes, 0).and_then(|source| read_source(&source, options)))
}

/// Most characters of what is wrong with a file: it may be a name in it.
const MOST_WORDS: usize = 600;

fn checked(path: &Path, read: Result<Imported, String>) -> Result<Imported, ImportError> {
    let checked = read.and_then(|read| {
        read.runs.iter().try_for_each(draft::check)?;
        Ok(read)
    });
    checked.map_err(|what| ImportError { path: path.into(), what: one_line(&what, MOST_WORDS) })
}

fn read(path: &Path, options: &Options) -> Result<Imported, String> {
    if path.is_dir() {
        return match options.format {
            None | Some(Format::Cosbench) => cosbench::archive(path, options).map(of_runs),
            Some(_) => Err("a directory; use a file: only COSBench's archives are directories".into()),
        };
    }
    read_source(&Source::read(path)?, options)
}

fn read_source(source: &Source, options: &Options) -> Result<Imported, String> {
    let format = match options.format {
        Some(format) => format,
        None => kind::of(&source.text)?,
    };
    let (length, most) = (source.text.len(), format.most_bytes());
    if length > most {
        return Err(format!("larger than {} MiB; import a part of it", most >> 20));
    }
    match format {
        Format::Cosbench => cosbench::workload(source, options).map(|run| of_runs(vec![run])),
        Format::Fio => fio::read(source, options).map(|run| of_runs(vec![run])),
        Format::Warp => warp::read(source, options).map(|run| of_runs(vec![run])),
        Format::Elbencho => elbencho::read(source, options).map(of_runs),
        Format::Sysbench => sysbench::read(source, options).map(of_runs),
        Format::Pgbench => pgbench::read(source, options).map(of_runs),
        Format::Hammerdb => hammerdb::read(source, options).map(of_runs),
        Format::Table => table::read(source, options),
    }
}

fn of_runs(runs: Vec<Run>) -> Imported {
    Imported { evaluation: None, runs }
}
