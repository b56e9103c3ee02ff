//! One arm of an evaluation while it is up: its lab, its commands' output, what is observed of it.

use super::command::{self, Ended};
use super::{Spectator, Step};
use crate::execute::ExecuteError;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tidemark_lab::{self as lab, Lab, LabOptions, Layout};
use tidemark_plan::evaluation::Arm as Document;
use tidemark_plan::plan::Observe;

/// An arm that is set up.
pub(super) struct Arm {
    /// Its lab's labels; name and value.
    pub(super) labels: Vec<(String, String)>,
    variables: BTreeMap<String, String>,
    lab: Option<Lab>,
    observe: Observe,
}

impl Arm {
    /// Sets an arm up; its lab, if it has one, in `directory`. `None` when the user ended it.
    pub(super) fn set_up(
        document: &Document,
        directory: PathBuf,
        spectator: &mut dyn Spectator,
    ) -> Result<Option<Self>, ExecuteError> {
        let mut arm = Self {
            labels: Vec::new(),
            variables: document.environment.iter().cloned().collect(),
            lab: None,
            observe: Observe::default(),
        };
        if let Some(wanted) = &document.lab {
            let failed = |error: lab::LabError| {
                ExecuteError(format!("arm `{}`: its lab could not be started: {error}", document.name))
            };
            let layout: Layout = wanted
                .layout
                .parse()
                .map_err(|error| ExecuteError(format!("arm `{}`: {error}", document.name)))?;
            let mut say = |text: &str| spectator.step(Step::Output(text));
            // One that an earlier start has left behind serves, if it is what is wanted.
            if Lab::open(&directory).is_ok_and(|lab| lab.layout() != layout) {
                lab::down(&directory, true, &mut say).map_err(failed)?;
            }
            let options = LabOptions { layout: Some(layout), ..LabOptions::new(directory) };
            let lab = lab::up(&options, &mut say).map_err(failed)?;
            arm.variables.extend(lab.variables().into_iter().map(|(name, value)| (name.to_owned(), value)));
            arm.labels = lab.labels();
            // Other labs may be up beside it: the daemons of this one have its configuration on their command lines.
            let conf = lab.ceph_conf().display().to_string();
            let processes = lab.process_names().into_iter().map(|name| format!("{name} {conf}"));
            arm.observe.processes.extend(processes);
            arm.observe.ceph_sockets.push(lab.admin_sockets());
            arm.lab = Some(lab);
        }
        Ok(arm.run("set_up", document, &document.set_up, spectator)?.then_some(arm))
    }

    /// Runs the commands that come before each of its runs; false when the user ended them.
    pub(super) fn reset(
        &mut self,
        document: &Document,
        spectator: &mut dyn Spectator,
    ) -> Result<bool, ExecuteError> {
        self.run("reset", document, &document.reset, spectator)
    }

    /// Takes it down.
    pub(super) fn take_down(
        mut self,
        document: &Document,
        spectator: &mut dyn Spectator,
    ) -> Result<(), ExecuteError> {
        let done = self.run("tear_down", document, &document.tear_down, spectator).map(drop);
        let Some(lab) = self.lab else { return done };
        let mut say = |text: &str| spectator.step(Step::Output(text));
        let down = lab::down(lab.dir(), true, &mut say);
        done.and(down.map_err(|error| ExecuteError(format!("arm `{}`: {error}", document.name))))
    }

    /// A variable of its documents.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    /// What is observed of its lab.
    pub(super) fn observe(&self) -> &Observe {
        &self.observe
    }

    /// Runs commands one after the other, with its variables; what they print as variables is taken over.
    fn run(
        &mut self,
        key: &str,
        document: &Document,
        commands: &[String],
        spectator: &mut dyn Spectator,
    ) -> Result<bool, ExecuteError> {
        for text in commands {
            let in_arm = |error: String| ExecuteError(format!("arm `{}`, {key}: {error}", document.name));
            match command::run(text, &document.name, &self.variables, spectator).map_err(in_arm)? {
                Ended::Done(variables) => self.variables.extend(variables),
                Ended::Stopped => return Ok(false),
            }
        }
        Ok(true)
    }
}
