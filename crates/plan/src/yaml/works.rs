//! The works of a stage: each stands under the key that says what it is for, and is read by the engine of its target.

use super::context::Context;
use super::scope::Scope;
use super::timing::{DRAIN, GIVE_UP};
use crate::engine::{ReadWork, WorkPlace};
use crate::plan::WorkKind;
use tidemark_keys::kinds::{Share, Text};
use tidemark_keys::shapes::Refer;
use tidemark_keys::tree::Node;
use tidemark_keys::{AnyKey, Key, Mapping, Table};

/// The kinds of works, and the keys that they stand under.
pub static KINDS: [(Key<Refer>, WorkKind); 6] = [
    (Key::new("init", "Creates containers", Refer("init")), WorkKind::Init),
    (Key::new("prepare", "Writes objects, or fills volumes", Refer("prepare")), WorkKind::Prepare),
    (
        Key::new("precondition", "Writes the volumes' capacity several times", Refer("precondition")),
        WorkKind::Prepare,
    ),
    (Key::new("load", "The measured load", Refer("load")), WorkKind::Normal),
    (
        Key::new("cleanup", "Deletes objects, or removes files and images", Refer("cleanup")),
        WorkKind::Cleanup,
    ),
    (Key::new("dispose", "Deletes containers", Refer("dispose")), WorkKind::Dispose),
];

/// The keys of [`KINDS`].
pub(crate) fn kinds() -> Vec<&'static AnyKey> {
    KINDS.iter().map(|(key, _)| key as &AnyKey).collect()
}

static NAME: Key<Text> = Key::new("name", "Name in reports", Text).otherwise("its kind");
static ALLOWED_FAILURES: Key<Share> =
    Key::new("allowed_failures", "With more failures, the work fails", Share)
        .otherwise("`1%` for a load on objects or databases, otherwise `0`");
static DRIVER: Key<Text> = Key::new("driver", "Driver that must run the whole work", Text);

/// What every work has, whatever its engine.
pub static WORK: Mapping =
    Mapping::new("work", "Keys of every work", &[&NAME, &ALLOWED_FAILURES, &DRAIN, &GIVE_UP, &DRIVER]);

/// What every work has, but for when it ends.
#[derive(Clone, Debug)]
pub struct Common {
    /// Its name.
    pub name: String,
    /// Failures allowed per million operations.
    pub allowed_failures: u32,
    /// The driver that must run it.
    pub driver: Option<String>,
}

impl Common {
    /// Reads it; the name and the allowed failures are these unless the document says otherwise.
    pub fn read(table: &mut Table<'_>, name: &str, allowed_failures: u32) -> Self {
        let share = table.get(&ALLOWED_FAILURES);
        Self {
            name: table.get(&NAME).unwrap_or_else(|| name.to_owned()),
            allowed_failures: share.map_or(allowed_failures, |share| (share * 1e6).round() as u32),
            driver: table.get(&DRIVER),
        }
    }
}

/// Reads the work in `node`, which stands under the key of its kind: one, or those that a sweep makes of it.
pub(super) fn work<'a>(
    place: WorkPlace,
    node: &Node,
    table: Table<'a>,
    scope: &Scope<'a>,
    context: &Context<'_>,
) -> Vec<ReadWork> {
    let registry = context.environment.registry;
    let mut table = table.of(&WORK);
    let scope = scope.within(&mut table, context.environment);
    if let (None, false) = (&scope.target, scope.broken) {
        let help = "write `target: {kind: s3, endpoint: ..., ...}`, or `target: embedded` to try it out";
        let (at, message) = &context.missing_target;
        table.log().error(at, message, help);
    }
    // After that error, or one in the target, the work is read on if its keys show by whom.
    let stand_in = || registry.claimant(place.keyword, node)?.stand_in_target();
    let Some(target) = scope.target.clone().or_else(stand_in) else { return Vec::new() };
    let Some(engine) = registry.engine(target.engine()) else { return Vec::new() };
    if let Some(mapping) = engine.work_keys().into_iter().find(|mapping| mapping.name == place.keyword) {
        table.declare(mapping.all());
    }
    for entry in scope.sections_without_effect(engine) {
        let (name, subject) = (&entry.key, engine.subject());
        let message = format!("`{name}` has no effect on {subject}");
        match node.entry(name).is_some_and(|own| std::ptr::eq(own, entry)) {
            true => table.log().error(&entry.key_span, message, "remove it"),
            false => table.log().warning(
                &entry.key_span,
                message,
                "remove it, or move it to the works that it is meant for",
            ),
        }
    }
    engine.works(place, table, &target, &scope, context)
}
