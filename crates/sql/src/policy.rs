//! What a work on a database touches on the machine that carries it out.

use crate::job::{Endpoint, Job, Target};
use tidemark_plan::policy::Policy;

/// Whether a job touches only what `policy` allows; `who` names its work in messages.
pub(crate) fn check(policy: &Policy, who: &str, job: &Job) -> Result<(), String> {
    job.instances.first().ca_file.iter().try_for_each(|path| policy.allow(who, path))?;
    job.instances.iter().flat_map(Target::servers).try_for_each(|endpoint| match endpoint {
        Endpoint::Unix(path) => policy.allow(who, path),
        Endpoint::Tcp(..) => Ok(()),
    })
}
