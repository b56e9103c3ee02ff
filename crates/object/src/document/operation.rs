//! One operation of a load: what it does, on what, how often.

use super::existing;
use super::naming::{self, NAMING};
use crate::job::{Action, Content, Emptied, Keeps, Naming, Retention, Verb};
use tidemark_keys::kinds::{Bytes, Duration, Flag, Parsed, Text, Whole, Word};
use tidemark_keys::shapes::Map;
use tidemark_keys::{AnyKey, Key, Mapping, Problem, Table};
use tidemark_load::source::{Choice, Division, Effect, Order, PoolPlan, Size};
use tidemark_measure::pick::Pick;
use tidemark_measure::units;
use tidemark_plan::content;
use tidemark_plan::plan::{Label, OperationClass};
use tidemark_plan::selector;
use tidemark_plan::yaml::values::{Length, Selector, Sizes, constant};

/// What holds around operations, unless they say otherwise.
pub(super) struct Around {
    pub(super) naming: Naming,
    pub(super) content: Content,
}

impl Around {
    /// What holds for the operation in `table`.
    fn within(&self, table: &mut Table<'_>) -> Around {
        let naming = table.table(&NAMING).map(|own| naming::section(own, self.naming.clone()));
        let content = table.table(&content::CONTENT).map(|own| content::section(own, self.content));
        Around {
            naming: naming.unwrap_or_else(|| self.naming.clone()),
            content: content.unwrap_or(self.content),
        }
    }
}

/// What a load gives once for all its operations.
pub(super) struct Common {
    pub(super) containers: Option<Pick>,
    pub(super) objects: Option<Pick>,
    pub(super) sizes: Option<Size>,
    pub(super) division: Division,
    pub(super) pool: Option<PoolPlan>,
}

/// The operations: the key that each stands under, what it does, the sample that it counts as, what it does to a pool.
pub(crate) static VERBS: [(Key<Map>, Kind); 16] = [
    (
        Key::of(&GET).also(&["read"]),
        Kind { verb: Name::Get, class: OperationClass::Read, effect: Effect::Uses },
    ),
    (
        Key::of(&PUT).also(&["write"]),
        Kind { verb: Name::Put, class: OperationClass::Write, effect: Effect::Makes },
    ),
    (Key::of(&HEAD), Kind { verb: Name::Head, class: OperationClass::Head, effect: Effect::Uses }),
    (Key::of(&DELETE), Kind { verb: Name::Delete, class: OperationClass::Delete, effect: Effect::Removes }),
    (
        Key::of(&DELETE_MANY),
        Kind { verb: Name::DeleteMany, class: OperationClass::Delete, effect: Effect::Removes },
    ),
    (Key::of(&COPY), Kind { verb: Name::Copy, class: OperationClass::Copy, effect: Effect::Uses }),
    (Key::of(&LIST), Kind { verb: Name::List, class: OperationClass::List, effect: Effect::Free }),
    (Key::of(&PUT_TAGS), Kind { verb: Name::PutTags, class: OperationClass::PutTags, effect: Effect::Uses }),
    (Key::of(&GET_TAGS), Kind { verb: Name::GetTags, class: OperationClass::GetTags, effect: Effect::Uses }),
    (
        Key::of(&PUT_RETENTION),
        Kind { verb: Name::PutRetention, class: OperationClass::PutRetention, effect: Effect::Uses },
    ),
    (
        Key::of(&GET_RETENTION),
        Kind { verb: Name::GetRetention, class: OperationClass::GetRetention, effect: Effect::Uses },
    ),
    (Key::of(&RESTORE), Kind { verb: Name::Restore, class: OperationClass::Restore, effect: Effect::Uses }),
    (Key::of(&PUT_FILE), Kind { verb: Name::PutFile, class: OperationClass::Write, effect: Effect::Free }),
    (
        Key::of(&WRITE_LOCAL),
        Kind { verb: Name::WriteLocal, class: OperationClass::LocalWrite, effect: Effect::Free },
    ),
    (
        Key::of(&CREATE_CONTAINER),
        Kind { verb: Name::CreateContainer, class: OperationClass::Init, effect: Effect::Free },
    ),
    (
        Key::of(&DELETE_CONTAINER),
        Kind { verb: Name::DeleteContainer, class: OperationClass::Dispose, effect: Effect::Free },
    ),
];

/// The keys of [`VERBS`].
pub(super) fn verbs() -> Vec<&'static AnyKey> {
    VERBS.iter().map(|(key, _)| key as &AnyKey).collect()
}

static GET: Mapping = Mapping::new("get", "Reads an object", &[&RANGE]).with(&[&COMMON, &ON_OBJECTS]);
static PUT: Mapping =
    Mapping::new("put", "Writes an object", &[&SIZES]).with(&[&COMMON, &ON_OBJECTS, &WRITTEN]);
static HEAD: Mapping = Mapping::new("head", "Reads an object's headers", &[]).with(&[&COMMON, &ON_OBJECTS]);
static DELETE: Mapping = Mapping::new("delete", "Deletes an object", &[]).with(&[&COMMON, &ON_OBJECTS]);
static DELETE_MANY: Mapping =
    Mapping::new("delete_many", "Deletes `count` objects from this number on, in one request", &[&COUNT])
        .with(&[&COMMON, &ON_OBJECTS]);
static COPY: Mapping =
    Mapping::new("copy", "Copies an object to its name plus `-copy`", &[]).with(&[&COMMON, &ON_OBJECTS]);
static LIST: Mapping =
    Mapping::new("list", "Lists a container", &[&OBJECTS, &PAGE, &ALL, &BY_OBJECT]).with(&[&COMMON]);
static PUT_TAGS: Mapping = Mapping::new("put_tags", "Writes tags", &[]).with(&[&COMMON, &ON_OBJECTS]);
static GET_TAGS: Mapping = Mapping::new("get_tags", "Reads tags", &[]).with(&[&COMMON, &ON_OBJECTS]);
static PUT_RETENTION: Mapping =
    Mapping::new("put_retention", "Locks an object, in a container with `object_lock`", &[&MODE, &VALIDITY])
        .with(&[&COMMON, &ON_OBJECTS]);
static GET_RETENTION: Mapping =
    Mapping::new("get_retention", "Reads an object's lock", &[]).with(&[&COMMON, &ON_OBJECTS]);
static MODE: Key<Word<Retention>> = Key::new(
    "mode",
    "How firmly: under `governance`, `cleanup` with `versions` and `dispose` with `empty` can still delete the object; under \
     `compliance` nobody can before its time",
    Word(&[("governance", Retention::Governance), ("compliance", Retention::Compliance)]),
)
.default("governance");
static VALIDITY: Key<Duration> =
    Key::new("validity", "How long the lock holds from the request on, in whole seconds", Duration)
        .required("write a duration, such as 1h");
static RESTORE: Mapping =
    Mapping::new("restore", "Restores an archived object", &[&DAYS]).with(&[&COMMON, &ON_OBJECTS]);
static PUT_FILE: Mapping =
    Mapping::new("put_file", "Writes the n-th file of a directory", &[&DIRECTORY, &PART])
        .with(&[&COMMON, &ON_OBJECTS]);
static WRITE_LOCAL: Mapping =
    Mapping::new("write_local", "Writes to a local directory instead of the target", &[&SIZES, &DIRECTORY])
        .with(&[&COMMON, &ON_OBJECTS]);
static CREATE_CONTAINER: Mapping =
    Mapping::new("create_container", "Creates a container", &[]).with(&[&COMMON]);
static DELETE_CONTAINER: Mapping =
    Mapping::new("delete_container", "Deletes a container", &[&EMPTY]).with(&[&COMMON]);

/// Keys of every operation.
static COMMON: Mapping = Mapping::new(
    "operation",
    "Keys of every operation",
    &[&NAME, &WEIGHT, &CONTAINERS, &DIVISION, &NAMING, &content::CONTENT],
);
/// Keys of operations on objects.
static ON_OBJECTS: Mapping = Mapping::new("object", "Keys of operations on objects", &[&OBJECTS]);
/// How an object is written.
pub(super) static WRITTEN: Mapping =
    Mapping::new("written", "How an object is written", &[&CHUNKED, &IF_ABSENT, &MULTIPART]);

static NAME: Key<Text> = Key::new("name", "Name in reports", Text).otherwise("the operation's");
static WEIGHT: Key<Parsed<f64>> = Key::new(
    "weight",
    "Share of the mix, relative to the other operations",
    Parsed("number above 0", |text| {
        let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
        match number.filter(|weight| weight.is_finite() && *weight > 0.0 && *weight <= 1e9) {
            Some(weight) => Ok(weight),
            None => {
                Err(Problem::new(format!("'{text}' is not a weight"), "write a number above 0, such as 70"))
            }
        }
    }),
)
.default("1");
static CONTAINERS: Key<Selector> =
    Key::new("containers", "Numbers of containers", Selector).otherwise("the load's");
static OBJECTS: Key<Selector> = Key::new("objects", "Numbers of objects", Selector).otherwise("the load's");
static SIZES: Key<Sizes> = Key::new("sizes", "Sizes of objects", Sizes).otherwise("the load's");
static DIVISION: Key<Word<Division>> =
    Key::new("division", "What to divide among the workers", DIVISIONS).otherwise("the load's");
static COUNT: Key<Whole<u32>> =
    // S3 takes at most 1000 keys in one request.
    Key::new("count", "Number of objects in one request", Whole(1, 1000)).default("1000");
static PAGE: Key<Whole<u32>> = Key::new("page", "Entries per page", Whole(1, 10_000)).default("1000");
static ALL: Key<Flag> = Key::new("all", "Follow pages to the end", Flag).default("false");
static BY_OBJECT: Key<Flag> =
    Key::new("by_object", "List only names that begin with the object's", Flag).default("false");
static DAYS: Key<Whole<u32>> =
    Key::new("days", "How many days a restored object remains", Whole(1, 36_500)).default("1");
/// Files to upload, or where to write them.
pub(super) static DIRECTORY: Key<Text> =
    Key::new("directory", "Path of the directory", Text).required("the path of the directory");
/// Size of the parts of a file.
pub(super) static PART: Key<Bytes> =
    Key::new("part", "Size of each part of a file's upload", Bytes(1)).otherwise("upload at once");
/// Whether a container goes with its objects.
pub(super) static EMPTY: Key<Flag> =
    Key::new("empty", "Delete its objects first, whoever wrote them", Flag).default("false");
static CHUNKED: Key<Flag> =
    Key::new("chunked", "Send in chunks, without a total length", Flag).default("false");
static IF_ABSENT: Key<Flag> =
    Key::new("if_absent", "Only if the object does not exist; a storage that ignores the condition is refused before the load, by means of an empty object that is written and deleted", Flag).default("false");
static MULTIPART: Key<Map> = Key::of(&IN_PARTS);
static IN_PARTS: Mapping = Mapping::new("multipart", "Upload in parts", &[&PART_BYTES, &PARALLEL]);
static PART_BYTES: Key<Length> =
    Key::new("part", "Size of a part", Length).required("the size of a part, such as 8MiB");
static PARALLEL: Key<Whole<u32>> =
    Key::new("parallel", "Parts in flight at once", Whole(1, 1000)).default("1");
static RANGE: Key<Map> = Key::of(&PART_OF_OBJECT);
static PART_OF_OBJECT: Mapping = Mapping::new(
    "range",
    "Read a part of the object, at a random multiple of its length",
    &[&LENGTH, &OBJECT_SIZE],
);
static LENGTH: Key<Length> =
    Key::new("length", "Bytes to read", Length).required("how many bytes to read, such as 64KiB");
static OBJECT_SIZE: Key<Length> =
    Key::new("object_size", "Size of the objects", Length).required("the size of the objects, such as 4MiB");

/// What is fixed about an operation.
#[derive(Clone)]
pub(crate) struct Kind {
    verb: Name,
    class: OperationClass,
    effect: Effect,
}

#[derive(Clone, Copy, PartialEq)]
enum Name {
    Get,
    Put,
    Head,
    Delete,
    DeleteMany,
    Copy,
    List,
    PutTags,
    GetTags,
    PutRetention,
    GetRetention,
    Restore,
    PutFile,
    WriteLocal,
    CreateContainer,
    DeleteContainer,
}

/// Reads the settings of one operation. The label's name is empty when the document gives none, its weight not
/// yet in percent.
pub(super) fn operation(
    name: &str,
    kind: &Kind,
    mut table: Table<'_>,
    common: &Common,
    around: &Around,
    action: u16,
) -> (Choice, Action, Label) {
    let mut around = around.within(&mut table);
    // What somebody else wrote into them is not known.
    around.content.verify &= around.naming.existing.is_none();
    let (label, weight) = (table.value(&NAME), table.value(&WEIGHT));
    let mut verb = verb(kind.verb, &mut table);
    let on_container = matches!(
        verb,
        Verb::CreateContainer { .. } | Verb::DeleteContainer { .. } | Verb::List { by_object: false, .. }
    );
    let pooled = common.pool.as_ref().filter(|_| kind.effect != Effect::Free);
    let (spaces, items) = match pooled {
        Some(pool) => {
            table.meaningless(&[&CONTAINERS, &OBJECTS, &DIVISION], "the pool chooses the objects");
            (uniform(pool.spaces), uniform(pool.items))
        }
        None => (
            numbers(&mut table, &CONTAINERS, &common.containers),
            if on_container { Pick::Constant(0) } else { numbers(&mut table, &OBJECTS, &common.objects) },
        ),
    };
    if let (Verb::DeleteMany { count: 2.. }, Some(_)) = (&verb, pooled) {
        let help = "use `delete`, or remove `pool`";
        table.log().error(
            table.place(),
            "a pool tracks single objects and does not support `delete_many`",
            help,
        );
    }
    let sized = matches!(verb, Verb::Put { .. } | Verb::PutMultipart { .. } | Verb::WriteLocal { .. });
    let bytes = match &mut verb {
        Verb::GetRange { length, .. } => constant(*length),
        _ if sized => sizes(&mut table, &SIZES, &common.sizes),
        _ => constant(0),
    };
    if let Some(existing) = &around.naming.existing {
        existing::check(&table, existing, &verb, &items);
    }
    naming::check(&table, &around.naming, spaces.bounds());
    let division = table.get(&DIVISION).unwrap_or(common.division);
    let label = Label {
        label,
        kind: name.to_owned(),
        class: kind.class.clone(),
        verifies: around.content.verify && kind.class == OperationClass::Read,
        weight,
        config: config(&spaces, (!on_container).then_some(&items), sized.then_some(&bytes))
            + &details(&verb, pooled, division, around.content.verify && kind.class == OperationClass::Read),
    };
    table.finish();
    let choice = Choice {
        action,
        weight,
        spaces,
        items,
        bytes,
        division,
        effect: kind.effect,
        order: Order::Picked,
        follow: None,
    };
    (choice, Action { verb, naming: around.naming, content: around.content }, label)
}

/// What is divided among workers, as documents call it.
pub(super) const DIVISIONS: Word<Division> =
    Word(&[("none", Division::None), ("containers", Division::Spaces), ("objects", Division::Items)]);

fn verb(name: Name, table: &mut Table<'_>) -> Verb {
    match name {
        Name::Get => get(table),
        Name::Put => put(table),
        Name::Head => Verb::Head,
        Name::Delete => Verb::Delete,
        Name::DeleteMany => Verb::DeleteMany { count: table.value(&COUNT) },
        Name::Copy => Verb::Copy,
        Name::List => Verb::List {
            page: table.value(&PAGE),
            all: table.value(&ALL),
            by_object: table.value(&BY_OBJECT),
        },
        Name::PutTags => Verb::PutTags,
        Name::GetTags => Verb::GetTags,
        Name::PutRetention => Verb::PutRetention {
            mode: table.value(&MODE),
            validity_s: table.get(&VALIDITY).map_or(1, |ns| (ns / 1_000_000_000).max(1)),
        },
        Name::GetRetention => Verb::GetRetention,
        Name::Restore => Verb::Restore { days: table.value(&DAYS) },
        Name::PutFile => {
            Verb::PutFile { directory: table.value(&DIRECTORY).into(), part_bytes: table.get(&PART) }
        }
        Name::WriteLocal => Verb::WriteLocal { directory: table.value(&DIRECTORY).into() },
        Name::CreateContainer => Verb::CreateContainer { keeps: Keeps::Latest },
        Name::DeleteContainer => Verb::DeleteContainer { empty: emptied(table) },
    }
}

/// Whether containers are emptied before they are deleted.
pub(super) fn emptied(table: &mut Table<'_>) -> Emptied {
    if table.value(&EMPTY) { Emptied::Always } else { Emptied::Never }
}

fn get(table: &mut Table<'_>) -> Verb {
    let Some(mut range) = table.table(&RANGE) else {
        return Verb::Get;
    };
    let (length, object) = (range.get(&LENGTH), range.get(&OBJECT_SIZE));
    if let (Some(length), Some(object)) = (length, object)
        && length > object
    {
        let help = "lower `length`, or raise `object_size`";
        range.log().error(range.place(), "the range is longer than the object", help);
    }
    range.finish();
    Verb::GetRange { length: length.unwrap_or(1), object_bytes: object.unwrap_or(1) }
}

/// Reads how an object is written: at once, in chunks, or in parts.
pub(super) fn put(table: &mut Table<'_>) -> Verb {
    let (chunked, if_absent) = (table.value(&CHUNKED), table.value(&IF_ABSENT));
    let Some(mut parts) = table.table(&MULTIPART) else {
        return Verb::Put { chunked, if_absent };
    };
    let (part_bytes, parallel) = (parts.get(&PART_BYTES).unwrap_or(1), parts.value(&PARALLEL));
    parts.finish();
    table.meaningless(&[&CHUNKED, &IF_ABSENT], "the object is written in parts");
    Verb::PutMultipart { part_bytes, parallel }
}

/// Container or object numbers, or the load's default; an error without either.
fn numbers(table: &mut Table<'_>, key: &Key<Selector>, common: &Option<Pick>) -> Pick {
    let own = table.get(key);
    if own.is_none() && common.is_none() && !table.has(key) {
        table.missing(key, "write a range such as 1-100, or a selector such as zipf(1,100)");
    }
    own.or_else(|| common.clone()).unwrap_or(Pick::Constant(1))
}

/// Sizes, or the load's default; an error without either.
pub(super) fn sizes(table: &mut Table<'_>, key: &Key<Sizes>, common: &Option<Size>) -> Size {
    let own = table.get(key);
    if own.is_none() && common.is_none() && !table.has(key) {
        table.missing(key, "write a size such as 64KiB, or a selector such as u(4,64)KiB");
    }
    own.or_else(|| common.clone()).unwrap_or_else(|| constant(0))
}

fn uniform((low, high): (u64, u64)) -> Pick {
    Pick::Uniform { low, high }
}

/// The settings as reports show them.
pub(super) fn config(spaces: &Pick, items: Option<&Pick>, bytes: Option<&Size>) -> String {
    let mut parts = vec![format!("containers={}", selector::print(spaces))];
    parts.extend(items.map(|items| format!("objects={}", selector::print(items))));
    parts.extend(bytes.map(|bytes| format!("sizes={}", selector::print_size(bytes))));
    parts.join(";")
}

/// The settings of an operation on existing objects as reports show them, now that they are known.
pub(crate) fn of_existing(verb: &Verb, choice: &Choice) -> String {
    let on_container = matches!(verb, Verb::List { by_object: false, .. });
    config(&choice.spaces, (!on_container).then_some(&choice.items), None)
        + &details(verb, None, choice.division, false)
}

/// The settings that say more than which objects and how large, as reports show them: `;pool=1-50 exist;verify=true`.
fn details(verb: &Verb, pool: Option<&PoolPlan>, division: Division, verifies: bool) -> String {
    let mut parts = Vec::new();
    parts.extend(pool.map(|pool| match pool.existing {
        Some((low, high)) => format!("pool={low}-{high} exist"),
        None => "pool=empty at first".into(),
    }));
    parts.extend(
        DIVISIONS
            .0
            .iter()
            .filter(|(_, own)| *own == division && *own != Division::None)
            .map(|(name, _)| format!("division={name}")),
    );
    let bytes = |bytes: u64| units::exact_bytes(bytes, "");
    let flag = |name: &str, is_set: bool| is_set.then(|| format!("{name}=true"));
    match verb {
        Verb::GetRange { length, object_bytes } => {
            parts.push(format!("range={} of {}", bytes(*length), bytes(*object_bytes)));
        }
        Verb::Put { chunked, if_absent } => {
            parts.extend(flag("chunked", *chunked).into_iter().chain(flag("if_absent", *if_absent)));
        }
        Verb::PutMultipart { part_bytes, parallel } => {
            parts.push(format!("part={};parallel={parallel}", bytes(*part_bytes)));
        }
        Verb::PutFile { part_bytes: Some(part_bytes), .. } => {
            parts.push(format!("part={}", bytes(*part_bytes)));
        }
        Verb::DeleteMany { count } => parts.push(format!("count={count}")),
        Verb::List { page, all, by_object } => {
            parts.push(format!("page={page}"));
            parts.extend(flag("all", *all).into_iter().chain(flag("by_object", *by_object)));
        }
        Verb::Restore { days } => parts.push(format!("days={days}")),
        Verb::PutRetention { mode, validity_s } => {
            parts.push(format!("mode={}", mode.name().to_lowercase()));
            parts.push(format!("validity={validity_s}s"));
        }
        Verb::DeleteContainer { empty: Emptied::Always } => parts.push("empty=true".into()),
        _ => {}
    }
    parts.extend(flag("verify", verifies));
    parts.iter().map(|part| format!(";{part}")).collect()
}
