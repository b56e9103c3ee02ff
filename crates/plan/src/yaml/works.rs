//! The works of a stage: each stands under the key that says what it is for, and is read by the engine of its target.

use super::context::Context;
use super::scope::Scope;
use super::table::{Log, Table};
use super::tree::{Entry, Node};
use crate::engine::{ReadWork, WorkPlace};
use crate::nearest::nearest;
use crate::plan::WorkKind;

/// The kinds of works, as documents call them.
pub const KINDS: [(&str, WorkKind); 6] = [
    ("init", WorkKind::Init),
    ("prepare", WorkKind::Prepare),
    ("precondition", WorkKind::Prepare),
    ("load", WorkKind::Normal),
    ("cleanup", WorkKind::Cleanup),
    ("dispose", WorkKind::Dispose),
];

/// Reads the work in `node`, which stands under the key of its kind: one, or those that a sweep makes of it.
pub(super) fn work<'a>(
    place: WorkPlace,
    node: &Node,
    mut table: Table<'a>,
    scope: &Scope<'a>,
    context: &Context<'_>,
) -> Vec<ReadWork> {
    let registry = context.environment.registry;
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
    engine.works(place, table, &target, &scope, context)
}

/// Reports a key that should name one of several kinds.
pub fn unknown<'k>(entry: &Entry, what: &str, known: impl Iterator<Item = &'k str> + Clone, log: &Log) {
    let all = known.clone().collect::<Vec<_>>().join(", ");
    let help = match nearest(&entry.key, known) {
        Some(near) => format!("did you mean `{near}`? Choose from {all}"),
        None => format!("choose from {all}"),
    };
    log.error(&entry.key_span, format!("`{}` is not a known {what}", entry.key), help);
}
