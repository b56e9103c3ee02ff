//! What the arms and loads of an evaluation were read from, and the plans that are made of it.

use super::arms::{self, ARM, ArmSource};
use super::levels::{self, Places, Put, Setting};
use super::scope::{self, Lent, TARGET};
use super::tuning;
use super::{Environment, workload};
use crate::engine::{Engine, Target};
use crate::evaluation::Arm;
use crate::level::not_taken;
use crate::plan::{Drivers, Observe, Plan};
use crate::redact::is_secret;
use crate::registry::{Changes, Format, Registry};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tidemark_keys::diagnostic::{Code, Diagnostic, Severity};
use tidemark_keys::tree::{Entry, Node, Value};
use tidemark_keys::{AnyKey, Document, Table};
use tidemark_measure::axis::Axis;
use tidemark_measure::evaluation::Level;

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
#[derive(Clone)]
pub(super) enum Body {
    /// The tree of a workload, in the evaluation or in a document of its own.
    Tree(Node),
    /// A document of another format.
    Other(Arc<dyn Format>),
}

impl Body {
    /// The document's format, if it runs unchanged: it cannot have levels then.
    pub(super) fn fixed(&self) -> Option<&'static str> {
        match self {
            Body::Tree(_) => None,
            Body::Other(format) => format.fixed(),
        }
    }
}

impl Body {
    /// The engine of a document of another format; empty of a tree, whose works have engines of their own.
    pub(super) fn engine(&self) -> &'static str {
        match self {
            Body::Tree(_) => "",
            Body::Other(format) => format.engine(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Tree(root) => root.fmt(formatter),
            Body::Other(format) => formatter.write_str(format.name()),
        }
    }
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
    /// Reads the first arm again under another name, with these settings.
    ///
    /// # Errors
    /// What is wrong with it, in the evaluation's text.
    pub(crate) fn add_arm(
        &mut self,
        name: &str,
        settings: &[(String, String)],
        environment: &Environment<'_>,
    ) -> Result<Arm, Vec<Diagnostic>> {
        let Some(first) = self.arms.first() else {
            return Err(vec![Diagnostic::error(0..0, "there is no arm to begin with", "")]);
        };
        let mut node = tuning::arm_with(&first.node, settings);
        if let Some(entry) = node.entry_mut("name") {
            entry.node.value = Value::Scalar(name.to_owned());
        }
        let document = Document::new(&self.text, environment.outside());
        let table = Table::new("an arm", &node, &node.span, &document).of(&ARM);
        let (arm, source) = arms::arm(table, &node, &Observe::default(), environment);
        let (remarks, failed) = document.log.close();
        if failed {
            return Err(remarks);
        }
        self.arms.push(ArmSource { settings: settings.to_vec(), ..source });
        Ok(arm)
    }

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

    /// The value of a level as a load's document writes it.
    pub(crate) fn level_text(&self, load: usize, axis: &Axis) -> String {
        self.loads.get(load).map_or_else(|| axis.value.to_string(), |load| levels::text(&load.levels, axis))
    }

    /// Where the evaluation names what a remark on another document is about: the level, or the document.
    pub(crate) fn place_of(&self, load: usize, about: &Code) -> Range<usize> {
        let Some(load) = self.loads.get(load) else { return 0..0 };
        let level = match about {
            Code::Level(axis) => levels::place(&load.levels, axis),
            _ => None,
        };
        level.unwrap_or_else(|| load.place.clone())
    }

    /// What is wrong with an arm's targets, in the evaluation's text.
    pub(crate) fn check_targets(&self, arm: usize, environment: &Environment<'_>) -> Vec<Diagnostic> {
        let Some(arm) = self.arms.get(arm) else { return Vec::new() };
        let document = Document::new(&self.text, environment.outside());
        for node in &arm.targets {
            read_target(arm, node, environment, &document);
        }
        document.log.close().0
    }

    /// The target that an arm lends to loads that have none, and what is wrong with it.
    fn lent_target(
        &self,
        (arm, name): (usize, &str),
        engine: Option<&str>,
        load: &LoadSource,
        environment: &Environment<'_>,
    ) -> (Option<Target>, Vec<Diagnostic>) {
        let has_own = matches!(&load.body, Body::Tree(root) if root.entry("target").is_some());
        let Some(arm) = self.arms.get(arm).filter(|_| !has_own) else { return (None, Vec::new()) };
        let registry = environment.registry;
        let fits = |node: &&Node| engine.is_none() || scope::engine_of(node, registry) == engine;
        let Some(node) = arm.targets.iter().find(fits) else { return (None, Vec::new()) };
        let document = Document::new(&self.text, environment.outside());
        let target = read_target(arm, node, environment, &document);
        let (mut remarks, failed) = document.log.close();
        if load.referred.is_some() {
            remarks = remarks.into_iter().map(|remark| elsewhere(remark, name)).collect();
        }
        // After an error, something that the rest can be read with.
        let stand_in = || engine.filter(|_| failed).and_then(|name| registry.engine(name)?.stand_in_target());
        (target.or_else(stand_in), remarks)
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
        let settings = self.arms.get(arm.0).map_or(&[][..], |arm| &arm.settings);
        let (mut remarks, planned) = match &load.body {
            Body::Tree(root) => {
                let root = match settings {
                    [] => Cow::Borrowed(root),
                    _ => Cow::Owned(tuning::with(root, settings)),
                };
                let root = root.as_ref();
                let engine = engine_of_loads(root, environment.registry);
                let (target, remarks) = self.lent_target(arm, engine, load, environment);
                let place = if load.referred.is_some() { 0..0 } else { load.place.clone() };
                let engine = engine.and_then(|name| environment.registry.engine(name));
                let kind = engine.map_or(String::new(), |engine| format!(" for {}", engine.subject()));
                let message = format!("neither the load nor the arm `{}` has a `target`{kind}", arm.1);
                let lent = Lent {
                    seed: Some(seed),
                    broken: target.is_none() && is_refused(&remarks),
                    target,
                    missing: Some((place, message)),
                    drivers: self.drivers.clone(),
                };
                (remarks, tree_plan(root, text, level, load, lent, environment))
            }
            Body::Other(format) => {
                let refused = refused_levels(&**format, level, &load.levels);
                if !refused.is_empty() {
                    return Err(refused);
                }
                let (target, remarks) = match format.fixed() {
                    Some(_) => (None, Vec::new()),
                    None => self.lent_target(arm, Some(format.engine()), load, environment),
                };
                (remarks, format.read(text, environment, Changes { seed: Some(seed), level, target }))
            }
        };
        let planned = planned.map(|(mut plan, warnings)| {
            if let (Body::Other(_), Some(drivers)) = (&load.body, &self.drivers) {
                plan.drivers = drivers.clone();
            }
            (plan, warnings)
        });
        let failed = is_refused(&remarks);
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

/// Whether one of them is an error.
fn is_refused(remarks: &[Diagnostic]) -> bool {
    remarks.iter().any(|remark| remark.severity == Severity::Error)
}

/// Errors about what a level sets and a format does not take.
fn refused_levels(format: &dyn Format, level: &Level, places: &Places) -> Vec<Diagnostic> {
    let axes = format.axes();
    let refused = level.iter().filter(|axis| !axes.iter().any(|known| known.name() == axis.name));
    let error =
        |axis| not_taken(axis, &levels::text(places, axis), 0..0, &format!("{} files", format.name()), &axes);
    refused.map(error).collect()
}

/// Reads a target of an arm; `document` is the evaluation's.
fn read_target(
    arm: &ArmSource,
    node: &Node,
    environment: &Environment<'_>,
    document: &Document<'_>,
) -> Option<Target> {
    // Asked for under its key, so that remarks name it.
    let entry = Entry { key: TARGET.name.to_owned(), key_span: arm.place.clone(), node: node.clone() };
    let around = Node { value: Value::Map(vec![entry]), span: node.span.clone() };
    let mut table = Table::new("the arm", &around, &arm.place, document);
    table.declare([&TARGET as &AnyKey]);
    scope::read_target(&mut table, environment)
}

/// A remark on an arm's target, for a text in which the arm is not.
fn elsewhere(remark: Diagnostic, arm: &str) -> Diagnostic {
    Diagnostic { message: format!("the target of the arm `{arm}`: {}", remark.message), span: 0..0, ..remark }
}

/// The engine that the loads of a workload's tree are meant for, as their keys show.
fn engine_of_loads(root: &Node, registry: &Registry) -> Option<&'static str> {
    let of_entries = |node: &Node| {
        let Value::Map(entries) = &node.value else { return None };
        entries.iter().find_map(|entry| registry.claimant(&entry.key, &entry.node)).map(Engine::name)
    };
    let stages = root.entry("stages").map_or(&[][..], |stages| stages.node.items());
    stages.iter().find_map(|stage| {
        let works = stage.entry("works").map_or(&[][..], |works| works.node.items());
        of_entries(stage).or_else(|| works.iter().find_map(of_entries))
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
    let document = Document::new(text, environment.outside());
    let (registry, log) = (environment.registry, &document.log);
    let setting = Setting { level, places: &load.levels, in_place, registry, log };
    let (put, loads) = setting.apply(&mut root, lent.target.as_ref().map(Target::engine));
    let place = if in_place { root.span.clone() } else { 0..0 };
    if loads == 0 && !level.is_empty() {
        let help = "give it a stage with a `load`, or no levels: `levels: {}`";
        log.error(&place, "the levels have no effect: no stage has a `load`", help);
    }
    let what = if in_place { "the load" } else { "the document" };
    let plan = workload(Table::new(what, &root, &place, &document), environment, text, lent);
    let (mut remarks, failed) = document.log.close();
    remarks.iter_mut().for_each(|remark| explain(remark, &put, in_place));
    if failed { Err(remarks) } else { Ok((plan, remarks)) }
}

/// Says of a remark on a value that a level has put there that it is the level's. In another document all of a load's
/// values stand at the load's key, so that there the remark must be about the value's key.
fn explain(remark: &mut Diagnostic, put: &[Put], in_place: bool) {
    let is_about = |put: &&Put| {
        put.span == remark.span
            && (in_place || matches!(&remark.code, Code::Key(key) if *key == put.axis.name))
    };
    let Some(put) = put.iter().find(is_about) else { return };
    remark.message = format!("the level's `{}` ({}): {}", put.axis.name, put.text, remark.message);
    remark.code = Code::Level(put.axis.clone());
}
