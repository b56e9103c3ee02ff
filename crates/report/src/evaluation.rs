//! The report of an evaluation: arms compared, with every number that the comparison rests on.
//!
//! Everything is a pure function of a [`Subject`]. Figures and tables are made here once and shown in several forms.
//!
//! | module | what it holds |
//! |---|---|
//! | `panel` | cells put together by load; which level stands for a load where there is room for one only |
//! | `tables` | what a report says: the tables that HTML and Markdown share |
//! | `drawings` | its figures, section by section |
//! | `heat` | latencies over time, collected second by second |
//! | `tuning` | the search for better settings, if it is one |
//! | `page`, `markdown` | how it looks |
//! | `data` | CSV and JSON |

mod data;
mod drawings;
mod heat;
mod markdown;
mod page;
mod panel;
mod tables;
#[cfg(test)]
mod tests;
mod tuning;

pub use data::{csv, json};
pub use heat::Heat;
pub use markdown::markdown;
pub use page::html;

use crate::figures::Figure;
use panel::{Panel, panels, representative};
use tidemark_judge::evaluation::Assessment;
use tidemark_measure::evaluation::Evaluation;
use tidemark_measure::record::Run;

/// Heat maps of an evaluation, at most.
const MOST_HEAT_MAPS: usize = 12;

/// What is reported. Nothing of it is copied: runs hold hundreds of megabytes.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The record.
    pub evaluation: &'a Evaluation,
    /// What was found about it.
    pub assessment: &'a Assessment,
    /// Its runs, in any order.
    pub runs: &'a [Run],
    /// Latencies over time of the works that [`wants_heat`] names, as far as they are known.
    pub heat: &'a [Heat],
}

/// All figures, each with a name that is its own.
pub fn figures(subject: &Subject<'_>) -> Vec<Figure> {
    drawings::all(subject)
}

/// Of which works heat maps are wanted, as run, stage and work: one for each arm and load, of the run in the middle of
/// its cell at the level of the knee, or at the highest.
pub fn wants_heat(
    evaluation: &Evaluation,
    assessment: &Assessment,
    runs: &[Run],
) -> Vec<(u64, usize, usize)> {
    let mut wanted = Vec::new();
    for panel in &panels(evaluation, assessment) {
        for arm in &evaluation.arms {
            let own = place(panel, &arm.name, runs).map(|(run, stage, work)| (run.id, stage, work));
            wanted.extend(own.filter(|own| !wanted.contains(own)));
        }
    }
    wanted.truncate(MOST_HEAT_MAPS);
    wanted
}

/// The work that stands for an arm under a load, if its seconds were recorded.
fn place<'a>(panel: &Panel<'_>, arm: &str, runs: &'a [Run]) -> Option<(&'a Run, usize, usize)> {
    let cell = panel.cell(arm, panel.shown()?)?;
    let run = representative(cell, runs)?;
    let (stage, work) = panel::busiest_work(run, cell)?;
    (!run.stages[stage].works[work].series.is_empty()).then_some((run, stage, work))
}
