//! One operation of a load: what it does, on what, how often.

use super::naming;
use crate::job::{Action, Content, Emptied, Naming, Verb};
use std::path::PathBuf;
use tidemark_load::source::{Choice, Division, Effect, Order, PoolPlan, Size};
use tidemark_measure::pick::Pick;
use tidemark_plan::content;
use tidemark_plan::plan::{Label, OperationClass};
use tidemark_plan::selector;
use tidemark_plan::yaml::table::{self, Table};
use tidemark_plan::yaml::values::{constant, pick, positive_bytes, size, weight};

/// What holds around operations, unless they say otherwise.
pub(super) struct Around {
    pub(super) naming: Naming,
    pub(super) content: Content,
}

impl Around {
    /// What holds for the operation in `table`.
    fn within(&self, table: &mut Table<'_>) -> Around {
        let naming = table.table("naming").map(|own| naming::section(own, &self.naming));
        let content = table.table("content").map(|own| content::section(own, self.content));
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

/// The operations, as documents call them: name, the sample that it counts as, what it does to a pool.
pub(crate) const VERBS: [(&str, Kind); 14] = [
    ("get", Kind { verb: Name::Get, class: OperationClass::Read, effect: Effect::Uses }),
    ("put", Kind { verb: Name::Put, class: OperationClass::Write, effect: Effect::Makes }),
    ("head", Kind { verb: Name::Head, class: OperationClass::Head, effect: Effect::Uses }),
    ("delete", Kind { verb: Name::Delete, class: OperationClass::Delete, effect: Effect::Removes }),
    ("delete_many", Kind { verb: Name::DeleteMany, class: OperationClass::Delete, effect: Effect::Removes }),
    ("copy", Kind { verb: Name::Copy, class: OperationClass::Copy, effect: Effect::Uses }),
    ("list", Kind { verb: Name::List, class: OperationClass::List, effect: Effect::Free }),
    ("put_tags", Kind { verb: Name::PutTags, class: OperationClass::PutTags, effect: Effect::Uses }),
    ("get_tags", Kind { verb: Name::GetTags, class: OperationClass::GetTags, effect: Effect::Uses }),
    ("restore", Kind { verb: Name::Restore, class: OperationClass::Restore, effect: Effect::Uses }),
    ("put_file", Kind { verb: Name::PutFile, class: OperationClass::Write, effect: Effect::Free }),
    ("write_local", Kind { verb: Name::WriteLocal, class: OperationClass::LocalWrite, effect: Effect::Free }),
    (
        "create_container",
        Kind { verb: Name::CreateContainer, class: OperationClass::Init, effect: Effect::Free },
    ),
    (
        "delete_container",
        Kind { verb: Name::DeleteContainer, class: OperationClass::Dispose, effect: Effect::Free },
    ),
];

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
    let around = around.within(&mut table);
    let label = table.text("name").unwrap_or_default();
    let weight = table.read("weight", weight).unwrap_or(1.0);
    let mut verb = verb(kind.verb, &mut table);
    let on_container = matches!(
        verb,
        Verb::CreateContainer | Verb::DeleteContainer { .. } | Verb::List { by_object: false, .. }
    );
    let pooled = common.pool.as_ref().filter(|_| kind.effect != Effect::Free);
    let (spaces, items) = match pooled {
        Some(pool) => {
            table.meaningless(&["containers", "objects", "division"], "the pool chooses the objects");
            (uniform(pool.spaces), uniform(pool.items))
        }
        None => (
            numbers(&mut table, "containers", &common.containers),
            if on_container { Pick::Constant(0) } else { numbers(&mut table, "objects", &common.objects) },
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
        _ if sized => sizes(&mut table, &common.sizes),
        _ => constant(0),
    };
    let division = table.word("division", &DIVISIONS).unwrap_or(common.division);
    let label = Label {
        label,
        kind: name.to_owned(),
        class: kind.class.clone(),
        verifies: around.content.verify && kind.class == OperationClass::Read,
        weight,
        config: config(&spaces, (!on_container).then_some(&items), sized.then_some(&bytes)),
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
pub(crate) const DIVISIONS: [(&str, Division); 3] =
    [("none", Division::None), ("containers", Division::Spaces), ("objects", Division::Items)];

fn verb(name: Name, table: &mut Table<'_>) -> Verb {
    match name {
        Name::Get => get(table),
        Name::Put => put(table),
        Name::Head => Verb::Head,
        Name::Delete => Verb::Delete,
        // S3 takes at most 1000 keys in one request.
        Name::DeleteMany => Verb::DeleteMany { count: table.small("count", 1..=1000).unwrap_or(1000) },
        Name::Copy => Verb::Copy,
        Name::List => Verb::List {
            page: table.small("page", 1..=10_000).unwrap_or(1000),
            all: table.flag("all").unwrap_or(false),
            by_object: table.flag("by_object").unwrap_or(false),
        },
        Name::PutTags => Verb::PutTags,
        Name::GetTags => Verb::GetTags,
        Name::Restore => Verb::Restore { days: table.small("days", 1..=36_500).unwrap_or(1) },
        Name::PutFile => {
            let directory = directory(table).unwrap_or_default();
            Verb::PutFile { directory, part_bytes: table.bytes("part", 1) }
        }
        Name::WriteLocal => Verb::WriteLocal { directory: directory(table).unwrap_or_default() },
        Name::CreateContainer => Verb::CreateContainer,
        Name::DeleteContainer => Verb::DeleteContainer { empty: emptied(table) },
    }
}

/// Whether containers are emptied before they are deleted.
pub(super) fn emptied(table: &mut Table<'_>) -> Emptied {
    if table.flag("empty").unwrap_or(false) { Emptied::Always } else { Emptied::Never }
}

fn get(table: &mut Table<'_>) -> Verb {
    let Some(mut range) = table.table("range") else {
        return Verb::Get;
    };
    let length = range.required("length", "how many bytes to read, such as 64KiB", positive_bytes);
    let object = range.required("object_size", "the size of the objects, such as 4MiB", positive_bytes);
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
    let chunked = table.flag("chunked").unwrap_or(false);
    let if_absent = table.flag("if_absent").unwrap_or(false);
    let Some(mut parts) = table.table("multipart") else {
        return Verb::Put { chunked, if_absent };
    };
    let part_bytes = parts.required("part", "the size of a part, such as 8MiB", positive_bytes).unwrap_or(1);
    let parallel = parts.small("parallel", 1..=1000).unwrap_or(1);
    parts.finish();
    table.meaningless(&["chunked", "if_absent"], "the object is written in parts");
    Verb::PutMultipart { part_bytes, parallel }
}

/// The directory of files, which must be given.
pub(super) fn directory(table: &mut Table<'_>) -> Option<PathBuf> {
    table.required("directory", "the path of the directory", table::text).map(PathBuf::from)
}

/// Container or object numbers, or the load's default; an error without either.
pub(super) fn numbers(table: &mut Table<'_>, key: &'static str, common: &Option<Pick>) -> Pick {
    let own = table.read(key, pick);
    if own.is_none() && common.is_none() && !table.has(key) {
        table.missing(key, "write a range such as 1-100, or a selector such as zipf(1,100)");
    }
    own.or_else(|| common.clone()).unwrap_or(Pick::Constant(1))
}

/// Sizes, or the load's default; an error without either.
pub(super) fn sizes(table: &mut Table<'_>, common: &Option<Size>) -> Size {
    let own = table.read("sizes", size);
    if own.is_none() && common.is_none() && !table.has("sizes") {
        table.missing("sizes", "write a size such as 64KiB, or a selector such as u(4,64)KiB");
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
