//! An evaluation's or comparison's assessment, on the terminal and as a report.

use super::outcome::{head, not_observed};
use super::table::aligned;
use crate::terminal::{Style, Terminal, one_line};
use std::path::Path;
use tidemark_judge::Severity;
use tidemark_judge::evaluation::{Assessment, Cell, Estimate, Metric, decimals};
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::evaluation::level_label as level;
use tidemark_measure::record::{Run, State};
use tidemark_measure::units;
use tidemark_report::evaluation::{self as report, Heat, Subject};
use tidemark_store::Store;

/// An evaluation with its runs and its assessment.
pub(crate) struct Judged<'a> {
    pub(crate) evaluation: &'a Evaluation,
    pub(crate) assessment: &'a Assessment,
    pub(crate) runs: &'a [Run],
}

impl Judged<'_> {
    fn with_heat<T>(&self, heat: &[Heat], make: impl Fn(&Subject<'_>) -> T) -> T {
        let Self { evaluation, assessment, runs } = *self;
        make(&Subject { evaluation, assessment, runs, heat })
    }

    /// The page, with heat maps of what the store has seconds of.
    pub(crate) fn html(&self, store: Option<&Store>) -> String {
        self.with_heat(&self.heat(store), report::html)
    }

    /// Every figure.
    pub(crate) fn figures(&self, store: Option<&Store>) -> Vec<tidemark_report::figures::Figure> {
        self.with_heat(&self.heat(store), report::figures)
    }

    pub(crate) fn markdown(&self) -> String {
        self.with_heat(&[], report::markdown)
    }

    pub(crate) fn csv(&self) -> String {
        self.with_heat(&[], report::csv)
    }

    pub(crate) fn json(&self) -> String {
        self.with_heat(&[], report::json)
    }

    fn heat(&self, store: Option<&Store>) -> Vec<Heat> {
        let Some(store) = store else { return Vec::new() };
        let wanted = report::wants_heat(self.evaluation, self.assessment, self.runs);
        let read = |(id, stage, work): (u64, usize, usize)| {
            let mut heat = Heat::new(id, stage, work);
            // Heat maps are optional: one whose seconds cannot be read is omitted.
            store.seconds(id, stage, work, |interval| heat.add(interval)).ok()?;
            Some(heat)
        };
        wanted.into_iter().filter_map(read).collect()
    }
}

/// Whether a run failed, or something critical was found.
pub(crate) fn failed(judged: &Judged<'_>) -> bool {
    judged.runs.iter().any(|run| run.state == State::Failed)
        || judged.assessment.findings.iter().any(|finding| finding.severity == Severity::Critical)
}

/// The verdict, the cells, the comparisons, what was found.
pub(crate) fn show(judged: &Judged<'_>, terminal: Terminal) {
    let Judged { evaluation, assessment, .. } = judged;
    terminal.print("");
    let (style, word) = head(evaluation.state, assessment.validity.is_valid());
    terminal.line(&format!(
        "{}  {}",
        terminal.paint(style, word),
        terminal.paint(Style::Strong, &one_line(&evaluation.name))
    ));
    for sentence in &assessment.verdict {
        terminal.line(&format!("  {sentence}"));
    }
    let limits = assessment.bottlenecks.iter().map(|one| ("limit", one));
    for (word, bottleneck) in limits.chain(assessment.not_limits.iter().map(|one| ("no limit", one))) {
        let place = terminal.paint(Style::Faint, &format!("({}, {})", bottleneck.arm, bottleneck.load));
        terminal.line(&format!("  {word:<8} {} {place}", bottleneck.finding.title()));
        bottleneck.finding.evidence().iter().for_each(|line| terminal.line(&format!("             {line}")));
    }
    for finding in &assessment.findings {
        let (style, mark) = match finding.severity {
            Severity::Critical => (Style::Bad, "critical"),
            Severity::Warning => (Style::Warning, "warning "),
            Severity::Note => (Style::Faint, "note    "),
            Severity::Good => continue,
        };
        terminal.line(&format!("  {} {}", terminal.paint(style, mark), finding.title()));
        if finding.severity >= Severity::Warning {
            finding.evidence().iter().for_each(|line| terminal.line(&format!("             {line}")));
        }
    }
    terminal.print("");
    terminal.print(&cells(assessment));
    if !assessment.comparisons.is_empty() {
        terminal.print("");
        terminal.print(&comparisons(assessment));
    }
    not_observed(judged.runs, terminal);
    for note in &evaluation.notes {
        terminal.line(&terminal.paint(Style::Faint, &format!("note ({}): {}", note.topic, note.text)));
    }
}

/// Where it is kept, and its report.
pub(crate) fn closing(evaluation: &Evaluation, report: Option<&Path>, terminal: Terminal) {
    terminal.print("");
    if evaluation.id > 0 {
        let id = evaluation.id;
        terminal.line(&format!("evaluation  e{id} (`tidemark report e{id} --format md` and more)"));
    }
    if evaluation.state == State::Interrupted {
        terminal.print("interrupted: run the same command again to continue");
    }
    if let Some(path) = report {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        terminal.line(&format!("report      {}", path.display()));
    }
}

/// A row per cell: means over the repeats, and half the width of their 95 % confidence intervals.
fn cells(assessment: &Assessment) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        [
            "load",
            "level",
            "arm",
            "repeats",
            "rate",
            "+-",
            "bandwidth",
            "mean",
            "p50",
            "p95",
            "p99",
            "+-",
            "failed",
            "service level",
            "",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(assessment.cells.iter().map(row));
    // A column with the same value in all rows is omitted.
    let mut words = 3;
    for column in (0..rows[0].len()).rev().filter(|column| *column != 3) {
        let same = rows[1..].iter().all(|row| ["", "0", "-"].contains(&row[column].as_str()));
        if same {
            words -= usize::from(column < words);
            rows.iter_mut().for_each(|row| {
                row.remove(column);
            });
        }
    }
    aligned(&rows, words)
}

fn row(cell: &Cell) -> Vec<String> {
    let time = |estimate: &Option<Estimate>| {
        estimate.as_ref().map_or("-".into(), |estimate| units::duration_ns(estimate.mean as u64))
    };
    let load = [cell.load.as_str(), cell.subject.as_str()];
    let meets = match cell.meets {
        Some(true) => "within",
        Some(false) => "OUTSIDE",
        None => "",
    };
    vec![
        load.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": "),
        level(&cell.level),
        cell.arm.clone(),
        cell.throughput.values.len().to_string(),
        units::rate(cell.throughput.mean),
        half_width(&cell.throughput),
        match cell.bandwidth.mean as u64 {
            0 => "-".into(),
            bytes => format!("{}/s", units::bytes(bytes)),
        },
        time(&cell.mean_ns),
        time(&cell.p50_ns),
        time(&cell.p95_ns),
        time(&cell.p99_ns),
        cell.p99_ns.as_ref().map_or("-".into(), half_width),
        units::count(cell.failed),
        meets.to_owned(),
        cell.objection().unwrap_or_default().to_owned(),
    ]
}

/// Half of a confidence interval's width, as a share of the mean.
fn half_width(estimate: &Estimate) -> String {
    estimate.half_width().map_or("-".into(), |share| format!("{:.1} %", 100.0 * share))
}

/// A row per comparison: the means first.
fn comparisons(assessment: &Assessment) -> String {
    let heading = ["compared", "with", "of", "ratio", "95 % interval", "p", "result"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for one in assessment.overall.iter().chain(&assessment.comparisons) {
        let decimals = decimals(one.ratio, one.interval, 3);
        rows.push(vec![
            one.arm.clone(),
            one.baseline.clone(),
            format!("{}, {}", metric(one.metric), one.place()),
            format!("{:.decimals$}", one.ratio),
            one.interval.map_or("-".into(), |(low, high)| format!("{low:.decimals$} to {high:.decimals$}")),
            one.p.map_or("-".into(), |p| if p < 0.001 { "<0.001".into() } else { format!("{p:.3}") }),
            one.words(),
        ]);
    }
    aligned(&rows, 3)
}

/// The name of a metric.
fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::MeanLatency => "mean latency",
        Metric::TailLatency => "p99 latency",
    }
}
