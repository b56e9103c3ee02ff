//! Rook's resources (`ceph.rook.io/v1`), as far as layouts use them: Rook's own definitions say what each field means.

use crate::quantity::Quantity;
use serde::Serialize;
use std::collections::BTreeMap;

/// A cluster.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) external: Option<External>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) crash_collector: Option<CrashCollector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ceph_version: Option<CephVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_dir_host_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mon: Option<Mon>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mgr: Option<Mgr>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) placement: BTreeMap<&'static str, Placement>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) storage: Option<Storage>,
}

#[derive(Debug, Serialize)]
pub(crate) struct External {
    pub(crate) enable: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct CrashCollector {
    pub(crate) disable: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CephVersion {
    pub(crate) image: String,
    pub(crate) allow_unsupported: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mon {
    pub(crate) count: u32,
    pub(crate) allow_multiple_per_node: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) volume_claim_template: Option<Claim>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mgr {
    pub(crate) count: u32,
    pub(crate) allow_multiple_per_node: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Storage {
    pub(crate) use_all_nodes: bool,
    pub(crate) use_all_devices: bool,
    pub(crate) storage_class_device_sets: Vec<DeviceSet>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceSet {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) portable: bool,
    pub(crate) encrypted: bool,
    pub(crate) tune_device_class: bool,
    pub(crate) tune_fast_device_class: bool,
    pub(crate) resources: Resources,
    pub(crate) placement: Placement,
    pub(crate) prepare_placement: Placement,
    pub(crate) volume_claim_templates: Vec<Claim>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Resources {
    pub(crate) requests: Amounts,
    pub(crate) limits: Amounts,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Amounts {
    pub(crate) cpu: Quantity,
    pub(crate) memory: Quantity,
}

/// A template of claims. Monitors' have no name.
#[derive(Debug, Serialize)]
pub(crate) struct Claim {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<ClaimMetadata>,
    pub(crate) spec: ClaimSpec,
}

#[derive(Debug, Serialize)]
pub(crate) struct ClaimMetadata {
    pub(crate) name: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<&'static str, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaimSpec {
    pub(crate) resources: ClaimResources,
    pub(crate) storage_class_name: String,
    pub(crate) volume_mode: &'static str,
    pub(crate) access_modes: [&'static str; 1],
}

#[derive(Debug, Serialize)]
pub(crate) struct ClaimResources {
    pub(crate) requests: StorageAmount,
}

#[derive(Debug, Serialize)]
pub(crate) struct StorageAmount {
    pub(crate) storage: Quantity,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placement {
    pub(crate) node_affinity: NodeAffinity,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) required: NodeSelector,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeSelector {
    pub(crate) node_selector_terms: [NodeTerm; 1],
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeTerm {
    pub(crate) match_expressions: Vec<NodeExpression>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodeExpression {
    pub(crate) key: String,
    pub(crate) operator: &'static str,
    pub(crate) values: Vec<String>,
}

impl NodeSelector {
    /// One of these nodes.
    pub(crate) fn any_of(nodes: &[String]) -> Self {
        let host = |node: &String| ("kubernetes.io/hostname".to_owned(), node.clone());
        Self::with(&nodes.iter().map(host).collect::<Vec<_>>())
    }

    /// Nodes with these labels: of one that is named several times, any of its values.
    pub(crate) fn with(labels: &[(String, String)]) -> Self {
        let mut values: BTreeMap<&String, Vec<String>> = BTreeMap::new();
        for (key, value) in labels {
            values.entry(key).or_default().push(value.clone());
        }
        let expressions = values.into_iter();
        let expressions =
            expressions.map(|(key, values)| NodeExpression { key: key.clone(), operator: "In", values });
        Self { node_selector_terms: [NodeTerm { match_expressions: expressions.collect() }] }
    }
}

impl Placement {
    /// On one of these nodes.
    pub(crate) fn on(nodes: &[String]) -> Self {
        Self { node_affinity: NodeAffinity { required: NodeSelector::any_of(nodes) } }
    }
}

/// A pool.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BlockPool {
    /// Only the pools of a file system have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<&'static str>,
    pub(crate) failure_domain: &'static str,
    pub(crate) device_class: &'static str,
    pub(crate) replicated: Replicated,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) parameters: BTreeMap<&'static str, String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replicated {
    pub(crate) size: u32,
    pub(crate) require_safe_replica_size: bool,
}

/// A file system.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileSystemSpec {
    pub(crate) metadata_pool: BlockPool,
    pub(crate) data_pools: [BlockPool; 1],
    pub(crate) metadata_server: MetadataServer,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetadataServer {
    pub(crate) active_count: u32,
    pub(crate) active_standby: bool,
}

/// An object store.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectStoreSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata_pool: Option<BlockPool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data_pool: Option<BlockPool>,
    pub(crate) gateway: Gateway,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gateway {
    pub(crate) port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instances: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) external_rgw_endpoints: Vec<Endpoint>,
}

/// The address of a gateway.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Endpoint {
    Ip(String),
    Hostname(String),
}

/// A claim of a bucket (`objectbucket.io/v1alpha1`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BucketClaim {
    #[serde(flatten)]
    pub(crate) bucket: Bucket,
    pub(crate) storage_class_name: String,
}

/// What a bucket is called.
#[derive(Debug, Serialize)]
pub(crate) enum Bucket {
    /// Exactly so.
    #[serde(rename = "bucketName")]
    Named(String),
    /// So, and then as whoever makes it likes.
    #[serde(rename = "generateBucketName")]
    Beginning(String),
}
