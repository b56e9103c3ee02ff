//! What is stored where in the course of a plan: rectangles of container numbers by object numbers.

use crate::job::{Job, Naming, Target};
use std::cell::Cell;
use std::collections::BTreeMap;
use tidemark_measure::pick::Pick;
use tidemark_plan::forecast::length;
use tidemark_plan::selector::OPEN_END;

/// Rectangles beyond this are no longer followed: a plan of that many parts is not forecast in detail.
const MOST_AREAS: usize = 1_000;

/// Comparisons of areas beyond this are not made: a document must not keep `check` busy.
const MOST_EFFORT: usize = 2_000_000;

/// Weighted selectors of more ranges than this are treated as one range.
const MOST_RANGES: usize = 64;

/// A range of numbers, both ends included.
pub(super) type Range = (u64, u64);

/// Objects: some containers by some numbers in each. For containers themselves, `items` is (0, 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) spaces: Range,
    pub(super) items: Range,
}

impl Area {
    /// How many objects it holds.
    pub(super) fn count(&self) -> u64 {
        length(self.spaces).saturating_mul(length(self.items))
    }

    /// What it has in common with another.
    pub(super) fn overlap(&self, other: &Area) -> Option<Area> {
        let both = |one: Range, other: Range| {
            let (low, high) = (one.0.max(other.0), one.1.min(other.1));
            (low <= high).then_some((low, high))
        };
        Some(Area { spaces: both(self.spaces, other.spaces)?, items: both(self.items, other.items)? })
    }

    /// What is left of it outside `other`: at most four pieces.
    fn without(&self, other: &Area) -> Vec<Area> {
        let Some(hole) = self.overlap(other) else { return vec![*self] };
        let mut left = Vec::new();
        let mut keep = |spaces: Option<Range>, items: Option<Range>| {
            left.extend(spaces.zip(items).map(|(spaces, items)| Area { spaces, items }));
        };
        keep(below(self.spaces, hole.spaces.0), Some(self.items));
        keep(above(self.spaces, hole.spaces.1), Some(self.items));
        keep(Some(hole.spaces), below(self.items, hole.items.0));
        keep(Some(hole.spaces), above(self.items, hole.items.1));
        left
    }
}

fn below(range: Range, bound: u64) -> Option<Range> {
    (range.0 < bound).then(|| (range.0, bound - 1))
}

fn above(range: Range, bound: u64) -> Option<Range> {
    (range.1 > bound).then(|| (bound + 1, range.1))
}

/// The areas that two selectors span.
pub(super) fn areas(spaces: &Pick, items: &Pick) -> Vec<Area> {
    let items = ranges(items);
    ranges(spaces)
        .into_iter()
        .flat_map(|spaces| items.iter().map(move |items| Area { spaces, items: *items }))
        .collect()
}

fn ranges(pick: &Pick) -> Vec<Range> {
    match pick {
        Pick::Weighted(buckets) if buckets.len() <= MOST_RANGES => {
            let mut ranges: Vec<Range> = buckets.iter().map(|bucket| (bucket.low, bucket.high)).collect();
            ranges.sort_unstable();
            // Overlapping ranges would be counted twice.
            ranges.into_iter().fold(Vec::new(), |mut merged: Vec<Range>, range| {
                match merged.last_mut() {
                    Some(last) if range.0 <= last.1.saturating_add(1) => last.1 = last.1.max(range.1),
                    _ => merged.push(range),
                }
                merged
            })
        }
        _ => vec![pick.bounds()],
    }
}

/// Objects that are there, or may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stored {
    /// Which.
    pub(super) area: Area,
    /// Bytes of the smallest of them.
    pub(super) least: u64,
    /// Bytes of the largest.
    pub(super) most: u64,
    /// The mean.
    pub(super) mean: f64,
    /// Whether all of them are there: a scan made them, and nothing deletes some.
    pub(super) certain: bool,
}

/// Which objects a name belongs to: the storage, and how containers and objects are called there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    storage: String,
    /// The whole name of the only container.
    only: Option<String>,
    names: [String; 4],
}

impl Place {
    /// The place of objects; `None` for targets that store nothing.
    pub(super) fn of(job: &Job, naming: &Naming) -> Option<Self> {
        let storage = match &job.target {
            Target::S3(s3) => s3.http.endpoints.join(" "),
            Target::Swift(swift) => swift.auth.address().to_owned(),
            Target::Embedded(_) => "embedded".to_owned(),
            Target::Mock(_) | Target::Nothing => return None,
        };
        if naming.existing.is_some() {
            // Nobody here writes it: there is nothing to follow.
            return None;
        }
        let Naming { container, container_prefix, container_suffix, object_prefix, object_suffix, .. } =
            naming.clone();
        let around_number = match container {
            Some(_) => [String::new(), String::new()],
            None => [container_prefix, container_suffix],
        };
        let [prefix, suffix] = around_number;
        let names = [prefix, suffix, object_prefix, object_suffix];
        Some(Self { storage, only: container, names })
    }

    /// The place of the containers that its objects are in.
    pub(super) fn containers(&self) -> Self {
        let mut own = self.clone();
        own.names[2].clear();
        own.names[3].clear();
        own
    }

    /// The place of the copies of its objects.
    pub(super) fn copies(&self) -> Self {
        let mut own = self.clone();
        own.names[3].push_str("-copy");
        own
    }

    /// Whether its objects are in the same containers as those of another.
    fn shares_containers(&self, other: &Self) -> bool {
        self.storage == other.storage && self.only == other.only && self.names[..2] == other.names[..2]
    }

    /// The name of a container, or of containers from one to another.
    pub(super) fn containers_named(&self, range: Range) -> String {
        self.only.clone().unwrap_or_else(|| span(range, [&self.names[0], &self.names[1]]))
    }

    /// The name of an object, or of objects from one to another.
    pub(super) fn objects_named(&self, range: Range) -> String {
        span(range, [&self.names[2], &self.names[3]])
    }
}

/// The name of a container, or of containers from one to another.
pub(super) fn containers_named(naming: &Naming, range: Range) -> String {
    if let Some(only) = naming.only_container() {
        return only.to_owned();
    }
    span(range, [&naming.container_prefix, &naming.container_suffix])
}

/// The name of an object, or of objects from one to another.
pub(super) fn objects_named(naming: &Naming, range: Range) -> String {
    if let Some(existing) = &naming.existing {
        if let Some(listing) = existing.listing.as_ref().filter(|_| existing.keys.is_empty()) {
            return match listing.prefix.as_str() {
                "" => "the objects that it has when the run begins".into(),
                prefix => format!("the objects that begin with {prefix} when the run begins"),
            };
        }
        let name =
            |number: u64| existing.keys.get((number as usize).wrapping_sub(1)).map_or("", String::as_str);
        return match range {
            (low, high) if low == high => name(low).to_owned(),
            (low, high) => format!("{} to {}", name(low), name(high.min(existing.keys.len() as u64))),
        };
    }
    span(range, [&naming.object_prefix, &naming.object_suffix])
}

fn span((low, high): Range, [prefix, suffix]: [&str; 2]) -> String {
    match high {
        _ if low == high => format!("{prefix}{low}{suffix}"),
        OPEN_END.. => format!("{prefix}{low}{suffix} and all that follow"),
        _ => format!("{prefix}{low}{suffix} to {prefix}{high}{suffix}"),
    }
}

/// What is stored.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    places: BTreeMap<Place, Vec<Stored>>,
    /// Comparisons of areas so far.
    effort: Cell<usize>,
}

impl World {
    /// Whether it became too much to follow; nothing is known any more.
    pub(super) fn lost(&self) -> bool {
        self.effort.get() > MOST_EFFORT
    }

    fn spend(&self, effort: usize) {
        self.effort.set(self.effort.get().saturating_add(effort));
    }

    /// Puts objects there, in the place of those of the same names. What only may be there leaves what was.
    pub(super) fn put(&mut self, place: &Place, new: Stored) {
        let stored = self.places.entry(place.clone()).or_default();
        if new.certain {
            *stored = stored.iter().flat_map(|old| pieces(old, old.area.without(&new.area))).collect();
            stored.push(new);
        } else {
            let mut fresh = vec![new.area];
            for old in std::mem::take(stored) {
                fresh = fresh.iter().flat_map(|area| area.without(&old.area)).collect();
                let (least, most) = (old.least.min(new.least), old.most.max(new.most));
                let mixed = old.area.overlap(&new.area).map(|area| Stored { area, least, most, ..old });
                stored.extend(pieces(&old, old.area.without(&new.area)));
                stored.extend(mixed);
            }
            stored.extend(pieces(&new, fresh));
        }
        self.limit();
    }

    /// Takes objects away: all of an area, or (not `certain`) any of them.
    pub(super) fn remove(&mut self, place: &Place, area: &Area, certain: bool) {
        let Some(stored) = self.places.get_mut(place) else { return };
        let part = |old: &Stored| {
            let mut kept = pieces(old, old.area.without(area));
            let gone = old.area.overlap(area).filter(|_| !certain);
            kept.extend(gone.map(|area| Stored { area, certain: false, ..*old }));
            kept
        };
        *stored = stored.iter().flat_map(part).collect();
        self.limit();
    }

    /// Takes away all objects in some containers.
    pub(super) fn empty(&mut self, containers: &Place, spaces: Range) {
        let all = Area { spaces, items: (0, u64::MAX - 1) };
        let mut inside: Vec<Place> = self.in_containers(containers).map(|(place, _)| place.clone()).collect();
        inside.dedup();
        for place in &inside {
            self.remove(place, &all, true);
        }
    }

    /// What is stored in an area.
    pub(super) fn within(&self, place: &Place, area: &Area) -> Vec<Stored> {
        let stored = self.stored(place);
        self.spend(stored.len());
        let part = |old: &Stored| old.area.overlap(area).map(|area| Stored { area, ..*old });
        stored.iter().filter_map(part).collect()
    }

    /// The parts of an area where nothing is stored that `accept` takes for there.
    pub(super) fn missing(&self, place: &Place, area: &Area, accept: impl Fn(&Stored) -> bool) -> Vec<Area> {
        let mut left = vec![*area];
        for old in self.stored(place).iter().filter(|old| accept(old)) {
            self.spend(left.len());
            if self.lost() {
                return Vec::new();
            }
            left = left.iter().flat_map(|area| area.without(&old.area)).collect();
        }
        left
    }

    fn stored(&self, place: &Place) -> &[Stored] {
        self.places.get(place).map_or(&[], Vec::as_slice)
    }

    /// Everything that is stored.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Place, &Stored)> {
        self.places.iter().flat_map(|(place, stored)| stored.iter().map(move |stored| (place, stored)))
    }

    /// What is stored in the containers of a place, whatever it is called.
    pub(super) fn in_containers(&self, place: &Place) -> impl Iterator<Item = (&Place, &Stored)> {
        // Names of objects come last in the order of places.
        let alike = self.places.range(place.containers()..);
        let alike = alike.take_while(|(other, _)| other.shares_containers(place));
        alike.flat_map(|(place, stored)| stored.iter().map(move |stored| (place, stored)))
    }

    /// Bytes of everything that may be there.
    pub(super) fn held(&self) -> Held {
        let mut held = Held::default();
        for (_, stored) in self.all() {
            let count = stored.area.count();
            held.most = held.most.saturating_add(count.saturating_mul(stored.most));
            held.mean = held.mean.saturating_add((count as f64 * stored.mean) as u64);
        }
        held
    }

    fn limit(&mut self) {
        let areas = self.places.values().map(Vec::len).sum::<usize>();
        self.spend(areas);
        if areas > MOST_AREAS {
            self.spend(MOST_EFFORT + 1);
        }
        if self.lost() {
            self.places.clear();
        }
    }
}

/// Bytes of what may be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// If every object is as large as it may be.
    pub(super) most: u64,
    /// If every object has the mean size.
    pub(super) mean: u64,
}

fn pieces(old: &Stored, areas: Vec<Area>) -> Vec<Stored> {
    areas.into_iter().map(|area| Stored { area, ..*old }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn area() -> impl Strategy<Value = Area> {
        (1u64..8, 0u64..8, 1u64..8, 0u64..8).prop_map(|(low, more, first, length)| Area {
            spaces: (low, low + more),
            items: (first, first + length),
        })
    }

    fn holds(area: &Area, space: u64, item: u64) -> bool {
        (area.spaces.0..=area.spaces.1).contains(&space) && (area.items.0..=area.items.1).contains(&item)
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_is_not_in_the_hole(one in area(), hole in area()) {
            let left = one.without(&hole);
            for space in 0..20 {
                for item in 0..20 {
                    let inside = left.iter().filter(|piece| holds(piece, space, item)).count();
                    let expected = holds(&one, space, item) && !holds(&hole, space, item);
                    prop_assert_eq!(inside, usize::from(expected));
                }
            }
        }
    }

    #[test]
    fn weighted_ranges_keep_their_gaps() {
        let bucket = |low, high| tidemark_measure::pick::Bucket { low, high, weight: 1 };
        let pick = Pick::Weighted(vec![bucket(50, 60), bucket(1, 10), bucket(5, 12)]);
        assert_eq!(ranges(&pick), [(1, 12), (50, 60)]);
    }
}
