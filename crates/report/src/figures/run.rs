//! All figures of a run.

use super::{Figure, MOST_POINTS, all, drivers, nodes, of_queries, of_sweep};
use crate::content::is_main;
use crate::sections;
use tidemark_judge::sweep::sweeps;
use tidemark_measure::record::Run;

/// Every figure of a run's main stages, each with a name that is its own.
pub fn of_run(run: &Run) -> Vec<Figure> {
    let mut figures: Vec<Figure> = sweeps(run).iter().flat_map(of_sweep).collect();
    let losses = tidemark_judge::losses(run);
    let stages = run.stages.iter().enumerate();
    for (index, stage) in stages.filter(|(_, stage)| stage.cell.is_none() && is_main(stage)) {
        let within = |prefix: &str, work: &str, figure: Figure| {
            let name = format!("{prefix}-{}", figure.name);
            figure.named(&name).placed(&stage.id, work)
        };
        // What is about the stage is about its only work.
        let only = if let [only] = &stage.works[..] { only.name.as_str() } else { "" };
        for work in &stage.works {
            let prefix =
                if stage.works.len() == 1 { stage.id.clone() } else { format!("{}-{}", stage.id, work.name) };
            figures
                .extend(all(work, MOST_POINTS).into_iter().map(|figure| within(&prefix, &work.name, figure)));
        }
        let queries = of_queries(stage).into_iter();
        figures.extend(queries.map(|(work, figure)| {
            let prefix =
                if stage.works.len() == 1 { stage.id.clone() } else { format!("{}-{work}", stage.id) };
            within(&prefix, &work, figure)
        }));
        let drivers = drivers::throughput_of_drivers(run, stage, MOST_POINTS);
        figures.extend(drivers.map(|figure| within(&stage.id, only, figure)));
        let lost = super::throughput_with_losses(stage, &losses, MOST_POINTS);
        figures.extend(lost.map(|figure| within(&stage.id, only, figure)));
        let timelines = nodes::timelines(run, Some(index), MOST_POINTS);
        figures.extend(timelines.into_iter().map(|figure| within(&stage.id, only, figure)));
    }
    figures.extend(sections::figures(run, MOST_POINTS));
    figures
}
