//! What runs have left behind whose process was killed, and its removal.

use crate::manifests::COMPONENT;
use crate::objects::{Named, Volume};
use crate::survey::told;
use std::time::{Duration, Instant};
use tidemark_apiserver::{Client, Failure};
use tidemark_kubernetes::{MANAGED_BY, RUN, is_run_name};

/// How often something is looked at again that goes.
const AGAIN: Duration = Duration::from_millis(500);

/// A run whose lives may have left something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The run's name.
    pub run: String,
    /// When it began, as the API server writes it.
    pub since: String,
}

/// The runs that have volumes in the client's namespace. None where this user may not look: who may not make them has made none.
///
/// # Errors
/// A sentence: the API server refuses to tell, or does not answer.
pub fn find(client: &Client) -> Result<Vec<Left>, String> {
    let labels =
        format!("labelSelector={}%3D{},{}%3D{}", MANAGED_BY.0, MANAGED_BY.1, COMPONENT.0, COMPONENT.1);
    match client.list::<Named>(&client.path("api/v1", "configmaps"), &labels) {
        Ok(owners) => Ok(owners
            .into_iter()
            // Labels are anybody's to set.
            .filter(|owner| is_run_name(&owner.metadata.name))
            .map(|owner| Left { run: owner.metadata.name, since: owner.metadata.creation_timestamp })
            .collect()),
        Err(failure) if failure.is_forbidden() => Ok(Vec::new()),
        Err(failure) => Err(told("list ConfigMaps", &failure)),
    }
}

/// Removes all that a run has made, and waits until it is gone, volumes too, for at most `most`. Those of a class that retains them stay.
///
/// # Errors
/// A sentence that says what is still there.
pub fn remove(client: &Client, run: &str, most: Duration) -> Result<(), String> {
    let until = Instant::now() + most;
    loop {
        let left = match try_remove(client, run) {
            Ok(left) if left.is_empty() => return Ok(()),
            Ok(left) => {
                format!("{} still there: {}", if left.len() == 1 { "is" } else { "are" }, left.join(", "))
            }
            Err(failure) if failure.is_passing() => told("remove it", &failure),
            Err(failure) => return Err(told("remove what a run has made", &failure)),
        };
        if Instant::now() >= until {
            let namespace = client.namespace();
            return Err(format!(
                "what the run {run} made could not be removed: {left}; remove it with `tidemark kubernetes clean {run} --namespace \
                 {namespace}`"
            ));
        }
        std::thread::sleep(AGAIN);
    }
}

/// Has everything deleted that is there: what is left for now. The owner goes last, so that it can be found while there is anything.
fn try_remove(client: &Client, run: &str) -> Result<Vec<String>, Failure> {
    let mut left = Vec::new();
    for (group, kind) in [
        ("api/v1", "pods"),
        ("apis/snapshot.storage.k8s.io/v1", "volumesnapshots"),
        ("api/v1", "persistentvolumeclaims"),
    ] {
        let path = client.path(group, kind);
        let found: Vec<Named> = match client.list(&path, &format!("labelSelector={RUN}%3D{run}")) {
            Ok(found) => found,
            // A cluster without snapshots, or a user who may make none.
            Err(failure) if kind == "volumesnapshots" && (failure.is_missing() || failure.is_forbidden()) => {
                continue;
            }
            Err(failure) => return Err(failure),
        };
        for Named { metadata } in found {
            client.delete(&format!("{path}/{}", metadata.name))?;
            left.push(format!("{} ({kind})", metadata.name));
        }
    }
    left.extend(volumes(client, run)?);
    if left.is_empty() {
        client.delete(&format!("{}/{run}", client.path("api/v1", "configmaps")))?;
    }
    Ok(left)
}

/// The volumes of a run's claims that are to go with these, and that their provisioner has not removed yet.
fn volumes(client: &Client, run: &str) -> Result<Vec<String>, Failure> {
    let found: Vec<Volume> = match client.list("/api/v1/persistentvolumes", "") {
        // Only claims are seen to be gone then.
        Err(failure) if failure.is_forbidden() => return Ok(Vec::new()),
        found => found?,
    };
    let prefix = format!("{run}-");
    let is_left = |volume: &Volume| {
        let claim = &volume.spec.claim_ref;
        claim.namespace == client.namespace()
            && claim.name.starts_with(&prefix)
            && volume.spec.persistent_volume_reclaim_policy == "Delete"
    };
    let left = found.into_iter().filter(is_left);
    Ok(left.map(|volume| format!("{} (persistentvolumes)", volume.metadata.name)).collect())
}
