//! Phases as elbencho's files tell them.

use crate::number::{count, moment, quantity};
use crate::sheet::{Row, Sheet, delimiter};
use serde_json::Value;
use std::borrow::Cow;
use tidemark_measure::json::weigh;

const MIB: f64 = (1u64 << 20) as f64;

/// One phase of a command.
#[derive(Debug, Default)]
pub(super) struct Phase {
    /// `WRITE`, `READ`, `MKDIRS`, ...
    pub(super) name: String,
    pub(super) label: String,
    pub(super) started_unix_ns: Option<u64>,
    /// Until the slowest thread ended.
    pub(super) elapsed_ns: u64,
    pub(super) hosts: u64,
    pub(super) threads: u64,
    pub(super) depth: u32,
    /// Bytes of an operation on blocks.
    pub(super) block_bytes: Option<u64>,
    /// Its settings: names and values, a line each.
    pub(super) setup: String,
    pub(super) command: String,
    pub(super) version: String,
    /// Of the generators, on average.
    pub(super) cpu_percent: Option<f64>,
    /// Its operations; of a mix, its writes.
    pub(super) all: Numbers,
    /// A mix's reads.
    pub(super) reads: Option<Numbers>,
}

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) entries_per_s: Option<f64>,
    pub(super) iops: Option<f64>,
    pub(super) bytes_per_s: Option<f64>,
    pub(super) entries: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) entry: Latency,
    pub(super) io: Latency,
}

/// Latencies, microseconds.
#[derive(Debug, Default)]
pub(super) struct Latency {
    pub(super) mean_us: Option<f64>,
    pub(super) max_us: Option<f64>,
    /// Upper edges and counts, ascending.
    pub(super) classes: Vec<(f64, u64)>,
}

impl Numbers {
    fn is_any(&self) -> bool {
        self.iops.is_some() || self.entries_per_s.is_some()
    }
}

/// Phases of a table with names of columns.
pub(super) fn of_csv(text: &str) -> Result<Vec<Phase>, String> {
    let text = with_quoted_commands(text);
    let sheet = Sheet::read(&text, delimiter(&text))?;
    let operation = sheet.find("operation").ok_or(
        "has no column `operation`; elbencho omits the names with `--nocsvlabels`: add its header line",
    )?;
    let rows = sheet.rows.iter().filter(|row| !row.cell(operation).eq_ignore_ascii_case("operation"));
    rows.map(|row| of_row(&sheet, row, operation)).collect()
}

/// The text with each command line as one cell: elbencho writes the quoted words of it as they are,
/// `"elbencho" "--threads" "8"`, into the last column.
fn with_quoted_commands(text: &str) -> Cow<'_, str> {
    let delimiter = delimiter(text);
    let Some(header) = text.lines().find(|line| !line.trim().is_empty()) else { return text.into() };
    let columns: Vec<&str> = header.split(delimiter).map(str::trim).collect();
    if columns.last().is_none_or(|last| !last.eq_ignore_ascii_case("command")) {
        return text.into();
    }
    let quoted = |line: &str| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let at = begin_of_cell(line.trim_end_matches('\r'), columns.len() - 1, delimiter);
        match at.map(|at| line.split_at(at)) {
            Some((cells, command))
                if command.trim_end().contains("\" \"") && !command.starts_with("\"\"\"") =>
            {
                format!("{cells}\"{}\"{end}", command.trim_end().replace('"', "\"\""))
            }
            _ => format!("{line}{end}"),
        }
    };
    text.split_inclusive('\n').map(quoted).collect::<String>().into()
}

/// Where the cell of this number begins in a line, if it has as many.
fn begin_of_cell(line: &str, number: usize, delimiter: char) -> Option<usize> {
    let mut quoted = false;
    let mut delimiters = line.char_indices().filter(|(_, c)| {
        quoted ^= *c == '"';
        *c == delimiter && !quoted
    });
    match number.checked_sub(1) {
        Some(before) => delimiters.nth(before).map(|(at, c)| at + c.len_utf8()),
        None => Some(0),
    }
}

fn of_row(sheet: &Sheet<'_>, row: &Row<'_>, operation: usize) -> Result<Phase, String> {
    let cell = |name: &str| sheet.find(name).map(|place| row.cell(place)).unwrap_or_default();
    let name = row.cell(operation).to_owned();
    let elapsed = quantity(cell("time ms [last]")).filter(|_| !name.is_empty());
    let elapsed =
        elapsed.ok_or_else(|| format!("line {}: there is no phase with a `time ms [last]`", row.line))?;
    let latency = |kind: &str| Latency {
        mean_us: quantity(cell(&format!("{kind} lat us [avg]"))),
        max_us: quantity(cell(&format!("{kind} lat us [max]"))),
        classes: Vec::new(),
    };
    let numbers = |mix: &str| {
        let last = |name: &str| cell(&format!("{mix}{name} [last]"));
        Numbers {
            entries_per_s: quantity(last("entries/s")),
            iops: quantity(last("IOPS")),
            bytes_per_s: quantity(last("MiB/s")).map(|rate| rate * MIB),
            entries: count(last("entries")),
            bytes: quantity(last("MiB")).map(|amount| (amount * MIB) as u64),
            entry: latency(&format!("{mix}Ent")),
            io: latency(&format!("{mix}IO")),
        }
    };
    let told = sheet.header.cells.iter().zip(&row.cells).take(operation);
    let setup = told.filter(|(name, _)| !matches!(name.trim(), "ISO date" | "label"));
    Ok(Phase {
        label: cell("label").to_owned(),
        started_unix_ns: moment(cell("ISO date")),
        elapsed_ns: (elapsed * 1e6) as u64,
        hosts: count(cell("hosts")).unwrap_or(1),
        threads: count(cell("threads")).unwrap_or(0),
        depth: cell("IO depth").parse().unwrap_or(1),
        block_bytes: count(cell("block size")),
        setup: setup.map(|(name, value)| format!("{}: {}\n", name.trim(), value.trim())).collect(),
        command: cell("command").to_owned(),
        version: cell("version").to_owned(),
        cpu_percent: quantity(cell("CPU% [last]")),
        all: numbers(""),
        reads: Some(numbers("rwmix read ")).filter(Numbers::is_any),
        name,
    })
}

/// Phases of JSON, one document after the other. Every value in it is text.
pub(super) fn of_json(text: &str) -> Result<Vec<Phase>, String> {
    weigh(text)?;
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let phase = |(index, document): (usize, Result<Value, serde_json::Error>)| {
        let document = document.map_err(|error| format!("not a result of elbencho: {error}"))?;
        of_document(&document).ok_or_else(|| {
            format!(
                "phase {}: there is no `phase_type`, or no `last_done` with an `elapsed_time_ms`",
                index + 1
            )
        })
    };
    documents.enumerate().map(phase).collect()
}

fn of_document(document: &Value) -> Option<Phase> {
    let config = &document["config"];
    let last = &document["last_done"];
    let setup = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !matches!(name.as_str(), "version" | "command"));
    Some(Phase {
        name: text(&document["phase_type"]).filter(|name| !name.is_empty())?,
        label: text(&document["label"]).unwrap_or_default(),
        started_unix_ns: text(&document["iso_start_date"]).and_then(|date| moment(&date)),
        elapsed_ns: (amount(&last["elapsed_time_ms"])? * 1e6) as u64,
        hosts: whole(&config["hosts"]).unwrap_or(1),
        threads: whole(&config["threads"]).unwrap_or(0),
        block_bytes: whole(&config["block_size"]),
        depth: whole(&config["io_depth"]).and_then(|depth| u32::try_from(depth).ok()).unwrap_or(1),
        setup: setup.filter_map(|(name, value)| Some(format!("{name}: {}\n", text(value)?))).collect(),
        command: text(&config["command"]).unwrap_or_default(),
        version: text(&config["version"]).unwrap_or_default(),
        cpu_percent: amount(&last["cpu%"]),
        all: numbers(last, &last["latency"]["entries"], &last["latency"]["IO"]),
        reads: last.get("rwmix_read").map(|reads| {
            let latency = &last["latency"];
            numbers(reads, &latency["entries"]["rwmix_read"], &latency["IO"]["rwmix_read"])
        }),
    })
}

fn numbers(done: &Value, entry: &Value, io: &Value) -> Numbers {
    Numbers {
        entries_per_s: amount(&done["entries/s"]),
        iops: amount(&done["iops"]),
        bytes_per_s: amount(&done["bytes/s"]),
        entries: whole(&done["entries"]),
        bytes: whole(&done["bytes"]),
        entry: latency(entry),
        io: latency(io),
    }
}

fn latency(told: &Value) -> Latency {
    let mut classes: Vec<(f64, u64)> =
        told["histogram"].as_array().into_iter().flatten().filter_map(class).collect();
    classes.sort_by(|one, other| one.0.total_cmp(&other.0));
    Latency { mean_us: amount(&told["avg_us"]), max_us: amount(&told["max_us"]), classes }
}

/// `{"range": "16-19us", "count": "7"}`, or `"1000+us"` for what is above all classes.
fn class(told: &Value) -> Option<(f64, u64)> {
    let range = text(&told["range"])?;
    let range = range.strip_suffix("us")?;
    let edge = match range.strip_suffix('+') {
        Some(_) => f64::MAX,
        None => quantity(range.split_once('-')?.1)?,
    };
    Some((edge, whole(&told["count"])?))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn amount(value: &Value) -> Option<f64> {
    quantity(&text(value)?)
}

fn whole(value: &Value) -> Option<u64> {
    count(&text(value)?)
}
