//! What there is to say of an evaluation as a whole.

use super::Facts;
use super::phrase::{Phrase, count, percent, phrase, plus_minus};
use serde::Serialize;
use tidemark_measure::units;

/// Lines of evidence of one finding, at most.
const LINES_MOST: usize = 12;

/// A cell with fewer repeats than were asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Short {
    pub cell: String,
    pub repeats: usize,
    pub of: usize,
}

/// A cell whose repeats vary: how far the interval of its mean response time, or of its throughput, reaches to each side.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Varying {
    pub cell: String,
    pub is_duration: bool,
    pub half_width: f64,
}

impl Varying {
    /// The number that varies.
    const fn number(&self) -> &'static str {
        if self.is_duration { "mean response time" } else { "throughput" }
    }
}

/// A cell with repeats that lie apart from the others: operations per second, or nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Apart {
    pub cell: String,
    pub is_duration: bool,
    /// Each value, and its run where that is known.
    pub values: Vec<(f64, Option<u64>)>,
    pub median: f64,
}

/// A setting of databases that is not the same in all arms.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub struct Differing {
    pub setting: String,
    /// Each arm and its values: more than one where its databases or runs differ.
    pub arms: Vec<(String, Vec<String>)>,
    /// Whether commits survive a crash in some arms only.
    pub durability: bool,
}

/// What the runs of an evaluation were compared by over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Drifting {
    /// Operations per second.
    Throughput,
    /// The mean response time, of open loops.
    ResponseTime,
    /// Either, cell by cell: a response time counts inversely.
    Both,
}

impl Drifting {
    const fn name(self) -> &'static str {
        match self {
            Drifting::Throughput => "throughput",
            Drifting::ResponseTime => "response time",
            Drifting::Both => "throughput, or the inverse of response time in open loops,",
        }
    }
}

/// What there is to say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names of facts are their documentation")]
pub enum OfEvaluation {
    CellsMissing {
        cells: Vec<String>,
    },
    RunsNotCompleted {
        runs: Vec<String>,
        lost: usize,
    },
    RepeatsMissing {
        cells: Vec<Short>,
    },
    RepeatsDiffer {
        cells: Vec<Varying>,
        of: usize,
        half_width: f64,
        grave: bool,
        repeats_needed: u64,
        repeats_unbounded: bool,
        /// What the repeats are needed for.
        wanted: f64,
    },
    /// Cells whose repeats ended with the budget.
    NotNarrow {
        cells: Vec<Varying>,
        until: f64,
        most: u32,
    },
    Outliers {
        cells: Vec<Apart>,
    },
    /// Settings of the databases that arms differ in.
    SettingsDiffer {
        settings: Vec<Differing>,
    },
    /// An arm was measured before another, by order or because runs of an earlier start are used again.
    ArmsApart,
    /// Runs that were begun long after one another: what cells that have runs of the last session and of earlier ones did in it
    /// beside before; nothing where there is no such cell.
    Sessions {
        sessions: usize,
        hours: f64,
        cells: usize,
        of: usize,
        change: Option<f64>,
        p: Option<f64>,
        differs: bool,
    },
    /// The slope per turn is that of a logarithm.
    Drift {
        of: Drifting,
        change: f64,
        one_after_the_other: bool,
        slope: f64,
        turns: f64,
        repeats: usize,
        cells: usize,
        p: f64,
    },
}

fn some(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES_MOST);
    lines.truncate(LINES_MOST);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

impl Facts for OfEvaluation {
    fn rule(&self) -> &'static str {
        match self {
            OfEvaluation::CellsMissing { .. } => "cells-missing",
            OfEvaluation::RunsNotCompleted { .. } => "runs-not-completed",
            OfEvaluation::RepeatsMissing { .. } => "repeats-missing",
            OfEvaluation::RepeatsDiffer { .. } => "repeats-differ",
            OfEvaluation::NotNarrow { .. } => "repeats-not-enough",
            OfEvaluation::Outliers { .. } => "outliers",
            OfEvaluation::SettingsDiffer { .. } => "settings-differ",
            OfEvaluation::ArmsApart => "arms-apart",
            OfEvaluation::Sessions { .. } => "sessions",
            OfEvaluation::Drift { .. } => "drift",
        }
    }

    fn title(&self) -> Phrase {
        match self {
            OfEvaluation::CellsMissing { cells } => match cells.len() {
                1 => phrase!["one cell could not be measured"],
                several => phrase![count(several as u64), " cells could not be measured"],
            },
            OfEvaluation::RunsNotCompleted { runs, lost } => match (runs.len(), lost) {
                (1, 0) => phrase!["one run did not complete and was repeated"],
                (1, _) => phrase!["one run did not complete and is not used"],
                (all, 0) => phrase![count(all as u64), " runs did not complete and were repeated"],
                (all, lost) => {
                    let (all, lost) = (count(all as u64), count(*lost as u64));
                    phrase![
                        all,
                        " runs did not complete and are not used; ",
                        lost,
                        " of them were not repeated"
                    ]
                }
            },
            OfEvaluation::RepeatsMissing { cells } => match cells.len() {
                1 => phrase!["one cell has fewer repeats than requested"],
                several => phrase![count(several as u64), " cells have fewer repeats than requested"],
            },
            OfEvaluation::RepeatsDiffer { cells, of, half_width, .. } => {
                let widest = cells.iter().max_by(|one, other| one.half_width.total_cmp(&other.half_width));
                let (cells, of) = (count(cells.len() as u64), count(*of as u64));
                let what = match widest.is_some_and(|one| one.is_duration) {
                    true => " cells: mean response time is known to ",
                    false => " cells: throughput is known to ",
                };
                phrase!["repeats differ in ", cells, " of ", of, what, plus_minus(*half_width)]
            }
            OfEvaluation::NotNarrow { cells, until, most } => {
                let (cells, most) = (count(cells.len() as u64), count(u64::from(*most)));
                let (before, after) = ("cells that are not known to ", " repeats: ");
                phrase![before, plus_minus(*until), " after up to ", most, after, cells]
            }
            OfEvaluation::Outliers { cells } => match cells.len() {
                1 => phrase!["one cell has outliers among its repeats"],
                several => phrase![count(several as u64), " cells have outliers among their repeats"],
            },
            OfEvaluation::SettingsDiffer { settings } => {
                let names: Vec<&str> = settings.iter().map(|one| one.setting.as_str()).collect();
                phrase!["arms differ in ", names.join(", ")]
            }
            OfEvaluation::ArmsApart => {
                phrase!["arms were measured one after the other: a drift would look like a difference"]
            }
            OfEvaluation::Sessions { sessions, change: Some(change), differs: true, .. } => {
                let (sessions, verb) = (count(*sessions as u64), if *change < 0.0 { "less" } else { "more" });
                let change = percent(change.abs());
                phrase![
                    "runs are of ",
                    sessions,
                    " sessions, and the same cells did ",
                    change,
                    " ",
                    verb,
                    " in the last"
                ]
            }
            OfEvaluation::Sessions { sessions, change, .. } => {
                let rest = match change {
                    Some(_) => " sessions; no difference between them was found",
                    None => " sessions, and no cell tells whether they differ",
                };
                phrase!["runs are of ", count(*sessions as u64), rest]
            }
            OfEvaluation::Drift { of, change, .. } => {
                let verb = if *change < 0.0 { " fell by " } else { " rose by " };
                phrase![
                    of.name(),
                    verb,
                    percent(change.abs()),
                    " from the first run of the evaluation to the last"
                ]
            }
        }
    }

    fn detail(&self) -> String {
        match self {
            OfEvaluation::RepeatsDiffer { grave: true, repeats_needed, repeats_unbounded, wanted, .. } => format!(
                "Differences of that size cannot be detected. At this spread it takes {}{repeats_needed} repeats until the interval of a mean is within {} on each side; longer runs on otherwise idle machines need fewer.",
                if *repeats_unbounded { "more than " } else { "" },
                units::percent(*wanted)
            ),
            OfEvaluation::RepeatsDiffer { .. } => {
                "Small differences cannot be detected: more or longer repeats narrow the intervals.".into()
            }
            OfEvaluation::Outliers { .. } => {
                "Nothing was left out: means and intervals include them. Check the findings of those runs, and the nodes at the time.".into()
            }
            OfEvaluation::SettingsDiffer { settings } if settings.iter().any(|one| one.durability) => {
                "Arms whose commits need not survive a crash spare storage the writes that the others wait for: that is a part of their difference.".into()
            }
            OfEvaluation::SettingsDiffer { .. } => {
                "What these settings change is a part of the difference between the arms.".into()
            }
            OfEvaluation::ArmsApart => {
                "No difference between such arms is called better or worse. Use `order: interleaved`; with arms that cannot be up at once, measure the baseline again at the end.".into()
            }
            OfEvaluation::Sessions { differs: true, .. } => {
                "Comparisons of a run of one session with one of another include that. Measure all cells again in one go: `--again`.".into()
            }
            OfEvaluation::Sessions { change: None, .. } => {
                "Every cell was measured in one session only, so that what changed in between looks like a difference of cells. Measure all cells again in one go: `--again`.".into()
            }
            OfEvaluation::Sessions { .. } => {
                "Runs of an earlier start are used beside new ones. A difference smaller than the repeats vary would not be seen.".into()
            }
            OfEvaluation::Drift { one_after_the_other: true, .. } => {
                "Arms were measured one after the other, so the drift is part of their difference. Interleave the runs, or measure the baseline again at the end.".into()
            }
            OfEvaluation::Drift { .. } => {
                "Runs of the arms alternate, so drift affects all of them alike; it widens the intervals. Something changes during the measurement: data grows, caches fill, devices wear or heat up.".into()
            }
            _ => String::new(),
        }
    }

    fn evidence(&self) -> Vec<String> {
        match self {
            OfEvaluation::CellsMissing { cells } => some(cells.clone()),
            OfEvaluation::ArmsApart => Vec::new(),
            OfEvaluation::RunsNotCompleted { runs, .. } => some(runs.clone()),
            OfEvaluation::RepeatsMissing { cells } => {
                some(cells.iter().map(|one| format!("{}: {} of {}", one.cell, one.repeats, one.of)).collect())
            }
            OfEvaluation::NotNarrow { cells, .. } | OfEvaluation::RepeatsDiffer { cells, .. } => some(
                cells
                    .iter()
                    .map(|one| {
                        let width = crate::evaluation::plus_minus(one.half_width);
                        format!("{}: {} {width}", one.cell, one.number())
                    })
                    .collect(),
            ),
            OfEvaluation::Outliers { cells } => {
                let line = |one: &Apart| {
                    let print = |value: f64| match one.is_duration {
                        true => units::duration_ns(value.max(0.0).round() as u64),
                        false => units::rate(value),
                    };
                    let value = |(value, run): &(f64, Option<u64>)| {
                        let run = run.map(|run| format!(" (run {run})")).unwrap_or_default();
                        format!("{}{run}", print(*value))
                    };
                    let values: Vec<_> = one.values.iter().map(value).collect();
                    format!("{}: {}, median {}", one.cell, values.join(", "), print(one.median))
                };
                let mut lines = some(cells.iter().map(line).collect());
                lines.push(
                    "modified z-score above 3.5 (Iglewicz and Hoaglin), and more than 2 % from the median"
                        .into(),
                );
                lines
            }
            OfEvaluation::SettingsDiffer { settings } => {
                let line = |one: &Differing| {
                    let arm = |(arm, values): &(String, Vec<String>)| match values.is_empty() {
                        true => format!("{arm} has none"),
                        false => format!("{arm} {}", values.join(" and ")),
                    };
                    let arms: Vec<_> = one.arms.iter().map(arm).collect();
                    format!("{}: {}", one.setting, arms.join(", "))
                };
                some(settings.iter().map(line).collect())
            }
            OfEvaluation::Sessions { hours, cells, of, p, .. } => {
                let tested =
                    p.map(|p| format!(", {}", crate::evaluation::probability(p))).unwrap_or_default();
                let hours = units::duration_ns((hours * 3.6e12) as u64);
                vec![format!(
                    "the last session began {hours} after the first; {cells} of {of} cells have runs of both{tested}"
                )]
            }
            OfEvaluation::Drift { of, slope, turns, repeats, cells, p, .. } => vec![format!(
                "log of the {} against turn, {repeats} repeats of {cells} cells, each relative to its cell's mean: {slope:+.5} per turn over {turns} turns, {}",
                of.name(),
                crate::evaluation::probability(*p)
            )],
        }
    }
}
