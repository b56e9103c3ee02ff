//! An API server, as `kubectl` reaches it.

use crate::error::PodsError;
use crate::objects::{Claim, Condition, Event, Job, Pod};
use crate::running::{REMOVAL, Running};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tidemark_apiserver::{Client, Failure, Which};
use tidemark_kubernetes::{COMPONENT, Drivers, MANAGED_BY, Manifest, RUN, Reach};

/// How often something is looked at again that goes.
const AGAIN: Duration = Duration::from_millis(500);

const JOBS: &str = "apis/batch/v1";
const CORE: &str = "api/v1";

/// An API server and a namespace.
pub struct Cluster {
    client: Client,
}

/// The drivers of a run that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The run's name.
    pub run: String,
    /// How many of its drivers run, or are about to.
    pub active: u32,
    /// How many there are to be.
    pub count: u32,
    /// Whether no driver runs any more, nor ever will.
    pub is_over: bool,
    /// When they were made, as the API server writes it.
    pub since: String,
    /// The Evaluation that owns them, if an operator has made them.
    pub evaluation: Option<String>,
}

impl Cluster {
    /// The cluster that is meant. In a pod without a kubeconfig it is the pod's.
    ///
    /// # Errors
    /// [`PodsError::Config`]. Nothing is sent yet.
    pub fn connect(which: Which<'_>) -> Result<Self, PodsError> {
        Ok(Self { client: Client::connect(which).map_err(PodsError::Config)? })
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.client.namespace()
    }

    fn server(&self) -> &str {
        self.client.server()
    }

    /// The address of this machine from which it reaches the API server.
    ///
    /// # Errors
    /// [`PodsError::Config`] and [`PodsError::Away`]: there is no way there.
    pub fn own_address(&self) -> Result<IpAddr, PodsError> {
        self.client.own_address().map_err(|failure| self.error("be reached", failure))
    }

    /// Makes the drivers of a run. If that fails, nothing of them is left, or the error says what is.
    ///
    /// # Errors
    /// The API server refuses it, or does not answer.
    pub fn start<'a>(&'a self, drivers: &Drivers<'_>, reach: &Reach) -> Result<Running<'a>, PodsError> {
        // One that does not answer, or lets nobody look, is not asked to make anything.
        self.runs()?;
        if let Some(volume) = &drivers.pods.volume {
            self.has_class(&volume.class)?;
        }
        let job = match self.make(JOBS, "jobs", &drivers.job()) {
            Ok(job) => serde_json::from_value::<Job>(job).unwrap_or_default(),
            // Nobody knows whether a request without an answer was carried out.
            Err(away @ PodsError::Away { .. }) => return Err(away.and(self.remove(drivers.run, REMOVAL))),
            Err(refused) => return Err(refused),
        };
        let running = Running::new(self, drivers.run.to_owned(), drivers.count);
        match self.make(CORE, "secrets", &drivers.secret(reach, Some(&job.metadata.uid))) {
            Ok(_) => Ok(running),
            Err(error) => Err(error.and(running.remove())),
        }
    }

    /// The runs that have drivers here, by name.
    ///
    /// # Errors
    /// The API server refuses to tell, or does not answer.
    pub fn runs(&self) -> Result<Vec<Found>, PodsError> {
        let labels =
            format!("labelSelector={}%3D{},{}%3D{}", MANAGED_BY.0, MANAGED_BY.1, COMPONENT.0, COMPONENT.1);
        let jobs: Vec<Job> =
            self.list(JOBS, "jobs", &labels).map_err(|failure| self.error("list Jobs", failure))?;
        let found = jobs.into_iter().map(|job| Found {
            run: job.metadata.name,
            active: job.status.active,
            count: job.spec.completions,
            is_over: job.status.conditions.iter().any(Condition::ends_a_job),
            since: job.metadata.creation_timestamp,
            evaluation: job
                .metadata
                .owner_references
                .into_iter()
                .find(|one| one.kind == "Evaluation")
                .map(|one| one.name),
        });
        Ok(found.collect())
    }

    /// Removes all that a run has made, and waits until it is gone, for at most `most`.
    ///
    /// # Errors
    /// [`PodsError::Left`], if something is still there, or nobody could say whether it is.
    pub fn remove(&self, run: &str, most: Duration) -> Result<(), PodsError> {
        let until = Instant::now() + most;
        loop {
            let (what, why, is_over) = match self.try_remove(run) {
                Ok(left) if left.is_empty() => return Ok(()),
                Ok(left) => (left.join(", "), "it is still there".to_owned(), false),
                Err((doing, failure)) => {
                    let is_over = !failure.is_passing();
                    (format!("what the run {run} made"), self.error(doing, failure).to_string(), is_over)
                }
            };
            if is_over || Instant::now() >= until {
                let (run, namespace) = (run.to_owned(), self.namespace().to_owned());
                return Err(PodsError::Left { what, why, run, namespace });
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Has everything deleted that is there: what is left for now, or what could not be asked for.
    fn try_remove(&self, run: &str) -> Result<Vec<String>, (&'static str, Failure)> {
        let mut left = Vec::new();
        // What the Job owns goes with it: pods, and with them their claims.
        if self.delete(JOBS, "jobs", run).map_err(|failure| ("delete a Job", failure))? {
            left.push(format!("Job {run}"));
        }
        self.delete(CORE, "secrets", run).map_err(|failure| ("delete a Secret", failure))?;
        let pods: Vec<Pod> = self.of_run("pods", run).map_err(|failure| ("list pods", failure))?;
        left.extend(pods.iter().map(|pod| format!("pod {}", pod.metadata.name)));
        let claims: Vec<Claim> =
            self.of_run("persistentvolumeclaims", run).map_err(|failure| ("list claims", failure))?;
        left.extend(claims.iter().map(|claim| format!("claim {}", claim.metadata.name)));
        Ok(left)
    }

    /// Whether there is a storage class; nobody may be allowed to look.
    fn has_class(&self, class: &str) -> Result<(), PodsError> {
        match self.client.ask("GET", &format!("/apis/storage.k8s.io/v1/storageclasses/{class}"), None) {
            Ok(_) | Err(Failure::Status(403, _)) => Ok(()),
            Err(Failure::Status(404, _)) => Err(PodsError::Refused {
                doing: "claim volumes".to_owned(),
                message: format!(
                    "there is no storage class {class}; `kubectl get storageclass` lists those that there are"
                ),
            }),
            Err(failure) => Err(self.error("look for a storage class", failure)),
        }
    }

    fn make(&self, group: &str, kind: &str, manifest: &Manifest) -> Result<Value, PodsError> {
        let doing = format!("make a {} in the namespace {}", manifest.kind, self.namespace());
        let wrong = |error: serde_json::Error| PodsError::Refused {
            doing: doing.clone(),
            message: error.to_string(),
        };
        let object = serde_json::to_value(manifest).map_err(wrong)?;
        let path = self.client.path(group, kind);
        self.client.create(&path, &object).map_err(|failure| self.error(&doing, failure))
    }

    /// Whether there was something to delete.
    fn delete(&self, group: &str, kind: &str, name: &str) -> Result<bool, Failure> {
        self.client.delete(&format!("{}/{name}", self.client.path(group, kind)))
    }

    fn list<T: DeserializeOwned>(&self, group: &str, kind: &str, query: &str) -> Result<Vec<T>, Failure> {
        self.client.list(&self.client.path(group, kind), query)
    }

    fn of_run<T: DeserializeOwned>(&self, kind: &str, run: &str) -> Result<Vec<T>, Failure> {
        self.list(CORE, kind, &format!("labelSelector={RUN}%3D{run}"))
    }

    /// What there is of a run.
    pub(crate) fn state_of(&self, run: &str) -> Result<State, PodsError> {
        let mut events = Vec::new();
        // What keeps a claim from being bound is no warning.
        for which in ["type%3DWarning", "involvedObject.kind%3DPersistentVolumeClaim"] {
            let listed: Result<Vec<Event>, _> = self.list(CORE, "events", &format!("fieldSelector={which}"));
            events.extend(listed.map_err(|failure| self.error("list events", failure))?);
        }
        events.retain(|event| event.involved_object.name.starts_with(run));
        let pods = self.of_run("pods", run).map_err(|failure| self.error("list pods", failure))?;
        let claims = self.of_run("persistentvolumeclaims", run);
        let claims = claims.map_err(|failure| self.error("list claims", failure))?;
        Ok(State { pods, claims, events })
    }

    fn error(&self, doing: &str, failure: Failure) -> PodsError {
        PodsError::of(self.server(), doing, failure)
    }
}

/// What is there of a run.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pods: Vec<Pod>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) events: Vec<Event>,
}
