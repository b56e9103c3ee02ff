//! Carries an evaluation out: sets arms up, measures cells in order, skips those that are already measured, and searches for
//! knees.
//!
//! The fingerprint of a cell tells whether it is already measured. A second start therefore resumes where the first one ended,
//! and measures again whatever the document has changed since.

mod apply;
mod arm;
mod guard;
mod tune;

pub use apply::{Applied, apply};

use crate::event::{EventSink, StopRequest};
use crate::execute::{self, ExecuteError, Executed};
use arm::Arm;
use guard::{Ceiling, Guard, Guarded};
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use tidemark_judge::evaluation::{counts, half_width, side};
use tidemark_judge::knee::{self, Expected, Seen, Side};
use tidemark_measure::evaluation::{self as record, Member, REPEATS_LEAST, Search};
use tidemark_measure::record::{Provenance, Run, State};
use tidemark_measure::tuning::Tuning;
use tidemark_plan::evaluation::{CellPlace, Evaluation, Levels, Order};
use tidemark_plan::plan::Plan;
use tidemark_plan::provisioner::Health;
use tidemark_plan::yaml::Environment;
use tidemark_store::Store;

/// How an evaluation is carried out.
#[derive(Clone, Debug)]
pub struct Options {
    /// The options of each run.
    pub run: execute::Options,
    /// Where provisioners write, in a directory for each arm. `None`: nothing may be brought up here, and a document that
    /// asks for it is refused.
    pub directory: Option<PathBuf>,
    /// Where the storage is that settings are applied to, if not where its own command has put it.
    pub standing: Option<PathBuf>,
    /// Whether the arms' shell commands may be run. If not, a document that has some is refused.
    pub run_commands: bool,
    /// Whether to measure every cell again instead of resuming the earlier evaluation of the same name.
    pub again: bool,
    /// Whether to measure every cell again if the earlier evaluation is complete.
    pub renew: bool,
}

impl Options {
    /// Nothing is brought up, no commands are run, and what was measured before counts.
    pub fn new(run: execute::Options) -> Self {
        Self { run, directory: None, standing: None, run_commands: false, again: false, renew: false }
    }
}

/// Something that happens during an evaluation.
#[derive(Debug)]
pub enum EvaluationEvent<'a> {
    /// The evaluation starts or resumes.
    Started {
        /// Runs that an earlier start has measured.
        done: usize,
        /// Runs that remain, without those of searches: nobody knows their number yet.
        left: usize,
    },
    /// An arm is being set up.
    SettingUp(&'a str),
    /// An arm is being taken down.
    TakingDown(&'a str),
    /// A search puts its baseline's settings, which these are, into effect again.
    GoingBack(&'a str),
    /// A line of output of what sets an arm up or takes it down.
    Output(&'a str),
    /// A run starts.
    RunStarted {
        /// Its place in the evaluation.
        member: &'a Member,
        /// Its number among all runs of the evaluation, those of earlier starts included; from 1.
        number: usize,
        /// How many runs there are in all; `None` in a search, which decides as it goes.
        of: Option<usize>,
    },
    /// A run has ended.
    RunEnded(&'a Run),
    /// Where the evaluation stands: when it starts, and after each run that counts.
    Standing {
        /// Its record so far.
        evaluation: &'a record::Evaluation,
        /// Its runs so far, those of earlier starts included.
        runs: &'a [Run],
    },
}

/// Receives the events of an evaluation, and can stop it.
pub trait EvaluationSink {
    /// Receives an event.
    fn event(&mut self, event: EvaluationEvent<'_>);

    /// What the user wants; asked several times a second.
    fn stop_request(&mut self) -> StopRequest;

    /// The sink for the events of one run.
    fn sink<'a>(&'a mut self, plan: &Plan) -> Box<dyn EventSink + 'a>;
}

/// An evaluation that has ended, complete or stopped by the user.
#[derive(Debug)]
pub struct Evaluated {
    /// Its record.
    pub evaluation: record::Evaluation,
    /// Its runs, in the order in which they were measured.
    pub runs: Vec<Run>,
    /// How many of the runs this call measured.
    pub fresh: usize,
    /// What went wrong after the last run: arms that could not be taken down, a record that could not be stored.
    pub trouble: Option<ExecuteError>,
}

/// Carries an evaluation out. `provenance` says where the document came from; `environment` has the variables that the document
/// may use besides those of its arms. Whatever was measured is in the store when this returns, also after an error.
///
/// # Errors
/// An arm that cannot be set up, a target that is not ready, a store that fails: what is missing and what to do.
pub fn evaluate(
    document: &Evaluation,
    provenance: Provenance,
    options: &Options,
    environment: &Environment<'_>,
    store: Option<&mut Store>,
    sink: &mut dyn EvaluationSink,
) -> Result<Evaluated, ExecuteError> {
    let arm = |arm: &tidemark_plan::evaluation::Arm| {
        Arm::new(&document.name, &arm.name, arm, options, environment.registry)
    };
    let mut evaluator = Evaluator {
        document: document.clone(),
        record: begun(document, provenance),
        options,
        environment,
        store,
        arms: document.arms.iter().map(arm).collect::<Result<_, _>>()?,
        runs: Vec::new(),
        done: HashMap::new(),
        before: 0,
        up: None,
        is_astray: false,
        health: Health::Well,
    };
    evaluator.resume()?;
    let ended = match document.tuning {
        Some(_) => evaluator.tune(sink),
        None => evaluator.measure_and_search(sink),
    };
    let back = evaluator.go_back(sink);
    let down = evaluator.take_all_down(sink);
    evaluator.record.state = match &ended {
        Ok(true) => State::Completed,
        Ok(false) => State::Interrupted,
        Err(_) => State::Failed,
    };
    // The runs are returned even if the evaluation's record cannot be stored.
    let kept = evaluator.keep();
    let fresh = evaluator.runs.len() - evaluator.before;
    if let Err(ExecuteError(error)) = ended {
        let resume = match (evaluator.record.id, evaluator.runs.len()) {
            (0, _) | (_, 0) => String::new(),
            (id, runs) => format!("\n{runs} runs are kept in e{id}; start it again to resume"),
        };
        let back = back.err().map(|ExecuteError(error)| format!("\n{error}")).unwrap_or_default();
        return Err(ExecuteError(error + &back + &resume));
    }
    let trouble = back.and(down).and(kept).err();
    Ok(Evaluated { evaluation: evaluator.record, runs: evaluator.runs, fresh, trouble })
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
        until: document.until,
        order: document.order.name().into(),
        tuning: document.tuning.clone(),
        notes: document.notes.clone(),
        ..record::Evaluation::default()
    }
}

struct Evaluator<'a> {
    /// The document; a search adds arms to it.
    document: Evaluation,
    record: record::Evaluation,
    options: &'a Options,
    environment: &'a Environment<'a>,
    store: Option<&'a mut Store>,
    arms: Vec<Arm>,
    runs: Vec<Run>,
    /// The index of the run that measured a cell, by the cell's fingerprint.
    done: HashMap<String, usize>,
    /// How many of the runs an earlier start has measured.
    before: usize,
    /// The arm that a search has set up last.
    up: Option<usize>,
    /// Whether settings of a search may be in effect that are not its baseline's.
    is_astray: bool,
    /// What the storage was like in the last run of a search.
    health: Health,
}

impl Evaluator<'_> {
    /// Resumes the newest evaluation of the same name, or begins one. A complete evaluation whose document has changed stays as it
    /// is: a new one takes over the runs that still hold.
    fn resume(&mut self) -> Result<(), ExecuteError> {
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
                "another process is running evaluation e{} `{}`: wait for it, or use another name",
                earlier.id, earlier.name
            )));
        }
        if let Some(tuning) = &earlier.tuning
            && !tune::is_the_same(&self.document, tuning, &store.runs_of(earlier.id).map_err(trouble)?)
        {
            self.record.id = store.begin_evaluation(&self.record).map_err(trouble)?;
            return Ok(());
        }
        // What a search has tried is what it asks for again, as long as it is the same.
        let (document, is_search) = (&self.document, earlier.tuning.is_some());
        let holds = |run: &Run| if is_search { tune::is_of_use(run) } else { is_wanted(document, run) };
        let (kept, stale): (Vec<Run>, Vec<Run>) =
            store.runs_of(earlier.id).map_err(trouble)?.into_iter().partition(holds);
        if let Some(tuning) = earlier.tuning {
            let price = self.record.tuning.take().and_then(|asked| asked.price);
            let tuning = Tuning { price, ..tuning };
            (self.record.tuning, self.record.arms) = (Some(tuning), earlier.arms.clone());
        }
        inherit_labels(&mut self.record.arms, &earlier.arms, &kept);
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

    /// Measures every cell and searches for every knee; false when the user stopped it.
    fn measure_and_search(&mut self, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        let cells = self.document.cells();
        let left = cells.iter().filter(|cell| !self.done.contains_key(&self.fingerprint(cell))).count();
        sink.event(EvaluationEvent::Started { done: self.before, left });
        sink.event(EvaluationEvent::Standing { evaluation: &self.record, runs: &self.runs });
        let document = self.document.clone();
        let searches = |arm: usize| {
            let loads = document.loads.iter().enumerate();
            let searched = loads.filter(|(_, load)| matches!(load.levels, Levels::Searched(_)));
            searched.map(move |(load, _)| (arm, load)).collect::<Vec<_>>()
        };
        let arms: Vec<usize> = (0..self.document.arms.len()).collect();
        if self.document.order != Order::Blocks {
            let searches = arms.iter().flat_map(|arm| searches(*arm)).collect::<Vec<_>>();
            return Ok(self.measure_all(&cells, left, sink)? && self.search_all(&searches, sink)?);
        }
        for arm in arms {
            let searches = searches(arm);
            let later = cells.iter().filter(|cell| cell.arm >= arm);
            let left = later.filter(|cell| !self.done.contains_key(&self.fingerprint(cell))).count();
            let own: Vec<CellPlace> = cells.iter().filter(|cell| cell.arm == arm).cloned().collect();
            if !self.measure_all(&own, left, sink)? || !self.search_all(&searches, sink)? {
                return Ok(false);
            }
            self.take_down(arm, sink)?;
        }
        Ok(true)
    }

    /// Measures these cells, which belong to so many that are left of the whole evaluation.
    fn measure_all(
        &mut self,
        cells: &[CellPlace],
        left_in_all: usize,
        sink: &mut dyn EvaluationSink,
    ) -> Result<bool, ExecuteError> {
        let is_left = |cell: &&CellPlace| !self.done.contains_key(&self.fingerprint(cell));
        let left: Vec<&CellPlace> = cells.iter().filter(is_left).collect();
        let all = self.runs.len() + left_in_all;
        for cell in left {
            if self.is_narrow(cell) {
                continue;
            }
            if self.measure(cell, Some(all), sink)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a cell is known exactly enough without this repeat: on all arms that alternate with it. Only earlier repeats decide,
    /// so that either all arms get this one or none.
    fn is_narrow(&self, cell: &CellPlace) -> bool {
        let Some(until) = self.document.until.filter(|_| cell.repeat > REPEATS_LEAST) else { return false };
        let (arm, load) = (&self.document.arms[cell.arm].name, &self.document.loads[cell.load].name);
        let alone = self.document.order == Order::Blocks;
        let before = |member: &Member| {
            member.repeat < cell.repeat
                && (&member.load, &member.level) == (load, &cell.level)
                && (!alone || member.arm == *arm)
        };
        half_width(&self.record, &self.runs, before).is_some_and(|widest| widest <= until)
    }

    /// Searches for knees, one step of each search in turn, so that drift affects all arms alike.
    fn search_all(
        &mut self,
        searches: &[(usize, usize)],
        sink: &mut dyn EvaluationSink,
    ) -> Result<bool, ExecuteError> {
        let mut searched: Vec<Option<Vec<Seen>>> = searches.iter().map(|_| Some(Vec::new())).collect();
        while searched.iter().any(Option::is_some) {
            for ((arm, load), seen) in searches.iter().zip(&mut searched) {
                let Some(so_far) = seen else { continue };
                let Levels::Searched(range) = &self.document.loads[*load].levels else { continue };
                let Some(level) = next_level(range, so_far, self.document.repeats_least()) else {
                    *seen = None;
                    continue;
                };
                let again = times(so_far, level);
                let Some(side) = self.probe(*arm, *load, level, again as u32 + 1, sink)? else {
                    return Ok(false);
                };
                so_far.push(Seen { level, side });
            }
        }
        Ok(true)
    }

    /// Measures a level of a search. Returns on which side of the service level it is; `None` when the user stopped it.
    fn probe(
        &mut self,
        arm: usize,
        load: usize,
        level: f64,
        repeat: u32,
        sink: &mut dyn EvaluationSink,
    ) -> Result<Option<Side>, ExecuteError> {
        let Levels::Searched(range) = &self.document.loads[load].levels else { return Ok(None) };
        let cell = CellPlace { arm, load, level: range.level(level), repeat };
        let Some(index) = self.measure(&cell, None, sink)? else { return Ok(None) };
        let level = self.document.loads[load].service_level.as_ref();
        Ok(Some(level.map_or(Side::Unclear, |level| side(&self.runs[index], level))))
    }

    /// Measures a cell unless it is already measured. Returns the index of its run; `None` when the user stopped it.
    fn measure(
        &mut self,
        cell: &CellPlace,
        of: Option<usize>,
        sink: &mut dyn EvaluationSink,
    ) -> Result<Option<usize>, ExecuteError> {
        let fingerprint = self.fingerprint(cell);
        if let Some(index) = self.done.get(&fingerprint) {
            return Ok(Some(*index));
        }
        if sink.stop_request() > StopRequest::None || !self.ready(cell.arm, sink)? {
            return Ok(None);
        }
        self.run(cell, fingerprint, of, sink)
    }

    /// Runs a cell on its arm, which is ready. Returns the index of its run; `None` when the user stopped it.
    fn run(
        &mut self,
        cell: &CellPlace,
        fingerprint: String,
        of: Option<usize>,
        sink: &mut dyn EvaluationSink,
    ) -> Result<Option<usize>, ExecuteError> {
        let plan = self.plan(cell, &self.arms[cell.arm])?;
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
        sink.event(EvaluationEvent::RunStarted { member: &member, number: self.runs.len() + 1, of });
        let options = execute::Options { member: Some(member), ..self.options.run.clone() };
        let provenance = Provenance {
            path: load.path.clone().unwrap_or_else(|| self.record.provenance.path.clone()),
            ..self.record.provenance.clone()
        };
        let store = self.store.as_deref_mut();
        let guard = guard(&self.document, &self.arms[cell.arm], &plan)?;
        let mut run_sink = sink.sink(&plan);
        if let Some(guard) = &guard {
            run_sink = Box::new(Guarded { inner: run_sink, guard });
        }
        let executed = execute::execute(&plan, provenance, &options, store, &mut *run_sink);
        drop(run_sink);
        self.health = guard.map_or(Health::Well, Guard::finish);
        let Executed { run, .. } = executed?;
        sink.event(EvaluationEvent::RunEnded(&run));
        if run.state == State::Interrupted {
            // The interrupted run stays in the store, outside the evaluation.
            if let Some(store) = &mut self.store {
                store.release(self.record.id, run.id).map_err(|error| ExecuteError(error.to_string()))?;
            }
            return Ok(None);
        }
        self.done.insert(fingerprint, self.runs.len());
        self.runs.push(run);
        sink.event(EvaluationEvent::Standing { evaluation: &self.record, runs: &self.runs });
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
        plan.observe.join(&arm.observe());
        Ok(plan)
    }

    fn fingerprint(&self, cell: &CellPlace) -> String {
        self.document.fingerprint(cell.arm, cell.load, &cell.level, cell.repeat)
    }

    /// Sets an arm up unless it is up already, and resets it; false when the user stopped it.
    fn ready(&mut self, index: usize, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        Ok(self.bring_up(index, sink)? && self.arms[index].reset(sink)?)
    }

    /// Sets an arm up unless it is up already; false when the user stopped it.
    fn bring_up(&mut self, index: usize, sink: &mut dyn EvaluationSink) -> Result<bool, ExecuteError> {
        let arm = &mut self.arms[index];
        if !arm.is_up() {
            sink.event(EvaluationEvent::SettingUp(&self.document.arms[index].name));
            if !arm.set_up(sink)? {
                return Ok(false);
            }
            let (labels, settings) = (arm.labels(), &mut self.record.arms[index].settings);
            settings.retain(|(name, _)| !labels.iter().any(|(own, _)| own == name));
            settings.extend(labels);
        }
        Ok(true)
    }

    fn take_down(&mut self, index: usize, sink: &mut dyn EvaluationSink) -> Result<(), ExecuteError> {
        if !self.arms[index].is_running() {
            return Ok(());
        }
        sink.event(EvaluationEvent::TakingDown(&self.document.arms[index].name));
        self.arms[index].take_down(sink)
    }

    /// Takes down every arm that is up, even after an error; gives the first error.
    fn take_all_down(&mut self, sink: &mut dyn EvaluationSink) -> Result<(), ExecuteError> {
        let down: Vec<_> = (0..self.arms.len()).map(|index| self.take_down(index, sink)).collect();
        down.into_iter().collect()
    }

    fn keep(&mut self) -> Result<(), ExecuteError> {
        let Some(store) = &mut self.store else { return Ok(()) };
        store.keep_evaluation(&self.record, None).map_err(|error| ExecuteError(error.to_string()))
    }
}

/// What watches the storage of a search while a plan puts load on it; `None` of other evaluations.
///
/// # Errors
/// Memory that cannot be watched.
fn guard(document: &Evaluation, arm: &Arm, plan: &Plan) -> Result<Option<Guard>, ExecuteError> {
    let Some(tuning) = &document.tuning else { return Ok(None) };
    let processes = &plan.observe.processes;
    if tuning.memory_bytes.is_some() && processes.is_empty() {
        let why = "`memory` is about the storage's processes, and none are known: name them under `observe` in the arm";
        return Err(ExecuteError(why.into()));
    }
    let ceiling = tuning.memory_bytes.map(|bytes| Ceiling { processes: processes.clone(), bytes });
    Ok(Some(Guard::start(arm.probes(), ceiling)))
}

/// What earlier starts have measured of the cells that a document asks for, as a new start would take it over; and the record
/// that it belongs to.
///
/// # Errors
/// A store that cannot be read.
pub fn measured(
    document: &Evaluation,
    format: &str,
    store: Option<&Store>,
) -> Result<(record::Evaluation, Vec<Run>), ExecuteError> {
    let mut record = begun(document, Provenance { format: format.into(), ..Provenance::default() });
    let trouble = |error: tidemark_store::StoreError| ExecuteError(error.to_string());
    let Some(store) = store else { return Ok((record, Vec::new())) };
    let Some(earlier) = earlier(store, &record, false).map_err(trouble)? else {
        return Ok((record, Vec::new()));
    };
    record.id = earlier.id;
    let runs = store.runs_of(earlier.id).map_err(trouble)?;
    let holds = |run: &Run| run.state == State::Completed && is_wanted(document, run);
    Ok((record, runs.into_iter().filter(holds).collect()))
}

/// How many runs the searches of a document will take on all arms together; `None` without a search.
pub fn expected_searches(document: &Evaluation) -> Option<Expected> {
    let searched = document.loads.iter().filter_map(|load| match &load.levels {
        Levels::Searched(range) => Some(knee::expected(range)),
        Levels::Listed(_) => None,
    });
    let arms = document.arms.len() as u32;
    let sum = searched.reduce(|sum, own| Expected {
        least: sum.least.saturating_add(own.least),
        undisturbed: sum.undisturbed.saturating_add(own.undisturbed),
        most: sum.most.saturating_add(own.most),
    })?;
    let on_all_arms = |runs: u32| runs.saturating_mul(arms);
    Some(Expected {
        least: on_all_arms(sum.least),
        undisturbed: on_all_arms(sum.undisturbed),
        most: on_all_arms(sum.most),
    })
}

/// The level that a search measures next; `None` at its end. The levels that the answer rests on get as many repeats as any
/// other cell, as far as the search may have more runs; should they change the answer, it goes on.
fn next_level(range: &Search, seen: &[Seen], repeats: u32) -> Option<f64> {
    match knee::next(range, seen) {
        knee::Step::Measure(level) => Some(level),
        knee::Step::Done(answer) if answer.end == knee::End::Budget || seen.len() >= range.runs as usize => {
            None
        }
        knee::Step::Done(answer) => {
            let mut rests_on = [answer.knee, answer.beyond].into_iter().flatten();
            rests_on.find(|level| times(seen, *level) < repeats as usize)
        }
    }
}

/// How often a level was seen.
fn times(seen: &[Seen], level: f64) -> usize {
    seen.iter().filter(|seen| seen.level == level).count()
}

/// The newest evaluation of the same name that was carried out here, if it can be resumed.
fn earlier(
    store: &Store,
    record: &record::Evaluation,
    again: bool,
) -> Result<Option<record::Evaluation>, tidemark_store::StoreError> {
    for known in store.evaluations()?.into_iter().filter(|known| known.name == record.name && !again) {
        let known = store.evaluation(known.id)?;
        // Imported results may have any name.
        if known.provenance.format == record.provenance.format {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

/// Takes over the labels that provisioners gave in an earlier start, for arms of which runs are kept: they are what they
/// were then, and may not be brought up again.
fn inherit_labels(arms: &mut [record::Arm], earlier: &[record::Arm], kept: &[Run]) {
    for own in arms {
        let is_kept = kept.iter().any(|run| run.member.as_ref().is_some_and(|member| member.arm == own.name));
        let Some(before) = earlier.iter().find(|before| is_kept && before.name == own.name) else { continue };
        let is_new = |label: &&(String, String)| own.settings.iter().all(|(known, _)| *known != label.0);
        let new: Vec<_> = before.settings.iter().filter(is_new).cloned().collect();
        own.settings.extend(new);
    }
}

/// Whether a stored run measured its cell, and the document still asks for that and describes it as it was. Searches may ask for any
/// level.
fn is_wanted(document: &Evaluation, run: &Run) -> bool {
    let Some(Member { arm, load, level, repeat, fingerprint, .. }) = &run.member else { return false };
    let arm = document.arms.iter().position(|own| own.name == *arm);
    let load = document.loads.iter().position(|own| own.name == *load);
    let (Some(arm), Some(load)) = (arm, load) else { return false };
    let asked = match &document.loads[load].levels {
        Levels::Listed(levels) => levels.contains(level) && *repeat <= document.repeats,
        Levels::Searched(search) => level.iter().all(|axis| axis.name == search.axis),
    };
    let measured = counts(run, document.loads[load].service_level.is_some());
    measured && asked && document.fingerprint(arm, load, level, *repeat) == *fingerprint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_an_answer_get_their_repeats_as_far_as_the_search_may_run() {
        let unit = tidemark_measure::axis::Unit::OperationsPerSecond;
        let range = Search { axis: "rate".into(), unit, from: 100.0, to: 3_000.0, within: 0.05, runs: 40 };
        let to_its_end = |range: &Search, repeats| {
            let mut seen = Vec::new();
            while let Some(level) = next_level(range, &seen, repeats) {
                let side = if level <= 780.0 { Side::Within } else { Side::Outside };
                seen.push(Seen { level, side });
            }
            seen
        };
        let seen = to_its_end(&range, 6);
        let answer = knee::answer(&range, &seen);
        for level in [answer.knee, answer.beyond] {
            assert_eq!(times(&seen, level.unwrap()), 6, "{seen:?}");
        }
        assert_eq!(to_its_end(&range, 1_000).len(), 40, "no more than it may");
    }

    #[test]
    fn an_arm_that_is_not_brought_up_again_keeps_what_its_lab_said() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let arm = |name: &str, settings: &[(String, String)]| record::Arm {
            name: name.into(),
            settings: settings.to_vec(),
            ..record::Arm::default()
        };
        let mut arms = ["a", "b"].map(|name| arm(name, &[pair("lab", "baseline")]));
        let labels = [pair("lab", "baseline"), pair("layout", "baseline"), pair("data", "emulated")];
        let member = Member { arm: "a".into(), ..Member::default() };
        let kept = Run { member: Some(member), ..Run::default() };
        inherit_labels(&mut arms, &[arm("a", &labels), arm("b", &labels)], &[kept]);
        assert_eq!(arms[0].settings, labels);
        assert_eq!(arms[1].settings, [pair("lab", "baseline")], "it is brought up again, and may be another");
    }
}
