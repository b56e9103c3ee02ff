//! The `existing` of a load: objects that somebody else wrote, named one by one in a file.

use crate::job::{Existing, Verb};
use std::path::Path;
use tidemark_keys::kinds::Text;
use tidemark_keys::shapes::Map;
use tidemark_keys::{Key, Mapping, Table};
use tidemark_measure::pick::Pick;
use tidemark_plan::yaml::Environment;

/// The key of the section.
pub(super) static EXISTING: Key<Map> = Key::of(&MAPPING);

static MAPPING: Mapping = Mapping::new(
    "existing",
    "Reads objects that are there already, by their own names, without verification; number n is the n-th name of the file",
    &[&CONTAINER, &KEYS],
);
static CONTAINER: Key<Text> =
    Key::new("container", "Name of the container", Text).required("the name of the container");
static KEYS: Key<Text> =
    Key::new("keys", "File with the objects' names, one on each line, at most 8 MiB", Text)
        .required("the path of a file with a name on each line, such as a listing of the container");

/// Reads the section, and the names.
pub(super) fn read(table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Existing> {
    let mut own = table.table(&EXISTING)?;
    let (container, path) = (own.get(&CONTAINER), own.get(&KEYS));
    let place = own.place().clone();
    own.finish();
    let (container, path) = (container?, path?);
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
    Some(Existing { container, keys: keys.into() })
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
    let count = existing.keys.len() as u64;
    let is_on_object = !matches!(verb, Verb::List { by_object: false, .. });
    if is_on_object && (low == 0 || high > count) {
        let message = format!("the names of objects have the numbers 1 to {count}, not {low} to {high}");
        table.log().error(table.place(), message, "narrow `objects`, or leave it out");
    }
}
