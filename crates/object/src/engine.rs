//! The object engine as Tidemark sees it.

use crate::document::{naming::NAMING, target, work};
use crate::existing;
use crate::forecast::{self, Preview};
use crate::job::{self, ENGINE, Place, Target as Storage};
use crate::policy;
use crate::prepare::Servers;
use serde::Deserialize as _;
use tidemark_keys::shapes::Map;
use tidemark_keys::tree::Node;
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_plan::content::CONTENT;
use tidemark_plan::defaults;
use tidemark_plan::engine::{Engine, Placement, Prepared, ReadWork, Setup, Target, WorkPlace};
use tidemark_plan::forecast::Forecaster;
use tidemark_plan::job::Job;
use tidemark_plan::level::{LevelAxis, RATE};
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::scope::Scope;

/// Puts load on object storage: S3, Swift, the server inside Tidemark, COSBench's mock.
#[derive(Clone, Copy, Debug)]
pub struct Objects;

static WORKERS: LevelAxis =
    LevelAxis::count("workers", defaults::MOST_WORKERS, "Workers of loads on objects");

impl Engine for Objects {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn subject(&self) -> &'static str {
        "objects"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        target::KINDS.to_vec()
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        work::KEYS.to_vec()
    }

    fn sections(&self) -> Vec<&'static Key<Map>> {
        vec![&NAMING, &CONTENT]
    }

    fn target(&self, kind: &str, table: &mut Table<'_>, _: &Environment<'_>) -> Option<Target> {
        target::target(kind, table).map(|storage| Target::new(ENGINE, storage))
    }

    fn bare_target(&self, kind: &str) -> Result<Target, Problem> {
        target::bare(kind).map(|storage| Target::new(ENGINE, storage))
    }

    fn stand_in_target(&self) -> Option<Target> {
        Some(Target::new(ENGINE, Storage::Nothing))
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&WORKERS, &RATE]
    }

    fn claims(&self, keyword: &str, node: &Node) -> bool {
        match keyword {
            "init" | "dispose" => true,
            "load" => node.entry("operations").is_some(),
            _ => false,
        }
    }

    fn works(
        &self,
        place: WorkPlace,
        table: Table<'_>,
        target: &Target,
        scope: &Scope<'_>,
        context: &Context<'_>,
    ) -> Vec<ReadWork> {
        let Some(storage) = target.get::<Storage>() else { return Vec::new() };
        let work = work::work(place, table, storage.clone(), scope, context);
        work.map(|work| ReadWork { work, point: None }).into_iter().collect()
    }

    fn unpack(&self, data: &serde_json::Value) -> Result<Job, serde_json::Error> {
        job::Job::deserialize(data).map(Job::new)
    }

    fn forecast(&self) -> Box<dyn Forecaster> {
        Box::new(Preview::default())
    }

    fn check_policy(&self, policy: &Policy, who: &str, work: &Work) -> Result<(), String> {
        job::Job::of(work).map_or(Ok(()), |job| policy::check(policy, who, job))
    }

    fn placement(&self, work: &Work) -> Placement {
        match job::Job::of(work).map(|job| &job.target) {
            Some(Storage::Embedded(_)) => Placement::OneMachine("Embedded servers run"),
            _ => Placement::Divisible,
        }
    }

    fn open_files(&self, work: &Work) -> u64 {
        let connections = forecast::connections(work);
        match job::Job::of(work).map(|job| &job.target) {
            // The server's ends are in this process, too, and its files while they are written or read.
            Some(Storage::Embedded(server)) => {
                connections.saturating_mul(if server.place == Place::Memory { 2 } else { 3 })
            }
            _ => connections,
        }
    }

    fn reports_every_second(&self) -> bool {
        // Nothing that goes over sockets holds a thread up.
        true
    }

    fn survey(&self, plan: &mut Plan, may_open_files: bool) -> Result<Vec<String>, String> {
        existing::survey(plan, may_open_files)
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        Ok(Box::new(Servers::prepare(plan, setup)?))
    }
}
