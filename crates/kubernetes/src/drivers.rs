//! The manifests of a run's drivers: a Secret by which they find their controller, and an Indexed Job with a pod for each.
//!
//! The Job owns the Secret, as it owns its pods, and each pod owns its claim: whoever deletes the Job deletes all.

use crate::manifest::{Body, Manifest, Metadata, Owner, Spec};
use crate::place;
use crate::pods::{Mode, Pods, User, Volume};
use crate::rook::{Bucket, BucketClaim, ClaimResources, ClaimSpec, StorageAmount};
use crate::workload::{
    ClaimTemplate, Container, Device, JobSpec, Labelled, Labels, Mount, PodAmounts, PodResources,
    PodSecurity, PodSpec, PodTemplate, PodVolume, SecretBody, SecretItem, SecretKey, ValueFrom, Variable,
    VariableValue, VolumeSource,
};
use std::collections::BTreeMap;
use tidemark_keys::secret::Secret;

/// The label that all objects of drivers have, and its value.
pub const COMPONENT: (&str, &str) = ("app.kubernetes.io/component", "driver");
/// The label that says who made them, and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "tidemark");
/// The label that says of which run they are.
pub const RUN: &str = "tidemark.dev/run";

/// The user and the group of a driver: nobody's on any node.
const USER: u32 = 65532;
/// How long a driver may take to end, seconds.
const GRACE: u32 = 10;
/// How long Kubernetes keeps what a run left behind whose controller is gone, once its drivers have ended; seconds.
const KEPT: u32 = 3600;
/// A driver whose controller is away for this long ends.
const LEAVE_AFTER: &str = "5m";
/// Where a driver finds its token.
const TOKEN_DIRECTORY: &str = "/etc/tidemark";

/// What the claim of a bucket gives: the variables that its ConfigMap and its Secret have.
pub const BUCKET_VARIABLES: [&str; 5] =
    ["BUCKET_HOST", "BUCKET_PORT", "BUCKET_NAME", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

/// The longest name of a run: those of its pods and claims are made of it.
pub const LONGEST_RUN: usize = 40;

/// How drivers reach their controller.
#[derive(Debug)]
pub struct Reach {
    /// Its address: `https://10.0.0.1:19088`.
    pub url: String,
    /// How its certificate is verified: `sha256:` and its fingerprint.
    pub trust: String,
    /// The token of all drivers of the run.
    pub token: Secret,
}

/// The drivers of a run.
#[derive(Clone, Debug)]
pub struct Drivers<'a> {
    /// The run's name: a label of at most [`LONGEST_RUN`] characters, different for each run.
    pub run: &'a str,
    /// Their namespace; `None`: left to whoever applies the manifests.
    pub namespace: Option<&'a str>,
    /// How many there are.
    pub count: u32,
    /// What they are.
    pub pods: &'a Pods,
    /// What takes all of it along when it is deleted, if not only the process that made them.
    pub owner: Option<Owner>,
}

impl Drivers<'_> {
    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        (0..self.count).map(|index| format!("{}-{index}", self.run)).collect()
    }

    /// The Job, which owns everything else.
    pub fn job(&self) -> Manifest {
        let spec = JobSpec {
            completion_mode: "Indexed",
            completions: self.count,
            parallelism: self.count,
            // A driver that is gone is lost: its place is not taken by one that knows nothing of the run. The others go on.
            backoff_limit_per_index: 0,
            ttl_seconds_after_finished: KEPT,
            template: PodTemplate { metadata: Labelled { labels: self.labels() }, spec: self.pod() },
        };
        self.manifest(
            "batch/v1",
            "Job",
            Body::Spec { spec: Spec::Job(Box::new(spec)) },
            self.owner.iter().cloned().collect(),
        )
    }

    /// The Secret, owned by the Job of this `uid`; `None` while there is none.
    pub fn secret(&self, reach: &Reach, uid: Option<&str>) -> Manifest {
        let string_data = BTreeMap::from([
            ("controller", Secret::new(&*reach.url)),
            ("token", reach.token.clone()),
            ("trust", Secret::new(&*reach.trust)),
        ]);
        let body = Body::Secret(SecretBody { immutable: true, string_data });
        self.manifest("v1", "Secret", body, self.job_as_owner(uid))
    }

    /// The claim of the bucket that they share, if they do, owned by the Job of this `uid`; `None` while there is none.
    pub fn bucket(&self, uid: Option<&str>) -> Option<Manifest> {
        let claim = BucketClaim {
            // Names of buckets are those of a whole object store.
            bucket: Bucket::Beginning(self.run.to_owned()),
            storage_class_name: self.pods.bucket_class.clone()?,
        };
        let body = Body::Spec { spec: Spec::BucketClaim(claim) };
        let mut manifest =
            self.manifest("objectbucket.io/v1alpha1", "ObjectBucketClaim", body, self.job_as_owner(uid));
        manifest.metadata.name = bucket_claim(self.run);
        Some(manifest)
    }

    fn job_as_owner(&self, uid: Option<&str>) -> Vec<Owner> {
        let owner = |uid: &str| Owner {
            api_version: "batch/v1",
            kind: "Job",
            name: self.run.to_owned(),
            uid: uid.to_owned(),
        };
        uid.map(owner).into_iter().collect()
    }

    fn manifest(
        &self,
        api_version: &'static str,
        kind: &'static str,
        body: Body,
        owner_references: Vec<Owner>,
    ) -> Manifest {
        let metadata = Metadata {
            name: self.run.to_owned(),
            namespace: self.namespace.map(str::to_owned),
            labels: self.labels(),
            owner_references,
        };
        Manifest { api_version, kind, metadata, body }
    }

    fn labels(&self) -> Labels {
        place::labels(COMPONENT, self.run)
    }

    fn pod(&self) -> PodSpec {
        let Pods { nodes, spread, volume, .. } = self.pods;
        let mut volumes = vec![
            PodVolume { name: "scratch", source: VolumeSource::EmptyDir { medium: None } },
            PodVolume {
                name: "access",
                source: VolumeSource::Secret {
                    secret_name: self.run.to_owned(),
                    default_mode: 0o440,
                    items: vec![SecretItem { key: "token", path: "token" }],
                },
            },
        ];
        volumes.extend(volume.as_ref().map(|volume| self.claim(volume)));
        let (affinity, topology_spread_constraints) = place::placed(nodes, *spread, self.run);
        PodSpec {
            restart_policy: "Never",
            automount_service_account_token: false,
            enable_service_links: false,
            termination_grace_period_seconds: GRACE,
            affinity,
            topology_spread_constraints,
            security_context: self.user(),
            containers: [self.container()],
            volumes,
        }
    }

    fn user(&self) -> PodSecurity {
        let usual = place::user(USER, self.pods.seccomp);
        match self.pods.user {
            User::NonRoot => usual,
            User::Root => PodSecurity { run_as_non_root: false, run_as_user: 0, run_as_group: 0, ..usual },
        }
    }

    fn container(&self) -> Container {
        let Pods { image, cpu, memory, volume, .. } = self.pods;
        let threads = cpu.thousandths().div_ceil(1000).clamp(1, 1024);
        // Kubernetes fills in the pod's number.
        let name = format!("{}-$(JOB_COMPLETION_INDEX)", self.run);
        let mut args =
            vec!["driver".to_owned(), "--name".into(), name, "--threads".into(), threads.to_string()];
        args.extend(["--token-file".to_owned(), format!("{TOKEN_DIRECTORY}/token")]);
        args.extend(["--leave-after", LEAVE_AFTER].map(str::to_owned));
        args.extend(volume.iter().flat_map(|volume| ["--allow-path".to_owned(), volume.path.clone()]));
        let mount = Mount::whole;
        let mut volume_mounts = vec![mount("scratch", "/tmp", false), mount("access", TOKEN_DIRECTORY, true)];
        let mut volume_devices = Vec::new();
        if let Some(Volume { mode, path, .. }) = volume {
            match mode {
                Mode::Filesystem => volume_mounts.push(mount("data", path, false)),
                Mode::Block => volume_devices.push(Device { name: "data", device_path: path.clone() }),
            }
        }
        let from_secret = |name, key| Variable {
            name,
            value: VariableValue::ValueFrom(ValueFrom::SecretKeyRef(SecretKey {
                name: self.run.to_owned(),
                key,
            })),
        };
        Container {
            name: "driver",
            image: image.clone(),
            image_pull_policy: "IfNotPresent",
            args,
            env: vec![
                from_secret("TIDEMARK_CONTROLLER", "controller"),
                from_secret("TIDEMARK_TRUST", "trust"),
                // What it sees of its node belongs to what the node's observer sees.
                Variable {
                    name: "TIDEMARK_NODE",
                    value: VariableValue::ValueFrom(ValueFrom::FieldRef { path: "spec.nodeName" }),
                },
            ],
            startup_probe: None,
            resources: PodResources {
                requests: PodAmounts { cpu: Some(cpu.clone()), memory: memory.clone() },
                limits: PodAmounts { cpu: None, memory: memory.clone() },
            },
            security_context: place::confined(),
            volume_mounts,
            volume_devices,
            // The last words of a driver that fails are said where its pod is looked at.
            termination_message_policy: "FallbackToLogsOnError",
        }
    }

    fn claim(&self, volume: &Volume) -> PodVolume {
        let spec = ClaimSpec {
            resources: ClaimResources { requests: StorageAmount { storage: volume.size.clone() } },
            storage_class_name: volume.class.clone(),
            volume_mode: match volume.mode {
                Mode::Filesystem => "Filesystem",
                Mode::Block => "Block",
            },
            access_modes: [volume.access.name()],
        };
        let volume_claim_template = ClaimTemplate { metadata: Labelled { labels: self.labels() }, spec };
        PodVolume { name: "data", source: VolumeSource::Ephemeral { volume_claim_template } }
    }
}

/// The name of the claim of a run's bucket. Its Secret and ConfigMap are called the same, and the run has a Secret of its own.
pub fn bucket_claim(run: &str) -> String {
    format!("{run}-bucket")
}

/// What names of runs begin with.
const OF_RUNS: &str = "tidemark-";

/// Whether a name may be one of [`run_name`].
pub fn is_run_name(name: &str) -> bool {
    let is_plain = |one: u8| one.is_ascii_lowercase() || one.is_ascii_digit() || one == b'-';
    name.len() <= LONGEST_RUN
        && name.strip_prefix(OF_RUNS).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_plain))
}

/// The name of a run: that of its document, as far as Kubernetes allows it, and what tells it from other runs.
pub fn run_name(document: &str, mark: &str) -> String {
    let letters = document.chars().map(|one| match one.to_ascii_lowercase() {
        one if one.is_ascii_lowercase() || one.is_ascii_digit() => one,
        _ => '-',
    });
    let letters: String = letters.collect();
    let words: Vec<_> = letters.split('-').filter(|word| !word.is_empty()).collect();
    let most = LONGEST_RUN - "tidemark--".len() - mark.len();
    let mut name = words.join("-");
    name.truncate(most);
    let name = name.trim_end_matches('-');
    match name {
        "" => format!("tidemark-{mark}"),
        name => format!("tidemark-{name}-{mark}"),
    }
}
