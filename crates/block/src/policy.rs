//! What the volumes of a job touch on the machine that carries it out.

use crate::job::{Job, Place, Rbd};
use tidemark_plan::policy::Policy;

/// Whether all volumes of a job are where a plan may be.
pub(crate) fn check(policy: &Policy, who: &str, job: &Job) -> Result<(), String> {
    job.journal.iter().try_for_each(|directory| policy.allow(who, directory))?;
    job.volumes.iter().try_for_each(|volume| match &volume.place {
        Place::File(path) | Place::Device(path) => policy.allow(who, path),
        Place::Rbd(Rbd { conf, user, pool, image }) => {
            [user, pool, image].into_iter().try_for_each(|name| policy.ceph_name(who, name))?;
            policy.ceph(who, conf.as_deref())
        }
    })
}
