//! An operation of a mix: what it does, on what, and how it is shown.

use super::config::{Entry, Settings};
use super::remarks::{Differs, Remarks, shown};
use super::storage::Storage;
use super::tree::Element;
use super::workload::Reader;
use std::path::PathBuf;
use tidemark_keys::nearest::nearest;
use tidemark_load::source::{Choice, Division, Effect, Order, Size};
use tidemark_measure::pick::Pick;
use tidemark_object::job::{Action, Content, Form, Naming, Verb};
use tidemark_plan::plan::{Label, OperationClass};
use tidemark_plan::redact::is_secret;
use tidemark_plan::selector;

/// An operation in the three forms that a work keeps of it.
pub(super) struct Resolved {
    pub(super) action: Action,
    pub(super) choice: Choice,
    pub(super) label: Label,
}

const TYPES: [&str; 10] =
    ["read", "write", "delete", "list", "head", "filewrite", "localwrite", "mwrite", "mfilewrite", "restore"];

const SPECIAL: [&str; 6] = ["init", "prepare", "mprepare", "cleanup", "dispose", "delay"];

/// Entries of a page of a listing: S3's own limit.
const PAGE: u32 = 1000;

/// Resolves one `<operation>` of a normal work.
pub(super) fn resolve(
    element: &Element,
    settings: &Settings<'_>,
    storage: &Storage,
    division: Division,
    workers: u32,
    ratio: i64,
    reader: &mut Reader<'_>,
) -> Resolved {
    let remarks = &mut reader.remarks;
    let kind = kind(element, remarks);
    let spaces = numbers(settings, "containers", element, kind, remarks);
    let from_files = matches!(kind, "filewrite" | "mfilewrite");
    let by_object = settings.mentions(&["objects"]);
    let items = match kind {
        _ if from_files => file_pick(settings, remarks),
        "list" if !by_object => Pick::Constant(1),
        _ => numbers(settings, "objects", element, kind, remarks),
    };
    let bytes = match (kind, storage.range) {
        ("write" | "mwrite" | "localwrite", _) => size(settings, element, kind, remarks),
        ("read", Some((length, _))) => Size { pick: Pick::Constant(length), unit: 1 },
        _ => Size { pick: Pick::Constant(0), unit: 1 },
    };
    let verb = match kind {
        "write" => Verb::Put { chunked: settings.flag(&["chunked"], remarks), if_absent: false },
        "mwrite" => multipart(storage),
        "delete" => Verb::Delete,
        "head" => Verb::Head,
        "restore" => Verb::Restore { days: storage.restore_days },
        "list" => Verb::List { page: PAGE, all: false, by_object },
        "filewrite" => Verb::PutFile { directory: files(settings, element, kind, remarks), part_bytes: None },
        "mfilewrite" => Verb::PutFile {
            directory: files(settings, element, kind, remarks),
            part_bytes: Some(storage.part_bytes),
        },
        "localwrite" => Verb::WriteLocal { directory: files(settings, element, kind, remarks) },
        _ => match storage.range {
            Some((length, object_bytes)) => Verb::GetRange { length, object_bytes },
            None => Verb::Get,
        },
    };
    // How many files there are is known only where they are, so their range cannot be cut.
    let division = if from_files && division == Division::Items { Division::None } else { division };
    check_division(element, division, &spaces, &items, workers, remarks);
    let content = content(settings, remarks);
    let action = Action { verb, naming: naming(settings), content };
    let weight = ratio as f64;
    Resolved {
        action,
        choice: Choice {
            action: 0,
            weight,
            spaces,
            items,
            bytes,
            division,
            effect: Effect::Free,
            order: Order::Picked,
            follow: None,
        },
        label: Label {
            label: settings.text(&["name"], kind),
            kind: kind.to_owned(),
            class: OperationClass::named(kind),
            verifies: content.verify && kind == "read",
            weight,
            config: config(settings),
        },
    }
}

fn kind(element: &Element, remarks: &mut Remarks) -> &'static str {
    let Some(value) = element.value("type") else {
        let help = format!("add type=\"...\": one of {}", TYPES.join(", "));
        remarks.error(element.span.clone(), "`operation` has no `type`", help);
        return TYPES[0];
    };
    let written = value.text.trim();
    if let Some(kind) = TYPES.iter().find(|kind| **kind == written) {
        return kind;
    }
    let help = match nearest(written, TYPES) {
        _ if SPECIAL.contains(&written) => format!("give the work itself type=\"{written}\""),
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("valid types: {}", TYPES.join(", ")),
    };
    remarks.error(value.span.clone(), format!("operation type {} is unknown", shown(written)), help);
    TYPES[0]
}

/// sineio uploads part after part, so that a worker is one request at a time.
pub(super) fn multipart(storage: &Storage) -> Verb {
    Verb::PutMultipart { part_bytes: storage.part_bytes, parallel: 1 }
}

/// The entry that an operation cannot do without.
fn required<'s, 'a>(
    settings: &'s Settings<'a>,
    key: &str,
    element: &Element,
    kind: &str,
    remarks: &mut Remarks,
) -> Option<&'s Entry<'a>> {
    let entry = settings.find(&[key]);
    if entry.is_none() {
        let example = match key {
            "sizes" => "c(64)KB",
            "files" => "/path/to/directory",
            _ => "r(1,100)",
        };
        let message = format!("`{kind}` has no `{key}`");
        remarks.error(element.span.clone(), message, format!("add {key}={example} to its config"));
    }
    entry
}

fn numbers(settings: &Settings<'_>, key: &str, element: &Element, kind: &str, remarks: &mut Remarks) -> Pick {
    let entry = required(settings, key, element, kind, remarks);
    let pick = entry.and_then(|entry| {
        warn_ignored(entry, remarks);
        let read = selector::numbers(entry.value);
        read.map_err(|error| remarks.push(error.diagnostic(|part| entry.place(part)))).ok()
    });
    pick.unwrap_or(Pick::Constant(1))
}

/// The range that a special work goes through; `None`: none.
pub(super) fn range(
    settings: &Settings<'_>,
    key: &str,
    element: &Element,
    kind: &str,
    remarks: &mut Remarks,
) -> Option<(u64, u64)> {
    let entry = required(settings, key, element, kind, remarks)?;
    warn_ignored(entry, remarks);
    let read = selector::range(entry.value);
    read.map_err(|error| remarks.push(error.diagnostic(|part| entry.place(part)))).ok().flatten()
}

/// The sizes that are written.
pub(super) fn size(settings: &Settings<'_>, element: &Element, kind: &str, remarks: &mut Remarks) -> Size {
    let entry = required(settings, "sizes", element, kind, remarks);
    let size = entry.and_then(|entry| {
        warn_ignored(entry, remarks);
        let read = selector::size(entry.value);
        read.map_err(|error| remarks.push(error.diagnostic(|part| entry.place(part)))).ok()
    });
    size.unwrap_or(Size { pick: Pick::Constant(0), unit: 1 })
}

fn warn_ignored(entry: &Entry<'_>, remarks: &mut Remarks) {
    if let Some(ignored) = selector::ignored(entry.value) {
        let help =
            "c(n) is a constant and uses n alone, as in COSBench; use u(a,b) to spread evenly from a to b";
        remarks.warning(entry.place(ignored), "arguments of `c` after the first number are ignored", help);
        remarks.note(
            Differs::Conduct,
            "constant",
            "A selector `c(a,b)` is a constant, as in COSBench: it always gives a.",
        );
    }
}

/// The pick of a file's number. The range is open: the engine counts the files and wraps around.
fn file_pick(settings: &Settings<'_>, remarks: &mut Remarks) -> Pick {
    let (low, high) = (1, selector::OPEN_END);
    let Some(entry) = settings.find(&["fileselection"]) else { return Pick::Shared { low, high } };
    match entry.value.to_ascii_lowercase().as_bytes().first() {
        Some(b's') => Pick::Shared { low, high },
        Some(b'r') => Pick::Sequence { low, high },
        Some(b'u') => Pick::Uniform { low, high },
        Some(b'c') => Pick::Constant(1),
        _ => {
            let message = format!("`fileselection` {} is unknown", shown(entry.value));
            remarks.error(
                entry.span(),
                message,
                "write s or r (one after the other), u (at random) or c (the first)",
            );
            Pick::Constant(1)
        }
    }
}

fn files(settings: &Settings<'_>, element: &Element, kind: &str, remarks: &mut Remarks) -> PathBuf {
    required(settings, "files", element, kind, remarks).map_or_else(PathBuf::new, |entry| entry.value.into())
}

/// Reports what a division cannot do.
fn check_division(
    element: &Element,
    division: Division,
    spaces: &Pick,
    items: &Pick,
    workers: u32,
    remarks: &mut Remarks,
) {
    let (pick, what) = match division {
        Division::None => return,
        Division::Spaces => (spaces, "containers"),
        Division::Items => (items, "objects"),
    };
    match pick {
        Pick::Weighted(_) => {
            let help = "COSBench fails here; use a selector that is a range, or division=\"none\"";
            remarks.warning(
                element.span.clone(),
                format!("`h(...)` of {what} cannot be divided among workers"),
                help,
            );
        }
        Pick::Constant(_) | Pick::Shared { .. } => {}
        _ if pick.count() < u64::from(workers) => {
            let message = format!("{workers} workers share {} {what}: some are idle", pick.count());
            let help = "give at least one per worker, or use division=\"none\"; COSBench fails here";
            remarks.warning(element.span.clone(), message, help);
        }
        _ => {}
    }
}

/// Names of containers and objects; a key without a value is an empty prefix or suffix.
pub(super) fn naming(settings: &Settings<'_>) -> Naming {
    let text = |key: &str, default: &str| match settings.is_blank(&[key]) {
        true => String::new(),
        false => settings.text(&[key], default),
    };
    let default = Naming::default();
    Naming {
        container: None,
        container_prefix: text("cprefix", &default.container_prefix),
        container_suffix: text("csuffix", &default.container_suffix),
        object_prefix: text("oprefix", &default.object_prefix),
        object_suffix: text("osuffix", &default.object_suffix),
        existing: None,
    }
}

/// What is written, and what is checked.
pub(super) fn content(settings: &Settings<'_>, remarks: &mut Remarks) -> Content {
    if settings.find(&["hashcheck"]).is_some() {
        remarks.note(
            Differs::Figures,
            "hashcheck",
            "`hashcheck` is read as `hashCheck`, so content is verified; COSBench \
            accepts only the latter spelling and verifies nothing.",
        );
    }
    if settings.flag(&["hashCheck", "hashcheck"], remarks) {
        return Content { form: Form::Hashed, verify: true };
    }
    match settings.find(&["content"]).map(|entry| entry.value) {
        Some("zero") => Content { form: Form::Zero, verify: false },
        _ => Content::default(),
    }
}

/// The settings of an operation as one text, secrets left out.
pub(super) fn config(settings: &Settings<'_>) -> String {
    let entries = settings.effective();
    let shown = entries.iter().filter(|entry| !is_secret(entry.key));
    shown.map(|entry| format!("{}={}", entry.key, entry.value)).collect::<Vec<_>>().join(";")
}
