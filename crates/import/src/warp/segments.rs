//! warp's table of segments (`--analyze.out`): a row for each second or so and type of operation.

use super::{Found, Phase, kind};
use crate::draft::{self, Column, note, spread};
use crate::number::{count, moment, ms, quantity, seconds};
use crate::sheet::{Row, Sheet};
use tidemark_measure::record::{Reported, SecondOfOperation};
use tidemark_measure::tally::Tally;

pub(super) fn read(text: &str) -> Result<Found, String> {
    let sheet = Sheet::read(text, '\t')?;
    let op = sheet.column("op")?;
    let host = sheet.find("host");
    // Every type of operation comes with a header of its own; rows of single hosts repeat what the others say.
    let is_own = |row: &&Row<'_>| row.cell(op) != "op" && host.is_none_or(|host| row.cell(host).is_empty());
    let rows: Vec<&Row<'_>> = sheet.rows.iter().filter(is_own).collect();
    let phases = rows
        .chunk_by(|one, other| one.cell(op) == other.cell(op))
        .map(|rows| phase(&sheet, rows, op))
        .collect::<Result<_, _>>()?;
    let what = note(
        "warp-segments",
        "A table of segments has mean response times, but no distribution and no number of workers. Bytes of operations in several segments are divided among these.",
    );
    Ok(Found { phases, notes: vec![what], ..Found::default() })
}

fn phase(sheet: &Sheet<'_>, rows: &[&Row<'_>], op: usize) -> Result<Phase, String> {
    let (duration, bytes) = (sheet.column("duration_s")?, sheet.column("bytes")?);
    let (ended, errors) = (sheet.column("ops_ended")?, sheet.column("errors")?);
    let (mean, start) = (sheet.find("reqs_ended_avg_ms"), sheet.find("start_time"));
    let (mut tally, mut series) = (Tally::default(), Column::new());
    let (mut failed, mut length_s, mut timed, mut sum_ms) = (0u64, 0.0, 0.0, 0.0);
    for row in rows {
        let broken = |column: usize| format!("line {}: `{}` is not a number", row.line, row.cell(column));
        let lasting = quantity(row.cell(duration)).ok_or_else(|| broken(duration))?;
        let done = count(row.cell(ended)).ok_or_else(|| broken(ended))?;
        let wrong = count(row.cell(errors)).ok_or_else(|| broken(errors))?.min(done);
        let moved = count(row.cell(bytes)).ok_or_else(|| broken(bytes))?;
        let average = mean.and_then(|mean| quantity(row.cell(mean)));
        tally.ok = tally.ok.saturating_add(done - wrong);
        tally.bytes = tally.bytes.saturating_add(moved);
        failed = failed.saturating_add(wrong);
        if let Some(average) = average {
            timed += done as f64;
            sum_ms += average * done as f64;
        }
        let numbers = SecondOfOperation {
            ok: done - wrong,
            failed: wrong,
            bytes: moved,
            mean_ns: average.map_or(0, |average| ms(average) as u64),
            ..SecondOfOperation::default()
        };
        let from = length_s as u32;
        length_s += lasting;
        spread(&mut series, from, (length_s.round() as u32).max(from.saturating_add(1)), numbers);
    }
    let mut examples = Vec::new();
    draft::fail_somehow(&mut tally, failed, format!("warp counts {failed} errors"), &mut examples);
    let first = rows.first().and_then(|row| go_moment(row.cell(start?)));
    let started_ns = first.unwrap_or(0);
    let said = (timed > 0.0).then(|| Reported { mean_ns: Some(ms(sum_ms / timed)), ..Reported::default() });
    Ok(Phase {
        operation: draft::operation(&kind(rows.first().map_or("", |row| row.cell(op))), tally, said),
        workers: 0,
        started_ns,
        ended_ns: started_ns.saturating_add(seconds(length_s)),
        seconds: series,
        examples,
    })
}

/// A moment as Go prints it: `2020-02-05 18:56:00.5 +0100 CET m=+0.1`.
fn go_moment(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split_whitespace().take(3).collect();
    match parts[..] {
        [date, time, zone] => moment(&format!("{date}T{time}{zone}")),
        _ => moment(text),
    }
}
