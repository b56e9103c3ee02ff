//! What a layout is: which parts of a cluster's storage lie on which devices, and what is offered on it.

use crate::quantity::Quantity;

/// What the pool of a file system's data is called, after the file system's name.
pub(crate) const DATA_POOL_OF_OURS: &str = "replicated";

/// What Rook calls the pool of a file system's metadata, after the file system's name (its `generateMetaDataPoolName`).
pub(crate) const METADATA_POOL_OF_ROOK: &str = "metadata";

/// A cluster on Kubernetes and what pods can claim from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its name; all its resources carry it as a label.
    pub name: String,
    /// The namespace of the cluster.
    pub namespace: String,
    /// The namespace of Rook's operator, by which the drivers of volumes are named.
    pub operator_namespace: String,
    /// Where the cluster comes from.
    pub deployment: Deployment,
    /// Pools for block volumes.
    pub pools: Vec<Pool>,
    /// File systems.
    pub file_systems: Vec<FileSystem>,
    /// Object stores.
    pub object_stores: Vec<ObjectStore>,
}

/// Where a cluster comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deployment {
    /// Rook makes it on nodes of this Kubernetes.
    Internal(Box<Cluster>),
    /// It exists elsewhere, and is imported.
    External,
}

/// Which layout it is. The names are those of the lab's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Everything of BlueStore (data, RocksDB's metadata, write-ahead log) on one device.
    Baseline,
    /// Metadata and write-ahead log on a fast class.
    Reference1,
    /// Metadata on a fast class, and the data behind a cache on fast devices, which is prepared on the nodes.
    Reference2,
    /// A cluster that exists elsewhere.
    External,
}

impl Kind {
    /// Its name: `baseline`, `reference-1`, `reference-2` or `external`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Baseline => "baseline",
            Kind::Reference1 => "reference-1",
            Kind::Reference2 => "reference-2",
            Kind::External => "external",
        }
    }
}

/// A cluster that Rook makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Ceph's image.
    pub image: String,
    /// The nodes that it runs on, as their label `kubernetes.io/hostname` says.
    pub nodes: Vec<String>,
    /// The directory on the nodes for what its daemons keep.
    pub data_dir: String,
    /// Its monitors.
    pub monitors: Monitors,
    /// What copies must not share.
    pub failure_domain: FailureDomain,
    /// OSDs on each node.
    pub osds_per_node: u32,
    /// Processors of each OSD.
    pub cpu: Quantity,
    /// Memory of each OSD.
    pub memory: Quantity,
    /// What the data devices are.
    pub media: Media,
    /// The devices of each OSD's data.
    pub data: Template,
    /// The devices of each OSD's metadata, if they are others.
    pub metadata: Option<Template>,
    /// The devices of each OSD's write-ahead log, if they are others.
    pub wal: Option<Template>,
    /// What caches the data, if anything does.
    pub cache: Option<Cache>,
}

impl Cluster {
    /// The name of the OSDs of each node: that of the node up to its first dot, or all of it where that is not enough.
    pub fn set_names(&self) -> Vec<String> {
        set_names(&self.nodes)
    }

    /// How many failure domains it has: copies of an object lie in different ones.
    pub fn failure_domains(&self) -> u32 {
        let nodes = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        match self.failure_domain {
            FailureDomain::Host => nodes,
            FailureDomain::Osd => nodes.saturating_mul(self.osds_per_node),
        }
    }

    /// The parts of every OSD, by the names that Rook has for them.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Template)> {
        let fast = [("metadata", self.metadata.as_ref()), ("wal", self.wal.as_ref())];
        let fast = fast.into_iter().filter_map(|(name, part)| Some((name, part?)));
        std::iter::once(("data", &self.data)).chain(fast)
    }
}

/// Names for the OSDs of nodes. They differ if those of the nodes do, but for dots and hyphens.
pub(crate) fn set_names(nodes: &[String]) -> Vec<String> {
    let short: Vec<_> = nodes.iter().map(|node| node.split('.').next().unwrap_or(node).to_owned()).collect();
    let differ = (1..short.len()).all(|place| !short[..place].contains(&short[place]));
    if differ { short } else { nodes.iter().map(|node| node.replace('.', "-")).collect() }
}

/// The monitors of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitors {
    /// How many there are, each on a node of its own.
    pub count: u32,
    /// The class and the size of the volume that each keeps its data on; else that is a directory of its node.
    pub volume: Option<(String, Quantity)>,
}

/// What copies of data must not share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureDomain {
    /// A node.
    #[default]
    Host,
    /// An OSD.
    Osd,
}

impl FailureDomain {
    /// Ceph's word for it.
    pub fn name(self) -> &'static str {
        match self {
            FailureDomain::Host => "host",
            FailureDomain::Osd => "osd",
        }
    }
}

/// What a data device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// A disk.
    Hdd,
    /// A solid-state disk.
    #[default]
    Ssd,
    /// The same over NVMe.
    Nvme,
}

impl Media {
    /// Ceph's class of such devices.
    pub fn device_class(self) -> &'static str {
        match self {
            Media::Hdd => "hdd",
            Media::Ssd => "ssd",
            Media::Nvme => "nvme",
        }
    }
}

/// What an OSD may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Profile {
    /// 2 processors, 6 GiB.
    #[default]
    Default,
    /// 6 processors, 16 GiB.
    Tuned,
    /// 8 processors, 18 GiB: those of a cluster that others import.
    External,
}

impl Profile {
    /// Processors and memory, as Kubernetes writes them.
    pub(crate) fn amounts(self) -> (&'static str, &'static str) {
        match self {
            Profile::Default => ("2", "6Gi"),
            Profile::Tuned => ("6", "16Gi"),
            Profile::External => ("8", "18Gi"),
        }
    }
}

/// The devices of one part of every OSD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The storage class from which they are claimed.
    pub class: String,
    /// What each OSD claims.
    pub size: Quantity,
    /// The devices of each node, one for each of its OSDs, if the class is to be made of them; else it must be there.
    pub devices: Vec<String>,
}

/// What caches a device, below the OSD and unknown to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Open-CAS.
    OpenCas,
    /// The device mapper's cache.
    DmCache,
    /// bcache.
    Bcache,
}

impl Cache {
    /// How the names of its devices begin. A device that is not one of these would be the disk behind the cache.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Cache::OpenCas => "/dev/cas",
            Cache::DmCache => "/dev/mapper/",
            Cache::Bcache => "/dev/bcache",
        }
    }
}

/// A pool for block volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// The storage class, and the class of snapshots, through which it is claimed.
    pub class: String,
    /// Copies of each object, the first included; of an imported cluster's pool, none of our business.
    pub replicas: Option<u32>,
    /// How many placement groups it has for good; else Ceph decides.
    pub placement_groups: Option<u32>,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name.
    pub name: String,
    /// The storage class, and the class of snapshots, through which it is claimed.
    pub class: String,
    /// Copies of each object, the first included; of an imported cluster's file system, none of our business.
    pub replicas: Option<u32>,
    /// The pool of its data.
    pub pool: String,
}

/// An object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectStore {
    /// Its name.
    pub name: String,
    /// The storage class through which buckets are claimed.
    pub class: String,
    /// Port of its gateways.
    pub port: u16,
    /// Its gateways.
    pub gateways: Gateways,
    /// Buckets that are claimed; a claim has the name of its bucket.
    pub buckets: Vec<String>,
}

/// The gateways of an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gateways {
    /// Rook starts them.
    Ours {
        /// How many there are, behind one service.
        instances: u32,
        /// Copies of each object, the first included.
        replicas: u32,
    },
    /// They are there in the cluster that is imported, at these addresses.
    Theirs(Vec<String>),
}
