//! The engine for the life of volumes, as Tidemark sees it.

use crate::document;
use crate::forecast::Preview;
use crate::job::{self, ENGINE};
use crate::prepare::Ready;
use serde::Deserialize as _;
use tidemark_keys::tree::Node;
use tidemark_keys::{Mapping, Problem, Table};
use tidemark_plan::engine::{Engine, Placement, Prepared, ReadWork, Setup, Target, WorkPlace};
use tidemark_plan::forecast::Forecaster;
use tidemark_plan::job::Job;
use tidemark_plan::level::LevelAxis;
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::policy::Policy;
use tidemark_plan::yaml::context::Context;
use tidemark_plan::yaml::environment::Environment;
use tidemark_plan::yaml::scope::Scope;

/// The life of volumes on Kubernetes.
#[derive(Clone, Copy, Debug)]
pub struct Claims;

static AT_ONCE: LevelAxis =
    LevelAxis::count("at_once", document::MOST_AT_ONCE, "Volumes that live at once in loads on volumes");

impl Engine for Claims {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn subject(&self) -> &'static str {
        "volumes of a cluster"
    }

    fn targets(&self) -> Vec<&'static Mapping> {
        vec![&document::CLAIMS]
    }

    fn work_keys(&self) -> Vec<&'static Mapping> {
        vec![&document::LOAD]
    }

    fn target(&self, _kind: &str, table: &mut Table<'_>, _: &Environment<'_>) -> Option<Target> {
        document::target(table).map(|target| Target::new(ENGINE, target))
    }

    fn bare_target(&self, kind: &str) -> Result<Target, Problem> {
        let help = format!("write `target: {{kind: {kind}, class: ...}}`");
        Err(Problem::new(format!("the target '{kind}' needs a storage class"), help))
    }

    fn axes(&self) -> Vec<&'static LevelAxis> {
        vec![&AT_ONCE]
    }

    fn claims(&self, _keyword: &str, node: &Node) -> bool {
        node.entry(document::LIVES.name).is_some()
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
        Box::new(Preview)
    }

    fn check_policy(&self, _policy: &Policy, who: &str, _work: &Work) -> Result<(), String> {
        // It would act with this machine's rights in a cluster.
        Err(format!(
            "{who} claims volumes with the kubeconfig of this machine, which documents from the network may not: run it with `tidemark \
             run` where the kubeconfig is"
        ))
    }

    fn placement(&self, _work: &Work) -> Placement {
        Placement::OneMachine("Volumes of a cluster are claimed")
    }

    fn prepare(&self, plan: &Plan, setup: &mut Setup<'_>) -> Result<Box<dyn Prepared>, String> {
        Ok(Box::new(Ready::prepare(plan, setup)?))
    }
}
