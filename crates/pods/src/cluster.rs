//! An API server, as `kubectl` reaches it.

use crate::bucket;
use crate::error::PodsError;
use crate::made::{Kind, Made, SECRET};
use crate::objects::{Claim, Condition, Event, Job, Pod, StatefulSet};
use crate::running::{REMOVAL, Running};
use crate::watcher::Watcher;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidemark_apiserver::{Client, Failure, Which};
use tidemark_kubernetes::{Drivers, Manifest, Pods, RUN, Reach, bucket_claim, is_run_name};

/// How often something is looked at again that goes.
const AGAIN: Duration = Duration::from_millis(500);

const CORE: &str = "api/v1";

/// An API server and a namespace.
pub struct Cluster {
    client: Arc<Client>,
}

/// The drivers or the servers of a run that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What they are.
    pub made: Made,
    /// The run's name.
    pub run: String,
    /// How many of them run, or are about to.
    pub active: u32,
    /// How many there are to be.
    pub count: u32,
    /// Whether none runs any more, nor ever will. Servers do not end by themselves.
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
        Ok(Self { client: Arc::new(Client::connect(which).map_err(PodsError::Config)?) })
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.client.namespace()
    }

    pub(crate) fn server(&self) -> &str {
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
            self.has_class(&volume.class, "volumes")?;
        }
        if let Some(class) = &drivers.pods.bucket_class {
            self.has_class(class, "a bucket")?;
        }
        let owned = |uid: &str| {
            let claim = drivers.bucket(Some(uid)).map(|claim| (bucket::CLAIM, claim));
            [(SECRET, drivers.secret(reach, Some(uid)))].into_iter().chain(claim).collect::<Vec<_>>()
        };
        self.make_all(Made::Drivers, drivers.run, drivers.count, &drivers.job(), owned)
    }

    /// Makes what owns everything else, and then what it owns, which is made for its `uid`.
    pub(crate) fn make_all<'a>(
        &'a self,
        made: Made,
        run: &str,
        count: u32,
        owner: &Manifest,
        owned: impl FnOnce(&str) -> Vec<(Kind, Manifest)>,
    ) -> Result<Running<'a>, PodsError> {
        let owner = match self.make(made.owner(), owner) {
            Ok(owner) => owner,
            // Nobody knows whether a request without an answer was carried out.
            Err(away @ PodsError::Away { .. }) => return Err(away.and(self.remove(made, run, REMOVAL))),
            Err(refused) => return Err(refused),
        };
        let uid = owner["metadata"]["uid"].as_str().unwrap_or_default();
        let running = Running::new(self, made, run, uid, count);
        match owned(uid).into_iter().try_for_each(|(kind, manifest)| self.make(kind, &manifest).map(drop)) {
            Ok(()) => Ok(running),
            Err(error) => Err(error.and(running.remove())),
        }
    }

    /// Watches the pods of a run and those of its target from now on.
    pub fn watch(&self, run: &str, pods: &Pods) -> Watcher {
        Watcher::start(&self.client, run, pods)
    }

    /// The runs that have drivers or servers here, by name.
    ///
    /// # Errors
    /// The API server refuses to tell, or does not answer. Whoever has no right to servers has none here.
    pub fn runs(&self) -> Result<Vec<Found>, PodsError> {
        let jobs: Vec<Job> =
            self.owners(Made::Drivers).map_err(|failure| self.error("list Jobs", failure))?;
        let mut servers = Vec::new();
        for made in [Made::Databases, Made::Trino] {
            let sets: Vec<StatefulSet> = match self.owners(made) {
                Err(failure) if failure.is_forbidden() => Vec::new(),
                sets => sets.map_err(|failure| self.error("list StatefulSets", failure))?,
            };
            servers.extend(sets.into_iter().map(|set| Found {
                made,
                run: set.metadata.name,
                active: set.status.replicas,
                count: set.spec.replicas,
                is_over: false,
                since: set.metadata.creation_timestamp,
                evaluation: None,
            }));
        }
        let drivers = jobs.into_iter().map(|job| Found {
            made: Made::Drivers,
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
        // Labels are anybody's to set: what is not named as a run is none of ours, whatever they say.
        Ok(drivers.chain(servers).filter(|found| is_run_name(&found.run)).collect())
    }

    fn owners<T: DeserializeOwned>(&self, made: Made) -> Result<Vec<T>, Failure> {
        let Kind { group, plural, .. } = made.owner();
        self.list(group, plural, &made.selector())
    }

    /// Removes all that a run has made, and waits until it is gone, for at most `most`.
    ///
    /// # Errors
    /// [`PodsError::Left`], if something is still there, or nobody could say whether it is; [`PodsError::Ending`], if it is only pods whose
    /// nodes do not say that they have ended.
    pub fn remove(&self, made: Made, run: &str, most: Duration) -> Result<(), PodsError> {
        let until = Instant::now() + most;
        let namespace = || self.namespace().to_owned();
        let left = |what, why| PodsError::Left { what, why, run: run.to_owned(), namespace: namespace() };
        loop {
            let (error, is_over) = match self.try_remove(made, run) {
                Ok(remains) if remains.is_empty() => return Ok(()),
                Ok(remains) => match ending(&remains) {
                    Some(pods) => (PodsError::Ending { pods, namespace: namespace() }, false),
                    None => {
                        let named: Vec<_> = remains.iter().map(Remains::name).collect();
                        (left(named.join(", "), "it is still there".to_owned()), false)
                    }
                },
                Err((doing, failure)) => {
                    let is_over = !failure.is_passing();
                    let why = self.error(&doing, failure).to_string();
                    (left(format!("what the run {run} made"), why), is_over)
                }
            };
            if is_over || Instant::now() >= until {
                return Err(error);
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Has everything deleted that is there: what remains for now, or what could not be asked for.
    fn try_remove(&self, made: Made, run: &str) -> Result<Vec<Remains>, (String, Failure)> {
        let mut remains = Vec::new();
        // What the owner owns goes with it: pods, and with them their claims.
        let owner = made.owner();
        if self.delete(owner, run)? {
            remains.push(Remains::Owner(format!("{} {run}", owner.name)));
        }
        for (kind, suffix) in made.owned() {
            self.delete(*kind, &format!("{run}{suffix}"))?;
        }
        if made == Made::Drivers {
            let claim = bucket_claim(run);
            match self.delete(bucket::CLAIM, &claim) {
                Ok(false) => {}
                Ok(true) => remains.push(Remains::Owner(format!("bucket claim {claim}"))),
                // Who may claim no buckets has none.
                Err((_, failure)) if failure.is_forbidden() => {}
                Err(failed) => return Err(failed),
            }
        }
        let pods: Vec<Pod> = self.of_run("pods", run).map_err(|failure| ("list pods".to_owned(), failure))?;
        remains.extend(pods.into_iter().map(Remains::of));
        let claims: Vec<Claim> = self
            .of_run("persistentvolumeclaims", run)
            .map_err(|failure| ("list claims".to_owned(), failure))?;
        remains.extend(claims.into_iter().map(|claim| Remains::Claim(claim.metadata.name)));
        Ok(remains)
    }

    /// Whether there is a storage class for `what`; nobody may be allowed to look.
    pub(crate) fn has_class(&self, class: &str, what: &str) -> Result<(), PodsError> {
        match self.client.ask("GET", &format!("/apis/storage.k8s.io/v1/storageclasses/{class}"), None) {
            Ok(_) | Err(Failure::Status(403, _)) => Ok(()),
            Err(Failure::Status(404, _)) => Err(PodsError::Refused {
                doing: format!("claim {what}"),
                message: format!(
                    "there is no storage class {class}; `kubectl get storageclass` lists those that there are"
                ),
            }),
            Err(failure) => Err(self.error("look for a storage class", failure)),
        }
    }

    pub(crate) fn make(&self, kind: Kind, manifest: &Manifest) -> Result<Value, PodsError> {
        let doing = format!("make a {} in the namespace {}", manifest.kind, self.namespace());
        let wrong = |error: serde_json::Error| PodsError::Refused {
            doing: doing.clone(),
            message: error.to_string(),
        };
        let object = serde_json::to_value(manifest).map_err(wrong)?;
        let path = self.client.path(kind.group, kind.plural);
        self.client.create(&path, &object).map_err(|failure| self.error(&doing, failure))
    }

    /// Whether there was something to delete.
    fn delete(&self, kind: Kind, name: &str) -> Result<bool, (String, Failure)> {
        let path = format!("{}/{name}", self.client.path(kind.group, kind.plural));
        self.client.delete(&path).map_err(|failure| (format!("delete a {}", kind.name), failure))
    }

    fn list<T: DeserializeOwned>(&self, group: &str, kind: &str, query: &str) -> Result<Vec<T>, Failure> {
        self.client.list(&self.client.path(group, kind), query)
    }

    pub(crate) fn of_run<T: DeserializeOwned>(&self, kind: &str, run: &str) -> Result<Vec<T>, Failure> {
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
        // A cluster without names of services says so of every pod; nothing of ours needs them.
        events
            .retain(|event| event.involved_object.name.contains(run) && event.reason != "MissingClusterDNS");
        let pods = self.of_run("pods", run).map_err(|failure| self.error("list pods", failure))?;
        let claims = self.of_run("persistentvolumeclaims", run);
        let claims = claims.map_err(|failure| self.error("list claims", failure))?;
        Ok(State { pods, claims, events })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn error(&self, doing: &str, failure: Failure) -> PodsError {
        PodsError::of(self.server(), doing, failure)
    }
}

/// Something of a run that is there although it was deleted.
enum Remains {
    Owner(String),
    /// A pod, and the node that has been told to end it.
    Pod {
        name: String,
        ends_on: Option<String>,
    },
    Claim(String),
}

impl Remains {
    fn of(pod: Pod) -> Self {
        let is_to_end = pod.metadata.deletion_timestamp.is_some();
        let ends_on = Some(pod.spec.node_name).filter(|node| is_to_end && !node.is_empty());
        Remains::Pod { name: pod.metadata.name, ends_on }
    }

    fn name(&self) -> String {
        match self {
            Remains::Owner(name) => name.clone(),
            Remains::Pod { name, .. } => format!("pod {name}"),
            Remains::Claim(name) => format!("claim {name}"),
        }
    }
}

/// The pods, with their nodes, for which alone everything waits: each is to end, and its node does not say that it has. A claim goes after
/// its pod.
fn ending(remains: &[Remains]) -> Option<String> {
    let mut pods = Vec::new();
    for one in remains {
        match one {
            Remains::Claim(_) => {}
            Remains::Pod { name, ends_on: Some(node) } => pods.push(format!("pod {name} on {node}")),
            Remains::Pod { .. } | Remains::Owner(_) => return None,
        }
    }
    (!pods.is_empty()).then(|| pods.join(", "))
}

/// What is there of a run.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pods: Vec<Pod>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) events: Vec<Event>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_that_end_are_told_from_what_does_not_go() {
        let pod = |ends: bool, node: &str| {
            let deleted = ends.then_some("2026-01-01T00:00:00Z");
            let pod = json!({"metadata": {"name": "run-0", "deletionTimestamp": deleted}, "spec": {"nodeName": node}});
            Remains::of(serde_json::from_value(pod).unwrap())
        };
        let claim = || Remains::Claim("run-0-data".to_owned());
        assert_eq!(ending(&[pod(true, "n1"), claim()]).as_deref(), Some("pod run-0 on n1"));
        assert_eq!(ending(&[pod(true, "n1"), pod(false, "n2")]), None);
        assert_eq!(ending(&[pod(true, "n1"), Remains::Owner("Job run".to_owned())]), None);
        assert_eq!(ending(&[pod(true, "")]), None, "no node has it");
        assert_eq!(ending(&[claim()]), None);
    }
}
