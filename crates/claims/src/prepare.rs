//! A run made ready: clusters asked, owners made; and at the end of a stage everything removed, and what was seen put on record.

use crate::job::{Job, Target};
use crate::leftovers;
use crate::lives::Lives;
use crate::manifests::{self, Owner};
use crate::survey::{Survey, told};
use serde::Deserialize as _;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;
use tidemark_apiserver::{Client, Which};
use tidemark_kubernetes::run_name;
use tidemark_measure::record::{Note, Proof};
use tidemark_plan::engine::{Carrier, Prepared, Setup, StageWorks};
use tidemark_plan::plan::{Plan, Work};

/// How long what a stage has made may take to go.
const REMOVAL: Duration = Duration::from_secs(180);

/// The engine ready for one run.
pub(crate) struct Ready {
    /// The plan's name.
    plan: String,
    stage: Vec<Stage>,
}

/// A load of the stage that is open.
struct Stage {
    client: Arc<Client>,
    run: String,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.run.is_empty() {
            // Something broke; what is left can be cleaned up by its labels.
            let _ = leftovers::remove(&self.client, &self.run, REMOVAL);
        }
    }
}

fn connect(target: &Target) -> Result<Client, String> {
    let which = Which {
        kubeconfig: None,
        context: target.context.as_deref(),
        namespace: target.namespace.as_deref(),
    };
    Client::connect(which)
}

impl Ready {
    /// Asks each cluster once whether it has the class.
    pub(crate) fn prepare(plan: &Plan, setup: &mut Setup<'_>) -> Result<Self, String> {
        let mut asked: Vec<&Target> = Vec::new();
        for job in plan.stages.iter().flat_map(|stage| &stage.works).filter_map(Job::of) {
            if !asked.contains(&&job.target) {
                asked.push(&job.target);
                let client = connect(&job.target)?;
                Survey::make(&client, job)?;
                let (class, namespace) = (&job.target.class, client.namespace());
                (setup.ready)(format!(
                    "volumes of the class {class} at {}, namespace {namespace}",
                    client.server()
                ));
            }
        }
        Ok(Self { plan: plan.name.clone(), stage: Vec::new() })
    }

    fn carrier(&mut self, work: &Work, notes: &mut Vec<Note>) -> Result<Carrier, String> {
        let job = Job::of(work).ok_or("its job is not one on volumes")?;
        let client = Arc::new(connect(&job.target)?);
        let survey = Survey::make(&client, job)?;
        for text in &survey.found {
            let note = Note { topic: "volumes".into(), text: text.clone() };
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        // Different for each run: two of them may have the same plan.
        let mark = format!("{:05x}", RandomState::new().build_hasher().finish() & 0xf_ffff);
        let run = run_name(&self.plan, &mark);
        let path = client.path("api/v1", "configmaps");
        let made = client.create(&path, &manifests::owner(&run));
        let made = made.map_err(|failure| told("make a ConfigMap, which owns what a run makes", &failure))?;
        let object = crate::objects::Named::deserialize(made).unwrap_or_default();
        let owner = Owner { run: run.clone(), uid: object.metadata.uid };
        self.stage.push(Stage { client: Arc::clone(&client), run });
        Ok(Carrier::Process(1, Arc::new(Lives { client, survey, owner })))
    }
}

impl Prepared for Ready {
    fn open(&mut self, stage: StageWorks<'_>, notes: &mut Vec<Note>) -> Result<Vec<Carrier>, String> {
        let works = stage.works;
        self.stage.clear();
        let each = |work: &&Work| {
            let carrier = self.carrier(work, notes);
            carrier.map_err(|error| format!("work `{}`: {error}", work.name))
        };
        works.iter().map(each).collect()
    }

    fn close(&mut self, _remarks: &[String]) -> Option<Proof> {
        let mut proof = Proof { direct: true, ..Proof::default() };
        for mut stage in std::mem::take(&mut self.stage) {
            let run = std::mem::take(&mut stage.run);
            if let Err(why) = leftovers::remove(&stage.client, &run, REMOVAL) {
                proof.unchecked.push(format!("{}.", why.trim_end_matches('.')));
            }
        }
        // Contents are compared in the pods; there is nothing else to prove but that all of it is gone.
        (!proof.unchecked.is_empty()).then_some(proof)
    }
}
