//! CSV (RFC 4180): one row per stage, work and operation, and one per second of each.
//!
//! Numbers are in base units, named in the headers: nanoseconds, bytes, per second, shares of 1. Nothing is
//! rounded. A number that does not exist is an empty cell; a stage without operations has a row of its own, so
//! that one that failed is not missing.

use crate::content::operations;
use crate::text::percentile_name;
use csv::{Terminator, WriterBuilder};
use tidemark_measure::fault::Fault;
use tidemark_measure::histogram::{Histogram, PERCENTILES};
use tidemark_measure::record::{DeviceUse, Operation, Run, Second, Stage, Work};

/// Cells of a row that say where an operation belongs.
const PLACE: [&str; 7] = ["run_id", "run_name", "stage", "stage_state", "work", "work_kind", "operation"];

/// Cells about the work and the operation, before the distributions.
const NUMBERS: [&str; 23] = [
    "type",
    "sample",
    "weight_percent",
    "workers",
    "threads",
    "offered_op_per_s",
    "work_started_ns",
    "window_start_ns",
    "window_end_ns",
    "last_done_ns",
    "ok",
    "failed",
    "success_ratio",
    "bytes",
    "late",
    "late_bytes",
    "retries",
    "throughput_op_per_s",
    "bandwidth_bytes_per_s",
    "work_unsent",
    "work_undone",
    "work_longest_without_success_from_ns",
    "work_longest_without_success_ns",
];

/// Cells about the sweep and the devices, after everything else: columns before them keep their places. Axes stand
/// as `name=value`, with `;` between them; what devices counted is the stage's, over all of them.
const CELL: [&str; 11] = [
    "sweep",
    "axes",
    "repeat",
    "engine",
    "depth",
    "outside_bytes",
    "stage_device_read_bytes",
    "stage_device_written_bytes",
    "stage_device_discarded_bytes",
    "verified",
    "unchecked",
];

/// The distributions of an operation, in the order of their groups of columns.
const DISTRIBUTIONS: [&str; 5] = ["response", "service", "first_byte", "lag", "failure"];

/// The numbers of every operation, with a header line.
pub fn csv(run: &Run) -> String {
    let mut header: Vec<String> = PLACE.iter().chain(&NUMBERS).map(ToString::to_string).collect();
    for distribution in DISTRIBUTIONS {
        let percentiles = PERCENTILES.map(|fraction| format!("{}_ns", percentile_name(fraction)));
        let names = ["count", "mean_ns", "min_ns"].map(String::from).into_iter().chain(percentiles);
        header.extend(names.map(|name| format!("{distribution}_{name}")));
    }
    header.extend(Fault::ALL.iter().map(|fault| format!("failed_{}", fault.name())));
    header.extend(CELL.map(String::from));
    let numbers = header.len() - CELL.len();
    let rows = run.stages.iter().flat_map(|stage| {
        let mut rows: Vec<Vec<String>> =
            operations(stage).map(|(work, operation)| operation_cells(run, stage, work, operation)).collect();
        if rows.is_empty() {
            let mut cells = place(run, stage);
            cells.resize(numbers, String::new());
            cells.extend(cell_cells(stage, None));
            rows.push(cells);
        }
        rows
    });
    text([header].into_iter().chain(rows), Terminator::CRLF)
}

/// The seconds of every operation, with a header line. Latencies are response times; the last six columns are
/// the work's and stand in each of its operations' rows.
pub fn csv_series(run: &Run) -> String {
    let own = [
        "second",
        "ok",
        "failed",
        "bytes",
        "mean_ns",
        "p50_ns",
        "p95_ns",
        "p99_ns",
        "max_ns",
        "service_p99_ns",
    ];
    let shared = [
        "second_started_unix_ns",
        "work_unmeasured",
        "work_in_flight",
        "work_oldest_in_flight_ns",
        "work_backlog",
        "work_busy_ratio",
    ];
    let header: Vec<String> = PLACE.iter().chain(&own).chain(&shared).map(ToString::to_string).collect();
    let works = run.stages.iter().flat_map(|stage| stage.works.iter().map(move |work| (stage, work)));
    let rows = works.flat_map(|(stage, work)| {
        work.operations.iter().enumerate().flat_map(move |(index, operation)| {
            let place = operation_place(run, stage, work, operation);
            work.series
                .iter()
                .map(move |second| [&place[..], &second_cells(run, work, second, index)].concat())
        })
    });
    text([header].into_iter().chain(rows), Terminator::CRLF)
}

fn second_cells(run: &Run, work: &Work, second: &Second, operation: usize) -> Vec<String> {
    let n = second.operations.get(operation).copied().unwrap_or_default();
    let latencies = [n.mean_ns, n.p50_ns, n.p95_ns, n.p99_ns, n.max_ns, n.service_p99_ns];
    let began = u64::from(second.index).saturating_mul(1_000_000_000);
    let began = run.started_unix_ns.saturating_add(work.started_ns).saturating_add(began);
    let mut cells = [u64::from(second.index), n.ok, n.failed, n.bytes].map(|n| n.to_string()).to_vec();
    cells.extend(latencies.map(|ns| if n.ok > 0 { ns.to_string() } else { String::new() }));
    cells.extend([began, second.unmeasured, u64::from(second.in_flight)].map(|n| n.to_string()));
    cells.extend([second.oldest_in_flight_ns, second.backlog].map(|n| n.to_string()));
    cells.push(second.busy.to_string());
    cells
}

/// Rows as text, with quotes around cells that need them, and an apostrophe before those that a spreadsheet would carry out.
pub(crate) fn text<C: AsRef<[u8]>>(
    rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
    end: Terminator,
) -> String {
    let mut writer = WriterBuilder::new().flexible(true).terminator(end).from_writer(Vec::new());
    for row in rows {
        // Nothing that is written to memory fails.
        let _ = writer.write_record(row.into_iter().map(inert));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// A cell that no spreadsheet takes for a formula, and without characters that act on a terminal (U+FFFD stands for each):
/// names come from documents. Numbers stay as they are.
fn inert<C: AsRef<[u8]>>(cell: C) -> Vec<u8> {
    let acts = |one: char| one.is_control() && !matches!(one, '\t' | '\r' | '\n');
    let text = String::from_utf8_lossy(cell.as_ref()).replace(acts, "\u{fffd}");
    let bytes = text.as_bytes();
    // What is blank at the start some programs take away before they look.
    let acts = matches!(bytes, [b'\t' | b'\r' | b'\n', _, ..])
        || matches!(bytes.trim_ascii_start(), [b'=' | b'+' | b'-' | b'@', _, ..]);
    let is_number = || str::from_utf8(bytes).is_ok_and(|text| text.parse::<f64>().is_ok());
    match acts && !is_number() {
        true => [b"'", bytes].concat(),
        false => bytes.to_vec(),
    }
}

fn place(run: &Run, stage: &Stage) -> Vec<String> {
    vec![run.id.to_string(), run.name.clone(), stage.id.clone(), stage.state.name().into()]
}

fn operation_place(run: &Run, stage: &Stage, work: &Work, operation: &Operation) -> Vec<String> {
    let mut cells = place(run, stage);
    cells.extend([work.name.clone(), work.kind.name().into(), operation.label.clone()]);
    cells
}

fn operation_cells(run: &Run, stage: &Stage, work: &Work, operation: &Operation) -> Vec<String> {
    let (tally, window) = (&operation.tally, work.window_seconds());
    let optional = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let longest_gap = work.longest_gap.map(|longest_gap| [longest_gap.from_ns, longest_gap.length_ns()]);
    let mut cells = operation_place(run, stage, work, operation);
    cells.extend([operation.kind.clone(), operation.class.name().into(), operation.weight.to_string()]);
    cells.extend([work.workers, work.threads].map(|number| number.to_string()));
    cells.push(optional(work.offered_rate));
    cells.extend(
        [
            work.started_ns,
            work.window_start_ns,
            work.window_end_ns,
            work.last_done_ns,
            tally.ok,
            tally.failed(),
        ]
        .map(|number| number.to_string()),
    );
    cells.push(optional(tally.success_ratio()));
    cells.extend([tally.bytes, tally.late, tally.late_bytes, tally.retries].map(|number| number.to_string()));
    cells
        .extend([operation.throughput(window), operation.bandwidth(window)].map(|number| number.to_string()));
    cells.extend([work.unsent, work.undone].map(|number| number.to_string()));
    cells
        .extend(longest_gap.map_or([String::new(), String::new()], |numbers| numbers.map(|n| n.to_string())));
    cells.extend(match (&operation.reported, tally.response.is_empty()) {
        (Some(_), true) => said_cells(operation),
        _ => histogram_cells(&tally.response),
    });
    for histogram in [tally.service(), &tally.first_byte, &tally.lag, &tally.failure] {
        cells.extend(histogram_cells(histogram));
    }
    cells.extend(Fault::ALL.iter().map(|fault| tally.faults.of(*fault).to_string()));
    cells.extend(cell_cells(stage, Some((work, operation))));
    cells
}

/// The cells named by [`CELL`]; those of the work and the operation are empty where there are none.
fn cell_cells(stage: &Stage, own: Option<(&Work, &Operation)>) -> Vec<String> {
    let mut cells = match &stage.cell {
        Some(cell) => {
            let axes: Vec<String> =
                cell.axes.iter().map(|axis| format!("{}={}", axis.name, axis.value)).collect();
            vec![cell.sweep.clone(), axes.join(";"), cell.repeat.to_string(), cell.engine.clone()]
        }
        None => vec![String::new(); 4],
    };
    cells.extend(match own {
        Some((work, operation)) => {
            [u64::from(work.depth.max(1)), operation.tally.outside_bytes].map(|n| n.to_string())
        }
        None => [String::new(), String::new()],
    });
    let counted = |bytes: fn(&DeviceUse) -> u64| match &stage.proof {
        Some(proof) if !proof.devices.is_empty() => {
            proof.devices.iter().map(bytes).fold(0, u64::saturating_add).to_string()
        }
        _ => String::new(),
    };
    let devices: [fn(&DeviceUse) -> u64; 3] =
        [|device| device.read_bytes, |device| device.written_bytes, |device| device.discarded_bytes];
    cells.extend(devices.map(counted));
    cells.extend(match own {
        Some((_, operation)) => {
            [operation.tally.verified, operation.tally.unchecked.total()].map(|n| n.to_string())
        }
        None => [String::new(), String::new()],
    });
    cells
}

/// Response times as another tool says them: the cells of a histogram, as far as they are known.
fn said_cells(operation: &Operation) -> Vec<String> {
    let known = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let mut cells = vec![operation.tally.ok.to_string(), known(operation.mean_ns()), String::new()];
    cells.extend(PERCENTILES.map(|fraction| known(operation.quantile_ns(fraction))));
    cells
}

fn histogram_cells(histogram: &Histogram) -> Vec<String> {
    let mut cells = vec![histogram.count().to_string()];
    if histogram.is_empty() {
        cells.resize(3 + PERCENTILES.len(), String::new());
    } else {
        cells.extend([histogram.mean().to_string(), histogram.min().to_string()]);
        cells.extend(PERCENTILES.map(|fraction| histogram.quantile(fraction).to_string()));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Reads the text back; every row must have as many cells as the header.
    fn read(text: &str) -> Vec<Vec<String>> {
        let rows =
            csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes()).into_deserialize();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut run = sample::healthy(10);
        run.name = "a, \"quoted\"\r\nname".into();
        for text in [csv(&run), csv_series(&run)] {
            let rows = read(&text);
            assert!(rows.len() > 5);
            assert!(rows[1..].iter().all(|row| row[1] == run.name));
        }
        let rows = read(&csv(&run));
        let column = |name: &str| rows[0].iter().position(|header| header == name).unwrap();
        let main = rows.iter().find(|row| row[2] == "s3-main" && row[6] == "read").unwrap();
        let tally = &run.stages[2].works[0].operations[0].tally;
        assert_eq!(main[column("ok")], tally.ok.to_string());
        assert_eq!(main[column("response_p99.99_ns")], tally.response.quantile(0.9999).to_string());
        assert_eq!(main[column("response_max_ns")], tally.response.max().to_string());
    }

    #[test]
    fn names_are_no_formulas_and_numbers_stay_numbers() {
        for name in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n@a"] {
            let mut run = sample::healthy(5);
            run.name = name.into();
            for text in [csv(&run), csv_series(&run)] {
                assert!(read(&text)[1..].iter().all(|row| row[1] == format!("'{name}")), "{name}");
            }
        }
        let written = text([["-", "-3.5", "1e-9", "+5", "a=b", ""]], Terminator::CRLF);
        assert_eq!(written, "-,-3.5,1e-9,+5,a=b,\"\"\r\n".replace(",\"\"", ","));
    }

    #[test]
    fn a_failed_stage_without_operations_is_there() {
        let mut run = sample::healthy(5);
        run.stages[2].works.clear();
        run.stages[2].state = tidemark_measure::record::State::Failed;
        let rows = read(&csv(&run));
        assert!(rows.iter().any(|row| row[2] == "s3-main" && row[3] == "failed"));
    }

    #[test]
    fn cells_and_devices_stand_at_the_end() {
        let run = sample::sweeps(2);
        let rows = read(&csv(&run));
        let last = |row: &[String]| row[row.len() - CELL.len()..].to_vec();
        assert_eq!(last(&rows[0]), CELL);
        let device = &run.stages[0].proof.as_ref().unwrap().devices[0];
        let (read_bytes, written) = (device.read_bytes.to_string(), device.written_bytes.to_string());
        let axes = "pattern=randread;block_size=4 KiB;clients=4";
        assert_eq!(
            last(&rows[1]),
            ["points", axes, "1", "native", "16", "0", &read_bytes, &written, "0", "0", "0"]
        );
    }

    #[test]
    fn percentiles_have_their_usual_names() {
        let names = ["p50", "p60", "p80", "p90", "p95", "p99", "p99.9", "p99.99", "max"];
        assert_eq!(PERCENTILES.map(percentile_name), names);
    }
}
