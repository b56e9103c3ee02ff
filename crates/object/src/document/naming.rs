//! The `naming` of a document: how containers and objects are called.

use crate::job::Naming;
use tidemark_keys::kinds::{Parsed, Text};
use tidemark_keys::shapes::Map;
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_plan::yaml::scope::Scope;

static CONTAINER: Key<Text> =
    Key::new("container", "Whole name of the only container, whose number is 1", Text)
        .otherwise("containers have numbers")
        .expanded();
static CONTAINER_PREFIX: Key<Affix> =
    Key::new("container_prefix", "Before a container's number", AFFIX).otherwise("`mycontainers`");
static CONTAINER_SUFFIX: Key<Affix> = Key::new("container_suffix", "After a container's number", AFFIX);
static OBJECT_PREFIX: Key<Affix> =
    Key::new("object_prefix", "Before an object's number", AFFIX).otherwise("`myobjects`");
static OBJECT_SUFFIX: Key<Affix> = Key::new("object_suffix", "After an object's number", AFFIX);

static MAPPING: Mapping = Mapping::new(
    "naming",
    "Names of containers and objects",
    &[&CONTAINER, &CONTAINER_PREFIX, &CONTAINER_SUFFIX, &OBJECT_PREFIX, &OBJECT_SUFFIX],
);

/// The key of the section.
pub(crate) static NAMING: Key<Map> = Key::of(&MAPPING);

/// A part of a name; it may be empty.
type Affix = Parsed<String>;

/// The longest part of a name, bytes: no storage takes longer names of objects.
const LONGEST: usize = 1024;

const AFFIX: Affix = Parsed("text", |text| match text.len() {
    0..=LONGEST => Ok(text.to_owned()),
    longer => Err(Problem::new(format!("it has {longer} bytes; the limit is {LONGEST}"), "shorten it")),
});

/// What holds for a work: its scope's `naming` sections, the innermost last. `table` is the work's.
pub(super) fn naming<'a>(scope: &Scope<'a>, table: &Table<'a>) -> Naming {
    scope.sections(&NAMING, table).fold(Naming::default(), |above, table| section(table, above))
}

/// Reads one `naming` section; what it does not say holds as `above`.
pub(super) fn section(mut table: Table<'_>, above: Naming) -> Naming {
    let container = table.get(&CONTAINER);
    if container.is_some() {
        table.meaningless(&[&CONTAINER_PREFIX, &CONTAINER_SUFFIX], "`container` is the whole name");
    }
    let (prefix, suffix) = (table.get(&CONTAINER_PREFIX), table.get(&CONTAINER_SUFFIX));
    // Whoever says what is around the number has containers with numbers.
    let has_numbers = prefix.is_some() || suffix.is_some();
    let mut part = |key, above| table.get(key).unwrap_or(above);
    let naming = Naming {
        container: container.or(above.container.filter(|_| !has_numbers)),
        container_prefix: prefix.unwrap_or(above.container_prefix),
        container_suffix: suffix.unwrap_or(above.container_suffix),
        object_prefix: part(&OBJECT_PREFIX, above.object_prefix),
        object_suffix: part(&OBJECT_SUFFIX, above.object_suffix),
        existing: above.existing,
    };
    table.finish();
    naming
}

/// Reports numbers of containers where there is only one.
pub(super) fn check(table: &Table<'_>, naming: &Naming, (low, high): (u64, u64)) {
    if naming.container.is_some() && (low, high) != (1, 1) {
        let message = format!("there is only one container, which has the number 1, not {low} to {high}");
        table.log().error(table.place(), message, "write `containers: 1`");
    }
}
