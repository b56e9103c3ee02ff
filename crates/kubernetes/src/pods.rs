//! Drivers as pods: what a document says of them under `drivers: {kubernetes: ...}`.

use crate::names::{LABEL, SUBDOMAIN};
use crate::quantity::{PROCESSORS, Quantity, SIZE};
use tidemark_keys::kinds::{Parsed, Word};
use tidemark_keys::shapes::{Map, OneOrList};
use tidemark_keys::{Key, Mapping, Problem, Table};

/// The image where nobody names one: `tidemark` with this program's version.
pub const IMAGE: &str = concat!("tidemark:", env!("CARGO_PKG_VERSION"));

/// The most pods of a run.
pub const MOST_PODS: u32 = 360;

/// An image by any name.
pub const IMAGE_NAME: Parsed<String> = Parsed("image", |text| {
    let is_plain = !text.is_empty() && text.chars().all(|one| one.is_ascii_graphic());
    match is_plain {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is not the name of an image"),
            format!("write it as the nodes pull it, such as registry.example.org/{IMAGE}"),
        )),
    }
});

/// A label of nodes and its value: `disk=ssd`.
pub(crate) const NODE_LABEL: Parsed<(String, String)> = Parsed("label such as `disk=ssd`", |text| {
    let is_plain = |part: &str| {
        part.bytes().all(|one| one.is_ascii_alphanumeric() || matches!(one, b'-' | b'_' | b'.' | b'/'))
    };
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && is_plain(name) && is_plain(value) => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(Problem::new(
            format!("'{text}' is not a label with its value"),
            "write it as `kubectl get nodes --show-labels` does, such as topology.kubernetes.io/zone=a",
        )),
    }
});

pub(crate) static NAMESPACE: Key<Parsed<String>> =
    Key::new("namespace", "Namespace of the pods, which must exist", LABEL).otherwise("the kubeconfig's");
static IMAGE_KEY: Key<Parsed<String>> =
    Key::new("image", "Image of the drivers; `tidemark kubernetes image` makes one", IMAGE_NAME)
        .otherwise("`tidemark:VERSION`");
static CPU: Key<Parsed<Quantity>> = Key::new(
    "cpu",
    "Processors that each driver requests; it has as many threads, rounded up. There is no limit: a throttled driver would measure itself",
    PROCESSORS,
)
.default("1");
static MEMORY: Key<Parsed<Quantity>> =
    Key::new("memory", "Memory of each driver, requested and limit", SIZE).default("1Gi");
pub(crate) static NODES: Key<OneOrList<Parsed<(String, String)>>> = Key::new(
    "nodes",
    "Labels that the nodes of the pods have; of one that is named several times, any of its values",
    OneOrList(NODE_LABEL),
)
.otherwise("any node");
pub(crate) static SPREAD: Key<Word<Spread>> = Key::new(
    "spread",
    "How the pods are spread: evenly over nodes if possible; evenly over zones, and over their nodes if possible; or at most one on a node",
    Word(&[("nodes", Spread::Nodes), ("zones", Spread::Zones), ("one-per-node", Spread::OnePerNode)]),
)
.default("nodes");
static SECCOMP: Key<Word<Seccomp>> = Key::new(
    "seccomp",
    "System calls that the container runtime allows. Block and file loads need io_uring, which the usual profile of newer runtimes forbids",
    Word(&[("runtime-default", Seccomp::RuntimeDefault), ("unconfined", Seccomp::Unconfined)]),
)
.default("runtime-default");
static USER: Key<Word<User>> = Key::new(
    "user",
    "The user of the drivers: without rights, or root, which may open block devices where the container runtime does not give them to the \
     pod's user",
    Word(&[("nonroot", User::NonRoot), ("root", User::Root)]),
)
.default("nonroot");
static VOLUME: Key<Map> = Key::of(&VOLUME_MAP).otherwise("none");
static BUCKET: Key<Map> = Key::of(&BUCKET_MAP).otherwise("none");
static OBSERVERS: Key<Parsed<String>> = Key::new(
    "observers",
    "Namespace of the observers that `tidemark kubernetes observers` installs: all nodes that have one are observed",
    LABEL,
)
.otherwise("that of the drivers");
static CEPH_TOOLBOX: Key<Parsed<String>> = Key::new(
    "ceph_toolbox",
    "Namespace of Rook's toolbox, through which the counters of Ceph's OSDs are read",
    LABEL,
)
.otherwise("Ceph is not asked")
.example("rook-ceph");
static TARGET: Key<Map> = Key::of(&TARGET_MAP).otherwise("only driver pods and their nodes are watched");

static TARGET_LABELS: Key<OneOrList<Parsed<(String, String)>>> =
    Key::new("labels", "Labels that they have", OneOrList(NODE_LABEL))
        .required("write a label of the pods, as in `labels: app=postgres`");
static TARGET_NAMESPACE: Key<Parsed<String>> =
    Key::new("namespace", "Their namespace", LABEL).otherwise("that of the drivers");
static TARGET_MAP: Mapping = Mapping::new(
    "target_pods",
    "The target's own pods, where it runs in the same cluster: the report shows what became of them and for how long the load had no success",
    &[&TARGET_LABELS, &TARGET_NAMESPACE],
);

pub(crate) static CLASS: Key<Parsed<String>> =
    Key::new("class", "Storage class from which the volume is claimed", SUBDOMAIN)
        .required("write the name of a storage class, as `kubectl get storageclass` shows it");
pub(crate) static SIZE_KEY: Key<Parsed<Quantity>> =
    Key::new("size", "Size that is claimed", SIZE).required("write a size, as in `size: 10Gi`");
static ACCESS: Key<Word<Access>> = Key::new(
    "access",
    "Who may mount the volume at a time, as Kubernetes has it",
    Word(&[
        ("ReadWriteOnce", Access::ReadWriteOnce),
        ("ReadWriteOncePod", Access::ReadWriteOncePod),
        ("ReadWriteMany", Access::ReadWriteMany),
    ]),
)
.default("ReadWriteOnce");
static MODE: Key<Word<Mode>> = Key::new(
    "mode",
    "What the driver gets: a directory, or a block device",
    Word(&[("filesystem", Mode::Filesystem), ("block", Mode::Block)]),
)
.default("filesystem");
static PATH: Key<Parsed<String>> =
    Key::new("path", "Where the driver finds it: the directory, or the device", PLACE)
        .otherwise("`/data`; a device: `/dev/data`");
/// Where a volume may be in a pod: nowhere where the image, the pod or the kernel has something, and nothing that Kubernetes would take for
/// a variable or a mount table for a separator.
const PLACE: Parsed<String> = Parsed("path", |text| {
    const TAKEN: [&str; 10] = ["tidemark", "tmp", "etc", "proc", "sys", "run", "lib", "lib64", "usr", "bin"];
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(plain);
    let parts: Vec<_> = text.strip_prefix('/').unwrap_or_default().split('/').collect();
    let is_free = !TAKEN.contains(&parts[0]) && parts != ["dev"];
    match text.len() <= LONGEST_PATH && is_free && parts.iter().all(|part| is_part(part)) {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("'{text}' is no place for a volume"),
            "write a path in full, of letters, digits, dots, dashes and underscores, such as /data or /dev/data; what the image and the \
             kernel have there cannot be covered",
        )),
    }
});
/// In bytes: Linux's limit for a path (`PATH_MAX`) is 4096, and names of files follow.
const LONGEST_PATH: usize = 1024;
static VOLUME_MAP: Mapping = Mapping::new(
    "volume",
    "A volume for every driver, claimed with its pod and removed with it",
    &[&CLASS, &SIZE_KEY, &ACCESS, &MODE, &PATH],
);

static BUCKET_CLASS: Key<Parsed<String>> =
    Key::new("class", "Storage class from which the bucket is claimed", SUBDOMAIN)
        .required("write the name of a storage class of buckets, as `kubectl get storageclass` shows it");
static BUCKET_MAP: Mapping = Mapping::new(
    "bucket",
    "A bucket for the run, claimed (ObjectBucketClaim) before its load and removed with it. What the claim's ConfigMap and Secret say are \
     variables of the document: `BUCKET_HOST`, `BUCKET_PORT`, `BUCKET_NAME`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`",
    &[&BUCKET_CLASS],
);

/// The keys of drivers on Kubernetes.
pub static PODS: Mapping = Mapping::new(
    "kubernetes",
    "Drivers as pods, for `tidemark run --on kubernetes`",
    &[
        &NAMESPACE,
        &IMAGE_KEY,
        &CPU,
        &MEMORY,
        &NODES,
        &SPREAD,
        &SECCOMP,
        &USER,
        &VOLUME,
        &BUCKET,
        &TARGET,
        &OBSERVERS,
        &CEPH_TOOLBOX,
    ],
);

/// What drivers are as pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    /// Their namespace; `None`: the one of the kubeconfig's context.
    pub namespace: Option<String>,
    /// Their image.
    pub image: String,
    /// Processors that each requests.
    pub cpu: Quantity,
    /// Memory of each: requested, and the limit.
    pub memory: Quantity,
    /// Labels of the nodes that they may run on: all names, and of each name any of its values.
    pub nodes: Vec<(String, String)>,
    /// How they are spread.
    pub spread: Spread,
    /// The system calls that they may use.
    pub seccomp: Seccomp,
    /// Who they are.
    pub user: User,
    /// The volume that each has.
    pub volume: Option<Volume>,
    /// The storage class of the bucket that all of them share.
    pub bucket_class: Option<String>,
    /// The pods of what is under load, which are watched.
    pub target: Option<Target>,
    /// The namespace of the observers of nodes; `None`: that of the drivers.
    pub observers: Option<String>,
    /// The namespace of Rook's toolbox; `None`: Ceph is not asked.
    pub ceph_toolbox: Option<String>,
}

/// The pods of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Their namespace; `None`: that of the drivers.
    pub namespace: Option<String>,
    /// Labels that all of them have.
    pub labels: Vec<(String, String)>,
}

impl Default for Pods {
    fn default() -> Self {
        Self {
            namespace: None,
            image: IMAGE.to_owned(),
            cpu: Quantity::whole(1, ""),
            memory: Quantity::whole(1, "Gi"),
            nodes: Vec::new(),
            spread: Spread::default(),
            seccomp: Seccomp::default(),
            user: User::default(),
            volume: None,
            bucket_class: None,
            target: None,
            observers: None,
            ceph_toolbox: None,
        }
    }
}

/// How pods are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Evenly over nodes, if possible.
    #[default]
    Nodes,
    /// Evenly over zones, and over their nodes if possible.
    Zones,
    /// At most one on a node.
    OnePerNode,
}

/// The system calls that a container may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    /// Those of the runtime's profile.
    #[default]
    RuntimeDefault,
    /// All.
    Unconfined,
}

/// Who a driver is on its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum User {
    /// Somebody whom the node does not know.
    #[default]
    NonRoot,
    /// Root, without any of root's capabilities: what belongs to root may be opened, and no more.
    Root,
}

/// The volume that each driver claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The storage class.
    pub class: String,
    /// Its size.
    pub size: Quantity,
    /// Who may mount it at a time.
    pub access: Access,
    /// Whether it is a directory or a device.
    pub mode: Mode,
    /// Where the driver finds it.
    pub path: String,
}

/// Who may mount a volume at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// One node.
    #[default]
    ReadWriteOnce,
    /// One pod.
    ReadWriteOncePod,
    /// All nodes.
    ReadWriteMany,
}

impl Access {
    /// Kubernetes' name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Access::ReadWriteOnce => "ReadWriteOnce",
            Access::ReadWriteOncePod => "ReadWriteOncePod",
            Access::ReadWriteMany => "ReadWriteMany",
        }
    }
}

/// What a volume is to its pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A directory.
    #[default]
    Filesystem,
    /// A block device.
    Block,
}

/// Reads what a document says of drivers as pods.
pub fn pods(table: Table<'_>) -> Pods {
    let mut table = table.of(&PODS);
    let usual = Pods::default();
    let pods = Pods {
        namespace: table.get(&NAMESPACE),
        image: table.get(&IMAGE_KEY).unwrap_or(usual.image),
        cpu: table.get(&CPU).unwrap_or(usual.cpu),
        memory: table.get(&MEMORY).unwrap_or(usual.memory),
        nodes: table.all(&NODES),
        spread: table.value(&SPREAD),
        seccomp: table.value(&SECCOMP),
        user: table.value(&USER),
        volume: table.table(&VOLUME).and_then(volume),
        bucket_class: table.table(&BUCKET).and_then(bucket_class),
        target: table.table(&TARGET).map(target),
        observers: table.get(&OBSERVERS),
        ceph_toolbox: table.get(&CEPH_TOOLBOX),
    };
    table.finish();
    pods
}

fn target(mut table: Table<'_>) -> Target {
    let target = Target { namespace: table.get(&TARGET_NAMESPACE), labels: table.all(&TARGET_LABELS) };
    table.finish();
    target
}

fn bucket_class(mut table: Table<'_>) -> Option<String> {
    let class = table.get(&BUCKET_CLASS);
    table.finish();
    class
}

fn volume(mut table: Table<'_>) -> Option<Volume> {
    let (class, size, mode) = (table.get(&CLASS), table.get(&SIZE_KEY), table.value(&MODE));
    let path = table.get(&PATH).unwrap_or_else(|| {
        match mode {
            Mode::Filesystem => "/data",
            Mode::Block => "/dev/data",
        }
        .to_owned()
    });
    let access = table.value(&ACCESS);
    table.finish();
    Some(Volume { class: class?, size: size?, access, mode, path })
}

/// A number of processors as Kubernetes writes it: `2`, `500m`.
///
/// # Errors
/// The text is no such number: a sentence.
pub fn processors(text: &str) -> Result<Quantity, String> {
    read(&PROCESSORS, text)
}

/// A size as Kubernetes writes it: `64Gi`.
///
/// # Errors
/// The text is no such size: a sentence.
pub fn size(text: &str) -> Result<Quantity, String> {
    read(&SIZE, text)
}

/// The name of a namespace.
///
/// # Errors
/// It cannot be one: a sentence.
pub fn namespace(text: &str) -> Result<String, String> {
    read(&LABEL, text)
}

/// The name of an image.
///
/// # Errors
/// It cannot be one: a sentence.
pub fn image(text: &str) -> Result<String, String> {
    read(&IMAGE_NAME, text)
}

/// The name of a storage class.
///
/// # Errors
/// It cannot be one: a sentence.
pub fn class(text: &str) -> Result<String, String> {
    read(&SUBDOMAIN, text)
}

fn read<T>(kind: &Parsed<T>, text: &str) -> Result<T, String> {
    (kind.1)(text).map_err(|problem| format!("{}: {}", problem.message, problem.help))
}
