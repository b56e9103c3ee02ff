//! What works on objects will do and need, and what about them may surprise, before anything runs.
//!
//! It goes through the stages in order, with a map of what is stored where ([`world`]). Counts are exact where
//! the plan fixes them, averages where chance decides, and upper bounds where time does ([`amounts`]).

mod amounts;
mod remarks;
mod touch;
mod world;

use crate::job::{Emptied, Job, Place as Keeps, Target, Verb};
use crate::prepare::describe;
use tidemark_measure::units;
use tidemark_plan::forecast::{Action, Forecaster, Holdings, Remarks};
use tidemark_plan::plan::{Stage, Work, WorkKind};
use touch::{DELETES_CONTAINERS, Touch, touches};
use world::{Area, Place, Stored, World};

/// The way through a plan: what is stored so far.
#[derive(Default)]
pub(crate) struct Preview {
    objects: World,
    containers: World,
    /// Whether objects are kept in this process's memory.
    in_memory: bool,
}

impl Forecaster for Preview {
    fn stage(&mut self, stage: &Stage, works: &[&Work], remarks: &mut Remarks) -> Vec<Vec<Action>> {
        self.in_memory |= works.iter().any(|work| keeps_in_memory(work));
        let of_works: Vec<Vec<Touch<'_>>> = works.iter().map(|work| touches(work)).collect();
        let beside = written(of_works.iter().flatten());
        let action = |touch: &Touch<'_>| amounts::action(touch, &self.objects, &beside);
        let actions = of_works.iter().map(|touches| touches.iter().map(action).collect()).collect();
        let touches: Vec<Touch<'_>> = of_works.into_iter().flatten().collect();
        for touch in &touches {
            remarks::of_action(touch, &stage.name, remarks);
            if !self.lost() {
                self.check(touch, &beside, &stage.name, remarks);
            }
        }
        remarks::deletes_beside_reads(&touches, &stage.name, remarks);
        remarks::writes_beside_verified_reads(&touches, &stage.name, remarks);
        touches.iter().for_each(|touch| self.happen(touch));
        actions
    }

    fn until(&self, work: &Work) -> Option<String> {
        let number = work.load.source.operations()?;
        let (what, done) = match work.kind {
            WorkKind::Init => ("containers", "created"),
            WorkKind::Dispose => ("containers", "deleted"),
            WorkKind::Cleanup => ("objects", "deleted"),
            _ => ("objects", "written"),
        };
        Some(match number {
            1 => format!("1 {} is {done}", what.trim_end_matches('s')),
            number => format!("{} {what} are {done}", units::count(number)),
        })
    }

    fn target(&self, work: &Work) -> String {
        Job::of(work).map_or_else(String::new, |job| describe(&job.target))
    }

    fn connections(&self, work: &Work) -> u64 {
        connections(work)
    }

    fn holdings(&self) -> Holdings {
        let held = self.objects.held();
        Holdings { stored: held.most, in_memory: if self.in_memory { held.mean } else { 0 }, volumes: 0 }
    }

    fn finish(&mut self, remarks: &mut Remarks) {
        if self.lost() {
            remarks.add_first(
                "too-complex",
                "the plan has too many parts to track stored objects: remarks may be missing".into(),
            );
        } else {
            remarks::left_over(&self.objects, &self.containers, remarks);
        }
    }
}

impl Preview {
    /// Whether the plan became too much to follow.
    fn lost(&self) -> bool {
        self.objects.lost() || self.containers.lost()
    }

    /// Remarks on what an action will find, given what earlier stages left.
    fn check(&self, touch: &Touch<'_>, beside: &World, stage: &str, remarks: &mut Remarks) {
        let Some(place) = touch.place() else { return };
        if touch.does() == DELETES_CONTAINERS {
            return remarks::disposes(touch, &self.objects, &place, stage, remarks);
        }
        if touch.needs_objects() {
            match touch.existing {
                Some(_) => self.check_pool(touch, &place, stage, remarks),
                None if !touch.deletes() => self.check_read(touch, &place, beside, stage, remarks),
                None => {}
            }
        }
        if touch.deletes() && touch.existing.is_none() || matches!(touch.verb(), Verb::CreateContainer { .. })
        {
            return;
        }
        let containers = place.containers();
        for area in &touch.areas {
            let area = Area { spaces: area.spaces, items: (0, 0) };
            if let Some(gap) = self.containers.missing(&containers, &area, |_| true).first() {
                let named = place.containers_named(gap.spaces);
                let text = format!(
                    "stage {stage} uses {named}, which no earlier stage creates: they must already exist"
                );
                remarks.add("containers-not-made", text);
            }
        }
    }

    /// Remarks on objects that a pool expects and that may not exist.
    fn check_pool(&self, touch: &Touch<'_>, place: &Place, stage: &str, remarks: &mut Remarks) {
        let Some(existing) = touch.existing else { return };
        if let Some(gap) = self.objects.missing(place, &existing, |old| old.certain).first() {
            let (objects, containers) = (place.objects_named(gap.items), place.containers_named(gap.spaces));
            let text = format!(
                "the pool of stage {stage} expects {objects} in {containers}, which no earlier stage is certain to \
                 write: unless they exist, operations on them fail with 404"
            );
            remarks.add("pool-of-unwritten", text);
        }
    }

    /// Remarks on objects that a read may select and that may not exist.
    fn check_read(
        &self,
        touch: &Touch<'_>,
        place: &Place,
        beside: &World,
        stage: &str,
        remarks: &mut Remarks,
    ) {
        let label = touch.work.labels.get(touch.index).map_or("read", |label| label.label.as_str());
        for area in &touch.areas {
            let gaps = self.objects.missing(place, area, |old| old.certain);
            let Some(gap) = gaps.first() else { continue };
            let (topic, why) = if gaps.iter().all(|gap| beside.missing(place, gap, |_| true).is_empty()) {
                (
                    "read-before-write",
                    "which the same stage writes meanwhile: a read of an object not yet written fails with 404",
                )
            } else if self.objects.missing(place, gap, |_| true).is_empty() {
                (
                    "read-of-uncertain",
                    "only some of which earlier stages leave in place: other reads fail with 404",
                )
            } else {
                ("read-of-unwritten", "which no earlier stage writes: reads fail with 404 unless they exist")
            };
            let (objects, containers) = (place.objects_named(gap.items), place.containers_named(gap.spaces));
            let text = format!("the {label} of stage {stage} selects from {objects} in {containers}, {why}");
            remarks.add(topic, text);
        }
    }

    /// Changes the world as an action does.
    fn happen(&mut self, touch: &Touch<'_>) {
        let Some(place) = touch.place() else { return };
        let containers = place.containers();
        let certain = touch.is_certain();
        for area in &touch.areas {
            let spaces = Area { spaces: area.spaces, items: (0, 0) };
            match touch.verb() {
                Verb::CreateContainer { .. } => {
                    let stored = Stored { area: spaces, least: 0, most: 0, mean: 0.0, certain };
                    self.containers.put(&containers, stored);
                }
                Verb::DeleteContainer { empty } => {
                    if *empty == Emptied::Always && certain {
                        self.objects.empty(&containers, area.spaces);
                    }
                    self.containers.remove(&containers, &spaces, certain);
                }
                Verb::Copy => {
                    for source in self.objects.within(&place, area) {
                        self.objects.put(&place.copies(), Stored { certain: false, ..source });
                    }
                }
                _ if touch.writes() => self.objects.put(&place, touch.stores(*area)),
                _ if touch.deletes() => self.objects.remove(&place, area, certain),
                _ => {}
            }
        }
    }
}

/// The most connections of a work at once.
pub(crate) fn connections(work: &Work) -> u64 {
    let Some(job) = Job::of(work) else { return 0 };
    let parallel = |verb: &Verb| match verb {
        Verb::PutMultipart { parallel, .. } => u64::from(*parallel),
        _ => 1,
    };
    match job.target {
        Target::Mock(_) | Target::Nothing => 0,
        Target::S3(_) | Target::Swift(_) | Target::Embedded(_) => {
            let each = job.actions.iter().map(|action| parallel(&action.verb)).max().unwrap_or(1);
            u64::from(work.load.workers).saturating_mul(each)
        }
    }
}

/// What the actions of a stage write.
fn written<'t>(touches: impl Iterator<Item = &'t Touch<'t>>) -> World {
    let mut world = World::default();
    for writer in touches.filter(|touch| touch.writes()) {
        if let Some(place) = writer.place() {
            writer.areas.iter().for_each(|area| world.put(&place, writer.stores(*area)));
        }
    }
    world
}

/// Whether a work's objects are kept in this process's memory.
fn keeps_in_memory(work: &Work) -> bool {
    let target = Job::of(work).map(|job| &job.target);
    matches!(target, Some(Target::Embedded(embedded)) if embedded.place == Keeps::Memory)
}
