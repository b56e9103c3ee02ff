//! What may surprise a plan's author: each remark states what will happen, and how to avoid it.

use super::highest_rate;
use crate::plan::{Plan, Work as PlanWork};
use tidemark_load::source::SourcePlan;
use tidemark_load::work::Share;
use tidemark_measure::record::Note;
use tidemark_measure::units;

/// The limit of remarks: nobody reads more.
const MOST_REMARKS: usize = 50;

/// Remarks in the order in which they came up, each once.
#[derive(Default)]
pub struct Remarks(Vec<Note>);

impl Remarks {
    /// Adds a remark, unless it was made before.
    pub fn add(&mut self, topic: &str, text: String) {
        let note = Note { topic: topic.to_owned(), text };
        if self.0.len() < MOST_REMARKS && !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// Adds a remark that the reader must see before all others.
    pub fn add_first(&mut self, topic: &str, text: String) {
        self.0.insert(0, Note { topic: topic.to_owned(), text });
    }

    /// The remarks.
    pub(super) fn into_notes(self) -> Vec<Note> {
        self.0
    }
}

/// Remarks on pinned works, for runs without a controller.
pub(super) fn of_pins(plan: &Plan, remarks: &mut Remarks) {
    let works = plan.stages.iter().flat_map(|stage| &stage.works);
    let mut names: Vec<&str> = Vec::new();
    for name in works.filter_map(|work| work.driver.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        let text = format!(
            "works are pinned to {}: a controller assigns them only to these drivers; without a controller, \
             as in `tidemark run`, one process runs all works and ignores pins",
            names.join(", ")
        );
        remarks.add("drivers", text);
    }
}

/// Remarks on a work that need no look at what is stored.
pub(super) fn of_work(work: &PlanWork, stage: &str, remarks: &mut Remarks) {
    let (name, workers) = (&work.name, u64::from(work.load.workers));
    if let Some(number) = work.load.source.operations()
        && number < workers
    {
        let text = format!(
            "{} of the {} workers of {name} in stage {stage} are idle: it has {} operations in total",
            units::count(workers - number),
            units::count(workers),
            units::count(number)
        );
        remarks.add("idle-workers", text);
    }
    if let SourcePlan::Mix { pool: Some(pool), .. } = &work.load.source
        && super::length(pool.items) < workers
    {
        let text = format!(
            "the pool of stage {stage} has {} objects in a container for {} workers: workers do not share objects, so {} \
             have none",
            units::count(super::length(pool.items)),
            units::count(workers),
            units::count(workers - super::length(pool.items))
        );
        remarks.add("idle-workers", text);
    }
    let stop = &work.load.stop;
    let counted = stop.operations.is_some() || stop.bytes.is_some();
    if counted && stop.window_ns.is_none() && stop.give_up_ns.is_none() {
        let text = format!(
            "{name} in stage {stage} ends only by count: it never ends if the target does not respond; \
             add `for` or `give_up`"
        );
        remarks.add("no-time-limit", text);
    }
    let slots = f64::from(work.load.slots(Share::whole(&work.load)).1);
    if let Some(rate) = highest_rate(work)
        && slots < rate / 1000.0
    {
        // Little's law: operations in flight = rate x latency; fewer workers than that cannot keep the rate.
        let text = format!(
            "{name} in stage {stage} must reach {} with {} workers: that requires operations of less than {} on \
             average (workers = rate x latency)",
            units::rate(rate),
            units::count(workers),
            units::duration_ns((slots / rate * 1e9) as u64)
        );
        remarks.add("few-workers-for-rate", text);
    }
}
