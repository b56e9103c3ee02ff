//! What one action of a work is done to.

use super::world::{self, Area, Place, Stored};
use crate::job::{Form, Job, Naming, Verb};
use tidemark_load::source::{Choice, Effect, Size, SourcePlan};
use tidemark_measure::pick::Pick;
use tidemark_plan::forecast::{self, Amount, Does};
use tidemark_plan::plan::Work;

const fn does(code: &'static str, moves_bytes: bool) -> Does {
    Does { code, counts: "", moves_bytes }
}

/// What is done to a part of each object.
const fn of_objects(code: &'static str, moves_bytes: bool) -> Does {
    Does { code, counts: "object", moves_bytes }
}

pub(super) const DELETES_CONTAINERS: Does = does("deletes_containers", false);

/// One action with what it is done to.
pub(super) struct Touch<'a> {
    pub(super) work: &'a Work,
    pub(super) job: &'a Job,
    pub(super) index: usize,
    pub(super) areas: Vec<Area>,
    pub(super) size: &'a Size,
    /// The choice of a mix; a scan has none.
    pub(super) choice: Option<&'a Choice>,
    /// With a pool: the objects that must be there.
    pub(super) existing: Option<Area>,
}

impl Touch<'_> {
    pub(super) fn verb(&self) -> &Verb {
        &self.job.actions[self.index].verb
    }

    pub(super) fn naming(&self) -> &Naming {
        &self.job.actions[self.index].naming
    }

    pub(super) fn place(&self) -> Option<Place> {
        Place::of(self.job, self.naming())
    }

    /// All that it may touch, each object counted once.
    pub(super) fn count(&self) -> u64 {
        self.areas.iter().map(Area::count).fold(0, u64::saturating_add)
    }

    pub(super) fn is_scan(&self) -> bool {
        self.choice.is_none()
    }

    /// How often it is done.
    pub(super) fn operations(&self) -> Amount {
        forecast::operations_of(&self.work.load, self.index as u16)
    }

    pub(super) fn does(&self) -> Does {
        match self.verb() {
            Verb::CreateContainer { .. } => does("creates_containers", false),
            Verb::DeleteContainer { .. } => DELETES_CONTAINERS,
            Verb::List { .. } => does("lists_containers", false),
            Verb::Put { .. } | Verb::PutMultipart { .. } | Verb::PutFile { .. } => {
                does("writes_objects", true)
            }
            Verb::Delete | Verb::Clear { .. } | Verb::DeleteMany { .. } => does("deletes_objects", true),
            Verb::WriteLocal { .. } => does("writes_files", true),
            Verb::Get => does("reads_objects", true),
            Verb::GetRange { .. } => of_objects("reads_ranges", true),
            Verb::Head => of_objects("reads_headers", false),
            Verb::Copy => does("copies_objects", false),
            Verb::PutTags => does("tags_objects", false),
            Verb::PutRetention { .. } => does("locks_objects", false),
            Verb::GetRetention => of_objects("reads_locks", false),
            Verb::GetTags => of_objects("reads_tags", false),
            Verb::Restore { .. } => does("restores_objects", false),
        }
    }

    /// Whether it writes the objects of its numbers.
    pub(super) fn writes(&self) -> bool {
        matches!(self.verb(), Verb::Put { .. } | Verb::PutMultipart { .. } | Verb::PutFile { .. })
    }

    /// Whether it deletes objects.
    pub(super) fn deletes(&self) -> bool {
        matches!(self.verb(), Verb::Delete | Verb::Clear { .. } | Verb::DeleteMany { .. })
    }

    /// Whether it fails on objects that are not there.
    pub(super) fn needs_objects(&self) -> bool {
        self.deletes()
            || matches!(
                self.verb(),
                Verb::Get
                    | Verb::GetRange { .. }
                    | Verb::Head
                    | Verb::Copy
                    | Verb::PutTags
                    | Verb::PutRetention { .. }
                    | Verb::GetRetention
                    | Verb::GetTags
                    | Verb::Restore { .. }
            )
    }

    /// Whether it writes or checks content of this form.
    pub(super) fn has_form(&self, form: impl Fn(Form) -> bool) -> bool {
        form(self.job.actions[self.index].content.form)
    }

    /// Whether it is done to all that it may touch: it goes through everything once, or in order and often enough.
    pub(super) fn is_certain(&self) -> bool {
        let Some(choice) = self.choice else { return true };
        let SourcePlan::Mix { pool: None, .. } = &self.work.load.source else { return false };
        // Workers that take turns, and workers with slices of their own, share numbers as they share operations.
        let in_order = |pick: &Pick| matches!(pick, Pick::Sequence { .. } | Pick::Shared { .. });
        let one = |pick: &Pick| pick.count() == 1;
        let everything = in_order(&choice.items) && one(&choice.spaces)
            || in_order(&choice.spaces) && one(&choice.items)
            || one(&choice.spaces) && one(&choice.items);
        everything && matches!(self.operations(), Amount::Exactly(number) if number >= self.count())
    }

    /// What it would store in an area.
    pub(super) fn stores(&self, area: Area) -> Stored {
        let ((least, most), mean) = self.sizes();
        Stored { area, least, most, mean, certain: self.is_certain() }
    }

    /// The bytes of an operation, as the document gives them: the least, the most and the mean.
    pub(super) fn sizes(&self) -> ((u64, u64), f64) {
        let unit = self.size.unit;
        let (least, most) = self.size.pick.bounds();
        let (least, most) = (least.saturating_mul(unit), most.saturating_mul(unit));
        let mean = (self.size.pick.mean() * unit as f64).clamp(least as f64, most as f64);
        ((least, most), mean)
    }

    /// The names of all that it may touch.
    pub(super) fn names(&self) -> String {
        let (Some(first), Some(last)) = (self.areas.first(), self.areas.last()) else { return String::new() };
        let naming = self.naming();
        let containers = world::containers_named(naming, (first.spaces.0, last.spaces.1));
        match self.verb() {
            Verb::CreateContainer { .. }
            | Verb::DeleteContainer { .. }
            | Verb::List { by_object: false, .. } => containers,
            Verb::PutFile { .. } => format!("{containers}, as the files are called"),
            _ => {
                let least = self.areas.iter().map(|area| area.items.0).min().unwrap_or(0);
                let most = self.areas.iter().map(|area| area.items.1).max().unwrap_or(0);
                format!("{containers}: {}", world::objects_named(naming, (least, most)))
            }
        }
    }
}

/// The actions of a work with what they are done to.
pub(super) fn touches(work: &Work) -> Vec<Touch<'_>> {
    let Some(job) = Job::of(work) else { return Vec::new() };
    let whole = |range: Option<(u64, u64)>| range.unwrap_or((0, 0));
    match &work.load.source {
        SourcePlan::Scan { spaces: None, .. } | SourcePlan::Rounds { .. } => Vec::new(),
        SourcePlan::Scan { action, spaces, items, bytes } => {
            let area = Area { spaces: whole(*spaces), items: whole(*items) };
            let index = usize::from(*action);
            let touch =
                Touch { work, job, index, areas: vec![area], size: bytes, choice: None, existing: None };
            job.actions.get(index).map(|_| touch).into_iter().collect()
        }
        SourcePlan::Mix { choices, pool, .. } => {
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
                    let (index, mut areas, existing) = touch(choice);
                    // A listing that is yet to be made names no more than its limit.
                    let there = job.actions[index].naming.existing.as_ref();
                    if let Some(listing) = there.and_then(|existing| existing.listing.as_ref()) {
                        areas.iter_mut().for_each(|area| area.items.1 = area.items.1.min(listing.limit));
                    }
                    if let Verb::DeleteMany { count } = job.actions[index].verb {
                        let more = u64::from(count.saturating_sub(1));
                        areas.iter_mut().for_each(|area| area.items.1 = area.items.1.saturating_add(more));
                    }
                    Touch { work, job, index, areas, size: &choice.bytes, choice: Some(choice), existing }
                })
                .collect()
        }
    }
}
