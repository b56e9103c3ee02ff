//! The `existing` of a load: objects that somebody else wrote, named one by one in a file, or as a listing of their container
//! names them when the run begins.

use crate::job::{Existing, Listing, Target, Verb};
use std::path::Path;
use tidemark_keys::kinds::{Text, Whole};
use tidemark_keys::shapes::Map;
use tidemark_keys::{Key, Mapping, Table};
use tidemark_measure::pick::Pick;
use tidemark_plan::selector::OPEN_END;
use tidemark_plan::yaml::Environment;

/// The key of the section.
pub(super) static EXISTING: Key<Map> = Key::of(&MAPPING);

static MAPPING: Mapping = Mapping::new(
    "existing",
    "Reads objects that are there already, by their own names, without verification; number n is the n-th name",
    &[&CONTAINER, &PREFIX, &LIMIT, &KEYS],
);
static CONTAINER: Key<Text> =
    Key::new("container", "Name of the container", Text).required("the name of the container");
static PREFIX: Key<Text> = Key::new("prefix", "List only objects whose names begin with it", Text);
static LIMIT: Key<Whole<u64>> =
    Key::new("limit", "The most objects to take from the listing", Whole(1, 1_000_000)).default("100000");
static KEYS: Key<Text> =
    Key::new("keys", "File with the objects' names, one on each line, at most 8 MiB", Text)
        .otherwise("the container is listed when the run begins");

/// Reads the section, and the names if a file has them.
pub(super) fn read(
    table: &mut Table<'_>,
    target: &Target,
    environment: &Environment<'_>,
) -> Option<Existing> {
    let mut own = table.table(&EXISTING)?;
    let (container, path) = (own.get(&CONTAINER), own.get(&KEYS));
    if path.is_some() {
        own.meaningless(&[&PREFIX, &LIMIT], "the names are in a file");
    }
    let listing = Listing { prefix: own.get(&PREFIX).unwrap_or_default(), limit: own.value(&LIMIT) };
    let place = own.place().clone();
    own.finish();
    let Some(path) = path else {
        if matches!(target, Target::Embedded(_) | Target::Mock(_)) {
            let help = "use an S3 or Swift target, or name the objects in a file with `keys`";
            table.log().error(&place, "this target has nothing to list before the run", help);
        }
        return Some(Existing { container: container?, listing: Some(listing), ..Existing::default() });
    };
    let container = container?;
    let text = match (environment.document)(Path::new(&path)) {
        Ok(text) => text,
        Err(error) => {
            let help = "write the objects' names to a file, one on each line";
            table.log().error(&place, format!("the names in {path} cannot be read: {error}"), help);
            return None;
        }
    };
    let keys: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(String::from).collect();
    if keys.is_empty() {
        let help = "write the objects' names to it, one on each line";
        table.log().error(&place, format!("{path} has no names of objects"), help);
        return None;
    }
    Some(Existing { container, keys: keys.into(), ..Existing::default() })
}

/// All of the objects, each as likely as the others. How many a listing names is not known yet.
pub(super) fn all(existing: &Existing) -> Pick {
    let high = if existing.listing.is_some() { OPEN_END } else { existing.keys.len() as u64 };
    Pick::Uniform { low: 1, high }
}

/// Reports what must not be done to objects that somebody else wrote, and numbers that none of them has.
pub(super) fn check(table: &Table<'_>, existing: &Existing, verb: &Verb, items: &Pick) {
    let only_looks =
        matches!(verb, Verb::Get | Verb::GetRange { .. } | Verb::Head | Verb::List { .. } | Verb::GetTags);
    if !only_looks {
        let help = "use get, head, list or get_tags, or a load without `existing`";
        table.log().error(table.place(), "objects that somebody else wrote are only read", help);
    }
    let (low, high) = items.bounds();
    let is_open = existing.listing.is_some() && high >= OPEN_END;
    let count = existing.listing.as_ref().map_or(existing.keys.len() as u64, |listing| listing.limit);
    let is_on_object = !matches!(verb, Verb::List { by_object: false, .. });
    if is_on_object && (low == 0 || high > count && !is_open) {
        let message = format!("the names of objects have the numbers 1 to {count}, not {low} to {high}");
        table.log().error(table.place(), message, "narrow `objects`, or leave it out");
    }
}
