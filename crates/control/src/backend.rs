//! Where the stages of a run are carried out: in this process ([`LocalBackend`](crate::local::LocalBackend)), or on the drivers of a
//! controller, which is not known here.

use crate::event::EventSink;
use crate::execute::{ExecuteError, Options};
use crate::runner::Runner;
use std::time::Instant;
use tidemark_load::work::Share as WorkShare;
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Driver, Note, Share, Stage as Record};
use tidemark_plan::plan::{Plan, Stage};
use tidemark_plan::registry::Registry;

/// Where the stages of one run are carried out. Its methods are called in this order: `fit` and `prepare`, then `open`, `shares` and
/// `close` for every stage, then `finish`; `drivers` at any time.
pub trait Backend {
    /// Fits the plan to those who carry it out: what every driver does is done as often as there are drivers.
    ///
    /// # Errors
    /// When it cannot be carried out by them.
    fn fit(&self, plan: &mut Plan, registry: &Registry) -> Result<(), ExecuteError>;

    /// Makes the plan's targets ready: returns one line for each of them. Errors mean that no load has started.
    fn prepare(
        &mut self,
        plan: &Plan,
        options: &Options,
        sink: &mut dyn EventSink,
    ) -> Result<Vec<String>, ExecuteError>;

    /// Makes everything ready for the load of a stage. Notes are for the run's record.
    fn open<'a>(
        &mut self,
        place: StagePlace<'_>,
        stage: &'a Stage,
        notes: &mut Vec<Note>,
        sink: &mut dyn EventSink,
    ) -> Opened<'a>;

    /// What each driver has of the stage that was opened, before it has done anything; none where there are no drivers.
    fn shares(&self) -> Vec<Share> {
        Vec::new()
    }

    /// The drivers, as far as they are known now; none where there are none. The run began at `run_start`.
    fn drivers(&self, run_start: Instant) -> Vec<Driver> {
        let _ = run_start;
        Vec::new()
    }

    /// The load of the stage has ended: adds what is known besides its works. The engines remarked `remarks`.
    fn close(&mut self, stage: &Stage, remarks: Vec<String>, record: &mut Record);

    /// The run has ended, and these nodes were observed from here: adds what was observed elsewhere.
    fn finish(&mut self, run_start: Instant, nodes: &mut Vec<Node>);
}

/// Makes a backend for each run.
pub trait BackendFactory: Send + Sync + std::fmt::Debug {
    /// A backend for one run.
    fn backend(&self) -> Box<dyn Backend>;
}

/// Which stage of which run, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct StagePlace<'a> {
    /// Which stage, from 0.
    pub index: usize,
    /// The workers of each work that this process has, if it has not all of them.
    pub shares: Option<&'a [WorkShare]>,
    /// When the run began.
    pub run_start: Instant,
}

/// The result of opening a stage.
pub enum Opened<'a> {
    /// These run its works, in their order.
    Runners(Vec<Runner<'a>>),
    /// There is nothing to do, and why.
    Nothing(String),
    /// It cannot be run, and why.
    Failed(String),
}
