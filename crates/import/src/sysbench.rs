//! What sysbench prints of its tests of databases: figures at the end, interval lines, and the histogram.

use crate::Options;
use crate::database::{self, Found, RUNS_MOST, Step, behind, word};
use crate::draft::{self, Column};
use crate::number::{count, ms, quantity, seconds};
use crate::source::Source;
use tidemark_measure::record::{Reported, Run};
use tidemark_measure::tally::Tally;

/// Shares whose percentiles are read from a histogram.
const SHARES: [f64; 6] = [0.50, 0.60, 0.80, 0.90, 0.95, 0.99];

/// Reads all runs of a text.
pub(crate) fn read(source: &Source, options: &Options) -> Result<Vec<Run>, String> {
    let found: Result<Vec<Found>, String> = parts(&source.text).into_iter().map(run).collect();
    Ok(database::runs(source, options, found?))
}

/// One text per run: each begins with the name and the version of the program. The output of `prepare` and of `cleanup`
/// has them, too, and no figures.
fn parts(text: &str) -> Vec<&str> {
    let mut begins = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("sysbench ") && at > 0 {
            begins.push(at);
        }
        at += line.len();
    }
    let ends = begins.iter().skip(1).copied().chain([text.len()]);
    let parts: Vec<&str> = begins.iter().zip(ends).map(|(begin, end)| &text[*begin..end]).collect();
    let is_run = |part: &&&str| behind(part, "General statistics:").is_some();
    match parts.iter().filter(is_run).copied().take(RUNS_MOST).collect::<Vec<_>>() {
        runs if runs.is_empty() => vec![text],
        runs => runs,
    }
}

/// Reads one run.
pub(crate) fn run(text: &str) -> Result<Found, String> {
    let missing = |what: &str| {
        format!("sysbench's output has no `{what}`: the file is not whole, or of no database test")
    };
    let done = behind(text, "transactions:").and_then(|rest| count(word(rest)));
    let ok = done.ok_or_else(|| missing("transactions:"))?;
    let time = behind(text, "total time:").or_else(|| behind(text, "time elapsed:"));
    let took = time.and_then(|time| quantity(time.trim_end_matches('s'))).filter(|took| *took > 0.0);
    let took = took.ok_or_else(|| missing("total time:"))?;
    let latency = text.split_once("Latency (ms):").map_or("", |(_, rest)| rest);
    let figure = |name: &str| behind(latency, name).and_then(quantity).map(ms);
    let classes = classes(text);
    let told = told_percentile(latency);
    let mut percentiles = match classes.is_empty() {
        true => told.into_iter().collect(),
        false => of_classes(&classes),
    };
    percentiles.extend(figure("max:").map(|most| (1.0, most)));
    let mut at_most = 0.0f64;
    for (_, ns) in &mut percentiles {
        at_most = at_most.max(*ns);
        *ns = at_most;
    }
    let said = Reported {
        throughput: Some(ok as f64 / took),
        mean_ns: figure("avg:"),
        percentiles,
        bandwidth: None,
    };
    let threads = behind(text, "Number of threads:").and_then(count).unwrap_or(0);
    let mut notes = vec![(
        "sysbench-transactions",
        "Numbers are those of sysbench's whole run, with its first seconds unless it was told to leave them out; a transaction is an event of sysbench. The latency of a transaction that sysbench repeats has all its attempts."
            .to_owned(),
    )];
    notes.push(("sysbench-percentiles", match (classes.is_empty(), told) {
        (false, _) => "Percentiles are read from sysbench's histogram, whose classes are about 2 % wide.".to_owned(),
        (true, Some((share, _))) => format!(
            "sysbench printed one percentile, the {:.0}th, and the largest value: others are not known; `--histogram` keeps them.",
            share * 100.0
        ),
        (true, None) => "sysbench printed no percentile: only the mean and the largest value are known.".to_owned(),
    }));
    let ignored = behind(text, "ignored errors:").and_then(|rest| count(word(rest))).unwrap_or(0);
    let lost = behind(text, "reconnects:").and_then(|rest| count(word(rest))).unwrap_or(0);
    if ignored > 0 || lost > 0 {
        notes.push(("sysbench-errors", format!(
            "sysbench ignored {ignored} errors and connected {lost} times anew; it repeated what had failed, and does not say what the errors were. They are not among the failures."
        )));
    }
    let tally = Tally { ok, ..Tally::default() };
    Ok(Found {
        format: "sysbench output",
        clients: threads,
        elapsed_ns: seconds(took),
        operations: vec![draft::operation("transaction", tally, Some(said))],
        seconds: intervals(text),
        notes,
    })
}

fn intervals(text: &str) -> Column {
    database::column(text.lines().filter_map(step))
}

/// `[ 2s ] thds: 4 tps: 1434.15 qps: ...`
pub(crate) fn step(line: &str) -> Option<Step> {
    let (at, rest) = line.strip_prefix('[')?.split_once("s ]")?;
    let rate = quantity(word(rest.split_once("tps:")?.1))?;
    Some(Step { at_s: quantity(at)?, rate, mean_ns: 0.0 })
}

/// `95th percentile:   4.82`
fn told_percentile(latency: &str) -> Option<(f64, f64)> {
    latency.lines().find_map(|line| {
        let (share, value) = line.trim().split_once("th percentile:")?;
        let share = quantity(share)? / 100.0;
        Some((share, ms(quantity(value)?))).filter(|_| share > 0.0 && share < 1.0)
    })
}

/// `0.768 |**    17`: milliseconds and how many.
fn classes(text: &str) -> Vec<(f64, u64)> {
    let class = |line: &str| {
        let (value, rest) = line.split_once('|')?;
        Some((ms(quantity(value)?), count(rest.trim().trim_start_matches('*'))?))
    };
    let Some((_, rest)) = text.split_once("Latency histogram") else { return Vec::new() };
    rest.lines().take_while(|line| !line.starts_with("SQL statistics")).filter_map(class).collect()
}

fn of_classes(classes: &[(f64, u64)]) -> Vec<(f64, f64)> {
    let all: u64 = classes.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    let at = |share: f64| {
        let needed = ((all as f64 * share).ceil() as u64).max(1);
        let mut sum = 0u64;
        let found = classes.iter().find(|(_, count)| {
            sum = sum.saturating_add(*count);
            sum >= needed
        });
        found.map(|(ns, _)| (share, *ns))
    };
    SHARES.into_iter().filter_map(at).collect()
}

#[cfg(test)]
mod tests;
