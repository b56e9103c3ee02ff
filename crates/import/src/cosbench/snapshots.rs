//! A stage's table of snapshots, one every few seconds, as seconds of its works.

use crate::draft::{Column, note, series, spread};
use crate::number::{count, ms, percent, quantity};
use crate::sheet::{Row, Sheet};
use crate::source::Source;
use std::path::Path;
use tidemark_measure::record::{Note, SecondOfOperation, Stage};

/// Groups of columns that are read.
const GROUPS: [&str; 4] = ["Op-Count", "Byte-Count", "Avg-ResTime", "Succ-Ratio"];

const DAY_S: u64 = 86_400;

/// Gives a stage's works their seconds, if its table of snapshots is in the directory. What there is to say about
/// them comes back.
pub(super) fn read(directory: &Path, stage: &mut Stage) -> Result<Option<Note>, String> {
    // An id comes from a table: it must not lead out of the directory.
    let path = directory.join(format!("{}.csv", stage.id));
    if stage.id.contains(['/', '\\']) || !path.is_file() {
        return Ok(None);
    }
    let source = Source::found(&path).map_err(|error| format!("{}.csv: {error}", stage.id))?;
    if source.text.trim().is_empty() {
        return Ok(None);
    }
    let sheet = Sheet::read(&source.text, ',').map_err(|error| format!("{}.csv: {error}", stage.id))?;
    let rows: Vec<Row<'_>> = std::iter::once(sheet.header).chain(sheet.rows).collect();
    let operations = stage.works.iter().map(|work| work.operations.len()).sum();
    let Some((groups, rows)) = groups(&rows, operations) else {
        let what =
            format!("The snapshots of stage {} do not match its operations and were skipped.", stage.id);
        return Ok((!rows.is_empty()).then(|| note("cosbench-snapshots", what)));
    };
    let (mut columns, interval) = columns(rows, groups, operations);
    for work in &mut stage.works {
        let rest = columns.split_off(work.operations.len());
        work.series = series(&columns);
        columns = rest;
    }
    let what = format!(
        "Snapshots of stage {} are {interval} s apart: each second shows the mean of its snapshot. They have no percentiles.",
        stage.id
    );
    Ok((interval > 1).then(|| note("cosbench-snapshots", what)))
}

/// Where the groups begin, and the rows below the two of the header; `None` if these are not the columns of this many
/// operations.
fn groups<'r, 'a>(rows: &'r [Row<'a>], operations: usize) -> Option<([usize; 4], &'r [Row<'a>])> {
    let (header, rest) = rows.split_first()?;
    let (names, rows) = rest.split_first()?;
    if operations == 0 || !names.cell(0).is_empty() {
        return None;
    }
    let place = |name: &str| header.cells.iter().position(|cell| cell.trim() == name);
    let mut groups = [0; 4];
    for (group, name) in groups.iter_mut().zip(GROUPS) {
        *group = place(name)?;
    }
    (groups[1].checked_sub(groups[0])? == operations).then_some((groups, rows))
}

/// Seconds of each operation, and how far apart snapshots are, seconds.
fn columns(rows: &[Row<'_>], groups: [usize; 4], operations: usize) -> (Vec<Column>, u64) {
    let mut columns = vec![Column::new(); operations];
    let taken: Vec<u64> = ascending(rows.iter().filter_map(|row| second_of_day(row.cell(0))));
    let mut gaps: Vec<u64> = taken.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0).collect();
    gaps.sort_unstable();
    let interval = gaps.get(gaps.len() / 2).copied().unwrap_or(1);
    let first = taken.first().copied().unwrap_or(0);
    let timed = rows.iter().filter(|row| second_of_day(row.cell(0)).is_some());
    let mut from = 0;
    for (row, at) in timed.zip(&taken) {
        let to = u32::try_from(at - first + interval).unwrap_or(u32::MAX);
        for (place, column) in columns.iter_mut().enumerate() {
            let cell = |group: usize| row.cell(groups[group] + place);
            let ok = count(cell(0)).unwrap_or(0);
            let share = percent(cell(3)).filter(|share| *share > 0.0 && *share < 1.0);
            let numbers = SecondOfOperation {
                ok,
                failed: share.map_or(0, |share| (ok as f64 / share - ok as f64).round() as u64),
                bytes: count(cell(1)).unwrap_or(0),
                mean_ns: quantity(cell(2)).map_or(0, |mean| ms(mean) as u64),
                ..SecondOfOperation::default()
            };
            // Two snapshots within a second are of the same one.
            spread(column, from.min(to.saturating_sub(1)), to, numbers);
        }
        from = to;
    }
    (columns, interval)
}

/// Times of day as seconds since the first midnight: they begin anew at every midnight.
fn ascending(times: impl Iterator<Item = u64>) -> Vec<u64> {
    let (mut days, mut last) = (0, 0);
    let later = |time: u64| {
        if time < last {
            days += DAY_S;
        }
        last = time;
        time + days
    };
    times.map(later).collect()
}

/// The time in `18:00:10`, or in a date with it.
fn second_of_day(text: &str) -> Option<u64> {
    let time = text.split([' ', 'T']).next_back()?;
    let parts: Vec<u64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    match parts[..] {
        [hours, minutes, seconds] if hours < 24 && minutes < 60 && seconds < 61 => {
            Some(hours * 3_600 + minutes * 60 + seconds)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::Rows;

    #[test]
    fn snapshots_five_seconds_apart_become_seconds() {
        let text = "Timestamp,Op-Count,,Byte-Count,,Avg-ResTime,,Avg-ProcTime,,Throughput,,Bandwidth,,Succ-Ratio,,Version-Info,,\n\
            ,read,write,read,write,read,write,read,write,read,write,read,write,read,write,Min-Version,Version,Max-Version\n\
            23:59:55,50,10,500,100,2,4,1,1,10,2,100,20,100%,50%,1,1,1\n\
            00:00:00,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,2,2,2\n\
            00:00:05,25,5,250,50,3,4,1,1,5,1,50,10,100%,100%,3,3,3\n";
        let rows: Vec<Row<'_>> = Rows::new(text, ',').map(Result::unwrap).collect();
        let (groups, rows) = groups(&rows, 2).unwrap();
        let (columns, interval) = columns(rows, groups, 2);
        assert_eq!((interval, columns[0].len()), (5, 15));
        let ok: Vec<u64> = columns[0].values().map(|second| second.ok).collect();
        assert_eq!(ok, [10, 10, 10, 10, 10, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5]);
        assert_eq!(columns[1].values().map(|second| second.failed).sum::<u64>(), 10);
        assert_eq!(
            (columns[0][&0].mean_ns, columns[0][&12].mean_ns, columns[0][&12].bytes),
            (2_000_000, 3_000_000, 50)
        );
    }

    #[test]
    fn other_columns_are_refused() {
        let rows: Vec<Row<'_>> =
            Rows::new("Timestamp,Op-Count,Byte-Count\n,read,read\n", ',').map(Result::unwrap).collect();
        assert!(groups(&rows, 1).is_none());
        assert!(groups(&rows[..1], 1).is_none() && groups(&[], 1).is_none());
    }
}
