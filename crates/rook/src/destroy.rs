//! What is there of a layout is removed: consumers first, the cluster last, devices only if they were named.

use crate::devices::{Device, is_as_written, repeated, touched};
use crate::error::RookError;
use crate::kinds::{Goes, KINDS, Object, name, place};
use crate::placed::Placed;
use crate::wait::Patience;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;

/// What Rook takes for the confirmation that a cluster's data may be destroyed (`cleanupPolicy.confirmation`).
const CONFIRMATION: &str = "yes-really-destroy-data";
/// The label of the claims that Rook makes for OSDs.
const OF_OSDS: &str = "ceph.rook.io/DeviceSet";
/// The label of the Jobs by which Rook wipes devices, one on each node.
const CLEANUP_JOBS: &str = "rook-ceph-cleanup%3Dtrue";

/// How a layout is destroyed.
pub struct Destroy<'a> {
    /// The devices that may be wiped: exactly those that a cleanup would touch. Empty: none is wiped, and data on them stay.
    pub wipe: &'a [Device],
    /// How long the removal may take.
    pub patience: Patience<'a>,
}

impl Placed {
    /// Removes the resources of the layout that there are, and waits until they are gone. Says what goes, and what stays.
    ///
    /// # Errors
    /// [`RookError::InUse`] and [`RookError::Devices`]: nothing was removed. [`RookError::Left`]: something is still there.
    /// [`RookError::NotWiped`]: the cluster is gone, and its devices are not all wiped.
    pub fn destroy(&self, how: &Destroy<'_>, say: &mut dyn FnMut(&str)) -> Result<(), RookError> {
        let since = Instant::now();
        let found = self.found()?;
        let users = self.users(&found)?;
        if !users.is_empty() {
            return Err(RookError::InUse(users));
        }
        let cluster = found.iter().find(|object| object.kind.name == "CephCluster");
        let old_jobs = self.may_wipe(how.wipe, cluster)?;
        for step in [Goes::First, Goes::Classes, Goes::Pools] {
            self.remove(step, how, since, say)?;
        }
        // Rook looks after pools no more once it is told that all may be destroyed.
        if let (Some(cluster), false) = (cluster, how.wipe.is_empty()) {
            // Whatever policy is there: it may be another's, who would have more wiped.
            let policy = json!({"spec": {"cleanupPolicy": {
                "confirmation": CONFIRMATION,
                "sanitizeDisks": {"method": "quick", "dataSource": "zero", "iteration": 1},
                "wipeDevicesFromOtherClusters": false,
            }}});
            match self.client.merge(&cluster.path(&self.layout.namespace), &policy) {
                Ok(_) => say(&format!("{}: its devices are to be wiped", cluster.title())),
                // It was being deleted, and is gone meanwhile.
                Err(failure) if failure.is_missing() => {}
                Err(failure) => {
                    return Err(self.error("set the cleanup policy of the CephCluster", failure));
                }
            }
        }
        self.remove(Goes::Cluster, how, since, say)?;
        if let (Some(_), false) = (cluster, how.wipe.is_empty()) {
            self.wait_for_wiping(&old_jobs, how, since, say)?;
            self.remove_claims_of_osds(how, since, say)?;
        }
        let bound = self.bound()?;
        match bound.is_empty() {
            true => self.remove(Goes::Devices, how, since, say)?,
            false => {
                for (volume, claim) in &bound {
                    say(&format!(
                        "PersistentVolume {volume} stays, with its class: it holds the data of the claim {claim}"
                    ));
                }
            }
        }
        let left = self.found()?;
        let stays = |object: &Object| object.kind.goes(&object.value) == Goes::Devices && !bound.is_empty();
        let left: Vec<_> = left.iter().filter(|object| !stays(object)).map(Object::title).collect();
        match left.is_empty() {
            true => Ok(()),
            false => Err(RookError::Left { after_s: since.elapsed().as_secs(), what: left }),
        }
    }

    /// What of others uses the layout: claims, volumes, snapshots, buckets, and pools that others have made in its cluster.
    fn users(&self, found: &[Object]) -> Result<Vec<String>, RookError> {
        let classes = |kind: &str| -> BTreeSet<String> {
            let of = found.iter().filter(|object| object.kind.name == kind);
            of.filter(|object| object.kind.goes(&object.value) == Goes::Classes)
                .map(|object| object.name().to_owned())
                .collect()
        };
        let (classes, snapshot_classes) = (classes("StorageClass"), classes("VolumeSnapshotClass"));
        let mut all = Vec::new();
        let mut uses =
            |path: &str, kind: &str, field: &str, classes: &BTreeSet<String>| -> Result<(), RookError> {
                for object in self.list(path, "")? {
                    if let Some(class) =
                        object["spec"][field].as_str().filter(|class| classes.contains(*class))
                        && !self.is_ours(&object)
                    {
                        all.push(format!("{kind} {} of the class {class}", place(&object)));
                    }
                }
                Ok(())
            };
        uses("/api/v1/persistentvolumeclaims", "PersistentVolumeClaim", "storageClassName", &classes)?;
        uses("/api/v1/persistentvolumes", "PersistentVolume", "storageClassName", &classes)?;
        let buckets = "/apis/objectbucket.io/v1alpha1/objectbucketclaims";
        uses(buckets, "ObjectBucketClaim", "storageClassName", &classes)?;
        let snapshots = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";
        uses(snapshots, "VolumeSnapshotContent", "volumeSnapshotClassName", &snapshot_classes)?;
        if found.iter().any(|object| object.kind.name == "CephCluster") {
            for kind in KINDS.iter().filter(|kind| kind.name.starts_with("Ceph")) {
                let others = self.list(&kind.path(&self.layout.namespace), "")?;
                let others = others.iter().filter(|other| !self.is_ours(other));
                all.extend(
                    others.map(|other| format!("{} {}, which is not of the layout", kind.name, place(other))),
                );
            }
        }
        Ok(all)
    }

    /// Whether the devices that were named are those that would be wiped. Gives the Jobs that wiped devices before.
    fn may_wipe(&self, named: &[Device], cluster: Option<&Object>) -> Result<BTreeSet<String>, RookError> {
        if named.is_empty() {
            return match cluster.filter(|cluster| is_told(cluster)) {
                None => Ok(BTreeSet::new()),
                Some(cluster) => Err(RookError::Devices(format!(
                    "the {} has a cleanup policy that wipes its devices, which is not of the document: name them in --wipe-devices, or \
                     remove `spec.cleanupPolicy.confirmation`",
                    cluster.title()
                ))),
            };
        }
        let claims = self.claims_of_osds()?;
        let volumes = self.list("/api/v1/persistentvolumes", "")?;
        let touched = touched(&self.layout, &claims, &volumes).map_err(RookError::Devices)?;
        repeated(&touched, named).map_err(RookError::Devices)?;
        let Some(cluster) = cluster else {
            return Err(RookError::Devices(format!(
                "there is no CephCluster {}, whose removal would wipe them; leave out --wipe-devices",
                self.layout.name
            )));
        };
        let wanted = self.wanted()?;
        if !wanted.iter().any(|object| object.is(cluster) && is_as_written(&object.value, &cluster.value)) {
            return Err(RookError::Devices(format!(
                "the {} uses other storage than the document says, so its cleanup might wipe what is not named; `tidemark layout status` \
                 shows the difference, and `tidemark layout apply` removes it",
                cluster.title()
            )));
        }
        Ok(self.cleanup_jobs()?.iter().map(uid).collect())
    }

    /// Deletes what goes at this step, and waits until it is gone.
    fn remove(
        &self,
        step: Goes,
        how: &Destroy<'_>,
        since: Instant,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), RookError> {
        let there = || -> Result<Vec<Object>, RookError> {
            Ok(self.found()?.into_iter().filter(|object| object.kind.goes(&object.value) == step).collect())
        };
        for object in there()? {
            self.delete(&object.title(), &object.path(&self.layout.namespace))?;
            say(&format!("{} is being deleted", object.title()));
        }
        self.until_gone(
            || Ok(there()?.into_iter().map(|object| (object.title(), object.value)).collect()),
            how,
            since,
        )
    }

    fn remove_claims_of_osds(
        &self,
        how: &Destroy<'_>,
        since: Instant,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), RookError> {
        let title = |claim: &Value| format!("PersistentVolumeClaim {}", name(claim));
        for claim in self.claims_of_osds()? {
            let path = self.client.path("api/v1", "persistentvolumeclaims");
            self.delete(&title(&claim), &format!("{path}/{}", name(&claim)))?;
            say(&format!("{} is being deleted", title(&claim)));
        }
        let there = || Ok(self.claims_of_osds()?.into_iter().map(|claim| (title(&claim), claim)).collect());
        self.until_gone(there, how, since)
    }

    fn delete(&self, title: &str, path: &str) -> Result<(), RookError> {
        self.client
            .delete(path)
            .map(drop)
            .map_err(|failure| self.error(&format!("delete the {title}"), failure))
    }

    /// Waits until nothing is there any more.
    fn until_gone(
        &self,
        there: impl Fn() -> Result<Vec<(String, Value)>, RookError>,
        how: &Destroy<'_>,
        since: Instant,
    ) -> Result<(), RookError> {
        loop {
            let left = match there() {
                Ok(left) if left.is_empty() => return Ok(()),
                Ok(left) => left,
                // It may be back in time.
                Err(away @ RookError::Away { .. }) if how.patience.is_over(since)? => return Err(away),
                Err(RookError::Away { .. }) => continue,
                Err(error) => return Err(error),
            };
            if how.patience.is_over(since)? {
                let events = self.events();
                let why = |(title, value): &(String, Value)| {
                    let held = value["metadata"]["finalizers"].as_array().into_iter().flatten();
                    let held: Vec<_> = held.filter_map(Value::as_str).collect();
                    let held = if held.is_empty() {
                        String::new()
                    } else {
                        format!(", held by {}", held.join(", "))
                    };
                    let said = self.said_of(value, &events);
                    std::iter::once(format!("{title}{held}"))
                        .chain(said.into_iter().map(|line| format!("  {line}")))
                };
                let what = left.iter().flat_map(why).collect();
                return Err(RookError::Left { after_s: how.patience.most.as_secs(), what });
            }
        }
    }

    /// Waits until Rook has wiped the devices of every node: it begins once the cluster is gone.
    fn wait_for_wiping(
        &self,
        old: &BTreeSet<String>,
        how: &Destroy<'_>,
        since: Instant,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), RookError> {
        let nodes = self.layout.needs().map_or(0, |needs| needs.nodes);
        let mut before = None;
        loop {
            let jobs = match self.cleanup_jobs() {
                // It may be back in time.
                Err(RookError::Away { .. }) if !how.patience.is_over(since)? => continue,
                jobs => jobs?,
            };
            let jobs: Vec<_> = jobs.into_iter().filter(|job| !old.contains(&uid(job))).collect();
            let done = jobs.iter().filter(|job| is_complete(job)).count();
            if before.replace(done) != Some(done) {
                say(&format!("devices are wiped on {done} of {nodes} nodes"));
            }
            if done >= nodes {
                return Ok(());
            }
            if how.patience.is_over(since)? {
                let events = self.events();
                let mut what =
                    vec![format!("devices are wiped on {done} of {nodes} nodes, as far as Rook's Jobs say")];
                for job in jobs.iter().filter(|job| !is_complete(job)) {
                    what.push(format!("Job {}", name(job)));
                    what.extend(self.said_of(job, &events).into_iter().map(|line| format!("  {line}")));
                }
                return Err(RookError::NotWiped { after_s: how.patience.most.as_secs(), what });
            }
        }
    }

    fn cleanup_jobs(&self) -> Result<Vec<Value>, RookError> {
        self.list(&self.client.path("apis/batch/v1", "jobs"), &format!("labelSelector={CLEANUP_JOBS}"))
    }

    fn claims_of_osds(&self) -> Result<Vec<Value>, RookError> {
        let path = self.client.path("api/v1", "persistentvolumeclaims");
        self.list(&path, &format!("labelSelector={}", OF_OSDS.replace('/', "%2F")))
    }

    /// Volumes of the layout's devices that claims still have, and these claims. The phase of a volume is no sign: it is `Bound` for a
    /// moment after its claim is gone.
    fn bound(&self) -> Result<Vec<(String, String)>, RookError> {
        let claims = self.list("/api/v1/persistentvolumeclaims", "")?;
        let volumes = self.found()?.into_iter().filter(|object| object.kind.name == "PersistentVolume");
        let bound = volumes.filter_map(|volume| {
            let of = &volume.value["spec"]["claimRef"]["uid"];
            let claim = claims.iter().find(|claim| of.is_string() && claim["metadata"]["uid"] == *of)?;
            Some((volume.name().to_owned(), place(claim)))
        });
        Ok(bound.collect())
    }
}

/// Whether a cluster is told that its data may be destroyed.
fn is_told(cluster: &Object) -> bool {
    cluster.value["spec"]["cleanupPolicy"]["confirmation"] == CONFIRMATION
}

fn uid(value: &Value) -> String {
    value["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn is_complete(job: &Value) -> bool {
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
}
