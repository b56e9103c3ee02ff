//! What pgbench prints, at its end and with `-P`, and its log of every transaction (`-l`).

use crate::Options;
use crate::database::{self, Found, RUNS_MOST, Step, behind, word};
use crate::draft::{self, Column};
use crate::number::{count, ms, quantity, seconds};
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use tidemark_measure::record::{Reported, Run, SecondOfOperation};
use tidemark_measure::tally::Tally;

/// More scripts than pgbench takes (128).
const SCRIPTS_MOST: usize = 128;

/// Reads all runs of a text, or the log.
pub(crate) fn read(source: &Source, options: &Options) -> Result<Vec<Run>, String> {
    let found = match is_log(&source.text) {
        true => vec![log(&source.text)?],
        false => parts(&source.text).into_iter().map(run).collect::<Result<_, _>>()?,
    };
    Ok(database::runs(source, options, found))
}

/// Whether this is a log of transactions: client, transaction, microseconds, script, and the moment of its end.
pub(crate) fn is_log(text: &str) -> bool {
    text.lines().next().is_some_and(|line| Line::of(line).is_some())
}

/// One text per run: what stands behind a result belongs to the next one. Progress comes before or behind its header, as
/// it was kept.
fn parts(text: &str) -> Vec<&str> {
    const BEGIN: [&str; 4] = ["pgbench (", "starting vacuum", "progress:", "transaction type:"];
    let (mut begins, mut at, mut ended) = (vec![0], 0, false);
    for line in text.split_inclusive('\n') {
        if ended && BEGIN.iter().any(|words| line.starts_with(words)) {
            begins.push(at);
            ended = false;
        }
        ended |= line.starts_with("tps = ") && !line.contains("including");
        at += line.len();
    }
    let ends = begins.iter().skip(1).copied().chain([text.len()]);
    begins.iter().zip(ends).map(|(begin, end)| &text[*begin..end]).take(RUNS_MOST).collect()
}

/// Reads one run.
pub(crate) fn run(text: &str) -> Result<Found, String> {
    let missing = |what: &str| format!("pgbench's output has no `{what}`: the file is not whole");
    const DONE: &str = "number of transactions actually processed:";
    let done = behind(text, DONE).and_then(|rest| count(word(rest).split('/').next().unwrap_or_default()));
    let ok = done.ok_or_else(|| missing(DONE))?;
    let printed = word(behind(text, "tps =").ok_or_else(|| missing("tps ="))?);
    let rate = quantity(printed).filter(|rate| *rate > 0.0).ok_or_else(|| {
        format!("pgbench printed `tps = {printed}`, which is no rate above 0: let it run for longer, or find out why nothing was done")
    })?;
    let latency =
        |name: &str| behind(text, name).and_then(|rest| quantity(word(rest.trim_start_matches(['=', ' ']))));
    let failed =
        behind(text, "number of failed transactions:").and_then(|rest| count(word(rest))).unwrap_or(0);
    let mut tally = Tally { ok, ..Tally::default() };
    draft::fail(&mut tally, draft::UNCLASSIFIED, failed);
    let mean_ns = latency("latency average").map(ms);
    let mut notes = vec![(
        "pgbench-latency",
        match latency("latency stddev") {
            Some(stddev) => format!(
                "pgbench printed the mean of the latencies and their standard deviation, {stddev} ms: no percentile is known; its log (`-l`) has every transaction."
            ),
            None => "pgbench printed the mean of the latencies only, worked out of its rate: no percentile is known; its log (`-l`) has every transaction."
                .to_owned(),
        },
    )];
    notes.push((
        "pgbench-rate",
        "Transactions per second are pgbench's, without the time to connect.".to_owned(),
    ));
    if failed > 0 {
        notes.push((
            "pgbench-failures",
            format!("pgbench gave up {failed} transactions; their classes are not in this file."),
        ));
    }
    Ok(Found {
        format: "pgbench output",
        clients: behind(text, "number of clients:").and_then(count).unwrap_or(0),
        // Its rate is that of the transactions that did not fail.
        elapsed_ns: seconds(ok as f64 / rate),
        operations: vec![draft::operation(
            "transaction",
            tally,
            Some(Reported { throughput: Some(rate), mean_ns, ..Reported::default() }),
        )],
        seconds: steps(text),
        notes,
    })
}

fn steps(text: &str) -> Column {
    database::column(text.lines().filter_map(step))
}

/// `progress: 2.0 s, 2692.5 tps, lat 1.470 ms stddev 0.649, 0 failed`
pub(crate) fn step(line: &str) -> Option<Step> {
    let mut cells = line.strip_prefix("progress: ")?.split(", ");
    let at_s = quantity(cells.next()?.strip_suffix(" s")?)?;
    let rate = quantity(cells.next()?.strip_suffix(" tps")?)?;
    let mean = cells.next().and_then(|cell| quantity(word(cell.strip_prefix("lat ")?)));
    Some(Step { at_s, rate, mean_ns: ms(mean.unwrap_or(0.0)) })
}

/// A transaction of the log.
struct Line {
    client: u64,
    /// How long it took, ns; `None`: it failed, or was skipped.
    took_ns: Option<u64>,
    script: u64,
    ended_unix_ns: u64,
}

impl Line {
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let client = words.next()?.parse().ok()?;
        let _: u64 = words.next()?.parse().ok()?;
        let took = words.next()?;
        let script = words.next()?.parse().ok()?;
        let second: u64 = words.next()?.parse().ok()?;
        let micro: u64 = words.next()?.parse().ok()?;
        // An aggregated log begins with a moment, too.
        let is_moment = (1_000_000_000..100_000_000_000).contains(&second) && micro < 1_000_000;
        if !is_moment {
            return None;
        }
        let took_ns = match took {
            "failed" | "skipped" | "serialization" | "deadlock" => None,
            took => Some(took.parse::<u64>().ok()?.checked_mul(1_000)?),
        };
        let ended_unix_ns = second.checked_mul(1_000_000_000)?.checked_add(micro * 1_000)?;
        Some(Self { client, took_ns, script, ended_unix_ns })
    }
}

fn log(text: &str) -> Result<Found, String> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (mut first, mut last) = (u64::MAX, 0);
    for (index, line) in lines() {
        let one = Line::of(line).ok_or_else(|| {
            format!(
                "line {}: is no transaction of pgbench's log; logs of `--aggregate-interval` are not read",
                index + 1
            )
        })?;
        first = first.min(one.ended_unix_ns.saturating_sub(one.took_ns.unwrap_or(0)));
        last = last.max(one.ended_unix_ns);
    }
    let (mut clients, mut scripts, mut column) =
        (BTreeSet::new(), BTreeMap::<u64, Tally>::new(), Column::new());
    for one in lines().filter_map(|(_, line)| Line::of(line)) {
        clients.insert(one.client);
        let tally = scripts.entry(one.script).or_default();
        let second =
            u32::try_from(one.ended_unix_ns.saturating_sub(first) / 1_000_000_000).unwrap_or(u32::MAX);
        let second: &mut SecondOfOperation = column.entry(second).or_default();
        match one.took_ns {
            Some(took) => {
                tally.ok += 1;
                tally.response.record(took);
                second.ok += 1;
                second.max_ns = second.max_ns.max(took);
            }
            None => {
                draft::fail(tally, draft::UNCLASSIFIED, 1);
                second.failed += 1;
            }
        }
        if scripts.len() > SCRIPTS_MOST {
            return Err(format!("has more than {SCRIPTS_MOST} scripts: the file is damaged"));
        }
    }
    let several = scripts.len() > 1;
    let named = |script: u64| if several { format!("script {script}") } else { "transaction".to_owned() };
    Ok(Found {
        format: "pgbench log",
        clients: clients.len() as u64,
        elapsed_ns: last.saturating_sub(first).max(1),
        operations: scripts.into_iter().map(|(script, tally)| draft::operation(&named(script), tally, None)).collect(),
        // A second's numbers are those of one operation.
        seconds: if several { Column::new() } else { column },
        notes: vec![(
            "pgbench-window",
            "Every transaction of the log counts, from the first one's start to the last one's end; each thread of pgbench writes a log of its own, and this is one of them. What was skipped counts as failed."
                .to_owned(),
        )],
    })
}

#[cfg(test)]
mod tests;
