//! Where an API server has each kind of resource, and when it goes.

use serde_json::Value;

/// The group of Rook's resources, with the version that we use.
pub(crate) const ROOK: &str = "apis/ceph.rook.io/v1";

/// When a resource goes: what uses others goes before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Goes {
    /// Claims.
    First,
    /// Classes, by which nobody shall claim any more.
    Classes,
    /// Pools, file systems and object stores.
    Pools,
    /// The cluster.
    Cluster,
    /// Volumes that are devices, and their class.
    Devices,
}

/// A kind of resource.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its group and version, as a path has them.
    pub(crate) group: &'static str,
    /// What a path calls it.
    pub(crate) plural: &'static str,
    /// Whether it is in a namespace.
    pub(crate) is_namespaced: bool,
    goes: Goes,
}

const fn kind(
    name: &'static str,
    group: &'static str,
    plural: &'static str,
    is_namespaced: bool,
    goes: Goes,
) -> Kind {
    Kind { name, group, plural, is_namespaced, goes }
}

/// All kinds that a layout makes.
pub(crate) static KINDS: [Kind; 8] = [
    kind("ObjectBucketClaim", "apis/objectbucket.io/v1alpha1", "objectbucketclaims", true, Goes::First),
    kind("StorageClass", "apis/storage.k8s.io/v1", "storageclasses", false, Goes::Classes),
    kind(
        "VolumeSnapshotClass",
        "apis/snapshot.storage.k8s.io/v1",
        "volumesnapshotclasses",
        false,
        Goes::Classes,
    ),
    kind("CephObjectStore", ROOK, "cephobjectstores", true, Goes::Pools),
    kind("CephFilesystem", ROOK, "cephfilesystems", true, Goes::Pools),
    kind("CephBlockPool", ROOK, "cephblockpools", true, Goes::Pools),
    kind("CephCluster", ROOK, "cephclusters", true, Goes::Cluster),
    kind("PersistentVolume", "api/v1", "persistentvolumes", false, Goes::Devices),
];

impl Kind {
    /// The kind of this name, if a layout makes it.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The path of all its objects, those of `namespace` if it has namespaces.
    pub(crate) fn path(&self, namespace: &str) -> String {
        match self.is_namespaced {
            true => format!("/{}/namespaces/{namespace}/{}", self.group, self.plural),
            false => format!("/{}/{}", self.group, self.plural),
        }
    }

    /// When an object of this kind goes.
    pub(crate) fn goes(&self, object: &Value) -> Goes {
        match object["provisioner"].as_str() {
            Some("kubernetes.io/no-provisioner") => Goes::Devices,
            _ => self.goes,
        }
    }
}

/// A resource: its kind and what it says.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) kind: &'static Kind,
    pub(crate) value: Value,
}

impl Object {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        name(&self.value)
    }

    /// Kind and name, for people.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind.name, self.name())
    }

    /// Whether the two are the same resource, whatever they say.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name() == other.name()
    }

    /// Its own path.
    pub(crate) fn path(&self, namespace: &str) -> String {
        format!("{}/{}", self.kind.path(namespace), self.name())
    }
}

/// The name of a resource.
pub(crate) fn name(value: &Value) -> &str {
    value["metadata"]["name"].as_str().unwrap_or_default()
}

/// Namespace and name of a resource, for people.
pub(crate) fn place(value: &Value) -> String {
    match value["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", name(value)),
        None => name(value).to_owned(),
    }
}
