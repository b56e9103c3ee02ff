//! What a plan does to block storage: how much of it, and what about it may surprise.

use super::surprises::Remarks;
use super::{Action, Amount, Does, operations};
use crate::block::{self, Job, Place, Volume};
use crate::plan::{Stage as PlanStage, Work as PlanWork, WorkKind};
use std::collections::{HashMap, HashSet};
use tidemark_load::source::SourcePlan;
use tidemark_measure::units;

/// Memory of one block of a volume whose content is verified (`tidemark-block`): which write it holds; bytes.
const MEMORY_OF_BLOCK: u64 = 12;

/// Bytes of a block that is verified.
const VERIFIED_BLOCK: u64 = 4096;

/// A shorter window of block load shows little, nanoseconds: queues, caches and journals take seconds to fill.
const SHORT_WINDOW_NS: u64 = 5_000_000_000;

/// The state of volumes in the course of a plan.
#[derive(Default)]
pub(super) struct Volumes {
    /// All that the plan names, with what is made of them: whether they hold content that was written on purpose.
    filled: HashMap<Volume, bool>,
}

impl Volumes {
    /// Remarks on what a stage will find, then what it changes.
    pub(super) fn stage(&mut self, stage: &PlanStage, remarks: &mut Remarks) {
        // All points of a sweep have the same remarks.
        let name = stage.cell.as_ref().map_or(&stage.name, |cell| &cell.sweep);
        let jobs = || stage.works.iter().filter_map(|work| Some((work, work.engine.block()?)));
        for (work, job) in jobs() {
            self.check_filled(work, job, name, remarks);
            of_job(work, job, name, remarks);
        }
        for (work, job) in jobs() {
            self.happen(work, job);
        }
    }

    fn check_filled(&self, work: &PlanWork, job: &Job, stage: &str, remarks: &mut Remarks) {
        if !matches!(work.load.source, SourcePlan::Mix { .. }) {
            return;
        }
        let empty = |volume: &&Volume| {
            !matches!(volume.place, Place::Device(_)) && !self.filled.get(*volume).copied().unwrap_or(false)
        };
        let mut unfilled = job.volumes.iter().filter(empty);
        let Some(first) = unfilled.next() else { return };
        let named = match unfilled.count() {
            0 => first.name(),
            more => format!("{} and {} more", first.name(), units::count(more as u64)),
        };
        let (topic, text) = if job.actions.contains(&block::Action::Read) {
            let verify = if job.content.verify { ", which `verify` counts as wrong content" } else { "" };
            (
                "read-of-unfilled",
                format!(
                    "{stage} reads {named}, which no earlier stage fills: it must already exist, and unwritten blocks \
                     read as zeroes without disk access{verify}; `- prepare: {{}}` fills it"
                ),
            )
        } else {
            (
                "write-of-unfilled",
                format!(
                    "{stage} writes to {named}, which no earlier stage fills: it must already exist, and first writes \
                     also allocate space; `- prepare: {{}}` fills it"
                ),
            )
        };
        remarks.add(topic, text);
    }

    fn happen(&mut self, work: &PlanWork, job: &Job) {
        let fills = work.kind == WorkKind::Prepare && matches!(work.load.source, SourcePlan::Scan { .. });
        let empties = |action: &block::Action| matches!(action, block::Action::Trim | block::Action::Remove);
        for volume in &job.volumes {
            if work.kind.cleans() && job.actions.contains(&block::Action::Remove) {
                self.filled.remove(volume);
                continue;
            }
            let filled = self.filled.entry(volume.clone()).or_default();
            *filled = (*filled || fills) && !job.actions.iter().any(empties);
        }
    }

    /// Remarks on what stays behind. Devices stay anyway.
    pub(super) fn left_over(&self, remarks: &mut Remarks) {
        let made = self.filled.iter().filter(|(_, filled)| **filled).map(|(volume, _)| volume);
        let made = made.filter(|volume| !matches!(volume.place, Place::Device(_)));
        let (mut count, mut bytes, mut first) = (0u64, 0u64, None::<String>);
        for volume in made {
            let name = volume.name();
            (count, bytes) = (count + 1, bytes.saturating_add(volume.size));
            first = Some(first.map_or(name.clone(), |least| least.min(name)));
        }
        let Some(first) = first else { return };
        let bytes = units::bytes(bytes);
        let text = match count {
            1 => format!("{first} ({bytes}) remains: later runs reuse it; `- cleanup: {{}}` removes it"),
            _ => format!(
                "{} volumes such as {first} ({bytes} in total) remain: later runs reuse \
                 them; `- cleanup: {{}}` removes them",
                units::count(count)
            ),
        };
        remarks.add("volumes-left", text);
    }
}

/// The volumes that all works of a plan name, bytes.
pub(super) fn capacity<'a>(stages: impl Iterator<Item = &'a PlanStage>) -> u64 {
    let jobs = stages.flat_map(|stage| &stage.works).filter_map(|work| work.engine.block());
    let volumes: HashSet<&Volume> = jobs.flat_map(|job| &job.volumes).collect();
    volumes.iter().map(|volume| volume.size).fold(0, u64::saturating_add)
}

/// Remarks on a work that need no look at what was done before it.
fn of_job(work: &PlanWork, job: &Job, stage: &str, remarks: &mut Remarks) {
    if let (WorkKind::Normal, Some(window)) = (work.kind, work.load.stop.window_ns)
        && window < SHORT_WINDOW_NS
    {
        let text = format!(
            "{stage} is measured for {}: queues, caches and journals take longer to fill; measure for at \
             least {}, a minute is usual",
            units::duration_ns(window),
            units::duration_ns(SHORT_WINDOW_NS)
        );
        remarks.add("short-window", text);
    }
    let changes = |action: &block::Action| matches!(action, block::Action::Write | block::Action::Trim);
    if job.actions.iter().any(changes) {
        for volume in job.volumes.iter().filter(|volume| matches!(volume.place, Place::Device(_))) {
            let text = format!("{stage} overwrites {}: its content will be lost", volume.name());
            remarks.add("destroys-content", text);
        }
    }
}

/// What a work does, action by action.
pub(super) fn actions(work: &PlanWork, job: &Job) -> Vec<Action> {
    let all = work.labels.iter().zip(&job.actions).enumerate();
    all.map(|(index, (label, action))| {
        let does = match action {
            block::Action::Read => Does::ReadsBlocks,
            block::Action::Write => Does::WritesBlocks,
            block::Action::Trim => Does::TrimsBlocks,
            block::Action::Fsync | block::Action::Fdatasync => Does::SyncsVolumes,
            block::Action::Remove => Does::RemovesVolumes,
        };
        let finale = work.load.finale.filter(|finale| usize::from(finale.action) == index);
        let (operations, bytes) = match (does, finale) {
            (Does::SyncsVolumes, Some(_)) if label.weight == 0.0 && !follows(work, index) => {
                (Amount::Exactly(job.volumes.len() as u64), Amount::Exactly(0))
            }
            (Does::SyncsVolumes, _) => (Amount::Open, Amount::Exactly(0)),
            (Does::RemovesVolumes, _) => (operations(&work.load), Amount::Exactly(capacity_of(job))),
            _ => (operations(&work.load), moved(work, job)),
        };
        let count = Amount::Exactly(job.volumes.len() as u64);
        Action { label: label.label.clone(), does, operations, count, bytes }
    })
    .collect()
}

/// Whether an action follows after some others.
fn follows(work: &PlanWork, index: usize) -> bool {
    let SourcePlan::Mix { choices, .. } = &work.load.source else { return false };
    choices.iter().filter_map(|choice| choice.follow).any(|follow| usize::from(follow.action) == index)
}

fn capacity_of(job: &Job) -> u64 {
    job.volumes.iter().map(|volume| volume.size).fold(0, u64::saturating_add)
}

/// Bytes that an action moves.
fn moved(work: &PlanWork, job: &Job) -> Amount {
    let stop = &work.load.stop;
    match (&work.load.source, stop.bytes) {
        (SourcePlan::Scan { .. }, _) if job.reuse => Amount::UpTo(capacity_of(job)),
        (SourcePlan::Scan { .. }, _) => Amount::Exactly(capacity_of(job)),
        (_, Some(bytes)) if work.kind == WorkKind::Prepare => Amount::Exactly(bytes),
        (_, Some(bytes)) => Amount::UpTo(bytes),
        (SourcePlan::Mix { .. }, None) => match operations(&work.load) {
            Amount::Exactly(number) => Amount::UpTo(number.saturating_mul(largest(work))),
            Amount::UpTo(number) => Amount::UpTo(number.saturating_mul(largest(work))),
            Amount::Open => Amount::Open,
        },
    }
}

/// What ends a work that goes through all volumes once.
pub(super) fn until(work: &PlanWork, job: &Job) -> String {
    match work.kind.cleans() {
        true if job.volumes.len() == 1 => "1 volume is removed".to_owned(),
        true => format!("{} volumes are removed", units::count(job.volumes.len() as u64)),
        false => format!("{} are written", units::bytes(capacity_of(job))),
    }
}

/// Memory of the load generator for a work, bytes: a buffer for each operation in flight, and what is known of each
/// block where content is verified.
pub(super) fn memory(work: &PlanWork, job: &Job) -> u64 {
    let lanes = u64::from(work.load.workers).saturating_mul(u64::from(work.load.depth.max(1)));
    let blocks = if job.content.verify { capacity_of(job) / VERIFIED_BLOCK } else { 0 };
    lanes.saturating_mul(largest(work)).saturating_add(blocks.saturating_mul(MEMORY_OF_BLOCK))
}

/// The largest operation, bytes.
fn largest(work: &PlanWork) -> u64 {
    let of = |size: &tidemark_load::source::Size| size.pick.bounds().1.saturating_mul(size.unit);
    match &work.load.source {
        SourcePlan::Scan { bytes, .. } => of(bytes),
        SourcePlan::Mix { choices, .. } => choices.iter().map(|choice| of(&choice.bytes)).max().unwrap_or(0),
    }
}
