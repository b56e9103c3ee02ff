//! COSBench's archives: a directory `w1-name` for each workload, with a table of its stages and one of snapshots for each
//! stage (0.4.2, 0.4.2.c4, and Tidemark's own, which has true numbers in the same columns).
//!
//! What COSBench's numbers are is in the source of its `Metrics`, `Report` and exporters; the notes say what matters.

mod document;
mod snapshots;
#[cfg(test)]
mod tests;

use crate::Options;
use crate::draft::{self, note};
use crate::number::{count, moment, ms, number, percent, quantity};
use crate::sheet::{Row, Sheet};
use crate::source::Source;
use document::Document;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use tidemark_measure::kind::{OperationClass, WorkKind};
use tidemark_measure::record::{Example, Note, Operation, Reported, Run, Stage, State, Work};
use tidemark_measure::tally::Tally;
use tidemark_measure::units;

/// COSBench's columns of percentiles.
const PERCENTILES: [(&str, f64); 6] = [
    ("60%-ResTime", 0.60),
    ("80%-ResTime", 0.80),
    ("90%-ResTime", 0.90),
    ("95%-ResTime", 0.95),
    ("99%-ResTime", 0.99),
    ("100%-ResTime", 1.0),
];

/// More works are not read at once.
const WORKS_MOST: usize = 20_000;

/// Reads a workload's directory, or all of those in an archive, in their order.
pub(crate) fn archive(directory: &Path, options: &Options) -> Result<Vec<Run>, String> {
    if let Some(table) = table_of(directory) {
        return workload(&Source::found(&table)?, options).map(|run| vec![run]);
    }
    let mut numbered: Vec<(u64, PathBuf)> = Vec::new();
    let entries = std::fs::read_dir(directory).map_err(|error| format!("cannot be read: {error}"))?;
    // A link may lead out of the archive.
    let is_directory = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    for path in entries.flatten().filter(is_directory).map(|entry| entry.path()) {
        let name = file_name(&path);
        let digits = name.strip_prefix('w').and_then(|rest| rest.split('-').next());
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
            numbered.push((number, path));
        }
    }
    numbered.sort();
    let (mut runs, mut empty, mut works) = (Vec::new(), Vec::new(), 0);
    for (_, path) in numbered {
        let name = file_name(&path);
        match table_of(&path) {
            Some(table) => {
                let read = Source::found(&table).and_then(|source| workload(&source, options));
                let run = read.map_err(|error| format!("{name}: {error}"))?;
                works += run.stages.iter().map(|stage| stage.works.len()).sum::<usize>();
                if works > WORKS_MOST {
                    let most = units::count(WORKS_MOST as u64);
                    return Err(format!("contains more than {most} works: import its workloads one by one"));
                }
                runs.push(run);
            }
            None => empty.push(name),
        }
    }
    let Some(first) = runs.first_mut() else {
        return Err("contains no COSBench workload; a workload's directory is named `w1-name` and contains `w1-name.csv`".into());
    };
    if !empty.is_empty() {
        first.notes.push(note(
            "cosbench-without-results",
            format!("No results in this archive: {}.", empty.join(", ")),
        ));
    }
    Ok(runs)
}

/// The table of stages in a workload's directory.
fn table_of(directory: &Path) -> Option<PathBuf> {
    let table = directory.join(format!("{}.csv", file_name(directory)));
    table.symlink_metadata().is_ok_and(|found| !found.is_dir()).then_some(table)
}

fn file_name(path: &Path) -> String {
    let whole = path.canonicalize();
    let path = whole.as_deref().unwrap_or(path);
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads a workload's table of stages, and what stands beside it in its directory.
pub(crate) fn workload(source: &Source, options: &Options) -> Result<Run, String> {
    let sheet = Sheet::read(&source.text, ',')?;
    let columns = Columns::of(&sheet)?;
    let directory = source.path.parent().filter(|directory| file_name(directory) == source.stem());
    let (found, refused) = match directory.map_or(Ok(None), Document::beside) {
        Ok(found) => (found, None),
        Err(why) => (None, Some(why)),
    };
    let (document, text) = found.unwrap_or_default();
    let stem = source.stem();
    let bare = stem.strip_prefix('w').and_then(|rest| rest.split_once('-'));
    let bare =
        bare.filter(|(digits, _)| digits.parse::<u64>().is_ok()).map_or(stem.as_str(), |(_, name)| name);
    let name = options.name.clone().unwrap_or_else(|| bare.to_owned());
    let mut run = draft::run(&source.path, name, "COSBench archive");
    run.description.clone_from(&document.description);
    run.provenance.document = tidemark_plan::redact::redact(&text);
    let began = sheet.rows.iter().flat_map(|row| columns.moments(row)).map(|(_, at)| at).min();
    run.started_unix_ns = began.unwrap_or(source.modified_unix_ns);
    let mut rows = sheet.rows.as_slice();
    while let Some(first) = rows.first() {
        let id = first.cell(columns.stage);
        let length = rows.iter().take_while(|row| row.cell(columns.stage) == id).count();
        let (own, rest) = rows.split_at(length);
        rows = rest;
        let mut stage = columns.read(own, document.stage(id), run.started_unix_ns)?;
        if let Some(directory) = directory {
            run.notes.extend(snapshots::read(directory, &mut stage)?);
        }
        run.stages.push(stage);
    }
    if run.stages.is_empty() {
        return Err("contains no stage: the workload has no results".into());
    }
    draft::close(&mut run);
    let own = directory.is_some_and(is_tidemarks);
    run.notes.extend(meaning(&run, own, refused.as_deref()));
    Ok(run)
}

/// Whether Tidemark wrote an archive, by its log's first line.
fn is_tidemarks(directory: &Path) -> bool {
    Source::found(&directory.join("workload.log"))
        .is_ok_and(|log| log.text.starts_with("Written by Tidemark"))
}

/// What the numbers are.
fn meaning(run: &Run, own: bool, refused: Option<&str>) -> Vec<Note> {
    let mut notes = vec![note(
        "cosbench-times",
        "Times of day in COSBench's archive have no time zone: Tidemark uses this machine's. Windows are the run times of the document, or last from `running` to the end of the stage.",
    )];
    if own {
        notes.push(note(
            "cosbench-numbers",
            "Tidemark wrote this archive: percentiles are exact, throughput is work divided by the window.",
        ));
    } else {
        notes.push(note(
            "cosbench-percentiles",
            "COSBench rounds percentiles up to multiples of 10 ms. The largest response time is the upper edge of the last class; failed operations are not included.",
        ));
        notes.push(note(
            "cosbench-throughput",
            "Throughput and bandwidth are the sums of the workers' own rates, which exceed work divided by time where workers end at different times.",
        ));
    }
    notes.push(note(
        "cosbench-failures",
        "COSBench keeps a success ratio with two decimals and no class of failures: Tidemark derives their number from it and shows them as failures of the server; a few failures among many are lost. The S3 adapter of 0.4.2.c4 counts refused connections and replies with 404 to writes and deletes as successes.",
    ));
    if run.stages.iter().flat_map(|stage| &stage.works).any(|work| work.workers == 0) {
        let why =
            refused.unwrap_or("`workload-config.xml` is missing beside the table, or does not match it");
        notes.push(note("cosbench-workers", format!("The number of workers is unknown: {why}.")));
    }
    notes
}

/// Where a table's columns are.
struct Columns {
    stage: usize,
    name: Option<usize>,
    kind: usize,
    count: usize,
    bytes: Option<usize>,
    mean: Option<usize>,
    percentiles: Vec<(usize, f64)>,
    throughput: Option<usize>,
    bandwidth: Option<usize>,
    ratio: Option<usize>,
    status: Option<usize>,
}

/// When a stage was in a state, nanoseconds since 1970.
type Moment<'a> = (&'a str, u64);

impl Columns {
    fn of(sheet: &Sheet<'_>) -> Result<Self, String> {
        let percentile = |(name, share): (&str, f64)| sheet.find(name).map(|place| (place, share));
        Ok(Self {
            stage: sheet.column("Stage")?,
            name: sheet.find("Op-Name"),
            kind: sheet.column("Op-Type")?,
            count: sheet.column("Op-Count")?,
            bytes: sheet.find("Byte-Count"),
            mean: sheet.find("Avg-ResTime"),
            percentiles: PERCENTILES.into_iter().filter_map(percentile).collect(),
            throughput: sheet.find("Throughput"),
            bandwidth: sheet.find("Bandwidth"),
            ratio: sheet.find("Succ-Ratio"),
            status: sheet.find("Status"),
        })
    }

    /// The history of a row's stage: cells such as `running @ 2026-11-20 18:00:00`.
    fn moments<'a>(&self, row: &'a Row<'_>) -> Vec<Moment<'a>> {
        let from = self.status.map_or(row.cells.len(), |status| status + 1);
        let cells = row.cells.iter().skip(from).filter_map(|cell| cell.split_once('@'));
        cells.filter_map(|(state, at)| Some((state.trim(), moment(at)?))).collect()
    }

    /// A stage of its rows.
    fn read(&self, rows: &[Row<'_>], planned: Option<&document::Stage>, began: u64) -> Result<Stage, String> {
        let mut examples = Vec::new();
        let mut operations = Vec::new();
        for row in rows.iter().filter(|row| !matches!(row.cell(self.kind), "" | "N/A")) {
            operations.push(self.operation(row, &mut examples)?);
        }
        let id = rows.first().map_or("", |row| row.cell(self.stage)).to_owned();
        let name = id.split_once('-').map_or(id.as_str(), |(_, name)| name).to_owned();
        let moments = rows.first().map(|row| self.moments(row)).unwrap_or_default();
        let since = |at: u64| at.saturating_sub(began);
        let when = |states: &[&str]| {
            moments.iter().find(|(state, _)| states.contains(state)).map(|(_, at)| since(*at))
        };
        let ended_ns = moments.iter().map(|(_, at)| since(*at)).max().unwrap_or(0);
        let started_ns =
            when(&["running"]).or_else(|| when(&["launching", "booting"])).unwrap_or(0).min(ended_ns);
        let done_ns = when(&["closing"]).unwrap_or(ended_ns).max(started_ns);
        let mut stage = draft::stage(0, &name, started_ns, ended_ns, works(operations, planned, &name));
        stage.id = id;
        let status = self.status.and_then(|status| Some(rows.first()?.cell(status))).unwrap_or_default();
        stage.state = state(status);
        if stage.state == State::Failed {
            stage.reason = format!("COSBench reports `{status}`");
        }
        for work in &mut stage.works {
            let length = done_ns.saturating_sub(started_ns);
            if work.window_end_ns == 0 {
                work.window_end_ns = length.max(longest_ns(work));
            }
            work.last_done_ns = work.window_end_ns;
            work.examples.clone_from(&examples);
        }
        Ok(stage)
    }

    fn operation(&self, row: &Row<'_>, examples: &mut Vec<Example>) -> Result<Operation, String> {
        let kind = row.cell(self.kind);
        let name = self.name.map(|name| row.cell(name)).filter(|name| !name.is_empty()).unwrap_or(kind);
        let broken = |what: &str, text: &str| format!("line {}: `{text}` is not a {what}", row.line);
        let text = row.cell(self.count);
        let ok = match text {
            "N/A" | "" => 0,
            _ => count(text).ok_or_else(|| broken("number of operations (column `Op-Count`)", text))?,
        };
        let cell = |place: Option<usize>| place.map(|place| row.cell(place)).unwrap_or_default();
        let bytes = count(cell(self.bytes)).unwrap_or(0);
        let mut tally = Tally { ok, bytes, ..Tally::default() };
        let ratio = cell(self.ratio);
        if !matches!(ratio, "" | "N/A") {
            let share = percent(ratio).ok_or_else(|| broken("ratio (column `Succ-Ratio`)", ratio))?;
            let text = format!(
                "{name}: COSBench counts {ratio} of the operations as successes, and does not report what failed"
            );
            draft::fail_somehow(&mut tally, failed(ok, share), text, examples);
        }
        let time = |place: usize| number(row.cell(place)).map(ms).filter(|ns| *ns >= 0.0);
        let percentiles = self.percentiles.iter().filter_map(|(place, share)| Some((*share, time(*place)?)));
        let said = Reported {
            throughput: quantity(cell(self.throughput)),
            bandwidth: quantity(cell(self.bandwidth)),
            mean_ns: self.mean.and_then(time),
            percentiles: percentiles.collect(),
        };
        let mut operation = draft::operation(kind, tally, Some(said));
        match name.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-')) {
            Some(sample) => operation.class = OperationClass::named(sample),
            None => operation.label = name.into(),
        }
        Ok(operation)
    }
}

/// Failures beside `ok` successes that are this share of all; at least one where none or not all succeeded.
fn failed(ok: u64, share: f64) -> u64 {
    match share {
        share if share >= 1.0 => 0,
        share if share > 0.0 && ok > 0 => ((ok as f64 / share - ok as f64).round() as u64).max(1),
        _ => 1,
    }
}

/// How long the operations must have taken by their numbers, nanoseconds: for tables without times.
fn longest_ns(work: &Work) -> u64 {
    let length = |operation: &Operation| {
        let rate = operation.reported.as_ref()?.throughput.filter(|rate| *rate > 0.0)?;
        Some((operation.tally.ok as f64 / rate * 1e9) as u64)
    };
    work.operations.iter().filter_map(length).max().unwrap_or(0)
}

fn state(status: &str) -> State {
    match status.to_ascii_lowercase().as_str() {
        "failed" | "terminated" => State::Failed,
        "cancelled" | "aborted" => State::Interrupted,
        "waiting" => State::Waiting,
        _ => State::Completed,
    }
}

/// Shares a stage's operations out to its works, where the document's operations are those of the table; else they are
/// one work.
fn works(operations: Vec<Operation>, planned: Option<&document::Stage>, name: &str) -> Vec<Work> {
    let Some(stage) = planned else { return lone(operations, name, &document::Work::default()) };
    let kinds = stage.works.iter().flat_map(|work| &work.operations).map(|operation| operation.kind.as_str());
    if !kinds.eq(operations.iter().map(|operation| operation.kind.as_str())) {
        return lone(operations, name, &stage.together());
    }
    let mut rest = operations.into_iter();
    let share = |work: &document::Work| {
        let mut own: Vec<Operation> = rest.by_ref().take(work.operations.len()).collect();
        for (operation, planned) in own.iter_mut().zip(&work.operations) {
            operation.weight = planned.weight;
            operation.config.clone_from(&planned.config);
        }
        make(own, work)
    };
    stage.works.iter().map(share).collect()
}

fn lone(operations: Vec<Operation>, name: &str, planned: &document::Work) -> Vec<Work> {
    if operations.is_empty() {
        return Vec::new();
    }
    let mut work = make(operations, planned);
    if work.name.is_empty() {
        work.name = name.into();
    }
    vec![work]
}

fn make(operations: Vec<Operation>, planned: &document::Work) -> Work {
    let kind = operations.first().map_or(WorkKind::Normal, |operation| match operation.kind.as_str() {
        "mprepare" => WorkKind::Prepare,
        kind => Some(WorkKind::named(kind)).filter(|kind| !kind.measures()).unwrap_or_default(),
    });
    let mut work = draft::work(&planned.name, planned.workers, 0, operations);
    work.kind = kind;
    work.allowed_failures_per_million = planned.allowed;
    // COSBench keeps no samples of containers made and removed.
    if matches!(work.kind, WorkKind::Init | WorkKind::Dispose)
        && work.operations.iter().all(|operation| operation.tally.total() == 0)
    {
        work.operations.clear();
    }
    if planned.run_s > 0 {
        work.window_start_ns = planned.ramp_up_s.saturating_mul(1_000_000_000);
        work.window_end_ns = planned.run_s.saturating_mul(1_000_000_000).saturating_add(work.window_start_ns);
    }
    work
}
