//! A load by Tidemark and by another program that does the same: every measured load twice, alternately, so that the two can
//! be compared.

use crate::engine::Counterpart;
use crate::plan::{Plan, Stage, Work, WorkKind};
use crate::registry::Registry;
use tidemark_measure::record::Cell;

/// More pairs than this are treated as a mistake.
const MOST_PAIRS: u32 = 1000;

const NOTHING: &str = "No stage measures a single load that another program does as well, so there is nothing to compare; use a \
                       `load` that is alone in its stage: on `kind: file` or `kind: device` with `engine: native` (fio), or one of \
                       pgbench's or sysbench's workloads on a database.";

/// A work as it is done by another program.
struct Other {
    /// What does the work as it stands, and what does it there.
    engines: [&'static str; 2],
    work: Work,
}

/// The plan with every stage that measures one load which another program does as well done `pairs` times by Tidemark and as often
/// by that program, which of them comes first taking turns. Pairs take the place of a sweep's repeats.
///
/// # Errors
/// A sentence with the reason why the plan cannot be compared, and what to do.
pub fn cross_check(mut plan: Plan, registry: &Registry, pairs: u32) -> Result<Plan, String> {
    if !(1..=MOST_PAIRS).contains(&pairs) {
        return Err(format!("A cross-check requires from 1 to {MOST_PAIRS} pairs, not {pairs}."));
    }
    let others = plan.stages.iter().map(|stage| other(stage, registry)).collect::<Result<Vec<_>, _>>()?;
    if others.iter().all(Option::is_none) {
        return Err(NOTHING.into());
    }
    let mut stages = Vec::new();
    for (stage, other) in plan.stages.into_iter().zip(others) {
        match (other, &stage.cell) {
            (None, _) => stages.push(stage),
            (Some(_), Some(cell)) if cell.repeat > 1 => {}
            (Some(other), _) => stages.extend(paired(&stage, &other, pairs)),
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

/// The one load of a stage as another program does it, if one does.
fn other(stage: &Stage, registry: &Registry) -> Result<Option<Other>, String> {
    let [work] = &stage.works[..] else { return Ok(None) };
    if work.kind != WorkKind::Normal {
        return Ok(None);
    }
    match registry.engine_of(work)?.counterpart(work) {
        Counterpart::None => Ok(None),
        Counterpart::Refused(why) => Err(format!("The stage {} {why}", stage.name)),
        Counterpart::Same { engines, work } => Ok(Some(Other { engines, work: *work })),
    }
}

/// A stage by both in turn.
fn paired(stage: &Stage, other: &Other, pairs: u32) -> Vec<Stage> {
    let base = stage.name.strip_suffix(" #1").unwrap_or(&stage.name);
    let cell = stage.cell.clone().unwrap_or_else(|| Cell { sweep: base.to_owned(), ..Cell::default() });
    let by = |engine: &str, works: Vec<Work>, pair: u32| Stage {
        name: format!("{base} {engine} #{pair}"),
        cell: Some(Cell { repeat: pair, repeats: pairs, engine: engine.to_owned(), ..cell.clone() }),
        works,
        ..stage.clone()
    };
    let pair = |pair: u32| {
        let [own, others] = other.engines;
        let own = by(own, stage.works.clone(), pair);
        let others = by(others, vec![other.work.clone()], pair);
        if pair % 2 == 1 { [own, others] } else { [others, own] }
    };
    (1..=pairs).flat_map(pair).collect()
}
