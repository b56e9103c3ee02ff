//! The outer elements: workload, workflow, stages, and what each inherits from the one around it.

use super::config::{Settings, Vocabulary};
use super::remarks::{Remarks, shown};
use super::storage::{self, Storage};
use super::tree::Element;
use super::work::{self, Turn};
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use tidemark_keys::nearest::nearest;
use tidemark_measure::units;
use tidemark_object::job::Target;
use tidemark_object::secrets::MISDIRECTED;
use tidemark_plan::defaults;
use tidemark_plan::plan::{Drivers, Observe, OnFailure, Plan, Stage, Work};
use tidemark_plan::room::{self, Room};
use tidemark_plan::yaml::environment::given_up;

/// What an element may contain.
struct Shape {
    attributes: &'static [&'static str],
    children: &'static [&'static str],
}

const WORKLOAD: Shape = Shape {
    attributes: &["name", "description", "trigger", "config"],
    children: &["auth", "storage", "workflow"],
};
const WORKFLOW: Shape = Shape { attributes: &["config"], children: &["workstage"] };
const STAGE: Shape = Shape {
    attributes: &["name", "closuredelay", "trigger", "config"],
    children: &["auth", "storage", "work"],
};
const WORK: Shape = Shape {
    attributes: &[
        "name",
        "type",
        "workers",
        "interval",
        "division",
        "runtime",
        "rampup",
        "rampdown",
        "totalOps",
        "totalBytes",
        "afr",
        "driver",
        "config",
    ],
    children: &["auth", "storage", "operation"],
};
const OPERATION: Shape = Shape { attributes: &["type", "ratio", "division", "config", "id"], children: &[] };
const ADAPTER: Shape = Shape { attributes: &["type", "config"], children: &[] };

/// Keys of the config of a workload; all but the first may stand in every config further in.
const WORKLOAD_KEYS: [&str; 18] = [
    "seed",
    "containers",
    "objects",
    "sizes",
    "cprefix",
    "csuffix",
    "oprefix",
    "osuffix",
    "chunked",
    "content",
    "hashCheck",
    "hashcheck",
    "createContainer",
    "deleteContainer",
    "files",
    "fileselection",
    "name",
    "histogram",
];
const OPERATION_KEYS: &[&str] = WORKLOAD_KEYS.split_at(1).1;

/// The words of configs outside `auth` and `storage`.
const WORDS: Vocabulary = Vocabulary { keys: OPERATION_KEYS, owner: "an operation" };

/// What holds at one place of the document: own settings and those of all elements around.
#[derive(Clone, Default)]
pub(super) struct Scope<'a> {
    pub(super) settings: Settings<'a>,
    auth: Option<&'a Element>,
    storage: Option<&'a Element>,
}

impl<'a> Scope<'a> {
    /// The scope inside an element: configs are joined, `auth` and `storage` replaced.
    pub(super) fn within(&self, element: &'a Element, remarks: &mut Remarks) -> Self {
        let words =
            if element.name == "workload" { Vocabulary { keys: &WORKLOAD_KEYS, ..WORDS } } else { WORDS };
        Self {
            settings: self.settings.within(element, words, remarks),
            auth: element.child("auth").or(self.auth),
            storage: element.child("storage").or(self.storage),
        }
    }
}

/// What is collected while the elements are read.
pub(super) struct Reader<'a> {
    pub(super) remarks: Remarks,
    /// Targets by the places of their storage and auth.
    storages: HashMap<(usize, usize), Storage>,
    /// The target that replaces the document's, if any.
    target: Option<Target>,
    /// Whether somebody still waits for the document.
    waited_for: &'a dyn Fn() -> bool,
    /// What the works may still grow to.
    room: Room,
    /// Works without a storage: how many, and the name and place of the first.
    unstored: Option<(u32, String, Range<usize>)>,
}

impl<'a> Reader<'a> {
    /// A reader of a document, as long as somebody waits for it, with a target that replaces the document's, if any.
    pub(super) fn new(target: Option<Target>, waited_for: &'a dyn Fn() -> bool) -> Self {
        Self {
            remarks: Remarks::default(),
            storages: HashMap::new(),
            target,
            waited_for,
            room: Room::default(),
            unstored: None,
        }
    }

    /// Whether another target replaces the document's.
    pub(super) fn has_target(&self) -> bool {
        self.target.is_some()
    }

    /// The storage that works in this scope talk to; after an error, one that does nothing.
    fn storage(&mut self, scope: &Scope<'_>) -> Storage {
        let place = |element: Option<&Element>| element.map_or(0, |element| element.span.start);
        let Self { remarks, storages, target, .. } = self;
        let resolve = || match target {
            Some(target) => storage::on(target.clone(), scope.storage, remarks),
            None => {
                let found = storage::resolve(scope.storage, scope.auth, remarks);
                let found = found.unwrap_or_else(Storage::nothing);
                if let (Some(message), Some(element)) = (found.target.misdirected(), scope.storage) {
                    remarks.error(element.span.clone(), message, MISDIRECTED);
                }
                found
            }
        };
        storages.entry((place(scope.storage), place(scope.auth))).or_insert_with(resolve).clone()
    }

    /// The storage of a work. COSBench's default does nothing, successfully: who did not ask for it should know.
    pub(super) fn storage_of(&mut self, work: &Element, scope: &Scope<'_>) -> Storage {
        if scope.storage.is_none() && !self.has_target() {
            let name = || work.value("name").or(work.value("type")).map_or("", |value| value.text.trim());
            let first = || (0, name().to_owned(), work.span.clone());
            self.unstored.get_or_insert_with(first).0 += 1;
        }
        self.storage(scope)
    }

    /// Warns of works without a storage.
    fn warn_of_unstored(&mut self) {
        let Some((count, name, span)) = self.unstored.take() else { return };
        let message = match count {
            1 => format!(
                "work {} has no `storage`: it goes to `none`, which does nothing and succeeds",
                shown(&name)
            ),
            more => format!(
                "work {} and {} more have no `storage`: they go to `none`, which does nothing and succeeds",
                shown(&name),
                more - 1
            ),
        };
        let help = "add <storage type=\"...\"/> to the workload, the stage or the work; type=\"none\" if that is meant";
        self.remarks.warning(span, message, help);
    }

    /// The whole document; after an error, a plan of no use. The seed holds unless the document has its own.
    pub(super) fn workload(&mut self, root: &Element, seed: u64) -> Plan {
        if root.name != "workload" {
            let help = "a COSBench file begins with `<workload name=\"...\">`";
            self.remarks.error(root.span.clone(), format!("the root element is {}", shown(&root.name)), help);
        } else {
            self.check(root);
        }
        let scope = Scope::default().within(root, &mut self.remarks);
        let stages = self.workflow(root, &scope);
        self.warn_of_unstored();
        Plan {
            trigger: root.value("trigger").map(|value| value.text.trim().to_owned()),
            name: self.name(root),
            description: root
                .value("description")
                .map_or(String::new(), |value| value.text.trim().to_owned()),
            seed: scope.settings.number(&["seed"], &mut self.remarks).unwrap_or(seed),
            stages,
            notes: Vec::new(),
            observe: Observe::default(),
            drivers: Drivers::default(),
        }
    }

    /// Whether there are more of these than anybody means; an error then.
    fn are_too_many(&mut self, element: &Element, child: &str, most: usize) -> bool {
        let count = element.children.iter().filter(|known| known.name == child).count();
        if count > most {
            let (count, most) = (units::count(count as u64), units::count(most as u64));
            let message = format!("`{}` has {count} elements `{child}`; the limit is {most}", element.name);
            self.remarks.error(element.span.clone(), message, "use fewer");
        }
        count > most
    }

    /// Whether a document goes on to be read; an error if not.
    fn goes_on(&mut self) -> bool {
        let goes_on = (self.waited_for)();
        if !goes_on && !self.remarks.failed() {
            self.remarks.push(given_up());
        }
        goes_on
    }

    /// Whether there is room for these works; an error if not.
    fn fit(&mut self, element: &Element, works: &[(Turn, Work)]) -> bool {
        let fit = works.iter().all(|(_, work)| self.room.take(work));
        if !fit {
            let most = units::bytes(room::MOST as u64);
            let message = format!("all works of the document together take more than {most}");
            self.remarks.error(element.span.clone(), message, "use fewer works, or shorter configs");
        }
        fit
    }

    fn workflow(&mut self, root: &Element, scope: &Scope<'_>) -> Vec<Stage> {
        let (mut stages, mut number) = (Vec::new(), 0);
        for workflow in root.children.iter().filter(|child| child.name == "workflow") {
            let scope = scope.within(workflow, &mut self.remarks);
            if self.are_too_many(workflow, "workstage", defaults::MOST_STAGES) {
                return stages;
            }
            for stage in workflow.children.iter().filter(|child| child.name == "workstage") {
                if !self.goes_on() {
                    return stages;
                }
                number += 1;
                self.stage(stage, number, &scope, &mut stages);
            }
        }
        if stages.is_empty() {
            let help = "add <workflow><workstage name=\"...\">...</workstage></workflow>";
            self.remarks.error(root.span.clone(), "the workload has no `workstage`", help);
        }
        stages
    }

    fn stage(&mut self, element: &Element, number: usize, scope: &Scope<'_>, stages: &mut Vec<Stage>) {
        let scope = scope.within(element, &mut self.remarks);
        let name = self.name(element);
        if let Some(value) = element.value("name").filter(|value| value.text.contains(';')) {
            self.remarks.error(
                value.span.clone(),
                "a stage's name contains `;`",
                "remove it: COSBench rejects it",
            );
        }
        let pause_s = self.integer(element, "closuredelay", 0..=i64::from(i32::MAX)).unwrap_or(0);
        let mut stage = Stage {
            name,
            number: Some(number),
            works: Vec::new(),
            pause_ns: seconds(pause_s),
            trigger: element.value("trigger").map(|value| value.text.trim().to_owned()),
            // COSBench runs the following stages whatever became of this one. Users rely on it: their
            // cleanup is an ordinary stage at the end.
            on_failure: OnFailure::Continue,
            cell: None,
        };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let only_waits = stage.name == "delay" && pause_s > 0;
        let works = element.children.iter().filter(|child| child.name == "work");
        let too_many = self.are_too_many(element, "work", defaults::MOST_WORKS);
        for found in works.clone().filter(|_| !only_waits && !too_many) {
            if !self.goes_on() {
                break;
            }
            let made = work::resolve(found, &scope, self);
            if !self.fit(found, &made) {
                break;
            }
            for (turn, work) in made {
                match turn {
                    Turn::Before => before.push(work),
                    Turn::With => stage.works.push(work),
                    Turn::After => after.push(work),
                }
            }
        }
        if works.count() == 0 {
            self.remarks.error(
                element.span.clone(),
                format!("stage {} has no `work`", shown(&stage.name)),
                "add one",
            );
        } else if stage.works.is_empty() && pause_s == 0 {
            let help = "add closuredelay=\"seconds\" to the stage";
            self.remarks.warning(
                element.span.clone(),
                format!("stage {} has neither works nor a delay", shown(&stage.name)),
                help,
            );
        }
        let extra = |works: Vec<_>, what: &str| {
            let name = format!("{}-{what}-containers", stage.name);
            let stage = Stage {
                name,
                number: Some(number),
                works,
                pause_ns: 0,
                trigger: None,
                on_failure: OnFailure::Continue,
                cell: None,
            };
            (!stage.works.is_empty()).then_some(stage)
        };
        let (before, after) = (extra(before, "create"), extra(after, "delete"));
        stages.extend(before.into_iter().chain([stage]).chain(after));
    }

    /// The name that an element must have.
    fn name(&mut self, element: &Element) -> String {
        if let Some(name) = element.value("name") {
            return name.text.trim().to_owned();
        }
        let message = format!("`{}` has no `name`", element.name);
        self.remarks.error(element.span.clone(), message, "add name=\"...\"");
        String::new()
    }

    /// A whole number among the attributes; `None` when it is not there, or not one, which is an error.
    pub(super) fn integer(
        &mut self,
        element: &Element,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let value = element.value(name)?;
        let (low, high) = (*range.start(), *range.end());
        match value.text.trim().parse::<i64>() {
            Ok(number) if range.contains(&number) => return Some(number),
            Ok(number) => {
                let message = format!("`{name}` is {number}, out of range");
                self.remarks.error(
                    value.span.clone(),
                    message,
                    format!("give a number from {low} to {high}"),
                );
            }
            Err(_) => {
                let message = format!("`{name}` is not a whole number: {}", shown(value.text.trim()));
                self.remarks.error(value.span.clone(), message, "write digits only; times are in seconds");
            }
        }
        None
    }

    /// Warns about attributes that are not known, and refuses elements that are not.
    fn check(&mut self, element: &Element) {
        let shape = match element.name.as_str() {
            "workload" => &WORKLOAD,
            "workflow" => &WORKFLOW,
            "workstage" => &STAGE,
            "work" => &WORK,
            "operation" => &OPERATION,
            _ => &ADAPTER,
        };
        for attribute in &element.attributes {
            let name = attribute.name.as_str();
            let foreign = name.starts_with("xmlns") || name.starts_with("xsi:");
            if shape.attributes.contains(&name) || foreign || self.remarks.full() {
                continue;
            }
            let help = match nearest(name, shape.attributes.iter().copied()) {
                Some(near) => format!("did you mean `{near}`? Names are case-sensitive"),
                None => format!("valid attributes: {}", shape.attributes.join(", ")),
            };
            let message = format!("{} is not an attribute of `{}` and is ignored", shown(name), element.name);
            self.remarks.warning(attribute.span.clone(), message, help);
        }
        for child in &element.children {
            if shape.children.contains(&child.name.as_str()) {
                self.check(child);
            } else if !self.remarks.full() {
                let help = match nearest(&child.name, shape.children.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if shape.children.is_empty() => "remove it".to_owned(),
                    None => format!("it may contain: {}", shape.children.join(", ")),
                };
                let message = format!("{} is not allowed in `{}`", shown(&child.name), element.name);
                self.remarks.error(child.span.clone(), message, help);
            }
        }
        for name in ["auth", "storage", "workflow"] {
            let mut twice = element.children.iter().filter(|child| child.name == name).skip(1);
            if let Some(second) = twice.next() {
                let message = format!("`{}` has more than one `{name}`", element.name);
                self.remarks.error(second.span.clone(), message, "keep one and comment out the others");
            }
        }
    }
}

/// Seconds in nanoseconds.
pub(super) fn seconds(seconds: i64) -> u64 {
    seconds.max(0).unsigned_abs().saturating_mul(1_000_000_000)
}
