//! Manifests: resources as `kubectl apply` takes them.

use crate::classes::{PersistentVolume, SnapshotClass, StorageClass};
use crate::rook::{BlockPool, BucketClaim, ClusterSpec, FileSystemSpec, ObjectStoreSpec};
use crate::workload::{JobSpec, SecretBody, ServiceSpec, StatefulSetSpec};
use serde::Serialize;
use std::collections::BTreeMap;

/// A resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of the interface that it belongs to.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its name and labels.
    pub(crate) metadata: Metadata,
    #[serde(flatten)]
    pub(crate) body: Body,
}

impl Manifest {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Its namespace, if it has one.
    pub fn namespace(&self) -> Option<&str> {
        self.metadata.namespace.as_deref()
    }
}

/// What all resources have.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    pub(crate) labels: BTreeMap<&'static str, String>,
    /// What takes it along when it is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) owner_references: Vec<Owner>,
}

/// What takes an object along when it is deleted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The version of the interface that it belongs to.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its number, which no other object ever has.
    pub uid: String,
}

/// What a resource says; some have no `spec`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Body {
    Spec { spec: Spec },
    StorageClass(StorageClass),
    SnapshotClass(SnapshotClass),
    Secret(SecretBody),
}

/// The `spec` of a resource.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Spec {
    Cluster(Box<ClusterSpec>),
    Pool(BlockPool),
    FileSystem(FileSystemSpec),
    ObjectStore(ObjectStoreSpec),
    BucketClaim(BucketClaim),
    Volume(PersistentVolume),
    Job(Box<JobSpec>),
    StatefulSet(Box<StatefulSetSpec>),
    Service(ServiceSpec),
}

/// Manifests that could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("the manifests cannot be written: {0}")]
pub struct NotWritten(#[from] serde_saphyr::ser_error::Error);

/// Manifests as one YAML text of several documents.
///
/// # Errors
/// [`NotWritten`].
pub fn yaml(manifests: &[Manifest]) -> Result<String, NotWritten> {
    let documents = manifests.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("---\n"))
}
