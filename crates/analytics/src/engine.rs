//! The analytics engine as Tidemark sees it.

use crate::document;
use crate::forecast::Preview;
use crate::job::{self, ENGINE, Purpose, Storage};
use serde::Deserialize as _;
use std::sync::Arc;
use tidemark_keys::tree::Node;
use tidemark_keys::{Mapping, Problem, Table};
use tidemark_plan::engine::{Engine, Executor, Placement, Prepared, ReadWork, Setup, Target, WorkPlace};
use tidemark_plan::forecast::Forecaster;
use tidemark_plan::job::Job;
use tidemark_plan::level::LevelAxis;
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::scope::Scope;

/// Makes tables of decision support, and runs queries on them.
pub struct Analytics {
    executor: Arc<dyn Executor>,
}

impl Analytics {
    /// The engine whose works this carries out.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self { executor }
    }
}

static STREAMS: LevelAxis = LevelAxis::count("streams", 1000, "Streams of queries of loads on tables");

impl Engine for Analytics {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn subject(&self) -> &'static str {
        "tables"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        vec![&document::DATAFUSION, &document::TRINO]
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        document::KEYS.to_vec()
    }

    fn target(&self, kind: &str, table: &mut Table<'_>, _: &Environment<'_>) -> Option<Target> {
        document::target(kind, table).map(|target| Target::new(ENGINE, target))
    }

    fn bare_target(&self, kind: &str) -> Result<Target, Problem> {
        let needs = match kind == document::TRINO.name {
            true => "endpoint: http://..., storage: {kind: s3, endpoint: ...}",
            false => "storage: {kind: files, directory: ...}",
        };
        let help = format!("write `target: {{kind: {kind}, {needs}}}`");
        Err(Problem::new(format!("the target '{kind}' needs settings"), help))
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&STREAMS]
    }

    fn claims(&self, _keyword: &str, node: &Node) -> bool {
        node.entry(document::TABLES.name).is_some()
    }

    fn works(
        &self,
        place: WorkPlace,
        table: Table<'_>,
        target: &Target,
        _scope: &Scope<'_>,
        context: &Context<'_>,
    ) -> Vec<ReadWork> {
        let Some(target) = target.get::<job::Target>() else { return Vec::new() };
        let work = document::work(place, table, target, context);
        work.map(|work| ReadWork { work, point: None }).into_iter().collect()
    }

    fn unpack(&self, data: &serde_json::Value) -> Result<Job, serde_json::Error> {
        job::Job::deserialize(data).map(Job::new)
    }

    fn forecast(&self) -> Box<dyn Forecaster> {
        Box::new(Preview::default())
    }

    fn check_policy(&self, policy: &Policy, who: &str, work: &Work) -> Result<(), String> {
        let Some(job) = job::Job::of(work) else { return Ok(()) };
        let trusted = job.target.trino().and_then(|trino| trino.ca_file.as_ref());
        trusted.into_iter().try_for_each(|path| policy.allow(who, path))?;
        job.target.storage.check_policy(policy, who)
    }

    fn rehearse(&self, plan: &Plan) -> Result<(), String> {
        let mut works = plan.stages.iter().flat_map(|stage| &stage.works);
        if works.any(|work| work.job.engine() == ENGINE) { self.executor.find() } else { Ok(()) }
    }

    fn placement(&self, work: &Work) -> Placement {
        let Some(job) = job::Job::of(work) else { return Placement::Divisible };
        match (&job.target.storage, &job.purpose) {
            (Storage::Files { .. }, _) => Placement::OneMachine("Files are"),
            // What was there is looked at, and removed, by the one that makes it anew.
            (_, Purpose::Make { .. } | Purpose::Generate { .. }) => Placement::OneMachine("Tables are made"),
            (storage, _) if storage.embedded().is_some() => Placement::OneMachine("Embedded servers run"),
            _ => Placement::Divisible,
        }
    }

    fn open_files(&self, work: &Work) -> u64 {
        let Some(job) = job::Job::of(work) else { return 0 };
        let workers = u64::from(work.load.workers);
        match (&job.target.engine, &job.target.storage) {
            (_, Storage::Files { .. }) => 16 * workers,
            (job::Engine::DataFusion(_), Storage::Objects { .. }) => 2 * u64::from(job.target.connections),
            // A connection to the coordinator for each, beside those to storage.
            (job::Engine::Trino(_), Storage::Objects { .. }) => {
                2 * u64::from(job.target.connections) + workers
            }
        }
    }

    fn reports_every_second(&self) -> bool {
        // Queries run on threads of their own.
        true
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        self.executor.prepare(plan, setup)
    }
}
