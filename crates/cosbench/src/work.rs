//! A work: normal ones with their mix of operations, and the special ones that make and remove the data set.

use super::config::Settings;
use super::operation;
use super::remarks::{Differs, Remarks, shown};
use super::storage::Storage;
use super::tree::Element;
use super::workload::{Reader, Scope, seconds};
use std::collections::HashMap;
use tidemark_keys::nearest::nearest;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, Division, Size, SourcePlan};
use tidemark_load::stopping::Stop;
use tidemark_load::work::Work as Load;
use tidemark_measure::pick::Pick;
use tidemark_object::job::{Action, Emptied, Job, Keeps, Verb};
use tidemark_plan::defaults;
use tidemark_plan::plan::{Label, OperationClass, Work, WorkKind};

/// More cannot add up to 100.
const MOST_OPERATIONS: usize = 100;

/// COSBench's `afr` of normal works; that of special works is 0.
const NORMAL_AFR: u32 = 200_000;

/// Deletes empty containers.
const DELETE_CONTAINER: Verb = Verb::DeleteContainer { empty: Emptied::Never };

/// When a work runs, seen from its stage. Works that create or delete the containers of another cannot run
/// at the same time, so they get a stage of their own before or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Before,
    With,
    After,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Normal,
    Init,
    Prepare,
    MultipartPrepare,
    Cleanup,
    Dispose,
    Delay,
}

const TYPES: [(&str, Type); 8] = [
    ("normal", Type::Normal),
    ("main", Type::Normal),
    ("init", Type::Init),
    ("prepare", Type::Prepare),
    ("mprepare", Type::MultipartPrepare),
    ("cleanup", Type::Cleanup),
    ("dispose", Type::Dispose),
    ("delay", Type::Delay),
];

/// Resolves a work: none for one that only waits, more than one when it creates or deletes containers, too.
pub(super) fn resolve(element: &Element, scope: &Scope<'_>, reader: &mut Reader<'_>) -> Vec<(Turn, Work)> {
    let scope = scope.within(element, &mut reader.remarks);
    reader.integer(element, "interval", 1..=i64::from(i32::MAX));
    let (name, kind) = kind(element, reader);
    if kind == Type::Delay {
        return Vec::new();
    }
    let workers = workers(element, reader);
    let storage = reader.storage_of(element, &scope);
    match kind {
        Type::Normal => vec![(Turn::With, normal(element, &scope, storage, workers, reader))],
        _ => special(element, &scope, kind, name, &storage, workers, reader),
    }
}

fn kind(element: &Element, reader: &mut Reader<'_>) -> (&'static str, Type) {
    let Some(value) = element.value("type") else { return TYPES[0] };
    let written = value.text.trim();
    if let Some(found) = TYPES.iter().find(|(name, _)| *name == written) {
        return *found;
    }
    let message = format!("work type {} is unknown", shown(written));
    match nearest(written, TYPES.map(|(name, _)| name)) {
        Some(near) => reader.remarks.error(value.span.clone(), message, format!("did you mean `{near}`?")),
        None => {
            let help = "the work runs as a normal one, as in COSBench; remove the attribute";
            reader.remarks.warning(value.span.clone(), message, help);
        }
    }
    TYPES[0]
}

fn workers(element: &Element, reader: &mut Reader<'_>) -> u32 {
    if element.value("workers").is_none() {
        let message = "`work` has no `workers`";
        reader.remarks.error(
            element.span.clone(),
            message,
            "add workers=\"...\", the number of logical clients",
        );
    }
    reader
        .integer(element, "workers", 1..=i64::from(defaults::MOST_WORKERS))
        .map_or(1, |workers| workers as u32)
}

/// Sets the workers of every normal work.
pub(super) fn set_workers(element: &mut Element, workers: u32) {
    let is_special = |kind: &str| TYPES.iter().any(|(name, known)| *name == kind && *known != Type::Normal);
    let kind = element.value("type").map_or("", |value| value.text.trim());
    if element.name == "work" && !is_special(kind) {
        element.set("workers", &workers.to_string());
    }
    element.children.iter_mut().for_each(|child| set_workers(child, workers));
}

fn failures_allowed(element: &Element, default: u32, reader: &mut Reader<'_>) -> u32 {
    match reader.integer(element, "afr", -1..=1_000_000) {
        Some(afr) if afr >= 0 => afr as u32,
        _ => default,
    }
}

/// The driver that a work is pinned to; `none` means any, as in COSBench.
fn driver(element: &Element) -> Option<String> {
    let name = element.value("driver")?.text.trim();
    (name != "none").then(|| name.to_owned())
}

fn load(workers: u32, stop: Stop, source: SourcePlan, actions: usize) -> Load {
    let actions = actions.min(usize::from(u16::MAX)) as u16;
    // Seed and stream are the document's business: the reader fills them in at the end.
    Load {
        workers,
        depth: 1,
        connections: None,
        pacing: Pacing::BACK_TO_BACK,
        stop,
        source,
        finale: None,
        copies: 1,
        actions,
        seed: 0,
        stream: [0, 0],
    }
}

fn normal(
    element: &Element,
    scope: &Scope<'_>,
    storage: Storage,
    workers: u32,
    reader: &mut Reader<'_>,
) -> Work {
    let name = element.value("name").map_or(String::new(), |name| name.text.trim().to_owned());
    if name.is_empty() {
        reader.remarks.error(element.span.clone(), "`work` has no `name`", "add name=\"...\"");
    }
    let stop = stop(element, reader);
    let division = division(element, reader).unwrap_or_default();
    let mut parts = Vec::new();
    let mut total = 0;
    for found in element.children.iter().filter(|child| child.name == "operation") {
        let ratio = reader.integer(found, "ratio", 0..=100).unwrap_or(100);
        total += ratio;
        if ratio > 0 && parts.len() < MOST_OPERATIONS {
            let division = self::division(found, reader).unwrap_or(division);
            let scope = scope.within(found, &mut reader.remarks);
            parts.push(operation::resolve(
                found,
                &scope.settings,
                &storage,
                division,
                workers,
                ratio,
                reader,
            ));
        }
    }
    if total != 100 {
        let message = match parts.is_empty() {
            true => format!("work {} has no `operation`", shown(&name)),
            false => format!("the ratios of work {} add up to {total}", shown(&name)),
        };
        let help = "the ratios of a work's operations must add up to 100; one without `ratio` has 100";
        reader.remarks.error(element.span.clone(), message, help);
    }
    let (mut actions, mut choices, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for (index, part) in parts.into_iter().enumerate() {
        actions.push(part.action);
        choices.push(Choice { action: index as u16, ..part.choice });
        labels.push(part.label);
    }
    number(&mut labels);
    Work {
        name,
        kind: WorkKind::Normal,
        load: load(workers, stop, SourcePlan::Mix { choices, pool: None, deck: false }, actions.len()),
        job: tidemark_plan::job::Job::new(Job { target: storage.target, actions }),
        labels,
        allowed_failures_per_million: failures_allowed(element, NORMAL_AFR, reader),
        driver: driver(element),
    }
}

/// Operations of one type without a name are numbered: `1-read`, `2-read`.
fn number(labels: &mut [Label]) {
    let mut counts: HashMap<String, (u32, u32)> = HashMap::new();
    for label in labels.iter().filter(|label| label.label == label.kind) {
        counts.entry(label.kind.clone()).or_default().0 += 1;
    }
    for label in labels.iter_mut().filter(|label| label.label == label.kind) {
        if let Some((_, next)) = counts.get_mut(&label.kind).filter(|(all, _)| *all > 1) {
            *next += 1;
            label.label = format!("{next}-{}", label.kind);
        }
    }
}

fn stop(element: &Element, reader: &mut Reader<'_>) -> Stop {
    let mut limit =
        |name: &str, most: i64| reader.integer(element, name, 0..=most).filter(|limit| *limit > 0);
    let int = i64::from(i32::MAX);
    let window = limit("runtime", int);
    let (operations, bytes) = (limit("totalOps", int), limit("totalBytes", i64::MAX));
    let (warm_up, ramp_down) = (limit("rampup", int), limit("rampdown", int));
    if window.is_none() && operations.is_none() && bytes.is_none() {
        let help = "set runtime=\"seconds\", totalOps=\"number\" or totalBytes=\"number\"";
        reader.remarks.error(element.span.clone(), "the work has no end condition", help);
    }
    Stop {
        steady: None,
        until_steady_ns: None,
        ramp_up_ns: 0,
        // COSBench's rampup is no ramp: all workers start at once and are not measured at first.
        warm_up_ns: seconds(warm_up.unwrap_or(0)),
        window_ns: window.map(seconds),
        ramp_down_ns: seconds(ramp_down.unwrap_or(0)),
        operations: operations.map(i64::unsigned_abs),
        bytes: bytes.map(i64::unsigned_abs),
        drain_ns: 0,
        give_up_ns: None,
    }
}

fn division(element: &Element, reader: &mut Reader<'_>) -> Option<Division> {
    let value = element.value("division")?;
    match value.text.trim() {
        "none" => Some(Division::None),
        "container" => Some(Division::Spaces),
        "object" => Some(Division::Items),
        other => {
            let help = match nearest(other, ["none", "container", "object"]) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write none, container or object".to_owned(),
            };
            reader.remarks.error(value.span.clone(), format!("division {} is unknown", shown(other)), help);
            None
        }
    }
}

fn special(
    element: &Element,
    scope: &Scope<'_>,
    kind: Type,
    type_name: &'static str,
    storage: &Storage,
    workers: u32,
    reader: &mut Reader<'_>,
) -> Vec<(Turn, Work)> {
    let scope = normalised(element, scope, type_name, reader);
    let settings = &scope.settings;
    let objects = matches!(kind, Type::Prepare | Type::MultipartPrepare | Type::Cleanup);
    let writes = matches!(kind, Type::Prepare | Type::MultipartPrepare);
    let remarks = &mut reader.remarks;
    let spaces = operation::range(settings, "containers", element, type_name, remarks);
    let items = objects.then(|| operation::range(settings, "objects", element, type_name, remarks));
    let (verb, kind, sample) = match kind {
        Type::Init | Type::Normal | Type::Delay => {
            (Verb::CreateContainer { keeps: Keeps::Latest }, WorkKind::Init, "init")
        }
        Type::Prepare => {
            let chunked = settings.flag(&["chunked"], remarks);
            (Verb::Put { chunked, if_absent: false }, WorkKind::Prepare, "write")
        }
        Type::MultipartPrepare => (operation::multipart(storage), WorkKind::Prepare, "mwrite"),
        Type::Cleanup => (Verb::Clear { versions: false }, WorkKind::Cleanup, "delete"),
        // What is in them and was not cleaned up may be somebody else's.
        Type::Dispose => (DELETE_CONTAINER, WorkKind::Dispose, "dispose"),
    };
    let bytes = match writes {
        true => operation::size(settings, element, type_name, remarks),
        false => Size { pick: Pick::Constant(0), unit: 1 },
    };
    let extra = extra(kind, settings, remarks);
    let content = operation::content(settings, remarks);
    let naming = operation::naming(settings);
    let name = element.value("name").map_or(type_name.to_owned(), |name| name.text.trim().to_owned());
    let (label, config) = (settings.text(&["name"], type_name), operation::config(settings));
    let allowed = failures_allowed(element, 0, reader);
    let work = |verb, kind, (label, type_name, sample): (String, &str, &str), items: Option<_>, bytes| {
        // A range that is empty, `r(0,0)`, is nothing to do; without one the containers themselves are meant.
        let spaces = if items == Some(None) { None } else { spaces };
        let source = SourcePlan::Scan { action: 0, spaces, items: items.flatten(), bytes };
        let action = Action { verb, naming: naming.clone(), content };
        Work {
            name: name.clone(),
            kind,
            load: load(workers, Stop::default(), source, 1),
            job: tidemark_plan::job::Job::new(Job { target: storage.target.clone(), actions: vec![action] }),
            labels: vec![Label {
                label,
                kind: type_name.to_owned(),
                class: OperationClass::named(sample),
                verifies: false,
                weight: 100.0,
                config: config.clone(),
            }],
            allowed_failures_per_million: allowed,
            driver: driver(element),
        }
    };
    let mut works = vec![(Turn::With, work(verb, kind, (label, type_name, sample), items, bytes))];
    if let Some((turn, verb, kind, sample)) = extra {
        let none = Size { pick: Pick::Constant(0), unit: 1 };
        works.push((turn, work(verb, kind, (sample.to_owned(), sample, sample), None, none)));
    }
    works
}

/// What else a special work does before or after its own: COSBench's `createContainer`, `deleteContainer`.
fn extra(
    kind: WorkKind,
    settings: &Settings<'_>,
    remarks: &mut Remarks,
) -> Option<(Turn, Verb, WorkKind, &'static str)> {
    match kind {
        WorkKind::Prepare if settings.flag(&["createContainer"], remarks) => {
            remarks.note(
                Differs::Conduct,
                "create-containers",
                "`createContainer=true`: Tidemark creates the containers in a \
                stage of their own before it writes the objects; in COSBench every worker requests each \
                container that it uses.",
            );
            Some((Turn::Before, Verb::CreateContainer { keeps: Keeps::Latest }, WorkKind::Init, "init"))
        }
        WorkKind::Cleanup if settings.flag(&["deleteContainer"], remarks) => {
            remarks.note(
                Differs::Conduct,
                "delete-containers",
                "`deleteContainer=true`: Tidemark deletes the containers in a \
                stage of their own after all objects; COSBench tries while other workers may still be \
                deleting.",
            );
            Some((Turn::After, DELETE_CONTAINER, WorkKind::Dispose, "dispose"))
        }
        _ => None,
    }
}

/// The scope of a special work. COSBench ignores its operations, but its archived files have one of the
/// work's own type that repeats the config: that one counts, others are warned about.
fn normalised<'a>(
    element: &'a Element,
    scope: &Scope<'a>,
    type_name: &str,
    reader: &mut Reader<'_>,
) -> Scope<'a> {
    if reader.integer(element, "runtime", 0..=i64::from(i32::MAX)).is_some_and(|runtime| runtime > 0) {
        let help = "remove it; the work ends when its range is done";
        reader.remarks.warning(
            element.span.clone(),
            format!("`runtime` of a `{type_name}` work is ignored"),
            help,
        );
    }
    let mut scope = scope.clone();
    for found in element.children.iter().filter(|child| child.name == "operation") {
        if found.value("type").is_some_and(|value| value.text.trim() == type_name) {
            scope = scope.within(found, &mut reader.remarks);
        } else {
            let message = format!("an `operation` in a `{type_name}` work is ignored");
            reader.remarks.warning(found.span.clone(), message, "use the work's own `config` instead");
        }
    }
    scope
}
