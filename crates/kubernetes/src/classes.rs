//! Kubernetes' own resources, as far as layouts use them: classes through which pods claim, and volumes of devices.

use crate::quantity::Quantity;
use crate::rook::NodeSelector;
use serde::Serialize;
use std::collections::BTreeMap;

/// A storage class (`storage.k8s.io/v1`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StorageClass {
    pub(crate) provisioner: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parameters: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow_volume_expansion: Option<bool>,
    pub(crate) reclaim_policy: &'static str,
    pub(crate) volume_binding_mode: &'static str,
}

/// A class of snapshots (`snapshot.storage.k8s.io/v1`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SnapshotClass {
    pub(crate) driver: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) deletion_policy: &'static str,
}

/// A volume that is a device of a node (`v1`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PersistentVolume {
    pub(crate) capacity: Capacity,
    pub(crate) volume_mode: &'static str,
    pub(crate) access_modes: [&'static str; 1],
    pub(crate) persistent_volume_reclaim_policy: &'static str,
    pub(crate) storage_class_name: String,
    pub(crate) local: Local,
    pub(crate) node_affinity: VolumeAffinity,
}

#[derive(Debug, Serialize)]
pub(crate) struct Capacity {
    pub(crate) storage: Quantity,
}

#[derive(Debug, Serialize)]
pub(crate) struct Local {
    pub(crate) path: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct VolumeAffinity {
    pub(crate) required: NodeSelector,
}
