//! The method around block load, that makes its numbers evidence: the page cache is dropped on purpose, device counters
//! are read before and after.

use crate::cache;
use crate::counters::{Counted, Counters};
use crate::external::{External, OsdCounters};
use crate::job::{Action, Cache, Job, Place, Volume};
use std::path::PathBuf;
use tidemark_measure::record::Proof;
use tidemark_plan::plan::{Work, WorkKind};

/// What a work does to storage, as far as the method must know.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    /// The volumes that it works on.
    pub volumes: &'a [Volume],
    /// Files and devices that are left alone, but whose devices' counters are read.
    pub paths: &'a [PathBuf],
    /// Whether it writes to its volumes. Whatever is only read stays whose it was.
    pub writes: bool,
    /// Whether it bypasses the page cache.
    pub direct: bool,
    /// The state of the page cache that it declares.
    pub cache: Cache,
    /// Whether it is measured.
    pub measures: bool,
}

impl<'a> Touch<'a> {
    /// Of a work on volumes; `None` if it only removes them.
    pub fn of(work: &Work, job: &'a Job) -> Option<Self> {
        job.actions.iter().any(|action| *action != Action::Remove).then(|| Self {
            volumes: &job.volumes,
            paths: &[],
            writes: job.actions.iter().any(|action| action.changes()),
            direct: job.direct,
            cache: job.cache,
            measures: work.kind == WorkKind::Normal,
        })
    }
}

/// What is known of a stage's volumes from its start to its end.
pub struct Method {
    proof: Proof,
    counters: Counters,
    /// The images that are touched, and what their cluster's OSDs had counted before.
    images: Vec<Volume>,
    osds: Option<OsdCounters>,
    /// Those of them that the stage writes to.
    written: Vec<Volume>,
}

impl Method {
    /// Prepares a stage's volumes for its load and reads the devices' counters; `None` when nothing is touched.
    pub fn begin(external: &dyn External, touches: &[Touch<'_>]) -> Option<Self> {
        if touches.is_empty() {
            return None;
        }
        let cold = touches.iter().any(|touch| touch.cache == Cache::Cold);
        let mut proof = Proof {
            direct: touches.iter().all(|touch| touch.direct),
            cache: Some(if cold { Cache::Cold } else { Cache::Warm }),
            ..Proof::default()
        };
        let volumes = volumes(touches.iter());
        if cold && touches.iter().any(|touch| touch.measures) {
            drop_caches(&volumes, &mut proof);
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for volume in &volumes {
            match &volume.place {
                Place::File(path) | Place::Device(path) => paths.push(path.clone()),
                Place::Rbd(_) => {}
            }
        }
        let is_image = |volume: &&Volume| matches!(volume.place, Place::Rbd(_));
        let images: Vec<Volume> = volumes.iter().filter(is_image).cloned().collect();
        let osds = match images.as_slice() {
            [] => None,
            images => external.osd_counters(images).map_err(|why| proof.unchecked.push(not_asked(&why))).ok(),
        };
        for path in touches.iter().flat_map(|touch| touch.paths) {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        if paths.is_empty() && images.is_empty() {
            proof
                .unchecked
                .push("The job names no file or device, so there are no counters to compare with.".into());
        }
        let mut written = self::volumes(touches.iter().filter(|touch| touch.writes));
        written.retain(|volume| is_image(&volume));
        Some(Self { proof, counters: Counters::read(&paths), images, osds, written })
    }

    /// The proof, with what the devices counted and the remarks of what carried the works out. Marks the images that were written to.
    pub fn end<'r>(self, external: &dyn External, remarks: impl Iterator<Item = &'r String>) -> Proof {
        let mut unmarked = Vec::new();
        for image in &self.written {
            unmarked.extend(external.mark_image(image).err());
        }
        let Counted { devices, own, unchecked } = self.counters.since();
        let mut proof = Proof { devices, own, ..self.proof };
        proof.unchecked.extend(unchecked);
        if let Some(before) = self.osds {
            let used = external.osd_counters(&self.images).and_then(|after| after.since(&before));
            proof.osds = used.map_err(|why| proof.unchecked.push(not_asked(&why))).ok();
        }
        for remark in remarks.cloned().chain(unmarked) {
            if !proof.setup.contains(&remark) {
                proof.setup.push(remark);
            }
        }
        proof
    }
}

fn not_asked(why: &str) -> String {
    format!("The volumes are images of a Ceph cluster, and what its OSDs counted is not known: {why}.")
}

/// The distinct volumes that are touched.
fn volumes<'t, 'v: 't>(touches: impl Iterator<Item = &'t Touch<'v>>) -> Vec<Volume> {
    let mut volumes: Vec<Volume> = Vec::new();
    for volume in touches.flat_map(|touch| touch.volumes) {
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
        let what = if dropped == 1 { "the volume" } else { &format!("{dropped} volumes") };
        proof.setup.push(format!("the page cache of {what} was written back and dropped"));
    }
}
