//! The SQL engine as Tidemark sees it.

use crate::counterpart;
use crate::databases;
use crate::document::{instances, target, work};
use crate::forecast::Preview;
use crate::instances::Instances;
use crate::job::{self, ENGINE, Program};
use crate::policy;
use crate::prepare::Ready;
use serde::Deserialize as _;
use tidemark_judge::evidence::Kind;
use tidemark_keys::tree::Node;
use tidemark_keys::{Mapping, Problem, Table};
use tidemark_load::work::Share;
use tidemark_plan::defaults;
use tidemark_plan::engine::{Counterpart, Engine, Placement, Prepared, ReadWork, Setup, Target, WorkPlace};
use tidemark_plan::forecast::Forecaster;
use tidemark_plan::job::Job;
use tidemark_plan::level::{LevelAxis, RATE};
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::scope::Scope;

/// Puts load on databases.
#[derive(Clone, Copy, Debug)]
pub struct Databases;

static CLIENTS: LevelAxis = LevelAxis::count(
    "clients",
    defaults::MOST_WORKERS,
    "Connections of loads on databases, on each instance",
);
static INSTANCES: LevelAxis =
    LevelAxis::count("instances", instances::MOST as u32, "Instances of a database that loads run on");

impl Engine for Databases {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn subject(&self) -> &'static str {
        "databases"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        target::KINDS.to_vec()
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        work::KEYS.to_vec()
    }

    fn target(&self, kind: &str, table: &mut Table<'_>, _: &Environment<'_>) -> Option<Target> {
        target::target(kind, table).map(|instances| Target::new(ENGINE, instances))
    }

    fn bare_target(&self, kind: &str) -> Result<Target, Problem> {
        let help = format!("write `target: {{kind: {kind}, host: ..., user: ..., database: ...}}`");
        Err(Problem::new(format!("the target '{kind}' needs settings"), help))
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&CLIENTS, &INSTANCES, &RATE]
    }

    fn claims(&self, _keyword: &str, node: &Node) -> bool {
        node.entry("workload").is_some()
    }

    fn works(
        &self,
        place: WorkPlace,
        table: Table<'_>,
        target: &Target,
        _scope: &Scope<'_>,
        context: &Context<'_>,
    ) -> Vec<ReadWork> {
        let Some(instances) = target.get::<Instances>() else { return Vec::new() };
        let work = work::work(place, table, instances, context.seed);
        work.map(|work| ReadWork { work, point: None }).into_iter().collect()
    }

    fn unpack(&self, data: &serde_json::Value) -> Result<Job, serde_json::Error> {
        job::Job::deserialize(data).map(Job::new)
    }

    fn evidence(&self) -> Vec<&'static dyn Kind> {
        vec![&databases::DatabaseEvidence]
    }

    fn forecast(&self) -> Box<dyn Forecaster> {
        Box::new(Preview::default())
    }

    fn check_policy(&self, policy: &Policy, who: &str, work: &Work) -> Result<(), String> {
        job::Job::of(work).map_or(Ok(()), |job| policy::check(policy, who, job))
    }

    fn counterpart(&self, work: &Work) -> Counterpart {
        counterpart::counterpart(work)
    }

    fn placement(&self, work: &Work) -> Placement {
        let Some(job) = job::Job::of(work) else { return Placement::Divisible };
        let mut endpoints = job.instances.iter().flat_map(job::Target::servers);
        let is_local = endpoints.any(|endpoint| matches!(endpoint, job::Endpoint::Unix(_)));
        match job.purpose {
            _ if is_local => Placement::OneMachine("Unix sockets are"),
            _ if job.program != Program::Tidemark => {
                Placement::OneMachine("Loads of pgbench and sysbench are")
            }
            // Several would each drop what the others have begun to load.
            job::Purpose::Fill { fresh: true } => Placement::OneMachine("A new data set is loaded"),
            _ => Placement::Divisible,
        }
    }

    fn open_files(&self, work: &Work) -> u64 {
        work.load.slots(Share::whole(&work.load)).1.into()
    }

    fn reports_every_second(&self) -> bool {
        // Nothing that goes over sockets holds a thread up.
        true
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        Ok(Box::new(Ready::prepare(plan, setup)?))
    }
}
