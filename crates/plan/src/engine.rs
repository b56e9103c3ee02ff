//! What an engine is: all that Tidemark must know of a way to put load on something.
//!
//! An engine is one crate with one [`Engine`], listed in the binary's [`Registry`](crate::registry::Registry). Everybody
//! else asks that interface; nobody matches on the kind of engine. The methods follow the way of a document: its keys are
//! [read](Engine::works), its effects [forecast](Engine::forecast), what it touches is [checked](Engine::check_policy), its
//! workers are [placed](Engine::placement), its targets [prepared](Engine::prepare), and each stage is
//! [opened](Prepared::open) and [closed](Prepared::close).

use crate::forecast::Forecaster;
use crate::job::Job;
use crate::level::LevelAxis;
use crate::plan::{Plan, Work, WorkKind};
use crate::policy::{Access, Policy};
use crate::yaml::context::Context;
use crate::yaml::environment::Environment;
use crate::yaml::scope::Scope;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidemark_judge::evidence::Kind;
use tidemark_keys::shapes::Map;
use tidemark_keys::tree::Node;
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_load::engine::{OpenError, Sessions};
use tidemark_load::thread_pool::{self, Coordinator, Ending, Watch};
use tidemark_load::work::Share;
use tidemark_measure::record::{Cell, Note, Proof};

/// A way to put load on something.
pub trait Engine: Send + Sync {
    /// Its name, by which jobs refer to it: `object`.
    fn name(&self) -> &'static str;

    /// What it puts load on, in messages: `objects`.
    fn subject(&self) -> &'static str;

    /// The kinds of targets that it puts load on, each with its keys: `target: {kind: s3}`.
    fn targets(&self) -> Vec<&'static Mapping>;

    /// The keys of its works, under the names of the [kinds](crate::yaml::works::KINDS) of works that it has: beside those that
    /// [every work](crate::yaml::works::WORK) has.
    fn work_keys(&self) -> Vec<&'static Mapping>;

    /// Those of them that make sense on this kind of target.
    fn works_on(&self, _target: &str) -> Vec<&'static Mapping> {
        self.work_keys()
    }

    /// Keys that documents, stages and works may give once for all below, such as `naming`.
    fn sections(&self) -> Vec<&'static Key<Map>> {
        Vec::new()
    }

    /// Reads the mapping under `target`; its `kind` is one of [`Engine::targets`] and has been read. `None` after an error
    /// that leaves nothing to go on with.
    fn target(&self, kind: &str, table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Target>;

    /// The target that is named without settings: `target: embedded`.
    ///
    /// # Errors
    /// When this kind of target needs settings.
    fn bare_target(&self, kind: &str) -> Result<Target, Problem>;

    /// The target with which a work that this engine [claims](Self::claims) is read on after an error in its own; nothing is
    /// run on it. `None`: the work is not read.
    fn stand_in_target(&self) -> Option<Target> {
        None
    }

    /// The keys of its loads that the levels of an evaluation can set.
    fn axes(&self) -> Vec<&'static LevelAxis> {
        Vec::new()
    }

    /// Whether a work is meant for this engine, as its keys show: for works without a target, to which an arm of an
    /// evaluation may lend one. `node` is what stands under `keyword`.
    fn claims(&self, keyword: &str, node: &Node) -> bool;

    /// Reads a work: one, or those that a sweep makes of it.
    fn works(
        &self,
        place: WorkPlace,
        table: Table<'_>,
        target: &Target,
        scope: &Scope<'_>,
        context: &Context<'_>,
    ) -> Vec<ReadWork>;

    /// The job in a work that has travelled.
    ///
    /// # Errors
    /// When the data is not a job of this engine.
    fn unpack(&self, data: &serde_json::Value) -> Result<Job, serde_json::Error>;

    /// The kinds of evidence that its stages leave in a record, beside what all engines leave there.
    fn evidence(&self) -> Vec<&'static dyn Kind> {
        Vec::new()
    }

    /// What goes through the stages of a plan before it runs, and says what they do.
    fn forecast(&self) -> Box<dyn Forecaster>;

    /// Whether a work that came over the network touches only what `policy` allows on this machine; `who` names it in
    /// messages.
    ///
    /// # Errors
    /// A sentence without a full stop that says what is not allowed, and what to do.
    fn check_policy(&self, policy: &Policy, who: &str, work: &Work) -> Result<(), String>;

    /// Asks the programs of this machine that would carry out the plan's works whether they understand them. Nothing is
    /// run, and a machine without such programs has no objection.
    ///
    /// # Errors
    /// What the program objects to, in its own words.
    fn rehearse(&self, _plan: &Plan) -> Result<(), String> {
        Ok(())
    }

    /// A load as another program does it, so that the two can be compared.
    fn counterpart(&self, _work: &Work) -> Counterpart {
        Counterpart::None
    }

    /// Which drivers can carry out a work.
    fn placement(&self, work: &Work) -> Placement;

    /// Makes of a work what the driver of this name carries out, where what it touches is named after the driver.
    ///
    /// # Errors
    /// A sentence without a full stop, when the name cannot stand where the document has it.
    fn localize(&self, _work: &mut Work, _driver: &str) -> Result<(), String> {
        Ok(())
    }

    /// How many files and sockets a work has open at once in the process that carries it out.
    fn open_files(&self, _work: &Work) -> u64 {
        0
    }

    /// Whether a process that carries out works of this engine reports on every second, whatever the target does. Of one that
    /// should and does not, a controller takes its driver for stuck.
    fn reports_every_second(&self) -> bool {
        false
    }

    /// Finds out what the plan's works of this engine leave open, such as which objects are there already, and writes it into
    /// the plan. Called once for each run, by the process that leads it, before any [`prepare`](Self::prepare): all who carry
    /// the plan out have the same findings. `may_open_files`: whether the plan may name files of this machine. Gives a line
    /// for each finding.
    ///
    /// # Errors
    /// One sentence that says what is wrong and what to do. Nothing has been prepared then.
    fn survey(&self, _plan: &mut Plan, _may_open_files: bool) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// Makes ready what the plan's works of this engine need: starts servers, guards data from being overwritten, asks
    /// targets whether they answer. Called once for each run, and only if the plan has such works.
    ///
    /// # Errors
    /// One sentence that says what is wrong and what to do. No load has run then.
    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String>;
}

/// What the load runs against, as its engine has read it.
#[derive(Clone)]
pub struct Target {
    engine: &'static str,
    data: Arc<dyn Any + Send + Sync>,
}

impl Target {
    /// The target of the engine of this name.
    pub fn new<T: Any + Send + Sync>(engine: &'static str, data: T) -> Self {
        Self { engine, data: Arc::new(data) }
    }

    /// The name of its engine.
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// The target as its engine sees it; `None` if it is of another engine.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.data.downcast_ref()
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its data may hold secrets.
        write!(formatter, "Target({})", self.engine)
    }
}

/// Where a work stands in its document.
#[derive(Clone, Copy, Debug)]
pub struct WorkPlace {
    /// The key under which it stands: `load`.
    pub keyword: &'static str,
    /// What it is for.
    pub kind: WorkKind,
    /// Its stage and its place there: with the seed, what its random choices come from.
    pub stream: [u64; 2],
    /// Whether its stage has no other work. Only such a work can be a sweep.
    pub alone: bool,
}

/// A work that was read, and the point of a sweep that it is, if it is one.
#[derive(Clone, Debug)]
pub struct ReadWork {
    /// The work.
    pub work: Work,
    /// The point.
    pub point: Option<Point>,
}

/// A point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// The name of its stage.
    pub name: String,
    /// Its axes and repeat; the reader fills in the sweep's name.
    pub cell: Cell,
}

/// A load as another program does it.
#[derive(Clone, Debug)]
pub enum Counterpart {
    /// No other program does it.
    None,
    /// One does such loads, but not this one. What stands behind the stage's name in a sentence that says why, and what to do.
    Refused(String),
    /// One does the same.
    Same {
        /// What does the load, and what does the other one: `native` and `fio`.
        engines: [&'static str; 2],
        /// The work that has the other program do it.
        work: Box<Work>,
    },
}

/// Which drivers can carry out a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Its workers can be divided over any drivers.
    Divisible,
    /// Every driver carries out all of it, on data of its own: volumes of the same names on several machines, or named after the driver.
    /// The workers of the document are those of each driver.
    EachDriver,
    /// It needs data on one machine; the start of a message names it, for example `Volumes are`.
    OneMachine(&'static str),
}

/// Something that a driver has to itself in a run, or should have: two drivers must not have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// As the document names it.
    pub name: String,
    /// What tells it from all others, by whatever name it is reached.
    pub identity: String,
    /// Whether others on another machine can have one of the same identity.
    pub is_local: bool,
    /// Whether the run changes or removes it.
    pub changes: bool,
    /// Whether the run removes it.
    pub removes: bool,
    /// Whether the document gives every driver one of its own.
    pub each: bool,
}

impl Holding {
    /// Whether two drivers must not both have it: this, and the same as another one names it.
    pub fn collides(&self, other: &Holding) -> bool {
        (self.each || other.each) && (self.changes || other.changes)
    }
}

/// How a run is set up on this machine.
pub struct Setup<'a> {
    /// Whether to begin without a check of the targets. Data is guarded all the same.
    pub skip_preflight: bool,
    /// Whose content may be destroyed although it is not Tidemark's, as the user named it: a device or file by its path, an
    /// RBD image as `pool/image`, a bucket as `s3://NAME`.
    pub allow_destroy: &'a [PathBuf],
    /// The directory for temporary files; `None`: the working directory.
    pub scratch: Option<&'a Path>,
    /// The number that tells what this process writes apart from what others write for the same run.
    pub writer: u32,
    /// The files of this machine that the run may open.
    pub access: Access,
    /// Generator threads of a work; `None`: one per processor.
    pub threads: Option<u32>,
    /// Takes one line for each target that is ready.
    pub ready: &'a mut dyn FnMut(String),
}

/// What makes the works of an engine ready and carries them out, where that is not in the engine's crate: a program beside this
/// one, which is large, or starts slowly, or may run out of memory.
pub trait Executor: Send + Sync {
    /// As [`Engine::prepare`].
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String>;

    /// Whether it could begin here.
    ///
    /// # Errors
    /// One sentence that says what is missing and what to do.
    fn find(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The works of an engine in a stage that is to be opened.
#[derive(Clone, Copy)]
pub struct StageWorks<'a> {
    /// Which stage of the plan, from 0.
    pub index: usize,
    /// The works, in their order.
    pub works: &'a [&'a Work],
    /// The workers of each that this process has.
    pub shares: &'a [Share],
}

/// An engine ready for one run. Its servers and files go when it is dropped.
pub trait Prepared {
    /// What the plan uses on this machine that other drivers must not use as well.
    fn holdings(&self) -> Vec<Holding> {
        Vec::new()
    }

    /// Makes everything ready for this engine's works of a stage. Gives what carries them out; together the carriers have all
    /// works, in their order.
    ///
    /// # Errors
    /// Why the stage cannot be run, with the name of the work.
    fn open(&mut self, stage: StageWorks<'_>, notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String>;

    /// The stage's load has ended: gives the evidence for its numbers, if the engine has any. `remarks` are those of what
    /// carried the works out.
    fn close(&mut self, remarks: &[String]) -> Option<Proof> {
        let _ = remarks;
        None
    }
}

/// What carries works out.
pub enum Carrier {
    /// Sessions on threads of our own: one work.
    Sessions(Box<dyn Sessions>),
    /// A process that runs the load of this many works by itself.
    Process(usize, Arc<dyn Process>),
    /// Another process of Tidemark: one work.
    Helper(Box<dyn Helper>),
    /// Nothing: the work has been done already, and why.
    Done(String),
}

impl Carrier {
    /// How many works it carries out.
    pub fn works(&self) -> usize {
        match self {
            Carrier::Sessions(_) | Carrier::Helper(_) | Carrier::Done(_) => 1,
            Carrier::Process(works, _) => *works,
        }
    }
}

/// Another program that puts load on.
pub trait Process: Send + Sync {
    /// Carries out some works to their end, side by side. Gives one result for each.
    fn run(
        &self,
        works: &[&Work],
        watches: &mut [&mut dyn Watch],
    ) -> Vec<Result<thread_pool::Result, OpenError>>;
}

/// A work in another process of Tidemark, which carries out the share with which the work was opened, as a driver does.
pub trait Helper: Send + Sync {
    /// Starts the share when `coordinator` says, passes its seconds and instructions on, and waits for its end.
    ///
    /// # Errors
    /// Why the rest of it is lost.
    fn run(&self, coordinator: &mut dyn Coordinator) -> Result<Ending, OpenError>;
}
