//! What a plan will do and need, and what about it may surprise, before anything runs.
//!
//! It goes through the stages in order, with a map of what is stored where ([`world`]). Counts are exact where
//! the plan fixes them and upper bounds where chance or time decide. Pure: plan in, [`Forecast`] out.

mod quantity;
mod surprises;
mod volumes;
mod world;

pub use quantity::{Amount, Time};

use crate::object::{Form, Job, Place as Keeps, Target, Verb};
use crate::plan::{Plan, Stage as PlanStage, Work as PlanWork, WorkKind};
use serde::Serialize;
use surprises::Remarks;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Effect, Size, SourcePlan};
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_measure::record::{Cell, Note};
use tidemark_measure::units;
use volumes::Volumes;
use world::{Area, Place, Stored, World};

/// Memory of the process whatever it does: program, threads, buffers of content; bytes.
const BASE_MEMORY: u64 = 48 << 20;

/// Memory of one worker: its connection's buffers, its sources, its slot in the loop; bytes.
const WORKER_MEMORY: u64 = 24 << 10;

/// Memory of one action on one thread: five histograms at three significant digits, twice (now and merged); bytes.
const ACTION_MEMORY: u64 = 2 << 20;

/// What `tidemark check` shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The workload's name.
    pub name: String,
    /// Its stages.
    pub stages: Vec<Stage>,
    /// How long all stages take together.
    pub time: Time,
    /// The most workers at once.
    pub workers: u64,
    /// The most connections at once.
    pub connections: u64,
    /// Memory of the load generator at its peak, bytes: a rough estimate. With objects kept in memory by the
    /// embedded server, these are included.
    pub memory_bytes: u64,
    /// The most that is stored at the end of any stage, bytes.
    pub stored_bytes: u64,
    /// Capacity of all files, devices and images that the plan names, bytes.
    pub volume_bytes: u64,
    /// What may surprise.
    pub notes: Vec<Note>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// How long it takes, its pause included.
    pub time: Time,
    /// Its works.
    pub works: Vec<Work>,
    /// Which point of a sweep it is, if it is part of one.
    pub cell: Option<Cell>,
}

/// One work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// `init`, `prepare`, `normal`, `cleanup`, `dispose`.
    pub kind: String,
    /// Logical clients.
    pub workers: u32,
    /// Operations of each of them in flight at once.
    pub depth: u32,
    /// How long it takes.
    pub time: Time,
    /// What its operations do.
    pub actions: Vec<Action>,
}

/// One operation of a work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// Its name in reports.
    pub label: String,
    /// What it does.
    pub does: Does,
    /// How often it is done.
    pub operations: Amount,
    /// How many different containers, objects or volumes it touches.
    pub count: Amount,
    /// Bytes of these: written, read or deleted. Not of containers; of volumes, what is moved.
    pub bytes: Amount,
}

/// What an operation does to what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Makes containers.
    CreatesContainers,
    /// Deletes containers.
    DeletesContainers,
    /// Reads containers: lists them.
    ListsContainers,
    /// Writes objects.
    WritesObjects,
    /// Reads objects or what belongs to them.
    ReadsObjects,
    /// Deletes objects.
    DeletesObjects,
    /// Writes files on this machine.
    WritesFiles,
    /// Reads volumes.
    ReadsBlocks,
    /// Writes volumes.
    WritesBlocks,
    /// Gives ranges of volumes back.
    TrimsBlocks,
    /// Syncs volumes.
    SyncsVolumes,
    /// Removes volumes.
    RemovesVolumes,
}

/// Forecasts a plan.
pub fn forecast(plan: &Plan) -> Forecast {
    let mut look = Look::default();
    let (mut workers, mut connections, mut memory, mut stored) = (0, 0, BASE_MEMORY, 0);
    let mut time = Time::default();
    let mut stages = Vec::new();
    let in_memory = keeps_in_memory(plan);
    for stage in &plan.stages {
        let forecast = look.stage(stage);
        let sum = |of: fn(&PlanWork) -> u64| stage.works.iter().map(of).fold(0, u64::saturating_add);
        workers = workers.max(sum(|work| u64::from(work.load.workers)));
        connections = connections.max(sum(connections_of));
        stored = stored.max(look.objects.bytes());
        let kept = if in_memory { look.objects.bytes() } else { 0 };
        memory = memory.max(BASE_MEMORY.saturating_add(sum(memory_of)).saturating_add(kept));
        time.then(&forecast.time);
        stages.push(forecast);
    }
    surprises::of_pins(plan, &mut look.remarks);
    look.volumes.left_over(&mut look.remarks);
    if look.objects.lost() || look.containers.lost() {
        look.remarks.add_first(
            "too-complex",
            "the plan has too many parts to track stored objects: remarks may be missing".into(),
        );
    } else {
        surprises::left_over(&look.objects, &look.containers, &mut look.remarks);
    }
    Forecast {
        name: plan.name.clone(),
        stages,
        time,
        workers,
        connections,
        memory_bytes: memory,
        stored_bytes: stored,
        volume_bytes: volumes::capacity(plan.stages.iter()),
        notes: look.remarks.into_notes(),
    }
}

/// The way through a plan: what is stored so far, and what was remarked on.
#[derive(Default)]
struct Look {
    objects: World,
    containers: World,
    volumes: Volumes,
    remarks: Remarks,
}

/// One action with what it is done to.
struct Touch<'a> {
    work: &'a PlanWork,
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
            Verb::CreateContainer => Does::CreatesContainers,
            Verb::DeleteContainer { .. } => Does::DeletesContainers,
            Verb::List { .. } => Does::ListsContainers,
            Verb::Put { .. } | Verb::PutMultipart { .. } | Verb::PutFile { .. } => Does::WritesObjects,
            Verb::Delete | Verb::Clear | Verb::DeleteMany { .. } => Does::DeletesObjects,
            Verb::WriteLocal { .. } => Does::WritesFiles,
            Verb::Get
            | Verb::GetRange { .. }
            | Verb::Head
            | Verb::Copy
            | Verb::PutTags
            | Verb::GetTags
            | Verb::Restore { .. } => Does::ReadsObjects,
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

impl Look {
    fn stage(&mut self, stage: &PlanStage) -> Stage {
        let touches: Vec<Touch<'_>> = stage.works.iter().flat_map(touches).collect();
        let works = stage.works.iter().map(|work| self.work(work)).collect::<Vec<_>>();
        let beside = written(&touches);
        for touch in &touches {
            surprises::of_action(touch, &stage.name, &mut self.remarks);
            if !self.objects.lost() && !self.containers.lost() {
                self.check(touch, &beside, &stage.name);
            }
        }
        for work in &stage.works {
            surprises::of_work(work, &stage.name, &mut self.remarks);
        }
        surprises::deletes_beside_reads(&touches, &stage.name, &mut self.remarks);
        surprises::writes_beside_verified_reads(&touches, &stage.name, &mut self.remarks);
        touches.iter().for_each(|touch| self.happen(touch));
        self.volumes.stage(stage, &mut self.remarks);
        let mut time = Time::default();
        works.iter().for_each(|work| time.beside(&work.time));
        time.then(&Time { planned_ns: stage.pause_ns, ..Time::default() });
        Stage { name: stage.name.clone(), time, works, cell: stage.cell.clone() }
    }

    fn work(&self, work: &PlanWork) -> Work {
        let actions = match work.engine.block() {
            Some(job) => volumes::actions(work, job),
            None => touches(work).iter().map(|touch| self.action(touch)).collect(),
        };
        Work {
            name: work.name.clone(),
            kind: work.kind.name().to_owned(),
            workers: work.load.workers,
            depth: work.load.depth.max(1),
            time: time_of(work),
            actions,
        }
    }

    fn action(&self, touch: &Touch<'_>) -> Action {
        let operations = operations(&touch.work.load);
        let all = touch.count();
        let count = match operations {
            Amount::Exactly(number) if touch.is_scan() => Amount::Exactly(number),
            other => other.at_most(all),
        };
        let does = touch.does();
        let bytes = match does {
            Does::WritesObjects | Does::WritesFiles => written_bytes(touch, count),
            Does::ReadsObjects | Does::DeletesObjects => self.found(touch, count),
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
    fn check(&mut self, touch: &Touch<'_>, beside: &World, stage: &str) {
        let Some(place) = touch.place() else { return };
        match touch.does() {
            Does::ReadsObjects | Does::DeletesObjects if touch.existing.is_some() => {
                self.check_pool(touch, &place, stage);
            }
            Does::ReadsObjects => self.check_read(touch, &place, beside, stage),
            Does::WritesObjects | Does::ListsContainers => {}
            Does::DeletesContainers => {
                return surprises::disposes(touch, &self.objects, &place, stage, &mut self.remarks);
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
                self.remarks.add("containers-not-made", text);
            }
        }
    }

    /// Remarks on objects that a pool expects and that may not exist.
    fn check_pool(&mut self, touch: &Touch<'_>, place: &Place, stage: &str) {
        let Some(existing) = touch.existing else { return };
        if let Some(gap) = self.objects.missing(place, &existing, |old| old.certain).first() {
            let (objects, containers) = (place.objects_named(gap.items), place.containers_named(gap.spaces));
            let text = format!(
                "the pool of stage {stage} expects {objects} in {containers}, which no earlier stage is certain to \
                 write: unless they exist, operations on them fail with 404"
            );
            self.remarks.add("pool-of-unwritten", text);
        }
    }

    /// Remarks on objects that a read may select and that may not exist.
    fn check_read(&mut self, touch: &Touch<'_>, place: &Place, beside: &World, stage: &str) {
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
            self.remarks.add(topic, text);
        }
    }

    /// Changes the world as an action does.
    fn happen(&mut self, touch: &Touch<'_>) {
        let Some(place) = touch.place() else { return };
        let containers = place.containers();
        for area in &touch.areas {
            let spaces = Area { spaces: area.spaces, items: (0, 0) };
            match touch.does() {
                Does::CreatesContainers => {
                    let stored =
                        Stored { area: spaces, least: 0, most: 0, mean: 0.0, certain: touch.is_scan() };
                    self.containers.put(&containers, stored);
                }
                Does::DeletesContainers => {
                    if matches!(touch.verb(), Verb::DeleteContainer { empty: true }) && touch.is_scan() {
                        self.objects.empty(&containers, area.spaces);
                    }
                    self.containers.remove(&containers, &spaces, touch.is_scan());
                }
                Does::WritesObjects => self.objects.put(&place, touch.stores(*area)),
                Does::DeletesObjects => self.objects.remove(&place, area, touch.is_scan()),
                _ => {}
            }
        }
    }
}

/// What the actions of a stage write.
fn written(touches: &[Touch<'_>]) -> World {
    let mut world = World::default();
    for writer in touches.iter().filter(|touch| touch.does() == Does::WritesObjects) {
        if let Some(place) = writer.place() {
            writer.areas.iter().for_each(|area| world.put(&place, writer.stores(*area)));
        }
    }
    world
}

/// The actions of a work with what they are done to.
fn touches(work: &PlanWork) -> Vec<Touch<'_>> {
    let Some(job) = work.engine.object() else { return Vec::new() };
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
                // The pool tracks what it creates itself; only what it expects must exist.
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

/// How many operations a work has.
fn operations(load: &Load) -> Amount {
    if let Some(number) = load.source.operations() {
        return Amount::Exactly(number);
    }
    let alone = |choices: &[Choice]| matches!(choices, [only] if only.follow.is_none());
    let only = matches!(&load.source, SourcePlan::Mix { choices, pool: None } if alone(choices));
    let unmeasured = load.stop.ramp_up_ns + load.stop.warm_up_ns + load.stop.ramp_down_ns;
    match (load.stop.operations, unmeasured) {
        (Some(number), 0) if only && load.stop.window_ns.is_none() && load.stop.bytes.is_none() => {
            Amount::Exactly(number)
        }
        (Some(number), 0) => Amount::UpTo(number),
        _ => Amount::Open,
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

fn time_of(work: &PlanWork) -> Time {
    let stop = &work.load.stop;
    let around = stop.ramp_up_ns.saturating_add(stop.warm_up_ns).saturating_add(stop.ramp_down_ns);
    let mut until = Vec::new();
    until.extend(stop.operations.map(|number| format!("{} operations are done", units::count(number))));
    until.extend(stop.bytes.map(|number| format!("{} are moved", units::bytes(number))));
    if let (Some(_), Some(job)) = (work.load.source.operations(), work.engine.block()) {
        until.push(volumes::until(work, job));
    } else if let Some(number) = work.load.source.operations() {
        let (what, done) = match work.kind {
            WorkKind::Init => ("containers", "created"),
            WorkKind::Dispose => ("containers", "deleted"),
            WorkKind::Cleanup => ("objects", "deleted"),
            WorkKind::Prepare | WorkKind::Normal => ("objects", "written"),
        };
        until.push(format!("all {} {what} are {done}", units::count(number)));
    }
    match stop.window_ns {
        Some(window) => {
            // Rounds may be used up, and mostly are not.
            let rounds =
                stop.steady.map_or(0, |steady| steady.round_ns.saturating_mul(u64::from(steady.most_rounds)));
            Time {
                planned_ns: around.saturating_add(rounds).saturating_add(window),
                at_most: !until.is_empty() || rounds > 0,
                until: Vec::new(),
            }
        }
        None if until.len() > 1 => {
            Time { planned_ns: around, until: vec![until.join(" or ")], at_most: false }
        }
        None => Time { planned_ns: around, until, at_most: false },
    }
}

fn connections_of(work: &PlanWork) -> u64 {
    let Some(job) = work.engine.object() else { return 0 };
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

fn memory_of(work: &PlanWork) -> u64 {
    let workers = u64::from(work.load.workers).saturating_mul(WORKER_MEMORY);
    let actions = u64::from(work.load.actions).saturating_mul(ACTION_MEMORY);
    let pool = match &work.load.source {
        // A pool keeps 8 bytes for each object that it tracks, in a list that grows by doubling.
        SourcePlan::Mix { pool: Some(pool), .. } => {
            world::length(pool.spaces).saturating_mul(world::length(pool.items)).saturating_mul(16)
        }
        _ => 0,
    };
    let blocks = work.engine.block().map_or(0, |job| volumes::memory(work, job));
    workers.saturating_add(actions).saturating_add(pool).saturating_add(blocks)
}

fn keeps_in_memory(plan: &Plan) -> bool {
    plan.stages.iter().flat_map(|stage| &stage.works).any(|work| {
        let job = work.engine.object();
        job.is_some_and(
            |job| matches!(&job.target, Target::Embedded(embedded) if embedded.place == Keeps::Memory),
        )
    })
}

/// Whether an action writes or checks content of this form.
fn has_form(touch: &Touch<'_>, form: impl Fn(Form) -> bool) -> bool {
    form(touch.job.actions[touch.index].content.form)
}

/// Whether a work's operations are due at fixed times, and the highest rate if so.
fn highest_rate(work: &PlanWork) -> Option<f64> {
    match &work.load.pacing {
        Pacing::Open { rate, .. } => Some(rate.points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)),
        Pacing::Closed { .. } => None,
    }
}

#[cfg(test)]
mod tests;
