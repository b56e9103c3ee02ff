//! What a plan that came over the network may touch on the machine that carries it out: the files, directories and devices
//! below the paths that its owner names, and no program.
//!
//! A plan is data; without a policy, anyone who may submit one could have a driver overwrite any file, or read
//! one and send it to a server of his own.

mod fio;
mod place;
#[cfg(test)]
mod tests;

use crate::block::{self, Rbd};
use crate::object::{self, Http, Target, Verb};
use crate::plan::{Engine, Plan, Work};
use std::path::{Path, PathBuf};

/// Where librbd and librados look for a cluster and its keys without a configuration.
const CEPH: &str = "/etc/ceph";

/// What plans may touch on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Directories; all that is below them may be read, written and removed. Also single files and devices.
    pub directories: Vec<PathBuf>,
}

impl Policy {
    /// Whether a plan stays within what is allowed. Symbolic links are followed as they are now, as far as a path
    /// exists.
    ///
    /// # Errors
    /// A sentence without a full stop that names the first thing that is not allowed, where it stands, and what to do.
    pub fn check(&self, plan: &Plan) -> Result<(), String> {
        if plan.trigger.is_some() {
            return Err(no_scripts("the plan"));
        }
        for path in &plan.observe.ceph_sockets {
            self.allow("`observe`", path)?;
        }
        for stage in &plan.stages {
            if stage.trigger.is_some() {
                return Err(no_scripts(&format!("the stage `{}`", stage.name)));
            }
            for work in &stage.works {
                self.work(&format!("the work `{}` of the stage `{}`", work.name, stage.name), work)?;
            }
        }
        Ok(())
    }

    fn work(&self, who: &str, work: &Work) -> Result<(), String> {
        match &work.engine {
            Engine::Object(job) => self.objects(who, job),
            Engine::Block(job) => self.volumes(who, job),
            Engine::Fio(file) => {
                fio::check(self, who, file)?;
                file.paths.iter().try_for_each(|path| self.allow(who, path))
            }
        }
    }

    fn objects(&self, who: &str, job: &object::Job) -> Result<(), String> {
        match &job.target {
            Target::S3(s3) => self.http(who, &s3.http)?,
            Target::Swift(swift) => self.http(who, &swift.http)?,
            Target::Embedded(server) => match &server.place {
                object::Place::Disk(Some(directory)) => self.allow(who, directory)?,
                // Beside the store, under a name that the plan has no part in.
                object::Place::Disk(None) | object::Place::Memory => {}
            },
            Target::Mock(_) | Target::Nothing => {}
        }
        job.actions.iter().try_for_each(|action| match &action.verb {
            Verb::PutFile { directory, .. } | Verb::WriteLocal { directory } => self.allow(who, directory),
            Verb::CreateContainer
            | Verb::DeleteContainer { .. }
            | Verb::Put { .. }
            | Verb::PutMultipart { .. }
            | Verb::Get
            | Verb::GetRange { .. }
            | Verb::Head
            | Verb::Delete
            | Verb::Clear
            | Verb::DeleteMany { .. }
            | Verb::Copy
            | Verb::List { .. }
            | Verb::PutTags
            | Verb::GetTags
            | Verb::Restore { .. } => Ok(()),
        })
    }

    fn http(&self, who: &str, http: &Http) -> Result<(), String> {
        http.ca_file.iter().try_for_each(|path| self.allow(who, path))
    }

    fn volumes(&self, who: &str, job: &block::Job) -> Result<(), String> {
        job.volumes.iter().try_for_each(|volume| match &volume.place {
            block::Place::File(path) | block::Place::Device(path) => self.allow(who, path),
            block::Place::Rbd(Rbd { conf: Some(conf), .. }) => self.allow(who, conf),
            block::Place::Rbd(_) => self.ceph(who),
        })
    }

    /// Whether Ceph's own configuration and keys may be used.
    fn ceph(&self, who: &str) -> Result<(), String> {
        self.allow(who, Path::new(CEPH))
    }

    /// Whether a submitted plan may touch a path.
    fn allow(&self, who: &str, path: &Path) -> Result<(), String> {
        let shown = path.display();
        let real =
            place::real(path).map_err(|why| format!("{who} names {shown}, {why}: write an absolute path"))?;
        let allowed = self.directories.iter().filter_map(|directory| place::real(directory).ok());
        if allowed.into_iter().any(|directory| real.starts_with(directory)) {
            return Ok(());
        }
        let leads = if real == path { String::new() } else { format!(" (which is {})", real.display()) };
        let directory = real.parent().unwrap_or(&real).display();
        Err(format!(
            "{who} would use {shown}{leads}, which this driver does not allow: use another path, or start the \
             driver with --allow-path {directory}"
        ))
    }
}

fn no_scripts(what: &str) -> String {
    format!("{what} has a trigger, and submitted plans cannot run scripts: remove `trigger`")
}
