//! What works on objects will do and need, and what about them may surprise, before anything runs.
//!
//! It goes through the stages in order, with a map of what is stored where ([`world`]). Counts are exact where
//! the plan fixes them and upper bounds where chance or time decide.

mod remarks;
mod world;

use crate::job::{Emptied, Form, Job, Place as Keeps, Target, Verb};
use tidemark_load::source::{Choice, Effect, Size, SourcePlan};
use tidemark_measure::pick::Pick;
use tidemark_measure::units;
use tidemark_plan::forecast::{self, Action, Amount, Does, Forecaster, Holdings, Remarks};
use tidemark_plan::plan::{Stage, Work, WorkKind};
use world::{Area, Place, Stored, World};

const CREATES_CONTAINERS: Does = Does { code: "creates_containers", counts: "", moves_bytes: false };
const DELETES_CONTAINERS: Does = Does { code: "deletes_containers", counts: "", moves_bytes: false };
const LISTS_CONTAINERS: Does = Does { code: "lists_containers", counts: "", moves_bytes: false };
const WRITES_OBJECTS: Does = Does { code: "writes_objects", counts: "", moves_bytes: true };
const READS_OBJECTS: Does = Does { code: "reads_objects", counts: "", moves_bytes: true };
const DELETES_OBJECTS: Does = Does { code: "deletes_objects", counts: "", moves_bytes: true };
const WRITES_FILES: Does = Does { code: "writes_files", counts: "", moves_bytes: true };

/// The way through a plan: what is stored so far.
#[derive(Default)]
pub(crate) struct Preview {
    objects: World,
    containers: World,
    /// Whether objects are kept in this process's memory.
    in_memory: bool,
}

/// One action with what it is done to.
struct Touch<'a> {
    work: &'a Work,
    job: &'a Job,
    index: usize,
    areas: Vec<Area>,
    size: &'a Size,
    /// The choice of a mix; a scan has none.
    choice: Option<&'a Choice>,
    /// With a pool: the objects that must be there.
    existing: Option<Area>,
}

impl Touch<'_> {
    fn verb(&self) -> &Verb {
        &self.job.actions[self.index].verb
    }

    fn place(&self) -> Option<Place> {
        Place::of(self.job, &self.job.actions[self.index].naming)
    }

    /// All that it may touch, each object counted once.
    fn count(&self) -> u64 {
        self.areas.iter().map(Area::count).fold(0, u64::saturating_add)
    }

    fn is_scan(&self) -> bool {
        self.choice.is_none()
    }

    fn does(&self) -> Does {
        match self.verb() {
            Verb::CreateContainer => CREATES_CONTAINERS,
            Verb::DeleteContainer { .. } => DELETES_CONTAINERS,
            Verb::List { .. } => LISTS_CONTAINERS,
            Verb::Put { .. } | Verb::PutMultipart { .. } | Verb::PutFile { .. } => WRITES_OBJECTS,
            Verb::Delete | Verb::Clear | Verb::DeleteMany { .. } => DELETES_OBJECTS,
            Verb::WriteLocal { .. } => WRITES_FILES,
            Verb::Get
            | Verb::GetRange { .. }
            | Verb::Head
            | Verb::Copy
            | Verb::PutTags
            | Verb::GetTags
            | Verb::Restore { .. } => READS_OBJECTS,
        }
    }

    /// What it would store in an area.
    fn stores(&self, area: Area) -> Stored {
        let unit = self.size.unit;
        let (least, most) = self.size.pick.bounds();
        let (least, most) = (least.saturating_mul(unit), most.saturating_mul(unit));
        let mean = (self.size.pick.mean() * unit as f64).clamp(least as f64, most as f64);
        Stored { area, least, most, mean, certain: self.is_scan() }
    }
}

impl Forecaster for Preview {
    fn stage(&mut self, stage: &Stage, works: &[&Work], remarks: &mut Remarks) -> Vec<Vec<Action>> {
        self.in_memory |= works.iter().any(|work| keeps_in_memory(work));
        let of_works: Vec<Vec<Touch<'_>>> = works.iter().map(|work| touches(work)).collect();
        let actions =
            of_works.iter().map(|touches| touches.iter().map(|touch| self.action(touch)).collect()).collect();
        let touches: Vec<Touch<'_>> = of_works.into_iter().flatten().collect();
        let beside = written(&touches);
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
            WorkKind::Init => ("containers", "made"),
            WorkKind::Dispose => ("containers", "deleted"),
            WorkKind::Cleanup => ("objects", "deleted"),
            _ => ("objects", "written"),
        };
        Some(format!("all {} {what} are {done}", units::count(number)))
    }

    fn connections(&self, work: &Work) -> u64 {
        connections(work)
    }

    fn holdings(&self) -> Holdings {
        let stored = self.objects.bytes();
        Holdings { stored, in_memory: if self.in_memory { stored } else { 0 }, volumes: 0 }
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

    fn action(&self, touch: &Touch<'_>) -> Action {
        let operations = forecast::operations(&touch.work.load);
        let all = touch.count();
        let count = match operations {
            Amount::Exactly(number) if touch.is_scan() => Amount::Exactly(number),
            other => other.at_most(all),
        };
        let does = touch.does();
        let bytes = match does {
            WRITES_OBJECTS | WRITES_FILES => written_bytes(touch, count),
            READS_OBJECTS | DELETES_OBJECTS => self.found(touch, count),
            _ => Amount::Exactly(0),
        };
        let label = touch.work.labels.get(touch.index).map_or_else(String::new, |label| label.label.clone());
        Action { label, does, operations, count, bytes }
    }

    /// Bytes of the objects that a read or a delete finds.
    fn found(&self, touch: &Touch<'_>, count: Amount) -> Amount {
        let Some(place) = touch.place() else { return Amount::Open };
        let stored: Vec<Stored> =
            touch.areas.iter().flat_map(|area| self.objects.within(&place, area)).collect();
        let sum = stored.iter().map(|one| world::bytes(one.area.count(), one)).fold(0, u64::saturating_add);
        let sure = stored.iter().all(|one| one.certain && one.least == one.most);
        let whole = stored.iter().map(|one| one.area.count()).fold(0, u64::saturating_add) == touch.count();
        match count {
            Amount::Exactly(_) if sure && whole => Amount::Exactly(sum),
            Amount::Exactly(_) | Amount::Open => Amount::UpTo(sum),
            Amount::UpTo(count) => {
                let most = stored.iter().map(|one| one.most).max().unwrap_or(0);
                Amount::UpTo(sum.min(count.saturating_mul(most)))
            }
        }
    }

    /// Remarks on what an action will find, given what earlier stages left.
    fn check(&self, touch: &Touch<'_>, beside: &World, stage: &str, remarks: &mut Remarks) {
        let Some(place) = touch.place() else { return };
        match touch.does() {
            READS_OBJECTS | DELETES_OBJECTS if touch.existing.is_some() => {
                self.check_pool(touch, &place, stage, remarks);
            }
            READS_OBJECTS => self.check_read(touch, &place, beside, stage, remarks),
            WRITES_OBJECTS | LISTS_CONTAINERS => {}
            DELETES_CONTAINERS => {
                return remarks::disposes(touch, &self.objects, &place, stage, remarks);
            }
            _ => return,
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
        for area in &touch.areas {
            let spaces = Area { spaces: area.spaces, items: (0, 0) };
            match touch.does() {
                CREATES_CONTAINERS => {
                    let stored =
                        Stored { area: spaces, least: 0, most: 0, mean: 0.0, certain: touch.is_scan() };
                    self.containers.put(&containers, stored);
                }
                DELETES_CONTAINERS => {
                    if matches!(touch.verb(), Verb::DeleteContainer { empty: Emptied::Always }) && touch.is_scan() {
                        self.objects.empty(&containers, area.spaces);
                    }
                    self.containers.remove(&containers, &spaces, touch.is_scan());
                }
                WRITES_OBJECTS => self.objects.put(&place, touch.stores(*area)),
                DELETES_OBJECTS => self.objects.remove(&place, area, touch.is_scan()),
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
fn written(touches: &[Touch<'_>]) -> World {
    let mut world = World::default();
    for writer in touches.iter().filter(|touch| touch.does() == WRITES_OBJECTS) {
        if let Some(place) = writer.place() {
            writer.areas.iter().for_each(|area| world.put(&place, writer.stores(*area)));
        }
    }
    world
}

/// The actions of a work with what they are done to.
fn touches(work: &Work) -> Vec<Touch<'_>> {
    let Some(job) = Job::of(work) else { return Vec::new() };
    let whole = |range: Option<(u64, u64)>| range.unwrap_or((0, 0));
    match &work.load.source {
        SourcePlan::Scan { spaces: None, .. } => Vec::new(),
        SourcePlan::Scan { action, spaces, items, bytes } => {
            let area = Area { spaces: whole(*spaces), items: whole(*items) };
            let index = usize::from(*action);
            let touch =
                Touch { work, job, index, areas: vec![area], size: bytes, choice: None, existing: None };
            job.actions.get(index).map(|_| touch).into_iter().collect()
        }
        SourcePlan::Mix { choices, pool } => {
            let touch = |choice: &'_ Choice| {
                let pooled = pool.as_ref().filter(|_| choice.effect != Effect::Free);
                let areas = match pooled {
                    Some(pool) => vec![Area { spaces: pool.spaces, items: pool.items }],
                    None => world::areas(&choice.spaces, &choice.items),
                };
                let needs = |choice: &Choice| matches!(choice.effect, Effect::Uses | Effect::Removes);
                // What the pool makes itself it knows; only what it takes for granted must be there.
                let existing = pooled
                    .filter(|_| needs(choice))
                    .map(|pool| Area { spaces: pool.spaces, items: pool.existing.unwrap_or((1, 0)) });
                (usize::from(choice.action), areas, existing)
            };
            let known = choices.iter().filter(|choice| usize::from(choice.action) < job.actions.len());
            known
                .map(|choice| {
                    let (index, areas, existing) = touch(choice);
                    Touch { work, job, index, areas, size: &choice.bytes, choice: Some(choice), existing }
                })
                .collect()
        }
    }
}

/// Bytes of this many different objects of the sizes that an action writes.
fn written_bytes(touch: &Touch<'_>, count: Amount) -> Amount {
    let unit = touch.size.unit;
    let bytes = |number: u64| number.saturating_mul(touch.size.pick.bounds().1.saturating_mul(unit));
    match (count, touch.verb()) {
        // The sizes are those of the files.
        (_, Verb::PutFile { .. }) => Amount::Open,
        (Amount::Exactly(number), _) if matches!(touch.size.pick, Pick::Constant(_)) => {
            Amount::Exactly(bytes(number))
        }
        (Amount::Exactly(number) | Amount::UpTo(number), _) => Amount::UpTo(bytes(number)),
        (Amount::Open, _) => Amount::Open,
    }
}

/// Whether a work's objects are kept in this process's memory.
fn keeps_in_memory(work: &Work) -> bool {
    let target = Job::of(work).map(|job| &job.target);
    matches!(target, Some(Target::Embedded(embedded)) if embedded.place == Keeps::Memory)
}

/// Whether an action writes or checks content of this form.
fn has_form(touch: &Touch<'_>, form: impl Fn(Form) -> bool) -> bool {
    form(touch.job.actions[touch.index].content.form)
}
