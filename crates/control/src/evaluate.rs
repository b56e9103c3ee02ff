//! Carries an evaluation out: arms set up, cells measured in their order, those that are done already skipped, knees
//! looked for.
//!
//! What is done already is known by the fingerprint of its cell, so that a second start continues where the first one
//! ended, and a cell that the document describes otherwise by now is measured again.

mod arm;
mod command;

use crate::event::{EventSink, StopRequest};
use crate::execute::{self, ExecuteError, Executed};
use arm::Arm;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use tidemark_judge::evaluation::is_within;
use tidemark_judge::knee::{self, Seen};
use tidemark_measure::evaluation::{self as record, Member};
use tidemark_measure::record::{Provenance, Run, State};
use tidemark_plan::evaluation::{CellPlace, Evaluation, Levels, Order, level as level_at};
use tidemark_plan::plan::Plan;
use tidemark_plan::yaml::Environment;
use tidemark_store::Store;

/// How an evaluation is carried out.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How each of its runs is.
    pub run: execute::Options,
    /// Whether the document's shell commands may run.
    pub run_commands: bool,
    /// Whether to measure everything anew, rather than continue where an earlier start ended.
    pub again: bool,
    /// Whether to do so if the earlier one is complete: then there is nothing to continue.
    pub renew: bool,
    /// Directory below which the labs of its arms live.
    pub labs: PathBuf,
}

/// Something that happened.
#[derive(Debug)]
pub enum Step<'a> {
    /// It begins, or continues.
    Begun {
        /// Runs that an earlier start has done.
        done: usize,
        /// Runs that are left; those of searches are not known beforehand.
        left: usize,
    },
    /// An arm is set up.
    SettingUp(&'a str),
    /// An arm is taken down.
    TakingDown(&'a str),
    /// A line of what sets an arm up, or takes it down.
    Output(&'a str),
    /// A run begins.
    RunStarted {
        /// Its place.
        member: &'a Member,
        /// Which of all runs of the evaluation it is, those of earlier starts included; from 1.
        number: usize,
        /// How many there are in all; `None` in a search, which decides on its way.
        of: Option<usize>,
    },
    /// A run has ended.
    RunEnded(&'a Run),
}

/// Follows an evaluation while it runs.
pub trait Spectator {
    /// Something happened.
    fn step(&mut self, step: Step<'_>);

    /// The user's stop request; polled several times a second.
    fn stop_request(&mut self) -> StopRequest;

    /// Who follows a run of it.
    fn sink<'a>(&'a mut self, plan: &Plan) -> Box<dyn EventSink + 'a>;
}

/// An evaluation that was carried out, or as much of it as the user let be.
#[derive(Debug)]
pub struct Evaluated {
    /// Its record.
    pub evaluation: record::Evaluation,
    /// Its runs, in the order in which they were done.
    pub runs: Vec<Run>,
    /// How many of them were done by this call.
    pub fresh: usize,
    /// What went wrong after everything was measured: arms that could not be taken down, a record that could not be kept.
    pub trouble: Option<ExecuteError>,
}

/// Carries an evaluation out. `provenance` says where the document came from, `environment` what it may refer to besides
/// what its arms bring. Everything that is measured is in the store by the time it ends, however it ends.
///
/// # Errors
/// An arm that cannot be set up, a target that is not as needed, a store that fails: what is missing, and what to do.
pub fn evaluate(
    document: &Evaluation,
    provenance: Provenance,
    options: &Options,
    environment: &Environment<'_>,
    store: Option<&mut Store>,
    spectator: &mut dyn Spectator,
) -> Result<Evaluated, ExecuteError> {
    if !options.run_commands && document.arms.iter().any(tidemark_plan::evaluation::Arm::has_commands) {
        return Err(ExecuteError(
            "the document has shell commands (set_up, reset or tear_down): review them with \
             `tidemark check`, then add --run-commands"
                .into(),
        ));
    }
    let mut evaluator = Evaluator {
        document,
        record: begun(document, provenance),
        options,
        environment,
        store,
        arms: document.arms.iter().map(|_| None).collect(),
        runs: Vec::new(),
        done: HashMap::new(),
        before: 0,
    };
    evaluator.take_up()?;
    let ended = evaluator.carry_out(spectator);
    let down = evaluator.take_all_down(spectator);
    evaluator.record.state = match &ended {
        Ok(true) => State::Completed,
        Ok(false) => State::Interrupted,
        Err(_) => State::Failed,
    };
    // What was measured is worth more than its record in the store.
    let kept = evaluator.keep();
    let fresh = evaluator.runs.len() - evaluator.before;
    if let Err(ExecuteError(error)) = ended {
        let go_on = match (evaluator.record.id, evaluator.runs.len()) {
            (0, _) | (_, 0) => String::new(),
            (id, runs) => {
                format!("\n{runs} runs are stored in e{id}: run the same command again to continue")
            }
        };
        return Err(ExecuteError(error + &go_on));
    }
    Ok(Evaluated { evaluation: evaluator.record, runs: evaluator.runs, fresh, trouble: down.and(kept).err() })
}

/// The record of an evaluation that begins.
fn begun(document: &Evaluation, provenance: Provenance) -> record::Evaluation {
    let arm = |arm: &tidemark_plan::evaluation::Arm| record::Arm {
        name: arm.name.clone(),
        description: arm.description.clone(),
        settings: arm.settings.clone(),
    };
    let load = |load: &tidemark_plan::evaluation::Load| {
        let (levels, search) = match &load.levels {
            Levels::Listed(levels) => (levels.clone(), None),
            Levels::Searched(search) => (Vec::new(), Some(search.clone())),
        };
        record::Load {
            name: load.name.clone(),
            description: load.description.clone(),
            levels,
            search,
            service_level: load.service_level.clone(),
        }
    };
    record::Evaluation {
        name: document.name.clone(),
        description: document.description.clone(),
        started_unix_ns: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64),
        state: State::Running,
        provenance: Provenance { seed: document.seed, ..provenance },
        arms: document.arms.iter().map(arm).collect(),
        loads: document.loads.iter().map(load).collect(),
        repeats: document.repeats,
        order: document.order.name().into(),
        notes: document.notes.clone(),
        ..record::Evaluation::default()
    }
}

struct Evaluator<'a> {
    document: &'a Evaluation,
    record: record::Evaluation,
    options: &'a Options,
    environment: &'a Environment<'a>,
    store: Option<&'a mut Store>,
    /// Those that are set up.
    arms: Vec<Option<Arm>>,
    runs: Vec<Run>,
    /// Which of the runs measured a cell, by the cell's fingerprint.
    done: HashMap<String, usize>,
    /// How many of the runs were done before.
    before: usize,
}

impl Evaluator<'_> {
    /// Goes on with the newest evaluation of the same name, or begins one. One that was complete and whose document has
    /// changed stays as it is: a new one takes over what still holds.
    fn take_up(&mut self) -> Result<(), ExecuteError> {
        let Some(store) = &mut self.store else { return Ok(()) };
        let trouble = |error: tidemark_store::StoreError| ExecuteError(error.to_string());
        let Some(earlier) = earlier(store, &self.record, self.options.again).map_err(trouble)? else {
            self.record.id = store.begin_evaluation(&self.record).map_err(trouble)?;
            return Ok(());
        };
        if self.options.renew && earlier.state == State::Completed {
            self.record.id = store.begin_evaluation(&self.record).map_err(trouble)?;
            return Ok(());
        }
        if earlier.state == State::Running {
            return Err(ExecuteError(format!(
                "evaluation e{} `{}` is running in another process; wait for it, or use another name",
                earlier.id, earlier.name
            )));
        }
        inherit_labels(self.document, &mut self.record.arms, &earlier.arms);
        let document = self.document;
        let holds = |run: &Run| run.state == State::Completed && is_wanted(document, run);
        let (kept, stale): (Vec<Run>, Vec<Run>) =
            store.runs_of(earlier.id).map_err(trouble)?.into_iter().partition(holds);
        if earlier.state == State::Completed && !stale.is_empty() {
            self.record.id = store.begin_evaluation(&self.record).map_err(trouble)?;
            for run in &kept {
                store.adopt(self.record.id, run.id).map_err(trouble)?;
            }
        } else {
            (self.record.id, self.record.started_unix_ns) = (earlier.id, earlier.started_unix_ns);
            store.keep_evaluation(&self.record, None).map_err(trouble)?;
            for run in &stale {
                store.release(earlier.id, run.id).map_err(trouble)?;
            }
        }
        for mut run in kept {
            let Some(member) = &mut run.member else { continue };
            member.evaluation = self.record.id;
            self.done.insert(member.fingerprint.clone(), self.runs.len());
            self.runs.push(run);
        }
        self.before = self.runs.len();
        Ok(())
    }

    /// Measures every cell and looks for every knee; false when the user ended it.
    fn carry_out(&mut self, spectator: &mut dyn Spectator) -> Result<bool, ExecuteError> {
        let cells = self.document.cells();
        let left = cells.iter().filter(|cell| !self.done.contains_key(&self.fingerprint(cell))).count();
        spectator.step(Step::Begun { done: self.before, left });
        let searches = |arm: usize| {
            let loads = self.document.loads.iter().enumerate();
            let searched = loads.filter(|(_, load)| matches!(load.levels, Levels::Searched(_)));
            searched.map(move |(load, _)| (arm, load)).collect::<Vec<_>>()
        };
        let arms: Vec<usize> = (0..self.document.arms.len()).collect();
        if self.document.order != Order::Blocks {
            let searches = arms.iter().flat_map(|arm| searches(*arm)).collect::<Vec<_>>();
            return Ok(self.measure_all(&cells, spectator)? && self.search_all(&searches, spectator)?);
        }
        for arm in arms {
            let searches = searches(arm);
            let own: Vec<CellPlace> = cells.iter().filter(|cell| cell.arm == arm).cloned().collect();
            if !self.measure_all(&own, spectator)? || !self.search_all(&searches, spectator)? {
                return Ok(false);
            }
            self.take_down(arm, spectator)?;
        }
        Ok(true)
    }

    fn measure_all(
        &mut self,
        cells: &[CellPlace],
        spectator: &mut dyn Spectator,
    ) -> Result<bool, ExecuteError> {
        let is_left = |cell: &&CellPlace| !self.done.contains_key(&self.fingerprint(cell));
        let left: Vec<&CellPlace> = cells.iter().filter(is_left).collect();
        let all = self.runs.len() + left.len();
        for cell in left {
            if self.measure(cell, Some(all), spectator)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks for knees, a step of each search in turn: what drifts hits all arms alike.
    fn search_all(
        &mut self,
        searches: &[(usize, usize)],
        spectator: &mut dyn Spectator,
    ) -> Result<bool, ExecuteError> {
        let mut sights: Vec<Option<Vec<Seen>>> = searches.iter().map(|_| Some(Vec::new())).collect();
        while sights.iter().any(Option::is_some) {
            for ((arm, load), seen) in searches.iter().zip(&mut sights) {
                let Some(so_far) = seen else { continue };
                let Levels::Searched(range) = &self.document.loads[*load].levels else { continue };
                match knee::next(range, so_far) {
                    knee::Step::Measure(level) => {
                        let again = so_far.iter().filter(|sight| sight.level == level).count();
                        let Some(within) = self.see(*arm, *load, level, again as u32 + 1, spectator)? else {
                            return Ok(false);
                        };
                        so_far.push(Seen { level, within });
                    }
                    knee::Step::Done { knee, beyond } => {
                        // As many repeats of what the answer rests on as of any other cell.
                        for level in [knee, beyond].into_iter().flatten() {
                            let done = so_far.iter().filter(|sight| sight.level == level).count() as u32;
                            for repeat in done + 1..=self.document.repeats {
                                if self.see(*arm, *load, level, repeat, spectator)?.is_none() {
                                    return Ok(false);
                                }
                            }
                        }
                        *seen = None;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Measures a level of a search, and returns whether it is within the service level; `None` when the user ended it.
    fn see(
        &mut self,
        arm: usize,
        load: usize,
        level: f64,
        repeat: u32,
        spectator: &mut dyn Spectator,
    ) -> Result<Option<bool>, ExecuteError> {
        let Levels::Searched(range) = &self.document.loads[load].levels else { return Ok(None) };
        let cell = CellPlace { arm, load, level: level_at(range, level), repeat };
        let Some(index) = self.measure(&cell, None, spectator)? else { return Ok(None) };
        let level = self.document.loads[load].service_level.as_ref();
        Ok(Some(level.is_some_and(|level| is_within(&self.runs[index], level) == Some(true))))
    }

    /// Measures a cell unless that is done already; gives the run's place among the runs, `None` when the user ended it.
    fn measure(
        &mut self,
        cell: &CellPlace,
        of: Option<usize>,
        spectator: &mut dyn Spectator,
    ) -> Result<Option<usize>, ExecuteError> {
        let fingerprint = self.fingerprint(cell);
        if let Some(index) = self.done.get(&fingerprint) {
            return Ok(Some(*index));
        }
        if spectator.stop_request() > StopRequest::None || !self.ready(cell.arm, spectator)? {
            return Ok(None);
        }
        let Some(arm) = &self.arms[cell.arm] else { return Ok(None) };
        let plan = self.plan(cell, arm)?;
        let load = &self.document.loads[cell.load];
        let member = Member {
            evaluation: self.record.id,
            arm: self.document.arms[cell.arm].name.clone(),
            load: load.name.clone(),
            level: cell.level.clone(),
            repeat: cell.repeat,
            turn: self.runs.iter().filter_map(|run| Some(run.member.as_ref()?.turn)).max().unwrap_or(0) + 1,
            fingerprint: fingerprint.clone(),
        };
        spectator.step(Step::RunStarted { member: &member, number: self.runs.len() + 1, of });
        let options = execute::Options { member: Some(member), ..self.options.run.clone() };
        let provenance = Provenance {
            path: load.path.clone().unwrap_or_else(|| self.record.provenance.path.clone()),
            ..self.record.provenance.clone()
        };
        let store = self.store.as_deref_mut();
        let mut sink = spectator.sink(&plan);
        let Executed { run, .. } = execute::execute(&plan, provenance, &options, store, &mut *sink)?;
        drop(sink);
        spectator.step(Step::RunEnded(&run));
        if run.state == State::Interrupted {
            // What was measured of it stays in the store, by itself.
            if let Some(store) = &mut self.store {
                store.release(self.record.id, run.id).map_err(|error| ExecuteError(error.to_string()))?;
            }
            return Ok(None);
        }
        self.done.insert(fingerprint, self.runs.len());
        self.runs.push(run);
        Ok(Some(self.runs.len() - 1))
    }

    fn plan(&self, cell: &CellPlace, arm: &Arm) -> Result<Plan, ExecuteError> {
        let variable = |name: &str| arm.variable(name).or_else(|| (self.environment.variable)(name));
        let environment = Environment { variable: &variable, ..*self.environment };
        let made = self.document.plan(cell.arm, cell.load, &cell.level, cell.repeat, &environment);
        let (mut plan, _) = made.map_err(|diagnostics| {
            let said: Vec<_> =
                diagnostics.iter().map(|one| format!("{}; {}", one.message, one.help)).collect();
            ExecuteError(format!(
                "load `{}` on arm `{}`: {}",
                self.document.loads[cell.load].name,
                self.document.arms[cell.arm].name,
                said.join("; ")
            ))
        })?;
        plan.observe.join(arm.observe());
        Ok(plan)
    }

    fn fingerprint(&self, cell: &CellPlace) -> String {
        self.document.fingerprint(cell.arm, cell.load, &cell.level, cell.repeat)
    }

    /// Sees to it that an arm is set up and reset; false when the user ended it.
    fn ready(&mut self, index: usize, spectator: &mut dyn Spectator) -> Result<bool, ExecuteError> {
        let document = &self.document.arms[index];
        if self.arms[index].is_none() {
            spectator.step(Step::SettingUp(&document.name));
            let directory =
                self.options.labs.join(file_name(&self.record.name)).join(file_name(&document.name));
            let Some(arm) = Arm::set_up(document, directory, spectator)? else { return Ok(false) };
            let settings = &mut self.record.arms[index].settings;
            settings.retain(|(name, _)| !arm.labels.iter().any(|(own, _)| own == name));
            settings.extend(arm.labels.iter().cloned());
            self.arms[index] = Some(arm);
        }
        match &mut self.arms[index] {
            Some(arm) => arm.reset(document, spectator),
            None => Ok(false),
        }
    }

    fn take_down(&mut self, index: usize, spectator: &mut dyn Spectator) -> Result<(), ExecuteError> {
        let Some(arm) = self.arms[index].take() else { return Ok(()) };
        spectator.step(Step::TakingDown(&self.document.arms[index].name));
        arm.take_down(&self.document.arms[index], spectator)
    }

    /// Takes down every arm that is up, whatever goes wrong with one of them; gives the first trouble.
    fn take_all_down(&mut self, spectator: &mut dyn Spectator) -> Result<(), ExecuteError> {
        let down: Vec<_> = (0..self.arms.len()).map(|index| self.take_down(index, spectator)).collect();
        down.into_iter().collect()
    }

    fn keep(&mut self) -> Result<(), ExecuteError> {
        let Some(store) = &mut self.store else { return Ok(()) };
        store.keep_evaluation(&self.record, None).map_err(|error| ExecuteError(error.to_string()))
    }
}

/// The newest evaluation of the same name that was carried out here, if it is to be continued.
fn earlier(
    store: &Store,
    record: &record::Evaluation,
    again: bool,
) -> Result<Option<record::Evaluation>, tidemark_store::StoreError> {
    for known in store.evaluations()?.into_iter().filter(|known| known.name == record.name && !again) {
        let known = store.evaluation(known.id)?;
        // Results of other tools may have any name.
        if known.provenance.format == record.provenance.format {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// Takes over the labels of an earlier start's labs: an arm of which nothing is left to measure is not
/// brought up again.
fn inherit_labels(document: &Evaluation, arms: &mut [record::Arm], earlier: &[record::Arm]) {
    for (arm, own) in document.arms.iter().zip(arms) {
        let Some(lab) = &arm.lab else { continue };
        let before = earlier.iter().find(|before| before.name == own.name);
        let labels = before.map(|before| before.settings.as_slice()).unwrap_or_default();
        if labels.contains(&("layout".to_owned(), lab.layout.clone())) {
            let is_new = |label: &&(String, String)| own.settings.iter().all(|(known, _)| *known != label.0);
            let new: Vec<_> = labels.iter().filter(is_new).cloned().collect();
            own.settings.extend(new);
        }
    }
}

/// Whether the document still requires a stored run's cell as it was measured; searches may require any level.
fn is_wanted(document: &Evaluation, run: &Run) -> bool {
    let Some(Member { arm, load, level, repeat, fingerprint, .. }) = &run.member else { return false };
    let arm = document.arms.iter().position(|own| own.name == *arm);
    let load = document.loads.iter().position(|own| own.name == *load);
    let (Some(arm), Some(load)) = (arm, load) else { return false };
    let asked = match &document.loads[load].levels {
        Levels::Listed(levels) => levels.contains(level) && *repeat <= document.repeats,
        Levels::Searched(search) => level.iter().all(|(axis, _)| *axis == search.axis),
    };
    asked && document.fingerprint(arm, load, level, *repeat) == *fingerprint
}

/// A name that a directory can have.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    name.chars().map(plain).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_that_is_not_brought_up_again_keeps_what_its_lab_said() {
        let text = "name: e\narms: [{name: a, lab: baseline}, {name: b, lab: reference-1}]\nloads:\n  - name: l\n    \
                    target: {kind: mock, delay: 1ms}\n    stages: [{load: {for: 1s, containers: 1, operations: [{get: {objects: 1}}]}}]\n";
        let read = tidemark_plan::evaluation::read(text, std::path::Path::new(""), &Environment::process());
        let document = read.unwrap().0;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let arm = |name: &str| record::Arm {
            name: name.into(),
            settings: vec![pair("layout", "baseline"), pair("data", "emulated")],
            ..record::Arm::default()
        };
        let mut arms = begun(&document, Provenance::default()).arms;
        inherit_labels(&document, &mut arms, &[arm("a"), arm("b")]);
        assert!(arms[0].settings.contains(&pair("data", "emulated")), "{arms:?}");
        assert!(!arms[1].settings.contains(&pair("data", "emulated")), "it was another layout: {arms:?}");
    }
}
