//! What the arms and loads of an evaluation were read from, and the plans that are made of it.

use super::arms::ArmSource;
use super::levels::{self, Places};
use super::scope::{self, Lent};
use super::table::{Log, Table};
use super::target::{self, Target};
use super::tree::{Node, Value};
use super::{Environment, workload};
use crate::cosbench::{self, Changes};
use crate::diagnostic::{Diagnostic, Severity};
use crate::fiofile;
use crate::object;
use crate::plan::{Drivers, Plan};
use crate::redact::is_secret;
use std::ops::Range;
use tidemark_measure::evaluation::Level;

/// Which levels loads can have, for messages.
const AXES_OF_LOADS: &str =
    "loads on objects have `workers` or `rate`; loads on volumes have `clients`, `depth` or `rate`";

/// What the arms and loads of an evaluation were read from.
#[derive(Clone, Debug)]
pub(crate) struct Documents {
    /// The evaluation's text.
    pub(super) text: String,
    /// The drivers of loads that do not say which.
    pub(super) drivers: Option<Drivers>,
    pub(super) arms: Vec<ArmSource>,
    pub(super) loads: Vec<LoadSource>,
}

/// What a load was read from.
#[derive(Clone, Debug)]
pub(super) struct LoadSource {
    pub(super) body: Body,
    /// The text and the path of the document that it refers to.
    pub(super) referred: Option<(String, String)>,
    /// Where the evaluation names it: the path, or the load itself.
    pub(super) place: Range<usize>,
    /// Where its levels stand in the evaluation.
    pub(super) levels: Places,
    /// Where its service level stands.
    pub(super) service_level: Range<usize>,
    /// Everything in it that can change the measurement, without its levels.
    pub(super) definition: String,
}

/// What a load's document is.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// The tree of a workload, in the evaluation or in a document of its own.
    Tree(Node),
    /// COSBench XML.
    Cosbench,
    /// A fio job file.
    Fio,
}

/// All values of a node but those under `without`, spelled so that different ones differ whatever the spacing and the
/// order of keys. Secrets are left out: the same key renewed changes nothing.
pub(super) fn canonical(node: &Node, without: &[&str]) -> String {
    match &node.value {
        Value::Nothing => "~".to_owned(),
        Value::Scalar(text) => format!("{}:{text}", text.len()),
        Value::List(nodes) => {
            let parts: Vec<String> = nodes.iter().map(|node| canonical(node, &[])).collect();
            format!("[{}]", parts.join(","))
        }
        Value::Map(entries) => {
            let kept = entries.iter().filter(|entry| !without.contains(&entry.key.as_str()));
            let mut parts: Vec<String> = kept
                .map(|entry| {
                    let value =
                        if is_secret(&entry.key) { "*".to_owned() } else { canonical(&entry.node, &[]) };
                    format!("{}:{}={value}", entry.key.len(), entry.key)
                })
                .collect();
            parts.sort_unstable();
            format!("{{{}}}", parts.join(","))
        }
    }
}

impl Documents {
    /// The evaluation's own text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Text and path of the document that a load refers to, if it does.
    pub(crate) fn source(&self, load: usize) -> Option<(&str, &str)> {
        let (text, path) = self.loads.get(load)?.referred.as_ref()?;
        Some((text, path))
    }

    /// All that makes an arm what it is.
    pub(crate) fn arm_definition(&self, arm: usize) -> &str {
        self.arms.get(arm).map_or("", |arm| &arm.definition)
    }

    /// All that makes a load what it is, but for its levels.
    pub(crate) fn load_definition(&self, load: usize) -> &str {
        self.loads.get(load).map_or("", |load| &load.definition)
    }

    /// The evaluation's `drivers` in a canonical spelling; empty without any.
    pub(crate) fn drivers_definition(&self) -> String {
        self.drivers.as_ref().map(|drivers| format!("{:?}", drivers.wanted)).unwrap_or_default()
    }

    /// Where a load's service level stands in the evaluation.
    pub(crate) fn service_level_place(&self, load: usize) -> Range<usize> {
        self.loads.get(load).map_or(0..0, |load| load.service_level.clone())
    }

    /// Where the evaluation names what a remark on another document is about: the level, or the document.
    pub(crate) fn place_of(&self, load: usize, level: &Level, message: &str) -> Range<usize> {
        let Some(load) = self.loads.get(load) else { return 0..0 };
        let about = level.iter().find(|(axis, _)| message.contains(&format!("the level's `{axis}`")));
        let known = about.and_then(|about| {
            load.levels.iter().find(|(axis, value, _)| (axis, value) == (&about.0, &about.1))
        });
        known.map_or(load.place.clone(), |(.., place)| place.clone())
    }

    /// What is wrong with an arm's targets, in the evaluation's text.
    pub(crate) fn check_targets(&self, arm: usize, environment: &Environment<'_>) -> Vec<Diagnostic> {
        let Some(arm) = self.arms.get(arm) else { return Vec::new() };
        let log = Log::default();
        for node in &arm.targets {
            self.read_target(arm, node, environment, &log);
        }
        log.close().0
    }

    fn read_target(
        &self,
        arm: &ArmSource,
        node: &Node,
        environment: &Environment<'_>,
        log: &Log,
    ) -> Option<Target> {
        // Asked for under its key, so that remarks name it.
        let place = arm.place.clone();
        let entry = super::tree::Entry { key: "target".to_owned(), key_span: place, node: node.clone() };
        let around = Node { value: Value::Map(vec![entry]), span: node.span.clone() };
        let mut table = Table::new("the arm", &around, &arm.place, &self.text, log);
        scope::read_target(&mut table, environment)
    }

    /// The target that an arm lends to loads that have none, and what is wrong with it.
    fn lent_target(
        &self,
        (arm, name): (usize, &str),
        volumes: bool,
        load: &LoadSource,
        environment: &Environment<'_>,
    ) -> (Option<Target>, Vec<Diagnostic>) {
        let has_own = matches!(&load.body, Body::Tree(root) if root.entry("target").is_some());
        let Some(arm) = self.arms.get(arm).filter(|_| !has_own) else { return (None, Vec::new()) };
        let Some(node) = arm.targets.iter().find(|node| target::is_volumes(node) == volumes) else {
            return (None, Vec::new());
        };
        let log = Log::default();
        let target = self.read_target(arm, node, environment, &log);
        let (mut remarks, failed) = log.close();
        if load.referred.is_some() {
            remarks = remarks.into_iter().map(|remark| elsewhere(remark, name)).collect();
        }
        // After an error, something that the rest can be read with.
        let nothing = || Target::Object(Box::new(object::Target::Nothing));
        (target.or_else(|| failed.then(nothing)), remarks)
    }

    /// The plan of one cell, and warnings; places are in the load's text.
    pub(crate) fn plan(
        &self,
        arm: (usize, &str),
        load: usize,
        level: &Level,
        seed: u64,
        environment: &Environment<'_>,
    ) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
        let Some(load) = self.loads.get(load) else {
            return Err(vec![Diagnostic::error(0..0, "there is no such load", "")]);
        };
        let text = load.referred.as_ref().map_or(self.text.as_str(), |(text, _)| text);
        let (mut remarks, planned) = match &load.body {
            Body::Tree(root) => {
                let volumes = wants_volumes(root);
                let (target, remarks) = self.lent_target(arm, volumes, load, environment);
                let place = if load.referred.is_some() { 0..0 } else { load.place.clone() };
                let kind = if volumes { "volumes" } else { "objects" };
                let message = format!("neither the load nor the arm `{}` has a `target` for {kind}", arm.1);
                let lent = Lent {
                    seed: Some(seed),
                    target,
                    missing: Some((place, message)),
                    drivers: self.drivers.clone(),
                };
                (remarks, tree_plan(root, text, level, load, lent, environment))
            }
            Body::Cosbench => {
                let (target, remarks) = self.lent_target(arm, false, load, environment);
                (remarks, cosbench_plan(text, level, seed, target, environment))
            }
            Body::Fio => {
                let read = fiofile::read(text);
                (Vec::new(), read.map(|(plan, warnings)| (plan.with_seed(seed), warnings)))
            }
        };
        let planned = planned.map(|(mut plan, warnings)| {
            if let (Body::Cosbench | Body::Fio, Some(drivers)) = (&load.body, &self.drivers) {
                plan.drivers = drivers.clone();
            }
            (plan, warnings)
        });
        let failed = remarks.iter().any(|remark| remark.severity == Severity::Error);
        match planned {
            Ok((plan, warnings)) => {
                remarks.extend(warnings);
                if failed { Err(remarks) } else { Ok((plan, remarks)) }
            }
            Err(errors) => {
                remarks.extend(errors);
                Err(remarks)
            }
        }
    }
}

/// A remark on an arm's target, for a text in which the arm is not.
fn elsewhere(remark: Diagnostic, arm: &str) -> Diagnostic {
    Diagnostic { message: format!("the target of the arm `{arm}`: {}", remark.message), span: 0..0, ..remark }
}

/// Whether the loads of a workload's tree are on volumes: they have a `pattern`.
fn wants_volumes(root: &Node) -> bool {
    let on_volumes = |work: &Node| {
        let load = work.entry("load");
        load.is_some_and(|load| load.node.entry("pattern").is_some()) || work.entry("precondition").is_some()
    };
    let stages = root.entry("stages").map_or(&[][..], |stages| stages.node.items());
    stages.iter().any(|stage| {
        on_volumes(stage)
            || stage.entry("works").is_some_and(|works| works.node.items().iter().any(on_volumes))
    })
}

fn tree_plan(
    root: &Node,
    text: &str,
    level: &Level,
    load: &LoadSource,
    lent: Lent,
    environment: &Environment<'_>,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (mut root, in_place) = (root.clone(), load.referred.is_none());
    // The places of levels are places in the evaluation.
    let none = Places::new();
    let (put, loads) = levels::apply(&mut root, level, if in_place { &load.levels } else { &none });
    let log = Log::default();
    let place = if in_place { root.span.clone() } else { 0..0 };
    if loads == 0 && !level.is_empty() {
        let help = "give it a stage with a `load`, or no levels: `levels: {}`";
        log.error(&place, "the levels have no effect: no stage has a `load`", help);
    }
    let what = if in_place { "the load" } else { "the document" };
    let plan = workload(Table::new(what, &root, &place, text, &log), environment, text, lent);
    let (mut remarks, failed) = log.close();
    remarks.iter_mut().for_each(|remark| explain(remark, level, &put));
    if failed { Err(remarks) } else { Ok((plan, remarks)) }
}

/// Says of a remark on a value that a level has put there that it is the level's.
fn explain(remark: &mut Diagnostic, level: &Level, put: &[Range<usize>]) {
    if !put.contains(&remark.span) {
        return;
    }
    for (axis, value) in level {
        let Some(rest) = remark.message.strip_prefix(&format!("`{axis}`")) else { continue };
        if rest.contains("does not apply") || rest.contains("is not a key") {
            remark.help = AXES_OF_LOADS.to_owned();
        }
        remark.message = format!("the level's `{axis}` ({value}){rest}");
        return;
    }
}

fn cosbench_plan(
    text: &str,
    level: &Level,
    seed: u64,
    target: Option<Target>,
    environment: &Environment<'_>,
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut changes = Changes { seed: Some(seed), ..Changes::default() };
    if let Some(Target::Object(target)) = target {
        changes.target = Some(object::Target::clone(&target));
    }
    for (axis, value) in level {
        let number = levels::number(axis, value).map_err(|problem| {
            let message = format!("the level's `{axis}`: {}", problem.message);
            vec![Diagnostic::error(0..0, message, problem.help)]
        })?;
        match axis.as_str() {
            "workers" => changes.workers = Some(number as u32),
            "rate" => changes.rate = Some(number),
            _ => {
                let message = format!("the level's `{axis}` ({value}) does not apply to a COSBench file");
                return Err(vec![Diagnostic::error(0..0, message, "use `workers` or `rate`")]);
            }
        }
    }
    let (plan, warnings) = cosbench::read_with(text, environment, changes)?;
    debug_assert!(warnings.iter().all(|remark| remark.severity == Severity::Warning));
    Ok((plan, warnings))
}
