//! What a resource says of itself: whether it is ready, and if not, why.

use crate::kinds::Object;
use serde::Serialize;
use serde_json::Value;

/// Health checks of Ceph that say nothing of the safety of data or of daemons, and that do not go away by waiting: copies that
/// the document asks for, numbers of placement groups, and crashes that are over.
const HARMLESS: [&str; 6] = [
    "POOL_NO_REDUNDANCY",
    "POOL_TOO_FEW_PGS",
    "POOL_TOO_MANY_PGS",
    "TOO_FEW_PGS",
    "TOO_MANY_PGS",
    "RECENT_CRASH",
];

/// Whether a resource is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is.
    Ready,
    /// It is not yet.
    NotReady,
    /// It is not there.
    Missing,
}

/// What a resource says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Its kind and name.
    pub resource: String,
    /// Whether it is ready.
    pub state: State,
    /// Its own words: phase, health, OSDs.
    pub text: String,
}

/// How a resource stands, by what there is of it. A cluster of ours needs that many OSDs; an imported one `None`.
pub(crate) fn standing(wanted: &Object, found: Option<&Value>, osds_wanted: Option<u64>) -> Standing {
    let resource = wanted.title();
    let Some(found) = found else {
        return Standing { resource, state: State::Missing, text: "is not there".to_owned() };
    };
    if found["metadata"]["deletionTimestamp"].is_string() {
        return Standing { resource, state: State::NotReady, text: "is being deleted".to_owned() };
    }
    let status = &found["status"];
    let phase = status["phase"].as_str();
    let (is_ready, text) = match wanted.kind.name {
        "StorageClass" | "VolumeSnapshotClass" => (true, "is there".to_owned()),
        "PersistentVolume" => volume(found),
        "ObjectBucketClaim" => (phase == Some("Bound"), said(phase)),
        "CephCluster" => cluster(status, osds_wanted),
        "CephObjectStore" if osds_wanted.is_none() => {
            (matches!(phase, Some("Ready" | "Connected")), said(phase))
        }
        _ => (phase == Some("Ready"), said(phase)),
    };
    let (is_ready, text) = match is_outdated(found) {
        true => (false, format!("{text}; Rook has not seen its last change yet")),
        false => (is_ready, text),
    };
    Standing { resource, state: if is_ready { State::Ready } else { State::NotReady }, text }
}

fn said(phase: Option<&str>) -> String {
    match phase {
        None | Some("") => "no operator has said anything of it".to_owned(),
        Some(phase) => phase.to_owned(),
    }
}

/// Whether what the status says is of an earlier generation.
fn is_outdated(found: &Value) -> bool {
    let number = |value: &Value| value.as_u64();
    match (number(&found["metadata"]["generation"]), number(&found["status"]["observedGeneration"])) {
        (Some(now), Some(seen)) => seen < now,
        _ => false,
    }
}

/// A volume that is a device. One that was claimed before has the data of that claim, and no other claim gets it.
fn volume(found: &Value) -> (bool, String) {
    let claim = &found["spec"]["claimRef"];
    let claim = || {
        format!("{}/{}", claim["namespace"].as_str().unwrap_or("?"), claim["name"].as_str().unwrap_or("?"))
    };
    match found["status"]["phase"].as_str() {
        Some("Bound") => (true, format!("Bound to {}", claim())),
        Some("Released") => {
            let text = format!(
                "Released by {}: clear its device, then delete the volume and apply the layout again",
                claim()
            );
            (false, text)
        }
        Some("Failed") => (false, "Failed".to_owned()),
        Some(phase) if !phase.is_empty() => (true, phase.to_owned()),
        // Kubernetes says it a moment after it is made, and a claim can have it by then.
        _ => (true, "is there".to_owned()),
    }
}

fn cluster(status: &Value, osds_wanted: Option<u64>) -> (bool, String) {
    let phase = status["phase"].as_str();
    let ceph = &status["ceph"];
    let health = ceph["health"].as_str();
    let mut text = said(phase);
    if let Some(message) = status["message"].as_str().filter(|message| !message.is_empty()) {
        text += &format!(" ({message})");
    }
    if let Some(health) = health {
        text += &format!(", {health}");
    }
    let checks = checks(ceph);
    for (check, message) in &checks {
        text += &format!(", {check}: {message}");
    }
    let Some(wanted) = osds_wanted else {
        // What else is wrong with a cluster that exists elsewhere is known there.
        return (matches!(phase, Some("Connected" | "Ready")) && health != Some("HEALTH_ERR"), text);
    };
    let running = osds(status);
    text += &match running {
        Some(running) => format!(", {running} of {wanted} OSDs"),
        None => format!(", no OSDs of {wanted} yet"),
    };
    let is_well = match health {
        Some("HEALTH_OK") => true,
        Some("HEALTH_WARN") => !checks.is_empty() && checks.iter().all(|(check, _)| HARMLESS.contains(check)),
        _ => false,
    };
    (phase == Some("Ready") && is_well && running == Some(wanted), text)
}

/// Ceph's health checks and their messages.
fn checks(ceph: &Value) -> Vec<(&str, &str)> {
    let details = ceph["details"].as_object().into_iter().flatten();
    details.map(|(check, detail)| (check.as_str(), detail["message"].as_str().unwrap_or_default())).collect()
}

/// OSDs that run, by the versions that they tell the cluster; `None` where nobody says it.
pub(crate) fn osds(status: &Value) -> Option<u64> {
    let versions = status["ceph"]["versions"]["osd"].as_object()?;
    Some(versions.values().filter_map(Value::as_u64).sum())
}

/// The conditions of a resource that explain where it stands: what it does, what has failed, what blocks its deletion.
pub(crate) fn conditions(found: &Value) -> Vec<String> {
    let all = found["status"]["conditions"].as_array().into_iter().flatten();
    let text = |condition: &Value, name: &str| condition[name].as_str().unwrap_or_default().to_owned();
    all.filter(|condition| {
        let kind = text(condition, "type");
        let is_true = text(condition, "status") == "True";
        // These two say that something is well.
        is_true != matches!(kind.as_str(), "Ready" | "Connected") && !text(condition, "message").is_empty()
    })
    .map(|condition| {
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        format!("{kind} is {status}: {}: {}", text(condition, "reason"), text(condition, "message"))
    })
    .collect()
}

#[cfg(test)]
mod tests;
