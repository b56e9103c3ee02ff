//! What a plan will do and need, and what about it may surprise, before anything runs.
//!
//! The stages are gone through in order; what an operation does to what is stored, its engine's [`Forecaster`] follows. Counts
//! are exact where the plan fixes them and upper bounds where chance or time decide. Pure: plan in, [`Forecast`] out.

mod quantity;
mod remarks;
mod words;

pub use quantity::{Amount, Time};
pub use remarks::Remarks;

use crate::plan::{Plan, Stage as PlanStage, Work as PlanWork, WorkKind};
use crate::registry::Registry;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use tidemark_load::pacing::Pacing;
use tidemark_load::source::{Choice, SourcePlan};
use tidemark_load::work::Work as Load;
use tidemark_measure::record::{Cell, Note};
use tidemark_measure::think::Think;
use tidemark_measure::units;

/// Memory of the process whatever it does: program, threads, buffers of content; bytes.
const BASE_MEMORY: u64 = 48 << 20;

/// Memory of one worker: its connection's buffers, its sources, its slot in the loop; bytes.
const WORKER_MEMORY: u64 = 24 << 10;

/// Memory of one action on one thread: five histograms at three significant digits, twice (now and merged); bytes.
const ACTION_MEMORY: u64 = 2 << 20;

/// What `tidemark check` shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The workload's name.
    pub name: String,
    /// Its stages.
    pub stages: Vec<Stage>,
    /// How long all stages take together.
    pub time: Time,
    /// The most workers at once.
    pub workers: u64,
    /// The most connections at once.
    pub connections: u64,
    /// The most files and sockets that are open at once in a process that carries the whole plan out.
    pub open_files: u64,
    /// Memory of the load generator at its peak, bytes: a rough estimate. With objects kept in memory by the
    /// embedded server, these are included.
    pub memory_bytes: u64,
    /// The most that is stored at the end of any stage, bytes.
    pub stored_bytes: u64,
    /// Capacity of all files, devices and images that the plan names, bytes.
    pub volume_bytes: u64,
    /// What may surprise.
    pub notes: Vec<Note>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// How long it takes, its pause included.
    pub time: Time,
    /// Its works.
    pub works: Vec<Work>,
    /// Which point of a sweep it is, if it is part of one.
    pub cell: Option<Cell>,
}

/// One work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// `init`, `prepare`, `normal`, `cleanup`, `dispose`.
    pub kind: WorkKind,
    /// What it runs against; empty if that needs no word.
    pub target: String,
    /// Logical clients.
    pub workers: u32,
    /// Operations of each of them in flight at once.
    pub depth: u32,
    /// Connections that they share; `None`: each has its own.
    pub connections: Option<u32>,
    /// Pauses of each of them between its operations.
    pub think: Think,
    /// How long it takes.
    pub time: Time,
    /// What its operations do.
    pub actions: Vec<Action>,
}

impl Work {
    /// What stands behind the number of its workers: how many operations they have in flight, if not one each.
    pub fn sharing(&self) -> String {
        match (self.connections, self.depth) {
            (Some(1), _) => " over 1 connection".to_owned(),
            (Some(connections), _) => format!(" over {} connections", units::count(connections.into())),
            (None, 0 | 1) => String::new(),
            (None, depth) => format!(", {depth} operations in flight each"),
        }
    }
}

/// One operation of a work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Action {
    /// Its name in reports.
    pub label: String,
    /// Its share of the work's operations, percent.
    pub ratio: f64,
    /// What it does.
    pub does: Does,
    /// The names of what it touches; empty if they need no word.
    pub names: String,
    /// How often it is done.
    pub operations: Amount,
    /// How many different things it touches at most: what they are is [`Does::counts`].
    pub count: Amount,
    /// Bytes of these as they are stored: of reads the size of the set that they read from. Not of containers and volumes.
    pub held: Amount,
    /// Bytes that its operations move, or delete.
    pub bytes: Amount,
}

/// What an operation does to what is stored, as its engine calls it. Serialized it is its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Does {
    /// A short stable name: `writes_objects`.
    pub code: &'static str,
    /// What there is one of for each count: `volume`; empty where the name says it.
    pub counts: &'static str,
    /// Whether the bytes mean something to people.
    pub moves_bytes: bool,
}

impl Serialize for Does {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code)
    }
}

/// Follows what the works of one engine do, stage by stage.
pub trait Forecaster {
    /// What each of its works in a stage does, in their order. Remarks on what they will find come first; then what they
    /// change is taken over, for the stages that follow.
    fn stage(&mut self, stage: &PlanStage, works: &[&PlanWork], remarks: &mut Remarks) -> Vec<Vec<Action>>;

    /// What ends a work that ends by itself: `50 000 objects are written`.
    fn until(&self, work: &PlanWork) -> Option<String>;

    /// What a work runs against, in a few words.
    fn target(&self, _work: &PlanWork) -> String {
        String::new()
    }

    /// The most connections of a work at once.
    fn connections(&self, _work: &PlanWork) -> u64 {
        0
    }

    /// Memory of a work beside what all works need, bytes.
    fn memory(&self, _work: &PlanWork) -> u64 {
        0
    }

    /// What is stored by now.
    fn holdings(&self) -> Holdings {
        Holdings::default()
    }

    /// Remarks on the plan as a whole, when its last stage is over.
    fn finish(&mut self, _remarks: &mut Remarks) {}
}

/// What is stored, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// What the works have written.
    pub stored: u64,
    /// How much of that is in this process's memory.
    pub in_memory: u64,
    /// Capacity of the volumes that all works name.
    pub volumes: u64,
}

/// Forecasts a plan. Works whose engine `registry` lacks are taken to do nothing.
pub fn forecast(plan: &Plan, registry: &Registry) -> Forecast {
    let mut view = View { registry, forecasters: BTreeMap::new(), remarks: Remarks::default() };
    let mut forecast = Forecast {
        name: plan.name.clone(),
        stages: Vec::new(),
        time: Time::default(),
        workers: 0,
        connections: 0,
        open_files: 0,
        memory_bytes: BASE_MEMORY,
        stored_bytes: 0,
        volume_bytes: 0,
        notes: Vec::new(),
    };
    for stage in &plan.stages {
        let own = view.stage(stage);
        let sum = |of: &dyn Fn(&PlanWork) -> u64| stage.works.iter().map(of).fold(0, u64::saturating_add);
        let holdings = view.holdings();
        let memory = sum(&|work| view.memory(work)).saturating_add(holdings.in_memory);
        forecast.workers = forecast.workers.max(sum(&|work| u64::from(work.load.workers)));
        forecast.connections = forecast.connections.max(sum(&|work| view.connections(work)));
        forecast.open_files = forecast.open_files.max(registry.open_files(&stage.works));
        forecast.stored_bytes = forecast.stored_bytes.max(holdings.stored);
        forecast.volume_bytes = holdings.volumes;
        forecast.memory_bytes = forecast.memory_bytes.max(BASE_MEMORY.saturating_add(memory));
        forecast.time.then(&own.time);
        forecast.stages.push(own);
    }
    remarks::of_pins(plan, &mut view.remarks);
    for forecaster in view.forecasters.values_mut() {
        forecaster.finish(&mut view.remarks);
    }
    Forecast { notes: view.remarks.into_notes(), ..forecast }
}

/// The way through a plan: the engines' forecasters, and what was remarked on.
struct View<'a> {
    registry: &'a Registry,
    forecasters: BTreeMap<String, Box<dyn Forecaster>>,
    remarks: Remarks,
}

impl View<'_> {
    fn stage(&mut self, stage: &PlanStage) -> Stage {
        let mut engines: Vec<&str> = stage.works.iter().map(|work| work.job.engine()).collect();
        engines.sort_unstable();
        engines.dedup();
        let mut actions: Vec<Vec<Action>> = vec![Vec::new(); stage.works.len()];
        for name in engines {
            let Some(engine) = self.registry.engine(name) else { continue };
            let own: Vec<(usize, &PlanWork)> =
                stage.works.iter().enumerate().filter(|(_, work)| work.job.engine() == name).collect();
            let works: Vec<&PlanWork> = own.iter().map(|(_, work)| *work).collect();
            let forecaster = self.forecasters.entry(name.to_owned()).or_insert_with(|| engine.forecast());
            let found = forecaster.stage(stage, &works, &mut self.remarks);
            for ((index, _), found) in own.into_iter().zip(found) {
                actions[index] = found;
            }
        }
        for work in &stage.works {
            remarks::of_work(work, &stage.name, &mut self.remarks);
        }
        let works: Vec<Work> =
            stage.works.iter().zip(actions).map(|(work, actions)| self.work(work, actions)).collect();
        let mut time = Time::default();
        works.iter().for_each(|work| time.beside(&work.time));
        time.then(&Time { planned_ns: stage.pause_ns, ..Time::default() });
        Stage { name: stage.name.clone(), time, works, cell: stage.cell.clone() }
    }

    fn forecaster(&self, work: &PlanWork) -> Option<&dyn Forecaster> {
        self.forecasters.get(work.job.engine()).map(|forecaster| &**forecaster)
    }

    fn work(&self, work: &PlanWork, actions: Vec<Action>) -> Work {
        Work {
            name: work.name.clone(),
            kind: work.kind,
            target: self.forecaster(work).map_or_else(String::new, |forecaster| forecaster.target(work)),
            workers: work.load.workers,
            depth: work.load.depth.max(1),
            connections: work.load.connections,
            think: work.load.pacing.think(),
            time: time_of(work, self.forecaster(work).and_then(|forecaster| forecaster.until(work))),
            actions,
        }
    }

    fn connections(&self, work: &PlanWork) -> u64 {
        self.forecaster(work).map_or(0, |forecaster| forecaster.connections(work))
    }

    fn memory(&self, work: &PlanWork) -> u64 {
        let workers = u64::from(work.load.workers).saturating_mul(WORKER_MEMORY);
        let actions = u64::from(work.load.actions).saturating_mul(ACTION_MEMORY);
        let pool = match &work.load.source {
            // A pool keeps 8 bytes for each object that it knows of, in a list that grows by doubling.
            SourcePlan::Mix { pool: Some(pool), .. } => {
                length(pool.spaces).saturating_mul(length(pool.items)).saturating_mul(16)
            }
            _ => 0,
        };
        let own = self.forecaster(work).map_or(0, |forecaster| forecaster.memory(work));
        workers.saturating_add(actions).saturating_add(pool).saturating_add(own)
    }

    fn holdings(&self) -> Holdings {
        self.forecasters.values().map(|forecaster| forecaster.holdings()).fold(
            Holdings::default(),
            |sum, own| Holdings {
                stored: sum.stored.saturating_add(own.stored),
                in_memory: sum.in_memory.saturating_add(own.in_memory),
                volumes: sum.volumes.saturating_add(own.volumes),
            },
        )
    }
}

/// How many numbers a range holds, both ends included.
pub fn length((low, high): (u64, u64)) -> u64 {
    (high + 1).saturating_sub(low)
}

/// How many operations a work has.
pub fn operations(load: &Load) -> Amount {
    if let Some(number) = load.source.operations() {
        return Amount::Exactly(number);
    }
    let unmeasured = [load.stop.ramp_up_ns, load.stop.warm_up_ns, load.stop.ramp_down_ns];
    let unmeasured = unmeasured.into_iter().fold(0, u64::saturating_add);
    match (load.stop.operations, unmeasured) {
        (Some(number), 0) if load.stop.window_ns.is_none() && load.stop.bytes.is_none() => {
            Amount::Exactly(number)
        }
        (Some(number), 0) => Amount::UpTo(number),
        _ => arrivals(load, unmeasured).map_or(Amount::Open, Amount::About),
    }
}

/// How many operations arrive in an open loop that only its time ends: its rate x its time.
fn arrivals(load: &Load, unmeasured_ns: u64) -> Option<u64> {
    let Pacing::Open { rate, .. } = &load.pacing else { return None };
    let stop = &load.stop;
    if stop.operations.is_some()
        || stop.bytes.is_some()
        || stop.steady.is_some()
        || stop.until_steady_ns.is_some()
    {
        return None;
    }
    Some(rate.due_between(0, unmeasured_ns.saturating_add(stop.window_ns?)).round() as u64)
}

/// How many operations of a work are this action.
pub fn operations_of(load: &Load, action: u16) -> Amount {
    if let SourcePlan::Rounds { orders, rounds } = &load.source {
        let one_round = orders.iter().flatten().filter(|one| **one == action).count();
        return Amount::Exactly((one_round as u64).saturating_mul(u64::from(*rounds)));
    }
    let Some(choices) = load.source.choices() else { return operations(load) };
    let pooled = matches!(&load.source, SourcePlan::Mix { pool: Some(_), .. });
    let alone = matches!(choices, [only] if only.follow.is_none()) && !pooled;
    let weight =
        |choices: &mut dyn Iterator<Item = &Choice>| choices.map(|choice| choice.weight).sum::<f64>();
    let (own, all) =
        (weight(&mut choices.iter().filter(|choice| choice.action == action)), weight(&mut choices.iter()));
    match operations(load) {
        // What only follows others.
        _ if own <= 0.0 => Amount::Open,
        Amount::Exactly(number) | Amount::About(number) if !alone => {
            Amount::About((number as f64 * own / all).round() as u64)
        }
        other => other,
    }
}

/// How long a work takes; `ends` says what ends it if it ends by itself.
fn time_of(work: &PlanWork, ends: Option<String>) -> Time {
    let stop = &work.load.stop;
    let around = stop.ramp_up_ns.saturating_add(stop.warm_up_ns).saturating_add(stop.ramp_down_ns);
    let mut until = Vec::new();
    until.extend(stop.operations.map(|number| format!("{} operations are done", units::count(number))));
    until.extend(stop.bytes.map(|number| format!("{} are moved", units::bytes(number))));
    match work.load.source.operations() {
        Some(number) => {
            let usual = || format!("all {} operations are done", units::count(number));
            until.push(ends.unwrap_or_else(usual));
        }
        // Another program knows when it is done.
        None if stop.window_ns.is_none() && until.is_empty() => until.extend(ends),
        None => {}
    }
    match stop.window_ns {
        Some(window) => {
            // Rounds may be used up, and mostly are not.
            let rounds =
                stop.steady.map_or(0, |steady| steady.round_ns.saturating_mul(u64::from(steady.most_rounds)));
            Time {
                planned_ns: around.saturating_add(rounds).saturating_add(window),
                at_most: !until.is_empty() || rounds > 0,
                until: Vec::new(),
            }
        }
        None if until.len() > 1 => {
            Time { planned_ns: around, until: vec![until.join(" or ")], at_most: false }
        }
        None => Time { planned_ns: around, until, at_most: false },
    }
}

/// Whether a work's operations are due at fixed times, and the highest rate if so.
pub fn highest_rate(work: &PlanWork) -> Option<f64> {
    match &work.load.pacing {
        Pacing::Open { rate, .. } => Some(rate.points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)),
        Pacing::Closed { .. } | Pacing::Terminals { .. } => None,
    }
}
