//! The method around block load, that makes its numbers evidence: what is filled already stays, the page cache is
//! dropped on purpose, device counters are read before and after.

use crate::counters::Counters;
use std::path::PathBuf;
use tidemark_block::{cache, filled};
use tidemark_measure::record::Proof;
use tidemark_plan::block::{Action, Cache, Job, Place, Volume};
use tidemark_plan::plan::{Engine, Stage, Work, WorkKind};

/// What is known of a stage's volumes from its start to its end.
pub(crate) struct Method {
    proof: Proof,
    counters: Counters,
    /// The volumes that the stage writes to. Whatever is only read stays whose it was.
    written: Vec<Volume>,
}

impl Method {
    /// Prepares a stage's volumes for its load and reads the devices' counters; `None` when the stage moves no
    /// blocks.
    pub(crate) fn begin(stage: &Stage) -> Option<Self> {
        let works = || stage.works.iter().filter(|work| moves(work));
        works().next()?;
        let mut proof = Proof { direct: works().all(is_direct), ..Proof::default() };
        let cold = works().any(|work| declares(work) == Some(Cache::Cold));
        proof.cache = if cold { "cold" } else { "warm" }.into();
        let volumes = volumes(works());
        let measures = works().any(|work| work.kind == WorkKind::Normal);
        if cold && measures {
            drop_caches(&volumes, &mut proof);
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for volume in &volumes {
            match &volume.place {
                Place::File(path) | Place::Device(path) => paths.push(path.clone()),
                Place::Rbd(_) => {}
            }
        }
        if volumes.iter().any(|volume| matches!(volume.place, Place::Rbd(_))) {
            let text =
                "The volumes are images of a Ceph cluster: no device of this machine counts their I/O.";
            proof.unchecked.push(text.into());
        }
        for work in works() {
            if let Engine::Fio(file) = &work.engine {
                paths.extend(
                    file.paths.iter().filter(|path| !paths.contains(path)).cloned().collect::<Vec<_>>(),
                );
            }
        }
        if paths.is_empty() && proof.unchecked.is_empty() {
            proof
                .unchecked
                .push("The job names no file or device, so there are no counters to compare with.".into());
        }
        let written = self::volumes(works().filter(|work| writes(work)));
        Some(Self { proof, counters: Counters::read(&paths), written })
    }

    /// The proof, with what the devices counted and what the engines remark.
    pub(crate) fn end(self, remarks: Vec<String>) -> Proof {
        self.written.iter().for_each(tidemark_block::mark);
        let (devices, unchecked) = self.counters.since();
        let mut proof = Proof { devices, ..self.proof };
        proof.unchecked.extend(unchecked);
        for remark in remarks {
            if !proof.setup.contains(&remark) {
                proof.setup.push(remark);
            }
        }
        proof
    }
}

/// Why a stage that fills volumes has nothing to do, if they hold what it would write.
pub(crate) fn already_filled(stage: &Stage) -> Option<String> {
    let fills = |work: &Work| match work.engine.block() {
        Some(job) if work.kind == WorkKind::Prepare && job.reuse => Some(job.clone()),
        _ => None,
    };
    let jobs: Option<Vec<Job>> = stage.works.iter().map(fills).collect();
    let jobs = jobs.filter(|jobs| !jobs.is_empty())?;
    let all = jobs.iter().all(|job| job.volumes.iter().all(|volume| filled(job, volume)));
    let count: usize = jobs.iter().map(|job| job.volumes.len()).sum();
    all.then(|| format!("{count} volumes already hold Tidemark's content and were kept"))
}

/// The files that a stage is to fill again although Tidemark filled them before: what they hold is not what it wrote.
pub(crate) fn changed_since(stage: &Stage) -> Vec<String> {
    let jobs = stage.works.iter().filter(|work| work.kind == WorkKind::Prepare);
    let jobs = jobs.filter_map(|work| work.engine.block()).filter(|job| job.reuse);
    let volumes = jobs.flat_map(|job| job.volumes.iter().map(move |volume| (job, volume)));
    let changed = volumes.filter(|(job, volume)| match &volume.place {
        Place::File(path) => tidemark_block::is_ours(path) && !filled(job, volume),
        Place::Device(_) | Place::Rbd(_) => false,
    });
    changed.map(|(_, volume)| volume.name()).collect()
}

fn moves(work: &Work) -> bool {
    match &work.engine {
        Engine::Object(_) => false,
        Engine::Block(job) => job.actions.iter().any(|action| *action != Action::Remove),
        Engine::Fio(_) => true,
    }
}

fn writes(work: &Work) -> bool {
    let job = work.engine.block();
    job.is_some_and(|job| job.actions.iter().any(|action| matches!(action, Action::Write | Action::Trim)))
}

fn is_direct(work: &Work) -> bool {
    match &work.engine {
        Engine::Object(_) => false,
        Engine::Block(job) => job.direct,
        Engine::Fio(file) => file.direct,
    }
}

/// The state of the page cache that a work declares. A fio job file declares it by `direct`.
fn declares(work: &Work) -> Option<Cache> {
    match &work.engine {
        Engine::Object(_) => None,
        Engine::Block(job) => Some(job.cache),
        Engine::Fio(file) => Some(if file.direct { Cache::Cold } else { Cache::Warm }),
    }
}

/// The distinct volumes of some works.
fn volumes<'a>(works: impl Iterator<Item = &'a Work>) -> Vec<Volume> {
    let mut volumes: Vec<Volume> = Vec::new();
    for volume in works.filter_map(|work| work.engine.block()).flat_map(|job| &job.volumes) {
        if !volumes.contains(volume) {
            volumes.push(volume.clone());
        }
    }
    volumes
}

fn drop_caches(volumes: &[Volume], proof: &mut Proof) {
    let mut dropped = 0;
    for volume in volumes.iter().filter(|volume| !matches!(volume.place, Place::Rbd(_))) {
        match cache::drop(volume) {
            Ok(()) => dropped += 1,
            // Reads from memory will show in the counters.
            Err(error) => {
                proof.setup.push(format!("cannot drop the page cache of {}: {error}", volume.name()));
            }
        }
    }
    if dropped > 0 {
        proof.setup.push(format!("the page cache of {dropped} volumes was written back and dropped"));
    }
}
