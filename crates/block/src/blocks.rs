//! The engine, as everybody else sees it.

use crate::document::{self, Volumes};
use crate::external::External;
use crate::job::{Job, crosscheck};
use crate::{forecast, policy, prepare};
use std::sync::Arc;
use tidemark_keys::shapes::Map;
use tidemark_keys::tree::Node;
use tidemark_keys::{Key, Mapping, Problem, Table};
use tidemark_plan::content::CONTENT;
use tidemark_plan::defaults;
use tidemark_plan::engine::{Counterpart, Engine, Placement, Prepared, ReadWork, Setup, Target, WorkPlace};
use tidemark_plan::forecast::Forecaster;
use tidemark_plan::job::Job as AnyJob;
use tidemark_plan::level::{LevelAxis, RATE};
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::scope::Scope;

/// The engine's name.
pub const NAME: &str = "block";

/// Load on files, devices and RBD images.
pub struct Blocks {
    external: Arc<dyn External>,
}

impl Blocks {
    /// With `external` for jobs that say `engine: fio`, and for images.
    pub fn new(external: Arc<dyn External>) -> Self {
        Self { external }
    }
}

static CLIENTS: LevelAxis =
    LevelAxis::count("clients", defaults::MOST_WORKERS, "Clients of loads on volumes");
static DEPTH: LevelAxis = LevelAxis::count("depth", defaults::MOST_DEPTH, "Operations in flight per client");

impl Engine for Blocks {
    fn name(&self) -> &'static str {
        NAME
    }

    fn subject(&self) -> &'static str {
        "volumes"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        document::KINDS.to_vec()
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        document::KEYS.to_vec()
    }

    fn works_on(&self, target: &str) -> Vec<&'static Mapping> {
        document::works_on(target)
    }

    fn sections(&self) -> Vec<&'static Key<Map>> {
        vec![&CONTENT]
    }

    fn target(&self, kind: &str, table: &mut Table<'_>, environment: &Environment<'_>) -> Option<Target> {
        document::volumes(kind, table, environment).map(|volumes| Target::new(NAME, volumes))
    }

    fn bare_target(&self, kind: &str) -> Result<Target, Problem> {
        let help = format!("write `target: {{kind: {kind}, ...}}` with its path and size");
        Err(Problem::new(format!("the target '{kind}' needs settings"), help))
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&CLIENTS, &DEPTH, &RATE]
    }

    fn claims(&self, keyword: &str, node: &Node) -> bool {
        match keyword {
            "precondition" => true,
            "load" => node.entry("pattern").is_some(),
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
        let Some(volumes) = target.get::<Volumes>() else { return Vec::new() };
        document::works(place, table, volumes, scope, context)
    }

    fn unpack(&self, data: &serde_json::Value) -> Result<AnyJob, serde_json::Error> {
        serde::Deserialize::deserialize(data).map(|job: Job| AnyJob::new(job))
    }

    fn forecast(&self) -> Box<dyn Forecaster> {
        Box::new(forecast::Volumes::default())
    }

    fn check_policy(&self, policy: &Policy, who: &str, work: &Work) -> Result<(), String> {
        work.job.get::<Job>().map_or(Ok(()), |job| policy::check(policy, who, job))
    }

    fn counterpart(&self, work: &Work) -> Counterpart {
        crosscheck::counterpart(work)
    }

    fn placement(&self, work: &Work) -> Placement {
        match work.job.get::<Job>() {
            Some(job) if job.per_driver => Placement::EachDriver,
            _ => Placement::OneMachine("Volumes are"),
        }
    }

    fn localize(&self, work: &mut Work, driver: &str) -> Result<(), String> {
        let Some(job) = work.job.get::<Job>().filter(|job| job.per_driver) else { return Ok(()) };
        let mut own = job.clone();
        own.localize(driver)?;
        work.job = AnyJob::new(own);
        Ok(())
    }

    fn open_files(&self, work: &Work) -> u64 {
        // The one that is examined, and the one that is loaded.
        work.job.get::<Job>().map_or(0, |job| 2 * job.volumes.len() as u64)
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        prepare::prepare(plan, Arc::clone(&self.external), setup)
    }
}

#[cfg(test)]
mod tests;
