//! The manifests of servers that StatefulSets keep, whatever they serve: the sets, a Service that names their pods, and a Secret with what
//! they are told.
//!
//! The first StatefulSet owns everything else, as each owns its pods and their claims: whoever deletes it deletes all.

use crate::drivers::RUN;
use crate::hosting::Hosting;
use crate::manifest::{Body, Manifest, Metadata, Owner, Spec};
use crate::place;
use crate::pods::Seccomp;
use crate::workload::{
    Container, Labelled, Mount, NamedClaim, PodAmounts, PodResources, PodSpec, PodTemplate, PodVolume, Port,
    Probe, Retention, SecretBody, ServiceSpec, StatefulSetSpec, TcpSocket, Variable,
};
use std::collections::BTreeMap;
use tidemark_keys::secret::Secret;

/// The interface that a StatefulSet belongs to.
const APPS: &str = "apps/v1";
/// How long a server may take to end, seconds: its data go with it.
const GRACE: u32 = 10;
/// How long a server may take until it listens, in looks of a second each, before Kubernetes starts it again. Whoever waits for it gives
/// up earlier.
const LOOKS: u32 = 3600;

/// A label of objects that says what they are for, and its value.
pub(crate) type Component = (&'static str, &'static str);

/// The servers of a run.
pub(crate) struct Stateful<'a> {
    /// The run's name.
    pub(crate) run: &'a str,
    /// Their namespace; `None`: left to whoever applies the manifests.
    pub(crate) namespace: Option<&'a str>,
    /// What the first set and all that is not a set are for.
    pub(crate) component: Component,
    /// What their pods are.
    pub(crate) hosting: &'a Hosting,
    /// The port at which they listen, and its name.
    pub(crate) port: (&'static str, u16),
}

/// Servers that are all alike.
pub(crate) struct Alike {
    /// What comes after the run's name in that of their set.
    pub(crate) suffix: &'static str,
    /// What they are for.
    pub(crate) component: Component,
    /// How many there are.
    pub(crate) count: u32,
    /// The name of their container.
    pub(crate) container: &'static str,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<Variable>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) volumes: Vec<PodVolume>,
    /// What each claims.
    pub(crate) claims: Vec<NamedClaim>,
}

impl Stateful<'_> {
    /// A StatefulSet, owned by the first one, whose `uid` it is; `None`: it is the first, or there is none yet.
    pub(crate) fn set(&self, alike: Alike, uid: Option<&str>) -> Manifest {
        let Alike { suffix, component, count, container, args, env, mounts, volumes, claims } = alike;
        let labels = place::labels(component, self.run);
        let container = self.container(container, args, env, mounts);
        let spec = StatefulSetSpec {
            service_name: self.run.to_owned(),
            replicas: count,
            pod_management_policy: "Parallel",
            selector: place::selector_of(component, self.run),
            template: PodTemplate { metadata: Labelled { labels }, spec: self.pod(container, volumes) },
            volume_claim_templates: claims,
            persistent_volume_claim_retention_policy: Retention {
                when_deleted: "Delete",
                when_scaled: "Retain",
            },
        };
        let body = Body::Spec { spec: Spec::StatefulSet(Box::new(spec)) };
        self.manifest((APPS, "StatefulSet"), suffix, component, body, uid)
    }

    /// The headless Service, owned by the StatefulSet of this `uid`.
    pub(crate) fn service(&self, uid: Option<&str>) -> Manifest {
        let (name, port) = self.port;
        let spec = ServiceSpec {
            cluster_ip: "None",
            selector: BTreeMap::from([(RUN, self.run.to_owned())]),
            ports: [Port { name, port }],
        };
        self.manifest(("v1", "Service"), "", self.component, Body::Spec { spec: Spec::Service(spec) }, uid)
    }

    /// The Secret, owned by the StatefulSet of this `uid`.
    pub(crate) fn secret(&self, string_data: BTreeMap<&'static str, Secret>, uid: Option<&str>) -> Manifest {
        let body = Body::Secret(SecretBody { immutable: true, string_data });
        self.manifest(("v1", "Secret"), "", self.component, body, uid)
    }

    fn manifest(
        &self,
        (api_version, kind): (&'static str, &'static str),
        suffix: &str,
        component: Component,
        body: Body,
        uid: Option<&str>,
    ) -> Manifest {
        let owner = uid.map(|uid| Owner {
            api_version: APPS,
            kind: "StatefulSet",
            name: self.run.to_owned(),
            uid: uid.to_owned(),
        });
        let metadata = Metadata {
            name: format!("{}{suffix}", self.run),
            namespace: self.namespace.map(str::to_owned),
            labels: place::labels(component, self.run),
            owner_references: owner.into_iter().collect(),
        };
        Manifest { api_version, kind, metadata, body }
    }

    fn pod(&self, container: Container, volumes: Vec<PodVolume>) -> PodSpec {
        let Hosting { nodes, spread, user, .. } = self.hosting;
        let (affinity, topology_spread_constraints) = place::placed(nodes, *spread, self.run);
        PodSpec {
            restart_policy: "Always",
            automount_service_account_token: false,
            enable_service_links: false,
            termination_grace_period_seconds: GRACE,
            affinity,
            topology_spread_constraints,
            security_context: place::user(*user, Seccomp::RuntimeDefault),
            containers: [container],
            volumes,
        }
    }

    fn container(
        &self,
        name: &'static str,
        args: Vec<String>,
        env: Vec<Variable>,
        volume_mounts: Vec<Mount>,
    ) -> Container {
        let Hosting { image, cpu, memory, .. } = self.hosting;
        let amounts = || PodAmounts { cpu: Some(cpu.clone()), memory: memory.clone() };
        Container {
            name,
            image: image.clone(),
            image_pull_policy: "IfNotPresent",
            args,
            env,
            // It is looked at until it has started and never again: a connection that is opened and closed would be part of the load.
            startup_probe: Some(Probe {
                tcp_socket: TcpSocket { port: self.port.1 },
                period_seconds: 1,
                failure_threshold: LOOKS,
            }),
            resources: PodResources { requests: amounts(), limits: amounts() },
            security_context: place::confined(),
            volume_mounts,
            volume_devices: Vec::new(),
            // The last words of a server that fails are said where its pod is looked at.
            termination_message_policy: "FallbackToLogsOnError",
        }
    }
}
