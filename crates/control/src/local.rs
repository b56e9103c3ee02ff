//! This process as the backend of a run; a driver carries out its part of a stage with it too.

use crate::backend::{Backend, BackendFactory, Opened, StagePlace};
use crate::event::{Event, EventSink};
use crate::execute::{ExecuteError, Options};
use crate::provenance;
use crate::runner::{Carrier, Runner};
use std::collections::BTreeMap;
use std::time::Instant;
use tidemark_judge::evidence;
use tidemark_load::open_files;
use tidemark_load::work::Share;
use tidemark_measure::observation::Node;
use tidemark_measure::record::{Note, Proof, Stage as Record};
use tidemark_plan::engine::{self, Holding, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Stage, Work};
use tidemark_plan::registry::Registry;

/// Runs are carried out in this process.
#[derive(Clone, Copy, Debug)]
pub struct Local;

impl BackendFactory for Local {
    fn backend(&self) -> Box<dyn Backend> {
        Box::new(LocalBackend::default())
    }
}

/// This process, with the engines that a run needs.
#[derive(Default)]
pub struct LocalBackend {
    engines: BTreeMap<String, Box<dyn Prepared>>,
}

impl LocalBackend {
    /// The evidence that the engines have for the stage's numbers, after its load.
    pub fn proof(&mut self, remarks: &[String]) -> Option<Proof> {
        let proofs = self.engines.values_mut().filter_map(|engine| engine.close(remarks));
        proofs.reduce(join)
    }

    /// What the engines use here that other drivers must not use as well.
    pub fn holdings(&self) -> Vec<Holding> {
        self.engines.values().flat_map(|engine| engine.holdings()).collect()
    }

    /// What carries out the works of a stage, each with the works' places in it.
    fn runners<'a>(
        &mut self,
        place: StagePlace<'_>,
        stage: &'a Stage,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<Runner<'a>>, String> {
        let share = |(index, work): &(usize, &Work)| {
            let given = place.shares.and_then(|shares| shares.get(*index).copied());
            given.unwrap_or_else(|| Share::whole(&work.load))
        };
        let mut runners = Vec::new();
        for (name, engine) in &mut self.engines {
            let own = stage.works.iter().enumerate().filter(|(_, work)| work.job.engine() == name);
            let mut own: std::collections::VecDeque<(usize, &'a Work)> = own.collect();
            let works: Vec<&Work> = own.iter().map(|(_, work)| *work).collect();
            if works.is_empty() {
                continue;
            }
            let shares: Vec<Share> = own.iter().map(share).collect();
            let opening = StageWorks { index: place.index, works: &works, shares: &shares };
            for carrier in engine.open(opening, notes)? {
                let works = own.drain(..carrier.works().min(own.len())).collect();
                let carrier = match carrier {
                    engine::Carrier::Sessions(sessions) => Carrier::Sessions(sessions),
                    engine::Carrier::Process(_, process) => Carrier::Process(process),
                    engine::Carrier::Helper(helper) => Carrier::Helper(helper),
                    engine::Carrier::Done(why) => Carrier::Nothing(why),
                };
                runners.push(Runner::new(works, carrier));
            }
            if let Some((_, work)) = own.front() {
                return Err(format!(
                    "work `{}`: the engine `{name}` does not carry it out; please report this as a bug",
                    work.name
                ));
            }
        }
        runners.sort_by_key(Runner::first);
        Ok(runners)
    }
}

/// The evidence of two engines that worked side by side.
fn join(one: Proof, other: Proof) -> Proof {
    let mut lost = Vec::new();
    let mut proof = one.join(other, |evidence, other| lost = evidence::join(evidence, other));
    proof.unchecked.extend(evidence::not_joined(&lost));
    proof
}

/// The name by which this process stands where a document has that of a driver: as the driver that `tidemark serve` starts.
const NAME: &str = "local";

impl Backend for LocalBackend {
    fn fit(&self, plan: &mut Plan, registry: &Registry) -> Result<(), ExecuteError> {
        registry.localize(plan, NAME).map_err(ExecuteError)
    }

    fn prepare(
        &mut self,
        plan: &Plan,
        options: &Options,
        sink: &mut dyn EventSink,
    ) -> Result<Vec<String>, ExecuteError> {
        let works = || plan.stages.iter().flat_map(|stage| &stage.works);
        let registry = &options.registry;
        works().try_for_each(|work| registry.engine_of(work).map(drop)).map_err(ExecuteError)?;
        let needed = options.open_files.unwrap_or_else(|| {
            plan.stages.iter().map(|stage| registry.open_files(&stage.works)).max().unwrap_or(0)
        });
        let threads = options.threads.unwrap_or_else(provenance::cores);
        open_files::check(needed, threads, open_files::limit())
            .map_err(|error| ExecuteError(error.to_string()))?;
        let mut targets = Vec::new();
        for engine in registry.engines() {
            if !works().any(|work| work.job.engine() == engine.name()) {
                continue;
            }
            let mut setup = Setup {
                skip_preflight: options.skip_preflight,
                allow_destroy: &options.allow_destroy,
                scratch: options.scratch.as_deref(),
                writer: options.writer.unwrap_or_else(std::process::id),
                access: options.access.clone(),
                threads: options.threads,
                ready: &mut |target| {
                    sink.event(Event::Target(&target));
                    targets.push(target);
                },
            };
            let prepared = engine.prepare(plan, &mut setup).map_err(ExecuteError)?;
            self.engines.insert(engine.name().to_owned(), prepared);
        }
        Ok(targets)
    }

    fn open<'a>(
        &mut self,
        place: StagePlace<'_>,
        stage: &'a Stage,
        notes: &mut Vec<Note>,
        sink: &mut dyn EventSink,
    ) -> Opened<'a> {
        let known = notes.len();
        let runners = self.runners(place, stage, notes);
        notes[known..].iter().for_each(|note| sink.event(Event::Trouble(&note.text)));
        match runners {
            Err(reason) => Opened::Failed(reason),
            Ok(runners) => match Runner::why_nothing(&runners) {
                Some(why) => Opened::Nothing(why),
                None => Opened::Runners(runners),
            },
        }
    }

    fn close(&mut self, _stage: &Stage, remarks: Vec<String>, record: &mut Record) {
        record.proof = self.proof(&remarks);
    }

    fn finish(&mut self, _run_start: Instant, _nodes: &mut Vec<Node>) {}
}
