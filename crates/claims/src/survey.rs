//! What a cluster and a class have, and what is left out of lives for it: each in a sentence.

use crate::job::{Job, Phase, Step};
use crate::objects::{Class, Driver, SnapshotClass};
use tidemark_apiserver::{Client, Failure};

/// What is known of the class before the first life.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Whether a claim is bound only once a pod needs it.
    pub(crate) waits: bool,
    /// Whether volumes are attached to nodes, so that this can be seen.
    pub(crate) attaches: bool,
    /// Whether volumes go with their claims.
    pub(crate) deletes: bool,
    /// Whether volumes may be watched: only then it is known that one is gone.
    pub(crate) sees_volumes: bool,
    /// The class of snapshots.
    pub(crate) snapshots: Option<String>,
    /// What is done, in order, without what is left out.
    pub(crate) steps: Vec<Step>,
    /// What was found: whole sentences.
    pub(crate) found: Vec<String>,
}

impl Survey {
    /// Asks the cluster.
    ///
    /// # Errors
    /// A sentence: there is no such class, or the API server does not answer.
    pub(crate) fn make(client: &Client, job: &Job) -> Result<Self, String> {
        let name = &job.target.class;
        let class: Class = get(client, &format!("/apis/storage.k8s.io/v1/storageclasses/{name}"))
            .map_err(|failure| told("look for the storage class", &failure))?
            .ok_or_else(|| {
                format!(
                    "there is no storage class {name}; `kubectl get storageclass` lists those that there are"
                )
            })?;
        let driver: Option<Driver> =
            get(client, &format!("/apis/storage.k8s.io/v1/csidrivers/{}", class.provisioner))
                .map_err(|failure| told("look for the CSI driver", &failure))?;
        let sees = |path: &str| match client.ask("GET", &format!("{path}?limit=1"), None) {
            Ok(_) => Ok(true),
            Err(failure) if failure.is_forbidden() => Ok(false),
            Err(failure) => Err(told("list volumes", &failure)),
        };
        let sees_volumes = sees("/api/v1/persistentvolumes")?;
        let sees_attachments = sees("/apis/storage.k8s.io/v1/volumeattachments")?;
        let snapshots = match job.steps.contains(&Step::Snapshot) {
            false => Snapshots::NotAsked,
            true => match client
                .list::<SnapshotClass>("/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", "")
            {
                Ok(classes) => Snapshots::Classes(classes),
                Err(failure) if failure.is_missing() => Snapshots::Unknown,
                Err(failure) => return Err(told("list snapshot classes", &failure)),
            },
        };
        Ok(Self::of(job, &class, driver.as_ref(), (sees_volumes, sees_attachments), &snapshots))
    }

    /// What follows from what the cluster has.
    fn of(
        job: &Job,
        class: &Class,
        driver: Option<&Driver>,
        (sees_volumes, sees_attachments): (bool, bool),
        snapshots: &Snapshots,
    ) -> Self {
        let (name, provisioner) = (&job.target.class, &class.provisioner);
        let waits = class.volume_binding_mode == "WaitForFirstConsumer";
        let mut found = vec![match waits {
            true => format!(
                "The class {name} ({provisioner}) waits for the first consumer: `schedule` ends when a node is chosen, and `bind` follows \
                 it."
            ),
            false => {
                format!("The class {name} ({provisioner}) binds claims at once: `schedule` follows `bind`.")
            }
        }];
        // A driver that does not say so needs it (storage.k8s.io/v1, CSIDriverSpec).
        let has_attachments = driver.is_some_and(|driver| driver.spec.attach_required != Some(false));
        let attaches = has_attachments && sees_attachments;
        found.extend((!attaches).then(|| match has_attachments {
            false => {
                format!("Volumes of {provisioner} are not attached to nodes: there is no phase `attach`.")
            }
            true => "This user may not list `volumeattachments`: `attach` is a part of `mount`.".to_owned(),
        }));
        let deletes = class.reclaim_policy != "Retain";
        found.extend((!deletes).then(|| {
            format!("The class {name} retains volumes: their claims are deleted, and the volumes are kept, for you to remove.")
        }));
        found.extend((deletes && !sees_volumes).then(|| {
            "This user may not list `persistentvolumes`: it is seen that claims are gone, not that their volumes are.".to_owned()
        }));
        let snapshot_class = match snapshots {
            Snapshots::Classes(classes) => classes.iter().find(|class| class.driver == *provisioner),
            Snapshots::NotAsked | Snapshots::Unknown => None,
        };
        let mut steps = Vec::new();
        for step in &job.steps {
            let lacks = match step {
                Step::Resize if !class.allow_volume_expansion => {
                    Some(format!("the class {name} does not allow volumes to grow (`allowVolumeExpansion`)"))
                }
                Step::Snapshot | Step::Restore if snapshot_class.is_none() => Some(match snapshots {
                    Snapshots::Classes(_) => format!("no snapshot class is for {provisioner}"),
                    _ => "the cluster knows no snapshots (`snapshot.storage.k8s.io`)".to_owned(),
                }),
                Step::Clone if driver.is_none() => {
                    Some(format!("{provisioner} is no CSI driver, and only these make volumes of volumes"))
                }
                _ => None,
            };
            match lacks {
                Some(why) => found.push(format!("`{}` is left out: {why}.", step.name())),
                None => steps.push(*step),
            }
        }
        let snapshots = snapshot_class.map(|class| class.metadata.name.clone());
        Self { waits, attaches, deletes, sees_volumes, snapshots, steps, found }
    }

    /// The phases of a life, in order.
    pub(crate) fn phases(&self, job: &Job) -> Vec<Phase> {
        let mut phases = Job { steps: self.steps.clone(), ..job.clone() }.phases();
        phases.retain(|phase| *phase != Phase::Attach || self.attaches);
        if !self.waits
            && let (Some(bind), Some(schedule)) = (
                phases.iter().position(|one| *one == Phase::Bind),
                phases.iter().position(|one| *one == Phase::Schedule),
            )
        {
            phases.swap(bind, schedule);
        }
        phases
    }
}

/// What a cluster has for snapshots.
enum Snapshots {
    NotAsked,
    /// It does not know what a snapshot is.
    Unknown,
    Classes(Vec<SnapshotClass>),
}

/// An object that may not be there.
fn get<T: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<Option<T>, Failure> {
    match client.ask("GET", path, None) {
        Ok(object) => serde_json::from_value(object)
            .map(Some)
            .map_err(|error| Failure::Away(format!("{path} cannot be read: {error}"))),
        Err(failure) if failure.is_missing() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A refusal as a sentence.
pub(crate) fn told(doing: &str, failure: &Failure) -> String {
    match failure {
        Failure::Status(403, words) => {
            format!("Kubernetes does not allow it: {words}; docs/volumes.md lists the rights that are needed")
        }
        Failure::Status(..) => format!("Kubernetes refuses to {doing}: {failure}"),
        Failure::Away(_) => failure.to_string(),
        Failure::Config(_) => {
            format!(
                "{failure}: name a context of your kubeconfig in the target, or the kubeconfig's file in KUBECONFIG"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Target;
    use crate::objects::{DriverSpec, Metadata};

    fn job(steps: &[Step]) -> Job {
        Job {
            target: Target {
                context: None,
                namespace: None,
                class: "fast".into(),
                image: "tidemark:1".into(),
            },
            lives: 1,
            rate: None,
            size: "1Gi".into(),
            grown: "2Gi".into(),
            bytes: 1,
            steps: steps.to_vec(),
            timeout_ns: 1,
            seed: 1,
        }
    }

    fn class(mode: &str, grows: bool) -> Class {
        Class {
            provisioner: "csi.example.org".into(),
            volume_binding_mode: mode.into(),
            reclaim_policy: "Delete".into(),
            allow_volume_expansion: grows,
        }
    }

    const ALL: [Step; 4] = [Step::Resize, Step::Snapshot, Step::Restore, Step::Clone];

    #[test]
    fn what_a_cluster_lacks_is_left_out_with_a_sentence() {
        let class = class("WaitForFirstConsumer", false);
        let survey = Survey::of(&job(&ALL), &class, None, (true, true), &Snapshots::Unknown);
        let names: Vec<_> = survey.phases(&job(&ALL)).into_iter().map(Phase::name).collect();
        assert_eq!(names, ["claim", "schedule", "bind", "mount", "start", "write", "delete"]);
        let left_out =
            |what: &str| survey.found.iter().any(|one| one.starts_with(&format!("`{what}` is left out:")));
        assert!(["resize", "snapshot", "restore", "clone"].into_iter().all(left_out), "{:?}", survey.found);
    }

    #[test]
    fn a_class_that_binds_at_once_is_bound_before_it_is_scheduled() {
        let driver = Driver { spec: DriverSpec::default() };
        let mine = SnapshotClass {
            metadata: Metadata { name: "snaps".into(), ..Metadata::default() },
            driver: "csi.example.org".into(),
        };
        let foreign = SnapshotClass { driver: "other".into(), ..mine.clone() };
        let class = class("Immediate", true);
        let of = |classes| {
            Survey::of(&job(&ALL), &class, Some(&driver), (true, true), &Snapshots::Classes(classes))
        };
        let survey = of(vec![foreign.clone(), mine]);
        assert_eq!(survey.snapshots.as_deref(), Some("snaps"));
        let names: Vec<_> = survey.phases(&job(&ALL)).into_iter().map(Phase::name).collect();
        let expected = [
            "claim",
            "bind",
            "schedule",
            "attach",
            "mount",
            "start",
            "write",
            "resize",
            "snapshot",
            "restore",
            "restore-read",
            "clone",
            "clone-read",
            "delete",
        ];
        assert_eq!(names, expected);
        assert_eq!(of(vec![foreign]).steps, [Step::Resize, Step::Clone], "that class is for another driver");
    }

    #[test]
    fn what_may_not_be_seen_is_not_claimed() {
        let driver = Driver { spec: DriverSpec::default() };
        let survey = Survey::of(
            &job(&[]),
            &class("Immediate", true),
            Some(&driver),
            (false, false),
            &Snapshots::NotAsked,
        );
        assert!(!survey.attaches && !survey.sees_volumes && survey.deletes);
        assert_eq!(survey.found.len(), 3, "{:?}", survey.found);
    }
}
