//! Servers on Kubernetes as a provisioner: for each arm of an evaluation that has a `kubernetes`.

use crate::cluster::Cluster;
use crate::error::PodsError;
use crate::made::Made;
use crate::running::REMOVAL;
use crate::servers::{Brought, Waiter};
use crate::{databases, trino};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tidemark_apiserver::Which;
use tidemark_keys::secret::Secret;
use tidemark_keys::shapes::Map;
use tidemark_keys::tree::Entry;
use tidemark_keys::{AnyKey, Key, Table};
use tidemark_kubernetes::{ARM, Databases, Manifest, OfArm, TrinoPods, What, of_arm, run_name};
use tidemark_load::stop::StopRequest;
use tidemark_plan::provisioner::{
    Progress, ProvisionError, Provisioner, ProvisionerKind, Request, Trace, Variables,
};
use tidemark_plan::yaml::environment::Environment;

/// The key under which an arm asks for it.
static KUBERNETES: Key<Map> = Key::new(
    "kubernetes",
    "What Kubernetes runs for it: database servers, or a Trino cluster, as pods",
    Map(&ARM),
);

/// The note of what was made, by which a later start removes what this one leaves: server, namespace and run, a line each.
const MADE: &str = "kubernetes-run";

/// The variables of all kinds of servers, and stand-ins.
static VARIABLES: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| [&databases::VARIABLES[..], &trino::VARIABLES].concat());

/// What Kubernetes runs for each arm that has a `kubernetes`.
#[derive(Clone, Copy, Debug)]
pub struct Arms;

impl ProvisionerKind for Arms {
    fn key(&self) -> &'static AnyKey {
        &KUBERNETES
    }

    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, _: &Environment<'_>) -> Option<Request> {
        let asked = of_arm(arm.below(&KUBERNETES, entry))?;
        Some(Request::new(KUBERNETES.name, asked.what.label(), asked))
    }

    fn variables(&self) -> &[(&'static str, &'static str)] {
        &VARIABLES
    }

    fn stand_in(&self, request: &Request, name: &str) -> Option<String> {
        match &request.get::<OfArm>()?.what {
            What::Databases(servers) => databases::stand_in(servers, name),
            What::Trino(cluster) => trino::stand_in(cluster, name),
        }
    }

    fn provisioner(
        &self,
        request: &Request,
        directory: &Path,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let asked = request.get::<OfArm>().cloned();
        let asked = asked.ok_or_else(|| ProvisionError::Failed("it asks for nothing".into()))?;
        Ok(Box::new(Arm { asked, directory: directory.to_owned(), up: None }))
    }
}

/// The manifests of what a request asks for, without what is made anew each time; none, if it is of another kind. `arm` is the name of
/// its arm.
pub fn manifests(request: &Request, arm: &str) -> Vec<Manifest> {
    let Some(OfArm { namespace, what, .. }) = request.get::<OfArm>() else { return Vec::new() };
    let (run, namespace) = (&run_name(arm, "00000"), namespace.as_deref());
    match what {
        What::Databases(servers) => databases::manifests(&Databases { run, namespace, servers }),
        What::Trino(trino) => trino::manifests(&TrinoPods { run, namespace, trino }),
    }
}

/// The servers of one arm.
struct Arm {
    asked: OfArm,
    directory: PathBuf,
    up: Option<Up>,
}

/// Servers that are up.
struct Up {
    cluster: Cluster,
    trace: Trace,
    run: String,
    brought: Brought,
}

impl Arm {
    fn connect(&self) -> Result<Cluster, ProvisionError> {
        let OfArm { context, namespace, .. } = &self.asked;
        let which = Which { kubeconfig: None, context: context.as_deref(), namespace: namespace.as_deref() };
        Cluster::connect(which).map_err(failed)
    }

    fn made(&self) -> Made {
        match self.asked.what {
            What::Databases(_) => Made::Databases,
            What::Trino(_) => Made::Trino,
        }
    }

    /// Removes what an earlier start has left behind.
    fn remove_earlier(
        &self,
        cluster: &Cluster,
        trace: &Trace,
        progress: &mut dyn Progress,
    ) -> Result<(), ProvisionError> {
        let Some(noted) = trace.read()? else { return Ok(()) };
        let lines: Vec<&str> = noted.lines().collect();
        match lines.as_slice() {
            [server, namespace, run] if (*server, *namespace) == (cluster.server(), cluster.namespace()) => {
                progress.line(&format!("removing the servers {run} that an earlier start has left"));
                cluster.remove(self.made(), run, REMOVAL).map_err(not_removed)
            }
            [server, namespace, run] => Err(ProvisionError::Failed(format!(
                "an earlier start has left the servers {run} in the namespace {namespace} of {server}: remove them there with \
                 `tidemark kubernetes clean {run} --namespace {namespace}`, then remove {}",
                self.directory.join(MADE).display()
            ))),
            _ => Err(ProvisionError::Failed(format!(
                "{} is damaged, so nobody knows which servers an earlier start has made: `tidemark kubernetes clean` lists those that \
                 there are; then remove the file",
                self.directory.join(MADE).display()
            ))),
        }
    }

    /// The name of what is made, noted where a later start finds it.
    fn name(&self, cluster: &Cluster, trace: &Trace) -> Result<String, ProvisionError> {
        // The directory is named after the arm.
        let arm = self.directory.file_name().unwrap_or_default().to_string_lossy();
        let run = run_name(&arm, &random()?[..8]);
        trace.write(&format!("{}\n{}\n{run}\n", cluster.server(), cluster.namespace()))?;
        Ok(run)
    }
}

impl Provisioner for Arm {
    fn up(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let cluster = self.connect()?;
        let trace = Trace::open(&self.directory, MADE)?;
        self.remove_earlier(&cluster, &trace, progress)?;
        let run = self.name(&cluster, &trace)?;
        let label = self.asked.what.label();
        progress.line(&format!("{run} in the namespace {}: {label}", cluster.namespace()));
        // One and the same is told what happens and asked whether to go on.
        let progress = RefCell::new(progress);
        let waiter = Waiter {
            stopped: &|| progress.borrow_mut().stop_request() > StopRequest::None,
            say: &|text| progress.borrow_mut().line(text),
        };
        let namespace = Some(cluster.namespace());
        let brought = match &self.asked.what {
            What::Databases(servers) => {
                let databases = Databases { run: &run, namespace, servers };
                cluster.bring_databases(&databases, &Secret::new(random()?), waiter)
            }
            What::Trino(trino) => cluster.bring_trino(&TrinoPods { run: &run, namespace, trino }, waiter),
        };
        let brought = match brought {
            Ok(brought) => brought,
            Err(error) => {
                if !matches!(error, PodsError::Left { .. } | PodsError::Ending { .. }) {
                    trace.forget();
                }
                return Err(failed(error));
            }
        };
        self.up = Some(Up { cluster, trace, run, brought });
        Ok(())
    }

    fn variables(&self) -> Variables {
        let brought = self.up.iter().flat_map(|up| &up.brought.variables);
        brought.map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn labels(&self) -> Vec<(String, String)> {
        let brought = self.up.iter().flat_map(|up| &up.brought.labels);
        brought.map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn down(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let Some(up) = self.up.take() else { return Ok(()) };
        progress.line(&format!("removing {} and all that belongs to it", up.run));
        up.cluster.remove(self.made(), &up.run, REMOVAL).map_err(not_removed)?;
        up.trace.forget();
        Ok(())
    }
}

/// 128 random bits.
fn random() -> Result<String, ProvisionError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ProvisionError::Failed(format!("the system gives no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn not_removed(error: PodsError) -> ProvisionError {
    ProvisionError::Failed(format!("the servers could not be removed: {error}"))
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: PodsError) -> ProvisionError {
    match error {
        PodsError::Stopped => ProvisionError::Stopped,
        error => ProvisionError::Failed(format!("the servers could not be had: {error}")),
    }
}
