//! The figures that users know the workloads of a stage by: the table that HTML and Markdown share, and the form for machines.

use crate::content::NONE;
use crate::table::{Table, Tone};
use serde::Serialize;
use tidemark_judge::{Amount, Figure, figures};
use tidemark_measure::record::{Run, Stage};
use tidemark_measure::units;
use utoipa::ToSchema;

/// The figures of a stage.
pub(crate) fn table(run: &Run, stage: &Stage) -> Table {
    let columns = Table::new("Figures of the workload").words(["Work", "Figure"]);
    let mut table = columns.numbers(["Value", "Limit"]).words(["What it is"]);
    for figure in figures(run, stage) {
        let limit = match figure.amount {
            Amount::Time { limit_ns: Some(limit), .. } => units::duration_ns(limit),
            _ => NONE.into(),
        };
        let cells = [figure.work, figure.name, &figure.amount.to_string(), &limit, figure.about];
        table.row(Tone::Plain, cells.map(str::to_owned).to_vec());
    }
    table
}

/// A figure that users know a workload by: a rate, a share or a time.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunFigure<'a> {
    work: &'a str,
    name: &'a str,
    about: &'a str,
    /// Null where it is no rate.
    per_minute: Option<f64>,
    /// Of the most that can be; null where it is no share.
    share: Option<f64>,
    /// A number without a unit; null where it has one.
    score: Option<f64>,
    /// Null where it is no time.
    time_ns: Option<u64>,
    /// What the time may be at most; null where it has no limit.
    limit_ns: Option<u64>,
}

impl<'a> From<Figure<'a>> for RunFigure<'a> {
    fn from(figure: Figure<'a>) -> Self {
        let Figure { work, name, about, amount } = figure;
        let none = Self {
            work,
            name,
            about,
            per_minute: None,
            share: None,
            score: None,
            time_ns: None,
            limit_ns: None,
        };
        match amount {
            Amount::PerMinute(number) => Self { per_minute: Some(number), ..none },
            Amount::Share(share) => Self { share: Some(share), ..none },
            Amount::Score(score) => Self { score: Some(score), ..none },
            Amount::Span(ns) => Self { time_ns: Some(ns), ..none },
            Amount::Time { ns, limit_ns } => Self { time_ns: Some(ns), limit_ns, ..none },
        }
    }
}
