//! The native engine beside fio: every measured block load twice, alternately, so that they can be compared.

use super::{Action, IoEngine, Job, Place};
use tidemark_measure::record::Cell;
use tidemark_plan::plan::{Plan, Stage, WorkKind};

/// More pairs than this are treated as a mistake.
const MOST_PAIRS: u32 = 1000;

/// The plan with every stage that measures one native block load done `pairs` times by the native engine and as
/// often by fio, which of them comes first taking turns. Pairs take the place of a sweep's repeats.
///
/// # Errors
/// A sentence with the reason why the plan cannot be compared, and what to do.
pub fn cross_check(mut plan: Plan, pairs: u32) -> Result<Plan, String> {
    if !(1..=MOST_PAIRS).contains(&pairs) {
        return Err(format!("A cross-check requires from 1 to {MOST_PAIRS} pairs, not {pairs}."));
    }
    if !plan.stages.iter().any(compares) {
        return Err(nothing_to_compare(&plan));
    }
    for stage in plan.stages.iter().filter(|stage| compares(stage)) {
        comparable(stage)?;
    }
    let mut stages = Vec::new();
    for stage in plan.stages {
        match &stage.cell {
            _ if !compares(&stage) => stages.push(stage),
            Some(cell) if cell.repeat > 1 => {}
            _ => stages.extend(paired(&stage, pairs)),
        }
    }
    for (index, stage) in stages.iter_mut().enumerate() {
        for work in &mut stage.works {
            work.load.stream[0] = index as u64;
        }
    }
    plan.stages = stages;
    Ok(plan)
}

/// Whether a stage measures one native block load and nothing else.
fn compares(stage: &Stage) -> bool {
    let [work] = &stage.works[..] else { return false };
    let native = work.job.get::<Job>().is_some_and(|job| job.io_engine == IoEngine::Native);
    native && work.kind == WorkKind::Normal
}

fn nothing_to_compare(plan: &Plan) -> String {
    let mut works = plan.stages.iter().flat_map(|stage| &stage.works);
    let on_images = works.any(|work| {
        let job = work.job.get::<Job>();
        job.is_some_and(|job| job.volumes.iter().any(|volume| matches!(volume.place, Place::Rbd(_))))
    });
    if on_images {
        return "Only fio reaches RBD images, so there is no native engine to compare it with; use \
                `kind: file` or `kind: device`."
            .into();
    }
    "No stage measures a single block load with the native engine, so there is nothing to compare fio with; use a \
     `load` on `kind: file` or `kind: device` with `engine: native`."
        .into()
}

fn comparable(stage: &Stage) -> Result<(), String> {
    let jobs = stage.works.iter().filter_map(|work| work.job.get::<Job>());
    for job in jobs {
        if job.content.verify {
            return Err(format!(
                "The stage {} verifies what it reads, which fio cannot do with Tidemark's content; remove `verify` \
                 for the cross-check.",
                stage.name
            ));
        }
        let files = job.volumes.iter().any(|volume| matches!(volume.place, Place::File(_)));
        if files && job.actions.contains(&Action::Trim) {
            return Err(format!(
                "The stage {} trims files, which fio does on devices only; use `kind: device` or another pattern for \
                 the cross-check.",
                stage.name
            ));
        }
    }
    Ok(())
}

/// A stage by both engines in turn.
fn paired(stage: &Stage, pairs: u32) -> Vec<Stage> {
    let base = stage.name.strip_suffix(" #1").unwrap_or(&stage.name);
    let cell = stage.cell.clone().unwrap_or_else(|| Cell { sweep: base.to_owned(), ..Cell::default() });
    let by = |io_engine: IoEngine, pair: u32| {
        let mut stage = stage.clone();
        stage.name = format!("{base} {} #{pair}", io_engine.name());
        let engine = io_engine.name().to_owned();
        stage.cell = Some(Cell { repeat: pair, repeats: pairs, engine, ..cell.clone() });
        for work in &mut stage.works {
            if let Some(job) = work.job.get_mut::<Job>() {
                job.io_engine = io_engine;
            }
        }
        stage
    };
    let order = |pair: u32| match pair % 2 {
        1 => [IoEngine::Native, IoEngine::Fio],
        _ => [IoEngine::Fio, IoEngine::Native],
    };
    (1..=pairs).flat_map(|pair| order(pair).map(|through| by(through, pair))).collect()
}

#[cfg(test)]
mod tests;
