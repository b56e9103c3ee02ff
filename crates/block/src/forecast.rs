//! What a plan does to block storage: how much of it, and what about it may surprise.

use crate::job::{self, Job, Place, Volume};
use std::collections::{HashMap, HashSet};
use tidemark_load::source::SourcePlan;
use tidemark_measure::units;
use tidemark_plan::forecast::{
    Action, Amount, Does, Forecaster, Holdings, Remarks, operations, operations_of,
};
use tidemark_plan::plan::{Stage, Work, WorkKind};

/// Memory of one block of a volume whose content is verified (`tidemark-block`): which write it holds; bytes.
const MEMORY_OF_BLOCK: u64 = 12;

/// Bytes of a block that is verified.
const VERIFIED_BLOCK: u64 = 4096;

/// A shorter window of block load shows little, nanoseconds: queues, caches and journals take seconds to fill.
const SHORT_WINDOW_NS: u64 = 5_000_000_000;

const READS: Does = does("reads_blocks", true);
const WRITES: Does = does("writes_blocks", true);
const TRIMS: Does = does("trims_blocks", true);
const SYNCS: Does = does("syncs_volumes", false);
const REMOVES: Does = does("removes_volumes", true);

const fn does(code: &'static str, moves_bytes: bool) -> Does {
    Does { code, counts: "volume", moves_bytes }
}

/// The state of volumes in the course of a plan.
#[derive(Default)]
pub(crate) struct Volumes {
    /// All that its works have named.
    named: HashSet<Volume>,
    /// Those that are there, and whether they hold content that was written on purpose.
    filled: HashMap<Volume, bool>,
    /// Whether some of them are those of each driver.
    per_driver: bool,
}

impl Forecaster for Volumes {
    fn stage(&mut self, stage: &Stage, works: &[&Work], remarks: &mut Remarks) -> Vec<Vec<Action>> {
        // All points of a sweep have the same to be said about them.
        let name = stage.cell.as_ref().map_or(&stage.name, |cell| &cell.sweep);
        let jobs = || works.iter().filter_map(|work| Some((*work, work.job.get::<Job>()?)));
        for (work, job) in jobs() {
            self.check_filled(work, job, name, remarks);
            of_job(work, job, name, remarks);
        }
        for (work, job) in jobs() {
            self.named.extend(job.volumes.iter().cloned());
            self.per_driver |= job.per_driver;
            self.happen(work, job);
        }
        works.iter().map(|work| work.job.get::<Job>().map_or(Vec::new(), |job| actions(work, job))).collect()
    }

    fn until(&self, work: &Work) -> Option<String> {
        let job = work.job.get::<Job>()?;
        Some(match work.kind.cleans() {
            true if job.volumes.len() == 1 => "1 volume is removed".to_owned(),
            true => format!("{} volumes are removed", units::count(job.volumes.len() as u64)),
            false => format!("{} are written", units::bytes(capacity(&job.volumes))),
        })
    }

    fn target(&self, work: &Work) -> String {
        let Some(job) = work.job.get::<Job>() else { return String::new() };
        let volumes = match job.volumes.as_slice() {
            [] => return String::new(),
            [only] => format!("{} ({})", only.name(), units::binary_bytes(only.size)),
            [first, more @ ..] => format!(
                "{} and {} more ({} in total)",
                first.name(),
                units::count(more.len() as u64),
                units::binary_bytes(capacity(&job.volumes))
            ),
        };
        if job.per_driver { format!("{volumes} of each driver") } else { volumes }
    }

    /// A buffer for each operation in flight, and what is known of each block where content is verified.
    fn memory(&self, work: &Work) -> u64 {
        let Some(job) = work.job.get::<Job>() else { return 0 };
        let slots = u64::from(work.load.workers).saturating_mul(u64::from(work.load.depth.max(1)));
        let blocks = if job.content.verify { capacity(&job.volumes) / VERIFIED_BLOCK } else { 0 };
        slots.saturating_mul(largest(work)).saturating_add(blocks.saturating_mul(MEMORY_OF_BLOCK))
    }

    fn holdings(&self) -> Holdings {
        Holdings { volumes: capacity(&self.named), ..Holdings::default() }
    }

    /// Remarks on what stays behind (devices stay anyway), and on what is multiplied by the number of drivers.
    fn finish(&mut self, remarks: &mut Remarks) {
        self.left_over(remarks);
        if self.per_driver {
            let text = "each driver prepares, loads and removes volumes of its own: volumes, sizes and clients are those of one driver; the rate, \
                        total operations and total bytes of a load are those of all drivers together";
            remarks.add("per-driver", text.into());
        }
    }
}

impl Volumes {
    fn check_filled(&self, work: &Work, job: &Job, stage: &str, remarks: &mut Remarks) {
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
        let (topic, text) = if job.actions.contains(&job::Action::Read) {
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

    fn happen(&mut self, work: &Work, job: &Job) {
        let fills = work.kind == WorkKind::Prepare && matches!(work.load.source, SourcePlan::Scan { .. });
        let empties = |action: &job::Action| matches!(action, job::Action::Trim | job::Action::Remove);
        for volume in &job.volumes {
            if work.kind.cleans() && job.actions.contains(&job::Action::Remove) {
                self.filled.remove(volume);
                continue;
            }
            let filled = self.filled.entry(volume.clone()).or_default();
            *filled = (*filled || fills) && !job.actions.iter().any(empties);
        }
    }

    fn left_over(&self, remarks: &mut Remarks) {
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

/// Remarks on a work that need no look at what was done before it.
fn of_job(work: &Work, job: &Job, stage: &str, remarks: &mut Remarks) {
    if let (WorkKind::Normal, Some(window)) = (work.kind, work.load.stop.window_ns)
        && window < SHORT_WINDOW_NS
    {
        let text = format!(
            "{stage} is measured for {}: queues, caches and journals take longer to fill; measure for {} at \
             least, a minute is usual",
            units::duration_ns(window),
            units::duration_ns(SHORT_WINDOW_NS)
        );
        remarks.add("short-window", text);
    }
    if job.actions.iter().any(|action| action.changes()) {
        for volume in job.volumes.iter().filter(|volume| matches!(volume.place, Place::Device(_))) {
            let text = format!("{stage} overwrites {}: its content will be lost", volume.name());
            remarks.add("destroys-content", text);
        }
    }
}

/// What a work does, action by action.
fn actions(work: &Work, job: &Job) -> Vec<Action> {
    let all = work.labels.iter().zip(&job.actions).enumerate();
    all.map(|(index, (label, action))| {
        let is_finale = work.load.finale.is_some_and(|finale| usize::from(finale.action) == index);
        let own = || operations_of(&work.load, index as u16);
        let (does, operations, bytes) = match action {
            job::Action::Read => (READS, own(), moved(work, job, index)),
            job::Action::Write => (WRITES, own(), moved(work, job, index)),
            job::Action::Trim => (TRIMS, own(), moved(work, job, index)),
            job::Action::Fsync | job::Action::Fdatasync => {
                let once = is_finale && label.weight == 0.0 && !follows(work, index);
                let count = if once { Amount::Exactly(job.volumes.len() as u64) } else { Amount::Open };
                (SYNCS, count, Amount::Exactly(0))
            }
            job::Action::Remove => (REMOVES, operations(&work.load), Amount::Exactly(capacity(&job.volumes))),
        };
        let count = Amount::Exactly(job.volumes.len() as u64);
        let (label, ratio) = (label.label.clone(), label.weight);
        Action { label, ratio, does, names: String::new(), operations, count, held: Amount::Open, bytes }
    })
    .collect()
}

/// Whether an action follows after some others.
fn follows(work: &Work, index: usize) -> bool {
    let SourcePlan::Mix { choices, .. } = &work.load.source else { return false };
    choices.iter().filter_map(|choice| choice.follow).any(|follow| usize::from(follow.action) == index)
}

fn capacity<'a>(volumes: impl IntoIterator<Item = &'a Volume>) -> u64 {
    volumes.into_iter().map(|volume| volume.size).fold(0, u64::saturating_add)
}

/// Bytes that an action moves.
fn moved(work: &Work, job: &Job, action: usize) -> Amount {
    let stop = &work.load.stop;
    match (&work.load.source, stop.bytes) {
        (SourcePlan::Scan { .. }, _) if job.reuse => Amount::UpTo(capacity(&job.volumes)),
        (SourcePlan::Scan { .. }, _) => Amount::Exactly(capacity(&job.volumes)),
        (_, Some(bytes)) if work.kind == WorkKind::Prepare => Amount::Exactly(bytes),
        (_, Some(bytes)) => Amount::UpTo(bytes),
        (SourcePlan::Mix { choices, .. }, None) => {
            let own: Vec<_> = choices.iter().filter(|choice| usize::from(choice.action) == action).collect();
            let bytes = |number: u64, unit: u64| number.saturating_mul(unit);
            let least = own.iter().map(|choice| bytes(choice.bytes.pick.bounds().0, choice.bytes.unit)).min();
            let most = own.iter().map(|choice| bytes(choice.bytes.pick.bounds().1, choice.bytes.unit)).max();
            let weight: f64 = own.iter().map(|choice| choice.weight).sum();
            let mean = own.iter().map(|choice| {
                choice.bytes.pick.mean() * choice.bytes.unit as f64 * choice.weight
                    / weight.max(f64::MIN_POSITIVE)
            });
            let sizes = (least.unwrap_or(0), most.unwrap_or(0));
            operations_of(&work.load, action as u16).times(sizes, mean.sum())
        }
        (SourcePlan::Rounds { .. }, None) => Amount::Exactly(0),
    }
}

/// The largest operation, bytes.
fn largest(work: &Work) -> u64 {
    let of = |size: &tidemark_load::source::Size| size.pick.bounds().1.saturating_mul(size.unit);
    match &work.load.source {
        SourcePlan::Scan { bytes, .. } => of(bytes),
        SourcePlan::Rounds { .. } => 0,
        SourcePlan::Mix { choices, .. } => choices.iter().map(|choice| of(&choice.bytes)).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;
