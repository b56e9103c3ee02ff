//! What a controller needs of the world around it, as closures: the drivers that there are, and how a plan is carried out on
//! some of them. Tests carry plans out in their own process.

use crate::environment::{Secrets, restricted};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidemark_control::evaluate::{self, Evaluated, EvaluationSink, evaluate};
use tidemark_control::event::EventSink;
use tidemark_control::execute::{self, Executed, Trust, execute};
use tidemark_fleet::Fleet;
use tidemark_fleet::fleet::Member;
use tidemark_measure::record::Provenance;
use tidemark_plan::evaluation::Evaluation;
use tidemark_plan::plan::Plan;
use tidemark_plan::registry::Registry;
use tidemark_store::Store;

/// How often what could not be stored is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What is to be carried out, besides the document.
#[derive(Clone, Debug)]
pub struct Task {
    /// The submission's number.
    pub id: u64,
    /// The drivers that are its own until it ends.
    pub drivers: Vec<String>,
    /// Where the document came from.
    pub provenance: Provenance,
    /// Whether to begin without a check of the targets.
    pub skip_preflight: bool,
    /// Directory for temporary files.
    pub scratch: Option<PathBuf>,
    /// Directory of files with secrets that the document may refer to.
    pub secrets: Secrets,
}

/// Carries a plan out. Errors are sentences, and mean that no load was put on anything.
pub type Execute = Arc<
    dyn Fn(&Plan, Task, Option<&mut Store>, &mut dyn EventSink) -> Result<Executed, String> + Send + Sync,
>;

/// Carries an evaluation out. Errors are sentences.
pub type Evaluate = Arc<
    dyn Fn(&Evaluation, Task, Option<&mut Store>, &mut dyn EvaluationSink) -> Result<Evaluated, String>
        + Send
        + Sync,
>;

/// What a controller works with.
#[derive(Clone)]
pub struct Executor {
    /// All drivers by name.
    pub members: Arc<dyn Fn() -> Vec<Member> + Send + Sync>,
    /// Carries a plan out.
    pub execute: Execute,
    /// Carries an evaluation out.
    pub evaluate: Evaluate,
    /// How often what could not be stored is tried again.
    pub retry: Duration,
}

impl Executor {
    /// On the drivers of a fleet.
    pub fn on(fleet: Arc<Fleet>, registry: Registry) -> Self {
        let members = fleet.clone();
        let engines = registry.clone();
        let options = move |task: &Task| {
            let backends = tidemark_fleet::backend::on(fleet.clone(), task.drivers.clone());
            execute::Options {
                skip_preflight: task.skip_preflight,
                scratch: task.scratch.clone(),
                ..execute::Options::new(engines.clone(), backends, Trust::Network)
            }
        };
        Self { members: Arc::new(move || members.members()), ..Self::with(options, registry) }
    }

    /// Without drivers; `options` says how a task is carried out.
    pub(crate) fn with(
        options: impl Fn(&Task) -> execute::Options + Send + Sync + Clone + 'static,
        registry: Registry,
    ) -> Self {
        let of_runs = options.clone();
        Self {
            members: Arc::new(Vec::new),
            execute: Arc::new(move |plan, task, store, sink| {
                let options = options(&task);
                execute(plan, task.provenance, &options, store, sink).map_err(|error| error.to_string())
            }),
            evaluate: Arc::new(move |document, task, store, sink| {
                let options = evaluate::Options { renew: true, ..evaluate::Options::new(of_runs(&task)) };
                let Task { provenance, secrets, .. } = task;
                let evaluated = restricted(Some(&secrets), &registry, &|| true, |environment| {
                    evaluate(document, provenance, &options, environment, store, sink)
                });
                evaluated.map_err(|error| error.to_string())
            }),
            retry: RETRY,
        }
    }
}
