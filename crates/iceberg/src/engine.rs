//! The engine for tables that change, as Tidemark sees it.

use crate::commits::CommitEvidence;
use crate::cycles::CycleEvidence;
use crate::document;
use crate::forecast::Preview;
use crate::job::{self, ENGINE};
use serde::Deserialize as _;
use std::sync::Arc;
use tidemark_analytics::job::Storage;
use tidemark_judge::evidence::Kind;
use tidemark_keys::tree::Node;
use tidemark_keys::{Mapping, Problem, Table};
use tidemark_plan::engine::{Engine, Executor, Placement, Prepared, ReadWork, Setup, Target, WorkPlace};
use tidemark_plan::forecast::Forecaster;
use tidemark_plan::job::Job;
use tidemark_plan::level::{self, LevelAxis};
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::scope::Scope;

/// Commits to Apache Iceberg tables.
pub struct Iceberg {
    executor: Arc<dyn Executor>,
}

impl Iceberg {
    /// The engine whose works this carries out.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self { executor }
    }
}

static COMMITTERS: LevelAxis = LevelAxis::count("committers", 1000, "Committers of loads on Iceberg tables");

impl Engine for Iceberg {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn subject(&self) -> &'static str {
        "Iceberg tables"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        vec![&document::ICEBERG]
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        document::KEYS.to_vec()
    }

    fn target(&self, _kind: &str, table: &mut Table<'_>, _: &Environment<'_>) -> Option<Target> {
        document::target(table).map(|target| Target::new(ENGINE, target))
    }

    fn bare_target(&self, kind: &str) -> Result<Target, Problem> {
        let help = format!("write `target: {{kind: {kind}, storage: {{kind: s3, endpoint: ..., ...}}}}`");
        Err(Problem::new(format!("the target '{kind}' needs settings"), help))
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&COMMITTERS, &level::RATE]
    }

    fn claims(&self, _keyword: &str, node: &Node) -> bool {
        node.entry(document::TABLE.name).is_some()
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

    fn evidence(&self) -> Vec<&'static dyn Kind> {
        vec![&CycleEvidence, &CommitEvidence]
    }

    fn forecast(&self) -> Box<dyn Forecaster> {
        Box::new(Preview::default())
    }

    fn check_policy(&self, policy: &Policy, who: &str, work: &Work) -> Result<(), String> {
        job::Job::of(work).map_or(Ok(()), |job| job.target.storage.check_policy(policy, who))
    }

    fn rehearse(&self, plan: &Plan) -> Result<(), String> {
        let mut works = plan.stages.iter().flat_map(|stage| &stage.works);
        if works.any(|work| work.job.engine() == ENGINE) { self.executor.find() } else { Ok(()) }
    }

    fn placement(&self, _work: &Work) -> Placement {
        // Whoever compares the table's history with what was acknowledged must know all of it.
        Placement::OneMachine("Commits to Iceberg tables are made")
    }

    fn open_files(&self, work: &Work) -> u64 {
        let Some(job) = job::Job::of(work) else { return 0 };
        match job.target.storage {
            Storage::Files { .. } => 16 * u64::from(work.load.workers),
            Storage::Objects { .. } => 2 * u64::from(job.target.connections),
        }
    }

    fn reports_every_second(&self) -> bool {
        // Commits run on threads of their own.
        true
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        self.executor.prepare(plan, setup)
    }
}
