//! Database servers on Kubernetes as a provisioner: for each arm of an evaluation that has a `kubernetes`.

use crate::cluster::Cluster;
use crate::databases::Instance;
use crate::error::PodsError;
use crate::made::Made;
use crate::running::REMOVAL;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tidemark_apiserver::Which;
use tidemark_keys::secret::Secret;
use tidemark_keys::shapes::Map;
use tidemark_keys::tree::Entry;
use tidemark_keys::{AnyKey, Key, Table};
use tidemark_kubernetes::{Account, Databases, Manifest, SERVERS, Servers, run_name, servers};
use tidemark_load::stop::StopRequest;
use tidemark_plan::provisioner::{
    Progress, ProvisionError, Provisioner, ProvisionerKind, Request, Trace, Variables,
};
use tidemark_plan::yaml::environment::Environment;

/// The key under which an arm asks for it.
static KUBERNETES: Key<Map> =
    Key::new("kubernetes", "What Kubernetes runs for it: database servers as pods", Map(&SERVERS));

/// The name of the account that is made in each server, and of its database.
const ACCOUNT: &str = "tidemark";
/// The note of what was made, by which a later start removes what this one leaves: server, namespace and run, a line each.
const MADE: &str = "kubernetes-run";

/// The variables that servers bring, and stand-ins for their values while they are not up.
const VARIABLES: [(&str, &str); 6] = [
    ("TIDEMARK_KUBERNETES_ENDPOINTS", "127.0.0.1:1"),
    ("TIDEMARK_KUBERNETES_HOST", "127.0.0.1"),
    ("TIDEMARK_KUBERNETES_PORT", "1"),
    ("TIDEMARK_KUBERNETES_USER", ACCOUNT),
    ("TIDEMARK_KUBERNETES_PASSWORD", "not-known-yet"),
    ("TIDEMARK_KUBERNETES_DATABASE", ACCOUNT),
];

/// What Kubernetes runs for each arm that has a `kubernetes`.
#[derive(Clone, Copy, Debug)]
pub struct Arms;

impl ProvisionerKind for Arms {
    fn key(&self) -> &'static AnyKey {
        &KUBERNETES
    }

    fn read<'a>(&self, arm: &Table<'a>, entry: &'a Entry, _: &Environment<'_>) -> Option<Request> {
        let servers = servers(arm.below(&KUBERNETES, entry))?;
        Some(Request::new(KUBERNETES.name, servers.label(), servers))
    }

    fn variables(&self) -> &[(&'static str, &'static str)] {
        &VARIABLES
    }

    fn stand_in(&self, request: &Request, name: &str) -> Option<String> {
        let (_, one) = VARIABLES.iter().find(|(known, _)| *known == name)?;
        let instances = request.get::<Servers>().map_or(1, |servers| servers.instances);
        // A load may be for some of the servers: there are as many stand-ins as there will be.
        let all =
            || (1..=instances).map(|number| format!("127.0.0.1:{number}")).collect::<Vec<_>>().join(",");
        Some(if name == VARIABLES[0].0 { all() } else { (*one).to_owned() })
    }

    fn provisioner(
        &self,
        request: &Request,
        directory: &Path,
    ) -> Result<Box<dyn Provisioner>, ProvisionError> {
        let asked = request.get::<Servers>().cloned();
        let servers = asked.ok_or_else(|| ProvisionError::Failed("it asks for nothing".into()))?;
        Ok(Box::new(Arm { servers, directory: directory.to_owned(), up: None }))
    }
}

/// The manifests of what a request asks for, without what is made anew each time; none, if it is of another kind. `arm` is the name of
/// its arm.
pub fn manifests(request: &Request, arm: &str) -> Vec<Manifest> {
    let Some(servers) = request.get::<Servers>() else { return Vec::new() };
    let run = run_name(arm, "00000");
    let databases = Databases { run: &run, namespace: servers.namespace.as_deref(), servers };
    let account = account(Secret::new("(made for each run)"));
    vec![databases.stateful_set(), databases.secret(&account, None), databases.service(None)]
}

fn account(password: Secret) -> Account {
    Account { user: ACCOUNT, password, database: ACCOUNT }
}

/// The servers of one arm.
struct Arm {
    servers: Servers,
    directory: PathBuf,
    up: Option<Up>,
}

/// Servers that are up.
struct Up {
    cluster: Cluster,
    trace: Trace,
    run: String,
    password: Secret,
    instances: Vec<Instance>,
}

impl Arm {
    fn connect(&self) -> Result<Cluster, ProvisionError> {
        let Servers { context, namespace, .. } = &self.servers;
        let which = Which { kubeconfig: None, context: context.as_deref(), namespace: namespace.as_deref() };
        Cluster::connect(which).map_err(failed)
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
                progress.line(&format!("removing the database servers {run} that an earlier start has left"));
                cluster.remove(Made::Databases, run, REMOVAL).map_err(failed)
            }
            [server, namespace, run] => Err(ProvisionError::Failed(format!(
                "an earlier start has left the database servers {run} in the namespace {namespace} of {server}: remove them there with \
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
        let (run, password) = (self.name(&cluster, &trace)?, Secret::new(random()?));
        let databases = Databases { run: &run, namespace: Some(cluster.namespace()), servers: &self.servers };
        progress.line(&format!("{run} in the namespace {}: {}", cluster.namespace(), self.servers.label()));
        let running = cluster.start_databases(&databases, &account(password.clone())).map_err(failed)?;
        // One and the same is told what happens and asked whether to go on.
        let progress = RefCell::new(progress);
        let stopped = || progress.borrow_mut().stop_request() > StopRequest::None;
        let instances =
            cluster.ready(&databases, &running, &stopped, &mut |text| progress.borrow_mut().line(text));
        let instances = match instances {
            Ok(instances) => instances,
            Err(error) => {
                let left = running.remove();
                if left.is_ok() {
                    trace.forget();
                }
                return Err(failed(error.and(left)));
            }
        };
        running.keep();
        self.up = Some(Up { cluster, trace, run, password, instances });
        Ok(())
    }

    fn variables(&self) -> Variables {
        let Some(up) = &self.up else { return Variables::new() };
        let endpoints: Vec<_> = up.instances.iter().map(|one| one.address.to_string()).collect();
        let first = up.instances.first().map(|one| (one.address.ip().to_string(), one.address.port()));
        let (host, port) = first.unwrap_or_default();
        let values = [
            endpoints.join(","),
            host,
            port.to_string(),
            ACCOUNT.to_owned(),
            up.password.reveal().to_owned(),
            ACCOUNT.to_owned(),
        ];
        VARIABLES.iter().zip(values).map(|((name, _), value)| ((*name).to_owned(), value)).collect()
    }

    fn labels(&self) -> Vec<(String, String)> {
        let Servers { image, class, size, cpu, memory, settings, .. } = &self.servers;
        let mut labels = vec![
            ("image", image.clone()),
            ("each server", format!("{cpu} CPU, {memory} of memory, {size} of the storage class {class}")),
        ];
        if !settings.is_empty() {
            let settings: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            labels.push(("settings", settings.join(", ")));
        }
        if let Some(up) = &self.up {
            let mut nodes: BTreeMap<&str, u32> = BTreeMap::new();
            up.instances.iter().for_each(|one| *nodes.entry(&one.node).or_default() += 1);
            let nodes: Vec<_> = nodes.iter().map(|(node, count)| format!("{node}: {count}")).collect();
            labels.push(("servers on nodes", nodes.join(", ")));
        }
        labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn down(&mut self, _variables: &Variables, progress: &mut dyn Progress) -> Result<(), ProvisionError> {
        let Some(up) = self.up.take() else { return Ok(()) };
        progress.line(&format!("removing {} and its volumes", up.run));
        up.cluster.remove(Made::Databases, &up.run, REMOVAL).map_err(failed)?;
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
fn failed(error: PodsError) -> ProvisionError {
    match error {
        PodsError::Stopped => ProvisionError::Stopped,
        error => ProvisionError::Failed(format!("the database servers could not be had: {error}")),
    }
}
