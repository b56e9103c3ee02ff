//! What a work on objects touches on the machine that carries it out.

use crate::job::{Http, Job, Place, Target, Verb};
use tidemark_plan::policy::Policy;

/// Whether a job touches only what `policy` allows; `who` names its work in messages.
pub(crate) fn check(policy: &Policy, who: &str, job: &Job) -> Result<(), String> {
    let http = |http: &Http| http.ca_file.iter().try_for_each(|path| policy.allow(who, path));
    match &job.target {
        Target::S3(s3) => http(&s3.http)?,
        Target::Swift(swift) => http(&swift.http)?,
        Target::Embedded(server) => match &server.place {
            Place::Disk(Some(directory)) => policy.allow(who, directory)?,
            // Beside the store, under a name that the plan has no part in.
            Place::Disk(None) | Place::Memory => {}
        },
        Target::Mock(_) | Target::Nothing => {}
    }
    job.actions.iter().try_for_each(|action| match &action.verb {
        Verb::PutFile { directory, .. } | Verb::WriteLocal { directory } => policy.allow(who, directory),
        Verb::CreateContainer { .. }
        | Verb::DeleteContainer { .. }
        | Verb::Put { .. }
        | Verb::PutMultipart { .. }
        | Verb::Get
        | Verb::GetRange { .. }
        | Verb::Head
        | Verb::Delete
        | Verb::Clear { .. }
        | Verb::DeleteMany { .. }
        | Verb::Copy
        | Verb::List { .. }
        | Verb::PutTags
        | Verb::PutRetention { .. }
        | Verb::GetRetention
        | Verb::GetTags
        | Verb::Restore { .. } => Ok(()),
    })
}
