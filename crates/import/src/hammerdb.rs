//! What HammerDB says of TPROC-C: its test results, as text or in the JSON of `jobs ... result`, and the times of its
//! procedures, as text of its profiler or in the JSON of `jobs ... timing`.

use crate::Options;
use crate::database::{self, Found, RUNS_MOST, word};
use crate::draft::{self, Column};
use crate::number::{count, ms, quantity, seconds};
use crate::source::{Source, begin_of_json};
use serde_json::Value;
use tidemark_measure::record::{Operation, Reported, Run};
use tidemark_measure::tally::Tally;

/// More procedures than its workloads have.
const PROCEDURES_MOST: usize = 100;

/// Reads all results of a text, or the times of procedures if there is no result.
pub(crate) fn read(source: &Source, options: &Options) -> Result<Vec<Run>, String> {
    let text = &source.text;
    let mut found: Vec<Found> = results(text).take(RUNS_MOST).collect();
    let (elapsed_ns, procedures) = timing_of_json(text).unwrap_or_else(|| timing_of_text(text));
    if !procedures.is_empty() && elapsed_ns > 0 {
        found.push(Found {
            format: "HammerDB timing",
            clients: virtual_users(text),
            elapsed_ns,
            operations: procedures,
            seconds: Column::new(),
            notes: vec![(
                "hammerdb-timing",
                "Times are of HammerDB's profiler: its percentiles are of a sample of the calls, its calls include the ramp-up, and a call whose transaction was rolled back by the server counts as one.".into(),
            )],
        });
    }
    match found.is_empty() {
        true => Err("has no `TEST RESULT` of HammerDB and no times of procedures".into()),
        false => Ok(database::runs(source, options, found)),
    }
}

/// `TEST RESULT : System achieved 12345 NOPM from 28401 PostgreSQL TPM`, wherever it stands.
fn results(text: &str) -> impl Iterator<Item = Found> {
    const BEGIN: &str = "System achieved ";
    let mut before = 0;
    text.match_indices(BEGIN).filter_map(move |(at, _)| {
        let line = text[at + BEGIN.len()..].lines().next()?;
        let line = line.split('"').next()?;
        let (one, rest) = line.split_once(" from ")?;
        let of = |part: &str, unit: &str| part.contains(unit).then(|| count(word(part)))?;
        let nopm = of(one, "NOPM").or_else(|| of(rest, "NOPM"))?;
        let tpm = of(rest, "TPM").or_else(|| of(one, "TPM"));
        let head = &text[std::mem::replace(&mut before, at)..at];
        let minutes = minutes(head).unwrap_or(1.0);
        let tally = Tally { ok: (nopm as f64 * minutes) as u64, ..Tally::default() };
        let said = Reported { throughput: Some(nopm as f64 / 60.0), ..Reported::default() };
        let length = match minutes_are_known(head) {
            true => format!("Its test took {minutes} minutes."),
            false => "How long its test took is not in this file: the record has one minute of it.".to_owned(),
        };
        let tpm = tpm.map_or_else(String::new, |tpm| format!(" and {tpm} transactions of the whole database server, commits and rollbacks, per minute"));
        Some(Found {
            format: "HammerDB result",
            clients: virtual_users(head),
            elapsed_ns: seconds(minutes * 60.0),
            operations: vec![draft::operation("new-order", tally, Some(said))],
            seconds: Column::new(),
            notes: vec![(
                "hammerdb-result",
                format!("HammerDB counted {nopm} new orders per minute in the database's tables{tpm}. {length} It reports neither response times nor failures here."),
            )],
        })
    })
}

fn minutes(text: &str) -> Option<f64> {
    let (_, rest) = text.rsplit_once("Timing test period of ")?;
    quantity(word(rest)).filter(|minutes| *minutes > 0.0 && *minutes < 1e6)
}

fn minutes_are_known(text: &str) -> bool {
    minutes(text).is_some()
}

/// `4 Active Virtual Users configured`; 0 where it is not said.
fn virtual_users(text: &str) -> u64 {
    let Some((before, _)) = text.rsplit_once(" Active Virtual Users configured") else { return 0 };
    before.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(count).unwrap_or(0)
}

/// The procedures of a text's summary, or of its only virtual user.
fn timing_of_text(text: &str) -> (u64, Vec<Operation>) {
    let summary = text.rfind(">>>>> SUMMARY OF").map_or(text, |at| &text[at..]);
    let elapsed = summary
        .split_once("ELAPSED TIME : ")
        .and_then(|(_, rest)| quantity(word(rest).trim_end_matches("ms")));
    let blocks = summary.split(">>>>> PROC: ").skip(1).take(PROCEDURES_MOST);
    let operation = |block: &str| {
        let figure = |name: &str| {
            let (_, rest) = block.split_once(&format!("{name}: "))?;
            quantity(word(rest).trim_end_matches("ms"))
        };
        procedure(word(block), &|name| figure(&name.to_ascii_uppercase()))
    };
    (elapsed.map_or(0, |elapsed| ms(elapsed) as u64), blocks.filter_map(operation).collect())
}

/// `{"NEWORD": {"elapsed_ms": "1.0", "calls": "1", "p99_ms": "1.0", ...}, ...}`
fn timing_of_json(text: &str) -> Option<(u64, Vec<Operation>)> {
    let json = &text[begin_of_json(text)?..];
    let first = serde_json::Deserializer::from_str(json).into_iter::<Value>().next()?.ok()?;
    let procedures = first.as_object()?;
    let figure = |told: &Value, name: &str| match &told[name] {
        Value::String(text) => quantity(text),
        Value::Number(number) => number.as_f64().filter(|number| *number >= 0.0),
        _ => None,
    };
    let elapsed = procedures.values().filter_map(|told| figure(told, "elapsed_ms")).fold(0.0, f64::max);
    let operation = |(name, told): (&String, &Value)| {
        procedure(name, &|part| match part {
            "calls" => figure(told, part),
            part => figure(told, &format!("{part}_ms")),
        })
    };
    Some((ms(elapsed) as u64, procedures.iter().take(PROCEDURES_MOST).filter_map(operation).collect()))
}

/// A procedure with figures of these names, milliseconds but for the calls.
fn procedure(name: &str, figure: &dyn Fn(&str) -> Option<f64>) -> Option<Operation> {
    let tally = Tally { ok: figure("calls")? as u64, ..Tally::default() };
    let shares = [("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)];
    let percentiles = shares.iter().filter_map(|(name, share)| Some((*share, ms(figure(name)?)))).collect();
    let said = Reported { mean_ns: figure("avg").map(ms), percentiles, ..Reported::default() };
    Some(draft::operation(&name.to_lowercase(), tally, Some(said)))
}

#[cfg(test)]
mod tests;
