//! What is measured within a run: each stage that measures, and each point of a sweep.

use crate::context::stage_label;
use crate::sweep::{data_operations, sweeps};
use tidemark_measure::axis::Axis;
use tidemark_measure::evaluation::Level;
use tidemark_measure::record::{Run, Stage};

/// Something that a run measured.
pub(super) struct Part<'a> {
    /// What: a stage's name, or a sweep's.
    pub(super) subject: String,
    /// The axes of a sweep; empty otherwise.
    pub(super) axes: Level,
    /// The stages that measured it: more than one where the run repeats a point.
    pub(super) stages: Vec<&'a Stage>,
}

/// Everything that a run measured, in order; what measured nothing is left out.
pub(super) fn parts(run: &Run) -> Vec<Part<'_>> {
    parts_of(run, measured)
}

/// The same, with what was tried and failed without exception: to a search that is an answer.
pub(super) fn attempted(run: &Run) -> Vec<Part<'_>> {
    parts_of(run, |stage| measured(stage) || data_operations(stage).any(|(_, one)| one.tally.failed() > 0))
}

fn parts_of(run: &Run, measured: impl Fn(&Stage) -> bool) -> Vec<Part<'_>> {
    let plain: Vec<&Stage> =
        run.stages.iter().filter(|stage| stage.cell.is_none() && measured(stage)).collect();
    let shared = |name: &str| plain.iter().filter(|stage| stage.name == name).count() > 1;
    let stages = plain.iter().map(|stage| Part {
        subject: if stage.name.is_empty() || shared(&stage.name) {
            stage_label(stage)
        } else {
            stage.name.clone()
        },
        axes: Level::new(),
        stages: vec![*stage],
    });
    let mut parts: Vec<_> = stages.collect();
    for sweep in sweeps(run) {
        let several_engines = sweep.engines().len() > 1;
        for point in &sweep.points {
            let engine = several_engines.then(|| Axis::word("engine", point.engine));
            let stages: Vec<_> = point.stages.iter().copied().filter(|stage| measured(stage)).collect();
            let axes = point.axes.iter().cloned().chain(engine).collect();
            parts.push(Part { subject: sweep.name.to_owned(), axes, stages });
        }
    }
    parts.retain(|part| !part.stages.is_empty());
    parts
}

fn measured(stage: &Stage) -> bool {
    data_operations(stage).any(|(_, operation)| operation.tally.ok > 0 || operation.reported.is_some())
}
