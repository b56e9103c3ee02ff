//! The figures that users know the workloads of a stage by: the table that HTML and Markdown share, and the form for machines.

use crate::content::NONE;
use crate::table::{Table, Tone};
use serde::Serialize;
use tidemark_judge::{Amount, Figure, figures};
use tidemark_measure::record::Stage;
use tidemark_measure::units;
use utoipa::ToSchema;

/// The figures of a stage.
pub(crate) fn table(stage: &Stage) -> Table {
    let columns = Table::new("Figures of the workload").words(["Work", "Figure"]);
    let mut table = columns.numbers(["Value", "Limit"]).words(["What it is"]);
    for figure in figures(stage) {
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
    /// Null where it is no time.
    time_ns: Option<u64>,
    /// What the time may be at most; null where it has no limit.
    limit_ns: Option<u64>,
}

impl<'a> From<Figure<'a>> for RunFigure<'a> {
    fn from(figure: Figure<'a>) -> Self {
        let (per_minute, share, time_ns, limit_ns) = match figure.amount {
            Amount::PerMinute(number) => (Some(number), None, None, None),
            Amount::Share(share) => (None, Some(share), None, None),
            Amount::Span(ns) => (None, None, Some(ns), None),
            Amount::Time { ns, limit_ns } => (None, None, Some(ns), limit_ns),
        };
        let Figure { work, name, about, .. } = figure;
        Self { work, name, about, per_minute, share, time_ns, limit_ns }
    }
}
