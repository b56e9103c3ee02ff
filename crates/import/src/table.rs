//! Any table with a row for each level: an evaluation with its runs.
//!
//! Published results are such tables: workers, a percentile, operations per second. Rows may be of several arms, loads and
//! repeats; names of columns say what they hold and in which unit ([`columns`]).

mod columns;
mod figure;
#[cfg(test)]
mod tests;

use crate::draft::{self, note};
use crate::number::seconds;
use crate::sheet::{Row, Sheet, delimiter};
use crate::source::Source;
use crate::{Imported, Options};
use columns::{Column, Columns};
use figure::Figures;
use std::collections::BTreeMap;
use tidemark_measure::axis::{Axis, Value};
use tidemark_measure::evaluation::{Arm, Evaluation, Level, Load, Member};
use tidemark_measure::line::one_line;
use tidemark_measure::record::{Note, Provenance, Reported, Run, State};
use tidemark_measure::service_level::Statistic;
use tidemark_measure::tally::Tally;

/// How long a row is taken to have measured where the table does not say, seconds: the shortest window that is not called
/// short. Counts of operations depend on it and nothing else.
const ASSUMED_S: f64 = 10.0;

/// More rows are no table of levels.
const ROWS_MOST: usize = 10_000;

/// Most characters of names of columns in a note, which is every row's.
const NAMES_MOST: usize = 300;

/// The name of the only arm where the table names none.
const ARM: &str = "imported";

/// Reads a table.
pub(crate) fn read(source: &Source, options: &Options) -> Result<Imported, String> {
    let sheet = Sheet::read(&source.text, delimiter(&source.text))?;
    if sheet.rows.len() > ROWS_MOST {
        return Err(format!("has more than {ROWS_MOST} rows: a table of levels has one per level"));
    }
    let columns = Columns::of(&sheet.header)?;
    check_service_level(&columns, options)?;
    let figures = Figures::new(delimiter(&source.text));
    let name = draft::name(source, options);
    let notes = remarks(&columns, options);
    let mut evaluation = Evaluation {
        name: name.clone(),
        started_unix_ns: source.modified_unix_ns,
        state: State::Completed,
        order: "as in the table".into(),
        notes: notes.clone(),
        ..Evaluation::default()
    };
    let mut repeats: BTreeMap<(String, String, Level), u32> = BTreeMap::new();
    let mut runs: Vec<Run> = Vec::new();
    for row in &sheet.rows {
        let reading = Reading { columns: &columns, figures: &figures, row };
        let (arm, load) = (reading.name(Column::Arm, ARM), reading.name(Column::Load, &name));
        let level = reading.level()?;
        let seen = repeats.entry((arm.clone(), load.clone(), level.clone())).or_default();
        let repeat = reading.repeat()?.unwrap_or(*seen + 1);
        *seen = (*seen).max(repeat);
        let turn = u32::try_from(runs.len() + 1).unwrap_or(u32::MAX);
        if runs.iter().filter_map(|run| run.member.as_ref()).any(|member| {
            (member.repeat, &member.arm, &member.load, &member.level) == (repeat, &arm, &load, &level)
        }) {
            return Err(format!("line {}: this repeat of this level is a duplicate", row.line));
        }
        evaluation.repeats = evaluation.repeats.max(repeat);
        place(&mut evaluation, &arm, &load, &level, options);
        let mut run = reading.run(source, options)?;
        run.name = [name.as_str(), arm.as_str()]
            .into_iter()
            .map(str::to_owned)
            .chain(level.iter().map(|axis| axis.value.to_string()))
            .collect::<Vec<_>>()
            .join(" ");
        run.notes.clone_from(&notes);
        run.member =
            Some(Member { evaluation: 0, arm, load, level, repeat, turn, fingerprint: String::new() });
        runs.push(run);
    }
    let Some(first) = runs.first() else {
        return Err("has a header and no rows".into());
    };
    evaluation.provenance = Provenance { document: source.text.clone(), ..first.provenance.clone() };
    Ok(Imported { evaluation: Some(evaluation), runs })
}

/// Refuses a service level on something that the table has no column for: nothing could ever be told from it.
fn check_service_level(columns: &Columns, options: &Options) -> Result<(), String> {
    let Some(level) = &options.service_level else { return Ok(()) };
    let has = |wanted: Statistic| {
        columns.any(|column| match (column, wanted) {
            (Column::Mean { .. }, Statistic::Mean) => true,
            (Column::Quantile { share, .. }, Statistic::Quantile(wanted)) => (share - wanted).abs() < 1e-9,
            _ => false,
        })
    };
    match level.limits.iter().find(|limit| !has(limit.statistic)) {
        Some(limit) => Err(format!(
            "the service level `{}` is about the {}, for which the table has no column; it has {}",
            level.text,
            match limit.statistic {
                Statistic::Mean => "mean response time".to_owned(),
                Statistic::Quantile(share) => format!("p{}", (share * 1e6).round() / 1e4),
            },
            columns.titles().join(", ")
        )),
        None => Ok(()),
    }
}

/// Adds a row's arm, load and level where they are new.
fn place(evaluation: &mut Evaluation, arm: &str, load: &str, level: &Level, options: &Options) {
    if !evaluation.arms.iter().any(|known| known.name == arm) {
        evaluation.arms.push(Arm { name: arm.into(), ..Arm::default() });
    }
    if !evaluation.loads.iter().any(|known| known.name == load) {
        let service_level = options.service_level.clone();
        evaluation.loads.push(Load { name: load.into(), service_level, ..Load::default() });
    }
    let own = evaluation.loads.iter_mut().filter(|known| known.name == load);
    for load in own.filter(|load| !load.levels.contains(level)) {
        load.levels.push(level.clone());
    }
}

/// A row, and how to read it.
struct Reading<'a> {
    columns: &'a Columns,
    figures: &'a Figures,
    row: &'a Row<'a>,
}

impl Reading<'_> {
    fn text(&self, column: &Column) -> Option<&str> {
        self.columns.find(column).map(|place| self.row.cell(place)).filter(|text| !text.is_empty())
    }

    fn name(&self, column: Column, missing: &str) -> String {
        self.text(&column).unwrap_or(missing).to_owned()
    }

    /// The number in a column; `None` where there is no column or an empty cell.
    fn number(&self, place: Option<usize>) -> Result<Option<f64>, String> {
        let Some(place) = place else { return Ok(None) };
        let text = self.row.cell(place);
        if matches!(text, "" | "N/A" | "n/a" | "-") {
            return Ok(None);
        }
        let told = |error| format!("line {}, column `{}`: {error}", self.row.line, self.columns.title(place));
        self.figures.read(text).map(Some).map_err(told)
    }

    fn of(&self, column: &Column) -> Result<Option<f64>, String> {
        self.number(self.columns.find(column))
    }

    fn level(&self) -> Result<Level, String> {
        let mut level = Level::new();
        for (place, name, unit) in self.columns.axes() {
            let number = self.number(Some(place))?.ok_or_else(|| {
                format!(
                    "line {}: column `{}` is empty; every row must have a level",
                    self.row.line,
                    self.columns.title(place)
                )
            })?;
            level.push(Axis { name: name.to_owned(), value: Value::Number { number, unit } });
        }
        Ok(level)
    }

    fn repeat(&self) -> Result<Option<u32>, String> {
        let Some(number) = self.of(&Column::Repeat)? else { return Ok(None) };
        let is_ordinal = number >= 1.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX);
        is_ordinal
            .then_some(Some(number as u32))
            .ok_or_else(|| format!("line {}: repeats are numbered from 1", self.row.line))
    }

    /// The run of the row, not yet a member of anything.
    fn run(&self, source: &Source, options: &Options) -> Result<Run, String> {
        let said = self.said()?;
        let length_s = self.of(&Column::Seconds)?.filter(|length| *length > 0.0).unwrap_or(ASSUMED_S);
        let done = match (self.of(&Column::Count)?, said.throughput) {
            (Some(count), _) => count.round() as u64,
            (None, Some(rate)) => (rate * length_s).round() as u64,
            (None, None) => 0,
        };
        let moved = match (self.of(&Column::Bytes)?, said.bandwidth, options.object_bytes) {
            (Some(bytes), _, _) => bytes.round() as u64,
            (None, Some(rate), _) => (rate * length_s).round() as u64,
            (None, None, Some(each)) => each.saturating_mul(done),
            (None, None, None) => 0,
        };
        let mut said = said;
        said.bandwidth = said.bandwidth.or_else(|| Some(options.object_bytes? as f64 * said.throughput?));
        let mut tally = Tally { ok: done, bytes: moved, ..Tally::default() };
        let mut examples = Vec::new();
        let failed = self.failed(done)?;
        draft::fail_somehow(
            &mut tally,
            failed,
            format!("the table counts {failed} failures, and does not report what failed"),
            &mut examples,
        );
        let window_ns = seconds(length_s);
        let workers =
            |axis: &str| self.columns.axes().find(|(_, name, _)| *name == axis).map(|(place, ..)| place);
        let clients = self.number(workers("workers").or_else(|| workers("clients")))?;
        let mut work = draft::work(
            "main",
            clients.unwrap_or(0.0) as u64,
            window_ns,
            vec![draft::operation("operation", tally, Some(said))],
        );
        let depth = self.number(workers("depth"))?.unwrap_or(1.0);
        work.depth = (depth as u32).max(1);
        work.offered_rate = self.number(workers("rate"))?;
        work.examples = examples;
        let mut run = draft::run(&source.path, String::new(), "table");
        run.started_unix_ns = source.modified_unix_ns;
        run.stages.push(draft::stage(1, "main", 0, window_ns, vec![work]));
        draft::close(&mut run);
        Ok(run)
    }

    fn said(&self) -> Result<Reported, String> {
        let mut said = Reported { throughput: self.of(&Column::Throughput)?, ..Reported::default() };
        for (place, column) in self.columns.all() {
            match column {
                Column::Bandwidth { bytes } => {
                    said.bandwidth = self.number(Some(place))?.map(|amount| amount * bytes);
                }
                Column::Mean { ns } => said.mean_ns = self.number(Some(place))?.map(|time| time * ns),
                Column::Quantile { share, ns } => {
                    said.percentiles.extend(self.number(Some(place))?.map(|time| (*share, time * ns)));
                }
                _ => {}
            }
        }
        said.percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
        if said == Reported::default() {
            return Err(format!("line {}: there is no result in this row", self.row.line));
        }
        Ok(said)
    }

    /// Operations that failed beside those that were done.
    fn failed(&self, done: u64) -> Result<u64, String> {
        if let Some(failed) = self.of(&Column::Failed)? {
            let known = self.columns.find(&Column::Count).or_else(|| self.columns.find(&Column::Seconds));
            if failed > 0.0 && known.is_none() {
                return Err(format!(
                    "line {}: the total behind {failed} failures is unknown: add a column `count` or `duration_s`, or `success ratio`",
                    self.row.line
                ));
            }
            return Ok(failed.round() as u64);
        }
        let Some(place) = self.columns.find(&Column::Succeeded) else { return Ok(0) };
        let Some(number) = self.number(Some(place))? else { return Ok(0) };
        let in_percent =
            number > 1.0 || self.row.cell(place).ends_with('%') || self.columns.title(place).contains('%');
        let share = if in_percent { number / 100.0 } else { number };
        match share {
            share if share > 1.0 => Err(format!("line {}: a success ratio is at most 100 %", self.row.line)),
            share if share >= 1.0 => Ok(0),
            share if share > 0.0 => Ok(((done as f64 / share - done as f64).round() as u64).max(1)),
            _ => Ok(1),
        }
    }
}

fn remarks(columns: &Columns, options: &Options) -> Vec<Note> {
    let mut notes =
        vec![note("table-numbers", "Numbers are as in the table: how they were measured is unknown.")];
    if columns.find(&Column::Seconds).is_none() {
        notes.push(note(
            "table-duration",
            format!("The table has no durations: Tidemark assumes {ASSUMED_S} s per row. Only counts of operations depend on this."),
        ));
    }
    if let Some(each) = options.object_bytes {
        notes.push(note(
            "table-object-size",
            format!("Tidemark assumes {each} bytes per operation where the table has no size."),
        ));
    }
    let unknown = columns.unknown();
    if !unknown.is_empty() {
        notes.push(note(
            "table-columns",
            format!("Ignored columns: {}.", one_line(&unknown.join(", "), NAMES_MOST)),
        ));
    }
    notes
}
