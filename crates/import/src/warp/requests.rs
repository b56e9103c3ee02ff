//! warp's log of requests (`--full`): a row for each. Its distributions are exact.

use super::{EXAMPLES_MOST, Found, Phase, class, kind};
use crate::draft::{self, Column, LONGEST_SERIES, note};
use crate::number::{count, moment};
use crate::sheet::{Row, Rows, find};
use std::collections::{BTreeMap, BTreeSet};
use tidemark_measure::line::one_line;
use tidemark_measure::record::{Example, SecondOfOperation};
use tidemark_measure::tally::Tally;
use tidemark_measure::units;

/// More types of operation are no log of warp.
const TYPES_MOST: usize = 64;

/// More threads are no log of warp, either.
const WORKERS_MOST: usize = 100_000;

/// Most characters of a client's name and of an error that are kept.
const EXAMPLE_MOST: usize = 300;

/// Where the columns are.
struct Columns {
    op: usize,
    start: usize,
    end: usize,
    duration: usize,
    bytes: usize,
    error: usize,
    thread: usize,
    client: usize,
    first_byte: Option<usize>,
}

/// A request.
struct Request {
    started_ns: u64,
    ended_ns: u64,
    took_ns: u64,
    bytes: u64,
}

/// What is known of a type of operation.
struct Account {
    started_ns: u64,
    ended_ns: u64,
    tally: Tally,
    workers: BTreeSet<(String, u64)>,
    seconds: BTreeMap<u32, (SecondOfOperation, Vec<u64>)>,
    examples: Vec<Example>,
}

pub(super) fn read(text: &str) -> Result<Found, String> {
    let header = Rows::new(text, '\t').next().ok_or("is empty")??;
    let columns = Columns::of(&header)?;
    let mut accounts = BTreeMap::new();
    let mut command = String::new();
    let rows = || Rows::new(text, '\t').skip(1);
    // When each type began is known at the end only, and seconds count from there.
    for row in rows() {
        let row = row?;
        if let Some(remark) = row.cell(0).strip_prefix('#') {
            if command.is_empty() {
                command = remark.trim().to_owned();
            }
            continue;
        }
        let request = columns.request(&row)?;
        let account =
            accounts.entry(row.cell(columns.op).to_owned()).or_insert_with(|| Account::new(&request));
        account.started_ns = account.started_ns.min(request.started_ns);
        account.ended_ns = account.ended_ns.max(request.ended_ns);
        if accounts.len() > TYPES_MOST {
            return Err(format!("line {}: the file has more than {TYPES_MOST} types of operation", row.line));
        }
    }
    for row in rows() {
        let row = row?;
        if !row.cell(0).starts_with('#')
            && let Some(account) = accounts.get_mut(row.cell(columns.op))
        {
            account.take(&row, &columns)?;
        }
    }
    let phases = accounts.into_iter().map(|(op, account)| account.phase(&op)).collect();
    let window = note(
        "warp-window",
        "Every request of the log counts, from the first one's start to the last one's end; warp omits the start and the end.",
    );
    Ok(Found { phases, command, notes: vec![window], ..Found::default() })
}

impl Columns {
    fn of(header: &Row<'_>) -> Result<Self, String> {
        let column = |name: &str| {
            find(header, name).ok_or_else(|| format!("line {}: there is no column `{name}`", header.line))
        };
        Ok(Self {
            op: column("op")?,
            start: column("start")?,
            end: column("end")?,
            duration: column("duration_ns")?,
            bytes: column("bytes")?,
            error: column("error")?,
            thread: column("thread")?,
            client: column("client_id")?,
            first_byte: find(header, "first_byte"),
        })
    }

    fn request(&self, row: &Row<'_>) -> Result<Request, String> {
        let broken = |name: &str, column: usize| {
            format!("line {}: `{}` in column `{name}` cannot be read", row.line, row.cell(column))
        };
        let took_ns = count(row.cell(self.duration)).ok_or_else(|| broken("duration_ns", self.duration))?;
        Ok(Request {
            started_ns: moment(row.cell(self.start)).ok_or_else(|| broken("start", self.start))?,
            ended_ns: moment(row.cell(self.end)).ok_or_else(|| broken("end", self.end))?,
            took_ns,
            bytes: count(row.cell(self.bytes)).ok_or_else(|| broken("bytes", self.bytes))?,
        })
    }
}

impl Account {
    fn new(first: &Request) -> Self {
        Self {
            started_ns: first.started_ns,
            ended_ns: first.ended_ns,
            tally: Tally::default(),
            workers: BTreeSet::new(),
            seconds: BTreeMap::new(),
            examples: Vec::new(),
        }
    }

    fn take(&mut self, row: &Row<'_>, columns: &Columns) -> Result<(), String> {
        let request = columns.request(row)?;
        let worker =
            (one_line(row.cell(columns.client), EXAMPLE_MOST), count(row.cell(columns.thread)).unwrap_or(0));
        if self.workers.insert(worker) && self.workers.len() > WORKERS_MOST {
            let most = units::count(WORKERS_MOST as u64);
            return Err(format!("line {}: the file has more than {most} threads", row.line));
        }
        let index = u32::try_from(request.ended_ns.saturating_sub(self.started_ns) / 1_000_000_000);
        let index = index.unwrap_or(u32::MAX).min(LONGEST_SERIES);
        let (second, times) = self.seconds.entry(index).or_default();
        let error = one_line(row.cell(columns.error), EXAMPLE_MOST);
        if !error.is_empty() {
            let fault = class(&error);
            draft::fail(&mut self.tally, fault, 1);
            self.tally.failure.record(request.took_ns);
            second.failed += 1;
            let known = self.examples.iter().any(|example| example.text == error);
            if !known && self.examples.len() < EXAMPLES_MOST {
                self.examples.push(Example { fault, text: error });
            }
            return Ok(());
        }
        self.tally.ok += 1;
        self.tally.bytes = self.tally.bytes.saturating_add(request.bytes);
        self.tally.response.record(request.took_ns);
        second.ok += 1;
        second.bytes = second.bytes.saturating_add(request.bytes);
        times.push(request.took_ns);
        let first = columns.first_byte.and_then(|column| moment(row.cell(column)));
        if let Some(first) = first.and_then(|first| first.checked_sub(request.started_ns)) {
            self.tally.first_byte.record(first);
        }
        Ok(())
    }

    fn phase(self, op: &str) -> Phase {
        let seconds: Column =
            self.seconds.into_iter().map(|(index, (second, times))| (index, timed(second, times))).collect();
        Phase {
            operation: draft::operation(&kind(op), self.tally, None),
            workers: self.workers.len() as u64,
            started_ns: self.started_ns,
            ended_ns: self.ended_ns.max(self.started_ns),
            seconds,
            examples: self.examples,
        }
    }
}

/// A second with the statistics of its response times: the smallest values that the shares do not exceed.
fn timed(second: SecondOfOperation, mut times: Vec<u64>) -> SecondOfOperation {
    times.sort_unstable();
    let at = |share: f64| {
        let rank = (times.len() as f64 * share).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    };
    let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
    SecondOfOperation {
        mean_ns: u64::try_from(sum / (times.len().max(1) as u128)).unwrap_or(u64::MAX),
        p50_ns: at(0.5),
        p95_ns: at(0.95),
        p99_ns: at(0.99),
        max_ns: at(1.0),
        service_p99_ns: at(0.99),
        ..second
    }
}
