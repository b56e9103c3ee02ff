//! The text of every file in the archive.

use super::date;
use super::format::{NONE, mean, milliseconds, num, processing, ratio, row};
use crate::content::operations;
use crate::figures::whole_seconds;
use crate::text::moment;
use jiff::tz::TimeZone;
use tidemark_measure::fault::Fault;
use tidemark_measure::record::{Operation, Run, SecondOfOperation, Stage, State, Work};

pub(super) const HISTORY_HEADER: &str =
    "Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State\n";

pub(super) const MATRIX_HEADER: &str = "Id,Op-Name,Op-Count,Byte-Count,Worker-Count,Avg-ResTime,Avg-ProcTime,\
    60%-ResTime,80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,\
    Config-Info\n";

const WORKLOAD_HEADER: &str = "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,\
    80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,Succ-Ratio,Status,\
    Detailed Status\n";

const WORKER_HEADER: &str =
    "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,Throughput,Bandwidth,Succ-Ratio\n";

/// Metrics of a snapshot, in the order of their groups of columns.
const SNAPSHOT_GROUPS: [&str; 7] =
    ["Op-Count", "Byte-Count", "Avg-ResTime", "Avg-ProcTime", "Throughput", "Bandwidth", "Succ-Ratio"];

/// The percentiles that COSBench has columns for.
const FRACTIONS: [f64; 6] = [0.60, 0.80, 0.90, 0.95, 0.99, 1.0];

/// Classes of the response time histogram: 10 ms wide up to 500 s, and one for all above.
const CLASS_MS: u64 = 10;
const CLASSES: usize = 50_000;

/// One line of `run-history.csv`.
pub(super) fn history(run: &Run, id: &str, zone: &TimeZone) -> String {
    let (start, stop) = (date(run, 0, zone), date(run, run.elapsed_ns, zone));
    let mut kinds: Vec<&str> = Vec::new();
    for (_, operation) in run.stages.iter().flat_map(operations) {
        if !kinds.contains(&operation.kind.as_str()) {
            kinds.push(&operation.kind);
        }
    }
    let state = match run.state {
        State::Waiting => "queuing",
        State::Running => "processing",
        State::Completed => "finished",
        State::Failed => "failed",
        State::Interrupted => "cancelled",
    };
    let detailed =
        [format!("queuing @ {start}"), format!("processing @ {start}"), format!("{state} @ {stop}")];
    let cells = [id, &run.name, &start, &start, &stop, &kinds.join(" "), state];
    row(cells.into_iter().chain(detailed.iter().map(String::as_str)))
}

/// The lines of `workloads.csv`: one per operation of every stage.
pub(super) fn matrix(run: &Run, id: &str) -> String {
    let mut text = String::new();
    for stage in &run.stages {
        for (index, (work, operation)) in operations(stage).enumerate() {
            let config = operation.config.replace(',', "-").replace(';', " ");
            let mut cells = vec![format!("{id}-{}-{}", stage.id, index + 1), op_name(operation)];
            cells.extend([operation.tally.ok.to_string(), operation.tally.bytes.to_string()]);
            cells.push(work.workers.to_string());
            cells.extend(performance(work, operation));
            cells.push(format!("{}% {config}", num(operation.weight)));
            text.push_str(&row(cells));
        }
    }
    text
}

/// `w1-NAME.csv`: the numbers of every stage.
pub(super) fn workload(run: &Run, zone: &TimeZone) -> String {
    let mut text = String::from(WORKLOAD_HEADER);
    for stage in &run.stages {
        let status = status(run, stage, zone);
        let before = text.len();
        for (work, operation) in operations(stage) {
            let mut cells = vec![stage.id.clone(), op_name(operation), operation.kind.clone()];
            cells.extend([operation.tally.ok.to_string(), operation.tally.bytes.to_string()]);
            cells.extend(performance(work, operation));
            text.push_str(&row(cells.iter().chain(&status)));
        }
        if text.len() == before {
            let nothing = std::iter::repeat_n(NONE.to_string(), 15);
            text.push_str(&row([stage.id.clone()].into_iter().chain(nothing).chain(status)));
        }
    }
    text
}

/// `w1-NAME-rt-histogram.csv`: response times of the measured stages in classes of 10 ms.
pub(super) fn histogram(run: &Run) -> String {
    let mut header = vec!["ResTime".to_string()];
    let mut columns: Vec<(Vec<u64>, u64)> = Vec::new();
    for stage in &run.stages {
        for (number, work) in stage.works.iter().enumerate().filter(|(_, work)| work.kind.measures()) {
            for operation in &work.operations {
                let name = format!("{}-w{}-{}-{}", stage.id, number + 1, work.name, op_name(operation));
                header.extend([name, "(%)".into()]);
                columns.push((classes(operation), operation.tally.response.count()));
            }
        }
    }
    let mut text = row(header);
    let mut sums = vec![0; columns.len()];
    for class in 0..=CLASSES {
        let from = class as u64 * CLASS_MS;
        let to = if class < CLASSES { (from + CLASS_MS).to_string() } else { "+INF".into() };
        let mut cells = vec![format!("{from}~{to}")];
        for ((counts, all), sum) in columns.iter().zip(&mut sums) {
            *sum += counts[class];
            cells.extend([counts[class].to_string(), ratio(*sum, *all)]);
        }
        text.push_str(&row(cells));
    }
    text
}

fn classes(operation: &Operation) -> Vec<u64> {
    let mut counts = vec![0; CLASSES + 1];
    for (value_ns, count) in operation.tally.response.buckets() {
        let class = usize::try_from(value_ns / (CLASS_MS * 1_000_000)).unwrap_or(CLASSES);
        counts[class.min(CLASSES)] += count;
    }
    counts
}

/// `s3-main.csv`: a snapshot for every second; empty, as COSBench's, for a stage without any.
pub(super) fn stage(run: &Run, stage: &Stage, zone: &TimeZone) -> String {
    let seconds = stage.works.iter().map(whole_seconds).max().unwrap_or(0);
    let columns: Vec<(&Work, usize, &Operation)> = stage
        .works
        .iter()
        .flat_map(|work| {
            work.operations.iter().enumerate().map(move |(index, operation)| (work, index, operation))
        })
        .collect();
    if seconds == 0 || columns.is_empty() {
        return String::new();
    }
    let mut text = snapshot_header(&columns);
    for second in 0..seconds {
        // COSBench's time of a snapshot is when it was taken: at the end of the second.
        let taken = run.started_unix_ns.saturating_add(stage.started_ns);
        let taken = taken.saturating_add(u64::from(second + 1) * 1_000_000_000);
        let mut cells = vec![moment(taken, zone, "%H:%M:%S")];
        let numbers: Vec<SecondOfOperation> =
            columns.iter().map(|(work, index, _)| in_second(work, second, *index)).collect();
        cells.extend(numbers.iter().map(|n| n.ok.to_string()));
        cells.extend(numbers.iter().map(|n| n.bytes.to_string()));
        cells.extend(numbers.iter().map(|n| milliseconds(n.ok, n.mean_ns as f64)));
        cells.extend(numbers.iter().map(|_| NONE.to_string()));
        cells.extend(numbers.iter().map(|n| n.ok.to_string()));
        cells.extend(numbers.iter().map(|n| n.bytes.to_string()));
        cells.extend(numbers.iter().map(|n| ratio(n.ok, n.ok.saturating_add(n.failed))));
        cells.extend(std::iter::repeat_n((second + 1).to_string(), 3));
        text.push_str(&row(cells));
    }
    text
}

fn snapshot_header(columns: &[(&Work, usize, &Operation)]) -> String {
    let commas = ",".repeat(columns.len());
    let groups: String = SNAPSHOT_GROUPS.iter().map(|group| format!("{group}{commas}")).collect();
    let names: Vec<String> = columns.iter().map(|(_, _, operation)| op_name(operation)).collect();
    let names = std::iter::repeat_n(&names, SNAPSHOT_GROUPS.len()).flatten().map(String::as_str);
    let second = [""].into_iter().chain(names).chain(["Min-Version", "Version", "Max-Version"]);
    format!("Timestamp,{groups}Version-Info,,\n{}", row(second))
}

fn in_second(work: &Work, second: u32, operation: usize) -> SecondOfOperation {
    let found = work.series.binary_search_by_key(&second, |entry| entry.index).ok();
    found.and_then(|place| work.series[place].operations.get(operation)).copied().unwrap_or_default()
}

/// `s3-main-worker.csv`: what every worker did, over the window.
pub(super) fn workers(stage: &Stage) -> String {
    let mut text = String::from(WORKER_HEADER);
    for work in &stage.works {
        let window = work.window_seconds();
        for count in &work.workers_counts {
            let Some(operation) = work.operations.get(usize::from(count.operation)) else { continue };
            let mean = count.response_ns as f64 / count.ok.max(1) as f64;
            text.push_str(&row([
                operation.kind.clone(),
                operation.class.name().into(),
                count.ok.to_string(),
                count.bytes.to_string(),
                milliseconds(count.ok, mean),
                NONE.into(),
                num(count.ok as f64 / window),
                num(count.bytes as f64 / window),
                ratio(count.ok, count.ok.saturating_add(count.failed)),
            ]));
        }
    }
    text
}

/// `workload.log`: how the run went, and what the numbers in this archive mean.
pub(super) fn log(run: &Run, zone: &TimeZone) -> String {
    let mut lines = vec![
        format!("Written by Tidemark {}. Files and headers are COSBench's; the numbers are Tidemark's:", run.provenance.tidemark),
        "- Times are milliseconds with two decimals. 60%-ResTime to 99%-ResTime are true percentiles, 100%-ResTime is the maximum; COSBench prints upper edges of 10 ms classes.".into(),
        "- Avg-ProcTime is the time to the first byte, or Avg-ResTime where nothing is transferred after the reply; N/A where it is not kept (snapshots, workers).".into(),
        "- Throughput and Bandwidth are work in the window divided by the window; COSBench adds up the workers' own rates.".into(),
        "- Succ-Ratio is never rounded to 100% when something failed, nor to 0% when something succeeded.".into(),
        "- Snapshots are whole seconds in which all drivers and workers are complete.".into(),
        String::new(),
    ];
    lines.push(events(run, zone));
    lines.join("\n")
}

/// What happened in a run: its stages, what failed in them, and its end.
pub(super) fn events(run: &Run, zone: &TimeZone) -> String {
    let mut lines = Vec::new();
    for stage in &run.stages {
        let took = stage.ended_ns.saturating_sub(stage.started_ns) as f64 / 1e9;
        let reason = if stage.reason.is_empty() { String::new() } else { format!(": {}", stage.reason) };
        let (start, state) = (date(run, stage.started_ns, zone), stage.state.name());
        lines.push(match stage.state {
            State::Waiting => format!("stage {} did not start{reason}", stage.id),
            _ => format!("{start} stage {} {state} after {} s{reason}", stage.id, num(took)),
        });
        for work in &stage.works {
            for operation in &work.operations {
                let place = format!("  {} {}", work.name, op_name(operation));
                let line = |(fault, count): (Fault, u64)| {
                    format!("{place}: {count} x {}: {}", fault.name(), fault.sentence())
                };
                lines.extend(operation.tally.faults.iter().map(line));
            }
            lines.extend(work.examples.iter().map(|example| format!("  e.g. {}", example.text)));
        }
    }
    lines.push(format!("{} run {}", date(run, run.elapsed_ns, zone), run.state.name()));
    // A line of the log is one line, and commands no terminal, whatever a server wrote into an error or a document into a name.
    let lines: Vec<String> = lines.iter().map(|line| line.replace(char::is_control, " ")).collect();
    lines.join("\n") + "\n"
}

/// Response times, throughput, bandwidth and success ratio, as all tables have them.
fn performance(work: &Work, operation: &Operation) -> Vec<String> {
    let (tally, window) = (&operation.tally, work.window_seconds());
    let mut cells = vec![mean(&tally.response), processing(tally)];
    let percentile =
        |fraction| milliseconds(tally.response.count(), tally.response.quantile(fraction) as f64);
    cells.extend(FRACTIONS.map(percentile));
    cells.extend([num(operation.throughput(window)), num(operation.bandwidth(window))]);
    cells.push(ratio(tally.ok, tally.total()));
    cells
}

/// State and history of a stage, one cell each.
fn status(run: &Run, stage: &Stage, zone: &TimeZone) -> Vec<String> {
    let state = match stage.state {
        State::Interrupted => "cancelled",
        other => other.name(),
    };
    let mut cells = vec![state.to_string(), format!("waiting @ {}", date(run, 0, zone))];
    if stage.state != State::Waiting {
        cells.push(format!("running @ {}", date(run, stage.started_ns, zone)));
        cells.push(format!("{state} @ {}", date(run, stage.ended_ns, zone)));
    }
    cells
}

/// `read`, or `prepare-write` where an operation is counted as another type.
fn op_name(operation: &Operation) -> String {
    let sample = operation.class.name();
    if operation.kind == sample || sample.is_empty() {
        operation.kind.clone()
    } else {
        format!("{}-{sample}", operation.kind)
    }
}
