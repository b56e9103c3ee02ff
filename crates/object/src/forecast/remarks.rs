//! What about works on objects may surprise their author: each remark says what will happen, and how to avoid it.

use super::touch::Touch;
use super::world::{Area, Place, World};
use crate::job::{Emptied, Form, Target, Verb};
use std::collections::BTreeMap;
use tidemark_load::source::{Choice, Division, Effect, SourcePlan};
use tidemark_measure::pick::Pick;
use tidemark_measure::units;
use tidemark_plan::forecast::Remarks;

/// Bytes of the guard that ends COSBench's hashed content.
const GUARD: u64 = 40;

/// Bytes of the stamp that opens every 4 KiB of seeded content ([`crate::content`]).
const STAMP: u64 = 64;

/// The smallest part but the last that S3 takes in a multipart upload, bytes.
const SMALLEST_PART: u64 = 5 << 20;

/// Remarks on an action that need no look at what is stored.
pub(super) fn of_action(touch: &Touch<'_>, stage: &str, remarks: &mut Remarks) {
    let label = touch.work.labels.get(touch.index).map_or("operation", |label| label.label.as_str());
    let content = touch.job.actions[touch.index].content;
    let writes = touch.writes() && !matches!(touch.verb(), Verb::PutFile { .. });
    let least = touch.size.pick.bounds().0.saturating_mul(touch.size.unit);
    if writes && least <= GUARD && touch.has_form(|form| form == Form::Hashed) {
        let text = format!(
            "the {label} of stage {stage} writes objects of {least} B: hashed content of up to {GUARD} B carries no \
             hash, and is verified only when it is read with the seed that it was written with"
        );
        remarks.add("too-small-for-hash", text);
    }
    if writes && content.verify && least < STAMP && touch.has_form(|form| matches!(form, Form::Seeded { .. }))
    {
        let text = format!(
            "the {label} of stage {stage} writes objects of {least} B: objects below {STAMP} B have no room \
                            for a stamp, so stale content in them is not detected"
        );
        remarks.add("too-small-for-stamp", text);
    }
    let most = touch.size.pick.bounds().1.saturating_mul(touch.size.unit);
    if let Verb::PutMultipart { part_bytes, .. } = touch.verb()
        && *part_bytes < SMALLEST_PART.min(most)
        && matches!(touch.job.target, Target::S3(_) | Target::Embedded(_))
    {
        let text = format!(
            "the {label} of stage {stage} uploads parts of {}: S3 rejects parts below 5 MiB, except the last",
            units::binary_bytes(*part_bytes)
        );
        remarks.add("small-parts", text);
    }
    of_choice(touch, label, stage, remarks);
}

/// Remarks on how a mix picks.
fn of_choice(touch: &Touch<'_>, label: &str, stage: &str, remarks: &mut Remarks) {
    let (Some(choice), SourcePlan::Mix { pool, .. }) = (touch.choice, &touch.work.load.source) else {
        return;
    };
    if pool.is_some() && touch.existing.is_some() {
        return;
    }
    let in_order = |pick: &Pick| matches!(pick, Pick::Sequence { .. } | Pick::Shared { .. });
    let (spaces, items) = (choice.spaces.count(), choice.items.count());
    if in_order(&choice.spaces) && in_order(&choice.items) && choice.division == Division::None {
        let pairs = least_common_multiple(spaces, items);
        let all = spaces.saturating_mul(items);
        if pairs < all {
            let text = format!(
                "the {label} of stage {stage} steps through containers and objects together: it uses {} of the {} pairs \
                 (the least common multiple); select one of the two at random, as in u(1,{items})",
                units::count(pairs),
                units::count(all)
            );
            remarks.add("pairs-in-step", text);
        }
    }
    let divided = match choice.division {
        Division::None => None,
        Division::Spaces => Some((&choice.spaces, spaces)),
        Division::Items => Some((&choice.items, items)),
    };
    let workers = u64::from(touch.work.load.workers);
    if let Some((pick, count)) = divided
        && count < workers
        && !matches!(pick, Pick::Constant(_) | Pick::Shared { .. } | Pick::Weighted(_))
    {
        let text = format!(
            "the {label} of stage {stage} divides {} numbers among {} workers: {} of them have none",
            units::count(count),
            units::count(workers),
            units::count(workers - count)
        );
        remarks.add("idle-workers", text);
    }
    if matches!(touch.verb(), Verb::Put { if_absent: true, .. }) && pool.is_none() {
        let text = format!(
            "the {label} of stage {stage} writes only objects that do not exist: at most {} writes can succeed, all others \
             fail with 412",
            units::count(touch.count())
        );
        remarks.add("conditional-writes", text);
    }
}

/// Remarks on deletes in a mix without a pool.
pub(super) fn deletes_beside_reads(touches: &[Touch<'_>], stage: &str, remarks: &mut Remarks) {
    let deletes =
        |touch: &&Touch<'_>| touch.deletes() && !touch.is_scan() && !pooled(touch) && touch.place().is_some();
    if touches.iter().any(|touch| deletes(&touch)) {
        let text = format!(
            "stage {stage} deletes objects at random without a `pool`: reads and deletes of deleted objects fail with 404; \
             a pool uses only objects that exist"
        );
        remarks.add("deletes-without-pool", text);
    }
}

/// Remarks on objects that several workers write while others verify them.
pub(super) fn writes_beside_verified_reads(touches: &[Touch<'_>], stage: &str, remarks: &mut Remarks) {
    let verified = |touch: &&Touch<'_>| {
        let reads = matches!(touch.verb(), Verb::Get | Verb::GetRange { .. });
        reads && touch.job.actions[touch.index].content.verify
    };
    let shared = |touch: &&Touch<'_>| {
        let own = |choice: &Choice| {
            choice.division == Division::Items || choice.effect != Effect::Free && pooled(touch)
        };
        touch.writes() && touch.work.load.workers > 1 && !touch.choice.is_some_and(own)
    };
    for write in touches.iter().filter(shared) {
        let meets = |read: &Touch<'_>| {
            let overlap = |area: &Area| write.areas.iter().any(|other| area.overlap(other).is_some());
            read.place().is_some() && read.place() == write.place() && read.areas.iter().any(overlap)
        };
        if touches.iter().filter(verified).any(meets) {
            let label = write.work.labels.get(write.index).map_or("write", |label| label.label.as_str());
            let text = format!(
                "the {label} of stage {stage} overwrites objects while other workers read and verify them: a \
                 read during a write may find either version; `division: objects` or a `pool` gives each worker its own"
            );
            remarks.add("overlapping-writes", text);
        }
    }
}

fn pooled(touch: &Touch<'_>) -> bool {
    matches!(&touch.work.load.source, SourcePlan::Mix { pool: Some(_), .. })
}

/// Remarks on containers that are deleted while they hold objects.
pub(super) fn disposes(
    touch: &Touch<'_>,
    objects: &World,
    place: &Place,
    stage: &str,
    remarks: &mut Remarks,
) {
    if matches!(touch.verb(), Verb::DeleteContainer { empty: Emptied::Always }) {
        return;
    }
    let full = objects.in_containers(place).find(|(_, stored)| {
        let area = stored.area.spaces;
        touch.areas.iter().any(|touched| touched.spaces.0 <= area.1 && area.0 <= touched.spaces.1)
    });
    if let Some((other, stored)) = full {
        let text = format!(
            "stage {stage} deletes containers that still hold {}: they stay, and that is a failure; widen the \
             cleanup, or let the run empty them by `--allow-destroy`",
            other.objects_named(stored.area.items)
        );
        remarks.add("containers-not-empty", text);
    }
}

/// What stays behind of objects that are called alike.
struct Left {
    count: u64,
    bytes: u64,
    /// Whether these are all there, and as large as that.
    exact: bool,
    first: Area,
}

/// Remarks on what stays behind.
pub(super) fn left_over(objects: &World, containers: &World, remarks: &mut Remarks) {
    let mut left: BTreeMap<&Place, Left> = BTreeMap::new();
    for (place, stored) in objects.all() {
        let left = left.entry(place).or_insert(Left { count: 0, bytes: 0, exact: true, first: stored.area });
        left.count = left.count.saturating_add(stored.area.count());
        left.bytes = left.bytes.saturating_add(stored.area.count().saturating_mul(stored.most));
        left.exact &= stored.certain && stored.least == stored.most;
    }
    for (place, Left { count, bytes, exact, first }) in left {
        let text = format!(
            "{}{} objects ({}) remain, such as {} in {}: no later stage deletes them",
            if exact { "" } else { "up to " },
            units::count(count),
            units::bytes(bytes),
            place.objects_named(first.items),
            place.containers_named(first.spaces)
        );
        remarks.add("objects-left", text);
    }
    for (place, stored) in containers.all() {
        let text =
            format!("{} remain: no later stage deletes them", place.containers_named(stored.area.spaces));
        remarks.add("containers-left", text);
    }
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).saturating_mul(b)
}
