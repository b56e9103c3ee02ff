//! Kubernetes' own resources, as far as our pods use them: a Job (`batch/v1`), a StatefulSet (`apps/v1`), a Service and a Secret (`v1`).

use crate::quantity::Quantity;
use serde::Serialize;
use std::collections::BTreeMap;
use tidemark_keys::secret::Secret;

/// Labels by their names.
pub(crate) type Labels = BTreeMap<&'static str, String>;

/// A Secret, as text.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretBody {
    pub(crate) immutable: bool,
    pub(crate) string_data: BTreeMap<&'static str, Secret>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobSpec {
    pub(crate) completion_mode: &'static str,
    pub(crate) completions: u32,
    pub(crate) parallelism: u32,
    pub(crate) backoff_limit_per_index: u32,
    pub(crate) ttl_seconds_after_finished: u32,
    pub(crate) template: PodTemplate,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatefulSetSpec {
    pub(crate) service_name: String,
    pub(crate) replicas: u32,
    pub(crate) pod_management_policy: &'static str,
    pub(crate) selector: Selector,
    pub(crate) template: PodTemplate,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) volume_claim_templates: Vec<NamedClaim>,
    pub(crate) persistent_volume_claim_retention_policy: Retention,
}

/// What becomes of claims.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Retention {
    pub(crate) when_deleted: &'static str,
    pub(crate) when_scaled: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct NamedClaim {
    pub(crate) metadata: NamedLabelled,
    pub(crate) spec: crate::rook::ClaimSpec,
}

#[derive(Debug, Serialize)]
pub(crate) struct NamedLabelled {
    pub(crate) name: &'static str,
    pub(crate) labels: Labels,
}

/// A Service without an address of its own.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceSpec {
    #[serde(rename = "clusterIP")]
    pub(crate) cluster_ip: &'static str,
    pub(crate) selector: Labels,
    pub(crate) ports: [Port; 1],
}

#[derive(Debug, Serialize)]
pub(crate) struct Port {
    pub(crate) name: &'static str,
    pub(crate) port: u16,
}

#[derive(Debug, Serialize)]
pub(crate) struct PodTemplate {
    pub(crate) metadata: Labelled,
    pub(crate) spec: PodSpec,
}

#[derive(Debug, Serialize)]
pub(crate) struct Labelled {
    pub(crate) labels: Labels,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSpec {
    pub(crate) restart_policy: &'static str,
    pub(crate) automount_service_account_token: bool,
    pub(crate) enable_service_links: bool,
    pub(crate) termination_grace_period_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) affinity: Option<Affinity>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) topology_spread_constraints: Vec<SpreadConstraint>,
    pub(crate) security_context: PodSecurity,
    pub(crate) containers: [Container; 1],
    pub(crate) volumes: Vec<PodVolume>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Affinity {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_affinity: Option<crate::rook::NodeAffinity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod_anti_affinity: Option<AntiAffinity>,
}

#[derive(Debug, Serialize)]
pub(crate) struct AntiAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) required: [AntiAffinityTerm; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AntiAffinityTerm {
    pub(crate) topology_key: &'static str,
    pub(crate) label_selector: Selector,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selector {
    pub(crate) match_labels: Labels,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpreadConstraint {
    pub(crate) max_skew: u32,
    pub(crate) topology_key: &'static str,
    pub(crate) when_unsatisfiable: &'static str,
    /// Whether nodes on which the pod may not run count as empty ones, which is usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_taints_policy: Option<&'static str>,
    pub(crate) label_selector: Selector,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSecurity {
    pub(crate) run_as_non_root: bool,
    pub(crate) run_as_user: u32,
    pub(crate) run_as_group: u32,
    pub(crate) fs_group: u32,
    pub(crate) fs_group_change_policy: &'static str,
    pub(crate) seccomp_profile: SeccompProfile,
}

#[derive(Debug, Serialize)]
pub(crate) struct SeccompProfile {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Container {
    pub(crate) name: &'static str,
    pub(crate) image: String,
    pub(crate) image_pull_policy: &'static str,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<Variable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) startup_probe: Option<Probe>,
    pub(crate) resources: PodResources,
    pub(crate) security_context: ContainerSecurity,
    pub(crate) volume_mounts: Vec<Mount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) volume_devices: Vec<Device>,
    pub(crate) termination_message_policy: &'static str,
}

/// Looks whether a container has started.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Probe {
    pub(crate) tcp_socket: TcpSocket,
    pub(crate) period_seconds: u32,
    pub(crate) failure_threshold: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct TcpSocket {
    pub(crate) port: u16,
}

#[derive(Debug, Serialize)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) value: VariableValue,
}

/// A text, or where it stands.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum VariableValue {
    Value(String),
    ValueFrom(ValueFrom),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ValueFrom {
    SecretKeyRef(SecretKey),
    /// Of the pod itself.
    FieldRef {
        #[serde(rename = "fieldPath")]
        path: &'static str,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct SecretKey {
    pub(crate) name: String,
    pub(crate) key: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct PodResources {
    pub(crate) requests: PodAmounts,
    pub(crate) limits: PodAmounts,
}

#[derive(Debug, Serialize)]
pub(crate) struct PodAmounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<Quantity>,
    pub(crate) memory: Quantity,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerSecurity {
    pub(crate) allow_privilege_escalation: bool,
    pub(crate) read_only_root_filesystem: bool,
    pub(crate) capabilities: Capabilities,
}

#[derive(Debug, Serialize)]
pub(crate) struct Capabilities {
    pub(crate) drop: [&'static str; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mount {
    pub(crate) name: &'static str,
    pub(crate) mount_path: String,
    /// What of the volume is there; all of it without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sub_path: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) read_only: bool,
}

impl Mount {
    /// A whole volume.
    pub(crate) fn whole(name: &'static str, path: &str, read_only: bool) -> Self {
        Self { name, mount_path: path.to_owned(), sub_path: None, read_only }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Device {
    pub(crate) name: &'static str,
    pub(crate) device_path: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct PodVolume {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) source: VolumeSource,
}

/// What a volume of a pod is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum VolumeSource {
    EmptyDir {
        #[serde(skip_serializing_if = "Option::is_none")]
        medium: Option<&'static str>,
    },
    #[serde(rename_all = "camelCase")]
    Secret { secret_name: String, default_mode: u32, items: Vec<SecretItem> },
    #[serde(rename_all = "camelCase")]
    Ephemeral { volume_claim_template: ClaimTemplate },
}

#[derive(Debug, Serialize)]
pub(crate) struct SecretItem {
    pub(crate) key: &'static str,
    pub(crate) path: &'static str,
}

#[derive(Debug, Serialize)]
pub(crate) struct ClaimTemplate {
    pub(crate) metadata: Labelled,
    pub(crate) spec: crate::rook::ClaimSpec,
}
