//! What must be there before a layout is applied: each thing that is missing in one sentence.

use crate::error::RookError;
use crate::kinds::{Kind, name, place};
use crate::placed::Placed;
use serde_json::Value;
use std::collections::BTreeSet;
use tidemark_kubernetes::Deployment;

/// The first version of Rook whose definitions have all that manifests say.
const LEAST: (u64, u64) = (1, 20);

/// The Deployment of Rook's operator, as its manifests and its chart name it.
const OPERATOR: &str = "rook-ceph-operator";

impl Placed {
    /// What is missing, or in the way, before the layout can be applied.
    ///
    /// # Errors
    /// The API server refuses to tell, or does not answer.
    pub fn missing(&self) -> Result<Vec<String>, RookError> {
        let mut all = Vec::new();
        let namespace = &self.layout.namespace;
        if self.get(&format!("/api/v1/namespaces/{namespace}"))?.is_none() {
            all.push(format!(
                "the namespace {namespace}: make it with `kubectl create namespace {namespace}`"
            ));
        }
        self.definitions(&mut all)?;
        self.operator(&mut all)?;
        match &self.layout.deployment {
            Deployment::Internal(cluster) => {
                self.classes(&mut all)?;
                self.nodes(&cluster.nodes, &mut all)?;
            }
            Deployment::External => self.keys(&mut all)?,
        }
        self.in_the_way(&mut all)?;
        Ok(all)
    }

    /// The definitions of the resources, as the API server serves them.
    fn definitions(&self, all: &mut Vec<String>) -> Result<(), RookError> {
        let kinds: BTreeSet<_> = self.wanted()?.iter().map(|object| object.kind.name).collect();
        let kinds: Vec<_> = kinds.into_iter().filter_map(Kind::of).collect();
        let groups: BTreeSet<_> = kinds.iter().map(|kind| kind.group).collect();
        for group in groups {
            let served = self.get(&format!("/{group}"))?;
            let known = served.as_ref().and_then(|served| served["resources"].as_array());
            let is_known = |kind: &Kind| {
                known.is_some_and(|known| known.iter().any(|resource| resource["name"] == kind.plural))
            };
            let unknown: Vec<_> = kinds
                .iter()
                .filter(|kind| kind.group == group && !is_known(kind))
                .map(|kind| kind.name)
                .collect();
            if !unknown.is_empty() {
                let (from, others) = (definitions_of(group), self.other_versions(group)?);
                all.push(format!(
                    "the definition of {} ({}){others}: apply {from}",
                    unknown.join(", "),
                    short(group)
                ));
            }
        }
        Ok(())
    }

    /// The versions of a group that the API server does have, for people.
    fn other_versions(&self, group: &str) -> Result<String, RookError> {
        let Some((path, wanted)) = group.rsplit_once('/') else { return Ok(String::new()) };
        let served = self.get(&format!("/{path}"))?.unwrap_or_default();
        let versions = served["versions"].as_array().into_iter().flatten();
        let others: Vec<_> = versions
            .filter_map(|version| version["version"].as_str())
            .filter(|version| *version != wanted)
            .collect();
        Ok(if others.is_empty() {
            String::new()
        } else {
            format!(", of which there is only {}", others.join(", "))
        })
    }

    /// The operator, and whether it is new enough.
    fn operator(&self, all: &mut Vec<String>) -> Result<(), RookError> {
        let namespace = &self.layout.operator_namespace;
        let found = self.get(&format!("/apis/apps/v1/namespaces/{namespace}/deployments/{OPERATOR}"))?;
        let Some(found) = found else {
            all.push(format!(
                "Rook's operator, the Deployment {OPERATOR} in the namespace {namespace}: install Rook, or name its namespace in \
                 `operator_namespace`"
            ));
            return Ok(());
        };
        let image = found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        if let Some(version) = version(image).filter(|version| *version < LEAST) {
            let (major, minor) = version;
            all.push(format!(
                "Rook {}.{} or later: the operator is {major}.{minor} ({image})",
                LEAST.0, LEAST.1
            ));
        }
        Ok(())
    }

    fn classes(&self, all: &mut Vec<String>) -> Result<(), RookError> {
        for class in self.layout.needs().into_iter().flat_map(|needs| needs.classes) {
            if self.get(&format!("/apis/storage.k8s.io/v1/storageclasses/{class}"))?.is_none() {
                all.push(format!(
                    "the storage class {class}, from which OSDs or monitors claim: make it, or name their `devices` in the layout"
                ));
            }
        }
        Ok(())
    }

    fn nodes(&self, names: &[String], all: &mut Vec<String>) -> Result<(), RookError> {
        let there = self.list("/api/v1/nodes", "")?;
        let hostname =
            |node: &Value| node["metadata"]["labels"]["kubernetes.io/hostname"].as_str().map(str::to_owned);
        for wanted in names {
            match there.iter().find(|node| hostname(node).as_ref() == Some(wanted)) {
                None => all.push(format!(
                    "the node {wanted}: no node has the label kubernetes.io/hostname={wanted}; there are {}",
                    listed(there.iter().filter_map(hostname))
                )),
                Some(node) if !is_ready(node) => {
                    all.push(format!(
                        "a node {wanted} that is Ready: `kubectl describe node {}` says why",
                        name(node)
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// What the scripts of Rook leave here of a cluster that is imported.
    fn keys(&self, all: &mut Vec<String>) -> Result<(), RookError> {
        let namespace = &self.layout.namespace;
        let mut needed = vec![("secrets", "rook-ceph-mon"), ("configmaps", "rook-ceph-mon-endpoints")];
        if !self.layout.pools.is_empty() {
            needed.extend([("secrets", "rook-csi-rbd-node"), ("secrets", "rook-csi-rbd-provisioner")]);
        }
        if !self.layout.file_systems.is_empty() {
            needed.extend([("secrets", "rook-csi-cephfs-node"), ("secrets", "rook-csi-cephfs-provisioner")]);
        }
        for (plural, wanted) in needed {
            // Only whether it is there matters: its content is not kept.
            if self.get(&format!("/api/v1/namespaces/{namespace}/{plural}/{wanted}"))?.is_none() {
                let kind = if plural == "secrets" { "Secret" } else { "ConfigMap" };
                all.push(format!(
                    "the {kind} {wanted} in the namespace {namespace}: Rook's import-external-cluster.sh makes it from what \
                     create-external-cluster-resources.py prints at the cluster that is imported"
                ));
            }
        }
        Ok(())
    }

    /// Resources of others that have the names of ours, and another cluster in the namespace: Rook makes one in each.
    fn in_the_way(&self, all: &mut Vec<String>) -> Result<(), RookError> {
        for object in self.wanted()? {
            if let Some(found) = self.get(&object.path(&self.layout.namespace))?
                && !self.is_ours(&found)
            {
                all.push(format!(
                    "the name of the {}: one is there that is not of the layout {} in the namespace {}; rename it in the layout, or remove it",
                    object.title(),
                    self.layout.name,
                    self.layout.namespace
                ));
            }
        }
        for found in self.clusters()? {
            if name(&found) != self.layout.name {
                all.push(format!(
                    "a namespace without another cluster: the CephCluster {} is there, and Rook makes one in each namespace",
                    place(&found)
                ));
            }
        }
        Ok(())
    }

    fn clusters(&self) -> Result<Vec<Value>, RookError> {
        Kind::of("CephCluster")
            .map_or(Ok(Vec::new()), |kind| self.list(&kind.path(&self.layout.namespace), ""))
    }
}

/// Where the definitions of a group come from.
fn definitions_of(group: &str) -> &'static str {
    match group.contains("snapshot.storage.k8s.io") {
        true => "the definitions of the external-snapshotter",
        false => "Rook's crds.yaml",
    }
}

/// A group and its version as manifests have them.
fn short(group: &str) -> &str {
    group.strip_prefix("apis/").or_else(|| group.strip_prefix("api/")).unwrap_or(group)
}

fn is_ready(node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The version that the tag of an image says, if it says one.
fn version(image: &str) -> Option<(u64, u64)> {
    let tag = image.split('@').next()?.rsplit_once(':')?.1;
    let mut numbers = tag.strip_prefix('v').unwrap_or(tag).split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_operator_is_that_of_its_tag() {
        assert_eq!(version("docker.io/rook/ceph:v1.20.6"), Some((1, 20)));
        assert_eq!(version("registry:5000/rook/ceph:v1.9.3@sha256:00"), Some((1, 9)));
        assert_eq!(version("rook/ceph:v1.21.0-beta.0"), Some((1, 21)));
        for unknown in ["rook/ceph:master", "rook/ceph", "registry:5000/rook/ceph", ""] {
            assert_eq!(version(unknown), None, "{unknown}");
        }
        assert!(version("rook/ceph:v1.9.3") < Some(LEAST));
    }
}
